"""From a certificate of one's own to manifests/base, as docs/install.md says it."""

from __future__ import annotations

import base64
import copy
import signal
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.replicas import Replicas
from tests.cluster.test_certificates_self import Calls, is_repaired
from tests.cluster.webhook import WebhookServer
from webhook.certs.authority import blocks_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

_CHUNK = 1 << 16


class Service:
    """Passes each new connection to the server that `port` names, as kube-proxy does."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.own_port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with self._listener:
            self._listener.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        with source, suppress(OSError):
            while chunk := source.recv(_CHUNK):
                target.sendall(chunk)
            target.shutdown(socket.SHUT_RDWR)  # ends the thread that closes it


class Change:
    """The server before with its own certificate, and the replica that comes after it."""

    def __init__(self, cluster: ControlPlane, folder: Path, old: WebhookServer) -> None:
        self.cluster, self.old = cluster, old
        self.service = Service(old.port)
        self.replicas = Replicas(cluster, folder, count=1)
        (self.new,) = self.replicas.each
        for webhook in (w for each in self.replicas.configurations for w in each["webhooks"]):
            url = webhook["clientConfig"]["url"]
            port = f":{self.service.own_port}/"
            webhook["clientConfig"]["url"] = url.replace(f":{self.new.port}/", port)
        self.own = cluster.authority.bundle.read_bytes()
        self.without = self.replicas.configurations
        self.patched = self._patched()

    def apply(self, configurations: list[Json], *words: str) -> None:
        self.cluster.kubectl("apply", *words, "-f", "-", stdin=yaml.safe_dump_all(configurations))

    def roll_out(self) -> None:
        """The new pod gets all new connections when it is ready; the old one ends."""
        self.new.__enter__()
        until(lambda: "listening" in " ".join(self.new.lines("serve")), "the new server", 40)
        self.service.port = self.new.port
        self.old._process.send_signal(signal.SIGTERM)
        until(lambda: self.old._process.poll() is not None, "the end of the old server", 60)

    def bundles(self) -> list[list[bytes]]:
        return [blocks_in(base64.b64decode(each)) for each in self.replicas.bundles()]

    def _patched(self) -> list[Json]:
        """As with the patch of a kustomization of one's own."""
        made = copy.deepcopy(self.without)
        for webhook in (w for each in made for w in each["webhooks"]):
            webhook["clientConfig"]["caBundle"] = base64.b64encode(self.own).decode()
        return made


@pytest.fixture
def change(cluster: ControlPlane, tmp_path: Path) -> Iterator[Change]:
    with WebhookServer(tmp_path, cluster.authority, ["--workers=1"]) as old:
        made = Change(cluster, tmp_path, old)
        yield made
        made.service.close()
        made.replicas.__exit__(None, None, None)


@pytest.mark.parametrize("before", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_no_call_fails_if_the_patch_stays_until_the_rollout_is_done(
    before: tuple[str, ...], cluster: ControlPlane, change: Change
) -> None:
    change.apply(change.patched, *before)
    until(lambda: is_repaired(cluster), "the answer of the old server", 20)
    with Calls(cluster) as calls:
        change.apply(change.patched, *before)
        change.roll_out()
        change.apply(change.without, "--server-side", "--force-conflicts")
        change.apply(change.without)
        whole = change.bundles()
        change.apply(change.without, *before)
        assert calls.failed() == []
    assert calls.made > 10
    assert calls.unrepaired == 0
    assert change.bundles() == whole
    for bundle in whole:
        assert len(bundle) == 2
        assert bundle[0] in change.own


def test_a_patch_that_stays_after_the_rollout_is_reported(
    cluster: ControlPlane, change: Change
) -> None:
    """Argo CD with self-heal and Flux apply it again and again."""
    change.apply(change.patched)
    change.roll_out()

    def is_filled() -> bool:
        return all(len(bundle) == 2 for bundle in change.bundles())

    for _ in range(2):
        until(is_filled, "our CA in the bundles", 20)
        change.apply(change.patched)
    until(lambda: "again and again" in " ".join(change.new.lines()), "the line", 20)
    assert "mutating/gpu-webhook: something else writes" in " ".join(change.new.lines())
    until(lambda: is_repaired(cluster), "a repaired pod", 20)
