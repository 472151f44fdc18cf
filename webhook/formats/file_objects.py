"""Runs the rules on the objects in one document of a file: its data in, Evaluations out.

An object without a kind, or with a kind that a template produces, is evaluated by its shape: a
guide shows only some fields, a patch only the changed fields, and a chart may choose between a Job
and a Deployment.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from webhook.capacity.legacy_selector import carried
from webhook.core.findings import Severity
from webhook.core.modes import IGNORE, is_opted_out, modes_for
from webhook.core.rule import Context, Trait
from webhook.evaluation.evaluate import (
    Stages,
    evaluate,
    is_pod,
    name_of,
    nothing_is_held,
)
from webhook.evaluation.workloads import objects, templates_of
from webhook.files.results import Located, Plan, Status
from webhook.formats import unfinished
from webhook.formats.opt_outs import is_left_alone
from webhook.kube import quantity
from webhook.kube.pod import SECTIONS, Pod, as_items, as_map
from webhook.kube.pointer import ROOT, Path, value_at
from webhook.rules import (
    MANIFEST,
    POLICY,
    RULES,
    codes,
    driver_profile,
    legacy_name_elsewhere,
    missing_toleration,
    model_label,
    placement,
)
from webhook.templates.placeholders import stands_for_action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.core.findings import Finding
    from webhook.evaluation.evaluate import Evaluation, Held
    from webhook.yamlpatch.documents import Document
    from webhook.yamlpatch.places import Place

    Raw = dict[str, Any]

# Findings about the object itself, not about its pods.
OF_OBJECTS = codes(Trait.OBJECT)
# A toleration only allows more nodes, so it does no harm in a pod without GPU requests.
HARMLESS = frozenset({missing_toleration.CODE})
# Findings about the GPU amounts of a container: the API server rejects an object with half of the
# edits.
AMOUNTS = codes(Trait.AMOUNTS)
_AROUND = Path(("spec", "containers", 0, "resources"))
_STAGES = Stages(MANIFEST, RULES, policy=POLICY)
# For a `resources` without its container.
_OF_AMOUNTS = Stages(repairs=RULES).only(AMOUNTS.__contains__)
_ELSEWHERE = legacy_name_elsewhere.CODE
_POLICY = [rule.CODE for rule in POLICY]


def nothing_is_open(_at: Path) -> bool:
    """No action of a template writes into any object."""
    return False


def evaluations(
    data: Any,
    plan: Plan,
    held: Held = nothing_is_held,
    is_open: Callable[[Path], bool] = nothing_is_open,
) -> list[Evaluation]:
    """The results of the rules on the objects in the data, which is edited.

    `held` returns the reason why no edit may be made at a place. `is_open` returns whether actions
    of a template stand for amounts, labels or whole fields of the object at a place.
    """
    found = list(objects(data))
    if plan.is_values or not any(isinstance(obj.get("kind"), str) for _, obj in found):
        return list(_of_fragment(data, opened(plan, data, is_open=is_open(ROOT)), held))
    plans = [opened(plan, obj, is_open=is_open(at)) for at, obj in found]
    return [
        each
        for (at, obj), its in zip(found, plans, strict=True)
        for each in _of_object(obj, at, its, held)
    ]


def opened(plan: Plan, data: Any, *, is_open: bool = False) -> Plan:
    """The plan for an object: text may be inserted later into its amounts or its node selection.

    No rule then compares its pods with limits, nor with nodes, except in what is certain.
    """
    if not (is_open or unfinished.is_unfinished(data)):
        return plan
    return replace(plan, ignored=(*plan.ignored, *_POLICY), is_open=True)


def context(obj: Raw, plan: Plan) -> Context:
    """The context for this object. Of the modes only `off` counts: the others are for admission.

    A namespace is opted out if it has the label in the inventory or in a file of this run. So is a
    Pod that gets the label from its kustomization.
    """
    said = plan.opted_out
    namespace = said.namespace or as_map(obj.get("metadata")).get("namespace")
    name = namespace if isinstance(namespace, str) and namespace else "default"
    is_left_alone = name in said.namespaces or (said.pods and obj.get("kind") == "Pod")
    return _context(plan, name, is_left_alone=is_left_alone)


@lru_cache(maxsize=64)
def _context(plan: Plan, name: str, *, is_left_alone: bool) -> Context:
    """The context for the objects of a namespace: there are many objects, and few namespaces."""
    known = plan.inventory.namespaces if plan.inventory is not None else {}
    labels = known.get(name, {})
    if is_left_alone:
        labels = {**labels, IGNORE: "true"}
    modes = modes_for(plan.settings.policy, name, labels)
    return Context(
        plan.settings,
        plan.inventory,
        name,
        modes=modes.only_off(),
        namespace_labels=labels,
        pods_opted_out=plan.opted_out.templates,
        today=datetime.now(UTC).date(),
        in_manifest=True,
        is_open=plan.is_open,
        inserted=plan.inserted,
        target=plan.target,
        unsafe=plan.unsafe,
        is_merged=plan.is_patch,
    )


@lru_cache(maxsize=16)
def _asked(plan: Plan) -> Stages:
    """The rules that run on an object with a kind."""
    return _STAGES.only(plan.asks)


def selects_nodes(code: str, at: Path, plan: Plan) -> bool:
    """Whether an edit selects nodes for a pod: the label of placement, or a class with a label."""
    if code == driver_profile.CODE and at[-1:] == ("runtimeClassName",):
        known = plan.inventory.runtime_classes if plan.inventory is not None else {}
        return bool(known.get(plan.settings.drivers.runtime_class))
    return code == placement.CODE


def cause_of(finding: Finding) -> Path:
    """The place of the cause of a finding: for a missing field, the map in which it is missing."""
    return finding.origin.parent if finding.code in HARMLESS else finding.origin


def failures(made: Evaluation, whole: Place) -> Iterator[Located]:
    """Findings for rules that raised an exception; `whole` is the place of the document."""
    for code, error in made.failed:
        message = f"the rule failed and changed nothing: {error!r}; please report it"
        yield Located(code, message, Status.MANUAL, whole, object=made.name)


def right_labels(document: Document, made: Evaluation, plan: Plan) -> Iterator[tuple[int, int]]:
    """The spans of legacy model labels that are right in a pod, because nodes still have them."""
    has_failed = any(code == model_label.CODE for code, _ in made.failed)
    if plan.inventory is None or has_failed or not plan.asks(model_label.CODE):
        return
    for at in made.judged:
        pod = Pod(document.data, at)
        for place in carried(pod, plan.settings.models, plan.inventory):
            yield document.place(place)


def shapes(data: Any, at: Path = ROOT) -> Iterator[tuple[Path, Raw]]:
    """The parts of any data on which rules can run: pods, or else `resources`.

    A pod is a map with `spec.containers`; `resources` is a map with limits or requests.
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
    """An object with a kind.

    If a template produces the kind, its parts are evaluated by shape, too. The meaning of the
    fields of a custom kind is unknown, so its pods are reported by the rule on data. The opt-out
    label of such a pod counts.
    """
    stages, templates = _STAGES, templates_of(obj, plan.settings)
    parts = [] if templates else list(shapes(obj))
    is_made = stands_for_action(obj.get("kind"))
    if is_made:
        outside = [_Outside(rule, parts) if rule.CODE == _ELSEWHERE else rule for rule in MANIFEST]
        stages = replace(stages, manifest=outside)
    cx, name = context(obj, plan), name_of(obj)
    asked = _asked(plan) if stages is _STAGES else stages.only(plan.asks)
    around = _Around()
    made = evaluate(obj, asked, cx, at, held=held, is_left_alone=is_left_alone)
    made.uncompared = _is_uncompared(obj, templates, plan)
    yield made
    if is_opted_out(cx.namespace_labels):
        return
    for place, part in parts:
        if is_made:
            yield _of_part(obj, part, at, place, name, plan, held, around)
        elif is_left_alone(part) and (there := Path((*at, *place))) not in made.left_alone:
            made.left_alone.append(there)


def _is_uncompared(obj: Raw, templates: list[Path], plan: Plan) -> bool:
    """Whether policy rules were wanted for the GPU pods of an object, and could not run."""
    wanted = plan.inventory is not None and (not plan.codes or {*plan.codes} & {*_POLICY})
    pods = (Pod(obj, at) for at in templates if plan.is_open and wanted)
    return any(each.names_gpus(plan.settings) for pod in pods for each in pod.containers)


def _of_fragment(data: Any, plan: Plan, held: Held) -> Iterator[Evaluation]:
    """An object without a kind: a guide shows only some fields, a patch only the changed ones."""
    if not isinstance(data, dict) or not (kind := _kind_of(data)):
        around = _Around()
        for at, part in shapes(data):
            yield _of_part(data, part, ROOT, at, "", plan, held, around)
        return
    data.update(kind)  # so that the rules find the pod; no edit is about these fields
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


def _of_part(  # noqa: PLR0913, PLR0917  # the place, and the input of the rules
    data: Any,
    part: Raw,
    at: Path,
    place: Path,
    name: str,
    plan: Plan,
    held: Held,
    around: _Around,
) -> Evaluation:
    """A pod without a kind, or a `resources` without its container."""
    here = Path((*at, *place))
    pod, stages, skip = part, replace(_STAGES, manifest=()), 0
    if not is_pod(part):
        # A container around it, so that the rules can run; the parent's name is the container's
        # name.
        holder = str(here[-2]) if len(here) > 1 else "?"
        pod = {"spec": {"containers": [{"name": holder, "resources": part}]}}
        stages, skip = _OF_AMOUNTS, len(_AROUND)
        if around.has_label(data, place):
            pod["metadata"] = {"labels": {IGNORE: "true"}}
    cx = context(pod, plan)
    if plan.is_values or "kind" not in as_map(data):
        cx = replace(cx, is_merged=True)
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
    if (
        skip
        and _asks_for_gpus(part, plan)
        and plan.asks(missing_toleration.CODE)
        and not around.tolerates(data, place, cx)
    ):
        made.findings += _untolerated(made)
    return made


def _asks_for_gpus(resources: Raw, plan: Plan) -> bool:
    amounts = (as_map(resources.get(each)).get(plan.settings.gpu_resource) for each in SECTIONS)
    return any(quantity.parse(each) != 0 for each in amounts if each is not None)


def _untolerated(made: Evaluation) -> Iterator[Finding]:
    """The toleration that the repair of a whole pod would add, to be added where the pod is."""
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
    """A kind for a fragment by its shape; empty if its shape is not one with pods."""
    if "kind" in data:
        return {}
    spec = as_map(data.get("spec"))
    if is_pod(data):
        return {"apiVersion": "v1", "kind": "Pod"} if "apiVersion" not in data else {}
    if isinstance(as_map(spec.get("template")).get("spec"), dict) and "apiVersion" not in data:
        return {"apiVersion": "apps/v1", "kind": "Deployment"}
    return {}


class _Around:
    """What is next to the parts of one document; each map is looked at once, however many it has.

    Values of a chart have `podLabels`, `tolerations` and `resources` in this way.
    """

    def __init__(self) -> None:
        self._labelled: dict[int, tuple[Raw, bool]] = {}  # by id(), which so stays taken
        self._tolerant: dict[int, tuple[Raw, bool]] = {}

    def has_label(self, data: Any, at: Path) -> bool:
        """Whether an opt-out label is next to a map on the path to this place."""
        return any(map(self._has_label, _on_the_way(data, at)))

    def _has_label(self, holder: Raw) -> bool:
        if id(holder) not in self._labelled:
            found = any(is_left_alone({"metadata": {"labels": value}}) for value in holder.values())
            self._labelled[id(holder)] = holder, found
        return self._labelled[id(holder)][1]

    def tolerates(self, data: Any, at: Path, cx: Context) -> bool:
        """Whether a toleration of GPU nodes is next to the `resources`."""
        beside = as_map(value_at(data, Path(at[:-1]))) if at else {}
        if id(beside) not in self._tolerant:
            listed = (each for _, each in as_items(beside.get("tolerations")))
            found = any("key" not in e or cx.settings.is_gpu(str(e["key"])) for e in listed)
            self._tolerant[id(beside)] = beside, found
        return self._tolerant[id(beside)][1]


def _on_the_way(data: Any, at: Path) -> Iterator[Raw]:
    """The maps on the path to this place."""
    here = data
    for token in at:
        if isinstance(here, dict):
            yield here
        here = value_at(here, Path((token,)))


class _Outside:
    """A rule on data, without its findings in maps that have the shape of a pod."""

    def __init__(self, rule: Any, parts: list[tuple[Path, Raw]]) -> None:
        self.NAME, self.CODE, self.FACTS = rule.NAME, rule.CODE, rule.FACTS
        self._rule, self._places = rule, [at for at, _ in parts]

    def check(self, obj: Raw, cx: Context) -> Iterator[Finding]:
        for finding in self._rule.check(obj, cx):
            if not any(finding.at[: len(place)] == place for place in self._places):
                yield finding
