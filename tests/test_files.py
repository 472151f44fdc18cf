"""Files that a server reads: no device, no pipe and no flood, whatever reads it."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from webhook.certs.context import ServingContext
from webhook.core.errors import InputError, SettingsError
from webhook.files import limited_reading
from webhook.inventory import inventory_file
from webhook.inventory.publish import Snapshot, Status
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST = 2 * limited_reading.MIB


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def flood(path: Path) -> None:
    """A hole, so that it takes no room on the disk."""
    with path.open("wb") as file:
        file.truncate(2 << 30)


def settings(path: Path) -> str:
    with pytest.raises(SettingsError) as raised:
        settings_file.load(str(path))
    return str(raised.value)


def nodes(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        inventory_file.load(str(path))
    return str(raised.value)


def certificate(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        ServingContext(path, path, lambda *_: None)
    return str(raised.value)


def inventory(path: Path) -> str:
    path.rename(path.with_name("inventory"))
    snapshot = Snapshot(path.parent)
    assert snapshot.refresh() is None
    return snapshot.fault


def status(path: Path) -> str:
    path.rename(path.with_name("status.json"))
    found = Snapshot(path.parent).status()
    assert found == Status(fault=found.fault)
    return found.fault


@pytest.mark.parametrize("reader", [settings, nodes, certificate, inventory, status])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(endless, "no regular file", id="a link to an endless device"),
        pytest.param(pipe, "no regular file", id="a pipe that nobody writes to"),
        pytest.param(folder, "is a directory", id="a folder"),
        pytest.param(flood, "larger than ", id="larger than any honest one"),
    ],
)
def test_what_is_no_file_to_read(
    make: Callable[[Path], None], why: str, reader: Callable[[Path], str], tmp_path: Path
) -> None:
    make(path := tmp_path / "file")
    said = reader(path)
    assert why in said.lower()


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * MOST)
    assert limited_reading.read(tmp_path / "file", MOST) == b"x" * MOST
    (tmp_path / "file").write_bytes(b"x" * (MOST + 1))
    with pytest.raises(OSError, match="it is larger than 2 MiB"):
        limited_reading.read(tmp_path / "file", MOST)


def test_whoever_waits_may_give_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "pipe")

    def write() -> None:
        with suppress(BrokenPipeError):
            path.write_bytes(b"scope: all-legacy\n")

    writer = Thread(target=write)
    writer.start()
    assert settings_file.load(str(path), pipes=True).scope == "all-legacy"
    writer.join()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("/dev/zero", "no regular file", id="an endless device"),
        pytest.param("/dev/fd", "directory", id="a folder"),
    ],
)
def test_nobody_may_give_anything_else(path: str, why: str) -> None:
    with pytest.raises(OSError, match=f"(?i){why}"):
        limited_reading.read(path, MOST, pipes=True)
