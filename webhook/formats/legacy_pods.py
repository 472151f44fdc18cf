"""Decides whether a pod's GPU amounts may be renamed: its node selection must be migrated as well.

The webhook repairs a pod with legacy GPU amounts as a whole. Once its amounts have the current
name, it counts as a current pod, and the webhook only warns about its legacy node labels,
annotations and driver volumes. So the amounts keep their name while one of these needs manual work:
otherwise the pod would lose its GPU model, or would run with an empty folder instead of the
driver's libraries.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.core.edits import Remove
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.host_paths import is_device
from webhook.core.legacy_names import AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION
from webhook.core.rule import Trait
from webhook.core.text_patterns import RESOURCE_TEXT, find
from webhook.files.results import FileResult, Located, Plan, Status
from webhook.files.source import Source
from webhook.formats.file_objects import AMOUNTS
from webhook.formats.mentions import Comments
from webhook.kube.pod import as_map
from webhook.kube.pointer import Path, value_at
from webhook.rules import (
    PATTERNS,
    affinity_annotation,
    codes,
    driver_paths,
    ignored_annotations,
    legacy_resource,
    missing_selector,
    tolerations_annotation,
)
from webhook.templates import actions
from webhook.templates.blocks import Kind
from webhook.templates.placeholders import stands_for_action

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.core.settings import Settings
    from webhook.evaluation.evaluate import Evaluation
    from webhook.templates.regions import Region

_ANNOTATIONS = codes(Trait.ANNOTATION)
_CODES = codes(Trait.LEGACY_PODS)
# Edits that wait for a choice of the author: all that the webhook makes for legacy pods only.
OF_CHOICES = AMOUNTS | _CODES
# Their patterns for text that no rule can read, without patterns that have no replacement.
_WORDS = tuple(each for each in PATTERNS if each.code in _CODES and not each.idle)
WHOLE = ("affinity", "volumes")  # fields in which any word may be a model, or a path of the driver
# The begin of a member at the top of a map; any other text there has none.
_MEMBER = re.compile(r"^(?:[\"']?(?P<name>[\w-]+)[\"']?[ \t]*:(?=\s)|[^\s#-])", re.MULTILINE)
_UNTIL = "until both are changed, the webhook repairs the whole pod"


def is_lost(found: Finding) -> bool:
    """Whether the webhook would make this edit in a legacy pod but not in a current pod.

    An annotation that is only removed had no effect.
    """
    if found.safety is Safety.UNSAFE:
        return False
    if found.code in _ANNOTATIONS:
        return not all(isinstance(edit, Remove) for edit in found.touched)
    return found.code in _CODES


def waiting(found: Iterable[Finding]) -> dict[Path, tuple[str, Path]]:
    """The legacy pods for which the author must first choose something.

    Code and place of the choice.
    """
    found = list(found)
    legacy = {pod_of(each.origin) for each in found if each.code in AMOUNTS}
    choices = [
        each for each in reversed(found) if each.safety is Safety.CHOICE and each.code in OF_CHOICES
    ]
    places = {pod_of(each.origin): (each.code, each.origin) for each in choices}
    return {pod: place for pod, place in places.items() if pod in legacy}


def lost(found: Sequence[Finding], rendered: object = None) -> dict[Path, tuple[str, Path]]:
    """The pods that would lose repairs of the webhook with current amounts.

    Code and place of the cause. With a rendered document, also causes that rules can only report
    there.
    """
    return {
        pod_of(each.origin): (each.code, each.origin)
        for each in reversed(found)
        if (each.held and is_lost(each)) or (rendered is not None and may_be_lost(each, rendered))
    }


def unlabelled(made: Iterable[Evaluation]) -> dict[Path, Path]:
    """Objects whose version needs labels for a selector, and the place of these labels."""
    return {
        each.at / "apiVersion": found.origin
        for each in made
        for found in each.findings
        if found.code == missing_selector.CODE and found.safety is Safety.CHOICE
    }


def may_be_lost(found: Finding, data: object) -> bool:
    """Whether a finding is only reported because the template produces a part of the field.

    In the rendered pod the webhook may repair it.
    """
    if found.code not in _CODES or found.safety is Safety.UNSAFE or not found.origin:
        return False
    value = value_at(data, found.origin)
    looked_at = as_map(as_map(value).get("hostPath")).get("path", value)
    if found.severity is not Severity.MANUAL or found.touched or is_device(str(looked_at)):
        return False
    return any(map(stands_for_action, (found.origin[-1], looked_at)))


def code_of(annotation: str) -> str:
    """The code of the rule that converts this annotation; empty if none does."""
    if annotation == AFFINITY_ANNOTATION:
        return affinity_annotation.CODE
    if annotation == TOLERATIONS_ANNOTATION:
        return tolerations_annotation.CODE
    return ignored_annotations.CODE if ignored_annotations.becomes_field(annotation) else ""


def pod_of(at: Path) -> Path:
    """The pod or template that contains the place of a finding."""
    inside = [depth for depth, token in enumerate(at) if token in {"metadata", "spec"}]
    return Path(at[: inside[-1]]) if inside else at


def places(pod: Path, code: str) -> Iterator[Path]:
    """The places in a pod that this rule reads, from the pod down."""
    yield pod
    if code in _ANNOTATIONS:
        yield from (pod / "metadata", pod / "metadata" / "annotations")
        return
    yield pod / "spec"
    members = ("volumes",) if code == driver_paths.CODE else ("nodeSelector", "affinity")
    yield from (pod / "spec" / each for each in members)


def is_of_object(data: object, at: Path) -> bool:
    """Whether a whole object is around this place; then all of its pod is known."""
    return any("kind" in as_map(value_at(data, Path(at[:depth]))) for depth in range(len(at)))


def of_same_pod(code: str, line: int) -> str:
    """The reason for held amounts: this finding on the same pod."""
    return f"{code} of the same pod needs manual work (line {line}); {_UNTIL}"


def elsewhere(code: str, where: str) -> str:
    """The reason for held amounts: a finding elsewhere that may be about the same pod."""
    return f"{code} needs manual work in {where} and may be about the same pod; {_UNTIL}"


def does_amounts(result: FileResult) -> bool:
    """Whether amounts are renamed in this file."""
    return any(each.code in AMOUNTS and each.status is Status.FIXABLE for each in result.located)


def words(text: str, plan: Plan) -> Iterator[tuple[str, int, int]]:
    """The legacy words in a text that a pod would lose: code, begin and end of each."""
    found = [(m.code, m.start, m.end) for m in find(text, _WORDS, plan.settings)]
    fields = ignored_annotations.IN_MANIFESTS.finditer(text)
    found += [(ignored_annotations.CODE, *m.span()) for m in fields]
    comments = Comments(text)
    unused = _Members(text) if plan.unused else None
    for code, start, end in found:
        if unused is not None and unused.around(start) in plan.unused:
            continue
        if plan.asks(code) and not comments.hold(start):
            yield code, start, end


def members(text: str, plan: Plan) -> set[str]:
    """The members at the top of values that have such words."""
    found, names = [*words(text, plan)], _Members(text)
    return {name for _, start, _ in found if (name := names.around(start))}


class _Members:
    """The members at the top of a map in block style."""

    def __init__(self, text: str) -> None:
        found = [*_MEMBER.finditer(text)]
        self._starts = [each.start() for each in found]
        self._names = [each["name"] or "" for each in found]

    def around(self, at: int) -> str:
        """The name of the member with this place; empty if it is not known."""
        number = bisect_right(self._starts, at) - 1
        return self._names[number] if number >= 0 else ""


def read_by_name(text: str, settings: Settings) -> int:
    """The line on which an action of a template has the name of an amount; 0 if none has.

    Such an action looks the amount up. No run changes the inside of an action.
    """
    places = sorted(_named(text, settings))
    if not places:
        return 0
    template, comments = actions.read_apart(text), Comments(text)
    for start, end in places:
        inside = template.actions_in(start, end)
        # What an action writes into a comment has no effect; what it sets may have one.
        if any(
            each.kind is not Kind.COMMENT
            and not (each.kind is Kind.WRITES and comments.hold(each.start))
            for each in inside
        ):
            return text.count("\n", 0, start) + 1
    return 0


def _named(text: str, settings: Settings) -> Iterator[tuple[int, int]]:
    """The places of the names of amounts, and of quoted parts from which a name may be made."""
    yield from ((each.start, each.end) for each in find(text, (RESOURCE_TEXT,), settings))
    for name in settings.legacy_resources:
        domain, _, base = map(re.escape, name.partition("/"))
        if domain and base:
            parts = rf"(?<![-\w.]){domain}/?(?:%\w)?(?=[\"'`])|(?<=[\"'`])/{base}(?=[\"'`])"
            yield from (found.span() for found in re.finditer(parts, text))


def is_read(where: str) -> str:
    """The reason for held amounts: a template action with their name."""
    return (
        f"{where} has this name inside a template action: change it there, in the keys and in the "
        "values together"
    )


def with_amounts_held(plan: Plan, why: str) -> Plan:
    """The plan for a file in which no amount is renamed."""
    return replace(plan, held={**dict.fromkeys(AMOUNTS, why), **plan.held})


def in_region(source: Source, region: Region, plan: Plan) -> str:
    """Why no amounts are renamed in a part of a text that no rule can read."""
    if why := plan.held.get(legacy_resource.CODE):
        return why
    for code, start, _ in words(source.text[region.start : region.end], plan):
        line = source.place(region.start + start, region.start + start).line
        return elsewhere(code, f"this file (line {line})")
    return next((elsewhere(*each) for each in plan.left.items()), "")


def left(result: FileResult, plan: Plan, name: str) -> dict[str, str]:
    """The manual findings in this file: for each code the place of the first word.

    Opted-out pods and comments have none, or notices.
    """
    there = [*words(result.text, plan)]
    if not there:
        return {}
    source = Source.of_text(result.path, result.text, result.kind)
    said = [each for each in result.located if each.status is not Status.NOTICE]
    spoken_of = _lines(said)
    done = _lines(
        each for each in said if each.code in _CODES and (each.fix or each.status is Status.FIXABLE)
    )
    found: dict[str, str] = {}
    for code, start, end in there:
        line = source.place(start, end).line
        if line in spoken_of and line not in done:
            found.setdefault(code, f"{name} (line {line})")
    return found


def left_of(planned: FileResult, made: FileResult) -> str:
    """The reason for held amounts in other files: an edit of a pod that was planned is not made."""
    done = {(e.code, e.place) for e in made.located if e.status is Status.FIXABLE}
    for each in planned.located:
        is_planned = each.code in OF_CHOICES and each.status is Status.FIXABLE
        if is_planned and (each.code, each.place) not in done:
            return elsewhere(each.code, f"{planned.path} (line {each.place.line})")
    return ""


def _lines(located: Iterable[Located]) -> set[int]:
    spans = {(each.place.line, each.place.end_line) for each in located}
    return {line for first, last in spans for line in range(first, last + 1)}
