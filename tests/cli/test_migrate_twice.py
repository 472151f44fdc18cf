"""What needs manual changes is reported by each run until it is done."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.shared_folder import files
from webhook.files.source import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.cli.conftest import Command

    Raw = dict[str, Any]

pytestmark = pytest.mark.programs

CORPUS = Path(__file__).parents[1] / "corpus"
# After the edits of --unsafe nothing would open this file: its word is in the version alone.
LAST_WORD = """\
apiVersion: v1
kind: List
items:
- apiVersion: extensions/v1beta1
  kind: Deployment
  spec:
    template:
      metadata: {labels: {a: b}}
      spec:
        containers: [{name: a, image: b}]
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - {name: a, image: b, resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}}
  volumes: [{name: d, hostPath: {path: /usr/local/nvidia}}]
"""
CASES = {
    "the last legacy word is that of an edit": ("x.yaml", LAST_WORD),
    "a driver mount beside a legacy amount": ("x.yaml", POD),
    "the same in Markdown": ("x.md", f"```yaml\n{POD}```\n"),
}


def migrated(gpu_webhook: Command, *words: str) -> tuple[int, list[Raw]]:
    ran = gpu_webhook("migrate", "--write", ".", "-o", "json", *words)
    return ran.code, json.loads(ran.out)["files"]


def manual(files: list[Raw]) -> Counter[tuple[str, str]]:
    return Counter(
        (file["path"], found["code"])
        for file in files
        for found in file["findings"]
        if found["status"] == "manual"
    )


@pytest.mark.parametrize(("name", "text"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("unsafe", [(), ("--unsafe",)], ids=["", "with --unsafe"])
def test_a_finding_stays_until_it_is_done(
    gpu_webhook: Command, tmp_path: Path, name: str, text: str, unsafe: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(text)
    code, first = migrated(gpu_webhook, *unsafe)
    assert code == 3
    assert manual(first)
    again, second = migrated(gpu_webhook, *unsafe)
    assert (again, manual(second)) == (code, manual(first))


def twice(gpu_webhook: Command, folder: Path, given: Iterable[Path]) -> list[Raw]:
    """Give what the first run over these files reports; all of it that is manual stays so."""
    for number, file in enumerate(given):
        (folder / f"f{number:03}").mkdir()
        shutil.copyfile(file, folder / f"f{number:03}" / file.name)
    code, first = migrated(gpu_webhook)
    assert len(manual(first)) > len(CASES)
    again, second = migrated(gpu_webhook)
    assert (again, manual(first) - manual(second)) == (code, Counter())
    fixed = [each for each in second if "fixed" in {one["status"] for one in each["findings"]}]
    assert not fixed, "a second run changes nothing"
    return first


def test_so_does_each_of_our_files(gpu_webhook: Command, tmp_path: Path) -> None:
    twice(gpu_webhook, tmp_path, (e for e in CORPUS.glob("*/*.yaml") if ".fixed" not in e.name))


def test_so_does_each_published_file_and_templates_are_right(
    gpu_webhook: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Edits of templates are right whatever the actions produce; those that are not are held."""
    given = files("corpus/files/*", "corpus/guides/*")
    first = twice(gpu_webhook, tmp_path, given)
    templates = {Path(each["path"]).name: each for each in first if each["kind"] in TEMPLATES}
    edited = {
        file.name
        for number, file in enumerate(given)
        if (tmp_path / f"f{number:03}" / file.name).read_bytes() != file.read_bytes()
    } & set(templates)
    held = {
        name
        for name, each in templates.items()
        if any("it is wrong" in found["message"] for found in each["findings"])
    }
    with capsys.disabled():
        print(f"\n../shared/corpus: {len(edited)} templates edited; less in {sorted(held)}")  # noqa: T201
    assert held == {"k2-v1-5-dns-yaml.jinja2"}  # `maxSurge: {{ x }}` may be empty
    assert len(edited) >= 37
