"""The record of a template repair in the metadata of the workload: which fields replaced which.

A user who may write the workload may forge the record, so it is only a hint. It names fields of the
template that a repair may have written, with the value that each must then have. The only value
that it restores is an amount of GPUs that is smaller than the present one. Fields that no repair
writes are ignored (evaluation/repair_fields.py).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from webhook.core.object_size import MOST_ANNOTATION_BYTES, annotation_bytes
from webhook.evaluation.pod_fields import TOLERATIONS, Change, Key, is_of_settings
from webhook.kube.canonical import parsed
from webhook.kube.managed_fields import has_annotation, is_custom
from webhook.kube.pod import annotations_of, as_map
from webhook.kube.pointer import Path, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    Record = dict[str, dict[Key, Change]]  # by the JSON Pointer of the template

ANNOTATION = "gpu-webhook.dev/template-repair"
LARGEST = 64 * 1024  # characters; a larger repair has no record
_PAIR = 2
_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


def latest(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Record:
    """The record of the last repair of this object: from an earlier round, or the stored one.

    The webhook is called again after another webhook has changed the object (reinvocationPolicy). A
    record that a client sent does not count: an exported object has an old one.
    """
    sent = read(as_map(obj.get("metadata")))
    if old is None or (sent and not has_annotation(obj, ANNOTATION)):
        return sent
    return read(as_map(old.get("metadata")))


def read(metadata: Mapping[str, Any]) -> Record:
    """The record in these metadata; an empty one if it is missing or malformed."""
    text = as_map(metadata.get("annotations")).get(ANNOTATION)
    if not isinstance(text, str) or len(text) > LARGEST:
        return {}
    return {
        at: {
            key: (pair[0], pair[1])
            for pointer, pair in as_map(noted).items()
            if len(key := tokens(pointer)) > 1 and isinstance(pair, list) and len(pair) == _PAIR
        }
        for at, noted in as_map(parsed(text)).items()
    }


def is_on(obj: Mapping[str, Any]) -> bool:
    """Whether the object has a record, of whatever."""
    return ANNOTATION in annotations_of(obj)


def has_words(metadata: Mapping[str, Any]) -> bool:
    """Whether the record in these metadata has a translated word of the author.

    Tolerations of the author are none: a repair only adds to them.
    """
    noted = (found for each in read(metadata).values() for found in each.items())
    return any(before not in (None, after) and key != TOLERATIONS for key, (before, after) in noted)


def written(record: Record, obj: Mapping[str, Any]) -> str:
    """The record of this object as text.

    Empty if there is nothing to record, or no room among its annotations.
    """
    annotations = annotations_of(obj)
    # Other additions without a word need none, if a merge keeps them.
    lost = {TOLERATIONS} if is_custom(obj) else set()
    parts: list[str] = []
    room = LARGEST
    for at, noted in sorted(record.items()):
        if any(
            before is not None or key in lost or is_of_settings(key)
            for key, (before, _) in noted.items()
        ):
            changes = {str(Path(key)): change for key, change in noted.items()}
            parts.append(f"{_ENCODER.encode(at)}:{_ENCODER.encode(changes)}")
            room -= len(parts[-1]) + 1
            if room <= 0:
                return ""
    if not parts:
        return ""
    text = f"{{{','.join(parts)}}}"
    size = annotation_bytes({**annotations, ANNOTATION: text})
    return text if size <= MOST_ANNOTATION_BYTES else ""
