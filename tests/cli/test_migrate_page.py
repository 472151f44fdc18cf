"""docs/migrate.md is true: its sessions are run, in order, and its examples are legal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.installed import ROOT
from webhook import __version__
from webhook.cli.flags import FORMATS

pytestmark = pytest.mark.programs

FILE = ROOT / "docs" / "migrate.md"
PAGE = FILE.read_text()
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
EXAMPLES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]

QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata:
  name: vision
spec:
  hard:
    requests.alpha.kubernetes.io/nvidia-gpu: 4
"""
NOTES = """\
# Train it

```sh
cat <<EOF | kubectl create -f -
apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
  containers:
  - name: cuda
    image: registry.example/cuda
    resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}
EOF
kubectl wait --for=condition=Ready pod/once
kubectl logs --follow once
```
"""


def trainer() -> str:
    """The manifest that the page begins with."""
    shown = re.search(r"\$ cat deploy/trainer.yaml\n(.*?)\$ ", PAGE, re.DOTALL)
    assert shown is not None
    return shown[1]


def test_the_sessions_are_what_happens(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = tmp_path / "deploy"
    folder.mkdir()
    (folder / "trainer.yaml").write_text(trainer())
    (folder / "quota.yaml").write_text(QUOTA)
    (folder / "notes.md").write_text(NOTES)

    hold_true(FILE, tmp_path, request)


def hold_true(page: Path, folder: Path, request: pytest.FixtureRequest) -> None:
    """Run the sessions that the page shows, in order, and compare what they print."""

    def ran(block: re.Match[str]) -> str:
        commands = re.findall(r"^\$ (.*)$", block[1], re.MULTILINE)
        return f"```console\n{session(commands, folder)}```"

    shown = page.read_text()
    made = _BLOCK.sub(ran, shown)
    if request.config.getoption("--update-golden"):
        page.write_text(made)
    assert made == shown


def session(commands: list[str], folder: Path) -> str:
    """Run the commands in one shell; give what a terminal would show."""
    lines = [f"echo {quoted(f'$ {each}')}\n(exit $code)\n{each}\ncode=$?" for each in commands]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(["exec 2>&1; code=0", *lines])],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_every_format_is_counted() -> None:
    assert "nine formats" in PAGE
    assert len(FORMATS) == 9


def test_the_example_for_pre_commit_names_a_hook_that_there_is() -> None:
    (example,) = (each for each in EXAMPLES if "repos" in each)
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (repository,) = example["repos"]
    assert {each["id"] for each in repository["hooks"]} <= {each["id"] for each in hooks}
    assert repository["rev"] == f"v{__version__}"
    for each in hooks:
        assert f"`{each['id']}`" in PAGE


def test_the_example_for_actions_gives_inputs_that_there_are() -> None:
    (example,) = (each for each in EXAMPLES if "jobs" in each)
    step = example["jobs"]["gpu"]["steps"][-1]
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert step["uses"].endswith(f"@v{__version__}")
    assert set(step["with"]) <= set(action["inputs"])


def test_other_commands_are_tested_where_they_can_be_run() -> None:
    """Those for a cluster and those of shells: tests/cluster and test_completion.py run them."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    commands = {line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()}
    assert commands == {
        "pip install gpu-admission-webhook",
        "gpu-webhook scan --cluster --all-namespaces",
        "kubectl gpu-migrate -f deploy/",
        "kubectl gpu-migrate scan --cluster --all-namespaces",
        "kubectl get deployment trainer -o yaml | kubectl gpu-migrate -f - | kubectl apply -f -",
        "source <(gpu-webhook completion bash)",
    }
