"""Each kind of object that counts: where it is served, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webhook.inventory import autoscalers, project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.core.settings import Settings
    from webhook.inventory.store import Kept, Store

_NAMESPACE, _, _STATUS = autoscalers.STATUS.partition("/")


@dataclass(frozen=True)
class Kind:
    """A kind of object: where it is served, the newest version first, and what is kept of it."""

    name: str
    kind: str
    paths: tuple[str, ...]
    kept: Kept[Any]
    project: Callable[[dict[str, Any]], Any]
    query: Mapping[str, str] = field(default_factory=dict)  # which objects
    group: str = ""  # if versions that are newer than this program count, too


def kinds(store: Store, settings: Settings, audit: project.Audit | None = None) -> tuple[Kind, ...]:
    """All that is watched. RBAC must allow list and watch of these; manifests/ says so too."""
    keys = project.namespace_keys(settings)
    core, group = "/api/v1", "karpenter.sh"
    dra = tuple(f"/apis/resource.k8s.io/{v}/deviceclasses" for v in ("v1", "v1beta2", "v1beta1"))
    karpenter = tuple(f"/apis/{group}/{v}/nodepools" for v in ("v1", "v1beta1"))
    classes = ("/apis/node.k8s.io/v1/runtimeclasses",)
    maps = (f"{core}/namespaces/{_NAMESPACE}/configmaps",)
    one = {"fieldSelector": f"metadata.name={_STATUS}"}

    def node(raw: dict[str, Any]) -> Any:
        return project.node(raw, settings)

    def pod(raw: dict[str, Any]) -> Any:
        return project.pod(raw, settings, audit)

    def namespace(raw: dict[str, Any]) -> Any:
        return project.namespace(raw, keys)

    groups, pools = autoscalers.groups, autoscalers.node_pool
    return (
        Kind("nodes", "Node", (f"{core}/nodes",), store.nodes, node),
        Kind("pods", "Pod", (f"{core}/pods",), store.pods, pod),
        Kind("namespaces", "Namespace", (f"{core}/namespaces",), store.namespaces, namespace),
        Kind(
            "runtimeclasses", "RuntimeClass", classes, store.runtime_classes, project.runtime_class
        ),
        Kind("deviceclasses", "DeviceClass", dra, store.device_classes, project.device_class),
        Kind("nodepools", "NodePool", karpenter, store.node_pools, pools, group=group),
        Kind("configmaps", "ConfigMap", maps, store.node_groups, groups, one),
    )


def tell(known: Iterable[Kind], kind: str, raw: dict[str, Any], position: int, now: float) -> None:
    """Take one object of a list, as the watcher takes it. One without a name is still there.

    Objects that the inventory has no use for are passed over.
    """
    key = project.key_of(raw) or str(position)
    for each in known:
        if each.kind == kind and (kind != "ConfigMap" or key == autoscalers.STATUS):
            each.kept.put(key, each.project(raw), now)
