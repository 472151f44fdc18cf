"""A file that another file names as values of a chart is one, whatever its own name is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.projects.test_given_values import CHART, argo, indented, looked_at, reasons
from tests.projects.test_values import MADE, NEW, OLD, limit, pod, resources
from webhook.cli.workers import judge
from webhook.files.results import Plan

if TYPE_CHECKING:
    from pathlib import Path


def config_map(key: str, text: str) -> str:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
    return f"{head}data:\n  {key}: |\n{indented(text, 4)}"


HR = (
    "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: x}\nspec:\n"
    "  chart: {spec: {chart: ./chart, valuesFiles: [./env/prod.yaml]}}\n"
)
RELEASE = 'resource "helm_release" "x" {{\n  chart  = "./chart"\n  values = [{}]\n}}\n'

# What names a file: its name and text, and the name of the file with values.
NAMES = {
    "an Application": ("app.yaml", argo("valueFiles: [../env/prod.yaml]"), "env/prod.yaml"),
    "an Application whose chart is elsewhere": (
        "app.yaml",
        argo("valueFiles:\n- $values/env/prod.yaml"),
        "env/prod.yaml",
    ),
    "an ApplicationSet with a name that it makes": (
        "set.yaml",
        argo("valueFiles:\n- '/env/{{ .cluster }}.yaml'"),
        "env/prod.yaml",
    ),
    "a HelmRelease of a chart in git": ("hr.yaml", HR, "env/prod.yaml"),
    "a release of helmfile": (
        "helmfile.yaml",
        "releases:\n- chart: ./chart\n  values:\n  - env/{{ .Environment.Name }}.yaml\n",
        "env/prod.yaml",
    ),
    "a part of helmfile": (
        "helmfile.d/10-app.yaml",
        "releases:\n- chart: ../chart\n  values: [../env/prod.yaml]\n",
        "env/prod.yaml",
    ),
    "environments of helmfile": (
        "helmfile.yaml.gotmpl",
        "environments:\n  prod:\n    values:\n    - prod.yaml\n---\nreleases: []\n",
        "prod.yaml",
    ),
    "Fleet": ("fleet.yaml", "helm:\n  chart: ./chart\n  valuesFiles: [prod.yml]\n", "prod.yml"),
    "Skaffold": (
        "skaffold.yaml",
        "kind: Config\ndeploy:\n  helm:\n    releases: [{valuesFiles: [prod.yaml]}]\n",
        "prod.yaml",
    ),
    "a chart of kustomize": (
        "kustomization.yaml",
        "helmCharts:\n- name: chart\n  additionalValuesFiles: [v/gpu.yaml]\n",
        "v/gpu.yaml",
    ),
    "a generator of kustomize": (
        "kustomization.yaml",
        "configMapGenerator:\n- name: x\n  files: [values.yaml=gpu.yaml]\n",
        "gpu.yaml",
    ),
    "a generator of kustomize, with a file of another end": (
        "kustomization.yaml",
        "secretGenerator:\n- name: x\n  files:\n  - values.yaml=gpu.conf\n",
        "gpu.conf",
    ),
    "a script": ("deploy.sh", "helm upgrade -i x ./chart -f prod.yaml\n", "prod.yaml"),
    "a script in another folder": (
        "bin/deploy.sh",
        "cd ..\nhelm upgrade x ./chart --values=env/prod.yaml,env/other.yaml\n",
        "env/prod.yaml",
    ),
    "a script with a variable": (
        "deploy.sh",
        'VALUES=env/prod.yaml\nhelm upgrade x ./chart -f "$VALUES"\n',
        "env/prod.yaml",
    ),
    "a script with a part of the name in a variable": (
        "deploy.sh",
        'helm upgrade x ./chart -f "env/${STAGE}.yaml"\n',
        "env/prod.yaml",
    ),
    "a Makefile": (
        "Makefile",
        "deploy:\n\t$(HELM) upgrade x chart -f $(CURDIR)/env/$(ENV).yaml\n",
        "env/prod.yaml",
    ),
    "a pipeline": (
        ".github/workflows/ci.yaml",
        "jobs: {a: {steps: [{run: 'helm upgrade x chart -f env/${{ matrix.stage }}.yaml'}]}}\n",
        "env/prod.yaml",
    ),
    "a program": (
        "deploy.py",
        'run(["helm", "upgrade", "x", "./chart", "-f", f"env/{stage}.yaml"])\n',
        "env/prod.yaml",
    ),
    "Terraform": (
        "main.tf",
        RELEASE.format('file("${path.module}/env/prod.yaml")'),
        "env/prod.yaml",
    ),
    "a template of Terraform": (
        "main.tf",
        RELEASE.format('templatefile("env/prod.yaml.tftpl", {})'),
        "env/prod.yaml.tftpl",
    ),
    "its folder": ("deploy.sh", "helm upgrade x ./chart -f $FILE\n", "values/prod.yaml"),
}
CHART_WITH_AMOUNT = {
    "chart/templates/p.yaml": limit("{{ .Values.gpu }}"),
    "chart/values.yaml": "gpu: 1\n",
}


@pytest.mark.parametrize(("name", "text", "file"), NAMES.values(), ids=NAMES)
def test_amounts_wait_for_a_fraction_in_a_file_that_is_named_as_values(
    name: str, text: str, file: str, tmp_path: Path
) -> None:
    results = looked_at(tmp_path, {**CHART_WITH_AMOUNT, name: text, file: "gpu: 0.5\n"})
    assert f"0.5 from gpu in ../{file}" in reasons(results)
    assert NEW not in (results["chart/templates/p.yaml"].new_text or "")


@pytest.mark.parametrize(("name", "text", "file"), NAMES.values(), ids=NAMES)
def test_amounts_wait_for_the_legacy_name_in_a_file_that_is_named_as_values(
    name: str, text: str, file: str, tmp_path: Path
) -> None:
    its = f"{resources(1)}names: [{OLD}]\n"
    results = looked_at(tmp_path, {**CHART, name: text, file: its})
    assert f"{file} (line " in reasons(results)
    assert NEW not in (results["chart/values.yaml"].new_text or "")
    assert NEW not in (results[file].new_text or "")


def test_a_file_that_is_named_as_values_is_migrated_with_its_chart(tmp_path: Path) -> None:
    files = {**CHART, "d.sh": "helm upgrade x ./chart -f prod.yaml\n", "prod.yaml": resources(1)}
    results = looked_at(tmp_path, files)
    assert results["chart/values.yaml"].new_text == resources(4, name=NEW)
    assert results["prod.yaml"].new_text == resources(1, name=NEW)


def test_a_file_outside_of_the_run_counts_that_a_command_names(tmp_path: Path) -> None:
    looked_at(tmp_path / "r", {**CHART, "d.sh": "helm upgrade x ./chart -f ../env/prod.yaml\n"})
    (tmp_path / "env").mkdir()
    (tmp_path / "env/prod.yaml").write_text(resources(1))
    plan = Plan(named=(str(tmp_path / "r"),), below=True)
    result = judge(str(tmp_path / "r/chart/values.yaml"), plan).result
    assert result.new_text is None
    assert "prod.yaml (line 3), which is not among the files of this run" in reasons({"": result})


def test_a_file_that_git_ignores_counts_that_a_command_names(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    files = {".gitignore": "/prod.yaml\n", "d.sh": "helm upgrade x ./chart -f prod.yaml\n"}
    results = looked_at(tmp_path, {**CHART, **files, "prod.yaml": resources(1)})
    assert "prod.yaml" in reasons(results)
    assert results["chart/values.yaml"].new_text is None


def test_a_slash_of_json_may_be_an_escape(tmp_path: Path) -> None:
    text = json.dumps({"resources": {"limits": {OLD: 1}}})
    names = {"chart/v.json": "\\u002F", "env/1.json": "\\u002f", "env/2.json": "\\/"}
    files = {name: text.replace("/", slash) for name, slash in names.items()}
    results = looked_at(tmp_path, {**CHART, **files})
    assert all(NEW in (results[name].new_text or "").replace("\\", "") for name in files)


def test_two_of_many_files_are_merged_together(tmp_path: Path) -> None:
    others = {f"env/{n}.yaml": f"replicas: {n}\n" for n in range(9)}
    its = {"env/gpu.yaml": resources("", 2), "env/off.yaml": resources("", 0)}
    chart = {"chart/templates/p.yaml": pod(MADE), "chart/values.yaml": "replicas: 1\n"}
    script = {"d.sh": "helm upgrade x ./chart -f env/$STAGE.yaml\n"}
    results = looked_at(tmp_path, {**chart, **script, **others, **its})
    assert "the values of ../env/off.yaml, merged over" in reasons(results)
    assert results["env/gpu.yaml"].new_text is None


# Of these files the chart gets nothing.
NAMES_NOT = {
    "a manifest for kubectl": (
        "d.sh",
        "helm upgrade x ./chart\nkubectl apply -f prod.yaml\n",
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata: {{a: {OLD}}}\n",
    ),
    "values of another chart": (
        "d.sh",
        "helm upgrade x web -f prod.yaml\n",
        f"web: {{names: [{OLD}]}}\n",
    ),
    "a list": (
        "d.sh",
        "helm upgrade x chart; ansible-playbook prod.yaml\n",
        f"- shell: echo {OLD}\n",
    ),
    "a file that nothing names": ("d.sh", "helm upgrade x ./chart -f other.yaml\n", f"a: {OLD}\n"),
}


@pytest.mark.parametrize(("name", "text", "its"), NAMES_NOT.values(), ids=NAMES_NOT)
def test_amounts_do_not_wait_for_other_files(
    name: str, text: str, its: str, tmp_path: Path
) -> None:
    results = looked_at(tmp_path, {**CHART, name: text, "prod.yaml": its})
    assert results["chart/values.yaml"].new_text == resources(4, name=NEW)


def from_map(*keys: str, target: str = "") -> str:
    """A HelmRelease with values of a ConfigMap under these keys."""
    more = f", targetPath: {target}" if target else ""
    given = "".join(f"  - {{kind: ConfigMap, name: x, valuesKey: {key}{more}}}\n" for key in keys)
    return HR.replace("  chart:", f"  valuesFrom:\n{given}  chart:")


GENERATOR = "configMapGenerator:\n- name: x\n  {}\n"
# A HelmRelease, and where the values are that it names.
KEYS = {
    "another key": (from_map("prod"), "map.yaml", config_map("prod", "gpu: 0.5\n")),
    "one of two keys": (from_map("a", "b"), "map.yaml", config_map("b", "gpu: 0.5\n")),
    "a Secret": (
        from_map("prod"),
        "map.yaml",
        config_map("prod", "gpu: 0.5\n")
        .replace("ConfigMap", "Secret")
        .replace("data", "stringData"),
    ),
    "one value": (
        from_map("size", target="gpu"),
        "map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {size: '0.5'}\n",
    ),
    "one value of a generator": (
        from_map("size", target="gpu"),
        "kustomization.yaml",
        GENERATOR.format("literals: [size=0.5]"),
    ),
    "a text of a generator": (
        from_map("prod"),
        "kustomization.yaml",
        GENERATOR.format("literals: ['prod=gpu: 0.5']"),
    ),
    "a template that names the key": (
        "{{ if .Values.x }}\n" + from_map("prod") + "{{ end }}\n",
        "map.yaml",
        config_map("prod", "gpu: 0.5\n"),
    ),
}


@pytest.mark.parametrize(("release", "name", "text"), KEYS.values(), ids=KEYS)
def test_amounts_wait_for_a_fraction_under_a_key_that_is_named(
    release: str, name: str, text: str, tmp_path: Path
) -> None:
    results = looked_at(tmp_path, {**CHART_WITH_AMOUNT, "hr.yaml": release, name: text})
    assert f" in ../{name}" in reasons(results)


GENERATED = {
    "a file under its own name": ("files: [gpu.conf]", "gpu.conf", "gpu: 0.5\n"),
    "a file under another name": ("files: [prod=gpu.conf]", "gpu.conf", "gpu: 0.5\n"),
    "a file with one value on each line": ("envs: [prod.env]", "prod.env", "size=0.5\n"),
    "one such file": ("env: prod.env", "prod.env", "a=b\nsize=0.5\n"),
}


@pytest.mark.parametrize(("member", "name", "text"), GENERATED.values(), ids=GENERATED)
def test_amounts_wait_for_a_fraction_in_a_file_of_a_generator(
    member: str, name: str, text: str, tmp_path: Path
) -> None:
    release = from_map("size", target="gpu")
    kustomization = {"kustomization.yaml": GENERATOR.format(member)}
    files = {**CHART_WITH_AMOUNT, "hr.yaml": release, **kustomization, name: text}
    assert f" in ../{name} (line " in reasons(looked_at(tmp_path, files))


OTHER_KEYS = {
    "an object": (from_map("prod"), config_map("prod", "kind: A\ngpu: 0.5\n")),
    "a whole number": (from_map("prod"), config_map("prod", "gpu: 2\n")),
}


@pytest.mark.parametrize(("release", "text"), OTHER_KEYS.values(), ids=OTHER_KEYS)
def test_amounts_do_not_wait_for_other_keys(release: str, text: str, tmp_path: Path) -> None:
    results = looked_at(tmp_path, {**CHART_WITH_AMOUNT, "hr.yaml": release, "map.yaml": text})
    assert NEW in (results["chart/templates/p.yaml"].new_text or "")
