"""Manifests in documents: code blocks, and here-documents in the commands of such blocks.

Each is migrated like a template, because documents leave text out: `...`, `<name>`, `$N`, and the
tags of site generators. Prose, the output of commands and blocks in quotations are never edited:
each line of a quotation begins with >, so what the rules add would not fit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webhook.core.modes import IGNORE
from webhook.core.text_patterns import find
from webhook.files.results import Plan, Skipped
from webhook.formats.fences import fences
from webhook.formats.file_objects import AMOUNTS
from webhook.formats.mentions import Spans
from webhook.formats.opt_outs import with_namespaces
from webhook.formats.templated import Done, stable
from webhook.rules import PATTERNS
from webhook.templates import actions
from webhook.templates.regions import Region, here_documents, manifests, split

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    for at, each in blocks:
        if ">" in each.before:
            quoted.append(at)
        elif _is_of_interest(source, at, plan):
            _add(done, at, each.language)
    return done.result(_mentions(quoted, done, plan))


def _mentions(quoted: list[Region], done: Done, plan: Plan) -> Iterator[Located]:
    """The mentions; blocks in quotations are skipped, and a key in them is manual."""
    source = done.source
    for at in quoted:
        place = source.place(at.start, at.end)
        if IGNORE in source.text[at.start : at.end]:  # it is unknown which of its pods has it
            done.left_alone.append(place)
        elif _is_of_interest(source, at, plan):
            reason = f"{_QUOTED}, so the rules did not run on it: check it manually"
            done.skipped.append(Skipped(reason, source.first_line(place)))
    spans = Spans((at.start, at.end) for at in quoted)
    for each in done.mentions(prose=True):
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


def _add(done: Done, region: Region, language: str) -> None:
    scripts = add_here_documents(done, region) if language in _SHELL else []
    if scripts or language not in _MANIFESTS:
        return
    template = _only(done.source.text, region, _LEFT_OUT)
    for part in _parts(template, region):
        done.add(part, template)


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
    return re.match(r"[\"']?[ \t]*:", text[end : end + 5]) is not None
