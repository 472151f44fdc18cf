"""A finding: what a rule reports about an object, and the result."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from webhook.core.modes import Mode
from webhook.kube.pointer import ROOT

if TYPE_CHECKING:
    from webhook.core.draft import Draft
    from webhook.core.edits import Edit
    from webhook.kube.pointer import Path


class Severity(StrEnum):
    """What is left to do."""

    REPAIR = "repair"  # the edits are the whole cure
    MANUAL = "manual"  # manual changes are needed, with or without edits
    DENY = "deny"  # the pod must not run
    NOTICE = "notice"  # worth knowing; nothing is wrong with the pod


class Safety(StrEnum):
    """Whether the edits may be made without asking."""

    SAFE = "safe"  # applied
    UNSAFE = "unsafe"  # applied only where the user said so
    # Applied to pods, which are there and need an answer. In a file an author can give a better
    # one: there it is as good as unsafe, and what else only legacy pods get waits for it.
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule found: where, what it means to the user, and the edits for it.

    `mode` and the reason of an `exception` are filled in by the engine. `outlook` is what will
    become of the pods, where that is not what `mode` and `action` say of this object. A denied pod
    `may_run` where plugins of the API server decide: they may still add the toleration that is all
    it lacks (RuntimeClass, PodTolerationRestriction, ExtendedResourceToleration), or are not on and
    add no node selector (PodNodeSelector). Of a manifest
    `origin` is the place, and `touched` are the edits, in the document as it came, and `held` says
    why the edits were not made, if they were not to be: then there are none. `object` names the
    object, as `Deployment/name`.
    """

    code: str
    at: Path
    message: str
    edits: tuple[Edit, ...] = ()
    severity: Severity = Severity.REPAIR
    safety: Safety = Safety.SAFE
    mode: Mode = Mode.ENFORCE
    exception: str = ""
    outlook: str | None = None
    may_run: bool = False
    object: str = ""
    origin: Path = ROOT
    touched: tuple[Edit, ...] = ()
    held: str = ""

    @property
    def action(self) -> str:
        """What came of it: the audit annotation, the log and the metric use these words."""
        if self.exception:
            return "excepted"
        if self.severity is Severity.DENY:
            return "denied" if self.mode is Mode.ENFORCE else "would deny"
        if self.edits and self.safety is Safety.SAFE:
            return "repaired" if self.mode is Mode.ENFORCE else "would repair"
        return "reported"

    @property
    def is_remark(self) -> bool:
        """Whether nobody need do anything: worth knowing, or a word on another's repair."""
        beside = self.severity is Severity.REPAIR and not self.edits
        return beside or self.severity is Severity.NOTICE


@dataclass(slots=True)
class Verdict:
    """The outcome for one object.

    `object` is the object as edited, `patch` the same edits as RFC 6902 operations, `failed` the
    rules that raised: they changed nothing, the others did their work.
    """

    findings: tuple[Finding, ...]
    object: dict[str, Any]
    patch: list[dict[str, Any]]
    failed: tuple[tuple[str, Exception], ...] = ()
    draft: Draft | None = field(default=None, repr=False, compare=False)

    @property
    def changes(self) -> list[Edit]:
        """The patch once more, as symbolic edits of the object as it came."""
        return self.draft.changes() if self.draft is not None else []

    @property
    def denied(self) -> bool:
        return any(finding.action == "denied" for finding in self.findings)
