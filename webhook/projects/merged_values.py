"""The values of a chart: Helm merges files of values, and finds amounts in them by their names.

An override of 0 or null takes an amount away only under the same name and in the same section. So
the merged values must give each container the same GPUs after a run as the webhook gave it before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, permutations
from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.core.text_patterns import RESOURCE_TEXT, find
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.file_objects import evaluations
from webhook.formats.mentions import Comments
from webhook.formats.migrate import migrate_text
from webhook.kube import quantity
from webhook.kube.pod import SECTIONS, as_map
from webhook.kube.walk import walk
from webhook.rules import legacy_name_elsewhere, legacy_resource
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.core.settings import Settings
    from webhook.kube.pointer import Path

_ENDINGS = (".yaml", ".yml", ".json")
_NO_VALUES = {"templates", "crds"}
SCHEMA = ".schema.json"
_SLASH = re.compile(r"\\u002f", re.IGNORECASE)
_DASHBOARD = '"panels"'  # of Grafana, which a template may put into a ConfigMap
_OBJECT = ("apiVersion", "kind", "metadata")
_WHOLE = [re.compile(rf"^{each}:", re.MULTILINE) for each in _OBJECT]
_CODES = (legacy_resource.CODE, legacy_name_elsewhere.CODE)
ABSENT = ", which is not among the files of this run"
_MOST_PAIRED = 8  # files of values of which any two are also merged together


@dataclass(frozen=True, slots=True)
class Values:
    """Values before a run and after it; `stays` is the place of a legacy name that stays."""

    name: str
    before: Any
    after: Any
    stays: str = ""

    def over(self, base: Values) -> Values:
        before, after = _merged(base.before, self.before), _merged(base.after, self.after)
        return Values(self.name, before, after)

    def below(self, key: str) -> Values:
        """These values as a chart around their own gives them."""
        return Values(self.name, {key: self.before}, {key: self.after})


EMPTY = Values("", {}, {})


def are_values(name: str, text: str) -> bool:
    """Whether a file of a chart has values; `name` is relative to the chart.

    They may have any members, such as a `kind`; an object has a version and metadata, too.
    """
    *folders, file = name.split("/")
    if not file.endswith(_ENDINGS) or file.endswith(SCHEMA) or not _NO_VALUES.isdisjoint(folders):
        return False
    if "values" in file:
        return True
    if file.startswith(("Chart.", "kustomization.", "requirements.")):
        return False
    if file.endswith(".json"):
        is_map = text.lstrip().startswith("{") and _DASHBOARD not in text
        return is_map and not all(f'"{each}"' in text for each in _OBJECT)
    return not all(each.search(text) for each in _WHOLE)


def look(path: str, name: str, text: str, plan: Plan | None, settings: Settings) -> Values:
    """The values of a file, as they are and as a run on this file alone would make them.

    Without a plan, the file is not among those of the run.
    """
    new_text, stays = after(path, name, text, plan, settings)
    return Values(name, _data(text, name), _data(new_text, name), stays)


def after(
    path: str, name: str, text: str, plan: Plan | None, settings: Settings
) -> tuple[str, str]:
    """The text after such a run, and where a legacy name of an amount stays in it."""
    plain = text  # names of `--set` have escapes, and a slash of JSON may be one
    if "\\" in text:
        plain = _SLASH.sub("/", text).replace("\\", "")
    if not any(each in plain for each in settings.legacy_resources):
        return text, ""
    if plan is None or "\ufffd" in text:  # not UTF-8
        return text, f"{name}{'' if plan else ABSENT}" if _names_it(text, settings) else ""
    result = migrate_text(Source.of_text(path, text), plan)
    new_text = result.new_text if result.new_text is not None else text
    stays = ""
    if _names_it(new_text, settings):
        manual = (e for e in result.located if e.code in _CODES and e.status is Status.MANUAL)
        stays = next((f"{name} (line {each.place.line})" for each in manual), name)
    return new_text, stays


def _names_it(text: str, settings: Settings) -> bool:
    """Whether the text has the legacy name of an amount, besides comments."""
    comments = Comments(text)
    return any(not comments.hold(each.start) for each in find(text, (RESOURCE_TEXT,), settings))


def why_unequal(
    base: Values, others: Sequence[Values], outside: Sequence[Values], plan: Plan
) -> str:
    """Why the merged values would not give the same GPUs; empty if they would.

    `others` are in files of the chart. Values from outside are over the base and one of them.
    """
    outside = _with_amounts((base, *others), outside, plan)
    below = [base, *(each.over(base) for each in others)]
    chains = (_chains(each, outside) for each in (below if outside else ()))
    for over in chain(_chains(base, others), *chains):
        if _gpus(over.before, plan) != _gpus(over.after, plan):
            return (
                f"the values of {over.name}, merged over the others of the chart, would give other "
                "GPUs: give the same amount in limits and requests wherever one of them is given"
            )
    return ""


def _with_amounts(own: Iterable[Values], outside: Sequence[Values], plan: Plan) -> list[Values]:
    """Those parts of the values from outside that may change an amount, each once."""
    names = {
        at[0]
        for each in (*own, *outside)
        for data in (each.before, each.after)
        for at, _ in walk(data)
        if at and plan.settings.names_gpus(str(at[-1]))
    }
    parts: dict[str, Values] = {}
    for each in outside:
        before, after = (
            {name: value for name, value in as_map(data).items() if name in names}
            for data in (each.before, each.after)
        )
        if before or after:
            parts.setdefault(repr((before, after)), Values(each.name, before, after))
    return [*parts.values()]


def _chains(base: Values, others: Sequence[Values]) -> Iterator[Values]:
    """What Helm may make of the files: values of a chart, with one file or two over them."""
    yield base
    yield from (each.over(base) for each in others)
    if len(others) <= _MOST_PAIRED:
        yield from (last.over(first.over(base)) for first, last in permutations(others, 2))


def _data(text: str, name: str) -> Any:
    read = documents.read(text, json=name.endswith(".json")).documents
    return read[0].data if read else None


def _merged(base: Any, over: Any) -> Any:
    """As Helm merges: null takes a member away, and a list replaces a list."""
    if over is None and isinstance(base, dict):
        return base
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    made = dict(base)
    for name, value in over.items():
        if value is None:
            made.pop(name, None)
        elif name in made and isinstance(made[name], dict):
            made[name] = _merged(made[name], value)
        else:
            made[name] = value
    return made


def _gpus(data: Any, plan: Plan) -> dict[Path, Any]:
    """The GPUs that containers with these values get, by their places."""
    made, settings = copied(data), plan.settings
    evaluations(made, Plan(settings, is_values=True))
    found: dict[Path, Any] = {}
    for at, value in walk(made):
        if at[-2:-1] and at[-2] in SECTIONS and settings.names_gpus(str(at[-1])):
            amount = quantity.parse(value)
            if amount or (amount is None and value is not None):
                found[at] = str(value) if amount is None else amount
    return found
