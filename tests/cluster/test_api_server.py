"""What the API server itself says of our patches, and when it calls us at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.legacy_pods import CASES
from tests.cluster.pods import (
    AFFINITY,
    ALPHA,
    MODEL,
    NVIDIA,
    PRODUCT,
    TOLERATIONS,
    alpha,
    container,
    expression,
    limits_of,
    named,
    pod,
    preferred,
    required,
)
from tests.cluster.scheduling import node_of, why_pending
from tests.cluster.webhook import ROOT
from tests.cluster.workloads import made_by

if TYPE_CHECKING:
    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.legacy_pods import Case
    from tests.cluster.webhook import Recorder

OURS = re.compile(r"GPU\d{3}\b|gpu-webhook: ")
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
guides = pytest.mark.parametrize(
    "file",
    sorted(path.name for path in (ROOT / "examples").glob("*.yaml") if path.stem != "inventory"),
)


def _example(file: str) -> Json:
    example: Json = yaml.safe_load((ROOT / "examples" / file).read_text())
    return example


@cases
def test_without_us_the_pod_is_refused_or_never_runs(
    case: Case, cluster: ControlPlane, namespace: str
) -> None:
    """Each case needs the repair: else it would prove nothing about us."""
    answer = cluster.client.try_create(case.pod, namespace, dry_run=True)
    said = "; ".join([*answer.warnings, "" if answer.ok else answer.message])

    assert case.without in said
    if not case.without:
        assert answer.ok
        assert answer.warnings == ()


@cases
def test_with_us_the_api_server_has_nothing_to_say(
    case: Case, cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    answer = cluster.client.create(case.pod, namespace)

    assert [warning for warning in answer.warnings if not OURS.match(warning)] == []
    (call,) = webhook.calls(namespace)
    assert bool(answer.warnings) is bool(call.response.get("patch")), "who is told of a repair"
    assert tuple(limits.get(NVIDIA, "") for limits in limits_of(answer.body)) == case.limits
    # A 0 of the author stays: a LimitRange of that name would add its amount.
    assert {limits.get(ALPHA, "0") for limits in limits_of(answer.body)} == {"0"}
    if case.nodes:
        assert node_of(cluster.client, namespace, "pod") in case.nodes
    else:
        why_pending(cluster.client, namespace, "pod")


@guides
def test_with_us_the_guides_are_accepted_without_a_warning_of_its_own(
    file: str, cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    example = _example(file)
    answers = [cluster.client.create(example, namespace)]
    answers += [
        cluster.client.create(made_by(kind, example), namespace)
        for kind in ("Deployment", "Job", "StatefulSet", "DaemonSet")
    ]

    said = [warning for answer in answers for warning in answer.warnings]
    assert [warning for warning in said if not OURS.match(warning)] == []
    assert webhook.calls(namespace, example["metadata"]["name"])


# What each of these is, only it knows: the webhook is not to be asked.
_NONE_OF_OURS: dict[str, Json] = {
    "a pod of no kind": pod(),
    "cpu and memory": pod(container(limits={"cpu": "1", "memory": "1Gi"})),
    "huge pages": pod(container(limits={"hugepages-2Mi": "4Mi", "memory": "4Mi", "cpu": "1"})),
    "an FPGA": pod(container(limits={"example.com/fpga": 1})),
    "a GPU of AMD": pod(container(limits={"amd.com/gpu": 1})),
    "a GPU of Intel": pod(container(limits={"gpu.intel.com/i915": 1})),
    "a network device of NVIDIA": pod(container(limits={"nvidia.com/hostdev": 1})),
    "an affinity annotation about zones": pod(
        annotations={AFFINITY: '{"nodeAffinity": {}}', "note": f"once named {MODEL}"}
    ),
    "a tolerations annotation": pod(annotations={TOLERATIONS: "[]"}),
    "today's model label without a GPU": pod(nodeSelector={PRODUCT: "Tesla-K80"}),
    "today's model label preferred": pod(
        affinity=preferred(expression(PRODUCT, "In", "Tesla-K80"))
    ),
    "a required zone": pod(
        affinity=required(expression("topology.kubernetes.io/zone", "In", "eu-west-1a"))
    ),
    "an old driver's host path": pod(
        container(volumeMounts=[{"name": "lib", "mountPath": "/usr/lib/nvidia"}]),
        volumes=[{"name": "lib", "hostPath": {"path": "/usr/lib/nvidia-375"}}],
    ),
    "LD_LIBRARY_PATH": pod(
        container(env=[{"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia"}])
    ),
    "NVIDIA_VISIBLE_DEVICES": pod(
        container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])
    ),
    "a privileged container": pod(container(securityContext={"privileged": True})),
    "the host's network": pod(hostNetwork=True),
    "an init container and a sidecar": pod(
        initContainers=[
            container("init"),
            container("side", restartPolicy="Always"),
        ]
    ),
    "a toleration of everything": pod(tolerations=[{"operator": "Exists"}]),
    "a Windows pod with a legacy GPU": pod(alpha(1), os={"name": "windows"}),
    "a mirror pod with a legacy GPU": pod(
        alpha(1), annotations={"kubernetes.io/config.mirror": "hash"}, nodeName="cpu-1"
    ),
    "an unknown alpha resource": pod(
        container(limits={"alpha.kubernetes.io/nvidia-gpu-memory": 1})
    ),
}


def test_none_of_our_business_makes_no_call_and_a_repair_exactly_one(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    """Both in one run: silence alone could as well mean that the webhook is never called."""
    before = len(webhook.calls())
    assert len(_NONE_OF_OURS) >= 20
    for number, (sentence, foreign) in enumerate(_NONE_OF_OURS.items()):
        cluster.client.create(named(foreign, f"foreign-{number}"), namespace)
        assert webhook.calls(namespace) == [], sentence
    for number, (sentence, case) in enumerate(CASES.items()):
        name = f"repaired-{number}-"
        cluster.client.create(named(case.pod, name + "pod"), namespace)
        assert len(webhook.calls(namespace, name)) == 1, sentence
        is_repaired = bool(webhook.calls(namespace, name)[0].response.get("patch"))
        assert is_repaired is (sentence != "a legacy amount of zero"), sentence
    assert len(webhook.calls()) - before == len(CASES)


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({"gpu-webhook.dev/ignore": "true"}, id="a namespace that says: ignore"),
        pytest.param(None, id="kube-system"),
    ],
)
def test_a_namespace_that_is_left_alone_makes_no_call(
    labels: dict[str, str] | None, cluster: ControlPlane, recorder: Recorder
) -> None:
    where = cluster.make_namespace("left-alone", labels) if labels else "kube-system"

    answer = cluster.client.create(pod(alpha(1)), where, dry_run=True)

    assert limits_of(answer.body) == [{ALPHA: "1"}]
    assert recorder.calls(where) == []
