"""`migrate --verify`: only files that are proven are changed; what belongs together stays so."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.verifying.test_command import CURRENT, LEGACY, LIMITS, new, old, written
from webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

MANUAL, WRITTEN, FIXABLE = 3, 0, 2
TEMPLATE = LEGACY.replace("NAME", "{{ .Values.name }}")
CHART = {"Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n", "values.yaml": "name: x\n"}
PATCH = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 2}}
"""
PATCHED = "resources: [pod.yaml]\npatches: [{path: patch.yaml}]\n"


def limits(of: str) -> str:
    return next(line for line in of.splitlines() if "limits" in line)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# The files, flags, the exit code, and which files are changed.
TABLE: dict[str, tuple[dict[str, str], tuple[str, ...], int, set[str]]] = {
    "a file that is proven": ({"a.yaml": old()}, (), WRITTEN, {"a.yaml"}),
    "one of two documents is a template": (
        {"a.yaml": old(), "b.yaml": TEMPLATE},
        (),
        MANUAL,
        {"a.yaml"},
    ),
    "an unsafe edit changes what runs": (
        {"a.yaml": old().replace("image: i", "image: k8s.gcr.io/cuda-vector-add:v0.1")},
        ("--unsafe",),
        MANUAL,
        set(),
    ),
    "a document of blocks": ({"a.md": f"```yaml\n{old()}```\n"}, (), WRITTEN, {"a.md"}),
    "a script": ({"a.sh": f"kubectl apply -f - <<EOF\n{old()}EOF\n"}, (), MANUAL, set()),
    "a list of objects": (
        {"a.yaml": yaml.safe_dump([yaml.safe_load(old())])},
        (),
        WRITTEN,
        {"a.yaml"},
    ),
    "tasks of Ansible": (
        {"a.yaml": yaml.safe_dump([{"k8s": {"definition": yaml.safe_load(old())}}])},
        (),
        MANUAL,
        set(),
    ),
    "a list behind an object": (
        {"a.yaml": f"{old()}---\n- resources: {LIMITS}\n"},
        (),
        MANUAL,
        set(),
    ),
    "a list that stays behind an object": (
        {"a.yaml": f"{old()}---\n- resources: {{}}\n"},
        (),
        WRITTEN,
        {"a.yaml"},
    ),
    "a document with a legacy tag beside its blocks": (
        {"a.md": f"```yaml\n{old()}```\n\n<pre>\n{old()}</pre>\n"},
        (),
        MANUAL,
        set(),
    ),
    "a chart is changed as a whole": (
        {**CHART, "templates/a.yaml": old(), "templates/b.yaml": TEMPLATE},
        (),
        MANUAL,
        set(),
    ),
    "a chart without actions": (
        {**CHART, "templates/a.yaml": old()},
        (),
        WRITTEN,
        {"templates/a.yaml"},
    ),
    "a kustomization is changed as a whole": (
        {"kustomization.yaml": PATCHED, "pod.yaml": old(), "patch.yaml": PATCH},
        (),
        MANUAL,
        set(),
    ),
    "a kustomization without patches": (
        {"kustomization.yaml": "resources: [pod.yaml]\n", "pod.yaml": old()},
        (),
        WRITTEN,
        {"pod.yaml"},
    ),
}


@pytest.mark.parametrize(("files", "flags", "code", "changed"), TABLE.values(), ids=TABLE)
def test_what_is_written(
    files: dict[str, str], flags: tuple[str, ...], code: int, changed: set[str], folder: Path
) -> None:
    written(folder, files)
    assert main(["migrate", "--verify", "--write", "-R", *flags, "."]) == code
    assert {name for name, text in files.items() if (folder / name).read_text() != text} == changed


@pytest.mark.parametrize("name", TABLE)
def test_without_the_flag_all_of_them_are_written(name: str, folder: Path) -> None:
    files, flags, _, changed = TABLE[name]
    written(folder, files)
    main(["migrate", "--write", "-R", *flags, "."])
    found = {name for name, text in files.items() if (folder / name).read_text() != text}
    assert found
    assert found >= changed


def test_the_reason_names_the_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(folder, {**CHART, "templates/a.yaml": old(), "templates/b.yaml": TEMPLATE})
    main(["migrate", "--verify", "--write", "-R", "."])
    why = "(not done here, since --verify: templates/b.yaml: not provable: it is a template"
    assert capsys.readouterr().out.count(why) >= 2


def test_nothing_is_written_without_write(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(folder, {"a.yaml": old(), "b.yaml": TEMPLATE})
    assert main(["migrate", "--verify", "--check", "."]) == MANUAL
    assert capsys.readouterr().out == "a.yaml\n"
    assert main(["migrate", "--verify", "a.yaml"]) == FIXABLE
    assert "+    resources: {limits: {nvidia.com/gpu: 1}}" in capsys.readouterr().out
    assert (folder / "a.yaml").read_text() == old()


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for text, code, given in ((old(), WRITTEN, new()), (TEMPLATE, MANUAL, TEMPLATE)):
        stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["migrate", "--verify", "-f", "-"]) == code
        assert limits(capsys.readouterr().out) == limits(given)
    assert CURRENT.replace("NAME", "p") == new()
