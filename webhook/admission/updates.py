"""The guard on updates of a stored pod: which changes are allowed, and which containers are new."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.core.draft import Draft, copied
from webhook.kube.pod import Pod
from webhook.kube.pointer import Path

if TYPE_CHECKING:
    from webhook.core.findings import Verdict
    from webhook.core.rule import Context
    from webhook.evaluation.evaluate import Asking

    Raw = dict[str, Any]

_OF_CONTAINER = 3  # tokens of the place of a container: spec, kind and position


def sent_again(pod: Raw, stored: Raw, guards: Asking, cx: Context, _at: Path) -> Verdict:
    """Send the stored variable, if the guard would write it into an update.

    So the same pod can be applied again, also with a new image. The API server itself rejects other
    changes.
    """
    guarded = copied(pod)
    verdict = guards.of(Draft(guarded), cx)
    now, then = (
        {each.at: each.raw.get("env") for each in Pod(one).containers} for one in (guarded, stored)
    )
    found = tuple(
        each
        for each in verdict.findings
        if each.action == "repaired" and (at := Path(each.at[:_OF_CONTAINER])) in then
        if now[at] == then[at]
    )
    draft = Draft(pod)
    draft.apply(edit for each in found for edit in each.edits)
    return replace(verdict, findings=found, patch=draft.patch())


def opened(pod: Raw, stored: Raw, guards: Asking, cx: Context, _at: Path) -> Verdict:
    """What the update leaves open that was not open before.

    A share of a GPU may be requested by an annotation, which may be removed while the pod waits for
    it, or made invalid by another annotation.
    """
    verdict = guards.of(Draft(pod), cx)
    before = {each.at for each in guards.of(Draft(stored), cx).findings}
    return replace(verdict, findings=tuple(f for f in verdict.findings if f.at not in before))
