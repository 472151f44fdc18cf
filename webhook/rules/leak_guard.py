"""Finds containers that may see GPUs which they did not request.

Why: the scheduler counts GPUs, but the container toolkit injects them according to the variable
NVIDIA_VISIBLE_DEVICES. Images built on CUDA set it to `all`, and in old ones (CUDA_VERSION without
NVIDIA_REQUIRE_CUDA) even an unset variable means `all`: such a container without a GPU request sees
every GPU of its node and can use the GPUs of other pods. In a container that has GPUs, the value in
the manifest overrides the list of the device plugin.

Does: checks all containers, also those that `kubectl debug` adds.

- A container without GPUs gets `NVIDIA_VISIBLE_DEVICES=void`, as one entry that replaces any value
  or valueFrom. `none` and an empty value are replaced too: toolkits before 1.18.2 injected all GPUs
  for `none`. env overrides envFrom, so envFrom does not matter here. A DRA claim or a device class
  changes nothing: `void` hides no GPU of a claim.
- From a container with GPUs (a name of `resources.gpus`), all entries of the variable are removed,
  because they would override the device plugin. An envFrom that may set the variable is reported,
  unless its prefix makes that impossible.
- A container with another name that may mean a GPU or a part of one is not changed, with a notice:
  a name that contains `gpu` or `cuda`, of any vendor; a name of nvidia.com that a node offers; a
  name in `guard.resources`. The same holds for a fraction of a GPU by KAI: the annotation
  `gpu-fraction` (0.01 or more, but less than 1) or `gpu-memory` (a whole number above 0), with an
  amount that KAI accepts, a scheduler of `guard.fractionSchedulers`, no nodeName, and the variable
  from a ConfigMap. It does not count beside an annotation with which KAI ignores it:
  `gpu-fraction-num-devices` that is no whole number above 0, and any `nvidia.com/mig-*`.
- A name counts only if the pod can get the resource. With nodeName the kubelet drops resources that
  its node does not offer, so only names count that this node is known to offer. Amounts of 2^63 and
  more in one pod do not count: the scheduler and the kubelet read their last 64 bits. The request
  counts, as in the scheduler: for a name that contains `kubernetes.io/` it may be 0 with any limit.
  No device plugin may offer such a name, so it counts only if a node is known to offer it, or if it
  is in `resources.gpus` or `guard.resources`.
- A legacy name does not count. If it is still there, it was not renamed, because the pod or the
  mode prevents it or because the repair failed. It counts only if a node is known to offer it.
- Exposures that no variable can prevent are reported: `privileged`; host paths that the container
  mounts and that contain GPU device nodes (`/dev/nvidia*`, `/dev`, `/`) or a CUDA driver; host
  paths mounted at `/var/run/nvidia-container-devices`, where the toolkit may read a device list.

Pods of GPU management software are exempt by `guard.exempt`.

Safety: safe. `void` hides only GPUs. Where the component `guard-refuse` is installed and the mode
is enforce, a pod that reaches the end of admission without this change is denied, and so is an
update of a pod that has no node yet, if its fraction counts no more after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.capacity.gpu_holders import SHARED, VARIABLE, By, Holder, entries_of, holders
from webhook.core.edits import Append, Edit, Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.core.host_paths import clean, lists_devices, shows_devices, shows_driver
from webhook.core.modes import Mode
from webhook.core.rule import Context, Facts, Stage
from webhook.kube.pod import Container, Pod, as_items, as_map, is_for_linux

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.core.settings import Settings
    from webhook.kube.pointer import Path

NAME = "leak-guard"
CODE = "GPU303"
FACTS = Facts(Stage.GUARD)

# What exposures() may say, in its order.
EXPOSURES = ("variable", "env-from", "privileged", "device", "driver-path", "device-list")

_VOID = "void"
_PATH_MAX = 4096  # of Linux, with the zero at the end
_SHOWN = 50  # characters of a path or a name in a message: it is one line
_FEW = 8  # entries that are taken out one by one; of more, the whole list is written anew


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if _is_exempt(pod, cx.settings, cx.namespace):
        return
    judged = (
        each
        for each in holders(pod, cx, _text(pod.spec.get("nodeName")))
        if cx.only_ephemeral is None or _is_added(each.container, cx.only_ephemeral)
    )
    if cx.final:
        if cx.modes.of_code(CODE, FACTS.mode) is Mode.ENFORCE:
            yield from _still_open(judged)
        return
    host_paths = _host_paths(pod)
    for each in judged:
        match each.by:
            case By.GPUS:
                yield from _as_given(each.container)
            case By.SHARE:
                at = each.container.at / "resources"
                yield Finding(CODE, at, _say(each), severity=Severity.NOTICE)
            case By.FRACTION:
                at = each.container.at / "env"
                yield Finding(CODE, at, _say(each), severity=Severity.NOTICE)
            case _:
                yield from _hidden(each)
                yield from _ways_around(each.container, host_paths)


def _is_added(container: Container, names: frozenset[str]) -> bool:
    return container.kind == "ephemeralContainers" and container.name in names


def exposures(pod: Pod, settings: Settings, namespace: str) -> tuple[str, ...]:
    """In which visible ways this pod may see GPUs that nobody gave it, in the order of EXPOSURES.

    For the audit of pods that are there. A container that merely lacks `void` is not among them,
    as nearly every container of a cluster would be.
    """
    if not is_for_linux(pod.raw) or _is_exempt(pod, settings, namespace):
        return ()
    found: set[str] = set()
    host_paths = _host_paths(pod)
    for container, by, _ in holders(pod, Context(settings)):
        if by in SHARED:
            continue
        if _shows_something(container):
            found.add("variable")
        if by is not By.GPUS:
            found.update(way for way, _, _ in _open_ways(container, host_paths))
        elif not entries_of(container) and _brought_by_env_from(container):
            found.add("env-from")
    return tuple(each for each in EXPOSURES if each in found)


_ASK = Severity.MANUAL
_SET = "set its env NVIDIA_VISIBLE_DEVICES to void, once; "
_ELSE = "with anything else, or nothing, it may see all GPUs of its node"
_TEXTS = {
    "void": f"container {{}} requests no GPU: {_SET}{_ELSE}",
    "claim": (
        f"container {{}} has its devices by a claim: {_SET}void hides nothing that a claim brings"
    ),
    "not on this node": (
        "container {} requests {}, but the node in nodeName is not known to offer it, so the "
        f"container may run without: {_SET}{_ELSE}"
    ),
    "nowhere": f"container {{}} requests {{}}, which no node offers: {_SET}{_ELSE}",
    "too many": f"container {{}} requests 2^63 {{}} or more, which counts as none: {_SET}{_ELSE}",
    "share": (
        "container {} requests {}, which may bring a GPU or a part of one, so it is left alone; if "
        "it counts whole GPUs, list it in resources.gpus"
    ),
    "fraction": (
        "container {} has a part of a GPU by the annotation {}, so its env NVIDIA_VISIBLE_DEVICES "
        "is left alone"
    ),
    "privileged": (
        "container {} requests no GPU but is privileged, so it sees all of its node: drop "
        "privileged, or let an admin exempt the pod in guard.exempt"
    ),
    "device": "container {} requests no GPU but mounts {}, where GPU devices are: delete the mount",
    "driver-path": (
        "container {} requests no GPU but mounts {}, where a GPU driver is: delete the mount"
    ),
    "device-list": (
        "container {} requests no GPU but mounts {}, by which the runtime may give it GPUs: "
        "delete the mount"
    ),
    "gpus": (
        "the device plugin chooses the GPUs of container {}: delete its env "
        "NVIDIA_VISIBLE_DEVICES, which would override that choice"
    ),
    "env-from": (
        "envFrom of container {} may bring NVIDIA_VISIBLE_DEVICES, which would override the "
        "devices given to it: name the keys in env, or give envFrom a prefix"
    ),
}


def _say(held: Holder) -> str:
    return _about(held.by.value, held.container, held.shown)


def _about(what: str, container: Container, shown: str = "") -> str:
    return _TEXTS[what].format(container.name, shown[:_SHOWN])


def _is_exempt(pod: Pod, settings: Settings, namespace: str) -> bool:
    labels = as_map(pod.metadata.get("labels"))
    return any(each.covers(namespace, labels) for each in settings.guard.exempt)


def _is_void(entries: list[tuple[int, dict[str, Any]]]) -> bool:
    """True if the variable stands there once and shows nothing."""
    return (
        len(entries) == 1
        and entries[0][1].get("value") == _VOID
        and entries[0][1].get("valueFrom") is None
    )


def _still_open(held: Iterable[Holder]) -> Iterator[Finding]:
    """Containers in which the variable may show GPUs that nobody gave them: a denial each."""
    for each in held:
        entries = entries_of(each.container)
        hidden = bool(entries) and _is_void(entries[-1:])  # the last of several counts
        if each.by in SHARED or hidden or (each.by is By.GPUS and not entries):
            continue
        yield Finding(CODE, each.container.at / "env", _say(each), severity=Severity.DENY)


def _hidden(held: Holder) -> Iterator[Finding]:
    """`void`, written over the first entry there is; the other entries go."""
    container = held.container
    entries = entries_of(container)
    env = container.raw.get("env")
    if _is_void(entries) or not (env is None or isinstance(env, list)):
        return
    at = container.at / "env"
    edits: tuple[Edit, ...]
    if not entries:
        edits = (Append(at, {"name": VARIABLE, "value": _VOID}),)
    elif len(entries) > _FEW:
        edits = (Set(at, _rewritten(container, {"name": VARIABLE, "value": _VOID})),)
    else:
        first, *others = (at / position for position, _ in entries)
        edits = (_written(first, entries[0][1]), *map(Remove, others))
    place = at / entries[0][0] if entries else at
    yield Finding(CODE, place, _say(held), edits)


def _written(at: Path, entry: dict[str, Any]) -> Set:
    if "valueFrom" in entry:
        return Set(at, {"name": VARIABLE, "value": _VOID})
    return Set(at / "value", _VOID)


def _rewritten(container: Container, *instead: dict[str, Any]) -> list[Any]:
    """The whole list of variables, with these entries in the place of all of this name.

    One operation however often the variable stands there: the patch must not grow without end.
    """
    entries = entries_of(container)
    gone = {position for position, _ in entries}
    kept = [each for at, each in enumerate(container.raw["env"]) if at not in gone]
    first = entries[0][0]  # nothing is taken out before it
    return [*kept[:first], *instead, *kept[first:]]


def _as_given(container: Container) -> Iterator[Finding]:
    """A container sees what the device plugin gives it: the manifest may say nothing else."""
    entries = entries_of(container)
    if entries:
        at = container.at / "env"
        yield Finding(
            CODE, at / entries[0][0], _about("gpus", container), tuple(_removed(container, entries))
        )
    if _brought_by_env_from(container):
        at = container.at / "envFrom"
        yield Finding(CODE, at, _about("env-from", container), severity=_ASK)


def _removed(container: Container, entries: Sequence[tuple[int, Any]]) -> Iterator[Edit]:
    at = container.at / "env"
    if len(entries) <= _FEW:
        for position, _ in entries:
            yield Remove(at / position)
    elif kept := _rewritten(container):
        yield Set(at, kept)
    else:
        yield Remove(at)


def _brought_by_env_from(container: Container) -> bool:
    """True if a ConfigMap or Secret, which cannot be looked into, may have the variable."""
    return any(
        VARIABLE.startswith(str(source.get("prefix") or ""))
        and source.get("prefix") != VARIABLE  # the rest of the name would be empty
        for _, source in as_items(container.raw.get("envFrom"))
    )


def _shows_something(container: Container) -> bool:
    """True if the manifest's variable names GPUs, or may: the last of several entries counts."""
    entries = entries_of(container)
    if not entries:
        return False
    _, entry = entries[-1]
    if entry.get("valueFrom") is not None:
        return True
    value = entry.get("value")
    return isinstance(value, str) and value not in {"", "none"} and _VOID not in value.split(",")


def _ways_around(container: Container, host_paths: Mapping[str, str]) -> Iterator[Finding]:
    for way, at, shown in _open_ways(container, host_paths):
        yield Finding(CODE, at, _about(way, container, shown), severity=_ASK)


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
    """The host paths of the pod's volumes, by the names of the volumes.

    Not those that are too long for any system call: nothing can be mounted from there.
    """
    return {
        volume["name"]: path
        for _, volume in pod.volumes()
        if "hostPath" in volume
        and isinstance(volume.get("name"), str)
        and isinstance(raw := as_map(volume["hostPath"]).get("path"), str)
        and len(path := clean(f"/{raw}")) < _PATH_MAX
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
