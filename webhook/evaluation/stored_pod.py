"""Whether the spec of a stored pod has the same meaning as the legacy words of its author.

The cluster and the settings may have changed since the repair. So the words are translated for the
cluster that the stored pod shows: a cluster with nodes of the models that the pod names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from webhook.capacity import models
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.capacity.whole_gpus import is_exclusion
from webhook.core.legacy_names import BETA_NODE_LABELS
from webhook.core.settings import MODEL_PROFILES, Settings
from webhook.kube import quantity
from webhook.kube.canonical import canonical
from webhook.kube.pod import Pod, Raw, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.core.rule import Context
    from webhook.evaluation.pod_fields import Key, PodFields

    About = Mapping[str, Mapping[str, set[str]]]  # label -> operator -> values
    Requirement = tuple[str, str, frozenset[str]]  # key, operator, values
    Terms = list[tuple[Any, frozenset[Requirement]]]  # each with its weight
    Split = tuple[set[Requirement], dict[tuple[str, str], frozenset[str]]]

_MOST_VALUES = 256  # of a label
_ANY: tuple[None, frozenset[Requirement]] = (None, frozenset())  # a term without requirements
PLACEMENT = ("nodeSelector", "affinity")


def as_it_was(cx: Context, stored: Pod) -> Context:
    """The context in which the stored pod was repaired, as far as the pod shows it.

    It is `cx` itself if the pod does not show another.
    """
    settings = cx.settings
    named = {name for each in stored.containers for name in each.gpus(settings)}
    if len(named) == 1 and settings.gpu_resource not in named:
        settings = replace(settings, gpu_resource=named.pop())
    about = _about(stored)
    key = _label(about, settings)
    if key != settings.models.key:
        settings = replace(settings, models=replace(settings.models, label=key))
    known = cx.inventory if cx.inventory is not None else Inventory()
    taints, gpus = tuple(known.taints), {settings.gpu_resource: 1}
    classes = tuple(
        NodeClass({label: value}, taints, gpus)
        for label, values in _on_nodes(about, key, settings.models.legacy_label)
        for value in values[:_MOST_VALUES]
    )
    if classes:
        cx = replace(cx, inventory=replace(known, classes=classes, published=None))
    return cx if settings is cx.settings else replace(cx, settings=settings)


def _on_nodes(about: About, key: str, legacy: str) -> Iterator[tuple[str, list[str]]]:
    """The labels that nodes had, each with its values, as far as the pod shows them.

    A repair selects the legacy label only for values that nodes have. What is excluded is excluded
    under both labels in any case: its models are read from today's, unless the legacy label
    selects them.
    """
    carried, today = _selected(about.get(legacy, {})), _selected(about.get(key, {}))
    excluded = sorted(frozenset().union(*about.get(key, {}).values()).difference(today))
    others = {*map(models.model_of, carried)}
    yield legacy, carried
    yield key, today + [each for each in excluded if models.model_of(each) not in others]
    for label in chain.from_iterable(BETA_NODE_LABELS.items()):
        if label in about:
            yield label, sorted(frozenset().union(*about[label].values())) or [""]


def _selected(asked: Mapping[str, set[str]]) -> list[str]:
    """The values that are selected; an empty one, which is no model, for a label with any value."""
    return sorted(asked.get("In", ())) or [""] * ("Exists" in asked)


def agrees(
    made: Pod, stored: Pod, at: Iterable[Key], versions: tuple[PodFields, PodFields], cx: Context
) -> bool:
    """Whether the translated words have the meaning of the stored pod, at these fields.

    The stored pod may name fewer spellings of a model, and tolerate more taints of GPU nodes.
    """
    now, then = (each.values for each in versions)
    for key in at:
        if key[1] in PLACEMENT and key[2:3] not in (("podAffinity",), ("podAntiAffinity",)):
            continue
        if key == ("spec", "tolerations"):
            if not _tolerated(now.get(key), then.get(key), cx.settings):
                return False
        elif _said(key, now, cx.settings) != _said(key, then, cx.settings):
            return False
    keys = model_labels(cx.settings)
    selectors = _selector(made), _selector(stored)
    return _says_no_more(
        _required(made) or [_ANY], _required(stored) or [_ANY], keys, selectors
    ) and _says_no_more(_preferred(made), _preferred(stored), keys)


def _said(key: Key, values: Mapping[Key, Any], settings: Settings) -> Any:
    """The meaning of a value here. The API server copies a limit to a missing request.

    An amount of 0 GPUs has no meaning: next to another amount it is from LimitRanger
    (legacy_resource.py).
    """
    if key[3:4] != ("resources",):
        return values.get(key)
    value = values.get(key, values.get((*key[:4], "limits", *key[5:])))
    of_gpus = settings.names_gpus(key[-1])
    return None if of_gpus and quantity.parse(value) == 0 else value


def model_labels(settings: Settings) -> frozenset[str]:
    """The node labels that have ever named models, for any profile."""
    return frozenset({settings.models.key, *(each.label for each in MODEL_PROFILES.values())})


def _label(about: About, settings: Settings) -> str:
    """Today's label under which the pod names models, first that of the settings."""
    first = settings.models.key
    keys = (first, *sorted(model_labels(settings) - {first}))
    return next((key for key in keys if key in about), first)


def _about(pod: Pod) -> About:
    """The labels that the pod names, each with its operators and their values."""
    found: dict[str, dict[str, set[str]]] = {}
    for _, term in ((None, _selector(pod)), *_required(pod), *_preferred(pod)):
        for key, operator, values in term:
            found.setdefault(key, {}).setdefault(operator, set()).update(values)
    return found


def _selector(pod: Pod) -> frozenset[Requirement]:
    return frozenset(
        (key, "In", frozenset({str(value)})) for key, value in pod.node_selector.items()
    )


def _required(pod: Pod) -> Terms:
    return [(None, _term(term)) for _, term in pod.required_terms()]


def _preferred(pod: Pod) -> Terms:
    return [
        (each.get("weight"), _term(as_map(each.get("preference")))) for _, each in pod.preferences()
    ]


def _term(term: Raw) -> frozenset[Requirement]:
    return frozenset(
        (f"{prefix}{each.get('key')}", str(each.get("operator")), _texts(each.get("values")))
        for prefix, listed in (("", "matchExpressions"), ("field ", "matchFields"))
        for _, each in as_items(term.get(listed))
    )


def _texts(values: object) -> frozenset[str]:
    return frozenset(map(str, values)) if isinstance(values, list) else frozenset()


def _says_no_more(
    made: Terms,
    stored: Terms,
    labels: frozenset[str],
    beside: tuple[frozenset[Requirement], frozenset[Requirement]] = (frozenset(), frozenset()),
) -> bool:
    """Whether the terms are equal, except for models that the stored terms do not name.

    `beside` are the other requirements of each term. Requirements that both sides have are left
    out: otherwise they would be compared for each term. The requirements of one side must be in the
    terms of the other.
    """
    both = beside[0] & beside[1]
    only, only_then = beside[0] - both, beside[1] - both
    return len(made) == len(stored) and all(
        weight == other
        and _covers(_parted(only | now - both, labels), _parted(only_then | then - both, labels))
        for (weight, now), (other, then) in zip(made, stored, strict=True)
    )


def _parted(term: frozenset[Requirement], labels: frozenset[str]) -> Split:
    """The requirements on other labels; and the models, by label and operator."""
    models: dict[tuple[str, str], frozenset[str]] = {}
    others = set()
    for key, operator, values in term:
        if is_exclusion(key, operator, values):
            # On nodes that offer shares of GPUs: from an earlier repair, not from the author.
            continue
        if key in labels and operator == "In":  # all of them must hold
            models[key, operator] = models.get((key, operator), values) & values
        elif key in labels:
            models[key, operator] = models.get((key, operator), values) | values
        else:
            others.add((key, operator, values))
    return others, models


def _covers(now: Split, then: Split) -> bool:
    return (
        now[0] == then[0]
        and now[1].keys() == then[1].keys()
        and all(_names_as_many(now[1][each], values) for each, values in then[1].items())
    )


def _names_as_many(now: frozenset[str], then: frozenset[str]) -> bool:
    """Whether all stored values are still wanted, and each wanted model is stored."""
    return now >= then and set(map(models.model_of, now)) == set(map(models.model_of, then))


def _tolerated(made: object, stored: object, settings: Settings) -> bool:
    """Whether the stored pod has all present tolerations, and else only those of GPU taints."""
    now, then = (
        Counter(canonical(each) for _, each in as_items(listed)) for listed in (made, stored)
    )
    more = then - now
    return not now - then and all(
        canonical(each) not in more or is_of_gpus(each, settings) for _, each in as_items(stored)
    )


def is_of_gpus(toleration: Raw, settings: Settings) -> bool:
    """Whether missing-toleration may have added this toleration."""
    taint = tuple(str(toleration.get(each, "")) for each in ("key", "value", "effect"))
    return settings.is_gpu(taint[0]) or any(
        taint == (each.key, each.value, each.effect) for each in settings.taints
    )
