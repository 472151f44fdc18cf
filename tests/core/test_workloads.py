"""Where the pod template is in each kind, and which objects a document holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.pointer import ROOT
from webhook.core.workloads import TEMPLATES, objects, template_at

if TYPE_CHECKING:
    from webhook.core.pointer import Path

TEMPLATE: dict[str, Any] = {"spec": {"containers": []}}


def holder(kind: str, at: Path) -> dict[str, Any]:
    inner: Any = TEMPLATE
    for token in reversed(at):
        inner = {token: inner}
    return {"kind": kind, **inner}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_every_kind_of_workload_has_its_template_where_the_table_says(kind: str) -> None:
    assert template_at(holder(kind, TEMPLATES[kind])) == TEMPLATES[kind]


@pytest.mark.parametrize(
    ("obj", "at"),
    [
        pytest.param({"kind": "Pod", "spec": {}}, ROOT, id="a pod is its own template"),
        pytest.param(
            {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {}}}}},
            ("spec", "jobTemplate", "spec", "template"),
            id="a CronJob has it four deep",
        ),
        pytest.param({"kind": "Service", "spec": {}}, None, id="a Service has none"),
        pytest.param({}, None, id="no kind"),
        pytest.param({"kind": 7}, None, id="a kind that is no text"),
        pytest.param({"kind": "Job", "spec": {}}, None, id="the template is missing"),
        pytest.param({"kind": "Job", "spec": {"template": None}}, None, id="the template is null"),
        pytest.param({"kind": "Job", "spec": [1]}, None, id="the spec is a list"),
        pytest.param({"kind": "Job", "spec": {"template": []}}, None, id="the template is a list"),
    ],
)
def test_the_template_is_found_or_none_is_given(obj: dict[str, Any], at: Path | None) -> None:
    assert template_at(obj) == at


POD = {"kind": "Pod"}
JOB = {"kind": "Job"}


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param(POD, [(ROOT, POD)], id="an object is itself"),
        pytest.param(
            {"kind": "List", "items": [POD, JOB]},
            [(("items", 0), POD), (("items", 1), JOB)],
            id="a List is its items",
        ),
        pytest.param(
            {"kind": "PodList", "items": [POD]}, [(("items", 0), POD)], id="so is a PodList"
        ),
        pytest.param(
            {"kind": "List", "items": [{"kind": "List", "items": [POD]}]},
            [(("items", 0, "items", 0), POD)],
            id="a List within a List",
        ),
        pytest.param(
            {"kind": "List", "items": [None, "x", POD]},
            [(("items", 2), POD)],
            id="items that are no objects are passed over",
        ),
        pytest.param({"kind": "List", "items": []}, [], id="an empty List"),
        pytest.param({"kind": "List"}, [(ROOT, {"kind": "List"})], id="a List without items"),
        pytest.param(None, [], id="an empty document"),
        pytest.param({}, [], id="an empty object"),
        pytest.param("text", [], id="a text"),
    ],
)
def test_the_objects_of_a_document(document: object, found: list[tuple[Path, Any]]) -> None:
    assert list(objects(document)) == found
