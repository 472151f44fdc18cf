"""Whether all amounts go to known places: what the actions of a chart write in, why not out.

Known are the resources of a container of a known workload, as a whole, or its limits, with its
requests only where the limits get the same. Of what else reads an amount, a run cannot know what a
new name does to it: it may be a quota, the settings of another program, or part of a text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.kube.pod import SECTIONS
from webhook.projects.seen_amounts import ANY, DOT, KEY, map_of
from webhook.templates.written import ITEM, MADE, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.settings import Settings
    from webhook.projects.seen_amounts import Source, Uses, Write
    from webhook.templates.written import Manifest, Node, Place

_LIMITS, _REQUESTS = SECTIONS
_DEEPEST = 16  # named templates in each other


def why_elsewhere(uses: Uses, settings: Settings) -> str:
    """Which action writes amounts at another place; empty if none does."""
    for each in uses.written:
        if each.seen.is_changed:
            return f"{each.where} makes something else of them"
    known = _Known(uses, settings)
    return next(filter(None, map(known.why_not, uses.written)), "")


class _Known:
    def __init__(self, uses: Uses, settings: Settings) -> None:
        self._uses, self._settings = uses, settings
        self._users: dict[str, list[Write]] = {}
        self._parts: dict[Node, list[Write]] = {}  # keys and values of loops, by their line
        self._sections: dict[Node | Manifest, list[Write]] = {}
        for each in uses.written:
            for name in each.seen.named:
                self._users.setdefault(name, []).append(each)
            if each.place is not None:
                self._note(each, each.place)

    def _note(self, each: Write, place: Place) -> None:
        node = place.holder()
        if node is not None and node.key == MADE:
            self._parts.setdefault(node, []).append(each)
            node = node.above
        if node is not None and node.key in SECTIONS:
            self._sections.setdefault(node.above or place.manifest, []).append(each)

    def why_not(self, write: Write) -> str:
        """Why it is not known what this action makes of the amounts."""
        if not self._is_pair(write):
            return f"{write.where} writes a part of them"
        if not self._is_with_limits(write):
            return f"{write.where} writes them as requests without the same limits"
        if write.seen.named and not write.seen.is_direct:
            return ""  # what those write is looked at by itself
        last = self._elsewhere(write)
        if last is None or self._is_above_sections(write):
            return ""
        manifest = last.place.manifest if last.place is not None else None
        kinds = " or ".join(map(_shown, manifest.kinds if manifest else ())) or "a text"
        elsewhere = "elsewhere than into the resources of a container"
        return f"{last.where} may write them {elsewhere}, in {kinds}"

    def _is_above_sections(self, write: Write) -> bool:
        """Whether it writes values in which all amounts are in resources of containers there."""
        below = {
            tuple(ITEM if isinstance(each, int) else each for each in way)
            for way in self._uses.below(write.seen.source)
        }
        return bool(below) and all(self._elsewhere(write, way) is None for way in below)

    def _elsewhere(self, write: Write, below: tuple[str, ...] = ()) -> Write | None:
        """The action that writes it elsewhere than in a section, if it has these keys below."""
        for last, keys in self._places(write, below):
            manifest = last.place.manifest if last.place is not None else None
            if manifest is None or not section(manifest, _whole(keys), self._settings):
                return last
        return None

    def _places(
        self, write: Write, below: tuple[str, ...] = (), column: int = 0, depth: int = 0
    ) -> Iterator[tuple[Write, tuple[str, ...]]]:
        """The action that writes it into a manifest, with the keys there; none if not known.

        What is written has these keys `below` its own first line, and begins in this column.
        """
        place = write.place
        keys = place.keys(column, is_item=below[:1] == (ITEM,)) if place is not None else None
        if place is None or keys is None or depth == _DEEPEST:
            yield write, ()
        elif place.manifest.kinds or not place.manifest.named:
            yield write, (*keys, *below)
            users = self._users_of(place.manifest.named)
            yield from ((each, ()) for each in users if not _is_on_top(each))
        else:
            named, base = place.manifest.named, place.base(column)
            source = write.seen.source if depth == 0 else None
            for user in self._users_of(named):
                if user.seen.given is not None and not _is_given(source, user.seen.given):
                    continue
                yield from self._places(user, (*keys, *below), base, depth + 1)

    def _users_of(self, named: str) -> Iterator[Write]:
        """The actions that may include a named template; none if it is no template's name."""
        if named:
            yield from (*self._users.get(named, ()), *self._users.get(ANY, ()))

    def _is_pair(self, write: Write) -> bool:
        """Whether a part of a loop is written with the other: `{{ $key }}: {{ $value }}`."""
        node, source = _node(write), write.seen.source or ()
        if node is None or node.key != MADE:
            is_in_section = node is not None and node.key in SECTIONS
            return source[-2:-1] != (KEY,) and not (is_in_section and source[-2:-1] == (ANY,))
        parts = [each.seen.source or () for each in self._parts[node]]
        wanted = [(KEY, *source[-1:]), (ANY, *source[-1:])]
        is_whole = len({each[:-2] for each in parts}) == 1
        return is_whole and bool(source) and [each[-2:] for each in parts] == wanted

    def _is_with_limits(self, write: Write) -> bool:
        """Whether the limits of the same container get the same, where these are requests."""
        node = _node(write)
        if node is not None and node.key == MADE:
            node = node.above
        if node is None or node.key != _REQUESTS or write.place is None or _is_text(write):
            return True
        beside = self._sections[node.above or write.place.manifest]
        return any(_is_limit(each, write) for each in beside)


def _is_text(write: Write) -> bool:
    """Whether the amounts are those in the text of a named template."""
    return not write.seen.is_direct and not write.seen.named


def _node(write: Write) -> Node | None:
    return write.place.holder() if write.place is not None else None


def _is_limit(limit: Write, request: Write) -> bool:
    """Whether this action writes limits of the map of the request, whenever that is written."""
    node, source = _node(limit), map_of(limit.seen.source)
    while node is not None and node.key == MADE:
        node = node.above
    if node is None or node.key != _LIMITS or not source or source != map_of(request.seen.source):
        return False
    if limit.place is None or request.place is None:
        return False
    whole = limit.seen.source or ()
    for arm in limit.place.arms:
        asked = limit.conditions.get(arm) or ()
        if arm not in request.place.arms and not (asked and whole[: len(asked)] == asked):
            return False
    return True


def _is_given(source: Source | None, given: frozenset[str]) -> bool:
    """Whether a named template may write this with amounts, where it gets these members."""
    members = source[1:2] if source and source[0] == DOT else ()
    return not members or members[0] in given


def _is_on_top(write: Write) -> bool:
    """Whether it writes whole manifests."""
    return write.place is not None and write.place.keys() == ()


def _shown(kind: str) -> str:
    return f"kind {kind}" if kind.isalnum() else "an object of a kind that is not known"


def _whole(keys: tuple[str, ...]) -> tuple[str, ...]:
    return keys[:-1] if keys[-1:] == (MADE,) else keys
