"""`gpu-webhook inventory`: shows the GPUs of a cluster, from a file or from the API server."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.cli import inputs
from webhook.cli.progress import progress as bars
from webhook.core.errors import InputError
from webhook.inventory.summary import Amount, Row, Summary, totals
from webhook.reports.printing import PRINTED

if TYPE_CHECKING:
    from types import SimpleNamespace

    from webhook.cluster.client import Client
    from webhook.cluster.listing import Progress
    from webhook.core.settings import Settings

_LONG_FILE = 1_000_000  # bytes
_FORBIDDEN = 403


def run(args: SimpleNamespace) -> int:
    """Print the inventory. InputError if it cannot be read."""
    from webhook.cli.watch import audit_of

    settings = inputs.settings(args)
    summary = Summary(settings, audit_of(settings), time.time())
    with bars() as progress:
        if not args.inventory:
            unknown = _from_cluster(args, summary, progress)
        elif args.kubeconfig or args.context:
            raise InputError("--inventory reads a file, not a cluster: leave out one of the two")
        else:
            unknown = _from_file(args.inventory, summary, progress)
    if args.output in ("json", "yaml"):
        _print_data(args.output, summary, unknown)
    else:
        _print_table(summary, unknown, wide=args.output == "wide")
    return 0


def _from_file(file: str, summary: Summary, progress: Progress) -> str:
    """Add the objects of the file; returns why pods are unknown, or an empty text."""
    from webhook.inventory import inventory_file

    reading = f"reading {file}"
    with contextlib.suppress(OSError):
        if Path(file).stat().st_size > _LONG_FILE:
            progress(reading, 0, None)
    objects = inventory_file.objects_of(file, pipes=True)
    progress(reading, 1, 1)
    for position, obj in enumerate(objects):
        kind = str(obj.get("kind"))
        summary.add(kind, obj, position)
        summary.pods_known |= kind == "Pod"
        progress("objects", position + 1, len(objects))
    if summary.pods_known:
        return ""
    return f"{file} has no pods. Add the output of `kubectl get pods -A -o yaml`"


def _from_cluster(args: SimpleNamespace, summary: Summary, progress: Progress) -> str:
    """Add the objects of the cluster; returns why pods are unknown, or an empty text."""
    from webhook.cluster import client as clients

    try:
        client = clients.connected(args.kubeconfig, args.context)
    except InputError as error:
        raise InputError(f"{error}, or what it has with --inventory") from error
    try:
        _add_all(summary, "Node", client, progress)
        for kind in ("DeviceClass", "NodePool", "ConfigMap"):
            # Older clusters do not serve them, or RBAC forbids it.
            with contextlib.suppress(clients.Refused):
                _add_all(summary, kind, client, progress)
    except clients.Refused as refused:
        raise InputError(
            f"nodes: the API server answered {refused}. Ask for the right to list nodes, or use a "
            "file from somebody who has it: --inventory FILE"
        ) from refused
    except clients.Fault as fault:
        raise clients.no_answer(fault) from fault
    try:
        _add_all(summary, "Pod", client, progress)
    except clients.Fault as fault:
        if isinstance(fault, clients.Refused) and fault.status == _FORBIDDEN:
            return f"RBAC forbids listing the pods of all namespaces ({fault})"
        return f"the list of pods failed ({fault})"
    summary.pods_known = True
    return ""


def _add_all(summary: Summary, kind: str, client: Client, progress: Progress) -> None:
    from webhook.cluster import listing

    (known,) = (each for each in summary.kinds if each.kind == kind)
    objects = listing.objects(client, known.paths[0], progress, known.query)
    for position, obj in enumerate(objects):
        summary.add(kind, obj, position)


def _print_table(summary: Summary, unknown: str, *, wide: bool) -> None:
    from webhook.cli.inventory_table import show
    from webhook.cli.report_console import for_tables

    show(summary, unknown, for_tables(), wide=wide)


def _print_data(form: str, summary: Summary, unknown: str) -> None:
    if unknown:
        print(f"gpu-webhook: used and free are unknown: {unknown}", file=sys.stderr)  # noqa: T201
    sys.stdout.write(PRINTED[form](_data(summary)))


def _data(summary: Summary) -> dict[str, Any]:
    rows = summary.rows()
    there = [row for row in rows if not row.pool]
    return {
        "nodes": sum(row.count for row in there),
        "gpuNodes": sum(row.count for row in there if row.has_gpus),
        "podsKnown": summary.pods_known,
        "resources": {name: _amount(each) for name, each in totals(there).items()},
        "classes": [_class(row, summary.settings) for row in rows],
        "servedByDra": sorted(summary.served_by_dra),
        "autoscalers": summary.may_add(),
        "leakGuard": {
            "pods": summary.exposed_pods if summary.pods_known else None,
            "by": summary.exposures if summary.pods_known else {},
        },
    }


def _class(row: Row, settings: Settings) -> dict[str, Any]:
    return {
        "model": row.model or None,
        "declaredPool": row.pool or None,
        "count": row.count,
        "joining": row.joining,
        "gpus": {name: _amount(each) for name, each in row.gpus.items()},
        "taints": [
            {
                "key": taint.key,
                "value": taint.value,
                "effect": taint.effect,
                "notNow": settings.capacity.passes_by(taint.key),
            }
            for taint in row.taints
        ],
        "labels": dict(row.labels),
        "nodes": list(row.nodes),
    }


def _amount(amount: Amount) -> dict[str, int | None]:
    return {
        "total": amount.total,
        "allocatable": amount.allocatable,
        "used": amount.used,
        "free": amount.free,
        "largestNode": amount.largest,
    }
