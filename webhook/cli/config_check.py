"""`gpu-webhook config check`: reports each mistake in a settings file with its place and reason."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from webhook.core.errors import SettingsError
from webhook.files.walk import STDIN
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from types import SimpleNamespace

    from webhook.settings.nodes import Mistake

_WIDEST = 120  # characters of a line that are shown


def run(args: SimpleNamespace) -> int:
    """Check each file; 1 if any has a mistake."""
    return max([_check(file) for file in args.files])


def _check(file: str) -> int:
    name = "stdin" if file == STDIN else file
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
    try:
        if file == STDIN:
            content = settings_file.decoded(sys.stdin.buffer.read(), name)
            settings_file.read_text(content, name)
        else:
            settings_file.read(file, pipes=True)
    except settings_file.MistakesError as error:
        for mistake in error.mistakes:
            errors.print(_shown(name, mistake, error.lines))
        return 1
    except SettingsError as error:
        errors.print(Text(str(error)))
        return 1
    sys.stdout.write(f"{name}: fine\n")
    return 0


def _shown(file: str, mistake: Mistake, lines: list[str]) -> Text:
    """The message, the line of the file, and a caret under the place."""
    said = Text(f"{file}:{mistake.line}:{mistake.column}: ", style="bold")
    said.append(mistake.what, style="not bold")
    if mistake.line > len(lines):
        return said
    line, column = _window(lines[mistake.line - 1], mistake.column - 1)
    number = f"{mistake.line:>5} | "
    blank = f"{'| ':>{len(number)}}"
    said.append(f"\n{number}", style="not bold dim").append(line, style="not bold")
    said.append(f"\n{blank}", style="not bold dim").append(" " * cell_len(line[:column]))
    return said.append("^", style="red")


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of the line around the column, and the position of the column in it.

    Each character is replaced by one that has no effect on a terminal.
    """
    start = max(0, column - _WIDEST // 2) if len(line) > _WIDEST else 0
    part = line[start : start + _WIDEST]
    return "".join(each if each.isprintable() else " " for each in part), column - start
