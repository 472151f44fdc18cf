"""The content of a file: its bytes, its text, and the kind of the text."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from webhook.core.errors import InputError
from webhook.yamlpatch import documents
from webhook.yamlpatch.places import Place
from webhook.yamlpatch.style import newlines

if TYPE_CHECKING:
    from array import array

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
TEMPLATES = ("helm", "jinja")  # kinds of files
_JINJA = {".j2", ".jinja", ".jinja2"}
# Templates of anything, and names of which the ending before them counts: `x.yaml.old`.
_TEMPLATES = {".template", ".tmpl", ".tpl", ".gotmpl"}
_NEITHER = {
    *_TEMPLATES, ".in", ".dist", ".example", ".sample", ".default", ".envsubst", ".injected",
    ".disabled", ".old", ".orig", ".bak", ".txt",
}  # fmt: skip
# Languages in which YAML could also be a program, or stand in a document.
_TEXTS = {
    ".go", ".py", ".sh", ".bash", ".js", ".ts", ".rb", ".java", ".jsonnet", ".libsonnet", ".cue",
    ".tf", ".hcl", ".star", ".bzl", ".nix", ".rst", ".adoc", ".asciidoc", ".html", ".htm", ".org",
}  # fmt: skip
STREAM = "stdin"  # the path of what has no name
# Of these, a file that cannot be read is an error, because something may be left out.
_READ = (
    *_JSON, *_YAML, *_MARKDOWN, *_JINJA, *_TEMPLATES, ".sh", ".bash",
    *(first + last for first in (*_JSON, *_YAML) for last in _NEITHER),
)  # fmt: skip

_JINJA_SIGNS = re.compile(r"\{%|\{#")
_CHART_SIGNS = re.compile(r"\{\{-?\s*(?:define|include|template)\s")
_MANIFEST = re.compile(r"^[ \t]*-?[ \t]*[\"']?(?:apiVersion|kind)[\"']?[ \t]*:", re.MULTILINE)
_OBJECT = re.compile(r"\s*\{|^apiVersion[ \t]*:", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """One file. `text` is without the byte order mark, and with its line ends."""

    path: str
    raw: bytes
    text: str
    bom: bool = False
    given_kind: str = field(default="", repr=False)
    is_lossy: bool = False  # it is not UTF-8: other characters are replaced, and nothing is written

    @classmethod
    def of(cls, path: str, raw: bytes, *, lossy: bool = False) -> Source:
        """Decode the bytes; InputError if they are not UTF-8, with `lossy` only if not text."""
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
            if lossy:
                return cls(path, raw, content.decode(errors="replace"), bom, "other", is_lossy=True)
            at = error.start + (len(_BOM) if bom else 0)
            raise InputError(f"{path}: is not UTF-8 (byte {at}): save it as UTF-8") from error
        return cls(path, raw, text, bom)

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
    def _ends(self) -> array[int]:
        return newlines(self.text)

    def _start(self, line: int) -> int:
        return self._ends[line - 2] + 1 if line > 1 else 0

    def place(self, start: int, end: int) -> Place:
        """The place between two indexes. A line ends with its newline, as in git and editors."""
        return Place(*self._position(start), *self._position(max(start, end)))

    def first_line(self, place: Place) -> Place:
        """The place up to the end of its first line."""
        at = self.index(place.line, place.column)
        end = self.text.find("\n", at)
        return self.place(at, len(self.text) if end < 0 else end - (self.text[end - 1] == "\r"))

    def _position(self, at: int) -> tuple[int, int]:
        line = bisect_left(self._ends, at) + 1
        return line, at - self._start(line) + 1

    def index(self, line: int, column: int = 1) -> int:
        """The index of a place."""
        return self._start(line) + column - 1

    def excerpt(self, place: Place) -> str:
        """The whole lines of the place, without the last line end."""
        end = self._start(place.end_line + 1) if place.end_line <= len(self._ends) else None
        return self.text[self._start(place.line) : end].rstrip("\r\n")


def is_read(name: str) -> bool:
    """Whether a file of this name is read for manifests; others are only searched for words."""
    return name.lower().endswith(_READ)


def kind_of(path: str, text: str) -> str:
    """yaml, json, helm, jinja, kustomize, markdown or other.

    A Helm template is a file with {{ }} in the templates/ of a chart, or a manifest with {{ }} that
    does not parse. Jinja has {% %} or {# #} as well, or its file name shows it. A file whose name
    says nothing is a manifest only if the whole of it is one.
    """
    name = PurePath(path)
    ending = _ending(name)
    if name.name == "NOTES.txt":  # notes that helm prints
        return "other"
    if ending in _MARKDOWN:
        return "markdown"
    if name.suffix.lower() in _TEXTS:
        return "other"
    if ending in _JINJA:
        return "jinja"
    if name.stem in {"kustomization", "Kustomization"} and ending in {*_YAML, ""}:
        return "kustomize"
    is_part = "templates" in name.parts[:-1]
    if not (is_part or is_read(name.name) or path == STREAM):
        return _kind_of_objects(text)
    shaped = ending in _YAML or ending in _JSON or _MANIFEST.search(text) is not None
    if not shaped and not is_part:
        return "helm" if _CHART_SIGNS.search(text) else "other"
    if _is_templated(name, text):
        return "jinja" if _JINJA_SIGNS.search(text) and "{{-" not in text else "helm"
    if not shaped:
        return "other"
    return "json" if ending in _JSON else "yaml"


def _kind_of_objects(text: str) -> str:
    """The kind by the text alone: yaml or json if all of it is objects of Kubernetes."""
    if _OBJECT.search(text) is None:
        return "other"
    is_json = text.lstrip().startswith("{")
    stream = documents.read(text, json=is_json)
    found = [each.data for each in stream.documents if each.data is not None]
    are_objects = (isinstance(each, dict) and {"apiVersion", "kind"} <= {*each} for each in found)
    if stream.unread or not found or not all(are_objects):
        return "other"
    return "json" if is_json else "yaml"


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
