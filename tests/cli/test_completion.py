"""`gpu-webhook completion`: bash is asked what it would complete, by function and by key."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from webhook.cli.commands import COMPLETE, commands

if TYPE_CHECKING:
    from tests.cli.conftest import Command

pytestmark = pytest.mark.programs

_ASK = r"""
source completion.bash
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}}-1))
compopt() {{ echo "compopt $2"; }}
_gpu_webhook_completion gpu-webhook
for word in "${{COMPREPLY[@]}}"; do printf '%s\n' "$word"; done
"""
FILES, FOLDERS = ["compopt default"], ["compopt dirnames"]
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def completed(folder: Path, *words: str) -> list[str]:
    """What bash would offer for the last word of these as they are typed; a `=` is a word."""
    asked = _ASK.format(words=" ".join(map(shlex.quote, words)))
    done = subprocess.run(
        ["bash", "--norc", "-c", asked],
        cwd=folder,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        check=True,
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
        pytest.param([""], [*commands.commands], id="commands"),
        pytest.param(["mi"], ["migrate"], id="the rest of a command"),
        pytest.param(["--v"], ["--version"], id="a flag of the top"),
        pytest.param(["config", ""], ["check", "show", "schema", "match-conditions"], id="below"),
        pytest.param(["config", "show", "--na"], ["--namespace"], id="a flag two levels down"),
        pytest.param(["migrate", "--w"], ["--write"], id="a flag"),
        pytest.param(["scan", "--w"], [], id="a flag of another command"),
        pytest.param(["scan", "-o", "s"], ["sarif"], id="a choice"),
        pytest.param(["scan", "--output", "=", "j"], ["json", "junit"], id="after an ="),
        pytest.param(["scan", "--output", "="], None, id="right after an ="),
        pytest.param(["scan", "--rule", "GPU10"], None, id="codes"),
        pytest.param(["scan", "--rule", "leak"], ["leak-guard"], id="names of rules"),
        pytest.param(["explain", "never"], ["never-fits"], id="names as arguments"),
        pytest.param(["scan", "-f", "a\\ f"], FILES, id="files"),
        pytest.param(["scan", "a\\ f"], FILES, id="files as arguments"),
        pytest.param(["scan", "-k", "a\\ f"], FOLDERS, id="folders"),
        pytest.param(
            ["migrate", "-w", "a\\ folder", "--ex"], ["--exclude", "--exit-zero"], id="later"
        ),
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
    for name, command in commands.commands.items():
        # click keeps the help option of the first context in this process: it is not among these.
        options = [each for each in command.params if isinstance(each, click.Option)]
        flags = {"-h", "--help"} | {
            flag for param in options if not param.hidden for flag in param.opts
        }
        assert set(completed(folder, "gpu-webhook", name, "-")) == flags, name


def test_the_tab_key_of_an_interactive_bash_completes(folder: Path) -> None:
    """The whole way: readline, `complete -F`, blanks in names, and the blank after a whole word."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        shell = {"PATH": PATH, "TERM": "dumb", "PS1": "ready> "}
        os.execve(shutil.which("bash") or "", ["bash", "--norc", "-i"], shell)  # noqa: S606
    try:
        until(terminal, "ready> ")
        os.write(terminal, b"source completion.bash\n")
        until(terminal, "ready> ")
        os.write(terminal, b"gpu-webhook mig\t--wri\t-o sar\t-f a\\ fi\tx")
        until(terminal, "gpu-webhook migrate --write -o sarif -f a\\ file.yaml x")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def until(terminal: int, text: str) -> None:
    seen, end = "", time.monotonic() + 20
    while text not in seen.replace("\a", ""):
        ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
        assert ready, f"{text!r} did not come: {seen!r}"
        seen += os.read(terminal, 4096).decode()


@pytest.mark.parametrize(
    ("shell", "asked", "expected"),
    [
        pytest.param("zsh", ("gpu-webhook scan --rule GPU303", "3"), "plain\nGPU303\n", id="zsh"),
        pytest.param("fish", ("gpu-webhook scan --rule ", "GPU303"), "plain,GPU303\t", id="fish"),
    ],
)
def test_the_other_shells_are_told_what_a_word_means(
    shell: str,
    asked: tuple[str, str],
    expected: str,
    gpu_webhook: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """These shells are not everywhere: what they are answered is looked at as text."""
    assert f"{COMPLETE}={shell}_complete" in gpu_webhook("completion", shell).out
    for name, text in zip(("COMP_WORDS", "COMP_CWORD"), asked, strict=True):
        monkeypatch.setenv(name, text)
    monkeypatch.setenv(COMPLETE, f"{shell}_complete")
    ran = gpu_webhook()
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(expected)
    assert len(ran.out) > len(expected) + 10, "and its first line of help"


def test_a_shell_that_is_none_is_named(gpu_webhook: Command) -> None:
    ran = gpu_webhook("completion", "tcsh")
    assert (ran.code, ran.out) == (1, "")
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in ran.err
