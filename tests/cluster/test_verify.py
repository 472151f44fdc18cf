"""`gpu-webhook verify --server`: the real API server writes the defaults of both sides."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.cases import cases
from tests.cluster import build
from tests.verifying.proofs import compared, is_done, migrated, plan_of
from tests.verifying.test_mutants import mutants, objects_of
from tests.verifying.test_normal_form import GPU, GPU_TAINT, LEGACY, asking, deployment, pod, policy
from webhook.cli import verify
from webhook.cli.main import main
from webhook.core.settings import Settings
from webhook.verifying.comparison import Result

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane
    from webhook.verifying.comparison import Store

    Raw = dict[str, Any]

CURRENT = pod({"resources": {"limits": {GPU: 1}}}, tolerations=[GPU_TAINT])


def pod_with(**spec: Any) -> Raw:
    return {**CURRENT, "spec": {**CURRENT["spec"], **spec}}


@pytest.fixture
def store(cluster: ControlPlane) -> Store:
    return verify.store(str(cluster.kubeconfig), None, Settings())


def results(old: Raw, new: Raw, store: Store) -> list[tuple[Result, str]]:
    return [(each.result, each.why) for each in compared([old], [new], store=store)]


def test_the_whole_corpus(
    store: Store, cluster: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that `migrate` calls done differs with all defaults."""
    counts: Counter[Result] = Counter()
    for case in cases():
        plan = plan_of(case)
        result, new = migrated(case.file, plan)
        if not is_done(result):
            continue
        old, made = objects_of(case.file.read_bytes()), objects_of(new)
        for each in old:
            named = {"metadata": {"name": each["metadata"].get("namespace", "default")}}
            cluster.client.try_create({"apiVersion": "v1", "kind": "Namespace", **named})
        for found in compared(old, made, plan, store):
            counts[found.result] += 1
            if found.result is not Result.EQUAL:
                with capsys.disabled():
                    print(f"\n{case}: {found.result}: {found.why}")  # noqa: T201
                assert found.result is Result.NOT_PROVABLE, found.diff
    assert counts[Result.EQUAL] >= 30
    assert counts[Result.NOT_PROVABLE] <= 8


PORT = {"name": "p", "containerPort": 80}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {"template": {"spec": {**CURRENT["spec"], "restartPolicy": "Never"}}},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s"},
    "spec": {"type": "NodePort", "ports": [{"port": 80}]},
}
ONLY_WITH_THE_SERVER: dict[str, tuple[Raw, Raw]] = {
    "a default of pods": (CURRENT, pod_with(restartPolicy="Always")),
    "a default of ports": (
        pod({"ports": [PORT]}),
        pod({"ports": [{**PORT, "protocol": "TCP"}]}),
    ),
    "a default of policies": (
        policy(ingress=[{"ports": [{"port": 1}]}]),
        policy(ingress=[{"ports": [{"port": 1, "protocol": "TCP"}]}]),
    ),
}


@pytest.mark.parametrize(("old", "new"), ONLY_WITH_THE_SERVER.values(), ids=ONLY_WITH_THE_SERVER)
def test_defaults_that_only_the_server_knows(old: Raw, new: Raw, store: Store) -> None:
    assert [each.result for each in compared([old], [new])] == [Result.DIFFERENT]
    assert results(old, new, store) == [(Result.EQUAL, "")]


@pytest.mark.parametrize("obj", [JOB, SERVICE, CURRENT, deployment()], ids=lambda e: str(e["kind"]))
def test_what_the_server_draws_at_random_does_not_differ(obj: Raw, store: Store) -> None:
    assert results(obj, obj, store) == [(Result.EQUAL, "")]


def test_each_mutant_differs_or_is_refused(store: Store) -> None:
    """A pod that is migrated, with one place changed: as without a server."""
    old = asking({LEGACY: 2}, {"cpu": 1})
    new = pod({"resources": {"limits": {GPU: 2}, "requests": {"cpu": 1}}}, tolerations=[GPU_TAINT])
    assert results(old, new, store) == [(Result.EQUAL, "")]
    made = dict(mutants(new))
    left = {
        what
        for what, each in made.items()
        if {result for result, _ in results(old, each, store)} == {Result.EQUAL}
    }
    assert left == set()
    assert len(made) >= 25


def test_an_object_that_is_there_already(
    store: Store, cluster: ControlPlane, namespace: str
) -> None:
    there = {**CURRENT, "metadata": {"name": "p", "namespace": namespace}}
    cluster.client.create(there, namespace)
    legacy = asking({LEGACY: 1})
    legacy["metadata"]["namespace"] = namespace
    assert results(legacy, there, store) == [(Result.EQUAL, "")]
    assert results(legacy, legacy, store)[0][0] is Result.DIFFERENT


@pytest.mark.usefixtures("webhook")
def test_an_installed_webhook_hides_nothing(store: Store) -> None:
    legacy = asking({LEGACY: 1})
    assert results(legacy, CURRENT, store) == [(Result.EQUAL, "")]
    assert results(legacy, asking({GPU: 1}), store) == [
        (Result.DIFFERENT, "spec.tolerations (changed by GPU201)")
    ]


def test_what_the_server_refuses(store: Store) -> None:
    bad = pod({"resources": {"limits": {GPU: "half"}}})
    ((result, why),) = results(bad, bad, store)
    assert result is Result.NOT_PROVABLE
    unknown = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}}
    assert results(unknown, unknown, store) == [
        (Result.NOT_PROVABLE, "the API server refuses it: it serves no Thing of x.io/v1")
    ]
    assert why


TEMPLATED = """\
apiVersion: extensions/v1beta1
kind: Deployment
metadata: {name: {{ .Release.Name }}-d}
spec:
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - name: c
        image: i
        resources:
          limits:
            alpha.kubernetes.io/nvidia-gpu: {{ .Values.gpus }}
"""
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n",
    "values.yaml": "gpus: 2\n",
    "templates/a.yaml": TEMPLATED,
}
KUSTOMIZATION = {
    "kustomization.yaml": "resources: [pod.json]\nnamePrefix: a-\n",
    "pod.json": json.dumps(asking({LEGACY: 1})),
}


@pytest.mark.parametrize("files", [CHART, KUSTOMIZATION], ids=["helm", "kubectl kustomize"])
def test_charts_and_kustomizations_by_their_own_programs(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What migrate writes is equal; another number of GPUs is not."""
    monkeypatch.setenv("PATH", f"{build.helm().parent}:{os.environ['PATH']}")
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    assert main(["verify", str(old), str(old)]) == 2
    assert main(["migrate", "--write", "-R", str(new)]) == 0
    assert main(["verify", str(old), str(new)]) == 0
    changed = new / ("values.yaml" if files is CHART else "pod.json")
    changed.write_text(changed.read_text().replace("2", "3").replace('gpu": 1', 'gpu": 2'))
    assert main(["verify", str(old), str(new)]) == 2


def test_the_command(cluster: ControlPlane, tmp_path: Path) -> None:
    for name, obj in (("old", asking({LEGACY: 1})), ("new", pod_with(restartPolicy="Always"))):
        (tmp_path / f"{name}.json").write_text(json.dumps(obj))
    files = [str(tmp_path / f"{name}.json") for name in ("old", "new")]
    where = f"--kubeconfig={cluster.kubeconfig}"
    assert main(["verify", *files]) == 2
    assert main(["verify", "--server", where, *files]) == 0
    assert main(["verify", "--server", where, "--context=nowhere", *files]) == 1


def test_an_unknown_field_is_refused(store: Store) -> None:
    """Without strict validation the API server drops it from both."""
    obj = pod_with(hostNetwrk=True)
    (found,) = compared([obj], [obj], store=store)
    assert found.result is Result.NOT_PROVABLE
    assert 'unknown field "spec.hostNetwrk"' in found.why
