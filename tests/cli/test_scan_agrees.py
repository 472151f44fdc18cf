"""`scan` calls fixable what `migrate` fixes: both try edited templates with stand-ins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.templates.drawn_charts import HELPERS, drawn

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

CHARTS = 12  # drawn ones
HELD = """\
apiVersion: extensions/v1beta1
kind: Deployment
metadata:
  name: x
spec:
  strategy:
    rollingUpdate:
      maxSurge: {{ .Values.surge }}
  selector:
    matchLabels: {app: x}
  template:
    metadata:
      labels: {app: x}
    spec:
      containers:
      - {name: a, image: b, resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}}
"""


def findings(gpu_webhook: Command, command: str, *words: str) -> list[Any]:
    found: list[Any] = json.loads(gpu_webhook(command, ".", "-o", "json", *words).out)["files"]
    return found


def test_scan_and_migrate_report_the_same(gpu_webhook: Command, tmp_path: Path) -> None:
    folder = tmp_path / "templates"
    folder.mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 1.0.0\n")
    (folder / "_helpers.tpl").write_text(HELPERS)
    (folder / "held.yaml").write_text(HELD)
    for number in range(CHARTS):
        (folder / f"drawn-{number}.yaml").write_text(drawn(number, f"drawn-{number}"))

    scanned = findings(gpu_webhook, "scan")

    assert scanned == findings(gpu_webhook, "migrate")
    said = [each["message"] for file in scanned for each in file["findings"]]
    assert any("it is wrong if {{ .Values.surge }} produces nothing" in each for each in said)


def test_what_scan_calls_fixable_is_fixed(gpu_webhook: Command, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(HELD)
    (scanned,) = findings(gpu_webhook, "scan")
    (fixed,) = findings(gpu_webhook, "migrate", "--write")
    fixable = [each["code"] for each in scanned["findings"] if each["status"] == "fixable"]
    assert fixable == [each["code"] for each in fixed["findings"] if each["status"] == "fixed"]
    assert fixable == ["GPU201", "GPU101"]
