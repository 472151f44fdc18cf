"""`gpu-webhook review`: shows how the webhook would change or deny the pods of a file."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.admission import workloads
from webhook.cli import inputs
from webhook.core.errors import InputError
from webhook.core.findings import Finding, Severity, Verdict
from webhook.core.modes import IGNORE, Mode, modes_for
from webhook.core.rule import Context
from webhook.evaluation.evaluate import Stages, evaluate
from webhook.evaluation.workloads import objects, templates_of
from webhook.files.source import Source
from webhook.kube.pod import as_map
from webhook.kube.pointer import ROOT
from webhook.reports.printing import PRINTED, as_yaml
from webhook.reports.visible import visible
from webhook.rules import GUARD, POLICY, RULES, leak_guard
from webhook.yamlpatch import documents as texts

if TYPE_CHECKING:
    from types import SimpleNamespace

    from webhook.capacity.nodes import Inventory
    from webhook.core.settings import Settings

_ADVICE = "pass a manifest as YAML or JSON"
_NOTHING_FOUND, _REPAIRED, _MANUAL = 0, 2, 3
_WORDS = {_NOTHING_FOUND: "clean", _REPAIRED: "repaired", _MANUAL: "needs manual changes"}


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One object of the file, and the result for it."""

    name: str
    verdict: Verdict
    opted_out: bool = False

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
    documents = [each for file in args.filename for each in _read(file)]
    reviewed = [each for document in documents for each in _review(document, settings, inventory)]
    code = max((each.code for each in reviewed), default=_NOTHING_FOUND)
    if args.output == "text":
        _print_text(documents, reviewed)
    else:
        _print_data(args.output, _WORDS[code], _document(documents), reviewed)
    return code


def _read(file: str) -> list[dict[str, Any]]:
    """The objects of a file, `-` for stdin; raises InputError with line and advice."""
    name = "stdin" if file == "-" else file
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}; {_ADVICE}") from error
    source = Source.of(name, raw)
    stream = texts.read(source.text)
    for each in stream.unread:
        at = source.place(each.at, each.at)
        raise InputError(f"{name}:{at.line}:{at.column}: {each.reason}; {_ADVICE}")
    found = [each.data for each in stream.documents if each.data is not None]
    for position, document in enumerate(found, 1):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise InputError(f"{name}: document {position} has no kind; {_ADVICE}")
        if document["kind"] == "AdmissionReview":
            raise InputError(f"{name}: is a call of the API server; {_ADVICE} (request.object)")
    if not found:
        raise InputError(f"{name}: contains no object; {_ADVICE}")
    return found


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
    verdict = Verdict(tuple(found), obj, made.draft.patch(), tuple(made.failed))
    return Reviewed(made.name, verdict, bool(made.left_alone))


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
