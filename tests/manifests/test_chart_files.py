"""What the chart says of itself is true."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.manifests.chart_files import CHART, RENEW, defaults, readme, rows, values_schema
from webhook import __version__

if TYPE_CHECKING:
    from pathlib import Path


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
    of_helm = {"global", "enabled"}  # which charts that depend on it pass to it
    assert known - of_helm == {path for path, *_ in rows()}


def test_the_names_of_our_volumes_are_reserved() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    name = schema["properties"]["extraVolumes"]["items"]["properties"]["name"]
    deployment = yaml.safe_load((CHART / "base/deployment.yaml").read_text())
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert {*name["not"]["enum"]} == {each["name"] for each in volumes}


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert [chart["version"], chart["appVersion"]] == [__version__, __version__]


# How doctor ends and what it prints, each time; whether pods are only audited; the end of the test.
_TRIED = "ok       dry run  a legacy pod is repaired"
_UNSEEN = "warning  dry run  it cannot be seen whether the webhook answers"
ENDS: dict[str, tuple[list[tuple[int, str]], bool, int]] = {
    "nothing is found": ([(0, _TRIED)], False, 0),
    "a warning is no failure": ([(2, f"{_TRIED}\nwarning  order")], False, 0),
    "a line is failed": ([(3, "failed   pods")], False, 3),
    "a line is failed at first": ([(3, "failed   pods"), (0, _TRIED)], False, 0),
    "no API server answers": ([(1, "no answer from the API server")], False, 1),
    "nobody knows whether pods are repaired": ([(2, _UNSEEN)], False, 3),
    "nobody knows, as pods are only audited": ([(2, _UNSEEN)], True, 0),
}


@pytest.mark.parametrize(("said", "only_audits", "end"), ENDS.values(), ids=ENDS)
def test_helm_test_ends_as_doctor_does(
    said: list[tuple[int, str]],
    only_audits: bool,  # noqa: FBT001 - of a table
    end: int,
    tmp_path: Path,
) -> None:
    (tmp_path / "said.json").write_text(json.dumps(said))
    (tmp_path / "webhook.py").write_text(
        "import json, pathlib, sys\n"
        "assert sys.argv[1:] == ['doctor', '--namespace', 'here']\n"
        "file = pathlib.Path('said.json')\n"
        "(code, text), *later = json.loads(file.read_text())\n"
        "file.write_text(json.dumps(later or [(code, text)]))\n"
        "print(text)\n"
        "sys.exit(code)\n"
    )
    given = {"SECONDS_TO_WAIT": "1"} | ({"AUDIT_ONLY": "true"} if only_audits else {})
    script = (CHART / "checks" / "doctor.py").read_text()
    command = [sys.executable, "-c", script, "--namespace", "here"]
    done = subprocess.run(
        command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (end, "")
    assert done.stdout == f"{said[-1][1]}\n"


@pytest.mark.parametrize("name", ["README.md", "values.yaml", "templates/NOTES.txt"])
def test_the_chart_names_no_address(name: str) -> None:
    assert "://" not in (CHART / name).read_text()
