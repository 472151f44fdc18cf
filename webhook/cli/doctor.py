"""`gpu-webhook doctor`: what is wrong with the webhook in a cluster, and what to do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from webhook.cli.certs import answered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from webhook.doctor.lines import Line
    from webhook.reports.text import Segment


def run(args: SimpleNamespace) -> int:
    """Print a line for each check; the exit code is that of the worst."""
    from webhook.cluster import client
    from webhook.doctor import checks, facts
    from webhook.doctor.lines import STATES
    from webhook.reports.printing import PRINTED

    api = client.connected(args.kubeconfig, args.context)
    with answered():
        found = facts.read(api, args.namespace, args.pod_namespace)
    lines = list(checks.lines(found))
    if args.output in PRINTED:
        data = [line._asdict() | {"state": STATES[line.state]} for line in lines]
        sys.stdout.write(PRINTED[args.output](data))
        return max(line.state for line in lines)
    return show(lines)


def show(lines: list[Line]) -> int:
    """Print the lines; the exit code is that of the worst."""
    from webhook.cli import report_console

    report_console.write(segments(lines), sys.stdout)
    return max(line.state for line in lines)


def segments(lines: list[Line]) -> Iterator[Segment]:
    """The lines for a terminal, each with its fix below it, and how many are not ok."""
    from webhook.doctor.lines import FAILED, OK, STATES, WARNING
    from webhook.reports.escaping import sentence
    from webhook.reports.text import Segment, Style

    styles = {OK: Style.FIXED, WARNING: Style.FIXABLE, FAILED: Style.MANUAL}
    wide = max(len(line.what) for line in lines)
    for line in lines:
        until = f", valid until {line.until}" if line.until else ""
        yield Segment(f"{STATES[line.state]:7}", styles[line.state])
        yield Segment(f"  {line.what:{wide}}  {sentence(line.text)}{until}")
        yield Segment("\n")
        if line.fix:
            yield Segment(f"{'':9}{'':{wide}}  fix: {sentence(line.fix)}", Style.FAINT)
            yield Segment("\n")
    counts = [sum(line.state == state for line in lines) for state in (FAILED, WARNING)]
    yield Segment("{} failed, {} warnings, {} ok".format(*counts, len(lines) - sum(counts)))
    yield Segment("\n")
