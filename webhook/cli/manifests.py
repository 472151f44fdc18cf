"""Kubernetes objects from a file or from stdin, as YAML or JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from webhook.core.errors import InputError

_CURE = "give a manifest as YAML or JSON"
_MOST_VALUES = 1_000_000  # a few lines of aliases can stand for more than any memory holds


class _Loader(yaml.SafeLoader):
    """A safe loader that leaves dates as the texts that Kubernetes takes them for."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(file: str) -> list[dict[str, Any]]:
    """The objects of a file, `-` for stdin; raises InputError with line and cure."""
    name = "stdin" if file == "-" else file
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}; {_CURE}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8 (byte {error.start}); {_CURE}") from error
    try:
        documents = [
            _plain(each, [_MOST_VALUES]) for each in _parse(text, name) if each is not None
        ]
    except RecursionError as error:
        raise InputError(f"{name}: is too deeply nested, or holds itself; {_CURE}") from error
    except OverflowError as error:
        raise InputError(f"{name}: its aliases stand for over {_MOST_VALUES} values") from error
    for position, document in enumerate(documents, 1):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise InputError(f"{name}: document {position} names no kind; {_CURE}")
    if not documents:
        raise InputError(f"{name}: holds no object; {_CURE}")
    return documents


def _parse(text: str, name: str) -> list[Any]:
    try:
        if text.lstrip().startswith("{"):
            return [json.loads(text)]
    except (ValueError, RecursionError):
        pass  # a YAML flow map begins like JSON
    try:
        return list(yaml.load_all(text, Loader=_Loader))  # a safe loader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{mark.line + 1}:{mark.column + 1}: " if mark else " "
        problem = getattr(error, "problem", None) or "no YAML"
        raise InputError(f"{name}:{where}{problem}; {_CURE}") from error
    except RecursionError as error:
        raise InputError(f"{name}: is too deeply nested; {_CURE}") from error


def _plain(value: Any, left: list[int]) -> Any:
    """The value with texts as names of members, as JSON has them, and without shared parts."""
    left[0] -= 1
    if left[0] < 0:
        raise OverflowError
    if isinstance(value, dict):
        return {str(key): _plain(item, left) for key, item in value.items()}
    return [_plain(item, left) for item in value] if isinstance(value, list) else value
