"""What the Secret is read as, and the step that follows from a situation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.certs.chains import CHAINS, SERVER
from webhook.certs.authority import BACKDATED, Identity, blocks_in, new_authority
from webhook.certs.own_certificates import OwnCertificates
from webhook.certs.renewal import (
    CA_LIFE,
    LEAF_LIFE,
    Fill,
    Plan,
    Situation,
    Store,
    distrusting,
    filled,
    next_step,
)
from webhook.kube.times import DAY

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.certs.chained import Signer

NOW = 1_800_000_000.0
PLAN = Plan(("gpu-webhook.gpu-webhook.svc", "10.1.2.3"))
CA, NEXT, OLD = (PLAN.authority(NOW - n * DAY) for n in (3, 1, 5))
LEAF = PLAN.leaf(CA, NOW - DAY)
FULL = OwnCertificates(CA, None, (), 0.0, LEAF)
ROTATING = replace(FULL, next=NEXT)
ROTATED = OwnCertificates(CA, None, (OLD.certificate,), NOW + DAY, LEAF)
FOREIGN = new_authority("somebody's", NOW - DAY, NOW + DAY).text
ONE = "mutating/gpu-webhook"


def at(kept: OwnCertificates, *bundles: bytes, **more: Any) -> Situation:
    usual = {"is_stored": True, "barred": (), "now": NOW, "leaf_age": 0.0}
    return Situation(kept, bundles={ONE: bundles} if bundles else {}, **{**usual, **more})


def stored(step: object) -> OwnCertificates:
    assert isinstance(step, Store)
    return step.kept


@pytest.mark.parametrize(
    "kept", [OwnCertificates(), FULL, ROTATING, ROTATED], ids=["", "full", "next", "old"]
)
def test_what_is_written_is_read_again(kept: OwnCertificates) -> None:
    assert OwnCertificates.read(kept.data(), NOW).data() == kept.data()


@pytest.mark.parametrize("name", sorted(ROTATING.data()))
@pytest.mark.parametrize(
    "text",
    [b"", b"nonsense", LEAF.key[:90], CA.text, NEXT.key],
    ids=["empty", "no PEM", "cut short", "a CA", "the key of the next CA"],
)
def test_a_damaged_part_is_read_as_missing_and_the_others_as_they_are(
    name: str, text: bytes
) -> None:
    data = ROTATING.data()
    part = {"ca": "ca", "next-ca": "next", "tls": "leaf"}[name.partition(".")[0]]
    found = OwnCertificates.read({**data, name: text}, NOW)
    whole = OwnCertificates.read(data, NOW)
    assert getattr(found, part) in ((None,) if text != data[name] else (getattr(whole, part),))
    others = {"ca", "next", "leaf", "old"} - {part}
    assert all(getattr(found, each) == getattr(whole, each) for each in others)


@pytest.mark.parametrize(
    "until", [b"", b"soon", b"\xff"], ids=["no time", "no time in it", "bytes"]
)
def test_old_cas_without_a_time_are_kept_for_a_month(until: bytes) -> None:
    found = OwnCertificates.read({**ROTATED.data(), "old-ca.until": until}, NOW)
    assert found.old == (OLD.certificate,)
    assert found.until == NOW + 30 * DAY


@pytest.mark.parametrize("ahead", [-4 * DAY, CA_LIFE], ids=["not yet valid", "expired"])
def test_pairs_of_another_time_are_missing(ahead: float) -> None:
    assert OwnCertificates.read(ROTATING.data(), NOW + ahead) == OwnCertificates()


IN_ORDER = {
    "a leaf and its CA": (FULL, CA.text),
    "with a CA of somebody else": (FULL, FOREIGN + CA.text),
    "with an old CA": (ROTATED, OLD.text + CA.text),
    "before two thirds of its life": (replace(FULL, leaf=PLAN.leaf(CA, NOW - 19.9 * DAY)), CA.text),
}


@pytest.mark.parametrize(("kept", "bundle"), IN_ORDER.values(), ids=IN_ORDER)
def test_nothing_is_done_when_all_is_in_order(kept: OwnCertificates, bundle: bytes) -> None:
    assert next_step(at(kept, bundle, bundle), PLAN) is None
    assert next_step(at(kept), PLAN) is None


def has_leaf_of(kept: OwnCertificates, ca: Identity | None) -> bool:
    assert kept.leaf is not None
    assert ca is not None
    return distrusting(kept.leaf, {ONE: (ca.text,)}) == []


# The situation, and what is expected of what is stored next.
STORES: dict[str, tuple[Situation, Callable[[OwnCertificates], bool]]] = {
    "nothing is there": (at(OwnCertificates(), b""), lambda k: has_leaf_of(k, k.ca) and not k.next),
    "the Secret has other bytes": (at(FULL, is_stored=False), lambda k: k == FULL),
    "a lost CA is in a bundle": (
        at(FULL, CA.text + OLD.text),
        lambda k: k.old == (OLD.certificate,) and k.until == NOW + LEAF_LIFE,
    ),
    "the key of the CA is lost": (
        at(replace(FULL, ca=None, old=(CA.certificate,), until=NOW + 1), CA.text),
        lambda k: k.ca is None and k.next is not None and k.leaf == LEAF,
    ),
    "the CA has lived for two thirds": (
        at(replace(FULL, ca=PLAN.authority(NOW - CA_LIFE * 0.67))),
        lambda k: k.next is not None and k.leaf == LEAF,
    ),
    "all bundles have the next CA": (
        at(ROTATING, CA.text + NEXT.text),
        lambda k: k.ca == NEXT and has_leaf_of(k, NEXT) and k.old == (CA.certificate,),
    ),
    "there is no leaf to lose": (
        at(replace(ROTATING, ca=None, leaf=None), NEXT.text, barred={ONE}),
        lambda k: k.ca == NEXT and has_leaf_of(k, NEXT),
    ),
    "the leaf is missing": (at(replace(FULL, leaf=None)), lambda k: has_leaf_of(k, CA)),
    "the leaf is of another CA": (
        at(replace(FULL, leaf=PLAN.leaf(OLD, NOW))),
        lambda k: has_leaf_of(k, CA) and k.ca == CA,
    ),
    "the leaf is for other names": (
        at(replace(FULL, leaf=Plan(("other",)).leaf(CA, NOW))),
        lambda k: k.leaf is not None and k.leaf.hosts() == [*PLAN.hosts],
    ),
    "the leaf has lived for two thirds": (
        at(replace(FULL, leaf=PLAN.leaf(CA, NOW - 20 * DAY))),
        lambda k: k.leaf is not None and k.leaf.made == NOW,
    ),
    "another clock says so": (at(FULL, leaf_age=20 * DAY), lambda k: k.leaf != LEAF),
    "no bundle has the old CA any more": (
        at(replace(ROTATED, until=NOW), CA.text),
        lambda k: k.old == () and k.ca == CA and k.leaf == LEAF,
    ),
}


@pytest.mark.parametrize(("situation", "expected"), STORES.values(), ids=STORES)
def test_the_secret_is_written(
    situation: Situation, expected: Callable[[OwnCertificates], bool]
) -> None:
    assert expected(stored(next_step(situation, PLAN)))


FILLS: dict[str, tuple[OwnCertificates, bytes, bytes]] = {
    "an empty one": (FULL, b"", CA.text),
    "only a line end, as cert-manager writes": (FULL, b"\n", CA.text),
    "no PEM": (FULL, b"nonsense", CA.text),
    "the CA of somebody else": (FULL, FOREIGN, FOREIGN + CA.text),
    # Go skips a block whose first or last line is not on its own.
    "a CA right after another": (FULL, FOREIGN.rstrip() + CA.text, FOREIGN + CA.text),
    "an indented CA": (FULL, b" " + CA.text, CA.text),
    "a CA on one line": (FULL, CA.text.replace(b"\n", b""), CA.text),
    "one that lacks the next CA": (ROTATING, CA.text, CA.text + NEXT.text),
    "one that lacks an old CA": (ROTATED, CA.text, CA.text + OLD.text),
    "one with an old CA whose time is over": (
        replace(ROTATED, until=NOW),
        FOREIGN + OLD.text + CA.text,
        FOREIGN + CA.text,
    ),
}


@pytest.mark.parametrize(
    "bundle",
    [CA.text.replace(b"\n", b"\r\n"), CA.text.rstrip(), b"# ours\n" + CA.text, FOREIGN + CA.text],
    ids=["Windows line ends", "no last line end", "a comment before it", "another CA before it"],
)
def test_a_bundle_that_go_reads_stays_as_it_is(bundle: bytes) -> None:
    assert filled(bundle, FULL, NOW) == bundle
    assert distrusting(LEAF, {ONE: (bundle,)}) == []


@pytest.mark.parametrize("first", [FOREIGN.rstrip(), b" "], ids=["another CA", "a space"])
def test_a_bundle_that_go_cannot_read_is_not_trusted(first: bytes) -> None:
    assert distrusting(LEAF, {ONE: (first + CA.text,)}) == [ONE]


@pytest.mark.parametrize(("shown", "bundle", "is_trusted"), CHAINS.values(), ids=CHAINS)
def test_a_chain_is_trusted_as_by_an_api_server(
    shown: list[Signer], bundle: list[Signer], *, is_trusted: bool
) -> None:
    pair = Identity.read(b"".join(each.text for each in shown), SERVER.secret)
    assert pair is not None
    text = b"".join(each.text for each in bundle)
    assert distrusting(pair, {ONE: (text,)}) == ([] if is_trusted else [ONE])


@pytest.mark.parametrize(("kept", "bundle", "wanted"), FILLS.values(), ids=FILLS)
def test_a_bundle_is_filled(kept: OwnCertificates, bundle: bytes, wanted: bytes) -> None:
    assert next_step(at(kept, wanted, bundle), PLAN) == Fill(ONE, (wanted, wanted))
    assert filled(wanted, kept, NOW) == wanted
    step = next_step(at(kept, bundle, barred={ONE}), PLAN)
    assert not isinstance(step, Fill), "it could not be written a moment ago"


@pytest.mark.parametrize("kept", [ROTATING, replace(ROTATED, until=NOW)], ids=["next", "old"])
def test_no_ca_changes_while_a_configuration_is_out_of_reach(kept: OwnCertificates) -> None:
    assert next_step(at(kept, barred={ONE}), PLAN) is None


def test_a_leaf_ends_no_later_than_its_ca() -> None:
    short = new_authority("short", NOW - BACKDATED, NOW + DAY)
    assert PLAN.leaf(short, NOW).end == NOW + DAY


def test_other_text_in_a_bundle_is_no_certificate() -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n"
    assert blocks_in(b"# a comment\r\n" + CA.text.replace(b"\n", b"\r\n") + broken) == (CA.text,)
