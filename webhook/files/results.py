"""The results of checking files: the values that every report is made from."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Self, overload

from webhook.core.settings import Settings
from webhook.yamlpatch.places import Place, Replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webhook.capacity.nodes import Inventory
    from webhook.files.source import Source

CLEAN, ERROR, FIXABLE, MANUAL = 0, 1, 2, 3  # exit codes


class Status(StrEnum):
    """The result for a finding, or what remains to be done."""

    FIXED = "fixed"  # written, or in the text that was printed
    FIXABLE = "fixable"  # `migrate --write` fixes it
    MANUAL = "manual"  # manual changes are needed
    NOTICE = "notice"  # information; nothing needs to be done


NOT_DONE = " (not done here, since "


def not_done(message: str, why: str) -> str:
    """The message of a finding whose edits were not made."""
    return f"{message}{NOT_DONE}{why})"


@dataclass(frozen=True, slots=True)
class Located:
    """A finding and its place. `fix` are the replacements that fix it, if there are any."""

    code: str
    message: str
    status: Status
    place: Place
    path: str = ""  # in the object, such as `spec.containers[0].resources`
    object: str = ""  # such as `Deployment/name`
    fix: tuple[Replacement, ...] = ()
    # What a user may write; only the user knows what else depends on it.
    suggestion: tuple[Replacement, ...] = ()

    def undone(self, why: str) -> Located:
        """The same finding, with edits that must not be made."""
        message = not_done(self.message, why)
        return replace(self, status=Status.MANUAL, message=message, fix=())

    def is_in(self, place: Place) -> bool:
        """Whether it begins in this place."""
        begins = (self.place.line, self.place.column)
        return (place.line, place.column) <= begins < (place.end_line, place.end_column)


def order(each: Located) -> tuple[int, int, str]:
    """By this the findings of one file are sorted."""
    return each.place.line, each.place.column, each.code


_STATUSES = tuple(Status)
_ROW = 13  # numbers of a finding
_FIX = 3  # numbers of a replacement


class Packed(Sequence[Located]):
    """The findings of one file, each made anew when it is asked for.

    A file may have hundreds of thousands. As objects each needs some 500 bytes, three times the
    text that it is about. Here it is a row of numbers, and texts that are equal are kept once.
    """

    __slots__ = ("_fixes", "_numbers", "_rows", "_texts")

    def __init__(self, located: Iterable[Located] = ()) -> None:
        self._rows, self._fixes = array("I"), array("I")
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}  # of the texts
        for each in located:
            self.add(each)

    def add(self, each: Located) -> None:
        """Append a finding."""
        at = each.place
        self._rows.extend((
            *(at.line, at.column, at.end_line, at.end_column),
            *map(self._number, (each.code, each.message, each.path, each.object)),
            _STATUSES.index(each.status),
            *self._kept(each.fix),
            *self._kept(each.suggestion),
        ))  # fmt: skip

    def _number(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return number

    def _kept(self, fix: tuple[Replacement, ...]) -> tuple[int, int]:
        """The place of replacements, and their number."""
        start = len(self._fixes)
        for each in fix:
            self._fixes.extend((each.start, each.end, self._number(each.text)))
        return start, len(fix)

    def __len__(self) -> int:
        return len(self._rows) // _ROW

    @overload
    def __getitem__(self, at: int) -> Located: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Located, ...]: ...
    def __getitem__(self, at: int | slice) -> Located | tuple[Located, ...]:
        """A finding, or several."""
        numbers = range(len(self))[at]
        if isinstance(numbers, range):
            return tuple(map(self._made, numbers))
        return self._made(numbers)

    def __iter__(self) -> Iterator[Located]:
        return map(self._made, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether the other has equal findings in the same order, packed or not."""
        return isinstance(other, Packed | tuple) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # findings can be added

    def __repr__(self) -> str:
        return repr(tuple(self))

    def _made(self, number: int) -> Located:
        row, texts = self._rows[number * _ROW : (number + 1) * _ROW], self._texts
        line, column, end_line, end_column, code, message, path, name, status, *fixes = row
        return Located(
            texts[code],
            texts[message],
            _STATUSES[status],
            Place(line, column, end_line, end_column),
            texts[path],
            texts[name],
            self._fix(*fixes[:2]),
            self._fix(*fixes[2:]),
        )

    def _fix(self, start: int, number: int) -> tuple[Replacement, ...]:
        kept = self._fixes[start : start + number * _FIX]
        ends = zip(kept[::_FIX], kept[1::_FIX], kept[2::_FIX], strict=True)
        return tuple([Replacement(begin, end, self._texts[text]) for begin, end, text in ends])

    def in_order(self) -> Packed:
        """The findings by their places; of those at one place by their codes."""
        keys = map(self._key, range(len(self)))
        if all(one <= other for one, other in pairwise(keys)):  # so it is with many documents
            return self
        return Packed(map(self._made, sorted(range(len(self)), key=self._key)))

    def _key(self, number: int) -> tuple[int, int, str]:
        row = number * _ROW
        return self._rows[row], self._rows[row + 1], self._texts[self._rows[row + 4]]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a file that could not be read as a manifest."""

    reason: str
    place: Place | None = None  # None: the whole file


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file. `new_text` is None if nothing changes; `error` is the reason if it was not read."""

    path: str
    kind: str = "yaml"
    text: str = ""
    new_text: str | None = None
    located: Sequence[Located] = ()
    skipped: tuple[Skipped, ...] = ()
    error: str = ""
    uncompared: bool = False  # text is inserted into a GPU pod later, so no nodes are compared

    @classmethod
    def of(
        cls, source: Source, new_text: str, located: Iterable[Located], skipped: Iterable[Skipped]
    ) -> Self:
        """The result for this file, with the findings sorted by place."""
        path, kind, text = source.path, source.kind, source.text
        changed = new_text if new_text != text else None
        found = located if isinstance(located, Packed) else Packed(located)
        return cls(path, kind, text, changed, found.in_order(), tuple(skipped))

    def changed(self, change: Callable[[Located], Located]) -> FileResult:
        """The same file with other findings."""
        return replace(self, located=Packed(map(change, self.located)))

    def undone(self, why: str) -> FileResult:
        """The same file as it is, and why its changes must not be made."""
        undone = self.changed(
            lambda each: each.undone(why) if each.fix or each.status is Status.FIXABLE else each
        )
        return replace(undone, new_text=None)

    @property
    def remarks(self) -> int:
        """The number of findings and errors, besides changes."""
        return len(self.located) + len(self.skipped) + bool(self.error)


@dataclass(frozen=True, slots=True)
class Report:
    """All files with findings or errors, and the number of files that were checked."""

    results: tuple[FileResult, ...]
    files: int = 0
    repository: str = ""  # the name of its folder; empty if the results are of no files
    time: float = 0  # of the run

    @property
    def located(self) -> Iterator[Located]:
        """All findings."""
        return (located for result in self.results for located in result.located)

    @property
    def skipped(self) -> int:
        """The number of skipped parts."""
        return sum(len(result.skipped) for result in self.results)

    @property
    def errors(self) -> int:
        """The number of files that could not be read."""
        return sum(bool(result.error) for result in self.results)

    def counts(self) -> Counter[Status]:
        """Findings by status."""
        return Counter(located.status for located in self.located)

    def exit_code(self, fail_on: Status = Status.FIXABLE, *, exit_zero: bool = False) -> int:
        """0 clean or all written, 1 an error, 2 fixable findings, 3 manual ones.

        3 wins over 2, and 1 over both. A `fail_on` of manual ignores 2.
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
    """Opt-outs by another object: a namespace, or a kustomization."""

    namespaces: frozenset[str] = frozenset()
    namespace: str = ""  # which the kustomization sets for all objects
    pods: bool = False  # the kustomization gives the label to all Pods
    templates: bool = False  # and to all pod templates


@dataclass(frozen=True, slots=True, eq=False)  # so that what follows from a plan is made once
class Plan:
    """The options of a run. The scope is `all-legacy`, except for what the webhook itself does."""

    settings: Settings = field(default_factory=lambda: Settings(scope="all-legacy"))
    inventory: Inventory | None = None
    codes: Sequence[str] = ()  # of the only rules that run; none: all
    ignored: Sequence[str] = ()  # of rules that do not run
    unsafe: bool = False
    target: tuple[int, int] = (1, 36)  # the Kubernetes version that the manifests are for
    opted_out: OptedOut = OptedOut()
    # The files and folders of this run, and whether subfolders are included.
    named: tuple[str, ...] = ()
    below: bool = False
    excluded: tuple[str, ...] = ()  # patterns of files that are left out
    # By code: the place of a manual finding that may be about pods in this file.
    left: Mapping[str, str] = field(default_factory=dict)
    # By code: why edits are not made in this file.
    held: Mapping[str, str] = field(default_factory=dict)
    # Text is inserted later into the amounts or the node selection of this object.
    is_open: bool = False
    # Numbers that stand for the amounts that a template inserts.
    inserted: frozenset[int] = frozenset()
    # The file is a patch of a kustomization.
    is_patch: bool = False
    # The file has values of a chart, whatever members they have.
    is_values: bool = False
    # Members of these values that no template of the chart reads.
    unused: frozenset[str] = frozenset()
    # Stands for the run: what is known of other files holds for as long.
    run: object = field(default_factory=object, repr=False)

    def asks(self, code: str) -> bool:
        """Whether the rule with this code runs."""
        return (not self.codes or code in self.codes) and code not in self.ignored
