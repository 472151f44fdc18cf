"""Manifests in documents: code blocks, and here-documents in the commands of such blocks.

Each is migrated like a template, because documents leave text out: `...`, `<name>`, `$N`, and the
tags of site generators. Prose and the output of commands are never edited.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.core.text_patterns import find
from webhook.files.results import FileResult, Located, Plan, Status
from webhook.files.source import Source
from webhook.formats.fences import fences
from webhook.formats.file_objects import AMOUNTS
from webhook.formats.opt_outs import with_namespaces
from webhook.formats.prefixes import TABS, Stripped, of_block, strip
from webhook.formats.templated import Done, stable
from webhook.rules import PATTERNS
from webhook.templates import actions
from webhook.templates.regions import Region, here_documents, manifests, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.templates.actions import Template
    from webhook.yamlpatch.places import Replacement

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
_UNEVEN = (
    "the lines of this block begin with different > or tabs, so their indentation is not known: "
    "nothing is edited in it; begin all lines in the same way"
)
_BETWEEN = "it does not fit between lines that begin with > or tabs"


def migrate(source: Source, plan: Plan) -> FileResult:
    """Migrate the manifests in a document."""
    return stable(source, plan, _migrate)


def _migrate(source: Source, plan: Plan) -> FileResult:
    blocks = [(Region(each.start, each.end), each) for each in fences(source.text)]
    begins = ((at, of_block(each.before)) for at, each in blocks)
    quoted = strip(source.text, ((at, patterns) for at, patterns in begins if patterns))
    shell = [at for at, each in blocks if each.language in _SHELL]
    tabbed = strip(quoted.text, ((each, TABS) for at in shell for each in tabs(quoted.text, at)))
    bare = Source.of_text(source.path, tabbed.text, source.kind)
    for at, _ in blocks:
        plan = with_namespaces(plan, bare.text[at.start : at.end])
    done = Done(bare, plan, actions.Template(bare.text, [], []), prose=True)
    for at, each in blocks:
        if at not in quoted.odd and _is_of_interest(bare, at, plan):
            _add(done, at, each.language, tabbed)
    return put_back(done, source, [tabbed, quoted], done.mentions(prose=True))


def tabs(text: str, region: Region) -> Iterator[Region]:
    """The here-documents of a script from whose lines the shell removes tabs."""
    for each, opening in _here_documents(text, region):
        if re.search(r"<<-", opening):
            yield each


def put_back(
    done: Done, source: Source, stripped: list[Stripped], more: Iterable[Located]
) -> FileResult:
    """The result, with the prefixes of the lines around each replacement."""

    def back(each: Replacement) -> Replacement | None:
        for layer in stripped:
            restored = layer.put_back(each)
            if restored is None:
                return None
            each = restored
        return each

    def located(each: Located) -> Located:
        fix = tuple(filter(None, map(back, each.fix)))
        return replace(each, fix=fix) if len(fix) == len(each.fix) else each.undone(_BETWEEN)

    written = [restored for each in done.replacements if (restored := back(each))]
    is_whole = len(written) == len(done.replacements)
    done.source, done.replacements = source, written if is_whole else []
    found = [located(each) for each in done.located]
    done.located = found if is_whole else [e.undone(_BETWEEN) if e.fix else e for e in found]
    return done.result([*_of_odd(source, stripped, more)])


def _of_odd(source: Source, stripped: list[Stripped], more: Iterable[Located]) -> Iterator[Located]:
    """Only mentions; in a block whose lines have several prefixes they are manual."""
    odd = {region: at for layer in stripped for region, at in layer.odd.items()}
    told: set[Region] = set()
    for each in more:
        at = source.index(each.place.line, each.place.column)
        region = next((r for r in odd if r.start <= at < r.end), None)
        if region is None or not _is_key(source.text, each, source):
            yield each
            continue
        yield replace(each, status=Status.MANUAL)
        if region not in told:
            told.add(region)
            place = source.first_line(source.place(odd[region], odd[region]))
            yield Located(each.code, _UNEVEN, Status.MANUAL, place)


def _here_documents(text: str, region: Region) -> Iterator[tuple[Region, str]]:
    """The here-documents of a script, each with the line that opens it."""
    inside = text[region.start : region.end]
    for each in here_documents(inside):
        end = inside.rfind("\n", 0, each.start)
        opening = inside[inside.rfind("\n", 0, end) + 1 : end]
        yield Region(region.start + each.start, region.start + each.end), opening


def add_here_documents(done: Done, region: Region, tabbed: Stripped) -> list[Region]:
    """Migrate the here-documents of a script, and return them."""
    text = done.source.text
    found = []
    for each, opening in _here_documents(text, region):
        found.append(each)
        if each in tabbed.odd:
            continue
        is_literal = re.search(r"<<-?[ \t]*[\"'\\]", opening) is not None
        template = _only(text, each, None if is_literal else _SHELL_VALUE)
        # The shell removes backslashes, and would remove them from inserted text, too.
        plain = is_literal or not re.search(r"[\\]", text[each.start : each.end])
        for part in _parts(template, each):
            done.add(part, template, frozenset() if plain else AMOUNTS)
    return found


def _add(done: Done, region: Region, language: str, tabbed: Stripped) -> None:
    scripts = add_here_documents(done, region, tabbed) if language in _SHELL else []
    if scripts or language not in _MANIFESTS:
        return
    template = _only(done.source.text, region, _LEFT_OUT)
    for part in _parts(template, region):
        done.add(part, template)


def _parts(template: Template, region: Region) -> Iterator[Region]:
    """The manifests of a block; or its parts between `---`."""
    found = manifests(template.blanked)
    yield from found or split(template.blanked, region)


def _only(text: str, region: Region, placeholders: re.Pattern[str] | None) -> Template:
    """The text with only this region, so that no tag elsewhere counts."""
    before = actions.blank(text[: region.start])
    return actions.read(before + text[region.start : region.end], placeholders)


def _is_of_interest(source: Source, region: Region, plan: Plan) -> bool:
    """Whether it has a legacy word, or requests GPUs: then a mistake in a guide matters."""
    text, settings = source.text[region.start : region.end], plan.settings
    if next(find(text, PATTERNS, settings), None) is not None:
        return True
    names = {settings.gpu_resource, *(each.rstrip("*") for each in settings.gpu_resources)}
    return "limits" in text and any(name in text for name in names)


def _is_key(text: str, located: Located, source: Source) -> bool:
    """Whether the match is a key, as in a manifest."""
    end = source.index(located.place.end_line, located.place.end_column)
    return re.match(r"[\"']?[ \t]*:", text[end : end + 5]) is not None
