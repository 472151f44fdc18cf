"""The leak guard on pods of every shape: it changes one variable, settles it, and fails on none."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

import jsonpatch
from hypothesis import event, given

from tests.engine import run
from tests.properties.pods import broken_pods, plain_pods, pods
from tests.schema.pods import any_pods, likely_pods
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.kube.pod import Pod
from webhook.rules import GUARD
from webhook.rules.leak_guard import EXPOSURES, exposures

if TYPE_CHECKING:
    Raw = dict[str, Any]

ENFORCED = Context(modes=Modes(Mode.ENFORCE), namespace="team-a")
AUDITED = Context(namespace="team-a")
_ENV = re.compile(r"/spec/(?:initContainers|containers|ephemeralContainers)/\d+/env(?:/.*)?")


@given(pods() | plain_pods() | any_pods() | likely_pods())
def test_one_variable_changes_and_a_second_round_finds_nothing_to_do(pod: Raw) -> None:
    before = copy.deepcopy(pod)
    verdict = run(GUARD, pod, ENFORCED, every_pod=True)
    for finding in verdict.findings:
        event(finding.message.split(" ", 3)[-1][:20])
    assert verdict.failed == ()
    assert jsonpatch.apply_patch(before, verdict.patch) == pod
    assert all(_ENV.fullmatch(operation["path"]) for operation in verdict.patch)
    assert run(GUARD, pod, ENFORCED, every_pod=True).patch == []
    assert "variable" not in exposures(Pod(pod), Settings(), "team-a")


@given(pods() | plain_pods() | broken_pods())
def test_the_audit_changes_nothing_and_fails_on_nothing(pod: Raw) -> None:
    before = copy.deepcopy(pod)
    verdict = run(GUARD, pod, AUDITED, every_pod=True)
    assert verdict.failed == ()
    assert verdict.patch == []
    assert pod == before
    assert set(exposures(Pod(pod), Settings(), "team-a")) <= set(EXPOSURES)
