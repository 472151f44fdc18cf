"""The kinds of objects that are watched: where each is served, and which facts of it are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from webhook.inventory import cluster_autoscaler, karpenter, object_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.core.settings import Settings
    from webhook.inventory.kind_facts import KindFacts
    from webhook.inventory.store import Store


@dataclass(frozen=True)
class Kind:
    """One kind of object: its API paths, the newest version first, and which facts are kept."""

    name: str
    kind: str
    paths: tuple[str, ...]
    kept: KindFacts[Any]
    project: Callable[[dict[str, Any]], Any]
    query: Mapping[str, str] = field(default_factory=dict)  # which objects
    group: str = ""  # set if versions newer than this program count, too
    only: str = ""  # namespace/name of the only object that counts


def kinds(
    store: Store, settings: Settings, audit: object_facts.Audit | None = None
) -> tuple[Kind, ...]:
    """All kinds that are watched. RBAC must allow list and watch of them; see manifests/."""
    node = partial(object_facts.node, settings=settings)
    pod = partial(object_facts.pod, settings=settings, audit=audit)
    namespace = partial(object_facts.namespace, keys=object_facts.namespace_keys(settings))
    status = settings.capacity.autoscaler_status
    autoscaler, _, name = status.partition("/")
    maps = f"/api/v1/namespaces/{autoscaler}/configmaps"
    one = {"fieldSelector": f"metadata.name={name}"}
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    dra = tuple(f"/apis/resource.k8s.io/{v}/deviceclasses" for v in ("v1", "v1beta2", "v1beta1"))
    group = "karpenter.sh"
    pools = tuple(f"/apis/{group}/{v}/nodepools" for v in ("v1", "v1beta1"))
    of_class, of_device, of_pool = (
        object_facts.runtime_class,
        object_facts.device_class,
        karpenter.node_pool,
    )
    of_map = cluster_autoscaler.groups
    return (
        Kind("nodes", "Node", ("/api/v1/nodes",), store.nodes, node),
        Kind("pods", "Pod", ("/api/v1/pods",), store.pods, pod),
        Kind("namespaces", "Namespace", ("/api/v1/namespaces",), store.namespaces, namespace),
        Kind("runtimeclasses", "RuntimeClass", (classes,), store.runtime_classes, of_class),
        Kind("deviceclasses", "DeviceClass", dra, store.device_classes, of_device),
        Kind("nodepools", "NodePool", pools, store.node_pools, of_pool, group=group),
        Kind("configmaps", "ConfigMap", (maps,), store.node_groups, of_map, one, only=status),
    )


def add(known: Iterable[Kind], kind: str, raw: dict[str, Any], position: int, now: float) -> None:
    """Keep one object of a list, as the watcher does. An object without a name is kept, too.

    Objects that the inventory does not use are ignored.
    """
    key = object_facts.key_of(raw) or str(position)
    for each in known:
        if each.kind == kind and each.only in ("", key):
            each.kept.put(key, each.project(raw), now)
