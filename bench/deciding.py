"""What a decision costs in clusters of different sizes: `python -m bench.deciding`.

The same pods before the same policy, with an inventory of 100 nodes, of 15,000, and of 15,000 in
5,000 classes, in turn and in one process; each inventory comes from the index as it is published.
Prints microseconds of a whole `/validate` (parsing, rules, answer) and the ratio to 100 nodes.
"""

from __future__ import annotations

import os
import random
import sys
import time
from statistics import median

import orjson
from rich.console import Console
from rich.table import Table

from bench.paced import review
from webhook.admission.decide import Decider
from webhook.admission.review import parse
from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import Inventory, Node, group
from webhook.core.settings import Settings, Taint
from webhook.rules import POLICY, RULES
from webhook.telemetry.logs import Log

SIZES = ((100, 5), (15_000, 40), (15_000, 5_000))  # nodes, classes
ROUNDS, CALLS = 21, 300
MODELS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "Tesla-T4")


def main() -> int:
    """Measure and print."""
    log = Log(os.open(os.devnull, os.O_WRONLY))
    deciders = [Decider(RULES, Settings(), inventory(*size), log, policy=POLICY) for size in SIZES]
    bodies = [review(number) for number in range(CALLS)]
    seen: list[list[float]] = [[] for _ in deciders]
    for _ in range(ROUNDS):
        for position, decider in enumerate(deciders):
            began = time.perf_counter()
            for body in bodies:
                decider.answer("/validate", parse(body))
            seen[position].append((time.perf_counter() - began) / CALLS * 1e6)
    first = median(seen[0])
    table = Table("nodes", "classes", "us a decision", "ratio")
    for (nodes, classes), times in zip(SIZES, seen, strict=True):
        ratio = median(t / f for t, f in zip(times, seen[0], strict=True))
        table.add_row(f"{nodes:,}", f"{classes:,}", f"{median(times):.0f}", f"{ratio:.3f}")
    Console().print(table, f"100 nodes: {first:.0f} us; {ROUNDS} rounds of {CALLS} calls in turn")
    return 0


def inventory(nodes: int, classes: int) -> Inventory:
    """A cluster as a worker has it: the index only, from its published form."""
    draw = random.Random(nodes + classes)  # noqa: S311
    made = []
    for number in range(nodes):
        kind = draw.randrange(classes)
        labels = {
            "nvidia.com/gpu.product": MODELS[kind % len(MODELS)],
            "example.com/pool": f"pool-{kind}",
            "kubernetes.io/hostname": f"node-{number}",
            "topology.kubernetes.io/zone": f"zone-{kind % 6}",
        }
        taints = (Taint("nvidia.com/gpu", "present"),) if kind % 2 else ()
        held = {"nvidia.com/gpu": draw.randrange(8)}
        made.append(Node(f"node-{number}", labels, taints, {"nvidia.com/gpu": 8}, held))
    index = NodeIndex.of(group(made))
    return Inventory(published=NodeIndex.from_data(index.as_data(), orjson.loads))


if __name__ == "__main__":
    sys.exit(main())
