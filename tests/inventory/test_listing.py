"""Lists by the page: what an API server may answer to a command that lists once."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlparse

import pytest
from kubernetes.client import Configuration

from webhook.cluster import listing
from webhook.cluster.client import Client, Fault, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator


class Server(HTTPServer):
    """Gives its answers one after the other, the last one again and again."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[dict[str, list[str]]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(parse_qs(urlparse(self.path).query))
        several = len(self.server.answers) > 1
        status, body = self.server.answers.pop(0) if several else self.server.answers[0]
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def page(*names: str, following: str = "", remaining: int | None = None) -> tuple[int, Any]:
    metadata: dict[str, Any] = {"resourceVersion": "1"}
    if following:
        metadata |= {"continue": following}
    if remaining is not None:
        metadata |= {"remainingItemCount": remaining}
    return 200, {"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]}


GONE = (410, {"kind": "Status", "message": "the provided continue parameter is too old"})


def listed(server: Server) -> tuple[list[str], list[tuple[str, int, int | None]]]:
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{server.server_port}"
    client = Client(lambda: configuration)
    told: list[tuple[str, int, int | None]] = []
    found = listing.objects(client, "/api/v1/nodes", lambda *said: told.append(said))
    return [each["metadata"]["name"] for each in found], told


def test_pages_follow_one_another_and_say_how_far_they_are(server: Server) -> None:
    server.answers = [
        page("a", "b", following="t1", remaining=3),
        page("c", following="t2"),
        page("d"),
    ]
    names, told = listed(server)
    assert names == ["a", "b", "c", "d"]
    assert told == [("nodes", 2, 5), ("nodes", 3, 3), ("nodes", 4, 4)]
    assert [each.get("continue") for each in server.asked] == [None, ["t1"], ["t2"]]
    assert {each["limit"][0] for each in server.asked} == {"500"}


def test_a_list_whose_version_is_forgotten_begins_anew(server: Server) -> None:
    server.answers = [page("a", following="t1"), GONE, page("a", following="t2"), page("b")]
    assert listed(server)[0] == ["a", "a", "b"]


def test_a_version_that_is_always_forgotten_is_said(server: Server) -> None:
    server.answers = [GONE]
    with pytest.raises(Refused, match="too old"):
        listed(server)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(b"{", "not JSON", id="half there"),
        pytest.param({"items": "x"}, "not a list", id="items of another type"),
        pytest.param([], "not a list", id="no object"),
    ],
)
def test_what_is_no_list_is_a_fault(server: Server, body: Any, said: str) -> None:
    server.answers = [(200, body)]
    with pytest.raises(Fault, match=said):
        listed(server)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"metadata": {}, "items": None}, id="null, as Go writes an empty list"),
        pytest.param({"items": ["x", 1]}, id="items that are no objects"),
    ],
)
def test_nothing_is_listed(server: Server, body: Any) -> None:
    server.answers = [(200, body)]
    assert listed(server)[0] == []
