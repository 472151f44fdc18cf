"""Explains why OpenSSL rejects a certificate and its key; OpenSSL itself mostly reports `PEM lib`.

Used only after OpenSSL has rejected them. Certificates that OpenSSL accepts but no API server does
are rejected here, by `of_api_servers`.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

if TYPE_CHECKING:
    from pathlib import Path
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")
_DER = b"\x30"  # a SEQUENCE, the first byte of certificates and keys
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_MOST_BITS = 8192  # of an RSA key
_FOR_SERVERS = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
_DAMAGED = "is damaged or cut short; write it anew from where it came"


def of_pair(cert_file: Path, cert: bytes, key_file: Path, key: bytes) -> str:
    """What is wrong with the two, and what to do; empty if no fault is found."""
    with contextlib.suppress(Exception):  # malformed: OpenSSL's message is used
        if fault := of_certificates(cert) or _of_chain(cert):
            return f"{cert_file}: {fault}"
        if fault := _of_key(key):
            return f"{key_file}: {fault}"
        if fault := _of_both(cert, key):
            return f"{cert_file} and {key_file}: {fault}"
    return ""


def of_api_servers(cert: bytes) -> str:
    """Why API servers reject a certificate that OpenSSL serves, and what to do.

    Empty if they accept it. They use Go's crypto/tls: it supports fewer types of keys, and since Go
    1.15 (Kubernetes 1.19) only names in subjectAltName.
    """
    try:
        leaf = x509.load_pem_x509_certificate(cert)
        extensions = leaf.extensions
    except Exception:  # noqa: BLE001  # malformed: Go may still read it
        return ""
    if not _is_known_to_go(leaf):
        kinds = "RSA up to 8192 bits, ECDSA with P-256, P-384 or P-521, or Ed25519"
        return f"no API server knows the type of its key; use {kinds}"
    held = {each.oid: each.value for each in extensions}
    usages = held.get(x509.ExtendedKeyUsage.oid)
    if isinstance(usages, x509.ExtendedKeyUsage) and _FOR_SERVERS.isdisjoint(usages):
        return "the certificate is not for servers; its extendedKeyUsage must have serverAuth"
    if x509.SubjectAlternativeName.oid not in held:
        return "it has no subjectAltName, where API servers read its names; put the DNS name there"
    return ""


def _is_known_to_go(leaf: x509.Certificate) -> bool:
    try:
        key = leaf.public_key()
        usual = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        return False
    if usual not in leaf.tbs_certificate_bytes:  # RSA-PSS, or a curve by its parameters
        return False
    match key:
        case rsa.RSAPublicKey():
            return key.key_size <= _MOST_BITS
        case ec.EllipticCurvePublicKey():
            return isinstance(key.curve, _CURVES)
        case _:
            return isinstance(key, ed25519.Ed25519PublicKey)


def of_certificates(text: bytes) -> str:
    """What is wrong with a file of certificates; empty if it has one."""
    if fault := _of_text(text, "CERTIFICATE", "openssl x509 -inform der"):
        return fault
    held = _blocks(text)
    if not {"CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"} & set(held):
        return f"holds no CERTIFICATE, but {held[0]}; put the certificate there"
    return ""


def _of_text(text: bytes, wanted: str, convert: str) -> str:
    if not text.strip():
        return f"is empty; put the PEM text of the {wanted} there"
    if text.startswith(_DER):
        return f"is DER, and PEM is needed; convert it: {convert} -in FILE -out NEW"
    if _BLOCK.search(text):
        return ""
    try:
        decoded = base64.b64decode(text, validate=False)
    except binascii.Error:
        decoded = b""
    if _BLOCK.search(decoded):
        return "is base64 of a PEM file: it was encoded twice; a Secret's `data` is encoded once"
    return f"is no PEM: there is no line -----BEGIN {wanted}-----"


def _blocks(text: bytes) -> list[str]:
    return [found.decode() for found in _BLOCK.findall(text)]


def _of_chain(cert: bytes) -> str:
    try:
        x509.load_pem_x509_certificates(cert)
    except ValueError:
        return f"a certificate in it {_DAMAGED}"
    return ""


def _of_key(text: bytes) -> str:
    if fault := _of_text(text, "PRIVATE KEY", "openssl pkey -inform der"):
        return fault
    held = _blocks(text)
    if not any(each.endswith("PRIVATE KEY") for each in held):
        return f"holds no PRIVATE KEY, but {held[0]}; put the certificate's own key there"
    if "ENCRYPTED PRIVATE KEY" in held or b"Proc-Type: 4,ENCRYPTED" in text:
        return "the key has a password; take it away: openssl pkey -in FILE -out NEW"
    try:
        load_pem_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return f"the key {_DAMAGED}"
    return ""


def _of_both(cert: bytes, key: bytes) -> str:
    first, *others = x509.load_pem_x509_certificates(cert)
    public_key = load_pem_private_key(key, password=None).public_key()
    if first.public_key() == public_key:
        return ""
    if any(each.public_key() == public_key for each in others):
        return "the server's own certificate is not the first; put it before those of its CAs"
    if _is_ca(first):
        name = first.subject.rfc4514_string()
        return f"the certificate is a CA's ({name}); put the one there that it signed for the key"
    return "the key is that of another certificate; put both files there from one pair"


def _is_ca(certificate: x509.Certificate) -> bool:
    try:
        return bool(certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except (x509.ExtensionNotFound, ValueError):
        return False
