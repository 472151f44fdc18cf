"""Writes the table at the end of docs/settings.md, from the description of the file.

`python -m tests.cli.settings_table` renews it; tests/cli/test_settings_page.py fails when it is
stale.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from webhook.cli.settings_groups import Record, plain_at
from webhook.cli.settings_kinds import ListOf, MapOf, Shared, Text
from webhook.cli.settings_shape import FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.cli.settings_groups import Group, Setting
    from webhook.cli.settings_kinds import Kind

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
RENEW = "python -m tests.cli.settings_table"
MARK = f"<!-- settings: written by `{RENEW}` -->\n"
_HEAD = "| setting | default | what it may be | what it does |\n|---|---|---|---|\n"


def table() -> str:
    """The table as it must be."""
    return _HEAD + "".join(_rows(FILE.group, FILE.default))


def page() -> str:
    """The page with the table as it must be."""
    return PAGE.read_text().partition(MARK)[0] + MARK + table()


def _rows(group: Group, default: object, above: str = "") -> Iterator[str]:
    for path, field, setting in group.leaves():
        name = f"{above}{path}"
        cells = (
            f"`{name}`",
            _default(setting, default, field),
            _may_be(setting.kind),
            setting.text,
        )
        yield f"| {' | '.join(map(_escaped, cells))} |\n"
        if isinstance(setting.kind, ListOf) and isinstance(setting.kind.item, Record):
            record = setting.kind.item
            yield from _rows(record.group, record.default, f"{name}[].")


def _escaped(cell: str) -> str:
    return cell.replace("<", "&lt;").replace("|", "&#124;")


def _default(setting: Setting, default: object, field: str) -> str:
    if setting.required:
        return "needed"
    value = plain_at(setting, default, field)
    if value is None or value == "":
        return ""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n")
    return f"`{text.strip()}`"


def _may_be(kind: Kind[Any] | Group) -> str:
    match kind:
        case Shared():
            return _may_be(kind.kind)
        case Text():
            return kind.what
        case ListOf(item=Record(group=group)):
            return f"list of maps of {', '.join(each.name for each in group.settings)}"
        case ListOf():
            return f"list; each {_may_be(kind.item)}"
        case MapOf():
            return f"map; each name {_may_be(kind.key)}, with {_may_be(kind.value)}"
        case _:
            return kind.words


def main() -> None:
    """Renew the table."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
