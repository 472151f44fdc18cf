"""The queries of docs/uninstall.md on when the webhook may be removed, by the real promtool."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.monitoring import promtool
from tests.monitoring.queries import CONDITIONS, FAILED_OPEN, REJECTED, faults

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.programs

UNINSTALL = (Path(__file__).parents[2] / "docs" / "uninstall.md").read_text()
QUERIES = re.findall(r"```promql\n(.*?)```", UNINSTALL, re.DOTALL)
MAY_GO, FROM_WHERE, FAILED, REPAIRED = QUERIES
LAST, LEGACY = "gpu_webhook_last_legacy_timestamp_seconds", "gpu_webhook_legacy_objects_total"
REVIEWS = "gpu_webhook_reviews_total"
UNFINISHED = f'{REVIEWS}{{path="/mutate", outcome="unfinished"}}'
HOUR, DAY = 3600, 86_400
DAYS = 62
NOW = DAYS * DAY
AT = f"{DAYS}d"


def hourly(days: float, value: Callable[[int], Any], gap: float = 0.0) -> list[Any]:
    """What a server reports that began so many days ago; the first days of the last 30 may lack."""

    def there(at: int) -> bool:
        return at >= NOW - days * DAY and not NOW - 30 * DAY <= at < NOW - (30 - gap) * DAY

    return [value(at) if there(at) else "_" for at in range(0, NOW + 1, HOUR)]


def ago(days: float) -> int:
    return int(NOW - days * DAY)


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
    tmp_path: Path,
) -> None:
    when = NOW if came is None else ago(came)
    series = {
        f'{LAST}{{pod="a"}}': hourly(days, lambda at: when if at >= when != NOW else 0, gap),
        f'{REVIEWS}{{pod="a"}}': hourly(days, lambda _: reviews),
    }
    found = {"{}": 1.0} if expected else {}
    promtool.judge(tmp_path, series, [(AT, f"count({MAY_GO})", found)], interval="1h")


RISES: dict[str, tuple[float, Callable[[int], float], float]] = {
    "one came, an hour ago": (0.1, lambda _: 1.0, 1),
    "a second one": (20, lambda at: 1.0 + (at > ago(1)), 2),
    "seven came, long ago": (59, lambda _: 7.0, 0),
    "seven came long ago, and one more yesterday": (59, lambda at: 7.0 + (at > ago(1)), 1),
    "one came to a new replica": (59, lambda at: 1.0 if at > ago(1) else 7.0, 1),
}


@pytest.mark.parametrize(("days", "value", "expected"), RISES.values(), ids=RISES)
def test_the_first_object_counts(
    days: float, value: Callable[[int], float], expected: float, tmp_path: Path
) -> None:
    series = {f'{LEGACY}{{pod="a", namespace="team", kind="Pod"}}': hourly(days, value)}
    found = {'{namespace="team", kind="Pod"}': expected} if expected else {}
    promtool.judge(tmp_path, series, [(AT, f"round({FROM_WHERE})", found)], interval="1h")


FAULTS = {
    "admitted unchanged": FAILED_OPEN,
    "refused": f'{REJECTED}{{error_type="calling_webhook_error"}}',
    "not selected, as a condition failed": CONDITIONS,
}


@pytest.mark.parametrize("metric", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize(("days", "value", "expected"), RISES.values(), ids=RISES)
def test_the_first_call_that_failed_counts(
    days: float, value: Callable[[int], float], expected: float, metric: str, tmp_path: Path
) -> None:
    name, _, labels = metric.partition("{")
    series = {f'{name}{{name="repair.gpu-webhook.dev",{labels or "}"}': hourly(days, value)}
    found = {"{}": 1.0} if expected else {}
    promtool.judge(tmp_path, series, [(AT, f"count({FAILED})", found)], interval="1h")


@pytest.mark.parametrize("metric", FAULTS.values(), ids=FAULTS)
def test_a_call_that_failed_counts_when_its_api_server_was_replaced(
    metric: str, tmp_path: Path
) -> None:
    """Its series began with the call, and ended a week ago."""
    name, _, labels = metric.partition("{")
    there = hourly(20, lambda at: 1.0 if at < ago(7) else "_")
    series = {f'{name}{{name="repair.gpu-webhook.dev",{labels or "}"}': there}
    promtool.judge(tmp_path, series, [(AT, f"count({FAILED})", {"{}": 1.0})], interval="1h")


NOT_JUDGED: dict[str, tuple[Callable[[int], float], bool]] = {
    "none, in a new replica": (lambda _: 0.0, False),
    "one, in a new replica": (lambda _: 1.0, True),
    "one yesterday": (lambda at: 3.0 + (at > ago(1)), True),
}


@pytest.mark.parametrize(("value", "counts"), NOT_JUDGED.values(), ids=NOT_JUDGED)
def test_a_review_that_was_not_finished_counts(
    value: Callable[[int], float],
    counts: bool,  # noqa: FBT001 - of a table
    tmp_path: Path,
) -> None:
    found = {"{}": 1.0} if counts else {}
    series = {UNFINISHED: hourly(20, value)}
    promtool.judge(tmp_path, series, [(AT, f"count({FAILED})", found)], interval="1h")


@pytest.mark.parametrize(("days", "counts"), [(29, True), (31, False)])
def test_a_repair_of_a_modern_pod_counts_for_30_days(
    days: float,
    counts: bool,  # noqa: FBT001 - of a table
    tmp_path: Path,
) -> None:
    name = "gpu_webhook_rule_last_repair_timestamp_seconds"
    came = hourly(40, lambda at: ago(days) if at > ago(days) else 0)
    series = {f'{name}{{rule="{rule}"}}': came for rule in ("GPU101", "GPU201")}
    series[f'{name}{{rule="GPU202"}}'] = hourly(40, lambda _: 0)
    found = {'{rule="GPU201"}': 1.0} if counts else {}
    asked = [(AT, f"count by (rule) ({REPAIRED})", found)]
    promtool.judge(tmp_path, series, asked, interval="1h")


def test_a_denial_is_no_call_that_failed(tmp_path: Path) -> None:
    name = f'{REJECTED}{{name="guard-refuse.gpu-webhook.dev",error_type="no_error"}}'
    series = {name: hourly(20, lambda at: 1.0 + (at > ago(1)))}
    promtool.judge(tmp_path, series, [(AT, f"count({FAILED})", {})], interval="1h")


def test_increase_alone_does_not_see_the_first_object(tmp_path: Path) -> None:
    series = {LEGACY: hourly(0.1, lambda _: 1.0)}
    promtool.judge(tmp_path, series, [(AT, f"increase({LEGACY}[30d])", {"{}": 0.0})], interval="1h")


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_what_a_server_exposes(query: str) -> None:
    assert list(faults(query)) == []
