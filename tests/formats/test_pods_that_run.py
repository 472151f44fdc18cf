"""Annotations without effect in pods that can run: files and admission leave them as they are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from webhook.cli.main import main
from webhook.core.legacy_names import LEGACY_RESOURCE
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.evaluation.evaluate import Stages, evaluate
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.rules import RULES
from webhook.verifying.admitted import admitted

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.files.results import FileResult

    Raw = dict[str, Any]

GPU = "nvidia.com/gpu"
ON_SSD = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
            ]
        }
    }
}
ANNOTATIONS = {
    "affinity": ("scheduler.alpha.kubernetes.io/affinity", json.dumps(ON_SSD)),
    "a host name": ("pod.beta.kubernetes.io/hostname", "worker-0"),
    "sysctls": ("security.alpha.kubernetes.io/sysctls", "kernel.shm_rmid_forced=1"),
}
RUN = {"a current amount": {GPU: 1}, "no GPUs": {"cpu": 1}, "0 GPUs": {LEGACY_RESOURCE: 0}}


def pod(annotation: tuple[str, str], limits: Raw) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    metadata = {"name": "a", "annotations": dict([annotation])}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container]},
    }


def migrated(obj: Raw, plan: Plan) -> tuple[Raw, FileResult]:
    text = yaml.safe_dump(obj)
    result = migrate_text(Source.of_text("a.yaml", text), plan)
    made: Raw = yaml.safe_load(text if result.new_text is None else result.new_text)
    return made, result


@pytest.mark.parametrize("limits", RUN.values(), ids=RUN)
@pytest.mark.parametrize("annotation", ANNOTATIONS.values(), ids=ANNOTATIONS)
def test_an_annotation_of_a_pod_that_runs_is_reported_and_stays(
    annotation: tuple[str, str], limits: Raw
) -> None:
    obj = pod(annotation, limits)
    made, result = migrated(obj, Plan())
    (found,) = (each for each in result.located if each.code in {"GPU106", "GPU108"})
    assert found.status is Status.MANUAL
    assert made["metadata"] == obj["metadata"]
    assert made["spec"].keys() == {"containers"}
    assert made["metadata"] == admitted(obj, Plan()).object["metadata"]
    evaluate(obj, Stages(repairs=RULES), Context())  # as the webhook with the default settings
    assert obj["metadata"] == made["metadata"]
    assert obj["spec"].keys() == made["spec"].keys()


@pytest.mark.parametrize("annotation", ANNOTATIONS.values(), ids=ANNOTATIONS)
def test_an_annotation_of_a_pod_that_can_never_run_becomes_a_field(
    annotation: tuple[str, str],
) -> None:
    made, result = migrated(pod(annotation, {LEGACY_RESOURCE: 1}), Plan())
    assert "annotations" not in made["metadata"]
    assert {each.status for each in result.located} == {Status.FIXABLE}


@pytest.mark.parametrize("annotation", ANNOTATIONS.values(), ids=ANNOTATIONS)
def test_the_scope_all_legacy_makes_fields_in_files_and_in_admission(
    annotation: tuple[str, str],
) -> None:
    plan, obj = Plan(Settings(scope="all-legacy")), pod(annotation, {GPU: 1})
    made, _ = migrated(obj, plan)
    assert "annotations" not in made["metadata"]
    assert admitted(obj, plan).object == made
    evaluate(obj, Stages(repairs=RULES), Context(plan.settings))
    assert obj["spec"] == made["spec"]


def test_affinity_of_a_pod_that_runs_is_converted_on_request() -> None:
    obj = pod(ANNOTATIONS["affinity"], {GPU: 1})
    made, _ = migrated(obj, replace(Plan(), unsafe=True))
    assert made["spec"]["affinity"] == ON_SSD


def test_the_commands_agree(tmp_path: Path) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(yaml.safe_dump(pod(ANNOTATIONS["affinity"], {GPU: 1})))
    new.write_text(old.read_text())
    assert main(["migrate", "-w", str(new)]) == 3
    assert main(["review", "-f", str(old)]) == 3
    assert main(["verify", str(old), str(new)]) == 0
    assert main(["migrate", "-w", "--unsafe", str(new)]) == 0
    assert main(["verify", str(old), str(new)]) == 2
