"""Client certificates: which clients may send reviews, if `serve --client-ca` is set.

A certificate is requested but not required: kubelets, which probe the same port, have none. So the
handshake verifies only a certificate that is sent, and the admission paths call `why_not()`.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

from webhook.certs import faults
from webhook.certs.failed_handshakes import NAME, NO_CERTIFICATE
from webhook.core.errors import InputError
from webhook.files import limited_reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    Certificate = Mapping[str, Any]  # from ssl.SSLSocket.getpeercert()


class Clients:
    """The CA file and the names. Without a CA file all clients may send reviews."""

    def __init__(self, ca_file: Path | None = None, names: Sequence[str] = ()) -> None:
        """`names`: common names, DNS names, addresses or URIs; none: any certificate of the CA."""
        self.ca_file = ca_file
        self._names = frozenset(names)

    def read(self) -> bytes:
        """The present content of the CA file, or InputError; empty without a CA file."""
        if self.ca_file is None:
            return b""
        try:
            return limited_reading.read(self.ca_file, limited_reading.MIB)
        except OSError as error:
            raise self._bad((error.strerror or str(error)).lower()) from error

    def trust(self, context: ssl.SSLContext, text: bytes) -> None:
        """Make the context verify client certificates with this CA; or raise InputError."""
        if self.ca_file is None:
            return
        try:
            context.load_verify_locations(cadata=text.decode("ascii", "replace"))
        except (ssl.SSLError, ValueError) as error:
            raise self._bad(faults.of_certificates(text) or "is no CA in PEM") from error
        context.verify_mode = ssl.CERT_OPTIONAL

    def _bad(self, why: str) -> InputError:
        advice = "Name a PEM file with the CA of the API server's client certificate"
        return InputError(f"--client-ca {self.ca_file}: {why}. {advice}")

    def why_not(self, certificate: Certificate | None) -> str:
        """Why a client with this certificate, or none, may not send reviews; empty if it may.

        One of the reasons in certs/failed_handshakes.py.
        """
        if self.ca_file is None:
            return ""
        if not certificate:
            return NO_CERTIFICATE
        is_named = not self._names or not self._names.isdisjoint(_names_of(certificate))
        return "" if is_named else NAME


def _names_of(certificate: Certificate) -> Iterator[str]:
    """Common names and alternative names."""
    for part in certificate.get("subject", ()):
        yield from (value for kind, value in part if kind == "commonName")
    yield from (value for _, value in certificate.get("subjectAltName", ()) if type(value) is str)
