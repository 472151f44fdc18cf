"""Whatever manifests an author applied before, the last one comes to what it comes to alone."""

from __future__ import annotations

import copy
import json
import operator as op
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.evaluation.test_template_updates import (
    APPLIED,
    DRIVER,
    GPU,
    HOSTNAME,
    LEGACY,
    MODEL,
    PRODUCT,
    SCHEDULER,
    TOLERATIONS,
    Author,
    client_side,
    container,
    deployment,
    in_annotation,
    model,
    nodes,
    pod,
    sent_again,
    server_side,
    set_to,
    stored,
    terms,
    with_mounts,
    without,
)
from webhook.capacity.nodes import Inventory
from webhook.core.modes import Mode, Modes
from webhook.core.repaired_annotation import REPAIRED
from webhook.core.settings import Drivers, Models, Placement, Settings, Taint
from webhook.evaluation.pod_fields import PodFields
from webhook.rules import RULES

if TYPE_CHECKING:
    from webhook.core.rule import Context

Raw = dict[str, Any]

CLUSTER = nodes(
    "Tesla-K80",
    "Tesla-T4",
    "Tesla-M40",
    taints=(Taint(GPU, "", "NoSchedule"),),
    old=("Tesla-M40", "Tesla-M60"),  # nodes that still carry the legacy label
)
OWN = {"key": "own", "operator": "Exists"}
TEAM, NIGHT = ({"key": each, "operator": "Exists"} for each in ("team", "night"))

# Ways to say one thing: annotations, members of the spec, members of the container.
LIMITS: list[Raw] = [
    {LEGACY: "1"}, {LEGACY: "2"}, {LEGACY: "500m"}, {GPU: "1"}, {GPU: "2"}, {LEGACY: "2", GPU: "1"}
]  # fmt: skip
PLACES: list[tuple[Raw, Raw]] = [
    ({}, {}),
    ({}, {"nodeSelector": {"disk": "ssd", MODEL: "Tesla K80"}}),
    ({}, {"nodeSelector": {MODEL: "Tesla T4"}}),
    ({}, {"nodeSelector": {MODEL: "Tesla P100"}}),  # of several spellings: it becomes affinity
    ({}, {"nodeSelector": {"disk": "ssd", MODEL: "Tesla P100"}}),
    ({}, {"nodeSelector": {"zone": "a"}}),
    ({}, {"nodeSelector": {PRODUCT: "Tesla-K80"}}),
    (in_annotation(model("Tesla K80")), {}),
    (in_annotation(model("Tesla T4")), {}),
    (in_annotation(model("Tesla K80")), {"affinity": terms(("zone", "In", ["a"]))}),
    (in_annotation(model("Tesla-K80", "Tesla-M60")), {}),
    (in_annotation(terms((MODEL, "NotIn", ["Tesla-M40", "Tesla-T4"]))), {}),
    ({}, {"nodeSelector": {MODEL: "Tesla-M40"}}),
    ({}, {"affinity": model("Tesla K80")}),
    ({}, {"affinity": model("Tesla-M40", "Tesla-K80")}),
    ({}, {"affinity": terms((PRODUCT, "In", ["Tesla-K80"]))}),
]
TOLERATED: list[tuple[Raw, Raw]] = [
    ({}, {}),
    ({TOLERATIONS: json.dumps([TEAM])}, {}),
    ({TOLERATIONS: json.dumps([NIGHT])}, {}),
    ({TOLERATIONS: json.dumps([TEAM])}, {"tolerations": [OWN]}),
    ({}, {"tolerations": [OWN]}),
    ({}, {"tolerations": [TEAM]}),
]
DRIVERS: list[tuple[Raw, Raw]] = [
    ({}, {}),
    (
        {"volumes": [{"name": "d", "hostPath": {"path": DRIVER}}]},
        {
            "volumeMounts": [{"name": "d", "mountPath": DRIVER}],
            "env": [{"name": "LD_LIBRARY_PATH", "value": f"{DRIVER}:/opt"}],
        },
    ),
    ({}, {"env": [{"name": "LD_LIBRARY_PATH", "value": "/opt"}]}),
]
FIELDS: list[Raw] = [
    {}, {HOSTNAME: "train-0"}, {"seccomp.security.alpha.kubernetes.io/pod": "docker/default"}
]  # fmt: skip


# The API server sends the manager of each apply, since it must have one (KEP-555).
_MANAGER = {server_side: "kubectl"}


@st.composite
def manifest_of(draw: st.DrawFn) -> Raw:
    limits, fields = draw(st.sampled_from(LIMITS)), draw(st.sampled_from(FIELDS))
    (placed, place), (annotated, tolerated), (volumes, mounts) = (
        draw(st.sampled_from(each)) for each in (PLACES, TOLERATED, DRIVERS)
    )
    made = pod(
        container(limits, **mounts),
        annotations={**placed, **annotated, **fields},
        **{**place, **tolerated, **volumes},
    )
    return copy.deepcopy(made)


def applied_in_turn(
    tool: Any,
    turn: list[Raw],
    away: frozenset[int] = frozenset(),
    settings: tuple[Context, ...] = (CLUSTER,),
) -> tuple[Raw, Raw]:
    """Give the template after the last manifest, and after it was applied once more.

    While these manifests were applied the webhook was away. The last settings are those of the
    manifests that are left.
    """
    author, before, made = Author(tool, CLUSTER), None, {}
    for position, each in enumerate([*turn, turn[-1]]):
        author.cx = settings[min(position, len(settings) - 1)]
        manifest = deployment(each)
        live = copy.deepcopy(manifest if author.live is None else author.live)
        if before is not None:
            live["spec"] = without(live["spec"], before["spec"], manifest["spec"])
        if position in away:
            author.live = tool(live, manifest)
        else:
            made, last = author.sends(tool(live, manifest), _MANAGER.get(tool, "")), made
        before = manifest
    return last, made


def settled(template: Raw) -> tuple[Any, ...]:
    """Give what says something: the order of tolerations does not."""
    spec = dict(template["spec"])
    tolerations = sorted(json.dumps(each, sort_keys=True) for each in spec.pop("tolerations", []))
    annotations = template["metadata"].get("annotations") or {}
    return spec, tolerations, {k: v for k, v in annotations.items() if k != APPLIED}


@pytest.mark.parametrize("tool", [client_side, server_side])
@given(turn=st.lists(manifest_of(), min_size=2, max_size=4))
def test_the_last_manifest_comes_to_what_it_comes_to_alone(turn: list[Raw], tool: Any) -> None:
    last, again = applied_in_turn(tool, turn)
    alone, _ = applied_in_turn(tool, turn[-1:])
    assert settled(last) == settled(alone)
    assert last == again


# Settings that ask for something of their own, and shapes whose GPUs come and go.
CLASSES = replace(
    CLUSTER, inventory=replace(CLUSTER.inventory or Inventory(), runtime_classes={"nvidia": {}})
)
SETTINGS = {
    "toolkit": set_to(CLASSES),
    "mounts": set_to(CLASSES, drivers=with_mounts()),
    "other mounts": set_to(CLASSES, drivers=with_mounts("/opt/other")),
    "label": set_to(CLASSES, placement=Placement(enabled=True)),
    "both": set_to(CLASSES, drivers=with_mounts(), placement=Placement(True, value="gpus")),
    "class": set_to(CLASSES, drivers=Drivers(runtime_class="nvidia")),
}
SCHEDULED: list[tuple[Raw, Raw]] = [
    ({}, {}), ({SCHEDULER: "volcano"}, {}), ({SCHEDULER: "kai"}, {}), ({}, {"schedulerName": "kai"})
]  # fmt: skip


@st.composite
def shapes(draw: st.DrawFn) -> Raw:
    limits = st.sampled_from([*LIMITS, {"memory": "1Gi"}])
    (placed, place), (annotated, scheduled), (volumes, mounts) = (
        draw(st.sampled_from(each)) for each in (PLACES, SCHEDULED, DRIVERS)
    )
    containers = [container(draw(limits), **mounts), container(draw(limits), name="side")]
    annotations = {**placed, **annotated}
    asked = {**place, **scheduled, **volumes}
    made = pod(*containers[: draw(st.integers(1, 2))], annotations=annotations, **asked)
    return copy.deepcopy(made)


@pytest.mark.parametrize("tool", [client_side, server_side])
@given(
    turn=st.lists(st.tuples(shapes(), st.sampled_from(sorted(SETTINGS))), min_size=2, max_size=4),
)
def test_so_it_does_whatever_the_settings_ask_for(turn: list[tuple[Raw, str]], tool: Any) -> None:
    """But for tolerations, which stay where a GPU goes.

    And for a label of one's own that the settings name no more: it might be a policy's.

    Whether a runtime class is known the inventory says, so it alone brings none in.
    """
    assume(turn[-1][1] != "class" or all(each == "class" for _, each in turn))
    manifests = [each for each, _ in turn]
    settings = tuple(SETTINGS[each] for _, each in turn)
    last, again = applied_in_turn(tool, manifests, settings=settings)
    alone, _ = applied_in_turn(tool, manifests[-1:], settings=settings[-1:])
    spec, _, annotations = settled(last)
    wanted, _, notes = settled(alone)
    assert (spec, annotations) == (wanted, notes)
    assert last == again


def words(manifest: Raw) -> set[str]:
    """The legacy words in a manifest; the same one in two places is two."""
    fields = PodFields(manifest).values
    return {
        str(key)
        for key, value in fields.items()
        if key[0] == "metadata" or "alpha.kubernetes.io" in f"{key} {value}"
    }


@pytest.mark.parametrize("tool", [client_side, server_side])
@given(turn=st.lists(manifest_of(), min_size=3, max_size=4), data=st.data())
def test_so_it_does_where_we_were_away_meanwhile(
    turn: list[Raw], data: st.DataObject, tool: Any
) -> None:
    """But for words that were taken out meanwhile: nobody knows then that they were there.

    And for a label that nodes carry in a template without a record: see the next test.
    """
    away = data.draw(st.frozensets(st.integers(1, len(turn) - 2), min_size=1))
    assume(all(words(turn[n - 1]) <= words(turn[n]) for n in away))
    recorded = (any(map(words, turn[:n])) for n in away)
    assume(all(map(op.or_, recorded, ("Tesla-M40" not in str(turn[n]["spec"]) for n in away))))
    last, again = applied_in_turn(tool, turn, away)
    alone, _ = applied_in_turn(tool, turn[-1:])
    assert settled(last) == settled(alone)
    assert last == again


@pytest.mark.parametrize("tool", [client_side, server_side])
def test_without_a_record_a_label_that_nodes_carry_stays_as_it_is_stored(tool: Any) -> None:
    """An earlier repair may have left it. Pods run with it, so none are replaced for it."""
    on_old_nodes = {"nodeSelector": {MODEL: "Tesla-M40"}}
    turn = [
        pod(container({GPU: "1"}), annotations={}),
        pod(container({GPU: "1"}), annotations={}, **on_old_nodes),  # while it is away
        pod(container({LEGACY: "1"}), annotations={}, **on_old_nodes),
    ]
    last, again = applied_in_turn(tool, turn, frozenset({1}))
    assert last == again
    assert last["spec"]["nodeSelector"] == on_old_nodes["nodeSelector"]
    assert last["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1"}
    assert "affinity" not in last["spec"]


# What may be another one between two updates of an object whose template cannot change.
WORLDS: list[Context] = [
    *SETTINGS.values(),
    nodes(),
    nodes("Tesla-T4", "Tesla-P100-PCIE-16GB", taints=(Taint("own", "x", "NoExecute"),)),
    replace(CLUSTER, inventory=None),
    *(
        replace(CLUSTER, settings=replace(Settings(), **changed))
        for changed in (
            {"models": Models(profile="aks")},
            {"models": Models(profile="gke")},
            {"models": Models(shared=True)},
            {"models": Models(values=(("Tesla-K80", ("NVIDIA-K80",)),))},
            {"models": Models(legacy_label="example.com/x")},
            {"gpu_resource": "nvidia.com/gpu.shared"},
            {"legacy_resources": ("example.com/gpu",)},
        )
    ),
]


@st.composite
def worlds(draw: st.DrawFn) -> Context:
    codes = sorted(rule.CODE for rule in RULES)
    modes = draw(st.dictionaries(st.sampled_from(codes), st.sampled_from(Mode), max_size=4))
    default = draw(st.sampled_from([None, *Mode]))
    return replace(draw(st.sampled_from(WORLDS)), modes=Modes(default, modes))


@pytest.mark.parametrize("tool", [client_side, server_side])
@given(manifest=manifest_of(), then=worlds(), now=worlds(), is_noted=st.booleans())
def test_a_fixed_template_is_stored_as_it_is_where_only_metadata_change(
    manifest: Raw, then: Context, now: Context, tool: Any, *, is_noted: bool
) -> None:
    author = Author(tool, then, may_change=False)
    first = author.applies(manifest)
    if not is_noted:
        author.forgets()
    author.cx = now
    update = copy.deepcopy(author.live or {})
    update["metadata"] |= {"labels": {"a": "b"}, "finalizers": ["example.com/f"]}
    assert author.sends(update) == first


@pytest.mark.parametrize("tool", [client_side, server_side])
@given(manifest=manifest_of(), then=worlds(), now=worlds(), is_noted=st.booleans())
def test_so_it_is_where_the_same_words_come_back(
    manifest: Raw, then: Context, now: Context, tool: Any, *, is_noted: bool
) -> None:
    """The record tells which these are; or the manifest, which kubectl keeps."""
    author = Author(tool, then, may_change=False)
    first = author.applies(manifest)
    if not is_noted and tool is client_side:
        author.forgets()
    author.cx = now
    assert settled(author.applies(manifest)) == settled(first)


@pytest.mark.parametrize("tool", [client_side, server_side])
@given(manifest=manifest_of(), then=worlds(), now=worlds())
def test_a_part_that_nobody_changes_stays_where_another_may_change(
    manifest: Raw, then: Context, now: Context, tool: Any
) -> None:
    """Kueue chooses nodes for a Job that is suspended; the amounts in it cannot change."""
    author = Author(tool, then, may_change=False)
    first = author.applies(manifest)
    author.cx = now
    made = author.patches({"nodeSelector": {"pool": "a"}})
    assert made["spec"]["containers"] == first["spec"]["containers"]
    assert made["spec"].get("tolerations") == first["spec"].get("tolerations")
    assert made["spec"]["nodeSelector"]["pool"] == "a"


@given(manifest=manifest_of(), now=worlds())
def test_a_bare_pod_that_kubectl_applies_again_is_as_it_is_stored(
    manifest: Raw, now: Context
) -> None:
    live = stored(manifest, CLUSTER)
    live["metadata"]["annotations"][REPAIRED] = "GPU101"
    assert sent_again(manifest, live, now)["spec"] == live["spec"]
