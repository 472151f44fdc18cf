"""Data: images of 1.3-1.12 that install a driver or a device plugin, and registries that closed.

Sources: NVIDIA/k8s-device-plugin tags (1.8 to 1.12, 1.0.0-beta to beta6, v0.6.0 on: the kubelet's
v1beta1 interface since 1.10), GoogleCloudPlatform/container-engine-accelerators, kops hooks.
"""

from __future__ import annotations

import re

_PLUGIN = "install today's device plugin (chart nvdp/nvidia-device-plugin) or the GPU operator"
_GKE = "delete it: GKE installs the driver and the device plugin of its GPU node pools itself"
_DRIVER = "delete it: install the driver with the node image or the GPU operator"

# What the image is, and what to do instead; the first match counts.
_INSTALLERS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(
            r"(?:.*/)?nvidia/k8s-device-plugin(?::(?:1\.[89]\b.*|1\.1[0-2]\b.*|1\.0\.0-.*))"
        ),
        "a device plugin for Kubernetes 1.8-1.12",
        _PLUGIN,
    ),
    (
        re.compile(r"(?:k8s\.gcr\.io|gcr\.io/google[_-]containers)/nvidia-gpu-device-plugin\b.*"),
        "GKE's device plugin of Kubernetes 1.8-1.11",
        _GKE,
    ),
    (
        re.compile(
            # `fixed` is what current nodes use (daemonset-preloaded-latest.yaml), v2 what they run
            # (cos-gpu-installer).
            r"(?:.*/)?(?:cos-nvidia-installer|cos-gpu-installer(?!:v2\.)"
            r"|ubuntu-nvidia-driver-installer|nvidia-driver-installer)\b(?!:fixed$).*"
        ),
        "GKE's old driver installer",
        _GKE,
    ),
    (
        re.compile(r"(?:.*/)?dcwangmit01/nvidia-device-plugin\b.*"),
        "a driver installer for kops 1.8",
        _DRIVER,
    ),
    (
        re.compile(
            r"(?:.*/)?(?:nvidia-docker|nvidia-docker-plugin|coreos-nvidia[^/:]*)(?:[:@].*)?"
        ),
        "a driver installer for Kubernetes 1.3-1.8",
        _DRIVER,
    ),
)

# Software that brings the driver, its libraries or the devices to nodes, and so mounts their paths.
_MANAGING = re.compile(
    r"(?:.*/)?(?:[\w.-]*(?:driver|gpu|nvidia)-installer|container-toolkit|nvidia-container-toolkit"
    r"|gpu-operator[\w-]*|[\w-]*device-plugin(?:-nvidia)?|k8s-mig-manager|k8s-driver-manager"
    r"|vgpu-device-manager|gpu-feature-discovery|dcgm-exporter|k8s-dra-driver-gpu)(?:[:@].*)?"
)

# Of an image name; longer ones are rejected by the API server and would take time here.
_LONGEST = 512

# The former registry of Kubernetes, and the registry that replaced it (2023-03-10).
_OLD_REGISTRIES = ("k8s.gcr.io/", "gcr.io/google_containers/", "gcr.io/google-containers/")
NEW_REGISTRY = "registry.k8s.io/"

_CUDA = re.compile(r"(?:docker\.io/)?nvidia/cuda(?::(?P<tag>[^@]*))?(?:@.*)?")
_OLD_CUDA = re.compile(r"(?:[5-9]|10)\.\d.*")


def installer(image: str) -> tuple[str, str] | None:
    """What this image installs that current nodes provide otherwise, and what to do instead."""
    if len(image) <= _LONGEST:
        for pattern, what, advice in _INSTALLERS:
            if pattern.fullmatch(image):
                return what, advice
    return None


def manages_driver(image: str) -> bool:
    """Whether this image brings the driver, its toolkit or devices to nodes, or monitors them."""
    return len(image) <= _LONGEST and _MANAGING.fullmatch(image) is not None


def in_new_registry(image: str) -> str | None:
    """The name of the image in the current registry, if its registry was shut down."""
    for old in _OLD_REGISTRIES:
        if image.startswith(old):
            return NEW_REGISTRY + image.removeprefix(old)
    return None


def is_old_cuda(image: str) -> bool:
    """True for CUDA base images that NVIDIA removed: 10 and older, and latest."""
    found = _CUDA.fullmatch(image) if len(image) <= _LONGEST else None
    if found is None:
        return False
    tag = found["tag"] or "latest"
    return tag in {"latest", "runtime", "devel"} or _OLD_CUDA.fullmatch(tag) is not None
