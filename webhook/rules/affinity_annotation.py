"""Finds affinity in the annotation `scheduler.alpha.kubernetes.io/affinity`.

Why: schedulers 1.2-1.5 read affinity only from this annotation, 1.6-1.7 only behind a feature gate,
and later ones not at all: the pod runs on any node.

Does: writes it as spec.affinity and removes the annotation. The rule reads it as the old scheduler
did (member names in any case, unknown members ignored). podAffinity and podAntiAffinity of the spec
override those of the annotation; required node affinity of both is combined with AND, so that a
DaemonSet pod stays on its node; preferred terms are added. GPU model names under
`alpha.kubernetes.io/nvidia-gpu-name` become the values that nodes have now (see GPU105). An empty
topologyKey of a preferred anti-affinity term becomes `kubernetes.io/hostname`. The beta labels of
zone, region, arch, os and instance type become the stable labels, unless nodes have only the beta
labels. `namespaces: []` means the namespace of the pod (`affinity.emptyNamespaces: all` for
manifests of 1.3-1.5).

Parts that never had an effect stay in the annotation and are reported as manual; with `--unsafe`
they are removed. These parts are `requiredDuringSchedulingRequiredDuringExecution`, which was
declared but never implemented, and preferred anti-affinity without a podAffinityTerm.

A part that is not valid JSON of this type, or that the API server would refuse, is not converted:
the annotation stays, and the warning gives the reason. If the combined required node affinity has
more than 100 terms or 2,000 expressions, the rule writes only that many and warns: the pod may wait
although a node would fit, but it never runs on a node that the author excluded. On a pod that can
run as it is, the webhook converts nothing: the annotation has had no effect for years, and to apply
it now could keep the pod Pending. In files it is converted, and the author reads the diff.

Safety: safe for pods. In a file all of the pod stays as it is while a part cannot be read, or names
a model that nobody knows, unless unsafe edits are wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity import node_labels
from webhook.capacity.model_terms import Fate, chosen, rewritten, term_change, within
from webhook.capacity.model_words import notes
from webhook.core.edits import Append, Remove, Set
from webhook.core.findings import Finding, Safety, Severity, choice
from webhook.core.legacy_names import AFFINITY_ANNOTATION
from webhook.core.rule import Facts, Stage, Trait
from webhook.core.text_patterns import AFFINITY_TEXT
from webhook.kube import affinity, go_json
from webhook.kube.canonical import canonical
from webhook.kube.pod import PREFERRED, REQUIRED, Raw, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.capacity.model_terms import Chosen, TermChange
    from webhook.core.edits import Edit
    from webhook.core.rule import Context
    from webhook.kube.affinity import Section
    from webhook.kube.pod import Pod
    from webhook.kube.pointer import Path


NAME = "affinity-annotation"
CODE = "GPU106"
FACTS = Facts(
    Stage.REPAIR,
    Trait.ANNOTATION | Trait.CHOICE | Trait.LEGACY_PODS | Trait.SEPARATE | Trait.TEXT,
    unsafe=True,
    words=("alpha.kubernetes.io", "AnnotationKey"),
    patterns=(AFFINITY_TEXT,),
)

_MOST_NOTES = 10


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if AFFINITY_ANNOTATION not in pod.annotations:
        return
    at = pod.annotation_at(AFFINITY_ANNOTATION)
    text = pod.annotations[AFFINITY_ANNOTATION]
    if not cx.may_constrain:
        message = (
            "the affinity annotation has had no effect since Kubernetes 1.8 and is left as it is: "
            "this pod runs without it; move it to spec.affinity or delete it"
        )
        yield Finding(CODE, at, message, severity=Severity.MANUAL)
        return
    try:
        # null is what a chart writes to erase an old value on upgrade
        sections, unknown = ({}, []) if text is None else affinity.decode(text)
    except go_json.Mistake as mistake:
        message = (
            f"the affinity annotation is not converted: {mistake}; write spec.affinity, or delete "
            "the annotation"
        )
        yield choice(CODE, at, message)
        return
    for name in _few([repr(name[:40]) for name in unknown], "members"):
        message = f"no scheduler read {name} of the affinity annotation: delete it"
        yield Finding(CODE, at, message)
    yield from _convert(pod, cx, at, sections)


def _convert(pod: Pod, cx: Context, at: Path, sections: dict[str, Section]) -> Iterator[Finding]:
    edits: list[Edit] = []
    stays, whole, safety = False, chosen(pod, cx), Safety.SAFE
    told: set[tuple[str, Severity]] = set()  # two sections may have the same note
    for name, section in sections.items():
        notes, is_choice = _prepare(name, section, cx, whole=whole)
        if not section.why:
            edits += _edits(pod, name, section)
        left = section.left and not cx.wants_unsafe(CODE)
        stays = stays or bool(section.why) or left
        if section.why or section.left_out or is_choice:
            safety = Safety.CHOICE
        if section.why:
            message = (
                f"{name} of the affinity annotation is not converted: {section.why}; "
                "write it as spec.affinity"
            )
            yield Finding(CODE, at, message, (), Severity.MANUAL, safety)
        else:
            remarks = [section.left_out] if section.left_out else []
            open_ = is_choice or section.left_out or not cx.is_rewritten
            for note in (*remarks, *_few(notes, "values of the affinity annotation")):
                severity = Severity.MANUAL if open_ else Severity.NOTICE
                yield Finding(CODE, at, note, severity=severity)
            severity = Severity.MANUAL if left else Severity.REPAIR
            for note in _few(section.notes, "parts"):
                message = f"affinity annotation: {note}; check that spec.affinity is correct"
                if (message, severity) not in told:
                    told.add((message, severity))
                    yield Finding(CODE, at, message, severity=severity)
    gone = () if stays else (Remove(at),)
    if edits:
        message = (
            "the affinity annotation has had no effect since Kubernetes 1.8; it is spec.affinity "
            "now: move it there"
        )
        yield Finding(CODE, at, message, (*edits, *gone), safety=safety)
    elif gone:
        message = "the affinity annotation adds nothing to spec.affinity: delete it"
        yield Finding(CODE, at, message, gone, safety=safety)


def _few(notes: list[str], of_what: str) -> Iterator[str]:
    """The first few of the notes, each once, and how many more there are: nobody reads them all."""
    distinct = list(dict.fromkeys(notes))
    yield from distinct[:_MOST_NOTES]
    if len(distinct) > _MOST_NOTES:
        yield f"{len(distinct) - _MOST_NOTES} more {of_what} like this"


def _prepare(
    name: str, section: Section, cx: Context, *, whole: Chosen | None
) -> tuple[list[str], bool]:
    """Bring a decoded section into today's words; sets `why` if the API server would refuse it.

    Returns the notes on models, and whether their author should choose.
    """
    notes: list[str] = []
    is_choice = False
    if section.why:
        return notes, is_choice
    if name == "podAntiAffinity":
        affinity.terms_of_no_pods(section)
        affinity.empty_topology_key(section)
    affinity.drop_empty(section)
    affinity.empty_namespaces(section, cx.settings.affinity.empty_namespaces)
    affinity.rename_labels(
        section, lambda key, values: node_labels.current_label(key, values, cx.inventory)
    )
    if name == "nodeAffinity":
        notes, is_choice = _translate_models(section.value, cx, whole=whole)
    section.why = next(affinity.mistakes(name, section.value), "")
    return notes, is_choice


def _translate_models(value: Raw, cx: Context, *, whole: Chosen | None) -> tuple[list[str], bool]:
    every: list[TermChange] = []
    if REQUIRED in value:
        selector = value[REQUIRED]
        terms = _terms(selector)
        changes = (term_change(term, cx, preferred=False, whole=whole) for term in terms)
        every += within(changes, len(terms))
        if every:
            both = zip(terms, every, strict=True)
            selector["nodeSelectorTerms"] = [rewritten(term, each) for term, each in both]
            selector["nodeSelectorTerms"] += [term for each in every for term in each.further]
    kept = []
    listed = value.get(PREFERRED, ())
    changes = (term_change(each.get("preference", {}), cx, preferred=True) for each in listed)
    for preferred, each in zip(listed, within(changes, len(listed)), strict=True):
        every.append(each)
        if each.fate is Fate.CHANGE:
            terms = [rewritten(preferred.get("preference", {}), each), *each.further]
            kept += [{**preferred, "preference": term} for term in terms]
        elif each.fate is Fate.KEEP:
            kept.append(preferred)
    if PREFERRED in value:
        value[PREFERRED] = kept
    is_choice = any(each.is_choice for each in every)
    stays = is_choice and cx.leaves_choices(CODE)
    return [text for each in every for text in notes(each, stays=stays)], is_choice


def _terms(selector: Raw) -> list[Raw]:
    terms: list[Raw] = selector.get("nodeSelectorTerms", [])
    return terms


def _edits(pod: Pod, name: str, section: Section) -> list[Edit]:
    """The edits that take a section over into spec.affinity."""
    affinity.drop_empty(section)
    value = section.value
    at = pod.spec_at / "affinity" / name
    there = pod.affinity.get(name)
    if not value:
        return []
    if there is None:
        return [Set(at, value)]
    if name != "nodeAffinity":
        section.notes.append(f"spec.affinity.{name} is there already and wins")
        return []
    edits: list[Edit] = []
    there = as_map(there)
    required = as_map(there.get(REQUIRED)).get("nodeSelectorTerms")
    if REQUIRED in value and required:
        joined, whole = affinity.and_join(required, _terms(value[REQUIRED]))
        if not whole:
            section.left_out = (
                f"joined with spec.affinity, its required terms are {affinity.TOO_MANY}: only "
                f"{len(joined)} are written, so the pod may wait although a node would fit; "
                "write fewer terms into spec.affinity"
            )
        if joined != required:
            edits.append(Set(at / REQUIRED / "nodeSelectorTerms", joined))
    elif REQUIRED in value:
        edits.append(Set(at / REQUIRED, value[REQUIRED]))
    preferred = set(map(canonical, there.get(PREFERRED) or ()))
    edits += [
        Append(at / PREFERRED, term)
        for term in value.get(PREFERRED, ())
        if canonical(term) not in preferred
    ]
    return edits
