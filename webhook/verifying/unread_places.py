"""Finds the actions that no repair depends on: a filled text in, the numbers of its actions out.

Each action is filled in as a word with its number. If it stands in one value, and this value is at
a place that no repair reads or changes (an image, a command), nothing that it produces matters.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from webhook.projects.harmless_places import is_place
from webhook.yamlpatch.nodes import List, Map, Scalar

if TYPE_CHECKING:
    from webhook.yamlpatch.documents import Document, Stream
    from webhook.yamlpatch.nodes import Node

_SIGN = re.compile(r"qz([0-9]+)zq")


def sign(number: int) -> str:
    """The word for an action; no manifest has it."""
    return f"qz{number}zq"


def without_effect(stream: Stream) -> Counter[int]:
    """How often each action stands at such a place."""
    return Counter(
        int(found[1])
        for document in stream.documents
        for found in _SIGN.finditer(document.text, document.start, document.end)
        if _is_without_effect(document, found.start())
    )


def _is_without_effect(document: Document, at: int) -> bool:
    """Whether this is in a value on one line that nothing else in the text uses."""
    way: list[str] = []
    node: Node = document.root
    while isinstance(node, Map | List):
        if node.flow or node.anchor:
            return False
        entry = next((each for each in _entries(node) if each[1].start <= at < each[1].end), None)
        if entry is None:
            return False
        way.append(entry[0])
        node = entry[1]
    is_simple = isinstance(node, Scalar) and not node.anchor
    is_on_one_line = "\n" not in document.text[node.start : node.end]
    return is_simple and is_on_one_line and is_place(tuple(way))


def _entries(node: Map | List) -> list[tuple[str, Node]]:
    if isinstance(node, Map):
        return [(str(each.name), each.value) for each in node.members]
    return [("*", each.value) for each in node.items]
