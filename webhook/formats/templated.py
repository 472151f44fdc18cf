"""Helm charts and Jinja templates: migrates the parts that do not depend on template actions.

With its actions hidden, a template is usually YAML, and the rules run on it as on any manifest
(conditional.py). Otherwise the resource name is renamed line by line (line_by_line.py). Findings in
parts that the template hides are reported with their line and advice.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from webhook.core.modes import IGNORE
from webhook.core.rule import Trait
from webhook.core.text_patterns import find
from webhook.files.results import NOT_DONE, FileResult, Located, Plan, Skipped, Status
from webhook.files.source import Source
from webhook.formats import fractions, legacy_pods, line_by_line
from webhook.formats.conditional import migrate_part
from webhook.formats.mentions import Spans, holds_configuration, lines_reported, mentions, nowhere
from webhook.formats.opt_outs import LEFT_ALONE, with_namespaces
from webhook.rules import PATTERNS, codes, legacy_name_elsewhere
from webhook.templates import actions, ytt
from webhook.templates.regions import Region, manifest_texts, parts
from webhook.yamlpatch.splice import apply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.core.text_patterns import Match
    from webhook.templates.actions import Template
    from webhook.yamlpatch.places import Place, Replacement

# Edits that are right by themselves, so they may be made while the rest needs manual changes.
_BY_THEMSELVES = codes(Trait.SEPARATE)

_MADE_LABEL = re.compile(rf"{re.escape(IGNORE)}[\"']?[ \t]*:[ \t]*[\"']?\{{\{{")
_UNREAD = "{}, so the rules did not run on it: check it manually"
_OF_YTT = (
    "it is a template of ytt (#@), which is not filled in: change it, and compare what ytt prints "
    "before and after"
)
_MAY_BE_LEFT = (
    f"the template decides whether the label {IGNORE} says to leave it alone, so nothing is changed"
)


_START = attrgetter("start")


def migrate(source: Source, plan: Plan) -> FileResult:
    """Migrate a template."""
    return stable(source, plan, _migrate)


def _migrate(source: Source, plan: Plan) -> FileResult:
    template = actions.read(source.text)
    plan = with_namespaces(plan, template.blanked)
    if line := legacy_pods.read_by_name(source.text, plan.settings):
        why = legacy_pods.is_read(f"this file (line {line})")
        plan = legacy_pods.with_amounts_held(plan, why)
    if found := fractions.written(source.text, plan.settings, fractions.Known()):
        why = fractions.may_be(f"this file (line {found[0]})", found[1])
        plan = legacy_pods.with_amounts_held(plan, why)
    whole = Region(0, len(source.text))
    regions = [whole] if ytt.has_code(source.text) else parts(template.blanked)
    texts = _texts_with_manifests(template, regions)
    done = Done(source, plan, template, texts=texts)
    for region in regions:
        done.add(region)
    if done.hidden or holds_configuration(source, plan):
        done = Done(source, plan, template, _BY_THEMSELVES, texts)
        for region in regions:
            done.add(region)
    result = done.result()
    return replace(result, error=_UNREAD.format(template.excess)) if template.excess else result


@dataclass(slots=True)
class Done:
    """The results for the parts of a text so far. With `only`, edits of these rules alone."""

    source: Source
    plan: Plan
    template: Template
    only: frozenset[str] = frozenset()
    texts: Sequence[Region] = ()  # with a manifest in them, by their starts
    replacements: list[Replacement] = field(default_factory=list)
    reached: int = 0  # where the last of them ends
    located: list[Located] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    left_alone: list[Place] = field(default_factory=list)  # no findings are reported in them
    right: list[tuple[int, int]] = field(default_factory=list)  # model labels that nodes have
    hidden: bool = False
    uncompared: bool = False
    prose: bool = False  # most of it is not a manifest, and that is no mistake

    def add(
        self, region: Region, template: Template | None = None, only: frozenset[str] = frozenset()
    ) -> None:
        """Add one more part; `template` has other actions than those of the whole text."""
        template = template or self.template
        if ytt.has_code(self.source.text, region.start, region.end):
            self._add_ytt(region)
            return
        outcome = migrate_part(self.source, template, region, self.plan, only or self.only)
        if outcome.why:
            # It is unknown which of its pods has the label.
            renamed = line_by_line.renamed(self.source, template, region, self.plan.settings)
            is_left = IGNORE in self.source.text[region.start : region.end]
            found = [each for each in renamed if not is_left and self.plan.asks(each.code)]
            if why := legacy_pods.in_region(self.source, region, self.plan):
                found = [each.undone(why) if each.fix else each for each in found]
            outcome = replace(outcome, replacements=[fix for f in found for fix in f.fix])
            outcome.located += found
            if found or is_left or not self.prose:
                self._skip(region, outcome.why, is_left=is_left)
        else:
            for place in outcome.left_alone:
                is_made = _MADE_LABEL.search(self.source.excerpt(place)) is not None
                why = _MAY_BE_LEFT if is_made else LEFT_ALONE
                self.skipped.append(Skipped(why, self.source.first_line(place)))
                self.left_alone += [] if is_made else [place]
            settings = self.plan.settings
            outcome.located += line_by_line.not_indented(self.source, template, region, settings)
        self.hidden = self.hidden or outcome.hidden
        self.uncompared = self.uncompared or outcome.uncompared
        self.right += outcome.right
        first = min((each.start for each in outcome.replacements), default=self.reached)
        if first < self.reached and _meet(outcome.replacements, self.replacements):
            return  # for a manifest inside another
        self.reached = max(self.reached, *(each.end for each in outcome.replacements), 0)
        self.replacements += outcome.replacements
        self.located += self._own(outcome.located, region)

    def _add_ytt(self, region: Region) -> None:
        """Nothing is edited, and no rule runs; the legacy names are mentions."""
        text = self.source.text[region.start : region.end]
        is_left = IGNORE in text
        if is_left or next(find(text, PATTERNS, self.plan.settings), None) is not None:
            self._skip(region, _OF_YTT, is_left=is_left)

    def _skip(self, region: Region, why: str, *, is_left: bool) -> None:
        place = self.source.place(region.start, region.end)
        self.skipped.append(Skipped(f"{why}; {LEFT_ALONE}" if is_left else why, place))
        self.left_alone += [place] if is_left else []

    def _own(self, found: list[Located], region: Region) -> list[Located]:
        """Without those on texts with manifests inside the region: these have their own findings.

        A rule of the object around it finds the legacy words of such a text, too.
        """
        first = bisect_right(self.texts, region.start, key=_START)
        texts = self.texts[first : bisect_left(self.texts, region.end, key=_START)]
        inside = Spans((each.start, each.end) for each in texts)
        keys = {self.source.place(each.start, each.end).line for each in texts}
        return [
            each
            for each in found
            if each.place.line not in keys
            and (each.code != legacy_name_elsewhere.CODE or not inside.hold(self._start_of(each)))
        ]

    def _start_of(self, located: Located) -> int:
        return self.source.index(located.place.line, located.place.column)

    def mentions(
        self, *, prose: Callable[[Match], bool] = nowhere, more: Iterable[Match] = ()
    ) -> list[Located]:
        """Legacy names where no rule could run, and `more`."""
        found = mentions(
            self.source,
            self.plan,
            lines_reported(self.source, self.located),
            prose=prose,
            left_alone=self.left_alone,
            right=self.right,
            more=more,
            written=self.replacements,
        )
        return list(found)

    def result(self, more: Iterable[Located] | None = None) -> FileResult:
        """The file with all findings and edits; `more` replaces the mentions."""
        new_text = apply(self.source.text, self.replacements)
        found = (*self.located, *(self.mentions() if more is None else more))
        made = FileResult.of(self.source, new_text, found, self.skipped)
        return replace(made, uncompared=self.uncompared)


def stable(source: Source, plan: Plan, way: Callable[[Source, Plan], FileResult]) -> FileResult:
    """Repeat the migration until the new text does not change any more.

    An edit that is held because of another may be possible after that one. If the text never
    settles, nothing is done.
    """
    first = last = way(source, plan)
    new_text = first.new_text
    done: set[str] = set()  # codes of the edits of later runs
    for _ in range(_MOST_RUNS):
        if last.new_text is None:
            return _joined(first, last, new_text, done) if last is not first else first
        new_text = last.new_text
        last = way(Source.of_text(source.path, new_text, source.kind), plan)
        done |= {each.code for each in last.located if each.fix}
    return first.undone("a second run would change it again")


_MOST_RUNS = 5


def _joined(
    first: FileResult, last: FileResult, new_text: str | None, done: set[str]
) -> FileResult:
    """The first result with the edits of later runs, without findings that are fixed.

    A finding that is missing although no run fixed it was not fixed: GPU201, for example, adds a
    toleration only next to a legacy name, and the name may have been changed while the toleration
    was held.
    """
    left = {(each.code, each.message.split(NOT_DONE)[0]) for each in last.located}
    located = []
    for each in first.located:
        said, held, _ = each.message.partition(NOT_DONE)
        is_done = held and each.code in done and (each.code, said) not in left
        located.append(replace(each, status=Status.FIXABLE, message=said) if is_done else each)
    return replace(first, new_text=new_text, located=tuple(located))


def _texts_with_manifests(template: Template, regions: Sequence[Region]) -> list[Region]:
    starts = sorted(each.start for each in regions)
    return [
        each
        for each in sorted(manifest_texts(template.blanked), key=_START)
        if bisect_right(starts, each.start) < bisect_left(starts, each.end)
    ]


def _meet(some: Iterable[Replacement], others: Iterable[Replacement]) -> bool:
    return any(a.start < b.end and b.start < a.end for a in some for b in others)
