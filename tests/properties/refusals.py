"""Why kube-apiserver refuses a pod, for the parts that repairs write.

Written from its documentation and its source (pkg/apis/core/validation); the table of
tests/cluster/test_settings_in_pods.py asks the real one.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.properties.api_server import containers, is_label_value, node_requirements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Raw = dict[str, Any]

_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_DNS}(\.{_DNS})*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_TYPES = {"", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice",
          "BlockDevice"}  # fmt: skip
_STANDARD = re.compile(r"cpu|memory|ephemeral-storage|hugepages-.*")


def refusals(pod: Raw) -> set[str]:
    """One sentence for each."""
    spec = pod.get("spec") or {}
    found = [
        *_volumes(spec),
        *_labels("nodeSelector", (spec.get("nodeSelector") or {}).items()),
        *_tolerations(spec),
        *_requirements(pod),
    ]
    if not _is_subdomain(spec.get("runtimeClassName") or "none"):
        found.append("runtimeClassName is no DNS subdomain")
    volumes = {each.get("name") for each in spec.get("volumes") or ()}
    for container in containers(pod):
        who = str(container.get("name"))
        found += (f"{who}: {each}" for each in _container(container, volumes))
    return set(found)


def _volumes(spec: Raw) -> Iterator[str]:
    volumes = spec.get("volumes") or ()
    yield from _twice("volume", (each.get("name") for each in volumes))
    for each in volumes:
        name, source = str(each.get("name")), each.get("hostPath")
        if len(name) > 63 or not re.fullmatch(_DNS, name):
            yield f"volume {name} is no DNS label"
        if source is not None:
            path = source.get("path") or ""
            if not path or ".." in path.split("/"):
                yield f"volume {name} has the path {path!r}"
            if (source.get("type") or "") not in _TYPES:
                yield f"volume {name} has a type that there is not"


def _container(container: Raw, volumes: set[Any]) -> Iterator[str]:
    mounts = container.get("volumeMounts") or ()
    devices = container.get("volumeDevices") or ()
    paths = [each.get("mountPath") for each in mounts]
    yield from _twice("mountPath", paths)
    yield from _twice(
        "mountPath or devicePath", {*paths}, {each.get("devicePath") for each in devices}
    )
    for each in mounts:
        if each.get("name") not in volumes:
            yield f"no volume for the mount of {each.get('name')}"
        if not each.get("mountPath"):
            yield "a mount without mountPath"
    for each in container.get("env") or ():
        if not re.fullmatch(r"[ -<>-~]+", each.get("name") or ""):
            yield f"env {each.get('name')!r}"
        if each.get("value") and each.get("valueFrom"):
            yield f"env {each.get('name')!r} has two values"
    for section in ("limits", "requests"):
        for name in (container.get("resources") or {}).get(section) or {}:
            if not (_STANDARD.fullmatch(name) or _is_of_a_container(name)):
                yield f"resource {name}"


def _tolerations(spec: Raw) -> Iterator[str]:
    for each in spec.get("tolerations") or ():
        key, operator = each.get("key") or "", each.get("operator") or "Equal"
        value = each.get("value") or ""
        if key and not _is_key(key):
            yield f"toleration of the key {key}"
        if operator not in ("Equal", "Exists") or (not key and operator == "Equal"):
            yield f"toleration of {key!r} by {operator}"
        if (operator == "Equal" and not is_label_value(value)) or (operator == "Exists" and value):
            yield f"toleration of the value {value}"
        if (each.get("effect") or "NoExecute") not in (
            *("NoExecute", "NoSchedule", "PreferNoSchedule"),
        ):
            yield f"toleration of the effect {each['effect']}"
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            yield f"toleration of {key!r} for a while"


def _requirements(pod: Raw) -> Iterator[str]:
    for each in node_requirements(pod):
        values = each.get("values") or ()
        yield from _labels("matchExpressions", ((each.get("key"), value) for value in values))
        if each.get("operator") in ("In", "NotIn") and not values:
            yield f"matchExpressions of {each.get('key')} without values"


def _labels(where: str, pairs: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    for key, value in pairs:
        if not _is_key(key) or not is_label_value(value):
            yield f"{where} {key}={value}"


def _twice(what: str, *names: Iterable[Any]) -> Iterator[str]:
    counts = Counter(name for each in names for name in each)
    return (f"{what} {name} twice" for name, count in counts.items() if count > 1)


def _is_key(key: object) -> bool:
    prefix, slash, name = str(key).rpartition("/")
    fits = len(name) <= 63 and _NAME.fullmatch(name) is not None
    return fits and (not slash or _is_subdomain(prefix))


def _is_subdomain(name: str) -> bool:
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def _is_of_a_container(name: str) -> bool:
    if "kubernetes.io/" in name:
        return _is_key(name)
    is_quota = name.startswith("requests.")
    return "/" in name and not is_quota and _is_key(f"requests.{name}")
