"""Runs the load generator (bench/load, a Go program) and reads what it measured."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bench.processes import on_core
from bench.windows import Sample
from tests.cluster import build

if TYPE_CHECKING:
    from tests.cluster.certificates import KeyPair

BENCH = Path(__file__).parent
REVIEWS = BENCH / "reviews.jsonl.gz"  # what kube-apiserver sent (record.py)
WARMUP = 0.5  # seconds before each measurement, not measured
_SLACK = 30.0  # seconds that a generator may take beyond what it was told


class WrongAnswers(Exception):  # noqa: N818 - what happened
    """A call failed, or its answer was not the right one: no figure would mean anything."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send what, and what has to come back."""

    url: str
    authority: Path
    body: Path
    expect: str  # patch | pod, as bench/load takes it
    resource: str = "nvidia.com/gpu"
    identity: KeyPair | None = None


def call(target: Target, connections: int, seconds: float, core: int | None = None) -> Sample:
    """Send calls over so many connections for so long; raise WrongAnswers if any went wrong."""
    flags = {
        "url": target.url,
        "ca": target.authority,
        "body": target.body,
        "expect": target.expect,
        "resource": target.resource,
        "connections": connections,
        "seconds": seconds,
        "warmup": WARMUP,
    }
    if target.identity is not None:
        flags |= {"cert": target.identity.certificate, "key": target.identity.key}
    load_average = os.getloadavg()[0]
    with on_core(core):
        done = subprocess.run(
            [program("load"), *(f"--{name}={value}" for name, value in flags.items())],
            capture_output=True,
            text=True,
            timeout=seconds + WARMUP + _SLACK,
            check=False,
        )
    if done.returncode != 0:
        raise WrongAnswers(f"{target.url}: the load generator failed: {done.stderr.strip()}")
    return _sample(target, connections, json.loads(done.stdout), load_average)


def _sample(
    target: Target, connections: int, said: dict[str, float | str], load_average: float
) -> Sample:
    if said["failures"] or not said["count"]:
        raise WrongAnswers(
            f"{target.url}: {said['failures']} calls failed, {said['count']} did not; "
            f"the first failure: {said.get('first_failure', 'none')}"
        )
    if said["dialled"] != connections:
        raise WrongAnswers(
            f"{target.url}: {said['dialled']} connections were made where {connections} should last"
        )
    return Sample(
        calls_per_second=float(said["calls_per_second"]),
        p50=float(said["p50_ms"]),
        p90=float(said["p90_ms"]),
        p99=float(said["p99_ms"]),
        max=float(said["max_ms"]),
        calls=int(said["calls"]),
        load_average=load_average,
    )


@cache
def program(name: str) -> Path:
    """Build one of the Go programs of this folder, or find it built."""
    module = BENCH / name
    return build.program(module, sorted(path.name for path in module.glob("*.go")))
