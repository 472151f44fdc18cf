"""Finds host paths of an old CUDA driver that containers mount.

Why: before device plugins, pods mounted the driver from the node. Today the path is missing, and
containerd makes an empty directory of it and mounts that over the libraries that the container
toolkit brings; or it is there and holds a driver that does not fit the kernel's.

Does: removes volumes on `/usr/lib*/nvidia-NNN`, on `/var/lib/nvidia-docker/volumes/nvidia_driver/*`
and on single files `libcuda.so*` and `libnvidia-*.so*` of a lib directory, with their mounts in every
kind of container, and takes the directories just unmounted out of LD_LIBRARY_PATH and PATH (never
`/usr/local/nvidia`, which the toolkit and GKE fill themselves; never where the value has a `$(`).
Other driver paths, some of which are alive on GKE and CCE, are only reported, unless
`drivers.remove` lists them. What the active driver profile mounts is never stale. A pod that can run
as it is is only warned.

Safety: safe.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from webhook.core.edits import Edit, Remove, Set
from webhook.core.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.core.pod import Container, Pod
    from webhook.core.rule import Context

NAME = "driver-paths"
CODE = "GPU109"

_STALE = re.compile(
    r"/usr/lib[^/]*/nvidia-[0-9][0-9.]*(?:/.*)?"
    r"|/var/lib/nvidia-docker/volumes/nvidia_driver/.+"
    r"|(?:/.*)?/lib[^/]*/(?:.*/)?(?:libcuda\.so[^/]*|libnvidia-[^/]*\.so[^/]*)"
)
# Layouts of 1.3-1.10 that may be alive today, or whose removal would break a command.
_SUSPECT = re.compile(
    r"/usr/local/nvidia(?:/.*)?"
    r"|/usr/local/bin/nvidia[^/]*"
    r"|/usr/lib[^/]*/nvidia(?:/.*)?"
    r"|/usr/lib(?:/cuda(?:/.*)?)?"
    r"|/home/kubernetes/bin/nvidia(?:/.*)?"
    r"|/opt/cloud/cce/nvidia(?:/.*)?"
    r"|/opt/nvidia(?:/.*)?"
    r"|/dev/nvidia[^/]*"
)
# The toolkit and GKE's device plugin put the driver here: images rely on these entries.
_LIVE = ("/usr/local/nvidia", *(f"/usr/local/nvidia/{each}" for each in ("bin", "lib", "lib64")))
_SEARCH_PATHS = ("LD_LIBRARY_PATH", "PATH")


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    provided = {_clean(mount.host_path) for mount in cx.settings.drivers.active.mounts}
    listed = _patterns(cx.settings.drivers.remove)
    stale: dict[str, str] = {}
    for position, volume in pod.volumes():
        host_path = volume.get("hostPath")
        path = host_path.get("path") if isinstance(host_path, dict) else None
        name = volume.get("name")
        if not isinstance(path, str) or _clean(path) in provided:
            continue
        at = pod.spec_at / "volumes" / position
        is_stale = _STALE.fullmatch(_clean(path)) or any(p.fullmatch(_clean(path)) for p in listed)
        if is_stale and cx.may_constrain and isinstance(name, str):
            stale[name] = path
            yield Finding(CODE, at, _removed(path), (Remove(at), *_unmount(pod, name)))
        elif is_stale or _SUSPECT.fullmatch(_clean(path)):
            yield Finding(CODE, at, _reported(path), severity=Severity.PERSON)
    if stale:
        for container in pod.containers:
            yield from _search_paths(container, stale)


def _clean(path: str) -> str:
    return re.sub(r"/+", "/", path).rstrip("/") or "/"


@lru_cache(maxsize=16)
def _patterns(globs: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Patterns of the settings: `*` stands for anything within one segment of the path."""
    return tuple(re.compile(re.escape(_clean(glob)).replace(r"\*", "[^/]*")) for glob in globs)


def _removed(path: str) -> str:
    return (
        f"the driver path {path} of an old node is removed: the container toolkit brings the "
        "driver; delete the volume and its mounts"
    )


def _reported(path: str) -> str:
    return (
        f"the host path {path} looks like an old driver's and is left as it is; delete the volume, "
        "or list it in drivers.remove"
    )


def _unmount(pod: Pod, name: str) -> Iterator[Edit]:
    for container in pod.containers:
        for position, mount in container.volume_mounts():
            if mount.get("name") == name:
                yield Remove(container.at / "volumeMounts" / position)


def _search_paths(container: Container, stale: dict[str, str]) -> Iterator[Finding]:
    gone = [
        _clean(mount["mountPath"])
        for _, mount in container.volume_mounts()
        if mount.get("name") in stale and isinstance(mount.get("mountPath"), str)
    ]
    for position, variable in container.env():
        value = variable.get("value")
        if variable.get("name") not in _SEARCH_PATHS or not isinstance(value, str) or "$(" in value:
            continue
        entries = value.split(":")
        kept = [entry for entry in entries if not _is_below(entry, gone)]
        if kept == entries:
            continue
        at = container.at / "env" / position
        name = variable["name"]
        if any(kept):
            text = ":".join(kept)
            message = f"{name} of container {container.name} names directories just unmounted; write {text}"
            yield Finding(CODE, at, message, (Set(at / "value", text),))
        else:
            message = f"{name} of container {container.name} names only directories just unmounted: delete it"
            yield Finding(CODE, at, message, (Remove(at),))


def _is_below(entry: str, gone: Sequence[str]) -> bool:
    path = _clean(entry)
    if not entry or path in _LIVE:
        return False
    return any(path == each or path.startswith(f"{each}/") for each in gone)
