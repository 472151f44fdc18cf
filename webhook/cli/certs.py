"""`gpu-webhook certs`: shows and renews the certificates that the watchers keep in a cluster."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from webhook.certs.authority import Identity
    from webhook.certs.kept import Kept
    from webhook.certs.steps import Bundles, Plan
    from webhook.cluster.client import Client
    from webhook.issuing.objects import Objects, Secret

OK, WARNING, FAILED = 0, 2, 3  # exit codes
_STATES = {OK: "ok", WARNING: "warning", FAILED: "failed"}
_DAY = 86_400.0
_LATE = 0.8  # of its life: it should have been renewed
ROTATION_SECONDS = 60.0  # a leader needs two passes
_PAUSE = 0.5


class Row(NamedTuple):
    """A line of the table."""

    state: int
    what: str
    until: str
    text: str


def status(args: SimpleNamespace) -> int:
    """Print the table; the exit code is that of the worst line."""
    from webhook.issuing.objects import bundles_of

    api, objects = _connect(args)
    with _answered():
        secret = objects.secret()
        found, faults = objects.configurations()
    now = api.now()
    kept = _kept(secret, now)
    rows = [*(_pairs(kept, now) if secret.raw else _no_secret()), *_trust(kept, bundles_of(found))]
    rows += [Row(FAILED, name, "", f"cannot be read: {fault}") for name, fault in faults.items()]
    _print(rows)
    return max(row.state for row in rows)


def issue(args: SimpleNamespace) -> int:
    """Sign a new server certificate; servers have it within seconds."""
    api, objects = _connect(args)
    with _answered():
        secret, kept, ca = _with_ca(objects, api.now(), args)
        leaf = _plan(kept, args).leaf(ca, api.now())
        objects.store(secret, replace(kept, leaf=leaf).data())
    print(f"Issued, valid until {_date(leaf.end)}. Servers show it within 20 seconds.")  # noqa: T201
    return OK


def rotate(args: SimpleNamespace) -> int:
    """Store a new CA, and wait until a leader has brought it into service."""
    api, objects = _connect(args)
    with _answered():
        secret, kept, _ = _with_ca(objects, api.now(), args)
        new = kept.next or _plan(kept, args).authority(api.now())
        objects.store(secret, replace(kept, next=new).data())
        print("A new CA is stored. It signs as soon as every caBundle has it.", flush=True)  # noqa: T201
        end = time.monotonic() + ROTATION_SECONDS
        while time.monotonic() < end:
            ca = _kept(objects.secret(), api.now()).ca
            if ca is not None and ca.certificate == new.certificate:
                print("It signs now. The old CA stays in the caBundles until its leaves end.")  # noqa: T201
                return OK
            time.sleep(_PAUSE)
    raise InputError(
        f"no watcher brought the new CA into service within {ROTATION_SECONDS:.0f} s, and the old "
        "one goes on; `gpu-webhook certs status` and the log of `watch` show why"
    )


def _connect(args: SimpleNamespace) -> tuple[Client, Objects]:
    from webhook.cluster import client
    from webhook.issuing.objects import SECRET, Objects

    api = client.Client(lambda: client.configuration(args.kubeconfig, args.context))
    return api, Objects(api, args.namespace, SECRET, args.configuration)


@contextmanager
def _answered() -> Iterator[None]:
    """Makes an error message of a call that failed."""
    from webhook.cluster.client import Fault, Refused, no_answer

    try:
        yield
    except Refused as refused:
        raise InputError(f"the API server answered {refused}") from refused
    except Fault as fault:
        raise no_answer(fault) from fault


def _kept(secret: Secret, now: float) -> Kept:
    from webhook.certs.kept import Kept

    return Kept.read(secret.data, now)


def _with_ca(objects: Objects, now: float, args: SimpleNamespace) -> tuple[Secret, Kept, Identity]:
    """The Secret, what it holds, and its CA. Raises InputError if it has none."""
    from webhook.issuing.objects import SECRET

    secret = objects.secret()
    kept = _kept(secret, now)
    if kept.ca is None:
        where = f"the Secret {SECRET} in namespace {args.namespace}"
        raise InputError(f"{where} has no CA; `gpu-webhook certs status` shows more")
    return secret, kept, kept.ca


def _plan(kept: Kept, args: SimpleNamespace) -> Plan:
    """The next certificates are like the present ones."""
    from webhook.certs.steps import Plan

    if kept.leaf is None:
        return Plan((f"gpu-webhook.{args.namespace}.svc",))
    return Plan(tuple(kept.leaf.hosts()), leaf_life=kept.leaf.end - kept.leaf.made)


def _no_secret() -> Iterator[Row]:
    from webhook.issuing.objects import SECRET

    text = f"{SECRET} is not there: no watcher keeps certificates (manifests/secret, cert-manager "
    yield Row(WARNING, "Secret", "", text + "and openshift need none)")


def _pairs(kept: Kept, now: float) -> Iterator[Row]:
    from webhook.certs.authority import common_name, is_signed_by

    yield _pair("CA", kept.ca, now)
    if kept.next is not None:
        yield Row(WARNING, "next CA", _until(kept.next.end, now), "waits for all caBundles")
    for old in kept.old:
        text = f"{common_name(old)}: replaced, trusted until its leaves have ended"
        yield Row(OK, "old CA", _until(kept.until, now), text)
    leaf = _pair("server", kept.leaf, now)
    signers = [pair.certificate for pair in (kept.ca,) if pair is not None]
    if kept.leaf is not None and not any(
        is_signed_by(kept.leaf.certificate, ca) for ca in (*signers, *kept.old)
    ):
        leaf = leaf._replace(state=FAILED, text="no CA of the Secret signed it")
    yield leaf


def _pair(what: str, pair: Identity | None, now: float) -> Row:
    from webhook.certs.authority import common_name

    if pair is None:
        return Row(FAILED, what, "", "missing, expired or damaged; see the log of `watch`")
    is_late = now - pair.made > _LATE * (pair.end - pair.made)
    names = ", ".join(pair.hosts()) or common_name(pair.certificate)
    text = f"{names}: not renewed; see the log of `watch`" if is_late else names
    return Row(WARNING if is_late else OK, what, _until(pair.end, now), text)


def _trust(kept: Kept, bundles: Bundles) -> Iterator[Row]:
    from webhook.certs.authority import blocks_in
    from webhook.certs.steps import distrusting

    if not bundles:
        yield Row(FAILED, "configurations", "", "none is there: no API server calls the webhook")
    against = distrusting(kept.leaf.certificate, bundles) if kept.leaf is not None else []
    authorities = {pair.text for pair in (kept.ca, kept.next) if pair is not None}
    for name, texts in bundles.items():
        held = [{*blocks_in(text)} for text in texts]
        if name in against:
            yield Row(FAILED, name, "", "its caBundle does not trust the server")
        elif not all(held):
            yield Row(FAILED, name, "", "its caBundle is empty: the API server cannot call")
        elif kept.leaf is None:
            yield Row(WARNING, name, "", "not compared: there is no server certificate")
        elif not all(authorities <= each for each in held):
            yield Row(WARNING, name, "", "its caBundle lacks a CA of the Secret")
        else:
            yield Row(OK, name, "", "trusts the server")


def _until(end: float, now: float) -> str:
    return f"{_date(end)} ({(end - now) / _DAY:.0f} d)"


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _print(rows: list[Row]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from webhook.cli.report_console import for_tables

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("what", "until", "state", ""):
        table.add_column(title, overflow="fold")
    colours = {OK: "green", WARNING: "yellow", FAILED: "red"}
    for row in rows:
        state = Text(_STATES[row.state], colours[row.state])
        table.add_row(row.what, row.until, state, Text(row.text))
    for_tables().print(table)
