"""Compares an object as the rules make it with what is built: the first place that differs out.

Both are compared in their normal form, as `verify` compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.formats.normal_form import normal_form

if TYPE_CHECKING:
    from webhook.core.settings import Settings

    Raw = dict[str, Any]


class Difference(NamedTuple):
    """A place in two objects, and what each of them has there."""

    where: str
    wanted: Any
    built: Any

    @property
    def advice(self) -> str:
        """What to write where the lists of tolerations differ; empty for other places."""
        if "tolerations" not in self.where:
            return ""
        if not self.wanted:
            return "a pod that requests no GPUs would tolerate GPU nodes, so remove that there; "
        return "add a toleration of nvidia.com/gpu:NoSchedule there; "


def difference(wanted: Raw, built: Raw, settings: Settings) -> Difference | None:
    """The first place in which two objects differ, or None."""
    return _first(normal_form(wanted, settings), normal_form(built, settings), "")


def _first(one: Any, other: Any, at: str) -> Difference | None:
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                return _first(one.get(name), other.get(name), f"{at}.{name}" if at else name)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(
            _first(a, b, f"{at}[{n}]")
            for n, (a, b) in enumerate(zip(one, other, strict=True))
            if a != b
        )
    return Difference(at, one, other)
