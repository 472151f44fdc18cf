"""Which legacy names in texts may give amounts to charts: a text in, lines and charts out.

They are in parts of a text: a document of YAML, a code block of Markdown, a whole program. A part
counts if it has words of Helm, or if it is a map without a kind, which may be values. An object of
Kubernetes counts if it installs charts, or runs a command that does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from webhook.core.text_patterns import RESOURCE_TEXT, find
from webhook.evaluation.workloads import is_known_kind
from webhook.formats.fences import fences
from webhook.formats.mentions import Comments, sign_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.core.settings import Settings
    from webhook.files.source import Source

_HELM = re.compile(
    r"(?i:helm|\bcharts?\b|\bchart_?(?:name|path|ref)|\bvalues?_?files?\b|release_values)"
    r"|--set\b|\bApplication(?:Set)?\b|fluxcd\.io|cattle\.io|\bvalues[\w-]*\.ya?ml"
    r"|\bvalues(?:Content|Object|Inline|Template|From)\b|\bvalues[\"']?:[ \t]*[|>]|\banswers\b"
)
_COMMAND = re.compile(r"--set\b|\bhelm3?[\"',]*\s+(?:upgrade|install|template)\b")
_LABELS = re.compile(
    r"^[ \t]*[\"']?(?:helm\.sh/chart|chart|release|heritage|meta\.helm\.sh/[\w-]+"
    r"|app\.kubernetes\.io/[\w-]+)[\"']?[ \t]*:.*$",
    re.MULTILINE,
)
_KIND = re.compile(
    r"(?:^|[{,])[ \t]*(?:-[ \t]+)?[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?(\w+)", re.MULTILINE
)
_AS_KEY = re.compile(r"[\\\"']*[ \t]*:")
_DOCUMENT = re.compile(r"^---(?=\s)", re.MULTILINE)
_CHART = re.compile(
    r"\bchart(?:Name|Path|_name|_path|_ref|Ref)?[\"']?[ \t]*:\s*[\"']?(?P<name>[^\s\"',}]+)",
    re.IGNORECASE,
)
_PATH = re.compile(r"\bpath[\"']?[ \t]*:[ \t]*[\"']?(?P<name>[^\s\"',}]+)")
_IS_ARGO = re.compile(r"\bkind[\"']?[ \t]*:[ \t]*[\"']?Application")
_PACKED = re.compile(r"-v?\d[\w.+-]*\.tgz$")
_YAML = (".yaml", ".yml", ".json", ".j2", ".tpl", ".tmpl", ".gotmpl", ".toml")
_PROSE = (".rst", ".adoc", ".asciidoc", ".txt", ".html", ".htm", ".ipynb", ".org", ".log")
_MARKDOWN = "markdown"


class Place(NamedTuple):
    """A line with a legacy name, and the names of the charts that it is for; None: of any."""

    line: int
    charts: frozenset[str] | None


def places(source: Source, settings: Settings) -> Iterator[Place]:
    """The first place in each part that may give a chart an amount by a legacy name."""
    text, parts = source.text, _Parts(source)
    comments, done = Comments(text, sign_of(source)), set[int]()
    for each in find(text, (RESOURCE_TEXT,), settings):
        part = parts.around(each.start)
        if part is None or part in done or comments.hold(each.start):
            continue
        is_key = _AS_KEY.match(text, each.end) is not None
        line_start = text.rfind("\n", 0, each.start) + 1
        is_said = not source.path.endswith(_PROSE) or "--set" in text[line_start : each.start]
        if is_said and parts.may_give(part, settings, is_key=is_key):
            done.add(part)
            yield Place(source.place(each.start, each.start).line, parts.charts(part))


def charts_at(source: Source, lines: Iterable[int]) -> frozenset[str] | None:
    """The names of the charts that the parts with these lines are for; None: of any."""
    parts, found = _Parts(source), set[str]()
    for part in {parts.around(source.index(line)) for line in lines}:
        names = None if part is None else parts.charts(part)
        if names is None:
            return None
        found |= names
    return frozenset(found)


class _Parts:
    def __init__(self, source: Source) -> None:
        self._text = source.text
        self._name = source.path.rpartition("/")[2]
        self._is_yaml = source.path.endswith(_YAML) or source.kind == "yaml"
        self._is_values = self._is_yaml or "values" in self._name
        if source.kind == _MARKDOWN:
            self._spans = [(each.start, each.end) for each in fences(source.text)]
            self._is_yaml = self._is_values = True
        else:
            cuts = [e.start() for e in _DOCUMENT.finditer(self._text)] if self._is_yaml else []
            self._spans = [*zip([0, *cuts], [*cuts, len(self._text)], strict=True)]
        self._starts = [start for start, _ in self._spans]
        self._may: dict[tuple[int, bool], bool] = {}
        self._charts: dict[int, frozenset[str] | None] = {}

    def around(self, at: int) -> int | None:
        """The number of the part with this place; None: it is in prose."""
        number = bisect_right(self._starts, at) - 1
        return number if number >= 0 and at <= self._spans[number][1] else None

    def may_give(self, part: int, settings: Settings, *, is_key: bool) -> bool:
        """Whether a legacy name in this part may be an amount for a chart."""
        key = (part, is_key)
        if key not in self._may:
            self._may[key] = self._gives(part, settings, is_key=is_key)
        return self._may[key]

    def _gives(self, part: int, settings: Settings, *, is_key: bool) -> bool:
        text = self._of(part)
        kinds = _KIND.findall(text) if self._is_yaml else []
        if not kinds:
            is_values = self._is_values and is_key
            return is_values or bool(_HELM.search(self._name) or _HELM.search(text))
        if all(is_known_kind(each, settings) for each in kinds):
            return _COMMAND.search(text) is not None
        return _HELM.search(_LABELS.sub("", text)) is not None

    def charts(self, part: int) -> frozenset[str] | None:
        """The names of the charts that a part is for; None: of any."""
        if part not in self._charts:
            self._charts[part] = self._named(self._of(part)) if self._is_yaml else None
        return self._charts[part]

    def _named(self, text: str) -> frozenset[str] | None:
        patterns = (_CHART, _PATH) if _IS_ARGO.search(text) else (_CHART,)
        said = [each["name"] for pattern in patterns for each in pattern.finditer(text)]
        said = [e for e in said if not e.endswith(":") and (e[:1] != "{" or e[:2] == "{{")]
        names = {_PACKED.sub("", each.rstrip("/").rpartition("/")[2]) for each in said}
        is_open = not names or any("{" in each or "$" in each for each in said) or "." in names
        return None if is_open else frozenset(names)

    def _of(self, part: int) -> str:
        start, end = self._spans[part]
        return self._text[start:end]
