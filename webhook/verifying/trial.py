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
from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.evaluation.workloads import is_built_in, objects, templates_of
from webhook.files.results import Status
from webhook.files.source import TEMPLATES
from webhook.formats.file_objects import AMOUNTS, HARMLESS, OF_OBJECTS, evaluations, opened
from webhook.formats.normal_form import normal_form
from webhook.formats.opt_outs import with_namespaces
from webhook.kube.pod import Pod, as_items, as_map
from webhook.kube.pointer import value_at
from webhook.rules import legacy_name_elsewhere, removed_kubelet_flag
from webhook.templates import actions
from webhook.templates.filling import Form
from webhook.templates.regions import parts
from webhook.verifying import unread_places
from webhook.verifying.admitted import admitted
from webhook.verifying.similar_texts import Reader
from webhook.verifying.stand_ins import Place
from webhook.verifying.valid_texts import are_texts
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.core.settings import Settings
    from webhook.files.results import FileResult, Plan
    from webhook.templates.actions import Template
    from webhook.templates.filling import Condition

    Migrate = Callable[[Plan], FileResult]
    Outputs = Mapping[str, str | None]  # by the text of an action; None: it writes nothing
    Chosen = Mapping[Condition, int]
    Raw = dict[str, Any]

_START = attrgetter("start")
_REPORTS = (removed_kubelet_flag.CODE, legacy_name_elsewhere.CODE)
_MOST = 64  # combinations of branches, and fillings that are drawn
_FEWEST = 8  # of them, in a text that is so large that fewer are tried
_MOST_TEXT = 8_000_000  # characters of all fillings with one stand-in
_ELSE = "it is wrong in another branch of a condition"
_ADDED_KEY = re.compile(r"[ \t]*(?:- )?[\"']?([\w./-]+)[\"']?[ \t]*:(?:\s|$)")
_MANIFEST = re.compile(r"^[ \t]*[\"']?(?:apiVersion|kind)[\"']?[ \t]*:", re.MULTILINE)


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
    _known: dict[tuple[bool, int], Place] = field(default_factory=dict)
    _written: dict[tuple[bool, int, str | None], str] = field(default_factory=dict)
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
        alone = [*self._alone(places, self._without_effect(usual))]
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
        pair = self._filled(self.old, outputs, chosen), self._filled(self.new, outputs, chosen)
        if pair[0] == pair[1]:
            return None
        if pair not in self._judged:
            self._judged[pair] = self.webhook.is_same(*pair, with_tolerations=self.with_tolerations)
        return self._judged[pair]

    def _filled(self, form: Form, outputs: Outputs, chosen: Chosen | None) -> str:
        def text_of(raw: str, at: int) -> str:
            key = (form is self.new, at, outputs[raw])
            if key not in self._written:
                self._written[key] = self._place(form, raw, at).write(outputs[raw])
            return self._written[key]

        return form.filled(chosen, text_of)

    def _place(self, form: Form, raw: str, start: int) -> Place:
        key = (form is self.new, start)
        if key not in self._known:
            self._known[key] = Place.of(form.template, start, raw, in_jinja=self.in_jinja)
        return self._known[key]

    def _first(self, raw: str) -> Place:
        """The first place of an action with this text."""
        form = self.old if raw in self.old.template.text else self.new
        return self._place(form, raw, form.template.text.find(raw))

    def _without_effect(self, usual: Outputs) -> set[str]:
        """The actions of which nothing matters that they produce."""
        inline = [raw for raw in usual if usual[raw] and self._is_inline(raw)]
        signs = {raw: unread_places.sign(number) for number, raw in enumerate(inline)}
        forms = self.old, self.new
        texts = [self._filled(form, {**usual, **signs}, None) for form in forms]
        before, after = (unread_places.without_effect(documents.read(text)) for text in texts)
        every = [Counter(form.written) for form in forms]
        return {
            raw
            for number, raw in enumerate(inline)
            if before[number] == after[number]
            and all(before[number].total() == written[raw] for written in every)
        }

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


@dataclass(frozen=True, slots=True)
class _Webhook:
    """What the webhook makes of texts."""

    plan: Plan
    _reader: Reader = field(default_factory=Reader)
    # By id(): objects and what they became. Equal documents of two texts have the same objects.
    _left: dict[int, tuple[Raw, Raw | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, result: FileResult, plan: Plan) -> _Webhook:
        """For this file. Rules on data only report: what they find is not compared."""
        reports = () if plan.unsafe else _REPORTS
        plan = with_namespaces(plan, actions.read(result.text).blanked)
        return cls(replace(plan, ignored=(*plan.ignored, *reports)))

    def is_same(self, before: str, after: str, *, with_tolerations: bool) -> bool | None:
        """Whether it makes the same objects of both texts; None if the one before is not valid.

        Usually the text after is what it makes of the text before. The last way is the dearest.
        """
        wanted = self._made(was := self._objects(before))
        if wanted is None:
            return None
        there = self._objects(after)
        if there is not None and self._agree(wanted, there, with_tolerations):
            return True
        got = self._made(there)
        return (
            not (was is None or there is None or got is None)
            and not _keeps_a_driver(was, there, got, self.plan.settings)
            and (
                self._agree(wanted, got, with_tolerations)
                or self._agree(self._normal(wanted), self._normal(got), with_tolerations)
            )
        )

    def _objects(self, text: str) -> list[Raw] | None:
        """The objects in a text; None if they are not valid."""
        found = self._reader.read(text)
        if found is None or not all(map(are_texts, found)):
            return None
        return [obj for data in found for _, obj in objects(data)]

    def _made(self, objs: list[Raw] | None) -> list[Raw] | None:
        """The objects as the webhook leaves them; None if that is not known of one."""
        made = []
        for each in objs or ():
            if id(each) not in self._left:
                if len(self._left) > _MOST:
                    self._left.clear()
                self._left[id(each)] = each, _through(each, self.plan)
            left = self._left[id(each)][1]
            if left is None:
                return None
            made.append(left)
        return None if objs is None else made

    def _normal(self, objs: list[Raw]) -> list[Raw]:
        return [_without_manifests(normal_form(each, self.plan.settings)) for each in objs]

    def _agree(self, wanted: list[Raw], got: list[Raw], with_tolerations: object) -> bool:
        """Whether the objects are equal, and each pod has all tolerations that it should have."""
        settings = self.plan.settings
        pairs = zip(*([_apart(e, settings) for e in objs] for objs in (wanted, got)), strict=False)
        return len(wanted) == len(got) and all(
            one == other and (not with_tolerations or all(map(_has_all, given, theirs)))
            for (one, theirs), (other, given) in pairs
        )


def _through(obj: Raw, plan: Plan) -> Raw | None:
    """The object as the webhook leaves it; None if that is not known."""
    if plan.unsafe or not (is_built_in(obj) or templates_of(obj, plan.settings)):
        if opened(plan, obj).is_open:
            return None
        obj = copied(obj)
        evaluations(obj, plan)
    meant = admitted(obj, plan, with_places=False)
    if meant.is_open or (meant.why_not and is_built_in(obj)):
        return None
    selector = as_map(as_map(meant.object.get("spec")).get("selector"))
    if meant.object.get("apiVersion") == "apps/v1" and not any(selector.values()):
        return None  # it must be written manually
    return meant.object


def _keeps_a_driver(was: list[Raw], now: list[Raw], made: list[Raw], settings: Settings) -> bool:
    """Whether a pod lost its legacy amounts, but has volumes still that the webhook takes away."""
    return any(
        Pod(one, at).volumes() != Pod(other, at).volumes()
        for before, one, other in zip(was, now, made, strict=False)
        for at in templates_of(one, settings)
        if not Pod(one, at).asks_under_legacy_name(settings)
        if Pod(before, at).asks_under_legacy_name(settings)
    )


def _has_all(given: list[Raw], wanted: list[Raw]) -> bool:
    return all(each in given for each in wanted)


def _apart(obj: Raw, settings: Settings) -> tuple[Raw, list[list[Raw]]]:
    """The object without tolerations of GPU nodes, and those of each of its pods.

    A pod may have more of these than it needs: they harm none.
    """
    every = []
    for at in templates_of(obj, settings):
        given = as_map(as_map(value_at(obj, at)).get("spec")).get("tolerations") or []
        taken = [each for _, each in as_items(given) if settings.is_gpu(str(each.get("key")))]
        if taken:
            obj = _replaced(obj, (*at, "spec"), [each for each in given if each not in taken])
        every.append(taken)
    return obj, every


def _replaced(data: Any, at: tuple[str | int, ...], tolerations: list[Any]) -> Any:
    """A copy of the data with other tolerations in the spec at this place."""
    made = data.copy()
    if at:
        made[at[0]] = _replaced(data[at[0]], at[1:], tolerations)
    elif tolerations:
        made["tolerations"] = tolerations
    else:
        del made["tolerations"]
    return made


def _without_manifests(data: Any) -> Any:
    """The data without texts that have manifests in them, which are compared themselves."""
    if isinstance(data, dict):
        return {name: _without_manifests(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_without_manifests(each) for each in data]
    return "" if isinstance(data, str) and _MANIFEST.search(data) else data
