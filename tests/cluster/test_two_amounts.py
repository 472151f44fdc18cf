"""Charts with two GPU amounts, rendered by helm with many values, before and after `migrate`.

The webhook must make the same pod of both.
"""

from __future__ import annotations

import copy
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster import helm
from tests.engine import run
from tests.formats.test_two_amounts import (
    BETWEEN,
    COMPARED,
    NEW,
    OLD,
    PLAN,
    UNCLEAR,
    filled,
    migrated,
    pod,
)
from webhook.core.rule import Context
from webhook.kube import quantity
from webhook.rules import RULES

if TYPE_CHECKING:
    from pathlib import Path

VALUES = (0, 1, 2, 8)
WAYS = {
    "plain": ("{{ .Values.x }}", "{{ .Values.y }}"),
    "in quotes": ('"{{ .Values.x }}"', '"{{ .Values.y }}"'),
    "with a filter": ("{{ .Values.x | quote }}", "{{ .Values.y | int }}"),
    "the same twice": ("{{ .Values.x }}", "{{ .Values.x | quote }}"),
    "a number": ("{{ .Values.x }}", "1"),
}
IF = "{{- if .Values.y }}\n%s\n{{- else }}\n%s\n{{- end }}"
BRANCHES = {
    "a current amount in a condition": "X: 2\n{{- if .Values.x }}\nY: {{ .Values.x }}\n{{- end }}",
    "a legacy amount in a condition": "Y: 1\n{{- if .Values.x }}\nX: {{ .Values.x }}\n{{- end }}",
    "one name in each branch": IF % ("X: {{ .Values.x }}", "Y: {{ .Values.x }}"),
    "both names in one branch": IF % ("X: {{ .Values.x }}\nY: {{ .Values.x }}", "X: 1"),
    "other amounts in each branch": IF % ("X: {{ .Values.x }}\nY: {{ .Values.y }}", "X: 1"),
    "a number in each branch": "X: {{ if .Values.y }}4{{ else }}1{{ end }}\nY: 2",
    **{name: text for name, text in BETWEEN.items() if "{%" not in text and "$n" not in text},
}


def charts() -> dict[str, str]:
    """Pods by their names; each is a template of one chart."""
    resources = {**UNCLEAR, **{name: before for name, (before, _) in COMPARED.items()}}
    texts = [
        pod(filled(each, *way), {"limits": {OLD: "1"}})
        for each, way in product(resources.values(), WAYS.values())
    ]
    for each in BRANCHES.values():
        lines = each.replace("X:", f"{OLD}:").replace("Y:", f"{NEW}:")
        indented = "".join(f"        {line}\n" for line in lines.strip().splitlines())
        texts.append(pod({"limits": {}}) + indented)
    return {
        f"p{number}": text.replace("name: p}", f"name: p{number}}}")
        for number, text in enumerate(texts)
    }


def as_run(obj: Any) -> Any:
    """What the webhook makes of the object, without amounts of 0, which request nothing."""
    made = copy.deepcopy(obj)
    run(RULES, made, Context(PLAN.settings))
    for each in made["spec"]["containers"]:
        for section in each["resources"].values():
            for name in [name for name in section if quantity.parse(section[name]) == 0]:
                del section[name]
        each["resources"] = {name: given for name, given in each["resources"].items() if given}
    return made


@pytest.mark.slow
def test_the_webhook_makes_the_same_pods_of_a_migrated_chart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = charts()
    new = {name: migrated("c/templates/x.yaml", text).new_text for name, text in before.items()}
    after = {name: text for name, text in new.items() if text is not None}
    assert 0 < len(after) < len(before)
    with capsys.disabled():
        print(f"\n{len(before)} charts with two amounts: {len(after)} edited")  # noqa: T201
    for x, y in product(VALUES, VALUES):
        values = {"x": x, "y": y, "n": x, "a": {"n": x}, "b": {"n": y}, "all": [{"n": x}]}
        was = helm.objects(tmp_path / f"before-{x}-{y}", {n: before[n] for n in after}, "", values)
        now = helm.objects(tmp_path / f"after-{x}-{y}", after, "", values)
        for name in after:
            assert as_run(now[name]) == as_run(was[name]), (values, before[name])
