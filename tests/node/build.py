"""Builds what the nodes of tests/node run: `python -m tests.node.build`, as root, once.

Programs: kubelet and kube-proxy (of the control plane's module), containerd and a device plugin are
Go; runc, nft, buildah and the CNI plugins are Debian's packages. Images: ours, from our Dockerfile,
on bases that mmdebstrap makes; no registry is asked. Exits with 3 where nodes cannot run.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests import debian
from tests.cluster import build as go
from tests.cluster.build import CACHE, RELEASE, TOOLS, BuildError, say
from tests.node import machine
from tests.node.machine import Impossible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[2]
STAND_INS = Path(__file__).parent / "image"
_CONTAINERD = "github.com/containerd/containerd/v2/cmd"

OURS = "docker.io/library/gpu-admission-webhook:0.1.0"  # what manifests/base names
PAUSE = "k8s.gcr.io/pause:2.0"  # of the guides' pods, and of every pod's sandbox
TENSORFLOW = "docker.io/tensorflow/tensorflow:latest-gpu"
# What each image is known as on a node, and which one it is.
NAMES = {
    OURS: OURS,
    PAUSE: PAUSE,
    TENSORFLOW: TENSORFLOW,
    "docker.io/nvidia/cuda:latest": PAUSE,
    "docker.io/nvidia/cuda:9.0-devel": PAUSE,
}

# What our Dockerfile begins with, and mmdebstrap's flags for the like. Debian 13 has the Python of
# python:3.13-slim, where `python` and `pip` work outside of a virtual environment; the other one is
# made of Debian 13, too: no shell, and no script of a package has run. The real one also has the
# certificates of public CAs, Kerberos and a few more libraries.
_DEBIAN = "trixie"
_BASES = {
    "docker.io/library/python:3.13-slim": (
        "--variant=minbase",
        "--include=python3,python3-venv,python3-pip,ca-certificates,netbase,tzdata",
        *(f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in ("man", "doc", "locale")),
        '--customize-hook=ln -s /usr/bin/python3 "$1/usr/local/bin/python"',
        '--customize-hook=rm -f "$1"/usr/lib/python3.13/EXTERNALLY-MANAGED',
        '--customize-hook=rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*',
    ),
    "gcr.io/distroless/python3-debian13:nonroot": (
        "--variant=extract",
        "--include=base-files,python3.13-minimal,libpython3.13-stdlib,libstdc++6,netbase",
        '--extract-hook=ln -s python3.13 "$1/usr/bin/python3"',
    ),
}
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# pip works in the build as it does on this machine.
_OF_THE_MACHINE = ("/etc/ssl/certs", "/etc/pip.conf")
_RETRIES = 'Acquire::Retries "3";'
IMPOSSIBLE = 3  # the exit code where this machine cannot run nodes: no failure of ours
_KEPT = 24 * 3600.0  # seconds; archives of images that no checkout has any more


def prepare_machine() -> None:
    """Install Debian's packages that are missing, and ask whether nodes can run here at all."""
    why = machine.lacks_itself()
    if not why and (wanted := machine.missing_packages()):
        say(f"Installing {', '.join(wanted)}")
        try:
            debian.install(wanted)
        except debian.NotInstalled as failure:
            raise Impossible(failure) from None
    if why := why or machine.lacks():
        raise Impossible(why)


def programs_folder() -> Path:
    digest = go.digest(TOOLS / f"kubernetes-{RELEASE}", TOOLS / "containerd")
    return CACHE / "node" / f"{RELEASE}-{digest}"


def programs() -> Path:
    """Give the folder with kubelet, kube-proxy and containerd."""
    kubernetes = TOOLS / f"kubernetes-{RELEASE}"
    packages = {
        name: (kubernetes, f"k8s.io/kubernetes/cmd/{name}") for name in ("kubelet", "kube-proxy")
    }
    for name in ("containerd", "containerd-shim-runc-v2", "ctr"):
        packages[name] = (TOOLS / "containerd", f"{_CONTAINERD}/{name}")
    return go.built(programs_folder(), packages, go.version_flags(RELEASE))


def device_plugin() -> Path:
    return go.program(TOOLS / "device-plugin", ["main.go"])


@cache
def images() -> Path:
    """Give an archive of all images as they are in this checkout."""
    digest = hashlib.sha256(repr((_BASES, NAMES)).encode())
    for file in _sources():
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    archive = CACHE / "node" / f"images-{digest.hexdigest()[:16]}" / "images.tar"
    if not archive.exists():
        started = time.monotonic()
        say("  images: building")
        with go.whole_or_nothing(archive.parent) as unfinished, _alone():
            _build_images(unfinished / archive.name)
        say(f"  images: done in {time.monotonic() - started:.0f} s")
        _forget_older_than(time.time() - _KEPT)
    archive.parent.touch()
    return archive


def everything() -> None:
    """Build what is not there: programs while packages of the images are on their way."""
    with ThreadPoolExecutor() as threads:
        of_images = threads.submit(images)
        go.assets()
        programs()
        device_plugin()
        of_images.result()


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for a build in another checkout: both give the same names to their images."""
    with (CACHE / "node" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sources() -> Iterator[Path]:
    for name in ("Dockerfile", "LICENSE", "README.md", "pyproject.toml"):
        yield ROOT / name
    yield from sorted(ROOT.glob("requirements*.txt"))
    for folder in (ROOT / "webhook", STAND_INS):
        found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
        yield from sorted(path for path in found if path.is_file())


def _build_images(archive: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for name, flags in _BASES.items():
            _import_base(name, flags)
        _bud(STAND_INS, PAUSE, "--target=cuda")
        _bud(STAND_INS, TENSORFLOW, "--target=tensorflow")
        mounts = [f"--volume={path}:{path}:ro" for path in _OF_THE_MACHINE if Path(path).exists()]
        _bud(ROOT, OURS, *mounts)
        layout = Path(scratch) / "images"
        for name, image in NAMES.items():
            _buildah("push", "--quiet", image, f"oci:{layout}:{name}")
        _run(["tar", "--create", f"--file={archive}", f"--directory={layout}", "."])
    _buildah("rmi", "--prune")


def _import_base(name: str, flags: Sequence[str]) -> None:
    digest = hashlib.sha256(repr((_DEBIAN, flags)).encode()).hexdigest()[:16]
    archive = CACHE / "node" / f"base-{digest}" / "base.tar"
    if not archive.exists():
        with go.whole_or_nothing(archive.parent) as unfinished:
            _debootstrap(*flags, _DEBIAN, str(unfinished / archive.name))
    if _buildah("images", "--quiet", "--filter", f"label=base={digest}") == "":
        container = _buildah("from", "scratch")
        _buildah("add", "--quiet", container, str(archive))
        _buildah("config", f"--env={_PATH}", f"--label=base={digest}", container)
        _buildah("commit", "--quiet", "--rm", container, name)


def _debootstrap(*arguments: str) -> None:
    try:
        _run(["mmdebstrap", "--quiet", f"--aptopt={_RETRIES}", *arguments])
    except BuildError as failure:
        if debian.is_unreachable(str(failure)):
            raise Impossible(f"Debian's packages for an image cannot be had: {failure}") from None
        raise


def _bud(context: Path, name: str, *options: str) -> None:
    _buildah("bud", "--quiet", "--layers", "--pull-never", f"--tag={name}", *options, str(context))


def _buildah(command: str, *arguments: str) -> str:
    storage = CACHE / "node" / "storage"
    folders = [f"--root={storage}", f"--runroot={storage}-run"]
    return _run(["buildah", *folders, command, *arguments], BUILDAH_ISOLATION="chroot")


def _run(command: Sequence[str], **variables: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)}: {done.stderr[-4000:]}{done.stdout[-4000:]}")
    return done.stdout.strip()


def _forget_older_than(moment: float) -> None:
    for folder in (CACHE / "node").glob("images-*"):
        if folder.stat().st_mtime < moment:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    try:
        prepare_machine()
        everything()
    except Impossible as why:
        say(f"no nodes on this machine: {why}")
        return IMPOSSIBLE
    except BuildError as error:
        say(f"error: {error}")
        return 1
    say(f"The programs and images of the nodes are in {CACHE / 'node'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
