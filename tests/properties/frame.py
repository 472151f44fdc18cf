"""What repairs may touch, written down once; and a pod without it, to compare the rest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webhook.core.settings import Settings

    Raw = dict[str, Any]
    Test = Callable[[Any], bool]

# One line a place. `*` is any position, <name> a class of members or items, defined below.
DECLARED = (
    "/metadata/annotations/<dead annotation>",
    "/spec/<containers>/*/resources/limits/<gpu>",
    "/spec/<containers>/*/resources/requests/<gpu>",
    "/spec/<containers>/*/env/<search path>",
    "/spec/<containers>/*/volumeMounts/<driver mount>",
    "/spec/<containers>/*/securityContext/seccompProfile",
    "/spec/volumes/<driver volume>",
    "/spec/nodeSelector/<model or placement>",
    "/spec/affinity",
    "/spec/tolerations/<toleration>",
    "/spec/schedulerName",
    "/spec/runtimeClassName",
    "/spec/hostname",
    "/spec/subdomain",
    "/spec/securityContext/sysctls",
    "/spec/securityContext/seccompProfile",
)

_DEAD_ANNOTATION = re.compile(
    r"scheduler\.alpha\.kubernetes\.io/(affinity|tolerations|name|nvidiaGPU)"
    r"|pod\.(alpha|beta)\.kubernetes\.io/init-container-statuses"
    r"|security\.alpha\.kubernetes\.io/sysctls"
    r"|(container\.)?seccomp\.security\.alpha\.kubernetes\.io/.+"
    r"|pod\.beta\.kubernetes\.io/(hostname|subdomain)"
)
# The issue's own words: /usr/lib*/nvidia-NNN[/...], /var/lib/nvidia-docker/volumes/nvidia_driver/*
# and single files libcuda.so*, libnvidia-*.so* under a lib directory.
_STALE = re.compile(
    r"/usr/lib[^/]*/nvidia-\d+(/.*)?"
    r"|/var/lib/nvidia-docker/volumes/nvidia_driver/.+"
    r"|(/.+)?/lib[^/]*(/.*)?/(libcuda\.so|libnvidia-[^/]*\.so)[^/]*"
)
DRIVER_PREFIX = "gpu-webhook-driver-"


def without(pod: Raw, original: Raw, settings: Settings, places: Sequence[str] = DECLARED) -> Raw:
    """A copy of the pod without these places, and without maps and lists left empty."""
    tests = _classes(original, settings)
    patterns = [place.strip("/").split("/") for place in places]
    masked: Raw = _masked(pod, patterns, tests)
    return masked


def _classes(original: Raw, settings: Settings) -> dict[str, Test]:
    spec = original.get("spec") or {}
    stale = {
        volume["name"]
        for volume in spec.get("volumes") or ()
        if is_stale((volume.get("hostPath") or {}).get("path"), settings)
    }
    there = spec.get("tolerations") or []
    placement = {settings.placement.label} if settings.placement.enabled else set()
    return {
        "<containers>": lambda key: key in {"containers", "initContainers", "ephemeralContainers"},
        "<gpu>": lambda key: key in settings.legacy_resources or settings.is_gpu(key),
        "<dead annotation>": lambda key: _DEAD_ANNOTATION.fullmatch(key) is not None,
        "<search path>": lambda item: item.get("name") in {"LD_LIBRARY_PATH", "PATH"},
        "<driver mount>": lambda item: (
            item.get("name") in stale or str(item.get("name")).startswith(DRIVER_PREFIX)
        ),
        "<driver volume>": lambda item: (
            item.get("name") in stale or str(item.get("name")).startswith(DRIVER_PREFIX)
        ),
        "<model or placement>": lambda key: (
            key in {settings.models.legacy_label, settings.models.key} | placement
        ),
        "<toleration>": lambda item: item not in there,
    }


def is_stale(path: object, settings: Settings) -> bool:
    """True for a host path that may be removed under these settings."""
    if not isinstance(path, str):
        return False
    clean = re.sub("/+", "/", path).rstrip("/") or "/"
    listed = [re.escape(glob).replace(r"\*", "[^/]*") for glob in settings.drivers.remove]
    return any(re.fullmatch(pattern, clean) for pattern in (_STALE.pattern, *listed))


def _masked(value: Any, patterns: list[list[str]], tests: dict[str, Test]) -> Any:
    """The value without what the patterns name below it."""
    if not patterns:
        return value
    if isinstance(value, dict):
        return dict(_members(value, patterns, tests))
    if isinstance(value, list):
        return [
            _masked(item, [p[1:] for p in patterns if len(p) > 1 and _is(p[0], item, tests)], tests)
            for item in value
            if not any(len(p) == 1 and _is(p[0], item, tests) for p in patterns)
        ]
    return value


def _members(
    value: Raw, patterns: list[list[str]], tests: dict[str, Test]
) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        here = [pattern for pattern in patterns if _is(pattern[0], key, tests)]
        if any(len(pattern) == 1 for pattern in here):
            continue
        kept = _masked(item, [pattern[1:] for pattern in here], tests)
        # What holds a declared place may come (and be null before) and go with it.
        if not (here and kept in (None, {}, [])):
            yield key, kept


def _is(name: str, found: Any, tests: dict[str, Test]) -> bool:
    if name == "*":
        return True
    return tests[name](found) if name.startswith("<") else name == found
