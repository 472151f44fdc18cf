"""`gpu-webhook scan --cluster` against a real API server: what is found where, and whose it is."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.pods import alpha, container, modern, named, pod
from tests.cluster.workloads import made_by
from webhook.cli.main import main
from webhook.cluster import listing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane

KINDS = (
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "ReplicationController",
    "Job",
    "CronJob",
    "PodTemplate",
)


def scan(cluster: ControlPlane, *words: str) -> int:
    return main(["scan", "--cluster", f"--kubeconfig={cluster.kubeconfig}", *words])


def found(out: str) -> dict[str, list[dict[str, Any]]]:
    """The findings by path, of a report in JSON."""
    return {each["path"]: each["findings"] for each in json.loads(out)["files"]}


def apply(cluster: ControlPlane, namespace: str, obj: dict[str, Any], *words: str) -> None:
    cluster.kubectl("apply", "-n", namespace, "-f", "-", *words, stdin=yaml.safe_dump(obj))


def test_every_kind_is_found_once_and_what_it_made_is_left_out(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in KINDS:
        apply(cluster, namespace, made_by(kind, pod(alpha(1))))
    cluster.client.create(named(pod(alpha(1)), "by-hand"), namespace)
    until(lambda: len(cluster.client.list("Pod", namespace)) >= 10, "pods of the workloads")
    assert scan(cluster, "-n", namespace, "-o", "json") == 2
    out, err = capsys.readouterr()
    assert err == ""
    notices = {
        (path, each["code"])
        for path, findings in found(out).items()
        for each in findings
        if each["status"] == "notice"
    }
    statuses = {each["status"] for findings in found(out).values() for each in findings}
    assert statuses == {"fixable", "notice"}
    assert (f"{namespace}/DaemonSet/daemonset-of-gpu-pods", "GPU110") in notices, "selects no nodes"
    assert set(found(out)) == {
        f"{namespace}/Pod/by-hand",
        *(f"{namespace}/{kind}/{kind.lower()}-of-gpu-pods" for kind in KINDS),
    }
    for path, findings in found(out).items():
        assert "GPU101" in {each["code"] for each in findings}, path


def test_legacy_objects_are_counted_apart(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An image that is gone, or a privileged container, is no word of Kubernetes 1.3-1.10."""
    apply(cluster, namespace, made_by("StatefulSet", pod(alpha(1)), 0))
    gone = pod(modern(image="gcr.io/google_containers/cuda-vector-add:v0.1"))
    privileged = pod(modern(securityContext={"privileged": True}))
    for name, what in (("gone", gone), ("privileged", privileged)):
        made = made_by("Job", what, 0)
        made["metadata"]["name"] = name
        apply(cluster, namespace, made)
    note = {"gpu-webhook.dev/repaired": "GPU101,GPU201"}
    cluster.client.create(named(pod(modern(1), annotations=note), "by-a-program"), namespace)
    cluster.client.create(named(pod(modern(1)), "modern"), namespace)
    scan(cluster, "-n", namespace)
    last = capsys.readouterr().out.splitlines()[-1]
    # The client sent the note itself, so it says nothing of how its pod came.
    assert last.startswith("1 of 5 objects are legacy; 2 more have other findings: "), last
    cluster.client.delete("StatefulSet", "statefulset-of-gpu-pods", namespace)
    scan(cluster, "-n", namespace)
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 of 4 objects are legacy; 2 more")


def test_pages_say_the_same(
    cluster: ControlPlane,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(5):
        cluster.client.create(named(pod(alpha(1)), f"p-{number}"), namespace)
    scan(cluster, "-n", namespace, "-o", "json")
    whole = capsys.readouterr().out
    monkeypatch.setattr(listing, "MOST_OBJECTS", 2)
    scan(cluster, "-n", namespace, "-o", "json")
    assert capsys.readouterr().out == whole
    assert len(found(whole)) == 5


def test_what_was_applied_is_judged_and_not_what_the_server_made_of_it(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Written by `kubectl edit`, it is fine now; applied again, it is not."""
    for name, words in (("client-side", ()), ("server-side", ("--server-side",))):
        obj = made_by("Deployment", pod(alpha(1)))
        obj["metadata"]["name"] = name
        apply(cluster, namespace, obj, *words)
    scan(cluster, "-n", namespace, "-o", "json")
    report = json.loads(capsys.readouterr().out)
    for each in report["files"]:
        assert "-        terminationMessagePath" not in each["diff"]
        assert "imagePullPolicy" not in each["diff"], "a default that nobody wrote"
    mended = {"alpha.kubernetes.io/nvidia-gpu": None, "nvidia.com/gpu": "1"}
    container = {"name": "main", "resources": {"limits": mended, "requests": mended}}
    spec = {"template": {"spec": {"containers": [container]}}}
    cluster.kubectl(
        "patch",
        "deployment",
        "client-side",
        f"--namespace={namespace}",
        "--field-manager=kubectl-edit",
        f"--patch={json.dumps({'spec': spec})}",
    )
    scan(cluster, "-n", namespace)
    out = capsys.readouterr().out
    assert f"{namespace}/Deployment/client-side\n" in out
    assert "Deployment/client-side (last written by kubectl-edit)" in out


def test_what_was_changed_by_hand_is_found_too(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    apply(cluster, namespace, made_by("Deployment", pod(container())))
    limits = {"limits": {"alpha.kubernetes.io/nvidia-gpu": "1"}}
    spec = {"template": {"spec": {"containers": [{"name": "main", "resources": limits}]}}}
    cluster.kubectl(
        "patch",
        "deployment/deployment-of-gpu-pods",
        f"--namespace={namespace}",
        f"--patch={json.dumps({'spec': spec})}",
    )
    assert scan(cluster, "-n", namespace) == 2
    assert "in the live object only, not in what was applied" in capsys.readouterr().out


def test_who_must_change_it_is_named(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    release = {"meta.helm.sh/release-name": "train", "meta.helm.sh/release-namespace": namespace}
    flux = "kustomize.toolkit.fluxcd.io"
    marks: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
        "helm": (
            {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "train-1.2.0"},
            release,
            f"Helm release train in {namespace} (chart train-1.2.0)",
        ),
        "argo": ({"argocd.argoproj.io/instance": "gpu"}, {}, "Argo CD application gpu"),
        "flux": (
            {f"{flux}/name": "apps", f"{flux}/namespace": "flux-system"},
            {},
            "Flux Kustomization flux-system/apps",
        ),
        "nobody": ({}, {}, "Deployment/nobody (last written by kubectl-client-side-apply)"),
    }
    for name, (labels, notes, _) in marks.items():
        obj = made_by("Deployment", pod(alpha(1)))
        obj["metadata"] = {"name": name, "labels": labels, "annotations": notes}
        apply(cluster, namespace, obj)
    assert scan(cluster, "-n", namespace) == 2
    out = capsys.readouterr().out
    for name, (_, _, owner) in marks.items():
        assert f"{namespace}/Deployment/{name}\n  to be changed: {owner}\n" in out
    scan(cluster, "-n", namespace, "-o", "json")
    messages = [
        each["message"] for each in found(capsys.readouterr().out)[f"{namespace}/Deployment/argo"]
    ]
    assert all(each.endswith("; to be changed: Argo CD application gpu") for each in messages)


@pytest.fixture
def custom_kinds(cluster: ControlPlane, namespace: str) -> Iterator[None]:
    """Two kinds of objects: one with a known pod template, one that only makes pods."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = (("kubeflow.org", "TFJob", "tfjobs"), ("example.org", "Runner", "runners"))
    for group, kind, plural in names:
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
        }
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [version],
            },
        }
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(definition))
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{plural}.{group}")
    until(
        lambda: cluster.try_kubectl("get", "tfjobs,runners", f"-n={namespace}").returncode == 0,
        "the custom kinds",
    )
    time.sleep(0.5)  # discovery lags behind
    yield
    for group, _, plural in names:
        cluster.kubectl("delete", "crd", f"{plural}.{group}")


@pytest.mark.usefixtures("custom_kinds")
def test_custom_kinds_with_templates_and_pods_of_kinds_that_nobody_knows(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    template = {"spec": pod(alpha(1))["spec"]}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "train"},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}},
    }
    runner = {"apiVersion": "example.org/v1", "kind": "Runner", "metadata": {"name": "r"}}
    apply(cluster, namespace, job)
    apply(cluster, namespace, runner)
    made = cluster.client.demand(
        "GET", f"apis/example.org/v1/namespaces/{namespace}/runners/r"
    ).body
    owner = {
        "apiVersion": "example.org/v1",
        "kind": "Runner",
        "name": "r",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    for number in range(3):
        owned = named(pod(alpha(1)), f"r-{number}")
        owned["metadata"]["ownerReferences"] = [owner]
        cluster.client.create(owned, namespace)
    assert scan(cluster, "-n", namespace) == 2
    out = capsys.readouterr().out
    assert f"{namespace}/TFJob/train\n" in out
    assert f"{namespace}/Pod/r-0 and 2 more alike\n  to be changed: Runner/r" in out
    assert "4 of " in out.splitlines()[-1]


def test_all_namespaces_and_a_selector(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = cluster.make_namespace(f"{namespace[:40]}-other")
    for where, name in ((namespace, "a"), (other, "b")):
        chosen = named(pod(alpha(1)), name)
        chosen["metadata"]["labels"] = {"scan": "chosen"}
        cluster.client.create(chosen, where)
    cluster.client.create(named(pod(alpha(1)), "c"), namespace)
    assert scan(cluster, "-A", "-l", "scan=chosen", "-o", "json") == 2
    paths = {f"{namespace}/Pod/a", f"{other}/Pod/b"}
    assert set(found(capsys.readouterr().out)) == paths
    cluster.client.delete_all("Pod", other)


def test_the_namespace_is_that_of_the_context(
    cluster: ControlPlane,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.client.create(named(pod(alpha(1)), "p"), namespace)
    config = json.loads(cluster.kubeconfig.read_bytes())
    context = config["contexts"][0]["context"]
    config["contexts"].append({"name": "here", "context": {**context, "namespace": namespace}})
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    words = ["scan", "--cluster", f"--kubeconfig={file}", "-o", "json"]
    main(words)
    assert f"{namespace}/Pod/p" not in found(capsys.readouterr().out)
    assert main([*words, "--context=here"]) == 2
    assert set(found(capsys.readouterr().out)) == {f"{namespace}/Pod/p"}


def test_what_may_not_be_listed_is_an_error_and_the_rest_is_done(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.client.create(named(pod(alpha(1)), "p"), namespace)
    bob = cluster._write_kubeconfig("bob", cluster.authority.client("bob"))
    words = (f"--namespace={namespace}",)
    cluster.kubectl("create", "role", "pods-only", "--verb=list", "--resource=pods", *words)
    cluster.kubectl("create", "rolebinding", "bob", "--role=pods-only", "--user=bob", *words)
    assert main(["scan", "--cluster", f"--kubeconfig={bob}", *words]) == 1
    out = capsys.readouterr().out
    assert f"{namespace}/Pod/p\n" in out
    assert "Deployments are not checked: the API server answered 403" in out


def test_no_answer_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
        "current-context": "c",
    }
    file = tmp_path / "config"
    file.write_text(json.dumps(nowhere))
    assert main(["scan", "--cluster", f"--kubeconfig={file}"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "no answer from the API server" in err
    assert err.count("\n") == 1


def test_the_cluster_is_only_read(cluster: ControlPlane, namespace: str) -> None:
    apply(cluster, namespace, made_by("Deployment", pod(alpha(1))))

    def generation() -> Any:
        return cluster.client.get("Deployment", "deployment-of-gpu-pods", namespace)["metadata"][
            "generation"
        ]

    before = generation()
    scan(cluster, "-n", namespace)
    assert generation() == before
