"""Settings: names that count GPUs, taints that are not ours, profiles that fit together."""

from __future__ import annotations

import pytest

from webhook.core.built_in import AUTOSCALER_TAINTS, MANAGEMENT_NAMESPACES
from webhook.core.namespace_selection import Selection
from webhook.core.settings import (
    MODEL_PROFILES,
    Allowance,
    Capacity,
    Exempt,
    Guard,
    Models,
    Policy,
    Settings,
    Taint,
)
from webhook.kube import labels


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        pytest.param("nvidia.com/gpu", True, id="the name of today"),
        pytest.param("nvidia.com/gpu.shared", True, id="shared GPUs"),
        pytest.param("nvidia.com/mig-1g.5gb", True, id="a slice"),
        pytest.param("nvidia.com/mig-1g.5gb.shared", True, id="a shared slice"),
        pytest.param("nvidia.com/mig-", True, id="the bare pattern"),
        pytest.param("nvidia.com/gpu.memory", False, id="a longer name is not meant"),
        pytest.param("nvidia.com/migrant", False, id="nor one that only looks alike"),
        pytest.param("xnvidia.com/gpu", False, id="nor one that ends alike"),
        pytest.param("alpha.kubernetes.io/nvidia-gpu", False, id="the legacy name"),
        pytest.param("cpu", False, id="processors"),
    ],
)
def test_names_that_count_gpus(name: str, *, counts: bool) -> None:
    assert Settings().is_gpu(name) is counts


def test_the_target_name_counts_gpus_even_if_it_is_not_listed() -> None:
    settings = Settings(gpu_resource="amd.com/gpu", gpu_resources=())
    assert settings.is_gpu("amd.com/gpu")
    assert not settings.is_gpu("nvidia.com/gpu")


@pytest.mark.parametrize(
    ("key", "off_limits"),
    [
        pytest.param("node.kubernetes.io/not-ready", True, id="the node life cycle"),
        pytest.param("node.cloudprovider.kubernetes.io/uninitialized", True, id="the cloud's"),
        pytest.param("karpenter.sh/disrupted", True, id="Karpenter"),
        pytest.param("ToBeDeletedByClusterAutoscaler", True, id="the autoscaler"),
        pytest.param("DeletionCandidateOfClusterAutoscaler", True, id="its candidates"),
        pytest.param("nvidia.com/gpu", False, id="GPUs"),
        pytest.param("sku", False, id="a pool"),
    ],
)
def test_taints_that_are_never_tolerated(key: str, *, off_limits: bool) -> None:
    assert Taint(key).is_off_limits is off_limits


def test_a_taint_is_written_as_kubectl_does() -> None:
    assert str(Taint("sku", "gpu")) == "sku=gpu:NoSchedule"
    assert str(Taint("nvidia.com/gpu", effect="NoExecute")) == "nvidia.com/gpu:NoExecute"


@pytest.mark.parametrize("name", MODEL_PROFILES)
def test_every_model_profile_names_a_legal_label_and_legal_values(name: str) -> None:
    profile = MODEL_PROFILES[name]
    named = [value for _, values in profile.named for value in values]
    assert labels.is_key(profile.label)
    assert profile.values or named
    assert all(value and labels.is_value(value) for value in (*profile.values, *named))
    assert len(set(profile.values)) == len(profile.values)
    assert len(set(named)) == len(named)


def test_the_key_of_the_models_is_the_profiles_unless_the_user_names_one() -> None:
    assert Models().key == "nvidia.com/gpu.product"
    assert Models(profile="gke").key == "cloud.google.com/gke-accelerator"
    assert Models(profile="gke", label="own/model").key == "own/model"


ALLOWANCES = Policy(
    exceptions=(
        Allowance(("GPU301", "GPU304"), Selection(("ml-*",))),
        Allowance(("GPU303",), Selection(labels=(("trusted", "yes"),))),
    )
)


@pytest.mark.parametrize(
    ("code", "namespace", "trusted", "allowed"),
    [
        pytest.param("GPU301", "ml-train", "", True, id="a listed rule in a listed namespace"),
        pytest.param("GPU304", "ml-train", "", True, id="another one of the list"),
        pytest.param("GPU301", "web", "", False, id="elsewhere"),
        pytest.param("GPU302", "ml-train", "", False, id="a rule that is not listed"),
        pytest.param("GPU303", "ml-train", "", False, id="a rule that is listed for others"),
        pytest.param("GPU303", "web", "yes", True, id="by the label of the namespace"),
        pytest.param("GPU303", "web", "no", False, id="by another value of it"),
    ],
)
def test_exceptions_count_where_the_settings_say(
    code: str, namespace: str, trusted: str, *, allowed: bool
) -> None:
    known = {"trusted": trusted} if trusted else {}
    assert ALLOWANCES.allows_exception(code, namespace, known) is allowed
    assert not Policy().allows_exception(code, namespace, known)


CAPACITY = Capacity(startup_taints=("example.com/starting", "csi.*"))
STARTUP = (
    "node.cilium.io/agent-not-ready",
    "ebs.csi.aws.com/agent-not-ready",
    "efs.csi.aws.com/agent-not-ready",
    "fsx.csi.aws.com/agent-not-ready",
    "s3.csi.aws.com/agent-not-ready",
    "disk.csi.azure.com/agent-not-ready",
    "cni.istio.io/not-ready",
    "node.cluster.x-k8s.io/uninitialized",
    "node.cluster.x-k8s.io/outdated-revision",
    "node.kops.k8s.io/uninitialized",
    "node.gardener.cloud/critical-components-not-ready",
    "readiness.k8s.io/StorageReady",
    "cloud.google.com/impending-node-termination",
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/scheduled-maintenance",
    "medik8s.io/remediation",
    "medik8s.io/drain",
    "medik8s.io/fence-agents-remediation",
    "remediation.medik8s.io/fence-agents-remediation",
    "remediator.aks.microsoft.com/unschedulable",
    "remediator.kubernetes.azure.com/unschedulable",
    "egressgateway.kubernetes.azure.com/cni-not-ready",
    "cloud.google.com/maintenance-window-started",
    "sagemaker.amazonaws.com/node-health-status",
    "AggregatedNodeHealth",
    "amd-gpu-unhealthy",
    "autoscaling.cast.ai/draining",
    "drbd.linbit.com/force-io-error",
    "drbd.linbit.com/lost-quorum",
    "k8s.ovn.org/network-unavailable",
    "kubevirt.io/drain",
    "network.openshift.io/mtu-too-small",
    "nidhogg.uswitch.com/kube-system.kube-multus-ds",
    "node.deckhouse.io/bashible-uninitialized",
    "node.deckhouse.io/csi-not-bootstrapped",
    "skyhook.nvidia.com",
    "tke.cloud.tencent.com/eni-ip-unavailable",
    "tke.cloud.tencent.com/uninitialized",
    "UpdateInProgress",
    "weave.works/kured-node-reboot",
)


@pytest.mark.parametrize(
    ("key", "by_default", "listed"),
    [
        pytest.param("node.kubernetes.io/unschedulable", True, True, id="cordoned"),
        pytest.param("node.kubernetes.io/not-ready", True, True, id="not ready"),
        pytest.param("karpenter.sh/disrupted", True, True, id="Karpenter's"),
        *(pytest.param(each, True, True, id=each) for each in AUTOSCALER_TAINTS),
        *(pytest.param(each, True, True, id=each) for each in STARTUP),
        pytest.param("example.com/starting", False, True, id="a start-up taint of this cluster"),
        pytest.param("example.com/starting-yet", False, False, id="one that begins alike"),
        pytest.param("node.cilium.io/agent-not-ready-yet", False, False, id="one like Cilium's"),
        pytest.param("csi.example.com/starting", False, True, id="one of a pattern"),
        pytest.param("nvidia.com/gpu", False, False, id="a taint that stays"),
        *(
            pytest.param(each, False, False, id=f"{each} stays")
            for each in (
                "kubernetes.azure.com/scalesetpriority",
                "scheduling.cast.ai/spot",
                "cloud.google.com/gke-spot",
                "cloud.google.com/gke-queued",
                "CriticalAddonsOnly",
                "virtual-kubelet.io/provider",
            )
        ),
        pytest.param("", False, False, id="a taint without a key"),
    ],
)
def test_taints_that_say_not_now(key: str, *, by_default: bool, listed: bool) -> None:
    assert Capacity().passes_by(key) is by_default
    assert CAPACITY.passes_by(key) is listed


@pytest.mark.parametrize(
    ("exempt", "namespace", "app", "covered"),
    [
        pytest.param(Exempt(("gpu-*",)), "gpu-operator", "", True, id="its namespace"),
        pytest.param(Exempt(("gpu-*",)), "web", "", False, id="another namespace"),
        pytest.param(Exempt((), (("app", "dcgm"),)), "web", "dcgm", True, id="its label"),
        pytest.param(Exempt((), (("app", "dcgm"),)), "web", "", False, id="no label"),
        pytest.param(Exempt((), (("app", "dcgm"),)), "web", "x", False, id="another value"),
        pytest.param(Exempt(("a",), (("app", "dcgm"),)), "a", "dcgm", True, id="both"),
        pytest.param(Exempt(("a",), (("app", "dcgm"),)), "b", "dcgm", False, id="the label alone"),
        pytest.param(Exempt(("a",), (("app", "dcgm"),)), "a", "x", False, id="the namespace alone"),
    ],
)
def test_pods_that_may_see_gpus_without_asking(
    exempt: Exempt, namespace: str, app: str, *, covered: bool
) -> None:
    assert exempt.covers(namespace, {"app": app} if app else {}) is covered


def test_by_default_only_the_namespaces_of_gpu_software_are_exempt() -> None:
    (exempt,) = Guard().exempt
    assert all(exempt.covers(each, {}) for each in MANAGEMENT_NAMESPACES)
    assert not exempt.covers("default", {"app": "nvidia-device-plugin-daemonset"})
    assert not exempt.covers("my-gpu-operator", {})


def test_by_default_nothing_is_denied_or_excused_or_limited() -> None:
    settings = Settings()
    assert settings.policy == Policy()
    assert settings.capacity == Capacity()
    assert not settings.capacity.limits
    assert not settings.workloads.repair
