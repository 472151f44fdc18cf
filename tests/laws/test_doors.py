"""A room's first page names the modules that other rooms may use; the rest is its own affair."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

WEBHOOK = Path(__file__).parents[2] / "webhook"
ROOMS = sorted(each.parent.name for each in WEBHOOK.glob("*/__init__.py"))
SIGN = "Other rooms use: "


def named(room: str) -> set[str]:
    page = ast.get_docstring(ast.parse((WEBHOOK / room / "__init__.py").read_text())) or ""
    _, sign, names = page.partition(SIGN)
    assert sign, f"webhook/{room}/__init__.py does not say which modules {SIGN.lower()}..."
    return set(names.rstrip(".").replace(",", " ").split())


@cache
def used() -> dict[str, set[str]]:
    """The modules of each room that others import."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in WEBHOOK.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("webhook."):
                _, room, *module = (node.module or "").split(".")
                if room != path.parent.name:
                    found[room] |= set(module[:1]) or {each.name for each in node.names}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_other_rooms_use_what_a_room_names_and_nothing_else(room: str) -> None:
    modules = {path.stem for path in (WEBHOOK / room).glob("*.py")} - {"__init__"}
    assert named(room) == ({"all"} if used()[room] >= modules else used()[room] & modules)
