"""The release: its workflow and our GitHub Action are valid and safe; krew gets what is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from string import Template

import yaml

from tests.cluster import build

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
_ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint"


def _quiet(*words: str | Path) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_are_valid() -> None:
    program = build.program(build.TOOLS / "actionlint", package=_ACTIONLINT)
    _quiet(program, "-no-color", "-shellcheck=", "-pyflakes=", *WORKFLOWS.iterdir())


def test_actions_are_pinned_and_no_text_of_others_is_run() -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    _quiet(zizmor, "--offline", "--no-progress", "--color=never", WORKFLOWS, ROOT / "action.yml")


def test_the_manifest_for_krew_has_each_program_that_the_workflow_builds() -> None:
    workflow = yaml.safe_load((WORKFLOWS / "release.yaml").read_text())
    built = {
        (each["os"], each["arch"])
        for each in workflow["jobs"]["plugin"]["strategy"]["matrix"]["include"]
    }
    sums = {f"SHA256_{os}_{arch}".upper(): f"{os}-{arch}" for os, arch in built}
    text = Template((ROOT / ".krew.yaml").read_text())
    spec = yaml.safe_load(text.substitute(sums, GITHUB_REF_NAME="v1.2.3", HOMEPAGE="https://h"))[
        "spec"
    ]
    named = {tuple(each["selector"]["matchLabels"].values()) for each in spec["platforms"]}
    assert named == built
    for each in spec["platforms"]:
        archive = f"https://h/releases/download/v1.2.3/gpu-migrate-{each['sha256']}.tar.gz"
        assert each["uri"] == archive
