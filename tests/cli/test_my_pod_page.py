"""docs/my-pod.md is true: its session is run, in order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.cli.installed import ROOT
from tests.cli.test_migrate_page import hold_true

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.programs

FILE = ROOT / "docs" / "my-pod.md"
PAGE = FILE.read_text()


def test_the_sessions_are_what_happens(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    manifest = re.search(r"\$ cat (\S+)\n(.*?)\$ ", PAGE, re.DOTALL)
    assert manifest is not None
    (tmp_path / manifest[1]).write_text(manifest[2])
    hold_true(FILE, tmp_path, request)
