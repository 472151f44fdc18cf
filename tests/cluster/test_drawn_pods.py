"""Pods drawn from the API server's schema: its patched pod is the one that we meant."""

from __future__ import annotations

import base64
import collections
import copy
import itertools
import re
from typing import TYPE_CHECKING

import jsonpatch
import orjson
import pytest
from hypothesis import HealthCheck, given, settings

from tests.cluster.build import RELEASE
from tests.cluster.pods import named
from tests.properties.pods import pods as pods_as_written
from tests.schema import openapi
from tests.schema.pods import any_pods, likely_pods

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import strategies as st

    from tests.cluster.client import Answer, Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Call, Recorder

# The fixtures live as long as the test; a drawn pod is only dry-run, so nothing is left behind.
_RELAXED = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
_BAD_REQUEST = 400


@pytest.mark.skipif(RELEASE != openapi.RELEASE, reason=f"the schema is that of {openapi.RELEASE}")
def test_the_stored_schema_is_what_the_api_server_serves(cluster: ControlPlane) -> None:
    assert openapi.served(cluster.client) == openapi.stored()


def test_pods_that_are_called_likely_are_mostly_accepted(
    cluster: ControlPlane, namespace: str
) -> None:
    answers: list[Answer] = []

    @settings(_RELAXED, max_examples=100, derandomize=True)
    @given(pod=likely_pods())
    def draw(pod: Json) -> None:
        answers.append(cluster.client.try_create(pod, namespace, dry_run=True))

    draw()
    accepted = [answer for answer in answers if answer.ok]
    assert len(accepted) / len(answers) > 0.7


@pytest.mark.parametrize(
    ("pods", "invented", "share"),
    [
        pytest.param(any_pods, set(), 0.8, id="drawn from the schema"),
        # One in five has an amount that is none, which stops the API server's decoder.
        pytest.param(
            pods_as_written, {"futureThing", "futureField"}, 0.5, id="as people wrote them"
        ),
    ],
)
def test_pods_of_any_fields_can_be_decoded(
    pods: Callable[[], st.SearchStrategy[Json]],
    invented: set[str],
    share: float,
    cluster: ControlPlane,
    namespace: str,
) -> None:
    """They break rules of validation, but the fields and types are those of the API server."""
    answers: list[Answer] = []

    @settings(_RELAXED, max_examples=100, derandomize=True)
    @given(pod=pods())
    def draw(pod: Json) -> None:
        answers.append(cluster.client.try_create(pod, namespace, dry_run=True))

    draw()
    decoded = [answer for answer in answers if answer.status != _BAD_REQUEST]
    assert len(decoded) / len(answers) > share
    said = " ".join(warning for answer in answers for warning in answer.warnings)
    unknown = re.findall(r'unknown field "(?:[^"]*\.)?([^".]+)"', said)
    if RELEASE == openapi.RELEASE:  # an older one does not know the newest fields
        assert set(unknown) <= invented


def test_jsonpatch_and_the_api_server_make_the_same_pod(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    """Through the webhook, and patched here and sent where the webhook is not called."""
    silent = cluster.make_namespace(f"{namespace}-silent", {"gpu-webhook.dev/ignore": "true"})
    numbers = itertools.count()
    seen: collections.Counter[str] = collections.Counter()

    @settings(_RELAXED, max_examples=250)
    @given(pod=likely_pods() | pods_as_written())
    def compare(pod: Json) -> None:
        name = f"drawn-{next(numbers)}"
        through = cluster.client.try_create(named(pod, name), namespace, dry_run=True)
        calls = [call for call in webhook.calls(namespace) if call.is_about[1] == name]
        seen["accepted" if through.ok else "refused"] += 1
        if not calls:
            seen["not called"] += 1
            return
        seen["patched"] += "patch" in calls[0].response
        assert len(calls) == 1, "nothing changed the pod after us, so there is no second round"
        ours = _in_namespace(_patched(calls[0]), silent)
        direct = cluster.client.try_create(ours, silent, dry_run=True)

        assert direct.ok == through.ok, (through.message, direct.message)
        if through.ok:
            assert _meaning(through.body) == _meaning(direct.body)
            _assert_stable(cluster, webhook, direct.body, namespace)
        else:
            untouched = cluster.client.try_create(named(pod, name), silent, dry_run=True)
            assert not untouched.ok, f"refused only because of us: {through.message}"

    compare()
    print(dict(seen))  # noqa: T201 - how many were judged
    assert seen["patched"] >= 50
    assert seen["accepted"] >= 50


def _assert_stable(
    cluster: ControlPlane, webhook: Recorder, repaired: Json, namespace: str
) -> None:
    """Send a repaired pod, with all its defaults, once more: there is nothing left to do."""
    again = f"again-{repaired['metadata']['name']}"
    cluster.client.create(_in_namespace(named(repaired, again), namespace), namespace, dry_run=True)
    for call in webhook.calls(namespace, again):
        assert "patch" not in call.response, call.response


def _patched(call: Call) -> Json:
    patch = orjson.loads(base64.b64decode(call.response.get("patch", "W10=")))
    patched: Json = jsonpatch.apply_patch(copy.deepcopy(call.pod), patch)
    return patched


def _in_namespace(pod: Json, namespace: str) -> Json:
    """Give the pod as a client would send it: what the API server itself wrote is left out."""
    written = ("namespace", "uid", "creationTimestamp", "managedFields", "generation")
    metadata = {key: value for key, value in pod["metadata"].items() if key not in written}
    return {**pod, "metadata": {**metadata, "namespace": namespace}}


def _meaning(pod: Json) -> Json:
    metadata = pod["metadata"]
    return {
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        "spec": pod["spec"],
    }
