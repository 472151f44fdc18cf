"""The settings file: YAML in, `Settings` out, and every mistake with its line, column and cure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from webhook.cli.settings_kinds import Mistake, Notes
from webhook.cli.settings_shape import FILE
from webhook.core.errors import SettingsError
from webhook.core.settings import Settings
from webhook.files import capped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# libyaml goes down one C frame a level and does not ask how many are left: a text that may be
# deeper than this goes to the parser in Python, which does.
_LARGEST = 4 * capped.MIB  # a ConfigMap holds 1
_DEEPEST = 1_000


class MistakesError(SettingsError):
    """A settings file with mistakes."""

    def __init__(self, file: str, text: str, mistakes: list[Mistake]) -> None:
        self.text = text
        self.mistakes = sorted(mistakes)
        lines = (f"{file}:{each.line}:{each.column}: {each.what}" for each in self.mistakes)
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a file says, and where: places are named as `capacity.pools[0].gpus`."""

    settings: Settings
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def identity(file: str) -> tuple[int, ...]:
    """Changes when the file does; a ConfigMap's files are replaced by way of a symbolic link."""
    try:
        found = Path(file).stat() if file else None
    except OSError:
        return (0,)
    # st_ctime: that it may be read now, where it might not before, is a change, too.
    return (found.st_ino, found.st_ctime_ns, found.st_size) if found is not None else ()


def load(file: str, *, pipes: bool = False) -> Settings:
    """Read a settings file; raises SettingsError with one line for each mistake."""
    return read(file, pipes=pipes).settings


def parse(text: str, file: str = "settings") -> Settings:
    """The settings that the text gives; what it leaves out keeps its default."""
    return read_text(text, file).settings


def read(file: str, *, pipes: bool = False) -> SettingsFile:
    """As load(), with places."""
    try:
        content = capped.read(file, _LARGEST, pipes=pipes)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}; name a file") from error
    return read_text(decoded(content, file), file)


def decoded(content: bytes, file: str) -> str:
    """The text of a file; SettingsError names the first byte that is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{file}: is not UTF-8 (byte {error.start}); save it as UTF-8"
        ) from error


def read_text(text: str, file: str) -> SettingsFile:
    """As parse(), with places."""
    notes = Notes()
    try:
        node = compose(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise MistakesError(file, text, [_not_yaml(error, text)]) from error
    settings = Settings() if node is None else notes.attempt(FILE, node, "")
    if not notes.mistakes:
        notes.mistakes += _contradictions(settings, notes.places)
    if notes.mistakes:
        raise MistakesError(file, text, notes.mistakes)
    return SettingsFile(settings, notes.places)


def _contradictions(settings: Settings, places: Mapping[str, tuple[int, int]]) -> Iterator[Mistake]:
    """What is right by itself, but not together with settings elsewhere in the file."""
    if settings.gpu_resource in settings.legacy_resources:
        at = places.get("resources.target") or places["resources.legacy"]
        what = f"{settings.gpu_resource} cannot be both legacy and what legacy names become"
        yield Mistake(*at, f"{what}: delete one")
    for part in ("pools", "limits"):
        for position, entry in enumerate(getattr(settings.capacity, part)):
            for name in entry.gpus:
                if not settings.is_gpu(name):
                    at = places[f"capacity.{part}[{position}].gpus.{name}"]
                    yield Mistake(*at, f"{name} is no GPU by resources.gpus: add it there")


class _Yaml12(yaml.resolver.BaseResolver):
    """What a plain word is in YAML 1.2, as editors take it: `off`, `no` and `on` are texts."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - so the base class has it


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?",
        list("-+.0123456789"),
    ),
):
    _Yaml12.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first
    )


class _Python(_Yaml12, yaml.SafeLoader):
    """The parser in Python: slow, with better words for what is wrong."""


if yaml.__with_libyaml__:

    class _Quick(_Yaml12, yaml.CSafeLoader):
        """libyaml: a file is read again in every worker."""
else:
    _Quick = _Python  # type: ignore[misc,assignment]


def lines(text: str) -> list[str]:
    """The lines of a text, as YAML counts them; at least one."""
    return re.split("\r\n|[\r\n\x85\u2028\u2029]", text)


def compose(text: str) -> yaml.Node | None:
    """The YAML document of the text, as nodes that know their places; None if it is empty."""
    levels = max(map(len, lines(text))) + text.count("[") + text.count("{")
    if levels < _DEEPEST:
        try:
            return yaml.compose(text, Loader=_Quick)
        except yaml.YAMLError:
            pass  # and once more, for the words
    return yaml.compose(text, Loader=_Python)


def _not_yaml(error: Exception, text: str) -> Mistake:
    """Where a text stops being YAML."""
    if isinstance(error, yaml.reader.ReaderError):
        before = lines(text[: error.position])
        what = f"is not YAML: a control character, {chr(error.character)!r}: delete it"
        return Mistake(len(before), len(before[-1]) + 1, what)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        why = ", ".join(filter(None, (error.context, error.problem)))
        return Mistake(mark.line + 1, mark.column + 1, f"is not YAML: {why}")
    return Mistake(1, 1, "is not YAML that can be read: too deeply nested")
