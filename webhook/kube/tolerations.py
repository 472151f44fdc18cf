"""Which taints a pod tolerates, and which tolerations a namespace allows.

The plugin PodTolerationRestriction runs again after a pod was changed, and rejects a pod with a
toleration that the annotation `scheduler.alpha.kubernetes.io/tolerationsWhitelist` of its namespace
does not cover. Without the annotation it uses the configuration of the API server, which cannot be
read from the cluster.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from webhook.kube import go_json
from webhook.kube.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.settings import Taint
    from webhook.kube.pod import Raw


_FIELDS = ("key", "operator", "value", "effect")
SHAPE = {**dict.fromkeys(_FIELDS, str), "tolerationSeconds": go_json.INT64}


class Tolerations:
    """The tolerations of a pod: each is read once, for any number of taints.

    Only Exists is checked by its operator; any other operator compares values, as Equal does.
    """

    def __init__(self, tolerations: Iterable[Mapping[str, Any]]) -> None:
        self._same: set[tuple[str, ...]] = set()
        self._any: set[tuple[str, str]] = set()  # key and effect; either may be empty: all
        self._equal: set[tuple[str, str, str]] = set()  # and the value
        for each in tolerations:
            self.add(each)

    def add(self, toleration: Mapping[str, Any]) -> None:
        self._same.add(_fields(toleration))
        key, effect = _text(toleration.get("key")), _text(toleration.get("effect"))
        if toleration.get("operator") == "Exists":
            self._any.add((key, effect))
        elif key:
            self._equal.add((key, effect, _text(toleration.get("value"))))

    def has(self, toleration: Mapping[str, Any]) -> bool:
        """Whether exactly this toleration is there, as in Toleration.MatchToleration."""
        return _fields(toleration) in self._same

    def tolerate(self, taint: Taint) -> bool:
        """The current Toleration.ToleratesTaint: an empty key with Exists matches every taint."""
        key, effect, value = taint.key, taint.effect, taint.value
        return not self._any.isdisjoint(
            ((key, ""), (key, effect), ("", ""), ("", effect))
        ) or not self._equal.isdisjoint(((key, "", value), (key, effect, value)))


def _fields(toleration: Mapping[str, Any]) -> tuple[str, ...]:
    values = tuple([toleration.get(field, "") for field in _FIELDS])
    return values if {*map(type, values)} == {str} else (canonical(values),)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def allows(whitelist: str, toleration: Mapping[str, str]) -> bool:
    """Whether a pod may have this toleration, as in VerifyAgainstWhitelist (1.36)."""
    allowed = _read(whitelist)
    if allowed is None:  # the plugin rejects each pod that has tolerations
        return False
    return not allowed or any(_covers(each, toleration) for each in allowed)


@lru_cache(maxsize=256)  # the annotations of a few namespaces, which only admins write
def _read(text: str) -> tuple[Raw, ...] | None:
    """The tolerations in the annotation; None if it cannot be read."""
    try:
        value = go_json.loads(text) if text else None
        return () if value is None else tuple(go_json.read(value, [SHAPE], "it", pass_over))
    except go_json.Mistake:
        return None


def pass_over(where: str, member: str) -> None:
    """Ignore members that the type does not have, as Go does."""


def _covers(allowed: Raw, toleration: Mapping[str, str]) -> bool:
    """The isSuperset of pkg/util/tolerations, for tolerations without tolerationSeconds."""
    key, operator = allowed.get("key", ""), allowed.get("operator", "")
    effect = allowed.get("effect", "")
    if toleration["key"] != key and (key or operator != "Exists"):
        return False
    if effect not in ("", toleration["effect"]):
        return False
    if effect == "NoExecute" and "tolerationSeconds" in allowed:
        return False  # it lets a pod stay for a while, not permanently
    if operator == "Exists":
        return True
    equal = operator in ("", "Equal") and toleration["operator"] == "Equal"
    return equal and toleration.get("value", "") == allowed.get("value", "")
