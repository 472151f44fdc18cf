"""The 25 instructive patterns of real manifests, each written anew: what becomes of them.

`patterns/NN-name.*`, with `.fixed` where a new text is due, and `.findings.txt` with what is said:
line, status and code. To write them anew: python -m tests.formats.test_patterns
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from webhook.files.results import FileResult

PATTERNS = Path(__file__).parent / "patterns"
FIXED, FINDINGS = ".fixed", ".findings.txt"
CURES = ("write", "delete", "correct", "leave", "indent", "move", "check", "add ")


def inputs() -> list[Path]:
    return sorted(file for file in PATTERNS.iterdir() if not file.name.endswith((FIXED, FINDINGS)))


def migrated(name: str, text: str) -> FileResult:
    return migrate_text(Source.of_text(name, text), Plan())


def findings(result: FileResult) -> str:
    said = {f"{each.place.line} {each.status} {each.code}" for each in result.located}
    return "".join(
        f"{line}\n" for line in sorted(said, key=lambda line: (int(line.split()[0]), line))
    )


def test_all_25_are_here() -> None:
    assert [int(file.name[:2]) for file in inputs()] == list(range(1, 26))


@pytest.mark.parametrize("file", inputs(), ids=lambda file: file.name)
def test_it_becomes_what_it_should(file: Path) -> None:
    result = migrated(file.name, file.read_text())
    fixed = Path(f"{file}{FIXED}")
    assert result.error == ""
    assert (result.new_text is not None) is fixed.exists()
    if result.new_text is not None:
        assert result.new_text == fixed.read_text()
    assert findings(result) == Path(f"{file}{FINDINGS}").read_text()


@pytest.mark.parametrize("file", inputs(), ids=lambda file: file.name)
def test_every_finding_names_a_line_with_what_it_is_about_and_a_cure(file: Path) -> None:
    result = migrated(file.name, file.read_text())
    assert result.located
    for each in result.located:
        assert 1 <= each.place.line <= result.text.count("\n")
        assert any(word in each.message for word in CURES)


@pytest.mark.parametrize("file", inputs(), ids=lambda file: file.name)
def test_a_second_run_changes_nothing(file: Path) -> None:
    result = migrated(file.name, file.read_text())
    assert migrated(file.name, result.new_text or result.text).new_text is None


@pytest.mark.parametrize("file", inputs(), ids=lambda file: file.name)
def test_a_windows_file_keeps_its_line_ends_and_says_the_same(file: Path) -> None:
    unix, windows = (
        migrated(file.name, file.read_text().replace("\n", ends)) for ends in ("\n", "\r\n")
    )
    assert (windows.new_text or "").replace("\r\n", "\n") == (unix.new_text or "")
    assert findings(windows) == findings(unix)


def test_what_a_person_must_do_is_never_done_in_part() -> None:
    for name in ("01", "05", "06", "09", "10", "19"):
        file = next(each for each in inputs() if each.name.startswith(name))
        result = migrated(file.name, file.read_text())
        assert result.new_text is None, file.name
        assert any(each.status is Status.MANUAL for each in result.located), file.name


if __name__ == "__main__":
    for each in inputs():
        made = migrated(each.name, each.read_text())
        Path(f"{each}{FINDINGS}").write_text(findings(made))
        if made.new_text is not None:
            Path(f"{each}{FIXED}").write_text(made.new_text)
        lines = made.text.splitlines(), (made.new_text or made.text).splitlines()
        print(each.name, *difflib.unified_diff(*lines, n=0, lineterm=""), sep="\n")  # noqa: T201
