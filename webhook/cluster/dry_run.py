"""What the API server would store of an object: an object in, the stored one out.

Nothing is stored (a dry run). A webhook of ours that is installed leaves the pods alone, since they
carry the opt-out label on the way; others run as they would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cluster import answers
from webhook.cluster.client import Client, Fault, Refused
from webhook.cluster.objects import Catalogue
from webhook.core.draft import copied
from webhook.core.modes import IGNORE
from webhook.evaluation.workloads import group_of, templates_of
from webhook.kube.pod import as_map
from webhook.kube.pointer import value_at

if TYPE_CHECKING:
    from webhook.core.settings import Settings

    Raw = dict[str, Any]

_EXISTS = 409
_GENERATED = "gpu-webhook-"
_TOKEN = "automountServiceAccountToken"  # noqa: S105  # a field: its volume has a random name
# Each Job gets others: its selector, and these labels of its template.
_OF_A_JOB = (
    *("controller-uid", "job-name"),
    *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"),
)
# The API server chooses them at random.
_OF_A_SERVICE = ("clusterIP", "clusterIPs", "healthCheckNodePort")


class DryRun:
    """Creates objects in one cluster, as dry runs; those without a namespace in this one."""

    def __init__(self, client: Client, namespace: str, settings: Settings) -> None:
        self._client, self._namespace, self._settings = client, namespace, settings
        self._catalogue = Catalogue(client)

    def stored(self, obj: Raw) -> Raw:
        """The object with all defaults. Fault with the words of the API server if it refuses it."""
        version = str(obj.get("apiVersion") or "")
        served = self._catalogue.find(group_of(obj), str(obj.get("kind")))
        if served is None:
            raise Fault(f"it serves no {obj.get('kind')} of {version}")
        sent, metadata = copied(obj), as_map(obj.get("metadata"))
        pods = [(at, as_map(value_at(sent, at))) for at in templates_of(sent, self._settings)]
        marked = [at for at, pod in pods if _mark(pod)]
        served = served._replace(version=version.rpartition("/")[2])
        path = served.path(str(metadata.get("namespace") or self._namespace))
        try:
            text, _ = self._client.dry_run(path, sent)
        except Refused as refused:
            if refused.status != _EXISTS:
                raise
            # A dry run cannot replace what is there: the same object under another name can be.
            sent["metadata"].pop("name", None)
            sent["metadata"]["generateName"] = _GENERATED
            text, _ = self._client.dry_run(path, sent)
        made = as_map(answers.read(text))
        for at in marked:
            _unmark(as_map(value_at(made, at)))
        _without_random(made, obj)
        made["metadata"] = {
            **as_map(made.get("metadata")),
            **{each: metadata.get(each) for each in ("name", "generateName", "namespace")},
        }
        return made


def _mark(pod: Raw) -> bool:
    """Add the opt-out label, and leave out the token; returns whether that is to be undone."""
    spec = pod.get("spec")
    if not isinstance(spec, dict) or _TOKEN in spec:
        return False
    spec[_TOKEN] = False
    metadata = pod["metadata"] = {**as_map(pod.get("metadata"))}
    metadata["labels"] = {IGNORE: "true", **as_map(metadata.get("labels"))}
    return True


def _unmark(pod: Raw) -> None:
    as_map(pod.get("spec")).pop(_TOKEN, None)
    as_map(as_map(pod.get("metadata")).get("labels")).pop(IGNORE, None)


def _without_random(made: Raw, sent: Raw) -> None:
    """Remove what the API server chose anew for this dry run."""
    spec, before = as_map(made.get("spec")), as_map(sent.get("spec"))
    match made.get("kind"):
        case "Job" if before.get("manualSelector") is not True:
            spec.pop("selector", None)
            template = as_map(as_map(spec.get("template")).get("metadata"))
            for holder in (template, as_map(made.get("metadata"))):
                for name in _OF_A_JOB:
                    as_map(holder.get("labels")).pop(name, None)
        case "Service":
            for name in _OF_A_SERVICE:
                if name not in before:
                    spec.pop(name, None)
            for port in spec.get("ports") or ():
                as_map(port).pop("nodePort", None)
        case _:
            pass
