"""A LimitRange beside legacy pods: what the author wrote wins, and a refusal is told before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.client import until
from tests.cluster.pods import ALPHA, NVIDIA, alpha, container, limits_of, modern, named, pod
from tests.cluster.scheduling import node_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.client import Answer, Json
    from tests.cluster.controlplane import ControlPlane

SLICE = "nvidia.com/mig-1g.10gb"
CPU = {"default": {"cpu": "1"}}


def ranged(cluster: ControlPlane, namespace: str, *ranges: Json) -> Callable[[Json], Answer]:
    """Make the LimitRanges; once LimitRanger knows them pods can be created."""
    for number, each in enumerate(ranges):
        limit_range = {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": f"range-{number}"},
            "spec": {"limits": [{"type": "Container", **each}]},
        }
        cluster.client.create(limit_range, namespace)
    wanted = {
        name
        for each in ranges
        for section in each.values()
        if isinstance(section, dict)
        for name in section
    }

    def limited() -> bool:
        probe = pod(container())
        answer = cluster.client.try_create(named(probe, "probe"), namespace, dry_run=True)
        return all(name in str(answer.body) for name in wanted)  # also of a refusal

    until(limited, "LimitRanger to know the ranges")
    return lambda what: cluster.client.try_create(named(what, "asks"), namespace)


CASES = {
    "a default of 0 beside a max": (
        [{"default": {NVIDIA: "0"}, "max": {NVIDIA: "4"}}],
        pod(alpha(2)),
        {NVIDIA: "2"},
    ),
    "a default below what is asked for": (
        [{"default": {NVIDIA: "1"}}],
        pod(alpha(2)),
        {NVIDIA: "2"},
    ),
    "a max, which is a default, too": ([{"max": {NVIDIA: "4"}}], pod(alpha(2)), {NVIDIA: "2"}),
    "a slice for everyone": (
        [{"default": {SLICE: "1"}}],
        pod(alpha(2)),
        {NVIDIA: "2", SLICE: "0"},
    ),
    "a max for the legacy name, and a legacy pod": (
        [{"max": {ALPHA: "4"}}],
        pod(alpha(2)),
        {NVIDIA: "2", ALPHA: "0"},
    ),
    "a max for the legacy name, and a pod of today": (
        [{"max": {ALPHA: "4"}}],
        pod(modern(2)),
        {NVIDIA: "2", ALPHA: "0"},
    ),
    "a legacy default of 0 beside a max, and a pod of today": (
        [{"default": {ALPHA: "0"}, "max": {ALPHA: "4"}}],
        pod(modern(2)),
        {NVIDIA: "2", ALPHA: "0"},
    ),
    "two ranges, of which the annotation names one": (
        [CPU, {"max": {NVIDIA: "4"}}],
        pod(alpha(2)),
        {NVIDIA: "2", "cpu": "1"},
    ),
    "a request alone beside a legacy default": (
        [{"default": {ALPHA: "1"}}],
        pod(container(requests={ALPHA: "2"})),
        {NVIDIA: "2"},
    ),
    "none under the legacy name, which opts out of its max": (
        [{"max": {ALPHA: "4"}}],
        pod(alpha(0)),
        {ALPHA: "0"},
    ),
    "none under the legacy name, which opts out of its default": (
        [{"default": {ALPHA: "1"}}],
        pod(alpha(0)),
        {ALPHA: "0"},
    ),
    "none under the legacy name, in requests alone, beside its default": (
        [{"default": {ALPHA: "1"}}],
        pod(container(requests={ALPHA: "0"})),
        {ALPHA: "0"},
    ),
    "none under the legacy name, in requests alone, beside its max": (
        [{"max": {ALPHA: "1"}}],
        pod(container(requests={ALPHA: "0"})),
        {ALPHA: "0"},
    ),
    "none under the legacy name beside a default of the current one": (
        [{"default": {NVIDIA: "1"}}],
        pod(alpha(0)),
        {ALPHA: "0", NVIDIA: "0"},
    ),
    "none under the current name beside a legacy default": (
        [{"default": {ALPHA: "1"}}],
        pod(modern(0)),
        {ALPHA: "0", NVIDIA: "0"},
    ),
    "what a repair stored under a legacy max, created again": (
        [{"max": {ALPHA: "4"}}],
        pod(container(limits={NVIDIA: "2", ALPHA: "0"})),
        {NVIDIA: "2", ALPHA: "0"},
    ),
    "the same beside a legacy default": (
        [{"default": {ALPHA: "1"}}],
        pod(container(limits={NVIDIA: "2", ALPHA: "0"})),
        {NVIDIA: "2", ALPHA: "0"},
    ),
    "slices beside a legacy max that is below them": (
        [{"max": {ALPHA: "1"}}],
        pod(container(limits={SLICE: "7"})),
        {SLICE: "7", ALPHA: "0"},
    ),
}


@pytest.mark.parametrize(("ranges", "what", "expected"), CASES.values(), ids=CASES)
@pytest.mark.usefixtures("webhook")
def test_the_author_gets_what_was_asked_for(
    ranges: list[Json],
    what: Json,
    expected: dict[str, str],
    cluster: ControlPlane,
    namespace: str,
) -> None:
    answer = ranged(cluster, namespace, *ranges)(what)

    assert answer.ok, answer.message
    assert limits_of(answer.body) == [expected]
    assert answer.body["spec"]["containers"][0]["resources"]["requests"] == expected
    if SLICE not in expected or expected[SLICE] == "0":  # no node of this cluster has slices
        assert node_of(cluster.client, namespace, "asks")
    labelled = named(what, "asks")
    labelled["metadata"]["labels"] = {"a": "b"}
    for each in (named(what, "asks"), labelled):
        cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(each))
    stored = cluster.client.get("Pod", "asks", namespace)
    assert (limits_of(stored), stored["metadata"]["labels"]["a"]) == ([expected], "b")


REFUSED: dict[str, tuple[list[Json], Json, str]] = {
    "more than a max of today's name": (
        [{"max": {NVIDIA: "1"}}],
        pod(alpha(2)),
        "if its max is below 2, the API server will refuse this pod",
    ),
    "less than a min": (
        [{"default": {NVIDIA: "2"}, "defaultRequest": {NVIDIA: "2"}, "min": {NVIDIA: "2"}}],
        pod(alpha(1)),
        "if its min is above 1, the API server will refuse this pod",
    ),
    "more than a max of the legacy name": (
        [{"max": {ALPHA: "1"}}],
        pod(modern(2)),
        "it is removed, and the API server refuses the pod if the LimitRange has any max or min",
    ),
    "more than a legacy default below a max: nobody can tell that it is not the max": (
        [{"default": {ALPHA: "1"}, "max": {ALPHA: "4"}}],
        pod(modern(2)),
        "it is removed, and the API server refuses the pod if the LimitRange has any max or min",
    ),
    "a min of the legacy name": (
        [{"default": {ALPHA: "2"}, "min": {ALPHA: "1"}}],
        pod(modern(2)),
        "which the API server refuses if the LimitRange has a min",
    ),
    "a ratio of the legacy name": (
        [{"default": {ALPHA: "2"}, "maxLimitRequestRatio": {ALPHA: "1"}}],
        pod(modern(2)),
        "or a maxLimitRequestRatio",
    ),
    "a min of slices": (
        [{"default": {SLICE: "1"}, "min": {SLICE: "1"}}],
        pod(alpha(2)),
        "which the API server refuses if the LimitRange has a min",
    ),
    "more than a max for the pod": (
        [{"default": {NVIDIA: "2"}}, {"type": "Pod", "max": {NVIDIA: "3"}}],
        pod(alpha(2), container("second", limits={ALPHA: "2"})),
        "if its max for a whole pod is below 4",
    ),
}


@pytest.mark.parametrize(("limits", "what", "said"), REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("webhook")
def test_what_limit_ranger_refuses_is_told(
    limits: list[Json], what: Json, said: str, cluster: ControlPlane, namespace: str
) -> None:
    answer = ranged(cluster, namespace, *limits)(what)

    assert answer.status == 403
    assert " per Container is" in answer.message or " per Pod is" in answer.message
    assert said in " ".join(answer.warnings)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        pytest.param(container(limits={NVIDIA: "500m"}), "must be an integer", id="a fraction"),
        pytest.param(container(requests={NVIDIA: 1}), "Limit must be set", id="a request alone"),
        pytest.param(
            container(limits={NVIDIA: 2}, requests={NVIDIA: 1}), "must be equal to", id="unequal"
        ),
    ],
)
@pytest.mark.usefixtures("webhook")
def test_a_mistake_under_the_name_of_today_is_refused_in_the_api_servers_words(
    what: Any, words: str, cluster: ControlPlane, namespace: str
) -> None:
    answer = cluster.client.try_create(pod(what), namespace)
    assert answer.status == 422
    assert words in answer.message
    assert not [each for each in answer.warnings if each.startswith("GPU10")]
