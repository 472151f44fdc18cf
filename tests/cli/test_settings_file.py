from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.errors import SettingsError
from webhook.core.modes import Mode
from webhook.core.namespace_selection import Selection
from webhook.core.settings import (
    Affinity,
    Allowance,
    Capacity,
    CustomKind,
    DriverMount,
    Drivers,
    Exempt,
    Guard,
    Limit,
    Models,
    Override,
    Placement,
    Policy,
    Pool,
    Settings,
    Taint,
    Workloads,
)
from webhook.evaluation.match_conditions import missed_names
from webhook.files.limited_reading import identity
from webhook.rules import ALL
from webhook.settings import file as settings_file
from webhook.settings import nodes as nodes_of_yaml

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        pytest.param("", Settings(), id="an empty file: the defaults"),
        pytest.param("# nothing\n", Settings(), id="a comment: the defaults"),
        pytest.param("models:\n", Settings(), id="an empty section: the defaults"),
        pytest.param("scope: all-legacy", Settings(scope="all-legacy"), id="scope"),
        pytest.param(
            "resources: {legacy: [a.io/x, b.io/y], target: c.io/z, gpus: ['c.io/*']}",
            Settings(
                legacy_resources=("a.io/x", "b.io/y"),
                gpu_resource="c.io/z",
                gpu_resources=("c.io/*",),
            ),
            id="resource names",
        ),
        pytest.param(
            "models: {profile: gke, label: a.io/b, shared: true, values: {GTX: [one, two]}}",
            Settings(
                models=Models(
                    profile="gke", label="a.io/b", shared=True, values=(("GTX", ("one", "two")),)
                )
            ),
            id="models",
        ),
        pytest.param(
            "affinity: {emptyNamespaces: all}",
            Settings(affinity=Affinity("all")),
            id="affinity",
        ),
        pytest.param(
            "drivers: {profile: host-path, remove: [/opt/nv*], podSecurity: baseline, "
            "hostPath: {libraryPath: /l, mounts: [{path: /a, mountPath: /b}, "
            "{path: /c, mountPath: /d, type: File}]}}",
            Settings(
                drivers=Drivers(
                    (DriverMount("/a", "/b"), DriverMount("/c", "/d", "File")),
                    "/l",
                    pod_security="baseline",
                    remove=("/opt/nv*",),
                )
            ),
            id="drivers by host path",
        ),
        pytest.param(
            "drivers: {profile: runtime-class, runtimeClass: nvidia, assumeRuntimeClass: true}",
            Settings(drivers=Drivers(runtime_class="nvidia", assume_runtime_class=True)),
            id="a runtime class",
        ),
        pytest.param(
            "tolerations: {taints: ['sku=gpu:NoSchedule', 'a:NoExecute', 'b=:NoSchedule']}",
            Settings(
                taints=(
                    Taint("sku", "gpu"),
                    Taint("a", "", "NoExecute"),
                    Taint("b"),
                )
            ),
            id="taints",
        ),
        pytest.param(
            "tolerations: {taints: ['sku=gpu:NoSchedule', 'sku=gpu:NoSchedule']}",
            Settings(taints=(Taint("sku", "gpu"),)),
            id="the same taint again, which a pod tolerates once",
        ),
        pytest.param(
            "annotationSchedulers: [mine]",
            Settings(annotation_schedulers=("mine",)),
            id="schedulers of the annotation",
        ),
        pytest.param(
            "unsafe: [quota-names, GPU134]",
            Settings(unsafe=("GPU128", "GPU134")),
            id="rules with unsafe edits, by name and code",
        ),
        pytest.param(
            "placement: {enabled: true, label: a.io/b, value: c}",
            Settings(placement=Placement(enabled=True, label="a.io/b", value="c")),
            id="placement",
        ),
        pytest.param(
            "policy: {mode: warn, rules: {GPU301: enforce, leak-guard: off}}",
            Settings(
                policy=Policy(Mode.WARN, {"GPU301": Mode.ENFORCE, "GPU303": Mode.OFF}),
            ),
            id="modes, of rules by code and by name",
        ),
        pytest.param(
            "policy: {overrides: [{namespaces: ['team-*'], labels: {tier: prod}, percent: 25, "
            "mode: audit, rules: {GPU301: enforce}}, {mode: off}]}",
            Settings(
                policy=Policy(
                    overrides=(
                        Override(
                            Selection(("team-*",), (("tier", "prod"),), 25),
                            Mode.AUDIT,
                            {"GPU301": Mode.ENFORCE},
                        ),
                        Override(mode=Mode.OFF),
                    )
                )
            ),
            id="overrides",
        ),
        pytest.param(
            "policy: {exceptions: [{rules: [GPU301, above-limit], namespaces: ['ml-*']}]}",
            Settings(
                policy=Policy(
                    exceptions=(Allowance(("GPU301", "GPU304"), Selection(("ml-*",))),),
                )
            ),
            id="exceptions",
        ),
        pytest.param(
            "capacity: {equivalentSchedulers: [mine], startupTaints: [a.io/starting, 'b.io/*'], "
            "joiningMinutes: 30, rememberedHours: 48, autoscalerStatus: autoscaler/status}",
            Settings(
                capacity=Capacity(
                    ("mine",),
                    ("a.io/starting", "b.io/*"),
                    joining_minutes=30,
                    remembered_hours=48,
                    autoscaler_status="autoscaler/status",
                )
            ),
            id="equivalent schedulers and start-up taints",
        ),
        pytest.param(
            "capacity: {pools: [{name: a100, gpus: {nvidia.com/gpu: 8}, nodes: 20, "
            "labels: {a.io/b: c}, taints: ['nvidia.com/gpu=present:NoSchedule']}, "
            "{name: '', gpus: {nvidia.com/mig-1g.5gb.shared: 7}}]}",
            Settings(
                capacity=Capacity(
                    pools=(
                        Pool(
                            "a100",
                            {"nvidia.com/gpu": 8},
                            20,
                            {"a.io/b": "c"},
                            (Taint("nvidia.com/gpu", "present"),),
                        ),
                        Pool("", {"nvidia.com/mig-1g.5gb.shared": 7}),
                    )
                )
            ),
            id="pools, also of MIG slices that are shared",
        ),
        pytest.param(
            "capacity: {limits: [{namespaces: ['students-*'], gpus: {nvidia.com/gpu: 1}}, "
            "{labels: {tier: free}, percent: 10, gpus: {nvidia.com/gpu: 0}}]}",
            Settings(
                capacity=Capacity(
                    limits=(
                        Limit({"nvidia.com/gpu": 1}, Selection(("students-*",))),
                        Limit({"nvidia.com/gpu": 0}, Selection((), (("tier", "free"),), 10)),
                    )
                )
            ),
            id="limits",
        ),
        pytest.param(
            "guard: {exempt: [{namespaces: [gpu-operator], labels: {app: dcgm-exporter}}]}",
            Settings(guard=Guard((Exempt(("gpu-operator",), (("app", "dcgm-exporter"),)),))),
            id="exemptions take the place of the default ones",
        ),
        pytest.param("guard: {exempt: []}", Settings(guard=Guard(())), id="no exemptions"),
        pytest.param(
            "guard: {resources: [example.com/accelerator, 'gears.io/*'], fractionSchedulers: []}",
            Settings(
                guard=Guard(
                    resources=("example.com/accelerator", "gears.io/*"), fraction_schedulers=()
                )
            ),
            id="what else brings GPUs",
        ),
        pytest.param(
            "workloads: {repair: true, kinds: [{kind: Foo, group: a.io, "
            "templates: [/spec/parts/*/template]}, {kind: PyTorchJob}]}",
            Settings(
                workloads=Workloads(
                    repair=True,
                    kinds=(
                        CustomKind("Foo", "a.io", ("/spec/parts/*/template",)),
                        CustomKind("PyTorchJob"),
                    ),
                )
            ),
            id="custom kinds",
        ),
        pytest.param(
            "placement: {value: off}", Settings(placement=Placement(value="off")), id="a plain off"
        ),
        pytest.param(
            "placement: {value: no}", Settings(placement=Placement(value="no")), id="a plain no"
        ),
        pytest.param("models: {mig: True}", Settings(models=Models(mig=True)), id="a True"),
        pytest.param(
            "policy: {overrides: [{percent: 0x19, mode: warn}, {percent: 25.0, mode: warn}]}",
            Settings(
                policy=Policy(
                    overrides=(Override(Selection(percent=25), Mode.WARN),) * 2,
                )
            ),
            id="whole numbers, however they are written",
        ),
        pytest.param(
            "capacity:\n  equivalentSchedulers: &names [mine]\nannotationSchedulers: *names\n",
            Settings(annotation_schedulers=("mine",), capacity=Capacity(("mine",))),
            id="an alias",
        ),
    ],
)
def test_settings_are_read(text: str, settings: Settings) -> None:
    assert settings_file.parse(text) == settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "scoop: gpu", "1:1: there is no setting scoop; did you mean scope?", id="typo"
        ),
        pytest.param("x: 1", "1:1: there is no setting x", id="a name like no other"),
        pytest.param("scope: gpus", "1:8: must be one of gpu, all-legacy, not 'gpus'", id="choice"),
        pytest.param("models:\n  mig: yes please", "2:8: must be true or false", id="no truth"),
        pytest.param("scope: gpu\nscope: gpu", "2:1: scope stands twice: delete one", id="twice"),
        pytest.param("[]", "1:1: must be a map of scope", id="a list instead of a map"),
        pytest.param("unsafe: mine", "1:9: must be a list", id="a text instead of a list"),
        pytest.param(
            "annotationSchedulers: [[]]", "1:24: must be a text", id="a list instead of a text"
        ),
        pytest.param(
            "annotationSchedulers: [My_Own]",
            "1:24: must be the name of a scheduler, a DNS subdomain, as my-scheduler, not 'My_Own'",
            id="a scheduler that is never taken from the annotation",
        ),
        pytest.param(
            "models: {values: []}",
            "1:18: must be a map, as {name: value}, not a list",
            id="no values map",
        ),
        pytest.param("models: {label: 'a b'}", "1:17: must be a label key", id="no label key"),
        pytest.param(
            "resources: {target: alpha.kubernetes.io/x}",
            "1:21: must be the name of an extended resource",
            id="a target that no plugin can offer",
        ),
        pytest.param(
            "resources: {gpus: ['a*b']}", "1:20: must be a resource name", id="a * within"
        ),
        pytest.param(
            "drivers: {remove: [x]}", "1:20: must be an absolute path", id="relative path"
        ),
        pytest.param(
            "drivers: {remove: [/a/../b]}",
            "1:20: must be an absolute path",
            id="a path that climbs",
        ),
        pytest.param(
            "drivers: {profile: host-path}", "1:20: the profile host-path needs", id="no mounts"
        ),
        *(
            pytest.param(
                "drivers: {hostPath: {mounts: [{path: /a, mountPath: /b}, "
                f"{{path: /c, mountPath: {other}}}]}}}}",
                f"1:80: {other} is already the mountPath of another mount, and a container has one "
                "mount at a path: give each its own",
                id=f"two mounts at one place, the other called {other}",
            )
            for other in ("/b", "/b/", "//b", "/./b")
        ),
        *(
            pytest.param(
                f"drivers: {{hostPath: {{mounts: [{{path: /a, mountPath: {path}}}]}}}}",
                "1:53: must be an absolute path below / without .. and :, of at most 4095 "
                "characters, as /usr/local/nvidia/lib64, not ",
                id=f"a mountPath that is {why}",
            )
            for path, why in (
                ("'/b:c'", "two, for old runtimes"),
                ("/", "the root"),
                ("/./", "the root, written otherwise"),
                ("b", "relative"),
                ("/b/..", "climbing"),
                (f"/{'b' * 4095}", "longer than any path"),
                ('"/b\\x7f"', "with a control character"),
            )
        ),
        pytest.param(
            f"drivers: {{hostPath: {{mounts: [{'{path: /a, mountPath: /b}, ' * 101}]}}}}",
            "1:30: has more than 100 entries, and a pod would get all: delete some",
            id="more mounts than a pod should have",
        ),
        pytest.param(
            f"tolerations: {{taints: [{'a:NoSchedule, ' * 101}]}}",
            "1:23: has more than 100 entries, and a pod would get all: delete some",
            id="more tolerations than a pod should have",
        ),
        pytest.param(
            f"models: {{values: {{K80: [{'a, ' * 101}]}}}}",
            "1:24: has more than 100 entries, and a pod would get all: delete some",
            id="more models than a pod should choose from",
        ),
        pytest.param(
            f"drivers: {{remove: [/{'b' * 4095}]}}",
            "1:20: must be an absolute path without .., of at most 4095 characters",
            id="a path that is too long",
        ),
        pytest.param(
            f"drivers: {{hostPath: {{libraryPath: {'b' * 4096}}}}}",
            "1:35: must be a text in one line of at most 4095 characters",
            id="a library path that is too long",
        ),
        *(
            pytest.param(
                f"resources: {{legacy: [{name}]}}",
                f"1:22: must be a resource name with a prefix, as nvidia.com/gpu, not '{name}'",
                id=f"{name}, which is not a device",
            )
            for name in ("cpu", "memory", "hugepages-2Mi", "gpu")
        ),
        *(
            pytest.param(
                f"resources: {{gpus: ['{name}']}}",
                "1:20: must be a resource name with a prefix, in which a * may stand at the end, "
                f"as nvidia.com/mig-*, not '{name}'",
                id=f"{name}, which would count cpu or memory",
            )
            for name in ("cpu", "c*", "m*")
        ),
        *(
            pytest.param(
                f"resources: {{target: {name}/gpu}}",
                "1:21: must be the name of an extended resource",
                id=f"a target that {why}",
            )
            for name, why in (
                ("requests.nvidia.com", "is the name of a quota"),
                ("a" * 245, "is too long for a quota"),
            )
        ),
        pytest.param(
            "drivers: {profile: runtime-class}",
            "1:20: the profile runtime-class needs runtimeClass",
            id="no class",
        ),
        pytest.param(
            "drivers: {hostPath: {mounts: [{path: /a}]}}",
            "1:31: a mount needs mountPath",
            id="half a mount",
        ),
        pytest.param(
            "tolerations: {taints: [sku=gpu]}",
            "1:24: must be a taint, key=value:effect",
            id="no effect",
        ),
        pytest.param(
            "tolerations: {taints: ['node.kubernetes.io/not-ready:NoExecute']}",
            "1:24: node.kubernetes.io/not-ready:NoExecute says `not now`",
            id="a taint that nobody may tolerate",
        ),
        pytest.param(
            "tolerations: {taints: ['ToBeDeletedByClusterAutoscaler:NoSchedule']}",
            "says `not now`",
            id="the autoscaler's taint",
        ),
        pytest.param("a: [", "1:5: is not YAML", id="no YAML"),
        pytest.param("placement: {value: 'a b'}", "1:20: must be a label value", id="no value"),
        pytest.param("drivers: {runtimeClass: A_B}", "1:25: must be the name of", id="no name"),
        pytest.param(
            "policy: {mode: enforced}",
            "1:16: must be one of off, audit, warn, enforce, not 'enforced'; did you mean enforce?",
            id="no mode",
        ),
        pytest.param(
            "policy: {mode: }",
            "1:16: must be one of off, audit, warn, enforce, not nothing",
            id="nothing at all",
        ),
        pytest.param(
            "policy: {rules: {gpu301: off}}",
            "1:18: must be the code or name of a rule (`gpu-webhook explain` lists them), not "
            "'gpu301'; did you mean GPU301?",
            id="a code in small letters",
        ),
        pytest.param(
            "policy: {rules: {GPU301: off, never-fits: warn}}",
            "1:31: GPU301 stands twice",
            id="a rule by code and name",
        ),
        pytest.param("policy: {rules: {[a]: off}}", "1:18: must be the code", id="a list as name"),
        pytest.param(
            "policy: {overrides: [{percent: 25}]}",
            "1:22: an override needs mode or rules: add",
            id="an override of nothing",
        ),
        pytest.param(
            "policy: {overrides: [{mode: off, percent: 101}]}",
            "1:43: must be a whole number from 0 to 100, not 101",
            id="more than all",
        ),
        pytest.param(
            "policy: {overrides: [{mode: off, percent: 0.5}]}",
            "1:43: must be a whole number from 0 to 100, not 0.5",
            id="half a percent",
        ),
        pytest.param(
            f"policy: {{overrides: [{{mode: off, percent: {'9' * 5000}}}]}}",
            "1:43: must be a whole number from 0 to 100, not 999",
            id="a number longer than any",
        ),
        pytest.param(
            "policy: {overrides: [{mode: off, namespaces: []}]}",
            "1:46: must name at least one, or be left out: delete namespaces",
            id="an empty list, which would mean all namespaces",
        ),
        pytest.param(
            "policy: {overrides: [{namespaces: [a], rules: {}}]}",
            "1:47: must name at least one, as rules: {GPU301: enforce}, or delete the override",
            id="an override of no rules",
        ),
        pytest.param(
            "policy: {overrides: [{mode: warn, rules: {}}]}",
            "1:42: must name at least one, or be left out: delete rules",
            id="an override of no rules, but with a mode",
        ),
        pytest.param(
            "policy: {exceptions: [{rules: []}]}",
            "1:31: must name at least one, as rules: [GPU301, GPU304], or delete the entry of "
            "exceptions",
            id="exceptions to no rules",
        ),
        pytest.param(
            "capacity: {limits: [{namespaces: [a], gpus: {}}]}",
            "1:45: must name at least one, as gpus: {nvidia.com/gpu: 1}, or delete the limit",
            id="a limit of nothing",
        ),
        pytest.param(
            "guard: {exempt: [{namespaces: []}]}",
            "1:31: must name at least one, or delete the exemption",
            id="an exemption of no namespace",
        ),
        pytest.param(
            "guard: {exempt: [{namespaces: [], labels: {a: b}}]}",
            "1:31: must name at least one, or be left out: delete namespaces",
            id="an exemption of no namespace, but with labels",
        ),
        pytest.param(
            "workloads: {kinds: [{kind: Foo, templates: []}]}",
            "1:44: must name at least one, or delete the custom kind",
            id="an unknown kind of no templates",
        ),
        pytest.param(
            "workloads: {kinds: [{kind: TFJob, templates: []}]}",
            "1:46: must name at least one, or be left out: delete templates",
            id="a known kind of no templates",
        ),
        pytest.param(
            "workloads: {kinds: [{kind: TFJob, group: a.io, templates: []}]}",
            "1:59: must name at least one, or delete the custom kind",
            id="a known kind of another group, of no templates",
        ),
        pytest.param(
            "models: {values: {K80: []}}",
            "1:24: must name at least one, or be left out: delete K80",
            id="a model that is called nothing",
        ),
        pytest.param(
            "policy: {overrides: [{mode: off, namespaces: [Team]}]}",
            "1:47: must be the name of a namespace",
            id="a namespace in capitals",
        ),
        pytest.param(
            "policy: {exceptions: [{rules: [GPU101]}]}",
            "1:32: must be the code or name of a GPU3xx rule: only these have exceptions, not "
            "'GPU101'",
            id="an exception to a repair",
        ),
        pytest.param(
            "policy: {exceptions: [{namespaces: [a]}]}",
            "1:23: an entry of exceptions needs rules: add it, as rules: [GPU301, GPU304]",
            id="an exception to nothing",
        ),
        pytest.param(
            "policy: {exceptions: [~]}", "1:23: must be a map of namespaces", id="an empty item"
        ),
        pytest.param(
            "capacity: {pools: [{name: a, gpus: {nvidia.com/gpu: 0}}]}",
            "1:53: must be a whole number from 1 to 100000, not 0",
            id="a pool without GPUs",
        ),
        pytest.param(
            "capacity: {pools: [{name: a, gpus: {}}]}", "1:36: must name at least", id="no names"
        ),
        pytest.param(
            "capacity: {pools: [{name: 1, gpus: {nvidia.com/gpu: 1}}]}",
            '1:27: must be a text: write it in quotes, "1"',
            id="a number for a name",
        ),
        pytest.param(
            "capacity: {pools: [{name: a}]}",
            "1:20: a pool needs gpus: add it, as gpus: {nvidia.com/gpu: 8}",
            id="half a pool",
        ),
        pytest.param(
            "capacity: {limits: [{gpus: {nvidia.com/gpus: 1}}]}",
            "1:29: nvidia.com/gpus is no GPU by resources.gpus: add it there",
            id="a limit that would never be met",
        ),
        pytest.param(
            "capacity: {pools: [{name: a, gpus: {amd.com/gpu: 1}}]}",
            "1:37: amd.com/gpu is no GPU by resources.gpus",
            id="a pool of other GPUs",
        ),
        pytest.param(
            "resources: {legacy: [a.io/b], target: a.io/b}",
            "1:31: a.io/b cannot be both legacy and what legacy names become: delete one",
            id="a name that would become itself",
        ),
        pytest.param(
            "resources: {legacy: [nvidia.com/gpu]}",
            "1:13: nvidia.com/gpu cannot be both legacy",
            id="so with the target left out",
        ),
        pytest.param(
            "resources: {legacy: ['a.io/*']}",
            "1:22: must be a resource name with a prefix, as nvidia.com/gpu, not 'a.io/*'",
            id="a pattern of legacy names, which no rule would read",
        ),
        pytest.param("resources: {gpus: ['*']}", "1:20: must be a resource name", id="all is GPU"),
        pytest.param(
            "capacity: {startupTaints: ['*']}", "1:28: must be the key of a taint", id="any taint"
        ),
        *(
            pytest.param(
                f"capacity: {{autoscalerStatus: {text}}}",
                "1:30: must be the namespace and the name of an object, with a / between, as "
                "kube-system/nvidia",
                id=what,
            )
            for what, text in {
                "a name without a namespace": "cluster-autoscaler-status",
                "all namespaces": '"*/cluster-autoscaler-status"',
                "a namespace with a dot": "a.b/status",
                "a way out of its path": "../nodes/status",
                "a namespace that is too long": f"{'a' * 64}/status",
                "three parts": "v1/a/b",
            }.items()
        ),
        pytest.param(
            "guard: {exempt: [{}]}",
            "1:18: an exemption needs namespaces or labels; to turn the guard off, say",
            id="an exemption of everything",
        ),
        pytest.param(
            "workloads: {kinds: [{kind: Foo}]}",
            "1:28: of this kind nothing is known: add templates",
            id="a kind without templates",
        ),
        pytest.param(
            "workloads: {kinds: [{kind: TFJob, group: a.io}]}",
            "1:28: of this kind nothing is known",
            id="a known kind of another group",
        ),
        pytest.param(
            "workloads: {kinds: [{kind: Foo, templates: [spec/template]}]}",
            "1:45: must be a JSON Pointer",
            id="no pointer",
        ),
        pytest.param(
            "tolerations: {taints: [[]]}",
            "1:24: must be a text, a taint, key=value:effect, as sku=gpu:NoSchedule, not a list",
            id="a list for one",
        ),
        pytest.param(
            "tolerations: {taints: [{key: sku}]}",
            "1:24: must be a text, a taint, key=value:effect, as sku=gpu:NoSchedule, not a map",
            id="a map for one",
        ),
        pytest.param(
            "tolerations: {taints: ['a=b c:NoSchedule']}", "1:24: must be a taint", id="bad value"
        ),
        pytest.param("models: {mig: 'true'}", "1:15: must be true or false", id="a true in quotes"),
        pytest.param("models: {mig: yes}", "1:15: must be true or false", id="a yes"),
        pytest.param("placement: {value: true}", '"true"', id="a truth instead of a text"),
        pytest.param("annotationSchedulers: [~]", "1:24: must be", id="nothing for a text"),
        pytest.param("? [a]\n: b", "1:3: there is no setting a list", id="a list for a name"),
        pytest.param(
            '"a\\e[1m": b', "1:1: there is no setting 'a\\x1b[1m'", id="nothing a terminal obeys"
        ),
        pytest.param(
            "policy: &a {overrides: [*a]}", "1:13: there is no setting over", id="a circle"
        ),
        *(
            pytest.param(
                f"{before}scope: gpu\n---\nmodels: {{}}\n",
                f"{3 + before.count(chr(10))}:1: a second YAML document starts here, and settings "
                "are one: join the two, or delete one",
                id=f"two documents{' after an empty one' if before else ''}",
            )
            for before in ("", "---\n")
        ),
        *(
            pytest.param(
                text,
                f"{place}: the tag {tag} has no meaning here: delete it",
                id=f"a tag: {text!r}",
            )
            for text, place, tag in (
                ("policy: !enforce\n  rules: {}", "1:9", "!enforce"),
                ("policy: {rules: !x {GPU301: enforce}}", "1:17", "!x"),
                ("policy: {mode: !enforce warn}", "1:16", "!enforce"),
                ("policy: {mode: &a !x warn}", "1:16", "!x"),
                ("policy: {!x mode: warn}", "1:10", "!x"),
                ("unsafe: !x []", "1:9", "!x"),
                ("policy: !!set {}", "1:9", "!!set"),
                ("unsafe: !!map []", "1:9", "!!map"),
                ("policy: !!str {mode: warn}", "1:9", "!!str"),
                ("capacity: {joiningMinutes: !x 5}", "1:28", "!x"),
                ("models: {label: !!binary YQ}", "1:17", "!!binary"),
                ("scope: !<tag:example.com,2002:a> gpu", "1:8", "tag:example.com,2002:a"),
                ("scope: !%1b%5b1m gpu", "1:8", "'!\\x1b[1m'"),
                ("--- !x\nscope: gpu", "1:5", "!x"),
            )
        ),
        pytest.param("a:\n\tb: c", "2:1: is not YAML: while scanning", id="a tab"),
        pytest.param("a: é\n b\x07", "2:3: is not YAML: a control character, '\\x07'", id="a bell"),
        pytest.param(
            "policy: {overrides: [{mode: off, percent: !!int many}]}",
            "1:43: must be a whole number from 0 to 100, not many",
            id="a tag that its value does not fit",
        ),
        pytest.param(
            "models: {values: {1080: [a]}}",
            '1:19: must be a text: write it in quotes, "1080"',
            id="a number for a free name",
        ),
        pytest.param(
            "models: {values: {? [a] : [b]}}",
            "1:21: must be a text, a text in",
            id="a list for one",
        ),
        pytest.param("[" * 9_000, "1:1: is not YAML that can be read: too deep", id="brackets"),
        pytest.param("- " * 9_000, "1:1: is not YAML that can be read: too deep", id="dashes"),
    ],
)
def test_a_mistake_is_named_with_line_column_and_cure(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_file.parse(text, "f.yaml")

    assert str(raised.value).startswith(f"f.yaml:{said}" if said[0].isdigit() else "f.yaml:")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "policy: !enforce {mode: !x warn, rules: !y {!z GPU301: !a enforce}}",
        "capacity: {joiningMinutes: !x 5}",
        "models: {mig: !x true, label: !x 'a'}",
        "policy: &a !x {mode: warn}\nmodels: {}",
    ],
)
def test_a_tag_is_the_only_mistake(text: str) -> None:
    with pytest.raises(settings_file.MistakesError) as raised:
        settings_file.parse(text)

    said = [each.what for each in raised.value.mistakes]
    assert len(said) == text.count("!")
    assert all("has no meaning here" in each for each in said)


@pytest.mark.parametrize(
    "text",
    [
        "scope: all-legacy\n---\n",
        "scope: all-legacy\n---\n# nothing\n",
        "scope: all-legacy\n---\n---\n...\n",
        "---\nscope: all-legacy\n...\n",
        "---\n---\nscope: all-legacy\n--- ~\n",
        "scope: !!str all-legacy",
        "!!map {!!str scope: ! all-legacy}",
    ],
)
def test_empty_documents_and_plain_tags_say_nothing(text: str) -> None:
    assert settings_file.parse(text) == Settings(scope="all-legacy")


LONG = ", ".join(f"scheduler-{number}" for number in range(20_000))
POOLS = ",\n".join(f"{{name: p{number}, gpus: {{nvidia.com/gpu: 8}}}}" for number in range(5_000))


@pytest.mark.parametrize(
    ("text", "made"),
    [
        pytest.param(f"annotationSchedulers: [{LONG}]", 20_000, id="one long line"),
        pytest.param(f"capacity: {{pools: [{POOLS}]}}", 5_000, id="many maps in braces"),
        pytest.param(f"capacity: {{pools: [{POOLS}}}}}", 0, id="many maps, and a bracket missing"),
    ],
)
def test_only_libyaml_reads_a_large_file(
    text: str, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser in Python takes ten times as long, and a worker answers nothing meanwhile."""
    monkeypatch.setattr(nodes_of_yaml, "Slow", None)
    if made:
        settings = settings_file.parse(text)
        assert len(settings.annotation_schedulers) + len(settings.capacity.pools) == made
    else:
        with pytest.raises(SettingsError, match=r"5000:41: is not YAML: while parsing a flow"):
            settings_file.parse(text)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(SettingsError) as raised:
        settings_file.parse("scoop: gpu\nmodels: {mig: 1}\n", "f.yaml")

    assert len(str(raised.value).splitlines()) == 2


def test_mistakes_come_in_the_order_of_the_file() -> None:
    text = "capacity:\n  pools: [{}]\nscoop: 1\npolicy: {mode: x}"
    with pytest.raises(settings_file.MistakesError) as raised:
        settings_file.parse(text)

    assert [each.line for each in raised.value.mistakes] == [2, 2, 3, 4]


def test_every_rule_has_a_mode_by_code_and_by_name() -> None:
    for rule in ALL:
        for word in (rule.CODE, rule.NAME):
            policy = settings_file.parse(f"policy: {{rules: {{{word}: audit}}}}").policy
            assert policy.rules == {rule.CODE: Mode.AUDIT}


def test_the_default_counts_mig_slices_that_are_shared() -> None:
    assert settings_file.parse("").is_gpu("nvidia.com/mig-1g.5gb.shared")


def test_a_gpu_named_under_capacity_is_one_that_missed_names_tells_of() -> None:
    text = "resources: {gpus: [amd.com/gpu]}\ncapacity: {limits: [{gpus: {amd.com/gpu: 1}}]}"

    assert missed_names(settings_file.parse(text)) == ["amd.com/gpu"]
    assert missed_names(settings_file.parse("policy: {mode: off}\nguard: {exempt: []}")) == []


def test_each_setting_is_found_where_it_stands() -> None:
    text = "models:\n  mig: true\npolicy:\n  overrides:\n  - rules: {leak-guard: off}\n"
    read = settings_file.read_text(text, "")

    assert read.places == {
        ("models",): (1, 1),
        ("models", "mig"): (2, 3),
        ("policy",): (3, 1),
        ("policy", "overrides"): (4, 3),
        ("policy", "overrides", 0): (5, 5),
        ("policy", "overrides", 0, "rules"): (5, 5),
        ("policy", "overrides", 0, "rules", "leak-guard"): (5, 13),
    }
    assert read.position(("policy", "overrides", 0, "rules", "GPU303")) == (5, 13)
    assert read.position(("models", "shared")) is None


# No ? and !: of a name or a tag that nothing follows they think differently.
# And no ---: of a document of nothing they name different places.
LINE = st.text(alphabet="ab:- [](){}'\"é日#&*|>%@`\t,\u2028\x85", max_size=12).filter(
    lambda line: not line.startswith("---")
)


def nodes(node: yaml.Node | None) -> list[Any]:
    """The node and all below it, with their places."""
    if node is None:
        return []
    below = [each for part in node.value for each in (part if isinstance(part, tuple) else [part])]
    inner = [] if isinstance(node, yaml.ScalarNode) else [nodes(each) for each in below]
    value = node.value if isinstance(node, yaml.ScalarNode) else None
    return [node.tag, node.start_mark.line, node.start_mark.column, value, *inner]


@given(st.lists(LINE, max_size=6).map("\n".join))
def test_libyaml_and_the_parser_in_python_see_the_same(text: str) -> None:
    try:
        seen = nodes(yaml.compose(text, Loader=nodes_of_yaml.Quick))
    except (yaml.YAMLError, RecursionError):
        return
    with contextlib.suppress(yaml.YAMLError):  # this one is stricter about tabs
        assert seen == nodes(yaml.compose(text, Loader=nodes_of_yaml.Slow))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 900, id="brackets"),
        pytest.param("- " * 450 + "x", id="dashes"),
        pytest.param("{a: " * 900, id="braces"),
        pytest.param(
            "".join(f"{' ' * deep}a:\n{' ' * deep}-\n" for deep in range(500)), id="lines"
        ),
        pytest.param("[" * 200_000, id="brackets, so many that libyaml would crash"),
        pytest.param("- " * 200_000, id="dashes, so many that libyaml would crash"),
    ],
)
def test_a_deep_text_crashes_nobody(text: str) -> None:
    """Within the small stack that a thread may have."""
    ends: list[str] = []

    def parse() -> None:
        try:
            settings_file.parse(text)
        except SettingsError as error:
            ends.append(str(error))

    before = threading.stack_size(1024 * 1024)
    thread = threading.Thread(target=parse)
    thread.start()
    thread.join()
    threading.stack_size(before)

    assert ends


def test_aliases_of_aliases_stop_nobody() -> None:
    """A billion names in some lines, and a list of itself."""
    laughs = "".join(f"{'  '}- &a{level + 1} [{f'*a{level}, ' * 10}]\n" for level in range(9))
    with pytest.raises(SettingsError, match="more than 100000 values, with those of aliases"):
        settings_file.parse(f"unsafe:\n  - &a0 lol\n{laughs}")
    wide = ", ".join("a" for _ in range(2_000))
    with pytest.raises(SettingsError, match="more than 100000 values, with those of aliases"):
        settings_file.parse(f"x: &a [{wide}]\nunsafe: [{'*a, ' * 2_000}]")
    with pytest.raises(SettingsError, match="1:9: must be the code"):
        settings_file.parse("unsafe: &a [*a]")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\n".join(f"scope{number}: x" for number in range(50_000)), id="of names"),
        pytest.param("scope: gpu\n" * 5_000, id="of a name that stands again and again"),
        pytest.param(f"annotationSchedulers: [{'!x a, ' * 5_000}]", id="of tags"),
    ],
)
def test_a_file_of_mistakes_is_soon_read(text: str) -> None:
    with pytest.raises(settings_file.MistakesError) as raised:
        settings_file.parse(text)

    assert len(raised.value.mistakes) == 100


@pytest.mark.parametrize("half", ["\\uD800", "\\uDFFF"])
def test_half_a_character_stops_nobody(half: str) -> None:
    for text in (f'"{half}": 1', f'models: {{values: {{"{half}": [a]}}}}', f'unsafe: ["{half}"]'):
        with contextlib.suppress(SettingsError):
            settings_file.parse(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        settings_file.load(str(tmp_path / "nowhere.yaml"))
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="is not UTF-8"):
        settings_file.load(str(file))


def test_a_file_that_may_be_read_again_is_another_one(tmp_path: Path) -> None:
    """Else the fault that it could not be read would stay for ever."""
    file = tmp_path / "settings.yaml"
    file.write_text("{}")
    before = identity(str(file))
    file.chmod(0o400)
    assert identity(str(file)) != before
