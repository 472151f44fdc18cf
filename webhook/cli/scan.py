"""`gpu-webhook scan`: what files, or the workloads of a cluster, must change. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cli import on_files
from webhook.cli.progress import progress
from webhook.core.errors import InputError

if TYPE_CHECKING:
    from types import SimpleNamespace

_OF_CLUSTERS = ("all_namespaces", "namespace", "selector", "kubeconfig", "context")


def run(args: SimpleNamespace) -> int:
    """Print what is found; the exit code says how bad it is."""
    on_files.check_outputs(args)
    if args.cluster:
        from webhook.cli import scan_cluster

        return scan_cluster.run(args)
    for dest in _OF_CLUSTERS:
        if getattr(args, dest):
            flag = f"--{dest.replace('_', '-')}"
            raise InputError(f"{flag} is of clusters: add --cluster, or leave it out")
    asked, seen = on_files.plan(args), on_files.Seen()
    with progress() as tell:
        judged = on_files.judged(args, asked, tell, seen)
        found = on_files.report((each.result for each in judged), seen)
    on_files.write_outputs(args, found)
    on_files.print_report(args.output or "text", found, seen if args.diff else None)
    on_files.warn_of_the_rest(args, found)
    return on_files.exit_code(args, found)
