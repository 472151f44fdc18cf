"""The objects of a cluster in, their names out: so a test can say that nothing was left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cluster.controlplane import ControlPlane

# What comes and goes by itself: it says nothing of an installation.
_PASSING = {"events", "events.events.k8s.io", "componentstatuses", "leases.coordination.k8s.io"}
_KEPT_LEASES = "gpu-webhook"


def everything(cluster: ControlPlane) -> set[str]:
    """The kind, namespace and name of each object that can be listed; Leases only of ours."""
    kinds = set(cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split())
    form = r"{range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{'\n'}{end}"
    wanted = ",".join(sorted(kinds - _PASSING))
    found = cluster.kubectl("get", wanted, "--all-namespaces", "-o", f"jsonpath={form}")
    leases = cluster.kubectl("get", "leases", "--all-namespaces", "-o", f"jsonpath={form}")
    return {*found.split()} | {each for each in leases.split() if _KEPT_LEASES in each}


def without_namespace(cluster: ControlPlane) -> set[str]:
    """The kind and name of each object that has no namespace, without the namespaces."""
    said = cluster.kubectl("api-resources", "--verbs=list,delete", "--namespaced=false", "-o=name")
    wanted = ",".join(sorted(set(said.split()) - {"namespaces"}))
    return {*cluster.kubectl("get", wanted, "-o", "name").split()}
