"""The TLS context of the endpoint: made once, and given a new pair when the files change.

One context for all connections (making one costs more than a handshake); a connection keeps the
pair that it began with. A new pair that cannot be used is reported once, and the last good one
stays in service until the files change again.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Report = Callable[[str, str], None]  # level, message
    Stamp = tuple[tuple[int, int, int], ...]


class ServingContext:
    """`context` serves what was in the files when `refresh()` last found a good pair there."""

    def __init__(self, cert_file: Path, key_file: Path, report: Report) -> None:
        """Load the pair, or raise InputError."""
        self._cert_file = cert_file
        self._key_file = key_file
        self._report = report
        self._stamp = self._read_stamp()
        self.context = new_context()
        load_pair(self.context, cert_file, key_file)

    def refresh(self) -> None:
        """Take over the files if they changed. Two stat() calls if they did not."""
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp  # also if they are no good: each change is tried, and reported, once
        try:
            load_pair(self.context, self._cert_file, self._key_file)
        except InputError as error:
            self._report("error", f"{error}; the last good certificate stays in service")
        else:
            self._report("info", f"{self._cert_file}: new certificate in service")

    def _read_stamp(self) -> Stamp:
        """What changes when a file is written, replaced, or (a Secret volume) linked elsewhere."""
        stamp = []
        for file in (self._cert_file, self._key_file):
            try:
                found = file.stat()
            except OSError:
                stamp.append((0, 0, 0))
            else:
                stamp.append((found.st_ino, found.st_mtime_ns, found.st_size))
        return tuple(stamp)


def new_context() -> ssl.SSLContext:
    """A server context without a certificate: TLS 1.2 or later, no client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    return context


def load_pair(context: ssl.SSLContext, cert_file: Path, key_file: Path) -> None:
    """Give the context this pair, or raise InputError and leave the context as it is.

    Each file is read once, and the pair is tried on another context first: OpenSSL takes the
    certificate before it sees that the key is another's, and files may change between two looks.
    """
    pair = b"\n".join(_read(file) for file in (cert_file, key_file))
    try:
        with _as_file(pair) as path:
            new_context().load_cert_chain(path)
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        raise InputError(
            f"{cert_file} and {key_file}: no usable certificate and key ({reason}). "
            "Give a PEM certificate chain and its own PEM key without a password",
        ) from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(
            f"{file}: {(error.strerror or str(error)).lower()}. "
            "Name readable PEM files with --tls-cert-file and --tls-private-key-file, "
            "or use --dev",
        ) from error


@contextmanager
def _as_file(pair: bytes) -> Iterator[str]:
    """The bytes under a path, which is all that OpenSSL reads from; in memory where it can be."""
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
