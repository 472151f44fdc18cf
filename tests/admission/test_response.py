"""Responses: what the API server accepts, and what a person can read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hostile.wire import gpu_pod, review
from webhook.admission import response
from webhook.admission.review import dump, parse
from webhook.core.edits import Remove
from webhook.core.findings import Finding, Safety, Severity
from webhook.kube.pointer import ROOT

REVIEW = parse(dump(review(gpu_pod())))
EDIT = (Remove(ROOT / "a"),)


MORE = "gpu-webhook: `gpu-webhook explain CODE` explains each code"


def finding(code: str = "GPU101", message: str = "m", **more: Any) -> Finding:
    return Finding(code, ROOT / "spec", message, **more)


def test_nothing_to_say_is_the_least_that_is_valid() -> None:
    assert json.loads(response.answer(REVIEW)) == {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "response": {"uid": REVIEW.uid, "allowed": True},
    }


def test_a_patch_comes_with_its_type() -> None:
    body = json.loads(
        response.answer(REVIEW, patch=b"[]", warnings=["w"], audit={"gpu101": "repaired"})
    )
    assert body["response"] == {
        "uid": REVIEW.uid,
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": "W10=",
        "warnings": ["w"],
        "auditAnnotations": {"gpu101": "repaired"},
    }


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("write this", "GPU101: write this", id="as it is"),
        pytest.param("a\r\n\tb", "GPU101: a b", id="one line"),
        pytest.param("a\x1b[31mb\x00", "GPU101: a [31mb ", id="no control characters"),
        pytest.param("a\u202eb\u2028", "GPU101: a b ", id="no directions, no line separators"),
        pytest.param("a\ud800b", "GPU101: a b", id="no lone surrogates"),
        pytest.param("ü😀", "GPU101: ü😀", id="other letters stay"),
        pytest.param("x" * 248, "GPU101: " + "x" * 248, id="256 characters"),
        pytest.param("x" * 249, "GPU101: " + "x" * 247 + "…", id="257 characters are cut"),
    ],
)
def test_a_warning_is_one_line_of_256_characters(message: str, expected: str) -> None:
    assert response.warning("GPU101", message) == expected
    assert response.answer(REVIEW, warnings=[response.warning("GPU101", message)])


def test_the_same_warning_is_given_once() -> None:
    texts = response.warnings_of([finding()] * 3, "")
    assert texts == ["GPU101: m [enforce: reported]", MORE]


@pytest.mark.parametrize(
    ("count", "last"),
    [
        pytest.param(10, "GPU101: 9 [enforce: reported]", id="10 are all shown"),
        pytest.param(
            11, "GPU101: and 1 more; see `gpu-webhook review` on the manifest", id="11 are not"
        ),
    ],
)
def test_many_warnings_are_counted(count: int, last: str) -> None:
    texts = response.warnings_of([finding(message=str(n)) for n in range(count)], "")
    assert texts[-2:] == [last, MORE]
    assert len(texts) == min(count, 11) + 1


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param([finding(edits=EDIT)], {"gpu101": "enforce: repaired"}, id="repaired"),
        pytest.param(
            [finding(severity=Severity.MANUAL)], {"gpu101": "enforce: reported"}, id="reported only"
        ),
        pytest.param(
            [finding(edits=EDIT, safety=Safety.UNSAFE)],
            {"gpu101": "enforce: reported"},
            id="edits that are only shown",
        ),
        pytest.param(
            [finding(edits=EDIT), finding()],
            {"gpu101": "enforce: repaired"},
            id="both, repaired first",
        ),
        pytest.param(
            [finding(), finding(edits=EDIT)],
            {"gpu101": "enforce: repaired"},
            id="both, reported first",
        ),
        pytest.param(
            [finding("GPU102"), finding(edits=EDIT)],
            {"gpu101": "enforce: repaired", "gpu102": "enforce: reported"},
            id="two codes",
        ),
    ],
)
def test_audit_annotations(findings: list[Finding], expected: dict[str, str]) -> None:
    assert response.audit_of(findings) == expected
