"""`gpu-webhook completion SHELL`: prints the completion script, and answers its queries."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from click.shell_completion import (
    BashComplete,
    add_completion_class,
    get_completion_class,
    shell_complete,
)

from webhook.cli.commands import COMPLETE, PROGRAM, commands

if TYPE_CHECKING:
    from types import SimpleNamespace


@add_completion_class
class _Bash(BashComplete):
    def get_completion_args(self) -> tuple[list[str], str]:
        """Without the `=` of `--flag=value`, which is a separate word in bash."""
        words, start = super().get_completion_args()
        return [each for each in words if each != "="], start


def run(args: SimpleNamespace) -> int:
    """Print the completion script of one shell."""
    shell = get_completion_class(args.shell)
    assert shell is not None  # noqa: S101
    sys.stdout.write(shell(commands, {}, PROGRAM, COMPLETE).source())
    return 0


def answer(asked: str) -> int:
    """Print the words that may follow: the completion script of a shell runs this."""
    return shell_complete(commands, {}, PROGRAM, COMPLETE, asked)
