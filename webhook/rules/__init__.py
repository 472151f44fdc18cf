"""The rules, in the order in which they act on a pod: repairs, then policy, and the guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rules import (
    above_limit,
    affinity_annotation,
    daemonset_template,
    dead_annotations,
    driver_paths,
    driver_profile,
    fractional_amount,
    full_now,
    leak_guard,
    legacy_resource,
    missing_toleration,
    model_label,
    never_fits,
    placement,
    queued_template,
    request_without_limit,
    tolerations_annotation,
    unequal_amounts,
    workload_too_large,
)

if TYPE_CHECKING:
    from webhook.core.rule import Rule

RULES: tuple[Rule, ...] = (
    queued_template,  # first: it looks at the template as the queue will see it
    legacy_resource,  # before the others, which look for the name of today
    unequal_amounts,  # before rounding: it copies the limit as it is written
    fractional_amount,  # before the limit is copied, so that the copy is whole
    request_without_limit,
    model_label,  # before the annotation, which is joined to spec.affinity in the words of today
    affinity_annotation,
    tolerations_annotation,  # before the missing toleration, which may be among them
    dead_annotations,
    driver_paths,  # before the profile, which may mount at the places that it frees
    driver_profile,
    missing_toleration,
    placement,  # after all that names a node
    daemonset_template,
)

# Asked of the repaired pod by /validate and `review`.
POLICY: tuple[Rule, ...] = (
    above_limit,  # first: what the settings forbid, whatever the cluster has
    never_fits,
    full_now,
    workload_too_large,
)

# Asked of every pod where the guard is registered: containers that asked for no GPU.
GUARD: tuple[Rule, ...] = (leak_guard,)

ALL: tuple[Rule, ...] = (*RULES, *POLICY, *GUARD)

# Codes that are no longer given, with the one that took over; a code is never used again.
RETIRED: dict[str, str] = {}
