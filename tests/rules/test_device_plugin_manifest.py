from __future__ import annotations

from typing import Any

import pytest

from tests.rules.objects import EXTENSIONS, found, said, template, workload
from webhook.rules import device_plugin_manifest as rule


def daemon_set(image: Any) -> Any:
    made = template({"name": "plugin", "image": image})
    return workload(EXTENSIONS, "DaemonSet", made=made)


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("nvcr.io/nvidia/k8s-device-plugin:v0.17.0", id="today's: untouched"),
        pytest.param("nvidia/k8s-device-plugin:v0.14.1", id="a later one: untouched"),
        pytest.param("cos-nvidia-installer:fixed", id="GKE's for COS today: untouched"),
        pytest.param("gcr.io/cos-cloud/cos-gpu-installer:v2.5.5", id="that which runs it"),
        pytest.param("registry.example/train:1.9", id="a workload: untouched"),
        pytest.param(None, id="no image: untouched"),
        pytest.param("nvidia/k8s-device-plugin:1.9" + "x" * 600, id="too long for an image"),
    ],
)
def test_what_is_left_alone(image: Any) -> None:
    assert found(rule, daemon_set(image)) == []


@pytest.mark.parametrize(
    ("image", "what"),
    [
        pytest.param("nvidia/k8s-device-plugin:1.8", "a device plugin", id="1.8"),
        pytest.param("nvidia/k8s-device-plugin:1.11", "a device plugin", id="1.11"),
        pytest.param(
            "docker.io/nvidia/k8s-device-plugin:1.0.0-beta4", "a device plugin", id="beta"
        ),
        pytest.param(
            "k8s.gcr.io/nvidia-gpu-device-plugin@sha256:0842734032018be107fa2490c98156992911e3e1",
            "GKE's device plugin",
            id="GKE's plugin",
        ),
        pytest.param(
            "gcr.io/google-containers/ubuntu-nvidia-driver-installer@sha256:eea7309d",
            "GKE's old driver installer",
            id="GKE's installer for Ubuntu",
        ),
        pytest.param(
            "gcr.io/google-containers/cos-nvidia-installer:v1",
            "GKE's old driver installer",
            id="GKE's installer for COS",
        ),
        pytest.param(
            "dcwangmit01/nvidia-device-plugin:0.1.0", "a driver installer for kops", id="kops"
        ),
    ],
)
def test_it_is_reported(image: str, what: str) -> None:
    obj = daemon_set(image)
    [finding] = found(rule, obj)
    assert f"container plugin is {what}" in finding.message
    assert said(rule, obj) == [("spec.template.spec.containers[0].image", "reported")]
