"""The text report: carets under the very characters, nothing that acts on a terminal, colours."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given

from tests.reports import report_samples
from tests.reports.report_strategies import FEW
from tests.reports.report_strategies import REPORTS as DRAWN
from webhook.cli import report_console
from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports.escaping import relative_uri, sentence, storable, visible
from webhook.reports.excerpt import Lines
from webhook.reports.text import Style, diff_segments, marked, segments, text, wide
from webhook.yamlpatch.places import Place, Replacement


def _lines(source: str, words: str) -> list[str]:
    excerpts = Lines(source).around(report_samples.place(source, words))
    pieces = [piece.text for each in excerpts for piece in marked(each, 1, Style.PLAIN)]
    return "".join(pieces).splitlines()


@pytest.mark.parametrize(
    ("source", "words", "expected"),
    [
        pytest.param("key: 1", "key", ["1 | key: 1", "  | ^^^"], id="at the line's begin"),
        pytest.param("a\n  b: 2\n", "b", ["2 |   b: 2", "  |   ^"], id="in the second line"),
        pytest.param("\tk: v", "k", ["1 |     k: v", "  |     ^"], id="behind a tab"),
        pytest.param("显卡: gpu", "gpu", ["1 | 显卡: gpu", "  |       ^^^"], id="after wide ones"),
        pytest.param("a: 显卡", "显卡", ["1 | a: 显卡", "  |    ^^^^"], id="under wide letters"),
        pytest.param("e\u0301: x", "x", ["1 | e\u0301: x", "  |    ^"], id="after an accent"),
        pytest.param("\x1b[1mk: v", "v", [r"1 | \x1b[1mk: v", "  |           ^"], id="an escape"),
        pytest.param("k: v\r\nl: w", "v\r", ["1 | k: v", "  |    ^"], id="before CRLF"),
        pytest.param("a:\n  b: 1", "a:\n  b", ["1 | a:", "  | ^^"], id="over two lines"),
        pytest.param("key: ", " ", ["1 | key: ", "  |     ^"], id="under a space"),
    ],
)
def test_carets_are_below_what_is_meant(source: str, words: str, expected: list[str]) -> None:
    assert _lines(source, words) == expected


def test_a_long_line_is_cut_around_what_is_meant() -> None:
    source = "x" * 5_000 + "HERE" + "y" * 5_000
    line, carets = _lines(source, "HERE")
    assert len(line) < 200
    start = carets.index("^")
    assert line[start : carets.rindex("^") + 1] == "HERE"


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(Place(99, 1, 99, 2), id="a line that does not exist"),
        pytest.param(Place(1, 99, 1, 120), id="a column that does not exist"),
        pytest.param(Place(1, 3, 1, 1), id="an end before the begin"),
        pytest.param(Place(0, 0, 0, 0), id="nothing"),
    ],
)
def test_a_place_that_is_wrong_breaks_nothing(place: Place) -> None:
    assert len(list(Lines("key: 1").around(place))) == 1


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        pytest.param("plain é 显卡 🙂", "plain é 显卡 🙂", id="what can be read stays"),
        pytest.param("\x1b[2J\x07", r"\x1b[2J\x07", id="terminal escapes"),
        pytest.param("a\u202egnp", r"a\u202egnp", id="text turned around"),
        pytest.param("a\u200bb\u00ad", r"a\u200bb\xad", id="what cannot be seen"),
        pytest.param("a\u2028b\x85c", r"a\u2028b\x85c", id="line ends of Unicode"),
        pytest.param("\udcff", r"\udcff", id="a byte of a name that is no UTF-8"),
    ],
)
def test_what_would_act_is_written_out(given_text: str, expected: str) -> None:
    assert visible(given_text) == expected


def test_a_message_is_one_line() -> None:
    assert sentence("while parsing\n  in line 3,\tcolumn 2") == "while parsing in line 3, column 2"


def test_only_what_cannot_be_encoded_is_replaced_where_all_else_can_be() -> None:
    assert storable("a\n\x00\u202e\ud800") == "a\n\x00\u202e\\ud800"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("./a b/c#d?.yaml", "a%20b/c%23d%3F.yaml", id="signs of a URI"),
        pytest.param("100%.yaml", "100%25.yaml", id="a percent sign"),
        pytest.param("显.yaml", "%E6%98%BE.yaml", id="letters"),
        pytest.param("\udcff.yaml", "%FF.yaml", id="a byte that is no UTF-8"),
        pytest.param("\ud800.yaml", "%5Cud800.yaml", id="a surrogate that is no byte"),
        pytest.param("a:b.yaml", "a%3Ab.yaml", id="a colon, which is no scheme"),
    ],
)
def test_a_path_is_a_relative_uri(path: str, expected: str) -> None:
    assert relative_uri(path) == expected


@FEW
@given(DRAWN)
def test_no_text_acts_on_the_terminal(report: Report) -> None:
    for said in (text(report), wide(report)):
        assert all(each == "\n" or each.isprintable() for each in said)
    for result in report.results:
        assert all(
            piece.text == "\n" or piece.text.isprintable() for piece in diff_segments(result)
        )


@FEW
@given(DRAWN)
def test_a_segment_never_goes_over_a_line_end(report: Report) -> None:
    assert all(piece.text == "\n" or "\n" not in piece.text for piece in segments(report))


@pytest.mark.parametrize(
    ("replacements", "expected"),
    [
        pytest.param([(2, 3, "X")], [(2, ("b",), ("X",))], id="one line"),
        pytest.param([(2, 2, "X\n")], [(2, (), ("X",))], id="a new line before one"),
        pytest.param([(8, 8, "X\n")], [(5, (), ("X",))], id="a new line at the end"),
        pytest.param([(2, 4, "")], [(2, ("b",), ())], id="a line that goes"),
        pytest.param(
            [(0, 1, "X"), (6, 7, "Y")], [(1, ("a",), ("X",)), (4, ("d",), ("Y",))], id="two places"
        ),
        pytest.param([(0, 1, "X"), (1, 1, "Y")], [(1, ("a",), ("XY",))], id="two in one line"),
        pytest.param([(2, 3, "b")], [], id="what changes nothing"),
    ],
)
def test_a_cure_is_the_lines_as_they_will_be(
    replacements: list[tuple[int, int, str]],
    expected: list[tuple[int, tuple[str, ...], tuple[str, ...]]],
) -> None:
    replaced = Lines("a\nb\nc\nd\n").replaced([Replacement(*each) for each in replacements])
    assert [(each.number, each.removed, each.added) for each in replaced] == expected


def test_a_change_that_fixes_several_findings_is_shown_once() -> None:
    def found(line: int, *fix: Replacement) -> Located:
        return Located("GPU109", "it goes", Status.FIXABLE, Place(line, 1, line, 2), fix=fix)

    both, other = Replacement(2, 6, ""), Replacement(8, 9, "E")
    located = (found(2, both), found(3, both), found(5, other), found(5, other))
    result = FileResult("a.yaml", text="a\nb\nc\nd\ne\n", located=located)
    notes = [line for line in text(Report((result,))).splitlines() if re.search("=|- b|[+]", line)]
    assert notes == [
        "  = can be fixed:",
        "2 - b",
        "  = can be fixed by the change shown at line 2",
        "  = can be fixed:",
        "5 + E",
        "  = can be fixed by the change shown above",
    ]


def _printed(report: Report, *, terminal: bool) -> str:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    stream = Screen()
    report_console.report(report, stream, wide=True)
    for result in report.results:
        report_console.diff(result, stream)
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "40")


def test_a_terminal_shows_colours_and_no_line_is_broken() -> None:
    said = _printed(report_samples.everything(), terminal=True)
    assert "\x1b[31m-" in said
    assert "\x1b[32m+" in said
    assert "which no node offers; write nvidia.com/gpu: 2\n" in said


def test_a_file_gets_no_colours_but_the_same_words() -> None:
    report = report_samples.everything()
    said = _printed(report, terminal=False)
    assert "\x1b" not in said
    assert said.startswith(wide(report))


def test_no_color_is_heeded_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    said = _printed(report_samples.everything(), terminal=True)
    assert not any(f"\x1b[{colour}m" in said for colour in ("31", "32", "33", "34", "1;31"))
    assert "alpha.kubernetes.io/nvidia-gpu" in said


def test_mark_up_of_the_printer_is_text() -> None:
    report = Report((FileResult("[bold]a[/bold].yaml", error="[link=x]y[/link] :smile:"),))
    assert "[bold]a[/bold].yaml: error: [link=x]y[/link] :smile:" in _printed(
        report, terminal=False
    )
