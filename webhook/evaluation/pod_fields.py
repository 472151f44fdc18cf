"""Reads the fields of a pod that repairs change: one key and one value each, list items by name.

Positions are useless for comparing two versions of a pod, because a merge may move items. Only the
fields that are listed here are ever compared or restored.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from webhook.core.draft import Draft, copied
from webhook.core.edits import Append, Edit, Remove, Set
from webhook.core.errors import EditError
from webhook.kube.pod import KINDS, Raw, as_items, as_map
from webhook.kube.pointer import ROOT, Path, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


Key = tuple[str, ...]  # as a path, with names instead of positions
Change = tuple[Any, Any]  # before and after; None means missing

TOLERATIONS: Key = ("spec", "tolerations")

_OF_PODS = ("nodeSelector", "affinity", "tolerations", "securityContext")
_FIELDS = ("hostname", "subdomain", "schedulerName", "runtimeClassName")
_OF_CONTAINERS = ("resources", "securityContext")
# The names that identify items.
LISTS = {"volumes": "name", "env": "name", "volumeMounts": "mountPath"}
_ITEMS = {(name,) for name in LISTS}
_DEEPEST = 12  # no repair changes a deeper map: values below are compared as a whole
_VARIABLES = ("LD_LIBRARY_PATH", "PATH")  # the only variables that a repair changes


class PodFields:
    """The fields of the pod, or pod template, at `at` in an object; no copies are made."""

    __slots__ = ("_containers", "_lists", "_places", "at", "empty", "values")

    def __init__(self, obj: Raw, at: Path = ROOT) -> None:
        self.at = at
        self.values: dict[Key, Any] = {}
        self.empty: set[Key] = set()  # maps and lists around such fields
        self._places: dict[Key, tuple[Path, tuple[str | int, ...]]] = {}  # and the rest of the path
        self._containers: dict[Key, Path] = {}
        self._lists: dict[Key, tuple[Path, list[Raw]]] = {}
        pod = as_map(value_at(obj, at))
        metadata, spec = as_map(pod.get("metadata")), as_map(pod.get("spec"))
        self._walk(metadata.get("annotations"), ("metadata", "annotations"), at / "metadata")
        spec_at = at / "spec"
        for name in (*_OF_PODS, *_FIELDS):
            if name in spec:
                self._walk(spec[name], ("spec", name), spec_at)
        self._items(spec, ("spec", "volumes"), spec_at)
        for kind in KINDS:
            for position, container in as_items(spec.get(kind)):
                key = ("spec", kind, str(container.get("name")))
                place = Path((*at, "spec", kind, position))
                self._containers.setdefault(key, place)
                for name in _OF_CONTAINERS:
                    if name in container:
                        self._walk(container[name], (*key, name), place)
                for name in ("env", "volumeMounts"):
                    if name in container:
                        self._items(container, (*key, name), place)

    def kept(self) -> PodFields:
        """The same fields with copies of their values, unaffected by later edits."""
        self.values = {key: copied(value) for key, value in self.values.items()}
        return self

    def edits_to(self, wanted: Mapping[Key, Any]) -> list[Edit]:
        """The edits that give these fields these values; a field with the value None is removed.

        A missing container is not created.
        """
        edits: list[Edit] = []
        leaving: list[Key] = []
        for key, value in wanted.items():
            if self.values.get(key) == value:
                continue
            if value is None:
                leaving.append(key)
            elif key in self._places:
                edits.append(Set(self._place(key), value))
            else:
                edits += self._added(key, value)
        coming = [each.at for each in edits if isinstance(each, Set)]
        return [*edits, *map(Remove, self._emptied(leaving, coming))]

    def ordered_as(self, other: PodFields) -> list[Edit]:
        """The edits that give lists with equal items the order of the other's lists."""
        return [
            Set(at, there[1])
            for key, (at, items) in self._lists.items()
            if (there := other._lists.get(key)) is not None and items != there[1]
            if _sorted(items, key) == _sorted(there[1], key)
        ]

    def _added(self, key: Key, value: Any) -> list[Edit]:
        place, rest = self.at, key
        if key[1] in KINDS:
            if key[:3] not in self._containers:
                return []
            place, rest = self._containers[key[:3]], key[3:]
        is_item = rest[-2:-1] in _ITEMS and isinstance(value, dict)
        to = Path((*place, *(rest[:-1] if is_item else rest)))
        return [Append(to, value) if is_item else Set(to, value)]

    def _emptied(self, leaving: list[Key], coming: list[Path]) -> list[Path]:
        """The places to remove: maps that become empty are removed with their last field."""
        if not leaving:
            return []
        held = {*map(self._place, self._places), *coming}
        there = Counter(above for at in held for above in _above(at))
        going = Counter(above for key in leaving for above in _above(self._place(key)))
        shortest = len(self.at) + 3  # the draft removes an empty map, but spec stays
        places = []
        for key in leaving:
            at = self._place(key)
            base = max(shortest, len(self._containers.get(key[:3], self.at)) + 2)
            while (
                len(at) > base and isinstance(at[-1], str) and there[at.parent] == going[at.parent]
            ):
                at = at.parent
            places.append(at)
        return list(dict.fromkeys(places))

    def _walk(self, value: Any, key: Key, above: Path) -> None:
        shared = len(key) - 1  # of the key and the place: the rest is equal
        waiting = [(value, key)]
        while waiting:
            here, called = waiting.pop()
            if isinstance(here, dict) and len(called) < _DEEPEST:
                waiting += [(each, (*called, name)) for name, each in here.items()]
                if not here:
                    self.empty.add(called)
            elif here is not None:
                self._put(called, above, called[shared:], here)

    def _items(self, holder: Raw, key: Key, above: Path) -> None:
        name = key[-1]
        items = as_items(holder.get(name))
        for position, item in items:
            called = str(item.get(LISTS[name]))
            if name != "env" or called in _VARIABLES:
                self._put((*key, called), above, (name, position), item)
        if items:
            self._lists[key] = (above / name, [item for _, item in items])
        elif holder.get(name) == []:
            self.empty.add(key)

    def _put(self, key: Key, above: Path, below: tuple[str | int, ...], value: Any) -> None:
        if key not in self.values:  # of two items with one name the first counts
            self.values[key] = value
            self._places[key] = above, below

    def _place(self, key: Key) -> Path:
        above, below = self._places[key]
        return Path((*above, *below))


def apply(draft: Draft, edits: Iterable[Edit]) -> None:
    """Make all of these edits, or none in a pod whose fields have unexpected types."""
    with suppress(EditError):
        draft.apply(edits)


def restore(draft: Draft, now: PodFields, then: PodFields, keys: Iterable[Key]) -> PodFields:
    """Restore the stored values of these fields, and the order of lists.

    Returns the fields after it.
    """
    wanted = {key: then.values.get(key) for key in keys}
    apply(draft, now.edits_to(wanted))
    restored = PodFields(draft.object, now.at)
    apply(draft, restored.ordered_as(then))
    return restored


def changes(before: Mapping[Key, Any], after: Mapping[Key, Any]) -> dict[Key, Change]:
    """The fields with changed values."""
    return {
        key: (before.get(key), after.get(key))
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    }


def is_of_settings(key: Key) -> bool:
    """Whether a repair may write this field only because of the settings, without a word."""
    return key[1] in ("nodeSelector", "volumes", "runtimeClassName") or (
        key[3:4] in (("env",), ("volumeMounts",))
    )


def _above(at: Path) -> list[Path]:
    return [Path(at[:length]) for length in range(len(at))]


def _sorted(items: list[Raw], key: Key) -> list[Raw]:
    return sorted(items, key=lambda item: str(item.get(LISTS[key[-1]])))
