"""Which modern templates need the webhook: objects in, what it adds to their pods out.

A template without a pod now (a Deployment that is scaled to 0, a yearly CronJob) shows nothing that
the webhook added. So a pod of each that may get something, such as the toleration of GPU nodes, is
created as a dry run. The webhook alone knows the nodes: it remembers those whose GPUs are away, and
knows those that may be added. And a plugin of the API server may add the toleration.

Other admission may add GPUs or the toleration to a pod, or take them away, and may decide that by
anything in it: the image, or the name of the owner. Where it may change a pod, one without GPUs and
one that tolerates all are tried, too. No pod stands for another one.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from webhook.cluster import answers, controllers, listing
from webhook.cluster.applied import as_sent
from webhook.cluster.client import Client, Fault, Refused, address, as_json
from webhook.cluster.made_pods import (
    is_by_admission,
    is_custom,
    may_be_accepted_later,
    may_make_pods,
    plain,
)
from webhook.cluster.objects import controller, reference
from webhook.cluster.workload_status import is_finished_job
from webhook.core.repaired_annotation import REPAIRED, codes_of, was_sent
from webhook.core.settings import Taint
from webhook.doctor.lines import few
from webhook.evaluation.workloads import templates_of
from webhook.files.results import Located, Status
from webhook.kube import quantity
from webhook.kube.pod import Pod, as_items, as_map
from webhook.kube.pointer import value_at
from webhook.kube.tolerations import Tolerations
from webhook.rules import is_repair, missing_toleration
from webhook.yamlpatch.places import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from webhook.cluster.objects import Reference
    from webhook.core.settings import Settings
    from webhook.doctor.facts import Facts
    from webhook.doctor.other_admission import OtherAdmission
    from webhook.kube.pointer import Path

    Raw = dict[str, Any]
    Names = Mapping[str, set[str]]  # of GPU resources, by namespace
    _Key = tuple[str, bytes]  # what decides, in a namespace

_UNTRIED = "whether pods need what the webhook adds: no dry run of pods of"
# For all trials together: a webhook that hangs delays each of them for its timeout. What is quick
# does not count: a cluster with a mesh may have thousands of templates.
_SECONDS = 60.0
_QUICK = 0.1  # seconds
_AT_ONCE = 8  # trials
_BATCH = 64  # objects whose trials are begun together
_NOT_FOUND, _CONFLICT = 404, 409
_REFUSED = "the legacy pod of `doctor` was refused, so the webhook may not answer"
_LIMITS = ("default", "defaultRequest", "max", "min")  # of which LimitRanger makes defaults
_UNKNOWN = "?"  # a value of a taint that no toleration can name
_GENERAL = "nvidia.com/gpu"  # the taint of GPU nodes, whatever they offer
# A pod has no name before it is stored, so refusals name another one each time. The longer it is,
# the less follows of what is shown.
_ALIKE = 110  # characters
_NAMED = re.compile(r'^(\d+: \S+ )"[^"]*"(?= is )')


def given(api: Client, settings: Settings) -> Names:
    """The GPU resources that LimitRanges give to pods. Fault if they may not be listed."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in listing.objects(api, "/api/v1/limitranges"):
        for _, item in as_items(as_map(each.get("spec")).get("limits")):
            amounts = [pair for one in _LIMITS for pair in as_map(item.get(one)).items()]
            names = (n for n, amount in amounts if settings.is_gpu(n) and quantity.parse(amount))
            found[str(each["metadata"].get("namespace"))].update(names)
    return found


class _Shape(NamedTuple):
    """A template of an object."""

    obj: Raw
    at: Path
    named: Reference

    def pod(self) -> Raw:
        """A pod as the controller of the object makes it."""
        return _pod(self.obj, as_map(value_at(self.obj, self.at)))


_Maker = Future["Raw"] | None  # a pod of what makes the pods, when it was tried
_Answer = Future[dict[str, str] | None]  # what is added; None if no such pod can be made now


class Trials:
    """Creates pods of templates as dry runs, each once.

    While the webhook repairs nothing, none is tried: the API server counts each call that fails.
    """

    def __init__(
        self,
        api: Client,
        installed: Facts,
        spared: Container[str],
        of_ranges: Names,
        others: OtherAdmission,
    ) -> None:
        """`spared` are the namespaces that the webhook leaves alone, and those that end."""
        self._api, self._settings = api, installed.settings
        self._spared, self._of_ranges, self._others = spared, of_ranges, others
        self._known: dict[_Key, _Answer] = {}
        self._made: dict[_Key, Future[Raw]] = {}  # pods, by what makes them
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._running = 0
        self._lock = Lock()
        self._is_called = bool(codes_of(installed.trial.pod))
        is_refused = bool(installed.trial.refusal)
        self._uncalled = _REFUSED if is_refused else "the webhook repairs nothing"
        self._seconds = _SECONDS
        self._said: dict[str, str] = {}  # refusals, by their beginning
        self._untried: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def ahead(self, objs: Iterator[Raw]) -> Iterator[Raw]:
        """The same objects. The trials of some are begun before the first of them is returned."""
        batch: list[Raw] = []
        try:
            for obj in objs:
                batch.append(obj)
                if len(batch) == _BATCH:
                    yield from self._begun(batch)
                    batch = []
        except Fault:
            yield from self._begun(batch)
            raise
        except GeneratorExit:  # an interrupt: nobody waits for the rest
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise
        yield from self._begun(batch)

    def _begun(self, batch: list[Raw]) -> list[Raw]:
        """Begin the trials of most of them; `lacks` begins those of the others, one by one."""
        wanted = [each for each in batch if not (controller(each) or is_finished_job(each))]
        shapes = [shape for each in wanted for shape in self._shapes(each)]
        begun: list[tuple[_Shape, _Maker]] = []
        for shape in shapes:
            with suppress(Exception):  # `lacks` reports it
                begun += [(shape, maker) for maker in self._makers(shape)]
        for shape, maker in begun:
            with suppress(Exception):
                self._answer(shape, maker)
        return batch

    def lacks(self, obj: Raw) -> tuple[Located, ...]:
        """What the webhook adds to the pods of its templates. It is a gap if none can be tried.

        A pod shows with its codes what was added to it, unless its author sent the codes.
        """
        found: dict[str, str] = {}
        shapes = self._shapes(obj)
        for shape, maker in ((each, maker) for each in shapes for maker in self._makers(each)):
            try:
                found |= self._of(shape, maker)
            except Fault as fault:  # no right to create pods, a quota, no such ServiceAccount
                if not _is_of_no_namespace(fault):
                    said = _NAMED.sub(r'\1"..."', str(fault))
                    said = self._said.setdefault(said[:_ALIKE], said)
                    self._untried[said][f"{shape.named.namespace}/{shape.named}"] = None
        return tuple(
            Located(code, message, Status.NOTICE, Place(1, 1, 1, 1))
            for code, message in found.items()
        )

    def _shapes(self, obj: Raw) -> list[_Shape]:
        """The templates of which a pod may be tried."""
        named = reference(obj)
        if named.namespace in self._spared or (named.kind == "Pod" and not was_sent(obj)):
            return []
        sent = as_sent(obj) if named.kind == "Pod" else obj
        templates = templates_of(obj, self._settings)
        return [_Shape(sent, at, named) for at in templates]

    def _makers(self, shape: _Shape) -> list[_Maker]:
        """What makes its pods, where others may change that; None is the object as it is.

        What a controller of a custom kind makes is not known, so all of it is tried. Others may
        change only the pods: by their owner, or by a label of Jobs.
        """
        pod, is_unknown = shape.pod(), is_custom(shape.obj)
        if is_unknown and not self._names(pod, shape.named):
            return [None]
        found: list[_Maker] = [None] if is_unknown else []
        for resource, maker in may_make_pods(shape.obj, shape.at):
            if self._others.may_change(shape.named.namespace, maker, resource):
                found.append(self._made_by(maker, resource, shape.named.namespace))
            elif is_unknown:
                made = _pod(maker, as_map(maker["spec"]["template"]))
                if self._others.may_change(shape.named.namespace, made):
                    found.append(_ready(made))
        return found or [None]

    def _made_by(self, maker: Raw, resource: tuple[str, str], namespace: str) -> Future[Raw]:
        """A pod of the template in this object, as others have changed it."""
        group, plural = resource
        path = address("apis", group, "v1", "namespaces", namespace, plural)
        key = path, as_json(maker, orjson.OPT_SORT_KEYS)

        def made() -> Raw:
            stored = maker | answers.read(self._tried(path, maker)[0])
            return _pod(stored, as_map(as_map(stored["spec"]).get("template")))

        if key not in self._made:
            self._made[key] = self._pool.submit(made)
        return self._made[key]

    def _answer(self, shape: _Shape, maker: _Maker) -> _Answer | None:
        """What the webhook adds to such a pod; None if it is nothing without a trial."""
        pod, named = shape.pod() if maker is None else maker.result(), shape.named
        names = self._names(pod, named)
        is_changed = maker is not None or self._others.may_change(named.namespace, pod)
        if not (is_changed or self._may_lack(pod, names)):
            return None
        key = named.namespace, as_json(pod, orjson.OPT_SORT_KEYS)
        if key not in self._known:
            self._known[key] = self._pool.submit(self._added, pod, named.namespace, names)
        return self._known[key]

    def _of(self, shape: _Shape, maker: _Maker) -> dict[str, str]:
        """What the webhook adds to such a pod."""
        if (answer := self._answer(shape, maker)) is None:
            return {}
        found, named, pod = answer.result() or {}, shape.named, shape.pod()
        if named.kind == "DaemonSet" and not (
            self._others.may_change(named.namespace, pod)
            and _tolerates_one(pod, self._names(pod, named))
        ):  # Its controller makes none on nodes that its template does not allow.
            found = _without(found, (missing_toleration.CODE,))
        return found

    def _names(self, pod: Raw, named: Reference) -> set[str]:
        return {*Pod(pod).gpus(self._settings), *self._of_ranges.get(named.namespace, ())}

    def gaps(self) -> Iterator[str]:
        """The workloads of which no pod could be tried, and why."""
        for why, names in self._untried.items():
            yield f"{_UNTRIED} {few(names)}: {why}"

    def _may_lack(self, pod: Raw, names: set[str]) -> bool:
        """Whether the webhook may add something to it, whatever the nodes are."""
        settings, drivers = self._settings, self._settings.drivers
        if Pod(pod).asks_under_legacy_name(settings):  # others gave it in what makes the pods
            return True
        if drivers.mounts or drivers.runtime_class or settings.placement.enabled:
            return bool(names)
        there = Tolerations(Pod(pod).tolerations())
        taints = [*settings.taints, *(Taint(name, _UNKNOWN) for name in (*names, _GENERAL))]
        return bool(names) and not all(map(there.tolerate, taints))

    def _added(self, pod: Raw, namespace: str, names: set[str]) -> dict[str, str] | None:
        """What the rules add to it that change it, in the words of their warnings.

        A pod without GPUs that is refused is tried once more without what may be refused. None if
        a full quota or a policy refuses that, too: no such pod can be made now.
        """
        pods = address("api", "v1", "namespaces", namespace, "pods")
        try:
            text, warnings = self._tried(pods, pod)
        except Refused as first:
            # It may be accepted later, and lack what others take away.
            may_lose = bool(names) and self._others.may_change(namespace, pod)
            if may_lose or self._may_lack(pod, names):
                raise
            try:
                text, warnings = self._tried(pods, plain(pod))
            except Refused as second:
                if may_be_accepted_later(first):
                    raise first from second
                if may_be_accepted_later(second) or not is_by_admission(second):
                    raise
                return None
        codes = filter(is_repair, codes_of(answers.read(text)))
        return {code: _message(code, warnings) for code in codes}

    def _tried(self, path: str, obj: Raw) -> tuple[bytes, list[str]]:
        if not self._is_called:
            raise Fault(self._uncalled)
        if self._seconds <= 0.0:
            raise Fault("a minute has passed")
        with self._lock:
            self._running += 1
        started = time.monotonic()
        try:
            return self._api.dry_run(path, obj)
        except Refused as refused:  # a pod of a StatefulSet that is ending
            if refused.status != _CONFLICT or is_by_admission(refused):
                raise
            return self._api.dry_run(path, _unnamed(obj))
        finally:
            with self._lock:
                slow = max(time.monotonic() - started - _QUICK, 0.0)
                self._seconds -= slow / self._running
                self._running -= 1


def _pod(obj: Raw, template: Raw) -> Raw:
    """A pod as controllers make it of a template."""
    made = controllers.pod(obj, template)
    if codes_of(template):  # copied from a repaired pod: what comes back is to be what was added
        metadata = made["metadata"]
        metadata["annotations"] = _without(metadata["annotations"], (REPAIRED,))
    return made


def _ready(pod: Raw) -> Future[Raw]:
    made = Future["Raw"]()
    made.set_result(pod)
    return made


def _unnamed(obj: Raw) -> Raw:
    """The object under a name that the API server chooses."""
    metadata = obj["metadata"]
    begins = metadata.get("generateName") or f"{metadata['name']}-"
    return {**obj, "metadata": {**_without(metadata, ("name",)), "generateName": begins}}


def _is_of_no_namespace(fault: Fault) -> bool:
    """Whether its namespace has ended meanwhile. A webhook may deny with this status, too."""
    if not isinstance(fault, Refused):
        return False
    return fault.status == _NOT_FOUND and not is_by_admission(fault)


def _tolerates_one(pod: Raw, names: set[str]) -> bool:
    """Whether it has a toleration that is for nodes with GPUs, too."""
    return bool({"", _GENERAL, *names} & {str(e.get("key") or "") for e in Pod(pod).tolerations()})


def _without(holder: Raw, members: Container[str]) -> Raw:
    return {key: value for key, value in holder.items() if key not in members}


def _message(code: str, warnings: list[str]) -> str:
    """What the webhook warned of, but for what it did."""
    said = (each.partition(f"{code}: ")[2].rpartition(" [")[0] for each in warnings)
    usual = f"write what the webhook adds to its pods (`gpu-webhook explain {code}`)"
    return next(filter(None, said), usual)
