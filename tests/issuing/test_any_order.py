"""Leaders that end at any call, Secrets and bundles that are damaged, clocks: in any order.

Whatever happens to the Secret, the leaders and the time, a server that every bundle trusts stays
trusted. Only who takes our CAs out of a bundle can change that, and then all is well again after a
few passes without another fault.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.issuing.fake_api import Died, FakeApi
from tests.issuing.replicas import DAY, HOST, Replica, Time, together
from webhook.certs.authority import blocks_in, new_authority
from webhook.certs.own_certificates import OwnCertificates
from webhook.certs.renewal import Plan, distrusting
from webhook.issuing.keeper import PASS_SECONDS, SETTLE_SECONDS
from webhook.issuing.lease import SECONDS

NAMES = ("mutating/gpu-webhook", "validating/gpu-webhook", "mutating/gpu-webhook-guard")
LIFE = 600.0
CALM = SECONDS + 40  # seconds: another leader, and what it begins
which = st.integers(0, 1)
name = st.sampled_from(NAMES)


class AnyOrder(RuleBasedStateMachine):
    """Two replicas, three configurations."""

    @initialize(there=st.sets(name))
    def begin(self, there: set[str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="any-order-"))
        self.api, self.time = FakeApi("mutating/of-somebody-else"), Time()
        for each in there:
            self.api.configure(each)
        plan = Plan((HOST,), leaf_life=LIFE)
        self.replicas = [Replica(self.api, self.time, self.folder / n, plan) for n in "ab"]
        self.foreign: dict[str, bytes] = {}  # by configuration
        self.backups: list[dict[str, bytes]] = []
        self.trusted: set[Replica] = set()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(times=st.integers(1, 5))
    def time_passes(self, times: int) -> None:
        together(*self.replicas, times=times)

    @rule(who=which, times=st.integers(1, 4))
    def the_other_is_slow(self, who: int, times: int) -> None:
        self.replicas[who].tick(times)

    @rule(who=which, call=st.integers(1, 25), after=st.booleans())
    def one_dies_at_a_call(self, who: int, call: int, after: bool) -> None:  # noqa: FBT001
        self.api.after, self.api.dies_at = after, self.api.calls + call
        try:
            self.replicas[who].tick(2)
        except Died:
            self.replicas[who].start()
        finally:
            self.api.dies_at = -1

    @rule(who=which)
    def one_ends(self, who: int) -> None:
        self.replicas[who].stop()
        self.replicas[who].start()

    @rule(seconds=st.floats(1, LIFE))
    def the_clock_jumps(self, seconds: float) -> None:
        self.time.set_by += seconds
        together(*self.replicas, times=4)

    @rule()
    def a_day_passes_quietly(self) -> None:
        for _ in range(3):
            together(*self.replicas, times=4)
            self.time.steady += DAY / 3

    @rule()
    def the_ca_is_rotated(self) -> None:
        data = self.api.secret()
        if data:
            new = OwnCertificates(next=Plan((HOST,)).authority(self.time.wall()))
            self.api.set_secret({**data, **new.data()})

    @rule()
    def a_backup_is_made(self) -> None:
        if data := self.api.secret():
            self.backups.append(data)

    @precondition(lambda self: self.backups)
    @rule()
    def a_backup_is_restored(self) -> None:
        self.api.set_secret(self.backups[-1])

    @rule()
    def the_secret_is_deleted(self) -> None:
        self.api.delete_secret()

    @rule(part=st.integers(0, 20), most=st.integers(0, 200))
    def a_part_is_cut_short(self, part: int, most: int) -> None:
        data = self.api.secret()
        if data:
            key = sorted(data)[part % len(data)]
            self.api.set_secret({**data, key: data[key][:most]})

    @rule(one=st.integers(0, 20), other=st.integers(0, 20))
    def two_parts_are_exchanged(self, one: int, other: int) -> None:
        data = self.api.secret()
        if data:
            keys = sorted(data)
            a, b = keys[one % len(keys)], keys[other % len(keys)]
            self.api.set_secret({**data, a: data[b], b: data[a]})

    @rule(configuration=name, is_foreign=st.booleans())
    def a_tool_applies(self, configuration: str, is_foreign: bool) -> None:  # noqa: FBT001
        now = self.time.wall()
        other = new_authority("somebody's", now - DAY, now + DAY).text if is_foreign else b""
        self.foreign[configuration] = other
        self.api.configure(configuration, bundle=other)
        self.trusted.clear()

    @rule()
    def some_passes_without_a_fault(self) -> None:
        started = self.time.steady
        while self.time.steady < started + CALM:
            together(*self.replicas)
        found = OwnCertificates.read(self.api.secret(), self.time.wall())
        assert found.data() == self.api.secret()
        assert found.ca is not None
        assert found.leaf is not None
        assert found.next is None
        is_new = self.time.wall() - found.leaf.made < SETTLE_SECONDS + 2 * PASS_SECONDS
        assert sum(each.keeper._lease.is_held() for each in self.replicas) == 1
        for replica in self.replicas:
            assert replica.served == found.leaf or is_new
            assert replica.is_trusted()
            assert not replica.keeper.status["untrusted"]

    @invariant()
    def a_server_that_was_trusted_stays_so(self) -> None:
        found, _ = self.replicas[0].keeper._objects.configurations()
        bundles = {each: one.bundles for each, one in found.items()}
        filled = bool(bundles) and all(all(texts) for texts in bundles.values())
        for replica in self.replicas:
            if (served := replica.served) is not None:
                against = distrusting(served, bundles)
                assert not (replica in self.trusted and against)
                self.trusted |= {replica} if filled and not against else set()

    @invariant()
    def the_ca_of_somebody_else_stays(self) -> None:
        for configuration, text in self.foreign.items():
            for bundle in self.api.bundles(configuration):
                assert not text or text in blocks_in(bundle)


pytestmark = pytest.mark.timeout(7200)  # of the examples of `make nightly`
TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(stateful_step_count=20)
