"""The results of checking files: the values that every report is made from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from webhook.core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.capacity.nodes import Inventory
    from webhook.files.source import Source
    from webhook.yamlpatch.places import Place, Replacement

CLEAN, ERROR, FIXABLE, MANUAL = 0, 1, 2, 3  # exit codes


class Status(StrEnum):
    """What became of a finding, or what is left to do."""

    FIXED = "fixed"  # written, or in the text that was printed
    FIXABLE = "fixable"  # `migrate --write` does it
    MANUAL = "manual"  # manual changes are needed
    NOTICE = "notice"  # worth knowing; nothing need be done


NOT_DONE = " (not done here, since "


def not_done(message: str, why: str) -> str:
    """The message of a finding whose edits were not made."""
    return f"{message}{NOT_DONE}{why})"


@dataclass(frozen=True, slots=True)
class Located:
    """A finding, and where it is. `fix` are the replacements that mend it, if any do."""

    code: str
    message: str
    status: Status
    place: Place
    path: str = ""  # in the object, as `spec.containers[0].resources`
    object: str = ""  # as `Deployment/name`
    fix: tuple[Replacement, ...] = ()

    def undone(self, why: str) -> Located:
        """The same where the edits may not be made."""
        message = not_done(self.message, why)
        return replace(self, status=Status.MANUAL, message=message, fix=())

    def is_in(self, place: Place) -> bool:
        """Whether it begins there."""
        begins = (self.place.line, self.place.column)
        return (place.line, place.column) <= begins < (place.end_line, place.end_column)


def in_order(located: Iterable[Located]) -> tuple[Located, ...]:
    """The findings of one file, by their places."""
    return tuple(sorted(located, key=lambda each: (each.place.line, each.place.column, each.code)))


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a file that could not be read as a manifest."""

    reason: str
    place: Place | None = None  # None: the whole file


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file. `new_text` is None if nothing is to change; `error` says why it was not read."""

    path: str
    kind: str = "yaml"
    text: str = ""
    new_text: str | None = None
    located: tuple[Located, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    error: str = ""

    @classmethod
    def of(
        cls, source: Source, new_text: str, located: Iterable[Located], skipped: Iterable[Skipped]
    ) -> Self:
        """What became of this file, with the findings by their places."""
        path, kind, text = source.path, source.kind, source.text
        changed = new_text if new_text != text else None
        return cls(path, kind, text, changed, in_order(located), tuple(skipped))

    @property
    def remarks(self) -> int:
        """How much there is to say, besides what changes."""
        return len(self.located) + len(self.skipped) + bool(self.error)


@dataclass(frozen=True, slots=True)
class Report:
    """All files with something to say, and how many were looked at."""

    results: tuple[FileResult, ...]
    root: str = "."  # what the paths are relative to
    files: int = 0

    @property
    def located(self) -> list[Located]:
        """All findings."""
        return [located for result in self.results for located in result.located]

    @property
    def skipped(self) -> int:
        """How many parts were skipped."""
        return sum(len(result.skipped) for result in self.results)

    @property
    def errors(self) -> int:
        """How many files could not be read."""
        return sum(bool(result.error) for result in self.results)

    def counts(self) -> Counter[Status]:
        """Findings by status."""
        return Counter(located.status for located in self.located)

    def exit_code(self, fail_on: Status = Status.FIXABLE, *, exit_zero: bool = False) -> int:
        """0 clean or all written, 1 an error, 2 fixable findings, 3 manual ones.

        3 beats 2, and 1 beats both. `fail_on` manual leaves 2 out.
        """
        if self.errors:
            return ERROR
        counts = self.counts()
        if exit_zero:
            return CLEAN
        if counts[Status.MANUAL]:
            return MANUAL
        return FIXABLE if counts[Status.FIXABLE] and fail_on is Status.FIXABLE else CLEAN


@dataclass(frozen=True, slots=True)
class OptedOut:
    """What is left alone for the label of something else: a namespace, or a kustomization's."""

    namespaces: frozenset[str] = frozenset()
    namespace: str = ""  # which the kustomization gives to all objects
    pods: bool = False  # the kustomization gives the label to all Pods
    templates: bool = False  # and to all pod templates


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for: the scope of this road is always `all-legacy`."""

    settings: Settings = field(default_factory=lambda: Settings(scope="all-legacy"))
    inventory: Inventory | None = None
    codes: Sequence[str] = ()  # of the only rules that are asked; none: all
    ignored: Sequence[str] = ()  # codes of rules that are not asked
    unsafe: bool = False
    target: tuple[int, int] = (1, 36)  # the Kubernetes that the manifests are for
    opted_out: OptedOut = OptedOut()
    # The files and folders of this run, and whether what is below the folders is, too.
    named: tuple[str, ...] = ()
    below: bool = False
    excluded: tuple[str, ...] = ()  # patterns of files that are left out
    # By code: where something is left for manual work that may be about pods in this file.
    left: Mapping[str, str] = field(default_factory=dict)
    # By code: why it is not done in this file, though it could be.
    held: Mapping[str, str] = field(default_factory=dict)

    def asks(self, code: str) -> bool:
        """Whether the rule with this code is asked."""
        return (not self.codes or code in self.codes) and code not in self.ignored
