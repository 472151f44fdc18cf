"""Whether a repaired template that is stored may stay as it is."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.rule import Context
from webhook.evaluation.stored_template import is_still_right
from webhook.kube.pod import Pod

LEGACY, TODAY = "alpha.kubernetes.io/nvidia-gpu-name", "nvidia.com/gpu.product"


def choosing(**labels: str) -> Pod:
    return Pod({"spec": {"containers": [], "nodeSelector": labels}})


def where(*labels: dict[str, str]) -> Context:
    gpus = {"nvidia.com/gpu": 1}
    return Context(inventory=Inventory(tuple(NodeClass(each, gpus=gpus) for each in labels)))


def test_a_legacy_label_that_nodes_have_lost_is_not_right() -> None:
    stored = choosing(**{LEGACY: "K80", TODAY: "K80"})
    made = choosing(**{TODAY: "K80"})
    assert is_still_right(made, stored, Context())  # who knows
    assert is_still_right(made, stored, where({LEGACY: "K80", TODAY: "K80"}))
    assert is_still_right(made, stored, where({TODAY: "V100"}))  # nothing to win
    assert not is_still_right(made, stored, where({TODAY: "K80"}))
    assert is_still_right(made, made, where({TODAY: "K80"}))


def test_a_template_whose_last_node_in_its_zone_got_another_label_is_not_right() -> None:
    zone = {"zone": "a"}
    elsewhere = {TODAY: "K80", "zone": "b"}
    stored = having((TODAY, "In", ["K80"]), ("zone", "In", ["a"]))
    made = having(("zone", "In", ["a"]), (LEGACY, "In", ["K80"]))
    made.affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ].append({"matchExpressions": [{"key": TODAY, "operator": "In", "values": ["K80"]}]})
    assert is_still_right(made, stored, where({TODAY: "K80", **zone}, elsewhere))
    assert not is_still_right(made, stored, where({LEGACY: "K80", **zone}, elsewhere))
    assert is_still_right(stored, stored, where(elsewhere))  # none would fit in any case
    gpus = {"nvidia.com/gpu": 1}
    pool = NodeClass({LEGACY: "K80", **zone}, gpus=gpus, declared=1)
    coming = Context(inventory=Inventory((NodeClass(elsewhere, gpus=gpus), pool)))
    here = having(("zone", "In", ["a"]), (LEGACY, "In", ["K80"]))
    assert not is_still_right(here, stored, coming)  # a pool would add the only one


def test_a_template_whose_only_model_left_is_excluded_is_not_right() -> None:
    apart = (TODAY, "NotIn", ["V100"])
    stored = having((TODAY, "In", ["K80", "V100"]), apart)
    made = having((LEGACY, "In", ["K80"]), apart, (LEGACY, "NotIn", ["V100"]))
    assert not is_still_right(made, stored, where({LEGACY: "K80"}, {TODAY: "V100"}))


def having(*requirements: tuple[str, str, list[str]]) -> Pod:
    listed = [{"key": key, "operator": asked, "values": v} for key, asked, v in requirements]
    required = {"nodeSelectorTerms": [{"matchExpressions": listed}]}
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    spec: Any = {"containers": [], "affinity": {"nodeAffinity": {name: required}}}
    return Pod({"spec": spec})


V100_IS_THERE = where({TODAY: "K80"}, {TODAY: "V100"})
OLD = (LEGACY, "NotIn", ["K80", "V100"])


@pytest.mark.parametrize(
    ("made", "stored", "expected"),
    [
        pytest.param(
            [OLD, (TODAY, "NotIn", ["K80", "V100"])],
            [OLD, (TODAY, "NotIn", ["K80"])],
            False,
            id="a node has a model that is not excluded",
        ),
        pytest.param(
            [OLD, (TODAY, "NotIn", ["K80", "V100", "P4"])],
            [OLD, (TODAY, "NotIn", ["V100", "K80"])],
            True,
            id="no node has it",
        ),
        pytest.param(
            [OLD, (TODAY, "NotIn", ["P4"])], [OLD], True, id="the old label does while none has it"
        ),
        pytest.param([(TODAY, "NotIn", ["P4"])], [], False, id="another label is excluded"),
        pytest.param(
            [(TODAY, "In", ["K80"]), (TODAY, "NotIn", ["V100"])],
            [(TODAY, "In", ["K80"])],
            False,
            id="what is selected excludes nothing",
        ),
        pytest.param(
            [(LEGACY, "In", ["K80"]), (TODAY, "NotIn", ["V100"])],
            [(LEGACY, "In", ["K80"]), (TODAY, "NotIn", ["K80"])],
            True,
            id="a node that is counted in another term is not excluded",
        ),
    ],
)
def test_an_exclusion_is_right_while_it_excludes_all_that_is_there(
    made: Any, stored: Any, *, expected: bool
) -> None:
    assert is_still_right(having(*made), having(*stored), V100_IS_THERE) is expected


def test_any_model_is_there_while_a_node_has_the_label() -> None:
    made, stored = having((LEGACY, "Exists", [])), having((TODAY, "Exists", []))
    assert is_still_right(made, stored, where({LEGACY: "K80"}, {TODAY: "V100"}))
    assert not is_still_right(made, stored, where({LEGACY: "K80"}))
