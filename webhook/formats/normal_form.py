"""The normal form of an object: equal for two objects if the API server makes the same of both.

It has the defaults of the fields that a repair writes, and no others: `verify --server` lets the
API server write all of them. What the API server refuses stays as it is, so that an object with it
is equal to none without it. docs/migrate.md lists what is equal here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.core.repaired_annotation import REPAIRED
from webhook.evaluation import repair_record
from webhook.evaluation.workloads import group_of, templates_of
from webhook.kube import quantity
from webhook.kube.api_versions import OTHERS, WORKLOADS
from webhook.kube.canonical import canonical
from webhook.kube.labels import is_key, is_value
from webhook.kube.pod import PREFERRED, SECTIONS, as_items, as_map
from webhook.kube.pointer import value_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.core.settings import Settings

    Raw = dict[str, Any]

# What the API server writes into each object that it stores; no manifest means anything by it.
_OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
_OUR_NOTES = (REPAIRED, repair_record.ANNOTATION)
# Maps whose null values are empty texts, since they are maps of texts in Go.
_OF_TEXTS = ("labels", "annotations", "nodeSelector", "matchLabels")
# Without a selector nothing is selected, with an empty one everything is.
_SELECTORS = {"selector", "labelSelector", "namespaceSelector", "objectSelector", "podSelector"}
# Empty maps that say nothing; others choose something (`emptyDir`) or switch it on (`status`).
_EMPTY = {
    *("affinity", "annotations", "binaryData", "capabilities", "data", "labels", "lifecycle"),
    *("limits", "matchLabels", "metadata", "nodeAffinity", "nodeSelector", "overhead"),
    *("podAffinity", "podAntiAffinity", "requests", "resources", "rollingUpdate"),
    *("securityContext", "strategy", "stringData", "updateStrategy"),
}
# In the schema of a custom resource any name may be that of a field.
_BUILT_IN = {"", "apps", "batch"} | {
    version.rpartition("/")[0]
    for table in (WORKLOADS, OTHERS)
    for key, successor in table.items()
    for version in (key[0], successor.api_version)
} - {"apiextensions.k8s.io"}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NANO, _MILLI = 10**9, 10**6
_QUARTER = {"maxSurge": "25%", "maxUnavailable": "25%"}
# SetDefaults_Deployment, _DaemonSet and _StatefulSet of apps/v1: the field, and its members.
_STRATEGIES: dict[str, tuple[str, Raw]] = {
    "Deployment": ("strategy", _QUARTER),
    "DaemonSet": ("updateStrategy", {"maxSurge": 0, "maxUnavailable": 1}),
    "StatefulSet": ("updateStrategy", {"partition": 0}),
}
_NUMBERS: dict[str, Raw] = {
    "Deployment": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "DaemonSet": {"revisionHistoryLimit": 10},
    "StatefulSet": {"replicas": 1, "revisionHistoryLimit": 10},
}
_ROLLING = "RollingUpdate"
_OF_TOLERATIONS = {"key", "operator", "value", "effect"}  # texts, of which an empty one is none
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def normal_form(obj: Raw, settings: Settings) -> Raw:
    """The object as it is compared; the object itself is not changed."""
    made = copied(obj)
    made.pop("status", None)
    templates = templates_of(made, settings)
    for at in templates:
        _pod(value_at(made, at), settings)
    metadata = as_map(made.get("metadata"))
    for name in _OF_THE_SERVER:
        metadata.pop(name, None)
    _without_notes(made)
    if made.get("apiVersion") == "apps/v1":
        _defaults(str(made.get("kind")), made)
    is_built_in = group_of(made) in _BUILT_IN
    whole: Raw = _said(made, is_built_in=is_built_in)
    for at in () if is_built_in else templates:
        value_at(whole, at.parent)[at[-1]] = _said(value_at(made, at), is_built_in=True)
    return whole


def _without_notes(holder: Raw) -> None:
    for name in ("annotations", "labels"):
        given = as_map(as_map(holder.get("metadata")).get(name))
        for note in _OUR_NOTES:
            given.pop(note, None)


def _defaults(kind: str, obj: Raw) -> None:
    """Write the defaults of apps/v1 for the fields that older versions had other defaults for."""
    if not _is_map(obj.get("spec")):
        return
    spec = obj["spec"] = {**as_map(obj.get("spec"))}
    for name, default in _NUMBERS.get(kind, {}).items():
        if spec.get(name) is None:
            spec[name] = default
    name, members = _STRATEGIES.get(kind, ("", {}))
    if name and _is_map(spec.get(name)):
        strategy = spec[name] = {"type": _ROLLING, **_set(as_map(spec.get(name)))}
        given = strategy.get("rollingUpdate")
        if strategy["type"] == _ROLLING and _is_map(given):
            strategy["rollingUpdate"] = {**members, **_set(as_map(given))}


def _is_map(value: Any) -> bool:
    """Whether it is a map, or none is given."""
    return value is None or isinstance(value, dict)


def _set(given: Raw) -> Raw:
    return {name: value for name, value in given.items() if value is not None}


def _said(data: Any, *, is_built_in: bool) -> Any:
    """The data without null; of built-in kinds, without empty lists and maps that say nothing."""
    if isinstance(data, list):
        return [_said(each, is_built_in=is_built_in) for each in data]
    if not isinstance(data, dict):
        return data
    found: Raw = {}
    for name, value in data.items():
        if name in _OF_TEXTS and isinstance(value, dict):
            made: Any = {key: "" if each is None else each for key, each in value.items()}
        else:
            made = _said(value, is_built_in=is_built_in)
        is_empty = made == ({} if name in _EMPTY else [])
        if made is not None and not (is_built_in and is_empty and name not in _SELECTORS):
            found[name] = made
    return found


def _pod(pod: Raw, settings: Settings) -> None:
    """Write a pod or a template in its normal form, in place."""
    as_map(pod.get("metadata")).pop("creationTimestamp", None)
    _without_notes(pod)
    spec = as_map(pod.get("spec"))
    for kind in _CONTAINERS:
        for _, container in as_items(spec.get(kind)):
            _container(container, settings)
    if isinstance(spec.get("tolerations"), list):
        spec["tolerations"] = _tolerations(spec["tolerations"])
    if isinstance(spec.get("volumes"), list):
        for _, volume in as_items(spec["volumes"]):
            _without_texts(as_map(volume.get("hostPath")), "type")
            if all(volume[name] is None for name in volume if name != "name"):
                volume["emptyDir"] = {}  # SetDefaults_Volume
        spec["volumes"] = sorted(spec["volumes"], key=canonical)
    _node_affinity(as_map(as_map(spec.get("affinity")).get("nodeAffinity")), settings)


def _container(container: Raw, settings: Settings) -> None:
    _resources(container, settings)
    if isinstance(container.get("volumeMounts"), list):
        container["volumeMounts"] = sorted(container["volumeMounts"], key=canonical)
    for _, variable in as_items(container.get("env")):
        _without_texts(variable, "value")


def _resources(container: Raw, settings: Settings) -> None:
    given = container.get("resources")
    sections = [as_map(given).get(each) for each in SECTIONS]
    if not all(map(_is_map, (given, *sections))):
        return
    resources = container["resources"] = {**as_map(container.get("resources"))}
    amounts = {
        section: {name: _amount(each) for name, each in as_map(resources.get(section)).items()}
        for section in SECTIONS
    }
    limits = amounts["limits"]
    for section, given in amounts.items():
        resources[section] = {
            name: amount
            for name, amount in given.items()
            if not (amount == "0" and settings.names_gpus(name))
            # SetDefaults_Pod: a limit is also the request, if there is none.
            and not (section == "requests" and amount == limits.get(name))
        }


def _amount(amount: Any) -> Any:
    """The quantity in one way for each number: 1000m is 1, and 1Gi is 1024Mi."""
    value = quantity.parse(0 if amount is None else amount)  # Go reads null as 0 here
    if value is None:
        return amount
    for factor, unit in ((1, ""), (_NANO // _MILLI, "m")):
        if (value * factor).denominator == 1:
            return f"{value * factor}{unit}"
    return f"{Fraction(value * _NANO)}n"


def _tolerations(given: list[Any]) -> list[Any]:
    """Each of them once, without those that another one covers."""
    every = _sorted(map(_toleration, given))
    return [e for e in every if not any(_covers(other, e) for other in every if other != e)]


def _covers(one: Any, other: Any) -> bool:
    """Whether a pod with one toleration of all values tolerates nothing more with the other."""
    one = as_map(one)
    if one.get("operator") != "Exists" or not _is_accepted(other):
        return False
    said = {name: value for name, value in one.items() if name != "operator"}
    return said.keys() <= {"key", "effect"} and said.items() <= other.items()


def _is_accepted(toleration: Any) -> bool:
    """Whether the API server accepts a toleration, which is one for ever (ValidateTolerations)."""
    if not isinstance(toleration, dict) or not toleration.keys() <= _OF_TOLERATIONS:
        return False
    key, value = toleration.get("key"), toleration.get("value")
    is_of_all = toleration.get("operator") == "Exists"
    return (
        (is_key(key) if "key" in toleration else is_of_all)
        and ("value" not in toleration or (is_value(value) and not is_of_all))
        and (is_of_all or "operator" not in toleration)
        and ("effect" not in toleration or toleration["effect"] in _EFFECTS)
    )


def _toleration(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    made = {
        name: value
        for name, value in given.items()
        if value is not None and not (value == "" and name in _OF_TOLERATIONS)
    }
    if made.get("operator") == "Equal":  # the default
        del made["operator"]
    return made


def _without_texts(holder: Raw, name: str) -> None:
    if holder.get(name) == "":
        del holder[name]


def _node_affinity(affinity: Raw, settings: Settings) -> None:
    """Terms and requirements in any order, and each of them once."""
    required = as_map(affinity.get(_REQUIRED))
    terms = required.get("nodeSelectorTerms")
    preferred = affinity.get(PREFERRED)
    listed = [each for _, each in as_items(terms)]
    listed += [as_map(each.get("preference")) for _, each in as_items(preferred)]
    for term in listed:
        for name in ("matchExpressions", "matchFields"):
            if isinstance(term.get(name), list):
                term[name] = _requirements(term[name], settings)
    if isinstance(terms, list):
        required["nodeSelectorTerms"] = _sorted(terms)
    if isinstance(preferred, list):
        affinity[PREFERRED] = sorted(preferred, key=canonical)  # the weights of two add up


def _requirements(given: list[Any], settings: Settings) -> list[Any]:
    """Requirements on nodes, without models that are excluded by the legacy label as well.

    The webhook writes both labels, since an old node may still join; a file is for current nodes
    (docs/rules/GPU105.md).
    """
    old, current = settings.models.legacy_label, settings.models.key
    excluded = [e.get("operator") for _, e in as_items(given) if e.get("key") == current]
    kept = []
    for each in given:
        way, values = as_map(each).get("operator"), as_map(each).get("values")
        some = values if isinstance(values, list) else []
        is_excluding = (way == "NotIn" and some) or (way == "DoesNotExist" and not values)
        if is_excluding and as_map(each).get("key") == old and way in excluded:
            continue
        if some and way in ("In", "NotIn"):  # others have one value, or none
            kept.append({**each, "values": _sorted(some)})
        else:
            kept.append(each)
    return _sorted(kept)


def _sorted(values: Iterable[Any]) -> list[Any]:
    """The different values, in the order of their JSON."""
    found = {canonical(each): each for each in values}
    return [found[text] for text in sorted(found)]
