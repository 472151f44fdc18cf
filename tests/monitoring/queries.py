"""The metrics and labels that a query names; promtool judges whether it is PromQL at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.telemetry.test_page_of_metrics import TABLE
from webhook.admission.outcome import OUTCOMES
from webhook.certs.failed_handshakes import REASONS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of the API server; tests/cluster/test_api_server_metrics.py asks a real one.
FAILED_OPEN = "apiserver_admission_webhook_fail_open_count"
REJECTED = "apiserver_admission_webhook_rejection_count"
CONDITIONS = "apiserver_admission_match_condition_evaluation_errors_total"
API_SERVER: dict[str, set[str]] = {
    FAILED_OPEN: {"name", "type"},
    REJECTED: {"name", "type", "operation", "error_type", "rejection_code"},
    CONDITIONS: {"name", "type", "operation", "kind"},
}
_PROMETHEUS = {"up": set[str](), "ALERTS": {"alertname", "alertstate", "severity"}}
EXPOSED = TABLE | API_SERVER | _PROMETHEUS
TARGET = {"job", "instance", "pod"}  # what Prometheus adds to each series
ACTIONS = {"repaired", "would repair", "denied", "would deny", "reported", "excepted"}
_VALUES = {"outcome": set(OUTCOMES), "reason": set(REASONS), "action": ACTIONS}
_METRIC = re.compile(r"\b(gpu_webhook_\w+|apiserver_\w+|up|ALERTS)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"([^\"]*)\"")
_GROUPING = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")


def faults(query: str) -> Iterator[str]:
    """Metrics, labels and values of labels in it that no server has."""
    known = set(TARGET)
    for name, matchers in _METRIC.findall(query):
        labels = EXPOSED.get(re.sub(r"_(bucket|count|sum)$", "", name), EXPOSED.get(name))
        if labels is None:
            yield f"no metric {name}"
            continue
        known |= labels | ({"le"} if name.endswith("_bucket") else set())
        for label, value in _MATCHER.findall(matchers):
            if label not in labels | TARGET:
                yield f"{name} has no label {label}"
            missing = set(value.split("|")) - _VALUES.get(label, set(value.split("|")))
            if missing:
                yield f"{label} is never {sorted(missing)}"
    for labels in _GROUPING.findall(query):
        for label in filter(None, (each.strip() for each in labels.split(","))):
            if label not in known:
                yield f"no metric of it has the label {label}"


def kept(query: str) -> set[str]:
    """The labels that the result has: those of its aggregations."""
    found = re.findall(r"\bby\s*\(([^)]*)\)", query)
    return {each.strip() for labels in found for each in labels.split(",")} - {""}
