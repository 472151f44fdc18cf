"""The affinity annotation of 1.2-1.7, read as its scheduler did, checked as the current API does.

`decode` follows Go's encoding/json (kube/go_json.py) into the types of 1.5 (pkg/api/types.go
`Affinity`), so unknown members are ignored. `mistakes` has the rules of ValidatePodSpec, of 1.5 and
of now (1.5.1 validation.go 1906-2120, 1.35 validation.go 4956-5030), so that the API server never
rejects what passes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from webhook.kube import go_json, labels
from webhook.kube.canonical import canonical
from webhook.kube.go_json import Mistake
from webhook.kube.pod import PREFERRED, REQUIRED, Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


SECTIONS = ("nodeAffinity", "podAffinity", "podAntiAffinity")

# Commented out in every release: no scheduler reads it, but many examples still copy it.
NEVER_SHIPPED = "requiredDuringSchedulingRequiredDuringExecution"
# Of a cross product: more terms could be neither read nor scheduled.
MOST_TERMS = 100
MOST_EXPRESSIONS = 2000
TOO_MANY = f"over {MOST_TERMS} terms or {MOST_EXPRESSIONS} expressions"
_LARGEST_WEIGHT = 100
_HOSTNAME = "kubernetes.io/hostname"

REQUIREMENT = {"key": str, "operator": str, "values": [str]}
_NODE_TERM = {"matchExpressions": [REQUIREMENT]}
_LABEL_SELECTOR = {"matchLabels": {"*": str}, "matchExpressions": [REQUIREMENT]}
_POD_TERM = {"labelSelector": _LABEL_SELECTOR, "namespaces": [str], "topologyKey": str}
POD_AFFINITY = {
    REQUIRED: [_POD_TERM],
    PREFERRED: [{"weight": go_json.INT32, "podAffinityTerm": _POD_TERM}],
}
_SHAPES: dict[str, Any] = {
    "nodeAffinity": {
        REQUIRED: {"nodeSelectorTerms": [_NODE_TERM]},
        PREFERRED: [{"weight": go_json.INT32, "preference": _NODE_TERM}],
    },
    "podAffinity": POD_AFFINITY,
    "podAntiAffinity": POD_AFFINITY,
}


@dataclass(slots=True)
class Section:
    """One of nodeAffinity, podAffinity and podAntiAffinity, in its current spelling.

    `why` is the reason if the section cannot be converted; `notes` are the ignored parts; `left` is
    True if a part without a current form stays in the annotation; `left_out` lists the terms that
    are not converted.
    """

    value: Raw = field(default_factory=dict)
    why: str = ""
    notes: list[str] = field(default_factory=list)
    left: bool = False
    left_out: str = ""


def decode(text: object) -> tuple[dict[str, Section], list[str]]:
    """The sections of an affinity annotation, and its other members, which no scheduler read.

    Raises Mistake if the whole text is unreadable. An empty text and `null` mean no affinity.
    """
    if not isinstance(text, str):
        raise Mistake("it is not a string")
    value = go_json.loads(text) if text else None
    if value is None:
        return {}, []
    if not isinstance(value, dict):
        raise Mistake("it is not a JSON object")
    sections: dict[str, Section] = {}
    unknown: list[str] = []
    names = {name.lower(): name for name in SECTIONS}
    for key, raw in value.items():
        name = names.get(key.lower())
        if name in sections:
            raise Mistake(f"{name} occurs twice")
        if name is None:
            unknown.append(key)
        elif raw is not None:
            sections[name] = _section(raw, name)
    return sections, unknown


def _section(raw: object, name: str) -> Section:
    section = Section()
    try:
        # Members that the types of 1.5 did not have are ignored.
        section.value = go_json.read(raw, _SHAPES[name], name, partial(_note_unknown, section))
    except Mistake as mistake:
        section.why = str(mistake)
    return section


def _note_unknown(section: Section, where: str, key: str) -> None:
    if key.lower() == NEVER_SHIPPED.lower():
        section.left = True
        section.notes.append(f"{where}.{NEVER_SHIPPED} was never implemented")
    else:
        section.notes.append(f"{key[:40]!r} in {where} was never read")


def empty_namespaces(section: Section, meaning: str) -> None:
    """Replace `namespaces: []` by its meaning: all namespaces (1.3-1.5), or the pod's (1.6+)."""
    for term in pod_terms(section.value):
        if term.get("namespaces") == []:
            del term["namespaces"]
            if meaning == "all":
                term["namespaceSelector"] = {}
            section.notes.append(
                "`namespaces: []` is taken for "
                + ("all namespaces" if meaning == "all" else "the pod's own namespace")
            )


def empty_topology_key(section: Section) -> None:
    """Set an empty topologyKey of preferred anti-affinity terms (any domain) to hostname."""
    for preferred in section.value.get(PREFERRED, ()):
        term = preferred.get("podAffinityTerm")
        if term is not None and not term.get("topologyKey"):
            term["topologyKey"] = _HOSTNAME
            section.notes.append(f"an empty topologyKey is taken for {_HOSTNAME}")


def terms_of_no_pods(section: Section) -> None:
    """Leave out preferred anti-affinity without a podAffinityTerm.

    1.5 accepted it: the empty term selects no pod (validation.go, validatePodAffinityTerm with
    allowEmptyTopologyKey).
    """
    preferred = section.value.get(PREFERRED, [])
    kept = [each for each in preferred if "podAffinityTerm" in each]
    if len(kept) < len(preferred):
        section.value[PREFERRED] = kept
        section.left = True
        section.notes.append(
            "a preferred term has no podAffinityTerm, so it selected no pod: write one"
        )


def rename_labels(section: Section, current_label: Callable[[str, Sequence[str]], str]) -> None:
    """Replace node label keys by what `current_label` returns for the key and its values."""
    for term in (*node_terms(section.value), *pod_terms(section.value)):
        if "topologyKey" in term:
            term["topologyKey"] = current_label(term["topologyKey"], ())
        for requirement in term.get("matchExpressions", ()):
            if "key" in requirement:
                values = requirement.get("values", ())
                requirement["key"] = current_label(requirement["key"], values)


def node_terms(value: Raw) -> list[Raw]:
    """The node selector terms of a decoded nodeAffinity, required ones first."""
    required = value.get(REQUIRED)
    terms = required.get("nodeSelectorTerms", []) if isinstance(required, dict) else []
    return [
        *terms,
        *(each["preference"] for each in value.get(PREFERRED, ()) if "preference" in each),
    ]


def pod_terms(value: Raw) -> list[Raw]:
    """The terms of a decoded podAffinity or podAntiAffinity, required ones first."""
    required = value.get(REQUIRED)
    return [
        *(required if isinstance(required, list) else ()),
        *(
            each["podAffinityTerm"]
            for each in value.get(PREFERRED, ())
            if "podAffinityTerm" in each
        ),
    ]


def drop_empty(section: Section) -> None:
    """Leave out empty lists: they have no meaning."""
    section.value = {key: item for key, item in section.value.items() if item != []}


def mistakes(name: str, value: Raw) -> Iterator[str]:
    """Why the API server, of that time or now, rejects this section."""
    if name == "nodeAffinity":
        yield from _node_affinity(value)
    else:
        yield from _pod_affinity(value)


def _node_affinity(value: Raw) -> Iterator[str]:
    if REQUIRED in value:
        terms = value[REQUIRED].get("nodeSelectorTerms")
        if not terms:
            yield f"{REQUIRED} has no nodeSelectorTerms"
        for term in terms or ():
            yield from _node_term(term)
    for preferred in value.get(PREFERRED, ()):
        yield from _weight(preferred)
        yield from _node_term(preferred.get("preference", {}))


def _node_term(term: Raw) -> Iterator[str]:
    if not term.get("matchExpressions"):
        yield "a term has no matchExpressions"
    for requirement in term.get("matchExpressions", ()):
        # Kubernetes accepts bad preferred values, but its scheduler then fails the whole pod.
        yield from _requirement(requirement, {**_SET_OPERATORS, "Gt": _one, "Lt": _one})


def _weight(preferred: Raw) -> Iterator[str]:
    if not 1 <= preferred.get("weight", 0) <= _LARGEST_WEIGHT:
        yield "a weight is not between 1 and 100"


def _some(values: list[str]) -> bool:
    return len(values) > 0


def _none(values: list[str]) -> bool:
    return not values


def _one(values: list[str]) -> bool:
    return len(values) == 1


_SET_OPERATORS: dict[str, Callable[[list[str]], bool]] = {
    "In": _some,
    "NotIn": _some,
    "Exists": _none,
    "DoesNotExist": _none,
}


def _requirement(
    requirement: Raw, operators: dict[str, Callable[[list[str]], bool]]
) -> Iterator[str]:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    values = requirement.get("values", [])
    if not labels.is_key(key):
        yield f"{key[:80]!r} is not a label key"
    if operator not in operators:
        yield f"{operator[:40]!r} is not an operator"
    elif not operators[operator](values):
        yield f"{operator} cannot have {len(values)} values"
    for value in values:
        if not labels.is_value(value):
            yield f"{value[:80]!r} is not a label value"


def _pod_affinity(value: Raw) -> Iterator[str]:
    for term in value.get(REQUIRED, ()):
        yield from _pod_term(term)
    for preferred in value.get(PREFERRED, ()):
        yield from _weight(preferred)
        if "podAffinityTerm" not in preferred:
            yield "a preferred term has no podAffinityTerm"
        else:
            yield from _pod_term(preferred["podAffinityTerm"])


def _pod_term(term: Raw) -> Iterator[str]:
    if not labels.is_key(term.get("topologyKey", "")):
        yield f"{term.get('topologyKey', '')[:80]!r} is not a topologyKey"
    for namespace in term.get("namespaces", ()):
        if not labels.is_dns_label(namespace):
            yield f"{namespace[:80]!r} is not a namespace"
    selector = term.get("labelSelector", {})
    for key, value in selector.get("matchLabels", {}).items():
        if not labels.is_key(key) or not labels.is_value(value):
            yield f"{key[:80]!r}: {value[:80]!r} is not a label"
    for requirement in selector.get("matchExpressions", ()):
        yield from _requirement(requirement, _SET_OPERATORS)


def and_join(terms: Sequence[Raw], others: Sequence[Raw]) -> tuple[list[Raw], bool]:
    """Node selector terms that match what a term of both sides matches: their cross product.

    Terms are joined by OR, so appending would allow more nodes. Equal expressions occur once. An
    empty term still matches nothing. At most 100 terms of each side and of the product are joined,
    and at most 2,000 expressions, but always one term. The second value is True if these are all.
    If not, the terms match fewer nodes than they should, and no others.
    """
    left, right = _distinct(terms), _distinct(others)
    if _imply(left, right):
        return list(terms), True
    joined: dict[tuple[str, ...], Raw] = {}
    expressions = 0
    for term in left[:MOST_TERMS]:
        for other in [_NO_TERM] if _is_empty(term.raw) else right[:MOST_TERMS]:
            more = {key: e for key, e in other.expressions.items() if key not in term.expressions}
            key = (term.rest, *term.order, *more)
            if key in joined:
                continue
            expressions += len(term.order) + len(more)
            if joined and (len(joined) == MOST_TERMS or expressions > MOST_EXPRESSIONS):
                return list(joined.values()), False
            joined[key] = _both(term.raw, more.values())
    return list(joined.values()), len(left) <= MOST_TERMS and len(right) <= MOST_TERMS


@dataclass(frozen=True, slots=True)
class _Term:
    """A node selector term, with its expressions by their canonical texts."""

    raw: Raw
    rest: str  # the rest of the term
    order: tuple[str, ...]
    expressions: dict[str, Raw]


def _distinct(terms: Sequence[Raw]) -> list[_Term]:
    found: dict[tuple[str, ...], _Term] = {}
    for raw in terms:
        rest = canonical({key: item for key, item in raw.items() if key != "matchExpressions"})
        expressions = raw.get("matchExpressions") or ()
        order = tuple(map(canonical, expressions))
        by_text = dict(zip(order, expressions, strict=True))
        found.setdefault((rest, *order), _Term(raw, rest, order, by_text))
    return list(found.values())


_NO_TERM = _Term({}, "", (), {})


def _is_empty(term: Raw) -> bool:
    return not term.get("matchExpressions") and not term.get("matchFields")


def _imply(left: list[_Term], right: list[_Term]) -> bool:
    """Whether each left term that matches anything has all expressions of one right term.

    If there are too many pairs to compare, only equal expressions count.
    """
    wanted = {frozenset(each.expressions) for each in right}
    few = len(left) * len(wanted) <= MOST_TERMS**2
    return all(
        _is_empty(each.raw)
        or (has := frozenset(each.expressions)) in wanted
        or (few and any(other <= has for other in wanted))
        for each in left
    )


def _both(term: Raw, more: Iterable[Raw]) -> Raw:
    expressions = [*(term.get("matchExpressions") or ()), *more]
    return {**term, "matchExpressions": expressions} if expressions else dict(term)
