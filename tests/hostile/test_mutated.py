"""Reviews that are changed at random, by the thousand: no 5xx, no lost worker, memory back.

MUTATED_REVIEWS says how many; `make nightly` sends 100,000, which take some minutes.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile.test_crowd import MIB, WAIT_SECONDS, resident
from tests.hostile.wire import CLOSED, gpu_pod, post, review, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hostile.wire import Server

pytestmark = pytest.mark.programs

COUNT = int(os.environ.get("MUTATED_REVIEWS", "1000"))
SENDERS = 4
PATHS = ("/mutate", "/validate", "/guard", "/guard/refuse")
SETTINGS = "policy: {mode: enforce}\ncapacity: {limits: [{gpus: {nvidia.com/gpu: 1}}]}\n"
PIECES = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"null", b"1e999", b"-0", b"\xff", b""]
JUNK: list[Any] = [None, True, -1, 10**25, 1.5, "", "x" * 300, [], {}, [[]], {"a": {}}, "\ud800"]


def legacy_pod() -> dict[str, Any]:
    pod = gpu_pod(
        tolerations=[{"key": "a", "operator": "Exists"}],
        volumes=[{"name": "v", "hostPath": {"path": "/usr/lib/nvidia-375"}}],
        nodeSelector={"alpha.kubernetes.io/nvidia-gpu-name": "Tesla V100"},
    )
    pod["metadata"]["annotations"] = {
        "scheduler.alpha.kubernetes.io/tolerations": '[{"key": "b"}]',
        "scheduler.alpha.kubernetes.io/affinity": '{"nodeAffinity": {}}',
    }
    pod["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    return pod


def swapped(chance: random.Random, value: Any) -> Any:
    """The value with something else in one place of it."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.15:
        return chance.choice(JUNK)
    key = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
    changed: Any = value.copy()
    changed[key] = swapped(chance, value[key])
    return changed


def mutated(chance: random.Random) -> bytes:
    whole = review(legacy_pod())
    for _ in range(chance.randrange(4)):
        whole["request"]["object"] = swapped(chance, whole["request"]["object"])
    if chance.random() < 0.1:
        whole["request"] = swapped(chance, whole["request"])
    body = json.dumps(whole).encode()
    for _ in range(chance.choice([0, 0, 0, 1, 3])):
        at = chance.randrange(len(body))
        body = body[:at] + chance.choice(PIECES) + body[at + chance.randrange(3) :]
    return body


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_reviews_that_are_changed_at_random(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text(SETTINGS)
    statuses: Counter[int] = Counter()
    with serving(tmp_path, "--dev", "--workers=2", "--config=settings.yaml") as server:
        for path in PATHS * 50:
            server.post(json.dumps(review(legacy_pod())).encode(), path)
        workers, before = server.workers(), resident(server)
        senders = [
            threading.Thread(target=_send, args=(server, random.Random(seed), statuses))  # noqa: S311
            for seed in range(SENDERS)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        end = time.monotonic() + WAIT_SECONDS
        while (after := resident(server)) > before * 1.2 and time.monotonic() < end:
            time.sleep(0.2)
        assert server.workers() == workers
        assert server.mutate(gpu_pod()).patch()
    print(  # noqa: T201  # the figures that the project reports
        f"\n{statuses.total()} changed reviews: {dict(statuses)}; "
        f"{before // MIB} MiB before, {after // MIB} after"
    )
    assert statuses.total() == COUNT // SENDERS * SENDERS
    assert {status // 100 for status in statuses} == {2, 4}
    assert after <= before * 1.2


def _send(server: Server, chance: random.Random, statuses: Counter[int]) -> None:
    connection = server.connect()
    for _ in range(COUNT // SENDERS):
        connection.sendall(post(mutated(chance), chance.choice(PATHS)))
        reply = server.read(connection)[0]
        assert reply.status != CLOSED
        if reply.status == 200:
            assert reply.response["uid"].isprintable()
        else:  # a refusal ends the connection
            connection.close()
            connection = server.connect()
        statuses[reply.status] += 1
    connection.close()
