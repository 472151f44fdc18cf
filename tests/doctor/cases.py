"""The table of checks: what is in the cluster, and the check that looks at it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.doctor.installation import (
    CA,
    DAY,
    HEALTHY,
    LEAF,
    NOW,
    OTHER,
    POLICY,
    REPAIR,
    REPAIRED,
    answering,
    bound,
    by_chain,
    called_at,
    changed,
    configuration,
    deployed,
    foreign,
    given,
    having,
    mounting,
    named_in,
    namespace,
    of_cert_manager,
    of_helm,
    rolling,
    secret,
    tried,
    uninstalled,
    with_image,
    with_nodes,
    with_pod,
    with_settings,
    with_trial,
    without,
    without_watcher,
)
from webhook.certs.own_certificates import OwnCertificates
from webhook.certs.renewal import Plan
from webhook.doctor.legacy_trial import legacy_pod
from webhook.doctor.rights import Right
from webhook.evaluation.match_conditions import entries as made
from webhook.settings.file import parse

if TYPE_CHECKING:
    from webhook.doctor.facts import Facts

GUARD = configuration("guard/webhook.yaml")
REFUSE = configuration("guard-refuse/webhook.yaml")
WORKLOADS = configuration("workload-repair/webhook.yaml")
KINDS = with_settings(
    "workloads: {kinds: [{kind: Run, group: example.com, templates: [/spec/template]}]}"
)
POD_RULE = HEALTHY.configurations[REPAIR]["webhooks"][0]["rules"][0]
REPAIRING = with_settings("workloads: {repair: true}")
LABEL = "gpu-webhook.dev/guard"
NO_GPUS = "inventory: no node offers GPUs; nothing is denied for capacity"
UNKNOWN = "inventory: unknown; nothing is denied for capacity"
SILENT = "the watcher has written nothing for 40 s: it ended, it hangs, or its folder is full"
NODES = "kind: NodeList\nitems: [{metadata: {name: a}}, {metadata: {name: b}}]\n"
LABELLED = tuple(namespace(name, **{LABEL: "enabled"}) for name in ("ml", "web"))
MISSPELT = tuple(
    namespace(name, **{LABEL: value})
    for name, value in (("a", "true"), ("b", "Enabled"), ("c", "disabled"), ("d", "enabled"))
)
# Another webhook took the toleration away, and left the rest.
UNTOLERATED = copy.deepcopy(REPAIRED)
UNTOLERATED["metadata"]["annotations"] = {"gpu-webhook.dev/repaired": "GPU101,GPU201"}
TOLERATED = copy.deepcopy(UNTOLERATED)
TOLERATED["spec"]["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
ENFORCED = "policy: {overrides: [{namespaces: [ml, web], rules: {GPU303: enforce}}]}"
FORBIDDEN = "pods is forbidden: insufficient quota to match these scopes"
WAITING = {"name": "watch", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
UNPLACED = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
NOTED = {"metadata": {"annotations": {"gpu-webhook.dev/repaired": "GPU101"}}, "spec": {}}
OWN_NAME = "kubernetes.io/metadata.name"  # a label that the API server sets
OLD = called_at(namespace="old").configurations[REPAIR]
FORMER = having({"mutating/old": OLD})


def shifted(configuration: dict[str, Any], **entry: Any) -> Facts:
    """With another entry in a configuration that is installed, too."""
    ((name, found),) = configuration.items()
    return having({name: {**found, "webhooks": [{**found["webhooks"][0], **entry}]}})


def left_out(*names: str) -> dict[str, Any]:
    """A selector with these namespaces left out, and those that opted out."""
    named = {"key": OWN_NAME, "operator": "NotIn", "values": [*names]}
    ignored = {"key": "gpu-webhook.dev/ignore", "operator": "NotIn", "values": ["true"]}
    return {"matchExpressions": [named, ignored]}


def selecting(**selectors: Any) -> Facts:
    """With these selectors in the repairing entry, and a pod that comes back as it was."""
    return replace(changed(REPAIR, **selectors), trial=tried())


OF_REPAIR = HEALTHY.configurations[REPAIR]["webhooks"]
SECOND = "two.gpu-webhook.dev"


# The texts are in lines.txt.
def renamed(obj: dict[str, Any], **entry: Any) -> dict[str, Any]:
    """The configuration with entries that differ in this."""
    return {**obj, "webhooks": [{**each, **entry} for each in obj["webhooks"]]}


TABLE: dict[str, tuple[Facts, str]] = {
    # registered
    "both configurations are there": (HEALTHY, "registered"),
    "nothing repairs": (
        without(REPAIR),
        "registered",
    ),
    "nothing checks": (
        without(POLICY),
        "registered",
    ),
    "its Service was deleted": (
        replace(HEALTHY, services=()),
        "registered",
    ),
    "a URL in the place of a Service": (
        changed(REPAIR, clientConfig={"url": "https://192.0.2.1/mutate"}),
        "registered",
    ),
    "a configuration without webhooks": (
        having({REPAIR: {"webhooks": []}}),
        "registered",
    ),
    "installed in another namespace": (
        named_in(uninstalled(gpu2=True), "gpu2"),
        "registered",
    ),
    "installed in another namespace that may not be read": (
        named_in(uninstalled(gpu2=None), "gpu2"),
        "registered",
    ),
    "the configurations name another namespace, and it is not there": (
        named_in(uninstalled(gpu2=False), "gpu2"),
        "registered",
    ),
    # dry run
    "a pod is repaired": (
        HEALTHY,
        "dry run",
    ),
    "a pod comes back as it was": (
        with_trial(),
        "dry run",
    ),
    "a pod comes back late": (
        with_trial(seconds=3.01),
        "dry run",
    ),
    "a repair is undone, and the annotation stays": (
        replace(having(foreign("zz")), trial=tried(NOTED)),
        "dry run",
    ),
    "a repair is undone, but for the GPUs": (
        replace(having(foreign("zz")), trial=tried(UNTOLERATED)),
        "dry run",
    ),
    "a repair with a toleration": (
        replace(HEALTHY, trial=tried(TOLERATED)),
        "dry run",
    ),
    "a repair is undone, and only the warning is left": (
        with_trial(warnings=('299 - "GPU101: renamed"',)),
        "dry run",
    ),
    "the repair is a warning in this namespace": (
        with_trial(settings="policy: {mode: warn}", warnings=('299 - "GPU101: would rename"',)),
        "dry run",
    ),
    "the repair is off in this namespace": (
        with_trial(settings="policy: {mode: audit}"),
        "dry run",
    ),
    "no resource is legacy, and an annotation is repaired": (
        with_settings("resources: {legacy: []}", trial=tried(REPAIRED)),
        "dry run",
    ),
    "no resource is legacy, and the annotation stays": (
        with_settings(
            "resources: {legacy: []}", trial=tried(legacy_pod(parse("resources: {legacy: []}")))
        ),
        "dry run",
    ),
    "the namespace has opted out": (
        with_trial(namespace=namespace("x", **{"gpu-webhook.dev/ignore": "true"})),
        "dry run",
    ),
    "default is an excluded namespace": (
        replace(
            selecting(
                namespaceSelector={
                    "matchExpressions": [{"key": OWN_NAME, "operator": "NotIn", "values": ["x"]}]
                }
            ),
            trial=tried(namespace=namespace("x", **{OWN_NAME: "x"})),
        ),
        "dry run",
    ),
    "only pods with a label are repaired": (
        selecting(objectSelector={"matchLabels": {"gpu-repair": "enabled"}}),
        "dry run",
    ),
    "selectors that select the pod": (
        selecting(objectSelector={}, namespaceSelector={}),
        "dry run",
    ),
    "the configurations may not be read": (
        with_trial(configurations={}, unread={"configurations": "403: no"}),
        "dry run",
    ),
    "the settings may not be read": (
        with_trial(warnings=('299 - "GPU101: would rename"',), unread={"settings_map": "403: no"}),
        "dry run",
    ),
    "the namespace of the pod may not be read": (
        with_trial(unread={"namespace": "403: no"}),
        "dry run",
    ),
    "the Deployment may not be read": (
        with_trial(deployment={}, unread={"deployment": "403: no"}),
        "dry run",
    ),
    "a pod of a webhook in another namespace": (
        replace(
            named_in(uninstalled(gpu2=True), "gpu2"),
            trial=tried(warnings=('299 - "GPU101: would rename"',)),
        ),
        "dry run",
    ),
    "our own denial": (
        with_trial(
            {}, refusal='403: admission webhook "policy.gpu-webhook.dev" denied the request'
        ),
        "dry run",
    ),
    "a call that had to succeed": (
        with_trial({}, refusal='500: failed calling webhook "repair.gpu-webhook.dev": x509: bad'),
        "dry run",
    ),
    "somebody else's denial": (
        with_trial({}, refusal='403: admission webhook "x.example.com" denied the request'),
        "dry run",
    ),
    "other settings, and their name in the answer": (
        with_trial(
            {"spec": {"containers": [{"resources": {"limits": {"example.com/gpu": "1"}}}]}},
            settings="resources: {target: example.com/gpu}",
        ),
        "dry run",
    ),
    # pods
    "all replicas": (HEALTHY, "pods"),
    "an image that cannot be pulled": (
        with_pod(containerStatuses=[WAITING]),
        "pods",
    ),
    "a pod without a node": (
        with_pod(conditions=[UNPLACED]),
        "pods",
    ),
    "none is ready": (
        replace(HEALTHY, deployment=deployed(readyReplicas=0)),
        "pods",
    ),
    "an update that does not end": (
        replace(HEALTHY, deployment=deployed(updatedReplicas=1)),
        "pods",
    ),
    "one replica: the old pod serves, and the new one does not start": (
        rolling(1, updatedReplicas=1, readyReplicas=1, availableReplicas=1),
        "pods",
    ),
    "two replicas: two old pods serve, and the new one does not start": (
        rolling(2, replicas=3, updatedReplicas=1),
        "pods",
    ),
    "two replicas: one new pod serves, and one does not": (
        rolling(2, readyReplicas=1, availableReplicas=1),
        "pods",
    ),
    "no pod of an update that was paused": (rolling(2, updatedReplicas=0), "pods"),
    "ready for less than minReadySeconds": (rolling(2, availableReplicas=1), "pods"),
    "a change that no controller has seen": (rolling(2, generation=2), "pods"),
    "a roll-out that no pod survived": (
        rolling(1, updatedReplicas=1, readyReplicas=0, availableReplicas=0),
        "pods",
    ),
    "scaled to 0": (
        rolling(0, replicas=0, updatedReplicas=0, readyReplicas=0, availableReplicas=0),
        "pods",
    ),
    # quota
    "no pod is refused": (
        HEALTHY,
        "quota",
    ),
    "an account that is not there": (
        replace(HEALTHY, account={}),
        "quota",
    ),
    "a class that is not there": (
        replace(HEALTHY, priority_class={}),
        "quota",
    ),
    "GKE without the quota": (
        replace(
            HEALTHY,
            deployment=deployed(
                conditions=[{"type": "ReplicaFailure", "status": "True", "message": FORBIDDEN}]
            ),
        ),
        "quota",
    ),
    # certificates; more in tests/cli/test_certs.py
    "a pair that nobody renewed": (
        replace(HEALTHY, now=NOW + 25 * DAY),
        "server",
    ),
    "an expired pair": (
        replace(HEALTHY, now=NOW + 31 * DAY),
        "server",
    ),
    "another CA in a caBundle": (
        having(configuration("base/webhook.yaml", OTHER)),
        REPAIR,
    ),
    "a pair of others": (
        given(secret(OwnCertificates(leaf=LEAF))),
        "server",
    ),
    "a pair of others with an intermediate CA": (
        by_chain(),
        REPAIR,
    ),
    "a pair of others without the intermediate CA": (
        by_chain(sent=1),
        REPAIR,
    ),
    "no pair of others": (
        given({}),
        "server",
    ),
    "an empty Secret of others": (
        given({"data": {}, "metadata": {"name": "gpu-webhook-tls"}}),
        "server",
    ),
    "no pair of cert-manager": (
        of_cert_manager({}),
        "server",
    ),
    "a pair of cert-manager that is not renewed": (
        replace(of_cert_manager(secret(OwnCertificates(leaf=LEAF))), now=NOW + 26 * DAY),
        "server",
    ),
    "another CA than that of cert-manager": (
        of_cert_manager(secret(OwnCertificates(leaf=LEAF)), ca=OTHER),
        REPAIR,
    ),
    "an expired pair of others": (
        replace(given(secret(OwnCertificates(leaf=LEAF))), now=NOW + 31 * DAY),
        "server",
    ),
    "a pair for another name": (
        replace(HEALTHY, configurations=called_at(name="other").configurations),
        "server",
    ),
    "a pair for all names of the namespace": (
        replace(
            HEALTHY,
            secret=secret(OwnCertificates(ca=CA, leaf=Plan(("*.gpu-webhook.svc",)).leaf(CA, NOW))),
        ),
        "server",
    ),
    # watcher
    "a watcher that leads": (HEALTHY, "watcher"),
    "no watcher for a minute": (
        replace(HEALTHY, now=HEALTHY.now + 60),
        "watcher",
    ),
    "no watcher yet": (
        replace(HEALTHY, lease={}),
        "watcher",
    ),
    "no CA of the API server": (
        replace(HEALTHY, root_ca={}),
        "watcher",
    ),
    "certificates of others": (
        given(secret(OwnCertificates(leaf=LEAF))),
        "watcher",
    ),
    "a Secret that is immutable": (
        replace(HEALTHY, secret={**HEALTHY.secret, "immutable": True}),
        "Secret",
    ),
    "a Secret that is not immutable": (
        replace(HEALTHY, secret={**HEALTHY.secret, "immutable": False}),
        "Secret",
    ),
    # inventory
    "all servers have an inventory": (HEALTHY, "inventory"),
    "no node has GPUs now": (
        answering(f"ok\n{NO_GPUS}", "ok"),
        "inventory",
    ),
    "no server has an inventory": (
        answering(*[f"ok\n{UNKNOWN}"] * 2),
        "inventory",
    ),
    "one has none": (
        answering(f"ok\nsettings: the new file is not used: x\n{UNKNOWN}", "ok"),
        "inventory",
    ),
    "no server has an inventory, for lack of a right": (
        answering(*[f"ok\n{UNKNOWN}"] * 2, missing_rights=(Right("list", "", "nodes"),)),
        "inventory",
    ),
    "an inventory that is out of date": (
        answering("ok\ninventory: stale for more than 300 s; nothing is denied for capacity"),
        "inventory",
    ),
    "a watcher that stands still": (
        answering(f"503: not ready: {SILENT}. A replica that is not ready gets no reviews"),
        "inventory",
    ),
    "a server that is not ready for another reason": (
        answering("503: not ready: 1 of 4 caBundles does not trust the certificate"),
        "inventory",
    ),
    "a server that cannot be reached": (
        answering("503: error trying to reach service: dial tcp 10.0.0.1:8443: i/o timeout", "ok"),
        "inventory",
    ),
    "no server runs": (
        answering(),
        "inventory",
    ),
    "servers without an inventory": (
        without_watcher(),
        "inventory",
    ),
    "nodes of a ConfigMap": (
        with_nodes({"nodes.yaml": NODES}),
        "inventory",
    ),
    "nodes of a file": (
        with_nodes({}, kind="hostPath"),
        "inventory",
    ),
    "nodes of a ConfigMap that is not there": (
        with_nodes(None),
        "inventory",
    ),
    "an empty file in it": (
        with_nodes({"nodes.yaml": ""}),
        "inventory",
    ),
    "a list without nodes in it": (
        with_nodes({"nodes.yaml": "kind: List\nitems: [{kind: Namespace, metadata: {name: a}}]\n"}),
        "inventory",
    ),
    "the same, beside declared pools": (
        with_nodes(
            {"nodes.yaml": "kind: Namespace\nmetadata: {name: a}\n"},
            "capacity: {pools: [{name: a, nodes: 1, gpus: {nvidia.com/gpu: 8}}]}",
        ),
        "inventory",
    ),
    # rights
    "all rights": (HEALTHY, "rights"),
    "two rights are missing": (
        replace(
            HEALTHY,
            missing_rights=(Right("list", "", "nodes"), Right("get", "", "secrets", "s", "n")),
        ),
        "rights",
    ),
    # settings
    "settings without mistakes": (HEALTHY, "settings"),
    "settings with two mistakes": (
        replace(HEALTHY, mistakes="settings:1:1: a\nsettings:2:1: b"),
        "settings",
    ),
    "no ConfigMap": (
        replace(HEALTHY, settings_map={}),
        "settings",
    ),
    "a ConfigMap of others is mounted, too": (
        mounting({"settings.yaml": "{}"}, {"name": "ca", "configMap": {"name": "corporate-ca"}}),
        "settings",
    ),
    "a ConfigMap without the file": (mounting({"other.yaml": "{}"}), "settings"),
    "settings in a Secret": (mounting({}, secret={"secretName": "s"}), "settings"),
    # matchConditions
    "conditions of the settings": (HEALTHY, "matchConditions"),
    "a line end more": (
        changed(
            REPAIR,
            matchConditions=[
                {**each, "expression": f"{each['expression']}\n"}
                for each in HEALTHY.configurations[REPAIR]["webhooks"][0]["matchConditions"]
            ],
        ),
        "matchConditions",
    ),
    "settings with another name": (
        with_settings("resources: {legacy: [example.com/old]}"),
        "matchConditions",
    ),
    "a custom kind without its condition": (KINDS, "matchConditions"),
    # entries
    "entries as shipped": (HEALTHY, "entries"),
    "entries as shipped, with guard and repair of templates": (
        having({**GUARD, **REFUSE, **WORKLOADS}),
        "entries",
    ),
    "entries for custom kinds": (
        replace(
            KINDS,
            configurations=changed(
                POLICY, 1, rules=made(KINDS.settings)["workloads.gpu-webhook.dev"]["rules"]
            ).configurations,
        ),
        "entries",
    ),
    "a rule for a custom kind is missing": (KINDS, "entries"),
    "a rule names more than it must": (
        changed(REPAIR, rules=[{**POD_RULE, "apiVersions": ["*"], "resources": ["*/*"]}]),
        "entries",
    ),
    "no new pods are sent": (
        changed(REPAIR, rules=[{**POD_RULE, "operations": ["UPDATE"]}]),
        "entries",
    ),
    "pods of another group are sent": (
        changed(REPAIR, rules=[{**POD_RULE, "apiGroups": ["metrics.k8s.io"]}]),
        "entries",
    ),
    "only objects without a namespace are sent": (
        changed(REPAIR, rules=[{**POD_RULE, "scope": "Cluster"}]),
        "entries",
    ),
    "the guard gets no containers of kubectl debug": (
        shifted(GUARD, rules=[POD_RULE, {**POD_RULE, "resources": ["pods/log"]}]),
        "entries",
    ),
    "the guard gets all subresources of pods": (
        shifted(GUARD, rules=[{**POD_RULE, "resources": ["pods", "pods/*"]}]),
        "entries",
    ),
    "another path": (called_at(path="/validate"), "entries"),
    "no path": (called_at(path=None), "entries"),
    "a port that the Service does not have": (called_at(port=8443), "entries"),
    "a URL with a path of its own before ours": (
        changed(REPAIR, clientConfig={"url": "https://192.0.2.1/gpu/mutate"}),
        "entries",
    ),
    "a URL without a path": (
        changed(REPAIR, clientConfig={"url": "https://192.0.2.1"}),
        "entries",
    ),
    "Fail where pods are repaired": (changed(REPAIR, failurePolicy="Fail"), "entries"),
    "Fail where the documentation offers it": (changed(POLICY, failurePolicy="Fail"), "entries"),
    "a longer time and other policies": (
        changed(
            REPAIR,
            timeoutSeconds=10,
            reinvocationPolicy="Never",
            matchPolicy="Exact",
            sideEffects="NoneOnDryRun",
        ),
        "entries",
    ),
    "reviews of a version that the webhook refuses": (
        changed(REPAIR, admissionReviewVersions=["v1beta1", "v1"]),
        "entries",
    ),
    "a version of reviews that no API server knows": (
        changed(REPAIR, admissionReviewVersions=["v2", "v1"]),
        "entries",
    ),
    "only objects with a label": (
        changed(REPAIR, objectSelector={"matchLabels": {"gpu-repair": "enabled"}}),
        "entries",
    ),
    "more excluded namespaces": (
        changed(REPAIR, namespaceSelector=left_out("kube-system", "gpu-webhook", "monitoring")),
        "entries",
    ),
    "the namespace of the webhook and kube-system are not excluded": (
        changed(REPAIR, namespaceSelector=left_out("monitoring")),
        "entries",
    ),
    "no namespaceSelector": (changed(REPAIR, namespaceSelector={}), "entries"),
    "only some namespaces": (
        changed(REPAIR, namespaceSelector={"matchLabels": {"team": "ml"}}),
        "entries",
    ),
    "a guard of all namespaces": (
        shifted(GUARD, namespaceSelector=left_out("kube-system", "gpu-webhook")),
        "entries",
    ),
    "an entry was deleted": (
        having({POLICY: {"webhooks": HEALTHY.configurations[POLICY]["webhooks"][:1]}}),
        "entries",
    ),
    "an entry that was added to ours": (
        having({REPAIR: {"webhooks": [*OF_REPAIR, {**OF_REPAIR[0], "name": SECOND}]}}),
        "entries",
    ),
    "the repairing entry has another name": (changed(REPAIR, name="x.example.com"), "entries"),
    "a part is missing, from Helm": (
        replace(called_at(path="/"), deployment=of_helm("gpus")),
        "entries",
    ),
    # versions
    "one version": (
        with_image("example.com/gpu:main"),
        "versions",
    ),
    "an API server without matchConditions": (
        replace(HEALTHY, version={"minor": "29+", "gitVersion": "v1.29.1-gke"}),
        "versions",
    ),
    "an image of another version": (
        with_image("gpu:9.9.9"),
        "versions",
    ),
    "an image of another version, as releases are often tagged": (
        with_image("registry.example:5000/gpu:v9.9.9"),
        "versions",
    ),
    "an image of another version, with its digest": (
        with_image("gpu:9.9.9@sha256:" + "a" * 64),
        "versions",
    ),
    # order
    "no other webhook": (
        having({**GUARD, **foreign("services", "services")}),
        "order",
    ),
    "others on both sides": (
        having({**foreign("istio"), **foreign("aws"), **foreign("all", "*")}),
        "order",
    ),
    "others after one that is not called again": (
        replace(
            changed(REPAIR, reinvocationPolicy="Never"),
            configurations={
                **changed(REPAIR, reinvocationPolicy="Never").configurations,
                **foreign("istio"),
            },
        ),
        "order",
    ),
    # guard
    "no guard": (HEALTHY, "guard"),
    "a guard without namespaces": (having(GUARD), "guard"),
    "a guard that does nothing": (
        replace(having(GUARD), labelled=LABELLED),
        "guard",
    ),
    "a guard that works": (
        with_settings(ENFORCED, labelled=LABELLED, configurations=having(GUARD).configurations),
        "guard",
    ),
    "a guard that only warns": (
        with_settings(
            "policy: {rules: {GPU303: warn}}",
            labelled=LABELLED,
            configurations=having(GUARD).configurations,
        ),
        "guard",
    ),
    "a guard of namespaces that it spares": (
        with_settings(
            "policy: {rules: {GPU303: enforce}}\nguard: {exempt: [{namespaces: [tools-*]}]}",
            labelled=(
                namespace("ml", **{LABEL: "enabled"}),
                namespace("out", **{LABEL: "enabled", "gpu-webhook.dev/ignore": "true"}),
                namespace("tools-a", **{LABEL: "enabled"}),
                namespace("kube-system", **{LABEL: "enabled"}),
            ),
            configurations=having(GUARD).configurations,
        ),
        "guard",
    ),
    "labels with other values": (
        with_settings(ENFORCED, labelled=MISSPELT, configurations=having(GUARD).configurations),
        "guard",
    ),
    "labels with other values, and no guard": (
        replace(HEALTHY, labelled=MISSPELT[:3]),
        "guard",
    ),
    "labels without a guard": (
        replace(HEALTHY, labelled=LABELLED),
        "guard",
    ),
    "the refusing half alone": (
        having(REFUSE),
        "guard",
    ),
    "labels without a guard, from Helm": (
        replace(HEALTHY, labelled=LABELLED, deployment=of_helm("gpus")),
        "guard",
    ),
    "a right is missing, from Helm": (
        replace(HEALTHY, missing_rights=(Right("list", "", "nodes"),), deployment=of_helm("gpus")),
        "rights",
    ),
    # workloads
    "templates are left alone": (HEALTHY, "workloads"),
    "templates are repaired": (
        replace(REPAIRING, configurations=having(WORKLOADS).configurations),
        "workloads",
    ),
    "a setting without its entry": (
        REPAIRING,
        "workloads",
    ),
    "an entry without its setting": (
        having(WORKLOADS),
        "workloads",
    ),
    # leftovers
    "nothing is left": (HEALTHY, "leftovers"),
    "a configuration of a namespace without the webhook": (
        replace(FORMER, live={**HEALTHY.live, "old": False}),
        "leftovers",
    ),
    "a configuration of a second installation": (
        replace(FORMER, live={**HEALTHY.live, "old": True}),
        "leftovers",
    ),
    "a configuration of a namespace that may not be read": (
        replace(FORMER, live={**HEALTHY.live, "old": None}),
        "leftovers",
    ),
    "a copy of a configuration": (
        having({"mutating/canary": HEALTHY.configurations[REPAIR]}),
        "leftovers",
    ),
    "a copy with the names of others": (
        having({"validating/x": renamed(HEALTHY.configurations[POLICY], name="x.example.com")}),
        "leftovers",
    ),
    "a copy with a URL": (
        having({"mutating/x": renamed(HEALTHY.configurations[REPAIR], clientConfig={"url": "x"})}),
        "leftovers",
    ),
    "a configuration of others with a URL": (
        having(
            {
                "mutating/x": renamed(
                    HEALTHY.configurations[REPAIR],
                    name="x.example.com",
                    clientConfig={"url": "x"},
                )
            }
        ),
        "leftovers",
    ),
    "rights for a namespace without the webhook": (
        replace(
            HEALTHY,
            bindings=(bound("gpu-webhook"), bound("old", "former")),
            live={**HEALTHY.live, "former": False},
        ),
        "leftovers",
    ),
    "rights for this namespace and one without the webhook": (
        replace(
            HEALTHY,
            bindings=(bound("both", "former", "gpu-webhook"),),
            live={**HEALTHY.live, "former": False},
        ),
        "leftovers",
    ),
    "everything is for an installation in another namespace": (
        named_in(uninstalled(gpu2=True), "gpu2"),
        "leftovers",
    ),
    "everything is for a namespace that may not be read": (
        named_in(uninstalled(gpu2=None), "gpu2"),
        "leftovers",
    ),
    "the Deployment is not there, and its Service is": (
        replace(HEALTHY, deployment={}),
        "leftovers",
    ),
    "an entry of somebody else beside ours": (
        replace(
            having(
                {
                    "mutating/mixed": {
                        "webhooks": [*OLD["webhooks"], *foreign("x")["mutating/x"]["webhooks"]]
                    }
                }
            ),
            live={**HEALTHY.live, "old": False},
        ),
        "leftovers",
    ),
    "rights of watchers that keep certificates": (
        replace(given({}), bindings=HEALTHY.bindings),
        "leftovers",
    ),
    "an uninstall that forgot a configuration": (
        replace(uninstalled(), bindings=(), configurations=GUARD),
        "leftovers",
    ),
}
