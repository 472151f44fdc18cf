"""Writes what the chart says twice: the table of its README, the settings in its schema, defaults.

`python -m tests.manifests.chart_files` renews them; test_chart_files.py fails when one is stale.
The table is made of values.yaml: of each value, its default, and the comment above it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from webhook.settings.schema import schema

CHART = Path(__file__).parents[2] / "manifests"
RENEW = "python -m tests.manifests.chart_files"
MARK = f"<!-- values: written by `{RENEW}` -->\n"
_HEAD = "| value | default | what it does |\n|---|---|---|\n"
_VALUE = re.compile(r"^(?P<indent> *)(?P<key>\w+):")


def rows() -> list[tuple[str, Any, str]]:
    """The path, the default and the comment of each value, in their order."""
    text = (CHART / "values.yaml").read_text()
    found: list[tuple[str, Any, str]] = []
    above: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        match = _VALUE.match(line)
        if match is None:
            comment = [*comment, line.strip(" #")] if line.strip().startswith("#") else []
            continue
        above = [*above[: len(match["indent"]) // 2], match["key"]]
        default: Any = yaml.safe_load(text)
        for key in above:
            default = default[key]
        if not (isinstance(default, dict) and default):
            found.append((".".join(above), default, " ".join(comment)))
        comment = []
    return found


def readme() -> str:
    """The page as it must be."""
    table = "".join(
        f"| `{path}` | `{json.dumps(value)}` | {what} |\n" for path, value, what in rows()
    )
    return (CHART / "README.md").read_text().partition(MARK)[0] + MARK + _HEAD + table


def defaults() -> str:
    """values.yaml, as templates can read it."""
    return json.dumps(yaml.safe_load((CHART / "values.yaml").read_text()), indent=1) + "\n"


def values_schema() -> str:
    """The schema of the values as it must be: the settings in it are those of the program."""
    found = json.loads((CHART / "values.schema.json").read_text())
    settings = _in_go(schema())
    found["$defs"]["settings"] = None
    text = json.dumps(found, indent=1) + "\n"
    return text.replace('"settings": null', f'"settings": {json.dumps(settings)}')


def _in_go(part: Any) -> Any:
    """The same for helm: without what only editors show, and as Go reads patterns and YAML.

    Go's regular expressions have no lookahead and count to 1000. Without these a pattern takes more
    texts, never fewer: what is too long or reserved, only the program finds. The word off is false.
    """
    if isinstance(part, list):
        return [_in_go(each) for each in part]
    if not isinstance(part, dict):
        return part
    if "off" in part.get("enum", ()):
        return {"enum": [*part["enum"], False]}
    found: dict[str, Any] = {}
    for key, value in part.items():
        if key in _NAMED:
            found[key] = {name: _in_go(each) for name, each in value.items()}
        elif key == "pattern":
            found[key] = _UNCOUNTED.sub("+", _AHEAD.sub("", value))
        elif key not in _SHOWN:
            found[key] = _in_go(value)
    return found


_NAMED = {"properties", "$defs"}  # their keys are names
_SHOWN = {"$schema", "title", "description", "default", "examples"}
_AHEAD = re.compile(r"\(\?!(?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)")
_UNCOUNTED = re.compile(r"\{1,\d{4,}\}")


def main() -> None:
    (CHART / "README.md").write_text(readme())
    (CHART / "values.schema.json").write_text(values_schema())
    (CHART / "defaults.json").write_text(defaults())


if __name__ == "__main__":
    main()
