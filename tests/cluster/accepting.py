"""What the real API server and the real scheduler say of any object that is in a file."""

from __future__ import annotations

import copy
import http.client
from typing import TYPE_CHECKING, Any

from tests.cluster import nodes
from tests.cluster.client import until
from tests.cluster.scheduling import node_of
from webhook.capacity.requests import gpu_requests
from webhook.core.settings import Settings
from webhook.kube.api_versions import OTHERS
from webhook.kube.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.cluster.client import Answer, Json
    from tests.cluster.controlplane import ControlPlane

# An exported object carries what only the server sets; nobody can create it with them.
_OF_THE_SERVER = ("resourceVersion", "uid", "selfLink", "creationTimestamp", "generation")
_STRICT = {"dryRun": "All", "fieldValidation": "Strict"}


class Unknown(Exception):  # noqa: N818 - what happened
    """The server serves no such kind."""


class Cluster:
    """A control plane that has whatever an object takes from its cluster and not from its file."""

    def __init__(self, running: ControlPlane) -> None:
        self.running = running
        self.client = running.client
        self._kinds = dict(self._served())
        self._namespaces = {each["metadata"]["name"] for each in self.client.list("Namespace")}
        self._placed = 0
        self._classes: list[tuple[str, str]] = []

    def close(self) -> None:
        """Delete the classes that pods named: other tests see all of the cluster."""
        for kind, name in self._classes:
            self.client.delete(kind, name)

    def _served(self) -> Iterator[tuple[tuple[str, str], tuple[str, bool]]]:
        groups = self.client.demand("GET", "apis").body["groups"]
        versions = [each["groupVersion"] for group in groups for each in group["versions"]]
        for version in ["v1", *versions]:
            at = "api/v1" if version == "v1" else f"apis/{version}"
            for each in self.client.demand("GET", at).body["resources"]:
                if "/" not in each["name"]:
                    yield (version, each["kind"]), (f"{at}|{each['name']}", each["namespaced"])

    def is_foreign(self, obj: Json) -> bool:
        """Whether its group is some add-on's, which a cluster has or has not."""
        group = str(obj.get("apiVersion")).rpartition("/")[0]
        served = {version.rpartition("/")[0] for version, _ in self._kinds}
        gone = {version.rpartition("/")[0] for version, _ in OTHERS}
        return "." in group and group not in served | gone

    def serves(self, obj: Json) -> bool:
        return (str(obj.get("apiVersion")), str(obj.get("kind"))) in self._kinds

    def refusal(self, obj: Json) -> str:
        """Why the server does not take the object; empty if it does."""
        obj = self._as_in_this_cluster(obj)
        key = (str(obj.get("apiVersion")), str(obj.get("kind")))
        if key not in self._kinds:
            return f"no matches for kind {key[1]} in version {key[0]}"
        (at, plural), namespaced = self._kinds[key][0].split("|"), self._kinds[key][1]
        path = f"{at}/{plural}"
        if namespaced:
            namespace = self._namespace(obj)
            path = f"{at}/namespaces/{namespace}/{plural}"
            if key == ("v1", "Pod"):
                self._surround(obj, namespace)
        answer = self._asked(path, obj)
        if answer.ok or answer.status == http.client.CONFLICT:  # it was valid, and is there
            return ""
        return answer.message

    def _asked(self, path: str, obj: Json) -> Answer:
        """Ask; once more if the server has closed the idle connection. A dry run may be twice."""
        try:
            return self.client.request("POST", path, obj, query=_STRICT)
        except (http.client.HTTPException, OSError):
            self.client.close()
            return self.client.request("POST", path, obj, query=_STRICT)

    def _namespace(self, obj: Json) -> str:
        name = str((obj.get("metadata") or {}).get("namespace") or "default")
        if name not in self._namespaces:
            self.running.make_namespace(name)
            self._namespaces.add(name)
        return name

    def _surround(self, pod: Json, namespace: str) -> None:
        """Make what a pod names and another object is."""
        spec = pod.get("spec") or {}
        account = spec.get("serviceAccountName") or spec.get("serviceAccount")
        if account:
            made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}
            self.client.try_create(made, namespace)
        priority = spec.get("priorityClassName")
        if priority:
            self._priority_class(priority, namespace)
        runtime = spec.get("runtimeClassName")
        if runtime:
            self._make("RuntimeClass", "node.k8s.io/v1", runtime, {"handler": runtime})

    def _priority_class(self, name: str, namespace: str) -> None:
        """Make it, and wait until it is known: admission of pods looks in a cache only."""
        if not self._make("PriorityClass", "scheduling.k8s.io/v1", name, {"value": 1}):
            return
        spec = {"priorityClassName": name, "containers": [{"name": "c", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
        path = f"api/v1/namespaces/{namespace}/pods"
        until(lambda: self._asked(path, pod).ok, f"PriorityClass {name} is known")

    def _make(self, kind: str, version: str, name: str, more: Json) -> bool:
        """Whether it is new; not if it is there already, or has no valid name."""
        made = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}
        is_new = self.client.try_create(made).ok
        if is_new:
            self._classes.append((kind, name))
        return is_new

    def _as_in_this_cluster(self, obj: Json) -> Json:
        obj = copy.deepcopy(obj)
        metadata = obj.get("metadata")
        if isinstance(metadata, dict):
            for name in _OF_THE_SERVER:
                metadata.pop(name, None)
        spec = obj.get("spec")
        if obj.get("kind") == "Service" and isinstance(spec, dict):
            # An address of the cluster that it was written for.
            spec = {k: v for k, v in spec.items() if k != "clusterIP" or v == "None"}
            obj["spec"] = spec
        return obj

    def unplaced(self, pod: Json) -> str:
        """Why the scheduler finds no place for the pod on a node that has what it requests."""
        pod = copy.deepcopy(pod)
        self._placed += 1
        namespace, name = self._namespace(pod), f"judged-{self._placed}"
        pod["metadata"]["name"] = name
        for each in pod["spec"].get("volumes") or []:
            if each.pop("persistentVolumeClaim", None):  # a claim that some other file makes
                each["emptyDir"] = {}
        pod["spec"].pop("schedulerName", None)  # a scheduler that is not here would never answer
        pod["metadata"].pop("generateName", None)
        self._surround(pod, namespace)
        asked = gpu_requests(Pod(pod), Settings())
        labels = _labels(pod["spec"])
        node = nodes.gpu_node(labels.pop("metadata.name", f"{name}-node"), 0, labels=labels)
        amounts = {"cpu": "1k", "memory": "1Ti", "pods": "9", **dict.fromkeys(_extended(pod), "99")}
        amounts |= {name: str(amount) for name, amount in asked.items()}  # of GPUs no more
        node["status"] |= {"capacity": amounts, "allocatable": amounts}
        nodes.add(self.client, [node])
        try:
            answer = self.client.try_create(pod, namespace)
            if not answer.ok:
                return answer.message
            try:
                node_of(self.client, namespace, name, 10.0)
            except AssertionError as error:
                return str(error)
            return ""
        finally:
            self.client.delete("Pod", name, namespace)
            self.client.delete("Node", node["metadata"]["name"])


def _extended(pod: Json) -> Iterator[str]:
    """The devices of other makers that the pod requests, too."""
    for container in pod["spec"]["containers"]:
        yield from (
            name for name in (container.get("resources") or {}).get("limits") or {} if "/" in name
        )


def _labels(spec: Mapping[str, Any]) -> dict[str, str]:
    """The labels that the pod asks of its node."""
    labels = {str(k): str(v) for k, v in (spec.get("nodeSelector") or {}).items()}
    here: Any = spec.get("affinity")
    for name in ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
        here = (here or {}).get(name)
    for term in ((here or {}).get("nodeSelectorTerms") or [])[:1]:
        for each in [*(term.get("matchExpressions") or []), *(term.get("matchFields") or [])]:
            if each["operator"] in {"In", "Exists"}:
                labels[each["key"]] = (each.get("values") or ["given"])[0]
    return labels


def pods_of(obj: Json, places: list[Any]) -> Iterator[Json]:
    """The pods that the templates at these places make."""
    for at in places:
        here: Any = obj
        for token in at:
            here = here[token]
        template = copy.deepcopy(here)
        metadata = template.get("metadata") or {}
        kept = {k: metadata[k] for k in ("labels", "annotations") if metadata.get(k)}
        namespace = (obj.get("metadata") or {}).get("namespace")
        if namespace:
            kept["namespace"] = namespace
        pod: Json = {"apiVersion": "v1", "kind": "Pod", "spec": template.get("spec") or {}}
        claims = (obj.get("spec") or {}).get("volumeClaimTemplates") or []
        if claims:  # its controller would have made them
            volumes = [{"name": each["metadata"]["name"], "emptyDir": {}} for each in claims]
            pod["spec"] = {
                **pod["spec"],
                "volumes": [*(pod["spec"].get("volumes") or []), *volumes],
            }
        yield {**pod, "metadata": {"generateName": "judged-", **kept}}


def pods_with_resources_of(obj: Any) -> Iterator[Json]:
    """A pod for each block of amounts in an object of which nobody knows how pods come of it."""
    if isinstance(obj, dict):
        resources = obj.get("resources")
        if isinstance(resources, dict) and resources.keys() & {"limits", "requests"}:
            container = {"name": "judged", "image": "registry.example/a:1", "resources": resources}
            metadata = {"generateName": "judged-"}
            spec = {"containers": [container]}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        for value in obj.values():
            yield from pods_with_resources_of(value)
    elif isinstance(obj, list):
        for value in obj:
            yield from pods_with_resources_of(value)
