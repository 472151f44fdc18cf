from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_scan import LEGACY
from webhook import __version__
from webhook.cli import explain
from webhook.cli.main import main
from webhook.rules import ALL

if TYPE_CHECKING:
    from tests.cli.conftest import Command

pytestmark = pytest.mark.programs

README = Path(__file__).parents[2] / "README.md"


def test_the_installed_command_and_the_module_are_the_same() -> None:
    installed = Path(sys.executable).with_name("gpu-webhook")
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for command in (
            [str(installed), "--version"],
            [sys.executable, "-m", "webhook", "--version"],
        )
    ]

    assert said == [f"gpu-webhook {__version__}\n"] * 2


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = f"{sys.executable} -m webhook explain | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)

    assert (done.stdout.count("\n"), done.stderr) == (1, "")


@pytest.mark.parametrize("words", ["scan -f pod.yaml", "scan -o json -f pod.yaml", "explain"])
def test_a_closed_output_never_says_that_nothing_was_found(words: str, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(LEGACY)
    command = [sys.executable, "-m", "webhook", *words.split()]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()
        assert b"Traceback" not in done.stderr.read()
    assert done.returncode == 141  # 128 and SIGPIPE


FULL = Path("/dev/full")
_NO_SPACE = "gpu-webhook: the output cannot be written: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize(
    "words",
    [
        "scan pod.yaml",
        "scan -o json pod.yaml",
        "migrate pod.yaml",
        "review -f pod.yaml",
        "review -o yaml -f pod.yaml",
        "explain",
        "explain GPU101",
        "config show",
        "config show -o json",
        "config schema",
        "completion bash",
    ],
)
def test_a_full_disk_is_told_in_one_line(words: str, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(LEGACY)
    done, err = on_a_full_disk(words, tmp_path)
    assert done == 1
    assert err.splitlines(keepends=True)[-1] == _NO_SPACE
    assert "Traceback" not in err
    assert "Exception ignored" not in err


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize("more", ["", "-o json", "--output-file json=/dev/full"])
def test_what_is_written_is_told_though_the_report_cannot_be(more: str, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(LEGACY)
    done, err = on_a_full_disk(f"migrate -w {more} pod.yaml", tmp_path)
    assert done == 1
    assert err.startswith("gpu-webhook: pod.yaml is written\ngpu-webhook: ")
    assert "Traceback" not in err
    assert "alpha.kubernetes.io" not in (tmp_path / "pod.yaml").read_text()


def on_a_full_disk(words: str, folder: Path) -> tuple[int, str]:
    with FULL.open("w") as full:
        command = [str(Path(sys.executable).with_name("gpu-webhook")), *words.split()]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=folder
        )
    return done.returncode, done.stderr


def test_an_output_that_is_closed_is_no_fault_of_ours(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(LEGACY)
    command = f"{Path(sys.executable).with_name('gpu-webhook')} scan pod.yaml >&-"
    done = subprocess.run(
        ["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path
    )
    said = "gpu-webhook: the output is closed and cannot be written\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_where_stderr_is_closed_its_words_are_not_among_the_data(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(LEGACY)
    program = Path(sys.executable).with_name("gpu-webhook")
    printed = [
        subprocess.run(
            ["sh", "-c", f"{program} migrate pod.yaml {closed}"],
            capture_output=True,
            check=False,
            cwd=tmp_path,
        ).stdout
        for closed in ("2>&-", "")
    ]
    assert printed[0] == printed[1] != b""


@pytest.mark.parametrize(
    "words",
    [
        *(["migrate", "-w", ""], ["migrate", "-w", "-R", "-f", ""], ["migrate", "-w", "-k", ""]),
        *(["review", "-f", ""], ["scan", "pod.yaml", "--config", ""]),
    ],
    ids=" ".join,
)
def test_an_empty_name_is_not_the_folder_that_one_is_in(
    words: list[str], gpu_webhook: Command, tmp_path: Path
) -> None:
    """A variable of the shell that is not set: every file here would be rewritten."""
    (tmp_path / "pod.yaml").write_text(LEGACY)
    done = gpu_webhook(*words)
    assert (done.code, done.out) == (1, "")
    assert "The name is empty. Is a shell variable not set?" in done.err
    assert (tmp_path / "pod.yaml").read_text() == LEGACY


@pytest.mark.parametrize("word", ["--version", "version"])
def test_version(word: str, gpu_webhook: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_WEBHOOK_VERSION", "1.2.3")  # as an install script may set it
    assert gpu_webhook(word) == (0, f"gpu-webhook {__version__}\n", "")


def test_the_help_in_the_readme_is_the_help(
    gpu_webhook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    block = re.search(r"<!-- help:.*?-->\n```\n(.*?)```", README.read_text(), re.DOTALL)

    assert block is not None
    assert gpu_webhook("--help").out == block[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param([], "Commands:\n", id="no command"),
        pytest.param(
            ["scna"], "No such command 'scna'. Did you mean 'scan'?", id="no such command"
        ),
        pytest.param(["review"], "Missing option '-f' / '--filename'", id="no file"),
        pytest.param(["scna", "--help"], "Did you mean 'scan'?", id="help of no command"),
        pytest.param(["scan", "--exlude=x"], "Did you mean one of: '--exclude'", id="no such flag"),
        pytest.param(["--verison"], "Did you mean '--version'?", id="no such flag of the top"),
        pytest.param(
            ["review", "-f", "x", "-o", "xml"],
            "Invalid value for '-o' / '--output': 'xml' is not one of 'text', 'json', 'yaml'",
            id="no format",
        ),
        pytest.param(["explain", "GPU999"], "there is no rule 'GPU999'", id="no such rule"),
        pytest.param(
            ["config", "match-conditions", "--config", "no.yaml"],
            "no.yaml: cannot be read",
            id="no such settings",
        ),
    ],
)
def test_bad_usage_exits_with_1_and_says_what(
    words: list[str], said: str, gpu_webhook: Command
) -> None:
    done = gpu_webhook(*words)

    assert done.code == 1
    assert said in done.err
    assert done.out == ""


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.CODE)
def test_explain_prints_the_manual_by_code_and_by_name(rule: object, gpu_webhook: Command) -> None:
    code, name = getattr(rule, "CODE", ""), getattr(rule, "NAME", "")
    manual = (rule.__doc__ or "").strip()

    assert gpu_webhook("explain", code.lower()).out == f"{code} {name}\n\n{manual}\n"
    assert gpu_webhook("explain", name).out == f"{code} {name}\n\n{manual}\n"


def test_explain_without_a_code_lists_all(gpu_webhook: Command) -> None:
    assert len(gpu_webhook("explain").out.splitlines()) == len(ALL)


def test_a_fault_of_the_program_is_one_line_that_can_be_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_args: object) -> int:
        raise ValueError("of our making")

    monkeypatch.setattr(explain, "run", fails)
    assert main(["explain"]) == 70
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(
        r"gpu-webhook: a bug in this program, in `explain` \(test_main\.py:\d+: ValueError: of "
        r"our making\); please report this line, .*\n",
        printed.err,
    )


@pytest.mark.parametrize("name", ["WRITE", "UNSAFE", "CHECK", "FILENAME", "KUSTOMIZE"])
@pytest.mark.parametrize("prefix", ["GPU_WEBHOOK_", "GPU_WEBHOOK_MIGRATE_"])
def test_no_variable_turns_a_look_into_a_change(
    prefix: str,
    name: str,
    tmp_path: Path,
    gpu_webhook: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(LEGACY)
    before = gpu_webhook("migrate", str(file))
    monkeypatch.setenv(f"{prefix}{name}", "1")
    assert gpu_webhook("migrate", str(file)) == before
    assert file.read_text() == LEGACY
