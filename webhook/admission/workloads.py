"""Pod templates of workload objects: warnings on /validate, an optional patch on /mutate.

Warnings about the pods go to controllers, which do not show them to users. So the user who applies
the workload gets them. Nothing is denied here, and dry runs are treated like any other request.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from webhook.admission import request_pods
from webhook.admission.review import dump
from webhook.admission.verify import LARGEST_PATCH
from webhook.capacity import daemonsets
from webhook.core.draft import Draft
from webhook.core.edits import Remove, Set
from webhook.core.errors import EditError
from webhook.core.findings import Finding, Severity, Verdict
from webhook.core.modes import Mode
from webhook.evaluation import repair_record, template_updates
from webhook.evaluation.authors import Authors
from webhook.evaluation.evaluate import Asking, Evaluation, Stages, evaluate, nothing_is_over
from webhook.evaluation.known_fields import are_known, known_fields
from webhook.evaluation.matching_templates import MatchingTemplates
from webhook.evaluation.update_fields import Update
from webhook.evaluation.workloads import group_of, has_controller, template_changed, templates_of
from webhook.kube.accounts import is_system
from webhook.kube.pod import as_map, is_for_windows
from webhook.kube.pointer import ROOT, Path, value_at
from webhook.rules import daemonset_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webhook.core.rule import Context, Rule
    from webhook.core.settings import Settings

_OTHER_NOTES = 1024  # bytes in the patch: the place of the record, and the codes of the repair
# The API server rejects it, or the validating webhook of the custom kind.
_FIXED = {("batch", "Job"), ("batch.volcano.sh", "Job"), ("jobset.x-k8s.io", "JobSet")}


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload object that a user applied, and the places of its pod templates.

    `old` is the stored object; None for a new one.
    """

    obj: dict[str, Any]
    templates: tuple[Path, ...]
    namespace: str
    old: dict[str, Any] | None = None
    manager: str = ""  # the field manager that the request names


def workload_of(request: dict[str, Any], settings: Settings) -> Workload | None:
    """The workload that is created, or whose template changes; None if it is not handled.

    Not handled are objects that a controller made (they were checked where a user applied the
    owner), and requests of the control plane and of nodes (kube/accounts.py), which read no
    warnings.
    """
    obj, namespace = request.get("object"), request.get("namespace")
    if not isinstance(obj, dict) or not isinstance(namespace, str) or not namespace:
        return None
    kind = as_map(request.get("kind"))
    if kind.get("kind") != obj.get("kind") or (kind.get("group") or "") != group_of(obj):
        return None
    if kind.get("kind") == "Pod" or request.get("subResource") or not _is_news(request, settings):
        return None
    if has_controller(obj) or _is_of_system(as_map(request.get("userInfo"))):
        return None
    found = (at for at in templates_of(obj, settings) if not _is_for_windows(obj, at))
    templates = tuple(found)
    old = request.get("oldObject") if request.get("operation") == "UPDATE" else None
    old = old if isinstance(old, dict) else None
    manager = request_pods.text(as_map(request.get("options")).get("fieldManager"))
    return Workload(obj, templates, namespace, old, manager) if templates else None


def judge(
    workload: Workload,
    rules: Sequence[Rule],
    policy: Sequence[Rule],
    cx: Context,
    excess: Callable[[], str] = nothing_is_over,
) -> Evaluation:
    """The findings on all templates; nothing is changed, and nothing is denied.

    The policy rules see the templates as repaired, because the pods will be, if the modes allow it.
    The workload is edited here, so it cannot be used afterwards. Several templates with the same
    fault give one finding.
    """
    again = _Again(replace(workload, old=None), cx.settings, notes=False)
    made = _evaluated(workload, Stages(repairs=rules, policy=policy), cx, excess, again)
    told = [as_warning(each, workload.namespace) for each in _once(made.findings)]
    is_daemon_set = workload.obj.get("kind") == "DaemonSet"
    made.findings = list(_of_daemons(told, workload.templates[0])) if is_daemon_set else told
    made.patch = []
    return made


def repair(
    workload: Workload,
    rules: Sequence[Rule],
    cx: Context,
    excess: Callable[[], str] = nothing_is_over,
) -> Evaluation:
    """Repair all templates, in place; the patch is for all of them.

    The changes are recorded in the metadata of the workload: the next update needs the record.
    """
    again = _Again(workload, cx.settings, notes=True)
    made = _evaluated(workload, Stages(repairs=rules), cx, excess, again)
    made.findings = [
        each
        if each.action == "repaired" or each.outlook is not None
        # In the words of /validate: the API server prints the same text once.
        else replace(each, outlook=outlook(each, workload.namespace))
        for each in _once(made.findings)
    ]
    made.patch += again.note(made.patch)
    return made


def _evaluated(
    workload: Workload,
    stages: Stages,
    cx: Context,
    excess: Callable[[], str],
    again: _Again,
) -> Evaluation:
    at = workload.templates
    return evaluate(workload.obj, stages, cx, templates=at, held=None, excess=excess, again=again)


class _Again:
    """Repairs templates that may have been repaired before.

    If changes are not to be recorded, only the findings are computed, unless an earlier repair is
    recorded. If no template is repaired, only a tenant can have written the record.
    """

    def __init__(self, workload: Workload, settings: Settings, *, notes: bool) -> None:
        self._workload, self._settings, self._notes = workload, settings, notes
        self._repaired = False
        self._noted: repair_record.Record = {}

    def __call__(self, rules: Asking, cx: Context, at: Path) -> Verdict:
        obj, before = self._workload.obj, self._before
        if not (self._notes or before):
            return rules.of(Draft(obj), cx, at)
        update = self._update(at)
        known = known_fields(at, obj, update.old) if self._notes else None
        draft = Draft(obj)
        verdict, changed = template_updates.template(draft, update, rules, cx)
        if not are_known(obj, at, known):
            changed = template_updates.taken_back(draft, update, changed or {}, cx.settings)
            findings = tuple(_left_to_pods(verdict.findings, self._workload.namespace))
            verdict = replace(verdict, findings=findings, patch=draft.patch())
        noted = update.noted if changed is None else changed
        self._repaired = self._repaired or changed is not None or noted != before.get(str(at), {})
        self._noted[str(at)] = dict(noted)
        return verdict

    def note(self, patch: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The patch that records the changes, and forgets templates that are no longer there."""
        there = {str(at) for at in self._workload.templates}
        left = self._workload.old is not None and not self._before.keys() <= there
        return _note(self._workload.obj, self._noted, patch) if self._repaired or left else []

    def _update(self, at: Path) -> Update:
        """The template at this place, and what is stored of it, moved to the same place."""
        obj, old, before = self._workload.obj, self._workload.old, self._before
        authors = self._authors
        place = at if old is None else self._places.in_old(at)
        noted = before.get(str(place if self._is_first else at), {})
        if place is None or place not in self._stored:
            old = None
        elif old is not None and place != at:
            old, authors = _moved(old, place, at), (authors[0], Authors({}))
        return Update(at, old, noted, *authors, may_change=not _is_fixed(obj))

    @cached_property
    def _before(self) -> repair_record.Record:
        reads = self._notes or self._settings.workloads.repair
        return repair_record.latest(self._workload.obj, self._workload.old) if reads else {}

    @cached_property
    def _is_first(self) -> bool:
        """Whether the record is that of the stored object: no earlier round of this request."""
        stored = as_map(as_map(self._workload.old).get("metadata"))
        return self._before == repair_record.read(stored)

    @cached_property
    def _places(self) -> MatchingTemplates:
        return MatchingTemplates(self._workload.old or {}, self._workload.obj)

    @cached_property
    def _stored(self) -> frozenset[Path]:
        old = self._workload.old
        return frozenset(templates_of(old, self._settings) if old else ())

    @cached_property
    def _authors(self) -> tuple[Authors, Authors]:
        """The authors of the sent object, and of the stored one."""
        workload = self._workload
        return Authors(workload.obj, workload.manager), Authors(workload.old or {})


def _moved(old: dict[str, Any], place: Path, at: Path) -> dict[str, Any]:
    """An object that has the template of the stored one at another place, and nothing else."""
    held: Any = value_at(old, place)
    for token in reversed(at):
        held = {token: held} if isinstance(token, str) else [*([{}] * token), held]
    moved: dict[str, Any] = held
    return moved


def _left_to_pods(findings: Iterable[Finding], namespace: str) -> Iterator[Finding]:
    """The findings on a template that stays as its author wrote it, in the words of /validate."""
    for each in findings:
        told = as_warning(each, namespace)
        yield replace(told, edits=()) if each.action == "repaired" else told


def _note(
    obj: dict[str, Any], noted: repair_record.Record, patch: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The patch that records the changes of an author's words; other changes need no record."""
    at = ROOT / "metadata" / "annotations" / repair_record.ANNOTATION
    annotations = as_map(as_map(obj.get("metadata")).get("annotations"))
    text = repair_record.written(noted, obj)
    draft = Draft(obj)
    with suppress(EditError):  # metadata of a wrong type, which the API server rejects
        if text and _has_room(patch, text):
            draft.apply([Set(at, text)])
        elif repair_record.ANNOTATION in annotations:
            draft.apply([Remove(at)])
    return draft.patch()


def _has_room(patch: list[dict[str, Any]], text: str) -> bool:
    """Whether the patch with this record is not too large to be sent."""
    try:
        return len(dump([*patch, text])) <= LARGEST_PATCH - _OTHER_NOTES
    except RecursionError:  # outcome.py says so
        return False


def _is_fixed(obj: dict[str, Any]) -> bool:
    """Whether a template of this object cannot change, except for parts while suspended."""
    return (group_of(obj), obj.get("kind")) in _FIXED


def _is_news(request: dict[str, Any], settings: Settings) -> bool:
    match request.get("operation"):
        case "CREATE":
            return True
        case "UPDATE":
            # A migrated manifest of a repaired template may change no field at all.
            old = as_map(request.get("oldObject"))
            return repair_record.is_on(old) or template_changed(old, request["object"], settings)
        case _:
            return False


def _is_of_system(user: dict[str, Any]) -> bool:
    groups = user.get("groups")
    return is_system(
        request_pods.text(user.get("username")),
        filter(None, map(request_pods.text, groups if isinstance(groups, list) else ())),
    )


def _template(obj: dict[str, Any], at: Path) -> dict[str, Any]:
    return as_map(value_at(obj, at))


def _is_for_windows(obj: dict[str, Any], at: Path) -> bool:
    return is_for_windows(as_map(_template(obj, at).get("spec")))


def as_warning(found: Finding, namespace: str) -> Finding:
    """The finding without change or denial, for any mode of its rule."""
    return replace(
        found,
        severity=Severity.MANUAL if found.severity is Severity.DENY else found.severity,
        mode=Mode.WARN if found.mode is Mode.ENFORCE else found.mode,
        outlook=outlook(found, namespace),
    )


_REPAIRED = "its pods will be repaired"


def outlook(found: Finding, namespace: str) -> str:
    """The meaning of this action on a template for its pods; empty if it has none."""
    refused = "may be refused" if found.may_run else "WILL BE REFUSED"
    return {
        "repaired": _REPAIRED,
        "would repair": f"its pods will not be repaired in namespace {namespace}",
        "denied": f"its pods {refused} in namespace {namespace}",
        "would deny": f"its pods will not be refused in namespace {namespace}",
    }.get(found.action, "")


def refusal(findings: Iterable[Finding]) -> str:
    """The meaning of these findings for a pod that is not stored yet; empty if they have none."""
    denials = [each for each in findings if each.action == "denied"]
    if not denials:
        return ""
    may_be = all(each.may_run for each in denials)
    return "the pod may be refused" if may_be else "the pod is refused"


def _of_daemons(found: Sequence[Finding], template: Path) -> Iterator[Finding]:
    """The findings for a DaemonSet, whose controller reads node selection only from the template.

    GPU110 reports what happens to repaired pods, or why there are none.
    """
    code = daemonset_template.CODE
    judged = any(each.code == code for each in found)
    for each in found:
        if each.outlook != _REPAIRED:
            yield each
        elif any(daemonsets.chooses_nodes(edit, template) for edit in each.edits):
            yield replace(each, outlook="too late in its pods: repair the template")
        else:
            yield replace(each, outlook=f"see {code}" if judged else each.outlook)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once: templates often have the same fault and message."""
    kept: dict[tuple[str, str], Finding] = {}
    for each in findings:
        kept.setdefault((each.code, each.message), each)
    return list(kept.values())
