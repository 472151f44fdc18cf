"""Two ways into the endpoint, before Flask's router and through it: the same bytes."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.wire import gpu_pod, review
from webhook.admission.app import create_app
from webhook.admission.decide import Decider
from webhook.admission.endpoint import Endpoint
from webhook.core.settings import Settings
from webhook.rules import RULES
from webhook.serving.asgi import DIRECT, AdmissionApp, seconds_of
from webhook.telemetry.logs import Log

SHARED = Path(__file__).parents[2].parent / "shared" / "reviews"
GOOD = json.dumps(review(gpu_pod())).encode()
JSON = {"content-type": "application/json"}

CASES: list[Any] = [
    pytest.param("POST", "/mutate", JSON, GOOD, id="a repair"),
    pytest.param("POST", "/validate", JSON, GOOD, id="a validation"),
    pytest.param("POST", "/mutate", JSON, b"", id="no body"),
    pytest.param("POST", "/mutate", JSON, b"{", id="no JSON"),
    pytest.param("POST", "/mutate", JSON, b"{}", id="no review"),
    pytest.param("POST", "/mutate", JSON, GOOD.replace(b"v1", b"v2", 1), id="another version"),
    pytest.param("POST", "/mutate", {}, GOOD, id="no content type"),
    pytest.param("POST", "/mutate", {"content-type": "text/plain"}, GOOD, id="text"),
    pytest.param(
        "POST", "/mutate", {"content-type": "application/json;charset=latin-1"}, GOOD, id="charset"
    ),
    pytest.param("POST", "/mutate", JSON | {"content-encoding": "gzip"}, GOOD, id="gzip"),
    pytest.param("POST", "/mutate", JSON, GOOD.replace(b'"2"', b'"\\ud800"'), id="a surrogate"),
    pytest.param("GET", "/mutate", {}, b"", id="another method"),
    pytest.param("PUT", "/validate", JSON, GOOD, id="a third method"),
    pytest.param("GET", "/healthz", {}, b"", id="health"),
    pytest.param("GET", "/readyz", {}, b"", id="readiness"),
    pytest.param("POST", "/nothing", JSON, GOOD, id="no path of ours"),
]


class Request:
    """What our server puts into the scope."""

    must_close = False


def endpoint(not_ready: str = "") -> Endpoint:
    log = Log(os.open(os.devnull, os.O_WRONLY))
    return Endpoint(Decider(RULES, Settings(), None, log), lambda: not_ready)


def call(
    direct: frozenset[str],
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
    not_ready: str = "",
) -> tuple[list[dict[str, Any]], bool]:
    """The messages that the server gets to send, and whether it is to hang up."""
    its = endpoint(not_ready)
    app = AdmissionApp(its, create_app(its), direct)
    request, sent = Request(), []
    fields = {"host": "x", "content-length": str(len(body)), **headers}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"timeout=3s",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "server": ("127.0.0.1", 8443),
        "gpu-webhook.request": request,
    }

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        await asyncio.sleep(0)
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent, request.must_close


@pytest.mark.parametrize(("method", "path", "headers", "body"), CASES)
def test_both_ways_give_the_same_bytes(
    method: str, path: str, headers: dict[str, str], body: bytes
) -> None:
    before_flask = call(DIRECT, method, path, headers, body)
    through_flask = call(frozenset(), method, path, headers, body)
    assert before_flask == through_flask
    start, answer = before_flask[0]
    assert dict(start["headers"])[b"content-length"] == str(len(answer["body"])).encode()


def test_both_ways_give_the_same_bytes_for_what_the_api_server_sends() -> None:
    files = sorted(SHARED.glob("*.json")) if SHARED.is_dir() else []
    print(f"\n{len(files)} recorded reviews in {SHARED}")  # noqa: T201
    assert files or not os.environ.get("CI")
    for file in files:
        body = file.read_bytes()
        before_flask = call(DIRECT, "POST", "/mutate", JSON, body)
        assert before_flask == call(frozenset(), "POST", "/mutate", JSON, body)
        assert before_flask[0][0]["status"] == 200


def test_the_flask_application_alone_answers_too() -> None:
    client = create_app(endpoint()).test_client()
    answer = client.post("/mutate", data=GOOD, content_type="application/json")
    assert answer.json is not None
    assert answer.json["response"]["patchType"] == "JSONPatch"
    assert client.get("/healthz").data == b"ok"
    assert client.get("/mutate").status_code == 405
    assert client.post("//mutate", data=GOOD, content_type="application/json").status_code == 404


def test_readiness_says_why_not() -> None:
    sent, hangs_up = call(DIRECT, "GET", "/readyz", {}, b"", not_ready="draining")
    assert sent[0]["status"] == 503
    assert sent[1]["body"] == b"not ready: draining"
    assert hangs_up


def test_a_refusal_ends_the_connection_and_an_answer_does_not() -> None:
    assert call(DIRECT, "POST", "/mutate", JSON, b"{}")[1] is True
    assert call(DIRECT, "POST", "/mutate", JSON, GOOD)[1] is False


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        pytest.param("", 30, id="none"),
        pytest.param("timeout=10s", 10, id="seconds"),
        pytest.param("timeout=500ms", 0.5, id="milliseconds"),
        pytest.param("timeout=1.5s", 1.5, id="a fraction"),
        pytest.param("timeout=.5s", 0.5, id="a fraction without a digit before it"),
        pytest.param("timeout=0m3s250ms", 3.25, id="several units"),
        pytest.param("timeout=1h", 30, id="longer than Kubernetes allows"),
        pytest.param("a=b&timeout=2s&c", 2, id="among others"),
        pytest.param("mytimeout=2s", 30, id="another name"),
        pytest.param("timeout=0s", 30, id="zero: no limit, to Kubernetes"),
        pytest.param("timeout=-2s", 30, id="negative"),
        pytest.param("timeout=2", 30, id="no unit"),
        pytest.param("timeout=s", 30, id="no number"),
        pytest.param("timeout=2s2", 30, id="a number behind it"),
        pytest.param("timeout=" + "9" * 5000 + "s", 30, id="too many digits"),
        pytest.param("timeout=%F0", 30, id="nonsense"),
    ],
)
def test_deadlines_are_go_durations(query: str, seconds: float) -> None:
    assert seconds_of(query.encode()) == pytest.approx(seconds)
