"""What the chart says of itself is true."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.manifests.chart_files import CHART, RENEW, defaults, readme, rows, values_schema
from webhook import __version__


def test_the_page_has_the_values_of_the_chart() -> None:
    assert (CHART / "README.md").read_text() == readme(), f"run {RENEW}"


def test_the_schema_has_the_settings_of_the_program() -> None:
    assert (CHART / "values.schema.json").read_text() == values_schema(), f"run {RENEW}"


def test_the_templates_have_the_defaults_of_the_values() -> None:
    assert (CHART / "defaults.json").read_text() == defaults(), f"run {RENEW}"


def test_each_value_has_a_comment() -> None:
    assert len(rows()) > 25
    assert not [path for path, _, comment in rows() if not comment]


def test_the_schema_has_each_value_and_no_other() -> None:
    def paths(part: Any, above: str = "") -> set[str]:
        found: set[str] = set()
        for name, each in part["properties"].items():
            inner = each.get("properties")
            found |= paths(each, f"{above}{name}.") if inner else {above + name}
        return found

    schema = json.loads((CHART / "values.schema.json").read_text())
    parts = ("webhooks.", "affinity.", "certificates.issuerRef.")  # of one value each
    known = {
        next((part[:-1] for part in parts if each.startswith(part)), each) for each in paths(schema)
    }
    assert known - {"global"} == {path for path, *_ in rows()}


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert [chart["version"], chart["appVersion"]] == [__version__, __version__]


def test_the_script_of_helm_test_needs_no_package() -> None:
    script = CHART / "checks" / "dry_run.py"
    command = [sys.executable, "-I", "-S", "-c", script.read_text()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
    assert done.returncode == 1
    assert "KeyError: 'KUBERNETES_SERVICE_HOST'" in done.stderr


@pytest.mark.parametrize("name", ["README.md", "values.yaml", "templates/NOTES.txt"])
def test_the_chart_names_no_address(name: str) -> None:
    assert "://" not in (CHART / name).read_text()
