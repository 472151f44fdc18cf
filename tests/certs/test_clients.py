"""Client certificates: asked for on the admission paths alone, and by the CAs of this moment."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.certificates import Authority
from tests.hostile.wire import CLOSED, get, gpu_pod, post, review, serving, with_room
from tests.log_lines import whole_lines
from webhook.certs.clients import Clients
from webhook.certs.failed_handshakes import NAME, NO_CERTIFICATE

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from tests.cluster.certificates import KeyPair
    from tests.hostile.wire import Reply, Server

pytestmark = pytest.mark.programs

REQUEST = post(review(gpu_pod()))
API_SERVER, OTHER = "kube-apiserver", "somebody-else"


def ask(server: Server, data: bytes, identity: KeyPair | None = None) -> Reply:
    trust: ssl.SSLContext = server.trust()
    if identity is not None:
        trust.load_cert_chain(identity.certificate, identity.key)
    with (
        server.connect_plainly() as plain,
        trust.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(data)
        return server.read(connection)[0]


def test_beyond_the_cap_who_shows_a_certificate_goes_last(tmp_path: Path) -> None:
    ours = Authority(tmp_path / "ours")
    flags = ("--dev", "--workers=1", "--client-ca", str(ours.bundle))
    with serving(tmp_path, *flags, program=with_room(50)) as server, ExitStack() as held:
        trust, identity = server.trust(), ours.client(API_SERVER)
        trust.load_cert_chain(identity.certificate, identity.key)
        plain = held.enter_context(server.connect_plainly())
        known = held.enter_context(trust.wrap_socket(plain, server_hostname="localhost"))
        known.sendall(REQUEST)
        assert server.read(known)[0].status == 200
        for _ in range(100):  # each of them is newer, and was idle for less time
            stranger = held.enter_context(server.connect())
            stranger.sendall(get("/healthz"))
            assert server.read(stranger)[0].status == 200
        known.sendall(REQUEST)
        assert server.read(known)[0].status == 200


def test_only_who_shows_a_certificate_may_ask(tmp_path: Path) -> None:
    ours = Authority(tmp_path / "ours")
    flags = ("--dev", "--workers=1", "--client-ca", str(ours.bundle))
    with serving(tmp_path, *flags) as server:
        assert ask(server, REQUEST, ours.client(OTHER)).patch()
        refused = ask(server, REQUEST)
        assert refused.status == 403
        assert refused.body.startswith(b"client certificate: none that may ask here")
        for path in ("/validate", "/guard", "/guard/refuse"):
            assert ask(server, post(review(gpu_pod()), path)).status == 403
        large = review(gpu_pod() | {"metadata": {"annotations": {"a": "x" * 500_000}}})
        assert ask(server, post(large)).status == 403
        for path in ("/healthz", "/readyz"):  # kubelets have no certificate
            assert ask(server, get(path)).status == 200
        assert is_hung_up_on(server, Authority(tmp_path / "theirs").client(API_SERVER))


def is_hung_up_on(server: Server, identity: KeyPair) -> bool:
    """A certificate of another CA ends the handshake; with TLS 1.3 the client hears it later."""
    try:
        return ask(server, REQUEST, identity).status == CLOSED
    except OSError:
        return True


def test_only_these_names_may_ask(tmp_path: Path) -> None:
    ours = Authority(tmp_path / "ours")
    names = ("--client-name", API_SERVER, "--client-name", "another")
    flags = ("--dev", "--workers=1", "--client-ca", str(ours.bundle), *names)
    with serving(tmp_path, *flags) as server:
        assert ask(server, REQUEST, ours.client(API_SERVER)).patch()
        assert ask(server, REQUEST, ours.client(OTHER)).status == 403
        assert ask(server, get("/readyz"), ours.client(OTHER)).status == 200
        _until(lambda: b"--client-name" in whole_lines(server.stdout))


def test_the_ca_is_replaced_without_a_restart(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    before, after = old.client(API_SERVER), new.client(API_SERVER)
    shutil.copy(old.bundle, file := tmp_path / "clients.crt")
    with serving(tmp_path, "--dev", "--workers=1", "--client-ca", str(file)) as server:
        assert ask(server, REQUEST, before).patch()
        file.write_text("nonsense")
        _until(lambda: b"client CA: the new file is not used" in ask(server, get("/readyz")).body)
        assert ask(server, REQUEST, before).patch()
        shutil.copy(new.bundle, file)
        _until(lambda: ask(server, get("/readyz")).body == b"ok")
        assert ask(server, REQUEST, after).patch()
        assert is_hung_up_on(server, before)


def _until(question: Any) -> None:
    end = time.monotonic() + 10
    while not question():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("names", "certificate", "why"),
    [
        pytest.param((), None, NO_CERTIFICATE, id="none"),
        pytest.param((), {}, NO_CERTIFICATE, id="one that was not checked"),
        pytest.param((), {"serialNumber": "1"}, "", id="any"),
        pytest.param(("a",), {"subject": ((("commonName", "a"),),)}, "", id="a common name"),
        pytest.param(("a",), {"subject": ((("organizationName", "a"),),)}, NAME, id="a group"),
        pytest.param(("a.b",), {"subjectAltName": (("DNS", "a.b"),)}, "", id="a DNS name"),
        pytest.param(
            ("spiffe://x/a",), {"subjectAltName": (("URI", "spiffe://x/a"),)}, "", id="a URI"
        ),
        pytest.param(("*.b",), {"subjectAltName": (("DNS", "a.b"),)}, NAME, id="no patterns"),
        pytest.param(
            ("a",), {"subjectAltName": (("DirName", ((("commonName", "a"),),)),)}, NAME, id="a DN"
        ),
    ],
)
def test_who_is_known(
    names: tuple[str, ...],
    certificate: dict[str, Any] | None,
    why: str,
    tmp_path: Path,
) -> None:
    assert Clients(tmp_path, names).why_not(certificate) == why
    assert Clients().why_not(certificate) == ""
