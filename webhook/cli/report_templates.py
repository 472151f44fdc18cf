"""Which modern templates need the webhook: a cluster in, an inventory and trials out.

A template without a pod now (a Deployment that is scaled to 0, a yearly CronJob) shows nothing that
the webhook added. So it is compared with the nodes, and where they have a taint that it does not
tolerate, a pod of it is created as a dry run: a plugin of the API server may add the toleration.
"""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Any

from webhook.cluster import answers, listing
from webhook.cluster.client import Client, Fault, address
from webhook.cluster.objects import Catalogue
from webhook.core.repaired_annotation import codes_of
from webhook.evaluation.workloads import templates_of
from webhook.inventory import inventory_file
from webhook.kube.pod import as_map
from webhook.kube.pointer import value_at
from webhook.rules import is_repair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.capacity.nodes import Inventory
    from webhook.cluster.listing import Progress
    from webhook.cluster.objects import Reference
    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]

_SECONDS = 60.0  # for all trials: a webhook that hangs delays each of them for its timeout
_LISTS = {"Node": "/api/v1/nodes", "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses"}


def inventory(
    api: Client, installed: Facts, namespaces: Iterable[Raw], progress: Progress
) -> Inventory | None:
    """The nodes, runtime classes and namespaces; None while no node has a GPU.

    Fault if they may not be listed.
    """

    def listed(kind: str, path: str) -> Iterator[Raw]:
        return ({"kind": kind, **each} for each in listing.objects(api, path, progress))

    spaces: Iterator[Raw] = ({"kind": "Namespace", **each} for each in namespaces)
    found = chain(spaces, *(listed(kind, path) for kind, path in _LISTS.items()))
    made = inventory_file.from_objects(found, installed.settings, installed.now)
    return made if made.has_gpus else None


class Trials:
    """Creates pods of templates as dry runs, until one of those that lack the same is repaired.

    In each namespace, because policies may differ. While the webhook repairs nothing, none is
    tried: the API server counts each call that fails.
    """

    def __init__(self, api: Client, installed: Facts) -> None:
        self._api, self._settings = api, installed.settings
        self._catalogue = Catalogue(api)
        self._repaired: set[tuple[str, str]] = set()
        is_called = bool(codes_of(installed.trial.pod))
        self._end = time.monotonic() + _SECONDS if is_called else 0.0

    def is_repaired(self, workload: Reference, finding: str) -> bool:
        """Whether the webhook changes a pod of this workload. So it is where none is tried."""
        key = workload.namespace, finding
        if key not in self._repaired:
            try:
                if self._end > time.monotonic() and not any(map(is_repair, self._codes(workload))):
                    return False
            except Fault:  # no right to create pods, a quota, a workload that was just deleted
                pass
            self._repaired.add(key)
        return True

    def _codes(self, workload: Reference) -> Iterator[str]:
        served = self._catalogue.find(workload.group, workload.kind)
        path = served.path(workload.namespace, workload.name) if served else ""
        obj = answers.of_one(self._api, path) if path else None
        if obj is None:
            raise Fault("it is not there any more")
        pods = address("api", "v1", "namespaces", workload.namespace, "pods")
        for at in templates_of(obj, self._settings):
            template = as_map(value_at(obj, at))
            metadata = {**as_map(template.get("metadata")), "name": "gpu-webhook-report"}
            pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}
            text, _ = self._api.dry_run(pods, pod)
            yield from codes_of(answers.read(text))
