"""A list by the page. Whatever size the objects have, a page has so many bytes at most.

Tenants choose how large their pods are: 500 of them may take 700 MB, and once they are parsed ten
times as much. So a page that is too large is dropped and asked for again with fewer objects; after
small ones there may be more again. A token to continue holds for any limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cluster import answers
from webhook.cluster import client as bounds
from webhook.cluster.client import Fault, TooLarge
from webhook.kube.pod import as_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.cluster.client import Client

MOST_OBJECTS = 500
MOST_BYTES = 8 << 20  # 500 ordinary pods take 3 to 5 MB


def pages(client: Client, path: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Each page of a list with its items and metadata; drop it before you ask for the next."""
    limit, token = MOST_OBJECTS, ""
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
            limit = min(limit * 2, MOST_OBJECTS)
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
        raise Fault("the answer is no list")
    return {"items": items or [], "metadata": as_map(page.get("metadata"))}
