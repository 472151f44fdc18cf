"""Finds pods that choose a GPU model by the label `alpha.kubernetes.io/nvidia-gpu-name`.

Why: kubelets of today may not set that label, so no node carries it and the pod stays Pending.

Does: in nodeSelector and spec.affinity the key becomes the label of today (`nvidia.com/gpu.product`,
or that of the profile for GKE, AKS, EKS or Karpenter), and the value those that the cluster's nodes
really carry for this model. Blanks, dashes, underscores and case are one spelling; `Tesla P100` is
`Tesla-P100-PCIE-16GB` and `Tesla-P100-SXM2-16GB`, but `GTX 1080` is not `GTX-1080-Ti`. Without an
inventory the known spellings of the model are named. Several values in nodeSelector become one
required `In`.

A model that stands for nothing here is still asked for in a required `In` or in nodeSelector, so that
the pod waits instead of landing on another model; beside other models, in `NotIn` and in preferences
it is dropped. If nodes still carry the old label with that value, the constraint stays as it is. A
pod that already asks for `nvidia.com/gpu` is only warned.

Safety: safe.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.core import affinity, models
from webhook.core.edits import Edit, Remove, Rename, Set
from webhook.core.findings import Finding, Severity
from webhook.core.labels import sanitised
from webhook.core.model_terms import Change, Fate, TermChange, describe, rewritten, term_change
from webhook.core.pod import PREFERRED, REQUIRED, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.pod import Pod
    from webhook.core.pointer import Path
    from webhook.core.rule import Context

    Raw = dict[str, Any]

NAME = "model-label"
CODE = "GPU105"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    legacy = cx.settings.models.legacy_label
    node_affinity = as_map(pod.affinity.get("nodeAffinity"))
    at = pod.spec_at / "affinity" / "nodeAffinity"
    required = list(_required(node_affinity, at, cx))
    preferred = list(_preferred(node_affinity, at, cx))
    if not cx.may_constrain:
        if legacy in pod.node_selector or required or preferred:
            message = (
                f"no node carries the label {legacy} any more; it is left as it is: "
                f"write {cx.settings.models.key} or delete it"
            )
            yield Finding(CODE, pod.spec_at, message, severity=Severity.PERSON)
        return
    join = None
    if legacy in pod.node_selector:
        finding, join = _node_selector(pod, cx)
        if join is not None:
            yield from _joined(pod, at / REQUIRED, required, join, finding)
        elif finding is not None:
            yield finding
    if join is None:
        yield from _required_findings(required, at, cx)
    for place, made in preferred:
        goes = made.fate in (Fate.NEVER, Fate.DROP)
        edits = (Remove(place.parent),) if goes else _requirement_edits(place, made)
        yield from _findings(place, made, edits, cx)


def _node_selector(pod: Pod, cx: Context) -> tuple[Finding | None, Raw | None]:
    """What becomes of the label in nodeSelector, and the term to join by AND if it leaves there."""
    legacy, key = cx.settings.models.legacy_label, cx.settings.models.key
    at = pod.spec_at / "nodeSelector"
    value = str(pod.node_selector[legacy])
    match = models.match(value, cx.settings.models, cx.inventory)
    if match.carried:
        return None, None
    today = match.values or (sanitised(value),)
    severity = Severity.REPAIR if match.values else Severity.PERSON
    if match.values:
        message = (
            f"no node carries the label {legacy} any more; write {key}: {', '.join(today[:3])}"
        )
    else:
        message = (
            f"{value} stands for no GPU here: {match.why}; the pod waits for {key}: {today[0]}: "
            "name the model as the nodes do"
        )
    if pod.node_selector.get(key) in today:
        return Finding(CODE, at / legacy, message, (Remove(at / legacy),), severity), None
    if len(today) > 1 or key in pod.node_selector:
        join = {"matchExpressions": [{"key": key, "operator": "In", "values": list(today)}]}
        return Finding(CODE, at / legacy, message, (Remove(at / legacy),), severity), join
    edits: tuple[Edit, ...] = (Rename(at / legacy, key),)
    if today[0] != pod.node_selector[legacy]:
        edits = (*edits, Set(at / key, today[0]))
    return Finding(CODE, at / legacy, message, edits, severity), None


def _joined(
    pod: Pod, at: Path, required: list[tuple[Path, TermChange]], join: Raw, finding: Finding | None
) -> Iterator[Finding]:
    """Required node affinity with the term joined to it, and its own legacy keys rewritten."""
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
    joined = affinity.and_join(terms, [join]) if terms else [join]
    if finding is None or joined is None:
        message = f"spec.affinity has over {affinity.MOST_TERMS} terms: nodeSelector stays as it is"
        yield Finding(CODE, at, message, severity=Severity.PERSON)
        return
    edits = (*finding.edits, Set(at / "nodeSelectorTerms", joined))
    yield replace(finding, edits=edits)
    for place, made in required:
        for note in (describe(change) for change in made.requirements.values()):
            if note:
                yield Finding(CODE, place, note, severity=Severity.PERSON)


def _required(node_affinity: Raw, at: Path, cx: Context) -> Iterator[tuple[Path, TermChange]]:
    terms = as_map(node_affinity.get(REQUIRED)).get("nodeSelectorTerms")
    for position, term in as_items(terms):
        made = term_change(term, cx, preferred=False)
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
        whole: tuple[Edit, ...] = (Remove(at / REQUIRED),) if position == 0 else ()
        yield from _findings(place, made, whole if always else _requirement_edits(place, made), cx)


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
    return tuple(edits)


def _findings(
    place: Path, made: TermChange, edits: tuple[Edit, ...], cx: Context
) -> Iterator[Finding]:
    changes = list(made.requirements.values())
    notes = [note for change in changes if (note := describe(change))]
    yield Finding(CODE, place, _message(changes, cx), edits)
    for note in notes:
        yield Finding(CODE, place, note, severity=Severity.PERSON)


def _message(changes: list[Change], cx: Context) -> str:
    values = [value for change in changes for value in change.values or ()]
    listed = ", ".join(values[:3]) + (", ..." if len(values) > 3 else "")  # noqa: PLR2004
    return (
        f"no node carries the label {cx.settings.models.legacy_label} any more; "
        f"write {cx.settings.models.key}{f': {listed}' if listed else ''}"
    )
