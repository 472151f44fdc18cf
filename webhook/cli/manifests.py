"""Reads Kubernetes objects from a file or from stdin, as YAML or JSON, as kubectl does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from webhook.core.errors import InputError
from webhook.files.source import Source
from webhook.yamlpatch import documents

_ADVICE = "pass a manifest as YAML or JSON"


def read(file: str) -> list[dict[str, Any]]:
    """The objects of a file, `-` for stdin; raises InputError with line and advice."""
    name = "stdin" if file == "-" else file
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}; {_ADVICE}") from error
    source = Source.of(name, raw)
    stream = documents.read(source.text)
    for each in stream.unread:
        at = source.place(each.at, each.at)
        raise InputError(f"{name}:{at.line}:{at.column}: {each.reason}; {_ADVICE}")
    found = [each.data for each in stream.documents if each.data is not None]
    for position, document in enumerate(found, 1):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise InputError(f"{name}: document {position} has no kind; {_ADVICE}")
    if not found:
        raise InputError(f"{name}: contains no object; {_ADVICE}")
    return found
