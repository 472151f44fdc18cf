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
COUNTING = {"GPU110", "GPU202", "GPU203", "GPU301", "GPU302", "GPU304", "GPU305"}


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
    "GPU110": workload(f"{OLD}: 1", kind="DaemonSet"),
    "GPU203": workload(f"{GPU}: 1"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_written_is_counted(name: str) -> None:
    """So the table below is about the placeholders alone."""
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


def test_a_runtime_class_whose_nodes_are_not_known_to_fit() -> None:
    drivers = Drivers(profile="runtime-class", runtime_class="nvidia")
    nodes = replace(NODES, runtime_classes={"nvidia": {"pool": "none"}})
    plan = Plan(replace(SETTINGS, drivers=drivers), nodes)
    assert "GPU202" in counted("x.yaml", workload(f"{GPU}: 1"), plan)
    text = workload(f"{GPU}: {{{{ .Values.x }}}}")
    assert "GPU202" not in counted("c/templates/x.yaml", text, plan)


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
