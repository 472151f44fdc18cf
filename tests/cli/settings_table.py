"""Writes the table at the end of docs/settings.md, from the JSON Schema of the file.

`python -m tests.cli.settings_table` renews it; tests/cli/test_settings_page.py fails when it is
stale.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.reports.printing import in_one_line
from webhook.settings.schema import at, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.settings.values import Schema

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
RENEW = "python -m tests.cli.settings_table"
MARK = f"<!-- settings: written by `{RENEW}` -->\n"
_HEAD = "| setting | default | what it may be | what it does |\n|---|---|---|---|\n"


def table() -> str:
    """The table as it must be."""
    return _HEAD + "".join(_rows((), ""))


def page() -> str:
    """The page with the table as it must be."""
    return PAGE.read_text().partition(MARK)[0] + MARK + table()


def _rows(place: tuple[int | str, ...], above: str) -> Iterator[str]:
    described = at(place)
    for name in described["properties"]:
        here, part = f"{above}{name}", at((*place, name))
        if "null" in part.get("type", ()):
            yield from _rows((*place, name), f"{here}.")
            continue
        default = "needed" if name in described.get("required", ()) else _default(part)
        cells = (f"`{here}`", default, words(part), part["description"])
        yield f"| {' | '.join(map(_escaped, cells))} |\n"
        item = at((*place, name, 0)) if part.get("type") == "array" else {}
        if "properties" in item and "errorMessage" not in part["items"]:
            yield from _rows((*place, name, 0), f"{here}[].")


def _escaped(cell: str) -> str:
    return cell.replace("<", "&lt;").replace("|", "&#124;")


def _default(part: Schema) -> Any:
    value = part.get("default", "")
    return "" if value == "" else f"`{in_one_line(value)}`"


def main() -> None:
    """Renew the table."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
