"""No comment is lost: what goes with the line that it stands on is in the fix of a finding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.formats.test_same_rules import CASES, plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases import Case
    from webhook.files.results import FileResult


def scalars(text: str) -> Iterator[tuple[int, int]]:
    """The first and the last line of each scalar that goes over several lines, and its style."""
    for document in yaml.compose_all(text, yaml.SafeLoader):
        nodes = [document]
        while nodes:
            node = nodes.pop()
            if isinstance(node, yaml.ScalarNode):
                first, last = node.start_mark, node.end_mark
                yield first.line, last.line - (last.column == 0)
            elif isinstance(node, yaml.MappingNode):
                nodes += [each for pair in node.value for each in pair]
            else:
                nodes += node.value


def commented(text: str) -> str:
    """The text with a comment above each line, and one at the end of each."""
    inside: set[int] = set()
    for first, last in scalars(text):
        inside.update(range(first + 1, last + 1))
    lines = text.splitlines()
    made = []
    for number, line in enumerate(lines):
        is_text = not line.strip() or line.startswith(("---", "%", "..."))
        if number not in inside and not is_text:
            made.append(f"{' ' * (len(line) - len(line.lstrip()))}# above {number}.")
        ends = number + 1 not in inside or line.rstrip().endswith(("|", "|-", ">", ">-", "|+"))
        made.append(
            f"{line}  # beside {number}." if ends and not (is_text or number in inside) else line
        )
    return "\n".join(made) + "\n"


def lost(result: FileResult, text: str) -> tuple[set[str], set[str]]:
    """The comments above lines and beside lines that neither the text nor a fix has."""
    left = result.new_text or text
    gone = {
        line.strip()
        for each in result.located
        for fix in each.fix
        for line in text[fix.start : fix.end].splitlines()
    }
    missing = [
        line.rpartition("# ")[2]
        for line in text.splitlines()
        if "# above " in line or "# beside " in line
    ]
    missing = [each for each in missing if f"# {each}" not in left]
    above = {each for each in missing if each.startswith("above")}
    return above, {each for each in missing if not any(each in line for line in gone)} - above


@pytest.mark.parametrize("unsafe", [False, True], ids=["", "with --unsafe"])
@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_comments_above_lines_stay_and_others_are_in_a_fix(case: Case, *, unsafe: bool) -> None:
    text = case.file.read_text()
    new = commented(text)
    assert list(yaml.compose_all(new, yaml.SafeLoader)), "it is still YAML"
    result = migrate_text(Source.of_text("x.yaml", new), replace(plan(case), unsafe=unsafe))
    assert lost(result, new) == (set(), set())


def test_the_comments_are_many_and_some_go() -> None:
    above = beside = 0
    for case in CASES:
        text = commented(case.file.read_text())
        made = migrate_text(Source.of_text("x.yaml", text), plan(case))
        above += text.count("# above")
        beside += text.count("# beside") - (made.new_text or text).count("# beside")
    assert above > len(CASES) * 9
    assert beside > len(CASES) / 9
