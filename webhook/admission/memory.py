"""Remembers what was decided for pods that differ in nothing that a rule reads.

The thousand pods of a Job, or of a Deployment that starts anew, are one pod to the rules: same
namespace, spec, annotations and owner. What comes in bursts is nearly always such replicas, so
their answer is worked out, and its patch tried, once. Who sends other pods pays a few microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from webhook.core.pod import as_map

if TYPE_CHECKING:
    from webhook.admission.review import Review
    from webhook.telemetry.metrics import Decision

MOST = 256  # outcomes a worker, the oldest goes first: 4 MiB of keys at worst
LARGEST_KEY = 16 * 1024
# Far below the limit of pod and patch together (verify.py), which counts what is not in the key.
LARGEST_BODY = 64 * 1024
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # the pod once more, name and all


@dataclass(frozen=True, slots=True)
class Outcome:
    """All of an answer but the uid. `word` is for the log, empty if there is nothing to say."""

    word: str
    codes: list[str] = field(default_factory=list)
    patch: bytes = b""
    warnings: list[str] = field(default_factory=list)
    audit: dict[str, str] = field(default_factory=dict)
    fault: dict[str, str] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()  # for the metrics
    denial: str = ""  # why the object is refused, if it is
    lasts: bool = False  # an answer after a fault of ours is not remembered


class Memory:
    """The last outcomes of one set of rules, settings and inventory."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, Outcome] = {}

    def recall(self, key: bytes) -> Outcome | None:
        """The outcome for this key, if it is known."""
        outcome = self._known.get(key)
        if outcome is not None:
            self._known[key] = self._known.pop(key)  # now the youngest
        return outcome

    def keep(self, key: bytes, outcome: Outcome) -> None:
        """Remember the outcome, if it lasts and there is a key."""
        if key and outcome.lasts:
            self._known[key] = outcome
            if len(self._known) > MOST:
                del self._known[next(iter(self._known))]

    def __len__(self) -> int:
        """How many outcomes are known."""
        return len(self._known)


def key_of(review: Review, pod: dict[str, Any]) -> bytes:
    """All that the rules read of a pod, in bytes; none if it is too much to remember."""
    if len(review.body) > LARGEST_BODY:
        return b""
    metadata = as_map(pod.get("metadata"))
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and _APPLIED in annotations:
        annotations = {key: text for key, text in annotations.items() if key != _APPLIED}
    # Labels are read for an opt-out only, which is asked before the memory is.
    read = (review.request["namespace"], pod["spec"], annotations, metadata.get("ownerReferences"))
    try:
        key = orjson.dumps(read)
    except TypeError:  # lone surrogates, whole numbers of 20 digits
        return b""
    return key if len(key) <= LARGEST_KEY else b""
