"""What a large cluster costs the watcher and the workers: `python -m bench.inventory`.

15,000 nodes of 10 KB and 150,000 pods of 6.5 KB (60,000 of them hold GPUs), served over TLS by a
small server of this program (bench/recorded.py), once with 40 classes of nodes and once with 5,000.
For each, the real `gpu-webhook watch` lists them, is told 410 and lists them again, and follows pod
events at a rate; `gpu-webhook serve` with two workers reads what it publishes. Reported:

- start, relist: seconds until everything is known, and the watcher's CPU seconds for it;
- watcher, serve: memory (PSS, shared pages shared out) at rest, and the watcher's highest while it
  lists (looked at five times a second);
- snapshot: its size, and the milliseconds in which a worker reads it;
- calls: p50, p99 and worst of reviews of different pods at `--calls` a second, with nothing else
  going on, and while the watcher lists everything again (reliability: F7);
- events: the share of a core that the watcher takes to follow them (`--rate`, 700 a second is 100
  pods a second, each with seven events).

    python -m bench.inventory [--nodes N] [--pods N] [--classes N ...] [--rate N] [--seconds S]

No figure is asserted. Seconds depend on who else is at work; CPU seconds and memory hardly do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.table import Table

from bench.processes import cpu_seconds, running
from bench.recorded import Cluster, Recorded, kubeconfig
from tests.cluster.certificates import Authority
from tests.cluster.client import until
from tests.cluster.controlplane import free_ports
from webhook.inventory.publish import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

_START = 600.0
_SETTLE = 3.0  # seconds until what a list needed is given back
_READS = 9
# The API server, this process, is on other machines in earnest: it gives way to what is measured.
_WAY = 10
OURS = ("nice", "-n", str(-_WAY)) if os.geteuid() == 0 else ()
_QUIET, _BUSY = 15.0, 60.0  # seconds of calls
_MIB = 1024


@dataclass
class Figures:
    """One run."""

    classes: int
    lines: list[tuple[str, str]] = field(default_factory=list)

    def add(self, what: str, figure: str) -> None:
        self.lines.append((what, figure))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    top = argparse.ArgumentParser(prog="python -m bench.inventory", description=__doc__)
    top.add_argument("--nodes", type=int, default=15_000)
    top.add_argument("--pods", type=int, default=150_000)
    top.add_argument("--classes", type=int, nargs="*", default=[40, 5_000])
    top.add_argument("--rate", type=int, default=700, help="pod events a second")
    top.add_argument("--calls", type=int, default=300, help="reviews a second")
    top.add_argument("--seconds", type=float, default=10.0, help="how long events are sent")
    args = top.parse_args(argv)
    if OURS:
        os.nice(_WAY)
    runs = [measure(args, classes) for classes in args.classes]
    table = Table("", *(f"{run.classes} classes" for run in runs))
    for position, (what, _) in enumerate(runs[0].lines):
        table.add_row(what, *(run.lines[position][1] for run in runs))
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    return 0


def measure(args: argparse.Namespace, classes: int) -> Figures:
    """One cluster: start, relist, events, memory."""
    figures = Figures(classes)
    command = str(Path(sys.executable).parent / "gpu-webhook")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        authority = Authority(folder / "pki")
        cluster = Cluster(args.nodes, args.pods, classes)
        server = stack.enter_context(Recorded(cluster, authority))
        config = kubeconfig(server.port, authority, folder)
        snapshot = folder / "snapshot"
        reader = Snapshot(snapshot)
        watch = [*OURS, command, "watch", f"--snapshot={snapshot}", f"--kubeconfig={config}"]
        began = time.monotonic()
        watcher = stack.enter_context(running(watch, folder / "watch.log"))
        with Highest(watcher.pid) as highest:
            until(lambda: _lists(reader).get("nodes", 0) >= 1, "the first snapshot", _START)
            until((snapshot / "inventory").exists, "the first snapshot", _START)
            figures.add("start: nodes known", f"{time.monotonic() - began:.1f} s")
            until(lambda: _is_listed(reader, {}), "all to be watched", _START)
            seconds, cpu = time.monotonic() - began, _cpu(watcher.pid)
        figures.add("start: pods known too", f"{seconds:.1f} s, {cpu:.1f} s CPU")
        figures.add("watcher, highest at start", highest.text)
        _relist(figures, server, reader, watcher.pid)
        time.sleep(_SETTLE)
        _events(figures, server, watcher.pid, args)
        figures.add("watcher, at rest", f"{pss(watcher.pid):.0f} MiB")
        _reads(figures, snapshot)
        pair, port = authority.server("serve"), free_ports(1)[0]
        serve = [
            *OURS,
            command,
            "serve",
            f"--snapshot={snapshot}",
            f"--bind=127.0.0.1:{port}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            "--workers=2",
        ]
        master = stack.enter_context(running(serve, folder / "serve.log"))
        until(lambda: len(_family(master.pid)) >= 3, "two workers", _START)
        time.sleep(_SETTLE)
        served = sum(map(pss, _family(master.pid)))
        figures.add("serve, two workers and master", f"{served:.0f} MiB")
        figures.add("a replica, at rest", f"{served + pss(watcher.pid):.0f} MiB")
        url, bundle = f"https://127.0.0.1:{port}/validate", authority.bundle
        figures.add("calls, nothing else", _calls(url, bundle, args.calls, _QUIET))
        lists = _lists(reader)
        server.expire()
        figures.add("calls, in a relist", _calls(url, bundle, args.calls, _BUSY))
        if not _is_listed(reader, lists):
            figures.add("calls, in a relist", "the relist took longer than the calls")
    return figures


def _calls(url: str, bundle: Path, rate: int, seconds: float) -> str:
    command = [
        *(*OURS, sys.executable, "-m", "bench.paced"),
        *(url, str(bundle), str(rate), str(seconds)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    return f"p50 {seen['p50']:.1f}, p99 {seen['p99']:.1f}, worst {seen['worst']:.0f} ms"


def _relist(figures: Figures, server: Recorded, reader: Snapshot, pid: int) -> None:
    time.sleep(10)  # lists are ten seconds apart
    lists, before, began = _lists(reader), _cpu(pid), time.monotonic()
    with Highest(pid) as highest:
        server.expire()
        until(lambda: _is_listed(reader, lists), "everything to be listed again", _START)
    seconds, cpu = time.monotonic() - began, _cpu(pid) - before
    figures.add("relist", f"{seconds:.1f} s, {cpu:.1f} s CPU")
    figures.add("watcher, highest in a relist", highest.text)


def _events(figures: Figures, server: Recorded, pid: int, args: argparse.Namespace) -> None:
    before, began = _cpu(pid), time.monotonic()
    sent = server.churn(args.rate, args.seconds)
    passed = time.monotonic() - began
    share = (_cpu(pid) - before) / passed
    figures.add("events", f"{share:.2f} of a core at {sent / passed:.0f} a second")


def _reads(figures: Figures, snapshot: Path) -> None:
    """In which time a worker takes a new snapshot, and asks it the first questions."""
    reading, asking = [], []
    for _ in range(_READS):
        reader = Snapshot(snapshot)
        began = time.perf_counter()
        inventory = reader.refresh()
        reading.append(time.perf_counter() - began)
        if inventory is None:
            raise RuntimeError(reader.fault)
        began = time.perf_counter()
        index = inventory.index
        for key in ("nvidia.com/gpu.product", "example.com/pool", "kubernetes.io/hostname"):
            index.label(key).having("x")
        index.at_least("nvidia.com/gpu", 8)
        asking.append(time.perf_counter() - began)
    size = (snapshot / "inventory").stat().st_size / _MIB**2
    figures.add("snapshot", f"{size:.1f} MiB, read in {1000 * median(reading):.1f} ms")
    figures.add("snapshot, first questions", f"{1000 * median(asking):.1f} ms")


def _lists(reader: Snapshot) -> dict[str, int]:
    """How many lists of each kind were begun."""
    kinds = reader.status().content.get("kinds", {})
    return {kind: int(each["lists"]) for kind, each in kinds.items()}


def _is_listed(reader: Snapshot, before: dict[str, int]) -> bool:
    """Whether each kind was listed since then, and is watched now."""
    kinds = reader.status().content.get("kinds", {})
    return bool(kinds) and all(
        each["state"] == "watching" and each["lists"] > before.get(kind, 0)
        for kind, each in kinds.items()
    )


def _cpu(pid: int) -> float:
    spent = cpu_seconds(pid)
    if spent is None:
        raise RuntimeError("no /proc: CPU and memory cannot be measured here")
    return spent


def pss(pid: int) -> float:
    """MiB of a process; what it shares with others counts by its share."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / _MIB
    raise RuntimeError(f"process {pid} has no memory")


def _family(pid: int) -> list[int]:
    """The process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


class Highest:
    """Looks at a process's memory while the block runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._found = 0.0
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.2):
            self._found = max(self._found, pss(self._pid))

    @property
    def text(self) -> str:
        return f"{self._found:.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
