"""Plain data as JSON or YAML text, printed the same way by every command."""

from __future__ import annotations

import json
from typing import Any

import yaml

from webhook.yamlpatch.yaml_words import is_plain, quoted


class _Dumper(yaml.SafeDumper):
    """Writes long texts as blocks, and quotes texts that kubectl would read as another type."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True  # also for null, which is one object


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if not all(line.isprintable() for line in text.split("\n")):
        style: str | None = '"'  # PyYAML would fold U+0085 and similar characters into spaces
    elif "\n" in text:
        style = "|"
    else:
        style = None if is_plain(text, flow=False) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_json(value: object) -> str:
    """The value as JSON, one member for each line."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def as_yaml(value: object, **options: Any) -> str:
    """The value as readable YAML."""
    given = {"sort_keys": False, "width": 100, "allow_unicode": True, **options}
    text: str = yaml.dump(value, Dumper=_Dumper, **given)
    if text.replace("\n", "").isprintable():
        return text
    # PyYAML writes bidirectional marks unescaped; they are only possible in double quotes.
    shown = (
        each if each.isprintable() or each == "\n" else quoted(each, '"')[1:-1] for each in text
    )
    return "".join(shown)


def in_one_line(value: object) -> str:
    """The value as YAML of one line: `{a: 1, b: [c]}`."""
    text = as_yaml(value, default_flow_style=True, width=float("inf"))
    return text.removesuffix("...\n").strip()


PRINTED = {"json": as_json, "yaml": as_yaml}
