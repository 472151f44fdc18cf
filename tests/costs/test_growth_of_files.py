"""Twice the manifest, at most 2.2 times the work of `scan` and `migrate`: whatever a tenant wrote.

What an admission request may hold a file may hold, too, and no budget of the server limits it.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.costs.meter import Copy
from tests.costs.shapes import MODEL, container, deployment, pod
from webhook.reports.printing import as_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (80, 160, 320)
MOST_GROWTH = 2.2  # steps know no logarithm; a square has 4
TERMS = {"key": MODEL, "operator": "In", "values": ["K80"]}


def _with_terms(n: int) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": [TERMS]} for _ in range(n)]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod(container(), affinity=affinity)


def _commands(n: int) -> dict[str, Any]:
    paths = [f"NVIDIA_VISIBLE_DEVICES=/usr/lib/nvidia-375/{i}" for i in range(n)]
    return pod(container(command=paths))


# What the audit of a hostile tenant met.
FOUND: dict[str, Callable[[int], dict[str, Any]]] = {
    "terms of one model": _with_terms,
    "containers": lambda n: pod(*(container(f"c{i}") for i in range(n))),
    "commands with driver paths": _commands,
}


class Scales:
    """The counting copy of what looks at a manifest."""

    def __init__(self) -> None:
        self._copy = Copy()
        self._migrate = self._copy.module("webhook.formats.migrate").migrate_text
        self._source = self._copy.module("webhook.files.source").Source.of_text
        self._plan = self._copy.module("webhook.files.results").Plan()
        for kind in ("yaml", "json"):  # what is made once is made now
            self.steps(json.dumps(deployment(pod(container()))), kind)

    def steps(self, text: str, kind: str) -> int:
        """How many steps this text takes."""
        self._copy.forget()
        source = self._source("a", text, kind)
        with self._copy.in_place():
            return self._copy.meter.steps(lambda: self._migrate(source, self._plan))


@pytest.fixture(scope="module")
def scales() -> Scales:
    return Scales()


@pytest.mark.parametrize("kind", ["yaml", "json"])
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in FOUND.items()])
def test_the_work_grows_no_faster_than_the_manifest(
    scales: Scales, make: Callable[[int], dict[str, Any]], kind: str
) -> None:
    printed = as_yaml if kind == "yaml" else json.dumps
    _hold(scales, [printed(deployment(make(size))) for size in SIZES], kind)


def _hold(scales: Scales, texts: list[str], kind: str) -> None:
    seen = [scales.steps(text, kind) for text in texts]
    growth = [after / before for before, after in itertools.pairwise(seen)]
    assert growth[-1] <= MOST_GROWTH, (growth, seen)
