"""Charts whose annotations a template makes: helm renders them after `migrate` as it did before.

The API server takes both. No chart that works is broken by what is called a repair.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster import helm
from tests.templates.made_annotations import (
    AFFINITY,
    AROUND,
    BESIDE,
    DEFINED,
    HELM,
    JSON,
    PARTLY,
    TOLERATIONS,
    chart,
    deployment,
    filled,
)
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane

VALUES = {
    "image": "registry.example/a:1",
    "yes": True,
    "no": False,
    "json": JSON[AFFINITY],
    "zone": "a",
    "annotations": {"b": "c"},
}
# The text ends in the wrong column, is no affinity, or is no text, before it is migrated, too.
TEXTS = {
    **{f"{way} {around}": chart(HELM[way], AFFINITY, around) for way in HELM for around in AROUND},
    **{way: chart(PARTLY[way], AFFINITY, "in the middle") for way in PARTLY},
}
SEEN = {way: deployment(filled(BESIDE[way], TOLERATIONS)) for way in BESIDE}


def rendered(texts: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """What `helm template` makes of a chart of these templates, by their names."""
    names = {f"made-{number}": way for number, way in enumerate(texts)}
    named = {name: texts[way].replace("name: x", f"name: {name}", 1) for name, way in names.items()}
    helpers = DEFINED.replace("{json}", JSON[AFFINITY])
    objects = helm.objects(folder, named, helpers, VALUES)
    return {names[name]: each for name, each in objects.items()}


def migrated(texts: Mapping[str, str]) -> dict[str, str]:
    results = {
        way: migrate_text(Source.of_text("templates/x.yaml", text), Plan())
        for way, text in texts.items()
    }
    return {way: each.new_text or texts[way] for way, each in results.items()}


def written(obj: Any) -> Any:
    return obj["spec"]["template"]["metadata"]["annotations"]


def refusals(cluster: ControlPlane, objects: Mapping[str, Any], namespace: str) -> dict[str, str]:
    told = {}
    for way, obj in objects.items():
        answer = cluster.client.request(
            "POST",
            f"apis/apps/v1/namespaces/{namespace}/deployments",
            obj,
            query={"dryRun": "All", "fieldValidation": "Strict"},
        )
        if not answer.ok:
            told[way] = answer.message
    return told


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return rendered(TEXTS, tmp_path_factory.mktemp("before"))


def test_the_charts_work_before(before: dict[str, Any], cluster: ControlPlane) -> None:
    """Else the next test would say nothing."""
    for way, obj in before.items():
        made = json.loads(written(obj)[AFFINITY])
        assert made["nodeAffinity"], way
    assert refusals(cluster, before, "default") == {}


def test_what_helm_renders_keeps_its_annotations(
    before: dict[str, Any], cluster: ControlPlane, tmp_path: Path
) -> None:
    after = rendered(migrated(TEXTS), tmp_path / "after")

    assert {way: written(obj) for way, obj in after.items()} == {
        way: written(obj) for way, obj in before.items()
    }
    assert refusals(cluster, after, "default") == {}
    # The amounts wait for the annotation: until then the webhook repairs the whole pod.
    assert all("alpha.kubernetes.io/nvidia-gpu" in json.dumps(each) for each in after.values())


def test_what_the_template_writes_beside_a_converted_one_stays(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    before = rendered(SEEN, tmp_path / "before")
    after = rendered(migrated(SEEN), tmp_path / "after")

    assert "alpha.kubernetes.io/nvidia-gpu" not in json.dumps(after)
    for way, obj in after.items():
        kept = {k: v for k, v in written(before[way]).items() if k != TOLERATIONS}
        assert written(obj) == kept == {"b": "c"}, way
        tolerations = obj["spec"]["template"]["spec"]["tolerations"]
        assert {"key": "a", "operator": "Exists"} in tolerations
    assert refusals(cluster, after, "default") == {}
