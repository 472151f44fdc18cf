"""Development certificates: a CA and one certificate of it, created when they are needed.

The key of the CA is deleted at once, so a leaked file cannot fool clients that trust `ca.crt`; a
new certificate means a new CA.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

VALID = timedelta(days=90)  # the server warns from 30 days before the end
BACKDATED = timedelta(hours=1)  # clocks differ
LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Files:
    """The paths of the certificates."""

    ca: Path
    cert: Path
    key: Path


def ensure(folder: Path, hosts: Iterable[str] = ()) -> Files:
    """The files in this folder, created if they are missing, expired, or for other hosts."""
    files = Files(folder / "ca.crt", folder / "tls.crt", folder / "tls.key")
    names = list(dict.fromkeys([*LOCAL, *hosts]))
    if not _are_good(files, names):
        try:
            _make(files, names)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(
                f"{folder}: the development certificates cannot be written ({reason}). "
                "Start in a folder that you may write to, or name certificates of your own with "
                "--tls-cert-file and --tls-private-key-file",
            ) from error
    return files


def _are_good(files: Files, names: list[str]) -> bool:
    try:
        ca = x509.load_pem_x509_certificate(files.ca.read_bytes())
        leaf = x509.load_pem_x509_certificate(files.cert.read_bytes())
        key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
        leaf.verify_directly_issued_by(ca)
        covered = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # noqa: BLE001  # whatever is wrong with them, new ones replace them
        return False
    now = datetime.now(UTC)
    return (
        leaf.public_key() == key.public_key()
        and leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc
        and all(_general_name(name) in covered for name in names)
    )


def _make(files: Files, names: list[str]) -> None:
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _name("gpu-webhook development CA")
    ca = (
        _builder(issuer, issuer, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    leaf = (
        _builder(_name("gpu-webhook development"), issuer, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    key_text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    files.cert.parent.mkdir(parents=True, exist_ok=True)
    _write(files.ca, ca.public_bytes(serialization.Encoding.PEM), 0o644)
    _write(files.key, key_text, 0o600)
    _write(files.cert, leaf.public_bytes(serialization.Encoding.PEM), 0o644)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
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


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(file: Path, content: bytes, mode: int) -> None:
    """Replace the file atomically; it never has wider permissions than these."""
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    scratch.replace(file)
