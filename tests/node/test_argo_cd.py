"""docs/gitops.md with the real Argo CD: what it shows as different, applies, keeps and prunes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.client import path_of, until
from tests.cluster.pods import ALPHA
from tests.cluster.remains import everything
from tests.cluster.test_gitops import BLOCKS
from tests.cluster.webhook import KINDS
from tests.node import operators
from tests.node.argo_cd import ArgoCD
from tests.node.build import ROOT
from tests.node.cluster import RealCluster
from tests.node.load import REPAIRED, Load, admit
from tests.node.network import own_network
from tests.node.test_flux import bundles, configurations, legacy_objects, repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.operators

RATE = 25.0
RECIPES = [yaml.safe_load(text) for language, text in BLOCKS if language == "yaml"]
(SERVER_SIDE,) = (each["metadata"]["annotations"] for each in RECIPES if "metadata" in each)
LEGACY, BUNDLES = (each["spec"] for each in RECIPES if "spec" in each)


@pytest.fixture(scope="module")
def cluster(_possible: None) -> Iterator[RealCluster]:
    operators.demand("argo-cd")
    with own_network(RealCluster.host), RealCluster() as running:
        yield running


@pytest.fixture(scope="module")
def argo(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArgoCD]:
    with ArgoCD(cluster, tmp_path_factory.mktemp("argo-cd")) as running:
        yield running


def rendered(cluster: RealCluster, folder: Path, repo: Path, path: str) -> Path:
    """A repository of what kustomize makes of a folder: Argo CD would run a kustomize itself."""
    folder.mkdir()
    text = cluster.kubectl("kustomize", str(repo / path))
    (folder / "all.yaml").write_text(text)
    return folder


WAYS: dict[str, Any] = {
    "client-side": {},
    "server-side": {"syncPolicy": {"syncOptions": ["ServerSideApply=true"]}},
    "compared server-side": {"annotations": SERVER_SIDE},
    "with the field left out": BUNDLES,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_it_applies_stays_whole_and_is_removed(
    way: dict[str, Any], cluster: RealCluster, argo: ArgoCD, tmp_path: Path
) -> None:
    before = everything(cluster)
    repo = rendered(cluster, tmp_path / "repo", ROOT / "manifests", "base")
    automated = {"automated": {"prune": True, "selfHeal": True}}
    policy = {"syncPolicy": automated | way.get("syncPolicy", {})}
    argo.follow("gpu-webhook", repo, **{**way, **policy})
    until(lambda: all(bundles(cluster)), "the caBundles", 30)
    until(lambda: admit(cluster) == REPAIRED, "a repaired pod", 30)

    whole, whole_bundles = configurations(cluster), bundles(cluster)
    with Load(cluster, RATE) as load:
        assert [argo.again("gpu-webhook") for _ in range(3)] == [set()] * 3
        assert configurations(cluster) == whole

        path = path_of(KINDS[0], name="gpu-webhook")
        rules = [{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 7}]
        cluster.client.demand("PATCH", path, rules, media_type="application/json-patch+json")

        def is_healed() -> bool:
            found = cluster.client.demand("GET", path).body["webhooks"]
            return all(each["timeoutSeconds"] != 7 for each in found)

        until(is_healed, "Argo CD to heal itself", 60)
        assert bundles(cluster) == whole_bundles
        time.sleep(5)
    print(f"\nwhile Argo CD applies again: {load}")  # noqa: T201 - pytest -s
    assert (load.missed(), load.failed_calls()) == ([], {})

    cluster.kubectl("delete", "mutatingwebhookconfiguration", "gpu-webhook")
    until(lambda: len(bundles(cluster)) == len(whole_bundles), "it to be created again", 60)
    until(lambda: all(bundles(cluster)), "the caBundles", 15)
    with Load(cluster, RATE) as load:
        argo.forget("gpu-webhook")
        until(lambda: everything(cluster) == before, "nothing of it to be left", 90)
    print(f"while it is removed: {load}")  # noqa: T201 - pytest -s
    assert load.failed_calls() == {}, "a configuration that outlives its servers"


COMPARED: dict[str, tuple[dict[str, Any], str]] = {
    "by default": ({}, "OutOfSync"),
    "server-side": ({"annotations": SERVER_SIDE}, "Synced"),
    "without legacy words": (LEGACY, "Synced"),
}


@pytest.fixture(scope="module")
def repairing(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The webhook repairs templates, too."""
    folder = repository(
        tmp_path_factory.mktemp("own"),
        "[../manifests/workload-repair]",
        "workloads: {repair: true}\n",
    )
    cluster.install(folder / "cluster")
    until(lambda: all(bundles(cluster)), "the caBundles", 30)
    until(lambda: admit(cluster) == REPAIRED, "a repaired pod", 30)
    yield
    cluster.kubectl("delete", "--ignore-not-found", "-k", str(folder / "cluster"))


@pytest.mark.usefixtures("repairing")
@pytest.mark.parametrize(("spec", "shown"), COMPARED.values(), ids=COMPARED)
def test_a_repaired_workload_differs_by_default_and_not_with_the_recipes(
    spec: dict[str, Any],
    shown: str,
    cluster: RealCluster,
    argo: ArgoCD,
    tmp_path: Path,
) -> None:
    made = legacy_objects()
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(made))
    argo.follow("team", tmp_path, **spec)
    found = [cluster.client.get(each["kind"], each["metadata"]["name"], "default") for each in made]
    differ = argo.again("team")
    argo.forget("team")
    assert ALPHA not in str([each["spec"] for each in found])
    names = {f"{each['kind']}/{each['metadata']['name']}" for each in made}
    assert differ == (names if shown == "OutOfSync" else set())
