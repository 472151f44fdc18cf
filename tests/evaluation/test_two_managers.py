"""One workload whose amount and whose model are applied on the server by two managers."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.evaluation.test_migrated_fields import IN_TERMS, OF_GPUS
from tests.evaluation.test_template_updates import (
    DRIVER,
    GPU,
    HOSTNAME,
    K80,
    LEGACY,
    MODEL,
    PRODUCT,
    TOLERATIONS,
    Author,
    container,
    deployment,
    in_annotation,
    merged,
    model,
    server_side,
    terms,
    wishes,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.core.rule import Context

Raw = dict[str, Any]
FLUX, PLATFORM = "kustomize-controller", "platform"


def template(annotations: Raw | None = None, **spec: Any) -> Raw:
    return {"metadata": {"annotations": annotations} if annotations else {}, "spec": spec}


def amount(**limits: str) -> Raw:
    names = {"legacy": LEGACY, "today": GPU}
    main = container({names[name]: value for name, value in limits.items()})
    return template(containers=[main], tolerations=[OF_GPUS])


class Managers(Author):
    """Each applies a part, with a time that the API server notes if the request changes a field."""

    def __init__(self, cx: Context = K80) -> None:
        super().__init__(server_side, cx)
        self.version = "apps/v1"
        self.parts: dict[str, Raw] = {}
        self.times: dict[str, int] = {}

    def applies_as(self, manager: str, part: Raw) -> Raw:
        manifest = deployment(copy.deepcopy(part)) | {"apiVersion": self.version}
        update = manifest
        if self.live is not None:
            live = copy.deepcopy(self.live)
            if manager in self.parts:
                live["spec"] = without(live["spec"], self.parts[manager]["spec"], manifest["spec"])
            update = merged(live, manifest, whole=("nodeSelector",))
        self.parts[manager] = manifest
        if self.live is None or update["spec"] != self.live["spec"]:
            self.times[manager] = self.times.get(manager, 0) + 1
        entries = [
            {
                **server_side(each, each)["metadata"]["managedFields"][0],
                "manager": name,
                "time": str(self.times.get(name, 0)),
            }
            for name, each in self.parts.items()
        ]
        update = copy.deepcopy(update)
        update["metadata"]["managedFields"] = entries
        made = self.sends(update, manager)
        assert self.is_asked_again() == made
        return made


WORDS = {
    "a model in nodeSelector": template(nodeSelector={MODEL: "Tesla K80"}),
    "beside another label": template(nodeSelector={MODEL: "Tesla K80", "disk": "ssd"}),
    "a model in affinity": template(affinity=model("Tesla K80")),
    "not that model": template(affinity=terms((MODEL, "NotIn", ["Tesla K80"]))),
    "a preferred model": template(affinity=wishes((MODEL, "In", ["Tesla K80"]))),
    "a model in the annotation": template(in_annotation(model("Tesla K80"))),
    "tolerations in the annotation": template(
        {TOLERATIONS: json.dumps([{"key": "team", "operator": "Exists"}])}
    ),
}
words = pytest.mark.parametrize("part", WORDS.values(), ids=WORDS)
AMOUNTS = {
    "the legacy name": amount(legacy="1"),
    "both names": amount(legacy="1", today="1"),
    "both names, two amounts": amount(legacy="1", today="2"),
}
amounts = pytest.mark.parametrize("legacy", AMOUNTS.values(), ids=AMOUNTS)
first = pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["amount first", "choice first"])


def settled(
    legacy: Raw, part: Raw, order: tuple[int, ...], version: str = "apps/v1"
) -> tuple[Managers, Raw]:
    """Both manifests, applied once each, and then the first one again."""
    both = [(FLUX, legacy), (PLATFORM, part)]
    managers = Managers()
    managers.version = version
    managers.applies_as("base", template(containers=[{"name": "c", "image": "i"}]))
    for each in (*order, order[0]):
        made = managers.applies_as(*both[each])
    return managers, made


@pytest.mark.large
@words
@amounts
@first
def test_their_unchanged_manifests_change_neither_the_template_nor_the_record(
    part: Raw, legacy: Raw, order: tuple[int, ...]
) -> None:
    managers, made = settled(legacy, part, order)
    alone = Managers()
    spec = {**legacy["spec"], **part["spec"]}
    whole = alone.applies_as(FLUX, template(part["metadata"].get("annotations"), **spec))
    assert made == whole
    noted = managers.noted
    for _ in range(3):
        for each in ((FLUX, legacy), (PLATFORM, part)):
            assert managers.applies_as(*each) == made
            assert managers.noted == noted


@pytest.mark.large
@words
@amounts
@first
def test_where_one_migrates_the_words_of_the_other_keep_their_meaning(
    part: Raw, legacy: Raw, order: tuple[int, ...]
) -> None:
    managers, made = settled(legacy, part, order)
    modern = amount(today=made["spec"]["containers"][0]["resources"]["limits"][GPU])
    for each in ((FLUX, modern), (PLATFORM, part), (FLUX, modern), (PLATFORM, part)):
        assert managers.applies_as(*each) == made


TODAY = {
    "a model in nodeSelector": template(nodeSelector={PRODUCT: "Tesla-K80"}),
    "a model in affinity": template(affinity=IN_TERMS),
    "a preferred model": template(affinity=wishes((PRODUCT, "In", ["Tesla-K80"]))),
    "a model in the annotation": template(affinity=IN_TERMS),
}


@pytest.mark.large
@pytest.mark.parametrize("name", TODAY)
@amounts
@first
@pytest.mark.parametrize("last", [FLUX, PLATFORM])
def test_the_record_goes_where_both_have_migrated(
    name: str, legacy: Raw, order: tuple[int, ...], last: str
) -> None:
    managers, made = settled(legacy, WORDS[name], order)
    modern = amount(today=made["spec"]["containers"][0]["resources"]["limits"][GPU])
    both = {FLUX: modern, PLATFORM: TODAY[name]}
    for manager in sorted(both, key=last.__eq__):
        assert managers.noted
        assert managers.applies_as(manager, both[manager]) == made
    assert managers.noted == {}


@pytest.mark.large
@words
@amounts
def test_a_choice_that_is_taken_out_after_the_other_has_migrated_goes(
    part: Raw, legacy: Raw
) -> None:
    managers, made = settled(legacy, part, (0, 1))
    modern = amount(today=made["spec"]["containers"][0]["resources"]["limits"][GPU])
    managers.applies_as(FLUX, modern)
    managers.applies_as(PLATFORM, template())
    made = managers.applies_as(FLUX, modern)  # it applies the tolerations, which are one field
    assert "nodeSelector" not in made["spec"]
    assert "affinity" not in made["spec"]
    assert made["spec"]["tolerations"] == [OF_GPUS]


# What one manager has beside its amount, and the choice of nodes of the other

DRIVERS: Raw = {"volumes": [{"name": "d", "hostPath": {"path": DRIVER}}]}
MOUNTS: Raw = {"volumeMounts": [{"name": "d", "mountPath": DRIVER}]}
PATHS: Raw = {"env": [{"name": "LD_LIBRARY_PATH", "value": f"{DRIVER}:/opt"}]}


def with_drivers(name: str, mounts: Raw, side: Raw | None = None) -> Raw:
    main = container({name: "1"}, **(mounts if side is None else {}))
    others = [] if side is None else [container({GPU: "1"}, **mounts) | {"name": "side"}]
    volumes = DRIVERS if "volumeMounts" in mounts else {}
    return template(containers=[main, *others], tolerations=[OF_GPUS], **volumes)


BESIDE = {
    "a driver": lambda name: with_drivers(name, MOUNTS),
    "a search path": lambda name: with_drivers(name, PATHS),
    "a driver in a container that never was legacy": lambda name: with_drivers(name, MOUNTS, {}),
    "a driver that comes with the migrated amount": lambda name: (
        amount(legacy="1") if name == LEGACY else with_drivers(name, MOUNTS)
    ),
    "a name of a host": lambda name: template(
        {HOSTNAME: "train-0"}, containers=[container({name: "1"})], tolerations=[OF_GPUS]
    ),
    "a choice of its own": lambda name: template(
        containers=[container({name: "1"})],
        tolerations=[OF_GPUS],
        affinity=wishes((MODEL, "In", ["Tesla K80"])),
    ),
}
CHOICES = {name: part for name, part in WORDS.items() if name != "tolerations in the annotation"}


# Only one may have a field, and an annotation is joined with the affinity of its own manifest.
PAIRS = [
    pytest.param(beside, part, id=f"{its}, {name}")
    for its, beside in BESIDE.items()
    for name, part in CHOICES.items()
    if its != "a choice of its own"
    or name not in ("a preferred model", "a model in the annotation")
]


@pytest.mark.large
@pytest.mark.parametrize(("beside", "part"), PAIRS)
@first
def test_the_choice_of_the_other_makes_no_word_beside_a_current_amount_legacy(
    part: Raw, beside: Callable[[str], Raw], order: tuple[int, ...]
) -> None:
    managers, _ = settled(beside(LEGACY), part, order)
    modern = beside(GPU)
    made = managers.applies_as(FLUX, modern)
    noted = managers.noted
    for _ in range(2):
        for each in ((PLATFORM, part), (FLUX, modern)):
            assert managers.applies_as(*each) == made
            assert managers.noted == noted
    kept = [each["name"] for each in made["spec"].get("volumes", [])]
    assert kept == [each["name"] for each in modern["spec"].get("volumes", [])]


# Empty maps, as charts render them

EMPTY: dict[str, Raw] = {
    "affinity": {"affinity": {}},
    "affinity to nodes": {"affinity": {"nodeAffinity": {}}},
    "resources": {"containers": [{"name": "c", "resources": {}}]},
    "spec": {},
}


@pytest.mark.large
@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("part", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("who", [FLUX, "third"])
@pytest.mark.parametrize("version", ["apps/v1", "example.com/v1"])
@first
def test_an_empty_map_holds_no_word_of_the_other(
    part: Raw, empty: Raw, who: str, version: str, order: tuple[int, ...]
) -> None:
    def with_empty(made: Raw) -> Raw:
        made = copy.deepcopy(made)
        made["spec"] = {**empty, **made["spec"]}
        return made

    legacy, modern = amount(legacy="1"), amount(today="1")
    if who == FLUX:
        legacy, modern = with_empty(legacy), with_empty(modern)
    managers, made = settled(legacy, part, order, version)
    if who != FLUX:
        made = managers.applies_as(who, with_empty(template()))
    turn = [(FLUX, modern), (PLATFORM, part), (FLUX, modern), (PLATFORM, part)]
    for each in turn:
        assert managers.applies_as(*each) == made
        assert managers.noted


@pytest.mark.parametrize(
    "then",
    [{"nodeSelector": {}}, {"nodeSelector": {PRODUCT: "Tesla-K80"}}],
    ids=["empty", "current"],
)
def test_a_model_that_its_manager_takes_out_of_nodeselector_goes_from_the_record(then: Raw) -> None:
    """It applies nodeSelector as a whole, beside another choice of nodes."""
    wish = {"affinity": wishes((MODEL, "In", ["Tesla K80"]))}
    spec = {**amount(legacy="1")["spec"], **wish}
    managers = Managers()
    managers.applies_as(FLUX, template(**spec, nodeSelector={MODEL: "Tesla K80"}))
    made = managers.applies_as(FLUX, template(**spec, **then))
    noted = managers.noted
    assert not any(key[1:3] == ("nodeSelector", MODEL) for key in noted)
    assert managers.applies_as(FLUX, template(**spec, **then)) == made
    assert managers.noted == noted
