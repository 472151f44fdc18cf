"""What is known of GPU amounts in the actions of a chart: where they are from, who writes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import or_
from typing import TYPE_CHECKING, Any

from webhook.kube.pod import SECTIONS
from webhook.kube.walk import walk
from webhook.templates.expressions import At, Constant, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.templates.expressions import Call, Expression
    from webhook.templates.written import Place

Source = tuple[str | int, ...]  # the way to a value, through members and loops
ANY = "*"  # a named template whose name is not known; an item of a loop
KEY = "key"
DOT = "dot"  # of a named template


@dataclass(frozen=True, slots=True)
class Seen:
    """What an expression may give: a map with amounts or a part of it, and known texts."""

    amounts: bool = False
    texts: frozenset[str] = frozenset()
    is_cut: bool = False  # its texts may be parts of names
    is_direct: bool = False  # amounts that no named template writes
    is_changed: bool = False  # the amounts may not be what they were
    is_parsed: bool = False  # read from a text, so its members are those of texts
    named: frozenset[str] = frozenset()  # templates that write it
    given: frozenset[str] | None = None  # members of a new map that have amounts, if known
    source: Source | None = None  # the only place that the amounts are from
    items: tuple[Seen, ...] | None = None  # of a list that an action makes

    def __or__(self, other: Seen) -> Seen:
        one, both = (self if self.amounts else other), self.amounts and other.amounts
        is_same = not both or (self.source, self.given) == (other.source, other.given)
        items = one.items
        if both and items is not None:
            of_other = other.items or ()
            is_like = len(items) == len(of_other)
            items = tuple(map(or_, items, of_other)) if is_like else None
        return Seen(
            self.amounts or other.amounts,
            self.texts | other.texts,
            self.is_cut or other.is_cut,
            self.is_direct or other.is_direct,
            self.is_changed or other.is_changed,
            self.is_parsed or other.is_parsed,
            self.named | other.named,
            given=one.given if is_same else None,
            source=one.source if is_same else None,
            items=items,
        )

    @property
    def size(self) -> int:
        """How often it has amounts: in whole, and by its items."""
        return self.amounts + sum(each.amounts for each in self.items or ())

    def inside(self, loop: int, part: str = ANY) -> Seen:
        """An item of it in a loop, or its key."""
        source = None if self.source is None else (*self.source, part, loop)
        return replace(self, source=source, items=None)


ANYTHING = Seen(amounts=True, is_direct=True)


@dataclass(frozen=True, slots=True)
class Write:
    """What writes amounts: an action, or the text of a named template."""

    where: str
    place: Place | None
    seen: Seen
    conditions: dict[int, Source | None]  # of the blocks of its file


@dataclass(slots=True)
class Uses:
    """What the actions of a chart do; each with the first place, and the function."""

    names: tuple[str, ...]  # of the resource, before and after
    leads: set[str] = field(default_factory=set)  # members that are amounts, or have some inside
    parsed: set[str] = field(default_factory=set)  # the same, in maps that are read from texts
    ways: set[tuple[str | int, ...]] = field(default_factory=set)  # to amounts, in values
    holders: set[str] = field(default_factory=lambda: {*SECTIONS})  # members of amounts or sections
    names_in: dict[str, frozenset[str]] = field(default_factory=dict)  # by members: names in them
    bare: frozenset[str] = frozenset()  # names that named templates write
    writes: set[str] = field(default_factory=set)  # named templates that write amounts
    files: frozenset[str] = frozenset()  # with amounts, which templates may read
    looks: str = ""  # a function that looks at the names
    combines: str = ""  # a function that may put amounts together
    builds: str = ""  # a function that builds amounts
    changes: str = ""  # a function that changes values where they are
    dots: dict[str, Seen] = field(default_factory=dict)  # what named templates get
    written: list[Write] = field(default_factory=list)
    sections: dict[str, str] = field(default_factory=dict)  # those that are read alone
    is_legacy: bool = False  # values or named templates have amounts that a run renames
    is_apart: bool = False  # the limits and requests of a container may be of different maps
    is_deep: bool = False  # values are given on more often than is followed

    @property
    def size(self) -> int:
        return len(self.leads) + len(self.writes) + sum(each.size for each in self.dots.values())

    @property
    def place(self) -> str:
        return self.combines or next(iter(self.sections.values()), "")

    def learn(self, data: Any) -> None:
        """Note which members of values have amounts inside, and which name a resource."""
        for at, value in walk(data):
            if at[-1:] and at[-1] in self.names:
                members = {*map(str, at), "Values"}
                self.ways.add(tuple(at[:-1]))
                self.is_legacy |= at[-1] != self.names[-1]
                self.leads |= members if members.isdisjoint(SECTIONS) else members | {*SECTIONS}
                *_, above, holder = ("", "Values", *map(str, at[:-1]))
                self.holders |= {holder, above} if holder in SECTIONS else {holder}
            elif at and isinstance(value, str) and value in self.names:
                said = self.names_in.get(str(at[-1]), frozenset())
                self.names_in[str(at[-1])] = said | {value}

    def below(self, source: Source | None) -> set[tuple[str | int, ...]]:
        """The ways to the amounts in the values of this source, from there; none if not known.

        Values of a chart may be below others, in those of a chart around it.
        """
        if not source or source[:2] != ("$", "Values") or KEY in source:
            return set()
        members = [each for each in source[2:] if isinstance(each, str)]
        return {
            way[at + len(members) :]
            for way in self.ways
            for at in range(len(way) - len(members) + 1 if members else 0)
            if all(
                asked in {ANY, str(said)} for asked, said in zip(members, way[at:], strict=False)
            )
        }

    def may_name(self, given: Expression | None) -> bool:
        """Whether keys of a map may be names of amounts, not of what has them further inside."""
        members = given.members if isinstance(given, At) else ()
        return not members or members[-1] in self.holders


def map_of(source: Source | None) -> Source | None:
    """Where the map is from that has the limits and requests, or has the amounts itself."""
    if source and source[-2:-1] in {(ANY,), (KEY,)}:
        source = source[:-2]
    return source[:-1] if source and source[-1] in SECTIONS else source


def is_unlike(given: Sequence[Expression], seen: Sequence[Seen]) -> bool:
    """Whether a map of these names and values has amounts under another name, or as requests."""
    sources: dict[str, Source | None] = {}
    for name, value in zip(given[::2], seen[1::2], strict=False):
        if value.amounts and not isinstance(name, Text):
            return True
        if isinstance(name, Text) and name.value in SECTIONS and value.amounts:
            sources[name.value] = map_of(value.source)
    limits = sources.get("limits")
    return "requests" in sources and (limits is None or limits != sources["requests"])


def item_of(given: Call, seen: Sequence[Seen]) -> Seen | None:
    """The item that a call gives of a list that an action made; None if that is not known."""
    items, last = seen[0].items if seen else None, given.arguments[-1:]
    if items is None or given.name not in {"first", "index", "last"}:
        return None
    at = {"first": "0", "last": f"{len(items) - 1}"}.get(given.name, "")
    if len(seen) == 2 and isinstance(last[0], Constant):  # noqa: PLR2004
        at = last[0].value
    return replace(items[int(at)], source=None) if at in map(str, range(len(items))) else None


def is_without_limits(given: Call) -> bool:
    """Whether a part of resources may have requests alone."""
    names = {each.value for each in given.arguments if isinstance(each, Text)}
    if given.name not in {"omit", "pick"}:
        return False
    if len(names) < len(given.arguments) - 1:
        return True
    return "limits" in names if given.name == "omit" else names == {"requests"}
