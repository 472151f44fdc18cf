"""API versions that are names of packages, or in programs that another program writes."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhook.core.text_patterns import Match
    from webhook.files.source import Source

_LISTS = {
    *("go.mod", "go.sum", "go.work.sum", "modules.txt", "glide.yaml", "Gopkg.toml", "Godeps.json"),
    *("vendor.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml"),
}
_OF_OTHERS = {"vendor", "node_modules", "third_party"}
# Programs that are built with such folders. What Jsonnet has there is rendered into manifests.
_BUILT = {"", ".bazel", ".bzl", ".cjs", ".go", ".js", ".mjs", ".proto", ".py", ".ts"}
_GENERATED = re.compile(  # in a comment
    r"^[ \t]*(?://|/?\*|#|--|;|<!--)[^\n]*?generated\b.{0,200}?\bdo not (?:edit|modify)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_HEAD = 2_000  # characters, in which a generated file says so
# Of an API server, with or without a host. pkg/apis was a folder of Kubernetes.
_URL = re.compile(r"(?<!pkg/)(?<![\w.-])apis/")


class Packages:
    """What is known of the versions in one file without reading them."""

    def __init__(self, source: Source) -> None:
        """For this file."""
        self._source, self._path = source, PurePath(source.path)

    @cached_property
    def is_list(self) -> bool:
        """Whether a package manager keeps the packages of a program in this file."""
        return self._path.suffix == ".lock" or self._path.name in _LISTS

    @cached_property
    def _is_given(self) -> bool:
        """Whether it is a program that nobody edits here: generated, or of others."""
        if self._source.kind != "other":
            return False
        is_theirs = not _OF_OTHERS.isdisjoint(self._path.parts[:-1])
        is_theirs = is_theirs and self._path.suffix in _BUILT
        return is_theirs or _GENERATED.search(self._source.text, 0, _HEAD) is not None

    def hold(self, match: Match) -> bool:
        """Whether no manifest has this version: it is in the path of a package, or given."""
        text = self._source.text
        before = text[max(match.start - len("pkg/apis/"), 0) : match.start]
        is_path = before.endswith("/") and not (before.endswith("apis/") and _URL.search(before))
        return is_path or self._is_given
