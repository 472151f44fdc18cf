"""`gpu-webhook serve --metrics-bind`: what the page says of a real server."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.controlplane import free_ports
from tests.hostile.wire import gpu_pod, serving
from tests.log_lines import entries
from tests.telemetry.scraping import get, scrape, value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.hostile.wire import Server

pytestmark = pytest.mark.programs


@contextmanager
def counted(folder: Path, *flags: str) -> Iterator[tuple[Server, int]]:
    """A server with a page, and the page's port."""
    (port,) = free_ports(1)
    with serving(folder, "--dev", f"--metrics-bind=127.0.0.1:{port}", *flags) as server:
        yield server, port


def until(question: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def sample(port: int, name: str, **labels: str) -> float | None:
    return value(scrape(port), f"gpu_webhook_{name}", **labels)


def descendants(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    children = [int(each) for each in path.read_text().split()]
    return children + [each for child in children for each in descendants(child)]


def folder_of(process: int) -> Path:
    """Where this server counts: the folder that it holds a lock in."""
    files = (each.readlink() for each in Path(f"/proc/{process}/fd").iterdir())
    return next(file.parent for file in files if file.name == "lock")


def test_the_page_counts_what_the_workers_did(tmp_path: Path) -> None:
    with counted(tmp_path, "--workers=2") as (server, port):
        until(lambda: sample(port, "reviews_total", path="/guard", outcome="unfinished") == 0)
        for _ in range(5):
            assert server.mutate(gpu_pod()).patch()
        until(lambda: sample(port, "reviews_total", path="/mutate", outcome="patched") == 5)
        found = scrape(port)
        labels = {"rule": "GPU101", "mode": "enforce", "action": "repaired"}
        assert value(found, "gpu_webhook_decisions_total", **labels) == 5
        assert value(found, "gpu_webhook_review_seconds_count", path="/mutate") == 5
        took = value(found, "gpu_webhook_review_seconds_sum", path="/mutate")
        assert took is not None
        assert took > 0
        assert value(found, "gpu_webhook_settings_last_reload_successful") == 1
        assert value(found, "gpu_webhook_rule_failures_total", rule="GPU101") == 0
        assert get(port, "/healthz")[0] == 200


def test_a_worker_that_only_begins_to_count_fails_no_scrape(tmp_path: Path) -> None:
    """Its file is empty until it has its first size."""
    with counted(tmp_path, "--workers=1") as (server, port):
        folder_of(server.process.pid).joinpath("counter_1.db").touch()
        assert sample(port, "settings_last_reload_successful") is not None


def test_settings_with_mistakes_are_an_alarm_until_they_are_mended(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("scope: gpu\n")
    with counted(tmp_path, "--config=settings.yaml") as (_, port):
        until(lambda: sample(port, "settings_last_reload_successful") == 1)
        settings.write_text("scope: nowhere\n")
        until(lambda: sample(port, "settings_last_reload_successful") == 0)
        settings.write_text("scope: all-legacy\n")
        until(lambda: sample(port, "settings_last_reload_successful") == 1)


def test_a_worker_that_is_killed_leaves_its_counts(tmp_path: Path) -> None:
    with counted(tmp_path, "--workers=1") as (server, port):
        server.mutate(gpu_pod())
        until(lambda: sample(port, "reviews_total", path="/mutate", outcome="patched") == 1)
        worker = max(server.workers())  # the page was forked off before it
        os.kill(worker, signal.SIGKILL)
        until(lambda: worker not in descendants(server.process.pid))
        server.mutate(gpu_pod())
        until(lambda: sample(port, "reviews_total", path="/mutate", outcome="patched") == 2)
        folder = folder_of(server.process.pid)
        assert not list(folder.glob(f"gauge_live*_{worker}.db"))
        assert list(folder.glob(f"counter_{worker}.db"))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_worker_that_ends_takes_nothing_of_the_page_with_it(tmp_path: Path, name: str) -> None:
    """SIGHUP to the parent: new workers for all."""
    with counted(tmp_path, "--workers=1") as (server, port):
        server.mutate(gpu_pod())
        until(lambda: sample(port, "reviews_total", path="/mutate", outcome="patched") == 1)
        worker = max(server.workers())
        folder = folder_of(server.process.pid)
        os.kill(server.process.pid if name == "SIGHUP" else worker, signal.Signals[name])
        until(lambda: not Path(f"/proc/{worker}").exists(), 20)
        until(lambda: len(server.workers()) == 2, 20)  # the page is one
        server.mutate(gpu_pod())
        until(lambda: sample(port, "reviews_total", path="/mutate", outcome="patched") == 2)
        assert folder.exists()
        assert "the metrics page" not in server.stdout.read_text()


def answers(port: int) -> bool:
    try:
        return get(port, "/healthz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_a_page_whose_processes_are_killed_comes_back_and_says_so(tmp_path: Path) -> None:
    with counted(tmp_path, "--workers=1") as (server, port):
        server.mutate(gpu_pod())
        until(lambda: sample(port, "reviews_total", path="/mutate", outcome="patched") == 1)
        worker = max(server.workers())  # the page was forked off before it
        for _ in range(2):
            (page,) = set(server.workers()) - {worker}
            for process in (page, *descendants(page)):
                os.kill(process, signal.SIGKILL)
            until(lambda: len(server.workers()) == 1)
            until(lambda: answers(port))
        assert sample(port, "reviews_total", path="/mutate", outcome="patched") == 1
        server.mutate(gpu_pod())
        until(lambda: sample(port, "reviews_total", path="/mutate", outcome="patched") == 2)
        told = entries(server.stdout)
    lines = [line for line in told if "the metrics page" in line["message"]]
    assert [line["again_in"] for line in lines] == [1, 2], "a loop does not spin"
    assert {line["ended_by"] for line in lines} == {"SIGKILL"}


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "SIGKILL"])
def test_nothing_is_left_of_a_page_whose_server_ended(tmp_path: Path, how: str) -> None:
    with counted(tmp_path) as (server, port):
        until(lambda: sample(port, "settings_last_reload_successful") == 1)
        processes = descendants(server.process.pid)
        mine = folder_of(server.process.pid)
        assert mine.exists()
        server.process.send_signal(signal.Signals[how])
        code = server.process.wait(60)
        assert code == (-signal.SIGKILL if how == "SIGKILL" else 0)
        until(lambda: not any(Path(f"/proc/{each}").exists() for each in processes))
        assert not mine.exists()
        socket.create_server(("127.0.0.1", port)).close()


def test_without_the_flag_there_is_no_page(tmp_path: Path) -> None:
    with serving(tmp_path, "--dev", "--workers=1") as server:
        assert len(descendants(server.process.pid)) == 1


def test_a_watcher_is_part_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    with counted(tmp_path, "--snapshot=snapshot") as (_, port):
        assert sample(port, "watcher_up") == 0
        assert sample(port, "inventory_usable") == 0
