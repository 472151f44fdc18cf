"""The actions of a Go or Jinja template: its text in, out its actions, with their kinds and blocks.

A text with actions is not YAML, but becomes YAML if placeholders of the same length replace the
actions (placeholders.py). The active lines depend on conditions (cases.py).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from webhook.templates.blocks import Action, Kind, arm_with, every_block, nested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.templates.blocks import Arm, Block

# A Go comment may contain `}}`; an action that is not closed or not known is text.
_ACTION = re.compile(
    r"\{\{-?\s*/\*.*?\*/\s*-?\}\}"
    r"|\{#.*?#\}"
    r"|\{%[-+]?(?P<statement>(?:[^%'\"]|%(?!\})|'[^'\n]*'|\"[^\"\n]*\")*?)[-+]?%\}"
    r"|\{\{-?(?P<expression>(?:[^{}\"`']|\"(?:\\.|[^\"\\\n])*\"|`[^`]*`|'[^'\n]*'|\{(?!\{)|\}(?!\}))*?)"
    r"-?\}\}",
    re.DOTALL,
)
_LITERAL = re.compile(
    r"\{%-?\s*(?:raw|verbatim)\s*-?%\}.*?\{%-?\s*end(?:raw|verbatim)\s*-?%\}", re.DOTALL
)
_LINE_END = re.compile(r"[^\S\n]*(?:\n|\Z)")
# Words that open a block in {% %}, as in Jinja, Liquid and Tornado.
_STATEMENTS = {
    *("if", "unless", "for", "with", "block", "macro", "filter", "call", "autoescape", "trans")
}
# In Go templates these are words of {{ }}. In Jinja {{ range(3) }} writes text, and {{ block.x }}.
_GO_BLOCK = re.compile(r"(?:(?:if|range|with)\s+[\w.$(\"`'-]|(?:define|block)\s*[\"`])")
_GO_TIGHT = re.compile(r"(?:if|range|with)[.$(\"`]")
_GO_ELSE = re.compile(r"else(?:\s+(?:if|with)\b.*)?", re.DOTALL)
_GO_END = re.compile(r"\{\{-?\s*end\s*-?\}\}")
MOST_OPEN = 50  # blocks in each other
_TOO_DEEP = f"more than {MOST_OPEN} blocks of the template are inside each other"
_ASSIGNMENT = re.compile(r"\$[\w]*\s*(?:,\s*\$\w+\s*)?:?=[^=]")


_IN_LINE = re.compile(r"[^\r\n]+")


@dataclass
class Template:
    """A text with its actions and blocks. `torn`: the blocks do not fit together."""

    text: str
    actions: list[Action]
    blocks: list[Block]
    torn: bool = False
    excess: str = ""  # why the blocks are not read, if they are not
    begin: int = 0  # there are only blanks before it

    @cached_property
    def shown(self) -> str:
        """The text with all branches: @ for output, blanks for other actions."""
        return self._with_signs("@")

    @cached_property
    def blanked(self) -> str:
        """The text with all branches, and blanks for all actions."""
        return self._with_signs(" ")

    def _with_signs(self, written: str) -> str:
        pieces, here = [], 0
        for action in self.actions:
            sign = written if action.kind is Kind.WRITES else " "
            pieces.append(self.text[here : action.start])
            pieces.append(covered(self.text[action.start : action.end], sign))
            here = action.end
        return "".join([*pieces, self.text[here:]])

    def arms_around(self, start: int, end: int) -> list[Arm]:
        """The branches around all of this span, the outermost first."""
        found: list[Arm] = []
        blocks = self.blocks
        while blocks:
            arm = arm_with(blocks, start, end)
            if arm is None:
                break
            found.append(arm)
            blocks = arm.inner
        return found

    def block_of(self, arm: Arm) -> Block | None:
        """The block with this arm."""
        return self._by_arm.get(id(arm))

    @cached_property
    def _by_arm(self) -> dict[int, Block]:
        every = every_block(self.blocks, {})
        return {id(arm): block for block, _ in every for arm in block.arms}

    def blank_until(self, end: int) -> str:
        """Blanks for the text before this place."""
        if not self.begin:
            return blank_until(self.text, end)
        return self.text[: self.begin] + blank(self.text[self.begin : end])

    def blocks_around(self, start: int, end: int) -> list[tuple[Block, Arm]]:
        """The blocks around all of this span, each with its branch."""
        arms = self.arms_around(start, end)
        found = [(self.block_of(arm), arm) for arm in arms]
        return [(block, arm) for block, arm in found if block is not None]

    def covers(self, some: list[Arm], others: list[Arm]) -> bool:
        """Whether all of `some` are chosen whenever all of `others` are."""
        given = {need for arm in others for need in arm.needs}
        loops = [
            arm for arm in some if not arm.needs or any(a.startswith("#") for a, _ in arm.needs)
        ]
        return all(any(arm is other for other in others) for arm in loops) and all(
            arm.needs <= given for arm in some
        )

    def is_either(self, one: int, other: int) -> bool:
        """Whether these two places are in two branches of one block, so that only one is active."""
        mine = {need for arm in self.arms_around(one, one) for need in arm.needs}
        theirs = {need for arm in self.arms_around(other, other) for need in arm.needs}
        return any((atom, not wanted) in theirs for atom, wanted in mine)

    def actions_in(self, start: int, end: int) -> list[Action]:
        """The actions that touch this span."""
        first = bisect_right(self.actions, start, key=attrgetter("end"))
        return self.actions[first : bisect_left(self.actions, end, key=attrgetter("start"))]


def read(text: str, placeholders: re.Pattern[str] | None = None, start: int = 0) -> Template:
    """Find the actions of a text and their nesting.

    `placeholders` are other marks for text that is inserted later, such as `$N` in a script. There
    are only blanks before `start`, the begin of a line.
    """
    actions = list(_actions(text, start))
    if placeholders is not None:
        actions += _placeholders(text, list(actions), placeholders, start)
        actions.sort(key=attrgetter("start"))
    made = _with_blocks(text, actions)
    inline = [block for block, _ in every_block(made.blocks, {}) if _is_inline(text, block)]
    made = _with_blocks(text, _joined(actions, inline)) if inline else made
    made.begin = start
    return made


def read_apart(text: str) -> Template:
    """The same, with blocks inside one line, which `read` does not treat as blocks."""
    return _with_blocks(text, list(_actions(text)))


def _with_blocks(text: str, actions: list[Action]) -> Template:
    if _are_too_deep(actions):
        return Template(text, actions, [], torn=True, excess=_TOO_DEEP)
    blocks, torn = nested(actions, len(text))
    return Template(text, actions, blocks, torn)


def _are_too_deep(actions: list[Action]) -> bool:
    """Whether more blocks are open at one place than any template has."""
    depth = 0
    for action in actions:
        if action.kind is Kind.OPENS:
            depth += 1
        elif action.kind is Kind.ENDS:
            depth = max(depth - 1, 0)
        if depth > MOST_OPEN:
            return True
    return False


def has_actions(text: str) -> bool:
    """Whether there is any action in this text."""
    return any(True for _ in _actions(text))


def blank(text: str) -> str:
    """Blanks for the text, with its line ends."""
    return covered(text, " ")


def blank_until(text: str, end: int) -> str:
    """Blanks for the text before this place; of a text with many manifests, made once."""
    before = text[:end]
    return _blank_text(text)[:end] if before.strip(" \r\n") else before


_blank_text = lru_cache(maxsize=2)(blank)


def covered(text: str, sign: str) -> str:
    """As many of this sign, with the line ends where they were."""
    if "\n" not in text and "\r" not in text:
        return sign * len(text)
    return _IN_LINE.sub(lambda found: sign * (found.end() - found.start()), text)


def _placeholders(
    text: str, known: list[Action], signs: re.Pattern[str], first: int
) -> Iterator[Action]:
    for match in signs.finditer(text, first):
        start, end = match.span()
        behind = bisect_right(known, start, key=attrgetter("end"))
        if behind == len(known) or end <= known[behind].start:
            yield Action(start, end, Kind.WRITES)


def _is_inline(text: str, block: Block) -> bool:
    """Whether a block is inside one line: `name: {{ if .x }}a{{ else }}b{{ end }}`."""
    if "\n" in text[block.start : block.end]:
        return False
    before = block.start
    while before and text[before - 1].isspace() and text[before - 1] != "\n":
        before -= 1
    has_text = before > 0 and text[before - 1] != "\n"
    return has_text or len(block.arms) > 1 or not _LINE_END.match(text, block.end)


def _joined(actions: list[Action], inline: list[Block]) -> list[Action]:
    """The actions, with one output action for each of these blocks that is in no other one."""
    outer: list[Block] = []
    for block in inline:  # in the order of the text
        if not outer or outer[-1].end <= block.start:
            outer.append(block)
    made = [Action(block.start, block.end, Kind.WRITES) for block in outer]
    starts = [block.start for block in outer]

    def is_inside(at: int) -> bool:
        before = bisect_right(starts, at)
        return before > 0 and at < outer[before - 1].end

    kept = [each for each in actions if not is_inside(each.start)]
    return sorted([*kept, *made], key=attrgetter("start"))


def _actions(text: str, begin: int = 0) -> Iterator[Action]:
    has_literal = text.find("{%", begin) >= 0
    literal = [match.span() for match in _LITERAL.finditer(text, begin)] if has_literal else []
    starts = [start for start, _ in literal]
    has_end = _GO_END.search(text, begin) is not None
    for match in _ACTION.finditer(text, begin):
        start, end = match.span()
        before = bisect_left(starts, start)
        if before and end < literal[before - 1][1]:
            continue
        statement, expression = match["statement"], match["expression"]
        if statement is None and expression is None:
            yield Action(start, end, Kind.COMMENT)
            continue
        inside = (statement if statement is not None else expression).strip()
        word = re.match(r"\w*", inside)
        head = word.group() if word else ""
        rest = inside[len(head) :].strip()
        if statement is not None:
            kind = _kind_of_statement(head, rest)
        else:
            kind = _kind_of_expression(inside, has_end=has_end)
        yield Action(start, end, kind, head, rest)


def _kind_of_statement(word: str, rest: str) -> Kind:
    """The kind of `{% ... %}`."""
    if word in {"else", "elif", "elsif", "elseif"}:
        return Kind.TURNS
    if word.startswith("end"):
        return Kind.ENDS
    if word in _STATEMENTS or (word == "set" and "=" not in rest):
        return Kind.OPENS
    return Kind.WRITES if word in {"include", "render"} else Kind.SILENT


def _kind_of_expression(inside: str, *, has_end: bool) -> Kind:
    """The kind of `{{ ... }}`; only a text that `has_end` has blocks without a blank in them."""
    if _GO_ELSE.fullmatch(inside):
        return Kind.TURNS
    if inside == "end":
        return Kind.ENDS
    if _GO_BLOCK.match(inside) or (has_end and _GO_TIGHT.match(inside)):
        return Kind.OPENS
    is_silent = _ASSIGNMENT.match(inside) or inside in {"", "break", "continue"}
    return Kind.SILENT if is_silent else Kind.WRITES
