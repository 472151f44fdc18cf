"""A server as `serve` is one, seen from the metrics: a parent, its page, and workers that count.

Reads lines of JSON: [worker, method, positional arguments, named arguments], as [0, "review",
["/mutate", "patched", 0.001], {}]. Worker "all" is each of them; "stop" ends the server; "end"
ends one worker.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from typing import TYPE_CHECKING, Any

from webhook.telemetry import metrics
from webhook.telemetry.logs import Log
from webhook.telemetry.shared_folder import SharedFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.telemetry.page import Page


def work(counter: metrics.Metrics, commands: int, done: int) -> None:
    with os.fdopen(commands) as lines:
        for line in lines:
            method, arguments, named = json.loads(line)
            if method == "decided":
                arguments = [[tuple(each) for each in arguments[0]]]
            getattr(counter, method)(*arguments, **named)
            counter.flush()
            os.write(done, b"x")


class Worker:
    def __init__(self, counter: metrics.Metrics, others: list[Worker]) -> None:
        theirs, self.commands = os.pipe()
        self.done, done = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            for other in others:
                os.close(other.commands)
            os.close(self.commands)
            work(counter, theirs, done)
            os._exit(0)
        os.close(theirs)
        os.close(done)

    def tell(self, *command: Any) -> None:
        os.write(self.commands, json.dumps(command).encode() + b"\n")
        assert os.read(self.done, 1) == b"x"

    def end(self) -> None:
        os.close(self.commands)
        os.waitpid(self.pid, 0)


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def commands(page: Page) -> Iterator[str]:
    """The lines, until they end; meanwhile the page is kept up, as gunicorn's parent does it."""
    while True:
        page.keep()
        there, _, _ = select.select([0], [], [], 0.1)
        if there:
            line = sys.stdin.readline()
            if not line:
                return
            yield line


def main() -> None:
    scratch = SharedFolder()
    counter = metrics.counting(
        scratch.path, [("rule_failures", "GPU101"), ("rule_failures", "GPU301")], ["GPU201"]
    )
    counter.settings(ok=True)
    from webhook.telemetry.page import Page  # noqa: PLC0415  # as serve does

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    page = Page(listener, scratch, Log())
    page.keep()
    workers: list[Worker] = []
    for _ in range(2):
        workers.append(Worker(counter, workers))
    say(json.dumps({"port": port, "folder": str(scratch.path)}))
    for line in commands(page):
        number, method, arguments, named = json.loads(line)
        if method == "stop":
            break
        for worker in workers if number == "all" else [workers[number]]:
            if method == "end":
                worker.end()
                counter.ended(worker.pid)
                workers.remove(worker)
            else:
                worker.tell(method, arguments, named)
        say("done")
    for worker in workers:
        worker.end()
    page.stop()


main()
