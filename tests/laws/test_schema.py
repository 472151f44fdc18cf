"""The published schema of the settings file is that of this version."""

from __future__ import annotations

import json
from pathlib import Path

from webhook.settings.schema import schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "schema" / "settings.json"


def test_the_published_schema_is_fresh() -> None:
    assert json.loads(PUBLISHED.read_text()) == schema(), "run `make docs`"
