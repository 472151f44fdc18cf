"""Maps and lists into which `{{ toYaml ... | nindent }}` may add members when it is rendered."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from webhook.core.edits import Append, Edit, Remove, Set, place_of
from webhook.kube.pointer import Path
from webhook.templates.blocks import Action, Kind
from webhook.yamlpatch import style
from webhook.yamlpatch.nodes import Item, List, Map, Member, Node, Scalar, entries, real

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.templates.actions import Template
    from webhook.templates.placeholders import Masks
    from webhook.templates.regions import Region
    from webhook.yamlpatch.documents import Document

_INDENTED = re.compile(r"\bn?indent[ (]+(?P<by>[0-9]{1,4})")
_LAST_INDENT = re.compile(
    r"(?:\|\s*n?indent\s+(?P<by>[0-9]{1,4})"
    r"|\{\{-?\s*n?indent\s+(?P<of>[0-9]{1,4})\s+\([^|]*\))\s*-?\}\}\Z"
)


class OpenPlaces:
    """Maps and lists into which a line such as `{{ toYaml .Values.x | indent 8 }}` may write."""

    def __init__(
        self, document: Document, template: Template, masks: Masks, region: Region
    ) -> None:
        self._document = document
        self._open: set[int] = set()  # id(node)
        self._above: set[int] = set()  # nodes whose lines may end with the output of an action
        self._anywhere: set[int] = set()  # the same for actions without a known indent
        text = template.text
        for action in template.actions_in(document.root.start, region.end):
            if action.kind is Kind.WRITES and masks.is_alone(action):
                said = named_indent(text, action)
                indent = style.column(text, action.start) if said is None else said
                held_by = list(_holders(text, document.root, action.start, indent))
                self._open.update(map(id, held_by))
                # A text without indent brings its own, and may belong anywhere.
                deepest = math.inf if said is None and indent == 0 else indent
                above = set(map(id, _above(text, document.root, action.start, deepest)))
                self._above |= above
                self._anywhere |= above if deepest == math.inf else set()

    def goes_on(self, edit: Edit) -> bool:
        """Whether the template may continue what the edit removes."""
        node = self._document.find(edit.at) if isinstance(edit, Remove) else None
        return node is not None and id(real(node)) in self._above

    def may_hold_more(self, at: Path) -> bool:
        """Whether the template may add a member or an item to the value at this place."""
        node = self._document.find(at)
        return node is not None and bool({id(node), id(real(node))} & (self._open | self._anywhere))

    def may_meet(self, edit: Edit) -> bool:
        """Whether the edit adds to one of them."""
        at = place_of(edit)
        node: Node | None = self._document.root
        for depth in range(len(at) + 1):
            here = self._document.find(Path(at[:depth]))
            if here is None:  # appended to the last existing one
                return node is not None and id(real(node)) in self._open
            node = here
        adds = isinstance(edit, Append) or (isinstance(edit, Set) and not _says(node))
        return adds and node is not None and id(real(node)) in self._open


def _says(node: Node | None) -> bool:
    return isinstance(node, Scalar) and node.end > node.start


def named_indent(text: str, action: Action) -> int | None:
    """The column that the action names for its lines, if it names one."""
    column = last_indent(text, action)
    if column is not None:
        return column
    said = _INDENTED.search(text, action.start, action.end)
    return int(said["by"]) if said is not None else None


def last_indent(text: str, action: Action) -> int | None:
    """The column in which all lines of the action begin, if it moves the whole of its text."""
    said = _LAST_INDENT.search(text, action.start, action.end)
    return int(said["by"] or said["of"]) if said is not None else None


def _holders(text: str, node: Node, at: int, indent: int) -> Iterator[Node]:
    """The nodes to which a text at this place and indent may belong."""
    while True:
        here = real(node)
        before = [each for each in _in_block(here) if each.start <= at]
        if not before:
            yield here
            return
        last = before[-1]
        column = style.column(text, last.start)
        is_list = isinstance(last.value, List) and not last.value.flow
        if indent <= column:
            yield here
        if indent < column or (indent == column and not is_list):
            return
        if isinstance(last.value, Scalar):
            yield here if _says(last.value) else last.value
            return
        node = last.value


def _above(text: str, node: Node, at: int, indent: float) -> Iterator[Node]:
    """The nodes that end with the lines that an action produces at this place."""
    while True:
        here = real(node)
        before = [each for each in _in_block(here) if each.start <= at]
        if not before:
            if not isinstance(here, Scalar) or here.style in {"|", ">"} or not _says(here):
                yield here
            return
        last = before[-1]
        yield here
        column = style.column(text, last.start)
        is_list = isinstance(last.value, List) and not last.value.flow
        if indent < column or (indent == column and not is_list):
            return
        node = last.value


def _in_block(node: Node) -> list[Member] | list[Item]:
    return entries(node) if isinstance(node, Map | List) and not node.flow else []
