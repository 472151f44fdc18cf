"""Each kind of object listed once, by the page, for a command that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cluster.client import Refused
from webhook.cluster.pages import pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.cluster.client import Client

    Progress = Callable[[str, int, int | None], None]  # what, how many, of how many if known

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
    what, done = path.rpartition("/")[2], 0
    for page in pages(client, path, asked):
        items = page["items"]
        yield from (item for item in items if isinstance(item, dict))
        done += len(items)
        remaining = page["metadata"].get("remainingItemCount")
        progress(what, done, done + (remaining if isinstance(remaining, int) else 0))
        page.clear()  # before the next one comes
        del items
