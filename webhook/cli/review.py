"""`gpu-webhook review`: what the webhook would do to the pods of a file, without a cluster."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.cli import knowledge, manifests
from webhook.core.engine import run as run_rules
from webhook.core.findings import Verdict
from webhook.core.rule import Context
from webhook.core.workloads import objects, template_at
from webhook.rules import RULES

if TYPE_CHECKING:
    import argparse

    from webhook.core.nodes import Inventory
    from webhook.core.settings import Settings

_NOTHING_FOUND, _REPAIRED, _NEEDS_PERSON = 0, 2, 3
_WORDS = {_NOTHING_FOUND: "clean", _REPAIRED: "repaired", _NEEDS_PERSON: "needs a person"}


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One object of the file and what came of its pod."""

    name: str
    verdict: Verdict

    @property
    def code(self) -> int:
        if self.verdict.denied or self.verdict.needs_person:
            return _NEEDS_PERSON
        return _REPAIRED if self.verdict.findings else _NOTHING_FOUND


def run(args: argparse.Namespace) -> int:
    """Review the file; the exit code is that of the worst object."""
    settings, inventory = knowledge.settings(args), knowledge.inventory(args)
    documents = manifests.read(args.filename)
    if documents[0]["kind"] == "AdmissionReview":
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
    """Repair every pod and pod template in the document, in place."""
    reviewed = []
    for _, obj in objects(document):
        at = template_at(obj)
        metadata = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
        namespace = str(metadata.get("namespace", "default")) if metadata else "default"
        name = f"{obj.get('kind')}/{(metadata or {}).get('name', '(no name)')}"
        cx = Context(settings, inventory, namespace)
        verdict = Verdict((), obj, []) if at is None else run_rules(RULES, obj, cx, at)
        reviewed.append(Reviewed(name, verdict))
    return reviewed


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
    _write(form, data)


def _findings(verdict: Verdict) -> list[dict[str, Any]]:
    found = [
        {
            "code": finding.code,
            "severity": finding.severity.value,
            "path": finding.at.dotted,
            "message": finding.message,
            "repaired": bool(finding.edits),
        }
        for finding in verdict.findings
    ]
    failed = [
        {
            "code": code,
            "severity": "person",
            "path": "",
            "message": f"the rule failed and changed nothing: {error!r}; please report it",
            "repaired": False,
        }
        for code, error in verdict.failed
    ]
    return [*found, *failed]


def _write(form: str, data: dict[str, Any]) -> None:
    if form == "json":
        sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    else:
        from webhook.cli.config import as_yaml

        sys.stdout.write(as_yaml(data))


def _print_text(documents: list[dict[str, Any]], reviewed: list[Reviewed]) -> None:
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.text import Text

    from webhook.cli.config import as_yaml

    console = Console(soft_wrap=True, highlight=False)
    for each in reviewed:
        console.print(Text(f"{each.name}: {_WORDS[each.code]}", style="bold"))
        for finding in _findings(each.verdict):
            style = "green" if finding["severity"] == "repair" else "yellow"
            line = Text("  ").append(finding["code"], style=style)
            line.append(f" {finding['message']}")
            if finding["path"]:
                line.append(f" ({finding['path']})", style="dim")
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
    """An AdmissionReview in: the review response out, as the endpoint would send it."""
    from webhook.admission import review as reviews
    from webhook.admission.decide import Decider
    from webhook.admission.subject import pod_of
    from webhook.telemetry.logs import Log

    body = json.dumps(document).encode()
    silent = Log(os.open(os.devnull, os.O_WRONLY))
    answer = json.loads(Decider(RULES, settings, inventory, silent).mutate(reviews.parse(body)))
    _write("yaml" if form == "text" else form, answer)
    pod = pod_of(reviews.parse(body).request)
    if pod is None:
        return _NOTHING_FOUND
    cx = Context(settings, inventory, document["request"]["namespace"])
    return Reviewed("", run_rules(RULES, pod, cx)).code
