"""Each pod gets its own answer: no review before it changes what it gets."""

from __future__ import annotations

import base64
import copy
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.admission.test_decide import Journal, labelling, raising
from tests.hostile.wire import gpu_pod, review
from tests.properties.pods import pods
from webhook.admission.decide import Decider
from webhook.admission.review import dump, parse
from webhook.core.settings import Settings
from webhook.rules import RULES
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    from collections.abc import Iterator

AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ONE_TERM = json.dumps(
    {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                ]
            }
        }
    }
)


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    fd = os.open(os.devnull, os.O_WRONLY)
    silent = Log(fd)
    yield silent
    silent.close()
    os.close(fd)


def annotated(**annotations: str) -> dict[str, Any]:
    pod = copy.deepcopy(gpu_pod())
    pod["metadata"]["annotations"] = {AFFINITY: ONE_TERM} | annotations
    return pod


def decider(log: Log) -> Decider:
    return Decider(RULES, Settings(), None, log)


def answer(to: Decider, pod: dict[str, Any]) -> Any:
    given = json.loads(to.answer("/mutate", parse(dump(review(pod)))))
    patch = given["response"].get("patch")
    return given | {"patch": json.loads(base64.b64decode(patch)) if patch else []}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(annotated(), annotated(**{APPLIED: "{}"}), id="applied after it was created"),
        pytest.param(annotated(**{APPLIED: "{}"}), annotated(), id="created after it was applied"),
        pytest.param(annotated(), annotated(note="x"), id="an annotation that no rule reads"),
        pytest.param(gpu_pod(), annotated(), id="an annotation that a rule reads"),
    ],
)
def test_a_pod_like_one_before_gets_its_own_patch(
    log: Log, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """The first two got each other's: all annotations removed, or an empty map left behind."""
    one = decider(log)
    answer(one, first)

    assert answer(one, second) == answer(decider(log), second)


@given(pods(), st.sampled_from(["name", "labels", "uid", "annotations", "managedFields"]))
def test_no_answer_depends_on_the_review_before(log: Log, pod: dict[str, Any], member: str) -> None:
    replica = copy.deepcopy(pod)
    if isinstance(replica.get("metadata"), dict):
        other = {"labels": {"a": "b"}, "annotations": {APPLIED: "{}"}, "managedFields": []}
        replica["metadata"][member] = other.get(member, "another")
    one = decider(log)
    answer(one, pod)

    assert answer(one, replica) == answer(decider(log), replica)


def test_a_rule_that_raises_is_asked_again_for_the_next_replica() -> None:
    journal = Journal(raising, labelling)

    answers = [journal.mutate() for _ in range(2)]

    assert answers[0]["patch"] == answers[1]["patch"]
    assert [line["outcome"] for line in journal.lines()] == ["failed", "patched"] * 2
