"""Visits every place in a raw object, in order and without recursion, whatever its depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def walk(
    value: Any, at: Path = ROOT, *, without: Collection[Path] = ()
) -> Iterator[tuple[Path, Any]]:
    """Each map, list and value with its place, parents first; skips what is below `without`."""
    waiting = [(at, value)]
    while waiting:
        place, here = waiting.pop()
        yield place, here
        if place in without:
            continue
        if isinstance(here, dict):
            below = [(Path((*place, str(key))), item) for key, item in here.items()]
        elif isinstance(here, list):
            below = [(Path((*place, position)), item) for position, item in enumerate(here)]
        else:
            continue
        waiting.extend(reversed(below))
