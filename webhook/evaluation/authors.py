"""Finds which fields of an object its author wrote, and which an admission webhook added.

managedFields name the fields that a client set (kube/managed_fields.py), and kubectl stores the
manifest that it applied. A field that is in neither was added during admission. Both can be forged,
but they only decide what counts as the author's word in the author's own object.
"""

from __future__ import annotations

import json
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from webhook.core.object_size import excess
from webhook.evaluation.pod_fields import LISTS, Key, PodFields
from webhook.evaluation.repair_record import ANNOTATION as RECORD
from webhook.kube.canonical import parsed
from webhook.kube.managed_fields import LAST_APPLIED, entries, fields, is_custom, merged
from webhook.kube.pod import KINDS, REQUIRED, Raw, annotations_of, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.pointer import Path


_WHOLE = (REQUIRED, "nodeSelector")  # what has one owner as a whole in the kinds of Kubernetes
_SELECTOR: Key = ("spec", "nodeSelector")
_APPLIED = ("Apply", None)  # operation and subresource
_LONGEST_KEY = 1_000  # characters; names of objects have at most 253
_MOST_KEYS = 8  # of a list; the lists of Kubernetes have at most three
_ITEMS = {
    **dict.fromkeys(KINDS, "name"),
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
}


class Authors:
    """The authors of the fields in an object, and so in its pod templates; computed when needed.

    The metadata must not be changed until then.
    """

    def __init__(self, obj: Raw, manager: str = "") -> None:
        self._obj = obj
        self._manager = manager  # the field manager that the request names; empty if it names none
        self._declared: dict[Path, PodFields] = {}  # from the manifest, for each template
        # Whether its nodeSelector was rewritten, for each template.
        self._rewritten: dict[Path, bool] = {}

    @cached_property
    def _annotations(self) -> Raw:
        return annotations_of(self._obj)

    @cached_property
    def _manifest(self) -> Raw:
        return _manifest(self._annotations.get(LAST_APPLIED))

    @cached_property
    def _applied(self) -> Raw:
        return merged(each for each in entries(self._obj) if each.get("operation") == "Apply")

    @cached_property
    def _mine(self) -> Raw:
        mine = (each for each in self._entries if each.get("manager") == self._manager)
        return merged(each for each in mine if each.get("operation") == "Apply")

    @cached_property
    def _sent(self) -> Raw:
        return merged(each for each in entries(self._obj) if each.get("operation") != "Apply")

    @cached_property
    def _entries(self) -> list[Raw]:
        return list(entries(self._obj))

    @cached_property
    def _named(self) -> tuple[Raw, dict[int, set[int]], set[int]]:
        """All fields, and by their id() the entries that name them, and which have no members."""
        namers: dict[int, set[int]] = {}
        empty: set[int] = set()
        return merged(self._entries, namers, empty), namers, empty

    def leaves_empty(self, at: Path, key: Key) -> bool:
        """Whether an author sends this map or list without members.

        What has one owner as a whole has no members in managedFields, so only the manifest shows
        it; the API server stores no empty list or nodeSelector of its own kinds.
        """
        if key in self._declared_at(at).empty:
            return True
        all_fields, _, empty = self._named
        is_shown = not {*_WHOLE, *LISTS} & set(key)
        return is_shown and id(_field(self._at(all_fields, at), key)) in empty

    def declared(self, at: Path, key: Key) -> bool:
        """Whether an applied manifest has this field of the pod, or template, at `at`."""
        return self._is_in_manifest(at, key) or _owns(
            self._at(self._applied, at), key, applied=True
        )

    def declared_together(self, at: Path, key: Key, other: Key) -> bool:
        """Whether one applied manifest has both fields."""
        if self._is_in_manifest(at, key) and self._is_in_manifest(at, other):
            return True
        both = self._naming(at, key) & self._naming(at, other)
        return any(self._entries[each].get("operation") == "Apply" for each in both)

    def _naming(self, at: Path, key: Key) -> set[int]:
        """The entries that name this field, found once: a tenant may forge many of both."""
        all_fields, namers, _ = self._named
        return namers.get(id(_field(self._at(all_fields, at), key)), set())

    def wrote(self, at: Path, key: Key) -> bool:
        """Whether an author wrote this field.

        For an applied object the manifest decides. For any other object the sent object decides;
        that includes defaults of the API server.
        """
        if self._manifest or self._applied:
            return self.declared(at, key)
        return _owns(self._at(self._sent, at), key, applied=False)

    def may_have_written(self, at: Path, key: Key) -> bool:
        """Whether an author wrote this field, or managedFields do not show who did.

        A list or map of a custom kind may be atomic: it has one owner, and no entries for what is
        in it (KEP-555; `containers` of most CustomResourceDefinitions). The client sent all of it.
        """
        if self.wrote(at, key):
            return True
        is_shown = bool(self._manifest) or not is_custom(self._obj)
        return not is_shown and self._is_hidden(self._named[0], at, key)

    def dropped(self, at: Path, key: Key, before: Authors) -> bool:
        """Whether the applied manifest had this field the last time and no longer has it."""
        if self.declared(at, key):
            return False
        if self._manifest and before._is_in_manifest(at, key):
            return True
        if key[1] == "nodeSelector" and "f:nodeSelector" in self._at(self._sent, at / "spec"):
            return False  # the same client still applies it: another writer has taken it over
        return bool(self._applied) and _owns(before._at(before._applied, at), key, applied=True)

    def took_out(self, word: Key, before: Authors, sent: PodFields, then: PodFields) -> bool:
        """Whether a word that the last repair translated is no longer in the author's manifest."""
        if self.dropped(sent.at, word, before):
            return True
        if word[1] != "nodeSelector" or word in sent.values:
            return False
        if sent.at not in self._rewritten:
            self._rewritten[sent.at] = self._wrote_selector(before, sent, then)
        return self._rewritten[sent.at]

    def _wrote_selector(self, before: Authors, sent: PodFields, then: PodFields) -> bool:
        """Whether the nodeSelector that was sent is all that its author wants in it now.

        It is one field with one owner (KEP-555): managedFields do not show which labels it had. But
        a client that owned it before, and owns it now with another value, has rewritten it. If the
        record (evaluation/repair_record.py) differs as well, it was written in an earlier round of
        this request.
        """
        now, stored = _selector(sent), _selector(then)
        if now == stored or self._annotations.get(RECORD) != before._annotations.get(RECORD):
            return False
        owners = before._owners_of_selector(sent.at)
        if now:
            owners &= self._owners_of_selector(sent.at)
        return any(self._sends_all(*each) for each in owners)

    def _owners_of_selector(self, at: Path) -> set[tuple[str, str]]:
        return {
            (str(entry.get("manager")), str(entry.get("operation")))
            for entry in map(self._entries.__getitem__, self._naming(at, _SELECTOR))
            if self._at(fields(entry), at / "spec").get("f:nodeSelector") == {}
        }

    def _sends_all(self, manager: str, operation: str) -> bool:
        """Whether this owner sends a whole manifest.

        `kubectl patch` and similar clients send a part.
        """
        if operation == "Apply":
            return True
        is_part = manager.startswith("kubectl-") and manager != "kubectl-replace"
        return manager == self._manager and not is_part and not self._manifest

    @property
    def is_applied(self) -> bool:
        """Whether a manager has applied the object, or a part of it, on the server."""
        return bool(self._applied)

    @property
    def is_unrecorded(self) -> bool:
        """Whether the object was sent without the record of its repair."""
        return RECORD not in self._annotations

    def names(self, at: Path, key: Key) -> bool:
        """Whether a client wrote this field, not a list or map around it."""
        return self._is_in_manifest(at, key) or bool(self._naming(at, key))

    def shows_manifest(self, at: Path, before: Authors, *, is_first: bool) -> bool:
        """Whether the manager of this request applies the template, and its words would be seen.

        An earlier round of the request may have translated them, unless this is the first. But the
        API server notes a new time for who applies another value than is stored (1.36).
        """
        now, then = self._times_of(self._manager), before._times_of(self._manager)
        applied, then_applied = now.pop(_APPLIED, None), then.pop(_APPLIED, None)
        if applied is None or now != then or not (is_first or applied == then_applied):
            return False
        return bool(self._at(self._mine, at)) or self._is_hidden(self._mine, at, ("spec",))

    def _times_of(self, manager: str) -> dict[tuple[Any, Any], str]:
        return {
            (each.get("operation"), each.get("subresource")): str(each.get("time"))
            for each in self._entries
            if manager and each.get("manager") == manager
        }

    def applies(self, at: Path, key: Key) -> bool:
        """Whether the manager of this request applies this field, or a list or map around it."""
        return _owns(self._at(self._mine, at), key, applied=True) or self._is_hidden(
            self._mine, at, key
        )

    def may_have(self, at: Path, key: Key) -> bool:
        """Whether a client wrote this field, or managedFields do not show who did."""
        return self.names(at, key) or self.may_have_written(at, key)

    def is_of_another(self, at: Path, key: Key, *, is_removed: bool) -> bool:
        """Whether another manager than that of this request applies this field.

        One that a repair removed, and that is in the manifest of kubectl, would have come with it.
        """
        if self.applies(at, key) or not self.declared(at, key):
            return False
        return is_removed or bool(self._manager and not self._is_in_manifest(at, key))

    def are_of_others(self, at: Path, chosen: list[Key], amounts: list[Key]) -> bool:
        """Whether one of these fields is in no manifest that also has one of the amounts.

        A nodeSelector has one owner as a whole (KEP-555).
        """
        said = self.in_manifest(at)
        if any(key in said for key in amounts):
            chosen = [key for key in chosen if key not in said]
        of_amounts = self._appliers(at, amounts)
        return any(self._appliers(at, [key]).isdisjoint(of_amounts) for key in chosen)

    def _appliers(self, at: Path, keys: list[Key]) -> set[int]:
        """The entries that apply one of these fields, or a list or map around it as a whole."""
        all_fields, namers, _ = self._named
        here = self._at(all_fields, at)
        whole = None if is_custom(self._obj) else _WHOLE
        nodes = {id(_field(here, key, whole)) for key in keys}
        found = {entry for node in nodes for entry in namers.get(node, ())}
        return {each for each in found if self._entries[each].get("operation") == "Apply"}

    def _at(self, written: Raw, at: Path) -> Raw:
        """The fields at this place of the object."""
        for name in self._steps(written, at):
            written = as_map(written.get(name))
        return written

    def _steps(self, written: Raw, at: Path) -> Iterator[str]:
        """The names in these fieldsV1 on the way to this place; items of a list have keys."""
        here: Any = self._obj
        for token in at:
            if isinstance(token, int):
                here = here[token] if isinstance(here, list) and token < len(here) else None
                name = _item(written, here)
            else:
                here, name = as_map(here).get(token), f"f:{token}"
            yield name
            written = as_map(written.get(name))

    def _is_hidden(self, written: Raw, at: Path, key: Key) -> bool:
        """Whether this field is inside a list or map whose members these fieldsV1 do not name.

        Such a map in a custom kind is atomic, or it is empty: it is if others name members of it.
        """
        if not is_custom(self._obj):
            return False  # which maps of these are atomic is known
        here, of_all = written, self._named[0]
        for name in (*self._steps(written, at), *_names(key)):
            there, of_all = here.get(name), as_map(of_all.get(name))
            if there is None:
                # Items without keys: the list is a set.
                return not name or (
                    name.startswith("k:") and not next(iter(here)).startswith(("k:", "."))
                )
            if not there:
                break
            here = there
        return name != f"f:{key[-1]}" and not of_all

    def in_manifest(self, at: Path) -> dict[Key, Any]:
        """The fields of the pod, or template, at `at` in the manifest that kubectl applied."""
        return self._declared_at(at).values

    def _declared_at(self, at: Path) -> PodFields:
        if at not in self._declared:
            try:
                self._declared[at] = PodFields(self._manifest, at)
            except (LookupError, TypeError):
                self._declared[at] = PodFields({})
        return self._declared[at]

    def _is_in_manifest(self, at: Path, key: Key) -> bool:
        return key in self.in_manifest(at)


def _selector(fields: PodFields) -> Raw:
    return {key[-1]: value for key, value in fields.values.items() if key[1] == "nodeSelector"}


def _manifest(text: object) -> Raw:
    """The manifest that kubectl applied; empty if it cannot be read, or is over the budget."""
    found = as_map(parsed(text))
    return {} if excess(found) else found


def _item(written: Raw, item: object) -> str:
    """The name of this item of a list in these fieldsV1; empty if that is not known.

    All members of a list are named in one way, and one may be `.`, the list. What is longer than a
    real key is not read: this is asked for each word of a record, and a tenant may forge all three.
    """
    sample = next((name for name in islice(written, 2) if name.startswith("k:")), "k:")
    keys, has = as_map(parsed(sample[2:_LONGEST_KEY])), as_map(item)
    found = {name: has[name] for name in keys if _is_short(has.get(name))}
    return _key_of(found) if 0 < len(found) <= _MOST_KEYS else ""


def _is_short(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and len(value) < _LONGEST_KEY)


def _key_of(keys: Raw) -> str:
    return f"k:{json.dumps(keys, separators=(',', ':'), ensure_ascii=False)}"


def _owns(fields: Raw, key: Key, *, applied: bool) -> bool:
    """Whether these fieldsV1 name the field, or a map around it with one owner as a whole.

    Required node affinity and nodeSelector are such maps; but other writers add labels to
    nodeSelector, too, unless it was applied.
    """
    return _field(fields, key, _WHOLE if applied else (REQUIRED,)) is not None


def _field(fields: Raw, key: Key, whole: tuple[str, ...] | None = ()) -> Raw | None:
    """What these fieldsV1 have for this field, or for a map around it owned as a `whole`.

    With None, any list or map around it that names no members is one.
    """
    here, names = fields, _names(key)
    for name in names:
        there = here.get(name)
        if not isinstance(there, dict):
            return None
        here = there
        if here or name == names[-1]:
            continue
        if whole is None or name.removeprefix("f:") in whole:
            return here
    return here


def _names(key: Key) -> list[str]:
    """The names of this field, and of those around it, in fieldsV1."""
    names: list[str] = []
    for place, name in enumerate(key):
        if place and key[place - 1] in _ITEMS and names[-1].startswith("f:"):
            names.append(_key_of({_ITEMS[key[place - 1]]: name}))
        else:
            names.append(f"f:{name}")
    return names
