"""Makes and reads certificates: times and names in, a certificate with its key out; no files."""

from __future__ import annotations

import base64
import binascii
import contextlib
import ipaddress
import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable

BACKDATED = 3600.0  # seconds: the clocks of API servers may be behind ours
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_LINES = re.compile(  # as encoding/pem of Go 1.25 reads them
    rb"^-----BEGIN CERTIFICATE-----[ \t\r]*\n([A-Za-z0-9+/=\s]+)\n"
    rb"-----END CERTIFICATE-----[ \t\r]*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate with its private key, as PEM, and the certificates that are sent with it."""

    certificate: x509.Certificate
    key: bytes
    others: tuple[x509.Certificate, ...] = ()  # of CAs between it and a root

    @classmethod
    def read(cls, text: bytes, key: bytes) -> Self | None:
        """None if one of the texts is no PEM, or if they do not belong together."""
        try:
            found = x509.load_pem_x509_certificate(text)
            held = load_pem_private_key(key, password=None).public_key()
            if held != found.public_key():
                return None
        except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion):
            return None
        sent = [certificate(block) for block in blocks_in(text)]
        return cls(found, key, tuple(each for each in sent if each not in {None, found}))

    @property
    def text(self) -> bytes:
        """The certificates as PEM."""
        sent = (self.certificate, *self.others)
        return b"".join(each.public_bytes(Encoding.PEM) for each in sent)

    @property
    def start(self) -> float:
        """The begin of its validity, in seconds of the epoch."""
        return self.certificate.not_valid_before_utc.timestamp()

    @property
    def end(self) -> float:
        """The end of its validity."""
        return self.certificate.not_valid_after_utc.timestamp()

    @property
    def made(self) -> float:
        """When it was made."""
        return self.start + BACKDATED

    def is_valid(self, now: float) -> bool:
        """Whether the time is between its begin and its end."""
        return self.start <= now < self.end

    def hosts(self) -> list[str]:
        """Its DNS names and addresses."""
        try:
            names = self.certificate.extensions.get_extension_for_class(
                x509.SubjectAlternativeName
            ).value
        except (x509.ExtensionNotFound, ValueError):
            return []
        return [str(each.value) for each in names]


def new_authority(name: str, start: float, end: float) -> Identity:
    """A CA that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    certificate = (
        _builder(subject, subject, key.public_key(), start, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Identity(certificate, _pem(key))


def issue(
    authority: Identity, name: str, hosts: Iterable[str], start: float, end: float
) -> Identity:
    """A pair for a server with these DNS names and addresses."""
    key, ca = ec.generate_private_key(ec.SECP256R1()), authority.certificate
    signer = load_pem_private_key(authority.key, password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise TypeError("not a CA that was made here")
    certificate = (
        _builder(_name(name), ca.subject, key.public_key(), start, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([general_name(host) for host in hosts]), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    return Identity(certificate, _pem(key))


@lru_cache(64)  # the same few bundles are looked at every few seconds
def blocks_in(text: bytes, form: re.Pattern[bytes] = _BLOCK) -> tuple[bytes, ...]:
    """Each certificate of a PEM text, as PEM in one spelling. Other text is left out."""
    found = []
    for block in form.finditer(text):
        with contextlib.suppress(binascii.Error):
            found.append(ssl.DER_cert_to_PEM_cert(base64.b64decode(block[1])).encode())
    return tuple(found)


def blocks_seen(text: bytes) -> tuple[bytes, ...]:
    """Those that an API server finds: Go skips one whose first or last line is not on its own."""
    return blocks_in(text, _LINES)


@lru_cache(256)
def certificate(block: bytes) -> x509.Certificate | None:
    """The certificate; None if it is damaged."""
    try:
        return x509.load_pem_x509_certificate(block)
    except (ValueError, x509.InvalidVersion):
        return None


def common_name(found: x509.Certificate) -> str:
    """The common name of its subject, or an empty text."""
    names = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def is_signed_by(leaf: x509.Certificate, ca: x509.Certificate) -> bool:
    """Whether this CA signed it, whatever the dates."""
    try:
        leaf.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """What the key may be used for."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def general_name(host: str) -> x509.GeneralName:
    """An address or a DNS name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, start: float, end: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(start, UTC))
        .not_valid_after(datetime.fromtimestamp(end, UTC))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
