"""Publishes the snapshot from the watcher to the workers: two files in a shared folder.

`inventory` is written whole and renamed into place, when something changed. Its first line is JSON:
a checksum, how long each part is, and `shape`, which changes with anything but what pods hold. The
parts are JSON too; those of labels are texts that nobody reads before a pod asks for that label,
and what is remembered of nodes is for the next life of the watcher only.
`status.json` is written every second: it tells that the watcher lives and since when what it
published may be behind.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import orjson

from webhook.capacity import nodesets
from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import Inventory, Node, NodeClass
from webhook.files import capped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.settings import Settings
    from webhook.inventory.store import Nodes, Store

INVENTORY = "inventory"
STATUS = "status.json"
_FORMAT = 4
_OS = "kubernetes.io/os"
_LARGEST = 256 * capped.MIB  # 15,000 nodes take some 10
_LARGEST_STATUS = capped.MIB
AHEAD_SECONDS = 5.0  # between the clocks of two processes
STALE_SECONDS = 300.0  # an inventory that may be so far behind the cluster denies nothing


def declared(settings: Settings) -> tuple[NodeClass, ...]:
    """The nodes that pools of the settings may have: a pool scaled to zero is no `never`.

    Every kubelet of Linux labels its node so, and no Windows pod is ever judged here. A label that
    a pool does not name may be there all the same: kubelets and clouds set many.
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


class Publisher:
    """Writes the files; remembers what is written already."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._declared = declared(settings)
        self._shape: tuple[int, ...] = ()
        self._held = -1
        self._index: dict[str, Any] = {}
        self._lasting = b""
        self._names = b""
        self._memory = b""
        self._labels: list[tuple[str, bytes]] = []
        self._classes: tuple[NodeClass, ...] | None = None  # that the index is made of
        self.stamp = ""
        self.size = 0

    def publish(self, store: Store, now: float) -> bool:
        """Write what changed, if anything did; tell if so. May raise OSError."""
        store.nodes.forget(now)
        shape, held = store.shape, store.pods.held_version
        if shape == self._shape and held == self._held and self._is_there():
            return False
        if shape != self._shape:
            self._reshape(store, now)
        # Only what pods hold is counted anew: labels, the bulk of it all, stay as they are.
        holding = NodeIndex.of(
            (*store.holding(now), *(replace(each, labels={}, taints=()) for each in self._declared))
        )
        changed = {key: value for key, value in holding.as_data().items() if key in _HELD}
        self._write(orjson.dumps({**self._index, **changed}))
        self._shape, self._held = shape, held
        return True

    def _is_there(self) -> bool:
        """Whether nobody has removed or damaged the file since it was written."""
        try:
            return (self._folder / INVENTORY).stat().st_size == self.size
        except FileNotFoundError:
            return False

    def _reshape(self, store: Store, now: float) -> None:
        classes = store.classes(now)
        if classes is not self._classes:  # namespaces come and go more often than nodes
            self._classes = classes
            index = NodeIndex.of((*classes, *self._declared), dumps=_dumps)
            self._labels = [(key, text.encode()) for key, text in sorted(index.labels.items())]
            self._names = index.names.encode()
            self._index = replace(index, labels={}, names="").as_data()
        self._memory = orjson.dumps(store.nodes.memory.as_data())
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


def _dumps(value: object) -> str:
    return orjson.dumps(value).decode()


def _replace(path: Path, texts: list[bytes]) -> int:
    """Write a file so that a reader sees the old one or the new one; give its size."""
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("wb") as file:
            for text in texts:
                file.write(text)
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()  # of a folder that is full, this half may be what fills it
        raise
    return sum(map(len, texts))


class _Labels(Mapping[str, str]):
    """Label tables in a snapshot, each decoded when it is asked for."""

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
    """What a file holds."""

    shape: str  # changes whenever anything but what pods hold does
    inventory: Inventory
    memory: bytes  # what the watcher remembers, as JSON


def parse(data: bytes) -> Parsed:
    """What the file holds; ValueError if it is damaged."""
    head, newline, body = data.partition(b"\n")
    try:
        told = orjson.loads(head)
        if not newline or told["format"] != _FORMAT:
            raise ValueError("is of another version, or no snapshot")
        lasting_at = told["index"]
        names_at = lasting_at + told["lasting"]
        labels = _Labels(body, told["labels"], names_at + told["names"])
        if labels.end + told["memory"] != len(body) or crc32(body) != told["checksum"]:
            raise ValueError("is damaged, or only half there")
        index = orjson.loads(body[:lasting_at])
        lasting = orjson.loads(body[lasting_at:names_at])
        names = body[names_at : names_at + told["names"]].decode()
        inventory = Inventory(
            **{**lasting, "served_by_dra": frozenset(lasting["served_by_dra"])},
            watched=True,
            published=NodeIndex.from_data(
                {**index, "labels": labels, "names": names}, loads=orjson.loads
            ),
        )
    except (KeyError, TypeError, orjson.JSONDecodeError) as error:
        raise ValueError("is no snapshot") from error
    return Parsed(str(told["shape"]), inventory, body[labels.end :])


@dataclass(frozen=True, slots=True)
class Status:
    """What the watcher says of itself. Times are seconds of the epoch; 0.0 stands for never."""

    beat: float = 0.0  # when it said so
    as_of: float = 0.0  # until then, at least, the inventory was true
    told: Mapping[str, Any] = field(default_factory=dict)  # all that it said
    fault: str = ""  # why nothing is known of it


class Snapshot:
    """The reader's side. Nothing that is wrong with a file raises: what was there is kept."""

    def __init__(self, folder: Path | str) -> None:
        self._inventory = Path(folder) / INVENTORY
        self._status = Path(folder) / STATUS
        self._seen: tuple[int, ...] = ()
        self.shape = ""  # changes whenever anything but what pods hold does
        self.fault = ""  # what is wrong with the file that is there now
        self._as_of = 0.0  # of the status, when nothing was wrong with the inventory

    def refresh(self) -> Inventory | None:
        """The inventory, if a new one is there since the last call."""
        try:
            found = self._inventory.stat()
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
            if seen == self._seen:
                return None
            # Not mapped into memory: a file cut short under a map would end the process.
            data = capped.read(self._inventory, _LARGEST)
        except OSError as error:
            self.fault = f"{self._inventory}: cannot be read: {error.strerror}"
            self._seen = ()  # the same file may be back
            return None
        self._seen = seen
        try:
            self.shape, inventory, _ = parse(data)
        except ValueError as error:
            self.fault = f"{self._inventory}: {error}"
            return None
        self.fault = ""
        return inventory

    def recall(self, nodes: Nodes) -> None:
        """Tell a new store what the last life of the watcher knew of nodes, if anything did."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            parsed = parse(capped.read(self._inventory, _LARGEST))
            nodes.recall(gpu_nodes(parsed.inventory.index), orjson.loads(parsed.memory))

    def status(self, now: float = inf) -> Status:
        """What the watcher said last; or why that cannot be used.

        Times that are later than now come from a clock that was wrong, and would be signs of life
        for as long. While the inventory cannot be read, what is known of it grows old, whatever the
        watcher says of the file: ask for it (`refresh`) first.
        """
        try:
            status = _status(capped.read(self._status, _LARGEST_STATUS), now)
        except FileNotFoundError:
            fault = _MISSING
        except PermissionError:
            fault = _FORBIDDEN
        except OSError as error:
            fault = f"cannot be read: {(error.strerror or str(error)).lower()}; {_ANEW}"
        except ValueError as error:
            fault = str(error)
        else:
            if not self.fault:
                self._as_of = status.as_of
            return replace(status, as_of=min(status.as_of, self._as_of))
        return Status(fault=f"{self._status}: {fault}")


_ANEW = "the watcher writes it anew every second; if this stays, see the log of `watch`"
_MISSING = (
    "is not there: no watcher has written it so far; see the log of `watch`, and give it the same "
    "--snapshot as `serve`"
)
_FORBIDDEN = (
    "may not be read by this process: run `watch` and `serve` as the same user, or give both the "
    "group of the folder (fsGroup)"
)
_FUTURE = "was written {ahead:.0f} s from now: a clock was set back, or is wrong; " + _ANEW


def _status(text: bytes, now: float) -> Status:
    """What a watcher wrote; ValueError if it was none, or is of the future."""
    if not text:
        raise ValueError(f"is empty; {_ANEW}")
    try:
        told = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is no JSON; {_ANEW}") from error
    if not isinstance(told, dict) or {type(told.get(key)) for key in ("beat", "as_of")} - _NUMBERS:
        raise ValueError(f"is not what a watcher writes; {_ANEW}")
    status = Status(float(told["beat"]), float(told["as_of"]), told)
    ahead = max(status.beat, status.as_of) - now
    if ahead > AHEAD_SECONDS:
        raise ValueError(_FUTURE.format(ahead=ahead))
    return status


_NUMBERS = {int, float}


def gpu_nodes(index: NodeIndex) -> list[Node]:
    """The nodes that are there and have GPUs, with all that the index says of them."""
    names = index.all_names()
    wanted = {number: name for number, name in names.items() if index.with_gpus >> number & 1}
    labels: dict[int, dict[str, str]] = {number: {} for number in wanted}
    for key in index.labels:
        table = index.label(key)
        for value in table:
            for number in nodesets.numbers(table.having(value)):
                if number in wanted:
                    labels[number][key] = value
    taints = {
        number: taints
        for taints, nodes in index.taint_sets
        for number in nodesets.numbers(nodes)
        if number in wanted
    }
    gpus: dict[int, dict[str, int]] = {number: {} for number in wanted}
    for resource, steps in index.allocatable.items():
        for amount, text in steps:  # ascending: the last one counts
            for number in nodesets.numbers(nodesets.decode(text)):
                if number in wanted:
                    gpus[number][resource] = amount
    return [Node(name, labels[n], taints[n], gpus[n]) for n, name in wanted.items()]


def writable(folder: Path) -> bool:
    """Whether files can be written there; the folder is made if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
