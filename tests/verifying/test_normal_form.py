"""What is equal in two objects, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.verifying.proofs import compared
from webhook.core.draft import copied
from webhook.core.settings import Settings
from webhook.formats.normal_form import normal_form
from webhook.kube.pod import PREFERRED
from webhook.verifying.comparison import Result

if TYPE_CHECKING:
    Raw = dict[str, Any]

GPU, LEGACY = "nvidia.com/gpu", "alpha.kubernetes.io/nvidia-gpu"
TODAY, OLD_MODEL = "nvidia.com/gpu.product", "alpha.kubernetes.io/nvidia-gpu-name"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(container: Raw | None = None, **spec: Any) -> Raw:
    whole = {"name": "c", "image": "i", **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [whole], **spec},
    }


def asking(limits: Raw | None = None, requests: Raw | None = None) -> Raw:
    sections = {"limits": limits, "requests": requests}
    return pod({"resources": {name: value for name, value in sections.items() if value}})


def noted(**metadata: Any) -> Raw:
    made = pod()
    made["metadata"].update(metadata)
    return made


def deployment(**spec: Any) -> Raw:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]},
            **spec,
        },
    }


def requiring(*terms: list[Raw]) -> Raw:
    listed = [{"matchExpressions": each} for each in terms]
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": listed}}})


def model(label: str, operator: str, *values: str) -> Raw:
    return {"key": label, "operator": operator, "values": [*values]}


def policy(**spec: Any) -> Raw:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "n"},
        "spec": {"podSelector": {}, **spec},
    }


def custom(spec: Raw) -> Raw:
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def definition(**version: Any) -> Raw:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": {"versions": [{"name": "v1", **version}]},
    }


def preferring(*terms: Raw) -> Raw:
    return pod(affinity={"nodeAffinity": {PREFERRED: [*terms]}})


def weighted(key: str) -> Raw:
    expression = {"key": key, "operator": "Exists"}
    return {"weight": 50, "preference": {"matchExpressions": [expression]}}


TERM_A, TERM_B = weighted("a"), weighted("b")
GPU_TAINT = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
TEAM = {"key": "team", "value": "vision"}
FOR_A_WHILE = {"key": GPU, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}

ALL = {"operator": "Exists"}
MOUNT, PORT = {"name": "a", "mountPath": "/a"}, {"containerPort": 80}
# Beside a toleration of everything.
REFUSED_TOLERATIONS: dict[str, Any] = {
    "a value of Exists": {"key": "a", "operator": "Exists", "value": "b"},
    "a value without a key": {"value": "b"},
    "a toleration without fields": {},
    "a toleration of null": None,
    "a toleration that is a text": "nvidia.com/gpu",
    "an unknown operator": {"key": "a", "operator": "In", "value": "b"},
    "an unknown effect": {"key": "a", "effect": "NoRun"},
    "a key with a blank": {"key": "a b"},
    "a value with a blank": {"key": "a", "value": "b c"},
    "a value that is no text": {"key": "a", "value": True},
    "a key that is no text": {"key": 1},
    "an unknown field": {"key": "a", "operater": "Equal"},
}

EQUAL = {
    "a requirement twice": (
        requiring([model("a", "Exists"), model("a", "Exists")]),
        requiring([model("a", "Exists")]),
    ),
    "a value of In twice": (
        requiring([model("a", "In", "1", "1")]),
        requiring([model("a", "In", "1")]),
    ),
    "a legacy label that must not exist as well": (
        requiring([model(TODAY, "DoesNotExist"), model(OLD_MODEL, "DoesNotExist")]),
        requiring([model(TODAY, "DoesNotExist")]),
    ),
    "an empty operator and effect beside a toleration of everything": (
        pod(tolerations=[ALL, {**TEAM, "operator": "", "effect": None}]),
        pod(tolerations=[ALL]),
    ),
    "a number and its text": (asking({GPU: 2}), asking({GPU: "2"})),
    "one core is 1000m": (asking({"cpu": "1"}), asking({"cpu": "1000m"})),
    "1Gi is 1024Mi": (asking({"memory": "1Gi"}), asking({"memory": "1024Mi"})),
    "0.0005 is 500u": (asking({"cpu": 0.0005}), asking({"cpu": "500u"})),
    "a request is copied from its limit": (asking({GPU: 1}), asking({GPU: 1}, {GPU: 1})),
    "0 GPUs are none": (asking({GPU: 0}), pod()),
    "0 under the legacy name, too": (asking({LEGACY: "0"}), pod({"resources": {}})),
    "null is absent": (pod(affinity=None), pod()),
    "an empty map is absent": (pod(nodeSelector={}, securityContext={}), pod()),
    "an empty list is absent": (pod(tolerations=[], volumes=[]), pod()),
    "a label of null is an empty text": (noted(labels={"a": None}), noted(labels={"a": ""})),
    "tolerations in any order": (
        pod(tolerations=[GPU_TAINT, TEAM]),
        pod(tolerations=[TEAM, GPU_TAINT]),
    ),
    "a toleration of a key that another of all keys covers": (
        pod(tolerations=[{"operator": "Exists"}, GPU_TAINT]),
        pod(tolerations=[{"operator": "Exists"}]),
    ),
    "a toleration of an effect that another of all effects covers": (
        pod(tolerations=[{"key": GPU, "operator": "Exists"}, GPU_TAINT]),
        pod(tolerations=[{"key": GPU, "operator": "Exists"}]),
    ),
    "a toleration of a value that another of all values covers": (
        pod(tolerations=[{"key": "team", "operator": "Exists"}, TEAM]),
        pod(tolerations=[{"key": "team", "operator": "Exists"}]),
    ),
    "a toleration twice": (pod(tolerations=[TEAM, TEAM]), pod(tolerations=[TEAM])),
    "Equal is the default": (
        pod(tolerations=[{**TEAM, "operator": "Equal", "effect": ""}]),
        pod(tolerations=[TEAM]),
    ),
    "volumes and mounts in any order": (
        pod(
            {"volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b"}]},
            volumes=[{"name": "a"}, {"name": "b"}],
        ),
        pod(
            {"volumeMounts": [{"name": "b", "mountPath": "/b"}, {"name": "a", "mountPath": "/a"}]},
            volumes=[{"name": "b"}, {"name": "a"}],
        ),
    ),
    "a volume without a source is an emptyDir": (
        pod(volumes=[{"name": "a", "emptyDir": {}}]),
        pod(volumes=[{"name": "a"}]),
    ),
    "an empty type of a hostPath": (
        pod(volumes=[{"name": "a", "hostPath": {"path": "/a", "type": ""}}]),
        pod(volumes=[{"name": "a", "hostPath": {"path": "/a"}}]),
    ),
    "an empty value of a variable": (
        pod({"env": [{"name": "A", "value": ""}]}),
        pod({"env": [{"name": "A"}]}),
    ),
    "terms, requirements and values in any order": (
        requiring([model("a", "In", "1", "2"), model("b", "Exists")], [model("c", "Exists")]),
        requiring([model("c", "Exists")], [model("b", "Exists"), model("a", "In", "2", "1")]),
    ),
    "a model that the legacy label excludes as well": (
        requiring([model(TODAY, "NotIn", "Tesla-K80"), model(OLD_MODEL, "NotIn", "Tesla-K80")]),
        requiring([model(TODAY, "NotIn", "Tesla-K80")]),
    ),
    "the note of the webhook": (
        noted(annotations={"gpu-webhook.dev/repaired": "GPU101"}),
        noted(),
    ),
    "the note as a label": (noted(labels={"gpu-webhook.dev/repaired": "GPU101"}), noted()),
    "what the API server writes into metadata": (
        noted(uid="1", resourceVersion="2", creationTimestamp=None, generation=3),
        noted(),
    ),
    "an amount of null is 0": (asking({"cpu": None}), asking({"cpu": 0})),
    "a volume of null sources": (
        pod(volumes=[{"name": "a", "hostPath": None}]),
        pod(volumes=[{"name": "a", "emptyDir": {}}]),
    ),
    "a status": ({**pod(), "status": {"phase": "Running"}}, pod()),
    "the defaults of a Deployment": (
        deployment(
            replicas=1,
            revisionHistoryLimit=10,
            strategy={"rollingUpdate": {"maxSurge": "25%"}},
        ),
        deployment(),
    ),
    "an empty list of a policy": (policy(ingress=[]), policy()),
    "null in a custom kind": (custom({"a": None}), custom({})),
}

DIFFERENT = {
    "another amount": (asking({GPU: 1}), asking({GPU: 2})),
    "no amount": (asking({GPU: 1}), pod()),
    "0 of another resource": (asking({"cpu": 0}), pod()),
    "the legacy name": (asking({LEGACY: 1}), asking({GPU: 1})),
    "a request below its limit": (asking({"cpu": 2}), asking({"cpu": 2}, {"cpu": 1})),
    "an amount that is none": (asking({GPU: "two"}), asking({GPU: 2})),
    "a dropped toleration": (pod(tolerations=[GPU_TAINT, TEAM]), pod(tolerations=[TEAM])),
    "a toleration that another covers for other effects only": (
        pod(tolerations=[GPU_TAINT, {**GPU_TAINT, "effect": "NoExecute"}]),
        pod(tolerations=[GPU_TAINT]),
    ),
    "a toleration that another covers for a while": (
        pod(tolerations=[FOR_A_WHILE, {"key": GPU, "operator": "Exists"}]),
        pod(tolerations=[{"key": GPU, "operator": "Exists"}]),
    ),
    "a toleration that covers another for a while": (
        pod(tolerations=[FOR_A_WHILE, {"key": GPU, "value": "b", "effect": "NoExecute"}]),
        pod(tolerations=[FOR_A_WHILE]),
    ),
    "a toleration that covers another value": (
        pod(tolerations=[{**TEAM, "value": "audio"}, TEAM]),
        pod(tolerations=[TEAM]),
    ),
    "another effect": (
        pod(tolerations=[GPU_TAINT]),
        pod(tolerations=[{**GPU_TAINT, "effect": "NoExecute"}]),
    ),
    "a lost term": (
        requiring([model("a", "Exists")], [model("b", "Exists")]),
        requiring([model("a", "Exists")]),
    ),
    "two terms that became one": (
        requiring([model("a", "Exists")], [model("b", "Exists")]),
        requiring([model("a", "Exists"), model("b", "Exists")]),
    ),
    "an empty term": (requiring([model("a", "Exists")], []), requiring([model("a", "Exists")])),
    "a model that only the legacy label excludes": (
        requiring([model(OLD_MODEL, "NotIn", "Tesla-K80")]),
        pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}),
    ),
    "another image": (pod({"image": "j"}), pod()),
    "another path of a driver mount": (
        pod(volumes=[{"name": "a", "hostPath": {"path": "/usr/lib/nvidia"}}]),
        pod(volumes=[{"name": "a", "hostPath": {"path": "/usr/lib/nvidia-375"}}]),
    ),
    "containers in another order": (
        pod(initContainers=[{"name": "a"}, {"name": "b"}]),
        pod(initContainers=[{"name": "b"}, {"name": "a"}]),
    ),
    "variables in another order, which may use one another": (
        pod({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]}),
        pod({"env": [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}]}),
    ),
    "another annotation": (noted(annotations={"a": "b"}), noted()),
    "a label": (noted(labels={"a": "b"}), noted(labels={"a": "c"})),
    "another strategy": (deployment(strategy={"type": "Recreate"}), deployment()),
    "other numbers than the defaults": (deployment(revisionHistoryLimit=2), deployment()),
    "an empty selector of namespaces selects them all": (
        policy(ingress=[{"from": [{"namespaceSelector": {}, "podSelector": {}}]}]),
        policy(ingress=[{"from": [{"podSelector": {}}]}]),
    ),
    "a rule of a policy that allows all": (policy(ingress=[{}]), policy(ingress=[])),
    "an empty map of a custom kind": (custom({"a": {}}), custom({})),
    "a request of null, which is 0": (
        asking({"cpu": 2}),
        asking({"cpu": 2}, {"cpu": None}),
    ),
    "a preferred term twice, whose weights add up": (
        preferring(TERM_A, TERM_A, TERM_B),
        preferring(TERM_A, TERM_B),
    ),
    **{
        f"{name}, which the API server refuses": (
            pod(tolerations=[ALL, bad]),
            pod(tolerations=[ALL]),
        )
        for name, bad in REFUSED_TOLERATIONS.items()
    },
    "a volume twice, which is refused": (
        pod(volumes=[{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]),
        pod(volumes=[{"name": "a", "emptyDir": {}}]),
    ),
    "a mount twice, which is refused": (
        pod({"volumeMounts": [MOUNT, MOUNT]}),
        pod({"volumeMounts": [MOUNT]}),
    ),
    "a variable twice": (pod({"env": [{"name": "A"}] * 2}), pod({"env": [{"name": "A"}]})),
    "a port twice": (pod({"ports": [PORT, PORT]}), pod({"ports": [PORT]})),
    "a toleration with a text for its seconds": (
        pod(tolerations=[{**TEAM, "tolerationSeconds": ""}]),
        pod(tolerations=[TEAM]),
    ),
    "a value of Gt twice": (
        requiring([model("a", "Gt", "1", "1")]),
        requiring([model("a", "Gt", "1")]),
    ),
    "a model that the legacy label excludes without a value": (
        requiring([model(TODAY, "NotIn", "Tesla-K80"), model(OLD_MODEL, "NotIn")]),
        requiring([model(TODAY, "NotIn", "Tesla-K80")]),
    ),
    "a legacy label that must not exist, with a value": (
        requiring([model(TODAY, "DoesNotExist"), model(OLD_MODEL, "DoesNotExist", "x")]),
        requiring([model(TODAY, "DoesNotExist")]),
    ),
    "a text for resources": (pod({"resources": "x"}), pod()),
    "a list for resources": (pod({"resources": []}), pod()),
    "a text for limits": (pod({"resources": {"limits": "x"}}), pod()),
    "a list for a map": (pod(nodeSelector=[]), pod()),
    "a text for a strategy": (deployment(strategy="Recreate"), deployment()),
    "a text for numbers of a strategy": (
        deployment(strategy={"rollingUpdate": "x"}),
        deployment(),
    ),
    "a text for a spec": ({**deployment(), "spec": "x"}, {**deployment(), "spec": {}}),
    "another source of a volume": (
        pod(volumes=[{"name": "a", "emptyDir": {}}]),
        pod(volumes=[{"name": "a", "projected": {}}]),
    ),
    "a source of all variables": (pod({"envFrom": [{"configMapRef": {}}]}), pod({"envFrom": [{}]})),
    "the status of a custom kind": (definition(subresources={"status": {}}), definition()),
    "an empty default in a schema": (definition(schema={"default": {}}), definition(schema={})),
    "an empty list in a schema": (definition(schema={"default": []}), definition(schema={})),
    "a field of a schema that has the name of an empty map": (
        definition(schema={"properties": {"labels": {}}}),
        definition(schema={"properties": {}}),
    ),
}


@pytest.mark.parametrize(("one", "other"), EQUAL.values(), ids=EQUAL)
def test_equal(one: Raw, other: Raw) -> None:
    before = copied(one), copied(other)
    assert normal_form(one, Settings()) == normal_form(other, Settings())
    assert (one, other) == before


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_different(one: Raw, other: Raw) -> None:
    assert normal_form(one, Settings()) != normal_form(other, Settings())


@pytest.mark.parametrize("made", [each for pair in EQUAL.values() for each in pair])
def test_it_is_its_own_normal_form(made: Raw) -> None:
    once = normal_form(made, Settings())
    assert normal_form(once, Settings()) == once


def test_the_pods_of_a_custom_kind_have_the_normal_form_of_pods() -> None:
    def job(limits: Raw) -> Raw:
        template = {"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}
        worker = {"template": template}
        made = custom({"pytorchReplicaSpecs": {"Worker": worker}, "runPolicy": {}})
        return {**made, "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}

    one, other = (normal_form(job({GPU: each}), Settings()) for each in (1, "1"))
    assert one == other
    assert one["spec"]["runPolicy"] == {}


def test_the_sentence_names_places_and_rules() -> None:
    old, new = asking({LEGACY: 2}), asking({GPU: 1})
    (found,) = compared([old], [new])
    assert found.result is Result.DIFFERENT
    assert found.why == (
        "spec.containers.resources.limits.nvidia.com/gpu (changed by GPU101), "
        "spec.tolerations (changed by GPU201)"
    )
    assert "-        nvidia.com/gpu: '2'\n" in found.diff
    assert "+        nvidia.com/gpu: '1'\n" in found.diff


def test_what_no_rule_changed() -> None:
    new = pod({"image": "j", "resources": {"limits": {GPU: 1}}}, tolerations=[GPU_TAINT])
    (found,) = compared([asking({LEGACY: 1})], [new])
    assert found.why == "spec.containers.image (changed by no rule)"


ADDED = "the webhook adds this only to pods that request GPUs"
OTHERS_TAINT = {"key": "a", "operator": "Exists"}
OF_ONE_VALUE = {"key": GPU, "operator": "Equal", "value": "x", "effect": "NoSchedule"}
IN_ADDITION: dict[str, tuple[list[Raw], list[Raw], bool]] = {
    "a toleration": ([], [GPU_TAINT], True),
    "beside another one": ([OTHERS_TAINT], [OTHERS_TAINT, GPU_TAINT], True),
    "one that covers the other one": ([OF_ONE_VALUE], [OF_ONE_VALUE, GPU_TAINT], True),
    "a toleration that is missing": ([GPU_TAINT], [], False),
    "one that is covered no longer": ([GPU_TAINT], [OF_ONE_VALUE], False),
    "another one that is missing": ([OTHERS_TAINT], [GPU_TAINT], False),
    "a toleration of other nodes": ([], [OTHERS_TAINT], False),
}


def tasks(*pods: Raw) -> Raw:
    """A custom object with a list of pod templates."""
    head = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}}
    return {**head, "spec": {"tasks": [{"template": {"spec": each["spec"]}} for each in pods]}}


@pytest.mark.parametrize(("was", "now", "is_so"), IN_ADDITION.values(), ids=IN_ADDITION)
@pytest.mark.parametrize("kind", ["a pod", "a list of templates"])
def test_a_toleration_of_a_pod_without_gpus(
    kind: str, was: list[Raw], now: list[Raw], is_so: object
) -> None:
    old, new = (pod({}, tolerations=each) for each in (was, now))
    if kind != "a pod":
        old, new = tasks(old, pod({})), tasks(new, pod({}))
    (found,) = compared([old], [new])
    assert found.result is Result.DIFFERENT
    assert (ADDED in found.why) == is_so


def test_templates_that_are_missing_have_no_tolerations() -> None:
    (found,) = compared([tasks(pod({}), pod({}))], [tasks(pod({}, tolerations=[GPU_TAINT]))])
    assert found.result is Result.DIFFERENT
    assert ADDED not in found.why


DATA = "has a legacy name, and what other programs make of it is not known"


def config(text: str, **more: str) -> Raw:
    data = {"pod.txt": text, **more}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}


def spark(name: str, cores: int = 1) -> Raw:
    kind = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication"}
    spec = {"driver": {"gpu": {"name": name}, "cores": cores}}
    return {**kind, "metadata": {"name": "s"}, "spec": spec}


# Programs make pods of it later: the webhook sees these, and not the text.
MADE_LATER = {
    "a text that stays": (config(LEGACY), config(LEGACY), Result.NOT_PROVABLE),
    "a text that changes": (config(LEGACY), config(GPU), Result.NOT_PROVABLE),
    "a text and another one": (config(LEGACY), config(GPU, a="b"), Result.DIFFERENT),
    "a current text": (config(GPU), config(GPU), Result.EQUAL),
    "a name in a custom kind that stays": (spark(LEGACY), spark(LEGACY), Result.NOT_PROVABLE),
    "a name in a custom kind that changes": (spark(LEGACY), spark(GPU), Result.NOT_PROVABLE),
    "a name and a number": (spark(LEGACY), spark(GPU, 2), Result.DIFFERENT),
    "a variable of a pod": (
        pod({"env": [{"name": "A", "value": LEGACY}]}),
        pod({"env": [{"name": "A", "value": LEGACY}]}),
        Result.NOT_PROVABLE,
    ),
}


@pytest.mark.parametrize(("old", "new", "result"), MADE_LATER.values(), ids=MADE_LATER)
def test_pods_that_other_programs_make(old: Raw, new: Raw, result: Result) -> None:
    (found,) = compared([old], [new])
    assert (found.result, DATA in found.why) == (result, result is Result.NOT_PROVABLE)


@pytest.mark.parametrize("other", [True, 1.0])
def test_one_is_neither_true_nor_a_fraction(other: object) -> None:
    (found,) = compared([deployment(replicas=1)], [deployment(replicas=other)])
    assert found.result is Result.DIFFERENT
    assert found.why == "spec.replicas (changed by no rule)"


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_the_difference_of_a_secret_does_not_show_its_values(field: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    old, new = ({**secret, field: {"user": "same", "key": each}} for each in ("dG9w", "b3Ro"))
    (found,) = compared([old], [{**new, "type": "x"}])

    assert found.why == f"{field}.key (changed by no rule), type (changed by no rule)"
    assert [line for line in found.diff.splitlines() if line[0] in "+-"][2:] == [
        "-  key: '*** (OLD)'",
        "+  key: '*** (NEW)'",
        "+type: x",
    ]
    assert not {"same", "dG9w", "b3Ro"} & {*found.diff.split()}
