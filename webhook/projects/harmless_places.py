"""Places that no repair changes, reads or depends on: a patch or replacement in, yes or no out.

A namespace is none, since it may have opted out, or have other modes; nor is the network of the
host, beside which sysctls are refused.

A patch may be of an object that no file shows (of a chart, or of a base elsewhere). It does no harm
only if all its places are listed here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.core.modes import IGNORE
from webhook.evaluation.workloads import tokens
from webhook.kube.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

# No repair changes these kinds.
_OTHER_KINDS = frozenset(
    {
        *("ClusterRole", "ClusterRoleBinding", "ConfigMap", "HorizontalPodAutoscaler", "Ingress"),
        *("NetworkPolicy", "PersistentVolume", "PersistentVolumeClaim", "Role", "RoleBinding"),
        *("Secret", "Service", "ServiceAccount"),
    }
)
_OF_SPECS = (
    "activeDeadlineSeconds|backoffLimit|completions|concurrencyPolicy|minReadySeconds|parallelism|"
    "paused|progressDeadlineSeconds|replicas|schedule|serviceName|startingDeadlineSeconds|suspend|"
    "ttlSecondsAfterFinished|revisionHistoryLimit|(failed|successful)JobsHistoryLimit"
)
_OF_PODS = (
    "dnsConfig|dnsPolicy|imagePullSecrets|priorityClassName|restartPolicy|"
    "securityContext|serviceAccount|serviceAccountName|terminationGracePeriodSeconds"
)
_OF_CONTAINERS = (
    "args|command|image|imagePullPolicy|lifecycle|livenessProbe|name|ports|readinessProbe|"
    "securityContext|startupProbe|stdin|tty|workingDir"
)
_TEMPLATE = r"(spec\0(jobTemplate\0spec\0)?template\0)?"
_CONTAINER = (
    r"(containers\0[^\0]+|initContainers\0\D[^\0]*)"  # annotations may have init containers
)
_PLACES = re.compile(
    r"metadata\0(name|(labels|annotations)\0[^\0]+)"
    rf"|spec\0(jobTemplate\0spec\0)?({_OF_SPECS})"
    rf"|{_TEMPLATE}metadata\0annotations\0[^\0]+"
    rf"|{_TEMPLATE}spec\0({_OF_PODS})(\0.*)?"
    rf"|{_TEMPLATE}spec\0{_CONTAINER}\0({_OF_CONTAINERS})(\0.*)?"
    rf"|{_TEMPLATE}spec\0{_CONTAINER}\0resources\0(limits|requests)\0"
    r"(cpu|memory|ephemeral-storage)",
    re.DOTALL,
)
_LEGACY = re.compile(r"alpha|beta|nvidia|kubernetes\.io")  # in names of labels and annotations
_VERSIONED = frozenset({"version", "apiVersion", "group"})  # a repair changes them
_LISTS = frozenset({"containers", "initContainers"})
_NAMESPACE = ("metadata", "namespace")
_IN_PATH = re.compile(r"\[([^\]]*)\]|((?:\\.|[^.\[\\])+)")


def is_harmless(data: Any) -> bool:
    """Whether a patch of either kind names only such places."""
    if isinstance(data, list):
        operations = [operation for _, operation in as_items(data)]
        return all(
            is_place(tokens(str(each.get(member))))
            for each in operations
            for member in ("path", "from")
            if member in each
        )
    obj = as_map(data)
    if obj.get("kind") in _OTHER_KINDS:
        return "$patch" not in obj
    members = {k: v for k, v in obj.items() if k not in {"apiVersion", "kind"}}
    # Here the namespace says what is patched, and nothing moves it.
    return all(way == _NAMESPACE or is_place(way) for way in _named(members, ()))


def replaces_harmlessly(data: Any) -> bool:
    """Whether a replacement or a variable reads and writes only such places."""
    entry = as_map(data)
    source, ways = as_map(entry.get("source")), [as_map(entry.get("source")).get("fieldPath")]
    if "objref" in entry:
        source, ways = as_map(entry["objref"]), [as_map(entry.get("fieldref")).get("fieldpath")]
    return _is_of_places(source, ways, (_NAMESPACE,)) and all(
        _is_of_places(as_map(each.get("select")), each.get("fieldPaths") or [])
        for _, each in as_items(entry.get("targets"))
    )


def _is_of_places(select: Any, paths: list[Any], also: tuple[tuple[str, ...], ...] = ()) -> bool:
    """Whether the paths name such places, or one of these, in the selected objects."""
    if select.get("kind") in _OTHER_KINDS:
        return True
    ways = map(_way, paths)
    return _VERSIONED.isdisjoint(select) and all(way in also or is_place(way) for way in ways)


def is_place(way: tuple[str, ...]) -> bool:
    """Whether the place is listed."""
    is_of_others = "metadata" in way and (way[-1] == IGNORE or _LEGACY.search(way[-1]) is not None)
    return not is_of_others and _PLACES.fullmatch("\0".join(way)) is not None


def _named(data: Any, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(data, dict) and "$patch" not in data and data:
        for name, value in data.items():
            yield from _named(value, (*at, str(name)))
    elif isinstance(data, list) and at[-1:] and at[-1] in _LISTS:
        for _, item in as_items(data):
            yield from _named(item, (*at, "*"))
    else:
        yield at


def _way(path: Any) -> tuple[str, ...]:
    """The tokens of a path of fields; without one, it is the name of the object."""
    found = _IN_PATH.findall(str(path or "metadata.name"))
    return tuple(inside or plain.replace("\\.", ".") for inside, plain in found)
