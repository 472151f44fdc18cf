"""Templates: what is edited in them, what is not, and that nothing else ever changes."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats import templated
from webhook.formats.migrate import migrate_text
from webhook.templates import actions

if TYPE_CHECKING:
    from webhook.files.results import FileResult

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"


def migrated(text: str, kind: str = "helm") -> FileResult:
    return templated.migrate(Source.of_text("templates/x.yaml", text, kind), Plan())


def pod(limits: str, more: str = "") -> str:
    """A pod template with these lines below limits, and `more` at the end of its spec."""
    head = textwrap.dedent("""\
        apiVersion: v1
        kind: Pod
        metadata:
          name: {{ .Release.Name }}
        spec:
          tolerations:
          - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
          containers:
          - name: main
            image: {{ .Values.image }}:{{ .Values.tag }}
            resources:
              limits:
        """)
    return head + textwrap.indent(textwrap.dedent(limits), " " * 8) + textwrap.dedent(more)


NO_ROOM = {
    "a list that `with` makes": """\
  {{- with .Values.tolerations }}
  tolerations:
  {{- toYaml . | nindent 2 }}
  {{- end }}
""",
    "the same under a condition": """\
  {{- if .Values.tolerations }}
  tolerations:
  {{ toYaml .Values.tolerations | indent 2 | trim }}
  {{- end }}
""",
    "the same at the left": """\
  {{- if .Values.tolerations }}
  tolerations:
{{ toYaml .Values.tolerations | indent 2 }}
  {{- end }}
""",
}
TOLERATED = "  tolerations:\n  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n"


@pytest.mark.parametrize("tolerations", NO_ROOM.values(), ids=NO_ROOM)
def test_no_item_goes_behind_the_condition_of_its_list(tolerations: str) -> None:
    """Else it is an item of the list above, the containers, where the condition is not met."""
    text = pod(f"{OLD}: 1\n").replace(TOLERATED, "") + tolerations
    assert migrated(text).new_text == text.replace(OLD, NEW)


RENAMED = {
    "the amount is an action": f"{OLD}: {{{{ .Values.gpus }}}}\n",
    "the amount is an action in quotes": f'{OLD}: "{{{{ .Values.gpus }}}}"\n',
    "the amount goes through a filter": f"{OLD}: {{{{ .Values.gpus | quote }}}}\n",
    "the amount is an action with a default in quotes": f'{OLD}: {{{{ .x | default "1" }}}}  # n\n',
    "the name is quoted": f'"{OLD}": 1\n',
    "in flow style": f"{{cpu: 1, {OLD}: {{{{ .n }}}}}}\n",
    "under a condition on the same line": f"{{{{ if .gpu }}}}{OLD}: {{{{ .n }}}}{{{{ end }}}}\n",
    "below an include": f'{{{{- include "limits" . | nindent 8 }}}}\n{OLD}: 1\n',
    "in both arms": (f"{{{{- if .a }}}}\n{OLD}: 1\n{{{{- else }}}}\n{OLD}: 2\n{{{{- end }}}}\n"),
    "beside the new name in the other arm": (
        f"{{{{- if .a }}}}\n{OLD}: {{{{ .n }}}}\n"
        f"{{{{- else }}}}\n{NEW}: {{{{ .n }}}}\n{{{{- end }}}}\n"
    ),
    "in an else-if beside two others": (
        f"{{{{- if .a }}}}\nx.com/y: 1\n{{{{- else if .b }}}}\n{OLD}: 1\n"
        f"{{{{- else }}}}\n{NEW}: 1\n{{{{- end }}}}\n"
    ),
    "beside the new name under the contrary condition": (
        f"{{{{- if .a }}}}\n{OLD}: 1\n{{{{- end }}}}\n"
        f"{{{{- if not .a }}}}\n{NEW}: 1\n{{{{- end }}}}\n"
    ),
    "beside the new name where another thing is equal": (
        f'{{{{- if eq .a "x" }}}}\n{OLD}: 1\n{{{{- end }}}}\n'
        f'{{{{- if ne .a "x" }}}}\n{NEW}: 1\n{{{{- end }}}}\n'
    ),
    "in a range": f"{{{{- range .all }}}}\n{OLD}: {{{{ .n }}}}\n{{{{- end }}}}\n",
}


@pytest.mark.parametrize("limits", RENAMED.values(), ids=RENAMED)
def test_the_name_is_renamed_and_nothing_else_changes(limits: str) -> None:
    text = (
        pod(limits)
        if not limits.startswith("{cpu")
        else pod("").replace("limits:\n", f"limits: {limits}")
    )
    result = migrated(text)
    assert result.new_text == text.replace(OLD, NEW)
    assert [each.code for each in result.located if each.status is Status.MANUAL] == []


LEFT = {
    "both names can be there at once": (
        f"{{{{- if .a }}}}\n{OLD}: 1\n{{{{- end }}}}\n{{{{- if .b }}}}\n{NEW}: 1\n{{{{- end }}}}\n"
    ),
    "a name that is made by the template": '{{ printf "%s/%s" "alpha.x" "nvidia-gpu" }}: 1\n',
    "a name in an expression": f'{{{{ index .Values "{OLD}" }}}}\n',
    "a name in a Go comment": f"{{{{/* {OLD}: 1 */}}}}\ncpu: 1\n",
    "a name in a Jinja comment": f"{{# {OLD}: 1 #}}\ncpu: 1\n",
    "a name in a YAML comment": f"# {OLD}: 1\ncpu: 1\n",
}


@pytest.mark.parametrize("limits", LEFT.values(), ids=LEFT)
def test_it_is_left_as_it_is(limits: str) -> None:
    result = migrated(pod(limits))
    assert result.new_text is None
    wants_finding = OLD in limits
    assert bool(result.located) is wants_finding
    for each in result.located:
        assert "write" in each.message or "delete" in each.message
        assert OLD in result.text.splitlines()[each.place.line - 1]


def test_jinja_arms_are_arms_too() -> None:
    text = pod(
        f"{{% if old %}}\n{OLD}: {{{{ n }}}}\n{{% else %}}\n{NEW}: {{{{ n }}}}\n{{% endif %}}\n"
    ).replace("{{ .", "{{ ")
    assert migrated(text, "jinja").new_text == text.replace(OLD, NEW)


def test_two_names_with_one_amount() -> None:
    text = pod(f"{OLD}: {{{{ .a }}}}\n{NEW}: {{{{ .a }}}}\n")
    result = migrated(text)
    assert result.new_text == text.replace(f"        {OLD}: {{{{ .a }}}}\n", "")
    assert [each.code for each in result.located] == ["GPU101"]


TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
WORKLOAD = textwrap.dedent(f"""\
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: {{{{ .Release.Name }}}}
    spec:
      selector:
        matchLabels: {{app: x}}
      template:
        metadata:
          labels: {{app: x}}
          annotations:
            checksum: {{{{ .sum }}}}
            {TOLERATIONS}: '[{{"key":"a","operator":"Exists"}}]'
        spec:
          containers:
          - name: main
            image: {{{{ .Values.image }}}}
    """)
MOVED = "      tolerations:\n      - key: a\n        operator: Exists\n"


def test_a_literal_annotation_moves_to_the_spec() -> None:
    lines = WORKLOAD.splitlines(keepends=True)
    without = "".join(line for line in lines if TOLERATIONS not in line)
    assert migrated(WORKLOAD).new_text == without + MOVED


def test_what_is_added_goes_behind_the_condition_at_the_end_of_the_spec() -> None:
    end = "      {{- with .Values.nodeSelector }}\n      nodeSelector:\n"
    end += "{{ toYaml . | indent 8 }}\n      {{- end }}\n"
    result = migrated(WORKLOAD + end)
    assert result.new_text is not None
    assert result.new_text.endswith(end + MOVED)


@pytest.mark.parametrize(
    "end",
    [
        (
            "      {{- if .Values.tolerations }}\n      tolerations:\n"
            "{{ toYaml .Values.tolerations | indent 8 }}\n      {{- end }}\n"
        ),
        "      tolerations:\n{{ toYaml .Values.tolerations | indent 8 }}\n",
        '      {{- include "more" . | nindent 6 }}\n',
        "      dnsPolicy: {{ .dns -}}\n",
    ],
    ids=[
        "tolerations under a condition",
        "tolerations that the values give",
        "members that an include writes",
        "a trim that would join the lines",
    ],
)
def test_nothing_is_added_where_the_template_may_write_too(end: str) -> None:
    result = migrated(WORKLOAD + end)
    assert result.new_text is None
    assert [each.status for each in result.located if each.code == "GPU107"] == [Status.MANUAL]


_OLD_DEPLOYMENT = """\
apiVersion: extensions/v1beta1
kind: Deployment
metadata:
  name: {{ name }}
spec:
  template:
    metadata:
      labels:
        app: {{ name }}
    spec:
      containers:
      - name: main
        image: {{ image }}
GPUS"""
UNDER_A_CONDITION = {
    "of Jinja": (
        "jinja",
        f"{{% if gpus %}}\nresources:\n  limits:\n    {OLD}: {{{{ gpus }}}}\n{{% endif %}}\n",
    ),
    "in a loop": (
        "jinja",
        (
            f"{{% for s in sides %}}\n- name: {{{{ s.name }}}}\n{{% if s.gpus %}}\n  resources:\n"
            f"    limits:\n      {OLD}: {{{{ s.gpus }}}}\n{{% endif %}}\n{{% endfor %}}\n"
        ),
    ),
    "of Helm": (
        "helm",
        f"{{{{- if .gpus }}}}\nresources:\n  limits:\n    {OLD}: {{{{ .gpus }}}}\n{{{{- end }}}}\n",
    ),
    "with another arm": (
        "jinja",
        (
            f"{{% if gpus %}}\nresources:\n  limits:\n    {OLD}: {{{{ gpus }}}}\n"
            "{% else %}\nresources: {}\n{% endif %}\n"
        ),
    ),
}


@pytest.mark.parametrize(("kind", "gpus"), UNDER_A_CONDITION.values(), ids=UNDER_A_CONDITION)
def test_a_toleration_goes_with_what_an_old_version_needs_at_the_same_place(
    kind: str, gpus: str
) -> None:
    """Only one way of the condition wants the toleration; both want what stands beside it."""
    by = "      " if gpus.startswith("{% for") else "        "
    result = migrated(_OLD_DEPLOYMENT.replace("GPUS", textwrap.indent(gpus, by)), kind)
    assert {each.status for each in result.located} == {Status.FIXABLE, Status.NOTICE}
    new = result.new_text or ""
    assert new.count("      tolerations:\n      - key: nvidia.com/gpu\n") == 1
    assert [new.count(f"  {each}:\n") for each in ("strategy", "selector")] == [1, 1]


TOLERATIONS_UNDER_A_CONDITION = {
    "the same as that of the GPUs": ("gpu", "gpu", True),
    "one around that of the GPUs": ("gpu", "gpu %}{% if large", True),
    "another": ("dedicated", "gpu", False),
    "a part of that of the GPUs": ("gpu and dedicated", "gpu", False),
    "its opposite": ("not gpu", "gpu", False),
}


@pytest.mark.parametrize(
    ("given", "wanted", "is_done"),
    TOLERATIONS_UNDER_A_CONDITION.values(),
    ids=TOLERATIONS_UNDER_A_CONDITION,
)
def test_a_toleration_is_added_below_the_condition_that_its_gpus_are_under(
    given: str, wanted: str, *, is_done: bool
) -> None:
    ends = "{% endif %}" * (wanted.count("{% if") + 1)
    text = (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{{{ name }}}}\nspec:\n"
        f"{{% if {given} %}}\n  tolerations:\n  - {{key: dedicated}}\n{{% endif %}}\n"
        f"  containers:\n  - name: a\n{{% if {wanted} %}}\n    resources:\n"
        f"      limits: {{{OLD}: 1}}\n{ends}\n"
    )
    result = migrated(text, "jinja")
    (status,) = {each.status for each in result.located if each.code == "GPU201"}
    assert status is (Status.FIXABLE if is_done else Status.NOTICE)
    assert (result.new_text or "").count("key: nvidia.com/gpu") == is_done
    assert OLD not in (result.new_text or "")


def test_a_toleration_that_was_held_is_not_said_to_be_done_once_the_name_is_of_today() -> None:
    """A second run has no reason to ask for it any more: that does not write it."""
    text = pod(f"{OLD}: {{{{ .n }}}}\n", '  {{ include "more" . | nindent 2 }}\n')
    text = text.replace(
        "  tolerations:\n  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n", ""
    )
    result = migrated(text)
    assert result.new_text == text.replace(OLD, NEW)
    held = [each for each in result.located if each.code == "GPU201"]
    assert [each.status for each in held] == [Status.NOTICE]
    assert "not done here" in held[0].message


BELOW_A_KEY = {
    "at the left margin, with its own indent": "    env:\n{{ toYaml .Values.env | indent 4 }}\n",
    "deeper than the key": "    env:\n{{ toYaml .Values.env | indent 6 }}\n",
    "of the pod": "  volumes:\n{{ toYaml .Values.volumes | indent 4 }}\n",
    "in a block scalar": '    args:\n    - |\n{{ "a" | indent 6 }}\n',
    "in a block scalar with a remark": '    args:\n    - |-  # text\n{{ "a" | indent 6 }}\n',
    "that trims": "    env:\n{{- toYaml .Values.env | nindent 4 }}\n",
    "without a line end": "    env:\n{{ toYaml .Values.env | indent 4 }}",
    "in an item": "    args:\n    -\n{{ toYaml .Values.x | indent 6 }}\n",
    "of a quoted key": '    "env":\n{{ toYaml .Values.env | indent 4 }}\n',
    "before another": "    env:\n{{ toYaml .a | indent 4 }}\n\n{{- toYaml .b | nindent 4 }}\n",
    "before a condition": (
        "    env:\n{{ toYaml .a | indent 4 }}\n{{- if .b }}\n    - {name: b}\n{{- end }}\n"
    ),
}
UNTOLERATED = pod(f"{OLD}: 1\n").replace(
    "  tolerations:\n  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n", ""
)
TOLERATION = (
    "  tolerations:\n  - key: nvidia.com/gpu\n    operator: Exists\n    effect: NoSchedule\n"
)


@pytest.mark.parametrize("tail", BELOW_A_KEY.values(), ids=BELOW_A_KEY)
def test_what_is_added_goes_behind_an_action_that_indents_all_its_lines_deeper(tail: str) -> None:
    text = UNTOLERATED.replace(OLD, NEW) + tail
    added = TOLERATION if tail.endswith("\n") else f"\n{TOLERATION}".removesuffix("\n")
    assert migrated(UNTOLERATED + tail).new_text == text + added


MAY_BELONG_ABOVE = {
    "below a comment": "    env:\n# c\n{{ toYaml .Values.env | indent 4 }}\n",
    "without an indent": '    env:\n{{ include "env" . }}\n',
    "with an indent that is trimmed": "    env:\n{{ toYaml .Values.env | indent 4 | trim }}\n",
    "with an indent of another text": "    env:\n{{ toYaml (indent 4 .Values.env) }}\n",
    "in Jinja's words, which leave the first line": "    env:\n{{ env | indent(4) }}\n",
    "that takes away its line end": "    env:\n{{ toYaml .Values.env | indent 4 -}}\n",
    "behind one that indents": '    env:\n{{ toYaml .a | indent 4 }}\n{{ include "env" . }}\n',
    "no deeper than what is added": "  volumes:\n{{ toYaml .Values.volumes | indent 2 }}\n",
}


@pytest.mark.parametrize("tail", MAY_BELONG_ABOVE.values(), ids=MAY_BELONG_ABOVE)
def test_nothing_is_put_between_a_key_and_an_action_that_may_write_its_value(tail: str) -> None:
    result = migrated(UNTOLERATED + tail)
    assert result.new_text == UNTOLERATED.replace(OLD, NEW) + tail
    held = [each.status for each in result.located if each.code == "GPU201"]
    assert held == [Status.NOTICE]


def test_an_annotation_alone_under_a_condition_leaves_the_condition() -> None:
    text = WORKLOAD.replace("        checksum: {{ .sum }}\n", "        {{- if .a }}\n").replace(
        "    spec:\n      containers", "        {{- end }}\n    spec:\n      containers"
    )
    result = migrated(text)  # the pod of the other case has no toleration, so a person must say
    assert result.new_text is None
    assert [each.status for each in result.located] == [Status.MANUAL]


def test_a_version_goes_with_its_selector_or_not_at_all() -> None:
    selector = "  selector:\n    matchLabels: {app: x}\n"
    text = WORKLOAD.replace("apps/v1", "extensions/v1beta1").replace(selector, "")
    new = migrated(text).new_text
    assert new is not None
    assert "apiVersion: apps/v1\n" in new
    assert "  selector:\n    matchLabels:\n      app: x\n" in new
    hidden = text.replace("{app: x}", "{{ toYaml .labels | nindent 8 }}")
    assert "extensions/v1beta1" in (migrated(hidden).new_text or hidden)


def test_a_label_that_is_an_action_is_written_as_that_action() -> None:
    text = WORKLOAD.replace("apps/v1", "apps/v1beta1").replace(
        "  selector:\n    matchLabels: {app: x}\n", ""
    )
    text = text.replace("labels: {app: x}", 'labels:\n        app: {{ .a }}\n        v: "{{ .v }}"')
    new = migrated(text).new_text
    assert new is not None
    assert '    matchLabels:\n      app: {{ .a }}\n      v: "{{ .v }}"\n' in new


def test_values_are_renamed_below_whatever_name_they_have() -> None:
    text = f"worker:\n  res:\n    limits:\n      {OLD}: 2 # two\n    requests: {{cpu: 1}}\n"
    result = migrate_text(Source.of_text("chart/values.yaml", text), Plan())
    assert result.new_text == text.replace(OLD, NEW)


def test_a_text_that_is_no_yaml_is_renamed_by_its_lines() -> None:
    text = pod(f"{OLD}: {{{{ .n }}}}\n", "  : : not: yaml: at: all\n")
    result = migrated(text)
    assert result.new_text == text.replace(OLD, NEW)
    assert [skipped.place.line for skipped in result.skipped if skipped.place] == [1]


ARMS = {
    "Go": "1\n{{ if .x }}\n2\n{{ else if eq .y 0 }}\n3\n{{ else }}\n4\n{{ end }}\n5\n",
    "Jinja": "1\n{% if x %}\n2\n{% elif y == 0 %}\n3\n{% else %}\n4\n{% endif %}\n5\n",
}


@pytest.mark.parametrize("text", ARMS.values(), ids=ARMS)
def test_arms(text: str) -> None:
    template = actions.read(text)
    (block,) = template.blocks
    assert [text[arm.start : arm.end].strip() for arm in block.arms] == ["2", "3", "4"]
    one, two, three, four, five = (text.index(digit) for digit in "12345")
    assert template.is_either(two, three)
    assert template.is_either(two, four)
    assert template.is_either(three, four)
    assert not template.is_either(one, two)
    assert not template.is_either(four, five)
    assert not template.torn


@pytest.mark.parametrize(
    "text", ["{{ end }}", "{{ if x }}", "{% else %}", "{{ if", "{{/* }}", "{%"]
)
def test_a_torn_template_is_no_error(text: str) -> None:
    assert migrated(pod(f"{OLD}: 1\n") + text).error == ""


PIECES = st.sampled_from(
    [
        *(pod(f"{OLD}: {{{{ .n }}}}\n"), WORKLOAD, f"{OLD}: 1\n", f"  {OLD}: {{{{ n }}}}\n"),
        *("{{- if .a }}\n", "{{- else }}\n", "{{- end }}\n", "{% if a %}\n", "{% endif %}\n"),
        *("{{ range .x }}", "{{ end }}", "{{/* x */}}", "{# x #}", "---\n", "resources:\n"),
        *("  limits:\n", "    limits: {", "}\n", "[", "'", '"', "- ", "\t", "\r\n", "# x\n"),
        *("kind: List\nitems:\n", "\ua4b0\ua000", "|\n", "{{", "}}", "x: &a 1\n", "y: *a\n"),
        f'        {TOLERATIONS}: \'[{{"key": "{{{{ .k }}}}"}}]\'\n',
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=12), st.sampled_from(["helm", "jinja"]))
def test_whatever_text_comes(pieces: list[str], kind: str) -> None:
    text = "".join(pieces)
    result = migrated(text, kind)
    new = result.new_text
    assert result.error == ""
    if new is None:
        return
    assert migrated(new, kind).new_text is None
    # No action is ever touched, and nobody gets two names.
    assert _actions(new) >= _actions(text) - _amounts(text)
    for line in set(new.splitlines()) - set(text.splitlines()):
        assert OLD not in line


def _actions(text: str) -> set[str]:
    return set(re.findall(r"\{\{.*?\}\}|\{%.*?%\}", text))


def _amounts(text: str) -> set[str]:
    return {amount for line in text.splitlines() if OLD in line for amount in _actions(line)}


def driver(mounts: str = "", containers: str = "", volume: str = "nv", more: str = "") -> str:
    """A pod with the driver of an old node as a volume, and these mounts, containers, members."""
    mounted = mounts or "    volumeMounts:\n    - {name: nv, mountPath: /opt}\n"
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers:\n{containers}"
        "  - name: g\n    image: x\n    resources: {limits: {nvidia.com/gpu: 1}}\n"
        f"  - name: c\n    image: x\n    env:\n    - {{name: PATH, value: '/bin:/opt/bin'}}\n"
        f"{mounted}  volumes:\n  - name: {volume}\n"
        f"    hostPath: {{path: /usr/lib/nvidia-375}}\n  - name: d\n    emptyDir: {{}}\n{more}"
    )


MAY_BE_MOUNTED = {
    "the mounts are an include": driver('    volumeMounts: {{ include "m" . | nindent 4 }}\n'),
    "the mounts are one value": driver("    volumeMounts: {{ toJson .Values.m }}\n"),
    "the mounts are below their key": driver(
        "    volumeMounts:\n    {{- toYaml .Values.m | nindent 4 }}\n"
    ),
    "more mounts follow": driver(
        "    volumeMounts:\n    - {name: nv, mountPath: /a}\n{{ toYaml .Values.m | indent 4 }}\n"
    ),
    "a mount in flow style is an action": driver("    volumeMounts: [{{ .Values.m }}]\n"),
    "an item of the mounts is an action": driver(
        "    volumeMounts:\n    - {{ toYaml .Values.m | nindent 6 }}\n"
    ),
    "the name in a mount is an action": driver(
        "    volumeMounts:\n    {{- range .Values.m }}\n"
        "    - {name: {{ .name }}, mountPath: /x}\n    {{- end }}\n"
    ),
    "the name of the volume is an action": driver(
        "    volumeMounts:\n    - {name: '{{ .Values.v }}', mountPath: /x}\n",
        volume="'{{ .Values.v }}'",
    ),
    "a part of the name in a mount is an action": driver(
        "    volumeMounts:\n    - name: 'n{{ .Values.v }}'\n      mountPath: /x\n"
    ),
    "members of a container are an action": driver(
        containers="  {{- range .Values.cs }}\n  - name: {{ .x }}\n    image: y\n"
        "    {{- toYaml .rest | nindent 4 }}\n  {{- end }}\n"
    ),
    "a container is an action": driver(containers='  {{- include "side" . | nindent 2 }}\n'),
    "containers are under with": driver(
        containers="  {{- with .Values.more }}\n{{ toYaml . | indent 2 }}\n  {{- end }}\n"
    ),
    "init containers are an action": driver(more="  initContainers: {{ toJson .Values.i }}\n"),
    "members of the pod are an action": driver(more="  {{- toYaml .Values.p | nindent 2 }}\n"),
    "an action that may write anything anywhere": driver(more='{{ include "rest" . }}\n'),
    "a mount in the arm that is not in sight": driver(
        containers="  - name: b\n    image: y\n    volumeMounts:\n    {{- if .Values.a }}\n"
        "    - {name: d, mountPath: /d}\n    {{- else }}\n"
        "    - {name: nv, mountPath: /d}\n    {{- end }}\n"
    ),
}


@pytest.mark.parametrize("text", MAY_BE_MOUNTED.values(), ids=MAY_BE_MOUNTED)
def test_a_volume_that_the_template_may_mount_stays_with_all_its_mounts(text: str) -> None:
    result = migrated(text)
    assert result.new_text is None
    said = {each.status for each in result.located if each.code == "GPU109"}
    assert said == {Status.MANUAL}


IN_SIGHT = {
    "all mounts": driver(),
    "other actions below keys of their own": driver(
        more="  nodeSelector:\n    {{- toYaml .Values.n | nindent 4 }}\n"
        "  imagePullSecrets: {{ toJson .Values.p }}\n"
    ),
    "a mount whose name cannot be that of the volume": driver(
        "    volumeMounts:\n    - {name: nv, mountPath: /opt}\n"
        "    - {name: 'data-{{ .Values.x }}', mountPath: /d}\n"
    ),
    "resources are an action": driver(
        "    resources:\n      {{- toYaml .Values.r | nindent 6 }}\n"
        "    volumeMounts:\n    - {name: nv, mountPath: /opt}\n"
    ),
}


@pytest.mark.parametrize("text", IN_SIGHT.values(), ids=IN_SIGHT)
def test_a_volume_goes_where_all_of_its_mounts_are_in_sight(text: str) -> None:
    new = migrated(text).new_text
    assert new is not None
    assert "name: nv" not in new


AMOUNTS_OF_WHICH_A_PART_MAY_NOT_BE_WRITTEN = {
    "a request under a condition, which needs a limit": (
        "resources:\n  limits: {cpu: 1}\n  requests:\n    {{- if .r }}\n"
        f"    {OLD}: {{{{ .r }}}}\n    {{{{- end }}}}\n"
    ),
    "a request beside limits that the template makes": (
        f"resources:\n  requests: {{{OLD}: 1}}\n  limits:\n    {{{{- toYaml .l | nindent 4 }}}}\n"
    ),
}


@pytest.mark.parametrize(
    "resources",
    AMOUNTS_OF_WHICH_A_PART_MAY_NOT_BE_WRITTEN.values(),
    ids=AMOUNTS_OF_WHICH_A_PART_MAY_NOT_BE_WRITTEN,
)
def test_a_request_is_renamed_with_its_limit_or_not_at_all(resources: str) -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  tolerations:\n"
        f"  - {{key: {NEW}, operator: Exists}}\n  containers:\n  - name: c\n    image: x\n"
        + textwrap.indent(resources, "    ")
    )
    result = migrated(text)
    assert result.new_text is None
    assert {"GPU101"} <= {e.code for e in result.located if e.status is Status.MANUAL}


TWICE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata:
      labels: {a: b}
    spec:
      containers:
      - name: c
        image: x
        {{ if .Values.gpu }}
        securityContext:
          privileged: true
        resources:
          limits:
            nvidia.com/gpu: 1
        volumeMounts:
        - {mountPath: /dev/nvidia0, name: nvidia0}
        {{ end }}
        volumeMounts:
        - {name: tf, mountPath: /var/tensorflow}
      volumes:
      - {name: tf, emptyDir: {}}
      {{ if .Values.gpu }}
      - {name: nvidia0, hostPath: {path: /dev/nvidia0}}
      {{ end }}
"""


def test_what_only_a_way_with_a_name_that_stands_twice_shows_is_told() -> None:
    found = {(each.code, each.place.line, each.status) for each in migrated(TWICE).located}
    assert found == {("GPU109", 27, Status.MANUAL), ("GPU133", 15, Status.NOTICE)}
    assert migrated(TWICE).new_text is None


KINDS = {
    "{{ range(3) | list }}": "WRITES",
    "{{ range (3) }}": "OPENS",  # as in Go; Jinja is written without the blank
    "{{ range($i) }}": "WRITES",
    "{{ range .Values.x }}": "OPENS",
    "{{- range $i, $x := .Values.x -}}": "OPENS",
    "{{ block.super }}": "WRITES",
    "{{ block | indent }}": "WRITES",
    '{{ block "name" . }}': "OPENS",
    "{{- define `x` }}": "OPENS",
    "{{ define }}": "WRITES",
    "{{ filter | default('x') }}": "WRITES",
    "{{ call .f }}": "WRITES",
    "{{ macro ~ 'x' }}": "WRITES",
    "{{ for }}": "WRITES",
    "{{ with | x }}": "WRITES",
    "{{ with .x }}": "OPENS",
    "{{ if and .a .b }}": "OPENS",
    "{{ if (eq .a 1) }}": "OPENS",
    "{{ end }}": "ENDS",
    "{{ endpoint }}": "WRITES",
    "{{ end.x }}": "WRITES",
    "{{ else }}": "TURNS",
    "{{ else if .x }}": "TURNS",
    "{{ else with .x }}": "TURNS",
    "{{ elsewhere }}": "WRITES",
    "{{ from }}": "WRITES",
    "{{ set }}": "WRITES",
    "{{ break }}": "SILENT",
    "{{ $x := 1 }}": "SILENT",
    "{% for x in range(3) %}": "OPENS",
    "{% block x %}": "OPENS",
    "{% set x = 1 %}": "SILENT",
    "{% set x %}": "OPENS",
    "{% endset %}": "ENDS",
    "{% elif x %}": "TURNS",
    "{% include 'x' %}": "WRITES",
    "{% import 'x' as y %}": "SILENT",
}


@pytest.mark.parametrize("text", KINDS)
def test_the_kind_of_an_action(text: str) -> None:
    (action,) = actions.read_apart(text).actions
    assert action.kind.name == KINDS[text]


def test_a_go_template_needs_no_blank_after_range() -> None:
    made = actions.read("{{range(list 1 2)}}\na\n{{end}}\n{{if.x}}\nb\n{{end}}\n")
    assert (made.torn, [each.word for each in made.blocks]) == (False, ["range", "if"])


def test_many_calls_of_range_in_jinja_are_no_blocks() -> None:
    labels = "".join(f'    l{i}: "{{{{ range({i}) | length }}}}"\n' for i in range(60))
    text = (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n  labels:\n{labels}"
        + textwrap.dedent(
            f"""\
        spec:
          containers:
          - name: main
            resources: {{limits: {{{OLD}: {{{{ n }}}}}}}}
        """
        )
    )
    result = migrated(text, "jinja")
    assert (result.skipped, result.error) == ((), "")
    assert f"{NEW}: {{{{ n }}}}" in (result.new_text or "")


@pytest.mark.parametrize("name", [OLD, NEW])
def test_blocks_that_are_too_deep_are_an_error(name: str) -> None:
    """So that the exit code is not 0: no rule ran."""
    text = "{% if x %}\n" * 60 + pod(f"{name}: 1\n") + "{% endif %}\n" * 60
    result = migrated(text, "jinja")
    assert result.error == (
        "more than 50 blocks of the template are inside each other, so the rules did not run on "
        "it: check it manually"
    )


SCRIPT = """\
apiVersion: v1
kind: Pod
metadata:
  name: a
spec:
  containers:
  - name: a
    image: b
    command:
    - sh
    - -c
    - |
{{- if .Values.restartWhenTheFileChanges }}
      cp a b
{{- end }}
      exec c
    resources:
      limits:
        alpha.kubernetes.io/nvidia-gpu: 1
"""


@pytest.mark.parametrize("header", ["|", ">-", "|  # a script", "|\n{{/* nothing */}}\n"])
def test_a_text_that_begins_with_a_condition_is_read(header: str) -> None:
    """The condition becomes a line of blanks, and YAML allows none that is longer than the text."""
    text = SCRIPT.replace("    - |\n", f"    - {header}\n")
    result = migrate_text(Source.of_text("templates/x.yaml", text), Plan())
    assert result.skipped == ()
    assert result.new_text is not None
    assert "nvidia.com/gpu: 1" in result.new_text
    assert "#####" not in result.new_text
