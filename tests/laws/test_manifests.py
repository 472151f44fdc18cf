"""What is shipped says what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from webhook import __version__
from webhook.core.modes import Mode
from webhook.core.settings import MODEL_PROFILES, Placement, Policy, Settings
from webhook.doctor.rights import of_certificates, of_inventory
from webhook.evaluation.match_conditions import (
    match_conditions,
    pod_policy_match_conditions,
    workload_match_conditions,
    workload_rules,
)
from webhook.issuing.objects import CONFIGURATIONS, SECRET
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
BASE = ROOT / "manifests" / "base"


def test_the_match_conditions_are_those_of_the_settings() -> None:
    configuration = yaml.safe_load((BASE / "webhook.yaml").read_text())

    for webhook in configuration["webhooks"]:
        assert webhook["matchConditions"] == match_conditions(Settings())


def test_the_validating_entries_are_those_of_the_settings() -> None:
    configuration = yaml.safe_load((BASE / "validating-webhook.yaml").read_text())

    policy, workloads = configuration["webhooks"]
    assert policy["matchConditions"] == pod_policy_match_conditions(Settings())
    assert workloads["matchConditions"] == workload_match_conditions(Settings())
    assert workloads["rules"] == workload_rules(Settings())


def test_the_repair_of_templates_has_the_same_objects_as_the_warnings() -> None:
    file = ROOT / "manifests" / "workload-repair" / "webhook.yaml"
    (entry,) = yaml.safe_load(file.read_text())["webhooks"]

    assert entry["matchConditions"] == workload_match_conditions(Settings(), repaired=True)
    assert entry["rules"] == workload_rules(Settings())
    assert entry["clientConfig"]["service"]["path"] == "/mutate"
    assert entry["failurePolicy"] == "Ignore"


def test_only_the_watcher_holds_a_token() -> None:
    pod = yaml.safe_load((BASE / "deployment.yaml").read_text())["spec"]["template"]["spec"]

    assert pod["automountServiceAccountToken"] is False
    holders = [
        container["name"]
        for container in pod["containers"]
        if any(mount["name"] == "token" for mount in container["volumeMounts"])
    ]
    assert holders == ["watch"]


def roles(*files: str) -> list[dict[str, Any]]:
    """The rules of all roles in these files."""
    objects = [each for file in files for each in yaml.safe_load_all((BASE / file).read_text())]
    return [rule for each in objects for rule in each.get("rules", ())]


def granted(rules: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    """The resources and verbs in the rules of roles."""
    return {
        (f"{resource}.{group}".rstrip("."), verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def documented() -> list[set[tuple[str, str]]]:
    """The same as SECURITY.md has it: of the watcher, and of `helm test`."""
    page = (BASE.parents[1] / "SECURITY.md").read_text()
    rows = re.compile(r"^\| `(\S+)` \| ([a-z, ]+) \| \S", re.MULTILINE)
    return [
        {(resource, verb) for resource, verbs in rows.findall(part) for verb in verbs.split(", ")}
        for part in page.split("While `helm test` runs")
    ]


def test_security_md_lists_each_right_of_the_watcher_and_no_other() -> None:
    assert granted(roles("cluster-role.yaml", "certificates.yaml")) == documented()[0]


def test_doctor_asks_for_each_right_of_the_watcher_and_no_other() -> None:
    asked = {
        (right.group, right.resource, right.name, right.verb)
        for right in (*of_inventory(Settings()), *of_certificates("gpu-webhook"))
    }
    assert asked == {
        (group, resource, name, verb)
        for rule in roles("cluster-role.yaml", "certificates.yaml")
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }
    fewer = settings_file.parse("messages: {events: false}")
    assert {str(right) for right in {*of_inventory(Settings())} - {*of_inventory(fewer)}} == {
        "create events"
    }


def writing(*files: str) -> list[dict[str, Any]]:
    return [rule for rule in roles(*files) if set(rule["verbs"]) - {"get", "list", "watch"}]


def test_the_watcher_writes_nothing_but_events_and_its_certificates() -> None:
    events = {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}
    assert writing("cluster-role.yaml") == [events]
    for rule in writing("certificates.yaml"):
        assert rule["verbs"] == ["create"] or rule["resourceNames"]
        assert {*rule["verbs"]} <= {"get", "update", "patch", "create"}


def test_the_rights_are_for_the_objects_whose_names_the_code_has() -> None:
    named = {
        (resource, name)
        for rule in roles("certificates.yaml")
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ())
    }
    kinds = (each.partition("/") for each in CONFIGURATIONS)
    wanted = {(f"{kind}webhookconfigurations", name) for kind, _, name in kinds}
    assert named == {("secrets", SECRET), ("leases", SECRET)} | wanted


def test_each_shipped_configuration_has_its_ca_bundle_filled_in() -> None:
    files = sorted(BASE.parent.rglob("*webhook.yaml"))
    configurations = [yaml.safe_load(file.read_text()) for file in files]
    kinds = {
        "MutatingWebhookConfiguration": "mutating",
        "ValidatingWebhookConfiguration": "validating",
    }
    names = [f"{kinds[each['kind']]}/{each['metadata']['name']}" for each in configurations]
    assert sorted(names) == sorted(CONFIGURATIONS)
    for each in configurations:
        for webhook in each["webhooks"]:
            assert "caBundle" not in webhook["clientConfig"], "GitOps would empty it"


def test_the_shipped_settings_are_the_defaults() -> None:
    assert settings_file.load(str(BASE / "settings.yaml")) == Settings()


def test_the_settings_of_audit_only_change_and_deny_nothing() -> None:
    settings = settings_file.load(str(BASE.parent / "audit-only" / "settings.yaml"))
    assert settings.policy == Policy(mode=Mode.AUDIT)


def test_the_pods_prefer_nodes_without_any_label_that_nodes_with_gpus_have() -> None:
    pod = yaml.safe_load((BASE / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    (term,) = pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    expressions = term["preference"]["matchExpressions"]
    absent = {each["key"] for each in expressions if each["operator"] == "DoesNotExist"}
    assert len(expressions) == len(absent)
    of_models = {each.label.replace("gpu-name", "gpu-count") for each in MODEL_PROFILES.values()}
    every_node_has_it = {"node.kubernetes.io/instance-type"}
    assert (of_models - every_node_has_it) | {Placement().label} < absent


def test_a_replica_that_answers_calls_in_time_answers_its_probes_in_time() -> None:
    deployment = yaml.safe_load((BASE / "deployment.yaml").read_text())
    server = deployment["spec"]["template"]["spec"]["containers"][0]
    (repair,) = yaml.safe_load((BASE / "webhook.yaml").read_text())["webhooks"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert server[probe].get("timeoutSeconds", 1) >= repair["timeoutSeconds"]


def test_the_image_is_that_of_this_version() -> None:
    images = yaml.safe_load((BASE / "kustomization.yaml").read_text())["images"]

    assert [image["newTag"] for image in images] == [__version__]


def test_the_webhook_never_stops_a_pod_when_it_is_away() -> None:
    webhooks = [
        webhook
        for file in ("webhook.yaml", "validating-webhook.yaml")
        for webhook in yaml.safe_load((BASE / file).read_text())["webhooks"]
    ]

    assert [webhook["timeoutSeconds"] for webhook in webhooks] == [3, 5, 5]
    for webhook in webhooks:
        assert webhook["failurePolicy"] == "Ignore"
        assert webhook["namespaceSelector"]["matchExpressions"][0] == {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "gpu-webhook"],
        }
