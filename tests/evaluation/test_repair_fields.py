"""A record that its author forged takes out nothing but what our rules write."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.draft import Draft
from webhook.core.rule import Context
from webhook.core.settings import Drivers, Models, Settings
from webhook.evaluation import repair_record, template_updates
from webhook.evaluation.authors import Authors
from webhook.evaluation.evaluate import Asking
from webhook.evaluation.pod_fields import PodFields
from webhook.evaluation.repair_fields import RepairFields
from webhook.evaluation.update_fields import Update
from webhook.kube.pod import PREFERRED, REQUIRED, as_map
from webhook.kube.pointer import Path, value_at
from webhook.rules import RULES

Raw = dict[str, Any]

AT = Path(("spec", "template"))
LEGACY, GPU = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
MODEL, PRODUCT = "alpha.kubernetes.io/nvidia-gpu-name", "nvidia.com/gpu.product"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SCHEDULER = "scheduler.alpha.kubernetes.io/name"
HOSTNAME = "pod.beta.kubernetes.io/hostname"
TERMS = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
WISHES = ("spec", "affinity", "nodeAffinity", PREFERRED)
SETTINGS = Settings(annotation_schedulers=("mine",), drivers=Drivers(runtime_class="nvidia"))


def requirement(key: str, *values: str, operator: str = "In") -> Raw:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*requirements: Raw) -> Raw:
    return {"matchExpressions": list(requirements)}


def noted(key: tuple[str, ...]) -> tuple[str, ...]:
    return ("metadata", "annotations", *key)


def pointer(key: tuple[str, ...]) -> str:
    return str(Path(key))


TENANT, GPUS = requirement("tenant", "a"), requirement(PRODUCT, "Tesla-K80")
ZONE = requirement("zone", "a")
OF_GPUS = {"key": GPU, "operator": "Exists"}
OTHER = {"key": "night", "operator": "Exists"}
ODD: list[Any] = [7, {}, [1], None, True]
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def required(*terms: Raw) -> str:
    return json.dumps({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def spread(app: str, **more: Any) -> Raw:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone", **more}


C = ("spec", "containers", "c")
ANTI = ("spec", "affinity", "podAntiAffinity")


@pytest.mark.parametrize(
    ("key", "before", "after", "words"),
    [
        pytest.param((*C, "resources", "limits", GPU), "1", "2", {}, id="an amount of GPUs"),
        pytest.param((*C, "resources", "requests", LEGACY), "1", None, {}, id="a legacy amount"),
        pytest.param(("metadata", "annotations", HOSTNAME), "h", None, {}, id="an annotation"),
        pytest.param(("spec", "nodeSelector", PRODUCT), None, "K80", {}, id="a model"),
        pytest.param(("spec", "nodeSelector", MODEL), "K80", None, {}, id="a legacy model"),
        pytest.param(("spec", "nodeSelector", "x"), "y", "y", {}, id="a label that is as it was"),
        pytest.param(("spec", "nodeSelector", OLD_ZONE), "a", None, {}, id="a label that is dead"),
        pytest.param(TERMS, None, [term(GPUS)], {}, id="terms of models"),
        pytest.param(TERMS, [term(TENANT)], [term(TENANT, GPUS)], {}, id="a model in a term"),
        pytest.param(
            TERMS,
            [term(TENANT)],
            [term(TENANT, ZONE)],
            {noted((AFFINITY,)): required(term(ZONE))},
            id="a term of the annotation",
        ),
        pytest.param(
            TERMS,
            None,
            [term(requirement("topology.kubernetes.io/zone", "a"))],
            {noted((AFFINITY,)): required(term(requirement(OLD_ZONE, "a")))},
            id="a term of the annotation, in words of today",
        ),
        pytest.param(
            WISHES, None, [{"weight": 1, "preference": term(GPUS)}], {}, id="a wish for a model"
        ),
        pytest.param(
            (*ANTI, REQUIRED),
            None,
            [spread("x")],
            {noted((AFFINITY,)): json.dumps({"podAntiAffinity": {REQUIRED: [spread("x")]}})},
            id="other pods",
        ),
        pytest.param(("spec", "tolerations"), [OTHER], [OTHER, OF_GPUS], {}, id="tolerations"),
        pytest.param(
            ("spec", "tolerations"),
            None,
            [OTHER],
            {noted((TOLERATIONS,)): json.dumps([OTHER])},
            id="tolerations of the annotation",
        ),
        pytest.param(("spec", "hostname"), None, "h", {noted((HOSTNAME,)): "h"}, id="a hostname"),
        pytest.param(
            ("spec", "schedulerName"),
            "default-scheduler",
            "mine",
            {noted((SCHEDULER,)): "mine"},
            id="a scheduler",
        ),
        pytest.param(
            ("spec", "securityContext", "seccompProfile", "type"),
            None,
            "RuntimeDefault",
            {noted((SECCOMP,)): "runtime/default"},
            id="a seccomp profile",
        ),
        pytest.param(
            (*C, "securityContext", "seccompProfile", "type"),
            None,
            "RuntimeDefault",
            {noted(("container.seccomp.security.alpha.kubernetes.io/c",)): "docker/default"},
            id="a seccomp profile of a container",
        ),
        pytest.param(
            ("spec", "securityContext", "sysctls"),
            None,
            [{"name": "net.ipv4.tcp_syncookies", "value": "1"}],
            {noted(("security.alpha.kubernetes.io/sysctls",)): "net.ipv4.tcp_syncookies=1"},
            id="sysctls",
        ),
        pytest.param(("spec", "runtimeClassName"), None, "nvidia", {}, id="a runtime class"),
        pytest.param(
            ("spec", "volumes", "gpu-webhook-driver-0"),
            None,
            {"name": "gpu-webhook-driver-0", "hostPath": {"path": "/x"}},
            {},
            id="a volume of the driver",
        ),
        pytest.param(("spec", "volumes", "v"), {"name": "v"}, None, {}, id="a volume that went"),
        pytest.param(
            (*C, "volumeMounts", "/x"),
            None,
            {"name": "gpu-webhook-driver-0", "mountPath": "/x"},
            {},
            id="a mount of the driver",
        ),
        pytest.param(
            (*C, "env", "LD_LIBRARY_PATH"),
            None,
            {"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia"},
            {},
            id="a search path",
        ),
        pytest.param(
            (*C, "env", "PATH"),
            {"name": "PATH", "value": "/a:/b"},
            {"name": "PATH", "value": "/a"},
            {},
            id="a search path that is shorter",
        ),
    ],
)
def test_what_a_repair_may_have_written(key: Any, before: Any, after: Any, words: Any) -> None:
    assert RepairFields(words, SETTINGS).may_be(key, before, after)


@pytest.mark.parametrize(
    ("key", "before", "after", "words"),
    [
        pytest.param((*C, "resources", "limits", "cpu"), None, "2", {}, id="an amount of CPU"),
        pytest.param((*C, "resources", "other", GPU), None, "2", {}, id="no section"),
        pytest.param(("metadata", "annotations", "a"), None, "b", {}, id="an annotation that came"),
        pytest.param(("metadata", "labels", "a"), "b", None, {}, id="a label of the pod"),
        pytest.param(("spec", "nodeSelector", "tenant"), None, "a", {}, id="a label of nodes"),
        pytest.param(("spec", "nodeSelector", "tenant"), "a", None, {}, id="one that went"),
        pytest.param(
            ("spec", "nodeSelector", "topology.kubernetes.io/zone"), None, "a", {}, id="a zone"
        ),
        pytest.param(
            ("spec", "nodeSelector", "topology.kubernetes.io/zone"),
            None,
            "a",
            {("spec", "nodeSelector", OLD_ZONE): "a"},
            id="a zone beside an old word for it, which anybody may note",
        ),
        pytest.param(
            ("spec", "nodeSelector", "node.kubernetes.io/instance-type"),
            None,
            "m5.large",
            {},
            id="the type of nodes, which is a model on AKS alone",
        ),
        *(
            pytest.param(
                where, None, value, {("metadata", "annotations", ""): value}, id=f"{where[-1]}"
            )
            for where, value in (
                (("spec", "securityContext", "runAsNonRoot"), True),
                (("spec", "priorityClassName"), "low"),
                ((*C, "securityContext", "allowPrivilegeEscalation"), False),
                ((*C, "securityContext", "capabilities", "drop"), "ALL"),
            )
        ),
        *(
            pytest.param((*C, "resources", "limits", name), odd, None, {}, id=f"{odd} {name}")
            for name in (GPU, LEGACY)
            for odd in ("much", "", True, {"a": 1}, ["1"], float("inf"))
        ),
        *(
            pytest.param(where, odd, None, {}, id=f"{odd} at {where[-1]}")
            for where in (noted((AFFINITY,)), ("spec", "nodeSelector", MODEL))
            for odd in (7, True, {"a": "b"}, ["x"])
        ),
        pytest.param(("spec", "nodeSelector", "x"), {}, {}, {}, id="no text, as it was"),
        pytest.param(
            ("spec", "tolerations"), [7, OTHER], [OTHER], {}, id="a number among tolerations"
        ),
        pytest.param(
            ("spec", "tolerations"),
            [{"key": GPU, "operator": "Exists", "tolerationSeconds": 2**63}],
            None,
            {},
            id="seconds that no int64 can be",
        ),
        pytest.param(
            WISHES,
            [{"weight": 2**31, "preference": term(GPUS)}],
            None,
            {},
            id="a weight that no int32 can be",
        ),
        pytest.param(TERMS, None, [term(TENANT)], {}, id="a term"),
        pytest.param(TERMS, [term(TENANT)], None, {}, id="a term that went"),
        pytest.param(TERMS, [term(GPUS)], [term(GPUS, TENANT)], {}, id="a part of a term"),
        pytest.param(
            TERMS, [term(TENANT), term(GPUS)], [term(TENANT, GPUS)], {}, id="a term in two parts"
        ),
        pytest.param(
            TERMS,
            None,
            [term(ZONE)],
            {noted((AFFINITY,)): required(term(requirement("zone", "b")))},
            id="a term that is not in the annotation",
        ),
        pytest.param(
            TERMS,
            None,
            [{"matchFields": [requirement("metadata.name", "n")]}],
            {},
            id="a name of a node",
        ),
        *(
            pytest.param(TERMS, None, [term({"key": odd, "operator": "In"})], {}, id=f"{odd}")
            for odd in ODD
        ),
        pytest.param(
            WISHES, None, [{"weight": 1, "preference": term(TENANT)}], {}, id="a preference"
        ),
        pytest.param((*ANTI, REQUIRED), None, [spread("x")], {}, id="other pods"),
        pytest.param(
            (*ANTI, REQUIRED),
            None,
            [spread("x")],
            {noted((AFFINITY,)): json.dumps({"podAntiAffinity": {REQUIRED: [spread("y")]}})},
            id="other pods than in the annotation",
        ),
        pytest.param(
            ("spec", "affinity", "podAffinity"), None, "x", {}, id="an affinity that is none"
        ),
        pytest.param(("spec", "tolerations"), [], [OTHER], {}, id="a toleration"),
        pytest.param(
            ("spec", "tolerations"), [], [OTHER], {noted((TOLERATIONS,)): "["}, id="an odd text"
        ),
        pytest.param(
            ("spec", "hostname"), None, "h", {noted((HOSTNAME,)): "g"}, id="another hostname"
        ),
        pytest.param(
            ("spec", "hostname"), "h", None, {noted((HOSTNAME,)): "h"}, id="one that went"
        ),
        pytest.param(("spec", "schedulerName"), None, "mine", {}, id="a scheduler without a word"),
        pytest.param(
            ("spec", "schedulerName"),
            None,
            "theirs",
            {noted((SCHEDULER,)): "theirs"},
            id="a scheduler that the settings do not list",
        ),
        pytest.param(("spec", "securityContext", "runAsNonRoot"), None, True, {}, id="no root"),
        pytest.param(
            (*C, "securityContext", "runAsNonRoot"), None, True, {}, id="no root in a container"
        ),
        pytest.param(
            ("spec", "securityContext", "seccompProfile", "type"),
            None,
            "RuntimeDefault",
            {},
            id="a seccomp profile without a word",
        ),
        pytest.param(
            (*C, "securityContext", "seccompProfile", "type"),
            None,
            "RuntimeDefault",
            {noted((SECCOMP,)): "runtime/default"},
            id="a seccomp profile of a container, by the word of the pod",
        ),
        pytest.param(
            ("spec", "securityContext", "seccompProfile", "type"),
            None,
            "Localhost",
            {noted((SECCOMP,)): "runtime/default"},
            id="another seccomp profile",
        ),
        pytest.param(("spec", "runtimeClassName"), None, "gvisor", {}, id="a runtime class"),
        pytest.param(("spec", "volumes", "v"), None, {"name": "v"}, {}, id="a volume"),
        pytest.param(
            (*C, "volumeMounts", "/x"), None, {"name": "v", "mountPath": "/x"}, {}, id="a mount"
        ),
        pytest.param((*C, "env", "HOME"), None, {"name": "HOME"}, {}, id="a variable"),
        pytest.param(
            (*C, "env", "PATH"), None, {"name": "PATH", "value": "/x"}, {}, id="a search path"
        ),
        pytest.param(("spec", "priority"), None, 1, {}, id="a field"),
        pytest.param(("x", "y"), None, 1, {}, id="nothing of a pod"),
        pytest.param(("spec", "x", "c", "resources", "limits", GPU), None, "1", {}, id="no kind"),
    ],
)
def test_what_no_repair_has_written(key: Any, before: Any, after: Any, words: Any) -> None:
    assert not RepairFields(words, SETTINGS).may_be(key, before, after)


def test_the_type_of_nodes_is_a_label_of_models_where_the_settings_say_so() -> None:
    of_aks = Settings(models=Models(profile="aks"))
    key = ("spec", "nodeSelector", "node.kubernetes.io/instance-type")
    assert RepairFields({}, of_aks).may_be(key, None, "Standard_NC6")


WORDS: Raw = {
    AFFINITY: required(term(ZONE)),
    TOLERATIONS: json.dumps([OTHER]),
    SECCOMP: "runtime/default",
    SCHEDULER: "theirs",
    HOSTNAME: "h",
}
DAY = {"key": "day", "operator": "Exists"}
VOLUME, MOUNT = {"name": "v", "emptyDir": {}}, {"name": "v", "mountPath": "/v"}
SEARCH = {"name": "PATH", "value": "/opt/bin"}


def template(*, legacy: bool, words: bool, policy: bool) -> Raw:
    """A template with legacy words, other words, and what a policy of the cluster sets."""
    container: Raw = {"name": "c", "resources": {"limits": {LEGACY if legacy else GPU: "1"}}}
    spec: Raw = {"containers": [container], "nodeSelector": {MODEL: "Tesla-K80"} if legacy else {}}
    if policy:
        container |= {
            "volumeMounts": [MOUNT],
            "env": [SEARCH],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}},
        }
        container["resources"]["limits"]["cpu"] = "1"
        spec["nodeSelector"]["tenant"] = "a"
        spec |= {
            "volumes": [VOLUME],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}},
            "tolerations": [DAY],
            "schedulerName": "theirs",
            "runtimeClassName": "gvisor",
            "affinity": json.loads(required(term(TENANT))),
        }
    return {"metadata": {"annotations": dict(WORDS) if words else {}}, "spec": spec}


def is_kept(spec: Raw) -> bool:
    """Whether all that the policy sets is there."""
    (container,) = spec["containers"]
    terms = spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return all(
        (
            MOUNT in container["volumeMounts"],
            SEARCH in container["env"],
            container["securityContext"]["runAsNonRoot"],
            container["securityContext"]["seccompProfile"] == {"type": "Localhost"},
            container["resources"]["limits"]["cpu"] == "1",
            spec["nodeSelector"]["tenant"] == "a",
            VOLUME in spec["volumes"],
            spec["securityContext"]["runAsNonRoot"],
            spec["securityContext"]["seccompProfile"] == {"type": "Localhost"},
            DAY in spec["tolerations"],
            spec["schedulerName"] == "theirs",
            spec["runtimeClassName"] == "gvisor",
            terms and all(TENANT in each["matchExpressions"] for each in terms),
        )
    )


def answered(sent: Raw, stored: Raw | None, forged: Any) -> Raw:
    """Give the spec that comes of this update, or of this Deployment if nothing is stored."""
    obj, old = ({"metadata": {}, "spec": {"template": each}} for each in (sent, stored))
    obj = copy.deepcopy(obj)
    metadata = {"annotations": {repair_record.ANNOTATION: json.dumps({"/spec/template": forged})}}
    noted = repair_record.read(metadata)["/spec/template"]
    was = None if stored is None else old
    update = Update(AT, was, noted, Authors(obj), Authors(old), may_change=True)
    template_updates.template(Draft(obj), update, Asking(RULES), Context(SETTINGS))
    return as_map(as_map(value_at(obj, AT)).get("spec"))


ALL = [
    {**PodFields(template(legacy=legacy, words=words, policy=policy)).values}
    for legacy in (True, False)
    for words in (True, False)
    for policy in (True, False)
]
KEYS = sorted({pointer(key) for fields in ALL for key in fields})
VALUES = [None, [], "x", *(value for fields in ALL for value in fields.values())]
changes_ = st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES)).map(list)
right = st.sampled_from(KEYS).flatmap(
    lambda at: st.tuples(
        st.just(at),
        st.permutations(
            [None, *(v for fields in ALL for key, v in fields.items() if pointer(key) == at)]
        ).map(lambda values: values[:2]),
    )
)
records = st.lists(st.tuples(st.sampled_from(KEYS), changes_) | right, max_size=12).map(dict)
templates = st.builds(template, legacy=st.booleans(), words=st.booleans(), policy=st.booleans())


sent_ones = st.builds(
    template,
    legacy=st.booleans(),
    words=st.booleans(),
    policy=st.just(True),
)


@given(records, sent_ones, templates | st.none())
def test_no_record_takes_out_what_a_policy_of_the_cluster_has_set(
    forged: Any, sent: Raw, stored: Raw | None
) -> None:
    assert is_kept(answered(sent, stored, forged))


@pytest.mark.parametrize("is_stored", [False, True], ids=["made", "updated"])
@pytest.mark.parametrize("policy", [False, True], ids=["unset in it", "set in it"])
@pytest.mark.parametrize("words", [False, True], ids=["without words", "with words"])
@pytest.mark.parametrize("way", ["came", "went"])
def test_nor_does_one_that_names_all_of_it(
    way: str, *, words: bool, policy: bool, is_stored: bool
) -> None:
    sent = template(legacy=True, words=words, policy=True)
    fields = PodFields(sent).values
    noted = {pointer(k): [None, v] if way == "came" else [v, None] for k, v in fields.items()}
    noted |= {
        f"/metadata/annotations/{pointer((name,))[1:]}": [v, None] for name, v in WORDS.items()
    }
    noted["/spec/nodeSelector/alpha.kubernetes.io~1nvidia-gpu-name"] = ["Tesla-K80", None]
    stored = template(legacy=False, words=False, policy=policy) if is_stored else None
    assert is_kept(answered(sent, stored, noted))
    assert is_kept(answered(sent, stored, {}))


@pytest.mark.large
@pytest.mark.parametrize("way", ["came", "went"])
@pytest.mark.parametrize("key", KEYS)
def test_nor_does_one_that_names_a_single_leaf_of_it_beside_the_words(key: str, way: str) -> None:
    """If the words come to what is stored, then what is stored is the answer, at these fields."""
    sent = template(legacy=True, words=False, policy=True)
    stored = answered(template(legacy=True, words=False, policy=way == "came"), None, {})
    fields = {pointer(at): value for at, value in PodFields(sent).values.items()}
    value, amount = fields.get(key), "/spec/containers/c/resources/limits/"
    noted = {
        pointer(("spec", "nodeSelector", MODEL)): ["Tesla-K80", None],
        amount + LEGACY.replace("/", "~1"): ["1", None],
        amount + GPU.replace("/", "~1"): [None, "1"],
        key: [None, value] if way == "came" else [value, None],
    }
    for each in ({"metadata": {}, "spec": stored}, None):
        assert is_kept(answered(sent, each, noted))


def test_an_amount_beside_a_word_that_came_in_the_same_request_stays() -> None:
    sent = template(legacy=True, words=False, policy=False)
    sent["spec"]["containers"][0]["resources"]["limits"][GPU] = "2"
    at = pointer((*C, "resources", "limits", GPU))
    (container,) = answered(sent, None, {at: [None, "2"]})["containers"]
    assert container["resources"]["limits"] == {GPU: "2"}
