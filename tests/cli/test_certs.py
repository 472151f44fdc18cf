"""`gpu-webhook certs`: the table and its exit code for each fault; a new leaf and a new CA."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import settings

from tests.issuing.fake_api import NAMESPACE, SECRETS, FakeApi, path_of
from tests.issuing.replicas import DAY, HOST, Replica, Time
from webhook.certs.authority import new_authority
from webhook.certs.own_certificates import OwnCertificates
from webhook.cli import certs
from webhook.cli.main import main
from webhook.cluster.client import Refused
from webhook.core.errors import InputError
from webhook.doctor.lines import FAILED, OK, WARNING
from webhook.issuing.keeper import PASS_SECONDS
from webhook.issuing.objects import CONFIGURATIONS, SECRET, Objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webhook.cluster.client import Client

REPAIR, GUARD = CONFIGURATIONS[:2]
IS_NIGHTLY = settings.get_current_profile_name() == "nightly"
ARGS = SimpleNamespace(namespace=NAMESPACE, distrust=False)
DISTRUST = SimpleNamespace(namespace=NAMESPACE, distrust=True)


class Bench:
    """An installed webhook, and the command."""

    def __init__(self, folder: Path) -> None:
        self.api, self.time = FakeApi(REPAIR, GUARD), Time()
        self.replica = Replica(self.api, self.time, folder / "tls")
        self.replica.tick()
        self.follower = Replica(self.api, self.time, folder / "follower")
        self.follower.tick()
        self.works = True  # whether a leader works while the command waits
        self.slept = 0.0
        self.at: dict[int, Callable[[Bench], object]] = {}  # what happens in a second of the wait
        self.failed: list[float] = []  # when the API server did not accept what the server shows

    def monotonic(self) -> float:
        return self.time.steady

    def sleep(self, seconds: float) -> None:
        """A second at a time: passes at other seconds for each replica, and what others do."""
        end = self.slept + seconds
        while self.slept < end:
            self.slept += (step := min(1.0, end - self.slept))
            self.time.steady += step
            if self.slept % 1:
                continue
            if act := self.at.pop(int(self.slept), None):
                act(self)
            both = self.replica, self.follower
            for replica, second in zip(both, (0, 3), strict=True):
                if self.works and self.slept % PASS_SECONDS == second:
                    replica.keeper.pass_once()
            if not all(replica.is_trusted() for replica in both):
                self.failed.append(self.slept)

    def connect(self, _: object) -> tuple[SimpleNamespace, Objects]:
        return SimpleNamespace(now=self.time.wall), Objects(cast("Client", self.api), NAMESPACE)

    def kept(self) -> OwnCertificates:
        return OwnCertificates.read(self.api.secret(), self.time.wall())


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    monkeypatch.setattr(certs, "_connect", made.connect)
    monkeypatch.setattr(certs, "time", made)
    return made


def stranger(bench: Bench) -> None:
    now = bench.time.wall()
    bench.api.configure(GUARD, bundle=new_authority("other", now - DAY, now + DAY).text)


def without_configurations(bench: Bench) -> None:
    for each in (REPAIR, GUARD):
        del bench.api.objects[path_of(each)]


def late(bench: Bench) -> None:
    bench.time.set_by += 25 * DAY


def waiting(bench: Bench) -> None:
    new = bench.replica.plan.authority(bench.time.wall())
    bench.api.set_secret({**bench.api.secret(), **OwnCertificates(next=new).data()})


def without_leaf(bench: Bench) -> None:
    data = bench.api.secret()
    bench.api.set_secret({name: text for name, text in data.items() if "tls" not in name})


def of_another_ca(bench: Bench) -> None:
    plan, now = bench.replica.plan, bench.time.wall()
    leaf = plan.leaf(plan.authority(now), now)
    bench.api.set_secret({**bench.api.secret(), **OwnCertificates(leaf=leaf).data()})


STATES: dict[str, tuple[Callable[[Bench], object], int, str]] = {
    "in order": (lambda _: None, OK, "trusts the server"),
    "an empty bundle": (lambda b: b.api.configure(GUARD), FAILED, "its caBundle is empty"),
    "a foreign bundle": (stranger, FAILED, "does not trust the server"),
    "no configuration": (without_configurations, FAILED, "no API server calls the webhook"),
    "no Secret": (
        lambda b: b.api.delete_secret(),
        WARNING,
        "is not there: no watcher keeps certificates (manifests/secret",
    ),
    "no Secret, so nothing is compared": (
        lambda b: b.api.delete_secret(),
        WARNING,
        f"warning {REPAIR} not compared: there is no server certificate",
    ),
    "a Secret that cannot be changed": (
        lambda b: b.api.objects[f"{SECRETS}/{SECRET}"].update(immutable=True),
        FAILED,
        "is immutable: no watcher can renew them",
    ),
    "no leaf in the Secret": (
        without_leaf,
        FAILED,
        f"warning {REPAIR} not compared: there is no server certificate",
    ),
    "an expired leaf": (lambda b: setattr(b.time, "set_by", 2e9), FAILED, "missing, expired"),
    "a leaf that nobody renews": (late, WARNING, "not renewed"),
    "a CA that waits": (waiting, WARNING, "waits for all caBundles"),
    "a leaf of another CA": (of_another_ca, FAILED, "no CA of the Secret signed it"),
    "a right is missing": (
        lambda b: b.api.refused.add(("get", path_of(GUARD))),
        FAILED,
        "cannot be read: 403",
    ),
}


@pytest.mark.parametrize(("change", "code", "text"), STATES.values(), ids=STATES)
def test_status_says_the_worst(
    change: Callable[[Bench], object],
    code: int,
    text: str,
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(bench)
    assert certs.status(ARGS) == code
    said = " ".join(capsys.readouterr().out.split())
    assert text in said


def test_issue_signs_a_leaf_that_is_like_the_one_before(bench: Bench) -> None:
    before = bench.kept()
    bench.time.steady += DAY
    assert certs.issue(ARGS) == OK
    after = bench.kept()
    assert after.ca == before.ca
    assert before.leaf is not None
    assert after.leaf is not None
    assert after.leaf != before.leaf
    assert after.leaf.hosts() == [HOST]
    assert after.leaf.end - after.leaf.made == before.leaf.end - before.leaf.made


def test_rotate_waits_for_the_leader(bench: Bench) -> None:
    before = bench.kept()
    assert certs.rotate(ARGS) == OK
    after = bench.kept()
    assert bench.slept
    assert before.ca is not None
    assert after.ca != before.ca
    assert after.old == (before.ca.certificate,)


def forgotten(bench: Bench) -> None:
    """A CA that only one caBundle has."""
    lost = bench.replica.plan.authority(bench.time.wall() - DAY)
    bench.api.configure(GUARD, bundle=lost.text)


def rotated(_: Bench) -> None:
    assert certs.rotate(ARGS) == OK


def issued(_: Bench) -> None:
    assert certs.issue(ARGS) == OK


LEAKED: dict[str, Callable[[Bench], object]] = {
    "the CA that signs": lambda _: None,
    "one that an earlier rotation replaced": rotated,
    "one that waits in the same Secret": waiting,
    "one that the Secret had lost": forgotten,
}


@pytest.mark.parametrize("change", LEAKED.values(), ids=LEAKED)
def test_after_distrust_only_the_new_ca_is_trusted(
    change: Callable[[Bench], object], bench: Bench
) -> None:
    change(bench)
    before = bench.kept()
    assert certs.rotate(DISTRUST) == OK
    assert bench.kept().ca not in {None, before.ca, before.next}
    only_one_is_trusted(bench)


def only_one_is_trusted(bench: Bench) -> None:
    after = bench.kept()
    assert after.ca is not None
    assert (after.next, after.old) == (None, ())
    assert {*bench.api.bundles(REPAIR), *bench.api.bundles(GUARD)} == {after.ca.text}
    assert bench.replica.is_trusted()


OVERLAPS: dict[str, Callable[[Bench], object]] = {
    "another rotation": lambda b: None if b.kept().next else waiting(b),
    "another --distrust, which takes the place of a CA that waits": waiting,
    "a new leaf": issued,
}


@pytest.mark.nightly
@pytest.mark.parametrize("second", range(1, 42, 1 if IS_NIGHTLY else 8))
@pytest.mark.parametrize("change", OVERLAPS.values(), ids=OVERLAPS)
def test_no_call_fails_whatever_begins_during_distrust(
    change: Callable[[Bench], object], second: int, bench: Bench
) -> None:
    leaked = bench.kept().ca
    bench.at[second] = change
    assert certs.rotate(DISTRUST) == OK
    assert bench.kept().ca != leaked
    bench.sleep(60.0)
    assert bench.failed == []
    found = b"".join([*bench.api.bundles(REPAIR), *bench.api.bundles(GUARD)])
    assert leaked is not None
    assert leaked.text not in found


COMMANDS: dict[str, Callable[[], int]] = {
    "issue": lambda: certs.issue(ARGS),
    "rotate": lambda: certs.rotate(ARGS),
    "rotate --distrust": lambda: certs.rotate(DISTRUST),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_write_that_another_one_came_before_is_made_again(
    command: Callable[[], int], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[str] = []
    replace = bench.api.replace

    def late(path: str, obj: dict[str, Any]) -> bytes:
        if path.startswith(SECRETS) and len(met) < 9 and len(met) % 3 < 2:
            bench.api.set_secret(bench.api.secret())
        met.append(path)
        return replace(path, obj)

    monkeypatch.setattr(bench.api, "replace", late)
    assert command() == OK
    assert len(met) > 2
    assert bench.failed == []


def test_distrust_says_that_a_configuration_still_trusts_it(bench: Bench) -> None:
    bench.at[20] = lambda b: b.api.refused.add(("patch", path_of(GUARD)))
    with pytest.raises(InputError, match="still trusts a replaced CA after 110 s"):
        certs.rotate(DISTRUST)


def test_distrust_is_not_done_while_the_secret_is_not_there(bench: Bench) -> None:
    def lost(bench: Bench) -> None:
        bench.works = False
        bench.api.delete_secret()

    bench.at[20] = lost
    with pytest.raises(InputError, match="still trusts a replaced CA"):
        certs.rotate(DISTRUST)


def test_rotate_says_that_no_leader_works(bench: Bench) -> None:
    bench.works = False
    for _ in range(2):
        with pytest.raises(InputError, match="the old one goes on"):
            certs.rotate(ARGS)
    found = bench.kept()
    bench.replica.tick()
    assert found.next == bench.kept().ca, "the second one waits for the CA of the first"


def test_a_secret_that_something_writes_all_the_time_is_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.works = False
    monkeypatch.setattr(Objects, "store", refused_write)
    with pytest.raises(InputError, match="something else writes the Secret"):
        certs.issue(ARGS)


def refused_write(*_: object) -> None:
    raise Refused(409, "the object has been modified")


@pytest.mark.parametrize("command", [certs.issue, certs.rotate])
def test_without_a_ca_there_is_nothing_to_sign_with(
    command: Callable[[SimpleNamespace], int], bench: Bench
) -> None:
    bench.api.delete_secret()
    with pytest.raises(InputError, match="has no CA"):
        command(ARGS)


NO_NAMES = {
    "an empty namespace": ["-n", ""],
    "a namespace with a slash": ["-n", "a/b"],
    "two dots as namespace": ["--namespace=.."],
    "two dots as configuration": ["--configuration=mutating/.."],
    "a configuration in capitals": ["--configuration=validating/Mine"],
}


@pytest.mark.parametrize("words", NO_NAMES.values(), ids=NO_NAMES)
@pytest.mark.parametrize("command", ["status", "issue", "rotate"])
def test_what_cannot_be_a_name_is_bad_usage(
    command: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certs", command, "--kubeconfig=none", *words]) == 1
    assert "Invalid value for" in capsys.readouterr().err


def test_watch_has_the_same_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = [f"--snapshot={tmp_path}", "--configuration=mutating/.."]
    assert main(["watch", *words]) == 1
    assert "write mutating/NAME" in capsys.readouterr().err


def test_a_missing_right_is_bad_input(bench: Bench) -> None:
    bench.api.refused.add(("get", f"{SECRETS}/{SECRET}"))
    for command in (certs.status, certs.issue, certs.rotate):
        with pytest.raises(InputError, match="the API server answered 403"):
            command(ARGS)
