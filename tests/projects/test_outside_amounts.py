"""Amounts in charts and outside of them wait together: Helm finds values by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.test_given_values import argo, indented
from tests.projects.test_named_values import config_map
from tests.projects.test_values import OLD, pod, resources
from webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = "{{- toYaml .Values.resources | nindent 6 }}"
ASKED = f'{{{{- if hasKey .Values.resources.limits "{OLD}" }}}}\n# x\n{{{{- end }}}}\n'
CHART = {
    "charts/train/Chart.yaml": "apiVersion: v2\nname: train\nversion: 0.1.0\n",
    "charts/train/values.yaml": resources(1),
    "charts/train/templates/p.yaml": pod(WHOLE),
}
WAITS = {**CHART, "charts/train/templates/p.yaml": ASKED + pod(WHOLE)}
OTHER = {
    name.replace("train", "other"): text.replace("train", "other") for name, text in CHART.items()
}
GIVEN = resources(2)
ESCAPED = OLD.replace(".", "\\.")
SET = f"helm upgrade -i x charts/train --set resources.limits.{ESCAPED}=2\n"
HR = (
    "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: x}}\nspec:\n"
    "  chart: {{spec: {{chart: charts/{}}}}}\n  values:\n"
)
PLAIN = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {heritage: Helm}}\nspec:\n"
    f"  containers:\n  - name: x\n    resources: {{limits: {{{OLD}: 1}}}}\n"
)

# Files that may give values to a chart whose amounts wait.
FRAGMENTS = {
    "values with any name": {"env/prod.yaml": GIVEN},
    "an amount that is taken away": {"env/cpu.yaml": resources("null")},
    "a file of values below another chart of its name": {"charts/train-values/prod.yaml": GIVEN},
    "values of Ansible": {
        "play.yml": "- hosts: all\n  tasks:\n  - helm:\n      chart_ref: charts/train\n"
        f"      values:\n{indented(GIVEN, 8)}"
    },
    "variables of Ansible": {"group_vars/all.yml": f"train:\n{indented(GIVEN, 2)}"},
    "a template of values": {"roles/t/templates/prod.yml.j2": GIVEN},
    "a here-document": {"deploy.sh": f"helm upgrade x charts/train -f - <<EOF\n{GIVEN}EOF\n"},
    "values in a document": {"README.md": f"```yaml\n{GIVEN}```\n"},
    "a chart that names this one": {
        "up/Chart.yaml": "apiVersion: v2\nname: up\nversion: 0.1.0\n"
        "dependencies:\n- name: train\n  version: 0.1.0\n  repository: '@local'\n",
        "up/values.yaml": f"train:\n{indented(GIVEN, 2)}",
    },
}

# Texts that keep the legacy name and may give it to a chart.
KEEP = {
    "a script with a variable": {
        "d.sh": f"K='{ESCAPED}'\nhelm upgrade x charts/train --set r.$K=1\n"
    },
    "a script that edits values": {"d.sh": f"yq w -i charts/train/values.yaml [{OLD}] 4\n"},
    "arguments one a line": {"ci.yaml": f"args:\n- helm\n- --set\n- limits.{ESCAPED}=2\n"},
    "a command in a document": {"README.md": f"```\n{SET}```\n"},
    "a command of a Job": {
        "job.yaml": "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n"
        f"      containers: [{{name: x, args: [helm, --set, 'limits.{ESCAPED}=2']}}]\n"
    },
    "a HelmRelease in a template": {"x.yaml.j2": f"{HR.format('{{ c }}')}{indented(GIVEN, 4)}"},
    "a HelmRelease in a document": {
        "x.md": f"```yaml\n{HR.format('train')}{indented(GIVEN, 4)}```\n"
    },
    "a HelmRelease in a ConfigMap": {
        "x.yaml": config_map("hr.yaml", f"{HR.format('train')}{indented(GIVEN, 4)}")
    },
    "a substitution of Flux": {
        "x.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec:\n"
        f"  postBuild: {{substitute: {{GPU: {OLD}}}}}\n"
    },
    "an ApplicationSet": {
        "x.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nspec:\n  generators:\n"
        f"  - list: {{elements: [{{gpu: {OLD}}}]}}\n"
    },
    "a resource of a Helm operator": {
        "x.yaml": f"apiVersion: charts.helm.k8s.io/v1\nkind: T\nspec:\n{indented(GIVEN, 2)}"
    },
    "helmfile": {"helmfile.yaml": f"releases:\n- setString: [{{name: l.{ESCAPED}, value: 2}}]\n"},
    "properties": {"x.properties": f"helm.set.resources.limits.{ESCAPED}=2\n"},
    "values with a placeholder": {"v.yaml.tmpl": resources("${N}")},
    "a file without an end": {"train-values": GIVEN},
    "a chart of Applications": {
        "apps/Chart.yaml": "apiVersion: v2\nname: apps\nversion: 0.1.0\n",
        "apps/values.yaml": f"t:\n{indented(GIVEN, 2)}",
        "apps/templates/a.yaml": argo("values: |\n{{ toYaml .Values.t | indent 6 }}"),
    },
    "values with an ending of any kind": {
        "p.txt": GIVEN,
        "d.sh": "helm upgrade x charts/train -f p.txt\n",
    },
    "values without an ending": {"p": GIVEN, "d.sh": "helm upgrade x charts/train -f p\n"},
    "values that begin as an object": {
        "p.yaml": f"apiVersion: apps/v1\nkind: Deployment\n{GIVEN}",
        "d.sh": "helm upgrade x charts/train -f p.yaml\n",
    },
    "a variable of a script that another one includes": {
        "env.sh": f"export K='{ESCAPED}'\n",
        "d.sh": ". ./env.sh\nhelm upgrade x charts/train --set r.$K=1\n",
    },
    "a variable of an included Makefile": {
        "gpu.mk": f"K ?= {OLD}\n",
        "Makefile": "include gpu.mk\nx:\n\thelm upgrade x charts/train\n",
    },
    "a key of a ConfigMap that a HelmRelease names": {
        "m.yaml": config_map("prod", GIVEN),
        "hr.yaml": HR.format("train").replace("values:", "valuesFrom: [{valuesKey: prod}]"),
    },
    "a second command in a line": {"d.sh": f"helm install r s/redis && {SET}"},
    "a chart in a variable of Go": {
        "d.go": 'exec.Command("helm", "upgrade", "x", chart, "--set", '
        f'"limits.{ESCAPED}=2").Run()\n'.replace("\\", "\\\\")
    },
    "a key of Ansible in a variable": {
        "roles/t/defaults/main.yml": f"gpu_resource: {OLD}\n",
        "roles/t/templates/v.yaml.j2": "resources:\n  limits:\n    {{ gpu_resource }}: 2\n",
    },
    "a set value of Ansible in a variable": {
        "group_vars/all.yml": f"gpu_resource: '{ESCAPED}'\n",
        "p.yml": "shell: helm upgrade x charts/train --set limits.{{ gpu_resource }}=2\n",
    },
    "a key of helmfile in a value": {
        "v.yaml.gotmpl": "resources:\n  limits:\n    {{ .Values.gpuResource }}: 2\n",
        "env/dev.yaml": f"gpuResource: {OLD}\n",
    },
    "a key that Flux substitutes": {
        "vars.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: v}\ndata:\n"
        f"  GPU: {OLD}\n",
        "hr.yaml": f'{HR.format("train")}    resources: {{limits: {{"${{GPU}}": 2}}}}\n',
    },
    "questions of the chart": {
        "charts/train/questions.yml": f"questions:\n- variable: resources.limits.{ESCAPED}\n"
    },
}

# What holds nothing, beside a chart.
BESIDE = {
    "prose": {"README.md": f"Run helm install with --set limits.{ESCAPED}=2.\n"},
    "prose of another kind": {"x.rst": f"The chart has {OLD}: 1\n"},
    "a comment": {"d.sh": f"# {SET}helm version\n"},
    "a program that is not about charts": {"x.py": f"NAME = '{OLD}'\n"},
    "a template of another chart": {
        "charts/other/Chart.yaml": "apiVersion: v2\nname: other\nversion: 0.1.0\n",
        "charts/other/templates/p.yaml": ASKED + pod(f"limits: {{{OLD}: 1}}"),
    },
    "a release of another chart": {"x.yaml": f"{HR.format('else')}{indented(GIVEN, 4)}"},
    "a command of kubectl in a Makefile": {
        "Makefile": f"x:\n\thelm upgrade x charts/train\ny:\n\tkubectl get nodes | grep {OLD}\n"
    },
    "a command of kubectl in several lines": {
        "ci.yaml": "script:\n- helm install x charts/train\n- |\n"
        f"  kubectl patch node x \\\n    -p '{OLD}: 1'\n"
    },
    "what a command printed": {
        "README.md": f"```\n$ kubectl describe node\n  {OLD}:  1\n```\n"
        "```sh\nhelm install x c\n```\n"
    },
    "what a command printed, without the command": {
        "README.md": f"```\nCapacity:\n  {OLD}:  1\n```\n```console\nlimits:\n  {OLD}: 1\n```\n"
    },
    "a change log": {"CHANGELOG.md": f"```sh\n{SET}```\n"},
    "a comment of a program": {"x.go": f'// the helm chart installs it\nconst GPU = "{OLD}"\n'},
    "a command for another chart": {"d.sh": SET.replace("charts/train", "r/else")},
    "Terraform for another chart": {
        "main.tf": 'resource "helm_release" "x" {\n  chart = "else"\n}\n',
        "pod.tf": f'resource "kubernetes_pod" "x" {{\n  limits = {{ "{OLD}" = 1 }}\n}}\n',
    },
    "settings of another program": {
        "x.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{labels: {{chart: x}}}}\n"
        f"data: {{name: {OLD}}}\n"
    },
}


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def migrated(folder: Path, files: dict[str, str], *named: str) -> dict[str, str]:
    """The files that a run changes, with their new texts."""
    written(folder, files)
    (folder / ".git").mkdir(exist_ok=True)
    main(["migrate", "--write", "--force", *(str(folder / each) for each in named or (".",))])
    new = {name: (folder / name).read_text() for name in files}
    return {name: text for name, text in new.items() if text != files[name]}


@pytest.mark.parametrize("files", FRAGMENTS.values(), ids=FRAGMENTS)
def test_parts_wait_with_the_chart_that_may_get_them(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrated(tmp_path, {**WAITS, **files}) == {}
    said = " ".join(capsys.readouterr().out.split())
    assert "may get these values" in said or "to this chart, or get them" in said
    assert "templates/p.yaml (line 1) has this name inside a template action" in said


@pytest.mark.parametrize("files", FRAGMENTS.values(), ids=FRAGMENTS)
def test_parts_change_with_the_chart_that_may_get_them(
    files: dict[str, str], tmp_path: Path
) -> None:
    made = migrated(tmp_path, {**CHART, **files})
    assert {"charts/train/values.yaml", [*files][-1]} <= made.keys()


@pytest.mark.parametrize("files", KEEP.values(), ids=KEEP)
def test_a_chart_waits_for_texts_about_helm(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "charts/train/values.yaml" not in migrated(tmp_path, {**CHART, **files})
    said = " ".join(capsys.readouterr().out.split())
    assert "the legacy name stays in" in said or "and its amounts wait" in said


@pytest.mark.parametrize("files", BESIDE.values(), ids=BESIDE)
def test_a_chart_does_not_wait(files: dict[str, str], tmp_path: Path) -> None:
    assert "charts/train/values.yaml" in migrated(tmp_path, {**CHART, **files})


def test_plain_manifests_do_not_wait_for_a_chart(tmp_path: Path) -> None:
    assert [*migrated(tmp_path, {**WAITS, "x.yaml": PLAIN})] == ["x.yaml"]


def test_a_part_of_another_chart_does_not_wait(tmp_path: Path) -> None:
    files = {"x.yaml": f"a:\n  chart: else\n  values:\n{indented(GIVEN, 4)}"}
    assert [*migrated(tmp_path, {**WAITS, **files})] == ["x.yaml"]


def test_other_charts_wait_that_may_get_the_same_part(tmp_path: Path) -> None:
    assert [*migrated(tmp_path / "a", {**WAITS, **OTHER})] == ["charts/other/values.yaml"]
    assert migrated(tmp_path / "b", {**WAITS, **OTHER, "env/prod.yaml": GIVEN}) == {}


def test_a_chart_does_not_wait_for_a_file_of_a_chart_that_waits(tmp_path: Path) -> None:
    script = "helm upgrade x charts/other -f env/prod.yaml\nhelm upgrade y charts/train\n"
    made = migrated(tmp_path, {**WAITS, **OTHER, "env/prod.yaml": GIVEN, "d.sh": script})
    assert [*made] == ["charts/other/values.yaml", "env/prod.yaml"]


def test_a_part_waits_for_a_chart_that_is_not_among_the_files_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrated(tmp_path, {**CHART, "env/prod.yaml": GIVEN}, "env/prod.yaml") == {}
    assert "which is not among the files of this run" in capsys.readouterr().out
