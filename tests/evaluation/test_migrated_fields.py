"""Manifests that say in today's words what a repair has stored: its record goes, and not before."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.evaluation.test_template_updates import (
    DRIVER,
    GPU,
    K80,
    LEGACY,
    MODEL,
    PRODUCT,
    TOLERATIONS,
    Author,
    client_side,
    container,
    deployment,
    in_annotation,
    limits_of,
    model,
    nodes,
    of_custom_kind,
    pod,
    server_side,
    terms,
    three_way,
    wishes,
    with_api_defaults,
)
from webhook.core.settings import Settings, Taint
from webhook.evaluation import repair_record

Raw = dict[str, Any]

OWN = {"key": "own", "operator": "Exists"}
OF_GPUS = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
TAINTED = nodes("Tesla-K80", taints=(Taint(GPU, "", "NoSchedule"),))
FLUX = "kustomize-controller"


class Migrant(Author):
    """An author whose server-side applies have a manager, and a time as the API server notes it.

    It is a new one if the request changes a field: always, if the manifest has an amount as a
    number, which the API server stores as a text.
    """

    always, seconds = False, 0

    def sends(self, update: Raw, manager: str = "") -> Raw:
        manager, before = manager or FLUX, (self.live or {}).get("spec")
        with_api_defaults(update["spec"]["template"]["spec"])
        for each in update["metadata"].get("managedFields", []):
            if each["manager"] == "kubectl":
                each["manager"] = FLUX
            if each["operation"] == "Apply" and each["manager"] == manager:
                self.seconds += self.always or before != update["spec"]
                each["time"] = f"12:00:{self.seconds:02}"
        return super().sends(update, manager)

    def is_asked_again(self) -> Raw:
        made, self.live = self.live, self.before
        assert made is not None
        return super().sends(made, self.manager)

    def is_labelled(self) -> Raw:
        assert self.live is not None
        update = copy.deepcopy(self.live)
        update["metadata"]["labels"] = {"a": "b"}
        return super().sends(update, "kubectl-label")

    def has_words(self) -> bool:
        text = repair_record.written({"/spec/template": self.noted}, self.live or {})
        return repair_record.has_words({"annotations": {repair_record.ANNOTATION: text}})


def of_custom_client(live: Raw, manifest: Raw) -> Raw:
    return {**client_side(live, manifest), "apiVersion": "example.com/v1"}


def at_each_time(live: Raw, manifest: Raw) -> Raw:
    return server_side(live, manifest)


SPEC: Raw = {
    "f:spec": {"f:containers": {}, "f:nodeSelector": {}, "f:affinity": {}, "f:volumes": {}}
}
TOOLS = {
    "client side": client_side,
    "client side, custom kind": of_custom_client,
    "server side": server_side,
    "server side, with a new time": at_each_time,
    "server side, atomic lists": of_custom_kind(SPEC),
    "server side, an atomic template": of_custom_kind({}),
}
tools = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
MOUNTED: Raw = {
    "volumeMounts": [{"name": "d", "mountPath": DRIVER}],
    "env": [{"name": "LD_LIBRARY_PATH", "value": f"{DRIVER}:/opt"}],
}
VOLUMES = [{"name": "d", "hostPath": {"path": DRIVER}}]
TODAY = container({GPU: "1"})
IN_TERMS = terms((PRODUCT, "In", ["Tesla-K80"]))


def tolerant(*containers: Raw, **spec: Any) -> Raw:
    """Give a pod to which the repair need not add a toleration."""
    return pod(*containers, tolerations=[OF_GPUS], **spec)


# The words, and what the repair makes of them.
PAIRS = {
    "an amount": (tolerant(), tolerant(TODAY)),
    "a model in nodeSelector": (
        tolerant(nodeSelector={MODEL: "Tesla K80"}),
        tolerant(TODAY, nodeSelector={PRODUCT: "Tesla-K80"}),
    ),
    "beside another label": (
        tolerant(nodeSelector={MODEL: "Tesla K80", "disk": "ssd"}),
        tolerant(TODAY, nodeSelector={PRODUCT: "Tesla-K80", "disk": "ssd"}),
    ),
    "a model in affinity": (
        tolerant(affinity=model("Tesla K80")),
        tolerant(TODAY, affinity=IN_TERMS),
    ),
    "a preferred model": (
        tolerant(affinity=wishes((MODEL, "In", ["Tesla K80"]))),
        tolerant(TODAY, affinity=wishes((PRODUCT, "In", ["Tesla-K80"]))),
    ),
    "a model in the annotation": (
        tolerant(annotations=in_annotation(model("Tesla K80"))),
        tolerant(TODAY, affinity=IN_TERMS),
    ),
    "a driver": (
        tolerant(container(**MOUNTED), volumes=VOLUMES),
        tolerant(container({GPU: "1"}, env=[{"name": "LD_LIBRARY_PATH", "value": "/opt"}])),
    ),
}
pairs = pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS)


def migrant(tool: Any, cx: Any = K80, *, may_change: bool = True) -> Migrant:
    author = Migrant(tool, cx, may_change=may_change)
    author.always = tool is at_each_time
    return author


@pytest.mark.large
@tools
@pairs
@pytest.mark.parametrize("may_change", [True, False], ids=["may change", "is fixed"])
def test_the_record_goes_with_the_last_word(
    first: Raw, second: Raw, tool: Any, *, may_change: bool
) -> None:
    author, alone = migrant(tool, may_change=may_change), migrant(tool)
    made = author.applies(first)
    assert author.has_words()
    assert author.applies(second)["spec"] == made["spec"] == alone.applies(second)["spec"]
    assert author.noted == {}
    assert author.is_asked_again()["spec"] == made["spec"]
    assert author.noted == {}


@pytest.mark.large
@tools
@pairs
def test_it_stays_as_long_as_the_words(first: Raw, second: Raw, tool: Any) -> None:
    del second
    author = migrant(tool)
    made = author.applies(first)
    noted = author.noted
    assert author.applies(first) == made
    assert author.noted == noted
    assert author.is_asked_again() == made
    assert author.noted == noted
    assert author.is_labelled() == made
    assert author.noted == noted


OTHERS: dict[str, Raw] = {
    "labels": {"f:metadata": {"f:labels": {"f:a": {}}}},
    "a field of the template": {"f:spec": {"f:template": {"f:spec": {"f:priority": {}}}}},
}


@pytest.mark.large
@pytest.mark.parametrize("tool", [*TOOLS.values(), three_way], ids=[*TOOLS, "Helm"])
@pairs
@pytest.mark.parametrize("fields", OTHERS.values(), ids=OTHERS)
def test_it_stays_where_another_manager_applies(
    fields: Raw, first: Raw, second: Raw, tool: Any
) -> None:
    del second
    author = migrant(tool)
    made = author.applies(first)
    noted = author.noted
    other = {"manager": "other", "operation": "Apply", "time": "0", "fieldsV1": fields}
    for _ in range(2):
        assert author.live is not None
        update = copy.deepcopy(author.live)
        entries = update["metadata"].get("managedFields", [])
        entries = [each for each in entries if each["manager"] != "other"]
        update["metadata"]["managedFields"] = [*entries, other]
        assert Author.sends(author, update, "other") == made
        assert author.noted == noted


@pytest.mark.large
@tools
@pairs
def test_own_tolerations_are_no_word(first: Raw, second: Raw, tool: Any) -> None:
    """The record of them stays, for the webhook adds to them."""
    author = migrant(tool, TAINTED)
    first, second = copy.deepcopy(first), copy.deepcopy(second)
    for each in (first, second):
        each["spec"]["tolerations"] = [OWN]
    author.applies(first)
    author.applies(second)
    made = author.applies(second)
    assert made["spec"]["tolerations"] == [OWN, OF_GPUS]
    assert author.noted == {("spec", "tolerations"): ([OWN], [OWN, OF_GPUS])}
    assert not author.has_words()


@tools
def test_words_go_one_by_one(tool: Any) -> None:
    author = migrant(tool)
    author.applies(tolerant(affinity=model("Tesla K80")))
    author.applies(tolerant(affinity=IN_TERMS))
    assert author.has_words()
    author.applies(tolerant(TODAY, affinity=IN_TERMS))
    assert author.noted == {}


@pytest.mark.large
@tools
@pairs
def test_a_migrated_manifest_with_another_image_is_known_at_once_or_when_it_is_applied_again(
    first: Raw, second: Raw, tool: Any
) -> None:
    author = migrant(tool)
    author.applies(first)
    second = copy.deepcopy(second)
    second["spec"]["containers"][0]["image"] = "j"
    made = author.applies(second)
    assert author.applies(second) == made
    assert author.noted == {}


@tools
def test_a_driver_that_is_added_to_a_migrated_template_stays(tool: Any) -> None:
    author, alone = migrant(tool), migrant(tool)
    author.applies(PAIRS["a driver"][0])
    author.applies(tolerant(TODAY))
    author.applies(tolerant(TODAY))
    second = tolerant(container({GPU: "1"}, **MOUNTED), volumes=VOLUMES)
    assert author.applies(second)["spec"] == alone.applies(second)["spec"]


# The choice of nodes in a manifest, in legacy words and in current ones.
CLEAN = {"env": [{"name": "LD_LIBRARY_PATH", "value": "/opt"}]}
TEAM = {"key": "team", "operator": "Exists"}
CHOICES: dict[str, tuple[Raw, Raw]] = {
    "no model": ({}, {}),
    "a model in nodeSelector": (
        {"nodeSelector": {MODEL: "Tesla K80"}},
        {"nodeSelector": {PRODUCT: "Tesla-K80"}},
    ),
    "a model in affinity": ({"affinity": model("Tesla K80")}, {"affinity": IN_TERMS}),
    "a preferred model": (
        {"affinity": wishes((MODEL, "In", ["Tesla K80"]))},
        {"affinity": wishes((PRODUCT, "In", ["Tesla-K80"]))},
    ),
    "the annotation": (
        {"annotations": in_annotation(model("Tesla K80"))},
        {"affinity": IN_TERMS},
    ),
    "tolerations": (
        {"annotations": {TOLERATIONS: json.dumps([TEAM])}},
        {"tolerations": [OF_GPUS, TEAM]},
    ),
}
FIRST = {
    "the amount": (True, False, False),
    "the choice of nodes": (False, True, False),
    "the driver": (False, False, True),
    "the amount and the choice": (True, True, False),
    "the amount and the driver": (True, False, True),
    "the choice and the driver": (False, True, True),
}


@pytest.mark.pairs
@tools
@pytest.mark.parametrize(("legacy", "today"), CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize(("amount", "choice", "driver"), FIRST.values(), ids=FIRST)
def test_where_some_words_are_migrated_first_the_next_apply_changes_nothing(
    legacy: Raw, today: Raw, tool: Any, *, amount: bool, choice: bool, driver: bool
) -> None:
    def manifest(*, amount: bool, choice: bool, driver: bool) -> Raw:
        made = container({GPU if amount else LEGACY: "1"}, **(CLEAN if driver else MOUNTED))
        volumes = {} if driver else {"volumes": VOLUMES}
        spec = {"tolerations": [OF_GPUS], **volumes, **(today if choice else legacy)}
        return copy.deepcopy(pod(made, **spec))

    author = migrant(tool)
    author.applies(manifest(amount=False, choice=False, driver=False))
    half = manifest(amount=amount, choice=choice, driver=driver)
    made = copy.deepcopy(author.applies(half))
    noted = author.noted
    for _ in range(2):
        assert author.applies(half) == made
        assert author.noted == noted


@pairs
def test_who_replaces_the_object_declares_all_of_it(first: Raw, second: Raw) -> None:
    author = migrant(three_way, TAINTED)
    author.applies(first)
    for _ in range(2):
        update = deployment(second)
        made = Author.sends(author, update, "kubectl-replace")
        assert limits_of(made) == {GPU: "1"}
        assert not author.has_words()


@pairs
def test_who_sends_no_manifest_does_not(first: Raw, second: Raw) -> None:
    """Helm without server-side apply keeps the manifest to itself."""
    author = migrant(three_way)
    author.applies(first)
    author.applies(second)
    assert author.has_words()


@pytest.mark.parametrize("tool", [server_side, at_each_time], ids=["", "with a new time"])
def test_where_the_settings_repair_all_pods_a_later_round_is_only_told_by_its_time(
    tool: Any,
) -> None:
    cx = replace(K80, settings=Settings(scope="all-legacy"))
    author = migrant(tool, cx)
    legacy = tolerant(TODAY, affinity=model("Tesla K80"))
    for _ in range(2):
        author.applies(legacy)
        author.is_asked_again()
        assert author.has_words()
    author.applies(tolerant(TODAY, affinity=IN_TERMS))
    assert author.has_words() is (tool is at_each_time)


# An amount that goes to 0

AMOUNTS = {
    "limits": ({"limits": {LEGACY: "2"}}, {"limits": {LEGACY: "0"}}),
    "requests": ({"requests": {LEGACY: "2"}}, {"requests": {LEGACY: "0"}}),
    "both": (
        {"limits": {LEGACY: "2"}, "requests": {LEGACY: "2"}},
        {"limits": {LEGACY: "0"}, "requests": {LEGACY: "0"}},
    ),
}
BESIDE: dict[str, Raw] = {
    "nothing": {},
    "a model": {"nodeSelector": {MODEL: "Tesla K80"}},
    "not that model": {"affinity": terms((MODEL, "NotIn", ["Tesla K80"]))},
    "a preferred model": {"affinity": wishes((MODEL, "In", ["Tesla K80"]))},
    "the annotation": {"annotations": in_annotation(model("Tesla K80"))},
}


@pytest.mark.large
@pytest.mark.parametrize("tool", [*TOOLS.values(), three_way], ids=[*TOOLS, "Helm"])
@pytest.mark.parametrize(("two", "none"), AMOUNTS.values(), ids=AMOUNTS)
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("driver", [True, False], ids=["with a driver", "without"])
def test_an_amount_that_becomes_0_leaves_what_a_new_object_has(
    two: Raw, none: Raw, beside: Raw, tool: Any, *, driver: bool
) -> None:
    mounted, volumes = (MOUNTED, {"volumes": VOLUMES}) if driver else ({}, {})

    def manifest(resources: Raw) -> Raw:
        return tolerant(
            {"name": "c", "image": "i", "resources": resources, **mounted}, **beside, **volumes
        )

    author, alone = migrant(tool), migrant(tool)
    author.applies(manifest(two))
    made = author.applies(manifest(none))
    assert made == alone.applies(manifest(none))
    assert author.applies(manifest(none)) == made


# A suspended Job


@pytest.mark.parametrize("tool", [client_side, server_side])
@pytest.mark.parametrize(
    "words",
    [
        {"nodeSelector": {MODEL: "Tesla K80"}},
        {"annotations": in_annotation(model("Tesla K80"))},
        {"annotations": {TOLERATIONS: '[{"key":"team","operator":"Exists"}]'}},
        {"affinity": model("Tesla K80")},
    ],
    ids=["nodeSelector", "annotation", "tolerations", "affinity"],
)
@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "running"])
def test_a_choice_of_nodes_goes_from_a_job_that_is_suspended(
    words: Raw, tool: Any, *, suspend: bool
) -> None:
    """While it runs the API server refuses a change; a word that no field shows is not sent."""
    author, alone = migrant(tool, may_change=False), migrant(tool)
    first = author.applies(tolerant(**words))
    assert author.live is not None
    author.live["spec"]["suspend"] = author.manifest["spec"]["suspend"] = suspend
    made = author.applies(tolerant())
    if suspend or "affinity" in words:
        assert made["spec"] == alone.applies(tolerant())["spec"]
    else:
        assert made == first


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
@pytest.mark.parametrize(
    "choice",
    [
        {"nodeSelector": {"disk": "ssd", MODEL: "Tesla K80"}},
        {"affinity": terms((MODEL, "NotIn", ["Tesla K80"]))},
    ],
    ids=["a model", "not that model"],
)
def test_a_choice_is_left_where_the_amount_is_taken_out(choice: Raw, tool: Any) -> None:
    """As in a new object: nobody has migrated the amount."""
    author, alone = Migrant(tool), Migrant(tool)
    author.applies(pod(**choice))
    without_gpu = pod(container({"memory": "1Gi"}), **choice)
    made, wanted = author.applies(without_gpu)["spec"], alone.applies(without_gpu)["spec"]
    for name in ("nodeSelector", "affinity", "containers"):
        assert made.get(name) == wanted.get(name)
    assert author.applies(without_gpu)["spec"] == made
