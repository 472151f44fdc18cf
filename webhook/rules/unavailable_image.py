"""Finds images that are no longer available where the manifest pulls them from.

Why: `k8s.gcr.io` and `gcr.io/google_containers`, the Kubernetes registries until 2023, are frozen
and only redirect. `nvidia/cuda` has had no tag `latest` since 2021, and the tags of CUDA 10 and
older were deleted in 2023: these images cannot be pulled.

Does: with `--unsafe`, writes `registry.k8s.io`, which has the same images. For CUDA it only
reports, because only the author knows which version the program needs.

Safety: unsafe: a manifest does not show whether the image exists; a mirror may still have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.legacy_images import in_new_registry, installer, is_old_cuda
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.evaluation.workloads import templates_of
from webhook.kube.pod import Container, Pod

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "unavailable-image"
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
