"""Finds other alpha and beta annotations that Kubernetes no longer reads.

Why: each of them became a field of the pod long ago. The API server warns about some and drops or
ignores the others.

Does: on a pod that can never run as it is, writes the fields that neither weaken the pod nor cause
its refusal (safe sysctls, RuntimeDefault seccomp, hostname, subdomain, and the scheduler if the
settings list it) unless they are set. It removes those annotations, IBM's `nvidiaGPU` hint and
`pod.alpha.kubernetes.io/initialized`, which could stop a StatefulSet before 1.8. It only reports
`critical-pod` (the Priority plugin refuses a class that is added later), unsafe sysctls, unconfined
and local seccomp profiles, and init containers, which the API server drops before a webhook sees
the pod. On a pod that can run, the webhook only reports them.

Safety: safe.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.core.edits import Edit, Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.core.text_patterns import END, NO_EFFECT, Pattern
from webhook.kube import labels
from webhook.kube.pod import Pod, as_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.kube.pointer import Path

    _Reader = Callable[[Pod, Context, str, str], "_Reading"]

NAME = "ignored-annotations"
CODE = "GPU108"
FACTS = Facts(
    Stage.REPAIR,
    Trait.ANNOTATION | Trait.LEGACY_PODS | Trait.TEXT,
    words=("alpha.kubernetes.io", "pod.beta.kubernetes.io"),
    patterns=(
        Pattern(
            "scheduler-name",
            rf"scheduler\.alpha\.kubernetes\.io/name{END}",
            f"{NO_EFFECT} 1.6",
            "write spec.schedulerName",
        ),
        Pattern(
            "gpu-hint",
            rf"scheduler\.alpha\.kubernetes\.io/nvidiaGPU{END}",
            "current schedulers do not read it",
            "leave it out",
            idle=True,
        ),
        Pattern(
            "sysctl-annotation",
            rf"security\.alpha\.kubernetes\.io/(?:unsafe-)?sysctls{END}",
            f"{NO_EFFECT} 1.11",
            "write securityContext.sysctls",
        ),
    ),
)
# Further annotations that become fields, which are looked for in manifests alone.
IN_MANIFESTS = re.compile(
    r"pod\.beta\.kubernetes\.io/(?:hostname|subdomain)\b|seccomp\.security\.alpha\.kubernetes\.io/"
)

_DEFAULT = "default-scheduler"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_RUNTIME_DEFAULT = ("runtime/default", "docker/default")
# What the kubelet allows without --allowed-unsafe-sysctls (pkg/kubelet/sysctl/safe_sysctls.go),
# all of them also allowed by the Pod Security level `baseline`.
_SAFE_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What an annotation comes to: edits that take it over, or None if it needs manual changes."""

    advice: str
    edits: tuple[Edit, ...] | None


_NOTHING = _Reading("it is null; delete the line", ())  # a chart that erases an old value
_INIT_CONTAINERS = _Reading("the API server drops it; write spec.initContainers", None)
_STATUSES = _Reading("delete it", ())
_UNSAFE_SYSCTLS = _Reading("write securityContext.sysctls if the kubelets allow them", None)


def is_ignored(key: str) -> bool:
    """Whether this annotation is one of those."""
    return _reader(key) is not None


def becomes_field(key: str) -> bool:
    """Whether what this annotation says may be taken over by a field."""
    return callable(_reader(key))


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    for key, value in pod.annotations.items():
        reading = _reader(key)
        if reading is None or (cx.in_manifest and reading is _INIT_CONTAINERS):
            continue  # init-containers-annotation has taken it over, or has said why not
        at = pod.annotation_at(key)
        if value is None:
            reading = _NOTHING
        elif callable(reading):
            reading = reading(pod, cx, key, str(value))
        message = f"the annotation {key} has no effect today"
        if reading.edits is None or not cx.may_constrain:
            message += f" and is left: {reading.advice}"
            yield Finding(CODE, at, message, severity=Severity.MANUAL)
        else:
            message += f" and is {'taken over' if reading.edits else 'removed'}: {reading.advice}"
            yield Finding(CODE, at, message, (*reading.edits, Remove(at)))


def _reader(key: str) -> _Reader | _Reading | None:
    return _READERS.get(key) or (_container_seccomp if key.startswith(_SECCOMP) else None)


def _field(at: Path, holder: Any, value: Any, field: str) -> _Reading:
    """Set the field at `at`, unless it says something already: a field wins over an annotation."""
    if as_map(holder).get(str(at[-1])) in (None, ""):
        return _Reading(f"write {field}", (Set(at, value),))
    return _Reading(f"{at[-1]} is set and wins; delete the annotation", ())


def _scheduler(pod: Pod, cx: Context, key: str, value: str) -> _Reading:  # noqa: ARG001
    if not labels.is_subdomain(value):
        return _Reading("it is no legal schedulerName; delete it", None)
    if value == _DEFAULT:
        return _Reading("it is the default; delete it", ())
    if value not in cx.settings.annotation_schedulers:
        return _Reading(f"write schedulerName: {value[:60]} if that scheduler runs here", None)
    # SetDefaults_PodSpec has already put the default there, so that is not the author's word.
    spec = {} if pod.spec.get("schedulerName") == _DEFAULT else pod.spec
    return _field(pod.spec_at / "schedulerName", spec, value, f"schedulerName: {value[:60]}")


def _sysctls(pod: Pod, cx: Context, key: str, value: str) -> _Reading:  # noqa: ARG001
    items = value.split(",")
    if any(item.count("=") != 1 for item in items):  # as SysctlsFromPodAnnotation had it
        return _Reading("it is not of the form a=b,c=d; write securityContext.sysctls", None)
    wanted = dict(item.split("=") for item in items)
    host = pod.spec.get("hostNetwork") or pod.spec.get("hostIPC")
    # The API server refuses a name that stands twice, and most of them beside a host namespace.
    if host or len(wanted) < len(items) or not wanted.keys() <= {*_SAFE_SYSCTLS}:
        return _UNSAFE_SYSCTLS
    at = pod.spec_at / "securityContext" / "sysctls"
    sysctls = [{"name": name, "value": text} for name, text in wanted.items()]
    return _field(at, pod.spec.get("securityContext"), sysctls, "securityContext.sysctls")


def _pod_seccomp(pod: Pod, cx: Context, key: str, value: str) -> _Reading:  # noqa: ARG001
    return _seccomp(pod.spec, pod.spec_at, value)


def _container_seccomp(pod: Pod, cx: Context, key: str, value: str) -> _Reading:  # noqa: ARG001
    container = pod.container(key.removeprefix(_SECCOMP))
    if container is None:
        return _Reading("it names no container; delete it", None)
    return _seccomp(container.raw, container.at, value)


def _seccomp(raw: Mapping[str, Any], at: Path, value: str) -> _Reading:
    if value not in _RUNTIME_DEFAULT:
        return _Reading("write securityContext.seccompProfile", None)
    field = "securityContext.seccompProfile: {type: RuntimeDefault}"
    place = at / "securityContext" / "seccompProfile"
    return _field(place, raw.get("securityContext"), {"type": "RuntimeDefault"}, field)


def _host_name(pod: Pod, cx: Context, key: str, value: str) -> _Reading:  # noqa: ARG001
    field = key.rpartition("/")[2]
    if not labels.is_dns_label(value):
        return _Reading(f"it is no legal {field}; delete it", None)
    return _field(pod.spec_at / field, pod.spec, value, f"{field}: {value}")


# A function reads what a field can take over.
_READERS: dict[str, _Reader | _Reading] = {
    "scheduler.alpha.kubernetes.io/name": _scheduler,
    "scheduler.alpha.kubernetes.io/critical-pod": _Reading(
        "write priorityClassName (in kube-system: system-cluster-critical)", None
    ),
    "scheduler.alpha.kubernetes.io/nvidiaGPU": _Reading(
        "nothing replaces this hint; delete it", ()
    ),
    "pod.alpha.kubernetes.io/init-containers": _INIT_CONTAINERS,
    "pod.beta.kubernetes.io/init-containers": _INIT_CONTAINERS,
    "pod.alpha.kubernetes.io/init-container-statuses": _STATUSES,
    "pod.beta.kubernetes.io/init-container-statuses": _STATUSES,
    "pod.alpha.kubernetes.io/initialized": _Reading(
        "no StatefulSet has waited for it since 1.8; delete it", ()
    ),
    "security.alpha.kubernetes.io/sysctls": _sysctls,
    "security.alpha.kubernetes.io/unsafe-sysctls": _UNSAFE_SYSCTLS,
    "seccomp.security.alpha.kubernetes.io/pod": _pod_seccomp,
    "pod.beta.kubernetes.io/hostname": _host_name,
    "pod.beta.kubernetes.io/subdomain": _host_name,
}
