from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.rules.objects import ROAD_2, found, said, template, workload
from tests.rules.pods import LEGACY, container, pod
from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.kube.pointer import Path
from webhook.rules import init_containers_annotation as rule

ALPHA, BETA = rule.ALPHA, rule.BETA
FETCH = {"name": "fetch", "image": "registry.example/fetch"}
OTHER = {"name": "other", "image": "registry.example/other"}
AT = Path(("metadata", "annotations"))
FIELD = Path(("spec", "initContainers"))


def saying(*containers: Any) -> str:
    return json.dumps(list(containers))


def annotated(annotations: dict[str, Any], **spec: Any) -> Any:
    return pod(container({LEGACY: 1}), annotations=annotations, **spec)


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(annotated({}), id="no annotation: untouched"),
        pytest.param(
            annotated({"pod.beta.kubernetes.io/hostname": "a"}, initContainers=[FETCH]),
            id="the field, and another annotation: untouched",
        ),
        pytest.param(
            workload("apps/v1", "Deployment", {"annotations": {BETA: saying(FETCH)}}),
            id="on the controller: controller-annotation's",
        ),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(saying(FETCH), [FETCH], id="one"),
        pytest.param(saying(FETCH, OTHER), [FETCH, OTHER], id="two, in order"),
        pytest.param(
            '[{"Name": "fetch", "IMAGE": "i", "command": null}]',
            [{"name": "fetch", "image": "i"}],
            id="names in any case, and null: as Go reads it",
        ),
        pytest.param(
            saying({**FETCH, "restartPolicy": "Always", "startupProbe": {"periodSeconds": 1}}),
            [{**FETCH, "restartPolicy": "Always", "startupProbe": {"periodSeconds": 1}}],
            id="members that came later are kept",
        ),
        pytest.param(
            saying({**FETCH, "resources": {"limits": {LEGACY: 1, "cpu": "100m"}}}),
            [{**FETCH, "resources": {"limits": {LEGACY: 1, "cpu": "100m"}}}],
            id="with a GPU, which legacy-resource renames",
        ),
    ],
)
def test_it_is_written_into_the_field(text: str, expected: Any) -> None:
    obj = annotated({BETA: text})
    assert said(rule, obj) == [(f"metadata.annotations[{BETA}]", "repaired")]
    assert obj["spec"]["initContainers"] == expected
    assert "annotations" not in obj["metadata"]


def test_the_whole_finding() -> None:
    message = (
        f"the annotation {ALPHA} has no effect today and is taken over: write spec.initContainers"
    )
    edits = (Set(FIELD, [FETCH]), Remove(AT / ALPHA))
    assert found(rule, annotated({ALPHA: saying(FETCH)})) == [
        Finding(rule.CODE, AT / ALPHA, message, edits)
    ]


def test_beta_counts_more_than_alpha_and_both_go() -> None:
    obj = annotated({ALPHA: saying(OTHER), BETA: saying(FETCH)})
    assert said(rule, obj) == [(f"metadata.annotations[{BETA}]", "repaired")]
    assert obj["spec"]["initContainers"] == [FETCH]
    assert "annotations" not in obj["metadata"]


def test_every_template_of_a_custom_kind() -> None:
    parts = {
        name: {"template": template(annotations={BETA: saying(FETCH)})} for name in ("PS", "Worker")
    }
    obj = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {},
        "spec": {"tfReplicaSpecs": parts},
    }
    assert [action for _, action in said(rule, obj)] == ["repaired", "repaired"]
    assert all(each["template"]["spec"]["initContainers"] == [FETCH] for each in parts.values())


@pytest.mark.parametrize(
    ("annotations", "field", "expected"),
    [
        pytest.param(
            {ALPHA: saying(FETCH), BETA: saying(FETCH)},
            [FETCH],
            [FETCH],
            id="an exported pod says the same three times (pattern 17)",
        ),
        pytest.param({BETA: "[]"}, None, None, id="an empty list"),
        pytest.param({BETA: "null"}, None, None, id="null as JSON"),
        pytest.param({BETA: None, ALPHA: None}, [OTHER], [OTHER], id="null on purpose"),
    ],
)
def test_what_says_nothing_new_is_removed(annotations: Any, field: Any, expected: Any) -> None:
    more = {} if field is None else {"initContainers": field}
    obj = annotated(annotations, **more)
    assert {each.action for each in found(rule, obj)} == {"repaired"}
    assert obj["spec"].get("initContainers") == expected
    assert "annotations" not in obj["metadata"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(saying(FETCH), [FETCH], id="another list takes its place"),
        pytest.param("[]", None, id="an empty one takes it away"),
    ],
)
def test_a_field_that_says_something_else_is_left_to_its_author(text: str, expected: Any) -> None:
    obj = annotated({BETA: text}, initContainers=[OTHER])
    before = copy.deepcopy(obj)
    [finding] = found(rule, obj, replace(ROAD_2, in_manifest=True))
    assert (finding.severity, finding.action) == (Severity.MANUAL, "reported")
    assert finding.message == (
        f"the annotation {BETA} and spec.initContainers differ: releases before 1.8 ran the "
        "annotation's, later ones the field's; write what is meant into the field, and delete the "
        "annotation"
    )
    assert obj == before

    [finding] = found(rule, obj, replace(ROAD_2, in_manifest=True, unsafe=True))
    assert (finding.severity, finding.action) == (Severity.MANUAL, "repaired")
    assert "which it replaces now; write" in finding.message
    assert obj["spec"].get("initContainers") == expected
    assert "annotations" not in obj["metadata"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param("[{", "it is not JSON", id="bad JSON"),
        pytest.param("", "it is not JSON", id="an empty text"),
        pytest.param([FETCH], "it is not a string", id="YAML instead of text"),
        pytest.param("{}", "it must be a list", id="an object"),
        pytest.param(saying({"image": "i"}), "container 1 has no name, or no image", id="no name"),
        pytest.param(
            saying(FETCH, {"name": "a"}), "container 2 has no name, or no image", id="no image"
        ),
        pytest.param(saying(FETCH, FETCH), "the name 'fetch' occurs twice", id="one name, twice"),
        pytest.param(
            saying({**FETCH, "name": "cuda"}),
            "the name 'cuda' occurs twice",
            id="the name of a container",
        ),
        pytest.param(
            saying({**FETCH, "imagePullPolice": "Always"}),
            "it has no 'imagePullPolice'",
            id="a member that no container has",
        ),
        pytest.param(
            saying({**FETCH, "ports": [{"containerPort": "80"}]}),
            "it.ports.containerPort must be a whole number (int32)",
            id="a text for a number",
        ),
        pytest.param(
            saying({**FETCH, "ports": [{"containerPort": 2**31}]}),
            "it.ports.containerPort must be a whole number (int32)",
            id="a port that no int32 can be",
        ),
        pytest.param(
            saying({**FETCH, "securityContext": {"runAsUser": 2**63}}),
            "it.securityContext.runAsUser must be a whole number (int64)",
            id="a user that no int64 can be",
        ),
        pytest.param(
            saying({**FETCH, "resources": {"limits": {"cpu": "much"}}}),
            "it.resources.limits must be an amount",
            id="a text for an amount",
        ),
        pytest.param(
            saying({**FETCH, "livenessProbe": {}}),
            "an init container cannot have livenessProbe",
            id="a probe",
        ),
        pytest.param(
            saying({**FETCH, "lifecycle": {}, "restartPolicy": "Never"}),
            "an init container cannot have lifecycle",
            id="a hook",
        ),
    ],
)
def test_what_cannot_be_taken_over_is_left(value: Any, why: str) -> None:
    [finding] = found(rule, annotated({BETA: value}))
    assert finding.message.startswith(f"the annotation {BETA} cannot be taken over: {why}")
    assert finding.message.endswith("; write spec.initContainers")
    assert (finding.severity, finding.edits) == (Severity.MANUAL, ())


def test_statuses_of_exported_pods_go() -> None:
    key = "pod.alpha.kubernetes.io/init-container-statuses"
    obj = annotated({key: "[]", "a": "b"})
    assert said(rule, obj) == [(f"metadata.annotations[{key}]", "repaired")]
    assert obj["metadata"]["annotations"] == {"a": "b"}
