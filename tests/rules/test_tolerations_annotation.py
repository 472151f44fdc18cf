from __future__ import annotations

import copy
import json
from functools import partial
from typing import Any

import pytest

from tests.rules.pods import ANNOTATIONS, SPEC, found, legacy_pod, modern_pod
from webhook.core.edits import Append, Remove
from webhook.core.findings import Finding, Severity
from webhook.rules import tolerations_annotation as rule

KEY = "scheduler.alpha.kubernetes.io/tolerations"
AT = ANNOTATIONS / KEY
TO = SPEC / "tolerations"

repaired = partial(Finding, rule.CODE)
reported = partial(Finding, rule.CODE, severity=Severity.MANUAL)

CRITICAL = {"key": "CriticalAddonsOnly", "operator": "Exists"}
DEDICATED = {"key": "dedicated", "value": "gpu-task"}
NARROW = {"key": "dedicated", "operator": "Equal", "value": "gpu-task", "effect": "NoSchedule"}
SHORT = {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}


def moved(*tolerations: Any) -> Finding:
    message = (
        "the tolerations annotation has had no effect since Kubernetes 1.6; it is spec.tolerations "
        "now: move it there"
    )
    return repaired(AT, message, (*(Append(TO, each) for each in tolerations), Remove(AT)))


def malformed(why: str) -> Finding:
    message = (
        f"the tolerations annotation is malformed ({why}) and would have the pod refused; "
        "it is removed: write spec.tolerations"
    )
    return reported(AT, message, (Remove(AT),))


WHOLE = "an entry.tolerationSeconds must be a whole number (int64)"
NOTHING = repaired(
    AT, "the tolerations annotation adds nothing to spec.tolerations: delete it", (Remove(AT),)
)
KEYLESS = reported(
    AT,
    "a toleration without a key tolerates every taint today, and was refused when the annotation "
    "counted: it is left out; write it into spec.tolerations if it is meant",
)


@pytest.mark.parametrize(
    ("annotation", "there", "expected"),
    [
        pytest.param(None, [], [NOTHING], id="null on purpose (pattern 7): removed"),
        pytest.param("", [], [NOTHING], id="empty: removed"),
        pytest.param("null", [], [NOTHING], id="the JSON null: removed"),
        pytest.param("[]", [], [NOTHING], id="an empty list: removed"),
        pytest.param([CRITICAL, DEDICATED], None, [moved(CRITICAL, DEDICATED)], id="taken over"),
        pytest.param(
            [DEDICATED],
            [NARROW],
            [moved(DEDICATED)],
            id="the same key without an effect is broader, not a double",
        ),
        pytest.param(
            [CRITICAL],
            [{"operator": "Exists", "effect": "NoSchedule"}],
            [moved(CRITICAL)],
            id="annotation and field that differ (pattern 12): the union",
        ),
        pytest.param([NARROW], [NARROW], [NOTHING], id="an exact double of the field: once"),
        pytest.param(
            [NARROW],
            [{**NARROW, "tolerationSeconds": None, "value": "gpu-task"}],
            [NOTHING],
            id="an exact double that spells its nulls",
        ),
        pytest.param(
            [CRITICAL], [{**CRITICAL, "effect": "", "value": ""}], [NOTHING], id="empty is absent"
        ),
        pytest.param([CRITICAL, CRITICAL], [], [moved(CRITICAL)], id="an exact double of its own"),
        pytest.param([SHORT], [], [moved(SHORT)], id="seconds"),
        pytest.param(
            [SHORT],
            [{**SHORT, "tolerationSeconds": 30}],
            [moved(SHORT)],
            id="other seconds: no double",
        ),
        pytest.param(
            [{"Key": "a", "OPERATOR": "Exists", "effect": None, "since": "1.4"}],
            [],
            [moved({"key": "a", "operator": "Exists"})],
            id="member names in any case, nulls and unknown members are passed over",
        ),
        pytest.param(
            [{"operator": "Exists"}, CRITICAL],
            [],
            [KEYLESS, moved(CRITICAL)],
            id="without a key: refused then, everything today, so it is left out",
        ),
        pytest.param(
            "x", [], [malformed("Expecting value: line 1 column 1 (char 0)")], id="no JSON"
        ),
        pytest.param({"key": "a"}, [], [malformed("it is no JSON list")], id="no list"),
        pytest.param(
            '["a"]', [], [malformed("an entry must be an object")], id="an entry is no object"
        ),
        pytest.param(
            "[null]",
            [],
            [malformed("an entry without a key must have the operator Exists")],
            id="a null entry is an empty one",
        ),
        pytest.param("[NaN]", [], [malformed("NaN is not JSON")], id="not a number"),
        pytest.param("[" * 100_000, [], [malformed("it is too deeply nested")], id="far too deep"),
        pytest.param([{"key": 1}], [], [malformed("an entry.key must be a text")], id="a number"),
        pytest.param(
            [{**SHORT, "tolerationSeconds": "60"}],
            [],
            [malformed(WHOLE)],
            id="a text for a number",
        ),
        pytest.param(
            [{**SHORT, "tolerationSeconds": 2**63 - 1}, {**SHORT, "tolerationSeconds": -(2**63)}],
            [],
            [
                moved(
                    {**SHORT, "tolerationSeconds": 2**63 - 1},
                    {**SHORT, "tolerationSeconds": -(2**63)},
                )
            ],
            id="the most and the fewest seconds",
        ),
        *(
            pytest.param(
                [{**SHORT, "tolerationSeconds": seconds}],
                [],
                [malformed(WHOLE)],
                id=f"{seconds} seconds: no int64",
            )
            for seconds in (2**63, -(2**63) - 1, 10**300, True, 5.0)
        ),
        pytest.param([{"key": "a b"}], [], [malformed("'a b' is no taint key")], id="a bad key"),
        pytest.param(
            [{"key": "a", "operator": "Is"}],
            [],
            [malformed("'Is' is not an operator")],
            id="a bad operator",
        ),
        pytest.param(
            [{"value": "b"}],
            [],
            [malformed("an entry without a key must have the operator Exists")],
            id="neither key nor Exists",
        ),
        pytest.param(
            [{**CRITICAL, "value": "b"}],
            [],
            [malformed("an entry with the operator Exists has a value")],
            id="Exists with a value",
        ),
        pytest.param(
            [{"key": "a", "value": "b c"}],
            [],
            [malformed("'b c' is no taint value")],
            id="a bad value",
        ),
        pytest.param(
            [{"key": "a", "effect": "Never"}],
            [],
            [malformed("'Never' is no effect")],
            id="a bad effect",
        ),
        pytest.param(
            [{**SHORT, "effect": "NoSchedule"}],
            [],
            [malformed("tolerationSeconds needs the effect NoExecute")],
            id="seconds without NoExecute",
        ),
    ],
)
def test_tolerations_annotation(annotation: Any, there: Any, expected: list[Finding]) -> None:
    """On pods that run as well: a toleration constrains nothing, a malformed one rejects them."""
    text = json.dumps(annotation) if isinstance(annotation, list | dict) else annotation
    assert found(rule, legacy_pod({KEY: text}, tolerations=copy.deepcopy(there))) == expected
    assert found(rule, modern_pod({KEY: text}, tolerations=copy.deepcopy(there))) == expected


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(legacy_pod(tolerations=[NARROW]), id="no annotation: untouched"),
        pytest.param(
            legacy_pod({"scheduler.alpha.kubernetes.io/tolerationsWhitelist": "x"}),
            id="an annotation of Namespaces, which is alive: untouched",
        ),
    ],
)
def test_pods_that_are_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


def test_a_yaml_list_is_no_text() -> None:
    assert found(rule, legacy_pod({KEY: [CRITICAL]})) == [malformed("it is not a string")]
