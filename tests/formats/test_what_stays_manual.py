"""What needs manual work is said until it is done: a second run says it of the new text, too.

Else the file says something that its author has not looked at, and nobody hears of it again.
"""

from __future__ import annotations

import textwrap
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.cases import cases
from tests.formats.test_every_way import WAYS, Way
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.rules import GUARD

if TYPE_CHECKING:
    from tests.cases import Case

CASES = [case for case in cases() if case.rule not in {rule.NAME for rule in GUARD}]


@cache
def asked(case: Case) -> Plan:
    cx = case.context(case.object())
    return Plan(replace(cx.settings, scope="all-legacy"), cx.inventory)


def manual(path: str, text: str, plan: Plan) -> tuple[set[str], str]:
    result = migrate_text(Source.of_text(path, text), plan)
    said = {each.code for each in result.located if each.status is Status.MANUAL}
    return said, result.text if result.new_text is None else result.new_text


def forgotten(path: str, text: str, plan: Plan) -> set[str]:
    """The codes of what needs manual work, of which a second run says nothing."""
    first, new = manual(path, text, plan)
    again, _ = manual(path, new, plan)
    return first - again


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_a_case_of_the_corpus(case: Case) -> None:
    assert forgotten("x.yaml", case.file.read_text(), asked(case)) == set()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_a_case_of_the_corpus_in_a_file_of_another_kind(case: Case, way: Way) -> None:
    assert forgotten(way.path, way.write(case.file.read_text()), asked(case)) == set()


OLD = "alpha.kubernetes.io/nvidia-gpu"
INIT = "pod.beta.kubernetes.io/init-containers"
SPEC = f"""\
spec:
  containers:
  - name: c
    image: i
    resources:
      limits:
        {OLD}: 1
"""


def of_template(api: str, kind: str, metadata: str = "{labels: {a: b}}", more: str = "") -> str:
    template = textwrap.indent(SPEC, "    ")
    return (
        f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: a}}\nspec:\n{more}"
        f"  template:\n    metadata: {metadata}\n{template}"
    )


def pod(annotations: str, more: str = "") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    {annotations}\n"
        f"{SPEC}{more}"
    )


OTHERS = "  initContainers:\n  - {name: other, image: o}\n"
FETCH = f'{INIT}: \'[{{"name": "fetch", "image": "f"}}]\''
SHAPES = {
    "init containers that the field names otherwise": pod(FETCH, OTHERS),
    "no init containers, and the field names some": pod(f"{INIT}: '[]'", OTHERS),
    "init containers that cannot be read": pod(f"{INIT}: '[{{'", OTHERS),
    "a StatefulSet without serviceName": of_template("apps/v1beta1", "StatefulSet"),
    "a PetSet without serviceName": of_template("apps/v1alpha1", "PetSet"),
    "a template without labels": of_template("extensions/v1beta1", "Deployment", "{name: x}"),
    "a selector that matches no label": of_template(
        "extensions/v1beta1", "Deployment", more="  selector: {matchLabels: {c: d}}\n"
    ),
    "labels that are no text": of_template("apps/v1beta1", "DaemonSet", "{labels: {a: 1}}"),
    "a DaemonSet that selects no nodes": of_template("apps/v1", "DaemonSet"),
    "a rollback": of_template("extensions/v1beta1", "Deployment", more="  rollbackTo: {}\n"),
}
KINDS = {"a manifest": Way("x.yaml", str, str), **WAYS}


@pytest.mark.parametrize("way", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_a_shape_of_our_own(text: str, way: Way) -> None:
    assert forgotten(way.path, way.write(text), Plan()) == set()


def test_no_version_is_written_that_needs_labels_which_are_not_there() -> None:
    text = SHAPES["a template without labels"]
    result = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert "apiVersion: extensions/v1beta1" in (result.new_text or "")
    said = {each.code: each for each in result.located}
    assert said["GPU120"].message.endswith("it needs the labels that GPU121 asks for (line 5))")
    assert said["GPU101"].status is Status.FIXABLE
    named = f"{text}---\n{of_template('extensions/v1beta1', 'Deployment')}"
    _, new = manual("x.yaml", named, Plan())
    assert new.count("apiVersion: apps/v1") == 1
    _, new = manual("x.yaml", text, Plan(unsafe=True))
    assert "apiVersion: apps/v1" in new


@pytest.mark.parametrize("unsafe", [False, True])
def test_init_containers_that_differ_are_their_author_s(*, unsafe: bool) -> None:
    """The rest of the pod does not wait for them."""
    text = SHAPES["init containers that the field names otherwise"]
    _, new = manual("x.yaml", text, Plan(unsafe=unsafe))
    assert ("name: other" in new, INIT in new) == (not unsafe, not unsafe)
    assert "nvidia.com/gpu: 1" in new


LABELS = {
    "the settings are of another cloud": {"cloud.google.com/gke-accelerator": "nvidia-tesla-k80"},
    "nodes have it shared alone": {"nvidia.com/gpu.product": "Tesla-K80-SHARED"},
    "no node has it now": {"nvidia.com/gpu.product": "Tesla-P100"},
}
NAME = f"{OLD}-name"
ASKING = {
    "in nodeSelector": pod("x: y", f"  nodeSelector: {{{NAME}: Tesla-K80}}\n"),
    "in affinity": pod(
        "x: y",
        "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "{nodeSelectorTerms: [{matchExpressions: "
        f"[{{key: {NAME}, operator: In, values: [Tesla-K80]}}]}}]}}}}}}\n",
    ),
    "in the annotation": pod(
        'scheduler.alpha.kubernetes.io/affinity: \'{"nodeAffinity": '
        '{"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": '
        '[{"matchExpressions": '
        f'[{{"key": "{NAME}", "operator": "In", "values": ["Tesla-K80"]}}]}}]}}}}}}\''
    ),
}


@pytest.mark.parametrize("text", ASKING.values(), ids=ASKING)
@pytest.mark.parametrize(("why", "labels"), LABELS.items(), ids=LABELS)
def test_a_model_that_no_node_has(text: str, why: str, labels: dict[str, str]) -> None:
    """What other settings may translate otherwise waits; a node that may come does not matter."""
    nodes = Inventory((NodeClass(labels, gpus={"nvidia.com/gpu": 1}),))
    plan = Plan(inventory=nodes)
    assert forgotten("x.yaml", text, plan) == set()
    said, new = manual("x.yaml", text, plan)
    waits = why != "no node has it now"
    assert (NAME in new, "GPU105" in said or "GPU106" in said) == (waits, waits)
    assert ("nvidia.com/gpu: 1" in new) == (not waits)
