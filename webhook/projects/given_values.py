"""Values that charts get from outside: files in, the values in them out, each with its charts.

Objects of Flux, Argo CD, k3s and others have values for a chart, and so do ConfigMaps and Secrets
that Flux reads, files of values beside charts, and commands (`helm --set`, Terraform). Helm merges
them over the values of the chart. Of programs only the values in commands are known.
"""

from __future__ import annotations

import base64
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.core.text_patterns import RESOURCE_TEXT, find
from webhook.evaluation.workloads import is_built_in, objects
from webhook.formats import fractions
from webhook.formats.mentions import Comments
from webhook.kube.pod import as_items, as_map
from webhook.kube.pointer import Path
from webhook.kube.walk import walk
from webhook.projects import merged_values
from webhook.projects.merged_values import Values
from webhook.projects.value_files import NAMES, OF_VALUES, TERRAFORM, YAML, Named
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.core.settings import Settings
    from webhook.files.results import Plan

_GIVES = re.compile(
    r"(?:[vV]alue\w*|values[\w.-]*|\bset|\bparameters|\banswers)[\"']?[ \t]*:|/values/"
    r"|\bkind:[ \t]*(?:ConfigMap|Secret)\b"
)
_REFERS = re.compile(r"(?:From|Files?|Key|Ref)$")  # members that say where values are
_SETS = ("set", "answers", "targetPath")
_CHARTS = ("chart", "chartName", "chartPath", "path")
_NAMED = ("ConfigMap", "Secret")
_OBJECT = {"apiVersion", "kind"}
_SET = re.compile(
    r"--set(?:-string|-json|-literal)?(?:[\"']?[ \t]*\\\n\s*|[ \t]+|=|[\"'],\s*[rf]{0,2}(?=[\"']))"
    r"(?P<pairs>(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'])+)"
)
_ENTRY = re.compile(
    r"name[ \t]*=[ \t]*\"(?P<name>[^\"\n]*)\"\s*,?\s*value[ \t]*=[ \t]*\"?(?P<value>[^\"\n},]*)"
)
_ASSIGNED = re.compile(
    r"(?<![\w.$-])[\"']?(?P<name>[A-Za-z_][\w-]*)[\"']?[ \t]*[=:]"
    r"(?=[ \t]*(?P<value>[\"']?(?P<amount>\d[\w.]*)?[^\n,]{0,300}))"
)
_COMPUTED = re.compile(r"\b(?:var|local|each|module|data|count)\.[\w.]+")
_CHART = re.compile(r"^[ \t]*chart[ \t]*=[ \t]*(?:\"(?P<name>[^\"\n]*)|(?=[^\s\"]))", re.MULTILINE)
_SOMEWHERE = ""  # has what a program gives at a place that is not known
# What installs charts from the text of a program, which is not read besides its names.
_PROGRAM = re.compile(r"\bhelm_release\b|\bhelm\.v\d|\baddHelmChart\(|\bHelmChart\(")
_COMMENT = re.compile(r"(?:^|\s)(?:#|//)")
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
    if not names or not {"global", _SOMEWHERE}.isdisjoint(names):
        return True
    named = "|".join(map(re.escape, names))
    wanted = re.compile(rf"(?<![\w-])(?:{named})(?![\w-])|\.Values(?![.\w])")
    return any(map(wanted.search, texts))


def look(
    named: Named, text: str, plan: Plan | None, settings: Settings
) -> list[tuple[Values, frozenset[str]]]:
    """The values in a file before and after a run on it, each with the names of its charts.

    In `stays` the name of the file is left out: it depends on the chart that asks.
    """
    file, before = named.file, [*_given(named, text)]
    if not before:
        return []
    new_text, _ = merged_values.after(file, file, text, plan, settings)
    after = [*_given(named, new_text)]
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
    comments = Comments(text, _COMMENT) if _PROGRAM.search(text) else Comments(text)
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


def _given(named: Named, text: str) -> Iterator[Given]:
    file, is_named = named.file, named.is_values
    yield from _commands(text)
    if _PROGRAM.search(text) or (is_named and file.endswith(TERRAFORM)):
        yield from _program(file, text)
        return
    name = os.path.basename(file)  # noqa: PTH119  # of many files
    is_values = NAMES.search(file) is not None
    if not is_named and not (name.endswith(YAML) and (is_values or _GIVES.search(text))):
        return
    finders = [(_members, False), *([(_patched, True)] if "patch" in text else [])]
    stream = documents.read(text, json=name.endswith(".json"))
    if stream.unread and (is_named or is_values or "elm" in text):
        yield Given(0, len(text), {_SOMEWHERE: [*_assigned(file, text)]})  # a template
        return
    for document in stream.documents:
        is_whole = OF_VALUES.search(file) is not None and "kind" not in as_map(document.data)
        for data in _of_document(document.data, text, named, is_whole=is_whole):
            yield Given(document.start, document.end, data)
        for at, obj in () if is_whole else objects(document.data):
            charts = _charts(obj)
            for found, stays in finders:
                for place, made in found(obj, named):
                    yield Given(*document.place(Path((*at, *place))), made, charts, stays)


def _of_document(data: Any, text: str, named: Named, *, is_whole: bool) -> Iterator[Any]:
    """The values in a whole document: all of it, operations on objects, or lines of a generator."""
    if is_whole or (named.is_values and as_map(data) and not _OBJECT.issubset(data)):
        yield data
    elif named.is_values and isinstance(data, str):
        yield from (values for _, values in _texts(_literals(text.splitlines()), named))
    if isinstance(data, list) and (made := _operations(data)):
        yield made


def _members(obj: dict[str, Any], named: Named) -> Iterator[tuple[Path, Any]]:
    """The values in an object, with their places."""
    kind = obj.get("kind")
    if kind in _NAMED:
        yield from _texts(obj, named)
        return
    if is_built_in(obj) or (kind is None and not NAMES.search(named.file)):
        return
    found: list[Path] = []
    for at, value in walk(obj):
        if not at or any(at[: len(each)] == each for each in found):
            continue
        name = str(at[-1])
        if name == "literals" and isinstance(value, list):
            yield from ((at, data) for _, data in _texts(_literals(value), named))
        is_set = name in _SETS or name.startswith("setValue") or at[-2:] == ("helm", "parameters")
        is_values = "value" in name.lower() and not _REFERS.search(name)
        given = [{"name": value}] if name == "targetPath" else value  # of Flux; any amount
        for data in _pairs(given) if is_set else _maps(value) if is_values else ():
            found.append(at)
            yield at, data


def _texts(obj: dict[str, Any], named: Named) -> Iterator[tuple[Path, Any]]:
    """The values in a ConfigMap or Secret."""
    keys = {key for key, _ in named.keys}
    for member in ("data", "stringData", "binaryData"):
        for key, value in as_map(obj.get(member)).items():
            if not isinstance(value, str):
                continue
            is_encoded = member == "binaryData" or (obj["kind"] == "Secret" and member == "data")
            text = _decoded(value) if is_encoded else value
            if "values" in str(key) or str(key).endswith(YAML) or key in keys:
                data = _read(text)
                if isinstance(data, dict) and "kind" not in data:
                    yield Path((member, key)), data
            for place in (place for named_key, place in named.keys if named_key == key and place):
                made: dict[str, Any] = {}
                _put(made, place, text)
                yield Path((member, key)), made


def _literals(lines: Iterable[Any]) -> dict[str, Any]:
    """The ConfigMap that a generator makes of such lines."""
    pairs = (str(each).partition("=") for each in lines)
    return {"kind": "ConfigMap", "data": {key.strip(): value for key, _, value in pairs}}


def _patched(obj: dict[str, Any], named: Named) -> Iterator[tuple[Path, Any]]:
    """The values in patches of a kustomization: parts of objects, or operations (RFC 6902)."""
    for at, value in walk(obj):
        is_patch = at[-1:] == ("patch",) or at[-2:-1] == ("patchesStrategicMerge",)
        patch = _read(value) if is_patch and isinstance(value, str) else None
        if isinstance(patch, dict):
            yield from ((at, data) for _, data in _members(patch, named))
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


def _commands(text: str) -> Iterator[Given]:
    """What the commands and programs in a text give to charts."""
    if "elm" in text:
        comments = Comments(text)
        for found in _SET.finditer(text):
            if comments.hold(found.start()):
                continue
            whole = _read(found["pairs"].strip("'")) if "{" in found["pairs"][:2] else None
            made: dict[str, Any] = whole if isinstance(whole, dict) else {}
            said = re.sub(r"\\+", r"\\", re.sub(r"[\"']", "", found["pairs"]))
            for pair in re.split(r"(?<!\\),(?![^{]*\})", said):
                name, equals, value = pair.partition("=")
                if equals:
                    _put(made, name, value)
            if made:
                yield Given(*found.span(), made)


def _program(file: str, text: str) -> Iterator[Given]:
    """What a program gives to charts by name and value, and what it gives at places not known."""
    made: dict[str, Any] = {_SOMEWHERE: [*_assigned(file, text)]}
    for found in _ENTRY.finditer(text):
        value = found["value"].strip()
        _put(made, re.sub(r"\\+", r"\\", found["name"]), _computed(file, value) or value)
    yield Given(0, len(text), made, _released(text) if file.endswith(TERRAFORM) else frozenset())


def _released(text: str) -> frozenset[str]:
    """The names of the charts in the releases of a Terraform file; none if it may be any."""
    said = [each["name"] or "" for each in _CHART.finditer(text)]
    names = {each.rstrip("/").rpartition("/")[2] for each in said}
    is_open = "module " in text or len(said) < text.count('"helm_release"')
    is_open |= any(each in {"", "."} or "$" in each for each in names)
    return frozenset() if is_open else frozenset(names)


def _assigned(file: str, text: str) -> Iterator[dict[str, Any]]:
    """The names in a program that get an amount, or in Terraform what it computes."""
    comments = Comments(text, _COMMENT)
    for found in _ASSIGNED.finditer(text):
        value = found["amount"] or _computed(file, found["value"])
        if value and not comments.hold(found.start()):
            yield {found["name"]: value}


def _computed(file: str, value: str) -> fractions.Computed | None:
    found = _COMPUTED.search(value) if file.endswith(TERRAFORM) else None
    return fractions.Computed(found[0]) if found else None


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
