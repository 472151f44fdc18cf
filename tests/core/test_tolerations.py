from __future__ import annotations

import json
from typing import Any

import pytest

from webhook.core.tolerations import allows

GPU = "nvidia.com/gpu"
EXISTS = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
EQUAL = {"key": GPU, "operator": "Equal", "value": "present", "effect": "NoSchedule"}
EVICTED = {**EQUAL, "effect": "NoExecute"}
OTHER = {"key": "team", "operator": "Exists"}


@pytest.mark.parametrize(
    ("whitelist", "toleration", "expected"),
    [
        pytest.param([], EXISTS, True, id="an empty list: no restriction"),
        pytest.param(None, EXISTS, True, id="null: no restriction"),
        pytest.param([OTHER], EXISTS, False, id="another key alone"),
        pytest.param([EXISTS], EXISTS, True, id="that very toleration"),
        pytest.param([OTHER, EXISTS], EXISTS, True, id="one of several"),
        pytest.param([{"operator": "Exists"}], EXISTS, True, id="a wildcard"),
        pytest.param([{"operator": "Exists", "effect": "NoExecute"}], EXISTS, False, id="... for"),
        pytest.param([{"key": ""}], EXISTS, False, id="no key, and no Exists either"),
        pytest.param([{"key": GPU, "operator": "Exists"}], EXISTS, True, id="any effect"),
        pytest.param([{**EXISTS, "effect": "NoExecute"}], EXISTS, False, id="another effect"),
        pytest.param([EQUAL], EXISTS, False, id="Exists is more than one value"),
        pytest.param([EXISTS], EQUAL, True, id="a value is less than Exists"),
        pytest.param([{**EQUAL, "operator": ""}], EQUAL, True, id="no operator is Equal"),
        pytest.param([{**EQUAL, "value": "x"}], EQUAL, False, id="another value"),
        pytest.param([{**EQUAL, "operator": "Gt"}], EQUAL, False, id="an operator of tomorrow"),
        pytest.param([{**EVICTED, "tolerationSeconds": 9}], EVICTED, False, id="only for a while"),
        pytest.param([EVICTED], EVICTED, True, id="for good"),
        pytest.param(
            [{"Key": GPU, "OPERATOR": "Exists", "note": 1}],
            EXISTS,
            True,
            id="members in any case, and unknown ones, as Go reads them",
        ),
        pytest.param({}, EXISTS, False, id="no list: the plugin refuses every toleration"),
        pytest.param([{"key": 1}], EXISTS, False, id="a key that is no text: the same"),
    ],
)
def test_as_the_plugin_does(whitelist: Any, toleration: dict[str, str], expected: bool) -> None:  # noqa: FBT001
    assert allows(json.dumps(whitelist), toleration) is expected


def test_no_annotation_and_one_that_is_no_json() -> None:
    assert allows("", EXISTS)
    assert not allows("[", EXISTS)
