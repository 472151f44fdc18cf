"""No amount is renamed that a template may render as a fraction: the API server would refuse it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from webhook.cli.workers import judge
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"


def pod(amount: str, around: tuple[str, str] = ("", "")) -> str:
    before, after = around
    return (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: main\nspec:\n  containers:\n"
        f"{before}  - name: main\n    image: registry.example/main\n    resources:\n"
        f"      limits:\n        {OLD}: {amount}\n{after}"
    )


def of_range(expression: str) -> tuple[str, str]:
    return f"  {{{{- range {expression} }}}}\n", "  {{- end }}\n"


SIZES = "size: small\ngpus: {small: 0.5, large: 1}\n"
VALUES = "gpus: 1\nnodes: 2\nname: a\ncounts: {a: 1, b: 2}\nsizes: {a: {gpus: 1, cpu: 0.5}}\n"

# Files of a chart beside the template; the template; and the fraction that the reason names.
FRACTIONS = {
    "a value": ({"values.yaml": "gpus: 0.5\n"}, pod("{{ .Values.gpus }}"), "0.5 from gpus"),
    "a text": (
        {"values.yaml": "main: {gpus: 500m}\n"},
        pod("{{ .Values.main.gpus | quote }}"),
        "500m from gpus in values.yaml",
    ),
    "a value in another file": (
        {"values.yaml": "gpus: 1\n", "values-small.yaml": "gpus: 0.25\n"},
        pod('"{{ .Values.gpus }}"'),
        "0.25 from gpus in values-small.yaml",
    ),
    "a value in JSON of any name": (
        {"values.yaml": "gpus: 1\n", "env/prod.json": '{"gpus": 0.25}\n'},
        pod('"{{ .Values.gpus }}"'),
        "0.25 from gpus in env/prod.json",
    ),
    "a value by its name": (
        {"values.yaml": "gpu-count: 0.5\n"},
        pod('{{ index .Values "gpu-count" }}'),
        "0.5 from gpu-count",
    ),
    "an item of a list": (
        {"values.yaml": "gpus: [1, 0.5]\n"},
        pod("{{ $n }}", of_range("$i, $n := .Values.gpus")),
        "0.5 from gpus",
    ),
    "the dot": (
        {"values.yaml": "gpus: {one: 1, half: 0.5}\n"},
        pod("{{ . }}", of_range(".Values.gpus")),
        "0.5 from half",
    ),
    "a member of the dot": (
        {"values.yaml": "workers: [{gpus: 1.5}]\n"},
        pod("{{ .gpus }}", of_range(".Values.workers")),
        "1.5 from gpus",
    ),
    "a variable": (
        {"values.yaml": "gpus: 0.5\n"},
        "{{- $gpus := .Values.gpus }}\n" + pod("{{ $gpus }}"),
        "0.5 from gpus",
    ),
    "values of the chart around it": (
        {
            "values.yaml": "inner: {gpus: 0.5}\n",
            "charts/inner/Chart.yaml": "name: inner\nversion: 1.0.0\n",
            "charts/inner/values.yaml": "gpus: 1\n",
            "charts/inner/templates/pod.yaml": pod("{{ .Values.gpus }}"),
        },
        "# {{ .Values.inner }}\n" + pod("{{ .Values.whole | default 1 }}"),
        "0.5 from gpus in values.yaml",
    ),
    "a named template": (
        {
            "values.yaml": "gpus: 0.5\n",
            "templates/_gpus.tpl": '{{- define "gpus" }}{{ .Values.gpus }}{{ end }}\n',
        },
        pod('{{ include "gpus" . }}'),
        "0.5 from gpus",
    ),
    "a named template in a text whose blocks are too deep": (
        {
            "templates/_gpus.tpl": '{{- define "gpus" }}0.5{{ end }}\n'
            + "{{ if .Values.a }}" * 60
            + "{{ end }}" * 60
        },
        pod('{{ include "gpus" . }}'),
        "0.5 in the template gpus",
    ),
    "a named template in another": (
        {
            "values.yaml": "gpus: 0.5\n",
            "templates/_gpus.tpl": (
                '{{- define "outer" }}{{ include "inner" . }}{{ end }}\n'
                '{{- define "inner" }}{{ .Values.gpus }}{{ include "outer" . }}{{ end }}\n'
            ),
        },
        pod('{{ include "outer" . }}'),
        "0.5 from gpus",
    ),
    "a member of a map that the template makes": (
        {"values.yaml": "gpus: 0.5\n"},
        pod("{{ .number }}", ('  {{- with dict "number" .Values.gpus }}\n', "  {{- end }}\n")),
        "0.5 from gpus",
    ),
    "a default": ({}, pod("{{ .Values.gpus | default 0.5 }}"), "0.5"),
    "a default in quotes": ({}, pod('{{ default "500m" .Values.gpus | quote }}'), "500m"),
    "a branch": ({}, pod("{{ if .Values.small }}0.5{{ else }}1{{ end }}"), "0.5"),
    "a branch of a variable": (
        {},
        "{{- $gpus := 1 }}{{ if .Values.small }}{{ $gpus = 0.5 }}{{ end }}\n" + pod("{{ $gpus }}"),
        "0.5",
    ),
    "a variable of a variable": (
        {"values.yaml": "gpus: 0.5\n"},
        "{{- $all := .Values.gpus }}{{ $gpus := $all }}\n" + pod("{{ $gpus }}"),
        "0.5 from gpus",
    ),
    "the text of a named template": (
        {"templates/_gpus.tpl": '{{- define "gpus" -}}0.5{{- end }}\n'},
        pod('{{ include "gpus" . }}'),
        "0.5",
    ),
    "a unit in a named template": (
        {"templates/_gpus.tpl": '{{- define "gpus" }}{{ .Values.gpus }}m{{ end }}\n'},
        pod('{{ include "gpus" . }}'),
        "m in the template gpus",
    ),
    "a member of which the template reads the name": (
        {"values.yaml": SIZES},
        pod("{{ index .Values.gpus .Values.size }}"),
        "0.5 from small in values.yaml",
    ),
    "a dot that a block computes": (
        {"values.yaml": VALUES},
        pod("{{ . | quote }}", ("  {{- with divf .Values.gpus 2 }}\n", "  {{- end }}\n")),
        "a fraction with divf .Values.gpus 2",
    ),
    "a member of a dot that a block reads": (
        {"values.yaml": VALUES},
        pod("{{ .gpus }}", ("  {{- with fromYaml .Values.name }}\n", "  {{- end }}\n")),
        "a fraction with fromYaml .Values.name",
    ),
    "a member of a variable": (
        {"values.yaml": "json: '{\"gpus\": 0.5}'\n"},
        "{{- $made := fromJson .Values.json }}\n" + pod("{{ $made.gpus }}"),
        "a fraction with fromJson .Values.json",
    ),
    **{
        f"a member with {each}": ({"values.yaml": SIZES}, pod(each), "0.5 from small")
        for each in (
            "{{ get .Values.gpus .Values.size }}",
            "{{ pluck .Values.size .Values.gpus | first }}",
            "{{ dig .Values.size 1 .Values.gpus }}",
            '{{ index .Values "gpus" .Values.size }}',
            "{{ index .Values .Values.size .Values.kind }}",
            '{{ get .Values.gpus (lower "SMALL") | quote }}',
        )
    },
    **{
        f"computed by {each}": (
            {"values.yaml": VALUES},
            pod(f"{{{{ {each} }}}}"),
            f"a fraction with {each}",
        )
        for each in (
            "divf .Values.gpus 2",
            ".Values.gpus | kindOf",
            'printf "%dm" (int .Values.gpus)',
            'printf "0.%d" (int .Values.gpus)',
            'printf "%.1f" .Values.gpus',
            'print "0." .Values.gpus',
            'list "0" .Values.gpus | join "."',
            '(split ":" .Values.name)._1',
            'regexFind "[0-9.]+" .Values.name',
            '.Values.name | toString | trimSuffix "x"',
            "tpl .Values.name .",
            "(fromJson .Values.json).gpus",
            '.Files.Get "gpus.txt" | trim',
        )
    },
}
WHOLE = {
    **{
        f"whole with {each}": ({"values.yaml": VALUES}, pod(f"{{{{ {each} }}}}"))
        for each in (
            "div .Values.gpus 2",
            "int (divf .Values.gpus 2)",
            'printf "%d" (int .Values.gpus)',
            'printf "%v" .Values.gpus',
            "print .Values.gpus",
            ".Values.gpus | default 1 | quote",
            'required "say how many" .Values.gpus',
            'ternary 2 1 (eq .Values.name "a/b")',
            'max 1 (len (splitList "," .Values.name))',
            "mul .Values.gpus .Values.nodes",
            "coalesce .Values.gpus .Values.nodes 1 | toString",
            'index .Values.counts "a"',
            "index .Values.counts .Values.name",
            "(index .Values.sizes .Values.name).gpus",
        )
    },
    "a condition on what is computed": (
        {"values.yaml": VALUES},
        '{{- $found := lookup "v1" "Node" "" "gpu" }}\n'
        + pod("{{ if $found }}2{{ else }}{{ .Values.gpus }}{{ end }}"),
    ),
    "a block that counts": (
        {"values.yaml": VALUES},
        pod("{{ .gpus }}", of_range("$i, $_ := until 3")),
    ),
    "a variable of a map": (
        {"values.yaml": VALUES},
        "{{- $all := .Values.sizes.a }}\n" + pod("{{ $all.gpus }}"),
    ),
    "a named template": (
        {
            "templates/_gpus.tpl": (
                '{{- define "gpus" -}}\n{{- if .Values.gpus }}{{ .Values.gpus }}{{ else }}1'
                "{{ end }}\n{{- end -}}\n{{/* other */}}other text\n"
            )
        },
        pod('{{ include "gpus" . }}'),
    ),
    "another member": ({"values.yaml": "gpus: 1\ncpu: 0.5\n"}, pod("{{ .Values.gpus }}")),
    "another variable": (
        {"values.yaml": "gpus: 1\nrequests: {cpu: 500m}\n"},
        "{{- $gpus := .Values.gpus }}\n{{- range $k, $v := .Values.requests }}{{ end }}\n"
        + pod("{{ $gpus }}"),
    ),
    "a dashboard": (
        {"values.yaml": "gpus: 1\n", "files/board.json": '{"panels": [], "gpus": 0.5}\n'},
        pod("{{ .Values.gpus }}"),
    ),
    "whole, in other words": ({"values.yaml": 'gpus: "1000m"\n'}, pod("{{ .Values.gpus }}")),
    "a number with a point": ({"values.yaml": "gpus: 2.0\n"}, pod("{{ .Values.gpus }}")),
    "the rest of the line": ({}, pod("{{ .Values.gpus }} # {{ 0.5 }} before")),
    "a comment": ({}, pod("{{ .Values.gpus }}") + f"# {OLD}: {{{{ 0.5 }}}}\n"),
}


def chart(folder: Path, files: dict[str, str], template: str) -> Path:
    main = folder / "templates" / "main.yaml"
    for name, text in {"Chart.yaml": "name: main\nversion: 1.0.0\n", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    main.parent.mkdir(exist_ok=True)
    main.write_text(template)
    return main


@pytest.mark.parametrize(("files", "template", "said"), FRACTIONS.values(), ids=FRACTIONS)
def test_an_amount_that_may_be_a_fraction_keeps_its_name(
    tmp_path: Path, files: dict[str, str], template: str, said: str
) -> None:
    result = judge(str(chart(tmp_path, files, template)), Plan()).result
    assert result.new_text is None or NEW not in result.new_text.replace(f"key: {NEW}", "")
    [found] = [each for each in result.located if each.code == "GPU101"]
    assert found.status is Status.MANUAL
    assert f"may write {said}" in found.message


@pytest.mark.parametrize(("files", "template"), WHOLE.values(), ids=WHOLE)
def test_an_amount_that_is_whole_is_renamed(
    tmp_path: Path, files: dict[str, str], template: str
) -> None:
    result = judge(str(chart(tmp_path, files, template)), Plan()).result
    assert result.new_text is not None
    assert f"        {NEW}: {{{{" in result.new_text


@pytest.mark.parametrize(
    "amount", ["{{ gpus | default(0.5) }}", "{% if small %}500m{% else %}1{% endif %}"]
)
def test_a_template_without_a_chart_may_write_a_fraction_too(amount: str) -> None:
    result = migrate_text(Source.of_text("pod.yaml.j2", pod(amount)), Plan())
    assert result.new_text is None
    assert ["may write" in each.message for each in result.located if each.code == "GPU101"] == [
        True
    ]


def test_a_long_action_is_shown_as_it_is_written() -> None:
    action = f'{{{{ index .Values.global.resources.limits.of.the.trainer "{OLD}" }}}}'
    result = migrate_text(Source.of_text("templates/pod.yaml", pod(action)), Plan())
    [said] = [each.message for each in result.located if each.code == "GPU101"]
    assert f"write {NEW}: {action}" in said
