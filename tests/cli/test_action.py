"""action.yml: its steps, run by bash as a runner of GitHub runs them.

The upload is GitHub's own action and needs GitHub; what it is given is looked at.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.installed import ROOT, environment, python_without_ensurepip
from tests.cli.test_migrate import MIGRATED
from tests.cli.test_scan import CLEAN, LEGACY, MANUAL, put

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.programs, pytest.mark.slow]

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
TEMPLATED = LEGACY.replace("name: legacy", "name: {{ .Values.name }}", 1)
_EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}", re.DOTALL)


@dataclass
class Runner:
    """As much of a runner as the steps notice."""

    workspace: Path
    temporary: Path
    python: Path  # the folder of its python3
    inputs: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""

    def value(self, text: str) -> str:
        """What stands for ${{ ... }}."""

        def known(found: re.Match[str]) -> str:
            scope, _, name = found[1].partition(".")
            if scope == "inputs":
                return self.inputs[name]
            step, _, output = name.partition(".outputs.")
            assert (scope, step in {"scan", "fix"}) == ("steps", True), found[0]
            return self.outputs.get(output, "")

        return _EXPRESSION.sub(known, text)

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[name]
        assert step["shell"] == "bash"
        files = {key: self.temporary / key for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        given = {key: self.value(text) for key, text in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env=environment(
                PATH=f"{self.python}:{os.environ['PATH']}",
                RUNNER_TEMP=str(self.temporary),
                GITHUB_ACTION_PATH=str(ROOT),
                **{key: str(file) for key, file in files.items()},
                **given,
            ),
            capture_output=True,
            text=True,
            timeout=580,
            check=False,
        )
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        self.outputs |= dict(line.split("=", 1) for line in lines)
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        return done

    def whole(self) -> int:
        """All steps but the upload; the exit code of the last."""
        assert self.run("Scan").returncode == 0
        if self.inputs["fix"] == "true":
            assert self.run("Fix").returncode == 0
        return self.run("Judge").returncode


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("runner")
    python = python_without_ensurepip(tmp_path_factory.mktemp("python"))
    done = Runner(folder, folder, python, {}).run("Install")
    assert done.returncode == 0, done.stderr
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def runner(tmp_path: Path, installed: Path) -> Runner:
    inputs = {name: str(each["default"]) for name, each in ACTION["inputs"].items()}
    (tmp_path / ".git").mkdir()
    for report in installed.glob("*.md"):
        report.unlink()
    return Runner(tmp_path, installed, installed, inputs)


@pytest.mark.parametrize(
    ("files", "inputs", "code", "changed"),
    [
        pytest.param({"a": CLEAN}, {}, 0, None, id="clean"),
        pytest.param({"deep__a": LEGACY}, {}, 2, None, id="what can be fixed fails the job"),
        pytest.param({"a": MANUAL}, {}, 3, None, id="so does what needs manual changes"),
        pytest.param({"a": LEGACY}, {"fix": "true"}, 0, "true", id="fixed"),
        pytest.param({"a": CLEAN}, {"fix": "true"}, 0, "false", id="nothing to fix"),
        pytest.param({"a": LEGACY, "b": MANUAL}, {"fix": "true"}, 3, "true", id="half is fixed"),
        pytest.param({"a": LEGACY}, {"fix": "true", "verify": "true"}, 0, "true", id="proven"),
        pytest.param(
            {"a": LEGACY, "b": TEMPLATED},
            {"fix": "true", "verify": "true"},
            3,
            "true",
            id="what is not proven stays, and fails the job",
        ),
        pytest.param({"a": CLEAN}, {"paths": "gone"}, 1, None, id="an error"),
        pytest.param(
            {"a": MANUAL, "b c__d": LEGACY}, {"paths": "b c\n\n"}, 2, None, id="a path with blanks"
        ),
        pytest.param(
            {"a": CLEAN}, {"paths": "$(touch injected)\n-w"}, 1, None, id="paths are no commands"
        ),
    ],
)
def test_the_job_fails_when_it_should(
    files: dict[str, str],
    inputs: dict[str, str],
    code: int,
    changed: str | None,
    runner: Runner,
) -> None:
    put(runner.workspace, **files)
    runner.inputs |= inputs
    assert runner.whole() == code
    assert runner.outputs.get("changed") == changed
    assert not (runner.workspace / "injected").exists()
    for name, text in files.items():
        path = runner.workspace / f"{name.replace('__', '/')}.yaml"
        fixed = inputs.get("fix") == "true" and text == LEGACY
        assert path.read_text() == (MIGRATED if fixed else text)


@pytest.mark.parametrize(
    ("fail_on", "scanned"),
    [
        ("fixable", {"0": 0, "1": 1, "2": 2, "3": 3, "70": 70}),
        ("manual", {"0": 0, "1": 1, "2": 0, "3": 3, "70": 70}),
        ("never", {"0": 0, "1": 1, "2": 0, "3": 0, "70": 70}),
    ],
)
def test_what_the_job_makes_of_an_exit_code(
    fail_on: str, scanned: dict[str, int], runner: Runner
) -> None:
    runner.inputs["fail-on"] = fail_on
    for code, expected in scanned.items():
        runner.outputs = {"exit-code": code}
        assert runner.run("Judge").returncode == expected, code


def test_changed_is_true_only_if_a_file_was_written(runner: Runner) -> None:
    put(runner.workspace, a=LEGACY)
    (runner.workspace / "a.yaml").chmod(0o444)
    runner.inputs["fix"] = "true"
    assert runner.whole() == 1
    assert runner.outputs["changed"] == "false"
    assert (runner.workspace / "a.yaml").read_text() == LEGACY


OURS, FORK = "us/it", "them/it"
# The event's repositories (an empty text: a deleted one), and whether files are written.
EVENTS: dict[str, tuple[dict[str, str], bool]] = {
    "a push": ({}, True),
    "a pull request of a branch of ours": ({"pull_request": OURS}, True),
    "a pull request from a fork": ({"pull_request": FORK}, False),
    "a pull request from a fork that is deleted": ({"pull_request": ""}, False),
    "a workflow that our push started": ({"workflow_run": OURS}, True),
    "a workflow that a fork's pull request started": ({"workflow_run": FORK}, False),
}


@pytest.mark.parametrize(("event", "fixes"), EVENTS.values(), ids=EVENTS)
def test_what_forks_propose_is_never_written(event: dict[str, str], *, fixes: bool) -> None:
    values = {
        "inputs.fix": "true",
        "github.repository": OURS,
        "github.event.pull_request": "pull_request" in event,
        "github.event.workflow_run": "workflow_run" in event,
        "github.event.pull_request.head.repo.full_name": event.get("pull_request"),
        "github.event.workflow_run.head_repository.full_name": event.get("workflow_run"),
    }
    told = _EXPRESSION.fullmatch(" ".join(STEPS["Fix"]["if"].split()))
    assert told
    words = re.sub(r"[a-z]+(\.[a-z_]+)+", lambda name: repr(values[name[0]]), told[1])
    for sign, word in (("&&", "and"), ("||", "or"), ("!", "not ")):
        words = words.replace(sign, word)
    assert eval(words) is fixes  # noqa: S307  # our own expression


def test_lines_report_and_summary(runner: Runner) -> None:
    put(runner.workspace, deploy__a=LEGACY)
    scanned = runner.run("Scan")
    assert "::warning file=deploy/a.yaml,line=11," in scanned.stdout
    assert "deploy/a.yaml" in runner.summary
    assert "GPU101" in runner.summary
    sarif: dict[str, Any] = json.loads((runner.workspace / "gpu-migrate.sarif").read_text())
    assert sarif["runs"][0]["results"][0]["ruleId"] == "GPU101"


def test_the_upload_is_given_the_report_and_every_input_is_used() -> None:
    upload = STEPS["Report"]
    assert upload["uses"].startswith("github/codeql-action/upload-sarif@")
    assert upload["with"]["sarif_file"] == "${{ inputs.sarif-file }}"
    text = (ROOT / "action.yml").read_text().partition("\nruns:")[2]
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(ACTION["inputs"])


def test_no_input_stands_in_a_script() -> None:
    """What is put into a script is run: `paths: $(...)` of a pull request must not be."""
    for step in STEPS.values():
        assert "${{" not in step.get("run", "")
