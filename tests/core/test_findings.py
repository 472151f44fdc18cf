"""What a verdict says as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from webhook.core.edits import Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.modes import Mode
from webhook.kube.pointer import ROOT
from webhook.rules import ALL, is_legacy, is_repair

REPAIR = Finding("GPU101", ROOT, "repaired")
MANUAL = Finding("GPU101", ROOT, "look at it", severity=Severity.MANUAL)
DENY = Finding("GPU301", ROOT, "must not run", severity=Severity.DENY)


def test_a_finding_is_a_safe_repair_unless_it_says_otherwise() -> None:
    assert (REPAIR.edits, REPAIR.severity, REPAIR.safety) == ((), Severity.REPAIR, Safety.SAFE)
    assert (REPAIR.mode, REPAIR.exception) == (Mode.ENFORCE, "")


EDITED = replace(REPAIR, edits=(Set(ROOT / "a", 1),))
NOTICE = Finding("GPU302", ROOT, "full now", severity=Severity.NOTICE)


@pytest.mark.parametrize(
    ("finding", "enforced", "else_"),
    [
        pytest.param(EDITED, "repaired", "would repair", id="edits"),
        pytest.param(
            replace(EDITED, severity=Severity.MANUAL),
            "repaired",
            "would repair",
            id="edits, and a person must look too",
        ),
        pytest.param(
            replace(EDITED, safety=Safety.UNSAFE), "reported", "reported", id="edits left undone"
        ),
        pytest.param(REPAIR, "reported", "reported", id="no edits"),
        pytest.param(MANUAL, "reported", "reported", id="a person must look"),
        pytest.param(NOTICE, "reported", "reported", id="a notice"),
        pytest.param(DENY, "denied", "would deny", id="the pod must not run"),
        pytest.param(
            replace(DENY, edits=EDITED.edits),
            "denied",
            "would deny",
            id="a pod that must not run is not repaired first",
        ),
    ],
)
def test_one_word_says_what_came_of_a_finding(finding: Finding, enforced: str, else_: str) -> None:
    assert finding.action == enforced
    for mode in (Mode.AUDIT, Mode.WARN):
        assert replace(finding, mode=mode).action == else_
    for mode in (Mode.AUDIT, Mode.WARN, Mode.ENFORCE):
        assert replace(finding, mode=mode, exception="migrating").action == "excepted"


@pytest.mark.parametrize(
    ("finding", "is_remark"),
    [
        pytest.param(NOTICE, True, id="a notice"),
        pytest.param(REPAIR, True, id="a word beside another's repair"),
        pytest.param(EDITED, False, id="a repair"),
        pytest.param(replace(EDITED, safety=Safety.UNSAFE), False, id="a repair left undone"),
        pytest.param(MANUAL, False, id="a person must look"),
        pytest.param(DENY, False, id="the pod must not run"),
    ],
)
def test_a_remark_asks_nothing_of_anybody(finding: Finding, *, is_remark: bool) -> None:
    assert finding.is_remark is is_remark


@pytest.mark.parametrize(
    ("finding", "denies"),
    [
        pytest.param(REPAIR, False, id="all is repaired"),
        pytest.param(MANUAL, False, id="a person must look"),
        pytest.param(DENY, True, id="the pod must not run"),
        pytest.param(replace(DENY, mode=Mode.WARN), False, id="it would be denied"),
        pytest.param(replace(DENY, exception="migrating"), False, id="excepted"),
        pytest.param(NOTICE, False, id="worth knowing"),
    ],
)
def test_one_denies_that_is_enforced_and_not_excepted(finding: Finding, *, denies: bool) -> None:
    assert (finding.action == "denied") is denies


def test_the_rules_that_find_words_of_kubernetes_1_3_to_1_10() -> None:
    """A new rule of the family GPU1xx counts as legacy; one that does not must say so."""
    assert {rule.NAME for rule in ALL if not is_legacy(rule.CODE)} == {
        "fractional-amount",
        "request-without-limit",
        "unequal-amounts",
        "kind-case",
        "privileged-container",
        "unavailable-image",
        "unfinished-object",
        "missing-toleration",
        "driver-profile",
        "placement",
        "never-fits",
        "full-now",
        "leak-guard",
        "above-limit",
        "workload-too-large",
    }


def test_repairs_that_modern_pods_need() -> None:
    names = {rule.NAME for rule in ALL if is_repair(rule.CODE) and not is_legacy(rule.CODE)}
    assert names == {
        "unequal-amounts",
        "fractional-amount",
        "request-without-limit",
        "missing-toleration",
        "driver-profile",
        "placement",
    }
