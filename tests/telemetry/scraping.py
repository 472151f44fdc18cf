"""Scrapes, and what Prometheus expects of them (`promtool check metrics`)."""

from __future__ import annotations

import http.client
import re
from typing import TYPE_CHECKING

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.metrics_core import Metric

OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
_UNITS = {"milliseconds", "minutes", "hours", "kilobytes", "megabytes", "percent"}
_ABBREVIATED = {"s", "ms", "us", "sec", "b", "kb", "mb"}


def get(port: int, path: str, accept: str = "", method: str = "GET") -> tuple[int, str, str]:
    """Status, content type and text of one answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers={"Accept": accept} if accept else {})
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read().decode()
    finally:
        connection.close()


def scrape(port: int) -> dict[str, Metric]:
    """The families of the page, by name."""
    status, _, text = get(port, "/metrics")
    assert status == 200
    assert faults(text) == []
    return families(text)


def families(text: str) -> dict[str, Metric]:
    parsed: Iterable[Metric] = text_string_to_metric_families(text)
    return {each.name: each for each in parsed}


def openmetrics_families(text: str) -> dict[str, Metric]:
    parsed: Iterable[Metric]
    parsed = openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return {each.name: each for each in parsed}


def value(found: dict[str, Metric], sample: str, **labels: str) -> float | None:
    """The value of one sample; None if it is not there."""
    for family in found.values():
        for each in family.samples:
            if each.name == sample and each.labels == labels:
                return each.value
    return None


def faults(text: str) -> list[str]:
    """What a linter would say of a page in Prometheus' text format."""
    found = [f"{line}: not announced" for line in _unannounced(text)]
    counters = re.findall("^# TYPE (.+) counter$", text, re.MULTILINE)
    found += [f"{name}: a counter without _total" for name in counters if name[-6:] != "_total"]
    for each in families(text).values():
        found += [f"{each.name}: {fault}" for fault in _faults(each)]
    return found


def _unannounced(text: str) -> Iterable[str]:
    """Samples without HELP and TYPE before them."""
    announced: dict[str, set[str]] = {"HELP": set(), "TYPE": set()}
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, _ = line.split(" ", 3)
            announced[what].add(name)
        else:
            name = re.split("[ {]", line, maxsplit=1)[0]
            plain = re.sub("_(bucket|count|sum)$", "", name)
            if not all({name, plain} & names for names in announced.values()):
                yield line


def _faults(family: Metric) -> Iterable[str]:
    if not family.documentation.strip():
        yield "no HELP"
    if not re.fullmatch("gpu_webhook_[a-z][a-z_]*[a-z]", family.name):
        yield "an odd name"
    words = set(family.name.split("_"))
    if words & (_UNITS | _ABBREVIATED):
        yield "a unit that is no base unit"
    if family.type != "counter" and family.name.endswith(("_total", "_count", "_sum")):
        yield "the name of a counter"
    if family.type not in {"counter", "gauge", "histogram"}:
        yield f"type {family.type}"
    labels = {label for sample in family.samples for label in sample.labels}
    if "le" in labels and family.type != "histogram":
        yield "a label of histograms"
