"""The serving context: one object, new pairs taken over, broken ones refused."""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import shutil
import ssl
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.certs.chained import KINDS, chained
from tests.certs.dated import dated
from webhook.certs import development, faults
from webhook.certs.clients import Clients
from webhook.certs.context import ServingContext
from webhook.core.errors import InputError
from webhook.files import limited_reading
from webhook.kube.times import DAY, date

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography import x509


class Reports(list[tuple[str, str]]):
    def __call__(self, level: str, message: str) -> None:
        self.append((level, message))


def handshake(server: ssl.SSLContext, ca: Path) -> bool:
    """True if a client that trusts this CA accepts what the server shows; all in memory."""
    client = ssl.create_default_context(cafile=str(ca))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    for _ in range(10):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
            done.add(side)
    return len(done) == 2


def pair(folder: Path) -> development.Files:
    return development.ensure(folder)


@pytest.fixture
def live(tmp_path: Path) -> Path:
    shutil.copytree(pair(tmp_path / "first").cert.parent, tmp_path / "live")
    return tmp_path / "live"


def serving(live: Path, reports: Reports) -> ServingContext:
    return ServingContext(live / "tls.crt", live / "tls.key", reports)


def test_a_new_pair_is_served_by_the_same_object(tmp_path: Path, live: Path) -> None:
    reports = Reports()
    it = serving(live, reports)
    context = it.context
    new = pair(tmp_path / "second")
    for file in (new.cert, new.key):
        shutil.copy(file, live)
    assert not handshake(context, new.ca)
    it.refresh()
    assert handshake(context, new.ca)
    assert not handshake(context, tmp_path / "first" / "ca.crt")
    assert it.context is context
    assert [level for level, _ in reports] == ["info"]


def test_a_secret_volume_swaps_a_link(tmp_path: Path) -> None:
    first, second = pair(tmp_path / "first"), pair(tmp_path / "second")
    (tmp_path / "..data").symlink_to("first")
    it = ServingContext(tmp_path / "..data/tls.crt", tmp_path / "..data/tls.key", Reports())
    assert handshake(it.context, first.ca)
    (tmp_path / "new").symlink_to("second")
    (tmp_path / "new").replace(tmp_path / "..data")
    it.refresh()
    assert handshake(it.context, second.ca)


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
@pytest.mark.parametrize("how", ["gone", "empty", "nonsense", "half", "another's"])
def test_a_broken_pair_is_reported_once_and_the_last_good_one_stays(
    tmp_path: Path, live: Path, name: str, how: str
) -> None:
    reports = Reports()
    it = serving(live, reports)
    file = live / name
    match how:
        case "gone":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "nonsense":
            file.write_bytes(b"nonsense")
        case "half":
            file.write_bytes(file.read_bytes()[:100])
        case _:
            shutil.copy(pair(tmp_path / "second").cert.with_name(name), file)
    for _ in range(3):
        it.refresh()
    assert [level for level, _ in reports] == ["error"]
    assert "last good" in reports[0][1]
    assert handshake(it.context, live / "ca.crt")


CERT, KEY = "tls.crt", "tls.key"


def _der(text: bytes) -> bytes:
    return base64.b64decode(b"".join(text.strip().splitlines()[1:-1]))


def _encrypted(text: bytes) -> bytes:
    key = serialization.load_pem_private_key(text, password=None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


# Which file, what is made of (certificate, key, CA), and what must be said.
FAULTS: dict[str, tuple[str, Callable[[bytes, bytes, bytes], bytes], str]] = {
    "no PEM": (CERT, lambda *_: b"nonsense", "is no PEM: there is no line -----BEGIN CERT"),
    "no PEM, the key": (KEY, lambda *_: b"nonsense", "is no PEM: there is no line -----BEGIN PRI"),
    "bytes": (CERT, lambda *_: bytes(range(255, 0, -1)), "is no PEM"),
    "empty": (CERT, lambda *_: b"\n", "is empty"),
    "empty, the key": (KEY, lambda *_: b"", "is empty"),
    "DER": (CERT, lambda cert, _, __: _der(cert), "is DER, and PEM is needed; convert it: openssl"),
    "DER, the key": (KEY, lambda _, key, __: _der(key), "is DER, and PEM is needed"),
    "encoded twice": (CERT, lambda cert, _, __: base64.b64encode(cert), "encoded twice"),
    "cut short": (CERT, lambda cert, _, __: cert[:200], "is damaged or cut short"),
    "cut short, the key": (KEY, lambda _, key, __: key[:100], "is damaged or cut short"),
    "a broken chain": (
        CERT,
        lambda cert, _, __: (
            cert + b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        ),
        "a certificate in it is damaged",
    ),
    "the key instead": (CERT, lambda _, key, __: key, "holds no CERTIFICATE, but PRIVATE KEY"),
    "the certificate instead": (KEY, lambda cert, *_: cert, "holds no PRIVATE KEY, but CERT"),
    "a password": (KEY, lambda _, key, __: _encrypted(key), "the key has a password; take it away"),
    "the CA instead": (CERT, lambda _, __, ca: ca, "is a CA's (CN=gpu-webhook development CA)"),
    "the CA first": (CERT, lambda cert, _, ca: ca + cert, "certificate is not the first"),
}


@pytest.mark.parametrize(("name", "make", "why"), FAULTS.values(), ids=FAULTS)
def test_what_is_wrong_with_a_file_is_named_at_start_and_on_reload(
    name: str,
    make: Callable[[bytes, bytes, bytes], bytes],
    why: str,
    live: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    reports = Reports()
    it = serving(live, reports)
    texts = [(live / each).read_bytes() for each in (CERT, KEY, "ca.crt")]
    (live / name).write_bytes(make(*texts))
    for _ in range(3):
        it.refresh()

    ((level, message),) = reports
    assert level == "error"
    assert str(live / name) in message
    assert why in message
    assert "the last good certificate stays in service, until it expires on 20" in message
    assert any(why in note for note in it.notes())
    assert handshake(it.context, live / "ca.crt")
    with pytest.raises(InputError) as raised:
        serving(live, Reports())
    assert why in str(raised.value)
    assert "pass phrase" not in "".join(capfd.readouterr()), "nobody sits at a terminal"


def test_a_file_that_may_not_be_read_is_taken_as_soon_as_it_may(
    tmp_path: Path, live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = Reports()
    it = serving(live, reports)
    new = pair(tmp_path / "second")
    put(new, live)

    def deny(*_: object) -> bytes:  # mode bits do not hold for root
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as denied:
        denied.setattr(limited_reading, "read", deny)
        for _ in range(3):
            it.refresh()
        with pytest.raises(InputError, match="may not read it"):
            serving(live, Reports())
    assert handshake(it.context, tmp_path / "first" / "ca.crt")
    it.refresh()
    assert handshake(it.context, new.ca)
    (error, said), (info, _) = reports
    assert (error, info) == ("error", "info")
    assert "may not read it (permission denied)" in said


def test_a_pair_that_becomes_good_again_is_taken(tmp_path: Path, live: Path) -> None:
    reports = Reports()
    it = serving(live, reports)
    new = pair(tmp_path / "second")
    shutil.copy(new.cert, live)
    it.refresh()
    assert handshake(it.context, live / "ca.crt")
    shutil.copy(new.key, live)
    it.refresh()
    assert handshake(it.context, new.ca)
    assert [level for level, _ in reports] == ["error", "info"]


def test_nothing_is_read_while_nothing_changes(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = serving(live, Reports())
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("read"))
    it.refresh()


def test_files_that_are_missing_at_the_start_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tls\.crt: no such file"):
        ServingContext(tmp_path / "tls.crt", tmp_path / "tls.key", Reports())


@pytest.mark.parametrize(
    "without",
    [
        pytest.param("", id="Linux: in memory"),
        pytest.param("memfd_create", id="elsewhere: in a scratch file"),
    ],
)
def test_the_key_leaves_nothing_behind(
    live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if without:
        monkeypatch.delattr(os, without, raising=False)
    before = sorted(tmp_path.rglob("*"))
    assert handshake(serving(live, Reports()).context, live / "ca.crt")
    assert sorted(tmp_path.rglob("*")) == before


# -- what time does to a pair


class Clock:
    """Now, and some days later."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead * DAY


def put(new: development.Files, live: Path) -> None:
    for file in (new.cert, new.key):
        shutil.copy(file, live)


class Timed:
    """A context with a pair for a year, a clock, and what was reported."""

    def __init__(self, folder: Path, start: float = -1, end: float = 365) -> None:
        self.first = dated(folder / "first", start, end)
        self.live = folder / "live"
        shutil.copytree(self.first.cert.parent, self.live)
        self.clock, self.reports = Clock(), Reports()
        cert, key = self.live / "tls.crt", self.live / "tls.key"
        self.serving = ServingContext(cert, key, self.reports, self.clock)

    def serves(self, files: development.Files) -> bool:
        """Whether that pair is in service; whoever asks does not look at the dates."""
        wanted = ssl.PEM_cert_to_DER_cert(files.cert.read_text())
        client = ssl.create_default_context(cafile=str(files.ca))
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ours = client.wrap_bio(to_client, to_server)
        theirs = self.serving.context.wrap_bio(to_server, to_client, server_side=True)
        for side in (ours, theirs, ours, theirs):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
        return ours.getpeercert(binary_form=True) == wanted


@pytest.fixture
def timed(tmp_path: Path) -> Timed:
    return Timed(tmp_path)


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [
        pytest.param(-3, -1, "expired on 20", id="expired"),
        pytest.param(1, 3, "is not valid before 20", id="not yet valid"),
    ],
)
def test_a_pair_of_another_time_does_not_replace_one_that_is_valid(
    tmp_path: Path, timed: Timed, start: float, end: float, why: str
) -> None:
    put(dated(tmp_path / "second", start, end), timed.live)
    for _ in range(3):
        timed.serving.refresh()

    assert timed.serves(timed.first)
    ((level, message),) = timed.reports
    assert level == "error"
    assert why in message
    assert "stays in service" in message
    assert not timed.serving.is_good
    (note,) = timed.serving.notes()
    assert note.startswith("certificate: the new files are not used: ")
    assert why in note


def test_a_pair_is_taken_when_its_time_has_come(tmp_path: Path, timed: Timed) -> None:
    new = dated(tmp_path / "second", 1, 300)
    put(new, timed.live)
    timed.serving.refresh()
    timed.clock.ahead = 2
    timed.serving.refresh()

    assert timed.serves(new)
    assert [level for level, _ in timed.reports] == ["error", "info"]
    assert timed.serving.notes() == []
    assert timed.serving.is_good


def test_an_expired_pair_is_replaced_by_any_that_can_be_served(tmp_path: Path) -> None:
    timed = Timed(tmp_path, -3, -1)
    assert timed.serves(timed.first), "it is better than none"
    new = dated(tmp_path / "second", 1, 300)
    put(new, timed.live)
    timed.serving.refresh()

    assert timed.serves(new)


def test_a_key_of_another_pair_is_told_until_it_fits(tmp_path: Path, timed: Timed) -> None:
    new = dated(tmp_path / "second", -1, 300)
    shutil.copy(new.cert, timed.live)
    timed.serving.refresh()
    assert not timed.serving.is_good
    (note,) = timed.serving.notes()
    assert "the key is that of another certificate" in note
    assert timed.serves(timed.first)

    shutil.copy(new.key, timed.live)
    timed.serving.refresh()
    assert timed.serving.is_good
    assert timed.serving.notes() == []


@pytest.mark.parametrize(
    ("ahead", "level", "note"),
    [
        pytest.param(334, "", "", id="31 days before its end"),
        pytest.param(336, "warning", "certificate: it expires on 20", id="29 days before its end"),
        pytest.param(364.9, "warning", "certificate: it expires on 20", id="on its last day"),
        pytest.param(366, "error", "certificate: it expired on 20", id="after its end"),
    ],
)
def test_its_end_is_told_from_30_days_on(timed: Timed, ahead: float, level: str, note: str) -> None:
    timed.clock.ahead = ahead
    for _ in range(3):
        timed.serving.refresh()

    assert [each for each, _ in timed.reports] == ([level] if level else [])
    assert [each[: len(note)] for each in timed.serving.notes()] == ([note] if note else [])


@pytest.mark.parametrize(
    ("ahead", "why"),
    [
        pytest.param(-400, "is not valid before 20", id="behind"),
        pytest.param(400, "expired on 20", id="ahead"),
    ],
)
def test_the_clock_of_the_node_may_be_wrong(timed: Timed, ahead: float, why: str) -> None:
    """Then API servers accept the certificate, and the server cannot know that."""
    timed.clock.ahead = ahead
    timed.serving.refresh()
    ((level, message),) = timed.reports
    (note,) = timed.serving.notes()
    assert level == "error"
    for text in (message, note):
        assert why in text
        assert (
            f"and the clock of this node says {date(timed.clock())}: unless that is wrong" in text
        )


@pytest.mark.parametrize(
    ("left", "notes"),
    [
        pytest.param(10.0, 0, id="when it should be renewed"),
        pytest.param(8.0, 0, id="a while later"),
        pytest.param(7.0, 1, id="in the last quarter of its life"),
    ],
)
def test_the_end_of_a_pair_for_a_month_is_told_only_if_nobody_renews_it(
    tmp_path: Path, left: float, notes: int
) -> None:
    timed = Timed(tmp_path, -1 / 24, 30)
    timed.clock.ahead = 30 - left
    assert len(timed.serving.notes()) == notes


def test_a_pair_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = Reports()
    it = serving(live, reports)
    new, third = pair(tmp_path / "second"), pair(tmp_path / "third")
    put(new, live)
    read = limited_reading.read

    def slow(path: Path, most: int) -> bytes:
        text = read(path, most)
        if path.name == "tls.crt" and text == new.cert.read_bytes():
            put(third, live)
        return text

    monkeypatch.setattr(limited_reading, "read", slow)
    it.refresh()
    assert handshake(it.context, third.ca)
    assert [level for level, _ in reports] == ["info"]


def test_its_end_is_told_once_a_day_until_there_is_a_new_one(tmp_path: Path, timed: Timed) -> None:
    for quarter in range(8):
        timed.clock.ahead = 340 + quarter / 4
        timed.serving.refresh()
    assert [level for level, _ in timed.reports] == ["warning", "warning"]

    put(dated(tmp_path / "second", -1, 800), timed.live)
    timed.serving.refresh()
    assert [level for level, _ in timed.reports] == ["warning", "warning", "info"]
    assert timed.serving.notes() == []


def test_when_it_expires_is_known(timed: Timed) -> None:
    assert abs(timed.serving.validity.end - timed.clock() - 365 * DAY) < 60


# -- what OpenSSL serves and no API server accepts


OPENSSL_ONLY: dict[str, tuple[Callable[[Path], development.Files], str]] = {
    "secp256k1": (
        lambda folder: chained(folder, lambda: ec.generate_private_key(ec.SECP256K1())),
        "no API server knows the type of its key",
    ),
    "secp224r1": (
        lambda folder: chained(folder, lambda: ec.generate_private_key(ec.SECP224R1())),
        "no API server knows the type of its key",
    ),
    "brainpool": (
        lambda folder: chained(folder, lambda: ec.generate_private_key(ec.BrainpoolP256R1())),
        "no API server knows the type of its key",
    ),
    "Ed448": (
        lambda folder: chained(folder, ed448.Ed448PrivateKey.generate),
        "no API server knows the type of its key",
    ),
    "for clients": (
        lambda folder: chained(folder, KINDS["P-256"], ExtendedKeyUsageOID.CLIENT_AUTH),
        "the certificate is not for servers",
    ),
    "no names": (
        lambda folder: chained(folder, KINDS["P-256"], names=()),
        "it has no subjectAltName",
    ),
}


@pytest.mark.parametrize(("make", "why"), OPENSSL_ONLY.values(), ids=OPENSSL_ONLY)
def test_a_pair_that_no_api_server_accepts_is_not_taken(
    make: Callable[[Path], development.Files], why: str, tmp_path: Path, live: Path
) -> None:
    reports = Reports()
    it = serving(live, reports)
    put(make(tmp_path / "second"), live)
    for _ in range(3):
        it.refresh()
    assert handshake(it.context, live / "ca.crt")
    ((level, message),) = reports
    assert level == "error"
    assert f"tls.crt: {why}" in message
    assert "the last good certificate stays in service" in message
    with pytest.raises(InputError, match=why):
        serving(live, Reports())


@pytest.mark.parametrize("usage", [None, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE])
@pytest.mark.parametrize("kind", KINDS)
def test_what_api_servers_accept(
    kind: str, usage: x509.ObjectIdentifier | None, tmp_path: Path
) -> None:
    assert faults.of_api_servers(chained(tmp_path, KINDS[kind], usage).cert.read_bytes()) == ""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("rsa-pss.crt", id="openssl req -x509 -newkey rsa-pss"),
        pytest.param("explicit-curve.crt", id="openssl req -x509 -pkeyopt ec_param_enc:explicit"),
    ],
)
def test_api_servers_do_not_know_these_either(name: str) -> None:
    text = Path(__file__).with_name(name).read_bytes()
    assert faults.of_api_servers(text).startswith("no API server knows the type of its key")


# -- no file descriptor is left


def _none_left(*_: object) -> int:
    raise OSError(errno.EMFILE, "Too many open files")


def test_a_pair_is_taken_once_there_is_a_file_descriptor(
    tmp_path: Path, live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = Reports()
    it = serving(live, reports)
    new = pair(tmp_path / "second")
    put(new, live)
    with monkeypatch.context() as short:
        short.setattr(os, "memfd_create", _none_left)
        for _ in range(3):
            it.refresh()
    it.refresh()
    assert handshake(it.context, new.ca)
    assert [level for level, _ in reports] == ["error", "info"]


@pytest.mark.parametrize("place", ["webhook.files.limited_reading.read", "os.memfd_create"])
def test_client_cas_are_taken_once_there_is_a_file_descriptor(
    place: str, tmp_path: Path, live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = Reports()
    shutil.copy(live / "ca.crt", ca_file := tmp_path / "clients.crt")
    it = ServingContext(live / CERT, live / KEY, reports, clients=Clients(ca_file))
    shutil.copy(pair(tmp_path / "second").ca, ca_file)
    with monkeypatch.context() as short:
        short.setattr(place, _none_left)
        for _ in range(3):
            it.refresh()
    it.refresh()
    assert [level for level, _ in reports] == ["error", "info"]
    assert it.notes() == []
    assert handshake(it.context, live / "ca.crt")
