"""Migrates the files of kustomizations: a file in, its result out, or the reason why it is held.

The base, its patches and what else changes its objects stand in several files. Together they are
right only if what kustomize builds of the new files is what the rules make of what it builds now.
That is computed for each object. Where it is not known, all files of the object stay as they are.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webhook.core.errors import InputError
from webhook.files import search_words
from webhook.files.folder import repository
from webhook.files.reading import text_of
from webhook.files.results import FileResult, OptedOut, Plan
from webhook.files.source import Source
from webhook.files.walk import Wanted, which_is_met
from webhook.formats import kustomization, kustomize
from webhook.formats.migrate import migrate_text
from webhook.projects import same_pods
from webhook.projects.building import Build, Builder, BuiltObject, Loose
from webhook.projects.chart import Question
from webhook.projects.chart import migrated as migrate_in_chart
from webhook.projects.inflated_charts import charts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.formats.kustomization import Applied

_BY_HAND = "the pods would be others than now, so change both by hand"


def migrated(path: str, source: Source, plan: Plan) -> FileResult:
    """The result for a file; it stays as it is where the rest of its kustomizations needs that."""
    result = migrate_in_chart(path, source, kustomize.planned(path, plan))
    if result.new_text is None:
        return result
    group = _group_of(path, plan)
    if group is None:
        return result
    why = _held(Question.of(group, plan)).get(os.path.realpath(path), "")
    return result.undone(why) if why else result


def together(path: str, plan: Plan) -> frozenset[str]:
    """The files of all kustomizations that this file belongs to; none if it belongs to none."""
    group = _group_of(path, plan)
    return group.files if group is not None else frozenset()


def _group_of(path: str, plan: Plan) -> _Group | None:
    index = _index(_root(path), search_words.words(plan.settings))
    return index.get(os.path.realpath(path))


class _Group(NamedTuple):
    """Kustomizations that share a file which may change, and these files."""

    files: frozenset[str]
    folders: frozenset[str]
    applied: frozenset[Applied]


@lru_cache(maxsize=256)
def _held(question: Question[_Group]) -> dict[str, str]:
    """Why files of the group stay as they are."""
    group, work = question.about, _Work(question.plan)
    work.migrate(group.files)
    before, after = Builder(text_of), Builder(work.text_of)
    whole = {each for each in group.folders if not kustomization.is_component(each)}
    for folder in sorted(whole or group.folders) if work.texts else ():
        opted_out = OptedOut()
        with suppress(InputError):  # reported with the kustomization itself
            opted_out = kustomization.opted_out_by(folder)
        work.compare(before.folder(folder), after.folder(folder), opted_out)
    for each in sorted(group.applied) if work.texts else ():
        work.compare(before.applied(each), after.applied(each), OptedOut())
    return work.why()


@dataclass(slots=True)
class _Work:
    """The comparison of one group: texts that would change, files of one object, and what holds."""

    plan: Plan
    texts: dict[str, str] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)  # files that are not among those of the run
    objects: list[frozenset[str]] = field(default_factory=list)
    held: list[tuple[frozenset[str], str]] = field(default_factory=list)

    def text_of(self, file: str) -> str:
        """The text of a file after this run."""
        found = self.texts.get(os.path.realpath(file))
        return text_of(file) if found is None else found

    def migrate(self, files: Iterable[str]) -> None:
        """Migrate each file alone; the run does not read files that it was not given."""
        plan = self.plan
        is_met = which_is_met(Wanted(plan.named, plan.below, plan.excluded))
        for file in sorted(files):
            name, text = os.path.relpath(file), text_of(file)
            if plan.named and not is_met(file):
                self.absent.append(file)
                continue
            made = migrate_in_chart(name, Source.of_text(name, text), kustomize.planned(name, plan))
            if made.new_text is not None:
                self.texts[file] = made.new_text

    def compare(self, before: Build, after: Build, opted_out: OptedOut) -> None:
        """Hold what the new texts would build otherwise than the rules do of the present build."""
        plan = self.plan
        opted_out = opted_out if plan.opted_out == OptedOut() else plan.opted_out
        plan = replace(plan, opted_out=opted_out)
        for old, new in zip(before.made, after.made, strict=True):
            files = frozenset(old.files | new.files)
            if (old.by or old.unsure or new.by or new.unsure) and old.inputs != new.inputs:
                self.objects.append(files)
                if why := _why_not(old, new, plan):
                    self._hold(files, why)
        for key in before.loose.keys() | after.loose.keys():
            self._compare_loose(before.loose.get(key), after.loose.get(key))
        for chart in before.charts:
            words = search_words.words(plan.settings)
            given = [file for file, text in chart.values if _has(text, words)]
            if given:
                why = f"{os.path.relpath(given[0])} gives values with GPUs to this chart"
                self._hold(frozenset((*chart.files, *given)), f"{why}; {_BY_HAND}")

    def _compare_loose(self, old: Loose | None, new: Loose | None) -> None:
        one = new or old
        assert one is not None  # noqa: S101  # a key of one of the two
        is_changed = old is None or new is None or old.data != new.data
        if is_changed or (one.charts and not one.is_harmless):
            files = frozenset((one.file, *one.charts))
            self._hold(files, f"the patch {os.path.relpath(one.file)} {one.why}")

    def _hold(self, files: frozenset[str], why: str) -> None:
        absent = next((each for each in self.absent if each in files), None)
        if absent is not None:
            why += (
                f"; {os.path.relpath(absent)} is not among the files of this run: name all files "
                "of that kustomization, as -k does"
            )
        self.held.append((files, why))

    def why(self) -> dict[str, str]:
        """The reason of each held file: one file of an object holds the others."""
        reasons: dict[str, str] = {}
        waiting = list(self.held)
        rest = self.objects
        for files, why in waiting:  # the list grows
            new = files - reasons.keys()
            reasons |= dict.fromkeys(new, why)
            met = [each for each in rest if not new.isdisjoint(each)]
            rest = [each for each in rest if new.isdisjoint(each)]
            waiting += ((each, why) for each in met)
        return reasons


def _why_not(old: BuiltObject, new: BuiltObject, plan: Plan) -> str:
    """Why it is not right to change the files of an object together."""
    by = " and ".join(os.path.relpath(each) for each in dict.fromkeys((*old.by, *new.by)))
    if unsure := old.unsure or new.unsure:
        return f"{by}: {unsure}; {_BY_HAND}" if by else f"{unsure}; {_BY_HAND}"
    wanted = old.data
    if wanted:
        made = migrate_text(Source.of_text("built.json", json.dumps(wanted, default=str)), plan)
        wanted = json.loads(made.new_text) if made.new_text is not None else wanted
    found = same_pods.difference(wanted, new.data, plan.settings)
    if found is None:
        return ""
    return f"the patch {by} meets what would change in {found.where}: {found.advice}{_BY_HAND}"


@lru_cache(maxsize=4)
def _index(root: str, words: tuple[bytes, ...]) -> dict[str, _Group]:
    """The group of each file: kustomizations that share a file which may change are one group."""
    index: dict[str, _Group] = {}
    for folder in kustomization.folders(root):
        with suppress(InputError):  # reported with the kustomization itself
            one = _Group(frozenset(), frozenset({folder}), frozenset())
            _join(one, _files(kustomization.parts(folder).files), words, index)
    for each in kustomization.applied(root):
        one = _Group(frozenset(), frozenset(), frozenset({each}))
        _join(one, [each.file, *_files(kustomization.manifests(each.folder))], words, index)
    return index


def _files(named: list[str]) -> Iterator[str]:
    """The files, and those of charts and transformers that the kustomizations among them name."""
    for file in named:
        yield file
        if Path(file).name in kustomization.NAMES:
            said = {}
            with suppress(InputError):  # reported with the file itself
                said = {name.lower(): each for name, each in kustomization.read(file).items()}
            for chart in charts_of(file, said, text_of):
                yield from (*chart.files, *(each for each, _ in chart.values))
            yield from kustomization.reached(str(Path(file).parent), said.get("transformers"))


def _join(
    one: _Group, files: Iterable[str], words: tuple[bytes, ...], index: dict[str, _Group]
) -> None:
    own = {os.path.realpath(each) for each in files}
    own = {each for each in own if _has(text_of(each), words)}
    groups = {index[each] for each in own if each in index} | {one}
    joined = _Group(*(frozenset().union(*parts) for parts in zip(*groups, strict=True)))
    joined = joined._replace(files=joined.files | own)
    index.update(dict.fromkeys(joined.files, joined))


def _has(text: str, words: tuple[bytes, ...]) -> bool:
    content = text.encode(errors="surrogatepass")
    return any(map(content.__contains__, words))


def _root(path: str) -> str:
    """The folder below which kustomizations may be that use the file."""
    above = Path(os.path.realpath(path)).parents
    if root := repository(str(above[0])):
        return root
    # Overlays are usually beside the folder of their base.
    here = Path(os.path.realpath(os.curdir))
    return str(here if here in above else above[min(1, len(above) - 1)])
