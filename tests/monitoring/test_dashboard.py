"""manifests/monitoring/dashboard.json: its queries, on series that the real promtool judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.monitoring import drawn, promtool, recorded
from tests.monitoring.drawn import DASHBOARD, FILE, written
from tests.monitoring.queries import ACTIONS, FAILED_OPEN, faults, kept
from tests.monitoring.test_removal import (
    AT,
    FAILED,
    FROM_WHERE,
    LAST,
    LEGACY,
    MAY_GO,
    REPAIRED,
    REVIEWS,
    UNFINISHED,
    ago,
    hourly,
)
from webhook.admission.outcome import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.programs

PANELS = [each for each in DASHBOARD["panels"] if each["type"] not in {"row", "text"}]


def query(title: str, number: int = 0) -> str:
    (panel,) = (each for each in PANELS if each["title"] == title)
    return written(panel["targets"][number]["expr"])


QUERIES = {
    f"{panel['title']} {target['refId']}": written(target["expr"])
    for panel in PANELS
    for target in panel["targets"]
}
REPAIRS = "gpu_webhook_rule_last_repair_timestamp_seconds"
SEEN = "gpu_webhook_namespace_last_legacy_timestamp_seconds"
DENIED = 'gpu_webhook_decisions_total{rule="GPU301", mode="enforce", action="denied"}'
TEAM = 'namespace="team", kind="Job"'


def used() -> dict[str, list[Any]]:
    """A cluster in which all that panels show happens."""
    rising: Callable[[int], float] = lambda at: at / 3600  # noqa: E731
    return {
        LAST: hourly(40, lambda at: at),
        f"{LEGACY}{{{TEAM}}}": hourly(40, rising),
        f'{SEEN}{{namespace="team"}}': hourly(40, lambda _: ago(2)),
        f'{REVIEWS}{{path="/mutate", outcome="patched"}}': hourly(40, rising),
        DENIED: hourly(1, lambda _: 3),
        f'{REPAIRS}{{rule="GPU201"}}': hourly(40, lambda _: ago(3)),
        'gpu_webhook_decisions_total{action="repaired"}': hourly(40, rising),
        f'{FAILED_OPEN}{{name="repair.gpu-webhook.dev"}}': hourly(40, rising),
        'gpu_webhook_build_info{version="1"}': hourly(40, lambda _: 1),
        "gpu_webhook_certificate_expiry_timestamp_seconds": hourly(40, lambda at: at + 86400),
        "gpu_webhook_inventory_usable": hourly(40, lambda _: 1),
        'gpu_webhook_inventory_gpus{resource="nvidia.com/gpu"}': hourly(40, lambda _: 8),
        'gpu_webhook_inventory_held_gpus{resource="nvidia.com/gpu"}': hourly(40, lambda _: 2),
        'gpu_webhook_review_seconds_bucket{path="/mutate", le="0.1"}': hourly(40, rising),
        'gpu_webhook_review_seconds_bucket{path="/mutate", le="+Inf"}': hourly(40, rising),
        'ALERTS{alertname="GpuWebhookSlow", alertstate="firing"}': hourly(1, lambda _: 1),
    }


def test_each_panel_shows_something(tmp_path: Path) -> None:
    """Promtool reads each of them, too."""
    assert len(QUERIES) > 15
    asked = [(AT, f"count({each}) > bool 0", {"{}": 1.0}) for each in QUERIES.values()]
    promtool.judge(tmp_path, used(), asked, interval="1h")


@pytest.mark.slow
def test_each_panel_shows_what_a_real_server_exposes(tmp_path: Path) -> None:
    """By a real Prometheus; `python -m tests.monitoring.drawn` makes a picture of it."""
    with recorded.prometheus(tmp_path) as found:
        page = drawn.page(PANELS, found)
    assert "No data" not in page
    assert page.count("<svg") == sum(each["type"] == "timeseries" for each in PANELS)
    for shown in ("not yet", "GPU201", ">720<", "4.8 hours ago", "GPU304", "would deny", "90 days"):
        assert shown in page
    assert not [each for each in PANELS if f">{no_value(each)}<" in page]


def no_value(panel: dict[str, Any]) -> str:
    return str(panel["fieldConfig"]["defaults"].get("noValue", "No data"))


@pytest.mark.parametrize("each", QUERIES.values(), ids=QUERIES)
def test_a_query_names_what_a_server_exposes(each: str) -> None:
    assert list(faults(each)) == []


NONE: dict[str, list[Any]] = {
    LAST: hourly(40, lambda _: 0),
    f'{REVIEWS}{{path="/mutate"}}': hourly(40, lambda _: 5),
}
VERDICTS: dict[str, tuple[dict[str, list[Any]], float]] = {
    "nothing is known": ({}, 0),
    "none for 40 days": (NONE, 1),
    "one came yesterday": (NONE | {LAST: hourly(40, lambda at: ago(1) if at > ago(1) else 0)}, 0),
    "watched for 20 days": ({key: hourly(20, lambda _: 0) for key in NONE}, 0),
    "none, but a call failed open": (
        NONE | {f'{FAILED_OPEN}{{name="repair.gpu-webhook.dev"}}': hourly(2, lambda _: 1)},
        0,
    ),
    "none, but a review was not finished": (NONE | {UNFINISHED: hourly(2, lambda _: 1)}, 0),
    "none, but a modern pod ran only repaired": (
        NONE | {f'{REPAIRS}{{rule="GPU201"}}': hourly(2, lambda _: ago(1))},
        0,
    ),
    "none, and the last repair was 39 days ago": (
        NONE | {f'{REPAIRS}{{rule="GPU201"}}': hourly(40, lambda _: ago(39))},
        1,
    ),
    "none, and a call of another webhook failed open": (
        NONE | {f'{FAILED_OPEN}{{name="other"}}': hourly(2, lambda _: 1)},
        1,
    ),
}


@pytest.mark.parametrize(("series", "verdict"), VERDICTS.values(), ids=VERDICTS)
def test_whether_it_may_be_removed(
    series: dict[str, list[Any]], verdict: float, tmp_path: Path
) -> None:
    asked = [(AT, query("Not needed for 30 days"), {"{}": verdict})]
    promtool.judge(tmp_path, series, asked, interval="1h")


def test_the_dashboard_asks_as_the_page_does() -> None:
    for title, wanted in (
        ("Not needed for 30 days", MAY_GO),
        ("Not needed for 30 days", FAILED),
        ("Not needed for 30 days", REPAIRED),
        ("Not judged in 30 days", FAILED),
        ("Repairs by GPU20x", REPAIRED),
        ("By namespace and kind of owner, 30 days", FROM_WHERE),
    ):
        assert " ".join(wanted.split()) in query(title)


def test_a_column_that_is_placed_or_named_is_one_of_its_table() -> None:
    tables = [panel for panel in PANELS if panel["type"] == "table"]
    assert len(tables) == 2
    for panel in tables:
        targets = panel["targets"]
        values = {f"Value #{each['refId']}" for each in targets} if targets[1:] else {"Value"}
        columns = {"Time", *kept(targets[0]["expr"]), *values}
        overrides = panel["fieldConfig"]["overrides"]
        assert {each["matcher"]["options"] for each in overrides} <= columns
        (order,) = (each for each in panel["transformations"] if each["id"] == "organize")
        assert {"Time", *order["options"]["indexByName"]} == columns


def test_what_is_denied_is_red() -> None:
    coloured = {
        override["matcher"]["options"].strip("/"): each["value"]["fixedColor"]
        for panel in PANELS
        for override in panel["fieldConfig"]["overrides"]
        for each in override["properties"]
        if each["id"] == "color"
    }
    assert coloured.keys() <= ACTIONS | {*OUTCOMES}
    assert coloured["denied"] == "red"


def test_who_sends_them_and_when_the_last_one_came(tmp_path: Path) -> None:
    title = "By namespace and kind of owner, 30 days"
    old = f'{LEGACY}{{namespace="done", kind="Pod"}}'
    series = {
        f'{LEGACY}{{pod="a", {TEAM}}}': hourly(3, lambda _: 2),
        f'{LEGACY}{{pod="b", {TEAM}}}': hourly(3, lambda _: 1),
        old: hourly(60, lambda _: 9),
        f'{SEEN}{{pod="a", namespace="team"}}': hourly(3, lambda _: ago(3)),
        f'{SEEN}{{pod="b", namespace="team"}}': hourly(3, lambda _: ago(2)),
        f'{SEEN}{{pod="b", namespace="done"}}': hourly(60, lambda _: ago(50)),
    }
    team = f"{{{TEAM}}}"
    asked = [
        (AT, query(title), {team: 3.0}),
        (AT, query(title, 1), {team: ago(2) * 1000.0}),
    ]
    promtool.judge(tmp_path, series, asked, interval="1h")


def test_the_first_denial_counts(tmp_path: Path) -> None:
    warned = 'gpu_webhook_decisions_total{rule="GPU301", mode="warn", action="would deny"}'
    repaired = 'gpu_webhook_decisions_total{rule="GPU101", mode="enforce", action="repaired"}'
    series = {
        f'{DENIED[:-1]}, pod="a"}}': hourly(1, lambda _: 1),
        f'{DENIED[:-1]}, pod="b"}}': hourly(40, lambda _: 5),  # of before
        warned: hourly(1, lambda _: 4),
        repaired: hourly(1, lambda _: 7),
    }
    labels = [each.partition("{")[2] for each in (DENIED, warned)]
    found = {f"{{{labels[0]}": 1.0, f"{{{labels[1]}": 4.0}
    asked = [(AT, f"round({query('Denials in the chosen time, by rule')})", found)]
    promtool.judge(tmp_path, series, asked, interval="1h")


def test_grafana_can_lay_it_out() -> None:
    """Each panel has a number and a place of its own, and asks the chosen data source."""
    numbers = [each["id"] for each in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken: set[tuple[int, int]] = set()
    for each in DASHBOARD["panels"]:
        at = each["gridPos"]
        assert at["x"] + at["w"] <= 24
        fields = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not fields & taken
        taken |= fields
    (variable,) = DASHBOARD["templating"]["list"]
    uid = f"${{{variable['name']}}}"
    assert {each["datasource"]["uid"] for each in PANELS} == {uid}


def test_kustomize_gives_it_the_label_that_grafana_looks_for() -> None:
    component = yaml.safe_load(FILE.with_name("kustomization.yaml").read_text())
    (generated,) = component["configMapGenerator"]
    assert generated["options"]["labels"] == {"grafana_dashboard": "1"}
