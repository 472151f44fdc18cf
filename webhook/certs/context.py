"""The TLS context of the endpoint; a new one replaces it when the certificate files change.

One context serves all connections (making one takes longer than a handshake), and a context in use
never gets a new pair or CA: OpenSSL keeps a pair for each type of key, prefers some types, resumes
sessions of the earlier pair, and keeps all CAs. A connection keeps its first context. A new pair
that cannot be used is reported once, and the last good one stays in service. So does a valid pair
if the new one has expired or is not valid yet; that is checked again as time passes.

After the pair has expired, the API server admits every object without the webhook (`failurePolicy:
Ignore`). So the last days of a pair are reported: in the log once a day, on /readyz, and as a
metric.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cryptography import x509

from webhook.certs import faults
from webhook.certs.clients import Clients
from webhook.certs.failed_handshakes import Handshake
from webhook.core.errors import InputError
from webhook.files import limited_reading
from webhook.kube.times import DAY, date

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from webhook.certs.failed_handshakes import Failed

    Report = Callable[[str, str], None]  # level, message


SOON = 30 * DAY
SOON_SHARE = 0.25  # of its life, for shorter ones: they are renewed after two thirds
EVERYBODY = Clients()
_READINGS = 3  # of a pair whose files are just being replaced


@dataclass(frozen=True, slots=True)
class Validity:
    """The begin and end of validity of a certificate, in seconds of the epoch."""

    start: float
    end: float

    def holds(self, now: float) -> bool:
        """Whether it is valid now."""
        return self.start <= now < self.end

    def ends_soon(self, now: float) -> bool:
        """Whether it ends within 30 days and within the last quarter of its life."""
        return self.end - now < min(SOON, SOON_SHARE * (self.end - self.start))

    def why_not(self, now: float) -> str:
        """Why it is not valid now, by the clock of this node; empty if it is."""
        if self.holds(now):
            return ""
        so = f"expired on {date(self.end)}"
        so = so if now >= self.end else f"is not valid before {date(self.start)}"
        return f"{so}, and the clock of this node says {date(now)}"


_UNLESS = "unless that is wrong, no API server accepts it"
ALWAYS = Validity(0.0, float("inf"))  # for a certificate whose dates could not be read


class ServingContext:
    """`context` serves the last good pair that `refresh()` found in the files."""

    def __init__(  # noqa: PLR0913, PLR0917  # all arguments are named
        self,
        cert_file: Path,
        key_file: Path,
        report: Report,
        clock: Callable[[], float] = time.time,
        clients: Clients = EVERYBODY,
        failed: Failed = lambda _reason, _detail: None,
    ) -> None:
        """Load the pair, or raise InputError. An expired pair is better than none.

        `failed` is called with the reason of each failed handshake.
        """
        self._clients = clients
        self._cert_file = cert_file
        self._key_file = key_file
        self._report = report
        self._clock = clock
        self._pair_files = _Followed(cert_file, key_file)
        self._client_files = _Followed(*filter(None, [clients.ca_file]))
        self._told = 0.0  # when the end of validity was last reported
        self._pair = read_pair(cert_file, key_file)
        self._authorities = clients.read()
        self.context = _Switch(ssl.PROTOCOL_TLS_SERVER)
        self.context.failed = failed
        self.context.current = self._whole(self._pair, self._authorities)
        self.validity = validity_of(self._pair.text)

    @property
    def is_good(self) -> bool:
        """Whether the present files are what is served."""
        return not self._pair_files.fault

    def refresh(self) -> None:
        """Use the files if they changed. Costs a stat() call for each if they did not."""
        if fault := self._pair_files.refresh(self._take_pair):
            until = f"until it expires on {date(self.validity.end)}"
            self._report("error", f"{fault}. the last good certificate stays in service, {until}")
        if fault := self._client_files.refresh(self._take_authorities):
            self._report("error", f"{fault}; the CAs before stay in force")
        self._tell_end()

    def notes(self) -> list[str]:
        """Faults of the certificate although traffic may come."""
        now, notes = self._clock(), []
        if fault := self._pair_files.fault:
            notes.append(f"certificate: the new files are not used: {fault}")
        if fault := self._client_files.fault:
            notes.append(f"client CA: the new file is not used: {fault}")
        if why := self.validity.why_not(now):
            notes.append(f"certificate: it {why}: {_UNLESS}")
        elif self.validity.ends_soon(now):
            notes.append(f"certificate: it expires on {date(self.validity.end)}")
        return notes

    def _take_pair(self) -> str:
        """Serve the pair in the files now; or return why it must wait for its time."""
        pair = read_pair(self._cert_file, self._key_file)
        context = self._whole(pair, self._authorities)
        validity, now = validity_of(pair.text), self._clock()
        why = validity.why_not(now)
        if why and self.validity.holds(now):
            return f"{self._cert_file}: the certificate {why}"
        self.context.current = context
        self._pair, self.validity, self._told = pair, validity, 0.0
        self._report("info", f"{self._cert_file}: new certificate in service")
        return ""

    def _take_authorities(self) -> str:
        """Trust the CAs in the present file, and no others."""
        authorities = self._clients.read()
        self.context.current = self._whole(self._pair, authorities)
        self._authorities = authorities
        self._report("info", f"{self._clients.ca_file}: new client CAs in force")
        return ""

    def _whole(self, pair: Pair, authorities: bytes) -> ssl.SSLContext:
        """A new context with this pair and these client CAs; or raise InputError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.sslobject_class = Handshake
        load_pair(context, pair)
        self._clients.trust(context, authorities)
        return context

    def _tell_end(self) -> None:
        """Once a day near the end of validity."""
        now = self._clock()
        why = self.validity.why_not(now)
        if now - self._told < DAY or not (why or self.validity.ends_soon(now)):
            return
        self._told = now
        advice = "put a new pair into its files: it is read without a restart"
        if why:
            text = f"{self._cert_file}: the certificate in service {why}: {_UNLESS}"
            self._report(
                "error", f"{text}, and with failurePolicy Ignore nothing is judged; {advice}"
            )
        else:
            end = f"expires on {date(self.validity.end)}"
            self._report(
                "warning", f"{self._cert_file}: the certificate in service {end}; {advice}"
            )


class _Followed:
    """Files that may change, and why their present content is not used."""

    def __init__(self, *files: Path) -> None:
        self._files = files
        self._stamp = limited_reading.identity(*files)
        self._waits = False  # it may be used later although the files stay the same
        self.fault = ""

    def refresh(self, take: Callable[[], str]) -> str:
        """Try changed or waiting content. Each fault is reported once."""
        stamp, before = limited_reading.identity(*self._files), self.fault
        is_new = stamp != self._stamp
        if not (is_new or self._waits):
            return ""
        self._stamp = stamp
        try:
            self.fault = take()
            self._waits = bool(self.fault)
        except InputError as error:
            self._waits, self.fault = _may_pass(error), str(error)
        return self.fault if is_new or self.fault != before else ""


class _Switch(ssl.SSLContext):
    """Uses the current context for each new connection."""

    current: ssl.SSLContext
    failed: Failed

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any
    ) -> ssl.SSLObject:
        """As in the base class."""
        made = self.current.wrap_bio(incoming, outgoing, *args, **kwargs)
        if isinstance(made, Handshake):
            made.failed, made.outgoing = self.failed, outgoing
        return made


def _may_pass(error: InputError) -> bool:
    """Whether it may pass although the files stay the same, such as a lack of file descriptors."""
    return isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, ssl.SSLError)


class Pair(NamedTuple):
    """The content of two files."""

    cert_file: Path
    cert: bytes
    key_file: Path
    key: bytes

    @property
    def text(self) -> bytes:
        """Both in one text, as OpenSSL reads them."""
        return self.cert + b"\n" + self.key


def read_pair(cert_file: Path, key_file: Path) -> Pair:
    """Both files, read again if they changed in between. InputError if unreadable."""
    for _ in range(_READINGS):
        seen = limited_reading.identity(cert_file, key_file)
        pair = Pair(cert_file, _read(cert_file), key_file, _read(key_file))
        if limited_reading.identity(cert_file, key_file) == seen:
            break
    return pair


def validity_of(pair: bytes) -> Validity:
    """The dates of the first certificate, which is the server's own."""
    try:
        leaf = x509.load_pem_x509_certificate(pair)
        start, end = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    except (ValueError, x509.InvalidVersion):  # OpenSSL decides whether it can be used
        return ALWAYS
    return Validity(start.timestamp(), end.timestamp())


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    """Load this pair into a new context; after an InputError the context is unusable."""
    try:
        with _as_file(pair.text) as path:
            # Otherwise OpenSSL asks for one at the terminal.
            context.load_cert_chain(path, password="")
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        fault = (
            faults.of_pair(*pair)
            or f"{pair.cert_file} and {pair.key_file}: OpenSSL does not take them ({reason}). "
            "Give a PEM certificate chain and its own PEM key without a password"
        )
        raise InputError(fault) from error
    except OSError as error:  # no file descriptor is left
        raise InputError(f"{pair.cert_file}: {(error.strerror or str(error)).lower()}") from error
    if fault := faults.of_api_servers(pair.cert):
        raise InputError(f"{pair.cert_file}: {fault}")


def _read(file: Path) -> bytes:
    try:
        return limited_reading.read(file, limited_reading.MIB)
    except PermissionError as error:
        raise InputError(
            f"{file}: user {os.getuid()} may not read it (permission denied). Give it the group of "
            "this process (fsGroup of the pod) and let the group read it (defaultMode: 0440)"
        ) from error
    except OSError as error:
        raise InputError(
            f"{file}: {(error.strerror or str(error)).lower()}. "
            "Name readable PEM files with --tls-cert-file and --tls-private-key-file, "
            "or use --dev",
        ) from error


@contextmanager
def _as_file(pair: bytes) -> Iterator[str]:
    """A path with these bytes, because OpenSSL reads only from paths; in memory if possible."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("pair"), "wb") as file:
            file.write(pair)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as named:  # mode 0600
            named.write(pair)
            named.flush()
            yield named.name
