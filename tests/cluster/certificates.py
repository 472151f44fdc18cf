"""A certificate authority for one test run: everything it signs is forgotten with its folder."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LIFE = timedelta(days=90)  # from 30 days on a server tells that it ends
_BACKDATED = timedelta(hours=1)
_CA_USAGE = {
    "digital_signature": True,
    "key_cert_sign": True,
    "content_commitment": False,
    "key_encipherment": False,
    "data_encipherment": False,
    "key_agreement": False,
    "crl_sign": False,
    "encipher_only": False,
    "decipher_only": False,
}


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Where a certificate and its key are."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into a folder.

    As kubeadm's, they have key identifiers if that is asked for. The CAs of old clusters (as EKS
    made them) have none, and Python 3.13 refuses such a chain unless it is told otherwise.
    """

    def __init__(self, folder: Path, *, key_identifiers: bool = False) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("test authority")
        builder = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self._identifier: x509.AuthorityKeyIdentifier | None = None
        if key_identifiers:
            own = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
            usage = x509.KeyUsage(**_CA_USAGE)
            builder = builder.add_extension(own, critical=False).add_extension(usage, critical=True)
            self._identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)
        self.bundle = folder / "ca.crt"
        self.bundle.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def server(self, name: str, addresses: Sequence[str] = ("127.0.0.1", "::1")) -> KeyPair:
        """Sign for a server on loopback; `name` is one of its DNS names."""
        alternatives: list[x509.GeneralName] = [x509.DNSName(name), x509.DNSName("localhost")]
        alternatives += [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
        return self._sign(
            _name(name),
            name,
            (x509.SubjectAlternativeName(alternatives), ExtendedKeyUsageOID.SERVER_AUTH),
        )

    def client(self, user: str, group: str = "") -> KeyPair:
        """Sign for a Kubernetes user: its name is the common name, its group the organisation."""
        return self._sign(
            _name(user, group),
            user.replace(":", "-"),
            (None, ExtendedKeyUsageOID.CLIENT_AUTH),
        )

    def signing_key(self, name: str) -> Path:
        """Make a key alone, for service account tokens."""
        return self._write_key(name, ec.generate_private_key(ec.SECP256R1()))

    def _sign(
        self,
        subject: x509.Name,
        file_name: str,
        purpose: tuple[x509.SubjectAlternativeName | None, x509.ObjectIdentifier],
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives, usage = purpose
        builder = _builder(subject, self._name, key).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        if self._identifier is not None:
            builder = builder.add_extension(self._identifier, critical=False)
        certificate = self.folder / f"{file_name}.crt"
        certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        return KeyPair(certificate, self._write_key(file_name, key))

    def _write_key(self, name: str, key: ec.EllipticCurvePrivateKey) -> Path:
        path = self.folder / f"{name}.key"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                # Kubernetes reads the service account key in this form only, not as PKCS 8.
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(tz=UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFE)
    )


def _name(common: str, organisation: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organisation:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
