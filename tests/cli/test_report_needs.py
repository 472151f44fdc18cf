"""What needs the webhook by the report, held against what its server answers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import event, given
from hypothesis import strategies as st

from tests.admission.admitted import admitted
from tests.cli.test_report import ALL, ANTI, NO_GPU, TOLERANT
from tests.properties.clusters import INVENTORIES, SETTINGS, Cluster, clusters
from tests.properties.pods import pods
from webhook.cli.report_needs import Needs
from webhook.core.repaired_annotation import codes_of
from webhook.files.results import Plan
from webhook.rules import is_legacy
from webhook.settings.file import parse

if TYPE_CHECKING:
    Raw = dict[str, Any]


@given(pods(), clusters(), st.sampled_from(list(INVENTORIES)))
def test_each_pod_whose_legacy_words_a_server_repairs_needs_it(
    pod: Raw, cluster: Cluster, known: str
) -> None:
    """Whatever nodes the server knows, and whatever the report knows of them."""
    settings = SETTINGS[cluster.settings]
    made = admitted(copy.deepcopy(pod), settings, INVENTORIES[cluster.inventory])
    is_repaired = any(map(is_legacy, codes_of(made.object)))
    event(f"repaired: {is_repaired}")
    if is_repaired:
        assert Needs(Plan(settings, INVENTORIES[known]))(pod)


def test_the_object_stays_as_it_is() -> None:
    template = {"metadata": {"annotations": ANTI}, "spec": TOLERANT}
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": template}}
    before = copy.deepcopy(obj)
    assert not Needs(Plan(parse("{}")))(obj)
    assert Needs(Plan(parse(ALL)))(obj)
    assert obj == before


def test_what_the_rules_do_not_read_needs_it() -> None:
    """On a Job of Volcano an operator may make it an annotation of pods."""
    for version, kind, needed in (
        ("apps/v1", "Deployment", False),
        ("batch.volcano.sh/v1alpha1", "Job", True),
    ):
        task = {"template": {"spec": NO_GPU}}
        spec = task if kind == "Deployment" else {"tasks": [task]}
        obj = {"apiVersion": version, "kind": kind, "metadata": {"annotations": ANTI}, "spec": spec}
        assert Needs(Plan(parse("{}")))(obj) is needed
