"""`gpu-webhook migrate`: what it prints where, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_scan import CLEAN, LEGACY, MANUAL, put
from webhook.formats import migrate

if TYPE_CHECKING:
    from tests.cli.conftest import Command
    from webhook.files.results import Plan
    from webhook.files.source import Source

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
MIGRATED = LEGACY.replace("alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu")
DIFF = """\
--- a/legacy.yaml
+++ b/legacy.yaml
@@ -8,6 +8,6 @@
     image: cuda
     resources:
       limits:
-        alpha.kubernetes.io/nvidia-gpu: 1 # one is enough
+        nvidia.com/gpu: 1 # one is enough
   tolerations:
   - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
"""


def test_without_write_it_prints_the_diff_and_changes_nothing(
    gpu_webhook: Command, tmp_path: Path
) -> None:
    put(tmp_path, legacy=LEGACY, clean=CLEAN)
    done = gpu_webhook("migrate", "-f", ".")
    assert (done.code, done.out) == (2, DIFF)
    assert "1 can be fixed" in done.err
    assert done.err.endswith("Nothing is written yet: add --write.\n")
    assert (tmp_path / "legacy.yaml").read_text() == LEGACY


def test_the_diff_is_a_patch_that_git_applies(gpu_webhook: Command, tmp_path: Path) -> None:
    texts = {
        "plain": LEGACY,
        "no newline": LEGACY.rstrip("\n"),
        "a folder__with blanks": LEGACY,
        "crlf": LEGACY.replace("\n", "\r\n"),
        "bom": f"\ufeff{LEGACY}",
        "tab\tand ünïcode": LEGACY,
        "first line": "\ufeff"
        + LEGACY.replace("apiVersion: v1\nkind: Pod\n", "")
        .replace("metadata:", '{"apiVersion": "v1", "kind": "Pod", "metadata":', 1)
        .partition("\n")[0]
        + ' {"name": "x"}, "spec": {"containers": [{"name": "c", "resources":'
        ' {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}}]}}\n',
    }
    put(tmp_path, **texts)
    patch = gpu_webhook("migrate", "-R", ".").out
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    applied = {path: path.read_bytes() for path in tmp_path.rglob("*.yaml")}
    assert len(applied) == len(texts)
    put(tmp_path, **texts)
    assert gpu_webhook("migrate", "-R", ".", "-w").code == 0
    assert applied == {path: path.read_bytes() for path in tmp_path.rglob("*.yaml")}
    assert all(b"alpha" not in content for content in applied.values())


def test_write_changes_the_files_and_is_done(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, legacy=LEGACY, clean=CLEAN, below__crlf=LEGACY.replace("\n", "\r\n"))
    (tmp_path / "legacy.yaml").chmod(0o640)
    (tmp_path / "link.yaml").symlink_to("legacy.yaml")
    done = gpu_webhook("migrate", "-R", "-f", ".", "--write")
    assert done.code == 0
    assert "legacy.yaml:11:9: GPU101 " in done.out
    assert "2 fixed" in done.out
    assert (tmp_path / "legacy.yaml").read_text() == MIGRATED
    assert (tmp_path / "below" / "crlf.yaml").read_bytes() == MIGRATED.replace(
        "\n", "\r\n"
    ).encode()
    assert stat.S_IMODE((tmp_path / "legacy.yaml").stat().st_mode) == 0o640
    assert (tmp_path / "link.yaml").is_symlink()
    again = gpu_webhook("migrate", "-R", "-f", ".", "--write")
    assert again.code == 0
    assert "no findings" in again.out


def applied(folder: Path, patch: str) -> None:
    """What git makes of the patch."""
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    subprocess.run(["git", "apply", "--index", "-"], cwd=folder, input=patch.encode(), check=True)


@pytest.mark.parametrize(
    "named", [["-R", "."], ["a"], ["a/link.yaml"], ["a/flow.yaml", "a/link.yaml"], ["b/x.yaml"]]
)
def test_the_patch_names_files_and_no_links(
    gpu_webhook: Command, tmp_path: Path, named: list[str]
) -> None:
    put(tmp_path, a__flow=LEGACY)
    (tmp_path / "a/link.yaml").symlink_to("flow.yaml")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "a/x.yaml").symlink_to("flow.yaml")
    done = gpu_webhook("migrate", *named)
    assert (done.code, done.out.count("+++ b/a/flow.yaml\n"), done.out.count("+++ ")) == (2, 1, 1)
    assert "in 1 of 1 file" in done.err
    applied(tmp_path, done.out)
    assert (tmp_path / "a/flow.yaml").read_text() == MIGRATED
    assert (tmp_path / "a/link.yaml").is_symlink()


def test_a_link_that_leads_out_of_the_folder_is_read_and_not_written(
    gpu_webhook: Command, tmp_path: Path
) -> None:
    put(tmp_path, a__x=LEGACY, outside=LEGACY)
    (tmp_path / "a/link.yaml").symlink_to("../outside.yaml")
    printed = gpu_webhook("migrate", "a")
    assert (printed.code, printed.out.count("+++ ")) == (3, 1)
    written = gpu_webhook("migrate", "-w", "a")
    assert written.code == 3
    assert "a/link.yaml:11:9: GPU101 " in written.out
    assert f"the link leads to {tmp_path}/outside.yaml" in written.out
    assert (tmp_path / "outside.yaml").read_text() == LEGACY
    assert (tmp_path / "a/x.yaml").read_text() == MIGRATED
    assert gpu_webhook("scan", "a").code == 3
    assert gpu_webhook("migrate", "-w", "a/link.yaml").code == 0, "named, it is written"
    assert (tmp_path / "outside.yaml").read_text() == MIGRATED
    assert (tmp_path / "a/link.yaml").is_symlink()


def test_a_kustomization_is_read_through_links(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, base__pod=LEGACY)
    (tmp_path / "k").mkdir()
    (tmp_path / "k/kustomization.yaml").write_text("resources: [pod.yaml]\n")
    (tmp_path / "k/pod.yaml").symlink_to("../base/pod.yaml")
    assert gpu_webhook("migrate", "-k", "k").out.count("+++ b/base/pod.yaml\n") == 1
    assert gpu_webhook("migrate", "-w", "-k", "k").code == 0
    assert (tmp_path / "base/pod.yaml").read_text() == MIGRATED


def test_a_file_with_nothing_to_do_is_not_written(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, clean=CLEAN, odd=MANUAL, migrated=MIGRATED)

    def state() -> dict[Path, tuple[int, ...]]:
        found = {path: path.stat() for path in tmp_path.iterdir()}
        return {path: (s.st_ino, s.st_mtime_ns, s.st_ctime_ns) for path, s in found.items()}

    before = state()
    assert gpu_webhook("migrate", "-w", ".").code == 3
    assert state() == before


def test_check_names_the_files_only(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY, b=CLEAN, c=LEGACY)
    done = gpu_webhook("migrate", "--check", ".")
    assert (done.code, done.out) == (2, "a.yaml\nc.yaml\n")
    assert (tmp_path / "a.yaml").read_text() == LEGACY
    assert gpu_webhook("migrate", "--check", "b.yaml").code == 0


def test_what_needs_a_person_is_told_on_stderr(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, legacy=LEGACY, odd=MANUAL)
    done = gpu_webhook("migrate", ".")
    assert (done.code, done.out) == (3, DIFF)
    assert "odd.yaml:11:9: GPU101 " in done.err
    assert "legacy.yaml:" not in done.err


@pytest.mark.parametrize("form", ["text", "json", "sarif", "markdown"])
def test_a_report_takes_the_place_of_the_diff(
    form: str, gpu_webhook: Command, tmp_path: Path
) -> None:
    put(tmp_path, legacy=LEGACY)
    done = gpu_webhook("migrate", ".", "-o", form)
    assert (done.code, done.err) == (2, "")
    assert "GPU101" in done.out
    assert not done.out.startswith("---")


def test_write_and_a_report_says_what_was_fixed(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, legacy=LEGACY, odd=MANUAL)
    done = gpu_webhook("migrate", ".", "-w", "-o", "json")
    summary = json.loads(done.out)["summary"]
    assert done.code == 3
    assert (summary["fixed"], summary["fixable"], summary["manual"]) == (1, 0, 1)


def test_write_with_diff_prints_what_it_wrote(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, legacy=LEGACY)
    done = gpu_webhook("migrate", ".", "-w", "--diff")
    assert done.out.startswith(DIFF)
    assert (tmp_path / "legacy.yaml").read_text() == MIGRATED


@pytest.mark.parametrize(
    ("text", "expected", "code"),
    [
        pytest.param(LEGACY, MIGRATED, 0, id="the new text"),
        pytest.param(CLEAN, CLEAN, 0, id="nothing to do: as it came"),
        pytest.param(MANUAL, MANUAL, 3, id="a person's: as it came"),
        pytest.param(f"\ufeff{LEGACY}", f"\ufeff{MIGRATED}", 0, id="a byte order mark"),
        pytest.param(
            LEGACY.replace("\n", "\r\n"), MIGRATED.replace("\n", "\r\n"), 0, id="line ends"
        ),
        pytest.param("a: [\n", "a: [\n", 0, id="no YAML, and none of ours: as it came"),
    ],
)
def test_a_filter_prints_the_new_text(
    text: str, expected: str, code: int, gpu_webhook: Command
) -> None:
    done = gpu_webhook("migrate", "-f", "-", stdin=text)
    assert (done.out, done.code) == (expected, code)


def test_a_filter_keeps_stdout_for_the_text(gpu_webhook: Command) -> None:
    done = gpu_webhook("migrate", "-", stdin=MANUAL)
    assert done.out == MANUAL
    assert "stdin:11:9: GPU101 " in done.err


@pytest.mark.parametrize(
    ("words", "out", "code"),
    [
        (["--diff"], DIFF.replace("legacy.yaml", "stdin"), 2),
        (["--check"], "stdin\n", 2),
        (["--exit-zero", "--check"], "stdin\n", 0),
    ],
)
def test_a_filter_that_is_asked_for_something_else(
    words: list[str], out: str, code: int, gpu_webhook: Command
) -> None:
    done = gpu_webhook("migrate", "-f", "-", *words, stdin=LEGACY)
    assert (done.out, done.code) == (out, code)


def test_a_filter_of_no_text_prints_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "webhook", "migrate", "-f", "-"],
        cwd=ROOT,
        input=b"kind: \xff\xfe",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"stdin: error: is not UTF-8 (byte 6)" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-f", "-", "-f", "x"], "- must be the only file"),
        (["-f", "-", "-w"], "- cannot be written"),
        (["-w", "--check", "x"], "--write and --check: leave one out"),
        ([], "no files are named"),
    ],
)
def test_bad_usage(words: list[str], said: str, gpu_webhook: Command) -> None:
    done = gpu_webhook("migrate", *words)
    assert (done.code, done.out) == (1, "")
    assert said in done.err


def test_unsafe_edits_are_made_if_asked_for(gpu_webhook: Command, tmp_path: Path) -> None:
    quota = (
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec:\n  hard:\n"
        "    requests.alpha.kubernetes.io/nvidia-gpu: 4\n"
    )
    put(tmp_path, quota=quota)
    assert gpu_webhook("migrate", "quota.yaml").code == 3
    done = gpu_webhook("migrate", "quota.yaml", "--unsafe")
    assert "+    requests.nvidia.com/gpu: 4\n" in done.out


def test_what_still_works_on_the_target_is_left(gpu_webhook: Command, tmp_path: Path) -> None:
    """batch/v1beta1 went with 1.25."""
    put(tmp_path, cron=CRON)
    today, then = (
        gpu_webhook("migrate", ".", *words).out for words in ([], ["--target-version=v1.24.1"])
    )
    assert "+apiVersion: batch/v1\n" in today
    assert "apiVersion" not in "".join(line for line in then.splitlines() if line[0] in "+-")
    assert "+            resources: {limits: {nvidia.com/gpu: 1}}" in then


CRON = """\
apiVersion: batch/v1beta1
kind: CronJob
metadata: {name: c}
spec:
  schedule: 0 0 1 1 *
  jobTemplate:
    spec:
      template:
        spec:
          tolerations: [{key: nvidia.com/gpu, operator: Exists}]
          restartPolicy: Never
          containers:
          - name: main
            resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}
"""


def test_values_of_a_chart_are_all_read_before_one_is_written(
    gpu_webhook: Command, tmp_path: Path
) -> None:
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 0.1.0\n")
    values = "resources:\n  requests:\n    alpha.kubernetes.io/nvidia-gpu: {}\n"
    for name, amount in (("values", 2), ("values-a", 1), ("values-b", 4)):
        (tmp_path / f"{name}.yaml").write_text(values.format(amount))
    done = gpu_webhook("migrate", ".", "-w")
    assert done.code == 0
    for file in tmp_path.glob("values*"):
        assert "alpha.kubernetes.io" not in file.read_text()
        assert "limits:" in file.read_text()


def test_a_file_that_we_fail_on_does_not_stop_the_others(
    gpu_webhook: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an error of our own making: there is no input that would make us fail, that we know."""
    real = migrate._format

    def format_(source: Source, plan: Plan) -> migrate.Format:
        if source.path == "b.json":
            raise ZeroDivisionError
        return real(source, plan)

    monkeypatch.setattr(migrate, "_format", format_)
    put(tmp_path, a=LEGACY)
    (tmp_path / "b.json").write_text('{"nvidia": 1}')
    done = gpu_webhook("migrate", ".", "-w")
    assert done.code == 1
    assert "b.json: error: a bug in this program: nothing was changed in it; please" in done.out
    assert (tmp_path / "a.yaml").read_text() == MIGRATED


def test_a_read_only_file_is_left_and_told(gpu_webhook: Command, tmp_path: Path) -> None:
    """Root could write it, and must not, either."""
    put(tmp_path, a=LEGACY, b=LEGACY)
    (tmp_path / "a.yaml").chmod(0o444)
    done = gpu_webhook("migrate", ".", "-w")
    assert done.code == 1
    assert "a.yaml: error: is read-only: chmod u+w" in done.out
    assert (tmp_path / "a.yaml").read_text() == LEGACY
    assert (tmp_path / "b.yaml").read_text() == MIGRATED


# A signal at the 20th file, in a function that runs before or after the file gets its new text.
INTERRUPTED = """
import os, signal, sys
from itertools import count
from webhook.cli.main import main
from webhook.files import atomic_write
name, number, files = sys.argv.pop(1), int(sys.argv.pop(1)), count(1)
called = getattr(atomic_write, name)
def interrupt(*given):
    if next(files) == 20:
        os.kill(os.getpid(), number)
    return called(*given)
setattr(atomic_write, name, interrupt)
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("function", "files"),
    [
        pytest.param("_is_same", 19, id="the new text is beside the file"),
        pytest.param("_sync", 20, id="the new text has just got the name of the file"),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_is_interrupted_leaves_every_file_whole(
    function: str, files: int, number: int, tmp_path: Path
) -> None:
    """Ctrl-C in the middle of writing: 130, old or new texts, each new one named."""
    for each in range(40):
        put(tmp_path, **{f"{each:03}": LEGACY})
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, function, str(+number), "migrate", "-w", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    said = "".join(f"gpu-webhook: {tmp_path}/{n:03}.yaml is written\n" for n in range(files))
    assert (done.returncode, done.stderr.decode()) == (128 + number, said)
    texts = [path.read_text() for path in sorted(tmp_path.iterdir())]
    assert texts == [MIGRATED] * files + [LEGACY] * (40 - files), "and nothing is left beside them"


def test_a_signal_that_the_caller_ignores_stays_ignored(tmp_path: Path) -> None:
    """`nohup gpu-webhook migrate -w` goes on."""
    for each in range(40):
        put(tmp_path, **{f"{each:03}": LEGACY})
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "_sync", "1", "migrate", "-qw", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert done.returncode == 0
    assert {path.read_text() for path in tmp_path.iterdir()} == {MIGRATED}


def test_what_a_killed_run_has_left_is_named(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, a=MIGRATED)
    (tmp_path / ".a.yaml.gpu-webhook~").write_text("half")
    (tmp_path / "b.gpu-webhook~").write_text("of another program")
    done = gpu_webhook("migrate", ".", "-w")
    assert done.code == 0
    assert ".a.yaml.gpu-webhook~: skipped: a run that was killed has left this" in done.out
    assert "b.gpu-webhook~" not in done.out
    assert gpu_webhook("verify", ".", ".").code == 0
