"""The rights that the watcher uses: settings in, what it asks the API server for out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.inventory.kinds import kinds
from webhook.inventory.store import Store
from webhook.issuing.objects import CONFIGURATIONS, SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.settings import Settings


class Right(NamedTuple):
    """One verb on a resource; with a name, on this object only."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        """As in `kubectl auth can-i`."""
        return f"{self.verb} {self.resource}" + (f"/{self.name}" if self.name else "")

    def review(self, account: str, namespace: str) -> dict[str, Any]:
        """The question whether a ServiceAccount has it."""
        attributes = {
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "name": self.name,
            "namespace": self.namespace,
        }
        accounts = "system:serviceaccounts"
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{namespace}:{account}",
                "groups": [accounts, f"{accounts}:{namespace}", "system:authenticated"],
                "resourceAttributes": attributes,
            },
        }


def of_inventory(settings: Settings) -> Iterator[Right]:
    """Those for the snapshot, and for Events."""
    for kind in kinds(Store(), settings):
        where, _, resource = kind.paths[0].rpartition("/")
        where, _, namespace = where.partition("/namespaces/")
        group = where.split("/")[2] if where.startswith("/apis/") else ""
        name = kind.query.get("fieldSelector", "").removeprefix("metadata.name=")
        for verb in ("list", "watch"):
            yield Right(verb, group, resource, name, namespace)
    if settings.messages.events:
        yield Right("create", "", "events")


def of_certificates(namespace: str) -> Iterator[Right]:
    """Those for certificates of its own."""
    for each in CONFIGURATIONS:
        kind, _, name = each.partition("/")
        for verb in ("get", "patch"):
            yield Right(verb, "admissionregistration.k8s.io", f"{kind}webhookconfigurations", name)
    for group, resource in (("", "secrets"), ("coordination.k8s.io", "leases")):
        for verb in ("get", "update"):
            yield Right(verb, group, resource, SECRET, namespace)
        yield Right("create", group, resource, "", namespace)
