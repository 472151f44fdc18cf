"""`gpu-webhook scan`: reports legacy GPU use in files or in a cluster, and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cli import file_command
from webhook.cli.progress import progress
from webhook.core.errors import InputError

if TYPE_CHECKING:
    from types import SimpleNamespace

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
    plan, seen = file_command.plan_of(args), file_command.Seen()
    with progress() as show_progress:
        judged = file_command.judged(args, plan, show_progress, seen)
        alone = [each._replace(source=None) for each in judged]
        results = (each.result for each in file_command.together(args, alone, plan))
        found = file_command.report(results, seen)
    file_command.write_outputs(args, found)
    diffs_of = seen if args.diff else None
    file_command.print_report(args.output or "text", found, diffs_of, quiet=args.quiet)
    file_command.warn_of_the_rest(args, found, seen)
    return file_command.exit_code(args, found)
