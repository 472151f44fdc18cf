"""The settings file: what it may say, and `core.settings.Settings` from what it says.

Only this room speaks pydantic. It is imported by commands that read settings, when they do.
"""

from __future__ import annotations

from webhook.settings.file import (
    MistakesError,
    SettingsFile,
    decoded,
    load,
    parse,
    read,
    read_text,
)
from webhook.settings.nodes import Mistake, Place
from webhook.settings.schema import leaves, schema

__all__ = [
    "Mistake",
    "MistakesError",
    "Place",
    "SettingsFile",
    "decoded",
    "leaves",
    "load",
    "parse",
    "read",
    "read_text",
    "schema",
]
