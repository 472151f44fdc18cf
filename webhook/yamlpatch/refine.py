"""Replaces an old value by a new one with the fewest edits inside the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Append, Edit, Remove, Set
from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.pointer import Path

_LONGEST = 500  # items; a longer list is not compared item by item


def refined(old: Any, new: Any, at: Path) -> Iterator[Edit]:
    """The edits from `old` to `new`; a Set of the whole if they have too little in common.

    Items can only be added at the end of a list, so some changes of lists are new lists.
    """
    if is_same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict) and old and new:
        yield from _of_map(old, new, at)
        return
    if isinstance(old, list) and isinstance(new, list) and old and new:
        edits = _of_list(old, new, at)
        if edits is not None:
            yield from edits
            return
    yield Set(at, new)


def _of_map(old: dict[str, Any], new: dict[str, Any], at: Path) -> Iterator[Edit]:
    for name, was in old.items():
        if name in new:
            yield from refined(was, new[name], at / name)
        else:
            yield Remove(at / name)
    for name, value in new.items():
        if name not in old:
            yield Set(at / name, value)


def _of_list(old: list[Any], new: list[Any], at: Path) -> list[Edit] | None:
    """Equal items stay, those between them are changed or removed; None if one was inserted."""
    if max(len(old), len(new)) > _LONGEST:
        return None
    edits: list[Edit] = []
    mine = theirs = 0
    for stays, there in [*_common(old, new), (len(old), len(new))]:
        while mine < stays and theirs < there:
            edits += refined(old[mine], new[theirs], at / mine)
            mine, theirs = mine + 1, theirs + 1
        edits += [Remove(at / gone) for gone in range(mine, stays)]
        if theirs < there and stays < len(old):
            return None
        edits += [Append(at, value) for value in new[theirs:there]]
        mine, theirs = stays + 1, there + 1
    return edits


def _common(old: list[Any], new: list[Any]) -> list[tuple[int, int]]:
    """Positions of the items of a longest common subsequence, in both lists."""
    best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            same = is_same(old[i], new[j])
            best[i][j] = best[i + 1][j + 1] + 1 if same else max(best[i + 1][j], best[i][j + 1])
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if is_same(old[i], new[j]):
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return found
