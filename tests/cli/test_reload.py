"""What a worker learns while it runs: new settings, new snapshots, a watcher that falls silent."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from math import inf
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from webhook.capacity.nodes import Node
from webhook.cli.reload import SILENT_SECONDS, Live, SingleWriter, Sources
from webhook.core.modes import Mode
from webhook.core.settings import Settings
from webhook.files import limited_reading
from webhook.inventory.log_limits import LINE_SECONDS, LimitedLog
from webhook.inventory.publish import AHEAD_SECONDS, STALE_SECONDS, Publisher, Snapshot, basis
from webhook.inventory.store import Store
from webhook.settings import file as settings_file
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = 1_800_000_000.0
GPUS = {"nvidia.com/gpu": 8}


class Bench:
    """A worker's knowledge on a clock that the test sets, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.now = NOW
        self.settings = folder / "settings.yaml"
        self.settings.write_text("scope: gpu\n")
        self.nodes = folder / "nodes.yaml"
        self.snapshot = folder / "snapshot"
        self.snapshot.mkdir()
        self._publisher = Publisher(self.snapshot, Settings())
        self._store = Store()
        self._read, write = os.pipe()
        self._log = Log(write)
        self._write = write

    def live(self, *, watched: bool = True, nodes: bool = False) -> Live:
        sources = Sources(
            str(self.settings),
            str(self.nodes) if nodes else "",
            Snapshot(self.snapshot) if watched else None,
        )
        settings, inventory = sources.read()
        made = Live(sources, settings, inventory, self._log, SingleWriter(), clock=lambda: self.now)
        made.lines = LimitedLog(self._log, lambda: self.now)
        made.refresh()
        return made

    def publish(self, *names: str, gpus: dict[str, int] = GPUS) -> None:
        for name in names:
            self._store.nodes.put(name, Node(name, {}, (), gpus), self.now)
        self._publisher.publish(self._store, self.now)
        self.tell()

    def tell(self, **more: object) -> None:
        status = {"beat": self.now, "as_of": self.now, "settings": basis(Settings()), **more}
        (self.snapshot / "status.json").write_bytes(orjson.dumps(status))

    def said(self) -> list[dict[str, Any]]:
        self._log.close()
        os.close(self._write)
        with os.fdopen(self._read) as lines:
            return [json.loads(line) for line in lines]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_without_sources_all_is_well_and_nothing_changes(bench: Bench) -> None:
    live = bench.live(watched=False)
    assert (live.refresh(), live.not_ready(), live.notes(), live.fresh) == (False, "", [], True)


def test_new_settings_are_taken(bench: Bench) -> None:
    live = bench.live(watched=False)
    bench.settings.write_text("policy:\n  rules: {GPU301: enforce}\n")

    assert live.refresh()
    assert live.decider().settings.policy.rules == {"GPU301": Mode.ENFORCE}
    assert not live.refresh()


def test_what_nobody_watches_is_known_for_ever(bench: Bench) -> None:
    bench.nodes.write_text('{"kind": "Node", "metadata": {"name": "n"}}')
    assert bench.live(watched=False, nodes=True).known_until() == inf


OF_GPUS = "resources: {gpus: [nvidia.com/gpu, amd.com/gpu]}\n"


@pytest.mark.parametrize(
    ("settings", "told", "damaged", "known_until"),
    [
        pytest.param("", {"received": NOW - 1}, False, NOW - 1, id="as the watcher says"),
        pytest.param("", {}, False, 0.0, id="it says nothing"),
        pytest.param("", {"received": "x"}, False, 0.0, id="no number"),
        pytest.param("", {"received": NOW + 60}, False, 0.0, id="a time in the future"),
        pytest.param("", {"received": NOW - 1}, True, 0.0, id="of an inventory that is damaged"),
        pytest.param(OF_GPUS, {"received": NOW - 1}, False, 0.0, id="made with other settings"),
        pytest.param(
            OF_GPUS,
            {"received": NOW - 1, "settings": basis(settings_file.parse(OF_GPUS))},
            False,
            NOW - 1,
            id="made with the same new settings",
        ),
        pytest.param(
            "capacity: {pools: [{name: a, gpus: {nvidia.com/gpu: 8}}]}\n",
            {"received": NOW - 1},
            False,
            0.0,
            id="another declared pool",
        ),
        pytest.param(
            "policy: {rules: {GPU301: enforce}}\n",
            {"received": NOW - 1},
            False,
            NOW - 1,
            id="settings of which the inventory does not depend are no others",
        ),
    ],
)
def test_until_when_the_inventory_has_all_changes(
    *, bench: Bench, settings: str, told: dict[str, Any], damaged: bool, known_until: float
) -> None:
    bench.publish("n")
    live = bench.live()
    bench.settings.write_text(settings or "{}\n")
    bench.tell(**told)
    if damaged:
        (bench.snapshot / "inventory").write_text("?")
    live.refresh()
    assert live.known_until() == known_until
    others = [each for each in live.notes() if "with other settings" in each]
    assert bool(others) is (live.settings != Settings() and known_until == 0)


def test_the_status_is_read_before_the_inventory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says must hold for the inventory that was read, not for the next one."""
    bench.publish("old")
    bench.tell(received=NOW - 9)
    live = bench.live()
    refresh = Snapshot.refresh

    def overtaken(self: Snapshot) -> Any:
        found = refresh(self)
        bench.publish("new")
        bench.tell(received=NOW - 1)
        return found

    monkeypatch.setattr(Snapshot, "refresh", overtaken)
    live.refresh()
    assert live.known_until() == NOW - 9


MISSED = (
    "amd.com/gpu is in the settings, but not in the shipped matchConditions: the "
    "API server sends no pod for this name alone, until the webhook configuration has the "
    "output of `gpu-webhook config match-conditions`"
)


@pytest.mark.parametrize("when", ["at start", "by new settings"])
def test_a_name_that_the_match_conditions_miss_is_said(bench: Bench, when: str) -> None:
    text = "resources: {gpus: [nvidia.com/gpu, amd.com/gpu]}\n"
    if when == "at start":
        bench.settings.write_text(text)
    live = bench.live(watched=False)
    if when == "by new settings":
        bench.settings.write_text(text)
        assert live.refresh()
    assert not live.refresh()
    assert [line["message"] for line in bench.said() if line["level"] == "warning"] == [MISSED]


def test_a_name_that_is_missed_is_not_said_again_by_other_settings(bench: Bench) -> None:
    text = "resources: {gpus: [amd.com/gpu]}\n"
    bench.settings.write_text(text)
    live = bench.live(watched=False)
    bench.settings.write_text(f"{text}scope: all-legacy\n")
    assert live.refresh()
    bench.settings.write_text("scope: gpu\n")
    assert live.refresh()
    bench.settings.write_text(text)
    assert live.refresh()
    assert [line["message"] for line in bench.said() if line["level"] == "warning"] == [MISSED] * 2


def test_a_static_inventory_is_read_again_by_new_settings(bench: Bench) -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "a"},
        "status": {"allocatable": {"example.com/gpu": "8"}},
    }
    bench.nodes.write_text(json.dumps(node))
    live = bench.live(watched=False, nodes=True)
    assert live.inventory is not None
    assert not live.inventory.has_gpus

    bench.settings.write_text("resources:\n  gpus: [example.com/gpu]\n")
    assert live.refresh()
    assert live.inventory.has_gpus


def _broken(file: Path) -> None:
    file.write_text("scop: gpu\n")


def _gone(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        pytest.param(_broken, "there is no setting scop; did you mean scope?", id="a mistake"),
        pytest.param(_gone, "cannot be read", id="no file any more"),
    ],
)
def test_bad_settings_change_nothing_and_are_said_once(
    bench: Bench, break_it: Callable[[Path], None], said: str
) -> None:
    live = bench.live(watched=False)
    settings = live.settings
    break_it(bench.settings)

    assert [live.refresh() for _ in range(3)] == [False, False, False]
    assert live.settings is settings
    (note,) = live.notes()
    assert said in note
    bench.settings.write_text("scope: gpu\n")
    assert not live.refresh()
    assert live.notes() == []
    bad, good = bench.said()
    assert said in bad["reason"]
    assert good["message"] == "the settings file is good again"


def test_settings_that_cannot_be_read_for_a_while_are_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without file descriptors, or by a disk that fails: nothing about the file changes."""
    live = bench.live(watched=False)
    bench.settings.write_text("scope: all-legacy\n")
    with monkeypatch.context() as without_files:
        fault = OSError(errno.EMFILE, "Too many open files")
        without_files.setattr(limited_reading, "read", _raiser(fault))
        assert [live.refresh() for _ in range(3)] == [False, False, False]
    assert "Too many open files" in live.notes()[0]
    assert live.refresh()
    assert live.settings.scope == "all-legacy"
    assert [line["level"] for line in bench.said()] == ["error", "info"]


def _raiser(error: Exception) -> Callable[..., bytes]:
    def fail(*_: object, **__: object) -> bytes:
        raise error

    return fail


def test_a_snapshot_is_taken_as_soon_as_it_is_there(bench: Bench) -> None:
    live = bench.live()
    assert live.inventory is None
    assert not live.fresh
    assert any("unknown; nothing is denied" in note for note in live.notes())

    bench.publish("a")
    assert live.refresh()
    assert live.inventory is not None
    assert (live.fresh, live.notes(), live.not_ready()) == (True, [], "")
    assert not live.refresh()


def test_an_inventory_goes_stale_and_comes_back(bench: Bench) -> None:
    bench.publish("a")
    live = bench.live()
    bench.now += STALE_SECONDS + 1
    bench.tell(as_of=NOW)

    assert live.refresh()
    assert not live.decider().fresh
    assert [note.partition(" for")[0] for note in live.notes()] == ["inventory: stale"]
    assert live.not_ready() == ""  # it lives; the API server is away
    bench.now += LINE_SECONDS
    bench.tell()
    assert live.refresh()
    assert live.decider().fresh
    stale, again = bench.said()
    assert (stale["level"], again["level"]) == ("warning", "info")


def test_a_cluster_without_gpus_is_told_of(bench: Bench) -> None:
    bench.publish("a", gpus={})
    assert bench.live().notes() == [
        "inventory: no node offers GPUs; nothing is denied for capacity"
    ]


@pytest.mark.parametrize(
    ("silent", "dead"),
    [
        pytest.param(SILENT_SECONDS - 1, False, id="a while: it may be busy"),
        pytest.param(SILENT_SECONDS + 1, True, id="half a minute: it is dead"),
    ],
)
def test_a_watcher_that_says_nothing(bench: Bench, silent: float, dead: bool) -> None:  # noqa: FBT001
    bench.publish("a")
    live = bench.live()
    bench.now += silent
    live.refresh()
    assert bool(live.not_ready()) is dead


def test_a_certificate_that_no_configuration_trusts_is_a_reason_not_to_be_ready(
    bench: Bench,
) -> None:
    bench.publish("a")
    live = bench.live()
    for why in ("", "no webhook configuration trusts its certificate", ""):
        bench.tell(certificates={"leads": True, "fault": "x", "untrusted": why})
        live.refresh()
        assert live.not_ready() == why
    assert [line["message"] for line in bench.said()] == ["no longer ready", "ready again"]


def test_a_watcher_that_never_came_has_half_a_minute(bench: Bench) -> None:
    live = bench.live()
    assert live.not_ready() == ""
    bench.now += SILENT_SECONDS + 1
    assert live.not_ready().startswith("the watcher's status could not be used for 31 s: ")
    assert "does not exist" in live.not_ready()
    assert "A replica that is not ready gets no reviews" in live.not_ready()


def test_a_watcher_that_fell_silent(bench: Bench) -> None:
    bench.publish("a")
    live = bench.live()
    bench.now += SILENT_SECONDS + 1
    live.refresh()
    assert live.not_ready().startswith(
        "the watcher has written nothing for 31 s: it ended, it hangs, "
    )
    bench.tell()
    live.refresh()
    assert live.not_ready() == ""
    away, back = bench.said()
    assert (away["level"], away["message"]) == ("error", "no longer ready")
    assert away["reason"].startswith("the watcher has written nothing")
    assert (back["level"], back["message"]) == (
        "info",
        "ready again",
    )


def _garbage(file: Path) -> None:
    file.write_bytes(b"{")


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        pytest.param(_gone, "does not exist", id="removed"),
        pytest.param(_garbage, "is not JSON", id="cut short"),
        pytest.param(_folder, "cannot be read: is a directory", id="a folder"),
    ],
)
def test_a_status_that_cannot_be_used_is_called_so_and_not_stale(
    bench: Bench, break_it: Callable[[Path], None], why: str
) -> None:
    bench.publish("a")
    live = bench.live()
    bench.now += SILENT_SECONDS + 1
    bench.tell()
    live.refresh()
    status = bench.snapshot / "status.json"
    break_it(status)
    for _ in range(3):
        live.refresh()
    (note,) = live.notes()
    assert note.startswith(f"watcher: {status}: {why}")
    assert "nothing is denied for capacity" in note
    assert live.not_ready() == "", "it may be back in a moment"
    if status.is_dir():
        status.rmdir()
    bench.now += LINE_SECONDS
    bench.tell()
    live.refresh()
    assert live.notes() == []
    failed, works = bench.said()
    assert failed["reason"] == note
    assert works["message"] == "the inventory is fresh"


def test_a_status_that_comes_and_goes_is_no_flood(bench: Bench) -> None:
    bench.publish("a")
    live = bench.live()
    for _ in range(20):
        _garbage(bench.snapshot / "status.json")
        live.refresh()
        bench.now += 0.5
        bench.tell()
        live.refresh()
        bench.now += 0.5
    assert len(bench.said()) <= 3


@pytest.mark.parametrize("ahead", [60.0, 1e9, 1e300])
def test_a_status_of_the_future_is_no_sign_of_life(bench: Bench, ahead: float) -> None:
    bench.publish("a")
    live = bench.live()
    bench.tell(beat=NOW + ahead, as_of=NOW + ahead)
    live.refresh()
    assert live.fresh is False
    bench.now = NOW + 31
    live.refresh()
    assert live.not_ready().startswith("the watcher's status could not be used for 31 s: ")
    assert "in the future: a clock was set back" in live.not_ready()


def test_clocks_may_differ_by_some_seconds(bench: Bench) -> None:
    bench.publish("a")
    bench.tell(beat=NOW + 4, as_of=NOW + 4)
    live = bench.live()
    assert live.fresh is True
    bench.now = NOW + 31
    assert not live.not_ready()


def test_a_clock_that_was_set_back_makes_no_dead_watcher_live(bench: Bench) -> None:
    live = bench.live()
    bench.now = NOW - 3600
    live.refresh()
    assert not live.not_ready()
    bench.now += 31 + AHEAD_SECONDS
    assert "could not be used for 31 s" in live.not_ready()


def test_a_damaged_snapshot_keeps_the_one_before(bench: Bench) -> None:
    bench.publish("a")
    live = bench.live()
    inventory = live.inventory
    (bench.snapshot / "inventory").write_bytes(b"{")
    live.refresh()
    assert live.inventory is inventory
    assert any("inventory: " in note for note in live.notes())


def test_a_snapshot_that_cannot_be_read_grows_old_while_the_watcher_lives(bench: Bench) -> None:
    """As when an older watcher writes its own format into the same folder."""
    bench.publish("a")
    live = bench.live()
    inventory = bench.snapshot / "inventory"
    good = inventory.read_bytes()
    bench.now += 60
    bench.tell()
    live.refresh()
    older = re.sub(rb'"format":\d+', b'"format":2', good, count=1)
    assert older != good
    inventory.write_bytes(older)
    for seconds, fresh in ((STALE_SECONDS, True), (1, False), (60, False)):
        bench.now += seconds
        bench.tell()
        live.refresh()
        assert live.fresh is fresh
    assert not live.not_ready()
    assert any("stale for more than" in note for note in live.notes())
    inventory.write_bytes(good)
    live.refresh()
    assert live.fresh
    assert live.notes() == []


def test_a_snapshot_that_was_away_for_a_while_is_good_again(bench: Bench) -> None:
    bench.publish("a")
    live = bench.live()
    inventory, away = bench.snapshot / "inventory", bench.snapshot / "away"
    inventory.rename(away)
    bench.now += STALE_SECONDS + 1
    bench.tell()
    live.refresh()
    assert not live.fresh
    away.rename(inventory)
    live.refresh()
    assert live.fresh
    assert live.notes() == []


def test_one_worker_speaks_for_all() -> None:
    """Locks belong to processes: of two, one may speak; when it ends the other may."""
    program = (
        "import os, sys\n"
        "from webhook.cli.reload import SingleWriter\n"
        "speaker = SingleWriter()\n"
        "ready, go = os.pipe(), os.pipe()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    mine = speaker.is_me()\n"
        "    os.write(ready[1], b'1' if mine else b'0')\n"
        "    os.read(go[0], 1)\n"
        "    os._exit(0)\n"
        "first = os.read(ready[0], 1)\n"
        "mine = speaker.is_me()\n"
        "os.write(go[1], b'x')\n"
        "os.waitpid(child, 0)\n"
        "print(first.decode(), int(mine), int(speaker.is_me()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stdout.split() == ["1", "0", "1"]
