"""`gpu-webhook scan --cluster` of what the API server and its controllers filled in by themselves.

Each kind that it reads, created in each way that there is: nothing is found in a modern object, and
a legacy one is named with GPU101 and with who must change it, whether or not it was repaired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.pods import ALPHA, NVIDIA, alpha, container, modern, named, pod
from tests.cluster.test_scan_cluster import KINDS, apply, found, scan
from tests.cluster.workloads import made_by
from webhook.cluster import objects
from webhook.files.results import MANUAL

if TYPE_CHECKING:
    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

ARGO = ("--server-side", "--force-conflicts", "--field-manager=argocd-controller")
WAYS: dict[str, tuple[str, ...]] = {
    "client-side apply": ("apply",),
    "server-side apply": ("apply", *ARGO),
    "create": ("create",),
    "create --save-config": ("create", "--save-config"),
}
ways = pytest.mark.parametrize("words", WAYS.values(), ids=WAYS.keys())


def of_amounts(resource: str) -> list[Json]:
    """Give the objects that name a resource and have no pod."""
    quota = {"hard": {f"requests.{resource}": "8", "pods": "100"}}
    limits = {"type": "Container", "max": {resource: "8"}, "default": {"cpu": "1"}}
    return [
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": f"{kind.lower()}-of-gpus"},
            "spec": spec,
        }
        for kind, spec in (("ResourceQuota", quota), ("LimitRange", {"limits": [limits]}))
    ]


def of_every_kind(main: Json, resource: str) -> list[Json]:
    return [
        named(pod(main), "by-hand"),
        *(made_by(kind, pod(main)) for kind in KINDS),
        *of_amounts(resource),
    ]


def make(cluster: ControlPlane, namespace: str, made: list[Json], words: tuple[str, ...]) -> None:
    """Create these objects, and wait until their controllers have done their part."""
    text = yaml.safe_dump_all(made)
    cluster.kubectl(words[0], "-n", namespace, *words[1:], "-f", "-", stdin=text)
    pods = 2 * len({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job"})
    until(lambda: len(cluster.client.list("Pod", namespace)) >= pods, "pods of the workloads")
    deployment = "deployment-of-gpu-pods"
    revision = "deployment.kubernetes.io/revision"
    until(
        lambda: (
            revision
            in cluster.client.get("Deployment", deployment, namespace)["metadata"]["annotations"]
        ),
        "the annotation of the deployment controller",
    )


def test_every_kind_that_is_read_is_tried() -> None:
    assert {made["kind"] for made in of_every_kind(modern(), NVIDIA)} == {
        kind for _, kind in objects.KINDS
    }


@ways
@pytest.mark.parametrize("main", [modern(), container()], ids=["of GPUs", "of no GPU"])
def test_nothing_is_found_in_modern_objects(
    main: Json,
    words: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(cluster, namespace, of_every_kind(main, NVIDIA), words)
    exit_code = scan(cluster, "-n", namespace)
    out = capsys.readouterr().out
    assert "\n" not in out.strip(), out
    assert out.startswith("0 of "), out
    assert exit_code == 0


def test_nothing_is_found_after_what_kubectl_does_to_them(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Among it the Job that was read from the API server and applied as it was read."""
    make(cluster, namespace, of_every_kind(modern(), NVIDIA), ("apply",))
    at = ("-n", namespace)
    for kind in ("deployment", "statefulset", "daemonset"):
        cluster.kubectl("rollout", "restart", f"{kind}/{kind}-of-gpu-pods", *at)
    cluster.kubectl("set", "image", "deployment/deployment-of-gpu-pods", "main=other", *at)
    cluster.kubectl("create", "job", "by-hand", "--image=i", *at)
    cluster.kubectl("create", "job", "again", "--from=cronjob/cronjob-of-gpu-pods", *at)
    for words in (("apply",), ("apply", *ARGO)):
        read = cluster.client.get("Job", "by-hand", namespace)
        read["metadata"].pop("managedFields", None)
        cluster.kubectl(words[0], *at, *words[1:], "-f", "-", stdin=yaml.safe_dump(read))
    exit_code = scan(cluster, *at)
    out = capsys.readouterr().out
    assert out.startswith("0 of "), out
    assert exit_code == 0


def test_a_job_that_selects_its_pods_by_itself_is_not_legacy(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = made_by("Job", pod(modern()))
    made["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {"app": "by-hand"}}}
    made["spec"]["template"]["metadata"]["labels"] = {"app": "by-hand"}
    apply(cluster, namespace, made)
    assert scan(cluster, "-n", namespace) == 0, capsys.readouterr().out


def legacy_findings(out: str, namespace: str) -> dict[str, set[str]]:
    """Give the codes of each object without its namespace."""
    return {
        path.removeprefix(f"{namespace}/"): {each["code"] for each in findings}
        for path, findings in found(out).items()
    }


def names_of(made: list[Json]) -> set[str]:
    return {f"{each['kind']}/{each['metadata']['name']}" for each in made}


@ways
def test_legacy_objects_are_named_with_their_owner(
    words: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = of_every_kind(alpha(), ALPHA)
    make(cluster, namespace, made, words)
    assert_named(cluster, namespace, made, capsys)


def assert_named(
    cluster: ControlPlane,
    namespace: str,
    made: list[Json],
    capsys: pytest.CaptureFixture[str],
) -> None:
    exit_code = scan(cluster, "-n", namespace, "-o", "json")
    out = capsys.readouterr().out
    codes = legacy_findings(out, namespace)
    assert codes.keys() == names_of(made)
    templates = {name for name in codes if not name.startswith(("ResourceQuota", "LimitRange"))}
    for name in templates:
        assert "GPU101" in codes[name], name
        assert "GPU121" not in codes[name], name
    for path, findings in found(out).items():
        owner = path.removeprefix(f"{namespace}/")
        for each in findings:
            assert f"; to be changed: {owner} (last written by " in each["message"], path
    assert exit_code == MANUAL, "the LimitRange"
    scan(cluster, "-n", namespace)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{len(made)} of "), last
    assert "came legacy" not in last
