"""Bad input: a clear line each, 1 at the end, and everything else is done.

Tests run as root in some places, who may read everything: what cannot be read is made so that root
cannot, either (a loop of links, a socket, a folder in place of a file); permissions proper are held
by a process that gives its rights up.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_migrate import MIGRATED
from tests.cli.test_scan import CLEAN, LEGACY, put

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Command

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
MEMORY = 600 << 20  # bytes of address space: far less than what some of these stand for
NOBODY = 65534

BOMB = "apiVersion: v1\nkind: Pod\nnvidia: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(12)
)
LOOP = "apiVersion: v1\nkind: Pod\nmetadata: &m {nvidia: *m}\n"


def sparse(path: Path) -> None:
    """1 GiB that takes no room on the disk, with a manifest at its beginning."""
    with path.open("wb") as file:
        file.write(LEGACY.encode())
        file.truncate(1 << 30)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def written(content: bytes | str) -> Callable[[Path], object]:
    raw = content.encode() if isinstance(content, str) else content
    return lambda path: path.write_bytes(raw)


# What stands for far more than its file has, or is nested too deeply: with little memory.
LARGE = {
    "a binary file": (written(b"nvidia.com/gpu\0\1\2"), "binary"),
    "1 GiB": (sparse, "has 1024 MiB or more"),
    "an alias bomb": (written(BOMB), "aliases"),
    "an endless alias": (written(LOOP), "holds itself|recursive|itself"),
    "brackets 100,000 deep": (written("kind: nvidia\na: " + "[" * 100_000), "deep"),
    "maps 1,500 deep": (
        written("".join(f"{' ' * n}{'kind' if n else 'nvidia'}:\n" for n in range(1_500))),
        "deep",
    ),
    "JSON 50,000 deep": (written('{"kind": "nvidia", "a":' * 50_000), "deep"),
}
SMALL: dict[str, tuple[Callable[[Path], object], str]] = {
    "a broken encoding": (written(b"kind: nvidia \xff\xfe"), "not UTF-8"),
    "an encoding of others": (written(LEGACY.encode("utf-16")), "UTF-16|binary"),
    "YAML that ends too early": (written("kind: nvidia\na: [\n"), "expected|parse|YAML"),
    "a control character": (written("kind: nvidia \a\n"), "character|YAML"),
    "a link loop": (lambda path: path.symlink_to(path.name), "loop of symbolic links"),
    "a dead link": (lambda path: path.symlink_to("gone"), "is not there|leads nowhere"),
    "a pipe that nobody writes to": (os.mkfifo, "a pipe"),
    "a socket": (a_socket, "a socket"),
}
WORDS = ("migrate", "--write", "a.yaml", "bad.yaml", "clean.yaml", "z.yaml")


@pytest.mark.parametrize(("make", "says"), LARGE.values(), ids=LARGE)
def test_each_is_a_clear_line_and_the_rest_is_done_in_little_memory(
    make: Callable[[Path], object], says: str, tmp_path: Path, gpu_webhook: Command
) -> None:
    put(tmp_path, a=LEGACY, z=LEGACY, clean=CLEAN)
    make(tmp_path / "bad.yaml")
    done = migrate(tmp_path, *WORDS[1:])
    assert_rest_is_done(tmp_path, says, done.returncode, done.stdout, done.stderr)
    assert gpu_webhook(*WORDS).code == 1, "and so it is the second time"


@pytest.mark.parametrize(("make", "says"), SMALL.values(), ids=SMALL)
def test_each_is_a_clear_line_and_the_rest_is_done(
    make: Callable[[Path], object], says: str, tmp_path: Path, gpu_webhook: Command
) -> None:
    put(tmp_path, a=LEGACY, z=LEGACY, clean=CLEAN)
    make(tmp_path / "bad.yaml")
    assert_rest_is_done(tmp_path, says, *gpu_webhook(*WORDS))
    assert gpu_webhook(*WORDS).code == 1, "and so it is the second time"


def assert_rest_is_done(folder: Path, says: str, code: int, out: str, err: str) -> None:
    lines = [line for line in out.splitlines() if line.startswith("bad.yaml:")]
    assert lines, out + err
    assert any(re.search(says, line) for line in lines), lines
    assert all(len(line) < 300 for line in lines)
    assert err == ""
    assert code == 1
    for name in ("a.yaml", "z.yaml"):
        assert (folder / name).read_text() == MIGRATED, "everything else is done"


def migrate(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it with little memory: what needs much more than its file is noticed."""
    return subprocess.run(
        [sys.executable, "-m", "webhook", "migrate", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )


def test_in_a_folder_all_of_them_together(tmp_path: Path) -> None:
    """What is met on the way and is no file of manifests needs no word, but hides nothing."""
    put(tmp_path, a=LEGACY, deep__z=LEGACY, bomb=BOMB, endless=LOOP)
    sparse(tmp_path / "large.yaml")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0nvidia")
    (tmp_path / "binary.yaml").write_bytes(b"nvidia\0")
    (tmp_path / "deep" / "up").symlink_to("..")
    (tmp_path / "self.yaml").symlink_to("self.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    done = migrate(tmp_path, "-w", "-R", ".")
    assert done.returncode == 1
    assert done.stderr == ""
    named = {line.partition(":")[0] for line in done.stdout.splitlines() if ".yaml:" in line}
    assert {"large.yaml", "binary.yaml", "bomb.yaml", "a.yaml", "deep/z.yaml"} <= named
    assert not any(name.startswith("deep/up") for name in named)
    assert (tmp_path / "a.yaml").read_text() == MIGRATED
    assert (tmp_path / "deep" / "z.yaml").read_text() == MIGRATED


def test_what_may_not_be_read_or_written_is_told(tmp_path: Path) -> None:
    """Root may read everything: the process becomes somebody else, or stays who it is."""
    folder = tmp_path
    user = os.geteuid() or NOBODY
    put(folder, a=LEGACY, secret=LEGACY, closed__b=LEGACY, fixed__c=LEGACY, z=LEGACY)
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o711)
    for path in folder.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    folder.chmod(0o777)
    (folder / "secret.yaml").chmod(0)
    (folder / "closed").chmod(0)
    (folder / "fixed").chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(ROOT), str(user), "migrate", "-w", "-R", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    (folder / "closed").chmod(0o755)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.partition("---\n")[2].splitlines()
    for name, why in (
        ("secret.yaml", "may not be read"),
        ("closed", "may not be read"),
        ("fixed/c.yaml", "cannot be written: Permission denied"),
    ):
        assert any(line.startswith(name) and why in line for line in lines), (name, lines)
    assert (folder / "a.yaml").read_text() == MIGRATED
    assert (folder / "z.yaml").read_text() == MIGRATED
    assert (folder / "fixed" / "c.yaml").read_text() == LEGACY


# All that it needs is loaded before the rights go: the interpreter itself may be in root's home,
# so a first run does the same work, and nothing is imported afterwards (codecs are imported, too).
_RUN = """
import importlib, os, pathlib, pkgutil, sys, tempfile
sys.path.insert(0, sys.argv.pop(1))
user = int(sys.argv.pop(1))
import webhook.cli.report_console
from webhook.cli.main import main
for room in ("yamlpatch", "files", "templates", "formats", "projects", "reports"):
    path = importlib.import_module(f"webhook.{room}").__path__
    for each in pkgutil.iter_modules(path, f"webhook.{room}."):
        importlib.import_module(each.name)
with tempfile.TemporaryDirectory() as first:
    pathlib.Path(first, "a.yaml").write_bytes(pathlib.Path("a.yaml").read_bytes())
    main(["migrate", first])
sys.stdout.flush()
print("---", flush=True)
os.setuid(user)
class Unreadable:
    def find_spec(self, name, *rest):
        raise ImportError(name + " is loaded after the rights went")
sys.meta_path.insert(0, Unreadable())
sys.exit(main())
"""


def test_stdin_without_end_is_not_read_for_ever(tmp_path: Path) -> None:
    command = f"yes nvidia | {sys.executable} -m webhook scan -f -"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "64 are read at most" in done.stdout


def test_names_that_break_lines_break_none(gpu_webhook: Command, tmp_path: Path) -> None:
    (tmp_path / "a\nb\x1b[31m.yaml").write_text(LEGACY)
    done = gpu_webhook("scan", ".")
    assert "a\\nb\\x1b[31m.yaml:11:9: GPU101" in done.out
    done = gpu_webhook("migrate", "--check", ".")
    assert done.code == 2


# Each is not JSON or YAML, and has a word that some rule looks for.
NO_MANIFESTS = {
    "a comma too many": ("version.json", '{"image": "nvidia/cuda:8.0",}\n'),
    "comments": ("settings.json", '{"image": "nvidia/cuda:8.0" // the base\n}\n'),
    "names without quotes": ("settings.json", '{image: "nvidia/cuda:8.0"}\n'),
    "a broken line of several": ("log.json", '{"image": "nvidia/cuda"}\n{"image": \n'),
    "tabs": ("a.yaml", "a:\n\timage: nvidia/cuda:8.0\n"),
    "a version for other programs": ("a.yaml", "# apps/v1beta1\na:\n\timage: x\n"),
    "JSON5": ("a.json5", "{image: 'nvidia/cuda:8.0',}\n"),
    "JSON with comments": ("a.jsonc", '{"image": "nvidia/cuda:8.0",} // x\n'),
}
BROKEN_MANIFESTS = {
    "a kind": ("a.json", '{"kind":"Pod","image":"nvidia/cuda:8.0",}\n'),
    "an API version": ("a.yaml", "apiVersion: v1\n\timage: nvidia/cuda:8.0\n"),
    "a legacy amount": ("a.json", '{"limits": {"alpha.kubernetes.io/nvidia-gpu": 1,}}\n'),
    "a manifest before it": ("a.yaml", f"{LEGACY}---\na:\n\timage: x\n"),
}


@pytest.mark.parametrize(("name", "text"), NO_MANIFESTS.values(), ids=NO_MANIFESTS)
def test_broken_data_of_other_programs_is_no_error(
    name: str, text: str, tmp_path: Path, gpu_webhook: Command
) -> None:
    (tmp_path / name).write_text(text)
    assert gpu_webhook("scan", ".").code == 0


@pytest.mark.parametrize(("name", "text"), BROKEN_MANIFESTS.values(), ids=BROKEN_MANIFESTS)
def test_a_broken_manifest_is_an_error(
    name: str, text: str, tmp_path: Path, gpu_webhook: Command
) -> None:
    (tmp_path / name).write_text(text)
    assert gpu_webhook("scan", ".").code == 1


def test_a_part_that_is_left_alone_is_no_error(tmp_path: Path, gpu_webhook: Command) -> None:
    label = '  labels: {gpu-webhook.dev/ignore: "true"}\n'
    opted_out = LEGACY.replace("metadata:\n", f"metadata:\n{label}", 1)
    assert opted_out != LEGACY
    (tmp_path / "a.yaml").write_text(f"{opted_out}---\n{LEGACY}")
    assert gpu_webhook("scan", ".").code == 2
