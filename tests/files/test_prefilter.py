"""The search for words in many files, in one process and in several."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sys
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from tests.files.trees import LEGACY, tree, without_rights
from webhook.files import prefilter, search
from webhook.files.candidates import Wanted, candidates
from webhook.files.prefilter import BINARY, CHUNK, HIT, LIMIT, NO_FILE, TOO_LARGE
from webhook.files.search import SearchBatch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORD = LEGACY.encode()
WORDS = (WORD, b"apps/v1beta", b"pod.beta.kubernetes.io")


def said(root: Path, *names: str) -> dict[str, int]:
    found, _ = prefilter.examine([(f"{root}/", names)], WORDS)
    return {names[position]: verdict for position, verdict in found}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"kind: Pod\n", None, id="nothing of interest"),
        pytest.param(b"", None, id="an empty file"),
        pytest.param(b"a: " + WORD, HIT, id="a word at the end"),
        pytest.param(WORD[:-1], None, id="most of a word"),
        pytest.param(b"v1beta1 alpha", None, id="only what several words share"),
        pytest.param(b"beta, apps/v1beta1", HIT, id="what words share, and then a word"),
        pytest.param(WORD + b"\0", BINARY, id="a word and a NUL"),
        pytest.param(b"\xff\xfek\0i\0", BINARY, id="UTF-16"),
        pytest.param(b"\n" * (CHUNK - 9) + WORD, HIT, id="a word across the first chunk's end"),
        pytest.param(b"\n" * (5 * CHUNK - 9) + WORD, HIT, id="across the end of the next chunk"),
        pytest.param(b"\n" * CHUNK, None, id="a chunk and no more"),
        pytest.param(b"\n" * 2_000_000 + WORD, HIT, id="at the end of a long file"),
        pytest.param(WORD + b"\n" * 2_000_000 + b"\0", BINARY, id="a NUL long after a word"),
    ],
)
def test_verdicts(tmp_path: Path, content: bytes, expected: int | None) -> None:
    tree(tmp_path, {"plain.yaml": "kind: Pod\n", "x.yaml": content, "other.yaml": "kind: Pod\n"})
    assert said(tmp_path, "plain.yaml", "x.yaml", "other.yaml").get("x.yaml") == expected


def test_a_word_never_lies_across_two_files(tmp_path: Path) -> None:
    tree(tmp_path, {"a.yaml": WORD[:9], "b.yaml": WORD[9:]})
    assert said(tmp_path, "a.yaml", "b.yaml") == {}


def test_each_file_has_its_own_verdict(tmp_path: Path) -> None:
    texts = [b"kind: Pod\n", b"x: " + WORD, b"", b"\0", b"apps/v1beta2\n", b"\n" * CHUNK + WORD]
    draw = random.Random(1)  # noqa: S311
    drawn = [draw.choice(texts) for _ in range(3_000)]
    names = [f"{number}.yaml" for number in range(len(drawn))]
    tree(tmp_path, dict(zip(names, drawn, strict=True)))
    verdicts = {texts[1]: HIT, texts[3]: BINARY, texts[4]: HIT, texts[5]: HIT}
    expected = {n: verdicts[t] for n, t in zip(names, drawn, strict=True) if t in verdicts}
    found, size = prefilter.examine([(f"{tmp_path}/", names)], WORDS)
    assert {names[position]: verdict for position, verdict in found} == expected
    assert [position for position, _ in found] == sorted(position for position, _ in found)
    assert size == sum(map(len, drawn))


def test_a_file_of_a_gibibyte_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(1 << 30)
    asked = []
    real = os.read

    def read(descriptor: int, size: int) -> bytes:
        asked.append(size)
        return real(descriptor, size)

    monkeypatch.setattr(os, "read", read)
    assert said(tmp_path, "large.yaml") == {"large.yaml": TOO_LARGE}
    assert asked == [CHUNK], "its beginning only"


def test_a_file_that_grows_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size says nothing: as for files of /proc, or one that is written meanwhile."""
    monkeypatch.setattr(prefilter, "LIMIT", 1 << 20)
    tree(tmp_path, {"x.yaml": "\n" * (1 << 21)})
    with (tmp_path / "x.yaml").open("rb") as file:
        status = os.stat_result((*os.fstat(file.fileno())[:6], CHUNK, 0, 0, 0))
        monkeypatch.setattr(os, "fstat", lambda _: status)
        text = os.read(file.fileno(), CHUNK)
        verdict, read = prefilter._long(file.fileno(), text, WORDS)
    assert verdict == TOO_LARGE
    assert read < 2 << 20


def test_what_took_the_place_of_a_file_does_not_make_it_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "folder.yaml").mkdir()
    found = said(tmp_path, "pipe.yaml", "zero.yaml", "folder.yaml", "gone.yaml")
    assert found["zero.yaml"] == NO_FILE
    assert found["folder.yaml"] == errno.EISDIR
    assert found["gone.yaml"] == errno.ENOENT
    assert "pipe.yaml" not in found, "it is empty"


def test_without_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.yaml").write_bytes(WORD)
    (tmp_path / "x.yaml").chmod(0)
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    with without_rights():
        found, _ = prefilter.examine([("", ["x.yaml"])], WORDS)
    assert found == [(0, errno.EACCES)]


def test_the_other_process_answers_the_same(tmp_path: Path) -> None:
    tree(tmp_path, {"a.yaml": WORD, "b.yaml": "", "h\u00e4.yaml": WORD})
    batch = [(f"{tmp_path}/", ["a.yaml", "b.yaml", "h\u00e4.yaml", "gone.yaml"])]
    lines = (json.dumps(each).encode() for each in ([list(word) for word in WORDS], batch))
    answers = BytesIO()
    prefilter.answer(BytesIO(b"\n".join(lines)), answers)
    found, size = json.loads(answers.getvalue())
    assert (list(map(tuple, found)), size) == prefilter.examine(batch, WORDS)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree that is worth another process: every 50th of 6,000 files holds a word."""
    root = tmp_path_factory.mktemp("large")
    for number in range(6_000):
        folder = root / f"f{number // 60:03}"
        folder.mkdir(exist_ok=True)
        text = f"kind: Pod # {number}\n" + (LEGACY if number % 50 == 0 else "")
        (folder / f"{number:05}.yaml").write_text(text)
    return root


def of_large(large: Path, processes: int | None) -> list[str]:
    progress: list[tuple[int, int]] = []

    def tell(files: int, size: int) -> None:
        progress.append((files, size))

    found = list(candidates(Wanted([str(large)], recursive=True), WORDS, tell, processes))
    assert progress == sorted(progress)
    assert progress[-1][0] == 6_000
    assert progress[-1][1] == sum(file.stat().st_size for file in large.rglob("*.yaml"))
    return [each for each in found if isinstance(each, str)]


@pytest.mark.parametrize("processes", [1, 2, 3, None])
def test_any_number_of_processes_finds_the_same_in_the_same_order(
    large: Path, processes: int | None
) -> None:
    expected = [str(file) for file in sorted(large.rglob("*.yaml")) if LEGACY in file.read_text()]
    assert of_large(large, processes) == expected
    assert len(expected) == 120


def processes_seen(monkeypatch: pytest.MonkeyPatch) -> list[search._Process]:
    seen: list[search._Process] = []
    begin = search._Process.__init__

    def watched(self: search._Process, *args: object) -> None:
        begin(self, *args)  # type: ignore[arg-type]
        seen.append(self)

    monkeypatch.setattr(search._Process, "__init__", watched)
    return seen


def test_other_processes_are_started_only_for_much_and_end(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = processes_seen(monkeypatch)
    list(candidates(Wanted([str(large / "f000")]), WORDS, processes=2))
    assert seen == []
    of_large(large, 3)
    assert len(seen) == 2
    assert [process._popen.poll() for process in seen] == [-signal.SIGKILL] * 2


def test_they_end_when_nobody_wants_the_rest(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = processes_seen(monkeypatch)
    found = candidates(Wanted([str(large)], recursive=True), WORDS, processes=2)
    while not seen:
        next(found)
    found.close()  # type: ignore[attr-defined]
    assert seen[0]._popen.poll() is not None


@pytest.mark.parametrize("at", ["once", "the first answer", "the third"])
def test_if_another_process_dies_its_lots_are_searched_here(
    large: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    expected = of_large(large, 1)
    seen = processes_seen(monkeypatch)
    take = search._Process.take
    given: list[SearchBatch] = []

    def killing(self: search._Process, lot: SearchBatch) -> bool:
        taken = take(self, lot)
        given.append(lot)
        if len(given) > {"once": 0, "the first answer": 1, "the third": 3}[at]:
            self._popen.kill()
        return taken

    monkeypatch.setattr(search._Process, "take", killing)
    assert of_large(large, 2) == expected
    assert seen[0]._popen.poll() is not None


def test_without_an_interpreter_to_start_it_goes_alone(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = of_large(large, 1)
    for name, value in (("frozen", True), ("executable", "")):
        with monkeypatch.context() as patched:
            patched.setattr(sys, name, value, raising=False)
            assert of_large(large, 2) == expected
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/nowhere/python")
        assert of_large(large, 2) == expected


def test_it_takes_the_same_memory_for_any_number_of_files(large: Path) -> None:
    """Lots wait for their turn, but no more than a few."""
    made = 0

    def lots() -> Iterator[SearchBatch]:
        nonlocal made
        names = sorted(file.name for file in (large / "f000").iterdir())
        for _ in range(1_000):
            made += 1
            yield SearchBatch([(f"{large}/f000/", names)])

    done = 0
    for _ in search.search(lots(), WORDS, 2):
        done += 1
        assert made - done <= search._AHEAD + 1
    assert done == made == 1_000


def test_the_limit_is_what_the_manual_says() -> None:
    assert LIMIT == 64 * 1024 * 1024
