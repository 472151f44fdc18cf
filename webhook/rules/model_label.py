"""Finds pods that select a GPU model by the label `alpha.kubernetes.io/nvidia-gpu-name`.

Why: current kubelets may not set that label, so no node has it and the pod stays Pending.

Does: in nodeSelector and spec.affinity, replaces the key by the current label
(`nvidia.com/gpu.product`, or the label of the profile for GKE, AKS, EKS or Karpenter), and the
value by all values for this model: the values of the nodes now, and those in the table of known
models, because a pool may have no nodes yet. Blanks, dashes, underscores and case do not matter;
`Tesla P100` is `Tesla-P100-PCIE-16GB` and `Tesla-P100-SXM2-16GB`, but `GTX 1080` is not
`GTX-1080-Ti`. A full name as nvidia-smi prints it stands for a shorter one if the label has only
that: `Tesla-P100-PCIE-16GB` is `nvidia-tesla-p100` on GKE. Several values in nodeSelector become
one required `In`. If no node has the model now, or has it only shared or in slices
(`models.shared`, `models.mig`), a warning says so. `NotIn` excludes shared and sliced GPUs of the
model, too. Nodes of the model that labels of GKE or GPU Feature Discovery mark as shared or sliced
are excluded unless these settings allow them, or the pod selects such nodes itself: by these
labels, or by others that only such nodes have. A pod that names no model may run on them; a notice
says so.

An unknown model in a required `In` or in nodeSelector stays, so that the pod waits and does not run
on another model. Beside other models and in a preferred `In` it is dropped. In `NotIn` it is
excluded by its own name. In pods and templates that the webhook repairs, `NotIn` and `DoesNotExist`
also stay under the old label, whatever labels the nodes carry now: a template stays as it is while
its nodes get and lose either label. In a file they stay under the old label only if GPU nodes have
it: then they are written under both labels. If GPU nodes still have the old label with a value
that the pod names, the pod keeps requiring that value, and requires the other models under the
current label. If some nodes of this model lack the old label, the current label is used for it as
well: an `In` becomes two alternative terms, a `NotIn` two requirements in one term. If all nodes of
the models have the old label, an `In` does not change.

At admission a pod that already requests `nvidia.com/gpu` is only warned; in a file its label is
replaced, too, and so is that of a pod without GPUs. The exception at admission is a label whose
translation the pod already has: the admission plugins PodNodeSelector (the annotation
`scheduler.alpha.kubernetes.io/node-selector` of the namespace) and RuntimeClass add their labels
again after a repair. Such a label is removed again, and a warning shows where to write the current
one. A label in nodeSelector that a policy or a webhook adds to a legacy pod after its repair is
translated in the second round. With `workloads.repair` this also holds for the pods of workloads,
which do not show whether their template was repaired: only if the inventory is known, and no node
has what the label requires. A label that is added later to a repaired pod with scheduling gates is
translated, too.

Zone, region, arch, os and instance type were once beta labels. If a legacy pod requires what nodes
have only under the stable label, the stable label is written. If nodeSelector requires another
value under the stable label, both stay and a warning says so.

Safety: safe for pods. In a file an unknown model is manual: the whole pod stays as it is, except
with `--unsafe`. So is a known model that the nodes have only under other settings
(`models.profile`, `models.shared`, `models.mig`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.capacity import fit, model_words, node_labels, node_selection, whole_gpus
from webhook.capacity.legacy_selector import is_translated
from webhook.capacity.model_terms import (
    Fate,
    TermChange,
    chosen,
    chosen_by_terms,
    rewritten,
    term_change,
    within,
)
from webhook.capacity.why_not import short
from webhook.core.edits import Append, Remove, Rename, Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.rule import TRANSLATES_LABELS, Facts, Stage, Trait
from webhook.core.text_patterns import LABEL_TEXT
from webhook.kube import affinity
from webhook.kube.managed_fields import entries, fields
from webhook.kube.pod import Raw, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.capacity.model_terms import Chosen
    from webhook.core.edits import Edit
    from webhook.core.rule import Context
    from webhook.kube.pod import Pod
    from webhook.kube.pointer import Path


NAME = "model-label"
CODE = TRANSLATES_LABELS
FACTS = Facts(
    Stage.REPAIR,
    Trait.CHOICE | Trait.LEGACY_PODS | Trait.SEPARATE,
    unsafe=True,
    words=("nvidia",),
    patterns=(LABEL_TEXT,),
)

# The admission plugins PodNodeSelector and RuntimeClass add labels to a pod, and once more after a
# webhook has changed it; they refuse other values, but not that they are missing (1.36).
_WHAT_ADDS_IT = (
    "write {} where it comes from (namespace annotation "
    "scheduler.alpha.kubernetes.io/node-selector, RuntimeClass, policy or webhook)"
)


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if pod.node_selector or pod.affinity:
        yield from _labels(pod, cx)
    if cx.may_constrain:
        yield from _parts(pod, cx)


def _labels(pod: Pod, cx: Context) -> Iterator[Finding]:
    """What becomes of the labels that the pod names."""
    whole = chosen(pod, cx)
    required = list(_required(pod, cx, whole=whole))
    preferred = list(_preferred(pod, cx))
    finding, join, remarks = _node_selector(pod, cx, whole=whole)
    if not cx.may_constrain:
        changes = [made for _, made in required] + [made for _, made, _ in preferred]
        yield from _of_today(pod, cx, finding, join, changes)
        return
    if finding is not None and join:
        yield from _joined(pod, required, cx, (finding, join))
    else:
        if finding is not None:
            yield finding
        yield from _required_findings(required, cx)
    is_choice = finding is not None and finding.safety is Safety.CHOICE
    for note in remarks:
        severity = _of_note(cx, is_choice=is_choice)
        yield Finding(CODE, pod.spec_at / "nodeSelector", note, severity=severity)
    yield from _other_selectors(pod, cx)
    for place, made, further in preferred:
        goes = made.fate is Fate.NEVER
        edits = (Remove(place.parent),) if goes else (*_requirement_edits(place, made), *further)
        dropped = model_words.DROPPED.format(model_words.no_node(cx))
        message = dropped if goes else model_words.message_of(made, cx)
        yield from _findings(place, message, edits, made, cx)


def _of_today(
    pod: Pod, cx: Context, finding: Finding | None, join: list[Raw], changes: list[TermChange]
) -> Iterator[Finding]:
    """The same of a pod that asks under today's name.

    In its nodeSelector may stand what others than its author added (capacity/legacy_selector.py).
    """
    others = list(_other_selectors(pod, cx))
    if finding is None and not changes and not others:  # as nearly always
        return
    some = len(join) > 1 or any(model_words.is_of_some(made) for made in changes)
    in_pods = is_translated(pod, cx)
    here = in_pods and not cx.template
    if finding is not None and _is_said(pod, finding, join):
        yield _came_back(finding, cx.settings.models.key)
    elif finding is not None and here and not some:
        yield from _joined(pod, [], cx, (finding, join)) if join else (finding,)
    elif finding is not None or changes:
        in_pods = in_pods and finding is not None and not some
        message = _left(pod, cx, some=some, in_pods=in_pods)
        yield Finding(CODE, pod.spec_at, message, severity=Severity.MANUAL)
    for other in others:
        if _is_said(pod, other, []):
            yield _came_back(other, node_labels.current_label(str(other.at[-1]), (), None))
        elif here:
            yield other


def _parts(pod: Pod, cx: Context) -> Iterator[Finding]:
    """A word on nodes with parts of GPUs, on which a pod that names no model may run."""
    found = whole_gpus.parts(cx.settings, cx.inventory) if cx.stuck else ()
    named = pod.names_legacy_label(cx.settings.models.legacy_label)
    whole = cx.settings.gpu_resource in pod.gpus(cx.settings)
    if cx.inventory is None or cx.is_open or not found or named or not whole:
        return
    index = cx.inventory.index
    nodes = fit.chosen(pod, index)
    nodes &= fit.enough(fit.requested(pod, cx), index)
    for each in whole_gpus.among(nodes, found)[:1]:
        message = (
            f"this pod may get parts of GPUs for whole ones: nodes with {each.words} offer them as "
            f"{cx.settings.gpu_resource}; exclude these nodes in the pod, or set "
            f"models.{each.setting} to true"
        )
        yield Finding(CODE, pod.spec_at, message, severity=Severity.NOTICE)


def _is_said(pod: Pod, finding: Finding, join: list[Raw]) -> bool:
    """Whether the pod already asks in today's words for what the label in nodeSelector says.

    Then an admission plugin has added it once more after our repair: see PodNodeSelector.
    """
    if not join:
        return finding.edits == (Remove(finding.at),)
    terms = [term for _, term in pod.required_terms()]
    return bool(terms) and affinity.and_join(terms, join) == (terms, True)


def _came_back(finding: Finding, today: str) -> Finding:
    message = (
        f"the label {finding.at[-1]} came back and is removed again: {_WHAT_ADDS_IT.format(today)}"
    )
    return replace(finding, message=message, severity=Severity.REPAIR)


def _left(pod: Pod, cx: Context, *, some: bool, in_pods: bool) -> str:
    """What to say of the label where nothing is changed; `some` nodes may still carry it.

    It may be translated `in_pods` of this template.
    """
    legacy, today = cx.settings.models.legacy_label, cx.settings.models.key
    if some:
        return (
            f"{model_words.both(cx).format(legacy, today)}. It is left as it is: this pod requests "
            "GPUs under today's name"
        )
    sent = [as_map(fields(each).get("f:spec")) for each in entries(pod.raw)]
    if legacy in pod.node_selector and sent and not any("f:nodeSelector" in each for each in sent):
        return (
            f"no node carries the label {legacy}, and this pod did not ask for it: "
            f"{_WHAT_ADDS_IT.format(today)}"
        )
    left = "is left as it is here and translated in the pods" if in_pods else "is left as it is"
    return f"{model_words.no_node(cx)}; it {left}: write {today} or delete it"


def _other_selectors(pod: Pod, cx: Context) -> Iterator[Finding]:
    """Zone, region and such in nodeSelector."""
    at = pod.spec_at / "nodeSelector"
    there = pod.node_selector
    for key, today, is_free in node_labels.replaced_in(there, cx.inventory):
        if is_free:
            edit = Remove(at / key) if today in there else Rename(at / key, today)
            yield Finding(CODE, at / key, model_words.REPLACED.format(key, today), (edit,))
        else:  # the latter may be an admin's, whatever the record of a template says
            asked = (short(f"{each}={there[each]}") for each in (key, today))
            message = (
                f"nodeSelector requests {' and '.join(asked)}: "
                "no node has both, so the pod waits; delete the one that is not meant"
            )
            yield Finding(CODE, at / key, message, severity=Severity.MANUAL)


def _node_selector(
    pod: Pod, cx: Context, *, whole: Chosen | None
) -> tuple[Finding | None, list[Raw], list[str]]:
    """What becomes of the label in nodeSelector, and the terms to join by AND if it leaves there.

    The texts are what else is to be said.
    """
    legacy, key = cx.settings.models.legacy_label, cx.settings.models.key
    if pod.node_selector.get(legacy) is None:  # null is no model: it takes a label away
        return None, [], []
    at, value = pod.spec_at / "nodeSelector", str(pod.node_selector[legacy])
    by_terms = chosen_by_terms(node_selection.terms(pod) or (), cx)
    whole = whole & by_terms if whole is not None and by_terms is not None else whole
    term = {"matchExpressions": [{"key": legacy, "operator": "In", "values": [value]}]}
    made = term_change(term, cx, preferred=False, whole=whole)
    change = made.requirements.get(0)
    today = change.values or () if change is not None else ()
    if change is None or (key == legacy and value in today and not change.waits):
        return None, [], []
    safety = Safety.CHOICE if made.is_choice else Safety.SAFE
    if change.waits:
        (message,) = model_words.describe(change, stays=cx.leaves_choices(CODE))
        severity, remarks = Severity.MANUAL, list[str]()
    else:
        text = f"{model_words.no_node(cx)}; write {key}"
        text = model_words.BOTH.format(legacy, key) if change.old is not None else text
        message = f"{text}: {model_words.listed(today)}"
        severity, remarks = Severity.REPAIR, list(model_words.describe(change))
    join = [rewritten(term, made), *made.further]
    edits: tuple[Edit, ...] = (Remove(at / legacy),)
    other = pod.node_selector.get(key) if key != legacy else None
    if other in today:
        join = []
    elif change.old is None and len(today) == 1 and other is None:
        edits = (Rename(at / legacy, key),) if key != legacy else ()
        if today[0] != pod.node_selector[legacy]:
            edits = (*edits, Set(at / key, today[0]))
        join = [{"matchExpressions": made.added}] if made.added else []
    return Finding(CODE, at / legacy, message, edits, severity, safety), join, remarks


def _joined(
    pod: Pod,
    required: list[tuple[Path, TermChange]],
    cx: Context,
    moved: tuple[Finding, list[Raw]],
) -> Iterator[Finding]:
    """Required node affinity with the terms joined to it, and its own legacy keys rewritten."""
    finding, join = moved
    changes, keep, at = dict(required), TermChange(Fate.KEEP, {}), pod.required_terms_at
    terms = [rewritten(term, changes.get(place, keep)) for place, term in pod.required_terms()]
    terms += [term for made in changes.values() for term in made.further]
    joined, whole = affinity.and_join(terms, join) if terms else (join, True)
    if not whole:
        message = (
            f"spec.affinity would have {affinity.TOO_MANY}, so nodeSelector stays "
            f"as it is and the pod waits: write {cx.settings.models.key} into spec.affinity"
        )
        yield Finding(CODE, at.parent, message, severity=Severity.MANUAL)
        yield from _required_findings(required, cx)
        return
    edits = (*finding.edits, Set(at, joined))
    is_choice = any(made.is_choice for _, made in required)
    safety = Safety.CHOICE if is_choice else finding.safety
    yield replace(finding, edits=edits, safety=safety)
    for place, made in required:
        for note in model_words.notes(made, stays=cx.leaves_choices(CODE)):
            yield Finding(CODE, place, note, severity=_of_note(cx, is_choice=made.is_choice))


def _required(pod: Pod, cx: Context, *, whole: Chosen | None) -> Iterator[tuple[Path, TermChange]]:
    terms = pod.required_terms()
    changes = (term_change(term, cx, preferred=False, whole=whole) for _, term in terms)
    for (place, _), made in zip(terms, within(changes, len(terms)), strict=True):
        if made.fate is not Fate.KEEP:
            yield place, made


def _preferred(pod: Pod, cx: Context) -> Iterator[tuple[Path, TermChange, list[Append]]]:
    """Each preference that changes, and what is to be preferred beside it."""
    items = pod.preferences()
    changes = (term_change(as_map(i.get("preference")), cx, preferred=True) for _, i in items)
    for (at, item), made in zip(items, within(changes, len(items)), strict=True):
        further = [Append(at.parent, {**item, "preference": each}) for each in made.further]
        if made.fate is not Fate.KEEP:
            yield at / "preference", made, further


def _required_findings(required: list[tuple[Path, TermChange]], cx: Context) -> Iterator[Finding]:
    for place, made in required:
        further = [Append(place.parent, each) for each in made.further]
        edits = (*_requirement_edits(place, made), *further)
        yield from _findings(place, model_words.message_of(made, cx), edits, made, cx)


def _requirement_edits(place: Path, made: TermChange) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    for position, change in made.requirements.items():
        requirement = place / "matchExpressions" / position
        if change.key:
            edits.append(Set(requirement / "key", change.key))
        if change.values is not None:
            edits.append(Set(requirement / "values", list(change.values)))
    edits += [Append(place / "matchExpressions", each) for each in made.added]
    return tuple(edits)


def _findings(
    place: Path, message: str, edits: tuple[Edit, ...], made: TermChange, cx: Context
) -> Iterator[Finding]:
    safety = Safety.CHOICE if made.is_choice else Safety.SAFE
    stays = made.is_choice and cx.leaves_choices(CODE)
    said = list(model_words.notes(made, stays=stays))
    if stays or any(change.waits for change in made.requirements.values()):
        # A value that no node has would not help.
        yield Finding(CODE, place, said.pop(0), edits, Severity.MANUAL, safety)
    else:
        yield Finding(CODE, place, message, edits, safety=safety)
    for note in said:
        yield Finding(CODE, place, note, severity=_of_note(cx, is_choice=made.is_choice))


def _of_note(cx: Context, *, is_choice: bool) -> Severity:
    """What is not its author's choice is right in a file: the nodes may come."""
    return Severity.NOTICE if cx.is_rewritten and not is_choice else Severity.MANUAL
