"""`gpu-webhook verify` of a chart's folder, with the real helm: nothing in it is passed over."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cluster import build
from tests.verifying.test_command import (
    CURRENT,
    DIFFERENT,
    EQUAL,
    LEGACY,
    NOT_PROVABLE,
    new,
    old,
    written,
)  # fmt: skip
from webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

CHART = "apiVersion: v2\nname: x\nversion: 1.0.0\n"
TEMPLATE = CURRENT.replace("{limits: {nvidia.com/gpu: 1}}", "{{ toJson .Values.resources }}")
BASE = {"Chart.yaml": CHART, "templates/a.yaml": new(), "values.yaml": "resources: {}\n"}
WITH_VALUES = {**BASE, "templates/a.yaml": TEMPLATE}
OFF = "{{ if .Values.gpu }}\n" + old() + "{{ end }}\n"
OFF_NEW = "{{ if .Values.gpu }}\n" + new() + "{{ end }}\n"
IN_PART = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: m}\n---\n"
INNER = {"charts/y/Chart.yaml": CHART.replace("name: x", "name: y")}
TEST = LEGACY.replace("{name: NAME}", '{name: t, annotations: {"helm.sh/hook": test}}')


def values(name: str, amount: int) -> dict[str, str]:
    return {**WITH_VALUES, "values-prod.yaml": f"resources: {{limits: {{{name}: {amount}}}}}\n"}


# The files before and after, the exit code, and a line of the output.
KEY, TODAY = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
TABLE: dict[str, tuple[dict[str, str], dict[str, str], int, str]] = {
    "other values with another amount": (
        values(KEY, 4), values(TODAY, 1), DIFFERENT, "new/values-prod.yaml: Pod/NAME: different",
    ),
    "other values with the same amount": (
        values(KEY, 4), values(TODAY, 4), EQUAL, "new/values-prod.yaml: Pod/NAME: equal",
    ),
    "other values that stay legacy": (
        values(KEY, 4), values(KEY, 4), DIFFERENT, "new/values-prod.yaml: Pod/NAME: different",
    ),
    "a manifest beside the templates": (
        {**BASE, "examples/p.yaml": old("e")},
        {**BASE, "examples/p.yaml": new("e").replace("gpu: 1", "gpu: 9")},
        DIFFERENT, "new/examples/p.yaml: Pod/e: different",
    ),
    "a kustomization that is gone, in a repository whose root is a chart": (
        {**BASE, "deploy/kustomization.yaml": "resources: [p.yaml]\n", "deploy/p.yaml": new("z")},
        BASE, DIFFERENT, "old/deploy: Pod/z: different: only OLD has it",
    ),
    "a pod of `helm test` that stays legacy": (
        {**BASE, "templates/tests/t.yaml": TEST},
        {**BASE, "templates/tests/t.yaml": TEST},
        DIFFERENT, "new: Pod/t: different",
    ),
    "a template that is off, and stays legacy": (
        {**BASE, "templates/b.yaml": OFF},
        {**BASE, "templates/b.yaml": OFF},
        NOT_PROVABLE, "new/templates/b.yaml: not provable: no rendering shows all of it",
    ),
    "a template that is off, and gets another amount": (
        {**BASE, "templates/b.yaml": OFF_NEW},
        {**BASE, "templates/b.yaml": OFF_NEW.replace("gpu: 1", "gpu: 9")},
        NOT_PROVABLE, "new/templates/b.yaml: not provable: no rendering shows all of it",
    ),
    "a current template that is off and stays": (
        {**BASE, "templates/b.yaml": OFF_NEW},
        {**BASE, "templates/b.yaml": OFF_NEW},
        EQUAL, "1 compared: 1 equal",
    ),
    "a branch of a template that is off": (
        {**BASE, "templates/b.yaml": IN_PART + OFF},
        {**BASE, "templates/b.yaml": IN_PART + OFF_NEW.replace("gpu: 1", "gpu: 9")},
        NOT_PROVABLE, "new/templates/b.yaml: not provable: no rendering shows all of it",
    ),
    "a branch that other values turn on": (
        {**BASE, "templates/b.yaml": IN_PART + OFF, "ci/gpu-values.yaml": "gpu: true\n"},
        {**BASE, "templates/b.yaml": IN_PART + OFF_NEW, "ci/gpu-values.yaml": "gpu: true\n"},
        EQUAL, "new/ci/gpu-values.yaml: Pod/p: equal",
    ),
    "a helper that nobody includes": (
        {**BASE, "templates/_h.tpl": f'{{{{ define "g" }}}}{KEY}: 4{{{{ end }}}}\n'},
        {**BASE, "templates/_h.tpl": f'{{{{ define "g" }}}}{TODAY}: 1{{{{ end }}}}\n'},
        NOT_PROVABLE, "new/templates/_h.tpl: not provable: no rendering shows all of it",
    ),
    "a comment in a template, and one of YAML": (
        {**BASE, "templates/a.yaml": f"{{{{/* {KEY} */}}}}\n# {KEY}\n{old()}"},
        {**BASE, "templates/a.yaml": f"{{{{/* {TODAY} */}}}}\n# {TODAY}\n{new()}"},
        EQUAL, "1 compared: 1 equal",
    ),
    "other values of a chart inside": (
        {**BASE, **INNER, "charts/y/values-prod.yaml": f"limits: {{{KEY}: 4}}\n"},
        {**BASE, **INNER, "charts/y/values-prod.yaml": f"limits: {{{TODAY}: 1}}\n"},
        NOT_PROVABLE, "new/charts/y/values-prod.yaml: not provable",
    ),
    "a second chart in the folder of the first": (
        {**BASE, **{f"examples/c/{name}": text for name, text in BASE.items()}},
        {**BASE, **{f"examples/c/{name}": text for name, text in values(KEY, 4).items()}},
        DIFFERENT, "old/examples/c: Pod/p: different: only OLD has it",
    ),
    "other values that helm cannot use": (
        {**BASE, "values-x.yaml": "resources: ["},
        {**BASE, "values-x.yaml": "resources: ["},
        NOT_PROVABLE, "new/values-x.yaml: not provable: helm failed: Error: ",
    ),
    "a schema of values": (
        {**BASE, "values.schema.json": "{}"}, {**BASE, "values.schema.json": "{}"},
        EQUAL, "1 compared: 1 equal",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("was", "now", "code", "words"), TABLE.values(), ids=TABLE)
def test_a_folder_of_a_chart(
    was: dict[str, str],
    now: dict[str, str],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", f"{build.helm().parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "old", was)
    written(tmp_path / "new", now)
    found = main(["verify", "old", "new"])
    said = capsys.readouterr().out
    assert (found, words in said) == (code, True), said
