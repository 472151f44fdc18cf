"""The engine on an object of a test: the object in, which is edited, and verdict and patch out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.core.draft import Draft
from webhook.evaluation import engine
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.core.findings import Verdict
    from webhook.core.rule import Context, ObjectRule, Rule


def run(
    rules: Sequence[Rule],
    obj: dict[str, Any],
    cx: Context,
    at: Path = ROOT,
    *,
    every_pod: bool = False,
) -> Verdict:
    """Run the rules on the pod at this place."""
    draft = Draft(obj)
    verdict = engine.run(rules, draft, cx, at, every_pod=every_pod)
    return replace(verdict, patch=draft.patch())


def run_on_object(rules: Sequence[ObjectRule], obj: dict[str, Any], cx: Context) -> Verdict:
    """Run the rules on the whole object."""
    draft = Draft(obj)
    return replace(engine.run_on_object(rules, draft, cx), patch=draft.patch())
