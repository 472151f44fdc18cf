"""Whom the watcher trusts: every CA that it is given, however old; nobody else.

On Python 3.13 and later those without key identifiers were refused.
"""

from __future__ import annotations

import http.server
import ipaddress
import json
import ssl
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from webhook.cluster.client import Client, Fault, configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Extensions = Callable[[ec.EllipticCurvePublicKey, ec.EllipticCurvePublicKey], list[Any]]

DAY = timedelta(days=1)


def _usage(*, signs: bool) -> x509.KeyUsage:
    names = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    others = {**dict.fromkeys(names, False), "encipher_only": False, "decipher_only": False}
    return x509.KeyUsage(digital_signature=True, key_cert_sign=signs, crl_sign=signs, **others)


def nothing(_: Any, __: Any) -> list[Any]:
    return []


def identifiers(own: Any, issuer: Any) -> list[Any]:
    return [
        (x509.SubjectKeyIdentifier.from_public_key(own), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), False),
    ]


def own_identifier(own: Any, _: Any) -> list[Any]:
    return [(x509.SubjectKeyIdentifier.from_public_key(own), False)]


def is_authority(_: Any, __: Any) -> list[Any]:
    return [(x509.BasicConstraints(ca=True, path_length=None), True)]


def is_authority_not_critical(_: Any, __: Any) -> list[Any]:
    return [(x509.BasicConstraints(ca=True, path_length=None), False)]


def signs(own: Any, issuer: Any) -> list[Any]:
    return [*is_authority(own, issuer), (_usage(signs=True), True)]


class Signed:
    """A CA, and a server's pair signed by it, in a folder."""

    def __init__(
        self,
        folder: Path,
        of_ca: list[Extensions],
        of_leaf: list[Extensions],
        host: str = "127.0.0.1",
        valid: tuple[timedelta, timedelta] = (-DAY, DAY),
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.ca, self.pair = folder / "ca.crt", folder / "pair.pem"
        ca_key, key = (
            ec.generate_private_key(ec.SECP256R1()),
            ec.generate_private_key(ec.SECP256R1()),
        )
        names: list[x509.GeneralName] = [x509.DNSName("kubernetes")]
        if host[0].isdigit():
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        alternatives = [(x509.SubjectAlternativeName(names), False)]
        ca = self._signed("kubernetes", ca_key.public_key(), ca_key, of_ca, [], (-DAY, DAY))
        leaf = self._signed("server", key.public_key(), ca_key, of_leaf, alternatives, valid)
        self.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        text = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        self.pair.write_bytes(leaf.public_bytes(serialization.Encoding.PEM) + text)

    def _signed(
        self,
        name: str,
        own: ec.EllipticCurvePublicKey,
        issuer: ec.EllipticCurvePrivateKey,
        extensions: list[Extensions],
        more: list[Any],
        valid: tuple[timedelta, timedelta],
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")]))
            .public_key(own)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + valid[0])
            .not_valid_after(now + valid[1])
        )
        listed = [each for of in extensions for each in of(own, issuer.public_key())]
        for extension, critical in [*listed, *more]:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(issuer, hashes.SHA256())


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, pair: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, *_: object) -> None:
        pass


@contextmanager
def serving(pair: Path) -> Iterator[int]:
    with Server(pair) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.server_address[1]
        finally:  # else its thread asks a closed socket, without a rest, until the tests end
            server.shutdown()


def asked(signed: Signed, folder: Path, **cluster: Any) -> bytes:
    """What the watcher's client hears of a server with that pair."""
    with serving(signed.pair) as port:
        cluster = {
            "server": f"https://127.0.0.1:{port}",
            "certificate-authority": str(signed.ca),
        } | cluster
        told = {
            "clusters": [{"name": "c", "cluster": {k: v for k, v in cluster.items() if v}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        file = folder / "kubeconfig"
        file.write_text(json.dumps(told))
        return Client(lambda: configuration(str(file))).get("/api/v1/nodes", {})


@pytest.mark.parametrize(
    ("of_ca", "of_leaf"),
    [
        pytest.param([is_authority], [nothing], id="no key identifiers at all"),
        pytest.param([signs], [nothing], id="no key identifiers, but a usage"),
        pytest.param([is_authority], [identifiers], id="none in the CA"),
        pytest.param([signs, own_identifier], [nothing], id="none in the server's"),
        pytest.param([signs, own_identifier], [own_identifier], id="no issuer's in the server's"),
        pytest.param(
            [is_authority_not_critical], [nothing], id="a constraint that is not critical"
        ),
        pytest.param([signs, own_identifier], [identifiers], id="all that RFC 5280 wants"),
    ],
)
def test_every_ca_that_is_given_is_trusted(
    tmp_path: Path, of_ca: list[Extensions], of_leaf: list[Extensions]
) -> None:
    assert asked(Signed(tmp_path, of_ca, of_leaf), tmp_path) == b"{}"


@pytest.mark.parametrize("of", [nothing, identifiers], ids=["without identifiers", "with them"])
def test_nobody_else_is_trusted(tmp_path: Path, of: Extensions) -> None:
    mine = Signed(tmp_path / "mine", [signs, of], [of])
    another = Signed(tmp_path / "another", [signs, of], [of])
    mine.pair = another.pair

    with pytest.raises(Fault, match="CERTIFICATE_VERIFY_FAILED"):
        asked(mine, tmp_path)


@pytest.mark.parametrize(
    "valid",
    [
        pytest.param((-2 * DAY, -DAY), id="expired"),
        pytest.param((DAY, 2 * DAY), id="not yet valid"),
    ],
)
def test_the_dates_count(tmp_path: Path, valid: tuple[timedelta, timedelta]) -> None:
    with pytest.raises(Fault, match="CERTIFICATE_VERIFY_FAILED"):
        asked(Signed(tmp_path, [is_authority], [nothing], valid=valid), tmp_path)


def test_the_host_counts(tmp_path: Path) -> None:
    signed = Signed(tmp_path, [is_authority], [nothing], host="kubernetes")

    with pytest.raises(Fault, match="CERTIFICATE_VERIFY_FAILED"):
        asked(signed, tmp_path)
    assert asked(signed, tmp_path, **{"tls-server-name": "kubernetes"}) == b"{}"


def test_without_a_ca_those_of_the_machine_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = Signed(tmp_path, [is_authority], [nothing])
    given = signed.ca
    with pytest.raises(Fault, match="CERTIFICATE_VERIFY_FAILED"):
        asked(signed, tmp_path, **{"certificate-authority": None})

    monkeypatch.setenv("SSL_CERT_FILE", str(given))
    assert asked(signed, tmp_path, **{"certificate-authority": None}) == b"{}"


def test_who_checks_nothing_is_let(tmp_path: Path) -> None:
    """Without a warning, which would be an error here: kubectl says nothing, either."""
    signed = Signed(tmp_path, [is_authority], [nothing], host="kubernetes")
    unchecked = {"certificate-authority": None, "insecure-skip-tls-verify": True}

    assert asked(signed, tmp_path, **unchecked) == b"{}"
