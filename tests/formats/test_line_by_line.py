"""A text that is no YAML: the name is renamed only where the API server takes the amount then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from collections.abc import Callable

    Around = Callable[[str], tuple[str, str]]

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
LIMIT = f"limits:\n        {OLD}: 2"
REQUEST = f"requests:\n        {OLD}: 2"
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: main
spec:
  containers:
  - name: main
    image: registry.example/main
    resources:
      RESOURCES
"""


def in_config_map(pod: str) -> tuple[str, str]:
    script = f"#!/bin/sh\nkubectl apply -f - <<END\n{pod}END\n"
    lines = "".join(f"    {line}\n" for line in script.splitlines())
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scripts}\ndata:\n  run.sh: |\n"
    return "scripts.yaml", head + lines


def in_pipeline(pod: str) -> tuple[str, str]:
    script = f"kubectl apply -f - <<END\n{pod}END\n"
    lines = "".join(f"    {line}\n" for line in script.splitlines())
    return ".gitlab-ci.yml", f"deploy:\n  script:\n  - |\n{lines}"


def after_tabs(pod: str) -> tuple[str, str]:
    lines = "".join(f"\t{line}\n" for line in pod.splitlines())
    return "run.sh", f"#!/bin/sh\nkubectl apply -f - <<-END\n{lines}\tEND\n"


AROUND = [in_config_map, in_pipeline, after_tabs]
# In each of them a pod that the webhook repairs; the API server would refuse it.
REFUSED = {
    "a request without a limit": REQUEST,
    "a request of another amount": f"{LIMIT}\n      {REQUEST.replace('2', '1')}",
    "a limit of another amount below its request": f"{REQUEST}\n      {LIMIT.replace('2', '4')}",
    "a limit of something else": f"{REQUEST}\n      limits:\n        memory: 1Gi",
    "the limit of another container": (
        f"{LIMIT}\n  - name: other\n    image: registry.example/other\n"
        f"    resources:\n      {REQUEST}"
    ),
}
RENAMED = {
    "a limit": LIMIT,
    "both with the same amount": f"{LIMIT}\n      {REQUEST}",
    "the request first, quoted, with a comment": (
        f"requests:\n        '{OLD}': \"2\"  # all of them\n      {LIMIT}"
    ),
    "a request of something else": f"{LIMIT}\n      requests:\n        memory: 1Gi",
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("resources", REFUSED.values(), ids=REFUSED)
def test_a_request_without_the_same_limit_keeps_its_name(around: Around, resources: str) -> None:
    name, text = around(POD.replace("RESOURCES", resources))
    result = migrate_text(Source.of_text(name, text), Plan())
    new = result.new_text or text
    assert new.count(f"requests:\n{' ' * 8}{NEW}") == 0
    request = next(n for n, line in enumerate(text.splitlines(), 2) if "requests:" in line)
    found = {each.place.line: each for each in result.located}
    assert found[request].status is Status.MANUAL
    assert "a request needs the same limit" in found[request].message
    assert new.count(NEW) == ("other" in resources)  # a container that has a limit alone


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("resources", RENAMED.values(), ids=RENAMED)
def test_what_the_api_server_takes_is_renamed(around: Around, resources: str) -> None:
    name, text = around(POD.replace("RESOURCES", resources))
    result = migrate_text(Source.of_text(name, text), Plan())
    assert result.new_text == text.replace(OLD, NEW)
    assert {each.status for each in result.located} == {Status.FIXABLE}


HEAD = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: scripts}
data:
  run.sh: |
    cat <<END
    apiVersion: v1
    kind: Pod
    spec:
      containers:
      - resources:
"""


@pytest.mark.parametrize(
    ("limit", "request_", "is_renamed"),
    [
        ("{{ .Values.gpus }}", "{{ .Values.gpus }}", True),
        ("{{ .Values.most }}", "{{ .Values.gpus }}", False),
        ("{{ .Values.gpus }}", "2", False),
    ],
)
def test_amounts_of_a_template_are_compared_as_they_are_written(
    limit: str, request_: str, *, is_renamed: bool
) -> None:
    indent = " " * 10
    text = f"{HEAD}{indent}limits:\n{indent}  {OLD}: {limit}\n"
    text += f"{indent}requests:\n{indent}  {OLD}: {request_}\n    END\n"
    result = migrate_text(Source.of_text("x.yaml", text, "helm"), Plan())
    assert result.new_text == (text.replace(OLD, NEW) if is_renamed else None)


def test_a_limit_in_a_branch_is_not_always_beside_the_request() -> None:
    indent = " " * 10
    limit = f"{{{{ if .Values.a }}}}\n{indent}limits:\n{indent}  {OLD}: 2\n{{{{ end }}}}\n"
    text = f"{HEAD}{limit}{indent}requests:\n{indent}  {OLD}: 2\n    END\n"
    assert migrate_text(Source.of_text("x.yaml", text, "helm"), Plan()).new_text is None
