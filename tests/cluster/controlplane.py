"""A real Kubernetes control plane on loopback: etcd, API server, scheduler, controllers.

There is no kubelet (tests/node adds real nodes). A pod is proven schedulable when the scheduler has
given it a node; it stays Pending after that. Use it as `with ControlPlane() as cluster:`.
"""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import orjson

from tests.cluster import build
from tests.cluster.certificates import Authority
from tests.cluster.client import Client, until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.cluster.certificates import KeyPair

_START = 40.0  # seconds for each program; the whole start takes about 6 on two idle cores
_PORTS = range(15_000, 30_000)  # below those of clients (32768 and more), and of Services
_TAIL = 15  # lines of each log to show when something is wrong

# Removes the folder and ends everything in its process group when its standard input ends: when
# `stop` says so, and also when this Python process is killed.
_GUARD = ["/bin/sh", "-c", 'cat >/dev/null; rm -rf "$0"; kill -KILL 0']


class ProgramDied(Exception):  # noqa: N818 - what happened
    """One of the programs ended by itself; the message ends with its last words."""


class ControlPlane:
    """Starts with the `with` block, ends with it."""

    host = "127.0.0.1"  # where its own programs reach the API server
    addresses: tuple[str, ...] = ("127.0.0.1", "::1")  # of the API server's certificate

    def __init__(
        self,
        release: str = build.RELEASE,
        *,
        apiserver_flags: Sequence[str] = (),
        key_identifiers: bool = False,
    ) -> None:
        self.release = release
        self.programs = build.assets(release)
        self.folder = _scratch()
        self._flags = tuple(apiserver_flags)
        self._key_identifiers = key_identifiers
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self._told = False

    def __enter__(self) -> Self:
        try:
            self._start_or_stop()
        except (ProgramDied, TimeoutError) as failure:
            # Between our finding a free port and a program's taking it, somebody else may take it.
            build.say(f"the control plane did not start; once more. {failure}")
            self.folder = _scratch()
            self._start_or_stop()
        return self

    def _start_or_stop(self) -> None:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self._guard = subprocess.Popen(
            [*_GUARD, str(self.folder)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # etcd may still write a file into the folder
            process_group=0,
        )
        self.authority = Authority(self.folder / "pki", key_identifiers=self._key_identifiers)
        self.port, etcd_port, peer_port = free_ports(3)
        admin = self.authority.client("admin", "system:masters")
        self.kubeconfig = self._write_kubeconfig("admin", admin)
        self.client = Client(self.port, str(self.authority.bundle), admin)
        self._run("etcd", _etcd_flags(self.folder / "etcd", etcd_port, peer_port))
        self._run("kube-apiserver", [*self._apiserver_flags(etcd_port), *self._flags])
        self._wait("kube-apiserver", self._serves)
        self._run("kube-scheduler", self._client_flags("kube-scheduler"))
        self._run("kube-controller-manager", self._controller_flags())
        self._wait("kube-controller-manager", lambda: self._is_populated("default"))

    def stop(self) -> None:
        if hasattr(self, "client"):
            self.client.close()
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            self._guard.wait()
            for process in self._running.values():
                process.wait()
            self._running.clear()
            self._guard = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl of the same release as an administrator; give what it prints."""
        done = self.try_kubectl(*arguments, stdin=stdin)
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def try_kubectl(
        self, *arguments: str, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl; warnings and denials are in `stderr`, as a person sees them."""
        return subprocess.run(
            [
                str(self.programs / "kubectl"),
                f"--kubeconfig={self.kubeconfig}",
                f"--cache-dir={self.folder / 'kubectl'}",  # the port is another one each time
                *arguments,
            ],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def make_namespace(self, name: str, labels: dict[str, str] | None = None) -> str:
        """Make a namespace that pods can be created in."""
        metadata = {"name": name, "labels": labels or {}}
        self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self._wait("kube-controller-manager", lambda: self._is_populated(name))
        return name

    def check(self) -> None:
        """Raise if one of the programs has died."""
        for name, process in self._running.items():
            if process.poll() is not None:
                words, self._told = "as said before" if self._told else self._last_words(), True
                raise ProgramDied(f"{name} ended with {process.returncode}; last words:\n{words}")

    def _last_words(self) -> str:
        tails = {name: self.log(name).splitlines()[-_TAIL:] for name in self._running}
        return "\n".join("\n".join([f"--- {name}", *tails[name]]) for name in tails)

    def failed_calls(self) -> list[str]:
        """Give what the API server wrote of webhooks that did not answer."""
        return [line for line in self.log("kube-apiserver").splitlines() if "failing open" in line]

    def pid(self, program: str) -> int:
        return self._running[program].pid

    def log(self, program: str) -> str:
        return (self.folder / f"{program}.log").read_text(errors="replace")

    def _run(self, program: str, flags: Sequence[str]) -> None:
        if self._guard is None:
            raise RuntimeError("the control plane is not running")
        with (self.folder / f"{program}.log").open("wb") as log:
            self._running[program] = subprocess.Popen(
                [str(self.programs / program), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=self._guard.pid,
                cwd=self.folder,
            )

    def _wait(self, program: str, question: Callable[[], bool]) -> None:
        def asked() -> bool:
            self.check()
            return question()

        try:
            until(asked, f"{program} to be ready", _START)
        except TimeoutError as late:
            raise TimeoutError(f"{late}; last words:\n{self._last_words()}") from None

    def _serves(self) -> bool:
        try:
            return self.client.request("GET", "/readyz").ok
        except OSError:
            return False

    def _is_populated(self, namespace: str) -> bool:
        """Tell if the namespace has what the ServiceAccount plugin and pods need."""
        path = f"/api/v1/namespaces/{namespace}"
        account = self.client.request("GET", f"{path}/serviceaccounts/default")
        return account.ok and self.client.request("GET", f"{path}/configmaps/kube-root-ca.crt").ok

    def _apiserver_flags(self, etcd_port: int) -> list[str]:
        pair = self.authority.server("kubernetes.default.svc", self.addresses)
        self._service_account_key = self.authority.signing_key("service-account")
        return [
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            f"--secure-port={self.port}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            f"--client-ca-file={self.authority.bundle}",
            f"--service-account-key-file={self._service_account_key}",
            f"--service-account-signing-key-file={self._service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
            *self._apiserver_of_nodes(),
        ]

    def _controller_flags(self) -> list[str]:
        return [
            *self._client_flags("kube-controller-manager"),
            f"--service-account-private-key-file={self._service_account_key}",
            f"--root-ca-file={self.authority.bundle}",
            # Each controller acts under its own name, as in every real cluster.
            "--use-service-account-credentials=true",
            *self._controllers_of_nodes(),
        ]

    def _apiserver_of_nodes(self) -> list[str]:
        """Without kubelets, nothing takes the taint off that this plugin gives to new nodes."""
        return [
            "--bind-address=127.0.0.1",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=TaintNodesByCondition",
        ]

    def _controllers_of_nodes(self) -> list[str]:
        """Without kubelets, these two would find every node unreachable after 40 s."""
        return ["--controllers=*,-node-lifecycle-controller,-taint-eviction-controller"]

    def _client_flags(self, program: str) -> list[str]:
        identity = self.authority.client(f"system:{program}")
        kubeconfig = self._write_kubeconfig(program, identity)
        return [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            # No test is to wait for the limits of a client (20 and 50 requests a second).
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
        ]

    def _write_kubeconfig(self, user: str, identity: KeyPair) -> Path:
        cluster = {
            "server": f"https://{self.host}:{self.port}",
            "certificate-authority": str(self.authority.bundle),
        }
        credentials = {
            "client-certificate": str(identity.certificate),
            "client-key": str(identity.key),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        path = self.folder / f"{user}.kubeconfig"
        path.write_bytes(orjson.dumps(content))  # JSON is YAML
        return path


def _scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="control-plane-"))


def _etcd_flags(data: Path, port: int, peer_port: int) -> list[str]:
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # the data are thrown away
        "--log-level=warn",
    ]


def free_ports(count: int) -> list[int]:
    """Give free loopback ports; all differ.

    None is of the range from which Linux gives ports to clients: between now and the moment at
    which a server listens, any connection on this machine could have taken it.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no port is free")
