"""Manifests in documents: code blocks, and here-documents in the commands of such blocks.

Each is migrated like a template, because documents leave text out: `...`, `<name>`, `$N`, and the
tags of site generators. Prose, the output of commands and blocks in quotations are never edited:
each line of a quotation begins with >, so what the rules add would not fit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from webhook.core.modes import IGNORE
from webhook.core.text_patterns import find
from webhook.files.results import Plan, Skipped
from webhook.formats import legacy_pods
from webhook.formats.fences import fences
from webhook.formats.file_objects import AMOUNTS
from webhook.formats.mentions import Spans
from webhook.formats.opt_outs import with_namespaces
from webhook.formats.templated import Done, stable
from webhook.rules import PATTERNS
from webhook.templates import actions
from webhook.templates.regions import Region, here_documents, manifests, split
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.text_patterns import Match
    from webhook.files.results import FileResult, Located
    from webhook.files.source import Source
    from webhook.templates.actions import Template

_MANIFESTS = {
    "",
    "yaml",
    "yml",
    "json",
    "json5",
    "text",
    "txt",
    "helm",
    "jinja",
    "jinja2",
    "kubernetes",
}
_SHELL = {"", "sh", "bash", "shell", "zsh", "console", "terminal", "shell-session", "text", "txt"}

# Marks for omitted text. A mark on a line of its own may stand for any lines.
_LEFT_OUT = re.compile(
    r"^[ \t]*(?:\[ ?\.\.\.[^\]\r\n]*\]|\.\.\.|…|<\.\.\.>)[ \t]*(?=\r?$)"
    r"|(?<=: )[\"']?(?:<[\w .-]+>|\$\{?\w+\}?)[\"']?(?=[ \t]*(?:#|\r?$))",
    re.MULTILINE,
)
_SHELL_VALUE = re.compile(r"\$\{[^}\r\n]*\}|\$\([^)\r\n]*\)|\$\w+|`[^`\r\n]*`")
_AFTER_KEY = re.compile(r"[\"']?[ \t]*:")
_NEAR = 100  # characters
_OF_PODS = legacy_pods.OF_CHOICES - AMOUNTS
_LANGUAGES = _MANIFESTS - _SHELL
# What stands before a value in a manifest: `path: `, `- key: "`.
_BEFORE_VALUE = re.compile(r"(?:^|[\s{,\"'])[\w./-]+[\"']?[ \t]*:[ \t]*[\"']?$")
_QUOTED = "each line of the block begins with >"


def migrate(source: Source, plan: Plan) -> FileResult:
    """Migrate the manifests in a document."""
    return stable(source, plan, _migrate)


def _migrate(source: Source, plan: Plan) -> FileResult:
    blocks = [(Region(each.start, each.end), each) for each in fences(source.text)]
    for at, _ in blocks:
        plan = with_namespaces(plan, source.text[at.start : at.end])
    done = Done(source, plan, actions.Template(source.text, [], []), prose=True)
    quoted: list[Region] = []
    shown = _Shown()
    for at, each in blocks:
        if ">" in each.before:
            quoted.append(at)
        elif _is_of_interest(source, at, plan) and _add(done, at, each.language):
            shown.add(source.text, at, each.language)
    return done.result(_mentions(quoted, shown, done, plan))


def _mentions(quoted: list[Region], shown: _Shown, done: Done, plan: Plan) -> Iterator[Located]:
    """The mentions; blocks in quotations are skipped, and a key in them is manual.

    So is what stays in a manifest in parts: readers put the parts of several blocks into one pod.
    """
    source = done.source
    for at in quoted:
        place = source.place(at.start, at.end)
        if IGNORE in source.text[at.start : at.end]:  # it is unknown which of its pods has it
            done.left_alone.append(place)
        elif _is_of_interest(source, at, plan):
            reason = f"{_QUOTED}, so the rules did not run on it: check it manually"
            done.skipped.append(Skipped(reason, source.first_line(place)))
    spans = Spans((at.start, at.end) for at in quoted)
    for each in done.mentions(prose=lambda match: not shown.hold(source.text, match)):
        begin = source.index(each.place.line, each.place.column)
        is_held = spans.hold(begin) and is_key(source.text, each, source)
        yield each.undone(_QUOTED) if is_held else each


def _here_documents(text: str, region: Region) -> Iterator[tuple[Region, str]]:
    """The here-documents of a script, each with the line that opens it."""
    inside = text[region.start : region.end]
    for each in here_documents(inside):
        end = inside.rfind("\n", 0, each.start)
        opening = inside[inside.rfind("\n", 0, end) + 1 : end]
        yield Region(region.start + each.start, region.start + each.end), opening


def add_here_documents(done: Done, region: Region) -> list[Region]:
    """Migrate the here-documents of a script, and return them."""
    text = done.source.text
    found = []
    for each, opening in _here_documents(text, region):
        found.append(each)
        is_literal = re.search(r"<<-?[ \t]*[\"'\\]", opening) is not None
        template = _only(text, each, None if is_literal else _SHELL_VALUE)
        # The shell removes backslashes, and would remove them from inserted text, too.
        plain = is_literal or not re.search(r"[\\]", text[each.start : each.end])
        for part in _parts(template, each):
            done.add(part, template, frozenset() if plain else AMOUNTS)
    return found


def _add(done: Done, region: Region, language: str) -> bool:
    """Migrate a block; whether it may be a manifest."""
    scripts = add_here_documents(done, region) if language in _SHELL else []
    if scripts or language not in _MANIFESTS:
        return False
    template = _only(done.source.text, region, _LEFT_OUT)
    for part in _parts(template, region):
        done.add(part, template)
    return True


class _Shown:
    """The blocks with parts of manifests, and the rules whose words count in each."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._blocks: list[tuple[int, frozenset[str]]] = []  # the end, and codes

    def add(self, text: str, region: Region, language: str) -> None:
        """Note a block; in one without a language, amounts may be what a command printed."""
        is_named = language in _LANGUAGES
        if is_named or _is_yaml(text[region.start : region.end]):
            self._starts.append(region.start)
            self._blocks.append((region.end, legacy_pods.OF_CHOICES if is_named else _OF_PODS))

    def hold(self, text: str, match: Match) -> bool:
        """Whether the match is a key or a value in such a block."""
        number = bisect_right(self._starts, match.start) - 1
        if number < 0 or match.start >= self._blocks[number][0]:
            return False
        before = text[text.rfind("\n", 0, match.start) + 1 : match.start][-_NEAR:]
        is_key = _AFTER_KEY.match(text, match.end) is not None
        return match.code in self._blocks[number][1] and (
            is_key or _BEFORE_VALUE.search(before) is not None
        )


def _is_yaml(text: str) -> bool:
    stream = documents.read(text)
    found = [each.data for each in stream.documents]
    return not stream.unread and any(isinstance(each, dict | list) for each in found)


def _parts(template: Template, region: Region) -> Iterator[Region]:
    """The manifests of a block; or its parts between `---`."""
    found = manifests(template.blanked, region)
    yield from found or split(template.blanked, region)


def _only(text: str, region: Region, placeholders: re.Pattern[str] | None) -> Template:
    """The text with only this region, so that no tag elsewhere counts."""
    before = actions.blank_until(text, region.start)
    return actions.read(before + text[region.start : region.end], placeholders, region.start)


def _is_of_interest(source: Source, region: Region, plan: Plan) -> bool:
    """Whether it has a legacy word, or requests GPUs: then a mistake in a guide matters."""
    text, settings = source.text[region.start : region.end], plan.settings
    if next(find(text, PATTERNS, settings), None) is not None:
        return True
    names = {settings.gpu_resource, *(each.rstrip("*") for each in settings.gpu_resources)}
    return "limits" in text and any(name in text for name in names)


def is_key(text: str, located: Located, source: Source) -> bool:
    """Whether the match is a key, as in a manifest."""
    end = source.index(located.place.end_line, located.place.end_column)
    return _AFTER_KEY.match(text, end) is not None
