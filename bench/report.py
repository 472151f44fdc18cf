"""The two tables."""

from __future__ import annotations

import platform
from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from bench import apiserver, server
from bench.windows import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.windows import Line, Window


def server_table(windows: Sequence[Window]) -> Table:
    """Show ours against controller-runtime."""
    columns = ("connections", "server", "calls/s", "p50 ms", "p99 ms", "CPU ms", "ratio", "rounds")
    table = _table("The webhook by itself: one worker on one core, TLS keep-alive", columns)
    for connections, group in _groups(windows).items():
        peer = group[server.PEER]
        for contender, line in group.items():
            cpu = line.cpu_ms()
            cells = ["-" if cpu is None else f"{cpu:.2f}"]
            cells += ["", ""] if contender == server.PEER else _ratio(line, peer)
            table.add_row(str(connections), contender, *_figures(line), *cells)
        table.add_section()
    table.caption = (
        f"ratio: calls/s over {server.PEER}'s of the same round, median and range; "
        f"goal 1.3. {_load(windows)}"
    )
    return table


def apiserver_table(windows: Sequence[Window]) -> Table:
    """Show nothing, the policy and ours: what each adds to a create."""
    columns = ("clients", "admission", "calls/s", "p50 ms", "p99 ms", "added ms", "ratio", "rounds")
    table = _table("At kube-apiserver: create a pod with dryRun=All", columns)
    for connections, group in _groups(windows).items():
        nothing = group[apiserver.NOTHING].median(lambda s: s.p50)
        for contender, line in group.items():
            added = line.median(lambda s: s.p50) - nothing
            cells = ["" if contender == apiserver.NOTHING else f"{added:.2f}"]
            against_policy = contender == server.OURS
            cells += _ratio(line, group[apiserver.POLICY]) if against_policy else ["", ""]
            table.add_row(str(connections), contender, *_figures(line), *cells)
        table.add_section()
    table.caption = (
        "added: p50 less that of the namespace with nothing. ratio: calls/s over the policy's of "
        f"the same round, median and range; goal 1.0 at 16 clients. {_load(windows)}"
    )
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left", box=box.SIMPLE)
    for position, name in enumerate(columns):
        table.add_column(name, justify="left" if position == 1 else "right", no_wrap=True)
    return table


def _groups(windows: Sequence[Window]) -> dict[int, dict[str, Line]]:
    groups: dict[int, dict[str, Line]] = {}
    for line in lines(windows):
        groups.setdefault(line.connections, {})[line.contender] = line
    return groups


def _figures(line: Line) -> tuple[str, str, str]:
    return (
        f"{line.median(lambda s: s.calls_per_second):,.0f}",
        f"{line.median(lambda s: s.p50):.2f}",
        f"{line.median(lambda s: s.p99):.2f}",
    )


def _ratio(line: Line, to: Line) -> list[str]:
    ratios = line.ratios_to(to)
    return [f"{median(ratios):.2f}", f"{ratios[0]:.2f}-{ratios[-1]:.2f}"]


def _load(windows: Sequence[Window]) -> str:
    averages = [each.sample.load_average for each in windows]
    load = f"Load average meanwhile: {min(averages):.1f}-{max(averages):.1f}"
    return f"{load}, Python {platform.python_version()}."
