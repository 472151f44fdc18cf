"""What a chart's actions do with GPU amounts: texts and values in, what depends on the names out.

An amount may be renamed where each action that gets it writes it as it is, at a known place
(known_places.py). The functions that do are listed here. Any other function may look at the names
of resources, or may put amounts of several places together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from webhook.formats.mentions import Comments
from webhook.kube import pod
from webhook.projects import read_files
from webhook.projects.chart_files import NOTES
from webhook.projects.seen_amounts import (
    ANY,
    ANYTHING,
    DOT,
    KEY,
    Seen,
    Uses,
    Write,
    is_unlike,
    is_without_limits,
    item_of,
)
from webhook.templates import actions, expressions, written
from webhook.templates.blocks import Kind
from webhook.templates.expressions import At, Call, Constant, Expression, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from webhook.core.settings import Settings
    from webhook.projects.seen_amounts import Source

SECTIONS = frozenset(pod.SECTIONS)
_READS = {"fromJson", "fromJsonArray", "fromYaml", "fromYamlArray", "mustFromJson"}
# They give back what they get, or choose one of it.
_KEEPS = _READS | {
    *("and", "coalesce", "deepCopy", "default", "fail", "first", "float64", "indent", "int"),
    *("int64", "keys", "last", "list", "mustDeepCopy", "mustToJson", "mustToPrettyJson"),
    *("mustToYaml", "nindent", "or", "quote", "required", "rest", "sortAlpha"),
    *("squote", "ternary", "toJson", "toPrettyJson", "toRawJson", "toString", "toYaml", "tpl"),
    *("trim", "tuple", "uniq", "values"),
}
_PARTS = {"keys", "list", "rest", "sortAlpha", "tuple", "uniq", "values"}  # no whole map
_LISTS = {"list", "tuple"}
_SAME_AS = _KEEPS - _PARTS - {"and", "coalesce", "default", "first", "last", "or", "ternary"}
_MERGES = {"merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite"}
_INCLUDES = {"include", "template"}
# They compare whole names, or look a member up by its whole name.
_LOOKS = {"dig", "get", "index", "omit", "pick", "pluck"}
_ASKS = {
    *("empty", "eq", "ge", "gt", "has", "hasKey", "kindIs", "kindOf", "le", "len", "lt"),
    *("mustHas", "ne", "not", "typeIs", "typeOf"),
    *("adler32sum", "sha1sum", "sha256sum", "sha512sum"),
}
_MAKES = {"dict", "set"}  # with the names of members
_TEXTS = {"cat", "join", "lower", "print", "printf", "replace", "trimPrefix", "trimSuffix"}
# Where one of these says the same of the old and of the new name, the new name changes nothing.
_SAME = {"contains": str.__contains__, "hasPrefix": str.startswith, "hasSuffix": str.endswith}
_TESTS = {*_SAME, "regexMatch", "mustRegexMatch"}
_WORD = re.compile(r"\w{3,}")
_ENTRY = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)[\"']?[ \t]*:")
_KEY = re.compile(r"([\w-]+)[\"']?[ \t]*:")
_MOST_ROUNDS = 8  # in which members of made maps and what is included are found


def of(texts: Sequence[tuple[str, str]], values: Iterable[Any], settings: Settings) -> Uses:
    """How the files of a chart use amounts; each text has its name before it."""
    uses = Uses((*settings.legacy_resources, settings.gpu_resource))
    for data in values:
        uses.learn(data)
    names = "|".join(map(re.escape, uses.names))
    bare = re.compile(rf"\}}\}}\s*[\"']?({names})[\"']?\s*\{{\{{")
    uses.bare = frozenset(found for _, text in texts for found in bare.findall(text))
    uses.files = read_files.with_amounts(texts, uses.names[:-1])
    if any(each in text for _, text in texts for each in _READS):
        for _, text in texts:  # a map may be read from the text of a named template
            if "define" in text and any(each in text for each in uses.names):
                uses.parsed |= {*SECTIONS, *uses.names, *_KEY.findall(text)}
    files = [_File(uses, name, text) for name, text in texts if "{{" in text]
    for _ in range(_MOST_ROUNDS):
        known = uses.size
        for each in files:
            each.follow()
        if uses.size == known:
            uses.written = [write for each in files for write in (*each.literal, *each.written)]
            return uses
    uses.is_deep = True
    return uses


@dataclass(frozen=True, slots=True)
class _Step:
    """An action: how it changes the blocks, what it sets, and its expression."""

    start: int
    kind: Kind
    word: str
    sets: tuple[str, ...]
    is_new: bool  # it declares what it sets
    expression: Expression | None


Declared = tuple[int, int]  # where, and the number among those of one action
_MAIN = (-1, 0)


@dataclass(frozen=True, slots=True)
class _Open:
    """An open block: its dot, the named template around it, and the variables before it."""

    dot: Seen
    named: str = ""
    before: dict[str, Declared] = field(default_factory=dict)


def _name_of(given: Expression | None) -> str:
    first = given.arguments[0] if isinstance(given, Call) and given.arguments else given
    return first.value if isinstance(first, Text) else ""


def _steps(text: str) -> Iterator[_Step]:
    comments = Comments(text)
    for each in actions.read_apart(text).actions:
        is_idle = each.kind is Kind.COMMENT or text[each.start + 1] != "{"
        if is_idle or (each.kind is Kind.WRITES and comments.hold(each.start)):
            continue
        word, said = each.word, each.rest
        if each.kind is Kind.TURNS:
            word, _, said = said.partition(" ")
        elif each.kind is Kind.WRITES or each.kind is Kind.SILENT:
            word, said = "", f"{word} {said}"
        whole = said.strip()
        sets, said = expressions.assigned(whole)
        is_new = ":=" in whole[: len(whole) - len(said)]
        made = expressions.read(said) if said else None
        yield _Step(each.start, each.kind, word, sets, is_new, made)


class _File:
    """The actions of one file in their order: what variables and the dot may be."""

    def __init__(self, uses: Uses, name: str, text: str) -> None:
        self._uses, self._name, self._text = uses, name, text
        self._steps = list(_steps(text))
        self._places = written.places(text)
        self._variables: dict[str, Declared] = {}
        self._seen: dict[Declared, Seen] = {}
        self._conditions: dict[int, Source | None] = {}
        self._open: list[_Open] = []
        self._read: dict[tuple[object, ...], set[str]] = {}  # sections of each map
        self._is_asked = False  # in a condition
        self._at = 0
        self.written: list[Write] = []
        self.literal = list(self._literal())

    def _literal(self) -> Iterator[Write]:
        """The amounts in the text of named templates."""
        comments = Comments(self._text)
        for each in _ENTRY.finditer(self._text):
            place = self._places.of_text(each.start())
            if each["name"] in self._uses.names and not comments.hold(each.start()):
                if place is None or not place.manifest.named:
                    continue
                self._uses.writes.add(place.manifest.named)
                if each["name"] != self._uses.names[-1]:
                    self._uses.is_legacy, self._at = True, each.start()
                    yield Write(self._where(each["name"]), place, Seen(amounts=True), {})

    def follow(self) -> None:
        self._open = [_Open(replace(ANYTHING, source=("$",)))]
        self._variables, self._seen[_MAIN] = {"$": _MAIN}, self._open[0].dot
        self.written = []
        for step in self._steps:
            self._at, self._is_asked = step.start, step.word == "if"
            self._follow(step)
        if len(self._read) > 1 or any(each != SECTIONS for each in self._read.values()):
            self._uses.is_apart = True

    def _follow(self, step: _Step) -> None:
        here, given, before = self._open[-1], step.expression, self._variables
        if step.kind is Kind.OPENS and step.word in {"define", "block"}:
            self._define(step)
            return
        seen = self._value(given) if given is not None else Seen()
        self._set(step, seen)
        if step.kind is Kind.WRITES:
            self._write(step, seen)
        dot = seen.inside(step.start) if step.word == "range" else seen
        is_dot = step.word in {"range", "with"}
        if step.kind is Kind.OPENS:
            self._conditions[step.start] = seen.source if isinstance(given, At) else None
            self._open.append(_Open(dot if is_dot else here.dot, here.named, before))
        elif step.kind is Kind.TURNS and is_dot:
            self._open[-1] = replace(here, dot=here.dot | dot)
        elif step.kind is Kind.ENDS and len(self._open) > 1:
            self._variables = self._open.pop().before

    def _write(self, step: _Step, seen: Seen) -> None:
        if not seen.amounts or (self._name.endswith(NOTES) and not self._open[-1].named):
            return
        if self._open[-1].named:
            self._uses.writes.add(self._open[-1].named)
        end = self._text.find("}}", step.start) + 2
        said = " ".join(self._text[step.start : end].split())
        place = self._places.of_actions.get(step.start)
        self.written.append(Write(self._where(said), place, seen, self._conditions))

    def _define(self, step: _Step) -> None:
        """What a named template gets is its dot, and `$`."""
        name, given = _name_of(step.expression), step.expression
        if step.word == "block" and given is not None:
            self._write(step, self._value(Call("template", (Text(name), At("")))))
        seen = self._uses.dots.get(name, Seen()) | self._uses.dots.get(ANY, Seen())
        dot = replace(seen, source=(DOT,))
        self._open.append(_Open(dot, name, self._variables))
        at = (step.start, 0)
        self._variables, self._seen[at] = {"$": at}, dot

    def _set(self, step: _Step, seen: Seen) -> None:
        inside = seen.inside(step.start)
        may_name = seen.is_parsed or self._uses.may_name(step.expression)
        may_name = may_name and not read_files.is_glob(step.expression)
        key = seen.inside(step.start, KEY) if may_name else Seen()
        given = [seen] if step.word != "range" else [key, inside][-len(step.sets) :]
        for number, (each, made) in enumerate(zip(step.sets, given, strict=False)):
            if step.is_new:
                self._variables = {**self._variables, each: (step.start, number)}
            self._join(each, made, is_new=step.is_new)

    def _join(self, variable: str, seen: Seen, *, is_new: bool = False) -> None:
        at = self._variables.get(variable, _MAIN)
        made = self._seen.get(at, Seen()) | seen
        self._seen[at] = made if is_new else replace(made, source=None)

    def _value(self, given: Expression) -> Seen:
        if isinstance(given, Text | Constant):
            return Seen(texts=frozenset({given.value} if isinstance(given, Text) else ()))
        if isinstance(given, At):
            return self._member(given)
        if given.name in _INCLUDES:
            return self._included(given)
        if read_files.is_read(given, self._uses.files):
            return ANYTHING
        seen = [self._value(each) for each in given.arguments]
        if given.name == "tpl":
            seen = seen[:1]
        every = Seen()
        for each in seen:
            every |= replace(each, items=None)
        if given.name in _READS and (self._uses.leads or self._uses.parsed):
            is_known = bool(every.named) and not every.amounts
            every = Seen() if is_known else replace(ANYTHING, is_parsed=True)
        if given.name in _MAKES:
            return self._made(given, seen, every)
        if every.amounts:
            return self._used(given, seen, every)
        is_made = given.name in _TEXTS
        return replace(every, is_cut=True) if is_made else every if given.name in _KEEPS else Seen()

    def _member(self, given: At) -> Seen:
        root = given.root
        if not isinstance(root, str):
            seen = self._value(root)
        else:
            seen = self._variable(root) if root else self._open[-1].dot
        if not given.members or read_files.is_data(given):
            return seen
        last = given.members[-1]
        if last not in self._uses.leads and not (seen.is_parsed and last in self._uses.parsed):
            return Seen(texts=self._uses.names_in.get(last, frozenset()))
        self._read_section({last}, last)
        if last in SECTIONS and not self._is_asked:
            place = (root if isinstance(root, str) else self._at, *given.members[:-1])
            self._read.setdefault(place, set()).add(last)
        source = None if seen.source is None else (*seen.source, *given.members)
        return replace(ANYTHING, source=source, is_parsed=seen.is_parsed)

    def _variable(self, name: str) -> Seen:
        return self._seen.get(self._variables.get(name, _MAIN), Seen())

    def _included(self, given: Call) -> Seen:
        """What a named template writes; what it gets, it has as its dot."""
        seen = [self._value(each) for each in given.arguments]
        first = given.arguments[0] if given.arguments else None
        name = first.value if isinstance(first, Text) else ANY
        dots, writes = self._uses.dots, self._uses.writes
        for each in seen[1:]:
            dots[name] = dots.get(name, Seen()) | each
        amounts = bool(writes or self._uses.leads) if name == ANY else name in writes
        given_by = seen[1].source if len(seen) == 2 else None  # noqa: PLR2004
        source = None if given_by is None else (name, *given_by)
        members = seen[1].given if source is None and len(seen) > 1 else None
        return Seen(amounts, self._uses.bare, named=frozenset({name}), given=members, source=source)

    def _made(self, given: Call, seen: list[Seen], every: Seen) -> Seen:
        """A map with these members: the names of those with amounts lead to them."""
        first = 1 if given.name == "set" else 0
        for key, value in zip(seen[first::2], seen[first + 1 :: 2], strict=False):
            if value.amounts:
                self._uses.leads |= key.texts
                self._uses.holders |= key.texts
                self._read_section(key.texts, given.name, is_apart=True)
        if not every.texts.isdisjoint(self._uses.names):
            self._uses.builds = self._uses.builds or self._where(given.name)
        members = dict(zip(given.arguments[first::2], seen[first + 1 :: 2], strict=False))
        is_known = all(isinstance(each, Text) for each in members) and given.name == "dict"
        with_amounts = (e.value for e, s in members.items() if isinstance(e, Text) and s.amounts)
        is_changed = every.is_changed or is_unlike(given.arguments[first:], seen[first:])
        if given.name == "set" and every.amounts:
            self._combine(given, replace(every, is_changed=is_changed))
        return replace(
            every,
            texts=frozenset(),
            is_cut=False,
            is_direct=every.amounts,
            is_changed=is_changed,
            named=frozenset(),
            given=frozenset(with_amounts) if is_known else None,
            source=None,
        )

    def _used(self, given: Call, seen: list[Seen], every: Seen) -> Seen:
        """What a function makes of an amount, or of a map with amounts."""
        uses, name = self._uses, given.name
        if (item := item_of(given, seen)) is not None:
            return item
        if name in _KEEPS:
            is_changed = every.is_changed or name in _PARTS
            is_item = (every.source or ())[-2:-1] == (ANY,)
            is_same = name in _SAME_AS or (
                name == "default" and not seen[0].amounts and not is_item
            )
            source = every.source if is_same else None
            items = tuple(seen) if name in _LISTS else None
            return replace(every, is_changed=is_changed, source=source, items=items)
        if name in _LOOKS | _ASKS:
            is_part = every.is_cut and any(map(self._is_part, every.texts))
            if is_part or not every.texts.isdisjoint(uses.names):
                uses.looks = uses.looks or self._where(name)
            members = SECTIONS if name == "len" else every.texts
            self._read_section(members, name, is_apart=name in _LOOKS and not self._is_asked)
            is_other = name != "omit" and every.texts and every.texts.isdisjoint(uses.leads)
            is_given = name in _LOOKS and not is_other
            made = replace(every, texts=frozenset(), source=None) if is_given else Seen()
            is_changed = every.is_changed or is_without_limits(given)
            return replace(made, is_cut=every.is_cut, is_changed=made.amounts and is_changed)
        if "egex" in name or not all(self._is_same(name, each) for each in every.texts):
            uses.looks = uses.looks or self._where(name)
        if name in _TESTS:
            return Seen()
        self._read_section(every.texts, name, is_apart=True)
        return self._combine(given, every)

    def _read_section(
        self, members: AbstractSet[str], function: str, *, is_apart: bool = False
    ) -> None:
        for each in SECTIONS & members:
            self._uses.is_apart |= is_apart
            if each not in self._uses.sections:
                self._uses.sections[each] = self._where(function)

    def _combine(self, given: Call, every: Seen) -> Seen:
        """Such a function may change its first argument, too."""
        self._uses.combines = self._uses.combines or self._where(given.name)
        first = given.arguments[0]
        is_changed = every.is_changed or given.name not in _MERGES | _MAKES
        made = replace(every, is_changed=is_changed, is_cut=True, source=None)
        if isinstance(first, At) and isinstance(first.root, str) and not first.members:
            self._join(first.root, made)
        elif isinstance(first, At) and is_changed:
            self._uses.changes = self._uses.changes or self._where(given.name)
        return made

    def _is_part(self, text: str) -> bool:
        """Whether a text has a part of one of the names."""
        words = [each.lower() for each in _WORD.findall(text)]
        return any(word in name or name in word for word in words for name in self._uses.names)

    def _is_same(self, function: str, text: str) -> bool:
        """Whether it makes no difference for this text which of the names there is."""
        test = _SAME.get(function)
        found = {test(name, text) for name in self._uses.names} if test else {False}
        return found == {True} or (found == {False} and not self._is_part(text))

    def _where(self, function: str) -> str:
        return f"{self._name} (line {self._text.count(chr(10), 0, self._at) + 1}, {function})"
