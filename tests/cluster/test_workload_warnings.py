"""What a person who applies a workload is told of its pods, by the real kubectl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.pods import ALPHA, NVIDIA, alpha, modern, pod
from tests.cluster.scheduling import pods_of
from tests.cluster.workloads import DEFINITIONS, definition, made_by, serving

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

    Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]

CONFIGURED: Json = {"workloads": {"kinds": [{"kind": "TFJob", "group": "kubeflow.org"}]}}
TF_JOBS = definition("TFJob", "kubeflow.org", "tfjobs")
BUILT_IN = (
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicationController",
    "PodTemplate",
)
SAID = f"Warning: GPU101: container main requests {ALPHA}, which no node offers; write {NVIDIA}: 1"


@pytest.fixture(scope="module")
def told(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    """A server that knows TFJobs, which the cluster serves."""
    client = cluster.client
    client.demand("POST", DEFINITIONS, TF_JOBS)
    try:
        with serving(cluster, tmp_path_factory.mktemp("told"), CONFIGURED) as recorder:
            until(lambda: _is_told_of_tf_jobs(cluster), "the workload entry to be in force")
            yield recorder
    finally:
        client.demand("DELETE", f"{DEFINITIONS}/{TF_JOBS['metadata']['name']}")


def _is_told_of_tf_jobs(cluster: ControlPlane) -> bool:
    place = "apis/kubeflow.org/v1/namespaces/default/tfjobs"
    probe = tf_job(alpha_template())
    return bool(cluster.client.request("POST", place, probe, query={"dryRun": "All"}).warnings)


@pytest.fixture
def kubectl(cluster: ControlPlane, namespace: str) -> Kubectl:
    def run(*arguments: str, what: Json | None = None) -> subprocess.CompletedProcess[str]:
        text = None if what is None else yaml.safe_dump(what)
        done = cluster.try_kubectl(f"--namespace={namespace}", *arguments, stdin=text)
        assert done.returncode == 0, done.stderr
        return done

    return run


APPLY = ("apply", "-f", "-")


def alpha_template() -> Json:
    return {"spec": pod(alpha())["spec"]}


def tf_job(*templates: Json) -> Json:
    roles = {f"Role{n}": {"replicas": 1, "template": each} for n, each in enumerate(templates)}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "train"},
        "spec": {"tfReplicaSpecs": roles},
    }


def template_of(obj: Json) -> Json:
    template: Json = obj
    for step in {"CronJob": ("spec", "jobTemplate", "spec"), "PodTemplate": ()}.get(
        obj["kind"], ("spec",)
    ):
        template = template[step]
    found: Json = template["template"]
    return found


@pytest.mark.parametrize("kind", BUILT_IN)
def test_whoever_applies_a_workload_is_told_and_told_again_when_its_template_changes(
    kind: str, cluster: ControlPlane, namespace: str, kubectl: Kubectl, told: Recorder
) -> None:
    what = made_by(kind, pod(alpha()), 0)
    if kind == "Job":
        what["spec"]["suspend"] = True  # only so its template's annotations can be changed
    name = what["metadata"]["name"]

    applied = kubectl(*APPLY, what=what)
    again = kubectl(*APPLY, what=what)
    labelled = kubectl("label", f"{kind}/{name}", "team=a")
    template_of(what)["metadata"]["annotations"] = {"restarted": "now"}
    changed = kubectl(*APPLY, what=what)

    assert SAID in applied.stderr
    assert applied.stderr.count("GPU101") == 1
    promise = "[see GPU110]" if kind == "DaemonSet" else "[its pods will be repaired]"
    assert promise in applied.stderr
    assert again.stderr == labelled.stderr == ""
    assert SAID in changed.stderr
    asked = {call.request["kind"]["kind"] for call in told.calls(namespace, path="/validate")}
    assert asked - {"Pod"} == {kind}  # a DaemonSet makes pods without being asked for any
    stored = template_of(cluster.client.get(kind, name, namespace) | {"kind": kind})
    limits = stored["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {ALPHA: "1"}, "a workload is not changed unless the settings say so"


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("spec", "repaired"),
    [
        pytest.param(
            {"nodeSelector": {f"{ALPHA}-name": "Tesla-K80"}},
            {"nodeSelector": {"nvidia.com/gpu.product": "Tesla-K80"}},
            id="a label that no node carries",
        ),
        pytest.param(
            {"nodeSelector": {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}},
            {"tolerations": [{"key": NVIDIA, "operator": "Exists"}]},
            id="a taint that only the repaired pods tolerate",
        ),
    ],
)
def test_a_daemonset_without_pods_is_promised_none(
    spec: Json, repaired: Json, cluster: ControlPlane, namespace: str, kubectl: Kubectl
) -> None:
    what = made_by("DaemonSet", pod(alpha()), 0)
    what["spec"]["template"]["spec"].update(spec)
    name = what["metadata"]["name"]

    def desired(generation: int) -> int | None:
        status = cluster.client.get("DaemonSet", name, namespace)["status"]
        seen = status.get("observedGeneration") == generation
        return int(status["desiredNumberScheduled"]) + 1 if seen else None

    applied = kubectl(*APPLY, what=what)
    assert "and by it no node with these GPUs gets a pod" in applied.stderr
    assert "its pods will be repaired" not in applied.stderr
    assert until(lambda: desired(1), "the controller") == 1, "it makes no pod"

    what["spec"]["template"]["spec"].update(repaired)
    applied = kubectl(*APPLY, what=what)
    assert "gets a pod" not in applied.stderr
    assert until(lambda: desired(2), "the controller") > 1


@pytest.mark.parametrize(
    "kind", ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"]
)
def test_who_scales_a_workload_is_told_nothing(kind: str, kubectl: Kubectl, told: Recorder) -> None:
    what = made_by(kind, pod(alpha()), 0)
    kubectl(*APPLY, what=what)
    before = len(told.all_calls())

    scaled = kubectl("scale", f"{kind}/{what['metadata']['name']}", "--replicas=1")
    what["spec"]["replicas"] = 0
    applied = kubectl(*APPLY, what=what)

    assert scaled.stderr == applied.stderr == ""
    assert [
        call for call in told.all_calls()[before:] if call.request["kind"]["kind"] == kind
    ] == []


def test_what_the_controllers_make_of_it_is_not_told_to_anybody(
    cluster: ControlPlane, namespace: str, kubectl: Kubectl, told: Recorder
) -> None:
    kubectl(*APPLY, what=made_by("Deployment", pod(alpha()), 2))
    cron = made_by("CronJob", pod(alpha()), 1)
    kubectl(*APPLY, what=cron)
    kubectl("create", "job", "by-hand", f"--from=cronjob/{cron['metadata']['name']}")

    pods = pods_of(cluster.client, namespace, 3)

    assert len(cluster.client.list("ReplicaSet", namespace)) == 1
    assert {each["spec"]["containers"][0]["resources"]["limits"][NVIDIA] for each in pods} == {"1"}
    kinds = [call.request["kind"]["kind"] for call in told.calls(namespace, path="/validate")]
    # kubectl makes the CronJob the controller of a Job that it makes of it.
    assert sorted(set(kinds)) == ["CronJob", "Deployment", "Pod"]
    assert kinds.count("Deployment") == kinds.count("CronJob") == 1


@pytest.mark.usefixtures("told")
def test_templates_of_a_custom_kind_that_share_a_fault_are_one_warning(kubectl: Kubectl) -> None:
    what = tf_job(alpha_template(), alpha_template())

    applied = kubectl(*APPLY, what=what)
    what["spec"]["tfReplicaSpecs"]["Role0"]["replicas"] = 3
    scaled = kubectl(*APPLY, what=what)
    what["spec"]["tfReplicaSpecs"]["Role0"]["template"]["metadata"] = {"labels": {"a": "b"}}
    changed = kubectl(*APPLY, what=what)

    assert applied.stderr.count(SAID) == 1
    assert scaled.stderr == ""
    assert changed.stderr.count(SAID) == 1


@pytest.mark.usefixtures("told")
def test_a_workload_that_can_never_run_here_is_made_all_the_same(kubectl: Kubectl) -> None:
    done = kubectl(*APPLY, what=made_by("StatefulSet", pod(alpha(99)), 1))

    assert f"Warning: GPU301: requests 99 {NVIDIA}" in done.stderr
    assert "created" in done.stdout


@pytest.mark.usefixtures("told")
def test_more_pods_than_the_cluster_has_gpus_for_are_told_of(kubectl: Kubectl) -> None:
    what = made_by("Deployment", pod(modern()), 99)
    what["spec"]["paused"] = True  # no controller makes the pods: they would hold all GPUs

    done = kubectl(*APPLY, what=what)

    assert "Warning: GPU305: all pods of this workload together ask for 99" in done.stderr


@pytest.mark.usefixtures("told")
def test_a_legacy_template_in_a_queue_is_told_of(kubectl: Kubectl) -> None:
    what = made_by("Job", pod(alpha()), 1)
    what["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team-a"}
    what["spec"]["suspend"] = True

    done = kubectl(*APPLY, what=what)

    assert "Warning: GPU111: Kueue (queue team-a) counts GPUs in this template" in done.stderr


@pytest.mark.usefixtures("told")
def test_a_dry_run_is_told_the_same(kubectl: Kubectl) -> None:
    done = kubectl(*APPLY, "--dry-run=server", what=made_by("Deployment", pod(alpha()), 0))

    assert SAID in done.stderr
