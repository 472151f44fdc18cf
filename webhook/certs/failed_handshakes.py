"""Failed TLS handshakes and calls without the right client certificate, counted by reason.

An API server that gets no answer admits every object (`failurePolicy: Ignore`), and logs little of
it. So each failure is counted, and the log has a line for each reason at most once a minute: port
scans do not fill it.
"""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Failed = Callable[[str, str], None]  # reason, detail

WAIT = 60.0  # seconds between two lines with the same reason

NO_CERTIFICATE = "no client certificate"
NAME = "client name"
CLIENT_CA = "client CA"
EXPIRED = "client certificate expired"
EARLY = "client certificate not valid yet"
CERTIFICATE = "client certificate"
OURS = "server certificate"
VERSION = "TLS version"
CIPHER = "cipher"
NO_TLS = "not TLS"
OTHER = "other"

_HANDSHAKES = "TLS handshakes failed: "
# The message after the number, and the advice.
REASONS = {
    NO_CERTIFICATE: (
        "calls without a client certificate were refused (--client-ca)",
        "Give the API server a certificate (docs/access.md)",
    ),
    NAME: (
        "calls with a client certificate for another name were refused",
        "Name the API server's with --client-name",
    ),
    CLIENT_CA: (
        f"{_HANDSHAKES}no CA in --client-ca signed the client's certificate",
        "Put the CA there that signed the API server's client certificate",
    ),
    EXPIRED: (
        f"{_HANDSHAKES}the client's certificate or a CA of it has expired",
        "Give the API server a new one (docs/access.md)",
    ),
    EARLY: (
        f"{_HANDSHAKES}the client's certificate or a CA of it is not valid yet",
        "Compare the clocks of the nodes",
    ),
    CERTIFICATE: (
        f"{_HANDSHAKES}the client's certificate cannot be used",
        "Give the API server one that is for client authentication (docs/access.md)",
    ),
    OURS: (
        f"{_HANDSHAKES}the client does not accept the certificate of this server",
        "Compare caBundle in the webhook configurations, and the name of the Service, with it",
    ),
    VERSION: (
        f"{_HANDSHAKES}the client speaks neither TLS 1.2 nor 1.3",
        "Allow TLS 1.2 or later there",
    ),
    CIPHER: (
        f"{_HANDSHAKES}client and server have no cipher, key exchange or signature in common",
        "Allow those of TLS 1.2 or later there",
    ),
    NO_TLS: ("connections began with something else than TLS", "Use https there"),
    OTHER: (f"{_HANDSHAKES}only OpenSSL says why", "Look at what connects"),
}

_UNSIGNED = {2, 7, 18, 19, 20, 21, 27}  # X509_V_ERR_...: unknown issuer, or another key
_TIMES = {9: EARLY, 10: EXPIRED}
# Words in OpenSSL's reasons. An alert was sent by the client.
_WORDS = (
    (OURS, ("ALERT_BAD_CERT", "ALERT_UNKNOWN_CA", "ALERT_CERTIFICATE", "ALERT_UNSUPPORTED_CERT")),
    (VERSION, ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "VERSION_TOO_LOW", "UNKNOWN_PROTOCOL")),
    (CIPHER, ("NO_SHARED", "NO_SUITABLE", "ALERT_HANDSHAKE_FAILURE", "INSUFFICIENT_SECURITY")),
    (NO_TLS, ("HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "WRONG_VERSION_NUMBER", "UNEXPECTED_MESSAGE")),
)


def reason_of(error: ssl.SSLError) -> str:
    """One of REASONS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        return CLIENT_CA if code in _UNSIGNED else _TIMES.get(code, CERTIFICATE)
    said = error.reason or ""
    return next((reason for reason, words in _WORDS if any(map(said.__contains__, words))), OTHER)


def _detail_of(error: ssl.SSLError) -> str:
    """OpenSSL's own words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (error.reason or type(error).__name__).lower().replace("_", " ")


class Handshake(ssl.SSLObject):
    """A TLS connection whose failed handshake is counted, and reported to the client.

    asyncio and uvloop close it without an alert, and an API server then only logs `EOF`.
    """

    failed: Failed
    outgoing: ssl.MemoryBIO
    _is_over = False

    def do_handshake(self) -> None:
        """As in the base class."""
        if self._is_over:
            raise ssl.SSLError("the handshake failed, and the client was notified")
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            reason = reason_of(error)
            self.failed(reason, _detail_of(error))
            if reason in {NO_TLS, OTHER} or not self.outgoing.pending:
                raise
            # Closed with the next data, or after the time limit of a handshake.
            self._is_over = True
        if self._is_over:
            raise ssl.SSLWantReadError  # the caller sends the alert, then waits


class Failures:
    """The failures in this process."""

    def __init__(
        self,
        write: Callable[..., None],
        count: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`write` is that of the log; `count` is called for each failure."""
        self._write = write
        self._count = count
        self._clock = clock
        self._untold: dict[str, tuple[int, str]] = {}  # the number, and the last detail
        self._told: dict[str, float] = {}  # the time of the last line

    def add(self, reason: str, detail: str = "") -> None:
        """Count one failure."""
        self._count(reason)
        number, _ = self._untold.get(reason, (0, ""))
        self._untold[reason] = (number + 1, detail)

    def log_counts(self) -> None:
        """Log the failures that are not logged yet; to be called once a second."""
        now = self._clock()
        for reason, (number, detail) in tuple(self._untold.items()):
            if now - self._told.get(reason, -WAIT) < WAIT:
                continue
            del self._untold[reason]
            self._told[reason] = now
            what, advice = REASONS[reason]
            effect = "An API server among them lets all objects in as they are"
            more = {"openssl": detail} if detail else {}
            self._write(
                "warning", f"{what}. {effect}. {advice}", reason=reason, number=number, **more
            )
