"""The settings file: YAML in, `Settings` out, and every mistake with its line and column."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from webhook.core.errors import SettingsError
from webhook.core.settings import Settings
from webhook.files import limited_reading
from webhook.settings.mistakes import mistakes
from webhook.settings.nodes import Document, Mistake, Place, lines, position
from webhook.settings.schema import at
from webhook.settings.values import CODES
from webhook.settings.whole import File

if TYPE_CHECKING:
    from collections.abc import Mapping


_MOST = 100  # mistakes that are reported at once
_LARGEST = 4 * limited_reading.MIB  # a ConfigMap has at most 1


class MistakesError(SettingsError):
    """A settings file with mistakes."""

    def __init__(self, file: str, text: str, mistakes: list[Mistake]) -> None:
        self.lines = lines(text)
        self.mistakes = sorted(mistakes)
        said = (f"{file}:{each.line}:{each.column}: {each.what}" for each in self.mistakes)
        super().__init__("\n".join(said))


@dataclass(frozen=True)
class SettingsFile:
    """The content of a file, with the place of each value."""

    settings: Settings = field(default_factory=Settings)
    written: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[Place, tuple[int, int]] = field(default_factory=dict)  # of names and items

    def value(self, place: Place) -> Any:
        """The value at this place, or its default; None without either."""
        found: Any = self.written
        for name in place:
            if name not in found:
                return at(place).get("default")
            found = found[name]
        return found

    def position(self, place: Place) -> tuple[int, int] | None:
        """Line and column of this value. The code of a rule stands for its name as well."""
        *above, name = place
        words: list[int | str] = [word for word, code in CODES.items() if code == name] or [name]
        found = (self.places.get((*above, word)) for word in words)
        return next(filter(None, found), None)


def load(file: str, *, pipes: bool = False) -> Settings:
    """Read a settings file; raises SettingsError with one line for each mistake."""
    return read(file, pipes=pipes).settings


def parse(text: str, file: str = "settings") -> Settings:
    """The settings in the text; settings that it omits have their defaults."""
    return read_text(text, file).settings


def read(file: str, *, pipes: bool = False) -> SettingsFile:
    """As load(), with places."""
    try:
        content = limited_reading.read(file, _LARGEST, pipes=pipes)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}; name a file") from error
    return read_text(decoded(content, file), file)


def decoded(content: bytes, file: str) -> str:
    """The text of a file; SettingsError names the first byte that is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{file}: is not UTF-8 (byte {error.start}); save it as UTF-8"
        ) from error


def read_text(text: str, file: str) -> SettingsFile:
    """As parse(), with places."""
    document = Document(text)
    found = document.mistakes[:_MOST]
    try:
        made = File.model_validate(document.data)
    except ValidationError as error:
        found += islice(mistakes(error, document), _MOST - len(found))
    if found:
        raise MistakesError(file, text, found)
    written = made.model_dump(mode="json", by_alias=True, exclude_unset=True)
    places = {place: position(node) for place, node in document.names.items()}
    return SettingsFile(made.to_core(), written, places)
