"""Two versions of an object with pod templates in: where a template of the one is in the other."""

from __future__ import annotations

from collections import Counter
from typing import Any

from webhook.kube.pod import Raw, as_items, as_map
from webhook.kube.pointer import Path


class MatchingTemplates:
    """The places of templates in two versions of an object: `old`, and `obj` in which they are now.

    Items of a list are matched by their names: an update may move them.
    """

    def __init__(self, old: Raw, obj: Raw) -> None:
        self._old, self._obj = old, obj
        self._read: dict[int, tuple[Any, dict[str, int]]] = {}  # with the list, so that it stays

    def in_old(self, at: Path) -> Path | None:
        """The place in the old version of the template that is at this place now.

        None if there is no item with this name, or more than one.
        """
        here: Any = self._obj
        there: Any = self._old
        found: list[str | int] = []
        for token in at:
            step: str | int | None = token
            if isinstance(here, list):
                name = _name_of(here[int(token)])
                step = (
                    self._named(there).get(name) if self._named(here).get(name) == token else None
                )
            elif not isinstance(there, dict) or token not in there:
                step = None
            if step is None:
                return None
            found.append(step)
            here, there = here[token], there[step]
        return Path(found) if isinstance(there, dict) else None

    def _named(self, items: Any) -> dict[str, int]:
        """The positions in a list by name, without names that two items have. Read once."""
        if id(items) not in self._read:
            names = [(_name_of(each), position) for position, each in as_items(items)]
            times = Counter(name for name, _ in names)
            once = {name: at for name, at in names if name and times[name] == 1}
            self._read[id(items)] = items, once
        return self._read[id(items)][1]


def _name_of(item: Any) -> str:
    """The name of an item in a list of templates; groups of Ray have another field for it."""
    fields = as_map(item)
    name = fields.get("name") or fields.get("groupName")
    return name if isinstance(name, str) else ""
