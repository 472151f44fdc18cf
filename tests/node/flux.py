"""Flux's real kustomize-controller in a cluster, and folders of ours as the sources it applies."""

from __future__ import annotations

import hashlib
import http.server
import io
import tarfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Self

import orjson
import yaml

from tests.cluster.client import until
from tests.cluster.controlplane import free_ports
from tests.node import operators

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.node.cluster import RealCluster

_HOME = "flux-system"
_NAME = "kustomize-controller"
_GROUP = "source.toolkit.fluxcd.io"
# What it watches; source-controller would bring them, and do what `Source` does here.
_SOURCES = {
    "GitRepository": "gitrepositories",
    "OCIRepository": "ocirepositories",
    "Bucket": "buckets",
    "ExternalArtifact": "externalartifacts",
}
_APPLIED = 240.0


def _definition(kind: str, plural: str) -> Json:
    """A kind without a schema."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


class Flux:
    """Runs in the `with` block, as an administrator like its own ServiceAccount."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._stack = ExitStack()
        self._files = folder / "artifacts"
        self._files.mkdir()

    def __enter__(self) -> Self:
        self._cluster.make_namespace(_HOME)
        kinds = [_definition(*each) for each in _SOURCES.items()]
        self._cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(kinds))
        self._cluster.kubectl("apply", "-f", str(operators.manifests(_NAME)))
        names = [f"crd/{plural}.{_GROUP}" for plural in _SOURCES.values()]
        established = ("wait", "--for=condition=Established", *names)
        until(
            lambda: self._cluster.try_kubectl(*established).returncode == 0, "its kinds", _APPLIED
        )
        handler = partial(_Quiet, directory=str(self._files))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._stack.callback(server.server_close)
        self._address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._stack.callback(server.shutdown)
        metrics, health = free_ports(2)
        flags = [f"--metrics-addr=127.0.0.1:{metrics}", f"--health-addr=127.0.0.1:{health}"]
        command = [str(operators.program(_NAME)), *flags, "--watch-all-namespaces"]
        log = self._folder / f"{_NAME}.log"
        variables = {"RUNTIME_NAMESPACE": _HOME, "TMPDIR": str(self._folder)}
        program = operators.Program(command, self._cluster.kubeconfig, log, **variables)
        self._stack.enter_context(program)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def offer(self, name: str, folder: Path) -> None:
        """As source-controller does: a revision of a repository, to be fetched from here."""
        content = _packed(folder)
        digest = hashlib.sha256(content).hexdigest()
        (self._files / f"{digest}.tar.gz").write_bytes(content)
        revision = f"main@sha1:{digest[:40]}"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        artifact = {
            "path": f"{digest}.tar.gz",
            "url": f"{self._address}/{digest}.tar.gz",
            "revision": revision,
            "digest": f"sha256:{digest}",
            "lastUpdateTime": now,
            "size": len(content),
        }
        ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": revision}
        condition = {**ready, "lastTransitionTime": now, "observedGeneration": 1}
        self._apply(
            {
                "apiVersion": f"{_GROUP}/v1",
                "kind": "GitRepository",
                "metadata": {"name": name, "namespace": _HOME},
                "spec": {"interval": "1m", "url": "https://example.com/manifests"},
            }
        )
        path = f"/apis/{_GROUP}/v1/namespaces/{_HOME}/gitrepositories/{name}"
        status = {"artifact": artifact, "conditions": [condition], "observedGeneration": 1}
        self._cluster.client.demand(
            "PATCH", f"{path}/status", {"status": status}, media_type="application/merge-patch+json"
        )

    def follow(self, name: str, path: str) -> None:
        """Have a folder of a repository applied; return when all of it is ready."""
        self._apply(
            {
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
                "kind": "Kustomization",
                "metadata": {"name": name, "namespace": _HOME},
                "spec": {
                    "interval": "1m",
                    "path": path,
                    "prune": True,
                    "wait": True,
                    "timeout": "3m",
                    "sourceRef": {"kind": "GitRepository", "name": name},
                },
            }
        )
        until(lambda: self.ready(name) == "True", f"{name} to be applied", _APPLIED)

    def again(self, name: str) -> dict[str, str]:
        """As `flux reconcile` does; give what it says that it did to each object."""
        seen = len(self._log())
        moment = str(time.time_ns())
        note = f"reconcile.fluxcd.io/requestedAt={moment}"
        kind = "kustomizations.kustomize.toolkit.fluxcd.io"
        self._cluster.kubectl("-n", _HOME, "annotate", kind, name, "--overwrite", note)

        def is_done() -> bool:
            status = self._get(name)["status"]
            return bool(status.get("lastHandledReconcileAt") == moment)

        until(is_done, f"{name} to be applied again", _APPLIED)
        done: dict[str, str] = {}
        for line in map(orjson.loads, self._log()[seen:]):
            if line["msg"] == "server-side apply completed" and line.get("name") == name:
                done |= line["output"]
        return done

    def ready(self, name: str) -> str:
        conditions = self._get(name).get("status", {}).get("conditions", [])
        return next((str(each["status"]) for each in conditions if each["type"] == "Ready"), "")

    def forget(self, name: str) -> None:
        """Delete the Kustomization: Flux removes all that it applied."""
        self._cluster.kubectl(
            "-n", _HOME, "delete", "kustomizations.kustomize.toolkit.fluxcd.io", name
        )
        self._cluster.kubectl("-n", _HOME, "delete", f"gitrepositories.{_GROUP}", name)

    def _log(self) -> list[str]:
        text = (self._folder / f"{_NAME}.log").read_text()
        return [line for line in text.splitlines() if line.startswith("{")]

    def _get(self, name: str) -> Json:
        path = f"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{_HOME}/kustomizations/{name}"
        found: Json = self._cluster.client.demand("GET", path).body
        return found

    def _apply(self, what: Json) -> None:
        self._cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(what))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _packed(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(folder, arcname=".")
    return packed.getvalue()
