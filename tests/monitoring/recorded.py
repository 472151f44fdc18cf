"""A month of a real server in a real Prometheus: the panels of the dashboard in, their data out.

The server judges pods and denies some; its page gives the metrics, labels and sizes. Each of its
series gets 31 days of hourly samples that end with what the page has, so a query over 30 days
finds what it would find in a cluster. Only what the API server and Prometheus themselves count is
written by hand.
"""

from __future__ import annotations

import copy
import json
import math
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster.client import until
from tests.cluster.controlplane import free_ports
from tests.hostile.wire import gpu_pod, review, serving
from tests.monitoring import promtool
from tests.monitoring.queries import FAILED_OPEN
from tests.telemetry.scraping import scrape, value
from tests.telemetry.test_page_of_metrics import watched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from prometheus_client.samples import Sample

HOUR, DAY = 3600, 86_400
_HOURS = 31 * 24
_SETTINGS = """\
policy: {rules: {GPU304: enforce}, overrides: [{namespaces: [trial], rules: {GPU304: warn}}]}
capacity: {limits: [{gpus: {nvidia.com/gpu: 2}, namespaces: [small, trial]}]}
"""
# Who sends legacy pods, how often, and how many days ago the last one came.
_TEAMS = {
    ("vision", "ReplicaSet"): (6, 0.2),
    ("speech", "Job"): (4, 3),
    ("archive", "Pod"): (1, 16),
}
_OTHERS = {
    f'{FAILED_OPEN}{{name="repair.gpu-webhook.dev",type="admit"}}': 20 * 24,
    'ALERTS{alertname="GpuWebhookSlow",alertstate="firing",severity="warning"}': 1,
}  # for how many of the last hours they are there


def samples(folder: Path) -> list[Sample]:
    """What a server exposes after some pods: repaired, warned about and denied."""
    (folder / "settings.yaml").write_text(_SETTINGS)
    (port,) = free_ports(1)
    flags = (f"--metrics-bind=127.0.0.1:{port}", f"--config={folder / 'settings.yaml'}")
    (snapshot := folder / "snapshot").mkdir()
    assert [*watched(snapshot)], "a watcher has written one"
    with serving(folder, "--dev", "--workers=1", f"--snapshot={snapshot}", *flags) as server:
        for (namespace, kind), (number, _) in _TEAMS.items():
            owner = {"apiVersion": "apps/v1", "kind": kind, "name": "train", "controller": True}
            for _ in range(number):
                server.mutate(_pod(namespace, [owner | {"uid": "1"}], 2), namespace=namespace)
        for namespace in ("small", "small", "trial"):
            server.post(review(_pod(namespace, [], 4), namespace=namespace), "/validate")
        return until(lambda: _judged(port), "all of them to be counted", 60)


def _judged(port: int) -> list[Sample] | None:
    """The page, if it has the last review: times are written apart from counts."""
    found = scrape(port)
    warned = {"rule": "GPU304", "mode": "warn", "action": "would deny"}
    there = (
        value(found, "gpu_webhook_decisions_total", **warned),
        value(found, "gpu_webhook_rule_last_repair_timestamp_seconds", rule="GPU201"),
        *(
            value(found, "gpu_webhook_namespace_last_legacy_timestamp_seconds", namespace=name)
            for name, _ in _TEAMS
        ),
    )
    return [each for family in found.values() for each in family.samples] if all(there) else None


def _pod(namespace: str, owners: list[dict[str, Any]], gpus: int) -> dict[str, Any]:
    pod = copy.deepcopy(gpu_pod())
    pod["metadata"] |= {"namespace": namespace, "ownerReferences": owners}
    legacy, modern = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
    name = legacy if owners else modern
    limits = {name: str(gpus)}
    pod["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
    return pod


def month(found: Iterable[Sample], now: int) -> Iterator[str]:
    """The lines of a page with all samples of the month."""
    for each in found:
        labels = ",".join(f"{key}={json.dumps(value)}" for key, value in each.labels.items())
        name = f'{each.name}{{{labels}{"," * bool(labels)}pod="gpu-webhook-0"}}'
        for at in range(now - _HOURS * HOUR, now + 1, HOUR):
            yield f"{name} {_value(each, at, now)} {1000 * at}\n"
    for name, hours in _OTHERS.items():
        yield from (f"{name} 1 {1000 * (now - n * HOUR)}\n" for n in reversed(range(hours)))


def _value(sample: Sample, at: int, now: int) -> float:
    """A counter rises by day; a time of something that came is never later than the sample."""
    days = {namespace: days for (namespace, _), (_, days) in _TEAMS.items()}
    ago = days.get(sample.labels.get("namespace", ""), min(days.values()))
    if sample.name.endswith("_last_legacy_timestamp_seconds"):
        return min(at, now - round(ago * DAY))
    if sample.name.endswith(("_total", "_bucket", "_count", "_sum")):
        hours = max(0, min(at, now - ago * DAY) - now + _HOURS * HOUR) / HOUR
        return float(math.floor(sample.value * (hours + 3 * math.sin(hours * math.tau / 24)) / 30))
    return float(sample.value)


class Prometheus:
    """A running one that has scraped the month."""

    def __init__(self, port: int, now: int) -> None:
        self._port, self.now = port, now

    def ask(self, query: str, hours: int = 0) -> list[dict[str, Any]]:
        """The result now; with hours, one value for each of them."""
        asked: dict[str, Any] = {"query": query, "time": self.now}
        if hours:
            asked |= {"start": self.now - hours * HOUR, "end": self.now, "step": HOUR}
        path = f"query{'_range' * bool(hours)}?{urllib.parse.urlencode(asked)}"
        address = f"http://127.0.0.1:{self._port}/api/v1/{path}"
        with urllib.request.urlopen(address, timeout=60) as answer:
            result: list[dict[str, Any]] = json.loads(answer.read())["data"]["result"]
            return result


@contextmanager
def prometheus(folder: Path) -> Iterator[Prometheus]:
    """Run one that scrapes the month of a server, and wait until it has all of it."""
    program = promtool.find("prometheus")
    assert program, promtool.MISSING
    now = int(time.time()) // HOUR * HOUR  # a query for each hour looks 5 minutes back
    pages = ["".join(month(samples(folder), now)).encode()]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(pages.pop() if pages else b"")  # once is enough

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    port, *_ = free_ports(1)
    with HTTPServer(("127.0.0.1", 0), Page) as page:
        threading.Thread(target=page.serve_forever, args=(0.02,), daemon=True).start()
        scraped = {
            "job_name": "gpu-webhook",
            "honor_labels": True,
            "scrape_interval": "5s",
            "static_configs": [{"targets": [f"127.0.0.1:{page.server_port}"]}],
        }
        text = {
            "scrape_configs": [scraped],
            "storage": {"tsdb": {"out_of_order_time_window": "40d"}},
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(text))
        words = (
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            "--storage.tsdb.retention.time=60d",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        with (folder / "prometheus.log").open("w") as log:
            running = subprocess.Popen([program, *words], stdout=log, stderr=log)
        try:
            found = Prometheus(port, now)
            _wait(found, running, folder / "prometheus.log")
            yield found
        finally:
            running.terminate()
            running.wait(timeout=60)
            page.shutdown()


def _wait(found: Prometheus, running: subprocess.Popen[bytes], log: Path) -> None:
    last = [*_OTHERS][-1]  # of the page
    for _ in range(600):
        assert running.poll() is None, log.read_text()
        try:
            if found.ask(last):
                return
        except OSError:
            pass  # it starts
        time.sleep(0.1)
    raise AssertionError(log.read_text())
