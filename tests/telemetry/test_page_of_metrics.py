"""docs/metrics.md names every metric, and no other."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.capacity.nodes import Node
from webhook.certs.failed_handshakes import REASONS
from webhook.core.settings import Settings
from webhook.inventory.publish import Publisher
from webhook.inventory.store import Store
from webhook.inventory.watcher_metrics import WatcherMetrics
from webhook.telemetry import families
from webhook.telemetry.logs import line
from webhook.telemetry.page import Build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
TABLE = {
    name: {label.strip() for label in labels.split(",") if label.strip()}
    for name, labels in re.findall(r"^\| `(\S+)` \| ([^|]*)\|", PAGE, re.MULTILINE)
}


def watched(folder: Path) -> Iterator[Metric]:
    """All that a scrape may say of the watcher."""
    store, now = Store(), time.time()
    store.nodes.put("a", Node("a", {}, (), {"nvidia.com/gpu": 8}), 0.0)
    publisher = Publisher(folder, Settings())
    publisher.publish(store, 0.0)
    members = ("lists", "watches", "events", "faults", "skipped", "alive", "refused")
    state = dict.fromkeys(members, 1)
    told = {"beat": now, "as_of": now, "kinds": {"nodes": state}, "exposed": {"variable": 1}}
    told["certificates"] = {"fault": ""}
    publisher.write_status(told)
    return WatcherMetrics(folder).collect()


def test_the_page_names_every_metric_with_its_labels(tmp_path: Path) -> None:
    names: dict[str, set[str]] = {"gpu_webhook_review_seconds": {"path"}}
    for name, (_, labels) in families.COUNTERS.items():
        names[f"gpu_webhook_{name}_total"] = set(labels)
    for name in families.GAUGES:
        names[f"gpu_webhook_{name}"] = set()
    names[f"gpu_webhook_{families.SEEN}"] = {"namespace"}
    names[f"gpu_webhook_{families.REPAIRED}"] = {"rule"}
    for family in (*Build().collect(), *watched(tmp_path)):
        for sample in family.samples:
            names[sample.name] = set(sample.labels)
    assert names == TABLE


def test_the_page_names_every_reason_of_tls_failures() -> None:
    table = PAGE.partition("## TLS failures")[2].partition("## Alarms")[0]
    cells = re.findall(r"^\| ([^|`]+?) \|", table, re.MULTILINE)
    named = [each for cell in cells[1:] for each in cell.split(", ")]
    assert sorted(named) == sorted(REASONS)


UNINSTALL = (Path(__file__).parents[2] / "docs" / "uninstall.md").read_text()


def test_the_recipe_finds_the_lines_of_legacy_objects_and_no_other(tmp_path: Path) -> None:
    command = re.search(r"kubectl .* logs .* \| (grep .*)", UNINSTALL)
    assert command is not None
    lines = [line(0.0, {"message": "m", "legacy": legacy}) for legacy in (True, False, True)]
    log = tmp_path / "log"
    log.write_bytes(b"".join(lines))
    found = subprocess.run(["bash", "-c", f"{command[1]} < {log}"], capture_output=True, check=True)
    assert found.stdout == lines[0] + lines[2]
