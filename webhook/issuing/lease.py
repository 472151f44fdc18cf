"""A Lease of the cluster: which of several processes may act now.

As in client-go, clocks are not compared: a holder that did not renew the Lease for `SECONDS` of our
own time has lost it. Only the resource version decides who gets it then.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from webhook.cluster import answers
from webhook.cluster.client import Refused, address
from webhook.kube.pod import Raw, as_map
from webhook.kube.times import stamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cluster.client import Client


SECONDS = 15
MARGIN = 5.0  # the holder stops so long before others may begin


class Lease:
    """One process's claim to it."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`identity` differs from that of every other process."""
        self._client = client
        self._folder = address(
            "apis", "coordination.k8s.io", "v1", "namespaces", namespace, "leases"
        )
        self._name = name
        self._identity = identity
        self._clock = clock
        self._seen: tuple[object, ...] = ()
        self._seen_at = 0.0
        self._until = 0.0

    @property
    def path(self) -> str:
        """Where it is."""
        return self._folder + address(self._name)

    def is_held(self) -> bool:
        """Whether this process may still act."""
        return self._clock() < self._until

    def hold(self) -> bool:
        """Renew it, or take it if nobody has it; whether it is held. A Fault if that is unknown."""
        started = self._clock()
        lease = answers.of_one(self._client, self.path) or {"metadata": {"name": self._name}}
        spec = as_map(lease.get("spec"))
        mine = spec.get("holderIdentity") == self._identity
        if not mine and not self._is_free(spec):
            self._until = 0.0
            return False
        self._until = started + SECONDS - MARGIN if self._write(lease, spec, mine=mine) else 0.0
        return self.is_held()

    def release(self) -> None:
        """Let another process have it at once. May raise Fault."""
        if self.is_held():
            self._until = 0.0
            lease = answers.read(self._client.get(self.path, {}))
            if as_map(lease.get("spec")).get("holderIdentity") == self._identity:
                lease["spec"]["holderIdentity"] = ""
                self._client.replace(self.path, lease)

    def _is_free(self, spec: Raw) -> bool:
        if not spec.get("holderIdentity"):
            return True
        seen = spec.get("holderIdentity"), spec.get("renewTime")
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._clock()
        return self._clock() - self._seen_at > SECONDS

    def _write(self, lease: Raw, spec: Raw, *, mine: bool) -> bool:
        """False if another process wrote it in between."""
        now = stamp(time.time(), "microseconds")
        taken = {} if mine else {"acquireTime": now}
        count = int(spec.get("leaseTransitions") or 0) + (not mine)
        lease["spec"] = {
            **spec,
            **taken,
            "holderIdentity": self._identity,
            "leaseDurationSeconds": SECONDS,
            "leaseTransitions": count,
            "renewTime": now,
        }
        try:
            if "resourceVersion" in as_map(lease.get("metadata")):
                self._client.replace(self.path, lease)
            else:
                self._client.create(self._folder, lease)
        except Refused as refused:
            if refused.status != HTTPStatus.CONFLICT:
                raise
            return False
        return True
