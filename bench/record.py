"""Record the reviews that the bench sends: `python -m bench.record` writes reviews.jsonl.gz.

A control plane with its usual plugins (ServiceAccount among them) and its real controllers makes
GPU pods, and calls us as the shipped configuration says. What it sends is kept as it comes, but for
what differs in each call: these places have fixed words, which the generator overwrites.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from tests.cluster import nodes
from tests.cluster.client import until
from tests.cluster.controlplane import ControlPlane
from tests.cluster.webhook import REPAIR, Endpoint, pointed_at, shipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    Raw = dict[str, Any]

FILE = Path(__file__).with_name("reviews.jsonl.gz")
UID = "00000000-0000-4000-8000-000000000000"
NAME = "bench-000000000000"  # of pods that nobody has a second of
ACCESS = "kube-api-access-00000"  # the volume of the ServiceAccount plugin
LEGACY, MODERN = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"

REPLICAS = 15  # of each workload
# Every fifth is of today.
WORKLOADS = {"Deployment": 9, "Job": 8, "StatefulSet": 3, "DaemonSet": 1, "CronJob": 1}
UNIQUE_LEGACY, UNIQUE_MODERN = 125, 75
_NAMESPACE = "research"
_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {
                            "key": "alpha.kubernetes.io/nvidia-gpu-name",
                            "operator": "In",
                            "values": ["Tesla-K80", "Tesla-P100"],
                        }
                    ]
                }
            ]
        }
    }
}
_DRIVER = "/usr/local/nvidia"


def main() -> int:
    """Record, and write the file."""
    with ControlPlane() as plane:
        plane.make_namespace(_NAMESPACE)
        nodes.add(plane.client, [nodes.gpu_node(f"node-{each}", 4) for each in range(REPLICAS)])
        lines = _recorded(plane)
        plane.client.close()
    random.Random(1).shuffle(lines)  # noqa: S311
    with FILE.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(b"\n".join(lines) + b"\n")
    sizes = sorted(map(len, lines))
    print(
        f"{len(lines)} reviews of {sizes[0]} to {sizes[-1]} bytes, "
        f"half of them above {sizes[len(sizes) // 2]}; {FILE.stat().st_size} in {FILE.name}"
    )
    return 0


def _recorded(plane: ControlPlane) -> list[bytes]:
    seen: list[bytes] = []
    lock = threading.Lock()

    def respond(_: str, body: bytes) -> tuple[int, bytes]:
        with lock:
            seen.append(body)
        uid = orjson.loads(body)["request"]["uid"]
        response = {"uid": uid, "allowed": True}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return 200, orjson.dumps(review | {"response": response})

    with Endpoint(plane.authority, respond, "recorder") as endpoint:
        for configuration in shipped(plane, (REPAIR,)):
            plane.client.create(pointed_at(configuration, endpoint.port, endpoint.bundle))
        probe = _pod("probe", 0, legacy=True)

        def is_called() -> bool:
            plane.client.create(probe, _NAMESPACE, dry_run=True)
            return bool(seen)

        until(is_called, "a call")
        with lock:
            seen.clear()
        expected = 0
        for obj, pods in _objects():
            # As people do it: some apply, which leaves a copy in an annotation, some create.
            command = "apply" if expected % 2 else "create"
            plane.kubectl(command, "-n", _NAMESPACE, "-f", "-", stdin=json.dumps(obj))
            expected += pods
        until(lambda: len(seen) >= expected, f"{expected} pods to be made", 120)
    lines = [_with_places(each) for each in seen]
    return [each for each in lines if f'"namespace":"{_NAMESPACE}"'.encode() in each]


def _with_places(body: bytes) -> bytes:
    """The review with fixed words for what is another one in each call."""
    review = orjson.loads(body)
    text = orjson.dumps(review).decode()
    text = text.replace(review["request"]["uid"], UID)
    text = re.sub(r"kube-api-access-[a-z0-9]{5}", ACCESS, text)
    text = re.sub(r"bench-[0-9]{12}", NAME, text)
    return re.sub(r"X509SHA256=[0-9a-f]{64}", f"X509SHA256={'ab' * 32}", text).encode()


def _objects() -> Iterator[tuple[Raw, int]]:
    """What is made, and how many pods come of it."""
    number = 0
    for kind, count in WORKLOADS.items():
        for _ in range(count):
            yield _workload(kind, number), REPLICAS
            number += 1
    legacy = [(each, True) for each in range(UNIQUE_LEGACY)]
    modern = [(each, False) for each in range(UNIQUE_MODERN)]
    unique = [
        _pod(f"bench-{position:012}", number, legacy=old)
        for position, (number, old) in enumerate([*legacy, *modern])
    ]
    for start in range(0, len(unique), 25):
        items = unique[start : start + 25]
        yield {"apiVersion": "v1", "kind": "List", "items": items}, len(items)


def _workload(kind: str, number: int) -> Raw:
    name = f"{kind.lower()}-{number}"
    pod = _pod("", number, legacy=number % 5 != 4)
    labels = {"app": name}
    template = {"metadata": {**pod["metadata"], "labels": labels}, "spec": pod["spec"]}
    template["metadata"].pop("name")
    obj: Raw = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}}
    if kind == "Job":
        pod["spec"]["restartPolicy"] = "Never"
        mode = "Indexed" if number % 2 else "NonIndexed"
        many = {"parallelism": REPLICAS, "completions": REPLICAS, "completionMode": mode}
        return obj | {"apiVersion": "batch/v1", "spec": {"template": template, **many}}
    if kind == "CronJob":  # once a minute
        pod["spec"]["restartPolicy"] = "Never"
        job = {"spec": {"template": template, "parallelism": REPLICAS, "completions": REPLICAS}}
        schedule = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": job}
        return obj | {"apiVersion": "batch/v1", "spec": schedule}
    spec: Raw = {"selector": {"matchLabels": labels}, "template": template}
    if kind != "DaemonSet":  # which has one on each node
        spec["replicas"] = REPLICAS
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return obj | {"spec": spec}


def _pod(name: str, number: int, *, legacy: bool) -> Raw:
    """One of many pods: the number says what it has."""
    resource = LEGACY if legacy else MODERN
    main: Raw = {
        "name": name or "trainer",
        "image": f"registry.example.com/training:{number}.0",
        "command": ["python", "train.py"],
        "args": [f"--seed={number}", f"--run={name or 'all'}"],
        "env": [{"name": f"VARIABLE_{each}", "value": "v" * 24} for each in range(number % 7)],
        "resources": {
            "limits": {resource: str(1 + number % 4), "memory": "16Gi"},
            "requests": {"cpu": "2"},
        },
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    if not legacy and number % 2:
        main["name"] = "trainer"  # only the arguments are its own
    spec: Raw = {
        "containers": [main],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    annotations = {}
    if number % 2:
        spec["containers"].append(
            {"name": "logs", "image": "registry.example.com/logs:1", "args": ["--follow"]}
        )
    if number % 5 == 1:
        spec["initContainers"] = [{"name": "fetch", "image": "registry.example.com/fetch:1"}]
    if name and number % 25 == 7:
        more = ({"name": f"helper-{each}", "image": main["image"]} for each in range(29))
        spec["containers"] += [{**main, "resources": {}, **each} for each in more]
    if name and number % 6 == 2:
        sidecar = {"name": "proxy", "image": "registry.example.com/proxy:1"}
        spec["initContainers"] = [sidecar | {"restartPolicy": "Always"}]
    if name and number % 10 == 4:
        annotations["example.com/notes"] = "These are the notes of one long experiment. " * 200
    if legacy and number % 3 == 0:
        annotations["scheduler.alpha.kubernetes.io/affinity"] = json.dumps(_AFFINITY)
    if legacy and number % 4 == 0:
        spec["volumes"].append({"name": "driver", "hostPath": {"path": _DRIVER}})
        main["volumeMounts"].append({"name": "driver", "mountPath": _DRIVER})
    if not legacy:
        spec["tolerations"] = [{"key": MODERN, "operator": "Exists", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"team": f"team-{number % 9}"}}
        | ({"annotations": annotations} if annotations else {}),
        "spec": spec,
    }


if __name__ == "__main__":
    sys.exit(main())
