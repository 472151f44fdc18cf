"""Lists objects in pages. A page has a limited number of bytes, whatever the size of the objects.

Tenants choose the size of their pods: 500 of them may take 700 MB, and ten times as much after
parsing. So a page that is too large is dropped and requested again with fewer objects; after small
pages the number rises again. A continue token is valid for any limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cluster import answers
from webhook.cluster import client as bounds
from webhook.cluster.client import Client, Fault, Refused, TooLarge
from webhook.kube.pod import as_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Progress = Callable[[str, int, int | None], None]  # what, how many, of how many if known

MOST_OBJECTS = 500
MOST_BYTES = 8 << 20  # 500 ordinary pods take 3 to 5 MB

_GONE = 410
_ATTEMPTS = 3


def _shown_nowhere(_what: str, _done: int, _total: int | None) -> None:
    """For short lists."""


def objects(
    client: Client,
    path: str,
    progress: Progress = _shown_nowhere,
    query: Mapping[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """All objects at this path. Some may come twice; the later one is the newer one.

    Raises Fault, or Refused if the API server rejects the request.
    """
    for attempt in range(_ATTEMPTS):
        try:
            yield from _pages(client, path, progress, query or {})
        except Refused as refused:  # the list took so long that its version has expired
            if refused.status != _GONE or attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _pages(
    client: Client, path: str, progress: Progress, asked: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    what, done = path.rpartition("/")[2], 0
    for page in pages(client, path, asked):
        items = page["items"]
        yield from (item for item in items if isinstance(item, dict))
        done += len(items)
        remaining = page["metadata"].get("remainingItemCount")
        progress(what, done, done + (remaining if isinstance(remaining, int) else 0))
        page.clear()  # freed before the next one arrives
        del items


def pages(
    client: Client, path: str, query: Mapping[str, str], most: int | None = None
) -> Iterator[dict[str, Any]]:
    """Each page of a list with its items and metadata; drop it before you ask for the next."""
    most = most or MOST_OBJECTS
    limit, token = most, ""
    while True:
        asked = {**query, "limit": str(limit)} | ({"continue": token} if token else {})
        try:
            text = client.get(path, asked, MOST_BYTES if limit > 1 else bounds.MOST_OF_ONE)
        except TooLarge:
            if limit == 1:
                raise
            limit //= 2
            continue
        if len(text) * 2 <= MOST_BYTES:
            limit = min(limit * 2, most)
        page = _read(text)
        token = str(page["metadata"].get("continue") or "")
        del text
        yield page
        del page
        if not token:
            return


def _read(text: bytes) -> dict[str, Any]:
    page = as_map(answers.read(text))
    items = page.get("items")
    if not page or not isinstance(items, list | None):
        raise Fault("the answer is not a list")
    return {"items": items or [], "metadata": as_map(page.get("metadata"))}
