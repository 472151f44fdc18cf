"""A progress bar on standard error for long work, if standard error is a terminal with colours."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    # What, how many, and of how many if that is known.
    Progress = Callable[[str, int, int | None], None]

LONG = 500  # items; for less work, a bar would only flicker


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """Returns the function that shows progress: for much work, or for an unknown amount (None)."""
    if os.environ.get("NO_COLOR") or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int | None) -> None:
            if total is None or total > LONG or what in tasks:
                if what not in tasks:
                    tasks[what] = bars.add_task(what, total=total)
                bars.update(tasks[what], completed=done, total=total)

        yield show
