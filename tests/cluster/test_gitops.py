"""docs/gitops.md, tried: what Argo CD and Flux ask the API server, and what Argo CD leaves out."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.pods import AFFINITY, ALPHA, MODEL, TOLERATIONS, expression, named, required
from tests.cluster.test_apply_twice import EVERYTHING
from tests.cluster.webhook import ROOT
from tests.cluster.workloads import made_by

if TYPE_CHECKING:
    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

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
SECTIONS = ("limits", "requests")
kinds = pytest.mark.parametrize("kind", KINDS)


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


def without_ignored(what: Json) -> Json:
    """Give the object as Argo CD compares it."""
    if shutil.which("jq") is None:
        pytest.fail("jq is not installed", pytrace=False)
    program = " | ".join(f"del({each})" for each in IGNORED)
    done = subprocess.run(
        ["jq", "-c", program], input=json.dumps(what), capture_output=True, text=True, check=True
    )
    left: Json = json.loads(done.stdout)
    return left


def differences(wanted: Any, live: Any, at: str = "") -> list[str]:
    """Where the manifest says something that is not so in the cluster."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return [
            each
            for key, value in wanted.items()
            for each in differences(value, live.get(key), f"{at}/{key}")
        ]
    if isinstance(wanted, list) and all("name" in each for each in wanted):  # merged by their names
        named = {each["name"]: each for each in live or ()}
        return [
            each
            for item in wanted
            for each in differences(item, named.get(item["name"]), f"{at}/{item['name']}")
        ]
    return [] if str(wanted) == str(live) or (not wanted and not live) else [at]


@pytest.mark.usefixtures("repairing")
@kinds
def test_what_argo_cd_leaves_out_is_all_that_is_legacy(
    kind: str, cluster: ControlPlane, namespace: str
) -> None:
    """A manifest without these paths has nothing left that the cluster would not show."""
    what = of_kind(kind)
    affinity = json.dumps(required(expression(MODEL, "In", "Tesla K80")))
    holder = (what if kind == "Pod" else pod_template(what))["metadata"]
    holder["annotations"] = {AFFINITY: affinity, TOLERATIONS: json.dumps([{"key": "team"}])}
    spec = what["spec"] if kind == "Pod" else pod_template(what)["spec"]
    spec["initContainers"] = [
        {"name": "init", "image": "i", "resources": {each: {ALPHA: "1"} for each in SECTIONS}}
    ]
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin=yaml.safe_dump(what))
    live = cluster.client.get(kind, what["metadata"]["name"], namespace)

    assert len(differences(what, live)) > len(SECTIONS)
    assert differences(without_ignored(what), without_ignored(live)) == []


def pod_template(what: Json) -> Json:
    spec = what["spec"]["jobTemplate"]["spec"] if what["kind"] == "CronJob" else what["spec"]
    template: Json = spec["template"]
    return template
