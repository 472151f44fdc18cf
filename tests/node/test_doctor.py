"""`gpu-webhook doctor` where the API server calls the webhook through the real Service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cluster.client import until
from webhook.cli.main import main

if TYPE_CHECKING:
    from tests.cluster.client import Json
    from tests.node.conftest import Installed

NAMESPACE = "gpu-webhook"
_SECONDS = 90.0


class Doctor:
    """Asks it, and keeps what it said last."""

    def __init__(self, installed: Installed, capsys: pytest.CaptureFixture[str]) -> None:
        self._words = ["doctor", "-o", "json", f"--kubeconfig={installed.cluster.kubeconfig}"]
        self._capsys = capsys
        self.said: list[Json] = []

    def finds(self, code: int, *checks: str) -> bool:
        """Whether just these lines are not ok."""
        found = main(self._words)
        lines = json.loads(self._capsys.readouterr().out)
        self.said = [line for line in lines if line["state"] != "ok"]
        return (found, {line["what"] for line in self.said}) == (code, {*checks})


def test_nothing_is_found_through_the_service_until_its_pods_are_gone(
    installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor, cluster = Doctor(installed, capsys), installed.cluster
    scale = ("-n", NAMESPACE, "scale", "deployment", "gpu-webhook")
    try:
        until(lambda: doctor.finds(0), "nothing to be found", _SECONDS)
        cluster.kubectl(*scale, "--replicas=0")
        until(lambda: doctor.finds(3, "dry run", "pods", "watcher"), "the lines", _SECONDS)
    except TimeoutError:
        pytest.fail(f"{doctor.said}")
    finally:
        cluster.kubectl(*scale, "--replicas=2")
        wait = ("rollout", "status", "deployment/gpu-webhook", "--timeout=120s")
        cluster.kubectl("-n", NAMESPACE, *wait)
