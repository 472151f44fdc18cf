"""What holds for every review: P1, P7, P13 and P14, at the endpoint, and the core's side of P7."""

from __future__ import annotations

import base64
import json
import os
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.engine import run
from tests.properties.clusters import SETTINGS, clusters
from tests.properties.pods import JUNK, LEGACY, broken_pods, plain_pods, pods
from webhook.admission.decide import Decider
from webhook.admission.endpoint import JSON, Endpoint
from webhook.capacity.nodes import Inventory
from webhook.core.repaired_annotation import annotate
from webhook.core.rule import Context
from webhook.rules import RULES
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.properties.clusters import Cluster
    from webhook.admission.endpoint import Answer
    from webhook.core.settings import Settings

    Raw = dict[str, Any]

MOST_PATCH, MOST_POD = 64 * 1024, 1_500_000  # P13
V1 = "admission.k8s.io/v1"


class Unread(Inventory):
    """An inventory that fails whoever reads it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "namespaces":  # their modes are asked for before anything else
            return {}
        raise AssertionError(f"the inventory was read ({name})")


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    with Path(os.devnull).open("wb") as nowhere:
        log = Log(nowhere.fileno())
        yield log
        log.close()


def endpoint(log: Log, context: Context | None = None) -> Endpoint:
    cx = context or Context()
    return Endpoint(Decider(RULES, cx.settings, cx.inventory, log), lambda: "")


def review(pod: object, **request: Any) -> Raw:
    return {
        "apiVersion": V1,
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "",
            "namespace": "default",
            "operation": "CREATE",
            "object": pod,
            "oldObject": None,
            **request,
        },
    }


def post(where: Endpoint, sent: object, path: str = "/mutate") -> Answer:
    return where.post(path, JSON, "", json.dumps(sent).encode())


def response(answer: Answer, sent: Raw) -> Raw:
    """P1: the response of an answer that is a valid review."""
    assert answer.status == 200
    body = json.loads(answer.body)
    assert body.keys() == {"kind", "apiVersion", "response"}
    assert (body["kind"], body["apiVersion"]) == ("AdmissionReview", sent["apiVersion"])
    found: Raw = body["response"]
    assert found["uid"] == sent["request"]["uid"]
    assert found["allowed"] is True
    assert ("patch" in found) == ("patchType" in found)
    assert found.get("patchType", "JSONPatch") == "JSONPatch"
    for warning in found.get("warnings", []):
        assert 0 < len(warning) <= 256
        assert warning.isprintable() or all(char.isprintable() or char == " " for char in warning)
    for key, value in found.get("auditAnnotations", {}).items():
        assert "/" not in key
        assert isinstance(value, str)
    return found


def patch_of(found: Raw) -> list[Raw]:
    patch: list[Raw] = json.loads(base64.b64decode(found.get("patch", "W10="), validate=True))
    assert patch or "patch" not in found
    return patch


@given(pods() | broken_pods(), clusters(), st.sampled_from([V1, "admission.k8s.io/v1beta1"]))
def test_p1_every_review_is_answered_by_a_valid_one(
    log: Log, pod: Raw, cluster: Cluster, version: str
) -> None:
    sent = {**review(pod), "apiVersion": version}
    patch = patch_of(response(post(endpoint(log, cluster.context), sent), sent))
    event("patched" if patch else "passed")
    if not isinstance(pod.get("spec"), dict):  # no pod at all, whatever its annotations say
        assert patch == []
        return
    repaired = deepcopy(pod)
    verdict = run(RULES, repaired, cluster.context)
    assert patch == [*verdict.patch, *annotate(repaired, verdict.findings)]
    assert jsonpatch.apply_patch(pod, patch) == repaired


@given(pods(), st.sampled_from(["UPDATE", "DELETE", "CONNECT"]), st.sampled_from(["", "status"]))
def test_whatever_is_no_creation_of_a_pod_passes_untouched(
    log: Log, pod: Raw, operation: str, subresource: str
) -> None:
    where = endpoint(log, Context(inventory=Unread.__new__(Unread)))
    for sent in (
        review(pod, operation=operation, subResource=subresource),
        review(pod, subResource="ephemeralcontainers"),
        review(pod, kind={"group": "apps", "version": "v1", "kind": "Deployment"}),
    ):
        assert response(post(where, sent), sent).keys() == {"uid", "allowed"}
        assert response(post(where, sent, "/validate"), sent).keys() == {"uid", "allowed"}


def _settings_that_know_no_gpu_of(pod: Raw) -> Iterator[Settings]:
    text = json.dumps(pod)
    for settings in SETTINGS.values():
        if settings.scope == "gpu" and not any(name in text for name in settings.legacy_resources):
            yield settings


@given(plain_pods())
def test_p7_a_pod_without_gpus_passes_untouched_and_no_inventory_is_read(
    log: Log, pod: Raw
) -> None:
    before = json.dumps(pod)
    for settings in _settings_that_know_no_gpu_of(pod):
        cx = Context(settings, Unread.__new__(Unread))
        verdict = run(RULES, pod, cx)
        assert (verdict.findings, verdict.patch, verdict.failed) == ((), [], ())
        assert json.dumps(pod) == before
        sent = review(pod)
        assert response(post(endpoint(log, cx), sent), sent).keys() == {"uid", "allowed"}


@st.composite
def large_pods(draw: st.DrawFn) -> Raw:
    """Pods near the two limits: many containers to repair, or much ballast."""
    ballast = draw(st.sampled_from([0, 0, 1_390_000, 1_495_000, 1_498_000, 1_499_000, 1_500_000]))
    count = draw(st.sampled_from([1, 2, 200, 205, 210, 215, 220, 230, 400]))
    containers = [
        {"name": f"c{at}", "resources": {"limits": {LEGACY: "500m"}, "requests": {LEGACY: 1}}}
        for at in range(count)
    ]
    return {"metadata": {}, "spec": {"hostname": "x" * ballast, "containers": containers}}


@given(large_pods())
def test_p13_a_patch_or_pod_too_large_is_allowed_without_a_patch_and_warned_of(
    log: Log, pod: Raw
) -> None:
    sent = review(pod)
    found = response(post(endpoint(log), sent), sent)
    repaired = deepcopy(pod)
    verdict = run(RULES, repaired, Context())
    meant = [*verdict.patch, *annotate(repaired, verdict.findings)]
    whole = json.dumps(meant, separators=(",", ":"))
    alone = json.dumps(repaired, separators=(",", ":"))
    fits = len(whole) <= MOST_PATCH and len(alone) + len(whole) <= MOST_POD
    event("patched" if fits else "too large")
    assert patch_of(found) == (meant if fits else [])
    assert fits or [each for each in found["warnings"] if "without repair" in each]
    if "patch" in found:
        size = len(base64.b64decode(found["patch"]))
        assert size <= MOST_PATCH
        assert len(alone) + size <= MOST_POD


_json = st.recursive(
    st.sampled_from(JUNK) | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
_members = ("uid", "kind", "resource", "namespace", "operation", "object", "subResource", "dryRun")


@given(pods(), st.dictionaries(st.sampled_from(_members), _json, max_size=3))
def test_p14_a_review_with_junk_in_it_is_answered_or_refused_never_failed(
    log: Log, pod: Raw, junk: Raw
) -> None:
    sent = review(pod, **junk)
    answer = post(endpoint(log), sent)
    assert answer.status in (200, 400)
    if answer.status == 200:
        found = response(answer, sent)
        assert not any("unseen" in each for each in found.get("warnings", ()))
    else:
        assert b". " in answer.body


@given(_json | st.binary(max_size=20), st.sampled_from(["/mutate", "/validate"]))
def test_p14_any_body_is_answered_or_refused_never_failed(log: Log, body: Any, path: str) -> None:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = endpoint(log).post(path, JSON, "", sent)
    assert answer.status == 400
