"""Where nodes cannot run, a line says why; a failure of ours has another exit code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cluster.build import BuildError
from tests.node import build, machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FAILED, _IMPOSSIBLE = 1, 3


def _no_root(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(os, "geteuid", lambda: 1000)


def _no_cgroups(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setattr(machine, "_CGROUPS", folder / "none")


def _only_cgroup_v2(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setattr(machine, "_CGROUPS", folder)
    (folder / "cgroup.procs").touch()


def _no_registry(patch: pytest.MonkeyPatch, folder: Path) -> None:
    apt = folder / "apt-get"
    apt.write_text("#!/bin/sh\necho E: Could not >&2; echo resolve deb.example >&2\nexit 100\n")
    apt.chmod(0o755)
    patch.setattr(machine, "lacks_itself", lambda: "")
    patch.setattr(machine, "PACKAGES", {"/none/here": "a-package"})
    patch.setenv("PATH", str(folder), prepend=os.pathsep)


def _no_apt(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setattr(machine, "lacks_itself", lambda: "")
    patch.setenv("PATH", str(folder))


def _no_kernel_module(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(machine, "lacks_itself", lambda: "")
    patch.setattr(machine, "missing_packages", list)
    patch.setattr(machine, "_NAMESPACES", ())
    patch.setattr(machine, "_PROBES", {"a module": "echo not known >&2; false"})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(_no_root, "root is needed", id="no root"),
        pytest.param(_no_cgroups, "no hierarchies of cgroup v1", id="no cgroups"),
        pytest.param(_only_cgroup_v2, "no hierarchies of cgroup v1", id="only cgroup v2"),
        pytest.param(
            _no_registry,
            "apt-get cannot install a-package: E: Could not resolve deb.example",
            id="a package is missing and Debian's registry cannot be reached",
        ),
        pytest.param(
            _no_apt, "there is no apt-get", id="packages are missing, and this is no Debian"
        ),
        pytest.param(
            _no_kernel_module, "forbids a module: not known", id="the kernel lacks a module"
        ),
    ],
)
def test_a_machine_that_cannot_run_nodes_is_told_from_a_failure(
    make: Callable[[pytest.MonkeyPatch, Path], None],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(monkeypatch, tmp_path)
    assert build.main() == _IMPOSSIBLE
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("no nodes on this machine: ")
    assert said in line


def test_a_build_that_fails_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise BuildError("go build failed")

    monkeypatch.setattr(build, "prepare_machine", lambda: None)
    monkeypatch.setattr(build, "everything", fails)
    assert build.main() == _FAILED
    assert "error: go build failed" in capsys.readouterr().err
