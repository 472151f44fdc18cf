"""`gpu-webhook config schema` and `match-conditions`: for editors, and for the API server."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import SimpleNamespace


def schema(_args: SimpleNamespace) -> int:
    """Print the JSON Schema of the settings file."""
    from webhook.reports.printing import as_json
    from webhook.settings.schema import schema as made

    sys.stdout.write(as_json(made()))
    return 0


def match_conditions(args: SimpleNamespace) -> int:
    """Print the matchConditions for each entry of the webhook configurations, from the settings."""
    from webhook.cli import inputs
    from webhook.evaluation import match_conditions as made
    from webhook.reports.printing import as_yaml

    sys.stdout.write(as_yaml(made.entries(inputs.settings(args))))
    return 0
