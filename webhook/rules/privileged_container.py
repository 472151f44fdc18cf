"""Finds privileged containers that request GPUs.

Why: before device plugins existed, a container had to be privileged to open `/dev/nvidia0`. Now the
device plugin gives it the devices that it requested, and a privileged container also sees all other
GPUs of its node.

Does: with `--unsafe`, removes `privileged: true` from containers that request a GPU under any name.
Otherwise it only reports, because a manifest does not show why a container is privileged.

Safety: unsafe: the container may need the privileges for something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Remove
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.evaluation.workloads import templates_of
from webhook.kube import quantity
from webhook.kube.pod import Container, Pod, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "privileged-container"
CODE = "GPU133"
FACTS = Facts(Stage.MANIFEST, Trait.TIMELESS, unsafe=True)


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
    for at in templates_of(obj, cx.settings):
        for container in Pod(obj, at).containers:
            rights = as_map(container.raw.get("securityContext"))
            if rights.get("privileged") is True and _asks(container, cx):
                place = container.at / "securityContext" / "privileged"
                message = (
                    f"container {container.name} is privileged and sees all GPUs of its node: "
                    "delete privileged, the device plugin gives it those that it requests"
                )
                yield Finding(
                    *(CODE, place, message, (Remove(place),)),
                    severity=Severity.NOTICE,
                    safety=Safety.UNSAFE,
                )


def _asks(container: Container, cx: Context) -> bool:
    return any(
        cx.settings.names_gpus(name) and quantity.parse(amount) != 0
        for name, amount in container.amounts()
    )
