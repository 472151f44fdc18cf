"""What a chart's actions do with GPU amounts: texts and values in, what depends on the names out.

An amount may be renamed where each action that gets it writes it as it is. The functions that do
are listed here. Any other function may look at the names of resources, or may put amounts of
several places together.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from webhook.formats.mentions import Comments
from webhook.kube import pod
from webhook.kube.walk import walk
from webhook.templates import actions, expressions
from webhook.templates.blocks import Kind
from webhook.templates.expressions import At, Call, Constant, Expression, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from webhook.core.settings import Settings

SECTIONS = frozenset(pod.SECTIONS)
_READS = {"fromJson", "fromJsonArray", "fromYaml", "fromYamlArray", "mustFromJson"}
# They give back what they get, or choose one of it.
_KEEPS = _READS | {
    *("and", "coalesce", "deepCopy", "default", "fail", "first", "float64", "indent", "int"),
    *("int64", "keys", "last", "list", "mustDeepCopy", "mustToJson", "mustToPrettyJson"),
    *("mustToYaml", "nindent", "or", "quote", "required", "rest", "sha256sum", "sortAlpha"),
    *("squote", "ternary", "toJson", "toPrettyJson", "toRawJson", "toString", "toYaml", "tpl"),
    *("trim", "tuple", "uniq", "values"),
}
_INCLUDES = {"include", "template"}
# They compare whole names, or look a member up by its whole name.
_LOOKS = {"dig", "get", "index", "omit", "pick", "pluck"}
_ASKS = {
    *("empty", "eq", "ge", "gt", "has", "hasKey", "kindIs", "kindOf", "le", "len", "lt"),
    *("mustHas", "ne", "not", "typeIs", "typeOf"),
}
_MAKES = {"dict", "set"}  # with the names of members
_TEXTS = {"cat", "join", "lower", "print", "printf", "replace", "trimPrefix", "trimSuffix"}
# Where one of these says the same of the old and of the new name, the new name changes nothing.
_SAME = {"contains": str.__contains__, "hasPrefix": str.startswith, "hasSuffix": str.endswith}
_TESTS = {*_SAME, "regexMatch", "mustRegexMatch"}
_WORD = re.compile(r"\w{3,}")
_ENTRY = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)[\"']?[ \t]*:")
_KEY = re.compile(r"([\w-]+)[\"']?[ \t]*:")
_KIND = re.compile(r"^(?:kind:[ \t]*[\"']?(?P<kind>\w+)|---)", re.MULTILINE)
# Where an amount is no request of a pod: it counts for a namespace, or another program reads it.
_OTHERS = {"ConfigMap", "LimitRange", "ResourceQuota", "Secret"}
_MOST_ROUNDS = 8  # in which members of made maps and what is included are found


@dataclass(frozen=True, slots=True)
class Seen:
    """What an expression may give: a map with amounts or a part of it, and known texts."""

    amounts: bool = False
    texts: frozenset[str] = frozenset()
    is_cut: bool = False  # its texts may be parts of names

    def __or__(self, other: Seen) -> Seen:
        is_cut = self.is_cut or other.is_cut
        return Seen(self.amounts or other.amounts, self.texts | other.texts, is_cut)


ANYTHING = Seen(amounts=True)


@dataclass(slots=True)
class Uses:
    """What the actions of a chart do; each with the first place, and the function."""

    names: tuple[str, ...]  # of the resource, before and after
    leads: set[str] = field(default_factory=set)  # members that are amounts, or have some inside
    names_in: dict[str, frozenset[str]] = field(default_factory=dict)  # by members: names in them
    bare: frozenset[str] = frozenset()  # names that named templates write
    writes: set[str] = field(default_factory=set)  # named templates that write amounts
    looks: str = ""  # a function that looks at the names
    combines: str = ""  # a function that may put amounts together
    builds: str = ""  # a function that builds amounts
    gives: str = ""  # an action that writes amounts into an object without pods, and its kind
    sections: dict[str, str] = field(default_factory=dict)  # those that are read alone
    is_apart: bool = False  # the limits and requests of a container may be of different maps
    is_deep: bool = False  # values are given on more often than is followed

    @property
    def size(self) -> int:
        return len(self.leads) + len(self.writes)

    @property
    def place(self) -> str:
        return self.combines or next(iter(self.sections.values()), "")


def of(texts: Sequence[tuple[str, str]], values: Iterable[Any], settings: Settings) -> Uses:
    """How the files of a chart use amounts; each text has its name before it."""
    uses = Uses((*settings.legacy_resources, settings.gpu_resource))
    for data in values:
        _learn(data, uses)
    names = "|".join(map(re.escape, uses.names))
    bare = re.compile(rf"\}}\}}\s*[\"']?({names})[\"']?\s*\{{\{{")
    uses.bare = frozenset(found for _, text in texts for found in bare.findall(text))
    if any(each in text for _, text in texts for each in _READS):
        for _, text in texts:  # a map may be read from the text of a named template
            if "define" in text and any(each in text for each in uses.names):
                uses.leads |= {*SECTIONS, *uses.names, *_KEY.findall(text)}
    files = [_File(uses, name, text) for name, text in texts if "{{" in text]
    for _ in range(_MOST_ROUNDS):
        known = uses.size
        for each in files:
            each.follow()
        if uses.size == known:
            return uses
    uses.is_deep = True
    return uses


def _learn(data: Any, uses: Uses) -> None:
    """Note which members of values have amounts inside, and which are the name of a resource."""
    for at, value in walk(data):
        if at[-1:] and at[-1] in uses.names:
            members = {*map(str, at), "Values"}
            uses.leads |= members if members.isdisjoint(SECTIONS) else members | SECTIONS
        elif at and isinstance(value, str) and value in uses.names:
            said = uses.names_in.get(str(at[-1]), frozenset())
            uses.names_in[str(at[-1])] = said | {value}


@dataclass(frozen=True, slots=True)
class _Step:
    """An action: how it changes the blocks, what it sets, and its expression."""

    start: int
    kind: Kind
    word: str
    sets: tuple[str, ...]
    expression: Expression | None


@dataclass(frozen=True, slots=True)
class _Open:
    """An open block: its dot, and the named template around it with the begin of that."""

    dot: Seen
    named: str = ""
    start: int = 0


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
        sets, said = expressions.assigned(said.strip())
        yield _Step(each.start, each.kind, word, sets, expressions.read(said) if said else None)


class _File:
    """The actions of one file in their order: what variables and the dot may be."""

    def __init__(self, uses: Uses, name: str, text: str) -> None:
        self._uses, self._name, self._text = uses, name, text
        self._steps = list(_steps(text))
        names = (each for each in _ENTRY.finditer(text) if each["name"] in uses.names)
        self._written = [each.start() for each in names]
        self._variables: dict[str, Seen] = {"$": ANYTHING}
        self._open: list[_Open] = []
        self._read: dict[tuple[object, ...], set[str]] = {}  # sections of each map
        self._is_asked = False  # in a condition
        self._at = 0

    def follow(self) -> None:
        self._open = [_Open(ANYTHING)]
        for step in self._steps:
            self._at, self._is_asked = step.start, step.word == "if"
            self._follow(step)
        if len(self._read) > 1 or any(each != SECTIONS for each in self._read.values()):
            self._uses.is_apart = True

    def _follow(self, step: _Step) -> None:
        here, given = self._open[-1], step.expression
        if step.kind is Kind.OPENS and step.word in {"define", "block"}:
            self._open.append(_Open(ANYTHING, _name_of(given), step.start))
            return
        seen = self._value(given) if given is not None else Seen()
        for each in step.sets:
            self._variables[each] = self._variables.get(each, Seen()) | seen
        if step.kind is Kind.WRITES and seen.amounts and not here.named:
            self._note_kind()
        is_ended = step.kind is Kind.ENDS and len(self._open) > 1
        if here.named and (
            (step.kind is Kind.WRITES and seen.amounts)
            or (is_ended and self._is_written(step.start))
        ):
            self._uses.writes.add(here.named)
        is_dot = step.word in {"range", "with"}
        if step.kind is Kind.OPENS:
            self._open.append(replace(here, dot=seen if is_dot else here.dot))
        elif step.kind is Kind.TURNS and is_dot:
            self._open[-1] = replace(here, dot=here.dot | seen)
        elif is_ended:
            self._open.pop()

    def _value(self, given: Expression) -> Seen:
        if isinstance(given, Text):
            return Seen(texts=frozenset({given.value}))
        if isinstance(given, Constant):
            return Seen()
        if isinstance(given, At):
            return self._member(given)
        if given.name in _INCLUDES:
            return self._included(given)
        seen = [self._value(each) for each in given.arguments]
        if given.name == "tpl":
            seen = seen[:1]
        every = Seen()
        for each in seen:
            every |= each
        if given.name in _READS and self._uses.leads:
            every |= ANYTHING
        if given.name in _MAKES:
            return self._made(given, seen, every)
        if every.amounts:
            return self._used(given, every)
        is_made = given.name in _TEXTS
        return replace(every, is_cut=True) if is_made else every if given.name in _KEEPS else Seen()

    def _member(self, given: At) -> Seen:
        root = given.root
        if not isinstance(root, str):
            seen = self._value(root)
        else:
            seen = self._variables.get(root, Seen()) if root else self._open[-1].dot
        if not given.members:
            return seen
        last = given.members[-1]
        if last not in self._uses.leads:
            return Seen(texts=self._uses.names_in.get(last, frozenset()))
        self._read_section({last}, last)
        if last in SECTIONS and not self._is_asked:
            place = (root if isinstance(root, str) else self._at, *given.members[:-1])
            self._read.setdefault(place, set()).add(last)
        return ANYTHING

    def _included(self, given: Call) -> Seen:
        """What a named template writes; what it gets, it has as its dot."""
        for each in given.arguments:
            self._value(each)
        first = given.arguments[0] if given.arguments else None
        writes = self._uses.writes
        amounts = first.value in writes if isinstance(first, Text) else bool(writes)
        return Seen(amounts=amounts, texts=self._uses.bare)

    def _made(self, given: Call, seen: list[Seen], every: Seen) -> Seen:
        """A map with these members: the names of those with amounts lead to them."""
        first = 1 if given.name == "set" else 0
        for key, value in zip(seen[first::2], seen[first + 1 :: 2], strict=False):
            if value.amounts:
                self._uses.leads |= key.texts
                self._read_section(key.texts, given.name, is_apart=True)
        if not every.texts.isdisjoint(self._uses.names):
            self._uses.builds = self._uses.builds or self._where(given.name)
        if given.name == "set" and every.amounts:
            self._combine(given, every)
        return Seen(amounts=every.amounts)

    def _used(self, given: Call, every: Seen) -> Seen:
        """What a function makes of an amount, or of a map with amounts."""
        uses, name = self._uses, given.name
        if name in _KEEPS:
            return every
        if name in _LOOKS | _ASKS:
            is_part = every.is_cut and any(map(self._is_part, every.texts))
            if is_part or not every.texts.isdisjoint(uses.names):
                uses.looks = uses.looks or self._where(name)
            members = SECTIONS if name == "len" else every.texts
            self._read_section(members, name, is_apart=name in _LOOKS and not self._is_asked)
            is_other = name != "omit" and every.texts and every.texts.isdisjoint(uses.leads)
            return Seen(amounts=name in _LOOKS and not is_other, is_cut=every.is_cut)
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
        if isinstance(first, At) and isinstance(first.root, str) and not first.members:
            self._variables[first.root] = self._variables.get(first.root, Seen()) | every
        return replace(every, amounts=True, is_cut=True)

    def _is_part(self, text: str) -> bool:
        """Whether a text has a part of one of the names."""
        words = [each.lower() for each in _WORD.findall(text)]
        return any(word in name or name in word for word in words for name in self._uses.names)

    def _is_same(self, function: str, text: str) -> bool:
        """Whether it makes no difference for this text which of the names there is."""
        test = _SAME.get(function)
        found = {test(name, text) for name in self._uses.names} if test else {False}
        return found == {True} or (found == {False} and not self._is_part(text))

    def _is_written(self, end: int) -> bool:
        """Whether the named template that ends here has amounts in its text."""
        start = self._open[-1].start
        return bisect_left(self._written, start) < bisect_left(self._written, end)

    def _note_kind(self) -> None:
        """Note the kind of the object around this place, if it has no pods."""
        kind = None
        for found in _KIND.finditer(self._text, 0, self._at):
            kind = found["kind"]
        if kind in _OTHERS:
            self._uses.gives = self._uses.gives or self._where(kind)

    def _where(self, function: str) -> str:
        return f"{self._name} (line {self._text.count(chr(10), 0, self._at) + 1}, {function})"
