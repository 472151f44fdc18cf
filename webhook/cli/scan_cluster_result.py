"""What `scan --cluster` found on one object, and on those with the same owner and findings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from webhook.cluster import objects
from webhook.rules import is_legacy

if TYPE_CHECKING:
    from webhook.cluster.objects import Reference
    from webhook.files.results import FileResult


@dataclass(slots=True)
class Reported:
    """The findings on one object, and on similar ones."""

    result: FileResult
    owner: str = ""  # what must be changed
    # Of the same owner, with the same findings.
    alike: list[Reference] = field(default_factory=list)
    came: bool = False  # the last finding is that it was sent otherwise and repaired
    top: Reference = objects.NOBODY  # the topmost owner
    itself: Reference = objects.NOBODY
    created: str = ""  # when the newest of the objects was created

    @property
    def is_legacy(self) -> bool:
        """Whether the object is legacy, or was sent so and repaired."""
        return is_legacy_result(self.result)

    def with_owner(self) -> FileResult:
        """The result for programs: each message names the owner."""
        if not self.owner:
            return self.result
        located = tuple(
            replace(each, message=f"{each.message}; to be changed: {self.owner}")
            for each in self.result.located
        )
        return replace(self.result, located=located)


def is_legacy_result(result: FileResult) -> bool:
    """Whether one of its findings is of a rule on legacy use."""
    return any(is_legacy(each.code) for each in result.located)
