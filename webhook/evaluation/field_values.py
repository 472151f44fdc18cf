"""Two values of a field in, whether the one holds the other out, in the API server's own form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.evaluation.pod_fields import TOLERATIONS, Key
from webhook.kube import quantity
from webhook.kube.canonical import canonical
from webhook.kube.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_as_applied(key: Key, then: Any, now: Any, applied: Mapping[Key, Any]) -> bool:
    """Whether this value returns from the manifest that kubectl applied the last time.

    The API server stores it in its own form: an amount as a string, requests copied from limits,
    defaults for members of a volume, and tolerations in every pod.
    """
    is_amount = key[3:4] == ("resources",)
    limit = applied.get((*key[:4], "limits", *key[5:])) if is_amount else None
    word = applied.get(key, limit)
    if now is None or word is None:
        return False
    if is_amount:
        return quantity.parse(now) == quantity.parse(str(word))
    if key == TOLERATIONS:
        return items(word) <= items(now) <= items(word) | items(then)
    if isinstance(now, dict) and isinstance(word, dict):
        inside = {
            name: as_map(now.get(name)) for name, each in word.items() if each != now.get(name)
        }
        word = word | {name: {**there, **as_map(word[name])} for name, there in inside.items()}
        return bool({**now, **word} == now)
    return bool(now == word)


def is_less(amount: Any, than: Any) -> bool:
    less, more = quantity.parse(amount), quantity.parse(than)
    return amount is not None and less is not None and more is not None and less < more


def is_part(before: Any, value: Any) -> bool:
    """Whether all items of the first value are also in the second."""
    return before is None or (isinstance(before, list) and items(before) <= items(value))


def items(value: Any) -> set[str]:
    """The texts of all maps in a list, or in lists inside it."""
    found: set[str] = set()
    waiting = [item for _, item in as_items(value)]
    while waiting:
        here = waiting.pop()
        below = [item for each in here.values() for _, item in as_items(each)]
        waiting += below
        if not below:
            found.add(canonical(here))
    return found
