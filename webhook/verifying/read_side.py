"""Reads one side of a comparison: a file, folder, chart or kustomization in, its objects out.

Charts and kustomizations are built as their own tools build them (helm, kustomize or kubectl). What
cannot be read as objects is returned with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.core.errors import InputError
from webhook.core.settings import Settings
from webhook.evaluation.workloads import objects
from webhook.files import reading, walk
from webhook.files.folder import is_temporary
from webhook.files.results import FileResult
from webhook.files.search import SearchBatch
from webhook.files.source import STREAM, Source, is_read
from webhook.formats import kustomization, kustomize
from webhook.formats.fences import fences
from webhook.templates import ytt
from webhook.verifying import charts
from webhook.yamlpatch import documents
from webhook.yamlpatch.places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Raw = dict[str, Any]

_SECONDS = 120  # for one run of another program
_FIRST = Place(1, 1, 1, 1)
_PAIR = 2
_MANIFESTS = ("yaml", "json")
_OTHERS = {
    "helm": "it is a template outside of a chart: render it, and compare the results",
    "jinja": "it is a template: render it, and compare the results",
    "ytt": "it is a template of ytt: compare what ytt prints",
}
_HIDDEN = "no rendering shows all of it: add a file of values to the chart with which helm does"
_NOT_BUILT = "it is a kustomization, and neither kustomize nor kubectl is installed to build it"
_KINDLESS = "it has a document without a kind, which is no object"
_AROUND = "it has legacy text that is in no object"
_OF_BLOCKS = "it has legacy text outside of code blocks that are whole objects"


@dataclass(frozen=True, slots=True)
class Found:
    """An object, and where it is: the file of this side, as it is named and below the argument.

    `beside` is what it has in common with the objects that are applied with it: a folder, a build.
    `twice` is the first name that occurs twice in a map of its document, whose text is then known.
    `made_by` is the command that renders it, `again` what a second run makes.
    """

    object: Raw
    path: str
    below: str
    place: Place = _FIRST
    beside: str = ""
    twice: str = ""
    text: str = ""
    made_by: tuple[str, ...] = ()
    again: Raw | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A file or chart, or a part of it, whose objects are not known, and why; with its content.

    If it is a part, `whole` is the file, and `compared` are the spans that are compared.
    """

    path: str
    below: str
    why: str
    content: bytes | None = None
    may_be_applied: bool = True  # the text, or what is rendered of it
    whole: bytes = b""
    compared: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Side:
    """Everything that was found, and the texts of the files."""

    found: list[Found] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a side: for Kubernetes 1.`minor`, without the files that `exclude` names.

    Paths below `base` belong together with those of the other side; without it, each argument is
    one. The reports name the files below `base` with a `label` before them.
    """

    minor: int = 36
    exclude: Sequence[str] = ()
    base: str = ""
    label: str = ""
    settings: Settings = field(default_factory=Settings)


def read(arguments: Sequence[str], options: ReadOptions) -> Side:
    """The objects of these files and folders."""
    side = Side()
    for argument in arguments:
        _Reader(side, replace(options, base=options.base or argument)).argument(argument)
    return side


def of_text(path: str, raw: bytes) -> Side:
    """The objects of one file whose content is known."""
    side = Side()
    _Reader(side, ReadOptions(base=path)).content(path, raw)
    return side


def rendered_again(side: Side) -> Side:
    """The side, with what a second run of helm makes of each object of a chart."""
    commands = dict.fromkeys(each.made_by for each in side.found if each.made_by)
    made = {each: deque(_objects_in(_rendered([*each])[0])) for each in commands}
    found = [
        replace(each, again=made[each.made_by].popleft() if made[each.made_by] else {})
        if each.made_by
        else each
        for each in side.found
    ]
    return replace(side, found=found)


@dataclass(slots=True)
class _Reader:
    side: Side
    options: ReadOptions

    def argument(self, argument: str) -> None:
        if argument == walk.STDIN:
            self.content(STREAM, reading.read_all(sys.stdin.buffer))
        elif not Path(argument).is_dir():
            self.file(argument)
        else:
            self.folder(argument)

    def folder(self, folder: str) -> None:
        """The files of a folder: those of charts and kustomizations are built once, together."""
        its, files = charts.split(sorted(self._files(folder)))
        builds = sorted(filter(_is_kustomization, {str(Path(each).parent) for each in files}))
        builds = [each for each in builds if not kustomization.is_component(each)]
        used = {os.path.realpath(part) for each in builds for part in _parts(each)}
        for chart in its:
            self.chart(chart)
        for build in builds:
            self.kustomization(build)
        for file in files:
            if os.path.realpath(file) not in used:
                self.file(file)

    def _files(self, folder: str) -> Iterator[str]:
        for found in walk.find(walk.Wanted([folder], recursive=True, exclude=self.options.exclude)):
            if isinstance(found, SearchBatch):
                yield from (prefix + name for prefix, names in found.batch for name in names)
            elif isinstance(found, FileResult) and not is_temporary(found.path):
                for why in (found.error, *(each.reason for each in found.skipped)):
                    if why:
                        self._not_read(found.path, why)

    def file(self, path: str) -> None:
        try:
            self.content(path, reading.read_regular(path)[0])
        except reading.UnreadableError as error:
            self._not_read(path, str(error))

    def content(self, path: str, raw: bytes) -> None:
        """The objects of a file with this content."""
        try:
            source = Source.of(path, raw)
        except InputError as error:
            content = None if is_read(path) else raw  # kubectl may read what this program cannot
            self._not_read(path, str(error).removeprefix(f"{path}: "), content)
            return
        kind = "ytt" if source.kind == "yaml" and ytt.has_code(source.text) else source.kind
        if kind == "markdown":
            self._blocks(source, raw)
        elif kind not in _MANIFESTS:
            why = _OTHERS.get(kind, "it is no manifest: its contents are not compared")
            self._not_read(path, why, raw, may_be_applied=kind in _OTHERS)
        elif kind == "yaml" and _is_patch(source):
            self._not_read(path, "it is a patch: compare the kustomization that uses it", raw)
        else:
            self._objects(source, raw)

    def _objects(self, source: Source, raw: bytes) -> None:
        """The objects of YAML or JSON. What else has text is a part that is not compared."""
        text, compared, left, why = source.text, [], [], ""
        stream = documents.read(text, json=source.kind == "json")
        self.side.texts[self._shown(source.path)] = text
        for each in stream.unread:
            why = why or f"line {source.place(each.at, each.at).line} {each.reason}"
            left.append((each.start, each.end))
        for document in stream.documents:
            found = [*objects(document.data)]
            for at, obj in found:
                span = document.place(at)
                if isinstance(obj.get("kind"), str):
                    self._found(source, span[0], [(obj, _twice(document))])
                    compared.append(span)
                else:
                    left.append(span)
            if not found and document.data is not None:
                left.append((document.start, document.end))
        if left:
            parts = "\n".join(text[start:end] for start, end in left)
            self._left(source, raw, why or _KINDLESS, parts, compared)
        else:
            rest = _without(text, compared)
            self._left(source, raw, _AROUND, rest, compared, may_be_applied=False)

    def _blocks(self, source: Source, raw: bytes) -> None:
        """The code blocks of a document that are objects. Prose is applied to no cluster."""
        compared = []
        self.side.texts[self._shown(source.path)] = source.text
        for block in fences(source.text):
            stream = documents.read(source.text[block.start : block.end])
            made = [*_read(stream)]
            are_objects = made and all(isinstance(obj.get("kind"), str) for obj, _ in made)
            are_objects = are_objects and not ytt.has_code(source.text, block.start, block.end)
            if are_objects and not stream.unread:
                self._found(source, block.start, made)
                compared.append((block.start, block.end))
        rest = _without(source.text, compared)
        self._left(source, raw, _OF_BLOCKS, rest, compared, may_be_applied=False)

    def _found(self, source: Source, at: int, made: list[tuple[Raw, tuple[str, str]]]) -> None:
        """Add objects that begin at this place of a file."""
        below, shown = self._below(source.path), self._shown(source.path)
        beside = Path(below).parent.as_posix()
        place = source.first_line(source.place(at, at))
        self.side.found += [Found(obj, shown, below, place, beside, *twice) for obj, twice in made]

    def _left(  # noqa: PLR0913  # of the file, and of its part
        self,
        source: Source,
        raw: bytes,
        why: str,
        content: str,
        compared: list[tuple[int, int]],
        *,
        may_be_applied: bool = True,
    ) -> None:
        """The part of a file that is not compared."""
        part = content.encode(errors="surrogatepass")
        path, below = self._shown(source.path), self._below(source.path)
        unread = Unread(path, below, why, part, may_be_applied, raw, tuple(compared))
        self.side.unread.append(unread)

    def chart(self, chart: charts.Chart) -> None:
        """What `helm template` prints for the default values, and with other files of values."""
        if shutil.which("helm") is None:
            self._not_read(chart.folder, "it is a chart, and helm is not installed to render it")
            return
        minor = self.options.minor
        printed: dict[tuple[str, ...], str] = {}
        failed: dict[tuple[str, ...], str] = {}
        for values in charts.given(chart):
            words = charts.words(chart.folder, minor, values)
            text, why = _rendered(words)
            if why:
                failed[values] = why
                continue
            printed[values] = text
            names = values or (chart.folder,)
            self._printed(text, words, names[-1], "+".join(map(self._below, names)))

        def render(copy: charts.Chart) -> str:
            every = (charts.words(copy.folder, minor, each) for each in charts.given(copy))
            return "".join(_rendered(each)[0] for each in every)

        for values, why in failed.items():
            # Values that lack what another file has are used only with that file.
            if len(values) < _PAIR and not any({*each} > {*values} for each in printed):
                name = "".join(values)
                is_any = name and not charts.are_named(name)
                self._not_read(
                    name or chart.folder, why, Path(name).read_bytes() if is_any else None
                )
        if printed:
            for file in charts.hidden(chart, printed.values(), self.options.settings, render):
                self._not_read(file, _HIDDEN, Path(file).read_bytes())

    def kustomization(self, folder: str) -> None:
        """What kustomize or kubectl builds."""
        for words in (["kustomize", "build", folder], ["kubectl", "kustomize", folder]):
            if shutil.which(words[0]) is not None:
                text, why = _run(words)
                if why:
                    self._not_read(folder, why)
                self._printed(text, words, folder, self._below(folder))
                return
        self._not_read(folder, _NOT_BUILT)

    def _printed(self, text: str, words: list[str], path: str, below: str) -> None:
        """Add the objects that a program printed."""
        stream = documents.read(text)
        for each in stream.unread:
            self._not_read(path, f"{words[0]} printed what is not YAML: {each.reason}")
        by = tuple(words) if words[0] == "helm" else ()
        shown = self._shown(path)
        self.side.found += [
            Found(obj, shown, below, _FIRST, f"{below}/", *twice, made_by=by)
            for obj, twice in _read(stream)
        ]

    def _not_read(
        self, path: str, why: str, content: bytes | None = None, *, may_be_applied: bool = True
    ) -> None:
        unread = Unread(self._shown(path), self._below(path), why, content, may_be_applied)
        self.side.unread.append(unread)

    def _below(self, path: str) -> str:
        return "" if path == self.options.base else os.path.relpath(path, self.options.base)

    def _shown(self, path: str) -> str:
        label = self.options.label
        return f"{label}:{self._below(path)}" if label else path


def _rendered(words: list[str]) -> tuple[str, str]:
    """What helm prints for a chart; or why it failed."""
    with charts.for_target(words) as command:
        return _run(command)


def _run(words: list[str]) -> tuple[str, str]:
    """What a program prints; or why it failed."""
    try:
        done = subprocess.run(  # noqa: S603  # the user's own program, on the user's own folder
            words, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{words[0]} failed: {error}"
    if not done.returncode:
        return done.stdout.decode(errors="replace"), ""
    said = done.stderr.decode(errors="replace").strip().splitlines()
    errors = [line for line in said if line.lower().startswith("error")]
    others = [line for line in reversed(said) if any(map(str.isalnum, line))]  # and not `>`
    why = next(iter((*errors, *others)), f"exit code {done.returncode}")
    return "", f"{words[0]} failed: {why}"


def _read(stream: documents.Stream) -> Iterator[tuple[Raw, tuple[str, str]]]:
    """The objects, each with what occurs twice in its document."""
    for document in stream.documents:
        for _, obj in objects(document.data):
            yield obj, _twice(document)


def _objects_in(text: str) -> list[Raw]:
    return [obj for obj, _ in _read(documents.read(text))]


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """The text without some parts, which are in its order."""
    ends, starts = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
    return "\n".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _twice(document: documents.Document) -> tuple[str, str]:
    """The first name that occurs twice in a map, and the text; nothing if there is none."""
    if not document.duplicates:
        return "", ""
    return document.duplicates[0].at.dotted, document.text[document.start : document.end]


def _is_patch(source: Source) -> bool:
    """Whether it has the form of a patch, or its kustomization says so."""
    return kustomize.is_patch(source) or kustomization.known_of(source.path)[1]


def _is_kustomization(folder: str) -> bool:
    return any(Path(folder, name).is_file() for name in kustomization.NAMES)


def _parts(folder: str) -> list[str]:
    """The files that this kustomization uses, itself included."""
    try:
        return kustomization.parts(folder).files
    except InputError:  # reported when it is built
        return [kustomization.file_of(folder)]
