"""Explains why a pod can never run here: the cause, the numbers, the names, and what to change.

The order is that of a user who checks: more than the whole cluster has, more than any one node has,
and then what keeps the pod from the nodes that have enough.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING

from webhook.capacity import fit, models, node_selection
from webhook.core.settings import Settings, Taint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.capacity.node_index import NodeIndex
    from webhook.capacity.node_selection import Constraint
    from webhook.capacity.node_sets import NodeSet
    from webhook.kube.pod import Pod

LONGEST = 230  # characters: an API server cuts a warning at 256
_LENGTHS = (48, 32, 20)  # of one name; tried in turn until the message is short enough
_SHORTEST = 12  # no message is longer with this length
_NAMED = 2  # values, names or taints of one kind
_NODE_POOL = "karpenter.sh/nodepool"  # the label of nodes that Karpenter made
_VALUES = 256  # of a label or taint: one with more is no model, and no choice for a user


def why_never(pod: Pod, amounts: Mapping[str, int], index: NodeIndex, settings: Settings) -> str:
    """The reason and advice, for a pod that fits on no node."""
    for longest in _LENGTHS:
        message = _Reason(pod, amounts, index, settings, longest).message()
        if len(message) <= LONGEST:
            return message
    return _Reason(pod, amounts, index, settings, _SHORTEST).message()


def why_unsure(amounts: Mapping[str, int], hints: Sequence[str]) -> str:
    """For a pod that fits on no node, but may fit on one that an autoscaler adds."""
    return (
        f"requests {in_words(amounts)}, and fits on no node of this cluster. "
        f"It stays Pending unless {_listed([short(each) for each in hints], 'or')} adds a node "
        "that fits: of what it can add, not enough is known."
    )


def why_unknown(amounts: Mapping[str, int], refused: Sequence[str]) -> str:
    """For a pod that fits on no node, where something may not be read that may bring others."""
    return (
        f"requests {in_words(amounts)}, and fits on no node that is known. It may run all the "
        f"same: the webhook's watcher may not list {_listed(refused)}, so it does not know all "
        "that this cluster can offer."
    )


def why_bound(amounts: Mapping[str, int], selector: Mapping[str, str]) -> str:
    """For the pods of a template that fit only without the node selector of their namespace."""
    labels = _listed([short(f"{key}={value}") for key, value in sorted(selector.items())])
    return (
        f"requests {in_words(amounts)}, and no node fits that the node selector of the namespace "
        f"allows ({labels}). Ask for what those nodes have, or use another namespace."
    )


def or_adds(hints: Sequence[str]) -> str:
    """What else may help a pending pod; empty if no autoscaler may."""
    if not hints:
        return ""
    return f", or {_listed([short(each) for each in hints], 'or')} adds a node that fits"


def in_words(amounts: Mapping[str, int], longest: int = _LENGTHS[0]) -> str:
    """`8 nvidia.com/gpu and 1 nvidia.com/gpu.shared`; without amounts that overflow."""
    if not amounts:
        return "GPUs"
    return _listed([short(f"{amount} {name}", longest) for name, amount in sorted(amounts.items())])


def counted(count: int) -> str:
    """`1 node`, `2 nodes`."""
    return "1 node" if count == 1 else f"{count} nodes"


def short(name: str, longest: int = _LENGTHS[0]) -> str:
    """The name, shortened if it would fill the message; the API server rejects odd characters.

    Objects that `review` reads may have them.
    """
    shown = name if len(name) <= longest else f"{name[: longest - 2]}.."
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() else "?" for each in shown)


def _listed(parts: Sequence[str], word: str = "and") -> str:
    if len(parts) > _NAMED:
        return f"{', '.join(parts[:_NAMED])} {word} {len(parts) - _NAMED} more"
    return f" {word} ".join(parts)


def _few(values: Iterable[str]) -> list[str]:
    """The values, if they are few enough for a user to choose from."""
    found = list(islice(values, _VALUES + 1))
    return found if len(found) <= _VALUES else []


@dataclass(frozen=True)
class _Reason:
    pod: Pod
    amounts: Mapping[str, int]
    index: NodeIndex
    settings: Settings
    longest: int  # characters of a name

    def message(self) -> str:
        return (
            self._too_much()
            or self._one_constraint()
            or self._taints()
            or self._constraints_together()
        )

    def _short(self, name: str) -> str:
        return short(name, self.longest)

    def _asks(self, name: str) -> str:
        return f"requests {self._short(f'{self.amounts[name]} {name}')}"

    @cached_property
    def _asks_for_all(self) -> str:
        return f"requests {in_words(self.amounts, self.longest)}"

    @cached_property
    def _room(self) -> NodeSet:
        """The nodes that have enough."""
        return fit.enough(self.amounts, self.index)

    @property
    def _have_room(self) -> str:
        count = self.index.count(self._there(self._room))
        if count:
            return f"{counted(count)} {'has' if count == 1 else 'have'} enough GPUs"
        pools = self._pools(self._room)
        if pools:
            return f"{pools} may add a node with enough GPUs"
        return "nodes that may come have enough GPUs"

    def _there(self, nodes: NodeSet) -> NodeSet:
        """The existing nodes among these."""
        return nodes & ~self.index.may_come

    def _pools(self, nodes: NodeSet) -> str:
        """The sources of such nodes: the names of the autoscalers' pools."""
        names = {words for words, hinted in self.index.hinted if hinted & nodes}
        certain = nodes & self.index.grows & ~self.index.only_hinted
        pools = self.index.label(_NODE_POOL)
        named = (pool for pool in _few(pools) if pools.having(pool) & certain)
        names.update(f"NodePool {pool} (Karpenter)" for pool in named)
        return _listed([self._short(each) for each in sorted(names)], "or")

    def _nodes(self, nodes: NodeSet) -> str:
        """`2 nodes`, or what may add such nodes if none exists now."""
        count = self.index.count(self._there(nodes))
        if count or not nodes:
            return counted(count)
        pools = self._pools(nodes)
        return f"what {pools} may add" if pools else "nodes that may come"

    @cached_property
    def _selected(self) -> NodeSet:
        return fit.selected(self.pod, self.index) & self._room

    @cached_property
    def _attracted(self) -> NodeSet:
        return fit.attracted(self.pod, self.index) & self._room

    def _too_much(self) -> str:
        """The reason if no node has enough, and none may be added that has."""
        if self._room:
            return ""
        return self._not_offered() or self._more_than_all_nodes() or self._more_than_one_node()

    def _not_offered(self) -> str:
        name = next((each for each in sorted(self.amounts) if each not in self.index.totals), None)
        if name is None:
            return ""
        if not self.index.totals:
            return (
                f"{self._asks(name)}, and no node here offers a GPU "
                f"({counted(self.index.count(self._there(self.index.everything)))}). "
                "Does the device plugin run? `kubectl describe nodes` shows what nodes offer."
            )
        offered = _listed([self._short(each) for each in sorted(self.index.totals)])
        return (
            f"{self._asks(name)}, which no node here offers; the cluster has {offered}. "
            "Ask for what it has."
        )

    def _more_than_all_nodes(self) -> str:
        for name, amount in sorted(self.amounts.items()):
            there = self.index.totals[name]
            largest = self._there(self.index.at_least(name, there.largest))
            if largest and amount > there.total and there.nodes > 1:
                return (
                    f"{self._asks(name)} on one node; the whole cluster has {there.total} on "
                    f"{there.nodes} nodes, the largest{self._model(name)} {there.largest}. "
                    f"Ask for {there.largest} or split the work."
                )
        return ""

    def _more_than_one_node(self) -> str:
        for name, amount in sorted(self.amounts.items()):
            there = self.index.totals[name]
            if amount > there.largest:
                return (
                    f"{self._asks(name)} on one node; the {self._largest(name)} "
                    f"{there.largest}. Ask for {there.largest} or split the work."
                )
        all_of_it = "both" if len(self.amounts) == _NAMED else "all of them"
        return f"{self._asks_for_all} on one node; none has {all_of_it}. Use a pod for each."

    def _largest(self, name: str) -> str:
        """`largest of 4 GPU nodes (Tesla-A100) has`."""
        count, model = self.index.totals[name].nodes, self._model(name)
        nodes = self.index.at_least(name, self.index.totals[name].largest)
        if self._there(nodes):
            which = f"largest of {count} GPU nodes" if count > 1 else "only GPU node"
            return f"{which}{model} has"
        pools = self._pools(nodes)
        if pools:
            return f"largest node that {pools} may add{model} has"
        return f"largest node {'that may come' if count else 'of the last hours'}{model} " + (
            "has" if count else "had"
        )

    def _model(self, name: str) -> str:
        """The GPU model of the largest nodes, in brackets, if all of them are labelled with it."""
        nodes = self.index.at_least(name, self.index.totals[name].largest)
        label = self.index.label(self.settings.models.key)
        for value in _few(label):
            if nodes & label.having(value) == nodes:
                return f" ({self._short(value)})"
        return ""

    def _constraints(self) -> Iterator[Constraint]:
        """The requirements on the node, one by one. Of several terms only one must match.

        nodeSelector comes first: most users write and read that one.
        """
        yield from node_selection.selector(self.pod, self.index)
        terms = node_selection.terms(self.pod)
        if terms is not None and len(terms) == 1:
            yield from node_selection.requirements(terms[0], self.index)

    def _one_constraint(self) -> str:
        """The one requirement that excludes every node that has enough."""
        for each in self._constraints():
            if each.nodes & self._room:
                continue
            words = short(each.words, 2 * self.longest)
            if not each.nodes:
                what = f", but no node matches {words}"
            else:
                most = self._at_most(self._there(each.nodes) or each.nodes)
                what = f"; {words} allows {self._nodes(each.nodes)}, {most}"
            return f"{self._asks_for_all}{what}. {self._other_values(each)}"
        return ""

    def _at_most(self, nodes: NodeSet) -> str:
        """The most of the missing resources that these nodes have."""
        for name, amount in sorted(self.amounts.items()):
            if not self.index.at_least(name, amount) & nodes:
                most = fit.most_on_one(nodes, amount, partial(self.index.at_least, name))
                what = f"at most {most}" if most else "none"
                return f"with {what} of {self._short(name)}"
        return "none with all of it"

    def _other_values(self, each: Constraint) -> str:
        """What the requirement would have to be for the nodes that have enough."""
        if each.parts:
            return (
                f"{self._have_room}, but as parts of GPUs: ask the administrator to set "
                f"models.{each.parts} to true, or select other nodes."
            )
        if not each.key:
            return f"Change it: {self._have_room}."
        if today := self._of_today(each):
            key, values = self.settings.models.key, [self._short(v) for v in today]
            return f"Write {key}: {_listed(values, 'or')}. Then {self._have_room}."
        label = self.index.label(each.key)
        values = [v for v in sorted(_few(label)) if label.having(v) & self._room]
        if label.present & self._room and not values:
            return f"Change it: {self._have_room}."
        if not values:
            return f"Remove it: {self._have_room}, without that label."
        return f"Write {_listed([self._short(v) for v in values], 'or')}: {self._have_room}."

    def _of_today(self, each: Constraint) -> list[str]:
        """Today's label values, on nodes that have enough, of models under the legacy label."""
        names = self.settings.models
        if each.key != names.legacy_label:
            return []
        label = self.index.label(names.key)
        found = {v for legacy in each.values for v in models.match(legacy, names, None).values}
        return sorted(v for v in found.union(each.values) if label.having(v) & self._room)

    def _taints(self) -> str:
        """The taints of all nodes that have enough, or of those that the pod could choose."""
        tolerated = node_selection.tolerated(self.pod, self.index, self.settings.capacity)
        chosen = self._selected & self._attracted
        for nodes, which in ((self._room, ""), (chosen, " that it selects")):
            if nodes and not nodes & tolerated:
                nearest = self._there(nodes) or nodes
                taints = _listed([self._short(taint) for taint in self._keeping_away(nearest)])
                return (
                    f"{self._asks_for_all}; {self._with_enough(nodes, which)} tainted {taints}. "
                    "Add a toleration if the pod is meant to run there."
                )
        return ""

    def _with_enough(self, nodes: NodeSet, which: str) -> str:
        """`the only node with enough is`; these nodes may not exist now."""
        count = self.index.count(self._there(nodes))
        if count:
            them = "the only node" if count == 1 else f"the {count} nodes"
            return f"{them} with enough{which} {'is' if count == 1 else 'are'}"
        pools = self._pools(nodes)
        if pools:
            return f"only {pools} may add a node with enough{which},"
        return f"only nodes that may come have enough{which},"

    def _keeping_away(self, nodes: NodeSet) -> list[str]:
        """The taints that keep the pod from all of these nodes at once, else all, worst first.

        A node may have several; a taint that all of them have is named.
        """
        counts = Counter[str]()
        kept_away = node_selection.kept_away(self.pod, self.index, self.settings.capacity)
        for at, away in kept_away:
            if not away & nodes:
                continue
            (key, effect, _), tainted = at, self.index.tainted[at]
            values = _few(tainted)
            for value in values:
                here = tainted.having(value) & away & nodes
                counts[str(Taint(key, value, effect))] += self.index.count(here)
            if not values:
                counts[str(Taint(key, effect=effect))] += self.index.count(away & nodes)
        most = sorted((-count, taint) for taint, count in counts.items() if count)
        whole = [taint for count, taint in most if -count == self.index.count(nodes)]
        return whole or [taint for _, taint in most]

    def _constraints_together(self) -> str:
        """The last case: no single requirement excludes all nodes, but all together do."""
        if not self._selected:
            words = (
                f"none has all {len(self.pod.node_selector)} labels of nodeSelector. Change them"
            )
        elif not self._attracted:
            words = "the required node affinity allows none. Change it"
        else:
            words = (
                "nodeSelector allows some and the required node affinity others, but both "
                "together none. Change one"
            )
        have = f"of {self._nodes(self._room)} with enough"
        return f"{self._asks_for_all}; {have}, {words}."
