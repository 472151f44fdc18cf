"""Finds GPU containers without the driver that the driver profile of the cluster configures.

Why: most clusters inject the driver themselves (profile `toolkit`: nothing is added). Nodes without
the container toolkit need host paths, and some clusters need a runtime class.

Does: for `host-path`, mounts the configured directories read-only into containers with a GPU. The
volume has a `type`, so that a missing path is an error instead of an empty directory. Nothing is
mounted if that source is already mounted, or if the container has a mount or a block device at that
path. Other mounts of the volumes that this rule adds (`gpu-webhook-driver-0` and so on) become
read-only. For `runtime-class`, sets runtimeClassName if none is set and the class is known to
exist.

The rule only warns where the change would cause a refusal: a host path in a namespace that enforces
the Pod Security level baseline or restricted, by its label or as the default of the cluster
(`drivers.podSecurity`), and a runtime class whose nodeSelector contradicts that of the pod. It also
only warns if the nodes of the class do not fit the pod: its node affinity, its nodeName, its GPUs,
or their taints, which the class may tolerate. A pod without legacy use gets a class with a
nodeSelector only if a known node fits, and a DaemonSet only if it loses none of its nodes. For a
template the node selector of its namespace counts as well. While the watcher does not know the
namespace yet, a class with a nodeSelector and host paths are added only to the pods of a template,
and a pod without legacy use and without a controller gets no host path, but a warning. A template
gets what was left out as soon as its manifest changes. A class from an earlier repair stays if only
the nodes, or what is known of them, changed.
In a file where text is inserted into the pod later, a class with a nodeSelector is set if it allows
one of the largest GPU nodes that the pod allows, and in a DaemonSet if it allows all of these; not
where that text may select nodes itself.

Safety: safe: the rule adds only what the settings name.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from webhook.capacity import fit
from webhook.capacity.nodes import Inventory
from webhook.capacity.runtime_class import in_class, in_namespace, node_selector
from webhook.capacity.why_not import short
from webhook.core.edits import Append, Edit, Set
from webhook.core.findings import Finding, Severity
from webhook.core.host_paths import VOLUME_PREFIX, clean
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.kube.labels import is_value
from webhook.kube.pod import Container, Pod, Raw, as_map, controller_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.core.settings import DriverMount, Drivers
    from webhook.kube.pointer import Path


NAME = "driver-profile"
CODE = "GPU202"
FACTS = Facts(Stage.REPAIR, Trait.CLUSTER)

_REFUSED = (
    "if its namespace, which is not known yet, enforces the Pod Security level baseline or "
    "restricted, the API server refuses the pod"
)
_LEFT = (
    "the pod starts without the driver: its namespace, which is not known yet, may enforce a Pod "
    "Security level that forbids host paths; delete the pod, and create the pod again in a few "
    "seconds"
)
_ENFORCE = "pod-security.kubernetes.io/enforce"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    drivers = cx.settings.drivers
    if not drivers.mounts and not drivers.runtime_class:
        return
    gpu_containers = [each for each in pod.containers if each.gpus(cx.settings)]
    if gpu_containers and drivers.runtime_class:
        yield from _runtime_class(pod, cx)
    volumes = _Volumes(pod, drivers)
    outlook = _REFUSED if _is_new(cx) else "nothing to do in the manifest"
    found = [
        each for one in gpu_containers for each in _mounts(pod, one, drivers, volumes, outlook)
    ]
    if volumes.has_new and _is_new(cx) and _is_left(pod, cx):
        found = [] if cx.template else [Finding(CODE, pod.spec_at, _LEFT, severity=Severity.MANUAL)]
        yield from (*found, *_writable(pod))
        return
    found += _writable(pod) if drivers.mounts else ()
    level = _enforced_level(cx)
    if not found or not level:
        yield from found
        return
    message = (
        f"the namespace enforces the Pod Security level {level}, which forbids the driver's host "
        "paths: install the container toolkit, and set drivers.profile to toolkit"
    )
    yield Finding(CODE, pod.spec_at, message, severity=Severity.MANUAL)


def _is_new(cx: Context) -> bool:
    """Whether the namespace is not known yet, which may enforce a level without host paths."""
    return cx.inventory is not None and not cx.inventory.knows(cx.namespace)


def _is_left(pod: Pod, cx: Context) -> bool:
    """Whether no host path is added while the namespace is not known.

    All pods of a template with one might be rejected permanently, and a bare current pod for no
    reason. A controller tries again, and by then the namespace is known; a legacy pod cannot run as
    it is.
    """
    if cx.template:
        return not any(key[:2] == ("spec", "volumes") for key in cx.was_added)
    return not cx.stuck and not controller_of(as_map(pod.raw.get("metadata")))


def _enforced_level(cx: Context) -> str:
    labels = cx.inventory.namespaces.get(cx.namespace, {}) if cx.inventory is not None else {}
    level = labels.get(_ENFORCE, cx.settings.drivers.pod_security)
    return level if level in ("baseline", "restricted") else ""


def _runtime_class(pod: Pod, cx: Context) -> Iterator[Finding]:
    name = cx.settings.drivers.runtime_class
    at = pod.spec_at / "runtimeClassName"
    classes = cx.inventory.runtime_classes if cx.inventory is not None else {}
    stays = cx.was_added.get(("spec", "runtimeClassName")) == name
    if pod.spec.get("runtimeClassName"):
        return
    if selector := classes.get(name):
        yield from _of_nodes(pod, cx, selector, stays=stays)
    elif name in classes or cx.settings.drivers.assume_runtime_class:
        yield _given(at, name)
    elif stays:
        message = (
            f"the runtime class {short(name)} was set before and stays, though it is not known to "
            "exist: while it does not, pods are refused; create it, or name another in "
            "drivers.runtimeClass"
        )
        yield Finding(CODE, at, message, (Set(at, name),), Severity.MANUAL)
    else:
        message = (
            f"the runtime class {name} is not known to exist: it is added to "
            "nothing, and pods of a template that has it are refused until it does; create it, "
            "name another in drivers.runtimeClass, or set drivers.assumeRuntimeClass"
        )
        yield Finding(CODE, at, message, severity=Severity.MANUAL)


def _of_nodes(
    pod: Pod, cx: Context, selector: Mapping[str, str], *, stays: bool
) -> Iterator[Finding]:
    """The same for a class with a nodeSelector: its nodes must do for the pod."""
    name = cx.settings.drivers.runtime_class
    at = pod.spec_at / "runtimeClassName"
    bound = in_namespace(pod, cx)
    there = bound.node_selector
    against = next((key for key in selector if there.get(key, selector[key]) != selector[key]), "")
    if against:
        who = "nodeSelector" if against in pod.node_selector else "the namespace's node selector"
        message = (
            f"the runtime class {name} is not set: it is for nodes with {against}="
            f"{selector[against]}, {who} says {against}={there[against]}, "
        )
        if cx.is_open and not is_value(there[against]):
            message += f"which is filled in later: write runtimeClassName: {name} if it will be "
            message += "the same"
        else:
            message += "and the API server refuses a pod with both; change one of them"
        yield Finding(CODE, at, message, severity=Severity.MANUAL)
        return
    if node_selector(cx) is None and not stays:
        return  # the pods will show what their namespace gives them
    fits = _fits(pod, name, cx)
    if fits and (bound is pod or _fits(bound, name, cx)):
        yield _given(at, name)
    elif stays and not fits:
        message = (
            f"the runtime class {short(name)} was set before and stays, though no node known to "
            f"have {_label(selector)}, as the class asks, fits this pod; change the "
            "node selection of the pod, or the nodes"
        )
        yield Finding(CODE, at, message, (Set(at, name),), Severity.MANUAL)
    else:
        within = " with the node selector of its namespace" if fits else ""
        message = (
            f"the runtime class {short(name)} is not set: no node known to have "
            f"{_label(selector)}, as the class asks, fits this pod{within}; change the node "
            f"selection of the pod, or write runtimeClassName: {short(name)}"
        )
        yield Finding(CODE, at, message, severity=Severity.MANUAL)


def _given(at: Path, name: str) -> Finding:
    message = f"GPU pods run with the runtime class {name} here; write runtimeClassName: {name}"
    return Finding(CODE, at, message, (Set(at, name),))


def _label(selector: Mapping[str, str]) -> str:
    key, value = next(iter(selector.items()))
    return short(f"{key}={value}")


def _fits(pod: Pod, name: str, cx: Context) -> bool:
    """Whether the pod can run with this class, of which the nodeSelector is known."""
    of_class = in_class(pod, name, cx.inventory or Inventory())
    return fit.still_fits(*fit.compared(of_class, pod, cx), cx)


class _Volumes:
    """The pod's volumes by name, with the path of their hostPath (`None` for other kinds)."""

    def __init__(self, pod: Pod, drivers: Drivers) -> None:
        self.paths: dict[str, str] = {}
        self._names: dict[tuple[str, str], str] = {}
        self.has_new = False
        # A mount without its volume would get the new one, and may be writable.
        mounts = (each for one in pod.containers for _, each in one.volume_mounts())
        named = {str(each.get("name")) for each in mounts}
        names = (f"{VOLUME_PREFIX}{n}" for n in count())
        self._free = (name for name in names if name not in self.paths and name not in named)
        wanted = [_source(mount) for mount in drivers.mounts]
        for _, volume in pod.volumes():
            name, there = str(volume.get("name")), as_map(volume.get("hostPath"))
            self.paths[name] = str(there.get("path")).rstrip("/")
            if name.startswith(VOLUME_PREFIX) and there in wanted:
                self._names.setdefault((there["path"], there["type"]), name)

    def of(self, mount: DriverMount) -> tuple[str, bool]:
        """The name of the driver volume for this mount, and whether it is new."""
        key = (mount.path, mount.type)
        if key in self._names:
            return self._names[key], False
        self._names[key] = name = next(self._free)
        self.has_new = True
        self.paths[name] = mount.path.rstrip("/")
        return name, True


def _source(mount: DriverMount) -> Raw:
    return {"path": mount.path, "type": mount.type}


def _mounts(
    pod: Pod, container: Container, drivers: Drivers, volumes: _Volumes, outlook: str
) -> Iterator[Finding]:
    """What this container lacks; a volume that is added for it joins `volumes`."""
    edits: list[Edit] = []
    for mount in drivers.mounts:
        if _is_mounted(container, mount, volumes.paths):
            continue
        name, is_new = volumes.of(mount)
        if is_new:
            volume = {"name": name, "hostPath": _source(mount)}
            edits.append(Append(pod.spec_at / "volumes", volume))
        entry = {"name": name, "mountPath": mount.mount_path, "readOnly": True}
        edits.append(Append(container.at / "volumeMounts", entry))
    given = f"the driver's host paths of this cluster's profile; {outlook}"
    if not edits:
        given = (
            "the LD_LIBRARY_PATH of this cluster's profile, and no host path of the driver, since "
            "it has mounts of its own there; nothing to do in the manifest"
        )
    edits += _library_path(container, drivers.library_path)
    if edits:
        yield Finding(CODE, container.at, f"container {container.name} gets {given}", tuple(edits))


def _writable(pod: Pod) -> Iterator[Finding]:
    """Mounts of driver volumes that the author wrote: they must be read-only in each container."""
    driver_volumes = {
        name
        for _, volume in pod.volumes()
        if (name := str(volume.get("name"))).startswith(VOLUME_PREFIX) and "hostPath" in volume
    }
    for container in pod.containers if driver_volumes else ():
        for position, mount in container.volume_mounts():
            name, at = str(mount.get("name")), container.at / "volumeMounts" / position
            if name in driver_volumes and mount.get("readOnly") is not True:
                message = (
                    f"container {container.name} mounts {short(name)}, the driver's host path, "
                    "which is read-only: write readOnly: true"
                )
                yield Finding(CODE, at, message, (Set(at / "readOnly", value=True),))


def _is_mounted(container: Container, mount: DriverMount, paths: dict[str, str]) -> bool:
    """True if this mountPath, or this source, is in the container already.

    A subPath of the source is not the source. The API server refuses a mountPath that stands twice,
    or that is a devicePath as well.
    """
    target, source = clean(mount.mount_path), mount.path.rstrip("/")
    taken = [each.get("mountPath") for _, each in container.volume_mounts()]
    taken += [each.get("devicePath") for _, each in container.volume_devices()]
    return any(clean(f"/{each}") == target for each in taken) or any(
        paths.get(str(each.get("name"))) == source
        and not (each.get("subPath") or each.get("subPathExpr"))
        for _, each in container.volume_mounts()
    )


def _library_path(container: Container, wanted: str) -> list[Edit]:
    """The edits that bring the entries of `wanted` into LD_LIBRARY_PATH."""
    if not wanted:
        return []
    for position, variable in container.env():
        if variable.get("name") == "LD_LIBRARY_PATH":
            value = variable.get("value", "")
            if not isinstance(value, str) or variable.get("valueFrom"):
                return []
            entries = value.split(":") if value else []
            missing = [each for each in wanted.split(":") if each not in entries]
            at = container.at / "env" / position / "value"
            return [Set(at, ":".join([*entries, *missing]))] if missing else []
    return [Append(container.at / "env", {"name": "LD_LIBRARY_PATH", "value": wanted})]
