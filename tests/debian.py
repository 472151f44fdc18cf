"""Installs Debian's packages that this machine lacks, as root or through sudo."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTIONS = ("Acquire::Retries=3", "Dpkg::Use-Pty=0", "DPkg::Lock::Timeout=120")
_UNREACHABLE = re.compile(
    r"Could not (resolve|connect)|Temporary failure|Unable to connect|Connection (failed|timed out)"
    r"|Failed to fetch"
)


class NotInstalled(Exception):  # noqa: N818 - what happened
    """The packages are not there; the message says why."""


def install(packages: Sequence[str]) -> None:
    if shutil.which("apt-get") is None:
        raise NotInstalled(f"there is no apt-get; install what Debian has in {', '.join(packages)}")
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    options = [f"-o{each}" for each in _OPTIONS]
    apt = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", *options]
    # One of a machine's sources may fail without harm: what counts is that the packages are there.
    said = subprocess.run([*apt, "update"], capture_output=True, text=True, check=False).stderr
    command = [*apt, "install", "--yes", "--no-install-recommends", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = " ".join((said + done.stderr).split())
        raise NotInstalled(f"apt-get cannot install {', '.join(packages)}: {why}")


def is_unreachable(said: str) -> bool:
    """Whether apt could not get packages, as opposed to anything else that went wrong."""
    return bool(_UNREACHABLE.search(said))
