"""Keeps the webhook's own certificates: one pass every few seconds, beside the watches.

In each replica a pass reads the Secret and the webhook configurations, and gives the leaf to the
server beside it as soon as the bundles trust it. In the replica that holds the Lease, it also takes
the steps that certs/renewal.py finds. A fault of one object, such as a missing right, stops neither
the others nor the watcher; the log has it once.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from webhook.certs.own_certificates import OwnCertificates
from webhook.certs.renewal import Fill, Plan, Situation, distrusting, next_step
from webhook.cluster.client import Fault, Refused
from webhook.issuing import folder
from webhook.issuing.objects import bundles_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webhook.certs.authority import Identity
    from webhook.certs.renewal import Bundles
    from webhook.issuing.lease import Lease
    from webhook.issuing.objects import Configuration, Objects, Secret
    from webhook.telemetry.logs import Log

PASS_SECONDS = 5.0  # an emptied caBundle is filled again within two passes
FIRST_SECONDS = 1.0  # until the server has a pair
# A new leaf waits until the bundles have trusted it for so long: all API servers have read them.
SETTLE_SECONDS = 10.0
UNTRUSTED_SECONDS = 30.0  # the leader has repaired the bundles by then, or we are not ready
MOST_STEPS = 20  # in one pass
# A caBundle that loses our CA twice within so long has another writer. Flux comes each 10 minutes.
LOSSES_SECONDS = 900.0
_STRAY = (
    "it is trusted until its certificates end; if its key leaked, find what wrote it, and run "
    "`gpu-webhook certs rotate --distrust`"
)
_MEANWHILE = {HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY}  # the second: of a JSON Patch


@dataclass(frozen=True, slots=True)
class Clocks:
    """The time of the day of the API server, which checks dates; and a clock that nobody sets."""

    wall: Callable[[], float]
    steady: Callable[[], float] = time.monotonic


class _Since:
    """For how long something has been the same."""

    def __init__(self) -> None:
        self._what: object = self
        self._start = 0.0

    def seconds(self, what: object, now: float) -> float:
        if what != self._what:
            self._what, self._start = what, now
        return now - self._start


class _Losses:
    """Which configurations trusted the server after a pass and did not before the next one."""

    def __init__(self) -> None:
        self._trusting: set[str] = set()
        self._last: dict[str, float] = {}
        self._again: dict[str, float] = {}

    def begin(self, bundles: Bundles, served: Identity | None, now: float) -> None:
        for name in (self._trusting & bundles.keys()) - _trusting(bundles, served):
            if now - self._last.get(name, -LOSSES_SECONDS) < LOSSES_SECONDS:
                self._again[name] = now
            self._last[name] = now
        self._again = {n: at for n, at in self._again.items() if now - at < LOSSES_SECONDS}

    def end(self, bundles: Bundles, served: Identity | None) -> None:
        self._trusting = _trusting(bundles, served)

    def again(self) -> list[str]:
        """Those that something else writes again and again."""
        return sorted(self._again)


def _trusting(bundles: Bundles, served: Identity | None) -> set[str]:
    if served is None:
        return set()
    full = {name for name, texts in bundles.items() if all(map(bytes.strip, texts))}
    return full - {*distrusting(served, bundles)}


class Keeper:
    """The passes of one process."""

    def __init__(  # noqa: PLR0913, PLR0917  # what a pass connects
        self, objects: Objects, lease: Lease, plan: Plan, target: Path, log: Log, clocks: Clocks
    ) -> None:
        """`target`: the folder of the server's pair."""
        self._objects = objects
        self._lease = lease
        self._plan = plan
        self._target = target
        self._log = log
        self._clocks = clocks
        self._before = OwnCertificates()  # what the Secret held last
        self._served = folder.read(target)
        self._leaf_since, self._trusted_since, self._fault_since = _Since(), _Since(), _Since()
        self._faults: dict[str, str] = {}
        self._barred: set[str] = set()  # configurations that this pass could not read or write
        self._late: set[str] = set()  # what another writer seems to have written first, this pass
        self._late_before: set[str] = set()  # and in the one before
        self._losses = _Losses()
        self._said = ""
        self._led = False
        self.status: dict[str, Any] = {}  # for the status of the watcher

    def start(self, stopped: threading.Event) -> threading.Thread:
        """Pass after pass in a thread, until `stopped` is set; then release the Lease."""
        thread = threading.Thread(
            target=self._run, args=(stopped,), name="certificates", daemon=True
        )
        thread.start()
        return thread

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self.pass_once()):
            pass
        try:
            self._lease.release()
        except Fault as fault:
            self._log.write("info", "the Lease was not released", reason=str(fault))

    def pass_once(self) -> float:
        """One pass; returns the seconds until the next."""
        self._faults, self._barred = {}, set()
        self._late_before, self._late = self._late, set()
        try:
            self._pass()
        except Fault as fault:
            self._failed("secret", fault)
        except Exception as error:  # noqa: BLE001  # a bug here must not end the renewal
            self._faults["pass"] = f"{type(error).__name__}: {error}"
        self._say()
        return PASS_SECONDS if self._served is not None else FIRST_SECONDS

    def _pass(self) -> None:
        found, unread = self._objects.configurations()
        self._barred.update(unread)
        for name, fault in unread.items():
            self._failed(name, fault)
        self._losses.begin(bundles_of(found), self._served, self._clocks.steady())
        leads = self._leads()
        secret = self._objects.secret()
        self._before = self._known(secret)
        if leads:
            try:
                self._lead(secret, found)
            except Fault as fault:
                self._failed("secret", fault)
        bundles = bundles_of(found)
        self._serve(self._before.leaf, bundles)
        self._losses.end(bundles, self._served)
        self._look(bundles)

    def _leads(self) -> bool:
        try:
            leads = self._lease.hold()
        except Fault as fault:
            self._failed("lease", fault)
            leads = self._lease.is_held()
        if leads is not self._led:
            self._led = leads
            text = "this replica keeps the certificates" if leads else "another replica keeps them"
            self._log.write("info", f"certificates: {text}")
        return leads

    def _known(self, secret: Secret) -> OwnCertificates:
        """What the Secret holds; if its CA is lost, what it held before."""
        now = self._clocks.wall()
        kept, before = OwnCertificates.read(secret.data, now), self._before.at(now)
        return before if kept.ca is None and before.ca is not None else kept

    def _lead(self, secret: Secret, found: dict[str, Configuration]) -> None:
        """Take one step after the other until none is left."""
        for _ in range(MOST_STEPS):
            self._before = kept = self._known(secret)
            now, steady = self._clocks.wall(), self._clocks.steady()
            bundles = bundles_of(found)
            is_stored = kept.data() == {**secret.data}
            age = self._leaf_since.seconds(kept.leaf, steady)
            step = next_step(
                Situation(kept, is_stored, bundles, {*self._faults, *self._barred}, now, age),
                self._plan,
            )
            if step is None or not self._lease.is_held():
                return
            if isinstance(step, Fill):
                self._fill(step, found)
            else:
                secret = self._objects.store(secret, step.kept.data())
                if {*step.kept.old} <= {*kept.authorities()}:
                    self._log.write("info", f"certificates: {step.why}")
                else:
                    self._log.write("warning", f"certificates: {step.why}", reason=_STRAY)

    def _fill(self, step: Fill, found: dict[str, Configuration]) -> None:
        """Fill the bundles of one configuration, and read them back."""
        name = step.configuration
        try:
            self._objects.fill(name, found[name], step.bundles)
            back = self._objects.configuration(name)
        except Fault as fault:
            self._barred.add(name)
            self._failed(name, fault)
            return
        if name not in self._losses.again():
            self._log.write("info", f"certificates: the caBundle of {name} was filled")
        if back is None:
            del found[name]
            return
        found[name] = back
        if back.bundles != step.bundles:
            self._barred.add(name)
            self._faults[name] = f"{name}: something else writes its caBundle"

    def _serve(self, leaf: Identity | None, bundles: dict[str, tuple[bytes, ...]]) -> None:
        """Give the leaf to the server, if that is no worse than the one it has."""
        if leaf is None or leaf == self._served:
            return
        now = self._clocks.steady()
        is_trusted = not distrusting(leaf, bundles)
        settled = self._trusted_since.seconds((leaf, is_trusted), now) >= SETTLE_SECONDS
        if self._is_good(bundles) and not (is_trusted and settled):
            return
        try:
            folder.write(self._target, leaf)
        except OSError as error:
            self._faults["folder"] = f"{self._target} cannot be written: {error.strerror}"
        else:
            self._served = leaf

    def _is_good(self, bundles: dict[str, tuple[bytes, ...]]) -> bool:
        """Whether the server has a leaf that is trusted, and valid for as long as another waits."""
        served = self._served
        return (
            served is not None
            and served.is_valid(self._clocks.wall() + SETTLE_SECONDS)
            and not distrusting(served, bundles)
        )

    def _look(self, bundles: dict[str, tuple[bytes, ...]]) -> None:
        """Whether the bundles trust the leaf in service. Empty ones do not count."""
        for name in self._losses.again():
            self._faults[name] = (
                f"{name}: something else writes its caBundle again and again: a manifest that has "
                "the field, or cert-manager (docs/install.md#change-the-certificates)"
            )
        now = self._clocks.steady()
        if self._served is None:
            if self._fault_since.seconds(None, now) >= UNTRUSTED_SECONDS:
                self._faults["leaf"] = "the server has no certificate"
            return
        against = distrusting(self._served, bundles)
        for name in against:
            self._faults.setdefault(name, f"{name} does not trust the certificate in service")
        some = {name for name, texts in bundles.items() if any(map(bytes.strip, texts))}
        lost = bool(some) and some <= {*against}
        since = self._fault_since.seconds(lost, now)
        self.status["untrusted"] = (
            "no webhook configuration trusts its certificate: see the log of `watch`"
            if lost and since >= UNTRUSTED_SECONDS
            else ""
        )

    def _failed(self, what: str, fault: Fault) -> None:
        if isinstance(fault, Refused) and fault.status in _MEANWHILE:
            self._late.add(what)
            # Again in the next pass, it is a policy (422, too) or an immutable Secret.
            if what not in self._late_before:
                return
        is_right = isinstance(fault, Refused) and fault.status == HTTPStatus.FORBIDDEN
        self._faults[what] = f"RBAC: {fault}" if is_right else f"{what}: {fault}"

    def _say(self) -> None:
        """One line when the faults change."""
        said = "; ".join(self._faults.values())
        self.status |= {"leads": self._lease.is_held(), "fault": said}
        if said == self._said:
            return
        self._said = said
        if said:
            self._log.write("warning", "the webhook's certificates need attention", reason=said)
        else:
            self._log.write("info", "the webhook's certificates are in order")
