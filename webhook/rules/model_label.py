"""Finds pods that choose a GPU model by the label `alpha.kubernetes.io/nvidia-gpu-name`.

Why: kubelets of today may not set that label, so no node carries it and the pod stays Pending.

Does: in nodeSelector and spec.affinity the key becomes the label of today
(`nvidia.com/gpu.product`, or that of the profile for GKE, AKS, EKS or Karpenter), and the value
those that the cluster's nodes really carry for this model. Blanks, dashes, underscores and case are
one spelling; `Tesla P100` is `Tesla-P100-PCIE-16GB` and `Tesla-P100-SXM2-16GB`, but `GTX 1080` is
not `GTX-1080-Ti`. Without an inventory the known spellings of the model are named. Several values
in nodeSelector become one required `In`.

A model that stands for nothing here is still asked for in a required `In` or in nodeSelector, so
that the pod waits instead of landing on another model; beside other models, in `NotIn` and in
preferences it is dropped. If nodes still carry the old label with that value, the constraint stays
as it is. A pod that already asks for `nvidia.com/gpu` is only warned.

Safety: safe.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.core import affinity, models
from webhook.core.edits import Remove, Rename, Set
from webhook.core.findings import Finding, Severity
from webhook.core.labels import sanitised
from webhook.core.model_terms import Change, Fate, TermChange, describe, rewritten, term_change
from webhook.core.pod import PREFERRED, REQUIRED, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.core.edits import Edit
    from webhook.core.pod import Pod
    from webhook.core.pointer import Path
    from webhook.core.rule import Context

    Raw = dict[str, Any]

NAME = "model-label"
CODE = "GPU105"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    at = pod.spec_at / "affinity" / "nodeAffinity"
    node_affinity = as_map(pod.affinity.get("nodeAffinity"))
    required = list(_required(node_affinity, at, cx))
    preferred = list(_preferred(node_affinity, at, cx))
    finding, join = _node_selector(pod, cx)
    if not cx.may_constrain:
        if finding is not None or required or preferred:
            message = (
                f"no node carries the label {cx.settings.models.legacy_label} any more; it is left "
                f"as it is: write {cx.settings.models.key} or delete it"
            )
            yield Finding(CODE, pod.spec_at, message, severity=Severity.PERSON)
        return
    if finding is not None and join is not None:
        yield from _joined(pod, at / REQUIRED, required, cx, (finding, join))
    else:
        if finding is not None:
            yield finding
        yield from _required_findings(required, at, cx)
    for place, made in preferred:
        goes = made.fate in (Fate.NEVER, Fate.DROP)
        edits = (Remove(place.parent),) if goes else _requirement_edits(place, made)
        message = _DROPPED.format(cx.settings.models.legacy_label) if goes else _message(made, cx)
        yield from _findings(place, message, edits, made)


def _node_selector(pod: Pod, cx: Context) -> tuple[Finding | None, Raw | None]:
    """What becomes of the label in nodeSelector, and the term to join by AND if it leaves there."""
    legacy, key = cx.settings.models.legacy_label, cx.settings.models.key
    if legacy not in pod.node_selector:
        return None, None
    at = pod.spec_at / "nodeSelector"
    value = str(pod.node_selector[legacy])
    match = models.match(value, cx.settings.models, cx.inventory)
    if match.carried or (key == legacy and value in match.values):
        return None, None
    today = match.values or (sanitised(value),)
    severity = Severity.REPAIR if match.values else Severity.PERSON
    if match.values:
        message = f"no node carries the label {legacy} any more; write {key}: {_listed(today)}"
    else:
        message = describe(Change(Fate.CHANGE, key, today, (value,), match.why, waits=True))
    other = pod.node_selector.get(key) if key != legacy else None
    if other in today:
        return Finding(CODE, at / legacy, message, (Remove(at / legacy),), severity), None
    if len(today) > 1 or other is not None:
        join = {"matchExpressions": [{"key": key, "operator": "In", "values": list(today)}]}
        return Finding(CODE, at / legacy, message, (Remove(at / legacy),), severity), join
    edits: tuple[Edit, ...] = (Rename(at / legacy, key),) if key != legacy else ()
    if today[0] != pod.node_selector[legacy]:
        edits = (*edits, Set(at / key, today[0]))
    return Finding(CODE, at / legacy, message, edits, severity), None


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
    joined = affinity.and_join(terms, [join]) if terms else [join]
    if joined is None:
        message = (
            f"spec.affinity would have over {affinity.MOST_TERMS} terms, so nodeSelector stays "
            f"as it is and the pod waits: write {cx.settings.models.key} into spec.affinity"
        )
        yield Finding(CODE, at, message, severity=Severity.PERSON)
        yield from _required_findings(required, at.parent, cx)
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
    return tuple(edits)


def _findings(
    place: Path, message: str, edits: tuple[Edit, ...], made: TermChange
) -> Iterator[Finding]:
    changes = made.requirements.values()
    notes = [note for change in changes if (note := describe(change))]
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
    if not any(change.key for change in changes):  # nodes carry the label and the value
        return "a value that can be no label value is dropped; delete it"
    today = [value for change in changes for value in change.values or () if change.key]
    return (
        f"no node carries the label {cx.settings.models.legacy_label} any more; "
        f"write {cx.settings.models.key}{f': {_listed(today)}' if today else ''}"
    )


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values[:3]) + (", ..." if len(values) > 3 else "")  # noqa: PLR2004
