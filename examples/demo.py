"""Sends the pods of old guides through a real server over TLS and shows what changes in them.

Run by `make demo`. The server runs with development certificates in a folder that is thrown away.
"""

from __future__ import annotations

import base64
import difflib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonpatch
import yaml
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from webhook.reports.printing import as_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = Path(__file__).resolve().parent
PODS = (
    "two-containers-five-gpus.yaml",
    "affinity-annotation.yaml",
    "cuda-host-path.yaml",
    "nvidia-docker-1-volumes.yaml",
    "device-plugin-test-pod.yaml",
    "device-plugin-1.10-pod.yaml",
)
# Recorded from kube-scheduler 1.36.3 by `make demo-cluster`.
VERDICT = (
    "0/5 nodes are available: 1 node(s) had untolerated taint(s), "
    "4 Insufficient alpha.kubernetes.io/nvidia-gpu"
)
REPAIRED = "gpu-webhook.dev/repaired"
_START = 20.0  # seconds


@contextmanager
def server() -> Iterator[tuple[int, ssl.SSLContext]]:
    """A running `gpu-webhook serve --dev` on a free port, and a TLS context that trusts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "webhook", "serve", "--dev", "--workers", "1"),
        *("--bind", f"127.0.0.1:{port}", "--inventory", str(EXAMPLES / "inventory.yaml")),
    ]
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log").open("w+") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            yield port, _trust(Path(folder), port, running, log.name)
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(timeout=30)


def _trust(folder: Path, port: int, running: subprocess.Popen[bytes], log: str) -> ssl.SSLContext:
    until = time.monotonic() + _START
    while time.monotonic() < until and running.poll() is None:
        try:
            context = ssl.create_default_context(cafile=folder / "certs" / "ca.crt")
            if call(port, context, "GET", "/readyz")[0] == http.HTTPStatus.OK:
                return context
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"the server did not start:\n{Path(log).read_text()}")


def call(
    port: int, context: ssl.SSLContext, method: str, path: str, body: object = None
) -> tuple[int, Any]:
    """One HTTPS call; gives status and the JSON answer (or the text, if it is none)."""
    connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=10)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if body is not None else text
    finally:
        connection.close()


def review(pod: dict[str, Any]) -> dict[str, Any]:
    """The AdmissionReview that an API server would send when this pod is created."""
    pod = {**pod, "metadata": {**pod["metadata"], "namespace": "default"}}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": str(uuid.uuid4()),
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": pod["metadata"]["name"],
            "namespace": "default",
            "operation": "CREATE",
            "object": pod,
            "dryRun": False,
        },
    }


def answered(port: int, context: ssl.SSLContext, pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as the API server would store it after the webhook's answer."""
    status, answer = call(port, context, "POST", "/mutate?timeout=3s", review(pod))
    if status != http.HTTPStatus.OK or not answer["response"]["allowed"]:
        raise SystemExit(f"{pod['metadata']['name']}: answered {status}: {answer}")
    patch = json.loads(base64.b64decode(answer["response"].get("patch", "W10=")))
    return dict(jsonpatch.apply_patch(pod, patch))


def changed_lines(before: dict[str, Any], after: dict[str, Any]) -> Text:
    """The lines of the manifest that differ, as a diff without its context."""
    old, new = (as_yaml(each).splitlines() for each in (before, after))
    styles = {"-": "red", "+": "green"}
    lines = [
        Text(f"  {line[0]} {line[1:]}", styles[line[0]])
        for line in difflib.unified_diff(old, new, n=0, lineterm="")
        if line[0] in styles and line[:3] not in {"---", "+++"}
    ]
    return Text("\n").join(lines)


def overview(repaired: dict[str, dict[str, Any]]) -> Table:
    """Each pod, and the rules that repaired it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("pod", "without the webhook", "with it, repaired by"):
        table.add_column(heading)
    for name, pod in repaired.items():
        codes = pod["metadata"].get("annotations", {}).get(REPAIRED, "")
        before = "Pending" if "GPU101" in codes else "Pending where nodes are tainted"
        table.add_row(name, f"[red]{before}[/red]", f"[green]{codes.replace(',', ' ')}[/green]")
    return table


def main(shown: str = PODS[0]) -> int:
    """Show it in this terminal, or 120 columns wide."""
    width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "120"))
    return show(Console(width=width, highlight=False), shown)


def show(console: Console, shown: str = PODS[0]) -> int:
    """Show which pods are repaired by which rules, and one of them in detail; 0 if all are."""
    if shown not in PODS:
        raise SystemExit(f"{shown}: no such pod in examples/; there are: {', '.join(PODS)}")
    pods = {name: yaml.safe_load((EXAMPLES / name).read_text()) for name in PODS}
    with server() as (port, context):
        repaired = {name: answered(port, context, pod) for name, pod in pods.items()}
    console.print(f"kube-scheduler reports for the pods of old guides: [red]{VERDICT}[/red]")
    console.print(overview(repaired))
    console.print(f"What changes in [bold]{shown}[/bold]:")
    console.print(changed_lines(pods[shown], repaired[shown]))
    changed = sum(repaired[name] != pods[name] for name in PODS)
    console.print(
        f"[bold]{changed} of {len(PODS)} pods repaired.[/bold] `make demo POD={PODS[1]}` shows "
        "another one,\n`make demo-cluster` gives them all to a real scheduler."
    )
    return 0 if changed == len(PODS) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
