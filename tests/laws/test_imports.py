"""Who may import whom: the contracts of pyproject.toml."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp

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


def test_only_the_evaluator_calls_the_engine() -> None:
    """So opt-outs, the order of stages and what counts as stuck are decided in one place."""
    graph = grimp.build_graph("webhook", cache_dir=None)
    callers = graph.find_modules_that_directly_import("webhook.evaluation.engine")
    assert callers == {"webhook.evaluation.evaluate"}
