"""Which modern templates need the webhook: a cluster in, an inventory and trials out.

A template without a pod now (a Deployment that is scaled to 0, a yearly CronJob) shows nothing that
the webhook added. So a pod of each that may lack something, such as the toleration of GPU nodes, is
created as a dry run. The webhook alone knows the nodes: it remembers those whose GPUs are away, and
knows those that may be added. And a plugin of the API server may add the toleration.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from webhook.capacity.nodes import NodeClass
from webhook.cluster import answers, listing
from webhook.cluster.client import Client, Fault, address
from webhook.cluster.objects import Catalogue
from webhook.core.repaired_annotation import codes_of
from webhook.core.settings import Taint
from webhook.doctor.lines import few
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
    from webhook.core.settings import Settings
    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]

_UNTRIED = "whether pods need what the webhook adds: no dry run of pods of"
_SECONDS = 60.0  # for all trials: a webhook that hangs delays each of them for its timeout
_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def inventory(
    api: Client, settings: Settings, namespaces: Iterable[Raw], progress: Progress
) -> Inventory:
    """The runtime classes, the namespaces, and nodes for which pods may need all that is added.

    Fault if the runtime classes may not be listed.
    """
    classes = ({"kind": "RuntimeClass", **e} for e in listing.objects(api, _CLASSES, progress))
    spaces: Iterator[Raw] = ({"kind": "Namespace", **each} for each in namespaces)
    found = inventory_file.from_objects(chain(spaces, classes), settings)
    names = [settings.gpu_resource, *settings.gpu_resources]
    taints = ((), *((each,) for each in (*map(Taint, names), *settings.taints)))
    labels = {**found.runtime_classes.get(settings.drivers.runtime_class, {})}
    labels[settings.placement.label] = settings.placement.value
    nodes = (NodeClass(labels, each, open_labels=True, open_gpus=True) for each in taints)
    return replace(found, classes=tuple(nodes))


class Trials:
    """Creates pods of templates as dry runs, until one of those that lack the same is repaired.

    In each namespace, because policies may differ. While the webhook repairs nothing, none is
    tried: the API server counts each call that fails.
    """

    def __init__(self, api: Client, installed: Facts) -> None:
        self._api, self._settings = api, installed.settings
        self._catalogue = Catalogue(api)
        self._repaired: dict[tuple[str, str], frozenset[str]] = {}
        self._is_called = bool(codes_of(installed.trial.pod))
        self._end = time.monotonic() + _SECONDS
        self._untried: defaultdict[str, list[str]] = defaultdict(list)

    def repairs(self, workload: Reference, lacks: str) -> frozenset[str]:
        """The rules that change a pod of this workload. It is a gap if none can be tried."""
        key = workload.namespace, lacks
        if key in self._repaired:
            return self._repaired[key]
        try:
            codes = frozenset(filter(is_repair, self._codes(workload)))
        except Fault as fault:  # no right to create pods, a quota, no such ServiceAccount
            self._untried[str(fault)].append(f"{workload.namespace}/{workload}")
            return frozenset()
        if codes:
            self._repaired[key] = codes
        return codes

    def gaps(self) -> Iterator[str]:
        """The workloads of which no pod could be tried, and why."""
        for why, names in self._untried.items():
            yield f"{_UNTRIED} {few(names)}: {why}"

    def _codes(self, workload: Reference) -> Iterator[str]:
        if not self._is_called:
            raise Fault("the webhook repairs nothing")
        if self._end <= time.monotonic():
            raise Fault("a minute has passed")
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
