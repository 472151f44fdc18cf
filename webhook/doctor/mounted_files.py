"""The flags of the webhook, and its files: a pod template and a flag in, an object and its key out.

Pure. A kustomization, or an injected sidecar, may mount other ConfigMaps and Secrets before ours.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.kube.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    Raw = dict[str, Any]

SERVER = "gpu-webhook"  # the name of the container


class File(NamedTuple):
    """A file of the server. `kind` is configMap or secret; empty if it is in neither."""

    path: str
    kind: str = ""
    name: str = ""
    key: str = ""


def file_of(pod: Raw, flag: str) -> File | None:
    """The file that a flag of the server names; None if the flag is not set."""
    server = server_of(pod)
    path = _value(server, flag)
    return _source(pod, server, PurePosixPath(path)) if path else None


def has_flag(pod: Raw, flag: str) -> bool:
    """Whether any container of the webhook has this flag."""
    return any(_value(each, flag) for _, each in as_items(pod.get("containers")))


def server_of(pod: Raw) -> Raw:
    """The container of the server; empty if there is none."""
    containers = (each for _, each in as_items(pod.get("containers")))
    return next((each for each in containers if each.get("name") == SERVER), {})


def _value(container: Raw, flag: str) -> str:
    """The value of a flag, from the command, the arguments or a variable; empty without one."""
    words = [*map(str, (*(container.get("command") or ()), *(container.get("args") or ())))]
    named = [word.partition("=")[2] for word in words if word.startswith(f"{flag}=")]
    named += [value for name, value in pairwise(words) if name == flag]
    return named[-1] if named else _variable(container, flag)


def _variable(container: Raw, flag: str) -> str:
    command = "SERVE" if container.get("name") == SERVER else "WATCH"
    name = f"GPU_WEBHOOK_{command}_{flag[2:].upper().replace('-', '_')}"
    found = (
        each.get("value") for _, each in as_items(container.get("env")) if each.get("name") == name
    )
    return str(next(found, None) or "")


def _source(pod: Raw, server: Raw, path: PurePosixPath) -> File:
    mounts = {
        PurePosixPath(str(each.get("mountPath"))): each
        for _, each in as_items(server.get("volumeMounts"))
    }
    at = next((each for each in (path, *path.parents) if each in mounts), None)
    if at is None or "subPathExpr" in mounts[at]:
        return File(str(path))
    inside = PurePosixPath(str(mounts[at].get("subPath") or ""), path.relative_to(at))
    volumes = {each.get("name"): each for _, each in as_items(pod.get("volumes"))}
    found = [*_sources(volumes.get(mounts[at].get("name"), {}), str(inside))]
    return File(str(path), *found[0]) if len(found) == 1 else File(str(path))


def _sources(volume: Raw, inside: str) -> Iterator[tuple[str, str, str]]:
    """The objects that may have a file of a volume: several, if a projected one lists no items."""
    projected = as_items(as_map(volume.get("projected")).get("sources"))
    for each in (volume, *(source for _, source in projected)):
        for kind, member in (("configMap", "name"), ("secret", "secretName")):
            held = as_map(each.get(kind))
            name = held.get(member) or held.get("name")
            keys = {item.get("path"): item.get("key") for _, item in as_items(held.get("items"))}
            key = keys.get(inside) if keys else inside
            if name and key:
                yield kind, str(name), str(key)
