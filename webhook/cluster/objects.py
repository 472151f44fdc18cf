"""The workloads of a cluster: raw objects by the page, of every kind that has a pod template.

Which version serves a kind is asked of the API server, so that older clusters and custom kinds need
no table here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from webhook.cluster import listing
from webhook.cluster.client import Fault, Refused
from webhook.evaluation.workloads import BUILT_IN
from webhook.kube.pod import as_items, as_map, controller_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.cluster.client import Client
    from webhook.cluster.listing import Progress
    from webhook.core.settings import CustomKind

    Raw = dict[str, Any]

KINDS: tuple[tuple[str, str], ...] = (
    *((group, kind) for group, kind, _, _ in BUILT_IN),
    *(("", kind) for kind in ("Pod", "ResourceQuota", "LimitRange")),
)
_GENERATIONS = 10  # an object, its controller, the controller's controller: never so many


class Served(NamedTuple):
    """A kind, and where it is served."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """The address of all objects, of those in a namespace, or of one."""
        parts = ["", "apis" if self.group else "api", self.api_version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        return "/".join([*parts, name] if name else parts)


@dataclass(frozen=True)
class Catalogue:
    """What the API server serves; each group is asked for once."""

    client: Client
    _groups: dict[str, tuple[str, ...]] = field(default_factory=dict)  # versions, the best first
    _kinds: dict[tuple[str, str], tuple[Served, ...]] = field(default_factory=dict)

    def find(self, group: str, kind: str) -> Served | None:
        """Where this kind is served; None if it is not."""
        versions = ("v1",) if not group else self._versions().get(group, ())
        for version in versions:
            for each in self._resources(group, version):
                if each.kind == kind:
                    return each
        return None

    def custom(self, kinds: Iterable[CustomKind]) -> list[Served]:
        """Where these are served, if they are; a kind without a group may be of any group."""
        found: dict[Served, None] = {}
        for each in kinds:
            groups = [each.group] if each.group else [group for group in self._versions() if group]
            for group in groups:
                served = self.find(group, each.kind)
                if served is not None:
                    found[served] = None
        return list(found)

    def _versions(self) -> dict[str, tuple[str, ...]]:
        if not self._groups:
            for _, group in as_items(_json(self.client, "/apis").get("groups")):
                best = str(as_map(group.get("preferredVersion")).get("version", ""))
                others = [str(each.get("version")) for _, each in as_items(group.get("versions"))]
                self._groups[str(group.get("name"))] = tuple(dict.fromkeys([best, *others]))
        return self._groups

    def _resources(self, group: str, version: str) -> tuple[Served, ...]:
        if (group, version) not in self._kinds:
            self._kinds[group, version] = tuple(self._listed(group, version))
        return self._kinds[group, version]

    def _listed(self, group: str, version: str) -> Iterator[Served]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            resources = as_items(_json(self.client, path).get("resources"))
        except Refused:
            if group in _GROUPS:
                raise
            return  # an aggregated API that is away must not stop the others
        for _, each in resources:
            plural, verbs = str(each.get("name")), each.get("verbs") or ()
            if "/" not in plural and "list" in verbs:
                namespaced = each.get("namespaced") is True
                yield Served(group, version, str(each.get("kind")), plural, namespaced)


_GROUPS = {group for group, _ in KINDS}


def _json(client: Client, path: str) -> Raw:
    try:
        return as_map(orjson.loads(client.get(path, {})))
    except orjson.JSONDecodeError as error:
        raise Fault(f"{path}: the answer is no JSON: {error}") from error


def of_kind(
    client: Client, served: Served, progress: Progress, namespace: str = "", selector: str = ""
) -> Iterator[Raw]:
    """All objects of a kind, with the apiVersion and kind that lists leave out."""
    query = {"labelSelector": selector} if selector else {}
    for item in listing.objects(client, served.path(namespace), progress, query):
        yield {"apiVersion": served.api_version, "kind": served.kind, **item}


class Reference(NamedTuple):
    """An object by name."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def reference(obj: Mapping[str, Any]) -> Reference:
    """The name of this object."""
    metadata = as_map(obj.get("metadata"))
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    return Reference(group, str(obj.get("kind")), namespace, name)


def controller(obj: Mapping[str, Any]) -> Reference | None:
    """Who made this object and would change it back; None for an object of a person's own."""
    metadata = as_map(obj.get("metadata"))
    owner = controller_of(metadata)
    if not owner:
        return None
    group = str(owner.get("apiVersion", "")).rpartition("/")[0]
    namespace = str(metadata.get("namespace") or "")
    return Reference(group, str(owner.get("kind")), namespace, str(owner.get("name")))


class Owners:
    """Who stands at the top of each object's controllers: asked for one by one, and remembered."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[Reference, Raw | None] = {}

    def top(self, obj: Raw) -> Raw:
        """The object that a person must change; as much of it as we may see."""
        for _ in range(_GENERATIONS):
            owner = controller(obj)
            if owner is None:
                return obj
            above = self._object(owner)
            if above is None:  # not ours to see: its name must do
                metadata = {"name": owner.name, "namespace": owner.namespace}
                version = f"{owner.group}/" if owner.group else ""
                return {"apiVersion": version, "kind": owner.kind, "metadata": metadata}
            obj = above
        return obj

    def _object(self, owner: Reference) -> Raw | None:
        if owner not in self._known:
            self._known[owner] = self._asked(owner)
        return self._known[owner]

    def _asked(self, owner: Reference) -> Raw | None:
        try:
            served = self._catalogue.find(owner.group, owner.kind)
            if served is None:
                return None
            found = _json(self._catalogue.client, served.path(owner.namespace, owner.name))
        except Refused:  # forbidden, or deleted a moment ago
            return None
        return {"apiVersion": served.api_version, "kind": served.kind, **found}
