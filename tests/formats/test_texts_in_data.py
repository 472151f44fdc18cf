"""Legacy words in a text that is a value, as in a ConfigMap, are reported at their lines."""

from __future__ import annotations

import textwrap

import pytest

from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

NAME = "alpha.kubernetes.io/nvidia-gpu"
CONFIG = f"""\
logLevel: 3
accelerators:
  {NAME}:
    volumes:
    - name: bin
      hostPath: /usr/lib/nvidia-384/bin
    - name: lib
      hostPath: /var/lib/nvidia-docker/volumes/nvidia_driver/384.59
default: {NAME}
"""
SAID = [("GPU132", 9, NAME), ("GPU132", 12, "/usr"), ("GPU132", 14, "/var"), ("GPU101", 15, NAME)]


def config_map(head: str = "|", indent: str = "    ") -> str:
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: operator\ndata:\n"
        f"  config.yaml: {head}\n{textwrap.indent(CONFIG, indent)}"
    )


def said(path: str, text: str) -> list[tuple[str, int, str]]:
    """The findings: code, line, and what stands there."""
    source = Source.of_text(path, text)
    found = [each for each in migrate_text(source, Plan()).located if each.status is Status.MANUAL]
    assert len({(each.code, each.place.line) for each in found}) == len(found)
    spans = [
        (each, source.index(each.place.line, each.place.column), each.place.end_column)
        for each in sorted(found, key=lambda each: each.place.line)
    ]
    return [
        (each.code, each.place.line, source.text[start : start + end - each.place.column])
        for each, start, end in spans
    ]


WAYS = {
    "a literal text": ("x.yaml", config_map()),
    "one that is folded": ("x.yaml", config_map(">")),
    "with an indent that is named": ("x.yaml", config_map("|2-  # of the operator")),
    "in a chart": ("templates/x.yaml", config_map().replace("name: o", "name: {{ .x }}-o")),
}


@pytest.mark.parametrize(("path", "text"), WAYS.values(), ids=WAYS)
def test_each_word_has_a_finding_at_its_line(path: str, text: str) -> None:
    found = said(path, text)
    assert [(code, line) for code, line, _ in found] == [(code, line) for code, line, _ in SAID]
    for (_, _, there), (_, _, begins) in zip(found, SAID, strict=True):
        assert there.startswith(begins)


def test_a_script_of_a_container() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: c\n"
        f"    image: i\n    args:\n    - |\n      set -e\n      kubectl patch --limit {NAME}=1\n"
    )
    assert said("x.yaml", text) == [("GPU132", 11, NAME)]


ESCAPED = '"a: 1\\nb: \\x61lpha.kubernetes.io/nvidia-gpu"'
QUOTED = {
    "double quotes": (f'"a: 1\\nb: {NAME}"', NAME),
    "a word in escapes, which no line has as it is": (ESCAPED, f"gpu: {ESCAPED}"),
    "single quotes": (f"'{NAME}'", NAME),
    "no quotes": (NAME, NAME),
}


@pytest.mark.parametrize(("value", "shown"), QUOTED.values(), ids=QUOTED)
def test_a_value_in_a_line(value: str, shown: str) -> None:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  gpu: "
    assert said("x.yaml", f"{head}{value}\n") == [("GPU132", 5, shown)]
