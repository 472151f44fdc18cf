"""Finds the actions that no repair depends on: a filled text in, the places of its actions out.

Each action is filled in as a word with its number. If it stands in one value, and no repair reads
or changes the place of this value (an image, a command), nothing that it produces matters. The same
is true where the rules only look for names and paths of their own, which no stand-in is.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from webhook.projects.harmless_places import is_place
from webhook.yamlpatch.nodes import List, Map

if TYPE_CHECKING:
    from webhook.yamlpatch.documents import Document, Stream
    from webhook.yamlpatch.nodes import Node

# Rules look there for names and paths of their own. A stand-in is none, but may end one.
_FOR_KNOWN_WORDS = re.compile(
    r"spec\0(template\0spec\0)?(?:volumes|(?:initC|c)ontainers\0\*\0(?:env|volumeMounts))\0\*\0.*"
)
_IN_CUSTOM_KIND = re.compile(r"^spec\0(?:\w+\0)+(?=template\0)")
_SIGN = re.compile(r"qz([0-9]+)zq")
_ONLY_SIGNS = re.compile(rf"([\"']?)(?:{_SIGN.pattern})+\1")


def sign(number: int) -> str:
    """The word for an action; no manifest has it."""
    return f"qz{number}zq"


def without_effect(stream: Stream) -> dict[int, Counter[str]]:
    """The values of each action at such places, with these, and how often they occur."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for document in stream.documents:
        for sign_ in _SIGN.finditer(document.text, document.start, document.end):
            if value := _value_without_effect(document, sign_.start()):
                found[int(sign_[1])][value] += 1
    return found


def _value_without_effect(document: Document, at: int) -> str:
    """The value on one line that is there, with its place, if nothing else in the text uses it."""
    way: list[str] = []
    node: Node = document.root
    while "\n" in (text := document.text[node.start : node.end]) or not _is_unread(way, text):
        entry = next((each for each in _entries(node) if each[1].start <= at < each[1].end), None)
        if entry is None or node.anchor:
            return ""
        way.append(entry[0])
        node = entry[1]
    return "" if node.anchor else f"{way}: {text}"


def _is_unread(way: list[str], text: str) -> bool:
    place = _IN_CUSTOM_KIND.sub("spec\0", "\0".join(way))
    if _FOR_KNOWN_WORDS.fullmatch(place):
        return _ONLY_SIGNS.fullmatch(text) is not None
    return is_place(tuple(place.split("\0")))


def _entries(node: Node) -> list[tuple[str, Node]]:
    """The values of a map or a list in block style, with their names."""
    if isinstance(node, Map) and not node.flow:
        return [(str(each.name), each.value) for each in node.members]
    if isinstance(node, List) and not node.flow:
        return [("*", each.value) for each in node.items]
    return []
