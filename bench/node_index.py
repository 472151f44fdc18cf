"""What a question to the index costs, by the number of nodes: `python -m bench.node_index`.

Prints the median of many rounds; a decision asks some ten such questions. No figure is asserted.
"""

from __future__ import annotations

import json
import sys
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from webhook.capacity import fit
from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import Node, group
from webhook.core.settings import Capacity, Taint
from webhook.kube.pod import REQUIRED, Pod

if TYPE_CHECKING:
    from collections.abc import Callable

GPU = "nvidia.com/gpu"
CLUSTERS = {"100": (100, 8), "15,000": (15_000, 8), "15,000 in 5,000 classes": (15_000, 5_000)}
ROUNDS, EACH = 15, 200
POD = Pod(
    {
        "spec": {
            "nodeSelector": {"zone": "z1"},
            "tolerations": [{"key": GPU, "operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "product", "operator": "In", "values": ["p1", "p3"]},
                                    {"key": "memory", "operator": "Gt", "values": ["40000"]},
                                    {"key": "pool", "operator": "NotIn", "values": ["c7"]},
                                ]
                            }
                        ]
                    }
                }
            },
        }
    }
)


def nodes(count: int, classes: int) -> list[Node]:
    """Nodes with labels of few values, a label of their own, and a pool that makes the classes."""
    return [
        Node(
            f"node-{number}",
            {
                "kubernetes.io/hostname": f"node-{number}",
                "zone": f"z{number % 3}",
                "product": f"p{number % 5}",
                "memory": str(number % 5 * 20_000),
                "pool": f"c{number % classes}",
                "rack": str(number // 3),
            },
            (Taint(GPU),) if number % 2 else (),
            {GPU: 8},
            {GPU: number % 9},
        )
        for number in range(count)
    ]


def questions(index: NodeIndex, count: int) -> dict[str, Callable[[], object]]:
    """Say what is measured."""
    name = f"node-{count // 2}"
    some, others = index.label("zone").having("z1"), index.label("product").having("p1")
    return {
        "two sets joined": lambda: some & others,
        "nodes of a label's value": lambda: index.label("zone").having("z1"),
        "the node of a hostname": lambda: index.label("kubernetes.io/hostname").having(name),
        "the node of a name": lambda: index.named(name),
        "nodes above a number": lambda: index.label("memory").above(40_000),
        "nodes above one of many": lambda: index.label("rack").above(count // 7),
        "nodes of a pool": lambda: index.label("pool").having("c7"),
        "nodes with 4 GPUs": lambda: index.at_least(GPU, 4),
        "nodes with 4 free": lambda: index.free_at_least(GPU, 4),
        "how many are in a set": lambda: index.count(some),
        "all that a pod allows": lambda: fit.allowed(POD, index, Capacity()),
    }


def microseconds(question: Callable[[], object]) -> float:
    """Ask it often; the first answers, which may decode a table, do not count."""
    question()
    rounds = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(EACH):
            question()
        rounds.append((perf_counter() - start) / EACH * 1e6)
    return median(rounds)


def main() -> int:
    """Measure and print."""
    indexes = {
        title: NodeIndex.from_data(
            json.loads(json.dumps(NodeIndex.of(group(nodes(*size))).as_data()))
        )
        for title, size in CLUSTERS.items()
    }
    asked = {title: questions(indexes[title], CLUSTERS[title][0]) for title in CLUSTERS}
    table = Table("microseconds, by nodes", *CLUSTERS)
    for column in table.columns[1:]:
        column.justify = "right"
    for question in next(iter(asked.values())):
        table.add_row(
            question, *(f"{microseconds(asked[each][question]):.2f}" for each in CLUSTERS)
        )
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
