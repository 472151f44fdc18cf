"""Tolerations that the webhook added: an unchanged manifest keeps them, its author's follow it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.evaluation.test_migrated_fields import OF_GPUS, OWN, TAINTED, TODAY, Migrant
from tests.evaluation.test_template_updates import (
    APPLIED,
    GPU,
    LEGACY,
    MODEL,
    TOLERATIONS,
    as_one_field,
    client_side,
    container,
    deployment,
    nodes,
    of_custom_kind,
    pod,
    server_side,
    set_to,
    with_mounts,
)
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context
from webhook.core.settings import Placement
from webhook.evaluation import repair_record

Raw = dict[str, Any]


def of_merge_patch(live: Raw, manifest: Raw) -> Raw:
    """Give what kubectl sends of a custom kind whose templates are in a list."""
    sent = as_one_field(live, manifest)
    sent["metadata"]["annotations"][APPLIED] = json.dumps(manifest)
    del sent["metadata"]["managedFields"]
    return {**sent, "apiVersion": "example.com/v1"}


TOOLS = {
    "client side": client_side,
    "client side, a list is replaced": of_merge_patch,
    "server side": server_side,
    "server side, a list is replaced": of_custom_kind({}),
}
WHOLE = {name: tool for name, tool in TOOLS.items() if "replaced" in name}
tools = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
kinds = pytest.mark.parametrize("may_change", [True, False], ids=["may change", "is fixed"])

TEAM = {"key": "team", "operator": "Exists"}
MANIFESTS = {
    "a current amount": pod(TODAY),
    "a legacy amount": pod(),
    "both names": pod(container({LEGACY: "1", GPU: "1"})),
    "tolerations of its own": pod(TODAY, tolerations=[OWN]),
    "both with its own": pod(tolerations=[OWN]),
    "a legacy model": pod(nodeSelector={MODEL: "Tesla K80"}),
    "the annotation": pod(annotations={TOLERATIONS: json.dumps([TEAM])}),
}
manifests = pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)
UNTAINTED = nodes("Tesla-K80")
LATER = {
    "the taint went away": UNTAINTED,
    "the rule only warns": replace(TAINTED, modes=Modes(rules={"GPU201": Mode.WARN})),
    "the rule is off": replace(TAINTED, modes=Modes(rules={"GPU201": Mode.OFF})),
    "there is no inventory": Context(),
}


@pytest.mark.large
@pytest.mark.parametrize("now", LATER.values(), ids=LATER)
@manifests
@tools
@kinds
def test_the_same_manifest_keeps_them(
    now: Context, manifest: Raw, tool: Any, *, may_change: bool
) -> None:
    author = Migrant(tool, TAINTED, may_change=may_change)
    made = author.applies(manifest)
    assert OF_GPUS in made["spec"]["tolerations"]
    noted = author.noted
    for cx in (TAINTED, now, now, TAINTED, now):
        author.cx = cx
        assert author.applies(manifest) == made
        assert author.is_asked_again() == made
        assert author.is_labelled() == made
        assert author.noted == noted


@pytest.mark.large
@manifests
@tools
@kinds
def test_so_does_the_manifest_in_words_of_today(
    manifest: Raw, tool: Any, *, may_change: bool
) -> None:
    author = Migrant(tool, TAINTED, may_change=may_change)
    first = author.applies(manifest)
    modern = copy.deepcopy(manifest)
    modern["spec"]["containers"] = [TODAY]
    if "annotations" in modern["metadata"] or "nodeSelector" in modern["spec"]:
        modern = pod(TODAY, **{k: v for k, v in first["spec"].items() if k == "nodeSelector"})
        if "annotations" in manifest["metadata"]:
            modern["spec"]["tolerations"] = [TEAM]
    made = author.applies(modern)
    assert OF_GPUS in made["spec"]["tolerations"]
    author.cx = UNTAINTED
    for _ in range(2):
        assert author.applies(modern) == made
        assert not author.has_words()


@tools
@kinds
@pytest.mark.parametrize("own", [[], [OWN]], ids=["alone", "beside another"])
@pytest.mark.parametrize("first", [TAINTED, UNTAINTED], ids=["tainted", "untainted"])
def test_one_that_its_author_wrote_goes_with_its_author(
    first: Context, own: list[Raw], tool: Any, *, may_change: bool
) -> None:
    with_it = pod(TODAY, tolerations=[*own, OF_GPUS])
    without = pod(TODAY)
    without["spec"] |= {"tolerations": own} if own else {}
    author = Migrant(tool, first, may_change=may_change)
    author.applies(with_it)
    author.applies(with_it)
    author.cx = UNTAINTED
    for _ in range(2):
        assert author.applies(without)["spec"].get("tolerations", []) == own


@tools
@pytest.mark.parametrize("first", [TODAY, container()], ids=["current", "legacy"])
def test_one_that_its_author_took_over_does_so(first: Raw, tool: Any) -> None:
    author = Migrant(tool, TAINTED)
    author.applies(pod(first))
    author.applies(pod(first, tolerations=[OF_GPUS]))
    author.applies(pod(first, tolerations=[OF_GPUS]))
    author.cx = UNTAINTED
    made = author.applies(pod(TODAY))
    assert "tolerations" not in made["spec"]


@pytest.mark.parametrize("tool", WHOLE.values(), ids=WHOLE)
@manifests
def test_they_stay_beside_others_that_its_author_writes(manifest: Raw, tool: Any) -> None:
    author = Migrant(tool, TAINTED)
    author.applies(manifest)
    author.cx = UNTAINTED
    more = copy.deepcopy(manifest)
    more["spec"]["tolerations"] = [{"key": "new", "operator": "Exists"}]
    for _ in range(2):
        made = author.applies(more)["spec"]["tolerations"]
        assert OF_GPUS in made
        assert more["spec"]["tolerations"][0] in made
        assert OWN not in made


@pytest.mark.parametrize("tool", WHOLE.values(), ids=WHOLE)
def test_they_go_with_the_last_gpu_of_a_list_that_is_replaced(tool: Any) -> None:
    author = Migrant(tool, TAINTED)
    author.applies(pod(TODAY))
    made = author.applies(pod({"name": "c", "image": "i"}))
    assert "tolerations" not in made["spec"]
    assert author.noted == {}


@tools
def test_a_record_brings_back_none_that_is_not_stored(tool: Any) -> None:
    author = Migrant(tool, UNTAINTED)
    author.applies(pod(TODAY))
    author.noted = {("spec", "tolerations"): (None, [OF_GPUS, OWN])}
    assert "tolerations" not in author.applies(pod(TODAY))["spec"]


@pytest.mark.parametrize("is_custom", [True, False])
def test_one_without_a_word_is_noted_where_lists_are_replaced(*, is_custom: bool) -> None:
    """Elsewhere a merge keeps it, and managedFields show who wrote it."""
    obj = deployment(pod()) | ({"apiVersion": "example.com/v1"} if is_custom else {})
    noted: repair_record.Record = {"/spec/template": {("spec", "tolerations"): (None, [OF_GPUS])}}
    assert bool(repair_record.written(noted, obj)) is is_custom


# What else is added without a word


@pytest.mark.parametrize(
    "cx",
    [
        pytest.param(set_to(drivers=with_mounts()), id="driver volumes"),
        pytest.param(set_to(placement=Placement(enabled=True)), id="the label of placement"),
    ],
)
@pytest.mark.parametrize("later", [UNTAINTED, "warn"], ids=["other settings", "the rules warn"])
@tools
def test_a_template_that_is_fixed_keeps_what_the_settings_added(
    cx: Context, later: Any, tool: Any
) -> None:
    manifest = pod(TODAY)
    author = Migrant(tool, cx, may_change=False)
    made = author.applies(manifest)
    assert made["spec"].keys() & {"volumes", "nodeSelector"}
    author.cx = replace(cx, modes=Modes(Mode.WARN)) if later == "warn" else later
    for _ in range(2):
        assert author.applies(manifest) == made


# Those of an annotation


def with_stale_entries(live: Raw, manifest: Raw) -> Raw:
    """Give what kubectl sends; its entry still names the annotation, which the repair removed."""
    sent = client_side(live, manifest)
    annotations: Raw = {"f:annotations": {f"f:{TOLERATIONS}": {}}}
    entry = {"f:spec": {"f:template": {"f:metadata": annotations}}}
    sent["metadata"]["managedFields"] = [
        {"manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": entry}
    ]
    return sent


ANNOTATED = {TOLERATIONS: json.dumps([TEAM])}


@pytest.mark.large
@pytest.mark.parametrize("amount", [TODAY, container()], ids=["current", "legacy"])
@pytest.mark.parametrize("cluster", [TAINTED, UNTAINTED], ids=["tainted", "untainted"])
@pytest.mark.parametrize("tool", [*TOOLS.values(), with_stale_entries], ids=[*TOOLS, "stale"])
@pytest.mark.parametrize("own", [{}, {"tolerations": [OWN]}], ids=["removed", "replaced"])
def test_one_of_an_annotation_goes_with_it(
    amount: Raw, cluster: Context, own: Raw, tool: Any
) -> None:
    author = Migrant(tool, cluster)
    assert TEAM in author.applies(pod(amount, annotations=ANNOTATED))["spec"]["tolerations"]
    made = author.applies(pod(amount, **own))
    assert TEAM not in made["spec"].get("tolerations", [])
    noted = author.noted
    assert author.applies(pod(amount, **own)) == made
    assert author.noted == noted


@pytest.mark.pairs
@pytest.mark.parametrize("amount", [TODAY, container()], ids=["current", "legacy"])
@pytest.mark.parametrize("now", LATER.values(), ids=LATER)
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("keys", [["team2"], ["team", "team2"]], ids=["another", "one more"])
@tools
def test_one_of_an_annotation_that_changed_goes_with_it(
    keys: list[str], times: int, now: Context, amount: Raw, tool: Any
) -> None:
    others = [{"key": key, "operator": "Exists"} for key in keys]
    author = Migrant(tool, TAINTED)
    author.applies(pod(amount, annotations=ANNOTATED))
    author.cx = now
    author.applies(pod(amount, annotations=ANNOTATED))
    changed = pod(amount, annotations={TOLERATIONS: json.dumps(others)})
    made = author.applies(changed)
    for _ in range(times - 1):
        assert author.applies(changed) == made
    assert {each["key"] for each in made["spec"]["tolerations"]} == {*keys, GPU}
    for _ in range(2):
        assert author.applies(pod(amount))["spec"]["tolerations"] == [OF_GPUS]


@tools
def test_an_annotation_beside_a_current_amount_makes_no_other_word_legacy(tool: Any) -> None:
    """Driver volumes of a pod with a current amount stay, also at the second apply."""
    drivers = {"name": "d", "hostPath": {"path": "/usr/lib/nvidia-375"}}
    mount = {"name": "d", "mountPath": "/usr/lib/nvidia-375"}
    manifest = pod({**TODAY, "volumeMounts": [mount]}, annotations=ANNOTATED, volumes=[drivers])
    author = Migrant(tool, TAINTED)
    author.applies(pod())
    made = author.applies(manifest)
    assert [each["name"] for each in made["spec"]["volumes"]] == ["d"]
    assert author.applies(manifest) == made
