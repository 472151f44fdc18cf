"""What the tests of `verify` share: objects in, the comparison out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.verifying import comparison, read_side

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.cases import Case
    from webhook.files.results import FileResult
    from webhook.verifying.comparison import Compared, Store

    Raw = dict[str, Any]


def side(*objects: Raw) -> read_side.Side:
    return read_side.Side([read_side.Found(each, "x.yaml", "") for each in objects])


def compared(
    old: Iterable[Raw], new: Iterable[Raw], plan: Plan | None = None, store: Store | None = None
) -> list[Compared]:
    return comparison.compare(side(*old), side(*new), plan or Plan(), store)


def of_files(path: str, old: bytes, new: bytes, plan: Plan | None = None) -> list[Compared]:
    one, other = (read_side.of_text(path, raw) for raw in (old, new))
    return comparison.compare(one, other, plan or Plan())


def plan_of(case: Case) -> Plan:
    """What `migrate` is asked for in this case, without --unsafe."""
    cx = case.context(case.object())
    return Plan(replace(cx.settings, scope="all-legacy"), cx.inventory)


def migrated(file: Path, plan: Plan) -> tuple[FileResult, bytes]:
    """What `migrate` reports, and the bytes that it would write."""
    source = Source.of(file.name, file.read_bytes())
    result = migrate_text(source, plan)
    text = source.text if result.new_text is None else result.new_text
    return result, source.bytes_of(text)


def is_done(result: FileResult) -> bool:
    """Whether `migrate` leaves nothing in the file to its author."""
    return not result.skipped and all(each.status is not Status.MANUAL for each in result.located)
