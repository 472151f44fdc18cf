"""Manual findings in one file of a Helm chart that concern pods in another file.

Values are inserted into templates, and templates include one another.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, Self, TypeVar

from webhook.core.errors import InputError
from webhook.core.modes import IGNORE
from webhook.files.reading import UnreadableError, read_regular, text_of
from webhook.files.source import CHART, Source
from webhook.files.walk import Wanted, which_is_met
from webhook.formats import fractions, legacy_pods
from webhook.formats.mentions import Comments
from webhook.formats.migrate import migrate_text
from webhook.projects import (
    combined_amounts,
    given_fractions,
    given_values,
    merged_values,
    named_files,
    values_schema,
)
from webhook.projects.chart_files import DEPENDENCIES, files, is_test, notes
from webhook.projects.chart_graph import around, chart_of, closed, names_of, own_name, used, users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.files.results import FileResult, Plan
    from webhook.projects.merged_values import Values

T = TypeVar("T")

_OWN = "values.yaml"
_DEEPEST = 3  # charts in each other
_ALIAS = re.compile(r"\balias:[ \t]*[\"']?(?P<name>[-\w.]+)")
_ELSEWHERE = re.compile(r"\brepository[\"']?:[ \t]*[\"']?(?!file://)[^\s\"']")
_OPT_OUT = re.compile(rf"{re.escape(IGNORE)}[\"']?[ \t]*:[ \t]*[\"']?(?:true\b|\{{\{{)")


def migrated(path: str, source: Source, plan: Plan) -> FileResult:
    """The result for a file; its amounts wait for manual findings in the rest of its chart."""
    chart = chart_of(path)
    if chart is None:
        return _of_no_chart(path, source, plan)
    plan = _planned(os.path.relpath(path, chart), source.text, plan, chart)
    result = migrate_text(source, plan)
    if left := _left_beside(path, chart, plan) if legacy_pods.does_amounts(result) else {}:
        plan = replace(plan, left=left)
        result = migrate_text(source, plan)
    if not legacy_pods.does_amounts(result):
        return result
    release = Question.of(chart, plan)
    why = _why_wait(release) or _why_left_alone(path, source, plan, release)
    if not why and is_test(path):
        _, stays = merged_values.after(path, Path(path).name, source.text, plan, plan.settings)
        why = stays and f"the legacy name stays in {stays}: change the test as a whole"
    return migrate_text(source, legacy_pods.with_amounts_held(plan, why)) if why else result


def _of_no_chart(path: str, source: Source, plan: Plan) -> FileResult:
    """The result for a file that may give values to charts: its amounts wait where theirs do."""
    result = migrate_text(source, plan)
    own = os.path.realpath(path)
    if not legacy_pods.does_amounts(result) or not _given(Question.of(own, plan)):
        return result
    for mark in named_files.with_words(str(Path(own).parent), plan, ("version",)):
        chart, name = Path(mark).parent, Path(mark).name
        release = Question.of(chart, plan)
        if name == CHART and any(_of_file(own, release)) and (why := _why_wait(release)):
            name = os.path.relpath(chart, Path(path).parent)
            why = f"the amounts of the chart {name}, which may get these values, wait: {why}"
            return migrate_text(source, legacy_pods.with_amounts_held(plan, why))
    return result


def connected(path: str, plan: Plan) -> frozenset[str]:
    """The folders of the charts that need one another, around a file; none if it is in no chart."""
    chart = chart_of(os.path.realpath(path))
    charts = [] if chart is None else closed([chart], around, plan.run)
    return frozenset(map(str, charts))


def _planned(name: str, text: str, plan: Plan, chart: Path | None = None) -> Plan:
    """The plan for a file of this chart; `name` is relative to a chart."""
    plan = replace(plan, is_values=merged_values.are_values(Path(name).as_posix(), text))
    if chart is None or not plan.is_values or not (names := legacy_pods.members(text, plan)):
        return plan
    readers = _readers(Question.of(chart, plan))
    unused = (each for each in names if not given_values.are_read({each: None}, readers))
    return replace(plan, unused=frozenset(unused))


@lru_cache(maxsize=64)
def _readers(release: Question[Path]) -> list[str]:
    """The texts of a release that may read a value: templates, and values that are templates."""
    charts = _release(release)
    texts = [text_of(str(chart / name)) for chart in charts for name in DEPENDENCIES]
    if any(map(_ELSEWHERE.search, texts)) or any(any(e.glob("charts/*.tgz")) for e in charts):
        texts.append(" .Values ")  # templates that are not here may read any
    for file, is_part in (each for chart in charts for each in files(chart)):
        text = text_of(file)
        texts += [text] if is_part or "{{" in text else []
    return texts


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A question about files, whose answer is worked out once in a run."""

    about: T
    options: tuple[object, ...]
    plan: Plan = field(compare=False)

    @classmethod
    def of(cls, about: T, plan: Plan) -> Self:
        """The question `about` something in the run that the plan is for."""
        options = (plan.run, tuple(plan.codes), tuple(plan.ignored), plan.named, plan.below)
        return cls(about, (*options, plan.excluded), plan)


@lru_cache(maxsize=4096)
def _release(release: Question[Path]) -> tuple[Path, ...]:
    """All charts that may be installed together with this one."""
    run = release.plan.run
    return tuple(closed(closed([release.about], users, run), used, run))


def _files_of_release(release: Question[Path]) -> Iterator[tuple[Path, str]]:
    """The files of all charts that may be installed together, each with its chart."""
    return ((each, file) for each in _release(release) for file, _ in files(each))


class _Outside(NamedTuple):
    """Values that a file may give to charts of a release from outside, and to which of them."""

    values: Values
    charts: frozenset[Path]


@lru_cache(maxsize=64)
def _outside(release: Question[Path]) -> list[_Outside]:
    every = given_values.files(str(release.about), release.plan)
    return [each for file in every for each in _of_file(file, release)]


@lru_cache(maxsize=64)
def _texts(release: Question[Path]) -> tuple[list[Path], list[str]]:
    """The charts of a release, and the texts that may read values."""
    own = [*_files_of_release(release)]
    charts = [*dict.fromkeys(chart for chart, _ in own)]
    places = (str(chart / name) for chart in charts for name in DEPENDENCIES)
    return charts, [text_of(file) for file in (*(file for _, file in own), *places)]


def _of_file(file: str, release: Question[Path]) -> Iterator[_Outside]:
    """What one file may give to charts of a release."""
    charts, texts = _texts(release)
    for values, named in _given(Question.of(file, release.plan)):
        names = named or named_files.users(file, release.plan) or frozenset()
        for_whom = {e for e in charts if not names or names & names_of(e)}
        if for_whom and (names or given_values.are_read(values.before, texts)):
            name = os.path.relpath(file, release.about)
            stays = values.stays and f"{name}{values.stays}"
            yield _Outside(replace(values, name=name, stays=stays), frozenset(for_whom))


@lru_cache(maxsize=100_000)
def _given(question: Question[str]) -> list[tuple[Values, frozenset[str]]]:
    """What a file gives to charts; the values of a chart itself are no such file."""
    file = question.about
    plan = replace(question.plan, held={}, left={}, is_values=False)
    text, chart = text_of(file), chart_of(file)
    if chart and _planned(os.path.relpath(file, chart), text, plan).is_values:
        return []
    return given_values.look(file, text, plan if is_in_run(plan)(file) else None, plan.settings)


@lru_cache(maxsize=4096)
def _why_wait(release: Question[Path]) -> str:
    """Why no amount of these charts is renamed, nor in the files that give them values."""
    return _why_imported(release) or _why_held(release)


def _why_imported(release: Question[Path]) -> str:
    """Why amounts wait where a chart takes values of a chart inside into its own."""
    named = (str(each / name) for each in _release(release) for name in DEPENDENCIES)
    found = next((each for each in named if "import-values" in text_of(each)), "")
    where = found and os.path.relpath(found, release.about)
    return where and f"{where} has import-values: which templates read the amounts is not known"


def is_in_run(plan: Plan) -> Callable[[str], bool]:
    """A test whether a file, or what a link leads to, is among the files of the run."""
    is_met = which_is_met(Wanted(plan.named, plan.below, plan.excluded))
    return lambda file: not plan.named or is_met(os.path.realpath(file))


@lru_cache(maxsize=4096)
def _why_held(release: Question[Path]) -> str:
    """Why no amount is renamed in these charts: templates and values find them by their names."""
    values: dict[Path, dict[str, Values]] = {}
    texts: list[tuple[str, str]] = []
    templates: list[tuple[str, str, str, Plan | None]] = []
    plan = replace(release.plan, held={}, left={})
    is_given = is_in_run(plan)
    main = release.about
    for chart, file in _files_of_release(release):
        text, name = text_of(file), os.path.relpath(file, main)
        if line := legacy_pods.read_by_name(text, plan.settings):
            return legacy_pods.is_read(f"{name} (line {line})")
        texts.append((name, text))
        inside = os.path.relpath(file, chart)
        planned = _planned(inside, text, plan, chart)
        its = planned if is_given(file) else None
        if planned.is_values:
            seen = merged_values.look(file, name, text, its, plan.settings)
            values.setdefault(chart, {})[inside] = seen
        else:
            templates.append((file, name, text, its))
    texts += ((os.path.relpath(file, main), said) for file, said in map(notes, _release(release)))
    outside = _outside(release)
    every = [each for its_own in values.values() for each in its_own.values()]
    every += [each.values for each in outside]
    if why := next((each.stays for each in every if each.stays), ""):
        return f"the legacy name stays in {why}, and Helm merges values by their names"
    known = fractions.Known.of([(each.name, each.before) for each in every], dict(texts).values())
    if why := _why_fraction(release, texts, known):
        return why
    after = (merged_values.after(*each, plan.settings) for each in templates)
    stays = (where for _, where in after if where)
    before = [each.before for each in every]
    if why := combined_amounts.why_unequal(texts, before, stays, plan.settings):
        return why
    for chart, its_own in values.items():
        others = [each for name, each in its_own.items() if name != _OWN]
        given = [each.values for each in outside if chart in each.charts]
        if why := merged_values.why_unequal(_base(chart, values, plan), others, given, plan):
            return why
    return _why_refused(main, values, outside, plan)


def _why_fraction(
    release: Question[Path], texts: list[tuple[str, str]], known: fractions.Known
) -> str:
    """Why a template may write a fraction: of values that are known, or of a text outside."""
    plan, path, learned = release.plan, str(release.about), set[str]()
    charts = named_files.names_for(_release(release), path, plan)
    own = {os.path.realpath(file) for _, file in _files_of_release(release)}
    while True:
        for name, text in texts:
            if made := fractions.written(text, plan.settings, known):
                return fractions.may_be(f"{name} (line {made[0]})", made[1])
        names = known.names()
        more = [*given_fractions.values(names, path, plan, charts, own)]
        if not learned.issuperset(where for where, _ in more):
            for where, data in more:
                known.learn(where, data)
                learned.add(where)
            continue
        value, said = next(given_fractions.found(names, path, plan, charts, own), ("", ""))
        if not value or value in known.members:
            return ""
        known.members[value] = said


def _why_refused(
    main: Path, values: dict[Path, dict[str, Values]], outside: list[_Outside], plan: Plan
) -> str:
    """Why the schema of one of the charts may refuse amounts in values."""
    of_charts = {chart: [*its.values()] for chart, its in values.items()}
    for each in outside:
        for chart in each.charts:
            of_charts.setdefault(chart, []).append(each.values)
    for chart in closed([*of_charts], around, plan.run):
        file = str(chart / f"values{merged_values.SCHEMA}")
        if schema := text_of(file):
            own = [*of_charts.get(chart, ()), *_of_inner(chart, of_charts, plan)]
            outer = (one for user in users(chart, plan.run) for one in of_charts.get(user, ()))
            name = os.path.relpath(file, main)
            if why := values_schema.why_refused(schema, name, own, outer, plan.settings):
                return why
    return ""


def _of_inner(
    chart: Path, of_charts: dict[Path, list[Values]], plan: Plan, deep: int = 0
) -> Iterator[Values]:
    """The values of the charts that a chart uses, where Helm puts them into its own."""
    for inner in used(chart, plan.run) if deep < _DEEPEST else ():
        of_it = [*of_charts.get(inner, ()), *_of_inner(inner, of_charts, plan, deep + 1)]
        for key in sorted(_names(chart, inner)):
            yield from (each.below(key) for each in of_it)


def _why_left_alone(path: str, source: Source, plan: Plan, release: Question[Path]) -> str:
    """Why amounts in values, or in a named template, wait: a pod that opted out may get them.

    Values say themselves to whom they belong.
    """
    if not plan.is_values and "define" not in source.text:
        return ""
    own = os.path.realpath(path)
    for file, where in _opt_outs(release):
        if not plan.is_values or os.path.realpath(file) != own:
            return (
                f"{where} leaves a pod alone, which may get these amounts, too: rename them "
                "manually if it does not"
            )
    return ""


@lru_cache(maxsize=64)
def _opt_outs(release: Question[Path]) -> list[tuple[str, str]]:
    """The files with opt-out labels, and where these are."""
    main, found = release.about, []
    for _, file in _files_of_release(release):
        text = text_of(file)
        for each in _OPT_OUT.finditer(text):
            if not Comments(text).hold(each.start()):
                line = text.count("\n", 0, each.start()) + 1
                found.append((file, f"{IGNORE} in {os.path.relpath(file, main)} (line {line})"))
    return found


def _base(chart: Path, values: dict[Path, dict[str, Values]], plan: Plan, deep: int = 0) -> Values:
    """The values of a chart, over those of the charts that it uses."""
    base = merged_values.EMPTY
    for inner in used(chart, plan.run) if deep < _DEEPEST else ():
        given = _base(inner, values, plan, deep + 1)
        for key in sorted(_names(chart, inner)):
            base = given.below(key).over(base)
    return values.get(chart, {}).get(_OWN, merged_values.EMPTY).over(base)


def _names(chart: Path, inner: Path) -> set[str]:
    """The members under which a chart has values for one that it uses."""
    said = "".join(text_of(str(chart / each)) for each in DEPENDENCIES)
    aliases = (each["name"] for each in _ALIAS.finditer(said))
    return {own_name(inner), *aliases}


def _left_beside(path: str, chart: Path, plan: Plan) -> dict[str, str]:
    """What is not done in the other files that may produce a part of a pod in this file."""
    is_template = "templates" in Path(os.path.relpath(path, chart)).parts
    met, own = _meeting(Question.of((chart, is_template), plan)), os.path.realpath(path)
    left: dict[str, str] = {}
    for file, place, name in [*met]:
        if place != own:
            its = _left(Question.of((file, name), plan))
            left = {**its, **left}
            if not its:
                del met[file, place, name]
    return left


@lru_cache(maxsize=64)
def _meeting(question: Question[tuple[Path, bool]]) -> dict[tuple[str, str, str], None]:
    """The files that may produce a part of a pod in a file of a chart: path, place and name.

    Templates may include those of all charts of a release. Values go from a chart to its subcharts,
    and so do the amounts in a file of values. Where nothing is left, a file is not asked again.
    """
    (chart, is_template), run = question.about, question.plan.run
    above = closed([chart], users, run)
    with_values = above if is_template else [*above, *closed([chart], used, run)]
    return {
        (file, os.path.realpath(file), os.path.relpath(file, chart)): None
        for each in closed(above, used, run)
        for file, is_part in files(each)
        if is_part or each in with_values
    }


@lru_cache(maxsize=4096)
def _left(question: Question[tuple[str, str]]) -> dict[str, str]:
    """What is not done in one file of a chart, given by its path and its name there."""
    path, name = question.about
    with suppress(UnreadableError, InputError):
        source = Source.of(path, read_regular(path)[0], lossy=True)
        plan = _planned(name, source.text, question.plan, chart_of(path))
        if any(True for _ in legacy_pods.words(source.text, plan)):
            result, absent = migrate_text(source, plan), ""
            if not is_in_run(plan)(path):
                absent = f"{merged_values.ABSENT},"
            if absent or source.is_lossy:
                result = result.undone("the file stays as it is")
            left = legacy_pods.left(result, plan, name)
            return {code: f"{where}{absent}" for code, where in left.items()}
    return {}
