"""Texts that are cut into blocks are read as they are read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.templates.drawn_charts import drawn
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.verifying import similar_texts, trial
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from typing import Any

TEXTS = {
    "a map in a map": "a:\n  b:\n    c: 1\nd: 2\n",
    "a list that is indented like its key": "a:\n- b: 1\n  c: 2\n- b: 3\nd: 4\n",
    "a list that is indented more": "a:\n  - b: 1\n    c: 2\n  -   b: 3\nd: 4\n",
    "a list of lists": "a:\n- - b: 1\n- []\n",
    "an item below its dash": "a:\n-\n  b: 1\n",
    "an item that is a word": "a:\n- b: 1\n- c\n",
    "comments and blank lines": "# x\n\na: # y\n  # z\n  b: 1\n\n# end\nc: 2\n",
    "a block scalar with keys in it": "a: |\n  b: 1\nc:\n  d: |+\n    e: 2\n\nf: 3\n",
    "a text in quotes over several lines": 'a: "x\n  b: 1\n  c"\nd: 2\n',
    "a text in quotes that goes on at the margin": 'a: "x\nb: y"\nc: 2\n',
    "a map in braces over several lines": "a: {b: 1,\n  c: 2}\nd: {e: 1,\nf: 2}\n",
    "an anchor, used below": "a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\n",
    "a name that is no text": "on: 1\nfalse: 2\n1: 3\nnull: 4\n",
    "names in quotes": "'a': 1\n\"b\":\n  c: 2\n",
    "a name given twice": "a: 1\nb: 2\na: 3\n",
    "a name given twice below": "a:\n  b: 1\n  b: 2\n",
    "no value": "a:\nb:\n  c:\n",
    "a line that is indented less": "a:\n    b: 1\n  c: 2\n",
    "a line that is indented more": "a: 1\n  b: 2\n",
    "documents": "---\na: 1\n---\nb:\n  c: 2\n...\n---\n# nothing\n",
    "a directive": "%YAML 1.1\n---\na: 1\n",
    "a tag": "a: !!str 1\nb: !!map\n  c: 1\n",
    "tabs": "a:\t1\nb:\n  c: 1\t# x\n",
    "line ends of Windows": "a:\r\n  b: 1\r\nc:\r\n- d: 2\r\n",
    "line ends of old Macs": "\ra: 1\nb: 2\n",
    "a document behind such a line end": "a: b\r---\nc: d\n",
    "a document behind a line separator": "a:\n  b: c\u2028---\u2028\nd: e\n",
    "a member behind a comment that such a line end ends": "#x\u2028b: 1\na: 1\n",
    "a next line in a comment": "# x\x85b: 1\na: 1\n",
    "an address is no key": "a: http://x:1/y\nb:c\n",
    "JSON": '{"a": {"b": 1}}\n',
    "a name given twice behind a text in quotes": "a: 'x\n  b: 1\n  b: 2'\nc: 3\nc: 4\n",
    "a name given twice in a text in quotes": "a: 'x\nb: 1\nb: 2'\n",
    "a name given twice in an item": "a:\n- b: 1\n- c: 1\n  c: 2\n",
    "a fault in a list that the next line ends": "d: [\n]\n",
    "a fault before the last line": "a:\n  b: 1\n    c: 2\n  d: 3\ne: 4\n",
    "an anchor of another block": "a: &x 1\nb:\n  c: *x\n  d: 2\n",
    "a word": "a\n",
    "nothing": "",
}


LINES = [
    *("a:", "b: 1", "c: |", "d: [", "]", "- a: 1", "- b", "-", "# x", "", "'q: r", "s'", "on: 1"),
    *("a: {b: 1}", "e: &x 1", "f: *x", "---", "g: # y", '"h": i', "\tj: 1"),
    *("k: 1\r---\r", "# x\u2028l: 1", "\x85", "m: |\u2029"),
    *("n: '", 'o: "p', 'q"', "r: 0644", "s: 'on'", "t: on", "a: *x", "b: x y", "u: a: b"),
]


def whole(text: str) -> list[Any] | None:
    stream = documents.read(text)
    is_known = not stream.unread and not any(each.duplicates for each in stream.documents)
    return [each.data for each in stream.documents] if is_known else None


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text(text: str) -> None:
    reader = similar_texts.Reader()
    for _ in range(2):  # also from what is known
        assert repr(reader.read(text)) == repr(whole(text))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.sampled_from(LINES),
        ),
        max_size=8,
    )
)
def test_any_lines(lines: list[tuple[int, str]]) -> None:
    text = "".join(f"{' ' * indent}{line}\n" for indent, line in lines)
    assert repr(similar_texts.Reader().read(text)) == repr(whole(text))


@pytest.mark.parametrize("number", [0, 1, 3, 8])
def test_each_filling_of_a_drawn_chart(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read, texts = similar_texts.Reader.read, set[str]()

    def noted(self: similar_texts.Reader, text: str) -> list[Any] | None:
        found = read(self, text)
        texts.add(text)
        assert repr(found) == repr(whole(text))
        return found

    monkeypatch.setattr(similar_texts.Reader, "read", noted)
    source = Source.of_text("templates/x.yaml", drawn(number, "x"))
    result = migrate_text(source, Plan())
    assert result.new_text is not None
    trial._why_wrong(result, trial._Webhook.of(result, Plan()))
    assert len(texts) > 20
