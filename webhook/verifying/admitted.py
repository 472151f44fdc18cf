"""An old object in; out what the webhook makes of it, on a current API server.

An object of a removed API version is first written in the current one, with the old defaults, as
the rules on whole manifests do: no API server takes it as it is. Then the rules on pods repair its
pods or pod templates, as in admission.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.core.edits import Rename, place_of
from webhook.core.rule import Trait
from webhook.evaluation.evaluate import Stages, evaluate, nothing_is_held
from webhook.evaluation.workloads import is_built_in, templates_of
from webhook.formats.file_objects import context, evaluations, opened, shapes
from webhook.formats.opt_outs import is_left_alone
from webhook.kube.api_versions import other_successor, workload_successor
from webhook.rules import MANIFEST, RULES, changed_default, codes, legacy_name_elsewhere

if TYPE_CHECKING:
    from webhook.core.findings import Finding
    from webhook.evaluation.evaluate import Evaluation
    from webhook.files.results import Plan
    from webhook.kube.pointer import Path

    Raw = dict[str, Any]

_VERSIONS = codes(Trait.VERSION)


@dataclass(slots=True)
class Admitted:
    """The object that the webhook leaves, and how it came to be.

    `said` are the conversions; `changes` are the places of all edits, each with its rule; `data`
    are the places of legacy names of which other programs make pods: the webhook sees only these
    pods. `why_not` is the reason if it is not known what becomes of the object, as of one that
    `is_open`: text is inserted into it later.
    """

    object: Raw
    conversions: list[str] = field(default_factory=list)
    changes: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    data: list[tuple[str, ...]] = field(default_factory=list)
    why_not: str = ""
    is_open: bool = False

    def codes_at(self, place: tuple[str, ...]) -> list[str]:
        """The rules whose edits are at this place, above it or below it."""
        return sorted(
            {
                code
                for at, code in self.changes
                if at[: len(place)] == place or place[: len(at)] == at
            }
        )


def admitted(obj: Raw, plan: Plan, *, with_places: bool = True) -> Admitted:
    """What becomes of the object; it is not changed itself.

    Without places it is not noted which rule changed what.
    """
    obj = copied(obj)
    meant = Admitted(obj)
    if opened(plan, obj).is_open:
        meant.is_open = True
        meant.why_not = "a placeholder or a template action stands in it: render it first"
        return meant
    cx = context(obj, plan)
    of_objects, of_pods = _stages(plan)
    held = nothing_is_held if with_places else None
    made = evaluate(obj, of_objects, cx, held=held, is_left_alone=is_left_alone)
    _note(made, meant)
    meant.conversions = [
        f"{each.code} {each.message}" for each in made.findings if _is_conversion(each)
    ]
    if workload_successor(obj, plan.target) or other_successor(obj, plan.target):
        why = (each.message for each in made.findings if each.code in _VERSIONS)
        meant.why_not = next(why, "no API server takes its version")
        return meant
    if _hides_pods(obj, plan):
        meant.why_not = (
            "its kind may create pods, and where its pod templates are is not known: name the kind "
            "in `workloads.kinds` of the settings"
        )
        return meant
    cx = replace(cx, in_manifest=False)
    made = evaluate(obj, of_pods, cx, held=held, is_left_alone=is_left_alone)
    _note(made, meant)
    return meant


@lru_cache(maxsize=16)
def _stages(plan: Plan) -> tuple[Stages, Stages]:
    """The rules on whole objects, and those on pods."""
    return Stages(manifest=MANIFEST).only(plan.asks), Stages(repairs=RULES).only(plan.asks)


def _note(made: Evaluation, meant: Admitted) -> None:
    for found in made.findings:
        is_repaired = found.action == "repaired"
        if found.code == legacy_name_elsewhere.CODE and not is_repaired:
            meant.data.append(_names(found.origin))
        for each in found.touched if is_repaired else ():
            places = [place_of(each)]
            if isinstance(each, Rename):
                places.append(each.at.parent / each.name)
            meant.changes += [(_names(at), found.code) for at in places]
    for code, error in made.failed:
        meant.why_not = f"the rule {code} failed: {error!r}; please report it"


def _names(at: Path) -> tuple[str, ...]:
    """The place without the numbers of items, which normal forms have in another order."""
    return tuple(token for token in at if isinstance(token, str))


def _is_conversion(found: Finding) -> bool:
    """Whether it is a conversion, or a default that differs."""
    return found.action == "repaired" or (found.code == changed_default.CODE and found.is_remark)


def _hides_pods(obj: Raw, plan: Plan) -> bool:
    """Whether parts of a custom kind have the shape of pods that the webhook may repair."""
    if templates_of(obj, plan.settings) or is_built_in(obj) or not any(shapes(obj)):
        return False
    return any(each.findings for each in evaluations(copied(obj), plan))
