"""`gpu-webhook.dev/ignore: "true"` on a pod or a template: at rest, too, nobody edits that pod."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from webhook.migration.migrate import migrate_text
from webhook.migration.results import Plan, Status
from webhook.migration.source import Source

if TYPE_CHECKING:
    from webhook.migration.results import FileResult

LABEL = 'gpu-webhook.dev/ignore: "true"'
OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
POD = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: x
  labels:
    {LABEL}
  annotations:
    scheduler.alpha.kubernetes.io/tolerations: '[{{"key":"a","operator":"Exists"}}]'
    pod.beta.kubernetes.io/init-containers: '[{{"name":"i","image":"i"}}]'
spec:
  containers:
  - name: c
    image: i
    resources:
      limits:
        {OLD}: 1
"""
DEPLOYMENT = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: x
spec:
  selector:
    matchLabels: {{app: x}}
  template:
    metadata:
      labels:
        app: x
        {LABEL}
    spec:
      containers:
      - name: c
        image: i
        resources:
          limits:
            {OLD}: 1
"""


def listed(text: str) -> str:
    return "- " + textwrap.indent(text, "  ").lstrip()


def templated(text: str) -> str:
    return text.replace("name: x", "name: {{ .Release.Name }}", 1)


PATCH = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: x
spec:
  template:
    metadata:
      labels:
        {LABEL}
    spec:
      containers:
      - name: c
        resources:
          limits:
            {OLD}: 1
"""
OPERATION = f"""\
- op: add
  path: /spec/template/spec/containers/0/resources/limits
  value:
    {OLD}: 1
"""
KUSTOMIZATION = "resources: [x.yaml]\npatches:\n- target: {kind: Deployment}\n  patch: |-\n"

LEFT = {
    "a pod": ("x.yaml", POD),
    "a template": ("x.yaml", DEPLOYMENT),
    "the label as a word of YAML": ("x.yaml", POD.replace('"true"', "true")),
    "JSON": (
        "x.json",
        (
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": '
            '{"gpu-webhook.dev/ignore": "true"}}, "spec": {"containers": [{"name": "c", '
            f'"image": "i", "resources": {{"limits": {{"{OLD}": 1}}}}}}]}}}}'
        ),
    ),
    "a pod in a List": ("x.yaml", "apiVersion: v1\nkind: List\nitems:\n" + listed(POD)),
    "a pod in a list at the top": ("x.yaml", listed(POD)),
    "a template in a list at the top": ("x.yaml", listed(DEPLOYMENT)),
    "a pod without a kind": ("x.yaml", POD.replace("kind: Pod\n", "")),
    "a custom kind in Helm": (
        "templates/x.yaml",
        templated(DEPLOYMENT.replace("apps/v1", "x.io/v1").replace("Deploy", "My")),
    ),
    "a pod in Helm": ("templates/x.yaml", templated(POD)),
    "a template in Helm": ("templates/x.yaml", templated(DEPLOYMENT)),
    "a list in Helm": ("templates/x.yaml", templated(listed(POD))),
    "in single quotes in Helm": ("templates/x.yaml", templated(POD.replace('"true"', "'true'"))),
    "a label that Helm writes": (
        "templates/x.yaml",
        templated(POD.replace('"true"', "{{ .Values.ignore | quote }}")),
    ),
    "a label that Helm writes in quotes": (
        "templates/x.yaml",
        templated(POD.replace('"true"', '"{{ .Values.ignore }}"')),
    ),
    "a label under a condition": (
        "templates/x.yaml",
        templated(
            POD.replace(f"    {LABEL}", f"    {{{{- if .x }}}}\n    {LABEL}\n    {{{{- end }}}}")
        ),
    ),
    "a label under a denied condition": (
        "templates/x.yaml",
        templated(
            POD.replace(
                f"    {LABEL}",
                f"    {{{{ if .x }}}}\n    a: b\n    {{{{ else }}}}\n    {LABEL}\n{{{{ end }}}}",
            )
        ),
    ),
    "a template in Helm that is no YAML": (
        "templates/x.yaml",
        templated(DEPLOYMENT).replace("    spec:\n", "    {{ .x }}: : {\n    spec:\n"),
    ),
    "a chart's values": (
        "values.yaml",
        f"trainer:\n  podLabels:\n    {LABEL}\n  resources:\n    limits:\n      {OLD}: 1\n",
    ),
    "a pod in Jinja": ("x.yaml.j2", templated(POD).replace(".Release.Name", "name")),
    "a pod in Markdown": ("x.md", f"Text.\n\n```yaml\n{POD}```\n"),
    "a template in Markdown": ("x.md", f"Text.\n\n```yaml\n{DEPLOYMENT}```\n"),
    "a list in Markdown": ("x.md", f"Text.\n\n```yaml\n{listed(POD)}```\n"),
    "a here-document in Markdown": (
        "x.md",
        f"```bash\ncat <<EOF | kubectl apply -f -\n{POD}EOF\n```\n",
    ),
    "a strategic merge patch": ("patch.yaml", PATCH),
    "an operation that sets the label": (
        "patch.yaml",
        OPERATION
        + "- op: add\n  path: /spec/template/metadata/labels/gpu-webhook.dev~1ignore\n"
        + '  value: "true"\n',
    ),
    "an operation that sets all labels": (
        "patch.yaml",
        f"{OPERATION}- op: add\n  path: /spec/template/metadata/labels\n  value: {{{LABEL}}}\n",
    ),
    "an operation that sets the metadata": (
        "patch.yaml",
        f"{OPERATION}- op: add\n  path: /metadata\n  value: {{labels: {{{LABEL}}}}}\n",
    ),
    "a patch in the kustomization": (
        "kustomization.yaml",
        KUSTOMIZATION + textwrap.indent(PATCH, "    "),
    ),
}


def migrated(path: str, text: str) -> FileResult:
    return migrate_text(Source.of_text(path, text), Plan())


@pytest.mark.parametrize(("path", "text"), LEFT.values(), ids=LEFT)
def test_the_pod_is_left_alone(path: str, text: str) -> None:
    result = migrated(path, text)

    assert (result.new_text or text) == text
    assert [each for each in result.located if each.status is Status.FIXABLE] == []
    held = [each.reason for each in result.skipped] + [each.message for each in result.located]
    assert any("gpu-webhook.dev/ignore" in each or "not done here" in each for each in held)


@pytest.mark.parametrize(("path", "text"), LEFT.values(), ids=LEFT)
def test_another_value_of_the_label_says_nothing(path: str, text: str) -> None:
    """Else the test above would hold whatever the label is."""
    result = migrated(
        path,
        text.replace("gpu-webhook.dev/ignore", "example.com/ignore").replace(
            "gpu-webhook.dev~1ignore", "a"
        ),
    )

    assert result.new_text is not None
    assert NEW in result.new_text


BESIDE = {
    "another pod of the file": (
        "x.yaml",
        f"{POD}---\n{POD.replace(LABEL, 'a: b')}",
    ),
    "another pod of the list": ("x.yaml", listed(POD) + listed(POD.replace(LABEL, "a: b"))),
    "another pod of the template": (
        "templates/x.yaml",
        f"{templated(POD)}---\n{templated(POD).replace(LABEL, 'a: b')}",
    ),
    "another pod of the document": (
        "x.md",
        f"```yaml\n{POD}```\n\n```yaml\n{POD.replace(LABEL, 'a: b')}```\n",
    ),
}


@pytest.mark.parametrize(("path", "text"), BESIDE.values(), ids=BESIDE)
def test_only_that_pod_is_left_alone(path: str, text: str) -> None:
    result = migrated(path, text)

    assert result.new_text is not None
    assert (result.new_text.count(OLD), result.new_text.count(f"{NEW}: 1")) == (1, 1)
    first = text.index(OLD)
    assert result.new_text[:first] == text[:first]


@pytest.mark.parametrize("path", ["x.yaml", "templates/x.yaml", "x.md"])
def test_the_version_of_a_workload_is_no_part_of_its_pod(path: str) -> None:
    text = DEPLOYMENT.replace("apps/v1", "extensions/v1beta1")
    text = templated(text) if path.startswith("templates") else text
    text = f"```yaml\n{text}```\n" if path.endswith("md") else text

    new_text = migrated(path, text).new_text

    assert new_text is not None
    template = text[text.index("  template:") : text.index(OLD)]
    assert "apiVersion: apps/v1" in new_text
    assert template + OLD in new_text
