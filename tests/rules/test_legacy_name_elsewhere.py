from __future__ import annotations

import time
from typing import Any

import pytest

from tests.rules.objects import UNSAFE, found, said, template, workload
from tests.rules.pods import GPU, LABEL, LEGACY, container
from webhook.core.edits import Rename
from webhook.core.findings import Finding, Safety
from webhook.kube.pointer import Path
from webhook.rules import legacy_name_elsewhere as rule


def custom(**spec: Any) -> Any:
    return {"apiVersion": "paddlepaddle.org/v1", "kind": "TrainingJob", "spec": spec}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(workload("apps/v1", "Deployment"), id="in a container's limits: GPU101's"),
        pytest.param(custom(resources={"limits": {GPU: 1}}), id="today's name"),
        pytest.param(
            {"kind": "ResourceQuota", "spec": {"hard": {f"requests.{LEGACY}": 1}}},
            id="a quota: quota-names'",
        ),
        pytest.param(
            {"kind": "Node", "status": {"capacity": {LEGACY: 1}}}, id="a node: node-objects'"
        ),
        pytest.param(
            {"kind": "ConfigMap", "metadata": {"annotations": {"last-applied": LEGACY}}},
            id="what was applied last",
        ),
        pytest.param(
            workload("apps/v1", "Deployment", made=template(nodeSelector={LABEL: "a"})),
            id="in a template's selector: model-label's",
        ),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj, UNSAFE) == []


def test_a_custom_resource_without_a_template_which_stays_unasked() -> None:
    obj = custom(trainer={"resources": {"limits": {LEGACY: 1}}})
    at = Path(("spec", "trainer", "resources", "limits", LEGACY))
    message = f"{LEGACY} is asked for outside of a known pod template: write {GPU}"
    listed = f"{message}, or list {obj['kind']} in workloads.kinds if it has pod templates"
    finding = Finding(rule.CODE, at, listed, (Rename(at, GPU),), safety=Safety.UNSAFE)
    assert found(rule, obj) == [finding]
    del obj["kind"]
    assert [each.message for each in found(rule, obj)] == [message]
    obj["kind"] = custom()["kind"]
    assert obj == custom(trainer={"resources": {"limits": {LEGACY: 1}}})


def test_it_is_renamed_on_request() -> None:
    parts = [{"resources": {"requests": {LEGACY: 1, "cpu": 1}}}]
    obj = custom(workers=parts)
    place = f"spec.workers[0].resources.requests[{LEGACY}]"
    assert said(rule, obj, UNSAFE) == [(place, "repaired")]
    assert parts == [{"resources": {"requests": {GPU: 1, "cpu": 1}}}]


@pytest.mark.parametrize(
    ("obj", "place"),
    [
        pytest.param(
            custom(limits={LEGACY: 1, GPU: 1}), f"spec.limits[{LEGACY}]", id="both names are there"
        ),
        pytest.param(
            {"Standard_NC6": {"cpu": 6, LEGACY: 1.0}},
            f"Standard_NC6[{LEGACY}]",
            id="a table of machine sizes",
        ),
        pytest.param({LEGACY: 1}, f"[{LEGACY}]", id="at the very top"),
        pytest.param(
            custom(nodeSelector={LABEL: "Tesla-K80"}), f"spec.nodeSelector[{LABEL}]", id="the label"
        ),
        pytest.param(
            {"kind": "ConfigMap", "data": {"config.yaml": f"accelerators:\n  {LEGACY}: {{}}\n"}},
            "data[config.yaml]",
            id="an operator's configuration (pattern 6)",
        ),
        pytest.param(
            workload(
                "apps/v1",
                "Deployment",
                made=template(container(env=[{"name": "GPU_RESOURCE", "value": LEGACY}])),
            ),
            "spec.template.spec.containers[0].env[0].value",
            id="a variable (pattern 5)",
        ),
        pytest.param(
            workload(
                "apps/v1", "Deployment", made=template(container(args=[f"--resource={LEGACY}"]))
            ),
            "spec.template.spec.containers[0].args[0]",
            id="an argument",
        ),
    ],
)
def test_it_is_reported(obj: Any, place: str) -> None:
    assert said(rule, obj, UNSAFE) == [(place, "reported")]


CARDS = "alpha.kubernetes.io/group-resource/gpugrp0/A/gpu/0/cards"
OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-gpu"
C = "spec.template.spec.containers[0].resources"


@pytest.mark.parametrize(
    ("resources", "places"),
    [
        pytest.param({"requests": {CARDS: 1}}, [f"{C}.requests[{CARDS}]"], id="a group of GPUs"),
        pytest.param({"limits": {OPAQUE: 1}}, [f"{C}.limits[{OPAQUE}]"], id="an opaque resource"),
        pytest.param(
            {"limits": {"alpha.kubernetes.io/nvidia_gpu": 1}},
            [f"{C}.limits[alpha.kubernetes.io/nvidia_gpu]"],
            id="a name that is misspelt",
        ),
        pytest.param(
            {"limits": {CARDS: 1, OPAQUE: 1, "cpu": 1}, "requests": {CARDS: 1}},
            [f"{C}.limits[{CARDS}]", f"{C}.limits[{OPAQUE}]", f"{C}.requests[{CARDS}]"],
            id="several of one container",
        ),
        pytest.param({"limits": {LEGACY: 1}}, [], id="the GPU: GPU101's"),
        pytest.param({"limits": {"example.com/alpha.kubernetes.io": 1}}, [], id="another's"),
        pytest.param({"limits": {"kubernetes.io/batch-cpu": 1}}, [], id="one that may be alive"),
        pytest.param({"limits": ["alpha.kubernetes.io/x"], "requests": None}, [], id="no maps"),
    ],
)
def test_other_resources_of_alpha_releases_in_containers(resources: Any, places: list[str]) -> None:
    obj = workload("apps/v1", "Deployment", made=template(container(resources=resources)))
    assert said(rule, obj, UNSAFE) == [(place, "reported") for place in places]


ESCAPED: dict[str, tuple[str, bool]] = {
    "a slash of JSON": (r"alpha.kubernetes.io\/nvidia-gpu", True),
    "a slash of JSON in JSON": (r"alpha.kubernetes.io\\\/nvidia-gpu", True),
    "its number": (r"alpha.kubernetes.io\u002fnvidia-gpu", True),
    "its number in capitals, in JSON in JSON": (r"alpha.kubernetes.io\\u002Fnvidia-gpu", True),
    "an annotation": (r"scheduler.alpha.kubernetes.io\/affinity", True),
    "the same with a slash": (LEGACY, True),
    "another character": (r"alpha.kubernetes.io\u002dnvidia-gpu", False),
    "no name": ("a\\b/c", False),
}


@pytest.mark.parametrize("part", ["command", "args", "env"])
@pytest.mark.parametrize(("name", "is_found"), ESCAPED.values(), ids=ESCAPED)
def test_json_in_a_text_may_write_a_slash_in_other_ways(
    name: str,
    is_found: bool,  # noqa: FBT001
    part: str,
) -> None:
    text = f'{{"limits": {{"{name}": 1}}}}'
    held: Any = {part: [{"name": "PROFILE", "value": text}] if part == "env" else [text]}
    obj = workload("apps/v1", "Deployment", made=template(container(resources={}, **held)))
    assert len(found(rule, obj)) == is_found


def test_a_text_of_backslashes_takes_no_time() -> None:
    obj = {"kind": "ConfigMap", "data": {"a": "\\" * 1_000_000}}
    started = time.process_time()
    assert found(rule, obj) == []
    assert time.process_time() - started < 2
