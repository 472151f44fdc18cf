"""What a verdict says as a whole."""

from __future__ import annotations

import pytest

from webhook.core.findings import Finding, Safety, Severity, Verdict
from webhook.core.pointer import ROOT

REPAIR = Finding("GPU101", ROOT, "repaired")
PERSON = Finding("GPU101", ROOT, "look at it", severity=Severity.PERSON)
DENY = Finding("GPU301", ROOT, "must not run", severity=Severity.DENY)
FAILED = (("GPU101", ValueError("a bug")),)


def test_a_finding_is_a_safe_repair_unless_it_says_otherwise() -> None:
    assert (REPAIR.edits, REPAIR.severity, REPAIR.safety) == ((), Severity.REPAIR, Safety.SAFE)


@pytest.mark.parametrize(
    ("verdict", "denied", "needs_person"),
    [
        pytest.param(Verdict((), {}, []), False, False, id="nothing was found"),
        pytest.param(Verdict((REPAIR,), {}, []), False, False, id="all is repaired"),
        pytest.param(Verdict((REPAIR, PERSON), {}, []), False, True, id="a person must look"),
        pytest.param(Verdict((REPAIR, DENY), {}, []), True, False, id="the pod must not run"),
        pytest.param(Verdict((), {}, [], FAILED), False, True, id="a rule failed"),
    ],
)
def test_a_verdict_sums_its_findings_up(
    verdict: Verdict, *, denied: bool, needs_person: bool
) -> None:
    assert (verdict.denied, verdict.needs_person) == (denied, needs_person)
