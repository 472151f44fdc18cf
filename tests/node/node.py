"""One node: kubelet, containerd, kube-proxy and a device plugin, in namespaces of its own.

It sees the machine's files; the folders that its programs write to are mounted over.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from tests.cluster.client import until
from tests.cluster.controlplane import ProgramDied
from tests.node import build, network
from tests.node.machine import hierarchies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.node.cluster import RealCluster

START = Path(__file__).with_name("start-node.sh")
# Of the CPU, for all pods of a node. With the default of 1024 they get no more than any session of
# the machine (CONFIG_SCHED_AUTOGROUP), and probes fail that a node of its own would answer.
_SHARES = 16_384
_TAIL = 15  # lines of each log to show when something is wrong

# Ends when its standard input does, also when this Python process is killed: then no process of the
# node is left, and what is to be removed is free in a moment.
_CLEANER = """cat >/dev/null
kill -KILL $(cat "$0/pid") 2>/dev/null
for try in $(seq 100); do
  find /sys/fs/cgroup/*/"$1" -depth -type d -exec rmdir {} + 2>/dev/null
  ls -d /sys/fs/cgroup/*/"$1" >/dev/null 2>&1 || break
  sleep 0.1
done
rm -rf "$0"
"""

_CONTAINERD = """version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.nri.v1.nri']
disable = true # its socket would be in the machine's /run, and of several nodes the last one had it
[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{sandbox}"
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true # where root may not lower it (no CAP_SYS_RESOURCE), runc would die
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["/usr/lib/cni", "/opt/cni/bin"]
conf_dir = "/etc/cni/net.d"
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node is: its number, and what follows from it."""

    number: int

    @property
    def name(self) -> str:
        return f"node-{self.number}"

    @property
    def address(self) -> str:
        return f"10.88.0.{self.number}"

    @property
    def pods(self) -> str:
        return f"10.244.{self.number}.0/24"


class Node:
    """Starts at once; `stop` ends all of it, and nothing is left behind."""

    def __init__(
        self, cluster: RealCluster, place: Place, others: Iterable[Place], *, gpus: int, model: str
    ) -> None:
        self.place = place
        self.folder = Path(tempfile.mkdtemp(prefix=f"{place.name}-"))
        self._cgroup = self.folder.name
        self._cleaner = subprocess.Popen(
            ["/bin/sh", "-c", _CLEANER, str(self.folder), self._cgroup],
            stdin=subprocess.PIPE,
            process_group=0,
        )
        self._write_configuration(cluster)
        self._make_cgroups()
        is_first = place.address == cluster.host  # it has the network of the control plane
        variables = {
            "NAME": place.name,
            "ADDRESS": place.address,
            "POD_RANGES": " ".join(f"{each.pods}={each.address}" for each in others),
            "NETWORK": "" if is_first else "own",
            "FOLDER": str(self.folder),
            "PROGRAMS": str(build.programs()),
            "IMAGES": str(build.images()),
            "DEVICE_PLUGIN": str(build.device_plugin()),
            "GPUS": str(gpus),
            "LABELS": f"nvidia.com/gpu.product={model},nvidia.com/gpu.present=true",
        }
        unshare = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--mount-proc"]
        unshare += ["--propagation=private", "--kill-child", *([] if is_first else ["--net"])]
        with (self.folder / "start.log").open("wb") as log:
            self.process = subprocess.Popen(
                [*unshare, "bash", str(START)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                process_group=0,
            )
        (self.folder / "pid").write_text(str(self.process.pid))
        if not is_first:
            here = network.network_of()
            until(lambda: network.network_of(self.process.pid) != here, "a network of its own")
            network.join(place.name, self.process.pid)

    def check(self) -> None:
        """Raise if one of its programs has ended: then all of it has."""
        if self.process.poll() is not None:
            raise ProgramDied(f"{self.place.name} ended; last words:\n{self.last_words()}")

    def kill(self) -> None:
        """As a machine loses its power."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Let all that is left of it be removed; `wait` until that is done."""
        self.kill()
        if self._cleaner.stdin is not None:
            self._cleaner.stdin.close()

    def wait(self) -> None:
        self._cleaner.wait()

    def last_words(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        tails = {log.name: log.read_text(errors="replace").splitlines()[-_TAIL:] for log in logs}
        return "\n".join("\n".join([f"--- {name}", *tails[name]]) for name in tails)

    def _write_configuration(self, cluster: RealCluster) -> None:
        name = self.place.name
        kubelet = cluster.kubeconfig_of(f"system:node:{name}", "system:nodes")
        proxy = cluster.kubeconfig_of("system:kube-proxy")
        (self.folder / "kubelet.kubeconfig").write_bytes(kubelet.read_bytes())
        (self.folder / "containerd.toml").write_text(_CONTAINERD.format(sandbox=build.PAUSE))
        (self.folder / "resolv.conf").write_text("nameserver 10.0.0.10\n")
        for file, content in (
            ("cni.conflist", _cni(self.place.pods)),
            ("kubelet.json", self._kubelet(str(cluster.authority.bundle))),
            ("kube-proxy.json", _kube_proxy(name, str(proxy))),
        ):
            (self.folder / file).write_bytes(orjson.dumps(content))

    def _kubelet(self, authority: str) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "x509": {"clientCAFile": authority},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._cgroup}",
            "failCgroupV1": False,
            "clusterDNS": ["10.0.0.10"],  # nobody is there, but each pod would get an event
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            # The disk is the machine's: how full it is must not decide about a test.
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            # A changed Secret and a dead node are seen in seconds.
            "nodeStatusReportFrequency": "5s",
            "nodeStatusUpdateFrequency": "2s",
            "syncFrequency": "10s",
            "resolvConf": str(self.folder / "resolv.conf"),
        }

    def _make_cgroups(self) -> None:
        for hierarchy in hierarchies():
            group = hierarchy / self._cgroup
            group.mkdir()
            if hierarchy.name == "cpuset":
                for each in ("cpuset.cpus", "cpuset.mems"):  # a new group has none
                    (group / each).write_text((hierarchy / each).read_text())
            if (shares := group / "cpu.shares").exists():
                shares.write_text(str(_SHARES))


def _cni(pods: str) -> dict[str, object]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/containerd/addresses",
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [{**bridge, "ipam": addresses}]}


def _kube_proxy(node: str, kubeconfig: str) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": "10.244.0.0/16",
        "clientConnection": {"kubeconfig": kubeconfig},
        "hostnameOverride": node,
        # Zero leaves the limits of the machine's connection tracking as they are.
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
