"""Whether text is still to be inserted into what decides about the nodes and limits of a pod.

A placeholder, as in `$(POOL)`, `<pool>` or `__POOL__`, is seen by the syntax of its field: it is
what the API server rejects there. A word that is a legal value, such as `TODO`, counts as one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.core.legacy_names import AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION
from webhook.evaluation.evaluate import is_pod
from webhook.kube import quantity
from webhook.kube.labels import is_key, is_subdomain, is_value
from webhook.kube.pod import KINDS, SECTIONS, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Callable


# Why nothing else may select its nodes: both together may fit none.
OF_SELECTION = "text that selects the nodes of this pod is inserted later"


def is_unfinished(data: Any) -> bool:
    """Whether a field that decides about nodes or limits has a text that is illegal there.

    Only in its own place: a label, or a member of a ConfigMap, may have the same name.
    """
    namespace = as_map(as_map(data).get("metadata")).get("namespace")
    return not _is_name(namespace) or bool(_are_pods_unfinished(data))


def _are_pods_unfinished(here: Any) -> bool | None:
    """Whether one of the pods is, or the number of its copies; None if there is no pod."""
    if isinstance(here, dict) and is_pod(here):
        return _is_pod_unfinished(here)
    found = None
    below = here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
    for each in below:
        if isinstance(each, dict | list):
            told = _are_pods_unfinished(each)
            found = told if not found and told is not None else found
    if found is False and isinstance(here, dict):
        return not all(_is_number(here.get(each)) for each in _COUNTS)
    return found


def _is_pod_unfinished(pod: dict[str, Any]) -> bool:
    spec, annotations = pod["spec"], as_map(as_map(pod.get("metadata")).get("annotations"))
    fields = {**spec, **as_map(spec.get("affinity"))}
    containers = [each for kind in KINDS for _, each in as_items(spec.get(kind))]
    return (
        is_selection_unfinished(spec)
        or any(not takes(fields[name]) for name, takes in _TAKES.items() if name in fields)
        or not all(_is_annotation(annotations.get(each)) for each in _ANNOTATIONS)
        or not all(_are_resources(each.get("resources")) for each in containers)
    )


def is_selection_unfinished(spec: dict[str, Any]) -> bool:
    """Whether text stands for a whole field that selects the nodes of a pod with this spec."""
    whole = [spec.get(each) for each in ("nodeSelector", "affinity", "tolerations")]
    whole.append(as_map(spec.get("affinity")).get("nodeAffinity"))
    return any(map(_is_text, whole)) or not _is_name(spec.get("nodeName"))


def _is_text(value: Any) -> bool:
    """Whether text is inserted for a whole field: also `[[ x ]]`, which YAML reads as lists."""
    return isinstance(value, str) or (
        isinstance(value, list) and any(isinstance(each, list) for each in value)
    )


def _are_legal(value: Any, is_legal: Callable[[str], bool]) -> bool:
    """Whether all texts in a value, and all names of members, are legal."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            waiting += (*here, *here.values())
        elif isinstance(here, list):
            waiting += here
        elif isinstance(here, str) and not is_legal(here):
            return False
    return True


def _is_label_value(text: str) -> bool:
    """Whether it may be a label value; names of models were written with blanks in 2017."""
    return is_value(text.replace(" ", "-"))


def _is_key_or_value(text: str) -> bool:
    """Gt and Lt take any whole number."""
    return is_key(text) or _is_label_value(text) or _NUMBER.fullmatch(text) is not None


def _are_requirements(value: Any) -> bool:
    """Whether it may be node affinity or tolerations: operators and effects are legal values."""
    return _are_legal(value, _is_key_or_value)


def _is_annotation(value: Any) -> bool:
    """The same as JSON in an annotation. An escape is no placeholder: nobody writes one so."""
    texts = _IN_JSON.findall(value) if isinstance(value, str) else []
    return _are_legal([each for each in texts if "\\" not in each], _is_key_or_value)


def _is_name(value: Any) -> bool:
    return not isinstance(value, str) or not value or is_subdomain(value)


def _are_labels(value: Any) -> bool:
    if not isinstance(value, dict):
        return not isinstance(value, str)
    return not any(isinstance(each, dict | list) for each in value.values()) and (
        _are_legal([*value], is_key) and _are_legal([*value.values()], _is_label_value)
    )


def _are_resources(value: Any) -> bool:
    """Whether it may be the `resources` of a container; a list of that name is of RBAC."""
    sections = [value.get(each) for each in SECTIONS] if isinstance(value, dict) else [value]
    return not any(isinstance(each, str) for each in sections) and all(
        is_key(name) and (name in _OTHERS or _is_amount(amount))
        for section in sections
        for name, amount in as_map(section).items()
    )


def _is_amount(amount: Any) -> bool:
    """Null is no text; the API server drops or rejects it."""
    return amount is None or isinstance(amount, bool) or quantity.parse(amount) is not None


def _is_number(value: Any) -> bool:
    return value.isdecimal() if isinstance(value, str) else not isinstance(value, dict | list)


_IN_JSON = re.compile(r"\"((?:[^\"\\]|\\.)*)\"")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_OTHERS = {"cpu", "memory", "ephemeral-storage"}  # nothing is compared with these amounts
_COUNTS = ("completions", "parallelism", "replicas")
_ANNOTATIONS = (AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION)
_TAKES: dict[str, Callable[[Any], bool]] = {
    "nodeAffinity": _are_requirements,
    "nodeName": _is_name,
    "nodeSelector": _are_labels,
    "resources": _are_resources,
    "runtimeClassName": _is_name,
    "schedulerName": _is_name,
    "tolerations": _are_requirements,
}
