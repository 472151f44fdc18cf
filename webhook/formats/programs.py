"""Programs that build pods, and other texts: reports legacy names with line and advice.

Go, Python, Jsonnet, Terraform: other code may depend on a constant, so these are never edited. Only
manifests in the here-documents of shell scripts are migrated like files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.formats.markdown import add_here_documents
from webhook.formats.templated import Done, stable
from webhook.templates import actions
from webhook.templates.regions import Region

if TYPE_CHECKING:
    from webhook.files.results import FileResult, Plan
    from webhook.files.source import Source

_SHELL = (".sh", ".bash", ".zsh", ".ksh")


def migrate(source: Source, plan: Plan) -> FileResult:
    """Report legacy names in a program; migrate manifests that it passes to kubectl by `<<EOF`."""
    return stable(source, plan, _migrate)


def _migrate(source: Source, plan: Plan) -> FileResult:
    done = Done(source, plan, actions.Template(source.text, [], []), prose=True)
    if is_shell(source):
        add_here_documents(done, Region(0, len(source.text)))
    return done.result(done.mentions(prose=source.path.endswith("NOTES.txt")))


def is_shell(source: Source) -> bool:
    """Whether a shell reads the text."""
    first = source.text.split("\n", 1)[0]
    return source.path.endswith(_SHELL) or (first.startswith("#!") and "sh" in first)
