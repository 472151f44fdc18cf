"""The name and the manual of a rule, for reports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.rules import ALL

if TYPE_CHECKING:
    from webhook.files.results import Report


@dataclass(frozen=True, slots=True)
class Manual:
    """A rule's docstring in parts. A code without a rule (of a parser) has only its name."""

    code: str
    name: str = ""
    headline: str = ""
    text: str = ""

    @property
    def markdown(self) -> str:
        """The manual with its words in bold, as on the page."""
        return re.sub(r"^(Why|Does|Safety):", r"**\1:**", self.text, flags=re.MULTILINE)


def manuals(report: Report) -> dict[str, Manual]:
    """All rules, and all codes in the report, in the order of codes."""
    known = {rule.CODE: _manual(rule.CODE, rule.NAME, (rule.__doc__ or "").strip()) for rule in ALL}
    for each in report.located:
        known.setdefault(each.code, Manual(each.code))
    return dict(sorted(known.items()))


def _manual(code: str, name: str, text: str) -> Manual:
    headline = text.partition("\n")[0].removeprefix("Finds ")
    return Manual(code, name, headline[:1].upper() + headline[1:], text)
