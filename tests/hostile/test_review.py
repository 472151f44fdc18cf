"""Groups r01-r12: AdmissionReviews that are incomplete, or none of our business."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile.wire import MODERN, UID, gpu_pod, limits, repaired, review, unannotated

if TYPE_CHECKING:
    from tests.hostile.wire import Server

pytestmark = pytest.mark.programs

SERVICE = {"group": "", "version": "v1", "kind": "Service"}
SERVICES = {"group": "", "version": "v1", "resource": "services"}
DEPLOYMENT = {"group": "apps", "version": "v1", "kind": "Deployment"}
DEPLOYMENTS = {"group": "apps", "version": "v1", "resource": "deployments"}


def top(**fields: Any) -> dict[str, Any]:
    return {**review(gpu_pod()), **fields}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in review(gpu_pod()).items() if key != name}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="an empty object"),
        pytest.param(without("request"), id="r01 no request"),
        pytest.param(top(request=None), id="r02 request is null"),
        pytest.param(top(request=[]), id="r02 request is a list"),
        pytest.param(top(request="x"), id="r02 request is a text"),
        pytest.param(review(gpu_pod(), uid=None), id="r03 no uid"),
        pytest.param(review(gpu_pod(), uid=""), id="r03 an empty uid"),
        pytest.param(review(gpu_pod(), uid="a" * 1_000_000), id="r03 a uid of 1 MB"),
        pytest.param(review(gpu_pod(), uid="a" * 129), id="r03 a uid of 129 characters"),
        pytest.param(review(gpu_pod(), uid='a","allowed":false,"x":"'), id="r03 quotes in uid"),
        pytest.param(review(gpu_pod(), uid="a\nb"), id="r03 a newline in uid"),
        pytest.param(review(gpu_pod(), uid="a\n"), id="r03 a newline behind uid"),
        pytest.param(review(gpu_pod(), uid="ü"), id="r03 a letter beyond ASCII in uid"),
        pytest.param(review(gpu_pod(), uid=7), id="r03 a number as uid"),
        pytest.param(review(gpu_pod(), uid=["a"]), id="r03 a list as uid"),
        pytest.param(review(gpu_pod(), uid=False), id="r03 false as uid"),
        pytest.param(without("apiVersion"), id="r04 no apiVersion"),
        pytest.param(top(apiVersion="admission.k8s.io/v2"), id="r04 version v2"),
        pytest.param(top(apiVersion="v1"), id="r04 another group"),
        pytest.param(top(apiVersion=["admission.k8s.io/v1"]), id="r04 a list as apiVersion"),
        pytest.param(top(apiVersion={}), id="r04 an object as apiVersion"),
        pytest.param(without("kind"), id="no kind"),
        pytest.param(top(kind="Pod"), id="another kind"),
        pytest.param(gpu_pod(), id="a pod itself"),
    ],
)
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_what_is_no_review_is_refused(server: Server, body: dict[str, Any], path: str) -> None:
    reply = server.post(body, path)
    assert reply.status == 400
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    where, _, advice = reply.body.decode().partition(": ")
    assert where
    assert ". Se" in advice  # "Send ..." or "Set ...": how to mend it
    assert len(reply.body) < 400


def test_r03_a_uid_of_128_characters_is_echoed(server: Server) -> None:
    uid = "aZ0._:-9" * 16
    assert server.mutate(gpu_pod(), uid=uid).response["uid"] == uid


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_r04_each_version_is_answered_in_itself(server: Server, version: str) -> None:
    reply = server.post({**review(gpu_pod()), "apiVersion": version})
    assert reply.response["uid"] == UID
    assert f'"apiVersion":"{version}"'.encode() in reply.body
    assert b'"kind":"AdmissionReview"' in reply.body
    assert limits(repaired(gpu_pod(), reply)) == {MODERN: "2"}


@pytest.mark.parametrize(
    "request_fields",
    [
        pytest.param({"kind": SERVICE, "resource": SERVICES}, id="r05 a Service"),
        pytest.param({"kind": DEPLOYMENT, "resource": DEPLOYMENTS}, id="r05 a Deployment"),
        pytest.param({"kind": None}, id="r05 no kind"),
        pytest.param({"kind": "Pod"}, id="r05 kind is a text"),
        pytest.param({"resource": None}, id="r05 no resource"),
        pytest.param(
            {"kind": {"group": "x.io", "version": "v1", "kind": "Pod"}}, id="r05 another's Pod"
        ),
        pytest.param({"kind": {"group": "", "version": "v9", "kind": "Pod"}}, id="r05 a Pod of v9"),
        pytest.param({"operation": "DELETE", "object": None}, id="r06 DELETE without object"),
        pytest.param({"operation": "DELETE"}, id="r06 DELETE with an object"),
        pytest.param({"operation": "UPDATE", "oldObject": gpu_pod()}, id="r07 UPDATE"),
        pytest.param(
            {"operation": "UPDATE", "subResource": "status"}, id="r07 UPDATE of the status"
        ),
        pytest.param({"subResource": "ephemeralcontainers"}, id="r07 a subresource"),
        pytest.param({"subResource": "binding"}, id="r07 a binding"),
        pytest.param({"operation": "CONNECT", "subResource": "exec"}, id="r08 CONNECT"),
        pytest.param({"operation": None}, id="r08 no operation"),
        pytest.param({"operation": ["CREATE"]}, id="r08 a list as operation"),
        pytest.param({"operation": "create"}, id="r08 operation in small letters"),
        pytest.param({"object": None}, id="no object"),
        pytest.param({"object": []}, id="a list as object"),
        pytest.param({"object": "x"}, id="a text as object"),
        pytest.param({"namespace": None}, id="r11 no namespace"),
        pytest.param({"namespace": ""}, id="r11 an empty namespace"),
        pytest.param({"namespace": 7}, id="r11 a number as namespace"),
    ],
)
def test_what_is_not_ours_passes_untouched(server: Server, request_fields: dict[str, Any]) -> None:
    response = server.mutate(gpu_pod(), **request_fields).response
    assert response == {"uid": UID, "allowed": True}


@pytest.mark.parametrize(
    "request_fields",
    [
        pytest.param({"dryRun": True}, id="r09 a dry run"),
        pytest.param({"requestKind": None, "requestResource": None}, id="r10 no requestKind"),
        pytest.param({"requestKind": DEPLOYMENT}, id="r10 another requestKind"),
        pytest.param({"subResource": ""}, id="an empty subResource"),
        pytest.param({"future": {"a": [1]}, "name": 7}, id="r12 an unknown field"),
        pytest.param({"userInfo": None, "options": None, "oldObject": None}, id="the least of it"),
        pytest.param({"userInfo": "x", "oldObject": []}, id="odd fields that nobody reads"),
    ],
)
def test_what_is_ours_is_repaired(server: Server, request_fields: dict[str, Any]) -> None:
    reply = server.mutate(gpu_pod(), **request_fields)
    assert limits(repaired(gpu_pod(), reply)) == {MODERN: "2"}


def test_r12_unknown_fields_at_every_level_are_kept(server: Server) -> None:
    pod = gpu_pod(future={"a": [1, {"b": None}]})
    pod["future"] = pod["metadata"]["future"] = [1]
    pod["spec"]["containers"][0]["resources"]["future"] = {"c": 2.5}
    pod["spec"]["containers"][0]["future"] = "x"
    good = repaired(pod, server.post({**review(pod), "future": 1}))
    assert limits(good) == {MODERN: "2"}
    good["spec"].pop("tolerations")
    for section in ("limits", "requests"):
        pod["spec"]["containers"][0]["resources"][section] = {MODERN: "2"}
    assert unannotated(good) == pod


def test_validate_allows(server: Server) -> None:
    response = server.post(review(gpu_pod()), "/validate").response
    assert response == {"uid": UID, "allowed": True}


def test_the_same_call_twice_gives_the_same_bytes(server: Server) -> None:
    assert server.mutate(gpu_pod()).body == server.mutate(gpu_pod()).body
