"""The built wheel in an empty virtual environment: all parts are in it, and it works."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.cli.installed import ROOT, demand, empty_environment, run, wheel
from tests.cli.test_scan import LEGACY, PERSON, put
from tests.migration.browser import Page, started
from webhook import __version__

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return empty_environment(tmp_path_factory.mktemp("environment") / "venv", built)


def test_every_file_of_the_package_is_in_the_wheel(built: Path) -> None:
    with zipfile.ZipFile(built) as opened:
        packed = {name for name in opened.namelist() if name.startswith("webhook/")}
    files = (path for path in ROOT.joinpath("webhook").rglob("*") if path.is_file())
    meant = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    assert packed == meant
    assert {"webhook/py.typed", "webhook/migration/report.html"} <= packed


def test_its_requirements_are_met(programs: Path) -> None:
    assert "No broken requirements" in demand(programs / "pip", "check", cwd=programs)


def test_the_command_and_its_version(programs: Path, tmp_path: Path) -> None:
    assert demand(programs / "gpu-webhook", "--version", cwd=tmp_path) == (
        f"gpu-webhook {__version__}\n"
    )
    assert "GPU101" in demand(programs / "gpu-webhook", "explain", cwd=tmp_path)
    assert "_gpu_webhook" in demand(programs / "gpu-webhook", "completion", "bash", cwd=tmp_path)


def test_scan_and_migrate_with_every_report(programs: Path, tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY, odd=PERSON)
    forms = ("text", "json", "yaml", "markdown", "html", "sarif", "junit", "github")
    reports = [f"--output-file={form}={tmp_path / form}.report" for form in forms]
    done = run(programs / "gpu-webhook", "scan", ".", *reports, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    for form in forms:
        assert "GPU101" in (tmp_path / f"{form}.report").read_text(), form
    done = run(programs / "gpu-webhook", "migrate", "-w", ".", "-o", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["summary"]["fixed"] == 1
    assert "nvidia.com/gpu: 1" in (tmp_path / "a.yaml").read_text()


def test_its_page_opens_in_a_browser_without_a_network(programs: Path, tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY)
    run(programs / "gpu-webhook", "scan", ".", "--output-file=html=page.html", cwd=tmp_path)
    with started() as browser:
        page = Page(browser, size=(1280, 900))
        page.open((tmp_path / "page.html").as_uri())
        assert page.run("document.querySelectorAll('.finding').length") > 0
        page.press("e")
        assert "nvidia.com/gpu" in page.run("document.querySelector('ins').textContent")
        assert (len(page.requests), page.complaints) == (1, [])


def test_the_webhook_answers_from_it_too(programs: Path, tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY)
    done = run(programs / "gpu-webhook", "review", "-f", "a.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (2, "Pod/legacy: repaired")


def test_the_plugin_of_kubectl_migrates_unless_told_otherwise(
    programs: Path, tmp_path: Path
) -> None:
    put(tmp_path, a=LEGACY)
    plugin = programs / "kubectl-gpu_migrate"
    assert run(plugin, "--check", "-f", "a.yaml", cwd=tmp_path).stdout == "a.yaml\n"
    assert demand(plugin, "--version", cwd=tmp_path) == f"kubectl gpu-migrate {__version__}\n"
    assert "GPU101" in run(plugin, "scan", "a.yaml", cwd=tmp_path).stdout
    assert "Usage: kubectl gpu-migrate migrate" in demand(plugin, "--help", cwd=tmp_path)
