"""Files of a chart that its templates write out as they are: an expression in, which it reads out.

`.Files.Get` and `.Files.Glob` read files beside the templates. Whole objects among them are
migrated as objects. Other files have the amounts that a run renames in values.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from webhook.projects import merged_values
from webhook.templates.expressions import At, Call, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.templates.expressions import Expression

_FILES = "Files"
_GLOB = "Glob"
_OWN = "values.yaml"
_AS_DATA = {"AsConfig", "AsSecrets"}


def with_amounts(texts: Iterable[tuple[str, str]], names: Sequence[str]) -> frozenset[str]:
    """The files that have one of these names, besides templates and the values of charts."""
    return frozenset(
        file
        for file, text in texts
        if not file.endswith(_OWN)
        and any(each in text for each in names)
        and merged_values.are_values(file, text)
    )


def is_read(given: Expression, files: frozenset[str]) -> bool:
    """Whether the expression reads one of these files; by a name that is not known, it may."""
    if not files or not isinstance(given, Call) or not given.arguments:
        return False
    function, *named = given.arguments
    if not isinstance(function, At) or function.members[-2:] != (_FILES, given.name):
        return False
    if not named or not isinstance(named[0], Text):
        return True
    name = named[0].value
    return any(fnmatchcase(e, name) or fnmatchcase(e, f"*/{name}") for e in files)


def is_glob(given: Expression | None) -> bool:
    """Whether it gives names of files, each with its text."""
    return isinstance(given, Call) and given.name == _GLOB


def is_data(given: At) -> bool:
    """Whether it is the data of a ConfigMap or Secret, of the files before it."""
    return is_glob(None if isinstance(given.root, str) else given.root) and _AS_DATA.issuperset(
        given.members
    )
