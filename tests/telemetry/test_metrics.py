"""Metrics: counted in several real processes, read from the page of another."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.telemetry.scraping import (
    OPENMETRICS,
    faults,
    get,
    openmetrics_families,
    scrape,
    value,
)
from webhook import __version__
from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode
from webhook.kube.pointer import ROOT
from webhook.telemetry import metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.programs

PROGRAM = Path(__file__).with_name("counted_server.py")


class Counted:
    """The server of counted_server.py."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        told = json.loads(self._line())
        self.port: int = told["port"]
        self.folder = Path(told["folder"])

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        return line

    def tell(self, worker: int | str, method: str, *arguments: Any, **named: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([worker, method, arguments, named]) + "\n")
        self.process.stdin.flush()
        if method != "stop":
            assert self._line() == "done\n"

    @property
    def page(self) -> int:
        """The process that makes the page."""
        return children(self.process.pid)[0]

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def children(process: int) -> list[int]:
    """In the order of their making."""
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(each) for each in path.read_text().split()]


@pytest.fixture
def server() -> Iterator[Counted]:
    running = Counted()
    yield running
    running.end()


def until(question: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def answers(port: int) -> bool:
    try:
        return get(port, "/healthz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def is_alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_what_all_workers_count_is_added_up(server: Counted) -> None:
    server.tell(0, "review", "/mutate", "patched", 0.0007)
    server.tell(1, "review", "/mutate", "patched", 0.004)
    server.tell(1, "review", "/validate", "allowed", 3.0)
    server.tell("all", "decided", [["GPU101", "enforce", "repaired"], ["GPU301", "warn", "denied"]])
    server.tell(0, "decided", [["GPU301", "warn", "denied"]])
    server.tell(1, "rule_failed", "GPU101")

    found = scrape(server.port)

    def count(sample: str, **labels: str) -> float | None:
        return value(found, f"gpu_webhook_{sample}", **labels)

    assert count("reviews_total", path="/mutate", outcome="patched") == 2
    assert count("reviews_total", path="/validate", outcome="allowed") == 1
    assert count("decisions_total", rule="GPU101", mode="enforce", action="repaired") == 2
    assert count("decisions_total", rule="GPU301", mode="warn", action="denied") == 3
    assert count("rule_failures_total", rule="GPU101") == 1
    assert count("review_seconds_count", path="/mutate") == 2
    assert count("review_seconds_sum", path="/mutate") == pytest.approx(0.0047)
    buckets = {
        bound: count("review_seconds_bucket", path="/mutate", le=bound)
        for bound in ("0.0005", "0.001", "0.0025", "0.005", "1.0", "+Inf")
    }
    assert list(buckets.values()) == [0, 1, 1, 2, 2, 2]
    assert count("review_seconds_bucket", path="/validate", le="1.0") == 0
    assert count("review_seconds_bucket", path="/validate", le="+Inf") == 1


def test_a_series_that_an_alarm_waits_for_is_there_before_it_rises(server: Counted) -> None:
    server.tell(0, "flush")
    found = scrape(server.port)
    for code in ("GPU101", "GPU301"):
        assert value(found, "gpu_webhook_rule_failures_total", rule=code) == 0


def test_the_worker_that_is_worst_off_counts_while_it_lives(server: Counted) -> None:
    name = "gpu_webhook_settings_last_reload_successful"
    server.tell("all", "flush")
    assert value(scrape(server.port), name) == 1, "the parent read them before the fork"
    server.tell(0, "settings", ok=False)
    assert value(scrape(server.port), name) == 0
    server.tell(0, "review", "/mutate", "allowed", 0.1)
    server.tell(0, "end")
    found = scrape(server.port)
    assert value(found, name) == 1
    assert value(found, "gpu_webhook_reviews_total", path="/mutate", outcome="allowed") == 1


def test_moments_are_those_of_the_worker_that_is_furthest_behind(server: Counted) -> None:
    names = ("settings_last_reload_timestamp_seconds", "inventory_loaded_timestamp_seconds")
    before = time.time()
    server.tell("all", "inventory_loaded")
    between = time.time()
    server.tell(0, "inventory_loaded")
    server.tell(0, "settings", ok=True)
    found = scrape(server.port)
    settings, inventory = (value(found, f"gpu_webhook_{name}") for name in names)
    assert settings is not None
    assert inventory is not None
    assert settings < before < inventory < between


def test_nothing_is_said_of_an_inventory_that_nobody_loaded(server: Counted) -> None:
    server.tell("all", "flush")
    assert "gpu_webhook_inventory_loaded_timestamp_seconds" not in scrape(server.port)


LEGACY, LAST = "gpu_webhook_legacy_objects_total", "gpu_webhook_last_legacy_timestamp_seconds"
SEEN = "gpu_webhook_namespace_last_legacy_timestamp_seconds"
REPAIRS = "gpu_webhook_rule_last_repair_timestamp_seconds"


def test_the_last_legacy_object_is_that_of_all_workers_dead_ones_included(server: Counted) -> None:
    server.tell("all", "flush")
    assert value(scrape(server.port), LAST) == 0, "none is said, not left out"
    server.tell("all", "legacy", "team-a", "ReplicaSet")
    between = time.time()
    server.tell(0, "legacy", "team-b", "Pod")
    server.tell(0, "end")
    found = scrape(server.port)
    assert value(found, LEGACY, namespace="team-a", kind="ReplicaSet") == 2
    assert value(found, LEGACY, namespace="team-b", kind="Pod") == 1
    assert (value(found, LAST) or 0) > between
    assert (value(found, SEEN, namespace="team-b") or 0) > between
    assert 0 < (value(found, SEEN, namespace="team-a") or 0) < between


def test_the_last_repair_by_each_rule_is_that_of_all_workers(server: Counted) -> None:
    server.tell("all", "flush")
    assert value(scrape(server.port), REPAIRS, rule="GPU201") == 0, "none is said, not left out"
    server.tell("all", "repaired", [("GPU201", "enforce", "repaired")])
    between = time.time()
    server.tell(0, "repaired", [("GPU202", "enforce", "repaired"), ("GPU101", "warn", "reported")])
    found = scrape(server.port)
    assert 0 < (value(found, REPAIRS, rule="GPU201") or 0) < between
    assert (value(found, REPAIRS, rule="GPU202") or 0) > between
    assert value(found, REPAIRS, rule="GPU101") is None


def test_the_page_has_the_version(server: Counted) -> None:
    found = scrape(server.port)
    assert value(found, "gpu_webhook_build_info", version=__version__) == 1


def test_namespaces_that_tenants_make_are_no_series_without_end(server: Counted) -> None:
    for number in range(205):
        server.tell(0, "legacy", f"n{number}", "Pod")
    server.tell(0, "legacy", "n0", "Pod")
    found = scrape(server.port)
    assert value(found, LEGACY, namespace="other", kind="other") == 5
    assert value(found, LEGACY, namespace="n0", kind="Pod") == 2
    assert value(found, LEGACY, namespace="n204", kind="Pod") is None
    seen = found[SEEN].samples
    assert len(seen) == 201
    assert {each.labels["namespace"] for each in seen} >= {"n0", "n199", "other"}


def test_prometheus_gets_openmetrics(server: Counted) -> None:
    server.tell(0, "review", "/mutate", "patched", 0.0007)
    status, content_type, text = get(server.port, "/metrics", OPENMETRICS)
    assert status == 200
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    found = openmetrics_families(text)
    assert value(found, "gpu_webhook_reviews_total", path="/mutate", outcome="patched") == 1


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        pytest.param("GET", "/healthz", 200, "ok", id="the probe"),
        pytest.param("GET", "/", 404, "/metrics", id="another path: 404 names the right one"),
        pytest.param("GET", "/metrics/", 404, "/metrics", id="no other spelling"),
        pytest.param("POST", "/metrics", 501, "POST", id="another method: 501"),
    ],
)
def test_what_else_is_asked(
    server: Counted, method: str, path: str, status: int, text: str
) -> None:
    answer = get(server.port, path, method=method)
    assert answer[0] == status
    assert text in answer[2]


@pytest.mark.slow
def test_connections_that_say_nothing_keep_nobody_out_for_long(server: Counted) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    began = time.monotonic()
    until(lambda: answers(server.port), 20)
    print(f"\nfull of idle connections, it answered after {time.monotonic() - began:.1f} s")  # noqa: T201
    for each in idle:
        each.close()


def test_a_page_that_dies_is_started_again(server: Counted) -> None:
    server.tell(0, "review", "/mutate", "patched", 0.1)
    first = server.page
    os.kill(first, signal.SIGKILL)
    until(lambda: not is_alive(first) and answers(server.port))
    found = scrape(server.port)
    assert value(found, "gpu_webhook_reviews_total", path="/mutate", outcome="patched") == 1
    line = json.loads(server._line())
    assert line["message"] == "the metrics page ended; it is started again, and no count is lost"
    assert line["ended_by"] == "SIGKILL"


def test_a_page_without_its_server_ends_with_the_last_worker(server: Counted) -> None:
    page, *workers = children(server.process.pid)
    os.kill(workers[0], signal.SIGSTOP)
    server.process.kill()
    server.process.wait()
    until(lambda: not is_alive(workers[1]))
    assert answers(server.port), "one worker is left"
    os.kill(workers[0], signal.SIGKILL)
    until(lambda: not is_alive(page))
    assert not server.folder.exists()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
def test_signals_to_the_whole_group_end_the_page_last(server: Counted, name: str) -> None:
    os.kill(server.page, signal.Signals[name])
    time.sleep(0.1)
    assert answers(server.port)
    assert is_alive(server.page)


def test_a_server_that_stops_leaves_nothing(server: Counted) -> None:
    server.tell(0, "review", "/mutate", "patched", 0.1)
    page = server.page
    server.tell("all", "stop")
    assert server.process.wait(60) == 0
    assert not is_alive(page)
    assert not server.folder.exists()
    socket.create_server(("127.0.0.1", server.port)).close()


def test_a_server_that_is_killed_leaves_nothing(server: Counted) -> None:
    server.tell(0, "review", "/mutate", "patched", 0.1)
    page = server.page
    server.process.kill()  # its workers notice that their input ends
    until(lambda: not is_alive(page))
    assert not server.folder.exists()
    socket.create_server(("127.0.0.1", server.port)).close()


def test_the_next_server_removes_what_a_killed_one_left_behind(server: Counted) -> None:
    server.tell("all", "flush")
    processes = children(server.process.pid)
    for process in [server.process.pid, *processes]:
        os.kill(process, signal.SIGSTOP)
    for process in [server.process.pid, *processes]:
        os.kill(process, signal.SIGKILL)
    server.process.wait()
    until(lambda: not answers(server.port))
    assert server.folder.exists()
    living = Counted()
    try:
        assert not server.folder.exists()
        another = Counted()
        another.end()
        assert living.folder.exists()
    finally:
        living.end()


def test_a_folder_that_is_gone_stops_no_worker(server: Counted) -> None:
    until(lambda: answers(server.port))
    for file in server.folder.iterdir():
        file.unlink()
    server.folder.rmdir()
    server.tell("all", "review", "/mutate", "patched", 0.1)
    server.tell(0, "end")
    assert answers(server.port)


def test_without_a_page_nothing_is_imported_and_nothing_counted() -> None:
    program = (
        "import sys; from webhook.telemetry.metrics import NONE; NONE.review('/mutate', 'x', 1.0);"
        "NONE.decided([('a', 'b', 'c')]); NONE.rule_failed('x'); NONE.settings(ok=True);"
        "NONE.inventory_loaded(); NONE.flush(); NONE.ended(1);"
        "sys.exit('prometheus_client' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_counters_that_only_one_process_would_see_are_an_error() -> None:
    """prometheus_client decides when it is imported whether processes share its counters."""
    program = (
        "import prometheus_client, pathlib; from webhook.telemetry import metrics;"
        "metrics.counting(pathlib.Path('/nowhere'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={k: v for k, v in os.environ.items() if k != "PROMETHEUS_MULTIPROC_DIR"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "imported before" in done.stderr


def test_decisions_are_rule_mode_and_action() -> None:
    found = [
        Finding("GPU301", ROOT, "m", severity=Severity.DENY, mode=Mode.WARN),
        Finding("GPU301", ROOT, "m", severity=Severity.DENY),
        Finding("GPU302", ROOT, "m", severity=Severity.MANUAL, exception="why"),
    ]
    assert metrics.decisions_of(found) == (
        ("GPU301", "warn", "would deny"),
        ("GPU301", "enforce", "denied"),
        ("GPU302", "enforce", "excepted"),
    )


_CALLS = """
import pathlib, shutil, sys, tempfile
from webhook.telemetry import metrics
folder = pathlib.Path(tempfile.mkdtemp())
counter = metrics.counting(folder)
calls = 0
def count(*_):
    global calls
    calls += 1
def once():
    counter.review("/mutate", "patched", 0.00041)
    counter.decided((("GPU101", "enforce", "repaired"), ("GPU104", "enforce", "repaired")))
for work in (once, counter.flush, once, counter.flush):
    calls = 0
    sys.setprofile(count)
    work()
    sys.setprofile(None)
    print(calls)
shutil.rmtree(folder)
"""


def test_a_review_is_counted_in_few_calls_and_without_a_write() -> None:
    """A file is written when the counts are flushed, once a second, and not by a review."""
    out = subprocess.check_output([sys.executable, "-c", _CALLS], text=True)
    _, _, review, flush = map(int, out.split())
    assert review < 30 < flush


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("gpu_webhook_x 1\n", "not announced", id="neither HELP nor TYPE"),
        pytest.param(
            "# TYPE gpu_webhook_x gauge\ngpu_webhook_x 1\n", "not announced", id="no HELP"
        ),
        pytest.param(
            "# HELP gpu_webhook_x \n# TYPE gpu_webhook_x gauge\ngpu_webhook_x 1\n",
            "no HELP",
            id="an empty HELP",
        ),
        pytest.param(
            "# HELP gpu_webhook_x t\n# TYPE gpu_webhook_x counter\ngpu_webhook_x 1\n",
            "without _total",
            id="a counter by the name of a gauge",
        ),
        pytest.param(
            "# HELP gpu_webhook_x_ms t\n# TYPE gpu_webhook_x_ms gauge\ngpu_webhook_x_ms 1\n",
            "base unit",
            id="milliseconds",
        ),
    ],
)
def test_the_linter_finds(text: str, fault: str) -> None:
    assert any(fault in each for each in faults(text))
