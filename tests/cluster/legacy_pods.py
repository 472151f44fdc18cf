"""Pods that a default rule changes: what a cluster makes of them as they are, and with us."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.cluster.build import RELEASE
from tests.cluster.pods import (
    AFFINITY,
    ALPHA,
    MODEL,
    NVIDIA,
    TOLERATIONS,
    alpha,
    container,
    expression,
    modern,
    pod,
    preferred,
    required,
)

if TYPE_CHECKING:
    from tests.cluster.client import Json

ANY_GPU = frozenset({"gpu-1080ti-1", "gpu-k80-1", "gpu-p100-1", "gpu-v100-1"})
K80 = frozenset({"gpu-k80-1"})
V100 = frozenset({"gpu-v100-1"})
NOWHERE: frozenset[str] = frozenset()

# Values of node affinity are looked at since 1.33 only; before, they match no node, silently.
_LOOKS_AT_AFFINITY = tuple(int(part) for part in RELEASE.split(".")) >= (1, 33)
_REFUSED_VALUE = "valid label" if _LOOKS_AT_AFFINITY else ""

_STALE_MOUNTS = {
    "volumeMounts": [{"name": "lib", "mountPath": "/usr/lib/nvidia"}],
    "env": [{"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia:/opt/lib"}],
}
_TOLERATED = (
    '[{{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": {}}}]'
)
_STALE_VOLUMES = [{"name": "lib", "hostPath": {"path": "/usr/lib/nvidia-375"}}]


@dataclass(frozen=True, slots=True)
class Case:
    pod: Json
    nodes: frozenset[str]  # one of them is chosen; none: the pod waits, and that is right
    without: str = ""  # how the API server refuses or warns without us; nothing: it is silent
    limits: tuple[str, ...] = ("1",)  # of nvidia.com/gpu, init containers first; "" is none


def _annotated(affinity: object) -> dict[str, str]:
    return {AFFINITY: affinity if isinstance(affinity, str) else json.dumps(affinity)}


CASES: dict[str, Case] = {
    "a legacy limit": Case(pod(alpha(1)), ANY_GPU),
    "a legacy limit and the same request": Case(
        pod(container(limits={ALPHA: 2}, requests={ALPHA: 2})), ANY_GPU, limits=("2",)
    ),
    "a legacy request alone": Case(pod(container(requests={ALPHA: 1})), ANY_GPU),
    "a legacy request below its limit": Case(
        pod(container(limits={ALPHA: 2}, requests={ALPHA: 1})), ANY_GPU, limits=("2",)
    ),
    "half a GPU": Case(pod(alpha("500m")), ANY_GPU),
    "an amount with a decimal exponent": Case(pod(alpha("2e0")), ANY_GPU, limits=("2e0",)),
    "both names with different amounts": Case(
        pod(container(limits={ALPHA: 1, NVIDIA: 2})), ANY_GPU, limits=("2",)
    ),
    "a legacy amount of zero": Case(pod(alpha(0)), ANY_GPU | {"cpu-1"}, limits=("",)),
    "a legacy limit of an init container": Case(
        pod(container(), initContainers=[alpha(1, name="init")]), ANY_GPU, limits=("1", "")
    ),
    "a legacy limit of a sidecar": Case(
        pod(container(), initContainers=[alpha(1, name="side", restartPolicy="Always")]),
        ANY_GPU,
        limits=("1", ""),
    ),
    "a legacy model in nodeSelector that is no legal label value": Case(
        pod(alpha(1), nodeSelector={MODEL: "Tesla K80"}), K80, without="valid label"
    ),
    "a legacy model in nodeSelector in its sanitised form": Case(
        pod(alpha(1), nodeSelector={MODEL: "Tesla-K80"}), K80
    ),
    "a legacy model in spec.affinity": Case(
        pod(alpha(1), affinity=required(expression(MODEL, "In", "Tesla V100"))),
        V100,
        without=_REFUSED_VALUE,
    ),
    "a preferred legacy model": Case(
        pod(alpha(1), affinity=preferred(expression(MODEL, "In", "Tesla K80"))),
        ANY_GPU,
        without=_REFUSED_VALUE,
    ),
    "a legacy model that no node has": Case(
        pod(alpha(1), nodeSelector={MODEL: "Tesla-M40"}), NOWHERE
    ),
    "an annotation whose model is joined with the spec's own affinity": Case(
        pod(
            alpha(1),
            annotations=_annotated(required(expression(MODEL, "In", "Tesla K80", "Tesla P100"))),
            affinity=required(expression("topology.kubernetes.io/zone", "In", "eu-west-1a")),
        ),
        K80,
    ),
    "an annotation that is not JSON": Case(
        pod(alpha(1), annotations=_annotated("{nodeAffinity:")), ANY_GPU
    ),
    "a tolerations annotation that is not JSON": Case(
        pod(alpha(1), annotations={TOLERATIONS: "x"}), ANY_GPU, without="invalid character"
    ),
    "a tolerations annotation with more seconds than an int64": Case(
        pod(alpha(1), annotations={TOLERATIONS: _TOLERATED.format(2**63)}),
        ANY_GPU,
        without="cannot unmarshal number 9223372036854775808",
    ),
    "a tolerations annotation with the most seconds of an int64": Case(
        pod(alpha(1), annotations={TOLERATIONS: _TOLERATED.format(2**63 - 1)}), ANY_GPU
    ),
    "an annotation with more weight than an int32": Case(
        pod(
            alpha(1),
            annotations=_annotated(preferred(expression(MODEL, "In", "Tesla K80"), weight=2**31)),
        ),
        ANY_GPU,
    ),
    "a seccomp annotation": Case(
        pod(alpha(1), annotations={"seccomp.security.alpha.kubernetes.io/pod": "runtime/default"}),
        ANY_GPU,
        without="non-functional",
    ),
    "stale driver paths": Case(pod(alpha(1, **_STALE_MOUNTS), volumes=_STALE_VOLUMES), ANY_GPU),
    "a host network": Case(pod(alpha(1), hostNetwork=True), ANY_GPU),
    "a node's name": Case(pod(alpha(1), nodeName="gpu-k80-1"), K80),
    "a modern limit without a toleration": Case(pod(modern(1)), ANY_GPU),
}
