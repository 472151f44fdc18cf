"""The budget: the same answer on each machine, and no honest object over it."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.core.budget import MOST_ANNOTATION_BYTES, MOST_ENTRIES, excess

ANNOTATIONS = "its annotations have more than the 256 KiB that Kubernetes allows"
ENTRIES = "it has more than 100000 fields and list items"
AMOUNTS = {str(n): 1 for n in range(2500)}
VARIABLE = {"name": "VARIABLE", "value": "x"}


def annotated(size: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {"k": "x" * (size - 1)}}, **more}


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        pytest.param({}, "", id="nothing"),
        pytest.param({"spec": [0] * (MOST_ENTRIES - 1)}, "", id="as many entries as may be"),
        pytest.param({"spec": [0] * MOST_ENTRIES}, ENTRIES, id="one entry too many"),
        pytest.param({"spec": {str(n): 0 for n in range(MOST_ENTRIES)}}, ENTRIES, id="members"),
        pytest.param({"spec": [[0]] * (MOST_ENTRIES // 2)}, ENTRIES, id="at all depths"),
        pytest.param(
            {"spec": {"containers": [{"env": [VARIABLE] * 100}] * 100}},
            "",
            id="100 containers with 100 variables each",
        ),
        pytest.param({"spec": {"containers": [{}] * 5000}}, "", id="5000 containers"),
        pytest.param(
            {"spec": {"containers": [{}] * 4000, "initContainers": [{}] * 1001}},
            "it has more than 5000 containers",
            id="containers of all kinds",
        ),
        pytest.param({"limits": AMOUNTS, "requests": AMOUNTS}, "", id="5000 amounts"),
        pytest.param(
            [{"limits": AMOUNTS}, {"requests": AMOUNTS}, {"requests": {"a": 1}}],
            "it has more than 5000 limits and requests",
            id="amounts of all containers",
        ),
        pytest.param({"containers": 1, "limits": "x", "requests": None}, "", id="other types"),
        pytest.param(
            {"metadata": {"managedFields": [{"f": [0] * MOST_ENTRIES}]}}, "", id="managed fields"
        ),
        pytest.param(annotated(MOST_ANNOTATION_BYTES), "", id="as many bytes as may be"),
        pytest.param(annotated(MOST_ANNOTATION_BYTES + 1), ANNOTATIONS, id="one byte too many"),
        pytest.param(
            {"metadata": {"annotations": {str(n): "é" * 1000 for n in range(140)}}},
            ANNOTATIONS,
            id="bytes are counted, not characters",
        ),
        pytest.param(
            {"spec": {"template": annotated(MOST_ANNOTATION_BYTES + 1)}},
            ANNOTATIONS,
            id="of a template",
        ),
        pytest.param(
            {"metadata": {"annotations": {"k": 1, "l": "\ud800"}}}, "", id="no texts, no characters"
        ),
        pytest.param({"metadata": {"annotations": "x"}}, "", id="annotations that are no map"),
    ],
)
def test_what_is_over_the_budget(obj: dict[str, Any], why: str) -> None:
    assert excess(obj) == why
