"""The optional ../shared beside the checkout: real manifests and recorded reviews."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from webhook.files.results import FileResult

SHARED = Path(__file__).parents[2] / "shared"


def files(*patterns: str) -> list[Path]:
    """The files there; without any the test is skipped, or fails in CI, where it must have run."""
    found = sorted({file for pattern in patterns for file in SHARED.glob(pattern)})
    if not found and not os.environ.get("CI"):
        pytest.skip(f"../shared has no {' or '.join(patterns)}")
    assert found, f"CI judged no file: ../shared has no {' or '.join(patterns)}"
    return found


@cache
def migrated(file: Path) -> FileResult:
    """What `migrate` makes of a file there, once in a process: all of them take seconds."""
    return migrate_text(Source.of(file.name, file.read_bytes()), Plan())
