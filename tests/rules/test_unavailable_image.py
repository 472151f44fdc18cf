from __future__ import annotations

from typing import Any

import pytest

from tests.rules.objects import UNSAFE, found
from tests.rules.pods import FIRST, LEGACY, container, pod
from webhook.core.edits import Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.rules import unavailable_image as rule


def using(image: Any) -> Any:
    return pod({**container({LEGACY: 1}), "image": image})


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("registry.k8s.io/cuda-vector-add:v0.1", id="today's registry: untouched"),
        pytest.param("nvidia/cuda:12.6.3-base-ubuntu24.04", id="a tag of today: untouched"),
        pytest.param("nvidia/cuda:11.8.0-base-ubuntu22.04", id="CUDA 11: untouched"),
        pytest.param("registry.example/nvidia/cuda:8.0", id="a mirror: untouched"),
        pytest.param("nvidia/cudagl", id="another image: untouched"),
        pytest.param("gcr.io/tensorflow/tensorflow:1.0.1-gpu", id="another publisher: untouched"),
        pytest.param(
            "k8s.gcr.io/nvidia-gpu-device-plugin@sha256:0842", id="device-plugin-manifest's"
        ),
        pytest.param("nvidia/cuda:" + "8.0" * 300, id="too long for an image"),
        pytest.param(None, id="no image"),
    ],
)
def test_what_is_left_alone(image: Any) -> None:
    assert found(rule, using(image), UNSAFE) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("k8s.gcr.io/cuda-vector-add:v0.1", "registry.k8s.io/cuda-vector-add:v0.1"),
        ("gcr.io/google_containers/pause:2.0", "registry.k8s.io/pause:2.0"),
        ("gcr.io/google-containers/pause:2.0", "registry.k8s.io/pause:2.0"),
    ],
)
def test_another_registry_on_request(old: str, new: str) -> None:
    obj = using(old)
    message = f"the registry of {old} is frozen: write {new}"
    at = FIRST / "image"
    unasked = Finding(
        rule.CODE, at, message, (Set(at, new),), severity=Severity.NOTICE, safety=Safety.UNSAFE
    )
    assert found(rule, obj) == [unasked]
    assert obj == using(old)
    assert [each.action for each in found(rule, obj, UNSAFE)] == ["repaired"]
    assert obj == using(new)


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("nvidia/cuda", id="no tag is latest"),
        pytest.param("nvidia/cuda:latest", id="latest"),
        pytest.param("nvidia/cuda:runtime", id="as good as latest"),
        pytest.param("docker.io/nvidia/cuda:8.0-cudnn5-runtime", id="CUDA 8"),
        pytest.param("nvidia/cuda:10.2-base", id="CUDA 10"),
        pytest.param("nvidia/cuda:7.5@sha256:0842", id="with its digest"),
    ],
)
def test_it_is_told(image: str) -> None:
    message = f"{image} was deleted by its publisher: name a tag of nvidia/cuda that is there"
    assert found(rule, using(image), UNSAFE) == [
        Finding(rule.CODE, FIRST / "image", message, severity=Severity.NOTICE)
    ]
