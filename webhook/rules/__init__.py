"""The rules, in the order in which they act: on manifests, on pods, then policy, and the guard.

Other rooms use: above_limit, affinity_annotation, changed_default, daemonset_template,
driver_paths, driver_profile, ignored_annotations, leak_guard, legacy_name_elsewhere,
legacy_resource, missing_selector, missing_toleration, model_label, never_fits, placement,
quota_names, removed_kubelet_flag, removed_workload_api, request_without_limit,
tolerations_annotation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.core.rule import ObjectRule, Rule, Stage, Trait
from webhook.rules import (
    above_limit,
    affinity_annotation,
    changed_default,
    controller_annotation,
    critical_pod,
    daemonset_template,
    device_plugin_manifest,
    driver_paths,
    driver_profile,
    fractional_amount,
    full_now,
    ignored_annotations,
    init_containers_annotation,
    kind_case,
    leak_guard,
    legacy_name_elsewhere,
    legacy_resource,
    missing_selector,
    missing_toleration,
    model_label,
    never_fits,
    node_objects,
    placement,
    privileged_container,
    queued_template,
    quota_names,
    removed_api,
    removed_kubelet_flag,
    removed_workload_api,
    request_without_limit,
    tolerations_annotation,
    unavailable_image,
    unequal_amounts,
    unfinished_object,
    workload_too_large,
)

if TYPE_CHECKING:
    from webhook.core.text_patterns import Pattern

ALL: tuple[ObjectRule | Rule, ...] = (
    # on manifests, before the rules on the pods in them
    kind_case,  # first: the others go by the kind
    unfinished_object,
    init_containers_annotation,  # before all that look at containers
    controller_annotation,
    critical_pod,  # before ignored-annotations, which reports what is left of it
    changed_default,  # before the version, which says what the default was
    missing_selector,  # before the version, too: only old ones had autoSelector
    removed_workload_api,
    removed_api,
    quota_names,
    node_objects,
    device_plugin_manifest,
    removed_kubelet_flag,
    legacy_name_elsewhere,
    privileged_container,
    unavailable_image,
    # on pods
    queued_template,  # first: it looks at the template as the queue will see it
    unequal_amounts,  # before rounding: it copies an amount as it is written
    fractional_amount,  # before the limit is copied, so that the copy is whole
    legacy_resource,  # after these, which look for the legacy name, and before all others
    request_without_limit,
    model_label,  # before the annotation, which is joined to spec.affinity under current names
    affinity_annotation,
    tolerations_annotation,  # before the missing toleration, which may be among them
    ignored_annotations,
    driver_paths,  # before the profile, which may mount at the places that it frees
    missing_toleration,
    driver_profile,  # after all that decides on which nodes the pod can run
    placement,  # after all that names a node
    daemonset_template,
    # policy: on the repaired pod, by /validate and `review`
    above_limit,  # first: what the settings forbid, whatever the cluster has
    never_fits,
    full_now,
    workload_too_large,
    # on every pod where the guard is registered: containers that asked for no GPU
    leak_guard,
)


def _asked_at(stage: Stage) -> tuple[Any, ...]:
    return tuple([rule for rule in ALL if rule.FACTS.stage is stage])


MANIFEST: tuple[ObjectRule, ...] = _asked_at(Stage.MANIFEST)
RULES: tuple[Rule, ...] = _asked_at(Stage.REPAIR)
POLICY: tuple[Rule, ...] = _asked_at(Stage.POLICY)
GUARD: tuple[Rule, ...] = _asked_at(Stage.GUARD)

# What is legacy in texts that are no manifests.
PATTERNS: tuple[Pattern, ...] = tuple(
    [replace(pattern, code=rule.CODE) for rule in ALL for pattern in rule.FACTS.patterns]
)

_REPAIRS = frozenset([rule.CODE for rule in RULES])
_CODES = frozenset([rule.CODE for rule in ALL])
_LEGACY = frozenset([rule.CODE for rule in ALL if rule.FACTS.is_legacy])


def codes(trait: Trait) -> frozenset[str]:
    """The codes of the rules whose findings have this in common."""
    return frozenset([rule.CODE for rule in ALL if trait in rule.FACTS.traits])


def is_legacy(code: str) -> bool:
    """Whether a finding of this rule means that the object uses a word of Kubernetes 1.3-1.10.

    Logs, metrics and `scan --cluster` count as legacy what this says, and nothing else.
    """
    return code in _LEGACY


def is_repair(code: str) -> bool:
    """Whether this rule changes pods so that they can run, legacy or not.

    So may one that only a newer version knows, which runs in the cluster.
    """
    return code in _REPAIRS or code not in _CODES
