"""Compares an object as the rules make it with what is built: the first place that differs out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.kube import quantity
from webhook.kube.pod import SECTIONS, as_items, as_map
from webhook.kube.walk import walk
from webhook.yamlpatch import verify

if TYPE_CHECKING:
    from webhook.core.settings import Settings

    Raw = dict[str, Any]


def difference(wanted: Raw, built: Raw, settings: Settings) -> str | None:
    """The first place in which two objects differ, or None.

    0 and null are no GPUs, under any name. A toleration of GPU nodes does no harm in a pod without
    GPUs. The order of tolerations has no effect, nor has one that another covers.
    """
    return _first(_compared(wanted, settings), _compared(built, settings), "")


def _compared(obj: Raw, settings: Settings) -> Any:
    obj = copied(obj)
    for at, value in walk(obj):
        if at[-1:] == ("spec",) and isinstance(as_map(value).get("containers"), list):
            _normalise(value, settings)
    return verify.meant(obj)


def _normalise(spec: Raw, settings: Settings) -> None:
    has_gpus = False
    for kind in ("containers", "initContainers"):
        for _, container in as_items(spec.get(kind)):
            for section in SECTIONS:
                amounts = as_map(as_map(container.get("resources")).get(section))
                for name in list(filter(settings.names_gpus, amounts)):
                    amount = quantity.parse(amounts[name])
                    if amount == 0 or amounts[name] is None:
                        del amounts[name]
                    else:
                        has_gpus = True
                        amounts[name] = str(amounts[name])
    given = [each for _, each in as_items(spec.get("tolerations"))]
    kept = [each for each in given if has_gpus or not settings.is_gpu(str(each.get("key")))]
    needed = [e for e in kept if not any(_covers(other, e) for other in kept if other != e)]
    spec["tolerations"] = sorted(needed, key=repr)


def _covers(one: Raw, other: Raw) -> bool:
    """Whether a toleration of everything, or of a whole key, makes another one needless."""
    return one.get("operator") == "Exists" and all(
        one.get(member) in {None, "", other.get(member)}
        for member in ("key", "effect", "tolerationSeconds")
    )


def _first(one: Any, other: Any, at: str) -> str | None:
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                return _first(one.get(name), other.get(name), f"{at}.{name}" if at else name)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(
            _first(a, b, f"{at}[{n}]")
            for n, (a, b) in enumerate(zip(one, other, strict=True))
            if a != b
        )
    return at
