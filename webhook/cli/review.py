"""`gpu-webhook review`: shows how the webhook would change or deny the pods of a file."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from webhook.admission import request_pods, workloads
from webhook.capacity.runtime_class import as_admitted
from webhook.cli import inputs, manifests
from webhook.core.errors import InputError
from webhook.core.findings import Finding, Severity, Verdict
from webhook.core.modes import IGNORE, Mode, modes_for
from webhook.core.rule import Context
from webhook.evaluation.evaluate import Stages, evaluate
from webhook.evaluation.workloads import objects, templates_of
from webhook.kube.pod import Pod, as_map
from webhook.kube.pointer import ROOT
from webhook.reports.escaping import visible
from webhook.reports.printing import PRINTED, as_yaml
from webhook.rules import GUARD, POLICY, RULES, leak_guard

if TYPE_CHECKING:
    from types import SimpleNamespace

    from webhook.capacity.nodes import Inventory
    from webhook.core.settings import Settings

_NOTHING_FOUND, _REPAIRED, _MANUAL = 0, 2, 3
_WORDS = {_NOTHING_FOUND: "clean", _REPAIRED: "repaired", _MANUAL: "needs manual changes"}


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One object of the file, and the result for it."""

    name: str
    verdict: Verdict
    opted_out: bool = False
    was_stuck: bool = False

    @property
    def word(self) -> str:
        """The result in words."""
        if self.opted_out and not self.verdict.findings:
            return f"left alone ({IGNORE})"
        return _WORDS[self.code]

    @property
    def code(self) -> int:
        """The exit code: counted, excepted and informational findings do not count.

        A repair that the modes prevent needs manual changes.
        """
        counted = [each for each in self.verdict.findings if _counts(each)]
        if self.verdict.failed or any(each.action != "repaired" for each in counted):
            return _MANUAL
        if any(each.severity is Severity.MANUAL for each in counted):
            return _MANUAL
        return _REPAIRED if counted else _NOTHING_FOUND


def _counts(found: Finding) -> bool:
    return (
        found.mode is not Mode.AUDIT
        and not found.exception
        and found.severity is not Severity.NOTICE
    )


def run(args: SimpleNamespace) -> int:
    """Review the file; the exit code is that of the worst object."""
    settings, inventory = inputs.settings(args), inputs.inventory(args)
    documents = [each for file in args.filename for each in manifests.read(file)]
    if any(each["kind"] == "AdmissionReview" for each in documents):
        if len(documents) > 1:
            raise InputError("an AdmissionReview stands alone: give it without other objects")
        return _answer(documents[0], args.output, settings, inventory)
    reviewed = [each for document in documents for each in _review(document, settings, inventory)]
    code = max((each.code for each in reviewed), default=_NOTHING_FOUND)
    if args.output == "text":
        _print_text(documents, reviewed)
    else:
        _print_data(args.output, _WORDS[code], _document(documents), reviewed)
    return code


def _review(
    document: dict[str, Any], settings: Settings, inventory: Inventory | None
) -> list[Reviewed]:
    """Repair all pods and pod templates in the document, in place, and check the policy."""
    reviewed = []
    for _, obj in objects(document):
        namespace = str(as_map(obj.get("metadata")).get("namespace") or "default")
        cx = context(settings, inventory, namespace)
        reviewed.append(_judged(obj, cx))
    return reviewed


def context(settings: Settings, inventory: Inventory | None, namespace: str) -> Context:
    """The context for this namespace, with its labels if the inventory has them."""
    labels = inventory.namespaces.get(namespace, {}) if inventory is not None else {}
    return Context(
        settings,
        inventory,
        namespace,
        modes=modes_for(settings.policy, namespace, labels),
        namespace_labels=labels,
        today=datetime.now(UTC).date(),
    )


def _judged(obj: dict[str, Any], cx: Context) -> Reviewed:
    """The result of admission for the object: repairs first, then the other findings."""
    guarded = cx.modes.of(leak_guard) not in (Mode.OFF, Mode.AUDIT)
    stages = Stages(repairs=RULES, guards=GUARD if guarded else (), policy=POLICY)
    made = evaluate(obj, stages, cx)
    is_pod = templates_of(obj, cx.settings) == [ROOT]
    found = (_of_pod(f) if is_pod else _of_workload(f, cx.namespace) for f in made.findings)
    verdict = Verdict(tuple(found), made.draft.patch(), tuple(made.failed))
    return Reviewed(made.name, verdict, bool(made.left_alone), bool(made.stuck))


def _of_pod(found: Finding) -> Finding:
    """The finding with the outlook for the pod, if that is not certain."""
    if not (found.may_run and found.action == "denied"):
        return found
    return replace(found, outlook=workloads.refusal([found]))


def _of_workload(found: Finding, namespace: str) -> Finding:
    """The finding with the outlook for the pods: a workload itself is never denied."""
    if found.action not in {"denied", "would deny"}:
        return found
    return workloads.as_warning(found, namespace)


def _document(documents: list[dict[str, Any]]) -> dict[str, Any]:
    if len(documents) == 1:
        return documents[0]
    return {"apiVersion": "v1", "kind": "List", "items": documents}


def _print_data(
    form: str, verdict: str, document: dict[str, Any], reviewed: list[Reviewed]
) -> None:
    findings = [
        {"object": each.name, **finding} for each in reviewed for finding in _findings(each.verdict)
    ]
    data = {"verdict": verdict, "findings": findings, "object": document}
    sys.stdout.write(PRINTED[form](data))


def _findings(verdict: Verdict) -> list[dict[str, Any]]:
    found = [
        {
            "code": finding.code,
            "severity": finding.severity.value,
            "path": finding.at.dotted,
            "message": finding.message,
            "repaired": finding.action == "repaired",
            "mode": finding.mode.value,
            "action": finding.action,
            "outlook": finding.outlook or "",
        }
        for finding in verdict.findings
    ]
    failed = [
        {
            "code": code,
            "severity": "manual",
            "path": "",
            "message": f"the rule failed and changed nothing: {error!r}; please report it",
            "repaired": False,
            "mode": "enforce",
            "action": "failed",
            "outlook": "",
        }
        for code, error in verdict.failed
    ]
    return [*found, *failed]


def _print_text(documents: list[dict[str, Any]], reviewed: list[Reviewed]) -> None:
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False)
    for each in reviewed:
        console.print(Text(f"{visible(each.name)}: {each.word}", style="bold"))
        for finding in _findings(each.verdict):
            style = "green" if finding["severity"] == "repair" else "yellow"
            line = Text("  ").append(finding["code"], style=style)
            line.append(f" {visible(finding['message'])}")
            if finding["outlook"]:
                line.append(f" [{visible(finding['outlook'])}]", style="bold")
            elif finding["action"] not in {"repaired", "reported"}:
                line.append(f" [{finding['mode']}: {finding['action']}]", style="bold")
            if finding["path"]:
                line.append(f" ({visible(finding['path'])})", style="dim")
            console.print(line)
    if not any(each.verdict.patch for each in reviewed):
        return
    for document in documents:
        text = f"---\n{as_yaml(document)}"
        if console.is_terminal:
            console.print(Syntax(text, "yaml", theme="ansi_dark", background_color="default"))
        else:
            sys.stdout.write(text)


def _answer(
    document: dict[str, Any],
    form: str,
    settings: Settings,
    inventory: Inventory | None,
) -> int:
    """An AdmissionReview in, the response out, as the endpoints would send it.

    The response of /validate if it denies the object as /mutate would leave it; else that of
    /mutate.
    """
    from webhook.admission import review as reviews
    from webhook.admission.decide import MUTATE, VALIDATE, Decider
    from webhook.telemetry.logs import Log

    body = json.dumps(document).encode()
    silent = Log(os.open(os.devnull, os.O_WRONLY))
    decider = Decider(RULES, settings, inventory, silent, policy=POLICY, guards=GUARD)
    answer = json.loads(decider.answer(MUTATE, reviews.parse(body)))
    pod = request_pods.pod_of(reviews.parse(body).request)
    code = _NOTHING_FOUND
    if pod is not None:
        cx = context(settings, inventory, document["request"]["namespace"])
        reviewed = _judged(pod, cx)
        code, cx = reviewed.code, replace(cx, stuck=reviewed.was_stuck)
        document["request"]["object"] = as_admitted(Pod(pod), cx).raw
        held = json.loads(decider.answer(VALIDATE, reviews.parse(json.dumps(document).encode())))
        answer = _joined(answer, held)
    sys.stdout.write(PRINTED["yaml" if form == "text" else form](answer))
    return code


def _joined(mutated: dict[str, Any], validated: dict[str, Any]) -> dict[str, Any]:
    """Both answers, as a user would see them."""
    if not validated["response"]["allowed"]:
        return validated
    for member in ("warnings", "auditAnnotations"):
        of_both = [each["response"].get(member) for each in (mutated, validated)]
        both = [each for each in of_both if each]
        if len(both) > 1:
            first, second = both
            joined = first + second if isinstance(first, list) else {**first, **second}
            mutated["response"][member] = joined
        elif both:
            mutated["response"][member] = both[0]
    return mutated
