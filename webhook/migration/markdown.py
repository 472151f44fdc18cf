"""Manifests in documents: code blocks, and here-documents in the commands that these show.

Each goes down the road of templates, since documents leave things out: `...`, `<name>`, `$N`, and
the tags of site generators. Prose and what commands print is never edited.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webhook.core import text_patterns
from webhook.migration import template_actions
from webhook.migration.at_rest import AMOUNTS, with_namespaces
from webhook.migration.fences import fences, odd_backticks
from webhook.migration.regions import Region, here_documents, manifests, split
from webhook.migration.results import Located, Status
from webhook.migration.templated import Done, stable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.migration.results import FileResult, Plan
    from webhook.migration.source import Source
    from webhook.migration.template_actions import Template

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

# What a document writes for what it leaves out. On a line of its own it may stand for any lines.
_LEFT_OUT = re.compile(
    r"^[ \t]*(?:\[ ?\.\.\.[^\]\r\n]*\]|\.\.\.|…|<\.\.\.>)[ \t]*(?=\r?$)"
    r"|(?<=: )[\"']?(?:<[\w .-]+>|\$\{?\w+\}?)[\"']?(?=[ \t]*(?:#|\r?$))",
    re.MULTILINE,
)
_SHELL_VALUE = re.compile(r"\$\{[^}\r\n]*\}|\$\([^)\r\n]*\)|\$\w+|`[^`\r\n]*`")
_ODD = (
    "three backticks stand for inline code here, and readers do not agree where the code blocks "
    "of such a document begin: nothing is edited; write one backtick, and run again"
)


def migrate(source: Source, plan: Plan) -> FileResult:
    """Migrate the manifests in a document."""
    return stable(source, plan, _migrate)


def _migrate(source: Source, plan: Plan) -> FileResult:
    for fence in fences(source.text):
        plan = with_namespaces(plan, source.text[fence.start : fence.end])
    done = Done(source, plan, template_actions.Template(source.text, [], []), prose=True)
    odd = odd_backticks(source.text)
    if odd is None:
        for fence in fences(source.text):
            region = Region(fence.start, fence.end)
            if _is_of_interest(source, region, plan):
                _add(done, region, fence.language)
    more = done.mentions(prose=True)
    if odd is not None and any(_is_key(source.text, each, source) for each in more):
        place = source.place(odd, odd + 3)
        more.append(Located(more[0].code, _ODD, Status.PERSON, place))
    return done.result(more)


def add_here_documents(done: Done, region: Region) -> list[Region]:
    """Migrate the here-documents of a script, and give them."""
    text = done.source.text
    inside = text[: region.end]
    found = [each for each in here_documents(inside) if each.start >= region.start]
    for each in found:
        opening = text[: each.start].rstrip("\r\n").rsplit("\n", 1)[-1]
        is_literal = re.search(r"<<-?[ \t]*[\"'\\]", opening) is not None
        template = _only(text, each, None if is_literal else _SHELL_VALUE)
        # The shell takes backslashes away, and would take more from what is written anew.
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
    """The manifests of a block; or all of it, by its `---`."""
    found = manifests(template.blanked)
    yield from found or split(template.blanked, region)


def _only(text: str, region: Region, placeholders: re.Pattern[str] | None) -> Template:
    """The text with nothing but this region in it, so that no tag elsewhere counts."""
    before = template_actions.blank(text[: region.start])
    return template_actions.read(before + text[region.start : region.end], placeholders)


def _is_of_interest(source: Source, region: Region, plan: Plan) -> bool:
    """Whether it has a legacy word, or asks for GPUs: what does not fit is as wrong in a guide."""
    text, settings = source.text[region.start : region.end], plan.settings
    if next(text_patterns.find(text, settings), None) is not None:
        return True
    names = {settings.gpu_resource, *(each.rstrip("*") for each in settings.gpu_resources)}
    return "limits" in text and any(name in text for name in names)


def _is_key(text: str, located: Located, source: Source) -> bool:
    """Whether what was found is the name of something, as in a manifest."""
    end = source.index(located.place.end_line, located.place.end_column)
    return re.match(r"[\"']?[ \t]*:", text[end : end + 5]) is not None
