"""Which files a kustomization is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from webhook.core.errors import InputError
from webhook.formats.kustomization import parts

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def named(folder: Path, start: str = ".") -> tuple[list[str], list[str]]:
    """The files, from the folder, and why others are not among them."""
    found = parts(str(folder / start))
    return (
        [each.removeprefix(f"{folder}/") for each in found.files],
        [why.replace(f"{folder}/", "") for _, why in found.missing],
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"kustomization.yaml": "resources: [a.yaml]", "a.yaml": "", "b.yaml": ""},
            ["kustomization.yaml", "a.yaml"],
            id="only what is named",
        ),
        pytest.param(
            {"kustomization.yml": "resources: [a.yaml]", "a.yaml": ""},
            ["kustomization.yml", "a.yaml"],
            id="the short ending",
        ),
        pytest.param(
            {"Kustomization": "resources: [a.yaml, a.yaml]", "a.yaml": ""},
            ["Kustomization", "a.yaml"],
            id="without an ending; a file that is named twice",
        ),
        pytest.param(
            {
                "kustomization.yaml": "bases: [base]\ncomponents: [part]\n",
                "base/kustomization.yaml": "resources: [a.yaml]",
                "base/a.yaml": "",
                "part/kustomization.yaml": "kind: Component\npatches: [{path: p.yaml}]",
                "part/p.yaml": "",
            },
            [
                "kustomization.yaml",
                "base/kustomization.yaml",
                "base/a.yaml",
                "part/kustomization.yaml",
                "part/p.yaml",
            ],
            id="bases and components with all of theirs",
        ),
        pytest.param(
            {
                "kustomization.yaml": "patchesStrategicMerge:\n- s.yaml\n- |-\n  a: b\n  c: d\n"
                "patchesJson6902:\n- path: j.json\n- patch: '[]'\npatches: [{patch: x}]\n"
                "replacements: [{path: r.yaml}]\nopenapi: {path: o.json}\n"
                "helmCharts: [{name: c, valuesFile: v.yaml, additionalValuesFiles: [w.yaml]}]\n",
                **dict.fromkeys(("s.yaml", "j.json", "r.yaml", "o.json", "v.yaml", "w.yaml"), ""),
            },
            ["kustomization.yaml", "s.yaml", "j.json", "r.yaml", "o.json", "v.yaml", "w.yaml"],
            id="patches in files, not those in place",
        ),
        pytest.param(
            {"kustomization.yaml": "resources: [.]"}, ["kustomization.yaml"], id="a loop of one"
        ),
        pytest.param({"kustomization.yaml": ""}, ["kustomization.yaml"], id="an empty one"),
        pytest.param({"kustomization.yaml": "- 1"}, ["kustomization.yaml"], id="no map"),
        pytest.param(
            {"kustomization.yaml": "resources: 7\npatches: x"},
            ["kustomization.yaml"],
            id="nonsense",
        ),
    ],
)
def test_the_files_of_a_kustomization(
    files: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    write(tmp_path, files)
    assert named(tmp_path) == (expected, [])


def test_an_overlay_has_the_files_of_its_base_which_lies_beside_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "base/kustomization.yaml": "resources: [../base/a.yaml]",
            "base/a.yaml": "",
            "prod/kustomization.yaml": "resources: [../base, ../prod]",
        },
    )
    assert named(tmp_path, "prod")[0] == [
        "prod/kustomization.yaml",
        "base/kustomization.yaml",
        "base/a.yaml",
    ]


@pytest.mark.parametrize(
    ("resource", "why"),
    [
        ("a.yaml", "a.yaml does not exist"),
        ("https://example.org/a.yaml", "https://example.org/a.yaml is not on this machine"),
        ("github.com/o/r//base?ref=v1", "github.com/o/r//base?ref=v1 is not on this machine"),
        ("git@example.org:o/r", "git@example.org:o/r is not on this machine"),
        ("empty", "empty: holds no kustomization.yaml"),
        (
            "broken",
            (
                "broken/kustomization.yaml: is not YAML: while parsing a flow node, did not find "
                "expected node content"
            ),
        ),
    ],
)
def test_what_cannot_be_looked_at_is_told(resource: str, why: str, tmp_path: Path) -> None:
    write(tmp_path, {"broken/kustomization.yaml": "a: [", "empty/x": "", "b.yaml": ""})
    write(tmp_path, {"kustomization.yaml": f"resources: ['{resource}', b.yaml]"})
    files, missing = named(tmp_path)
    assert missing == [why]
    assert files[0] == "kustomization.yaml"
    assert files[-1] == "b.yaml"


def test_a_folder_without_one_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no kustomization\.yaml"):
        parts(str(tmp_path))
