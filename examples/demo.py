"""Sends the guides' pods through a real server over TLS and shows what comes back.

Run by `make demo`. The server runs with development certificates in a folder that is thrown away.
"""

from __future__ import annotations

import base64
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
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
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


def side_by_side(
    title: str, before: tuple[str, dict[str, Any]], after: tuple[str, dict[str, Any]]
) -> Table:
    """Two manifests beside each other."""
    table = Table(title=title, title_justify="left", title_style="bold", expand=True)
    for name, _ in (before, after):
        table.add_column(name, ratio=1, overflow="fold")
    table.add_row(*(_manifest(each) for _, each in (before, after)))
    return table


def _manifest(obj: dict[str, Any]) -> Syntax:
    text = as_yaml(obj)
    return Syntax(text, "yaml", theme="ansi_dark", background_color="default", word_wrap=True)


def warning_panel(warnings: list[str]) -> Panel:
    """The warnings as kubectl would print them."""
    lines = [Text(f"Warning: {each}", style="yellow") for each in warnings]
    text = Text("\n").join(lines) if lines else Text("no warnings", style="dim")
    return Panel(text, border_style="yellow" if warnings else "dim")


def main() -> int:
    """Show every pod before and after; 0 if each was answered and repaired."""
    width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "120"))
    console = Console(width=width, highlight=False)
    repaired = 0
    with server() as (port, context):
        for name in PODS:
            pod = yaml.safe_load((EXAMPLES / name).read_text())
            status, answer = call(port, context, "POST", "/mutate?timeout=3s", review(pod))
            response = answer["response"]
            if status != http.HTTPStatus.OK or not response["allowed"]:
                console.print(f"[red]{name}: answered {status}: {answer}[/red]")
                return 1
            patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
            mended = jsonpatch.apply_patch(pod, patch)
            repaired += bool(patch)
            before = ("what the guide says: Pending for ever today", pod)
            if "alpha" not in (EXAMPLES / name).read_text():
                before = ("what the guide says: Pending where GPU nodes are tainted", pod)
            console.print(side_by_side(name, before, ("what the API server stores", mended)))
            console.print(warning_panel(response.get("warnings", [])))
            console.print()
    console.print(
        f"[bold]{repaired} of {len(PODS)} pods repaired.[/bold] "
        "Next: `make demo-cluster` shows them to a real scheduler."
    )
    return 0 if repaired == len(PODS) else 1


if __name__ == "__main__":
    sys.exit(main())
