"""What a Helm chart leaves for manual work in one file may be about the pods of another.

Values are written into templates, and templates include one another.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.core.errors import InputError
from webhook.migration import together
from webhook.migration.migrate import migrate_text
from webhook.migration.reading import UnreadableError, read_regular
from webhook.migration.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.migration.results import FileResult, Plan

_MARK = "Chart.yaml"
_READ = (".yaml", ".yml", ".tpl", ".json", ".txt")
_MOST = 2_000  # files of a chart that are looked at


def migrated(path: str, source: Source, plan: Plan) -> FileResult:
    """What is made of a file, whose amounts wait for what the rest of its chart needs."""
    result = migrate_text(source, plan)
    root = _root(path) if together.does_amounts(result) else None
    left: dict[str, str] = {}
    for each in _files(root) if root is not None else ():
        if os.path.realpath(path) != os.path.realpath(each):
            left = {**_left(_asked(each, os.path.relpath(each, root), plan)), **left}
    return migrate_text(source, replace(plan, left=left)) if left else result


def _root(path: str) -> Path | None:
    """The folder of the chart; of a chart inside another, which gives it values, that other."""
    found = None
    for above in Path(os.path.abspath(path)).parents:  # noqa: PTH100  # a link is named as it is
        if (above / _MARK).is_file():
            found = above
        elif found is not None and above.name != "charts":
            break
    return found


def _files(root: Path) -> Iterator[str]:
    number = 0
    for folder, inner, files in os.walk(root):
        inner[:] = sorted(each for each in inner if each != ".git")
        for name in sorted(files):
            number += 1
            if number > _MOST:
                return
            if name.endswith(_READ) and name not in {_MARK, "NOTES.txt"}:
                yield str(Path(folder, name))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A file as it is now, and what is asked of it."""

    path: str
    name: str
    changed: tuple[int, int]
    codes: tuple[tuple[str, ...], tuple[str, ...]]
    plan: Plan = field(compare=False)


def _asked(path: str, name: str, plan: Plan) -> _Asked:
    with suppress(OSError):
        status = os.stat(path)  # noqa: PTH116
        changed = (status.st_mtime_ns, status.st_size)
        return _Asked(path, name, changed, (tuple(plan.codes), tuple(plan.ignored)), plan)
    return _Asked(path, name, (0, 0), ((), ()), plan)


@lru_cache(maxsize=4096)
def _left(asked: _Asked) -> dict[str, str]:
    """What is for manual work in one file of a chart."""
    with suppress(UnreadableError, InputError):
        source = Source.of(asked.path, read_regular(asked.path)[0])
        if any(True for _ in together.words(source.text, asked.plan)):
            return together.left(migrate_text(source, asked.plan), asked.plan, asked.name)
    return {}
