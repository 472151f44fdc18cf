"""What is said of a text where no rule looks."""

from __future__ import annotations

import pytest

from webhook.migration.mentions import mentions
from webhook.migration.results import Plan, Status
from webhook.migration.source import Source

NAME = "alpha.kubernetes.io/nvidia-gpu"


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        pytest.param("a: b\n", [], id="nothing"),
        pytest.param(f"# {NAME}: 1\n", [Status.NOTICE], id="in a comment: worth knowing"),
        pytest.param(f"x: {NAME}\n", [Status.PERSON], id="data: a person must look"),
        pytest.param(
            "kubectl.kubernetes.io/last-applied-configuration: |\n"
            f'  {{"limits":{{"{NAME}":1}}}}\nother: {NAME}\n',
            [Status.PERSON],
            id="what kubectl remembers is written anew by the next apply",
        ),
        pytest.param(
            f'"kubectl.kubernetes.io/last-applied-configuration": "{{\\"{NAME}\\":1}}"\n',
            [],
            id="and so it is in JSON",
        ),
    ],
)
def test_mentions(text: str, statuses: list[Status]) -> None:
    source = Source.of("a.yaml", text.encode())
    assert [each.status for each in mentions(source, Plan(), ())] == statuses
