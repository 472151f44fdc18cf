"""What binds the files of a kustomization: they are renamed together, or none of them is.

A JSON 6902 patch, a replacement or a variable finds an amount by its name: where the one is renamed
and the other is not, the build fails. And where a patch gives the pods of its base a legacy label
or annotation, the webhook repairs that only while their amounts are legacy, too (together.py).
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.core.errors import InputError
from webhook.core.pod import as_items
from webhook.core.text_patterns import find
from webhook.migration import documents, kustomization, kustomize, together
from webhook.migration.migrate import migrate_text
from webhook.migration.reading import UnreadableError, read_regular
from webhook.migration.source import Source
from webhook.rules import affinity_annotation, model_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.migration.results import Plan

_PLACEMENT = (model_label.CODE, affinity_annotation.CODE)


@dataclass(frozen=True, slots=True)
class _Bond:
    """One kustomization: its files, the names by which they find fields, and its patches."""

    files: tuple[str, ...]
    names: tuple[tuple[str, str], ...]  # with the file that each stands in
    patches: tuple[tuple[str, str], ...]


def why_held(path: str, root: str, plan: Plan) -> str:
    """Why no amount in this file is renamed; empty if it may be."""
    for bond in _index(root).get(os.path.realpath(path), ()):
        for file, text in bond.patches:
            for code in _left(file, text, plan):
                if code in _PLACEMENT:
                    return together.elsewhere(code, f"the patch {os.path.relpath(file)}")
        for file, name in bond.names:
            if not plan.named or not kustomize.names_legacy(name, plan.settings):
                continue
            away = next((each for each in bond.files if _is_away(each, plan)), "")
            if away:
                given = os.path.relpath(file)
                return (
                    f"{given} finds it by this name, and {os.path.relpath(away)} is not among the "
                    f"files of this run: name all files of that kustomization, as -k does"
                )
    return ""


def _left(file: str, text: str, plan: Plan) -> Iterable[str]:
    """The codes of what a patch says of placement, and of what this run leaves of that."""
    found = {code for code, _, _ in together.words(text, plan)}
    is_whole = Path(file).name not in kustomization.NAMES and (
        not plan.named or _is_given(file, plan)
    )
    if not found or not is_whole:
        return found
    return together.left(migrate_text(Source.of_text(file, text), plan), plan, file)


def _is_away(file: str, plan: Plan) -> bool:
    """Whether the file names an amount that this run does not see."""
    amounts = find(_text(file), plan.settings, ("resource-name",))
    return not _is_given(file, plan) and any(True for _ in amounts)


def _is_given(file: str, plan: Plan) -> bool:
    above = [str(each) for each in Path(file).parents]
    near = above if plan.below else above[:1]
    return any(os.path.realpath(each) in {file, *near} for each in plan.named)


@lru_cache(maxsize=4)
def _index(root: str) -> dict[str, list[_Bond]]:
    index: dict[str, list[_Bond]] = {}
    for folder in kustomization.folders(root):
        with suppress(InputError):  # it is said where the kustomization itself is looked at
            bond = _bond(kustomization.parts(folder).files)
            for file in bond.files if bond.names or bond.patches else ():
                index.setdefault(file, []).append(bond)
    return index


def _bond(files: list[str]) -> _Bond:
    names: list[tuple[str, str]] = []
    patches: list[tuple[str, str]] = []
    for file in files:
        if Path(file).name in kustomization.NAMES:
            patches += [(place, text) for place, text in _patches(file)]
        if text := _text(file):
            for each in documents.read(text).documents:
                names += [(file, name) for _, name in kustomize.field_paths(each.data)]
    for place, text in patches:
        for each in documents.read(text).documents:
            for _, operation in as_items(each.data):
                names += [(place, str(operation.get(way, ""))) for way in ("path", "from")]
    return _Bond(tuple(map(os.path.realpath, files)), tuple(names), tuple(patches))


def _patches(file: str) -> Iterator[tuple[str, str]]:
    for name, written in kustomization.patches(kustomization.read(file)):
        place = str(Path(file).parent / name) if name else file
        yield place, _text(place) if name else written


def _text(file: str) -> str:
    with suppress(UnreadableError):  # it is said where the file itself is looked at
        return read_regular(file)[0].decode(errors="replace")
    return ""
