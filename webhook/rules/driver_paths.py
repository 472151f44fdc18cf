"""Finds host paths of an old CUDA driver that containers mount.

Why: before device plugins existed, pods mounted the driver from the node. Now the path is missing,
and containerd creates an empty directory that hides the libraries of the container toolkit. Or the
path exists and has a driver that does not match the kernel module.

Does: removes volumes on `/usr/lib*/nvidia-NNN`, on `/var/lib/nvidia-docker/volumes/nvidia_driver/*`
and on single files `libcuda.so*` and `libnvidia-*.so*` of a lib directory, with their mounts in all
containers. It removes the unmounted directories from LD_LIBRARY_PATH and PATH (never
`/usr/local/nvidia`, which the toolkit and GKE fill; never if the value contains `$(`). Other driver
paths are only reported. Paths where GKE and CCE keep the current driver are a notice, unless
`drivers.remove` lists them. All of `/usr/lib` is reported only if the pod requests GPUs, because
agents mount it, too. Nothing is reported in software that installs the driver, its toolkit or the
device plugin, and it keeps its mounts, unless it requests GPUs itself. With `--unsafe`, devices
`/dev/nvidia*` are removed from a pod that requests GPUs. Paths that the active driver profile
mounts are never removed. A pod that can run as it is gets only warnings from the webhook. A pod in
which no amount of GPUs is written, not even 0, keeps its mounts in files, too, unless
`drivers.remove` lists them or `--unsafe` is given: the toolkit brings it no driver. So does one
whose resources are inserted later (`resources: ${RES}`).

Safety: safe.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from webhook.core.edits import Edit, Remove, Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.host_paths import (
    clean,
    is_device,
    is_live_driver,
    is_stale_driver,
    may_be_driver,
)
from webhook.core.legacy_images import manages_driver
from webhook.core.namespace_selection import translated
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.core.text_patterns import DRIVER_TEXT, Match, Pattern, find
from webhook.kube.pod import Container, Pod, as_map, once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from webhook.core.settings import Drivers, Settings

NAME = "driver-paths"
CODE = "GPU109"
FACTS = Facts(
    Stage.REPAIR,
    Trait.LEGACY_PODS | Trait.SEPARATE,
    unsafe=True,
    words=("nvidia", "/usr/lib", "libcuda"),
    patterns=(DRIVER_TEXT,),
)

# In programs that make volumes of host paths. A search path (`a:b`) mounts nothing.
_MOUNTS = Pattern(
    "driver-mount",
    r"(?<![\w.:/-])/(?:usr/(?:local/)?lib\w*/(?:[\w.-]+/){0,3}lib(?:cuda|nvidia-[\w-]+)\.so[\w.]*"
    r"|usr/(?:local|lib\w*(?:/[\w.-]+)?)/nvidia(?:/[\w./-]*)?|dev/nvidia[\w-]*"
    r"|opt/nvidia(?:/[\w./-]*)?|(?:var/lib|usr/local)/nvidia-docker(?:/[\w./-]*)?)(?![\w.:/-])",
    "a driver or a device of the node",
    "mount none: the container toolkit and the device plugin bring them",
    code=CODE,
)
_HOST_PATH = re.compile(r"host_?path", re.IGNORECASE)

# The toolkit and GKE's device plugin put the driver here: images rely on these entries.
_LIVE = ("/usr/local/nvidia", *(f"/usr/local/nvidia/{each}" for each in ("bin", "lib", "lib64")))
SEARCH_PATHS = ("LD_LIBRARY_PATH", "PATH")
_EVERYBODYS = "/usr/lib"  # agents mount it, too; of a GPU pod it was for the driver
_SHOWN = 100  # characters of a path in a message: it is one line


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    found = list(_drivers(pod, cx))
    if not found:
        return
    stale: set[str] = set()
    mounts = _mounts(pod)
    for position, name, path, fate in found:
        at, shown = pod.spec_at / "volumes" / position, path[:_SHOWN]
        if (
            fate is _Fate.REPORTED
            and name is not None
            and is_device(clean(path))
            and _may_go(pod, cx)
        ):
            message = f"{_DEVICE.format(shown)}: delete the volume and its mounts"
            severity = Severity.REPAIR if cx.wants_unsafe(CODE) else Severity.MANUAL
            unmounted = (Remove(at), *mounts.pop(name, ()))
            yield Finding(CODE, at, message, unmounted, severity, Safety.UNSAFE)
        elif fate is _Fate.ALIVE:
            yield Finding(CODE, at, _LIVES.format(shown), severity=Severity.NOTICE)
        elif fate is _Fate.REPORTED:
            message = f"{_OLD.format(shown)}; {_DELETE}"
            yield Finding(CODE, at, message, severity=Severity.MANUAL)
        elif fate is _Fate.STALE and not _is_brought(pod, cx):
            message = f"{_OLD.format(shown)}: {_OPEN if cx.is_open else _NONE}"
            whole = at / "hostPath" / "path"
            yield Finding(CODE, whole, f"{message}; {_DELETE}", severity=Severity.MANUAL)
        elif not cx.may_constrain or name is None:
            message = f"{_OLD.format(shown)}: delete the volume and its mounts"
            yield Finding(CODE, at, message, severity=Severity.MANUAL)
        else:
            stale.add(name)
            # Of two volumes with one name, which the API server refuses, one takes the mounts.
            unmounted = (Remove(at), *mounts.pop(name, ()))
            yield Finding(CODE, at, _REMOVED.format(shown), unmounted)
    if stale:
        mounted = {clean(each.mount_path) for each in cx.settings.drivers.mounts}
        live = mounted.union(_LIVE)
        for container in pod.containers:
            yield from _search_paths(container, stale, live)


def mounts_of_program(text: str, settings: Settings) -> Iterator[Match]:
    """The mounts of drivers in a program that makes volumes of host paths."""
    if _HOST_PATH.search(text):
        every = find(text, (*FACTS.patterns, _MOUNTS), settings)
        yield from (each for each in every if each.pattern is _MOUNTS)


def _drivers(pod: Pod, cx: Context) -> Iterator[tuple[int, str | None, str, _Fate]]:
    """The host paths that may be a driver's: position and name of the volume, path and fate."""
    for position, volume in pod.volumes():
        path = as_map(volume.get("hostPath")).get("path")
        if not isinstance(path, str):
            continue
        fate = _fate(clean(path), cx.settings.drivers)
        is_stale = fate in {_Fate.STALE, _Fate.GOES}
        if _manages(pod) and not (is_stale and _asks(pod, cx)):
            continue
        if fate is _Fate.STAYS or (clean(path) == _EVERYBODYS and not _asks(pod, cx)):
            continue
        name = volume.get("name")
        yield position, name if isinstance(name, str) else None, path, fate


@once
def _manages(pod: Pod) -> bool:
    """Whether the pod brings the driver to nodes."""
    return any(manages_driver(str(each.raw.get("image", ""))) for each in pod.containers)


_DELETE = "delete the volume, or list it in drivers.remove of the settings (--config)"
_OLD = "the host path {} looks like an old driver's and is left as it is"
_NONE = "the pod requests no GPU, so nothing else brings a driver"
_OPEN = "whether the pod requests GPUs is not known, and without them nothing else brings a driver"
_LIVES = (
    "the host path {} is where GKE or CCE keeps the driver today and is left as it is; on other "
    "nodes delete the volume, or list it in drivers.remove of the settings (--config)"
)
_DEVICE = "the device {} of the node is mounted, and the device plugin brings those asked for"
_REMOVED = (
    "the driver path {} of an old node is removed: the container toolkit brings the driver; delete "
    "the volume and its mounts"
)


def _asks(pod: Pod, cx: Context) -> bool:
    """Whether the pod requests GPUs, under current or legacy names."""
    return cx.stuck or bool(pod.gpus(cx.settings))


def _is_brought(pod: Pod, cx: Context) -> bool:
    """Whether the container toolkit brings a driver to the pod, as far as that is known."""
    names = {name for each in pod.containers for name, _ in each.amounts()}
    is_of_gpus = cx.stuck or any(cx.settings.names_gpus(name) for name in names)
    return is_of_gpus or (cx.is_merged and not cx.is_open) or cx.wants_unsafe(CODE)


def _may_go(pod: Pod, cx: Context) -> bool:
    """Devices: only from a pod that requests them otherwise."""
    return cx.may_constrain and bool(pod.gpus(cx.settings))


class _Fate(Enum):
    STAYS = "it is no driver's, or the settings provide it"
    ALIVE = "it is where a cloud keeps its driver today"
    REPORTED = "it may be alive"
    STALE = "it is of an old node"
    GOES = "the settings list it"


def _fate(path: str, drivers: Drivers) -> _Fate:
    if any(path == clean(mount.path) for mount in drivers.mounts):
        return _Fate.STAYS
    if any(pattern.fullmatch(path) for pattern in _patterns(drivers.remove)):
        return _Fate.GOES
    if is_live_driver(path):
        return _Fate.ALIVE
    if is_stale_driver(path):
        return _Fate.STALE
    return _Fate.REPORTED if may_be_driver(path) else _Fate.STAYS


@lru_cache(maxsize=16)
def _patterns(globs: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Patterns of the settings: `*` stands for anything within one segment of the path."""
    return tuple(
        re.compile("/".join(translated(part, "[^/]") for part in clean(glob).split("/")))
        for glob in globs
    )


def _mounts(pod: Pod) -> dict[str, list[Edit]]:
    """What takes the mounts of a volume away, by its name."""
    found: dict[str, list[Edit]] = {}
    for container in pod.containers:
        for position, mount in container.volume_mounts():
            if isinstance(name := mount.get("name"), str):
                edit = Remove(container.at / "volumeMounts" / position)
                found.setdefault(name, []).append(edit)
    return found


def _search_paths(
    container: Container, stale: set[str], live: AbstractSet[str]
) -> Iterator[Finding]:
    gone = _tops(
        clean(mount["mountPath"])
        for _, mount in container.volume_mounts()
        if str(mount.get("name")) in stale and isinstance(mount.get("mountPath"), str)
    )
    for position, variable in container.env():
        name, value = variable.get("name"), variable.get("value")
        if name not in SEARCH_PATHS or not isinstance(value, str) or "$(" in value:
            continue
        entries = value.split(":")
        leaving = [entry for entry in dict.fromkeys(entries) if _is_gone(entry, gone, live)]
        if not leaving:
            continue
        going = set(leaving)
        kept = [entry for entry in entries if entry not in going]
        at = container.at / "env" / position
        lost = ", ".join(leaving)
        edit = Set(at / "value", ":".join(kept)) if any(kept) else Remove(at)
        message = (
            f"delete {lost[:_SHOWN]} from {name} of container {container.name}: it is unmounted"
        )
        yield Finding(CODE, at, message, (edit,))


def _tops(paths: Iterable[str]) -> list[list[str]]:
    """The paths as their parts, in order, without those below another: one place to look."""
    tops: list[list[str]] = []
    for parts in sorted(path.split("/") for path in paths):
        if not (tops and parts[: len(tops[-1])] == tops[-1]):
            tops.append(parts)
    return tops


def _is_gone(entry: str, gone: list[list[str]], live: AbstractSet[str]) -> bool:
    if not entry or not gone or (path := clean(entry)) in live:
        return False
    parts = path.split("/")
    before = gone[bisect_right(gone, parts) - 1]
    return parts[: len(before)] == before
