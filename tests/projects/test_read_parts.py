"""Amounts wait for what stays in another file, if one template reads both files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.test_outside_amounts import CHART, migrated
from tests.projects.test_values import NEW, OLD
from webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

AMOUNTS = f"limits: {{{OLD}: 1}}"
RES = f"train_res:\n  {AMOUNTS}\n"
SELECTOR = 'alpha.kubernetes.io/nvidia-gpu-name: "{{ model }}"'
STAYS = f"  nodeSelector: {{{SELECTOR}}}\n"


def pod(resources: str, rest: str = STAYS) -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n{rest}"
        f"  containers:\n  - name: c\n    image: r/i\n    resources: {resources}\n"
    )


READS = {"p.yaml.j2": pod("{{ train_res | to_json }}")}
SHELL = STAYS.replace("{{ model }}", "$M")
YTT = STAYS.replace('"{{ model }}"', "#@ data.values.model").replace("{", "").replace("}", "")
YTT = YTT.replace("nodeSelector: ", "nodeSelector:\n    ")

# The last file has amounts; something stays in another one.
WAIT = {
    "variables of a role": {**READS, "defaults/main.yml": RES},
    "variables in JSON": {**READS, "vars.json": f'{{"train_res": {{"limits": {{"{OLD}": 1}}}}}}'},
    "variables of a play": {
        **READS,
        "site.yml": f"- hosts: a\n  vars:\n    train_res: {{{AMOUNTS}}}\n",
    },
    "a member of a variable": {
        "p.yaml.j2": pod("{{ train.res['limits'] }}"),
        "vars.yml": f"train: {{res: {{{AMOUNTS}}}}}\n",
    },
    "a method of a variable": {
        "p.yaml.j2": pod("{% for k, v in train_res.items() %}{% endfor %}"),
        "vars.yml": RES,
    },
    "a key with dashes": {
        "p.yaml.j2": pod("{{ vars['train-res'] }}"),
        "v.yml": RES.replace("_", "-"),
    },
    "items of a list": {
        "p.yaml.j2": pod("{{ item.res }}"),
        "tasks.yml": f"- template: {{src: p.yaml.j2}}\n  loop:\n  - res: {{{AMOUNTS}}}\n",
    },
    "values of ytt": {
        "p.yml": pod("#@ data.values.train_res", YTT),
        "values.yml": f"#@data/values\n---\n{RES}",
    },
    "a text of ytt": {"p.txt": f"(@= data.values.train_res @)\n{STAYS}", "values.yml": RES},
    "a shell variable": {
        "p.yaml": pod("$train_res", STAYS.replace("{{ model }}", "$M")),
        "v.yml": RES,
    },
    "a shell variable in braces": {"p.yaml.tmpl": pod("${train_res:-0}"), "v.yml": RES},
    "a template of ERB": {
        "p.yaml.erb": pod("<%= @train_res.to_json %>", STAYS.replace("{{ model }}", "<%= m %>")),
        "v.yml": RES,
    },
    "a template of EJS": {"p.yaml.ejs": pod("<%- JSON.stringify(train_res) %>"), "v.yml": RES},
    "a loop of ERB": {
        "p.yaml.erb": f"<% train_res.each do |k, v| %>\n{pod('{}')}<% end %>\n",
        "v.yml": RES,
    },
    "a variable of Puppet": {
        "p.yaml.erb": pod("<%= scope['res'] %>"),
        "v.yml": f"res: '<%= train_res %>'\n{RES}",
    },
    **{
        f"a placeholder {sign}": {"p.yaml.in": pod(f"'{sign}'", SHELL), "v.yml": RES}
        for sign in (
            *("((train_res))", "[[ train_res ]]", "$(train_res)", "#{train_res}#", "__train_res__"),
            *("@train_res@", "%train_res%", "<<train_res>>"),
        )
    },
    "a list that is no list": {"p.yaml": pod("[[ train_res ]]"), "v.yml": RES},
    "a template of Go": {"p.yaml.tmpl": pod("{{ .train_res | toYaml }}"), "v.yml": RES},
    "a file that is included": {
        "p.yaml.j2": pod("\n{% include 'res.yaml.j2' %}"),
        "res.yaml.j2": f"      {AMOUNTS}\n",
    },
    "a file that is written before it is included": {
        "p.yaml.j2": pod("{{ lookup('file', 'out/res.yaml') }}"),
        "res.yaml.j2": f"      limits: {{{OLD}: {{{{ n }}}}}}\n",
    },
    "a file that a program reads": {
        "p.py": "r = load('res.yaml')\nv = '/usr/lib/nvidia-384'\n",
        "res.yaml": f"{AMOUNTS}\n",
    },
    "a block of another file": {
        "p.yaml.j2": pod("\n{% block res %}{% endblock %}"),
        "child.yaml.j2": f"{{% block res %}}\n      {AMOUNTS}\n{{% endblock %}}\n",
    },
    "a part with the name of a template of Go": {
        "p.yaml.tmpl": pod('\n{{ template "my.res" }}'),
        "x.tpl": f'{{{{ define "my.res" }}}}\n      {AMOUNTS}\n{{{{ end }}}}\n',
    },
    "a variable that is given to another one": {
        "p.yaml.j2": pod("{{ res }}"),
        "tasks.yml": '- template: {src: p.yaml.j2}\n  vars:\n    a: "{{ train_res }}"\n'
        '- x:\n    res: "{{ a }}"\n',
        "defaults/main.yml": RES,
    },
    "an action that looks the amount up": {
        "p.yaml.j2": pod(f"{{{{ train_res.limits['{OLD}'] }}}} {{{{ train_res }}}}", ""),
        "v.yml": RES,
    },
    "the selector is the part": {
        "v.yml": f"train_selector:\n  {SELECTOR}\n",
        "p.yaml.j2": pod(f"{{{AMOUNTS}}}", "  nodeSelector: {{ train_selector }}\n"),
    },
    "the volumes are in a file that is looked up": {
        "v.yaml.j2": "  - name: v\n    hostPath: {path: /usr/lib/nvidia-384}\n",
        "p.yaml.j2": pod(f"{{{AMOUNTS}}}", "  volumes: {{ lookup('template', 'v.yaml.j2') }}\n"),
    },
    "both are parts": {
        "s.yml": f"train_selector:\n  {SELECTOR}\n",
        "p.yaml.j2": pod("{{ train_res }}", "  nodeSelector: {{ train_selector }}\n"),
        "v.yml": RES,
    },
}

GO = {
    "another name": {**READS, "v.yml": RES.replace("train_res", "other")},
    "another member of the variable": {"p.yaml.j2": pod("{{ train_res.cpu }}"), "v.yml": RES},
    "a variable of an action of Go": {
        "p.yaml.tmpl": pod("{{ range $train_res := .x }}{{ $train_res }}{{ end }}"),
        "v.yml": RES,
    },
    "a field of a selector": {
        "v.yml": f"key: {SELECTOR.partition(':')[0]}\n",
        "p.yaml.j2": pod(f"{{{AMOUNTS}}}", "  nodeName: {{ key }}\n"),
    },
    "a filter": {"p.yaml.j2": pod("{{ x | train_res }}"), "v.yml": RES},
    "a template in which nothing stays": {"p.yaml.j2": pod("{{ train_res }}", ""), "v.yml": RES},
    "a name outside of actions": {"p.yaml.j2": pod("{{ x }} # train_res"), "v.yml": RES},
    "a file that is only named": {"p.yaml.j2": f"# v.yml\n{pod('{{ x }}')}", "v.yml": RES},
    "a comment": {"p.yaml.j2": f"# {SELECTOR}\n{pod('{{ train_res }}', '')}", "v.yml": RES},
    "a guide": {"p.md": f"```yaml\n{pod('{{ train_res }}')}```\n", "v.yml": RES},
    "a part of a guide": {**READS, "v.md": f"```yaml\n{RES}```\n"},
    "a whole object in variables": {**READS, "v.yml": pod(f"{{{AMOUNTS}}}", "")},
    "a selector that is not read": {
        "v.yml": f"train_selector:\n  {SELECTOR}\n",
        "p.yaml.j2": pod(f"{{{AMOUNTS}}}", "  nodeName: {{ node }}\n"),
    },
    "a variable of an object": {
        **READS,
        "o.yaml": "kind: X\ntrain_res: '{{ other }}'\n",
        "v.yml": RES.replace("train_res", "other"),
    },
    "a word of a program": {
        "p.py": f"class A:\n  else:\n    x = '{SELECTOR}'\n",
        "p.yaml.j2": pod(
            f"{{{AMOUNTS}}}",
            "{% if a %}\n  hostPID: true\n{% else %}\n  hostIPC: true\n{% endif %}\n",
        ),
    },
}


@pytest.mark.parametrize("files", WAIT.values(), ids=WAIT)
def test_amounts_wait_for_what_stays_in_another_file(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = migrated(tmp_path, files)
    assert NEW not in made.get([*files][-1], "")
    said = " ".join(capsys.readouterr().out.split())
    assert "connected by the name" in said


@pytest.mark.parametrize("files", GO.values(), ids=GO)
def test_amounts_do_not_wait(files: dict[str, str], tmp_path: Path) -> None:
    assert NEW in migrated(tmp_path, files)[[*files][-1]]


def test_amounts_wait_for_a_template_that_is_not_among_the_files_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrated(tmp_path, {**READS, "a/b.yaml.j2": pod("1", ""), "v.yml": RES}, "v.yml") == {}
    assert "which is not among the files of this run" in " ".join(capsys.readouterr().out.split())


def test_amounts_do_not_wait_for_a_template_of_another_repository(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".git").mkdir()
    files = {f"other/{name}": text for name, text in READS.items()}
    assert NEW in migrated(tmp_path, {**files, "v.yml": RES})["v.yml"]


def test_without_a_repository_the_files_of_the_run_count(tmp_path: Path) -> None:
    for name, text in {**READS, "v.yml": RES}.items():
        (tmp_path / name).write_text(text)
    assert main(["migrate", "--write", str(tmp_path)]) == 3
    assert (tmp_path / "v.yml").read_text() == RES


def test_a_chart_waits_for_a_part_that_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = migrated(tmp_path, {**CHART, **READS, "v.yml": RES})
    assert made == {}
    said = " ".join(capsys.readouterr().out.split())
    assert "the legacy name stays in" in said
    assert "v.yml (line 2), which may give values to this chart" in said
