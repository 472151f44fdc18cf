"""Unchanged manifests of workloads change nothing: a taint went away, another manager migrated."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.conftest import INVENTORY, until_templates_are_repaired
from tests.cluster.pods import (
    ALPHA,
    MODEL,
    NVIDIA,
    PRODUCT,
    alpha,
    expression,
    modern,
    pod,
    required,
)
from tests.cluster.workloads import DEFINITIONS, definition, made_by, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

GPU_TAINT = {"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}
OWN = {"key": "dedicated", "operator": "Exists"}
SIDES = {
    "client": ("apply",),
    "server": ("apply", "--server-side", "--force-conflicts", "--field-manager=flux"),
}
CUSTOM = {
    "Job": ("batch.volcano.sh", "jobs"),
    "JobSet": ("jobset.x-k8s.io", "jobsets"),
    "RayCluster": ("ray.io", "rayclusters"),
}
REPAIR: Json = {
    "workloads": {
        "repair": True,
        "kinds": [{"kind": kind, "group": group} for kind, (group, _) in CUSTOM.items()],
    }
}


def of_kind(kind: str, made: Json, name: str) -> Json:
    """Give a workload whose templates are in a list; and a Deployment, whose are not."""
    template = {"spec": copy.deepcopy(made["spec"])}
    if kind == "Deployment":
        workload = made_by(kind, made, 0)
        workload["metadata"]["name"] = name
        del workload["spec"]["template"]["metadata"]["annotations"]
        return workload
    specs: dict[str, Any] = {
        "Job": {"tasks": [{"name": "a", "replicas": 1, "template": template}]},
        "JobSet": {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": template}}}]},
        "RayCluster": {
            "headGroupSpec": {"template": template},
            "workerGroupSpecs": [{"groupName": "a", "template": template}],
        },
    }
    group = CUSTOM[kind][0]
    metadata = {"name": name}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": specs[kind]}


def is_served(cluster: ControlPlane, at: str) -> bool:
    return cluster.client.request("GET", at).ok


@pytest.fixture(scope="module")
def _definitions(cluster: ControlPlane) -> Iterator[None]:
    made = [definition(kind, group, plural) for kind, (group, plural) in CUSTOM.items()]
    for each in made:
        cluster.client.demand("POST", DEFINITIONS, each)
    for group, plural in CUSTOM.values():
        at = f"apis/{group}/v1/namespaces/default/{plural}"
        until(partial(is_served, cluster, at), plural)
    yield
    for each in made:
        cluster.client.demand("DELETE", f"{DEFINITIONS}/{each['metadata']['name']}")


@contextmanager
def server(
    cluster: ControlPlane, folder: Path, settings: Json, inventory: Path = INVENTORY
) -> Iterator[None]:
    folder.mkdir()
    with serving(cluster, folder, settings, inventory):
        until_templates_are_repaired(cluster)
        yield


@pytest.mark.usefixtures("_definitions")
def test_a_toleration_that_was_added_stays_after_its_taint(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    pods = {
        "modern": pod(modern(1)),
        "legacy": pod(alpha(1)),
        "own": pod(modern(1), tolerations=[OWN]),
    }
    workloads = {
        f"{kind}-{name}-{side}".lower(): (of_kind(kind, each, f"{name}-{side}"), SIDES[side])
        for kind in (*CUSTOM, "Deployment")
        for name, each in pods.items()
        for side in SIDES
    }

    def applied() -> dict[str, Json]:
        found = {}
        for name, (workload, apply) in workloads.items():
            text = yaml.safe_dump(workload)
            done = cluster.try_kubectl("-n", namespace, *apply, "-f", "-", stdin=text)
            assert done.returncode == 0, done.stderr
            kind, called = workload["kind"], workload["metadata"]["name"]
            group, plural = CUSTOM.get(kind, ("apps", "deployments"))
            at = f"apis/{group}/v1/namespaces/{namespace}/{plural}/{called}"
            live: Json = cluster.client.demand("GET", at).body
            found[name] = {"spec": live["spec"], "generation": live["metadata"]["generation"]}
        return found

    untainted = tmp_path / "untainted.yaml"
    nodes = yaml.safe_load(INVENTORY.read_text())
    for each in nodes["items"]:
        each["spec"].pop("taints", None)
    untainted.write_text(yaml.safe_dump(nodes))
    warns = {**REPAIR, "policy": {"rules": {"GPU201": "warn"}}}

    with server(cluster, tmp_path / "tainted", REPAIR):
        first = applied()
        assert applied() == first
    with server(cluster, tmp_path / "warns", warns):
        assert applied() == first
    with server(cluster, tmp_path / "untainted", REPAIR, untainted):
        assert applied() == first
    for name, each in first.items():
        assert "nvidia.com/gpu', 'operator': 'Exists'" in str(each), name


WORDS: dict[str, Json] = {
    "nodeSelector": {"nodeSelector": {MODEL: "Tesla-K80"}},
    "In": {"affinity": required(expression(MODEL, "In", "Tesla-K80"))},
    "NotIn": {"affinity": required(expression(MODEL, "NotIn", "Tesla-K80"))},
}


@pytest.mark.parametrize("legacy", [{ALPHA: "1"}, {ALPHA: "1", NVIDIA: "1"}], ids=["one", "both"])
@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_the_words_of_one_manager_stay_translated_where_the_other_migrates(
    words: Json,
    legacy: Json,
    cluster: ControlPlane,
    namespace: str,
    tmp_path: Path,
) -> None:
    at = f"apis/apps/v1/namespaces/{namespace}/deployments/train"
    names: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "train"}}
    choice = {**names, "spec": {"template": {"spec": words}}}

    def of_amount(limits: Json) -> Json:
        main = {"name": "main", "image": "pause", "resources": {"limits": limits}}
        workload = made_by("Deployment", pod(main), 0) | names
        del workload["spec"]["template"]["metadata"]["annotations"]
        return workload

    def applied(manifest: Json, manager: str) -> Json:
        answer = cluster.client.demand(
            "PATCH",
            at,
            manifest,
            query={"fieldManager": manager},
            media_type="application/apply-patch+yaml",
        )
        template: Json = answer.body["spec"]["template"]
        return template

    with server(cluster, tmp_path / "repairs", REPAIR):
        applied(of_amount(legacy), "flux")
        first = applied(choice, "platform")
        assert f"'{ALPHA}'" not in str(first)
        assert PRODUCT in str(first)
        for limits in (legacy, {NVIDIA: "1"}, {NVIDIA: "1"}):
            assert applied(of_amount(limits), "flux") == first
            assert applied(choice, "platform") == first
