"""Writes the log line, counts the metrics and returns the bytes of each answer."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from webhook.admission import request_pods, response
from webhook.admission.outcome import Outcome, place_of
from webhook.core.rule import Trait
from webhook.evaluation.workloads import is_known_kind
from webhook.kube.pod import as_map
from webhook.rules import codes, is_legacy
from webhook.telemetry.metrics import OTHER, Metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.admission.review import Review
    from webhook.core.settings import Settings
    from webhook.telemetry.logs import Log

_EDITS = {"repaired", "would repair"}
_REPORTING = codes(Trait.LEGACY_PODS)  # in pods that run


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records all answers under these settings."""

    settings: Settings
    log: Log
    metrics: Metrics

    def passed(self, path: str, review: Review, began: float) -> bytes:
        """An answer without log line: no rule concerns the object."""
        self.metrics.review(path, "passed", perf_counter() - began)
        return response.answer(review)

    def answer(
        self, path: str, review: Review, obj: dict[str, Any], began: float, outcome: Outcome
    ) -> bytes:
        """The bytes of this answer, after it is logged and counted."""
        if outcome.word:
            more: dict[str, Any] = {**outcome.fault, "owner": request_pods.owner_of(obj)}
            if outcome.decisions:
                actions = [f"{code} {mode}: {action}" for code, mode, action in outcome.decisions]
                more["actions"] = actions
                self.metrics.decided(outcome.decisions)
            more["legacy"] = _is_legacy(outcome)
            if review.request.get("dryRun") is True:
                more["dryRun"] = True
            else:
                self.metrics.repaired(outcome.decisions)
                if more["legacy"]:
                    kind = self._kind(obj, more["owner"])
                    self.metrics.legacy(review.request["namespace"], kind)
            self._write(review, obj, began, outcome.word, codes=outcome.codes, **more)
        self.metrics.review(path, outcome.word or "passed", perf_counter() - began)
        return response.answer(
            review,
            denial=outcome.denial,
            patch=outcome.patch,
            warnings=outcome.warnings,
            audit=outcome.audit,
        )

    def failures(
        self,
        review: Review,
        obj: dict[str, Any],
        began: float,
        failed: Iterable[tuple[str, Exception]],
    ) -> None:
        """Log and count the rules that raised an exception."""
        for code, error in failed:
            self.metrics.rule_failed(code)
            more: dict[str, Any] = {"level": "error", "error": place_of(error)}
            owner = request_pods.owner_of(obj)
            self._write(review, obj, began, "failed", codes=[code], owner=owner, **more)

    def _kind(self, obj: dict[str, Any], owner: dict[str, str] | None) -> str:
        """The kind of the owner, or of the object. A tenant may invent any number of kinds."""
        kind = owner["kind"] if owner else request_pods.text(obj.get("kind"))
        return kind if is_known_kind(kind, self.settings) else OTHER

    def _write(  # noqa: PLR0913  # one line with all fields
        self,
        review: Review,
        obj: dict[str, Any],
        began: float,
        outcome: str,
        *,
        codes: list[str],
        owner: dict[str, str] | None,
        level: str = "info",
        **more: object,
    ) -> None:
        metadata = as_map(obj.get("metadata"))
        self.log.write(
            level,
            f"{(request_pods.text(obj.get('kind')) or 'pod').lower()} {outcome}",
            uid=review.uid,
            namespace=request_pods.text(review.request.get("namespace")),
            name=_name(review, metadata),
            owner=owner,
            user=request_pods.user_of(review.request),
            codes=codes,
            outcome=outcome,
            milliseconds=round((perf_counter() - began) * 1000, 3),
            **more,
        )


def _is_legacy(outcome: Outcome) -> bool:
    """Whether a word of Kubernetes 1.3-1.10 counts, which users of the webhook are to migrate.

    Not if a rule only reports one in a pod that runs as it is: nothing depends on the webhook. Of a
    patch that could not be sent only the codes are known.
    """
    if not outcome.decisions:
        return any(map(is_legacy, outcome.codes))
    return any(
        is_legacy(code) and (action in _EDITS or code not in _REPORTING)
        for code, _, action in outcome.decisions
    )


def _name(review: Review, metadata: dict[str, Any]) -> str:
    """The object's name, or its prefix. A late review has only the name in the request."""
    names = (metadata.get("name"), metadata.get("generateName"), review.request.get("name"))
    return next(filter(None, map(request_pods.text, names)), "")
