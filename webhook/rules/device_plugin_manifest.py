"""Finds obsolete device plugins and driver installers.

Why: the kubelet of today speaks another language than the device plugins for 1.8 and 1.9 (they
register in vain, so nodes offer no GPU), those for 1.10 to 1.12 know no GPU of today, and the
installers of GKE, kops and CoreOS build drivers for kernels that are gone.

Does: nothing; names the cure: the current chart of the device plugin, the GPU operator, or what the
cloud itself installs. Two device plugins on one node fight for the same GPUs, so the old one must
go before the new one comes.

Safety: a person must replace the manifest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.findings import Finding, Severity
from webhook.core.legacy_images import installer
from webhook.core.pod import Pod
from webhook.core.rule import Facts, Stage
from webhook.core.workloads import templates_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.rule import Context

NAME = "device-plugin-manifest"
CODE = "GPU130"
FACTS = Facts(Stage.MANIFEST)


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
    for at in templates_of(obj, cx.settings):
        for container in Pod(obj, at).containers:
            found = installer(str(container.raw.get("image")))
            if found is not None:
                what, cure = found
                message = f"container {container.name} is {what}: {cure}"
                yield Finding(CODE, container.at / "image", message, severity=Severity.PERSON)
