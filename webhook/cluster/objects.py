"""The workloads of a cluster: raw objects in pages, of every kind that has a pod template.

The API server is asked for the version of each kind, so that older clusters and custom kinds need
no table here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.cluster import answers, listing
from webhook.cluster.client import Client, Fault, address
from webhook.evaluation.workloads import BUILT_IN
from webhook.kube.pod import as_items, as_map, controller_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from webhook.cluster.listing import Progress
    from webhook.core.settings import CustomKind

    Raw = dict[str, Any]

KINDS: tuple[tuple[str, str], ...] = (
    *((group, kind) for group, kind, _, _ in BUILT_IN),
    *(("", kind) for kind in ("Pod", "ResourceQuota", "LimitRange")),
)
# The kinds that built-in controllers create; for other kinds this is not known.
_MADE_BY = {
    ("apps", "Deployment"): "ReplicaSet",
    ("batch", "CronJob"): "Job",
    ("apps", "StatefulSet"): "Pod",
    ("apps", "DaemonSet"): "Pod",
    ("batch", "Job"): "Pod",
    ("apps", "ReplicaSet"): "Pod",
    ("", "ReplicationController"): "Pod",
}
_DEEP = 100  # levels
_MOST_OWNERS = 1000  # that are remembered; tenants could invent any number of owners
_GENERATIONS = 10  # an object, its controller, and so on: there are never so many


class Served(NamedTuple):
    """A kind, with its group, version and plural."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path of all objects, of those in a namespace, or of one."""
        parts = _served_below(self.group, self.version)
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        return address(*parts, name) if name else address(*parts)


def _served_below(group: str, version: str) -> list[str]:
    return ["apis", group, version] if group else ["api", version]


@dataclass(frozen=True)
class Catalogue:
    """The kinds that the API server serves; each group is requested once."""

    client: Client
    _groups: dict[str, tuple[str, ...]] = field(default_factory=dict)  # versions, the best first
    _kinds: dict[tuple[str, str], tuple[Served, ...]] = field(default_factory=dict)
    unanswered: dict[str, Fault] = field(default_factory=dict)  # by group and version

    def find(self, group: str, kind: str) -> Served | None:
        """Where this kind is served; None if it is not."""
        versions = ("v1",) if not group else self._versions().get(group, ())
        for version in versions:
            for each in self._resources(group, version):
                if each.kind == kind:
                    return each
        return None

    def custom(self, kinds: Iterable[CustomKind]) -> list[Served]:
        """Where these kinds are served, if they are; a kind without a group may be in any group."""
        found: dict[Served, None] = {}
        for each in kinds:
            groups = [each.group] if each.group else [group for group in self._versions() if group]
            for group in groups:
                served = self.find(group, each.kind)
                if served is not None:
                    found[served] = None
        return list(found)

    def others(self, known: Container[str]) -> list[Served]:
        """All kinds of other groups, each in its best version."""
        found: dict[tuple[str, str], Served] = {}
        for group, versions in self._versions().items():
            for version in versions if group not in known else ():
                for each in self._resources(group, version):
                    found.setdefault((group, each.plural), each)
        return list(found.values())

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
        try:
            path = address(*_served_below(group, version))
            resources = as_items(_json(self.client, path).get("resources"))
        except Fault as fault:
            if group in _GROUPS or fault.away:
                raise
            self.unanswered[f"{group}/{version}"] = fault  # an aggregated API: the others answer
            return
        for _, each in resources:
            plural, verbs = str(each.get("name")), each.get("verbs") or ()
            if "/" not in plural and "list" in verbs:
                namespaced = each.get("namespaced") is True
                yield Served(group, version, str(each.get("kind")), plural, namespaced)


_GROUPS = {group for group, _ in KINDS}


def _json(client: Client, path: str) -> Raw:
    return as_map(answers.read(client.get(path, {})))


def of_kind(
    client: Client, served: Served, progress: Progress, namespace: str = "", selector: str = ""
) -> Iterator[Raw]:
    """All objects of a kind, with the apiVersion and kind that lists leave out."""
    query = {"labelSelector": selector} if selector else {}
    for item in listing.objects(client, served.path(namespace), progress, query):
        yield {"apiVersion": served.api_version, "kind": served.kind, **item}


class Reference(NamedTuple):
    """The name of an object, with the uid that distinguishes objects of the same name."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


NOBODY = Reference("", "", "", "")


def reference(obj: Mapping[str, Any]) -> Reference:
    """The name of this object."""
    metadata = as_map(obj.get("metadata"))
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    namespace, name, uid = (str(metadata.get(key) or "") for key in ("namespace", "name", "uid"))
    return Reference(group, str(obj.get("kind")), namespace, name, uid)


def controller(obj: Mapping[str, Any]) -> Reference | None:
    """The controller of this object, which would revert changes; None if a user created it."""
    metadata = as_map(obj.get("metadata"))
    owner = controller_of(metadata)
    if not owner.get("name"):
        return None
    group = str(owner.get("apiVersion", "")).rpartition("/")[0]
    namespace, uid = str(metadata.get("namespace") or ""), str(owner.get("uid") or "")
    return Reference(group, str(owner.get("kind")), namespace, str(owner.get("name")), uid)


def may_make(maker: Reference, obj: Mapping[str, Any]) -> bool:
    """Whether objects of the first kind can create such objects (no Deployment makes one)."""
    made = _MADE_BY.get((maker.group, maker.kind))
    return made == obj.get("kind") if made else (maker.group, maker.kind) not in KINDS


def is_deep(obj: Raw) -> bool:
    """Whether it is nested deeper than any built-in kind; a custom object may be."""
    inside: list[Any] = [obj]
    for _ in range(_DEEP):
        values = [each.values() if isinstance(each, dict) else each for each in inside]
        inside = [each for held in values for each in held if isinstance(each, dict | list)]
    return bool(inside)


class Owners:
    """The topmost owner of each object: requested one by one, and cached.

    If an owner cannot be read, for any reason, only its name is known.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[Reference, Raw | None] = {}  # their metadata, the oldest first

    def top(self, obj: Raw) -> Raw:
        """The object that a user must change; as much of it as can be read.

        A reference to an object with another uid is not used: that object did not create this one.
        """
        for _ in range(_GENERATIONS):
            owner = controller(obj)
            if owner is None:
                return obj
            above = self._object(owner)
            if above is None:  # not readable: its name must be enough
                metadata = {"name": owner.name, "namespace": owner.namespace}
                version = f"{owner.group}/" if owner.group else ""
                return {"apiVersion": version, "kind": owner.kind, "metadata": metadata}
            if reference(above).uid != owner.uid:
                return obj
            obj = above
        return obj

    def _object(self, owner: Reference) -> Raw | None:
        if owner not in self._known:
            self._known[owner] = self._asked(owner)
            if len(self._known) > _MOST_OWNERS:
                del self._known[next(iter(self._known))]
        return self._known[owner]

    def _asked(self, owner: Reference) -> Raw | None:
        try:
            served = self._catalogue.find(owner.group, owner.kind)
            if served is None:
                return None
            found = _json(self._catalogue.client, served.path(owner.namespace, owner.name))
        except Fault:  # forbidden, just deleted, or an unusable answer
            return None
        metadata = as_map(found.get("metadata"))
        return {"apiVersion": served.api_version, "kind": served.kind, "metadata": metadata}
