"""Applies one patch as kustomize does: an object and a patch in, the patched object out.

Only what is sure to be the same in kustomize is done. Everything else raises UnsureError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.evaluation.workloads import group_of, is_built_in, tokens
from webhook.kube.pod import as_map

if TYPE_CHECKING:
    Raw = dict[str, Any]

# Lists of pods in which a strategic merge patch finds the items by a key. It replaces all others
# that a repair touches, and no repair depends on the rest.
_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "env", "volumes"), "name"),
    "volumeMounts": "mountPath",
}
_DIRECTIVE = "$patch"
_END = "-"  # of a list


class UnsureError(Exception):
    """Why the result of a patch is not known."""


def patched(obj: Raw, patch: Any) -> Raw:
    """The object with a strategic merge patch, or with a list of JSON 6902 operations.

    A patch that deletes the object returns an empty map.
    """
    if isinstance(patch, list):
        made: Any = copied(obj)
        for each in patch:
            _operate(made, as_map(each))
        return as_map(made)
    if as_map(patch).get(_DIRECTIVE) == "delete":
        return {}
    made = as_map(_merged(obj, patch, _lists_of(obj)))
    own = {each: as_map(obj.get("metadata")).get(each) for each in ("name", "namespace")}
    made["metadata"] = {**as_map(made.get("metadata")), **{k: v for k, v in own.items() if v}}
    return {**made, "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}


def _lists_of(obj: Raw) -> str:
    """What happens to the lists of a kind: `keys`, `replaced`, or unknown."""
    if is_built_in(obj):
        return "keys"
    group = group_of(obj)
    return "replaced" if "." in group and not group.endswith(".k8s.io") else ""


def _merged(base: Any, patch: Any, lists: str, name: str = "") -> Any:
    if isinstance(patch, dict):
        if any(str(each).startswith("$") and each != _DIRECTIVE for each in patch):
            raise UnsureError
        verb = patch.get(_DIRECTIVE, "merge")
        if verb not in {"merge", "replace"}:
            raise UnsureError
        made = dict(as_map(base)) if verb == "merge" else {}
        for member, value in patch.items():
            if member == _DIRECTIVE:
                continue
            if value is None:
                made.pop(member, None)
            else:
                made[member] = _merged(made.get(member), value, lists, str(member))
        return made
    if not isinstance(patch, list):
        return patch
    if not lists:
        raise UnsureError
    key = _KEYS.get(name) if lists == "keys" else None
    return _listed(base, patch, key) if key else copied(patch)


def _listed(base: Any, patch: list[Any], key: str) -> list[Any]:
    """Items are found by their key; those of the patch come first."""
    known: dict[str, Any] = {}
    listed: dict[str, Any] = {}
    for items, found in ((base if isinstance(base, list) else [], known), (patch, listed)):
        for item in items:
            name = as_map(item).get(key)
            if not isinstance(name, str) or name in found:
                raise UnsureError
            found[name] = item
    for name, item in listed.items():
        if item.get(_DIRECTIVE) == "delete":
            known.pop(name, None)
    kept = {name: item for name, item in listed.items() if item.get(_DIRECTIVE) != "delete"}
    made = {name: _merged(known.get(name), item, "keys") for name, item in kept.items()}
    return [*made.values(), *(item for name, item in known.items() if name not in made)]


def _operate(obj: Raw, operation: Raw) -> None:
    verb, at = operation.get("op"), _way(operation.get("path"))
    if verb == "test":
        if _value(obj, at) != operation.get("value"):
            raise UnsureError
        return
    value = operation.get("value")
    if verb in {"move", "copy"}:
        start = _way(operation.get("from"))
        value = _value(obj, start)
        if verb == "move":
            _write(obj, start, "remove", None)
    _write(obj, at, "add" if verb in {"move", "copy"} else str(verb), copied(value))


def _way(pointer: Any) -> tuple[str, ...]:
    way = tuple(tokens(pointer)) if isinstance(pointer, str) else ()
    if not way:
        raise UnsureError
    return way


def _value(holder: Any, way: tuple[str, ...]) -> Any:
    for token in way:
        if isinstance(holder, list):
            holder = holder[_position(token, len(holder) - 1)]
        elif isinstance(holder, dict) and token in holder:
            holder = holder[token]
        else:
            raise UnsureError
    return holder


def _write(obj: Raw, way: tuple[str, ...], verb: str, value: Any) -> None:
    holder, token = _value(obj, way[:-1]), way[-1]
    is_list = isinstance(holder, list)
    if not is_list and not isinstance(holder, dict):
        raise UnsureError
    if verb == "add" and is_list:
        holder.insert(len(holder) if token == _END else _position(token, len(holder)), value)
        return
    at = _position(token, len(holder) - 1) if is_list else token
    if verb not in {"add", "replace", "remove"} or (
        verb != "add" and not is_list and token not in holder
    ):
        raise UnsureError
    if verb == "remove":
        del holder[at]
    else:
        holder[at] = value


def _position(token: str, last: int) -> int:
    if not (token.isascii() and token.isdigit()) or int(token) > last:
        raise UnsureError
    return int(token)
