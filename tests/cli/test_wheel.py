"""The built wheel in an empty virtual environment: all parts are in it, and it works.

Without an extra it has all that files need. That pip finds the packages in its index is seen by
test_action.py.
"""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.cli.installed import (
    NAME,
    ROOT,
    declared_environment,
    demand,
    packages_of,
    run,
    unmet,
    wheel,
    with_extras,
)
from tests.cli.test_scan import LEGACY, MANUAL, put
from tests.reports.browser import Page, started
from webhook import __version__

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.programs, pytest.mark.slow]

MOST_MEGABYTES = 35
_CERTIFICATE = ("--tls-cert-file", "none.crt", "--tls-private-key-file", "none.key")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return declared_environment(tmp_path_factory.mktemp("environment") / "venv", built)


def test_every_file_of_the_package_is_in_the_wheel(built: Path) -> None:
    with zipfile.ZipFile(built) as opened:
        packed = {name for name in opened.namelist() if name.startswith("webhook/")}
    files = (path for path in ROOT.joinpath("webhook").rglob("*") if path.is_file())
    meant = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    assert packed == meant
    assert {"webhook/py.typed", "webhook/reports/report.html"} <= packed


def test_it_is_light(programs: Path) -> None:
    packages = packages_of(programs)
    words = ("du", "-sk", "--dereference", "--exclude=__pycache__", packages)
    kilobytes = int(demand(*words, cwd=programs).split()[0])
    assert kilobytes <= MOST_MEGABYTES * 1024


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("serve", "server"),
        ("watch --snapshot .", "cluster"),
        ("inventory", "cluster"),
        ("scan --cluster", "cluster"),
    ],
)
def test_a_command_that_needs_an_extra_names_it(
    command: str, extra: str, programs: Path, tmp_path: Path
) -> None:
    name, *flags = command.split()
    done = run(programs / "gpu-webhook", name, *flags, cwd=tmp_path)
    line = f"`{name}` needs the extra {extra}: pip install '{NAME}[{extra}]'"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"gpu-webhook: {line}\n"


def test_with_the_extras_these_commands_run(programs: Path, tmp_path: Path) -> None:
    extras = with_extras(tmp_path, programs, "server", "cluster")
    assert not unmet(programs, **extras)
    done = run(programs / "gpu-webhook", "serve", *_CERTIFICATE, cwd=tmp_path, **extras)
    assert (done.returncode, "none.crt" in done.stderr) == (1, True), done.stderr
    words = ("inventory", "--kubeconfig", "none.yaml")
    done = run(programs / "gpu-webhook", *words, cwd=tmp_path, **extras)
    assert (done.returncode, "none.yaml" in done.stderr) == (1, True), done.stderr


def test_with_one_extra_the_other_is_still_missed(programs: Path, tmp_path: Path) -> None:
    """Nothing else of this Python is there: what an extra forgot would be missed."""
    extra = with_extras(tmp_path, programs, "cluster")
    done = run(programs / "gpu-webhook", "serve", *_CERTIFICATE, cwd=tmp_path, **extra)
    assert (done.returncode, "needs the extra server" in done.stderr) == (1, True), done.stderr


def test_the_command_and_its_version(programs: Path, tmp_path: Path) -> None:
    assert demand(programs / "gpu-webhook", "--version", cwd=tmp_path) == (
        f"gpu-webhook {__version__}\n"
    )
    assert "GPU101" in demand(programs / "gpu-webhook", "explain", cwd=tmp_path)
    assert "_gpu_webhook" in demand(programs / "gpu-webhook", "completion", "bash", cwd=tmp_path)


def test_settings_and_an_inventory_in_a_file(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("policy: {mode: warn}\n")
    (tmp_path / "nodes.yaml").write_text("kind: Node\napiVersion: v1\nmetadata: {name: a}\n")
    program = programs / "gpu-webhook"
    for words in ("check settings.yaml", "show --config settings.yaml", "schema"):
        demand(program, "config", *words.split(), cwd=tmp_path)
    assert "matchConditions" in demand(program, "config", "match-conditions", cwd=tmp_path)
    shown = demand(program, "inventory", "--inventory", "nodes.yaml", "-o", "json", cwd=tmp_path)
    assert json.loads(shown)


def test_scan_and_migrate_with_every_report(programs: Path, tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY, odd=MANUAL)
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
