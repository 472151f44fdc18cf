"""`gpu-webhook config match-conditions`: what follows from the settings for the API server."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from types import SimpleNamespace


def match_conditions(args: SimpleNamespace) -> int:
    """Print what follows from the settings in each entry of the webhook configurations."""
    from webhook.cli import knowledge
    from webhook.core import match_conditions as made

    settings = knowledge.settings(args)
    entries = {
        "repair.gpu-webhook.dev": {"matchConditions": made.match_conditions(settings)},
        "policy.gpu-webhook.dev": {"matchConditions": made.pod_policy_match_conditions(settings)},
        "workloads.gpu-webhook.dev": {
            "rules": made.workload_rules(settings),
            "matchConditions": made.workload_match_conditions(settings),
        },
        "workload-repair.gpu-webhook.dev": {
            "rules": made.workload_rules(settings),
            "matchConditions": made.workload_match_conditions(settings, repaired=True),
        },
    }
    sys.stdout.write(as_yaml(entries))
    return 0


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and no text so that kubectl takes it for more."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    from webhook.migration.yaml_words import is_plain

    if not all(line.isprintable() for line in text.split("\n")):
        style: str | None = '"'
    elif "\n" in text:
        style = "|"
    else:
        style = None if is_plain(text, flow=False) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(value: object) -> str:
    """The value as YAML that people like to read."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)
