"""The CEL conditions that keep unrelated objects away from the webhook (KEP-3716).

The API server evaluates them in process, so requests for plain pods never wait for the webhook,
even when it is down. They are made from the settings: a name that the settings add must be added
here, too.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from webhook.core.legacy_names import AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION
from webhook.core.object_size import MOST_ANNOTATION_BYTES
from webhook.core.settings import CustomKind, Settings
from webhook.evaluation.repair_record import ANNOTATION
from webhook.evaluation.workloads import BUILT_IN, custom_kinds, tokens
from webhook.kube.accounts import SYSTEM_GROUPS, SYSTEM_PREFIXES, SYSTEM_USERS
from webhook.kube.pod import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable


_CONTAINERS = (
    "({pod}.spec.containers + (has({pod}.spec.initContainers) ? {pod}.spec.initContainers : []))"
)
# The cost of CEL is limited (RuntimeCELCostBudgetMatchConditions). A condition above the limit is
# an error, and with `failurePolicy: Ignore` the object is admitted without the webhook. So a
# condition does not look at all names of a larger object; the webhook gets it, and counts itself
# (core/object_size.py).
_MOST_CONTAINERS = 64  # for containers, and as many for init containers
_MOST_NAMES = 32  # in the limits, and in the requests, of one container
_TERMS = (
    "has({pod}.spec.affinity) && has({pod}.spec.affinity.nodeAffinity) && (\n"
    "  (has({required})\n  && {required}.nodeSelectorTerms.exists(t, {expressions}))\n"
    "  || (has({preferred})\n  && {preferred}.exists(p, {preference})))"
)


_OF_PODS = [
    {
        "name": "is-no-mirror-pod",
        "expression": "!has(object.metadata.annotations)\n"
        '|| !("kubernetes.io/config.mirror" in object.metadata.annotations)',
    },
    {
        "name": "is-no-windows-pod",
        "expression": '!has(object.spec.os) || object.spec.os.name != "windows"',
    },
]
# The annotation alone proves nothing: any user can write it, to get around a limit.
_MADE_BY_NO_NODE = (
    "!has(object.metadata.annotations)\n"
    '|| !("kubernetes.io/config.mirror" in object.metadata.annotations)\n'
    '|| !has(request.userInfo.groups) || !("system:nodes" in request.userInfo.groups)'
)
_IDENTIFIER = re.compile(r"(?!(in|true|false|null)$)[A-Za-z_][A-Za-z0-9_]*")  # not a keyword of CEL


def entries(settings: Settings) -> dict[str, dict[str, list[Any]]]:
    """What follows from the settings in each entry of the webhook configurations."""
    rules = workload_rules(settings)
    repaired = workload_match_conditions(settings, repaired=True)
    return {
        "repair.gpu-webhook.dev": {"matchConditions": match_conditions(settings)},
        "policy.gpu-webhook.dev": {"matchConditions": pod_policy_match_conditions(settings)},
        "workloads.gpu-webhook.dev": {
            "rules": rules,
            "matchConditions": workload_match_conditions(settings),
        },
        "workload-repair.gpu-webhook.dev": {"rules": rules, "matchConditions": repaired},
    }


def match_conditions(settings: Settings) -> list[dict[str, str]]:
    """The matchConditions of the entry for /mutate, for these settings.

    An update reaches the webhook only if a legacy word is to be translated, or put back, again.
    """
    return [
        *_OF_PODS,
        {"name": "concerns-gpus", "expression": _concerns_gpus(settings, "object")},
        {"name": "is-new-or-brings-legacy-words", "expression": _brings_legacy_words(settings)},
    ]


def pod_policy_match_conditions(settings: Settings) -> list[dict[str, str]]:
    """The matchConditions of the entry for /validate of pods: only pods that request GPUs.

    Legacy names are not included: pods with these were repaired before, or never run. Pods for
    Windows are included: the scheduler does not check `spec.os`.
    """
    names = (settings.gpu_resource, *settings.gpu_resources)
    return [
        {"name": "is-no-mirror-pod-of-a-node", "expression": _MADE_BY_NO_NODE},
        {"name": "asks-for-gpus", "expression": _names_resource("object", names)},
    ]


def workload_rules(settings: Settings) -> list[dict[str, Any]]:
    """The rules of the entry for workloads: the built-in kinds, and the kinds in the settings.

    The plural of a custom kind is not known here; the matchConditions check its kind.
    """
    plurals: dict[str, list[str]] = {}
    for group, _, plural, _ in BUILT_IN:
        plurals.setdefault(group, []).append(plural)
    # v1: the API server converts other versions to it.
    rules = [(group, "v1", resources) for group, resources in plurals.items()]
    groups = sorted({each.group or "*" for each in settings.workloads.kinds})
    rules += [(group, "*", ["*"]) for group in groups]
    return [
        {
            "apiGroups": [group],
            "apiVersions": [version],
            "resources": resources,
            "operations": ["CREATE", "UPDATE"],
            "scope": "Namespaced",
        }
        for group, version, resources in rules
    ]


def workload_match_conditions(
    settings: Settings, *, repaired: bool = False
) -> list[dict[str, str]]:
    """The matchConditions of the entry for workloads; the webhook checks the objects again.

    With `repaired` templates, an author may remove a word that is no longer stored, or the last
    GPU. The template may also have legacy words from a time without repairs.
    """
    kinds = custom_kinds(settings)
    news, concerns = _has_new_template(kinds), _template_concerns_gpus(settings, kinds)
    if repaired:
        news += f"\n|| {_is_noted()}"
        concerns += f'\n|| (request.operation == "UPDATE" && {_is_noted()})'
    return [
        {"name": "asked-by-no-part-of-the-system", "expression": _asked_by_a_user()},
        {
            "name": "made-by-no-controller",
            "expression": "!has(object.metadata.ownerReferences)\n"
            "|| !object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)",
        },
        {"name": "has-a-new-template", "expression": news},
        {"name": "concerns-gpus", "expression": concerns},
    ]


def missed_names(settings: Settings) -> list[str]:
    """Names in the settings that the shipped matchConditions (the default ones) do not cover."""
    shipped = Settings()
    names = [name for name in settings.legacy_resources if name not in shipped.legacy_resources]
    names += [
        name
        for name in (settings.gpu_resource, *settings.gpu_resources)
        if name not in shipped.gpu_resources and (name.endswith("*") or not shipped.is_gpu(name))
    ]
    if settings.models.legacy_label != shipped.models.legacy_label:
        names.append(settings.models.legacy_label)
    names += [each.kind for each in settings.workloads.kinds]
    return sorted(set(names))


def _text(value: str) -> str:
    return json.dumps(value)


def _concerns_gpus(settings: Settings, pod: str) -> str:
    """Whether this pod names a GPU or the legacy label, in any field that a rule reads."""
    names = (*settings.legacy_resources, settings.gpu_resource, *settings.gpu_resources)
    return "\n|| ".join(
        (
            _names_resource(pod, names),
            _in_map(f"{pod}.spec", "nodeSelector", settings.models.legacy_label),
            _in_annotation(pod, settings.models.legacy_label),
            _in_affinity(pod, settings.models.legacy_label),
        )
    )


def _brings_legacy_words(settings: Settings) -> str:
    """Whether an update has what the repair of the stored pod removed, or lacks what it added.

    All repairs except those of tolerations are made only if a legacy resource is named. An amount
    of 0 may be stored, and then the webhook gets any other change of the spec.
    """
    there, gone = "object", "oldObject"
    named = _has_container(there, settings.legacy_resources)
    stored = _has_container(gone, settings.legacy_resources, above_zero=True)
    label = settings.models.legacy_label  # controllers may add it to a pod with scheduling gates
    in_selector = (_in_map(f"{pod}.spec", "nodeSelector", label) for pod in (there, gone))
    in_affinity = (_in_affinity(pod, label) for pod in (there, gone))
    annotations = (_in_tolerations(pod) for pod in (there, gone))
    brought = [
        f"({there}.spec != {gone}.spec\n  && {named}\n  && !{stored})",
        *("({}\n  && !{})".format(*each) for each in (in_selector, in_affinity, annotations)),
    ]
    taints = (each.key for each in settings.taints)
    names = (settings.gpu_resource, *settings.gpu_resources, *taints)
    brought.append(f"({_tolerates(gone, names)}\n  && !{_tolerates(there, names)})")
    return "\n|| ".join(['request.operation == "CREATE"', *brought])


def _in_tolerations(pod: str) -> str:
    return _in_map(f"{pod}.metadata", "annotations", TOLERATIONS_ANNOTATION)


def _tolerates(pod: str, names: Iterable[str]) -> str:
    tests = " || ".join(_named("t.key", names))
    at = f"{pod}.spec.tolerations"
    return f"(has({at}) && {at}.exists(t, has(t.key) && ({tests})))"


def _named(value: str, names: Iterable[str]) -> list[str]:
    unique = sorted(set(names))
    tests = [f"{value} in {_list(name for name in unique if not name.endswith('*'))}"]
    tests += [f"{value}.startsWith({_text(name[:-1])})" for name in unique if name.endswith("*")]
    return tests


def _names_resource(pod: str, names: Iterable[str]) -> str:
    """Whether a container names one of these, or the pod has more than may be checked."""
    inits = f"{pod}.spec.initContainers"
    return (
        f"{pod}.spec.containers.size() > {_MOST_CONTAINERS}\n"
        f"|| (has({inits}) && {inits}.size() > {_MOST_CONTAINERS})\n"
        f"|| {_has_container(pod, names, most=_MOST_NAMES)}"
    )


def _has_container(
    pod: str, names: Iterable[str], *, most: int = 0, above_zero: bool = False
) -> str:
    test = " || ".join(_named("k", names))
    found = []
    for section in SECTIONS:
        at = f"c.resources.{section}"
        # The API server writes a quantity of nothing as "0".
        wanted = f'({test}) && {at}[k] != "0"' if above_zero else test
        has_key = f"{at}.exists(k, {wanted})"
        if most:
            has_key = f"({at}.size() > {most} || {has_key})"
        found.append(f"(has({at}) && {has_key})")
    sections = "\n  || ".join(found)
    return f"{_CONTAINERS.format(pod=pod)}.exists(c, has(c.resources) && (\n  {sections}))"


def _in_map(holder: str, member: str, key: str) -> str:
    return f"(has({holder}.{member}) && {_text(key)} in {holder}.{member})"


def _in_annotation(pod: str, label: str) -> str:
    annotations, key = f"{pod}.metadata.annotations", _text(AFFINITY_ANNOTATION)
    # The cost of contains() grows with the text; the API server rejects a pod with a longer one. An
    # object always has metadata, a template may have none.
    there = (
        f"has({annotations})" if pod == "object" else f"has({pod}.metadata) && has({annotations})"
    )
    value = f"{annotations}[{key}]"
    return (
        f"({there} && {key} in {annotations}\n"
        f"  && {value}.size() <= {MOST_ANNOTATION_BYTES} && {value}.contains({_text(label)}))"
    )


def _in_affinity(pod: str, label: str) -> str:
    node_affinity = f"{pod}.spec.affinity.nodeAffinity"
    required = f"{node_affinity}.requiredDuringSchedulingIgnoredDuringExecution"
    preferred = f"{node_affinity}.preferredDuringSchedulingIgnoredDuringExecution"
    key = _text(label)

    def names(term: str) -> str:
        has, listed = f"has({term}.matchExpressions)", f"{term}.matchExpressions"
        return f"{has} && {listed}.exists(e, e.key == {key})"

    terms = _TERMS.format(
        pod=pod,
        required=required,
        preferred=preferred,
        expressions=names("t"),
        preference=names("p.preference"),
    )
    return f"({terms})"


def _asked_by_a_user() -> str:
    user = "request.userInfo.username"
    users = ",\n  ".join(map(_text, SYSTEM_USERS))
    tests = [f"{user} in [\n  {users}]"]
    tests += [f"{user}.startsWith({_text(prefix)})" for prefix in SYSTEM_PREFIXES]
    tests.append(
        f"(has(request.userInfo.groups)\n"
        f"  && request.userInfo.groups.exists(g, g in {_list(SYSTEM_GROUPS)}))"
    )
    return "!(" + "\n|| ".join(tests) + ")"


def _has_new_template(kinds: tuple[CustomKind, ...]) -> str:
    """True if a template may have changed; for a custom kind, the field that contains it.

    Only the webhook can see changes of replicas next to the templates of a custom kind.
    """
    cases = []
    for each in kinds:
        members = sorted({path[0] for path in map(tokens, each.templates) if path})
        changed = (
            f"{_held(member, 'object')} != {_held(member, 'oldObject')}" for member in members
        )
        cases.append((_is_kind(each), f"({' || '.join(changed) or 'false'})"))
    for at, test in _built_in_places():
        cases.append((test, f"object.{at} != oldObject.{at}"))
    return f'request.operation == "CREATE"\n|| {_first(cases, "false")}'


def _is_noted() -> str:
    return _in_map("oldObject.metadata", "annotations", ANNOTATION)


def _template_concerns_gpus(settings: Settings, kinds: tuple[CustomKind, ...]) -> str:
    """True if a template names a GPU. Each * of a pointer makes a list of lists."""
    paths = {kind: [_path(pointer) for pointer in kind.templates] for kind in kinds}
    depth = max((path.count("*") for each in paths.values() for path in each), default=0)
    cases = []
    for kind in kinds:
        lists = [
            _nested(_templates("object", path), depth - path.count("*")) for path in paths[kind]
        ]
        cases.append((_is_kind(kind), "(" + ("\n    + ".join(lists) or "[]") + ")"))
    for at, test in _built_in_places():
        cases.append((test, _nested(f"object.{at}", depth + 1)))
    opened = "".join(f".exists(list{n}, list{n}" for n in range(depth))
    concerns = _concerns_gpus(settings, "pod").replace("\n", "\n  ")
    return (
        f"{_first(cases, '[]')}{opened}.exists(pod,\n"
        f"  has(pod.spec) && has(pod.spec.containers) && (\n  {concerns}))" + ")" * depth
    )


def _path(pointer: str) -> tuple[str, ...]:
    """The tokens of a pointer.

    A position stands for any: CEL must know in advance whether it is a list.
    """
    return tuple("*" if token.isdecimal() else token for token in tokens(pointer))


def _nested(value: str, depth: int) -> str:
    return "[" * depth + value + "]" * depth


def _templates(here: str, path: tuple[str, ...]) -> str:
    """A list with the template that the path leads to; for each * one around it."""
    if not path:
        return f"[{here}]"
    name, deeper = path[0], path[1:]
    if name == "*":
        # A variable for each depth: an inner one would hide an outer one with the same name.
        key, value = f"key{len(path)}", f"value{len(path)}"
        values = f"(type({here}) == map ? {here}.map({key}, {here}[{key}]) : {here})"
        return f"{values}.map({value}, {_templates(value, deeper)})"
    there, member = _member(here, name)
    return f"({there} ? {_templates(member, deeper)} : [])"


def _member(here: str, name: str) -> tuple[str, str]:
    """The test whether the field exists, and the expression for the field."""
    if _IDENTIFIER.fullmatch(name):
        return f"has({here}.{name})", f"{here}.{name}"
    return f"({_text(name)} in {here})", f"{here}[{_text(name)}]"


def _held(name: str, holder: str) -> str:
    there, member = _member(holder, name)
    return f"({there} ? [{member}] : [])"


def _built_in_places() -> list[tuple[str, str]]:
    """The CEL path of the template of the built-in kinds, and the test for these kinds."""
    places: dict[str, list[str]] = {}
    for _, kind, _, at in BUILT_IN:
        places.setdefault(".".join(map(str, at)), []).append(kind)
    return [(at, f"request.kind.kind in {_list(kinds)}") for at, kinds in places.items()]


def _is_kind(custom: CustomKind) -> str:
    test = f"request.kind.kind == {_text(custom.kind)}"
    return f"{test} && request.kind.group == {_text(custom.group)}" if custom.group else test


def _first(cases: Iterable[tuple[str, str]], otherwise: str) -> str:
    """The value of the first case whose test holds."""
    return "(" + "".join(f"{test} ? {value}\n  : " for test, value in cases) + f"{otherwise})"


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"
