"""`gpu-webhook scan`: what it looks at, what it says where, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
import yaml

from webhook.cli.flags import FORMATS
from webhook.cli.main import main

if TYPE_CHECKING:
    from tests.cli.conftest import Command

ROOT = Path(__file__).parents[2]
LEGACY = """\
apiVersion: v1
kind: Pod
metadata:
  name: legacy
spec:
  containers:
  - name: main
    image: cuda
    resources:
      limits:
        alpha.kubernetes.io/nvidia-gpu: 1 # one is enough
  tolerations:
  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
"""
MANUAL = LEGACY.replace("gpu: 1 #", 'gpu: "{" #').replace("name: legacy", "name: odd")
CLEAN = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"


def put(folder: Path, **files: str) -> None:
    """Write files; __ stands for a slash, and `.yaml` is added."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(["clean.yaml"], 0, id="nothing found"),
        pytest.param(["legacy.yaml"], 2, id="what can be fixed"),
        pytest.param(["-f", "legacy.yaml"], 2, id="the same by -f"),
        pytest.param(["odd.yaml"], 3, id="what needs manual changes"),
        pytest.param(["legacy.yaml", "odd.yaml"], 3, id="a person beats what can be fixed"),
        pytest.param(["odd.yaml", "nowhere.yaml"], 1, id="an error beats both"),
        pytest.param(["legacy.yaml", "--fail-on=manual"], 0, id="only a person's work fails"),
        pytest.param(["odd.yaml", "--fail-on=manual"], 3, id="and it does"),
        pytest.param(["odd.yaml", "--exit-zero"], 0, id="findings are no failure"),
        pytest.param(["nowhere.yaml", "--exit-zero"], 1, id="errors are, all the same"),
        pytest.param(["."], 3, id="a folder"),
        pytest.param(["l*.yaml"], 2, id="a glob"),
        pytest.param(["--ignore-rule=GPU101", "legacy.yaml"], 0, id="a rule that is not asked"),
        pytest.param(["--rule=legacy-resource", "legacy.yaml"], 2, id="a rule by its name"),
        pytest.param(["--rule=GPU105,gpu101", "legacy.yaml"], 2, id="rules with a comma"),
        pytest.param(["--rule=GPU105", "legacy.yaml"], 0, id="only another rule"),
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_the_exit_code_is_the_same_in_every_format(
    words: list[str], code: int, form: str, gpu_webhook: Command, tmp_path: Path
) -> None:
    put(tmp_path, clean=CLEAN, legacy=LEGACY, odd=MANUAL)
    assert gpu_webhook("scan", *words, "-o", form).code == code


def test_the_text_names_place_code_and_cure(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, legacy=LEGACY)
    done = gpu_webhook("scan", "legacy.yaml")
    assert done.err == ""
    assert "legacy.yaml:11:9: GPU101 " in done.out
    assert "11 +         nvidia.com/gpu: 1 # one is enough" in done.out
    assert (tmp_path / "legacy.yaml").read_text() == LEGACY


def test_diff_shows_before_and_after(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, legacy=LEGACY)
    done = gpu_webhook("scan", "--diff", "legacy.yaml")
    assert "\n-        alpha.kubernetes.io/nvidia-gpu: 1 # one is enough\n" in done.out
    assert "\n+        nvidia.com/gpu: 1 # one is enough\n" in done.out


@pytest.mark.parametrize(
    ("words", "deep"),
    [
        pytest.param((".",), True, id="a folder stands for all below it"),
        pytest.param(("-f", "."), True, id="also with -f"),
        pytest.param(("-R", "-f", "."), True, id="-R is accepted, as kubectl has it"),
        pytest.param(("--recursive", "."), True, id="--recursive is accepted"),
        pytest.param(("--no-recursive", "."), False, id="--no-recursive leaves subfolders out"),
    ],
)
def test_subfolders_are_searched(
    words: tuple[str, ...], *, deep: bool, gpu_webhook: Command, tmp_path: Path
) -> None:
    put(tmp_path, a=LEGACY, below__b=LEGACY, below__deep__c=LEGACY)
    below = {"below/b.yaml", "below/deep/c.yaml"} if deep else set()
    for command in ("scan", "migrate"):
        assert found_in(gpu_webhook(command, *words, "-o", "json").out) == {"a.yaml", *below}


@pytest.mark.parametrize("command", ["scan", "migrate"])
def test_where_nothing_was_looked_at_it_says_so(
    command: str, gpu_webhook: Command, tmp_path: Path
) -> None:
    put(tmp_path, below__b=LEGACY)
    done = gpu_webhook(command, "--no-recursive", ".")
    assert done.code == 0
    assert "no file was checked" in done.err
    assert "no file was checked" not in gpu_webhook(command, ".").err


def test_a_loop_of_links_is_skipped_and_is_no_error(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY)
    (tmp_path / "itself.yaml").symlink_to("itself.yaml")
    (tmp_path / "up").symlink_to("../" + tmp_path.name)
    done = gpu_webhook("scan", ".")
    assert (done.code, done.out.count(" skipped: ")) == (2, 2)
    assert gpu_webhook("scan", "itself.yaml").code == 1, "named, it is one"


def test_what_is_excluded_or_ignored_is_not_looked_at(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY, vendor__b=LEGACY, ignored__c=LEGACY, old=LEGACY)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("ignored/\n")
    words = ["scan", "-R", ".", "-o", "json", "--exclude", "vendor/", "--exclude=old.*"]
    assert found_in(gpu_webhook(*words).out) == {"a.yaml"}


def test_a_kustomization_means_the_files_it_is_made_of(
    gpu_webhook: Command, tmp_path: Path
) -> None:
    put(tmp_path, base__pod=LEGACY, base__stray=LEGACY)
    put(
        tmp_path,
        base__kustomization="resources: [pod.yaml]",
        prod__kustomization="bases: [../base, ../gone]",
    )
    done = gpu_webhook("scan", "-k", "prod")
    assert "base/pod.yaml:11:9: GPU101 " in done.out
    assert "stray" not in done.out
    assert "prod/kustomization.yaml: skipped: ../gone does not exist" in done.out


def found_in(out: str) -> set[str]:
    return {each["path"] for each in json.loads(out)["files"]}


def test_stdin_is_a_file_like_any_other(gpu_webhook: Command) -> None:
    assert gpu_webhook("scan", "-f", "-", stdin=CLEAN) == (0, "no findings in 1 file\n", "")
    done = gpu_webhook("scan", "-f", "-", stdin=LEGACY)
    assert done.code == 2
    assert "stdin:11:9: GPU101 " in done.out


def test_several_reports_at_once(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, legacy=LEGACY)
    words = [f"--output-file={form}=report.{form}" for form in FORMATS]
    done = gpu_webhook("scan", "legacy.yaml", *words, "-o", "json")
    made = {form: (tmp_path / f"report.{form}").read_text() for form in FORMATS}
    assert made["json"] == done.out
    assert all("GPU101" in text for text in made.values())
    assert json.loads(made["sarif"])["version"] == "2.1.0"
    assert yaml.safe_load(made["yaml"]) == json.loads(made["json"])
    assert ET.fromstring(made["junit"]).tag == "testsuites"  # noqa: S314  # our own
    assert made["github"].startswith("::")
    assert made["html"].startswith("<!doctype html>")


def test_paths_for_programs_are_those_of_the_repository(
    gpu_webhook: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, deploy__legacy=LEGACY)
    (tmp_path / ".git").mkdir()
    gpu_webhook("--version")
    monkeypatch.chdir(tmp_path / "deploy")
    words = [
        "--output-file=sarif=s.sarif",
        "--output-file=github=g.txt",
        "--output-file=text=t.txt",
    ]
    assert main(["scan", "legacy.yaml", *words, "-o", "junit"]) == 2
    result = json.loads(Path("s.sarif").read_text())["runs"][0]["results"][0]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == "deploy/legacy.yaml"
    assert "file=deploy/legacy.yaml" in Path("g.txt").read_text()
    assert Path("t.txt").read_text().startswith("legacy.yaml:"), "people see what they typed"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no files are named: write files or folders"),
        (["-o", "xml", "x"], "'xml' is not one of 'text', 'wide'"),
        (["--output-file=pdf=x", "x"], "'pdf=x': write FORMAT=FILE"),
        (["--output-file=json=no/x", "x"], "there is no folder no"),
        (["--rule=GPU1O1", "x"], "there is no rule 'GPU1O1'; did you mean GPU1"),
        (["--ignore-rule=legacy-resorce", "x"], "did you mean legacy-resource?"),
        (["--target-version=2.0", "x"], "'2.0' is not a Kubernetes version: write 1.36"),
        (["--fail-on=all", "x"], "'all' is not one of 'fixable', 'manual'"),
        (["--diff", "-o", "sarif", "x"], "--diff prints text"),
        (["-n", "x", "x"], "--namespace is only for clusters: add --cluster"),
        (["--cluster", "x"], "leave out the files"),
        (["--cluster", "-A", "-n", "x"], "leave one out"),
        (["-k", "."], "holds no kustomization.yaml"),
        (["--config=none.yaml", "x"], "none.yaml: cannot be read"),
    ],
)
def test_bad_usage_is_one_line_with_the_cure(
    words: list[str], said: str, gpu_webhook: Command
) -> None:
    done = gpu_webhook("scan", *words)
    assert (done.code, done.out) == (1, "")
    assert said in done.err.splitlines()[-1]


def test_flags_may_be_variables(
    gpu_webhook: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, a=LEGACY, b=LEGACY, c=LEGACY)
    monkeypatch.setenv("GPU_WEBHOOK_SCAN_OUTPUT", "json")
    assert found_in(gpu_webhook("scan", "a.yaml", "-f=b.yaml").out) == {"a.yaml", "b.yaml"}
    assert gpu_webhook("review", "-f", "a.yaml").code == 2, "it has no format json of its own"
    monkeypatch.setenv("GPU_WEBHOOK_SCAN_IGNORE_RULE", "GPU101")
    assert gpu_webhook("scan", "a.yaml").code == 0


def test_settings_add_names(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY.replace("alpha.kubernetes.io/nvidia-gpu", "example.org/gpu"))
    (tmp_path / "s.yaml").write_text("resources: {legacy: [example.org/gpu]}")
    assert gpu_webhook("scan", "a.yaml").code == 0
    assert gpu_webhook("scan", "a.yaml", "--config=s.yaml").code == 2


def test_help_and_start_do_not_load_what_they_do_not_need() -> None:
    """`--help` starts in under 0.2 s; a test that asserts no time asserts what takes it."""
    program = "import sys; import webhook.cli.main; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {
        "yaml",
        "rich",
        "kubernetes",
        "flask",
        "orjson",
        "webhook.rules",
        "urllib3",
    }


NODE = """\
apiVersion: v1
kind: Node
metadata: {name: a, labels: {pool: k80}}
status: {allocatable: {nvidia.com/gpu: "4"}}
"""
OPEN = LEGACY.replace("alpha.kubernetes.io/nvidia-gpu: 1 #", 'nvidia.com/gpu: "$(N)" #')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["open.yaml"], "1 file has a GPU pod that is", id="a placeholder"),
        pytest.param(
            ["open.yaml", "also.yaml"], "2 files have GPU pods that are", id="in two files"
        ),
        pytest.param(["open.yaml", "--rule=GPU301"], "1 file has", id="by the rule itself"),
        pytest.param(["open.yaml", "--rule=GPU101"], "", id="by a rule that compares nothing"),
        pytest.param(["known.yaml"], "", id="no placeholder"),
    ],
)
def test_it_warns_once_of_pods_that_are_not_compared_with_nodes(
    words: list[str], said: str, gpu_webhook: Command, tmp_path: Path
) -> None:
    known = OPEN.replace("$(N)", "1")
    put(tmp_path, open=OPEN, also=f"{OPEN}---\n{OPEN}", known=known, nodes=NODE)
    done = gpu_webhook("scan", "--inventory", "nodes.yaml", *words)
    assert (done.code, done.err.count("not compared with the nodes")) == (0, bool(said))
    assert said in done.err
    assert "not compared" not in gpu_webhook("scan", *words).err


def test_no_workload_of_ours_counts_as_legacy(gpu_webhook: Command) -> None:
    """`scan --cluster` would never end with "0 of ... objects are legacy" where it is installed."""
    deployment = ROOT / "manifests" / "base" / "deployment.yaml"
    assert gpu_webhook("scan", "-f", str(deployment)).code == 0
