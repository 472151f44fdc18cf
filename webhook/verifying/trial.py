"""Tries an edited template: the texts before and after in, why the edits are wrong out.

Nobody knows what an action produces, so both texts are filled in with the same stand-ins, for every
combination of branches. The webhook must make the same objects of both. A filling counts only if
the text before is valid with it.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field, replace
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.evaluation.workloads import is_built_in, objects, templates_of
from webhook.files.results import Status
from webhook.files.source import TEMPLATES
from webhook.formats import legacy_pods
from webhook.formats.file_objects import AMOUNTS, OF_OBJECTS, evaluations, opened
from webhook.formats.opt_outs import with_namespaces
from webhook.kube.pod import as_items, as_map
from webhook.kube.pointer import value_at
from webhook.projects import together
from webhook.templates import actions
from webhook.templates.filling import Form
from webhook.templates.open_places import said_indent
from webhook.templates.regions import parts
from webhook.verifying.normal_form import normal_form
from webhook.verifying.through import through
from webhook.yamlpatch import documents, style

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.files.results import FileResult, Plan
    from webhook.files.source import Source
    from webhook.templates.actions import Template
    from webhook.templates.filling import Condition
    from webhook.verifying.proven import Changed

    Migrate = Callable[[Source, Plan], FileResult]
    Outputs = Mapping[str, str]  # by the text of an action

_START = attrgetter("start")
_MOST = 64  # combinations of branches, and fillings that are drawn
_VALUES = {
    "nothing": "",
    "a word": "word",
    "a number": "3",
    "JSON": '{"nodeAffinity":{}}',
    "a list in JSON": '[{"key":"word","operator":"Exists"}]',
    "several lines": "first\nsecond",
    "quotes": '"two words"',
}
_LINES = {
    "members of a map": "one: word\ntwo: word",
    "items of a list": "- one\n- two",
    "items that are maps": "- name: word\n  value: word",
    "text with its own indent": f"{'':40}word",
}
_COMMENT = re.compile(r"(?:^|[ \t])#")
_MAY_BE_LINES = re.compile(r"(?:^|-)[ \t]*$|:[ \t]*$")
# Keys whose values are numbers: a word there would not be valid.
_OF_NUMBERS = re.compile(
    r"(?:replicas|[pP]ort|[sS]econds|Threshold|[wW]eight|gpu|[cC]ount|cpu|memory|Limit|parallelism"
    r"|completions|(?:runAs|fs)(?:User|Group)|max(?:Surge|Unavailable))[\"']?[ \t]*:[ \t]*[\"']?$"
)
_QUOTED = re.compile(r"\|\s*(?:quote|toJson)\s*-?\}\}$")
_ON_NEW_LINE = re.compile(r"\bnindent\b")
_ADDED_KEY = re.compile(r"[ \t]*(?:- )?[\"']?([\w./-]+)[\"']?[ \t]*:(?:\s|$)")
_MANIFEST = re.compile(r"^[ \t]*[\"']?(?:apiVersion|kind)[\"']?[ \t]*:", re.MULTILINE)
# Fields and maps of every kind whose values are texts.
_TEXTS = {"image", "key", "mountPath", "name", "path"}
_MAPS_OF_TEXTS = {"annotations", "labels", "matchLabels", "nodeSelector"}


def held(changed: Changed, plan: Plan, migrate: Migrate) -> dict[str, FileResult]:
    """The results for files with edits that are wrong with some stand-ins, without these edits.

    If these are edits of GPU amounts, no file of the chart is changed.
    """
    found: dict[str, FileResult] = {}
    reasons: dict[str, str] = {}
    for path, (result, source) in changed.items():
        if why := why_wrong(result, plan):
            found[path] = _less(result, source, plan, why, migrate)
            if not legacy_pods.does_amounts(found[path]) and legacy_pods.does_amounts(result):
                reasons[path] = why
    results = {path: result for path, (result, _) in changed.items()}
    return found | together.held(results, reasons, plan)


def _less(result: FileResult, source: Source, plan: Plan, why: str, migrate: Migrate) -> FileResult:
    """The result without the edits of one rule, of all rules on the object, or of all."""
    codes = {each.code for each in result.located if each.status is Status.FIXABLE}
    units = [codes & OF_OBJECTS, codes & AMOUNTS, *({each} for each in sorted(codes))]
    for unit in filter(None, units):
        less = replace(plan, held={**plan.held, **dict.fromkeys(unit, why)})
        again = migrate(source, less)
        if again.new_text is not None and not why_wrong(again, plan):
            return again
    return result.undone(why)


def why_wrong(result: FileResult, plan: Plan) -> str:
    """With which stand-ins the new text is wrong; empty if with none, or if it is no template."""
    if result.kind not in TEMPLATES or result.new_text is None:
        return ""
    old, new = (actions.read(text) for text in (result.text, result.new_text))
    plan = with_namespaces(plan, old.blanked)
    return next(filter(None, (trial.why() for trial in _trials(old, new, plan))), "")


def _trials(old: Template, new: Template, plan: Plan) -> Iterator[_Trial]:
    """One for each manifest that is edited; one for all if they do not fit together."""
    before, after = (
        [each.text[e.start : e.end] for e in sorted(parts(each.blanked), key=_START)]
        for each in (old, new)
    )
    pairs = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
    read = [[actions.read(text) for text in pair] for pair in pairs]
    if len(before) != len(after) or any(each.torn for pair in read for each in pair):
        read = [[old, new]]
    for one, other in read:
        if not (one.excess or other.excess):
            yield _Trial(Form(one), Form(other), plan)


@dataclass(slots=True)
class _Trial:
    old: Form
    new: Form
    plan: Plan
    _tried: set[tuple[str, str]] = field(default_factory=set)
    _places: dict[tuple[str, int], _Place] = field(default_factory=dict)

    def why(self) -> str:
        """The first stand-ins with which the edits are wrong, in words."""
        every = self.fillings()
        return next((why for why, outputs, chosen in every if self.is_wrong(outputs, chosen)), "")

    def fillings(self) -> Iterator[tuple[str, Outputs, Mapping[Condition, int]]]:
        """What is tried, in words; the outputs by their actions; the values of conditions."""
        draw = random.Random(0)  # noqa: S311  # the same in every run
        conditions = list(dict.fromkeys(self.old.conditions.values()))
        places = {raw: self._place(raw) for raw in (*self.old.outputs, *self.new.outputs)}
        usual = {raw: _usual(place) for raw, place in places.items()}
        choices = [*_choices(conditions, draw)]
        for chosen in choices:
            yield "it is wrong in another branch of a condition", usual, chosen
        lines = {**_LINES, **self._colliding()}
        all_texts: dict[str, list[str]] = {}
        for raw, place in places.items():
            stand_ins = {**_VALUES, **lines} if _MAY_BE_LINES.search(place) else _VALUES
            all_texts[raw] = [*stand_ins.values()]
            for what, text in stand_ins.items():
                yield f"it is wrong if {raw} produces {what}", {**usual, raw: text}, choices[0]
        for _ in range(_MOST if usual or conditions else 0):
            drawn = {raw: draw.choice((usual[raw], draw.choice(all_texts[raw]))) for raw in usual}
            turns = {each: draw.choice((0, 1, 2)) for each in conditions}
            yield "it is wrong with other values", drawn, turns

    def is_wrong(self, outputs: Outputs, chosen: Mapping[Condition, int]) -> bool:
        """Whether the webhook makes other objects of the edited text, if it is filled in so."""
        before, after = (
            form.filled(chosen, self._writer(form.template.text, outputs))
            for form in (self.old, self.new)
        )
        if before == after or (before, after) in self._tried:
            return False
        self._tried.add((before, after))
        wanted = self._made(before)
        return wanted is not None and wanted != self._made(after)

    def _writer(self, text: str, outputs: Outputs) -> Callable[[str, int], str]:
        """What the actions of a text write."""
        places = self._places

        def written(raw: str, start: int) -> str:
            place = places.get((text, start))
            if place is None:
                action = actions.Action(start, start + len(raw), actions.Kind.WRITES)
                place = places[text, start] = _Place.of(text, action)
            return place.write(outputs[raw])

        return written

    def _made(self, text: str) -> list[Any] | None:
        """What the webhook makes of the objects in this text; None if they are not valid."""
        found = _read(text)
        if found is None or not all(map(_are_texts, found)):
            return None
        made = []
        for data in found:
            for _, obj in objects(data):
                one = _through(obj, self.plan)
                if one is None:
                    return None
                made.append(_without_manifests(one))
        return made

    def _place(self, raw: str) -> str:
        """The text before an action on its line."""
        text = self.old.template.text
        start = max(text.find(raw), 0)
        return text[style.line_start(text, start) : start]

    def _colliding(self) -> dict[str, str]:
        """Members that the edits add: a template may write them, too."""
        known = set(self.old.template.text.split("\n"))
        added = (each for each in self.new.template.text.split("\n") if each not in known)
        keys = (found[1] for each in added if (found := _ADDED_KEY.match(each)))
        return {f"a member {key}": f"{key}:" for key in dict.fromkeys(keys)}


def _usual(place: str) -> str:
    """What an action at this place probably produces."""
    if not place.strip():
        return ""
    return "3" if _OF_NUMBERS.search(place) else "word"


def _choices(conditions: list[Condition], draw: random.Random) -> Iterator[dict[Condition, int]]:
    """All combinations of conditions, or some of them; the first has every first branch."""
    if 2 ** len(conditions) <= _MOST:
        for values in product((1, 0), repeat=len(conditions)):
            yield dict(zip(conditions, values, strict=True))
        return
    for value in (1, 0):
        yield dict.fromkeys(conditions, value)
    for _ in range(_MOST - 2):
        yield {each: draw.choice((0, 1)) for each in conditions}


@dataclass(frozen=True, slots=True)
class _Place:
    """How an action writes at its place: with the quotes and the indent that it says."""

    is_comment: bool
    is_quoted: bool
    first: str  # before the first line
    next: str  # between lines

    @classmethod
    def of(cls, text: str, action: actions.Action) -> _Place:
        raw = text[action.start : action.end]
        is_comment = bool(_COMMENT.search(text, style.line_start(text, action.start), action.start))
        is_quoted = bool(_QUOTED.search(raw))
        indent = said_indent(text, action)
        if indent is None:
            return cls(is_comment, is_quoted, "", "\n" + " " * style.column(text, action.start))
        first = "\n" if _ON_NEW_LINE.search(raw) else ""
        return cls(is_comment, is_quoted, first + " " * indent, "\n" + " " * indent)

    def write(self, said: str) -> str:
        if self.is_comment:
            return said.split("\n", 1)[0]  # more lines would be no comment
        if self.is_quoted:
            said = json.dumps(said)
        return self.first + said.replace("\n", self.next)


def _read(text: str) -> list[Any] | None:
    """The documents; None if readers do not agree on them."""
    stream = documents.read(text)
    if stream.unread or any(each.duplicates for each in stream.documents):
        return None
    return [each.data for each in stream.documents]


def _through(obj: dict[str, Any], plan: Plan) -> Any:
    """The object as the webhook leaves it, in normal form; None if that is not known."""
    if opened(plan, obj).is_open:
        return None
    if plan.unsafe or not is_built_in(obj):
        obj = copied(obj)
        evaluations(obj, plan)
    meant = through(obj, plan)
    if meant.why_not and is_built_in(obj):
        return None
    made = normal_form(meant.object, plan.settings)
    if made.get("apiVersion") == "apps/v1" and not as_map(made.get("spec")).get("selector"):
        return None  # it must be written manually
    for at in templates_of(made, plan.settings):
        _without_tolerations(as_map(as_map(value_at(made, at)).get("spec")), plan)
    return made


def _without_tolerations(spec: dict[str, Any], plan: Plan) -> None:
    """Without those of GPU nodes: they harm no pod, and are left out where there is no room."""
    kept = [
        each
        for _, each in as_items(spec.get("tolerations"))
        if not plan.settings.is_gpu(str(each.get("key")))
    ]
    spec["tolerations"] = kept


def _are_texts(data: Any) -> bool:
    """Whether texts, where the API has texts, are texts: the filling is not valid otherwise."""
    if isinstance(data, list):
        return all(map(_are_texts, data))
    return not isinstance(data, dict) or all(map(_is_valid, data, data.values()))


def _is_valid(name: Any, value: Any) -> bool:
    if name in _TEXTS:
        return isinstance(value, str | dict | list)
    if name in _MAPS_OF_TEXTS and isinstance(value, dict):
        return all(isinstance(each, str | None) for each in value.values())
    return _are_texts(value)


def _without_manifests(data: Any) -> Any:
    """The data without texts that have manifests in them, which are compared themselves."""
    if isinstance(data, dict):
        return {name: _without_manifests(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_without_manifests(each) for each in data]
    return "" if isinstance(data, str) and _MANIFEST.search(data) else data
