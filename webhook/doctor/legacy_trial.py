"""The legacy pod of `doctor`: settings and a namespace in, what became of it there out.

Quotas, LimitRanges and policies may refuse a pod. So it has what policies on all pods usually ask
for, and is created again with what a refusal asks for. Nothing is stored (a dry run).
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.cluster import answers
from webhook.cluster.client import Refused, address
from webhook.cluster.controllers import of_replica_set
from webhook.cluster.made_pods import RESTRICTED, is_by_admission
from webhook.core.legacy_names import TOLERATIONS_ANNOTATION

if TYPE_CHECKING:
    from webhook.cluster.client import Client
    from webhook.core.settings import Settings

Raw = dict[str, Any]

_TRIED = "gpu-webhook-doctor"  # the legacy pod
_TRIALS = 5  # a quota names only what it limits, and each quota and LimitRange refuses alone
_SMALL = {"cpu": "1m", "memory": "8Mi", "ephemeral-storage": "1Mi"}
# Some policies want them; OpenShift refuses those that are not of the namespace.
_IDS = {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}
_LABELS = ("name", "instance", "version", "component", "part-of", "managed-by")
_MINIMUM = re.compile(r"minimum (cpu|memory|ephemeral-storage) usage per \w+ is (\w+(?:\.\w+)?)")


class Trial(NamedTuple):
    """What became of a legacy pod that was created as a dry run."""

    namespace: Raw
    pod: Raw
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    refusal: str = ""  # the answer if it was not created


def legacy_pod(settings: Settings, image: str = "example.invalid/none") -> Raw:
    """A pod that the webhook repairs, and that Pod Security and usual policies accept.

    Where no resource is legacy, it has an annotation that is.
    """
    amounts = {next(iter(settings.legacy_resources), settings.gpu_resource): "1"}
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Always",
        "resources": {"limits": amounts, "requests": amounts},
        "securityContext": RESTRICTED,
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}},
        "livenessProbe": {"tcpSocket": {"port": 8080}},
    }
    # As most pods are made: a policy may refuse those of nobody.
    metadata = of_replica_set(_TRIED)
    if not settings.legacy_resources:
        metadata["annotations"] = {TOLERATIONS_ANNOTATION: "[]"}
    named = {"app": _TRIED, **{f"app.kubernetes.io/{each}": _TRIED for each in _LABELS}}
    metadata["labels"] = named | metadata["labels"]
    secured = {name: RESTRICTED[name] for name in ("runAsNonRoot", "seccompProfile")}
    spec: Raw = {"automountServiceAccountToken": False, "securityContext": secured}
    spec["containers"] = [container]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def tried(api: Client, namespace: Raw, pod: Raw) -> Trial:
    """Create it there, and again with what quotas, LimitRanges and policies ask for."""
    path = address("api", "v1", "namespaces", namespace["metadata"]["name"], "pods")
    resources = pod["spec"]["containers"][0]["resources"]
    secured = pod["spec"]["securityContext"]
    for _ in range(_TRIALS):
        started = time.monotonic()
        try:
            text, warnings = api.dry_run(path, pod)
        except Refused as refused:
            made = Trial(namespace, {}, (), time.monotonic() - started, str(refused))
            may_want_more = is_by_admission(refused)
        else:
            return Trial(namespace, answers.read(text), tuple(warnings), time.monotonic() - started)
        amounts = {**_asked_for(made.refusal), **resources["limits"]}
        amounts |= dict(_MINIMUM.findall(made.refusal))
        if amounts == resources["limits"]:  # a maximum, or a policy in any words
            if not may_want_more or _IDS.keys() <= secured.keys():
                break
            amounts = {**_SMALL, **amounts}
            secured.update(_IDS)
        resources.update(limits=amounts, requests=amounts)
    return made


def _asked_for(refusal: str) -> dict[str, str]:
    """The amounts without which a quota refuses a pod, as small as they may be."""
    named = refusal.partition("must specify ")[2]
    return {name: amount for name, amount in _SMALL.items() if name in named}
