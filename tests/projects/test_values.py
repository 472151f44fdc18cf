"""Amounts of a chart are renamed where templates and merged values still meet, or in no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from webhook.cli.workers import judge
from webhook.files.results import MANUAL, Plan, Report, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.files.results import FileResult

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
AMOUNTS = ".Values.resources.limits"
MADE = "{{- toYaml .Values.resources | nindent 6 }}"


def resources(limits: object = "", requests: object = "", name: str = OLD) -> str:
    made = "resources:\n"
    made += f"  limits:\n    {name}: {limits}\n" if limits != "" else ""
    return made + (f"  requests:\n    {name}: {requests}\n" if requests != "" else "")


def pod(inside: str) -> str:
    return (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: c\n"
        f"    image: i\n    resources:\n      {inside}\n"
    )


def limit(value: str) -> str:
    return pod(f"limits:\n        {OLD}: {value}")


BY_NAME = {
    "index on the line of the key": limit(f'{{{{ index {AMOUNTS} "{OLD}" }}}}'),
    "get": limit(f'{{{{ get {AMOUNTS} "{OLD}" }}}}'),
    "dig with a default": limit(f'{{{{ dig "limits" "{OLD}" 1 .Values.resources }}}}'),
    "pluck": limit(f'{{{{ pluck "{OLD}" {AMOUNTS} | first | default 1 }}}}'),
    "an action of several lines": limit(f'{{{{ index {AMOUNTS}\n          "{OLD}" }}}}'),
    "the name in backticks": limit(f"{{{{ index {AMOUNTS} `{OLD}` }}}}"),
    "with around the key": pod(
        f'limits:\n        {{{{- with (index {AMOUNTS} "{OLD}") }}}}\n        {OLD}: {{{{ . }}}}\n'
        "        {{- end }}"
    ),
    "hasKey above an amount": pod(
        f'limits:\n        {{{{- if hasKey {AMOUNTS} "{OLD}" }}}}\n        {OLD}: 1\n'
        "        {{- end }}"
    ),
    "a variable with the name": pod(
        f'{{{{- $gpu := "{OLD}" }}}}\n      limits:\n        {NEW}: {{{{ index {AMOUNTS} $gpu }}}}'
    ),
    "the name in two parts": limit(
        f'{{{{ index {AMOUNTS} (printf "%s/%s" "alpha.kubernetes.io" "nvidia-gpu") }}}}'
    ),
    "the begin of the name": pod(
        f"limits:\n        {{{{- range $name, $amount := {AMOUNTS} }}}}\n"
        '        {{- if hasPrefix "alpha.kubernetes.io/" $name }}\n'
        f"        {OLD}: {{{{ $amount }}}}\n        {{{{- end }}}}\n        {{{{- end }}}}"
    ),
    "the end of the name": pod(
        f"limits:\n        {{{{- range $name, $amount := {AMOUNTS} }}}}\n"
        '        {{- if hasSuffix "/nvidia-gpu" $name }}\n'
        f"        {OLD}: {{{{ $amount }}}}\n        {{{{- end }}}}\n        {{{{- end }}}}"
    ),
    "the name as the key, too": pod(
        f'limits:\n        {{{{ "{OLD}" }}}}: {{{{ index {AMOUNTS} "{OLD}" }}}}'
    ),
}


def assert_all_wait(folder: Path, files: dict[str, str], *said: str) -> None:
    """No amount is renamed in any file, and the run ends with 3."""
    results = looked_at(folder, files)
    for result in results.values():
        assert f"{NEW}:" not in (result.new_text or "")
    assert Report(tuple(results.values())).exit_code() == MANUAL
    messages = " ".join(
        each.message for result in results.values() for each in result.located
        if each.status is Status.MANUAL
    )  # fmt: skip
    for each in said:
        assert each in messages


def looked_at(folder: Path, files: dict[str, str]) -> dict[str, FileResult]:
    whole = {"Chart.yaml": "apiVersion: v2\nname: c\nversion: 0.1.0\n", **files}
    for name, text in whole.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return {name: judge(str(folder / name), Plan()).result for name in files}


@pytest.mark.parametrize("template", BY_NAME.values(), ids=BY_NAME)
def test_amounts_wait_for_a_template_that_reads_them_by_name(template: str, tmp_path: Path) -> None:
    files = {"templates/p.yaml": template, "values.yaml": resources(2)}
    assert_all_wait(tmp_path, files, "templates/p.yaml", "(line ")


def test_amounts_wait_for_a_helper_that_reads_them_by_name(tmp_path: Path) -> None:
    helper = f'{{{{- define "g" }}}}{{{{ index {AMOUNTS} "{OLD}" }}}}{{{{ end }}}}\n'
    files = {
        "templates/p.yaml": limit('{{ include "g" . }}'),
        "templates/_helpers.tpl": helper,
        "values.yaml": resources(2),
        "values-prod.yaml": resources(4),
    }
    assert_all_wait(tmp_path, files, "templates/_helpers.tpl (line 1)")


# Objects without pods that the amounts of pods reach, too.
ELSEWHERE = {
    "ResourceQuota": f"spec:\n  hard: {{{{- toYaml {AMOUNTS} | nindent 4 }}}}\n",
    "LimitRange": (
        f"spec:\n  limits:\n  - type: Container\n    default:\n"
        f"      {{{{- range $name, $value := {AMOUNTS} }}}}\n"
        "      {{ $name }}: {{ $value }}\n      {{- end }}\n"
    ),
    "ConfigMap": "data:\n  resources: {{ toJson .Values.resources | quote }}\n",
    "Secret": "stringData:\n  values.yaml: |\n    {{- toYaml .Values | nindent 4 }}\n",
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_amounts_wait_where_an_object_without_pods_gets_them_too(kind: str, tmp_path: Path) -> None:
    head = f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: other}}\n"
    files = {
        "templates/pod.yaml": f"{pod(MADE)}---\n{head}{ELSEWHERE[kind]}",
        "values.yaml": resources(2),
    }
    assert_all_wait(tmp_path, files, f"resources of a container, in kind {kind}")


def test_an_object_without_pods_may_get_other_values(tmp_path: Path) -> None:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
    data = 'data:\n  name: "{{ .Values.name }} {{ .Release.Name }}"\n'
    more = (
        "  {{- range $name, $value := .Values.data }}\n  {{ $name }}: {{ $value }}\n  {{- end }}\n"
    )
    files = {
        "templates/pod.yaml": f"{head}{data}{more}---\n{pod(MADE)}",
        "values.yaml": f"name: main\ndata: {{a: b}}\n{resources(2)}",
    }
    assert NEW in (looked_at(tmp_path, files)["values.yaml"].new_text or "")


@pytest.mark.parametrize("value", ['{{ limits["%s"] }}', "{{ limits.get('%s', 1) }}"])
def test_a_jinja_template_that_reads_the_amount_by_name_waits(value: str) -> None:
    text = limit(value % OLD)
    result = migrate_text(Source.of_text("p.yaml.j2", text), Plan())
    assert result.new_text is None
    assert Report((result,)).exit_code() == MANUAL


def test_a_byte_order_mark_of_values_holds_nothing(tmp_path: Path) -> None:
    files = {"templates/p.yaml": pod(MADE), "values.yaml": f"\ufeff{resources(2)}"}
    assert looked_at(tmp_path, files)["values.yaml"].new_text == resources(2, name=NEW)


def test_a_comment_of_a_template_holds_nothing(tmp_path: Path) -> None:
    files = {
        "templates/p.yaml": f"{{{{/* {OLD} */}}}}\n" + pod(MADE),
        "values.yaml": resources(2),
    }
    assert looked_at(tmp_path, files)["values.yaml"].new_text == resources(2, name=NEW)


def test_an_action_in_a_comment_holds_nothing(tmp_path: Path) -> None:
    files = {
        "templates/p.yaml": pod(MADE),
        "values.yaml": f'# read as {{{{ index {AMOUNTS} "{OLD}" }}}}\n' + resources(2),
    }
    assert f"{NEW}: 2" in (looked_at(tmp_path, files)["values.yaml"].new_text or "")


def test_values_wait_for_those_that_are_not_of_this_run(tmp_path: Path) -> None:
    files = {"values.yaml": resources(2), "values-0.yaml": resources(0)}
    looked_at(tmp_path, files)
    file = str(tmp_path / "values.yaml")
    alone = judge(file, Plan(named=(file,))).result
    assert alone.new_text is None
    assert any("not among the files of this run" in each.message for each in alone.located)
    both = judge(file, Plan(named=(str(tmp_path),))).result
    assert both.new_text == resources(2, name=NEW)
    without = judge(file, Plan(named=(str(tmp_path),), excluded=("values-0.yaml",))).result
    assert without.new_text is None


WITH_KIND = {
    "a kind in the values": {"values.yaml": "kind: Deployment\n" + resources(2)},
    "a kind in other values": {
        "values.yaml": resources(2),
        "values-k.yaml": "kind: Deployment\n" + resources(0),
    },
    "a kind and a version": {
        "values.yaml": "kind: Deployment\napiVersion: apps/v1\n" + resources(2),
        "values-0.yaml": resources(0),
    },
    "a kind in values of another name": {
        "values.yaml": resources(2),
        "env/prod.yaml": "kind: DaemonSet\n" + resources(1),
    },
}


@pytest.mark.parametrize("files", WITH_KIND.values(), ids=WITH_KIND)
def test_values_are_values_whatever_kind_they_name(files: dict[str, str], tmp_path: Path) -> None:
    for name, result in looked_at(tmp_path, {**files, "templates/p.yaml": pod(MADE)}).items():
        assert name == "templates/p.yaml" or result.new_text == files[name].replace(OLD, NEW)


OTHER_GPUS = {
    "a request of 0 over one without a limit": (resources("", 2), resources("", 0)),
    "a request of null over one without a limit": (resources("", 2), resources("", "null")),
    "no requests over one without a limit": (resources("", 2), "resources: {requests: null}\n"),
    "no limits over one without a limit": (resources("", 2), "resources: {limits: null}\n"),
    "a limit of 0 over both": (resources(2, 2), resources(0)),
    "a limit of 1 over both": (resources(2, 2), resources(1)),
    "a request of 0 over both": (resources(2, 2), resources("", 0)),
    "a 0 by an alias": (
        resources(2),
        f"none: &n\n  {OLD}: 0\nresources:\n  limits: *n\n",
    ),
    "a 0 by a merge key": (
        resources(2),
        f"none: &n {{{OLD}: 0}}\nresources:\n  limits:\n    <<: *n\n    cpu: 1\n",
    ),
    "the name as a value": (resources(2), f"gpuName: {OLD}\n"),
    "values that are left alone": (
        resources(2),
        'labels: {gpu-webhook.dev/ignore: "true"}\n' + resources(1),
    ),
}


@pytest.mark.parametrize(("base", "over"), OTHER_GPUS.values(), ids=OTHER_GPUS)
def test_amounts_wait_where_merged_values_would_have_other_gpus(
    base: str, over: str, tmp_path: Path
) -> None:
    files = {"values.yaml": base, "values-x.yaml": over, "templates/p.yaml": pod(MADE)}
    assert_all_wait(tmp_path, files, "values-x.yaml")


def test_two_files_of_values_over_values_without_gpus_count_too(tmp_path: Path) -> None:
    files = {
        "values.yaml": "a: 1\n",
        "values-gpu.yaml": resources("", 2),
        "values-off.yaml": resources("", 0),
    }
    assert_all_wait(tmp_path, files, "values-off.yaml")


def test_values_for_a_chart_inside_count_with_its_own(tmp_path: Path) -> None:
    sub = "apiVersion: v2\nname: s\nversion: 0.1.0\n"
    over = "s:\n" + "".join(f"  {line}\n" for line in resources("", 0).splitlines())
    files = {"charts/s/Chart.yaml": sub, "charts/s/values.yaml": resources("", 2)}
    assert_all_wait(tmp_path, {**files, "values.yaml": over}, "the values of ")


SAME = {
    "another amount": (resources(2), resources(1)),
    "a 0": (resources(2), resources(0)),
    "null": (resources(2), resources("null")),
    "both": (resources(2, 2), resources(0, 0)),
    "a request over a request": (resources("", 2), resources("", 1)),
    "no resources": (resources("", 2), "resources: null\n"),
    "other fields": (resources("", 2), "replicas: 3\n"),
}


@pytest.mark.parametrize(("base", "over"), SAME.values(), ids=SAME)
def test_amounts_are_renamed_where_merged_values_have_the_same_gpus(
    base: str, over: str, tmp_path: Path
) -> None:
    files = {"values.yaml": base, "values-x.yaml": over, "templates/p.yaml": pod(MADE)}
    for name, result in looked_at(tmp_path, files).items():
        assert OLD not in (result.new_text or files[name])
