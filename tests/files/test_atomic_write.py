"""A file's content is replaced at once or not at all; on a real file system."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.files.trees import open_folder, without_rights
from webhook.files import atomic_write
from webhook.files.atomic_write import UnwritableError, replace, temporary_name

if TYPE_CHECKING:
    from collections.abc import Callable

OLD, NEW = b"old\n", b"new and longer\n"


def new(raw: bytes) -> bytes | None:
    """What a run writes that has read the old text."""
    return NEW if raw == OLD else None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.yaml"
    path.write_bytes(OLD)
    return path


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def refused(path: Path, text: Callable[[bytes], bytes | None] = new) -> str:
    """Why the file is left as it is; nothing is left beside it."""
    before = names(path.parent)
    with pytest.raises(UnwritableError) as error:
        replace(str(path), text)
    assert names(path.parent) == before
    return str(error.value)


def test_the_new_text_is_there(file: Path) -> None:
    assert replace(str(file), new) == ""
    assert file.read_bytes() == NEW
    assert names(file.parent) == {"x.yaml"}


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o664, 0o200 | 0o444])
def test_the_mode_stays_whatever_the_umask(file: Path, mode: int) -> None:
    file.chmod(mode)
    before = os.umask(0o077)
    try:
        replace(str(file), new)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_owner_and_attributes_stay(file: Path) -> None:
    os.setxattr(file, "user.origin", b"here")
    if os.geteuid() == 0:
        os.chown(file, 1234, 5678)
    before = file.stat()
    assert replace(str(file), new) == ""
    after = file.stat()
    assert os.getxattr(file, "user.origin") == b"here"
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert after.st_mtime_ns > before.st_mtime_ns, "build tools see that it is another one"


def test_an_owner_that_cannot_be_kept_is_said() -> None:
    with open_folder() as folder, without_rights(), (folder / "x.yaml").open("wb") as file:
        of_another = list(os.fstat(file.fileno()))
        of_another[4] += 1
        was = os.stat_result(of_another)
        said = atomic_write._keep_attributes(file.name, file.fileno(), was)
    assert said == ["has another owner now: only root could have kept it"]


def test_a_link_stays_and_what_it_leads_to_is_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder/link.yaml"
    link.symlink_to("../x.yaml")
    replace(str(link), new)
    assert str(link.readlink()) == "../x.yaml"
    assert file.read_bytes() == NEW
    assert names(tmp_path / "folder") == {"link.yaml"}


def test_hard_links_are_said(file: Path, tmp_path: Path) -> None:
    os.link(file, tmp_path / "other.yaml")
    assert "2 names" in replace(str(file), new)
    assert file.read_bytes() == NEW
    assert (tmp_path / "other.yaml").read_bytes() == OLD


def test_a_file_that_was_changed_is_left_alone(file: Path) -> None:
    file.write_bytes(b"somebody's\n")
    assert "changed" in refused(file)
    assert file.read_bytes() == b"somebody's\n"


@pytest.mark.parametrize("by", ["an editor that writes it", "one that replaces it", "chmod"])
def test_a_change_at_the_last_moment(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    sync = os.fsync

    def meanwhile(descriptor: int) -> None:
        sync(descriptor)
        if by == "chmod":
            file.chmod(0o600)
        elif by == "an editor that writes it":
            file.write_bytes(b"our\n")
        else:
            (tmp_path / "x~").write_bytes(OLD)
            (tmp_path / "x~").rename(file)

    monkeypatch.setattr(os, "fsync", meanwhile)
    assert "changed" in refused(file)
    assert file.read_bytes() != NEW


def test_what_is_not_there_or_no_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone.yaml") == "is not there"
    assert refused(tmp_path) == "is a folder"
    (tmp_path / "loop").symlink_to("loop")
    assert "loop" in refused(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    assert "pipe" in refused(tmp_path / "pipe")


def test_read_only_files_even_for_root(file: Path) -> None:
    file.chmod(0o444)
    assert refused(file) == "is read-only: chmod u+w"
    assert file.read_bytes() == OLD


def test_read_only_folders() -> None:
    with open_folder() as folder:
        (folder / "x.yaml").write_bytes(OLD)
        folder.chmod(0o555)
        with without_rights():
            reason = refused(folder / "x.yaml")
        folder.chmod(0o777)
    assert reason == "cannot be written: Permission denied"


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "No space left"), (errno.EROFS, "read-only"), (errno.EBUSY, "mounted")],
)
def test_whatever_fails_leaves_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    for name in ("fsync", "replace", "write"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, fails)
            assert words in refused(file)
        assert file.read_bytes() == OLD


def test_an_interrupt_leaves_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace(str(file), new)
    assert names(file.parent) == {"x.yaml"}
    assert file.read_bytes() == OLD


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """As the system itself says it: the file size that a process may write is bounded."""
    file = tmp_path / "x.yaml"
    file.write_bytes(OLD)
    program = (
        "import resource, signal, sys; from webhook.files.atomic_write import *\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: replace(sys.argv[1], lambda raw: b'x' * 5000)\n"
        "except UnwritableError as error: print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True
    )
    assert told.stdout == "cannot be written: File too large\n"
    assert file.read_bytes() == OLD
    assert names(tmp_path) == {"x.yaml"}


def test_what_a_killed_run_left_is_taken_away(file: Path) -> None:
    leftover = Path(temporary_name(str(file)))
    leftover.write_bytes(b"half of it")
    assert replace(str(file), new) == ""
    assert names(file.parent) == {"x.yaml"}
    assert file.read_bytes() == NEW


def test_another_run_at_the_same_file_is_not_disturbed(file: Path) -> None:
    with atomic_write._temporary(temporary_name(str(file))) as descriptor:
        os.write(descriptor, b"theirs")
        assert "another run" in refused(file)
        assert Path(temporary_name(str(file))).read_bytes() == b"theirs"
        Path(temporary_name(str(file))).unlink()


def test_something_in_the_way_of_the_temporary_file(file: Path, tmp_path: Path) -> None:
    """Nobody is led to write elsewhere by a link that somebody puts there."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"theirs")
    Path(temporary_name(str(file))).symlink_to(victim)
    assert "remove .x.yaml.gpu-webhook~" in refused(file)
    assert victim.read_bytes() == b"theirs"


def test_a_name_as_long_as_may_be(tmp_path: Path) -> None:
    for name in ("x" * 255, "\u00e4" * 127, "x" * 201):
        file = tmp_path / name
        file.write_bytes(OLD)
        assert replace(str(file), new) == ""
        assert file.read_bytes() == NEW
    assert len(names(tmp_path)) == 3


def test_several_runs_at_once_leave_one_of_their_texts(tmp_path: Path) -> None:
    """Each adds a letter to what it reads: who is refused has changed nothing."""
    file = tmp_path / "x.yaml"
    file.write_bytes(b"")
    done: list[int] = []

    def run(letter: bytes) -> None:
        for _ in range(40):
            with suppress(UnwritableError):
                replace(str(file), lambda raw: raw + letter)
                done.append(1)

    threads = [threading.Thread(target=run, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(file.read_bytes()) == len(done) > 0
    assert names(tmp_path) == {"x.yaml"}


def test_whoever_looks_sees_one_text_or_the_other(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    texts = {b"a" * 100_000, b"b" * 200_000}
    file.write_bytes(min(texts))
    seen: set[bytes] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            seen.add(file.read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(50):
        replace(str(file), lambda raw: (texts - {raw}).pop())
    ended.set()
    thread.join()
    assert seen == texts
