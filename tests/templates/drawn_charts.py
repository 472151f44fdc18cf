"""Draws Helm templates of legacy workloads: a number in, a template out, the same for each number.

Actions stand where charts have them: in names of members, in values, as whole blocks, in comments,
in loops and conditions, in named templates. With each of VALUES, what Helm renders is valid.
"""

from __future__ import annotations

import random
import re
from textwrap import indent
from typing import Any

from tests.templates.made_annotations import AFFINITY, CRITICAL, JSON, NEW, OLD, TOLERATIONS

HELPERS = f"""\
{{{{- define "aff" -}}}}{JSON[AFFINITY]}{{{{- end -}}}}
{{{{- define "tol" -}}}}{JSON[TOLERATIONS]}{{{{- end -}}}}
{{{{- define "labels" -}}}}
team: {{{{ .Values.team | quote }}}}
tier: backend
{{{{- end -}}}}
{{{{- define "name" -}}}}{{{{ .Values.team }}}}{{{{- end -}}}}
{{{{- define "gpus" -}}}}{OLD}: {{{{ .Values.gpus }}}}{{{{- end -}}}}
{{{{- define "modern" -}}}}{NEW}: {{{{ .Values.gpus }}}}{{{{- end -}}}}
"""
_VALUES: dict[str, Any] = {
    "team": "ml",
    "yes": True,
    "no": False,
    "gpus": 1,
    "replicas": 1,
    "image": "registry.example/a:1",
    "key": "example.com/key",
    "zone": "a",
    "labels": {"one": "a"},
    "annotations": {"example.com/note": "b"},
    "nodes": {"disk": "ssd"},
    "tolerations": [],
    "affinity": {},
    "resources": {"limits": {"cpu": "1"}},
    "workers": ["first"],
    "env": [{"name": "MODE", "value": "train"}],
    "driver": "/opt/driver",
    "surge": 1,
    "json": JSON[TOLERATIONS],
}
VALUES: dict[str, dict[str, Any]] = {
    "default": _VALUES,
    "the other branches": {**_VALUES, "yes": False, "no": True, "gpus": 2, "workers": []},
    "nothing": {
        **_VALUES,
        "nodes": {},
        "resources": {},
        "workers": [],
        "gpus": 0,
        "affinity": {},
        "tolerations": [],
    },
    "much": {
        **_VALUES,
        "gpus": 4,
        "replicas": 3,
        "zone": "b",
        "workers": ["first", "second"],
        "surge": "50%",
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
                ]
            }
        },
        "labels": {"one": "a", "two": "b"},
    },
}

# `<<...>>` on a line is an action that writes lines; `_lines` chooses how it is written.
_ELSE, _END = "{{- else }}", "{{- end }}"
_TOLERATION_TEXT, _AFFINITY_TEXT = JSON[TOLERATIONS], JSON[AFFINITY]
_ANNOTATIONS = (
    "<<toYaml .Values.annotations>>",
    "{{- range $k, $v := .Values.annotations }}\n{{ $k }}: {{ $v | quote }}\n{{- end }}",
    "{{ .Values.key }}: {{ .Values.team | quote }}",
    "{{- with .Values.annotations }}\n<<toYaml .>>\n{{- end }}",
    "# what the scheduler reads: {{ .Values.team }}",
    "{{- /* nothing */}}",
    f"{CRITICAL}: ''",
    f"{TOLERATIONS}: '{_TOLERATION_TEXT}'",
    f"{TOLERATIONS}: |\n  {_TOLERATION_TEXT}",
    f'{TOLERATIONS}: >-\n  <<include "tol" .>>',
    f"{TOLERATIONS}: {{{{ .Values.json | quote }}}}",
    f"{{{{- if .Values.yes }}}}\n{TOLERATIONS}: '{_TOLERATION_TEXT}'\n{{{{- end }}}}",
    f"{AFFINITY}: '{_AFFINITY_TEXT}'",
    f'{AFFINITY}: >\n     {{{{ tuple . "nova" | include "aff" }}}}',
    f'{AFFINITY}: |\n  <<include "aff" .>>',
    f'{AFFINITY}: {{{{ include "aff" . | quote }}}}',
    f'{AFFINITY}:\n  <<include "aff" . | quote>>',
    f"{AFFINITY}: '{_AFFINITY_TEXT}'".replace('"a"', '"{{ .Values.zone }}"'),
    f'{{{{- if .Values.yes }}}}\n{AFFINITY}: >\n  <<include "aff" .>>\n{{{{- end }}}}',
    f"{{{{- if .Values.yes }}}}\n{AFFINITY}: '{_AFFINITY_TEXT}'\n{_ELSE}\nx: 'y'\n{_END}",
)
_SPEC = (
    "tolerations:\n  <<toYaml .Values.tolerations>>",
    "{{- with .Values.tolerations }}\ntolerations:\n<<toYaml .>>\n{{- end }}",
    f"tolerations:\n- key: {NEW}\n  operator: Exists",
    "{{- if .Values.no }}\ntolerations:\n- key: dedicated\n  operator: Exists\n{{- end }}",
    "affinity:\n  <<toYaml .Values.affinity>>",
    "{{- with .Values.affinity }}\naffinity:\n  <<toYaml .>>\n{{- end }}",
    "nodeSelector:\n  <<toYaml .Values.nodes>>",
    "nodeSelector:\n  {{- range $k, $v := .Values.nodes }}\n  {{ $k }}: {{ $v }}\n  {{- end }}",
    "nodeSelector:\n  disk: {{ .Values.zone }}",
    "nodeSelector:\n  alpha.kubernetes.io/nvidia-gpu-name: Tesla-K80",
    "# {{ .Values.team }}: see the wiki",
    "{{- if .Values.yes }}\nhostNetwork: true\n{{- end }}",
    'schedulerName: {{ .Values.scheduler | default "default-scheduler" }}',
)
_RESOURCES = (
    f"limits:\n  {OLD}: 1",
    f"limits:\n  {OLD}: {{{{ .Values.gpus }}}}",
    f"limits:\n  {OLD}: {{{{ .Values.gpus | quote }}}}\n  cpu: 1",
    f'limits:\n  {OLD}: "{{{{ .Values.gpus }}}}"',
    f"requests:\n  {OLD}: {{{{ .Values.gpus }}}}\nlimits:\n  {OLD}: {{{{ .Values.gpus }}}}",
    f"requests:\n  cpu: 100m\n  {OLD}: 1",
    f"limits:\n  {{{{- if .Values.yes }}}}\n  {OLD}: {{{{ .Values.gpus }}}}\n  {_END}\n  cpu: 1",
    f"limits:\n{{{{- if .Values.yes }}}}\n  {OLD}: 1\n{{{{- else }}}}\n  {NEW}: 1\n{{{{- end }}}}",
    f"{{{{- if gt (int .Values.gpus) 0 }}}}\nlimits:\n  {OLD}: {{{{ .Values.gpus }}}}\n{_END}",
    'limits:\n  <<include "gpus" .>>',
    'limits:\n  <<include "modern" .>>',
    f"limits:\n  {{{{ .Values.key }}}}: 1\n  {OLD}: 1",
    f"limits: {{{OLD}: {{{{ .Values.gpus }}}}}}",
    f"limits:\n  # {{{{ .Values.team }}}} needs it\n  {OLD}: 2  # of {{{{ .Values.team }}}}",
    "<<toYaml .Values.resources>>",
)
_DRIVER = "- name: driver\n  hostPath:\n    path: /usr/lib/nvidia-375\n"
_MOUNT = "- name: driver\n  mountPath: /usr/local/driver\n"
_VOLUMES = (
    ("", ""),
    ("", ""),
    (_DRIVER, _MOUNT),
    (_DRIVER.replace("/usr/lib/nvidia-375", "{{ .Values.driver }}"), _MOUNT),
    (
        f"{{{{- if .Values.yes }}}}\n{_DRIVER}{{{{- end }}}}\n",
        f"{{{{- if .Values.yes }}}}\n{_MOUNT}{{{{- end }}}}\n",
    ),
    (f"{_DRIVER}- name: {{{{ .Values.team }}}}\n  emptyDir: {{}}\n", _MOUNT),
)
_LABELS = (
    "app: x",
    'app: x\n<<include "labels" .>>',
    "app: x\n{{- range $k, $v := .Values.labels }}\n{{ $k }}: {{ $v | quote }}\n{{- end }}",
    'app: {{ template "name" . }}',
    "app: {{ .Values.team | quote }}\nrelease: {{ .Release.Name }}",
)
_KINDS = (
    ("Deployment", "extensions/v1beta1"),
    ("Deployment", "apps/v1beta1"),
    ("Deployment", "apps/v1"),
    ("DaemonSet", "extensions/v1beta1"),
    ("StatefulSet", "apps/v1beta1"),
    ("Job", "batch/v1"),
    ("Pod", "v1"),
)

_OPENSTACK = """\
apiVersion: {version}
kind: Deployment
metadata:
  name: {name}
  labels:
    system: openstack
    type: backend
spec:
  replicas: {{{{ .Values.replicas }}}}
  revisionHistoryLimit: {{{{ .Values.replicas }}}}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: {{{{ .Values.surge }}}}
      maxSurge: {{{{ .Values.surge }}}}
  selector:
    matchLabels:
      name: {name}
  template:
    metadata:
      labels:
        name: {name}
{{{{ include "labels" . | indent 8 }}}}
      annotations:
{annotations}
    spec:
      containers:
      - name: {name}
        image: {{{{ .Values.image }}}}
"""
_MADE = f"""\
        {AFFINITY}: >
            {{{{ tuple . "nova" "api" | include "aff" }}}}
"""
_LEFT = f"""\
        {AFFINITY}: |
{{{{ tuple . "manila" | include "aff" | indent 10 }}}}
"""
_HASH = '        configmap-etc-hash: {{ include "name" . | sha256sum }}\n'
_HOSTNAME = '        pod.beta.kubernetes.io/hostname: {{ template "name" . }}\n'
_OLD = '{{- if lt .Capabilities.KubeVersion.Minor "5" }}\n'  # compares texts: "36" is less
_IF_OLD = f"{_OLD}{_MADE}{{{{- end }}}}\n"
# Nine published charts of 2017 have these shapes: an older version of `migrate` broke all of them.
OPENSTACK = {
    name: _OPENSTACK.format(version=version, name=name, annotations=annotations.rstrip("\n"))
    for name, version, annotations in (
        ("nova-api", "extensions/v1beta1", _MADE + _HASH),
        ("nova-conductor", "extensions/v1beta1", _HOSTNAME + _HASH + _IF_OLD),
        ("nova-placement", "extensions/v1beta1", _HASH + _MADE),
        ("nova-scheduler", "apps/v1beta1", _HOSTNAME + _MADE),
        ("cinder-api", "extensions/v1beta1", _IF_OLD + _HASH),
        ("cinder-scheduler", "apps/v1", _MADE.replace(">", "|") + _HASH),
        ("manila-api", "extensions/v1beta1", _LEFT + _HASH),
        ("neutron-server", "extensions/v1beta1", _HASH + _IF_OLD + _HOSTNAME),
        ("pgbouncer", "apps/v1", _IF_OLD + _HASH),
    )
}


def drawn(number: int, name: str) -> str:
    """The template with this number, of an object with this name."""
    draw = random.Random(number)  # noqa: S311
    kind, version = draw.choice(_KINDS)
    labels = draw.choice(_LABELS)
    pod = _pod(draw, labels, kind)
    text = pod if kind == "Pod" else _workload(draw, kind, version, labels, pod)
    head = f"apiVersion: {version}\nkind: {kind}\n"
    text = head + text.replace("metadata:\n", f"metadata:\n  name: {name}\n", 1)
    text = _with_lines(text, draw)
    if draw.random() < 0.2:
        text = f"{{{{- if .Values.team }}}}\n{text}{{{{- end }}}}\n"
    return text


def _workload(draw: random.Random, kind: str, version: str, labels: str, pod: str) -> str:
    lines = ["metadata:", "  namespace: {{ .Release.Namespace }}", "spec:"]
    if kind in {"Deployment", "StatefulSet"}:
        lines.append("  replicas: {{ .Values.replicas }}")
    if kind == "StatefulSet":
        lines.append("  serviceName: {{ .Values.team }}")
    is_selected = version == "apps/v1" or (kind != "Job" and draw.random() < 0.4)
    if is_selected:
        first = labels.split("\n", 1)[0]
        lines += ["  selector:", "    matchLabels:", f"      {first}"]
    if kind == "Deployment" and draw.random() < 0.3:
        lines += ["  strategy:", "    rollingUpdate:", "      maxSurge: {{ .Values.surge }}"]
    return "\n".join(lines) + "\n  template:\n" + indent(pod, "    ")


def _pod(draw: random.Random, labels: str, kind: str) -> str:
    notes = _some(draw, _ANNOTATIONS, 3)
    spec = _some(draw, _SPEC, 3)
    volumes, mounts = draw.choice(_VOLUMES)
    metadata = "labels:\n" + indent(labels, "  ")
    if notes:
        metadata += "\nannotations:\n" + indent("\n".join(["kept: 'yes'", *notes]), "  ")
    parts = [*spec]
    if kind in {"Job", "Pod"}:
        parts.append("restartPolicy: Never")
    container = _container(draw, mounts)
    parts.insert(draw.randrange(len(parts) + 1), "containers:\n" + container)
    if volumes:
        parts.insert(draw.randrange(len(parts) + 1), "volumes:\n" + volumes.rstrip("\n"))
    text = "metadata:\n" + indent(metadata, "  ") + "\nspec:\n" + indent("\n".join(parts), "  ")
    return text + "\n"


def _container(draw: random.Random, mounts: str) -> str:
    resources = draw.choice(_RESOURCES)
    lines = ["- name: main", "  image: {{ .Values.image }}"]
    lines += ["  resources:", indent(resources, "    ")]
    if mounts:
        lines += ["  volumeMounts:", indent(mounts.rstrip("\n"), "  ")]
    if draw.random() < 0.3:
        lines += ["  env:", "  <<toYaml .Values.env>>"]
    text = "\n".join(lines)
    if draw.random() < 0.3:
        each = text.replace("- name: main", "- name: worker-{{ . }}", 1)
        each = re.sub(r"(?<=[ (])\.(?=Values|Release)", "$.", each).replace('" .', '" $')
        text += "\n{{- range .Values.workers }}\n" + each + "\n{{- end }}"
    return text


def _some(draw: random.Random, choices: tuple[str, ...], most: int) -> list[str]:
    """Some of them; no member twice, and no field that is in one of them already."""
    found: list[str] = []
    for each in draw.sample(choices, draw.randint(0, most)):
        names = [name for name in (*_FIELDS, AFFINITY, TOLERATIONS, ".annotations") if name in each]
        if not any(name in other for name in names for other in found):
            found.append(each)
    return found


_FIELDS = ("tolerations:", "affinity:", "nodeSelector:")


def _with_lines(text: str, draw: random.Random) -> str:
    """The text with actions that write lines into the columns of their marks."""
    ways = (
        lambda said, n: f"{{{{ {said} | indent {n} }}}}",
        lambda said, n: f"{'':{n}}{{{{- {said} | nindent {n} }}}}",
        lambda said, n: f"{'':{n}}{{{{ {said} | indent {n} | trim }}}}",
    )
    return _LINES.sub(lambda found: draw.choice(ways)(found[2], len(found[1])), text)


_LINES = re.compile(r"^( *)<<(.*)>>$", re.MULTILINE)
