"""Objects of kinds that nobody judges, with legacy names or driver paths: a cluster in, gaps out.

Where the pod templates of such a kind are is not known, so all of each object is searched.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import orjson

from webhook.cluster import applied, objects
from webhook.cluster.client import Client, Fault, Refused
from webhook.core.legacy_names import AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION
from webhook.evaluation import repair_record
from webhook.evaluation.workloads import makes_pods
from webhook.kube.pod import as_map

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from webhook.cluster.listing import Progress
    from webhook.cluster.objects import Reference
    from webhook.core.settings import Settings

    Raw = dict[str, Any]

# Groups of Kubernetes 1.3-1.36 and of metrics: of their kinds, those with pods are judged.
_WITHOUT_PODS = frozenset(
    [
        "apps",
        "autoscaling",
        "batch",
        "extensions",
        "policy",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "custom.metrics.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "external.metrics.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "metrics.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    ]
)
_CONFIG_MAP = ("", "ConfigMap")
_ANNOTATIONS = (AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION)
_COPIES = {("kueue.x-k8s.io", "Workload")}  # of the templates of Jobs, which make the pods
_NOT_FOUND = 404
_NAMED = 5  # objects in a sentence
# Kinds with words that become those of pods: of a plugin of API servers (PodNodeSelector), of what
# a pod names, and of what changes objects in API servers (KEP-3962, on from 1.36).
_GIVES = (
    ("", "Namespace"),
    ("node.k8s.io", "RuntimeClass"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
)
# As in JSON Patches, and in JSON in a text. It begins at its first backslash, and parts of words
# are of limited length: no text of a tenant is searched again from each of its characters.
_SLASH = rb"(?:~1|(?<!\\)\\*(?:/|u002[fF]))"
# The driver of an old node, whose volumes GPU109 removes. To look for a letter is ten times faster
# than to look for any of the slashes.
_DRIVER = r"usr/lib\w{0,9}/nvidia-[0-9]|var/lib/nvidia-docker/volumes/nvidia_driver"
_STAR = r"[\w.-]{0,63}"
_DOT = rb"\\*\."  # as in parameters of Helm, and in JSON in a text


def unread(
    client: Client, settings: Settings, progress: Progress, own: Raw, spared: Container[str]
) -> Iterator[str]:
    """Who may still make legacy pods, and what cannot be listed; not `own`, the settings.

    Nor what is in a namespace that is `spared`, but for ConfigMaps: others may read them.
    """
    catalogue = objects.Catalogue(client)
    names = words(settings)
    core = (catalogue.find(*each) for each in (_CONFIG_MAP, *_GIVES))
    kinds = [*filter(None, core), *catalogue.others(_WITHOUT_PODS)]
    settings_map = objects.reference({**own, "apiVersion": "v1", "kind": "ConfigMap"})
    for api, why in catalogue.unanswered.items():
        yield f"the kinds of the API {api}, which does not answer: {why}"
    for kind in kinds:
        known = {"apiVersion": kind.api_version, "kind": kind.kind}
        if (kind.group, kind.kind) in _COPIES or makes_pods(known, settings):
            continue
        what = _several(kind.kind) + (f" ({kind.group})" if kind.group else "")
        try:
            held = (e for e in objects.of_kind(client, kind, progress) if _has_one(e, names))
            found = (each for each in map(objects.reference, held) if each != settings_map)
            named = [each for each in found if not _is_spared(each, spared)]
        except Fault as fault:
            if not isinstance(fault, Refused) or fault.status != _NOT_FOUND:
                yield f"whether {what} have legacy names: their list failed: {fault}"
            if fault.away:
                return
            continue
        names_of = ["/".join(filter(None, (each.namespace, each.name))) for each in named]
        if names_of:
            more = f" and {len(names_of) - _NAMED:,} more" if len(names_of) > _NAMED else ""
            yield (
                f"whether pods get the legacy names or driver paths in {what}: "
                f"{', '.join(names_of[:_NAMED])}{more}: migrate them, or delete what is not used"
            )


def _is_spared(named: Reference, spared: Container[str]) -> bool:
    space = named.name if named[:2] == ("", "Namespace") else named.namespace
    return named[:2] != _CONFIG_MAP and space in spared


def words(settings: Settings) -> re.Pattern[bytes]:
    """All that makes a pod need the webhook, however its slashes and dots are escaped."""
    names = {*settings.legacy_resources, settings.models.legacy_label}
    paths = {each.rstrip("/") for each in settings.drivers.remove}
    parts = (map(re.escape, each.split("*")) for each in sorted(names | paths))
    notes = (rf"{re.escape(each)}\b" for each in _ANNOTATIONS)  # not tolerationsWhitelist
    written = "|".join((*map(_STAR.join, parts), *notes, _DRIVER)).encode()
    return re.compile(written.replace(b"/", _SLASH).replace(rb"\.", _DOT))


def _several(kind: str) -> str:
    return re.sub("s$", "se", re.sub("cy$", "cie", kind)) + "s"


def _has_one(obj: Raw, names: re.Pattern[bytes]) -> bool:
    """Whether it has such a word, but for its status and the record of an apply or a repair."""
    written = applied.as_written(obj)
    notes = as_map(as_map(written["metadata"]).get("annotations"))
    rest = {key: value for key, value in notes.items() if key != repair_record.ANNOTATION}
    try:
        text = orjson.dumps({**written, "metadata": {**written["metadata"], "annotations": rest}})
    except orjson.JSONEncodeError:  # more levels than it writes
        return True
    data = as_map(obj.get("binaryData")) if objects.reference(obj)[:2] == _CONFIG_MAP else {}
    decoded = (base64.b64decode(each) for each in data.values())
    return any(names.search(each) for each in (text, *decoded))
