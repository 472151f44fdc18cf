"""The selectors and labels of a template that are known before it is rendered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.core.edits import Remove, Set
from webhook.kube.pod import as_map
from webhook.kube.pointer import Path, value_at
from webhook.templates.blocks import Kind
from webhook.templates.produced_annotations import actions_of
from webhook.templates.repeatable import stays

if TYPE_CHECKING:
    from webhook.core.findings import Finding
    from webhook.templates.actions import Template
    from webhook.templates.open_places import OpenPlaces
    from webhook.templates.placeholders import Masks
    from webhook.yamlpatch.documents import Document

NOT_KNOWN = "the labels that its selector needs are not in sight"
NOT_ALWAYS = (
    "its selector is under a condition: write it for every case, apps/v1 has no default of it"
)
_MAY_DIFFER = (
    "its labels may differ at each rendering or upgrade, and no selector can be changed: write a "
    "selector of labels that stay"
)
_MEMBERS = ("matchLabels", "matchExpressions")
_NO_SELECTOR = (
    "apps/v1 needs spec.selector, and the template makes the labels: write the same in both"
)


def is_of_old(selector: object) -> bool:
    """Whether it is no apps/v1 selector: missing, or in the style of a ReplicationController."""
    return not any(member in as_map(selector) for member in _MEMBERS)


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """The selectors and labels of one document, for one combination of branches.

    If actions produce a part of either, it is unknown whether they match: `{{ .x }}`, `"{{ .x }}"`
    and an include may all produce the same text.
    """

    document: Document
    template: Template
    masks: Masks
    open: OpenPlaces

    def message(self, finding: Finding, at: Path) -> str:
        """The message for a selector that does not match; empty if that is unknown."""
        spec = at if at[-1] == "spec" else at.parent
        selector: Any = as_map(value_at(self.document.data, spec)).get("selector")
        sees_selector = self._is_seen(spec / "selector")
        sees_labels = self._is_seen(spec / "template" / "metadata" / "labels")
        if (sees_selector and sees_labels) or (selector and is_of_old(selector)):
            return finding.message
        if selector or not sees_selector:
            return ""
        return _NO_SELECTOR if self.why_no_copy(spec) else finding.message

    def why_no_copy(self, spec: Path) -> str:
        """Why the labels must not be copied into the selector; empty if they may."""
        if not self._is_seen(spec / "selector"):
            return "the template may write a selector"
        at = spec / "template" / "metadata" / "labels"
        above = self.document.place(spec)[0]
        actions = actions_of(self.document, self.template, at)
        are_values = all(
            each.kind is Kind.WRITES
            and not self.masks.is_alone(each)
            and "\n" not in self.template.text[each.start : each.end]
            for each in actions
        )
        if not are_values or not self._is_always(at, above) or self._is_open(at):
            return NOT_KNOWN
        do_stay = all(stays(each, self.template, above) for each in actions)
        return "" if do_stay else _MAY_DIFFER

    def is_always_selected(self, version: Path) -> bool:
        """Whether the selector that is written there is in all renderings with this version."""
        at = version.parent / "spec" / "selector"
        if self.document.find(at) is None:  # it is a copy of the labels
            return True
        beside = self.document.place(version)[0]
        members = as_map(value_at(self.document.data, at))
        return self._is_always(at, beside) and (
            not members or any(self._is_always(at / each, beside) for each in members)
        )

    def _is_always(self, at: Path, beside: int) -> bool:
        """Whether it has no conditions except those of the other place."""
        start = self.document.place(at)[0]
        return self.template.covers(
            self.template.arms_around(start, start), self.template.arms_around(beside, beside)
        )

    def _is_seen(self, at: Path) -> bool:
        return not actions_of(self.document, self.template, at) and not self._is_open(at)

    def _is_open(self, at: Path) -> bool:
        return self.open.goes_on(Remove(at)) or self.open.may_meet(Set(at / "", ""))
