"""What a pod requests and where it may run are migrated together, or not at all.

Half of it would be worse than nothing: the webhook repairs a pod of which the amounts are legacy as
a whole, and of any other pod it leaves the node label, the annotations and the driver volumes.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from webhook.cli.workers import judge
from webhook.files.results import MANUAL, Plan, Report, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.files.results import FileResult

OLD, NEW, LABEL = (
    "alpha.kubernetes.io/nvidia-gpu",
    "nvidia.com/gpu",
    "alpha.kubernetes.io/nvidia-gpu-name",
)
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
TERMS = (
    '{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":'
    f'[{{"matchExpressions":[{{"key":"{LABEL}","operator":"In","values":["Tesla K80"]}}]}}]}}}}}}'
)
WHY = "until both are changed, the webhook repairs the whole pod"
LITERAL = f"limits:\n  {OLD}: 1"
MADE = "{{- toYaml .Values.resources | nindent 10 }}"
MADE_SELECTOR = "nodeSelector:\n  {{- toYaml .Values.nodeSelector | nindent 8 }}"
MADE_ANNOTATIONS = "{{- toYaml .Values.podAnnotations | nindent 8 }}"
SELECTOR = f"nodeSelector:\n  {LABEL}: Tesla-K80"
WAITED_FOR = ("GPU105", "GPU106", "GPU107", "GPU108", "GPU109")
VALUES = f"resources:\n  limits:\n    {OLD}: 1\n"
LABELLED = f"nodeSelector:\n  {LABEL}: Tesla-K80\n"
ANNOTATED = f"podAnnotations:\n  {AFFINITY}: >\n    {TERMS}\n"
VOLUMES = "extraVolumes:\n- name: lib\n  hostPath: {path: /usr/lib/nvidia-375}\n"


def pod(resources: str = LITERAL, spec: str = "", annotations: str = "") -> str:
    """A Deployment; `spec` stands beside its containers."""
    made = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n"
    made += (
        "  selector: {matchLabels: {app: d}}\n  template:\n    metadata:\n      labels: {app: d}\n"
    )
    if annotations:
        made += f"      annotations:\n{textwrap.indent(annotations, ' ' * 8)}\n"
    made += "    spec:\n      containers:\n      - name: a\n        image: x\n        resources:\n"
    made += textwrap.indent(resources, " " * 10) + "\n"
    return made + (textwrap.indent(spec, " " * 6) + "\n" if spec else "")


def defined(name: str, text: str) -> str:
    return f'{{{{- define "{name}" -}}}}\n{text}\n{{{{- end -}}}}\n'


PLACE = defined("c.place", f"nodeSelector:\n  {LABEL}: {{{{ .Values.model | quote }}}}")
GPUS = defined("c.gpus", f"limits:\n  {OLD}: {{{{ .Values.gpus }}}}")
USES_PLACE = pod(spec='{{- include "c.place" . | nindent 6 }}')
FROM_HELPERS = pod(
    '{{- include "c.gpus" . | nindent 10 }}', '{{- include "c.place" . | nindent 6 }}'
)


def named(name: str, *beside: str) -> str:
    """A Chart.yaml, with charts in folders beside it that it depends on."""
    made = f"apiVersion: v2\nname: {name}\nversion: 0.1.0\n"
    made += "dependencies:\n" if beside else ""
    for each in beside:
        made += f'- {{name: {each}, version: 0.1.0, repository: "file://../{each}"}}\n'
    return made


def driver(path: str) -> str:
    return f'volumes:\n- name: lib\n  hostPath: {{path: "{path}"}}\n'


@dataclass(frozen=True)
class Chart:
    """The files of a chart, besides its Chart.yaml; `held` are those whose amounts wait."""

    files: dict[str, str]
    held: tuple[str, ...]
    done: tuple[str, ...] = ()


HELD = {
    "the node label in the values, made by the template": Chart(
        {"templates/d.yaml": pod(MADE, MADE_SELECTOR), "values.yaml": VALUES + LABELLED},
        ("values.yaml",),
    ),
    "the amount in the template, the node label in the values": Chart(
        {"templates/d.yaml": pod(spec=MADE_SELECTOR), "values.yaml": LABELLED},
        ("templates/d.yaml",),
    ),
    "the node label in the values, under a condition": Chart(
        {
            "templates/d.yaml": pod(
                spec="{{- with .Values.nodeSelector }}\nnodeSelector: {{- toYaml . | nindent 8 }}\n"
                "{{- end }}"
            ),
            "values.yaml": LABELLED,
        },
        ("templates/d.yaml",),
    ),
    "the node label in the values of one environment": Chart(
        {"templates/d.yaml": pod(spec=MADE_SELECTOR), "env/prod.yaml": LABELLED},
        ("templates/d.yaml",),
    ),
    "the name of the label in the values": Chart(
        {
            "templates/d.yaml": pod(spec='nodeSelector:\n  {{ .Values.key }}: "Tesla-K80"'),
            "values.yaml": f"key: {LABEL}\n",
        },
        ("templates/d.yaml",),
    ),
    "the whole affinity in the values": Chart(
        {
            "templates/d.yaml": pod(spec="affinity: {{- toYaml .Values.affinity | nindent 8 }}"),
            "values.yaml": f"affinity:\n  key: {LABEL}\n",
        },
        ("templates/d.yaml",),
    ),
    "the key of a term in the values": Chart(
        {
            "templates/d.yaml": pod(
                spec=textwrap.dedent("""\
                    affinity:
                      nodeAffinity:
                        requiredDuringSchedulingIgnoredDuringExecution:
                          nodeSelectorTerms:
                          - matchExpressions:
                            - {key: "{{ .Values.key }}", operator: Exists}""")
            ),
            "values.yaml": f"key: {LABEL}\n",
        },
        ("templates/d.yaml",),
    ),
    "the annotation in the values": Chart(
        {"templates/d.yaml": pod(annotations=MADE_ANNOTATIONS), "values.yaml": ANNOTATED},
        ("templates/d.yaml",),
    ),
    "annotation and amount in the values": Chart(
        {"templates/d.yaml": pod(MADE, "", MADE_ANNOTATIONS), "values.yaml": VALUES + ANNOTATED},
        ("values.yaml",),
    ),
    "the annotation in a helper": Chart(
        {
            "templates/d.yaml": pod(annotations='{{- include "c.ann" . | nindent 8 }}'),
            "templates/_helpers.tpl": f"{{{{- define \"c.ann\" -}}}}\n{AFFINITY}: '{TERMS}'\n"
            "{{- end -}}\n",
        },
        ("templates/d.yaml",),
    ),
    "the amount in a helper, the label in the values": Chart(
        {
            "templates/d.yaml": pod('{{- include "c.res" . | nindent 10 }}', MADE_SELECTOR),
            "templates/_helpers.tpl": f'{{{{- define "c.res" -}}}}\nlimits:\n  {OLD}: 1\n'
            "{{- end -}}\n",
            "values.yaml": LABELLED,
        },
        ("templates/_helpers.tpl",),
    ),
    "label and amount in one file of helpers": Chart(
        {"templates/d.yaml": FROM_HELPERS, "templates/_helpers.tpl": PLACE + GPUS},
        ("templates/_helpers.tpl",),
    ),
    "amount and label in one file of helpers": Chart(
        {"templates/d.yaml": FROM_HELPERS, "templates/_helpers.tpl": GPUS + PLACE},
        ("templates/_helpers.tpl",),
    ),
    "the label on the first line of the helpers": Chart(
        {
            "templates/d.yaml": FROM_HELPERS,
            "templates/_helpers.tpl": defined("c.place", f"nodeSelector: {{{LABEL}: Tesla-K80}}")
            + GPUS,
        },
        ("templates/_helpers.tpl",),
    ),
    "the affinity and the amount in one file of helpers": Chart(
        {
            "templates/d.yaml": FROM_HELPERS,
            "templates/_helpers.tpl": defined(
                "c.place", f"affinity:\n  terms:\n  - key: {LABEL}\n    operator: Exists"
            )
            + GPUS,
        },
        ("templates/_helpers.tpl",),
    ),
    "an annotation and the amount in one file of helpers": Chart(
        {
            "templates/d.yaml": FROM_HELPERS,
            "templates/_helpers.tpl": defined("c.ann", f"{AFFINITY}: '{TERMS}'") + GPUS,
        },
        ("templates/_helpers.tpl",),
    ),
    "the driver and the amount in one file of helpers": Chart(
        {
            "templates/d.yaml": FROM_HELPERS,
            "templates/_helpers.tpl": GPUS
            + defined("c.place", "volumes:\n- name: lib\n  hostPath: {path: /usr/lib/nvidia-375}"),
        },
        ("templates/_helpers.tpl",),
    ),
    "a driver of a version of the values in one file of helpers": Chart(
        {
            "templates/d.yaml": FROM_HELPERS,
            "templates/_helpers.tpl": GPUS
            + defined(
                "c.place",
                'volumes:\n- name: lib\n  hostPath: {path: "/usr/lib/nvidia-{{ .Values.v }}"}',
            ),
        },
        ("templates/_helpers.tpl",),
    ),
    "the label in a chart beside it that Chart.yaml names": Chart(
        {
            "app/Chart.yaml": named("app", "common"),
            "app/templates/d.yaml": USES_PLACE,
            "common/Chart.yaml": named("common"),
            "common/templates/_p.tpl": PLACE,
        },
        ("app/templates/d.yaml",),
    ),
    "the label in a chart beside it that requirements.yaml names": Chart(
        {
            "app/Chart.yaml": named("app"),
            "app/requirements.yaml": "dependencies:\n- name: common\n  version: 0.1.0\n"
            "  repository: file://../common/\n",
            "app/templates/d.yaml": USES_PLACE,
            "common/Chart.yaml": named("common"),
            "common/templates/_p.tpl": PLACE,
        },
        ("app/templates/d.yaml",),
    ),
    "the label in a chart that is named by one that is named": Chart(
        {
            "app/Chart.yaml": named("app", "more"),
            "app/templates/d.yaml": USES_PLACE,
            "more/Chart.yaml": named("more", "common"),
            "common/Chart.yaml": named("common"),
            "common/templates/_p.tpl": PLACE,
        },
        ("app/templates/d.yaml",),
    ),
    "the amount in a chart beside it, the label in the values": Chart(
        {
            "app/Chart.yaml": named("app", "common"),
            "app/templates/d.yaml": pod('{{- include "c.gpus" . | nindent 10 }}', MADE_SELECTOR),
            "app/values.yaml": LABELLED,
            "common/Chart.yaml": named("common"),
            "common/templates/_g.tpl": GPUS,
        },
        ("common/templates/_g.tpl",),
    ),
    "a helper of a chart inside another one beside it": Chart(
        {
            "charts/a/Chart.yaml": named("a"),
            "charts/a/templates/d.yaml": USES_PLACE,
            "charts/b/Chart.yaml": named("b"),
            "charts/b/templates/_p.tpl": PLACE,
        },
        ("charts/a/templates/d.yaml",),
    ),
    "the amount in the values for a chart inside it, which has the label": Chart(
        {
            "charts/a/Chart.yaml": named("a"),
            "charts/a/templates/d.yaml": pod(MADE, MADE_SELECTOR),
            "charts/a/values.yaml": LABELLED,
            "values.yaml": textwrap.indent(VALUES, "  ").join(["a:\n", ""]),
        },
        ("values.yaml",),
    ),
    "the values for a chart in a folder of another name": Chart(
        {
            "app/Chart.yaml": named("app").replace(
                "app\n",
                "app\ndependencies:\n- {name: s, version: 0.1.0, repository: 'file://parts/s'}\n",
            ),
            "app/values.yaml": textwrap.indent(LABELLED, "  ").join(["s:\n", ""]),
            "app/parts/s/Chart.yaml": named("s"),
            "app/parts/s/templates/d.yaml": pod(spec=MADE_SELECTOR),
        },
        ("app/parts/s/templates/d.yaml",),
    ),
    "a text that a template reads": Chart(
        {
            "templates/d.yaml": pod(spec='{{ .Files.Get "files/place.txt" | nindent 6 }}'),
            "files/place.txt": LABELLED,
        },
        ("templates/d.yaml",),
    ),
    "the whole pod in a helper": Chart(
        {
            "templates/d.yaml": pod(spec='{{- include "c.spec" . | nindent 6 }}'),
            "templates/_helpers.tpl": f'{{{{- define "c.spec" -}}}}\n{SELECTOR}\n{{{{- end -}}}}\n',
        },
        ("templates/d.yaml",),
    ),
    "the values of a chart for one inside it": Chart(
        {
            "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
            "charts/sub/templates/d.yaml": pod(spec=MADE_SELECTOR),
            "values.yaml": textwrap.indent(LABELLED, "  ").join(["sub:\n", ""]),
        },
        ("charts/sub/templates/d.yaml",),
    ),
    "the amount in the values, the label with a model of the values in the template": Chart(
        {
            "templates/d.yaml": pod(MADE, f"nodeSelector:\n  {LABEL}: {{{{ .Values.model }}}}"),
            "values.yaml": f"{VALUES}model: Tesla-K80\n",
        },
        ("values.yaml",),
    ),
    "the driver in the values": Chart(
        {
            "templates/d.yaml": pod(
                spec="volumes:\n{{- toYaml .Values.extraVolumes | nindent 6 }}"
            ),
            "values.yaml": VOLUMES,
        },
        ("templates/d.yaml",),
    ),
    "one pod with all of it in sight beside one without": Chart(
        {
            "templates/a.yaml": pod(spec=MADE_SELECTOR),
            "templates/b.yaml": pod(spec=SELECTOR),
            "values.yaml": LABELLED,
        },
        ("templates/a.yaml",),
        ("templates/b.yaml",),
    ),
}


def written(folder: Path, files: dict[str, str]) -> dict[str, Path]:
    # Charts side by side are in no chart.
    whole = files if "app/Chart.yaml" in files else {"Chart.yaml": named("c"), **files}
    for name, text in whole.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return {name: folder / name for name in files}


def asked_of(file: Path) -> FileResult:
    return judge(str(file), Plan()).result


def assert_amounts_wait(result: FileResult) -> None:
    amounts = [each for each in result.located if each.code == "GPU101"]
    assert amounts
    assert all(each.status is Status.MANUAL and not each.fix for each in amounts)
    assert any(WHY in each.message for each in amounts)
    assert f"{OLD}:" in (result.new_text or result.text)
    assert f"{NEW}:" not in (result.new_text or result.text)
    assert Report((result,)).exit_code() == MANUAL


@pytest.mark.parametrize("chart", HELD.values(), ids=HELD)
def test_in_a_chart_amounts_wait_for_what_is_left_of_placement(
    chart: Chart, tmp_path: Path
) -> None:
    files = written(tmp_path, chart.files)
    for name in chart.held:
        assert_amounts_wait(asked_of(files[name]))
        assert any(
            each.status is Status.MANUAL and each.code in WAITED_FOR
            for file in files.values()
            for each in asked_of(file).located
        )
    for name in chart.done:
        new = asked_of(files[name]).new_text
        assert new is not None
        assert OLD not in new


@pytest.mark.parametrize("chart", HELD.values(), ids=HELD)
def test_what_is_written_stays(chart: Chart, tmp_path: Path) -> None:
    files = written(tmp_path, chart.files)
    for file in files.values():
        new = asked_of(file).new_text
        file.write_text(new if new is not None else file.read_text())
    assert [name for name, file in files.items() if asked_of(file).new_text is not None] == []


@pytest.mark.parametrize("chart", HELD.values(), ids=HELD)
def test_once_placement_is_changed_the_amounts_are(chart: Chart, tmp_path: Path) -> None:
    done = {
        name: text.replace(LABEL, "nvidia.com/gpu.product")
        .replace(AFFINITY, "example.com/affinity")
        .replace("/usr/lib/nvidia-", "/data/")
        for name, text in chart.files.items()
    }
    files = written(tmp_path, done)
    for name in chart.held:
        new = asked_of(files[name]).new_text
        assert new is not None
        assert f"{OLD}:" not in new


TEMPLATES = {
    "a model of the values": pod(spec=f"nodeSelector:\n  {LABEL}: {{{{ model }}}}"),
    "models of the values": pod(
        spec=textwrap.dedent(f"""\
            affinity:
              nodeAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                  nodeSelectorTerms:
                  - matchExpressions:
                    - key: {LABEL}
                      operator: In
                      values: {{{{ models | tojson }}}}""")
    ),
    "a label that an action writes": pod(
        spec=f'nodeSelector: {{{{ dict "{LABEL}" .Values.model | toJson }}}}'
    ),
    "an annotation with a made value": pod(
        annotations=f"{AFFINITY}: '{TERMS.replace('Tesla K80', '{{ model }}')}'"
    ),
    "a made annotation": pod(annotations=f"{AFFINITY}: {{{{ affinity }}}}"),
    "made tolerations": pod(annotations=f"{TOLERATIONS}: '{{{{ tolerations }}}}'"),
    "a made name of a scheduler": pod(
        annotations="scheduler.alpha.kubernetes.io/name: {{ scheduler }}"
    ),
    "a driver that the template may mount": pod(
        spec="volumes:\n- name: lib\n  hostPath: {path: /usr/lib/nvidia-375}\n"
    ).replace("        image: x\n", "        image: x\n        volumeMounts: {{ mounts }}\n"),
    "a driver of a version of the values": pod(spec=driver("/usr/lib/nvidia-{{ version }}")),
    "a driver of a version of the values, under a condition": pod(
        spec="volumes:\n- name: data\n  emptyDir: {}\n{{ if .Values.gpu }}\n"
        + driver("/usr/lib64/nvidia-{{ .Values.v }}/bin").removeprefix("volumes:\n")
        + "{{ end }}"
    ),
    "a driver of a half version of the values": pod(spec=driver("/usr/lib/nvidia-3{{ version }}")),
    "a driver's volume of a name of the values": pod(
        spec=driver("/var/lib/nvidia-docker/{{ name }}")
    ),
    "a profile for a container of a made name": pod(
        annotations="container.seccomp.security.alpha.kubernetes.io/{{ name }}: docker/default"
    ),
    "what is no YAML": pod(spec=f"{SELECTOR}\n  broken: ["),
}


@pytest.mark.parametrize("path", ["templates/x.yaml", "x.yaml.j2"])
@pytest.mark.parametrize("text", TEMPLATES.values(), ids=TEMPLATES)
def test_in_one_template(text: str, path: str) -> None:
    assert_amounts_wait(migrate_text(Source.of_text(path, f"# {{{{ x }}}}\n{text}"), Plan()))


def test_of_two_pods_in_one_file_the_one_that_is_all_in_sight_is_migrated() -> None:
    text = f"{TEMPLATES['a model of the values']}---\n{pod(spec=SELECTOR)}"
    new = migrate_text(Source.of_text("templates/x.yaml", text), Plan()).new_text or ""
    first, second = new.split("---\n")
    assert OLD in first
    assert LABEL not in second
    assert f"{OLD}:" not in second


def test_the_values_of_a_chart_that_is_not_there() -> None:
    assert_amounts_wait(migrate_text(Source.of_text("values.yaml", VALUES + LABELLED), Plan()))


DONE = {
    "nothing legacy is in sight": {
        "templates/d.yaml": pod(spec=MADE_SELECTOR, annotations=MADE_ANNOTATIONS),
        "values.yaml": "nodeSelector: {}\n",
    },
    "the label is in a comment": {
        "templates/d.yaml": pod(spec=MADE_SELECTOR),
        "values.yaml": f"nodeSelector: {{}}  # once {LABEL}: Tesla-K80\n",
    },
    "the label is in the notes and the manual": {
        "templates/d.yaml": pod(spec=MADE_SELECTOR),
        "templates/NOTES.txt": f"{LABEL} {{{{ .Values.x }}}}\n",
        "README.md": f"Set {LABEL}.\n",
    },
    "the pod is all in sight": {
        "templates/d.yaml": pod(spec=SELECTOR).replace("image: x", "image: {{ .Values.image }}"),
        "values.yaml": LABELLED,
    },
    "annotations are made, and the label in the values is none": {
        "templates/d.yaml": pod(annotations=MADE_ANNOTATIONS),
        "values.yaml": LABELLED,
    },
    "a host path that is no driver's": {
        "templates/d.yaml": pod(spec=driver("/data/{{ .Values.v }}")),
    },
    "the label is in prose": {
        "templates/d.yaml": pod(spec=MADE_SELECTOR),
        "CHANGES.txt": f"Use {LABEL}: Tesla K80 in old clusters\n",
    },
    "the label is in the values of another chart inside the same": {
        "charts/a/Chart.yaml": named("a"),
        "charts/a/values.yaml": LABELLED,
        "charts/b/Chart.yaml": named("b"),
        "templates/d.yaml": pod(),
        "charts/b/templates/d.yaml": pod(spec=MADE_SELECTOR),
    },
    "the label is in a chart beside it that it does not use": {
        "app/Chart.yaml": named("app"),
        "app/templates/d.yaml": USES_PLACE,
        "common/Chart.yaml": named("common"),
        "common/templates/_p.tpl": PLACE,
    },
    "the label is in the values of another that uses the same": {
        "app/Chart.yaml": named("app", "common"),
        "app/templates/d.yaml": pod(spec=MADE_SELECTOR),
        "common/Chart.yaml": named("common"),
        "other/Chart.yaml": named("other", "common"),
        "other/values.yaml": LABELLED,
    },
    "a device of the node": {
        "templates/d.yaml": pod(spec=driver("/dev/nvidia{{ .Values.n }}")),
    },
    "the driver is for a person, and nothing of it is made": {
        "templates/d.yaml": pod(spec=driver("/usr/lib/nvidia-current")).replace(
            "image: x", "image: {{ .Values.image }}"
        ),
    },
    "an annotation that no rule takes over": {
        "templates/d.yaml": pod(annotations="scheduler.alpha.kubernetes.io/nvidiaGPU: '{{ x }}'"),
    },
    "a pod that is left alone": {
        "templates/d.yaml": pod(spec=MADE_SELECTOR),
        "templates/e.yaml": pod(spec=f"nodeSelector: {{{LABEL}: '{{{{ .Values.m }}}}'}}").replace(
            "labels: {app: d}", 'labels: {app: d, gpu-webhook.dev/ignore: "true"}'
        ),
    },
}


@pytest.mark.parametrize("files", DONE.values(), ids=DONE)
def test_amounts_are_renamed_as_before_where(files: dict[str, str], tmp_path: Path) -> None:
    for name, file in written(tmp_path, files).items():
        if name.endswith("templates/d.yaml"):
            new = asked_of(file).new_text
            assert new is not None
            assert f"{OLD}:" not in new


def test_what_is_no_part_of_the_pod_is_written_behind_a_condition_while_its_amounts_wait() -> None:
    volumes = "volumes:\n- name: data\n  emptyDir: {}\n{{ if .Values.gpu }}\n"
    volumes += driver("/usr/lib/nvidia-{{ .Values.v }}").removeprefix("volumes:\n") + "{{ end }}"
    old = pod(spec=volumes).replace("apps/v1", "extensions/v1beta1")
    old = old.replace("  selector: {matchLabels: {app: d}}\n", "")
    result = migrate_text(Source.of_text("templates/d.yaml", old), Plan())
    assert_amounts_wait(result)
    new = result.new_text or ""
    assert "apiVersion: apps/v1\n" in new
    assert new.index("{{ end }}") < new.index("  selector:\n    matchLabels:")
    assert new.index("{{ end }}") < new.index("  strategy:\n    rollingUpdate:")
