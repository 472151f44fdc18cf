"""Pairs that are valid from one day to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from webhook.certs import development
from webhook.kube.times import DAY

if TYPE_CHECKING:
    from pathlib import Path


def dated(folder: Path, start: float, end: float) -> development.Files:
    """A pair that is valid from then to then, in days from now."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(development, "BACKDATED", -start * DAY)
        patched.setattr(development, "VALID", end * DAY)
        return development.ensure(folder)
