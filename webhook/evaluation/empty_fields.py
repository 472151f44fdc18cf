"""An update of a template in; edits that leave the maps and lists that its author sends empty out.

A repair removes a map that becomes empty. But where a manifest has it, the next apply would add it
again: the template would be rolled out although its author changed nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import place_of
from webhook.evaluation.pod_fields import LISTS, PodFields
from webhook.kube.pointer import value_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.core.edits import Edit
    from webhook.evaluation.pod_fields import Key
    from webhook.evaluation.update_fields import Update
    from webhook.kube.pod import Raw
    from webhook.kube.pointer import Path


def left_empty(update: Update, sent: Iterable[Key], obj: Raw) -> list[Edit]:
    """The edits that add the empty maps and lists again from which sent fields were removed."""
    now = PodFields(obj, update.at)
    around = {
        key[:length] for key in set(sent) - now.values.keys() for length in range(2, len(key))
    }
    wanted: dict[Key, Any] = {
        key: [] if key[-1] in LISTS else {}
        for key in sorted(around)
        if update.authors.leaves_empty(update.at, key)
    }
    return [edit for edit in now.edits_to(wanted) if _is_missing(obj, place_of(edit))]


def _is_missing(obj: Raw, at: Path) -> bool:
    try:
        value_at(obj, at)
    except (LookupError, TypeError):
        return True
    return False
