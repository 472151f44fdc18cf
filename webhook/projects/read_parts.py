"""Amounts and what one template may read of another file: the results of a run in, reasons out.

A map without a kind (variables of Ansible, values of ytt, an included file) gives what it has to a
template that names it, or the file. Both make one pod: while something of a legacy pod stays in the
one, the amounts in the other keep their name, as they do where both are in one file. Of charts,
chart.py knows more.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from webhook.core.rule import Trait
from webhook.files import search_words
from webhook.files.reading import text_of
from webhook.files.results import Status
from webhook.files.source import Source
from webhook.formats import legacy_pods
from webhook.formats.file_objects import AMOUNTS
from webhook.projects import chart, chart_graph, merged_values, named_files
from webhook.rules import ALL, codes
from webhook.templates.actions import has_actions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.files.results import FileResult, Located, Plan

_LEGACY = codes(Trait.LEGACY_PODS)
_LINE = "\n"
# What begins and ends what a template reads: Jinja and Go, ytt, shells and Terraform, ERB and EJS,
# other programs that insert text.
_ACTIONS = (
    *(("{{", "}}"), ("{%", "%}"), ("#@", "\n"), ("(@", "@)"), ("${", "}"), ("<%", "%>")),
    *(("[[", "]]"), ("((", "))"), ("$(", ")"), ("#{", "}"), ("<<", ">>")),
)
_VARIABLE = re.compile(r"\$(\w+)|(?<!\w)(?:__(\w+?)__|@(\w+)@|%(\w+)%)(?!\w)")
# The last word of a path: of `job.resources` the second, of `resources.items()` the first.
_READ = re.compile(r"(?<!\w)\w+(?:-+\w+)*(?!\w|-+\w)(?!\.\w+(?![\w(])|\[[\"'\d])")
_OF_METHODS = "<%"  # Ruby calls a method without parentheses: `res.to_json`
_WORD = re.compile(r"[\w-]+")
_FILE = re.compile(r"[\w-]+(?:\.[\w-]+)+")  # the last name in a path
_DEFINED = re.compile(r"\b(?:define|macro|block|set|def)\s+[\"']?(?:[\w-]+\.)*([\w-]+)")
_ENDING = re.compile(r"\.(?:j2|jinja2?|tmpl|tpl|gotmpl|erb|template|envsubst|in)$")
_RESOURCE = re.compile(r"\[[^\[\]]*\]$")
_OBJECT = re.compile(r"^[\"']?kind[\"']?[ \t]*:", re.MULTILINE)
_KIND = re.compile(r"^[ \t]*(?:[-{][ \t]*)*[\"']?kind[\"']?[ \t]*:", re.MULTILINE)
# In an action of a template: a function behind a pipe, a variable of Go.
_OTHERS = re.compile(r"\|[ \t]*\w+|\$\w+")
_FIELDS = {"key", "path", "hostPath", "name"}  # around a legacy word; no variables
_PROGRAM = "other"  # the kind of texts that are only searched
_TEXTS = (".yaml", ".yml", ".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".gotmpl", ".json", ".erb")
_SET = re.compile(
    r"^[ \t]*(?:-[ \t]+)?[\"']?([\w-]+)[\"']?[ \t]*[:=](.*(?:\{\{|#@|<%).*)", re.MULTILINE
)


class _Left(NamedTuple):
    """A text in which something of a legacy pod stays; without a code, it looks an amount up."""

    path: str
    kind: str
    text: str
    code: str
    where: str

    def why(self, by: str) -> str:
        """Why amounts wait for it, that belong to it by this name."""
        where = f"{self.where}, connected by the name {by},"
        return legacy_pods.elsewhere(self.code, where) if self.code else legacy_pods.is_read(where)


def is_part(found: Located) -> bool:
    """Whether an amount is renamed in a map without a kind."""
    return found.code in AMOUNTS and found.status is Status.FIXABLE and not found.object


def waiting(known: Mapping[str, FileResult], plan: Plan) -> dict[str, str]:
    """Why the amounts in files wait, by the paths of their results; `known` is by files."""
    reasons: dict[str, str] = {}
    by_root: dict[str, _Readers] = {}
    for file, result in known.items():
        if not (legacy_pods.does_amounts(result) and _is_met(file, result.kind)):
            continue
        if not (
            any(map(is_part, result.located)) or any(begin in result.text for begin, _ in _ACTIONS)
        ):
            continue
        root = named_files.root_of(file, plan)
        if root not in by_root:
            by_root[root] = _Readers.of(_left(known, file, plan), file, plan)
        if why := by_root[root].why(file, result):
            reasons[result.path] = why
    return reasons


def _is_met(file: str, kind: str) -> bool:
    """Whether the file may be a template or read by one, outside of charts; a guide is neither."""
    return kind != "markdown" and chart_graph.chart_of(file) is None


@dataclass(slots=True)
class _Readers:
    """The texts in which something stays: by what they read, and by what they give."""

    read: dict[str, _Left] = field(default_factory=dict)
    given: dict[str, _Left] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterator[_Left], file: str, plan: Plan) -> _Readers:
        """All in the repository of a file."""
        made = cls()
        for each in texts:
            _add(made.read, _reads(each.text, each.kind), each)
            if each.kind != _PROGRAM and _OBJECT.search(each.text) is None:
                _add(made.given, legacy_pods.members(each.text, plan) - _FIELDS, each)
                _add(made.given, _names_of(each.path, each.text), each)
        if made.read or made.given:
            made._follow([*_with_actions(file, plan)])
        return made

    def _follow(self, texts: list[str]) -> None:
        """Add what is given to variables (`a: "{{ b }}"`), and all that goes into one template."""
        reads, is_read = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        templates: list[set[str]] = []
        for text in texts:
            if _KIND.search(text) is not None:
                templates.append(_reads(text))
            for found in _SET.finditer(text) if _OBJECT.search(text) is None else ():
                for word in _reads(found[2]):
                    reads[found[1]].add(word)
                    is_read[word].add(found[1])
        _reach(self.given, is_read)
        for names in templates:
            met = next((self.given[each] for each in sorted(names) if each in self.given), None)
            if met is not None:
                _add(self.read, names, met)
        _reach(self.read, reads)

    def why(self, file: str, result: FileResult) -> str:
        """Why the amounts in a file wait; empty if they do not."""
        parts = [_RESOURCE.sub("", each.path) for each in result.located if is_part(each)]
        names = {word for each in parts for word in _WORD.findall(each)}
        names |= _names_of(file, result.text) if parts else set()
        reads = _reads(result.text) if self.given else set[str]()
        for known, words in ((self.read, names), (self.given, reads)):
            met = next((each for each in sorted(words) if each in known), "")
            if met:
                return known[met].why(met)
        return ""


def _names_of(file: str, text: str) -> set[str]:
    """The names by which a template may include a text, or what it defines."""
    name = os.path.basename(file)  # noqa: PTH119  # of many files
    return {name, _ENDING.sub("", name), *_DEFINED.findall(text)}


def _reads(text: str, kind: str = "") -> set[str]:
    """The words and names of files in the actions of a text; in a program all names of files."""
    found = {each for names in _VARIABLE.findall(text) for each in names if "{{" not in text}
    found |= set(_FILE.findall(text)) if kind == _PROGRAM else set()
    for each in _actions(text):
        found.update(_FILE.findall(each), _words(each))
    return found


def _words(action: str) -> Iterator[str]:
    if action.startswith(_OF_METHODS):
        yield from _WORD.findall(action)
    for each in _READ.findall(_OTHERS.sub("|", action)):
        yield each
        yield from each.split("-")


def _actions(text: str) -> Iterator[str]:
    for begin, end in _ACTIONS:
        at = text.find(begin)
        while at >= 0:
            stop = text.find(end, at)
            yield text[at : stop if stop >= 0 else None]
            at = text.find(begin, stop) if stop >= 0 else -1


def _with_actions(file: str, plan: Plan) -> Iterator[str]:
    """The texts with actions in the repository of a file, outside of charts."""
    for each in named_files.with_words(file, plan, ("{{", "#@", "<%")):
        if each.endswith(_TEXTS) and chart_graph.chart_of(each) is None:
            yield text_of(each)


def _add(known: dict[str, _Left], names: Iterable[str], left: _Left) -> None:
    for each in names:
        known.setdefault(each, left)


def _reach(known: dict[str, _Left], steps: Mapping[str, set[str]]) -> None:
    """Add the names that are reached by such steps."""
    names = [*known]
    for each in names:  # the list grows
        for other in sorted(steps.get(each, ())):
            if other not in known:
                known[other] = known[each]
                names.append(other)


def _left(known: Mapping[str, FileResult], file: str, plan: Plan) -> Iterator[_Left]:
    """What stays in the texts outside of charts in the repository of a file."""
    root, is_in_run = named_files.root_of(file, plan), chart.is_in_run(plan)
    rules = [each for each in ALL if each.CODE in _LEGACY]
    words = tuple(each.decode() for each in search_words.words(plan.settings, rules))
    for each in sorted({*known, *named_files.with_words(file, plan, words)}):
        result = known.get(each)
        if result is None:
            found = None if is_in_run(each) else _in_absent(each, plan)
        else:
            found = _in_result(result, plan)
        if found is None or not _is_met(each, found.kind):
            continue
        if named_files.root_of(each, plan) == root:
            yield found


def _in_absent(file: str, plan: Plan) -> _Left | None:
    """The first legacy word of a file that is not in the run."""
    name, text = os.path.relpath(file), text_of(file)
    for code, start, _ in legacy_pods.words(text, plan):
        where = f"{name} (line {text.count(_LINE, 0, start) + 1}){merged_values.ABSENT}"
        return _Left(name, Source.of_text(name, text).kind, text, code, where)
    return None


def _in_result(result: FileResult, plan: Plan) -> _Left | None:
    """What is not done in a file of the run."""
    path, kind, text = result.path, result.kind, result.text
    line = legacy_pods.read_by_name(text, plan.settings) if has_actions(text) else 0
    if line:
        return _Left(path, kind, text, "", f"{path} (line {line})")
    if any(each.code in _LEGACY and each.status is Status.MANUAL for each in result.located):
        for code, where in legacy_pods.left(result, plan, path).items():
            return _Left(path, kind, text, code, where)
    return None
