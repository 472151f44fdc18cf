"""Amounts of a chart wait for values that objects, files and commands outside of it give to it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from tests.projects.test_values import MADE, NEW, OLD, limit, pod, resources
from webhook.cli.workers import judge
from webhook.files.results import MANUAL, Plan, Report, Status
from webhook.formats import legacy_pods
from webhook.projects import outside_amounts

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.files.results import FileResult

ESCAPED = r"resources.limits.alpha\.kubernetes\.io/nvidia-gpu"
INLINE = f"{{resources: {{limits: {{{OLD}: 1}}}}}}"


def indented(text: str, blanks: int) -> str:
    return "".join(f"{' ' * blanks}{line}\n" for line in text.splitlines())


def argo(helm: str, source: str = "path: chart") -> str:
    return (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec:\n"
        f"  source:\n    repoURL: https://example.org/r.git\n    {source}\n    helm:\n"
        f"{indented(helm, 6)}"
    )


def flux(values: str, chart: str = "./chart") -> str:
    return (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: x}\nspec:\n"
        f"  chart: {{spec: {{chart: {chart}, sourceRef: {{kind: GitRepository, name: r}}}}}}\n"
        f"  values: {values}\n"
    )


def config_map(key: str, kind: str = "ConfigMap", member: str = "data") -> str:
    text = indented(resources(1), 4)
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\n{member}:\n  {key}: |\n{text}"


ENCODED = base64.b64encode(resources(1).encode()).decode()
K3S = "apiVersion: helm.cattle.io/v1\nkind: {}\nmetadata: {{name: x}}\nspec:\n"

# Files beside a chart with the legacy name in its values, and the line that the reason names.
GIVES = {
    "a HelmRelease": ({"hr.yaml": flux(INLINE)}, "hr.yaml (line 6)"),
    "a HelmRelease of a chart in a repository of charts": (
        {"hr.yaml": flux(INLINE, "c")},
        "hr.yaml (line 6)",
    ),
    "an Application with an object": (
        {"app.yaml": argo(f"valuesObject: {INLINE}")},
        "app.yaml (line 9)",
    ),
    "an Application with a text": (
        {"app.yaml": argo(f"values: |\n{indented(resources(1), 2)}")},
        "app.yaml (line 12)",
    ),
    "an Application with parameters": (
        {"app.yaml": argo(f"parameters:\n- name: {ESCAPED}\n  value: '1'")},
        "app.yaml (line 10)",
    ),
    "an ApplicationSet with a path that it makes": (
        {
            "set.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nspec:\n"
            "  template:\n    spec:\n      source:\n        path: 'charts/{{.name}}'\n"
            f"        helm: {{valuesObject: {INLINE}}}\n"
        },
        "set.yaml (line 8)",
    ),
    "an Application with several sources": (
        {
            "app.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  sources:\n"
            f"  - path: chart\n    helm:\n      valuesObject: {INLINE}\n"
        },
        "app.yaml (line 7)",
    ),
    "a HelmChartConfig": (
        {
            "k3s.yaml": f"{K3S.format('HelmChartConfig')}  valuesContent: |-\n"
            f"{indented(resources(1), 4)}"
        },
        "k3s.yaml (line 8)",
    ),
    "a HelmChart that sets a value": (
        {"k3s.yaml": f"{K3S.format('HelmChart')}  set:\n    '{ESCAPED}': '1'\n"},
        "k3s.yaml (line 6)",
    ),
    "a Release of Crossplane": (
        {
            "release.yaml": "apiVersion: helm.crossplane.io/v1beta1\nkind: Release\nspec:\n"
            f"  forProvider:\n    values: {INLINE}\n"
        },
        "release.yaml (line 5)",
    ),
    "a ConfigMap": ({"map.yaml": config_map("values.yaml")}, "map.yaml (line 8)"),
    "a ConfigMap with values of another name": (
        {"map.yaml": config_map("prod-values.yml")},
        "map.yaml (line 8)",
    ),
    "a ConfigMap whose key a HelmRelease names": (
        {"map.yaml": config_map("prod.yml")},
        "map.yaml (line 8)",
    ),
    "one value of a HelmRelease from a ConfigMap": (
        {
            "hr.yaml": "kind: HelmRelease\nspec:\n  valuesFrom:\n  - kind: ConfigMap\n    name: x\n"
            f"    targetPath: {ESCAPED}\n"
        },
        "hr.yaml (line 6)",
    ),
    "a patch of a HelmRelease in a kustomization": (
        {
            "kustomization.yaml": "patches:\n- patch: |\n    kind: HelmRelease\n    spec:\n"
            f"      values: {INLINE}\n"
        },
        "kustomization.yaml (line 5)",
    ),
    "operations of a kustomization in a file": (
        {
            "j.yaml": "- op: add\n  path: /spec/values/resources/limits/"
            + OLD.replace("/", "~1")
            + "\n  value: 1\n"
        },
        "j.yaml (line 2)",
    ),
    "a Secret": (
        {"secret.yaml": config_map("values.yaml", "Secret", "stringData")},
        "secret.yaml (line 8)",
    ),
    "a Secret in base64": (
        {
            "secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata:\n"
            f"  values.yaml: {ENCODED}\n"
        },
        "secret.yaml (line 5)",
    ),
    "binary data of a ConfigMap": (
        {
            "secret.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nbinaryData:\n"
            f"  values.yaml: {ENCODED}\n"
        },
        "secret.yaml (line 5)",
    ),
    "a List": (
        {
            "all.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: helm.fluxcd.io/v1\n"
            f"  kind: HelmRelease\n  spec: {{values: {INLINE}}}\n"
        },
        "all.yaml (line 6)",
    ),
    "a script": (
        {"deploy.sh": f"helm upgrade -i x ./chart --set '{ESCAPED}=1'\n"},
        "deploy.sh (line 1)",
    ),
    "a script that sets several values": (
        {"deploy.sh": f'helm install x ./chart \\\n  --set a=1,{ESCAPED}="1"\n'},
        "deploy.sh (line 2)",
    ),
    "a pipeline": (
        {"ci.yaml": f'deploy:\n  run: helm upgrade x ./chart --set "{ESCAPED}=1"\n'},
        "ci.yaml (line 2)",
    ),
    "a program": (
        {"deploy.py": f'run(["helm", "upgrade", "x", "./chart", "--set", r"{ESCAPED}=1"])\n'},
        "deploy.py (line 1)",
    ),
    "a set block of Terraform": (
        {
            "main.tf": 'resource "helm_release" "x" {\n  chart = "./chart"\n  set {\n    name  = "'
            + ESCAPED.replace("\\", "\\\\")
            + '"\n    value = "1"\n  }\n}\n'
        },
        "main.tf (line 4)",
    ),
    "values of Terraform": (
        {
            "main.tf": 'resource "helm_release" "x" {\n  chart = "c"\n  values = [yamlencode({'
            f'resources = {{ limits = {{ "{OLD}" = 1 }} }} }})]\n}}\n'
        },
        "main.tf (line 3)",
    ),
    "a template of another chart": (
        {
            "apps/Chart.yaml": "name: apps\n",
            "apps/templates/app.yaml": "{{- if .Values.on }}\n"
            + argo(f"valuesObject:\n  name: {{{{ .Values.name }}}}\n{indented(resources(1), 2)}")
            + "{{- end }}\n",
        },
        "apps/templates/app.yaml (line 14)",
    ),
    "values of which a run renames nothing": (
        {"env/values.yaml": f"{resources(1)}names: [{OLD}]\n"},
        "env/values.yaml",
    ),
}


def looked_at(folder: Path, files: dict[str, str], **plan: object) -> dict[str, FileResult]:
    whole = {"chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 0.1.0\n", **files}
    for name, text in whole.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    its = Plan(named=(str(folder),), below=True, **plan)  # type: ignore[arg-type]
    results = {name: judge(str(folder / name), its).result for name in whole}
    waiting = outside_amounts.waiting(results.values(), its)
    for name, result in results.items():
        if why := waiting.get(result.path, ""):
            held = legacy_pods.with_amounts_held(its, why)
            results[name] = judge(result.path, held).result
    return results


def reasons(results: dict[str, FileResult]) -> str:
    assert Report(tuple(results.values())).exit_code() == MANUAL
    return " ".join(
        each.message for result in results.values() for each in result.located
        if each.status is Status.MANUAL
    )  # fmt: skip


CHART = {"chart/templates/p.yaml": pod(MADE), "chart/values.yaml": resources(4)}


@pytest.mark.parametrize(("files", "where"), GIVES.values(), ids=GIVES)
def test_amounts_wait_for_a_legacy_name_in_values_that_are_given(
    files: dict[str, str], where: str, tmp_path: Path
) -> None:
    results = looked_at(tmp_path, {**CHART, **files})
    assert f"/{where}" in reasons(results)
    assert results["chart/values.yaml"].new_text is None


def test_files_of_the_repository_count_that_the_run_does_not_name(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    files = {**CHART, "deploy/hr.yaml": flux(INLINE)}
    looked_at(tmp_path, files)
    alone = judge(str(tmp_path / "chart/values.yaml"), Plan(named=(str(tmp_path / "chart"),)))
    assert alone.result.new_text is None


# The name in these files is nothing that the chart gets.
GIVES_NOT = {
    "a HelmRelease of another chart": {"hr.yaml": flux(INLINE, "web")},
    "an Application of another chart": {"a.yaml": argo(f"valuesObject: {INLINE}", "path: web")},
    "prose": {"README.md": f"helm install x ./chart --set '{ESCAPED}=1'\n"},
    "a program": {"main.go": f'package main // helm\nconst GPU = "{OLD}"\n'},
    "a script without helm": {"run.sh": f"kubectl get nodes -o json | grep {OLD}\n"},
    "a comment": {"deploy.sh": f"# helm upgrade x ./chart --set '{ESCAPED}=1'\n"},
    "a ConfigMap of a program": {"map.yaml": config_map("operator.conf")},
    "a chart beside it": {"web/Chart.yaml": "name: web\n", "web/values.yaml": f"names: [{OLD}]\n"},
    "current values": {"hr.yaml": flux("{replicas: 3, resources: {limits: {cpu: 1}}}")},
    "values that are renamed, too": {"env/values.yaml": resources(1)},
}


@pytest.mark.parametrize("files", GIVES_NOT.values(), ids=GIVES_NOT)
def test_amounts_do_not_wait_for_a_name_elsewhere(files: dict[str, str], tmp_path: Path) -> None:
    results = looked_at(tmp_path, {**CHART, **files})
    assert results["chart/values.yaml"].new_text == resources(4, name=NEW)


def test_unsafe_renames_the_amounts_of_an_object_and_of_its_chart(tmp_path: Path) -> None:
    results = looked_at(tmp_path, {**CHART, "hr.yaml": flux(INLINE)}, unsafe=True)
    for name in ("chart/values.yaml", "hr.yaml"):
        assert NEW in (results[name].new_text or "")


def test_other_gpus_of_values_that_are_given_hold_amounts(tmp_path: Path) -> None:
    results = looked_at(tmp_path, {**CHART, "hr.yaml": flux(INLINE.replace(OLD, NEW))})
    assert "the values of ../hr.yaml, merged over" in reasons(results)


def test_values_beside_a_chart_wait_with_it(tmp_path: Path) -> None:
    read = limit(f'{{{{ index .Values.resources.limits "{OLD}" }}}}')
    files = {**CHART, "chart/templates/p.yaml": read, "env/values.yaml": resources(1)}
    results = looked_at(tmp_path, files)
    assert results["env/values.yaml"].new_text is None
    assert "the amounts of the chart ../chart" in reasons(results)


HALF = "{gpu: 0.5}"
FRACTIONS = {
    "a HelmRelease": {"x.yaml": flux(HALF)},
    "an Application": {"x.yaml": argo(f"valuesObject: {HALF}")},
    "a parameter": {"x.yaml": argo("parameters: [{name: gpu, value: '0.5'}]")},
    "values beside the chart": {"env/prod/values.yaml": "gpu: 0.5\n"},
    "values in JSON beside the chart": {"env/values-prod.json": json.dumps({"gpu": 0.5})},
    "a release of helmfile": {
        "helmfile.yaml": f"releases:\n- name: x\n  chart: ./chart\n  values:\n  - {HALF}\n"
    },
    "a release of helmfile that sets it": {
        "helmfile.yaml": "releases:\n- chart: ./chart\n  set: [{name: gpu, value: 0.5}]\n"
    },
    "Fleet": {"fleet.yaml": f"helm:\n  chart: ./chart\n  values: {HALF}\n"},
    "a patch of a HelmRelease in a kustomization": {
        "kustomization.yaml": "resources: [hr.yaml]\npatches:\n- patch: |\n"
        "    apiVersion: helm.toolkit.fluxcd.io/v2\n    kind: HelmRelease\n"
        f"    metadata: {{name: x}}\n    spec: {{values: {HALF}}}\n"
    },
    "operations in a kustomization": {
        "kustomization.yaml": "resources: [hr.yaml]\npatches:\n- target: {kind: HelmRelease}\n"
        "  patch: '[{op: add, path: /spec/values/gpu, value: 0.5}]'\n"
    },
    "operations in a file": {"j.yaml": "- op: add\n  path: /spec/values/gpu\n  value: 0.5\n"},
    "all values in one operation": {
        "j.yaml": "- {op: add, path: /spec/values/, value: 1}\n"
        f"- op: add\n  path: /spec/values\n  value: {HALF}\n"
    },
    "values for kustomize's own charts, without a kind": {
        "kustomization.yaml": f"helmCharts:\n- name: chart\n  valuesInline: {HALF}\n"
    },
    "a script": {"deploy.sh": "helm upgrade x ./chart --set-string gpu=500m\n"},
    "a script with JSON": {"deploy.sh": "helm upgrade x chart --set-json='gpu=0.5'\n"},
    "a script with all values as JSON": {
        "deploy.sh": "helm upgrade x chart --set-json '{\"gpu\": 0.5}'\n"
    },
    "a script with a value in the next line": {
        "deploy.sh": "helm upgrade x chart --set-string \\\n  gpu=500m\n"
    },
    "Terraform in one line": {
        "main.tf": 'resource "helm_release" "x" {\n  set = [{ name = "gpu", value = 0.5 }]\n}\n'
    },
    "Terraform": {
        "main.tf": 'resource "helm_release" "x" {\n  set = [{\n    name = "gpu"\n    value = 0.5\n'
        "  }]\n}\n"
    },
}


@pytest.mark.parametrize("files", FRACTIONS.values(), ids=FRACTIONS)
def test_amounts_wait_for_a_fraction_in_values_that_are_given(
    files: dict[str, str], tmp_path: Path
) -> None:
    chart = {"chart/templates/p.yaml": limit("{{ .Values.gpu }}"), "chart/values.yaml": "gpu: 1\n"}
    results = looked_at(tmp_path, {**chart, **files})
    assert f"from gpu in ../{next(iter(files))}" in reasons(results)
    assert NEW not in (results["chart/templates/p.yaml"].new_text or "")
