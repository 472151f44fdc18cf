from __future__ import annotations

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
from webhook.core.edits import Remove, Rename
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.rules import legacy_resource as rule

if TYPE_CHECKING:
    from webhook.core.edits import Edit
    from webhook.core.pointer import Path

OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-gpu"
SHARED = "nvidia.com/gpu.shared"
SLICE = "nvidia.com/mig-1g.5gb"

repaired = partial(Finding, rule.CODE)
reported = partial(Finding, rule.CODE, severity=Severity.PERSON)


def edits(verb: type[Rename | Remove], *sections: Path, name: str = LEGACY) -> tuple[Edit, ...]:
    if verb is Rename:
        return tuple(Rename(section / name, GPU) for section in sections)
    return tuple(Remove(section / name) for section in sections)


def renamed(*sections: Path, amount: Any = "2", who: str = "cuda") -> Finding:
    message = f"container {who} asks for {LEGACY}, which no node offers; write {GPU}: {amount}"
    return repaired(sections[0] / LEGACY, message, edits(Rename, *sections))


def beside(*sections: Path, legacy: str, counts: str, name: str = LEGACY) -> Finding:
    message = (
        f"container cuda asks for {legacy} {name} beside {counts}, which counts alone: "
        "delete the former"
    )
    return repaired(sections[0] / name, message, edits(Remove, *sections, name=name))


ZERO = f"container cuda asks for 0 {LEGACY}: no GPU; delete the line"


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
            [renamed(REQUESTS)],
            id="request only: renamed, the limit is GPU103's",
        ),
        pytest.param(
            {LEGACY: "2"},
            {LEGACY: "1"},
            [renamed(LIMITS, REQUESTS)],
            id="limit and request differ: both renamed, GPU104 makes them equal",
        ),
        pytest.param(
            {LEGACY: "500m"},
            None,
            [renamed(LIMITS, amount=1)],
            id="fraction: renamed, the whole amount is named, GPU102 rounds it",
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
            [repaired(LIMITS / LEGACY, ZERO, edits(Remove, LIMITS, REQUESTS))],
            id="zero meant no GPU: dropped",
        ),
        pytest.param(
            {LEGACY: 0, "cpu": 16},
            {LEGACY: 0, "cpu": 16},
            [repaired(LIMITS / LEGACY, ZERO, edits(Remove, LIMITS, REQUESTS))],
            id="zero of a generated CPU variant (pattern 3): dropped",
        ),
        pytest.param(
            {LEGACY: "0.0"},
            None,
            [repaired(LIMITS / LEGACY, ZERO, edits(Remove, LIMITS))],
            id="zero in another form: dropped",
        ),
        pytest.param(
            {LEGACY: "0"},
            {LEGACY: "1"},
            [repaired(LIMITS / LEGACY, ZERO, edits(Remove, LIMITS, REQUESTS))],
            id="zero limit, positive request: kubelets gave devices by limit, so none",
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
            [beside(LIMITS, REQUESTS, legacy="1", counts=f"2 {GPU}")],
            id="today's name in the request only: it still wins",
        ),
        pytest.param(
            {LEGACY: "2", GPU: "0"},
            None,
            [beside(LIMITS, legacy="2", counts=f"0 {GPU}")],
            id="today's name with zero: it wins too, and the warning says so",
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
            [
                reported(
                    LIMITS / LEGACY,
                    f"container cuda asks for 'many' {LEGACY}, which is no amount of GPUs: mend it",
                )
            ],
            id="no quantity: left for a person",
        ),
        pytest.param(
            {LEGACY: "-1"},
            None,
            [
                reported(
                    LIMITS / LEGACY,
                    f"container cuda asks for '-1' {LEGACY}, which is no amount of GPUs: mend it",
                )
            ],
            id="a negative amount: left for a person",
        ),
        pytest.param(
            {LEGACY: ""},
            {LEGACY: "1"},
            [
                reported(
                    LIMITS / LEGACY,
                    f"container cuda asks for '' {LEGACY}, which is no amount of GPUs: mend it",
                )
            ],
            id="a limit that is no quantity beside a request: both are left",
        ),
        pytest.param(
            {LEGACY: {"volumes": []}},
            None,
            [
                reported(
                    LIMITS / LEGACY,
                    f"container cuda asks for \"{{'volumes': []}}\" {LEGACY}, "
                    "which is no amount of GPUs: mend it",
                )
            ],
            id="a map of mounts (pattern 6) is never a quantity",
        ),
    ],
)
def test_legacy_resource(limits: Any, requests: Any, expected: list[Finding]) -> None:
    assert found(rule, pod(container(limits, requests))) == expected


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
    message = "container cuda asks for {}, which no node offers; write {}: 1"
    assert found(rule, pod(container({OPAQUE: "1"})), cx) == [
        repaired(
            LIMITS / OPAQUE, message.format(OPAQUE, SHARED), (Rename(LIMITS / OPAQUE, SHARED),)
        )
    ]
    assert found(rule, pod(container({OPAQUE: "2", LEGACY: "1"})), cx) == [
        repaired(
            LIMITS / LEGACY, message.format(LEGACY, SHARED), (Rename(LIMITS / LEGACY, SHARED),)
        ),
        beside(LIMITS, legacy="2", counts=f"1 {LEGACY}", name=OPAQUE),
    ]


def test_a_legacy_name_that_counts_gpus_today_does_not_win_over_itself() -> None:
    cx = Context(Settings(legacy_resources=(GPU,), gpu_resource=SHARED))
    message = f"container cuda asks for {GPU}, which no node offers; write {SHARED}: 1"
    assert found(rule, pod(container({GPU: "1"})), cx) == [
        repaired(LIMITS / GPU, message, (Rename(LIMITS / GPU, SHARED),))
    ]


def test_a_pod_as_a_whole_cannot_ask_for_gpus() -> None:
    obj = legacy_pod(resources={"limits": {LEGACY: "1", "cpu": "2"}})
    message = (
        f"the pod as a whole asks for {LEGACY}: GPUs can only be asked for by a container; "
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
