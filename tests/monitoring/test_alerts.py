"""prometheus-rule.yaml by the real promtool: what raises an alert, and what does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring import promtool
from tests.monitoring.queries import faults, kept

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
SPEC: dict[str, Any] = yaml.safe_load(
    (ROOT / "manifests" / "monitoring" / "prometheus-rule.yaml").read_text()
)["spec"]
ALERTS = {rule["alert"]: rule for group in SPEC["groups"] for rule in group["rules"]}
TROUBLESHOOTING = (ROOT / "docs" / "troubleshooting.md").read_text()

NOW = 65  # minutes after the first sample: one alert waits for an hour
_REPLICA = 'pod="a"'


def then(before: float, minute: int, after: float) -> list[float]:
    """The values of a series that changes once."""
    return [before if each < minute else after for each in range(NOW + 10)]


def always(value: float) -> list[float]:
    return then(value, 0, value)


def rising(step: float, minute: int = 0) -> list[float]:
    """A counter that rises every minute from this one on."""
    return [step * max(0, each - minute) for each in range(NOW + 10)]


def begins(minute: int, value: float) -> list[Any]:
    """A series that is not there before."""
    return ["_" if each < minute else value for each in range(NOW + 10)]


def mine(name: str, labels: str = "") -> str:
    return f"gpu_webhook_{name}{{{', '.join(filter(None, (_REPLICA, labels)))}}}"


def server(name: str, entry: str = "repair.gpu-webhook.dev", more: str = 'type="admit"') -> str:
    return f'apiserver_admission_{name}{{job="apiserver", instance="1", name="{entry}", {more}}}'


UP = 'up{job="apiserver", instance="1"}'
BUILD = mine("build_info", 'version="1"')
EXPIRY = mine("certificate_expiry_timestamp_seconds")
START = mine("certificate_not_before_timestamp_seconds")
OPEN = server("webhook_fail_open_count")
OUR_FAULT = 'type="admit", operation="CREATE", error_type="calling_webhook_error"'
NO_FAULT = 'type="validating", operation="CREATE", error_type="no_error"'
FAST, SLOWER, ALL = (
    mine("review_seconds_bucket", f'path="/mutate", le="{le}"') for le in ("0.1", "0.25", "+Inf")
)
HEALTHY: dict[str, Any] = {
    UP: always(1),
    BUILD: always(1),
    OPEN: always(7),  # long ago
    START: always(0),
    EXPIRY: always(30 * 86400),
    mine("certificate_last_reload_successful"): always(1),
    mine("settings_last_reload_successful"): always(1),
    mine("watcher_up"): always(1),
    mine("watcher_settings_good"): always(1),
    mine("watcher_certificates_good"): always(1),
    mine("watcher_refused", 'kind="nodes"'): always(0),
    mine("watcher_errors_total", 'kind="nodes"'): always(3),
    mine("inventory_usable"): always(1),
    mine("rule_failures_total", 'rule="GPU101"'): always(0),
    mine("tls_failures_total", 'reason="server certificate"'): always(0),
    mine("reviews_total", 'path="/mutate", outcome="unfinished"'): always(0),
    FAST: rising(60),
    SLOWER: rising(60),
    ALL: rising(60),
}


def zero(name: str, minute: int = NOW - 30) -> dict[str, Any]:
    return {mine(name): then(1, minute, 0)}


ROWS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "all is well": ({}, set()),
    "no replica for an hour": ({BUILD: then(1, NOW - 60, 1)[: NOW - 60]}, {"Down"}),
    "no replica for two minutes": ({BUILD: then(1, 0, 1)[: NOW - 6]}, set()),
    "one call more that failed open": ({OPEN: then(7, NOW - 5, 8)}, {"FailsOpen"}),
    "the first call that failed open": ({OPEN: begins(NOW - 5, 1)}, {"FailsOpen"}),
    "a call that failed open an hour ago": ({OPEN: then(7, NOW - 60, 8)}, set()),
    "old failures of an API server that Prometheus first sees now": (
        {OPEN: begins(NOW - 5, 7), UP: begins(NOW - 5, 1)},
        set(),
    ),
    "a call of another webhook that failed open": (
        {server("webhook_fail_open_count", "other.example.com"): begins(NOW - 5, 1)},
        set(),
    ),
    "the first object refused since a call failed": (
        {server("webhook_rejection_count", "guard.gpu-webhook.dev", OUR_FAULT): begins(NOW - 5, 1)},
        {"FailsClosed"},
    ),
    "an object that the webhook denied": (
        {server("webhook_rejection_count", "policy.gpu-webhook.dev", NO_FAULT): rising(1)},
        set(),
    ),
    "a matchCondition that fails": (
        {
            server(
                "match_condition_evaluation_errors_total", more='kind="webhook", type="admit"'
            ): begins(NOW - 5, 1)
        },
        {"MatchConditionsFail"},
    ),
    "a certificate of a month for 6 more days": (
        {START: always(-24 * 86400), EXPIRY: always(6 * 86400)},
        {"CertificateExpires"},
    ),
    "a certificate for 8 more days": ({EXPIRY: always(8 * 86400)}, set()),
    "a certificate for three days that was renewed a day ago": (
        {START: always(-86400), EXPIRY: always(2 * 86400)},
        set(),
    ),
    "a certificate for three days that is not renewed": (
        {START: always(-2.5 * 86400), EXPIRY: always(0.5 * 86400)},
        {"CertificateExpires"},
    ),
    "a certificate of which another replica has one that ends sooner": (
        {START.replace('"a"', '"b"'): always(-86400), EXPIRY.replace('"a"', '"b"'): always(3600)},
        {"CertificateExpires"},
    ),
    "an old certificate": (zero("certificate_last_reload_successful"), {"KeepsOldCertificate"}),
    "an old certificate for 5 minutes": (
        zero("certificate_last_reload_successful", NOW - 5),
        set(),
    ),
    "certificates that cannot be kept": (
        zero("watcher_certificates_good"),
        {"CannotKeepCertificates"},
    ),
    "certificates that could not be kept until 5 minutes ago": (
        {mine("watcher_certificates_good"): then(0, NOW - 5, 1)},
        set(),
    ),
    "clients that do not accept the certificate": (
        {mine("tls_failures_total", 'reason="server certificate"'): then(0, NOW - 5, 1)},
        {"RefusesClients"},
    ),
    "a port scan": ({mine("tls_failures_total", 'reason="not TLS"'): rising(1)}, set()),
    "one watcher of two": (
        zero("watcher_up") | {mine("watcher_up").replace('"a"', '"b"'): always(1)},
        {"WatcherAway"},
    ),
    "no watcher": (zero("watcher_up"), {"WatcherAway", "WatchersAway"}),
    "a watcher that restarts": (zero("watcher_up", NOW - 1), set()),
    "a right that the watcher lacks": (
        {mine("watcher_refused", 'kind="nodes"'): then(0, NOW - 30, 1)},
        {"WatcherLacksRights"},
    ),
    "a right that the watcher lacked for 5 minutes": (
        {mine("watcher_refused", 'kind="nodes"'): then(0, NOW - 5, 1)},
        set(),
    ),
    "lists that fail every minute": (
        {mine("watcher_errors_total", 'kind="nodes"'): rising(1)},
        {"WatcherFails"},
    ),
    "watches that broke off while API servers were updated": (
        {mine("watcher_errors_total", 'kind="nodes"'): then(0, NOW - 10, 6)},
        set(),
    ),
    "no inventory": (zero("inventory_usable"), {"InventoryUnusable"}),
    "no inventory for 5 minutes": (zero("inventory_usable", NOW - 5), set()),
    "settings with a mistake": (zero("settings_last_reload_successful"), {"KeepsOldSettings"}),
    "a watcher with old settings": (zero("watcher_settings_good"), {"KeepsOldSettings"}),
    "settings with a mistake for 3 minutes": (zero("watcher_settings_good", NOW - 3), set()),
    "a rule that failed": (
        {mine("rule_failures_total", 'rule="GPU101"'): then(0, NOW - 10, 1)},
        {"RuleFails"},
    ),
    "a rule that failed yesterday": (
        {mine("rule_failures_total", 'rule="GPU101"'): always(4)},
        set(),
    ),
    "objects that were not judged": (
        {mine("reviews_total", 'path="/mutate", outcome="unfinished"'): then(0, NOW - 10, 9)},
        {"LeavesReviewsUnfinished"},
    ),
    "objects of no interest": (
        {mine("reviews_total", 'path="/mutate", outcome="passed"'): rising(600)},
        set(),
    ),
    "one in 30 reviews is slow": ({FAST: rising(58)}, {"Slow"}),
    "one in 30 reviews is slow for 5 minutes": (
        {FAST: [60 * each - 2 * max(0, each - NOW + 5) for each in range(NOW + 10)]},
        set(),
    ),
}
FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'


@pytest.mark.parametrize(("change", "expected"), ROWS.values(), ids=ROWS)
def test_exactly_these_alerts_fire(
    change: dict[str, Any], expected: set[str], tmp_path: Path
) -> None:
    samples = {f'{{alertname="GpuWebhook{each}"}}': 1.0 for each in expected}
    promtool.judge(tmp_path, HEALTHY | change, [(f"{NOW}m", FIRING, samples)], SPEC)


def test_each_alert_fires_in_a_row() -> None:
    fired = {f"GpuWebhook{each}" for _, expected in ROWS.values() for each in expected}
    assert fired == ALERTS.keys()


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_names_what_a_server_exposes(name: str) -> None:
    assert list(faults(ALERTS[name]["expr"])) == []


@pytest.mark.parametrize("name", ALERTS)
def test_the_words_of_an_alert_use_labels_that_it_has(name: str) -> None:
    rule = ALERTS[name]
    used = re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values()))
    assert set(used) <= kept(rule["expr"])
    assert rule["labels"]["severity"] in {"warning", "critical"}


def test_each_alert_has_a_section_that_it_names() -> None:
    sections = re.findall(r"^### (GpuWebhook\w+)$", TROUBLESHOOTING, re.MULTILINE)
    assert sections == list(ALERTS)
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook"] == f"docs/troubleshooting.md#{name.lower()}"


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("sum(gpu_webhook_review_total)", "no metric gpu_webhook_review_total"),
        ('gpu_webhook_watcher_up{kind="a"}', "gpu_webhook_watcher_up has no label kind"),
        ("sum by (rule) (gpu_webhook_reviews_total)", "no metric of it has the label rule"),
        ('gpu_webhook_reviews_total{outcome=~"denied|refuse"}', "outcome is never ['refuse']"),
    ],
)
def test_a_name_that_no_server_exposes_is_found(query: str, fault: str) -> None:
    assert list(faults(query)) == [fault]
