"""The project as users get it: a built wheel in an empty virtual environment."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from importlib.metadata import Distribution

ROOT = Path(__file__).parents[2]
NAME = "gpu-admission-webhook"
_OURS = ("GPU_WEBHOOK_", "PYTHON", "VIRTUAL_ENV", "GIT_", "COV_")


def environment(**more: str) -> dict[str, str]:
    """What a user's shell has: nothing of this test run."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
    # What is not run needs no bytecode: that of all packages takes longer than to unpack them.
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1", **more}


def run(*words: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program; whether it did well is for the caller to say."""
    return subprocess.run(
        words,
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )


def demand(*words: str | Path, cwd: Path, **more: str) -> str:
    """Run a program that must do well; give what it prints."""
    done = run(*words, cwd=cwd, **more)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def wheel(folder: Path) -> Path:
    """Build the wheel of this checkout with what is installed here: no network."""
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet")
    demand(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def empty_environment(folder: Path, *packages: str | Path) -> Path:
    """Make a virtual environment with these alone, from the package index; give its bin/."""
    programs = _bare_environment(folder)
    done = _pip(programs, "install", "--quiet", *packages)
    assert done.returncode == 0, f"pip installs nothing from its package index: {done.stderr}"
    return programs


def declared_environment(folder: Path, built: Path) -> Path:
    """The same with the wheel and what it declares, linked from this Python's packages.

    To ask the package index for 45 packages takes more time than many hundreds of tests.
    """
    programs = _bare_environment(folder)
    done = _pip(programs, "install", "--quiet", "--no-deps", "--no-index", built)
    assert done.returncode == 0, done.stderr
    link(packages_of(programs), *_declared(programs))
    return programs


def with_extras(folder: Path, programs: Path, *extras: str) -> dict[str, str]:
    """What it declares with these extras, in a folder; give the variable that adds them."""
    link(folder, *_declared(programs, *extras))
    return {"PYTHONPATH": str(folder)}


def packages_of(programs: Path) -> Path:
    (packages,) = programs.parent.glob("lib/python*/site-packages")
    return packages


def _declared(programs: Path, *extras: str) -> list[Distribution]:
    (ours,) = distributions(path=[str(packages_of(programs))], name=NAME)
    return _required(ours, *extras)


def link(folder: Path, *packages: Distribution) -> None:
    """Put these packages of this Python into a folder; their programs stay where they are."""
    for each in packages:
        for name in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            there = folder / name
            assert not there.exists(), f"{each.name} shares {name} with another package"
            there.symlink_to(Path(str(each.locate_file(name))))


def _required(start: Distribution, *extras: str) -> list[Distribution]:
    """All that this distribution and those that it requires require, as they are installed here."""
    found: dict[str, Distribution] = {}
    to_ask = [(start, ("", *extras))]
    for each, wanted in to_ask:
        for required in map(Requirement, each.requires or ()):
            marker, name = required.marker, canonicalize_name(required.name)
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in wanted):
                found.setdefault(name, distribution(name))
                asked = (found[name], ("", *sorted(required.extras)))
                to_ask += [asked] if asked not in to_ask else []
    return list(found.values())


def unmet(programs: Path, **more: str) -> str:
    """What the packages of an environment require and is not there; nothing if all is."""
    done = _pip(programs, "check", **more)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def python_without_ensurepip(folder: Path) -> Path:
    """A `python3` whose `-m venv` makes an environment with the pip of this one.

    ensurepip compiles pip, which takes longer than to install all that we require.
    """
    pip = Path(str(distribution("pip").locate_file("pip")))
    program = folder / "python3"
    program.write_text(
        f'#!/bin/sh -e\n[ "$1 $2" = "-m venv" ] || exec {sys.executable} "$@"\n'
        f'{sys.executable} -m venv --without-pip "$3"\n'
        f'ln -s {pip} "$3"/lib/python*/site-packages\n'
    )
    program.chmod(0o755)
    return folder


def of_building(folder: Path) -> dict[str, str]:
    """What pip needs to build and install our package without the package index, in a folder.

    Give the variables that make it do so: test_action.py installs what it requires from there.
    """
    link(folder, distribution("flit_core"), *_required(distribution(NAME)))
    return {
        "PYTHONPATH": str(folder),
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # that is how pip reads this one: there is none
    }


def _bare_environment(folder: Path) -> Path:
    """Without pip: it takes longer to install than all the rest."""
    demand(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    return folder / "bin"


def _pip(programs: Path, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    pip = (sys.executable, "-m", "pip", "--python", programs / "python")
    return run(*pip, *words, cwd=programs, **more)
