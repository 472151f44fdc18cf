from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.engine import run
from tests.rules.pods import GPU, LEGACY, SPEC, container, found, legacy_pod, modern_pod, pod
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.edits import Set
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context
from webhook.core.settings import Placement, Settings, Taint, Workloads
from webhook.rules import legacy_resource
from webhook.rules import placement as rule

PRESENT = "nvidia.com/gpu.present"
ON = Context(Settings(placement=Placement(enabled=True)))
ANTI: dict[str, Any] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}


def placed(label: str = PRESENT, value: str = "true") -> Finding:
    message = f"GPU pods go to GPU nodes here; write nodeSelector: {label}: {value}"
    at = SPEC / "nodeSelector" / label
    return Finding(rule.CODE, at, message, (Set(at, value),))


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        pytest.param(modern_pod(), Context(), [], id="off by default: untouched"),
        pytest.param(
            modern_pod(nodeSelector={"zone": "a"}), ON, [], id="a nodeSelector: untouched"
        ),
        pytest.param(modern_pod(affinity=ANTI), ON, [], id="any affinity: untouched"),
        pytest.param(
            pod(container({LEGACY: "0"}), container({GPU: "0"})), ON, [], id="no GPU: untouched"
        ),
        pytest.param(modern_pod(), ON, [placed()], id="a GPU pod that names no node"),
        pytest.param(
            modern_pod(nodeSelector={}, affinity={}), ON, [placed()], id="empty is as good as none"
        ),
        pytest.param(
            pod(container(), initContainers=[container({GPU: "1"})]),
            ON,
            [placed()],
            id="an init container with a GPU",
        ),
        pytest.param(
            modern_pod(),
            Context(Settings(placement=Placement(enabled=True, label="pool", value="gpu"))),
            [placed("pool", "gpu")],
            id="the label of the settings",
        ),
    ],
)
def test_placement(obj: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, obj, cx) == expected


LABELLED, TAINT = {PRESENT: "true"}, Taint("dedicated", "team")
SMALL, LARGE = {GPU: 2}, {GPU: 8}


def on(*classes: NodeClass, **more: Any) -> Context:
    """The settings with these nodes."""
    known = Inventory(classes, **more)
    return Context(Settings(gpu_resources=("nvidia.com/*",), placement=PLACED), known)


PLACED = Placement(enabled=True)
LEFT = Finding(
    rule.CODE,
    SPEC / "nodeSelector" / PRESENT,
    f"the label {PRESENT}=true of placement is not added: with it this pod would lack nodes that "
    "fit it now; ask the administrator to label them",
    severity=Severity.MANUAL,
)


def of_legacy(amount: str, **spec: Any) -> Any:
    return pod(container({LEGACY: amount}, {LEGACY: amount}), **spec)


def of_today(amount: str, **spec: Any) -> Any:
    return pod(container({GPU: amount}, {GPU: amount}), **spec)


@pytest.mark.parametrize("asking", [of_legacy, of_today], ids=["legacy", "today"])
@pytest.mark.parametrize(
    ("amount", "spec", "cx", "is_added"),
    [
        pytest.param("1", {}, on(NodeClass(LABELLED, (), SMALL)), True, id="a node that fits"),
        pytest.param("1", {}, on(NodeClass({}, (), SMALL)), False, id="no node has the label"),
        pytest.param(
            "1", {}, on(NodeClass({PRESENT: "false"}, (), SMALL)), False, id="another value"
        ),
        pytest.param(
            "8",
            {},
            on(NodeClass(LABELLED, (), SMALL), NodeClass({}, (), LARGE)),
            False,
            id="only nodes that are too small have it",
        ),
        pytest.param(
            "1",
            {},
            on(
                NodeClass(LABELLED, (), {"nvidia.com/mig-1g.5gb": 7}),
                NodeClass(LABELLED, (), {"nvidia.com/gpu.shared": 4}),
                NodeClass({}, (), SMALL),
            ),
            False,
            id="only nodes with other kinds of GPUs have it",
        ),
        pytest.param(
            "1",
            {},
            on(
                NodeClass({**LABELLED, "nvidia.com/gpu.sharing-strategy": "mps"}, (), SMALL),
                NodeClass({}, (), SMALL),
            ),
            False,
            id="only nodes that offer parts of GPUs as whole ones have it",
        ),
        pytest.param(
            "1",
            {},
            on(NodeClass({**LABELLED, "nvidia.com/gpu.sharing-strategy": "mps"}, (), SMALL)),
            True,
            id="all nodes offer parts of GPUs",
        ),
        pytest.param(
            "1",
            {},
            on(NodeClass(LABELLED, (TAINT,), SMALL), NodeClass({}, (), SMALL)),
            False,
            id="only a node that the pod does not tolerate has it",
        ),
        pytest.param(
            "1",
            {"tolerations": [{"operator": "Exists"}]},
            on(NodeClass(LABELLED, (TAINT,), SMALL), NodeClass({}, (), SMALL)),
            True,
            id="the pod tolerates it",
        ),
        pytest.param(
            "1",
            {"runtimeClassName": "fast"},
            on(
                NodeClass(LABELLED, (), SMALL),
                NodeClass({"disk": "fast"}, (), SMALL),
                runtime_classes={"fast": {"disk": "fast"}},
            ),
            False,
            id="only nodes that its runtime class does not select have it",
        ),
        pytest.param(
            "1",
            {},
            on(NodeClass(LABELLED, (), SMALL, grows=True), NodeClass({"a": "b"}, (), SMALL)),
            True,
            id="a pool that may grow has it",
        ),
        pytest.param(
            "1",
            {},
            on(NodeClass({}, (), {}, open_labels=True, open_gpus=True), NodeClass({}, (), SMALL)),
            True,
            id="a node that has just joined may get it",
        ),
        pytest.param(
            "1",
            {"nodeName": "a"},
            on(NodeClass(LABELLED, (), SMALL, ("b",)), NodeClass({}, (), SMALL, ("a",))),
            False,
            id="the node of its nodeName lacks it",
        ),
    ],
)
def test_the_label_is_added_where_a_node_with_it_fits(
    asking: Any,
    amount: str,
    spec: Any,
    cx: Context,
    is_added: bool,  # noqa: FBT001
) -> None:
    assert run_after_rename(asking(amount, **spec), cx) == [placed() if is_added else LEFT]


def run_after_rename(obj: Any, cx: Context) -> list[Finding]:
    verdict = run((legacy_resource, rule), obj, cx)
    return [each for each in verdict.findings if each.code == rule.CODE]


def test_what_may_be_added_is_not_enough_for_a_pod_of_today() -> None:
    cx = on(NodeClass({}, (), SMALL), NodeClass(LABELLED, (), SMALL, hint="an autoscaler"))
    assert run_after_rename(of_legacy("1"), cx) == [placed()]
    assert run_after_rename(of_today("1"), cx) == [LEFT]


def test_where_no_node_fits_only_a_pod_that_cannot_run_gets_it() -> None:
    cx = on(NodeClass({}, (), SMALL))
    assert run_after_rename(of_legacy("8"), cx) == [placed()]
    assert run_after_rename(of_today("8"), cx) == [LEFT]


@pytest.mark.parametrize(
    ("node", "is_added"),
    [
        pytest.param({}, False, id="its node lacks the label"),
        pytest.param(LABELLED, True, id="its node has the label"),
    ],
)
def test_a_daemon_set_loses_no_node(node: dict[str, str], is_added: bool) -> None:  # noqa: FBT001
    cx = on(NodeClass(LABELLED, (), SMALL), NodeClass(node, (), LARGE))
    cx = replace(cx, workload={"kind": "DaemonSet"}, template=True)
    assert run_after_rename(legacy_pod(), cx) == [placed() if is_added else LEFT]


KEY = ("spec", "nodeSelector", PRESENT)
IN_Z2 = {"lab": {"zone": "z2"}}


@pytest.mark.parametrize("asking", [of_legacy, of_today], ids=["legacy", "today"])
@pytest.mark.parametrize(
    ("more", "where", "is_added"),
    [
        pytest.param({"node_selectors": IN_Z2}, {}, False, id="a node selector of the namespace"),
        pytest.param(
            {"node_selectors": {"lab": LABELLED}}, {}, False, id="the very label, which they get"
        ),
        pytest.param({"node_selectors": {"other": {"a": "b"}}}, {}, True, id="of another one"),
        pytest.param({"watched": True}, {}, False, id="a namespace that is not known yet"),
        pytest.param({"watched": True, "whitelists": {"lab": ""}}, {}, True, id="one that is"),
        pytest.param(
            {"node_selectors": IN_Z2}, {"template": False}, True, id="a pod, which would have it"
        ),
        pytest.param(
            {"node_selectors": IN_Z2},
            {"was_added": {KEY: "true"}},
            False,
            id="a node selector that came after the label: it goes",
        ),
        pytest.param(
            {"watched": True}, {"was_added": {KEY: "true"}}, True, id="it stays while unknown"
        ),
    ],
)
def test_a_template_leaves_the_label_to_pods_that_get_a_node_selector(
    asking: Any, more: Any, where: Any, *, is_added: bool
) -> None:
    """PodNodeSelector refuses a pod with two values, and no node may have both labels."""
    nodes = NodeClass(LABELLED, (), SMALL), NodeClass({"zone": "z2"}, (), SMALL)
    cx = replace(on(*nodes, **more), **{"namespace": "lab", "template": True, **where})
    cx = replace(cx, settings=replace(cx.settings, workloads=Workloads(repair=True)))
    assert run_after_rename(asking("1"), cx) == ([placed()] if is_added else [])


def test_what_no_template_gets_is_said_of_its_pods_though_the_namespace_is_new() -> None:
    """Without `workloads.repair` the pods get the label, and by then the namespace is known."""
    cx = replace(on(NodeClass(LABELLED, (), SMALL), watched=True), namespace="new", template=True)
    assert run_after_rename(of_today("1"), cx) == [placed()]


@pytest.mark.parametrize(
    ("was", "stays"),
    [
        pytest.param({KEY: "true"}, True, id="the label of the settings"),
        pytest.param({KEY: "false"}, False, id="another value"),
        pytest.param({("spec", "runtimeClassName"): "true"}, False, id="not this label"),
    ],
)
def test_a_label_that_was_added_stays_and_is_not_said_to_be_left_out(
    was: Any, *, stays: bool
) -> None:
    cx = replace(on(NodeClass({}, (), SMALL)), template=True, was_added=was)
    [told] = run_after_rename(of_today("1"), cx)
    message = (
        f"the label {PRESENT}=true of placement was added before and stays, though with it this "
        "pod lacks nodes that would fit it now; ask the administrator to label them"
    )
    kept = replace(LEFT, message=message, edits=placed().edits)
    assert told == (kept if stays else LEFT)


@pytest.mark.parametrize("asking", [of_legacy, of_today], ids=["legacy", "today"])
@pytest.mark.parametrize(
    ("spec", "nodes", "is_added"),
    [
        pytest.param({}, [NodeClass(LABELLED, (), LARGE)], True, id="nodes with too few GPUs"),
        pytest.param({}, [NodeClass(LABELLED, (), SMALL)], False, id="only smaller nodes"),
        pytest.param({}, [NodeClass(LABELLED, (TAINT,), LARGE)], True, id="nodes with a taint"),
        pytest.param({}, [NodeClass(LABELLED)], False, id="nodes without GPUs"),
        pytest.param({}, [], False, id="no node"),
        pytest.param(
            {"nodeName": "$(NODE)"}, [NodeClass(LABELLED, (), LARGE)], True, id="a node by its name"
        ),
    ],
)
def test_of_a_pod_with_placeholders_only_what_is_certain_counts(
    asking: Any, spec: dict[str, Any], nodes: list[NodeClass], *, is_added: bool
) -> None:
    others = NodeClass({}, (), LARGE)
    cx = replace(on(*nodes, others), is_open=True)
    assert run_after_rename(asking("9", **spec), cx) == [placed() if is_added else LEFT]


@pytest.mark.parametrize("amount", ["1", "9"])
def test_a_daemon_set_with_placeholders_gets_what_all_gpu_nodes_have(amount: str) -> None:
    daemons = {"kind": "DaemonSet"}
    large, small = NodeClass(LABELLED, (), LARGE), NodeClass({}, (), SMALL)
    for nodes, is_added in (([large], True), ([large, small], False)):
        cx = replace(on(*nodes), is_open=True, workload=daemons)
        assert run_after_rename(of_today(amount), cx) == [placed() if is_added else LEFT]


def test_a_known_amount_beside_placeholders_counts() -> None:
    cx = replace(on(NodeClass(LABELLED, (), SMALL), NodeClass({}, (), LARGE)), is_open=True)
    assert run_after_rename(of_today("2"), cx) == [placed()]
    assert run_after_rename(of_today("3"), cx) == [LEFT]
