"""`gpu-webhook watch` as users run it, and what a list made just now says."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import orjson

from tests.cluster.client import until
from tests.cluster.controlplane import ProgramDied
from tests.cluster.webhook import ROOT
from tests.log_lines import entries
from webhook.core.settings import Capacity, Settings
from webhook.inventory.kinds import kinds
from webhook.inventory.object_facts import key_of
from webhook.inventory.publish import Publisher, Snapshot, parse
from webhook.inventory.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cluster.client import Client
    from tests.cluster.controlplane import ControlPlane
    from webhook.capacity.nodes import Inventory

    Facts = dict[str, Any]

_START = 30.0
# What is listed just now knows nothing of yesterday, and not when it was asked.
PLAIN = "capacity: {rememberedHours: 0, joiningMinutes: 0}\n"


class WatcherProcess:
    """Starts with the `with` block, ends with it."""

    def __init__(self, folder: Path, kubeconfig: Path, arguments: Sequence[str] = ()) -> None:
        self.snapshot = folder / "snapshot"
        self.log_file = folder / "watch.log"
        self.reader = Snapshot(self.snapshot)
        settings = folder / "watch.yaml"
        settings.write_text(PLAIN)
        self._command = [
            str(Path(sys.executable).parent / "gpu-webhook"),
            "watch",
            f"--snapshot={self.snapshot}",
            f"--kubeconfig={kubeconfig}",
            *(arguments or [f"--config={settings}"]),
        ]

    def __enter__(self) -> Self:
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self) -> tuple[int, float]:
        """End it as Kubernetes does; give the exit code, and after how many seconds."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10), time.monotonic() - started

    def lines(self) -> list[dict[str, Any]]:
        return entries(self.log_file)

    def warned(self) -> list[dict[str, Any]]:
        """The lines that say what is wrong."""
        return [line for line in self.lines() if line["level"] != "info"]

    def check(self) -> None:
        if self.process.poll() is not None:
            raise ProgramDied(f"gpu-webhook watch ended:\n{self.log_file.read_text()[-3000:]}")

    def status(self) -> dict[str, Any]:
        return dict(self.reader.status().content)

    def kind(self, name: str) -> dict[str, Any]:
        """What the status says of one kind, once it is there."""
        told: dict[str, Any] = until(lambda: self.status().get("kinds"), "a status")[name]
        return told

    def facts(self) -> Facts | None:
        """All that the published snapshot says; nothing if there is none."""
        self.check()
        try:
            return facts(parse((self.snapshot / "inventory").read_bytes()).inventory)
        except FileNotFoundError:
            return None

    def until_equal(self, client: Client, folder: Path, seconds: float = 60.0) -> float:
        """Wait until the snapshot says what a list made just now says; give the seconds it took."""
        started = time.monotonic()
        expected = listed(client, folder)
        try:
            until(lambda: self.facts() == expected, "the inventory to be right", seconds)
        except TimeoutError:
            raise AssertionError(_difference(self.facts(), expected, self.status())) from None
        return time.monotonic() - started


def facts(inventory: Inventory) -> Facts:
    """What can be compared of an inventory."""
    data = inventory.index.as_data()
    return {
        **data,
        "labels": {key: orjson.loads(text) for key, text in data["labels"].items()},
        "names": orjson.loads(data["names"]),
        "namespaces": inventory.namespaces,
        "runtime classes": inventory.runtime_classes,
        "served by DRA": inventory.served_by_dra,
    }


def listed(client: Client, folder: Path, settings: Settings | None = None) -> Facts:
    """What lists made just now say, without a watch."""
    plain = Capacity(remembered_hours=0, joining_minutes=0)
    settings = settings or Settings(capacity=plain)
    store = Store(settings.capacity)
    for kind in kinds(store, settings, None):
        answer = client.request("GET", kind.paths[0], query=kind.query)
        for item in answer.body["items"] if answer.ok else ():
            kind.kept.put(key_of(item), kind.project(item), 0.0)
    fresh = folder / "fresh"
    fresh.mkdir(exist_ok=True)
    Publisher(fresh, settings).publish(store, 0.0)
    return facts(parse((fresh / "inventory").read_bytes()).inventory)


def kubeconfig_of(cluster: ControlPlane, port: int, folder: Path) -> Path:
    """The administrator's kubeconfig, for another port: that of a proxy."""
    config = orjson.loads(cluster.kubeconfig.read_bytes())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    path = folder / "proxy.kubeconfig"
    path.write_bytes(orjson.dumps(config))
    return path


def _difference(found: Facts | None, expected: Facts, status: dict[str, Any]) -> str:
    if found is None:
        return f"nothing was published; the watcher says {status}"
    parts = [f"{key}: {found[key]} is not {expected[key]}" for key in expected]
    wrong = [text for text, key in zip(parts, expected, strict=True) if found[key] != expected[key]]
    return "\n".join([*wrong, f"the watcher says {status}"])
