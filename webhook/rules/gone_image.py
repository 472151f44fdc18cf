"""Finds images that are no longer where the manifest takes them from.

Why: `k8s.gcr.io` and `gcr.io/google_containers`, where Kubernetes published until 2023, are frozen
and live on as redirections. `nvidia/cuda` has had no tag `latest` since 2021, and those of CUDA 10
and older were deleted in 2023: the image cannot be pulled.

Does: with `--unsafe`, writes `registry.k8s.io`, where the same images are today. For CUDA it only
tells: which version a program needs, its author knows.

Safety: unsafe: whether an image is there, a manifest cannot tell; a mirror may still have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.legacy_images import in_new_registry, installer, is_old_cuda
from webhook.core.rule import Facts, Stage, Trait
from webhook.evaluation.workloads import templates_of
from webhook.kube.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.rule import Context
    from webhook.kube.pod import Container

NAME = "gone-image"
CODE = "GPU134"
FACTS = Facts(
    Stage.MANIFEST,
    Trait.TIMELESS,
    unsafe=True,
    words=("nvidia", "k8s.gcr.io", "google_containers", "google-containers"),
)

_SHOWN = 80  # characters of an image's name


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
    for at in templates_of(obj, cx.settings):
        for container in Pod(obj, at).containers:
            image = container.raw.get("image")
            if isinstance(image, str) and installer(image) is None:
                yield from _image(container, image)


def _image(container: Container, image: str) -> Iterator[Finding]:
    at, shown = container.at / "image", image[:_SHOWN]
    new = in_new_registry(image)
    if new is not None:
        message = f"the registry of {shown} is frozen: write {new[:_SHOWN]}"
        yield Finding(
            *(CODE, at, message, (Set(at, new),)), severity=Severity.NOTICE, safety=Safety.UNSAFE
        )
    elif is_old_cuda(image):
        message = f"{shown} was deleted by its publisher: name a tag of nvidia/cuda that is there"
        yield Finding(CODE, at, message, severity=Severity.NOTICE)
