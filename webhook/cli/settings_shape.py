"""The settings file, described once: names, kinds, defaults, examples and what each setting does.

The reader, the JSON Schema, `config show` and the table in docs/settings.md follow from it. The
defaults are those of webhook/core/settings.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from webhook.cli.settings_groups import Demand, Group, Record, Setting
from webhook.cli.settings_kinds import (
    Kind,
    ListOf,
    MapOf,
    OneOf,
    Refused,
    Shared,
    Text,
    Truth,
    Whole,
    shown,
)
from webhook.core.modes import Mode
from webhook.core.settings import (
    AUTOSCALER_TAINTS,
    DRIVER_PROFILES,
    MODEL_PROFILES,
    READY_MADE_TAINTS,
    UNTOLERABLE,
    Allowance,
    CustomKind,
    DriverMount,
    Exempt,
    Limit,
    Override,
    Pool,
    Settings,
    Taint,
)
from webhook.evaluation.workloads import READY_MADE
from webhook.rules import ALL, POLICY, RETIRED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.cli.settings_kinds import Notes, Schema
    from webhook.core.rule import Named

# Names as Kubernetes allows them (webhook/kube/labels.py; a test holds the two together), in the
# regular expressions that Python and ECMA-262 share. Lengths stand in front, as what must not be.
_NAME = r"(?![-A-Za-z0-9_.]{64})[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DNS = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"(?![-a-z0-9.]{{254}}){_DNS}(?:\.{_DNS})*"
_KEY = rf"(?:{_SUBDOMAIN}/)?{_NAME}"
_KEYS = rf"(?:{_SUBDOMAIN}/)?(?:[A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?"  # what stands before a *
_VALUE = rf"(?:{_NAME})?"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NO_CONTROL = r"[^\x00-\x1f]"

LABEL_KEY = Text("a label key", _KEY, "example.com/name")
LABEL_VALUE = Text("a label value of at most 63 characters", _VALUE, "gpu")
RESOURCE = Text("a resource name", _KEY, "nvidia.com/gpu")
RESOURCES = Text(
    "a resource name, in which a * may stand at the end",
    rf"{_KEY}|(?!\*){_KEYS}\*",
    "nvidia.com/mig-*",
)
EXTENDED_RESOURCE = Text(
    "the name of an extended resource, which a device plugin can offer: not of kubernetes.io",
    rf"(?!.*kubernetes\.io/){_SUBDOMAIN}/{_NAME}",
    "nvidia.com/gpu",
)
TAINT_KEYS = Text(
    "the key of a taint, in which a * may stand at the end",
    rf"{_KEY}|(?!\*){_KEYS}\*",
    "example.com/starting",
)
NAMESPACES = Text(
    "the name of a namespace, in which a * stands for any text",
    r"(?![-a-z0-9*]{64})[a-z0-9*](?:[-a-z0-9*]*[a-z0-9*])?",
    '"team-*"',
)
OBJECT_NAME = Text("the name of an object", _SUBDOMAIN, "nvidia")
SCHEDULER = Text("the name of a scheduler", r"[!-~]+", "my-scheduler")
PATH = Text(
    "an absolute path without ..",
    rf"(?!(?:.*/)?\.\.(?:/|$))/{_NO_CONTROL}*",
    "/usr/lib/nvidia-375",
)
ANY_TEXT = Text("a text in one line", rf"{_NO_CONTROL}+")
# A warning is cut at 256 characters, and the help text is the end of one.
SHORT_TEXT = Text("a text in one line of at most 160 characters", rf"{_NO_CONTROL}{{0,160}}")
POINTER = Text(
    "a JSON Pointer, in which a * stands for any member or item",
    r"(?:/(?:[^~/\x00-\x1f]|~[01])+)+",
    "/spec/template",
)
MODE: Shared[Mode] = Shared("mode", OneOf({mode.value: mode for mode in Mode}))
AMOUNTS = MapOf(RESOURCE, Whole(1, 100_000), dict, least=1)
LABELS = MapOf(LABEL_KEY, LABEL_VALUE, tuple, least=1)


def rule_words(rules: Iterable[Named], what: str) -> OneOf[str]:
    """Codes and names of these rules, and the codes that they took over."""
    words: dict[str, str] = {}
    titles: dict[str, str] = {}
    for rule in sorted(rules, key=lambda each: each.CODE):
        retired = (old for old, code in RETIRED.items() if code == rule.CODE)
        for word in (rule.CODE, rule.NAME, *retired):
            words[word] = rule.CODE
            titles[word] = f"{rule.CODE} {rule.NAME}: {(rule.__doc__ or '').partition(chr(10))[0]}"
    return OneOf(words, what, titles)


RULE = rule_words(ALL, "the code or name of a rule (`gpu-webhook explain` lists them)")
POLICY_RULE = rule_words(
    (rule for rule in ALL if rule.FACTS.has_exceptions),
    "the code or name of a GPU3xx rule: only these have exceptions",
)
_POLICY_CODES = ", ".join(sorted(rule.CODE for rule in POLICY))
UNSAFE_RULE = rule_words(
    (rule for rule in ALL if rule.FACTS.unsafe),
    "the code or name of a rule that has edits that are not safe",
)
MODES: Shared[dict[str, Mode]] = Shared("modes", MapOf(RULE, MODE, dict))
DEFINITIONS: dict[str, Shared[Any]] = {each.name: each for each in (MODE, MODES)}


def _either(*names: str) -> Schema:
    return {"anyOf": [{"required": [name]} for name in names]}


def _choice(words: Iterable[str]) -> OneOf[str]:
    return OneOf({word: word for word in words})


_NAMESPACES = Setting(
    "namespaces",
    "Namespaces, by name",
    ListOf(NAMESPACES, 1),
    "Patterns, of which one must fit. Left out: any name.",
    ["team-*"],
    "where.namespaces",
)
_WHERE = (
    _NAMESPACES,
    Setting(
        "labels",
        "Namespaces, by label",
        LABELS,
        "Labels that the namespace must have, all of them. Left out: any.",
        {"tier": "prod"},
        "where.labels",
    ),
    Setting(
        "percent",
        "Share of namespaces",
        Whole(0, 100),
        "A staged roll-out: this share of all namespaces, always the same ones; a higher number "
        "only adds some.",
        25,
        "where.percent",
    ),
)


@dataclass(frozen=True, slots=True)
class TaintKind(Kind[Taint]):
    """A taint, as `kubectl taint` writes it or as a map."""

    tolerable: bool = False  # GPU pods are to tolerate it

    @property
    def words(self) -> str:
        names = f", or {', '.join(READY_MADE_TAINTS)}" if self.tolerable else ""
        return f"a taint, key=value:effect, as sku=gpu:NoSchedule{names}"

    def read(self, node: yaml.Node, path: str, notes: Notes) -> Taint:
        if isinstance(node, yaml.MappingNode):
            taint = self._record.read(node, path, notes)
        elif not isinstance(node, yaml.ScalarNode):
            raise Refused(node, f"must be {self.words}, not {shown(node)}")
        elif self.tolerable and node.value in READY_MADE_TAINTS:
            return READY_MADE_TAINTS[node.value]
        else:
            found = re.fullmatch(_TAINT, node.value)
            if found is None:
                raise Refused(node, f"must be {self.words}, not {shown(node)}")
            taint = Taint(found["key"], found["value"] or "", found["effect"])
        if self.tolerable and taint.is_off_limits:
            raise Refused(
                node, f"{taint} says `not now`: GPU pods must never tolerate it; delete it"
            )
        return taint

    def schema(self) -> Schema:
        text = re.sub(r"\?P<\w+>", "?:", _TAINT)
        record = self._record.schema()
        words: list[Schema] = []
        if self.tolerable:
            text = _TOLERABLE + text
            key = record["properties"]["key"]
            key["pattern"] = f"^{_TOLERABLE}(?:{_KEY})$"
            words = [{"enum": list(READY_MADE_TAINTS)}]
        return {"anyOf": [*words, {"type": "string", "pattern": f"^(?:{text})$"}, record]}

    def plain(self, value: Taint) -> str:
        return str(value)

    @property
    def _record(self) -> Record[Taint]:
        return Record(Taint(""), _TAINT_GROUP)


_TAINT = rf"(?P<key>{_KEY})(?:=(?P<value>{_VALUE}))?:(?P<effect>{'|'.join(_EFFECTS)})"
_TOLERABLE = f"(?!{'|'.join((*UNTOLERABLE, *AUTOSCALER_TAINTS))})".replace(".", r"\.")
_TAINT_GROUP = Group(
    (
        Setting("key", "Key", LABEL_KEY, "The taint's key.", "sku", "key", required=True),
        Setting("value", "Value", LABEL_VALUE, "The taint's value.", "gpu", "value"),
        Setting(
            "effect", "Effect", _choice(_EFFECTS), "The taint's effect.", "NoExecute", "effect"
        ),
    ),
    noun="a taint",
)

_RESOURCES = Group(
    (
        Setting(
            "legacy",
            "Legacy resource names",
            ListOf(RESOURCE),
            "Names of GPUs that no node offers any more.",
            ["alpha.kubernetes.io/nvidia-gpu"],
            "legacy_resources",
        ),
        Setting(
            "target",
            "What legacy names become",
            EXTENDED_RESOURCE,
            "The resource name of today that takes the place of the legacy ones.",
            "nvidia.com/gpu",
            "gpu_resource",
        ),
        Setting(
            "gpus",
            "What counts as a GPU",
            ListOf(RESOURCES),
            "Resource names; a * at the end stands for any rest, so that nvidia.com/mig-* covers "
            "the .shared ones too. The webhook configuration must name them as well: "
            "`gpu-webhook config match-conditions`.",
            ["nvidia.com/gpu", "nvidia.com/mig-*"],
            "gpu_resources",
        ),
    )
)

_MODELS = Group(
    (
        Setting(
            "legacyLabel",
            "Legacy model label",
            LABEL_KEY,
            "The node label by which pods of 1.6-1.9 chose a GPU model.",
            "alpha.kubernetes.io/nvidia-gpu-name",
            "legacy_label",
        ),
        Setting(
            "profile",
            "Where nodes carry the model",
            _choice(MODEL_PROFILES),
            "The kind of cluster: it decides the label of today and the values that it may have.",
            "gke",
            "profile",
        ),
        Setting(
            "label",
            "Model label",
            LABEL_KEY,
            "A node label that takes the place of the profile's.",
            "example.com/gpu-model",
            "label",
        ),
        Setting(
            "values",
            "Model names of your own",
            MapOf(ANY_TEXT, ListOf(LABEL_VALUE, 1), tuple),
            "What a legacy model name is called today; these are asked before the built-in names.",
            {"GTX": ["NVIDIA-GeForce-GTX-1080"]},
            "values",
        ),
        Setting(
            "shared",
            "Take shared GPUs",
            Truth(),
            "Whether <model>-SHARED, a GPU that several pods share, is the model as well; so are "
            "nodes that labels of GKE or GPU Feature Discovery mark as shared.",
            True,
            "shared",
        ),
        Setting(
            "mig",
            "Take MIG slices",
            Truth(),
            "Whether <model>-MIG-<slice>, a part of a GPU, is the model as well; so are nodes "
            "that a label of GKE marks as sliced.",
            True,
            "mig",
        ),
    )
)

_AFFINITY = Group(
    (
        Setting(
            "emptyNamespaces",
            "What `namespaces: []` means",
            _choice(("own", "all")),
            "In the affinity annotation: the pod's own namespace (from 1.6 on), or all (1.3-1.5).",
            "all",
            "empty_namespaces",
        ),
    )
)

_MOUNT = Record(
    DriverMount("/", "/"),
    Group(
        (
            Setting(
                "path",
                "Path on the node",
                PATH,
                "Mounted read-only. A path that is missing keeps the container from starting.",
                "/usr/local/cuda-driver/lib64",
                "host_path",
                required=True,
            ),
            Setting(
                "mountPath",
                "Path in the container",
                PATH,
                "Where containers with a GPU find it.",
                "/usr/local/nvidia/lib64",
                "mount_path",
                required=True,
            ),
            Setting(
                "type",
                "What is there",
                _choice(("Directory", "File")),
                "Without it an empty directory would be made of a path that is missing.",
                "File",
                "type",
            ),
        ),
        noun="a mount",
    ),
)

_HOST_PATH = Group(
    (
        Setting(
            "mounts",
            "Driver mounts",
            ListOf(_MOUNT),
            "Paths of the node that containers with a GPU get.",
            [{"path": "/usr/lib/nvidia-375", "mountPath": "/usr/lib/nvidia"}],
            "mounts",
        ),
        Setting(
            "libraryPath",
            "Library path",
            ANY_TEXT,
            "Goes into LD_LIBRARY_PATH of containers with a GPU.",
            "/usr/local/nvidia/lib64",
            "library_path",
        ),
    )
)

_DRIVERS = Group(
    (
        Setting(
            "profile",
            "How containers get the driver",
            _choice(("host-path", *DRIVER_PROFILES)),
            "toolkit: the nodes do it, nothing is added. runtime-class: by a runtime class. "
            "host-path: by the mounts below. nvidia-375, nvidia-docker-1: by the mounts of old "
            "guides.",
            "runtime-class",
            "profile",
        ),
        Setting(
            "hostPath",
            "The driver by host path",
            _HOST_PATH,
            "Of the profile host-path.",
            None,
            "",
        ),
        Setting(
            "runtimeClass",
            "Runtime class",
            OBJECT_NAME,
            "Of the profile runtime-class: the RuntimeClass that GPU pods get.",
            "nvidia",
            "runtime_class",
        ),
        Setting(
            "assumeRuntimeClass",
            "The runtime class exists",
            Truth(),
            "Though no inventory says so. A pod with a class that does not exist would be refused.",
            True,
            "assume_runtime_class",
        ),
        Setting(
            "podSecurity",
            "Pod Security level of the cluster",
            _choice(("privileged", "baseline", "restricted")),
            "What Pod Security Admission enforces in namespaces without a label, by the API "
            "server's AdmissionConfiguration (`defaults.enforce`). baseline and restricted forbid "
            "host paths, so none is added there.",
            "baseline",
            "pod_security",
        ),
        Setting(
            "remove",
            "Stale host paths",
            ListOf(PATH),
            "Further driver paths that no node has any more; * stands for any text between two "
            "slashes.",
            ["/opt/nvidia-*"],
            "remove",
        ),
    ),
    (
        Demand(
            "profile",
            lambda given: (
                given.get("profile") == "host-path"
                and not (given.get("hostPath") or {}).get("mounts")
            ),
            "the profile host-path needs hostPath.mounts: list at least one",
            {
                "if": {"properties": {"profile": {"const": "host-path"}}, "required": ["profile"]},
                "then": {
                    "required": ["hostPath"],
                    "properties": {
                        "hostPath": {
                            "type": "object",
                            "required": ["mounts"],
                            "properties": {"mounts": {"minItems": 1}},
                        }
                    },
                },
            },
        ),
        Demand(
            "profile",
            lambda given: given.get("profile") == "runtime-class" and "runtimeClass" not in given,
            "the profile runtime-class needs runtimeClass: name it",
            {
                "if": {
                    "properties": {"profile": {"const": "runtime-class"}},
                    "required": ["profile"],
                },
                "then": {"required": ["runtimeClass"]},
            },
        ),
    ),
)

_TOLERATIONS = Group(
    (
        Setting(
            "taints",
            "Taints of GPU nodes",
            ListOf(TaintKind(tolerable=True)),
            "Tolerated by GPU pods where a node of the inventory carries them. aks-sku is "
            "sku=gpu:NoSchedule.",
            ["dedicated=gpu:NoSchedule"],
            "taints",
        ),
    )
)

_PLACEMENT = Group(
    (
        Setting(
            "enabled",
            "Send GPU pods to GPU nodes",
            Truth(),
            "Pods that name neither nodeSelector nor affinity. The resource request places them "
            "well enough where nodes without GPUs are not in the way.",
            True,
            "enabled",
        ),
        Setting(
            "label",
            "Their label",
            LABEL_KEY,
            "A label of every GPU node.",
            "cloud.google.com/gke-accelerator",
            "label",
        ),
        Setting("value", "Its value", LABEL_VALUE, "The label's value.", "present", "value"),
    )
)

_OVERRIDE = Record(
    Override(),
    Group(
        (
            *_WHERE,
            Setting(
                "mode", "Mode there", MODE, "Of all rules in these namespaces.", "audit", "mode"
            ),
            Setting(
                "rules",
                "Modes of rules there",
                MODES,
                "Of some rules in these namespaces; they win over `mode`.",
                {"GPU301": "enforce"},
                "rules",
            ),
        ),
        (
            Demand(
                "",
                lambda given: "mode" not in given and "rules" not in given,
                "an override needs mode or rules: add what is to hold in these namespaces",
                _either("mode", "rules"),
            ),
        ),
        noun="an override",
    ),
)

_ALLOWANCE = Record(
    Allowance(()),
    Group(
        (
            Setting(
                "rules",
                "Rules with exceptions",
                ListOf(POLICY_RULE, 1),
                "For which the annotation counts.",
                ["GPU301", "GPU304"],
                "rules",
                required=True,
            ),
            *_WHERE,
        ),
        noun="an entry of exceptions",
    ),
)

_POLICY = Group(
    (
        Setting(
            "mode",
            "Mode of all rules",
            MODE,
            "off: not asked. audit: counted and logged only. warn: the user is told, nothing "
            "changes. enforce: repairs, or denies. Left out, each rule has its usual mode: "
            "repairs enforce, GPU3xx warn, the leak guard GPU303 audit.",
            "warn",
            "mode",
        ),
        Setting(
            "rules",
            "Modes of rules",
            MODES,
            "Of single rules, by code or name; they win over `mode`.",
            {"GPU301": "enforce", "leak-guard": "warn"},
            "rules",
        ),
        Setting(
            "overrides",
            "Modes in some namespaces",
            ListOf(_OVERRIDE),
            "What stands later wins. All that an entry says of namespaces must hold.",
            [{"namespaces": ["team-*"], "percent": 25, "mode": "audit"}],
            "overrides",
        ),
        Setting(
            "exceptions",
            "Where exceptions count",
            ListOf(_ALLOWANCE),
            "Where a pod's annotation gpu-webhook.dev/allow.GPU3xx excuses it from that rule. "
            "Without an entry it never does: who makes a pod could excuse it.",
            [{"rules": ["GPU301"], "namespaces": ["ml-*"]}],
            "exceptions",
        ),
    )
)

_POOL = Record(
    Pool("", {}),
    Group(
        (
            Setting("name", "Name", LABEL_VALUE, "For people.", "a100", "name", required=True),
            Setting(
                "gpus",
                "GPUs of one node",
                AMOUNTS,
                "Allocatable amounts by resource name.",
                {"nvidia.com/gpu": 8},
                "gpus",
                required=True,
            ),
            Setting(
                "nodes",
                "Nodes at most",
                Whole(1, 100_000),
                "To how many nodes the pool may grow.",
                20,
                "nodes",
            ),
            Setting(
                "labels",
                "Labels of its nodes",
                MapOf(LABEL_KEY, LABEL_VALUE, dict),
                "Those that pods may select. One that is not named may have any value.",
                {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
                "labels",
            ),
            Setting(
                "taints",
                "Taints of its nodes",
                ListOf(TaintKind()),
                "Those that stay.",
                ["nvidia.com/gpu=present:NoSchedule"],
                "taints",
            ),
        ),
        noun="a pool",
    ),
)

_LIMIT = Record(
    Limit({}),
    Group(
        (
            Setting(
                "gpus",
                "GPUs for one pod at most",
                MapOf(RESOURCE, Whole(0, 100_000), dict, least=1),
                "By resource name; 0 for none at all. Sums per namespace are what a ResourceQuota "
                "is for.",
                {"nvidia.com/gpu": 1},
                "gpus",
                required=True,
            ),
            *_WHERE,
        ),
        noun="a limit",
    ),
)

_CAPACITY = Group(
    (
        Setting(
            "schedulers",
            "Further schedulers",
            ListOf(SCHEDULER),
            "Their pods are judged as those of default-scheduler. About pods of any other "
            "scheduler GPU301 only warns.",
            ["my-scheduler"],
            "schedulers",
        ),
        Setting(
            "startupTaints",
            "Taints that go away by themselves",
            ListOf(TAINT_KEYS),
            "Keys of taints that say `not yet`: a node that carries one counts as without it.",
            ["example.com/starting", "vendor.io/*"],
            "startup_taints",
        ),
        Setting(
            "pools",
            "Node pools that may be empty",
            ListOf(_POOL),
            "Their nodes count as if they were there, so that a pool that scales from zero is "
            "never called impossible.",
            [{"name": "a100", "gpus": {"nvidia.com/gpu": 8}, "nodes": 20}],
            "pools",
        ),
        Setting(
            "joiningMinutes",
            "Minutes until a node has settled",
            Whole(0, 1440),
            "So long after a node was made, GPUs and labels that it lacks may still come, unless "
            "its pool or instance type is known to have no GPUs.",
            30,
            "joining_minutes",
        ),
        Setting(
            "rememberedHours",
            "Hours for which GPUs that went away count",
            Whole(0, 720),
            "So long GPUs and labels that a node has lost still count, and nodes that went away.",
            48,
            "remembered_hours",
        ),
        Setting(
            "limits",
            "GPUs that one pod may ask for",
            ListOf(_LIMIT),
            "By namespace. Of the entries that fit the last one counts.",
            [{"namespaces": ["students-*"], "gpus": {"nvidia.com/gpu": 1}}],
            "limits",
        ),
    )
)

_EXEMPT = Record(
    Exempt(),
    Group(
        (
            Setting(
                "namespaces",
                "Namespaces, by name",
                ListOf(NAMESPACES, 1),
                "Patterns, of which one must fit. Left out: any name.",
                ["gpu-operator"],
                "namespaces",
            ),
            Setting(
                "labels",
                "Pods, by label",
                LABELS,
                "Labels that the pod must have, all of them. Whoever makes a pod chooses its "
                "labels, so name a namespace as well.",
                {"app": "dcgm-exporter"},
                "labels",
            ),
        ),
        (
            Demand(
                "",
                lambda given: not given,
                "an exemption needs namespaces or labels; to turn the guard off, say "
                "policy: {rules: {GPU303: off}}",
                _either("namespaces", "labels"),
            ),
        ),
        noun="an exemption",
    ),
)

_GUARD = Group(
    (
        Setting(
            "exempt",
            "GPU management software",
            ListOf(_EXEMPT),
            "Pods that may see GPUs without asking for one. A list given here takes the place of "
            "the default one.",
            [{"namespaces": ["gpu-operator"], "labels": {"app": "dcgm-exporter"}}],
            "exempt",
        ),
        Setting(
            "resources",
            "Further names that bring GPUs",
            ListOf(RESOURCES),
            "Resource names by which a container gets a GPU or a part of one; a * at the end "
            "stands for any rest. Containers that ask for one are left alone. Names that contain "
            "gpu or cuda, and names of nvidia.com that a node offers, need not be listed.",
            ["example.com/accelerator"],
            "resources",
        ),
        Setting(
            "fractionSchedulers",
            "Schedulers that share GPUs by annotation",
            ListOf(SCHEDULER),
            "With one of these, the annotation gpu-fraction or gpu-memory is a right to a GPU, if "
            "the container has NVIDIA_VISIBLE_DEVICES from a ConfigMap.",
            ["kai-scheduler"],
            "fraction_schedulers",
        ),
    )
)

_KIND = Record(
    CustomKind(""),
    Group(
        (
            Setting(
                "kind",
                "Kind",
                Text(
                    "a kind, in capitals as Kubernetes writes it",
                    r"[A-Z][A-Za-z0-9]{0,62}",
                    "TFJob",
                ),
                "As in the object.",
                "TFJob",
                "kind",
                required=True,
            ),
            Setting(
                "group",
                "API group",
                Text("an API group without version", rf"(?:{_SUBDOMAIN})?", "kubeflow.org"),
                "Left out or empty: any.",
                "kubeflow.org",
                "group",
            ),
            Setting(
                "templates",
                "Where its pod templates are",
                ListOf(POINTER, 1),
                "JSON Pointers; a * stands for any member or item. Kinds that are known already "
                f"may leave it out: {', '.join(sorted({each.kind for each in READY_MADE}))}.",
                ["/spec/tfReplicaSpecs/*/template"],
                "templates",
            ),
        ),
        (
            Demand(
                "kind",
                lambda given: "templates" not in given and not _is_known(given),
                "of this kind nothing is known: add templates, as [/spec/template]",
                {
                    "anyOf": [
                        {"required": ["templates"]},
                        *(
                            {
                                "properties": {
                                    "kind": {"const": each.kind},
                                    "group": {"enum": ["", each.group]},
                                }
                            }
                            for each in READY_MADE
                        ),
                    ]
                },
            ),
        ),
        noun="a custom kind",
    ),
)


def _is_known(given: Mapping[str, Any]) -> bool:
    return any(
        given.get("kind") == each.kind and given.get("group", "") in ("", each.group)
        for each in READY_MADE
    )


_WORKLOADS = Group(
    (
        Setting(
            "repair",
            "Change templates too",
            Truth(),
            "Off, a workload that a person applies only gets warnings, and its pods are repaired: "
            "see docs/gitops.md for what tools that apply from Git see of a change. On, it needs "
            "the component manifests/workload-repair, too: without it no workload is changed.",
            True,
            "repair",
        ),
        Setting(
            "kinds",
            "Custom kinds with pod templates",
            ListOf(_KIND),
            "Their templates get the same warnings as those of a Deployment.",
            [
                {
                    "kind": "TFJob",
                    "group": "kubeflow.org",
                    "templates": ["/spec/tfReplicaSpecs/*/template"],
                }
            ],
            "kinds",
        ),
    )
)


_MESSAGES = Group(
    (
        Setting(
            "help",
            "Where to ask",
            SHORT_TEXT,
            "Ends every denial, and the warnings of an answer.",
            "ask #gpu, https://wiki.example.com/gpu",
            "help",
        ),
        Setting(
            "annotation",
            "Annotate what was repaired",
            Truth(),
            "A repaired pod carries gpu-webhook.dev/repaired with the codes of the rules, as "
            "GPU101,GPU106; so does a workload whose template was repaired, on itself.",
            False,
            "annotation",
        ),
        Setting(
            "events",
            "Events for repaired pods",
            Truth(),
            "The owner of a repaired pod (the pod itself, if it has none) gets one Kubernetes "
            "Event. The watcher writes it and goes by the annotation, so both must be on.",
            False,
            "events",
        ),
    )
)


def _section(name: str, title: str, group: Group, text: str, field: str | None = None) -> Setting:
    return Setting(name, title, group, text, None, name if field is None else field)


FILE = Record(
    Settings(),
    Group(
        (
            Setting(
                "scope",
                "Which pods are repaired",
                _choice(("gpu", "all-legacy")),
                "gpu: those that name a legacy GPU resource or label, or ask for a GPU; a rule "
                "that adds a constraint or removes something acts only on pods that can never "
                "run as they are. all-legacy: everything legacy.",
                "all-legacy",
                "scope",
            ),
            _section("resources", "Resource names", _RESOURCES, "What GPUs are called.", ""),
            _section("models", "GPU models", _MODELS, "How nodes name their GPU model."),
            _section("affinity", "Affinity", _AFFINITY, "How the affinity annotation is read."),
            _section("drivers", "Drivers", _DRIVERS, "How containers get the CUDA driver."),
            _section("tolerations", "Tolerations", _TOLERATIONS, "What GPU pods tolerate.", ""),
            Setting(
                "schedulers",
                "Schedulers by annotation",
                ListOf(SCHEDULER),
                "The annotation scheduler.alpha.kubernetes.io/name is converted for these.",
                ["my-scheduler"],
                "schedulers",
            ),
            _section("placement", "Placement", _PLACEMENT, "Where GPU pods go by themselves."),
            _section("policy", "Policy", _POLICY, "What each rule may do, and where."),
            _section(
                "capacity",
                "Capacity",
                _CAPACITY,
                f"How requests are held against the cluster ({_POLICY_CODES}).",
            ),
            _section("guard", "Leak guard", _GUARD, "Pods that see GPUs without asking (GPU303)."),
            _section("workloads", "Workloads", _WORKLOADS, "Objects that hold pod templates."),
            _section("messages", "Messages", _MESSAGES, "What people are told."),
            Setting(
                "unsafe",
                "Unsafe edits of manifests",
                ListOf(UNSAFE_RULE),
                "Rules whose edits in files are made though they may change how a pod runs, or who "
                "may have how much; `--unsafe` is all of them. In admission they are never made.",
                ["quota-names", "GPU134"],
                "unsafe",
            ),
        )
    ),
)
