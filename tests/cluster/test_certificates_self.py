"""Certificates of our own: from nothing to a repaired pod, and through every rotation."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Self

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.pods import NVIDIA, alpha, limits_of, named, pod
from tests.cluster.replicas import NAMESPACE, PROGRAM, Replicas
from tests.cluster.webhook import KINDS, failed_open

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane

# `make nightly` makes them 600 and 100.
SECONDS = float(os.environ.get("ROTATION_SECONDS", "90"))
RATE = float(os.environ.get("ROTATION_RATE", "12"))  # admissions a second, of all threads
THREADS = 2 + int(RATE / 12)
# The first, one of the new CA, and one after two thirds of a life; then one in less than a minute.
LEAVES = 3 + int((SECONDS - 90) / 60)


def is_repaired(cluster: ControlPlane) -> bool:
    made = cluster.client.create(named(pod(alpha(1)), "probe"), "default", dry_run=True)
    return limits_of(made.body) == [{NVIDIA: "1"}]


def both_answer(cluster: ControlPlane) -> bool:
    before = failed_open(cluster)
    return is_repaired(cluster) and failed_open(cluster) == before


def certs(cluster: ControlPlane, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "certs", *words, f"--kubeconfig={cluster.kubeconfig}"],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        env={"COLUMNS": "160", "PATH": ""},
    )


@pytest.fixture(scope="module")
def replicas(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    folder = tmp_path_factory.mktemp("replicas")
    with Replicas(cluster, folder, ["--leaf-minutes=1"]) as running:
        yield running


class Calls:
    """Admissions all the time, from several threads; each must be answered by both replicas."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._before = failed_open(cluster)
        self.made = 0
        self.unrepaired = 0
        self._threads = [threading.Thread(target=self._call, daemon=True) for _ in range(THREADS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def failed(self) -> list[str]:
        return self._cluster.failed_calls()[self._before :]

    def _call(self) -> None:
        due = time.monotonic()
        while not self._stopped.wait(max(due - time.monotonic(), 0)):
            due = max(due + THREADS / RATE, time.monotonic() - 1)
            unrepaired = not is_repaired(self._cluster)
            with self._lock:
                self.unrepaired += unrepaired
                self.made += 1


def test_from_nothing_to_a_repaired_pod(cluster: ControlPlane, replicas: Replicas) -> None:
    until(lambda: is_repaired(cluster), "a repaired pod", 40)
    until(lambda: all(replicas.bundles()), "all bundles", 10)
    until(lambda: both_answer(cluster), "the answers of both", 20)
    for each in replicas.each:
        assert not [line for line in each.lines() if "need attention" in line]


def test_no_call_fails_while_leaves_and_cas_change_and_secrets_break(
    cluster: ControlPlane, replicas: Replicas
) -> None:
    until(lambda: both_answer(cluster), "the answers of both", 40)
    seen: set[int] = set()
    cas = {replicas.data()["ca.crt"]}

    def rest(seconds: float) -> None:
        wake = time.monotonic() + seconds
        while time.monotonic() < wake:
            served = [each.served() for each in replicas.each]
            seen.update(each.certificate.serial_number for each in served if each is not None)
            time.sleep(0.2)

    started = time.monotonic()
    with Calls(cluster) as calls:
        rest(5)
        cluster.client.demand("DELETE", replicas.secret)
        rest(10)
        data = replicas.data()
        replicas.put_secret(**{"tls.crt": data["tls.crt"][:400]})
        rest(10)
        replicas.put_secret(**{"tls.key": data["ca.key"]})
        rest(10)
        assert certs(cluster, "rotate").returncode == 0
        cas.add(replicas.data()["ca.crt"])
        rest(15)
        leader = replicas.leader()
        leader.kill_watcher()
        rest(2)
        cluster.client.demand("DELETE", replicas.secret)
        rest(25)
        leader.start_watcher()
        while len(seen) < LEAVES and time.monotonic() < started + 2 * SECONDS:
            rest(5)
        rest(started + SECONDS - time.monotonic())
        assert calls.failed() == []
    assert calls.unrepaired == 0
    assert calls.made > 0.3 * RATE * SECONDS, "less than a busy machine can do"
    print(f"\n{calls.made} admissions, {len(seen)} leaves, {len(cas)} CAs")  # noqa: T201
    assert len(cas) == 2
    assert len(seen) >= LEAVES


def test_an_emptied_bundle_is_filled_within_ten_seconds(
    cluster: ControlPlane, replicas: Replicas
) -> None:
    until(lambda: all(replicas.bundles()), "all bundles")
    for change in ("replace", "delete and apply"):
        if change == "replace":
            text = yaml.safe_dump_all(replicas.configurations)
            cluster.kubectl("replace", "-f", "-", stdin=text)
        else:
            text = yaml.safe_dump_all(replicas.configurations)
            cluster.kubectl("delete", "-f", "-", stdin=text)
            replicas.apply()
        assert not any(replicas.bundles())
        until(lambda: all(replicas.bundles()), "the bundles", 10)
        until(lambda: is_repaired(cluster), "a repaired pod", 5)
    for each in replicas.each:
        assert each.server.poll() is None
        assert not any("trusts its certificate" in line for line in each.lines("serve"))


def test_tools_that_apply_again_leave_the_bundles_alone(
    cluster: ControlPlane, replicas: Replicas
) -> None:
    """docs/gitops.md says so: the manifests leave the field out."""
    until(lambda: all(replicas.bundles()), "all bundles")
    whole = replicas.bundles()
    text = yaml.safe_dump_all(replicas.configurations)
    argo = ("apply", "--server-side", "--field-manager=argocd-controller", "-f", "-")
    for words in (
        ("apply", "-f", "-"),
        (*argo, "--force-conflicts"),  # of what kubectl applied before
        argo,
        ("apply", "--server-side", "--field-manager=kustomize-controller", "-f", "-"),
    ):
        cluster.kubectl(*words, stdin=text)
        assert replicas.bundles() == whole, words
    shown = cluster.try_kubectl(
        "diff", "--server-side", "--field-manager=flux", "-f", "-", stdin=text
    )
    assert (shown.returncode, shown.stdout) == (0, "")


def test_status_issue_and_rotate(cluster: ControlPlane, replicas: Replicas) -> None:
    until(lambda: all(replicas.bundles()), "all bundles")
    done = certs(cluster, "status")
    assert done.returncode == 0, done.stdout
    assert "mutating/gpu-webhook" in done.stdout
    assert "127.0.0.1" in done.stdout
    before = replicas.data()
    assert certs(cluster, "issue").returncode == 0
    after = replicas.data()
    assert after["ca.crt"] == before["ca.crt"]
    assert after["tls.crt"] != before["tls.crt"]
    new = base64.b64decode(after["tls.crt"])

    def all_serve_it() -> bool:
        return all(each.served() and each.served().text == new for each in replicas.each)  # type: ignore[union-attr]

    until(all_serve_it, "the new leaf in all replicas", 25)


def test_a_ca_that_leaked_is_trusted_by_no_configuration_any_more(
    cluster: ControlPlane, replicas: Replicas
) -> None:
    """Nor by that of a component: what only `manifests/base` has is not all."""
    until(lambda: all(replicas.bundles()), "all bundles")
    guard = replicas.component("guard")
    until(lambda: all(replicas.bundles(guard)), "the bundle of the guard", 10)
    until(lambda: both_answer(cluster), "the answers of both", 20)
    leaked = base64.b64decode(replicas.data()["ca.crt"]).strip()
    try:
        with Calls(cluster) as calls:
            done = certs(cluster, "rotate", "--distrust")
            assert done.returncode == 0, done.stderr
            trusting = [base64.b64decode(each) for each in replicas.bundles(guard)]
            time.sleep(6)
            assert calls.failed() == []
    finally:
        cluster.client.delete(KINDS[0], guard)
    assert len(trusting) == 4
    assert not any(leaked in each for each in trusting)
    assert "old-ca.crt" not in replicas.data()
    assert calls.unrepaired == 0
    assert "old CA" not in certs(cluster, "status").stdout


def test_status_names_what_is_wrong(cluster: ControlPlane, tmp_path: Path) -> None:
    done = certs(cluster, "status", "-n", "default")
    assert "no watcher keeps certificates" in done.stdout
    assert "trusts the server" not in done.stdout
    done = certs(cluster, "issue", "-n", "default")
    assert done.returncode == 1
    assert "has no CA" in done.stderr
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(cluster.kubeconfig.read_text().replace(f":{cluster.port}", ":1"))
    done = subprocess.run(
        [PROGRAM, "certs", "status", f"--kubeconfig={nowhere}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "no answer from the API server" in done.stderr


RIGHTS = {
    ("get", "secrets/gpu-webhook-certificates"): "yes",
    ("update", "secrets/gpu-webhook-certificates"): "yes",
    ("create", "secrets"): "yes",
    ("get", "secrets/another"): "no",
    ("list", "secrets"): "no",
    ("delete", "secrets/gpu-webhook-certificates"): "no",
    ("update", "leases/gpu-webhook-certificates"): "yes",
    ("update", "leases/another"): "no",
    ("patch", "mutatingwebhookconfigurations/gpu-webhook"): "yes",
    ("patch", "mutatingwebhookconfigurations/another"): "no",
    ("update", "mutatingwebhookconfigurations/gpu-webhook"): "no",
    ("create", "mutatingwebhookconfigurations"): "no",
    ("delete", "validatingwebhookconfigurations/gpu-webhook"): "no",
}


@pytest.mark.usefixtures("replicas")
@pytest.mark.parametrize(("asked", "answer"), RIGHTS.items(), ids=[" ".join(k) for k in RIGHTS])
def test_the_watcher_may_do_this_and_no_more(
    cluster: ControlPlane, asked: tuple[str, str], answer: str
) -> None:
    account = f"--as=system:serviceaccount:{NAMESPACE}:gpu-webhook"
    done = cluster.try_kubectl("auth", "can-i", *asked, "-n", NAMESPACE, account)
    assert done.stdout.strip() == answer
