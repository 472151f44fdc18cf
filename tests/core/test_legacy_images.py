"""Images of 1.3-1.12, each by what it is."""

from __future__ import annotations

import pytest

from webhook.core.legacy_images import in_new_registry, installer, is_old_cuda

LONG = "x" * 600


@pytest.mark.parametrize(
    ("image", "what"),
    [
        ("nvidia/k8s-device-plugin:1.10", "a device plugin for Kubernetes 1.8-1.12"),
        ("nvidia/k8s-device-plugin:1.10-centos7", "a device plugin for Kubernetes 1.8-1.12"),
        ("nvcr.io/nvidia/k8s-device-plugin:v0.17.1", None),
        ("nvidia/k8s-device-plugin", None),
        ("k8s.gcr.io/nvidia-gpu-device-plugin", "GKE's device plugin of Kubernetes 1.8-1.11"),
        ("gcr.io/cos-cloud/cos-gpu-installer:v20180501", "GKE's old driver installer"),
        ("coreos-nvidia-driver:384.90", "a driver installer for Kubernetes 1.3-1.8"),
        ("registry.example/train:1.4", None),
        (f"nvidia/k8s-device-plugin:1.8{LONG}", None),
    ],
)
def test_installers(image: str, what: str | None) -> None:
    found = installer(image)
    assert (found and found[0]) == what


@pytest.mark.parametrize(
    ("image", "new"),
    [
        ("k8s.gcr.io/pause:3.1", "registry.k8s.io/pause:3.1"),
        ("gcr.io/google-samples/hello-app:1.0", None),
        ("pause", None),
    ],
)
def test_registries(image: str, new: str | None) -> None:
    assert in_new_registry(image) == new


@pytest.mark.parametrize(
    ("image", "old"),
    [
        ("nvidia/cuda", True),
        ("nvidia/cuda:devel", True),
        ("nvidia/cuda:9.0-devel", True),
        ("nvidia/cuda:10.2-base", True),
        ("nvidia/cuda:11.0-base", False),
        ("nvidia/cuda:12.6.3-base-ubuntu24.04", False),
        (f"nvidia/cuda:8.0{LONG}", False),
    ],
)
def test_old_cuda(image: str, *, old: bool) -> None:
    assert is_old_cuda(image) is old
