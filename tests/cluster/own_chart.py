"""Our chart and kustomizations, rendered by the real helm and kubectl: objects by kind and name."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster import helm
from tests.cluster.webhook import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane

    Objects = dict[tuple[str, str], Any]

CHART = ROOT / "manifests"
NAMESPACE = "gpu-webhook"


def rendered(
    home: Path, values: object, *words: str, chart: Path = CHART, tests: bool = False
) -> Objects:
    """What helm makes of the chart with these values; with `tests`, also those of `helm test`."""
    file = home / "values.json"
    file.write_text(json.dumps(values))
    done = helm.run(
        home,
        *("template", "gpu-webhook", str(chart), "-n", NAMESPACE, "-f", str(file)),
        *("--kube-version", helm.KUBERNETES, *(() if tests else ("--skip-tests",)), *words),
    )
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)


def objects(text: str) -> Objects:
    found: Objects = {}
    for each in yaml.safe_load_all(text):
        if each is None:
            continue
        if each["kind"] == "ConfigMap":
            each["data"] = {name: yaml.safe_load(text) for name, text in each["data"].items()}
        key = each["kind"], each["metadata"]["name"]
        assert key not in found
        found[key] = each
    return found


def kustomized(cluster: ControlPlane, folder: Path, root: str, *components: str) -> Objects:
    """What kustomize makes of one of our kustomizations, with components."""

    def path(name: str) -> str:
        return os.path.relpath(CHART / name, folder)

    text = {"resources": [path(root)], "components": [path(each) for each in components]}
    (folder / "kustomization.yaml").write_text(json.dumps(text))
    return objects(cluster.kubectl("kustomize", str(folder)))
