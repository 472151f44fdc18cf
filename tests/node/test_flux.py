"""docs/gitops.md with Flux's real kustomize-controller: what it applies, keeps and prunes."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import path_of, until
from tests.cluster.pods import ALPHA, alpha, named, pod
from tests.cluster.remains import everything
from tests.cluster.webhook import KINDS
from tests.cluster.workloads import made_by
from tests.node import operators
from tests.node.build import PAUSE, ROOT
from tests.node.cluster import RealCluster
from tests.node.flux import Flux
from tests.node.load import REPAIRED, Load, admit
from tests.node.network import own_network
from tests.node.test_chart import doctor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json

pytestmark = pytest.mark.operators

UNCHANGED = {"unchanged"}
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "CronJob")
RATE = 25.0


@pytest.fixture(scope="module")
def cluster(_possible: None) -> Iterator[RealCluster]:
    operators.demand("kustomize-controller")
    with own_network(RealCluster.host), RealCluster() as running:
        yield running


@pytest.fixture(scope="module")
def flux(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flux]:
    with Flux(cluster, tmp_path_factory.mktemp("flux")) as running:
        yield running


def repository(folder: Path, components: str = "[]", settings: str = "") -> Path:
    """A repository with our manifests as they are, and a kustomization of a user beside them."""
    shutil.copytree(ROOT / "manifests", folder / "manifests")
    own = folder / "cluster"
    own.mkdir()
    lines = f"resources: [../manifests/base]\ncomponents: {components}\n"
    if settings:
        (own / "settings.yaml").write_text(settings)
        lines += "configMapGenerator:\n- {name: gpu-webhook-settings, namespace: gpu-webhook, "
        lines += "behavior: replace, files: [settings.yaml], "
        lines += "options: {disableNameSuffixHash: true}}\n"
    (own / "kustomization.yaml").write_text(lines)
    return folder


def legacy_objects() -> list[Json]:
    """Workloads and a bare Pod, which all become ready."""
    spec = pod(alpha(1, image=PAUSE))
    return [*(made_by(kind, spec, 1) for kind in WORKLOADS), named(spec, "bare")]


def configurations(cluster: RealCluster) -> list[Json]:
    found = [each for kind in KINDS for each in cluster.client.list(kind)]
    return [each for each in found if each["metadata"]["name"].startswith("gpu-webhook")]


def bundles(cluster: RealCluster) -> list[str]:
    return [
        entry["clientConfig"].get("caBundle", "")
        for configuration in configurations(cluster)
        for entry in configuration["webhooks"]
    ]


def test_what_it_applies_stays_whole_and_is_removed(
    cluster: RealCluster, flux: Flux, tmp_path: Path
) -> None:
    before = everything(cluster)
    flux.offer("gpu-webhook", repository(tmp_path))
    flux.follow("gpu-webhook", "./manifests/base")
    until(lambda: all(bundles(cluster)), "the caBundles", 30)
    until(lambda: admit(cluster) == REPAIRED, "a repaired pod", 30)

    whole, whole_bundles = configurations(cluster), bundles(cluster)
    with Load(cluster, RATE) as load:
        done = [flux.again("gpu-webhook") for _ in range(3)]
        assert [{*each.values()} for each in done] == [UNCHANGED] * 3, done
        assert configurations(cluster) == whole

        path = path_of(KINDS[0], name="gpu-webhook")
        rules = [{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 7}]
        cluster.client.demand("PATCH", path, rules, media_type="application/json-patch+json")
        done = [flux.again("gpu-webhook"), flux.again("gpu-webhook")]
        assert done[0]["MutatingWebhookConfiguration/gpu-webhook"] == "configured"
        assert {*done[1].values()} == UNCHANGED
        assert bundles(cluster) == whole_bundles
        time.sleep(5)
    print(f"\nwhile Flux applies again: {load}")  # noqa: T201 - pytest -s
    assert (load.missed(), load.failed_calls()) == ([], {})
    status, said = doctor(cluster)
    assert status == 0, said

    cluster.kubectl("delete", "mutatingwebhookconfiguration", "gpu-webhook")
    assert flux.again("gpu-webhook")["MutatingWebhookConfiguration/gpu-webhook"] == "created"
    until(lambda: all(bundles(cluster)), "the caBundles", 10)
    until(lambda: admit(cluster) == REPAIRED, "a repaired pod", 10)

    with Load(cluster, RATE) as load:
        flux.forget("gpu-webhook")
        until(lambda: everything(cluster) == before, "nothing of it to be left", 90)
    print(f"while it is removed: {load}")  # noqa: T201 - pytest -s
    assert load.failed_calls() == {}, "a configuration that outlives its servers"


def test_repaired_workloads_show_no_drift(cluster: RealCluster, flux: Flux, tmp_path: Path) -> None:
    settings = "workloads: {repair: true}\n"
    components = "[../manifests/workload-repair]"
    folder = repository(tmp_path, components, settings)
    (folder / "team").mkdir()
    made = legacy_objects()
    for each in made:
        each["metadata"]["namespace"] = "default"
    (folder / "team" / "all.yaml").write_text(yaml.safe_dump_all(made))
    flux.offer("gpu-webhook", folder)
    flux.follow("gpu-webhook", "./cluster")
    until(lambda: all(bundles(cluster)), "the caBundles", 30)
    until(lambda: admit(cluster) == REPAIRED, "a repaired pod", 30)
    flux.offer("team", folder)
    flux.follow("team", "./team")
    stored = [
        cluster.client.get(each["kind"], each["metadata"]["name"], "default") for each in made
    ]
    done = [flux.again("team") for _ in range(2)]
    after = [cluster.client.get(each["kind"], each["metadata"]["name"], "default") for each in made]
    assert [{*each.values()} for each in done] == [UNCHANGED] * 2, done
    assert [each["spec"] for each in after] == [each["spec"] for each in stored]
    assert ALPHA not in str([each["spec"] for each in after])
    flux.forget("team")
    flux.forget("gpu-webhook")
