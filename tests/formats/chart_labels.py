"""Charts by the way in which their selectors and labels are written, as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cluster import helm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_HEAD = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
  labels:
    {{- include "x.labels" . | nindent 4 }}
spec:
  replicas: 1
"""
_POD = """\
    spec:
      containers:
      - name: main
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        resources:
          limits:
            nvidia.com/gpu: {{ .Values.gpus }}
"""

# Named templates as `helm create`, Bitnami and ingress-nginx have them, and values for all.
HELPERS = """\
{{- define "x.name" -}}{{ .Chart.Name }}{{- end }}
{{- define "x.selectorLabels" -}}
app.kubernetes.io/name: {{ include "x.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "x.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{ include "x.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "x.selector" -}}
matchLabels:
  {{- include "x.selectorLabels" . | nindent 2 }}
{{- end }}
{{- define "x.metadata" -}}
labels:
  {{- include "x.labels" . | nindent 2 }}
{{- end }}
{{- define "common.labels.matchLabels" -}}
{{ include "x.selectorLabels" .context }}
{{- end }}
{{- define "common.labels.standard" -}}
{{ include "x.labels" .context }}
{{- end }}
"""
VALUES: dict[str, Any] = {
    "image": {"repository": "registry.example/x", "tag": "1"},
    "gpus": 1,
    "name": "serving",
    "key": "a",
    "prefix": "example.com",
    "number": "7",
    "major": "1",
    "minor": "2",
    "yes": True,
    "labels": {"team": "ml"},
    "podLabels": {"tier": "gpu"},
    "selector": {"matchLabels": {"app": "x"}},
}

_SELECTOR = '      {{- include "x.selectorLabels" . | nindent 6 }}\n'
_LABELS = '        {{- include "x.labels" . | nindent 8 }}\n'
_MATCH = "    matchLabels:\n"

# What stands below `selector:`, and below `labels:` of the template.
_WAYS = {
    "helm create": (
        _MATCH + _SELECTOR,
        _LABELS
        + "        {{- with .Values.podLabels }}\n        {{- toYaml . | nindent 8 }}\n"
        + "        {{- end }}\n",
    ),
    "Bitnami": (
        (
            '    matchLabels: {{- include "common.labels.matchLabels" '
            '( dict "customLabels" .Values.podLabels "context" $ ) | nindent 6 }}\n'
        ),
        (
            '        {{- include "common.labels.standard" '
            '( dict "customLabels" .Values.podLabels "context" $ ) | nindent 8 }}\n'
            "        app.kubernetes.io/component: master\n"
        ),
    ),
    "Bitnami with a component in both": (
        (
            '    matchLabels: {{- include "common.labels.matchLabels" ( dict "context" $ ) '
            "| nindent 6 }}\n      app.kubernetes.io/component: master\n"
        ),
        (
            '        {{- include "common.labels.standard" ( dict "context" $ ) | nindent 8 }}\n'
            "        app.kubernetes.io/component: master\n"
        ),
    ),
    "ingress-nginx": (
        _MATCH + _SELECTOR + "      app.kubernetes.io/component: controller\n",
        _LABELS + "        app.kubernetes.io/component: controller\n"
        "        {{- with .Values.podLabels }}\n        {{- toYaml . | nindent 8 }}\n"
        "        {{- end }}\n",
    ),
    "a selector in sight, labels by an include": (
        _MATCH + "      app.kubernetes.io/name: x\n",
        _LABELS,
    ),
    "an include at the left": (
        _MATCH + '{{ include "x.selectorLabels" . | indent 6 }}\n',
        '{{ include "x.labels" . | indent 8 }}\n',
    ),
    "in quotes and without": (
        _MATCH + '      app: "{{ .Values.name }}"\n',
        "        app: {{ .Values.name }}\n",
    ),
    "by a filter and without": (
        _MATCH + "      app: {{ .Values.name | quote }}\n",
        "        app: {{ .Values.name }}\n",
    ),
    "by a function and in quotes": (
        _MATCH + "      app: {{ quote .Values.name }}\n",
        '        app: "{{ .Values.name }}"\n',
    ),
    "in quotes of both kinds": (
        _MATCH + "      app: {{ .Values.name | squote }}\n",
        "        app: '{{ .Values.name }}'\n",
    ),
    "template and include": (
        _MATCH + '      app: {{ template "x.name" . }}\n',
        '        app: {{ include "x.name" . }}\n',
    ),
    "two actions, in quotes and without": (
        _MATCH + "      app: {{ .Release.Name }}-{{ .Values.name }}\n",
        '        app: "{{ .Release.Name }}-{{ .Values.name }}"\n',
    ),
    "an action in a text, and printf": (
        _MATCH + "      app: {{ .Release.Name }}-master\n",
        '        app: {{ printf "%s-master" .Release.Name }}\n',
    ),
    "with other blanks": (
        _MATCH + "      app: {{.Values.name}}\n",
        "        app: {{ .Values.name }}\n",
    ),
    "toYaml": (
        _MATCH + "      {{- toYaml .Values.labels | nindent 6 }}\n",
        "        {{- toYaml .Values.labels | nindent 8 }}\n",
    ),
    "toYaml behind the key": (
        "    matchLabels: {{ toYaml .Values.labels | nindent 6 }}\n",
        "        {{ toYaml .Values.labels | nindent 8 }}\n",
    ),
    "toYaml at the left": (
        _MATCH + "{{ toYaml .Values.labels | indent 6 }}\n",
        "{{ toYaml .Values.labels | indent 8 }}\n",
    ),
    "toJson": (
        "    matchLabels: {{ toJson .Values.labels }}\n",
        "        {{- toYaml .Values.labels | nindent 8 }}\n",
    ),
    "tpl": (
        _MATCH + "      {{- tpl (toYaml .Values.labels) . | nindent 6 }}\n",
        "        {{- tpl (toYaml .Values.labels) . | nindent 8 }}\n",
    ),
    "a range": (
        _MATCH + "      {{- range $k, $v := .Values.labels }}\n      {{ $k }}: {{ $v | quote }}\n"
        "      {{- end }}\n",
        (
            "        {{- range $k, $v := .Values.labels }}\n        {{ $k }}: {{ $v }}\n"
            "        {{- end }}\n"
        ),
    ),
    "a label under a condition": (
        _MATCH + "      app: x\n      {{- if .Values.key }}\n      key: {{ .Values.key | quote }}\n"
        "      {{- end }}\n",
        (
            '        app: x\n        {{- if .Values.key }}\n        key: "{{ .Values.key }}"\n'
            "        {{- end }}\n"
        ),
    ),
    "one of two": (
        _MATCH + "      {{- if .Values.labels }}\n      {{- toYaml .Values.labels | nindent 6 }}\n"
        "      {{- else }}\n      app: x\n      {{- end }}\n",
        (
            "        {{- if .Values.labels }}\n        {{- toYaml .Values.labels | nindent 8 }}\n"
            "        {{- else }}\n        app: x\n        {{- end }}\n"
        ),
    ),
    "a condition that is two on the other side": (
        _MATCH + "      app: x\n      {{- if and .Values.yes .Values.key }}\n      a: nvidia\n"
        "      {{- end }}\n",
        (
            "        app: x\n        {{- if .Values.key }}\n        {{- if .Values.yes }}\n"
            "        a: nvidia\n        {{- end }}\n        {{- end }}\n"
        ),
    ),
    "with": (
        _MATCH + "      app: x\n    {{- with .Values.labels }}\n"
        "      {{- toYaml . | nindent 6 }}\n    {{- end }}\n",
        (
            "        app: x\n      {{- with .Values.labels }}\n"
            "        {{- toYaml . | nindent 8 }}\n      {{- end }}\n"
        ),
    ),
    "a name by the template": (
        _MATCH + "      {{ .Values.key }}: b\n",
        "        {{ .Values.key }}: b\n",
    ),
    "a name by the template in quotes": (
        _MATCH + '      "{{ .Values.prefix }}/name": a\n',
        "        {{ .Values.prefix }}/name: a\n",
    ),
    "a selector by toYaml": (
        "    {{- toYaml .Values.selector | nindent 4 }}\n",
        "        app: x\n",
    ),
    "a selector by an include": ('    {{- include "x.selector" . | nindent 4 }}\n', _LABELS),
    "an expression": (
        '    matchExpressions:\n    - {key: app, operator: In, values: ["{{ .Values.name }}"]}\n',
        "        app: {{ .Values.name }}\n",
    ),
    "an expression on an include": (
        "    matchExpressions:\n    - {key: app.kubernetes.io/name, operator: Exists}\n",
        _LABELS,
    ),
    "a condition on one line": (
        _MATCH + "      app: {{ if .Values.key }}{{ .Values.key }}{{ else }}b{{ end }}\n",
        '        app: "{{ if .Values.key }}{{ .Values.key }}{{ else }}b{{ end }}"\n',
    ),
    "a default": (
        _MATCH + '      app: {{ default "a" .Values.name }}\n',
        '        app: {{ .Values.name | default "a" }}\n',
    ),
    "a word and an action": (_MATCH + "      app: x\n", "        app: {{ .Chart.Name }}\n"),
    "in flow style": (
        '    matchLabels: {app: "{{ .Values.name }}"}\n',
        "        app: {{ .Values.name }}\n",
    ),
    "filters": (
        _MATCH + "      app: {{ .Values.name | lower | trunc 63 }}\n",
        "        app: {{ trunc 63 (lower .Values.name) }}\n",
    ),
}
MODERN = {
    way: f"{_HEAD}  selector:\n{selector}  template:\n    metadata:\n      labels:\n{labels}{_POD}"
    for way, (selector, labels) in _WAYS.items()
}
MODERN |= {
    "labels behind the key": (
        f"{_HEAD}  selector:\n    matchLabels: {_SELECTOR.strip()}\n  template:\n    metadata:\n"
        f"      labels: {_LABELS.strip()}\n        app.kubernetes.io/component: master\n{_POD}"
    ),
    "metadata by an include": (
        f"{_HEAD}  selector:\n{_MATCH}      app.kubernetes.io/name: x\n  template:\n"
        f'    metadata:\n      {{{{- include "x.metadata" . | nindent 6 }}}}\n{_POD}'
    ),
    "a StatefulSet": (
        f"{_HEAD}  serviceName: x\n  selector:\n{_MATCH}{_SELECTOR}"
        f"  template:\n    metadata:\n      labels:\n{_LABELS}{_POD}"
    ).replace("kind: Deployment", "kind: StatefulSet"),
}

# Labels of a legacy chart's pods, to be copied into its selector: what each renders to must be the
# same text there, whatever the values are.
COPIED = {
    "an action": "        app: {{ .Values.name }}\n",
    "an action in quotes": '        app: "{{ .Values.number }}"\n',
    "an action in single quotes": "        app: '{{ .Values.number }}'\n",
    "by a filter": "        app: {{ .Values.number | quote }}\n",
    "by a filter in single quotes": "        app: {{ .Values.number | squote }}\n",
    "by a function": "        app: {{ quote .Values.number }}\n",
    "two that make a number": '        app: "{{ .Values.major }}.{{ .Values.minor }}"\n',
    "two side by side": '        app: "{{ .Values.major }}{{ .Values.minor }}"\n',
    "three": "        app: '{{ .Values.major }}.{{ .Values.minor }}.{{ .Values.number }}'\n",
    "a digit before it": '        app: "1{{ .Values.number }}"\n',
    "a digit behind it": '        app: "{{ .Values.number }}0"\n',
    "an exponent": "        app: '{{ .Values.number }}e3'\n",
    "hexadecimal": '        app: "0x{{ .Values.number }}"\n',
    "a truth": '        app: "{{ .Values.yes }}"\n',
    "a truth in two parts": '        app: "t{{ print "rue" }}"\n',
    "a text with words": "        app: {{ .Release.Name }}-{{ .Values.name }}\n",
    "a condition on one line": (
        '        app: "{{ if .Values.yes }}{{ .Values.number }}{{ else }}0{{ end }}"\n'
    ),
    "a name by the template": '        {{ .Values.key }}: "{{ .Values.number }}"\n',
    "a name by the template in quotes": '        "{{ .Values.prefix }}/a": b\n',
    "a name that is a number": '        "{{ .Values.number }}": b\n',
    "with a remark": '        app: "{{ .Values.number }}"  # the release\n',
    "with a trim": '        app: "{{- .Values.number -}}"\n',
    "with words in quotes beside it": '        app: "{{ .Values.number }}"\n        b: "true"\n',
    "a number in quotes": '        app: "7"\n        v: v{{ .Values.number }}\n',
    "by default": '        app: "{{ .Values.none | default "7" }}"\n',
    "the names of Helm": (
        "        app: {{ .Chart.Name }}\n        release: {{ .Release.Name | trunc 63 | quote }}\n"
        "        in: {{ $.Release.Namespace }}\n        by: {{ .Release.Service }}\n"
    ),
    "a helper for a name": (
        '        app: {{ template "x.name" . }}\n        b: a-{{ include "x.name" . | lower }}\n'
    ),
    "in flow style": "INLINE {app: \"{{ .Values.number }}\", b: '{{ .Values.name }}'}\n",
}
# Of these nobody can copy the whole.
UNCOPIED = {
    "over two lines": '        app: "{{\n          .Values.number }}"\n',
    "a literal": "        app: |-\n          {{ .Values.number }}\n",
    "folded": "        app: >-\n          {{ .Values.number }}\n",
    "an include": _LABELS,
    "a label and an include": "        app: x\n" + _LABELS,
    "an include at the left": '        app: x\n{{ include "x.labels" . | indent 8 }}\n',
    "toYaml": "        app: x\n        {{- toYaml .Values.labels | nindent 8 }}\n",
    "toYaml behind the key": "INLINE {{ toYaml .Values.labels | nindent 8 }}\n",
    "a label under a condition": (
        "        app: x\n        {{- if .Values.key }}\n        key: {{ .Values.key }}\n"
        "        {{- end }}\n"
    ),
    "a range": (
        "        app: x\n        {{- range $k, $v := .Values.labels }}\n"
        "        {{ $k }}: {{ $v }}\n        {{- end }}\n"
    ),
    "with": (
        "        {{- with .Values.image }}\n        app: {{ .tag | quote }}\n        {{- end }}\n"
    ),
}
# These may be another text at the next rendering, and no selector can be changed.
CHANGING = {
    each: f"        app: x\n        made: {each}\n"
    for each in (
        "{{ randAlphaNum 5 | quote }}",
        "{{ .Values.name | default (randAlpha 5) }}",
        "{{ uuidv4 }}",
        "x-{{ now | unixEpoch }}",
        '{{ now | date "20060102" | quote }}',
        '{{ date "2006" now }}',
        '{{ (genCA "x" 5).Cert | sha256sum | trunc 9 }}',
        "r{{ .Release.Revision }}",
        "{{ $.Release.Time.Seconds }}",
        "{{ .Release.IsUpgrade }}",
        '{{ (lookup "v1" "Secret" "a" "b").metadata.uid }}',
        '{{ shuffle "abc" }}',
        "{{ .Chart.Version }}",
        '{{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}',
        '{{ printf "%s-%s" .Chart.Name .Chart.Version }}',
        "{{ .Chart.AppVersion | quote }}",
        "{{ .Chart }}",
        "{{ .Capabilities.KubeVersion.Minor }}",
        '{{ .Files.Get "a" | sha256sum | trunc 9 }}',
        "{{ .Values.image.tag }}",
        "{{ .Values.imageTag | quote }}",
        '{{ index .Values.image "tag" }}',
        "{{ .Values.appVersion }}",
        "{{ tpl .Values.name . }}",
        '{{ template "x.chart" . }}',
        '{{ include "x.version" . }}',
        '{{ include (printf "x.%s" .Values.name) . }}',
        "{{ if .Release.IsInstall }}a{{ else }}b{{ end }}",
        "{{ if .Values.yes }}a{{ else }}{{ .Release.Revision }}{{ end }}",
        "{{ ansible_date_time.epoch }}",
        "{{ lookup('pipe', 'date') }}",
        "{{ 9 | random }}",
        "{{ app_version }}",
        "{{ $unknown }}",
    )
}
_BY_VARIABLE = {
    "made by chance": "{{- $n := randAlpha 5 }}\n",
    "made of another": '{{- $m := .Release.Revision }}\n{{- $n := printf "%d" $m }}\n',
    "set again below": '{{- $n := "a" }}\nBELOW',
    "of a loop by chance": '{{- range $i, $n := shuffle "ab" | list }}\nEND',
}

# Selectors of a legacy chart that some renderings do not have.
_UNDER = {
    "if": "  {{- if .Values.k }}\n  selector:\n    matchLabels: {app: x}\n  {{- end }}\n",
    "if not": "  {{- if not .Values.k }}\n  selector:\n    matchLabels: {app: x}\n  {{- end }}\n",
    "with": (
        "  {{- with .Values.s }}\n  selector:\n    matchLabels: {{- toYaml . | nindent 6 }}\n"
        "  {{- end }}\n"
    ),
    "range": "  {{- range .Values.s }}\n  selector: {matchLabels: {app: x}}\n  {{- end }}\n",
    "else if": (
        "  {{- if .Values.a }}\n  selector: {matchLabels: {app: x}}\n"
        "  {{- else if .Values.b }}\n  replicas: 2\n  {{- end }}\n"
    ),
    "the style of old": "  {{- if .Values.a }}\n  selector: {app: x}\n  {{- end }}\n",
    "a version of the cluster": (
        '  {{- if semverCompare ">=1.9" .Capabilities.KubeVersion.Version }}\n'
        "  selector: {matchLabels: {app: x}}\n  {{- end }}\n"
    ),
    "its members alone": (
        "  selector:\n  {{- if .Values.k }}\n    matchLabels: {app: x}\n  {{- end }}\n"
    ),
    "its members in the style of old": (
        "  selector:\n  {{- if .Values.k }}\n    app: x\n  {{- end }}\n"
    ),
    "matchExpressions": (
        "  {{- if .Values.k }}\n  selector:\n    matchExpressions:\n"
        "    - {key: app, operator: Exists}\n  {{- end }}\n"
    ),
    "Jinja": "  {% if k %}\n  selector: {matchLabels: {app: x}}\n  {% endif %}\n",
}


def legacy(labels: str) -> str:
    """A chart of 2017: no selector, and a legacy GPU."""
    head = _HEAD.replace("apps/v1", "extensions/v1beta1").replace(
        '  labels:\n    {{- include "x.labels" . | nindent 4 }}\n', "  labels: {a: b}\n"
    )
    spec = (
        "    spec:\n      tolerations:\n"
        "      - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n"
    )
    made = f"{head}  template:\n    metadata:\n      labels:\n{labels}{spec}"
    made += _POD.partition("\n")[2]
    return made.replace("labels:\nINLINE", "labels:").replace(
        "nvidia.com/gpu: ", "alpha.kubernetes.io/nvidia-gpu: "
    )


def with_variable(made: str) -> str:
    """A legacy chart with a label by a variable."""
    text = legacy("        app: {{ $n }}\n")
    if made.endswith("BELOW"):
        made = made.removesuffix("BELOW")
        text = text.replace("  template:\n", '  {{- $n = "b" }}\n  template:\n')
    if made.endswith("END"):
        made = made.removesuffix("END")
        text += "{{- end }}\n"
    return made + text


CHANGING_VARIABLES = {way: with_variable(made) for way, made in _BY_VARIABLE.items()}
UNDER_CONDITIONS = {
    way: legacy("        app: x\n").replace("  template:\n", f"{selector}  template:\n")
    for way, selector in _UNDER.items()
}


def rendered(texts: Mapping[str, str], folder: Path, *given: str) -> dict[str, Any]:
    """What `helm template` makes of a chart of these templates, by their names."""
    names = {f"x-{number}": way for number, way in enumerate(texts)}
    named = {name: texts[way].replace("name: NAME", f"name: {name}") for name, way in names.items()}
    objects = helm.objects(folder, named, HELPERS, VALUES, *given)
    return {names[name]: each for name, each in objects.items()}
