"""A network of our own: links, routes and rules of the machine stay as they are."""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLONE_NEWNET = 0x40000000  # os.unshare and os.setns are there from Python 3.12 on
_THIS = "/proc/thread-self/ns/net"
BRIDGE = "nodes"  # the switch that all nodes are on, and the first node's link to it


@contextmanager
def own_network(address: str) -> Iterator[None]:
    """Have this thread, and the processes that it starts, in a network with this address."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open(_THIS, os.O_RDONLY)
    try:
        _checked(libc.unshare(_CLONE_NEWNET))
        try:
            ip("link", "set", "lo", "up")
            ip("link", "add", BRIDGE, "type", "bridge")
            ip("address", "add", f"{address}/24", "dev", BRIDGE)
            ip("link", "set", BRIDGE, "up")
            # A Service has no route of its own: any will do until kube-proxy has chosen a pod.
            ip("route", "add", "default", "dev", BRIDGE)
            yield
        finally:
            _checked(libc.setns(before, _CLONE_NEWNET))
    finally:
        os.close(before)


def network_of(pid: int | None = None) -> str:
    """Name the network that a process is in; None is this thread."""
    return str(Path(_THIS if pid is None else f"/proc/{pid}/ns/net").readlink())


def join(name: str, pid: int) -> None:
    """Give the network of a process the link eth0 to the bridge."""
    link = ("link", "add", "name", name, "master", BRIDGE)
    ip(*link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    ip("link", "set", name, "up")


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _checked(status: int) -> None:
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
