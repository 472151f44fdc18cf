"""Finds kinds and API versions that are written in the wrong case.

Why: guides and notes contain `kind: pod` or `apiVersion: V1`. No API server has ever accepted these
("no matches for kind"), and the other rules would ignore the object.

Does: writes the kind and the version as Kubernetes spells them, for all built-in kinds in any
version. Custom kinds are not changed.

Safety: safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.kube.api_versions import OTHERS, WORKLOADS
from webhook.kube.pointer import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "kind-case"
CODE = "GPU125"
FACTS = Facts(Stage.MANIFEST, Trait.OBJECT | Trait.TIMELESS | Trait.VERSION)

_CORE = (
    "ConfigMap Endpoints LimitRange List Namespace Node PersistentVolume PersistentVolumeClaim Pod "
    "PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount"
)
_KNOWN: tuple[tuple[str, str], ...] = (
    *[("v1", kind) for kind in _CORE.split()],
    *OTHERS,
    *WORKLOADS,
    *[
        (each.api_version, each.kind)
        for each in (*OTHERS.values(), *WORKLOADS.values())
        if each.api_version
    ],
    ("autoscaling/v1", "HorizontalPodAutoscaler"),
)
_SPELLED = {(version.lower(), kind.lower()): (version, kind) for version, kind in _KNOWN}


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:  # noqa: ARG001
    said = (str(obj.get("apiVersion")), str(obj.get("kind")))
    version, kind = _SPELLED.get((said[0].lower(), said[1].lower()), said)
    for name, was, right in (("apiVersion", said[0], version), ("kind", said[1], kind)):
        if was != right:
            at = ROOT / name
            message = f"no API server knows {name} {was} in this spelling: write {right}"
            yield Finding(CODE, at, message, (Set(at, right),))
