"""Draws docs/demo.svg, the recording in README.md: what `make demo` prints, as a terminal shows it.

`python -m tests.cli.demo_picture` writes it. Its font is one of the reader's machine: rich's own
would come from another host. Its lines appear one after the other, once; without animations, and
for readers who want less motion, all of them are there from the beginning.
"""

from __future__ import annotations

import io
import re
from itertools import groupby
from typing import TYPE_CHECKING

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from examples import demo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PICTURE = demo.EXAMPLES.parent / "docs" / "demo.svg"
RENEW = "python -m tests.cli.demo_picture"
_COLUMNS = 88
_BLACK, _GREY, _WHITE = (13, 17, 23), (139, 148, 158), (230, 237, 243)
_RED, _GREEN = (255, 123, 114), (126, 231, 135)
_THEME = TerminalTheme(_BLACK, _WHITE, [_BLACK, _RED, _GREEN, *[_WHITE] * 5], [_GREY] * 8)
_FORMAT = re.sub(r" *@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_COMMAND = "make demo"
# All of it takes less than 5 seconds: what moves longer must have a way to stop it (WCAG 2.2.2).
_TYPED, _PAUSE, _LINE = 0.5, 0.4, 0.08  # seconds: for the command, before a part, for a line
_PLAYED = """
    @media (prefers-reduced-motion: no-preference) {{
        @keyframes typed {{ from {{ clip-path: inset(0 100% 0 0) }} to {{ clip-path: inset(0) }} }}
        @keyframes shown {{ from {{ opacity: 0 }} }}
        :where(.demo-matrix) text {{ animation: shown {line}s backwards }}
        [clip-path="url(#demo-line-0)"] {{ animation: typed {typed}s steps({keys}) }}
{delays}
    }}"""


def drawn() -> str:
    """The picture, as SVG."""
    console = Console(
        record=True,
        file=io.StringIO(),
        width=_COLUMNS,
        highlight=False,
        force_terminal=True,
        color_system="standard",
        _environ={},
    )
    console.print(f"$ [bold]{_COMMAND}[/bold]")
    if demo.show(console) != 0:
        raise SystemExit("not all pods were repaired")
    lines = console.export_text(clear=False).splitlines()
    still = console.export_svg(
        title=_COMMAND,
        theme=_THEME,
        code_format=_FORMAT.replace("Fira Code, monospace", _FONT).replace("arial", "sans-serif"),
        unique_id="demo",
    )
    before, end, after = still.partition("\n    </style>")
    return f"{before}{_animation(lines)}{end}{after}"


def _animation(lines: Iterable[str]) -> str:
    delays = "\n".join(
        f'        [clip-path="url(#demo-line-{number})"] {{ animation-delay: {at:.2f}s }}'
        for number, at in enumerate(_times(lines))
        if number
    )
    return _PLAYED.format(line=_LINE, typed=_TYPED, keys=len(f"$ {_COMMAND}"), delays=delays)


def _times(lines: Iterable[str]) -> Iterator[float]:
    """When each line appears; a part ends where the indentation of the lines begins or ends."""
    yield 0.0
    at = _TYPED
    first, *rest = lines
    assert first == f"$ {_COMMAND}"
    for _, part in groupby(rest, key=lambda line: not line[:1].strip()):
        at += _PAUSE
        for _line in part:
            yield at
            at += _LINE


if __name__ == "__main__":
    PICTURE.write_text(drawn())
