"""The content of a file: its bytes, its text, and the kind of the text."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

from webhook.core.errors import InputError
from webhook.yamlpatch import documents
from webhook.yamlpatch.places import Place

_BOM = codecs.BOM_UTF8
_OTHERS = {
    codecs.BOM_UTF32_LE: "UTF-32",  # before UTF-16, which begins with the same bytes
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}

CHART = "Chart.yaml"  # the file that makes a folder a Helm chart
OBJECT = "object"  # the kind for an object from the API server; no file has it

_JSON = {".json"}
_YAML = {".yaml", ".yml"}
_MARKDOWN = {".md", ".markdown", ".mdx", ".mkd"}
_JINJA = {".j2", ".jinja", ".jinja2"}
_NEITHER = {".template", ".tmpl", ".tpl", ".in", ".dist", ".example", ".sample", ".orig", ".bak"}
_CODE = {".go", ".py", ".sh", ".bash", ".js", ".ts", ".rb", ".java", ".jsonnet", ".libsonnet"}

_JINJA_SIGNS = re.compile(r"\{%|\{#")
_CHART_SIGNS = re.compile(r"\{\{-?\s*(?:define|include|template)\s")
_MANIFEST = re.compile(r"^[ \t]*-?[ \t]*[\"']?(?:apiVersion|kind)[\"']?[ \t]*:", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """One file. `text` is without the byte order mark, and with its line ends."""

    path: str
    raw: bytes
    text: str
    bom: bool = False
    given_kind: str = field(default="", repr=False)

    @classmethod
    def of(cls, path: str, raw: bytes, kind: str = "") -> Source:
        """Decode the bytes; InputError if they are not text."""
        for mark, name in _OTHERS.items():
            if raw.startswith(mark):
                raise InputError(
                    f"{path}: is {name}, which this program does not read: make it UTF-8, as with "
                    f"`iconv -f {name} -t UTF-8`"
                )
        bom = raw.startswith(_BOM)
        content = raw[len(_BOM) :] if bom else raw
        if b"\0" in content:
            raise InputError(f"{path}: is a binary file")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            at = error.start + (len(_BOM) if bom else 0)
            raise InputError(f"{path}: is not UTF-8 (byte {at}): save it as UTF-8") from error
        return cls(path, raw, text, bom, kind)

    @classmethod
    def of_text(cls, path: str, text: str, kind: str = "") -> Source:
        """The source for a text that is already read: a part of a file, or stdin."""
        return cls(path, text.encode(errors="surrogatepass"), text, given_kind=kind)

    @cached_property
    def kind(self) -> str:
        """The result of kind_of(), unless it was given."""
        return self.given_kind or kind_of(self.path, self.text)

    def bytes_of(self, new_text: str) -> bytes:
        """The bytes of a new text for this file."""
        return (_BOM if self.bom else b"") + new_text.encode()

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *[found.end() for found in re.finditer("\n", self.text)]]

    def place(self, start: int, end: int) -> Place:
        """The place between two indexes. A line ends with its newline, as in git and editors."""
        return Place(*self._position(start), *self._position(max(start, end)))

    def first_line(self, place: Place) -> Place:
        """The place up to the end of its first line."""
        at = self.index(place.line, place.column)
        end = self.text.find("\n", at)
        return self.place(at, len(self.text) if end < 0 else end - (self.text[end - 1] == "\r"))

    def _position(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1

    def index(self, line: int, column: int = 1) -> int:
        """The index of a place."""
        return self._starts[line - 1] + column - 1

    def excerpt(self, place: Place) -> str:
        """The whole lines of the place, without the last line end."""
        end = self._starts[place.end_line] if place.end_line < len(self._starts) else None
        return self.text[self._starts[place.line - 1] : end].rstrip("\r\n")


def kind_of(path: str, text: str) -> str:
    """yaml, json, helm, jinja, kustomize, markdown or other.

    A Helm template is a file with {{ }} in the templates/ of a chart, or a manifest with {{ }} that
    does not parse. Jinja has {% %} or {# #} as well, or its file name shows it.
    """
    name = PurePath(path)
    ending = _ending(name)
    if name.name == "NOTES.txt":  # notes that helm prints
        return "other"
    if ending in _MARKDOWN:
        return "markdown"
    if name.suffix.lower() in _CODE:
        return "other"
    if ending in _JINJA:
        return "jinja"
    if name.stem in {"kustomization", "Kustomization"} and ending in {*_YAML, ""}:
        return "kustomize"
    shaped = ending in _YAML or ending in _JSON or _MANIFEST.search(text) is not None
    if not shaped and "templates" not in name.parts:
        return "helm" if _CHART_SIGNS.search(text) else "other"
    if _is_templated(name, text):
        return "jinja" if _JINJA_SIGNS.search(text) and "{{-" not in text else "helm"
    if not shaped:
        return "other"
    return "json" if ending in _JSON else "yaml"


def _ending(name: PurePath) -> str:
    """The ending for the kind: `.yaml` of `pod.yaml.tmpl`, `.j2` of `pod.yaml.j2`."""
    endings = [each.lower() for each in name.suffixes]
    while len(endings) > 1 and endings[-1] in _NEITHER:
        endings.pop()
    return endings[-1] if endings else ""


def _is_templated(name: PurePath, text: str) -> bool:
    if "{{" not in text and "{%" not in text:
        return False
    if "templates" in name.parts[:-1]:
        return True
    stream = documents.read(text, json=_ending(name) in _JSON)
    return bool(stream.unread) or not stream.documents
