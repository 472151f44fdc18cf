"""Who opted out in files: a pod or a text in, yes or no or the names of namespaces out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.core.modes import IGNORE
from webhook.evaluation.evaluate import has_label
from webhook.evaluation.workloads import objects
from webhook.kube.pod import as_map
from webhook.templates.placeholders import stands_for_action
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from webhook.files.results import Plan

    Raw = dict[str, Any]

LEFT_ALONE = (
    "the label gpu-webhook.dev/ignore (of the pod, its namespace or its kustomization) says to "
    "leave it alone"
)


def is_left_alone(pod: Raw) -> bool:
    """Whether the pod has the opt-out label, or a template decides whether it has."""
    value = as_map(as_map(pod.get("metadata")).get("labels")).get(IGNORE)
    # Without quotes it is a boolean, which the API server rejects; the intention is clear.
    return has_label(pod) or value is True or stands_for_action(value)


def with_namespaces(plan: Plan, text: str) -> Plan:
    """The plan with the opted-out namespaces that the text itself creates."""
    names = namespaces_left_alone(text)
    if not names:
        return plan
    said = replace(plan.opted_out, namespaces=plan.opted_out.namespaces | names)
    return replace(plan, opted_out=said)


def namespaces_left_alone(text: str, *, label: bool = False) -> frozenset[str]:
    """The namespaces in a text that have the opt-out label, or get it from elsewhere."""
    if "Namespace" not in text or not (label or IGNORE in text):
        return frozenset()
    found = (obj for each in documents.read(text).documents for _, obj in objects(each.data))
    return frozenset(
        str(as_map(obj.get("metadata")).get("name"))
        for obj in found
        if obj.get("kind") == "Namespace" and (label or is_left_alone(obj))
    )
