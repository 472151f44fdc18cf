"""Finds GPU pods that do not tolerate the taint of GPU nodes.

Why: GKE, the GPU operator and many clusters taint GPU nodes with the name of the resource, so that
other pods stay away. Only GKE turns on the plugin ExtendedResourceToleration that lets GPU pods in.

Does: what that plugin does, for GPU names and amounts above 0: adds `{key: nvidia.com/gpu,
operator: Exists, effect: NoSchedule}` unless that very toleration is there. Taints that
`tolerations.taints` lists are tolerated too where a node of the inventory carries them. Taints of
the node life cycle, of the autoscaler and of Karpenter never are.

Safety: safe. A toleration lets a pod onto more nodes and never off one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Append
from webhook.core.findings import Finding
from webhook.core.settings import Taint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.pod import Pod
    from webhook.core.rule import Context

    Raw = dict[str, Any]

NAME = "missing-toleration"
CODE = "GPU201"

_FIELDS = ("key", "operator", "value", "effect")
_MOST = 2  # taints that the warning names: it is one line


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    names = pod.gpus(cx.settings)
    if not names:
        return
    there = pod.tolerations()
    wanted = [{"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in sorted(names)]
    carried = cx.inventory.taints if cx.inventory is not None else frozenset()
    wanted += [
        _equal(taint)
        for taint in cx.settings.taints
        if taint in carried and not taint.is_off_limits
    ]
    missing = [toleration for toleration in wanted if not _is_there(toleration, there)]
    if not missing:
        return
    to = pod.spec_at / "tolerations"
    taints = ", ".join(
        str(Taint(each["key"], each.get("value", ""), each["effect"])) for each in missing
    )
    others = _others(cx, [*there, *missing])
    message = f"GPU nodes may be tainted: tolerates {taints} now; write it into tolerations"
    if others:
        more = f" and {len(others) - _MOST} more" if len(others) > _MOST else ""
        message += f". Not tolerated taints of GPU nodes: {', '.join(others[:_MOST])}{more}"
    yield Finding(CODE, to, message, tuple(Append(to, each) for each in missing))


def _equal(taint: Taint) -> Raw:
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}


def _is_there(toleration: Raw, there: list[Raw]) -> bool:
    """Equality of key, operator, value and effect, as Toleration.MatchToleration has it."""
    wanted = [toleration.get(field, "") for field in _FIELDS]
    return any([each.get(field, "") for field in _FIELDS] == wanted for each in there)


def _others(cx: Context, tolerations: list[Raw]) -> list[str]:
    """Taints of GPU nodes that nothing here tolerates, for the warning."""
    if cx.inventory is None:
        return []
    return [
        str(taint)
        for taint in cx.inventory.gpu_taints
        if not taint.goes_away
        and taint.effect != "PreferNoSchedule"
        and not any(_tolerates(each, taint) for each in tolerations)
    ]


def _tolerates(toleration: Raw, taint: Taint) -> bool:
    """Toleration.ToleratesTaint of today: an empty key with Exists matches every taint."""
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("key") not in (None, "", taint.key):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.value
