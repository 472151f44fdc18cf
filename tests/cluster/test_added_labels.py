"""Legacy labels that others than its author add to a pod, where templates are repaired.

The namespace (PodNodeSelector), a RuntimeClass and a MutatingAdmissionPolicy add them to the pods
of a repaired template, which are pods of today: they run as bare legacy pods do. The control plane
is one of its own: PodNodeSelector is off by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster import build, nodes
from tests.cluster.client import until
from tests.cluster.conftest import INVENTORY
from tests.cluster.controlplane import ControlPlane
from tests.cluster.pods import MODEL, NVIDIA, PRODUCT, alpha, modern, named, pod
from tests.cluster.policies import inside, mutating
from tests.cluster.scheduling import empty, node_of, pods_of
from tests.cluster.workloads import made_by, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from tests.cluster.client import Answer, Json

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
SELECTING = {"of-k80": f"{MODEL}=Tesla-K80", "of-zone": f"{OLD_ZONE}=z1", "of-none": ""}
CARRIED = nodes.gpu_node("carries", 4, labels={MODEL: "Tesla-M40"})
ZONED = nodes.gpu_node("zoned", 4, labels={ZONE: "z1", PRODUCT: "Tesla-T4"})
LINUX = {"kubernetes.io/os": "linux"}
GIVEN = {"workloads": {"repair": True}, "policy": {"rules": {"GPU301": "enforce"}}}


def runtime_class(name: str, **fields: Any) -> Json:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "nvidia",
        **fields,
    }


CLASSES = [
    runtime_class("k80", scheduling={"nodeSelector": {MODEL: "Tesla-K80"}}),
    runtime_class("m40", scheduling={"nodeSelector": {MODEL: "Tesla-M40"}}),
    runtime_class("large", overhead={"podFixed": {NVIDIA: "6"}}),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    if not build.is_built():
        pytest.fail("the control plane is not built: run `make cluster` first", pytrace=False)
    flags = ["--enable-admission-plugins=PodNodeSelector"]
    with ControlPlane(apiserver_flags=flags) as running:
        nodes.add(running.client, [*nodes.from_inventory(INVENTORY), CARRIED, ZONED])
        for each in CLASSES:
            running.client.create(each)
        for name, selector in SELECTING.items():
            running.make_namespace(name)
            if selector:
                running.kubectl("annotate", "namespace", name, f"{SELECTOR}={selector}")
        yield running


@pytest.fixture(scope="module", autouse=True)
def _webhook(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("added")
    known = yaml.safe_load(INVENTORY.read_text())
    known["items"] += [CARRIED, ZONED, *CLASSES]
    file = folder / "inventory.yaml"
    file.write_text(yaml.safe_dump(known))
    with serving(cluster, folder, GIVEN, file):

        def is_repaired() -> bool:
            probe = made_by("Deployment", pod(alpha()), 0)
            made = cluster.client.create(probe, "of-none", dry_run=True).body
            return (
                NVIDIA in made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
            )

        until(is_repaired, "the entry to be in force")
        yield


def applied(cluster: ControlPlane, namespace: str, what: Json) -> Answer:
    answer = cluster.client.try_create(what, namespace)
    assert answer.ok, answer.message
    assert "REFUSED" not in " ".join(answer.warnings)
    return answer


def runs_on(cluster: ControlPlane, namespace: str) -> str:
    [made] = pods_of(cluster.client, namespace, 1)
    assert not {MODEL, OLD_ZONE} & made["spec"].get("nodeSelector", {}).keys()
    return node_of(cluster.client, namespace, made["metadata"]["name"])


@pytest.fixture(autouse=True)
def _emptied(cluster: ControlPlane) -> Iterator[None]:
    yield
    for namespace in SELECTING:
        empty(cluster.client, namespace)


@pytest.mark.parametrize("spec", [{}, {"nodeSelector": LINUX}], ids=["alone", "beside another"])
@pytest.mark.parametrize("kind", ["Deployment", "Job"])
@pytest.mark.parametrize(
    ("namespace", "node"), [("of-k80", "gpu-k80-1"), ("of-zone", "zoned")], ids=["model", "zone"]
)
def test_a_label_of_the_namespace(
    namespace: str, node: str, kind: str, spec: Json, cluster: ControlPlane
) -> None:
    applied(cluster, namespace, made_by(kind, pod(alpha(), **spec), 1))
    assert runs_on(cluster, namespace) == node


@pytest.mark.parametrize("spec", [{}, {"nodeSelector": LINUX}], ids=["alone", "beside another"])
def test_a_label_of_a_runtime_class(spec: Json, cluster: ControlPlane) -> None:
    what = made_by("Deployment", pod(alpha(), runtimeClassName="k80", **spec), 1)
    applied(cluster, "of-none", what)
    assert runs_on(cluster, "of-none") == "gpu-k80-1"


def test_of_a_bare_legacy_pod_in_such_a_class_nothing_is_said_to_be_refused(
    cluster: ControlPlane,
) -> None:
    what = named(pod(alpha(), runtimeClassName="k80"), "bare")
    answer = cluster.client.try_create(what, "of-none")
    assert answer.ok, answer.message
    assert "refused" not in " ".join(answer.warnings)
    assert runs_on(cluster, "of-none") == "gpu-k80-1"


def test_a_label_that_nodes_carry_stays(cluster: ControlPlane) -> None:
    what = made_by("Deployment", pod(alpha(), runtimeClassName="m40"), 1)
    applied(cluster, "of-none", what)
    [made] = pods_of(cluster.client, "of-none", 1)
    assert made["spec"]["nodeSelector"] == {MODEL: "Tesla-M40"}
    assert node_of(cluster.client, "of-none", made["metadata"]["name"]) == "carries"


def test_a_pod_of_today_that_nobody_made_of_a_template_is_left_alone(cluster: ControlPlane) -> None:
    answer = cluster.client.try_create(named(pod(modern()), "modern"), "of-k80")
    assert not answer.ok
    assert f"nodeSelector {MODEL}=Tesla-K80" in answer.message


@pytest.mark.parametrize("spec", [{}, {"nodeSelector": LINUX}], ids=["alone", "in place of it"])
def test_a_policy_that_replaces_the_whole_selector(spec: Json, cluster: ControlPlane) -> None:
    with selecting(cluster, "of-none"):
        applied(cluster, "of-none", made_by("Deployment", pod(alpha(), **spec), 1))
        assert runs_on(cluster, "of-none") == "gpu-k80-1"


@pytest.mark.parametrize("gpus", [1, 3])
def test_the_overhead_of_a_class(gpus: int, cluster: ControlPlane) -> None:
    """The largest node has 8 GPUs. What is said of the workload is what becomes of its pods."""
    what = pod(alpha(gpus), runtimeClassName="large")
    told = cluster.client.try_create(made_by("Deployment", what, 0), "of-none")
    refused = not cluster.client.try_create(named(what, "bare"), "of-none", dry_run=True).ok
    assert told.ok, told.message
    assert ("WILL BE REFUSED" in " ".join(told.warnings)) is refused is (gpus > 2)


def selecting(cluster: ControlPlane, namespace: str) -> AbstractContextManager[None]:
    """A MutatingAdmissionPolicy that gives the pods there another nodeSelector, in each round."""
    change = (
        f'has(object.spec.nodeSelector) && "{MODEL}" in object.spec.nodeSelector ? [] : '
        f'[JSONPatch{{op: "add", path: "/spec/nodeSelector", value: {{"{MODEL}": "Tesla-K80"}}}}]'
    )
    pods = {"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}
    # A pod without GPUs: nobody translates what it gets.
    return mutating(
        cluster,
        "selecting",
        inside(namespace, pods),
        change,
        lambda: MODEL in _selector_of_a_plain_pod(cluster, namespace),
        again="IfNeeded",
    )


def _selector_of_a_plain_pod(cluster: ControlPlane, namespace: str) -> Json:
    made = cluster.client.create(named(pod(), "probe"), namespace, dry_run=True).body
    selector: Json = made["spec"].get("nodeSelector", {})
    return selector
