"""No finding compares a placeholder with nodes or limits: nobody knows yet what it will say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.settings import Capacity, Drivers, Limit, Placement, Settings
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

GPU = "nvidia.com/gpu"
OLD = "alpha.kubernetes.io/nvidia-gpu"
SETTINGS = replace(
    Settings(scope="all-legacy"),
    capacity=Capacity(limits=(Limit({GPU: 3}),)),
    placement=Placement(enabled=True, label="pool", value="none"),
)
NODES = Inventory(
    (
        NodeClass({"pool": "k80"}, gpus={GPU: 4}, nodes=("a", "b"), held=({GPU: 4}, {GPU: 4})),
        NodeClass({"pool": "cpu"}, nodes=("c",)),
    )
)
PLAN = Plan(SETTINGS, NODES)
COUNTING = {"GPU301", "GPU302", "GPU304", "GPU305"}


WORKLOAD = """\
apiVersion: apps/v1
kind: {kind}
metadata: {{name: x}}
spec:
  selector: {{matchLabels: {{a: b}}}}
  template:
    metadata: {{labels: {{a: b}}}}
    spec:
      {selector}
      containers:
      - name: main
        image: x
        resources:
          limits:
            {amount}
{more}"""


def workload(
    amount: str, selector: str = "dnsPolicy: Default", kind: str = "Deployment", more: str = ""
) -> str:
    """A workload; `selector` are lines of the pod's spec, `more` lines at its end."""
    return WORKLOAD.format(amount=amount, selector=selector, kind=kind, more=more)


def counted(path: str, text: str, plan: Plan = PLAN) -> dict[str, str]:
    result = migrate_text(Source.of_text(path, text), plan)
    return {each.code: each.message for each in result.located if each.code in COUNTING}


KNOWN = {
    "GPU301, the amount": workload(f"{GPU}: 9"),
    "GPU301, the label": workload(f"{GPU}: 1", "nodeSelector: {pool: v100}"),
    "GPU302": workload(f"{GPU}: 2", "nodeSelector: {pool: k80}"),
    "GPU304": workload(f"{GPU}: 4", "nodeSelector: {pool: k80}"),
    "GPU305": workload(f"{GPU}: 3").replace("\nspec:\n", "\nspec:\n  replicas: 5\n", 1),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_written_is_counted(name: str) -> None:
    """So the tables below are about the placeholders alone."""
    assert name.partition(",")[0] in counted("x.yaml", KNOWN[name])


@pytest.mark.parametrize("name", KNOWN)
def test_in_a_template_only_comments_let_it_be_counted(name: str) -> None:
    text = f"{{{{/* a note */}}}}\n# of {{{{ .Release.Name }}}}\n{KNOWN[name]}"
    assert name.partition(",")[0] in counted("c/templates/x.yaml", text)


ACTIONS = {
    "Helm": ("c/templates/x.yaml", "{{ .Values.x }}"),
    "Helm with a default": ("c/templates/x.yaml", "{{ .Values.x | default 1 }}"),
    "Helm in quotes": ("c/templates/x.yaml", '"{{ .Values.x }}"'),
    "Jinja": ("x.yaml.j2", "{{ x }}"),
    "Jinja in quotes": ("x.yaml.j2", '"{{ x | default(1) }}"'),
    "a variable of kustomize": ("x.yaml", "$(X)"),
    "a variable of envsubst": ("x.yaml", "${X}"),
    "a variable without braces": ("x.yaml", "$X"),
    "a name in angle brackets": ("x.yaml", "<x>"),
    "a name between at signs": ("x.yaml", '"@X@"'),
}
TEXTS = {
    "the amount": lambda x: workload(f"{GPU}: {x}"),
    "the amount under the legacy name": lambda x: workload(f"{OLD}: {x}"),
    "the legacy amount of a DaemonSet": lambda x: workload(f"{OLD}: {x}", kind="DaemonSet"),
    "the value of a label": lambda x: workload(f"{GPU}: 1", f"nodeSelector:\n        pool: {x}"),
    "the value of the model label": lambda x: workload(
        f"{GPU}: 1", f"nodeSelector:\n        nvidia.com/gpu.product: {x}"
    ),
    "a value in affinity": lambda x: workload(
        f"{GPU}: 1",
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "{nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values:\n"
        f"        [\n        {x}\n        ]}}]}}]}}}}}}",
    ),
    "the name of the node": lambda x: workload(f"{GPU}: 9", f"nodeName: {x}"),
    "the scheduler": lambda x: workload(f"{GPU}: 9", f"schedulerName: {x}"),
    "the runtime class": lambda x: workload(f"{GPU}: 9", f"runtimeClassName: {x}"),
    "a toleration": lambda x: workload(
        f"{GPU}: 9", f"tolerations:\n      - key: {x}\n        operator: Exists"
    ),
    "the replicas": lambda x: workload(f"{GPU}: 3").replace(
        "\nspec:\n", f"\nspec:\n  replicas: {x}\n", 1
    ),
    "the namespace": lambda x: workload(f"{GPU}: 4").replace(
        "metadata: {name: x}", f"metadata:\n  name: x\n  namespace: {x}", 1
    ),
}


@pytest.mark.parametrize("place", TEXTS)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_placeholder_is_not_counted(action: str, place: str) -> None:
    path, written = ACTIONS[action]
    assert counted(path, TEXTS[place](written)) == {}


@pytest.mark.parametrize("place", TEXTS)
def test_nor_is_one_in_a_document(place: str) -> None:
    """In a code block of Markdown, and in a here-document of a shell script."""
    for written in ("<x>", "$X", "${X}", "{{ .Values.x }}"):
        assert counted("x.md", f"# A\n\n```yaml\n{TEXTS[place](written)}```\n") == {}
    for path, around in (("x.md", "```sh\n{}```\n"), ("x.sh", "#!/bin/sh\n{}")):
        here = f"kubectl apply -f - <<EOF\n{TEXTS[place]('$X')}EOF\n"
        assert counted(path, around.format(here)) == {}


WHOLE = {
    "a key": workload(f"{GPU}: 1", 'nodeSelector: {"{{ .Values.k }}": x}'),
    "fields below": workload(
        f"{GPU}: 1",
        "nodeSelector: {pool: v100}",
        more=(
            "      {{- with .Values.x }}\n      affinity:\n"
            "        {{- toYaml . | nindent 8 }}\n      {{- end }}\n"
        ),
    ),
    "labels of a selector": workload(
        f"{GPU}: 9", "nodeSelector:\n        {{- toYaml .Values.selector | nindent 8 }}"
    ),
    "one arm of a condition in comments": workload(
        f"{GPU}: 1",
        "nodeSelector:\n        # {{ if .old }}\n        pool: v100\n        # {{ end }}",
    ),
    "one arm of a condition": workload(
        f"{GPU}: 1",
        "nodeSelector:\n        {{- if .old }}\n        pool: v100\n        {{- else }}\n"
        "        pool: k80\n        {{- end }}",
    ),
}


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_what_an_action_may_write_or_choose_is_not_counted(text: str) -> None:
    assert counted("c/templates/x.yaml", text) == {}


@pytest.mark.parametrize("key", [GPU, OLD])
def test_two_runs_of_a_chart_end_clean(key: str) -> None:
    """The amount is renamed, and neither run says anything of nodes."""
    plan = Plan(inventory=NODES)
    source = Source.of_text("c/templates/x.yaml", workload(f"{key}: {{{{ .Values.gpus }}}}"))
    first = migrate_text(source, plan)
    new = first.text if first.new_text is None else first.new_text
    assert f"{GPU}: {{{{ .Values.gpus }}}}" in new
    assert {each.code for each in first.located} <= {"GPU101", "GPU201"}
    assert migrate_text(Source.of_text("c/templates/x.yaml", new), plan).located == ()


ILLEGAL = ("__POOL__", '"..."', "...", '"!pool"', "POOL-", "'#{POOL}#'", '"%POOL%"')


@pytest.mark.parametrize("written", ILLEGAL)
@pytest.mark.parametrize("place", TEXTS)
def test_what_can_never_be_a_value_is_a_placeholder(place: str, written: str) -> None:
    assert counted("x.yaml", TEXTS[place](written)) == {}


def test_a_legal_value_is_one_also_if_it_looks_unfinished() -> None:
    for word in ("TODO", "xxx", "changeme"):
        text = workload(f"{GPU}: 1", f"nodeSelector: {{pool: {word}}}")
        assert "GPU301" in counted("x.yaml", text)


@pytest.mark.parametrize("amount", ["cpu: $CPU", "memory: '${MEM}'", "ephemeral-storage: <size>"])
def test_amounts_that_are_compared_with_nothing_may_be_inserted(amount: str) -> None:
    assert "GPU301" in counted("x.yaml", workload(f"{GPU}: 9\n            {amount}"))


def test_a_placeholder_in_an_annotation_that_becomes_affinity() -> None:
    term = '{"matchExpressions":[{"key":"pool","operator":"In","values":["%s"]}]}'
    required = '{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[%s]}}'
    noted = f"scheduler.alpha.kubernetes.io/affinity: '{{\"nodeAffinity\":{required % term}}}'"
    text = workload(f"{OLD}: 1").replace(
        "metadata: {labels: {a: b}}",
        f"metadata:\n      labels: {{a: b}}\n      annotations:\n        {noted}",
    )
    assert "GPU301" in counted("x.yaml", text % "v100")
    assert counted("x.yaml", text % "$(POOL)") == {}


# -- several objects in one document


def listed(first: str, second: str, kind: str = "List") -> str:
    """Two objects in one document."""
    items = "".join(
        f"- {each.replace(chr(10), chr(10) + '  ').rstrip()}\n" for each in (first, second)
    )
    return f"apiVersion: v1\nkind: {kind}\nitems:\n{items}"


@pytest.mark.parametrize(
    ("path", "written"),
    [("x.yaml", "$(N)"), ("c/templates/x.yaml", "{{ .Values.n }}"), ("x.yaml.j2", "{{ n }}")],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_each_object_of_a_list_is_its_own(path: str, written: str, *, is_last: bool) -> None:
    known, other = workload(f"{GPU}: 9"), workload(f"{GPU}: {written}")
    both = listed(known, other) if is_last else listed(other, known)
    assert set(counted(path, both)) == {"GPU301", "GPU304"}


def test_a_block_around_objects_of_a_list() -> None:
    """What is between two objects belongs to the one before it."""
    known = workload(f"{GPU}: 9")
    text = listed(known, known).replace("items:\n", "items:\n{{- if .Values.x }}\n", 1)
    first = text.index("\n- ", text.index("\n- ") + 1) + 1
    text = f"{text[:first]}{{{{- end }}}}\n{text[first:]}"
    result = migrate_text(Source.of_text("c/templates/x.yaml", text), PLAN)
    assert {each.place.line > 18 for each in result.located if each.code == "GPU301"} == {True}


def test_an_alias_has_its_text_elsewhere() -> None:
    first = workload(f"{GPU}: {{{{ .Values.n }}}}").replace(
        "spec:\n      dns", "spec: &s\n      dns"
    )
    second = "apiVersion: v1\nkind: Pod\nmetadata: {name: y}\nspec: *s\n"
    assert counted("c/templates/x.yaml", listed(first, second)) == {}


# -- repairs that look at nodes


def said_of(code: str, path: str, text: str, plan: Plan) -> list[tuple[str, str]]:
    result = migrate_text(Source.of_text(path, text), plan)
    return [(each.status, each.message) for each in result.located if each.code == code]


PLACED = replace(SETTINGS, placement=Placement(enabled=True, label="pool", value="k80"))


@pytest.mark.parametrize("place", TEXTS)
@pytest.mark.parametrize("action", ACTIONS)
def test_placement_and_daemonsets_are_as_without_an_inventory(action: str, place: str) -> None:
    path, written = ACTIONS[action]
    text = TEXTS[place](written)
    for code in ("GPU110", "GPU203"):
        without = said_of(code, path, text, Plan(PLACED))
        assert said_of(code, path, text, Plan(PLACED, NODES)) == without


@pytest.mark.parametrize("key", [GPU, OLD])
def test_placement_in_a_template(key: str) -> None:
    text = workload(f"{key}: {{{{ .Values.n }}}}")
    result = migrate_text(Source.of_text("c/templates/x.yaml", text), Plan(PLACED, NODES))
    assert "pool: k80" in (result.new_text or "")
    again = migrate_text(
        Source.of_text("c/templates/x.yaml", result.new_text or ""), Plan(PLACED, NODES)
    )
    assert again.located == ()


CHOSEN_LATER = {
    "affinity in a condition": """\
{{- with .Values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}""",
    "affinity in its line": "affinity: {{ toYaml .Values.affinity | nindent 8 }}",
    "affinity as JSON": "affinity: {{ toJson .Values.affinity }}",
    "affinity in part": """\
affinity:
        nodeAffinity: {{- toYaml .Values.required | nindent 10 }}""",
    "tolerations": "tolerations: {{- toYaml .Values.tolerations | nindent 6 }}",
    "a taint": "tolerations: [{key: '{{ .Values.taint }}'}]",
    "a node": "nodeName: {{ .Values.node }}",
    "labels": "nodeSelector: {{- toYaml .Values.pool | nindent 8 }}",
    "labels of a loop": """\
nodeSelector:
        {{- range $key, $value := .Values.pool }}
        {{ $key }}: {{ $value }}
        {{- end }}""",
    "unknown fields": '{{- include "fields" . | nindent 6 }}',
    "unknown fields with their own indent": '{{ include "fields" . }}',
    "a field of an unknown name": "{{ .Values.field }}: {{ .Values.value }}",
    "a branch that is not shown": """\
{{- if .Values.any }}
      dnsPolicy: Default
      {{- else }}
      nodeSelector: {pool: v100}
      {{- end }}""",
    "a member of a branch that is not shown": """\
nodeSelector:
        zone: a
        {{- if .Values.any }}
        size: large
        {{- else }}
        size: small
        {{- end }}""",
}
# A pod with these selects its nodes, so GPU203 says nothing of it.
SELECTING = {"affinity in part", "labels of a loop", "a member of a branch that is not shown"}


@pytest.mark.parametrize("name", CHOSEN_LATER)
def test_no_nodes_are_selected_beside_what_a_template_writes(name: str) -> None:
    """Both together may fit no node; the webhook sees the pod as it is then."""
    text = workload(f"{OLD}: 1", CHOSEN_LATER[name])
    placed = said_of("GPU203", "c/templates/x.yaml", text, Plan(PLACED, NODES))
    classed = said_of("GPU202", "c/templates/x.yaml", text, with_class(pool="k80"))
    for said in [classed] if name in SELECTING else [placed, classed]:
        ((status, message),) = said
        assert status == "manual"
        assert "the template may write" in message
    assert name not in SELECTING or not placed


NOT_CHOSEN = {
    "a field that selects nothing": "dnsPolicy: {{ .Values.dns }}",
    "a map that selects nothing": "securityContext: {{- toYaml .Values.security | nindent 8 }}",
    "a condition": "{{- if .Values.any }}\n      hostIPC: true\n      {{- end }}",
    "a comment": "# affinity: {{/* none: */}}",
    "a container": "terminationGracePeriodSeconds: {{ .Values.grace }}",
}


@pytest.mark.parametrize("name", NOT_CHOSEN)
def test_other_fields_of_a_template_select_no_nodes(name: str) -> None:
    text = workload(f"{OLD}: 1", NOT_CHOSEN[name])
    ((placed, _),) = said_of("GPU203", "c/templates/x.yaml", text, Plan(PLACED, NODES))
    ((classed, _),) = said_of("GPU202", "c/templates/x.yaml", text, with_class(pool="k80"))
    assert (placed, classed) == ("fixable", "fixable")


def test_nor_does_another_pod() -> None:
    """Nor another branch of the same condition."""
    one, other = workload(f"{OLD}: 1"), workload("cpu: 1", CHOSEN_LATER["affinity as JSON"])
    of_branches = f"{{{{- if .Values.any }}}}\n{one}{{{{- else }}}}\n{other}{{{{- end }}}}\n"
    for text in (f"{one}---\n{other}", of_branches):
        ((status, _),) = said_of("GPU203", "c/templates/x.yaml", text, Plan(PLACED, NODES))
        assert status == "fixable"


@pytest.mark.parametrize(
    "written",
    ["affinity: $(AFFINITY)", "affinity: <affinity>", "nodeName: ${NODE}", "tolerations: __T__"],
)
def test_no_nodes_are_selected_beside_a_placeholder(written: str) -> None:
    text = workload(f"{OLD}: 1", written)
    (placed,) = said_of("GPU203", "x.yaml", text, Plan(PLACED, NODES))
    (classed,) = said_of("GPU202", "x.yaml", text, with_class(pool="k80"))
    assert [status for status, _ in (placed, classed)] == ["manual", "manual"]


def test_placement_by_a_label_that_no_gpu_node_has() -> None:
    """That holds whatever the template writes, so the pods would wait."""
    text = workload(f"{GPU}: {{{{ .Values.n }}}}")
    for value in ("none", "cpu"):
        settings = replace(PLACED, placement=replace(PLACED.placement, value=value))
        ((status, message),) = said_of("GPU203", "c/templates/x.yaml", text, Plan(settings, NODES))
        assert (status, "is not added" in message) == ("manual", True)


def with_class(**selector: str) -> Plan:
    drivers = Drivers(runtime_class="nvidia")
    nodes = replace(NODES, runtime_classes={"nvidia": selector})
    return Plan(Settings(scope="all-legacy", drivers=drivers), nodes)


CLASSES = {
    "for all nodes": ({}, "dnsPolicy: Default", "fixable"),
    "for nodes with GPUs": ({"pool": "k80"}, "dnsPolicy: Default", "fixable"),
    "for no node": ({"pool": "none"}, "dnsPolicy: Default", "manual"),
    "for nodes without GPUs": ({"pool": "cpu"}, "dnsPolicy: Default", "manual"),
    "beside the same label": ({"pool": "k80"}, "nodeSelector: {pool: k80}", "fixable"),
    "beside another label": ({"pool": "k80"}, "nodeSelector: {pool: v100}", "manual"),
    "beside a label that is written later": (
        {"pool": "k80"},
        'nodeSelector: {pool: "{{ .Values.pool }}"}',
        "manual",
    ),
    "beside another label that is written later": (
        {"pool": "k80"},
        'nodeSelector: {zone: "{{ .Values.zone }}"}',
        "fixable",
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_runtime_class_in_a_template(name: str) -> None:
    selector, own, wanted = CLASSES[name]
    text = workload(f"{GPU}: {{{{ .Values.n }}}}", own)
    ((status, _),) = said_of("GPU202", "c/templates/x.yaml", text, with_class(**selector))
    assert status == wanted


def test_what_is_said_of_a_label_that_is_written_later() -> None:
    """Nobody knows whether the API server will take both."""
    text = workload(f"{GPU}: 1", "nodeSelector: {pool: $(POOL)}")
    ((_, message),) = said_of("GPU202", "x.yaml", text, with_class(pool="k80"))
    assert (
        "which is filled in later: write runtimeClassName: nvidia if it will be the same" in message
    )


def test_the_remark_on_parts_of_gpus() -> None:
    shared = NodeClass({"nvidia.com/gpu.product": "Tesla-K80-SHARED"}, gpus={GPU: 4}, nodes=("s",))
    plan = Plan(inventory=Inventory((shared,)))
    known = workload(f"{OLD}: 1")
    opened = known + "      {{- with .Values.x }}\n      a: b\n      {{- end }}\n"
    said = [
        [each.code for each in migrate_text(Source.of_text(path, text), plan).located]
        for path, text in (("x.yaml", known), ("c/templates/x.yaml", opened))
    ]
    assert ["GPU105" in codes for codes in said] == [True, False]


ELSEWHERE = {
    "a label": ("metadata: {labels: {a: b}}", 'metadata: {labels: {a: b, replicas: "3 - 5"}}'),
    "an annotation": (
        "metadata: {labels: {a: b}}",
        'metadata: {labels: {a: b}, annotations: {namespace: "my team", resources: "<none>"}}',
    ),
    "a label of the workload": ("name: x}", 'name: x, labels: {nodeName: "__x__"}}'),
    "an annotation of the workload": ("name: x}", 'name: x, annotations: {tolerations: "a b!"}}'),
    "a selector": ("matchLabels: {a: b}", 'matchLabels: {a: b, replicas: "many"}'),
    "a variable": (
        "image: x",
        "image: x\n        env: [{name: N, value: $(replicas), replicas: a!}]",
    ),
    "a claim": (
        "selector:",
        "volumeClaimTemplates: [{spec: {resources: {requests: {storage: $SIZE}}}}]\n  selector:",
    ),
    "a reference": (
        "dnsPolicy: Default",
        'volumes: [{name: v, csi: {driver: d, volumeAttributes: {namespace: "my team"}}}]',
    ),
    "no amount": (f"{GPU}: 9", f"{GPU}: 9\n            example.com/fpga:"),
    "no node": ("dnsPolicy: Default", "nodeName:\n      affinity:\n      tolerations:"),
    "a number in node affinity": (
        "dnsPolicy: Default",
        """affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:
        {nodeSelectorTerms: [{matchExpressions: [{key: n, operator: Gt, values: ["-1"]}]}]}}}""",
    ),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_the_same_name_in_another_place_is_no_placeholder(name: str) -> None:
    """Nor is a null, nor a number that is legal."""
    old, new = ELSEWHERE[name]
    text = workload(f"{GPU}: 9", kind="StatefulSet")
    assert old in text
    assert "GPU301" in counted("x.yaml", text.replace(old, new, 1))
