"""Legacy names in texts that are no manifests."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from webhook.core import text_patterns
from webhook.core.settings import Models, Settings
from webhook.rules import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.text_patterns import Match, Pattern

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
LABEL = "alpha.kubernetes.io/nvidia-gpu-name"


def find(
    text: str, settings: Settings | None = None, patterns: tuple[Pattern, ...] = PATTERNS
) -> Iterator[Match]:
    return text_patterns.find(text, patterns, settings)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        # what people type
        (f"kubectl label node gpu-1 {LABEL}=Tesla-K80", "kubectl-label"),
        (f"kubectl  label nodes --all --overwrite {LABEL}=$NAME", "kubectl-label"),
        (f"--node-labels='{LABEL}=$NVIDIA_GPU_NAME'", "node-labels-flag"),
        ("--experimental-nvidia-gpus=1", "gpu-flag"),
        ("add the experimental-nvidia-gpu tag", "gpu-flag"),
        ('"experimental-nvidia-gpus": "1"', "gpu-flag"),
        ("--feature-gates=Accelerators=true", "accelerators-gate"),
        ('"Accelerators": "True"', "accelerators-gate"),
        ("DevicePlugins: true", "device-plugins-gate"),
        # programs
        (f'const gpu = "{LEGACY}"', "resource-name"),
        (f"requests {LEGACY}.", "resource-name"),
        (r"{.status.allocatable.alpha\.kubernetes\.io/nvidia-gpu}", "resource-name"),
        (r'"{.status.capacity.alpha\\.kubernetes\\.io/nvidia-gpu}"', "resource-name"),
        ('"path": "/spec/limits/alpha.kubernetes.io~1nvidia-gpu"', "resource-name"),
        ("limits[v1.ResourceNvidiaGPU]", "go-resource-name"),
        ("limits[corev1.ResourceNvidiaGPU]", "go-resource-name"),
        ("limits[api.ResourceNvidiaGPU] = n", "go-resource-name"),
        ("limits[ResourceNvidiaGPU] = n", "go-own-resource-name"),
        ("case ResourceNvidiaGPU:", "go-own-resource-name"),
        ("if name == ResourceNvidiaGPU {", "go-own-resource-name"),
        ("limits.NvidiaGPU().Value()", "go-resource-name"),
        (f'"{LABEL}": "In"', "model-label"),
        ("pod.alpha.kubernetes.io/opaque-int-resource-gpu", "opaque-resource"),
        ("pod.alpha.kubernetes.io~1opaque-int-resource-gpu", "opaque-resource"),
        ("alpha.kubernetes.io/group-resource/gpugrp0/A/gpu/0/cards", "alpha-resource"),
        ("scheduler.alpha.kubernetes.io/affinity: {{ x }}", "affinity-annotation"),
        ("v1.AffinityAnnotationKey", "affinity-annotation"),
        ("scheduler.alpha.kubernetes.io/tolerations", "tolerations-annotation"),
        ("scheduler.alpha.kubernetes.io/taints", "taints-annotation"),
        ("scheduler.alpha.kubernetes.io/critical-pod", "critical-pod"),
        ("scheduler.alpha.kubernetes.io/name", "scheduler-name"),
        ("scheduler.alpha.kubernetes.io/nvidiaGPU", "gpu-hint"),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "sysctl-annotation"),
        ("pod.beta.kubernetes.io/init-containers", "init-containers-annotation"),
        ("pod.alpha.kubernetes.io/init-container-statuses", "init-containers-annotation"),
        ("api.PodInitContainersBetaAnnotationKey", "init-containers-annotation"),
        (f"hard: {{requests.{LEGACY}: 4}}", "quota-name"),
        (f"limits.{LEGACY}: $N", "quota-name"),
        ("image: nvidia/k8s-device-plugin:1.9", "device-plugin-manifest"),
        ("NVIDIA/k8s-device-plugin/v1.11/nvidia-device-plugin.yml", "device-plugin-manifest"),
        (
            "container-engine-accelerators/k8s-1.9/nvidia-driver-installer/ubuntu/daemonset.yaml",
            "driver-installer",
        ),
        (
            "GoogleCloudPlatform/container-engine-accelerators/x/device-plugin-daemonset.yaml",
            "driver-installer",
        ),
        ("/usr/lib/nvidia-375/bin", "driver-path"),
        ("/var/lib/nvidia-docker/volumes/nvidia_driver/387.26", "driver-path"),
        ("apiVersion: extensions/v1beta1", "removed-workload-api"),
        ('import "k8s.io/api/apps/v1beta2"', "removed-workload-api"),
        ("batch/v2alpha1", "removed-batch-version"),
        ("rbac.authorization.k8s.io/v1beta1", "removed-api"),
        ("policy/v1beta1", "removed-api"),
    ],
)
def test_one_match(text: str, name: str) -> None:
    [match] = find(text)
    assert match.pattern.name == name
    assert text[match.start : match.end] == match.found


@pytest.mark.parametrize(
    "text",
    [
        "nvidia.com/gpu: 1",
        'const ResourceNvidiaGPU = "nvidia.com/gpu"\nx[ResourceNvidiaGPU] = n',
        'ResourceNvidiaGPU v1.ResourceName = "nvidia.com/gpu"\nx[ResourceNvidiaGPU]',
        'var A, ResourceNvidiaGPU = "a", gpuName\nreturn ResourceNvidiaGPU',
        "gpu.ResourceNvidiaGPU",
        "flytek8s.ResourceNvidiaGPU",
        "alpha.kubernetes.io/nvidia-gpus",
        "myalpha.kubernetes.io/nvidia",
        "scheduler.alpha.kubernetes.io/affinity-v2",
        "scheduler.alpha.kubernetes.io/node-selector",
        "Accelerators are fast",
        "container-engine-accelerators/master/nvidia-driver-installer/cos/daemonset-preloaded.yaml",
        "container-engine-accelerators/blob/main/nvidia-driver-installer/cos/daemonset-preloaded.yaml",
        "container-engine-accelerators/x/nvidia-driver-installer/cos/daemonset-preloaded-latest.yaml",
        "nvcr.io/nvidia/k8s-device-plugin:v0.17.0",
        "/usr/local/nvidia",
        "apiVersion: apps/v1",
        "networking.k8s.io/v1",
        "kubectl label node a nvidia.com/gpu.present=true",
    ],
)
def test_no_match(text: str) -> None:
    assert list(find(text)) == []


def test_every_pattern_is_shown_above() -> None:
    marks = test_one_match.pytestmark  # type: ignore[attr-defined]  # pytest puts it there
    shown = {row[1] for mark in marks for row in mark.args[1]}
    assert shown == {each.name for each in PATTERNS}


def test_names_are_given_once() -> None:
    assert len({each.name for each in PATTERNS}) == len(PATTERNS)


def test_matches_come_in_order_and_never_overlap() -> None:
    text = f"kubectl label node a {LABEL}=b\n{LEGACY} and {LABEL}\n"
    matches = list(find(text))
    assert [each.pattern.name for each in matches] == [
        *("kubectl-label", "resource-name", "model-label"),
    ]
    assert all(a.end <= b.start for a, b in pairwise(matches))


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["a line end", "that of Windows"])
def test_each_line_with_a_word_is_searched_once(end: str) -> None:
    old = "extensions/v1beta1"
    text = end.join((f"{old} and {old}, {old}x", "x", f"a: {old}", "", "apps/v1beta1"))
    starts = [text.index(old), text.index(f"{old},"), text.rindex(old), text.index("apps")]
    assert [each.start for each in find(text)] == starts


def test_only_some_patterns() -> None:
    text = f"{LEGACY} DevicePlugins=true"
    only = tuple(each for each in PATTERNS if each.name == "device-plugins-gate")
    assert [each.code for each in find(text, None, only)] == ["GPU131"]


def test_a_message_is_one_line_with_its_cure() -> None:
    [match] = find("DevicePlugins:\n  true")
    assert match.message == (
        "DevicePlugins: true: a kubelet of 1.28 or later does not start with this gate; delete it: "
        "it is always on"
    )
    assert match.code == "GPU131"


@pytest.mark.parametrize("each", PATTERNS, ids=[each.name for each in PATTERNS])
def test_the_longest_message_fits_a_warning(each: Pattern) -> None:
    advice = each.advice.format(gpu="nvidia.com/gpu", product="nvidia.com/gpu.product")
    assert len(f"GPU100: {'x' * 60}: {each.message}; {advice}") <= 256


def test_names_of_the_settings() -> None:
    settings = Settings(
        legacy_resources=("old.example/gpu", "older.example/gpu"),
        gpu_resource="new.example/gpu",
        models=Models(legacy_label="old.example/model", label="new.example/model"),
    )
    found = list(find(f"old.example/model older.example/gpu {LEGACY}", settings))
    assert [(each.found, each.advice) for each in found] == [
        ("old.example/model", "write new.example/model"),
        ("older.example/gpu", "write new.example/gpu if this names the resource"),
    ]


@pytest.mark.large
@pytest.mark.timeout(60)  # what is tried in too many ways never ends
@pytest.mark.parametrize(
    "part",
    [
        pytest.param("kubectl label ", id="a command without its end"),
        pytest.param("--node-labels=a,", id="a flag without its end"),
        pytest.param("Accelerators        ", id="a word and blanks"),
        pytest.param("/usr/lib/nvidia-", id="half a path"),
        pytest.param("container-engine-accelerators/", id="half an address"),
    ],
)
def test_long_texts_take_time_in_proportion(part: str) -> None:
    """A megabyte that almost matches, a thousand times over."""
    text = part * (1_000_000 // len(part))
    assert list(find(text)) == []


def test_no_pattern_could_be_empty() -> None:
    assert not any(re.search(each.text.replace("{", "").replace("}", ""), "") for each in PATTERNS)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(
            f'ResourceNvidiaGPU ResourceName = "{LEGACY}"\nlimits[ResourceNvidiaGPU]',
            ["go-own-resource-name", "resource-name", "go-own-resource-name"],
            id="a file that defines it as the legacy name",
        ),
        pytest.param(
            'const ResourceNvidiaGPU = "nvidia.com/gpu"\nold := v1.ResourceNvidiaGPU',
            ["go-resource-name"],
            id="a file that has both",
        ),
    ],
)
def test_a_constant_of_a_go_program_is_what_its_file_defines(text: str, names: list[str]) -> None:
    assert [each.pattern.name for each in find(text)] == names
