"""Each module is short enough to be read at once."""

from __future__ import annotations

from pathlib import Path

WEBHOOK = Path(__file__).parents[2] / "webhook"
MOST = 399  # lines


def test_no_module_is_too_long() -> None:
    lines = {path: path.read_text().count("\n") for path in WEBHOOK.rglob("*.py")}
    assert lines
    assert [str(path) for path, number in lines.items() if number > MOST] == []
