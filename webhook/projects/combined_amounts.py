"""Whether a chart's templates would still give the same GPUs: texts and values in, a reason out.

Templates may put amounts of several places together: defaults and those of a worker, or limits
from values beside requests from a template. The webhook then repairs the pod by all of them. After
a run only amounts of one form are sure to give the same, whatever is merged over what.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.formats.mentions import Comments
from webhook.kube import quantity
from webhook.kube.walk import walk
from webhook.projects import chart_actions, known_places
from webhook.projects.chart_actions import SECTIONS
from webhook.templates import expressions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.core.settings import Settings
    from webhook.kube.pointer import Path
    from webhook.projects.seen_amounts import Uses

Amount = tuple[str, str, str]  # section, name and amount
Form = frozenset[Amount]  # the amounts of one container

_KEY = re.compile(r"\b(?P<section>limits|requests)[\"']?[ \t]*:|(?P<name>[\w.-]+/[\w.-]+)[\"']?:")
_VALUE = re.compile(r"[ \t]*(?P<value>(?:\{\{.*?\}\}|[^\s,}#])+)")


def why_unequal(
    texts: Sequence[tuple[str, str]],
    values: Sequence[Any],
    stays: Iterator[str],
    settings: Settings,
) -> str:
    """Why the templates would not give the same GPUs; empty if they would.

    `stays` are the templates in which a legacy name stays.
    """
    uses = chart_actions.of(texts, values, settings)
    if uses.is_deep:
        return "named templates give values to others too often to know what becomes of amounts"
    if uses.looks:
        return (
            f"{uses.looks} looks at names of resources: change it there, in the keys and in the "
            "values together"
        )
    return _why_combined(uses, texts, values, stays, settings) or _why_elsewhere(uses, settings)


def _why_elsewhere(uses: Uses, settings: Settings) -> str:
    """Which action may make something else of the amounts than resources of containers."""
    where = f"{uses.changes} makes something else of them" if uses.changes else ""
    where = where or known_places.why_elsewhere(uses, settings)
    if not uses.is_legacy or not where:
        return ""
    return (
        f"{where}: give it values of its own, or change the keys and all that reads them together"
    )


def _why_combined(
    uses: Uses,
    texts: Sequence[tuple[str, str]],
    values: Sequence[Any],
    stays: Iterator[str],
    settings: Settings,
) -> str:
    """Which function may put amounts together that are not alike."""
    if not uses.combines and not uses.sections:
        return ""
    if where := next(stays, ""):
        return (
            f"the legacy name stays in {where}, and {uses.place} may put amounts of several places "
            "together"
        )
    forms = {form for data in values for form in _of_data(data, settings)}
    forms |= {form for _, text in texts if "{{" in text for form in _of_text(text, settings)}
    where = uses.builds or ("" if _is_alike(forms, uses, settings) else uses.place)
    if not where:
        return ""
    return (
        f"{where} may put amounts of several places together, which would give other GPUs: "
        "write all of them under one name, only in limits or the same in limits and requests"
    )


def _is_alike(forms: set[Form], uses: Uses, settings: Settings) -> bool:
    """Whether any of these amounts may be merged over any others, before a run or after it."""
    sections = {frozenset(section for section, _, _ in form) for form in forms}
    names = {name for form in forms for _, name, _ in form}
    is_legacy = names <= set(settings.legacy_resources)
    if is_legacy and sections <= {frozenset({"limits"})}:
        return True
    has_limits = all("limits" in each for each in sections)
    if uses.sections and (uses.is_apart or not has_limits or len(names) > 1):
        return False  # a run adds limits to requests, and a template may write a name itself
    if is_legacy and sections == {SECTIONS}:
        return all(len({amount for _, _, amount in form}) == 1 for form in forms)
    amounts = {amount for form in forms for _, _, amount in form}
    return len(amounts) == 1 and all(map(quantity.parse, amounts))


def _of_data(data: Any, settings: Settings) -> Iterator[Form]:
    """The amounts in values, by the container or map that has them."""
    found: dict[Path, set[Amount]] = {}
    for at, value in walk(data):
        if not at or not settings.names_gpus(str(at[-1])):
            continue
        amount = quantity.parse(value)
        is_in_section = bool(at[-2:-1]) and at[-2] in SECTIONS
        if is_in_section or amount is not None:
            section, place = (str(at[-2]), at.parent.parent) if is_in_section else ("", at.parent)
            said = str(value if amount is None else amount)
            found.setdefault(place, set()).add((section, str(at[-1]), said))
    yield from map(frozenset, found.values())


def _of_text(text: str, settings: Settings) -> Iterator[Form]:
    """The amounts in a template; a request is of the same container as the limit before it."""
    comments = Comments(text)
    section, waiting = "", None
    for key in _KEY.finditer(text):
        if comments.hold(key.start()):
            continue
        section, name = key["section"] or section, key["name"]
        if not name or not settings.names_gpus(name):
            continue
        found = _VALUE.match(text, key.end())
        said = found["value"].strip("\"'") if found else ""
        if "{{" not in said and quantity.parse(said) is None:
            continue  # of a label
        amount = (section, name, str(expressions.meaning(said)) if "{{" in said else said)
        if waiting and waiting[0] != section and waiting[1:] == amount[1:]:
            yield frozenset({waiting, amount})
            waiting = None
            continue
        if waiting:
            yield frozenset({waiting})
        waiting = amount
    if waiting:
        yield frozenset({waiting})
