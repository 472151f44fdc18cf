"""Parses YAML into nodes from libyaml's events; its composer recurses in C and may crash."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from webhook.yamlpatch import yaml_words
from webhook.yamlpatch.json_tree import DEEPEST
from webhook.yamlpatch.nodes import (
    Alias,
    Collection,
    Item,
    List,
    Map,
    Member,
    Node,
    Scalar,
    UnreadableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_EVENTS = 2_000_000
_PROPERTY = re.compile(r"[&!][^ \t\r\n]*")
_GAP = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_TABS = re.compile(r"\t[ \t]*(?=#|\r?$)", re.MULTILINE)
_MOST_TABS = 100  # lines with tabs before a comment that are read as if these were blanks


class NotYamlError(UnreadableError):
    """The text is not YAML."""


@dataclass(frozen=True, slots=True)
class Tree:
    """One document of a stream: its begin, with its `---`, its end, and its nodes in order."""

    start: int
    end: int
    root: Node | None
    nodes: list[Node]


def read(text: str, start: int, end: int) -> list[Tree]:
    """The documents of this part of the text; NotYamlError if it is not YAML."""
    shown = text[start:end]
    for _ in range(_MOST_TABS):
        try:
            return list(_Composer(text, shown, start).documents())
        except yaml.MarkedYAMLError as error:
            at = error.problem_mark.index if error.problem_mark is not None else 0
            without = _without_tabs(shown, at)
            if without is None:
                why = ", ".join(filter(None, (error.context, error.problem)))
                raise NotYamlError(start + at, f"is not YAML: {why}") from error
            shown = without
        except yaml.reader.ReaderError as error:
            at = len(shown.encode()[: error.position].decode(errors="ignore"))
            why = f"a control character, {chr(error.character)!r}"
            raise NotYamlError(start + at, f"is not YAML: {why}") from error
    raise NotYamlError(start, "is not YAML: tabs before its lines")


def _without_tabs(text: str, at: int) -> str | None:
    """The text with blanks for tabs before a comment or a line end, if these are the fault.

    libyaml, and so kubectl, rejects them; editors and users do not.
    """
    found = _TABS.match(text, at)
    if found is None:
        return None
    return text[:at] + " " * len(found[0]) + text[found.end() :]


@dataclass
class _Composer:
    """Turns events into nodes, with a stack of open ones.

    `shown` is what is read: the part of the text that begins at `base`.
    """

    text: str
    shown: str
    base: int
    open_: list[tuple[Collection, list[Node]]] = field(default_factory=list)
    anchors: dict[str, Node] = field(default_factory=dict)

    def documents(self) -> Iterator[Tree]:
        base, next_event = self.base, _PARSER(self.shown).get_event
        start, nodes, open_ = base, list[Node](), self.open_
        for _ in range(_MOST_EVENTS):
            event: Any = next_event()
            if event is None:
                return
            kind = type(event)
            begin, end = base + event.start_mark.index, base + event.end_mark.index
            node: Node
            if kind is yaml.ScalarEvent:  # the most frequent ones come first
                node = self._scalar(event, begin, end)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end(end)
                continue
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                nodes.append(self._opened(event, begin, end))
                continue
            elif kind is yaml.AliasEvent:
                target = self._anchored(event.anchor, begin)
                node = Alias(begin, begin, end, target=target)
            else:
                if kind is yaml.DocumentStartEvent:
                    start, nodes, self.anchors = begin, [], {}
                elif kind is yaml.DocumentEndEvent:
                    yield Tree(start, end, nodes[0] if nodes else None, nodes)
                continue
            nodes.append(node)
            if open_:
                node.parent, waiting = open_[-1]
                waiting.append(node)
        raise NotYamlError(self.base, "is too large to be a manifest")

    def _scalar(self, event: Any, outer: int, end: int) -> Scalar:
        anchor, tag, style = event.anchor or "", event.tag, event.style or ""
        start = self._content(outer, end) if anchor or tag else outer
        if tag == "!" and style:
            tag = None
        if style in {"|", ">"}:
            end = self._end_of_scalar(start, end, event.value)
        value = event.value
        if tag is not None:
            value = yaml_words.tagged(value, tag)
        elif not style:
            value = yaml_words.of_plain(value)
        node = Scalar(outer, start, end, None, anchor, tag, event.value, style, value)
        if anchor:
            self.anchors[anchor] = node
        return node

    def _opened(self, event: Any, outer: int, end: int) -> Node:
        """A map or a list, with what follows in it."""
        anchor, flow = event.anchor or "", bool(event.flow_style)
        start = self._content(outer, end) if anchor or event.tag else outer
        start = start if flow else self._first(start, end)
        kind = Map if type(event) is yaml.MappingStartEvent else List
        node = kind(outer, start, end, None, anchor, event.tag, flow=flow)
        if anchor:
            self.anchors[anchor] = node
        if self.open_:
            node.parent, waiting = self.open_[-1]
            waiting.append(node)
        self.open_.append((node, []))
        if len(self.open_) > DEEPEST:
            raise NotYamlError(node.start, "is too deeply nested")
        return node

    def _anchored(self, name: str, at: int) -> Node:
        target = self.anchors.get(name)
        if target is None:
            raise NotYamlError(at, f"is not YAML: *{name} stands for nothing")
        if any(target is holder for holder, _ in self.open_):
            raise NotYamlError(at, f"holds itself by *{name}")
        return target

    def _content(self, start: int, end: int) -> int:
        """The begin of the content after an anchor and a tag, in any order."""
        found = _PROPERTY.match(self.text, start)
        while found is not None:
            gap = _GAP.match(self.text, found.end())
            start = gap.end() if gap is not None and gap.end() <= end else found.end()
            found = _PROPERTY.match(self.text, start) if start < end else None
        return start

    def _first(self, start: int, end: int) -> int:
        """The first key or dash of a block: libyaml marks a dash without indent after it."""
        if self.text[end - 1 : end] == "-" and self.text[end : end + 1] in {"", *" \t\r\n"}:
            return end - 1
        return max(start, end)

    def _end_of_scalar(self, start: int, end: int, value: str) -> int:
        """The end of a block scalar, without blank lines that do not belong to it."""
        said = self.text[start:end]
        header = said.split("\n", 1)[0].split("#", 1)[0]
        if "+" in header:
            return end - len(said[len(said.removesuffix("\n").removesuffix("\r")) :])
        blank = " \t\r\n" if not value.rstrip("\n").endswith((" ", "\t")) else "\r\n"
        return start + max(len(said.rstrip(blank)), len(header.rstrip()))

    def _end(self, end: int) -> None:
        node, children = self.open_.pop()
        if isinstance(node, Map):
            pairs = zip(children[::2], children[1::2], strict=True)
            node.members = [Member(key, value) for key, value in pairs]
            node.end = end if node.flow else max(children[-1].end, children[-2].end)
        else:
            node.items = list(self._items(node, children))
            node.end = end if node.flow else node.items[-1].end

    def _items(self, node: List, children: list[Node]) -> Iterator[Item]:
        at = node.start
        for child in children:
            yield Item(child.outer if node.flow else self._dash(at, node), child)
            at = child.end

    def _dash(self, at: int, node: List) -> int:
        """The next dash of this list from `at` on."""
        gap = _GAP.match(self.text, at)
        return gap.end() if gap is not None else node.start
