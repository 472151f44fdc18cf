"""What an action may write at its place: the place in, texts that stand for its output out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.templates import outputs
from webhook.templates.blocks import Action, Kind
from webhook.templates.open_places import named_indent
from webhook.yamlpatch import style

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.templates.actions import Template

NOTHING = None  # no text at all, not even quotes

_VALUES = {
    "nothing": NOTHING,
    "an empty text": "",
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
_BEGINS_LINES = re.compile(r"(?:^|-)[ \t]*$")
# Keys whose values are numbers: a word there would not be valid.
_OF_NUMBERS = re.compile(
    r"(?:replicas|[pP]ort|[sS]econds|Threshold|[wW]eight|gpu|[cC]ount|cpu|memory|Limit|parallelism"
    r"|completions|(?:runAs|fs)(?:User|Group)|max(?:Surge|Unavailable))[\"']?[ \t]*:[ \t]*[\"']?$"
)
# A part of a path, before and behind an action: with the other one it may be that of a driver.
_PATH_BEFORE = re.compile(r"\bpath[\"']?[ \t]*:[ \t]*[\"']?(/[^\s\"']*)?$")
_DRIVER, _ITS_FOLDER = "nvidia-375", "/usr/lib"
_ON_NEW_LINE = re.compile(r"\bnindent\b")


@dataclass(frozen=True, slots=True)
class Place:
    """An action with the text around it on its line, and how it writes: quotes, indent.

    `usual` is what it probably writes, `of_driver` what makes the path around it one of a driver.
    """

    before: str
    usual: str
    of_driver: str
    is_comment: bool
    is_quoted: bool
    is_json: bool
    never_empty: bool
    never_nothing: bool
    moves: bool  # its lines have an indent of their own
    first: str  # before the first line
    next: str  # between lines

    @classmethod
    def of(cls, template: Template, start: int, raw: str, *, in_jinja: bool) -> Place:
        """The place of the action that begins there, with this text."""
        text, shown = template.text, template.blanked
        action = Action(start, start + len(raw), Kind.WRITES)
        before = shown[style.line_start(text, start) : start]
        behind = shown[action.end : style.line_end(text, action.end)]
        indent = named_indent(text, action)
        column = style.column(text, action.start) if indent is None else indent
        on_new_line = "\n" if _ON_NEW_LINE.search(raw) else ""
        return cls(
            before,
            _usual(before, behind),
            _of_driver(before, behind),
            bool(_COMMENT.search(before)),
            outputs.is_quoted(raw),
            outputs.is_json(raw),
            outputs.is_never_empty(raw, in_jinja=in_jinja),
            outputs.is_never_nothing(raw, in_jinja=in_jinja),
            indent is not None,
            "" if indent is None else on_new_line + " " * indent,
            "\n" + " " * column,
        )

    def write(self, said: str | None) -> str:
        """What stands there if the action produces this."""
        if said is NOTHING:
            return "null" if self.is_json else self.first
        if self.is_comment:
            return said.split("\n", 1)[0]  # more lines would be no comment
        if self.is_quoted or self.is_json:
            said = json.dumps(said)
        return self.first + said.replace("\n", self.next)

    def stand_ins(self, added: Iterable[str]) -> Iterator[tuple[str, str | None]]:
        """What may be produced, in words and as a text. `added` are members that an edit adds."""
        for what, text in _VALUES.items():
            is_left_out = self.never_nothing if text is NOTHING else self.never_empty and not text
            if not is_left_out:
                yield what, text
        if self.of_driver:
            yield f"{self.of_driver}, which makes it the path of a driver", self.of_driver
        # Behind a key JSON stands for all maps and lists: their lines are below the key, too.
        if not self.is_quoted and (self.moves or _BEGINS_LINES.search(self.before)):
            yield from _LINES.items()
            for name in added:
                yield f"a member {name}", f"{name}:"


def _usual(before: str, behind: str) -> str:
    if before.strip():
        return "3" if _OF_NUMBERS.search(before) else "word"
    return "word" if behind.partition(" #")[0].strip() else ""


def _of_driver(before: str, behind: str) -> str:
    """What the action may add to the rest of a path, as far as a rule removes such a mount."""
    found = _PATH_BEFORE.search(before)
    if found is None or not (found[1] or behind.startswith("/")):
        return ""  # all of the path: what the values say is looked at where they are
    return _DRIVER if found[1] else _ITS_FOLDER
