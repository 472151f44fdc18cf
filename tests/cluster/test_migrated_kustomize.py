"""A kustomization migrated at rest, built by the real kustomize in kubectl."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from tests.files.trees import tree
from tests.projects.test_kustomizations import (
    AGREED,
    BASE_OF,
    GPU,
    HELD,
    OLD,
    ORDINARY,
    POD,
    SERVICE,
    TOLERATED,
)
from webhook.cli.main import main
from webhook.core.settings import Settings
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.formats.normal_form import normal_form

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane

pytestmark = pytest.mark.cluster

DEPLOYMENT = """\
apiVersion: extensions/v1beta1
kind: Deployment
metadata:
  name: trainer
spec:
  replicas: 2
  template:
    metadata:
      labels: {app: trainer}
    spec:
      containers:
      - name: cuda
        image: registry.example/cuda
        resources:
          limits:
            alpha.kubernetes.io/nvidia-gpu: 1
"""
STRATEGIC = """\
apiVersion: extensions/v1beta1
kind: Deployment
metadata:
  name: trainer
spec:
  template:
    spec:
      containers:
      - name: cuda
        resources:
          limits:
            alpha.kubernetes.io/nvidia-gpu: 4  # more here
"""
OPERATIONS = """\
- op: test
  path: /spec/template/spec/containers/0/resources/limits/alpha.kubernetes.io~1nvidia-gpu
  value: 4
- op: replace
  path: /spec/template/spec/containers/0/resources/limits/alpha.kubernetes.io~1nvidia-gpu
  value: 8
"""
OVERLAY = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../base]
namePrefix: big-
patches:
- path: strategic.yaml
- path: operations.yaml
  target: {group: extensions, version: v1beta1, kind: Deployment, name: trainer}
- target: {kind: Deployment}
  patch: |-
    - op: add
      path: /spec/template/spec/containers/0/resources/requests
      value: {alpha.kubernetes.io/nvidia-gpu: 8}
"""
FILES = {
    "base/kustomization.yaml": "resources: [deployment.yaml]\n",
    "base/deployment.yaml": DEPLOYMENT,
    "over/kustomization.yaml": OVERLAY,
    "over/strategic.yaml": STRATEGIC,
    "over/operations.yaml": OPERATIONS,
}


def living(text: str) -> str:
    """The same in a version that is still served."""
    selector = "  replicas: 2\n  selector: {matchLabels: {app: trainer}}\n"
    text = text.replace("extensions/v1beta1", "apps/v1").replace("  replicas: 2\n", selector)
    return text.replace("group: extensions, version: v1beta1", "group: apps, version: v1")


def test_what_kustomize_builds_of_it_is_what_it_built_before_migrated(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """Every patch still finds its target, and says of it what it said."""
    tree(tmp_path, {name: living(text) for name, text in FILES.items()})
    built = cluster.kubectl("kustomize", str(tmp_path / "over"))
    wanted = migrate_text(Source.of_text("built.yaml", built), Plan()).new_text
    assert main(["migrate", "--write", "--kustomize", str(tmp_path / "over")]) == 0
    assert objects(cluster.kubectl("kustomize", str(tmp_path / "over"))) == objects(wanted or "")


@pytest.mark.parametrize(("base", "files"), HELD.values(), ids=HELD)
def test_what_is_held_builds_as_before(
    cluster: ControlPlane, base: str, files: dict[str, str], tmp_path: Path
) -> None:
    tree(tmp_path, {**BASE_OF, "base/d.yaml": base, **files})
    built = cluster.kubectl("kustomize", str(tmp_path / outermost(files)))
    assert main(["migrate", "--write", "--recursive", str(tmp_path)]) == 3
    assert cluster.kubectl("kustomize", str(tmp_path / outermost(files))) == built


@pytest.mark.parametrize(("base", "files"), AGREED.values(), ids=AGREED)
def test_what_is_migrated_builds_as_the_migrated_build(
    cluster: ControlPlane, base: str, files: dict[str, str], tmp_path: Path
) -> None:
    """Only a toleration may be more: it does no harm where a patch has taken the GPUs away."""
    tree(tmp_path, {**BASE_OF, "base/d.yaml": base, **files})
    built = cluster.kubectl("kustomize", str(tmp_path / outermost(files)))
    wanted = migrate_text(Source.of_text("built.yaml", built), Plan()).new_text or built
    assert main(["migrate", "--write", "--recursive", str(tmp_path)]) == 0
    after = cluster.kubectl("kustomize", str(tmp_path / outermost(files)))
    assert OLD not in after
    assert pods_of(after) == pods_of(wanted)


def outermost(files: dict[str, str]) -> str:
    """The folder that is built: of a chain of overlays, the last."""
    return next(
        folder for folder in ("overlays/a", "top") if f"{folder}/kustomization.yaml" in files
    )


def pods_of(text: str) -> list[dict[str, Any]]:
    whole = (normal_form(each, Settings()) for each in objects(text))
    pods = [deployment["spec"]["template"]["spec"] for deployment in whole]
    for pod in pods:
        pod.pop("tolerations", None)
    return pods


def test_patches_of_a_dead_version_find_their_target_in_that_of_today(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """Of a kind that it does not know kustomize merges no lists: before, the image was lost."""
    tree(tmp_path, FILES)
    assert "image" not in cluster.kubectl("kustomize", str(tmp_path / "over"))
    assert main(["migrate", "--write", "--kustomize", str(tmp_path / "over")]) == 0
    after = cluster.kubectl("kustomize", str(tmp_path / "over"))
    (deployment,) = objects(after)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/cuda"
    assert container["resources"] == {
        "limits": {"nvidia.com/gpu": 8},
        "requests": {"nvidia.com/gpu": 8},
    }
    (tmp_path / "built.yaml").write_text(after)
    cluster.kubectl("create", "--dry-run=server", "-f", str(tmp_path / "built.yaml"))


READING = """\
resources: [../base]
replacements:
- path: writes.yaml
- source:
    kind: Deployment
    name: trainer
    fieldPath: spec.template.spec.containers.0.resources.limits.[alpha.kubernetes.io/nvidia-gpu]
  targets:
  - select: {kind: Deployment}
    fieldPaths:
    - metadata.annotations.gpus
    - spec.template.spec.containers.0.resources.requests.alpha\\.kubernetes\\.io/nvidia-gpu
    options: {create: true}
"""
WRITING = """\
source: {kind: Deployment, name: trainer, fieldPath: spec.replicas}
targets:
- select: {kind: Deployment}
  fieldPaths:
  - spec.template.spec.containers.[name=cuda].resources.limits.[alpha.kubernetes.io/nvidia-gpu]
"""


def test_replacements_of_amounts_build_as_before(cluster: ControlPlane, tmp_path: Path) -> None:
    files = {**FILES, "over/kustomization.yaml": READING, "over/writes.yaml": WRITING}
    tree(tmp_path, {name: living(text) for name, text in files.items()})
    built = cluster.kubectl("kustomize", str(tmp_path / "over"))
    assert main(["migrate", "--write", "--kustomize", str(tmp_path / "over")]) == 3
    assert cluster.kubectl("kustomize", str(tmp_path / "over")) == built


@pytest.mark.parametrize("files", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_overlays_build_as_the_migrated_build(
    cluster: ControlPlane, files: dict[str, str], tmp_path: Path
) -> None:
    tree(tmp_path, {**BASE_OF, "base/d.yaml": GPU + SERVICE, **files})
    folder = str(tmp_path / outermost(files))
    wanted = migrate_text(Source.of_text("b.yaml", cluster.kubectl("kustomize", folder)), Plan())
    assert main(["migrate", "--write", "--recursive", str(tmp_path)]) == 0
    assert objects(cluster.kubectl("kustomize", folder)) == objects(wanted.new_text or "")


AMOUNTS = st.dictionaries(
    st.sampled_from([OLD, "nvidia.com/gpu", "cpu"]), st.sampled_from([0, 1, 2, 4]), max_size=2
)
RESOURCES = st.fixed_dictionaries({}, optional={"limits": AMOUNTS, "requests": AMOUNTS})
CONTAINERS = st.dictionaries(st.sampled_from(["c", "s"]), RESOURCES, min_size=1)


@pytest.mark.hypothesis
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(base=CONTAINERS, patches=st.lists(CONTAINERS, min_size=1, max_size=2))
@example(base={"c": {"requests": {OLD: 0}}}, patches=[{"c": {"limits": {OLD: 1}}}])
def test_what_is_migrated_builds_what_the_rules_make_of_the_build(
    cluster: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
    base: dict[str, Any],
    patches: list[dict[str, Any]],
) -> None:
    """Whatever amounts base and patches have: all is right, or the build is as before."""
    folder = tmp_path_factory.mktemp("drawn")
    whole = [{"name": name, "image": "x", "resources": its} for name, its in base.items()]
    files = {"base/d.yaml": GPU.partition("      containers:")[0] + TOLERATED + written(whole)}
    listed = ", ".join(f"{{path: p{number}.yaml}}" for number, _ in enumerate(patches))
    files["over/kustomization.yaml"] = f"resources: [../base]\npatches: [{listed}]\n"
    for number, patch in enumerate(patches):
        parts = [{"name": name, "image": "x", "resources": its} for name, its in patch.items()]
        files[f"over/p{number}.yaml"] = POD + written(parts)
    tree(folder, {**BASE_OF, **files})
    built = cluster.kubectl("kustomize", str(folder / "over"))
    code = main(["migrate", "--write", "--recursive", str(folder)])
    after = cluster.kubectl("kustomize", str(folder / "over"))
    event(f"exit code {code}")
    assert code in {0, 3}
    made = [migrated(text) for text in (built, after)]
    assert made[0] == made[1]
    if code == 0:
        assert gpus(after) == made[0]


def written(containers: list[dict[str, Any]]) -> str:
    return f"      containers: {json.dumps(containers)}\n"


def migrated(text: str) -> list[Any]:
    return gpus(migrate_text(Source.of_text("built.yaml", text), Plan()).new_text or text)


def gpus(text: str) -> list[Any]:
    """The amounts of GPUs of each container, without 0; a limit is a request, too."""
    return [
        (container["name"], section, name, str(amount))
        for pod in pods_of(text)
        for container in pod["containers"]
        for section, amounts in sorted((container.get("resources") or {}).items())
        for name, amount in sorted((amounts or {}).items())
        if amount and "nvidia" in name
    ]


def objects(text: str) -> list[Any]:
    return [each for each in yaml.safe_load_all(text) if each is not None]
