from __future__ import annotations

import json
from typing import Any

import pytest

from webhook.core.settings import Taint
from webhook.kube.tolerations import Tolerations, allows

GPU = "nvidia.com/gpu"
EXISTS = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
EQUAL = {"key": GPU, "operator": "Equal", "value": "present", "effect": "NoSchedule"}
EVICTED = {**EQUAL, "effect": "NoExecute"}
OTHER = {"key": "team", "operator": "Exists"}
OTHER_KEY = {"key": "elsewhere", "operator": "Exists"}


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


@pytest.mark.parametrize("seconds", [2**63, -(2**63) - 1, "9", 9.5])
def test_a_list_that_go_cannot_read_allows_nothing(seconds: object) -> None:
    whitelist = json.dumps([EXISTS, {**OTHER, "tolerationSeconds": seconds}])
    assert not allows(whitelist, EXISTS)


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key, value, effect)


@pytest.mark.parametrize(
    ("toleration", "of", "expected"),
    [
        pytest.param(EXISTS, taint(GPU, "any"), True, id="Exists: any value"),
        pytest.param(EXISTS, taint(GPU, "any", "NoExecute"), False, id="but not any effect"),
        pytest.param(OTHER, taint("team", "a", "NoExecute"), True, id="no effect: any"),
        pytest.param({"operator": "Exists"}, taint("x"), True, id="no key: any"),
        pytest.param({"operator": "Exists", "key": None}, taint("x"), True, id="null: the same"),
        pytest.param(EQUAL, taint(GPU, "present"), True, id="its value"),
        pytest.param(EQUAL, taint(GPU, "absent"), False, id="another value"),
        pytest.param({"key": GPU}, taint(GPU), True, id="no value is the empty one"),
        pytest.param({"value": "a"}, taint("x", "a"), False, id="a value without a key"),
        pytest.param({"key": 1, "operator": "Exists"}, taint("x"), False, id="a key of no text"),
    ],
)
def test_which_taints_are_tolerated(toleration: Any, of: Taint, expected: bool) -> None:  # noqa: FBT001
    assert Tolerations([OTHER_KEY, toleration]).tolerate(of) is expected


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(EXISTS, True, id="the very same"),
        pytest.param({**EXISTS, "value": ""}, True, id="an empty value is none"),
        pytest.param({**EXISTS, "tolerationSeconds": 5}, True, id="for how long does not count"),
        pytest.param({**EXISTS, "effect": ""}, False, id="more than it is not the same"),
        pytest.param({**EXISTS, "effect": []}, False, id="no text"),
    ],
)
def test_which_are_there(there: Any, expected: bool) -> None:  # noqa: FBT001
    assert Tolerations([OTHER_KEY, there]).has(EXISTS) is expected
