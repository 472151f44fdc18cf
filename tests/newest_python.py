"""Runs all tests without a cluster on the newest Python: `python tests/newest_python.py [WORDS]`.

The project promises Python 3.11 and later, and the image has a later one than most developers: what
3.13 changed (it verifies certificates strictly, for one) is seen on 3.13 only. WORDS go to pytest.
Where no Python is newer than the one of .venv, the program says so, and fails in CI.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / ".venv" / "newest"
_NAME = re.compile(r"python3\.(\d+)")
_PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"


def newest() -> tuple[Path, tuple[int, int]] | None:
    """Give the newest Python beside the one that runs this, and its version; None if none is."""
    folders = [*map(Path, os.get_exec_path()), *_PYENV.glob("*/bin")]
    found = {path for folder in folders for path in folder.glob("python3.*") if is_name(path)}
    known = [(version, path) for path in sorted(found) if (version := version_of(path))]
    version, path = max(known, default=((0, 0), Path()))
    return (path, version) if version > sys.version_info[:2] else None


def is_name(path: Path) -> bool:
    """Whether this is a Python by its name, and not one of its tools (python3.13-config)."""
    return _NAME.fullmatch(path.name) is not None


def version_of(python: Path) -> tuple[int, int] | None:
    """Give what the program itself says: a shim may have no Python behind it."""
    words = [str(python), "-c", "import sys, venv, ssl; print(*sys.version_info[:2])"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    major, minor = done.stdout.split()
    return int(major), int(minor)


def make_environment(python: Path) -> Path:
    """Make or refresh the virtual environment of that Python; give its own Python."""
    inside = ENVIRONMENT / "bin" / "python"
    stamp = ENVIRONMENT / "made-from"
    wanted = f"{python}\n{(ROOT / 'requirements-dev.txt').read_text()}"
    if not stamp.is_file() or stamp.read_text() != wanted:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        subprocess.run([python, "-m", "venv", ENVIRONMENT], check=True)
        pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, "--require-hashes", "-r", "requirements-dev.txt"], cwd=ROOT, check=True
        )
        subprocess.run(
            [*pip, "--no-deps", "--no-build-isolation", "--editable", "."], cwd=ROOT, check=True
        )
        stamp.write_text(wanted)
    return inside


def main() -> int:
    found = newest()
    if found is None:
        sys.stderr.write("No Python newer than this one was found; the tests ran on it already.\n")
        return 1 if os.environ.get("CI") else 0
    python, (major, minor) = found
    sys.stderr.write(f"The tests without a cluster on Python {major}.{minor}\n")
    inside = make_environment(python)
    each = str(2 * (os.cpu_count() or 1))  # many tests wait
    parallel = ["-n", each, "--dist", "loadfile", "--no-loadscope-reorder"]
    words = sys.argv[1:] or [*parallel, "-m", "not cluster and not node and not slow"]
    return subprocess.run([inside, "-m", "pytest", "-q", *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
