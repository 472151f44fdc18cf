"""Objects in; what the webhook makes of each out, by the opt-outs of the namespaces among them.

A folder, chart or kustomization may be of another cluster than the next one, so a namespace counts
for what is beside it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from webhook.formats.opt_outs import is_left_alone
from webhook.kube.pod import as_map
from webhook.verifying.admitted import Admitted, admitted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.files.results import Plan
    from webhook.verifying.read_side import Found


@dataclass(frozen=True, slots=True)
class OptOuts:
    """The namespaces that objects create, and those of them that opted out, by what is beside."""

    made: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    out: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, found: Iterable[Found]) -> OptOuts:
        opt_outs = cls()
        for each in found:
            if each.object.get("kind") == "Namespace":
                name = str(as_map(each.object.get("metadata")).get("name"))
                opt_outs.made[each.beside].add(name)
                if is_left_alone(each.object):
                    opt_outs.out[each.beside].add(name)
        return opt_outs

    def admitted(self, each: Found, plan: Plan) -> Admitted:
        """What becomes of the object; not known if only a namespace elsewhere decides that."""
        meant = admitted(each.object, _with(plan, self.out.get(each.beside, set())))
        namespace = str(as_map(each.object.get("metadata")).get("namespace") or "default")
        is_out = any(namespace in names for names in self.out.values())
        if not is_out or namespace in self.made.get(each.beside, ()):
            return meant
        if admitted(each.object, _with(plan, {namespace})).object != meant.object:
            meant.why_not = meant.why_not or (
                f"its namespace {namespace} opted out in another folder, and whether it is the "
                "same one is not known: compare the folders one by one"
            )
        return meant


def _with(plan: Plan, names: set[str]) -> Plan:
    said = replace(plan.opted_out, namespaces=plan.opted_out.namespaces | names)
    return replace(plan, opted_out=said)
