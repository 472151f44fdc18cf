"""Amounts of a chart wait for what Terraform and other programs may give to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.test_given_values import CHART, looked_at, reasons
from tests.projects.test_named_values import CHART_WITH_AMOUNT, RELEASE
from tests.projects.test_values import NEW, OLD, resources

if TYPE_CHECKING:
    from pathlib import Path

SET = 'variable "{}" {{\n  type = number\n  default = 0.5\n}}\n'
OF_VARIABLE = RELEASE.format("yamlencode({ gpu = var.gpu })")
MODULE = 'module "x" {\n  source = "./m"\n  gpu    = 0.5\n}\n'
LEGACY = f'resources = {{ limits = {{ "{OLD}" = 1 }} }}\n'

# Files, and what the reason says of them.
FRACTIONS = {
    "yamlencode": ({"main.tf": RELEASE.format("yamlencode({ gpu = 0.5 })")}, "0.5"),
    "jsonencode": ({"main.tf": RELEASE.format('jsonencode({ "gpu" : "500m" })')}, "500m"),
    "a here-document": ({"main.tf": RELEASE.format("<<-EOF\n    gpu: 0.5\n    EOF\n  ")}, "0.5"),
    "a here-document with a variable": (
        {
            "v.tf": SET.format("size"),
            "main.tf": RELEASE.format("<<EOF\ngpu: ${var.size}\nEOF\n  "),
        },
        "0.5 from size",
    ),
    "a variable": ({"v.tf": SET.format("gpu"), "main.tf": OF_VARIABLE}, "0.5 from gpu"),
    "a variable that is set": (
        {
            "prod.tfvars": "size = 0.5\n",
            "main.tf": 'resource "helm_release" "x" {\n  set {\n    name  = "gpu"\n'
            '    value = var.size\n  }\n}\n',
        },
        "0.5 from size",
    ),
    "locals in another file": (
        {
            "locals.tf": "locals {\n  its = {\n    gpu = 0.5\n  }\n}\n",
            "main.tf": RELEASE.format("yamlencode(local.its)"),
        },
        "0.5",
    ),
    "a file of variables": (
        {
            "prod.tfvars": "its = { gpu = 0.5 }\n",
            "main.tf": RELEASE.format("yamlencode(var.its)"),
        },
        "0.5",
    ),
    "a module": (
        {"main.tf": MODULE, "m/main.tf": RELEASE.format("yamlencode(var.its)")},
        "0.5",
    ),
    "Terragrunt": (
        {
            "prod/terragrunt.hcl": "inputs = {\n  gpu = 0.5\n}\n",
            "m/main.tf": RELEASE.format("yamlencode(var.its)"),
        },
        "0.5",
    ),
    "Pulumi": (
        {
            "index.ts": 'new k8s.helm.v3.Chart("x", {\n  path: "./chart",\n'
            "  values: { gpu: 0.5 },\n})\n"
        },
        "0.5",
    ),
    "a template of helmfile": (
        {"values.yaml.gotmpl": "{{ if .Values.on }}\ngpu: 0.5\n{{ end }}\n"},
        "0.5",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "said"), FRACTIONS.values(), ids=FRACTIONS)
def test_amounts_wait_for_what_a_program_may_give(
    files: dict[str, str], said: str, tmp_path: Path
) -> None:
    results = looked_at(tmp_path, {**CHART_WITH_AMOUNT, **files})
    assert f"{said} " in reasons(results)
    assert f" in ../{next(iter(files))} (line " in reasons(results)
    assert NEW not in (results["chart/templates/p.yaml"].new_text or "")


NAMES = {
    "a file of variables": {
        "prod.tfvars": LEGACY,
        "main.tf": RELEASE.format("yamlencode({ resources = var.resources })"),
    },
    "a module": {
        "main.tf": f'module "x" {{\n  source = "./m"\n  {LEGACY}}}\n',
        "m/main.tf": RELEASE.format("yamlencode(var.its)"),
    },
    "a release beside one of another chart": {
        "main.tf": RELEASE.format(f"yamlencode({{ {LEGACY.strip()} }})")
        + RELEASE.replace("./chart", "./web").format("")
    },
    "a release whose chart is a variable": {
        "main.tf": RELEASE.replace('"./chart"', "var.chart").format(
            f"yamlencode({{ {LEGACY.strip()} }})"
        )
    },
}


@pytest.mark.parametrize("files", NAMES.values(), ids=NAMES)
def test_amounts_wait_for_the_legacy_name_in_terraform(
    files: dict[str, str], tmp_path: Path
) -> None:
    results = looked_at(tmp_path, {**CHART, **files})
    assert f"{next(iter(files))} (line " in reasons(results)
    assert NEW not in (results["chart/values.yaml"].new_text or "")


NOTHING = {
    "a release of another chart": {
        "main.tf": RELEASE.replace("./chart", "${{path.module}}/web").format(
            f"yamlencode({{ {LEGACY.strip()} }})"
        )
    },
    "Terraform without Helm": {
        "main.tf": f'resource "kubernetes_pod" "x" {{\n  {LEGACY}}}\n',
        "prod.tfvars": LEGACY,
    },
    "other variables": {"main.tf": RELEASE.format("yamlencode({ name = var.name, gpu = 1 })")},
}


@pytest.mark.parametrize("files", NOTHING.values(), ids=NOTHING)
def test_amounts_do_not_wait_for_other_terraform(files: dict[str, str], tmp_path: Path) -> None:
    results = looked_at(tmp_path, {**CHART, **files})
    assert results["chart/values.yaml"].new_text == resources(4, name=NEW)


def test_a_whole_number_in_terraform_holds_nothing(tmp_path: Path) -> None:
    files = {**CHART_WITH_AMOUNT, "main.tf": RELEASE.format("yamlencode({ gpu = 2 })")}
    assert NEW in (looked_at(tmp_path, files)["chart/templates/p.yaml"].new_text or "")
