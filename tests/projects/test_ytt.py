"""A template of ytt is not edited, and what it may be merged with waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.test_outside_amounts import CHART, migrated
from tests.projects.test_values import NEW, OLD
from tests.verifying.proofs import of_files
from webhook.cli.main import main
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.verifying.comparison import Result

if TYPE_CHECKING:
    from pathlib import Path

AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
LIMITS = f"      limits: {{{OLD}: 2}}\n"
LABELS = "    metadata: {labels: {app: x}}\n"


def pod(resources: str = LIMITS, metadata: str = "", spec: str = "") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n{metadata}spec:\n"
        f"  containers:\n  - name: c\n    image: x\n    resources:\n{resources}{spec}"
    )


def deployment(spec: str, labels: str = LABELS) -> str:
    return (
        f"apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {{name: p}}\nspec:\n{spec}"
        f"  template:\n{labels}    spec:\n      containers:\n      - name: c\n        image: x\n"
        f"        resources: {{limits: {{{OLD}: 1}}}}\n"
    )


# Texts that ytt fills in; each was edited so that ytt refused it, or lost something.
CODE = {
    "an amount": pod(f"      limits:\n        {OLD}: #@ data.values.gpus\n"),
    "an amount of a function": pod(
        f"      limits:\n        {OLD}: #@ str(data.values.gpus)\n        cpu: 1\n"
    ),
    "an amount beside a request": pod(
        f"      limits:\n        {OLD}: #@ data.values.gpus\n      requests:\n        {OLD}: 1\n"
    ),
    "a tab after the sign": pod(f"      limits:\n        {OLD}: #@\tdata.values.gpus\n"),
    "a model": pod(spec=f"  nodeSelector:\n    {OLD}-name: #@ data.values.model\n"),
    "the whole selector": pod(spec="  nodeSelector: #@ data.values.selector\n"),
    "an affinity": pod(metadata=f"  annotations:\n    {AFFINITY}: #@ data.values.affinity\n"),
    "tolerations": pod(spec="  tolerations: #@ data.values.tolerations\n"),
    "a loop": pod(spec="  tolerations:\n  #@ for t in data.values.t:\n  - key: #@ t\n  #@ end\n"),
    "a condition around an amount": pod(
        f"      limits:\n        #@ if data.values.gpu:\n        {OLD}: 1\n        #@ end\n"
    ),
    "a condition around documents": f"#@ if data.values.gpu:\n---\n{pod()}---\n{pod()}#@ end\n",
    "a strategy": deployment("  strategy: #@ data.values.strategy\n"),
    "labels": deployment("", "    metadata:\n      labels: #@ data.values.labels\n"),
    "texts with code": f"#@yaml/text-templated-strings\n---\n{pod()}".replace("2}", "'(@= n @)'}"),
    "a function": f"#@ def limits():\n{OLD}: 1\n#@ end\n",
    "a name in code": f"#@ def limits():\n#@   return {{'{OLD}': 1}}\n#@ end\n",
    "an overlay": f"#@overlay/match by=overlay.all\n---\n{pod()}",
    "a schema with annotations": "#@data/values-schema\n---\n#@schema/type any=True\nres:\n"
    + LIMITS,
    "behind a quoted text": pod(f"      limits: {{{OLD}: '2'}}#@ data.values.gpus\n"),
    "a text in a ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n"
    "  p.yaml: |\n    #@ load('@ytt:data', 'data')\n"
    + "".join(f"    {line}\n" for line in pod().splitlines()),
    "Jinja around it": f"{{% if a %}}\n{{% endif %}}\n{pod(spec='  hostPID: #@ data.values.x')}\n",
}
PLAIN = {
    "data values": f"#@data/values\n---\nres:\n  limits: {{{OLD}: 2}}\n",
    "a schema": f"#@data/values-schema\r\n---\nres:\n  limits: {{{OLD}: 2}}\n",
    "comments of ytt": f"#! for ytt\n{pod()}#! the end\n",
    "the sign inside of a comment": f"# mail x #@ y\n{pod()}",
    "the sign in a word": pod().replace("image: x", "image: x#@ y"),
    "another word behind the sign": f"#@author x\n{pod()}",
    "a tag of documentation": f"## @param x/y z\n# @schema\n{pod()}",
}


@pytest.mark.parametrize("text", CODE.values(), ids=CODE)
def test_code_of_ytt_is_not_edited(text: str) -> None:
    made = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert made.new_text is None
    assert {each.status for each in made.located} == {Status.MANUAL}
    assert ["it is a template of ytt (#@)" in each.reason for each in made.skipped] == [True]


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_what_is_no_code_is_edited(text: str) -> None:
    made = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert NEW in (made.new_text or "")


@pytest.mark.parametrize("text", CODE.values(), ids=CODE)
def test_two_templates_of_ytt_are_not_compared(text: str) -> None:
    for other in (text, text.replace(OLD, NEW), f"{text}#@ more()\n"):
        found = of_files("x.yaml", text.encode(), other.encode())
        assert [each.result for each in found] == [Result.NOT_PROVABLE]


def test_a_current_template_of_ytt_that_stays_is_nothing_to_compare() -> None:
    text = CODE["tolerations"].replace(OLD, NEW).encode()
    assert of_files("x.yaml", text, text) == []


def test_nothing_is_said_of_a_current_template_of_ytt() -> None:
    text = CODE["tolerations"].replace(OLD, NEW)
    made = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert (made.skipped, [*made.located]) == ((), [])


def test_a_template_of_ytt_that_opted_out() -> None:
    text = pod(metadata="  labels: {gpu-webhook.dev/ignore: 'true'}\n", spec="  x: #@ y\n")
    made = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert [*made.located] == []
    assert "gpu-webhook.dev/ignore" in made.skipped[0].reason


@pytest.mark.parametrize("before", ["```yaml\n", "```sh\nkubectl apply -f - <<EOF\n"])
def test_a_block_of_a_document_is_not_edited(before: str) -> None:
    end = "EOF\n```\n" if "EOF" in before else "```\n"
    text = f"{before}{CODE['tolerations']}{end}\n```yaml\n{pod()}```\n"
    made = migrate_text(Source.of_text("x.md", text), Plan())
    new = made.new_text or ""
    assert CODE["tolerations"] in new
    assert NEW in new
    found = of_files("x.md", text.encode(), new.encode())
    assert sorted(each.result for each in found) == [Result.EQUAL, Result.NOT_PROVABLE]


OVERLAY = {"o.yml": CODE["an overlay"]}
SCHEMA = {"schema.yml": CODE["a schema with annotations"]}
VALUES = PLAIN["data values"]


CODE_WITH_NAME = {"f.yml": CODE["a name in code"]}


@pytest.mark.parametrize(
    "merged", [OVERLAY, SCHEMA, CODE_WITH_NAME], ids=["an overlay", "a schema", "a name in code"]
)
@pytest.mark.parametrize("text", [pod(), VALUES, deployment("")])
def test_what_ytt_may_merge_waits(
    merged: dict[str, str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrated(tmp_path, {**merged, "x.yml": text}) == {}
    said = " ".join(capsys.readouterr().out.split())
    assert f"{next(iter(merged))}, in which GPU101 needs manual work (line " in said


def test_it_waits_for_an_overlay_that_is_not_among_the_files_of_the_run(tmp_path: Path) -> None:
    assert migrated(tmp_path, {**OVERLAY, "x.yml": pod()}, "x.yml") == {}


GO = {
    "an overlay in which nothing is legacy": {"o.yml": OVERLAY["o.yml"].replace(OLD, NEW)},
    "a template that is merged with nothing": {"o.yml": CODE["tolerations"]},
    "plain data values": {"o.yml": VALUES},
    "an overlay in a guide": {"o.md": f"```yaml\n{OVERLAY['o.yml']}```\n"},
    "an overlay in a program": {"o.py": f"X = 1\n{OVERLAY['o.yml']}"},
}


@pytest.mark.parametrize("files", GO.values(), ids=GO)
def test_other_files_do_not_wait(files: dict[str, str], tmp_path: Path) -> None:
    assert "x.yml" in migrated(tmp_path, {**files, "x.yml": pod()})


def test_charts_and_documents_do_not_wait(tmp_path: Path) -> None:
    made = migrated(tmp_path, {**OVERLAY, **CHART, "x.md": f"```yaml\n{pod()}```\n"})
    assert {"charts/train/values.yaml", "x.md"} <= made.keys()


def test_the_exit_code_of_a_folder_with_an_overlay(tmp_path: Path) -> None:
    for name, text in {**OVERLAY, "x.yml": pod()}.items():
        (tmp_path / name).write_text(text)
    assert main(["migrate", "--write", str(tmp_path)]) == 3
    assert (tmp_path / "x.yml").read_text() == pod()
