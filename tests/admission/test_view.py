"""Pods with one view get one answer: that which each of them would get if it were judged whole.

CHANGED_MEMBERS says how many members are changed, one at a time; 100,000 take a few minutes.
"""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import tracemalloc
from datetime import UTC, datetime
from functools import cache
from itertools import cycle
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock, patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.generator import REVIEWS
from tests.admission.admitted import Lines
from tests.cases import MadeRule, cases
from tests.costs.shapes import REPAIRING
from tests.hostile.wire import gpu_pod, review
from tests.properties.clusters import INVENTORIES, LABEL, SETTINGS, clusters
from tests.properties.pods import JUNK, broken_pods, places, pods
from tests.shared_folder import SHARED
from webhook.admission import decide, view
from webhook.admission.decide import Decider
from webhook.admission.endpoint import JSON, Endpoint
from webhook.admission.review import dump, parse
from webhook.core.draft import Draft
from webhook.core.edits import Append
from webhook.core.findings import Finding
from webhook.core.rule import Facts, Stage
from webhook.core.settings import Settings
from webhook.evaluation.workloads import template_at
from webhook.kube.pointer import Path, value_at
from webhook.rules import POLICY, RULES
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.properties.clusters import Cluster
    from webhook.admission.outcome import Outcome
    from webhook.core.rule import Rule

    Raw = dict[str, Any]

COUNT = int(os.environ.get("CHANGED_MEMBERS", "500"))
PATHS = ("/mutate", "/validate")
LEGACY = "alpha.kubernetes.io/nvidia-gpu"
STALE = {"path": "/usr/lib/nvidia-375"}
TOKEN, OF_ALL = "kube-api-access-abcde", "kube-api-access-"
# What may stand in the place of a member.
OTHERS: tuple[Any, ...] = (
    *JUNK,
    *(TOKEN, OF_ALL, "kube-api-access-vwxyz", "driver", "gpu-webhook-driver-0", "\ud800", "true"),
    *("LD_LIBRARY_PATH", "PATH", "/usr/lib/nvidia-375", "/usr/lib/nvidia:/bin", "2", "DaemonSet"),
    *("Job", "nvidia/k8s-device-plugin:1", LEGACY, "default-scheduler", STALE, {LEGACY: "1"}),
    {"gpu-webhook.dev/ignore": "true"},
)


class Whole(Decider):
    """Judges each pod as a whole, as if there were no view."""

    def _of_view(self, *_: Any) -> Outcome | None:
        return None


class Ways:
    """A decider that has answered all pods so far, and one that judges each pod as a whole."""

    def __init__(self, settings: Settings, inventory: Any, rules: Sequence[Rule] = RULES) -> None:
        log: Any = Lines()
        self._decider, self._whole = (
            kind(rules, settings, inventory, log, policy=POLICY) for kind in (Decider, Whole)
        )
        self.calls = self.remembered = 0

    def check(self, pod: Any, path: str = "/mutate", **request: Any) -> None:
        """Both give the same bytes and the same log lines."""
        body, before = dump(review(pod, **request)), self.known
        one = _answered(self._decider, path, body)
        self.calls += 1
        self.remembered += self.known == before
        assert one == _answered(self._whole, path, body), body

    @property
    def known(self) -> int:
        return len(self._decider._outcomes)


def _answered(by: Decider, path: str, body: bytes) -> tuple[bytes, list[Raw]]:
    log: Any = by.log
    log.kept.clear()
    answer = by.answer(path, parse(body))
    return answer, [{**line, "milliseconds": 0} for line in log.kept]


@cache
def ways() -> list[Ways]:
    """Settings and nodes of many kinds."""
    enforcing = settings_file.parse(REPAIRING)
    made = [Ways(enforcing, INVENTORIES["GFD"])]
    inventories = cycle(INVENTORIES.values())
    return made + [Ways(each, next(inventories)) for each in (*SETTINGS.values(),) * 2]


def owned(pod: Raw, **metadata: Any) -> Raw:
    """The pod as a Job makes it, unless somebody else made it: only such pods have replicas."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
    before = pod.get("metadata")
    if not isinstance(before, dict):
        return pod
    return {**pod, "metadata": {"ownerReferences": [owner], **before, **metadata}}


def recorded() -> list[Raw]:
    """Pods as API servers sent them."""
    bodies = gzip.decompress(REVIEWS.read_bytes()).splitlines()
    bodies += [each.read_bytes() for each in sorted(SHARED.glob("reviews/**/create-pods-*.json"))]
    bodies += [each.read_bytes() for each in sorted(SHARED.glob("reviews/default-plugins/*.json"))]
    requests = [json.loads(body)["request"] for body in bodies]
    return [owned(each["object"]) for each in requests if each["kind"]["kind"] == "Pod"]


def of_corpus() -> Iterator[Raw]:
    """The pods of the corpus, and those of its workloads."""
    for case in cases():
        obj = case.object()
        at = template_at(obj)
        if at is not None:
            template = value_at(obj, at)
            yield owned({"apiVersion": "v1", "kind": "Pod", "metadata": {}, **template})


def changed(pod: Raw, chance: random.Random) -> Raw:
    """The pod with another value, or none, in one place."""
    *above, last = chance.choice(places(pod))
    pod = copy.deepcopy(pod)
    holder: Any = value_at(pod, Path(above))
    if chance.random() < 0.3:
        del holder[last]
    elif isinstance(holder[last], str) and chance.random() < 0.3:
        holder[last] += "x"
    else:
        holder[last] = copy.deepcopy(chance.choice(OTHERS))
    return pod


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_members_changed_one_at_a_time() -> None:
    """All changes are the same in each run."""
    chance = random.Random(COUNT)  # noqa: S311
    replicas = recorded()
    originals = [*replicas, *of_corpus(), *HOSTILE.values()]
    for number in range(COUNT):
        way = ways()[number % 7 and number % len(ways())]
        original, path = chance.choice(originals), chance.choice(PATHS)
        way.check(original, path)
        way.check(changed(original, chance), path)
    calls, remembered = (sum(getattr(way, of) for way in ways()) for of in ("calls", "remembered"))
    print(f"\n{calls} calls, {remembered} answered from memory")  # noqa: T201  # reported
    assert calls >= 2 * COUNT
    assert remembered > calls / 4


@given(pods() | broken_pods(), clusters(), st.randoms(use_true_random=False))
def test_drawn_pods_and_their_likes(pod: Raw, cluster: Cluster, chance: random.Random) -> None:
    pod = owned(pod)
    way = Ways(cluster.context.settings, cluster.context.inventory)
    for path in PATHS:
        way.check(pod, path)
        for _ in range(3):
            way.check(changed(pod, chance), path)


def replica(**spec: Any) -> Raw:
    return owned(gpu_pod(**spec))


def with_volumes(*volumes: Raw, mounts: Sequence[Raw] = (), **more: Any) -> Raw:
    pod = replica(volumes=list(volumes), **more)
    pod["spec"]["containers"][0]["volumeMounts"] = [*mounts]
    return pod


def sent(fields: Raw, annotations: Raw | None = None, **spec: Any) -> Raw:
    """A replica with these managed fields."""
    pod = replica(**spec)
    pod["metadata"] |= {"managedFields": [{"fieldsV1": fields}], "annotations": annotations or {}}
    return pod


PROJECTED: Raw = {"projected": {"sources": []}}
HOSTILE = {
    "a driver that is named like the token": with_volumes(
        {"name": TOKEN, "hostPath": STALE}, mounts=[{"name": TOKEN, "mountPath": "/usr/lib/x"}]
    ),
    "a driver with the name that stands for all tokens": with_volumes(
        {"name": OF_ALL, "hostPath": STALE},
        {"name": TOKEN, **PROJECTED},
        mounts=[{"name": TOKEN, "mountPath": "/a"}, {"name": OF_ALL, "mountPath": "/b"}],
    ),
    "a mount of that name without a volume": with_volumes(
        {"name": TOKEN, "hostPath": STALE},
        mounts=[{"name": OF_ALL, "mountPath": "/a"}, {"name": TOKEN, "mountPath": "/b"}],
    ),
    "two volumes with the names of tokens": with_volumes(
        {"name": TOKEN, "hostPath": STALE},
        {"name": "kube-api-access-vwxyz", **PROJECTED},
        mounts=[
            {"name": "kube-api-access-vwxyz", "mountPath": "/a"},
            {"name": TOKEN, "mountPath": "/b"},
        ],
    ),
    "a driver and a token with one name": with_volumes(
        {"name": TOKEN, "hostPath": STALE},
        {"name": TOKEN, **PROJECTED},
        mounts=[{"name": TOKEN, "mountPath": "/b"}],
    ),
    "a mount without a name": with_volumes(
        {"name": "driver", "hostPath": STALE}, mounts=[{"mountPath": "/b"}, {"name": None}]
    ),
    "mounts with empty names": with_volumes(
        {"name": "", "hostPath": STALE}, mounts=[{"name": "", "mountPath": "/b"}, {"name": OF_ALL}]
    ),
    "a map of volumes": replica(volumes={"name": TOKEN}),
    "an empty map of containers": replica(initContainers={}),
    "a long integer": replica(priority=10**25),
    "half of a surrogate pair": replica(schedulerName="\ud800"),
    "a list of managed fields": sent(
        {"f:spec": ["f:nodeSelector"]},
        nodeSelector={f"{LEGACY}-name": "Tesla K80"},
    ),
    "a list of managed annotations": sent(
        {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"c"}': {"f:resources": {"f:limits": {f"f:{LEGACY}": {}}}}
                }
            },
            "f:metadata": {"f:annotations": ["f:gpu-webhook.dev/repaired"]},
        },
        annotations={
            "kubernetes.io/limit-ranger": "LimitRanger plugin set: nvidia.com/gpu limit, "
            "nvidia.com/gpu request for container c",
            "gpu-webhook.dev/repaired": "GPU101",
        },
        containers=[{"name": "c", "resources": {"limits": {LEGACY: "1", "nvidia.com/gpu": "4"}}}],
    ),
}


@pytest.mark.parametrize("pod", [pytest.param(pod, id=name) for name, pod in HOSTILE.items()])
@pytest.mark.parametrize("path", PATHS)
def test_whatever_a_tenant_writes(pod: Raw, path: str) -> None:
    """Each is sent after all others, and after their likes."""
    way = Ways(Settings(), None)
    for each in (*HOSTILE.values(), pod):
        way.check(each, path)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"name": "a"}, {"name": "b"}, id="names"),
        pytest.param({"labels": {"pod": "0"}}, {"labels": {"pod": "1"}}, id="labels"),
        pytest.param({}, {"labels": {"pod": "1"}}, id="no labels"),
        pytest.param({"annotations": {"at": "0"}}, {"annotations": {"on": "1"}}, id="annotations"),
        pytest.param({"creationTimestamp": None}, {"selfLink": ""}, id="what the API server sets"),
    ],
)
def test_pods_that_differ_in_what_no_rule_reads_are_judged_once(first: Raw, second: Raw) -> None:
    way = Ways(Settings(), None)
    for metadata in (first, second):
        way.check(owned(gpu_pod(), **metadata))

    assert (way.calls, way.remembered) == (2, 1)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"image": "nvidia/k8s-device-plugin:1"}, id="image"),
        pytest.param({"name": "other"}, id="name"),
        pytest.param({"env": [{"name": "PATH", "value": "/bin"}]}, id="search path"),
        pytest.param({"args": ["--x"], "futureField": 1}, id="a field that nobody knows yet"),
    ],
)
def test_containers_that_differ_in_what_a_rule_may_read_are_judged_each(change: Raw) -> None:
    way, other = Ways(Settings(), None), replica()
    other["spec"]["containers"][0] |= change
    way.check(replica())
    way.check(other)

    assert way.remembered == 0


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(gpu_pod(), id="that nobody made"),
        pytest.param(
            owned(gpu_pod(), ownerReferences=[{"kind": "DaemonSet", "controller": True}]),
            id="of a DaemonSet: it names its node",
        ),
        pytest.param(
            owned(gpu_pod(), ownerReferences=[{"kind": "Job", "name": "/", "controller": True}]),
            id="of an owner that cannot exist",
        ),
        pytest.param(replica(subdomain="x" * 70_000), id="that may take long"),
    ],
)
def test_a_pod_without_replicas_has_no_view(pod: Raw) -> None:
    assert view.body_of(parse(dump(review(pod)))) is None


def test_each_namespace_has_its_own_answer() -> None:
    way = Ways(Settings(), None)
    way.check(replica(), namespace="a")
    way.check(replica(), namespace="b")

    assert way.remembered == 0


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"dryRun": True}, id="a dry run"),
        pytest.param({"uid": "other", "userInfo": {"username": "eve"}}, id="another user"),
        pytest.param({"oldObject": replica()}, id="with a stored object, which none should have"),
    ],
)
def test_the_request_counts_in_each_call(request_: Raw) -> None:
    way = Ways(Settings(), None)
    way.check(replica())
    way.check(replica(), **request_)


def test_other_nodes_are_another_memory() -> None:
    """As `serve` does it, a new inventory makes a new decider."""
    pod = replica(nodeSelector={LABEL: "Tesla K80"})
    body, log = dump(review(pod)), cast("Any", Lines())
    first, second = (Decider(RULES, Settings(), INVENTORIES[each], log) for each in ("GFD", "GKE"))
    endpoint = Endpoint(first, str)
    before = [endpoint.post("/mutate", JSON, "", body) for _ in range(2)]
    endpoint.use(second)
    after = endpoint.post("/mutate", JSON, "", body)

    assert before[0] == before[1] != after
    assert after.body == second.answer("/mutate", parse(body))


def test_what_must_be_judged_whole_is_each_time() -> None:
    """A rule that raises is reported for each pod, and the view is not tried anew."""

    def check(*_: Any) -> Iterator[Finding]:
        raise ZeroDivisionError

    failing: Any = MadeRule("made", "GPU901", Facts(Stage.REPAIR), check)
    way = Ways(Settings(), None, (*RULES, failing))
    for _ in range(3):
        way.check(replica())

    assert (way.calls, way.remembered) == (3, 2)


def test_an_exception_ends_at_midnight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is remembered, too."""
    settings = settings_file.parse(
        "policy: {rules: {GPU304: enforce}, exceptions: [{rules: [GPU304]}]}\n"
        "capacity: {limits: [{gpus: {nvidia.com/gpu: 0}}]}"
    )
    pod = replica(containers=[{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}])
    pod["metadata"]["annotations"] = {"gpu-webhook.dev/allow.GPU304": "moving (until 2026-11-27)"}
    body, log = dump(review(pod)), cast("Any", Lines())
    decider = Decider(RULES, settings, None, log, policy=POLICY)
    allowed = []
    for day in (27, 27, 28):
        clock = Mock(now=Mock(return_value=datetime(2026, 11, day, tzinfo=UTC)))
        monkeypatch.setattr(decide, "datetime", clock)
        allowed.append(json.loads(decider.answer("/validate", parse(body)))["response"]["allowed"])

    assert allowed == [True, True, False]


def test_the_memory_has_an_end() -> None:
    way = Ways(Settings(), None)
    for number in range(1100):
        pod = replica()
        pod["spec"]["containers"][0]["name"] = f"c{number}"
        way.check(pod)
        assert way.known <= 1024
    before = way.known
    way.check(replica(subdomain="x" * 17_000))

    assert way.known == before, "too large to be remembered"


AMOUNTS = {"limits": {LEGACY: "1"}, "requests": {LEGACY: "1"}}
MANY = [{"name": f"c{n}", "resources": AMOUNTS} for n in range(292)]


def test_a_full_memory_takes_no_more_bytes_than_its_limits_say() -> None:
    log: Any = Lines()
    decider = Decider(RULES, Settings(), None, log, policy=POLICY)
    bodies = [dump(review(replica(subdomain=f"{n:05}" + "x" * 15_000))) for n in range(100)]
    tracemalloc.start()
    for body in bodies:
        decider.answer("/mutate", parse(body))
        log.kept.clear()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(decider._outcomes) == 100
    assert held / 100 < 1.5 * view.LARGEST


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="one that is remembered"),
        pytest.param({"subdomain": "x" * 17_000}, id="one that is too large to be remembered"),
        pytest.param({"nodeSelector": {"zone": "nowhere"}}, id="one that fits on no node"),
        pytest.param({"containers": MANY}, id="one whose patch is too large"),
    ],
)
@pytest.mark.parametrize("path", PATHS)
def test_a_pod_is_judged_once(path: str, spec: Raw) -> None:
    judged = []

    def check(*seen: Any) -> Iterator[Finding]:
        judged.append(seen)
        yield from ()

    settings = settings_file.parse("policy: {rules: {GPU301: enforce}}")
    repair: Any = MadeRule("made", "GPU901", Facts(Stage.REPAIR), check)
    policy: Any = MadeRule("made", "GPU902", Facts(Stage.POLICY), check)
    rules, log = (*RULES, repair), cast("Any", Lines())
    decider = Decider(rules, settings, INVENTORIES["GFD"], log, policy=(*POLICY, policy))
    decider.answer(path, parse(dump(review(replica(**spec)))))
    assert len(judged) == 1


# --------------------------------------------------------------------------- what rules read


class Traced(dict[str, Any]):
    """A map that notes which of its members are read; copies of it note nothing."""

    def __init__(self, value: Raw, at: Path, read: set[Path]) -> None:
        super().__init__({key: traced(item, at / key, read) for key, item in value.items()})
        self._at, self._read = at, read

    def get(self, key: str, default: Any = None) -> Any:
        self._read.add(self._at / key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._read.add(self._at / key)
        return super().__getitem__(key)

    def __contains__(self, key: Any) -> bool:
        self._read.add(self._at / str(key))
        return super().__contains__(key)

    def items(self) -> Any:
        self._read.update(self._at / key for key in super().__iter__())
        return super().items()

    def values(self) -> Any:
        self._read.update(self._at / key for key in super().__iter__())
        return super().values()

    def __eq__(self, other: object) -> bool:
        self._read.update(Path((*self._at, *at)) for at in places(dict(self)))
        return super().__eq__(other)

    __hash__ = None


def traced(value: Any, at: Path, read: set[Path]) -> Any:
    """The value with all maps in it traced."""
    if isinstance(value, dict):
        return Traced(value, at, read)
    if isinstance(value, list):
        return [traced(item, at / number, read) for number, item in enumerate(value)]
    return value


# Read on the way to what counts, and without a part in any answer: `*` is one name or number.
WITHOUT_EFFECT = (
    "metadata/labels",  # of all labels only the opt-out is asked for
    "metadata/annotations/*",  # all are gone through; the key tells those that count
    "metadata/ownerReferences",
    "metadata/ownerReferences/*",  # the view has the one that counts, with a legal name
    "metadata/ownerReferences/*/*",
    "spec/*/*/env/*/name",  # all are gone through; the name tells those that count
    "spec/*/*/env/*/value",
    "spec/*/*/volumeMounts/*/name",  # the token has another name in the view
    "spec/volumes/*/name",
)
ADVICE = (
    "A rule reads {}, which a view leaves out, so in the server the rule does not find it: add it "
    "to webhook/admission/view.py, or where it has no effect, to WITHOUT_EFFECT here"
)


@patch.object(Draft, "patch", lambda _: [{}])  # it compares whole maps, which no rule does
def unseen(pod: Raw, way: Ways) -> list[str]:
    """The members that rules read of this pod, and that are missing or different in its view."""
    sent = parse(dump(review(pod)))
    body = view.body_of(sent)
    if body is None:
        return []
    seen = view.review_of(body, sent).request["object"]
    found = []
    for path in PATHS:
        read: set[Path] = set()
        sent.request["object"] = traced(pod, Path(), read)
        asked = way._whole._asks[path](sent.request)
        read.clear()
        if asked is not None:
            way._whole._made(sent, asked)
        found += [str(at) for at in read if not _is_same(at, pod, seen) and not _is_idle(at)]
    return sorted(set(found))


def _is_same(at: Path, pod: Raw, seen: Raw) -> bool:
    one, other = (_there(value, at) for value in (pod, seen))
    return type(one) is type(other) and (isinstance(one, dict | list) or bool(one == other))


def _there(value: Any, at: Path) -> Any:
    try:
        return value_at(value, at)
    except (LookupError, TypeError):
        return ...


def _is_idle(at: Path) -> bool:
    return any(
        len(parts := each.split("/")) == len(at)
        and all(part in ("*", str(token)) for part, token in zip(parts, at, strict=True))
        for each in WITHOUT_EFFECT
    )


def test_the_view_has_all_that_rules_read() -> None:
    for pod in (*recorded()[::15], *of_corpus(), *HOSTILE.values()):
        for way in ways():
            for place in unseen(pod, way):
                pytest.fail(ADVICE.format(place))


@given(pods(), clusters())
def test_the_view_has_all_that_rules_read_of_drawn_pods(pod: Raw, cluster: Cluster) -> None:
    way = Ways(cluster.context.settings, cluster.context.inventory)

    assert unseen(owned(pod), way) == []


def reading(read: Callable[[Any], object]) -> Any:
    """A rule that finds what it reads."""

    def check(pod: Any, cx: Any) -> Iterator[Finding]:  # noqa: ARG001
        yield Finding("GPU901", pod.spec_at, f"it has {read(pod)}")

    return MadeRule("made", "GPU901", Facts(Stage.REPAIR), check)


@pytest.mark.parametrize(
    ("place", "read"),
    [
        ("/spec/containers/0/args", lambda pod: pod.containers[0].raw.get("args")),
        ("/spec/hostname", lambda pod: pod.spec.get("hostname")),
        ("/metadata/labels/app", lambda pod: pod.metadata.get("labels", {}).get("app")),
        ("/metadata/name", lambda pod: pod.metadata.get("name")),
        ("/status", lambda pod: pod.raw.get("status")),
        ("/spec/volumes/0/emptyDir", lambda pod: pod.volumes()[0][1].get("emptyDir")),
    ],
)
def test_a_rule_that_reads_what_is_left_out_is_found(
    place: str, read: Callable[[Any], object]
) -> None:
    """And it never gives a pod what is another's: it sees nothing there, in any pod."""
    pod = replica(volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1"}}], hostname="a")
    pod["spec"]["containers"][0]["args"] = ["--secret"]
    pod = owned(pod, name="a", labels={"app": "a"}) | {"status": {}}
    way = Ways(Settings(), None, (*RULES, reading(read)))

    assert place in unseen(pod, way)
    assert b"secret" not in _answered(way._decider, "/mutate", dump(review(pod)))[0]
    with pytest.raises(AssertionError):
        way.check(pod)


def test_a_patch_that_does_not_fit_the_very_pod_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A view with something that the pod has not: the pod is judged whole."""
    real = view._container
    monkeypatch.setattr(view, "_container", lambda c, token: {"env": [], **real(c, token)})

    def check(pod: Any, cx: Any) -> Iterator[Finding]:  # noqa: ARG001
        at = pod.containers[0].at / "env"
        if "env" in pod.containers[0].raw:
            yield Finding("GPU901", at, "more", (Append(at, {"name": "a"}),))

    way = Ways(Settings(), None, (*RULES, MadeRule("made", "GPU901", Facts(Stage.REPAIR), check)))
    for _ in range(2):
        way.check(replica())
