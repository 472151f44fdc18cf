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
            f"spec:\n  description: |-\n    Words,\n\n    and `{NAME}`.\n  type: boolean\n",
            [Status.NOTICE],
            id="the description of a field: worth knowing",
        ),
        pytest.param(
            f"- description: as {NAME}\n", [Status.NOTICE], id="a description on one line"
        ),
        pytest.param(
            "spec:\n  description: |-\n    jobs of the old `extensions/v1beta1` API\n",
            [Status.NOTICE],
            id="a version in a description, as the CRDs of Kubeflow have one",
        ),
        pytest.param(
            f"description: Words.\nargs:\n  - --resource={NAME}\n",
            [Status.PERSON],
            id="behind a description: a person must look",
        ),
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


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param(f"// as {NAME}", Status.NOTICE, id="a comment"),
        pytest.param(f"x := 1 // not {NAME}", Status.NOTICE, id="a comment behind a statement"),
        pytest.param(
            "\t// a webhook on apps/v1beta1 and extensions/v1beta1", Status.NOTICE, id="a version"
        ),
        pytest.param(f'url := "a // {NAME}"', Status.PERSON, id="slashes in a text"),
        pytest.param(f'const gpu = "{NAME}"', Status.PERSON, id="a name"),
        pytest.param('version := "extensions/v1beta1"', Status.PERSON, id="a version as a value"),
        pytest.param("version := `extensions/v1beta1`", Status.PERSON, id="in other quotes"),
        pytest.param(
            'text := "if a rule says apps/v1beta1, a request to it"',
            Status.NOTICE,
            id="a version in a sentence, as in what is made of comments",
        ),
        pytest.param("apiVersion: extensions/v1beta1", Status.PERSON, id="a manifest in a program"),
    ],
)
def test_what_a_go_program_says(line: str, status: Status) -> None:
    """Vendored packages of Kubernetes speak of old versions, and are as they should be."""
    source = Source.of("a.go", f"package a\n\n{line}\n".encode())
    assert {each.status for each in mentions(source, Plan(), ())} == {status}
