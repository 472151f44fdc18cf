"""The real cert-manager in a cluster: its three programs, and what its own chart installs."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import orjson
import yaml

from tests.cluster import helm
from tests.cluster.client import until
from tests.cluster.controlplane import free_ports
from tests.node import operators

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.node.cluster import RealCluster

_HOME = "cert-manager"  # its namespace
_NAME = "cert-manager"
# What its pods would be: no image of it can be had, so its programs run beside the API server.
_LEFT_OUT = ("Deployment", "Job", "Service")
_ISSUER = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Issuer",
    "metadata": {"name": "probe"},
    "spec": {"selfSigned": {}},
}
_START = 60.0


class CertManager:
    """Runs in the `with` block; each part has the rights of its own ServiceAccount."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._port, self._health = free_ports(2)
        self._programs: dict[str, operators.Program] = {}

    def __enter__(self) -> Self:
        self._cluster.make_namespace(_HOME)
        text = yaml.safe_dump_all(self._objects())
        self._cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text)
        self._start("controller", _NAME)
        self._start("cainjector", f"{_NAME}-cainjector")
        self._start(
            "webhook",
            f"{_NAME}-webhook",
            f"--secure-port={self._port}",
            f"--healthz-port={self._health}",
            "--metrics-listen-address=0",
            f"--dynamic-serving-ca-secret-namespace={_HOME}",
            "--dynamic-serving-ca-secret-name=cert-manager-webhook-ca",
            "--dynamic-serving-dns-names=localhost",
        )
        until(self._answers, "cert-manager's webhook", _START)
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._programs.values():
            program.__exit__(None, None)

    @contextmanager
    def without(self, part: str) -> Iterator[None]:
        """Have one of its programs stopped in the block, as while its node is drained."""
        self._programs[part].__exit__(None, None)
        try:
            yield
        finally:
            self._programs[part].__enter__()

    def _start(self, part: str, account: str, *flags: str) -> None:
        command = [str(operators.program(_NAME)), part, *flags]
        log = self._folder / f"cert-manager-{part}.log"
        program = operators.Program(command, self._kubeconfig(account), log)
        self._programs[part] = program.__enter__()

    def certificate(self, name: str, namespace: str) -> Json:
        path = f"/apis/cert-manager.io/v1/namespaces/{namespace}/certificates/{name}"
        found: Json = self._cluster.client.demand("GET", path).body
        return found

    def is_ready(self, name: str, namespace: str) -> bool:
        status = self.certificate(name, namespace).get("status", {})
        conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
        return conditions.get("Ready") == "True" and conditions.get("Issuing") != "True"

    def renew(self, name: str, namespace: str) -> None:
        """As `cmctl renew` asks for it; return when the new certificate is in the Secret."""
        before = self.certificate(name, namespace)["status"]["revision"]
        issuing = {
            "type": "Issuing",
            "status": "True",
            "reason": "ManuallyTriggered",
            "message": "Certificate re-issuance manually triggered",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        found = self.certificate(name, namespace)
        found["status"]["conditions"].append(issuing)
        path = f"/apis/cert-manager.io/v1/namespaces/{namespace}/certificates/{name}/status"
        self._cluster.client.demand("PUT", path, found)

        def is_new() -> bool:
            status = self.certificate(name, namespace)["status"]
            return status["revision"] > before and self.is_ready(name, namespace)

        until(is_new, f"a new certificate {name}", 30)

    def secret(self, name: str, namespace: str) -> dict[str, bytes]:
        path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        data = self._cluster.client.demand("GET", path).body["data"]
        return {key: base64.b64decode(value) for key, value in data.items()}

    def _objects(self) -> list[Json]:
        words = ("template", _NAME, str(operators.manifests(_NAME)), "-n", _HOME)
        done = helm.run(
            self._folder,
            *(*words, "--set", "crds.enabled=true", "--kube-version", helm.KUBERNETES),
        )
        assert done.returncode == 0, done.stderr
        found = [each for each in yaml.safe_load_all(done.stdout) if each]
        for each in found:
            for webhook in each.get("webhooks", ()):
                service = webhook["clientConfig"].pop("service")
                webhook["clientConfig"]["url"] = f"https://localhost:{self._port}{service['path']}"
        return [each for each in found if each["kind"] not in _LEFT_OUT]

    def _kubeconfig(self, account: str) -> Path:
        config = orjson.loads(self._cluster.kubeconfig.read_bytes())
        token = self._cluster.kubectl("-n", _HOME, "create", "token", account, "--duration=24h")
        config["users"][0]["user"] = {"token": token.strip()}
        path = self._folder / f"{account}.kubeconfig"
        path.write_bytes(orjson.dumps(config))
        return path

    def _answers(self) -> bool:
        text = yaml.safe_dump(_ISSUER)
        words = ("create", "--dry-run=server", "-f", "-", "-n", "default")
        return self._cluster.try_kubectl(*words, stdin=text).returncode == 0
