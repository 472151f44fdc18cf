"""Whether a repaired template that is stored may stay as it is, by the nodes that are there.

The same words may be translated in another way today: nodes joined, or got and lost a label. To
write that would roll the workload out. So it is done only where the stored template lets its pods
run where its author excluded them, or where it has lost the nodes that were selected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.capacity import node_selection
from webhook.capacity.whole_gpus import is_exclusion
from webhook.kube.pod import Pod, Raw, as_items

if TYPE_CHECKING:
    from webhook.capacity.node_index import NodeIndex
    from webhook.capacity.node_sets import NodeSet
    from webhook.capacity.nodes import Inventory
    from webhook.core.rule import Context
    from webhook.core.settings import Models, Settings


_SELECTING = ("In", "Exists")
_EXCLUDING = ("NotIn", "DoesNotExist")


def is_still_right(made: Pod, stored: Pod, cx: Context) -> bool:
    """Whether a template that was repaired from the same words may stay as it is.

    Not if the settings name other resources or another label now.
    """
    settings = cx.settings
    if _gpu_names(made, settings) != _gpu_names(stored, settings):
        return False
    pairs = _asked(made, stored, settings.models), _wished(made, stored, settings.models)
    return all(now.ways <= then.ways for now, then in pairs) and has_its_nodes(made, stored, cx)


def has_its_nodes(made: Pod, stored: Pod, cx: Context) -> bool:
    """Whether the stored template selects nodes as well as the one that is made of it now."""
    if cx.inventory is None:
        return True
    models, index = cx.settings.models, cx.inventory.index
    fitting = _fitting(made, models, index), _fitting(stored, models, index)
    now, then = _asked(made, stored, models)
    joining = index.open_labels & ~index.may_come
    if not then.nodes(index) & fitting[1] & joining and fits_no_node(made, stored, cx):
        return False  # what nodes have lost is remembered for hours, and so are removed nodes
    return _is_as_good(now, then, fitting, index, is_required=True) and _is_as_good(
        *_wished(made, stored, models), fitting, index, is_required=False
    )


def fits_no_node(made: Pod, stored: Pod, cx: Context) -> bool:
    """Whether existing nodes fit the template that is made now, but none fits the stored one.

    By the labels that the nodes show now: none that they had or may get counts.
    """
    return cx.inventory is not None and made.once(_fits_none, stored, cx.settings, cx.inventory)


def _fits_none(made: Pod, stored: Pod, settings: Settings, inventory: Inventory) -> bool:
    models, index = settings.models, inventory.index.as_shown
    now, then = (
        terms.nodes(index) & _fitting(pod, models, index) & ~index.may_come
        for pod, terms in zip((made, stored), _asked(made, stored, models), strict=True)
    )
    return bool(now) and not then


def _asked(made: Pod, stored: Pod, models: Models) -> tuple[_Terms, _Terms]:
    return _Terms(_required(made, models), models), _Terms(_required(stored, models), models)


def _wished(made: Pod, stored: Pod, models: Models) -> tuple[_Terms, _Terms]:
    return _Terms(_preferred(made), models), _Terms(_preferred(stored), models)


def _fitting(pod: Pod, models: Models, index: NodeIndex) -> NodeSet:
    """The nodes that have the other labels of its nodeSelector."""
    fitting, of_models = index.everything, _labels(models)
    for each in node_selection.selector(pod, index):
        if each.key not in of_models:
            fitting &= each.nodes
        if not fitting:
            break  # a tenant may write very many labels
    return fitting


def _is_as_good(
    now: _Terms,
    then: _Terms,
    fitting: tuple[NodeSet, NodeSet],
    index: NodeIndex,
    *,
    is_required: bool,
) -> bool:
    """Whether the terms of then allow no node that is excluded now, and still have their models.

    They need not allow all current nodes: some may have joined under another spelling. But terms
    that are required must allow one, unless those of now allow none, either.
    """
    allowed, before = now.nodes(index) & fitting[0], then.nodes(index) & fitting[1]
    if is_required and allowed and not before:
        return False
    if before & now.without_exclusions().nodes(index) & ~allowed:
        return False
    return not allowed & ~before or (then.has_models(index) and not then.has_lost_models(index))


class _Requirement(NamedTuple):
    """One on the models of a node, by the legacy label or by today's."""

    is_legacy: bool
    operator: str
    values: frozenset[str]

    def nodes(self, models: Models, index: NodeIndex) -> NodeSet:
        """The nodes that it selects, if it selects any."""
        table = index.label(models.legacy_label if self.is_legacy else models.key)
        return table.present if self.operator == "Exists" else table.having_any(self.values)


class _Terms:
    """Node selector terms, of which one must hold."""

    def __init__(self, raw: list[Raw], models: Models) -> None:
        self._raw, self._models = raw, models
        self._of_models = [[*_of_models(each, models)] for each in raw]

    @property
    def ways(self) -> set[bool]:
        """Whether models are selected, and whether they are excluded.

        The terms for nodes that carry the legacy label leave out what today's label selects, so
        that no node is counted twice: these exclude nothing for the author. What the author
        excludes is excluded under the legacy label, too.
        """
        return {
            each.operator in _SELECTING
            for term in self._of_models
            for each in term
            if each.is_legacy or each.operator in _SELECTING or not _legacy(term)
        }

    def without_exclusions(self) -> _Terms:
        """The same without the exclusions of models."""
        return _Terms([_without_exclusions(each, self._models) for each in self._raw], self._models)

    def nodes(self, index: NodeIndex) -> NodeSet:
        found = 0
        for each in self._raw:
            is_empty = not (as_items(each.get("matchExpressions")) or each.get("matchFields"))
            found |= index.everything if is_empty else node_selection.matching(each, index)
        return found

    def has_models(self, index: NodeIndex) -> bool:
        """Whether a node has one of the models that are selected."""
        return any(
            each.nodes(self._models, index)
            for term in self._of_models
            for each in term
            if each.operator in _SELECTING
        )

    def has_lost_models(self, index: NodeIndex) -> bool:
        """Whether a model is selected by the legacy label alone, which no node has any more."""
        selected = {
            each.values
            for term in self._of_models
            for each in term
            if not each.is_legacy and each.operator in _SELECTING
        }
        return any(
            not any(each.nodes(self._models, index) for each in _legacy(term))
            for term in self._of_models
            if _legacy(term)
            if selected.isdisjoint(
                each.values for each in term if not each.is_legacy and each.operator in _EXCLUDING
            )
        )


def _legacy(term: list[_Requirement]) -> list[_Requirement]:
    """What a term selects by the legacy label."""
    return [each for each in term if each.is_legacy and each.operator in _SELECTING]


def _of_models(term: Raw, models: Models) -> list[_Requirement]:
    """The requirements of a term on models, without those of repairs on shares of GPUs."""
    found = []
    for _, each in as_items(term.get("matchExpressions")):
        key, operator = each.get("key"), str(each.get("operator"))
        values = frozenset(node_selection.values_of(each))
        if key in _labels(models) and not is_exclusion(str(key), operator, values):
            found.append(_Requirement(key == models.legacy_label, operator, values))
    return found


def _without_exclusions(term: Raw, models: Models) -> Raw:
    kept = [
        each
        for _, each in as_items(term.get("matchExpressions"))
        if each.get("operator") not in _EXCLUDING
        or not _of_models({"matchExpressions": [each]}, models)
    ]
    return {**term, "matchExpressions": kept}


def _required(pod: Pod, models: Models) -> list[Raw]:
    """The terms of required node affinity, with the models of nodeSelector in each."""
    selector = pod.node_selector
    listed = [
        {"key": key, "operator": "In", "values": [str(selector[key])]}
        for key in _labels(models)
        if selector.get(key) is not None
    ]
    terms = node_selection.terms(pod)
    return [
        {
            **each,
            "matchExpressions": [*listed, *(e for _, e in as_items(each.get("matchExpressions")))],
        }
        for each in ([{}] if terms is None else terms)
    ]


def _preferred(pod: Pod) -> list[Raw]:
    return [term for _, term in pod.preferred_terms()]


def _labels(models: Models) -> tuple[str, ...]:
    return tuple(dict.fromkeys((models.key, models.legacy_label)))


def _gpu_names(pod: Pod, settings: Settings) -> set[str]:
    return {name for each in pod.containers for name in each.gpus(settings)}
