"""Tries an edited template: the texts before and after in, why the edits are wrong out.

Nobody knows what an action produces, so both texts are filled in with the same stand-ins, for every
combination of branches. The webhook must make the same objects of both. A filling counts only if
the text before is valid with it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.draft import copied
from webhook.evaluation.workloads import is_built_in, objects, templates_of
from webhook.files.results import Status
from webhook.files.source import TEMPLATES
from webhook.formats.file_objects import AMOUNTS, HARMLESS, OF_OBJECTS, evaluations, opened
from webhook.formats.opt_outs import with_namespaces
from webhook.kube import quantity
from webhook.kube.canonical import canonical
from webhook.kube.pod import SECTIONS, as_items, as_map
from webhook.kube.pointer import value_at
from webhook.rules import legacy_name_elsewhere, removed_kubelet_flag
from webhook.templates import actions
from webhook.templates.filling import Form
from webhook.templates.regions import parts
from webhook.verifying import unread_places
from webhook.verifying.admitted import admitted
from webhook.verifying.normal_form import normal_form
from webhook.verifying.similar_texts import Reader
from webhook.verifying.stand_ins import Place
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.files.results import FileResult, Plan
    from webhook.templates.actions import Template
    from webhook.templates.filling import Condition

    Migrate = Callable[[Plan], FileResult]
    Outputs = Mapping[str, str | None]  # by the text of an action; None: it writes nothing
    Chosen = Mapping[Condition, int]

_START = attrgetter("start")
_REPORTS = (removed_kubelet_flag.CODE, legacy_name_elsewhere.CODE)
_MOST = 64  # combinations of branches, and fillings that are drawn
_FEWEST = 8  # of them, in a text that is so large that fewer are tried
_MOST_TEXT = 8_000_000  # characters of all fillings with one stand-in
_ELSE = "it is wrong in another branch of a condition"
_ADDED_KEY = re.compile(r"[ \t]*(?:- )?[\"']?([\w./-]+)[\"']?[ \t]*:(?:\s|$)")
_MANIFEST = re.compile(r"^[ \t]*[\"']?(?:apiVersion|kind)[\"']?[ \t]*:", re.MULTILINE)
# Fields and maps of every kind whose values are texts.
_TEXTS = {"image", "key", "mountPath", "name", "path"}
_MAPS_OF_TEXTS = {"annotations", "labels", "matchLabels", "nodeSelector"}


def tried(result: FileResult, plan: Plan, migrate: Migrate) -> FileResult:
    """The result without the edits that are wrong with some stand-ins.

    `migrate` migrates the same file with another plan.
    """
    if result.kind not in TEMPLATES or result.new_text is None:
        return result
    webhook = _Webhook.of(result, plan)
    why = _why_wrong(result, webhook)
    return _less(result, plan, why, migrate, webhook) if why else result


def _less(
    result: FileResult, plan: Plan, why: str, migrate: Migrate, webhook: _Webhook
) -> FileResult:
    """The result without the edits of one rule, of all rules on the object, or of all."""
    codes = {each.code for each in result.located if each.status is Status.FIXABLE}
    units = [codes & OF_OBJECTS, codes & AMOUNTS, *({each} for each in sorted(codes))]
    for unit in filter(None, units):
        again = migrate(replace(plan, held={**plan.held, **dict.fromkeys(unit, why)}))
        if again.new_text is not None and not _why_wrong(again, webhook):
            return again
    return result.undone(why)


def why_wrong(result: FileResult, plan: Plan) -> str:
    """With which stand-ins the new text is wrong; empty if with none, or if it is no template."""
    if result.kind not in TEMPLATES or result.new_text is None:
        return ""
    return _why_wrong(result, _Webhook.of(result, plan))


def _why_wrong(result: FileResult, webhook: _Webhook) -> str:
    old, new = (actions.read(text) for text in (result.text, result.new_text or ""))
    # Where there is no room for a toleration it is left out, and a notice says so.
    are_all = all(e.status is Status.FIXABLE for e in result.located if e.code in HARMLESS)
    in_jinja = result.kind == "jinja"
    made = (
        _Trial(Form(one), Form(other), webhook, in_jinja=in_jinja, with_tolerations=are_all).why()
        for one, other in _manifests(old, new)
    )
    return next(filter(None, made), "")


def _manifests(old: Template, new: Template) -> Iterator[tuple[Template, Template]]:
    """Each manifest that is edited, before and after; all of it if they do not fit together."""
    before, after = (
        [each.text[e.start : e.end] for e in sorted(parts(each.blanked), key=_START)]
        for each in (old, new)
    )
    pairs = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
    read = [(actions.read(one), actions.read(other)) for one, other in pairs]
    if len(before) != len(after) or any(each.torn for pair in read for each in pair):
        read = [(old, new)]
    return (pair for pair in read if not any(each.excess for each in pair))


@dataclass(slots=True)
class _Trial:
    old: Form
    new: Form
    webhook: _Webhook
    in_jinja: bool = False
    with_tolerations: bool = True
    _known: dict[tuple[str, int], Place] = field(default_factory=dict)
    _judged: dict[tuple[str, str], bool | None] = field(default_factory=dict)

    def why(self) -> str:
        """The first stand-ins with which the edits are wrong, in words."""
        draw = random.Random(0)  # noqa: S311  # the same in every run
        places = {raw: self._first(raw) for raw in (*self.old.outputs, *self.new.outputs)}
        usual: dict[str, str | None] = {raw: place.usual for raw, place in places.items()}
        forms = (self.old, self.new)
        conditions = list(dict.fromkeys(c for form in forms for c in form.conditions.values()))
        choices = [*_choices(conditions, draw)]
        room = _MOST_TEXT // (2 * len(self._filled(self.old, usual, choices[0])) + 1)
        most = max(min(_MOST, room), _FEWEST)
        right = []
        for chosen in choices[:most]:
            is_right = self._is_right(usual, chosen)
            if is_right is False:
                return _ELSE
            right += [chosen] if is_right else []
        base = next(iter(right), choices[0])
        alone = [*self._alone(places, self._without_effect(usual, base))]
        texts = {raw: [text] for raw, text in usual.items()}
        room = room if right else most  # hardly any filling is valid
        for raw, what, text in draw.sample(alone, room) if room < len(alone) else alone:
            is_right = self._is_right({**usual, raw: text}, base)
            if is_right is False:
                return f"it is wrong if {raw} produces {what}"
            texts[raw] += [text] if is_right else []
        for _ in range(most if usual or conditions else 0):
            drawn = {raw: draw.choice((usual[raw], draw.choice(texts[raw]))) for raw in usual}
            if self._is_right(drawn, _turned(draw.choice(right or choices), draw)) is False:
                return "it is wrong with other values"
        return ""

    def _alone(
        self, places: Mapping[str, Place], left_out: set[str]
    ) -> Iterator[tuple[str, str, str | None]]:
        """Each action with each stand-in, in words and as a text."""
        added = self._added()
        for raw, place in places.items():
            if raw not in left_out:
                yield from ((raw, *each) for each in place.stand_ins(added))

    def _is_right(self, outputs: Outputs, chosen: Chosen) -> bool | None:
        """Whether the webhook makes the same objects of both texts.

        None if the text before is not valid, or is not changed.
        """
        before, after = (self._filled(form, outputs, chosen) for form in (self.old, self.new))
        if (before, after) not in self._judged:
            wanted = self.webhook.made(before) if before != after else None
            self._judged[before, after] = None if wanted is None else self._is(wanted, after)
        return self._judged[before, after]

    def _is(self, wanted: _Made, text: str) -> bool:
        got = self.webhook.made(text)
        return (
            got is not None
            and got.objects == wanted.objects
            and (not self.with_tolerations or got.tolerates(wanted))
        )

    def _filled(self, form: Form, outputs: Outputs, chosen: Chosen) -> str:
        return form.filled(chosen, lambda raw, at: self._place(form, raw, at).write(outputs[raw]))

    def _place(self, form: Form, raw: str, start: int) -> Place:
        key = (form.template.text, start)
        if key not in self._known:
            self._known[key] = Place.of(form.template, start, raw, in_jinja=self.in_jinja)
        return self._known[key]

    def _first(self, raw: str) -> Place:
        """The first place of an action with this text."""
        form = self.old if raw in self.old.template.text else self.new
        return self._place(form, raw, form.template.text.find(raw))

    def _without_effect(self, usual: Outputs, chosen: Chosen) -> set[str]:
        """The actions of which nothing matters that they produce."""
        inline = [raw for raw in usual if usual[raw] and self._is_inline(raw)]
        signs = {raw: unread_places.sign(number) for number, raw in enumerate(inline)}
        text = self._filled(self.old, {**usual, **signs}, chosen)
        counts = unread_places.without_effect(documents.read(text))
        every = Counter(self.old.written)
        return {raw for number, raw in enumerate(inline) if counts[number] == every[raw]}

    def _is_inline(self, raw: str) -> bool:
        return not self._first(raw).moves

    def _added(self) -> list[str]:
        """The members that the edits add: a template may write them, too.

        Whether values have another amount of GPUs is decided for the whole chart (projects/).
        """
        known, settings = set(self.old.template.text.split("\n")), self.webhook.plan.settings
        lines = (each for each in self.new.template.text.split("\n") if each not in known)
        names = dict.fromkeys(f[1] for each in lines if (f := _ADDED_KEY.match(each)))
        return [name for name in names if not settings.names_gpus(name)]


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


def _turned(chosen: Chosen, draw: random.Random) -> dict[Condition, int]:
    """The same branches, with one or two turns of the loops."""
    return {
        each: value * draw.choice((1, 2)) if each[1] else value for each, value in chosen.items()
    }


class _Made(NamedTuple):
    """The objects that the webhook makes, and the tolerations of GPU nodes of their pods.

    A pod may have more of these than it needs: they harm none.
    """

    objects: list[Any]
    tolerations: list[list[Any]]

    def tolerates(self, other: _Made) -> bool:
        """Whether each pod has all tolerations that it has there."""
        pairs = zip(self.tolerations, other.tolerations, strict=True)
        return all(each in mine for mine, theirs in pairs for each in theirs)


@dataclass(slots=True)
class _Webhook:
    """What the webhook makes of texts; of each object once."""

    plan: Plan
    _reader: Reader = field(default_factory=Reader)
    _texts: dict[str, _Made | None] = field(default_factory=dict)
    _objects: dict[str, _Made | None] = field(default_factory=dict)

    @classmethod
    def of(cls, result: FileResult, plan: Plan) -> _Webhook:
        """For this file. Rules on data only report: what they find is not compared."""
        reports = () if plan.unsafe else _REPORTS
        plan = with_namespaces(plan, actions.read(result.text).blanked)
        return cls(replace(plan, ignored=(*plan.ignored, *reports)))

    def made(self, text: str) -> _Made | None:
        """What it makes of the objects in a text; None if they are not valid."""
        if text not in self._texts:
            self._texts[text] = self._of(self._reader.read(text))
        return self._texts[text]

    def _of(self, found: list[Any] | None) -> _Made | None:
        if found is None or not all(map(_are_texts, found)):
            return None
        made = _Made([], [])
        for data in found:
            for _, obj in objects(data):
                key = canonical(obj)
                if key not in self._objects:
                    self._objects[key] = _through(obj, self.plan)
                one = self._objects[key]
                if one is None:
                    return None
                made.objects.extend(one.objects)
                made.tolerations.extend(one.tolerations)
        return made


def _through(obj: dict[str, Any], plan: Plan) -> _Made | None:
    """The object as the webhook leaves it, in normal form; None if that is not known."""
    if opened(plan, obj).is_open:
        return None
    if plan.unsafe or not is_built_in(obj):
        obj = copied(obj)
        evaluations(obj, plan)
    meant = admitted(obj, plan)
    if meant.why_not and is_built_in(obj):
        return None
    made = normal_form(meant.object, plan.settings)
    if made.get("apiVersion") == "apps/v1" and not as_map(made.get("spec")).get("selector"):
        return None  # it must be written manually
    specs = [as_map(value_at(made, e)).get("spec") for e in templates_of(made, plan.settings)]
    tolerations = [_without_tolerations(e, plan) if isinstance(e, dict) else [] for e in specs]
    return _Made([_without_manifests(made)], tolerations)


def _without_tolerations(spec: dict[str, Any], plan: Plan) -> list[Any]:
    """Take out those of GPU nodes, and return them."""
    every = [each for _, each in as_items(spec.get("tolerations"))]
    taken = [each for each in every if plan.settings.is_gpu(str(each.get("key")))]
    spec["tolerations"] = [each for each in every if each not in taken]
    return taken


def _are_texts(data: Any) -> bool:
    """Whether texts and amounts are, where the API has them: the filling is not valid otherwise."""
    if isinstance(data, list):
        return all(map(_are_texts, data))
    return not isinstance(data, dict) or all(map(_is_valid, data, data.values()))


def _is_valid(name: Any, value: Any) -> bool:
    if name in _TEXTS:
        return isinstance(value, str | dict | list)
    if name in _MAPS_OF_TEXTS and isinstance(value, dict):
        return all(isinstance(each, str | None) for each in value.values())
    if name in SECTIONS and isinstance(value, dict):
        return all(quantity.parse(each) is not None for each in value.values())
    return _are_texts(value)


def _without_manifests(data: Any) -> Any:
    """The data without texts that have manifests in them, which are compared themselves."""
    if isinstance(data, dict):
        return {name: _without_manifests(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_without_manifests(each) for each in data]
    return "" if isinstance(data, str) and _MANIFEST.search(data) else data
