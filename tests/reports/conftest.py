"""A marker of this folder: `pytest -m browser`, or `-m "not browser"`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Tests with this marker fail, and are never skipped, where there is no Chromium."""
    config.addinivalue_line("markers", "browser: needs a headless Chromium (make browser)")
