"""Which fields a kind is known to have, and a repair that is taken back where one is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.draft import Draft
from webhook.core.rule import Context
from webhook.evaluation import template_updates
from webhook.evaluation.authors import Authors
from webhook.evaluation.evaluate import Asking
from webhook.evaluation.known_fields import are_known, known_fields
from webhook.evaluation.update_fields import Update
from webhook.kube.pointer import Path
from webhook.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.evaluation.pod_fields import Change, Key

Raw = dict[str, Any]

AT = Path(("spec", "template"))
LEGACY, GPU = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
LIMITS = ("spec", "containers", "c", "resources", "limits")
TOLERATIONS = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]


def fleet(limits: Raw, **spec: Any) -> Raw:
    containers = [{"name": "c", "resources": {"limits": limits}}]
    template = {"spec": {"containers": containers, **spec}}
    return {
        "apiVersion": "a.dev/v1",
        "kind": "Fleet",
        "metadata": {},
        "spec": {"template": template},
    }


@pytest.mark.parametrize(
    ("old", "repaired", "known"),
    [
        pytest.param(None, fleet({GPU: 1}), True, id="another name in a map of the author"),
        pytest.param(None, fleet({}, tolerations=TOLERATIONS), False, id="a new field"),
        pytest.param(
            fleet({}, tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]),
            fleet({}, tolerations=TOLERATIONS),
            True,
            id="a field of the stored object",
        ),
        pytest.param(
            fleet({}, tolerations=[{"key": "a"}]),
            fleet({}, tolerations=TOLERATIONS),
            False,
            id="of which a part is new",
        ),
    ],
)
def test_a_kind_has_the_fields_that_its_objects_have(
    old: Raw | None, repaired: Raw, *, known: bool
) -> None:
    fields = known_fields(AT, fleet({LEGACY: 1}), old)
    assert are_known(repaired, AT, fields) is known


def test_built_in_kinds_have_every_field() -> None:
    deployment = {**fleet({LEGACY: 1}), "apiVersion": "apps/v1", "kind": "Deployment"}
    assert known_fields(AT, deployment, None) is None
    assert are_known(fleet({}, tolerations=TOLERATIONS), AT, None)


@pytest.mark.parametrize(
    ("template", "noted", "result"),
    [
        pytest.param({LEGACY: 2}, {}, {LEGACY: 2}, id="the author's own words"),
        pytest.param(
            {GPU: 2, LEGACY: 2},
            {
                (*LIMITS, LEGACY): (2, None),
                (*LIMITS, GPU): (None, 2),
            },
            {LEGACY: 2},
            id="and what an earlier repair had added goes",
        ),
        pytest.param(
            {GPU: 3, LEGACY: 2},
            {(*LIMITS, GPU): (None, 2)},
            {GPU: 3, LEGACY: 2},
            id="unless somebody changed it since",
        ),
    ],
)
def test_a_repair_that_is_taken_back_leaves_what_the_author_wrote(
    template: Raw, noted: Mapping[Key, Change], result: Raw
) -> None:
    obj = fleet(template)
    update = Update(AT, None, noted, Authors({}), Authors({}), may_change=True)
    draft, cx = Draft(obj), Context()
    _, changed = template_updates.template(draft, update, Asking(RULES), cx)
    record = template_updates.taken_back(draft, update, changed or {}, cx.settings)
    assert draft.object == fleet(result)
    assert record == ({} if noted else None)
