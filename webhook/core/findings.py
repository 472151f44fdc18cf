"""A finding: what a rule reports about an object; and the verdict, all results for one object."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from webhook.core.modes import Mode
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from webhook.core.edits import Edit


class Severity(StrEnum):
    """What remains to be done."""

    REPAIR = "repair"  # the edits fix it completely
    MANUAL = "manual"  # manual changes are needed, with or without edits
    DENY = "deny"  # the pod must not run
    NOTICE = "notice"  # information; nothing is wrong with the pod


class Safety(StrEnum):
    """Whether the edits may be made without asking."""

    SAFE = "safe"  # applied
    UNSAFE = "unsafe"  # applied only if the user asked for it
    # Applied to pods in admission, which need an answer. In a file the author can choose better:
    # there it is held like an unsafe edit, and other edits for legacy pods wait for the choice.
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a rule: the place, the meaning for the user, and the edits.

    The engine sets `mode` and the reason of an `exception`. `outlook` says what will happen to the
    pods, if `mode` and `action` do not show it. A denied pod `may_run` if plugins of the API server
    decide: they may still add the missing toleration (RuntimeClass, PodTolerationRestriction,
    ExtendedResourceToleration), or may be off and so add no node selector (PodNodeSelector). A
    finding `lags` if nodes may just have got what the pod needs: no review shows that. For a
    manifest, `origin` is the place and `touched` are the edits in the original document; `held` is
    the reason if the edits were not made. `object` is the name of the object, such as
    `Deployment/name`. `word` is the part of the text at this place that it is about.
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
    lags: bool = False
    object: str = ""
    origin: Path = ROOT
    touched: tuple[Edit, ...] = ()
    held: str = ""
    word: str = ""

    @property
    def action(self) -> str:
        """The result in one word, for the audit annotation, the log and the metric."""
        if self.exception:
            return "excepted"
        if self.severity is Severity.DENY:
            return "denied" if self.mode is Mode.ENFORCE else "would deny"
        if self.edits and self.safety is Safety.SAFE:
            return "repaired" if self.mode is Mode.ENFORCE else "would repair"
        return "reported"

    @property
    def is_remark(self) -> bool:
        """Whether nothing needs to be done: information, or a note on a repair of another rule."""
        beside = self.severity is Severity.REPAIR and not self.edits
        return beside or self.severity is Severity.NOTICE


def choice(code: str, at: Path, message: str) -> Finding:
    """What no edit can choose for the author: in a file, other edits for the legacy pod wait."""
    return Finding(code, at, message, severity=Severity.MANUAL, safety=Safety.CHOICE)


@dataclass(slots=True)
class Verdict:
    """The result for one object.

    `patch` are the edits as RFC 6902 operations, where they were asked for; `failed` the rules that
    raised an exception: these changed nothing, all others ran normally.
    """

    findings: tuple[Finding, ...]
    patch: list[dict[str, Any]] = field(default_factory=list)
    failed: tuple[tuple[str, Exception], ...] = ()
