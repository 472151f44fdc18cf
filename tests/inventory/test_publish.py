"""The snapshot goes through a file unchanged, and a file that is not whole changes nothing."""

from __future__ import annotations

import errno
import resource
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import Node, group
from webhook.core.settings import Capacity, Pool, Settings, Taint
from webhook.files import limited_reading
from webhook.inventory import object_facts
from webhook.inventory.object_facts import ClassFacts, NamespaceFacts, PodFacts
from webhook.inventory.publish import (
    INVENTORY,
    STATUS,
    Publisher,
    Snapshot,
    Status,
    declared,
)
from webhook.inventory.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GPU = "nvidia.com/gpu"
POOL = Pool("burst", {GPU: 16}, nodes=3, labels={"zone": "c"})
SETTINGS = replace(Settings(), capacity=Capacity(pools=(POOL,)))


_NAMESPACE = NamespaceFacts({"gpu-webhook.dev/ignore": "true"}, "[]", {"zone": "a"})


def filled() -> Store:
    store = Store()
    for number in range(40):
        name = f"n{number}"
        labels = {"kubernetes.io/hostname": name, "zone": "ab"[number % 2], "ü\n": 'q"'}
        taints = (Taint(GPU),) if number % 3 else ()
        store.nodes.put(
            name, Node(name, labels, taints, {GPU: 8 if number % 3 else 0}, others=("a.io/gpu",)), 0
        )
    store.pods.put("x/a", PodFacts("n1", ((GPU, 3),), ()), 0)
    store.namespaces.put("x", _NAMESPACE, 0)
    facts = ClassFacts({"a": "b"}, [{"key": "x"}], {"memory": "1Gi"})
    store.runtime_classes.put("nvidia", facts, 0)
    store.device_classes.put("c", ("deviceclass.resource.kubernetes.io/c", GPU), 0)
    return store


def comparable(index: NodeIndex) -> dict[str, Any]:
    """An index in plain data."""
    data = orjson.loads(orjson.dumps({**index.as_data(), "labels": dict(index.labels)}))
    labels = {key: orjson.loads(text) for key, text in data["labels"].items()}
    return {**data, "labels": labels, "names": orjson.loads(data["names"])}


def test_a_pod_may_ask_for_any_amount_and_the_snapshot_is_written(tmp_path: Path) -> None:
    """A tenant names a node and requests 10^20 GPUs; JSON here has integers of 64 bits."""
    store = filled()
    for number, amount in enumerate(["1" + "0" * 20, "1e299", "9" * 400, str(2**63 - 1)]):
        limits = {"limits": {GPU: amount}}
        spec = {"nodeName": "n1", "containers": [{"name": "c", "resources": limits}]}
        store.pods.put(f"x/{number}", object_facts.pod({"spec": spec}, SETTINGS), 0)
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {GPU: "1e100"}}}
    store.nodes.put("n1", object_facts.node(node, SETTINGS), 0)
    assert Publisher(tmp_path, SETTINGS).publish(store, 0)
    assert Snapshot(tmp_path).refresh() is not None


def test_what_is_read_is_what_is_known(tmp_path: Path) -> None:
    store = filled()
    assert Publisher(tmp_path, SETTINGS).publish(store, 0)
    found = Snapshot(tmp_path).refresh()
    assert found is not None
    expected = store.inventory(0)
    index = NodeIndex.of((*expected.classes, *declared(SETTINGS)))
    assert comparable(found.index) == comparable(index)
    assert found.index.totals[GPU].held == 3
    assert found.index.totals[GPU].largest == 16, "pools that may be empty count"
    assert found.namespaces == expected.namespaces
    assert found.whitelists == expected.whitelists == {"x": "[]"}
    assert found.node_selectors == expected.node_selectors == {"x": {"zone": "a"}}
    assert found.runtime_classes == expected.runtime_classes
    assert found.class_tolerations == expected.class_tolerations == {"nvidia": [{"key": "x"}]}
    assert found.class_overheads == expected.class_overheads == {"nvidia": {"memory": "1Gi"}}
    assert found.served_by_dra == expected.served_by_dra
    assert found.values("zone") == {"a", "b", "c"}
    assert found.index.named("n7").bit_count() == 1


def test_namespaces_that_were_never_listed_are_unknown_and_those_of_a_file_are_not(
    tmp_path: Path,
) -> None:
    store, publisher, reader = Store(), Publisher(tmp_path, SETTINGS), Snapshot(tmp_path)
    publisher.publish(store, 0)
    found = reader.refresh()
    assert found is not None
    assert found.whitelist("plain") is None
    assert store.inventory(0).whitelist("plain") == ""
    store.namespaces.put("plain", object_facts.namespace({}, frozenset()), 1)
    publisher.publish(store, 1)
    found = reader.refresh()
    assert found is not None
    assert found.whitelist("plain") == ""
    assert found.whitelist("other") is None
    assert found.namespaces == {}
    assert found.node_selector("plain") == {}
    assert found.node_selector("other") is None


def test_an_empty_cluster_goes_through_too(tmp_path: Path) -> None:
    assert Publisher(tmp_path, Settings()).publish(Store(), 0)
    found = Snapshot(tmp_path).refresh()
    assert found is not None
    assert not found.has_gpus
    assert found.classes == group([])


def test_it_is_written_only_when_something_changed(tmp_path: Path) -> None:
    store, publisher, reader = filled(), Publisher(tmp_path, SETTINGS), Snapshot(tmp_path)
    assert publisher.publish(store, 0)
    assert not publisher.publish(store, 1)
    assert reader.refresh() is not None
    assert reader.refresh() is None
    shape = reader.shape

    store.pods.put("x/a", PodFacts("n1", ((GPU, 4),), ()), 2)
    assert publisher.publish(store, 2)
    found = reader.refresh()
    assert found is not None
    assert found.index.totals[GPU].held == 4
    assert reader.shape == shape, "only pods came and went"

    changes: list[Callable[[], None]] = [
        lambda: store.nodes.put("n0", Node("n0", {"zone": "z"}), 3),
        lambda: store.namespaces.put("y", NamespaceFacts({}, "[]"), 3),
        lambda: store.runtime_classes.drop("nvidia", 3),
        lambda: store.device_classes.put("d", ("example.com/gpu",), 3),
    ]
    shapes = {shape}
    for change in changes:
        change()
        assert publisher.publish(store, 3)
        assert reader.refresh() is not None
        shapes.add(reader.shape)
    assert len(shapes) == 5


@pytest.mark.parametrize("left", [None, b"", b"half of it"], ids=["nothing", "empty", "damaged"])
def test_a_file_that_somebody_removed_or_damaged_is_written_again(
    left: bytes | None, tmp_path: Path
) -> None:
    """As when a folder in memory is mounted anew."""
    store, publisher, reader = filled(), Publisher(tmp_path, SETTINGS), Snapshot(tmp_path)
    publisher.publish(store, 0)
    if left is None:
        (tmp_path / INVENTORY).unlink()
    else:
        (tmp_path / INVENTORY).write_bytes(left)
    assert publisher.publish(store, 1)
    assert reader.refresh() is not None
    assert not publisher.publish(store, 2)


def test_another_life_of_the_watcher_gives_the_same_shape(tmp_path: Path) -> None:
    stamps = set()
    for _ in range(2):
        publisher = Publisher(tmp_path, SETTINGS)
        publisher.publish(filled(), 0)
        stamps.add(publisher.stamp)
    assert len(stamps) == 1


def test_lost_gpus_that_are_forgotten_are_a_change(tmp_path: Path) -> None:
    store, publisher, reader = filled(), Publisher(tmp_path, Settings()), Snapshot(tmp_path)
    store.nodes.put("n1", Node("n1", {}, (), {}), 10)
    assert publisher.publish(store, 11)
    before = reader.refresh()
    assert publisher.publish(store, 10 + 24 * 3600)
    after = reader.refresh()
    assert before is not None
    assert after is not None
    assert before.index.totals[GPU].nodes == after.index.totals[GPU].nodes + 1


def test_another_life_begins_with_what_this_one_knew(tmp_path: Path) -> None:
    """A watcher that is started again finds a device gone, a label, and a node."""
    store, hour = filled(), 3600.0
    store.nodes.put("n1", replace(store.nodes.facts["n1"], gpus={GPU: 4}), 10)
    assert Publisher(tmp_path, SETTINGS).publish(store, 11)
    after = Store()
    Snapshot(tmp_path).recall(after)
    after.nodes.begin()
    n2 = store.nodes.facts["n2"]
    after.nodes.put("n1", replace(store.nodes.facts["n1"], gpus={GPU: 2}), hour)
    after.nodes.put("n2", replace(n2, labels={"kubernetes.io/hostname": "n2"}, gpus={GPU: 7}), hour)
    after.nodes.end(hour)
    counted = {each.name: each for each in after.counted(hour)}
    assert {name: dict(each.counted) for name, each in counted.items()} == {
        "n1": {GPU: 8},
        "n2": {GPU: 8},
    }
    assert counted["n2"].former == {"zone": ("a",), "ü\n": ('q"',)}
    removed = [each for each in after.classes(hour) if each.removed]
    assert sum(each.removed for each in removed) == 24, "all other nodes with GPUs"
    assert {each.labels["zone"] for each in removed} == {"a", "b"}
    counted = {each.name: each for each in after.counted(11 + 24 * hour)}
    assert counted["n1"].counted == {GPU: 4}, "its first loss was before the start"
    assert counted["n2"].counted == {GPU: 8}


@pytest.mark.parametrize("data", [b"", b"hello\n", b'{"format":1}\n'], ids=repr)
def test_a_file_that_is_none_of_ours_is_nothing_to_begin_with(data: bytes, tmp_path: Path) -> None:
    store = Store()
    Snapshot(tmp_path).recall(store)
    (tmp_path / INVENTORY).write_bytes(data)
    Snapshot(tmp_path).recall(store)
    assert store.nodes.facts == {}


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "half of it": (lambda data: data[: len(data) // 2], "incomplete"),
    "all but a byte": (lambda data: data[:-1], "incomplete"),
    "something after it": (lambda data: data + b" ", "incomplete"),
    "one byte changed": (
        lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
        "is damaged",
    ),
    "nothing": (lambda _: b"", "not a snapshot"),
    "another text": (lambda _: b"hello\nyou", "not a snapshot"),
    "other JSON": (lambda _: b"[1]\n", "not a snapshot"),
    "only the first line": (lambda data: data.partition(b"\n")[0], "not a snapshot"),
    "another version": (
        lambda data: data.replace(b'"format":6', b'"format":9', 1),
        "another version",
    ),
    "lengths that are none": (
        lambda data: data.replace(b'"index":', b'"index":"', 1).replace(b",", b'",', 3),
        "not a snapshot",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_reported_and_the_next_good_one_is_read(
    damage: Callable[[bytes], bytes], message: str, tmp_path: Path
) -> None:
    store, publisher, reader = filled(), Publisher(tmp_path, SETTINGS), Snapshot(tmp_path)
    publisher.publish(store, 0)
    assert reader.refresh() is not None
    shape, file = reader.shape, tmp_path / INVENTORY
    file.write_bytes(damage(file.read_bytes()))
    assert reader.refresh() is None
    assert message in reader.fault
    assert reader.shape == shape
    store.nodes.drop("n1", 1)
    publisher.publish(store, 1)
    assert reader.refresh() is not None
    assert reader.fault == ""


def test_a_folder_that_is_full_keeps_the_old_file_and_no_half_of_a_new_one(tmp_path: Path) -> None:
    store, publisher, reader = filled(), Publisher(tmp_path, SETTINGS), Snapshot(tmp_path)
    publisher.publish(store, 0)
    store.nodes.drop("n1", 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # of any file
    try:
        with pytest.raises(OSError, match="large"):
            publisher.publish(store, 1)
        publisher.write_status({"beat": 2, "as_of": 1})  # there is room for it
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sorted(each.name for each in tmp_path.iterdir()) == [INVENTORY, STATUS]
    assert reader.refresh() is not None
    assert publisher.publish(store, 2)


def test_no_file_is_a_fault_not_an_error(tmp_path: Path) -> None:
    reader = Snapshot(tmp_path / "nowhere")
    assert reader.refresh() is None
    assert "No such file" in reader.fault
    assert reader.status().beat == 0


UNUSABLE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "cut short": (b"{", "is not JSON"),
    "garbage": (b"\x00\xff", "is not JSON"),
    "no object": (b"[]", "is not a status of the watcher"),
    "a time that is missing": (b'{"beat":1}', "is not a status of the watcher"),
    "a time that is a text": (b'{"beat":"7","as_of":1}', "is not a status of the watcher"),
    "a time that is a truth": (b'{"beat":true,"as_of":1}', "is not a status of the watcher"),
    "from the future": (b'{"beat":1130.0,"as_of":1}', "was written 130 s in the future"),
    "endless": (b'{"beat":1e300,"as_of":1}', "s in the future"),
    "knows what will be": (b'{"beat":1000,"as_of":1200}', "was written 200 s in the future"),
}


@pytest.mark.parametrize(("text", "why"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_status_that_cannot_be_used_says_why(text: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / STATUS).write_bytes(text)
    status = Snapshot(tmp_path).status(1000.0)
    assert status == Status(fault=status.fault)
    assert status.fault.startswith(f"{tmp_path / STATUS}: ")
    assert why in status.fault


def test_a_status_that_cannot_be_opened_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Snapshot(tmp_path)
    assert "does not exist" in reader.status(1.0).fault
    (tmp_path / STATUS).mkdir()
    assert "cannot be read: is a directory" in reader.status(1.0).fault

    def deny(*_: object) -> bytes:  # mode bits do not hold for root
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(limited_reading, "read", deny)
    fault = reader.status(1.0).fault
    assert "cannot be read by this process" in fault
    assert "the same user" in fault


def test_a_status_is_told(tmp_path: Path) -> None:
    Publisher(tmp_path, Settings()).write_status({"beat": 12.5, "as_of": 11, "more": [1]})
    status = Snapshot(tmp_path).status()
    assert (status.beat, status.as_of, status.content["more"]) == (12.5, 11.0, [1])
    assert [each.name for each in tmp_path.iterdir()] == [STATUS]
