"""The words of which a file holds one, if it holds anything for a rule: see the prefilter.

A word stands for all names that it is a part of, so a few do for many. Those without a slash or a
dot are found however these are written (as ~1 in a JSON Patch, behind a backslash in a jsonpath).
Tests hold them against what the rules look for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.api_versions import OTHERS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.core.settings import Settings

NAMES = (
    "nvidia",  # names of the resource and the label, driver paths, devices, images, flags
    "Nvidia",  # constants in programs
    "alpha.kubernetes.io",  # annotations
    "pod.beta.kubernetes.io",
    "AnnotationKey",
    "/usr/lib",  # host paths, mounted whole
    "libcuda",
    "Accelerators",  # feature gates of the kubelet
    "DevicePlugins",
    "device-plugin",  # what installs drivers and device plugins
    "cos-gpu-installer",
    "container-engine-accelerators",
    "k8s.gcr.io",  # registries
    "google_containers",
    "google-containers",
    "apiextensions.k8s.io/v1alpha1",  # never was; what programs say is looked for as widely
    "settings.k8s.io/v1beta1",
)
API_VERSIONS = tuple(sorted({version for version, _ in (*WORKLOADS, *OTHERS)}))  # the dead ones


def words(settings: Settings, fixed: Iterable[str] = (*NAMES, *API_VERSIONS)) -> tuple[bytes, ...]:
    """Give the words: `fixed` ones, and what these settings add."""
    named = {*fixed}
    names = {*settings.legacy_resources, settings.models.legacy_label, settings.gpu_resource}
    names |= {each.rstrip("*") for each in settings.gpu_resources}
    for name in names:
        named |= {name, name.replace("/", "~1"), name.replace(".", "\\.")}
    # A * stands within one segment of a path: the longest text between two of them must be there.
    named |= {max(path.split("*"), key=len) for path in settings.drivers.remove}
    return fewest(named)


def fewest(named: Iterable[str]) -> tuple[bytes, ...]:
    """Leave out what holds another one: where it is, the other is, too."""
    kept: list[str] = []
    for name in sorted(set(named), key=lambda each: (len(each), each)):
        if name and not any(each in name for each in kept):
            kept.append(name)
    return tuple(name.encode() for name in kept)
