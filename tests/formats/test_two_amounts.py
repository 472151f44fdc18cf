"""Two amounts of a container are compared only where both are known, or are the same text.

Otherwise the container stays as it is, and its author writes the larger amount: a run must never
give it fewer GPUs than the webhook would give the rendered pod.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from webhook.core.settings import Settings
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from webhook.files.results import FileResult

OLD, OTHER = "alpha.kubernetes.io/nvidia-gpu", "example.com/old-gpu"
NEW, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
PLAN = Plan(Settings(scope="all-legacy", legacy_resources=(OLD, OTHER)))

# How a file says that an amount is inserted later: x and y are two such texts.
ACTIONS = {
    "Helm": ("c/templates/x.yaml", "{{ .Values.x }}", "{{ .Values.y }}"),
    "Helm in quotes": ("c/templates/x.yaml", '"{{ .Values.x }}"', '"{{ .Values.y }}"'),
    "Helm with a default": ("c/templates/x.yaml", "{{ .x | default 1 }}", "{{ .x | default 2 }}"),
    "Jinja": ("x.yaml.j2", "{{ x }}", "{{ y }}"),
}
TEXTS = {
    "Helm in part": ("c/templates/x.yaml", "{{ .Values.x }}0", "{{ .Values.y }}0"),
    "a variable of kustomize": ("x.yaml", "$(X)", "$(Y)"),
    "a variable of envsubst": ("x.yaml", "${X}", "${Y}"),
    "a word": ("x.yaml", "__X__", "__Y__"),
    "a name in angle brackets": ("x.yaml", "<x>", "<y>"),
    "an empty text": ("x.yaml", "''", "two"),
    "an amount below 0": ("x.yaml", "-1", "-2"),
}
Written = tuple[str, str, str]
Resources = dict[str, dict[str, str]]


def pod(*containers: Resources) -> str:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
    tolerated = (f"{{key: {each}, operator: Exists, effect: NoSchedule}}" for each in (NEW, SLICE))
    text += f"  tolerations: [{', '.join(tolerated)}]\n  containers:\n"
    for number, resources in enumerate(containers):
        text += f"  - name: c{number}\n    image: i\n    resources:\n"
        for section, amounts in resources.items():
            text += f"      {section}:\n"
            text += "".join(f"        {name}: {amount}\n" for name, amount in amounts.items())
    return text


def filled(resources: Resources, x: str, y: str) -> Resources:
    """The resources with these texts for x and y."""
    texts = {"x": x, "y": y}
    return {
        section: {name: texts.get(each, each) for name, each in amounts.items()}
        for section, amounts in resources.items()
    }


def migrated(path: str, text: str, plan: Plan = PLAN) -> FileResult:
    return migrate_text(Source.of_text(path, text), plan)


def manual(result: FileResult) -> list[str]:
    return [f"{each.code} {each.message}" for each in result.located if each.status == "manual"]


UNCLEAR: dict[str, Resources] = {
    "legacy beside a current number": {"limits": {OLD: "x", NEW: "1"}},
    "a legacy number beside the current name": {"limits": {OLD: "2", NEW: "x"}},
    "the current name comes first": {"limits": {NEW: "x", OLD: "2"}},
    "two texts": {"limits": {OLD: "x", NEW: "y"}},
    "a limit and another request": {"limits": {OLD: "x"}, "requests": {OLD: "y"}},
    "a limit and a number": {"limits": {OLD: "x"}, "requests": {OLD: "2"}},
    "a number and a request": {"limits": {OLD: "2"}, "requests": {OLD: "x"}},
    "the current name in requests": {"limits": {OLD: "x"}, "requests": {NEW: "1"}},
    "the legacy name in requests": {"limits": {NEW: "x"}, "requests": {OLD: "1"}},
    "both names, one request differs": {
        "limits": {OLD: "1", NEW: "1"},
        "requests": {OLD: "1", NEW: "x"},
    },
    "two legacy names": {"limits": {OLD: "x", OTHER: "2"}},
    "two legacy names, the second later": {"limits": {OLD: "2", OTHER: "x"}},
    "two legacy names beside 0": {"limits": {OLD: "x", OTHER: "2", NEW: "0"}},
    "a slice that may be 0": {"limits": {OLD: "1", SLICE: "x"}},
}


@pytest.mark.parametrize("resources", UNCLEAR.values(), ids=UNCLEAR)
@pytest.mark.parametrize("way", (ACTIONS | TEXTS).values(), ids=ACTIONS | TEXTS)
def test_the_larger_amount_is_not_known(way: Written, resources: Resources) -> None:
    path, *texts = way
    text = pod(filled(resources, *texts))
    result = migrated(path, text)
    assert result.new_text is None
    said = manual(result)
    assert any(each.startswith("GPU101 container c0 requests ") for each in said)


@pytest.mark.parametrize("resources", UNCLEAR.values(), ids=UNCLEAR)
@pytest.mark.parametrize("path", ["x.md", "c/values.yaml", "x.sh"])
def test_nor_is_it_in_other_files(path: str, resources: Resources) -> None:
    text = pod(filled(resources, "$X", "$Y"))
    if path == "x.md":
        text = f"# A\n\n```yaml\n{text}```\n"
    elif path == "x.sh":
        text = f"#!/bin/sh\nkubectl apply -f - <<EOF\n{text}EOF\n"
    plan = replace(PLAN, is_values=path.endswith("values.yaml"))
    result = migrated(path, text, plan)
    assert result.new_text is None
    assert any(each.startswith("GPU101 ") for each in manual(result))


COMPARED: dict[str, tuple[Resources, Resources]] = {
    "one amount": ({"limits": {OLD: "x"}}, {"limits": {NEW: "x"}}),
    "the same request": (
        {"limits": {OLD: "x"}, "requests": {OLD: "x"}},
        {"limits": {NEW: "x"}, "requests": {NEW: "x"}},
    ),
    "a request alone": (
        {"requests": {OLD: "x"}},
        {"requests": {NEW: "x"}, "limits": {NEW: "x"}},
    ),
    "the same under both names": ({"limits": {OLD: "x", NEW: "x"}}, {"limits": {NEW: "x"}}),
    "the same under two legacy names": ({"limits": {OLD: "x", OTHER: "x"}}, {"limits": {NEW: "x"}}),
    "beside 0": ({"limits": {OLD: "x", NEW: "0"}}, {"limits": {NEW: "x"}}),
    "a request of 0": (
        {"limits": {OLD: "x"}, "requests": {OLD: "0"}},
        {"limits": {NEW: "x"}, "requests": {NEW: "x"}},
    ),
    "other resources differ": (
        {"limits": {OLD: "x", "cpu": "y"}, "requests": {OLD: "x", "cpu": "1"}},
        {"limits": {NEW: "x", "cpu": "y"}, "requests": {NEW: "x", "cpu": "1"}},
    ),
    "a legacy 0 stays": ({"limits": {OLD: "0", NEW: "x"}}, {"limits": {OLD: "0", NEW: "x"}}),
    "a legacy 0 beside two amounts of today": (
        {"limits": {OLD: "0", NEW: "x"}, "requests": {NEW: "y"}},
        {"limits": {OLD: "0", NEW: "x"}, "requests": {NEW: "y"}},
    ),
    "numbers": ({"limits": {OLD: "2", NEW: "1"}}, {"limits": {NEW: "2"}}),
}


@pytest.mark.parametrize(("before", "after"), COMPARED.values(), ids=COMPARED)
@pytest.mark.parametrize("way", ACTIONS.values(), ids=ACTIONS)
def test_the_larger_amount_is_known(way: Written, before: Resources, after: Resources) -> None:
    path, *texts = way
    result = migrated(path, pod(filled(before, *texts)))
    assert (result.new_text or result.text) == pod(filled(after, *texts))
    assert manual(result) == []


HELM, JINJA = "c/templates/x.yaml", "x.yaml.j2"
FORMS = {
    "piped, and with the value as an argument": (
        HELM,
        "{{ .x | default 1 }}",
        "{{ default 1 .x }}",
    ),
    "with blanks, and in quotes": (HELM, "{{.x|default 1}}", '"{{- .x | default 1 | quote -}}"'),
    "in parentheses": (HELM, "{{ (default 1 .x) | int }}", "{{ default 1 (.x) | int64 }}"),
    "quotes in front": (HELM, "{{ quote .x }}", "{{ .x }}"),
    "in Jinja": (JINJA, "{{ x | default(1) | int }}", "{{ x|default(1) }}"),
    "in Jinja as an argument": (JINJA, "{{ int(x) }}", "{{ x }}"),
    "what is not read": (JINJA, "{{ x[0] | int }}", "{{x[0]}}"),
}
OTHERS = {
    "another default": (HELM, "{{ .x | default 1 }}", "{{ default 2 .x }}"),
    "another order": (HELM, "{{ default .y .x }}", "{{ .y | default .x }}"),
    "a function": (HELM, "{{ .x | add 1 }}", "{{ .x | default 1 }}"),
    "a difference": (JINJA, "{{ x-1 }}", "{{ x1 }}"),
    "a difference with blanks": (JINJA, "{{ x - 1 }}", "{{ x1 }}"),
    "another item": (JINJA, "{{ x[0] }}", "{{ x[1] }}"),
}


@pytest.mark.parametrize("way", FORMS.values(), ids=FORMS)
def test_the_form_of_an_action_makes_no_other_amount(way: Written) -> None:
    path, *texts = way
    before = pod(filled({"limits": {OLD: "x"}, "requests": {OLD: "y"}}, *texts))
    result = migrated(path, before)
    assert result.new_text == before.replace(OLD, NEW)
    assert manual(result) == []


@pytest.mark.parametrize("way", OTHERS.values(), ids=OTHERS)
def test_actions_that_look_alike_may_write_other_amounts(way: Written) -> None:
    path, *texts = way
    result = migrated(path, pod(filled({"limits": {OLD: "x"}, "requests": {OLD: "y"}}, *texts)))
    assert result.new_text is None
    assert any(OLD in each for each in manual(result))


def test_what_it_says() -> None:
    (said,) = manual(
        migrated("c/templates/x.yaml", pod({"limits": {OLD: "{{ .Values.x }}", NEW: "1"}}))
    )
    assert said == (
        f"GPU101 container c0 requests {{{{ .Values.x }}}} {OLD} beside 1 {NEW}, and which one is "
        f"larger is not known: write only {NEW}, with the larger amount"
    )
    (said,) = manual(migrated("x.yaml", pod({"limits": {OLD: "$(N)", NEW: "2"}})))
    assert said == (
        f"GPU101 container c0 requests '$(N)' {OLD}, which is no amount of GPUs: correct it"
    )


LABEL = "  nodeSelector: {alpha.kubernetes.io/nvidia-gpu-name: Tesla-K80}\n"


@pytest.mark.parametrize("way", (ACTIONS | TEXTS).values(), ids=ACTIONS | TEXTS)
def test_all_of_the_pod_waits(way: Written) -> None:
    """The webhook repairs the whole rendered pod, or none of it where the legacy amount is 0."""
    path, x, _ = way
    unclear, other = {"limits": {OLD: x, NEW: "1"}}, {"limits": {OLD: "2"}}
    for containers in ((unclear, other), (other, unclear)):
        text = pod(*containers) + LABEL
        result = migrated(path, text)
        assert result.new_text is None
        waiting = [each for each in manual(result) if "GPU101 of the same pod" in each]
        assert {each[:6] for each in waiting} == {"GPU101", "GPU105"}
        rest = migrated(path, f"{text}---\n{pod(other)}{LABEL}")
        assert rest.new_text is not None
        assert rest.new_text.startswith(text)
        assert OLD not in rest.new_text[len(text) :]


BETWEEN = {
    "blocks with another subject": "{{- with .Values.a }}\nX: {{ .n }}\n{{- end }}\n"
    "{{- with .Values.b }}\nY: {{ .n }}\n{{- end }}\n",
    "a loop": "{{- range .Values.all }}\nX: {{ .n }}\n{{- end }}\nY: {{ .n }}\n",
    "an assignment": "X: {{ $n }}\n{{- $n = 2 }}\nY: {{ $n }}\n",
    "a field that is set": "X: {{ .Values.n }}\n"
    '{{- $_ := set .Values "n" 2 }}\nY: {{ .Values.n }}\n',
    "a statement of Jinja": "X: {{ n }}\n{% set n = 2 %}\nY: {{ n }}\n",
}


@pytest.mark.parametrize("limits", BETWEEN.values(), ids=BETWEEN)
def test_the_same_text_may_have_another_value(limits: str) -> None:
    lines = limits.replace("X:", f"        {OLD}:").replace("Y:", f"        {NEW}:")
    text = pod({"limits": {}}) + lines
    result = migrated("x.yaml.j2" if "{%" in limits else "c/templates/x.yaml", text)
    assert result.new_text is None
    assert any(OLD in each for each in manual(result))


def test_one_block_has_one_subject() -> None:
    both = pod({"limits": {OLD: "{{ .n }}"}, "requests": {OLD: "{{ .n }}"}})
    start = both.index("      limits:")
    text = f"{both[:start]}{{{{- with .Values.gpu }}}}\n{both[start:]}{{{{- end }}}}\n"
    result = migrated("c/templates/x.yaml", text)
    assert result.new_text == text.replace(OLD, NEW)
    assert [each for each in result.located if each.status is not Status.FIXABLE] == []
