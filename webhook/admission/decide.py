"""Road 1: from a review to the answer. `mutate` never refuses a pod."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from webhook.admission import response
from webhook.admission.memory import Memory, Outcome, key_of
from webhook.admission.review import dump
from webhook.admission.verify import flaw
from webhook.core.engine import run
from webhook.core.pod import as_items, as_map
from webhook.core.rule import Context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.review import Review
    from webhook.core.findings import Finding, Verdict
    from webhook.core.nodes import Inventory
    from webhook.core.rule import Rule
    from webhook.core.settings import Settings
    from webhook.telemetry.logs import Log

US = "gpu-webhook"  # stands for the code in warnings about ourselves

_MIRROR = "kubernetes.io/config.mirror"
_OS_LABELS = ("kubernetes.io/os", "beta.kubernetes.io/os")


@dataclass(frozen=True, slots=True)
class Decider:
    """All that a decision depends on."""

    rules: Sequence[Rule]
    settings: Settings
    inventory: Inventory | None
    log: Log
    memory: Memory = field(default_factory=Memory)

    def validate(self, review: Review) -> bytes:
        """Whatever it is, it may pass."""
        return response.allowed(review)

    def mutate(self, review: Review) -> bytes:
        """Repair the pod if it is one of ours; anything else passes untouched."""
        began = perf_counter()
        pod = pod_of(review.request)
        if pod is None:
            return response.allowed(review)
        key = key_of(review, pod)
        outcome = self.memory.recall(key)
        if outcome is None:
            outcome = self._judge(review, pod, began)
            self.memory.keep(key, outcome)
        if outcome.word:
            self._log(review, pod, began, outcome.word, codes=outcome.codes, **outcome.fault)
        if not outcome.patch:
            return response.allowed(review, outcome.warnings, outcome.audit)
        return response.patched(review, outcome.patch, outcome.warnings, outcome.audit)

    def _judge(self, review: Review, pod: dict[str, Any], began: float) -> Outcome:
        """What the rules say, and a patch that has been tried."""
        cx = Context(self.settings, self.inventory, namespace=review.request["namespace"])
        verdict = run(self.rules, pod, cx)
        for code, error in verdict.failed:
            self._log(
                review, pod, began, "failed", level="error", codes=[code], error=_place(error)
            )
        lasts = not verdict.failed
        if not verdict.findings:
            return Outcome("", lasts=lasts)
        warnings = response.warnings_of(verdict.findings)
        audit = response.audit_of(verdict.findings)
        codes = _codes(verdict.findings)
        if not verdict.patch:
            return Outcome("reported", codes, b"", warnings, audit, lasts=lasts)
        patch, fault, level = _tried(review, pod, verdict)
        if fault:
            text = f"this pod was let through unrepaired: {fault}; repair its manifest"
            told = {"level": level, "error": fault}
            return Outcome("refused", codes, b"", [response.warning(US, text)], fault=told)
        return Outcome("patched", codes, patch, warnings, audit, lasts=lasts)

    def _log(  # noqa: PLR0913  # one line says it all
        self,
        review: Review,
        pod: dict[str, Any],
        began: float,
        outcome: str,
        *,
        codes: list[str],
        level: str = "info",
        **more: str,
    ) -> None:
        metadata = as_map(pod.get("metadata"))
        self.log.write(
            level,
            f"pod {outcome}",
            uid=review.uid,
            namespace=review.request["namespace"],
            name=_text(metadata.get("name")) or _text(metadata.get("generateName")),
            owner=_owner(metadata),
            codes=codes,
            outcome=outcome,
            milliseconds=round((perf_counter() - began) * 1000, 3),
            **more,
        )


def _tried(review: Review, pod: dict[str, Any], verdict: Verdict) -> tuple[bytes, str, str]:
    """The patch in bytes; why it must not be sent, if so, and how bad that is."""
    try:
        patch = dump(verdict.patch)
        return patch, flaw(review, patch, pod), "warning"
    except RecursionError:
        return b"", "it is nested too deeply", "warning"
    except Exception as error:  # noqa: BLE001  # a patch that fails its test is not sent
        return b"", f"the patch fails its own test ({_place(error)})", "error"


def pod_of(request: dict[str, Any]) -> dict[str, Any] | None:
    """The pod that is being made, or None if the request is none of our business."""
    if request.get("operation") != "CREATE" or request.get("subResource"):
        return None
    kind, resource = as_map(request.get("kind")), as_map(request.get("resource"))
    if (kind.get("kind"), kind.get("version"), kind.get("group") or "") != ("Pod", "v1", ""):
        return None
    if (resource.get("resource"), resource.get("group") or "") != ("pods", ""):
        return None
    pod, namespace = request.get("object"), request.get("namespace")
    if not isinstance(pod, dict) or not isinstance(namespace, str) or not namespace:
        return None
    spec = pod.get("spec")
    if not isinstance(spec, dict) or _is_mirror(pod) or _is_for_windows(spec):
        return None
    return pod


def _is_mirror(pod: dict[str, Any]) -> bool:
    """True for the API server's image of a static pod: the kubelet runs it as it is on disk."""
    return _MIRROR in as_map(as_map(pod.get("metadata")).get("annotations"))


def _is_for_windows(spec: dict[str, Any]) -> bool:
    selector = as_map(spec.get("nodeSelector"))
    return as_map(spec.get("os")).get("name") == "windows" or any(
        selector.get(label) == "windows" for label in _OS_LABELS
    )


def _owner(metadata: dict[str, Any]) -> str:
    """The kind of the controller that made the pod; nothing for a pod by hand."""
    for _, owner in as_items(metadata.get("ownerReferences")):
        if owner.get("controller") is True:
            return _text(owner.get("kind"))
    return ""


def _codes(findings: Sequence[Finding]) -> list[str]:
    return sorted({found.code for found in findings})


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _place(error: Exception) -> str:
    """Kind and place of an error. Not its text, which may quote the pod."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = trace.tb_frame.f_code if trace is not None else None
    line = trace.tb_lineno if trace is not None else 0
    name = where.co_filename.rpartition("/")[2] if where is not None else "?"
    return f"{type(error).__name__} in {name}:{line}"
