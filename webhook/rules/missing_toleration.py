"""Finds GPU pods that do not tolerate the taint of GPU nodes.

Why: GKE, the GPU operator and many clusters taint GPU nodes with the name of the resource, to keep
other pods away. Only GKE enables the plugin ExtendedResourceToleration, which adds the toleration
to GPU pods.

Does: the same as that plugin, for legacy pods with an amount above 0: adds `{key: nvidia.com/gpu,
operator: Exists, effect: NoSchedule}` unless that exact toleration is there. A pod that uses a
current name gets it only if the inventory has a GPU node with the taint and the pod does not
tolerate it yet; without an inventory such a pod is not changed. Nodes with MIG slices and shared
GPUs often have the taint `nvidia.com/gpu`: pods that request these get the toleration, too, if a
node that offers them has the taint. Taints in `tolerations.taints` are tolerated if a node of the
inventory has them. Taints of the node life cycle, of the autoscaler and of Karpenter never are.

If the annotation `scheduler.alpha.kubernetes.io/tolerationsWhitelist` of the namespace does not
allow the toleration, it is not added, because the plugin PodTolerationRestriction would refuse the
pod. A legacy pod then gets a warning. The review of a pod in a new namespace waits until the
watcher has received the namespace, at most half of its `timeoutSeconds`. If it still has not, or
may not list namespaces, a pod without legacy use is not changed. The rule cannot see a whitelist in
the API server's own configuration of PodTolerationRestriction: set `GPU201: off` (or `audit`)
there.

Safety: safe. A toleration only adds nodes on which a pod may run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity.runtime_class import as_admitted
from webhook.core.edits import Append
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.core.settings import Taint
from webhook.kube.tolerations import Tolerations, allows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.capacity.nodes import Inventory
    from webhook.kube.pod import Pod, Raw


NAME = "missing-toleration"
CODE = "GPU201"
FACTS = Facts(Stage.REPAIR, Trait.CLUSTER | Trait.SEPARATE | Trait.WHOLE)

_MOST = 2  # taints that the warning names: it is one line
_EFFECT = "NoSchedule"
_NVIDIA = "nvidia.com/"
_OF_ALL_GPU_NODES = "nvidia.com/gpu"  # the taint of the GPU operator and GKE, slices or not


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    names = pod.gpus(cx.settings)
    if not names or (cx.inventory is None and not cx.stuck):
        return
    whitelist = cx.inventory.whitelist(cx.namespace) if cx.inventory is not None else ""
    if whitelist is None and not cx.stuck:
        return  # it might be refused with what is added
    there = Tolerations(pod.tolerations())
    missing = [*_missing_exists(names, there, cx), *_missing_of_settings(there, cx)]
    added, forbidden = _parted(missing, whitelist or "")
    to = pod.spec_at / "tolerations"
    if added:
        for each in added:
            there.add(each)
        message = f"GPU nodes are usually tainted: add the toleration {_listed(added)} to the "
        message += f"manifest{_untolerated(pod, cx, there)}"
        yield Finding(CODE, to, message, tuple(Append(to, each) for each in added))
    if cx.stuck and forbidden:
        message = (
            "the tolerationsWhitelist of the namespace forbids a toleration of "
            f"{_listed(forbidden)}, so the pod cannot run on GPU nodes with that taint: add it to "
            "the namespace's annotation"
        )
        yield Finding(CODE, to, message, severity=Severity.MANUAL)


def _parted(tolerations: Iterable[Raw], whitelist: str) -> tuple[list[Raw], list[Raw]]:
    """Those that the whitelist allows, and those that it forbids."""
    added: list[Raw] = []
    forbidden: list[Raw] = []
    for each in tolerations:
        (added if allows(whitelist, each) else forbidden).append(each)
    return added, forbidden


def _missing_exists(names: Iterable[str], there: Tolerations, cx: Context) -> Iterator[Raw]:
    """The tolerations for taints that are named as a resource is."""
    keys = set(names)
    if cx.inventory is not None and any(_is_behind(name, cx.inventory) for name in names):
        keys.add(_OF_ALL_GPU_NODES)
    carried = cx.inventory.gpu_taints_by_key if cx.inventory is not None else {}
    for key in sorted(keys):
        toleration = {"key": key, "operator": "Exists", "effect": _EFFECT}
        if _is_missing(toleration, carried.get((key, _EFFECT), ()), there, cx):
            yield toleration


def _is_behind(name: str, inventory: Inventory) -> bool:
    """Whether a node that offers this other kind of GPU carries the taint of all GPU nodes."""
    index = inventory.index
    tainted = index.tainted.get((_OF_ALL_GPU_NODES, _EFFECT, 0))
    is_other = name.startswith(_NVIDIA) and name != _OF_ALL_GPU_NODES
    return is_other and tainted is not None and bool(tainted.present & index.at_least(name, 1))


def _missing_of_settings(there: Tolerations, cx: Context) -> Iterator[Raw]:
    carried = cx.inventory.taints if cx.inventory is not None else frozenset()
    for taint in cx.settings.taints:
        if taint in carried and not taint.is_off_limits:
            toleration = _equal(taint)
            if _is_missing(toleration, [taint], there, cx):
                yield toleration


def _is_missing(toleration: Raw, taints: Iterable[Taint], there: Tolerations, cx: Context) -> bool:
    """Whether a pod needs the toleration; a legacy pod gets it as the plugin would add it.

    That is, unless the very same one is there. `taints` are those that nodes carry.
    """
    if cx.stuck:
        return not there.has(toleration)
    return not all(map(there.tolerate, taints))


def _equal(taint: Taint) -> Raw:
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}


def _listed(tolerations: Iterable[Raw]) -> str:
    return ", ".join(
        str(Taint(each["key"], each.get("value", ""), each["effect"])) for each in tolerations
    )


def _untolerated(pod: Pod, cx: Context, there: Tolerations) -> str:
    """Taints of GPU nodes that nothing here tolerates, nor the pod's class, for the warning."""
    lasting = cx.inventory.lasting_gpu_taints if cx.inventory is not None else ()
    if not lasting:
        return ""
    for each in as_admitted(pod, cx, cx.settings.drivers.runtime_class).tolerations():
        there.add(each)
    others = [taint for taint in lasting if not there.tolerate(taint)]
    if not others:
        return ""
    more = f" and {len(others) - _MOST} more" if len(others) > _MOST else ""
    return f". Not tolerated taints of GPU nodes: {', '.join(map(str, others[:_MOST]))}{more}"
