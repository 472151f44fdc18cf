"""`gpu-webhook verify` of a chart's folder, with the real helm: nothing in it is passed over."""

from __future__ import annotations

from typing import Any

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
)  # fmt: skip

KEY, TODAY = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
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


TWO_VALUES = {"values-a.yaml": "a: 1\n", "values-b.yaml": "b: 1\n"}
IF, END = "{{ if .Values.gpu }}\n    ", "{{ end }}\n"
BOTH_ON = "{{ if and .Values.a .Values.b }}\n"
BOTH_AMOUNT = new().replace(
    "gpu: 1", "gpu: {{ if and .Values.a .Values.b }}AMOUNT{{ else }}2{{ end }}"
)
REQUIRED = '# {{ required "a" .Values.a }} {{ required "b" .Values.b }}\n'


def amounts(*each: int) -> dict[str, str]:
    """Files of values with these amounts."""
    names = zip(("values-a.yaml", "values-b.yaml"), each, strict=True)
    return {name: f"resources: {{limits: {{{TODAY}: {amount}}}}}\n" for name, amount in names}


CHART_X = "apiVersion: v2\nname: x\nversion: 1.0.0\n"


def by_version(other: str, version: str = "apps/v1beta2") -> str:
    """A template with a pod where the API server has this version, and this text elsewhere."""
    has = f'.Capabilities.APIVersions.Has "{version}"'
    return f"{{{{- if {has} }}}}\n{new()}{{{{- else }}}}\n{other}{{{{- end }}}}\n"


def fraction(name: str, resource: str) -> dict[str, str]:
    """A chart whose amount is a fraction with the values in this file."""
    template = (new() if resource == TODAY else old()).replace("gpu: 1", "gpu: {{ .Values.gpu }}")
    values = {"values.yaml": "gpu: 1\n", name: '{"gpu": 0.5}\n'}
    return {**BASE, "templates/a.yaml": template, **values}


# The files before and after, the exit code, and a line of the output.
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
    "a branch that two files of values turn on together": (
        {**BASE, **TWO_VALUES, "templates/b.yaml": IN_PART + BOTH_ON + old() + "{{ end }}\n"},
        {**BASE, **TWO_VALUES, "templates/b.yaml": IN_PART + BOTH_ON + new() + "{{ end }}\n"},
        EQUAL, "new/values-b.yaml: Pod/p: equal",
    ),
    "another amount in such a branch": (
        {**BASE, **TWO_VALUES, "templates/b.yaml": BOTH_AMOUNT.replace("AMOUNT", "4")},
        {**BASE, **TWO_VALUES, "templates/b.yaml": BOTH_AMOUNT.replace("AMOUNT", "1")},
        DIFFERENT, "new/values-b.yaml: Pod/p: different: spec.containers.resources.limits",
    ),
    "the later file counts": (
        {**WITH_VALUES, **amounts(2, 3)}, {**WITH_VALUES, **amounts(2, 4)},
        DIFFERENT, "new/values-b.yaml: Pod/NAME: different",
    ),
    "values that render only with another file": (
        {**BASE, **TWO_VALUES, "templates/b.yaml": REQUIRED + old()},
        {**BASE, **TWO_VALUES, "templates/b.yaml": REQUIRED + new()},
        EQUAL, "new/values-b.yaml: Pod/p: equal",
    ),
    "values with which nothing renders": (
        {**BASE, "values-a.yaml": "a: 1\n", "templates/b.yaml": REQUIRED + old()},
        {**BASE, "values-a.yaml": "a: 1\n", "templates/b.yaml": REQUIRED + new()},
        NOT_PROVABLE, "new/values-a.yaml: not provable: helm failed",
    ),
    "values that no longer render": (
        {**BASE, **TWO_VALUES, "templates/b.yaml": REQUIRED + new()},
        {**BASE, **TWO_VALUES, "templates/b.yaml": REQUIRED.replace(".b", ".c") + new()},
        DIFFERENT, "old/values-b.yaml: Pod/p: different: only OLD has it",
    ),
    "a toleration without the condition of the request": (
        {**BASE, "templates/b.yaml": old().replace("    resources", f"    {IF}resources") + END},
        {**BASE, "templates/b.yaml": new().replace("    resources", f"    {IF}resources")
         .replace("  tolerations", f"{END}  tolerations")},
        DIFFERENT, "(changed by no rule: the webhook adds this only to pods that request GPUs)",
    ),
    "another toleration without it": (
        {**BASE, "templates/b.yaml": new()},
        {**BASE, "templates/b.yaml": new() + "  - {key: other}\n"},
        DIFFERENT, "spec.tolerations (changed by no rule)",
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
    "a fraction in YAML of any name": (
        fraction("env/prod.yaml", KEY), fraction("env/prod.yaml", TODAY),
        DIFFERENT, "new/env/prod.yaml: Pod/p: different: spec.containers.resources.limits",
    ),
    "a fraction in JSON of any name": (
        fraction("prod.json", KEY), fraction("prod.json", TODAY),
        DIFFERENT, "new/prod.json: Pod/p: different: spec.containers.resources.limits",
    ),
    "a file of any name that helm cannot use as values": (
        {**BASE, "list.yaml": "- a\n"}, {**BASE, "list.yaml": "- a\n"},
        EQUAL, "1 compared: 1 equal",
    ),
    "legacy names in a file of any name that helm cannot use as values": (
        {**BASE, "list.yaml": f"- {KEY}\n"}, {**BASE, "list.yaml": f"- {KEY}\n"},
        NOT_PROVABLE, "new/list.yaml: not provable: ",
    ),
    "a branch for a version that no API server has, although helm knows it": (
        {**BASE, "templates/a.yaml": by_version(old())},
        {**BASE, "templates/a.yaml": by_version(old())},
        DIFFERENT, "new: Pod/p: different",
    ),
    "the same in a chart below it": (
        {**BASE, "charts/x/Chart.yaml": CHART_X, "charts/x/templates/a.yaml": by_version(old())},
        {**BASE, "charts/x/Chart.yaml": CHART_X, "charts/x/templates/a.yaml": by_version(old())},
        DIFFERENT, "new: Pod/p: different",
    ),
    "a branch for a version that API servers have": (
        {**BASE, "templates/a.yaml": by_version("a: {{ fail `x` }}\n", "apps/v1")},
        {**BASE, "templates/a.yaml": by_version("a: {{ fail `x` }}\n", "apps/v1")},
        EQUAL, "new: Pod/p: equal",
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
    verify_with: Any,
) -> None:
    found, said = verify_with(build.helm().parent, was, now)
    assert (found, words in said) == (code, True), said
