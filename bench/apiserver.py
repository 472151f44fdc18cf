"""What admission costs where it is paid: at a real API server, on `create` with dryRun=All.

Namespaces of one API server: nothing, an in-process policy that only renames, ours as it is
shipped, and in the same place, without conditions, ours and one made with controller-runtime.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import yaml

from bench.generator import BENCH, REVIEWS, Target, call, program
from bench.processes import cpu_seconds, milliseconds_each, running
from bench.server import OURS, PEER, gpu_webhook_command, peer_command, wait_until_it_answers
from bench.windows import Window
from tests.cluster.client import path_of, until
from tests.cluster.controlplane import ControlPlane, free_ports
from tests.cluster.webhook import REPAIR, configured, registered, shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.client import Json

CLIENTS = (1, 16)
NOTHING, POLICY, OPEN = "nothing", "policy that renames", f"{OURS}, no conditions"
NAMESPACES = {
    NOTHING: "bench-nothing",
    POLICY: "bench-policy",
    OURS: "bench-ours",
    OPEN: "bench-open",
    PEER: "bench-peer",
}
_GPU, _PLAIN = "pod with GPUs", "pod without"
_LEGACY, _MODERN = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
_IGNORE = {"gpu-webhook.dev/ignore": "true"}  # the shipped configuration's own way out


def measure(rounds: int, seconds: float, tell: Callable[[str], None]) -> list[Window]:
    """Measure the namespaces in turn: A B C A B C, for each pod and number of clients."""
    tell("API server: the Go programs (built once)")
    program("load")
    windows = []
    with _namespaces(tell) as (targets, pids):
        for kind, admission_targets in targets.items():
            for clients in CLIENTS:
                tell(f"API server: {kind}, {clients} client(s), {rounds} rounds")
                for turn in range(rounds):
                    for admission, target in admission_targets.items():
                        before = sum(cpu_seconds(pid) or 0 for pid in pids)
                        sample = call(target, clients, seconds)
                        after = sum(cpu_seconds(pid) or 0 for pid in pids)
                        spent = milliseconds_each(before, after, sample.calls)
                        windows.append(Window(admission, clients, turn, sample, spent, kind))
    return windows


@contextmanager
def _namespaces(
    tell: Callable[[str], None],
) -> Iterator[tuple[dict[str, dict[str, Target]], list[int]]]:
    with ExitStack() as stack:
        tell("API server: starting a control plane")
        cluster = stack.enter_context(ControlPlane())
        for admission, namespace in NAMESPACES.items():
            cluster.make_namespace(namespace, {} if admission == OURS else _IGNORE)
        for each in yaml.safe_load_all((BENCH / "policy.yaml").read_text()):
            cluster.client.create(each)
        pids = [cluster.pid("kube-apiserver"), *_serve(cluster, stack)]
        until(lambda: _works(cluster), "each namespace to do what it should")
        gpu = (BENCH / "pod.json").read_text()
        plain = cluster.folder / "plain.json"
        plain.write_text(gpu.replace(_LEGACY, "cpu"))
        try:
            yield (
                {
                    _GPU: {each: _target(cluster, each) for each in NAMESPACES},
                    _PLAIN: {
                        each: replace(_target(cluster, each), body=plain, resource="cpu")
                        for each in NAMESPACES
                    },
                },
                pids,
            )
        finally:
            cluster.client.close()  # unused for over 90 s, so the API server has hung up


def _serve(cluster: ControlPlane, stack: ExitStack) -> Iterator[int]:
    """Start both webhooks and register them; give their processes."""
    bundle, (port, peer_port) = cluster.authority.bundle, free_ports(2)
    pair = cluster.authority.server("gpu-webhook.gpu-webhook.svc")
    (cluster.folder / "tls.crt").symlink_to(pair.certificate)
    (cluster.folder / "tls.key").symlink_to(pair.key)
    commands = {
        port: gpu_webhook_command(port, pair),
        peer_port: peer_command(peer_port, cluster.folder),
    }
    for number, command in commands.items():
        log = cluster.folder / f"{number}.log"
        process = stack.enter_context(running(command, log))
        url = f"https://127.0.0.1:{number}/mutate?timeout=3s"
        wait_until_it_answers(process, Target(url, bundle, REVIEWS, "patch"), log)
        yield process.pid
    # The policy that it is compared with judges nothing either.
    stack.enter_context(registered(cluster, port, bundle, (REPAIR,)))
    for admission, number in ((OPEN, port), (PEER, peer_port)):
        everything = _for_all_pods(cluster, NAMESPACES[admission])
        stack.enter_context(configured(cluster, number, bundle, [everything]))


def _for_all_pods(cluster: ControlPlane, namespace: str) -> Json:
    """Give the shipped configuration for one namespace, without conditions."""
    (configuration,) = shipped(cluster, (REPAIR,))
    configuration["metadata"]["name"] = namespace
    for webhook in configuration["webhooks"]:
        webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        webhook.pop("matchConditions")
    return configuration


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
