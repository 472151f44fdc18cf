"""Values that charts get from outside: files in, the values in them out, each with its charts.

Objects of Flux, Argo CD, k3s and others have values for a chart, and so do ConfigMaps and Secrets
that Flux reads, maps without a kind, and commands (`helm --set`). Helm merges them over the values
of the chart. What other texts give is not read: a legacy name there holds the chart
(outside_amounts.py), and so does a fraction (given_fractions.py).
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.core.text_patterns import RESOURCE_TEXT, find
from webhook.evaluation.workloads import is_built_in, objects
from webhook.files.source import Source
from webhook.formats.mentions import Comments
from webhook.kube.pod import as_items, as_map
from webhook.kube.pointer import Path
from webhook.kube.walk import walk
from webhook.projects import merged_values, named_files
from webhook.projects.helm_texts import Parts
from webhook.projects.merged_values import Values
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.core.settings import Settings
    from webhook.files.results import Plan

_REFERS = re.compile(r"(?:From|Files?|Key|Ref)$")  # members that say where values are
_SETS = ("set", "answers", "targetPath")
_CHARTS = ("chart", "chartName", "chartPath", "path")
_NAMED = ("ConfigMap", "Secret")
_OBJECT = {"apiVersion", "kind", "metadata"}
_SET = re.compile(
    r"--set(?:-string|-json|-literal)?(?:[\"']?[ \t]*\\\n\s*|[ \t]+|=|[\"'],\s*[rf]{0,2}(?=[\"']))"
    r"(?P<pairs>(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'])+)"
)
_YAML = (".yaml", ".yml", ".json")
_PACKED = re.compile(r"-v?\d[\w.+-]*\.tgz$")


@dataclass(frozen=True, slots=True)
class Given:
    """Values in a part of a text, and the names of the charts that they are for; empty: of any."""

    start: int
    end: int
    data: Any
    charts: frozenset[str] = frozenset()
    stays: bool = False  # whatever a run changes in the file


def are_read(data: Any, texts: list[str]) -> bool:
    """Whether charts with these texts may read the values: one of their names is in a text."""
    names = [*map(str, data)] if isinstance(data, dict) else []
    if not names or "global" in names:
        return True
    named = "|".join(map(re.escape, names))
    wanted = re.compile(rf"(?<![\w-])(?:{named})(?![\w-])|\.Values(?![.\w])")
    return any(map(wanted.search, texts))


def files(path: str, plan: Plan) -> tuple[str, ...]:
    """The files around a path that may have amounts for a chart."""
    names = (plan.settings.gpu_resource, *plan.settings.legacy_resources)
    lasts = tuple(name.partition("/")[2] for name in names)
    words = (
        *(sign + each for each in lasts for sign in ("/", "~1", "2f", "2F")),
        "values.y",
        "binaryData",
    )
    return named_files.with_words(path, plan, words)


def look(
    file: str, text: str, plan: Plan | None, settings: Settings
) -> list[tuple[Values, frozenset[str]]]:
    """The values in a file before and after a run on it, each with the names of its charts.

    In `stays` the name of the file is left out: it depends on the chart that asks.
    """
    before = [*given(file, text)]
    if not before:
        return []
    new_text, _ = merged_values.after(file, file, text, plan, settings)
    after = [*given(file, new_text)]
    if len(after) != len(before):
        after, new_text = before, text
    absent = "" if plan else merged_values.ABSENT
    found = []
    for old, changed in zip(before, after, strict=True):
        new, its_text = (old, text) if old.stays else (changed, new_text)
        line = _line(new, its_text, settings)
        stays = f" (line {line}){absent}" if line else ""
        found.append((Values(file, old.data, new.data, stays), old.charts))
    return found


def _line(given: Given, text: str, settings: Settings) -> int:
    """The line of the first legacy name in given values; 0 if they have none."""
    comments = Comments(text)
    part = text[given.start : given.end]
    places = (given.start + each.start for each in find(part, (RESOURCE_TEXT,), settings))
    at = next((each for each in places if not comments.hold(each)), None)
    if at is None and any(
        any(find(str(each), (RESOURCE_TEXT,), settings))
        for place, value in walk(given.data)
        for each in (*place[-1:], *((value,) if isinstance(value, str) else ()))
    ):
        at = given.start
    return 0 if at is None else text.count("\n", 0, at) + 1


def given(file: str, text: str, *, is_map: bool = False) -> Iterator[Given]:
    """The values in a file; `is_map` says that it is YAML whatever its name is."""
    yield from _commands(file, text)
    if not (is_map or file.endswith(_YAML)):
        return
    stream = documents.read(text, json=file.endswith(".json"))
    if stream.unread:
        return
    finders = [(_members, False), *([(_patched, True)] if "patch" in text else [])]
    for document in stream.documents:
        for data in _of_document(document.data):
            yield Given(document.start, document.end, data)
        for at, obj in objects(document.data):
            charts = _charts(obj)
            for found, stays in finders:
                for place, made in found(obj):
                    yield Given(*document.place(Path((*at, *place))), made, charts, stays)


def _of_document(data: Any) -> Iterator[Any]:
    """The values in a whole document: all of it, or operations on objects."""
    if as_map(data) and not _OBJECT.issubset(data):
        yield data
    if isinstance(data, list) and (made := _operations(data)):
        yield made


def _members(obj: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The values in an object, with their places."""
    kind = obj.get("kind")
    if kind in _NAMED:
        yield from _texts(obj)
        return
    if is_built_in(obj):
        return
    found: list[Path] = []
    for at, value in walk(obj):
        if not at or any(at[: len(each)] == each for each in found):
            continue
        name = str(at[-1])
        if name == "literals" and isinstance(value, list):
            yield from ((at, data) for _, data in _texts(_literals(value)))
        is_set = name in _SETS or name.startswith("setValue") or at[-2:] == ("helm", "parameters")
        is_values = "value" in name.lower() and not _REFERS.search(name)
        given = [{"name": value}] if name == "targetPath" else value  # of Flux; any amount
        for data in _pairs(given) if is_set else _maps(value) if is_values else ():
            found.append(at)
            yield at, data


def _texts(obj: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The values in a ConfigMap or Secret."""
    for member in ("data", "stringData", "binaryData"):
        for key, value in as_map(obj.get(member)).items():
            is_encoded = member == "binaryData" or (obj["kind"] == "Secret" and member == "data")
            if isinstance(value, str) and (
                is_encoded or "values" in str(key) or str(key).endswith(_YAML)
            ):
                data = _read(_decoded(value) if is_encoded else value)
                if isinstance(data, dict) and "kind" not in data:
                    yield Path((member, key)), data


def _literals(lines: Iterable[Any]) -> dict[str, Any]:
    """The ConfigMap that a generator makes of such lines."""
    pairs = (str(each).partition("=") for each in lines)
    return {"kind": "ConfigMap", "data": {key.strip(): value for key, _, value in pairs}}


def _patched(obj: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The values in patches of a kustomization: parts of objects, or operations (RFC 6902)."""
    for at, value in walk(obj):
        is_patch = at[-1:] == ("patch",) or at[-2:-1] == ("patchesStrategicMerge",)
        patch = _read(value) if is_patch and isinstance(value, str) else None
        if isinstance(patch, dict):
            yield from ((at, data) for _, data in _members(patch))
        elif isinstance(patch, list) and (data := _operations(patch)):
            yield at, data


def _operations(patch: list[Any]) -> dict[str, Any]:
    """The values that operations set, below a member `values` or `valuesObject`."""
    made: dict[str, Any] = {}
    for _, each in as_items(patch):
        at = [e.replace("~1", "/").replace("~0", "~") for e in str(each.get("path")).split("/")]
        start = next((n for n, e in enumerate(at) if e in {"values", "valuesObject"}), None)
        if start is not None and at[start + 1 :]:
            _put(made, ".".join(e.replace(".", "\\.") for e in at[start + 1 :]), each.get("value"))
        elif start is not None:
            made |= as_map(each.get("value"))
    return made


def _maps(value: Any) -> Iterator[dict[str, Any]]:
    """The maps in a map, a list of maps, or a text."""
    if isinstance(value, str) and ":" in value:
        value = _read(value)
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield each


def _pairs(value: Any) -> Iterator[dict[str, Any]]:
    """The values that are set one by one, in one map."""
    named = [(e.get("name", e.get("key")), e.get("value")) for _, e in as_items(value)]
    made: dict[str, Any] = {}
    for name, each in named or as_map(value).items():
        _put(made, str(name), each)
    if made:
        yield made


def _put(made: dict[str, Any], name: str, value: Any) -> None:
    r"""Set a value at a place such as `resources.limits.nvidia\.com/gpu`."""
    *parents, last = (e.replace("\\", "") for e in re.split(r"(?<!\\)\.", name))
    here = made
    for each in parents:
        inner = here.setdefault(each, {})
        if not isinstance(inner, dict):
            return
        here = inner
    if isinstance(value, str) and value[:1] in {"{", "["}:
        with suppress(ValueError):
            value = json.loads(value)
    here[last] = None if value == "null" else value


def _read(text: str) -> Any:
    stream = documents.read(text)
    return stream.documents[0].data if stream.documents and not stream.unread else None


def _decoded(text: str) -> str:
    with suppress(ValueError):
        return base64.b64decode(text).decode()
    return ""


def _commands(file: str, text: str) -> Iterator[Given]:
    """What the commands in a text give to charts."""
    if "elm" not in text or "--set" not in text:
        return
    parts = Parts(Source.of_text(file, text))
    for found in _SET.finditer(text):
        if parts.around(found.start()) is None or parts.is_said(found.start()):
            continue
        whole = _read(found["pairs"].strip("'")) if "{" in found["pairs"][:2] else None
        made: dict[str, Any] = whole if isinstance(whole, dict) else {}
        said = re.sub(r"\\+", r"\\", re.sub(r"[\"']", "", found["pairs"]))
        for pair in re.split(r"(?<!\\),(?![^{]*\})", said):
            name, equals, value = pair.partition("=")
            if equals:
                _put(made, name, value)
        if made:
            yield Given(*found.span(), made, parts.charts(found.start()) or frozenset())


def _charts(obj: dict[str, Any]) -> frozenset[str]:
    """The names of the charts that an object installs; none if it may install any."""
    said = {
        str(value)
        for at, value in walk(obj)
        if at and at[-1] in _CHARTS and isinstance(value, str) and "values" not in at
    }
    names = {_PACKED.sub("", each.rstrip("/").rpartition("/")[2]) for each in said}
    is_open = any("{" in each or "$" in each for each in said) or not {"", "."}.isdisjoint(names)
    return frozenset() if is_open else frozenset(names)
