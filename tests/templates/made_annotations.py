"""Annotations of old whose text a template makes: every way to write that, as a table.

`{key}` stands for the annotation, which is eight columns from the left.
"""

from __future__ import annotations

import textwrap

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
INIT_CONTAINERS = "pod.beta.kubernetes.io/init-containers"
CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
HOSTNAME = "pod.beta.kubernetes.io/hostname"
INITIALIZED = "pod.alpha.kubernetes.io/initialized"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/main"
SYSCTLS = "security.alpha.kubernetes.io/sysctls"

# What `made` writes in each chart: JSON on one line.
JSON = {
    AFFINITY: (
        '{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":'
        '[{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}}}'
    ),
    TOLERATIONS: '[{"key":"a","operator":"Exists"}]',
    INIT_CONTAINERS: '[{"name":"init","image":"busybox"}]',
    CRITICAL: "true",
    HOSTNAME: "worker",
    INITIALIZED: "true",
    SECCOMP: "runtime/default",
    SYSCTLS: "kernel.shm_rmid_forced=1",
}
START = '{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":['
ITEM = '{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}'
END = "]}}}"

# With any of the annotations.
HELM = {
    "folded, the action alone on its line": """\
        {key}: >
             {{ tuple . "nova" "api" | include "made" }}
""",
    "literal, the action alone on its line": """\
        {key}: |
          {{ include "made" . }}
""",
    "literal without its last line end": """\
        {key}: |-
          {{- include "made" . | nindent 10 }}
""",
    "folded with a sign of indentation": """\
        {key}: >2-
          {{ include "made" . }}
""",
    "literal with a comment in its header": """\
        {key}: |  # made below
          {{ include "made" . }}
""",
    "indent at the left": """\
        {key}: |
{{ include "made" . | indent 12 }}
""",
    "indent in parentheses": """\
        {key}: |
{{ (include "made" .) | indent 12 }}
""",
    "indent as a function": """\
        {key}: |
{{ indent 12 (include "made" .) }}
""",
    "nindent that takes the line end before it": """\
        {key}: |
          {{- include "made" . | nindent 12 }}
""",
    "template at the left without any indent": """\
        {key}: |
{{ template "indented" . }}
""",
    "two blank lines before the action": """\
        {key}: |


          {{ include "made" . }}
""",
    "an action that writes nothing first": """\
        {key}: |
          {{- $x := "nova" }}
          {{ tuple . $x | include "made" }}
""",
    "a comment action first": """\
        {key}: |
          {{- /* the rule of the pods */}}
          {{ include "made" . }}
""",
    "under a condition": """\
        {key}: |
          {{- if .Values.yes }}
          {{ include "made" . }}
          {{- end }}
""",
    "under a condition at the left": """\
        {key}: >
{{- if .Values.yes }}
          {{ include "made" . }}
{{- end }}
""",
    "two arms": """\
        {key}: >-
          {{- if .Values.yes }}
          {{ include "made" . }}
          {{- else }}
          {json}
          {{- end }}
""",
    "text in one arm of two": """\
        {key}: >-
          {{- if .Values.no }}
          {{ include "made" . }}
          {{- else }}
          {json}
          {{- end }}
""",
    "text in both arms": """\
        {key}: >-
          {{- if .Values.no }}
          {json}
          {{- else }}
          {json}
          {{- end }}
""",
    "with": """\
        {key}: |
          {{- with .Values.json }}
          {{ . }}
          {{- end }}
""",
    "on the same line": """\
        {key}: {{ include "made" . | quote }}
""",
    "on the same line in single quotes": """\
        {key}: '{{ include "made" . }}'
""",
    "on the same line as a literal that the template begins": """\
        {key}: {{ include "made" . | toYaml }}
""",
    "beneath the key": """\
        {key}:
          {{ include "made" . | quote }}
""",
    "beneath the key by nindent": """\
        {key}:
          {{- include "made" . | quote | nindent 10 }}
""",
    "beneath the key by nindent at the left": """\
        {key}:
{{- include "made" . | quote | nindent 10 }}
""",
    "beneath the key, indent at the left": """\
        {key}:
{{ include "made" . | quote | indent 10 }}
""",
    "beneath the key with a comment between": """\
        {key}:
          # as the pods of nova are
          {{ include "made" . | quote }}
""",
    "beneath the key under a condition": """\
        {key}:
          {{- if .Values.yes }}
          {{ include "made" . | quote }}
          {{- else }}
          '{json}'
          {{- end }}
""",
    "the header of the block by the action": """\
        {key}: {{ "|" }}
          {{ include "made" . }}
""",
    "an action over several lines": """\
        {key}: >
          {{ tuple .
               "nova"
             | include "made" }}
""",
    "an action over several lines on the line of the key": """\
        {key}: {{ include "made" .
          | quote }}
""",
    "the key in quotes": """\
        "{key}": |
          {{ include "made" . }}
""",
    "two actions on a line of their own": """\
        {key}: |
          {{ $x := . }}{{ include "made" $x }}
""",
    "a comment behind the action": """\
        {key}: '{{ include "made" . }}'  # by us
""",
}

# A part of the JSON; only an affinity has so many parts.
PARTLY = {
    "a term in the middle": f"""\
        {{key}}: |
          {START}
          {{{{ include "item" . }}}}
          {END}
""",
    "a term in the middle, indent at the left": f"""\
        {{key}}: |
          {START}
{{{{ include "item" . | indent 10 }}}}
          {END}
""",
    "the end": f"""\
        {{key}}: |
          {START}{ITEM}
          {{{{ include "end" . }}}}
""",
    "the end, indent at the left": f"""\
        {{key}}: |
          {START}{ITEM}
{{{{ include "end" . | indent 10 }}}}
""",
    "the begin": f"""\
        {{key}}: |
          {{{{ include "start" . }}}}
          {ITEM}{END}
""",
    "the end under a condition": f"""\
        {{key}}: |
          {START}{ITEM}
          {{{{- if .Values.yes }}}}
          {END}
          {{{{- end }}}}
""",
    "one value": f"""\
        {{key}}: '{START}{ITEM.replace('"a"', "{{ .Values.zone | quote }}")}{END}'
""",
    "one value in quotes of the JSON": f"""\
        {{key}}: '{START}{ITEM.replace('"a"', '"{{ .Values.zone }}"')}{END}'
""",
    "one value in a literal": f"""\
        {{key}}: |
          {START}
          {ITEM.replace('"a"', '"{{ .Values.zone }}"')}
          {END}
""",
    "whole JSON, with an empty action behind it": f"""\
        {{key}}: |
          {START}{ITEM}{END}
          {{{{ include "nothing" . }}}}
""",
    "a term under a condition": f"""\
        {{key}}: >-
          {START}
          {ITEM}
          {{{{- if .Values.yes }}}}
          ,{ITEM}
          {{{{- end }}}}
          {END}
""",
    "plain over two lines": f"""\
        {{key}}: "{START.replace('"', chr(92) + '"')}
          {{{{ include "item" . | replace (printf "%c" 34) (printf "%c%c" 92 34) }}}}{END}"
""",
}

DEFINED = f"""\
{{{{- define "made" -}}}}{{json}}{{{{- end -}}}}
{{{{- define "indented" }}}}            {{json}}{{{{ end -}}}}
{{{{- define "start" -}}}}{START}{{{{- end -}}}}
{{{{- define "item" -}}}}{ITEM}{{{{- end -}}}}
{{{{- define "end" -}}}}{END}{{{{- end -}}}}
{{{{- define "nothing" -}}}}{{{{- end -}}}}
{{{{- define "annotations" }}}}        b: "c"{{{{ end -}}}}
{{{{- define "annotation" -}}}}b: "c"{{{{- end -}}}}
"""

JINJA = {
    "literal": """\
        {key}: |
          {{ made }}
""",
    "literal by a filter": """\
        {key}: |
          {{ made | to_json | indent(10) }}
""",
    "a file": """\
        {key}: >
          {% include "affinity.json" %}
""",
    "under a condition": """\
        {key}: |
          {% if made %}
          {{ made }}
          {% endif %}
""",
    "a loop": """\
        {key}: |
          {% for each in made %}
          {{ each }}
          {% endfor %}
""",
    "beneath the key": """\
        {key}:
          {{ made | to_json | to_json }}
""",
    "on the same line": """\
        {key}: {{ made | to_json }}
""",
    "in quotes": """\
        {key}: '{{ made }}'
""",
    "a call": """\
        {key}: |
          {% filter indent(10) %}{{ made }}{% endfilter %}
""",
}

# YAML as it is.
WHOLE_IN_QUOTES = {
    "in single quotes": """\
        {key}: '{{ made }}'
""",
    "folded": """\
        {key}: >
          {{ made }}
""",
    "a value in the JSON": """\
        {key}: '{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
          {"nodeSelectorTerms": [{"matchExpressions": [
          {"key": "zone", "operator": "In", "values": ["{{ zone }}"]}]}]}}}'
""",
    "a value in a literal": """\
        {key}: |
          {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "{{ name }}"}}, "topologyKey": "zone"}]}}
""",
}

# A text that is all in sight, with annotations of the template's beside it.
_SEEN = "        {key}: '{json}'\n"
_MAP = "{{ toYaml .Values.annotations | indent 8 }}\n"
BESIDE = {
    "a map behind it": _SEEN + _MAP,
    "a map behind it by nindent": (
        _SEEN + "        {{- toYaml .Values.annotations | nindent 8 }}\n"
    ),
    "a map before it": _MAP + _SEEN,
    "a map that may be none": (
        f"{_SEEN}        {{{{- with .Values.annotations }}}}\n"
        "{{ toYaml . | indent 8 }}\n        {{- end }}\n"
    ),
    "a template at the left": _SEEN + '{{ include "annotations" . }}\n',
    "a template at its place": _SEEN + '        {{ include "annotation" . }}\n',
    "one under a condition": (
        _SEEN + '        {{- if .Values.yes }}\n        b: "c"\n        {{- end }}\n'
    ),
    "a loop": (
        f"{_SEEN}        {{{{- range $k, $v := .Values.annotations }}}}\n"
        "        {{ $k }}: {{ $v | quote }}\n        {{- end }}\n"
    ),
}

OTHER = "        example.com/other: kept\n"
AROUND = {
    "alone": ("", ""),
    "first": ("", OTHER),
    "last": (OTHER, ""),
    "in the middle": (OTHER, OTHER.replace("other", "another")),
    "before a map of the template": (
        OTHER,
        "{{ toYaml .Values.annotations | indent 8 }}\n",
    ),
}


def deployment(annotations: str) -> str:
    """A workload with these annotations on its pods, whose GPU is legacy."""
    head = textwrap.dedent("""\
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: x
        spec:
          selector:
            matchLabels: {app: x}
          template:
            metadata:
              labels: {app: x}
              annotations:
        """)
    tail = f"""\
    spec:
      tolerations:
      - {{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}
      containers:
      - name: main
        image: {{{{ .Values.image }}}}
        resources:
          limits:
            {OLD}: 1
"""
    return head + annotations + tail


def chart(made: str, key: str, around: str = "alone") -> str:
    """A Helm template with the annotation made in this way."""
    before, after = AROUND[around]
    return deployment(before + filled(made, key) + after)


def filled(made: str, key: str) -> str:
    """The lines with the annotation's name, and with the JSON where it is written out."""
    return made.replace("{key}", key).replace("{json}", JSON[key])
