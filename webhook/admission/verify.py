"""Applies the patch to a second parse of the object, and to each replica, before it is sent.

A patch that the API server cannot apply rejects the pod, even with failurePolicy Ignore. So the
patch is read back from its bytes and applied to the original object, by code that shares nothing
with the code that made it. It supports the three operations that are sent, as strictly as the API
server's own library (evanphx/json-patch v4); tests compare it with jsonpatch, which would take a
third of the whole call here.
"""

from __future__ import annotations

import sys
from typing import Any

from webhook.admission.review import Review, dump, load

END = "-"  # of a list
LARGEST_PATCH = 64 * 1024
LARGEST_POD = 1_500_000  # with its patch; etcd rejects a larger one, but much later


def flaw(review: Review, patch: bytes, edited: dict[str, Any], *, of_any_size: bool = False) -> str:
    """Return why the pod is too large for this patch; ValueError if the patch is wrong.

    The guard's patch may be `of_any_size`: otherwise a tenant could bypass it with a large pod. The
    API server rejects a pod that is too large for etcd with its patch.
    """
    if not of_any_size:
        if len(patch) > LARGEST_PATCH:
            return f"the patch would be {len(patch) // 1024} KB"
        if len(review.body) + len(patch) > LARGEST_POD:
            size = len(dump(edited)) + len(patch)
            if size > LARGEST_POD:
                return f"pod and patch would be {size // 1000} KB"
    fresh = review.fresh_object()
    apply(load(patch), fresh)
    if _compared(fresh) != _compared(edited):
        raise ValueError("the patch does not produce the intended pod")
    return ""


def applies(patch: bytes, obj: dict[str, Any]) -> bool:
    """Apply the patch in place; whether each of its operations could be made."""
    try:
        apply(load(patch), obj)
    except ValueError:
        return False
    return True


def _compared(obj: dict[str, Any]) -> dict[str, Any]:
    """All but managedFields: no rule changes them, and they may be too deep to be compared."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**obj, "metadata": kept}


def apply(patch: list[dict[str, Any]], obj: Any) -> None:
    """Apply `add`, `replace` and `remove` operations in place; raise ValueError if one fails."""
    before, holder = None, obj
    leaving: list[int] = []  # positions of one list, from its end: they are removed in one pass
    for operation in patch:
        head, slash, last = operation["path"].rpartition("/")
        if not slash or head[:1] not in {"", "/"}:
            raise ValueError("a path names nothing below the root")
        if head != before:  # many operations change one map without changing its place
            if leaving:
                _take_out(leaving, holder)
            before, holder = head, _found(obj, head)
        if leaving and not (operation["op"] == "remove" and _is_before(last, leaving[-1])):
            _take_out(leaving, holder)
        if operation["op"] == "remove" and type(holder) is list:
            leaving.append(_position(last, len(holder) - 1))
        else:
            _change(operation, holder, _plain(last))
    if leaving:
        _take_out(leaving, holder)


def _found(holder: Any, place: str) -> Any:
    """The value at this place: below maps by name, below lists by position."""
    for token in place.split("/")[1:]:
        if type(holder) is dict:
            name = _plain(token)
            if name not in holder:
                raise ValueError("a path leads nowhere")
            holder = holder[name]
        elif type(holder) is list:
            holder = holder[_position(token, len(holder) - 1)]
        else:
            raise ValueError("a path leads nowhere")
    return holder


def _is_before(token: str, last: int) -> bool:
    return _position(token, sys.maxsize) < last


def _take_out(leaving: list[int], holder: Any) -> None:
    gone = set(leaving)
    holder[:] = [item for at, item in enumerate(holder) if at not in gone]
    leaving.clear()


def _plain(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def _change(operation: dict[str, Any], holder: Any, token: str) -> None:
    name = operation["op"]
    if type(holder) is dict:
        if name == "add" or (name == "replace" and token in holder):
            holder[token] = operation["value"]
            return
        if name == "remove" and token in holder:
            del holder[token]
            return
    elif type(holder) is list:
        if name == "add":
            at = len(holder) if token == END else _position(token, len(holder))
            holder.insert(at, operation["value"])
            return
        if name == "replace":
            holder[_position(token, len(holder) - 1)] = operation["value"]
            return
    raise ValueError("an operation has no path or no known name")


def _position(token: str, last: int) -> int:
    """Read a list position: digits without a leading zero, and within the list."""
    if not (token.isascii() and token.isdigit()) or str(at := int(token)) != token:
        raise ValueError("a list position is not a number")
    if at > last:
        raise ValueError("a list position is behind the end")
    return at
