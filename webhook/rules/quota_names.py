"""Finds quotas and limit ranges that count GPUs under the legacy name.

Why: no quota has ever counted `alpha.kubernetes.io/nvidia-gpu`, with or without a prefix. Current
GPUs are counted only as `requests.nvidia.com/gpu`; `limits.nvidia.com/gpu` is not counted, because
the limit of such resources equals the request. A LimitRange gives its legacy default to every
container of the namespace, which then stays Pending.

Does: with `--unsafe`, writes `requests.nvidia.com/gpu` in a ResourceQuota and `nvidia.com/gpu` in a
LimitRange, and makes the default and the default request equal, as they must be. If both names are
there, the current name is kept. Otherwise it only reports.

Safety: unsafe: a quota starts to count GPUs, and a default gives each container a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Edit, Remove, Rename, Set
from webhook.core.findings import Finding, Safety
from webhook.core.rule import Context, Facts, Stage
from webhook.core.text_patterns import QUOTA_TEXT
from webhook.kube.pod import Raw, as_items, as_map
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "quota-names"
CODE = "GPU128"
FACTS = Facts(Stage.MANIFEST, unsafe=True, words=("nvidia",), patterns=(QUOTA_TEXT,))

_SPEC = ROOT / "spec"
# OpenShift's ClusterResourceQuota has the same map one step deeper.
_HARD = {
    "ResourceQuota": Path(("spec", "hard")),
    "ClusterResourceQuota": Path(("spec", "quota", "hard")),
}
_SECTIONS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def check(obj: Raw, cx: Context) -> Iterator[Finding]:
    legacy, new = cx.settings.legacy_resources, cx.settings.gpu_resource
    kind = str(obj.get("kind"))
    if kind in _HARD:
        yield from _quota(obj, _HARD[kind], legacy, new)
    elif kind == "LimitRange":
        for position, item in as_items(as_map(obj.get("spec")).get("limits")):
            at = _SPEC / "limits" / position
            for name in legacy:
                yield from _range(item, at, name, new)


def _quota(obj: Raw, at: Path, legacy: tuple[str, ...], new: str) -> Iterator[Finding]:
    hard: Any = obj
    for token in at:
        hard = as_map(hard.get(str(token)))
    counted = f"requests.{new}"
    taken = counted in hard
    # What is to be the request comes first: only one of them can be.
    names = (
        *(f"{prefix}{name}" for prefix in ("requests.", "") for name in legacy),
        *(f"limits.{name}" for name in legacy),
        f"limits.{new}",
    )
    for name in names:
        if name not in hard:
            continue
        edit: Edit = Remove(at / name) if taken else Rename(at / name, counted)
        advice = f"delete it beside {counted}" if taken else f"write {counted}, which then counts"
        taken = True
        message = f"no quota counts {name}: {advice}"
        yield Finding(CODE, at / name, message, (edit,), safety=Safety.UNSAFE)


def _range(item: Raw, at: Path, legacy: str, new: str) -> Iterator[Finding]:
    for section in _SECTIONS:
        amounts = as_map(item.get(section))
        if legacy not in amounts:
            continue
        place = at / section / legacy
        edits: tuple[Edit, ...] = (Rename(place, new),)
        advice = f"write {new}"
        if new in amounts:
            edits, advice = (Remove(place),), f"delete it beside {new}"
        elif section == "defaultRequest":
            default = as_map(item.get("default"))
            amount = default.get(new, default.get(legacy, amounts[legacy]))
            # A request without a limit is refused, and so is one that differs from it.
            if default.get(new, default.get(legacy)) is None:
                edits = (*edits, Set(at / "default" / new, amount))
            if amount != amounts[legacy]:
                edits = (Set(place, amount), *edits)
        message = f"the {section} of {legacy} is not one of GPUs: {advice}"
        if section.startswith("default"):
            message += "; each container of the namespace gets it"
        yield Finding(CODE, place, message, edits, safety=Safety.UNSAFE)
