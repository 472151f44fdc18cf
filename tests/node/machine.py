"""What this machine lacks for real nodes, in a line; nothing here changes the machine.

None of it is a failure of ours: elsewhere than in CI the tests are skipped and say it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

# What is run, and Debian's package that has it.
PACKAGES = {
    "buildah": "buildah",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "runc": "runc",
    "unshare": "util-linux",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}
_CGROUPS = Path("/sys/fs/cgroup")
# What containerd, CNI and kube-proxy need of the kernel, and of the container that we may be in.
_PROBES = {
    "tmpfs": "mount -t tmpfs node /mnt && mkdir /mnt/lower /mnt/upper /mnt/work /mnt/all",
    "overlayfs": "mount -t overlay overlay "
    "-o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work /mnt/all",
    "veth and bridge": "ip link add name test0 type veth peer name test1 "
    "&& ip link add name test2 type bridge",
    "nftables": "nft add table ip test",
    "forwarding": "echo 1 >/proc/sys/net/ipv4/ip_forward",
    "br_netfilter": "echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables",
}
_NAMESPACES = ("--mount", "--pid", "--uts", "--ipc", "--net", "--fork", "--mount-proc")


class Impossible(Exception):  # noqa: N818 - what happened
    """This machine cannot run nodes; the message says why."""


def lacks() -> str:
    """Say the first thing that nodes need and this machine does not have; empty if nothing."""
    if why := lacks_itself():
        return why
    if packages := missing_packages():
        return f"{', '.join(packages)} missing: run `make node`"
    return kernel_lacks()


def lacks_itself() -> str:
    """Say what no package would change."""
    if os.geteuid() != 0:
        return "root is needed"
    found = hierarchies()
    if not found:
        return "there are no hierarchies of cgroup v1 (v2 was not tried yet)"
    if fixed := [each.name for each in found if not os.access(each, os.W_OK)]:
        return f"cgroups are read-only here: {', '.join(fixed)}"
    return ""


def missing_packages() -> list[str]:
    return [package for name, package in PACKAGES.items() if shutil.which(name) is None]


def kernel_lacks() -> str:
    """Try in namespaces of our own, which end with the trial."""
    script = "\n".join(f"{{ {probe}; }} || exit {n}" for n, probe in enumerate(_PROBES.values(), 2))
    tried = subprocess.run(
        ["unshare", *_NAMESPACES, "bash", "-c", script], capture_output=True, text=True, check=False
    )
    if tried.returncode == 0:
        return ""
    what = dict(enumerate(_PROBES, 2)).get(tried.returncode, "namespaces")
    said = " ".join(tried.stderr.split())
    return f"the kernel, or the container that we are in, forbids {what}: {said}"


def hierarchies() -> list[Path]:
    """Give the hierarchies of cgroup v1, which the kubelet wants its root in beforehand."""
    if not _CGROUPS.is_dir():
        return []
    return [
        folder
        for folder in _CGROUPS.iterdir()
        if (folder / "tasks").exists() and not folder.is_symlink()
    ]
