"""Programs that build pods, and other texts: reports legacy names with line and advice.

Go, Python, Jsonnet, Terraform: other code may depend on a constant, so these are never edited. Only
manifests in the here-documents of shell scripts are migrated like files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.files.source import Source
from webhook.formats.markdown import add_here_documents, put_back, tabs
from webhook.formats.prefixes import TABS, strip
from webhook.formats.templated import Done, stable
from webhook.templates import actions
from webhook.templates.regions import Region

if TYPE_CHECKING:
    from webhook.files.results import FileResult, Plan

_SHELL = (".sh", ".bash", ".zsh", ".ksh")


def migrate(source: Source, plan: Plan) -> FileResult:
    """Report legacy names in a program; migrate manifests that it passes to kubectl by `<<EOF`."""
    return stable(source, plan, _migrate)


def _migrate(source: Source, plan: Plan) -> FileResult:
    whole = Region(0, len(source.text))
    asked = tabs(source.text, whole) if is_shell(source) else ()
    tabbed = strip(source.text, ((each, TABS) for each in asked))
    bare = Source.of_text(source.path, tabbed.text, source.kind)
    done = Done(bare, plan, actions.Template(bare.text, [], []), prose=True)
    if is_shell(source):
        add_here_documents(done, whole, tabbed)
    more = done.mentions(prose=source.path.endswith("NOTES.txt"))
    return put_back(done, source, [tabbed], more)


def is_shell(source: Source) -> bool:
    """Whether a shell reads the text."""
    first = source.text.split("\n", 1)[0]
    return source.path.endswith(_SHELL) or (first.startswith("#!") and "sh" in first)
