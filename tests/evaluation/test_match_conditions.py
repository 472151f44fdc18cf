"""The generated CEL, as text: what it names and how it guards.

A real API server compiles and runs it in tests/cluster.
"""

from __future__ import annotations

import pytest

from webhook.core.settings import CustomKind, Models, Settings, Taint, Workloads
from webhook.evaluation.match_conditions import (
    entries,
    match_conditions,
    missed_names,
    pod_policy_match_conditions,
    workload_match_conditions,
    workload_rules,
)


def concerns_gpus(settings: Settings) -> str:
    conditions = {each["name"]: each["expression"] for each in match_conditions(settings)}
    return conditions["concerns-gpus"]


def test_the_conditions_have_names() -> None:
    assert [each["name"] for each in match_conditions(Settings())] == [
        "is-no-mirror-pod",
        "is-no-windows-pod",
        "concerns-gpus",
        "is-new-or-brings-legacy-words",
    ]


def test_an_update_counts_where_it_brings_a_word_or_loses_a_toleration_of_ours() -> None:
    settings = Settings(legacy_resources=("old/gpu",), taints=(Taint("team", "a", "NoSchedule"),))
    expression = match_conditions(settings)[-1]["expression"]
    new, *updates = expression.split("\n|| (")
    assert new == 'request.operation == "CREATE"'
    resource, *rest, annotation, toleration = updates
    assert "object.spec.containers" in resource
    assert '"old/gpu"' in resource
    assert resource.startswith("object.spec != oldObject.spec")
    assert 'c.resources.limits[k] != "0"' in expression.partition("!(oldObject.spec.cont")[2]
    selector, affinity, *_ = rest
    assert '"alpha.kubernetes.io/nvidia-gpu-name" in object.spec.nodeSelector' in selector
    assert "!(has(oldObject.spec.nodeSelector)" in selector
    assert "!(has(oldObject.spec.affinity)" in expression
    assert "object.spec.affinity.nodeAffinity.required" in affinity
    assert '!(has(oldObject.metadata.annotations) && "scheduler.alpha' in annotation
    assert 't.key in ["nvidia.com/gpu", "nvidia.com/gpu.shared", "team"]' in toleration
    assert "!(has(object.spec.tolerations)" in toleration


@pytest.mark.parametrize(
    "text",
    [
        '"alpha.kubernetes.io/nvidia-gpu"',
        '"nvidia.com/gpu"',
        '"nvidia.com/gpu.shared"',
        'k.startsWith("nvidia.com/mig-")',
        '"alpha.kubernetes.io/nvidia-gpu-name" in object.spec.nodeSelector',
        '["scheduler.alpha.kubernetes.io/affinity"].size() <= 262144 && ',
        '["scheduler.alpha.kubernetes.io/affinity"].contains("alpha.kubernetes.io/nvidia-gpu-name")',
        'e.key == "alpha.kubernetes.io/nvidia-gpu-name"',
    ],
)
def test_every_way_to_name_a_gpu_is_there(text: str) -> None:
    assert text in concerns_gpus(Settings())


@pytest.mark.parametrize(
    "member",
    [
        "object.spec.initContainers",
        "c.resources",
        "c.resources.limits",
        "c.resources.requests",
        "object.spec.nodeSelector",
        "object.metadata.annotations",
        "object.spec.affinity",
        "object.spec.affinity.nodeAffinity",
        "t.matchExpressions",
        "p.preference.matchExpressions",
    ],
)
def test_every_member_that_may_be_missing_is_asked_for_first(member: str) -> None:
    expression = concerns_gpus(Settings())
    guard = expression.index(f"has({member})")
    assert guard < expression.replace(f"has({member})", "#" * len(f"has({member})")).index(member)


TF_JOB = CustomKind("TFJob", "kubeflow.org")  # ready made
SHARDS = CustomKind("Shards", templates=("/sp-ec/*/0/in/te~1mplate", "/head"))
NOTHING = CustomKind("Nothing", "example.dev")
ANYTHING = CustomKind("Anything", "example.dev", ("",))
CONFIGURED = Settings(workloads=Workloads(kinds=(TF_JOB, SHARDS, NOTHING, ANYTHING)))


@pytest.mark.parametrize(
    "expression",
    [
        each["expression"]
        for settings in (Settings(), CONFIGURED)
        for conditions in (match_conditions, pod_policy_match_conditions, workload_match_conditions)
        for each in conditions(settings)
    ],
)
def test_brackets_and_quotes_are_closed(expression: str) -> None:
    assert expression.count("(") == expression.count(")")
    assert expression.count("[") == expression.count("]")
    assert expression.count('"') % 2 == 0


def test_names_of_the_settings_take_the_place_of_the_default_ones() -> None:
    settings = Settings(
        legacy_resources=("old/gpu",),
        gpu_resource="new/gpu",
        gpu_resources=("new/*", "new/gpu"),
        models=Models("old/model"),
    )
    expression = concerns_gpus(settings)
    assert 'k in ["new/gpu", "old/gpu"] || k.startsWith("new/")' in expression
    assert '"old/model" in object.spec.nodeSelector' in expression
    assert "nvidia" not in expression


def test_a_name_cannot_break_out_of_its_quotes() -> None:
    settings = Settings(legacy_resources=('a"] || true || k in ["b',))
    assert 'k in ["a\\"] || true || k in [\\"b", "nvidia.com/gpu"' in concerns_gpus(settings)


@pytest.mark.parametrize(
    ("settings", "missed"),
    [
        pytest.param(Settings(), [], id="the default settings miss nothing"),
        pytest.param(
            Settings(legacy_resources=("alpha.kubernetes.io/nvidia-gpu", "z/gpu", "a/gpu")),
            ["a/gpu", "z/gpu"],
            id="further legacy names, sorted",
        ),
        pytest.param(Settings(legacy_resources=()), [], id="fewer names miss nothing"),
        pytest.param(Settings(gpu_resource="amd.com/gpu"), ["amd.com/gpu"], id="another target"),
        pytest.param(
            Settings(gpu_resource="nvidia.com/mig-1g.5gb"), [], id="a target that a pattern covers"
        ),
        pytest.param(
            Settings(gpu_resources=("nvidia.com/mig-1g.5gb", "nvidia.com/*", "nvidia.com/mig-*")),
            ["nvidia.com/*"],
            id="a wider pattern",
        ),
        pytest.param(
            Settings(gpu_resources=("nvidia.com/mig-1*",)),
            ["nvidia.com/mig-1*"],
            id="a narrower pattern is named too, to be on the safe side",
        ),
        pytest.param(Settings(models=Models("old/model")), ["old/model"], id="another label"),
        pytest.param(
            Settings(gpu_resource="x/gpu", gpu_resources=("x/gpu",)), ["x/gpu"], id="named once"
        ),
        pytest.param(
            CONFIGURED, ["Anything", "Nothing", "Shards", "TFJob"], id="custom kinds of workloads"
        ),
    ],
)
def test_configured_names_that_the_shipped_conditions_would_miss(
    settings: Settings, missed: list[str]
) -> None:
    assert missed_names(settings) == missed


def named(conditions: list[dict[str, str]]) -> dict[str, str]:
    return {each["name"]: each["expression"] for each in conditions}


def test_pods_are_held_to_the_policy_that_ask_under_a_name_of_today() -> None:
    conditions = named(pod_policy_match_conditions(Settings()))
    assert list(conditions) == ["is-no-mirror-pod-of-a-node", "asks-for-gpus"]
    names = 'k in ["nvidia.com/gpu", "nvidia.com/gpu.shared"] || k.startsWith("nvidia.com/mig-")'
    assert conditions["asks-for-gpus"].count(names) == 2
    assert "alpha" not in conditions["asks-for-gpus"]


def test_workloads_have_the_conditions_of_the_pods_that_they_make() -> None:
    conditions = named(workload_match_conditions(Settings()))
    assert list(conditions) == [
        "asked-by-no-part-of-the-system",
        "made-by-no-controller",
        "has-a-new-template",
        "concerns-gpus",
    ]
    of_a_pod = concerns_gpus(Settings()).replace("\n", "\n  ").replace("object.", "pod.")
    annotations = "(has(pod.metadata.annotations)"
    assert annotations in of_a_pod
    there = "(has(pod.metadata) && has(pod.metadata.annotations)"
    assert of_a_pod.replace(annotations, there) in conditions["concerns-gpus"]


NOTED = (
    "(has(oldObject.metadata.annotations) && "
    '"gpu-webhook.dev/template-repair" in oldObject.metadata.annotations)'
)


def test_where_templates_are_repaired_each_update_of_one_is_news() -> None:
    plain = named(workload_match_conditions(Settings()))
    repaired = named(workload_match_conditions(Settings(), repaired=True))
    more = repaired["has-a-new-template"].removeprefix(plain["has-a-new-template"])
    assert more == f"\n|| {NOTED}"
    more = repaired["concerns-gpus"].removeprefix(plain["concerns-gpus"])
    assert more == f'\n|| (request.operation == "UPDATE" && {NOTED})'
    assert list(repaired) == list(plain)


@pytest.mark.parametrize(
    ("kind", "at"),
    [
        ("Deployment", "spec.template"),
        ("ReplicaSet", "spec.template"),
        ("StatefulSet", "spec.template"),
        ("DaemonSet", "spec.template"),
        ("Job", "spec.template"),
        ("ReplicationController", "spec.template"),
        ("CronJob", "spec.jobTemplate.spec.template"),
        ("PodTemplate", "template"),
    ],
)
def test_each_built_in_kind_has_its_template_where_it_is(kind: str, at: str) -> None:
    conditions = named(workload_match_conditions(Settings()))
    for condition, value in (
        ("has-a-new-template", f"object.{at} != oldObject.{at}"),
        ("concerns-gpus", f"[object.{at}]"),
    ):
        [case] = [line for line in conditions[condition].splitlines() if f'"{kind}"' in line]
        assert case.endswith(f"? {value}")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            'request.kind.kind == "TFJob" && request.kind.group == "kubeflow.org" ?',
            id="a kind of one group",
        ),
        pytest.param('request.kind.kind == "Shards" ?', id="a kind of any group"),
        pytest.param(
            ".map(value2, (has(value2.template) ? [value2.template] : []))", id="any member or item"
        ),
        pytest.param('("sp-ec" in object) ? (type(object["sp-ec"]) == map ?', id="an odd member"),
        pytest.param(".map(value4, (type(value4) == map ?", id="a position stands for any"),
        pytest.param('("te/mplate" in value3["in"]) ?', id="a word of CEL, an escaped member"),
        pytest.param("+ [[(has(object.head) ? [object.head] : [])]]", id="as deep as the deepest"),
        pytest.param("[[[object.template]]]", id="built-in kinds are as deep"),
        pytest.param(
            ".exists(list0, list0.exists(list1, list1.exists(pod,", id="and looked through"
        ),
        pytest.param('group == "example.dev" ? ([])', id="a kind without templates has none"),
        pytest.param("? ([[[object]]])", id="the object itself"),
    ],
)
def test_custom_kinds_are_looked_through_as_their_pointers_say(text: str) -> None:
    assert text in named(workload_match_conditions(CONFIGURED))["concerns-gpus"]


def test_a_custom_kind_is_new_where_the_member_around_its_templates_is() -> None:
    expression = named(workload_match_conditions(CONFIGURED))["has-a-new-template"]
    old_and_new = "((has(object.spec) ? [object.spec] : []) != (has(oldObject.spec) ?"
    assert old_and_new in expression
    assert '("sp-ec" in object) ? [object["sp-ec"]] : []) != ' in expression
    assert 'group == "example.dev" ? (false)' in expression


def test_the_rules_name_the_built_in_kinds_and_whole_groups_of_custom_ones() -> None:
    built_in = workload_rules(Settings())
    assert [(rule["apiGroups"], rule["apiVersions"], rule["resources"]) for rule in built_in] == [
        (["apps"], ["v1"], ["deployments", "replicasets", "statefulsets", "daemonsets"]),
        (["batch"], ["v1"], ["cronjobs", "jobs"]),
        ([""], ["v1"], ["replicationcontrollers", "podtemplates"]),
    ]
    configured = workload_rules(CONFIGURED)[len(built_in) :]
    assert [(rule["apiGroups"], rule["apiVersions"], rule["resources"]) for rule in configured] == [
        (["*"], ["*"], ["*"]),
        (["example.dev"], ["*"], ["*"]),
        (["kubeflow.org"], ["*"], ["*"]),
    ]
    assert all(
        (rule["operations"], rule["scope"]) == (["CREATE", "UPDATE"], "Namespaced")
        for rule in (*built_in, *configured)
    )


def test_each_entry_has_what_follows_from_the_settings() -> None:
    made = entries(CONFIGURED)
    assert made == {
        "repair.gpu-webhook.dev": {"matchConditions": match_conditions(CONFIGURED)},
        "policy.gpu-webhook.dev": {"matchConditions": pod_policy_match_conditions(CONFIGURED)},
        "workloads.gpu-webhook.dev": {
            "rules": workload_rules(CONFIGURED),
            "matchConditions": workload_match_conditions(CONFIGURED),
        },
        "workload-repair.gpu-webhook.dev": {
            "rules": workload_rules(CONFIGURED),
            "matchConditions": workload_match_conditions(CONFIGURED, repaired=True),
        },
    }
