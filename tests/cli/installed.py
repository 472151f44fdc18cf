"""The project as users get it: a built wheel in an empty virtual environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
    demand(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet")
    done = run(*pip, *packages, cwd=folder)
    assert done.returncode == 0, f"pip installs nothing from its package index: {done.stderr}"
    return folder / "bin"
