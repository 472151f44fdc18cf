"""Charts whose actions write items of a list: which containers behind them are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.chart_flows import HEAD, NEW, OLD, TOLERATED, given, helper, of
from tests.projects.test_chart_flows import assert_all_wait, looked_at
from webhook.files.results import Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects.chart_flows import Files

SIDE = helper("- name: s\n  image: i", "s")
ONE = helper("- name: {{ .name }}\n  image: i\n  resources: {{- toYaml .own | nindent 4 }}", "c")
KEPT_HERE = "{{- toYaml .Values.resources | nindent 8 }}"


def include(name: str, column: int = 2, what: str = ".") -> str:
    return f'{{{{- include "{name}" {what} | nindent {column} }}}}'


def listed(*parts: str, column: int = 2, key: str = "containers") -> str:
    """A pod with these parts of its containers; `main` is the one that gets the values."""
    blanks = column * " "
    main = f"- name: c\n{blanks}  image: i\n{blanks}  resources: {KEPT_HERE}"
    lines = "".join(f"{blanks}{main if part == 'main' else part}\n" for part in parts)
    return f"{HEAD.format('p')}{TOLERATED}  {key}:\n{lines}"


def one(own: str, name: str = "a") -> str:
    """A container of the helper with these values."""
    return include("c", what=f'(dict "name" "{name}" "own" {own})')


BOTH = f"a: {{resources: {given(1)}}}\nb: {{resources: {given(2)}}}\n"
OF_B = one(".Values.b.resources", "b")
OF_LIST = helper(
    "{{- $values := index . 1 -}}\n- name: c\n  image: {{ (index . 0).Values.image }}\n"
    "  resources: {{- toYaml $values | nindent 4 }}",
    "c",
)
MAIN = "- name: c\n  image: i\n  resources: {{- toYaml .Values.resources | nindent 4 }}"
OF_VALUES = f"{{name: v, image: i, resources: {given(4)}}}"
WITH_LIST = include("c", what="(list $ .Values.resources)")


def tasks(column: int) -> str:
    """A Job of Volcano, whose list of tasks is in this column; a helper writes the first ones."""
    lines = (
        *(include("s", column), "- template:", "    spec:", "      containers:"),
        f"      {include('m', column + 6)}",
    )
    head = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec:\n  tasks:\n"
    )
    return head + "".join(f"{column * ' '}{each}\n" for each in lines)


KNOWN: dict[str, Files] = {
    "a container of a helper before it": of(listed(include("s"), "main"), h=SIDE),
    "the same, in a deeper column": of(listed(include("s", 4), "main", column=4), h=SIDE),
    "containers of values before it": of(
        listed("{{- with .Values.more }}", "{{- toYaml . | nindent 2 }}", "{{- end }}", "main"),
        all=f"more: []\nresources: {given(2)}\n",
    ),
    "the same, in a line without blanks": of(
        listed("main", "main").replace(
            "  - name", "{{ toYaml .Values.more | indent 2 }}\n  - name", 1
        ),
        all=f"more: []\nresources: {given(2)}\n",
    ),
    "`nindent` before what it moves": of(
        listed('{{- nindent 2 (include "s" .) }}', "main"), h=SIDE
    ),
    "an indent in what a helper gets": of(
        listed(include("s", what='(dict "x" (toYaml .Values.x | nindent 8))'), "main"), h=SIDE
    ),
    "a container for each of some values before it": of(
        listed("{{- range .Values.names }}", include("s"), "{{- end }}", "main"),
        all=f"names: [a]\nresources: {given(2)}\n",
        h=SIDE,
    ),
    "one of two helpers before it": of(
        listed(
            "{{- if .Values.x }}", include("s"), "{{- else }}", include("s"), "{{- end }}", "main"
        ),
        h=SIDE,
    ),
    "containers of helpers around it": of(listed("main", include("s"), "main", "main"), h=SIDE),
    "an init container of a helper before it": of(
        listed(include("s"), "main", key="initContainers"), h=SIDE
    ),
    "two containers of one helper": of(listed(one(".Values.a.resources"), OF_B), all=BOTH, h=ONE),
    "a second one under a condition": of(
        listed(one(".Values.a.resources"), "{{- if .Values.b }}", OF_B, "{{- end }}"),
        all=BOTH,
        h=ONE,
    ),
    "a container of its own between them": of(
        listed(one(".Values.a.resources"), "- {name: z, image: i}", OF_B), all=BOTH, h=ONE
    ),
    "a helper with containers, the first of another helper": of(
        listed(include("all")), h=SIDE + helper(f"{include('s', 0)}\n{MAIN}", "all")
    ),
    "the same without an indent": of(
        listed(include("all")), h=SIDE + helper(f'{{{{ include "s" . }}}}\n{MAIN}', "all")
    ),
    "an item of a helper in another list": of(tasks(4), h=SIDE + helper(MAIN, "m")),
    "a helper that gets a list": of(listed(WITH_LIST), h=OF_LIST),
    "a helper that gets its first and last item": of(
        listed(include("c", what="(tuple .Values.resources $)")),
        h=OF_LIST.replace("index . 1", "first .").replace("index . 0", "last ."),
    ),
    "a helper whose name is computed": of(
        listed('{{- include (print "c" .Values.kind) . | nindent 2 }}'),
        all=f"kind: a\nresources: {given(2)}\n",
        h=helper(MAIN, "ca") + helper(MAIN.replace("c\n", "d\n"), "cb"),
    ),
    "containers of values with amounts": of(
        listed("{{- with .Values.more }}", "{{- toYaml . | nindent 2 }}", "{{- end }}", "main"),
        all=f"more: [{OF_VALUES}]\nresources: {given(2)}\n",
    ),
    "each container of values with amounts": of(
        listed("{{- range .Values.more }}", "- {{- toYaml . | nindent 4 }}", "{{- end }}"),
        all=f"more: [{OF_VALUES}]\n",
    ),
    "a pod's spec of values with amounts": of(
        HEAD.format("p") + "  {{- toYaml .Values.of.pod | nindent 2 }}\n",
        all=f"of: {{pod: {{containers: [{OF_VALUES}]}}}}\n",
    ),
}  # fmt: skip

WAITING: dict[str, Files] = {
    "lines in a column left of the list": of(
        listed(include("s", 2), "main", column=4).replace("    {{-", "  {{-"), h=SIDE
    ),
    "lines in columns of their own": of(listed('{{ include "s" . }}', "main"), h=SIDE),
    "lines that are changed behind their indent": of(
        listed('{{- include "s" . | nindent 2 | replace "  " "" }}', "main"), h=SIDE
    ),
    "an indent in what a helper gets, without one of its own": of(
        listed('{{ include "s" (dict "x" (toYaml .Values.x | nindent 2)) }}', "main"), h=SIDE
    ),
    "text beside the action": of(listed("x{{ .Values.x | nindent 2 }}", "main")),
    "a key of another branch": of(
        listed("{{- if .Values.x }}", "volumes:", include("s"), "{{- end }}", "main"), h=SIDE
    ),
    "an item of a helper in another list, in the column of its key": of(
        tasks(2), h=SIDE + helper(MAIN, "m")
    ),
    "the values of the list in an annotation, too": of(
        listed(include("s"), "main").replace(
            "  name: p\n", "  name: p\n  annotations: {x: {{ toJson .Values.resources | quote }}}\n"
        ),
        h=SIDE,
    ),
    "containers of values in an annotation": of(
        listed(include("s"), "main").replace(
            "  name: p\n", "  name: p\n  annotations: {x: {{ toJson .Values.more | quote }}}\n"
        ),
        all=f"more: [{OF_VALUES}]\nresources: {given(2)}\n",
        h=SIDE,
    ),
    "a pod of values in an annotation": of(
        listed("main").replace(
            "  name: p\n", "  name: p\n  annotations: {x: {{ toJson .Values.pod | quote }}}\n"
        ),
        all=f"pod: {{spec: {{containers: [{OF_VALUES}]}}}}\nresources: {given(2)}\n",
    ),
    "a pod's spec of values with amounts at another place, too": of(
        HEAD.format("p") + "  {{- toYaml .Values.pod | nindent 2 }}\n",
        all=f"pod: {{containers: [{OF_VALUES}], x: {{limits: {{{OLD}: 1}}}}}}\n",
    ),
    "the same in other values for it": of(
        HEAD.format("p") + "  {{- toYaml .Values.pod | nindent 2 }}\n",
        all=f"pod: {{containers: [{OF_VALUES}]}}\nouter: {{pod: {{x: [limits: {{{OLD}: 1}}]}}}}\n",
    ),
    "all values": of(
        HEAD.format("p") + "  {{- toYaml .Values | nindent 2 }}\n",
        all=f"containers: [{OF_VALUES}]\n",
    ),
    "another item of the list": of(
        listed(include("c", what="(list $ .Values.x)")),
        all=f"x: 1\nresources: {given(2)}\n",
        h=OF_LIST.replace("(index . 0).Values.image", "toJson (index . 0).Values | quote"),
    ),
    "the whole list": of(
        listed(WITH_LIST),
        h=OF_LIST.replace("toYaml $values", "toYaml ."),
    ),
    "an item whose number is computed": of(
        listed(WITH_LIST),
        h=OF_LIST.replace("index . 1", "index . (len .x)"),
    ),
    "a list in a loop": of(
        listed(WITH_LIST),
        h=OF_LIST.replace("toYaml $values", "range . }}{{ toYaml (index . 1)").replace(
            "nindent 4 }}", "nindent 4 }}{{ end }}"
        ),
    ),
    "a list that another one replaces": of(
        listed(WITH_LIST, include("c", what="(list 1 2 .Values)")),
        h=OF_LIST,
    ),
    "a helper whose name is computed, in an annotation": of(
        listed("main").replace(
            "  name: p\n", "  name: p\n  annotations: {x: {{ include .Values.x . | quote }}}\n"
        ),
        h=helper("{{ toJson .Values.resources }}", "c"),
    ),
    "a pod of a helper whose name is computed, in an annotation": of(
        listed("main").replace(
            "  name: p\n", "  name: p\n  annotations: {x: {{ include .Values.x . | quote }}}\n"
        ),
        h=helper(listed("main"), "c"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("files", KNOWN.values(), ids=KNOWN)
def test_amounts_are_renamed_where_the_container_is_known(files: Files, tmp_path: Path) -> None:
    results = looked_at(tmp_path, files)
    for each in results.values():
        assert not [found.message for found in each.located if found.status is Status.MANUAL]
        assert OLD not in (each.new_text or each.text)
    assert any(NEW in (each.new_text or "") for each in results.values())


@pytest.mark.parametrize("files", WAITING.values(), ids=WAITING)
def test_amounts_wait_where_the_container_is_not_known(files: Files, tmp_path: Path) -> None:
    assert_all_wait(looked_at(tmp_path, files), "(line ")
