"""Data: host paths of GPU nodes, and what a pod that mounts them can see.

Paths are compared as `clean` writes them.
"""

from __future__ import annotations

import re
from posixpath import normpath

# The runtime reads a list of devices from mounts (the strategy `volume-mounts`): each mount of
# /dev/null below this path adds a GPU (nvidia-container-toolkit, cuda_image.go).
DEVICE_LIST = "/var/run/nvidia-container-devices"
VOLUME_PREFIX = "gpu-webhook-driver-"  # of the volumes that the webhook adds

_STALE = re.compile(
    r"/usr/lib[^/]*/nvidia-[0-9]+(?:/.*)?|/var/lib/nvidia-docker/volumes/nvidia_driver/.+"
)
_LIBRARY = re.compile(r"libcuda\.so.*|libnvidia-.*\.so.*")
_LIBRARY_DIRECTORIES = {"lib", "lib32", "libx32", "lib64"}
# Where GKE and Huawei CCE keep the driver now.
_ALIVE = re.compile(r"(?:/home/kubernetes/bin|/opt/cloud/cce)/nvidia(?:/.*)?")
# Layouts of 1.3-1.10 that may still be in use, or whose removal would break a command.
_SUSPECT = re.compile(
    r"/usr/local/nvidia(?:/.*)?"
    r"|/usr/local/bin/nvidia[^/]*"
    r"|/usr/lib[^/]*/nvidia(?:[-/].*)?"
    r"|/usr/lib(?:/cuda(?:/.*)?)?"
    r"|/(?:var/lib|usr/local)/nvidia-docker(?:/.*)?"
    r"|/opt/nvidia(?:/.*)?"
    r"|/dev/nvidia[^/]*"
)
# Where the driver container of the GPU operator shows its root, with the device nodes.
_OPERATOR = re.compile(r"(?:/var)?/run/nvidia(?:/.*)?")
# 195 is the major number of NVIDIA's devices (Documentation/admin-guide/devices.txt).
_DEVICES = re.compile(r"/|/dev|/dev/nvidia.*|/dev/char/195:.*")


def clean(path: str) -> str:
    """The path without redundant slashes, `.` and `..`, as Go's filepath.Clean writes it."""
    if path.startswith("/") and "//" not in path and "/." not in path and not path.endswith("/"):
        return path  # the usual case
    # In POSIX two leading slashes have a special meaning, and normpath keeps them.
    return normpath(f"/{path.lstrip('/')}" if path.startswith("/") else path)


def is_stale_driver(path: str) -> bool:
    """True for a driver path of 1.3-1.10 that is empty on current nodes."""
    return _STALE.fullmatch(path) is not None or _is_library(path)


def is_live_driver(path: str) -> bool:
    """True for a path where a cloud keeps its driver now: paths below it never count as stale."""
    return _ALIVE.fullmatch(path) is not None


def may_be_driver(path: str) -> bool:
    """True for a path that may hold a driver, or be needed for another purpose."""
    return _SUSPECT.fullmatch(path) is not None


def is_device(path: str) -> bool:
    """True for a device node of a GPU, or for the device nodes of all GPUs."""
    return path.startswith("/dev/nvidia")


def shows_driver(path: str) -> bool:
    """True for any of these: the files of the driver are visible."""
    return (
        is_stale_driver(path)
        or is_live_driver(path)
        or may_be_driver(path)
        or _OPERATOR.fullmatch(path) is not None
    )


def shows_devices(path: str) -> bool:
    """True for a path with device nodes of GPUs at or below it."""
    return _DEVICES.fullmatch(path) is not None


def lists_devices(path: str) -> bool:
    """True for a path in a container from which the runtime reads the list of GPUs."""
    return path == DEVICE_LIST or path.startswith(f"{DEVICE_LIST}/")


def _is_library(path: str) -> bool:
    """A single file of the driver; no regular expression, because a path may be megabytes long."""
    *directories, name = path.split("/")
    return not _LIBRARY_DIRECTORIES.isdisjoint(directories) and bool(_LIBRARY.fullmatch(name))
