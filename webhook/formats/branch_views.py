"""The possible texts of a part of a template (views): one for each combination of branches.

Irrelevant conditions are fixed in all views: the branch that leaves the most text readable is used.
With their other branches the text must only stay YAML.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from webhook.core.modes import IGNORE
from webhook.evaluation.workloads import objects
from webhook.templates import cases
from webhook.templates.blocks import Kind
from webhook.templates.cases import Case, Rest
from webhook.templates.known_labels import KnownLabels
from webhook.templates.open_places import OpenPlaces
from webhook.yamlpatch import documents, style

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.kube.pointer import Path
    from webhook.templates.actions import Template
    from webhook.templates.blocks import Action
    from webhook.templates.placeholders import Masks
    from webhook.templates.regions import Region
    from webhook.yamlpatch.documents import Document, Stream
    from webhook.yamlpatch.places import Replacement

_LEGACY = re.compile(r"alpha\.kubernetes\.io|pod\.beta\.kubernetes\.io")
_ALIAS = re.compile(r"[-:,\[{]\s+\*[\w.-]")  # its text stands in another place
_OF_RULES = re.compile(rf"{_LEGACY.pattern}|nvidia|privileged")


@dataclass(eq=False, slots=True)
class BranchView:
    """The text of the part for one combination of branches."""

    case: Case
    shown: str
    documents: tuple[Document, ...]

    @property
    def duplicates(self) -> int:
        """Names that occur twice in a map: in an impossible combination, or by mistake."""
        return sum(len(each.duplicates) for each in self.documents)


class BranchViews:
    """The views of one part."""

    def __init__(self, template: Template, region: Region, masks: Masks) -> None:
        self.template = template
        self.region = region
        self.masks = masks
        self.doubled: list[BranchView] = []  # for these only findings are reported
        self.why = "holds nothing"  # or why a view could not be read
        self._streams: dict[str, Stream] = {}
        self._before = template.blank_until(region.start)
        # libyaml need not read the blanks; the line end keeps what follows from being a first line.
        self._begin = max(style.line_start(template.text, region.start) - 1, 0)
        self._part = cases.Part(template, masks, region.start, region.end)
        self._known = cases.views(template, region.start, region.end, _matters)
        self.views = self._found()

    @cached_property
    def others(self) -> list[BranchView]:
        """Further views, which must only stay YAML: all conditions that matter are alike."""
        shown = [each.case for each in self.views]
        every = (each for rest in Rest for each in self._views(rest, all_alike=True))
        return [each for each in every if each.case not in shown]

    def open_objects(self, view: BranchView, document: Document) -> Callable[[Path], bool]:
        """Whether actions choose, repeat or write text of the object at a place of the document.

        Text between two objects belongs to the one before it.
        """
        first, last = self.region.start, self.region.end
        if not self._writes(first, last):
            return lambda _: False
        starts = sorted(
            each.place(at)[0] for each in view.documents for at, _ in objects(each.data)
        )
        if len(starts) < 2 or _ALIAS.search(view.shown, first, last):  # noqa: PLR2004
            return lambda _: True
        ends = [*starts[1:], last]
        starts[0] = first

        def is_open(at: Path) -> bool:
            number = max(bisect_right(starts, document.place(at)[0]) - 1, 0)
            return self._writes(starts[number], ends[number])

        return is_open

    def _writes(self, start: int, end: int) -> bool:
        """Whether actions choose or repeat some of this text, or write some outside of comments."""
        return any(
            each.kind not in {Kind.COMMENT, Kind.SILENT} and not self._is_comment(each)
            for each in self.template.actions_in(start, end)
        )

    def _is_comment(self, action: Action) -> bool:
        """Whether it only writes into a comment of YAML."""
        text = self.template.text
        line = text[style.line_start(text, action.start) : action.start]
        return action.kind is Kind.WRITES and line.lstrip().startswith("#")

    def shows(self, view: BranchView, start: int, end: int) -> bool:
        """Whether all of this span is active in the view."""
        return cases.is_active(self.template, view.case, start, end)

    def _views(self, rest: Rest, *, all_alike: bool = False) -> Iterator[BranchView]:
        """The cases that can be read; of several with the same text only the first."""
        texts: set[str] = set()
        for known in self._known:
            case = Case(known, rest)
            part = self._part.text(case)
            if part in texts:
                continue
            texts.add(part)
            if all_alike and len({*known.values()}) > 1:
                continue
            shown = self._before + part
            stream = self.read(shown)
            if stream.unread:
                self.why = stream.unread[0].reason
            elif stream.documents:
                yield BranchView(case, shown, stream.documents)

    def bare(self, case: Case) -> tuple[Document, ...]:
        """The same case without the irrelevant conditions: additions are possible there."""
        if case.rest is Rest.NONE:
            return ()
        return self.read(self._before + self._part.text(Case(case.known, Rest.NONE))).documents

    def read(self, text: str) -> Stream:
        """The documents of a text, read once: many cases have the same text."""
        key = text[self._begin :]
        if key not in self._streams:
            self._streams[key] = documents.read(text, start=self._begin)
        return self._streams[key]

    def show(self, start: int, end: int) -> bool:
        """Whether all of this span is active in any view."""
        return any(self.shows(each, start, end) for each in self.views)

    def is_active(self, view: BranchView, replacement: Replacement) -> bool:
        """Whether the replaced text, and the text around it, is active in the view."""
        wide = replacement.start == replacement.end
        return self.shows(view, replacement.start - wide, replacement.end + wide)

    def open(self, document: Document) -> OpenPlaces:
        """The places where the template may add to this document."""
        return document.once(self._open)

    def _open(self, document: Document) -> OpenPlaces:
        return OpenPlaces(document, self.template, self.masks, self.region)

    def labels(self, document: Document, open_: OpenPlaces) -> KnownLabels:
        """The known selectors and labels of the document."""
        return KnownLabels(document, self.template, self.masks, open_)

    def _found(self) -> list[BranchView]:
        """The views that can be read."""
        best: list[BranchView] = []
        for rest in Rest:
            if _readable(best) < (True, len(self._known)):
                views = list(self._views(rest))
                clean = self._telling(views)
                if _readable(clean) > _readable(best):
                    best, self.doubled = clean, self._doubled(views, clean)
        return best

    def _telling(self, views: list[BranchView]) -> list[BranchView]:
        """The views without duplicates, and those with text that no other view shows."""
        telling = [each for each in views if not each.duplicates]
        text, region = self.template.text, self.region
        for found in _LEGACY.finditer(text, region.start, region.end):
            shows = [v for v in views if self.shows(v, *found.span())]
            if not any(each in telling for each in shows):
                telling += shows
        return telling or views

    def _doubled(self, views: list[BranchView], clean: list[BranchView]) -> list[BranchView]:
        """The only views that show a word although a name occurs twice in them."""
        found: list[BranchView] = []
        for word in _OF_RULES.finditer(self.template.text, self.region.start, self.region.end):
            shows = [each for each in views if self.shows(each, *word.span())]
            if not any(each in clean or each in found for each in shows):
                found += shows[:1]
        return found


def _readable(views: list[BranchView]) -> tuple[bool, int]:
    return bool(views) and not any(each.duplicates for each in views), len(views)


def _matters(text: str) -> bool:
    return _LEGACY.search(text) is not None or "nvidia" in text or IGNORE in text
