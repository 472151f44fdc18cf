"""`gpu-webhook certs`: shows and renews the certificates that the watchers keep in a cluster."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from cryptography.x509 import Certificate

    from webhook.certs.authority import Identity
    from webhook.certs.own_certificates import OwnCertificates
    from webhook.certs.renewal import Plan
    from webhook.cluster.client import Client
    from webhook.issuing.objects import Objects, Secret

ROTATION_SECONDS = 60.0  # a leader needs two passes
SHOWN_SECONDS = 25.0  # until each server shows a new certificate
_PAUSE = 0.5
_OTHERS = "something else writes the Secret again and again {}"
_Done = TypeVar("_Done")


def status(args: SimpleNamespace) -> int:
    """Print a line for each certificate and caBundle; the exit code is that of the worst."""
    from webhook.cli import doctor
    from webhook.doctor.certificates import immutable, no_secret, pairs, trust
    from webhook.doctor.lines import FAILED, Line
    from webhook.issuing.objects import bundles_of

    api, objects = _connect(args)
    with answered():
        secret = objects.secret()
        found, faults = objects.configurations()
    now = api.now()
    kept = _kept(secret, now)
    lines = [*(pairs(kept, now) if secret.raw else no_secret()), *trust(kept, bundles_of(found))]
    if secret.raw.get("immutable") is True:
        lines.insert(0, immutable(args.namespace))
    lines += [Line(FAILED, f"cannot be read: {fault}", what=name) for name, fault in faults.items()]
    return doctor.show(lines)


def issue(args: SimpleNamespace) -> int:
    """Sign a new server certificate; servers have it within seconds."""
    from webhook.kube.times import date

    api, objects = _connect(args)

    def issued() -> Identity | None:
        secret, kept, ca = _with_ca(objects, api.now(), args)
        leaf = _plan(kept, args).leaf(ca, api.now())
        return leaf if _is_stored(objects, secret, replace(kept, leaf=leaf)) else None

    with answered():
        leaf = _wait(issued, _OTHERS)
    print(f"Issued, valid until {date(leaf.end)}. Servers show it within 25 seconds.")  # noqa: T201
    return 0


def rotate(args: SimpleNamespace) -> int:
    """Store a new CA, and wait until a leader has brought it into service."""
    api, objects = _connect(args)

    def begun() -> OwnCertificates | None:
        secret, kept, _ = _with_ca(objects, api.now(), args)
        # The key of a CA that waits is in the same Secret as the key that leaked.
        waiting = None if args.distrust else kept.next
        new = waiting or _plan(kept, args).authority(api.now())
        return kept if _is_stored(objects, secret, replace(kept, next=new)) else None

    with answered():
        before = _wait(begun, _OTHERS)
        print("A new CA is stored. It signs as soon as every caBundle has it.", flush=True)  # noqa: T201
        waiting = before.next.certificate if before.next is not None else None
        earlier = [ca for ca in before.authorities() if args.distrust or ca != waiting]

        def signs() -> bool:
            # Another rotation may have put its own in the place of ours: that is as good.
            ca = _kept(objects.secret(), api.now()).ca
            return ca is not None and ca.certificate not in earlier

        _wait(signs, "no watcher brought the new CA into service {}, and the old one goes on")
        if not args.distrust:
            print("It signs now. The old CA stays in the caBundles until its leaves end.")  # noqa: T201
            return 0
        print("It signs now. The servers get its certificate.", flush=True)  # noqa: T201
        late = 2 * SHOWN_SECONDS + ROTATION_SECONDS  # another rotation may begin meanwhile
        _wait(_Distrust(objects, api.now), "a caBundle still trusts a replaced CA {}", late)
    print("No caBundle trusts an earlier CA any more.")  # noqa: T201
    return 0


class _Distrust:
    """Each call: whether the leader took all old CAs out of the bundles; asks it to, in time.

    In time is when each server shows a leaf of the CA that signs, which another rotation may have
    replaced since the last call: until then, servers show a leaf of one that is already old.
    """

    def __init__(self, objects: Objects, now: Callable[[], float]) -> None:
        self._objects, self._now = objects, now
        self._signs: Certificate | None = None
        self._since = 0.0

    def __call__(self) -> bool:
        secret, now = self._objects.secret(), self._now()
        kept = _kept(secret, now)
        signs = kept.ca.certificate if kept.ca is not None else None
        if signs is None or signs != self._signs:
            self._signs, self._since = signs, time.monotonic()
        shown = time.monotonic() - self._since >= SHOWN_SECONDS
        if shown and kept.old and kept.until > now:
            _is_stored(self._objects, secret, replace(kept, until=now))  # else the next call does
        return signs is not None and not kept.old


def _wait(done: Callable[[], _Done | None], fault: str, seconds: float = 0.0) -> _Done:
    """The first answer that is not empty."""
    seconds = seconds or ROTATION_SECONDS
    end = time.monotonic() + seconds
    while not (answer := done()):
        if time.monotonic() > end:
            late = fault.format(f"after {seconds:.0f} s")
            raise InputError(f"{late}; `gpu-webhook certs status` and the log of `watch` show why")
        time.sleep(_PAUSE)
    return answer


def _is_stored(objects: Objects, secret: Secret, kept: OwnCertificates) -> bool:
    """Store it; False if another one wrote the Secret since it was read."""
    from webhook.cluster.client import Refused

    try:
        objects.store(secret, kept.data())
    except Refused as refused:
        if refused.status != HTTPStatus.CONFLICT:
            raise
        return False
    return True


def _connect(args: SimpleNamespace) -> tuple[Client, Objects]:
    from webhook.cluster import client
    from webhook.issuing.objects import SECRET, Objects

    api = client.connected(args.kubeconfig, args.context)
    return api, Objects(api, args.namespace, SECRET, args.configuration)


@contextmanager
def answered() -> Iterator[None]:
    """Makes an error message of a call that failed."""
    from webhook.cluster.client import Fault, Refused, no_answer

    try:
        yield
    except Refused as refused:
        login = ": the credentials are missing or have expired, log in" * refused.is_of_nobody
        raise InputError(f"the API server answered {refused}{login}") from refused
    except Fault as fault:
        raise no_answer(fault) from fault


def _kept(secret: Secret, now: float) -> OwnCertificates:
    from webhook.certs.own_certificates import OwnCertificates

    return OwnCertificates.read(secret.data, now)


def _with_ca(
    objects: Objects, now: float, args: SimpleNamespace
) -> tuple[Secret, OwnCertificates, Identity]:
    """The Secret, what it holds, and its CA. Raises InputError if it has none."""
    from webhook.issuing.objects import SECRET

    secret = objects.secret()
    kept = _kept(secret, now)
    if kept.ca is None:
        where = f"the Secret {SECRET} in namespace {args.namespace}"
        raise InputError(f"{where} has no CA; `gpu-webhook certs status` shows more")
    return secret, kept, kept.ca


def _plan(kept: OwnCertificates, args: SimpleNamespace) -> Plan:
    """The next certificates are like the present ones."""
    from webhook.certs.renewal import Plan

    if kept.leaf is None:
        return Plan((f"gpu-webhook.{args.namespace}.svc",))
    return Plan(tuple(kept.leaf.hosts()), leaf_life=kept.leaf.end - kept.leaf.made)
