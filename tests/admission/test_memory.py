"""Replicas are judged once; nothing that a rule reads may be taken for something else."""

from __future__ import annotations

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
from webhook.admission import memory
from webhook.admission.decide import Decider
from webhook.admission.memory import Memory, Outcome, key_of
from webhook.admission.review import dump, parse
from webhook.core.settings import Settings
from webhook.rules import RULES
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    fd = os.open(os.devnull, os.O_WRONLY)
    silent = Log(fd)
    yield silent
    silent.close()
    os.close(fd)


def key(pod: dict[str, Any], namespace: str = "default") -> bytes:
    found = parse(dump(review(pod, namespace=namespace)))
    return key_of(found, found.request["object"])


def changed(**metadata: Any) -> dict[str, Any]:
    pod = copy.deepcopy(gpu_pod())
    pod["metadata"].update(metadata)
    return pod


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(changed(name="another"), id="another name"),
        pytest.param(changed(generateName="a-"), id="a generated name"),
        pytest.param(changed(labels={"a": "b"}), id="other labels"),
        pytest.param(
            changed(annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"}),
            id="what kubectl applied",
        ),
        pytest.param(changed(managedFields=[{"time": "now"}]), id="other managed fields"),
    ],
)
def test_what_no_rule_reads_does_not_count(pod: dict[str, Any]) -> None:
    plain = changed(annotations={}) if "annotations" in pod["metadata"] else gpu_pod()
    assert key(pod) == key(plain)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(changed(annotations={"a": "b"}), id="an annotation"),
        pytest.param(changed(ownerReferences=[{"kind": "DaemonSet"}]), id="an owner"),
        pytest.param({**gpu_pod(), "spec": {**gpu_pod()["spec"], "x": 1}}, id="the spec"),
    ],
)
def test_what_a_rule_may_read_counts(pod: dict[str, Any]) -> None:
    assert key(pod) != key(gpu_pod())


def test_the_namespace_counts() -> None:
    assert key(gpu_pod(), "a") != key(gpu_pod(), "b")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(changed(annotations={"a": "x" * memory.LARGEST_KEY}), id="a large key"),
        pytest.param(changed(labels={"a": "x" * memory.LARGEST_BODY}), id="a large body"),
        pytest.param(changed(annotations={"a": "\ud800"}), id="half a character"),
        pytest.param(changed(annotations={"a": 10**30}), id="a long number"),
    ],
)
def test_what_is_too_much_or_cannot_be_written_is_not_remembered(pod: dict[str, Any]) -> None:
    assert key(pod) == b""


def test_the_oldest_goes_first_and_use_keeps_young() -> None:
    known = Memory()
    lasting = Outcome("", lasts=True)
    for number in range(memory.MOST):
        known.keep(b"%d" % number, lasting)
    assert known.recall(b"0") is lasting
    known.keep(b"new", lasting)

    assert len(known) == memory.MOST
    assert known.recall(b"0") is lasting
    assert known.recall(b"1") is None


def test_nothing_is_kept_without_a_key_or_after_a_fault() -> None:
    known = Memory()
    known.keep(b"", Outcome("", lasts=True))
    known.keep(b"k", Outcome("refused"))

    assert len(known) == 0


def test_a_rule_that_raises_is_asked_again_for_the_next_replica() -> None:
    journal = Journal(raising, labelling)

    answers = [journal.mutate() for _ in range(2)]

    assert answers[0]["patch"] == answers[1]["patch"]
    assert [line["outcome"] for line in journal.lines()] == ["failed", "patched"] * 2


def test_every_replica_has_its_line_in_the_log() -> None:
    journal = Journal()
    for name in ("a", "b"):
        journal.mutate(changed(name=name))

    lines = journal.lines()

    assert [(line["name"], line["outcome"]) for line in lines] == [
        ("a", "patched"),
        ("b", "patched"),
    ]


@given(pods(), st.sampled_from(["name", "labels", "uid"]))
def test_a_remembered_answer_is_the_answer(log: Log, pod: dict[str, Any], member: str) -> None:
    replica = copy.deepcopy(pod)
    if isinstance(replica.get("metadata"), dict):
        replica["metadata"][member] = {"a": "b"} if member == "labels" else "another"
    first, second = (dump(review(each)) for each in (pod, replica))
    knowing = Decider(RULES, Settings(), None, log)
    knowing.mutate(parse(first))

    remembered = json.loads(knowing.mutate(parse(second)))

    assert remembered == json.loads(Decider(RULES, Settings(), None, log).mutate(parse(second)))
