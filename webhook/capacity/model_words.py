"""What users read about labels of GPU models: what becomes of them, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity.model_terms import Change, Fate, TermChange
from webhook.kube.affinity import TOO_MANY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.core.rule import Context

REPLACED = "no node carries the label {} any more; write {}"
BOTH = "nodes of these models may lack the label {}; write {} as well"
_MAY_BE = "nothing is known of the nodes, which may still carry the label {}; write {} as well"
DROPPED = "{}, and nothing here stands for its value: delete the term"
_ADVICE = "name the model as the nodes do"


def message_of(made: TermChange, cx: Context) -> str:
    """What is wrong with a term, and what to write."""
    changes = made.requirements.values()
    texts = [REPLACED.format(change.was, change.key) for change in changes if change.was]
    of_models = [change for change in changes if change.key and not change.was]
    if of_models:
        today = [value for change in of_models for value in change.values or ()]
        models = cx.settings.models
        text = both(cx).format(models.legacy_label, models.key)
        if not is_of_some(made):
            text = f"{no_node(cx)}; write {models.key}"
        texts.insert(0, f"{text}{f': {listed(today)}' if today else ''}")
    if not texts:  # nodes carry the label and the value
        return "a value that can be no label value is dropped; delete it"
    return f"{texts[0]} (and {len(texts) - 1} more)" if len(texts) > 1 else texts[0]


def no_node(cx: Context) -> str:
    """That no node has the model under the old label, as nodes may still have others."""
    label, nodes = cx.settings.models.legacy_label, cx.inventory
    if nodes is not None and nodes.index.label(label).present:
        return f"no GPU node carries the label {label} with this value"
    return f"no node carries the label {label} any more"


def both(cx: Context) -> str:
    """The text where nodes may still carry the old label."""
    return _MAY_BE if cx.inventory is None else BOTH


def is_of_some(made: TermChange) -> bool:
    """Whether the old label stays for nodes that still carry it."""
    return any(change.old is not None for change in made.requirements.values())


def listed(values: Sequence[str]) -> str:
    """The first values."""
    return ", ".join(values[:3]) + (", ..." if len(values) > 3 else "")  # noqa: PLR2004


def notes(made: TermChange, *, stays: bool = False) -> Iterator[str]:
    """The messages for a term, first why the pod waits; `stays`: nothing is changed."""
    changes = sorted(made.requirements.values(), key=lambda change: not change.waits)
    yield from dict.fromkeys(note for each in changes for note in describe(each, stays=stays))
    if made.cut:
        yield (
            f"node affinity would have {TOO_MANY}: it does not allow all nodes that carry the old "
            "label, so the pod may wait although one would fit; write fewer terms"
        )


def describe(made: Change, *, stays: bool = False) -> Iterator[str]:
    """The messages for values that no node has, each with advice."""
    if made.absent:
        yield f"there is no node of the model {_names(made.absent)} now: {made.absent_why}"
    if made.taken:
        yield (
            f"this pod selects nodes with {made.taken}, which offer parts of GPUs as whole ones: "
            "it may get a part; select other nodes for a whole GPU"
        )
    if not made.unmapped:
        return
    names = _names(made.unmapped)
    if made.fate is Fate.CHANGE and not made.key:
        yield f"{names} {'is no model' if stays else 'is dropped'}: {made.why}; delete it"
    elif stays:
        yield (
            f"{names} stands for no GPU known here, so nothing is changed: {made.why}; write "
            f"{made.key} with the names that the nodes carry there"
        )
    elif made.waits:
        yield f"{names} stands for no GPU here, so no node fits: {made.why}; {_ADVICE}"
    elif made.is_named:
        yield f"{names} stands for no GPU here and is excluded by this name: {made.why}; {_ADVICE}"
    else:
        yield f"{names} stands for no GPU here and is dropped: {made.why}; {_ADVICE}"


def _names(values: tuple[str, ...]) -> str:
    more = f" (and {len(values) - 1} more)" if len(values) > 1 else ""
    return f"{values[0][:40]!r}{more}"
