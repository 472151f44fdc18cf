"""An API server that knows one answer: a large cluster, made as it is asked for, page by page.

Nodes are of 10 KB and pods of 6.5 KB, as managed clusters with the GPU operator have them; lists
have pages, watches last as long as they are asked to, and `expire()` makes all of them say 410.
"""

from __future__ import annotations

import http.server
import ssl
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

import orjson

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.certificates import Authority

GPU = "nvidia.com/gpu"
PRODUCTS = (
    ("NVIDIA-A100-SXM4-80GB", "ampere", 8),
    ("NVIDIA-H100-80GB-HBM3", "hopper", 8),
    ("NVIDIA-L4", "ada-lovelace", 4),
    ("Tesla-T4", "turing", 4),
    ("Tesla-V100-SXM2-16GB", "volta", 8),
)
_GONE = (
    b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired",'
    b'"message":"too old resource version"}}\n'
)


class Cluster:
    """Makes the objects. Every fourth node has no GPU; each node has ten pods, four with GPUs."""

    def __init__(self, nodes: int, pods: int, classes: int) -> None:
        self.counts = {"nodes": nodes, "pods": pods, "namespaces": 1000}
        self._classes = classes
        self._texts: dict[tuple[int, bool], bytes] = {}
        self._pods = {gpus: orjson.dumps(_pod(has_gpus=gpus)) for gpus in (True, False)}

    def item(self, plural: str, number: int) -> bytes:
        """One object, as JSON."""
        match plural:
            case "nodes":
                return self._node(number)
            case "pods":
                return self.pod(number, 20_000 + number)
            case _:
                return orjson.dumps(_namespace(number))

    def _node(self, number: int) -> bytes:
        pool = number % self._classes
        text = self._texts.get((pool, number % 4 != 3))
        if text is None:
            text = orjson.dumps(_node(pool, has_gpus=number % 4 != 3))
            self._texts[pool, number % 4 != 3] = text
        return text.replace(b"@NODE@", b"node-%05d" % number).replace(
            b"@ASSET@", b"%d" % (number * 7919 % 1_000_003)
        )

    def pod(self, number: int, version: int, phase: str = "Running") -> bytes:
        """One pod, as JSON."""
        nodes = self.counts["nodes"]
        where, turn = number % nodes, number // nodes
        return (
            self._pods[where % 4 != 3 and turn < 4]
            .replace(b"@POD@", b"worker-%06d" % number)
            .replace(b"@TEAM@", b"team-%d" % (number % 1000))
            .replace(b"@NODE@", b"node-%05d" % where)
            .replace(b"@VERSION@", b"%d" % version)
            .replace(b"@PHASE@", phase.encode())
        )


def _node(pool: int, *, has_gpus: bool) -> dict[str, Any]:
    product, family, gpus = PRODUCTS[pool % len(PRODUCTS)]
    labels = {
        "kubernetes.io/hostname": "@NODE@",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": f"size-{pool % 40}",
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": f"eu-west-1{'abc'[pool % 3]}",
        "example.com/pool": f"pool-{pool}",
        "example.com/asset": "asset-@ASSET@",
        **{f"feature.node.kubernetes.io/cpu-cpuid.F{i}": "true" for i in range(24)},
    }
    amounts = {"cpu": "96", "memory": "1056Gi", "pods": "110", "ephemeral-storage": "900Gi"}
    if has_gpus:
        amounts[GPU] = str(gpus)
        labels |= {
            "nvidia.com/gpu.product": product,
            "nvidia.com/gpu.family": family,
            "nvidia.com/gpu.count": str(gpus),
            "nvidia.com/gpu.memory": str(16_384 * (1 + pool % 5)),
            "nvidia.com/gpu.present": "true",
            "nvidia.com/mig.capable": "false",
            "nvidia.com/cuda.driver.major": "570",
            "nvidia.com/cuda.runtime.major": "12",
        }
    taints = [{"key": GPU, "value": "present", "effect": "NoSchedule"}] if has_gpus else []
    return {
        "metadata": {
            "name": "@NODE@",
            "uid": "00000000-0000-4000-8000-000000000000",
            "resourceVersion": "1000",
            "labels": labels,
            "annotations": {f"example.com/note-{i}": "n" * 90 for i in range(8)},
        },
        "spec": {"providerID": "aws:///eu-west-1a/i-00000000000000000", "taints": taints},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [_condition(kind) for kind in _CONDITIONS],
            "images": [
                {"names": [f"registry.example.com/team/image-{i}@sha256:{'0' * 64}"]}
                | {"sizeBytes": 123_456_789 + i}
                for i in range(42)
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Ubuntu 24.04"},
        },
    }


def _pod(*, has_gpus: bool) -> dict[str, Any]:
    resources: dict[str, Any] = {"requests": {"cpu": "1", "memory": "4Gi"}}
    if has_gpus:
        resources = {"limits": {GPU: "1"}, "requests": {GPU: "1", "cpu": "8"}}
    environment = [{"name": f"VARIABLE_{i}", "value": "v" * 40} for i in range(12)]
    container = {
        "name": "main",
        "image": "registry.example.com/team/trainer:1.2.3",
        "env": environment,
        "resources": resources,
        "volumeMounts": [{"name": f"v{i}", "mountPath": f"/data/{i}"} for i in range(6)],
    }
    return {
        "metadata": {
            "name": "@POD@",
            "namespace": "@TEAM@",
            "uid": "00000000-0000-4000-9000-000000000000",
            "resourceVersion": "@VERSION@",
            "labels": {f"example.com/label-{i}": "value" for i in range(6)},
            "managedFields": [_managed(manager) for manager in ("controller", "kubelet")],
        },
        "spec": {
            "nodeName": "@NODE@",
            "containers": [container],
            "volumes": [{"name": f"v{i}", "configMap": {"name": f"c{i}"}} for i in range(6)],
            "tolerations": [{"key": f"t{i}", "operator": "Exists"} for i in range(3)],
        },
        "status": {"phase": "@PHASE@", "conditions": [_condition(kind) for kind in _CONDITIONS]},
    }


_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def _condition(kind: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "reason": f"Kubelet{kind}",
        "message": "kubelet is posting ready status",
    }


def _managed(manager: str) -> dict[str, Any]:
    fields: dict[str, Any] = {f'k:{{"name":"{i}"}}': {".": {}, "f:value": {}} for i in range(40)}
    return {"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": fields}}


def _namespace(number: int) -> dict[str, Any]:
    labels = {"kubernetes.io/metadata.name": f"team-{number}"}
    if number % 10 == 0:
        labels["pod-security.kubernetes.io/enforce"] = "baseline"
    return {"metadata": {"name": f"team-{number}", "labels": labels}}


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # five connections at once overflow the usual queue of five


class Recorded:
    """Serves a Cluster over TLS on loopback."""

    def __init__(self, cluster: Cluster, authority: Authority) -> None:
        self.cluster = cluster
        self._version = 1_000_000
        self._expired = threading.Event()
        self._events: list[bytes] = []
        self._lock = threading.Condition()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair = authority.server("recorded")
        tls.load_cert_chain(pair.certificate, pair.key)
        self._server = _Server(("127.0.0.1", 0), self._handler(tls))
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def expire(self) -> None:
        """All watches say 410, so that everything is listed again."""
        self._expired.set()
        with self._lock:
            self._lock.notify_all()
        time.sleep(1.0)
        self._expired.clear()

    def churn(self, rate: int, seconds: float) -> int:
        """Send so many pod events a second; give how many that were."""
        sent, started = 0, time.monotonic()
        while (passed := time.monotonic() - started) < seconds:
            due = int(passed * rate) - sent
            lines = [self._event(sent + each) for each in range(due)]
            with self._lock:
                self._events = lines
                self._lock.notify_all()
            sent += due
            time.sleep(0.05)
        return sent

    def _event(self, number: int) -> bytes:
        self._version += 1
        phase = "Succeeded" if number % 7 == 6 else "Running"
        pod = self.cluster.pod(number // 7, self._version, phase)
        return b'{"type":"MODIFIED","object":%s}\n' % pod

    def _handler(self, tls: ssl.SSLContext) -> type[http.server.BaseHTTPRequestHandler]:
        recorded = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                self.request = tls.wrap_socket(self.request, server_side=True)
                super().setup()

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                plural = parts.path.rpartition("/")[2]
                with suppress(OSError):
                    if query.get("watch"):
                        recorded._watch(self, plural, float(query["timeoutSeconds"]))
                    else:
                        recorded._list(self, plural, query)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _list(
        self, handler: http.server.BaseHTTPRequestHandler, plural: str, query: dict[str, str]
    ) -> None:
        start, count = int(query.get("continue", "0")), self.cluster.counts.get(plural, 0)
        end = min(start + int(query["limit"]), count)
        metadata: dict[str, str] = {"resourceVersion": str(self._version)}
        if end < count:
            metadata["continue"] = str(end)
        items = b",".join(self.cluster.item(plural, number) for number in range(start, end))
        body = b'{"metadata":%s,"items":[%s]}' % (orjson.dumps(metadata), items)
        _head(handler, "Content-Length", str(len(body)))
        handler.wfile.write(body)

    def _watch(
        self, handler: http.server.BaseHTTPRequestHandler, plural: str, seconds: float
    ) -> None:
        _head(handler, "Transfer-Encoding", "chunked")
        end, seen = time.monotonic() + seconds, self._events
        while (left := end - time.monotonic()) > 0:
            with self._lock:
                self._lock.wait(left)
                lines, new = self._events, self._events is not seen
                seen = lines
            if self._expired.is_set():
                _chunk(handler, _GONE)
                break
            if new and lines and plural == "pods":
                _chunk(handler, b"".join(lines))
        handler.wfile.write(b"0\r\n\r\n")


def _head(handler: http.server.BaseHTTPRequestHandler, name: str, value: str) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header(name, value)
    handler.end_headers()


def _chunk(handler: http.server.BaseHTTPRequestHandler, data: bytes) -> None:
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def kubeconfig(port: int, authority: Authority, folder: Path) -> Path:
    """How the watcher reaches it."""
    cluster = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority": str(authority.bundle),
    }
    path = folder / "recorded.kubeconfig"
    path.write_bytes(
        orjson.dumps(
            {
                "clusters": [{"name": "recorded", "cluster": cluster}],
                "users": [{"name": "nobody", "user": {}}],
                "contexts": [{"name": "c", "context": {"cluster": "recorded", "user": "nobody"}}],
                "current-context": "c",
            }
        )
    )
    return path
