"""Settings: names that count GPUs, taints that are not ours, profiles that fit together."""

from __future__ import annotations

import pytest

from webhook.core import labels
from webhook.core.settings import (
    AKS_SKU_TAINT,
    DRIVER_PROFILES,
    MODEL_PROFILES,
    DriverMount,
    Drivers,
    Models,
    Settings,
    Taint,
)


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
    assert str(AKS_SKU_TAINT) == "sku=gpu:NoSchedule"
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


def test_the_active_driver_profile_is_the_named_one_or_the_users_own() -> None:
    mount = DriverMount("/opt/driver", "/usr/local/nvidia")
    own = Drivers("host-path", (mount,), "/usr/local/nvidia/lib64").active
    assert (own.mounts, own.library_path, own.runtime_class) == (
        (mount,),
        "/usr/local/nvidia/lib64",
        False,
    )
    assert Drivers(mounts=(mount,)).active == DRIVER_PROFILES["toolkit"]
    assert Drivers("runtime-class").active.runtime_class
    assert not DRIVER_PROFILES["toolkit"].mounts


@pytest.mark.parametrize("name", DRIVER_PROFILES)
def test_every_mount_of_a_driver_profile_is_absolute(name: str) -> None:
    for mount in DRIVER_PROFILES[name].mounts:
        assert mount.host_path.startswith("/")
        assert mount.mount_path.startswith("/")
        assert (mount.type == "File") == (".so" in mount.host_path)
