"""The page's word on the watcher: what its files say, and nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.telemetry.scraping import families, faults, value
from webhook.capacity.nodes import Node
from webhook.core.settings import Capacity, Pool, Settings
from webhook.inventory.publish import INVENTORY, STALE_SECONDS, STATUS, Publisher
from webhook.inventory.store import Store
from webhook.inventory.watcher_metrics import WatcherMetrics

if TYPE_CHECKING:
    from pathlib import Path

    from prometheus_client.metrics_core import Metric

GPU = "nvidia.com/gpu"


def scrape(folder: Path) -> dict[str, Metric]:
    registry = CollectorRegistry()
    registry.register(WatcherMetrics(folder))
    text = generate_latest(registry).decode()
    assert faults(text) == []
    return families(text)


def gauge(found: dict[str, Metric], name: str, **labels: str) -> float | None:
    return value(found, f"gpu_webhook_{name}", **labels)


def status(**other: Any) -> dict[str, Any]:
    now = time.time()
    return {"beat": now, "as_of": now, "kinds": {}, "exposed": {}, **other}


def published(folder: Path, settings: Settings | None = None) -> Publisher:
    """Two nodes, one with GPUs, one of which a pod holds."""
    store = Store()
    store.nodes.put("a", Node("a", {}, (), {GPU: 8}), 0.0)
    store.nodes.put("b", Node("b", {}), 0.0)
    publisher = Publisher(folder, settings or Settings())
    assert publisher.publish(store, 0.0)
    publisher.write_status(status())
    return publisher


def test_all_is_well(tmp_path: Path) -> None:
    published(tmp_path)
    found = scrape(tmp_path)
    assert gauge(found, "watcher_up") == 1
    assert gauge(found, "watcher_status_good") == 1
    assert gauge(found, "inventory_usable") == 1
    age = gauge(found, "inventory_age_seconds")
    assert age is not None
    assert 0 <= age < 5
    assert gauge(found, "inventory_nodes") == 2
    assert gauge(found, "inventory_gpu_nodes") == 1
    assert gauge(found, "inventory_gpus", resource=GPU) == 8
    assert gauge(found, "inventory_held_gpus", resource=GPU) == 0
    assert gauge(found, "watcher_settings_good") == 1


def test_nothing_was_ever_published(tmp_path: Path) -> None:
    found = scrape(tmp_path)
    assert {name: each.samples[0].value for name, each in found.items()} == {
        "gpu_webhook_watcher_up": 0,
        "gpu_webhook_watcher_status_good": 0,
        "gpu_webhook_inventory_usable": 0,
    }


def test_a_watcher_that_no_longer_speaks(tmp_path: Path) -> None:
    late = time.time() - 10
    published(tmp_path).write_status(status(beat=late, as_of=late))
    found = scrape(tmp_path)
    assert gauge(found, "watcher_up") == 0
    assert gauge(found, "watcher_status_good") == 1, "the file is good, but old"
    assert gauge(found, "inventory_usable") == 1, "the inventory is not stale yet"
    assert gauge(found, "inventory_age_seconds") == pytest.approx(10, abs=3)


def test_a_status_of_the_future_counts_for_nothing(tmp_path: Path) -> None:
    published(tmp_path).write_status(status(as_of=time.time() + 3600))
    found = scrape(tmp_path)
    assert gauge(found, "watcher_up") == 0
    assert gauge(found, "watcher_status_good") == 0
    assert gauge(found, "inventory_usable") == 0


def test_a_watcher_that_lives_and_learns_nothing(tmp_path: Path) -> None:
    published(tmp_path).write_status(status(as_of=time.time() - STALE_SECONDS - 1))
    found = scrape(tmp_path)
    assert gauge(found, "watcher_up") == 1
    assert gauge(found, "inventory_usable") == 0
    assert gauge(found, "inventory_nodes") == 2


def test_an_inventory_that_cannot_be_read_grows_old_while_the_watcher_lives(tmp_path: Path) -> None:
    publisher = published(tmp_path)
    registry = CollectorRegistry()
    registry.register(WatcherMetrics(tmp_path))
    publisher.write_status(status(as_of=time.time() - STALE_SECONDS - 1))
    generate_latest(registry)
    (tmp_path / INVENTORY).write_bytes(b"{")
    publisher.write_status(status())
    found = families(generate_latest(registry).decode())
    assert gauge(found, "watcher_up") == 1
    assert gauge(found, "inventory_usable") == 0
    age = gauge(found, "inventory_age_seconds")
    assert age is not None
    assert age > STALE_SECONDS


def test_an_empty_cluster_is_not_usable(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path, Settings())
    publisher.publish(Store(), 0.0)
    publisher.write_status(status())
    assert gauge(scrape(tmp_path), "inventory_usable") == 0


def test_declared_pools_are_part_of_it(tmp_path: Path) -> None:
    pools = (Pool("scaled-to-zero", {GPU: 4}, nodes=3),)
    published(tmp_path, Settings(capacity=Capacity(pools=pools)))
    found = scrape(tmp_path)
    assert gauge(found, "inventory_nodes") == 2, "those that are there"
    assert gauge(found, "inventory_gpu_nodes") == 1
    assert gauge(found, "inventory_gpus", resource=GPU) == 8 + 3 * 4


def test_what_the_watcher_counts(tmp_path: Path) -> None:
    kinds = {
        "nodes": {"lists": 3, "watches": 5, "events": 70, "faults": 2, "skipped": 1, "alive": 9.5},
        "pods": {"lists": 1, "refused": True},
    }
    told = status(kinds=kinds, exposed={"privileged": 4}, settings_fault="line 1")
    published(tmp_path).write_status(told)
    found = scrape(tmp_path)
    assert gauge(found, "watcher_lists_total", kind="nodes") == 3
    assert gauge(found, "watcher_lists_total", kind="pods") == 1
    assert gauge(found, "watcher_watches_total", kind="nodes") == 5
    assert gauge(found, "watcher_events_total", kind="nodes") == 70
    assert gauge(found, "watcher_errors_total", kind="nodes") == 2
    assert gauge(found, "watcher_skipped_objects_total", kind="nodes") == 1
    assert gauge(found, "watcher_known_until_timestamp_seconds", kind="nodes") == 9.5
    assert gauge(found, "watcher_refused", kind="pods") == 1
    assert gauge(found, "guard_exposures", by="privileged") == 4
    assert gauge(found, "watcher_settings_good") == 0


@pytest.mark.parametrize(
    ("told", "good"),
    [
        pytest.param({}, None, id="certificates come from elsewhere"),
        pytest.param({"certificates": {"fault": ""}}, 1, id="all is in order"),
        pytest.param({"certificates": {"fault": "RBAC: 403"}}, 0, id="a right is missing"),
        pytest.param({"certificates": None}, 1, id="before the first pass"),
    ],
)
def test_whether_certificates_can_be_kept(
    tmp_path: Path, told: dict[str, object], good: int | None
) -> None:
    published(tmp_path).write_status(status(**told))
    found = scrape(tmp_path)
    name = "watcher_certificates_good"
    assert (gauge(found, name) if f"gpu_webhook_{name}" in found else None) == good


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="half there"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"beat": [], "as_of": 1}', id="no times"),
        pytest.param(b'{"beat": 1, "as_of": 1, "kinds": 1, "exposed": [1]}', id="no maps"),
        pytest.param(b'{"beat": 1, "as_of": 1, "kinds": {"a": {"lists": "x"}}}', id="no number"),
    ],
)
def test_a_damaged_status_is_a_watcher_that_is_not_up(tmp_path: Path, text: bytes) -> None:
    published(tmp_path)
    (tmp_path / STATUS).write_bytes(text)
    found = scrape(tmp_path)
    assert gauge(found, "watcher_up") == 0
    assert gauge(found, "inventory_usable") == 0
    assert gauge(found, "inventory_nodes") == 2
