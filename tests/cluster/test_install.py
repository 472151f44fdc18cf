"""docs/ from install.md to uninstall.md, command by command, and the manifests that they apply."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster import build, nodes, own_chart
from tests.cluster.client import until
from tests.cluster.conftest import with_nodes
from tests.cluster.remains import everything
from tests.cluster.replicas import NAMESPACE, keeper_of
from tests.cluster.scheduling import empty, remove
from tests.cluster.webhook import KINDS, ROOT, kustomized
from webhook.issuing.objects import CONFIGURATIONS, SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

SETTINGS = "gpu-webhook-settings"


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


def blocks(name: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", page(name), re.DOTALL)


# test_helm_certificates.py puts both CAs into caBundle, tests/node/test_cert_manager.py new keys.
HELM, APPLY, TRY_IT, LIVE, INVENTORY, STATUS, *NEW_KEYS, _BOTH = blocks("install")
STOP, IGNORE, PUT_BACK, HELM_BACK = blocks("break-glass")
(TAKE_OVER,) = blocks("upgrade")
# test_report.py tries the report, tests/telemetry the logs.
_REPORT, _LOGS, HELM_REMOVE, REMOVE, COPIES = blocks("uninstall")
# A command has a flag; the page also speaks of `kubectl apply` as such.
COMMANDS = re.findall(r"`(helm [^`]* -[^`]+)`", page("upgrade"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """One of its own: what other files leave is legacy, or a fault that doctor finds."""
    with with_nodes() as running:
        yield running


@pytest.fixture
def shell(cluster: ControlPlane, tmp_path: Path) -> Iterator[Path]:
    """Give a folder with what the commands expect, and leave the cluster as it was."""
    for name in ("manifests", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    yield tmp_path
    for kind in KINDS:
        cluster.client.delete_all(kind)
    remove(cluster.client, NAMESPACE)
    # helm installs nothing over what kubectl left.
    roles = ("clusterrole,clusterrolebinding", "gpu-webhook", SECRET)
    cluster.kubectl("delete", "--ignore-not-found", *roles)


def run(block: str, cluster: ControlPlane, folder: Path) -> str:
    programs = f"{cluster.programs}:{build.helm().parent}:{Path(sys.executable).parent}"
    inherited = {k: v for k, v in os.environ.items() if k != "COLUMNS"}  # of pytest-xdist
    done = subprocess.run(
        ["bash", "-euc", block],
        cwd=folder,
        env={**inherited, "KUBECONFIG": str(cluster.kubeconfig), "PATH": _first(programs)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # `review` says by 2 that it repaired something.
    assert done.returncode in {0, 2}, f"{block}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == 0 or "gpu-webhook review" in block
    return done.stdout + done.stderr


def _first(programs: str) -> str:
    return f"{programs}:{os.environ['PATH']}"


def test_the_commands_of_the_page_install_and_remove_it(cluster: ControlPlane, shell: Path) -> None:
    apply, ready = APPLY.splitlines()
    assert "rollout status" in ready, "no kubelet makes the pods ready"

    said = run(apply, cluster, shell)
    keeper_of(cluster, shell / "tls", f"gpu-webhook.{NAMESPACE}.svc").pass_once()
    run(TRY_IT, cluster, shell)  # nobody answers: no kubelet runs the pods, so it fails open
    shown = run(LIVE, cluster, shell)
    reviewed = run(INVENTORY, cluster, shell)

    trusted = run(STATUS, cluster, shell)

    assert "deployment.apps/gpu-webhook created" in said
    assert "Warning" not in said
    assert trusted.count("trusts the server") == 2
    assert f"gpu-webhook.{NAMESPACE}.svc" in trusted
    assert "Tesla-K80" in shown
    assert "Tesla-P100-PCIE-16GB" in reviewed
    assert "pod/probe created" in _probe(cluster)  # the namespace enforces `restricted`
    for component in COMPONENTS:
        run(f"kubectl apply -k manifests/{component}", cluster, shell)
    found = [line.split()[:2] for line in run(COPIES, cluster, shell).splitlines()]
    assert ["MutatingWebhookConfiguration", "gpu-webhook"] in found
    run(REMOVE.replace("kubectl delete -k", "kubectl delete --wait=false -k"), cluster, shell)
    for kind in KINDS:
        assert cluster.client.list(kind) == [], "it would call a Service that is gone"


def test_the_commands_for_helm_install_take_over_and_remove_it(
    cluster: ControlPlane, shell: Path
) -> None:
    upgrade, rollback = (each for each in COMMANDS if each.startswith(("helm upg", "helm roll")))
    before = everything(cluster)

    assert "--wait" in HELM, "no kubelet makes the pods ready"
    run(HELM.replace("--wait", ""), cluster, shell)
    run(upgrade, cluster, shell)
    run(rollback, cluster, shell)
    run(HELM_REMOVE.replace("delete", "delete --wait=false"), cluster, shell)
    empty(cluster.client, NAMESPACE)
    until(lambda: everything(cluster) == before, "nothing of it to be left", 60)

    run(TAKE_OVER, cluster, shell)
    run(HELM_REMOVE.replace("delete", "delete --wait=false"), cluster, shell)
    empty(cluster.client, NAMESPACE)
    until(lambda: everything(cluster) == before, "nothing of it to be left", 60)


@pytest.mark.parametrize("commands", [STOP, REMOVE], ids=["break glass", "uninstall"])
def test_every_configuration_is_removed_by_name(commands: str) -> None:
    deleted = re.findall(r"(mutating|validating)webhookconfiguration (.*)", commands)
    names = [f"{kind}/{name}" for kind, found in deleted for name in found.split()]
    assert sorted(names) == sorted(CONFIGURATIONS)


@pytest.mark.parametrize(
    ("install", "back"), [(HELM, HELM_BACK), (APPLY, PUT_BACK)], ids=["helm", "kubectl"]
)
def test_the_glass_can_be_broken_and_repaired(
    install: str, back: str, cluster: ControlPlane, shell: Path
) -> None:
    def configurations() -> list[str]:
        return [each["metadata"]["name"] for kind in KINDS for each in cluster.client.list(kind)]

    run(install.replace("--wait", "").partition("kubectl -n")[0], cluster, shell)
    assert configurations() == ["gpu-webhook", "gpu-webhook"]
    # A platform may label all objects, as `labels` of a kustomization do: names stay.
    for kind in KINDS:
        cluster.kubectl("label", kind, "--all", "--overwrite", "app.kubernetes.io/part-of=platform")
    run(STOP, cluster, shell)
    assert configurations() == []
    run(back, cluster, shell)
    assert configurations() == ["gpu-webhook", "gpu-webhook"]


def test_one_namespace_is_left_alone(cluster: ControlPlane, shell: Path) -> None:
    labels = re.findall(r"`(kubectl label namespace [^`]+)`", page("break-glass"))
    assert len(labels) == 2
    cluster.kubectl("create", "namespace", "team-a")
    try:
        run(IGNORE, cluster, shell)
        run(APPLY.partition("\n")[0], cluster, shell)
        made = cluster.client.get("Namespace", "team-a")["metadata"]["labels"]
        selectors = [
            each["namespaceSelector"]["matchExpressions"]
            for kind in KINDS
            for configuration in cluster.client.list(kind)
            for each in configuration["webhooks"]
        ]
        left_out = [{"key": "gpu-webhook.dev/ignore", "operator": "NotIn", "values": ["true"]}]
        assert made["gpu-webhook.dev/ignore"] == "true"
        assert all(left_out[0] in each for each in selectors)
        for command in labels:
            run(command, cluster, shell)
        made = cluster.client.get("Namespace", "team-a")["metadata"]["labels"]
        assert not [name for name in made if name.startswith("gpu-webhook.dev/")]
    finally:
        cluster.kubectl("delete", "namespace", "team-a")


def test_the_first_day_goes_as_the_page_says(cluster: ControlPlane, shell: Path) -> None:
    audit, well, live, scan, repair = blocks("first-day")
    run(HELM.replace("--wait", ""), cluster, shell)

    run(audit, cluster, shell)
    settings = cluster.kubectl("-n", NAMESPACE, "get", "configmap", "-o", "yaml", SETTINGS)
    assert "mode: audit" in settings
    keeper_of(cluster, shell / "tls", f"gpu-webhook.{NAMESPACE}.svc").pass_once()
    doctor, status = well.splitlines()
    assert "failed   pods" in run(f"{doctor} || test $? = 3", cluster, shell)  # no kubelet
    assert "trusts the server" in run(status, cluster, shell)
    run(live, cluster, shell)
    assert "0 of " in run(scan, cluster, shell)
    run(repair, cluster, shell)
    settings = cluster.kubectl("-n", NAMESPACE, "get", "configmap", "-o", "yaml", SETTINGS)
    assert "mode: audit" not in settings


def test_the_doctor_says_what_is_wrong(cluster: ControlPlane, shell: Path) -> None:
    plain, named = (each.strip() for each in blocks("troubleshooting"))
    said = run(f"{plain} || test $? = 3", cluster, shell)
    assert "there is no Deployment of the webhook in the namespace gpu-webhook" in said
    assert run(f"{named} || test $? = 3", cluster, shell) == said


def test_the_network_policy_is_for_the_pods(cluster: ControlPlane, shell: Path) -> None:
    (apply,) = blocks("access")
    run(APPLY.partition("\n")[0], cluster, shell)
    run(apply, cluster, shell)
    text = cluster.kubectl("-n", NAMESPACE, "get", "networkpolicies", "-o", "yaml")
    (policy,) = yaml.safe_load(text)["items"]
    deployment = cluster.client.get("Deployment", "gpu-webhook", NAMESPACE)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


def test_the_watcher_may_read_the_status_of_an_autoscaler_elsewhere(
    cluster: ControlPlane, shell: Path
) -> None:
    allow, _ = blocks("policy")  # tests/cli/test_readme_page.py runs the other
    run(APPLY.partition("\n")[0], cluster, shell)
    cluster.kubectl("create", "namespace", "scaling")
    try:
        run(allow, cluster, shell)
        account = f"system:serviceaccount:{NAMESPACE}:gpu-webhook"
        for verb in ("list", "watch"):
            may = ("auth", "can-i", verb, "configmaps/my-status", "-n", "scaling", "--as", account)
            assert cluster.kubectl(*may).strip() == "yes"
    finally:
        cluster.kubectl("delete", "namespace", "scaling")


OPERATOR = {"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"}


def test_alerts_and_dashboard_are_installed_as_the_page_says(
    cluster: ControlPlane, shell: Path
) -> None:
    (command,) = blocks("metrics")
    kinds = [_definition(kind, plural) for kind, plural in OPERATOR.items()]
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(kinds))
    names = [each["metadata"]["name"] for each in kinds]
    try:
        cluster.kubectl("wait", "--for=condition=Established", "crd", *names)
        run(HELM.replace("--wait", ""), cluster, shell)
        run(command, cluster, shell)
        for kind in OPERATOR.values():
            text = cluster.kubectl("-n", NAMESPACE, "get", kind, "-o", "yaml")
            (made,) = yaml.safe_load(text)["items"]
            assert made["metadata"]["labels"]["release"] == "kube-prometheus-stack"
        dashboard = ("get", "configmap", "gpu-webhook-dashboard", "-o", "jsonpath={.data}")
        assert "Can I remove it yet?" in cluster.kubectl("-n", NAMESPACE, *dashboard)
        run("helm uninstall gpu-webhook -n gpu-webhook", cluster, shell)
    finally:
        cluster.kubectl("delete", "crd", *names)


def _definition(kind: str, plural: str) -> Json:
    """One that takes any object, as those of the Prometheus operator take ours."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    group = "monitoring.coreos.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version | {"schema": {"openAPIV3Schema": anything}}],
        },
    }


def test_settings_with_names_of_their_own_become_values(cluster: ControlPlane, shell: Path) -> None:
    """The commands of manifests/README.md."""
    text = (ROOT / "manifests" / "README.md").read_text()
    (block,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    (shell / "settings.yaml").write_text(
        "resources: {target: example.com/gpu}\npolicy: {rules: {GPU304: off}}\n"
    )
    run(HELM.replace("--wait", ""), cluster, shell)

    run(block, cluster, shell)

    made = cluster.client.get("MutatingWebhookConfiguration", "gpu-webhook")
    assert "example.com/gpu" in str(made["webhooks"][0]["matchConditions"])
    settings = cluster.kubectl("-n", NAMESPACE, "get", "configmap", "-o", "yaml", SETTINGS)
    assert "target: example.com/gpu" in settings
    assert 'GPU304: "off"' in settings
    run("helm uninstall gpu-webhook -n gpu-webhook", cluster, shell)


def test_nothing_is_left_after_delete(cluster: ControlPlane, shell: Path) -> None:
    """Neither in namespaces nor in the cluster as a whole; guard and workload repair included."""
    mine = shell / "mine"
    mine.mkdir()
    components = [f"../manifests/{part}" for part in (*COMPONENTS, "network-policy")]
    text = {"resources": ["../manifests/base"], "components": components}
    (mine / "kustomization.yaml").write_text(yaml.safe_dump(text))
    before = everything(cluster)

    cluster.kubectl("apply", "-k", str(mine))
    keeper_of(cluster, shell / "tls", f"gpu-webhook.{NAMESPACE}.svc").pass_once()
    assert len(everything(cluster) - before) > 15
    cluster.kubectl("delete", "--wait=false", "-k", str(mine))
    empty(cluster.client, NAMESPACE)  # no kubelet would end the pods

    until(lambda: everything(cluster) == before, "nothing of it to be left", 60)


def test_the_pods_keep_away_from_nodes_with_gpus(cluster: ControlPlane, shell: Path) -> None:
    # As in every cloud, all nodes name their zone: the scheduler spreads over those that do.
    plain = [
        nodes.gpu_node(
            f"plain-{zone}",
            0,
            labels={"topology.kubernetes.io/zone": f"eu-west-1{zone}"},
            resource="example.com/none",
        )
        for zone in "abc"
    ]
    nodes.add(cluster.client, plain)
    try:
        cluster.kubectl("apply", "-k", str(shell / "manifests" / "base"))
        pods = until(lambda: _two_placed(cluster), "both pods to have a node")
        assert not [node for node in pods if node.startswith("gpu-")]
        assert len(pods) == 2, "each on a node of its own"
    finally:
        for each in plain:
            cluster.client.delete("Node", each["metadata"]["name"])


def _two_placed(cluster: ControlPlane) -> set[str] | None:
    pods = cluster.client.list("Pod", NAMESPACE)
    placed = [each["spec"]["nodeName"] for each in pods if "nodeName" in each["spec"]]
    return set(placed) if len(placed) == 2 else None


MODES = ("secret", "cert-manager", "openshift")


@pytest.mark.parametrize("mode", MODES)
def test_with_given_certificates_the_watcher_keeps_none(mode: str, cluster: ControlPlane) -> None:
    objects = {
        (each["kind"], each["metadata"]["name"]): each
        for each in kustomized(cluster, ROOT / "manifests" / mode)
    }
    pod = objects["Deployment", "gpu-webhook"]["spec"]["template"]["spec"]
    server, watch = pod["containers"]
    tls = {volume["name"]: volume for volume in pod["volumes"]}["tls"]
    assert not any("--certificates" in word for word in watch["args"])
    assert not any(mount["name"] == "tls" for mount in watch["volumeMounts"])
    assert any(mount["name"] == "tls" for mount in server["volumeMounts"])
    assert tls == {"name": "tls", "secret": {"secretName": "gpu-webhook-tls"}}
    assert [name for kind, name in objects if "Role" in kind] == ["gpu-webhook", "gpu-webhook"]
    injected = [objects[kind, "gpu-webhook"]["metadata"].get("annotations", {}) for kind in KINDS]
    word = {"cert-manager": "cert-manager.io/inject-ca-from"}.get(
        mode, "service.beta.openshift.io/inject-cabundle"
    )
    assert all((word in each) is (mode != "secret") for each in injected)


COMPONENTS = ("guard", "guard-refuse", "workload-repair")
INJECTORS: dict[str, tuple[str, tuple[str, ...], set[str]]] = {
    "the watcher fills in all of them": ("base", COMPONENTS, set()),
    "you do": ("secret", COMPONENTS, set()),
    "cert-manager does": (
        "cert-manager",
        (*COMPONENTS, "cert-manager/ca-bundle"),
        {"cert-manager.io/inject-ca-from"},
    ),
    "OpenShift does": (
        "openshift",
        (*COMPONENTS, "openshift/ca-bundle"),
        {"service.beta.openshift.io/inject-cabundle"},
    ),
}


@pytest.mark.parametrize(("base", "parts", "wanted"), INJECTORS.values(), ids=INJECTORS)
def test_who_fills_in_ca_bundles_is_the_same_for_all_configurations(
    base: str, parts: tuple[str, ...], wanted: set[str], cluster: ControlPlane, tmp_path: Path
) -> None:
    """A second one who writes them would take each CA out again that the first one wrote."""
    objects = own_chart.kustomized(cluster, tmp_path, base, *parts)
    found = [each["metadata"] for (kind, _), each in objects.items() if kind in KINDS]
    assert len(found) == 5
    for metadata in found:
        assert {*metadata.get("annotations", {})} == wanted, metadata["name"]


@pytest.mark.parametrize("words", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_after_the_change_to_base_nobody_else_fills_in_ca_bundles(
    words: tuple[str, ...], cluster: ControlPlane, shell: Path
) -> None:
    """`kubectl apply` leaves the Certificate, and cert-manager acts on annotations."""
    names = []
    for base, more in (("cert-manager", ("cert-manager/ca-bundle",)), ("base", ())):
        objects = own_chart.kustomized(cluster, shell, base, *COMPONENTS, *more)
        found = [each for (kind, _), each in objects.items() if kind in KINDS]
        cluster.kubectl("apply", *words, "-f", "-", stdin=yaml.safe_dump_all(found))
        live = [each for kind in KINDS for each in cluster.client.list(kind)]
        names.append([n for each in live for n in each["metadata"].get("annotations", {})])
    assert names[0].count("cert-manager.io/inject-ca-from") == 5
    assert "cert-manager.io/inject-ca-from" not in names[1]


def _probe(cluster: ControlPlane) -> str:
    """Make a pod as the Deployment would, without storing it, and give what kubectl says."""
    text = cluster.kubectl("-n", "gpu-webhook", "get", "deployment", "gpu-webhook", "-o", "yaml")
    template: Json = yaml.safe_load(text)["spec"]["template"]
    pod = {**template, "apiVersion": "v1", "kind": "Pod"}
    pod["metadata"]["name"] = "probe"
    return cluster.kubectl(
        *("-n", "gpu-webhook", "create", "--dry-run=server", "-f", "-"), stdin=yaml.safe_dump(pod)
    )
