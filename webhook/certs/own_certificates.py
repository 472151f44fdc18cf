"""What the Secret of the webhook's own certificates holds: its data in, usable parts out, and back.

A part that is missing, damaged, expired, or of another pair is read as missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from cryptography.hazmat.primitives.serialization import Encoding

from webhook.certs.authority import Identity, blocks_in, certificate
from webhook.kube.times import DAY, seconds_of, stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cryptography.x509 import Certificate

_UNKNOWN = 30 * DAY  # how long old CAs are kept whose time cannot be read


@dataclass(frozen=True, slots=True)
class OwnCertificates:
    """The parts. Each CA that is not None or in `old` belongs into every caBundle."""

    ca: Identity | None = None  # signs the leaf
    next: Identity | None = None  # will sign it as soon as every bundle has it
    old: tuple[Certificate, ...] = ()  # signed leaves that may still be served
    until: float = 0.0  # bundles keep the old ones until then, in seconds of the epoch
    leaf: Identity | None = None  # what the servers show

    @classmethod
    def read(cls, data: Mapping[str, bytes], now: float) -> Self:
        """From the data of the Secret; empty if there is none."""
        pairs = {
            name: Identity.read(data.get(f"{file}.crt", b""), data.get(f"{file}.key", b""))
            for name, file in (("ca", "ca"), ("next", "next-ca"), ("leaf", "tls"))
        }
        present = [each.certificate for each in (pairs["ca"], pairs["next"]) if each is not None]
        blocks = map(certificate, blocks_in(data.get("old-ca.crt", b"")))
        old = tuple(each for each in blocks if each is not None and each not in present)
        until = seconds_of(data.get("old-ca.until", b"").decode("ascii", "replace"))
        return cls(old=old, until=(until or now + _UNKNOWN) if old else 0.0, **pairs).at(now)

    def at(self, now: float) -> Self:
        """Without the pairs that are not valid at this time."""

        def valid(pair: Identity | None) -> Identity | None:
            return pair if pair is not None and pair.is_valid(now) else None

        return replace(self, ca=valid(self.ca), next=valid(self.next), leaf=valid(self.leaf))

    def data(self) -> dict[str, bytes]:
        """The data of the Secret."""
        found: dict[str, bytes] = {}
        for file, pair in (("ca", self.ca), ("next-ca", self.next), ("tls", self.leaf)):
            if pair is not None:
                found |= {f"{file}.crt": pair.text, f"{file}.key": pair.key}
        if self.old:
            texts = [each.public_bytes(Encoding.PEM) for each in self.old]
            found |= {"old-ca.crt": b"".join(texts), "old-ca.until": stamp(self.until).encode()}
        return found

    def adopting(self, more: Iterable[Certificate], until: float) -> Self:
        """With more old CAs, and all old ones until at least then."""
        old = tuple(dict.fromkeys((*self.old, *more)))
        return replace(self, old=old, until=max(self.until, until))

    def authorities(self) -> list[Certificate]:
        """All CAs, the one that signs first."""
        pairs = [each.certificate for each in (self.ca, self.next) if each is not None]
        return [*pairs, *self.old]
