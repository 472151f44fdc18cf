"""Why a pod can never run here, in words: what is wrong, the numbers, the names, and the cure.

In the order that a person would check: more than the whole cluster has, more than any one node
has, and then whatever keeps the pod from the nodes that have enough.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING

from webhook.core import fit, node_selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.core.node_index import NodeIndex
    from webhook.core.node_selection import Constraint
    from webhook.core.nodesets import NodeSet
    from webhook.core.pod import Pod
    from webhook.core.settings import Settings

_LONGEST = 40  # characters of one name: the whole is to fit in a warning
_NAMED = 2  # values, names or taints of one kind
_VALUES = 256  # of a label: one with more is no model, and nobody could choose among them


def why_never(pod: Pod, amounts: Mapping[str, int], index: NodeIndex, settings: Settings) -> str:
    """The reason and the cure, for a pod that fits on no node."""
    question = _Question(pod, amounts, index, settings)
    return (
        _too_much(question) or _one_constraint(question) or _taints(question) or _together(question)
    )


def model(nodes: NodeSet, index: NodeIndex, settings: Settings) -> str:
    """The GPU model that all these nodes are labelled with; an empty text if they differ."""
    label = index.label(settings.models.key)
    for value in islice(label, _VALUES):
        having = label.having(value)
        if having & nodes:
            return value if having & nodes == nodes else ""
    return ""


def in_words(amounts: Mapping[str, int]) -> str:
    """`8 nvidia.com/gpu and 1 nvidia.com/gpu.shared`."""
    return _listed([f"{amount} {short(name)}" for name, amount in sorted(amounts.items())], "and")


def counted(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def short(name: str, longest: int = _LONGEST) -> str:
    """The name, cut where it would fill the message alone."""
    return name if len(name) <= longest else f"{name[: longest - 2]}.."


def _listed(parts: Sequence[str], word: str) -> str:
    if len(parts) > _NAMED:
        return f"{', '.join(parts[:_NAMED])} {word} {len(parts) - _NAMED} more"
    return f" {word} ".join(parts)


@dataclass(frozen=True)
class _Question:
    pod: Pod
    amounts: Mapping[str, int]
    index: NodeIndex
    settings: Settings

    @cached_property
    def asks(self) -> str:
        return f"asks for {in_words(self.amounts)}"

    @cached_property
    def room(self) -> NodeSet:
        """The nodes that have enough."""
        return fit.enough(self.amounts, self.index)

    @property
    def rooms(self) -> str:
        count = self.index.count(self.room)
        return f"{counted(count)} {'has' if count == 1 else 'have'} enough GPUs"

    @cached_property
    def selected(self) -> NodeSet:
        return fit.selected(self.pod, self.index) & self.room

    @cached_property
    def attracted(self) -> NodeSet:
        return fit.attracted(self.pod, self.index) & self.room


def _too_much(question: _Question) -> str:
    """More than the cluster has, or any one node of it; without a look at the pod's constraints."""
    index, settings = question.index, question.settings
    for name, amount in sorted(question.amounts.items()):
        asks = f"asks for {amount} {short(name)}"
        if name not in index.totals:
            return asks + _not_offered(index)
        there = index.totals[name]
        found = model(index.at_least(name, there.largest), index, settings)
        of_model = f" ({short(found)})" if found else ""
        cure = f"Ask for {there.largest} or split the work."
        if amount > there.total and there.nodes > 1:
            return (
                f"{asks} on one node; the whole cluster has {there.total} on "
                f"{counted(there.nodes)}, the largest{of_model} {there.largest}. {cure}"
            )
        if amount > there.largest:
            one = f"the only GPU node{of_model}"
            largest = one if there.nodes == 1 else f"the largest of {there.nodes} GPU nodes"
            suffix = "" if there.nodes == 1 else of_model
            return f"{asks} on one node; {largest}{suffix} has {there.largest}. {cure}"
    if not question.room:
        both = "both" if len(question.amounts) == 2 else "all of them"  # noqa: PLR2004
        return f"{question.asks} on one node; no node has {both}. Use a pod for each."
    return ""


def _not_offered(index: NodeIndex) -> str:
    if not index.totals:
        return (
            f", and none of {counted(index.size)} here offers a GPU. Does the device plugin run? "
            "`kubectl describe nodes` shows what each node offers."
        )
    offered = _listed([short(name) for name in sorted(index.totals)], "and")
    return f", which no node here offers; the cluster has {offered}. Ask for what it has."


def _constraints(pod: Pod, index: NodeIndex) -> Iterator[Constraint]:
    """What must be true of the node, one by one. Of several terms only one must, so they are none.

    nodeSelector first: it is what most people write, and read.
    """
    yield from node_selection.selector(pod, index)
    terms = node_selection.terms(pod)
    if terms is not None and len(terms) == 1:
        yield from node_selection.requirements(terms[0], index)


def _one_constraint(question: _Question) -> str:
    index = question.index
    for each in _constraints(question.pod, index):
        if each.nodes & question.room:
            continue
        words = short(each.words, 2 * _LONGEST)
        cure = _other_values(each, question)
        if not each.nodes:
            return f"{question.asks}, but no node matches {words}. {cure}"
        has = _at_most(question.amounts, each.nodes, index)
        nodes = counted(index.count(each.nodes))
        return f"{question.asks}; {words} allows {nodes}, {has}. {cure}"
    return ""


def _at_most(amounts: Mapping[str, int], nodes: NodeSet, index: NodeIndex) -> str:
    """What these nodes have of that which they lack."""
    for name, amount in sorted(amounts.items()):
        if not index.at_least(name, amount) & nodes:
            most = fit.most_on_one(nodes, amount, partial(index.at_least, name))
            what = "" if len(amounts) == 1 else f" {short(name)}"
            return f"with at most {most}{what}" if most else f"with no{what or 'ne'}"
    return "none of them with all"


def _other_values(each: Constraint, question: _Question) -> str:
    """What the constraint would need to be for the nodes that have enough."""
    if not each.key:
        return f"Change it: {question.rooms}."
    label = question.index.label(each.key)
    values = [v for v in sorted(islice(label, _VALUES)) if label.having(v) & question.room]
    if not values:
        return f"Remove it: {question.rooms}, without that label."
    return f"Write {_listed([short(v) for v in values], 'or')}: {question.rooms}."


def _taints(question: _Question) -> str:
    """Taints: of all nodes that have enough, or of those among them that the pod could choose."""
    pod, index, room = question.pod, question.index, question.room
    tolerated = node_selection.tolerated(pod, index, question.settings.capacity)
    for nodes, which in (
        (room, "with enough"),
        (question.selected & question.attracted, "with enough that it selects"),
    ):
        if nodes and not nodes & tolerated:
            taints = _listed([short(taint) for taint in _keeping_away(question, nodes)], "and")
            count = index.count(nodes)
            them = "the only node" if count == 1 else f"the {count} nodes"
            return (
                f"{question.asks}; {them} {which} {'is' if count == 1 else 'are'} tainted {taints},"
                " not tolerated by the pod. Add a toleration if it is meant to run there."
            )
    return ""


def _keeping_away(question: _Question, nodes: NodeSet) -> list[str]:
    """The taint that keeps the pod away from all these nodes, else all, those of most nodes first.

    A node may have several, and one that all of them have is the one to name.
    """
    index, counts = question.index, Counter[str]()
    tolerations, capacity = question.pod.tolerations(), question.settings.capacity
    for taints, carriers in index.taint_sets:
        here = index.count(carriers & nodes)
        for taint in node_selection.untolerated(taints, tolerations, capacity):
            counts[str(taint)] += here
    most = sorted((-count, taint) for taint, count in counts.items() if count)
    whole = [taint for count, taint in most if -count == index.count(nodes)]
    return whole or [taint for _, taint in most]


def _together(question: _Question) -> str:
    """What is left: no entry or requirement alone leaves no node, but all of them together do."""
    index = question.index
    if not question.selected:
        words = f"none has all {len(question.pod.node_selector)} labels of nodeSelector"
    elif not question.attracted:
        words = "the required node affinity allows none"
    else:
        words = (
            f"nodeSelector allows {index.count(question.selected)} and the required node affinity "
            f"{index.count(question.attracted)}, but none is allowed by both"
        )
    have = f"of {counted(index.count(question.room))} with enough"
    return f"{question.asks}; {have}, {words}. Change them."
