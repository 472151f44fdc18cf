"""What replicas make of each fault of the Secret, the bundles, rights, clocks and each other."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from tests.issuing.fake_api import LEASES, SECRETS, Died, FakeApi, path_of
from tests.issuing.replicas import DAY, HOST, Replica, Time, passes, together
from webhook.certs.authority import BACKDATED, blocks_in, new_authority
from webhook.certs.own_certificates import OwnCertificates
from webhook.certs.renewal import CA_LIFE, LEAF_LIFE, Plan
from webhook.issuing.keeper import LOSSES_SECONDS, SETTLE_SECONDS, UNTRUSTED_SECONDS
from webhook.issuing.lease import SECONDS
from webhook.issuing.objects import CONFIGURATIONS, SECRET

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webhook.certs.authority import Identity

REPAIR, CHECK = "mutating/gpu-webhook", "validating/gpu-webhook"


@pytest.fixture
def api() -> FakeApi:
    return FakeApi(REPAIR, CHECK)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def first(api: FakeApi, time: Time, tmp_path: Path) -> Replica:
    """It leads, and all is in order."""
    replica = Replica(api, time, tmp_path / "first")
    replica.tick()
    assert replica.is_trusted()
    return replica


@pytest.fixture
def second(first: Replica, api: FakeApi, time: Time, tmp_path: Path) -> Replica:
    replica = Replica(api, time, tmp_path / "second")
    replica.keeper.pass_once()
    assert replica.served == first.served
    return replica


def kept(api: FakeApi, time: Time) -> OwnCertificates:
    return OwnCertificates.read(api.secret(), time.wall())


def leaf(replica: Replica) -> Identity:
    assert replica.served is not None
    return replica.served


def foreign(time: Time) -> bytes:
    return new_authority("somebody's CA", time.wall() - DAY, time.wall() + DAY).text


def rotate(api: FakeApi, time: Time) -> None:
    """As `gpu-webhook certs rotate` begins it."""
    now = time.wall()
    found = kept(api, time)
    api.set_secret({**found.data(), **OwnCertificates(next=Plan((HOST,)).authority(now)).data()})


def test_one_pass_leads_from_nothing_to_a_pair_that_every_entry_trusts(
    first: Replica, api: FakeApi, time: Time
) -> None:
    pair = leaf(first)
    found = kept(api, time)
    assert pair.hosts() == [HOST]
    assert found.ca is not None
    assert abs(found.ca.end - time.wall() - CA_LIFE) < 60
    assert abs(pair.end - time.wall() - LEAF_LIFE) < 60
    assert abs(time.wall() - pair.start - BACKDATED) < 60
    assert api.bundles(REPAIR) == api.bundles(CHECK) == [found.ca.text] * 2
    assert first.log.level("warning") == []


def test_only_the_owner_may_read_the_files(first: Replica) -> None:
    for name in ("tls.crt", "tls.key"):
        assert stat.S_IMODE((first.target / name).stat().st_mode) == 0o600
    assert sorted(each.name for each in first.target.iterdir() if not each.is_dir()) == [
        "tls.crt",
        "tls.key",
    ]


def test_when_all_is_in_order_a_pass_writes_nothing_but_the_lease(
    first: Replica, second: Replica, api: FakeApi
) -> None:
    api.writes.clear()
    first.tick(5)
    second.tick(5)
    assert {*api.writes} == {f"update {LEASES}/{SECRET}"}


def test_a_leaf_is_renewed_after_two_thirds_of_its_life_and_not_before(
    first: Replica, second: Replica, api: FakeApi, time: Time
) -> None:
    before = leaf(first)
    time.set_by += 19.9 * DAY
    first.tick()
    assert kept(api, time).leaf == before
    time.set_by += 0.2 * DAY
    for _ in range(4):
        together(first, second)
    assert leaf(first) == leaf(second) != before
    assert first.is_trusted()


def test_a_leaf_is_renewed_although_the_clock_was_set_back(
    first: Replica, api: FakeApi, time: Time
) -> None:
    before = kept(api, time).leaf
    time.set_by -= 0.5 * DAY / 24
    time.steady += 21 * DAY
    time.set_by -= 21 * DAY
    first.tick()
    assert kept(api, time).leaf != before


def test_after_a_suspend_the_first_pass_renews(first: Replica, time: Time) -> None:
    """The steady clock stood still."""
    time.set_by += 45 * DAY
    first.tick()
    assert first.is_trusted()


def test_a_certificate_that_begins_in_the_future_is_replaced(first: Replica, time: Time) -> None:
    """A clock was ahead by half a day when all of them were made."""
    time.set_by -= DAY / 2
    first.tick(5)
    assert first.is_trusted()
    assert leaf(first).start < time.wall()


def test_the_ca_is_renewed_in_time_and_the_old_one_stays_until_its_leaves_ended(
    first: Replica, second: Replica, api: FakeApi, time: Time
) -> None:
    before = kept(api, time)
    time.set_by += CA_LIFE * 2 / 3
    first.tick()
    after = kept(api, time)
    assert before.ca is not None
    assert after.ca is not None
    assert after.ca != before.ca
    assert after.next is None
    assert {*blocks_in(api.bundles()[0])} == {before.ca.text, after.ca.text}
    for _ in range(4):
        together(first, second)
    assert first.is_trusted()
    assert second.is_trusted()
    time.set_by += LEAF_LIFE - 60
    first.tick(4)
    assert before.ca.text in blocks_in(api.bundles()[0])
    time.set_by += 60
    first.tick(4)
    assert api.bundles() == [after.ca.text] * 2
    assert kept(api, time).old == ()
    assert first.is_trusted()


def test_a_short_leaf_does_not_shorten_the_day_of_an_old_ca(
    api: FakeApi, time: Time, tmp_path: Path
) -> None:
    replica = Replica(api, time, tmp_path / "short", Plan((HOST,), leaf_life=60.0))
    replica.tick()
    old = kept(api, time).ca
    assert old is not None
    rotate(api, time)
    replica.tick(5)
    time.steady += DAY - 120
    replica.tick(10)
    assert old.text in blocks_in(api.bundles()[0])
    assert replica.is_trusted()
    replica.tick(passes(120))
    assert old.text not in blocks_in(api.bundles()[0])
    assert replica.is_trusted()


def truncated(name: str) -> Callable[[FakeApi], None]:
    def change(api: FakeApi) -> None:
        data = api.secret()
        api.set_secret({**data, name: data[name][: len(data[name]) // 2]})

    return change


def mismatched(api: FakeApi) -> None:
    other = new_authority("other", 1_799_000_000, 1_900_000_000)
    api.set_secret({**api.secret(), "tls.key": other.key})


def another_ca_key(api: FakeApi) -> None:
    other = new_authority("other", 1_799_000_000, 1_900_000_000)
    api.set_secret({**api.secret(), "ca.key": other.key})


SECRET_FAULTS: dict[str, Callable[[FakeApi], None]] = {
    "deleted": FakeApi.delete_secret,
    "emptied": lambda api: api.set_secret({}),
    "its certificate cut short": truncated("tls.crt"),
    "its key cut short": truncated("tls.key"),
    "its CA cut short": truncated("ca.crt"),
    "its CA's key cut short": truncated("ca.key"),
    "the key of another certificate": mismatched,
    "the CA key of another CA": another_ca_key,
    "without its leaf": lambda api: api.set_secret(
        {name: text for name, text in api.secret().items() if name.startswith("ca")}
    ),
    "with something else in it": lambda api: api.set_secret({**api.secret(), "note": b"hello"}),
}


@pytest.mark.parametrize("change", SECRET_FAULTS.values(), ids=SECRET_FAULTS)
@pytest.mark.parametrize(
    "is_new", [False, True], ids=["the same leader", "a leader that just came"]
)
def test_a_faulty_secret_is_repaired_and_servers_go_on_meanwhile(
    change: Callable[[FakeApi], None],
    is_new: bool,  # noqa: FBT001 - of a table
    first: Replica,
    second: Replica,
    api: FakeApi,
    time: Time,
) -> None:
    ca = kept(api, time).ca
    change(api)
    if is_new:
        first.stop()
        first.start()
        second.start()
    for _ in range(5):
        together(first, second)
        assert first.is_trusted()
        assert second.is_trusted()
    found = kept(api, time)
    assert found.data() == api.secret()
    assert found.leaf == leaf(first) == leaf(second)
    if not is_new:
        assert found.ca == ca, "it was in the memory of the leader"


def test_a_ca_that_something_writes_back_is_a_warning(
    first: Replica, api: FakeApi, time: Time
) -> None:
    """It may be one that `certs rotate --distrust` took out."""
    leaked = Plan((HOST,)).authority(time.wall())
    api.configure(REPAIR, bundle=leaked.text)
    first.tick(2)
    (said,) = first.log.level("warning")
    assert "a CA that the Secret had lost" in said
    assert "rotate --distrust" in said
    assert leaked.certificate in kept(api, time).old


def test_an_earlier_secret_from_a_backup_breaks_nothing(
    first: Replica, second: Replica, api: FakeApi, time: Time
) -> None:
    backup = api.secret()
    rotate(api, time)
    for _ in range(5):
        together(first, second)
    api.set_secret(backup)
    for _ in range(5):
        second.tick()
        assert second.is_trusted()
        first.tick()
        assert first.is_trusted()
    assert leaf(first) == leaf(second)


@pytest.mark.parametrize("bundle", [b"", b"\n"], ids=["none", "what cert-manager calls empty"])
def test_an_emptied_bundle_is_filled_by_the_next_pass_and_no_replica_is_unready(
    bundle: bytes, first: Replica, second: Replica, api: FakeApi
) -> None:
    whole = api.bundles()
    api.configure(REPAIR, bundle=bundle)
    second.tick()
    assert not second.keeper.status["untrusted"]
    first.tick()
    assert api.bundles() == whole
    assert not first.keeper.status["untrusted"]


def test_a_configuration_that_comes_late_is_filled(first: Replica, api: FakeApi) -> None:
    late = "mutating/gpu-webhook-guard"
    api.configure(late, entries=1)
    first.tick()
    assert api.bundles(late) == api.bundles(REPAIR)[:1]


def test_an_entry_that_is_added_is_filled(first: Replica, api: FakeApi) -> None:
    webhooks = api.objects[path_of(REPAIR)]["webhooks"]
    api.put(path_of(REPAIR), {"webhooks": [*webhooks, {"name": "new", "clientConfig": {}}]})
    first.tick()
    assert len({*api.bundles()}) == 1
    assert first.is_trusted()


def test_the_ca_of_somebody_else_stays_in_a_bundle(
    first: Replica, api: FakeApi, time: Time
) -> None:
    other = foreign(time)
    api.configure(REPAIR, bundle=other)
    first.tick()
    assert first.is_trusted()
    rotate(api, time)
    first.tick(3)
    assert first.is_trusted()
    assert all(blocks_in(bundle)[0] == other for bundle in api.bundles())


def test_a_server_with_a_pair_of_a_foreign_ca_is_left_to_it_until_ours_is_trusted(
    api: FakeApi, time: Time, tmp_path: Path
) -> None:
    """The way from certificates made by hand: bundles have their CA, and pods are replaced."""
    other = foreign(time)
    api.configure(REPAIR, bundle=other)
    api.refused.add(("patch", path_of(REPAIR)))
    replica = Replica(api, time, tmp_path / "new")
    replica.tick(passes(UNTRUSTED_SECONDS))
    assert replica.keeper.status["untrusted"] == "", "one of the two trusts it"
    api.refused.add(("patch", path_of(CHECK)))
    api.configure(CHECK, bundle=other)
    replica.tick(passes(UNTRUSTED_SECONDS) + 1)
    assert "no webhook configuration trusts" in replica.keeper.status["untrusted"]
    api.refused.clear()
    replica.tick(2)
    assert replica.keeper.status["untrusted"] == ""
    assert replica.is_trusted()


def test_a_replica_that_cannot_write_its_folder_is_unready_when_its_ca_goes(
    first: Replica, second: Replica, api: FakeApi, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    rotate(api, time)
    first.tick(5)

    def full(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("webhook.issuing.folder.write", full)
    second.tick(5)
    assert any("cannot be written: no space left" in line for line in second.log.level("warning"))
    assert second.is_trusted()
    time.set_by += LEAF_LIFE
    monkeypatch.undo()
    first.tick(5)
    monkeypatch.setattr("webhook.issuing.folder.write", full)
    second.tick(passes(UNTRUSTED_SECONDS) + 1)
    assert second.keeper.status["untrusted"]
    assert not first.keeper.status["untrusted"]


RIGHTS = {
    "reading the Secret": ("get", f"{SECRETS}/{SECRET}"),
    "creating the Secret": ("create", SECRETS),
    "reading the Lease": ("get", f"{LEASES}/{SECRET}"),
    "creating the Lease": ("create", LEASES),
    "reading a configuration": ("get", path_of(REPAIR)),
    "writing a configuration": ("patch", path_of(REPAIR)),
}


@pytest.mark.parametrize("right", RIGHTS.values(), ids=RIGHTS)
def test_a_missing_right_is_one_line_and_all_goes_on_when_it_comes(
    right: tuple[str, str], api: FakeApi, time: Time, tmp_path: Path
) -> None:
    api.refused.add(right)
    replica = Replica(api, time, tmp_path / "poor")
    replica.tick(10)
    (said,) = replica.log.level("warning")
    assert f"RBAC: 403: cannot {' '.join(right)}" in said
    api.refused.clear()
    replica.tick(5)
    assert replica.is_trusted()
    assert replica.log[-1] == ("info", "the webhook's certificates are in order")


@pytest.mark.parametrize("name", [REPAIR, CHECK])
def test_a_policy_that_refuses_one_configuration_is_reported_and_hinders_no_other(
    name: str, api: FakeApi, time: Time, tmp_path: Path
) -> None:
    """422, as a ValidatingAdmissionPolicy answers by default, and as a failed test of a patch."""
    api.disallowed.add(("patch", path_of(name)))
    replica = Replica(api, time, tmp_path / "hindered")
    replica.tick(10)
    (said,) = replica.log.level("warning")
    assert f"a policy denied patch {path_of(name)}" in said
    (other,) = {REPAIR, CHECK} - {name}
    assert all(api.bundles(other))


def test_a_secret_that_cannot_be_changed_is_reported(
    first: Replica, api: FakeApi, time: Time
) -> None:
    api.disallowed.add(("update", f"{SECRETS}/{SECRET}"))
    time.set_by += 21 * DAY
    first.tick(4)
    (said,) = first.log.level("warning")
    assert "a policy denied update" in said


def test_a_write_that_another_one_came_before_is_no_fault(
    first: Replica, api: FakeApi, time: Time
) -> None:
    api.disallowed.add(("update", f"{SECRETS}/{SECRET}"))
    time.set_by += 21 * DAY
    first.keeper.pass_once()
    api.disallowed.clear()
    first.tick(4)
    assert first.log.level("warning") == []


def test_a_leaf_is_renewed_although_one_configuration_cannot_be_written(
    first: Replica, api: FakeApi, time: Time
) -> None:
    api.refused.add(("patch", path_of(REPAIR)))
    time.set_by += 21 * DAY
    first.tick(4)
    assert leaf(first).made > time.wall() - DAY
    assert first.is_trusted()


def test_no_new_ca_signs_before_every_configuration_trusts_it(
    first: Replica, api: FakeApi, time: Time
) -> None:
    before = leaf(first)
    rotate(api, time)
    api.refused.add(("patch", path_of(CHECK)))
    first.tick(10)
    assert kept(api, time).next is not None
    assert leaf(first) == before
    assert first.is_trusted()
    api.refused.clear()
    first.tick(4)
    assert leaf(first) != before
    assert first.is_trusted()


def test_the_api_server_being_away_changes_nothing(first: Replica, api: FakeApi) -> None:
    before = leaf(first)
    api.away = True
    first.tick(10)
    assert leaf(first) == before
    assert len(first.log.level("warning")) == 1
    assert not first.keeper.status["untrusted"]
    api.away = False
    first.tick()
    assert first.log[-1] == ("info", "the webhook's certificates are in order")


def test_a_new_leaf_waits_until_the_bundles_have_trusted_it_for_a_while(
    first: Replica, second: Replica, api: FakeApi, time: Time
) -> None:
    before = leaf(second)
    rotate(api, time)
    first.tick()
    started = time.steady
    while leaf(second) == before:
        second.tick()
    assert SETTLE_SECONDS <= time.steady - started <= SETTLE_SECONDS + 10


def test_other_names_make_another_leaf(first: Replica, api: FakeApi) -> None:
    first.stop()
    first.plan = Plan((HOST, "10.1.2.3", "fd00::1"))
    first.start()
    first.tick(4)
    assert leaf(first).hosts() == [HOST, "10.1.2.3", "fd00::1"]
    api.writes.clear()
    first.tick(3)
    assert {*api.writes} == {f"update {LEASES}/{SECRET}"}


def test_another_replica_leads_when_the_lease_has_run_out_and_not_before(
    first: Replica, second: Replica, api: FakeApi
) -> None:
    assert first.keeper.status["leads"]
    api.delete_secret()
    second.tick()
    assert "secret" not in " ".join(api.objects)
    second.tick(passes(SECONDS) + 1)
    assert second.keeper.status["leads"]
    assert api.secret()
    writes = len(api.writes)
    first.tick()
    assert not first.keeper.status["leads"]
    assert len(api.writes) == writes


def test_a_leader_that_ends_gives_the_lease_away(first: Replica, second: Replica) -> None:
    first.stop()
    second.tick()
    assert second.keeper.status["leads"]


def test_a_leader_that_sleeps_through_its_lease_stops_in_the_middle_of_a_pass(
    first: Replica, api: FakeApi, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another replica may lead when it wakes: it must not write."""
    api.delete_secret()
    get = api.get

    def slow(path: str, query: object) -> bytes:
        time.steady += SECONDS if path.startswith(SECRETS) else 0
        return get(path, query)

    monkeypatch.setattr(api, "get", slow)
    api.writes.clear()
    first.tick()
    assert api.writes == [f"update {LEASES}/{SECRET}"]


@pytest.mark.parametrize("after", [True, False], ids=["after it took effect", "before"])
def test_a_leader_may_end_at_each_call_of_a_rotation(
    after: bool,  # noqa: FBT001 - of a table
    first: Replica,
    second: Replica,
    api: FakeApi,
    time: Time,
) -> None:
    api.after = after
    call, finished = 0, False
    while not finished:
        call += 1
        old = kept(api, time).ca
        rotate(api, time)
        api.dies_at = api.calls + call
        try:
            first.tick()
            finished = True
        except Died:
            first.start()
        api.dies_at = -1
        for _ in range(passes(SECONDS) + 3):
            second.tick()
            assert first.is_trusted()
            assert second.is_trusted()
        second.stop()
        first.tick(4)
        assert kept(api, time).next is None
        assert kept(api, time).ca != old
        assert leaf(first) == leaf(second)
    assert call > 10, "reading two configurations, the Lease, the Secret; writing; reading back"


def test_two_leaders_at_once_agree(
    first: Replica, second: Replica, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Lease is not what makes it safe."""
    monkeypatch.setattr("webhook.issuing.lease.Lease.hold", lambda _: True)
    monkeypatch.setattr("webhook.issuing.lease.Lease.is_held", lambda _: True)
    api.delete_secret()
    for replica in (first, second):
        replica.start()
    for _ in range(4):
        together(first, second)
        assert first.is_trusted()
        assert second.is_trusted()
    assert leaf(first) == leaf(second)


def test_no_configuration_is_no_fault(time: Time, tmp_path: Path) -> None:
    api = FakeApi("mutating/of-somebody-else")
    replica = Replica(api, time, tmp_path / "alone")
    replica.tick(3)
    assert replica.served is not None
    assert replica.log.level("warning") == []
    for each in CONFIGURATIONS:
        api.configure(each)
    replica.tick()
    assert replica.is_trusted()


FIGHTS = {"cert-manager, at once": 1, "Argo CD, after a while": 3, "Flux, each 10 minutes": 120}


@pytest.mark.parametrize("apart", FIGHTS.values(), ids=FIGHTS)  # passes
def test_what_writes_bundles_again_and_again_is_reported_once(
    apart: int, first: Replica, second: Replica, api: FakeApi, time: Time
) -> None:
    """The leader reads its own writes back before the other one answers."""
    other = foreign(time)
    for _ in range(6):
        api.configure(REPAIR, bundle=other)
        together(first, second, times=apart)
        assert first.is_trusted()
    warned = [said for said in first.log.level("warning") if REPAIR in said]
    assert len(warned) == 1
    assert f"{REPAIR}: something else writes its caBundle again and again" in warned[0]
    assert first.keeper.status["fault"]
    assert "in order" not in first.log[-1][1]
    filled = [said for said in first.log.level("info") if f"{REPAIR} was filled" in said]
    assert len(filled) <= 3
    together(first, second, times=passes(LOSSES_SECONDS))
    assert first.keeper.status["fault"] == ""
    assert first.log[-1] == ("info", "the webhook's certificates are in order")


def test_one_loss_is_no_fight(first: Replica, second: Replica, api: FakeApi) -> None:
    for name in (REPAIR, CHECK):
        api.configure(name)
    together(first, second, times=4)
    for replica in (first, second):
        assert replica.log.level("warning") == []


def test_a_rotation_is_no_fight(first: Replica, second: Replica, api: FakeApi, time: Time) -> None:
    for _ in range(4):
        rotate(api, time)
        together(first, second, times=5)
    for replica in (first, second):
        assert replica.log.level("warning") == []


def test_what_fights_for_a_bundle_is_named(
    first: Replica, api: FakeApi, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, patch = foreign(time), api.patch

    def fought(path: str, operations: list[dict[str, object]]) -> bytes:
        answer = patch(path, operations)
        api.configure(REPAIR, bundle=other)
        return answer

    monkeypatch.setattr(api, "patch", fought)
    api.configure(REPAIR, bundle=other)
    first.tick(3)
    (said,) = first.log.level("warning")
    assert f"{REPAIR}: something else writes its caBundle" in said
