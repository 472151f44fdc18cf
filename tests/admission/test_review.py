"""Parsing reviews: fast where it can be, exact where it must be (hostile: tests/hostile)."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.wire import gpu_pod, review
from webhook.admission.review import MOST_PARSED, dump, load, memory_of, parse
from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.programs

RECORDED = Path(__file__).parents[2] / "bench" / "reviews.jsonl.gz"

numbers = st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(), max_size=5)  # lone surrogates too
documents = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


@given(documents)
def test_what_json_writes_is_read_as_json_reads_it(document: Any) -> None:
    text = json.dumps(document)
    value = load(text.encode())
    assert value == json.loads(text)
    assert repr(value) == repr(json.loads(text))  # 1 is not 1.0 and not True


@given(documents)
def test_what_is_dumped_is_loaded_again(document: Any) -> None:
    assert load(dump(document)) == document


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("18446744073709551615", id="2^64 - 1"),
        pytest.param("18446744073709551616", id="2^64"),
        pytest.param("-9223372036854775809", id="-2^63 - 1"),
        pytest.param("1000000000000000000000000000001", id="10^30 + 1"),
    ],
)
def test_whole_numbers_are_exact(text: str) -> None:
    assert load(text.encode()) == int(text)


def test_the_object_can_be_had_as_it_came() -> None:
    found = parse(dump(review(gpu_pod())))
    found.request["object"]["spec"]["containers"].clear()
    assert found.fresh_object() == gpu_pod()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_not_said(value: float) -> None:
    assert dump(value) == b"null"  # as orjson does
    with pytest.raises(ValueError, match="JSON compliant"):
        dump([value, "\ud800"])


MIB = 1024 * 1024
# A fork for each text: to start Python takes longer than to parse most of them.
PEAK = """
import os, sys
from webhook.admission.review import load, memory_of
def resident(name):
    text = open("/proc/self/status").read()
    return int(text.partition(name + ":")[2].split()[0]) * 1024
for line in sys.stdin:
    if os.fork():
        os.wait()
        continue
    text = open(line.strip(), "rb").read()
    load(text[:1] + text[-1:])
    before = resident("VmRSS")
    open("/proc/self/clear_refs", "w").write("5")
    value = load(text)
    print(resident("VmHWM") - before, memory_of(text), flush=True)
    os._exit(0)
"""
LONG = b"1234567890123456789012"
WIDE = "\U0001f600".encode()


def many(unit: bytes, size: int = 4 * MIB) -> bytes:
    return b"[%b%b]" % (unit * (size // len(unit)), LONG if unit.endswith(b" ,") else b"1")


UNITS = (
    *(b"{},", b"[],", b"1,", b"12345678,", b"1e5,", b'"",', b'"ab",', b"[1],"),
    *(b"[1,1,1],", b"[[[[[]]]]],", b'{"a":1},', b'{"":""},', b'{"a":1,"b":2},'),
    *(b'{"a":{"a":{}}},', '"\U0001f600aaaa",'.encode(), '"\u20ac",'.encode()),
    *(b"{} ,", b"[[[[[]]]]] ,", b"1e5 ,", b'"ab" ,', b'{"a":1} ,'),
)
SLOW: dict[str, Callable[[], bytes]] = {
    "a long text": lambda: b"a" * 8 * MIB,
    "a long text with escapes": lambda: b"aa\\n" * 2 * MIB,
    "a long wide text": lambda: b"a" * 8 * MIB + WIDE,
    "a long wide text with escapes": lambda: WIDE + b"aa\\n" * 2 * MIB,
    "a long text that is wide in the end": lambda: b"aa\\n" * 2 * MIB + WIDE,
    "a long text that an escape makes wide": lambda: b"a" * 8 * MIB + b"\\ud83d\\ude00",
    "what Go escapes": lambda: b"\\u003c" * MIB,
    "a wide escape before escapes": lambda: b"\\ud83d\\ude00" + b"aa\\n" * 2 * MIB,
}
# Each is made when its test runs, and not in each process that collects them.
TEXTS: dict[str, Callable[[], bytes]] = {
    **{unit.decode(): partial(many, unit) for unit in UNITS},
    "a long text": lambda: b'["%b"]' % (b"a" * 8 * MIB),
    "a long wide text": lambda: b'["\\ud83d\\ude00%b"]' % (b"a" * 8 * MIB),
    "narrow escapes": lambda: b'["%b"]' % (b"\\u003c\\u00ff" * MIB),
    "a lone surrogate": lambda: b'["\\ud800%b%b"]' % (WIDE, b"a" * 8 * MIB),
    "keys": lambda: b"{%b}" % b",".join(b'"%x":1.5' % n for n in range(300_000)),
}


@pytest.fixture(scope="module")
def peaks() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PEAK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        yield running


@pytest.mark.parametrize(
    "make",
    [
        *(pytest.param(make, id=name) for name, make in TEXTS.items()),
        *(
            pytest.param(lambda made=make: b'[%b,"%b"]' % (LONG, made()), id=f"read slowly: {name}")
            for name, make in SLOW.items()
        ),
    ],
)
def test_parsing_takes_no_more_memory_than_was_estimated(
    make: Callable[[], bytes], peaks: subprocess.Popen[str], tmp_path: Path
) -> None:
    (tmp_path / "text").write_bytes(make())
    print(tmp_path / "text", file=peaks.stdin, flush=True)
    assert peaks.stdout is not None
    taken, estimated = map(int, peaks.stdout.readline().split())
    assert taken <= estimated + MIB  # what the process itself needs


def test_honest_reviews_are_parsed() -> None:
    """All recorded ones; and two pods of 1 MB, half of it managedFields."""
    recorded = gzip.decompress(RECORDED.read_bytes()).splitlines()
    assert recorded
    assert max(map(memory_of, recorded)) < MOST_PARSED / 50  # of 30 containers
    body = dump(review(large_pod(), oldObject=large_pod()))
    assert len(body) > 2_000_000
    assert memory_of(body) < 0.8 * MOST_PARSED
    pod = gpu_pod()
    pod["metadata"]["annotations"] = dict.fromkeys("ab", "{}," * (128 * 1024 // 3))
    assert memory_of(dump(review(pod, oldObject=pod))) < 0.8 * MOST_PARSED
    escaped = b"[%b,%b]" % (LONG, b'"%b"' % (b"\\u003c" * 1_500_000))  # as Go writes `<`
    assert memory_of(escaped) < 0.8 * MOST_PARSED


def large_pod() -> dict[str, Any]:
    each: dict[str, Any] = {".": {}, "f:name": {}, "f:value": {}}
    fields = {f'k:{{"name":"E{n}"}}': each for n in range(20)}
    pod = gpu_pod()
    pod["spec"]["containers"] = [
        {
            "name": f"c{n}",
            "image": "registry.example/some/image:v1",
            "env": [{"name": f"E{m}", "value": str(m)} for m in range(20)],
            "terminationMessagePath": "/dev/termination-log",
            "imagePullPolicy": "IfNotPresent",
        }
        for n in range(680)
    ]
    managed = {f'k:{{"name":"c{n}"}}': {".": {}, "f:env": fields} for n in range(480)}
    pod["metadata"]["managedFields"] = [{"fieldsV1": {"f:spec": {"f:containers": managed}}}]
    return pod


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[%b1]" % (b"{}," * 1_000_000), id="empty objects"),
        pytest.param(b"[%b%b]" % (b"1," * 2_000_000, LONG), id="numbers, and a long one"),
    ],
)
def test_what_would_take_too_much_memory_is_not_parsed(text: bytes) -> None:
    body = dump(review(gpu_pod())).replace(b'"oldObject":null', b'"oldObject":' + text)
    with pytest.raises(InputError, match="too many fields"):
        parse(body)


@pytest.mark.parametrize("where", [1, MIB - 10, MIB, 2 * MIB])
def test_long_numbers_are_found_wherever_they_stand(where: int) -> None:
    assert load(b"[%b%b]" % (b" " * where, LONG)) == [int(LONG)]
