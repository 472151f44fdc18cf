"""docs/settings.md and docs/cookbook.md are true: legal examples, and commands as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from tests.cli import settings_table
from webhook.core.settings import MODEL_PROFILES, Settings
from webhook.settings import file as settings_file
from webhook.settings.nodes import Slow
from webhook.settings.schema import schema

pytestmark = pytest.mark.programs

PAGE = settings_table.PAGE.read_text()
COOKBOOK = settings_table.PAGE.with_name("cookbook.md").read_text()
EXAMPLES = [
    pytest.param(block, id=f"{title}: {block.partition(':')[0].lstrip('# ')}")
    for title, part in re.findall(
        r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE + COOKBOOK, re.DOTALL | re.MULTILINE
    )
    for block in re.findall(r"```yaml\n(.*?)```", part, re.DOTALL)
]
SESSIONS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 12
    assert len(SESSIONS) == 2


@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_is_legal_and_says_something(block: str) -> None:
    assert settings_file.parse(block) != Settings()
    data = yaml.load(block, Loader=Slow)  # noqa: S506 - a SafeLoader
    jsonschema.Draft202012Validator(schema()).validate(data)


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_goes_as_it_is_printed(session: str, tmp_path: Path) -> None:
    """Each `$` line is run; `cat` shows the file that the others read."""
    said = ""
    for words, out in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        said += f"$ {words}\n"
        if words.startswith("cat "):
            (tmp_path / words.removeprefix("cat ")).write_text(out)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        said += subprocess.run(
            ["sh", "-c", words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            check=False,
        ).stdout
    assert said == session


def test_the_table_is_renewed() -> None:
    assert settings_table.page() == PAGE, f"run {settings_table.RENEW}"


def test_the_table_has_the_label_of_every_model_profile() -> None:
    rows = dict(re.findall(r"^\| `([a-z]+)` \| `([^`]+)` \|", COOKBOOK, re.MULTILINE))
    assert {name: each.label for name, each in MODEL_PROFILES.items()}.items() <= rows.items()
