"""Reads managedFields (KEP-555): a raw map in, the fields that each manager wrote out.

The API server records the fields of a client before webhooks see the object. Fields that an
admission webhook adds are never listed. A client may send any managedFields with an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.kube.pod import Raw, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


# What `kubectl apply` sent last, unless it is --server-side.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def entries(obj: Mapping[str, Any]) -> Iterator[Raw]:
    """Each entry of the object, one for each manager, operation and subresource."""
    for _, entry in as_items(as_map(obj.get("metadata")).get("managedFields")):
        yield entry


def fields(entry: Mapping[str, Any]) -> Raw:
    """The fieldsV1: `f:member`, `k:{keys of an item}` and `v:item`, each with its children."""
    return as_map(entry.get("fieldsV1"))


def is_custom(obj: Mapping[str, Any]) -> bool:
    """Whether this is of a custom kind: only these have a group with a dot.

    A merge may replace their lists as a whole. In the kinds of Kubernetes with pod templates, lists
    of containers and their variables are merged by names, and managedFields show their items.
    """
    return "." in str(obj.get("apiVersion")).partition("/")[0]


def has_annotation(obj: Mapping[str, Any], name: str) -> bool:
    """Whether a client sent this annotation: annotations that a webhook added are never listed."""
    return any(
        f"f:{name}" in as_map(as_map(fields(entry).get("f:metadata")).get("f:annotations"))
        for entry in entries(obj)
    )


def merged(
    written: Iterable[Mapping[str, Any]],
    namers: dict[int, set[int]] | None = None,
    empty: set[int] | None = None,
) -> Raw:
    """All fields that the entries name, in one map, so that callers need not ask each entry.

    `namers` gets, by the id() of each map in it, the numbers of the entries that name that field,
    and `empty` the id() of those of which an entry names no members.
    """
    all_fields: Raw = {}
    waiting = [(number, all_fields, fields(entry)) for number, entry in enumerate(written)]
    while waiting:
        number, into, below = waiting.pop()
        for name, inside in below.items():
            if isinstance(inside, dict):
                there = into.setdefault(name, {})
                waiting.append((number, there, inside))
                if namers is not None:
                    namers.setdefault(id(there), set()).add(number)
                if empty is not None and inside.keys() <= {"."}:
                    empty.add(id(there))
    return all_fields
