"""The tables."""

from __future__ import annotations

import platform
from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from bench import apiserver, server
from bench.windows import by_kind, lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.windows import Line, Window


def server_table(windows: Sequence[Window]) -> Table:
    """Show ours against controller-runtime."""
    columns = ("connections", "server", "calls/s", "p50 ms", "p99 ms", "CPU ms", "ratio", "rounds")
    table = _table("The webhook by itself: one worker on one core, TLS keep-alive", columns)
    for connections, group in _groups(windows).items():
        for contender, line in group.items():
            cells = [_cpu(line), *_cpu_ratio(line, group[server.PEER])]
            table.add_row(str(connections), contender, *_figures(line), *cells)
        table.add_section()
    table.caption = f"{_OF_CPU}; goal 0.5 (0.56 on a Python without PGO). {_load(windows)}"
    return table


def kinds_table(windows: Sequence[Window]) -> Table:
    """Show the same for each kind of pod."""
    columns = ("CPU ms", "pods", "peer's", "ratio", "rounds", "p99 ms", "peer's")
    table = _table("The webhook by itself, one kind of pod after another: 8 connections", columns)
    for kind, found in by_kind(windows).items():
        ours, peer = lines(found)
        slowest = [f"{each.median(lambda s: s.p99):.1f}" for each in (ours, peer)]
        table.add_row(_cpu(ours), kind, _cpu(peer), *_cpu_ratio(ours, peer), *slowest)
    table.caption = f"{_OF_CPU}; goal 0.83 of unique pods, 1 of any kind. {_load(windows)}"
    return table


_OF_CPU = f"ratio: CPU of a call over {server.PEER}'s of the same round, median and range"


def apiserver_table(windows: Sequence[Window]) -> Table:
    """Show what each admission adds to a create."""
    columns = ("clients", "admission", "calls/s", "p50 ms", "p99 ms", "CPU ms", "ratio", "rounds")
    table = _table("At kube-apiserver: create a pod with dryRun=All", columns)
    for kind, found in by_kind(windows).items():
        for connections, group in _groups(found).items():
            table.add_row(str(connections), f"({kind})", *[""] * 6)
            for contender, line in group.items():
                cells = [_cpu(line), *_ratio(line, group[apiserver.POLICY])]
                table.add_row(str(connections), contender, *_figures(line), *cells)
            table.add_section()
    table.caption = (
        "CPU: of kube-apiserver and both webhooks, for a create. ratio: calls/s over the policy's "
        f"of the same round, median and range. {_load(windows)}"
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


def _cpu(line: Line) -> str:
    cpu = line.cpu_ms()
    return "-" if cpu is None else f"{cpu:.2f}"


def _cpu_ratio(line: Line, to: Line) -> list[str]:
    ratios = line.cpu_ratios_to(to)
    if line is to or not ratios:
        return ["", ""]
    return [f"{median(ratios):.2f}", f"{ratios[0]:.2f}-{ratios[-1]:.2f}"]


def _ratio(line: Line, to: Line) -> list[str]:
    if line is to:
        return ["", ""]
    ratios = line.ratios_to(to)
    return [f"{median(ratios):.2f}", f"{ratios[0]:.2f}-{ratios[-1]:.2f}"]


def _load(windows: Sequence[Window]) -> str:
    averages = [each.sample.load_average for each in windows]
    load = f"Load average meanwhile: {min(averages):.1f}-{max(averages):.1f}"
    return f"{load}, Python {platform.python_version()}."
