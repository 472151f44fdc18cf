"""Finds actions that produce the same text at every rendering, so that a selector may use them.

A selector of apps/v1 cannot be changed. Text that differs for another release, after an upgrade of
the chart, or at random, may be a label, but in a selector it would make every upgrade fail (Helm's
best practices for labels exclude versions, too). So the inputs of an action must be known to stay
the same; of helpers, only those named after a name, such as `x.fullname` of `helm create`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webhook.templates.blocks import Action, Kind

if TYPE_CHECKING:
    from webhook.templates.actions import Template

_INSIDE = re.compile(r"\{\{-?(.*?)-?\}\}|\{%-?(.*?)-?%\}", re.DOTALL)
_TOKEN = re.compile(
    r"\s*(?:(?P<text>\"(?:\\.|[^\"\\])*\"|`[^`]*`|'(?:\\.|[^'\\])*')"
    r"|(?P<field>\$?(?:\.\w+)+)|(?P<variable>\$\w+)(?:\.\w+)*|(?P<number>-?\d[\w.]*)"
    r"|(?P<word>[^\W\d]\w*(?:\.\w+)*)|(?P<sign>[$.()|,=:!\[\]<>+*/~%?-]))"
)
# An object of Helm, and its fields that stay the same.
_OBJECTS = {
    "Values": None,
    "Release": {"Name", "Namespace", "Service"},
    "Chart": {"Name"},
    "Capabilities": set[str](),
    "Files": set[str](),
    "Subcharts": set[str](),
    "Template": set[str](),
}
# Functions without side effects: of text/template, Sprig and Jinja.
_FUNCTIONS = re.compile(
    r"abbrev|add|and|b64enc|camelcase|cat|coalesce|contains|default|defined|dict|dig|div|elif"
    r"|else|empty|end|endif|eq|false|first|ge|get|gt|hasKey|hasPrefix|hasSuffix|if|in|index"
    r"|int|int64|join|kebabcase|last|le|len|list|lower|lt|max|min|mod|mul|ne|nil|none|nospace"
    r"|not|null|or|pluck|print|printf|println|quote|regexReplaceAll|regex_replace|replace"
    r"|repeat|required|sha256sum|slice|snakecase|split|splitList|squote|string|sub|substr"
    r"|ternary|title|toString|trim|trimAll|trimPrefix|trimSuffix|true|trunc|tuple|until"
    r"|untilStep|untitle|upper"
)
_HELPERS = frozenset({"include", "template"})
_NAME_OF_HELPER = re.compile(r"[\"'`][\w./-]*name[\"'`]", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Words in names of values that differ between releases.
_CHANGING = re.compile(
    r"build|checksum|commit|date|digest|epoch|hash|now|rand|random|revision|sha|tag|time"
    r"|timestamp|uuid|uuidv|version"
)
_LOOPS = {"range", "with"}


def stays(action: Action, template: Template, before: int) -> bool:
    """Whether the action produces the same text each time, also at the place `before`."""
    text = template.text[action.start : action.end]
    if not text.startswith("{"):  # a placeholder of a script or of a guide
        return "$(" not in text and "`" not in text and not _changes(text)
    return _Reading(template, before).all_stay(text)


class _Reading:
    """The known variables so far."""

    def __init__(self, template: Template, before: int) -> None:
        self._template = template
        self._before = before
        self._known: set[str] = set()

    def all_stay(self, text: str) -> bool:
        """Whether all actions of this text stay the same."""
        return all(self._stays(found[1] or found[2]) for found in _INSIDE.finditer(text))

    def _stays(self, inside: str) -> bool:
        here, is_name = 0, False  # the next text is the name of a helper
        inside = inside.rstrip()
        while here < len(inside):
            found = _TOKEN.match(inside, here)
            if found is None or (is_name and not _NAME_OF_HELPER.fullmatch(found["text"] or "")):
                return False
            here = found.end()
            if found["text"] and _changes(found["text"]):  # it may be the name of a value
                return False
            is_name = found["word"] in _HELPERS
            if found["field"] and not self._field(found["field"]):
                return False
            if found["variable"] and (_changes(found[0]) or not self._variable(found["variable"])):
                return False
            if found["word"] and not is_name and not _word(found["word"], inside[here:]):
                return False
            if found["sign"] == "." and not self._around():
                return False
        return not is_name

    def _field(self, field: str) -> bool:
        names = field.lstrip("$").split(".")[1:]
        if names[0] not in _OBJECTS:
            return not _changes(field) and self._around()
        allowed = _OBJECTS[names[0]]
        return not _changes(field) if allowed is None else "".join(names[1:2]) in allowed

    def _variable(self, name: str) -> bool:
        """Whether it is unchanged since the earlier place, and computed from values that stay."""
        if name in self._known:
            return True
        self._known.add(name)
        sets = re.compile(rf"{re.escape(name)}\s*(?:,\s*\$\w+\s*)?:?=(?!=)(?P<made>.*)", re.DOTALL)
        made = [
            (each, found["made"])
            for each in self._template.actions
            if each.kind is not Kind.COMMENT
            and (found := sets.search(self._template.text, each.start, each.end))
        ]
        return bool(made) and all(
            each.end <= self._before and self.all_stay("{{" + text) for each, text in made
        )

    def _around(self) -> bool:
        """Whether `.` stays the same: the subject of the loops around."""
        arms = self._template.arms_around(self._before, self._before)
        starts = {arm.start for arm in arms}
        return all(
            self._stays(each.rest)
            for each in self._template.actions
            if each.word in _LOOPS and each.end in starts
        )


def _word(word: str, behind: str) -> bool:
    """Whether it is a known function, or a variable of Jinja, which has no arguments."""
    if _FUNCTIONS.fullmatch(word):
        return True
    return not _changes(word) and re.match(r"\s*(?:$|[|\[)=!~])", behind) is not None


def _changes(name: str) -> bool:
    return any(_CHANGING.fullmatch(word.lower()) for word in _WORDS.findall(name))
