"""What kube-apiserver 1.36.3 really sent, and what is found in it."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING

import jsonpatch

from tests.engine import run
from tests.shared_folder import files
from webhook.admission.request_pods import pod_of
from webhook.core.rule import Context
from webhook.rules import RULES

if TYPE_CHECKING:
    import pytest

RENAMED = ["GPU101", "GPU201"]
PLACED = ["GPU101", "GPU106", "GPU201"]

FOUND = {
    "create-cronjobs-cron": [],
    "create-daemonsets-ds": [],
    "create-deployments-dep": [],
    "create-jobs-by-cronjob": [],
    "create-jobs-job": [],
    "create-pods-affinity": PLACED,
    "create-pods-by-daemonset": ["GPU101", "GPU106", "GPU110", "GPU201"],
    "create-pods-by-job": PLACED,
    "create-pods-by-replicaset": PLACED,
    "create-pods-by-replicationcontroller": PLACED,
    "create-pods-by-statefulset": PLACED,
    "create-pods-cuda-host-path": ["GPU101", "GPU109", "GPU201"],
    "create-pods-docker1": ["GPU101", "GPU109", "GPU201"],
    "create-pods-gpu-pod": RENAMED,
    "create-pods-plain-dryrun": [],
    "create-replicasets-by-deployment": [],
    "create-replicationcontrollers-rc": [],
    "create-statefulsets-sts": [],
    "delete-pods-docker1": [],
    "update-pods-ephemeralcontainers-gpu-pod": [],
    "update-pods-gpu-pod": [],
    "update-pods-status-by-replicaset": [],
}


def test_recorded_reviews(capsys: pytest.CaptureFixture[str]) -> None:
    recorded = files("reviews/*.json")
    found: dict[str, list[str]] = {}
    for file in recorded:
        request = json.loads(file.read_text())["request"]
        pod = pod_of(request)
        found[file.stem] = []
        if pod is None:
            continue
        before = copy.deepcopy(pod)
        cx = Context(namespace=request["namespace"])
        verdict = run(RULES, pod, cx)
        assert verdict.failed == ()
        assert jsonpatch.apply_patch(before, verdict.patch) == pod
        assert run(RULES, copy.deepcopy(pod), cx).patch == []
        found[file.stem] = sorted({each.code for each in verdict.findings})
    with capsys.disabled():
        print(f"\n../shared/reviews: {len(recorded)} files judged")  # noqa: T201
    assert found == FOUND
