"""What each value of the chart changes, and which values helm refuses."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster import helm
from tests.cluster.own_chart import CHART, rendered
from tests.cluster.webhook import KINDS, ROOT
from webhook import __version__
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cluster.own_chart import Objects


def pod(made: Objects) -> Any:
    return made["Deployment", "gpu-webhook"]["spec"]["template"]["spec"]


def template(made: Objects) -> Any:
    return made["Deployment", "gpu-webhook"]["spec"]["template"]["metadata"]


def entry(made: Objects, name: str) -> Any:
    (found,) = (
        each
        for (kind, _), configuration in made.items()
        if kind in KINDS
        for each in configuration["webhooks"]
        if each["name"] == name
    )
    return found


def settings(made: Objects) -> Any:
    return made["ConfigMap", "gpu-webhook-settings"]["data"]["settings.yaml"]


DIGEST = "sha256:" + "0123456789abcdef" * 4
CONDITION = {"name": "only", "expression": "true"}
VALUES: dict[str, tuple[dict[str, Any], Callable[[Objects], Any], Any]] = {
    "a repository and a tag": (
        {"image": {"repository": "my/gpu-webhook", "tag": "2"}},
        lambda made: {each["image"] for each in pod(made)["containers"]},
        {"my/gpu-webhook:2"},
    ),
    "a registry with a port": (
        {"image": {"repository": "a.b:5000/c/gpu-webhook"}},
        lambda made: {each["image"] for each in pod(made)["containers"]},
        {f"a.b:5000/c/gpu-webhook:{__version__}"},
    ),
    "a digest, not the tag": (
        {"image": {"tag": "2", "digest": DIGEST}},
        lambda made: {each["image"] for each in pod(made)["containers"]},
        {f"gpu-admission-webhook@{DIGEST}"},
    ),
    "a pull policy": (
        {"image": {"pullPolicy": "Always"}},
        lambda made: {each["imagePullPolicy"] for each in pod(made)["containers"]},
        {"Always"},
    ),
    "a pull secret": (
        {"imagePullSecrets": [{"name": "registry"}]},
        lambda made: pod(made)["imagePullSecrets"],
        [{"name": "registry"}],
    ),
    "three replicas": (
        {"replicaCount": 3},
        lambda made: made["Deployment", "gpu-webhook"]["spec"]["replicas"],
        3,
    ),
    "settings": (
        {"settings": {"policy": {"rules": {"GPU301": "enforce"}}}},
        settings,
        {"scope": "gpu", "policy": {"rules": {"GPU301": "enforce"}}},
    ),
    "audit only, whatever the settings enforce": (
        {
            "auditOnly": True,
            "settings": {
                "policy": {
                    "mode": "enforce",
                    "rules": {"GPU301": "enforce"},
                    "overrides": [{"namespaces": ["a"], "mode": "enforce"}],
                }
            },
        },
        settings,
        {"scope": "gpu", "policy": {"mode": "audit"}},
    ),
    "the right to the status of cluster-autoscaler that the settings name": (
        {"settings": {"capacity": {"autoscalerStatus": "autoscaling/status"}}},
        lambda made: [
            rule["resourceNames"]
            for rule in made["ClusterRole", "gpu-webhook"]["rules"]
            if rule["resources"] == ["configmaps"]
        ],
        [["status"]],
    ),
    "the CA of a certificate of one's own": (
        {"certificates": {"mode": "secret", "caBundle": "-----BEGIN CERTIFICATE-----\nAA=="}},
        lambda made: entry(made, "repair.gpu-webhook.dev")["clientConfig"]["caBundle"],
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBPT0=",
    ),
    "an issuer of cert-manager": (
        {"certificates": {"mode": "cert-manager", "issuerRef": {"name": "mine"}}},
        lambda made: (
            made["Certificate", "gpu-webhook"]["spec"]["issuerRef"],
            [name for kind, name in made if kind in {"Issuer", "Certificate"}],
        ),
        ({"name": "mine"}, ["gpu-webhook"]),
    ),
    "the guard on OpenShift": (
        {"certificates": {"mode": "openshift"}, "guard": {"enabled": True}},
        lambda made: made[KINDS[0], "gpu-webhook-guard"]["metadata"]["annotations"],
        {"service.beta.openshift.io/inject-cabundle": "true"},
    ),
    "an entry that fails closed": (
        {"webhooks": {"policy.gpu-webhook.dev": {"failurePolicy": "Fail", "timeoutSeconds": 2}}},
        lambda made: [
            entry(made, "policy.gpu-webhook.dev")[key]
            for key in ("failurePolicy", "timeoutSeconds")
        ],
        ["Fail", 2],
    ),
    "other matchConditions": (
        {"webhooks": {"repair.gpu-webhook.dev": {"matchConditions": [CONDITION]}}},
        lambda made: entry(made, "repair.gpu-webhook.dev")["matchConditions"],
        [CONDITION],
    ),
    "more excluded namespaces": (
        {"excludedNamespaces": ["kube-system", "gpu-operator"]},
        lambda made: entry(made, "policy.gpu-webhook.dev")["namespaceSelector"]["matchExpressions"][
            0
        ]["values"],
        ["kube-system", "gpu-operator", "gpu-webhook"],
    ),
    "addresses that may call the webhook": (
        {"networkPolicy": {"enabled": True, "ipBlocks": ["10.0.0.0/24"]}},
        lambda made: made["NetworkPolicy", "gpu-webhook"]["spec"]["ingress"][0]["from"],
        [{"ipBlock": {"cidr": "10.0.0.0/24"}}],
    ),
    "no priority class, and so no quota for it": (
        {"priorityClassName": ""},
        lambda made: ("priorityClassName" in pod(made), "ResourceQuota" in {k for k, _ in made}),
        (False, False),
    ),
    "labels by which Prometheus selects": (
        {"monitoring": {"enabled": True, "labels": {"release": "prometheus"}}},
        lambda made: {
            (kind, each["metadata"]["labels"]["release"])
            for (kind, _), each in made.items()
            if "release" in each["metadata"]["labels"]
        },
        {("ServiceMonitor", "prometheus"), ("PrometheusRule", "prometheus")},
    ),
    "the other class of GKE's limit, and its quota": (
        {"priorityClassName": "system-node-critical"},
        lambda made: made["ResourceQuota", "gpu-webhook-critical-pods"]["spec"]["scopeSelector"][
            "matchExpressions"
        ][0]["values"],
        ["system-node-critical"],
    ),
    "a priority class of one's own, which needs no quota": (
        {"priorityClassName": "high"},
        lambda made: (pod(made)["priorityClassName"], "ResourceQuota" in {k for k, _ in made}),
        ("high", False),
    ),
    "a label of nodes, beside that of Linux nodes": (
        {"nodeSelector": {"pool": "system"}},
        lambda made: pod(made)["nodeSelector"],
        {"pool": "system", "kubernetes.io/os": "linux"},
    ),
    "an operating system in place of Linux": (
        {"nodeSelector": {"kubernetes.io/os": "freebsd"}},
        lambda made: pod(made)["nodeSelector"],
        {"kubernetes.io/os": "freebsd"},
    ),
    "no quota": (
        {"resourceQuota": {"enabled": False}},
        lambda made: (pod(made)["priorityClassName"], "ResourceQuota" in {k for k, _ in made}),
        ("system-cluster-critical", False),
    ),
    "a disruption budget": (
        {"podDisruptionBudget": {"maxUnavailable": "50%"}},
        lambda made: made["PodDisruptionBudget", "gpu-webhook"]["spec"]["maxUnavailable"],
        "50%",
    ),
    "resources": (
        {"resources": {"server": {"limits": {"memory": "1Gi"}}, "watcher": {}}},
        lambda made: [each["resources"] for each in pod(made)["containers"]],
        [
            {"limits": {"memory": "1Gi"}},
            {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        ],
    ),
    "a large amount of a resource": (
        {"resources": {"server": {"limits": {"ephemeral-storage": "1Ti", "memory": 5e8}}}},
        lambda made: pod(made)["containers"][0]["resources"]["limits"],
        {"ephemeral-storage": "1Ti", "memory": 5e8},
    ),
    "flags": (
        {"extraArgs": {"server": ["--workers=4"], "watcher": ["--leaf-minutes=60"]}},
        lambda made: [each["args"][-1] for each in pod(made)["containers"]],
        ["--workers=4", "--leaf-minutes=60"],
    ),
    "the CA of the API server's certificate": (
        {
            "extraArgs": {"server": ["--client-ca=/etc/gpu-webhook/clients/ca.crt"]},
            "extraVolumes": [{"name": "clients", "secret": {"secretName": "clients"}}],
            "extraVolumeMounts": [{"name": "clients", "mountPath": "/etc/gpu-webhook/clients"}],
        },
        lambda made: (
            pod(made)["volumes"][-1]["secret"],
            [each["volumeMounts"][-1]["name"] == "clients" for each in pod(made)["containers"]],
        ),
        ({"secretName": "clients"}, [True, False]),
    ),
    "labels and annotations of the pods": (
        {"podLabels": {"team": "ml"}, "podAnnotations": {"a": "b"}},
        template,
        {
            "labels": {"app.kubernetes.io/name": "gpu-webhook", "team": "ml"},
            "annotations": {"kubectl.kubernetes.io/default-container": "gpu-webhook", "a": "b"},
        },
    ),
    "a place for the pods": (
        {
            "nodeSelector": {"pool": "system"},
            "tolerations": [{"key": "system", "operator": "Exists"}],
            "affinity": {"podAffinity": {}},
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
            ],
        },
        lambda made: (
            pod(made)["nodeSelector"]["pool"],
            pod(made)["tolerations"],
            pod(made)["affinity"],
            pod(made)["topologySpreadConstraints"][0]["topologyKey"],
        ),
        (
            "system",
            [{"key": "system", "operator": "Exists"}],
            {"podAffinity": {}},
            "rack",
        ),
    ),
}


@pytest.mark.parametrize(("values", "look", "wanted"), VALUES.values(), ids=VALUES)
def test_a_value_changes_what_it_names(
    values: dict[str, Any], look: Callable[[Objects], Any], wanted: Any, tmp_path: Path
) -> None:
    assert look(rendered(tmp_path, values)) == wanted
    assert _differs(tmp_path, look, wanted)


def _differs(home: Path, look: Callable[[Objects], Any], wanted: Any) -> bool:
    """Whether the value does anything: without it the place is another one, or missing."""
    try:
        return bool(look(rendered(home, {})) != wanted)
    except (KeyError, ValueError):
        return True


def _paths() -> dict[str, dict[str, Any]]:
    """Each key of values.yaml with nothing behind it, at the top and inside of another."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    inner = {
        f"{key}.{name}": {key: {name: None}}
        for key in defaults
        if isinstance(defaults[key], dict)
        for name in defaults[key]
    }
    return {key: {key: None} for key in defaults} | inner


NULLS = _paths()


@pytest.mark.parametrize("values", NULLS.values(), ids=NULLS)
def test_an_empty_key_is_the_default(values: dict[str, Any], tmp_path: Path) -> None:
    """As with `settings:` and nothing but comments below it: helm takes such a key away."""
    assert rendered(tmp_path, values) == rendered(tmp_path, {})


NO_TERMS: dict[str, Any] = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
}
VOLUME = "/extraVolumes/0/name"
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an affinity without terms, which the API server refuses": (
        {"affinity": {"nodeAffinity": NO_TERMS}},
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
    ),
    "a claim of a resource: no pod of the chart has resourceClaims": (
        {"resources": {"server": {"claims": [{"name": "x"}]}}},
        "/resources/server",
    ),
    "an unknown value": ({"replicas": 3}, "replicas"),
    "an unknown value inside another": ({"image": {"name": "x"}}, "name"),
    "no replica": ({"replicaCount": 0}, "/replicaCount"),
    "a word for a number": ({"replicaCount": "two"}, "/replicaCount"),
    "an image without a name": ({"image": {"repository": ""}}, "/image/repository"),
    "a digest in the name": ({"image": {"repository": "a@sha256:b"}}, "/image/repository"),
    "a tag in the name": ({"image": {"repository": "a.b:5000/c:1.0"}}, "/image/repository"),
    "a digest that is none": ({"image": {"digest": "sha256:123"}}, "/image/digest"),
    "a tag with a colon": ({"image": {"tag": "a:b"}}, "/image/tag"),
    "a pull policy that is none": ({"image": {"pullPolicy": "Often"}}, "/image/pullPolicy"),
    "a pull secret as a word": ({"imagePullSecrets": ["registry"]}, "/imagePullSecrets/0"),
    "an unknown mode of certificates": ({"certificates": {"mode": "acme"}}, "/certificates/mode"),
    "a CA that is no PEM": ({"certificates": {"caBundle": "LS0t"}}, "/certificates/caBundle"),
    "a kind of issuer without its name": (
        {"certificates": {"mode": "cert-manager", "issuerRef": {"kind": "ClusterIssuer"}}},
        "/certificates/issuerRef",
    ),
    "an unknown setting": ({"settings": {"polices": {}}}, "/settings"),
    "an unknown mode of a rule": (
        {"settings": {"policy": {"rules": {"GPU301": "deny"}}}},
        "/settings/policy/rules/GPU301",
    ),
    "an unknown rule": ({"settings": {"policy": {"rules": {"GPU999": "off"}}}}, "GPU999"),
    "settings as a text": ({"settings": "scope: gpu"}, "/settings"),
    "the status of an autoscaler without its namespace": (
        {"settings": {"capacity": {"autoscalerStatus": "status"}}},
        "/settings/capacity/autoscalerStatus",
    ),
    "a label of models with a space": (
        {"settings": {"models": {"label": "bad label!"}}},
        "/settings/models/label",
    ),
    "a scheduler in capitals": (
        {"settings": {"annotationSchedulers": ["Bad_Name"]}},
        "/settings/annotationSchedulers/0",
    ),
    "a resource without a domain": (
        {"settings": {"resources": {"legacy": ["gpu"]}}},
        "/settings/resources/legacy/0",
    ),
    "a relative path": (
        {"settings": {"drivers": {"remove": ["usr/lib"]}}},
        "/settings/drivers/remove/0",
    ),
    "a namespace in capitals": (
        {"settings": {"policy": {"overrides": [{"namespaces": ["Team"], "mode": "off"}]}}},
        "/settings/policy/overrides/0/namespaces/0",
    ),
    "a taint with an unknown effect": (
        {"settings": {"tolerations": {"taints": ["a=b:NoRun"]}}},
        "/settings/tolerations/taints/0",
    ),
    "a guard that only refuses": ({"guard": {"enabled": False, "refuse": True}}, "/guard/enabled"),
    "an unknown entry": ({"webhooks": {"repair": {}}}, "repair"),
    "an unknown policy for failures": (
        {"webhooks": {"policy.gpu-webhook.dev": {"failurePolicy": "fail"}}},
        "failurePolicy",
    ),
    "a repair that may block pods": (
        {"webhooks": {"repair.gpu-webhook.dev": {"failurePolicy": "Fail"}}},
        "failurePolicy",
    ),
    "a timeout that the API server refuses": (
        {"webhooks": {"policy.gpu-webhook.dev": {"timeoutSeconds": 31}}},
        "timeoutSeconds",
    ),
    "kube-system not excluded": ({"excludedNamespaces": []}, "/excludedNamespaces"),
    "an address without a mask": (
        {"networkPolicy": {"ipBlocks": ["10.0.0.1"]}},
        "/networkPolicy/ipBlocks/0",
    ),
    "a label that is none": (
        {"monitoring": {"labels": {"release": "a/b"}}},
        "/monitoring/labels/release",
    ),
    "a budget that lets no pod go": (
        {"podDisruptionBudget": {"maxUnavailable": 0}},
        "/podDisruptionBudget/maxUnavailable",
    ),
    "an amount with an unknown unit": (
        {"resources": {"server": {"limits": {"memory": "512MB"}}}},
        "/resources/server/limits/memory",
    ),
    "flags as one text": ({"extraArgs": {"server": "--workers=4"}}, "/extraArgs/server"),
    "a volume with a name in capitals": (
        {"extraVolumes": [{"name": "CA"}]},
        "/extraVolumes/0/name",
    ),
    "a volume with a name of ours": ({"extraVolumes": [{"name": "tls"}]}, "/extraVolumes/0/name"),
    "a volume whose name is a number": ({"extraVolumes": [{"name": 1}]}, "/extraVolumes/0/name"),
    "a label of the pods that is none": ({"podLabels": {"team": "a b"}}, "/podLabels/team"),
    "a label of 64 letters": ({"podLabels": {"team": "x" * 64}}, "/podLabels/team"),
    "the key of a label that is none": ({"podLabels": {"a b": "c"}}, "'a b'"),
    "the key of an annotation that is none": (
        {"podAnnotations": {"a/b/c": "d"}},
        "'a/b/c'",
    ),
    "a label of nodes that is none": ({"nodeSelector": {"a": "b c"}}, "/nodeSelector/a"),
    "a label that no object has": (
        {"webhooks": {"repair.gpu-webhook.dev": {"objectSelector": {"matchLabels": {"a b": "c"}}}}},
        "'a b'",
    ),
    "a priority class that cannot be": ({"priorityClassName": "a b"}, "/priorityClassName"),
    "a CA with something before it on its line": (
        {"certificates": {"caBundle": f" {PEM}"}},
        "/certificates/caBundle",
    ),
    "another value of the label that selects the pods": (
        {"podLabels": {"app.kubernetes.io/name": "other"}},
        "app.kubernetes.io/name",
    ),
}


# What API servers take, and looks odd.
ODD: dict[str, dict[str, Any]] = {
    "a CA after an empty line": {"caBundle": f"\n{PEM}"},
    "a CA after a comment": {"caBundle": f"# ours\r\n{PEM}{PEM}"},
}


@pytest.mark.parametrize("certificates", ODD.values(), ids=ODD)
def test_helm_takes_a_ca_as_programs_write_it(certificates: dict[str, Any], tmp_path: Path) -> None:
    made = rendered(tmp_path, {"certificates": {"mode": "secret", **certificates}})
    entry = made["MutatingWebhookConfiguration", "gpu-webhook"]["webhooks"][0]
    assert b64decode(entry["clientConfig"]["caBundle"]).decode() == certificates["caBundle"]


def test_helm_takes_all_keys_and_labels_that_are_valid(tmp_path: Path) -> None:
    labels = {"a": "", "A_b.c": "x_Y.z-1", "sub.example.com/a": "x" * 63}
    notes = {"Example.COM/a-B": "any text\n"}
    given = {"podLabels": labels, "nodeSelector": labels, "podAnnotations": notes}
    made = rendered(tmp_path, given)["Deployment", "gpu-webhook"]["spec"]["template"]
    assert labels.items() <= made["metadata"]["labels"].items()
    assert labels.items() <= made["spec"]["nodeSelector"].items()
    assert notes.items() <= made["metadata"]["annotations"].items()


@pytest.mark.parametrize(("values", "named"), WRONG.values(), ids=WRONG)
def test_helm_refuses_a_wrong_value_and_names_it(
    values: dict[str, Any], named: str, tmp_path: Path
) -> None:
    file = tmp_path / "values.json"
    file.write_text(json.dumps(values))
    done = helm.run(tmp_path, "template", "gpu-webhook", str(CHART), "-f", str(file))
    assert done.returncode != 0
    assert "don't meet the specifications of the schema" in done.stderr
    assert named in done.stderr.partition("schema(s)")[2], done.stderr


EXCLUDED: dict[str, tuple[str, ...]] = {
    "no -n, so that the release is in default": (),
    "default among the excluded ones": (
        *("-n", "gpu-webhook"),
        *("--set", "excludedNamespaces={kube-system,default}"),
    ),
    "a test in kube-system": ("-n", "gpu-webhook", "--set", "test.namespace=kube-system"),
}


@pytest.mark.parametrize("words", EXCLUDED.values(), ids=EXCLUDED)
def test_helm_refuses_a_test_in_a_namespace_that_no_entry_concerns(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = helm.run(tmp_path, "template", "gpu-webhook", str(CHART), *words)
    assert done.returncode != 0
    assert "No entry of the webhook concerns the namespace" in done.stderr
    assert "-n gpu-webhook --create-namespace" in done.stderr


def test_the_release_may_be_anywhere_if_the_test_is_elsewhere(tmp_path: Path) -> None:
    for namespace, test in (("default", "team"), ("kube-system", "default")):
        made = rendered(tmp_path, {"test": {"namespace": test}}, "-n", namespace)
        assert made["Deployment", "gpu-webhook"]["metadata"]["namespace"] == namespace


def _blocks() -> list[str]:
    """The settings that the pages show."""
    names = ("settings", "cookbook", "policy", "guard")
    pages = [(ROOT / "docs" / f"{name}.md").read_text() for name in names]
    known = json.loads((ROOT / "docs" / "schema" / "settings.json").read_text())["properties"]
    blocks = re.findall(r"^```yaml\n(.*?)^```", "\n".join(pages), re.DOTALL | re.MULTILINE)
    return [each for each in blocks if _keys(each) and _keys(each) <= known.keys()]


def _keys(text: str) -> set[str]:
    found = yaml.safe_load(text)
    return set(found) if isinstance(found, dict) else set()


def test_helm_takes_all_settings_that_the_pages_show(tmp_path: Path) -> None:
    """The word off included, which YAML 1.1 reads as false."""
    blocks = _blocks()
    assert len(blocks) > 15
    assert any(": off" in each for each in blocks)
    shown, written = tmp_path / "shown.yaml", tmp_path / "written.yaml"
    for each in blocks:
        shown.write_text(each)
        values = tmp_path / "values.yaml"
        values.write_text("settings:\n" + indent(each, "  "))
        made = rendered(tmp_path, {}, "-f", str(values))
        written.write_text(yaml.safe_dump(settings(made)))
        assert settings_file.load(str(written)) == settings_file.load(str(shown)), each
