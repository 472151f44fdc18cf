"""What is shipped says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from webhook import __version__
from webhook.core.settings import Settings
from webhook.evaluation.match_conditions import (
    match_conditions,
    pod_policy_match_conditions,
    workload_match_conditions,
    workload_rules,
)
from webhook.settings import file as settings_file

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


def test_security_md_lists_each_right_of_the_watcher_and_no_other() -> None:
    role, _ = yaml.safe_load_all((BASE / "cluster-role.yaml").read_text())
    given = {
        (f"{resource}.{group}".rstrip("."), verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    page = (BASE.parents[1] / "SECURITY.md").read_text()
    rows = re.findall(r"^\| `(\S+)` \| ([a-z, ]+) \| \S", page, re.MULTILINE)

    assert given == {(resource, verb) for resource, verbs in rows for verb in verbs.split(", ")}


def test_the_watcher_writes_nothing_but_events() -> None:
    role, _ = yaml.safe_load_all((BASE / "cluster-role.yaml").read_text())
    writing = [rule for rule in role["rules"] if set(rule["verbs"]) - {"get", "list", "watch"}]

    assert writing == [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]


def test_the_shipped_settings_are_the_defaults() -> None:
    assert settings_file.load(str(BASE / "settings.yaml")) == Settings()


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
