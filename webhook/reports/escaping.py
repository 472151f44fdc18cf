"""Escapes control and bidirectional characters of untrusted text before it is printed."""

from __future__ import annotations

import re
from urllib.parse import quote

_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # surrogates that stand for no byte of a name


def visible(text: str) -> str:
    r"""One line: control characters, bidirectional marks and lone surrogates as `\x1b`.

    A file's name or text must not move the cursor, hide later text, or make a line break that a
    program takes for the end of a record.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _written_out(each) for each in text)


def sentence(text: str) -> str:
    """A message as one line: parsers break theirs over several lines."""
    return visible(" ".join(text.split()))


def storable(text: str) -> str:
    r"""Escapes only lone surrogates, which no encoding can write, as `\udc80`."""
    return text.encode("utf-8", "backslashreplace").decode()


def relative_uri(path: str) -> str:
    """The path for a link, with its bytes as they are on disk, in any encoding."""
    name = _NO_BYTE.sub(lambda lone: _written_out(lone[0]), path.removeprefix("./"))
    return quote(name, errors="surrogateescape")


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
