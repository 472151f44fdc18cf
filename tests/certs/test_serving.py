"""TLS of the real server: versions, and certificates that change while it is at work."""

from __future__ import annotations

import shutil
import ssl
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.hostile.wire import gpu_pod, post, review, serving
from tests.log_lines import entries
from webhook.certs import development

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.hostile.wire import Server

pytestmark = pytest.mark.programs

REQUEST = post(review(gpu_pod()))
CALLERS = 4


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Serve a pair of files that the test may replace."""
    development.ensure(tmp_path / "certs")
    pair = ("--tls-cert-file=certs/tls.crt", "--tls-private-key-file=certs/tls.key")
    with serving(tmp_path, *pair, "--workers=1") as server:
        yield server


def served(server: Server, trust: ssl.SSLContext) -> bytes:
    with (
        server.connect_plainly() as plain,
        trust.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        return connection.getpeercert(binary_form=True) or b""


def levels(server: Server) -> list[str]:
    return [line["level"] for line in entries(server.stdout) if "certificate" in line["message"]]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("version", "is_spoken"),
    [
        pytest.param(ssl.TLSVersion.TLSv1_1, False, id="TLS 1.1: refused"),
        pytest.param(ssl.TLSVersion.TLSv1_2, True, id="TLS 1.2"),
        pytest.param(ssl.TLSVersion.TLSv1_3, True, id="TLS 1.3"),
    ],
)
def test_versions(server: Server, version: ssl.TLSVersion, is_spoken: bool) -> None:  # noqa: FBT001
    trust = server.trust()
    trust.set_ciphers("ALL:@SECLEVEL=0")  # else the client itself would not ask for 1.1
    trust.minimum_version = trust.maximum_version = version
    if is_spoken:
        assert served(server, trust)
    else:
        with pytest.raises(ssl.SSLError):
            served(server, trust)


def test_certificates_change_under_load_and_no_call_fails(server: Server, tmp_path: Path) -> None:
    pairs = [development.ensure(tmp_path / f"pair-{n}") for n in range(3)]
    trust = server.trust()
    for pair in pairs:
        trust.load_verify_locations(pair.ca)
    stop = threading.Event()
    calls: list[int] = []
    failures: list[str] = []

    def call() -> None:
        while not stop.is_set():
            try:
                with (
                    server.connect_plainly() as plain,
                    trust.wrap_socket(plain, server_hostname="localhost") as connection,
                ):
                    for _ in range(3):
                        connection.sendall(REQUEST)
                        calls.append(server.read(connection)[0].status)
            except OSError as error:
                failures.append(repr(error))

    callers = [threading.Thread(target=call) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    try:
        for pair in pairs:
            before = served(server, trust)
            for file in (pair.key, pair.cert):  # between the two, the pair does not match
                shutil.copy(file, tmp_path / "certs")
                time.sleep(0.1)
            _until_served_changes(server, trust, before)
    finally:
        stop.set()
        for caller in callers:
            caller.join()
    assert failures == []
    assert set(calls) == {200}
    assert len(calls) > 100
    print(f"\n3 certificates in turn, {len(calls)} calls, 0 failures")  # noqa: T201


def _until_served_changes(server: Server, trust: ssl.SSLContext, before: bytes) -> None:
    end = time.monotonic() + 5
    while served(server, trust) == before:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_broken_pair_is_reported_once_and_the_last_good_one_served(server: Server) -> None:
    before = served(server, server.trust())
    (server.folder / "certs" / "tls.key").write_text("nonsense")
    time.sleep(3.2)
    assert served(server, server.trust()) == before
    assert levels(server) == ["error"]
