"""`gpu-webhook config`: what follows from the settings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import yaml

from webhook.core.match_conditions import match_conditions
from webhook.core.settings import Settings

if TYPE_CHECKING:
    import argparse


def run(args: argparse.Namespace) -> int:
    """Print the matchConditions for the settings, as they stand in the webhook configuration."""
    from webhook.cli import settings_file

    settings = settings_file.load(args.config) if args.config else Settings()
    sys.stdout.write(as_yaml({"matchConditions": match_conditions(settings)}))
    return 0


class _Dumper(yaml.SafeDumper):
    """Writes a text of several lines as a literal block."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(value: object) -> str:
    """The value as YAML that people like to read."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)
