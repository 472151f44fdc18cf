"""`gpu-webhook scan`: reports legacy GPU use in files or in a cluster, and changes nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from webhook.cli import file_command
from webhook.cli.progress import progress
from webhook.core.errors import InputError
from webhook.files.source import TEMPLATES

if TYPE_CHECKING:
    from types import SimpleNamespace

    from webhook.files.results import Report

_OF_CLUSTERS = ("all_namespaces", "namespace", "selector", "kubeconfig", "context")


def run(args: SimpleNamespace) -> int:
    """Print the findings; the exit code is that of the worst."""
    file_command.check_outputs(args)
    if args.cluster:
        from webhook.cli import scan_cluster

        return scan_cluster.run(args)
    for dest in _OF_CLUSTERS:
        if getattr(args, dest):
            flag = f"--{dest.replace('_', '-')}"
            raise InputError(f"{flag} is only for clusters: add --cluster, or leave out {flag}")
    asked, seen = file_command.plan(args), file_command.Seen()
    with progress() as show_progress:
        judged = file_command.judged(args, asked, show_progress, seen)
        found = file_command.report((each.result for each in judged), seen)
    file_command.write_outputs(args, found)
    diffs_of = seen if args.diff else None
    file_command.print_report(args.output or "text", found, diffs_of, quiet=args.quiet)
    file_command.warn_of_the_rest(args, found, seen)
    if not args.quiet:
        _warn_of_templates(found)
    return file_command.exit_code(args, found)


def _warn_of_templates(found: Report) -> None:
    """`migrate` may do less than the findings say: it tries edited templates, which takes long."""
    edited = [
        each for each in found.results if each.kind in TEMPLATES and each.new_text is not None
    ]
    if edited:
        words = "templates have edits" if len(edited) > 1 else "template has edits"
        print(  # noqa: T201
            f"gpu-webhook: {len(edited):,} {words} that `migrate` tries first, with stand-ins for "
            "the template actions; what is wrong with one of them needs manual changes",
            file=sys.stderr,
        )
