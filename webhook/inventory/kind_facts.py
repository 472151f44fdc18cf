"""Keeps the facts about the objects of one kind, by key: events in, the objects that count out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

F = TypeVar("F")
Data = tuple[dict[str, F], dict[str, tuple[F, float]]]  # facts, and deleted ones with the time


class KindFacts(Generic[F]):
    """The facts of one kind, by key."""

    def __init__(self) -> None:
        self.facts: dict[str, F] = {}
        self.version = 0  # grows whenever a fact changes
        # Of a list that is being read: the known objects that it has not contained so far. Their
        # keys are those of `facts`: the keys of the list would be scattered over its memory.
        self._unlisted: set[str] = set()

    def put(self, key: str, fact: F | None, now: float) -> None:
        """Add or change an object. Without a fact, nothing of the object is kept."""
        self._unlisted.discard(key)
        before = self.facts.get(key)
        if fact == before:
            return
        if fact is None:
            del self.facts[key]
        else:
            self.facts[key] = fact
        self.version += 1
        self._changed(key, before, fact, now)

    def drop(self, key: str, now: float) -> None:
        """The object was deleted."""
        self.put(key, None, now)

    def begin(self) -> None:
        """A list of all objects follows.

        If a list breaks off, the objects that it did contain stay.
        """
        self._unlisted = set(self.facts)

    def end(self, now: float) -> None:
        """End of the list: remove every object that it did not contain."""
        unlisted, self._unlisted = self._unlisted, set()
        if unlisted:
            for key in [each for each in self.facts if each in unlisted]:
                self.drop(key, now)

    def _changed(self, key: str, before: F | None, after: F | None, now: float) -> None:
        """Overridden for kinds that keep counts."""


class Hints(KindFacts[F]):
    """Objects besides nodes that mean capacity. A deleted one still counts for some time.

    It may be missing for a moment only: cluster-autoscaler deletes its status when it exits, and an
    upgrade may delete and create again a NodePool, a DeviceClass, or the CRD.
    """

    def __init__(self, seconds: float, data: TypeAdapter[Data[F]]) -> None:
        """`data` turns facts into values for JSON, and back."""
        super().__init__()
        self.refused = False  # RBAC forbids listing them, so what exists is unknown
        self._seconds = seconds
        self._data = data
        self._deleted: dict[str, tuple[F, float]] = {}  # and when it was deleted

    def put(self, key: str, fact: F | None, now: float) -> None:
        if self._deleted.pop(key, None) is not None:
            self.version += 1
        super().put(key, fact, now)

    def drop(self, key: str, now: float) -> None:
        fact, deleted = self.facts.get(key), self._deleted.get(key)
        super().drop(key, now)
        if fact is not None:
            deleted = (fact, now)
        if deleted is not None and self._seconds:
            self._deleted[key] = deleted

    def refuse(self) -> None:
        """RBAC forbids listing them."""
        self.version += not self.refused
        self.refused = True

    def end(self, now: float) -> None:
        self.version += self.refused
        self.refused = False
        super().end(now)

    def counted(self) -> list[F]:
        """The existing objects and those that were deleted a short while ago."""
        deleted = (fact for fact, _ in self._deleted.values())
        return [*self.facts.values(), *deleted]

    def forget(self, now: float) -> None:
        """Forget what was deleted too long ago."""
        old = [key for key, (_, at) in self._deleted.items() if at + self._seconds <= now]
        for key in old:
            del self._deleted[key]
            self.version += 1

    def as_data(self) -> Any:
        """All of it, for the next process of the watcher."""
        return self._data.dump_python((self.facts, self._deleted), mode="json")

    def recall(self, data: Any) -> None:
        """Start with these facts; the next list updates them."""
        self.facts, self._deleted = self._data.validate_python(data)
        self.version += 1
