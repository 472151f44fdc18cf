"""Pairs that are valid from one day to another."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from webhook.certs import development

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400.0


def dated(folder: Path, start: float, end: float) -> development.Files:
    """A pair that is valid from then to then, in days from now."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(development, "BACKDATED", timedelta(days=-start))
        patched.setattr(development, "VALID", timedelta(days=end))
        return development.ensure(folder)
