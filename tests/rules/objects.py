"""Objects for the tables of rules on manifests, and one such rule alone on the real engine."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import jsonpatch

from tests.engine import run_on_object
from tests.rules.pods import LEGACY, LONGEST_WARNING, container
from webhook.core.rule import Context
from webhook.core.settings import Settings

if TYPE_CHECKING:
    from webhook.core.findings import Finding
    from webhook.core.rule import ObjectRule

    Raw = dict[str, Any]

ROAD_2 = Context(Settings(scope="all-legacy"))
UNSAFE = Context(Settings(scope="all-legacy"), unsafe=True)
LABELS = {"app": "train"}
EXTENSIONS = "extensions/v1beta1"


def template(
    *containers: Raw, labels: Any = LABELS, annotations: Raw | None = None, **spec: Any
) -> Raw:
    """A pod template, with one legacy container if none is given."""
    metadata = {"labels": copy.deepcopy(labels), "annotations": annotations}
    return {
        "metadata": {key: value for key, value in metadata.items() if value is not None},
        "spec": {"containers": list(containers) or [container({LEGACY: 1})], **spec},
    }


def workload(
    api: str, kind: str, metadata: Raw | None = None, made: Raw | None = None, **spec: Any
) -> Raw:
    """A workload of any version around a template."""
    inside: Raw = {"template": template() if made is None else made, **spec}
    if kind in {"CronJob", "ScheduledJob"}:
        inside = {"schedule": "@daily", "jobTemplate": {"spec": inside}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata or {}, "spec": inside}


def found(rule: ObjectRule, obj: Raw, cx: Context = ROAD_2) -> list[Finding]:
    """What the rule says when it runs alone; holds each row to what must be true of them all."""
    before = copy.deepcopy(obj)
    verdict = run_on_object((rule,), obj, cx)
    assert verdict.failed == ()
    assert jsonpatch.apply_patch(before, verdict.patch) == obj
    assert run_on_object((rule,), copy.deepcopy(obj), cx).patch == [], "a second run does nothing"
    for each in verdict.findings:
        assert each.code == rule.CODE
        assert each.message.isprintable()
        assert len(f"{each.code}: {each.message}") <= LONGEST_WARNING
    return list(verdict.findings)


def said(rule: ObjectRule, obj: Raw, cx: Context = ROAD_2) -> list[tuple[str, str]]:
    """Where it found something, and what is left to do; the object is edited in place."""
    return [
        (each.at.dotted, "reported" if each.severity == "manual" else each.action)
        for each in found(rule, obj, cx)
    ]
