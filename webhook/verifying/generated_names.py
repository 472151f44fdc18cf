"""Objects in; the same objects without the hashes that kustomize adds to generated names out.

The hash is that of the content, so both the name and the references to it change with the content,
and the content is compared itself. A name counts only if its end is the hash of its own object.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from webhook.kube.pod import as_map

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.verifying.read_side import Found

    Raw = dict[str, Any]
    # By what is beside it and its namespace: the names, and what they are without the hash.
    Names = dict[tuple[str, str], dict[str, str]]

_HASHED = {"ConfigMap": ("binaryData",), "Secret": ("type", "stringData")}
_LETTERS = str.maketrans("013ae", "ghkmt")  # so that no hash is a word
_LENGTH = 10
_ESCAPED = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}  # as Go writes JSON


def generated(found: Iterable[Found]) -> Names:
    """The generated names, if no two of them are the same without their hashes."""
    names: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        kind, name = str(each.object.get("kind")), _name(each.object)
        stem, dash, end = name.rpartition("-")
        if kind in _HASHED and dash and end == _hash(kind, each.object):
            names[_where(each.object, each.beside)][f"{stem}-(hash of the {kind})"].append(name)
    return {
        where: {full[0]: stem for stem, full in stems.items() if len(full) == 1}
        for where, stems in names.items()
    }


def without_hashes(obj: Raw, beside: str, names: Names) -> Raw:
    """The object with the names of its namespace without their hashes, wherever they stand."""
    known = names.get(_where(obj, beside))
    made: Raw = _renamed(obj, known) if known else obj
    return made


def _where(obj: Raw, beside: str) -> tuple[str, str]:
    return beside, str(as_map(obj.get("metadata")).get("namespace") or "")


def _name(obj: Raw) -> str:
    return str(as_map(obj.get("metadata")).get("name"))


def _hash(kind: str, obj: Raw) -> str:
    """The hash as kustomize makes it (api/hasher): of the content, without the name."""
    others = {name: obj[name] for name in _HASHED[kind] if obj.get(name)}
    said: Raw = {"kind": kind, "name": "", "data": obj.get("data") or "", **others}
    if kind == "Secret":
        said.setdefault("type", "")
    text = json.dumps(said, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    text = text.translate(_ESCAPED)
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return digest[:_LENGTH].translate(_LETTERS)


def _renamed(data: Any, known: dict[str, str]) -> Any:
    if isinstance(data, dict):
        return {name: _renamed(value, known) for name, value in data.items()}
    if isinstance(data, list):
        return [_renamed(each, known) for each in data]
    return known.get(data, data) if isinstance(data, str) else data
