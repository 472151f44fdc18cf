"""Twice the manifest, at most 2.2 times the work of `scan` and `migrate`: whatever a tenant wrote.

What an admission request may hold a file may hold, too, and no budget of the server limits it.
"""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.costs.meter import Copy
from tests.costs.shapes import LEGACY, MODEL, MODERN, SECCOMP, container, deployment, pod
from webhook.files import diff
from webhook.reports.printing import as_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.programs, pytest.mark.nightly]
# `make nightly` goes further, as test_growth.py does.
SIZES = (160, 320) if settings.get_current_profile_name() == "nightly" else (60, 120)
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


def _volumes(n: int, of_others: int = 0) -> dict[str, Any]:
    """As many volumes of the driver, each with its mount, and volumes of others between them."""
    paths = [f"/usr/lib/nvidia-375/{i}" for i in range(n)]
    paths[: of_others * 2 : 2] = [f"/data/{i}" for i in range(of_others)]
    volumes = [{"name": f"v{i}", "hostPath": {"path": path}} for i, path in enumerate(paths)]
    mounts = [{"name": f"v{i}", "mountPath": f"/m/{i}"} for i in range(n)]
    return pod(container(volumeMounts=mounts), volumes=volumes)


def _annotated(n: int) -> dict[str, Any]:
    noted = {f"{SECCOMP}c{i}": "runtime/default" for i in range(n)}
    return pod(*(container(f"c{i}") for i in range(n)), annotations=noted)


FOUND |= {
    "driver volumes of one list": _volumes,
    "driver volumes between others": lambda n: _volumes(n, n // 2),
    "annotations that all leave, each for a container": _annotated,
}


def _with_lines(line: str, n: int) -> str:
    """A legacy pod with these lines in a command."""
    lines = "".join(f"      {line}\n" for _ in range(n))
    return f"{as_yaml(pod(container(image='i')))}  - name: d\n    args:\n    - |\n{lines}"


def _listed(fields: str, n: int) -> str:
    """A List of pods with these fields."""
    resources = f"{{limits: {{{LEGACY}: 1}}}}"
    item = f"- apiVersion: v1\n  kind: Pod\n  metadata: {{name: p%d}}\n  spec:\n    {fields}\n"
    item += f"    containers: [{{name: c, image: i, resources: {resources}}}]\n"
    return "apiVersion: v1\nkind: List\nitems:\n" + "".join(item % each for each in range(n))


_LIMITS = f"limits:\n    {LEGACY}: 1\n"
# Texts that are no object of the API server. The kind is that of the file.
TEXTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "resources of values": ("yaml", lambda n: "".join(f"r{i}:\n  {_LIMITS}" for i in range(n))),
    "blocks inside of lines": ("jinja", lambda n: _with_lines("{{a}}{%if x%}{%endif%}", n)),
    "raw blocks": ("jinja", lambda n: _with_lines("{% raw %}x{% endraw %}", n)),
    "blocks that are never closed": ("jinja", lambda n: _with_lines("{% if x %}", 25 * n)),
    "a List of pods of a chart": ("helm", lambda n: _listed("nodeSelector: {a: {{ .a }}}", n)),
    "a List of pods with placeholders": ("yaml", lambda n: _listed('nodeSelector: {a: "$(P)"}', n)),
    "actions on one line": ("helm", lambda n: f"x: {'{{ a }}' * 25 * n}\n{as_yaml(pod())}"),
    "amounts on one line": (
        "helm",
        lambda n: f"x: {{{f'{MODERN}: {{{{ a }}}}, ' * 5 * n}}}\n{as_yaml(pod())}",
    ),
    "resources beside tolerations": (
        "yaml",
        lambda n: "tolerations: [{key: a}]\n" + "".join(f"r{i}:\n  {_LIMITS}" for i in range(n)),
    ),
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
    _hold([scales.steps(printed(deployment(make(size))), kind) for size in SIZES])


@pytest.mark.parametrize(
    ("kind", "text"), [pytest.param(*each, id=name) for name, each in TEXTS.items()]
)
def test_the_work_grows_no_faster_than_the_text(
    scales: Scales, kind: str, text: Callable[[int], str]
) -> None:
    _hold([scales.steps(text(size), kind) for size in SIZES])


def test_documents_that_all_fail_verification_are_read_in_their_own_part() -> None:
    """As if splice() had made a mistake in each of them."""
    copy = Copy()
    manifest = copy.module("webhook.formats.manifest")
    migrate = copy.module("webhook.formats.migrate").migrate_text
    source_of = copy.module("webhook.files.source").Source.of_text
    plan, text = copy.module("webhook.files.results").Plan(), as_yaml(pod(container()))
    splice = manifest.splice

    def mistaken(document: Any, edits: Any) -> Any:
        return splice(document, edits)[1:]

    def tried(size: int) -> int:
        source = source_of("a.yaml", f"---\n{text}" * size)
        copy.forget()
        return copy.meter.steps(lambda: migrate(source, plan))

    manifest.splice = mistaken
    with copy.in_place():
        tried(1)  # what is made once is made now
        _hold([tried(size) for size in SIZES])


@pytest.mark.parametrize("sizes", [(1200, 2400), (200, 400)])
def test_the_parts_of_a_long_text_are_compared_one_by_one(
    sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As difflib looks at all of a part for each change in it, and at all lines that are equal."""
    seen: list[int] = []

    def counted(junk: None, old: list[str], new: list[str], **more: bool) -> Any:
        seen.append(len(old) * len(new))
        return SequenceMatcher(junk, old, new, **more)

    monkeypatch.setattr(diff, "SequenceMatcher", counted)

    def compared(size: int) -> int:
        seen.clear()
        old, new = (
            [line for i in range(size) for line in (f"{i}:", f" {name}: 1", "b: 2", "c: 3")]
            for name in ("old", "new")
        )
        found = [*diff.changes(old, new)]
        assert found == [(at, at + 1, at, at + 1) for at in range(1, 4 * size, 4)]
        return sum(seen)

    _hold([compared(size) for size in sizes])


def _hold(seen: list[int]) -> None:
    few, many = seen
    assert many / few <= MOST_GROWTH, seen
