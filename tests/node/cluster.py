"""The control plane of the cluster tests with one to three real nodes, on which pods run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.client import until
from tests.cluster.controlplane import ControlPlane
from tests.node import build
from tests.node.node import Node, Place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cluster.client import Json

MODEL = "Tesla-K80"
GPUS = 16  # as a p2.16xlarge has; all pods of the guides find a place on one node
_READY = 240.0  # seconds; about 15 where nothing else runs, 75 were seen under a load of 20
_STARTED = 90.0  # seconds; a pod takes 1 or 2


class RealCluster(ControlPlane):
    """Starts in a network of its own (`own_network`), which it shares with its first node."""

    host = Place(1).address
    addresses = ("127.0.0.1", host, "10.0.0.1")  # the last one is the Service `kubernetes`

    def __init__(self, count: int = 1, *, key_identifiers: bool = True) -> None:
        super().__init__(key_identifiers=key_identifiers)
        self.places = [Place(number) for number in range(1, count + 1)]
        self.nodes: list[Node] = []

    def _start(self) -> None:
        super()._start()
        self.kubectl(
            "create",
            "clusterrolebinding",
            "kube-proxy",
            "--clusterrole=system:node-proxier",
            "--user=system:kube-proxy",
        )
        for place in self.places:
            others = [each for each in self.places if each != place]
            self.nodes.append(Node(self, place, others, gpus=GPUS, model=MODEL))
        self._until(self._are_ready, f"{len(self.places)} nodes to be ready", _READY)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()
        while self.nodes:
            self.nodes.pop().wait()
        super().stop()

    def kubeconfig_of(self, user: str, group: str = "") -> Path:
        return self._write_kubeconfig(user.replace(":", "-"), self.authority.client(user, group))

    def phase(self, namespace: str, pod: str) -> str:
        """Give what the kubelet says of a pod; `Running` means each container that is ready."""
        status = self.client.get("Pod", pod, namespace)["status"]
        ready = [each["ready"] for each in status.get("containerStatuses", [])]
        phase: str = status["phase"]
        return "Starting" if phase == "Running" and not all(ready) else phase

    def gpus_seen(self, namespace: str, pod: str, container: str) -> set[str]:
        """Ask in a container, or read what it printed: its variable and its files must agree."""
        of = ["-n", namespace, pod, "-c", container]
        command = ["logs", *of] if self.phase(namespace, pod) == "Succeeded" else ["exec", *of]
        said = self.kubectl(*command, *(["--", "nvidia-smi"] if command[0] == "exec" else []))
        variable, *files = said.split()
        names = {each.replace("/dev/nvidia", "GPU-") for each in files}
        assert names == set(variable.partition("=")[2].split(",")), said
        return names

    def install(self, manifests: Path = build.ROOT / "manifests" / "base") -> None:
        """Apply a kustomization, and wait for its replicas."""
        self.kubectl("apply", "-k", str(manifests))
        self.until_rolled_out("gpu-webhook", "gpu-webhook")

    def until_pod(self, namespace: str, pod: str, phase: str) -> None:
        """Wait for what the kubelet says of a pod."""
        self._until(lambda: self.phase(namespace, pod) == phase, f"{pod} to be {phase}", _STARTED)

    def until_rolled_out(self, namespace: str, deployment: str) -> None:
        """Wait for what `kubectl rollout status` waits for."""

        def is_rolled_out() -> bool:
            found = self.client.get("Deployment", deployment, namespace)
            status, generation = found["status"], found["metadata"]["generation"]
            names = ("replicas", "updatedReplicas", "availableReplicas")
            counts = {status.get(each, 0) for each in names}
            is_seen = status.get("observedGeneration", 0) >= generation
            return is_seen and counts == {found["spec"]["replicas"]}

        self._until(is_rolled_out, f"{deployment} to be available", 2 * _STARTED)

    def _until(self, question: Callable[[], bool], what: str, seconds: float) -> None:
        """Wait; if that does not come, say all that is known."""
        try:
            until(question, what, seconds)
        except TimeoutError as late:
            raise TimeoutError(f"{late}; what is known:\n{self.all_known()}") from None

    def all_known(self) -> str:
        """Nodes, pods and their events, webhooks that did not answer, and the nodes' logs."""
        nodes = self.kubectl("describe", "nodes")
        pods = self.kubectl("describe", "pods", "--all-namespaces")
        return "\n".join([nodes, pods, *self.failed_calls(), *map(Node.last_words, self.nodes)])

    def _are_ready(self) -> bool:
        self.check()
        for node in self.nodes:
            node.check()
        made = self.client.list("Node")
        return sum(map(_is_ready, made)) == len(self.places)

    def _apiserver_of_nodes(self) -> list[str]:
        kubelets = self.authority.client("kube-apiserver-kubelet-client", "system:masters")
        return [
            "--bind-address=0.0.0.0",
            f"--advertise-address={self.host}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--kubelet-client-certificate={kubelets.certificate}",
            f"--kubelet-client-key={kubelets.key}",
            "--kubelet-preferred-address-types=InternalIP",
        ]

    def _controllers_of_nodes(self) -> list[str]:
        return []


def _is_ready(node: Json) -> bool:
    status = node["status"]
    conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
    gpus = status.get("allocatable", {}).get("nvidia.com/gpu")
    return conditions.get("Ready") == "True" and gpus == str(GPUS)
