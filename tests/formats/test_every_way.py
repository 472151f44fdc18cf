"""One evaluator: the same object gives the same findings and edits, whatever file it stands in."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.formats.test_same_rules import CASES, plan
from webhook.core.rule import Facts, Stage
from webhook.evaluation.evaluate import Stages
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats import file_objects
from webhook.formats.migrate import migrate_text
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cases import Case
    from webhook.files.results import FileResult


@dataclass(frozen=True)
class Way:
    """How a manifest is written into a file, and read out of it."""

    path: str
    write: Callable[[str], str]
    read: Callable[[str], str]


CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  x.yaml: |\n"
WAYS = {
    "Helm": Way(
        "templates/x.yaml",
        lambda text: f"# {{{{ .Values.x }}}}\n{text}",
        lambda text: text.removeprefix("# {{ .Values.x }}\n"),
    ),
    "Jinja": Way(
        "x.yaml.j2",
        lambda text: f"{{# a comment #}}\n{text}",
        lambda text: text.removeprefix("{# a comment #}\n"),
    ),
    "Markdown": Way(
        "x.md",
        lambda text: f"```yaml\n{text}```\n",
        lambda text: text.removeprefix("```yaml\n").removesuffix("```\n"),
    ),
    "a ConfigMap": Way(
        "c.yaml",
        lambda text: CONFIG_MAP + textwrap.indent(text, "    "),
        lambda text: textwrap.dedent(text.removeprefix(CONFIG_MAP)),
    ),
    "a script": Way(
        "x.sh",
        lambda text: f"kubectl apply -f - <<'EOF'\n{text}EOF\n",
        lambda text: text.removeprefix("kubectl apply -f - <<'EOF'\n").removesuffix("EOF\n"),
    ),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def found(result: FileResult) -> Counter[tuple[str, ...]]:
    return Counter(
        (each.code, each.status, each.path, each.object, each.message) for each in result.located
    )


def result_of(path: str, text: str, asked: Plan) -> FileResult:
    return migrate_text(Source.of_text(path, text), asked)


@cache
def of_manifest(case: Case) -> tuple[str, Plan, FileResult]:
    """The text, what is asked, and the result: what each other way is compared with."""
    text, asked = case.file.read_text(), plan(case)
    return text, asked, result_of("x.yaml", text, asked)


@every_way
@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_a_case_of_the_corpus(case: Case, way: Way) -> None:
    text, asked, manifest = of_manifest(case)
    result = result_of(way.path, way.write(text), asked)
    assert found(result) == found(manifest)
    assert way.read(result.new_text or way.write(text)) == (manifest.new_text or text)


ALONE = [case for case in CASES if len(documents.read(case.file.read_text()).documents) == 1]


@pytest.mark.parametrize("case", ALONE, ids=map(str, ALONE))
def test_a_case_of_the_corpus_in_json_and_in_a_list(case: Case) -> None:
    text, asked, manifest = of_manifest(case)
    as_json = result_of("x.json", json.dumps(in_data(text), indent=2), asked)
    assert found(as_json) == found(manifest)
    if manifest.new_text is not None:
        assert json.loads(as_json.new_text or "") == in_data(manifest.new_text)
    items = textwrap.indent(text, "  ").replace("  ", "- ", 1)
    listed = result_of("l.yaml", f"apiVersion: v1\nkind: List\nitems:\n{items}", asked)
    inside = {
        (code, status, path.removeprefix("items[0]").removeprefix("."), name, message): count
        for (code, status, path, name, message), count in found(listed).items()
    }
    assert inside == found(manifest)


def in_data(text: str) -> Any:
    return next(each.data for each in documents.read(text).documents if each.data is not None)


REPAIR = Facts(Stage.REPAIR)


@dataclass(eq=False)
class Failing:
    """A rule that raises."""

    CODE: str = "GPU101"
    NAME: str = "failing"
    FACTS: Facts = REPAIR

    def check(self, _pod: object, _cx: object) -> Any:
        raise ValueError("of our making")


SPEC = """\
spec:
  containers:
  - name: c
    image: i
    resources:
      limits:
        alpha.kubernetes.io/nvidia-gpu: 1
"""
POD = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n{SPEC}"


@every_way
def test_a_rule_that_raises_is_reported(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_objects, "_STAGES", Stages((), (Failing(),)))
    result = result_of(way.path, way.write(POD), Plan())
    (said,) = [each for each in result.located if "the rule failed" in each.message]
    assert (said.code, said.status, said.object) == ("GPU101", "manual", "Pod/p")
    assert result.new_text is None


CUSTOM = """\
apiVersion: x.io/v1
kind: Weird
metadata: {name: w}
spec:
  podTemplate:
""" + textwrap.indent(SPEC, "    ")


@every_way
def test_a_kind_that_nobody_knows(way: Way) -> None:
    manifest = result_of("x.yaml", CUSTOM, Plan())
    assert [each.status for each in manifest.located] == ["manual"]
    assert found(result_of(way.path, way.write(CUSTOM), Plan())) == found(manifest)


MADE = """\
apiVersion: {{ .Values.version }}
kind: {{ .Values.kind }}
metadata: {name: a}
spec:
  template:
""" + textwrap.indent(SPEC, "    ")


@pytest.mark.parametrize("unsafe", [False, True], ids=["by default", "with --unsafe"])
def test_what_is_in_a_kind_that_the_template_makes_counts_by_its_shape(*, unsafe: bool) -> None:
    """It may be a Deployment or a StatefulSet; the rule on data leaves the pod in it alone."""
    asked = Plan(unsafe=unsafe)
    result = result_of("templates/x.yaml", MADE, asked)
    assert sorted(each.code for each in result.located) == ["GPU101", "GPU201"]
    assert result.new_text is not None
    expected = MADE.replace("alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu")
    assert result.new_text.startswith(expected)
    assert result.new_text.count("tolerations:") == 1
    assert result_of("templates/x.yaml", result.new_text, asked).located == ()
