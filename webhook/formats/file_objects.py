"""Runs the rules on the objects in one document of a file: its data in, Evaluations out.

What has no kind, and what has one that a template makes, counts by its shape: a guide shows only
what matters to it, a patch what it sets, and a chart may choose between a Job and a Deployment.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from webhook.core.findings import Severity
from webhook.core.modes import IGNORE, Mode, Modes, is_opted_out, modes_for
from webhook.core.rule import Context, Trait
from webhook.evaluation.evaluate import (
    Stages,
    evaluate,
    has_label,
    is_pod,
    name_of,
    nothing_is_held,
)
from webhook.evaluation.workloads import objects, templates_of
from webhook.files.results import Located, Status
from webhook.kube.pod import SECTIONS, as_items, as_map
from webhook.kube.pointer import ROOT, Path, value_at
from webhook.rules import (
    ALL,
    MANIFEST,
    POLICY,
    RULES,
    codes,
    legacy_name_elsewhere,
    missing_toleration,
)
from webhook.templates.placeholders import stands_for_action
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.findings import Finding
    from webhook.evaluation.evaluate import Evaluation, Held
    from webhook.files.results import Plan
    from webhook.yamlpatch.places import Place

    Raw = dict[str, Any]

LEFT_ALONE = (
    "the label gpu-webhook.dev/ignore (of the pod, its namespace or its kustomization) says to "
    "leave it alone"
)
# What is about the object itself, and not about its pods.
OF_OBJECTS = codes(Trait.OBJECT)
# A toleration lets a pod onto more nodes and never off one, so it may stand where no GPU is asked.
HARMLESS = frozenset({missing_toleration.CODE})
# What is said of GPUs that a container asks for: half of it is refused by the API server.
AMOUNTS = codes(Trait.AMOUNTS)
_AROUND = Path(("spec", "containers", 0, "resources"))
_STAGES = Stages(MANIFEST, RULES, policy=POLICY)
_OF_AMOUNTS = Stages(repairs=RULES).only(AMOUNTS.__contains__)  # of a bare `resources`
_ELSEWHERE = legacy_name_elsewhere.CODE


def evaluations(data: Any, plan: Plan, held: Held = nothing_is_held) -> list[Evaluation]:
    """What the rules find in the objects of the data, which is edited.

    `held` says of which places no edit may be made, and why.
    """
    found = list(objects(data))
    if any(isinstance(obj.get("kind"), str) for _, obj in found):
        return [each for at, obj in found for each in _of_object(obj, at, plan, held)]
    return list(_of_fragment(data, plan, held))


def context(obj: Raw, plan: Plan) -> Context:
    """What holds for this object. Of the modes only `off` counts: the others are for admission.

    A namespace counts as opted out where its labels are in the inventory, or in a file that is
    read with this one; and so does a Pod that its kustomization gives the label.
    """
    said = plan.opted_out
    namespace = said.namespace or as_map(obj.get("metadata")).get("namespace")
    name = namespace if isinstance(namespace, str) and namespace else "default"
    known = plan.inventory.namespaces if plan.inventory is not None else {}
    labels = known.get(name, {})
    if name in said.namespaces or (said.pods and obj.get("kind") == "Pod"):
        labels = {**labels, IGNORE: "true"}
    modes = modes_for(plan.settings.policy, name, labels)
    off = [r.CODE for r in ALL if modes.of(r) is Mode.OFF]
    return Context(
        replace(plan.settings, scope="all-legacy"),
        plan.inventory,
        name,
        modes=Modes(rules=dict.fromkeys(off, Mode.OFF)),
        namespace_labels=labels,
        pods_opted_out=said.templates,
        today=datetime.now(UTC).date(),
        in_manifest=True,
        target=plan.target,
        unsafe=plan.unsafe,
    )


def is_left_alone(pod: Raw) -> bool:
    """Whether the pod's label says that no repair is wanted, or whether a template decides that."""
    value = as_map(as_map(pod.get("metadata")).get("labels")).get(IGNORE)
    # Without quotes it is no text, and the API server refuses it; what is meant is clear.
    return has_label(pod) or value is True or stands_for_action(value)


def cause_of(finding: Finding) -> Path:
    """Where the cause of a finding is: of what is missing, all that it is missing in."""
    return finding.origin.parent if finding.code in HARMLESS else finding.origin


def failures(made: Evaluation, whole: Place) -> Iterator[Located]:
    """What is to be said of rules that raised; `whole` is where the document is."""
    for code, error in made.failed:
        message = f"the rule failed and changed nothing: {error!r}; please report it"
        yield Located(code, message, Status.MANUAL, whole, object=made.name)


def with_namespaces(plan: Plan, text: str) -> Plan:
    """The plan with the namespaces that the text itself makes, and labels so."""
    names = namespaces_left_alone(text)
    if not names:
        return plan
    said = replace(plan.opted_out, namespaces=plan.opted_out.namespaces | names)
    return replace(plan, opted_out=said)


def namespaces_left_alone(text: str, *, label: bool = False) -> frozenset[str]:
    """The names of the namespaces in a text that have the label, or get it from elsewhere."""
    if "Namespace" not in text or not (label or IGNORE in text):
        return frozenset()
    found = (obj for each in documents.read(text).documents for _, obj in objects(each.data))
    return frozenset(
        str(as_map(obj.get("metadata")).get("name"))
        for obj in found
        if obj.get("kind") == "Namespace" and (label or is_left_alone(obj))
    )


def shapes(data: Any, at: Path = ROOT) -> Iterator[tuple[Path, Raw]]:
    """What a rule can be asked of in any data: pods, or else `resources`.

    A pod is a map with `spec.containers`; `resources` is one with limits or requests.
    """
    if isinstance(data, list):
        for position, item in enumerate(data):
            yield from shapes(item, at / position)
    if not isinstance(data, dict):
        return
    if is_pod(data) or any(isinstance(data.get(section), dict) for section in SECTIONS):
        yield at, data
        return
    for name, value in data.items():
        if isinstance(name, str):
            yield from shapes(value, at / name)


def _of_object(obj: Raw, at: Path, plan: Plan, held: Held) -> Iterator[Evaluation]:
    """What has a kind; if a template makes the kind, what is in it counts by its shape, too.

    Nobody knows what a custom kind makes of its members, so what a pod in it asks for is a matter
    of the rule on data. Its label counts all the same.
    """
    stages, templates = _STAGES, templates_of(obj, plan.settings)
    parts = [] if templates else list(shapes(obj))
    is_made = stands_for_action(obj.get("kind"))
    if is_made:
        outside = [_Outside(rule, parts) if rule.CODE == _ELSEWHERE else rule for rule in MANIFEST]
        stages = replace(stages, manifest=outside)
    cx, name = context(obj, plan), name_of(obj)
    asked = stages.only(plan.asks)
    made = evaluate(obj, asked, cx, at, held=held, is_left_alone=is_left_alone)
    yield made
    if is_opted_out(cx.namespace_labels):
        return
    for place, part in parts:
        if is_made:
            yield _of_part(obj, part, at, place, name, plan, held)
        elif is_left_alone(part) and (there := Path((*at, *place))) not in made.left_alone:
            made.left_alone.append(there)


def _of_fragment(data: Any, plan: Plan, held: Held) -> Iterator[Evaluation]:
    """What has no kind: a document shows only what matters to it, and a patch what it sets."""
    if not isinstance(data, dict) or not (kind := _kind_of(data)):
        for at, part in shapes(data):
            yield _of_part(data, part, ROOT, at, "", plan, held)
        return
    data.update(kind)  # for the rules to know where the pod is; no edit is about it
    made = evaluate(
        data,
        _STAGES.only(lambda code: plan.asks(code) and code not in OF_OBJECTS),
        context(data, plan),
        name="",
        held=held,
        is_left_alone=is_left_alone,
    )
    for member in kind:
        del data[member]
    yield made


def _of_part(  # noqa: PLR0913, PLR0917  # where it is, and what is asked
    data: Any, part: Raw, at: Path, place: Path, name: str, plan: Plan, held: Held
) -> Evaluation:
    """A pod without a kind, or a `resources` of which nobody knows whose it is."""
    here = Path((*at, *place))
    pod, stages, skip = part, replace(_STAGES, manifest=()), 0
    if not is_pod(part):
        # A container around it, for the rules to look at; its name is what holds it.
        holder = str(here[-2]) if len(here) > 1 else "?"
        pod = {"spec": {"containers": [{"name": holder, "resources": part}]}}
        stages, skip = _OF_AMOUNTS, len(_AROUND)
        if _has_label_beside(data, place):
            pod["metadata"] = {"labels": {IGNORE: "true"}}
    cx = context(pod, plan)
    made = evaluate(
        pod,
        stages.only(plan.asks),
        cx,
        here,
        name=name,
        skip=skip,
        templates=[ROOT],
        held=held,
        is_left_alone=is_left_alone,
    )
    if skip and plan.asks(missing_toleration.CODE) and not _tolerates(data, place, cx):
        made.findings += _untolerated(made)
    return made


def _tolerates(data: Any, at: Path, cx: Context) -> bool:
    """Whether a toleration of GPU nodes stands beside the `resources`, as in a chart's values."""
    beside = as_map(value_at(data, Path(at[:-1]))) if at else {}
    listed = (each for _, each in as_items(beside.get("tolerations")))
    return any("key" not in each or cx.settings.is_gpu(str(each["key"])) for each in listed)


def _untolerated(made: Evaluation) -> Iterator[Finding]:
    """What the repair of a whole pod would have added, to be added where the pod is."""
    repaired = next((f for f in made.findings if f.action == "repaired"), None)
    if repaired is not None:
        message = (
            "GPU nodes are usually tainted, and the pod that gets these resources is in another "
            "place: add a toleration of nvidia.com/gpu:NoSchedule there"
        )
        yield replace(
            repaired,
            code=missing_toleration.CODE,
            origin=made.at,
            message=message,
            edits=(),
            touched=(),
            severity=Severity.NOTICE,
        )


def _kind_of(data: Raw) -> Raw:
    """A kind for a fragment by its shape; empty if it has none that a pod is in."""
    if "kind" in data:
        return {}
    spec = as_map(data.get("spec"))
    if is_pod(data):
        return {"apiVersion": "v1", "kind": "Pod"} if "apiVersion" not in data else {}
    if isinstance(as_map(spec.get("template")).get("spec"), dict) and "apiVersion" not in data:
        return {"apiVersion": "apps/v1", "kind": "Deployment"}
    return {}


def _has_label_beside(data: Any, at: Path) -> bool:
    """Whether labels that say to leave the pod alone stand beside what is on the way there.

    So a chart's values have `podLabels` and `resources`.
    """
    beside = (value_at(data, Path(at[:depth])) for depth in range(len(at)))
    return any(
        is_left_alone({"metadata": {"labels": value}})
        for holder in beside
        for value in as_map(holder).values()
    )


class _Outside:
    """A rule on data that is silent of what is a pod by its shape."""

    def __init__(self, rule: Any, parts: list[tuple[Path, Raw]]) -> None:
        self.NAME, self.CODE, self.FACTS = rule.NAME, rule.CODE, rule.FACTS
        self._rule, self._places = rule, [at for at, _ in parts]

    def check(self, obj: Raw, cx: Context) -> Iterator[Finding]:
        for finding in self._rule.check(obj, cx):
            if not any(finding.at[: len(place)] == place for place in self._places):
                yield finding
