"""`make bench`: ours and its peers side by side, in one run; README.md says how to read it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bench import apiserver, report, scan, server
from bench.generator import WrongAnswers
from tests.cluster.build import BuildError
from tests.cluster.controlplane import ProgramDied

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.table import Table

    # How it is measured (rounds, seconds of a window, where to say how far it is), and shown.
    Part = tuple[Callable[[int, float, Callable[[str], None]], list[Any]], Callable[[Any], Table]]

ROUNDS, SECONDS = 3, 2.0  # eight minutes in all, once the programs are built
PARTS: dict[str, Part] = {
    "server": (server.measure, report.server_table),
    "kinds": (server.measure_kinds, report.kinds_table),
    "apiserver": (apiserver.measure, report.apiserver_table),
    "scan": (scan.part, scan.table),
}


def parser() -> argparse.ArgumentParser:
    """Say which flags there are."""
    top = argparse.ArgumentParser(prog="make bench", description=__doc__)
    top.add_argument("--only", choices=sorted(PARTS), help="one of the parts")
    top.add_argument("--rounds", type=_at_least(int, 1), default=ROUNDS, metavar="N")
    top.add_argument("--seconds", type=_at_least(float, 0.1), default=SECONDS, metavar="S")
    top.add_argument("--json", type=Path, metavar="FILE", help="write each window's figures too")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a single answer was wrong."""
    args = parser().parse_args(argv)
    console = Console(width=None if sys.stdout.isatty() else 100)
    progress = Console(stderr=True, style="dim")
    measured: dict[str, list[Any]] = {}
    try:
        for part in [args.only] if args.only else PARTS:
            measure, table = PARTS[part]
            measured[part] = measure(args.rounds, args.seconds, progress.print)
            console.print(table(measured[part]))
    except (WrongAnswers, BuildError, ProgramDied, OSError) as error:
        progress.print(f"bench: {error}", style="red", markup=False)
        return 1
    if args.json is not None:
        args.json.write_text(json.dumps(_facts(args, measured), indent=2) + "\n")
    return 0


def _at_least(kind: type[float], least: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = kind(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return value

    return number


def _facts(args: argparse.Namespace, measured: dict[str, list[Any]]) -> dict[str, object]:
    return {
        "rounds": args.rounds,
        "seconds": args.seconds,
        "cores": os.cpu_count(),
        "windows": {part: [asdict(each) for each in measured[part]] for part in measured},
    }


if __name__ == "__main__":
    sys.exit(main())
