"""Mutating policies of the real API server, there for as long as a test runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.cluster.build import RELEASE, minor
from tests.cluster.client import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

GROUP = "admissionregistration.k8s.io/v1"


def inside(namespace: str, rule: Json) -> Json:
    """Constraints: what this rule names, in this namespace alone."""
    return {
        "resourceRules": [{"apiVersions": ["v1"], **rule}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }


@contextmanager
def mutating(
    cluster: ControlPlane,
    name: str,
    constraints: Json,
    expression: str,
    is_in_force: Callable[[], bool],
    *,
    again: str = "Never",
) -> Iterator[None]:
    """Have what fits these constraints changed as the expression says; `again` in later rounds."""
    if minor(RELEASE) < 36:  # KEP-3962: v1 is served since then
        pytest.skip(f"Kubernetes {RELEASE} serves no MutatingAdmissionPolicy of v1 (1.36)")
    policy = {
        "apiVersion": GROUP,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": constraints,
            "reinvocationPolicy": again,
            "failurePolicy": "Fail",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    }
    binding = {
        "apiVersion": GROUP,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    cluster.client.create(policy)
    cluster.client.create(binding)
    try:
        until(is_in_force, "the policy")
        yield
    finally:
        cluster.client.delete("MutatingAdmissionPolicyBinding", name)
        cluster.client.delete("MutatingAdmissionPolicy", name)
        until(lambda: not is_in_force(), "its end")
