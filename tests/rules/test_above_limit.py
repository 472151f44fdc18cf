from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.rules.pods import GPU, SPEC, container, found, pod
from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode, Modes
from webhook.core.namespace_selection import Selection
from webhook.core.rule import Context
from webhook.core.settings import Capacity, Limit, Settings
from webhook.rules import above_limit as rule

SLICE = "nvidia.com/mig-1g.5gb"
LIMITS = (
    Limit({GPU: 4}),
    Limit({GPU: 64, SLICE: 1}, Selection(namespaces=("train-*",))),
    Limit({GPU: 0}, Selection(labels=(("gpus", "none"),))),
)
CX = Context(
    Settings(capacity=Capacity(equivalent_schedulers=("volcano",), limits=LIMITS)),
    namespace="team",
    modes=Modes(Mode.ENFORCE),
)
TRAIN = replace(CX, namespace="train-a")
UNKNOWN = replace(CX, labels_unknown=True)
NO_GPUS = replace(CX, namespace_labels={"gpus": "none"})

denied = partial(Finding, rule.CODE, SPEC, severity=Severity.DENY)
warned = partial(Finding, rule.CODE, SPEC, severity=Severity.MANUAL)

PER_POD = "This limit is per pod; sums per namespace are ResourceQuota's."
FIVE = (
    "requests 5 nvidia.com/gpu; the limit for a pod in the namespace team is 4. Ask for 4 or split "
    f"the work. {PER_POD}"
)

LARGE = FIVE.replace("requests 5 ", "requests 2^63 or more ")


def asks(amount: int | str, name: str = GPU, **spec: Any) -> Any:
    return pod(container({name: str(amount)}), **spec)


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        pytest.param(asks(99), Context(), [], id="no limit is set: untouched"),
        pytest.param(asks(4), CX, [], id="just the limit: untouched"),
        pytest.param(asks(99, SLICE), CX, [], id="no limit for that name here: untouched"),
        pytest.param(asks(5), CX, [denied(FIVE)], id="above the limit: denied"),
        pytest.param(
            pod(container({GPU: "3"}), container({GPU: "2"}, name="b")),
            CX,
            [denied(FIVE)],
            id="it is what the whole pod asks",
        ),
        pytest.param(asks(64), TRAIN, [], id="an exception stands after what it is made from"),
        pytest.param(
            pod(container({GPU: "65", SLICE: "2"})),
            TRAIN,
            [
                denied(
                    "requests 65 nvidia.com/gpu; the limit for a pod in the namespace train-a is "
                    f"64. Ask for 64 or split the work. {PER_POD}"
                ),
                denied(
                    "requests 2 nvidia.com/mig-1g.5gb; the limit for a pod in the namespace "
                    f"train-a is 1. Ask for 1 or split the work. {PER_POD}"
                ),
            ],
            id="each name has its limit",
        ),
        pytest.param(
            asks(1),
            NO_GPUS,
            [
                denied(
                    "requests 1 nvidia.com/gpu; the limit for a pod in the namespace team is 0. "
                    f"Use another namespace. {PER_POD}"
                )
            ],
            id="a namespace without GPUs, by its label",
        ),
        pytest.param(
            asks(1),
            UNKNOWN,
            [
                denied(
                    "requests 1 nvidia.com/gpu; the limit for a pod in the namespace team is 0. "
                    f"Use another namespace. {PER_POD}"
                )
            ],
            id="its labels are not known: the lowest limit that may be for it",
        ),
        pytest.param(
            asks(9, SLICE),
            replace(UNKNOWN, namespace="web"),
            [],
            id="its labels are not known, and no limit for that name is for any label",
        ),
        pytest.param(
            asks(5),
            replace(CX, template=True),
            [denied(FIVE)],
            id="a template: so will its pods be",
        ),
        pytest.param(
            asks(5, schedulerName="other"), CX, [denied(FIVE)], id="another scheduler: denied"
        ),
        pytest.param(
            asks(5, schedulerName="volcano"), CX, [denied(FIVE)], id="a listed scheduler: denied"
        ),
        pytest.param(asks(5, nodeName="a"), CX, [denied(FIVE)], id="on a node: denied"),
        pytest.param(
            asks(5, schedulingGates=[{"name": "x.y/z"}]), CX, [denied(FIVE)], id="gated: denied"
        ),
        pytest.param(
            asks(5)
            | {"metadata": {"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}},
            CX,
            [denied(FIVE)],
            id="of a DaemonSet, real or claimed: denied",
        ),
        pytest.param(asks(5, os={"name": "windows"}), CX, [denied(FIVE)], id="for Windows: denied"),
        pytest.param(asks("4e0"), CX, [], id="four in another way: untouched"),
        pytest.param(asks("4001m"), CX, [denied(FIVE)], id="a little more than four: denied"),
        *(
            pytest.param(asks(amount), CX, [denied(LARGE)], id=f"{amount[:20]} is large: denied")
            for amount in (
                str(2**63),
                str(2**64 + 1),  # one device to the scheduler, which reads 64 bits
                "1e19",
                "1e400",
                str(10**400 + 8),
                "1" + "0" * 5000,
            )
        ),
        pytest.param(
            pod(*(container({GPU: str(2**62)}, name=name) for name in "abcd")),
            CX,
            [denied(LARGE)],
            id="amounts that add up to none in 64 bits: denied",
        ),
    ],
)
def test_above_limit(obj: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, obj, cx) == expected
