"""What settings put into pods, as the real API server sees it: what is fine, and what is a mistake.

The pods are repaired here and sent where no webhook is called.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.pods import alpha, named, pod
from tests.engine import run
from tests.properties.refusals import refusals
from tests.properties.test_settings_in_pods import context
from webhook.core.errors import SettingsError
from webhook.core.settings import (
    DriverMount,
    Drivers,
    Models,
    Placement,
    Settings,
    Taint,
)
from webhook.rules import RULES
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Answer, Json
    from tests.cluster.controlplane import ControlPlane

LONG_NAME = "b" * 63
LONG_DOMAIN = ".".join(["a" * 62] * 4)[:253]
LEGACY_NAME = {"alpha.kubernetes.io/nvidia-gpu-name": "K80"}


def mounts(*each: dict[str, str], **more: Any) -> Json:
    made = [{"path": "/a", "mountPath": "/b"} | one for one in each]
    return {"drivers": {"profile": "host-path", "hostPath": {"mounts": made, **more}}}


FINE = {
    "a mount": mounts({}),
    "a file": mounts({"type": "File"}),
    "the same path at two places": mounts({}, {"mountPath": "/c"}),
    "a mount in another": mounts({}, {"mountPath": "/b/c"}),
    "a path with odd characters": mounts({"path": "/a b/é:,$(X)", "mountPath": "/é ,$(X)/..."}),
    "paths with slashes and dots": mounts({"path": "//a/./b/", "mountPath": "//a/./b/"}),
    "the longest paths": mounts({"path": f"/{'a' * 4094}", "mountPath": f"/{'b' * 4094}"}),
    "a library path": mounts({}, libraryPath="/b:/c d:$(HOME)/é"),
    "the longest library path": mounts({}, libraryPath="/" + "b" * 4094),
    "many mounts": mounts(*({"mountPath": f"/{number}"} for number in range(100))),
    "a runtime class": {"drivers": {"profile": "runtime-class", "runtimeClass": "of-a.test"}},
    "the longest class": {"drivers": {"profile": "runtime-class", "runtimeClass": LONG_DOMAIN}},
    "a taint without value": {"tolerations": {"taints": ["a:NoSchedule"]}},
    "taints of all effects": {
        "tolerations": {
            "taints": [
                f"a=b:{effect}" for effect in ("NoSchedule", "NoExecute", "PreferNoSchedule")
            ]
        }
    },
    "the longest taint": {
        "tolerations": {"taints": [f"{LONG_DOMAIN}/{LONG_NAME}={LONG_NAME}:NoSchedule"]}
    },
    "the same taint twice": {"tolerations": {"taints": ["sku=gpu:NoSchedule"] * 2}},
    "a label without value": {"placement": {"enabled": True, "label": "a", "value": ""}},
    "the longest label": {
        "placement": {
            "enabled": True,
            "label": f"{LONG_DOMAIN}/{LONG_NAME}",
            "value": LONG_NAME,
        }
    },
    "the longest label of models": {
        "models": {
            "label": f"{LONG_DOMAIN}/{LONG_NAME}",
            "values": {"K80": [LONG_NAME, "Tesla-K80"]},
        }
    },
    "a model of no name": {"models": {"values": {"K80": [""]}}},
    "the longest target": {"resources": {"target": f"{LONG_DOMAIN[:244]}/{LONG_NAME}"}},
    "a long scheduler": {"annotationSchedulers": [LONG_DOMAIN]},
}


def by_host_path(*mounts: DriverMount) -> Settings:
    return Settings(drivers=Drivers(mounts))


# What the file would say, and what no file can give.
MISTAKES: dict[str, tuple[Json, Settings]] = {
    "two mounts at one place": (
        mounts({}, {"path": "/c"}),
        by_host_path(DriverMount("/a", "/b"), DriverMount("/c", "/b")),
    ),
    "a path that climbs": (
        mounts({"path": "/a/.."}),
        by_host_path(DriverMount("/a/..", "/b")),
    ),
    "no mountPath": (mounts({"mountPath": ""}), by_host_path(DriverMount("/a", ""))),
    "a runtime class in capitals": (
        {"drivers": {"profile": "runtime-class", "runtimeClass": "A"}},
        Settings(drivers=Drivers(runtime_class="A")),
    ),
    "a target for quotas": (
        {"resources": {"target": "requests.nvidia.com/gpu"}},
        Settings(gpu_resource="requests.nvidia.com/gpu"),
    ),
    "a target too long for quotas": (
        {"resources": {"target": f"{'a' * 245}/gpu"}},
        Settings(gpu_resource=f"{'a' * 245}/gpu"),
    ),
    "a target without prefix": (
        {"resources": {"target": "gpu"}},
        Settings(gpu_resource="gpu"),
    ),
    "a taint with a long value": (
        {"tolerations": {"taints": [f"a={'b' * 64}:NoSchedule"]}},
        Settings(taints=(Taint("a", "b" * 64),)),
    ),
    "a taint with a bad key": (
        {"tolerations": {"taints": ["a/b/c:NoSchedule"]}},
        Settings(taints=(Taint("a/b/c"),)),
    ),
    "a taint with a bad effect": (
        {"tolerations": {"taints": [{"key": "a", "effect": "Never"}]}},
        Settings(taints=(Taint("a", "", "Never"),)),
    ),
    "a label with a bad value": (
        {"placement": {"enabled": True, "label": "a", "value": "a b"}},
        Settings(placement=Placement(enabled=True, label="a", value="a b")),
    ),
    "a label with a long key": (
        {"placement": {"enabled": True, "label": "b" * 64}},
        Settings(placement=Placement(enabled=True, label="b" * 64)),
    ),
    "a model with a bad label": (
        {"models": {"label": "a/b/c"}},
        Settings(models=Models(label="a/b/c")),
    ),
}


DISK = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
MINE = {"name": "mine", "emptyDir": {}}
OURS = {"name": "gpu-webhook-driver-0", "emptyDir": {}}
IN_THE_WAY: dict[str, tuple[Json, Json]] = {
    f"a mount at {path}": ({"volumeMounts": [{"name": "mine", "mountPath": path}]}, MINE)
    for path in ("/b", "/b/", "b", "//b/.")
} | {
    "a block device": ({"volumeDevices": [{"name": "disk", "devicePath": "/b"}]}, DISK),
    "a volume of that name": ({}, OURS),
    "a mount of that name": (
        {"volumeMounts": [{"name": "gpu-webhook-driver-0", "mountPath": "/c"}]},
        OURS,
    ),
}


@pytest.fixture
def classes(cluster: ControlPlane) -> Iterator[None]:
    """Make the runtime classes that the settings name."""
    names = ("of-a.test", LONG_DOMAIN)
    for name in names:
        made = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
        cluster.client.create({**made, "metadata": {"name": name}})
    yield
    for name in names:
        cluster.client.delete("RuntimeClass", name)


def as_sent(settings: Settings) -> Json:
    """A legacy pod, repaired; it asks for a model only where the settings do not place it."""
    more = {} if settings.placement.enabled else {"nodeSelector": dict(LEGACY_NAME)}
    made = named(pod(alpha(), **more), "repaired")
    if settings.annotation_schedulers:
        name = settings.annotation_schedulers[0]
        made["metadata"]["annotations"] = {"scheduler.alpha.kubernetes.io/name": name}
    before = deepcopy(made)
    run(RULES, made, context(settings))
    assert made != before
    return made


def answered(cluster: ControlPlane, made: Json, namespace: str) -> Answer:
    return cluster.client.try_create(made, namespace, dry_run=True)


@pytest.mark.usefixtures("classes")
@pytest.mark.parametrize("what", FINE)
def test_what_config_check_calls_fine_the_api_server_takes(
    what: str, cluster: ControlPlane, namespace: str
) -> None:
    settings = settings_file.parse(json.dumps(FINE[what]))
    made = as_sent(settings)
    assert refusals(made) == set()
    answer = answered(cluster, made, namespace)
    assert answer.ok, answer.message


@pytest.mark.parametrize("what", IN_THE_WAY)
def test_what_a_pod_has_where_the_driver_goes_never_has_it_refused(
    what: str, cluster: ControlPlane, namespace: str
) -> None:
    container, volume = IN_THE_WAY[what]
    made = named(pod(alpha() | container, volumes=[volume]), "in-the-way")
    run(RULES, made, context(settings_file.parse(json.dumps(mounts({}, {"mountPath": "/d"})))))
    (main,) = made["spec"]["containers"]
    assert "/d" in [each["mountPath"] for each in main["volumeMounts"]]
    answer = answered(cluster, made, namespace)
    assert answer.ok, answer.message


@pytest.mark.parametrize("what", MISTAKES)
def test_what_the_api_server_refuses_is_a_mistake(
    what: str, cluster: ControlPlane, namespace: str
) -> None:
    data, settings = MISTAKES[what]
    made = as_sent(settings)
    assert refusals(made) != set()
    assert not answered(cluster, made, namespace).ok
    with pytest.raises(SettingsError):
        settings_file.parse(json.dumps(data))
