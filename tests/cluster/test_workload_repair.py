"""Templates are repaired where the settings say so; the tools that apply them must not fight it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.pods import ALPHA, NVIDIA, alpha, pod
from tests.cluster.workloads import made_by, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder


@pytest.fixture(scope="module")
def repairing(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorder]:
    folder = tmp_path_factory.mktemp("repairing")
    with serving(cluster, folder, {"workloads": {"repair": True}}) as recorder:
        until(lambda: _is_repaired(cluster), "the entry to be in force")
        yield recorder


def _is_repaired(cluster: ControlPlane) -> bool:
    probe = made_by("Deployment", pod(alpha()), 0)
    return NVIDIA in _limits(cluster.client.create(probe, "default", dry_run=True).body)


REPAIRED = "gpu-webhook.dev/repaired"


def _limits(workload: Json) -> Json:
    limits: Json = workload["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    return limits


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job"])
@pytest.mark.parametrize("side", [(), ("--server-side",)], ids=["client side", "server side"])
def test_applying_the_legacy_manifest_again_changes_nothing(
    kind: str, side: tuple[str, ...], cluster: ControlPlane, namespace: str, repairing: Recorder
) -> None:
    what = made_by(kind, pod(alpha()), 0)
    name = what["metadata"]["name"]
    apply = (f"--namespace={namespace}", "apply", *side, "-f", "-")

    first = cluster.try_kubectl(*apply, stdin=yaml.safe_dump(what))
    made = cluster.client.get(kind, name, namespace)
    second = cluster.try_kubectl(*apply, stdin=yaml.safe_dump(what))
    after = cluster.client.get(kind, name, namespace)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert f"GPU101: container main asks for {ALPHA}" in first.stderr
    assert "[enforce: repaired]" in first.stderr
    assert _limits(made) == _limits(after) == {NVIDIA: "1"}
    assert made["metadata"]["generation"] == after["metadata"]["generation"]
    for each in (made, after):
        assert each["metadata"]["annotations"][REPAIRED] == "GPU101,GPU201"
        assert REPAIRED not in each["spec"]["template"]["metadata"].get("annotations", {})
    assert repairing.calls(namespace, path="/mutate")
