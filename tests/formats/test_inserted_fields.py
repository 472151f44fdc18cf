"""A text may stand for a whole field: nothing is written into it, and the pod stays whole."""

from __future__ import annotations

import pytest

from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
TOLERATIONS = 'scheduler.alpha.kubernetes.io/tolerations: \'[{"key":"d","operator":"Exists"}]\''
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AFFINITY = (
    f'scheduler.alpha.kubernetes.io/affinity: \'{{"nodeAffinity":{{"{REQUIRED}":'
    '{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}}}'
    "'"
)
SIGNS = ("[[ x ]]", "${X}", "$X", "'{{ x }}'", "<%= x %>", "(( x ))", "__X__", "'@X@'", "'#{x}'")


def pod(field: str, annotation: str = "x: y", amount: str = "1") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    {annotation}\n"
        "spec:\n  containers:\n  - name: c\n    image: x\n"
        f"    resources: {{limits: {{{OLD}: {amount}}}}}\n  {field}\n"
    )


@pytest.mark.parametrize("sign", SIGNS)
def test_no_toleration_is_added_to_a_text(sign: str) -> None:
    text = pod(f"tolerations: {sign}")
    made = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert made.new_text == text.replace(OLD, NEW)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(
    ("field", "annotation", "code"),
    [
        ("tolerations: {}", TOLERATIONS, "GPU107"),
        ("affinity: {}", AFFINITY, "GPU106"),
        ("affinity:\n    nodeAffinity: {}", AFFINITY, "GPU106"),
        (f"affinity:\n    nodeAffinity:\n      {REQUIRED}: {{}}", AFFINITY, "GPU106"),
    ],
    ids=["tolerations", "affinity", "node affinity", "required terms"],
)
def test_amounts_wait_for_an_annotation_that_a_text_keeps(
    sign: str, field: str, annotation: str, code: str
) -> None:
    text = pod(field.format(sign), annotation)
    made = migrate_text(Source.of_text("x.yaml", text), Plan())
    assert made.new_text in {None, text}
    said = {each.code: each.message for each in made.located if each.status is Status.MANUAL}
    assert f"{code} of the same pod needs manual work (line 6)" in said["GPU101"]
    assert "has another type" in said[code]
