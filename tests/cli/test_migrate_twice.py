"""What needs manual changes is reported by each run until it is done."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.shared_folder import files

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Command

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


def manual(gpu_webhook: Command, *words: str) -> tuple[int, Counter[tuple[str, str]]]:
    ran = gpu_webhook("migrate", "--write", ".", "-o", "json", *words)
    return ran.code, Counter(
        (file["path"], found["code"])
        for file in json.loads(ran.out)["files"]
        for found in file["findings"]
        if found["status"] == "manual"
    )


@pytest.mark.parametrize(("name", "text"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("unsafe", [(), ("--unsafe",)], ids=["", "with --unsafe"])
def test_a_finding_stays_until_it_is_done(
    gpu_webhook: Command, tmp_path: Path, name: str, text: str, unsafe: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(text)
    first = manual(gpu_webhook, *unsafe)
    assert first[0] == 3
    assert first[1]
    assert manual(gpu_webhook, *unsafe) == first


OF_OURS = [*CORPUS.glob("*/*.yaml")]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda: [e for e in OF_OURS if ".fixed" not in e.name], id="our own files"),
        pytest.param(lambda: files("corpus/files/*", "corpus/guides/*"), id="published files"),
    ],
)
def test_so_does_each_of_the_corpus(
    gpu_webhook: Command, tmp_path: Path, given: Callable[[], list[Path]]
) -> None:
    for number, file in enumerate(given()):
        (tmp_path / f"f{number:03}").mkdir()
        shutil.copyfile(file, tmp_path / f"f{number:03}" / file.name)
    code, before = manual(gpu_webhook)
    assert len(before) > len(CASES)
    again, after = manual(gpu_webhook)
    assert (again, before - after) == (code, Counter())
