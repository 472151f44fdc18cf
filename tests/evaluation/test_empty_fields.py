"""Empty maps and lists in a manifest, as charts render them: a repair leaves them empty."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.evaluation.test_migrated_fields import TODAY, Migrant
from tests.evaluation.test_template_updates import (
    APPLIED,
    AT,
    K80,
    MODEL,
    PREFERRED,
    REQUIRED,
    Author,
    client_side,
    container,
    deployment,
    in_annotation,
    model,
    pod,
    server_side,
    set_to,
    terms,
    three_way,
    with_mounts,
)
from webhook.core.settings import Placement
from webhook.evaluation.authors import Authors

if TYPE_CHECKING:
    from webhook.core.rule import Context

Raw = dict[str, Any]


def of_custom_kind(tool: Any) -> Any:
    return lambda live, manifest: {**tool(live, manifest), "apiVersion": "example.com/v1"}


TOOLS = {
    "client side": client_side,
    "server side": server_side,
    "three-way merge": three_way,
    "client side, custom kind": of_custom_kind(client_side),
    "server side, custom kind": of_custom_kind(server_side),
}
tools = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
P100 = {MODEL: "Tesla P100"}  # of several spellings: it becomes affinity
EMPTY: dict[str, Raw] = {
    "affinity": {"affinity": {}},
    "affinity to nodes": {"affinity": {"nodeAffinity": {}}},
    "affinity to nodes, and to pods": {"affinity": {"nodeAffinity": {}, "podAffinity": {}}},
}
empties = pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)
THEN: dict[str, Raw] = {
    "another model": pod(nodeSelector={MODEL: "Tesla K80"}),
    "no model": pod(),
    "a current amount": pod(TODAY),
    "no GPU": pod({"name": "c", "image": "i"}),
}


# Which words Helm takes out its requests do not show.
CASES = [
    pytest.param(tool, then, id=f"{name}, {to}")
    for name, tool in TOOLS.items()
    for to, then in THEN.items()
    if tool is not three_way or to == "another model"
]


@pytest.mark.large
@pytest.mark.parametrize(("tool", "then"), CASES)
@empties
@pytest.mark.parametrize("first", ["nodeSelector", "annotation"])
def test_what_a_repair_emptied_stays_empty(first: str, then: Raw, empty: Raw, tool: Any) -> None:
    before = pod(nodeSelector=P100)
    if first == "annotation":
        before = pod(annotations=in_annotation(model("Tesla P100")))
    manifests = copy.deepcopy([before, then])
    for each in manifests:
        each["spec"] |= copy.deepcopy(empty)
    author, alone = Migrant(tool), Migrant(tool)
    assert REQUIRED in str(author.applies(manifests[0]))
    made = author.applies(manifests[1])
    assert made["spec"]["affinity"] == empty["affinity"]
    wanted = alone.applies(manifests[1])["spec"]
    assert made["spec"].get("nodeSelector") == wanted.get("nodeSelector")
    assert made["spec"]["containers"] == wanted["containers"]
    for _ in range(2):
        assert author.applies(manifests[1]) == made


@tools
def test_what_no_manifest_has_empty_goes(tool: Any) -> None:
    author = Migrant(tool)
    author.applies(pod(nodeSelector=P100))
    made = author.applies(pod(nodeSelector={MODEL: "Tesla K80"}))
    assert "affinity" not in made["spec"]


@tools
def test_what_another_writer_added_to_it_stays(tool: Any) -> None:
    """For example, another webhook spreads the pods."""
    spread = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {}}]}}
    author = Migrant(tool)
    author.applies(pod(nodeSelector=P100, affinity={}))
    assert author.live is not None
    author.live["spec"]["template"]["spec"]["affinity"] |= spread
    made = author.applies(pod(nodeSelector={MODEL: "Tesla K80"}, affinity={}))
    assert made["spec"]["affinity"] == spread


@pytest.mark.parametrize(
    ("cx", "empty"),
    [
        (set_to(placement=Placement(enabled=True)), {"nodeSelector": {}}),
        (set_to(drivers=with_mounts()), {"volumes": []}),
    ],
    ids=["the label of placement", "driver volumes"],
)
def test_so_does_what_the_settings_filled(cx: Context, empty: Raw) -> None:
    """Only objects of custom kinds are stored with such a field."""
    author = Migrant(of_custom_kind(client_side), cx)
    manifest = pod(container(), **copy.deepcopy(empty))
    (name, value) = next(iter(empty.items()))
    assert author.applies(manifest)["spec"][name] != value
    author.cx = K80
    made = author.applies(manifest)
    assert made["spec"][name] == value
    assert author.applies(manifest) == made


def test_a_list_of_a_container_stays_empty_too() -> None:
    author = Author(of_custom_kind(client_side), set_to(drivers=with_mounts()))
    manifest = pod(container(volumeMounts=[], env=[]))
    author.applies(manifest)
    author.cx = K80
    made = author.applies(manifest)["spec"]["containers"][0]
    assert made["volumeMounts"] == made["env"] == []


@pytest.mark.parametrize("applied", ["{", "[]", '{"spec": {"template": 3}}'])
def test_an_unreadable_manifest_has_no_empty_map(applied: str) -> None:
    obj = deployment(pod(affinity=terms()), annotations={APPLIED: applied})
    assert not Authors(obj).leaves_empty(AT, ("spec", "affinity"))
    said = json.dumps(deployment(pod(affinity={})))
    obj["metadata"]["annotations"][APPLIED] = said
    assert Authors(obj).leaves_empty(AT, ("spec", "affinity"))
