"""Which files may give values to a chart from outside: a run in, the files out.

Such files have words of Helm, or a name of values. And a file that one of them names is a file of
values, too, whatever its own name is (`valueFiles`, `helm -f`, helmfile, generators, Terraform).
All files of Terraform may give values where one of them installs a chart.
"""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from webhook.files import walk as folders
from webhook.files.candidates import candidates
from webhook.files.folder import repository
from webhook.files.reading import text_of
from webhook.files.search import SearchBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.files.results import Plan

OF_VALUES = re.compile(r"values[^/]*$|/values/[^/]*$")
NAMES = re.compile(
    rf"{OF_VALUES.pattern}|(?:^|/)(?:helmfile[^/]*|helmfile\.d/[^/]*|fleet\.ya?ml"
    r"|\.argocd-source[^/]*|kustomization\.ya?ml)$"
)
YAML = (".yaml", ".yml", ".json", ".gotmpl")
TERRAFORM = (".tf", ".tfvars", ".hcl", ".tf.json", ".tfvars.json")
_WORDS = (b"helm", b"Helm", b"HELM", b"values.y", b"/values/", b"alueFiles", b"aluesFile")
_PROSE = (".md", ".markdown", ".mdx", ".rst", ".adoc", ".txt", ".html", ".ipynb")
_HELM = re.compile(r"helm|alue\w*\"?[ \t]*[:=]|aluesFile|Generator", re.IGNORECASE)
_RELEASE = "helm_release"
_END = re.compile(r"\.(?:ya?ml|json)(?:\.[a-z]\w+)?(?![\w-])")
_GENERATES = re.compile(r"(?:configMap|secret)Generator[\"']?[ \t]*:")  # of files of any end
_REFERS = re.compile(r"\bvaluesFrom[\"']?[ \t]*:")
_KEY = re.compile(r"\b(?:valuesKey|key)[\"']?[ \t]*:[ \t]*[\"']?([^\s\"',}\]]+)")
_TARGET = re.compile(r"\btargetPath[\"']?[ \t]*:[ \t]*[\"']?([^\s\"',}]+)")
_BREAK = re.compile(r"[\s\"'`=,:;()\[\]{}<>|&]")
_OPEN = re.compile(
    r"\$?\{\{[^{}\n]*\}\}|\$\{[^{}\n]*\}|\$\([^()\n]*\)|\$\w+|\{[\w.]*\}|%[sdv]|<[\w.-]+>"
)
_LONGEST = 250  # characters of a name


@dataclass(frozen=True, slots=True)
class Named:
    """What other files say of a file: that it has values, or which keys of ConfigMaps have."""

    file: str
    is_values: bool = False
    keys: frozenset[tuple[str, str]] = frozenset()  # each with the place of one value, or ""


def files(path: str, plan: Plan) -> Mapping[str, Named]:
    """The files that may give values to a chart: of its repository, and of the run."""
    words = (*_WORDS, *map(str.encode, plan.settings.legacy_resources))
    root = repository(path) if plan.named else ""
    return _of_repository(plan.run, root, plan.named, words, below=plan.below)


@lru_cache(maxsize=4)
def _of_repository(
    run: object, root: str, named: tuple[str, ...], words: tuple[bytes, ...], *, below: bool
) -> dict[str, Named]:
    beside = tuple(each for each in named if not root or repository(each) != root)
    found: dict[str, Named] = {}
    for places, is_below in (((root,), True), (beside, below)):
        made = _files(run, places, words, below=is_below) if any(places) else {}
        found |= {f: each for f, each in made.items() if f not in found or each.is_values}
    return found


@lru_cache(maxsize=4)
def _files(
    _run: object, places: tuple[str, ...], words: tuple[bytes, ...], *, below: bool
) -> dict[str, Named]:
    wanted = folders.Wanted([e for e in places if e != folders.STDIN], recursive=below)
    every = dict.fromkeys(_with_words(wanted, words), False)
    listed: dict[str, list[str]] = {}  # by their names
    programs: list[str] = []
    for found in folders.find(wanted):
        for prefix, names in found.batch if isinstance(found, SearchBatch) else ():
            place = os.path.realpath(prefix)
            programs += (os.path.join(place, e) for e in names if e.endswith(TERRAFORM))  # noqa: PTH118
            for name in (each for each in names if _END.search(each)):
                file = os.path.join(place, name)  # noqa: PTH118
                listed.setdefault(os.path.basename(name), []).append(file)  # noqa: PTH119
                if name.endswith(YAML) and NAMES.search(prefix + name):
                    every.setdefault(prefix + name, False)
    given = [each for each in every if not each.endswith(_PROSE)]
    made = {os.path.realpath(each): False for each in given}
    for pattern, folder in dict.fromkeys(name for each in given for name in _names(each)):
        made |= {os.path.realpath(each): True for each in _matches(pattern, folder, listed)}
    if any(_RELEASE in text_of(each) for each in given if each.endswith(TERRAFORM)):
        made |= dict.fromkeys(programs, True)  # variables, and where they get their values
    keys = frozenset(key for each in given for key in _keys(text_of(each)))
    with_keys = _with_words(wanted, [key.encode() for key, _ in keys]) if keys else ()
    made |= {f: False for f in map(os.path.realpath, with_keys) if f.endswith(YAML)} | made
    return {file: Named(file, is_values, keys) for file, is_values in made.items()}


def _with_words(wanted: folders.Wanted, words: Sequence[bytes]) -> Iterator[str]:
    return (each for each in candidates(wanted, words, processes=1) if isinstance(each, str))


def _keys(text: str) -> Iterator[tuple[str, str]]:
    """The keys of ConfigMaps and Secrets that a text names, each with any place of one value."""
    if _REFERS.search(text):
        places = {"", *_TARGET.findall(text)}
        yield from ((key, place) for key in _KEY.findall(text) for place in places)


def _names(file: str) -> Iterator[tuple[str, str]]:
    """The names of files in a text with words of Helm, where `*` is any text, with its folder."""
    text = text_of(file)
    if not _HELM.search(text):
        return
    shown = _OPEN.sub("*", text)
    is_generator = _GENERATES.search(text) is not None
    said = {*_BREAK.split(shown)} - {""} if is_generator else set()
    for end in _END.finditer(shown):
        before = shown[max(0, end.start() - _LONGEST) : end.start()]
        said.add(_BREAK.split(before)[-1] + end[0])
    for each in sorted(said):
        if not each.startswith("//"):  # behind https:
            yield os.path.normpath(each).lstrip("/"), os.path.dirname(file)  # noqa: PTH120


def _matches(pattern: str, folder: str, listed: Mapping[str, list[str]]) -> Iterator[str]:
    """The files of such a name: from this folder, or anywhere if it is not all `*`."""
    yield from filter(os.path.isfile, glob.iglob(os.path.join(folder, pattern)))  # noqa: PTH207, PTH118
    *parts, last = (each for each in pattern.split("/") if each != os.pardir)
    while parts and not parts[0].strip("*"):
        del parts[0]
    if not parts and last.startswith("*."):
        return
    bases = [last] if "*" not in last else [each for each in listed if fnmatchcase(each, last)]
    for file in (file for base in bases for file in listed.get(base, ())):
        above = file.split("/")[-len(parts) - 1 : -1]
        if len(above) == len(parts) and all(map(fnmatchcase, above, parts)):
            yield file
