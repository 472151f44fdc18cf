"""Values as YAML texts in any style that a person may write, put together by hand, never dumped."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from random import Random

_SAFE = re.compile(r"[A-Za-z](?:[A-Za-z0-9./_-]| (?=[A-Za-z]))*")
_RESERVED = re.compile(r"(?i:y|n|yes|no|on|off|true|false|null|nan|inf)")
_COMMENTS = ("# c", "#", "#\tx: y", "# - {", '# it\'s "so": here', "#c:", "# ü")


_NAMES = ("a", "b", "c", "x/y", "on", "1", "d e", "k8s.io/gpu", "f'g", "", "name", "limits")
_TEXTS = (
    *(
        "a",
        "b c",
        "",
        "1",
        "true",
        "it's",
        'say "x"',
        "a: b",
        "a #b",
        "- x",
        "x\ny\n",
        "x\ny",
        " p",
    ),
    *("*x", "{", "2017-01-01", "1:2", "\ttab", "ü€", "x\n\n  y\nz\n\n", "long word and more of it"),
    *('[{"k": "v", "l": [1]}]', "~", "k8s.io/b", "trail ", "\\n", "#", "a: b\n- c\n# d\n"),
)


@dataclass
class Values:
    """Random maps of anything that JSON can say, with some of it in several places.

    Made from a seed, not drawn: drawing takes ten times as long as all that is tested with it.
    """

    random: Random
    size: int
    known: list[Any] = field(default_factory=list)

    def map(self, depth: int = 0) -> dict[str, Any]:
        count = self.random.randint(0 if depth else 1, self.size)
        return {self.random.choice(_NAMES): self.value(depth + 1) for _ in range(count)}

    def value(self, depth: int) -> Any:
        if self.known and self.random.randrange(4) == 0:
            return self.random.choice(self.known)
        made = self._new(depth)
        self.known.append(made)
        return made

    def _new(self, depth: int) -> Any:
        match self.random.randrange(9 if depth < 4 else 4):
            case 0:
                return self.random.choice([True, False, None, 0.5])
            case 1:
                return self.random.choice([0, 1, 8, -3, 70_000])
            case 2 | 3:
                return self.random.choice(_TEXTS)
            case 4 | 5:
                return [self.value(depth + 1) for _ in range(self.random.randint(0, self.size))]
        return self.map(depth)


@dataclass
class Styled:
    """Writes one document."""

    random: Random
    anchored: bool = True
    comments: bool = True
    anchors: list[tuple[str, Any]] = field(default_factory=list)
    keeps: bool = False  # the last scalar is one to which blank lines would belong
    named: int = 0  # anchors so far
    in_text: bool = False  # the last line is one of a block scalar

    def document(self, value: dict[str, Any]) -> list[str]:
        self.anchors, self.step = [], self.random.choice([1, 2, 2, 4])
        self.dashes = self.random.choice([0, 0, 2])
        return self._map(value, 0)

    def _often(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def _between(self, indent: int) -> list[str]:
        """Blank lines and comments before an entry."""
        lines: list[str] = []
        while self._often(4):
            if self._often(2) and not self.keeps:
                lines.append(self.random.choice(["", "", " " * indent]))
            elif self.comments:
                self.keeps = False
                column = indent if self.in_text or not self._often(3) else self.random.randrange(9)
                lines.append(" " * column + self.random.choice(_COMMENTS))
        return lines

    def _behind(self) -> str:
        """What may stand behind a value on its line."""
        if self.comments and self._often(5):
            return self.random.choice([" ", "   ", "\t"]) + self.random.choice(_COMMENTS)
        return "  " if self._often(12) else ""

    def _map(self, value: dict[str, Any], indent: int) -> list[str]:
        lines: list[str] = []
        own = dict(value)
        for name, source in self.anchors:
            is_part = isinstance(source, dict) and source and source.items() <= own.items()
            if is_part and all(is_same(own[k], v) for k, v in source.items()) and self._often(2):
                own = {k: v for k, v in own.items() if k not in source}
                lines.append(" " * indent + f"<<: *{name}" + self._behind())
                self.keeps = self.in_text = False
                break
        for name, item in own.items():
            if lines:
                lines += self._between(indent)
            head = " " * indent + self._name(name) + (" :" if self._often(15) else ":")
            lines += self._value(head, item, indent, self.dashes)
        return lines

    def _list(self, value: list[Any], indent: int) -> list[str]:
        lines: list[str] = []
        for item in value:
            if lines:
                lines += self._between(indent)
            gap = self.random.choice([1, 1, 1, 3])
            compact = item and isinstance(item, dict | list) and not self._often(4)
            if compact and not self._is_anchored(item):
                below = indent + 1 + gap
                inner = (
                    self._map(item, below) if isinstance(item, dict) else self._list(item, below)
                )
                lines.append(" " * indent + "-" + " " * gap + inner[0][below:])
                lines += inner[1:]
            else:
                lines += self._value(" " * indent + "-", item, indent, 2)
        return lines

    def _is_anchored(self, value: Any) -> bool:
        return any(is_same(value, known) for _, known in self.anchors)

    def _value(self, head: str, value: Any, indent: int, dashes: int) -> list[str]:
        for name, known in self.anchors:
            if is_same(known, value) and self._often(2):
                self.keeps = self.in_text = False
                return [f"{head} *{name}{self._behind()}"]
        anchor = ""
        if self.anchored and isinstance(value, dict | list | str | int) and self._often(6):
            self.named += 1
            anchor = f" &n{self.named}"
        lines = self._written(head + anchor, value, indent, dashes)
        if anchor:
            self.anchors.append((anchor[2:], value))
        return lines

    def _written(self, head: str, value: Any, indent: int, dashes: int) -> list[str]:
        if isinstance(value, dict | list) and value and not self._often(4):
            self.keeps = self.in_text = False
            first = head + self._behind()
            between = self._between(indent + 1)
            inner = indent + (dashes if isinstance(value, list) else self.step)
            below = self._list(value, inner) if isinstance(value, list) else self._map(value, inner)
            return [first, *between, *below]
        if isinstance(value, str):
            block = self._block_scalar(value, indent)
            if block is not None:
                return [f"{head} {block[0]}", *block[1:]]
        self.keeps = self.in_text = False
        first, *others = self._flow(value, indent, outermost=True)
        gap = self.random.choice([" ", " ", " ", "   "]) if first else ""
        lines = [f"{head}{gap}{first}", *others]
        lines[-1] += self._behind()
        return lines

    def _block_scalar(self, text: str, indent: int) -> list[str] | None:
        body = text.rstrip("\n")
        ends = len(text) - len(body)
        lines = body.split("\n")
        odd = any(line != line.rstrip() or line.startswith("\t") for line in lines)
        if not body or body[0] in " \n" or odd or not self._often(2):
            return None
        chomp = "-" if ends == 0 else self.random.choice(["", "+"]) if ends == 1 else "+"
        style = ">" if len(lines) == 1 and self._often(2) else "|"
        inner = " " * (indent + self.random.choice([self.step, 1, 3]))
        self.keeps, self.in_text = chomp == "+", True
        if style == ">" and chomp != "+" and re.search(r"\S \S", body) and self._often(2):
            lines = re.sub(r"(\S) (\S)", r"\1\n\2", body, count=1).split("\n")
        behind = self._behind() if self._often(3) else ""
        return [
            style + chomp + behind,
            *(inner + line if line else "" for line in lines),
            *[""] * (ends - 1),
        ]

    def _flow(self, value: Any, indent: int, *, outermost: bool = False) -> list[str]:
        """A value in flow style; several lines if it is a map or a list and the author likes it."""
        if not isinstance(value, dict | list):
            return [self._scalar(value, in_flow=not outermost)]
        opening, closing = "[]" if isinstance(value, list) else "{}"
        parts = [
            self._flow(item, indent)[0]
            if isinstance(value, list)
            else self._pair(item[0], item[1], indent)
            for item in (value if isinstance(value, list) else value.items())
        ]
        if not parts:
            return [opening + closing]
        if outermost and self._often(4):
            inner = " " * (indent + 2)
            lines = [opening]
            for position, part in enumerate(parts):
                comma = "," if position < len(parts) - 1 else self.random.choice(["", ","])
                comment = " # c" if self.comments and self._often(6) else ""
                lines.append(inner + part + comma + comment)
            return [*lines, " " * (indent + 1) + closing]
        blank = self.random.choice(["", "", " "])
        comma = self.random.choice([", ", ", ", ","])
        return [opening + blank + comma.join(parts) + blank + closing]

    def _pair(self, name: str, value: Any, indent: int) -> str:
        said = self._flow(value, indent)[0]
        key = self._name(name)
        if value is None and self._often(3) and not key.startswith(('"', "'")):
            return key
        return f"{key}: {said}" if said else f"{key}: null"

    def _name(self, name: str) -> str:
        if _is_safe(name) and not self._often(6):
            return name
        return self._quoted(name)

    def _scalar(self, value: Any, *, in_flow: bool) -> str:
        match value:
            case True:
                return self.random.choice(["true", "True", "yes", "on"])
            case False:
                return self.random.choice(["false", "no", "Off"])
            case None:
                return self.random.choice(["null", "~"] if in_flow else ["null", "~", "", ""])
            case str():
                return value if _is_safe(value) and not self._often(4) else self._quoted(value)
        return str(value)

    def _quoted(self, text: str) -> str:
        if text.isprintable() and self._often(2):
            return "'" + text.replace("'", "''") + "'"
        return json.dumps(text, ensure_ascii=self._often(2))


def _is_safe(text: str) -> bool:
    return _SAFE.fullmatch(text) is not None and not _RESERVED.fullmatch(text)


def text_of(documents: list[dict[str, Any]], styled: Styled) -> str:
    """A stream of these documents."""
    random = styled.random
    lines: list[str] = []
    for number, value in enumerate(documents):
        if number or random.randrange(3) == 0:
            lines.append(random.choice(["---", "--- # next", "---   "]))
            styled.keeps = False
        elif random.randrange(8) == 0:
            lines += ["%YAML 1.1", "---"]
        if random.randrange(4) == 0:
            lines += ["# the beginning", ""]
        lines += styled.document(value)
        if random.randrange(4) == 0 and not styled.keeps:
            lines += ["", *["# the end"] * random.randrange(2)]
        if number < len(documents) - 1 and random.randrange(6) == 0:
            lines.append("...")
    end = random.choice(["\n", "\r\n"])
    without = random.randrange(4) == 0 and not styled.in_text and not styled.keeps
    return end.join(lines) + ("" if without else end)
