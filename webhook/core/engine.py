"""Runs the rules over one pod, in order, on one draft."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.core.draft import Draft
from webhook.core.findings import Safety, Verdict
from webhook.core.pod import Pod
from webhook.core.pointer import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.core.findings import Finding
    from webhook.core.pointer import Path
    from webhook.core.rule import Context, Rule


def run(rules: Sequence[Rule], obj: dict[str, Any], cx: Context, at: Path = ROOT) -> Verdict:
    """Repair the pod at `at` in `obj` (a Pod, or whatever holds a pod template), in place.

    A rule that raises changes nothing and is named in the verdict; the others go on. Outside the
    scope of the settings no rule is asked at all.
    """
    draft = Draft(obj)
    pod = Pod(obj, at)
    if not pod.is_in_scope(cx.settings):
        return Verdict((), obj, [])
    cx = replace(cx, stuck=pod.asks_under_legacy_name(cx.settings))
    findings: list[Finding] = []
    failed: list[tuple[str, Exception]] = []
    for rule in rules:
        try:
            found = tuple(rule.check(pod, cx))
            edits = [e for f in found if f.safety is Safety.SAFE for e in f.edits]
            if edits:
                draft.apply(edits)
                pod = Pod(obj, at)
        except Exception as error:  # noqa: BLE001  # one broken rule must not stop the others
            failed.append((rule.CODE, error))
        else:
            findings.extend(found)
    return Verdict(tuple(findings), obj, draft.patch(), tuple(failed))
