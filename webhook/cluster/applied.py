"""A live object without the defaults of the API server, and the tools that manage it. Pure.

The API server adds defaults and converts versions. `kubectl apply` keeps what it sent in an
annotation; server-side apply keeps it field by field in managedFields (KEP-555).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson

from webhook.cluster.objects import reference
from webhook.core.draft import Draft, copied
from webhook.core.errors import EditError
from webhook.evaluation import repair_record
from webhook.evaluation.evaluate import is_pod
from webhook.evaluation.pod_fields import TOLERATIONS, PodFields, changes
from webhook.evaluation.repair_fields import believed
from webhook.evaluation.workloads import group_of, templates_of
from webhook.kube.managed_fields import LAST_APPLIED, entries, merged
from webhook.kube.pod import as_map
from webhook.kube.pointer import value_at

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from webhook.core.settings import Settings

    Raw = dict[str, Any]

# Fields of the API server, which no manifest has.
_WRITTEN_BY_THE_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "ownerReferences",
)
# Added to the template of a Job (generateSelector of the Job's strategy), also under old names.
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_LONGEST = 400  # characters of a message about names; two names are never longer
_ANONYMOUS_OWNERS = {  # programs that write objects for other users
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-apiserver",
}


def as_applied(obj: Raw, settings: Settings) -> tuple[Raw, bool]:
    """The object as it was applied, and whether the API server knows that.

    If it does not, the live object without generated fields, and with the legacy words that the
    last repair translated. Its manifest may have changed since.
    """
    came = _with_words(obj, settings)
    live = as_written(came)
    sent = _last_applied(obj) or _server_side(came)
    if sent is None or (_has_pods(live, settings) and not _has_pods(sent, settings)):
        return live, False  # only a label was applied, for example
    sent = _without_generated(sent, obj)  # a Job that was exported and applied again has them
    name, namespace = (live["metadata"].get(key) for key in ("name", "namespace"))
    named = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {**sent, "metadata": {**as_map(sent.get("metadata")), **named}}, True


def has_additions(obj: Raw, settings: Settings) -> bool:
    """Whether a repair may have added to its templates what was not applied, or nobody knows."""
    sent, is_known = as_applied(obj, settings)
    for at in templates_of(obj, settings):
        found = changes(PodFields(sent, at).values, PodFields(obj, at).values)
        # The API server writes amounts as it does (1 as "1"); of lists, others may have been there.
        added = {
            key: (before, now)
            for key, (before, now) in found.items()
            if now is not None and (before is None or key == TOLERATIONS)
        }
        if believed(added, settings):
            return True
    return not is_known


def as_sent(obj: Raw) -> Raw:
    """What clients wrote of an object, without what admission changed or added."""
    held = (entry for entry in entries(obj) if not entry.get("subresource"))
    return as_map(_reduced(obj, merged(held)))


def _with_words(obj: Raw, settings: Settings) -> Raw:
    """The object with the legacy words of its record, where their repair is unchanged."""
    noted = repair_record.read(as_map(obj.get("metadata")))
    made = copied(obj) if noted else obj
    for at in templates_of(obj, settings):
        fields = PodFields(made, at)
        changes = believed(noted.get(str(at), {}), settings)
        words = {
            key: before for key, (before, now) in changes.items() if fields.values.get(key) == now
        }
        with suppress(EditError):  # members of other types
            Draft(made).apply(fields.edits_to(words))
    return made


def _has_pods(obj: Raw, settings: Settings) -> bool:
    return any(is_pod(as_map(value_at(obj, at))) for at in templates_of(obj, settings))


def as_written(obj: Raw) -> Raw:
    """The live object without status and other fields that only the API server writes."""
    metadata = as_map(obj.get("metadata"))
    kept = {key: metadata[key] for key in metadata if key not in _WRITTEN_BY_THE_SERVER}
    annotations = as_map(kept.get("annotations"))
    if LAST_APPLIED in annotations:
        kept = _with(kept, "annotations", _without(annotations, (LAST_APPLIED,)))
    rest = {key: value for key, value in obj.items() if key != "status"} | {"metadata": kept}
    return _without_generated(rest, obj)


def _without_generated(obj: Raw, live: Raw) -> Raw:
    """A Job without the selector and the labels that the API server generated for it."""
    spec = as_map(obj.get("spec"))
    if live.get("kind") != "Job" or group_of(live) != "batch" or spec.get("manualSelector") is True:
        return obj
    metadata, template = as_map(live.get("metadata")), as_map(spec.get("template"))
    of_pods = as_map(template.get("metadata"))
    labels = as_map(of_pods.get("labels"))
    own = dict.fromkeys(_UID_LABELS, metadata.get("uid"))
    own |= dict.fromkeys(_NAME_LABELS, metadata.get("name"))
    made = [name for name, value in own.items() if value and labels.get(name) == value]
    if made:
        of_pods = _with(of_pods, "labels", _without(labels, made))
        spec = {**spec, "template": _with(template, "metadata", of_pods)}
    return _with(obj, "spec", _without(spec, ("selector",)))


def _with(holder: Raw, member: str, value: Raw) -> Raw:
    """A copy with this member; without it if the value is empty."""
    return {**holder, member: value} if value else _without(holder, (member,))


def _without(holder: Raw, members: Container[str]) -> Raw:
    return {key: value for key, value in holder.items() if key not in members}


def _last_applied(obj: Raw) -> Raw | None:
    annotations = as_map(as_map(obj.get("metadata")).get("annotations"))
    try:
        sent = orjson.loads(str(annotations.get(LAST_APPLIED, "")))
    except orjson.JSONDecodeError:
        return None
    # Another kind or name: the annotation was copied from another object.
    same = as_map(sent).get("kind") == obj.get("kind")
    return sent if isinstance(sent, dict) and same else None


def _server_side(obj: Raw) -> Raw | None:
    """The fields of the object that all server-side appliers own."""
    held = [
        entry
        for entry in entries(obj)
        if entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    if not held:
        return None
    kept: Raw = {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    reduced = _reduced(obj, merged(held))
    return {**kept, **reduced} if isinstance(reduced, dict) else None


def _reduced(value: Any, fields: Raw) -> Any:
    """The parts of the value that the fields name: `f:member`, `k:{keys of an item}`, `v:item`."""
    members = {key[2:]: below for key, below in fields.items() if key.startswith("f:")}
    if isinstance(value, dict) and (members or "." in fields):
        return {key: _reduced(value[key], members[key]) for key in value if key in members}
    if isinstance(value, list):
        held = _held(fields)
        items = [(item, _item(item, held)) for item in value]
        return [_reduced(item, below) for item, below in items if below is not None] or value
    return value


_MOST_KEYS = 4  # lists have one set of keys; forged managedFields may have any number
_Held = dict[tuple[str, ...], dict[bytes, "Raw"]]  # by names of keys, and by their values


def _held(fields: Raw) -> _Held:
    """The owned items of a list; whole values are under no keys."""
    held: _Held = {}
    for key, below in fields.items():
        sort, _, text = key.partition(":")
        try:
            wanted = orjson.loads(text) if sort in {"k", "v"} else None
        except orjson.JSONDecodeError:
            continue
        if sort == "v":
            held.setdefault((), {})[_text(wanted)] = {}
        elif sort == "k" and isinstance(wanted, dict) and wanted:
            names = tuple(sorted(wanted))
            if names in held or len(held) < _MOST_KEYS:
                values = _text([wanted[name] for name in names])
                held.setdefault(names, {})[values] = as_map(below)
    return held


def _item(item: Any, held: _Held) -> Raw | None:
    """The owned parts of this list item; None if there are none."""
    for names, known in held.items():
        values = [as_map(item).get(name) for name in names] if names else item
        found = known.get(_text(values))
        if found is not None:
            return found
    return None


def _text(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def keepers(obj: Raw) -> list[str]:
    """The tools that keep the object as it is: changes must be made there, or they are reverted."""
    metadata = as_map(obj.get("metadata"))
    labels, annotations = as_map(metadata.get("labels")), as_map(metadata.get("annotations"))
    managers = {str(entry.get("manager")) for entry in entries(obj)}
    found = [*_argo(labels, annotations, managers), *_flux(labels), *_helm(labels, annotations)]
    return [each if len(each) <= _LONGEST else f"{each[:_LONGEST]}..." for each in found]


def _argo(labels: Raw, annotations: Raw, managers: set[str]) -> Iterator[str]:
    tracked = str(annotations.get("argocd.argoproj.io/tracking-id", "")).partition(":")[0]
    named = tracked or str(labels.get("argocd.argoproj.io/instance", ""))
    if not named and "argocd-controller" in managers:
        named = str(labels.get("app.kubernetes.io/instance", ""))
    if named:
        yield f"Argo CD application {named}"


def _flux(labels: Raw) -> Iterator[str]:
    for group, kind in (
        ("kustomize.toolkit.fluxcd.io", "Kustomization"),
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
    ):
        name, namespace = labels.get(f"{group}/name"), labels.get(f"{group}/namespace")
        if name:
            yield f"Flux {kind} {namespace}/{name}" if namespace else f"Flux {kind} {name}"


def _helm(labels: Raw, annotations: Raw) -> Iterator[str]:
    release = annotations.get("meta.helm.sh/release-name")
    chart = labels.get("helm.sh/chart") or (labels.get("chart") if labels.get("heritage") else None)
    # Helm 2 wrote labels only: heritage Tiller, release and chart.
    release = release or (labels.get("release") if labels.get("heritage") == "Tiller" else None)
    if release:
        namespace = annotations.get("meta.helm.sh/release-namespace")
        where = f" in {namespace}" if namespace else ""
        of_chart = f" (chart {chart})" if chart else ""
        yield f"Helm release {release}{where}{of_chart}"
    elif chart and labels.get("app.kubernetes.io/managed-by") == "Helm":
        yield f"Helm chart {chart}"


def writers(obj: Raw) -> list[str]:
    """The programs of users that wrote the object, the last one first, such as `kubectl-edit`."""
    found = sorted(
        (str(entry.get("time", "")), str(entry.get("manager")))
        for entry in entries(obj)
        if not entry.get("subresource") and str(entry.get("manager")) not in _ANONYMOUS_OWNERS
    )
    return list(dict.fromkeys(manager[:_LONGEST] for _, manager in reversed(found)))


def owner_of(top: Raw, obj: Raw) -> str:
    """What a user must change: the file or tool of the object, or its last writer."""
    named = reference(top)
    if named.kind == "Node":
        return f"the file of this static pod on the node {named.name}"
    kept = keepers(top) or keepers(obj)
    if kept:
        return ", ".join(kept)
    by = writers(top)
    written = f" (last written by {by[0]})" if by else ""
    return f"{named}{written}"
