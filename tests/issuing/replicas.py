"""Replicas of the webhook that share an API server in memory, and clocks that a test moves."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

from tests.issuing.fake_api import NAMESPACE, FakeApi
from webhook.certs.renewal import Plan, distrusting
from webhook.issuing import folder
from webhook.issuing.keeper import PASS_SECONDS, Clocks, Keeper
from webhook.issuing.lease import Lease
from webhook.issuing.objects import CONFIGURATIONS, SECRET, Objects
from webhook.kube.times import DAY

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.certs.authority import Identity
    from webhook.cluster.client import Client
    from webhook.telemetry.logs import Log

HOST = "gpu-webhook.gpu-webhook.svc"
START = 1_800_000_000.0


class Lines(list[tuple[str, str]]):
    """A log."""

    def write(self, level: str, message: str, **fields: object) -> None:
        self.append((level, " ".join([message, *map(str, fields.values())])))

    def level(self, level: str) -> list[str]:
        return [message for each, message in self if each == level]


class Time:
    """Two clocks: the wall's may be set."""

    def __init__(self) -> None:
        self.steady = 1000.0
        self.set_by = START - self.steady

    def wall(self) -> float:
        return self.steady + self.set_by

    def clocks(self) -> Clocks:
        return Clocks(self.wall, lambda: self.steady)


class Replica:
    """One pod: its folder stays when its watcher ends and starts again."""

    numbers = itertools.count()

    def __init__(
        self, api: FakeApi, time: Time, target: Path, plan: Plan | None = None, **more: Any
    ) -> None:
        self.api, self.time, self.target = api, time, target
        self.plan = plan or Plan((HOST,))
        self._configurations = more.get("configurations", CONFIGURATIONS)
        self.log = Lines()
        self.start()

    def start(self) -> None:
        """The watcher starts, with nothing in its memory."""
        client = cast("Client", self.api)
        clocks = self.time.clocks()
        identity = f"replica-{next(self.numbers)}"
        self.keeper = Keeper(
            Objects(client, NAMESPACE, SECRET, self._configurations),
            Lease(client, NAMESPACE, SECRET, identity, clocks.steady),
            self.plan,
            self.target,
            cast("Log", self.log),
            clocks,
        )

    def tick(self, times: int = 1) -> None:
        """So many passes of this one alone."""
        together(self, times=times)

    def stop(self) -> None:
        """As SIGTERM does."""
        self.keeper._lease.release()

    @property
    def served(self) -> Identity | None:
        return folder.read(self.target)

    def is_trusted(self) -> bool:
        """Whether API servers accept what it serves: signed by a CA in each bundle, and in time."""
        served = self.served
        assert served is not None
        found, _ = self.keeper._objects.configurations()
        bundles = {name: each.bundles for name, each in found.items()}
        filled = all(text for texts in bundles.values() for text in texts)
        return filled and not distrusting(served, bundles) and served.is_valid(self.time.wall())


def together(*replicas: Replica, times: int = 1) -> None:
    """So many passes of each of them, while the time goes on."""
    for _ in range(times):
        pauses = [replica.keeper.pass_once() for replica in replicas]
        replicas[0].time.steady += max(pauses)


def passes(seconds: float) -> int:
    return int(seconds / PASS_SECONDS) + 1


__all__ = ["DAY", "HOST", "START", "Lines", "Replica", "Time", "passes", "together"]
