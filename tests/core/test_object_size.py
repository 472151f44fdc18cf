"""The budget: the same answer on each machine, and no honest object over it."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.core.object_size import (
    MOST_ANNOTATION_BYTES,
    MOST_ENTRIES,
    MOST_MANAGED,
    MOST_TEMPLATES,
    excess,
)

ANNOTATIONS = "its annotations have more than the 256 KiB that Kubernetes allows"
ENTRIES = "it has more than 32000 fields and list items"
AMOUNTS = {str(n): 1 for n in range(1000)}
MANAGED = "its managedFields have more than 64000 fields and list items"
CHOICES = "its affinity has more than 5000 terms, expressions and values"
VARIABLE = {"name": "VARIABLE", "value": "x"}


def terms(count: int, values: int, field: str = "matchExpressions") -> dict[str, Any]:
    """A pod for nodes of any of these terms; each counts as one, and so does its expression."""
    term = {field: [{"key": "k", "operator": "In", "values": ["v"] * values}]}
    required = {"nodeSelectorTerms": [term] * count}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"spec": {"affinity": affinity}}


def preferred(count: int) -> dict[str, Any]:
    chosen = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}] * count}
    return {"spec": {"affinity": {"nodeAffinity": chosen}}}


def managed(members: int, **more: Any) -> dict[str, Any]:
    """An object whose managedFields have so many members and items."""
    return {
        "metadata": {"managedFields": [{"f:a": {}}] * (members // 2) + [0] * (members % 2)},
        **more,
    }


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
        pytest.param({"metadata": {"annotations": ["x"]}}, "", id="annotations in a list"),
        pytest.param(
            {"spec": {"containers": [{"env": [VARIABLE] * 100}] * 100}},
            "",
            id="100 containers with 100 variables each",
        ),
        pytest.param({"spec": {"containers": [{}] * 1000}}, "", id="1000 containers"),
        pytest.param(
            {"spec": {"containers": [{}] * 800, "initContainers": [{}] * 201}},
            "it has more than 1000 containers",
            id="containers of all kinds",
        ),
        pytest.param({"limits": AMOUNTS, "requests": AMOUNTS}, "", id="2000 amounts"),
        pytest.param(
            {"spec": [{"limits": AMOUNTS}, {"requests": AMOUNTS}, {"requests": {"a": 1}}]},
            "it has more than 2000 limits and requests",
            id="amounts of all containers",
        ),
        pytest.param(terms(1000, 3), "", id="5000 terms, expressions and values"),
        pytest.param(terms(1, 4999), CHOICES, id="too many values of one term"),
        pytest.param(terms(1700, 1), CHOICES, id="too many terms of one value"),
        pytest.param(terms(1700, 1, "matchFields"), CHOICES, id="too many terms of names of nodes"),
        pytest.param(preferred(5000), "", id="5000 preferences"),
        pytest.param(preferred(5001), CHOICES, id="too many preferences"),
        pytest.param(
            {"spec": {"template": terms(13_000, 1)}}, CHOICES, id="too many terms in a template"
        ),
        pytest.param({"containers": 1, "limits": "x", "requests": None}, "", id="other types"),
        pytest.param(managed(MOST_MANAGED, spec=[0] * (MOST_ENTRIES - 2)), "", id="managed fields"),
        pytest.param(managed(MOST_MANAGED + 1), MANAGED, id="one managed field too many"),
        pytest.param(
            {"metadata": {"managedFields": [{"f:a": [{}]}] * (MOST_MANAGED // 3)}},
            "",
            id="managed fields at all depths",
        ),
        pytest.param(
            {"metadata": {"managedFields": [{"f:a": [{}]}] * (MOST_MANAGED // 3 + 1)}},
            MANAGED,
            id="too many managed fields at all depths",
        ),
        pytest.param(
            {"spec": {"managedFields": [0] * MOST_ENTRIES}}, ENTRIES, id="of that name, elsewhere"
        ),
        pytest.param(
            {"spec": {"template": managed(MOST_ENTRIES)}},
            ENTRIES,
            id="of a template, which has none",
        ),
        pytest.param({"metadata": {"managedFields": 7}}, "", id="managed fields that are no list"),
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


def test_how_many_templates_are_over_the_budget() -> None:
    assert excess({}, MOST_TEMPLATES) == ""
    assert excess({}, MOST_TEMPLATES + 1) == "it has more than 50 pod templates"
