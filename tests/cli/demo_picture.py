"""Draws docs/demo.svg, the picture in README.md: what `make demo` prints, as a terminal shows it.

`python -m tests.cli.demo_picture` writes it. Its font is one of the reader's machine: rich's own
would come from another host.
"""

from __future__ import annotations

import io
import re

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from examples import demo

PICTURE = demo.EXAMPLES.parent / "docs" / "demo.svg"
RENEW = "python -m tests.cli.demo_picture"
_COLUMNS = 88
_BLACK, _GREY, _WHITE = (13, 17, 23), (139, 148, 158), (230, 237, 243)
_RED, _GREEN = (255, 123, 114), (126, 231, 135)
_THEME = TerminalTheme(_BLACK, _WHITE, [_BLACK, _RED, _GREEN, *[_WHITE] * 5], [_GREY] * 8)
_FORMAT = re.sub(r" *@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


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
    if demo.show(console) != 0:
        raise SystemExit("not all pods were repaired")
    return console.export_svg(
        title="make demo",
        theme=_THEME,
        code_format=_FORMAT.replace("Fira Code, monospace", _FONT).replace("arial", "sans-serif"),
        unique_id="demo",
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn())
