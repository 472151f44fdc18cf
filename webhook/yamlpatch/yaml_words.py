"""Reads plain YAML scalars as Kubernetes does, and writes values as such scalars.

Kubernetes reads YAML 1.1 as go-yaml v2 does (sigs.k8s.io/yaml, goyaml.v2/resolve.go): `on` and
`yes` are true, `0644` is octal, dates and `8080:80` are texts. Words are written so that readers of
YAML 1.2 and those who take dates and base 60 for what they were take them for the same.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from functools import lru_cache
from math import inf, isinf
from typing import Any

_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_NULL = ("", "~", "null", "Null", "NULL")
_KNOWN: dict[str, Any] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(_NULL),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INT = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)"
    r"|(?P<dec>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_LEAST, _MOST = -(2**63), 2**64 - 1  # beyond, go-yaml reads the decimal digits as a float
_LONGEST = 70  # characters of such a number without leading zeros: 0b and 64 bits, and some more

_TAG = "tag:yaml.org,2002:"


def tagged(text: str, tag: str) -> Any:
    """The value of a scalar with this text and this tag."""
    if tag in {f"{_TAG}{name}" for name in ("null", "bool", "int", "float")}:
        value = of_plain(text)
        return float(value) if tag.endswith("float") and type(value) is int else value
    return _decoded(text) if tag == f"{_TAG}binary" else text


def _decoded(text: str) -> str:
    try:
        return b64decode("".join(text.split()), validate=True).decode()
    except ValueError:
        return text  # kubectl refuses the document


@lru_cache(maxsize=1024)
def of_plain(text: str) -> Any:
    """The value of a plain scalar with this text, without a tag; most have been read before."""
    if text in _KNOWN:
        return _KNOWN[text]
    if text[0] not in "+-.0123456789":
        return text
    number = text.replace("_", "") if text[0] != "." else text
    is_short = len(number.lstrip("+-0")) <= _LONGEST
    whole = _INT.fullmatch(number) if is_short else None
    if whole is not None:
        base = next(name for name in _BASES if whole[name] is not None)
        value = int(f"{whole['sign']}{whole[base]}", _BASES[base])
        if _LEAST <= value <= _MOST:
            return value
    real = float(number) if _FLOAT.fullmatch(number) else inf
    return text if isinf(real) else real  # what is too large for a float is a text, too


# Words that another YAML reader could take for a number, a date or a sign.
_DOUBTFUL = re.compile(
    r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # base 60
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"
    r"|[-+]?[0-9][0-9_,.]*(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?0[xob][0-9a-fA-F_]+"
    r"|=|<<|---.*|\.\.\."
)
_PLAIN = re.compile(r"(?:[^\s\-?:,\[\]{}#&*!|>'\"%@`]|[-?:](?=[^\s,\[\]{}]))[^\x00-\x1f]*")
_ENDS = re.compile(r":\s|\s#|:\Z|\s\Z")
_IN_FLOW = re.compile(r"[,\[\]{}:]")


def is_plain(text: str, *, flow: bool) -> bool:
    """Whether the text needs no quotes, and every YAML reader takes it for a text."""
    if text.isalpha():  # the most frequent ones
        return text not in _KNOWN
    return (
        _PLAIN.fullmatch(text) is not None
        and text.isprintable()
        and not _ENDS.search(text)
        and not (flow and _IN_FLOW.search(text))
        and not _DOUBTFUL.fullmatch(text)
        and isinstance(of_plain(text), str)
    )


def quoted(text: str, quote: str) -> str:
    """The text in these quotes; in double ones if single ones cannot hold it."""
    if quote == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004  # what \x can name
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def bare(value: Any) -> str:
    """A number, a boolean or null."""
    if isinstance(value, float) and (value != value or value in {inf, -inf}):  # noqa: PLR0124
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"  # noqa: PLR0124
    return json.dumps(value)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same to Kubernetes: 1, 1.0, true and "1" are four."""
    pairs = [(one, other)]
    while pairs:
        mine, theirs = pairs.pop()
        if type(mine) is not type(theirs):
            return False
        if isinstance(mine, dict):
            if mine.keys() != theirs.keys():
                return False
            pairs += [(value, theirs[key]) for key, value in mine.items()]
        elif isinstance(mine, list):
            if len(mine) != len(theirs):
                return False
            pairs += list(zip(mine, theirs, strict=True))
        elif mine != theirs and not (mine != mine and theirs != theirs):  # noqa: PLR0124
            return False
    return True
