"""Whatever text is in a folder: it is searched, and what is found is reported by line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

OLD = "alpha.kubernetes.io/nvidia-gpu"
NOT_YAML = f"Title\n=====\n\napiVersion: v1\nkind: Pod\na: b: c\n  {OLD}: 1\n"

SCRIPT = f"""#!/bin/sh
# \xff
kubectl apply -f - <<EOF
apiVersion: v1
kind: Pod
metadata: {{name: x}}
spec:
  containers: [{{name: a, image: b, resources: {{limits: {{{OLD}: 1}}}}}}]
EOF
"""
NAMES = [
    *("x.rst", "x.adoc", "x.html", "x.txt", "x.go", "x.py", "x.js", "x.tf", "x.proto", "x.rs"),
    *("Dockerfile", "Jenkinsfile", "Makefile", "kubelet", "x.service", "x.conf", "x.injected"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("named", [False, True], ids=["in a folder", "named"])
def test_it_is_reported_by_line_and_is_no_error(
    gpu_webhook: Command, tmp_path: Path, name: str, *, named: bool
) -> None:
    (tmp_path / name).write_text(NOT_YAML)
    ran = gpu_webhook("scan", name if named else ".", "-o", "json")
    (file,) = json.loads(ran.out)["files"]
    assert [(each["code"], each["line"]) for each in file["findings"]] == [("GPU101", 7)]
    assert ran.code == 3
    said = "1 file was only searched for legacy words, line by line: 1 "
    assert f"{said}{name.removeprefix('x')}\n" in ran.err


def test_a_notebook(gpu_webhook: Command, tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["limits = {\n", f"  '{OLD}': 1\n", "}\n"]}
    (tmp_path / "x.ipynb").write_text(json.dumps({"cells": [cell]}, indent=1))
    ran = gpu_webhook("scan", ".")
    assert (ran.code, "x.ipynb:7:" in ran.out) == (3, True)


def test_a_text_that_is_not_utf8_is_searched_and_never_written(
    gpu_webhook: Command, tmp_path: Path
) -> None:
    raw = SCRIPT.encode("latin-1")
    (tmp_path / "start").write_bytes(raw)
    ran = gpu_webhook("migrate", "-w", ".")
    assert ran.code == 3
    assert "the file is not UTF-8" in ran.out
    assert (tmp_path / "start").read_bytes() == raw


def test_the_report_of_an_earlier_run_is_not_searched(gpu_webhook: Command, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(f"GPU = '{OLD}'\n")
    (tmp_path / "report[1]").mkdir()
    reports = ("json=out.json", "html=report[1]/out.html", "sarif=out.sarif")
    words = ["scan", ".", "-o", "json", *(f"--output-file={each}" for each in reports)]
    first, second = gpu_webhook(*words), gpu_webhook(*words)
    assert [each["path"] for each in json.loads(first.out)["files"]] == ["x.py"]
    assert (second.code, json.loads(second.out)) == (first.code, json.loads(first.out))


def test_the_most_frequent_kinds_are_named(gpu_webhook: Command, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"x.e{number:02}").write_text("")
    (tmp_path / "y.e05").write_text("")
    (tmp_path / "pod").write_text("apiVersion: v1\nkind: Pod\n# nvidia\n")
    (tmp_path / "x.yaml").write_text("")
    ran = gpu_webhook("scan", ".")
    assert "13 files were only searched" in ran.err, "not those that are objects"
    assert "line by line: 2 .e05, 1 .e00, " in ran.err
    assert ran.err.endswith("1 .e09, 2 of other kinds\n")
