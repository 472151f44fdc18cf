"""Traces three trips through the package: `python -m bench.trips`.

- `review`: an AdmissionReview of a legacy pod (pod.json), from the ASGI application to the answer;
  the second of two different reviews in one process, so that nothing is started or compiled.
- `manifest`: `migrate --write` of a legacy Deployment in a repository of its own, from the command
  line to the exit code. What the command imports is traced, too, except cli/main.py itself.
- `helm`: the same Deployment as a template of a chart, with one `if`.

A call is a call event of sys.setprofile in a frame whose code is in a file of the package:
functions, methods, lambdas, comprehensions, class bodies and modules that are imported; a generator
counts each time that it is resumed. Calls of builtins, of the standard library and of dependencies
do not count, nor does code that dataclasses make. A file is touched if it has a call, and used if
it has one besides modules and class bodies. Each trip has a process of its own. Counts depend on
the version of Python: 3.12 and later run comprehensions without a call.

Another checkout is measured with `PYTHONPATH=<its root> python bench/trips.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import webhook

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

ROOT = str(Path(webhook.__file__).parent) + os.sep
POD = Path(__file__).with_name("pod.json")
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: trainer
  labels:
    app: trainer
spec:
  replicas: 2
  selector:
    matchLabels:
      app: trainer
  template:
    metadata:
      labels:
        app: trainer
    spec:
      nodeSelector:
        alpha.kubernetes.io/nvidia-gpu-name: Tesla-K80
      containers:
        - name: trainer
          image: registry.example.com/training:8.0
          command: ["python", "train.py"]
          {{- if .Values.env }}
          env:
            - name: EPOCHS
              value: "90"
          {{- end }}
          resources:
            limits:
              cpu: "4"
              memory: 16Gi
              alpha.kubernetes.io/nvidia-gpu: 2  # both cards
"""


class Tracer:
    """Counts the calls of the package while it is entered."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()

    def __enter__(self) -> None:
        sys.setprofile(self._note)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            self.calls[frame.f_code] += 1

    def __str__(self) -> str:
        touched = {code.co_filename for code in self.calls}
        used = {code.co_filename for code in self.calls if not _is_of_import(code)}
        return f"{len(touched):5} files touched, {len(used):5} used, {self.calls.total():7,} calls"


def _is_of_import(code: CodeType) -> bool:
    """Whether it is a module, or the body of a class."""
    return code.co_name == "<module>" or not code.co_flags & 0x02  # CO_NEWLOCALS


def review(tracer: Tracer) -> None:
    """Answer two reviews; the second is traced."""
    from webhook.admission.decide import Decider
    from webhook.admission.endpoint import Endpoint
    from webhook.core.settings import Settings
    from webhook.rules import POLICY, RULES
    from webhook.serving.asgi import AdmissionApp
    from webhook.telemetry.logs import Log

    log = Log(os.open(os.devnull, os.O_WRONLY))
    decider = Decider(RULES, Settings(), None, log, policy=POLICY)
    app: Any = AdmissionApp(Endpoint(decider, str), None)  # type: ignore[arg-type]  # not called
    sent: list[Any] = []

    async def both() -> None:
        await _post(app, _body(1), sent)
        with tracer:
            await _post(app, _body(2), sent)

    asyncio.run(both())
    if b'"patch"' not in sent[-1]["body"]:
        raise SystemExit("the pod was not repaired")


async def _post(app: Any, body: bytes, sent: list[Any]) -> None:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": "POST", "path": "/mutate", "headers": headers}
    await app({**scope, "query_string": b"timeout=10s"}, receive, send)


def _body(number: int) -> bytes:
    pod = json.loads(POD.read_bytes())
    pod["metadata"] |= {"name": f"trainer-{number}", "namespace": "default"}
    pod["spec"]["containers"][0]["env"][0]["value"] = str(number)
    request = {
        "uid": f"{number}",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "default",
        "userInfo": {"username": "alice"},
        "object": pod,
    }
    api = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps({**api, "request": request}).encode()


def manifest(tracer: Tracer) -> None:
    """Migrate the Deployment without the lines of the template."""
    lines = DEPLOYMENT.splitlines(keepends=True)
    _migrate("trainer.yaml", "".join(each for each in lines if "{{" not in each), tracer)


def helm(tracer: Tracer) -> None:
    """Migrate the Deployment as a template."""
    _migrate("templates/trainer.yaml", DEPLOYMENT, tracer)


def _migrate(name: str, text: str, tracer: Tracer) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        Path(folder, ".git").mkdir()
        if "{{" in text:
            Path(folder, "Chart.yaml").write_text("apiVersion: v2\nname: a\nversion: 0.1.0\n")
        from webhook.cli.main import main as command

        with redirect_stdout(StringIO()), redirect_stderr(StringIO()), tracer:
            code = command(["migrate", "--write", str(file)])
        if code or "alpha" in file.read_text():
            raise SystemExit("the file was not migrated")


TRIPS: dict[str, Callable[[Tracer], None]] = {"review": review, "manifest": manifest, "helm": helm}


def main() -> int:
    """Trace the trip that is named, or each in a process of its own."""
    for name in sys.argv[1:]:
        tracer = Tracer()
        TRIPS[name](tracer)
        print(f"{name:9}{tracer}")
    if sys.argv[1:]:
        return 0
    return max([subprocess.call([sys.executable, __file__, name]) for name in TRIPS])


if __name__ == "__main__":
    sys.exit(main())
