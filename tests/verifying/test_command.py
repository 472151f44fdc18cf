"""`gpu-webhook verify`: what it compares, what it prints, and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from webhook.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Raw = dict[str, Any]
    Verify = Callable[..., tuple[int, str]]

pytestmark = pytest.mark.programs

LEGACY = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers:
  - name: c
    image: i
    resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}
"""
CURRENT = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers:
  - name: c
    image: i
    resources: {limits: {nvidia.com/gpu: 1}}
  tolerations:
  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
"""
DEAD = """\
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: x}
"""
EQUAL, DIFFERENT, NOT_PROVABLE, ERROR = 0, 2, 3, 1


def old(*names: str) -> str:
    return "---\n".join(LEGACY.replace("NAME", each) for each in names or ("p",))


def new(*names: str) -> str:
    return "---\n".join(CURRENT.replace("NAME", each) for each in names or ("p",))


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Verify:
    """Runs the command in an empty folder without programs beside it; the code and the output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def run(*words: str) -> tuple[int, str]:
        code = main(["verify", *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


LIMITS = "{limits: {alpha.kubernetes.io/nvidia-gpu: 1}}"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
CONVERTED = """\
apiVersion: extensions/v1beta1
kind: Deployment
metadata: {name: d}
spec:
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i}]}
"""


BOTH: dict[str, tuple[str, str, int, str]] = {
    "what migrate wrote": (old(), new(), EQUAL, "Pod/p: equal\n1 compared: 1 equal\n"),
    "a file that was current before": (new(), new(), EQUAL, "Pod/p: equal"),
    "nothing is migrated yet": (old(), old(), DIFFERENT, "(changed by GPU101)"),
    "an object is lost": (old("a", "b"), new("a"), DIFFERENT, "Pod/b: different: only OLD has it"),
    "an object is added": (old("a"), new("a", "b"), DIFFERENT, "Pod/b: different: only NEW has it"),
    "objects in another order": (old("a", "b"), new("b", "a"), EQUAL, "2 compared: 2 equal"),
    "the same name twice, in order": (old("a", "a"), new("a", "a"), EQUAL, "2 equal"),
    "in JSON": (old(), json.dumps(yaml.safe_load(new())), EQUAL, "1 equal"),
    "as a List": (
        old(),
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(new())]}),
        EQUAL,
        "1 equal",
    ),
    "a generated name": (
        old().replace("name: p", "generateName: p-"),
        new().replace("name: p", "generateName: p-"),
        EQUAL,
        "Pod/p-*: equal",
    ),
    "a kind in lower case is the same kind": (
        new(),
        new().replace("kind: Pod", "kind: pod"),
        DIFFERENT,
        "pod/p: different: kind (changed by no rule)",
    ),
    "a pod without a name": (
        old().replace("{name: p}", "{}"),
        new().replace("{name: p}", "{}"),
        EQUAL,
        "Pod/(no name): equal",
    ),
    "another namespace": (
        old(),
        new().replace("name: p", "name: p, namespace: team"),
        DIFFERENT,
        "Pod/team/p: different: only NEW has it",
    ),
    "a pod that opted out stays": (
        old().replace("name: p", 'name: p, labels: {gpu-webhook.dev/ignore: "true"}'),
        old().replace("name: p", 'name: p, labels: {gpu-webhook.dev/ignore: "true"}'),
        EQUAL,
        "1 equal",
    ),
    "a kind that no rule converts": (
        DEAD,
        DEAD,
        NOT_PROVABLE,
        "CustomResourceDefinition/x: not provable: CustomResourceDefinition of apiextensions",
    ),
    "different wins over not provable": (
        f"{old()}---\n{DEAD}",
        f"{old()}---\n{DEAD}",
        DIFFERENT,
        "2 compared: 1 different, 1 not provable",
    ),
    "a placeholder": (
        old().replace("nvidia-gpu: 1", "nvidia-gpu: $(GPUS)"),
        old().replace("nvidia-gpu: 1", "nvidia-gpu: $(GPUS)"),
        NOT_PROVABLE,
        "a placeholder or a template action stands in it",
    ),
    "no YAML": (old(), "a: [", DIFFERENT, "not provable: line 1 is not YAML"),
    "a document without a kind": ("a: 1\n", "a: 2\n", NOT_PROVABLE, "without a kind"),
    "a patch": (
        CONVERTED.replace(", image: i", ""),
        CONVERTED.replace(", image: i", "").replace("a: b", "a: c"),
        NOT_PROVABLE,
        "it is a patch: compare the kustomization that uses it",
    ),
    "a name that occurs twice in the old file": (
        old().replace("limits: {", "limits: {alpha.kubernetes.io/nvidia-gpu: 2, "),
        new(),
        NOT_PROVABLE,
        "nvidia-gpu] occurs twice, and readers differ in which one counts: delete one",
    ),
    "one that occurs twice in the new file": (
        old(),
        new().replace("limits: {", "limits: {nvidia.com/gpu: 1, "),
        NOT_PROVABLE,
        "spec.containers[0].resources.limits[nvidia.com/gpu] occurs twice",
    ),
    "one that is in JSON": (
        old(),
        json.dumps(yaml.safe_load(new())).replace('"image":', '"image": "j", "image":'),
        NOT_PROVABLE,
        "spec.containers[0].image occurs twice",
    ),
    "one of a ConfigMap": (
        *(f"{CONFIG}data: {{a: x, a: y}}\n", f"{CONFIG}data: {{a: y}}\n"),
        NOT_PROVABLE,
        "ConfigMap/c: not provable: data.a occurs twice",
    ),
    "one that stays, without a legacy name": (
        *(f"{CONFIG}data: {{a: x, a: y}}\n",) * 2,
        EQUAL,
        "ConfigMap/c: equal",
    ),
    "one that stays, and its first value is legacy": (
        *(new().replace("resources: ", f"resources: {LIMITS}\n    resources: "),) * 2,
        NOT_PROVABLE,
        "spec.containers[0].resources occurs twice",
    ),
    "the same text without an object": ("a: 1\n", "a: 1\n", EQUAL, "nothing to compare"),
    "the same text with a legacy word": (
        "resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}\n",
        "resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}\n",
        NOT_PROVABLE,
        "without a kind",
    ),
}


@pytest.mark.parametrize(("was", "now", "code", "words"), BOTH.values(), ids=BOTH)
def test_two_files(
    was: str, now: str, code: int, words: str, verify: Verify, tmp_path: Path
) -> None:
    written(tmp_path, {"old.yaml": was, "new.yaml": now})
    found, said = verify("old.yaml", "new.yaml")
    assert (found, words in said) == (code, True), said


def test_how_an_old_object_was_converted_is_said(verify: Verify, tmp_path: Path) -> None:
    written(tmp_path, {"old.yaml": CONVERTED, "new.yaml": CONVERTED})
    assert main(["migrate", "--write", "new.yaml"]) == EQUAL
    code, said = verify("old.yaml", "new.yaml")
    assert code == EQUAL
    for words in (
        "converted first: GPU120 Deployment of extensions/v1beta1 was removed in 1.16",
        "converted first: GPU121 apps/v1 needs spec.selector",
        "converted first: GPU122 to keep the defaults of extensions/v1beta1",
    ):
        assert words in said
    assert verify("old.yaml", "old.yaml")[0] == DIFFERENT


def test_a_release_that_still_serves_the_version(verify: Verify, tmp_path: Path) -> None:
    written(tmp_path, {"old.yaml": CONVERTED})
    assert verify("old.yaml", "old.yaml", "--target-version=1.15")[0] == EQUAL


def test_quiet_leaves_out_what_is_equal(verify: Verify, tmp_path: Path) -> None:
    written(tmp_path, {"old.yaml": old("a", "b"), "new.yaml": new("a")})
    assert verify("-q", "old.yaml", "new.yaml")[1] == (
        "old.yaml: Pod/b: different: only OLD has it\n2 compared: 1 equal, 1 different\n"
    )


def test_the_settings_count_for_both_sides(verify: Verify, tmp_path: Path) -> None:
    written(
        tmp_path,
        {"old.yaml": old(), "new.yaml": old(), "off.yaml": "policy: {mode: off}\n"},
    )
    assert verify("old.yaml", "new.yaml", "--config=off.yaml")[0] == EQUAL
    assert verify("old.yaml", "new.yaml")[0] == DIFFERENT


def test_folders_are_compared_by_file_and_name(verify: Verify, tmp_path: Path) -> None:
    """Two examples may have the same name; one that moves is found by its name."""
    written(tmp_path / "old", {"a.yaml": old("x"), "b/b.yaml": new("x"), "c.yaml": old("z")})
    written(tmp_path / "new", {"a.yaml": new("x"), "b/b.yaml": new("x"), "d/e.yaml": new("z")})
    code, said = verify("old", "new")
    assert code == EQUAL
    assert said.splitlines() == [
        "new/a.yaml: Pod/x: equal",
        "new/b/b.yaml: Pod/x: equal",
        "new/d/e.yaml: Pod/z: equal",
        "3 compared: 3 equal",
    ]


GUIDE, GO = "```yaml\nlimits: {{ {}: 1 }}\n```\n", 'const name = "{}"\n'
KEY, CURRENT_KEY = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
HELM = "kind: Pod\nmetadata: {{name: {{{{ .Values.{} }}}}}}\n"
# A file, its text on both sides (None: it is not there), and why it is mentioned, if it is.
OTHERS: dict[str, tuple[str, str | None, str | None, str]] = {
    "a document that changes": ("README.md", "# x\n", "# y\n", ""),
    "a document that comes": ("README.md", None, "# y\n", ""),
    "a program that changes": ("x.go", "a", "b", ""),
    "a program with the current name": ("x.go", GO.format(CURRENT_KEY), GO.format(CURRENT_KEY), ""),
    "a program with the legacy name": (
        *("x.go", GO.format(KEY), GO.format(KEY)),
        "it is no manifest: its contents are not compared",
    ),
    "a program that is migrated": (
        *("x.go", GO.format(KEY), GO.format(CURRENT_KEY)),
        "it is no manifest: its contents are not compared",
    ),
    "a part of a manifest in a document": (
        *("x.md", GUIDE.format(KEY), GUIDE.format(CURRENT_KEY)),
        "it has legacy text outside of code blocks that are whole objects",
    ),
    "a template that stays": ("x.yaml", HELM.format("a"), HELM.format("a"), ""),
    "a template that changes": (
        *("x.yaml", HELM.format("a"), HELM.format("b")),
        "it is a template outside of a chart: render it, and compare the results",
    ),
    "a template that goes": (
        *("x.yaml", HELM.format("a"), None),
        "it is a template outside of a chart: render it, and compare the results",
    ),
    "other YAML that stays": ("ci.yaml", "on: push\n", "on: push\n", ""),
    "other YAML that changes": (
        *("ci.yaml", "on: push\n", "on: tag\n"),
        "it has a document without a kind, which is no object",
    ),
}


@pytest.mark.parametrize(("name", "was", "now", "why"), OTHERS.values(), ids=OTHERS)
def test_files_without_objects(
    name: str, was: str | None, now: str | None, why: str, verify: Verify, tmp_path: Path
) -> None:
    for side, text in (("old", was), ("new", now)):
        written(tmp_path / side, {} if text is None else {name: text})
    code, said = verify("old", "new")
    assert code == (NOT_PROVABLE if why else EQUAL)
    shown = f"{'old' if now is None else 'new'}/{name}"
    expected = [f"{shown}: not provable: {why}", "1 compared: 1 not provable"]
    assert said.splitlines() == (expected if why else ["nothing to compare"])


CHART = {"Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n", "templates/pod.yaml": old()}


def test_a_chart_without_helm(verify: Verify, tmp_path: Path) -> None:
    written(tmp_path / "old", CHART)
    written(tmp_path / "new" / "charts" / "x", CHART)
    reason = "not provable: it is a chart, and helm is not installed to render it\n"
    assert reason in verify("old", "old")[1]
    assert verify("new", "new") == (
        NOT_PROVABLE,
        f"new/charts/x: {reason}1 compared: 1 not provable\n",
    )


def program(folder: Path, name: str, script: str) -> None:
    file = folder / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_chart_is_rendered_by_helm(verify: Verify, tmp_path: Path) -> None:
    """The program gets the folder and the version; here it prints the template as it is."""
    is_asked = 'test "$1 $2 $4" = "template release --kube-version=1.36.0" || exit 9'
    program(
        tmp_path,
        "helm",
        f'{is_asked}; echo "# Source: x/templates/pod.yaml"; PATH=/usr/bin:/bin; '
        'cat "$3/templates/pod.yaml"',
    )
    written(tmp_path / "old", CHART)
    written(tmp_path / "new", {**CHART, "templates/pod.yaml": new()})
    assert verify("old", "new") == (EQUAL, "new: Pod/p: equal\n1 compared: 1 equal\n")
    assert verify("old", "old")[0] == DIFFERENT


ASKS = '{{{{- if .Capabilities.APIVersions.Has "{version}" }}}}\n# {{{{ end }}}}\n'


@pytest.mark.parametrize(
    ("version", "target", "result"),
    [
        ("apps/v1beta2", "1.36", DIFFERENT),
        ("apps/v1beta2/StatefulSet", "1.36", DIFFERENT),
        ("apps/v1beta2", "1.15", EQUAL),
        ("apps/v1", "1.36", EQUAL),
        ("example.org/v1beta1", "1.36", EQUAL),
    ],
    ids=str,
)
def test_helm_is_not_asked_for_removed_versions(
    version: str, target: str, result: int, verify: Verify, tmp_path: Path
) -> None:
    """Here helm has each version that the template names, and then prints the new pod."""
    asks = f'grep -q \'Has "{version}"\' "$3/templates/pod.yaml"'
    written(tmp_path, {"new.txt": new(), "old.txt": old()})
    program(
        tmp_path,
        "helm",
        'PATH=/usr/bin:/bin; echo "# Source: x/templates/pod.yaml"; '
        f'{asks} && cat "{tmp_path}/new.txt" || cat "{tmp_path}/old.txt"',
    )
    written(tmp_path / "old", {**CHART, "templates/pod.yaml": ASKS.format(version=version)})
    assert verify("old", "old", "--target-version", target)[0] == result


FAILURES = {
    "the line that begins with error": (
        "echo first >&2; echo 'Error: no such value' >&2; echo last >&2; exit 1",
        "Error: no such value",
    ),
    "the last line with a word": ("echo 'no such file' >&2; echo '>' >&2; exit 1", "no such file"),
    "the exit code": ("exit 7", "exit code 7"),
}


@pytest.mark.parametrize(("script", "why"), FAILURES.values(), ids=FAILURES)
def test_a_program_that_fails(script: str, why: str, verify: Verify, tmp_path: Path) -> None:
    program(tmp_path, "helm", script)
    written(tmp_path / "old", CHART)
    assert verify("old", "old") == (
        NOT_PROVABLE,
        f"old: not provable: helm failed: {why}\n1 compared: 1 not provable\n",
    )


KUSTOMIZATION = {
    "base/kustomization.yaml": "resources: [pod.yaml]\n",
    "base/pod.yaml": old(),
    "overlay/kustomization.yaml": "resources: [../base]\nnamePrefix: dev-\n",
}


BUILDS = """\
import sys
import yaml
from webhook.files.reading import text_of
from webhook.projects.building import Builder
print(yaml.safe_dump_all(each.data for each in Builder(text_of).folder(sys.argv[2]).made))
"""


def builds(folder: Path, name: str = "kubectl") -> None:
    """A program that builds what a test needs, as the real one does."""
    script = folder / "builds.py"
    script.write_text(BUILDS)
    program(folder, name, f'exec {sys.executable} {script} "$@"')


@pytest.mark.parametrize("name", ["kustomize", "kubectl"])
def test_kustomizations_are_built(name: str, verify: Verify, tmp_path: Path) -> None:
    builds(tmp_path, name)
    written(tmp_path / "old", KUSTOMIZATION)
    written(tmp_path / "new", {**KUSTOMIZATION, "base/pod.yaml": new()})
    assert verify("old", "new") == (
        EQUAL,
        "new/base: Pod/p: equal\nnew/overlay: Pod/dev-p: equal\n2 compared: 2 equal\n",
    )
    assert verify("old/overlay", "new/overlay")[0] == EQUAL
    assert verify("old/overlay", "old/overlay")[0] == DIFFERENT


def test_a_kustomization_without_a_program(verify: Verify, tmp_path: Path) -> None:
    """The building that `migrate` uses leaves out what no repair reads: images, generators."""
    written(tmp_path / "old", KUSTOMIZATION)
    code, said = verify("old/base", "old/base")
    assert code == NOT_PROVABLE
    assert "old/base: not provable: it is a kustomization, and neither kustomize nor" in said


FORMATS = ("text", "json", "yaml", "markdown", "html", "sarif", "junit", "github")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_the_difference(form: str, verify: Verify, tmp_path: Path) -> None:
    written(tmp_path, {"old.yaml": f"{old()}---\n{DEAD}", "new.yaml": f"{old()}---\n{DEAD}"})
    code, said = verify("old.yaml", "new.yaml", "-o", form, f"--output-file={form}=out")
    assert (code, (tmp_path / "out").read_text()) == (DIFFERENT, said)
    assert "GPU101" in said
    assert "was removed in 1.22" in said
    match form:
        case "json" | "yaml" | "sarif":
            data = yaml.safe_load(said)
        case "junit":
            assert ET.fromstring(said).get("failures") == "1"  # noqa: S314  # our own
    if form in {"json", "yaml"}:
        assert data["summary"] == {"equal": 0, "different": 1, "not provable": 1}
        assert data["objects"][0]["object"] == "Pod/p"
        assert data["objects"][0]["diff"].startswith("--- OLD, through the webhook\n+++ NEW\n@@")


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "one path": (("a.yaml",), "write two files or folders, OLD and NEW"),
    "three paths": (("a.yaml", "a.yaml", "a.yaml"), "write two files or folders"),
    "a missing file": (("a.yaml", "b.yaml"), "b.yaml: is not there"),
    "a cluster without --server": (("a.yaml", "a.yaml", "--context=x"), "add --server"),
    "a report without a folder": (("a.yaml", "a.yaml", "--output-file=json=x/y"), "no folder"),
}


@pytest.mark.parametrize(("given", "words"), BAD.values(), ids=BAD)
def test_bad_input(given: tuple[str, ...], words: str, verify: Verify, tmp_path: Path) -> None:
    written(tmp_path, {"a.yaml": old()})
    code, said = verify(*given)
    assert (code, words in said) == (ERROR, True), said


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["/usr/bin/git", "-C", folder, *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verify: Verify) -> Path:  # noqa: ARG001
    """A repository with a legacy pod; the current folder."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    folder = written(
        tmp_path / "r", {"a/p.yaml": old(), ".gitignore": "out/\n", "b.yaml": new("b")}
    )
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "x")
    monkeypatch.chdir(folder)
    return folder


def state(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_a_revision_is_compared_with_the_checkout(repository: Path, verify: Verify) -> None:
    written(repository, {"a/p.yaml": new(), "out/x.yaml": old("ignored")})
    before = state(repository)
    assert verify("--git", "HEAD") == (
        EQUAL,
        "a/p.yaml: Pod/p: equal\nb.yaml: Pod/b: equal\n2 compared: 2 equal\n",
    )
    assert verify("--git", "HEAD", "a")[1].endswith("1 compared: 1 equal\n")
    assert verify("--git", "HEAD", "a/p.yaml")[0] == EQUAL
    assert state(repository) == before


def test_a_file_of_the_revision_that_is_removed(repository: Path, verify: Verify) -> None:
    (repository / "a" / "p.yaml").unlink()
    assert verify("-q", "--git", "HEAD") == (
        DIFFERENT,
        "HEAD:a/p.yaml: Pod/p: different: only OLD has it\n2 compared: 1 equal, 1 different\n",
    )
    assert verify("-q", "--git", "HEAD", "a/p.yaml")[0] == DIFFERENT


GIT_BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "no such revision": (("--git", "nowhere"), "--git: git rev-parse: fatal: "),
    "an option as a revision": (("--git=--help",), "--git: git rev-parse: fatal: "),
    "a path that is on neither side": (("--git", "HEAD", "z.yaml"), "z.yaml: is not there"),
    "a path outside": (("--git", "HEAD", "a", "/"), "/: is not in the repository"),
}


@pytest.mark.parametrize(("given", "words"), GIT_BAD.values(), ids=GIT_BAD)
@pytest.mark.usefixtures("repository")
def test_bad_input_of_git(given: tuple[str, ...], words: str, verify: Verify) -> None:
    code, said = verify(*given)
    assert (code, words in said) == (ERROR, True), said


def test_stdin(tmp_path: Path) -> None:
    written(tmp_path, {"old.yaml": old()})
    done = subprocess.run(
        [sys.executable, "-m", "webhook", "verify", "old.yaml", "-"],
        input=new(), capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (EQUAL, "stdin: Pod/p: equal\n1 compared: 1 equal\n")


def test_files_beside_a_kustomization_are_compared_too(verify: Verify, tmp_path: Path) -> None:
    builds(tmp_path)
    written(tmp_path / "old", {**KUSTOMIZATION, "base/other.yaml": old("x")})
    written(
        tmp_path / "new", {**KUSTOMIZATION, "base/pod.yaml": new(), "base/other.yaml": new("x")}
    )
    code, said = verify("old/base", "new/base")
    assert code == EQUAL
    assert said.splitlines()[:2] == ["new/base: Pod/p: equal", "new/base/other.yaml: Pod/x: equal"]


def test_a_document_is_compared_by_its_blocks(verify: Verify, tmp_path: Path) -> None:
    """Prose is applied to no cluster; another block may be."""
    prose = "# alpha.kubernetes.io/nvidia-gpu\n\n```sh\nkubectl get pods\n```\n"
    shell = f"\n```sh\nkubectl apply -f - <<EOF\n{old()}EOF\n```\n"
    twice = old().replace("image: i", "image: i\n    image: j")
    written(
        tmp_path,
        {
            "twice.md": f"{prose}```yaml\n{twice}```\n",
            "old.md": f"{prose}```yaml\n{old()}```\n",
            "new.md": f"{prose}```yaml\n{new()}```\n",
            "shell.md": f"{prose}```yaml\n{new()}```\n{shell}",
        },
    )
    assert verify("old.md", "new.md") == (EQUAL, "new.md: Pod/p: equal\n1 compared: 1 equal\n")
    assert verify("old.md", "old.md")[0] == DIFFERENT
    assert verify("old.md", "shell.md")[0] == NOT_PROVABLE
    assert "image occurs twice" in verify("twice.md", "new.md")[1]


def test_attributes_of_git_leave_nothing_out(repository: Path, verify: Verify) -> None:
    """`git archive` would; a link stays a link."""
    written(repository, {".gitattributes": "a export-ignore\n"})
    (repository / "link.yaml").symlink_to("/etc/hostname")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "y")
    (repository / "link.yaml").unlink()
    written(repository, {"a/p.yaml": new()})
    code, said = verify("--git", "HEAD", "a")
    assert (code, said) == (EQUAL, "a/p.yaml: Pod/p: equal\n1 compared: 1 equal\n")
