"""The record that a repair of a template leaves on the workload is no finding by itself.

It quotes each word that was repaired (`gpu-webhook.dev/template-repair`), and so all that the rules
look for.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.admission.test_updates import applied
from webhook.cli.main import main
from webhook.evaluation.repair_record import ANNOTATION
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.reports.printing import as_json, as_yaml, in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
DRIVER = "/usr/lib/nvidia-375"
MODEL = {"key": f"{LEGACY}-name", "operator": "In", "values": ["Tesla K80"]}
TERMS = {"nodeSelectorTerms": [{"matchExpressions": [MODEL]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERMS}}


def legacy() -> dict[str, Any]:
    """A Deployment with everything that a repair translates."""
    container = {
        "name": "main",
        "image": "i",
        "resources": {"limits": {LEGACY: "1"}},
        "volumeMounts": [{"name": "driver", "mountPath": DRIVER}],
        "env": [{"name": "LD_LIBRARY_PATH", "value": f"{DRIVER}:/opt/it's a lib"}],
    }
    annotations = {
        "scheduler.alpha.kubernetes.io/affinity": json.dumps(AFFINITY),
        "scheduler.alpha.kubernetes.io/tolerations": '[{"key": "a", "operator": "Exists"}]',
    }
    spec = {
        "containers": [container],
        "nodeSelector": {"beta.kubernetes.io/os": "linux", f"{LEGACY}-name": "Tesla K80"},
        "volumes": [{"name": "driver", "hostPath": {"path": DRIVER}}],
    }
    labels = {"app": "train"}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def repaired() -> Any:
    made = applied(legacy())
    assert LEGACY.replace("/", "~1") in made["metadata"]["annotations"][ANNOTATION]
    assert DRIVER in made["metadata"]["annotations"][ANNOTATION]
    says = f"LimitRanger plugin set: cpu, {LEGACY} limit for container main"
    made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] = says  # of the API server
    return made


def _block(obj: Any) -> str:
    """The annotation as a text of several lines, as another program may print it."""
    text = json.dumps(json.loads(obj["metadata"]["annotations"][ANNOTATION]), indent=1)
    other = copy.deepcopy(obj)
    other["metadata"]["annotations"][ANNOTATION] = "RECORD"
    lines = "".join(f"\n      {line}" for line in text.splitlines())
    return as_yaml(other).replace("RECORD", f"|{lines}")


def _list(obj: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [obj, copy.deepcopy(obj)]}


PRINTED: dict[str, tuple[str, Callable[[Any], str]]] = {
    "YAML": ("a.yaml", as_yaml),
    "YAML of narrow lines": ("a.yaml", lambda obj: as_yaml(obj, width=20)),
    "YAML with a block": ("a.yaml", _block),
    "JSON": ("a.json", as_json),
    "JSON in one line": ("a.json", in_one_line),
    "a list in YAML": ("a.yaml", lambda obj: as_yaml(_list(obj))),
    "a list in JSON": ("a.json", lambda obj: as_json(_list(obj))),
    "several documents": ("a.yaml", lambda obj: f"---\n{as_yaml(obj)}---\n{as_yaml(obj)}"),
    "Markdown": ("a.md", lambda obj: f"# It is\n\n```yaml\n{as_yaml(obj)}```\n"),
    "Markdown with JSON": ("a.md", lambda obj: f"# It is\n\n```json\n{as_json(obj)}```\n"),
    "a here-document": (
        "a.sh",
        lambda obj: f"#!/bin/sh\nkubectl apply -f - <<'END'\n{as_yaml(obj)}END\n",
    ),
    "a template": (
        "templates/a.yaml",
        lambda obj: f"{{{{- if .Values.x }}}}\n{as_yaml(obj)}{{{{- end }}}}\n",
    ),
}
WAYS = [pytest.param(*way, id=name) for name, way in PRINTED.items()]


@pytest.mark.parametrize(("name", "printed"), WAYS)
def test_our_record_is_no_finding_and_stays(name: str, printed: Callable[[Any], str]) -> None:
    text = printed(repaired())
    result = migrate_text(Source.of(name, text.encode()), Plan())
    assert [(each.code, each.message) for each in result.located] == []
    assert result.new_text is None


@pytest.mark.parametrize(("name", "printed"), WAYS)
def test_beside_our_record_everything_else_is_found(
    name: str, printed: Callable[[Any], str]
) -> None:
    made = repaired()
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {LEGACY: "1"}
    result = migrate_text(Source.of(name, printed(made).encode()), Plan())
    assert "GPU101" in {each.code for each in result.located}


def test_what_is_migrated_keeps_the_record() -> None:
    """The webhook passes over a record that somebody sent, and writes its own."""
    made = repaired()
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {LEGACY: "1"}
    new_text = migrate_text(Source.of("a.yaml", as_yaml(made).encode()), Plan()).new_text
    assert new_text is not None
    assert yaml.safe_load(new_text)["metadata"] == made["metadata"]


def test_another_annotation_that_quotes_the_name_is_found() -> None:
    made = repaired()
    made["metadata"]["annotations"]["example.org/note"] = f"as {LEGACY}"
    for text in (as_yaml(made), in_one_line(made)):
        result = migrate_text(Source.of("a.yaml", text.encode()), Plan())
        assert [each.code for each in result.located] == ["GPU101"]


def test_review_says_nothing_of_our_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(as_yaml(repaired()))
    assert main(["review", "-f", str(file)]) == 0, capsys.readouterr().out
