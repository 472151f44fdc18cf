"""The leak guard's own entry: what keeps it away from pods that nobody wants it to see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.capacity.gpu_holders import FRACTIONS
from webhook.core.settings import Settings
from webhook.evaluation.match_conditions import match_conditions

MANIFESTS = Path(__file__).parents[2] / "manifests"


def entry(name: str) -> dict[str, Any]:
    configuration: dict[str, Any] = yaml.safe_load((MANIFESTS / name / "webhook.yaml").read_text())
    first: dict[str, Any] = configuration["webhooks"][0]
    return first


def test_it_is_an_entry_of_its_own_that_nobody_installs_unasked() -> None:
    component = yaml.safe_load((MANIFESTS / "guard" / "kustomization.yaml").read_text())
    assert component["kind"] == "Component"
    for name in ("base", "cert-manager"):
        installed = (MANIFESTS / name / "kustomization.yaml").read_text()
        assert "guard" not in installed
    assert entry("guard")["clientConfig"]["service"] == {
        **entry("base")["clientConfig"]["service"],
        "path": "/guard",
    }


def test_no_pod_waits_for_it_long_or_fails_without_it() -> None:
    guard = entry("guard")
    assert guard["failurePolicy"] == "Ignore"
    assert (guard["timeoutSeconds"], entry("guard-refuse")["timeoutSeconds"]) == (3, 5)
    assert guard["reinvocationPolicy"] == "IfNeeded"
    assert guard["sideEffects"] == "None"


@pytest.mark.parametrize(
    ("name", "updated"),
    [
        ("guard", ["pods/ephemeralcontainers"]),
        ("guard-refuse", ["pods/ephemeralcontainers", "pods/status"]),
    ],
)
def test_it_sees_pods_and_new_ephemeral_containers(name: str, updated: list[str]) -> None:
    seen = [(rule["resources"], rule["operations"]) for rule in entry(name)["rules"]]
    assert seen == [(["pods"], ["CREATE", "UPDATE"]), (updated, ["UPDATE"])]


def test_it_sees_namespaces_that_ask_for_it_less_those_that_the_base_leaves_alone() -> None:
    asked_for, *others = entry("guard")["namespaceSelector"]["matchExpressions"]
    left_alone = entry("base")["namespaceSelector"]["matchExpressions"]
    assert asked_for == {
        "key": "gpu-webhook.dev/guard",
        "operator": "In",
        "values": ["enabled"],
    }
    assert sorted(others, key=str) == sorted(left_alone, key=str)


def test_its_conditions_are_those_that_speak_of_no_gpu() -> None:
    speak = ("concerns-gpus", "is-new-or-brings-legacy-words")
    general = [each for each in match_conditions(Settings()) if each["name"] not in speak]
    *guard, of_updates = entry("guard")["matchConditions"]
    *refusing, of_fractions = entry("guard-refuse")["matchConditions"]
    assert guard == refusing
    assert [(each["name"], asked(each).replace("pod.", "object.")) for each in guard] == [
        (each["name"], asked(each)) for each in general
    ]
    assert len(general) == 2
    assert of_updates["name"] == "is-new-or-changes-containers"
    assert of_fractions["name"] == "is-new-or-changes-its-part-of-a-gpu"
    assert all(f'"{each}"' in of_fractions["expression"] for each in FRACTIONS)
    # Where a later part fails, the API server does not call us: of a new pod none is asked.
    for each in (of_updates, of_fractions):
        assert asked(each).startswith('request.operation == "CREATE" ||')


def asked(condition: dict[str, str]) -> str:
    """What it asks of the pod; of one that is stored, it asks that one."""
    expression = " ".join(condition["expression"].split())
    start = '[request.operation == "CREATE" ? object : oldObject].all(pod, '
    return expression.removeprefix(start).removesuffix(")") if start in expression else expression


def test_nothing_that_comes_with_an_ephemeral_container_keeps_a_pod_from_it() -> None:
    """The API server drops it, but only after it has asked the conditions."""
    for name in ("guard", "guard-refuse"):
        for each in entry(name)["matchConditions"][:2]:
            assert "[request.operation == " in each["expression"]
            assert "(object." not in each["expression"]


def test_the_refusing_half_is_another_component_and_sees_the_same_requests() -> None:
    component = yaml.safe_load((MANIFESTS / "guard-refuse" / "kustomization.yaml").read_text())
    assert component["kind"] == "Component"
    for name in ("base", "cert-manager", "guard"):
        assert "refuse" not in (MANIFESTS / name / "kustomization.yaml").read_text()
    file = MANIFESTS / "guard-refuse" / "webhook.yaml"
    assert yaml.safe_load(file.read_text())["kind"] == "ValidatingWebhookConfiguration"
    guard, refusing = entry("guard"), entry("guard-refuse")
    assert refusing["name"] != guard["name"]
    assert refusing["clientConfig"]["service"] == {
        **guard["clientConfig"]["service"],
        "path": "/guard/refuse",
    }
    differing = {"name", "clientConfig", "reinvocationPolicy", "rules", "matchConditions"}
    differing |= {"timeoutSeconds"}
    same = {key: value for key, value in guard.items() if key not in differing}
    assert {key: value for key, value in refusing.items() if key not in differing} == same
    assert "reinvocationPolicy" not in refusing
