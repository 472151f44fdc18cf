"""The fields of an update: which are words of its author, and which a repair wrote.

Each field has a unit: the fields that one repair changes together. The writer of a field is known
from the record of the last repair (`noted`), or else from managedFields (authors.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from webhook.core.legacy_names import AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION
from webhook.evaluation.field_values import is_less, is_part
from webhook.evaluation.pod_fields import (
    TOLERATIONS,
    Change,
    Key,
    PodFields,
    changes,
    is_of_settings,
)
from webhook.evaluation.repair_fields import RepairFields, believed
from webhook.evaluation.stored_pod import PLACEMENT, model_labels
from webhook.kube import quantity
from webhook.kube.canonical import canonical
from webhook.kube.pod import KINDS, Pod, Raw, as_map
from webhook.kube.pointer import Path, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.core.edits import Edit
    from webhook.core.rule import Context
    from webhook.core.settings import Settings
    from webhook.evaluation.authors import Authors


_ANNOTATED: Key = ("metadata", "annotations", AFFINITY_ANNOTATION)
TOLERATED: Key = ("metadata", "annotations", TOLERATIONS_ANNOTATION)
_OF_NODES = (("affinity", "nodeAffinity"),)
_SETTINGS = ("nodeSelector", "runtimeClassName", "volumes")
_IN_CONTAINERS = (("env",), ("volumeMounts",))
# The values that the API server sets for missing fields.
_DEFAULTS: dict[Key, Any] = {("spec", "schedulerName"): "default-scheduler"}
VOLUMES: Key = ("volumes",)
PLACED: Key = ("placement",)


@dataclass(frozen=True, slots=True)
class Update:
    """A template that is sent; `noted` is what the last repair of it changed."""

    at: Path
    old: Raw | None  # the stored object, if it contains the template
    noted: Mapping[Key, Change]
    authors: Authors  # of the sent object
    before: Authors  # of the stored object
    may_change: bool

    def stored(self) -> PodFields:
        return PodFields(self.old, self.at) if self.old else PodFields({})

    def moving(self, obj: Raw) -> Update:
        """The recorded changes; nothing may change if the template is sent as it is stored."""
        changed = self.only_changed()
        if self.old is None or value_at(obj, self.at) != value_at(self.old, self.at):
            return changed
        return replace(changed, may_change=False)

    def worded(self, sent: PodFields, then: PodFields) -> set[Key]:
        """The units in which this update brings a recorded word, or removes one."""
        return {
            unit_of(key)
            for key, (word, after) in self.noted.items()
            if word is not None
            if sent.values.get(key) == word
            or (after is None and key in sent.values)
            or self.authors.took_out(key, self.before, sent, then)
        }

    def lost_nodes(self, sent: PodFields, then: PodFields) -> set[Key]:
        """The units of nodes and taints from which the author has taken a recorded word."""
        return {
            unit
            for key, (word, _) in self.noted.items()
            if (unit := unit_of(key)) in (PLACED, TOLERATIONS)
            if word is not None and key not in sent.values
            if self.authors.took_out(key, self.before, sent, then)
        }

    def left(self, sent: PodFields, then: PodFields, now: PodFields) -> set[Key]:
        """The unit of node selection, if this update leaves it as the last repair left it.

        For example, it only changes a label of the object. The rules, which made `now` of it, may
        still translate a legacy label in it: one that nodes had at that time.
        """
        if self.old is None or not self.noted or _ANNOTATED in sent.values:
            return set()
        if any(sent.values.get(key) != then.values.get(key) for key in placement(sent, then)):
            return set()
        noted = {key: after for key, (_, after) in self.noted.items() if unit_of(key) == PLACED}
        if any(sent.values.get(key) != after for key, after in noted.items()):
            return set()
        # A legacy label that is not recorded came while the webhook was away.
        changed = (key for key in placement(sent) if now.values.get(key) != sent.values[key])
        return {PLACED} if all(key in noted for key in changed) else set()

    def composed(
        self, made: dict[Key, Change], sent: PodFields, brought: set[Key], left: set[Key]
    ) -> dict[Key, Change]:
        """These changes with the words from before the last repair, where none is brought.

        Words that another manager still applies are not brought by this update, but they remain.
        """
        of_others = {
            key: (word, after)
            for key, (word, after) in self.noted.items()
            if unit_of(key) in brought and word not in (None, after)
            if sent.values.get(key) == after
            if self.authors.is_of_another(self.at, key, is_removed=after is None)
        }
        brought = brought - set(map(unit_of, of_others))

        def is_before(key: Key, after: Any) -> bool:
            unit = unit_of(key)
            return unit in left or (unit not in brought and self.noted[key][1] == after)

        return of_others | {
            key: (
                self.noted[key][0] if key in self.noted and is_before(key, after) else word,
                after,
            )
            for key, (word, after) in made.items()
        }

    def fields_of_repairs(
        self, sent: PodFields, then: PodFields, touched: set[Key], settings: Settings
    ) -> dict[Key, Any]:
        """The sent fields that repairs wrote, where words are translated; the values before."""
        if self.noted:
            return self._noted(sent, then, touched, settings)
        loose = unwritten(sent, then, touched, self.authors, settings)
        forms = RepairFields(sent.values, settings)
        return {key: None for key, value in loose.items() if forms.may_be(key, None, value)}

    def put_back(self, sent: PodFields, then: PodFields, settings: Settings) -> list[Edit]:
        """The edits that restore a legacy amount whose current amount another manager releases.

        The manager of the legacy amount still applies it, but the repair removed it: the container
        would have no GPU until the manifest is applied again.
        """
        released = {
            key[:-1]
            for key in then.values.keys() - sent.values.keys()
            if settings.is_gpu(key[-1])
            if self.authors.dropped(self.at, key, self.before)
        }
        if not released:
            return []
        words = {
            key: word
            for key, (word, after) in self.noted.items()
            if key[:-1] in released and key[-1] in settings.legacy_resources and after is None
            if key not in sent.values and self.authors.declared(self.at, key)
        }
        return sent.edits_to(words)

    def of_settings(self, sent: PodFields) -> dict[Key, None]:
        """Fields that the last repair wrote because of the settings, and that are still there.

        They are always removed and made again. A label for node selection is such a field only
        without a word next to it.
        """
        noted, authors = self.noted, self.authors
        if not self.may_change:
            return {}
        if not any(key[1] in _SETTINGS or key[3:4] in _IN_CONTAINERS for key in noted):
            return {}
        worded = {unit_of(key) for key, (word, _) in noted.items() if word is not None}
        return {
            key: None
            for key, (word, after) in noted.items()
            if word is None and is_of_settings(key)
            if key[1] != "nodeSelector" or unit_of(key) not in worded
            if sent.values.get(key) == after is not None and not authors.wrote(sent.at, key)
        }

    def only_changed(self) -> Update:
        """The same without recorded fields that the last repair kept."""
        return replace(self, noted={k: each for k, each in self.noted.items() if not is_kept(each)})

    def without_forged(self, settings: Settings) -> Update:
        """The same without fields that no repair writes: a writer may forge the record."""
        if not self.noted:
            return self
        return replace(self, noted=believed(self.noted, settings))

    def as_it_was(self, sent: PodFields, cx: Context) -> Context:
        """The context in which words without a legacy amount are translated as they were beside it.

        All are while the amount of a repair stands for a legacy one, which this update does not
        have. If another manager has migrated the amount, a choice of nodes is while it is the same.
        A legacy amount that is sent counts by itself, and 0 requests no GPU.
        """
        settings = cx.settings
        legacy, at, authors = settings.legacy_resources, sent.at, self.authors
        by_itself = {key[:4] for key in sent.values if key[-1] in legacy}
        amounts = {
            key[:4]: key
            for key, value in sent.values.items()
            if settings.is_gpu(key[-1]) and quantity.parse(value) != 0 and key[:4] not in by_itself
        }
        words = (
            [key for key, (word, _) in self.noted.items() if word is not None] if amounts else []
        )
        was_stuck = any(
            key[-1] in legacy and key[:4] in amounts and not authors.dropped(at, key, self.before)
            for key in words
        )
        chosen = [
            key
            for key in words
            if unit_of(key) == PLACED
            if sent.values.get(key) == self.noted[key][0]
            or (sent.values.get(key) == self.noted[key][1] and authors.declared(at, key))
        ]
        migrated = [key for key in amounts.values() if authors.may_have(at, key)]
        was_chosen = bool(migrated) and authors.are_of_others(at, chosen, migrated)
        return replace(cx, was_stuck=was_stuck, was_chosen=was_chosen)

    def _noted(
        self, sent: PodFields, then: PodFields, touched: set[Key], settings: Settings
    ) -> dict[Key, Any]:
        """The values before the last repair where this update brings its words, not the value.

        Next to the words another writer may have set a value to which the repair added: it stays.
        An amount that no manifest has is removed, and an amount that the repair raised above an
        applied one becomes that one again: otherwise it could never be lowered.
        """
        noted, authors = self.noted, self.authors
        loose = unwritten(sent, then, touched, authors, settings)
        forms = RepairFields({key: before for key, (before, _) in noted.items()}, settings)
        found: dict[Key, Any] = {key: None for key in loose if settings.is_gpu(key[-1])}
        for key, (before, after) in noted.items():
            value = sent.values.get(key)
            if unit_of(key) not in touched or value is None:
                continue
            if value != after and not forms.may_be(key, before, value):
                continue
            words = _words_beside(key, sent, settings)
            if words and not then.values:
                continue  # written in this request, and another webhook has changed the word since
            # Tolerations are one field: the repair joins an annotation to those of another manager.
            joins = key == TOLERATIONS and TOLERATED in sent.values
            joins = joins and not authors.declared_together(sent.at, key, TOLERATED)
            if authors.declared(sent.at, key) and not joins:
                beside = any(authors.declared_together(sent.at, key, word) for word in words)
                if words and value == after and is_less(before, value) and not beside:
                    found[key] = before
            elif before is None and (
                value == then.values.get(key)
                or any(not is_less(sent.values[word], value) for word in words)
            ):
                found[key] = None
            elif value == after and (is_part(before, value) or before == _DEFAULTS.get(key)):
                found[key] = before
        return found


def independent_of_nodes(keys: list[Key], settings: Settings) -> set[Key]:
    """The fields that follow from the sent object and the settings, without the inventory.

    They need not stay as they are stored while nodes change.
    """
    label = settings.placement.label
    found = {key for key in keys if key[1] == "volumes" or key[3:4] in _IN_CONTAINERS}
    return found if label in model_labels(settings) else {*found, ("spec", "nodeSelector", label)}


def without_mounted(
    repaired: dict[Key, Any], sent: PodFields, *, read_only: bool
) -> dict[Key, Any]:
    """Fields of repairs without volumes that other mounts still use.

    If no rule will run that makes such mounts read-only, they must be `read_only`.
    """
    if not any(key[1] == "volumes" for key in repaired):
        return repaired
    used = {
        ("spec", "volumes", str(as_map(mount).get("name")))
        for key, mount in sent.values.items()
        if "volumeMounts" in key[3:4] and key not in repaired
        if not read_only or as_map(mount).get("readOnly") is True
    }
    return {key: value for key, value in repaired.items() if value is not None or key not in used}


def is_kept(change: Change) -> bool:
    """Whether the last repair kept this field: it is recorded next to a translated word."""
    return bool(change[0] == change[1])


def notes(
    author: Mapping[Key, Any], now: Mapping[Key, Any], settings: Settings
) -> dict[Key, Change]:
    """The changes of a repair; and next to a word on node selection its other fields, unchanged.

    With these the record differs as soon as a nodeSelector does (evaluation/authors.py). And a
    legacy label that a repair kept, because nodes have it, differs from one that came while the
    webhook was away.
    """
    found = changes(author, now)
    of_nodes = {
        key: (value, value)
        for key, value in now.items()
        if key[1] == "nodeSelector" or key[1:3] in _OF_NODES
        if author.get(key) == value
    }
    label = settings.models.legacy_label
    keeps = any(label == key[-1] or label in canonical(now[key]) for key in of_nodes)
    repairs = {unit_of(key)[-1] for key in found}
    return (
        found | of_nodes if "placement" in repairs or (keeps and "resources" in repairs) else found
    )


def unit_of(key: Key) -> Key:
    """The fields that one repair changes together: legacy words, and their replacements."""
    if key[1] in KINDS and "resources" in key[3:4]:
        return key[:4]
    if key[1] in PLACEMENT or key[-1] == AFFINITY_ANNOTATION:
        return PLACED
    if key == TOLERATIONS or key[-1] == TOLERATIONS_ANNOTATION:
        return TOLERATIONS
    if key[1] == "volumes" or "env" in key[3:4] or "volumeMounts" in key[3:4]:
        return VOLUMES
    return ("fields",)


def has_words(pod: Pod, sent: PodFields, noted: Mapping[Key, Change], settings: Settings) -> bool:
    """Whether the pod has legacy words on node selection, or recorded ones."""
    return (
        pod.names_legacy_label(settings.models.legacy_label)
        or AFFINITY_ANNOTATION in pod.annotations
        or any(after is None and key in sent.values for key, (_, after) in noted.items())
    )


def _words_beside(key: Key, sent: PodFields, settings: Settings) -> list[Key]:
    """The legacy names next to an amount. If they request as much, the amount is not needed.

    A `rollout undo` restores both, of a revision that was applied while the webhook was away.
    """
    if not settings.is_gpu(key[-1]):
        return []
    words = ((*key[:-1], name) for name in settings.legacy_resources)
    return [word for word in words if word in sent.values]


def unwritten(
    sent: PodFields, then: PodFields, touched: set[Key], authors: Authors, settings: Settings
) -> dict[Key, Any]:
    """Stored fields that no author wrote, if they would win over the words or be joined with them.

    Without a record this webhook or another one may have written them; they are removed again.
    """
    labels = model_labels(settings)
    return {
        key: value
        for key, value in sent.values.items()
        if (unit := unit_of(key)) in touched and then.values.get(key) == value
        if _is_of_words(key, unit, labels, settings) and value != _DEFAULTS.get(key)
        if not authors.may_have_written(sent.at, key)
    }


def _is_of_words(key: Key, unit: Key, labels: frozenset[str], settings: Settings) -> bool:
    match unit:
        case (_, _, _, "resources"):
            # No repair writes a legacy amount: without it the pods would have no GPU.
            return settings.is_gpu(key[-1])
        case _ if unit == PLACED:
            return key[1] == "affinity" or key[-1] in labels
        case ("fields",):
            return key[0] == "spec"
        case _:
            return False


def placement(*versions: PodFields) -> list[Key]:
    """The fields of node selection in any of these versions of a pod."""
    return [key for each in versions for key in each.values if key[1] in PLACEMENT]
