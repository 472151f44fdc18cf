"""The checks of test_repairs.py on pods drawn from the API server's own schema.

That schema is the served one: tests/cluster/test_drawn_pods.py compares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import event, given

from tests.properties.clusters import clusters
from tests.properties.test_repairs import CHECKS, repair
from tests.schema.pods import any_pods, likely_pods

if TYPE_CHECKING:
    from tests.properties.clusters import Cluster

    Raw = dict[str, Any]


@given(any_pods() | likely_pods(), clusters())
def test_every_repair_of_a_pod_of_the_schema_passes_every_check(pod: Raw, cluster: Cluster) -> None:
    made = repair(pod, cluster)
    for finding in made.verdict.findings:
        event(finding.code)
    for check in CHECKS:
        check(made)
