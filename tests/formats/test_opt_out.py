"""`gpu-webhook.dev/ignore: "true"` on a pod or a template: at rest, too, nobody edits that pod."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from webhook.capacity.nodes import Inventory
from webhook.cli.main import main
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats import kustomization
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.files.results import FileResult

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
    "a custom kind": ("x.yaml", DEPLOYMENT.replace("apps/v1", "x.io/v1").replace("Deploy", "My")),
    "a custom kind in Helm": (
        "templates/x.yaml",
        templated(DEPLOYMENT.replace("apps/v1", "x.io/v1").replace("Deploy", "My")),
    ),
    "a pod in Helm": ("templates/x.yaml", templated(POD)),
    "a template in Helm": ("templates/x.yaml", templated(DEPLOYMENT)),
    "a list in Helm": ("templates/x.yaml", templated(listed(POD))),
    "in single quotes in Helm": ("templates/x.yaml", templated(POD.replace('"true"', "'true'"))),
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
    assert {each.status for each in result.located} <= {Status.NOTICE}
    assert any("gpu-webhook.dev/ignore" in each.reason for each in result.skipped)


def test_a_markdown_block_that_is_no_yaml_is_left_alone_with_its_label() -> None:
    text = f"Text.\n\n```yaml\n{POD.replace('spec:', ' bad: [')}```\n"

    result = migrated("x.md", text)
    other = migrated("x.md", text.replace("gpu-webhook.dev/ignore", "example.com/ignore"))

    assert result.located == ()
    assert any("gpu-webhook.dev/ignore" in each.reason for each in result.skipped)
    assert "GPU101" in [each.code for each in other.located]


@pytest.mark.parametrize(("path", "text"), LEFT.values(), ids=LEFT)
def test_another_value_of_the_label_says_nothing(path: str, text: str) -> None:
    """Else the test above would hold whatever the label is."""
    result = migrated(
        path,
        text.replace("gpu-webhook.dev/ignore", "example.com/ignore").replace(
            "gpu-webhook.dev~1ignore", "a"
        ),
    )

    if "x.io" in text:  # nobody knows what the kind is: in a template no more than elsewhere
        assert [(each.code, each.status) for each in result.located] == [("GPU132", Status.MANUAL)]
        return
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


NAMESPACE = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: old
  labels:
    {LABEL}
"""
BARE = POD.replace(f"  labels:\n    {LABEL}\n", "")
IN_IT = BARE.replace("  name: x\n", "  name: x\n  namespace: old\n", 1)
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: old}
spec: {hard: {requests.alpha.kubernetes.io/nvidia-gpu: 1}}
"""
JOB = f"""\
apiVersion: batch/v2alpha1
kind: ScheduledJob
metadata: {{name: x, namespace: old}}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - {{name: c, image: i, resources: {{limits: {{{OLD}: 1}}}}}}
"""
IN_A_NAMESPACE = {
    "before it": ("x.yaml", f"{NAMESPACE}---\n{IN_IT}"),
    "behind it": ("x.yaml", f"{IN_IT}---\n{NAMESPACE}"),
    "in a List": (
        "x.yaml",
        "apiVersion: v1\nkind: List\nitems:\n" + listed(NAMESPACE) + listed(IN_IT),
    ),
    "a quota, which counts what its pods ask for": ("x.yaml", f"{NAMESPACE}---\n{QUOTA}"),
    "a workload of a version of old": ("x.yaml", f"{NAMESPACE}---\n{JOB}"),
    "the namespace default, where none is named": (
        "x.yaml",
        NAMESPACE.replace("name: old", "name: default") + "---\n" + BARE,
    ),
    "in Helm": ("templates/x.yaml", templated(f"{NAMESPACE}---\n{IN_IT}")),
    "in Jinja": ("x.yaml.j2", templated(f"{NAMESPACE}---\n{IN_IT}").replace(".Release.Name", "n")),
    "in Markdown": ("x.md", f"```yaml\n{NAMESPACE}---\n{IN_IT}```\n"),
    "in another block of Markdown": ("x.md", f"```yaml\n{NAMESPACE}```\n```yaml\n{IN_IT}```\n"),
}


@pytest.mark.parametrize(("path", "text"), IN_A_NAMESPACE.values(), ids=IN_A_NAMESPACE)
def test_what_is_in_a_namespace_with_the_label_is_left_alone(path: str, text: str) -> None:
    result = migrated(path, text)

    assert result.new_text is None
    assert {each.status for each in result.located} <= {Status.NOTICE}
    assert any("gpu-webhook.dev/ignore" in each.reason for each in result.skipped)


@pytest.mark.parametrize(("path", "text"), IN_A_NAMESPACE.values(), ids=IN_A_NAMESPACE)
def test_a_namespace_without_the_label_says_nothing(path: str, text: str) -> None:
    result = migrated(path, text.replace("gpu-webhook.dev/ignore", "example.com/ignore"))

    assert {Status.FIXABLE, Status.MANUAL} & {each.status for each in result.located}


def test_a_namespace_that_the_inventory_knows_with_the_label_is_left_alone() -> None:
    known = Inventory((), namespaces={"old": {"gpu-webhook.dev/ignore": "true"}})
    result = migrate_text(Source.of_text("x.yaml", IN_IT), Plan(inventory=known))

    assert (result.new_text, result.located) == (None, ())


def test_another_namespace_of_the_file_is_not_left_alone() -> None:
    result = migrated("x.yaml", f"{NAMESPACE}---\n{IN_IT}---\n{IN_IT.replace(': old', ': new')}")

    assert result.new_text is not None
    assert (result.new_text.count(OLD), result.new_text.count(f"{NEW}: 1")) == (1, 1)


LEGACY = DEPLOYMENT.replace(f"        {LABEL}\n", "")
PATCHED = PATCH.replace(f"      labels:\n        {LABEL}\n", "      labels: {a: b}\n")
# Each with the files of one folder.
KUSTOMIZED = {
    "commonLabels": {
        "kustomization.yaml": f"resources: [x.yaml]\ncommonLabels:\n  {LABEL}\n",
        "x.yaml": LEGACY,
    },
    "labels of templates": {
        "kustomization.yaml": (
            f"resources: [x.yaml]\nlabels:\n- pairs:\n    {LABEL}\n  includeTemplates: true\n"
        ),
        "x.yaml": LEGACY,
    },
    "labels of selectors": {
        "kustomization.yml": (
            f"resources: [x.yaml]\nlabels:\n- pairs:\n    {LABEL}\n  includeSelectors: true\n"
        ),
        "x.yaml": LEGACY,
    },
    "labels of objects, on a Pod": {
        "kustomization.yaml": f"resources: [x.yaml]\nlabels:\n- pairs:\n    {LABEL}\n",
        "x.yaml": BARE,
    },
    "a patch": {
        "kustomization.yaml": (
            f"resources: [../base]\npatches: [{{path: p.yaml}}]\ncommonLabels:\n  {LABEL}\n"
        ),
        "p.yaml": PATCHED,
    },
    "an operation": {
        "kustomization.yaml": (
            f"resources: [../base]\npatches: [{{path: p.yaml}}]\ncommonLabels:\n  {LABEL}\n"
        ),
        "p.yaml": OPERATION,
    },
    "a patch in the kustomization": {
        "kustomization.yaml": (
            f"commonLabels:\n  {LABEL}\n" + KUSTOMIZATION + textwrap.indent(PATCHED, "    ")
        ),
    },
    "a file in a folder below": {
        "kustomization.yaml": f"resources: [below/x.yaml]\ncommonLabels:\n  {LABEL}\n",
        "below/x.yaml": LEGACY,
    },
    "the namespace is in another file": {
        "kustomization.yaml": "resources: [n.yaml, x.yaml]\n",
        "n.yaml": NAMESPACE,
        "x.yaml": IN_IT,
    },
    "the kustomization names the namespace": {
        "kustomization.yaml": "namespace: old\nresources: [n.yaml, x.yaml]\n",
        "n.yaml": NAMESPACE,
        "x.yaml": LEGACY,
    },
    "the kustomization names the namespace anew": {
        "kustomization.yaml": "namespace: new\nresources: [n.yaml, x.yaml]\n",
        "n.yaml": NAMESPACE,
        "x.yaml": LEGACY,
    },
    "it labels the namespace": {
        "kustomization.yaml": f"resources: [n.yaml, x.yaml]\nlabels:\n- pairs:\n    {LABEL}\n",
        "n.yaml": NAMESPACE.replace(LABEL, "a: b"),
        "x.yaml": IN_IT,
    },
}


def written(files: dict[str, str], folder: Path) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("files", KUSTOMIZED.values(), ids=KUSTOMIZED)
def test_what_a_kustomization_opts_out_is_left_alone(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(files, tmp_path)

    for command in (["scan", "-o", "json"], ["migrate", "--check"], ["migrate", "--write"]):
        assert main([*command, "-R", "-f", str(folder)]) == 0, command
    assert {name: (folder / name).read_text() for name in files} == files
    assert "gpu-webhook.dev/ignore" in capsys.readouterr().out


@pytest.mark.parametrize("files", KUSTOMIZED.values(), ids=KUSTOMIZED)
def test_another_label_of_a_kustomization_says_nothing(
    files: dict[str, str], tmp_path: Path
) -> None:
    other = {name: text.replace(LABEL, "a: b") for name, text in files.items()}

    assert main(["migrate", "--check", "-R", "-f", str(written(other, tmp_path))]) > 1


def test_a_kustomization_opts_out_nothing_that_it_does_not_name(tmp_path: Path) -> None:
    files = KUSTOMIZED["commonLabels"] | {"y.yaml": LEGACY}
    folder = written(files, tmp_path)

    assert main(["migrate", "--write", "-R", "-f", str(folder)]) == 0
    assert (folder / "x.yaml").read_text() == LEGACY
    assert NEW in (folder / "y.yaml").read_text()


def test_a_kustomization_is_read_once_for_all_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"x{number}.yaml" for number in range(5)]
    kustomized = {"kustomization.yaml": f"resources: [{', '.join(names)}]\n"}
    folder = written(kustomized | dict.fromkeys(names, LEGACY), tmp_path)
    seen: list[str] = []
    read = kustomization.read

    def noting(file: str) -> dict[str, Any]:
        seen.append(file)
        return read(file)

    monkeypatch.setattr(kustomization, "read", noting)

    for name in names:
        kustomization.known_of(str(folder / name))
    assert seen == [str(folder / "kustomization.yaml")]


def test_an_overlay_opts_out_its_base_where_it_is_what_is_looked_at(tmp_path: Path) -> None:
    """Another overlay of the same base may want it."""
    files = {
        "base/kustomization.yaml": "resources: [x.yaml]\n",
        "base/x.yaml": LEGACY,
        "old/kustomization.yaml": f"resources: [../base]\ncommonLabels:\n  {LABEL}\n",
    }
    folder = written(files, tmp_path)

    assert main(["scan", "-k", str(folder / "old")]) == 0
    assert main(["scan", "-R", "-f", str(folder)]) > 1


@pytest.mark.parametrize("value", ["{{ .Values.ignore | quote }}", '"{{ .Values.ignore }}"'])
def test_a_label_that_the_template_makes_leaves_it_to_a_person(value: str) -> None:
    result = migrated("chart/templates/pod.yaml", templated(POD.replace('"true"', value)))

    assert result.new_text is None
    assert Status.MANUAL in {each.status for each in result.located}
    assert any("the template decides" in each.reason for each in result.skipped)
