"""What a running server tells of its certificate: in the log, on /readyz, and as metrics."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.certs.dated import dated
from tests.cluster.client import until
from tests.cluster.controlplane import free_ports
from tests.hostile.wire import get, serving
from tests.log_lines import entries
from tests.telemetry.scraping import scrape, value
from webhook.certs.context import validity_of
from webhook.kube.times import DAY

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hostile.wire import Server

pytestmark = pytest.mark.programs

EXPIRY = "gpu_webhook_certificate_expiry_timestamp_seconds"
GOOD = "gpu_webhook_certificate_last_reload_successful"


def flags(port: int) -> list[str]:
    pair = ("--tls-cert-file=certs/tls.crt", "--tls-private-key-file=certs/tls.key")
    return [*pair, "--workers=2", f"--metrics-bind=127.0.0.1:{port}"]


def readiness(server: Server) -> list[str]:
    (reply,) = server.exchange(get("/readyz"))
    assert reply.status == 200, "it is no failure"
    return reply.body.decode().splitlines()


def lines(server: Server, level: str) -> list[str]:
    return [line["message"] for line in entries(server.stdout) if line["level"] == level]


def test_the_end_of_the_certificate_is_told(tmp_path: Path) -> None:
    files = dated(tmp_path / "certs", -345, 20)
    (port,) = free_ports(1)
    with serving(tmp_path, *flags(port)) as server:
        until(lambda: value(scrape(port), EXPIRY) is not None, "the metric", 20)
        assert value(scrape(port), EXPIRY) == validity_of(files.cert.read_bytes()).end
        assert value(scrape(port), GOOD) == 1
        ok, note = readiness(server)
        assert ok == "ok"
        assert note.startswith("certificate: it expires on ")
        until(lambda: bool(lines(server, "warning")), "the line in the log", 20)
        (said,) = lines(server, "warning")
    assert "the certificate in service expires on " in said


def test_an_expired_pair_changes_nothing_but_what_is_told(tmp_path: Path) -> None:
    dated(tmp_path / "certs", -1, 365)
    trusted = (tmp_path / "certs" / "ca.crt").read_bytes()
    expired = dated(tmp_path / "expired", -3, -1)
    (port,) = free_ports(1)
    with serving(tmp_path, *flags(port)) as server:
        assert readiness(server) == ["ok"]
        shutil.copy(expired.cert, tmp_path / "certs")
        shutil.copy(expired.key, tmp_path / "certs")
        until(lambda: value(scrape(port), GOOD) == 0, "the metric", 20)
        until(lambda: "expired on" in readiness(server)[-1], "the line on /readyz", 20)
        expiry = value(scrape(port), EXPIRY)
        assert expiry is not None
        assert expiry > validity_of(expired.cert.read_bytes()).end + 300 * DAY
        assert (tmp_path / "certs" / "ca.crt").read_bytes() == trusted, "and calls are answered"
        errors = lines(server, "error")
    assert 0 < len(set(errors)) <= 2, "the files were put there one after the other"
    assert len(set(errors)) == len(errors), "said once, not by each worker"
