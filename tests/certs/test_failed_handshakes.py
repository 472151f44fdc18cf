"""Handshakes that fail: counted by reason, told once a minute, and the client hears why."""

from __future__ import annotations

import ssl
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.certs.chained import KINDS, chained
from tests.cluster import certificates
from tests.cluster.certificates import Authority, KeyPair
from tests.cluster.client import until
from tests.cluster.controlplane import free_ports
from tests.hostile.wire import get, gpu_pod, post, review, serving
from tests.log_lines import entries
from tests.telemetry.scraping import scrape
from webhook.certs import failed_handshakes as why
from webhook.certs.failed_handshakes import Failures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.hostile.wire import Server

pytestmark = pytest.mark.programs

REQUEST = post(review(gpu_pod()))
METRIC = "gpu_webhook_tls_failures"
API_SERVER = "kube-apiserver"


class Asked(NamedTuple):
    """A server that wants client certificates, and what the test may use."""

    server: Server
    page: int
    folder: Path
    authority: Authority

    def client(self, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        made = self.server.trust()
        if version is not None:
            made.set_ciphers("ALL:@SECLEVEL=0")  # else the client itself would not ask for 1.1
            made.minimum_version = made.maximum_version = version
        return made

    def counted(self) -> Counter[str]:
        """How many for each reason."""
        samples = scrape(self.page)[METRIC].samples
        return Counter({each.labels["reason"]: int(each.value) for each in samples})

    def showing(self, pair: KeyPair, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        made = self.client(version)
        made.load_cert_chain(pair.certificate, pair.key)
        return made

    def told(self) -> list[str]:
        return [
            line["message"] for line in entries(self.server.stdout) if line["level"] == "warning"
        ]


@contextmanager
def asking(folder: Path) -> Iterator[Asked]:
    authority = Authority(folder / "ours")
    (page,) = free_ports(1)
    flags = ("--dev", "--workers=1", "--client-ca", str(authority.bundle))
    more = (f"--client-name={API_SERVER}", f"--metrics-bind=127.0.0.1:{page}")
    with serving(folder, *flags, *more) as server:
        until(lambda: scrape_or_none(page), "the page of metrics")
        yield Asked(server, page, folder, authority)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Start it once: the tests look at what came to its counters."""
    with asking(tmp_path_factory.mktemp("asked")) as asked:
        yield asked


def scrape_or_none(page: int) -> object:
    try:
        return scrape(page).get(METRIC)
    except OSError:
        return None


def heard(server: Server, client: ssl.SSLContext, name: str = "localhost") -> str:
    """What a client hears: the status of an answer, OpenSSL's reason, or that was all."""
    try:
        with (
            server.connect_plainly() as plain,
            client.wrap_socket(plain, server_hostname=name) as connection,
        ):
            connection.sendall(REQUEST)
            return connection.recv(65536)[9:12].decode() or "EOF"
    except ssl.SSLError as error:
        return error.reason or str(error)


def theirs(asked: Asked) -> KeyPair:
    """Of a CA with the name of ours, and another key."""
    return Authority(asked.folder / "theirs").client(API_SERVER)


def unknown(asked: Asked) -> KeyPair:
    """Of a CA with another name, without its intermediate."""
    pair = chained(Path(mkdtemp(dir=asked.folder)), KINDS["RSA"], ExtendedKeyUsageOID.CLIENT_AUTH)
    return KeyPair(pair.cert, pair.key)


def dated(start: float, end: float) -> Callable[[Asked], KeyPair]:
    def make(asked: Asked) -> KeyPair:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(certificates, "_BACKDATED", timedelta(days=-start))
            patched.setattr(certificates, "_LIFE", timedelta(days=end))
            return asked.authority.client(API_SERVER)

    return make


SHOWN: dict[str, tuple[Callable[[Asked], KeyPair], str, str]] = {
    "a CA of the same name": (theirs, why.CLIENT_CA, "ALERT"),
    "an unknown CA": (unknown, why.CLIENT_CA, "TLSV1_ALERT_UNKNOWN_CA"),
    "expired": (dated(-3, -1), why.EXPIRED, "CERTIFICATE_EXPIRED"),
    "not valid yet": (dated(1, 3), why.EARLY, "BAD_CERTIFICATE"),
    "for servers": (lambda asked: asked.authority.server("a"), why.CERTIFICATE, "CERTIFICATE"),
    "another name": (lambda asked: asked.authority.client("another"), why.NAME, "403"),
}
VERSIONS = [
    pytest.param(ssl.TLSVersion.TLSv1_2, id="TLS 1.2"),
    pytest.param(ssl.TLSVersion.TLSv1_3, id="TLS 1.3"),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("make", "reason", "word"), SHOWN.values(), ids=SHOWN)
def test_a_client_certificate_that_is_refused_is_counted(
    asked: Asked,
    make: Callable[[Asked], KeyPair],
    reason: str,
    word: str,
    version: ssl.TLSVersion,
) -> None:
    before = asked.counted()
    client = asked.showing(make(asked), version)
    for _ in range(3):
        assert word in heard(asked.server, client)
    until(lambda: asked.counted() - before == {reason: 3}, "the metric")


def distrusting(asked: Asked) -> str:
    return heard(asked.server, ssl.create_default_context(cafile=str(asked.authority.bundle)))


def of_another_name(asked: Asked) -> str:
    return heard(asked.server, asked.client(), "elsewhere")


def too_old(asked: Asked) -> str:
    return heard(asked.server, asked.client(ssl.TLSVersion.TLSv1_1))


def without_a_cipher(asked: Asked) -> str:
    client = asked.client(ssl.TLSVersion.TLSv1_2)
    client.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")  # and the server's key is of P-256
    return heard(asked.server, client)


def without_a_certificate(asked: Asked) -> str:
    return heard(asked.server, asked.client())


def without_tls(asked: Asked) -> str:
    with asked.server.connect_plainly() as connection:
        connection.sendall(get("/healthz"))
        return "EOF" if connection.recv(65536) == b"" else "an answer"


SET_UP: dict[str, tuple[Callable[[Asked], str], str, str]] = {
    "it trusts another CA": (distrusting, why.OURS, "CERTIFICATE_VERIFY_FAILED"),
    "it wants another name": (of_another_name, why.OURS, "CERTIFICATE_VERIFY_FAILED"),
    "TLS 1.1": (too_old, why.VERSION, "PROTOCOL_VERSION"),
    "no cipher in common": (without_a_cipher, why.CIPHER, "HANDSHAKE_FAILURE"),
    "no certificate": (without_a_certificate, why.NO_CERTIFICATE, "403"),
    "plain HTTP": (without_tls, why.NO_TLS, "EOF"),
}


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("call", "reason", "word"), SET_UP.values(), ids=SET_UP)
def test_a_client_that_is_set_up_wrongly_is_counted(
    asked: Asked, call: Callable[[Asked], str], reason: str, word: str
) -> None:
    before = asked.counted()
    for _ in range(3):
        assert word in call(asked)
    until(lambda: asked.counted() - before == {reason: 3}, "the metric")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_each_reason_has_its_line(tmp_path: Path) -> None:
    with asking(tmp_path) as asked:
        for _ in range(3):
            for make, *_ in SHOWN.values():
                heard(asked.server, asked.showing(make(asked)))
            for call, *_ in SET_UP.values():
                call(asked)
        reasons = set(why.REASONS) - {why.OTHER}
        until(lambda: {each for each, n in asked.counted().items() if n} == reasons, "the metric")
        until(lambda: len(asked.told()) >= len(reasons), "the lines")
        lines = asked.told()
    for reason in reasons:
        what, advice = why.REASONS[reason]
        assert [what in each and advice in each for each in lines].count(True) == 1, reason


def test_what_succeeds_and_what_says_nothing_is_not_counted(asked: Asked) -> None:
    before = asked.counted()
    assert heard(asked.server, asked.showing(asked.authority.client(API_SERVER))) == "200"
    asked.server.connect_plainly().close()  # a load balancer that looks whether we listen
    (reply,) = asked.server.exchange(get("/readyz"))  # a kubelet
    assert reply.status == 200
    assert "ALERT" in heard(asked.server, asked.showing(theirs(asked)))
    until(lambda: asked.counted() - before == {why.CLIENT_CA: 1}, "that one, and nothing beside it")


def test_who_floods_it_fills_no_log_and_hides_nothing(tmp_path: Path) -> None:
    with asking(tmp_path) as asked:
        for _ in range(500):
            without_tls(asked)
        assert "ALERT" in heard(asked.server, asked.showing(theirs(asked)))
        counted = Counter({why.NO_TLS: 500, why.CLIENT_CA: 1})
        until(lambda: asked.counted() == counted, "the metric")
        signed = why.REASONS[why.CLIENT_CA][0]
        until(lambda: any(signed in each for each in asked.told()), "the line about the API server")
        assert len(asked.told()) == 2


def test_a_failed_connection_is_closed_when_the_client_goes_on(asked: Asked) -> None:
    client = asked.showing(theirs(asked))
    before = asked.server.sockets()
    for _ in range(20):
        heard(asked.server, client)
    until(lambda: asked.server.sockets() <= before, "all to be closed")


def test_each_reason_is_told_at_most_once_a_minute() -> None:
    now = 0.0
    said: list[tuple[str, int]] = []
    counted: list[str] = []

    def write(_level: str, _message: str, *, reason: str, number: int, openssl: str) -> None:
        assert openssl == "no issuer"
        said.append((reason, number))

    it = Failures(write, counted.append, lambda: now)
    for second in range(130):
        now = float(second)
        it.add(why.OURS, "no issuer")
        if second == 30:
            it.add(why.CLIENT_CA, "no issuer")
        it.log_counts()
    assert said == [(why.OURS, 1), (why.CLIENT_CA, 1), (why.OURS, 60), (why.OURS, 60)]
    assert len(counted) == 131
