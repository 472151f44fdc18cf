"""An update of a template in; the tolerations that it would take from the last repair out.

An apply replaces all tolerations by those of its manifest, and in some custom kinds a whole list of
templates. The rule that added a toleration need not add it again: its taint may have been removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.evaluation.field_values import items
from webhook.evaluation.pod_fields import TOLERATIONS, Change, Key
from webhook.evaluation.stored_pod import is_of_gpus
from webhook.evaluation.update_fields import TOLERATED, Update
from webhook.kube.canonical import canonical
from webhook.kube.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.core.settings import Settings


def sent_tolerations(update: Update, fields: Mapping[Key, Any]) -> dict[Key, Any]:
    """The tolerations that are sent, and their annotation; empty if none are recorded."""
    if TOLERATIONS not in update.noted:
        return {}
    return {key: copied(fields[key]) for key in (TOLERATIONS, TOLERATED) if key in fields}


def kept_tolerations(
    update: Update, sent: Mapping[Key, Any], made: Pod, settings: Settings
) -> dict[Key, Change]:
    """The record of all tolerations together with those that `made` has lost; empty if none is.

    A toleration of GPU nodes stays as long as the pods request GPUs, and those of an annotation as
    long as a manager applies it.
    """
    before, after = update.noted.get(TOLERATIONS, (None, None))
    if update.old is None or after is None or not made.gpus(settings):
        return {}
    is_annotated = (
        TOLERATED in update.noted
        and TOLERATED not in sent
        and update.authors.declared(update.at, TOLERATED)
    )
    there, stored = made.tolerations(), Pod(update.old, update.at).tolerations()
    added = items(after) - items(before) - items(there)
    lost = [
        each
        for each in stored
        if canonical(each) in added and (is_annotated or is_of_gpus(each, settings))
    ]
    if not lost:
        return {}
    now, word = [*there, *lost], sent.get(TOLERATIONS)
    if word == after and not update.authors.declared(update.at, TOLERATIONS):
        word = before  # a merge has kept them
    kept: dict[Key, Change] = {TOLERATED: update.noted[TOLERATED]} if is_annotated else {}
    return {
        **kept,
        TOLERATIONS: (word, stored if items(now) == items(stored) else now),
    }
