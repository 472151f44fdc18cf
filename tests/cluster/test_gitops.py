"""docs/gitops.md, tried: what Argo CD and Flux ask the API server, and what Argo CD leaves out."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.pods import AFFINITY, ALPHA, MODEL, expression, named, required
from tests.cluster.test_apply_twice import EVERYTHING
from tests.cluster.webhook import ROOT
from tests.cluster.workloads import made_by, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

PAGE = (ROOT / "docs" / "gitops.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
[COMMAND] = [shlex.split(text)[1:] for language, text in BLOCKS if language == "sh"]
IGNORED = next(
    ignored["jqPathExpressions"]
    for language, text in BLOCKS
    if language == "yaml"
    for ignored in yaml.safe_load(text).get("spec", {}).get("ignoreDifferences", [])
)
KINDS = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def repairing(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorder]:
    folder = tmp_path_factory.mktemp("gitops")
    with serving(cluster, folder, {"workloads": {"repair": True}}) as recorder:

        def is_repaired() -> bool:
            probe = cluster.client.create(
                made_by("Deployment", EVERYTHING, 0), "default", dry_run=True
            )
            return ALPHA not in json.dumps(probe.body["spec"])

        until(is_repaired, "the entry to be in force")
        yield recorder


def of_kind(kind: str) -> Json:
    return named(EVERYTHING, "bare") if kind == "Pod" else made_by(kind, EVERYTHING, 0)


def asked(cluster: ControlPlane, namespace: str, what: Json, manager: str, *without: str) -> Json:
    """Ask as the page says, for one of the tools; give the answer."""
    words = [re.sub(r"^--field-manager=.*", f"--field-manager={manager}", word) for word in COMMAND]
    words = ["-" if word == "FILE" else word for word in words if word not in without]
    done = cluster.try_kubectl("-n", namespace, *words, stdin=yaml.safe_dump(what))
    assert done.returncode == 0, done.stderr
    answer: Json = yaml.safe_load(done.stdout)
    return answer


def settled(what: Json) -> tuple[Json, Json]:
    """Give what a tool compares: the spec, and the annotations that are not the control plane's."""
    spec = {key: value for key, value in what["spec"].items() if key != "nodeName"}
    annotations = what["metadata"].get("annotations", {})
    return spec, {k: v for k, v in annotations.items() if not k.startswith("deployment.")}


@pytest.mark.usefixtures("repairing")
@kinds
@pytest.mark.parametrize("manager", ["argocd-controller", "kustomize-controller"])
def test_a_dry_run_shows_what_is_stored(
    kind: str, manager: str, cluster: ControlPlane, namespace: str
) -> None:
    what = of_kind(kind)
    asked(cluster, namespace, what, manager, "--dry-run=server")
    live = cluster.client.get(kind, what["metadata"]["name"], namespace)

    answer = asked(cluster, namespace, what, manager)
    asked(cluster, namespace, what, manager, "--dry-run=server")
    after = cluster.client.get(kind, what["metadata"]["name"], namespace)

    assert settled(answer) == settled(live) == settled(after)
    assert ALPHA not in json.dumps(live["spec"])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("Pod", "CronJob")])
def test_what_argo_cd_leaves_out_is_all_that_is_legacy(kind: str) -> None:
    """A manifest without these paths has no word left that the cluster would not show."""
    if shutil.which("jq") is None:
        pytest.fail("jq is not installed", pytrace=False)
    affinity = json.dumps(required(expression(MODEL, "In", "Tesla K80")))
    what = made_by(kind, EVERYTHING, 0)
    template = what["spec"]["template"]
    template["metadata"]["annotations"] = {AFFINITY: affinity}
    for member in ("volumes", "tolerations"):
        template["spec"].pop(member)
    program = " | ".join(f"del({each})" for each in IGNORED)
    done = subprocess.run(
        ["jq", "-c", program], input=json.dumps(what), capture_output=True, text=True, check=True
    )
    left = json.loads(done.stdout)["spec"]["template"]
    assert ALPHA not in done.stdout
    assert left["metadata"]["annotations"] == {}
    assert left["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
