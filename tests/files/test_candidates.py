"""Which files are meant, and what is said of what is no file to read; on a real file system."""

from __future__ import annotations

import os
import socket
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.files.trees import LEGACY, open_folder, tree, without_rights
from webhook.files import candidates, reading
from webhook.files.folder import is_searched
from webhook.files.reading import UnreadableError, read_regular
from webhook.files.results import FileResult, Skipped

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = (LEGACY.encode(),)
X = LEGACY  # a text of interest


def met(
    *arguments: str | Path, recursive: bool = True, exclude: Sequence[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """(files, what is said of other things) as they come."""
    wanted = candidates.Wanted(list(map(str, arguments)), recursive, exclude)
    found: list[str] = []
    told: dict[str, str] = {}
    for each in candidates.candidates(wanted, WORDS):
        if isinstance(each, FileResult):
            told[each.path] = each.error or each.skipped[0].reason
        else:
            found.append(each)
    return found, told


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def here() -> Path:
    return Path.cwd()


_TREE = {
    "a.yaml": X, "b/c.yml": X, "b/d/e.json": X, "b.yaml": X, "B/x.yaml": X, "b/plain.yaml": "x",
    "b/.hidden.yaml": X, ".github/workflows/ci.yml": X,
}  # fmt: skip
_ORDER = [
    "a.yaml", "b.yaml", ".github/workflows/ci.yml", "B/x.yaml", "b/.hidden.yaml", "b/c.yml",
    "b/d/e.json",
]  # fmt: skip


def test_a_folder_and_all_below_in_the_order_of_names(here: Path) -> None:
    tree(here, _TREE)
    assert met(".") == (_ORDER, {})
    assert met("./") == (_ORDER, {})
    assert met(here) == ([f"{here}/{name}" for name in _ORDER], {})


def test_without_recursive_a_folder_means_its_own_files(here: Path) -> None:
    tree(here, _TREE)
    assert met(".", recursive=False) == (["a.yaml", "b.yaml"], {})
    assert met("b/", recursive=False) == (["b/.hidden.yaml", "b/c.yml"], {})


def test_arguments_keep_their_order(here: Path) -> None:
    tree(here, _TREE)
    assert met("b.yaml", "B", "a.yaml")[0] == ["b.yaml", "B/x.yaml", "a.yaml"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.yaml", ["a.yaml", "b.yaml"]),
        ("[bB]/*.y*ml", ["B/x.yaml", "b/c.yml"]),
        ("b/**/*.json", ["b/d/e.json"]),
        ("?", ["B/x.yaml", "b/.hidden.yaml", "b/c.yml", "b/d/e.json"]),
    ],
)
def test_globs_that_no_shell_has_expanded(here: Path, pattern: str, expected: list[str]) -> None:
    tree(here, _TREE)
    assert met(pattern)[0] == expected


def test_a_name_that_looks_like_a_glob(here: Path) -> None:
    tree(here, {"[a].yaml": X, "a.yaml": X})
    assert met("[a].yaml")[0] == ["[a].yaml"]


def test_nothing_is_met_twice(here: Path) -> None:
    tree(here, _TREE)
    found, told = met("b", "b/c.yml", "b/d", ".", "./b.yaml", here / "a.yaml", "b")
    assert len(found) == len(set(map(os.path.realpath, found))) == len(_ORDER)
    assert not told
    assert found[:3] == ["b/.hidden.yaml", "b/c.yml", "b/d/e.json"]


def test_standard_input_takes_its_turn(here: Path) -> None:
    tree(here, {"a.yaml": X, "b.yaml": X})
    assert met("b.yaml", "-", "a.yaml", "-")[0] == ["b.yaml", "-", "a.yaml"]


ANY = [
    *("x.yaml", "x.json", "x.md", "x.tpl", "x.j2", "x.go", "x.py", "x.sh", "x.tf", "X.YAML"),
    *("x.rst", "x.adoc", "x.ipynb", "x.js", "x.proto", "x.html", "x.txt", "x.yaml.in", "x.png"),
    *("Dockerfile", "Jenkinsfile", "Makefile", "BUILD", "yaml", ".env", "x.injected"),
]


@pytest.mark.parametrize("name", ANY)
def test_a_text_of_any_name_is_searched(here: Path, name: str) -> None:
    tree(here, {name: X, f"b/{name}": "nothing"})
    assert met(".") == ([name], {})
    assert met(name)[0] == [name]


@pytest.mark.parametrize(
    "name", ["._x.yaml", ".x.yaml.swp", ".x.yaml.gpu-webhook~", "x.yaml~", "x.sarif"]
)
def test_what_programs_write_beside_a_file_is_searched_only_if_named(here: Path, name: str) -> None:
    assert not is_searched(name)
    tree(here, {name: X})
    (here / "a.yaml").symlink_to(name)
    assert met(".")[0] == [name], "or if a link leads to it"
    (here / "a.yaml").unlink()
    assert met(".")[0] == []
    assert met(name)[0] == [name]


def test_what_is_no_text_is_told_only_if_it_should_be_a_manifest(here: Path) -> None:
    binary = X.encode() + b"\0"
    tree(here, {"a.yaml": binary, "b.so": binary, "c": binary, "d.md": X})
    assert met(".") == (["a.yaml", "d.md"], {}), "reading tells why not"
    assert met("b.so", ".")[0] == ["b.so", "a.yaml", "d.md"], "or if it is named"


def test_a_large_file_that_should_not_be_a_manifest_is_skipped(here: Path) -> None:
    for name in ("a.yaml", "b.iso"):
        with (here / name).open("wb") as file:
            file.truncate(1 << 30)
    wanted = candidates.Wanted(["."])
    found = list(candidates.candidates(wanted, WORDS))
    reason = "has 64 MiB or more, 64 are read at most: split it, or leave it out with --exclude"
    assert found == ["a.yaml", FileResult("b.iso", skipped=(Skipped(reason),))]


def test_texts_that_are_only_searched_are_counted_by_the_ends_of_their_names(here: Path) -> None:
    names = ["a.rst", "b/b.rst", "c.RST", "Dockerfile", "x.yaml", "x.sh", "x.md", "y.go"]
    tree(here, dict.fromkeys(names, "nothing") | {"a.png": b"\0", "z.go": X})
    others: Counter[str] = Counter()
    list(candidates.candidates(candidates.Wanted(["."], recursive=True), WORDS, others=others))
    assert +others == {".rst": 3, "Dockerfile": 1, ".go": 2}


def test_folders_of_tools_are_not_entered(here: Path) -> None:
    tree(here, {f"{name}/x.yaml": X for name in (".git", "a/node_modules", ".terraform", "b")})
    assert met(".")[0] == ["b/x.yaml"]
    assert met("a/node_modules")[0] == ["a/node_modules/x.yaml"], "unless they are named"


@pytest.mark.parametrize(
    ("exclude", "expected"),
    [
        (["b"], ["a.yaml", "b.yaml", ".github/workflows/ci.yml", "B/x.yaml"]),
        (["b/", "a.yaml"], ["b.yaml", ".github/workflows/ci.yml", "B/x.yaml"]),
        (["*.yaml", "!b.yaml"], ["b.yaml", ".github/workflows/ci.yml", "b/c.yml", "b/d/e.json"]),
        (["/b/*", ".*"], ["a.yaml", "b.yaml", "B/x.yaml"]),
        (["b/d/e.json", "**/x.yaml"], [n for n in _ORDER if n not in {"b/d/e.json", "B/x.yaml"}]),
    ],
)
def test_exclude(here: Path, exclude: list[str], expected: list[str]) -> None:
    tree(here, _TREE)
    assert met(".", exclude=exclude)[0] == expected
    assert met(here, exclude=exclude)[0] == [f"{here}/{name}" for name in expected]


def test_exclude_holds_for_arguments_and_is_seen_from_here(here: Path) -> None:
    tree(here, _TREE)
    assert met("b/d/e.json", "a.yaml", exclude=["/b/d"])[0] == ["a.yaml"]
    assert met(here / "b/c.yml", "b/d", exclude=["b/*"])[0] == []
    assert met("b", exclude=["d"])[0] == ["b/.hidden.yaml", "b/c.yml"]


def test_what_is_ignored_can_be_named(here: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], check=True)
    tree(here, {".gitignore": "out/\n", "out/x.yaml": X, "y.yaml": X})
    assert met(".")[0] == ["y.yaml"]
    assert met("out")[0] == ["out/x.yaml"]
    assert met("out/x.yaml")[0] == ["out/x.yaml"]


LINKED = {
    "beside its target": ({"a.yaml": X}, {"b.yaml": "a.yaml"}, ["a.yaml"]),
    "before its target": ({"b.yaml": X}, {"a.yaml": "b.yaml"}, ["b.yaml"]),
    "in another folder": ({"a/x.yaml": X}, {"b/x.yaml": "../a/x.yaml"}, ["a/x.yaml"]),
    "to a link": ({"z.yaml": X}, {"a.yaml": "b.yaml", "b.yaml": "z.yaml"}, ["z.yaml"]),
    "through a linked folder": (
        {"v1/x.yaml": X}, {"now": "v1", "x.yaml": "now/x.yaml"}, ["v1/x.yaml"]
    ),
    "to a file that no walk names": ({"store/real": X}, {"a.yaml": "store/real"}, ["store/real"]),
    "twice to such a file": (
        {"store/real": X}, {"a.yaml": "store/real", "b.yaml": "store/real"}, ["store/real"]
    ),
    "to a folder that no walk enters": (
        {".terraform/x.yaml": X}, {"a.yaml": ".terraform/x.yaml"}, [".terraform/x.yaml"]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "links", "expected"), LINKED.values(), ids=LINKED)
def test_a_link_and_the_file_it_leads_to_are_one_file(
    here: Path, texts: dict[str, str], links: dict[str, str], expected: list[str]
) -> None:
    tree(here, texts)
    for link, target in links.items():
        (here / link).parent.mkdir(exist_ok=True)
        (here / link).symlink_to(target)
    assert met(".") == (expected, {})
    assert met(here) == ([f"{here}/{each}" for each in expected], {})
    (named,), _ = met(".", *links)
    assert os.path.realpath(named) == str(here / expected[0]), "named in all ways, it is met once"


def test_a_link_to_what_the_repository_ignores_is_the_file(here: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], check=True)
    tree(here, {".gitignore": "out/\n*.bak.yaml\n", "out/x.yaml": X, "y.bak.yaml": X})
    (here / "a.yaml").symlink_to("out/x.yaml")
    (here / "b.yaml").symlink_to("y.bak.yaml")
    assert met(".") == (["out/x.yaml", "y.bak.yaml"], {})


def test_without_recursive_a_link_leads_to_a_file_below(here: Path) -> None:
    tree(here, {"..v1/x.yaml": X})  # as a ConfigMap is mounted
    (here / "..data").symlink_to("..v1")
    (here / "x.yaml").symlink_to("..data/x.yaml")
    assert met(".", recursive=False) == (["..v1/x.yaml"], {})
    assert met(".") == (["..v1/x.yaml"], {})


def test_what_is_excluded_is_not_met_through_a_link(here: Path) -> None:
    tree(here, {"a/x.yaml": X})
    (here / "b.yaml").symlink_to("a/x.yaml")
    assert met(".", exclude=["a/"]) == ([], {})
    assert met(".", exclude=["b.yaml"]) == (["a/x.yaml"], {})


def test_a_link_from_one_folder_that_is_named_to_another(here: Path) -> None:
    tree(here, {"a/x.yaml": X, "c/y.yaml": X})
    (here / "b").mkdir()
    (here / "b/x.yaml").symlink_to("../a/x.yaml")
    (here / "b/c").symlink_to("../c")
    assert met("b", "a", "c") == (["a/x.yaml", "c/y.yaml"], {})
    assert met("b", "a/x.yaml", "c") == (["a/x.yaml", "c/y.yaml"], {})
    assert met("b", exclude=["c"]) == (["b/x.yaml"], {}), "it leads out of what was given"


def test_a_folder_that_is_named_by_two_ways_is_one(here: Path) -> None:
    tree(here, {"a/x.yaml": X})
    (here / "b").symlink_to("a")
    assert met("a", "b")[0] == met("b", "a")[0] == ["a/x.yaml"]
    assert met(".", "b")[0] == ["b/x.yaml"]


def test_links_that_lead_out_of_what_was_given(here: Path) -> None:
    tree(here, {"a/x.yaml": X, "b/y.yaml": X})
    (here / "a/in.yaml").symlink_to("x.yaml")
    (here / "a/out.yaml").symlink_to("../b/y.yaml")
    given = candidates.Wanted(["a"], recursive=True)
    assert met("a")[0] == ["a/x.yaml", "a/out.yaml"], "it is read, under its own name"
    assert candidates.leads_out("a/out.yaml", given) == str(here / "b/y.yaml")
    assert candidates.leads_out("a/x.yaml", given) == ""
    assert candidates.leads_out("a/out.yaml", candidates.Wanted(["a", "b"])) == ""
    named = candidates.Wanted(["./a/out.yaml"])
    assert candidates.leads_out("a/out.yaml", named) == "", "who names it means it"
    globbed = candidates.Wanted(["a/*"])
    assert candidates.leads_out("a/out.yaml", globbed) == "", "so does who names it by a glob"


def test_links_that_lead_nowhere(here: Path) -> None:
    (here / "gone.yaml").symlink_to("nothing")
    (here / "gone.png").symlink_to("nothing")
    (here / "itself.yaml").symlink_to("itself.yaml")
    (here / "to").symlink_to("fro")
    (here / "fro").symlink_to("to")
    found, told = met(".")
    assert not found
    assert told["gone.yaml"] == "is not there"
    loops = {name for name, words in told.items() if "loop of symbolic links" in words}
    assert loops == {"itself.yaml", "to", "fro"}
    assert "gone.png" not in told


def test_links_to_folders(here: Path) -> None:
    tree(here, {"root/a/x.yaml": X, "root/b/y.yaml": X, "outside/z.yaml": X})
    (here / "root/a/up").symlink_to("..")
    (here / "root/a/self").symlink_to(".")
    (here / "root/across").symlink_to("b")
    (here / "root/out").symlink_to("../outside")
    found, told = met("root")
    assert found == ["root/a/x.yaml", "root/b/y.yaml"], "each once, and it ends"
    assert "a loop" in told["root/a/up"]
    assert "a loop" in told["root/a/self"]
    assert "outside" in told["root/out"]
    assert "name it" in told["root/out"]
    assert "root/across" not in told, "the walk comes there"
    assert met("root/out")[0] == ["root/out/z.yaml"], "named, it is followed"
    assert met("root", exclude=["up", "self", "out"])[1] == {}


def test_what_is_no_file(here: Path) -> None:
    os.mkfifo(here / "pipe.yaml")
    os.mkfifo(here / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.yaml")
        found, told = met(".", "pipe", "/dev/zero", "/dev/null")
    assert not found
    assert "-f -" in told["pipe.yaml"]
    assert "-f -" in told["pipe"]
    assert "socket" in told["socket.yaml"]
    assert "device" in told["/dev/zero"]
    assert "device" in told["/dev/null"]


def test_arguments_that_are_not_there(here: Path) -> None:
    tree(here, {"a.yaml": X})
    found, told = met("nothing.yaml", "a.yaml", "no/*.yaml", "a.yaml/b", "x" * 5_000)
    assert found == ["a.yaml"]
    assert told["nothing.yaml"] == told["a.yaml/b"] == "is not there"
    assert "no/*.yaml" in told
    assert "too long" in told["x" * 5_000]


def test_a_name_that_is_not_utf8(here: Path) -> None:
    Path(os.fsdecode(b"h\xe4.yaml")).write_text(X)
    found, told = met(".")
    assert not found
    assert "rename" in told["h\\xe4.yaml"]
    assert here.exists()


def test_without_rights_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_folder() as folder:
        tree(folder, {"a/x.yaml": X, "b/x.yaml": X, "c.yaml": X, "d/x.yaml": X})
        (folder / "a").chmod(0)
        (folder / "c.yaml").chmod(0)
        (folder / "d").chmod(0o644)  # its names may be seen, its files not
        monkeypatch.chdir(folder)
        with without_rights():
            found, told = met(".")
            unread = {path: refused(path) for path in ("c.yaml", "d/x.yaml")}
        (folder / "a").chmod(0o755)
        (folder / "d").chmod(0o755)
    assert "b/x.yaml" in found
    assert "may not be read" in told["a/"]
    assert "c.yaml" in found, "reading tells why not"
    assert all("may not be read" in words for words in unread.values())


def refused(path: str) -> str:
    with pytest.raises(UnreadableError) as error:
        read_regular(path)
    return str(error.value)


def test_reading(here: Path) -> None:
    tree(here, {"x.yaml": b"\xff\0x"})
    raw, status = read_regular("x.yaml")
    assert (raw, status.st_size) == (b"\xff\0x", 3)
    assert refused("gone.yaml") == "is not there"
    assert refused(".") == "is a folder"
    os.mkfifo("pipe")
    assert "pipe" in refused("pipe")
    assert "device" in refused("/dev/zero")


def test_too_much_is_not_read(here: Path) -> None:
    with (here / "large.yaml").open("wb") as file:
        file.truncate(1 << 30)
    assert "1024 MiB" in refused("large.yaml")
    assert met(".")[0] == ["large.yaml"], "never silent"
    with Path("/dev/zero").open("rb") as endless, pytest.raises(UnreadableError):
        reading.read_all(endless, limit=1 << 22)


def test_a_file_that_vanishes_after_the_walk(here: Path) -> None:
    tree(here, {"a.yaml": X, "b.yaml": X})
    found = candidates.candidates(candidates.Wanted(["a.yaml", "b.yaml"]), WORDS)
    assert next(found) == "a.yaml"
    (here / "b.yaml").unlink()
    assert next(found) == "b.yaml"
    assert refused("b.yaml") == "is not there"


def test_a_folder_of_very_many_files_is_cut_into_lots(here: Path) -> None:
    tree(here, {f"{number:04}.yaml": X for number in range(600)})
    assert met(".")[0] == [f"{number:04}.yaml" for number in range(600)]
