"""Whether a pod has the types that an API server sends, in all fields that rules read and write.

API servers send only typed pods. Any other pod comes from a client that reaches the port, or from a
manifest that an API server would reject; an exception of a rule on it is not a bug.
"""

from __future__ import annotations

from typing import Any, Final

from webhook.kube.affinity import POD_AFFINITY, REQUIREMENT
from webhook.kube.container_shape import CONTAINER
from webhook.kube.go_json import INT32, fits
from webhook.kube.pod import KINDS, PREFERRED, REQUIRED
from webhook.kube.tolerations import SHAPE as TOLERATION

_ANYTHING: Final = object
_EACH: Final = "*"  # any member of a map

_TERM = {"matchExpressions": [REQUIREMENT], "matchFields": [REQUIREMENT]}
_POD: dict[str, Any] = {
    "metadata": {
        "annotations": {_EACH: str},
        "labels": {_EACH: str},
        "ownerReferences": [{"kind": str, "name": str}],
    },
    "spec": {
        **{kind: [CONTAINER] for kind in KINDS},
        "nodeSelector": {_EACH: str},
        "tolerations": [TOLERATION],
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [_TERM]},
                PREFERRED: [{"preference": _TERM, "weight": INT32}],
            },
            "podAffinity": POD_AFFINITY,
            "podAntiAffinity": POD_AFFINITY,
        },
        "volumes": [{"name": str, "hostPath": {"path": str}}],
        "securityContext": {"seccompProfile": {_EACH: str}, "sysctls": [{_EACH: str}]},
        "resourceClaims": [{"name": str}],
        "os": {"name": str},
        **dict.fromkeys(("schedulerName", "runtimeClassName", "nodeName", "hostname"), str),
    },
}


def is_typed(pod: dict[str, Any]) -> bool:
    """Whether an API server could have sent this pod, or pod template."""
    return _fits(pod, _POD)


def may_have(key: tuple[str, ...], value: object) -> bool:
    """Whether an API server could have sent this value in this field; items have their names."""
    shape: Any = _POD
    for token in key:
        if isinstance(shape, dict):
            shape = shape.get(token, shape.get(_EACH, _ANYTHING))
        elif isinstance(shape, list):
            shape = shape[0]
    return _fits(value, shape)


def _fits(value: Any, shape: Any) -> bool:
    """Null counts as missing, and fields that nothing reads may have any value."""
    if value is None:
        return True
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in value)
    if not isinstance(shape, dict):
        return shape is _ANYTHING or fits(value, shape)
    if not isinstance(value, dict):
        return False
    each = shape.get(_EACH, _ANYTHING)
    return all(_fits(member, shape.get(key, each)) for key, member in value.items())
