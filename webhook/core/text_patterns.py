"""What is legacy in a text that is no manifest: programs, scripts, notes, templates.

Named patterns, each with the code of the rule whose manual tells more. `find` gives what is there,
in order and without overlaps; nothing is ever edited by it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from webhook.core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of legacy text: what to look for, what it means, and what to write instead.

    In `text`, {resource} and {label} stand for the legacy names of the settings, as alternatives;
    in `cure`, {gpu} and {product} stand for today's.
    """

    name: str
    code: str
    text: str
    message: str
    cure: str


@dataclass(frozen=True, slots=True)
class Match:
    """Where a pattern is in a text: offsets into it, the end exclusive."""

    pattern: Pattern
    start: int
    end: int
    found: str
    cure: str

    @property
    def code(self) -> str:
        return self.pattern.code

    @property
    def message(self) -> str:
        """One line: what was found, what it means, and the cure."""
        found = " ".join(self.found.split())
        return f"{found[:_SHOWN]}: {self.pattern.message}; {self.cure}"


_SHOWN = 60  # characters of what was found

# Where a name ends: another one may begin with it (nvidia-gpu, nvidia-gpu-name).
_END = r"(?![-\w]|\.\w)"
_IS_SET = r"['\"]?\s{0,8}[=:]\s{0,8}['\"]?(?i:true|false)\b"  # in any language
_LINE = r"[^\n]{0,300}?"
_NO_LABEL = "no kubelet of today may set it, and GPU Feature Discovery labels nodes by itself"
_NO_EFFECT = "the annotation has had no effect since"
_PLUGIN = "install the current chart of the device plugin, or the GPU operator"

# What says more about a place comes before what says less; of two that begin at the same place,
# the first counts.
PATTERNS: tuple[Pattern, ...] = (
    # nodes
    Pattern(
        "kubectl-label",
        "GPU129",
        rf"kubectl\s+label\b{_LINE}(?:{{label}}){_END}",
        "the node label of 1.3-1.10",
        "select nodes by {product}: GFD writes it",
    ),
    Pattern(
        "node-labels-flag",
        "GPU129",
        rf"--node-labels\b{_LINE}(?:{{label}}){_END}",
        _NO_LABEL,
        "leave it out and select nodes by {product}",
    ),
    Pattern(
        "taints-annotation",
        "GPU129",
        rf"scheduler\.alpha\.kubernetes\.io/taints{_END}",
        f"{_NO_EFFECT} 1.6",
        "write spec.taints of the node (kubectl taint)",
    ),
    # quotas
    Pattern(
        "quota-name",
        "GPU128",
        rf"(?<![\w.])(?:requests|limits)\.(?:{{resource}}){_END}",
        "no quota counts it",
        "write requests.{gpu}",
    ),
    # names
    Pattern(
        "model-label",
        "GPU105",
        rf"(?:{{label}}){_END}",
        "no node of today has this label",
        "write {product}",
    ),
    Pattern(
        "resource-name",
        "GPU101",
        rf"(?:{{resource}}){_END}",
        "no node of today offers this resource",
        "write {gpu}, as request and limit alike",
    ),
    Pattern(
        "opaque-resource",
        "GPU132",
        r"pod\.alpha\.kubernetes\.io[/~]1?opaque-int-resource-\w*",
        "opaque integer resources are gone since 1.9",
        "write an extended resource",
    ),
    Pattern(
        "go-resource-name",
        "GPU101",
        r"\bResourceNvidiaGPU\b|\.NvidiaGPU\(\)",
        "gone from k8s.io/api since 1.11",
        'use v1.ResourceName("{gpu}")',
    ),
    # annotations
    Pattern(
        "affinity-annotation",
        "GPU106",
        rf"scheduler\.alpha\.kubernetes\.io/affinity{_END}|\bAffinityAnnotationKey\b",
        f"{_NO_EFFECT} 1.8",
        "write spec.affinity",
    ),
    Pattern(
        "tolerations-annotation",
        "GPU107",
        rf"scheduler\.alpha\.kubernetes\.io/tolerations{_END}|\bTolerationsAnnotationKey\b",
        f"{_NO_EFFECT} 1.6",
        "write spec.tolerations",
    ),
    Pattern(
        "critical-pod",
        "GPU127",
        rf"scheduler\.alpha\.kubernetes\.io/critical-pod{_END}",
        f"{_NO_EFFECT} 1.16",
        "write priorityClassName: system-cluster-critical",
    ),
    Pattern(
        "scheduler-name",
        "GPU108",
        rf"scheduler\.alpha\.kubernetes\.io/name{_END}",
        f"{_NO_EFFECT} 1.6",
        "write spec.schedulerName",
    ),
    Pattern(
        "gpu-hint",
        "GPU108",
        rf"scheduler\.alpha\.kubernetes\.io/nvidiaGPU{_END}",
        "no scheduler of today reads it",
        "leave it out",
    ),
    Pattern(
        "init-containers-annotation",
        "GPU124",
        r"pod\.(?:alpha|beta)\.kubernetes\.io/init-container(?:s|-statuses)"
        + _END
        + r"|\bPodInitContainers(?:Beta)?AnnotationKey\b",
        "dropped by the API server since 1.8",
        "write spec.initContainers",
    ),
    Pattern(
        "sysctl-annotation",
        "GPU108",
        rf"security\.alpha\.kubernetes\.io/(?:unsafe-)?sysctls{_END}",
        f"{_NO_EFFECT} 1.11",
        "write securityContext.sysctls",
    ),
    # kubelets
    Pattern(
        "gpu-flag",
        "GPU131",
        r"(?:--)?\bexperimental-nvidia-gpus?\b(?:=\d+)?",
        "a kubelet of 1.6 or later does not start with it",
        "delete it, and " + _PLUGIN,
    ),
    Pattern(
        "accelerators-gate",
        "GPU131",
        rf"\bAccelerators{_IS_SET}",
        "a kubelet of 1.11 or later does not start with this gate",
        "delete it, and " + _PLUGIN,
    ),
    Pattern(
        "device-plugins-gate",
        "GPU131",
        rf"\bDevicePlugins{_IS_SET}",
        "a kubelet of 1.28 or later does not start with this gate",
        "delete it: it is always on",
    ),
    # what installs drivers and device plugins
    Pattern(
        "device-plugin-manifest",
        "GPU130",
        r"\bk8s-device-plugin[/:]v?1\.(?:8|9|1[0-2]|0\.0-)[\w.-]{0,40}(?:/[\w.-]{1,80}\.ya?ml)?",
        "a device plugin for Kubernetes 1.8-1.12",
        _PLUGIN,
    ),
    Pattern(
        "driver-installer",
        "GPU130",
        # Those of the main branch that begin with daemonset-preloaded are today's.
        r"\bcontainer-engine-accelerators/"
        r"(?!(?:[\w-]+/){0,3}(?:master|main)/nvidia-driver-installer/[\w/-]{1,60}daemonset-preloaded)"
        r"(?![\w./-]{1,80}daemonset-preloaded-latest)[\w./-]{1,60}?"
        r"(?:nvidia-driver-installer[\w./-]{0,80}|device-plugin-daemonset\.ya?ml)",
        "GKE's old installer",
        "GKE installs the driver and the device plugin by itself",
    ),
    Pattern(
        "driver-path",
        "GPU109",
        r"/usr/lib\w*/nvidia-(?:[0-9]{3}\b|\{\{)[\w./-]*|/var/lib/nvidia-docker/volumes/nvidia_driver[\w./-]*",
        "the driver of an old node",
        "leave it out: the container toolkit brings the driver",
    ),
    # API versions
    Pattern(
        "dead-api-version",
        "GPU120",
        r"\b(?:extensions/v1beta1|apps/v1beta[12]|apps/v1alpha1)\b",
        "no API server of 1.22 or later knows it",
        "write apps/v1 (a Job: batch/v1, an Ingress or NetworkPolicy: networking.k8s.io/v1)",
    ),
    Pattern(
        "dead-batch-version",
        "GPU120",
        r"\bbatch/(?:v2alpha1|v1beta1)\b",
        "no API server of 1.25 or later knows it",
        "write batch/v1",
    ),
    Pattern(
        "removed-api",
        "GPU123",
        r"\b(?:rbac\.authorization|apiextensions|settings)\.k8s\.io/v1(?:alpha|beta)1\b"
        r"|\bpolicy/v1beta1\b|\bresource\.k8s\.io/v1alpha[12]\b",
        "no API server of 1.25 or later knows it",
        "write v1 of the same group",
    ),
)


def find(
    text: str, settings: Settings | None = None, names: Collection[str] | None = None
) -> Iterator[Match]:
    """What is legacy in the text; with `names`, by these patterns only."""
    given = settings or Settings()
    today = {"gpu": given.gpu_resource, "product": given.models.key}
    wanted = None if names is None else frozenset(names)
    # One by one: a literal beginning is searched for ten times faster than many alternatives are.
    everything = [
        (found.start(), rank, found, pattern)
        for rank, (pattern, compiled) in enumerate(
            _compiled(wanted, given.legacy_resources, given.models.legacy_label)
        )
        for found in compiled.finditer(text)
    ]
    end = 0
    for start, _, found, pattern in sorted(everything, key=lambda each: each[:2]):
        if start >= end:
            end = found.end()
            yield Match(pattern, start, end, found.group(), pattern.cure.format(**today))


@lru_cache(maxsize=32)
def _compiled(
    wanted: frozenset[str] | None, resources: tuple[str, ...], label: str
) -> tuple[tuple[Pattern, re.Pattern[str]], ...]:
    """Each pattern that is wanted, in the order of the table, and ready to search."""
    names = {
        "resource": "|".join(_in_any_quoting(each) for each in resources),
        "label": _in_any_quoting(label),
    }
    return tuple(
        (each, re.compile(_filled(each.text, names)))
        for each in PATTERNS
        if wanted is None or each.name in wanted
    )


def _filled(text: str, names: dict[str, str]) -> str:
    for name, alternatives in names.items():
        text = text.replace(f"{{{name}}}", alternatives)
    return text


def _in_any_quoting(name: str) -> str:
    r"""The name as itself, with `\.` as jsonpath wants it, and with `~1` as JSON Pointer does."""
    return re.escape(name).replace(r"\.", r"\\{0,2}\.").replace("/", "(?:/|~1)")
