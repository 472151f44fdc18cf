"""To add a rule takes its module and its line in the tuple: all else is made from these."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from webhook.rules import ALL, unfinished_object

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.programs

PACKAGE = Path(__file__).parents[2] / "webhook"
# Where codes stand outside of the modules of their rules all the same.
ALLOWED = {
    "core/rule.py": {"GPU101", "GPU105"},  # the core depends on these, and so the rules take them
    "core/repaired_annotation.py": {
        "GPU(?"
    },  # the shape of a code in an annotation that anybody may write
    "rules/legacy_resource.py": {"GPU102", "GPU103", "GPU104"},  # what these left is not renamed
    "cli/commands.py": {"GPU101"},  # an example in --help, for which no rule is loaded
    "cli/file_flags.py": {"GPU101"},  # an example in --help, for which no rule is loaded
    # Examples of what users write into a file of settings.
    "settings/policy.py": {"GPU301", "GPU303", "GPU304"},
}
_CODE = re.compile(r"GPU(?:\d(?!xx)\d*|\(\?)")


def codes_in(file: Path) -> Iterator[str]:
    """What looks like the code of a rule in the texts of a program, but for its docstrings."""
    nodes = [*ast.walk(ast.parse(file.read_text()))]
    docstrings = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}
    for each in nodes:
        if isinstance(each, ast.Constant) and id(each) not in docstrings:
            yield from _CODE.findall(str(each.value))


def test_a_code_stands_in_the_module_of_its_rule_alone() -> None:
    own = {f"rules/{rule.NAME.replace('-', '_')}.py": rule.CODE for rule in ALL}
    files = {each.relative_to(PACKAGE).as_posix(): each for each in PACKAGE.rglob("*.py")}
    found = {name: set(codes_in(file)) - {own.get(name)} for name, file in files.items()}
    assert {name: codes for name, codes in found.items() if codes} == ALLOWED


def test_the_example_for_contributors_is_a_rule_as_it_is() -> None:
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert Path(unfinished_object.__file__).read_text().endswith(f"\n\n{example}")


TOY = '''\
"""Finds toys.

Why: a test wants to know what it takes to add a rule.

Does: takes the toy away.

Safety: unsafe: somebody may play with it.
"""

from webhook.core.edits import Remove
from webhook.core.findings import Finding, Safety
from webhook.kube.pointer import ROOT
from webhook.core.rule import Facts, Stage
from webhook.core.text_patterns import Pattern

NAME = "toy-rule"
CODE = "GPU199"
FACTS = Facts(
    Stage.MANIFEST,
    unsafe=True,
    words=("teddy",),
    patterns=(Pattern("toy", r"\\bteddy\\b", "a toy", "put it away"),),
)


def check(obj, cx):
    if "teddy" in obj.get("data", {}):
        at = ROOT / "data" / "teddy"
        yield Finding(CODE, at, "a toy: put it away", (Remove(at),), safety=Safety.UNSAFE)
'''
STRICT = '''\
"""Finds pods without a label.

Why: a test wants to know what it takes to add a rule of policy.

Does: warns.

Safety: safe.
"""

from webhook.core.findings import Finding, Severity
from webhook.core.rule import Facts, Stage

NAME = "toy-policy"
CODE = "GPU399"
FACTS = Facts(Stage.POLICY)


def check(pod, cx):
    yield Finding(CODE, pod.at, "no label", severity=Severity.DENY)
'''
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  teddy: bear\n  car: red\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {gpu-webhook.dev/allow.GPU399: a test}}
spec:
  containers:
  - name: c
    image: i
    resources: {limits: {nvidia.com/gpu: 1}}
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with two more rules, and files that these are about."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / "webhook", ignore=shutil.ignore_patterns("__pycache__"))
    room = folder / "webhook" / "rules"
    (room / "toy_rule.py").write_text(TOY)
    (room / "toy_policy.py").write_text(STRICT)
    text = (room / "__init__.py").read_text()
    imported, listed = "import (\n    ", "= (\n    "
    for line in (imported, listed):
        assert text.count(line) == 1
        text = text.replace(line, f"{line}toy_rule,\n    toy_policy,\n    ")
    (room / "__init__.py").write_text(text)
    (folder / "map.yaml").write_text(MAP)
    (folder / "note.md").write_text("Take the teddy along.\n")
    (folder / "pod.yaml").write_text(POD)
    (folder / "off.yaml").write_text("policy: {rules: {toy-rule: off}}\n")
    (folder / "unsafe.yaml").write_text("unsafe: [toy-rule]\n")
    (folder / "excepted.yaml").write_text(
        "policy: {exceptions: [{rules: [toy-policy], namespaces: ['*']}]}\n"
    )
    return folder


def said(copy: Path, *words: str) -> str:
    program = (sys.executable, "-m", "webhook", *words)
    done = subprocess.run(program, cwd=copy, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def test_its_manual_is_explained(copy: Path) -> None:
    assert "GPU199  toy-rule" in said(copy, "explain")
    assert "somebody may play with it" in said(copy, "explain", "toy-rule")


def test_files_are_searched_for_it(copy: Path) -> None:
    """Neither file holds a word of another rule."""
    report = json.loads(said(copy, "scan", "map.yaml", "note.md", "-o", "json"))
    found = [(each["code"], each["legacy"]) for f in report["files"] for each in f["findings"]]
    assert found == [("GPU199", True), ("GPU199", True)]


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        pytest.param((), False, id="its edit is not safe"),
        pytest.param(("--unsafe",), True, id="all edits that are not safe are wanted"),
        pytest.param(("--config=unsafe.yaml",), True, id="the settings want this one"),
        pytest.param(("--config=off.yaml", "--unsafe"), False, id="its mode is off"),
    ],
)
def test_its_edit_is_made_where_it_is_wanted(
    words: tuple[str, ...], copy: Path, *, gone: bool
) -> None:
    assert ("-  teddy: bear" in said(copy, "migrate", "map.yaml", *words)) is gone


def test_it_has_the_mode_of_its_stage(copy: Path) -> None:
    shown = said(copy, "config", "show", "--namespace", "n")
    assert re.search(r"GPU199 toy-rule +default +enforce", shown)
    assert re.search(r"GPU399 toy-policy +default +warn", shown)


@pytest.mark.parametrize(
    ("words", "action"),
    [
        pytest.param((), "would deny", id="policy only warns"),
        pytest.param(("--config=excepted.yaml",), "excepted", id="and may have exceptions"),
    ],
)
def test_pods_are_reviewed_by_it(words: tuple[str, ...], action: str, copy: Path) -> None:
    report = json.loads(said(copy, "review", "-f", "pod.yaml", "-o", "json", *words))
    assert [(each["code"], each["action"]) for each in report["findings"]] == [("GPU399", action)]
