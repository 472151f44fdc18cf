"""The picture in docs/architecture.md is what the imports are now."""

from __future__ import annotations

import tomllib
from xml.etree import ElementTree as ET

from tests.laws import rooms_picture


def test_the_committed_picture_is_what_the_script_draws_now() -> None:
    drawn = rooms_picture.drawn()
    assert rooms_picture.PICTURE.read_text() == drawn, f"stale: run `{rooms_picture.RENEW}`"
    assert "architecture.svg" in rooms_picture.PICTURE.with_suffix(".md").read_text()
    ET.fromstring(drawn)  # noqa: S314 (our own)


def test_every_room_has_a_box_and_the_pure_ones_are_those_of_the_contract() -> None:
    assert {name for layer in rooms_picture.layers() for name in layer} == set(rooms_picture.ROOMS)
    project = tomllib.loads((rooms_picture.ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (pure,) = (each for each in contracts if each["name"] == "What decides is pure")
    boxes = {
        f"webhook.{name}" for name, room in rooms_picture.ROOMS.items() if room.group == "pure"
    }
    assert boxes == set(pure["source_modules"])


def test_an_import_that_follows_from_others_has_no_arrow() -> None:
    rooms = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert rooms_picture.arrows(rooms) == [("a", "b"), ("b", "c")]
