from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.pods import (
    FIRST,
    GPU,
    LEGACY,
    LIMITS,
    REQUESTS,
    SPEC,
    container,
    found,
    legacy_pod,
    pod,
)
from webhook.core.edits import Remove, Rename, Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.limit_ranger import ANNOTATION
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.rules import legacy_resource as rule

if TYPE_CHECKING:
    from webhook.core.edits import Edit
    from webhook.kube.pointer import Path

OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-gpu"
SHARED = "nvidia.com/gpu.shared"
SLICE = "nvidia.com/mig-1g.5gb"

repaired = partial(Finding, rule.CODE)
reported = partial(Finding, rule.CODE, severity=Severity.MANUAL)
chosen = partial(reported, safety=Safety.CHOICE)


def edits(verb: type[Rename | Remove], *sections: Path, name: str = LEGACY) -> tuple[Edit, ...]:
    if verb is Rename:
        return tuple(Rename(section / name, GPU) for section in sections)
    return tuple(Remove(section / name) for section in sections)


def renamed(*sections: Path, amount: Any = "2", who: str = "cuda") -> Finding:
    message = f"container {who} requests {LEGACY}, which no node offers; write {GPU}: {amount}"
    return repaired(sections[0] / LEGACY, message, edits(Rename, *sections))


def left(section: Path, amount: str, why: str, whole: int) -> Finding:
    message = (
        f"container cuda requests {amount} {LEGACY}, which no node offers, and stays so: {GPU} "
        f"{why} repairs nothing here; write limits: {GPU}: {whole}"
    )
    return reported(section / LEGACY, message)


def beside(*sections: Path, legacy: str, counts: str, name: str = LEGACY) -> Finding:
    message = (
        f"container cuda requests both {legacy} {name} and {counts}; only the latter counts: "
        "delete the former"
    )
    return repaired(sections[0] / name, message, edits(Remove, *sections, name=name))


def larger(legacy: str, other: str, *sections: Path) -> Finding:
    message = (
        f"container cuda requests {legacy} {LEGACY} beside {other}: the larger amount counts; "
        f"write {GPU}: {legacy}"
    )
    changes = [(Set(each / GPU, legacy), Remove(each / LEGACY)) for each in sections]
    return repaired(sections[0] / LEGACY, message, tuple(e for pair in changes for e in pair))


def unclear(amounts: str) -> Finding:
    message = (
        f"container cuda requests {amounts}, and which one is larger is not known: write only "
        f"{GPU}, with the larger amount"
    )
    return chosen(LIMITS / LEGACY, message)


def unreadable(amount: str) -> Finding:
    message = f"container cuda requests {amount} {LEGACY}, which is no amount of GPUs: correct it"
    return chosen(LIMITS / LEGACY, message)


ZERO = f"container cuda requests 0 {LEGACY}: no GPU; delete the line, unless a LimitRange names it"
ZERO_STAYS = [
    Finding(rule.CODE, section / LEGACY, ZERO, severity=Severity.NOTICE)
    for section in (LIMITS, REQUESTS)
]


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        pytest.param({}, {}, [], id="no GPU: untouched"),
        pytest.param({GPU: "1"}, {GPU: "1"}, [], id="today's name: untouched"),
        pytest.param(
            {"alpha.kubernetes.io/nvidia_gpu": "1", GPU: 1},
            None,
            [],
            id="a misspelt name, which 1.3-1.7 accepted and ignored: untouched, never guessed",
        ),
        pytest.param({LEGACY: "2"}, None, [renamed(LIMITS)], id="limit only: renamed"),
        pytest.param(
            {LEGACY: "2"},
            {LEGACY: "2"},
            [renamed(LIMITS, REQUESTS)],
            id="limit and request, as the API server sends it: both renamed",
        ),
        pytest.param({LEGACY: 2}, None, [renamed(LIMITS, amount=2)], id="a number, as in YAML"),
        pytest.param(
            None,
            {LEGACY: "2"},
            [left(REQUESTS, "2", "needs a limit, and GPU103", 2)],
            id="request only, and GPU103 is not asked: left",
        ),
        pytest.param(
            {LEGACY: "2"},
            {LEGACY: "1"},
            [left(LIMITS, "1, 2", "needs a request equal to its limit, and GPU104", 2)],
            id="limit and request differ, and GPU104 is not asked: left",
        ),
        pytest.param(
            {LEGACY: "500m"},
            None,
            [left(LIMITS, "500m", "must be whole, and GPU102", 1)],
            id="fraction, and GPU102 is not asked: left, the whole amount is named",
        ),
        pytest.param(
            {LEGACY: "2000m"},
            None,
            [renamed(LIMITS, amount="2000m")],
            id="whole in milli: as written",
        ),
        pytest.param(
            {LEGACY: "0"},
            {LEGACY: "0"},
            ZERO_STAYS,
            id="zero meant no GPU: it stays, for a LimitRange of the name",
        ),
        pytest.param(
            {LEGACY: 0, "cpu": 16},
            {LEGACY: 0, "cpu": 16},
            ZERO_STAYS,
            id="zero of a generated CPU variant (pattern 3): it stays",
        ),
        pytest.param(
            {LEGACY: "0.0"},
            None,
            ZERO_STAYS[:1],
            id="zero in another form: it stays",
        ),
        pytest.param(
            {LEGACY: "0", GPU: "2"},
            {LEGACY: "0", GPU: "2"},
            ZERO_STAYS,
            id="zero beside an amount under today's name: both stay",
        ),
        pytest.param(
            {LEGACY: "0"},
            {LEGACY: "1"},
            [left(LIMITS, "0, 1", "needs a request equal to its limit, and GPU104", 1)],
            id="zero limit, positive request, and GPU104 is not asked: left",
        ),
        pytest.param(
            {LEGACY: "1", GPU: "1"},
            {LEGACY: "1", GPU: "1"},
            [beside(LIMITS, REQUESTS, legacy="1", counts=f"1 {GPU}")],
            id="both names: the legacy one goes, never added up",
        ),
        pytest.param(
            {LEGACY: "1", GPU: "2"},
            None,
            [beside(LIMITS, legacy="1", counts=f"2 {GPU}")],
            id="both names that differ: today's wins, both amounts are named",
        ),
        pytest.param(
            {LEGACY: "1"},
            {GPU: "2", LEGACY: "1"},
            [
                repaired(
                    LIMITS / LEGACY,
                    beside(LIMITS, legacy="1", counts=f"2 {GPU}").message,
                    (
                        Set(LIMITS / GPU, "2"),
                        Remove(LIMITS / LEGACY),
                        Remove(REQUESTS / LEGACY),
                    ),
                )
            ],
            id="today's name in the request only: it still wins",
        ),
        pytest.param(
            {LEGACY: "2", GPU: "0"},
            None,
            [larger("2", f"0 {GPU}", LIMITS)],
            id="today's name with zero: zero never wins",
        ),
        pytest.param(
            {LEGACY: "2", GPU: "1"},
            {LEGACY: "2", GPU: "1"},
            [larger("2", f"1 {GPU}", LIMITS, REQUESTS)],
            id="fewer under today's name: never less than was asked for",
        ),
        pytest.param(
            {LEGACY: "2"},
            {GPU: "1"},
            [
                repaired(
                    LIMITS / LEGACY,
                    larger("2", f"1 {GPU}", LIMITS).message,
                    (Rename(LIMITS / LEGACY, GPU), Set(REQUESTS / GPU, "2")),
                )
            ],
            id="fewer under today's name in the other section",
        ),
        pytest.param(
            {LEGACY: "1", GPU: "many"},
            None,
            [unclear(f"1 {LEGACY} beside many {GPU}")],
            id="an amount of today that nobody can read: it may be any",
        ),
        pytest.param(
            {LEGACY: "1", GPU: "-1"},
            None,
            [unclear(f"1 {LEGACY} beside -1 {GPU}")],
            id="a negative amount of today",
        ),
        pytest.param(
            {LEGACY: "1"},
            {GPU: "many"},
            [unclear(f"1 {LEGACY} beside many {GPU}")],
            id="an amount of today that nobody can read, in requests",
        ),
        pytest.param(
            {LEGACY: "0", GPU: "many"},
            None,
            ZERO_STAYS[:1],
            id="a legacy 0 beside an amount of today that nobody can read",
        ),
        pytest.param(
            {LEGACY: "2", GPU: "1"},
            {LEGACY: "2", GPU: "2"},
            [
                repaired(
                    LIMITS / LEGACY,
                    beside(LIMITS, legacy="2", counts=f"1, 2 {GPU}").message,
                    (
                        Set(LIMITS / GPU, "2"),
                        Remove(LIMITS / LEGACY),
                        Remove(REQUESTS / LEGACY),
                    ),
                )
            ],
            id="applied again: the request is what the last repair made of both",
        ),
        pytest.param(
            {LEGACY: "many", GPU: "1"},
            None,
            [unreadable("'many'")],
            id="a legacy one that nobody can read beside it",
        ),
        pytest.param(
            {LEGACY: "1", SHARED: "1"},
            None,
            [beside(LIMITS, legacy="1", counts=f"1 {SHARED}")],
            id="beside a shared GPU (a LimitRange's default): never added up",
        ),
        pytest.param(
            {LEGACY: "1", SLICE: "3"},
            None,
            [beside(LIMITS, legacy="1", counts=f"3 {SLICE}")],
            id="beside a slice: never added up",
        ),
        pytest.param(
            {LEGACY: "1", SLICE: "0"},
            None,
            [renamed(LIMITS, amount="1")],
            id="beside no slice at all: renamed",
        ),
        pytest.param(
            {LEGACY: "many"},
            None,
            [unreadable("'many'")],
            id="no quantity: manual",
        ),
        pytest.param(
            {LEGACY: "-1"},
            None,
            [unreadable("'-1'")],
            id="a negative amount: manual",
        ),
        pytest.param(
            {LEGACY: ""},
            {LEGACY: "1"},
            [unreadable("''")],
            id="a limit that is no quantity beside a request: both are left",
        ),
        pytest.param(
            {LEGACY: {"volumes": []}},
            None,
            [unreadable("\"{'volumes': []}\"")],
            id="a map of mounts (pattern 6) is never a quantity",
        ),
    ],
)
def test_legacy_resource(limits: Any, requests: Any, expected: list[Finding]) -> None:
    """In a cluster nothing is said of a 0 that stays, and nothing waits for a choice."""
    made = pod(container(limits, requests))
    here = [
        replace(each, safety=Safety.SAFE)
        for each in expected
        if each.severity is not Severity.NOTICE
    ]
    assert found(rule, copy.deepcopy(made), Context(in_manifest=True)) == expected
    assert found(rule, made) == here


def test_a_zero_under_another_legacy_name_stays_beside_what_counts() -> None:
    obj = pod(container({OPAQUE: "2", LEGACY: "0"}))
    found(rule, obj, Context(Settings(legacy_resources=(LEGACY, OPAQUE))))
    assert obj["spec"]["containers"][FIRST[-1]]["resources"] == {"limits": {GPU: "2", LEGACY: "0"}}


def test_every_kind_of_container_that_may_have_resources() -> None:
    obj = pod(
        container({LEGACY: "2"}),
        initContainers=[
            container({LEGACY: "2"}, name="warm-up"),
            container({LEGACY: "2"}, name="sidecar", restartPolicy="Always"),
        ],
        ephemeralContainers=[container(name="debug")],
    )
    init = SPEC / "initContainers"
    assert found(rule, obj) == [
        renamed(init / 0 / "resources" / "limits", who="warm-up"),
        renamed(init / 1 / "resources" / "limits", who="sidecar"),
        renamed(LIMITS),
    ]


def test_limits_that_are_not_indented_are_no_limits() -> None:
    """Pattern 1: `limits: null` and a stray key beside it."""
    stray = container(name="stray") | {"resources": {"limits": None, LEGACY: 1}}
    assert found(rule, pod(stray, container({GPU: 1}))) == []


def test_further_legacy_names_and_another_target() -> None:
    cx = Context(Settings(legacy_resources=(LEGACY, OPAQUE), gpu_resource=SHARED))
    message = "container cuda requests {}, which no node offers; write {}: 1"
    assert found(rule, pod(container({OPAQUE: "1"})), cx) == [
        repaired(
            LIMITS / OPAQUE, message.format(OPAQUE, SHARED), (Rename(LIMITS / OPAQUE, SHARED),)
        )
    ]
    larger_one = f"container cuda requests {OPAQUE}, which no node offers; write {SHARED}: 2"
    assert found(rule, pod(container({OPAQUE: "2", LEGACY: "1"})), cx) == [
        repaired(LIMITS / OPAQUE, larger_one, (Rename(LIMITS / OPAQUE, SHARED),)),
        beside(LIMITS, legacy="1", counts=f"2 {OPAQUE}"),
    ]


def test_a_legacy_name_that_counts_gpus_today_does_not_win_over_itself() -> None:
    cx = Context(Settings(legacy_resources=(GPU,), gpu_resource=SHARED))
    message = f"container cuda requests {GPU}, which no node offers; write {SHARED}: 1"
    assert found(rule, pod(container({GPU: "1"})), cx) == [
        repaired(LIMITS / GPU, message, (Rename(LIMITS / GPU, SHARED),))
    ]


def test_a_pod_as_a_whole_cannot_ask_for_gpus() -> None:
    obj = legacy_pod(resources={"limits": {LEGACY: "1", "cpu": "2"}})
    message = (
        f"the pod as a whole requests {LEGACY}: GPUs can only be asked for by a container; "
        f"move it to a container's limits as {GPU}"
    )
    at = SPEC / "resources" / "limits" / LEGACY
    assert found(rule, obj) == [renamed(LIMITS, REQUESTS, amount="1"), reported(at, message)]


def test_what_the_container_asks_for_besides_stays() -> None:
    obj = pod(container({LEGACY: "1", "cpu": "2"}, {LEGACY: "1", "memory": "1Gi"}))
    found(rule, obj)
    assert obj["spec"]["containers"][FIRST[-1]]["resources"] == {
        "limits": {"cpu": "2", GPU: "1"},
        "requests": {"memory": "1Gi", GPU: "1"},
    }


# What LimitRanger says that it set, in its own words (1.36).
BOTH = "LimitRanger plugin set: {0} request for container cuda; {0} limit for container cuda"
OF_GPU, OF_LEGACY = BOTH.format(GPU), BOTH.format(LEGACY)


def limited(obj: Any, text: Any) -> Any:
    obj["metadata"]["annotations"] = {ANNOTATION: text}
    return obj


def asking(amounts: dict[str, Any], text: Any = None) -> Any:
    """A pod as a webhook gets it: the API server has copied limits to requests."""
    made = pod(container(dict(amounts), dict(amounts)))
    return made if text is None else limited(made, text)


def sent(obj: Any, *names: str, sections: tuple[str, ...] = ("limits", "requests")) -> Any:
    """The same, with managedFields that say under which names its author asked."""
    resources: Any = {f"f:{s}": {f"f:{name}": {} for name in names} for s in sections}
    fields = {".": {}, 'k:{"name":"cuda"}': {"f:name": {}, "f:resources": resources}}
    obj["metadata"]["managedFields"] = [{"fieldsV1": {"f:spec": {"f:containers": fields}}}]
    return obj


def amounts_of(obj: Any) -> dict[str, Any]:
    resources = obj["spec"]["containers"][0]["resources"]
    assert resources["limits"] == resources["requests"]
    limits: dict[str, Any] = resources["limits"]
    return limits


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            asking({LEGACY: "2", GPU: "0"}, OF_GPU), {GPU: "2"}, id="a default of 0 never counts"
        ),
        pytest.param(
            asking({LEGACY: "2", GPU: "0"}), {GPU: "2"}, id="nor does it without the annotation"
        ),
        pytest.param(
            sent(asking({LEGACY: "2", GPU: "0"}, OF_LEGACY), LEGACY, GPU),
            {GPU: "2"},
            id="nor where the annotation says it of the wrong name",
        ),
        pytest.param(asking({LEGACY: "2", GPU: "0"}, "{"), {GPU: "2"}, id="nor beside nonsense"),
        pytest.param(asking({LEGACY: "2", GPU: "0"}, 7), {GPU: "2"}, id="nor beside a number"),
        pytest.param(
            asking({LEGACY: "2", GPU: "1"}, OF_GPU), {GPU: "2"}, id="a default below: the author's"
        ),
        pytest.param(
            asking({LEGACY: "2", GPU: "4"}, OF_GPU), {GPU: "2"}, id="a default above: the author's"
        ),
        pytest.param(
            asking({LEGACY: "2", GPU: "4"}), {GPU: "4"}, id="above, and nobody says whose: larger"
        ),
        pytest.param(
            asking({LEGACY: "2", SLICE: "1"}, BOTH.format(SLICE)),
            {GPU: "2", SLICE: "0"},
            id="the default of a slice: whole GPUs, and LimitRanger must not add it again",
        ),
        pytest.param(
            asking({LEGACY: "2", SHARED: "1", GPU: "0"}, BOTH.format(f"{GPU}, {SHARED}")),
            {GPU: "2", SHARED: "0"},
            id="several defaults",
        ),
        pytest.param(
            asking({GPU: "2", LEGACY: "4"}, OF_LEGACY),
            {GPU: "2", LEGACY: "0"},
            id="the legacy name is the default: 0, since a max refuses a pod without it",
        ),
        pytest.param(
            asking({GPU: "2", LEGACY: "1"}, OF_LEGACY),
            {GPU: "2"},
            id="the same, below: it goes, since a max of 1 is to hold",
        ),
        pytest.param(
            asking({GPU: "2", LEGACY: "0"}, OF_LEGACY),
            {GPU: "2", LEGACY: "0"},
            id="the same, 0 already: untouched",
        ),
        pytest.param(
            asking({LEGACY: "0", "cpu": "1"}, OF_LEGACY),
            {LEGACY: "0", "cpu": "1"},
            id="the default alone, 0: untouched, a max would refuse the pod without it",
        ),
        pytest.param(
            asking({SLICE: "2", LEGACY: "1"}, OF_LEGACY),
            {SLICE: "2", LEGACY: "0"},
            id="the author's slices beside a legacy default, whose max counts GPUs",
        ),
        pytest.param(
            asking({LEGACY: "1"}, OF_LEGACY), {GPU: "1"}, id="nothing but a legacy default: a GPU"
        ),
        pytest.param(
            asking({LEGACY: "2", GPU: "1"}, BOTH.format(f"{LEGACY}, {GPU}")),
            {GPU: "2"},
            id="both are defaults: the larger one",
        ),
        pytest.param(
            asking({LEGACY: "0", GPU: "1"}, OF_GPU),
            {LEGACY: "0", GPU: "0"},
            id="the author's zero beside a positive default: no GPU",
        ),
        pytest.param(
            asking({GPU: "0", LEGACY: "1"}, OF_LEGACY),
            {GPU: "0", LEGACY: "0"},
            id="the same the other way round",
        ),
        pytest.param(
            asking({LEGACY: "0", SLICE: "1"}, BOTH.format(SLICE)),
            {LEGACY: "0", SLICE: "0"},
            id="the author's zero beside a slice for everyone",
        ),
        pytest.param(
            sent(asking({LEGACY: "2", GPU: "1"}, OF_LEGACY), LEGACY, GPU),
            {GPU: "2"},
            id="forged: the author sent both names, so the larger one counts",
        ),
        pytest.param(
            sent(asking({LEGACY: "2", GPU: "4"}, BOTH.format("cpu")), LEGACY),
            {GPU: "2"},
            id="two LimitRanges: only one is named, but the author sent one name alone",
        ),
        pytest.param(
            sent(asking({LEGACY: "2", SLICE: "1"}), LEGACY),
            {GPU: "2", SLICE: "0"},
            id="no annotation: the author sent one name alone",
        ),
        pytest.param(
            sent(asking({GPU: "2", LEGACY: "4"}, OF_LEGACY), LEGACY),
            {GPU: "2", LEGACY: "0"},
            id="the second round: LimitRanger added anew what a webhook had renamed",
        ),
        pytest.param(
            sent(asking({LEGACY: "0"}), "cpu"),
            {LEGACY: "0"},
            id="a default of 0, and only managedFields tell",
        ),
        pytest.param(
            sent(asking({LEGACY: "1", GPU: "2"}), LEGACY, GPU, sections=("limits",)),
            {GPU: "2"},
            id="a server-side apply: the API server has copied what it does not manage",
        ),
        pytest.param(
            limited(asking({LEGACY: "2", GPU: "0"}), f"{OF_GPU}; x for container cuda; y"),
            {GPU: "2"},
            id="parts that LimitRanger never writes",
        ),
    ],
)
def test_what_the_author_wrote_wins(obj: Any, expected: dict[str, str]) -> None:
    found(rule, obj)
    assert amounts_of(obj) == expected


def noted(obj: Any, codes: str = "GPU101,GPU201", **metadata: Any) -> Any:
    """The same in the second round of the request that makes it: we have noted the first."""
    obj["metadata"].setdefault("annotations", {})["gpu-webhook.dev/repaired"] = codes
    obj["metadata"] |= metadata
    return obj


def forged(obj: Any) -> Any:
    written: Any = {"f:annotations": {"f:gpu-webhook.dev/repaired": {}}}
    obj["metadata"]["managedFields"].append({"fieldsV1": {"f:metadata": written}})
    return noted(obj)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            noted(sent(asking({LEGACY: "2", GPU: "3"}), LEGACY)),
            {GPU: "3"},
            id="another webhook writes a smaller amount under the legacy name",
        ),
        pytest.param(
            noted(sent(asking({LEGACY: "6", GPU: "3"}), LEGACY)), {GPU: "6"}, id="a larger one"
        ),
        pytest.param(
            noted(sent(asking({LEGACY: "0", GPU: "3"}), LEGACY)),
            {LEGACY: "0", GPU: "3"},
            id="none at all",
        ),
        pytest.param(
            noted(sent(asking({LEGACY: "1", GPU: "2"}, OF_GPU), LEGACY)),
            {GPU: "2"},
            id="where a LimitRange had set today's name before us",
        ),
        pytest.param(
            noted(sent(asking({LEGACY: "4", GPU: "2"}, OF_LEGACY), LEGACY)),
            {GPU: "2", LEGACY: "0"},
            id="LimitRanger writes the legacy name: its default",
        ),
        pytest.param(
            noted(sent(asking({LEGACY: "4", GPU: "2"}, OF_LEGACY), LEGACY, GPU)),
            {GPU: "2", LEGACY: "0"},
            id="LimitRanger writes the legacy name, and the author wrote 0 under today's",
        ),
        pytest.param(
            noted(sent(asking({LEGACY: "2", GPU: "3"}), LEGACY), "GPU201"),
            {GPU: "2"},
            id="we have translated no amount: the other one is a webhook's",
        ),
        pytest.param(
            noted(sent(asking({LEGACY: "2", GPU: "3"}), LEGACY), uid="u"),
            {GPU: "2"},
            id="a pod that is stored: what the author writes now counts",
        ),
        pytest.param(
            forged(sent(asking({LEGACY: "2", GPU: "3"}), LEGACY)),
            {GPU: "2"},
            id="the author wrote the note",
        ),
    ],
)
def test_in_the_second_round_nobody_gets_less_than_in_the_first(
    obj: Any, expected: dict[str, str]
) -> None:
    found(rule, obj)
    assert amounts_of(obj) == expected


@pytest.mark.parametrize("written", ["1", "3"])
def test_the_author_is_told_the_same_in_both_rounds(written: str) -> None:
    """The API server shows each text once; who wrote the name again is not the author."""
    (first,) = found(rule, sent(asking({LEGACY: "3"}), LEGACY))
    (second,) = found(rule, noted(sent(asking({LEGACY: written, GPU: "3"}), LEGACY)))
    assert second.message == first.message


def test_what_we_wrote_in_the_first_round_is_not_said_to_be_of_a_limit_range() -> None:
    """It sets the legacy name alone, and does so again."""
    amounts = {LEGACY: "1", GPU: "2"}
    names = ("cuda", "b")
    obj = pod(*(container({**amounts}, {**amounts}, name=each) for each in names))
    text = "LimitRanger plugin set: " + "; ".join(
        f"{LEGACY} {section} for container {each}"
        for each in names
        for section in ("request", "limit")
    )
    fields: Any = {f'k:{{"name":"{each}"}}': {"f:name": {}} for each in names}
    obj["metadata"]["managedFields"] = [{"fieldsV1": {"f:spec": {"f:containers": fields}}}]
    said = [each.message for each in found(rule, noted(limited(obj, text)))]
    assert all(each.startswith(f"a LimitRange adds 1 {LEGACY} to container ") for each in said)
    assert len(said) == len(names)


def test_each_container_for_itself() -> None:
    text = (
        f"LimitRanger plugin set: cpu, {GPU} request for container cuda; {GPU} limit for container "
        f"cuda; {LEGACY} request for init container cuda; {LEGACY} limit for init container cuda"
    )
    amounts = {LEGACY: "2", GPU: "4"}
    obj = limited(
        pod(container(amounts, amounts), initContainers=[container({**amounts}, {**amounts})]), text
    )
    found(rule, obj)
    assert amounts_of(obj) == {GPU: "2"}
    init = obj["spec"]["initContainers"][0]["resources"]
    assert init["limits"] == init["requests"] == {GPU: "4"}


def test_each_section_for_itself() -> None:
    obj = pod(container({LEGACY: "1", GPU: "1"}, {LEGACY: "2", GPU: "1"}))
    text = f"LimitRanger plugin set: {GPU} request for container cuda; {LEGACY}, {GPU} limit for "
    found(rule, limited(obj, f"{text}container cuda"))
    assert amounts_of(obj) == {GPU: "2"}


def test_a_limit_that_a_limit_range_added_to_a_request() -> None:
    obj = pod(container({LEGACY: "1"}, {LEGACY: "2"}))
    found(rule, limited(obj, f"LimitRanger plugin set: {LEGACY} limit for container cuda"))
    assert amounts_of(obj) == {GPU: "2"}


def test_a_limit_that_a_limit_range_added_to_a_request_for_none() -> None:
    obj = pod(container({LEGACY: "1"}, {LEGACY: "0"}), container({LEGACY: "2"}, name="b"))
    limited(obj, f"LimitRanger plugin set: {LEGACY} limit for container cuda")
    first, second = found(rule, obj)
    assert amounts_of(obj) == {LEGACY: "0"}
    assert obj["spec"]["containers"][1]["resources"]["limits"] == {GPU: "2"}
    assert first.message == (
        f"container cuda requests 0 GPUs, and 1 {LEGACY} of a LimitRange does not count: it is 0 "
        "now, which the API server refuses if the LimitRange has a min or a maxLimitRequestRatio "
        "of it"
    )
    assert second.message.startswith("container b ")


def test_the_sum_of_a_pod_is_without_a_container_that_wants_none() -> None:
    """A LimitRange sets the current name in each container, and may have a max for the pod."""
    names = ("a", "b", "cuda")
    obj = pod(
        *(container({LEGACY: each, GPU: "4"}, name=n) for each, n in zip("220", names, strict=True))
    )
    text = "; ".join(f"{GPU} limit for container {each}" for each in names)
    said = " ".join(each.message for each in found(rule, limited(obj, BOTH[:24] + text)))
    assert "for a whole pod is below 4," in said


@pytest.mark.parametrize(("amount", "left"), [("0", {LEGACY: "0"}), ("2", {GPU: "2"})])
def test_of_a_server_side_apply_managed_fields_name_the_limit_alone(
    amount: str, left: dict[str, str]
) -> None:
    obj = sent(asking({LEGACY: amount, "memory": "1Gi"}), LEGACY)
    [entry] = obj["metadata"]["managedFields"]
    _, fields = entry["fieldsV1"]["f:spec"]["f:containers"].values()
    del fields["f:resources"]["f:requests"]
    found(rule, obj)
    assert amounts_of(obj) == {"memory": "1Gi"} | left


def test_managed_fields_that_say_nothing() -> None:
    odd: list[Any] = [None, {"f:spec": 3}, {"f:spec": {"f:containers": {"k:[": {}, "k:3": 0}}}]
    for fields in odd:
        obj = asking({LEGACY: "2", GPU: "4"}, OF_GPU)
        obj["metadata"]["managedFields"] = [{"fieldsV1": fields}, "x"]
        found(rule, obj)
        assert amounts_of(obj) == {GPU: "2"}


@pytest.mark.parametrize(
    ("amounts", "text", "expected"),
    [
        pytest.param(
            {LEGACY: "2", GPU: "1"}, OF_GPU, "max is below 2", id="above the default: a max, maybe"
        ),
        pytest.param({LEGACY: "2", GPU: "0"}, OF_GPU, "max is below 2", id="above a default of 0"),
        pytest.param({LEGACY: "1", GPU: "2"}, OF_GPU, "min is above 1", id="below: a min, maybe"),
        pytest.param({LEGACY: "2", GPU: "2"}, OF_GPU, "", id="the default itself"),
        pytest.param({LEGACY: "2", GPU: "1"}, None, "", id="the author's: no LimitRange"),
        pytest.param(
            {GPU: "2", LEGACY: "1"},
            OF_LEGACY,
            "it is removed, and the API server refuses the pod if the LimitRange has any max or "
            "min of it",
            id="a legacy default below",
        ),
        pytest.param(
            {GPU: "2", LEGACY: "4"},
            OF_LEGACY,
            "refuses if the LimitRange has a min or a maxLimitRequestRatio",
            id="a legacy default above",
        ),
        pytest.param(
            {LEGACY: "2", SLICE: "1"},
            f"LimitRanger plugin set: {SLICE} request for container cuda; {SLICE} limit for "
            "container cuda",
            "refuses if the LimitRange has a min or a maxLimitRequestRatio",
            id="a slice that is 0 now",
        ),
    ],
)
def test_what_the_limit_range_may_refuse_is_said(
    amounts: dict[str, str], text: str | None, expected: str
) -> None:
    said = " ".join(each.message for each in found(rule, asking(amounts, text)))
    assert expected in said
    assert ("refuse" in said) is bool(expected)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param((), "", id="one container alone"),
        pytest.param(({"cpu": "1"},), "", id="another one without GPUs"),
        pytest.param(({LEGACY: "2", GPU: "2"},), "below 4", id="two of them"),
        pytest.param(({LEGACY: "3", GPU: "2"}, {GPU: "1"}), "below 6", id="three of them"),
    ],
)
def test_what_a_limit_range_may_refuse_of_a_whole_pod_is_said(
    others: tuple[dict[str, str], ...], expected: str
) -> None:
    """A LimitRange of type Pod sets nothing. That one of type Container does is all there is."""
    amounts = [{LEGACY: "2", GPU: "2"}, *others]
    names = ["cuda", "b", "c"]
    made = [container({**a}, {**a}, name=n) for a, n in zip(amounts, names, strict=False)]
    text = "LimitRanger plugin set: " + "; ".join(
        f"{GPU} {section} for container {n}" for n in names[:2] for section in ("request", "limit")
    )
    said = [e.message for e in found(rule, limited(pod(*made), text)) if "whole pod" in e.message]
    assert len(said) == bool(expected)
    assert expected in " ".join(said)


def test_nothing_is_said_of_a_limit_range_where_none_set_anything() -> None:
    again = sent(asking({LEGACY: "2", GPU: "2"}), LEGACY)  # our repair, and a webhook after it
    (said,) = found(rule, again)
    assert said.message == (
        f"container cuda requests {LEGACY}, which no node offers; write {GPU}: 2"
    )
    assert amounts_of(again) == {GPU: "2"}

    (said,) = found(rule, sent(asking({LEGACY: "2", GPU: "4"}), LEGACY))
    assert "and 4 nvidia.com/gpu of a webhook does not count" in said.message

    other = sent(asking({LEGACY: "2", GPU: "4"}), GPU)
    (said,) = found(rule, other)
    assert "LimitRange" not in said.message
    assert amounts_of(other) == {GPU: "4"}


@pytest.mark.parametrize("amount", [0, "0", None])
def test_what_is_merged_over_others_removes_their_amount_under_the_current_name(
    amount: Any,
) -> None:
    obj = pod(container(limits={LEGACY: amount}, requests={LEGACY: amount}))
    (finding,) = found(rule, obj, Context(Settings(), is_merged=True, in_manifest=True))
    assert finding.edits == edits(Rename, LIMITS, REQUESTS)
    beside_current = pod(container(limits={LEGACY: amount, GPU: 0}))
    (stays,) = found(rule, beside_current, Context(Settings(), is_merged=True, in_manifest=True))
    assert stays.severity is Severity.NOTICE
