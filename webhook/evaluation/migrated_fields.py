"""Which changes of a repair's record its author has taken over: a sent template in, the rest out.

Who migrates a manifest writes what the repair stored. Then nothing in the template changes, and the
record would name words that are in no manifest. It also would take later fields of the author for
legacy ones. So it must be seen what the author declares: kubectl stores the manifest that it
applied, and managedFields show who applies a field, but not the values in an atomic list or map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.evaluation.field_values import is_as_applied, is_part
from webhook.evaluation.pod_fields import TOLERATIONS, Change, Key, PodFields, is_of_settings
from webhook.evaluation.update_fields import PLACED, TOLERATED, Update, unit_of

if TYPE_CHECKING:
    from webhook.core.settings import Settings


def unmigrated(
    update: Update, sent: PodFields, touched: set[Key], settings: Settings
) -> dict[Key, Change]:
    """The record without the units whose words the author has replaced by what the repair made.

    `touched` are the units in which the update brings words, or differs from a repaired template. A
    unit stays if the request does not show that its words are in no manifest: without the record
    the template would no longer follow its author.
    """
    noted = update.noted
    if update.old is None:
        return dict(noted)
    changed = update.only_changed().noted
    wrote = [(key, after) for key, (_, after) in changed.items() if after is not None]
    if wrote and not touched and all(sent.values.get(key) != after for key, after in wrote):
        return {}  # nothing that the repair wrote is there
    manifest = _Manifest(update, sent, settings, is_first=bool(touched))
    worded: set[Key] = set()
    left = set(touched)
    is_annotated = TOLERATED in changed
    for key, (word, after) in changed.items():
        unit = unit_of(key)
        if _is_added(key, word) or unit in left:
            continue
        if key == TOLERATIONS and not is_annotated:
            (worded if manifest.has_taken_over(after) else left).add(unit)
            continue
        if word is not None:
            worded.add(unit)
        if not manifest.says_today(key, after):
            left.add(unit)
    gone = worded - left
    return {k: c for k, c in noted.items() if unit_of(k) not in gone or _is_added(k, c[0])}


def _is_added(key: Key, word: Any) -> bool:
    """Whether the settings asked for this field, and no word: it goes with the last GPU."""
    return word is None and is_of_settings(key) and unit_of(key) != PLACED


class _Manifest:
    """What the author declares of the template, as far as the request shows it."""

    def __init__(
        self, update: Update, sent: PodFields, settings: Settings, *, is_first: bool
    ) -> None:
        self._at, self._sent, self._authors = update.at, sent, update.authors
        self._said = update.authors.in_manifest(update.at)
        # Who takes our annotation away replaces the whole object.
        self._is_replaced = update.authors.is_unrecorded
        self._is_applied = update.authors.shows_manifest(self._at, update.before, is_first=is_first)
        self._is_modern = settings.scope == "gpu" and self._drops_amount(update, settings)

    def says_today(self, key: Key, after: Any) -> bool:
        """Whether the author declares the result of the repair here, and no word."""
        if self._is_replaced:
            return True
        if self._said and not self._is_in_manifest(key, after):
            return False
        if self._authors.is_applied:
            return self._is_in_managed_fields(key, after)
        return bool(self._said)

    def has_taken_over(self, after: Any) -> bool:
        """Whether the author declares the tolerations of the repair, and not only some."""
        if not is_part(after, self._sent.values.get(TOLERATIONS)):
            return False
        if self._is_replaced:
            return True
        if self._said:
            return is_part(after, self._said.get(TOLERATIONS))
        # An earlier round of this request may have added them, whatever the words are.
        return self._is_applied and self._authors.applies(self._at, TOLERATIONS)

    def _is_in_manifest(self, key: Key, after: Any) -> bool:
        if after is None:
            return key not in self._said
        value = self._sent.values.get(key)
        return value != after or is_as_applied(key, after, value, self._said)

    def _is_in_managed_fields(self, key: Key, after: Any) -> bool:
        at, authors = self._at, self._authors
        # What another manager applies, such as a nodeSelector, is not shown by this request.
        is_shown = authors.applies(at, key) and (self._is_modern or self._is_applied)
        if after is None:
            is_named = (
                authors.declared_together(at, key, key)
                if self._is_applied
                else authors.names(at, key)
            )
            return not is_named and (is_shown or not authors.may_have_written(at, key))
        return self._sent.values.get(key) != after or (
            is_shown and authors.may_have_written(at, key)
        )

    def _drops_amount(self, update: Update, settings: Settings) -> bool:
        """Whether this request leaves no legacy amount, and the last one did.

        Then an earlier round of it translated no other word, either: a pod that requests GPUs under
        the current name keeps them.
        """
        legacy, at, authors = settings.legacy_resources, self._at, self._authors
        recorded = [key for key in update.noted if key[-1] in legacy]
        return bool(recorded) and not (
            any(key[-1] in legacy for key in self._sent.values)
            or any(authors.may_have(at, key) for key in recorded)
        )
