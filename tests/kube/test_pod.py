"""The reading of a raw pod: every container kind, and nothing taken on trust."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.core.settings import Models, Settings
from webhook.kube.pod import (
    KINDS,
    PREFERRED,
    REQUIRED,
    Container,
    Pod,
    as_items,
    as_map,
    is_finished,
)
from webhook.kube.pointer import Path

DEFAULT = Settings()
LEGACY = "alpha.kubernetes.io/nvidia-gpu"
LABEL = "alpha.kubernetes.io/nvidia-gpu-name"
GPU = "nvidia.com/gpu"
ANNOTATION = "scheduler.alpha.kubernetes.io/affinity"


def pod_with(container: dict[str, Any], kind: str = "containers") -> Pod:
    return Pod({"spec": {kind: [container]}})


def asks(limits: object = None, requests: object = None) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": limits, "requests": requests}}


@pytest.mark.parametrize("value", [None, [], "x", 1, True], ids=repr)
def test_what_is_no_map_is_read_as_an_empty_one(value: object) -> None:
    assert as_map(value) == {}
    assert as_items(value) == []


def test_items_that_are_no_maps_are_passed_over_and_positions_kept() -> None:
    assert as_items([None, {"a": 1}, "x", {}]) == [(1, {"a": 1}), (3, {})]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({}, id="an empty object"),
        pytest.param({"spec": None, "metadata": None}, id="null members"),
        pytest.param({"spec": [], "metadata": "x"}, id="members of the wrong type"),
        pytest.param(
            {
                "metadata": {"annotations": [], "ownerReferences": {}},
                "spec": {
                    "containers": {},
                    "initContainers": None,
                    "nodeSelector": [],
                    "affinity": "x",
                    "volumes": {},
                    "tolerations": 1,
                },
            },
            id="deeper members of the wrong type",
        ),
    ],
)
def test_what_is_missing_or_of_the_wrong_type_is_read_as_empty(raw: dict[str, Any]) -> None:
    pod = Pod(raw)
    assert pod.containers == ()
    assert (pod.annotations, pod.node_selector, pod.affinity) == ({}, {}, {})
    assert (pod.volumes(), pod.tolerations()) == ([], [])
    assert pod.controller() == ("", "")
    assert pod.gpus(DEFAULT) == {}
    assert not pod.is_in_scope(DEFAULT)
    assert not pod.asks_under_legacy_name(DEFAULT)


def test_containers_of_every_kind_are_found_where_they_are() -> None:
    spec = {kind: [None, {"name": kind}] for kind in reversed(KINDS)}
    found = [(each.kind, each.name, each.at) for each in Pod({"spec": spec}).containers]
    assert found == [(kind, kind, Path(("spec", kind, 1))) for kind in KINDS]


def test_a_template_deep_in_an_object_is_read_with_whole_paths() -> None:
    obj = {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}
    pod = Pod(obj, Path(("spec", "template")))
    assert str(pod.containers[0].at) == "/spec/template/spec/containers/0"
    assert str(pod.spec_at) == "/spec/template/spec"
    assert str(pod.annotation_at("a/b")) == "/spec/template/metadata/annotations/a~1b"
    assert pod.raw is obj["spec"]["template"]


def test_a_pod_is_read_without_copies() -> None:
    raw: dict[str, Any] = {"metadata": {"annotations": {}}, "spec": {"containers": [{"env": []}]}}
    pod = Pod(raw)
    assert pod.annotations is raw["metadata"]["annotations"]
    assert pod.containers[0].raw is raw["spec"]["containers"][0]


def test_a_container_knows_its_parts_and_their_paths() -> None:
    raw = {
        "name": "cuda",
        "resources": {"limits": {"a": 1}, "requests": {"b": 2}},
        "volumeMounts": [None, {"name": "v"}],
        "env": [{"name": "PATH"}, 3],
    }
    container = Container("containers", Path(("spec", "containers", 0)), raw)
    assert (container.sections["limits"], container.sections["requests"]) == ({"a": 1}, {"b": 2})
    assert str(container.section_at("limits")) == "/spec/containers/0/resources/limits"
    assert container.volume_mounts() == [(1, {"name": "v"})]
    assert container.env() == [(0, {"name": "PATH"})]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        pytest.param({"name": "cuda"}, "cuda", id="by its name"),
        pytest.param({}, "4", id="by its position if it has none"),
        pytest.param({"name": 7}, "7", id="as a text in any case"),
    ],
)
def test_a_container_is_called(raw: dict[str, Any], name: str) -> None:
    assert Container("containers", Path(("spec", "containers", 4)), raw).name == name


@pytest.mark.parametrize(
    ("limits", "requests", "gpus"),
    [
        pytest.param({GPU: 2}, {GPU: 2}, {GPU: 2}, id="limit and request"),
        pytest.param({GPU: "2"}, None, {GPU: 2}, id="a limit alone: the API server copies it"),
        pytest.param(None, {GPU: "2"}, {GPU: 2}, id="a request alone"),
        pytest.param({GPU: 4}, {GPU: 2}, {GPU: 2}, id="the request counts, as in the scheduler"),
        pytest.param({GPU: "500m"}, None, {GPU: 1}, id="a fraction is a whole device"),
        pytest.param({GPU: 0}, None, {}, id="none"),
        pytest.param({GPU: -1}, None, {}, id="a negative amount"),
        pytest.param({GPU: "many"}, None, {}, id="no amount"),
        pytest.param({LEGACY: 1, "cpu": 1}, None, {}, id="other names"),
        pytest.param(
            {"nvidia.com/mig-1g.5gb": 1, "nvidia.com/gpu.shared": 3},
            None,
            {"nvidia.com/mig-1g.5gb": 1, "nvidia.com/gpu.shared": 3},
            id="slices and shares under their own names",
        ),
    ],
)
def test_a_container_asks_for_gpus(limits: object, requests: object, gpus: dict[str, int]) -> None:
    assert pod_with(asks(limits, requests)).containers[0].gpus(DEFAULT) == gpus


def test_a_pod_asks_for_the_names_of_all_its_containers_with_the_largest_amounts() -> None:
    spec = {
        "initContainers": [asks({GPU: 3})],
        "containers": [asks({GPU: 1}), asks({"nvidia.com/gpu.shared": 2}), asks({GPU: 2})],
    }
    pod = Pod({"spec": spec})
    assert pod.gpus(DEFAULT) == {GPU: 3, "nvidia.com/gpu.shared": 2}
    assert pod.gpus(DEFAULT) == {GPU: 3, "nvidia.com/gpu.shared": 2}  # the second time from memory


@pytest.mark.parametrize(
    ("owners", "controller"),
    [
        pytest.param(
            [{"kind": "Job", "name": "a"}, {"kind": "DaemonSet", "name": "b", "controller": True}],
            ("DaemonSet", "b"),
            id="the owner that says so",
        ),
        pytest.param([{"kind": "Job", "name": "a"}], ("", ""), id="none says so"),
        pytest.param([{"controller": "true", "kind": "X"}], ("", ""), id="a text is not true"),
        pytest.param([{"controller": True}], ("", ""), id="it has no kind and no name"),
    ],
)
def test_the_controller_is(owners: list[Any], controller: tuple[str, str]) -> None:
    assert Pod({"metadata": {"ownerReferences": owners}}).controller() == controller


def node_affinity(requirement: object, *, preferred: bool = False) -> dict[str, Any]:
    term = {"matchExpressions": [None, requirement]}
    if preferred:
        return {PREFERRED: [{"weight": 1, "preference": term}]}
    return {REQUIRED: {"nodeSelectorTerms": [term]}}


SCOPE = [
    pytest.param({"spec": {"containers": [asks({LEGACY: 1})]}}, True, id="a legacy limit"),
    pytest.param({"spec": {"containers": [asks(None, {LEGACY: 1})]}}, True, id="a legacy request"),
    pytest.param({"spec": {"containers": [asks({LEGACY: 0})]}}, True, id="a legacy zero"),
    pytest.param({"spec": {"initContainers": [asks({LEGACY: 1})]}}, True, id="an init container"),
    pytest.param({"spec": {"containers": [asks({GPU: 1})]}}, True, id="a GPU of today"),
    pytest.param({"spec": {"containers": [asks({GPU: "x"})]}}, True, id="an unreadable amount"),
    pytest.param({"spec": {"containers": [asks({GPU: 0})]}}, False, id="no GPU of today"),
    pytest.param({"spec": {"containers": [asks({"cpu": 1})]}}, False, id="a processor"),
    pytest.param({"spec": {"nodeSelector": {LABEL: "x"}}}, True, id="the label in nodeSelector"),
    pytest.param({"spec": {"nodeSelector": {"a": LABEL}}}, False, id="the label as a value"),
    pytest.param(
        {"metadata": {"annotations": {ANNOTATION: f'{{"k": "{LABEL}"}}'}}},
        True,
        id="the label in the affinity annotation",
    ),
    pytest.param(
        {"metadata": {"annotations": {ANNOTATION: "{}"}}}, False, id="another affinity annotation"
    ),
    pytest.param(
        {"metadata": {"annotations": {ANNOTATION: None}}}, False, id="an annotation that is null"
    ),
    pytest.param({"metadata": {"annotations": {"a": LABEL}}}, False, id="another annotation"),
    pytest.param(
        {"spec": {"affinity": {"nodeAffinity": node_affinity({"key": LABEL})}}},
        True,
        id="the label in required node affinity",
    ),
    pytest.param(
        {"spec": {"affinity": {"nodeAffinity": node_affinity({"key": LABEL}, preferred=True)}}},
        True,
        id="the label in preferred node affinity",
    ),
    pytest.param(
        {"spec": {"affinity": {"nodeAffinity": node_affinity({"key": "a"})}}},
        False,
        id="another label in node affinity",
    ),
]


@pytest.mark.parametrize(("raw", "in_scope"), SCOPE)
def test_a_pod_is_our_business_if_it_names_gpus(raw: dict[str, Any], *, in_scope: bool) -> None:
    assert Pod(raw).is_in_scope(DEFAULT) is in_scope
    assert Pod(raw).is_in_scope(Settings(scope="all-legacy"))


@pytest.mark.parametrize(
    ("amounts", "named"),
    [
        pytest.param({"nvidia.com/gpu": "0"}, True, id="an amount of 0"),
        pytest.param({"nvidia.com/gpu": "odd"}, True, id="no amount at all"),
        pytest.param({LEGACY: 1}, False, id="a legacy name"),
        pytest.param({"cpu": 1}, False, id="no GPU"),
    ],
)
def test_whether_a_container_names_gpus(amounts: dict[str, Any], *, named: bool) -> None:
    (container,) = pod_with(asks(amounts)).containers
    assert container.names_gpus(DEFAULT) is named


def test_the_scope_follows_the_names_of_the_settings() -> None:
    settings = Settings(
        legacy_resources=("old/gpu",), gpu_resources=("new/gpu-*",), models=Models("old/model")
    )
    assert pod_with(asks({"old/gpu": 1})).is_in_scope(settings)
    assert pod_with(asks({"new/gpu-1": 1})).is_in_scope(settings)
    assert Pod({"spec": {"nodeSelector": {"old/model": "x"}}}).is_in_scope(settings)
    assert not pod_with(asks({LEGACY: 1})).is_in_scope(settings)
    assert not Pod({"spec": {"nodeSelector": {LABEL: "x"}}}).is_in_scope(settings)


@pytest.mark.parametrize(
    ("container", "stuck"),
    [
        pytest.param(asks({LEGACY: 1}), True, id="a limit"),
        pytest.param(asks(None, {LEGACY: "1"}), True, id="a request"),
        pytest.param(asks({LEGACY: "500m"}), True, id="a fraction"),
        pytest.param(asks({LEGACY: "x"}), True, id="an unreadable amount"),
        pytest.param(asks({LEGACY: 0}), False, id="zero: the scheduler skips it"),
        pytest.param(asks({LEGACY: None}), False, id="null is zero"),
        pytest.param(asks({GPU: 1}), False, id="a name of today"),
    ],
)
def test_a_pod_can_never_run_if_it_asks_under_a_legacy_name(
    container: dict[str, Any], *, stuck: bool
) -> None:
    assert pod_with(container).asks_under_legacy_name(DEFAULT) is stuck
    assert pod_with(container, "initContainers").asks_under_legacy_name(DEFAULT) is stuck


def test_terms_of_a_node_affinity_are_found_with_their_places() -> None:
    affinity = {
        REQUIRED: {
            "nodeSelectorTerms": [
                "no term",
                {"matchExpressions": [{"key": "a"}, {"key": "b"}]},
            ]
        },
        PREFERRED: [{}, {"preference": {"matchExpressions": [{"key": "c"}]}}],
    }
    pod = Pod({"template": {"spec": {"affinity": {"nodeAffinity": affinity}}}}, Path(("template",)))
    at = "/template/spec/affinity/nodeAffinity"
    required = {str(path): len(term["matchExpressions"]) for path, term in pod.required_terms()}
    assert required == {f"{at}/{REQUIRED}/nodeSelectorTerms/1": 2}
    assert [str(path) for path, _ in pod.preferences()] == [
        f"{at}/{PREFERRED}/0",
        f"{at}/{PREFERRED}/1",
    ]


def test_of_containers_with_one_name_the_first_is_found() -> None:
    pod = Pod({"spec": {"initContainers": [{"name": "a"}], "containers": [{"name": "a"}] * 2}})
    found = pod.container("a")
    assert found is not None
    assert found.kind == "initContainers"
    assert pod.container("b") is None


def test_a_name_that_the_api_server_refuses_for_its_length_is_cut() -> None:
    assert pod_with({"name": "x" * 1_000_000}).containers[0].name == "x" * 63


@pytest.mark.parametrize(
    ("status", "finished"),
    [
        pytest.param({"phase": "Succeeded"}, True, id="it did well"),
        pytest.param({"phase": "Failed"}, True, id="it did not"),
        pytest.param({"phase": "Running"}, False, id="it runs"),
        pytest.param(None, False, id="nobody has seen it yet"),
    ],
)
def test_a_finished_pod_holds_nothing(status: object, *, finished: bool) -> None:
    assert is_finished({"kind": "Pod", "status": status}) is finished
