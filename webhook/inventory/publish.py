"""Publishes the snapshot from the watcher to the workers: two files in a shared folder.

`inventory` is written whole and renamed, whenever something changed. Its first line is JSON: a
checksum, the length of each part, and `shape`, which changes with everything except the GPUs that
pods hold. The parts are JSON too. A table of labels is decoded only when a pod uses that label, and
the memory of nodes only by the next process of the watcher. `status.json` is written four times a
second: it shows that the watcher runs, which events are in the inventory, and since when it may be
behind the cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import orjson

from webhook.capacity import node_sets
from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import Inventory, Node, NodeClass
from webhook.files import limited_reading

if TYPE_CHECKING:
    from webhook.core.settings import Settings
    from webhook.inventory.store import Store

INVENTORY = "inventory"
STATUS = "status.json"
_FORMAT = 6
_OS = "kubernetes.io/os"
_LARGEST = 256 * limited_reading.MIB  # the snapshot of 15,000 nodes takes about 10
_LARGEST_STATUS = limited_reading.MIB
AHEAD_SECONDS = 5.0  # between the clocks of two processes
STALE_SECONDS = 300.0  # an inventory that may be so old denies nothing


def declared(settings: Settings) -> tuple[NodeClass, ...]:
    """The nodes that declared pools may have, so that a pool of size zero does not mean "never".

    Each kubelet on Linux sets these labels, and Windows pods are never evaluated. A label that a
    pool does not name may exist anyway: kubelets and clouds set many.
    """
    return tuple(
        NodeClass(
            {_OS: "linux", **pool.labels},
            pool.taints,
            dict(pool.gpus),
            declared=pool.nodes,
            open_labels=True,
        )
        for pool in settings.capacity.pools
    )


def basis(settings: Settings) -> str:
    """A digest of the settings on which an inventory depends."""
    names = (settings.gpu_resource, settings.gpu_resources, settings.legacy_resources)
    text = repr((names, settings.guard.resources, settings.capacity))
    return blake2b(text.encode(), digest_size=8).hexdigest()


class Publisher:
    """Writes the files; remembers what is already written."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._declared = declared(settings)
        self.settings = basis(settings)
        self._shape: tuple[int, ...] = ()
        self._held = -1
        self._index: dict[str, Any] = {}
        self._lasting = b""
        self._names = b""
        self._memory = b""
        self._labels: list[tuple[str, bytes]] = []
        # The classes from which the index was made.
        self._classes: tuple[NodeClass, ...] | None = None
        self.stamp = ""
        self.size = 0

    def publish(self, store: Store, now: float) -> bool:
        """Write what changed; return whether anything did. May raise OSError."""
        store.forget(now)
        shape, held = store.shape, store.pods.held_version
        if held == self._held and self.has_shape(store):
            return False
        if shape != self._shape:
            self._reshape(store, now)
        # Only the amounts that pods hold are computed again; labels, the largest part, stay as they
        # are.
        holding = NodeIndex.of(
            (*store.holding(now), *(replace(each, labels={}, taints=()) for each in self._declared))
        )
        changed = {key: value for key, value in holding.as_data().items() if key in _HELD}
        self._write(orjson.dumps({**self._index, **changed}))
        self._shape, self._held = shape, held
        return True

    def has_shape(self, store: Store) -> bool:
        """Whether the file has all that this store knows, except what pods hold."""
        return store.shape == self._shape and self._is_there()

    def _is_there(self) -> bool:
        """Whether the file still exists as it was written."""
        try:
            return (self._folder / INVENTORY).stat().st_size == self.size
        except FileNotFoundError:
            return False

    def _reshape(self, store: Store, now: float) -> None:
        classes = store.classes(now)
        if classes is not self._classes:  # namespaces change more often than nodes
            self._classes = classes
            index = NodeIndex.of((*classes, *self._declared), dumps=_dumps)
            self._labels = [(key, text.encode()) for key, text in sorted(index.labels.items())]
            self._names = index.names.encode()
            self._index = replace(index, labels={}, names="").as_data()
        self._memory = memory_of(store)
        self._lasting = orjson.dumps(store.lasting(), default=sorted)  # a set
        stamp = blake2b(self._lasting, digest_size=8)
        lasting = {key: value for key, value in self._index.items() if key not in _HELD}
        stamp.update(orjson.dumps(lasting) + self._names)
        for key, text in self._labels:
            stamp.update(key.encode() + b"\0" + text)
        self.stamp = stamp.hexdigest()

    def _write(self, index: bytes) -> None:
        labels = (text for _, text in self._labels)
        texts = [index, self._lasting, self._names, *labels, self._memory]
        checksum = 0
        for text in texts:
            checksum = crc32(text, checksum)
        head = {
            "format": _FORMAT,
            "shape": self.stamp,
            "checksum": checksum,
            "index": len(index),
            "lasting": len(self._lasting),
            "names": len(self._names),
            "labels": [[key, len(text)] for key, text in self._labels],
            "memory": len(self._memory),
        }
        self.size = _replace(self._folder / INVENTORY, [orjson.dumps(head), b"\n", *texts])

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Write the status. May raise OSError."""
        _replace(self._folder / STATUS, [orjson.dumps(status)])


_HELD = ("free", "totals")  # the parts of an index that depend on what pods hold


def memory_of(store: Store) -> bytes:
    """What the next process of the watcher starts with, besides the nodes, as JSON."""
    return orjson.dumps(store.as_data())


def _dumps(value: object) -> str:
    return orjson.dumps(value).decode()


def _replace(path: Path, texts: list[bytes]) -> int:
    """Write a file so that a reader sees the old one or the new one; return its size."""
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("wb") as file:
            for text in texts:
                file.write(text)
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()  # if the disk is full, this partial file may be what fills it
        raise
    return sum(map(len, texts))


class _Labels(Mapping[str, str]):
    """The label tables in a snapshot; each is decoded when it is first used."""

    def __init__(self, data: bytes, lengths: list[tuple[str, int]], start: int) -> None:
        self._data = data
        self._at: dict[str, tuple[int, int]] = {}
        for key, length in lengths:
            self._at[key] = (start, start + length)
            start += length
        self.end = start

    def __getitem__(self, key: str) -> str:
        start, end = self._at[key]
        return self._data[start:end].decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)


class Parsed(NamedTuple):
    """The content of the file."""

    shape: str  # changes with everything except what pods hold
    inventory: Inventory
    memory: bytes  # what the watcher remembers, as JSON


def parse(data: bytes) -> Parsed:
    """Parse the content of the file; ValueError if it is damaged."""
    head, newline, body = data.partition(b"\n")
    try:
        content = orjson.loads(head)
        if not newline or content["format"] != _FORMAT:
            raise ValueError("is not a snapshot, or one of another version")
        lasting_at = content["index"]
        names_at = lasting_at + content["lasting"]
        labels = _Labels(body, content["labels"], names_at + content["names"])
        if labels.end + content["memory"] != len(body) or crc32(body) != content["checksum"]:
            raise ValueError("is damaged or incomplete")
        index = orjson.loads(body[:lasting_at])
        lasting = orjson.loads(body[lasting_at:names_at])
        names = body[names_at : names_at + content["names"]].decode()
        inventory = Inventory(
            **{**lasting, "served_by_dra": frozenset(lasting["served_by_dra"])},
            watched=True,
            published=NodeIndex.from_data(
                {**index, "labels": labels, "names": names}, loads=orjson.loads
            ),
        )
    except (KeyError, TypeError, orjson.JSONDecodeError) as error:
        raise ValueError("is not a snapshot") from error
    return Parsed(str(content["shape"]), inventory, body[labels.end :])


@dataclass(frozen=True, slots=True)
class Status:
    """What the watcher reports about itself. Times are seconds of the epoch; 0.0 means never."""

    beat: float = 0.0  # when it was written
    as_of: float = 0.0  # the inventory was true at least until then
    received: float = 0.0  # the inventory has all events that came until then
    settings: str = ""  # the `basis` of the inventory
    content: Mapping[str, Any] = field(default_factory=dict)  # the whole content of the file
    fault: str = ""  # why nothing is known of it


class Snapshot:
    """Reads the snapshot. A faulty file raises nothing: the last good content is kept."""

    def __init__(self, folder: Path | str) -> None:
        self._inventory = Path(folder) / INVENTORY
        self._status = Path(folder) / STATUS
        self._seen: tuple[int, ...] = ()
        self.shape = ""  # changes with everything except what pods hold
        self.fault = ""  # what is wrong with the present file
        self._as_of = 0.0  # of the status, when the inventory was last good

    def refresh(self) -> Inventory | None:
        """The inventory, if there is a new one since the last call."""
        try:
            found = self._inventory.stat()
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
            if seen == self._seen:
                return None
            # Read, not mapped into memory: if a mapped file is cut short, the process is killed.
            data = limited_reading.read(self._inventory, _LARGEST)
        except OSError as error:
            self.fault = f"{self._inventory}: cannot be read: {error.strerror}"
            self._seen = ()  # the same file may come back
            return None
        self._seen = seen
        try:
            self.shape, inventory, _ = parse(data)
        except ValueError as error:
            self.fault = f"{self._inventory}: {error}"
            return None
        self.fault = ""
        return inventory

    def recall(self, store: Store) -> None:
        """Restore what the last process of the watcher knew, if anything is there."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            parsed = parse(limited_reading.read(self._inventory, _LARGEST))
            store.recall(gpu_nodes(parsed.inventory.index), orjson.loads(parsed.memory))

    def status(self, now: float = inf) -> Status:
        """The last status of the watcher, or why it cannot be used.

        While the inventory cannot be read, it counts as old whatever the status contains, so call
        `refresh` first.
        """
        status = self.said(now)
        if not (status.fault or self.fault):
            self._as_of = status.as_of
        return replace(status, as_of=min(status.as_of, self._as_of))

    def said(self, now: float = inf) -> Status:
        """The same without regard to the inventory, which is at least as new if it is read next.

        A time in the future comes from a wrong clock, and would hide a dead watcher until then.
        """
        try:
            return _status(limited_reading.read(self._status, _LARGEST_STATUS), now)
        except FileNotFoundError:
            fault = _MISSING
        except PermissionError:
            fault = _FORBIDDEN
        except OSError as error:
            fault = f"cannot be read: {(error.strerror or str(error)).lower()}; {_ANEW}"
        except ValueError as error:
            fault = str(error)
        return Status(fault=f"{self._status}: {fault}")


_ANEW = "the watcher writes it every second; if this message stays, see the log of `watch`"
_MISSING = (
    "does not exist: no watcher has written it yet; see the log of `watch`, and give it the same "
    "--snapshot as `serve`"
)
_FORBIDDEN = (
    "cannot be read by this process (no permission): run `watch` and `serve` as the same user, or "
    "give both the group of the folder (fsGroup)"
)
_FUTURE = "was written {ahead:.0f} s in the future: a clock was set back, or is wrong;  " + _ANEW


def _status(text: bytes, now: float) -> Status:
    """The status in this text; ValueError if it is not a status, or from the future."""
    if not text:
        raise ValueError(f"is empty; {_ANEW}")
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is not JSON; {_ANEW}") from error
    if not isinstance(data, dict) or {type(data.get(key)) for key in ("beat", "as_of")} - _NUMBERS:
        raise ValueError(f"is not a status of the watcher; {_ANEW}")
    received = data.get("received", 0.0)
    status = Status(
        float(data["beat"]),
        float(data["as_of"]),
        float(received) if type(received) in _NUMBERS else 0.0,
        str(data.get("settings", "")),
        data,
    )
    ahead = max(status.beat, status.as_of, status.received) - now
    if ahead > AHEAD_SECONDS:
        raise ValueError(_FUTURE.format(ahead=ahead))
    return status


_NUMBERS = {int, float}


def gpu_nodes(index: NodeIndex) -> list[Node]:
    """The existing nodes with GPUs, with all that the index has of them."""
    names = index.all_names()
    wanted = {number: name for number, name in names.items() if index.with_gpus >> number & 1}
    labels: dict[int, dict[str, str]] = {number: {} for number in wanted}
    for key in index.labels:
        table = index.label(key)
        for value in table:
            for number in node_sets.numbers(table.having(value)):
                if number in wanted:
                    labels[number][key] = value
    taints = {
        number: taints
        for taints, nodes in index.taint_sets
        for number in node_sets.numbers(nodes)
        if number in wanted
    }
    gpus: dict[int, dict[str, int]] = {number: {} for number in wanted}
    for resource, steps in index.allocatable.items():
        for amount, text in steps:  # ascending: the last one counts
            for number in node_sets.numbers(node_sets.decode(text)):
                if number in wanted:
                    gpus[number][resource] = amount
    return [Node(name, labels[n], taints[n], gpus[n]) for n, name in wanted.items()]


def writable(folder: Path) -> bool:
    """Whether files can be written there; creates the folder if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
