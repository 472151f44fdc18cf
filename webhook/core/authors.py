"""What in an object somebody wrote, and what an admission webhook added.

managedFields name the fields that a client set (core/managed_fields.py), and kubectl keeps what it
applied. What neither names was added on the way in. Both can be forged: they
decide what is taken for the author's word in the author's own object, and nothing else.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from webhook.core.leaves import Leaves
from webhook.core.managed_fields import entries, fields, merged
from webhook.core.pod import KINDS, REQUIRED, as_map

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.core.leaves import Key
    from webhook.core.pointer import Path

    Raw = dict[str, Any]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ITEMS = {
    **dict.fromkeys(KINDS, "name"),
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
}


class Authors:
    """Who wrote what in an object, and so in the pod templates in it; read when it is asked for.

    The metadata must not be changed until then.
    """

    def __init__(self, obj: Raw) -> None:
        self._obj = obj
        self._declared: dict[Path, frozenset[Key]] = {}

    @cached_property
    def _manifest(self) -> Raw:
        annotations = as_map(as_map(self._obj.get("metadata")).get("annotations"))
        return _manifest(annotations.get(LAST_APPLIED))

    @cached_property
    def _applied(self) -> Raw:
        return merged(each for each in entries(self._obj) if each.get("operation") == "Apply")

    @cached_property
    def _sent(self) -> Raw:
        return merged(each for each in entries(self._obj) if each.get("operation") != "Apply")

    def declared(self, at: Path, key: Key) -> bool:
        """Whether an applied manifest has this leaf of the pod, or template, at `at`."""
        return self._is_in_manifest(at, key) or _owns(_fields(self._applied, at), key, applied=True)

    def declared_together(self, at: Path, keys: Sequence[Key]) -> bool:
        """Whether one applied manifest has all these leaves."""
        each_applied = (e for e in entries(self._obj) if e.get("operation") == "Apply")
        return all(self._is_in_manifest(at, key) for key in keys) or any(
            all(_owns(_fields(fields(entry), at), key, applied=True) for key in keys)
            for entry in each_applied
        )

    def wrote(self, at: Path, key: Key) -> bool:
        """Whether an author wrote this leaf.

        Of an object that is applied its manifest says so. Of any other one what was sent does,
        which has the defaults of the API server in it, too.
        """
        if self._manifest or self._applied:
            return self.declared(at, key)
        return _owns(_fields(self._sent, at), key, applied=False)

    def dropped(self, at: Path, key: Key, before: Authors) -> bool:
        """Whether the manifest that is applied had this leaf the last time, and has no more."""
        if self.declared(at, key):
            return False
        if self._manifest and before._is_in_manifest(at, key):
            return True
        return bool(self._applied) and _owns(_fields(before._applied, at), key, applied=True)

    def _is_in_manifest(self, at: Path, key: Key) -> bool:
        if at not in self._declared:
            try:
                self._declared[at] = frozenset(Leaves(self._manifest, at).values)
            except (LookupError, TypeError):
                self._declared[at] = frozenset()
        return key in self._declared[at]


def _manifest(text: object) -> Raw:
    """What kubectl applied; an empty map if that cannot be read."""
    try:
        return as_map(json.loads(text)) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}


def _fields(written: Raw, at: Path) -> Raw:
    for token in at:
        written = as_map(written.get(f"f:{token}"))
    return written


def _owns(fields: Raw, key: Key, *, applied: bool) -> bool:
    """Whether these fieldsV1 name the leaf, or a map around it that has one owner as a whole.

    Required node affinity is such a map, and nodeSelector; but others put labels into that, too,
    unless it was applied.
    """
    here, names = fields, list(key)
    while names:
        name = names.pop(0)
        there = here.get(f"f:{name}")
        if not isinstance(there, dict):
            return False
        here = there
        if name in _ITEMS and names:
            item = json.dumps(
                {_ITEMS[name]: names.pop(0)}, separators=(",", ":"), ensure_ascii=False
            )
            there = here.get(f"k:{item}")
            if not isinstance(there, dict):
                return False
            here = there
        elif not here:
            return not names or name == REQUIRED or (applied and name == "nodeSelector")
    return True
