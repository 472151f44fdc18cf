"""Manifests in the texts of other objects: migrated where they stand, as if they were files."""

from __future__ import annotations

import textwrap

import pytest

from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
POD = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: gpu}}
spec:
  tolerations: [{{key: {NEW}, operator: Exists, effect: NoSchedule}}]
  containers:
  - name: a   # stays
    image: x
    resources: {{limits: {{{OLD}: 1}}}}
"""
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: b\n"


def within(text: str, key: str = "  pod.yaml: |\n") -> str:
    return key + textwrap.indent(text, "    ")


MIGRATED = {
    "a ConfigMap": HEAD + within(POD),
    "a key with a comment": HEAD + within(POD, "  pod.yaml: |-  # for the controller\n"),
    "two in one text": HEAD + within(f"{POD}---\n{POD}"),
    "two texts": HEAD + within(POD) + within(POD, "  other.yaml: |\n"),
    "a ConfigMap in a ConfigMap": HEAD + within(HEAD + within(POD)),
    "beside a ConfigMap in a ConfigMap": (
        HEAD + within(f"{POD}---\n{HEAD}{within(POD)}") + within(POD, "  other.yaml: |\n")
    ),
    "beside an object": f"{POD}---\n{HEAD}{within(POD)}---\n{POD}",
    "a Secret": HEAD.replace("ConfigMap", "Secret").replace("data", "stringData") + within(POD),
    "a cloud-config": "#cloud-config\nwrite_files:\n- path: /x\n" + within(POD, "  content: |\n"),
    "a template for a sidecar": HEAD
    + within(POD.replace("name: gpu", "name: '{{ .Name }}'"), "  config: |\n"),
}


@pytest.mark.parametrize("text", MIGRATED.values(), ids=MIGRATED)
def test_it_is_migrated_and_nothing_else_is_changed(text: str) -> None:
    result = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert result.new_text == text.replace(OLD, NEW)
    assert {each.status for each in result.located} == {Status.FIXABLE}
    again = migrate_text(Source.of_text("x.yaml", result.new_text or ""), Plan())
    assert (again.new_text, again.located) == (None, ())


FOLDED = f'  a: "apiVersion: v1\\nkind: Pod\\n{OLD}: 1"\n'
SCRIPT = f"#!/bin/sh\nkubectl apply -f - <<EOF\n{POD}EOF\n"
REPORTED = {
    "a script": (HEAD + within(SCRIPT, "  run.sh: |\n"), {17}),
    "a text in quotes": (HEAD + FOLDED, {6}),
    "JSON in one line": (HEAD + within(f'{{"kind": "Pod", "{OLD}": 1}}\n'), {7}),
    "no manifest": (HEAD + within(f"gpu: {OLD}\n"), {7}),
    "a program around it": (HEAD + within(f"x = {OLD}\n---\n{POD.replace(OLD, 'cpu')}"), {7}),
    "a manual finding in it": (HEAD + within(POD.replace("gpu: 1", "gpu: x")), {15}),
}


@pytest.mark.parametrize(("text", "lines"), REPORTED.values(), ids=REPORTED)
def test_other_texts_are_reported(text: str, lines: set[int]) -> None:
    result = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert result.new_text is None
    manual = {each.place.line for each in result.located if each.status is Status.MANUAL}
    assert manual == lines


def test_a_finding_in_the_text_stays_beside_an_edit() -> None:
    text = HEAD + within(f"# {OLD} is old\nname: {OLD}\n---\n{POD}")
    result = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert result.new_text == text.replace(f"{{{OLD}", f"{{{NEW}")
    said = [(each.place.line, each.status) for each in result.located]
    assert said == [(7, Status.NOTICE), (8, Status.MANUAL), (18, Status.FIXABLE)]
