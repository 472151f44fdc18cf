"""Finds containers that may see GPUs that nobody gave them.

Why: the scheduler counts GPUs, but the container toolkit hands them out by the variable
NVIDIA_VISIBLE_DEVICES. Images built on CUDA set it to `all`, and in old ones (CUDA_VERSION without
NVIDIA_REQUIRE_CUDA) even an unset one means `all`: such a container without a GPU request sees
every GPU of its node, and works on those of others. In a container that has GPUs, what the manifest
says wins over the device plugin's list.

Does: judges containers of every kind, also those that `kubectl debug` adds.
- Without GPUs, a container gets `NVIDIA_VISIBLE_DEVICES=void`: written over what stands there,
  value or valueFrom, as one entry. `none` and an empty value are written over too: toolkits before
  1.18.2 gave all GPUs for `none`. As env wins over envFrom, envFrom does not matter here.
- What no variable mends is reported: `privileged`; host paths that the container mounts and that
  hold device nodes of GPUs (`/dev/nvidia*`, `/dev`, `/`) or a CUDA driver; host paths mounted at
  `/var/run/nvidia-container-devices`, where the toolkit may look for a list of devices.
- With GPUs, it loses all entries of the variable, which would override what the device plugin says;
  an envFrom that may bring it is reported, unless its prefix makes that impossible. The same goes
  for DRA claims and device classes, but there `void` stays: it hides nothing that a claim brings.
- With another resource of nvidia.com that the settings do not count as a GPU, it is reported and
  left alone: that may be a renamed GPU, which `void` would take away.

Pods of GPU management software are exempt by `guard.exempt`.

Safety: safe. `void` hides GPUs, and nothing else.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from webhook.core import quantity
from webhook.core.edits import Append, Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.core.host_paths import clean, lists_devices, shows_devices, shows_driver
from webhook.core.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.core.edits import Edit
    from webhook.core.pod import Container, Pod
    from webhook.core.pointer import Path
    from webhook.core.rule import Context
    from webhook.core.settings import Settings

NAME = "leak-guard"
CODE = "GPU303"

# What exposures() may say, in its order.
EXPOSURES = ("variable", "env-from", "privileged", "device", "driver-path", "device-list")

_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
_VOID = "void"
_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"  # KEP-5004: a claim written as a resource
_VENDOR = "nvidia.com/"
_EVERYDAY = {"cpu", "memory"}  # of every pod: the audit looks at all that a cluster has
_SHOWN = 50  # characters of a path in a message: it is one line


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if _is_exempt(pod, cx.settings, cx.namespace):
        return
    host_paths = _host_paths(pod)
    for container in pod.containers:
        if cx.only_ephemeral is not None and not (
            container.kind == "ephemeralContainers" and container.name in cx.only_ephemeral
        ):
            continue
        match _held(container, cx.settings):
            case _Held.NOTHING:
                yield from _hidden(container)
                yield from _ways_around(container, host_paths)
            case _Held.UNKNOWN:
                yield Finding(CODE, container.at / "resources", _say("?", container), severity=_ASK)
            case held:
                yield from _as_given(container, held)


def exposures(pod: Pod, settings: Settings, namespace: str) -> tuple[str, ...]:
    """In which visible ways this pod may see GPUs that nobody gave it, in the order of EXPOSURES.

    For the audit of pods that are there. A container that merely lacks `void` is not among them,
    as nearly every container of a cluster would be: unguarded() counts those.
    """
    if _is_exempt(pod, settings, namespace):
        return ()
    found: set[str] = set()
    host_paths = _host_paths(pod)
    for container in pod.containers:
        held = _held(container, settings)
        if held is _Held.UNKNOWN:
            continue
        if _shows_something(container):
            found.add("variable")
        if held is _Held.NOTHING:
            found.update(way for way, _, _ in _open_ways(container, host_paths))
        elif not _entries(container) and _brought_by_env_from(container):
            found.add("env-from")
    return tuple(each for each in EXPOSURES if each in found)


def unguarded(pod: Pod, settings: Settings, namespace: str) -> int:
    """How many containers have no GPU and do not say `void`: their image decides what they see."""
    if _is_exempt(pod, settings, namespace):
        return 0
    return sum(
        _held(container, settings) is _Held.NOTHING and not _is_void(_entries(container))
        for container in pod.containers
    )


_ASK = Severity.PERSON
_TEXTS = {
    "void": (
        "container {} asks for no GPU: set its env NVIDIA_VISIBLE_DEVICES to void, once; "
        "with anything else, or nothing, it may see all GPUs of its node"
    ),
    "privileged": (
        "container {} asks for no GPU but is privileged, so it sees all of its node: drop "
        "privileged, or let an admin exempt the pod in guard.exempt"
    ),
    "device": "container {} asks for no GPU but mounts {}, where GPU devices are: delete the mount",
    "driver-path": (
        "container {} asks for no GPU but mounts {}, where a GPU driver is: delete the mount"
    ),
    "device-list": (
        "container {} asks for no GPU but mounts {}, by which the runtime may give it GPUs: "
        "delete the mount"
    ),
    "gpus": (
        "the device plugin chooses the GPUs of container {}: delete its env "
        "NVIDIA_VISIBLE_DEVICES, which would override that choice"
    ),
    "claim": (
        "a claim gives container {} its devices: delete its env NVIDIA_VISIBLE_DEVICES, which may "
        "show it others"
    ),
    "env-from": (
        "envFrom of container {} may bring NVIDIA_VISIBLE_DEVICES, which would override the "
        "devices given to it: name the keys in env, or give envFrom a prefix"
    ),
    "?": (
        "container {} asks for a resource of nvidia.com that resources.gpus does not list, so it "
        "is left alone: list the name if it counts GPUs"
    ),
}


def _say(what: str, container: Container, shown: str = "") -> str:
    return _TEXTS[what].format(container.name, shown)


class _Held(Enum):
    NOTHING = "nothing of ours"
    GPUS = "gpus"
    CLAIM = "claim"
    UNKNOWN = "another resource of the vendor"


def _is_exempt(pod: Pod, settings: Settings, namespace: str) -> bool:
    labels = as_map(pod.metadata.get("labels"))
    return any(each.covers(namespace, labels) for each in settings.guard.exempt)


def _held(container: Container, settings: Settings) -> _Held:
    """What the container asks for; a zero is no request (the kubelet gives nothing for it)."""
    claims = as_items(as_map(container.raw.get("resources")).get("claims"))
    held = {_Held.CLAIM} if claims else set()
    for section in (container.limits, container.requests):
        for name, amount in section.items():
            if name not in _EVERYDAY:
                kind = _kind(name, settings)
                if kind is not _Held.NOTHING and _is_positive(amount):
                    held.add(kind)
    return next(
        (each for each in (_Held.GPUS, _Held.CLAIM, _Held.UNKNOWN) if each in held), _Held.NOTHING
    )


def _kind(name: str, settings: Settings) -> _Held:
    # A legacy name counts: it is about to be renamed.
    if settings.is_gpu(name) or name in settings.legacy_resources:
        return _Held.GPUS
    if name.startswith(_DEVICE_CLASS):
        return _Held.CLAIM
    return _Held.UNKNOWN if name.startswith(_VENDOR) else _Held.NOTHING


def _is_positive(amount: object) -> bool:
    value = quantity.parse(amount)
    return value is not None and value.numerator > 0


def _entries(container: Container) -> list[tuple[int, dict[str, Any]]]:
    return [(at, entry) for at, entry in container.env() if entry.get("name") == _VARIABLE]


def _is_void(entries: list[tuple[int, dict[str, Any]]]) -> bool:
    """True if the variable stands there once and shows nothing."""
    return (
        len(entries) == 1
        and entries[0][1].get("value") == _VOID
        and entries[0][1].get("valueFrom") is None
    )


def _hidden(container: Container) -> Iterator[Finding]:
    """`void`, written over the first entry there is; the other entries go."""
    entries = _entries(container)
    env = container.raw.get("env")
    if _is_void(entries) or not (env is None or isinstance(env, list)):
        return
    at = container.at / "env"
    edits: tuple[Edit, ...]
    if entries:
        first, *others = (at / position for position, _ in entries)
        edits = (_written(first, entries[0][1]), *map(Remove, others))
    else:
        edits = (Append(at, {"name": _VARIABLE, "value": _VOID}),)
    place = at / entries[0][0] if entries else at
    yield Finding(CODE, place, _say("void", container), edits)


def _written(at: Path, entry: dict[str, Any]) -> Set:
    if "valueFrom" in entry:
        return Set(at, {"name": _VARIABLE, "value": _VOID})
    return Set(at / "value", _VOID)


def _as_given(container: Container, held: _Held) -> Iterator[Finding]:
    """A container sees what it was given: nothing in the manifest may say otherwise."""
    entries = _entries(container)
    if entries and not (held is _Held.CLAIM and _is_void(entries)):
        at = container.at / "env"
        edits = tuple(Remove(at / position) for position, _ in entries)
        yield Finding(CODE, at / entries[0][0], _say(held.value, container), edits)
    elif entries:
        return  # `void` in env wins over envFrom
    if _brought_by_env_from(container):
        yield Finding(CODE, container.at / "envFrom", _say("env-from", container), severity=_ASK)


def _brought_by_env_from(container: Container) -> bool:
    """True if a ConfigMap or Secret, which cannot be looked into, may have the variable."""
    return any(
        _VARIABLE.startswith(str(source.get("prefix") or ""))
        and source.get("prefix") != _VARIABLE  # the rest of the name would be empty
        for _, source in as_items(container.raw.get("envFrom"))
    )


def _shows_something(container: Container) -> bool:
    """True if the manifest's variable names GPUs, or may: the last of several entries counts."""
    entries = _entries(container)
    if not entries:
        return False
    _, entry = entries[-1]
    if entry.get("valueFrom") is not None:
        return True
    value = entry.get("value")
    return isinstance(value, str) and value not in {"", "none"} and _VOID not in value.split(",")


def _ways_around(container: Container, host_paths: Mapping[str, str]) -> Iterator[Finding]:
    for way, at, shown in _open_ways(container, host_paths):
        yield Finding(CODE, at, _say(way, container, shown[:_SHOWN]), severity=_ASK)


def _open_ways(
    container: Container, host_paths: Mapping[str, str]
) -> Iterator[tuple[str, Path, str]]:
    """Ways to GPUs that no variable closes: which, where it is written, and the path."""
    security = as_map(container.raw.get("securityContext"))
    if security.get("privileged") is True:
        yield "privileged", container.at / "securityContext" / "privileged", ""
    for position, mount in container.volume_mounts() if host_paths else ():
        host_path = host_paths.get(str(mount.get("name")))
        if host_path is None:
            continue
        at = container.at / "volumeMounts" / position
        # No `..` gets into a host path or a subPath; the kubelet reads `x` as the mountPath `/x`.
        seen = clean(f"/{host_path}/{_text(mount.get('subPath'))}")
        target = clean(f"/{_text(mount.get('mountPath'))}")
        if lists_devices(target) or lists_devices(seen):
            yield "device-list", at, target
        elif shows_devices(seen):
            yield "device", at, seen
        elif shows_driver(seen):
            yield "driver-path", at, seen


def _host_paths(pod: Pod) -> dict[str, str]:
    """The host paths of the pod's volumes, by the names of the volumes."""
    return {
        volume["name"]: path
        for _, volume in pod.volumes()
        if "hostPath" in volume
        and isinstance(volume.get("name"), str)
        and isinstance(path := as_map(volume["hostPath"]).get("path"), str)
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
