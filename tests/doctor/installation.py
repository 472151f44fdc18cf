"""The facts of a healthy installation, made of the shipped manifests."""

from __future__ import annotations

import base64
import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.certs.chained import KINDS, chain
from webhook import __version__
from webhook.certs.own_certificates import OwnCertificates
from webhook.certs.renewal import Plan
from webhook.doctor.facts import Facts
from webhook.doctor.legacy_trial import Trial, legacy_pod
from webhook.settings.file import parse

if TYPE_CHECKING:
    from webhook.certs.authority import Identity

Raw = dict[str, Any]

MANIFESTS = Path(__file__).parents[2] / "manifests"
NAMESPACE = "gpu-webhook"
HOST = f"gpu-webhook.{NAMESPACE}.svc"
NOW = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
DAY = 86_400.0
PLAN = Plan((HOST,))
CA = PLAN.authority(NOW)
OTHER = PLAN.authority(NOW - DAY)
LEAF = PLAN.leaf(CA, NOW)
REPAIRED: Raw = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
REPAIRED["metadata"] = {"annotations": {"gpu-webhook.dev/repaired": "GPU101"}}


def shipped(file: str) -> list[Raw]:
    return copy.deepcopy(_read(file))


@cache
def _read(file: str) -> list[Raw]:
    return [each for each in yaml.safe_load_all((MANIFESTS / file).read_text()) if each]


def configuration(file: str, ca: Identity = CA) -> dict[str, Raw]:
    (obj,) = shipped(file)
    for entry in obj["webhooks"]:
        entry["clientConfig"]["caBundle"] = base64.b64encode(ca.text).decode()
    kind = obj["kind"].removesuffix("WebhookConfiguration").lower()
    return {f"{kind}/{obj['metadata']['name']}": obj}


def secret(kept: OwnCertificates) -> Raw:
    return {"data": {k: base64.b64encode(v).decode() for k, v in kept.data().items()}}


def bound(name: str, *namespaces: str) -> Raw:
    subjects = [{"namespace": each} for each in namespaces or (NAMESPACE,)]
    return {"metadata": {"name": name}, "subjects": [*subjects, {"kind": "Group", "name": "x"}]}


def namespace(name: str, **labels: str) -> Raw:
    return {"metadata": {"name": name, "labels": labels}}


def tried(pod: Raw | None = None, **more: Any) -> Trial:
    """A pod that came back as it was sent, if there is no other one."""
    given = {"namespace": namespace("default"), "seconds": 0.012, **more}
    return Trial(pod=legacy_pod(parse("{}")) if pod is None else pod, **given)


def deployed(**status: Any) -> Raw:
    (obj,) = shipped("base/deployment.yaml")
    for container in obj["spec"]["template"]["spec"]["containers"]:
        container["image"] = f"gpu-admission-webhook:{__version__}"
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {**obj, "status": {**dict.fromkeys(counts, 2), **status}}


def rolling(wanted: int, generation: int = 1, **status: Any) -> Facts:
    """In a roll-out, as the Deployment controller counts it, with a new pod that waits."""
    found = deployed(**{"observedGeneration": 1, **status})
    found["metadata"]["generation"] = generation
    found["spec"]["replicas"] = wanted
    waiting = {"containerStatuses": [{"name": "watch", "state": {"waiting": {"reason": "Crash"}}}]}
    return replace(HEALTHY, deployment=found, pods=(POD, {**POD, "status": waiting}))


def of_helm(release: str) -> Raw:
    found = deployed()
    found["metadata"]["annotations"] = {"meta.helm.sh/release-name": release}
    return found


DEPLOYMENT = deployed()
POD: Raw = {
    "metadata": {"name": "gpu-webhook-1"},
    "spec": {"containers": DEPLOYMENT["spec"]["template"]["spec"]["containers"]},
}
HEALTHY = Facts(
    namespace=NAMESPACE,
    now=NOW + DAY,
    trial=tried(REPAIRED),
    version={"minor": "36", "gitVersion": "v1.36.3"},
    configurations=configuration("base/webhook.yaml")
    | configuration("base/validating-webhook.yaml"),
    bindings=(bound("gpu-webhook"), bound("gpu-webhook-certificates")),
    deployment=DEPLOYMENT,
    live={NAMESPACE: True},
    pods=(POD, POD),
    services=tuple(shipped("base/service.yaml")),
    priority_class={"metadata": {"name": "system-cluster-critical"}},
    settings_map={"data": {"settings.yaml": "{}"}},
    secret=secret(OwnCertificates(ca=CA, leaf=LEAF)),
    lease={"spec": {"renewTime": "2026-06-01T23:59:55.000000Z", "holderIdentity": "a_1"}},
    root_ca={"data": {"ca.crt": CA.text.decode()}},
    readiness={"gpu-webhook-1": "ok", "gpu-webhook-2": "ok"},
    account={"metadata": {"name": "gpu-webhook"}},
)


REPAIR, POLICY = HEALTHY.configurations


def having(configurations: dict[str, Raw]) -> Facts:
    """With more configurations."""
    return replace(HEALTHY, configurations={**HEALTHY.configurations, **configurations})


def changed(name: str, index: int = 0, /, **entry: Any) -> Facts:
    """With another entry, the first one if no index says which, in one of the configurations."""
    found = copy.deepcopy(HEALTHY.configurations[name])
    found["webhooks"][index].update(entry)
    return having({name: found})


def foreign(name: str, resource: str = "pods") -> dict[str, Raw]:
    rule = {"apiGroups": [""], "resources": [resource], "operations": ["CREATE"]}
    return {f"mutating/{name}": {"webhooks": [{"name": "x.example.com", "rules": [rule]}]}}


def with_settings(text: str, **more: Any) -> Facts:
    return replace(HEALTHY, settings=parse(text), **more)


def given(data: Raw) -> Facts:
    """With a certificate that is made elsewhere, as in manifests/secret."""
    found = copy.deepcopy(DEPLOYMENT)
    pod = found["spec"]["template"]["spec"]
    pod["containers"][1]["args"] = [
        each for each in pod["containers"][1]["args"] if "--certificates" not in each
    ]
    (volume,) = (each for each in pod["volumes"] if each["name"] == "tls")
    volume["secret"] = {"secretName": "gpu-webhook-tls"}
    return replace(HEALTHY, deployment=found, secret=data, bindings=(bound("gpu-webhook"),))


def of_cert_manager(data: Raw, ca: Identity = CA) -> Facts:
    """With a certificate that cert-manager makes, and a caBundle that it fills in."""
    injected = configuration("base/webhook.yaml", ca)
    for obj in injected.values():
        obj["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "gpu-webhook/leaf"}
    facts = given(data)
    return replace(facts, configurations={**facts.configurations, **injected})


def mounting(config_map: Raw, *volumes: Raw, **settings: Any) -> Facts:
    """With these volumes before those that are shipped, and another source of the settings."""
    found = copy.deepcopy(DEPLOYMENT)
    pod = found["spec"]["template"]["spec"]
    for each in pod["volumes"] if settings else ():
        if each["name"] == "settings":
            each.clear()
            each.update({"name": "settings", **settings})
    pod["volumes"] = [*volumes, *pod["volumes"]]
    return replace(HEALTHY, deployment=found, settings_map={"data": config_map})


def by_chain(sent: int = 2) -> Facts:
    """As with a CA of a company: tls.crt has the leaf and its CA, the caBundle has the root."""
    root, middle, leaf = chain(KINDS["P-256"], names=[HOST], now=datetime(2026, 6, 1, tzinfo=UTC))
    shown = b"".join(each.text for each in (leaf, middle)[:sent])
    data = {"tls.crt": shown, "tls.key": leaf.secret}
    facts = given({"data": {name: base64.b64encode(text).decode() for name, text in data.items()}})
    configurations = copy.deepcopy(dict(facts.configurations))
    for obj in configurations.values():
        for entry in obj["webhooks"]:
            entry["clientConfig"]["caBundle"] = base64.b64encode(root.text).decode()
    return replace(facts, configurations=configurations)


def without(name: str) -> Facts:
    rest = {key: each for key, each in HEALTHY.configurations.items() if key != name}
    return replace(HEALTHY, configurations=rest)


def called_at(**service: Any) -> Facts:
    entry = copy.deepcopy(HEALTHY.configurations[REPAIR]["webhooks"][0]["clientConfig"])
    entry["service"].update(service)
    return changed(REPAIR, clientConfig=entry)


def uninstalled(**live: bool | None) -> Facts:
    """No Deployment, and other namespaces that configurations name: whether the webhook is there.

    None: it may not be read.
    """
    return replace(HEALTHY, deployment={}, live={NAMESPACE: False, **live}, services=())


def named_in(facts: Facts, name: str) -> Facts:
    """The same configurations and bindings, for the webhook in another namespace."""
    configurations = copy.deepcopy(dict(facts.configurations))
    for obj in configurations.values():
        for entry in obj["webhooks"]:
            entry["clientConfig"]["service"]["namespace"] = name
    bindings = tuple(bound(each["metadata"]["name"], name) for each in facts.bindings)
    return replace(facts, configurations=configurations, bindings=bindings)


def with_trial(pod: Any = None, settings: str = "{}", **more: Any) -> Facts:
    facts = {
        name: more.pop(name) for name in ("configurations", "deployment", "unread") if name in more
    }
    return with_settings(settings, trial=tried(pod, **more), **facts)


def with_pod(**status: Any) -> Facts:
    pod = {**POD, "status": status}
    return replace(HEALTHY, deployment=deployed(readyReplicas=1), pods=(pod,))


def with_nodes(data: Raw | None, settings: str = "{}", kind: str = "configMap") -> Facts:
    """With `--inventory` in place of a watcher, from a ConfigMap with these data or a file."""
    found = copy.deepcopy(dict(without_watcher().deployment))
    pod = found["spec"]["template"]["spec"]
    pod["containers"][0]["args"].append("--inventory=/etc/nodes/nodes.yaml")
    pod["containers"][0]["volumeMounts"].append({"name": "nodes", "mountPath": "/etc/nodes"})
    pod["volumes"].append({"name": "nodes", kind: {"name": "gpu-nodes"}})
    held = {} if data is None else {"data": data}
    return with_settings(settings, deployment=found, inventory_map=held, readiness={})


def without_watcher() -> Facts:
    """Neither a watcher nor a file of nodes."""
    found = copy.deepcopy(DEPLOYMENT)
    pod = found["spec"]["template"]["spec"]
    server = pod["containers"][0]
    server["args"] = [each for each in server["args"] if not each.startswith("--snapshot")]
    pod["containers"] = [server]
    return replace(HEALTHY, deployment=found, readiness={})


def answering(*pages: str, **more: Any) -> Facts:
    """Servers that say this of themselves."""
    named = {f"gpu-webhook-{number}": page for number, page in enumerate(pages, 1)}
    return replace(HEALTHY, readiness=named, **more)


def with_image(image: str) -> Facts:
    found = copy.deepcopy(DEPLOYMENT)
    for each in found["spec"]["template"]["spec"]["containers"]:
        each["image"] = image
    return replace(HEALTHY, deployment=found)
