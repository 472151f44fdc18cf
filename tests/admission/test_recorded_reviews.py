"""530 pods as a kube-apiserver with its usual plugins and controllers sends them (bench.record)."""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from jsonpatch import JsonPatch

from bench.generator import REVIEWS
from webhook.admission.decide import Decider
from webhook.admission.review import parse
from webhook.core.settings import Settings
from webhook.rules import RULES
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    from collections.abc import Iterator

LEGACY, MODERN = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
BODIES = gzip.decompress(REVIEWS.read_bytes()).splitlines()


@pytest.fixture(scope="module")
def decider() -> Iterator[Decider]:
    fd = os.open(os.devnull, os.O_WRONLY)
    log = Log(fd)
    yield Decider(RULES, Settings(), None, log)
    log.close()
    os.close(fd)


def amounts(pod: Any) -> Iterator[str]:
    for section in ("initContainers", "containers"):
        for container in pod["spec"].get(section, []):
            for of in container.get("resources", {}).values():
                yield from of


def test_they_are_what_a_real_api_server_sends() -> None:
    """The ServiceAccount plugin has been there, and most of them have siblings."""
    pods = [json.loads(body)["request"]["object"] for body in BODIES]
    owners = Counter(
        each["metadata"].get("ownerReferences", [{"kind": "nobody"}])[0]["kind"] for each in pods
    )

    assert owners == {
        "ReplicaSet": 135,
        "Job": 135,  # 15 of them of a CronJob
        "StatefulSet": 45,
        "DaemonSet": 15,
        "nobody": 200,
    }
    for pod in pods:
        assert pod["metadata"]["managedFields"]
        assert any(each["name"].startswith("kube-api-access-") for each in pod["spec"]["volumes"])


@pytest.mark.parametrize("legacy", [True, False], ids=["legacy", "of today"])
def test_each_gets_its_answer(decider: Decider, *, legacy: bool) -> None:
    bodies = [body for body in BODIES if (LEGACY.encode() in body) is legacy]
    assert len(bodies) == (395 if legacy else 135)
    for body in bodies:
        response = json.loads(decider.answer("/mutate", parse(body)))["response"]
        pod = json.loads(body)["request"]["object"]

        assert response["allowed"] is True
        if legacy:
            pod = JsonPatch(json.loads(base64.b64decode(response["patch"]))).apply(pod)
        else:
            assert "patch" not in response
        assert MODERN in set(amounts(pod))
        assert LEGACY not in set(amounts(pod))
