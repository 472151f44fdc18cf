"""Amounts that wait because others do: the results of a run in, the reasons of those that wait out.

Helm finds amounts by their names, in the values of a chart and in what is given to it from outside.
Where one of these keeps the legacy name, whatever the reason, a pod would get both names. So they
wait together: charts, files with parts that may be values (maps without a kind, whatever the name
of the file), and texts about Helm, which no run edits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.core.text_patterns import RESOURCE_TEXT, find
from webhook.files.candidates import Wanted, candidates
from webhook.files.folder import repository
from webhook.files.reading import text_of
from webhook.files.results import NOT_DONE, Status
from webhook.files.source import STREAM, Source
from webhook.files.walk import STDIN
from webhook.formats import legacy_pods
from webhook.formats.file_objects import AMOUNTS
from webhook.formats.mentions import Comments
from webhook.projects import (
    chart,
    chart_files,
    chart_graph,
    helm_texts,
    merged_values,
    named_files,
    read_parts,
)
from webhook.rules import legacy_name_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.files.results import FileResult, Plan

_TEMPLATES = "templates"
_CODES = {legacy_name_elsewhere.CODE, *AMOUNTS}
_LINE = "\n"


@dataclass(eq=False, slots=True)
class _Node:
    """A group of charts, or a file outside: what it renames, and why it keeps the legacy name."""

    name: str
    root: str
    charts: frozenset[str] = frozenset()  # the names of the charts of a group
    gives: frozenset[str] | None = frozenset()  # to charts of these names; None: to any
    paths: list[str] = field(default_factory=list)  # of results that rename amounts
    has_values: bool = False  # some of these are values, or may be
    keeps: str = ""  # where the legacy name stays
    why: str = ""  # and the reason

    def meets(self, other: _Node) -> bool:
        """Whether the one may give values to the other."""
        if self.root != other.root or self is other:
            return False
        return any(
            bool(to.charts) and (by.gives is None or not by.gives.isdisjoint(to.charts))
            for by, to in ((self, other), (other, self))
        )


def waiting(results: Iterable[FileResult], plan: Plan) -> dict[str, str]:
    """Why the amounts in files wait, by the paths of their results."""
    known = {os.path.realpath(each.path): each for each in results if each.path != STREAM}
    if not any(map(legacy_pods.does_amounts, known.values())):
        return {}
    reasons = read_parts.waiting(known, plan)
    nodes = [*_Nodes(known, plan, reasons).found()]
    waits = [each for each in nodes if each.keeps]
    rest = [
        each for each in nodes if each.has_values and (each.charts == frozenset() or not each.keeps)
    ]
    for by in waits:  # the list grows
        met: list[_Node] = []
        apart: list[_Node] = []
        for each in rest:
            (met if each.meets(by) else apart).append(each)
        rest = apart
        for each in met:
            why = _why(each, by)
            reasons |= dict.fromkeys(each.paths, why)
            if not each.keeps:
                each.keeps, each.why = each.name, why
                waits.append(each)
    return reasons


def _why(held: _Node, by: _Node) -> str:
    if not by.charts:
        return (
            f"the legacy name stays in {by.keeps}, which may give values to this chart: change "
            "them together"
        )
    its = (
        "may get these values" if not held.charts else "may give values to this chart, or get them"
    )
    return f"the chart {by.name} {its}, and its amounts wait: {by.why}"


class _Nodes:
    """The charts and the other files with the legacy name, around the files of a run."""

    def __init__(
        self, known: Mapping[str, FileResult], plan: Plan, reasons: Mapping[str, str]
    ) -> None:
        self._known, self._plan, self._reasons = known, plan, reasons
        self._is_in_run = chart.is_in_run(plan)
        self._groups: dict[str, _Group] = {}
        self._connected: dict[Path, frozenset[str]] = {}  # the folders of its group, by chart

    def found(self) -> Iterator[_Node]:
        outside: list[tuple[str, str]] = []
        for file, name in self._files():
            if not (file.endswith(merged_values.SCHEMA) or self._is_of_chart(file, name)):
                outside.append((file, name))
        if not self._groups:
            return
        is_alone = len(self._groups) == 1
        for each in self._groups.values():
            yield each.node(is_alone=is_alone)
        for file, name in outside:
            node = self._outside(file, name)
            if node.keeps or node.has_values:
                yield node

    def _files(self) -> Iterator[tuple[str, str]]:
        """The files that may have the legacy name: places, and names for messages."""
        settings, plan = self._plan.settings, self._plan
        words = [each.rpartition("/")[2].encode() for each in settings.legacy_resources]
        roots = {root for each in self._known if (root := self._root(each))}
        named = [each for each in plan.named if each != STDIN]
        beside = [each for each in named if repository(each) not in roots]
        seen = dict.fromkeys(os.path.realpath(each) for each in self._known)
        for wanted in (
            Wanted(sorted(roots), recursive=True),
            Wanted(beside, recursive=plan.below),
        ):
            every = candidates(wanted, words, processes=1) if wanted.arguments else ()
            seen |= {os.path.realpath(each): None for each in every if isinstance(each, str)}
        for file in seen:
            result = self._known.get(file)
            yield file, result.path if result else os.path.relpath(file)

    def _root(self, file: str) -> str:
        return named_files.root_of(file, self._plan)

    def _is_of_chart(self, file: str, name: str) -> bool:
        """Whether a chart may use the file; then it is noted with its chart."""
        its = chart_graph.chart_of(file)
        if its is None:
            return False
        inside = os.path.relpath(file, its)
        is_part = _TEMPLATES in Path(inside).parts
        text = self._text(file)
        is_values = not is_part and merged_values.are_values(Path(inside).as_posix(), text)
        if not (is_part or is_values):
            return False
        if its not in self._connected:
            self._connected[its] = chart.connected(file, self._plan)
        folders = self._connected[its]
        group = self._groups.setdefault(
            min(folders), _Group(self._root(file), folders, self._plan.run)
        )
        result = self._known.get(file)
        if result is not None and legacy_pods.does_amounts(result):
            group.renames(result.path, is_values=is_values)
        if place := self._kept(file, name, result, text):
            group.keeps(*place, is_values=is_values)
        return True

    def _text(self, file: str) -> str:
        result = self._known.get(file)
        return result.text if result and result.text else text_of(file)

    def _kept(
        self, file: str, name: str, result: FileResult | None, text: str
    ) -> tuple[str, str] | None:
        """Where a legacy name stays in a file of a chart, and why."""
        if result is not None:
            left = (e for e in result.located if e.code in _CODES and e.status is Status.MANUAL)
            first = next(left, None)
            if first is None:
                return None
            _, said, why = first.message.partition(NOT_DONE)
            where = f"{name} (line {first.place.line})"
            return where, why.removesuffix(")") if said else f"the legacy name stays in {where}"
        comments = Comments(text)
        found = find(text, (RESOURCE_TEXT,), self._plan.settings)
        at = next((each.start for each in found if not comments.hold(each.start)), None)
        if at is None or self._is_in_run(file):
            return None
        where = f"{name} (line {text.count(_LINE, 0, at) + 1})"
        return where, f"the legacy name stays in {where}{merged_values.ABSENT}"

    def _outside(self, file: str, name: str) -> _Node:
        result = self._known.get(file)
        text = result.text if result else text_of(file)
        new_text = result.new_text if result and result.new_text is not None else text
        node = _Node(name, self._root(file))
        source = Source.of_text(name, new_text)
        is_included = partial(named_files.is_included, file, self._plan)
        is_key = partial(named_files.is_key, file=file, plan=self._plan)
        kept = [*helm_texts.places(source, self._plan.settings, is_included, is_key)]
        its = chart_graph.chart_of(file)
        names = [each.charts for each in kept]
        if kept:
            node.keeps = f"{name} (line {kept[0].line})"
        if result is not None:
            its_source = Source.of_text(name, text)
            parts = filter(read_parts.is_part, result.located)
            starts = [its_source.index(each.place.line) for each in parts]
            if starts:
                node.has_values, node.paths = True, [result.path]
                names.append(helm_texts.charts_at(its_source, starts))
            if result.path in self._reasons and not kept:
                node.keeps = f"{name} (line {its_source.place(starts[0], starts[0]).line})"
        if None in names:
            names = [each for each in names if each is not None]
            names.append(named_files.users(file, self._plan))
        node.gives = None if None in names else frozenset().union(*filter(None, names))
        if its is not None:
            node.gives = frozenset(chart_graph.names_of(its))
        return node


@dataclass(slots=True)
class _Group:
    """Charts that need one another, and what is known of their amounts."""

    root: str
    folders: frozenset[str]
    run: object
    paths: list[str] = field(default_factory=list)
    has_values: bool = False
    in_values: tuple[str, str] | None = None
    in_templates: tuple[str, str] | None = None

    def renames(self, path: str, *, is_values: bool) -> None:
        """Note a result that renames amounts."""
        self.paths.append(path)
        self.has_values |= is_values

    def keeps(self, where: str, why: str, *, is_values: bool) -> None:
        """Note a place of a legacy name that stays."""
        if is_values:
            self.in_values = self.in_values or (where, why)
        else:
            self.in_templates = self.in_templates or (where, why)

    def node(self, *, is_alone: bool) -> _Node:
        """Templates may keep amounts of their own: then those in values do not wait."""
        kept = self.in_values or (None if self.has_values else self.in_templates)
        where, why = kept or ("", "")
        names = {name for each in self.folders for name in chart_graph.names_of(Path(each))}
        gives = frozenset[str]() if is_alone else self._gives(names)
        name = os.path.relpath(min(self.folders))
        return _Node(
            name, self.root, frozenset(names), gives, self.paths, self.has_values, where, why
        )

    def _gives(self, names: set[str]) -> frozenset[str] | None:
        """The names of the charts that get values of these; None: of any."""
        every = [chart_files.gives(Path(folder), self.run) for folder in sorted(self.folders)]
        return None if None in every else frozenset().union(*filter(None, every)) - names
