"""The generated CEL, as text: what it names and how it guards.

A real API server compiles and runs it in tests/cluster.
"""

from __future__ import annotations

import pytest

from webhook.core.match_conditions import match_conditions, missed_names
from webhook.core.settings import Models, Settings


def concerns_gpus(settings: Settings) -> str:
    conditions = {each["name"]: each["expression"] for each in match_conditions(settings)}
    return conditions["concerns-gpus"]


def test_there_are_three_conditions_with_names() -> None:
    assert [each["name"] for each in match_conditions(Settings())] == [
        "is-no-mirror-pod",
        "is-no-windows-pod",
        "concerns-gpus",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '"alpha.kubernetes.io/nvidia-gpu"',
        '"nvidia.com/gpu"',
        '"nvidia.com/gpu.shared"',
        'k.startsWith("nvidia.com/mig-")',
        '"alpha.kubernetes.io/nvidia-gpu-name" in object.spec.nodeSelector',
        '["scheduler.alpha.kubernetes.io/affinity"].contains("alpha.kubernetes.io/nvidia-gpu-name")',
        'e.key == "alpha.kubernetes.io/nvidia-gpu-name"',
    ],
)
def test_every_way_to_name_a_gpu_is_there(text: str) -> None:
    assert text in concerns_gpus(Settings())


@pytest.mark.parametrize(
    "member",
    [
        "object.spec.initContainers",
        "c.resources",
        "c.resources.limits",
        "c.resources.requests",
        "object.spec.nodeSelector",
        "object.metadata.annotations",
        "object.spec.affinity",
        "object.spec.affinity.nodeAffinity",
        "t.matchExpressions",
        "p.preference.matchExpressions",
    ],
)
def test_every_member_that_may_be_missing_is_asked_for_first(member: str) -> None:
    expression = concerns_gpus(Settings())
    guard = expression.index(f"has({member})")
    assert guard < expression.replace(f"has({member})", "#" * len(f"has({member})")).index(member)


@pytest.mark.parametrize(
    "expression", [each["expression"] for each in match_conditions(Settings())]
)
def test_brackets_and_quotes_are_closed(expression: str) -> None:
    assert expression.count("(") == expression.count(")")
    assert expression.count("[") == expression.count("]")
    assert expression.count('"') % 2 == 0


def test_names_of_the_settings_take_the_place_of_the_default_ones() -> None:
    settings = Settings(
        legacy_resources=("old/gpu",),
        gpu_resource="new/gpu",
        gpu_resources=("new/*", "new/gpu"),
        models=Models("old/model"),
    )
    expression = concerns_gpus(settings)
    assert 'k in ["new/gpu", "old/gpu"] || k.startsWith("new/")' in expression
    assert '"old/model" in object.spec.nodeSelector' in expression
    assert "nvidia" not in expression


def test_a_name_cannot_break_out_of_its_quotes() -> None:
    settings = Settings(legacy_resources=('a"] || true || k in ["b',))
    assert 'k in ["a\\"] || true || k in [\\"b", "nvidia.com/gpu"' in concerns_gpus(settings)


@pytest.mark.parametrize(
    ("settings", "missed"),
    [
        pytest.param(Settings(), [], id="the default settings miss nothing"),
        pytest.param(
            Settings(legacy_resources=("alpha.kubernetes.io/nvidia-gpu", "z/gpu", "a/gpu")),
            ["a/gpu", "z/gpu"],
            id="further legacy names, sorted",
        ),
        pytest.param(Settings(legacy_resources=()), [], id="fewer names miss nothing"),
        pytest.param(Settings(gpu_resource="amd.com/gpu"), ["amd.com/gpu"], id="another target"),
        pytest.param(
            Settings(gpu_resource="nvidia.com/mig-1g.5gb"), [], id="a target that a pattern covers"
        ),
        pytest.param(
            Settings(gpu_resources=("nvidia.com/mig-1g.5gb", "nvidia.com/*", "nvidia.com/mig-*")),
            ["nvidia.com/*"],
            id="a wider pattern",
        ),
        pytest.param(
            Settings(gpu_resources=("nvidia.com/mig-1*",)),
            ["nvidia.com/mig-1*"],
            id="a narrower pattern is named too, to be on the safe side",
        ),
        pytest.param(Settings(models=Models("old/model")), ["old/model"], id="another label"),
        pytest.param(
            Settings(gpu_resource="x/gpu", gpu_resources=("x/gpu",)), ["x/gpu"], id="named once"
        ),
    ],
)
def test_configured_names_that_the_shipped_conditions_would_miss(
    settings: Settings, missed: list[str]
) -> None:
    assert missed_names(settings) == missed
