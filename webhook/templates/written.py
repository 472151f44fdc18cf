"""Where the actions of a Go template write: its text in, their places in manifests out.

The lines are read by their columns, as YAML is. A place is known only if everything around it is
plain text and is there whenever the action is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from webhook.evaluation import workloads
from webhook.kube.pod import SECTIONS
from webhook.templates import actions
from webhook.templates.blocks import Action, Kind
from webhook.templates.open_places import last_indent, named_indent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.settings import Settings

ITEM, MADE = "[]", "{}"  # of a list; a key that an action writes
_ITEMS = "[...]"  # lines of actions, behind which an item is of the list around them
RESOURCES = "resources"
_CONTAINERS = {"containers", "initContainers"}
SIGN = "@"
_LINE = re.compile(r"(?P<dashes>(?:-(?:[ \t]+|$))*)(?P<rest>.*)")
_ENTRY = re.compile(r"(?P<key>\"[^\"]*\"|'[^']*'|[^\s#'\"{}\[\],&*!|>%][^:#]*?):(?P<value>\s.*|)$")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_MOST_BEFORE = 50  # actions in front of the text of a line


@dataclass(slots=True, eq=False)
class Manifest:
    """An object, or the text of a named template; its kinds as they are written."""

    named: str = ""
    kinds: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A key or an item of a list, by its line; `is_open` if what is below it is a part of it."""

    key: str
    column: int
    above: Node | None
    arms: tuple[int, ...]  # the branches around it, by where they begin
    is_open: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """What is around an action, or around a key. `keys` are from the top; None is not known."""

    manifest: Manifest
    arms: tuple[int, ...]
    node: Node | None = None
    column: int | None = None  # where its lines begin, if they are not the value of a key
    is_whole: bool = True  # nothing else is in the value
    is_key: bool = False

    def keys(self, below: int = 0, *, is_item: bool = False) -> tuple[str, ...] | None:
        """The keys of what begins so many columns further right, perhaps with an item of a list."""
        node = self.holder(below, is_item=is_item)
        if not self.is_whole:
            return None
        found: list[str] = []
        while node is not None:
            if not node.is_open or node.arms != self.arms[: len(node.arms)]:
                return None
            found.append(node.key)
            if node.above is None and node.column and not self.manifest.named:
                return None
            node = node.above
        return tuple(reversed(found))

    def holder(self, below: int = 0, *, is_item: bool = False) -> Node | None:
        """The key or item that it belongs to."""
        node = self.node
        if self.column is None:
            return node
        column = self.column + below
        while node is not None and node.column >= column:
            if is_item and node.column == column and node.key not in {ITEM, _ITEMS}:
                return node
            node = node.above
        return node

    def base(self, below: int = 0) -> int:
        """The column of the outermost line that it is in."""
        node = self.holder(below)
        while node is not None and node.above is not None:
            node = node.above
        return node.column if node is not None else (self.column or 0) + below


@dataclass(slots=True)
class _Region:
    """A manifest, or a named template: the last line of it, and the blocks that are open."""

    manifest: Manifest
    last: Node | None = None
    open_: list[int] = field(default_factory=list)
    around: int = 0  # blocks that were open before it


@dataclass(frozen=True, slots=True)
class Places:
    """The places of a text: of its actions, by where they begin, and of its lines."""

    of_actions: dict[int, Place]
    of_lines: list[tuple[int, int, Place, Place]]  # begin, end of the key, around it, inside it

    def of_text(self, at: int) -> Place | None:
        """The place of a word that is not in an action."""
        number = bisect_right(self.of_lines, at, key=itemgetter(0))
        if not number:
            return None
        _, key_end, around, inside = self.of_lines[number - 1]
        return around if at < key_end else inside


def places(text: str) -> Places:
    """Where the actions of a text write."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._actions = actions.read_apart(text).actions
        self._regions = [_Region(Manifest())]
        self._first = len(text) - len(text.lstrip())
        self._ends = {each.end: each for each in self._actions}
        self._begins: dict[int, Action] = {}  # of other branches, and of named templates that end
        self._found = Places({}, [])
        self._next = 0

    def read(self) -> Places:
        shown = _shown(self._text, self._actions)
        for start, end in self._segments():
            self._line(start, shown[start:end])
            self._go_on(end)
        self._go_on(len(self._text) + 1)
        return self._found

    def _segments(self) -> Iterator[tuple[int, int]]:
        """The lines, parted where named templates begin and end."""
        starts = {0, *(found.end() for found in re.finditer("\n", self._text))}
        open_: list[Action] = []
        for each in self._actions:
            if each.kind is Kind.OPENS:
                open_.append(each)
            if open_ and _is_named(open_[-1]) and each.kind in {Kind.OPENS, Kind.ENDS}:
                starts |= {each.start, each.end}
            if each.kind is Kind.TURNS and open_:
                self._begins[each.start] = open_[-1]
            if each.kind is Kind.ENDS and open_:
                begin = open_.pop()
                if _is_named(begin):
                    self._begins[each.start] = begin
        marks = sorted({*starts, len(self._text)})
        yield from pairwise(marks)

    def _go_on(self, end: int) -> None:
        """Open and close the blocks before this place."""
        while self._next < len(self._actions) and self._actions[self._next].start < end:
            each = self._actions[self._next]
            self._next += 1
            here = self._regions[-1]
            if each.kind is Kind.OPENS and _is_named(each):
                self._regions.append(_Region(Manifest(_name(each.rest))))
            elif each.kind is Kind.OPENS:
                here.open_.append(each.start)
            elif each.kind is Kind.TURNS and here.open_:
                here.open_[-1] = each.start
            elif each.kind is Kind.ENDS and here.open_:
                here.open_.pop()
            elif each.kind is Kind.ENDS and len(self._regions) > 1:
                self._regions.pop()

    def _line(self, start: int, shown: str) -> None:
        said = shown.strip()
        if not said or said.startswith("#"):
            return
        blanks = len(shown) - len(shown.lstrip())
        begins = self._column(start, blanks)
        self._go_on(start + blanks)
        here, column, start = self._regions[-1], begins or 0, start + blanks
        if said == "---" or said.startswith("--- "):
            if not here.manifest.named and column == 0:
                here.manifest, here.last = Manifest(), None
            return
        line = _LINE.fullmatch(said)
        if line is None:
            return
        for each in re.finditer("-", line["dashes"]):
            self._push(ITEM, column + each.start())
        column += line.start("rest")
        rest = line["rest"]
        entry, start = _ENTRY.fullmatch(rest), start + line.start("rest")
        if begins is None and (entry is not None or rest.strip(f"{SIGN} ")):
            here.manifest.kinds.append(SIGN)
        if entry is not None:
            self._entry(start, column, entry)
        elif rest and not rest.startswith("#"):
            self._output(start, None if begins is None else column, rest)

    def _column(self, start: int, blanks: int) -> int | None:
        """Where a line is written. What `{{-` and `-}}` join to other text is not known."""
        at, before = start + blanks, self._next
        width = 0
        for each in self._actions[before : before + _MOST_BEFORE]:
            if each.start >= at:
                break
            width += each.end - each.start
            said = self._text[each.start : each.end]
            if said.startswith("{{-") or said.endswith("-}}"):
                return None if each.start > self._first else 0
        column, is_trimmed = blanks - width, self._text.startswith("{{-", at)
        while True:
            end = at
            while end and self._text[end - 1].isspace():
                end -= 1
            action = self._ends.get(end)
            if not is_trimmed and (action is None or not self._text.startswith("-}}", end - 3)):
                return column
            if not end or (action is not None and action.kind is Kind.OPENS and _is_named(action)):
                return 0
            if action is None or _writes(action):
                return None
            at = self._begins.get(action.start, action).start
            is_trimmed = self._text.startswith("{{-", at)
            line = self._text.rfind("\n", 0, at) + 1
            if not is_trimmed:
                return None if self._text[line:at].strip() else at - line

    def _entry(self, start: int, column: int, entry: re.Match[str]) -> None:
        here = self._regions[-1]
        key, value = entry["key"].strip().strip("\"'"), _COMMENT.sub("", entry["value"]).strip()
        if column == 0 and key in {"kind", "apiVersion"}:
            manifest = here.manifest
            (manifest.kinds if key == "kind" else manifest.versions).append(value.strip("\"'"))
        is_made = bool(key) and not key.strip(SIGN)
        around = Place(here.manifest, (*here.open_,), here.last, column, is_whole=SIGN not in key)
        node = self._push(MADE if is_made else key, column, is_open=is_made or SIGN not in key)
        value_at = start + entry.start("value")
        is_whole = not value.strip(f"{SIGN} \"'" if is_made else f"{SIGN} ")
        is_whole = is_whole and self._are_apart(value_at, start + len(entry[0]))
        inside = Place(here.manifest, (*here.open_,), node, is_whole=is_whole)
        self._found.of_lines.append((start, value_at, around, inside))
        for each in self._written(start, start + len(entry[0])):
            arms = (*here.open_,)
            if each.start < value_at:
                made = Place(here.manifest, arms, node, is_whole=is_made, is_key=True)
            else:
                made = Place(here.manifest, arms, node, is_whole=is_whole)
            self._found.of_actions[each.start] = made
        if value:
            self._push(key, column, is_open=False)

    def _output(self, start: int, column: int | None, rest: str) -> None:
        """Lines that are made by actions alone, or text that is no YAML known here."""
        here, end = self._regions[-1], start + len(rest)
        is_whole = not rest.strip(f"{SIGN} ") and self._are_apart(start, end)
        found = [] if column is None or is_whole else [column]
        are_lines = is_whole
        for each in self._written(start, end):
            said, last = named_indent(self._text, each), last_indent(self._text, each)
            are_lines = are_lines and (last is not None or (said is None and column == 0))
            if column is None and said is None:
                here.manifest.kinds.append(SIGN)
            at = (column or 0) if said is None else said
            is_apart = said is not None or (column is not None and each.start == start)
            self._found.of_actions[each.start] = Place(
                here.manifest, (*here.open_,), here.last, at, is_whole=is_whole and is_apart
            )
            found.append(at)
        at = min(found, default=0)
        around = Place(here.manifest, (), here.last, at).holder(is_item=True)
        are_items = are_lines and (
            _may_hold(around, at) if around is not None else bool(here.manifest.named)
        )
        self._push(_ITEMS if are_items else "", at, is_open=False)

    def _are_apart(self, start: int, end: int) -> bool:
        """Whether the actions here write lines of their own, or only one of them writes."""
        found, number = [], self._next
        while number < len(self._actions) and self._actions[number].start < end:
            each = self._actions[number]
            if _writes(each) and each.start >= start:
                found.append(named_indent(self._text, each))
            number += 1
        return len(found) <= 1 or None not in found

    def _written(self, start: int, end: int) -> Iterator[Action]:
        """The actions here that write something; blocks before each of them are opened."""
        while self._next < len(self._actions) and self._actions[self._next].start < end:
            each = self._actions[self._next]
            self._go_on(each.start + 1)
            if _writes(each) and each.start >= start:
                yield each

    def _push(self, key: str, column: int, *, is_open: bool = True) -> Node:
        here = self._regions[-1]
        above = here.last
        are_items = key in {ITEM, _ITEMS}
        while above is not None and (
            above.column > column
            or (above.column == column and (not are_items or above.key in {ITEM, _ITEMS}))
        ):
            above = above.above
        here.last = Node(key, column, above, (*here.open_,), is_open)
        return here.last


def _may_hold(around: Node, column: int) -> bool:
    """Whether an item behind lines in this column is of the list around them.

    In the column of the key they may have another key, which then has that item. In a pod no
    other list has items with resources: the API server refuses these, or leaves them out.
    """
    return around.column < column or around.key in _CONTAINERS


def _writes(action: Action) -> bool:
    return action.kind is Kind.WRITES and action.word != "fail"  # which ends the rendering


def _is_named(action: Action) -> bool:
    return action.word in {"define", "block"}


def _name(said: str) -> str:
    return re.split('["`]', f'{said}"?"')[1]


def _shown(text: str, every: list[Action]) -> str:
    """The text with a sign for each output, and blanks for all other actions."""
    pieces, here = [], 0
    for each in every:
        said = text[each.start : each.end]
        first, line_end, more = said.partition("\n")
        sign = SIGN if _writes(each) else " "
        pieces += [text[here : each.start].replace(SIGN, "a"), sign * len(first), line_end]
        pieces.append(actions.blank(more))
        here = each.end
    return "".join([*pieces, text[here:].replace(SIGN, "a")])


def section(manifest: Manifest, keys: tuple[str, ...], settings: Settings) -> str:
    """What this place is of a container in a pod: `resources`, `limits` or `requests`, or none."""
    found = {
        _section(kind, version, keys, settings)
        for kind in manifest.kinds
        for version in manifest.versions or ["v1"]
    }
    return next(iter(found)) if len(found) == 1 else ""


def _section(kind: str, version: str, keys: tuple[str, ...], settings: Settings) -> str:
    last = keys[-1:]
    inside = keys[:-1] if last and last[0] in SECTIONS else keys
    is_made = SIGN in version
    if inside[-1:] != (RESOURCES,) or (is_made and kind not in workloads.TEMPLATES):
        return ""
    made: Any = {}
    for key in reversed(keys):
        made = [made] if key == ITEM else {key: made}
    obj = {"apiVersion": "v1" if is_made else version, "kind": kind, **made}
    for at in workloads.templates_of(obj, settings):
        pod = tuple(ITEM if isinstance(each, int) else each for each in at)
        if any(inside == (*pod, "spec", each, ITEM, RESOURCES) for each in _CONTAINERS):
            return last[0]
    return ""
