"""Hypothesis profiles (HYPOTHESIS_PROFILE: dev, ci, cover, nightly) and golden files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import pytest

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "dev", max_examples=200, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
# The same examples in every run: a red CI must be red again when it is looked into.
settings.register_profile(
    "ci",
    max_examples=1_000,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=_SLOW_IS_FINE,
)
# For the coverage run, which is three times as slow: CI runs the same tests again without it.
settings.register_profile("cover", settings.get_profile("ci"), max_examples=100)
# New examples each time; a failure prints how it is drawn again.
settings.register_profile(
    "nightly", settings.get_profile("dev"), max_examples=5_000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Golden files are read, and only written on demand."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/corpus/*/*.fixed.yaml and *.findings.txt as the rules see them now",
    )
