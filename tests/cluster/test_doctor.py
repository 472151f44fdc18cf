"""`gpu-webhook doctor` on a real control plane: nothing on a healthy one, each fault by name."""

from __future__ import annotations

import base64
import copy
import io
import json
import socket
import time
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from tests.cluster import nodes
from tests.cluster.client import path_of, until
from tests.cluster.conftest import INVENTORY, with_nodes
from tests.cluster.pods import pod as pod_of
from tests.cluster.policies import inside
from tests.cluster.replicas import NAMESPACE, Replicas, keeper_of, own_address
from tests.cluster.webhook import BASE, KINDS, ROOT, Endpoint, kustomized
from webhook.certs.authority import new_authority
from webhook.certs.own_certificates import OwnCertificates
from webhook.certs.renewal import Plan
from webhook.cli.main import main
from webhook.issuing.keeper import Clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

    Change = Callable[[Json], Any]

HERE = f"/api/v1/namespaces/{NAMESPACE}"
REPAIR, POLICY = (path_of(kind, name="gpu-webhook") for kind in KINDS)
DEPLOYMENT = path_of("Deployment", NAMESPACE, "gpu-webhook")
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/gpu-webhook"
BINDING = (
    f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
    "/rolebindings/gpu-webhook-certificates"
)
OK, WARNING, FAILED = 0, 2, 3
OURS = ("mutating/gpu-webhook", "validating/gpu-webhook")
HOSTS = ("127.0.0.1", f"gpu-webhook.{NAMESPACE}.svc")


class Answer(NamedTuple):
    code: int
    lines: list[dict[str, str]]

    @property
    def faults(self) -> dict[str, list[str]]:
        """The texts of the lines that are not ok."""
        found: dict[str, list[str]] = {}
        for line in self.lines:
            if line["state"] != "ok":
                found.setdefault(line["what"], []).append(line["text"])
        return found


class Installed:
    """The shipped manifests, with a server and, in place of the watchers, a keeper of this test."""

    def __init__(self, cluster: ControlPlane, replicas: Replicas) -> None:
        self.cluster, self.replicas = cluster, replicas
        self._ahead = 0.0
        clocks = Clocks(time.time, lambda: time.monotonic() + self._ahead)
        self._keeper = keeper_of(cluster, replicas.each[0].pair, HOSTS[0], clocks)
        self._keeper._plan = Plan(HOSTS)

    def doctor(self, *words: str) -> Answer:
        said = io.StringIO()
        with redirect_stdout(said):
            code = main(["doctor", f"--kubeconfig={self.cluster.kubeconfig}", "-o", "json", *words])
        return Answer(code, json.loads(said.getvalue()))

    def keep(self) -> None:
        """What a watcher does all the time."""
        self._ahead += 30  # the Lease of another one ends
        self._keeper.pass_once()
        self._keeper.pass_once()

    def be_healthy(self) -> None:
        """As kubelets do: the pods are ready. As watchers do: the certificates are right."""
        self.keep()
        for pod in self.cluster.client.list("Pod", NAMESPACE):
            ready = {
                "type": "Ready",
                "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            address = own_address()
            where = {"podIP": address, "podIPs": [{"ip": address}]}
            status = {"status": {"conditions": [ready], "phase": "Running", **where}}
            name = pod["metadata"]["name"]
            if "deletionTimestamp" in pod["metadata"]:
                self.cluster.client.delete("Pod", name, NAMESPACE)
                continue
            self.cluster.client.patch("Pod", name, status, NAMESPACE, subresource="status")

    @contextmanager
    def changed(self, path: str, change: Change) -> Iterator[None]:
        """An object is another one, or (None) is not there."""
        ask = self.cluster.client
        before = ask.demand("GET", path).body
        after = change(copy.deepcopy(before))
        if after is None:
            ask.demand("DELETE", path)
        else:
            ask.demand("PUT", path, after)
        try:
            yield
        finally:
            now = ask.request("GET", path)
            if now.ok:
                before["metadata"]["resourceVersion"] = now.body["metadata"]["resourceVersion"]
                ask.demand("PUT", path, before)
            else:
                del before["metadata"]["resourceVersion"], before["metadata"]["uid"]
                ask.demand("POST", path.rpartition("/")[0], before)

    @contextmanager
    def added(self, path: str, obj: Json) -> Iterator[None]:
        self.cluster.client.demand("POST", path, obj)
        try:
            yield
        finally:
            self.cluster.client.demand("DELETE", f"{path}/{obj['metadata']['name']}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """One of its own: what other files leave is legacy, or a fault that doctor finds."""
    with with_nodes() as running:
        yield running


@pytest.fixture(scope="module")
def installed(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    others = [each for each in kustomized(cluster, BASE) if each["kind"] not in KINDS]
    folder, words = tmp_path_factory.mktemp("doctor"), [f"--certificate-for={HOSTS[1]}"]
    with Replicas(cluster, folder, words, count=1) as replicas:
        replica = replicas.each[0]
        for each in others:
            if each["kind"] == "Deployment":  # its pods have the address of the server
                server = each["spec"]["template"]["spec"]["containers"][0]
                server["ports"][0]["containerPort"] = replica.port
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(others))
        until(lambda: all(replicas.bundles()), "all bundles", 60)
        replica.start_again(keeps_certificates=False)
        until(lambda: len(cluster.client.list("Pod", NAMESPACE)) == 2, "the pods", 60)
        yield Installed(cluster, replicas)


@pytest.fixture
def healthy(installed: Installed) -> Installed:
    def nothing_found() -> bool:
        installed.be_healthy()
        return not installed.doctor().faults

    try:
        until(nothing_found, "a healthy cluster", 60)
    except TimeoutError:
        pytest.fail(f"not healthy: {installed.doctor().faults}")
    return installed


def test_a_healthy_cluster_has_nothing(healthy: Installed) -> None:
    answer = healthy.doctor()
    assert answer.code == OK
    assert {line["state"] for line in answer.lines} == {"ok"}
    assert len(answer.lines) >= 16
    assert next(line["text"] for line in answer.lines if line["what"] == "dry run").startswith(
        "a legacy pod in namespace default is repaired within "
    )


def each_client(change: Callable[[Json], Any], obj: Json) -> Json:
    for entry in obj["webhooks"]:
        change(entry["clientConfig"])
    return obj


def without_bundle(obj: Json) -> Json:
    return each_client(lambda client: client.pop("caBundle"), obj)


def of_a_stranger(obj: Json) -> Json:
    bundle = base64.b64encode(new_authority("other", 0, 2e9).text).decode()
    return each_client(lambda client: client.update(caBundle=bundle), obj)


def at_port(port: int, obj: Json) -> Json:
    return each_client(lambda client: client.update(url=f"https://127.0.0.1:{port}/mutate"), obj)


def leaf(start: float, end: float, obj: Json, hosts: tuple[str, ...] = HOSTS) -> Json:
    """A pair of the stored CA with these times, in days from now."""
    now = time.time()
    data = {name: base64.b64decode(text) for name, text in obj["data"].items()}
    kept = OwnCertificates.read(data, now)
    assert kept.ca is not None
    made = Plan(hosts, (end - start) * 86400).leaf(kept.ca, now + start * 86400)
    for name, text in OwnCertificates(leaf=made).data().items():
        obj["data"][name] = base64.b64encode(text).decode()
    return obj


def merged(patch: Json, obj: Json) -> Json:
    """The object with a merge patch."""
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(obj.get(key), dict):
            merged(value, obj[key])
        else:
            obj[key] = value
    return obj


def in_settings(text: str, obj: Json) -> Json:
    return merged({"data": {"settings.yaml": text}}, obj)


def first_entry(part: Json, obj: Json) -> Json:
    obj["webhooks"][0].update(part)
    return obj


def first_rule(part: Json, obj: Json) -> Json:
    obj["webhooks"][0]["rules"][0].update(part)
    return obj


def without_second_entry(obj: Json) -> Json:
    del obj["webhooks"][1]
    return obj


def with_image(image: str, obj: Json) -> Json:
    for container in obj["spec"]["template"]["spec"]["containers"]:
        container["image"] = image
    return obj


def without_nodes(obj: Json) -> Json:
    obj["rules"][0]["resources"].remove("nodes")
    return obj


def no(_: Json) -> None:
    return None


SECRET = Replicas.secret
ALONE = {"spec": {"replicas": 1}}
# What is changed, and what the doctor finds: the code, and each line that is not ok.
FAULTS: dict[str, tuple[str, Change, int, dict[str, str]]] = {
    "the repairing configuration was deleted": (
        REPAIR,
        no,
        FAILED,
        {"registered": "no webhook configuration mutating/gpu-webhook"},
    ),
    "the checking configuration was deleted": (
        POLICY,
        no,
        WARNING,
        {"registered": "no webhook configuration validating/gpu-webhook"},
    ),
    "something emptied a caBundle": (
        REPAIR,
        without_bundle,
        FAILED,
        {
            "mutating/gpu-webhook": "its caBundle is empty",
            "dry run": "came back unrepaired at once",
        },
    ),
    "a caBundle has another CA": (
        REPAIR,
        of_a_stranger,
        FAILED,
        {"mutating/gpu-webhook": "does not trust the server", "dry run": "does not trust"},
    ),
    "the certificate has expired": (
        SECRET,
        partial(leaf, -40, -10),
        FAILED,
        {"server": "missing, expired or damaged", **dict.fromkeys(OURS, "not compared")},
    ),
    "the certificate is not renewed": (
        SECRET,
        partial(leaf, -26, 4),
        WARNING,
        {"server": ".svc: not renewed"},
    ),
    "the Secret was deleted": (
        SECRET,
        no,
        FAILED,
        {
            **dict.fromkeys(("CA", "server"), "missing, expired or damaged"),
            **dict.fromkeys(OURS, "not compared"),
        },
    ),
    "no watcher holds the Lease": (
        Replicas.lease,
        partial(merged, {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}),
        WARNING,
        {"watcher": "no watcher has kept the certificates for "},
    ),
    "an entry has conditions of other settings": (
        REPAIR,
        partial(first_entry, {"matchConditions": [{"name": "all", "expression": "true"}]}),
        WARNING,
        {"matchConditions": "repair.gpu-webhook.dev has other matchConditions"},
    ),
    "the settings have a mistake": (
        f"{HERE}/configmaps/SETTINGS",
        partial(in_settings, "scope: all\n"),
        FAILED,
        {"settings": "settings:1:"},
    ),
    "the settings repair templates, and no entry does": (
        f"{HERE}/configmaps/SETTINGS",
        partial(in_settings, "workloads: {repair: true}\n"),
        WARNING,
        {"workloads": "mutating/gpu-webhook-workloads is not there"},
    ),
    "the ClusterRole lacks nodes": (
        ROLE,
        without_nodes,
        WARNING,
        {"rights": "the watcher may not: list nodes, watch nodes"},
    ),
    "the Role of the certificates is not bound": (
        BINDING,
        no,
        WARNING,
        {"rights": "get secrets/gpu-webhook-certificates"},
    ),
    "an update does not end": (
        DEPLOYMENT,
        partial(with_image, "gpu-admission-webhook:next"),
        WARNING,
        {"pods": "2 of 2 replicas are ready; the roll-out has not ended: 1 of 3 have"},
    ),
    "the only replica is updated, and the new pod does not start": (
        DEPLOYMENT,
        lambda obj: with_image("gpu-admission-webhook:next", merged(ALONE, obj)),
        WARNING,
        {"pods": "1 of 1 replicas are ready; the roll-out has not ended: 1 of 2 have"},
    ),
    "no replica is to run": (
        DEPLOYMENT,
        partial(merged, {"spec": {"replicas": 0}}),
        FAILED,
        {"pods": "0 of 0 replicas are ready"},
    ),
    "an uninstall left the configurations": (
        DEPLOYMENT,
        no,
        FAILED,
        {
            "registered": "there is no Deployment",
            "leftovers": "clusterrolebinding/gpu-webhook is for the namespace gpu-webhook, where "
            "the webhook is not installed",
        },
    ),
    "the checking configuration has no entries": (
        POLICY,
        partial(merged, {"webhooks": []}),
        WARNING,
        {"registered": "no webhook configuration validating/gpu-webhook, or an empty one"},
    ),
    "only pods with a label are repaired": (
        REPAIR,
        partial(first_entry, {"objectSelector": {"matchLabels": {"gpu-repair": "enabled"}}}),
        WARNING,
        {
            "dry run": "objectSelector of mutating/gpu-webhook does not select these labels: app=",
            "entries": "the objectSelector selects only some objects",
        },
    ),
    "the namespace of the pod is excluded": (
        REPAIR,
        partial(
            first_entry,
            {
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["default", "kube-system", NAMESPACE],
                        },
                        {
                            "key": "gpu-webhook.dev/ignore",
                            "operator": "NotIn",
                            "values": ["true"],
                        },
                    ]
                }
            },
        ),
        WARNING,
        {"dry run": "does not select these labels: kubernetes.io/metadata.name=default"},
    ),
    "an entry has no namespaceSelector": (
        POLICY,
        partial(first_entry, {"namespaceSelector": {}}),
        FAILED,
        {"entries": "policy.gpu-webhook.dev: the namespaceSelector selects the namespace of the"},
    ),
    "an entry does not send new pods": (
        POLICY,
        partial(first_rule, {"operations": ["UPDATE"]}),
        FAILED,
        {"entries": "policy.gpu-webhook.dev: the rules do not send CREATE pods"},
    ),
    "an entry is sent for pods only that have no namespace": (
        POLICY,
        partial(first_rule, {"scope": "Cluster"}),
        FAILED,
        {"entries": "policy.gpu-webhook.dev: the rules do not send CREATE pods"},
    ),
    "an entry calls another path": (
        POLICY,
        partial(each_client, lambda client: client.update(url=f"{client['url']}/v2")),
        FAILED,
        {"entries": "the path of clientConfig is /validate"},
    ),
    "the cluster relies on a control": (
        POLICY,
        partial(first_entry, {"failurePolicy": "Fail", "timeoutSeconds": 10}),
        WARNING,
        {"entries": "failurePolicy is Fail, not Ignore; policy.gpu-webhook.dev: timeoutSeconds"},
    ),
    "pods need the repairing entry": (
        REPAIR,
        partial(first_entry, {"failurePolicy": "Fail", "reinvocationPolicy": "Never"}),
        FAILED,
        {"entries": "reinvocationPolicy is Never, not IfNeeded"},
    ),
    "an entry was deleted": (
        POLICY,
        without_second_entry,
        WARNING,
        {"entries": "workloads.gpu-webhook.dev: is not there"},
    ),
    "a namespace wants the guard": (
        "/api/v1/namespaces/default",
        partial(merged, {"metadata": {"labels": {"gpu-webhook.dev/guard": "enabled"}}}),
        WARNING,
        {"guard": "nothing guards default"},
    ),
}


@pytest.mark.parametrize(("path", "change", "code", "lines"), FAULTS.values(), ids=FAULTS)
def test_each_fault_has_its_line(
    path: str, change: Change, code: int, lines: dict[str, str], healthy: Installed
) -> None:
    if path.endswith("SETTINGS"):
        maps = healthy.cluster.client.demand("GET", f"{HERE}/configmaps").body["items"]
        names = [each["metadata"]["name"] for each in maps]
        path = path.replace("SETTINGS", next(name for name in names if "settings" in name))
    with healthy.changed(path, change):
        expect(healthy, code, lines)


def expect(installed: Installed, code: int, lines: dict[str, str], *words: str) -> None:
    """API servers and controllers read what changed with some delay."""
    last: list[Answer] = []

    def found() -> bool:
        last.append(installed.doctor(*words))
        faults = last[-1].faults
        return (
            last[-1].code == code
            and {*faults} == {*lines}
            and all(text in " ".join(faults[what]) for what, text in lines.items())
        )

    try:
        until(found, "the line", 15)
    except TimeoutError:
        pytest.fail(f"found {last[-1].code} {last[-1].faults}")


def test_pods_that_hang(healthy: Installed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hung:
        port = hung.getsockname()[1]
        with healthy.changed(REPAIR, partial(at_port, port)):
            expect(healthy, FAILED, {"dry run": "did not answer within 3."})


def test_nothing_listens(healthy: Installed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with healthy.changed(REPAIR, partial(at_port, port)):
        expect(healthy, FAILED, {"dry run": "nothing listens behind the Service"})
        with healthy.changed(REPAIR, partial(first_entry, {"failurePolicy": "Fail"})):
            lines = {
                "dry run": "the call of the webhook failed: ",
                "entries": "failurePolicy is Fail",
            }
            expect(healthy, FAILED, lines)


def of_inventory(installed: Installed) -> tuple[str, str]:
    lines = {each["what"]: each for each in installed.doctor().lines}
    return lines["inventory"]["state"], lines["inventory"]["text"]


def test_a_watcher_that_stands_still_or_may_not_list_nodes(healthy: Installed) -> None:
    """After a while its server says so of itself; a new one knows no nodes at all."""
    replica = healthy.replicas.each[0]
    assert of_inventory(healthy) == ("ok", "2 of 2 servers have one that is up to date")
    replica.kill_watcher()
    why = "the watcher has written nothing for "
    until(lambda: why in of_inventory(healthy)[1], "the end of the watcher", 60)
    assert of_inventory(healthy)[0] == "failed"
    with healthy.changed(ROLE, without_nodes):
        replica.start_again()
        healthy.keep()
        expect(healthy, WARNING, {"inventory": "2 of 2 servers have none", "rights": "list nodes"})
        assert "unknown; nothing is denied for capacity" in of_inventory(healthy)[1]
    replica.start_again()
    healthy.keep()
    expect(healthy, OK, {})


def test_a_cluster_without_a_node_with_gpus_is_healthy(healthy: Installed) -> None:
    client = healthy.cluster.client
    client.delete_all("Node")
    healthy.replicas.each[0].start_again()
    healthy.keep()
    try:
        until(lambda: "; no node offers GPUs" in of_inventory(healthy)[1], "an empty cluster", 30)
        expect(healthy, OK, {})
    finally:
        nodes.add(client, nodes.from_inventory(INVENTORY))
        healthy.replicas.each[0].start_again()


UNDONE = [
    {"op": "replace", "path": "/spec/containers/0/resources/limits", "value": {"cpu": "1m"}},
    {"op": "replace", "path": "/spec/containers/0/resources/requests", "value": {"cpu": "1m"}},
]


@pytest.mark.parametrize("more", [[], [{"op": "remove", "path": "/metadata/annotations"}]])
def test_another_webhook_undoes_the_repair(more: list[Json], healthy: Installed) -> None:
    """Also where it takes the annotation with it."""

    def respond(_: str, body: bytes) -> tuple[int, bytes]:
        patch = base64.b64encode(json.dumps(UNDONE + more).encode()).decode()
        uid = json.loads(body)["request"]["uid"]
        response = {"uid": uid, "allowed": True, "patchType": "JSONPatch", "patch": patch}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return 200, json.dumps({**review, "response": response}).encode()

    with Endpoint(healthy.cluster.authority, respond, "foreign") as other:
        bundle = base64.b64encode(other.bundle.read_bytes()).decode()
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        entry = {
            "name": "undo.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [{**rule, "operations": ["CREATE"]}],
            "clientConfig": {"url": f"https://127.0.0.1:{other.port}/", "caBundle": bundle},
        }
        name = {"metadata": {"name": "zz-undo"}}
        with healthy.added(path_of(KINDS[0]), {**name, "webhooks": [entry]}):
            expect(healthy, FAILED, {"dry run": "something that runs after it undid that"})
            (line,) = [each for each in healthy.doctor().lines if each["what"] == "dry run"]
            assert "zz-undo" in line["fix"]


GUARD = yaml.safe_load((ROOT / "manifests" / "guard" / "webhook.yaml").read_text())
GUARDED = path_of(KINDS[0], name="gpu-webhook-guard")


def without_label_of_the_guard(obj: Json) -> Json:
    del obj["webhooks"][0]["namespaceSelector"]["matchExpressions"][0]
    return obj


NAMED: dict[str, tuple[str, Change, int, dict[str, str]]] = {
    "as shipped": (f"{HERE}/services/gpu-webhook", lambda obj: obj, OK, {}),
    "the Service was deleted": (
        f"{HERE}/services/gpu-webhook",
        no,
        FAILED,
        {"registered": "mutating/gpu-webhook-guard calls gpu-webhook/gpu-webhook, which is not"},
    ),
    "the guard is called at a port that the Service does not have": (
        GUARDED,
        partial(each_client, lambda client: client["service"].update(port=8443)),
        FAILED,
        {"entries": "guard.gpu-webhook.dev: the port of clientConfig is 8443"},
    ),
    "the guard gets the pods of all namespaces": (
        GUARDED,
        without_label_of_the_guard,
        FAILED,
        {"entries": "selects namespaces without the label gpu-webhook.dev/guard"},
    ),
    "the certificate lacks the name of the Service": (
        SECRET,
        partial(leaf, 0, 30, hosts=HOSTS[:1]),
        FAILED,
        {"server": f"API servers call {HOSTS[1]}, and the certificate has no such name"},
    ),
    "the guard does nothing in a namespace that has its label": (
        "/api/v1/namespaces/default",
        partial(merged, {"metadata": {"labels": {"gpu-webhook.dev/guard": "enabled"}}}),
        WARNING,
        {"guard": "pods of these namespaces do not change: default (GPU303 is `audit`)"},
    ),
}


@pytest.mark.parametrize(("path", "change", "code", "lines"), NAMED.values(), ids=NAMED)
def test_an_entry_that_calls_a_service(
    path: str, change: Change, code: int, lines: dict[str, str], healthy: Installed
) -> None:
    with healthy.added(path_of(KINDS[0]), GUARD):
        healthy.keep()
        with healthy.changed(path, change):
            expect(healthy, code, lines)


def test_what_to_do_for_a_missing_right_undoes_no_settings_of_an_overlay(
    healthy: Installed,
) -> None:
    """It is an overlay of the base: the base in its place would undo its settings."""
    settings = "policy: {rules: {GPU304: enforce}}\n"
    path = f"{HERE}/configmaps/gpu-webhook-settings"
    with (
        healthy.changed(path, partial(in_settings, settings)),
        healthy.changed(ROLE, without_nodes),
    ):
        (line,) = [each for each in healthy.doctor().lines if each["what"] == "rights"]
    assert line["fix"] == (
        "apply again the kustomization that you installed from: it has the roles of the watcher "
        "and their bindings; SECURITY.md says what is missing without each of them"
    )


def test_a_limit_range_that_adds_0_under_the_legacy_name(healthy: Installed) -> None:
    """The pod is repaired, and the scheduler finds a node for it."""
    limits = [{"type": "Container", "default": {"alpha.kubernetes.io/nvidia-gpu": "0"}}]
    added = {"metadata": {"name": "legacy"}, "spec": {"limits": limits}}
    with healthy.added("/api/v1/namespaces/default/limitranges", added):
        time.sleep(1)  # until the API server has it
        expect(healthy, OK, {})


OF_PODS = {
    "a maximum": {"type": "Pod", "max": {"cpu": "1", "memory": "1Gi"}},
    "a ratio": {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}},
}


@pytest.mark.parametrize("limit", OF_PODS.values(), ids=OF_PODS)
def test_a_limit_range_of_pods_that_wants_limits(healthy: Installed, limit: Json) -> None:
    added = {"metadata": {"name": "pods"}, "spec": {"limits": [limit]}}
    with healthy.added("/api/v1/namespaces/default/limitranges", added):
        time.sleep(1)  # until the API server has it
        expect(healthy, OK, {})


_USUAL = (  # what policies on all pods ask for
    (
        '["name", "instance", "version", "component", "part-of", "managed-by"]'
        '.all(n, "app.kubernetes.io/" + n in object.metadata.?labels.orValue({}))'
    ),
    "object.spec.containers.all(c, has(c.readinessProbe) && has(c.livenessProbe))",
    "object.spec.containers.all(c, c.?securityContext.?readOnlyRootFilesystem.orValue(false))",
    'object.spec.containers.all(c, c.imagePullPolicy == "Always")',
    "object.spec.securityContext.?runAsUser.orValue(0) >= 1000",
    "object.spec.securityContext.?runAsGroup.orValue(0) >= 1000",
    "object.spec.securityContext.?fsGroup.orValue(0) >= 1000",
    '"app" in object.metadata.labels',
    "!object.spec.?automountServiceAccountToken.orValue(true)",
    "object.spec.?securityContext.?runAsNonRoot.orValue(false) == true",
)


def test_a_policy_that_wants_limits_and_a_controller(healthy: Installed) -> None:
    client, path = healthy.cluster.client, "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods"]}
    limited = 'object.spec.containers.all(c, c.?resources.?limits[?"memory"].hasValue())'
    owned = "has(object.metadata.ownerReferences) && has(object.metadata.generateName)"
    spec = {
        "matchConstraints": inside("default", rule),
        "validations": [{"expression": each} for each in (limited, owned, *_USUAL)],
    }
    binding = {"policyName": "strict", "validationActions": ["Deny"]}
    bare = pod_of()
    with (
        healthy.added(
            f"{path}/validatingadmissionpolicies", {**named_only("strict"), "spec": spec}
        ),
        healthy.added(
            f"{path}/validatingadmissionpolicybindings", {**named_only("strict"), "spec": binding}
        ),
    ):
        until(lambda: not client.try_create(bare, "default", dry_run=True).ok, "the policy")
        expect(healthy, OK, {})


def named_only(name: str) -> Json:
    return {"metadata": {"name": name}}


def test_labels_that_a_platform_gives_to_all_objects(healthy: Installed) -> None:
    """As `labels` of a kustomization do. A binding of another role is none of the webhook's."""
    kubectl = healthy.cluster.kubectl
    own = {"app.kubernetes.io/part-of": "ml-platform", "app.kubernetes.io/name": "gpu"}
    relabel = partial(merged, {"metadata": {"labels": own}})
    group = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    monitor = ("create", "clusterrolebinding", "monitor", "--clusterrole=view")
    with ExitStack() as stack:
        kubectl(*monitor, "--serviceaccount=monitoring:prometheus")
        stack.callback(kubectl, "delete", "clusterrolebinding", "monitor")
        kubectl(
            "label",
            "clusterrolebinding",
            "monitor",
            "app.kubernetes.io/part-of=gpu-admission-webhook",
        )
        for path in (DEPLOYMENT, REPAIR, POLICY, f"{group}/gpu-webhook"):
            stack.enter_context(healthy.changed(path, relabel))
        expect(healthy, OK, {})


def test_leftovers_of_another_namespace(healthy: Installed) -> None:
    other = yaml.safe_load((ROOT / "manifests" / "workload-repair" / "webhook.yaml").read_text())
    other["metadata"]["name"] = "older"
    (entry,) = other["webhooks"]
    entry["clientConfig"]["service"]["namespace"] = "former"
    binding = {
        "metadata": {"name": "older"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "gpu-webhook",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "gpu-webhook", "namespace": "former"}],
    }
    with ExitStack() as stack:
        stack.enter_context(healthy.added(path_of(KINDS[0]), other))
        group = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        stack.enter_context(healthy.added(group, binding))
        left = (
            "mutatingwebhookconfiguration/older is for the namespace former, where the webhook is"
        )
        expect(healthy, WARNING, {"leftovers": f"{left} not installed"})
        lines = [each for each in healthy.doctor().lines if each["what"] == "leftovers"]
        assert [each["fix"] for each in lines] == [
            "kubectl delete clusterrolebinding/older",
            "kubectl delete mutatingwebhookconfiguration/older",
        ]
        service = healthy.cluster.client.demand("GET", f"{HERE}/services/gpu-webhook").body
        namespace = {"metadata": {"name": "former"}}
        stack.enter_context(healthy.added("/api/v1/namespaces", namespace))
        until(lambda: healthy.doctor().code == WARNING, "the namespace", 15)
        there = {
            "metadata": {"name": "gpu-webhook"},
            "spec": {"ports": service["spec"]["ports"]},
        }
        stack.enter_context(healthy.added("/api/v1/namespaces/former/services", there))
        expect(healthy, WARNING, {"leftovers": f"{left} installed, too"})
        assert "kubectl delete" not in json.dumps(healthy.doctor().lines)


def test_it_is_installed_in_another_namespace(healthy: Installed) -> None:
    """Nothing that is in use is to be deleted."""
    text = "no Deployment of the webhook in the namespace default: it is installed in gpu-webhook"
    expect(healthy, FAILED, {"registered": text}, "-n", "default")
    answer = healthy.doctor("-n", "default")
    assert [each["fix"] for each in answer.lines if each["fix"]] == [
        "gpu-webhook doctor -n gpu-webhook"
    ]


# What a user may read, besides what the role `edit` allows in the namespace of the pod.
USERS = {
    "configurations and bindings, and nothing in the namespace of the webhook": (
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations", "clusterrolebindings"],
        [],
        {"registered", "pods", "leftovers"},
    ),
    "the namespace of the webhook, and no configurations": (
        [],
        ["-n", NAMESPACE],
        {"registered", "certificates", "leftovers"},
    ),
}


@pytest.mark.parametrize(("cluster_wide", "inside", "unread"), USERS.values(), ids=USERS)
def test_nothing_is_to_be_deleted_that_could_not_be_seen(
    cluster_wide: list[str],
    inside: list[str],
    unread: set[str],
    healthy: Installed,
    tmp_path: Path,
) -> None:
    """And pods that come back unrepaired are reported to this user, too."""
    kubectl, account = healthy.cluster.kubectl, "--serviceaccount=default:ann"
    kubectl("-n", "default", "create", "serviceaccount", "ann")
    with ExitStack() as stack:
        stack.callback(kubectl, "-n", "default", "delete", "serviceaccount", "ann")
        for where in (["-n", "default"], inside):
            if where:
                kubectl(*where, "create", "rolebinding", "ann", "--clusterrole=edit", account)
                stack.callback(kubectl, *where, "delete", "rolebinding", "ann")
        resources = ",".join([*cluster_wide, "namespaces"])
        kubectl("create", "clusterrole", "ann", "--verb=get,list", f"--resource={resources}")
        stack.callback(kubectl, "delete", "clusterrole", "ann")
        kubectl("create", "clusterrolebinding", "ann", "--clusterrole=ann", account)
        stack.callback(kubectl, "delete", "clusterrolebinding", "ann")
        config = json.loads(healthy.cluster.kubeconfig.read_bytes())
        token = kubectl("-n", "default", "create", "token", "ann").strip()
        config["users"][0]["user"] = {"token": token}
        kubeconfig = tmp_path / "ann.kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        stack.enter_context(healthy.changed(REPAIR, without_bundle))
        last: list[Answer] = []

        def seen() -> bool:
            last.append(healthy.doctor(f"--kubeconfig={kubeconfig}"))
            return "is not repaired" in str(last[-1].faults.get("dry run"))

        try:
            until(seen, "the line", 15)
        except TimeoutError:
            pytest.fail(str(last[-1].faults))
        assert last[-1].code == WARNING
        assert unread <= {what for what, texts in last[-1].faults.items() if " 403: " in texts[0]}
        assert "kubectl delete" not in json.dumps(last[-1].lines)


def test_a_user_with_few_rights_learns_which_are_missing(healthy: Installed) -> None:
    """The account of the watcher: it may not read configurations, and not create pods."""
    kubeconfig = healthy.replicas.each[0].folder.parent / "account.kubeconfig"
    answer = healthy.doctor(f"--kubeconfig={kubeconfig}")
    refused = [what for what, texts in answer.faults.items() if " 403: " in texts[0]]
    assert answer.code == WARNING
    assert {"registered", "dry run", "rights", "leftovers", "pods"} <= {*refused}


def test_a_namespace_without_the_webhook_cannot_be_tried(healthy: Installed) -> None:
    expect(
        healthy,
        WARNING,
        {"dry run": "a legacy pod could not be tried in namespace nowhere: 404"},
        "--pod-namespace=nowhere",
    )


def with_a_volume_first(obj: Json) -> Json:
    """As a strategic merge of kustomize puts it."""
    volume = {"name": "ca", "configMap": {"name": "kube-root-ca.crt"}}
    obj["spec"]["template"]["spec"]["volumes"].insert(0, volume)
    return obj


def test_a_configmap_of_others_is_mounted_first(healthy: Installed) -> None:
    """It was taken for the settings."""
    with healthy.changed(DEPLOYMENT, with_a_volume_first):
        expect(healthy, WARNING, {"pods": "the roll-out has not ended"})


def test_a_key_of_others_sorts_before_the_settings(healthy: Installed) -> None:
    maps = healthy.cluster.client.demand("GET", f"{HERE}/configmaps").body["items"]
    (name,) = (n for n in (each["metadata"]["name"] for each in maps) if "settings" in n)
    other = partial(merged, {"data": {"NOTES.txt": "not: [settings"}})
    with healthy.changed(f"{HERE}/configmaps/{name}", other):
        expect(healthy, OK, {})


def test_an_account_that_was_deleted(healthy: Installed) -> None:
    """The last test of this file: the token of the watcher ends with its account."""
    with healthy.changed(f"{HERE}/serviceaccounts/gpu-webhook", no):
        expect(healthy, FAILED, {"quota": "there is no ServiceAccount gpu-webhook: no pod can"})
