"""Two replicas of the webhook with certificates of their own, as the shipped manifests run them.

Each is `gpu-webhook watch` with the token and the rights of the shipped ServiceAccount, and
`gpu-webhook serve`, which holds no token. The API server calls the first one to repair pods and the
second one to check them.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self, cast

import orjson
import yaml

from tests.cluster.controlplane import free_ports
from tests.cluster.scheduling import remove
from tests.cluster.webhook import BASE, KINDS, REPAIR, ROOT, kustomized, shipped
from tests.issuing.replicas import Lines
from tests.log_lines import entries
from webhook.certs.renewal import Plan
from webhook.cluster.client import Client, configuration
from webhook.issuing import folder
from webhook.issuing.keeper import Clocks, Keeper
from webhook.issuing.lease import Lease
from webhook.issuing.objects import SECRET, Objects

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from webhook.certs.authority import Identity
    from webhook.telemetry.logs import Log

NAMESPACE = "gpu-webhook"
PROGRAM = str(Path(sys.executable).parent / "gpu-webhook")
_CLUSTER_RIGHTS = ("ClusterRole", "ClusterRoleBinding")
_RIGHTS = ("Namespace", "ServiceAccount", "Role", "RoleBinding", *_CLUSTER_RIGHTS)


def own_address() -> str:
    """An address of this machine that is not loopback: the API server's proxy refuses those."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        return str(probe.getsockname()[0])


class Replica:
    """One pod: two processes and the folder that they share."""

    def __init__(self, where: Path, kubeconfig: Path, arguments: Sequence[str] = ()) -> None:
        where.mkdir()
        self.folder, self.pair = where, where / "tls"
        self.port = free_ports(1)[0]
        (where / "settings.yaml").write_text("{}\n")
        config = f"--config={where / 'settings.yaml'}"
        self._watch = ["watch", f"--snapshot={where / 'run'}", f"--kubeconfig={kubeconfig}"]
        self._watch += [config, f"--certificates={self.pair}", "--certificate-for=127.0.0.1"]
        self._watch += arguments
        self._serve = ["serve", "--tls-wait", "--workers=1", f"--bind=:{self.port}"]
        self._serve += [config, f"--snapshot={where / 'run'}"]
        self._serve += [f"--tls-cert-file={self.pair / 'tls.crt'}"]
        self._serve += [f"--tls-private-key-file={self.pair / 'tls.key'}"]

    def __enter__(self) -> Self:
        self.server = self._start("serve", self._serve)
        self.start_watcher()
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self.watcher, self.server):
            process.send_signal(signal.SIGQUIT if process is self.server else signal.SIGKILL)
            process.wait(60)

    def start_watcher(self) -> None:
        self.watcher = self._start("watch", self._watch)

    def kill_watcher(self) -> None:
        """As the kernel does when memory runs out."""
        self.watcher.kill()
        self.watcher.wait()

    def start_again(self, *, keeps_certificates: bool = True) -> None:
        """As a new pod, with an empty folder; the certificates stay."""
        if not keeps_certificates:
            self._watch = [each for each in self._watch if not each.startswith("--certificate")]
        self.__exit__()
        shutil.rmtree(self.folder / "run")
        self.__enter__()

    def served(self) -> Identity | None:
        return folder.read(self.pair)

    def lines(self, program: str = "watch") -> list[str]:
        return [" ".join([line["message"], line.get("reason", "")]) for line in self._log(program)]

    def warned(self) -> list[str]:
        return [line["message"] for line in self._log("watch") if line["level"] != "info"]

    def _log(self, program: str) -> list[Json]:
        return entries(self.folder / f"{program}.log")

    def _start(self, program: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{program}.log").open("ab") as log:
            return subprocess.Popen(
                [PROGRAM, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT
            )


class Replicas:
    """Both of them, and the shipped objects that they need."""

    def __init__(
        self, cluster: ControlPlane, folder: Path, arguments: Sequence[str] = (), count: int = 2
    ) -> None:
        self.cluster = cluster
        self._rights = [each for each in kustomized(cluster, BASE) if each["kind"] in _RIGHTS]
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(self._rights))
        kubeconfig = self._kubeconfig(folder / "account.kubeconfig")
        self.each = [Replica(folder / f"replica-{n}", kubeconfig, arguments) for n in range(count)]
        self.configurations = [self._pointed(each) for each in shipped(cluster)]

    def __enter__(self) -> Self:
        for replica in self.each:
            replica.__enter__()
        self.apply()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for replica in self.each:
            replica.__exit__()
        for each in KINDS:
            self.cluster.client.delete(each, "gpu-webhook")
        remove(self.cluster.client, NAMESPACE)
        text = yaml.safe_dump_all(each for each in self._rights if each["kind"] in _CLUSTER_RIGHTS)
        self.cluster.kubectl("delete", "-f", "-", stdin=text)

    secret = f"/api/v1/namespaces/{NAMESPACE}/secrets/gpu-webhook-certificates"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/gpu-webhook-certificates"

    def apply(self) -> None:
        """As `kubectl apply -k` does: without a caBundle."""
        text = yaml.safe_dump_all(self.configurations)
        self.cluster.kubectl("apply", "-f", "-", stdin=text)

    def leader(self) -> Replica:
        """The one that said last that it keeps the certificates."""
        holder = self.cluster.client.demand("GET", self.lease).body["spec"]["holderIdentity"]
        assert holder
        return next(each for each in self.each if _leads(each))

    def put_secret(self, **parts: str | None) -> None:
        """Change parts of the Secret, as they are written in it; None takes one out."""
        self.cluster.client.demand(
            "PATCH", self.secret, {"data": parts}, media_type="application/merge-patch+json"
        )

    def data(self) -> dict[str, str]:
        found: dict[str, str] = self.cluster.client.demand("GET", self.secret).body["data"]
        return found

    def component(self, name: str) -> str:
        """Apply the configuration of a component, and return its name."""
        file = ROOT / "manifests" / name / "webhook.yaml"
        configuration = self._pointed(yaml.safe_load(file.read_text()))
        self.cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(configuration))
        return cast("str", configuration["metadata"]["name"])

    def bundles(self, *more: str) -> list[str]:
        """Those of the shipped configurations, and of other mutating ones."""
        names = [*((kind, "gpu-webhook") for kind in KINDS), *((REPAIR, name) for name in more)]
        return [
            webhook["clientConfig"].get("caBundle", "")
            for kind, name in names
            for webhook in self.cluster.client.get(kind, name)["webhooks"]
        ]

    def _pointed(self, configuration: Json) -> Json:
        """At the port of one of them: no kube-proxy makes a Service reachable here."""
        server = self.each[0 if configuration["kind"] == REPAIR else -1]
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{server.port}{path}"}
        return configuration

    def _kubeconfig(self, path: Path) -> Path:
        """That of the shipped ServiceAccount, with a token as a pod has one."""
        config = orjson.loads(self.cluster.kubeconfig.read_bytes())
        token = self.cluster.kubectl("-n", NAMESPACE, "create", "token", "gpu-webhook").strip()
        config["users"][0]["user"] = {"token": token}
        config["contexts"][0]["context"]["namespace"] = NAMESPACE
        path.write_bytes(orjson.dumps(config))
        return path


def keeper_of(
    cluster: ControlPlane, target: Path, host: str, clocks: Clocks | None = None
) -> Keeper:
    """A keeper in this process, with the rights of an administrator."""
    api = Client(lambda: configuration(str(cluster.kubeconfig)))
    return Keeper(
        Objects(api, NAMESPACE),
        Lease(api, NAMESPACE, SECRET, secrets.token_hex(4), clocks.steady if clocks else monotonic),
        Plan((host,)),
        target,
        cast("Log", Lines()),
        clocks or Clocks(api.now),
    )


def _leads(replica: Replica) -> bool:
    status = replica.folder / "run" / "status.json"
    try:
        return bool(orjson.loads(status.read_bytes())["certificates"]["leads"])
    except (OSError, KeyError):
        return False
