"""The self-test of patches: as strict as the API server's library, and in step with jsonpatch."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.wire import gpu_pod, review
from webhook.admission import verify
from webhook.admission.review import dump, parse


def after(patch: list[dict[str, Any]], obj: Any) -> Any:
    obj = copy.deepcopy(obj)
    verify.apply(patch, obj)
    return obj


def op(name: str, path: str, value: Any = 0) -> dict[str, Any]:
    return {"op": name, "path": path} | ({} if name == "remove" else {"value": value})


@pytest.mark.parametrize(
    ("obj", "operation", "expected"),
    [
        pytest.param({}, op("add", "/a", 1), {"a": 1}, id="add a member"),
        pytest.param({"a": 1}, op("add", "/a", 2), {"a": 2}, id="add over a member"),
        pytest.param({"a": [1]}, op("add", "/a/-", 2), {"a": [1, 2]}, id="add at the end"),
        pytest.param({"a": [1]}, op("add", "/a/0", 2), {"a": [2, 1]}, id="add before an item"),
        pytest.param({"a": [1]}, op("add", "/a/1", 2), {"a": [1, 2]}, id="add behind the last"),
        pytest.param({"a": 1}, op("replace", "/a", 2), {"a": 2}, id="replace a member"),
        pytest.param({"a": [1]}, op("replace", "/a/0", 2), {"a": [2]}, id="replace an item"),
        pytest.param({"a": 1}, op("remove", "/a"), {}, id="remove a member"),
        pytest.param({"a": [1, 2]}, op("remove", "/a/0"), {"a": [2]}, id="remove an item"),
        pytest.param({"a/b": 1}, op("remove", "/a~1b"), {}, id="a slash in a name"),
        pytest.param({"a~1": 1}, op("remove", "/a~01"), {}, id="a tilde in a name"),
        pytest.param({"": 1}, op("remove", "/"), {}, id="an empty name"),
        pytest.param({"0": 1}, op("remove", "/0"), {}, id="a digit as a name"),
        pytest.param({"-": 1}, op("remove", "/-"), {}, id="a dash as a name"),
        pytest.param({"a": None}, op("replace", "/a", []), {"a": []}, id="replace null"),
    ],
)
def test_what_applies(obj: Any, operation: dict[str, Any], expected: Any) -> None:
    assert after([operation], obj) == expected
    assert jsonpatch.JsonPatch([operation]).apply(obj) == expected


@pytest.mark.parametrize(
    ("obj", "operation"),
    [
        pytest.param({}, op("remove", "/a"), id="remove what does not exist"),
        pytest.param({}, op("replace", "/a"), id="replace what does not exist"),
        pytest.param({}, op("add", "/a/b"), id="add below what does not exist"),
        pytest.param({"a": None}, op("add", "/a/b"), id="add below null"),
        pytest.param({"a": "x"}, op("add", "/a/b"), id="add below a text"),
        pytest.param({"a": "x"}, op("add", "/a/0"), id="a position in a text"),
        pytest.param({"a": [1]}, op("add", "/a/2"), id="add far behind the end"),
        pytest.param({"a": [1]}, op("replace", "/a/1"), id="replace behind the end"),
        pytest.param({"a": [1]}, op("remove", "/a/1"), id="remove behind the end"),
        pytest.param({"a": [1]}, op("remove", "/a/-"), id="remove what - stands for"),
        pytest.param({"a": [1]}, op("replace", "/a/-"), id="replace what - stands for"),
        pytest.param({"a": [1]}, op("remove", "/a/-1"), id="a negative position"),
        pytest.param({"a": [1]}, op("remove", "/a/00"), id="a padded position"),
        pytest.param({"a": [1]}, op("remove", "/a/x"), id="a word as position"),
        pytest.param({"a": [1]}, op("remove", "/a/²"), id="a digit that is none"),
        pytest.param({"a": [1]}, op("remove", "/a/"), id="an empty position"),
        pytest.param({"a": [[1]]}, op("remove", "/a/7/0"), id="a path behind the end"),
        pytest.param({"a": 1}, op("remove", ""), id="the whole document"),
        pytest.param({"a": 1}, op("remove", "a"), id="a path without a slash"),
        pytest.param({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}, id="move"),
        pytest.param({"a": 1}, {"op": "copy", "from": "/a", "path": "/b"}, id="copy"),
        pytest.param({"a": 1}, {"op": "test", "path": "/a", "value": 1}, id="test"),
    ],
)
def test_what_does_not_apply(obj: Any, operation: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r" "):
        verify.apply([operation], copy.deepcopy(obj))


names = st.sampled_from(["a", "b", "a/b", "~", "~1", "0", "1", "-", ""])
values = st.recursive(
    st.none() | st.integers(0, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
tokens = names.map(lambda name: name.replace("~", "~0").replace("/", "~1"))
paths = st.lists(tokens, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
operations = st.builds(op, st.sampled_from(["add", "replace", "remove"]), paths, values)


@given(st.dictionaries(names, values, max_size=3), st.lists(operations, max_size=3))
def test_where_we_apply_a_patch_jsonpatch_makes_the_same_of_it(
    obj: dict[str, Any], patch: list[dict[str, Any]]
) -> None:
    try:
        ours = after(copy.deepcopy(patch), obj)  # a value that is added may be edited after that
    except ValueError:
        return  # stricter is fine: the patch is then not sent
    try:
        theirs = jsonpatch.JsonPatch(patch).apply(obj)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise AssertionError(f"jsonpatch refuses {patch}") from error
    assert ours == theirs


REVIEW = parse(dump(review(gpu_pod())))


def edited(**metadata: Any) -> dict[str, Any]:
    pod = gpu_pod()
    pod["metadata"] |= metadata
    return pod


def test_a_patch_that_makes_the_pod_that_was_meant_has_no_flaw() -> None:
    patch = dump([op("add", "/metadata/labels", {"a": "b"})])
    assert verify.flaw(REVIEW, patch, edited(labels={"a": "b"})) == ""


def test_a_patch_that_makes_another_pod_is_an_error() -> None:
    patch = dump([op("add", "/metadata/labels", {"a": "c"})])
    with pytest.raises(ValueError, match="intended pod"):
        verify.flaw(REVIEW, patch, edited(labels={"a": "b"}))


def test_a_patch_above_64_kb_is_named_with_its_size() -> None:
    patch = dump([op("add", "/metadata/labels", {"a": "x" * 70_000})])
    assert verify.flaw(REVIEW, patch, {}) == "the patch would be 68 KB"


def test_a_pod_above_what_etcd_takes_is_named_with_its_size() -> None:
    pod = edited(annotations={"a": "x" * 1_600_000})
    assert "would be 1600 KB" in verify.flaw(parse(dump(review(pod))), b"[]", pod)


def test_a_large_review_of_a_small_pod_has_no_flaw() -> None:
    body = dump(review(gpu_pod(), oldObject=edited(annotations={"a": "x" * 1_600_000})))
    assert verify.flaw(parse(body), b"[]", gpu_pod()) == ""


PLACES = st.integers(0, 7).map(lambda place: op("remove", f"/a/{place}"))
CHANGES = st.integers(0, 7).map(lambda place: op("replace", f"/a/{place}", "new"))
ADDITIONS = st.sampled_from(["-", "0", "3"]).map(lambda place: op("add", f"/a/{place}", "more"))
ELSEWHERE = st.just(op("add", "/b", 1))


@given(st.lists(PLACES | CHANGES | ADDITIONS | ELSEWHERE, max_size=8))
def test_items_that_go_one_by_one_or_many_together(patch: list[dict[str, Any]]) -> None:
    obj = {"a": list(range(8))}
    try:
        expected = jsonpatch.JsonPatch(patch).apply(obj)
    except jsonpatch.JsonPatchConflict:
        with pytest.raises(ValueError, match="position"):
            after(patch, obj)
    else:
        assert after(patch, obj) == expected
