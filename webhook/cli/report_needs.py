"""Whether the webhook is needed for the pods of an object: what admission would do decides.

The rules also report what admission leaves as it is: an affinity annotation of pods that run, the
driver of an old node in pods without GPUs. Nothing changes there without the webhook. But a name in
the data of a program, such as its arguments, may become one of pods that the program makes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from webhook.cluster import other_kinds
from webhook.core.draft import copied
from webhook.core.legacy_names import AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION
from webhook.core.limit_ranger import ANNOTATION as DEFAULTS
from webhook.evaluation import repair_record
from webhook.evaluation.evaluate import Stages, evaluate
from webhook.evaluation.workloads import is_built_in, templates_of
from webhook.formats.file_objects import context
from webhook.kube import quantity
from webhook.kube.pod import KINDS, Raw, annotations_of, as_items, as_map, is_for_linux
from webhook.kube.pointer import value_at
from webhook.rules import (
    RULES,
    driver_paths,
    ignored_annotations,
    is_legacy,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.files.results import Plan
    from webhook.kube.pointer import Path

_READ = {AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION}
_RECORDS = {repair_record.ANNOTATION, DEFAULTS}
# With the scope `all-legacy` each annotation that became a field counts, in data of programs, too.
_ANY = re.compile(rb"alpha\.kubernetes\.io|pod\.beta\.kubernetes\.io")
_REPAIRING = Stages(repairs=RULES)


class Needs:
    """Answers for objects with these settings."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._words = [other_kinds.words(plan.settings)]
        self._words += [_ANY] if plan.settings.scope == "all-legacy" else []

    def __call__(self, obj: Raw) -> bool:
        """Whether its pods, or those that programs in it may make, need the webhook.

        An object without pods may give legacy names to others: a LimitRange, unless it gives 0.
        """
        templates = templates_of(obj, self._plan.settings)
        if obj.get("kind") == "LimitRange":
            return any(quantity.parse(each) != 0 for each in self._given(obj))
        return not templates or self._is_changed(obj, templates) or self._is_data(obj, templates)

    def _given(self, limit_range: Raw) -> Iterator[object]:
        """The amounts of legacy resources in a LimitRange."""
        for _, item in as_items(as_map(limit_range.get("spec")).get("limits")):
            for section in item.values():
                names = as_map(section).keys() & {*self._plan.settings.legacy_resources}
                yield from (section[name] for name in names)

    def _is_changed(self, obj: Raw, templates: Sequence[Path]) -> bool:
        """Whether rules on legacy words change its pods, in any mode but `off`.

        It depends on the nodes, which the webhook alone knows, so both answers count.
        """
        known = replace(context(obj, self._plan), in_manifest=False)
        for at in templates:
            for cx in (known, replace(known, inventory=None)):
                pod = {**copied(as_map(value_at(obj, at))), "apiVersion": "v1", "kind": "Pod"}
                made = evaluate(pod, _REPAIRING, cx, held=None) if is_for_linux(pod) else None
                if made is not None and (made.failed or any(map(_is_legacy_edit, made.findings))):
                    return True
        return False

    def _is_data(self, obj: Raw, templates: Sequence[Path]) -> bool:
        """Whether such a word is anywhere but where the rules have read it."""
        rest = copied(obj)
        _drop_notes(rest, _RECORDS | (_READ if is_built_in(obj) else set()))
        for at in templates:
            pod = as_map(value_at(rest, at))
            _drop_notes(pod, _READ | {*filter(ignored_annotations.is_ignored, annotations_of(pod))})
            _drop_fields(as_map(pod.get("spec")))
        try:
            text = orjson.dumps(rest)
        except orjson.JSONEncodeError:  # more levels than it writes
            return True
        return any(word.search(text) for word in self._words)


def _is_legacy_edit(finding: Any) -> bool:
    return finding.action == "repaired" and is_legacy(finding.code)


def _drop_notes(holder: Raw, names: set[str]) -> None:
    notes = annotations_of(holder)
    for name in names & notes.keys():
        del notes[name]


def _drop_fields(spec: Raw) -> None:
    """Take out amounts, and the host paths with their mounts and search paths.

    The labels that choose nodes stay: what becomes of them depends on the nodes.
    """
    for _, volume in as_items(spec.get("volumes")):
        volume.pop("hostPath", None)
    for kind in KINDS:
        for _, container in as_items(spec.get(kind)):
            container.pop("resources", None)
            container.pop("volumeMounts", None)
            for _, variable in as_items(container.get("env")):
                if variable.get("name") in driver_paths.SEARCH_PATHS:
                    variable.pop("value", None)
