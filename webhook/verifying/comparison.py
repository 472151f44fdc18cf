"""Compares two sides: what the webhook makes of the old objects, and the new ones as they are."""

from __future__ import annotations

import re
import time
from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.draft import copied
from webhook.core.errors import InputError
from webhook.core.text_patterns import find
from webhook.evaluation.workloads import templates_of
from webhook.files import diff, search_words
from webhook.files.results import Status
from webhook.files.source import Source
from webhook.formats.mentions import Comments, Spans
from webhook.formats.migrate import migrate_text
from webhook.formats.normal_form import normal_form
from webhook.kube.api_versions import workload_successor
from webhook.kube.canonical import canonical
from webhook.kube.pod import as_items, as_map
from webhook.kube.pointer import Path, value_at
from webhook.reports.printing import as_yaml
from webhook.rules import PATTERNS
from webhook.verifying.generated_names import generated, without_hashes
from webhook.verifying.opted_out import OptOuts
from webhook.verifying.random_values import common, marked, unmarked
from webhook.verifying.read_side import rendered_again
from webhook.yamlpatch.places import Place
from webhook.yamlpatch.style import line_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.files.results import Plan
    from webhook.verifying.admitted import Admitted
    from webhook.verifying.generated_names import Names
    from webhook.verifying.read_side import Found, Side, Unread

    Raw = dict[str, Any]
    # What an API server would store of an object; NotTaken if it refuses it.
    Store = Callable[[Raw], Raw]
    Key = tuple[str, str, str]

_MOST = 8  # places that a sentence names
_TICK = 1  # seconds, after which also a rendering of the time in seconds is another one
_FIRST = Place(1, 1, 1, 1)
# Behind a name that is a key, and before one that is a value.
_OF_KEY = re.compile(r"[\"']?[ \t]*:(?!\S)")
_OF_VALUE = re.compile(r"(?:^|[\s{,\"'])[\w./-]+[\"']?[ \t]*:[ \t]+[\"']?$")


class NotTaken(Exception):  # noqa: N818  # what happened
    """Why an API server refuses an object."""


class Result(StrEnum):
    """What is known of an object."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_PROVABLE = "not provable"


@dataclass(frozen=True, slots=True)
class Compared:
    """One object of both sides, or a file without objects, and the result."""

    name: str
    result: Result
    path: str  # of the new file; of the old one, if there is no new one
    place: Place = _FIRST
    old_path: str = ""
    why: str = ""
    diff: str = ""
    conversions: tuple[str, ...] = ()  # how the old object was converted first


def compare(old: Side, new: Side, plan: Plan, store: Store | None = None) -> list[Compared]:
    """The result for each object, and for each file that has none, in the order of the files."""
    found = _objects(old, new, plan, store)
    is_rendered = any(each.made_by for each in (*old.found, *new.found))
    if is_rendered and any(each.result is Result.DIFFERENT for each in found):
        time.sleep(_TICK)
        found = _objects(rendered_again(old), rendered_again(new), plan, store)
    found += _unread(old.unread, new.unread, plan)
    return sorted(found, key=lambda each: (each.path, each.place.line, each.name))


def _objects(old: Side, new: Side, plan: Plan, store: Store | None) -> list[Compared]:
    names = generated(old.found), generated(new.found)
    pairs = _pairs(old.found, new.found, plan, names)
    return [_both(*pair, plan, names, store) for pair in pairs]


def _pairs(
    old: Iterable[Found], new: Iterable[Found], plan: Plan, names: tuple[Names, Names]
) -> Iterator[tuple[_Old | None, Found | None]]:
    """Old and new objects of the same kind, namespace and name.

    If several have them, those of the same file belong together, and then they go by their order.
    """
    old = [*old]
    opt_outs = OptOuts.of(old)
    olds = [_old(each, opt_outs, plan) for each in old]
    news = [*new]
    for is_far in (False, True):
        waiting: dict[tuple[Key, str], deque[Found]] = defaultdict(deque)
        for each in news:
            obj = without_hashes(_known(each.object, each.again), each.beside, names[1])
            waiting[_same(obj, plan), "" if is_far else each.below].append(each)
        rest = []
        for one in olds:
            obj = without_hashes(_known(one.meant.object, one.again), one.found.beside, names[0])
            there = waiting[_same(obj, plan), "" if is_far else one.found.below]
            if there:
                yield one, there.popleft()
            else:
                rest.append(one)
        olds, news = rest, [each for there in waiting.values() for each in there]
    yield from ((one, None) for one in olds)
    yield from ((None, each) for each in news)


class _Old(NamedTuple):
    found: Found
    meant: Admitted
    again: Raw | None


def _old(found: Found, opt_outs: OptOuts, plan: Plan) -> _Old:
    """What the webhook makes of an old object, and of a second rendering of it."""
    meant, again = opt_outs.admitted(found, plan), found.again
    if again is not None:
        again = opt_outs.admitted(replace(found, object=again), plan).object
    return _Old(found, meant, again)


def _known(obj: Raw, again: Raw | None) -> Raw:
    """What is known of an object: what a second rendering makes anew is not."""
    return obj if again is None else common(obj, again)


def _key(obj: Raw, plan: Plan) -> Key:
    """The current kind, the namespace and the name."""
    metadata, successor = as_map(obj.get("metadata")), workload_successor(obj, plan.target)
    kind = str(obj.get("kind")) if successor is None else successor.kind
    generated = metadata.get("generateName")
    name = metadata.get("name") or (f"{generated}*" if generated else "(no name)")
    return kind, str(metadata.get("namespace") or ""), str(name)


def _same(obj: Raw, plan: Plan) -> Key:
    """The key by which objects are matched: `pod` is what many files call a Pod."""
    kind, namespace, name = _key(obj, plan)
    return kind.lower(), namespace, name


def _both(
    old: _Old | None,
    new: Found | None,
    plan: Plan,
    names: tuple[Names, Names],
    store: Store | None,
) -> Compared:
    """The result for a pair; one of the two may be missing."""
    if old is None or new is None:
        (shown,) = (each for each in (old and old.found, new) if each)
        name = _name(_key(old.meant.object if old else shown.object, plan))
        why = "only OLD has it" if old else "only NEW has it"
        return Compared(name, Result.DIFFERENT, shown.path, shown.place, why=why)
    made = Compared(
        _name(_key(new.object, plan)),
        Result.EQUAL,
        new.path,
        new.place,
        old.found.path,
        conversions=tuple(old.meant.conversions),
    )
    if why_not := old.meant.why_not or _twice(old.found, new, plan):
        return replace(made, result=Result.NOT_PROVABLE, why=why_not)
    try:
        wanted, got = (
            without_hashes(_stored(obj, again, plan, store), each.beside, known)
            for obj, again, each, known in (
                (old.meant.object, old.again, old.found, names[0]),
                (new.object, new.again, new, names[1]),
            )
        )
    except NotTaken as why:
        return replace(made, result=Result.NOT_PROVABLE, why=f"the API server refuses it: {why}")
    places = [*_differing(wanted, got, ())]
    if old.meant.data and all(_is_in(place, old.meant.data) for place in places):
        name = ".".join(old.meant.data[0])
        unknown = f"{name} has a legacy name, and what other programs make of it is not known"
        return replace(made, result=Result.NOT_PROVABLE, why=unknown)
    if anew := [*marked(wanted), *marked(got)]:
        another = f"each rendering makes another value of {_named(at for at, _ in anew)}"
        if not places and all(is_free for _, is_free in anew):
            return replace(made, why=f"{another}, which is not judged")
        if not [*_differing(*unmarked(wanted, got), ())]:
            return replace(made, result=Result.NOT_PROVABLE, why=another)
    if not places:
        return made
    tolerant = _with_gpu_tolerations(wanted, got, plan)
    left = {*map(_list_of, _differing(tolerant, normal_form(got, plan.settings), ()))}
    only_ours = [each for each in places if _list_of(each) and _list_of(each) not in left]
    why_different = _sentence(places, old.meant, only_ours)
    return replace(made, result=Result.DIFFERENT, why=why_different, diff=_diff(wanted, got))


def _stored(obj: Raw, again: Raw | None, plan: Plan, store: Store | None) -> Raw:
    """The normal form of what an API server stores, with marks where a second rendering differs."""
    if store is not None:
        obj, again = store(obj), None if again is None else store(again)
    return normal_form(_known(obj, again), plan.settings)


def _twice(old: Found, new: Found, plan: Plan) -> str:
    """What occurs twice, unless every reader reads the same of both, with nothing to repair."""
    words = search_words.words(plan.settings)
    if old.text == new.text and not any(word in old.text.encode() for word in words):
        return ""
    twice = old.twice or new.twice
    return twice and f"{twice} occurs twice, and readers differ in which one counts: delete one"


def _is_in(place: tuple[str, ...], others: Iterable[tuple[str, ...]]) -> bool:
    return any(place[: len(each)] == each for each in others)


def _name(key: Key) -> str:
    kind, namespace, name = key
    return f"{kind}/{namespace}/{name}" if namespace else f"{kind}/{name}"


def _differing(one: Any, other: Any, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The places that differ; all items of a list are one place, since lists are sorted."""
    if canonical(one) == canonical(other):  # 1, true and 1.0 are not
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            yield from _differing(one.get(name), other.get(name), (*at, name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        places = (place for a, b in zip(one, other, strict=True) for place in _differing(a, b, at))
        yield from dict.fromkeys(places)
    else:
        yield at


def _named(places: Iterable[tuple[str, ...]]) -> str:
    """Some places, and the number of the others."""
    parts = [".".join(each) for each in dict.fromkeys(places)]
    return _listed(parts[:_MOST], len(parts))


def _listed(parts: list[str], of: int) -> str:
    more = f" and {of - _MOST} more" if of > _MOST else ""
    return f"{', '.join(parts)}{more}"


def _list_of(place: tuple[str, ...]) -> tuple[str, ...]:
    """The place of the tolerations that this one is in; empty if it is in none."""
    return place[: place.index("tolerations") + 1] if "tolerations" in place else ()


def _with_gpu_tolerations(obj: Raw, other: Raw, plan: Plan) -> Raw:
    """The normal form of the object with the tolerations of GPU nodes that the other one has."""
    settings, made = plan.settings, copied(obj)
    for at in templates_of(made, settings):
        spec = as_map(as_map(value_at(made, at)).get("spec"))
        given = spec.get("tolerations")
        added = [e for _, e in _tolerations(other, at) if settings.is_gpu(str(e.get("key")))]
        spec["tolerations"] = [*(given if isinstance(given, list) else ()), *added]
    return normal_form(made, settings)


def _tolerations(obj: Raw, at: Path) -> list[tuple[int, Raw]]:
    """The tolerations of the pod template at this place, if there is one."""
    with suppress(LookupError, TypeError):
        return [*as_items(as_map(as_map(value_at(obj, at)).get("spec")).get("tolerations"))]
    return []


def _sentence(
    places: list[tuple[str, ...]], meant: Admitted, only_ours: list[tuple[str, ...]]
) -> str:
    """What differs, with the rules that would have changed it in the old object."""
    parts = []
    for place in places[:_MOST]:
        codes = meant.codes_at(place)
        by = f"by {', '.join(codes)}" if codes else "by no rule"
        if place in only_ours:
            by = "by no rule: the webhook adds this only to pods that request GPUs"
        parts.append(f"{'.'.join(place) or 'the whole object'} (changed {by})")
    return _listed(parts, len(places))


def _diff(wanted: Raw, got: Raw) -> str:
    """The differing lines of the normal forms: what the webhook makes of OLD, and NEW."""
    one, other = (as_yaml(each, sort_keys=True) for each in _masked(wanted, got))
    lines = ["--- OLD, through the webhook\n", "+++ NEW\n"]
    for hunk in diff.hunks(one, other):
        lines.append(f"{diff.heading(hunk)}\n")
        lines += [f"{line.sign}{line.text}" for line in hunk]
    return "".join(lines)


def _masked(wanted: Raw, got: Raw) -> tuple[Raw, Raw]:
    """Both, without the values of a Secret: logs and reports may be public (as in kubectl diff)."""
    masked = {**wanted}, {**got}
    for name in ("data", "stringData") if "Secret" in {wanted.get("kind"), got.get("kind")} else ():
        one, other = as_map(wanted.get(name)), as_map(got.get(name))
        for each, values, mark in zip(masked, (one, other), ("OLD", "NEW"), strict=True):
            if values:
                each[name] = {
                    key: "***" if one.get(key) == other.get(key) else f"*** ({mark})"
                    for key in values
                }
    return masked


def _unread(old: Iterable[Unread], new: Iterable[Unread], plan: Plan) -> Iterator[Compared]:
    """The files of which nothing is known, without those that do not matter."""
    before = {each.below: each for each in old}
    after = {each.below: each for each in new}
    words = search_words.words(plan.settings)
    for below in {**before, **after}:
        sides = [side[below] for side in (before, after) if below in side]
        if _matters(sides, words, plan) or _changes(before.get(below), after.get(below), plan):
            each = max(reversed(sides), key=lambda side: side.may_be_applied)
            yield Compared(
                sides[-1].path,
                Result.NOT_PROVABLE,
                sides[-1].path,
                old_path=before[below].path if below in before else "",
                why=each.why,
            )


def _matters(sides: list[Unread], words: tuple[bytes, ...], plan: Plan) -> bool:
    """Whether the text may be applied and differs, or something in it is to be migrated."""
    contents = {each.content for each in sides}
    is_same = len(sides) > len(contents)  # both sides have it, with one content
    may_be_applied = any(each.may_be_applied for each in sides)
    if None in contents or (may_be_applied and not is_same):
        return True
    return any(
        _is_legacy(each, plan)
        for each in sides
        if each.content is not None and any(word in each.content for word in words)
    )


def _changes(old: Unread | None, new: Unread | None, plan: Plan) -> bool:
    """Whether a text changes in which a legacy name is written as in a manifest.

    It may be one in a form that is not read, as in indented code; of prose nothing is said.
    """
    if old is None or old.content is None or (new is not None and new.content == old.content):
        return False
    text = old.content.decode(errors="replace")
    comments = Comments(text)
    return any(
        _OF_KEY.match(text, each.end)
        or _OF_VALUE.search(text, line_start(text, each.start), each.start)
        for each in find(text, PATTERNS, plan.settings)
        if plan.asks(each.code) and not comments.hold(each.start)
    )


def _is_legacy(unread: Unread, plan: Plan) -> bool:
    """Whether `scan` finds something to migrate in the text that is not compared."""
    try:
        source = Source.of(unread.path, unread.whole or unread.content or b"", lossy=True)
        found = migrate_text(source, plan).located
    except InputError:  # no text
        return False
    compared = Spans(unread.compared)
    return any(
        each.status in {Status.FIXABLE, Status.MANUAL}
        and not compared.hold(source.index(each.place.line, each.place.column))
        for each in found
    )
