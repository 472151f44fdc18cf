"""Each kind of object listed once, by the page, for a command that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from webhook.core.pod import as_map
from webhook.inventory.client import Fault, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.inventory.client import Client

    Progress = Callable[[str, int, int | None], None]  # what, how many, of how many if known

PAGE = 500
NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"

_GONE = 410
_ATTEMPTS = 3


def objects(
    client: Client, path: str, progress: Progress, query: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """All objects that are served there. Some may come twice; the later one is the newer one.

    Raises Fault, or Refused where the API server says no.
    """
    for attempt in range(_ATTEMPTS):
        try:
            yield from _pages(client, path, progress, query or {})
        except Refused as refused:  # the list took so long that its version is forgotten
            if refused.status != _GONE or attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _pages(
    client: Client, path: str, progress: Progress, asked: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    what, token, done = path.rpartition("/")[2], "", 0
    while True:
        query = {**asked, "limit": str(PAGE)} | ({"continue": token} if token else {})
        try:
            page = orjson.loads(client.get(path, query))
        except orjson.JSONDecodeError as error:
            raise Fault(f"the answer is no JSON: {error}") from error
        items, metadata = as_map(page).get("items"), as_map(as_map(page).get("metadata"))
        if not isinstance(page, dict) or not isinstance(items, list | None):
            raise Fault("the answer is no list")
        for item in items or ():
            if isinstance(item, dict):
                yield item
        done += len(items or ())
        remaining = metadata.get("remainingItemCount")
        progress(what, done, done + (remaining if isinstance(remaining, int) else 0))
        token = str(metadata.get("continue") or "")
        if not token:
            return
