"""docs/metrics.md names every metric, and no other."""

from __future__ import annotations

import re
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from webhook.capacity.nodes import Node
from webhook.certs.failures import REASONS
from webhook.core.settings import Settings
from webhook.inventory.publish import Publisher
from webhook.inventory.store import Store
from webhook.inventory.watched import Watched
from webhook.telemetry import families
from webhook.telemetry.logs import line
from webhook.telemetry.page import Build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    return Watched(folder).collect()


def test_the_page_names_every_metric_with_its_labels(tmp_path: Path) -> None:
    names: dict[str, set[str]] = {"gpu_webhook_review_seconds": {"path"}}
    for name, (_, labels) in families.COUNTERS.items():
        names[f"gpu_webhook_{name}_total"] = set(labels)
    for name in families.GAUGES:
        names[f"gpu_webhook_{name}"] = set()
    names[f"gpu_webhook_{families.SEEN}"] = {"namespace"}
    for family in (*Build().collect(), *watched(tmp_path)):
        for sample in family.samples:
            names[sample.name] = set(sample.labels)
    assert names == TABLE


def test_the_page_names_every_reason_of_tls_failures() -> None:
    table = PAGE.partition("## TLS failures")[2].partition("## Alarms")[0]
    cells = re.findall(r"^\| ([^|`]+?) \|", table, re.MULTILINE)
    named = [each for cell in cells[1:] for each in cell.split(", ")]
    assert sorted(named) == sorted(REASONS)


def test_alarms_ask_for_metrics_that_exist() -> None:
    block = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    (group,) = yaml.safe_load(block[1])["groups"]
    expressions = [rule["expr"] for rule in group["rules"]]
    asked = {name for each in expressions for name in re.findall(r"gpu_webhook_\w+", each)}
    assert len(expressions) == 10
    assert {name.removesuffix("_bucket") for name in asked} <= set(TABLE)


OPERATE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text()


QUERIES = re.findall(r"```promql\n(.*?)```", OPERATE, re.DOTALL)
MAY_GO, FROM_WHERE, FAILED_OPEN = (" ".join(each.split()) for each in QUERIES)
LAST = "gpu_webhook_last_legacy_timestamp_seconds"
LEGACY = "gpu_webhook_legacy_objects_total"
FAILED = "apiserver_admission_webhook_fail_open_count"


def test_the_recipe_of_when_to_remove_it_asks_for_metrics_and_labels_that_exist() -> None:
    asked = set(re.findall(r"gpu_webhook_\w+", " ".join(QUERIES)))
    assert asked == {LAST, LEGACY, "gpu_webhook_reviews_total"}
    assert asked <= set(TABLE)
    labels = re.search(r"by \(([^)]*)\)", FROM_WHERE)
    assert labels is not None
    assert set(labels[1].split(", ")) == TABLE[LEGACY]


# The queries by hand, on what a scrape an hour would bring: no Prometheus is at hand. Each function
# is one of PromQL's on one series, and the texts are held against the page.
HOUR, DAY = 3600.0, 86_400.0
NOW = 1_800_000_000.0
Series = dict[float, float]  # time and value


def hourly(days: float, value: Callable[[float], float], gap: float = 0.0) -> Series:
    """What a server says that began so many days ago; the first days of the last 30 may lack."""
    began, hidden = NOW - days * DAY, NOW - (30 - gap) * DAY
    times = [NOW - hour * HOUR for hour in range(60 * 24)]
    return {at: value(at) for at in times if at >= began and (not gap or at >= hidden)}


def in_30_days(series: Series) -> Series:
    return {at: each for at, each in series.items() if at > NOW - 30 * DAY}


def may_go(last: Series, reviews: float) -> bool:
    """MAY_GO, where there is one replica."""
    found = in_30_days(last)
    latest = max(found.values(), default=None)
    return latest is not None and latest < NOW - 30 * DAY and len(found) >= 710 and reviews > 0


@pytest.mark.parametrize(
    ("days", "came", "gap", "reviews", "expected"),
    [
        pytest.param(0.1, None, 0, 5, False, id="day one: nobody knows"),
        pytest.param(29, None, 0, 5, False, id="a day too early"),
        pytest.param(31, None, 0, 5, True, id="31 days without one"),
        pytest.param(59, 45, 0, 5, True, id="the last one came 45 days ago"),
        pytest.param(59, 29, 0, 5, False, id="the last one came 29 days ago"),
        pytest.param(59, 0.5, 0, 5, False, id="the last one came today"),
        pytest.param(59, None, 3, 5, False, id="three of the days were not watched"),
        pytest.param(31, None, 0, 0, False, id="nothing was ever judged"),
    ],
)
def test_it_may_be_removed_when_that_is_known(
    days: float,
    came: float | None,
    gap: float,
    reviews: float,
    expected: bool,  # noqa: FBT001 - of a table
) -> None:
    when = NOW - (came or 0) * DAY

    def last(at: float) -> float:
        return when if came is not None and at >= when else 0.0

    assert may_go(hourly(days, last, gap), reviews) is expected
    assert (
        f"max(max_over_time({LAST}[30d])) < time() - 30 * 86400 "
        f"and count_over_time(max({LAST})[30d:1h]) >= 710 "
        "and sum(max_over_time(gpu_webhook_reviews_total[30d])) > 0"
    ) == MAY_GO


def increase(series: Series) -> float:
    """What it rose by in 30 days, from its first value there; after a fall it began at 0."""
    values = [series[at] for at in sorted(in_30_days(series))]
    return sum(b - a if b >= a else b for a, b in pairwise(values))


def risen(series: Series) -> float:
    """`max_over_time(x[30d]) unless x offset 30d or increase(x[30d])`."""
    if NOW - 30 * DAY in series:
        return increase(series)
    return max(in_30_days(series).values(), default=0.0)


@pytest.mark.parametrize(
    ("days", "value", "expected"),
    [
        pytest.param(0.1, lambda _: 1.0, 1, id="one object came, an hour ago"),
        pytest.param(20, lambda at: 1.0 + (at > NOW - DAY), 2, id="a second one"),
        pytest.param(59, lambda _: 7.0, 0, id="seven came, long ago"),
        pytest.param(59, lambda at: 7.0 + (at > NOW - DAY), 1, id="and one more yesterday"),
        pytest.param(59, lambda at: 1.0 if at > NOW - DAY else 7.0, 1, id="of a new replica"),
    ],
)
def test_the_first_object_counts(
    days: float, value: Callable[[float], float], expected: float
) -> None:
    series = hourly(days, value)
    assert risen(series) == expected
    assert f"max_over_time({LEGACY}[30d]) unless {LEGACY} offset 30d" in FROM_WHERE
    assert f"or increase({LEGACY}[30d])" in FROM_WHERE
    assert f"unless {FAILED} offset 30d or increase({FAILED}" in FAILED_OPEN


def test_increase_alone_does_not_see_the_first_object() -> None:
    assert increase(hourly(0.1, lambda _: 1.0)) == 0


def test_the_recipe_finds_the_lines_of_legacy_objects_and_no_other(tmp_path: Path) -> None:
    command = re.search(r"kubectl .* logs .* \| (grep .*)", OPERATE)
    assert command is not None
    lines = [line(0.0, {"message": "m", "legacy": legacy}) for legacy in (True, False, True)]
    log = tmp_path / "log"
    log.write_bytes(b"".join(lines))
    found = subprocess.run(["bash", "-c", f"{command[1]} < {log}"], capture_output=True, check=True)
    assert found.stdout == lines[0] + lines[2]
