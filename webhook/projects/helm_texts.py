"""Which places of a text may give values to charts, and to which: a text in, lines and charts out.

They are in parts of a text: a document of YAML, a code block of Markdown, a whole program. A part
counts if it has words of Helm, or if it is a map without a kind, which may be values. An object of
Kubernetes counts if it installs charts, or runs a command that does. Comments, change logs, what a
command printed and commands of kubectl give nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from webhook.core.text_patterns import RESOURCE_TEXT, find
from webhook.evaluation.workloads import is_known_kind
from webhook.formats.fences import fences
from webhook.formats.mentions import Comments, sign_of
from webhook.kube.pod import as_map
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.core.settings import Settings
    from webhook.files.source import Source

_HELM = re.compile(
    r"(?i:helm|\bcharts?\b|\bchart_?(?:name|path|ref)|\bvalues?_?files?\b|release_values)"
    r"|--set\b|\bApplication(?:Set)?\b|fluxcd\.io|cattle\.io|\bvalues[\w-]*\.ya?ml"
    r"|\bvalues(?:Content|Object|Inline|Template|From)\b|\bvalues[\"']?:[ \t]*[|>]|\banswers\b"
)
_COMMAND = re.compile(
    r"--set\b|\bhelm3?\b(?![\"',\s]+plugin\b)[^\n|;&]*?\b(?:upgrade|install|template)\b[\"']?"
    r"(?P<rest>(?:(?!\bhelm3?[\"',\s]+(?:upgrade|install|template)\b)[^\n|;&#])*)"
)
_NEXT = re.compile(r"&&|\|\||;")  # between commands
_KUBECTL = re.compile(r"\b(?:kubectl|oc)\b")
_LABELS = re.compile(
    r"^[ \t]*[\"']?(?:helm\.sh/chart|chart|release|heritage|meta\.helm\.sh/[\w-]+"
    r"|app\.kubernetes\.io/[\w-]+)[\"']?[ \t]*:.*$",
    re.MULTILINE,
)
_KIND = re.compile(
    r"(?:^|[{,])[ \t]*(?:-[ \t]+)?[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?(\w+)", re.MULTILINE
)
_KEY = re.compile(r"[\w.-]+")
_MAP = re.compile(r"(?:\s*#[^\n]*\n|\s*---\s*\n)*\s*(?:\{|[\w.\"'-]+:\s)")
_LONGEST = 1_000_000  # characters of a file of values
_NEAR = 2_000  # characters of a line, before a place and behind it
_AS_KEY = re.compile(r"[\\\"']*[ \t]*:")
_ASSIGNED = re.compile(
    r"[ \t]*(?:-[ \t]+|export[ \t]+)?(?P<name>[\w.-]+)[\"']?[ \t]*[:?]?[:=][ \t]*[\"']?"
)
_DOCUMENT = re.compile(r"^---(?=\s)", re.MULTILINE)
_CHART = re.compile(
    r"\bchart(?:Name|Path|_name|_path|_ref|Ref)?[\"']?[ \t]*[:=]\s*"
    r"(?P<quote>[\"'])?(?P<name>(?:\$\{[^}\s]*\}|[^\s\"',}])+)",
    re.IGNORECASE,
)
_PATH = re.compile(r"\bpath[\"']?[ \t]*:[ \t]*[\"']?(?P<name>[^\s\"',}]+)")
_IS_ARGO = re.compile(r"\bkind[\"']?[ \t]*:[ \t]*[\"']?Application")
_PACKED = re.compile(r"-v?\d[\w.+-]*\.tgz$")
_WORD = re.compile(r"(?:\"[^\"\n]*\"|'[^'\n]*'|\$\([^)\n]*\)|[^\s\"'()\[\],]|,(?![\s\"']))+")
_VALUED = re.compile(  # flags of helm with a value that is no chart
    r"-[fn]|--(?:set[\w-]*|values|name|namespace|version|timeout|repo|kube[\w-]*|history-max)"
)
_OPEN = re.compile(r"[${}*<%]")
_LOG = re.compile(r"(?:^|/)(?:change(?:s|log)|history|news|release[-_]?notes)[^/]*$", re.IGNORECASE)
_PROMPT = re.compile(r"^[ \t]*(?:\(\w+\)[ \t]*)?\$[ \t]", re.MULTILINE)
_OUTPUT = ("console", "output", "log")
_PRINTED = re.compile(r"^[ \t]*(?:Allocatable|Capacity|Allocated resources):", re.MULTILINE)
_YAML = (".yaml", ".yml", ".json", ".j2", ".tpl", ".tmpl", ".gotmpl", ".toml")
_PROSE = (".rst", ".adoc", ".asciidoc", ".txt", ".html", ".htm", ".ipynb", ".org", ".log")
_PROGRAMS = (
    *(".py", ".go", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".java", ".kt", ".kts", ".scala"),
    *(".groovy", ".cs", ".rs", ".swift", ".proto", ".cue", ".c", ".h", ".cc", ".cpp", ".rb", ".r"),
    *(".php", ".pl", ".lua", ".jl", ".sql", ".css", ".jsonnet", ".libsonnet", ".nix"),
)
TERRAFORM = (".tf", ".tfvars", ".hcl", ".tf.json", ".tfvars.json")
_DATA = {"ConfigMap", "Secret"}
_MARKDOWN = "markdown"


class Place(NamedTuple):
    """A line with a legacy name, and the names of the charts that it is for; None: of any."""

    line: int
    charts: frozenset[str] | None


def places(
    source: Source,
    settings: Settings,
    is_included: Callable[[], bool],
    is_key_elsewhere: Callable[[str], bool],
) -> Iterator[Place]:
    """The first place in each part, for each chart, that may give it an amount by a legacy name.

    `is_included` says whether a text about Helm includes this one, with its variables, and
    `is_key_elsewhere` whether a text has a variable where the name of a value is.
    """
    parts, done = Parts(source), set[tuple[int, frozenset[str] | None]]()
    for each in find(source.text, (RESOURCE_TEXT,), settings):
        part = parts.around(each.start)
        if part is None or (part, None) in done or parts.is_said(each.start):
            continue
        is_key = _AS_KEY.match(source.text, each.end) is not None
        charts = parts.charts(each.start)
        if (part, charts) not in done and (
            parts.may_give(part, settings, is_key=is_key)
            or ((is_key or parts.is_assigned(each.start)) and is_included())
            or ((name := parts.variable(each.start)) and is_key_elsewhere(name))
        ):
            done.add((part, charts))
            yield Place(source.place(each.start, each.start).line, charts)


def charts_at(source: Source, places: Iterable[int]) -> frozenset[str] | None:
    """The names of the charts that these places are for; None: of any."""
    parts, found = Parts(source), set[str]()
    for each in places:
        names = parts.charts(each)
        if names is None:
            return None
        found |= names
    return frozenset(found)


class Parts:
    """The parts of a text that may give values to charts."""

    def __init__(self, source: Source) -> None:
        self._text = source.text
        self._path = source.path
        self._name = source.path.rpartition("/")[2]
        self._is_yaml = source.path.endswith(_YAML) or source.kind == "yaml"
        self._is_program = source.path.endswith(_PROGRAMS)
        self._comments = Comments(source.text, sign_of(source))
        self.is_map = not self._is_yaml and not self._is_program and self._reads_as_map()
        self._is_values = self._is_yaml or self.is_map or "values" in self._name
        self._printed: list[bool] = []
        if source.kind == _MARKDOWN:
            blocks = [*fences(source.text)]
            self._spans = [(each.start, each.end) for each in blocks]
            self._printed = [each.language in _OUTPUT for each in blocks]
            self._is_yaml = self._is_values = True
        else:
            cuts = [e.start() for e in _DOCUMENT.finditer(self._text)] if self._is_yaml else []
            self._spans = [*zip([0, *cuts], [*cuts, len(self._text)], strict=True)]
        self._starts = [start for start, _ in self._spans]
        self._may: dict[tuple[int, bool], bool] = {}
        self._charts: dict[int, frozenset[str] | None] = {}

    def _reads_as_map(self) -> bool:
        """Whether a file of another ending is a map of YAML, which helm takes as values."""
        if not _MAP.match(self._text) or len(self._text) > _LONGEST:
            return False
        stream = documents.read(self._text)
        data = as_map(stream.documents[0].data) if stream.documents else {}
        return bool(data) and not stream.unread and all(_KEY.fullmatch(str(e)) for e in data)

    def around(self, at: int) -> int | None:
        """The number of the part with this place; None: it is in prose."""
        number = bisect_right(self._starts, at) - 1
        return number if number >= 0 and at <= self._spans[number][1] else None

    def is_said(self, at: int) -> bool:
        """Whether the place is only read by people, or is in a command of another program."""
        line = self._line(at)
        if self._comments.hold(at) or _LOG.search(self._path):
            return True
        if _KUBECTL.search(line) and "helm" not in line:
            return True
        if self._path.endswith(_PROSE) and not self.is_map:
            return "--set" not in line
        part = self.around(at)
        if part is None or not self._printed:
            return False
        block = self._of(part)
        if self._printed[part] or _PROMPT.search(block):
            return _PROMPT.match(line) is None
        return _PRINTED.search(block) is not None

    def is_assigned(self, at: int) -> bool:
        """Whether a name gets what is here: a variable, or a key in Terraform."""
        return bool(self.variable(at)) or self._path.endswith(TERRAFORM)

    def variable(self, at: int) -> str:
        """The name of the variable that gets what is here, if any."""
        start = self._text.rfind("\n", 0, at) + 1
        found = _ASSIGNED.fullmatch(self._text, start, at)
        return found["name"] if found else ""

    def _line(self, at: int) -> str:
        return "".join(self._split_line(at))

    def _split_line(self, at: int) -> tuple[str, str]:
        """The line before a place and behind it, with those that a backslash joins to it."""
        first, last = max(0, at - _NEAR), min(len(self._text), at + _NEAR)
        start, end = self._text.rfind("\n", first, at) + 1, self._text.find("\n", at, last)
        while start > 1 and self._text[start - 2] == "\\":
            start = self._text.rfind("\n", first, start - 1) + 1
        while end > 0 and self._text[end - 1] == "\\":
            end = self._text.find("\n", end + 1, last)
        before, behind = (
            self._text[max(start, first) : at],
            self._text[at : end if end >= 0 else last],
        )
        return before.replace("\\\n", " "), behind.replace("\\\n", " ")

    def may_give(self, part: int, settings: Settings, *, is_key: bool) -> bool:
        """Whether a legacy name in this part may be an amount for a chart."""
        key = (part, is_key)
        if key not in self._may:
            self._may[key] = self._gives(part, settings, is_key=is_key)
        return self._may[key]

    def may_set(self, part: int, settings: Settings) -> bool:
        """Whether a value in this part may be one of a chart, or a variable of one."""
        kinds = set(_KIND.findall(self._of(part))) if self._is_yaml else set()
        is_data = not self._is_program and kinds <= _DATA
        return is_data or self.may_give(part, settings, is_key=True)

    def _gives(self, part: int, settings: Settings, *, is_key: bool) -> bool:
        text = self._of(part)
        kinds = _KIND.findall(text) if self._is_yaml else []
        if not kinds:
            is_values = self._is_values and is_key
            return is_values or bool(_HELM.search(self._name)) or self.is_about_helm(part)
        if all(is_known_kind(each, settings) for each in kinds):
            return _COMMAND.search(text) is not None
        return _HELM.search(_LABELS.sub("", text)) is not None

    def is_about_helm(self, part: int) -> bool:
        """Whether a part has words of Helm, besides comments."""
        found = _HELM.finditer(self._text, *self._spans[part])
        return any(not self._comments.hold(each.start()) for each in found)

    def charts(self, at: int) -> frozenset[str] | None:
        """The names of the charts that a place is for; None: of any."""
        line, behind = self._split_line(at)
        here = len(line)
        first = max((each.end() for each in _NEXT.finditer(line)), default=0)
        last = _NEXT.search(behind)
        whole = line + (behind[: last.start()] if last else behind)
        commands = [each for each in _COMMAND.finditer(whole, first) if each["rest"]]
        if commands:
            its = [each for each in commands if each.start() <= here] or commands
            return _of_command(its[-1]["rest"])
        part = self.around(at)
        if part is None:
            return None
        if part not in self._charts:
            self._charts[part] = self._named(self._of(part).replace("\\\n", " "))
        return self._charts[part]

    def _named(self, text: str) -> frozenset[str] | None:
        found = set[str]()
        for each in _COMMAND.finditer(text):
            if each["rest"]:
                names = _of_command(each["rest"])
                if names is None:
                    return None
                found |= names
        patterns = (_CHART, _PATH) if _IS_ARGO.search(text) else (_CHART,)
        said = [each["name"] for pattern in patterns for each in pattern.finditer(text)]
        said = [e for e in said if not e.endswith(":") and (e[:1] != "{" or e[:2] == "{{")]
        lasts = [each.rstrip("/").rpartition("/")[2] for each in said]
        is_open = any("{" in each or "$" in each or each in {".", ""} for each in lasts)
        is_open |= not self._is_yaml and any(not each["quote"] for each in _CHART.finditer(text))
        found |= {_PACKED.sub("", each) for each in lasts}
        return None if is_open or not found else frozenset(found)

    def _of(self, part: int) -> str:
        start, end = self._spans[part]
        return self._text[start:end]


def _of_command(rest: str) -> frozenset[str] | None:
    """The names that may be of the chart in what stands behind `helm upgrade`; None: of any.

    In a list of arguments, a word without quotes is a variable.
    """
    is_list = rest.lstrip()[:1] == ","
    if is_list:
        rest = re.split(r"[\])]", rest, maxsplit=1)[0]
    words, plain = _WORD.findall(rest.replace("\\", "")), list[str]()
    for before, word in zip(["", *words], words, strict=False):
        each = word.strip("\"'")
        if each[:1] == "-" or "=" in each or _VALUED.fullmatch(before.strip("\"'")):
            continue
        if is_list and word == each and word.strip(","):
            return None
        if each.strip(","):
            plain.append(each.rstrip("/"))
    charts = plain[1:] or [each for each in plain if "/" in each]  # the first may be a release
    lasts = [each.rpartition("/")[2] for each in charts]
    is_open = not charts or any(not each.strip(".") or _OPEN.search(each) for each in lasts)
    return None if is_open else frozenset(_PACKED.sub("", e.rpartition("/")[2]) for e in plain)
