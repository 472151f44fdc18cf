"""The parts of a pod that repairs touch, by name and not by position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.draft import Draft
from webhook.evaluation.pod_fields import PodFields, changes
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from webhook.evaluation.pod_fields import Key

GPU = "nvidia.com/gpu"
LIMIT = ("spec", "containers", "c", "resources", "limits", GPU)
TEMPLATE = Path(("spec", "template"))


def pod(**spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {GPU: 1}}, **spec.pop("container", {})}
    return {"metadata": {}, "spec": {"containers": [container], **spec}}


def given(obj: dict[str, Any], wanted: dict[tuple[str, ...], Any], at: Path = ROOT) -> Any:
    draft = Draft(obj)
    draft.apply(PodFields(obj, at).edits_to(wanted))
    return obj


def test_a_leaf_is_called_by_the_names_of_what_it_is_in() -> None:
    made = pod(
        container={
            "env": [{"name": "A", "value": "1"}, {"name": "PATH", "value": "/x"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "securityContext": {"seccompProfile": {"type": "x"}},
            "image": "i",
        },
        volumes=[{"name": "v", "emptyDir": {}}],
        nodeSelector={"a": "b"},
        affinity={"nodeAffinity": {}},
        tolerations=[{"key": "t"}],
        hostname="h",
        restartPolicy="Never",
        initContainers=None,
    )
    made["metadata"] = {"annotations": {"x/y": "z", "null": None}}
    in_container = ("spec", "containers", "c")
    assert PodFields(made).values == {
        ("metadata", "annotations", "x/y"): "z",
        LIMIT: 1,
        (*in_container, "env", "PATH"): {"name": "PATH", "value": "/x"},
        (*in_container, "volumeMounts", "/v"): {"name": "v", "mountPath": "/v"},
        (*in_container, "securityContext", "seccompProfile", "type"): "x",
        ("spec", "volumes", "v"): {"name": "v", "emptyDir": {}},
        ("spec", "nodeSelector", "a"): "b",
        ("spec", "tolerations"): [{"key": "t"}],
        ("spec", "hostname"): "h",
    }


def test_of_two_items_of_one_name_the_first_counts() -> None:
    made = pod()
    made["spec"]["containers"].append({"name": "c", "resources": {"limits": {GPU: 2}}})
    assert PodFields(made).values == {LIMIT: 1}


def test_what_is_deeper_than_any_map_of_a_pod_is_one_value() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = {"a": deep}
    [(key, _)] = PodFields({"spec": {"affinity": deep}}).values.items()
    assert len(key) == 12


def test_copies_stay_as_they_were() -> None:
    made = pod(tolerations=[{"key": "t"}])
    kept = PodFields(made).kept().values
    made["spec"]["tolerations"][0]["key"] = "other"
    assert kept["spec", "tolerations"] == [{"key": "t"}]


@pytest.mark.parametrize(
    ("made", "wanted", "expected"),
    [
        pytest.param(pod(), {LIMIT: 1}, pod(), id="nothing to do"),
        pytest.param(
            pod(), {LIMIT: 2}, pod(container={"resources": {"limits": {GPU: 2}}}), id="a value"
        ),
        pytest.param(
            pod(nodeSelector={"a": "b"}), {("spec", "nodeSelector", "a"): None}, pod(),
            id="with its last field a map goes",
        ),
        pytest.param(
            pod(affinity={"x": {"y": [1]}}), {("spec", "affinity", "x", "y"): None}, pod(),
            id="and all maps around it",
        ),
        pytest.param(
            pod(affinity={"x": {"y": [1]}, "z": 1}), {("spec", "affinity", "x", "y"): None},
            pod(affinity={"z": 1}), id="but not one that holds something else",
        ),
        pytest.param(
            pod(), {LIMIT: None}, {"metadata": {}, "spec": {"containers": [{"name": "c"}]}},
            id="a container stays",
        ),
        pytest.param(
            pod(volumes=[{"name": "v"}, {"name": "w"}]), {("spec", "volumes", "v"): None},
            pod(volumes=[{"name": "w"}]), id="an item goes",
        ),
        pytest.param(
            pod(), {("spec", "volumes", "v"): {"name": "v"}}, pod(volumes=[{"name": "v"}]),
            id="an item comes",
        ),
        pytest.param(
            pod(), {("spec", "containers", "c", "env", "PATH"): {"name": "PATH"}},
            pod(container={"env": [{"name": "PATH"}]}), id="a container's item comes",
        ),
        pytest.param(
            pod(), {("spec", "affinity", "x", "y"): [1]}, pod(affinity={"x": {"y": [1]}}),
            id="maps are made",
        ),
        pytest.param(
            pod(nodeSelector={"a": "b"}),
            {("spec", "nodeSelector", "a"): None, ("spec", "nodeSelector", "c"): "d"},
            pod(nodeSelector={"c": "d"}), id="one goes, another comes",
        ),
        pytest.param(
            pod(), {("spec", "containers", "other", "resources", "limits", GPU): 1}, pod(),
            id="no container is made",
        ),
        pytest.param(pod(), {("spec", "hostname"): None}, pod(), id="nothing to take away"),
    ],
)  # fmt: skip
def test_leaves_are_given_values(made: Any, wanted: Any, expected: Any) -> None:
    holder = {"spec": {"template": made}}
    assert given(holder, wanted, TEMPLATE) == {"spec": {"template": expected}}


def test_a_list_of_the_same_items_gets_the_order_of_another() -> None:
    mine = pod(volumes=[{"name": "a"}, {"name": "b"}], container={"env": [{"name": "x"}]})
    other = pod(volumes=[{"name": "b"}, {"name": "a"}], container={"env": [{"name": "y"}]})
    draft = Draft(mine)
    draft.apply(PodFields(mine).ordered_as(PodFields(other)))
    assert mine["spec"]["volumes"] == other["spec"]["volumes"]
    assert mine["spec"]["containers"][0]["env"] == [{"name": "x"}]
    assert PodFields(mine).ordered_as(PodFields(pod())) == []


def test_changes_are_what_is_not_what_it_was() -> None:
    before: dict[Key, Any] = {("a",): 1, ("b",): 2, ("c",): 3}
    after: dict[Key, Any] = {("a",): 1, ("b",): 4, ("d",): 5}
    assert changes(before, after) == {("b",): (2, 4), ("c",): (3, None), ("d",): (None, 5)}
