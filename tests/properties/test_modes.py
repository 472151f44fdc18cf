"""Whatever the modes of the repairs are, they make no pod one that the API server refuses.

Each rule may be off, only count, only warn or repair, and at rest only some rules may be asked. So
no rule's edits may rely on another's.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.engine import run
from tests.evaluation.test_template_updates import (
    K80,
    Author,
    client_side,
    server_side,
    with_api_defaults,
)
from tests.properties import api_server
from tests.properties.clusters import Cluster, clusters
from tests.properties.pods import GPU, LEGACY, pods
from webhook.core.modes import Mode, Modes
from webhook.kube import quantity
from webhook.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    Raw = dict[str, Any]

CODES = [rule.CODE for rule in RULES]
MODE = st.sampled_from(Mode)
MODES = st.fixed_dictionaries({}, optional=dict.fromkeys(CODES, MODE))


def faults(pod: Raw) -> set[str]:
    """What the API server of today finds wrong with the pod, as far as repairs write there."""
    return {*_of_amounts(pod), *_of_labels(pod), *_of_mounts(pod), *_of_tolerations(pod)}


def _of_amounts(pod: Raw) -> Iterator[str]:
    for container, name, limits, requests in api_server.extended_amounts(pod):
        at = f"{container['name']} {name}"
        for amount in (each[name] for each in (limits, requests) if name in each):
            value = quantity.parse(amount)
            if value is None or value < 0 or not quantity.is_whole(value):
                yield f"{at}: must be an integer"
        if name not in limits:
            yield f"{at}: Limit must be set for non overcommitable resources"
        elif name in requests and quantity.parse(limits[name]) != quantity.parse(requests[name]):
            yield f"{at}: must be equal to the limit"


def _of_labels(pod: Raw) -> Iterator[str]:
    selector = pod["spec"].get("nodeSelector") or {}
    listed = [[value] for value in selector.values()]
    listed += [each.get("values") or [] for each in api_server.node_requirements(pod)]
    for values in listed:
        if not all(map(api_server.is_label_value, values)):
            yield f"a valid label must be an empty string or consist of ...: {values}"


def _of_mounts(pod: Raw) -> Iterator[str]:
    volumes = [each["name"] for each in pod["spec"].get("volumes") or ()]
    for name, times in Counter(volumes).items():
        if times > 1:
            yield f"volume {name}: duplicate value"
    for container in api_server.containers(pod):
        mounts = container.get("volumeMounts") or ()
        for mount in mounts:
            if mount["name"] not in volumes:
                yield f"{container['name']} {mount['name']}: not found"
        for path, times in Counter(mount["mountPath"] for mount in mounts).items():
            if times > 1:
                yield f"{container['name']} {path}: must be unique"


def _of_tolerations(pod: Raw) -> Iterator[str]:
    for each in pod["spec"].get("tolerations") or ():
        if not each.get("key") and each.get("operator") != "Exists":
            yield f"operator must be Exists when `key` is empty: {each}"
        if each.get("operator") == "Exists" and each.get("value"):
            yield f"value must be empty when `operator` is 'Exists': {each}"
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            yield f"effect must be 'NoExecute' when `tolerationSeconds` is set: {each}"


@given(pods(), clusters(), MODES, st.sets(st.sampled_from(CODES), max_size=3))
def test_no_modes_and_no_choice_of_rules_make_a_pod_invalid(
    pod: Raw, cluster: Cluster, modes: dict[str, Mode], left_out: set[str]
) -> None:
    rules = [rule for rule in RULES if rule.CODE not in left_out]
    after = deepcopy(pod)
    verdict = run(rules, after, replace(cluster.context, modes=Modes(rules=modes)))
    event("repaired" if verdict.patch else "left")
    assert faults(after) <= faults(pod)


AMOUNTS: dict[str, Raw] = {
    "a fraction": {"limits": {LEGACY: "500m"}, "requests": {LEGACY: "500m"}},
    "a fraction without a request": {"limits": {LEGACY: "500m"}},
    "a request alone": {"requests": {LEGACY: "1"}},
    "a request of a fraction alone": {"requests": {LEGACY: "500m"}, "limits": {"cpu": "1"}},
    "a request below the limit": {"limits": {LEGACY: "2"}, "requests": {LEGACY: "1"}},
    "fractions that differ": {"limits": {LEGACY: "1500m"}, "requests": {LEGACY: "500m"}},
    "differing amounts beside one of today": {
        "limits": {LEGACY: "3", GPU: "1"},
        "requests": {LEGACY: "2", GPU: "1"},
    },
    "a fraction beside one of today": {
        "limits": {LEGACY: "1500m", GPU: "1"},
        "requests": {LEGACY: "1500m", GPU: "1"},
    },
    "a fraction, of which the request is today's": {
        "limits": {LEGACY: "1500m", GPU: "1"},
        "requests": {GPU: "1"},
    },
    "a plain amount": {"limits": {LEGACY: "1"}, "requests": {LEGACY: "1"}},
}
OF_AMOUNTS = ["GPU101", "GPU102", "GPU103", "GPU104"]


@pytest.mark.parametrize("resources", AMOUNTS.values(), ids=AMOUNTS)
def test_all_modes_of_the_rules_on_amounts(resources: Raw) -> None:
    pod = _pod(resources)
    for drawn in product(Mode, repeat=len(OF_AMOUNTS)):
        modes = dict(zip(OF_AMOUNTS, drawn, strict=True))
        after = deepcopy(pod)
        cx = replace(Cluster("default", "none").context, modes=Modes(rules=modes))
        run(RULES, after, cx)
        assert not faults(after), modes


ASKED: list[Raw] = [{"limits": {GPU: "1"}}, {"limits": {GPU: "2"}}, *AMOUNTS.values()]
STEPS = st.tuples(st.sampled_from(ASKED), st.fixed_dictionaries(dict.fromkeys(OF_AMOUNTS, MODE)))


@pytest.mark.parametrize("tool", [client_side, server_side])
@given(turn=st.lists(STEPS, min_size=2, max_size=4))
def test_modes_that_change_between_updates_make_no_template_invalid(
    turn: list[tuple[Raw, dict[str, Mode]]], tool: Any
) -> None:
    author = Sender(tool)
    for resources, modes in turn:
        author.cx = replace(K80, modes=Modes(rules=modes))
        made = author.applies(_pod(resources))
        assert faults(made) <= faults(author.sent)


class Sender(Author):
    """Keeps the template that it sends, as the API server has it before any webhook."""

    sent: Raw

    def sends(self, update: Raw, manager: str = "") -> Raw:
        self.sent = deepcopy(update["spec"]["template"])
        with_api_defaults(self.sent["spec"])
        return super().sends(update, manager)


def _pod(resources: Raw) -> Raw:
    container = {"name": "main", "image": "example.com/i:1", "resources": deepcopy(resources)}
    return {"metadata": {}, "spec": {"containers": [container]}}
