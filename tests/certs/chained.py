"""Pairs with keys of any kind, signed by an intermediate CA that only the chain names."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhook.certs import authority
from webhook.certs.development import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Key = (
        ec.EllipticCurvePrivateKey
        | ed448.Ed448PrivateKey
        | ed25519.Ed25519PrivateKey
        | rsa.RSAPrivateKey
    )

HOST = "localhost"
KINDS: dict[str, Callable[[], Key]] = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}


class Signer(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: Key

    @property
    def text(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def secret(self) -> bytes:
        """The key as PEM."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def chained(
    folder: Path,
    make: Callable[[], Key],
    usage: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.SERVER_AUTH,
    names: Sequence[str] = (HOST,),
) -> Files:
    """A new root, a CA below it, and a pair of the server whose file has that CA, too."""
    folder.mkdir(parents=True, exist_ok=True)
    root, middle, leaf = chain(make, usage, names)
    files = Files(folder / "ca.crt", folder / "tls.crt", folder / "tls.key")
    files.ca.write_bytes(root.text)
    files.cert.write_bytes(leaf.text + middle.text)
    files.key.write_bytes(leaf.secret)
    return files


def chain(
    make: Callable[[], Key],
    usage: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.SERVER_AUTH,
    names: Sequence[str] = (HOST,),
    now: datetime | None = None,
    between: Sequence[str] = ("intermediate",),
) -> list[Signer]:
    """A new root, the CAs below it, each signed by the one before, and the pair of the server."""
    now = datetime.now(UTC) if now is None else now
    made = [_signed("root", make(), None, now)]
    for name in between:
        made.append(_signed(name, make(), made[-1], now))
    return [*made, _signed("server", make(), made[-1], now, usage, names, is_ca=False)]


def _signed(
    name: str,
    key: Key,
    issuer: Signer | None,
    now: datetime,
    usage: x509.ObjectIdentifier | None = None,
    names: Sequence[str] = (),
    *,
    is_ca: bool = True,
) -> Signer:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = issuer.key if issuer else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=90))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(authority.usage(signs_certificates=is_ca), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if names:
        loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        alternatives = x509.SubjectAlternativeName([*map(x509.DNSName, names), loopback])
        builder = builder.add_extension(alternatives, critical=False)
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    is_edwards = isinstance(signer, ed448.Ed448PrivateKey | ed25519.Ed25519PrivateKey)
    return Signer(builder.sign(signer, None if is_edwards else hashes.SHA256()), key)
