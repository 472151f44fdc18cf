"""The entry point of `gpu-webhook`: runs the command and returns its exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import TYPE_CHECKING

import click

from webhook.cli.commands import COMPLETE, PROGRAM, commands
from webhook.cli.starting import StoppedError
from webhook.core.errors import WebhookError

if TYPE_CHECKING:
    from collections.abc import Sequence

ERROR = 1
_INTERRUPTED = 130
_BROKEN_PIPE = 141  # 128 and SIGPIPE, as in other programs: 0 would mean that nothing was found
_OUR_BUG = 70
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_SHORT = re.compile(r"-[A-Za-z]=")
EXTRAS = {  # the extra of pyproject.toml that installs a package
    "cryptography": "server",
    "flask": "server",
    "gunicorn": "server",
    "kubernetes": "cluster",
    "prometheus_client": "server",
    "urllib3": "cluster",
    "uvloop": "server",
}


def kubectl_plugin() -> int:
    """`kubectl gpu-migrate`: migrates, unless the first word is another command."""
    words = sys.argv[1:]
    if not words or words[0] not in {*commands.commands, "--version"}:
        words = ["migrate", *words]
    return main(words, "kubectl gpu-migrate")


def main(words: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Run the command and return the exit code (see the epilog of --help)."""
    given = list(sys.argv[1:] if words is None else words)
    if sys.stderr is None:  # closed by the shell: print() would then write to stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stdout is None:  # closed by the shell, as in `scan >&-`
        print("gpu-webhook: the output is closed and cannot be written", file=sys.stderr)  # noqa: T201
        return ERROR
    try:
        code = _run(given, program)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()  # not with click's exit code: 2 means `repaired` here
        return ERROR
    except WebhookError as error:
        print(f"gpu-webhook: {error}", file=sys.stderr)  # noqa: T201
        return ERROR
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _print_no_more()
        return _BROKEN_PIPE
    except KeyboardInterrupt as stop:
        return stop.code if isinstance(stop, StoppedError) else _INTERRUPTED
    except Exception as error:  # noqa: BLE001  # a traceback does not help users
        return _failed(" ".join(given[:1]), error)
    else:
        return code


def _run(words: list[str], program: str) -> int:
    """Parse the words and run the command, or answer the completion script of a shell."""
    asked = os.environ.get(COMPLETE)
    if asked:
        from webhook.cli import completion

        return completion.answer(asked)
    words = [part for word in words for part in _parts(word)]
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    try:
        with commands.make_context(program, words, color=False if is_plain else None) as ctx:
            code: int = commands.invoke(ctx)
    except click.exceptions.Exit as done:  # from --help and --version
        return done.exit_code
    return code


def _parts(word: str) -> tuple[str, ...]:
    """`-o=json` as two words: kubectl accepts it, but click does not."""
    return (word[:2], word[3:]) if _SHORT.match(word) else (word,)


def _failed(command: str, error: Exception) -> int:
    """Print the reason; the exit code shows whether it is a bug of this program."""
    if isinstance(error, OSError) and error.errno in _FULL:
        _print_no_more()
        print(f"gpu-webhook: the output cannot be written: {error.strerror}", file=sys.stderr)  # noqa: T201
        return ERROR
    if isinstance(error, ModuleNotFoundError) and (extra := EXTRAS.get(error.name or "")):
        how = f"pip install 'gpu-admission-webhook[{extra}]'"
        print(f"gpu-webhook: `{command}` needs the extra {extra}: {how}", file=sys.stderr)  # noqa: T201
        return ERROR
    return _our_bug(command, error)


def _our_bug(command: str, error: Exception) -> int:
    """Print one line with the error and its place, and ask the user to report it."""
    import traceback

    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    place = f"{os.path.basename(frame.f_code.co_filename)}:{line}"  # noqa: PTH119
    print(  # noqa: T201
        f"gpu-webhook: a bug in this program, in `{command}` ({place}: {type(error).__name__}: "
        f"{error}); please report this line, `gpu-webhook --version` and the input",
        file=sys.stderr,
    )
    return _OUR_BUG


def _print_no_more() -> None:
    """Text that is still in the buffer would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
