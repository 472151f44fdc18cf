"""The chart renders the objects of the kustomizations."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster import helm, install_yaml
from tests.cluster.own_chart import CHART, NAMESPACE, kustomized, objects, rendered
from tests.cluster.webhook import KINDS
from tests.doctor.installation import tried
from webhook.doctor.edited_entries import shipped
from webhook.doctor.facts import Facts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane

CERTIFICATES = "gpu-webhook-certificates"
# Only the chart has these two, so that `helm uninstall` removes them.
KEPT = {("Secret", CERTIFICATES), ("Lease", CERTIFICATES)}
# helm creates kinds that it does not know last of all.
UNKNOWN = {"Lease", "ServiceMonitor", "PrometheusRule"}
ALL = {
    "guard": {"enabled": True, "refuse": True},
    "workloadRepair": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "monitoring": {"enabled": True},
}
COMPONENTS = ("guard", "guard-refuse", "workload-repair", "network-policy", "monitoring")
SAME: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "by default": ({}, "base", ()),
    "with cert-manager": ({"certificates": {"mode": "cert-manager"}}, "cert-manager", ()),
    "with a Secret": ({"certificates": {"mode": "secret"}}, "secret", ()),
    "on OpenShift": ({"certificates": {"mode": "openshift"}}, "openshift", ()),
    "that only audit": ({"auditOnly": True}, "audit-only", ()),
    "with all components": (ALL, "base", COMPONENTS),
    "with cert-manager and all components": (
        {"certificates": {"mode": "cert-manager"}, **ALL},
        "cert-manager",
        (*COMPONENTS, "cert-manager/ca-bundle"),
    ),
    "on OpenShift with all components": (
        {"certificates": {"mode": "openshift"}, **ALL},
        "openshift",
        (*COMPONENTS, "openshift/ca-bundle"),
    ),
}


@pytest.mark.parametrize(("values", "root", "components"), SAME.values(), ids=SAME)
def test_chart_and_kustomize_have_the_same_objects(
    values: dict[str, Any],
    root: str,
    components: tuple[str, ...],
    cluster: ControlPlane,
    tmp_path: Path,
) -> None:
    chart = rendered(tmp_path, values)
    wanted = kustomized(cluster, tmp_path, root, *components)

    mode = values.get("certificates", {}).get("mode", "self")
    assert wanted.keys() - chart.keys() == {("Namespace", NAMESPACE)}
    assert chart.keys() - wanted.keys() == (KEPT if mode == "self" else set())
    if "workloadRepair" in values:  # a user of kustomize changes the settings by hand
        settings = chart["ConfigMap", "gpu-webhook-settings"]["data"]["settings.yaml"]
        assert settings.pop("workloads") == {"repair": True}
    for key in chart.keys() & wanted.keys():
        assert chart[key] == wanted[key], key


def test_an_archive_of_the_chart_renders_the_same(tmp_path: Path) -> None:
    done = helm.run(tmp_path, "package", str(CHART), "-d", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tgz")
    assert rendered(tmp_path, ALL, chart=archive) == rendered(tmp_path, ALL)


def test_without_hooks_nothing_of_helm_test_is_left(tmp_path: Path) -> None:
    """docs/install.md says so, for `kubectl apply` of what `helm template` prints."""
    words = ("template", "gpu-webhook", str(CHART), "-n", NAMESPACE)
    whole, bare = (helm.run(tmp_path, *words, *more).stdout for more in ((), ("--no-hooks",)))
    assert whole.count("gpu-webhook-test") > 4
    assert "gpu-webhook-test" not in bare
    assert objects(bare).keys() == rendered(tmp_path, {}).keys()


def test_the_pod_of_helm_test_runs_where_the_replicas_do(tmp_path: Path) -> None:
    """And names that YAML takes for numbers stay texts."""
    values = {
        "nodeSelector": {"pool": "system"},
        "priorityClassName": "007",
        "test": {"namespace": "1e3"},
    }
    made = rendered(tmp_path, values, tests=True)
    of_replicas = made["Deployment", "gpu-webhook"]["spec"]["template"]["spec"]
    assert made["Pod", "gpu-webhook-test"]["spec"]["nodeSelector"] == of_replicas["nodeSelector"]
    named = [each.get("resourceNames") for each in made["ClusterRole", "gpu-webhook-test"]["rules"]]
    assert [*filter(None, named)] == [["1e3"], ["007"]]
    assert made["Role", "gpu-webhook-test-dry-run"]["metadata"]["namespace"] == "1e3"


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="as shipped"),
        pytest.param({"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}, id="chosen"),
    ],
)
def test_the_pod_of_helm_test_asks_for_what_the_watcher_does(given: Any, tmp_path: Path) -> None:
    """A LimitRange or a quota of the namespace accepts both, or neither."""
    made = rendered(tmp_path, {"resources": {"watcher": given}}, tests=True)
    (test,) = made["Pod", "gpu-webhook-test"]["spec"]["containers"]
    _, watcher = made["Deployment", "gpu-webhook"]["spec"]["template"]["spec"]["containers"]
    assert test["resources"] == watcher["resources"]


NAME = "gpu-admission-webhook"
# What a chart says of the dependency, its values, and whether our objects are rendered.
PARENTS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "nothing": ({}, {NAME: {"replicaCount": 3}}, True),
    "a condition that is met": (
        {"condition": f"{NAME}.enabled"},
        {NAME: {"enabled": True, "replicaCount": 3}},
        True,
    ),
    "a condition that is not met": (
        {"condition": f"{NAME}.enabled"},
        {NAME: {"enabled": False}},
        False,
    ),
    "a condition of the parent": (
        {"condition": "gpus.enabled"},
        {"gpus": {"enabled": True}, NAME: {"replicaCount": 3}},
        True,
    ),
    "tags, and values for all": (
        {"tags": ["gpus"]},
        {"tags": {"gpus": True}, "global": {"registry": "x"}, NAME: {"replicaCount": 3}},
        True,
    ),
    "tags that are off": ({"tags": ["gpus"]}, {"tags": {"gpus": False}}, False),
    "an alias with a condition": (
        {"alias": "gpus", "condition": "gpus.enabled"},
        {"gpus": {"enabled": True, "replicaCount": 3}},
        True,
    ),
}


@pytest.mark.parametrize(("says", "values", "is_there"), PARENTS.values(), ids=PARENTS)
def test_a_chart_may_depend_on_it(
    says: dict[str, Any],
    values: dict[str, Any],
    is_there: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(CHART, parent / "charts" / NAME)
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    needs = [{"name": NAME, "version": version, **says}]
    chart = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": needs}
    (parent / "Chart.yaml").write_text(json.dumps(chart))
    made = rendered(tmp_path, values, chart=parent)
    replicas = [o["spec"]["replicas"] for (kind, _), o in made.items() if kind == "Deployment"]
    assert replicas == [3] * is_there


def test_helm_finds_nothing_wrong_with_the_chart(tmp_path: Path) -> None:
    done = helm.run(tmp_path, "lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configurations_are_created_last(tmp_path: Path) -> None:
    """Helm removes in the reverse order: test_helm_release.py."""
    kinds = [kind for kind, _ in rendered(tmp_path, ALL)]
    assert kinds.index("Deployment") < kinds.index("MutatingWebhookConfiguration")
    assert set(kinds[kinds.index("MutatingWebhookConfiguration") :]) == {*KINDS, *UNKNOWN}


@pytest.mark.parametrize("mode", ["self", "cert-manager", "openshift", "secret"])
def test_any_namespace_will_do(mode: str, tmp_path: Path) -> None:
    made = rendered(tmp_path, {"certificates": {"mode": mode}, **ALL}, "-n", "gpus")
    for (kind, _), each in made.items():
        is_wide = kind.startswith("Cluster") or kind in KINDS
        assert each["metadata"].get("namespace") == (None if is_wide else "gpus")
        for subject in each.get("subjects", ()):
            assert subject["namespace"] == "gpus"
        for entry in each.get("webhooks", ()):
            assert entry["clientConfig"]["service"]["namespace"] == "gpus"
            (own,) = (
                selected["values"]
                for selected in entry["namespaceSelector"]["matchExpressions"]
                if selected["key"] == "kubernetes.io/metadata.name"
            )
            assert own == ["kube-system", "gpus"]
    if mode == "cert-manager":
        names = made["Certificate", "gpu-webhook"]["spec"]["dnsNames"]
        assert names == ["gpu-webhook.gpus.svc", "gpu-webhook.gpus.svc.cluster.local"]
        for kind, name in made:
            if kind in KINDS:
                annotations = made[kind, name]["metadata"]["annotations"]
                assert annotations == {"cert-manager.io/inject-ca-from": "gpus/gpu-webhook"}


@pytest.mark.parametrize("mode", ["self", "cert-manager", "openshift", "secret"])
def test_doctor_finds_no_entry_that_differs(mode: str, tmp_path: Path) -> None:
    values = {"certificates": {"mode": mode}, "excludedNamespaces": ["kube-system", "ci"], **ALL}
    made = rendered(tmp_path, values, "-n", "gpus")
    kinds = {
        "MutatingWebhookConfiguration": "mutating",
        "ValidatingWebhookConfiguration": "validating",
    }
    configurations = {
        f"{kinds[kind]}/{name}": each for (kind, name), each in made.items() if kind in kinds
    }
    service = made["Service", "gpu-webhook"]
    found = Facts("gpus", 0, tried(), configurations=configurations, services=(service,))
    assert len(configurations) == 5
    assert [(line.state, line.text) for line in shipped(found)] == [(0, "as shipped")]


def test_install_yaml_has_the_objects_of_the_base(cluster: ControlPlane, tmp_path: Path) -> None:
    assert install_yaml.FILE.read_text() == install_yaml.text(), "run `make manifests`"
    installed = objects(install_yaml.FILE.read_text())
    assert installed == kustomized(cluster, tmp_path, "base")
    assert [kind for kind, _ in installed][:3] == [*KINDS, "Namespace"]
