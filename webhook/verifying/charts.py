"""Files in; the charts they belong to out, and the files of a chart that its renderings leave out.

Helm renders the default values, and each other file of values over them; of a few files also each
over each other one. What stands in a branch that no rendering takes is found by marks: a copy of
the chart has one behind each name of a GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.core.rule import Trait
from webhook.core.text_patterns import END, find
from webhook.files.reading import text_of
from webhook.files.source import CHART
from webhook.formats.mentions import Comments
from webhook.kube.api_versions import is_served
from webhook.projects.merged_values import are_values
from webhook.rules import PATTERNS, codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webhook.core.settings import Settings

_OWN = {CHART, "Chart.lock", "requirements.yaml", "requirements.lock", "values.yaml"}
_ENDINGS = (".yaml", ".yml", ".json")
_SOURCE = re.compile(r"^# Source: [^/\n]+/(.+)$", re.MULTILINE)
_COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
_ASKED = re.compile(r"(?P<before>\bAPIVersions\.Has\s*\(?\s*[\"`])(?P<version>[\w./-]+)")
_FOLDER = 3  # the place of the chart in the command
_NOT_COPIED = shutil.ignore_patterns(".git", "node_modules")
_MOST_IN_PAIRS = 3  # files of values: six more renderings
_VERSIONS = codes(Trait.VERSION)  # which an API server refuses where they are rendered


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: the files that helm reads by itself, and other files of values."""

    folder: str
    own: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


def split(files: Sequence[str]) -> tuple[list[Chart], list[str]]:
    """The charts among the files, and the files of no chart: also those that lie in its folder."""
    marked = {Path(each).parent for each in files if Path(each).name == CHART}
    inner = {each for each in marked if each.parent.name == "charts" and each.parents[1] in marked}
    charts = {each: Chart(str(each)) for each in sorted(marked - inner)}
    rest = []
    for file in files:
        chart = next((charts[each] for each in Path(file).parents if each in charts), None)
        if chart is None:
            rest.append(file)
            continue
        role = _role(Path(os.path.relpath(file, chart.folder)).parts, file)
        {"own": chart.own, "values": chart.values}.get(role, rest).append(file)
    return [*charts.values()], rest


def _role(parts: tuple[str, ...], file: str) -> str:
    is_inner = parts[0] == "charts"
    while parts[0] == "charts" and len(parts) > 2:  # noqa: PLR2004  # of a chart in the chart
        parts = parts[2:]
    name = parts[-1]
    if parts[0] in {"charts", "crds", "templates"} or (len(parts) == 1 and name in _OWN):
        return "own"
    is_read = not is_inner and name.endswith(_ENDINGS)
    return "values" if is_read and are_values("/".join(parts), text_of(file)) else ""


def are_named(values: str) -> bool:
    """Whether the name of a file says that it has values; others may be anything without a kind."""
    return "values" in os.path.basename(values)  # noqa: PTH119


def given(chart: Chart) -> list[tuple[str, ...]]:
    """The files of values of each rendering; the later ones are over the earlier ones."""
    every, named = chart.values, [*filter(are_named, chart.values)]
    paired = next((each for each in (every, named) if len(each) <= _MOST_IN_PAIRS), [])
    pairs = permutations(paired, 2)
    return [(), *((each,) for each in chart.values), *pairs]


def words(folder: str, minor: int, values: Iterable[str] = ()) -> list[str]:
    """The command that renders a chart, with files of values over its own."""
    version = f"--kube-version=1.{minor}.0"
    made = ["helm", "template", "release", folder, version, "--include-crds"]
    return [*made, *(f"--values={each}" for each in values)]


@contextmanager
def for_target(words: list[str]) -> Iterator[list[str]]:
    """The command that renders a chart as for a cluster, whose API server has no removed versions.

    Helm has a list of all versions that its client knows, and its flags only add to it. So it
    renders a copy of the chart, in which the questions name versions that nobody has.
    """
    folder, minor = words[_FOLDER], int(words[_FOLDER + 1].split(".")[1])
    asking = {each: text for each in _templates(folder) if (text := _answered(each, minor))}
    if not asking:
        yield words
        return
    with tempfile.TemporaryDirectory(prefix="gpu-webhook-") as made:
        copy = os.path.join(made, "chart")  # noqa: PTH118
        shutil.copytree(folder, copy, ignore=_NOT_COPIED, ignore_dangling_symlinks=True)
        for file, text in asking.items():
            Path(copy, file.relative_to(folder)).write_text(text)
        yield [*words[:_FOLDER], copy, *words[_FOLDER + 1 :]]


def _templates(folder: str) -> Iterator[Path]:
    return (each for each in Path(folder).rglob("templates/**/*") if each.is_file())


def _answered(file: Path, minor: int) -> str:
    """The template with other names for removed versions in questions; empty if it has none."""
    text = text_of(str(file))
    if "APIVersions" not in text:
        return ""

    def answered(found: re.Match[str]) -> str:
        is_removed = is_served(found["version"], (1, minor)) is False
        return f"{found['before']}removed/{found['version']}" if is_removed else found[0]

    new_text = _ASKED.sub(answered, text)
    return new_text if new_text != text else ""


def hidden(
    chart: Chart, printed: Iterable[str], settings: Settings, render: Callable[[Chart], str]
) -> Iterator[str]:
    """The files of the chart of which the renderings lack the whole, or a name of a GPU."""
    rendered = {each for text in printed for each in _SOURCE.findall(text)}
    marks: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="gpu-webhook-") as made:
        copy = os.path.join(made, "chart")  # noqa: PTH118
        shutil.copytree(chart.folder, copy, ignore=_NOT_COPIED, ignore_dangling_symlinks=True)
        for file in (*chart.own, *chart.values):
            name = os.path.relpath(file, chart.folder)
            if _is_rendered_alone(Path(name)) and Path(name).as_posix() not in rendered:
                yield file
                continue
            text = text_of(file)
            marked = _marked(text, file, settings, marks)
            if marked != text:
                Path(copy, name).write_text(marked)
        there = [os.path.join(copy, os.path.relpath(each, chart.folder)) for each in chart.values]  # noqa: PTH118
        shown = render(Chart(copy, values=there)) if marks else ""
    yield from dict.fromkeys(file for mark, file in marks.items() if mark not in shown)


def _is_rendered_alone(name: Path) -> bool:
    """Whether it is a template whose text is printed, and not only included by others."""
    is_template = "templates" in name.parts and name.suffix in _ENDINGS
    return is_template and not name.name.startswith("_")


def _marked(text: str, file: str, settings: Settings, marks: dict[str, str]) -> str:
    """The text with a mark behind each name of a GPU; `marks` gets them, with the file."""
    current = re.compile(
        f"(?:{'|'.join(map(re.escape, (settings.gpu_resource, settings.models.key)))}){END}"
    )
    ends = {each.end for each in find(text, PATTERNS, settings) if each.code not in _VERSIONS}
    ends |= {each.end() for each in current.finditer(text)}
    comments, template_comments = Comments(text), [each.span() for each in _COMMENT.finditer(text)]
    parts, last = [], 0
    for at in sorted(ends):
        if comments.hold(at - 1) or any(begin < at <= end for begin, end in template_comments):
            continue
        mark = f"-mark{len(marks)}x"
        marks[mark] = file
        parts += [text[last:at], mark]
        last = at
    return "".join((*parts, text[last:]))
