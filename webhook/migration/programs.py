"""Programs that build pods, and any other text: what is legacy in it is told, with line and cure.

Go, Python, Jsonnet, Terraform: who changes a constant of a program must know what else reads it, so
nothing is edited there. Only manifests in the here-documents of shell scripts are as good as files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.migration import template_actions
from webhook.migration.markdown import add_here_documents
from webhook.migration.regions import Region
from webhook.migration.templated import Done, stable

if TYPE_CHECKING:
    from webhook.migration.results import FileResult, Plan
    from webhook.migration.source import Source

_SHELL = (".sh", ".bash", ".zsh", ".ksh")


def migrate(source: Source, plan: Plan) -> FileResult:
    """Say what is legacy in a program; migrate what it hands to kubectl by `<<EOF`."""
    return stable(source, plan, _migrate)


def _migrate(source: Source, plan: Plan) -> FileResult:
    done = Done(source, plan, template_actions.Template(source.text, [], []), prose=True)
    if is_shell(source):
        add_here_documents(done, Region(0, len(source.text)))
    is_prose = source.path.endswith("NOTES.txt")
    return done.result(done.mentions(prose=True) if is_prose else None)


def is_shell(source: Source) -> bool:
    """Whether a shell reads the text."""
    first = source.text.split("\n", 1)[0]
    return source.path.endswith(_SHELL) or (first.startswith("#!") and "sh" in first)
