"""Programs of others beside the webhook: `python -m tests.node.operators` builds them, once.

cert-manager, Flux's kustomize-controller and Argo CD, with their own manifests. They are processes
of this machine, each with a kubeconfig of its own. Exits with 3 where nodes cannot run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests import debian
from tests.cluster import build as go
from tests.cluster.build import CACHE, TOOLS, BuildError, say
from tests.cluster.controlplane import ProgramDied
from tests.node import machine
from tests.node.build import IMPOSSIBLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CERT_MANAGER = "github.com/cert-manager/cert-manager"
_FLUX = "github.com/fluxcd/kustomize-controller"
_ARGO_CD = "github.com/argoproj/argo-cd/v3"
# Of Argo CD. Debian's redis-server would run at once; another package has the same program.
REDIS, _REDIS_PACKAGE = Path("/usr/bin/redis-check-rdb"), "redis-tools"
# What is built: from which of our modules, of which sources and package; and which folders of the
# module of theirs are copied beside the program.
_BUILT = {
    "cert-manager": (["main.go"], ".", _CERT_MANAGER, "deploy/charts/cert-manager"),
    "kustomize-controller": ([], _FLUX, _FLUX, "config/crd/bases"),
    "argo-cd": ([], f"{_ARGO_CD}/cmd", _ARGO_CD, "manifests"),
}


def folder(name: str) -> Path:
    """Give the folder where a program belongs, built or not."""
    digest = go.digest(TOOLS / name, sources=_BUILT[name][0])
    return CACHE / "operators" / f"{name}-{digest}"


def demand(name: str) -> None:
    """Skip the tests that need a program which is not built; in CI that is a failure."""
    if not folder(name).is_dir() or (name == "argo-cd" and not REDIS.exists()):
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up(f"{name} is not built: run `make operators`")


def program(name: str) -> Path:
    return folder(name) / name


def manifests(name: str) -> Path:
    """Give the folder with what the operator itself installs: its chart, or its kinds."""
    return folder(name) / "manifests"


def build(names: Iterable[str]) -> None:
    """Build what is not there."""
    for name in names:
        _, package, module, files = _BUILT[name]
        if folder(name).is_dir():
            continue
        tool = TOOLS / name
        with go.whole_or_nothing(folder(name)) as unfinished:
            made = go.built(unfinished / "made", {name: (tool, package)}) / name
            made.rename(unfinished / name)
            made.parent.rmdir()
            listed = [str(go.go(tool)), "list", "-m", "-f", "{{.Dir}}", module]
            said = subprocess.check_output(listed, cwd=tool, env=go.go_environment(), text=True)
            source = Path(said.strip(), files)
            shutil.copytree(source, unfinished / "manifests", copy_function=shutil.copyfile)
            for each in (unfinished / "manifests").rglob("*"):
                each.chmod(0o755 if each.is_dir() else 0o644)  # Go's cache is read-only


class Program:
    """A program that runs in the `with` block, on this machine."""

    def __init__(
        self, command: Sequence[str], kubeconfig: Path, log: Path, **variables: str
    ) -> None:
        self._command, self.log = command, log
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), **variables}

    def __enter__(self) -> Self:
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=self.log.parent,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        status = self._process.poll()
        self._process.kill()
        self._process.wait()
        last = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
        if status is not None:
            raise ProgramDied(f"{self._command[0]} ended with {status}: {last}") from error
        if kind is not None:
            sys.stderr.write(f"--- {self.log.name}\n{last}\n")


def main(names: Sequence[str]) -> int:
    if why := machine.lacks():
        say(f"no nodes on this machine, so nothing to run beside them: {why}")
        return IMPOSSIBLE
    try:
        build(names or _BUILT)
        if not REDIS.exists():
            debian.install([_REDIS_PACKAGE])
    except (BuildError, debian.NotInstalled) as error:
        say(f"error: {error}")
        return 1
    say(f"The programs of others are in {CACHE / 'operators'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
