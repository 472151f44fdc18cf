"""From a certificate of one's own to manifests/base, and back, as docs/install.md says it."""

from __future__ import annotations

import base64
import copy
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import path_of, until
from tests.cluster.replicas import Replicas
from tests.cluster.test_certificates_self import Calls, is_repaired
from tests.cluster.webhook import KINDS, WebhookServer
from webhook.certs.authority import blocks_in
from webhook.issuing.keeper import PASS_SECONDS

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
        self.patched = self.with_bundle(self.own)

    def apply(self, configurations: list[Json], *words: str) -> None:
        self.cluster.kubectl("apply", *words, "-f", "-", stdin=yaml.safe_dump_all(configurations))

    def begin(self) -> None:
        """The replica with certificates of its own gets all new connections."""
        self.new.__enter__()
        until(lambda: "listening" in " ".join(self.new.lines("serve")), "the new server", 40)
        self.service.port = self.new.port

    def roll_out(self) -> None:
        """The new pod gets all new connections when it is ready; the old one ends."""
        self.begin()
        self.old._process.send_signal(signal.SIGTERM)
        until(lambda: self.old._process.poll() is not None, "the end of the old server", 60)

    def begin_with_base(self, *how: str) -> bytes:
        """manifests/base is installed. Returns its CA and the given one."""
        self.apply(self.without, *how)
        self.begin()
        until(lambda: all(self.bundles()), "the CA of the watcher", 40)
        until(lambda: is_repaired(self.cluster), "the answer of the replica", 20)
        return b"".join(self.bundles()[0]) + self.own

    def bundles(self) -> list[tuple[bytes, ...]]:
        return [blocks_in(base64.b64decode(each)) for each in self.replicas.bundles()]

    def roll_back(self) -> None:
        """The same the other way round."""
        self.service.port = self.old.port
        self.new.server.terminate()  # as a kubelet does: it answers what is in progress
        self.new.server.wait(30)
        self.new.__exit__()

    def with_bundle(self, bundle: bytes) -> list[Json]:
        """As with the patch of a kustomization of one's own."""
        made = copy.deepcopy(self.without)
        for webhook in (w for each in made for w in each["webhooks"]):
            webhook["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
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


WAYS = {"client-side": (), "server-side": ("--server-side", "--force-conflicts")}


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_no_call_fails_if_both_cas_are_trusted_until_the_rollout_is_done(
    how: tuple[str, ...], cluster: ControlPlane, change: Change
) -> None:
    """From manifests/base to manifests/secret."""
    both = change.begin_with_base(*how)
    with Calls(cluster) as calls:
        change.apply(change.with_bundle(both), *how)
        time.sleep(PASS_SECONDS)
        assert {b"".join(each) for each in change.bundles()} == {both}
        change.roll_back()
        change.apply(change.patched, *how)
        time.sleep(PASS_SECONDS)
        assert calls.failed() == []
    assert calls.made > 10
    assert calls.unrepaired == 0
    assert {b"".join(each) for each in change.bundles()} == {change.own}


class Injector:
    """As OpenShift's: its CA is all that a caBundle with its annotation has.

    cert-manager's leaves the CAs of before: tests/node/test_cert_manager.py.
    """

    name = "service.beta.openshift.io/inject-cabundle"

    def __init__(self, change: Change) -> None:
        self._change, self._stopped = change, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        client = self._change.cluster.client
        wanted = base64.b64encode(self._change.own).decode()
        while not self._stopped.wait(0.2):
            for kind in KINDS:
                found = client.get(kind, "gpu-webhook")
                clients = [each["clientConfig"] for each in found["webhooks"]]
                if self.name not in found["metadata"].get("annotations", {}) or all(
                    each.get("caBundle") == wanted for each in clients
                ):
                    continue
                for each in clients:
                    each["caBundle"] = wanted
                client.request("PUT", path_of(kind, name="gpu-webhook"), found)


def test_no_call_fails_if_an_injector_takes_both_cas_over(
    cluster: ControlPlane, change: Change
) -> None:
    """From manifests/base to manifests/openshift."""
    note = {"annotations": {Injector.name: "true"}}
    last = copy.deepcopy(change.without)
    for each in last:
        each["metadata"] |= note
    both = change.begin_with_base()
    with Calls(cluster) as calls, Injector(change):
        change.apply(change.with_bundle(both))
        change.roll_back()
        names = [f"{each['kind']}/gpu-webhook".lower() for each in change.without]
        cluster.kubectl("annotate", *names, f"{Injector.name}=true")
        until(lambda: change.bundles() == [(change.own,)] * 3, "the CA of the injector", 20)
        change.apply(last, "--server-side", "--force-conflicts")
        assert change.bundles() == [(change.own,)] * 3
        change.apply(last, "--server-side")
        assert calls.failed() == []
    assert calls.made > 10
    assert calls.unrepaired == 0


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
