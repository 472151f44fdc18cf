"""Documents: what is a manifest in them is migrated, and prose is never touched."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats import markdown
from webhook.formats.fences import fences
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from webhook.files.results import FileResult

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
POD = textwrap.dedent(f"""\
    apiVersion: v1
    kind: Pod
    metadata:
      name: x
    spec:
      tolerations:
      - {{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}
      containers:
      - name: main
        image: registry.example/main:1
        resources:
          limits:
            {OLD}: 1
    """)
PART = f"resources:\n  limits:\n    {OLD}: 1\n"


def migrated(text: str) -> FileResult:
    return markdown.migrate(Source.of_text("README.md", text), Plan())


def in_list(text: str, by: str = "   ") -> str:
    return textwrap.indent(text, by)


RENAMED = {
    "tagged yaml": f"```yaml\n{POD}```\n",
    "tagged yml, with a blank": f"``` yml\n{POD}```\n",
    "without a tag": f"```\n{POD}```\n",
    "tildes": f"~~~\n{POD}~~~\n",
    "more backticks than three": f"`````yaml\n```\n`````\n````\n{POD}````\n",
    "in a list": f"1. This:\n\n{in_list(f'```yaml{chr(10)}{POD}```')}\n",
    "in a list, less indented at its end": f"-   x\n\n    ```yaml\n{in_list(POD, '    ')}  ```\n",
    "never closed": f"```yaml\n{POD}",
    "attributes of pandoc": f"``` {{.yaml}}\n{POD}```\n",
    "inline code in three backticks above": f"Do:  ```kubectl apply```\n\n```yaml\n{POD}```\n",
    "inline code in three backticks on its line": f"```kubectl apply```\n```yaml\n{POD}```\n",
    "a tag of Liquid behind it": f"```sh{{% raw %}}\ncat <<EOF\n{POD}EOF\n```\n{{% endraw %}}\n",
    "two documents": f"```yaml\n{POD}---\n{POD}```\n",
    "a part of a manifest": f"```yaml\n{PART}```\n",
    "a part between ellipses": f"```yaml\n[...]\n{PART}[...]\n```\n",
    "dots": f"```yaml\n...\n{PART}...\n```\n",
    "a placeholder": f"```yaml\n{POD.replace('name: x', 'name: <your-name>')}```\n",
    "a placeholder for the amount": f"```yaml\n{POD.replace(': 1', ': <n>  # how many')}```\n",
    "a tag of Liquid": f"```yaml\n{POD.replace('name: x', 'name: {{ site.name }}')}```\n",
    "JSON": '```json\n{"resources": {"limits": {"' + OLD + '": 1}}}\n```\n',
    "a here-document": f"```sh\ncat <<EOF | kubectl apply -f -\n{POD}EOF\nkubectl get pods\n```\n",
    "a quoted here-document": f"```console\n$ kubectl apply -f - <<'EOF'\n{POD}EOF\n```\n",
    "a here-document with a variable": (
        "```bash\ncat <<EOF >x.yaml\n"
        f"{POD.replace(': 1', ': $N').replace(': x', ': ${NAME}')}EOF\n```\n"
    ),
    "a here-document that has no tabs to lose": f"```bash\ncat <<-EOF\n{POD}EOF\n```\n",
    "Windows line ends": f"# x\n\n```yaml\n{POD}```\n".replace("\n", "\r\n"),
}


@pytest.mark.parametrize("text", RENAMED.values(), ids=RENAMED)
def test_the_name_is_renamed_and_nothing_else_changes(text: str) -> None:
    result = migrated(f"# A pod\n\n{text}\nThe end.\n")
    assert result.new_text == result.text.replace(OLD, NEW)


LEFT = {
    "prose": f"Ask for `{OLD}`.\n",
    "what a command prints": f"```\nCapacity:\n {OLD}:\t2\n cpu:\t12\n```\n",
    "a label": f"```sh\nkubectl label nodes n {OLD}-name=K80\n```\n",
    "a flag": f"```sh\nkubelet --node-labels={OLD}-name=K80\n```\n",
    "a gate": '```ini\nKUBELET_ARGS="--feature-gates=Accelerators=true"\n```\n',
    "a program": f'```go\nconst gpu = "{OLD}"\n```\n',
    "a patch in a command": f'```sh\noc patch dc w -p \'{{"limits":{{"{OLD}":"1"}}}}\'\n```\n',
    "the data of an operator": f"```yaml\naccelerators:\n  {OLD}:\n    volumes: []\n```\n",
    "a comment": f"```yaml\n# {OLD}: 1\na: b\n```\n",
    "an HTML comment": f"<!-- {OLD}: 1 -->\n",
    "indented code": f"    limits:\n      {OLD}: 1\n",
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_it_is_told_and_not_edited(text: str) -> None:
    result = migrated(f"# x\n\n{text}")
    assert result.new_text is None
    assert result.located
    for each in result.located:
        assert each.place.line > 2
        assert any(word in each.message for word in ("write", "select", "delete", "leave"))


QUOTED = {
    "a quotation": in_list(f"```yaml\n{POD}```\n", "> "),
    "without blanks": in_list(f"```yaml\n{POD}```\n", ">"),
    "a quotation in a list": f"- > ```yaml\n{in_list(POD, '  > ')}  > ```\n",
    "a list in a quotation": f"> 1. x\n>\n>    ~~~yaml\n{in_list(POD, '>    ')}>    ~~~\n",
    "a callout, that ends before its fence": f"> [!NOTE]\n> ```\n{in_list(POD, '> ')}",
    "a script": f"> ```sh\n> cat <<EOF | kubectl apply -f -\n{in_list(POD, '> ')}> EOF\n> ```\n",
}


@pytest.mark.parametrize("text", QUOTED.values(), ids=QUOTED)
def test_a_block_in_a_quotation_is_manual_and_said_to_be_skipped(text: str) -> None:
    result = migrated(f"# x\n\n{text}")
    assert result.new_text is None
    line = 1 + f"# x\n\n{text}".split(OLD)[0].count("\n")
    told = [each for each in result.located if each.place.line == line]
    assert [(each.code, each.status) for each in told] == [("GPU101", Status.MANUAL)]
    assert "begins with >" in told[0].message
    assert ["begins with >" in each.reason for each in result.skipped] == [True]


def test_of_a_pod_in_a_quotation_that_opted_out_nothing_is_said() -> None:
    pod = POD.replace("  name: x\n", '  name: x\n  labels: {gpu-webhook.dev/ignore: "true"}\n')
    result = migrated(in_list(f"```yaml\n{pod}```\n", "> "))
    assert (result.new_text, result.remarks) == (None, 0)


BEGIN_WITH_TABS = {
    "a here-document without its tabs": f"```bash\ncat <<-EOF\n{in_list(POD, chr(9))}\tEOF\n```\n",
    "a list that is indented by tabs": f"-\tx\n\n\t```yaml\n{in_list(POD, chr(9))}\t```\n",
}


@pytest.mark.parametrize("text", BEGIN_WITH_TABS.values(), ids=BEGIN_WITH_TABS)
def test_lines_that_begin_with_tabs_are_no_yaml_so_the_name_alone_is_renamed(text: str) -> None:
    result = migrated(text)
    assert result.new_text == text.replace(OLD, NEW)
    assert ["is not YAML" in each.reason for each in result.skipped] == [True]


MODEL = f"{OLD}-name"
VOLUMES = "volumes:\n- name: lib\n  hostPath: {path: /usr/lib/nvidia-384}\n"
SELECTOR = f"spec:\n  nodeSelector:\n    {MODEL}: Tesla-K80\n"
# A block that no rule can read as a pod, and whether what is in it is manual.
PARTS = {
    "a selector": (f"```yaml\n{SELECTOR}```\n", True),
    "a selector without a tag": (f"```\n{SELECTOR}```\n", True),
    "a selector with a variable": (f"```yaml\n{SELECTOR}```\n".replace("Tesla-K80", "$M"), True),
    "volumes": (f"```yaml\n{VOLUMES}```\n", True),
    "volumes without a tag": (f"```\n{VOLUMES}```\n", True),
    "volumes in a list": (f"1. x\n\n{in_list(f'```yaml{chr(10)}{VOLUMES}```')}\n", True),
    "a term of an affinity": (f"```yaml\n- key: {MODEL}\n  operator: Exists\n```\n", True),
    "JSON": (f'```json\n{{"key": "{MODEL}"}}\n```\n', True),
    "an amount alone": (f"```yaml\n{OLD}: 1\n```\n", True),
    "an amount without a tag, which a command may print": (f"```\n{OLD}: 1\n```\n", False),
    "what is no YAML, without a tag": (f"```\nx: y: z\n{MODEL}: Tesla-K80\n```\n", False),
    "a sentence, without a tag": ("```\nThe driver is in /usr/lib/nvidia-384.\n```\n", False),
    "a sentence of a value": ("```yaml\nx: see /usr/lib/nvidia-384\n```\n", False),
    "a comment in a manifest": ("```yaml\n# path: /usr/lib/nvidia-384\na: b\n```\n", False),
    "a difference": (f"```diff\n-  {MODEL}: Tesla-K80\n```\n", False),
    "what a shell prints": (f"```sh\n{MODEL}: Tesla-K80\n```\n", False),
    "prose behind a manifest": (f"```yaml\na: {NEW}\nlimits: 1\n```\nIt is {MODEL}: x\n", False),
}


@pytest.mark.parametrize(("text", "is_manual"), PARTS.values(), ids=PARTS)
def test_what_stays_in_a_part_of_a_manifest_is_manual(text: str, *, is_manual: bool) -> None:
    result = migrated(f"Prose with {OLD}.\n\n{text}")
    assert result.new_text is None
    first, *others = result.located
    assert first.status is Status.NOTICE
    assert {each.status is Status.MANUAL for each in others} == {is_manual}


BLOCKS = {
    "a part waits for another part": (f"```yaml\n{VOLUMES}```\n```yaml\n{PART}```\n", False),
    "a part waits for one without a tag": (f"```yaml\n{PART}```\n```\n{SELECTOR}```\n", False),
    "a whole object does not wait": (f"```yaml\n{VOLUMES}```\n```yaml\n{POD}```\n", True),
    "a part does not wait for prose": (f"/usr/lib/nvidia-384\n```yaml\n{PART}```\n", True),
}


@pytest.mark.parametrize(("text", "is_renamed"), BLOCKS.values(), ids=BLOCKS)
def test_amounts_wait_for_other_blocks_as_for_other_documents(
    text: str, *, is_renamed: bool
) -> None:
    result = migrate_text(Source.of_text("README.md", text), Plan())
    assert (result.new_text is not None) is is_renamed


def test_an_annotation_whose_spec_is_not_shown_is_for_a_person() -> None:
    text = "```\nannotations:\n  scheduler.alpha.kubernetes.io/tolerations: '[]'\n```\n"
    result = migrated(text)
    assert result.new_text is None
    assert [(each.status, each.place.line) for each in result.located] == [(Status.MANUAL, 3)]


def test_a_pod_of_today_is_left_as_its_author_has_it() -> None:
    text = "```yaml\n" + POD.replace(OLD, NEW).replace("  tolerations:", "  x:")
    result = migrated(text)
    assert result.new_text is None
    assert {each.status for each in result.located} <= {Status.NOTICE}


def test_what_is_taken_over_keeps_to_the_indent_of_the_list() -> None:
    pod = POD.replace("  name: x\n", (
        "  name: x\n  annotations:\n"
        "    scheduler.alpha.kubernetes.io/tolerations: '[{\"key\":\"a\",\"value\":\"b\"}]'\n"
    ))  # fmt: skip
    result = migrated(f"- x\n\n  ```yaml\n{in_list(pod, '  ')}  ```\n")
    new = POD.replace(OLD, NEW).replace("NoSchedule}\n", "NoSchedule}\n  - {key: a, value: b}\n")
    lines = (result.new_text or "").splitlines()[3:-1]
    assert all(line.startswith("  ") for line in lines)
    assert (
        sorted(line.strip(" -{}") for line in lines)[:3]
        == sorted(line.strip(" -{}") for line in in_list(new, "  ").splitlines())[:3]
    )
    assert "annotations" not in (result.new_text or "")


@pytest.mark.parametrize("unsafe", [False, True], ids=["by default", "with --unsafe"])
def test_a_kind_that_nobody_knows_is_a_matter_of_the_rule_on_data(*, unsafe: bool) -> None:
    """As in a manifest: nobody knows what the kind makes of its members."""
    job = "kind: TrainingJob\nspec:\n  trainer:\n" + textwrap.indent(PART, "    ")
    source = Source.of_text("README.md", f"```yaml\n{job}```\n")
    result = markdown.migrate(source, Plan(unsafe=unsafe))
    new = f"```yaml\n{job}```\n".replace(OLD, NEW)
    assert result.new_text == (new if unsafe else None)
    assert [(each.code, each.status, each.place.line) for each in result.located] == [
        ("GPU132", Status.FIXABLE if unsafe else Status.MANUAL, 7)
    ]


FENCES = {
    "an info string with backticks is none": ("``` a`b\nx\n", []),
    "a closing fence has no info string": ("```\nx\n``` y\nz\n```\n", ["x\n``` y\nz\n"]),
    "a shorter fence closes nothing": ("````\nx\n```\ny\n````\n", ["x\n```\ny\n"]),
    "the other kind closes nothing": ("```\nx\n~~~\n```\n", ["x\n~~~\n"]),
    "empty": ("```\n```\n", [""]),
    "a quotation ends with its last line": ("> ```\n> x\ny\n```\nz\n", ["> x\n", "z\n"]),
    "a mark in a block is no quotation": ("```\n> x\n> ```\n```\n", ["> x\n> ```\n"]),
    "a deeper fence in a quotation closes nothing": ("> ```\n> > ```\n> ```\n", ["> > ```\n"]),
    "behind a bullet": ("- ```\n  x\n  ```\n", ["  x\n"]),
    "indented by four is code": ("    ```\n    x\n    ```\n", []),
    "but not below a bullet": ("-   a\n\n    ```\n    x\n    ```\n", ["    x\n"]),
    "four in a paragraph are its text": ("a\n    ```\nb\n    ```\n", []),
    "in HTML it is text": ("<pre>\n```\nx\n```\n</pre>\n", []),
    "HTML ends with a blank line": ("<details>\n\n```\nx\n```\n</details>\n", ["x\n"]),
    "a list ends with its indent": ("- ```\n  x\n\ny\n```\nz\n", ["  x\n\n", "z\n"]),
    "not closed": ("~~~\nx\n\ny", ["x\n\ny"]),
    "other line ends": ("a\r\n```\r\nx\r\n```\r\nb\r\n", ["x\r\n"]),
    "a form feed ends no line": ("a\x0cb\n```\nx\n```\n", ["x\n"]),
    "a carriage return ends one": ("a\r```\rx\r```\r", ["x\r"]),
}


@pytest.mark.parametrize(("text", "inside"), FENCES.values(), ids=FENCES)
def test_fences(text: str, inside: list[str]) -> None:
    assert [text[fence.start : fence.end] for fence in fences(text)] == inside


PIECES = st.sampled_from(
    [
        *(
            "```\n",
            "```yaml\n",
            "~~~\n",
            "    ```sh\n",
            "cat <<EOF\n",
            "cat <<-'X'\n",
            "EOF\n",
            "X\n",
        ),
        *(
            POD,
            PART,
            in_list(POD),
            "[...]\n",
            "{% raw %}",
            "<x>",
            "> ",
            in_list(POD, "> "),
            in_list(POD, "\t"),
            "> ```yaml\n",
            "cat <<-EOF\n",
            "- ",
            "\r\n",
            "\t",
            "---\n",
        ),
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=14))
def test_whatever_text_comes(pieces: list[str]) -> None:
    text = "".join(pieces)
    result = migrated(text)
    assert result.error == ""
    if result.new_text is None:
        return
    assert migrated(result.new_text).new_text is None
    inside = [(fence.start, fence.end) for fence in fences(text)]
    for fix in (fix for each in result.located for fix in each.fix):
        assert any(start <= fix.start <= fix.end <= end for start, end in inside)
