"""Checks a new text against the intended object, before the text is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.yamlpatch.documents import Stream


def why_not(stream: Stream, wanted: Sequence[Any], unread: int = 0, first: int = 1) -> str:
    """Why the new text does not have the intended data; empty if it has.

    `unread` is the number of parts of the text that could not be read before, and `first` the
    number of the first document in it.
    """
    if len(stream.unread) != unread:
        where = stream.unread[-1] if stream.unread else None
        return (
            f"the new text would not parse: {where.reason}" if where else "its parts would differ"
        )
    found = [document.data for document in stream.documents]
    if len(found) != len(wanted):
        return f"the new text would have {len(found)} documents, not {len(wanted)}"
    for number, (is_, should) in enumerate(zip(found, wanted, strict=True), first):
        if not is_same(is_, should):
            return f"document {number} of the new text would not say what it should"
    return ""


def meant(data: Any) -> Any:
    """The data without null and empty maps and lists, which the API server takes for missing."""
    if isinstance(data, dict):
        found = {name: meant(value) for name, value in data.items()}
        return {name: value for name, value in found.items() if value not in (None, {}, [])}
    return [meant(each) for each in data] if isinstance(data, list) else data
