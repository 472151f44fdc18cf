"""Why OpenSSL does not take a certificate and its key, in words. It says `PEM lib` for most of it.

Asked only when OpenSSL has refused them: it has the last word.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

if TYPE_CHECKING:
    from pathlib import Path
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")
_DER = b"\x30"  # a SEQUENCE, as which certificates and keys begin
_DAMAGED = "is damaged or cut short; write it anew from where it came"


def of_pair(cert_file: Path, cert: bytes, key_file: Path, key: bytes) -> str:
    """What is wrong with these two, and what to do; nothing if we see no fault."""
    with contextlib.suppress(Exception):  # odd as they are: OpenSSL's own word is left
        if fault := of_certificates(cert) or _of_chain(cert):
            return f"{cert_file}: {fault}"
        if fault := _of_key(key):
            return f"{key_file}: {fault}"
        if fault := _of_both(cert, key):
            return f"{cert_file} and {key_file}: {fault}"
    return ""


def of_certificates(text: bytes) -> str:
    """What is wrong with a file of certificates; nothing if there is one in it."""
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
    ours = load_pem_private_key(key, password=None).public_key()
    if first.public_key() == ours:
        return ""
    if any(each.public_key() == ours for each in others):
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
