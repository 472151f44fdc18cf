"""Charts by what their templates do with amounts: each with its files, and why it waits, if so."""

from __future__ import annotations

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
HEAD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {}\nspec:\n"
TOLERATED = "  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]\n"
Files = dict[str, str]


def pod(resources: str, more: str = "", before: str = "", name: str = "p") -> str:
    """A pod; `resources` begins behind the colon, and `more` has fields of the spec."""
    return (
        f"{before}{HEAD.format(name)}{TOLERATED}{more}"
        f"  containers:\n  - name: c\n    image: i\n    resources: {resources}\n"
    )


def given(limits: object = None, requests: object = None, name: str = OLD) -> str:
    """Resources on one line."""
    both = {"limits": limits, "requests": requests}
    said = (f"{k}: {{{name}: {v}}}" for k, v in both.items() if v is not None)
    return "{" + ", ".join(said) + "}"


def of(template: str, resources: str = given(2), **more: str) -> Files:
    """A chart with one template; members of `more` are files of values, `_h` is a helper."""
    files = {"templates/p.yaml": template, "values.yaml": f"resources: {resources}\n"}
    for name, text in more.items():
        path = "templates/_h.tpl" if name == "h" else f"values-{name}.yaml"
        files[path] = text if name in {"h", "all"} else f"resources: {text}\n"
    if "values-all.yaml" in files:
        files["values.yaml"] = files.pop("values-all.yaml")
    return files


def workers(resources: str) -> str:
    """A pod for each worker of the values."""
    made = pod(resources, name="{{ .name }}")
    return "{{- range .Values.workers }}\n---\n" + made + "{{- end }}\n"


def over(defaults: str, *each: str) -> str:
    """Values with defaults, and with these resources of workers."""
    named = "".join(f"- {{name: w{n}, resources: {said}}}\n" for n, said in enumerate(each))
    return f"defaults:\n  resources: {defaults}\nworkers:\n{named}"


def helper(body: str, name: str = "d") -> str:
    return f'{{{{- define "{name}" -}}}}\n{body}\n{{{{- end -}}}}\n'


WHOLE = "{{- toYaml .Values.resources | nindent 6 }}"
MERGED = (
    "{{- toYaml (mergeOverwrite (deepCopy $.Values.defaults.resources)"
    " (.resources | default dict)) | nindent 6 }}"
)
UNDER = "{{- toYaml (merge (.resources | default dict) $.Values.defaults.resources) | nindent 6 }}"
SECTIONS = (
    "\n      limits: {{- toYaml .Values.resources.limits | nindent 8 }}"
    "\n      requests: {{- toYaml .Values.resources.requests | nindent 8 }}"
)
FROM_HELPER = (
    '{{- toYaml (merge (deepCopy .Values.resources) (include "d" . | fromYaml)) | nindent 6 }}'
)
LIMITS = ".Values.resources.limits"


def asked(condition: str) -> str:
    """A template that has a node selector under a condition."""
    return pod(
        WHOLE, f"  {{{{- if {condition} }}}}\n  nodeSelector: {{pool: a}}\n  {{{{- end }}}}\n"
    )


NOTES = "templates/NOTES.txt"


def noted(value: str) -> str:
    """A template with this annotation, and the resources."""
    return pod(WHOLE).replace("  name: p\n", f"  name: p\n  annotations:\n    sum: {value}\n")


# What Helm does not merge, but templates: they would have other GPUs after a run.
COMBINED: dict[str, Files] = {
    "a worker's limit over defaults with a request": of(
        workers(MERGED), all=over(given(1, 1), given(4))
    ),
    "a worker's limit under defaults with a request": of(
        workers(UNDER), all=over(given(1, 1), given(4))
    ),
    "the current name over legacy defaults": of(
        workers(MERGED), all=over(given(2), given(1, name=NEW))
    ),
    "a legacy amount over current defaults": of(
        workers(MERGED), all=over(given(2, name=NEW), given(1))
    ),
    "a request of a worker over a larger limit": of(
        workers(MERGED), all=over(given(2), given(None, 1))
    ),
    "defaults of a helper with a request": of(
        pod(FROM_HELPER),
        "{}",
        h=helper(f"limits:\n  {OLD}: 2\nrequests:\n  {OLD}: 2"),
        x=given(1),
    ),
    "a request over the limit of a helper": of(
        pod(FROM_HELPER), "{}", h=helper(f"limits:\n  {OLD}: 2"), z=given(None, 1)
    ),
    "the current name over the limit of a helper": of(
        pod(FROM_HELPER), "{}", h=helper(f"limits:\n  {OLD}: 2"), y=given(1, name=NEW)
    ),
    "a merge in a helper that gets both": of(
        workers('{{- include "m" (dict "base" $.Values.defaults "mine" .) | nindent 6 }}'),
        h=helper("{{- toYaml (mergeOverwrite (deepCopy .base.resources) .mine.resources) }}", "m"),
        all=over(given(1, 1), given(4)),
    ),
    "a merge of maps that a helper gets under other names": of(
        workers(
            '{{- include "m" (dict "a" $.Values.defaults.resources "b" .resources) | nindent 6 }}'
        ),
        h=helper("{{- toYaml (merge (deepCopy .b) .a) }}", "m"),
        all=over(given(1, 1), given(4)),
    ),
    "a merge of sections alone": of(
        workers(
            "\n      limits: {{- toYaml (merge .resources.limits"
            " $.Values.defaults.resources.limits) | nindent 8 }}"
            "\n      requests: {{- toYaml $.Values.defaults.resources.requests | nindent 8 }}"
        ),
        all=over(given(1, 1), given(4)),
    ),
    "set in a copy of the defaults": of(
        workers(
            "\n      {{- $r := deepCopy $.Values.defaults.resources }}"
            '\n      {{- $_ := set $r "limits" .resources.limits }}'
            "\n      {{- toYaml $r | nindent 6 }}"
        ),
        all=over(given(1, 1), given(4)),
    ),
    "limits of values beside requests of the template": of(
        pod(
            f"\n      limits: {{{{- toYaml {LIMITS} | nindent 8 }}}}\n      requests: {{{OLD}: 1}}"
        ),
        given(2),
    ),
    "requests without their limits": of(
        pod("\n      requests: {{- toYaml .Values.resources.requests | nindent 8 }}"),
        given(None, 2),
    ),
    "equal requests without their limits": of(
        pod("\n      requests: {{- toYaml .Values.resources.requests | nindent 8 }}"),
        given(2, 2),
    ),
    "limits without larger requests": of(
        pod(f"\n      limits: {{{{- toYaml {LIMITS} | nindent 8 }}}}"), given(1, 2)
    ),
    "a condition on limits that a run adds": of(asked(LIMITS), given(None, 2)),
    "sections without limits": of(
        pod('{{- toYaml (unset .Values.resources "limits") | nindent 6 }}'), given(2, 2)
    ),
    "a number of sections that a run changes": of(
        asked("eq (len .Values.resources) 2"), given(None, 2)
    ),
    "limits of values beside the current name of the template": of(
        pod(f"\n      limits:\n        {NEW}: 2\n        {{{{- toYaml {LIMITS} | nindent 8 }}}}"),
        given(2),
    ),
    "parts of a helper's text": of(
        pod(
            '{{- $d := include "d" . | fromYaml }}\n'
            "      {{- toYaml (merge (dict) $d.worker $d.base) | nindent 6 }}"
        ),
        "{}",
        h=helper(
            f"base:\n  limits:\n    {OLD}: 2\n  requests:\n    {OLD}: 2\n"
            f"worker:\n  limits:\n    {OLD}: 1"
        ),
    ),
    "limits of one map beside requests of another": of(
        pod(
            "\n      limits: {{- toYaml .Values.defaults.limits | nindent 8 }}"
            "\n      requests: {{- toYaml .Values.resources.requests | nindent 8 }}"
        ),
        all=f"defaults: {given(2, 2)}\nresources: {given(1, 1)}\n",
    ),
    "limits of another map set in one": of(
        pod(
            '{{- toYaml (set (deepCopy .Values.resources) "limits" .Values.defaults.limits)'
            " | nindent 6 }}"
        ),
        all=f"defaults: {given(2, 2)}\nresources: {given(1, 1)}\n",
    ),
    "a choice of limits without GPUs": of(
        pod(
            "\n      limits: {{- toYaml (default .Values.defaults.limits .Values.resources.limits)"
            " | nindent 8 }}\n      requests: {{- toYaml (default .Values.defaults.requests"
            " .Values.resources.requests) | nindent 8 }}"
        ),
        all=f"defaults: {given(2, 2)}\nresources: {{limits: {{cpu: 1}}}}\n",
    ),
    "a map that an action builds": of(
        workers(
            f'{{{{- toYaml (merge (dict "limits" (dict "{NEW}" 1)) .resources) | nindent 6 }}}}'
        ),
        all=over("{}", given(4)),
    ),
    "a chart inside with limits over defaults of the chart around": {
        "charts/s/Chart.yaml": "apiVersion: v2\nname: s\nversion: 0.1.0\n",
        "charts/s/values.yaml": f"resources: {given(4)}\n",
        "charts/s/templates/p.yaml": pod(
            "{{- toYaml (mergeOverwrite (deepCopy .Values.global.resources) .Values.resources)"
            " | nindent 6 }}"
        ),
        "values.yaml": f"global:\n  resources: {given(1, 1)}\n",
    },
}

# Templates that look at the names; the second text is the function.
LOOKING: dict[str, tuple[Files, str]] = {
    "a part of the name in all of the resources": (
        of(asked('contains "nvidia-gpu" (toYaml .Values.resources)')),
        "contains",
    ),
    "a part of it in a variable": (
        of(
            asked("contains $part (toYaml .Values.resources)").replace(
                "apiVersion", '{{- $part := "nvidia-gpu" }}\napiVersion', 1
            )
        ),
        "contains",
    ),
    "a part of it behind pipes": (
        of(asked('.Values.resources | toJson | contains "alpha.kube"')),
        "contains",
    ),
    "the current name as a member": (
        of(asked(f'hasKey (.Values.resources.limits | default dict) "{NEW}"')),
        "hasKey",
    ),
    "the current name in a variable": (
        of(
            asked(f"hasKey {LIMITS} $gpu").replace(
                "apiVersion", f'{{{{- $gpu := "{NEW}" }}}}\napiVersion', 1
            )
        ),
        "hasKey",
    ),
    "the current name from a helper": (
        of(asked(f'hasKey {LIMITS} (include "n" .)'), h=helper(NEW, "n")),
        "hasKey",
    ),
    "the current name from values": (
        of(
            asked(f"hasKey {LIMITS} .Values.gpuName"),
            all=f"gpuName: {NEW}\nresources: {given(2)}\n",
        ),
        "hasKey",
    ),
    "the current name by index": (of(asked(f'index {LIMITS} "{NEW}"')), "index"),
    "the current name by get": (of(asked(f'get {LIMITS} "{NEW}"')), "get"),
    "the current name by dig": (of(asked(f'dig "limits" "{NEW}" 0 .Values.resources')), "dig"),
    "the current name in the keys": (of(asked(f'has "{NEW}" (keys {LIMITS})')), "has"),
    "the current name put together": (
        of(asked(f'hasKey {LIMITS} (printf "%s/%s" "nvidia.com" "gpu")')),
        "hasKey",
    ),
    "names in a loop": (
        of(
            pod(
                WHOLE,
                f"  {{{{- range $k, $v := {LIMITS} }}}}\n"
                f'  {{{{- if eq $k "{NEW}" }}}}\n  nodeSelector: {{pool: a}}\n'
                "  {{- end }}\n  {{- end }}\n",
            )
        ),
        "eq",
    ),
    "the begin of names in a loop": (
        of(
            pod(
                WHOLE,
                f"  {{{{- range $k, $v := {LIMITS} }}}}\n"
                '  {{- if hasPrefix "nvidia.com/" $k }}\n  nodeSelector: {pool: a}\n'
                "  {{- end }}\n  {{- end }}\n",
            )
        ),
        "hasPrefix",
    ),
    "a part of names that are cut": (
        of(
            pod(
                WHOLE,
                f"  {{{{- range $k, $v := {LIMITS} }}}}\n"
                '  {{- if eq (splitList "/" $k | last) "gpu" }}\n  nodeSelector: {pool: a}\n'
                "  {{- end }}\n  {{- end }}\n",
            )
        ),
        "eq",
    ),
    "a regular expression": (
        of(asked('regexMatch "nvidia.com.gpu" (toYaml .Values.resources)')),
        "regexMatch",
    ),
    "a regular expression without words": (
        of(asked('regexMatch "/[a-z]+:" (toYaml .Values.resources)')),
        "regexMatch",
    ),
    "a sign of the old name": (
        of(
            pod(
                WHOLE,
                f"  {{{{- range $k, $v := {LIMITS} }}}}\n"
                '  {{- if contains "-" $k }}\n  nodeSelector: {pool: a}\n'
                "  {{- end }}\n  {{- end }}\n",
            )
        ),
        "contains",
    ),
    "the current name with its amount": (
        of(asked('contains "nvidia.com/gpu: 2" (toYaml .Values.resources)')),
        "contains",
    ),
    "a current amount that is left out": (
        of(pod(f'\n      limits: {{{{- toYaml (omit {LIMITS} "{NEW}") | nindent 8 }}}}')),
        "omit",
    ),
    "another name for the current one": (
        of(
            pod(
                '{{- toYaml .Values.resources | replace "nvidia.com/gpu" "example.com/gpu"'
                " | nindent 6 }}"
            )
        ),
        "replace",
    ),
    "a helper that writes the resources": (
        of(
            asked('contains "nvidia.com" (include "r" .)'),
            h=helper("{{ toYaml .Values.resources }}", "r"),
        ),
        "contains",
    ),
    "values of a helper by another name": (
        of(
            pod('{{- include "r" (dict "mine" .Values.resources) | nindent 6 }}'),
            h=helper(
                "{{- toYaml .mine }}\n"
                f'{{{{- if hasKey .mine.limits "{NEW}" }}}}\nclaims: []\n{{{{- end }}}}',
                "r",
            ),
        ),
        "hasKey",
    ),
}


def of_kind(version: str, kind: str, spec: str) -> str:
    """An object that is no pod, behind a pod with the resources."""
    head = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: o}}\n"
    return f"{pod(WHOLE)}---\n{head}{spec}\n"


def pairs(said: str, section: str = "limits", of_map: str = LIMITS) -> str:
    """A section that a loop over a map writes."""
    return (
        f"\n      {section}:\n        {{{{- range $k, $v := {of_map} }}}}"
        f"\n        {said}\n        {{{{- end }}}}"
    )


def asking(requests: str, limits: str = "") -> str:
    """Resources by the text of both sections."""
    first = f"\n      limits: {limits}" if limits else ""
    return f"{first}\n      requests: {requests}"


_LIMITS_ALONE = f"{{{{- toYaml {LIMITS} | nindent 8 }}}}"
_PLAIN = "{{ $k }}: {{ $v }}"
_ARGS = "    args: [{{ toJson .Values.resources.limits | quote }}]\n    resources:"
_NAMED = f"metadata: {{name: o, annotations: {{given: {{{{ toJson {LIMITS} | quote }}}}}}}}"
_COLUMNS = helper(f"      limits:\n{{{{ toYaml {LIMITS} | indent 8 }}}}", "m")
REQUESTED, PART, OTHER, UNKNOWN = (
    "writes them as requests without the same limits",
    "writes a part of them",
    "makes something else of them",
    "may write them elsewhere than into the resources of a container, in kind Pod",
)

DATA = "may write them elsewhere than into the resources of a container, in kind ConfigMap"


def of_file(data: str) -> Files:
    """A chart with amounts in a file, which a ConfigMap has."""
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:"
    key = "" if "Glob" in data else "\n  r: |"
    data = data if data.startswith("{{-") else f"\n{data}"
    return {
        "templates/c.yaml": f"{head}{key}{data}\n",
        "values.yaml": "file: cfg/r.yaml\n",
        "cfg/r.yaml": f"limits:\n  {OLD}: 1\n",
    }


# Templates that write amounts not only as resources of a container, or not as they are; the second
# text is in the reason.
UNSURE: dict[str, tuple[Files, str]] = {
    "a file of the chart as data": (of_file('{{ .Files.Get "cfg/r.yaml" | indent 4 }}'), DATA),
    "lines of a file as data": (
        of_file('{{- range .Files.Lines "cfg/r.yaml" }}\n    {{ . }}\n{{- end }}'),
        DATA,
    ),
    "a file whose name is computed": (of_file("{{ .Files.Get .Values.file | indent 4 }}"), DATA),
    "each of some files as data": (
        of_file(
            '{{- range $path, $_ := .Files.Glob "cfg/*" }}\n  {{ base $path }}: |\n'
            "{{ $.Files.Get $path | indent 4 }}\n{{- end }}"
        ),
        DATA,
    ),
    "some files as a ConfigMap": (of_file('{{ (.Files.Glob "cfg/*").AsConfig | indent 2 }}'), DATA),
    "limits of values as requests": (of(pod(asking(_LIMITS_ALONE)), given(2)), REQUESTED),
    "the same with `with`, as JSON": (
        of(
            pod(
                "\n      {{- with .Values.resources }}\n      requests: {{ .limits | toJson }}"
                "\n      {{- end }}"
            )
        ),
        REQUESTED,
    ),
    "the same in a loop": (of(pod(pairs(_PLAIN, "requests"))), REQUESTED),
    "names of amounts in an annotation, from a map of a helper": (
        {
            "templates/p.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n"
            '    a: {{ include "n" (dict "amounts" .Values.limits) }}\nspec:\n  containers:\n'
            "  - name: c\n    resources: {limits: {{ toJson .Values.limits }}}\n",
            "templates/_h.tpl": '{{- define "n" }}{{ range $k, $v := .amounts }}{{ $k }}'
            "{{ end }}{{ end }}\n",
            "values.yaml": f"limits:\n  {OLD}: 1\n",
        },
        "",
    ),
    "the same of a helper": (
        of(
            pod('\n      requests: {{- include "m" . | nindent 8 }}'),
            h=helper(f"{{{{ toYaml {LIMITS} }}}}", "m"),
        ),
        REQUESTED,
    ),
    "the same in a helper": (
        of(
            pod('{{- include "m" .Values.resources | nindent 6 }}'),
            h=helper("requests: {{- toYaml .limits | nindent 2 }}", "m"),
        ),
        REQUESTED,
    ),
    "the same in another pod": (
        of(pod(WHOLE), x=given(1)) | {"templates/q.yaml": pod(asking(_LIMITS_ALONE), name="q")},
        REQUESTED,
    ),
    "requests of values beside limits under another condition": (
        of(
            pod(
                "\n      {{- if .Values.limited }}\n      limits:"
                f" {_LIMITS_ALONE}\n      {{{{- end }}}}\n      requests: {_LIMITS_ALONE}"
            )
        ),
        REQUESTED,
    ),
    "requests of values beside limits of another map": (
        of(
            pod(asking(_LIMITS_ALONE, "{{- toYaml .Values.other.limits | nindent 8 }}")),
            all=f"other: {{limits: {{cpu: 1}}}}\nresources: {given(2)}\n",
        ),
        REQUESTED,
    ),
    "half of each amount in a loop": (
        of(pod(pairs("{{ $k }}: {{ divf $v 2 }}")), given(1)),
        OTHER,
    ),
    "thousandths of each amount in a loop": (of(pod(pairs("{{ $k }}: {{ $v }}m"))), UNKNOWN),
    "half of some amounts in a loop": (
        of(
            pod(
                pairs('{{ $k }}: {{ if eq $k "cpu" }}{{ $v }}{{ else }}{{ mulf $v 0.5 }}{{ end }}')
            ),
            given(1),
        ),
        OTHER,
    ),
    "a fraction instead of 0 in a loop": (
        of(pod(pairs("{{ $k }}: {{ $v | default 0.5 }}")), given(0)),
        PART,
    ),
    "amounts in a text that is changed": (
        of(pod(f'\n      limits: {{{{- toYaml {LIMITS} | replace "2" "0.5" | nindent 8 }}}}')),
        OTHER,
    ),
    "amounts of another loop": (
        of(
            pod(
                f"\n      limits:\n        {{{{- range $k, $_ := {LIMITS} }}}}"
                "\n        {{- range $_, $v := $.Values.counts }}\n        {{ $k }}: {{ $v }}"
                "\n        {{- end }}\n        {{- end }}"
            ),
            all=f"counts: [0.5]\nresources: {given(2)}\n",
        ),
        PART,
    ),
    "a Queue of Volcano": (
        of(
            of_kind(
                "scheduling.volcano.sh/v1beta1",
                "Queue",
                f"spec:\n  capability: {{{{- toYaml {LIMITS} | nindent 4 }}}}",
            )
        ),
        "in kind Queue",
    ),
    "a PodGroup": (
        of(
            of_kind(
                "scheduling.volcano.sh/v1beta1",
                "PodGroup",
                f"spec:\n  minResources:\n    {{{{- toYaml {LIMITS} | nindent 4 }}}}",
            )
        ),
        "in kind PodGroup",
    ),
    "a NodePool": (
        of(of_kind("karpenter.sh/v1", "NodePool", f"spec:\n  limits: {{{{ toJson {LIMITS} }}}}")),
        "in kind NodePool",
    ),
    "names in a ClusterQueue": (
        of(
            of_kind(
                "kueue.x-k8s.io/v1beta1",
                "ClusterQueue",
                "spec:\n  resourceGroups:\n"
                f"  - coveredResources: [cpu{{{{- range $k, $v := {LIMITS} }}}}, "
                '"{{ $k }}"{{ end }}]',
            )
        ),
        PART,
    ),
    "a kind that is computed": (
        of(
            of_kind(
                "v1",
                '{{ include "k" . }}',
                "spec:\n  limits:\n  - type: Container\n    default: "
                f"{{{{- toYaml {LIMITS} | nindent 6 }}}}",
            ),
            h=helper("LimitRange", "k"),
        ),
        "in an object of a kind that is not known",
    ),
    "a kind by a condition": (
        of(
            pod(WHOLE)
            + "---\n"
            + pod(WHOLE, name="q").replace(
                "kind: Pod", "kind: {{ if .Values.other }}Other{{ else }}Pod{{ end }}"
            ),
            all=f"other: true\nresources: {given(2)}\n",
        ),
        "in an object of a kind that is not known",
    ),
    "resources of a kind that is not known": (
        of(
            pod(WHOLE)
            + "---\n"
            + pod(WHOLE, name="q")
            .replace("kind: Pod", "kind: Sandbox")
            .replace("apiVersion: v1", "apiVersion: example.com/v1")
        ),
        "in kind Sandbox",
    ),
    "a helper in a quota, too": (
        of(
            of_kind("v1", "ResourceQuota", 'spec:\n  hard: {{- include "m" . | nindent 4 }}'),
            h=helper(f"{{{{ toYaml {LIMITS} }}}}", "m"),
        ),
        "in kind ResourceQuota",
    ),
    "amounts of a helper in another object, too": (
        of(
            pod('{{- include "m" . | nindent 6 }}')
            + "---\napiVersion: example.com/v1\nkind: Sandbox\nmetadata: {name: o}\n"
            'spec: {{- include "m" . | nindent 2 }}\n',
            "{}",
            h=helper(f"limits:\n  {OLD}: 2", "m"),
        ),
        "in kind Sandbox",
    ),
    "arguments of the container": (
        of(pod(WHOLE).replace("    resources:", _ARGS)),
        UNKNOWN,
    ),
    "an annotation": (
        of(pod(WHOLE).replace("metadata:\n  name: p\n", f"{_NAMED}\n")),
        UNKNOWN,
    ),
    "names of variables": (
        of(
            pod(WHOLE).replace(
                "    resources:",
                f"    env:\n    {{{{- range $k, $v := {LIMITS} }}}}\n"
                "    - {name: {{ $k | quote }}}\n    {{- end }}\n    resources:",
            )
        ),
        PART,
    ),
    "all values in an annotation": (
        of(
            pod(WHOLE).replace(
                "  name: p\n",
                "  name: p\n  annotations:\n    given: {{ toYaml .Values | quote }}\n",
            )
        ),
        UNKNOWN,
    ),
    "a key that an action makes": (
        of(
            pod(f"\n      {{{{ .Values.section }}}}: {{{{- toYaml {LIMITS} | nindent 8 }}}}"),
            all=f"section: requests\nresources: {given(2)}\n",
        ),
        PART,
    ),
    "a helper whose first column is trimmed": (
        of(pod('\n{{ template "m" . }}'), h=_COLUMNS),
        "in kind Pod",
    ),
    "amounts with a unit of other values in a loop": (
        of(
            pod(pairs("{{ $k }}: {{ $v }}{{ $.Values.unit }}")),
            all=f"unit: m\nresources: {given(500)}\n",
        ),
        UNKNOWN,
    ),
    "amounts that a condition in a loop changes": (
        of(
            pod(pairs("{{- if $.Values.half }}{{ $v = 0.5 }}{{ end }}\n        " + _PLAIN)),
            all=f"half: true\nresources: {given(2)}\n",
        ),
        PART,
    ),
    "a map that an action makes of limits, as requests": (
        of(pod(f'{{{{- toYaml (dict "requests" {LIMITS}) | nindent 6 }}}}')),
        OTHER,
    ),
    "the same for a helper": (
        of(
            pod(f'{{{{- include "m" (dict "requests" {LIMITS}) | nindent 6 }}}}'),
            h=helper("{{ toYaml . }}", "m"),
        ),
        OTHER,
    ),
    "resources without their limits": (
        of(
            pod(
                f'{{{{- toYaml (omit (set (deepCopy .Values.resources) "requests" {LIMITS})'
                ' "limits") | nindent 6 }}'
            )
        ),
        OTHER,
    ),
    "values that an action changes": (
        of(
            pod(
                f'\n      {{{{- $_ := set .Values.resources "requests" {LIMITS} }}}}'
                '\n      {{- $_ := unset .Values.resources "limits" }}'
                "\n      {{- toYaml .Values.resources | nindent 6 }}"
            )
        ),
        OTHER,
    ),
    "a section of another branch": (
        of(
            pod(
                "\n      {{- if .Values.x }}\n      limits:\n      {{- else }}\n      requests:"
                f"\n      {{{{- end }}}}\n        {{{{- toYaml {LIMITS} | nindent 8 }}}}"
            )
        ),
        REQUESTED,
    ),
}

# Templates that keep the amounts as they are: they must be migrated, with all values.
KEPT: dict[str, Files] = {
    "pods that are named after what has the amounts further inside": {
        "templates/p.yaml": "{{- range $name, $p := .Values.pools }}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: 'p{{ $name }}'}\nspec:\n  containers:\n"
        "  - name: c\n    image: i\n    resources:\n      {{- toYaml $p.resources | nindent 6 }}\n"
        f"{TOLERATED}{{{{- end }}}}\n",
        "values.yaml": f"pools:\n  a:\n    resources:\n      limits:\n        {OLD}: 1\n",
    },
    "all of the resources": of(pod(WHOLE), x=given(4), y=given(0)),
    "resources in a file of the chart": {
        "templates/p.yaml": pod('\n{{ .Files.Get "cfg/r.yaml" | indent 6 }}'),
        "values.yaml": "x: 1\n",
        "cfg/r.yaml": f"limits:\n  {OLD}: 1\n",
    },
    "data of files without amounts": {
        **of_file('{{ (.Files.Glob "data/*").AsConfig | indent 2 }}'),
        "cfg/r.yaml": "x: 1\n",
        "data/x.yaml": "x: 1\n",
        "values.yaml": f"resources: {given(1)}\n",
        "templates/p.yaml": pod(WHOLE),
    },
    "resources of each worker": of(
        workers("{{- toYaml .resources | nindent 6 }}"), all=over("{}", given(1), given(2, 2))
    ),
    "a worker's limit over a limit": of(workers(MERGED), all=over(given(1), given(4), "{}")),
    "a worker's limit under a limit": of(workers(UNDER), all=over(given(1), given(4), "{}")),
    "a worker's both over both": of(workers(MERGED), all=over(given(1, 1), given(4, 4), "{}")),
    "the same amount in all forms": of(
        workers(MERGED), all=over(given(1, 1), given(1), given(1, name=NEW), given(None, 1))
    ),
    "no limit over a limit": of(
        workers(MERGED), all=over(given(2), "{limits: {cpu: 1}}", given(3))
    ),
    "a limit over one of a helper": of(
        pod(FROM_HELPER), "{}", h=helper(f"limits:\n  {OLD}: 2"), x=given(1)
    ),
    "an amount of a helper in two forms, over equal ones": of(
        pod(FROM_HELPER),
        "{}",
        h=helper(
            f"limits:\n  {OLD}: {{{{ .Values.n | default 2 }}}}\n"
            f"requests:\n  {OLD}: {{{{ default 2 .Values.n }}}}"
        ),
        x=given(4, 4),
    ),
    "a merge of labels": of(
        pod(WHOLE).replace(
            "  name: p\n",
            '  name: p\n  labels: {{- toYaml (merge .Values.labels (dict "app" "x"))'
            " | nindent 4 }}\n",
        ),
        all=f"labels: {{team: ml}}\nresources: {given(1, 2)}\n",
        x=given(2, 2),
    ),
    "sections with equal amounts": of(pod(SECTIONS), given(2, 2), x=given(4, 4)),
    "a condition on limits that a run keeps": of(asked(LIMITS), given(2, 2), x=given(4, 4)),
    "a number of workers": of(
        asked("gt (len .Values.workers) 1").replace(
            WHOLE, "{{- toYaml (index .Values.workers 0).resources | nindent 6 }}"
        ),
        all=over("{}", given(1, 1), given(4, 4)),
    ),
    "limits alone": of(pod(f"\n      limits: {{{{- toYaml {LIMITS} | nindent 8 }}}}"), x=given(4)),
    "limits in a loop": of(
        pod(
            "\n      limits:\n        cpu: 1"
            f"\n        {{{{- range $k, $v := {LIMITS} }}}}"
            "\n        {{ $k }}: {{ $v | quote }}\n        {{- end }}"
        )
    ),
    "a choice of defaults": of(
        workers("{{- toYaml (.resources | default $.Values.defaults.resources) | nindent 6 }}"),
        all=over(given(1, 1), given(4), "{}"),
    ),
    "defaults that an action builds": of(
        pod('{{- toYaml (default (dict "limits" (dict "cpu" 1)) .Values.resources) | nindent 6 }}')
    ),
    "a word of both names": of(asked('contains "nvidia" (toYaml .Values.resources)')),
    "a word of both names at the end": of(
        pod(
            WHOLE,
            f"  {{{{- range $k, $v := {LIMITS} }}}}\n"
            '  {{- if hasSuffix "gpu" $k }}\n  nodeSelector: {pool: a}\n'
            "  {{- end }}\n  {{- end }}\n",
        )
    ),
    "a kind of device in other values": of(
        asked('eq .Values.accelerator "nvidia"'),
        all=f"accelerator: nvidia\nresources: {given(2)}\n",
    ),
    "a part of the name in another value": of(
        asked('hasPrefix "nvidia" .Values.image'),
        all=f"image: nvidia/cuda\nresources: {given(2)}\n",
    ),
    "a member with a word of the name": of(
        asked('hasKey .Values "gpu"'), all=f"gpu: true\nresources: {given(1, 2)}\n", x=given(2, 2)
    ),
    "the current name as the key of a toleration": of(
        pod(
            WHOLE,
            f'  {{{{- range .Values.tolerations }}}}\n  {{{{- if eq .key "{NEW}" }}}}\n'
            "  nodeSelector: {pool: a}\n  {{- end }}\n  {{- end }}\n",
        ),
        all=f"tolerations: [{{key: {NEW}}}]\nresources: {given(2)}\n",
    ),
    "the name of a helper, and text": of(
        pod(WHOLE).replace("name: p", 'name: {{ include "nvidia.com/gpu.name" . | trunc 63 }}'),
        given(1, 2),
        h=helper('{{- printf "nvidia-gpu-%s" .Release.Name | lower }}', "nvidia.com/gpu.name"),
        x=given(2, 2),
    ),
    "a condition on another section": of(asked(".Values.resources.limits"), given(2), x=given(3)),
    "a helper with the values of a worker": of(
        workers('{{- include "r" (dict "mine" .resources "root" $) | nindent 6 }}'),
        h=helper("{{- toYaml .mine }}", "r"),
        all=over("{}", given(1), given(2, 2)),
    ),
    "an amount that the template writes": of(
        pod(
            f"\n      limits:\n        {OLD}: {{{{ .Values.gpus }}}}"
            "\n        {{- with .Values.more }}\n        {{- toYaml . | nindent 8 }}"
            "\n        {{- end }}"
        ),
        all="gpus: 2\nmore: {cpu: 1}\n",
    ),
    "requests and limits of the same limits": of(
        pod(asking(_LIMITS_ALONE, _LIMITS_ALONE)), x=given(4)
    ),
    "a map that an action makes of limits": of(
        pod(f'{{{{- toYaml (dict "limits" {LIMITS} "requests" {LIMITS}) | nindent 6 }}}}')
    ),
    "sections under their own conditions": of(
        pod(
            "\n      {{- with .Values.resources }}\n      {{- with .limits }}\n      limits:"
            "\n        {{- toYaml . | nindent 8 }}\n      {{- end }}"
            "\n      {{- with .requests }}\n      requests:"
            "\n        {{- toYaml . | nindent 8 }}\n      {{- end }}\n      {{- end }}"
        ),
        given(2, 2),
        x=given(4, 4),
    ),
    "sections in loops": of(
        pod(pairs(_PLAIN) + pairs(_PLAIN, "requests", LIMITS.replace("limits", "requests"))),
        given(2, 2),
    ),
    "both sections in one loop": of(
        pod(
            "\n      {{- range $section, $given := .Values.resources }}"
            "\n      {{ $section }}: {{- toYaml $given | nindent 8 }}\n      {{- end }}"
        ),
        x=given(4),
    ),
    "resources of a workload in one of two versions": of(
        "{{- if .Values.old }}\napiVersion: v1\n{{- else }}\napiVersion: v1\n{{- end }}\n"
        + pod(WHOLE).replace("apiVersion: v1\n", "")
    ),
    "a helper in columns of its own": of(
        pod('\n{{ template "m" . }}'),
        h=_COLUMNS.replace("-}}", "}}"),
    ),
    "a helper with the whole pod": of(
        '{{ include "p" . }}\n', h=helper(pod(WHOLE), "p"), x=given(4)
    ),
    "a helper with the container": of(
        f'{HEAD.format("p")}{TOLERATED}  containers:\n  {{{{- include "m" . | nindent 2 }}}}\n',
        h=helper(
            "- name: c\n  image: i\n  resources: {{- toYaml .Values.resources | nindent 4 }}", "m"
        ),
    ),
    "lines of other values in columns of their own": of(
        pod(
            WHOLE,
            "  nodeSelector:\n{{ toYaml .Values.nodes | indent 4 }}\n  hostNetwork: false\n",
        ),
        all=f"nodes: {{pool: a}}\nresources: {given(2)}\n",
    ),
    "a variable with the resources": of(
        pod("{{- toYaml $r | nindent 6 }}", before="{{- $r := .Values.resources }}\n")
    ),
    "a variable of the same name in another loop": of(
        pod(
            pairs(_PLAIN),
            "  nodeSelector:\n    {{- range $k, $v := .Values.nodes }}"
            "\n    {{ $k }}: {{ $v }}\n    {{- end }}\n",
        ),
        all=f"nodes: {{pool: a}}\nresources: {given(2)}\n",
    ),
    "a helper that any value goes through": of(
        pod(WHOLE).replace("name: p", 'name: {{ include "q" .Values.name }}'),
        all=f"name: p\nresources: {given(2)}\n",
        h=helper("{{ . | quote }}", "q"),
    ),
    "a helper that any value goes through, with all others": of(
        pod('{{- include "t" (dict "value" .Values.resources "all" $) | nindent 6 }}').replace(
            "  name: p\n",
            "  name: p\n  labels:\n"
            '    {{- include "t" (dict "value" .Values.labels "all" $) | nindent 4 }}\n',
        ),
        all=f"labels: {{a: b}}\nresources: {given(2)}\n",
        h=helper(
            '{{- if typeIs "string" .value }}\n{{- tpl .value .all }}\n{{- else }}\n'
            "{{- tpl (toYaml .value) .all }}\n{{- end }}",
            "t",
        ),
    ),
    "a check of the values above the resources": of(
        pod(
            '\n      {{- if not .Values.resources }}\n      {{- fail "no resources" }}'
            f"\n      {{{{- end }}}}\n      {WHOLE}"
        )
    ),
    "a number of limits": of(noted("{{ len .Values.resources.limits | quote }}")),
    "notes that print the resources": of(pod(WHOLE))
    | {NOTES: '{{ toYaml .Values.resources }}\n{{ required "a" .Values.resources }}\n'},
    "notes that only print whether there are GPUs": of(pod(WHOLE))
    | {NOTES: f'{{{{ if hasKey .Values.resources.limits "{NEW}" }}}}GPUs{{{{ end }}}}\n'},
    "notes with amounts in their text": of(workers(MERGED), all=over(given(2), given(1)))
    | {NOTES: f"limits:\n  {NEW}: 7 # {{{{ required `a` .Values.defaults }}}}\n"},
    "notes that end without resources": of(pod(WHOLE))
    | {NOTES: '{{ if not .Values.resources }}{{ fail "no resources" }}{{ end }}\n'},
    "a comment with the current name": of(
        '{{/* hasKey .Values.resources.limits "nvidia.com/gpu" */}}\n' + pod(WHOLE)
    ),
}
# The objects have another checksum once.
CHECKSUMS: dict[str, Files] = {
    "a checksum of all values in an annotation": of(noted("{{ toYaml .Values | sha256sum }}")),
    "a checksum of the resources": of(noted("{{ .Values.resources | toJson | sha512sum }}")),
    "a short checksum of the resources": of(
        noted("{{ adler32sum (toYaml .Values.resources) | quote }}")
    ),
    "a checksum in a label": of(
        noted("{{ toYaml .Values | sha1sum | trunc 8 }}").replace("annotations", "labels")
    ),
    "a checksum in a name": of(
        pod(WHOLE).replace("name: p", "name: p-{{ toYaml .Values | sha256sum | trunc 8 }}", 1)
    ),
    "a checksum in a variable of a container": of(
        pod(f"{WHOLE}\n    env: [{{name: S, value: '{{{{ toYaml .Values | sha256sum }}}}'}}]")
    ),
}
# Helm would end with an error.
ENDING: dict[str, tuple[Files, str]] = {
    "notes that end without the current name": (
        of(pod(WHOLE))
        | {
            NOTES: f'Hello\n{{{{ if not (hasKey .Values.resources.limits "{NEW}") }}}}'
            '{{ fail "no GPUs" }}{{ end }}\n'
        },
        "hasKey",
    ),
    "a check that only notes use": (
        of(
            pod(WHOLE),
            h=helper(f'{{{{ if not (hasKey .r "{NEW}") }}}}{{{{ fail "" }}}}{{{{ end }}}}', "v"),
        )
        | {NOTES: '{{ include "v" (dict "r" .Values.resources.limits) }}\n'},
        "hasKey",
    ),
}
