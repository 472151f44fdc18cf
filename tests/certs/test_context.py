"""The serving context: one object, new pairs taken over, broken ones refused."""

from __future__ import annotations

import os
import shutil
import ssl
import tempfile
from pathlib import Path

import pytest

from webhook.certs import development
from webhook.certs.context import ServingContext
from webhook.core.errors import InputError


class Reports(list[tuple[str, str]]):
    def __call__(self, level: str, message: str) -> None:
        self.append((level, message))


def handshake(server: ssl.SSLContext, ca: Path) -> bool:
    """True if a client that trusts this CA accepts what the server shows; all in memory."""
    client = ssl.create_default_context(cafile=str(ca))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    for _ in range(10):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
            done.add(side)
    return len(done) == 2


def pair(folder: Path) -> development.Files:
    return development.ensure(folder)


@pytest.fixture
def live(tmp_path: Path) -> Path:
    shutil.copytree(pair(tmp_path / "first").cert.parent, tmp_path / "live")
    return tmp_path / "live"


def serving(live: Path, reports: Reports) -> ServingContext:
    return ServingContext(live / "tls.crt", live / "tls.key", reports)


def test_a_new_pair_is_served_by_the_same_object(tmp_path: Path, live: Path) -> None:
    reports = Reports()
    it = serving(live, reports)
    context = it.context
    new = pair(tmp_path / "second")
    for file in (new.cert, new.key):
        shutil.copy(file, live)
    assert not handshake(context, new.ca)
    it.refresh()
    assert handshake(context, new.ca)
    assert not handshake(context, tmp_path / "first" / "ca.crt")
    assert it.context is context
    assert [level for level, _ in reports] == ["info"]


def test_a_secret_volume_swaps_a_link(tmp_path: Path) -> None:
    first, second = pair(tmp_path / "first"), pair(tmp_path / "second")
    (tmp_path / "..data").symlink_to("first")
    it = ServingContext(tmp_path / "..data/tls.crt", tmp_path / "..data/tls.key", Reports())
    assert handshake(it.context, first.ca)
    (tmp_path / "new").symlink_to("second")
    (tmp_path / "new").replace(tmp_path / "..data")
    it.refresh()
    assert handshake(it.context, second.ca)


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
@pytest.mark.parametrize("how", ["gone", "empty", "nonsense", "half", "another's"])
def test_a_broken_pair_is_reported_once_and_the_last_good_one_stays(
    tmp_path: Path, live: Path, name: str, how: str
) -> None:
    reports = Reports()
    it = serving(live, reports)
    file = live / name
    match how:
        case "gone":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "nonsense":
            file.write_bytes(b"nonsense")
        case "half":
            file.write_bytes(file.read_bytes()[:100])
        case _:
            shutil.copy(pair(tmp_path / "second").cert.with_name(name), file)
    for _ in range(3):
        it.refresh()
    assert [level for level, _ in reports] == ["error"]
    assert "last good" in reports[0][1]
    assert handshake(it.context, live / "ca.crt")


def test_a_pair_that_becomes_good_again_is_taken(tmp_path: Path, live: Path) -> None:
    reports = Reports()
    it = serving(live, reports)
    new = pair(tmp_path / "second")
    shutil.copy(new.cert, live)
    it.refresh()
    assert handshake(it.context, live / "ca.crt")
    shutil.copy(new.key, live)
    it.refresh()
    assert handshake(it.context, new.ca)
    assert [level for level, _ in reports] == ["error", "info"]


def test_nothing_is_read_while_nothing_changes(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = serving(live, Reports())
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("read"))
    it.refresh()


def test_files_that_are_missing_at_the_start_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tls\.crt: no such file"):
        ServingContext(tmp_path / "tls.crt", tmp_path / "tls.key", Reports())


@pytest.mark.parametrize(
    "without",
    [
        pytest.param("", id="Linux: in memory"),
        pytest.param("memfd_create", id="elsewhere: in a scratch file"),
    ],
)
def test_the_key_leaves_nothing_behind(
    live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if without:
        monkeypatch.delattr(os, without, raising=False)
    before = sorted(tmp_path.rglob("*"))
    assert handshake(serving(live, Reports()).context, live / "ca.crt")
    assert sorted(tmp_path.rglob("*")) == before
