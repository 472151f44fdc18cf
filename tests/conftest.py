"""Hypothesis profiles (HYPOTHESIS_PROFILE: dev, ci, nightly) and golden files."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.pairs import beyond_pairs
from webhook.kube.pod import as_map

if TYPE_CHECKING:
    from collections.abc import Generator

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "dev", max_examples=20, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
# The same examples in every run: a red CI must be red again when it is looked into.
settings.register_profile(
    "ci", settings.get_profile("dev"), derandomize=True, database=None, print_blob=True
)
# New examples each time; a failure prints how it is drawn again.
settings.register_profile(
    "nightly", settings.get_profile("dev"), max_examples=5_000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


# A shell without job control starts a program in the background with both ignored, and so would all
# that the tests start: it would not end when a test says so.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        is_int = number is signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_int else signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: half as many again as there are processors, since many tests wait."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of large tables only some rows; long files first, so that short ones fill the end."""
    if settings.get_current_profile_name() != "nightly":
        rest = set(beyond_pairs(items))
        config.hook.pytest_deselected(items=[*rest])
        items[:] = [item for item in items if item not in rest]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in slow, -tests[item.path], item.path))


def pytest_collection_finish() -> None:
    """What was collected lives as long as the run: the collector need not walk it each time."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Golden files are read, and only written on demand."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/corpus/*/*.fixed.yaml and *.findings.txt as the rules see them now",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    """`as_map` returns one empty map for all that is none: a write to it would be in each file.

    It is a hook, as a fixture of all tests takes a tenth of the time of small ones.
    """
    yield
    written = {**as_map(None)}
    as_map(None).clear()
    assert not written, "a map that as_map made was written to"
