"""Prints the inventory as a table that fits into 80 columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from webhook.inventory.summary import Amount, Row, Summary, merged, totals
from webhook.rules import leak_guard, never_fits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from webhook.core.settings import Taint

_BAR = 6  # columns
_ROOM, _NUMBER = 28, 4  # columns of the model with its taints, and of a number beside them
_NAMES = 12  # node names of a class; JSON has all of them
_MANY_USED = 0.7
_LIFE_CYCLE = "node.kubernetes.io/"  # taints of the node controller and of `kubectl cordon`


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the cells depend on."""

    ascii: bool
    pods: bool  # whether the GPUs that they hold are known
    domain: str  # the domain of all resource names, if it is printed only once
    room: int  # columns of the model, so that the table fits into 80

    @classmethod
    def of(cls, rows: list[Row], console: Console, *, pods: bool, numbered: bool) -> _Layout:
        domains = {name.partition("/")[0] for row in rows for name in row.gpus}
        domain = f"{domains.pop()}/" if len(domains) == 1 else ""
        room = _ROOM - _NUMBER * numbered
        return cls(console.options.ascii_only, pods, domain, room)


def show(summary: Summary, unknown: str, console: Console, *, wide: bool) -> None:
    """Print the table; `unknown` is the reason if pods are not known."""
    rows = summary.rows()
    there = [row for row in rows if not row.pool]
    shown = [row for row in rows if row.has_gpus] if wide else merged(rows)
    if shown:
        console.print(_table(shown, summary, console, numbered=wide))
        console.print()
    if wide:
        _print_classes(shown, console)
    without = sum(row.count for row in there if not row.has_gpus)
    if len(shown) == sum(bool(row.pool) for row in shown):
        console.print("No node offers GPUs under a name that the settings count as GPUs.")
    console.print(f"{_count(without, 'node')} without GPUs.")
    for note in _notes(summary, unknown, shown):
        console.print(note)


def _table(rows: list[Row], summary: Summary, console: Console, *, numbered: bool) -> Table:
    layout = _Layout.of(rows, console, pods=summary.pods_known, numbered=numbered)
    titles = [*(["#"] if numbered else []), *_titles(layout)]
    lines = _lines(rows, summary, layout, numbered=numbered)
    table = Table(
        box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold"
    )
    for title in titles:
        words = title in {"MODEL", layout.domain or "RESOURCE", ""}
        table.add_column(
            title, justify="left" if words else "right", no_wrap=title != "MODEL", overflow="fold"
        )
    *classes, sums = lines
    for line in classes:
        table.add_row(*line)
    if any(not row.pool for row in rows):
        table.add_section()
        table.add_row(*sums, style="bold")
    return table


def _titles(layout: _Layout) -> list[str]:
    titles = ["NODES", "MODEL", layout.domain or "RESOURCE", "EACH", "TOTAL"]
    return [*titles, "USED", "FREE", ""] if layout.pods else titles


def _lines(
    rows: list[Row], summary: Summary, layout: _Layout, *, numbered: bool
) -> list[list[str | Text]]:
    """The cells of each row, and of the sums at the end."""
    lines = [_row(row, summary, layout) for row in rows]
    there = [row for row in rows if not row.pool]
    sums = [f"{sum(row.count for row in there)}", "all", *_amounts(totals(there), layout)]
    sums[3:4] = [""]  # the sums have no node
    numbers = [f"{number}" for number in range(1, len(rows) + 1)]
    if not numbered:
        return [*lines, sums]
    return [[n, *line] for n, line in zip([*numbers, ""], [*lines, sums], strict=True)]


def _row(row: Row, summary: Summary, layout: _Layout) -> list[str | Text]:
    model = Text(row.model) if row.model else Text("no model label", style="dim")
    if row.pool:
        model.append(f"\npool {row.pool} (declared)", style="cyan")
    if _unhealthy(row):
        model.append(f"\n{_unhealthy(row)} unhealthy", style="red")
    if taints := _taints(row, summary, layout):
        model.append("\n").append_text(taints)
    nodes = f"0-{row.count}" if row.pool else f"{row.count}"
    return [nodes, model, *_amounts(row.gpus, layout)]


def _unhealthy(row: Row) -> int:
    """GPUs that the nodes have but do not offer."""
    return sum(amount.total - amount.allocatable for amount in row.gpus.values())


def _taints(row: Row, summary: Summary, layout: _Layout) -> Text:
    """The taints; temporary ones are dim, in parentheses, and in words."""
    words = {
        _in_words(taint, layout): "dim" if summary.settings.capacity.passes_by(taint.key) else ""
        for taint in row.taints
    }
    lines = (Text(f"({text})" if style else text, style) for text, style in words.items())
    return Text("\n").join(lines)


def _in_words(taint: Taint, layout: _Layout) -> str:
    if not taint.key.startswith(_LIFE_CYCLE):
        text = str(taint)
        if len(text) > layout.room:
            return text.replace(f":{taint.effect}", f"\n  :{taint.effect}")
        return text
    word = taint.key.removeprefix(_LIFE_CYCLE).replace("-", " ")
    return "cordoned" if word == "unschedulable" else word


def _amounts(gpus: Mapping[str, Amount], layout: _Layout) -> list[str | Text]:
    """The cells with a line for each resource."""
    lines = [_line(name, amount, layout) for name, amount in gpus.items()]
    return [Text("\n").join(cells) for cells in zip(*lines, strict=True)]


def _line(name: str, amount: Amount, layout: _Layout) -> list[Text]:
    whole = name.rpartition("/")[2] == "gpu"
    cells = [
        Text(name.removeprefix(layout.domain), style="" if whole else "magenta"),
        Text(f"{amount.largest}"),
        Text(f"{amount.allocatable}"),
    ]
    if layout.pods:
        used, free = ("" if each is None else f"{each}" for each in (amount.used, amount.free))
        cells += [Text(used), Text(free), _bar(amount, layout)]
    return cells


def _bar(amount: Amount, layout: _Layout) -> Text:
    """A bar of used, free and unhealthy GPUs."""
    used_cell, free_cell, lost_cell = "#.x" if layout.ascii else "█░╳"  # noqa: RUF001  # a picture
    if amount.used is None or not amount.total:
        return Text(" " * _BAR)
    lost = _cells(amount.total - amount.allocatable, amount.total)
    used = min(_cells(amount.used, amount.total), _BAR - lost)
    share = amount.used / amount.allocatable if amount.allocatable else 1.0
    style = "red" if share >= 1 else "yellow" if share > _MANY_USED else "green"
    return Text.assemble(
        (used_cell * used, style),
        (free_cell * (_BAR - used - lost), "dim"),
        (lost_cell * lost, "red"),
    )


def _cells(part: int, whole: int) -> int:
    """The width of a part of the bar: at least one cell, and less than all for a part."""
    if part <= 0:
        return 0
    return _BAR if part >= whole else min(max(round(part / whole * _BAR), 1), _BAR - 1)


def _print_classes(rows: list[Row], console: Console) -> None:
    """Names and labels: first the labels of all GPU nodes, then the others of each class."""
    there = [row.labels for row in rows if not row.pool]
    common = set.intersection(*(set(labels.items()) for labels in there)) if there[1:] else set()
    if common:
        _print_labels("all nodes with GPUs", (), dict(common), console)
    for number, row in enumerate(rows, 1):
        title = f"pool {row.pool}" if row.pool else _count(row.count, "node")
        own = row.labels.items() if row.pool else row.labels.items() - common
        _print_labels(f"#{number}: {title}", row.nodes, dict(own), console)


def _print_labels(
    title: str, names: tuple[str, ...], labels: Mapping[str, str], console: Console
) -> None:
    console.print(Text(title, style="bold"))
    if names:
        more = len(names) - _NAMES
        text = ", ".join(names[:_NAMES]) + (f" and {more:,} more" if more > 0 else "")
        console.print(Text(f"  {text}"), soft_wrap=True)
    for key, value in sorted(labels.items()):
        console.print(Text(f"  {key}={value}", style="dim"), soft_wrap=True)
    console.print()


def _notes(summary: Summary, unknown: str, shown: list[Row]) -> Iterator[Text]:
    resources = {name for row in shown for name in row.gpus}
    if any(_unhealthy(row) for row in shown):
        yield Text(
            "Unhealthy GPUs are on their nodes, but their device plugin does not offer them."
        )
    if any(name.endswith(".shared") or "/mig-" in name for name in resources):
        yield Text("mig-* counts slices of GPUs, *.shared turns on GPUs: neither is a whole one.")
    if any(summary.settings.capacity.passes_by(taint.key) for row in shown for taint in row.taints):
        yield Text("Taints in parentheses are temporary and do not keep a pod from a node.")
    if any(row.pool for row in shown):
        yield Text("Declared pools count as if their nodes existed; they are not in the sums.")
    if summary.joining:
        nodes = _count(summary.joining, "node")
        have = "has" if summary.joining == 1 else "have"
        why = f"GPUs and labels may still be added ({never_fits.CODE})"
        yield Text(f"{nodes} {have} just joined: {why}.")
    for words in summary.may_add():
        yield Text(words)
    served = sorted(resources & summary.served_by_dra)
    if served:
        yield Text(f"DRA serves {', '.join(served)} too: no pod that requests it is denied.")
    if unknown:
        yield Text(f"Used and free are unknown: {unknown}.", style="yellow")
    else:
        yield _guard(summary)


def _guard(summary: Summary) -> Text:
    """The result of the leak guard's audit of all pods."""
    title = f"Leak guard ({leak_guard.CODE})"
    if not summary.exposed_pods:
        return Text(f"{title}: no pod was found that sees unrequested GPUs.")
    by = ", ".join(f"{way} {number}" for way, number in sorted(summary.exposures.items()))
    pods = _count(summary.exposed_pods, "pod")
    return Text(f"{title}: {pods} may see unrequested GPUs ({by}).", style="yellow")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
