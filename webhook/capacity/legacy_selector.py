"""Legacy labels that a pod has from others than its author, or that its nodes still have.

The label may be added after the author wrote the pod: by the namespace (PodNodeSelector), a
RuntimeClass, a MutatingAdmissionPolicy or another webhook. In a legacy pod it is then there before
the repair, and is translated with the rest. Pods of a repaired template are current pods by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity import models, node_labels, node_selection
from webhook.capacity.model_terms import Fate, chosen, rewritten, term_change
from webhook.core.modes import Mode, is_opted_out
from webhook.core.repaired_annotation import earlier
from webhook.core.rule import RENAMES_AMOUNTS, TRANSLATES_LABELS, Context
from webhook.kube import affinity
from webhook.kube.pod import REQUIRED, Pod, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.capacity.nodes import Inventory
    from webhook.core.settings import Models
    from webhook.kube.pointer import Path


def is_translated(pod: Pod, cx: Context) -> bool:
    """Whether the label is translated in this pod, or in the pods of this template, anyway.

    It is in a legacy pod that an earlier round of this request repaired. If templates are repaired,
    it is in the pods of all workloads, because a pod does not show whether its template was
    repaired. Most templates were not, so it must be known that no node has the requested label.
    """
    if cx.is_stored:
        return False
    if cx.template or pod.controller()[0]:
        return cx.settings.workloads.repair and cx.inventory is not None
    return RENAMES_AMOUNTS in earlier(pod.raw)


def translated(pod: Pod, cx: Context) -> Pod:
    """The pod, or the pods of this template, with the labels by which they will choose nodes."""
    opted_out = cx.pods_opted_out or is_opted_out(as_map(pod.metadata.get("labels")))
    if opted_out or cx.modes.of_code(TRANSLATES_LABELS) is not Mode.ENFORCE:
        return pod
    if not (cx.may_constrain or is_translated(pod, cx)):
        return pod
    there = pod.node_selector
    selector = dict(there)
    for key, today, is_free in node_labels.replaced_in(there, cx.inventory):
        if is_free:
            selector[today] = selector.pop(key)
    asked = selector.pop(cx.settings.models.legacy_label, None)
    if asked is None and selector == there:
        return pod
    given = pod.having(nodeSelector=selector)
    return given if asked is None else _of_model(str(asked), given, cx) or pod


def _of_model(model: str, pod: Pod, cx: Context) -> Pod | None:
    """The pod with this model as a requirement; None if the legacy label stays in it."""
    label = cx.settings.models.legacy_label
    term = {"matchExpressions": [{"key": label, "operator": "In", "values": [model]}]}
    made = term_change(term, cx, preferred=False, whole=chosen(pod, cx))
    if made.fate is Fate.KEEP or (made.further and not cx.may_constrain):
        return None
    terms, is_whole = [rewritten(term, made), *made.further], True
    if theirs := node_selection.terms(pod):
        terms, is_whole = affinity.and_join(theirs, terms)
    nodes = {**pod.node_affinity, REQUIRED: {"nodeSelectorTerms": terms}}
    return pod.having(affinity={**pod.affinity, "nodeAffinity": nodes}) if is_whole else None


def carried(pod: Pod, labels: Models, inventory: Inventory) -> Iterator[Path]:
    """The places where the pod names the legacy label as nodes with GPUs still have it.

    There the label is right. If the current label is missing beside it, a rule reports that.
    """
    legacy = labels.legacy_label
    if not models.carry(labels, inventory):
        return
    if models.carry(labels, inventory, str(pod.node_selector.get(legacy))):
        yield pod.spec_at / "nodeSelector" / legacy
    for place, term in (*pod.required_terms(), *pod.preferred_terms()):
        for number, each in as_items(term.get("matchExpressions")):
            listed = each.get("values")
            values = listed if isinstance(listed, list) else []
            known = (models.carry(labels, inventory, str(value)) for value in values)
            if each.get("key") == legacy and (not values or any(known)):
                yield place / "matchExpressions" / number / "key"
