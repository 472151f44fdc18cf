"""Generated names: the hash of kustomize is no part of the name, and nothing else is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.verifying.proofs import compared
from webhook.verifying.comparison import Result

if TYPE_CHECKING:
    Raw = dict[str, Any]

EQUAL, DIFFERENT = Result.EQUAL, Result.DIFFERENT


def config(name: str, data: Raw | None = None, **metadata: str) -> Raw:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return made if data is None else {**made, "data": data}


def secret(name: str, value: str, **rest: str) -> Raw:
    head = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque"}
    return {**head, "metadata": {"name": name}, "data": {"a": value}, **rest}


def pod(*names: str, **metadata: str) -> Raw:
    """A pod that mounts ConfigMaps."""
    volumes = [{"name": f"v{i}", "configMap": {"name": name}} for i, name in enumerate(names)]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec}


# As `kubectl kustomize` of 1.36.3 names them.
EMPTY = config("x-6ct58987ht")
ESCAPED = config("x-h565k58hk9", {"pod.yaml": "a: é<b>\n"})
SECRET = secret("x-k695gkmbtk", "Yg==")
ELSEWHERE = config("x-6ct58987ht", namespace="n")
# The old and the new objects, and the result for each of the new ones.
TABLE: dict[str, tuple[list[Raw], list[Raw], list[Result]]] = {
    "the content differs and the reference follows": (
        [EMPTY, pod("x-6ct58987ht")],
        [ESCAPED, pod("x-h565k58hk9")],
        [DIFFERENT, EQUAL],
    ),
    "the reference does not follow": (
        [EMPTY, pod("x-6ct58987ht")],
        [ESCAPED, pod("x-6ct58987ht")],
        [DIFFERENT, DIFFERENT],
    ),
    "a name that looks generated, but is not the hash of its content": (
        [config("x-6ct58987ht", {"a": "b"}), pod("x-6ct58987ht")],
        [ESCAPED, pod("x-h565k58hk9")],
        [DIFFERENT, DIFFERENT, DIFFERENT],
    ),
    "two generated names that differ in their hashes only": (
        [EMPTY, ESCAPED, pod("x-6ct58987ht")],
        [EMPTY, ESCAPED, pod("x-h565k58hk9")],
        [EQUAL, EQUAL, DIFFERENT],
    ),
    "a Secret with the name of a ConfigMap": (
        [SECRET, EMPTY, pod("x-k695gkmbtk")],
        [SECRET, EMPTY, pod("x-6ct58987ht")],
        [EQUAL, EQUAL, DIFFERENT],
    ),
    "the name of another namespace": (
        [ELSEWHERE, pod("x-6ct58987ht")],
        [config("x-h565k58hk9", {"pod.yaml": "a: é<b>\n"}, namespace="n"), pod("x-h565k58hk9")],
        [DIFFERENT, DIFFERENT],
    ),
    "the same namespace": (
        [ELSEWHERE, pod("x-6ct58987ht", namespace="n")],
        [
            config("x-h565k58hk9", {"pod.yaml": "a: é<b>\n"}, namespace="n"),
            pod("x-h565k58hk9", namespace="n"),
        ],
        [DIFFERENT, EQUAL],
    ),
}


@pytest.mark.parametrize(("old", "new", "results"), TABLE.values(), ids=TABLE)
def test_generated_names(old: list[Raw], new: list[Raw], results: list[Result]) -> None:
    assert sorted(each.result for each in compared(old, new)) == sorted(results)
