"""One workload whose amount and whose model are applied on the server by two managers."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.evaluation.test_again import (
    GPU,
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
from tests.evaluation.test_migrated import IN_TERMS, OF_GPUS

if TYPE_CHECKING:
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
        self.parts: dict[str, Raw] = {}
        self.times: dict[str, int] = {}

    def applies_as(self, manager: str, part: Raw) -> Raw:
        manifest = deployment(copy.deepcopy(part))
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


def settled(legacy: Raw, part: Raw, order: tuple[int, ...]) -> tuple[Managers, Raw]:
    """Both manifests, applied once each, and then the first one again."""
    both = [(FLUX, legacy), (PLATFORM, part)]
    managers = Managers()
    managers.applies_as("base", template(containers=[{"name": "c", "image": "i"}]))
    for each in (*order, order[0]):
        made = managers.applies_as(*both[each])
    return managers, made


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
