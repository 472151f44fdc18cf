"""Which texts of a repository have a word, and for which charts a file is: a file in, names out.

A file that is named only by commands and objects that are for other charts is not for a chart.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webhook.files.candidates import Wanted, candidates
from webhook.files.folder import repository
from webhook.files.reading import text_of
from webhook.files.source import Source
from webhook.files.walk import STDIN
from webhook.projects import chart_files, chart_graph, merged_values
from webhook.projects.chart_files import DEPENDENCIES
from webhook.projects.helm_texts import TERRAFORM, Parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.files.results import Plan

_RELEASE = "helm_release"  # all Terraform of a repository is one program
_VALUES = re.compile(r"(?:(?<![\w-])-f|--values)(?:[\s=\"',]|\\\n)*([\w./-]+)")
_KEY = "valuesKey"  # of a ConfigMap, in an object of Flux
_NAMED = re.compile(rf"\b{_KEY}[\"']?[ \t]*:[ \t]*[\"']?([\w.-]+)")


class _Around(NamedTuple):
    """The files of a repository and of a run."""

    run: object
    root: str
    named: tuple[str, ...]
    below: bool


def with_words(path: str, plan: Plan, words: tuple[str, ...]) -> tuple[str, ...]:
    """The files with one of these words in the repository around a path, and in the run."""
    return _searched(_around(path, plan), words)


def root_of(file: str, plan: Plan) -> str:
    """The root of the repository around a file; empty without one."""
    return _root(plan.run, os.path.dirname(file))  # noqa: PTH120  # of many files


@lru_cache(maxsize=100_000)
def _root(_run: object, folder: str) -> str:
    """It is looked for once in a run for all files of a folder."""
    return repository(folder)


def _around(path: str, plan: Plan) -> _Around:
    return _Around(plan.run, _root(plan.run, path) if plan.named else "", plan.named, plan.below)


@lru_cache(maxsize=4096)
def _searched(around: _Around, words: tuple[str, ...]) -> tuple[str, ...]:
    found = dict.fromkeys(_found(around, words))
    ignored = (each for each in _ignored(around) if any(word in text_of(each) for word in words))
    return tuple(each for each in (found | dict.fromkeys(ignored)) if not chart_files.is_test(each))


@lru_cache(maxsize=64)
def _ignored(around: _Around) -> tuple[str, ...]:
    """The files that commands name as values, also where a search leaves them out."""
    files = (
        os.path.join(folder, name)  # noqa: PTH118
        for each in _found(around, ("helm",))
        for name in _VALUES.findall(text_of(each))
        for folder in (os.path.dirname(each), around.root)  # noqa: PTH120
    )
    return tuple(dict.fromkeys(os.path.realpath(each) for each in files if os.path.isfile(each)))  # noqa: PTH113


def _found(around: _Around, words: tuple[str, ...]) -> Iterator[str]:
    root, named = around.root, [each for each in around.named if each != STDIN]
    beside = [each for each in named if not root or repository(each) != root]
    for wanted in (Wanted([root] if root else [], recursive=True), Wanted(beside, around.below)):
        every = candidates(wanted, [*map(str.encode, words)], processes=1)
        for file in every if wanted.arguments else ():
            if isinstance(file, str) and not file.endswith(merged_values.SCHEMA):
                yield os.path.realpath(file)


@lru_cache(maxsize=256)
def parts_of(_run: object, file: str) -> Parts:
    return Parts(Source.of_text(file, text_of(file)))


def is_for(file: str, at: int, charts: frozenset[str], plan: Plan) -> bool:
    """Whether what a text says at a place may be a value of charts with these names."""
    parts = parts_of(plan.run, file)
    part = parts.around(at)
    if part is None or parts.is_said(at) or not parts.may_set(part, plan.settings):
        return False
    its = chart_graph.chart_of(file)
    if its is not None and chart_graph.own_name(its) not in charts:
        given = chart_files.gives(its, plan.run)
        if given is not None and given.isdisjoint(charts):
            return False
    names = parts.charts(at)
    names = users(file, plan) if names is None else names
    return names is None or not names.isdisjoint(charts)


def names_for(charts: Iterable[Path], path: str, plan: Plan) -> frozenset[str]:
    """The names of these charts, and of the charts of the repository that depend on one of them.

    Values of such an outer chart reach the inner one.
    """
    marks = with_words(path, plan, ("dependencies",))
    folders = {Path(each).parent for each in marks if os.path.basename(each) in DEPENDENCIES}  # noqa: PTH119
    given = {folder: chart_files.gives(folder, plan.run) for folder in folders}
    found, before = frozenset[str]().union(*map(chart_graph.names_of, charts)), frozenset[str]()
    while found != before:
        before = found
        outer = (each for each, its in given.items() if its and not its.isdisjoint(before))
        found = before.union(*map(chart_graph.names_of, outer))
    return found


def users(file: str, plan: Plan) -> frozenset[str] | None:
    """The names of the charts for which other texts name a file; None: of any."""
    names = [each for each, _ in _mentions(_around(os.path.dirname(file), plan), file)]  # noqa: PTH120
    return None if None in names else frozenset().union(*filter(None, names)) or None


def is_included(file: str, plan: Plan) -> bool:
    """Whether a text about Helm names the file or a key in it, or is Terraform beside it."""
    around, text = _around(os.path.dirname(file), plan), text_of(file)  # noqa: PTH120
    keys = {key for each in _searched(around, (_KEY,)) for key in _NAMED.findall(text_of(each))}
    is_named = any(re.search(rf"^[ \t]*{re.escape(key)}:", text, re.MULTILINE) for key in keys)
    return is_named or any(is_about_helm for _, is_about_helm in _mentions(around, file))


def is_key(name: str, file: str, plan: Plan) -> bool:
    """Whether a text has a variable where the name of a value is: `{{ name }}: 1`, `x.$name=1`."""
    its = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    used = re.compile(
        rf"(?:\{{\{{[^\n{{}}]*{its}[^\n{{}}]*\}}\}}|\$\{{{its}[^\n{{}}]*\}}|\$\(?{its}\)?)"
        rf"[\"'\]]*[ \t]*[:=]|\((?:var|local)\.{its}\)[ \t]*="
    )
    files = with_words(os.path.dirname(file), plan, (name,))  # noqa: PTH120
    return any(used.search(text_of(each)) for each in files)


@lru_cache(maxsize=4096)
def _mentions(around: _Around, file: str) -> list[tuple[frozenset[str] | None, bool]]:
    """The charts of the places that name a file, and whether their texts are about Helm."""
    is_program = file.endswith(TERRAFORM)
    name = _RELEASE if is_program else os.path.basename(file)  # noqa: PTH119
    named = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    found: list[tuple[frozenset[str] | None, bool]] = []
    for other in _searched(around, (name,)):
        parts, text = parts_of(around.run, other), text_of(other)
        for each in named.finditer(text) if other != file or is_program else ():
            part = parts.around(each.start())
            if part is not None and not parts.is_said(each.start()):
                found.append((parts.charts(each.start()), parts.is_about_helm(part)))
    return found
