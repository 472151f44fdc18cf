"""What admission costs where it is paid: at a real API server, on `create` with dryRun=All.

Three namespaces of one API server: nothing, an in-process policy that only renames, and ours.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import orjson
import yaml

from bench.generator import BENCH, REVIEWS, Target, call, program
from bench.processes import running
from bench.server import OURS, gpu_webhook_command, wait_until_it_answers
from bench.windows import Window
from tests.cluster.client import path_of, until
from tests.cluster.controlplane import ControlPlane, free_ports
from tests.cluster.webhook import REPAIR, registered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLIENTS = (1, 16)
NOTHING, POLICY = "nothing", "policy that renames"
NAMESPACES = {NOTHING: "bench-nothing", POLICY: "bench-policy", OURS: "bench-ours"}
_LEGACY, _MODERN = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
_IGNORE = {"gpu-webhook.dev/ignore": "true"}  # the shipped configuration's own way out


def measure(rounds: int, seconds: float, tell: Callable[[str], None]) -> list[Window]:
    """Measure the three namespaces in turn: A B C A B C, for each number of clients."""
    tell("API server: the Go programs (built once)")
    program("load")
    windows = []
    with _three_namespaces(tell) as targets:
        for clients in CLIENTS:
            for turn in range(rounds):
                tell(f"API server: {clients} client(s), round {turn + 1} of {rounds}")
                for admission, target in targets.items():
                    sample = call(target, clients, seconds)
                    windows.append(Window(admission, clients, turn, sample))
    return windows


@contextmanager
def _three_namespaces(tell: Callable[[str], None]) -> Iterator[dict[str, Target]]:
    with ExitStack() as stack:
        tell("API server: starting a control plane")
        cluster = stack.enter_context(ControlPlane())
        for admission, namespace in NAMESPACES.items():
            cluster.make_namespace(namespace, {} if admission == OURS else _IGNORE)
        for each in yaml.safe_load_all((BENCH / "policy.yaml").read_text()):
            cluster.client.create(each)
        _serve_ours(cluster, stack)
        until(lambda: _works(cluster), "each namespace to do what it should")
        try:
            yield {admission: _target(cluster, admission) for admission in NAMESPACES}
        finally:
            cluster.client.close()  # unused for over 90 s, so the API server has hung up


def _serve_ours(cluster: ControlPlane, stack: ExitStack) -> None:
    port = free_ports(1)[0]
    pair = cluster.authority.server("gpu-webhook.gpu-webhook.svc")
    log = cluster.folder / "gpu-webhook.log"
    process = stack.enter_context(running(gpu_webhook_command(port, pair), log))
    url = f"https://127.0.0.1:{port}/mutate?timeout=3s"
    review = Target(url, cluster.authority.bundle, REVIEWS, "patch")
    wait_until_it_answers(process, review, log)
    # The policy that it is compared with judges nothing either.
    stack.enter_context(registered(cluster, port, cluster.authority.bundle, (REPAIR,)))


def _works(cluster: ControlPlane) -> bool:
    """Tell if policy and webhook are in force, each in its namespace and nowhere else."""
    pod = orjson.loads((BENCH / "pod.json").read_bytes())
    for admission, namespace in NAMESPACES.items():
        answer = cluster.client.create(pod, namespace, dry_run=True).body
        limits = answer["spec"]["containers"][0]["resources"]["limits"]
        if set(limits) != {_resource(admission)}:
            return False
    return True


def _target(cluster: ControlPlane, admission: str) -> Target:
    path = path_of("Pod", NAMESPACES[admission])
    return Target(
        url=f"https://127.0.0.1:{cluster.port}/{path}?dryRun=All",
        authority=cluster.authority.bundle,
        body=BENCH / "pod.json",
        expect="pod",
        resource=_resource(admission),
        identity=cluster.authority.client("bench", "system:masters"),
    )


def _resource(admission: str) -> str:
    return _LEGACY if admission == NOTHING else _MODERN
