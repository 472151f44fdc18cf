"""Reports that hypothesis draws: any text anywhere, also such as try to break out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st

from tests.reports.report_samples import HOSTILE
from webhook.files.results import FileResult, Located, Report, Skipped, Status
from webhook.reports.excerpt import Lines
from webhook.yamlpatch.places import Replacement

if TYPE_CHECKING:
    from webhook.yamlpatch.places import Place

ANYTHING = st.characters(exclude_categories=())  # lone surrogates too
WORDS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(ANYTHING, max_size=30),
    st.text(st.sampled_from("`<>&'\"|@#%:,;\\\n\r\t\x00\x1b-_*[]{}$ aé显"), max_size=30),
)
TEXTS = st.lists(WORDS, max_size=6).map("\n".join)


@st.composite
def _located(draw: st.DrawFn, text: str) -> Located:
    fix = draw(st.lists(_replacements(text), max_size=2))
    apart = len(fix) < 2 or fix[0].end < fix[1].start
    return Located(
        code=draw(WORDS),
        message=draw(WORDS),
        status=draw(st.sampled_from(Status)),
        place=draw(_places(text)),
        path=draw(WORDS),
        object=draw(WORDS),
        fix=tuple(fix if apart else fix[:1]),
    )


def _places(text: str) -> st.SearchStrategy[Place]:
    return _ranges(text).map(lambda each: Lines(text).place(*each))


def _ranges(text: str) -> st.SearchStrategy[tuple[int, int]]:
    index = st.integers(0, len(text))
    return st.tuples(index, index).map(lambda each: (min(each), max(each)))


def _replacements(text: str) -> st.SearchStrategy[Replacement]:
    return st.builds(
        lambda where, new: Replacement(where[0], where[1], new),
        _ranges(text),
        WORDS,
    )


@st.composite
def _results(draw: st.DrawFn) -> FileResult:
    text = draw(TEXTS)
    return FileResult(
        path=draw(WORDS) or "a",
        kind=draw(WORDS),
        text=text,
        new_text=draw(st.none() | TEXTS),
        located=tuple(draw(st.lists(_located(text), max_size=3))),
        skipped=tuple(
            draw(st.lists(st.builds(Skipped, WORDS, st.none() | _places(text)), max_size=2))
        ),
        error=draw(st.just("") | WORDS),
    )


# Each makes a whole report, and reads it again: 500 in the nightly run.
FEW = settings(max_examples=min(settings().max_examples, 500))
REPORTS = st.builds(
    Report,
    st.lists(_results(), max_size=3).map(tuple),
    files=st.integers(0, 10_000),
)
