"""docs/metrics.md names every metric, and no other."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from webhook.core.nodes import Node
from webhook.core.settings import Settings
from webhook.inventory.publish import Publisher
from webhook.inventory.store import Store
from webhook.inventory.watched import Watched
from webhook.telemetry import counting
from webhook.telemetry.logs import line

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
    state = dict.fromkeys(("lists", "watches", "events", "faults", "skipped", "alive"), 1)
    told = {"beat": now, "as_of": now, "kinds": {"nodes": state}, "exposed": {"variable": 1}}
    publisher.tell(told)
    return Watched(folder).collect()


def test_the_page_names_every_metric_with_its_labels(tmp_path: Path) -> None:
    names: dict[str, set[str]] = {"gpu_webhook_review_seconds": {"path"}}
    for name, (_, labels) in counting._COUNTERS.items():
        names[f"gpu_webhook_{name}_total"] = set(labels)
    for name in counting._GAUGES:
        names[f"gpu_webhook_{name}"] = set()
    for family in watched(tmp_path):
        for sample in family.samples:
            names[sample.name] = set(sample.labels)
    assert names == TABLE


def test_alarms_ask_for_metrics_that_exist() -> None:
    block = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    (group,) = yaml.safe_load(block[1])["groups"]
    expressions = [rule["expr"] for rule in group["rules"]]
    asked = {name for each in expressions for name in re.findall(r"gpu_webhook_\w+", each)}
    assert len(expressions) == 8
    assert {name.removesuffix("_bucket") for name in asked} <= set(TABLE)


OPERATE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text()


def test_the_recipe_of_when_to_remove_it_asks_for_metrics_and_labels_that_exist() -> None:
    block = re.search(r"```promql\n(.*?)```", OPERATE, re.DOTALL)
    assert block is not None
    asked = set(re.findall(r"gpu_webhook_\w+", block[1]))
    assert asked == {
        "gpu_webhook_last_legacy_timestamp_seconds",
        "gpu_webhook_legacy_objects_total",
    }
    assert asked <= set(TABLE)
    labels = re.search(r"by \(([^)]*)\)", block[1])
    assert labels is not None
    assert set(labels[1].split(", ")) == TABLE["gpu_webhook_legacy_objects_total"]


def test_the_recipe_finds_the_lines_of_legacy_objects_and_no_other(tmp_path: Path) -> None:
    command = re.search(r"kubectl .* logs .* \| (grep .*)", OPERATE)
    assert command is not None
    lines = [line(0.0, {"message": "m", "legacy": legacy}) for legacy in (True, False, True)]
    log = tmp_path / "log"
    log.write_bytes(b"".join(lines))
    found = subprocess.run(["bash", "-c", f"{command[1]} < {log}"], capture_output=True, check=True)
    assert found.stdout == lines[0] + lines[2]
