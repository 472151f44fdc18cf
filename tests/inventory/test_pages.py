"""Lists by the page: whatever size the objects have, a page has so many bytes at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.inventory.api_server import ApiServer
from webhook.cluster import client as client_module
from webhook.cluster import listing
from webhook.cluster.client import Client, Fault, TooLarge, configuration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PODS = "/api/v1/pods"
LARGE, SMALL = 10_000, 10


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def client(api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(listing, "MOST_BYTES", 64 * 1024)
    kubeconfig = str(api.kubeconfig(tmp_path))
    return Client(lambda: configuration(kubeconfig))


def fill(api: ApiServer, *sizes: int) -> list[str]:
    """Pods with so many bytes of annotations each; their names in order."""
    names = [f"pod-{number}" for number in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        api.objects["pods"][name] = {"metadata": {"name": name, "annotations": {"a": "x" * size}}}
    return names


def listed(client: Client) -> tuple[list[str], list[int]]:
    """The names that were listed, and how many objects each page had."""
    found = [page["items"] for page in listing.pages(client, PODS, {})]
    return [item["metadata"]["name"] for items in found for item in items], list(map(len, found))


def limits(api: ApiServer) -> list[int]:
    return [int(query["limit"]) for _, _, query in api.asked]


def test_ordinary_objects_come_by_the_largest_page(api: ApiServer, client: Client) -> None:
    names = fill(api, *[SMALL] * 600)
    assert listed(client) == (names, [500, 100])
    assert limits(api) == [500, 500]


def test_pages_may_be_asked_for_smaller_and_do_not_grow_beyond(
    api: ApiServer, client: Client
) -> None:
    fill(api, LARGE, *[SMALL] * 44)
    found = [len(page["items"]) for page in listing.pages(client, PODS, {}, 20)]
    assert found == [20, 20, 5]
    assert limits(api) == [20, 20, 20]


def test_large_objects_come_by_smaller_pages(api: ApiServer, client: Client) -> None:
    names = fill(api, *[LARGE] * 40)
    found, sizes = listed(client)
    assert found == names, "each once, none left out"
    assert max(sizes) * LARGE <= listing.MOST_BYTES
    assert limits(api)[:8] == [500, 250, 125, 62, 31, 15, 7, 3]


def test_after_large_objects_pages_grow_again(api: ApiServer, client: Client) -> None:
    names = fill(api, *[LARGE] * 40, *[SMALL] * 2000)
    found, sizes = listed(client)
    assert found == names
    assert max(sizes) > 250
    assert len(api.asked) < 60


def test_one_object_may_be_larger_than_a_page(api: ApiServer, client: Client) -> None:
    names = fill(api, SMALL, 100_000, SMALL)
    assert listed(client)[0] == names


def test_an_object_that_is_larger_than_any_is_a_fault(
    api: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MOST_OF_ONE", 64 * 1024)
    fill(api, 100_000)
    with pytest.raises(TooLarge, match="more than 65536 bytes"):
        listed(client)


def test_no_line_of_a_watch_is_larger_than_any_object(
    api: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MOST_OF_ONE", 64 * 1024)
    api.say_to_watches(PODS, b"1\n" + b"x" * 1_000_000)
    lines = client.lines(PODS, {"watch": "true"}, 5.0)
    assert next(lines) == b"1"
    with pytest.raises(Fault, match="more than 65536 bytes"):
        next(lines)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(b"{", "not JSON", id="half there"),
        pytest.param(b'{"items": "x"}', "not a list", id="items of another type"),
        pytest.param(b"[]", "not a list", id="no object"),
    ],
)
def test_what_is_no_list_is_a_fault(body: bytes, said: str, api: ApiServer, client: Client) -> None:
    api.say(PODS, 200, body)
    with pytest.raises(Fault, match=said):
        listed(client)


def test_the_query_goes_along_with_each_page(api: ApiServer, client: Client) -> None:
    fill(api, *[SMALL] * 600)
    asked: dict[str, Any] = {"fieldSelector": "spec.nodeName=a"}
    assert len(list(listing.pages(client, PODS, asked))) == 2
    assert [query["fieldSelector"] for _, _, query in api.asked] == ["spec.nodeName=a"] * 2
