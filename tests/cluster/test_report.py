"""`gpu-webhook report --cluster` on a real control plane: metrics by way of the pod's proxy."""

from __future__ import annotations

import io
import json
import time
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import yaml

from tests.cluster.client import path_of, until
from tests.cluster.controlplane import ControlPlane, free_ports
from tests.cluster.nodes import gpu_node
from tests.cluster.pods import ALPHA, NVIDIA, alpha, container, modern, named, pod
from tests.cluster.policies import inside, mutating
from tests.cluster.replicas import own_address
from tests.cluster.webhook import BASE, KINDS, ROOT, WebhookServer, kustomized, registered
from tests.cluster.workloads import DEFINITIONS, definition, made_by
from webhook.cli.main import main
from webhook.core.settings import Settings
from webhook.inventory.events import event_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json

NAMESPACE = "gpu-webhook"
SAFE, UNKNOWN, LEFT = 0, 2, 3
# Pods get the toleration of GPU nodes in two namespaces only.
TOLERATING = """\
policy:
  rules: {GPU201: off}
  overrides: [{namespaces: [tolerating, idle], rules: {GPU201: enforce}}]
"""


class Installed:
    """The shipped objects; the pod of the Deployment has the address of a server beside it."""

    def __init__(self, cluster: ControlPlane, port: int) -> None:
        self.cluster, self.port = cluster, port
        made = [each for each in kustomized(cluster, BASE) if each["kind"] not in KINDS]
        for each in made:
            if each["kind"] == "Deployment":
                each["spec"]["replicas"] = 1
                server = each["spec"]["template"]["spec"]["containers"][0]
                server["ports"][1]["containerPort"] = port
                spec = each["spec"]["template"]["spec"]  # the server has a file of nodes
                for one in spec["containers"]:
                    one["args"] = [w for w in one["args"] if not w.startswith("--snapshot=")]
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(made))
        self.pod: str = until(self._pod, "the pod", 60)

    def _pod(self) -> str | None:
        return next(
            (e["metadata"]["name"] for e in self.cluster.client.list("Pod", NAMESPACE)), None
        )

    def runs_at(self, address: str, started: float) -> None:
        """As a kubelet says."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started))
        running: Json = {
            "name": "gpu-webhook",
            "image": "x",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": stamp}},
        }
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        changes = {"status": {**status, "containerStatuses": [running]}}
        self.cluster.client.patch("Pod", self.pod, changes, NAMESPACE, subresource="status")

    def report(self, *words: str, kubeconfig: Path | None = None) -> tuple[int, Any]:
        said = io.StringIO()
        file = kubeconfig or self.cluster.kubeconfig
        with redirect_stdout(said):
            code = main(["report", "--cluster", f"--kubeconfig={file}", "-o", "json", *words])
        return code, json.loads(said.getvalue())


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        yield running


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("report")
    taint = {"key": NVIDIA, "effect": "NoSchedule"}
    nodes, settings = folder / "nodes.json", folder / "settings.yaml"
    nodes.write_text(json.dumps({"kind": "NodeList", "items": [gpu_node("a", 8, taints=[taint])]}))
    settings.write_text(TOLERATING)
    words = [f"--metrics-bind=:{port}", f"--inventory={nodes}", f"--config={settings}"]
    with (
        WebhookServer(folder, plane.authority, words) as server,
        registered(plane, server.port, plane.authority.bundle),
    ):
        found = Installed(plane, port)
        time.sleep(1.1)  # the API server's times have whole seconds
        found.runs_at(own_address(), time.time())
        yield found


def test_each_answer_of_a_cluster_in_turn(installed: Installed, tmp_path: Path) -> None:
    """One test, since what has come to a webhook stays counted."""
    client = installed.cluster.client

    code, found = installed.report(f"--output-file=html={tmp_path / 'report.html'}")
    assert found["answer"] in (tmp_path / "report.html").read_text()
    assert (code, found["verdict"], found["gaps"]) == (UNKNOWN, "unknown", []), found["owners"]
    assert found["answer"].startswith(
        "Not known yet: nothing legacy for 0 days, nothing is known before; ask after "
    )
    assert found["known"]["because"] == f"{installed.pod} started"
    assert found["checked"] >= 2

    # Modern workloads are none of those that need the webhook.
    installed.cluster.make_namespace("modern")
    client.create(made_by("Deployment", pod(modern())), "modern")
    assert installed.report()[1]["verdict"] == "unknown"

    # A legacy workload: its owner, and what came of it, by namespace and kind.
    installed.cluster.make_namespace("team")
    client.create(made_by("Deployment", pod(alpha())), "team")
    came = {"Deployment": 1, "ReplicaSet": 2}

    def is_counted() -> bool:
        return [each["objects"] for each in installed.report()[1]["namespaces"]] == [came]

    until(is_counted, "its pods in the metrics")
    code, found = installed.report()
    assert (code, found["verdict"], found["gaps"]) == (LEFT, "left", [])
    (owner,) = found["owners"]
    assert (owner["namespace"], owner["kind"]) == ("team", "Deployment")
    assert (owner["objects"], owner["codes"]) == (1, ["GPU101"])
    assert [each["name"] for each in found["namespaces"]] == ["team"]

    # It is deleted. Nothing is left, and what came is still known; an Event names the owner.
    client.delete("Deployment", owner["name"], "team")
    until(lambda: not installed.report()[1]["owners"], "the end of its objects", 60)
    code, found = installed.report()
    assert (code, found["answer"]) == (
        LEFT,
        "Not yet: legacy objects from 1 namespace in the last 30 days",
    )
    lone = client.create(named(pod(alpha()), "lone"), "team").body
    event = event_of(lone, ("GPU101", "GPU201"), Settings(), time.time())
    client.demand("POST", path_of("Event", "team"), event.body)
    client.delete("Pod", "lone", "team")
    (owner,) = installed.report()[1]["owners"]
    assert (owner["kind"], owner["name"], owner["objects"]) == ("Pod", "lone", 0)
    assert owner["codes"] == ["GPU101", "GPU201"]


APART = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
ANTI = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}
DEAD = {"scheduler.alpha.kubernetes.io/affinity": json.dumps(ANTI)}
TOLERATED = {
    "scheduler.alpha.kubernetes.io/tolerations": json.dumps([{"key": "a", "operator": "Exists"}])
}
CRITICAL = {"scheduler.alpha.kubernetes.io/critical-pod": ""}
DRIVER: Json = {"volumes": [{"name": "driver", "hostPath": {"path": "/usr/lib/nvidia-384"}}]}
MOUNTED: Json = {"volumeMounts": [{"name": "driver", "mountPath": "/usr/local/nvidia/lib"}]}
# The pods of each owner, and the codes of the legacy words that the webhook replaces in them.
LEFT_ALONE: dict[str, tuple[Json, str]] = {
    "apart": (pod(annotations=DEAD), ""),
    "apart-with-gpus": (pod(modern(), annotations=DEAD), ""),
    "apart-and-legacy": (pod(alpha(), annotations=DEAD), "GPU101,GPU106"),
    "tolerating": (pod(annotations=TOLERATED), ""),
    "tolerating-with-gpus": (pod(modern(), annotations=TOLERATED), "GPU107"),
    "critical": (pod(modern(), annotations=CRITICAL), ""),
    "driver": (pod(container(**MOUNTED), **DRIVER), ""),
    "driver-with-gpus": (pod(modern(**MOUNTED), **DRIVER), ""),
    "driver-and-legacy": (pod(alpha(**MOUNTED), **DRIVER), "GPU101,GPU109"),
}


def test_what_the_webhook_leaves_in_pods_does_not_need_it(installed: Installed) -> None:
    """Its own answers to the pods of each owner decide."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("as-they-are")
    for name, (made, _) in LEFT_ALONE.items():
        cluster.client.create(named(made_by("Deployment", made, 1), name), team)

    def repaired() -> dict[str, str]:
        pods = cluster.client.list("Pod", team)
        notes = [each["metadata"].get("annotations", {}) for each in pods]
        names = [each["metadata"]["name"].rsplit("-", 2)[0] for each in pods]
        codes = [each.get("gpu-webhook.dev/repaired", "") for each in notes]
        return dict(zip(names, codes, strict=True))

    wanted = {name: codes for name, (_, codes) in LEFT_ALONE.items()}
    until(lambda: repaired() == wanted, "their pods", 30)
    found = installed.report()[1]
    left = {each["name"] for each in found["owners"] if each["namespace"] == team}
    assert left == {name for name, codes in wanted.items() if codes}
    (note,) = [each for each in found["notes"] if "leaves as they are" in each]
    assert note.endswith(" and 1 more")
    assert "as-they-are/Deployment/apart, as-they-are/Deployment/apart-with-gpus" in note
    cluster.kubectl("delete", "namespace", team)


def test_what_the_servers_count_is_what_they_replace(installed: Installed) -> None:
    """A pod whose annotation stays is none of them."""
    client, team = installed.cluster.client, installed.cluster.make_namespace("counted")
    for name in ("apart-with-gpus", "driver-with-gpus", "apart-and-legacy"):
        client.create(named(LEFT_ALONE[name][0], name), team)

    def counted() -> list[dict[str, int]]:
        rows = installed.report()[1]["namespaces"]
        return [each["objects"] for each in rows if each["name"] == team]

    until(counted, "the legacy pod in the metrics")
    time.sleep(1.5)  # workers hand over their counts once a second
    assert counted() == [{"Pod": 1}]
    installed.cluster.kubectl("delete", "namespace", team)


def test_what_a_migrated_owner_still_makes_pods_from_is_left(installed: Installed) -> None:
    """The owners are modern, and their controllers go on with the older templates."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("rollouts")

    def apply(kind: str, container: Json, **spec: Any) -> None:
        made = made_by(kind, pod(container), 1)
        made["spec"] |= spec
        if kind == "CronJob":
            made["spec"]["jobTemplate"]["spec"]["suspend"] = True
        if kind == "Deployment":  # no pod becomes ready without a kubelet
            made["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 1}}
        cluster.kubectl("-n", team, "apply", "-f", "-", stdin=yaml.safe_dump(made))

    def names() -> list[tuple[str, int]]:
        found = installed.report()[1]["owners"]
        return [(each["kind"], each["objects"]) for each in found if each["namespace"] == team]

    def pods() -> list[str]:
        return [each["metadata"]["name"] for each in cluster.client.list("Pod", team)]

    kinds = ["CronJob", "Deployment", "StatefulSet"]
    for kind in kinds:
        apply(kind, alpha())
    until(lambda: len(pods()) == 2, "the pods of the Deployment and the StatefulSet")
    job = ("job", "--from=cronjob/cronjob-of-gpu-pods", "queued")
    cluster.kubectl("-n", team, "create", *job)
    cluster.kubectl("-n", team, "rollout", "pause", "deployment/deployment-of-gpu-pods")
    partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    apply("CronJob", modern())
    apply("Deployment", modern(), paused=True)
    apply("StatefulSet", modern(), updateStrategy=partition)
    assert names() == [(kind, 1) for kind in kinds]

    # The rollouts end, and the Job is deleted: nothing is left of them.
    cluster.kubectl("-n", team, "delete", "job", "queued")
    apply("StatefulSet", modern(), updateStrategy=partition | {"rollingUpdate": {"partition": 0}})
    apply("Deployment", modern(), paused=False)
    before = pods()
    cluster.kubectl("-n", team, "delete", "pods", "--all", "--force", "--grace-period=0")
    until(lambda: len(pods()) == 2 and pods() != before, "their new pods")
    until(lambda: names() == [], "the end of the old pods", 30)

    # No pod becomes ready without a kubelet, so the roll-out of the StatefulSet never ends here.
    (gap,) = installed.report()[1]["gaps"]
    name = "rollouts/StatefulSet/statefulset-of-gpu-pods"
    assert gap.startswith(f"{name}: its roll-out has not")
    assert gap.endswith("its older template is legacy")
    cluster.kubectl("-n", team, "delete", "cronjobs,deployments,statefulsets", "--all")
    assert installed.report()[1]["gaps"] == []


def test_a_rollout_between_two_modern_templates_is_no_gap(installed: Installed) -> None:
    cluster, team = installed.cluster, installed.cluster.make_namespace("stuck")
    for image in ("example.invalid/one", "example.invalid/two"):
        made = made_by("StatefulSet", pod(modern() | {"image": image}), 1)
        cluster.kubectl("-n", team, "apply", "-f", "-", stdin=yaml.safe_dump(made))

    def revisions() -> set[str]:
        status = cluster.client.list("StatefulSet", team)[0].get("status", {})
        return {str(status.get(f"{which}Revision")) for which in ("current", "update")}

    until(lambda: len(revisions()) == 2, "a roll-out that does not end")
    assert "None" not in revisions()
    assert installed.report()[1]["gaps"] == []
    cluster.kubectl("-n", team, "delete", "statefulsets", "--all")


def test_legacy_names_in_objects_of_other_kinds_are_gaps(installed: Installed) -> None:
    """Of a kind with any schema, and of ConfigMaps."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("others")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "steps.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Step", "plural": "steps"},
            "versions": [version | {"schema": {"openAPIV3Schema": anything}}],
        },
    }
    step = {"apiVersion": "example.org/v1", "kind": "Step", "metadata": {"name": "train"}}
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "airflow"}}
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(definition))
    cluster.kubectl("wait", "--for=condition=Established", "crd/steps.example.org")
    try:
        for held in (modern(), alpha()):
            made = [step | {"worker": held}, template | {"data": {"pod.yaml": json.dumps(held)}}]
            cluster.kubectl("-n", team, "apply", "-f", "-", stdin=yaml.safe_dump_all(made))
            gaps = installed.report()[1]["gaps"]
            assert gaps == (
                []
                if held == modern()
                else [
                    _of("ConfigMaps", f"{team}/airflow"),
                    _of("Steps (example.org)", f"{team}/train"),
                ]
            )
        made = [step | {"worker": modern()}, template | {"data": {"pod.yaml": "{}"}}]
        cluster.kubectl("-n", team, "apply", "-f", "-", stdin=yaml.safe_dump_all(made))
        assert installed.report()[1]["gaps"] == []
    finally:
        cluster.kubectl("delete", "crd", "steps.example.org")
        cluster.kubectl("-n", team, "delete", "configmap", "airflow")


def _of(kinds: str, names: str) -> str:
    advice = "migrate them, or delete what is not used"
    return f"whether pods get the legacy names or driver paths in {kinds}: {names}: {advice}"


def test_what_gives_pods_legacy_words_is_a_gap(installed: Installed) -> None:
    """PodNodeSelector of API servers gives pods the labels of an annotation of their namespace."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("selecting")
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "old"},
        "handler": "nvidia",
        "scheduling": {"nodeSelector": {f"{ALPHA}-name": "Tesla-K80"}},
    }
    escaped = json.dumps(alpha()).replace("/", "\\/")
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "escaped"}}
    held = [runtime, template | {"data": {"pod.json": escaped}}]
    note = "scheduler.alpha.kubernetes.io/node-selector"
    try:
        cluster.kubectl("annotate", "namespace", team, f"{note}={ALPHA}-name=Tesla-K80")
        cluster.kubectl("-n", team, "apply", "-f", "-", stdin=yaml.safe_dump_all(held))
        assert installed.report()[1]["gaps"] == [
            _of("ConfigMaps", f"{team}/escaped"),
            _of("Namespaces", team),
            _of("RuntimeClasses (node.k8s.io)", "old"),
        ]
    finally:
        cluster.kubectl(
            "-n", team, "delete", "configmap,runtimeclass", "escaped", "old", "--ignore-not-found"
        )
        cluster.kubectl("annotate", "namespace", team, f"{note}-")


def test_a_policy_that_gives_pods_legacy_words_is_a_gap(installed: Installed) -> None:
    cluster, team = installed.cluster, installed.cluster.make_namespace("mutating")
    rule = {"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods"]}
    labels = json.dumps({f"{ALPHA}-name": "Tesla-K80"})
    expression = f'[JSONPatch{{op: "add", path: "/spec/nodeSelector", value: {labels}}}]'
    gap = _of("MutatingAdmissionPolicies (admissionregistration.k8s.io)", "old-models")

    def is_a_gap() -> bool:
        return bool(installed.report()[1]["gaps"] == [gap])

    # It is read where it stands, in force or not: the report sees both ends of its life.
    with mutating(cluster, "old-models", inside(team, rule), expression, is_a_gap):
        assert is_a_gap()
    assert installed.report()[1]["gaps"] == []


def test_legacy_objects_of_a_namespace_that_opts_out_do_not_need_the_webhook(
    installed: Installed,
) -> None:
    client = installed.cluster.client
    team = installed.cluster.make_namespace("ignoring", {"gpu-webhook.dev/ignore": "true"})
    client.create(made_by("Deployment", pod(alpha())), team)
    found = installed.report()[1]
    assert [each for each in found["owners"] if each["namespace"] == team] == []
    (note,) = [each for each in found["notes"] if "the webhook leaves alone" in each]
    assert {team, "kube-system", NAMESPACE} <= set(note.rpartition(": ")[2].split(", "))
    label = ("label", "namespace", team, "--overwrite")
    installed.cluster.kubectl(*label, "gpu-webhook.dev/ignore=false")
    found = installed.report()[1]
    assert [each["kind"] for each in found["owners"] if each["namespace"] == team] == ["Deployment"]
    installed.cluster.kubectl(*label, "gpu-webhook.dev/ignore=true")


def test_a_modern_template_without_pods_is_tried_on_the_nodes(installed: Installed) -> None:
    """A dry run shows it: only in one of the namespaces the webhook adds the toleration.

    No node of the cluster has the taint now: the inventory of the server has one that has it.
    """
    cluster = installed.cluster
    scaled = made_by("Deployment", pod(modern()), 0)
    yearly = made_by("CronJob", pod(modern()))
    tolerations = [{"key": NVIDIA, "operator": "Exists"}]
    migrated = made_by("Deployment", pod(modern(), tolerations=tolerations), 0)
    for team in ("idle", "spared"):
        cluster.make_namespace(team)
        for made in (scaled, yearly, named(migrated, "migrated")):
            cluster.client.create(made, team)

    def left() -> list[tuple[str, str]]:
        rows = installed.report()[1]["owners"]
        return [(each["kind"], each["namespace"]) for each in rows if each["codes"] == ["GPU201"]]

    assert left() == [("CronJob", "idle"), ("Deployment", "idle")]
    quota = {"hard": {f"requests.{NVIDIA}": "0"}}
    made = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    cluster.kubectl("-n", "idle", "create", "-f", "-", stdin=yaml.safe_dump(made | {"spec": quota}))

    def gaps() -> list[str]:
        return [each for each in installed.report()[1]["gaps"] if "exceeded quota" in each]

    (gap,) = until(gaps, "the quota in force")
    assert "no dry run of pods of idle/" in gap
    assert left() == []
    cluster.kubectl("delete", "namespace", "idle", "spared")


def test_a_pod_is_tried_as_its_controller_would_make_it(installed: Installed) -> None:
    """With the GPUs of a LimitRange, with volumes of claims, and of an older template."""
    cluster = installed.cluster
    exists = [{"key": NVIDIA, "operator": "Exists"}]
    team = cluster.make_namespace("idle")
    limits = {"limits": [{"type": "Container", "default": {NVIDIA: 1}}]}
    given = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "one"}, "spec": limits}
    claiming = made_by(
        "StatefulSet", pod(modern(volumeMounts=[{"name": "data", "mountPath": "/d"}])), 0
    )
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claiming["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    paused = named(made_by("Deployment", pod(modern()), 0), "paused")
    elsewhere = named(made_by("Deployment", pod(modern()), 0), "elsewhere")
    elsewhere["spec"]["template"]["metadata"]["namespace"] = "other"

    def apply(*objects: Json) -> None:
        cluster.kubectl("-n", team, "apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    try:
        apply(claiming, paused, elsewhere)
        until(lambda: len(cluster.client.list("ReplicaSet", team)) == 2, "the first templates")
        paused["spec"]["paused"] = True
        paused["spec"]["template"]["spec"]["tolerations"] = exists
        apply(given, paused, named(made_by("Deployment", pod(), 0), "given"))
        found = installed.report()[1]
        assert [each for each in found["gaps"] if "dry run" in each] == []
        left = {e["name"]: e["codes"] for e in found["owners"] if e["namespace"] == team}
        names = ("elsewhere", "given", "paused", claiming["metadata"]["name"])
        assert left == {each: ["GPU201"] for each in names}
    finally:
        cluster.kubectl("delete", "namespace", team)


def test_what_a_policy_changes_is_tried_whatever_it_requests(installed: Installed) -> None:
    """It gives a pod the GPU that its template does not have, and takes a toleration away."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("idle")
    exists = [{"key": NVIDIA, "operator": "Exists"}]
    tolerant = named(made_by("Deployment", pod(modern(), tolerations=exists), 0), "tolerant")
    gets = named(made_by("Deployment", pod(), 0), "gets")
    limits = json.dumps({NVIDIA: "1"})
    container = "/spec/containers/0/resources"
    expression = (
        f'object.spec.tolerations.exists(t, t.?key.orValue("") == "{NVIDIA}") ? '
        '[JSONPatch{op: "remove", path: "/spec/tolerations"}] : '
        f'[JSONPatch{{op: "add", path: "{container}", value: {{"limits": {limits}}}}}]'
    )
    rule = {"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods"]}

    def left() -> list[str]:
        rows = installed.report()[1]["owners"]
        return [each["name"] for each in rows if each["namespace"] == team]

    try:
        cluster.client.create(tolerant, team)
        cluster.client.create(gets, team)
        assert left() == []
        with mutating(cluster, "gpus", inside(team, rule), expression, lambda: bool(left())):
            assert left() == ["gets", "tolerant"]
    finally:
        cluster.kubectl("delete", "namespace", team)


def test_what_is_refused_now_may_be_changed_later(installed: Installed) -> None:
    """A template with GPUs is a gap then. Of those without, one image may be refused only."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("idle")
    exists = [{"key": NVIDIA, "operator": "Exists"}]
    tolerant = pod(modern(), tolerations=exists, serviceAccountName="later")
    expression = (
        f'object.spec.?tolerations.orValue([]).exists(t, t.?key.orValue("") == "{NVIDIA}") ? '
        '[JSONPatch{op: "remove", path: "/spec/tolerations"}] : []'
    )
    rule = {"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods"]}
    probe = named(pod(modern(), tolerations=exists), "probe")

    def is_in_force() -> bool:
        made = cluster.client.create(probe, team, dry_run=True).body
        return "gpu-webhook.dev/repaired" in made["metadata"].get("annotations", {})

    def of_team() -> tuple[list[str], list[str]]:
        found = installed.report()[1]
        gaps = [each for each in found["gaps"] if f"{team}/Deployment/later" in each]
        return [each["name"] for each in found["owners"] if each["namespace"] == team], gaps

    try:
        cluster.client.create(named(made_by("Deployment", tolerant, 0), "later"), team)
        with mutating(cluster, "takes", inside(team, rule), expression, is_in_force):
            left, (gap,) = of_team()
            assert (left, "later" in gap) == ([], True)
            cluster.kubectl("-n", team, "create", "serviceaccount", "later")
            assert of_team() == (["later"], [])
    finally:
        cluster.kubectl("delete", "namespace", team)


def test_a_policy_may_decide_by_what_makes_the_pods(installed: Installed) -> None:
    """One leaves DaemonSets alone and takes tolerations away, another one refuses pods of Jobs."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("idle")
    exists = [{"key": NVIDIA, "operator": "Exists"}]
    kinds = ("Deployment", "DaemonSet", "StatefulSet")
    expression = (
        "has(object.spec.tolerations) && !object.metadata.?ownerReferences.orValue([]).exists(o, "
        'o.kind == "DaemonSet") ? [JSONPatch{op: "remove", path: "/spec/tolerations"}] : []'
    )
    rule = {"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods"]}
    refusing = {
        "matchConstraints": inside(team, rule),
        "validations": [{"expression": 'object.metadata.ownerReferences.all(o, o.kind != "Job")'}],
    }
    path, metadata = "/apis/admissionregistration.k8s.io/v1", {"metadata": {"name": "no-jobs"}}
    bound = {"policyName": "no-jobs", "validationActions": ["Deny"]}
    policies = {"policies": refusing, "policybindings": bound}

    def left() -> list[str]:
        rows = installed.report()[1]["owners"]
        return [each["name"] for each in rows if each["namespace"] == team]

    try:
        for kind in kinds:
            what = made_by(kind, pod(modern(), tolerations=exists), 0)
            cluster.client.create(named(what, kind.lower()), team)
        with mutating(cluster, "owners", inside(team, rule), expression, lambda: bool(left())):
            assert left() == ["deployment", "statefulset"]
            for name, spec in policies.items():
                body = {**metadata, "spec": spec}
                cluster.client.demand("POST", f"{path}/validatingadmission{name}", body)
            job = named(made_by("Job", pod(restartPolicy="Never"), 0), "job")
            cluster.client.create(job, team)
            assert [each for each in installed.report()[1]["gaps"] if "dry run" in each] == []
    finally:
        for name in policies:
            cluster.client.request("DELETE", f"{path}/validatingadmission{name}/no-jobs")
        cluster.kubectl("delete", "namespace", team)


PODS, JOBS, SETS = ("", "pods"), ("batch", "jobs"), ("apps", "replicasets")
BEGINS = 'object.metadata.?{}.orValue("").startsWith("train-")'
# What a policy decides by: the workload, what the policy changes, and in which case it does.
DECIDED: dict[str, tuple[str, tuple[str, str], str]] = {
    "image": ("Deployment", PODS, 'object.spec.containers[0].image.startsWith("nvcr.io/")'),
    "hash": ("Deployment", PODS, '"pod-template-hash" in object.metadata.labels'),
    "job": ("CronJob", PODS, '"job-name" in object.metadata.labels'),
    "finalizer": (
        "CronJob",
        PODS,
        'object.metadata.finalizers.exists(f, f == "batch.kubernetes.io/job-tracking")',
    ),
    "owner": (
        "Deployment",
        PODS,
        "object.metadata.ownerReferences.exists(o, o.blockOwnerDeletion)",
    ),
    "name": ("Deployment", PODS, BEGINS.format("generateName")),
    "name-of-a-job": ("CronJob", JOBS, BEGINS.format("name")),
    "name-of-a-set": ("Deployment", SETS, BEGINS.format("name")),
}


def test_a_policy_may_decide_by_anything_that_controllers_write(installed: Installed) -> None:
    """The policies select objects by the labels of their templates."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("idle")

    def left() -> set[str]:
        found = installed.report()[1]
        assert [each for each in found["gaps"] if "dry run" in each] == []
        return {each["name"] for each in found["owners"] if each["namespace"] == team}

    def have(name: str, kind: str, case: str, image: str) -> None:
        held = modern(image=image)
        held = pod(held, tolerations=[{"key": NVIDIA, "operator": "Exists"}])
        made = named(made_by(kind, held, 0), name)
        spec = made["spec"].get("jobTemplate", made)["spec"]
        spec["template"]["metadata"]["labels"]["case"] = case
        cluster.client.create(made, team)

    with ExitStack() as stack:
        stack.callback(cluster.kubectl, "delete", "namespace", team)
        for case, (kind, _, _) in DECIDED.items():
            have(f"train-{case}", kind, case, "nvcr.io/a")
        for case in ("image", "name", "name-of-a-job", "name-of-a-set"):
            have(f"other-{case}", DECIDED[case][0], case, "example.com/a")
        assert left() == set()
        for case, (_, (group, plural), when) in DECIDED.items():
            at = "spec" if group == "" else "spec.template.spec"
            change = f'JSONPatch{{op: "remove", path: "/{at.replace(".", "/")}/tolerations"}}'
            expression = f"has(object.{at}.tolerations) && {when} ? [{change}] : []"
            rule = {"apiGroups": [group], "operations": ["CREATE"], "resources": [plural]}
            constraints = inside(team, rule) | {"objectSelector": {"matchLabels": {"case": case}}}

            def is_in_force(name: str = f"train-{case}") -> bool:
                return name in left()

            stack.enter_context(mutating(cluster, case, constraints, expression, is_in_force))
        assert left() == {f"train-{case}" for case in DECIDED}


@pytest.mark.parametrize(
    ("kind", "resource"),
    [("CronJob", ("batch", "jobs")), ("Deployment", ("apps", "replicasets"))],
)
def test_a_policy_may_change_what_makes_the_pods(
    installed: Installed, kind: str, resource: tuple[str, str]
) -> None:
    """The stored template tolerates the taint, and that of the next Job does not."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("idle")
    exists = [{"key": NVIDIA, "operator": "Exists"}]
    expression = '[JSONPatch{op: "remove", path: "/spec/template/spec/tolerations"}]'
    group, plural = resource
    rule = {"apiGroups": [group], "operations": ["CREATE"], "resources": [plural]}

    def left() -> list[str]:
        found = installed.report()[1]
        assert [each for each in found["gaps"] if "dry run" in each] == []
        return [each["kind"] for each in found["owners"] if each["namespace"] == team]

    try:
        cluster.client.create(made_by(kind, pod(modern(), tolerations=exists), 0), team)
        until(lambda: kind == "CronJob" or cluster.client.list("ReplicaSet", team), "its set")
        assert left() == []
        with mutating(cluster, "makers", inside(team, rule), expression, lambda: bool(left())):
            assert left() == [kind]
    finally:
        cluster.kubectl("delete", "namespace", team)


def _jobs_and_sets(change: str) -> str:
    """A policy that labels them, and changes their templates."""
    label = '{"kueue.x-k8s.io/queue-name": "a"}'
    changes = [f'JSONPatch{{op: "add", path: "/metadata/labels", value: {label}}}', change]
    return f"[{', '.join(filter(None, changes))}]"


# What the policy does to the template, and the codes of the owners that are left.
GIVEN = '{"alpha.kubernetes.io/nvidia" + "-gpu": "1"}'
IN_TEMPLATE = "/spec/template/spec"
LIMITS = f"{IN_TEMPLATE}/containers/0/resources/limits"
IN_BETWEEN = {
    "labels, which do not matter": ("", None),
    "it takes the toleration": (
        f'JSONPatch{{op: "remove", path: "{IN_TEMPLATE}/tolerations"}}',
        "GPU201",
    ),
    "it gives the legacy name": (
        f'JSONPatch{{op: "add", path: "{LIMITS}", value: {GIVEN}}}',
        "GPU101",
    ),
}


@pytest.mark.parametrize(("change", "code"), IN_BETWEEN.values(), ids=IN_BETWEEN)
def test_what_a_custom_kind_may_make_is_tried_in_each_way(
    installed: Installed, change: str, code: str | None
) -> None:
    """As Kueue has a webhook on Jobs. A template may restart its pods, and have no labels."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("idle")
    tolerant = pod(modern(), tolerations=[{"key": NVIDIA, "operator": "Exists"}])
    template = {"spec": tolerant["spec"] | {"restartPolicy": "Never", "activeDeadlineSeconds": 60}}
    job = {"name": "j", "template": {"spec": {"parallelism": 2, "template": template}}}
    head = {"metadata": {"labels": {"a": "b"}}, "spec": tolerant["spec"]}
    kinds = {
        "JobSet": ("jobset.x-k8s.io", "jobsets", {"replicatedJobs": [job]}),
        "RayCluster": ("ray.io", "rayclusters", {"headGroupSpec": {"template": head}}),
    }
    resources = ["jobs", "replicasets", "statefulsets"]
    rule = {"apiGroups": ["apps", "batch"], "operations": ["CREATE"], "resources": resources}
    probe = made_by("Job", tolerant, 1)

    def is_in_force() -> bool:
        made = cluster.client.create(probe, team, dry_run=True).body
        return "kueue.x-k8s.io/queue-name" in made["metadata"].get("labels", {})

    def left() -> dict[str, list[str]]:
        found = installed.report()[1]
        assert [each for each in found["gaps"] if "dry run" in each] == []
        rows = (each for each in found["owners"] if each["namespace"] == team)
        return {each["kind"]: each["codes"] for each in rows}

    try:
        for kind, (group, plural, spec) in kinds.items():
            cluster.client.demand("POST", DEFINITIONS, definition(kind, group, plural))
            cluster.kubectl("wait", "--for=condition=Established", f"crd/{plural}.{group}")
            made = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"}}
            cluster.kubectl(
                "-n", team, "create", "-f", "-", stdin=yaml.safe_dump(made | {"spec": spec})
            )
        assert left() == {}
        constraints, expression = inside(team, rule), _jobs_and_sets(change)
        with mutating(cluster, "between", constraints, expression, is_in_force):
            assert left() == ({kind: [code] for kind in kinds} if code else {})
    finally:
        for group, plural, _ in kinds.values():
            cluster.kubectl("delete", "crd", f"{plural}.{group}", "--ignore-not-found")
        cluster.kubectl("delete", "namespace", team)


def test_what_is_legacy_in_kube_system_does_not_need_the_webhook(installed: Installed) -> None:
    client, space = installed.cluster.client, "kube-system"
    before = installed.report()[1]["owners"]
    plugin = client.create(made_by("DaemonSet", pod(alpha())), space).body["metadata"]["name"]
    try:
        assert installed.report()[1]["owners"] == before
    finally:
        client.delete("DaemonSet", plugin, space)


def test_a_repair_of_a_modern_pod_that_ended_is_left(installed: Installed) -> None:
    """Neither the pod nor its Event is there any more: the servers know when it came."""
    client, team = installed.cluster.client, installed.cluster.make_namespace("tolerating")
    assert installed.report()[1]["repairs"] == []
    tried = named(pod(modern()), "monthly")
    client.create(tried, team, dry_run=True)
    time.sleep(1.5)  # workers hand over their counts once a second
    assert installed.report()[1]["repairs"] == []
    made = client.create(tried, team).body
    assert made["metadata"]["annotations"]["gpu-webhook.dev/repaired"] == "GPU201"
    client.delete("Pod", "monthly", team)

    def is_counted() -> bool:
        return [each["rule"] for each in installed.report()[1]["repairs"]] == ["GPU201"]

    until(is_counted, "the repair in the metrics")
    code, found = installed.report()
    assert (code, found["verdict"]) == (LEFT, "left")
    assert "repairs by GPU201 in the last 30 days" in found["answer"]


def test_an_annotation_that_was_copied_is_no_repair(installed: Installed) -> None:
    """What managedFields say of it, in a template, in its pods and in a pod of nobody."""
    cluster, team = installed.cluster, installed.cluster.make_namespace("idle")
    equal = [{"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}]
    copied = pod(modern(), tolerations=equal)
    copied["metadata"]["annotations"] = {"gpu-webhook.dev/repaired": "GPU201"}
    repaired = named(pod(modern()), "repaired")
    try:
        for each in (named(copied, "copied"), made_by("Deployment", copied, 1), repaired):
            cluster.client.create(each, team)
        until(lambda: len(cluster.client.list("Pod", team)) == 3, "the pod of the Deployment")
        found = installed.report()[1]
        rows = [
            (each["kind"], each["name"]) for each in found["owners"] if each["namespace"] == team
        ]
        assert rows == [("Pod", "repaired")]
        assert [each for each in found["gaps"] if "dry run" in each] == []
    finally:
        cluster.kubectl("delete", "namespace", team, "--wait=false")
        cluster.kubectl("-n", team, "delete", "pods", "--all", "--force", "--grace-period=0")


def test_replicas_that_were_removed_took_their_counts_along(installed: Installed) -> None:
    """By an autoscaler or `kubectl scale`: the API server notes no time of these writes."""
    cluster = installed.cluster

    def pods() -> list[str]:
        return [each["metadata"]["name"] for each in cluster.client.list("Pod", NAMESPACE)]

    assert installed.report()[1]["known"]["because"] == f"{installed.pod} started"
    scale = ("-n", NAMESPACE, "scale", "deployment/gpu-webhook")
    cluster.kubectl(*scale, "--replicas=2")
    until(lambda: len(pods()) == 2, "the second pod")
    time.sleep(2)
    before = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    cluster.kubectl(*scale, "--replicas=1")
    until(lambda: pods() == [installed.pod], "its end", 60)
    known = installed.report()[1]["known"]
    assert known["because"].startswith("the number of replicas was changed (")
    assert known["since"] >= before[:-3]


def test_a_policy_that_only_the_webhook_enforces_is_left(installed: Installed) -> None:
    cluster = installed.cluster
    guard = yaml.safe_load((ROOT / "manifests" / "guard" / "webhook.yaml").read_text())
    team = cluster.make_namespace("guarded", {"gpu-webhook.dev/guard": "enabled"})
    settings = ("-n", NAMESPACE, "patch", "configmap", "gpu-webhook-settings", "--type=merge", "-p")

    def policies(text: str) -> Any:
        cluster.kubectl(*settings, json.dumps({"data": {"settings.yaml": text}}))
        return installed.report()

    enforced = "policy: {rules: {GPU303: enforce, GPU304: enforce}}\n"
    limits = "capacity: {limits: [{gpus: {nvidia.com/gpu: 2}}]}\n"
    cluster.client.demand("POST", path_of(KINDS[0]), guard)
    try:
        assert policies(limits)[1]["policies"] == {}
        code, found = policies(enforced + limits)
        assert (code, {*found["policies"]}) == (LEFT, {"GPU303", "GPU304"})
        assert "only the webhook enforces GPU303, GPU304" in found["answer"]
        assert team in found["policies"]["GPU303"]
    finally:
        cluster.client.demand("DELETE", path_of(KINDS[0], name=guard["metadata"]["name"]))
    try:
        assert {*policies(enforced)[1]["policies"]} == set()
    finally:
        policies("{}\n")
        cluster.kubectl("delete", "namespace", team)


def test_a_server_that_does_not_answer_is_a_gap(installed: Installed) -> None:
    installed.runs_at("192.0.2.200", time.time())
    try:
        _, found = installed.report()
        (gap,) = found["gaps"]
        assert gap.startswith(f"what came to {installed.pod}: its metrics cannot be read: ")
    finally:
        installed.runs_at(own_address(), time.time())


def test_a_user_without_rights_hears_that_nothing_is_known(
    installed: Installed, tmp_path: Path
) -> None:
    config = orjson.loads(installed.cluster.kubeconfig.read_bytes())
    token = installed.cluster.kubectl("-n", "default", "create", "token", "default").strip()
    config["users"][0]["user"] = {"token": token}
    file = tmp_path / "weak.kubeconfig"
    file.write_bytes(orjson.dumps(config))
    code, found = installed.report(kubeconfig=file)
    assert (code, found["verdict"], found["known"]["since"]) == (UNKNOWN, "unknown", None)
    assert found["gaps"][0].startswith("what came to the webhook: the API server answered 403: ")
    assert any("Pods are not checked" in gap for gap in found["gaps"])


def test_a_kubeconfig_may_act_for_another_user(installed: Installed, tmp_path: Path) -> None:
    """As kubectl does: an administrator who is no one here, or who has rights only as a group."""
    config = orjson.loads(installed.cluster.kubeconfig.read_bytes())
    file = tmp_path / "other.kubeconfig"

    def gaps(**user: Any) -> list[str]:
        own = config["users"][0]["user"]
        file.write_bytes(orjson.dumps(config | {"users": [{"name": "admin", "user": own | user}]}))
        found: list[str] = installed.report(kubeconfig=file)[1]["gaps"]
        return [each for each in found if "403" in each]

    assert gaps() == []
    assert 'User "nobody" cannot' in gaps(**{"as": "nobody"})[0]
    assert gaps(**{"as": "nobody", "as-groups": ["some", "system:masters"]}) == []
