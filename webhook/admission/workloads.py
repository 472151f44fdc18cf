"""Workload objects: whose templates are judged, what is said of them, and what may be mended.

The pods' own warnings go to controllers, which show them to nobody. So whoever applies the workload
hears of them. Nothing is ever refused here, and dry runs are treated like any other request.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from webhook.admission import subject
from webhook.capacity import daemons
from webhook.core.draft import Draft
from webhook.core.edits import Remove, Set
from webhook.core.errors import EditError
from webhook.core.findings import Severity, Verdict
from webhook.core.modes import Mode
from webhook.evaluation import again, record
from webhook.evaluation.authors import Authors
from webhook.evaluation.engine import run
from webhook.evaluation.evaluate import has_label
from webhook.evaluation.workloads import (
    around,
    group_of,
    has_controller,
    template_changed,
    templates_of,
)
from webhook.kube.accounts import is_system
from webhook.kube.pod import Pod, as_map, is_for_windows
from webhook.kube.pointer import ROOT, value_at
from webhook.rules import daemonset_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.core.findings import Finding
    from webhook.core.rule import Context, Rule
    from webhook.core.settings import Settings
    from webhook.kube.pointer import Path

# The API server refuses it, or the validating webhook of whoever brings the kind.
_FIXED = {("batch", "Job"), ("batch.volcano.sh", "Job"), ("jobset.x-k8s.io", "JobSet")}


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload object that somebody applied, and where its pod templates are.

    `old` is the object that is stored; there is none where it is new.
    """

    obj: dict[str, Any]
    templates: tuple[Path, ...]
    namespace: str
    old: dict[str, Any] | None = None
    manager: str = ""  # the field manager that the request names


def workload_of(request: dict[str, Any], settings: Settings) -> Workload | None:
    """The workload that is made, or whose template changes; None if it is none of our business.

    That is so for what a controller made (it is judged where a person applied it), and for what
    the control plane and nodes ask for (kube/accounts.py), which read no warnings.
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
    manager = subject.text(as_map(request.get("options")).get("fieldManager"))
    return Workload(obj, templates, namespace, old, manager) if templates else None


def judge(
    workload: Workload, rules: Sequence[Rule], policy: Sequence[Rule], cx: Context
) -> Verdict:
    """What is to be said of all templates; nothing is to be changed, and nothing is refused.

    The policy sees the templates as repaired, since the pods will be, if the modes allow it. The
    workload's object is written to on the way: it is of no further use. Several templates with
    the same fault are one finding.
    """
    stuck = {
        at for at in workload.templates if Pod(workload.obj, at).asks_under_legacy_name(cx.settings)
    }
    mended = repair(replace(workload, old=None), rules, cx, kept=False)
    found, failed = list(mended.findings), list(mended.failed)
    inside = around(cx, workload.obj)
    repaired = replace(inside, was_stuck=True)
    for at in workload.templates:
        verdict = run(policy, workload.obj, repaired if at in stuck else inside, at, patched=False)
        found += verdict.findings
        failed += verdict.failed
    told: Iterable[Finding] = (as_warning(each, workload.namespace) for each in _once(found))
    if inside.makes_daemons:
        told = _of_daemons(list(told), workload.templates[0])
    return Verdict(tuple(told), workload.obj, [], tuple(failed))


def repair(workload: Workload, rules: Sequence[Rule], cx: Context, *, kept: bool = True) -> Verdict:
    """Repair all templates, in place; the patch is for all of them.

    A template whose pods opt out by their label is left alone, as these pods would be. What was
    changed is noted in the metadata of the workload: the next update is taken apart by it. If
    nothing of it is `kept`, the findings are all that is worked out, unless an earlier repair is
    noted there. Where no template is repaired nobody but a tenant wrote that.
    """
    inside = replace(cx, template=True, workload=workload.obj)  # no repair counts its GPUs
    is_kept = kept or cx.settings.workloads.repair
    before = record.latest(workload.obj, workload.old) if is_kept else {}
    stored = frozenset(templates_of(workload.old, cx.settings) if workload.old else ())
    authors = Authors(workload.obj, workload.manager)
    authors_before = Authors(workload.old or {})
    may_change = not _is_fixed(workload.obj)
    noted: record.Record = {}
    repaired = False
    found: list[Finding] = []
    failed: list[tuple[str, Exception]] = []
    patch: list[dict[str, Any]] = []
    for at in workload.templates:
        if has_label(_template(workload.obj, at)):
            continue
        if not kept and not before:
            verdict, changed = run(rules, workload.obj, inside, at, patched=False), None
        else:
            update = again.Update(
                at,
                workload.old if at in stored else None,
                before.get(str(at), {}),
                authors,
                authors_before,
                may_change,
            )
            verdict, changed = again.template(Draft(workload.obj), update, rules, inside)
        found += verdict.findings
        failed += verdict.failed
        patch += verdict.patch
        repaired = repaired or changed is not None
        noted[str(at)] = before.get(str(at), {}) if changed is None else changed
    if repaired:
        patch += _note(workload.obj, noted)
    return Verdict(_once(found), workload.obj, patch, tuple(failed))


def _note(obj: dict[str, Any], noted: record.Record) -> list[dict[str, Any]]:
    """The patch that notes what was changed, if an author's word was: else nothing comes back."""
    at = ROOT / "metadata" / "annotations" / record.ANNOTATION
    annotations = as_map(as_map(obj.get("metadata")).get("annotations"))
    text = record.written(noted, annotations)
    draft = Draft(obj)
    with suppress(EditError):  # metadata of a wrong type, which the API server refuses
        if text:
            draft.apply([Set(at, text)])
        elif record.ANNOTATION in annotations:
            draft.apply([Remove(at)])
    return draft.patch()


def _is_fixed(obj: dict[str, Any]) -> bool:
    """Whether a template of this object cannot change, but for some of it while it is suspended."""
    return (group_of(obj), obj.get("kind")) in _FIXED


def _is_news(request: dict[str, Any], settings: Settings) -> bool:
    match request.get("operation"):
        case "CREATE":
            return True
        case "UPDATE":
            old = as_map(request.get("oldObject"))
            return template_changed(old, request["object"], settings) or _may_drop_words(
                as_map(old.get("metadata")), as_map(request["object"].get("metadata"))
            )
        case _:
            return False


def _may_drop_words(old: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether another manifest may be applied now, though what is stored stays as it is.

    A tool that takes a legacy word away finds nothing to take away in a template that was repaired.
    """
    if record.ANNOTATION not in as_map(old.get("annotations")):
        return False
    try:
        return old != now
    except RecursionError:  # managedFields that are nested too deeply to be compared
        return True


def _is_of_system(user: dict[str, Any]) -> bool:
    groups = user.get("groups")
    return is_system(
        subject.text(user.get("username")),
        filter(None, map(subject.text, groups if isinstance(groups, list) else ())),
    )


def _template(obj: dict[str, Any], at: Path) -> dict[str, Any]:
    return as_map(value_at(obj, at))


def _is_for_windows(obj: dict[str, Any], at: Path) -> bool:
    return is_for_windows(as_map(_template(obj, at).get("spec")))


def as_warning(found: Finding, namespace: str) -> Finding:
    """The finding where nothing is changed and nothing refused, whatever its rule's mode."""
    return replace(
        found,
        severity=Severity.PERSON if found.severity is Severity.DENY else found.severity,
        mode=Mode.WARN if found.mode is Mode.ENFORCE else found.mode,
        outlook=outlook(found, namespace),
    )


_REPAIRED = "its pods will be repaired"


def outlook(found: Finding, namespace: str) -> str:
    """What this action on a template will mean for its pods; nothing if it means nothing."""
    refused = "may be refused" if found.may_run else "WILL BE REFUSED"
    return {
        "repaired": _REPAIRED,
        "would repair": f"its pods will not be repaired in namespace {namespace}",
        "denied": f"its pods {refused} in namespace {namespace}",
        "would deny": f"its pods will not be refused in namespace {namespace}",
    }.get(found.action, "")


def refusal(findings: Iterable[Finding]) -> str:
    """What these findings on a pod that is not stored yet will mean for it; nothing if nothing."""
    denials = [each for each in findings if each.action == "denied"]
    if not denials:
        return ""
    may_be = all(each.may_run for each in denials)
    return "the pod may be refused" if may_be else "the pod is refused"


def _of_daemons(found: Sequence[Finding], template: Path) -> Iterator[Finding]:
    """The same of a DaemonSet, whose controller reads the choice of nodes from the template alone.

    What becomes of pods that were repaired, or why there are none, GPU110 says.
    """
    code = daemonset_template.CODE
    judged = any(each.code == code for each in found)
    for each in found:
        if each.outlook != _REPAIRED:
            yield each
        elif any(daemons.chooses_nodes(edit, template) for edit in each.edits):
            yield replace(each, outlook="too late in its pods: repair the template")
        else:
            yield replace(each, outlook=f"see {code}" if judged else each.outlook)


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once: templates often share a fault, and the words for it."""
    kept: dict[tuple[str, str], Finding] = {}
    for each in findings:
        kept.setdefault((each.code, each.message), each)
    return tuple(kept.values())
