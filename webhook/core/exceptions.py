"""Exceptions to a policy rule: an annotation on the pod, with the reason as its value.

`gpu-webhook.dev/allow.GPU301: "migrating (until 2027-03-31)"` holds to the end of that day (UTC).
It counts only where the settings allow it, since whoever makes a pod can write annotations. Where
the word `until` stands, a day must follow and end the text: a day that is passed over would make
the exception one for ever.
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
    """What an annotation claims: the reason if it counts, else why it does not."""

    reason: str = ""
    why_not: str = ""


NONE = Claim()


def claim(code: str, annotations: Mapping[str, Any], *, allowed: bool, today: date | None) -> Claim:
    """Read the annotation for this rule. Without a clock an expiry cannot be judged: it counts not.

    `today` is the day in UTC.
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
    """The reason, and what follows the last `until`; None if there is no such word.

    Blanks and brackets are not left to the expression, which would try each as a beginning.
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
