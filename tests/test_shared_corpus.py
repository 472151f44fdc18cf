"""What people really published, as far as it can be read, down road 1."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest
import yaml

from tests.engine import run
from tests.shared_folder import files
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.evaluation.workloads import objects, template_at
from webhook.kube.pointer import ROOT
from webhook.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webhook.kube.pointer import Path as Pointer


def documents(file: Path) -> list[Any]:
    """Its documents; none if it is a template, a shell note or prose."""
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        if file.suffix == ".json":
            return [json.loads(text)]
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return list(yaml.load_all(text, Loader=loader))  # a safe loader
    except (ValueError, yaml.YAMLError):
        return []


def pods(file: Path) -> Iterator[tuple[dict[str, Any], Pointer]]:
    """Every object of a file that holds a pod or a pod template, and where."""
    for document in documents(file):
        for _, obj in objects(document):
            at = ROOT if obj.get("kind") == "pod" else template_at(obj)  # a guide spells it so
            if at is not None:
                yield obj, at


@pytest.mark.parametrize("scope", ["gpu", "all-legacy"])
def test_every_published_manifest(scope: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cx = Context(Settings(scope=scope))
    read = files("corpus/files/*", "corpus/guides/*.yaml")
    judged: set[Path] = set()
    count = repaired = 0
    for file in read:
        for obj, at in pods(file):
            before = copy.deepcopy(obj)
            verdict = run(RULES, obj, cx, at)
            assert verdict.failed == (), file.name
            assert jsonpatch.apply_patch(before, verdict.patch) == obj, file.name
            assert run(RULES, copy.deepcopy(obj), cx, at).patch == [], file.name
            judged.add(file)
            count += 1
            repaired += bool(verdict.patch)
    with capsys.disabled():
        print(  # noqa: T201  # so that CI shows that they were there
            f"\n../shared/corpus, scope {scope}: {len(judged)} of {len(read)} files judged, "
            f"{count} pods and templates, {repaired} repaired"
        )
    assert judged
