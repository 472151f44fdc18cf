"""The findings of a file in little memory: the same come out as went in."""

from __future__ import annotations

import gc
import pickle
import tracemalloc
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from webhook.files.results import Located, Packed, Status, order
from webhook.yamlpatch.places import Place, Replacement

_NUMBERS = st.integers(0, 2**26)
_TEXTS = st.text(max_size=3)
_FIXES = st.lists(st.builds(Replacement, _NUMBERS, _NUMBERS, _TEXTS), max_size=3).map(tuple)
_FINDINGS = st.lists(
    st.builds(
        Located,
        *(_TEXTS, _TEXTS, st.sampled_from(Status)),
        st.builds(Place, *[st.integers(1, 3)] * 4),
        *(_TEXTS, _TEXTS, _FIXES, _FIXES),
    ),
    max_size=6,
)


@given(_FINDINGS)
def test_the_findings_are_those_that_were_put_in(located: list[Located]) -> None:
    packed = Packed(located)
    assert [*packed] == located
    assert [packed[at] for at in range(len(packed))] == located
    assert packed[1:] == tuple(located[1:])
    assert packed == tuple(located) == pickle.loads(pickle.dumps(packed))  # noqa: S301


@given(_FINDINGS)
def test_they_are_sorted_by_place_and_code_and_otherwise_stay_in_order(
    located: list[Located],
) -> None:
    assert [*Packed(located).in_order()] == sorted(located, key=order)


def test_they_differ_from_other_findings() -> None:
    one = Located("GPU101", "m", Status.MANUAL, Place(1, 1, 1, 2))
    assert Packed([one]) != Packed([replace(one, code="GPU102")])
    assert Packed([one]) != (one, one)


def test_a_finding_takes_a_seventh_of_its_objects() -> None:
    """At most: equal texts are kept once."""

    def made(number: int, container: str = "c") -> Located:
        fix = (Replacement(number * 300, number * 300 + 30, "nvidia.com/gpu"),)
        place = Place(number * 12 + 300, 9, number * 12 + 300, 39)
        message = f"container {container} requests a GPU"  # a text of its own
        path = f"spec.containers[{container}]"
        return Located("GPU101", message, Status.FIXABLE, place, path, "Pod/p", fix)

    def size(keep: type[Packed | list[Located]]) -> int:
        gc.collect()
        tracemalloc.start()
        kept = keep(made(number) for number in range(2_000))
        found, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(kept) == 2_000
        return found

    assert size(Packed) * 7 < size(list)
