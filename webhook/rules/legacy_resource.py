"""Finds containers that request GPUs under a name of Kubernetes 1.3-1.10.

Why: no node offers `alpha.kubernetes.io/nvidia-gpu` since 1.11. The API server accepts it without
a warning, and the pod stays Pending: "Insufficient alpha.kubernetes.io/nvidia-gpu".

Does: renames the key to `nvidia.com/gpu` in limits and requests and keeps the amount as written.
If a container requests GPUs under several names, one of them counts, and amounts are never added
up:

- The amount of the author counts, not an amount that a LimitRange added beside it (its default, or
  its max). The annotation `kubernetes.io/limit-ranger` and managedFields show the difference.
- Of two amounts of whole GPUs the larger one counts. If the author wrote MIG slices or shared GPUs
  beside the legacy name, they count instead of it.
- 0 counts only if the author wrote no other amount. Then what a LimitRange added becomes 0, too: a
  container that requests no GPU gets none. An amount of 0 under a legacy name stays: the scheduler
  ignores it, and without it a LimitRange of that name would add its amount or refuse the pod. In a
  file this is a notice; a pod with such a 0 does not count as legacy. In values of a chart and in
  patches it is renamed, and so is null: there they remove the amount of what they are merged over.
- If another webhook or policy writes the legacy name again after the repair, the larger amount
  counts. The annotation `gpu-webhook.dev/repaired` shows that there was a repair: with
  `messages.annotation: false` the origin of the amount under the current name is unknown.

Current API servers refuse fractions, a request without a limit, and a request that differs from the
limit. GPU102, GPU103 and GPU104 repair these. If a container needs one of these rules and the rule
does not repair there (its mode is off, audit or warn, or it is not selected), the container is not
changed, and a warning gives the reason.

Other names that do not count are removed. LimitRanger would add its name again, so that name stays
with an amount of 0, which a max allows. Only where a container requests more GPUs than LimitRanger
added under a legacy name, that name is removed, because the amount may be the max of the
LimitRange: with any max or min of it, the API server then refuses the pod. Write the current name
in the LimitRange.

If the LimitRange may refuse the repaired pod, a warning says so. The rule sees only one that sets
amounts: for others (type Pod, `min`, `maxLimitRequestRatio`) the API server has its own message.

Safety: safe. An amount that is no quantity, or is negative, is manual. So are two amounts of which
one is not known before a chart is rendered, unless both are the same text or the other one is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Edit, Remove, Rename, Set
from webhook.core.findings import Finding, Severity, choice
from webhook.core.gpu_amounts import Amount, Amounts, asking, value_of
from webhook.core.limit_ranger import ANNOTATION
from webhook.core.rule import RENAMES_AMOUNTS, Context, Facts, Stage, Trait
from webhook.core.text_patterns import RESOURCE_TEXT, Pattern
from webhook.kube import quantity
from webhook.kube.pod import SECTIONS, Container, Pod, as_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.kube.pointer import Path

NAME = "legacy-resource"
CODE = RENAMES_AMOUNTS
# How programs in Go call the package of the API. Others have constants of that name for today's
# resource (cluster-autoscaler, Flyte, KubeRay), and so has a file that defines it itself.
_IN_GO = r"\b(?:core|\w*(?:api|v1)\w*)\.ResourceNvidiaGPU\b|\.NvidiaGPU\(\)"
_OWN = r"(?<![\w.])ResourceNvidiaGPU\b"
_DEFINED = r"(?<![\w.\[])ResourceNvidiaGPU[\w., \t]*:?=(?!=)(?![^\n]*(?:{resource})(?![-\w]))"
_GO = ("removed from k8s.io/api in 1.11", 'use v1.ResourceName("{gpu}")')
FACTS = Facts(
    Stage.REPAIR,
    Trait.AMOUNTS | Trait.SEPARATE,
    words=("nvidia", "Nvidia"),
    patterns=(
        RESOURCE_TEXT,
        Pattern("go-resource-name", _IN_GO, *_GO, words=("NvidiaGPU",)),
        Pattern("go-own-resource-name", _OWN, *_GO, unless=_DEFINED, words=("ResourceNvidiaGPU",)),
    ),
)

_LIMIT_RANGE, _WEBHOOK = "a LimitRange", "a webhook"
_IF_MIN = "which the API server refuses if the LimitRange has a min or a maxLimitRequestRatio of it"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    for container, asked in asking(pod, cx):
        for found in _of_container(container, asked, cx, _by(pod)):
            # A 0 that stays is a notice in files only: in a cluster nothing is wrong with it.
            if cx.in_manifest or found.severity is not Severity.NOTICE:
                yield found
    yield from _of_whole_pod(pod, cx)
    yield from _pod_level(pod, cx)


def _by(pod: Pod) -> str:
    """Who added what the author did not write: LimitRanger writes down that it did."""
    return _LIMIT_RANGE if ANNOTATION in pod.annotations else _WEBHOOK


def _of_container(container: Container, asked: Amounts, cx: Context, by: str) -> Iterator[Finding]:
    counts, today = asked.counts, cx.settings.gpu_resource
    if counts is None:
        yield from _without(container, asked, cx)
        return
    if counts.name in asked.legacy:
        code, what = _lacking(_amounts_of_today(container, counts, asked, today), cx)
        if code:
            yield _left(container, counts, today, f"{today} {what}, and {code} repairs nothing")
            return
        yield _renamed(container, counts, asked, today, by)
        if by == _LIMIT_RANGE:
            yield from _refusal(container, counts, asked, today)
    for name in asked.legacy:
        if name != counts.name:
            if by == _LIMIT_RANGE and _is_default(name, asked):
                yield from _added(container, name, counts, today, asked)
            elif _is_zero(container, name):
                yield from _zero(container, name)
            else:
                yield _beside(container, name, counts, today, asked)


def _of_whole_pod(pod: Pod, cx: Context) -> Iterator[Finding]:
    """A LimitRange that knows today's name may have a max for all containers together, too."""
    asked, today = asking(pod, cx), cx.settings.gpu_resource
    if not any(_is_default(today, each) for _, each in asked):
        return
    legacy = {container.at: each for container, each in asked}
    amounts = []
    for container in pod.containers:
        here = legacy.get(container.at)
        if here is not None and here.is_none:
            continue
        counts = here.counts if here is not None else None
        value = counts.value if counts is not None else quantity.parse(container.limits.get(today))
        if container.kind == "containers" and value:
            amounts.append(quantity.whole(value))
    if len(amounts) > 1:
        message = (
            f"a LimitRange sets {today} where nothing is asked for: if its max for a whole pod is "
            f"below {sum(amounts)}, the API server will refuse this pod"
        )
        yield Finding(CODE, pod.spec_at, message, severity=Severity.MANUAL)


def _pod_level(pod: Pod, cx: Context) -> Iterator[Finding]:
    for section in SECTIONS:
        for name in as_map(as_map(pod.spec.get("resources")).get(section)):
            if name in cx.settings.legacy_resources:
                at = pod.spec_at / "resources" / section / name
                message = (
                    f"the pod as a whole requests {name}: GPUs can only be asked for by a "
                    f"container; move it to a container's limits as {cx.settings.gpu_resource}"
                )
                yield Finding(CODE, at, message, severity=Severity.MANUAL)


def _without(container: Container, asked: Amounts, cx: Context) -> Iterator[Finding]:
    """A container with legacy names in which no amount counts."""
    gpu = cx.settings.gpu_resource
    if asked.is_none:
        yield from _against_default(container, asked)
    for name in asked.legacy:
        if name in asked.unclear:
            yield _unclear(container, name, asked.unclear, gpu)
        elif cx.is_merged and name == asked.legacy[0] and not _places(container, gpu):
            yield _renamed_zero(container, name, gpu)
        elif not _is_default(name, asked) or _is_zero(container, name):
            yield from _zero(container, name)


def _unclear(container: Container, name: str, names: Iterable[str], today: str) -> Finding:
    """Only the author knows the larger amount; all other repairs of the pod wait for it."""
    wrong = [raw for raw in _written(container, name) if value_of(raw) is None]
    if wrong:
        message = f"requests {str(wrong[0])[:40]!r} {name}, which is no amount of GPUs: correct it"
    else:
        shown = (f"{_amounts(container, each)} {each}" for each in dict.fromkeys([name, *names]))
        message = (
            f"requests {' beside '.join(shown)}, and which one is larger is not known: write only "
            f"{today}, with the larger amount"
        )
    at, message = _places(container, name)[0], f"container {container.name} {message}"
    return choice(CODE, at, message)


def _renamed_zero(container: Container, name: str, today: str) -> Finding:
    """In values or a patch it must still meet the amount that it removes."""
    places = _places(container, name)
    written = _written(container, name)[0]
    shown = "null" if written is None else written
    message = (
        f"{container.name} has {shown} {name}, which may remove the GPUs of what it is merged "
        f"over; write {today}: {shown}"
    )
    return Finding(CODE, places[0], message, tuple(Rename(each, today) for each in places))


def _zero(container: Container, name: str) -> Iterator[Finding]:
    """An amount of 0, which stays: the scheduler ignores it.

    Without it LimitRanger (1.36) would set its default there, or its max would refuse the pod.
    """
    message = (
        f"container {container.name} requests 0 {name}: no GPU; delete the line, unless a "
        "LimitRange names it"
    )
    for at in _places(container, name):
        yield Finding(CODE, at, message, severity=Severity.NOTICE)


def _against_default(container: Container, asked: Amounts) -> Iterator[Finding]:
    """The amounts that LimitRanger set where the author wrote 0: an author's 0 wins, too."""
    places = [
        (section, name)
        for section, name in sorted(asked.defaults)
        if quantity.parse(container.sections[section][name])
    ]
    if not places:
        return
    added = ", ".join(dict.fromkeys(f"{container.sections[s][name]} {name}" for s, name in places))
    message = (
        f"container {container.name} requests 0 GPUs, and {added} of a LimitRange does not count: "
        f"it is 0 now, {_IF_MIN}"
    )
    edits = tuple(Set(container.section_at(section) / name, "0") for section, name in places)
    yield Finding(CODE, edits[0].at, message, edits)


def _lacking(amounts: Mapping[str, object], cx: Context) -> tuple[str, str]:
    """The rule without whose repair the API server would reject these amounts; its message."""
    values = {quantity.parse(raw) for raw in amounts.values()}
    whole = all(value is None or quantity.is_whole(value) for value in values)
    for code, is_needed, what in (
        ("GPU104", len(values) > 1, "needs a request equal to its limit"),
        ("GPU102", not whole, "must be whole"),
        ("GPU103", "limits" not in amounts, "needs a limit"),
    ):
        if is_needed and CODE in cx.repairing and code not in cx.repairing:
            return code, what
    return "", ""


def _left(container: Container, counts: Amount, today: str, why: str) -> Finding:
    """Renamed, it would have the pod refused: so it waits, as it would without us."""
    at = _places(container, counts.name)[0]
    message = (
        f"container {container.name} requests {_amounts(container, counts.name)} {counts.name}, "
        f"which no node offers, and stays so: {why} here; write limits: {today}: "
        f"{quantity.whole(counts.value)}"
    )
    return Finding(CODE, at, message, severity=Severity.MANUAL)


def _renamed(container: Container, counts: Amount, asked: Amounts, today: str, by: str) -> Finding:
    """The legacy name counts: it becomes today's, whatever stands there under today's name."""
    slices = _added_slices(container, counts, asked, today)
    edits = [
        *_edits(container, counts, asked, today),
        *(Set(container.section_at(s) / each, "0") for each in slices for s in SECTIONS),
    ]
    beside = [today] if _places(container, today) else []
    if by == _WEBHOOK and _amounts(container, today) == _amounts(container, counts.name):
        beside = []  # our own repair, after which another webhook wrote the legacy name once more
    others = ", ".join(f"{_amounts(container, name)} {name}" for name in (*beside, *slices))
    shown = counts.raw if quantity.is_whole(counts.value) else quantity.whole(counts.value)
    message = f"container {container.name} requests "
    if slices or (beside and _is_default(today, asked)):
        message += f"{shown} {counts.name}, and {others} of {by} does not count"
    elif beside:
        message += f"{shown} {counts.name} beside {others}: the larger amount counts"
    else:
        message += f"{counts.name}, which no node offers"
    at = _places(container, counts.name)[0]
    return Finding(CODE, at, f"{message}; write {today}: {shown}", tuple(edits))


def _amounts_of_today(
    container: Container, counts: Amount, asked: Amounts, today: str
) -> dict[str, object]:
    """What limits and requests will say under today's name, where one of the names is in them."""
    return {
        section: counts.raw
        if counts.authored and (section, counts.name) in asked.defaults
        else container.sections[section].get(counts.name, counts.raw)
        for section in SECTIONS
        if {today, counts.name} & container.sections[section].keys()
    }


def _edits(container: Container, counts: Amount, asked: Amounts, today: str) -> Iterator[Edit]:
    for section, raw in _amounts_of_today(container, counts, asked, today).items():
        there, at = container.sections[section], container.section_at(section)
        if today in there:
            yield Set(at / today, raw)
            if counts.name in there:
                yield Remove(at / counts.name)
            continue
        yield Rename(at / counts.name, today)
        if counts.authored and (section, counts.name) in asked.defaults:
            yield Set(at / today, raw)


def _added_slices(container: Container, counts: Amount, asked: Amounts, today: str) -> list[str]:
    """Other current GPU resources that LimitRanger added to the author's request."""
    added = {name for _, name in asked.defaults} - {today, *asked.legacy}
    return sorted(
        name
        for name in added
        if counts.authored and any(map(quantity.parse, _written(container, name)))
    )


def _refusal(container: Container, counts: Amount, asked: Amounts, today: str) -> Iterator[Finding]:
    """A LimitRange that knows today's name may refuse the amount, which nobody can read here."""
    for at, raw in zip(_places(container, today), _written(container, today), strict=True):
        default = quantity.parse(raw)
        if (at[-2], today) in asked.defaults and default not in (None, counts.value):
            bound = "max is below" if counts.value > (default or 0) else "min is above"
            message = (
                f"a LimitRange sets {raw} {today} where nothing is asked for: if its {bound} "
                f"{quantity.whole(counts.value)}, the API server will refuse this pod for "
                f"container {container.name}"
            )
            yield Finding(CODE, at, message, severity=Severity.MANUAL)
            break
    for name in _added_slices(container, counts, asked, today):
        message = (
            f"a LimitRange adds {_amounts(container, name)} {name} to container {container.name}: "
            f"it is 0 now, {_IF_MIN}"
        )
        yield Finding(CODE, _places(container, name)[0], message, severity=Severity.MANUAL)


def _beside(container: Container, name: str, counts: Amount, today: str, asked: Amounts) -> Finding:
    """A legacy name that does not count, since another does."""
    counting = f"{_amounts(container, counts.name)} {counts.name}"
    edits: list[Edit] = []
    for at in _places(container, name):
        # One of the two may have stood in this section alone.
        written = container.sections[str(at[-2])].get(today)
        if counts.name == today and counts.raw != written:
            edits.append(Set(at.parent / today, counts.raw))
        edits.append(Remove(at))
    message = (
        f"container {container.name} requests both {_amounts(container, name)} {name} and "
        f"{counting}; only the latter counts: delete the former"
    )
    if asked.is_second_round and counts.name == today:
        # Another webhook wrote it again: to the author it is said as before, and shown once.
        message = (
            f"container {container.name} requests {name}, which no node offers; write {today}: "
            f"{counts.raw}"
        )
    return Finding(CODE, _places(container, name)[0], message, tuple(edits))


def _added(
    container: Container, name: str, counts: Amount, today: str, asked: Amounts
) -> Iterator[Finding]:
    """A legacy name that LimitRanger added. Without it a max would refuse the pod; so may a min.

    The amount may be a default far below the max, or the max. A max of GPUs counts no slices.
    """
    values = [quantity.parse(raw) or 0 for raw in _written(container, name)]
    if not any(values):
        yield from _zero(container, name)
        return
    within = counts.value <= max(values) or counts.name not in (today, *asked.legacy)
    places = _places(container, name)
    edits = tuple(Set(at, "0") if within else Remove(at) for at in places)
    outcome = (
        f"it is 0 now, {_IF_MIN}"
        if within
        else "it is removed, and the API server refuses the pod if the LimitRange has any max or "
        "min of it"
    )
    message = (
        f"a LimitRange adds {_amounts(container, name)} {name} to container {container.name}, "
        f"which requests {counts.raw} {counts.name}: {outcome}; write {today} there instead"
    )
    yield Finding(CODE, places[0], message, edits)


def _places(container: Container, name: str) -> list[Path]:
    return [container.section_at(s) / name for s in SECTIONS if name in container.sections[s]]


def _written(container: Container, name: str) -> list[object]:
    return [container.sections[s][name] for s in SECTIONS if name in container.sections[s]]


def _is_zero(container: Container, name: str) -> bool:
    return all(quantity.parse(raw) == 0 for raw in _written(container, name))


def _is_default(name: str, asked: Amounts) -> bool:
    return any((section, name) in asked.defaults for section in SECTIONS)


def _amounts(container: Container, name: str) -> str:
    return ", ".join(sorted({str(raw) for raw in _written(container, name)}))
