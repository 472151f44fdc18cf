"""The next step of the webhook's own certificates: what the cluster holds in, one write out.

Each step is one write of one object, and every step is found from what is stored, so a leader may
end after any of them. The order never lets a server show a leaf that a caBundle does not trust:

1. A new CA is stored beside the present one, and signs nothing.
2. Every caBundle gets it.
3. After all of them were read back with it, it signs a leaf and takes the place of the CA before,
   which stays in the bundles until no leaf of it can be valid any more, at least a day.
4. The bundles lose the old CA, and then the Secret does.

The servers check the order too: `distrusting` keeps a leaf from them that a bundle does not trust.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cryptography.hazmat.primitives.serialization import Encoding

from webhook.certs.authority import (
    BACKDATED,
    Identity,
    blocks_in,
    blocks_seen,
    certificate,
    common_name,
    general_name,
    is_signed_by,
    issue,
    new_authority,
)
from webhook.kube.times import DAY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from cryptography.x509 import Certificate

    from webhook.certs.own_certificates import OwnCertificates

    Bundles = Mapping[str, tuple[bytes, ...]]  # each configuration: the caBundle of each entry

CA_LIFE = 3650 * DAY
LEAF_LIFE = 30 * DAY
RENEWED_AT = 2 / 3  # of its life
_CA_NAME = "gpu-webhook own CA"  # such a CA in a bundle is ours


@dataclass(frozen=True, slots=True)
class Plan:
    """What the certificates should be."""

    hosts: tuple[str, ...]
    leaf_life: float = LEAF_LIFE
    ca_life: float = CA_LIFE

    def authority(self, now: float) -> Identity:
        """A new CA. The time in its name shows which is which."""
        return new_authority(f"{_CA_NAME} {now:.0f}", now - BACKDATED, now + self.ca_life)

    def leaf(self, ca: Identity, now: float) -> Identity:
        """A new pair for the servers."""
        end = min(now + self.leaf_life, ca.end)
        return issue(ca, self.hosts[0][:64], self.hosts, now - BACKDATED, end)

    def keep_until(self, now: float) -> float:
        """When the last leaf of a CA that signs no more has ended; at least a day."""
        return now + max(DAY, self.leaf_life)

    def promoted(self, kept: OwnCertificates, ca: Identity, now: float) -> OwnCertificates:
        """With this CA as the one that signs, and a leaf of it."""
        before = [kept.ca.certificate] if kept.ca is not None else []
        made = replace(kept, ca=ca, next=None, leaf=self.leaf(ca, now))
        return made.adopting(before, self.keep_until(now)) if before else made


@dataclass(frozen=True, slots=True)
class Situation:
    """What was read, and when."""

    kept: OwnCertificates
    is_stored: bool  # whether the Secret has just that
    bundles: Bundles  # of the configurations that are there
    barred: Collection[str]  # those that could not be read or written
    now: float
    leaf_age: float  # by a clock that nobody sets


class Store(NamedTuple):
    """Write this into the Secret."""

    kept: OwnCertificates
    why: str


class Fill(NamedTuple):
    """Write these into the caBundles of a configuration."""

    configuration: str
    bundles: tuple[bytes, ...]


def next_step(at: Situation, plan: Plan) -> Store | Fill | None:
    """The next write; None if nothing is to do now."""
    kept, now = at.kept, at.now
    if not at.is_stored:
        return Store(kept, "the Secret was incomplete")
    if strays := [ca for ca in _ours_in(at.bundles) if ca not in kept.authorities()]:
        until = plan.keep_until(now)
        return Store(kept.adopting(strays, until), "bundles have a CA that the Secret had lost")
    if kept.ca is None and kept.leaf is None and kept.next is None:
        # No leaf can be lost. A server with an earlier one waits until the bundles have the new CA.
        return Store(plan.promoted(kept, plan.authority(now), now), "a new CA and a first leaf")
    if kept.next is None and (kept.ca is None or is_due(kept.ca, now)):
        return Store(replace(kept, next=plan.authority(now)), "a new CA; bundles get it first")
    for name, texts in at.bundles.items():
        wanted = tuple(filled(text, kept, now) for text in texts)
        if wanted != texts and name not in at.barred:
            return Fill(name, wanted)
    return _signing(at, plan)


def _signing(at: Situation, plan: Plan) -> Store | None:
    """The step that signs or forgets, after the bundles that can be written have all CAs."""
    kept, now, leaf = at.kept, at.now, at.kept.leaf
    if kept.next is not None and (leaf is None or not at.barred):
        return Store(plan.promoted(kept, kept.next, now), "the new CA signs: all bundles have it")
    if kept.ca is not None and (why := why_renew(leaf, kept.ca, plan, now, at.leaf_age)):
        return Store(replace(kept, leaf=plan.leaf(kept.ca, now)), f"a new leaf: {why}")
    if kept.old and now >= kept.until and not at.barred:
        return Store(replace(kept, old=(), until=0.0), "no bundle has the old CA any more")
    return None


def why_renew(leaf: Identity | None, ca: Identity, plan: Plan, now: float, age: float) -> str:
    """Why the CA should sign another leaf; empty if the present one is right."""
    if leaf is None:
        return "there was none"
    if not is_signed_by(leaf.certificate, ca.certificate):
        return "the one before was of another CA"
    if {str(general_name(host).value) for host in plan.hosts} != {*leaf.hosts()}:
        return "the one before was for other names"
    return "two thirds of the life of the one before are over" if is_due(leaf, now, age) else ""


def is_due(pair: Identity, now: float, age: float = 0.0) -> bool:
    """Whether it should be renewed, by the clock or by the time since it was first seen."""
    return max(now - pair.made, age) >= RENEWED_AT * (pair.end - pair.made)


def filled(bundle: bytes, kept: OwnCertificates, now: float) -> bytes:
    """The caBundle with all CAs that leaves need, and without old ones whose time is over.

    CAs of others stay. The same bytes if nothing is missing.
    """
    held = blocks_in(bundle)
    over = now >= kept.until
    old = {_pem(each) for each in kept.old}
    wanted = [text for ca in kept.authorities() if (text := _pem(ca)) not in old or not over]
    unwanted = old if over else set()
    if {*wanted} <= {*blocks_seen(bundle)} and unwanted.isdisjoint(held):
        return bundle
    return b"".join([*(each for each in held if each not in {*wanted, *unwanted}), *wanted])


def distrusting(leaf: Identity, bundles: Bundles) -> list[str]:
    """The configurations with a bundle that is not empty and does not trust this leaf."""
    return [name for name, texts in bundles.items() if not all(_trusts(t, leaf) for t in texts)]


@lru_cache(64)  # asked at each pass, and nearly always about what it was asked about before
def _trusts(bundle: bytes, leaf: Identity) -> bool:
    """Whether a path leads from the leaf over certificates that it is sent with to the bundle."""
    roots = [ca for block in blocks_seen(bundle) if (ca := certificate(block)) is not None]
    reached, rest = [leaf.certificate], {*leaf.others}
    while reached:
        each = reached.pop()
        if each in roots or any(is_signed_by(each, ca) for ca in roots):
            return True
        signers = {ca for ca in rest if is_signed_by(each, ca)}
        rest -= signers
        reached += signers
    return not blocks_in(bundle)


def _ours_in(bundles: Bundles) -> Iterator[Certificate]:
    for texts in bundles.values():
        for block in {block for text in texts for block in blocks_in(text)}:
            found = certificate(block)
            if found is not None and common_name(found).startswith(_CA_NAME):
                yield found


def _pem(found: Certificate) -> bytes:
    return found.public_bytes(Encoding.PEM)
