"""A file of many documents: how often each is judged, and how much memory the file needs."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from typing import TYPE_CHECKING, Any

from webhook.core.modes import modes_for
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats import file_objects, manifest
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    import pytest

    from webhook.evaluation.evaluate import Evaluation

_POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {}
spec:
  containers:
  - name: cuda
    image: nvidia/cuda
    resources:
      limits:
        {}: 1
"""
_LEGACY, _MODERN = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"


def _file(*resources: str) -> Source:
    pods = (_POD.format(f"p{number}", name) for number, name in enumerate(resources))
    return Source.of_text("pods.yaml", "---\n".join(pods))


def test_only_a_document_that_changes_is_judged_a_second_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second time shows that a later run finds nothing to do."""
    judged: Counter[str] = Counter()
    evaluations = file_objects.evaluations

    def counted(data: Any, *more: Any) -> list[Evaluation]:
        judged[data["metadata"]["name"]] += 1
        return evaluations(data, *more)

    monkeypatch.setattr(manifest, "evaluations", counted)
    result = migrate_text(_file(_LEGACY, _MODERN, _LEGACY, _MODERN), Plan())
    assert result.new_text is not None
    assert judged == {"p0": 2, "p1": 1, "p2": 2, "p3": 1}


def test_what_follows_from_the_options_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modes of the rules in a namespace, and so their lists, are the same for all documents."""
    asked: list[str] = []

    def counted(policy: Any, namespace: str, labels: Any) -> Any:
        asked.append(namespace)
        return modes_for(policy, namespace, labels)

    monkeypatch.setattr(file_objects, "modes_for", counted)
    migrate_text(_file(*[_LEGACY] * 20), Plan())
    assert asked == ["default"]


def test_the_memory_for_a_document_is_that_of_its_findings() -> None:
    """Nodes, data and evaluations of all documents at once were 230 times the text, findings 22."""
    migrate_text(_file(*[_LEGACY] * 10), Plan())  # imports, and what is made once

    def peak(number: int) -> int:
        source = _file(*[_LEGACY] * number)
        gc.collect()
        tracemalloc.start()
        migrate_text(source, Plan())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    text = len(_file(*[_LEGACY] * 200).text)
    assert peak(300) - peak(100) < 12 * text
