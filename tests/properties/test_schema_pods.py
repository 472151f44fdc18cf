"""The checks of test_repairs.py on pods drawn from the API server's own schema.

That schema is the served one: tests/cluster/test_drawn_pods.py compares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import event, given

from tests.properties.clusters import LABEL, LEGACY, Cluster, clusters
from tests.properties.test_repairs import CHECKS, repair
from tests.schema.pods import any_pods, likely_pods

if TYPE_CHECKING:
    Raw = dict[str, Any]


@given(any_pods() | likely_pods(), clusters())
def test_every_repair_of_a_pod_of_the_schema_passes_every_check(pod: Raw, cluster: Cluster) -> None:
    made = repair(pod, cluster)
    for finding in made.verdict.findings:
        event(finding.code)
    for check in CHECKS:
        check(made)


@pytest.mark.parametrize("operator", ["Exists", "DoesNotExist", "Gt"])
@pytest.mark.parametrize("preferred", [False, True], ids=["required", "preferred"])
def test_values_that_such_an_operator_cannot_have_are_left_to_the_api_server(
    operator: str, *, preferred: bool
) -> None:
    """Drawn once: the value, which is no label's, stood under the new key."""
    term = {"matchExpressions": [{"key": LABEL, "operator": operator, "values": ["Tesla K80"]}]}
    terms: Raw = (
        {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
        if preferred
        else {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    )
    container = {"name": "c", "image": "i", "resources": {"limits": {LEGACY: "1"}}}
    pod = {"spec": {"containers": [container], "affinity": {"nodeAffinity": terms}}}
    made = repair(pod, Cluster("default", "GFD"))
    assert made.verdict.patch, "the amount is repaired"
    for check in CHECKS:
        check(made)
