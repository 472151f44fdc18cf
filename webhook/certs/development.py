"""Development certificates: a CA and one certificate of it, created when they are needed.

The key of the CA is deleted at once, so a leaked file cannot fool clients that trust `ca.crt`; a
new certificate means a new CA.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509

from webhook.certs import authority
from webhook.certs.authority import BACKDATED
from webhook.core.errors import InputError
from webhook.kube.times import DAY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

VALID = 90 * DAY  # the server warns from 30 days before the end
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
        leaf = authority.Identity.read(files.cert.read_bytes(), files.key.read_bytes())
    except Exception:  # noqa: BLE001  # whatever is wrong with them, new ones replace them
        return False
    return (
        leaf is not None
        and leaf.is_valid(time.time())
        and authority.is_signed_by(leaf.certificate, ca)
        and {str(authority.general_name(name).value) for name in names} <= {*leaf.hosts()}
    )


def _make(files: Files, names: list[str]) -> None:
    now = time.time()
    dates = now - BACKDATED, now + VALID
    ca = authority.new_authority("gpu-webhook development CA", *dates)
    leaf = authority.issue(ca, "gpu-webhook development", names, *dates)
    files.cert.parent.mkdir(parents=True, exist_ok=True)
    _write(files.ca, ca.text, 0o644)
    _write(files.key, leaf.key, 0o600)
    _write(files.cert, leaf.text, 0o644)


def _write(file: Path, content: bytes, mode: int) -> None:
    """Replace the file atomically; it never has wider permissions than these."""
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    scratch.replace(file)
