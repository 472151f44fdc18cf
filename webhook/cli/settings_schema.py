"""The JSON Schema of the settings file, for editors and CI."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from webhook.cli.settings_shape import DEFINITIONS, FILE
from webhook.reports.printing import as_json

if TYPE_CHECKING:
    from types import SimpleNamespace

    from webhook.cli.settings_kinds import Schema

ID = "https://gpu-webhook.dev/schema/settings.json"


def run(_args: SimpleNamespace) -> int:
    """Print it."""
    sys.stdout.write(as_json(schema()))
    return 0


def schema() -> Schema:
    """JSON Schema, draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "Settings of gpu-webhook",
        "description": "What is left out keeps its default; an empty file is all defaults.",
        **FILE.schema(),
        "$defs": {name: each.definition() for name, each in DEFINITIONS.items()},
    }
