"""A page or a message names no address that nobody serves, and no file that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.joinpath("docs").rglob("*.md"), *ROOT.glob("[bm]*/*.md")]
TEXTS = [
    *PAGES,
    *ROOT.glob("*.y*ml"),
    *(file for room in ("webhook", "manifests") for file in ROOT.joinpath(room).rglob("*.*")),
    ROOT / "docs" / "schema" / "settings.json",
]
# Others serve these; that of an example is reserved (RFC 2606), or a Service of the cluster.
SERVED = re.compile(
    r"(github\.com|kubernetes\.io|pre-commit\.com|cert-manager\.io|mutmut\.readthedocs\.io"
    r"|docs\.oasis-open\.org|json-schema\.org|token\.actions\.githubusercontent\.com|(.+\.)?example(\.org|\.com)?|.+\.svc|[\d.]+)"
)
_HOST = re.compile(r"https?://([\w.-]++)(?!\{)")  # {{ .Release.Namespace }}.svc is no host yet
# Each was looked at: one of our own would be a repository that nobody can open.
REPOSITORIES = {
    "OWNER/REPOSITORY",  # a placeholder
    "FairwindsOps/pluto",
    "FairwindsOps/polaris",
    "NVIDIA/KAI-Scheduler",
    "Project-HAMi/HAMi",
    "doitintl/kube-no-trouble",
    "helm/helm-mapkubeapis",
    "kubepug/kubepug",
    "kubernetes/sig-security",
    "kyverno/kyverno",
    "open-policy-agent/gatekeeper",
    "stackrox/kube-linter",
    "volcano-sh/volcano",
}
_REPOSITORY = re.compile(r"https?://github\.com/([\w.-]+/[\w.-]+)")
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_every_host_is_served_by_others_or_reserved() -> None:
    named = {
        (_name(file), host)
        for file in TEXTS
        if file.suffix != ".pyc"
        for host in _HOST.findall(file.read_text())
    }
    assert [each for each in sorted(named) if not SERVED.fullmatch(each[1].rstrip("."))] == []


def test_every_repository_that_a_page_names_is_there() -> None:
    named = {each for page in PAGES for each in _REPOSITORY.findall(page.read_text())}
    assert named == REPOSITORIES


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    broken = [each for each in _LINK.findall(page.read_text()) if not (page.parent / each).exists()]
    assert broken == []
