"""The optional ../shared beside the checkout: real manifests and recorded reviews."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared"


def files(*patterns: str) -> list[Path]:
    """The files there; without any the test is skipped, or fails in CI, where it must have run."""
    found = sorted({file for pattern in patterns for file in SHARED.glob(pattern)})
    if not found and not os.environ.get("CI"):
        pytest.skip(f"../shared has no {' or '.join(patterns)}")
    assert found, f"CI judged no file: ../shared has no {' or '.join(patterns)}"
    return found
