"""Calls at a steady rate, from a process of its own: `python -m bench.paced URL CA RATE SECONDS`.

Each call is a review of a GPU pod that differs from all others, on one of a few connections that
are kept open, as an API server does. A call that is late because the one before it was slow counts
from when it was due (no coordinated omission). Prints what it saw as JSON, in milliseconds.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import threading
import time
from urllib.parse import urlsplit

CONNECTIONS = 6


def review(number: int) -> bytes:
    """A pod as the API server sends it, already repaired."""
    container = {
        "name": "main",
        "image": f"registry.example/train:{number}",
        "resources": {
            "limits": {"nvidia.com/gpu": "1"},
            "requests": {"nvidia.com/gpu": "1"},
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "namespace": "default"},
        "spec": {
            "containers": [container],
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "schedulerName": "default-scheduler",
        },
    }
    request = {
        "uid": f"uid-{number}",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "operation": "CREATE",
        "object": pod,
    }
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()


def main() -> None:
    """Call, and print the figures."""
    url, authority, rate, seconds = sys.argv[1:5]
    parts = urlsplit(url)
    context = ssl.create_default_context(cafile=authority)
    latencies: list[float] = []
    failed: list[str] = []
    began = time.monotonic() + 0.5
    pause = CONNECTIONS / float(rate)

    def call(first: int) -> None:
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, context=context, timeout=30
        )
        due, number = began + first * pause / CONNECTIONS, first
        while due < began + float(seconds):
            body = review(number)
            time.sleep(max(0.0, due - time.monotonic()))
            connection.request("POST", parts.path, body, {"Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())
            latencies.append((time.monotonic() - due) * 1000)
            if not answer["response"]["allowed"]:
                failed.append(str(answer))
            due += pause
            number += CONNECTIONS

    threads = [threading.Thread(target=call, args=(n,)) for n in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(f"{len(failed)} calls went wrong: {failed[0]}")
    ranked = sorted(latencies)
    print(
        json.dumps(
            {
                "calls": len(ranked),
                "p50": ranked[len(ranked) // 2],
                "p99": ranked[int(len(ranked) * 0.99)],
                "worst": ranked[-1],
            }
        )
    )


if __name__ == "__main__":
    main()
