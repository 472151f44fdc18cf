"""Finds legacy names where no rule runs: in comments, prose and data for other programs."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from webhook.core.modes import Mode
from webhook.core.rule import Trait
from webhook.core.text_patterns import RESOURCE_TEXT, Match, find
from webhook.evaluation.repair_record import ANNOTATION
from webhook.files.results import Located, Plan, Status
from webhook.files.source import OBJECT, Source
from webhook.formats.file_objects import context
from webhook.formats.old_clusters import OldClusters
from webhook.formats.packages import Packages
from webhook.kube.canonical import parsed
from webhook.kube.managed_fields import LAST_APPLIED
from webhook.kube.pod import as_map
from webhook.rules import PATTERNS, codes, legacy_resource, model_label
from webhook.templates import ytt
from webhook.yamlpatch.places import Replacement
from webhook.yamlpatch.style import line_start

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from webhook.core.settings import Settings
    from webhook.yamlpatch.places import Place

_YAML_COMMENT = re.compile(rf"(?:^|\s)(?!{ytt.CODE})#")
_SLASHES = re.compile(r"(?:^|\s)//")
_EITHER = re.compile(r"(?:^|\s)(?://|#)")
_WITH_SLASHES = (
    *(".go", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".java", ".scala", ".kt", ".kts"),
    *(".groovy", ".gradle", "Jenkinsfile", ".cs", ".rs", ".swift", ".proto", ".cue"),
    *(".c", ".h", ".cc", ".cpp", ".hpp"),
)
_WITH_EITHER = (".jsonnet", ".libsonnet", ".tf", ".tfvars", ".hcl", ".php")
# From the begin of a line, because it may also stand in a text.
_BLOCK_COMMENT = re.compile(r"^[ \t]*/\*.*?(?:\*/|\Z)", re.DOTALL | re.MULTILINE)
_PROGRAMS = (".go", ".py", ".sh", ".bash", ".zsh", ".ksh")
# A text in quotes; a double one may go on in the next line, an apostrophe is in a word.
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.?)*(?:\"|$)|(?<!\w)'[^']*'")
_QUOTES = ('"', "'", "`")
_TEMPLATE_COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}|\{#.*?#\}", re.DOTALL)
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ENV_VALUE = re.compile(r"\s*(?:-\s+)?[\"']?value[\"']?\s*:")
# The last applied configuration of kubectl, the record of a repair, and the list of amounts that a
# LimitRange added to a Pod: their programs rewrite all of them.
_NOTES = (LAST_APPLIED, ANNOTATION, "kubernetes.io/limit-ranger")
_KEY = rf"(?:{'|'.join(map(re.escape, _NOTES))})[\"']?[ \t]*:[ \t]*"
_INDENTED = r"\n(?!\s*\n)[ \t]"  # a quoted string continues on the next line
_RECORD = re.compile(
    rf"^(?P<indent>[ \t]*)[\"']?{_KEY}[|>][^\n]*(?:\n(?:(?P=indent)[ \t][^\n]*|[ \t]*(?=\n)))*"
    rf"|{_KEY}(?:'(?:[^'\n]|''|{_INDENTED})*'|\"(?:[^\"\\\n]|\\.|\\?{_INDENTED})*\""
    rf"|(?:[|>][^\n]*\n)?[^\n]*)",
    re.MULTILINE,
)
_API_VERSION = re.compile(r"\s*(?:-\s+)?apiVersion:\s+[\"']?")
_DESCRIPTION = re.compile(r"[ \t]*(?:-[ \t]+)?[\"']?description[\"']?[ \t]*:")
_OPENAPI = re.compile(r"^[\"']?(?:swagger|openapi)[\"']?:[ \t]+[\"']?[0-9]", re.MULTILINE)
_LONGEST_DESCRIPTION = 100  # lines
_BLANKS = re.compile(" *")
_BLANK_LINE = re.compile(r"[^\S\n]*(?:\n|\Z)")
_COMMENT_ONLY = re.compile(r"[^\S\n]*#")
# Before a resource that a patch in a command asks for; escapes, in a text.
_ASKS = re.compile(r"\b(?:limits|requests)[\\\"']*[ \t]*:[ \t]*\{[^{}\n]*[\\\"']*$")
_LONGEST_LIMITS = 500  # characters
_KEY_END = re.compile(r"[\"']?[ \t]*:")
# A finding about an annotation or a whole text covers all words in it.
_OF_TEXTS = codes(Trait.TEXT)
_VERSIONS = codes(Trait.VERSION)


def nowhere(_match: Match) -> bool:
    """The text has no prose."""
    return False


def everywhere(_match: Match) -> bool:
    """All of the text is prose."""
    return True


def mentions(  # noqa: PLR0913  # the text, what is known of it, and where nothing is reported
    source: Source,
    plan: Plan,
    reported: Reported | Container[tuple[int, str]],
    *,
    prose: Callable[[Match], bool] = nowhere,
    left_alone: Iterable[Place] = (),
    right: Iterable[tuple[int, int]] = (),
    more: Iterable[Match] = (),
    written: Sequence[Replacement] = (),
) -> Iterator[Located]:
    """The matches of the patterns, and `more`, on lines not in `reported`, unless the rule is off.

    In `prose` and in comments they are notices; elsewhere manual. Opted-out pods have none, and
    neither have descriptions of an API and lists of packages, which list all versions, and model
    labels in spans that are `right`. `written` are the edits of the text. In JSON, where a whole
    file may be one line, each line has a match only once.
    """
    if _describes_api(source):
        return
    repeated: set[tuple[int, str]] = set()
    alone = {line for each in left_alone for line in range(each.line, each.end_line + 1)}
    template = "" if source.kind == OBJECT else source.text
    has_blocks = "/*" in source.text and source.path.endswith((*_WITH_SLASHES, *_WITH_EITHER))
    blocks = (_BLOCK_COMMENT,) if has_blocks else ()
    comments = _spans(template, _TEMPLATE_COMMENT, _HTML_COMMENT, *blocks)
    lines = Comments(source.text, sign_of(source))
    versions = OldClusters(template, plan.target, written)
    has_record = any(map(source.text.__contains__, _NOTES))
    records = _spans(source.text, *((_RECORD,) if has_record else ()))
    labels, packages = Spans(right), Packages(source)
    modes = context({}, plan).modes  # of an object without a namespace
    for match in chain(find(source.text, PATTERNS, plan.settings), more):
        place = source.place(match.start, match.end)
        if place.line in alone or not plan.asks(match.code):
            continue
        if modes.of_code(match.code) is Mode.OFF:
            continue
        if (place.line, "") in reported or (place.line, match.code) in reported:
            continue
        if records.hold(match.start):
            continue
        if match.code == model_label.CODE and labels.hold(match.start):
            continue
        is_version = match.code in _VERSIONS
        if is_version and packages.is_list:
            continue
        commented = comments.hold(match.start)
        commented = commented or lines.hold(match.start)
        is_notice = commented or (is_version and (packages.hold(match) or versions.hold(match)))
        is_notice = is_notice or _is_description(source.text, match.start)
        is_notice = is_notice or (source.path.endswith(".go") and _is_prose(source.text, match))
        is_notice = is_notice or (prose(match) and not _is_for_manifest(source.text, match))
        message = _message(source.text, match, commented=commented)
        if source.kind == "json" and (place.line, message) in repeated:
            continue
        repeated.add((place.line, message))
        status = Status.NOTICE if is_notice else Status.MANUAL
        suggestion = () if is_notice else _of_constant(source, match, plan.settings)
        yield Located(match.code, message, status, place, suggestion=suggestion)


def _of_constant(source: Source, match: Match, settings: Settings) -> tuple[Replacement, ...]:
    """The current name for a constant of a program that is nothing but the legacy one."""
    if not source.path.endswith(_PROGRAMS):
        return ()
    names = dict.fromkeys(settings.legacy_resources, settings.gpu_resource)
    names[settings.models.legacy_label] = settings.models.key
    before = source.text[match.start - 1 : match.start]
    after = source.text[match.end : match.end + 1]
    is_whole = (before in _QUOTES and before == after) or (
        before == "=" and not after.strip(" \n;")
    )
    if not (is_whole and match.found in names):
        return ()
    return (Replacement(match.start, match.end, names[match.found]),)


def _describes_api(source: Source) -> bool:
    """Whether it is an OpenAPI document, as the API server and client generators have."""
    text = source.text
    if source.kind == "yaml" and _OPENAPI.search(text):
        return True
    if source.kind != "json" or not ('"swagger"' in text or '"openapi"' in text):
        return False
    return not as_map(parsed(text)).keys().isdisjoint({"swagger", "openapi"})


class Spans:
    """Parts of a text, sorted once for many lookups."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))

    def hold(self, at: int) -> bool:
        """Whether this place is in one of them."""
        before = bisect_right(self._starts, at)
        return before > 0 and at < self._ends[before - 1]


def _spans(text: str, *patterns: re.Pattern[str]) -> Spans:
    return Spans(found.span() for each in patterns for found in each.finditer(text))


class Comments:
    """The comments of a text.

    The comment of a line is searched only once, because lines may be long.
    """

    def __init__(self, text: str, sign: re.Pattern[str] = _YAML_COMMENT) -> None:
        self._text, self._sign = text, sign
        self._line, self._begins = -1, len(text)  # the line of the last lookup

    def hold(self, at: int) -> bool:
        """Whether this place is in a comment."""
        line = line_start(self._text, at)
        if line != self._line:
            self._line, self._begins = line, self._comment_of(line)
        return self._begins <= at

    def _comment_of(self, line: int) -> int:
        end = self._text.find("\n", line)
        text = self._text[line : end if end >= 0 else None]
        texts: Spans | None = None
        for found in self._sign.finditer(text):
            texts = texts or _spans(text, _QUOTED)
            if not texts.hold(found.end() - 1):
                return line + found.end()
        return len(self._text) + 1


def holds_configuration(source: Source, plan: Plan) -> bool:
    """Whether the legacy name has a map below it: the configuration of an operator."""
    found = find(source.text, (RESOURCE_TEXT,), plan.settings)
    return any(
        _holds_map(source.text, each.end) and not Comments(source.text).hold(each.start)
        for each in found
    )


def lines_reported(source: Source, known: Iterable[Located]) -> set[tuple[int, str]]:
    """The lines on which no more findings are needed, for all codes ("") or for one.

    A finding about a whole pod does not cover the words in it; one about a text does.
    """
    places: set[tuple[Place, str]] = set()
    fixes: dict[int, tuple[Replacement, ...]] = {}  # many findings may share one
    for each in known:
        place = each.place
        is_whole = place.line == place.end_line or each.code in _OF_TEXTS
        places.add((place, "" if is_whole else each.code))
        fixes[id(each.fix)] = each.fix
    for fix in fixes.values():
        places.update((source.place(each.start, each.end), "") for each in fix)
    lines: set[tuple[int, str]] = set()
    for place, code in places:
        # What ends at the first column of a line, as a removed line does, has nothing of it.
        ends_before = place.end_column == 1 and place.end_line > place.line
        last = place.end_line - 1 if ends_before else place.end_line
        lines.update((line, code) for line in range(place.line, last + 1))
    return lines


class Reported:
    """Lines that need no more findings (lines_said): a byte for each, as a file may have many."""

    def __init__(self, source: Source) -> None:
        self._size = source.place(len(source.text), len(source.text)).line + 1
        self._lines: dict[str, bytearray] = {}  # by code

    def update(self, lines: Iterable[tuple[int, str]]) -> None:
        """Add lines, each with a code."""
        for line, code in lines:
            if code not in self._lines:
                self._lines[code] = bytearray(self._size)
            self._lines[code][line] = True

    def __contains__(self, each: tuple[int, str]) -> bool:
        line, code = each
        return code in self._lines and bool(self._lines[code][line])


def sign_of(source: Source) -> re.Pattern[str]:
    if source.path.endswith(_WITH_EITHER):
        return _EITHER
    return _SLASHES if source.path.endswith(_WITH_SLASHES) else _YAML_COMMENT


def _is_prose(text: str, match: Match) -> bool:
    """Whether a version is a word in a sentence of a program's text, and not a value of its own."""
    is_value = text[match.start - 1 : match.start] in _QUOTES and text[match.end :][:1] in _QUOTES
    is_version = match.code in _VERSIONS
    return is_version and not is_value and not _is_for_manifest(text, match)


def _is_for_manifest(text: str, match: Match) -> bool:
    """Whether users are meant to write it into a manifest or a patch."""
    if match.code == legacy_resource.CODE:
        limits = text[max(0, match.start - _LONGEST_LIMITS) : match.start]
        return _ASKS.search(limits) is not None
    if match.code in _VERSIONS:
        line = text.rfind("\n", 0, match.start) + 1
        return _API_VERSION.fullmatch(text, line, match.start) is not None
    is_named = match.pattern.name.endswith("-annotation")
    return is_named and _KEY_END.match(text, match.end) is not None


def _is_description(text: str, at: int) -> bool:
    """Whether it is in a description, as fields of a CustomResourceDefinition have."""
    start = text.rfind("\n", 0, at) + 1
    if _DESCRIPTION.match(text, start):
        return True
    indent = _indent(text, start)
    for _ in range(_LONGEST_DESCRIPTION):
        if not start:
            break
        start = text.rfind("\n", 0, start - 1) + 1
        if not _BLANK_LINE.match(text, start) and _indent(text, start) < indent:
            return _DESCRIPTION.match(text, start) is not None
    return False


def _indent(text: str, line: int) -> int:
    blanks = _BLANKS.match(text, line)
    return blanks.end() - line if blanks is not None else 0


def _message(text: str, match: Match, *, commented: bool) -> str:
    if commented:
        return f"in a comment: {match.message}"
    line = text.rfind("\n", 0, match.start) + 1
    if match.code == legacy_resource.CODE and _ENV_VALUE.match(text, line, match.start):
        return (
            f"{match.message}; it is data for another program here: pass the current name to that "
            "program, in every branch"
        )
    if match.code == legacy_resource.CODE and _holds_map(text, match.end):
        return (
            f"{match.message}; the map below it is the configuration of another program, not an "
            "amount: check which name that program reads now"
        )
    return match.message


def _holds_map(text: str, at: int) -> bool:
    colon = _KEY_END.match(text, at)
    if colon is None:
        return False
    rest = _BLANK_LINE.match(text, colon.end())
    return rest is not None or _COMMENT_ONLY.match(text, colon.end()) is not None
