"""`gpu-webhook completion`: bash is asked what it would complete, by function and by key."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from webhook.cli.main import main, parser

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

_ASK = r"""
source completion.bash
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}}-1))
_gpu_webhook 2>/dev/null
for word in "${{COMPREPLY[@]}}"; do printf '%s\n' "$word"; done
"""
COMMANDS = ["serve", "watch", "review", "explain", "inventory", "scan", "migrate", "config"]


def completed(folder: Path, *words: str) -> list[str]:
    """What bash would offer for the last word; a word `=` is one of its own, as bash has it."""
    asked = _ASK.format(words=" ".join(map(shlex.quote, words)))
    done = subprocess.run(
        ["bash", "--norc", "-c", asked], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.fixture
def folder(tmp_path: Path, gpu_webhook: Command) -> Path:
    (tmp_path / "completion.bash").write_text(gpu_webhook("completion", "bash").out)
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a file.yaml").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param([""], [*COMMANDS, "completion"], id="commands"),
        pytest.param(["mi"], ["migrate"], id="the rest of a command"),
        pytest.param(["--v"], ["--version"], id="a flag of the top"),
        pytest.param(["config", ""], ["check", "show", "schema", "match-conditions"], id="below"),
        pytest.param(["config", "show", "--na"], ["--namespace"], id="a flag two levels down"),
        pytest.param(["migrate", "--w"], ["--write"], id="a flag"),
        pytest.param(["scan", "--w"], [], id="a flag of another command"),
        pytest.param(["scan", "-o", "s"], ["sarif"], id="a choice"),
        pytest.param(["scan", "--output", "=", "j"], ["json", "junit"], id="after an ="),
        pytest.param(["scan", "--output", "="], None, id="right after an ="),
        pytest.param(["scan", "--output-file", "h"], ["html="], id="a format with a file to come"),
        pytest.param(["scan", "--rule", "GPU10"], None, id="codes"),
        pytest.param(["scan", "--rule", "leak"], ["leak-guard"], id="names of rules"),
        pytest.param(["explain", "never"], ["never-fits"], id="names as arguments"),
        pytest.param(["scan", "-f", "a f"], ["a folder", "a file.yaml"], id="files, with blanks"),
        pytest.param(["scan", "a f"], ["a folder", "a file.yaml"], id="files as arguments"),
        pytest.param(["scan", "-k", "a f"], ["a folder"], id="folders"),
        pytest.param(["scan", "-w", "a folder", "--ex"], ["--exclude", "--exit-zero"], id="later"),
        pytest.param(["serve", "--bind", ""], [], id="a value that no shell can know"),
        pytest.param(["completion", "z"], ["zsh"], id="choices as arguments"),
    ],
)
def test_bash_completes(words: list[str], expected: list[str] | None, folder: Path) -> None:
    found = completed(folder, "gpu-webhook", *words)
    if expected is None:
        assert len(found) > 5
        assert all(word.startswith(words[-1].strip("=")) for word in found)
    else:
        assert sorted(found) == sorted(expected)


def test_every_flag_of_every_command_is_completed(folder: Path) -> None:
    for name, command in parser()._subparsers._group_actions[0].choices.items():  # type: ignore[union-attr]
        flags = {flag for action in command._actions for flag in action.option_strings}
        assert set(completed(folder, "gpu-webhook", name, "-")) == flags, name


def test_the_tab_key_of_an_interactive_bash_completes(folder: Path) -> None:
    """The whole way: readline, `complete -F`, and the blank after a word that is whole."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        shell = {"PATH": os.environ["PATH"], "TERM": "dumb", "PS1": "ready> "}
        os.execve(shutil.which("bash") or "", ["bash", "--norc", "-i"], shell)  # noqa: S606
    try:
        until(terminal, "ready> ")
        os.write(terminal, b"source completion.bash\n")
        until(terminal, "ready> ")
        os.write(terminal, b"gpu-webhook mig\t--wri\t-o sar\t--output-file ht\tx")
        until(terminal, "gpu-webhook migrate --write -o sarif --output-file html=x")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def until(terminal: int, text: str) -> None:
    seen, end = "", time.monotonic() + 20
    while text not in seen.replace("\a", ""):
        ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
        assert ready, f"{text!r} did not come: {seen!r}"
        seen += os.read(terminal, 4096).decode()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_every_command_and_flag(shell: str, gpu_webhook: Command) -> None:
    """These shells are not everywhere: what they would be told is looked at as text."""
    script = gpu_webhook("completion", shell).out
    for name, command in parser()._subparsers._group_actions[0].choices.items():  # type: ignore[union-attr]
        assert name in script
        for action in command._actions:
            for flag in action.option_strings:
                dashes = {
                    "zsh": flag,
                    "fish": f"-l {flag[2:]}" if flag[1] == "-" else f"-s {flag[1]}",
                }
                assert dashes[shell] in script, f"{name} {flag}"


def test_a_shell_that_is_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["completion", "tcsh"])
    assert done.value.code == 1
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
