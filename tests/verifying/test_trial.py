"""A template is edited only if that is right whatever its actions produce."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.templates.drawn_charts import drawn
from tests.templates.made_annotations import AFFINITY, HELM, NEW, OLD, TOLERATIONS, chart
from webhook.cli import file_command
from webhook.cli.main import main
from webhook.cli.workers import Judged, judge
from webhook.files.results import FileResult, Plan
from webhook.files.source import Source
from webhook.formats import legacy_pods
from webhook.formats.migrate import migrate_text
from webhook.kube.pod import as_map
from webhook.templates import actions
from webhook.templates.filling import Form
from webhook.verifying import trial, unread_places

if TYPE_CHECKING:
    from pathlib import Path

JSON = '[{"key":"a","operator":"Exists"}]'


def deployment(*, annotations: str = "", resources: str = "", pod: str = "", top: str = "") -> str:
    """A Deployment of today; each part has its own indent."""
    limits = f"        resources:\n          limits:\n{resources}" if resources else ""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{{{ .Release.Name }}}}
spec:
  replicas: {{{{ .Values.replicas }}}}
{top}  selector:
    matchLabels: {{app: x}}
  template:
    metadata:
      labels: {{app: x}}
{annotations}    spec:
      containers:
      - name: main
        image: {{{{ .Values.image }}}}
{limits}{pod}"""


GPUS = f"            {OLD}: {{{{ .Values.gpus }}}}\n"
OPTIONAL = f"{{{{- if .Values.gpu }}}}\n{GPUS}{{{{- end }}}}\n            cpu: 1\n"
CURRENT = GPUS.replace(OLD, NEW)
OF_NODES = f"      - key: {NEW}\n        operator: Exists\n        effect: NoSchedule\n"
TOLERATION = f"      tolerations:\n{OF_NODES}"
MOVED = "      tolerations:\n      - key: a\n        operator: Exists\n"
NOTED = f"      annotations:\n        {TOLERATIONS}: '{JSON}'\n"
MADE = f"""\
      annotations:
        {AFFINITY}: >
          {{{{ tuple . "nova" "api" | include "anti_affinity" }}}}
        other: kept
"""
MORE = "{{- toYaml .Values.more | nindent 6 }}"
WITH = """\
      {{- with .Values.tolerations }}
      tolerations:
{{ toYaml . | indent 6 }}
      {{- end }}
"""

VOLUME = """\
        volumeMounts: [{{name: d, mountPath: /d}}]
      volumes:
      - name: d
        hostPath:
          path: {}
"""
HELPER = f"""\
{{{{- define "gpus" -}}}}
limits:
  {OLD}: {{{{ .Values.gpus }}}}
{{{{- end -}}}}
"""

RIGHT = {
    "the name of an amount, and a toleration of GPU nodes": (
        deployment(resources=GPUS),
        deployment(resources=CURRENT, pod=TOLERATION),
    ),
    "an annotation that is moved to the spec": (
        deployment(annotations=NOTED, resources=GPUS),
        deployment(resources=CURRENT, pod=MOVED + OF_NODES),
    ),
    "a toleration of GPU nodes in a pod that may request none": (
        deployment(resources=OPTIONAL),
        deployment(resources=OPTIONAL.replace(OLD, NEW), pod=TOLERATION),
    ),
    "an amount of 0 that is none": (
        deployment(resources=f"            {OLD}: 0\n            cpu: 1\n"),
        deployment(resources="            cpu: 1\n"),
    ),
    "an amount beside a path that an action continues": (
        deployment(resources=GPUS, pod=VOLUME.format("/data/{{ .Values.name }}")),
        deployment(resources=CURRENT, pod=VOLUME.format("/data/{{ .Values.name }}") + TOLERATION),
    ),
    "an amount beside a path that an action makes": (
        deployment(resources=GPUS, pod=VOLUME.format("{{ .Values.path }}")),
        deployment(resources=CURRENT, pod=VOLUME.format("{{ .Values.path }}") + TOLERATION),
    ),
    "an amount in a helper": (HELPER, HELPER.replace(OLD, NEW)),
    "a comment": (deployment(resources=GPUS), deployment(resources=GPUS) + "# a comment\n"),
}
WRONG = {
    "an annotation of which only the key goes": (
        deployment(annotations=MADE, resources=GPUS),
        deployment(annotations=MADE.replace(f"        {AFFINITY}: >\n", ""), resources=GPUS),
        "produces",
    ),
    "an annotation of which only the lines go": (
        deployment(annotations=MADE),
        deployment(annotations="      annotations:\n        other: kept\n"),
        "produces",
    ),
    "an annotation that is lost": (
        deployment(annotations=NOTED, resources=GPUS),
        deployment(resources=CURRENT),
        "",
    ),
    "the name of an amount, without the toleration of GPU nodes": (
        deployment(resources=GPUS),
        deployment(resources=CURRENT),
        "",
    ),
    "a toleration of GPU nodes only in another branch": (
        deployment(resources=GPUS),
        deployment(
            resources=CURRENT,
            pod=f"      {{{{- if .Values.no }}}}\n{TOLERATION}      {{{{- end }}}}\n",
        ),
        "another branch",
    ),
    "another amount": (
        deployment(resources=GPUS),
        deployment(resources=CURRENT.replace("{{ .Values.gpus }}", "1")),
        "",
    ),
    "the amount of a pod whose path may be that of a driver": (
        deployment(resources=GPUS, pod=VOLUME.format("/usr/lib/{{ .Values.driver }}")),
        deployment(
            resources=CURRENT, pod=VOLUME.format("/usr/lib/{{ .Values.driver }}") + TOLERATION
        ),
        "{{ .Values.driver }} produces nvidia-375, which makes it the path of a driver",
    ),
    "the same where the folder is an action": (
        deployment(resources=GPUS, pod=VOLUME.format("{{ .Values.root }}/nvidia-375")),
        deployment(
            resources=CURRENT, pod=VOLUME.format("{{ .Values.root }}/nvidia-375") + TOLERATION
        ),
        "{{ .Values.root }} produces /usr/lib, which makes it the path of a driver",
    ),
    "a field that the template writes, too": (
        deployment(annotations=NOTED, resources=GPUS, pod=WITH),
        deployment(resources=CURRENT, pod=MOVED + WITH),
        "another branch",
    ),
    "a field that an action may write, too": (
        deployment(annotations=NOTED).replace("containers:", f"{MORE}\n      containers:"),
        deployment(pod=MOVED).replace("containers:", f"{MORE}\n      containers:"),
        "produces a member tolerations",
    ),
    "a list that an action may continue": (
        deployment(annotations=NOTED, pod=f"      {MORE}\n"),
        deployment(pod=f"{MOVED}      {MORE}\n"),
        "produces items of a list",
    ),
    "an amount in one of two branches": (
        deployment(resources=OPTIONAL),
        deployment(resources="            cpu: 1\n"),
        "",
    ),
    "a default of an old version that a value may leave out": (
        deployment(
            top="  strategy:\n    rollingUpdate:\n      maxSurge: {{ .Values.surge }}\n"
        ).replace("apps/v1", "extensions/v1beta1"),
        deployment(top="  strategy:\n    rollingUpdate:\n      maxSurge: {{ .Values.surge }}\n"),
        "",
    ),
}


def why(old: str, new: str, kind: str = "helm") -> str:
    return why_of(FileResult("x.yaml", kind, old, new))


def why_of(made: FileResult) -> str:
    """With which stand-ins the new text is wrong; empty if with none."""
    return trial._why_wrong(made, trial._Webhook.of(made, Plan()))


@pytest.mark.parametrize(("old", "new"), RIGHT.values(), ids=RIGHT)
def test_a_right_edit_is_kept(old: str, new: str) -> None:
    assert why(old, new) == ""


@pytest.mark.parametrize(("old", "new", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_edit_is_held_back(old: str, new: str, said: str) -> None:
    found = why(old, new)
    assert found
    assert said in found


@pytest.mark.parametrize("made", HELM.values(), ids=HELM)
def test_an_annotation_that_the_template_makes_is_not_removed(made: str) -> None:
    """What an older version of this program called fixed: only the line of the key goes."""
    text = chart(made, AFFINITY, "first")
    lines = text.splitlines(keepends=True)
    without = "".join(line for line in lines if AFFINITY not in line)
    assert without != text
    assert why(text, without)


def test_a_file_without_actions_is_no_template() -> None:
    for made in (FileResult("x", "yaml", "a: 1\n", "b: 1\n"), FileResult("x", "helm", "a: 1\n")):
        assert trial.tried(made, Plan(), never) is made


def never(_plan: Plan) -> FileResult:
    raise AssertionError


JINJA = """\
apiVersion: v1
kind: Pod
metadata:
  name: {{ name }}
spec:
  containers:
  - name: c
    image: i
    resources:
      limits:
        {% if gpus %}
        OLD: {{ gpus }}
        {% else %}
        cpu: 1
        {% endif %}
"""


def test_a_template_of_jinja() -> None:
    old = JINJA.replace("OLD", OLD)
    new = JINJA.replace("OLD", NEW) + TOLERATION.replace("      ", "  ")
    assert why(old, new, "jinja") == ""
    assert why(old, new.replace("{{ gpus }}", "2"), "jinja")


FILLED = {
    "blanks that an action trims": ("a: 1\n  {{- if .x }}\nb: 2\n  {{- end }}\n", "a: 1\nb: 2\n"),
    "the other branch": ("{{ if not .x }}a{{\n else }}b\n{{ end }}", "b\n"),
    "a block of Jinja makes no line": ("a:\n  {% if x %}\n  b: 1\n  {% endif %}\n", "a:\n  b: 1\n"),
    "a comment": ("a: 1 {{/* no */ -}}  \n", "a: 1 "),
    "two turns of a loop": ("{{ range .x }}\n- {{ . }}\n{{- end }}\n", "\n- w\n- w\n"),
    "a loop in a loop": (
        "{{ range .x -}}\n{{ range .y -}}\n- {{ . }}\n{{ end }}{{ end }}",
        "- w\n- w\n" * 2,
    ),
}


@pytest.mark.parametrize(("text", "wanted"), FILLED.values(), ids=FILLED)
def test_what_is_filled_in(text: str, wanted: str) -> None:
    form = Form(actions.read(text))
    turns = {each: 2 if each[1] is not None else 1 for each in form.conditions.values()}
    assert form.filled(turns, lambda _raw, _start: "w") == wanted


SURGE = deployment(
    annotations=NOTED, top="  strategy:\n    rollingUpdate:\n      maxSurge: {{ .Values.surge }}\n"
).replace("apps/v1", "extensions/v1beta1")


def test_the_command_holds_only_the_edits_that_are_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty value was 1 in extensions/v1beta1, and is 25% in apps/v1."""
    file = tmp_path / "templates" / "x.yaml"
    file.parent.mkdir()
    file.write_text(SURGE)
    assert main(["migrate", "--write", str(file)]) == 3
    said = capsys.readouterr().out
    assert "it is wrong if {{ .Values.surge }} produces nothing" in said
    text = file.read_text()
    assert "extensions/v1beta1" in text
    assert TOLERATIONS not in text


SURGES = {
    "{{ .Values.surge | default 1 }}": False,
    "{{ .Values.surge | default 1 | quote }}": False,
    '{{ default "25%" .Values.surge | quote }}': False,
    '{{ required "write surge" .Values.surge }}': False,
    "{{ .Values.surge }}": True,
    "{{ .Values.surge | quote }}": True,  # nothing without a value
    "{{ .Values.surge | toJson }}": True,  # null without a value
    "{{ default .Values.a .Values.surge | quote }}": True,
}


@pytest.mark.parametrize(("surge", "is_held"), SURGES.items(), ids=SURGES)
def test_an_action_that_always_writes_something_holds_nothing(surge: str, is_held: object) -> None:
    old = SURGE.replace("{{ .Values.surge }}", surge)
    new = migrate_text(Source.of_text("templates/x.yaml", old), Plan()).new_text
    assert new is not None
    assert "apps/v1" in new
    assert (f"if {surge} produces nothing" in why(old, new)) == is_held


NEVER_VALID = """\
apiVersion: v1
kind: Pod
metadata: {name: a, name: b}
spec:
  containers: [{name: {{ .Values.name }}, resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}}]
"""


def test_a_text_that_is_never_valid_proves_nothing() -> None:
    assert why(NEVER_VALID, NEVER_VALID.replace(OLD, NEW)) == ""


WITHOUT_POD = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: x}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      {% if host %}
  hostNetwork: true
  {% endif %}
  containers:
      - name: c
        resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}
"""


def test_a_branch_without_a_pod_changes_no_other_file() -> None:
    """The trial took tolerations out of the empty map that stands for each missing one."""
    before = migrate_text(Source.of_text("a.yaml", drawn(0, "x")), Plan())
    made = FileResult("x.yaml.j2", "jinja", WITHOUT_POD, WITHOUT_POD.replace("name: x", "name: y"))
    assert why_of(made)
    assert not as_map(None)
    assert migrate_text(Source.of_text("a.yaml", drawn(0, "x")), Plan()) == before


@pytest.mark.parametrize("number", range(4))
def test_what_has_no_effect_changes_no_verdict(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Actions in places that no repair reads are not varied: with them the result is the same."""
    source = Source.of_text("templates/x.yaml", drawn(number, "x"))
    result = migrate_text(source, Plan())
    tried = trial.tried(result, Plan(), partial(migrate_text, source))
    monkeypatch.setattr(unread_places, "without_effect", lambda _stream: defaultdict(Counter))
    assert trial.tried(result, Plan(), partial(migrate_text, source)) == tried


EFFECTS = {
    "an image": ("image: {{ .x }}", True),
    "an argument": ('args: \n    - "--a={{ .x }}"', True),
    "an image with a part": ("image: a:{{ .x }}", True),
    "a name of a variable": ("env:\n    - name: {{ .x }}", True),
    "a part of a value that may become a known path": (
        "env:\n    - name: a\n      value: /usr/lib/{{ .x }}",
        False,
    ),
    "a volume": ("image: a\n  volumes:\n  - hostPath:\n      path: '{{ .x }}'", True),
    "a volume in braces": ("image: a\n  volumes:\n  - {hostPath: {path: {{ .x }}}}", False),
    "a branch": (
        "{{- if .y }}\n    image: a\n    {{- else }}\n    image: {{ .x }}\n    {{- end }}",
        True,
    ),
    "a key": ("{{ .x }}: a", False),
    "an image twice, once in a path of a volume": (
        "image: {{ .x }}\n  volumes:\n  - {hostPath: {path: {{ .x }}}}",
        False,
    ),
    "a map in braces": ("securityContext: {privileged: {{ .x }}}", True),
    "lines of a command": ("args: |\n      {{ .x }}", False),
    "lines that are indented": ("image: {{ .x | nindent 6 }}", False),
    "an anchor": ("image: &x {{ .x }}\n    workingDir: *x", False),
}


@pytest.mark.parametrize(("lines", "has_none"), EFFECTS.values(), ids=EFFECTS)
def test_which_actions_have_no_effect(
    lines: str, has_none: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  containers:
  - name: a
    resources: {{limits: {{{OLD}: 1}}}}
    {lines}
"""
    said: list[str] = []
    alone = trial._Trial._alone

    def noted(self: Any, places: Any, left_out: set[str]) -> Any:
        said.extend(left_out)
        return alone(self, places, left_out)

    monkeypatch.setattr(trial._Trial, "_alone", noted)
    assert why(pod, pod.replace(OLD, NEW) + TOLERATION.replace("      ", "  ")) == ""
    assert bool(said) == has_none


def as_before(made: FileResult, _plan: Plan) -> FileResult:
    return made


def test_amounts_of_a_chart_are_held_together(tmp_path: Path) -> None:
    """Amounts of one file that are wrong with a stand-in hold those of all files of the chart."""
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 1.0.0\n")
    files = {name: tmp_path / "templates" / f"{name}.yaml" for name in ("a", "b")}
    files["a"].parent.mkdir()
    files["a"].write_text(deployment(resources=GPUS))
    label = f"      nodeSelector:\n        {OLD}-name: Tesla-K80\n"
    files["b"].write_text(deployment(resources=GPUS, pod=label))
    good, other = (judge(str(each), Plan()) for each in files.values())
    made = replace(good.result, new_text=deployment(resources=GPUS.replace(OLD, "example.com/gpu")))
    tried = trial.tried(made, Plan(), partial(as_before, made))
    reason = legacy_pods.left_of(made, tried)
    assert reason.startswith(f"GPU101 needs manual work in {files['a']} (line 18) and may be")

    asked: Any = SimpleNamespace(
        paths=[str(tmp_path)], filename=[], kustomize=[], exclude=[], output_file=[], no_recursive=0
    )
    found = [Judged(tried, good.source, reason), other]
    held = [each.result.new_text for each in file_command.together(asked, found, Plan())]

    assert NEW in str(other.result.new_text)
    assert held == [None, files["b"].read_text().replace(f"{OLD}-name", "nvidia.com/gpu.product")]
