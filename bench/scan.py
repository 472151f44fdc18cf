"""Files: `gpu-webhook scan` beside grep, and `migrate` beside a round trip: `python -m bench.scan`.

A tree of 100,000 small manifests, 300 of them legacy (those of tests/corpus, in turn), is made in
a temporary folder and read once. Then, in turn, round by round:

- grep: `grep -rlF` with the words that the prefilter looks for;
- search: the walk and the prefilter alone, in a program of its own;
- scan: the whole command with its report;
- Python: a plain walk that opens, reads and matches each file with a regular expression.

Reported are seconds, processor time, ratios to grep in the same round, and the most memory that all
its processes had, also for a tree of a tenth with as many legacy files. Then `--help`, and the YAML
files of ../shared/corpus (of tests/corpus, if it is not there) migrated, against ruamel.yaml, which
reads and writes the same ones.

    python -m bench.scan [--files N] [--rounds N] [--json FILE]

No figure is asserted, but each run must find the 300 files.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from bench.generator import WrongAnswers
from webhook.core.settings import Settings
from webhook.files.results import Plan
from webhook.files.search_words import words
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Say = Callable[[str], None]

ROOT = Path(__file__).parents[1]
GREP, SEARCH, SCAN, PYTHON = "grep -rlF", "search alone", "gpu-webhook scan", "plain Python walk"
HELP, SMALL = "gpu-webhook --help", "gpu-webhook scan, a tenth"
OURS, THEIRS = "migrate", "ruamel.yaml round trip"
FILES, LEGACY = 100_000, 300
_LOOK_SECONDS = 0.02
_PLAIN = """\
# Service {number}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{number}
  namespace: team-{team}
  labels: {{app: web-{number}, tier: front}}
spec:
  replicas: 2
  selector:
    matchLabels: {{app: web-{number}}}
  template:
    metadata:
      labels: {{app: web-{number}}}
      annotations:
        prometheus.io/scrape: "true"
    spec:
      serviceAccountName: web
      containers:
        - name: web
          image: registry.example.com/team-{team}/web:{number}
          ports: [{{containerPort: 8080}}]
          env:
            - {{name: DATABASE, value: "postgres://db-{team}.svc/{number}"}}
          resources:
            requests: {{cpu: 100m, memory: 128Mi}}
            limits: {{memory: 256Mi}}
---
apiVersion: v1
kind: Service
metadata: {{name: web-{number}, namespace: team-{team}}}
spec:
  selector: {{app: web-{number}}}
  ports: [{{port: 80, targetPort: 8080}}]
"""
# What the programs run in another process do.
_SEARCH = """\
import sys
from webhook.core.settings import Settings
from webhook.files.candidates import Wanted, candidates
from webhook.files.search_words import words
for path in candidates(Wanted([sys.argv[1]], True), words(Settings())):
    print(path)
"""
_WALK = """\
import os, re, sys
pattern = re.compile(b"|".join(re.escape(os.fsencode(word)) for word in sys.argv[2:]))
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            if pattern.search(file.read()):
                print(path)
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One program, one round."""

    contender: str
    round: int
    seconds: float
    cpu_seconds: float
    mebibytes: float  # the most that its processes had
    load_average: float


def part(rounds: int, _: float, say: Say) -> list[Run]:
    """Measure as a part of `make bench`."""
    return measure(rounds, say)


def measure(rounds: int, say: Say, files: int = FILES) -> list[Run]:
    """Run everything; WrongAnswers if a program did not find what is there."""
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say(f"writing {files} files")
        plant(folder / "tree", files, LEGACY)
        plant(folder / "tenth", files // 10, LEGACY)
        for number in range(rounds + 1):  # the first warms the cache of the system
            say(f"files: round {number} of {rounds}")
            for contender, command in commands(folder).items():
                run = timed(contender, command, number)
                runs += [run] if number else []
    for number in range(1, rounds + 1):
        say(f"corpus: round {number} of {rounds}")
        runs += [timed_here(name, task, number) for name, task in corpus_tasks().items()]
    return runs


def plant(root: Path, files: int, legacy: int) -> None:
    """Make a tree of plain manifests with legacy ones spread over it."""
    cases = sorted((ROOT / "tests/corpus").glob("*/example.yaml"))
    manifests = [text for case in cases if is_legacy(text := case.read_text())]
    for number in range(files):
        folder = root / f"team-{number // 1_000:03}" / f"app-{number // 20 % 50:02}"
        if number % 20 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        text = _PLAIN.format(number=number, team=number // 1_000)
        which = number * legacy // files
        if which != (number + 1) * legacy // files:
            text = manifests[which % len(manifests)]
        (folder / f"{number % 20:02}.yaml").write_text(text)


def is_legacy(text: str) -> bool:
    """Whether something is said of it without settings or nodes of its own."""
    plan = Plan(Settings(scope="all-legacy"))
    return bool(migrate_text(Source.of_text("example.yaml", text), plan).located)


def commands(folder: Path) -> dict[str, list[str]]:
    """Give what is run, in order."""
    given = [os.fsdecode(word) for word in words(Settings())]
    tree, command = str(folder / "tree"), [str(Path(sys.executable).with_name("gpu-webhook"))]
    grep = ["grep", "-rlF", *(f"--regexp={word}" for word in given)]
    scan = [*command, "scan", "--exit-zero", "--recursive", "--filename"]
    return {
        GREP: [*grep, tree],
        SEARCH: [sys.executable, "-c", _SEARCH, tree],
        SCAN: [*scan, tree],
        SMALL: [*scan, str(folder / "tenth")],
        PYTHON: [sys.executable, "-c", _WALK, tree, *given],
        HELP: [*command, "--help"],
    }


def timed(contender: str, command: Sequence[str], number: int) -> Run:
    """Run a program to its end."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stdin=subprocess.DEVNULL)
        memory = Memory(process.pid)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        check(contender, process.returncode, output.read().decode())
    cpu = used.ru_utime + used.ru_stime
    return Run(contender, number, seconds, cpu, memory.mebibytes(), load)


class Memory:
    """Looks at the most that a process and its children have had, until they are gone.

    What the system tells at the end counts from before the program was loaded, with ours.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._most: dict[int, int] = {}
        self._gone = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def mebibytes(self) -> float:
        """End, and give what all of them together had at most."""
        self._gone.set()
        self._thread.join()
        return sum(self._most.values()) / 1024

    def _look(self) -> None:
        while not self._gone.wait(_LOOK_SECONDS):
            try:
                children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text()
                for pid in (self._pid, *map(int, children.split())):
                    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
                    if found:
                        self._most[pid] = max(self._most.get(pid, 0), int(found[1]))
            except OSError:  # it has just ended
                continue


def check(contender: str, code: int, output: str) -> None:
    """Raise WrongAnswers if the program did not do its work."""
    if code != 0:
        raise WrongAnswers(f"{contender} ended with {code}")
    if contender in {GREP, SEARCH, PYTHON} and len(output.splitlines()) != LEGACY:
        raise WrongAnswers(f"{contender} found {len(output.splitlines())} files, not {LEGACY}")
    if contender in {SCAN, SMALL} and f" in {LEGACY} of " not in output:
        raise WrongAnswers(f"{contender}: {output[-200:]}")


def corpus_tasks() -> dict[str, Callable[[], object]]:
    """Give what is done with the corpus in this process."""
    texts = dict(manifests())
    yaml = ruamel()
    plan = Plan(Settings(scope="all-legacy"))

    def ours() -> None:
        for name, raw in texts.items():
            migrate_text(Source.of(name, raw), plan)

    def theirs() -> None:
        for raw in texts.values():
            yaml.dump_all(list(yaml.load_all(raw.decode())), StringIO())

    return {OURS: ours} if yaml is None else {OURS: ours, THEIRS: theirs}


def manifests() -> Iterator[tuple[str, bytes]]:
    """Give the YAML files that ruamel.yaml can read, too, of the corpus that is there."""
    yaml = ruamel()
    shared = ROOT.parent / "shared/corpus"
    for file in sorted((shared if shared.is_dir() else ROOT / "tests/corpus").rglob("*.y*ml")):
        try:
            raw = file.read_bytes()
            if yaml is not None:
                yaml.dump_all(list(yaml.load_all(raw.decode())), StringIO())
        except Exception:  # noqa: BLE001, S112  # it has many errors, and some are of Python
            continue
        yield file.name, raw


def ruamel() -> Any:
    """Give ruamel.yaml as it keeps most of a file; None if it is not installed."""
    try:
        module: Any = importlib.import_module("ruamel.yaml")
    except ImportError:
        return None
    yaml = module.YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    return yaml


def timed_here(contender: str, task: Callable[[], object], number: int) -> Run:
    """Run a task in this process."""
    load, began, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    task()
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    return Run(contender, number, seconds, used, 0, load)


def table(runs: Sequence[Run]) -> Table:
    """Show medians, and ratios within the rounds."""
    shown = Table(
        title=f"Files: {FILES:,} small ones, {LEGACY} legacy; then the corpus",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE,
    )
    for name in ("program", "seconds", "CPU seconds", "MiB", "ratio", "rounds"):
        shown.add_column(name, justify="left" if name == "program" else "right", no_wrap=True)
    for contender in dict.fromkeys(each.contender for each in runs):
        mine = of(runs, contender)
        against = THEIRS if contender == OURS else GREP
        cells = ["", ""]
        if contender in {SEARCH, SCAN, PYTHON, OURS} and of(runs, against):
            ratios = sorted(
                each.seconds / other.seconds
                for each, other in zip(mine, of(runs, against), strict=True)
            )
            cells = [f"{median(ratios):.2f}", f"{ratios[0]:.2f}-{ratios[-1]:.2f}"]
        memory = median(each.mebibytes for each in mine)
        shown.add_row(
            contender,
            f"{median(each.seconds for each in mine):.2f}",
            f"{median(each.cpu_seconds for each in mine):.2f}",
            f"{memory:.0f}" if memory else "",
            *cells,
        )
    loads = sorted(each.load_average for each in runs)
    missing = "" if of(runs, THEIRS) else "; pip install ruamel.yaml shows a round trip, too"
    shown.caption = (
        f"ratio: seconds over {GREP}'s of the same round (the corpus: over the round trip's), "
        f"median and range; goal 3 for scan. "
        f"Load average {loads[0]:.1f} to {loads[-1]:.1f}{missing}"
    )
    return shown


def of(runs: Sequence[Run], contender: str) -> list[Run]:
    """Give the rounds of one contender."""
    return [each for each in runs if each.contender == contender]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    top = argparse.ArgumentParser(prog="python -m bench.scan", description=__doc__)
    top.add_argument("--files", type=int, default=FILES, metavar="N")
    top.add_argument("--rounds", type=int, default=5, metavar="N")
    top.add_argument("--json", type=Path, metavar="FILE", help="write each run's figures too")
    args = top.parse_args(argv)
    progress = Console(stderr=True, style="dim")
    try:
        runs = measure(args.rounds, progress.print, args.files)
    except (WrongAnswers, OSError) as error:
        progress.print(f"bench: {error}", style="red", markup=False)
        return 1
    Console(width=None if sys.stdout.isatty() else 100).print(table(runs))
    if args.json is not None:
        args.json.write_text(json.dumps([asdict(each) for each in runs], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
