"""Programs that build pods, and other texts: reports legacy names with line and advice.

Go, Python, Jsonnet, Terraform: other code may depend on a constant, so these are never edited. Nor
are documents other than Markdown: in their prose a name is a notice, as a key it is manual. Only
manifests in the here-documents of shell scripts are migrated like files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.formats.markdown import add_here_documents, is_key
from webhook.formats.mentions import Spans, everywhere
from webhook.formats.templated import Done, stable
from webhook.rules import driver_paths
from webhook.templates import actions
from webhook.templates.regions import Region

if TYPE_CHECKING:
    from webhook.files.results import FileResult, Located, Plan
    from webhook.files.source import Source

_DOCUMENTS = (".rst", ".adoc", ".asciidoc", ".html", ".htm", ".org", ".tex", ".txt", ".log")
_OTHER_DOCUMENT = "of documents, only Markdown is edited"
_SHELL = (".sh", ".bash", ".zsh", ".ksh")


def migrate(source: Source, plan: Plan) -> FileResult:
    """Report legacy names in a program; migrate manifests that it passes to kubectl by `<<EOF`."""
    return stable(source, plan, _migrate)


def _migrate(source: Source, plan: Plan) -> FileResult:
    done = Done(source, plan, actions.Template(source.text, [], []), prose=True)
    scripts = Region(0, len(source.text))
    evaluated = add_here_documents(done, scripts) if is_shell(source) else []
    return done.result(_mentions(done, source, evaluated))


def _mentions(done: Done, source: Source, evaluated: list[Region]) -> list[Located]:
    if not source.path.lower().endswith(_DOCUMENTS):
        inside = Spans((each.start, each.end) for each in evaluated)
        mounts = driver_paths.mounts_of_program(source.text, done.plan.settings)
        return done.mentions(more=[each for each in mounts if not inside.hold(each.start)])
    found = done.mentions(prose=everywhere)
    if source.path.endswith("NOTES.txt"):  # what helm prints
        return found
    return [
        each.undone(_OTHER_DOCUMENT) if is_key(source.text, each, source) else each
        for each in found
    ]


def is_shell(source: Source) -> bool:
    """Whether a shell reads the text."""
    first = source.text.split("\n", 1)[0]
    return source.path.endswith(_SHELL) or (first.startswith("#!") and "sh" in first)
