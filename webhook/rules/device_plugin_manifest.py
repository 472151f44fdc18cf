"""Finds obsolete device plugins and driver installers.

Why: device plugins for 1.8 and 1.9 use an API that current kubelets do not have, so nodes offer no
GPUs. Device plugins for 1.10 to 1.12 do not support current GPUs, and the installers of GKE, kops
and CoreOS build drivers for kernels that are no longer in use.

Does: changes nothing. It names the replacement: the current chart of the device plugin, the GPU
operator, or the software that the cloud installs. Two device plugins on one node compete for the
same GPUs, so remove the old one before you install the new one.

Safety: manual: replace the manifest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.findings import Finding, Severity
from webhook.core.legacy_images import installer
from webhook.core.rule import Context, Facts, Stage
from webhook.core.text_patterns import GET_PLUGIN, Pattern
from webhook.evaluation.workloads import templates_of
from webhook.kube.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "device-plugin-manifest"
CODE = "GPU130"
FACTS = Facts(
    Stage.MANIFEST,
    words=("nvidia", "device-plugin", "cos-gpu-installer", "container-engine-accelerators"),
    patterns=(
        Pattern(
            "device-plugin-manifest",
            r"\bk8s-device-plugin[/:]v?1\.(?:8|9|1[0-2]|0\.0-)[\w.-]{0,40}(?:/[\w.-]{1,80}\.ya?ml)?",
            "a device plugin for Kubernetes 1.8-1.12",
            GET_PLUGIN,
            words=("k8s-device-plugin",),
        ),
        Pattern(
            "driver-installer",
            # Those of the main branch that begin with daemonset-preloaded are today's.
            r"\bcontainer-engine-accelerators/"
            r"(?!(?:[\w-]+/){0,3}(?:master|main)/nvidia-driver-installer/[\w/-]{1,60}daemonset-preloaded)"
            r"(?![\w./-]{1,80}daemonset-preloaded-latest)[\w./-]{1,60}?"
            r"(?:nvidia-driver-installer[\w./-]{0,80}|device-plugin-daemonset\.ya?ml)",
            "GKE's old installer",
            "GKE installs the driver and the device plugin by itself",
            words=("container-engine-accelerators/",),
        ),
    ),
)


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
    for at in templates_of(obj, cx.settings):
        for container in Pod(obj, at).containers:
            found = installer(str(container.raw.get("image")))
            if found is not None:
                what, advice = found
                message = f"container {container.name} is {what}: {advice}"
                yield Finding(CODE, container.at / "image", message, severity=Severity.MANUAL)
