"""README.md and docs/policy.md are true: the commands that need no cluster are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.installed import ROOT

pytestmark = pytest.mark.programs

PAGE = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
# test_demo.py runs the demo; the last block is what runs the tests.
DEMO, TRY_IT, MIGRATE, _TEST = BLOCKS
POLICY = (ROOT / "docs" / "policy.md").read_text()


def ran(line: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", line.replace(".venv/bin/", "")],
        cwd=folder,
        env=os.environ | {"PATH": programs},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


SAYS = {
    "review": (2, "GPU109"),
    "explain": (0, "GPU109"),
    "inventory": (0, "Tesla-V100"),
    "scan": (3, "GPU101"),
    "migrate": (3, "+        nvidia.com/gpu:"),
}
COMMANDS = [line for block in (TRY_IT, MIGRATE) for line in block.splitlines()][1:]


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.split()[1])
def test_a_command_of_the_readme_does_what_it_says(line: str) -> None:
    code, said = SAYS[line.split()[1]]
    done = ran(line)
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr


def test_the_readme_has_no_other_command() -> None:
    assert DEMO == "make demo\n"
    assert TRY_IT.startswith("make dev  ")
    assert [line.split()[1] for line in COMMANDS] == [*SAYS]


def test_the_modes_of_a_namespace_are_shown(tmp_path: Path) -> None:
    """With the settings above the command in docs/policy.md."""
    (command,) = re.findall(r"```sh\n(gpu-webhook .*?)```", POLICY, re.DOTALL)
    above = re.findall(r"```yaml\n(.*?)```", POLICY.partition(command)[0], re.DOTALL)
    (tmp_path / "settings.yaml").write_text(above[-1])
    done = ran(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^  GPU301 never-fits +\S+ +(enforce|warn)$", done.stdout, re.MULTILINE)
