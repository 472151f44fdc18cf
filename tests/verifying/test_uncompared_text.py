"""What `scan` finds is compared by `verify`, or it is not provable: nothing is left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.verifying.proofs import of_files
from tests.verifying.test_command import LIMITS, new, old
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.verifying.comparison import Result

if TYPE_CHECKING:
    from collections.abc import Callable

EQUAL, DIFFERENT, NOT_PROVABLE = Result.EQUAL, Result.DIFFERENT, Result.NOT_PROVABLE
KEY = "alpha.kubernetes.io/nvidia-gpu"
TASK = f"- hosts: all\n  tasks: [{{k8s: {{definition: {{resources: {LIMITS}}}}}}}]\n"
IMAGE = "- hosts: all\n  tasks: [{shell: NAME}]\n"
CURRENT_TASK = TASK.replace(KEY, "nvidia.com/gpu")
KINDLESS = "limits: {nvidia.com/gpu: 1}\n"
NO_KIND = "it has a document without a kind, which is no object"
AROUND = "it has legacy text that is in no object"
BLOCK = "it has legacy text outside of code blocks that are whole objects"


def a_list(*objects: str) -> str:
    return yaml.safe_dump([yaml.safe_load(each) for each in objects])


def a_json(text: str) -> str:
    return json.dumps(yaml.safe_load(text))


def highlighted(text: str) -> str:
    return f"{{% highlight yaml %}}\n{text}{{% endhighlight %}}\n"


def indented(text: str, before: str = "# a\n\n") -> str:
    return before + "".join(f"    {line}\n" for line in text.splitlines())


def fenced(text: str) -> str:
    return f"```yaml\n{text}```\n"


def a_list_object(text: str, metadata: str = "{}") -> str:
    item = yaml.safe_dump([yaml.safe_load(text)], default_flow_style=True, width=9999)
    return f"apiVersion: v1\nkind: List\nmetadata: {metadata}\nitems: {item}"


NOTED = f"{{annotations: {{x: '{KEY}'}}}}"

BLOCK_STYLE = f"kind: Pod\nspec:\n  containers:\n  - resources:\n      limits:\n        {KEY}: 2\n"
CHANGED = BLOCK_STYLE.replace(f"{KEY}: 2", "nvidia.com/gpu: 3")
DRIVER = "volumes:\n- hostPath:\n    path: /usr/lib/nvidia-375\n"
HIDDEN: dict[str, Callable[[str], str]] = {
    "a pod in indented code": indented,
    "a pod in pre": "<pre>\n{}</pre>\n".format,
    "a pod in a tag of Jekyll": highlighted,
    "a pod in an admonition": lambda text: indented(fenced(text), "!!! note\n"),
    "a pod in front matter": "---\n{}---\n# a\n".format,
}

# The file, both texts, and what is found: the result of each object or file, and a reason.
TABLE: dict[str, tuple[str, str, str, list[Result], str]] = {
    "a list of objects is a List": (
        *("a.yaml", a_list(old("a"), old("b")), a_list(new("a"), new("b"))),
        *([EQUAL, EQUAL], ""),
    ),
    "an amount in a list of objects": (
        *("a.yaml", a_list(old("a")), a_list(new("a").replace("gpu: 1", "gpu: 2"))),
        *([DIFFERENT], "(changed by GPU101)"),
    ),
    "a list of objects in JSON": (
        *("a.json", a_json(a_list(old())), a_json(a_list(new()))),
        *([EQUAL], ""),
    ),
    "an amount in such JSON": (
        *("a.json", a_json(a_list(new())), a_json(a_list(new().replace("gpu: 1", "gpu: 4")))),
        *([DIFFERENT], "(changed by no rule)"),
    ),
    "a list of which one item is no object": (
        *("a.yaml", a_list(old(), "a: 1"), a_list(new(), "a: 1")),
        *([NOT_PROVABLE], NO_KIND),
    ),
    "a list of objects without a version": (
        *("a.yaml", a_list(new().replace("apiVersion: v1\n", "")), a_list("kind: Pod\n")),
        *([NOT_PROVABLE], NO_KIND),
    ),
    "tasks with an amount that changes": (
        *("a.yml", TASK, TASK.replace("gpu: 1", "gpu: 3")),
        *([NOT_PROVABLE], NO_KIND),
    ),
    "tasks that are migrated": ("a.yml", TASK, CURRENT_TASK, [NOT_PROVABLE], NO_KIND),
    "legacy tasks that stay": ("a.yml", TASK, TASK, [NOT_PROVABLE], NO_KIND),
    "current tasks that stay": ("a.yml", CURRENT_TASK, CURRENT_TASK, [], ""),
    "current tasks that change": (
        *("a.yml", CURRENT_TASK, CURRENT_TASK.replace("gpu: 1", "gpu: 2")),
        *([NOT_PROVABLE], NO_KIND),
    ),
    "other tasks that change": (
        *("a.yml", IMAGE, IMAGE.replace("NAME", "ls")),
        *([NOT_PROVABLE], NO_KIND),
    ),
    "a list as the second document": (
        *("a.yaml", f"{old()}---\n{TASK}", f"{new()}---\n{TASK}"),
        *([NOT_PROVABLE, EQUAL], NO_KIND),
    ),
    "a list beside what is migrated, and stays": (
        *("a.yaml", f"{old()}---\n{CURRENT_TASK}", f"{new()}---\n{CURRENT_TASK}"),
        *([EQUAL], ""),
    ),
    "a map beside what is migrated, and stays": (
        *("a.yaml", f"{old()}---\n{KINDLESS}", f"{new()}---\n{KINDLESS}"),
        *([EQUAL], ""),
    ),
    "a scalar": ("a.yaml", f"'{KEY}: 1'\n", f"'{KEY}: 4'\n", [NOT_PROVABLE], NO_KIND),
    "a legacy scalar that stays": ("a.yaml", f"{KEY}\n", f"{KEY}\n", [NOT_PROVABLE], NO_KIND),
    "a list that becomes an object": ("a.yaml", TASK, new(), [NOT_PROVABLE, DIFFERENT], NO_KIND),
    "nothing in a document": ("a.yaml", f"---\n---\n{old()}", f"# a\n---\n{new()}", [EQUAL], ""),
    "an item of a List without a kind": (
        *("a.yaml", a_list_object(f"resources: {LIMITS}"), a_list_object(f"resources: {LIMITS}")),
        *([NOT_PROVABLE], NO_KIND),
    ),
    "a List with a legacy word of its own": (
        *("a.yaml", a_list_object(old(), NOTED), a_list_object(new(), NOTED)),
        *([NOT_PROVABLE, EQUAL], AROUND),
    ),
    "the comments of a legacy file": (
        *("a.yaml", f"# {KEY}: 1\n{old()}# {KEY}: 2\n", f"# {KEY}: 1\n{new()}# {KEY}: 3\n"),
        *([EQUAL], ""),
    ),
    "no YAML beside a document without a kind": (
        *("a.yaml", f"a: [\n---\n{KINDLESS}", f"a: [\n---\n{KINDLESS}"),
        *([], ""),
    ),
    "no YAML that changes, beside a document that stays": (
        *("a.yaml", f"a: [\n---\n{KINDLESS}", f"a: [1\n---\n{KINDLESS}"),
        *([NOT_PROVABLE], "is not YAML"),
    ),
    "a tag of a site generator": (
        *("a.md", highlighted(old()), highlighted(new())),
        *([NOT_PROVABLE], BLOCK),
    ),
    "such a tag beside a block that is compared": (
        *("a.md", fenced(old()) + highlighted(old()), fenced(new()) + highlighted(old())),
        *([NOT_PROVABLE, EQUAL], BLOCK),
    ),
    "indented code": ("a.md", indented(old()), indented(new()), [NOT_PROVABLE], BLOCK),
    "a fence in a tab": (
        *("a.md", indented(fenced(old()), '=== "A"\n\n'), indented(fenced(new()), '=== "A"\n\n')),
        *([NOT_PROVABLE], BLOCK),
    ),
    "pre of HTML": (
        *("a.md", f"<pre>\n{old()}</pre>\n", f"<pre>\n{old()}</pre>\n"),
        *([NOT_PROVABLE], BLOCK),
    ),
    "MDX": (
        *("a.mdx", f"<Code>{{`\n{old()}`}}</Code>\n", f"<Code>{{`\n{new()}`}}</Code>\n"),
        *([NOT_PROVABLE], BLOCK),
    ),
    "front matter": (
        *("a.md", f"---\nx: {LIMITS}\n---\n", f"---\nx: {LIMITS}\n---\n"),
        *([NOT_PROVABLE], BLOCK),
    ),
    **{
        f"{name} that changes": ("a.md", form(BLOCK_STYLE), form(CHANGED), [NOT_PROVABLE], BLOCK)
        for name, form in HIDDEN.items()
    },
    **{
        f"{name} that is taken out": ("a.md", form(BLOCK_STYLE), "# a\n", [NOT_PROVABLE], BLOCK)
        for name, form in HIDDEN.items()
    },
    "a driver in indented code that changes": (
        *("a.md", indented(DRIVER), indented(DRIVER.replace("375", "384"))),
        *([NOT_PROVABLE], BLOCK),
    ),
    "a key in prose that changes": (
        *("a.rst", f"::\n\n  {KEY}: 2\n", f"::\n\n  {KEY.replace('alpha', 'beta')}: 3\n"),
        *([NOT_PROVABLE], "it is no manifest"),
    ),
    "prose with the legacy name": (
        *("a.md", f"{fenced(old())}It was `{KEY}`.\n", f"{fenced(new())}It was `{KEY}` once.\n"),
        *([EQUAL], ""),
    ),
    "other indented code that changes": ("a.md", indented(new()), indented("x: 1"), [], ""),
}


@pytest.mark.parametrize(("name", "was", "now", "results", "why"), TABLE.values(), ids=TABLE)
def test_what_is_left_out(name: str, was: str, now: str, results: list[Result], why: str) -> None:
    found = of_files(name, was.encode(), now.encode())
    assert sorted(each.result for each in found) == sorted(results)
    assert why in " ".join(each.why for each in found)


@pytest.mark.parametrize(("name", "was", "now"), [each[:3] for each in TABLE.values()], ids=TABLE)
def test_what_scan_finds_is_equal_to_nothing_that_stays(name: str, was: str, now: str) -> None:
    """No file with something to migrate is equal to itself, and none has nothing to compare."""
    for text in (was, now):
        found = migrate_text(Source.of(name, text.encode()), Plan()).located
        is_legacy = any(each.status in {Status.FIXABLE, Status.MANUAL} for each in found)
        results = {each.result for each in of_files(name, text.encode(), text.encode())}
        assert is_legacy == bool(results - {EQUAL})
