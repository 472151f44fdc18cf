"""`gpu-webhook certs`: the table and its exit code for each fault; a new leaf and a new CA."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.issuing.fake_api import NAMESPACE, SECRETS, FakeApi, path_of
from tests.issuing.replicas import DAY, HOST, Replica, Time, together
from webhook.certs.authority import new_authority
from webhook.certs.kept import Kept
from webhook.cli import certs
from webhook.cli.main import main
from webhook.core.errors import InputError
from webhook.doctor.lines import FAILED, OK, WARNING
from webhook.issuing.objects import CONFIGURATIONS, SECRET, Objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webhook.cluster.client import Client

REPAIR, GUARD = CONFIGURATIONS[:2]
ARGS = SimpleNamespace(namespace=NAMESPACE, distrust=False)


class Bench:
    """An installed webhook, and the command."""

    def __init__(self, folder: Path) -> None:
        self.api, self.time = FakeApi(REPAIR, GUARD), Time()
        self.replica = Replica(self.api, self.time, folder / "tls")
        self.replica.tick()

    def connect(self, _: object) -> tuple[SimpleNamespace, Objects]:
        return SimpleNamespace(now=self.time.wall), Objects(cast("Client", self.api), NAMESPACE)

    def kept(self) -> Kept:
        return Kept.read(self.api.secret(), self.time.wall())


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    monkeypatch.setattr(certs, "_connect", made.connect)
    monkeypatch.setattr(certs, "_PAUSE", 0.0)
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
    bench.api.set_secret({**bench.api.secret(), **Kept(next=new).data()})


def without_leaf(bench: Bench) -> None:
    data = bench.api.secret()
    bench.api.set_secret({name: text for name, text in data.items() if "tls" not in name})


def of_another_ca(bench: Bench) -> None:
    plan, now = bench.replica.plan, bench.time.wall()
    leaf = plan.leaf(plan.authority(now), now)
    bench.api.set_secret({**bench.api.secret(), **Kept(leaf=leaf).data()})


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
        f"{REPAIR} warning not compared: there is no server certificate",
    ),
    "no leaf in the Secret": (
        without_leaf,
        FAILED,
        f"{REPAIR} warning not compared: there is no server certificate",
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


def test_rotate_waits_for_the_leader(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    before, rests = bench.kept(), []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        together(bench.replica)

    monkeypatch.setattr("webhook.cli.certs.time.sleep", rest)
    assert certs.rotate(ARGS) == OK
    after = bench.kept()
    assert rests
    assert before.ca is not None
    assert after.ca != before.ca
    assert after.old == (before.ca.certificate,)


@pytest.fixture
def led(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A leader works while the command waits."""
    monkeypatch.setattr("webhook.cli.certs.time.sleep", lambda _: together(bench.replica))
    return bench


def forgotten(bench: Bench) -> None:
    """A CA that only one caBundle has."""
    lost = bench.replica.plan.authority(bench.time.wall() - DAY)
    bench.api.configure(GUARD, bundle=lost.text)


def rotated(_: Bench) -> None:
    assert certs.rotate(ARGS) == OK


LEAKED: dict[str, Callable[[Bench], object]] = {
    "the CA that signs": lambda _: None,
    "one that an earlier rotation replaced": rotated,
    "one that waits in the same Secret": waiting,
    "one that the Secret had lost": forgotten,
}


@pytest.mark.parametrize("change", LEAKED.values(), ids=LEAKED)
def test_after_distrust_only_the_new_ca_is_trusted(
    change: Callable[[Bench], object], led: Bench
) -> None:
    change(led)
    before = led.kept()
    assert certs.rotate(SimpleNamespace(namespace=NAMESPACE, distrust=True)) == OK
    after = led.kept()
    assert after.ca not in {None, before.ca, before.next}
    assert after.ca is not None
    assert (after.next, after.old) == (None, ())
    assert {*led.api.bundles(REPAIR), *led.api.bundles(GUARD)} == {after.ca.text}
    assert led.replica.is_trusted()


def test_distrust_says_that_a_configuration_still_trusts_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rest(seconds: float) -> None:
        together(bench.replica)
        if seconds == certs.SHOWN_SECONDS:
            bench.api.refused.add(("patch", path_of(GUARD)))

    monkeypatch.setattr("webhook.cli.certs.time.sleep", rest)
    monkeypatch.setattr(certs, "ROTATION_SECONDS", 0.5)
    with pytest.raises(InputError, match="still trusts a replaced CA"):
        certs.rotate(SimpleNamespace(namespace=NAMESPACE, distrust=True))


def test_rotate_says_that_no_leader_works(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certs, "ROTATION_SECONDS", 0.01)
    with pytest.raises(InputError, match="the old one goes on"):
        certs.rotate(ARGS)
    with pytest.raises(InputError, match="the old one goes on"):
        certs.rotate(ARGS)
    found = bench.kept()
    bench.replica.tick()
    assert found.next == bench.kept().ca, "the second one waits for the CA of the first"


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
