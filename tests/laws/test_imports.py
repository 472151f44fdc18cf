"""Who may import whom: the contracts of pyproject.toml."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from webhook.cli.main import EXTRAS

ROOT = Path(__file__).parents[2]


def test_import_contracts() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_every_package_of_an_extra_is_known_where_one_is_missing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].items()
    listed = {name_of(line): extra for extra, lines in extras for line in lines}
    assert listed == EXTRAS


def name_of(requirement: str) -> str:
    """`prometheus-client>=0.22` is imported as prometheus_client."""
    return re.split("[^a-z0-9-]", requirement)[0].replace("-", "_")
