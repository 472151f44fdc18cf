"""Kustomizations and patches: renamed wherever a patch names it, never judged by what it lacks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.cli.main import main
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats import kustomization, kustomize
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.files.results import FileResult

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
ESCAPED, NEW_ESCAPED = "alpha.kubernetes.io~1nvidia-gpu", "nvidia.com~1gpu"
LIMITS = "/spec/template/spec/containers/0/resources/limits"


def patched(text: str, name: str = "patch.yaml") -> FileResult:
    return kustomize.migrate_patch(Source.of_text(name, text), Plan())


def strategic(resources: str, version: str = "apps/v1") -> str:
    head = textwrap.dedent(f"""\
        apiVersion: {version}
        kind: Deployment
        metadata:
          name: web
        spec:
          template:
            spec:
              containers:
              - name: main
                resources:
        """)
    return head + textwrap.indent(resources, " " * 10)


RENAMED = {
    "a limit": strategic(f"limits: {{{OLD}: 2}}\n"),
    "a request alone": strategic(f"requests:\n  {OLD}: 1  # the base has the limit\n"),
    "0 takes the base's away": strategic(f"limits:\n  {OLD}: 0\n"),
    "null takes the base's away": strategic(f"limits:\n  {OLD}: null\n"),
    "an operation on the limit": f"- op: replace\n  path: {LIMITS}/{ESCAPED}\n  value: 2\n",
    "an operation in quotes": f"- op: remove\n  path: '{LIMITS}/{ESCAPED}'\n",
    "an operation in JSON": f'[{{"op": "test", "path": "{LIMITS}/{ESCAPED}", "value": "1"}}]\n',
    "a move": f"- {{op: move, from: {LIMITS}/{ESCAPED}, path: /x}}\n",
    "a value that is the section": f"- op: add\n  path: {LIMITS}\n  value:\n    {OLD}: 1\n",
    "a value that holds the section": (
        f'- op: add\n  path: /spec/c/-\n  value: {{resources: {{limits: {{"{OLD}": 1}}}}}}\n'
    ),
}


@pytest.mark.parametrize("text", RENAMED.values(), ids=RENAMED)
def test_the_name_is_renamed_and_nothing_else_changes(text: str) -> None:
    result = migrate_text(Source.of_text("patch.yaml", text), Plan())
    assert result.new_text == text.replace(OLD, NEW).replace(ESCAPED, NEW_ESCAPED)
    assert {each.status for each in result.located} == {Status.FIXABLE}
    assert patched(result.new_text).new_text is None


LEFT = {
    "both names": strategic(f"limits:\n  {OLD}: 1\n  {NEW}: 1\n"),
    "an annotation by path": (
        "- op: add\n  path: /metadata/annotations/scheduler.alpha.kubernetes.io~1tolerations\n"
        "  value: '[]'\n"
    ),
    "a quota": f"- op: add\n  path: /spec/hard/requests.{ESCAPED}\n  value: 1\n",
    "an argument": f"- op: add\n  path: /spec/args/-\n  value: --resource={OLD}\n",
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_it_is_told_and_not_edited(text: str) -> None:
    result = patched(text)
    assert result.new_text is None
    assert result.located
    assert {each.status for each in result.located} == {Status.MANUAL}


def test_a_dead_version_in_a_patch_is_the_one_that_its_target_will_have() -> None:
    text = strategic(f"limits:\n  {OLD}: 1\n", "extensions/v1beta1")
    result = patched(text)
    assert result.new_text == text.replace(OLD, NEW).replace("extensions/v1beta1", "apps/v1")


NO_PATCHES = {
    "a pod without an image, as in a guide": "kind: Pod\nspec: {containers: [{name: a}]}\n",
    "a pod with an image": "kind: Pod\nspec: {containers: [{name: a, image: b}]}\n",
    "a list of anything": "- a\n- b\n",
    "a service": "kind: Service\nspec: {}\n",
    "no YAML": "a: b: c\n",
    "nothing": "",
}


@pytest.mark.parametrize("text", NO_PATCHES.values(), ids=NO_PATCHES)
def test_what_is_no_patch(text: str) -> None:
    assert not kustomize.is_patch(Source.of_text("x.yaml", text))


KUSTOMIZATION = textwrap.dedent(f"""\
    apiVersion: kustomize.config.k8s.io/v1beta1
    kind: Kustomization
    resources:
    - base.yaml   # as it is
    commonAnnotations:
      team: x
      scheduler.alpha.kubernetes.io/critical-pod: ""
    patches:
    - target:
        kind: Deployment
      patch: |-
        - op: replace
          path: {LIMITS}/{ESCAPED}
          value: "2"
    - patch: |
    """) + textwrap.indent(strategic(f"limits:\n  {OLD}: 1\n"), "    ")


FIELD = "spec.template.spec.containers.0.resources.limits"
BACKSLASHED = "alpha\\.kubernetes\\.io/nvidia-gpu"
PATHS = {
    "in brackets": f"fieldPath: '{FIELD}.[{OLD}]'",
    "in brackets, in double quotes": f'fieldPath: "{FIELD}.[{OLD}]"  # in use',
    "without a dot before the brackets": f"fieldPath: {FIELD}[{OLD}]",
    "with its dots escaped": f"fieldPath: {FIELD}.{BACKSLASHED}",
    "below the requests": f"fieldPath: {FIELD.replace('limits', 'requests')}.[{OLD}]",
    "in lower case, as of old": f"fieldpath: {FIELD}.[{OLD}]",
    "in flow style": f'{{fieldPath: "{FIELD}.[{OLD}]", kind: Deployment}}',
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["Unix", "Windows"])
def test_what_a_replacement_reads(path: str, ends: str) -> None:
    entry = f"source: {path}" if path[0] == "{" else f"source:\n    kind: Deployment\n    {path}"
    text = f"resources: [d.yaml]\nreplacements:\n- {entry}\n  targets: []\n"
    assert_only_reported("kustomization.yaml", text.replace("\n", ends))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_what_a_variable_reads(path: str) -> None:
    entry = path if path[0] == "{" else f"\n    {path}"
    text = f"vars:\n- name: GPUS\n  objref: {{kind: Deployment, name: d}}\n  fieldref: {entry}\n"
    assert_only_reported("kustomization.yaml", text)


WRITES = f"""\
source: {{kind: ConfigMap, name: gpus, fieldPath: data.gpus}}
targets:
- select: {{kind: Deployment}}
  fieldPaths:
  - {FIELD}.[{OLD}]
  - spec.template.metadata.annotations.gpus
  - "{FIELD.replace("0", "[name=a]").replace("limits", "requests")}.[{OLD}]"
  options: {{create: true}}
"""


def test_what_a_replacement_writes_in_a_file_of_its_own() -> None:
    assert_only_reported("replacement.yaml", WRITES)
    listed = textwrap.indent(WRITES, "  ").replace("  ", "- ", 1)
    assert_only_reported("replacements.yaml", listed)
    transformer = "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: r}\n"
    assert_only_reported("t.yaml", f"{transformer}replacements:\n{listed}")


def assert_only_reported(name: str, text: str) -> None:
    """What is built of it holds all files of the objects: tests/projects."""
    result = migrate_text(Source.of_text(name, text), Plan())
    assert result.new_text is None
    lines = {n for n, line in enumerate(text.split("\n"), 1) if OLD in line or BACKSLASHED in line}
    assert {each.place.line for each in result.located} == lines
    assert {(each.code, each.status) for each in result.located} == {("GPU101", Status.MANUAL)}


def test_the_name_in_a_quota_is_no_amount_of_a_pod() -> None:
    text = f"vars:\n- fieldref: {{fieldPath: 'spec.hard.[requests.{OLD}]'}}\n"
    assert migrate_text(Source.of_text("kustomization.yaml", text), Plan()).new_text is None


def test_what_a_replacement_selects_is_named_by_the_version_of_today() -> None:
    text = textwrap.dedent("""\
        replacements:
        - source: {group: extensions, version: v1beta1, kind: Deployment, fieldPath: spec.replicas}
          targets:
          - select: {group: extensions, version: v1beta1, kind: Deployment}
            reject:
            - {group: extensions, version: v1beta1, kind: DaemonSet}
            fieldPaths: [spec.replicas]
        """)
    result = migrate_text(Source.of_text("kustomization.yaml", text), Plan())
    today = text.replace("extensions", "apps").replace("v1beta1", "v1")
    assert result.new_text == today


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["Unix", "Windows"])
def test_patches_that_are_written_out(ends: str) -> None:
    text = KUSTOMIZATION.replace("\n", ends)
    result = kustomize.migrate(Source.of_text("kustomization.yaml", text), Plan())
    assert result.new_text == text.replace(OLD, NEW).replace(ESCAPED, NEW_ESCAPED)
    said = [(each.place.line, each.status) for each in result.located]
    assert (7, Status.MANUAL) in said  # an annotation for everything that has had no effect
    assert (13, Status.FIXABLE) in said


def test_a_target_of_a_dead_version_is_told() -> None:
    text = "patches:\n- path: p.yaml\n  target: {group: extensions, version: v1beta1}\n"
    result = kustomize.migrate(Source.of_text("kustomization.yaml", text), Plan())
    assert [(each.place.line, each.code) for each in result.located] == [(3, "GPU120")]


TARGET = """\
patchesJson6902:
- path: ops.yaml
  target: {group: extensions, version: v1beta1, kind: Deployment, name: web}  # the web
patches:
- path: p.yaml
  target:
    group: apps
    version: v1alpha1
    kind: PetSet
- path: q.yaml
  target: {kind: Deployment}
"""


def test_a_target_is_named_as_it_will_be() -> None:
    result = kustomize.migrate(Source.of_text("kustomization.yaml", TARGET), Plan())
    assert result.new_text == TARGET.replace(
        "group: extensions, version: v1beta1", "group: apps, version: v1"
    ).replace("v1alpha1\n    kind: PetSet", "v1\n    kind: StatefulSet")
    assert [(each.place.line, each.code, each.status) for each in result.located] == [
        (3, "GPU120", Status.FIXABLE),
        (6, "GPU120", Status.FIXABLE),
    ]
    again = kustomize.migrate(Source.of_text("kustomization.yaml", result.new_text or ""), Plan())
    assert again.located == ()


def test_the_files_of_a_kustomization(tmp_path: Path) -> None:
    for name in ("base/deployment.yaml", "base/unused.yaml", "over/patch.yaml", "over/ops.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a: b\n")
    (tmp_path / "base/kustomization.yaml").write_text("resources: [deployment.yaml]\n")
    (tmp_path / "over/kustomization.yaml").write_text(
        "resources: [../base]\npatchesStrategicMerge: [patch.yaml]\n"
        "patches:\n- path: ops.yaml\n- patch: |\n    a: b\n"
    )
    files = kustomization.parts(f"{tmp_path}/over").files
    found = [file.removeprefix(f"{tmp_path}/") for file in files]
    assert found == [
        *("over/kustomization.yaml", "base/kustomization.yaml", "base/deployment.yaml"),
        *("over/patch.yaml", "over/ops.yaml"),
    ]


PIECES = st.sampled_from([
    *RENAMED.values(), *LEFT.values(), KUSTOMIZATION, "---\n", "- ", "patch: |-\n", "\t", "{", "'",
])  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=6), max_size=5))
def test_whatever_text_comes(pieces: list[str]) -> None:
    text = "".join(pieces)
    for road in (kustomize.migrate, kustomize.migrate_patch):
        result = road(Source.of_text("kustomization.yaml", text), Plan())
        if result.new_text is not None:
            again = Source.of_text("kustomization.yaml", result.new_text)
            assert road(again, Plan()).new_text is None
            assert len(result.new_text.splitlines()) == len(text.splitlines())


_CRITICAL = 'scheduler.alpha.kubernetes.io/critical-pod: ""'
WHOLE_CONTAINERS = {
    "an annotation": f"""\
  template:
    metadata:
      annotations: {{{_CRITICAL}}}
""",
    "an annotation and a container": f"""\
  template:
    metadata:
      annotations: {{{_CRITICAL}}}
    spec:
      containers: [{{name: side, image: y}}]
""",
    "labels of its own": f"""\
  template:
    metadata:
      labels: {{team: ml}}
      annotations: {{{_CRITICAL}}}
    spec:
      containers: [{{name: side, image: y}}]
""",
    "a legacy name": """\
  template:
    spec:
      containers:
      - name: side
        image: y
        resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}
""",
    "a driver's path": """\
  template:
    spec:
      containers: [{name: c, image: y, volumeMounts: [{name: n, mountPath: /usr/nvidia}]}]
      volumes: [{name: n, hostPath: {path: /usr/lib/nvidia-384}}]
""",
}
NAMING = {
    "patches": "patches: [{path: ./p.yaml}]\n",
    "patchesStrategicMerge": "patchesStrategicMerge: [p.yaml]\n",
    "patchesJson6902": "patchesJson6902: [{path: p.yaml}]\n",
    "a component": "kind: Component\npatches: [{path: p.yaml, target: {kind: Deployment}}]\n",
}


@pytest.mark.parametrize("naming", NAMING.values(), ids=NAMING)
@pytest.mark.parametrize("version", ["apps/v1", "extensions/v1beta1"])
@pytest.mark.parametrize("spec", WHOLE_CONTAINERS.values(), ids=WHOLE_CONTAINERS)
def test_a_patch_that_a_kustomization_names_is_no_whole_object(
    naming: str, version: str, spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = f"apiVersion: {version}\nkind: Deployment\nmetadata: {{name: d}}\nspec:\n{spec}"
    (tmp_path / "kustomization.yaml").write_text(f"resources: [../base]\n{naming}")
    (tmp_path / "p.yaml").write_text(patch)

    main(["scan", "-f", str(tmp_path / "p.yaml")])
    said = capsys.readouterr().out
    main(["migrate", "--write", "-f", str(tmp_path / "p.yaml")])

    assert "GPU" in said
    assert not {"GPU121", "GPU122", "GPU135"} & set(said.split())
    written = (tmp_path / "p.yaml").read_text()
    assert "selector" not in written
    assert "tolerations" not in written
    assert "strategy" not in written


def test_a_resource_of_a_kustomization_is_a_whole_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = WHOLE_CONTAINERS["labels of its own"]
    obj = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\nspec:\n{spec}"
    (tmp_path / "kustomization.yaml").write_text("resources: [p.yaml]\n")
    (tmp_path / "p.yaml").write_text(obj)

    main(["scan", "-f", str(tmp_path)])

    assert "GPU121" in capsys.readouterr().out
