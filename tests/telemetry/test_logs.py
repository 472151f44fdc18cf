"""Log lines: one each, short, and never waited for."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from webhook.telemetry.logs import Log, line


def read(descriptor: int) -> list[dict[str, Any]]:
    with os.fdopen(descriptor) as lines:
        return [json.loads(text) for text in lines]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"message": "m", "codes": ["GPU101"] * 3, "n": 1.5}, id="as usual"),
        pytest.param({"message": "m", "name": "x" * 5000}, id="a long field"),
        pytest.param(
            {"message": "m", **{f"f{n}": "\u0001😀" * 500 for n in range(5)}}, id="5 long fields"
        ),
        pytest.param({"message": "m", "name": '"\n\r\u2028\x1b\ud800'}, id="harmful characters"),
        pytest.param({"message": "m", "codes": ["GPU101"] * 500}, id="many codes"),
        pytest.param({"message": "m", "odd": object(), "none": None}, id="no JSON"),
    ],
)
def test_a_line_is_one_line_of_at_most_1_kb(fields: dict[str, Any]) -> None:
    text = line(0.0, fields)
    assert len(text) <= 1024
    assert len(text.decode().splitlines()) == 1
    record = json.loads(text)
    assert record["message"] == "m"
    assert record["time"] == "1970-01-01T00:00:00.000Z"
    assert next(iter(record)) == "time"


texts = st.text(max_size=30) | st.sampled_from(["x" * 1100, "\x7f", "\ud800", 'a"b\\c', "é"])
plain = texts | st.integers() | st.floats() | st.booleans() | st.none()
lists = st.lists(texts | st.integers() | st.lists(texts, max_size=9), max_size=10)
maps = st.dictionaries(texts, texts | st.lists(texts), max_size=10)


@given(st.dictionaries(st.sampled_from("abcdefgh"), plain | lists | maps | st.just(("a", 1))))
def test_the_usual_lines_are_written_as_all_others_are(fields: dict[str, Any]) -> None:
    """An object among the fields, which is written as a text, makes a line unusual."""
    try:
        unusual = line(0.0, {**fields, "z": Text()})
    except TypeError:  # a number with more than 64 bits
        return
    assume(len(unusual) < 1000)
    assert line(0.0, {**fields, "z": "text"}) == unusual


class Text:
    def __str__(self) -> str:
        return "text"


def test_a_message_is_short_whatever_it_quotes() -> None:
    """It begins with the kind of the object, which a request may say at any length."""
    text = line(0.0, {"message": "k\u2028\ud800" * 100_000 + " passed", "level": "info"})
    assert len(text) <= 1024
    assert len(text.decode().splitlines()) == 1


def test_one_long_field_keeps_what_has_room_and_the_others_stay_whole() -> None:
    reason = "; ".join(f"mutating/gpu-webhook-{n}: {'x' * 200}" for n in range(9))
    record = json.loads(line(0.0, {"message": "m", "path": "y" * 100, "reason": reason}))
    assert record["path"] == "y" * 100
    assert record["reason"] == reason[: len(record["reason"])]
    assert len(record["reason"]) > 400


def test_lines_arrive_in_order() -> None:
    reader, writer = os.pipe()
    log = Log(writer)
    for n in range(500):
        log.write("info", "m", n=n)
    log.close()
    os.close(writer)
    assert [entry["n"] for entry in read(reader)] == list(range(500))


@pytest.mark.timeout(60)  # whoever waits for the reader waits for ever
def test_a_reader_that_is_too_slow_costs_lines_and_no_time() -> None:
    reader, writer = os.pipe()
    log = Log(writer, room=100)
    for n in range(20_000):  # far more than the pipe holds
        log.write("info", "m", n=n, text="x" * 200)
        if n % 1000 == 0:
            time.sleep(0.01)  # lets the other thread run into the full pipe
    log.close(0.1)
    entries: list[dict[str, Any]] = []
    with os.fdopen(reader) as lines:
        while not any("dropped" in entry for entry in entries):
            entries.append(json.loads(lines.readline()))
    written = sum(entry["message"] == "m" for entry in entries)
    assert 0 < entries[-1]["dropped"] <= 20_000 - written
    assert entries[-1]["level"] == "warning"


def test_an_output_that_nobody_reads_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    log = Log(writer)
    log.write("info", "m")
    log.close()
    log.write("info", "m")
    log.close()


def test_a_child_process_does_not_write_its_parents_lines() -> None:
    reader, writer = os.pipe()
    log = Log(writer)
    log.write("info", "parent")
    child = os.fork()
    if child == 0:
        log.write("info", "child")
        log.close()
        os._exit(0)
    os.waitpid(child, 0)
    log.close()
    os.close(writer)
    assert sorted(entry["message"] for entry in read(reader)) == ["child", "parent"]


def test_a_line_waits_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    reader, writer = os.pipe()
    log = Log(writer)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        log.write("info", "first")
    log.write("info", "second")
    log.close()
    os.close(writer)
    assert [entry["message"] for entry in read(reader)] == ["first", "second"]
