"""Amounts of a chart wait for a fraction that any text of the repository gives to its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.test_given_values import looked_at, reasons
from tests.projects.test_values import NEW, limit
from webhook.projects.given_fractions import given

if TYPE_CHECKING:
    from pathlib import Path

CHART = {
    "chart/templates/p.yaml": limit("{{ .Values.gpus | default 1 }}"),
    "chart/values.yaml": "gpus: 1\n",
}
PLAY = "- hosts: all\n  tasks:\n  - kubernetes.core.helm:\n      chart_ref: ./chart\n"
RUN = "helm upgrade x ./chart"

# Files that give a fraction, with the value and the file that the reason names.
GIVES = {
    "a task of Ansible": ({"play.yml": f"{PLAY}      values: {{gpus: 0.5}}\n"}, "gpus"),
    "a variable of Ansible": (
        {
            "group_vars/all.yml": "size: 0.5\n",
            "play.yml": PLAY + "      values: {gpus: '{{ size }}'}\n",
        },
        "size",
    ),
    "set values of Ansible": (
        {"play.yml": f"{PLAY}      set_values:\n      - value: gpus=0.5\n"},
        "gpus",
    ),
    "answers of Rancher": (
        {"app.yaml": "kind: App\nmetadata: {name: x}\nspec:\n  answers: {gpus: '0.5'}\n"},
        "gpus",
    ),
    "a file of any ending": (
        {"env/p.conf": "gpus: 0.5\n", "d.sh": f"{RUN} -f env/p.conf\n"},
        "gpus",
    ),
    "a file without an ending": ({"env/p": "gpus: 0.5\n", "d.sh": f"{RUN} -f env/p\n"}, "gpus"),
    "a file that only a variable names": (
        {"env/p.yaml": "gpus: 0.5\n", "d.sh": f"{RUN} -f $1\n"},
        "gpus",
    ),
    "a template of helmfile": (
        {"env/p.yaml.gotmpl": "gpus: {{ .Values.n | default 0.5 }}\n"},
        "gpus",
    ),
    "a value of helmfile": (
        {"env.yaml.gotmpl": "count: 500m\n", "v.yaml.gotmpl": "gpus: {{ .Values.count }}\n"},
        "count",
    ),
    "a variable of a script that another one includes": (
        {"env.sh": "export GPUS=0.5\n", "d.sh": f'. ./env.sh\n{RUN} --set "gpus=$GPUS"\n'},
        "GPUS",
    ),
    "a default of a variable": ({"d.sh": f"{RUN} --set gpus=${{GPUS:-0.5}}\n"}, "gpus"),
    "a file of variables": (
        {".env": "GPUS='0.5'\n", "d.sh": f"{RUN} --set gpus=${{GPUS}}\n"},
        "GPUS",
    ),
    "a Makefile": ({"Makefile": f"N ?= 1\nNUM ?= 0.5\nx:\n\t{RUN} --set gpus=$(NUM)\n"}, "NUM"),
    "arguments of Python": (
        {"d.py": 'run(["helm", "upgrade", "x", "./chart", "--set", "gpus=0.5"])\n'},
        "gpus",
    ),
    "a variable of Python": (
        {"d.py": 'SIZE = 0.5\nrun(["helm", "upgrade", "x", "./chart", "--set", f"gpus={SIZE}"])\n'},
        "SIZE",
    ),
    "arguments of Go": (
        {"d.go": 'exec.Command("helm", "upgrade", "x", "./chart", "--set", "gpus=0.5")\n'},
        "gpus",
    ),
    "arguments of JavaScript": (
        {"d.js": 'run("helm", ["upgrade", "x", "./chart", "--set", "a.gpus=0.5,b=1"])\n'},
        "gpus",
    ),
    "a pipeline of Jenkins": (
        {"Jenkinsfile": f"sh \"{RUN} --set gpus=${{params.GPUS ?: '0.5'}}\"\n"},
        "gpus",
    ),
    "variables of a pipeline": (
        {"ci.yml": f"variables:\n  GPU_COUNT: '0.5'\nx:\n  script: {RUN} --set gpus=$GPU_COUNT\n"},
        "GPU_COUNT",
    ),
    "a substitution of Flux": (
        {
            "hr.yaml": "kind: HelmRelease\nspec:\n  chart: {spec: {chart: ./chart}}\n"
            "  values: {gpus: '${size}'}\n",
            "k.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
            "metadata: {name: x}\nspec: {postBuild: {substitute: {size: '0.5'}}}\n",
        },
        "size",
    ),
    "a command in a document": ({"README.md": f"```sh\n{RUN} --set gpus=0.5\n```\n"}, "gpus"),
    "a chart of Applications": (
        {
            "apps/Chart.yaml": "name: apps\n",
            "apps/templates/a.yaml": "kind: Application\nmetadata: {name: x}\nspec:\n  source:\n"
            "    path: {{ .Values.path }}\n    helm: {values: 'gpus: 0.5'}\n",
        },
        "gpus",
    ),
    "a file that only a program names": (
        {"d.py": "run(['helm','upgrade','x','./chart','-f','p.yaml'])\n", "p.yaml": "gpus: 0.5\n"},
        "gpus",
    ),
    "a second command in a line": (
        {"d.sh": f"helm upgrade -i r bitnami/redis && {RUN} --set gpus=0.5\n"},
        "gpus",
    ),
    "a second command behind a semicolon": (
        {"d.sh": f"helm install r bitnami/redis; {RUN} --set gpus=0.5\n"},
        "gpus",
    ),
    "a second command of a recipe": (
        {"Makefile": f"x:\n\thelm upgrade r bitnami/redis && \\\n\t{RUN} --set gpus=0.5\n"},
        "gpus",
    ),
    "a plugin before a command": (
        {"d.sh": f"helm plugin install https://x.org/y; {RUN} --set gpus=0.5\n"},
        "gpus",
    ),
    "a file of a second command": (
        {
            "d.sh": f"helm upgrade r s/redis -f a.yaml && {RUN} -f env/p.yaml\n",
            "env/p.yaml": "gpus: 0.5\n",
        },
        "gpus",
    ),
    "a second list of arguments in a line": (
        {
            "d.py": "for e in (['helm','upgrade','r','s/redis'],"
            "['helm','upgrade','x','./chart','--set','gpus=0.5']): run(e)\n"
        },
        "gpus",
    ),
    "a chart in a variable of Python": (
        {"d.py": "run(['helm','upgrade','train',chart,'--set','gpus=0.5'])\n"},
        "gpus",
    ),
    "a chart in a call of JavaScript": (
        {"d.js": "spawn('helm', ['upgrade', 'x', join(dir, 'c'), '--set', 'gpus=0.5']);\n"},
        "gpus",
    ),
    "a chart in a variable of Go": (
        {"d.go": 'exec.Command("helm", "upgrade", "-i", "x", path, "--set", "gpus=0.5").Run()\n'},
        "gpus",
    ),
    "a chart that names this one in one line": (
        {
            "umb/Chart.yaml": "name: umb\ndependencies:\n"
            "- {version: 1.0.0, name: c, repository: 'https://x.org', alias: big}\n",
            "umb/values.yaml": "big:\n  gpus: 0.5\n",
        },
        "gpus",
    ),
    "a chart that names this one in requirements": (
        {
            "umb/Chart.yaml": "name: umb\n",
            "umb/requirements.yaml": "dependencies:\n- {name: c, repository: 'file://../chart'}\n",
            "umb/values.yaml": "c:\n  gpus: 0.5\n",
        },
        "gpus",
    ),
    "global values of a chart that names this one": (
        {
            "umb/Chart.yaml": "name: umb\ndependencies:\n- name: c\n  repository: '@x'\n",
            "umb/values.yaml": "global: {gpus: 0.5}\n",
        },
        "gpus",
    ),
    "values that a command gives to a chart that names this one": (
        {
            "umb/Chart.yaml": "name: umb\ndependencies:\n- name: c\n  repository: '@x'\n",
            "env/dev.yaml": "c:\n  gpus: 0.5\n",
            "go.sh": "helm upgrade -i u ./umb -f env/dev.yaml\n",
        },
        "gpus",
    ),
    "values that a command gives to a chart around a chart that names this one": (
        {
            "all/Chart.yaml": "name: all\ndependencies:\n- name: umb\n  repository: '@x'\n",
            "umb/Chart.yaml": "name: umb\ndependencies:\n- name: c\n  repository: '@x'\n",
            "go.sh": "helm upgrade -i u ./all --set umb.c.gpus=0.5\n",
        },
        "gpus",
    ),
    "what Terraform divides": (
        {
            "main.tf": 'resource "helm_release" "x" {\n  chart = "./chart"\n'
            "  values = [yamlencode({ gpus = var.all / 2 })]\n}\n"
        },
        "gpus",
    ),
}


@pytest.mark.parametrize(("files", "name"), GIVES.values(), ids=GIVES)
def test_amounts_wait_for_a_fraction_in_any_text(
    files: dict[str, str], name: str, tmp_path: Path
) -> None:
    results = looked_at(tmp_path, {**CHART, **files})
    assert f" from {name} in ../" in reasons(results)
    assert NEW not in (results["chart/templates/p.yaml"].new_text or "")


TOP = limit("{{ .Values.gpus }}")
KEYS = limit('{{ index .Values "gpu-count" }}')
DEEP = limit('{{ index .Values "a-b" "amount" }}')
SIZES = limit("{{ index .Values.sizes .Values.size }}")
PLUCKED = limit("{{ pluck .Values.size .Values.sizes | first }}")
RANGE = f"{{{{- range $k, $n := .Values.workers }}}}\n{limit('{{ $n }}')}\n---\n{{{{- end }}}}\n"
APP = (
    "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec:\n"
    "  source:\n    path: chart\n    helm:\n      parameters:\n"
)
HR = (
    "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: x}\nspec:\n"
    "  chart: {spec: {chart: ./chart}}\n  values:\n"
)
JSON_APP = (
    '{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"x"},"spec":'
    '{"source":{"path":"chart","helm":{"parameters":[{"value":"0.5","name":"gpus"}]}}}}'
)

# A template, and a file outside of the chart with values for it.
DATA = {
    "a literal key": (KEYS, {"env/p.yaml": "gpu-count: 0.5\n"}),
    "a literal key of get": (limit('{{ get .Values "gpus" }}'), {"p.yaml": "gpus: 0.5\n"}),
    "literal keys below one another": (DEEP, {"env/p.yaml": "a-b: {amount: 500m}\n"}),
    "a key that is a value": (SIZES, {"env/p.yaml": "sizes:\n  s: 0.5\n"}),
    "a key that is plucked": (PLUCKED, {"env/p.yaml": "sizes: {s: 0.5}\n"}),
    "a key in a command": (SIZES, {"d.sh": f"{RUN} --set sizes.s=0.5\n"}),
    "any member of a map": (RANGE, {"env/p.yaml": "workers:\n  a: 1\n  b: 0.5\n"}),
    "any item of a list": (RANGE, {"env/p.yaml": "workers:\n- 1\n- 0.5\n"}),
    "a name of one letter": (limit("{{ .Values.k }}"), {"env/p.yaml": "k: 0.5\n"}),
    "an anchor": (TOP, {"env/p.yaml": "gpus: &g 0.5\n"}),
    "an alias": (TOP, {"env/p.yaml": "# one half\nx: &s 0.5\ngpus: *s\n"}),
    "an alias in a HelmRelease": (TOP, {"hr.yaml": f"{HR}    x: &s 0.5\n    gpus: *s\n"}),
    "members of another map": (TOP, {"p.yaml": "x: &x {gpus: 0.5}\n<<: *x\n"}),
    "a tag": (TOP, {"env/p.yaml": "gpus: !!float 0.5\n"}),
    "a comment before the value": (TOP, {"env/p.yaml": "gpus: # half\n  0.5\n"}),
    "JSON": (SIZES, {"env/p.json": '{"sizes": {"s": 0.5}}'}),
    "YAML with another ending": (SIZES, {"p.conf": "sizes:\n  s: 0.5\n"}),
    "a HelmRelease": (SIZES, {"hr.yaml": f"{HR}    sizes: {{s: 0.5}}\n"}),
    "a value before its name": (
        TOP,
        {"a.yaml": f"{APP}      - value: '0.5'\n        name: gpus\n"},
    ),
    "a member between name and value": (
        TOP,
        {"a.yaml": f"{APP}      - name: gpus\n        forceString: true\n        value: '0.5'\n"},
    ),
    "a value before its name in one line": (
        TOP,
        {"a.yaml": f"{APP}      - {{value: '0.5', name: gpus}}\n"},
    ),
    "an Application in JSON": (TOP, {"a.json": JSON_APP}),
}


@pytest.mark.parametrize(("template", "files"), DATA.values(), ids=DATA)
def test_values_outside_of_a_chart_are_data_as_those_inside(
    template: str, files: dict[str, str], tmp_path: Path
) -> None:
    results = looked_at(tmp_path, {"chart/templates/p.yaml": template, **files})
    assert f" in ../{next(iter(files))} (line " in reasons(results)
    assert NEW not in (results["chart/templates/p.yaml"].new_text or "")


GIVES_NOT = {
    "data with a fraction of another name": {"p.yaml": "gpus: &g 1\ncpu: 0.5\nx: {y: 500m}\n"},
    "a whole number": {"p.yaml": "gpus: 2 # not 0.5\n"},
    "another name": {"p.yaml": "mygpus: 0.5\ngpus-share: 0.5\nx: {gpus: 1, cpu: 0.5}\n"},
    "a comment": {"d.sh": f"# {RUN} --set gpus=0.5\n{RUN}\n"},
    "prose": {"README.md": "Helm takes no `gpus: 0.5` here.\n"},
    "prose of another kind": {"notes.rst": "Helm takes no gpus: 0.5\n"},
    "a change log": {"CHANGELOG.md": f"```\n{RUN} --set gpus=0.5\n```\n"},
    "what a command printed": {"README.md": "```\n$ helm get values x\ngpus: 0.5\n```\n"},
    "a command for another chart": {"d.sh": f"{RUN}\nhelm upgrade y ./web --set gpus=0.5\n"},
    "the other of two commands in a line": {
        "d.sh": f"{RUN} && helm upgrade y ./w --set gpus=0.5\n"
    },
    "arguments of Go for another chart": {
        "d.go": 'exec.Command("helm", "upgrade", "y", "./web", "--set", "gpus=0.5").Run()\n'
    },
    "a file that only a command for another chart names": {
        "d.sh": f"{RUN}\nhelm upgrade y ./web -f web.yaml\n",
        "web.yaml": "gpus: 0.5\n",
    },
    "a release of another chart": {
        "h.yaml": "releases:\n- chart: ./web\n  values: [{gpus: 0.5}]\n"
    },
    "values of another chart": {"web/Chart.yaml": "name: web\n", "web/values.yaml": "gpus: 0.5\n"},
    "a program that is not about charts": {"t.py": "trainer(gpus=0.5)\n"},
    "an object of Kubernetes": {
        "d.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {gpus: 0.5}\n"
    },
    "a schema": {"chart/values.schema.json": '{"properties": {"gpus": {"default": 0.5}}}'},
    "a variable that nothing gives": {"d.sh": f"{RUN} --set gpus=$GPUS\n"},
    "two lines": {"p.yaml": "gpus:\ncpu: 0.5\n"},
    "a version": {"p.yaml": "gpus: 0.5.1\n"},
}


@pytest.mark.parametrize("files", GIVES_NOT.values(), ids=GIVES_NOT)
def test_amounts_do_not_wait_for_other_fractions(files: dict[str, str], tmp_path: Path) -> None:
    results = looked_at(tmp_path, {**CHART, **files})
    assert NEW in (results["chart/templates/p.yaml"].new_text or "")


@pytest.mark.parametrize(
    "text",
    [
        "gpus: 0.5",
        "gpus = 500m",
        '"gpus" : "0.5"',
        "--set=a.gpus=.5",
        "- name: gpus\n  value: 0.5",
        '{\\"gpus\\": 1.5}',
        '("gpus", 0.5)',
        "gpus:\n- 0.5",
        "gpus: [0.5]",
        "gpus:\n  0.5",
        "path: /spec/values/gpus\nvalue: 0.5",
        'variable "gpus" {\n  type = number\n  default = 0.5\n}',
        'variable "gpus" {\n  description = "x"\n  type = string\n  default = "0.5"\n}',
        'variable "gpus" {\n  # a share\n  default = 0.5\n}',
        'set {\n  value = 0.5\n  name = "a.gpus"\n}',
        "- name: gpus\n  forceString: true\n  value: '0.5'",
        "string(defaultValue: '0.5', name: 'gpus')",
        "TF_VAR_gpus=0.5",
        "gpus := 0.5",
        "'gpus' => 0.5",
    ],
)
def test_a_fraction_stands_behind_its_name(text: str) -> None:
    assert [each.said for each in given(text, "gpus")]


@pytest.mark.parametrize(
    "text",
    [
        "- name: x\n  value: 0.5\n- name: gpus\n  value: 1",
        "- name: gpus\n  value: 1\n- name: x\n  value: 0.5",
        'set {\n  value = 0.5\n  name = "x"\n}\nset {\n  name = "gpus"\n  value = 1\n}',
        'variable "gpus" {\n  default = 1\n}\nvariable "x" {\n  default = 0.5\n}',
    ],
)
def test_a_fraction_of_another_entry_is_none(text: str) -> None:
    assert not [each.said for each in given(text, "gpus")]
