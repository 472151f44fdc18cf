"""Finds pods that choose a GPU model by the label `alpha.kubernetes.io/nvidia-gpu-name`.

Why: kubelets of today may not set that label, so no node carries it and the pod stays Pending.

Does: in nodeSelector and spec.affinity the key becomes the label of today
(`nvidia.com/gpu.product`, or that of the profile for GKE, AKS, EKS or Karpenter), and the value all
that stand for this model: those that the cluster's nodes carry now, and those that the table of
known models names, since a pool may be at zero. Blanks, dashes, underscores and case are one
spelling; `Tesla P100` is `Tesla-P100-PCIE-16GB` and `Tesla-P100-SXM2-16GB`, but `GTX 1080` is not
`GTX-1080-Ti`. A full name as nvidia-smi prints it stands for a shorter one where the label says no
more: `Tesla-P100-PCIE-16GB` is `nvidia-tesla-p100` on GKE. Several values in nodeSelector become
one required `In`. Where no node has the model now, or has it only shared or in slices
(`models.shared`, `models.mig`), a warning says so. `NotIn` excludes shared and sliced GPUs of the
model, too. Nodes of the model that labels of GKE or GPU Feature Discovery mark as shared or sliced
are excluded unless these settings allow them, or the pod selects such nodes itself: by these
labels, or by others that only such nodes have. A pod that names no model may run on them; a notice
says so.

A model that nobody knows is still asked for in a required `In` or in nodeSelector, so that the pod
waits instead of landing on another model; beside other models, in `NotIn` and in preferences it is
dropped. If nodes still carry the old label with that value, the constraint stays as it is. A pod
that already asks for `nvidia.com/gpu` is only warned, but for a label whose translation it asks for
already: the admission plugin PodNodeSelector adds the labels of the namespace's annotation
`scheduler.alpha.kubernetes.io/node-selector` once more after a repair. It is removed again, and a
warning says what to write in the namespace.

Zone, region, arch, os and instance type, which were beta labels once, become today's where a legacy
pod asks for what nodes carry under today's label alone.

Safety: safe.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.core import affinity, fit, models, node_labels, node_selection, whole_gpus
from webhook.core.edits import Append, Remove, Rename, Set
from webhook.core.findings import Finding, Severity
from webhook.core.labels import sanitised
from webhook.core.managed_fields import entries, fields
from webhook.core.model_terms import (
    Change,
    Fate,
    TermChange,
    chosen,
    chosen_by_terms,
    describe,
    of_whole,
    rewritten,
    term_change,
)
from webhook.core.pod import PREFERRED, REQUIRED, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.core.edits import Edit
    from webhook.core.model_terms import (
        Chosen,
    )
    from webhook.core.pod import Pod
    from webhook.core.pointer import Path
    from webhook.core.rule import Context

    Raw = dict[str, Any]

NAME = "model-label"
CODE = "GPU105"

# The admission plugin PodNodeSelector adds these labels to each pod, and once more after a webhook
# has changed it; it refuses other values, but not that they are missing (1.36 podnodeselector).
_NAMESPACE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    at = pod.spec_at / "affinity" / "nodeAffinity"
    node_affinity = as_map(pod.affinity.get("nodeAffinity"))
    whole = chosen(pod, cx)
    required = list(_required(node_affinity, at, cx, whole=whole))
    preferred = list(_preferred(node_affinity, at, cx))
    finding, join, notes = _node_selector(pod, cx, whole=whole)
    if not cx.may_constrain:
        if finding is not None and _is_said(pod, finding, join):
            yield _came_back(finding, cx.settings.models.key)
        elif finding is not None or required or preferred:
            message = _left(pod, cx.settings.models.legacy_label, cx.settings.models.key)
            yield Finding(CODE, pod.spec_at, message, severity=Severity.PERSON)
        for other in _other_selectors(pod, cx):
            if _is_said(pod, other, None):
                yield _came_back(other, node_labels.today_of(str(other.at[-1]), (), None))
        return
    if finding is not None and join is not None:
        yield from _joined(pod, at / REQUIRED, required, cx, (finding, join))
    else:
        if finding is not None:
            yield finding
        yield from _required_findings(required, at, cx)
    for note in notes:
        yield Finding(CODE, pod.spec_at / "nodeSelector", note, severity=Severity.PERSON)
    yield from _other_selectors(pod, cx)
    for place, made in preferred:
        goes = made.fate in (Fate.NEVER, Fate.DROP)
        edits = (Remove(place.parent),) if goes else _requirement_edits(place, made)
        message = _DROPPED.format(cx.settings.models.legacy_label) if goes else _message(made, cx)
        yield from _findings(place, message, edits, made)
    yield from _parts(pod, cx)


def _parts(pod: Pod, cx: Context) -> Iterator[Finding]:
    """A word on nodes with parts of GPUs, on which a pod that names no model may run."""
    found = whole_gpus.parts(cx.settings, cx.inventory) if cx.stuck else ()
    named = pod.names_legacy_label(cx.settings.models.legacy_label)
    whole = cx.settings.gpu_resource in pod.gpus(cx.settings)
    if cx.inventory is None or not found or named or not whole:
        return
    index = cx.inventory.index
    nodes = fit.chosen(pod, index)
    nodes &= fit.enough(fit.asked(pod, cx), index)
    for each in whole_gpus.among(nodes, found)[:1]:
        message = (
            f"this pod may get parts of GPUs for whole ones: nodes with {each.words} offer them as "
            f"{cx.settings.gpu_resource}; exclude these nodes in the pod, or set "
            f"models.{each.setting} to true"
        )
        yield Finding(CODE, pod.spec_at, message, severity=Severity.NOTICE)


def _is_said(pod: Pod, finding: Finding, join: Raw | None) -> bool:
    """Whether the pod already asks in today's words for what the label in nodeSelector says.

    Then an admission plugin has added it once more after our repair: see PodNodeSelector.
    """
    if join is None:
        return finding.edits == (Remove(finding.at),)
    required = as_map(as_map(pod.affinity.get("nodeAffinity")).get(REQUIRED))
    terms = [term for _, term in as_items(required.get("nodeSelectorTerms"))]
    return bool(terms) and affinity.and_join(terms, [join]) == (terms, True)


def _came_back(finding: Finding, today: str) -> Finding:
    message = (
        f"the label {finding.at[-1]} came back after it was repaired, and is removed again. If the "
        f"namespace adds it (annotation {_NAMESPACE_SELECTOR}), write {today} there"
    )
    return replace(finding, message=message, severity=Severity.REPAIR)


def _left(pod: Pod, legacy: str, today: str) -> str:
    """What to say of the label where nothing is changed."""
    sent = [as_map(fields(each).get("f:spec")) for each in entries(pod.raw)]
    if legacy in pod.node_selector and sent and not any("f:nodeSelector" in each for each in sent):
        return (
            f"no node carries the label {legacy} any more, and this pod did not ask for it. If its "
            f"namespace adds it (annotation {_NAMESPACE_SELECTOR}), write {today} there"
        )
    return (
        f"no node carries the label {legacy} any more; it is left as it is: write {today} or "
        "delete it"
    )


def _other_selectors(pod: Pod, cx: Context) -> Iterator[Finding]:
    """Zone, region and such in nodeSelector."""
    at = pod.spec_at / "nodeSelector"
    for key, value in pod.node_selector.items():
        today = node_labels.gone(key, (str(value),), cx.inventory)
        if today and pod.node_selector.get(today) in (None, value):
            edit = Remove(at / key) if today in pod.node_selector else Rename(at / key, today)
            yield Finding(CODE, at / key, _GONE.format(key, today), (edit,))


def _node_selector(
    pod: Pod, cx: Context, *, whole: Chosen | None
) -> tuple[Finding | None, Raw | None, list[str]]:
    """What becomes of the label in nodeSelector, and the term to join by AND if it leaves there.

    The texts are what else is to be said.
    """
    legacy, key = cx.settings.models.legacy_label, cx.settings.models.key
    if legacy not in pod.node_selector:
        return None, None, []
    at = pod.spec_at / "nodeSelector"
    value = str(pod.node_selector[legacy])
    match = models.match(value, cx.settings.models, cx.inventory)
    if match.carried or (key == legacy and value in match.values):
        return None, None, []
    today = match.values or (sanitised(value),)
    severity = Severity.REPAIR if match.values else Severity.PERSON
    notes: list[str] = []
    beside: list[Raw] = []
    if match.values:
        message = f"no node carries the label {legacy} any more; write {key}: {_listed(today)}"
        absent = (value,) if match.why else ()
        made = Change(Fate.CHANGE, key, today, absent=absent, absent_why=match.why)
        by_terms = chosen_by_terms(node_selection.terms(pod) or (), cx)
        whole = whole & by_terms if whole is not None and by_terms is not None else whole
        made = of_whole(made, cx, (value,), whole)
        notes = list(describe(made))
        beside = [part.excluded for part in made.beside]
    else:
        unknown = Change(Fate.CHANGE, key, today, (value,), match.why, waits=True)
        (message,) = describe(unknown)
    other = pod.node_selector.get(key) if key != legacy else None
    if other in today:
        return Finding(CODE, at / legacy, message, (Remove(at / legacy),), severity), None, notes
    if len(today) > 1 or other is not None:
        asked = {"key": key, "operator": "In", "values": list(today)}
        join = {"matchExpressions": [asked, *beside]}
        return Finding(CODE, at / legacy, message, (Remove(at / legacy),), severity), join, notes
    edits: tuple[Edit, ...] = (Rename(at / legacy, key),) if key != legacy else ()
    if today[0] != pod.node_selector[legacy]:
        edits = (*edits, Set(at / key, today[0]))
    others = {"matchExpressions": beside} if beside else None
    return Finding(CODE, at / legacy, message, edits, severity), others, notes


def _joined(
    pod: Pod,
    at: Path,
    required: list[tuple[Path, TermChange]],
    cx: Context,
    moved: tuple[Finding, Raw],
) -> Iterator[Finding]:
    """Required node affinity with the term joined to it, and its own legacy keys rewritten."""
    finding, join = moved
    selector = as_map(as_map(pod.affinity.get("nodeAffinity")).get(REQUIRED))
    changes = {place[-1]: made for place, made in required}
    if any(made.fate is Fate.DROP for made in changes.values()):
        terms = []
    else:
        keep = TermChange(Fate.KEEP, {})
        terms = [
            rewritten(term, changes.get(position, keep))
            for position, term in as_items(selector.get("nodeSelectorTerms"))
        ]
    joined, whole = affinity.and_join(terms, [join]) if terms else ([join], True)
    if not whole:
        message = (
            f"spec.affinity would have {affinity.TOO_MANY}, so nodeSelector stays "
            f"as it is and the pod waits: write {cx.settings.models.key} into spec.affinity"
        )
        yield Finding(CODE, at, message, severity=Severity.PERSON)
        yield from _required_findings(required, at.parent, cx)
        return
    edits = (*finding.edits, Set(at / "nodeSelectorTerms", joined))
    yield replace(finding, edits=edits)
    for place, made in required:
        for change in made.requirements.values():
            for note in describe(change):
                yield Finding(CODE, place, note, severity=Severity.PERSON)


def _required(
    node_affinity: Raw, at: Path, cx: Context, *, whole: Chosen | None
) -> Iterator[tuple[Path, TermChange]]:
    terms = as_map(node_affinity.get(REQUIRED)).get("nodeSelectorTerms")
    for position, term in as_items(terms):
        made = term_change(term, cx, preferred=False, whole=whole)
        if made.fate is not Fate.KEEP:
            yield at / REQUIRED / "nodeSelectorTerms" / position, made


def _preferred(node_affinity: Raw, at: Path, cx: Context) -> Iterator[tuple[Path, TermChange]]:
    for position, item in as_items(node_affinity.get(PREFERRED)):
        made = term_change(as_map(item.get("preference")), cx, preferred=True)
        if made.fate is not Fate.KEEP:
            yield at / PREFERRED / position / "preference", made


def _required_findings(
    required: list[tuple[Path, TermChange]], at: Path, cx: Context
) -> Iterator[Finding]:
    # A term that is left without a requirement is true of every node, and so is the whole selector.
    always = any(made.fate is Fate.DROP for _, made in required)
    for position, (place, made) in enumerate(required):
        if always:
            message = _DROPPED.format(cx.settings.models.legacy_label)
            whole: tuple[Edit, ...] = (Remove(at / REQUIRED),) if position == 0 else ()
            yield from _findings(place, message, whole, made)
        else:
            yield from _findings(place, _message(made, cx), _requirement_edits(place, made), made)


def _requirement_edits(place: Path, made: TermChange) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    for position, change in made.requirements.items():
        requirement = place / "matchExpressions" / position
        if change.fate is Fate.DROP:
            edits.append(Remove(requirement))
            continue
        if change.key:
            edits.append(Set(requirement / "key", change.key))
        if change.values is not None:
            edits.append(Set(requirement / "values", list(change.values)))
    excluded = [part.excluded for each in made.requirements.values() for part in each.beside]
    edits += [Append(place / "matchExpressions", each) for each in excluded]
    return tuple(edits)


def _findings(
    place: Path, message: str, edits: tuple[Edit, ...], made: TermChange
) -> Iterator[Finding]:
    changes = sorted(made.requirements.values(), key=lambda change: not change.waits)
    notes = [note for change in changes for note in describe(change)]
    if any(change.waits for change in changes):  # to write what no node carries is no cure
        yield Finding(CODE, place, notes.pop(0), edits, Severity.PERSON)
    else:
        yield Finding(CODE, place, message, edits)
    for note in notes:
        yield Finding(CODE, place, note, severity=Severity.PERSON)


_DROPPED = (
    "no node carries the label {} any more, and nothing here stands for its value: delete the term"
)


def _message(made: TermChange, cx: Context) -> str:
    changes = made.requirements.values()
    texts = [_GONE.format(change.was, change.key) for change in changes if change.was]
    of_models = [change for change in changes if change.key and not change.was]
    if of_models:
        today = [value for change in of_models for value in change.values or ()]
        text = _GONE.format(cx.settings.models.legacy_label, cx.settings.models.key)
        texts.insert(0, f"{text}{f': {_listed(today)}' if today else ''}")
    if not texts:  # nodes carry the label and the value
        return "a value that can be no label value is dropped; delete it"
    return f"{texts[0]} (and {len(texts) - 1} more)" if len(texts) > 1 else texts[0]


_GONE = "no node carries the label {} any more; write {}"


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values[:3]) + (", ..." if len(values) > 3 else "")  # noqa: PLR2004
