"""Exceptions to a policy rule: an annotation on the pod whose value is the reason.

`gpu-webhook.dev/allow.GPU301: "migrating (until 2027-03-31)"` holds to the end of that day (UTC).
It counts only where the settings allow it, since whoever makes a pod can write annotations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ALLOW = "gpu-webhook.dev/allow."
_UNTIL = re.compile(r"\s*\(?\s*\buntil\b\s*(?P<day>[^\s()]*)\s*\)?\s*$", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


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
    found = _UNTIL.search(text)
    reason = (text[: found.start()] if found else text).strip()
    if not reason:
        return Claim(why_not=f"{ALLOW}{code} needs a reason as its value")
    if found is None:
        return Claim(reason)
    day = _date(found["day"])
    if day is None or today is None:
        return Claim(why_not=f"{ALLOW}{code} must end as in (until 2027-03-31)")
    if day < today:
        return Claim(why_not=f"its exception ended on {day.isoformat()}")
    return Claim(text.strip())


def _date(text: str) -> date | None:
    if not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
