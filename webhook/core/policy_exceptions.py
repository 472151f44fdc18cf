"""Exceptions to a policy rule: an annotation on the pod, with the reason as its value.

`gpu-webhook.dev/allow.GPU301: "migrating (until 2027-03-31)"` is valid to the end of that day
(UTC). It counts only where the settings allow it, because every user who creates pods can write
annotations. After the word `until` a date must follow and end the text: an unreadable date must not
make the exception permanent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ALLOW = "gpu-webhook.dev/allow."
_UNTIL = re.compile(r"(?P<reason>.*)\buntil\b(?P<day>.*)", re.IGNORECASE | re.DOTALL)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Claim:
    """The result of the annotation: the reason if it counts, otherwise why it does not."""

    reason: str = ""
    why_not: str = ""


NONE = Claim()


def claim(code: str, annotations: Mapping[str, Any], *, allowed: bool, today: date | None) -> Claim:
    """Read the annotation for this rule. `today` is the day in UTC.

    Without `today` no expiry can be checked, so an exception with one does not count.
    """
    text = annotations.get(ALLOW + code)
    if not isinstance(text, str):
        return NONE
    if not allowed:
        return Claim(why_not=f"the settings allow no {ALLOW}{code} here")
    reason, day_as_text = _parts(text)
    if day_as_text is not None:
        day = _date(day_as_text)
        if day is None or today is None:
            return Claim(why_not=f"{ALLOW}{code} must end as in (until 2027-03-31)")
        if day < today:
            return Claim(why_not=f"its exception ended on {day.isoformat()}")
    if not reason:
        return Claim(why_not=f"{ALLOW}{code} needs a reason as its value")
    return Claim(text.strip())


def _parts(text: str) -> tuple[str, str | None]:
    """The reason, and the text after the last `until`; None if there is no such word.

    Blanks and brackets are not part of the expression: it would try each of them as a start.
    """
    found = _UNTIL.fullmatch(text)
    if found is None:
        return text.strip(), None
    return (
        found["reason"].strip().removesuffix("(").strip(),
        found["day"].strip().removesuffix(")").strip(),
    )


def _date(text: str) -> date | None:
    if not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
