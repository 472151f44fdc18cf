"""/validate and /guard: who is refused, who is told, and what is counted."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile.wire import review
from webhook.admission.decide import PATHS, Decider, Early
from webhook.admission.review import dump, parse
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.rules import GUARD, POLICY, RULES
from webhook.serving.asgi import LATE
from webhook.settings import file as settings_file
from webhook.telemetry.logs import Log
from webhook.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.admission.review import Review
    from webhook.telemetry.metrics import Decision

GPU = "nvidia.com/gpu"
NODES = Inventory(
    (NodeClass({}, gpus={GPU: 8}, nodes=("a", "b")),),
    namespaces={"left-alone": {"gpu-webhook.dev/ignore": "true"}, "strict": {"tier": "strict"}},
)
SETTINGS = """
policy:
  overrides:
  - labels: {tier: strict}
    rules: {GPU301: enforce, GPU304: enforce, GPU303: enforce}
  - namespaces: [silent]
    mode: audit
  - namespaces: [nothing]
    mode: 'off'
  exceptions:
  - rules: [GPU301]
    namespaces: [strict]
capacity:
  limits:
  - gpus: {nvidia.com/gpu: 4}
"""
STRICT, USUAL = "strict", "usual"


class Counted(Metrics):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[Decision] = []
        self.reviews: list[tuple[str, str]] = []

    def review(self, path: str, outcome: str, seconds: float) -> None:
        assert seconds > 0
        self.reviews.append((path, outcome))

    def decided(self, decisions: Iterable[Decision]) -> None:
        self.decisions += decisions


class Court:
    """Answers by these settings, nodes and rules."""

    def __init__(
        self,
        *,
        fresh: bool = True,
        settings: str = SETTINGS,
        known_until: float = inf,
        nodes: Inventory = NODES,
    ) -> None:
        self.metrics = Counted()
        self._decider = Decider(
            RULES,
            settings_file.parse(settings),
            nodes,
            Log(os.open(os.devnull, os.O_WRONLY)),
            policy=POLICY,
            guards=GUARD,
            metrics=self.metrics,
            fresh=fresh,
            known_until=lambda: known_until,
        )

    def judge(
        self,
        what: Any,
        namespace: str,
        *,
        may_wait: bool = True,
        path: str = "/validate",
        **request: Any,
    ) -> dict[str, Any]:
        road = partial(self._decider.answer, path, moment=ARRIVED, may_wait=may_wait)
        return self._ask(road, what, namespace, request)

    def validate(self, what: Any, namespace: str, **request: Any) -> dict[str, Any]:
        return self._ask(partial(self._decider.answer, "/validate"), what, namespace, request)

    def guard(self, what: Any, namespace: str, **request: Any) -> dict[str, Any]:
        return self._ask(partial(self._decider.answer, "/guard"), what, namespace, request)

    def refuse(self, what: Any, namespace: str, **request: Any) -> dict[str, Any]:
        return self._ask(partial(self._decider.answer, "/guard/refuse"), what, namespace, request)

    def mutate(self, what: Any, namespace: str, **request: Any) -> dict[str, Any]:
        return self._ask(partial(self._decider.answer, "/mutate"), what, namespace, request)

    def late(self, path: str, seen: Review) -> bytes:
        return self._decider.late(path, LATE, seen)

    @staticmethod
    def _ask(road: Any, what: Any, namespace: str, request: dict[str, Any]) -> dict[str, Any]:
        sent = parse(dump(review(what, namespace=namespace, **request)))
        answer: dict[str, Any] = json.loads(road(sent))["response"]
        return answer


def asking(amount: int, name: str = GPU, **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"limits": {name: str(amount)}}}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec}


def deployment(pod: dict[str, Any], replicas: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """The object, and what the request says of its kind."""
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": replicas, "template": {"metadata": {}, "spec": pod["spec"]}},
    }
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    resource = {"group": "apps", "version": "v1", "resource": "deployments"}
    return obj, {"kind": kind, "resource": resource}


MIRROR = {"kubernetes.io/config.mirror": "abc"}
KUBELET = {"userInfo": {"username": "system:node:a", "groups": ["system:nodes"]}}
TENANT = {"userInfo": {"username": "alice", "groups": ["system:authenticated"]}}
WINDOWS = {"kubernetes.io/os": "windows"}


@pytest.mark.parametrize(
    ("made", "request_", "refused"),
    [
        pytest.param(asking(5), TENANT, True, id="five of four"),
        pytest.param(asking(5, annotations=MIRROR), TENANT, True, id="a tenant's mirror pod"),
        pytest.param(asking(5, annotations=MIRROR), {}, True, id="a mirror pod of nobody"),
        pytest.param(
            asking(5, annotations=MIRROR),
            {"userInfo": {"groups": "system:nodes"}},
            True,
            id="a mirror pod of groups that are no list",
        ),
        pytest.param(asking(5, annotations=MIRROR), KUBELET, False, id="a kubelet's mirror pod"),
        pytest.param(asking(5), KUBELET, True, id="a kubelet's other pod"),
    ],
)
def test_only_a_kubelet_makes_mirror_pods(
    made: dict[str, Any],
    request_: dict[str, Any],
    refused: bool,  # noqa: FBT001
) -> None:
    assert Court().validate(made, STRICT, **request_)["allowed"] is not refused


@pytest.mark.parametrize(
    "spec", [{"os": {"name": "windows"}}, {"nodeSelector": WINDOWS}], ids=["os", "nodeSelector"]
)
def test_a_limit_counts_pods_for_windows_and_capacity_does_not(spec: dict[str, Any]) -> None:
    """The scheduler does not look at `spec.os`: such a pod would hold the GPUs of its node."""
    made = asking(9)
    made["spec"] |= spec
    answer = Court().validate(made, STRICT)
    assert answer["allowed"] is False
    line, _ = answer["status"]["message"].splitlines()
    assert line.startswith("GPU304: requests 9 nvidia.com/gpu")


def test_a_denial_names_all_its_reasons_a_line_each() -> None:
    court = Court()
    answer = court.validate(asking(9), STRICT)
    assert answer["allowed"] is False
    assert answer["status"]["code"] == 403
    above, never, _ = answer["status"]["message"].splitlines()
    assert above.startswith("GPU304: requests 9 nvidia.com/gpu")
    assert never.startswith("GPU301: requests 9 nvidia.com/gpu")
    assert never.endswith("[enforce: denied]")
    assert "warnings" not in answer
    assert answer["auditAnnotations"] == {"gpu301": "enforce: denied", "gpu304": "enforce: denied"}
    assert court.metrics.decisions == [
        ("GPU304", "enforce", "denied"),
        ("GPU301", "enforce", "denied"),
    ]
    assert court.metrics.reviews == [("/validate", "denied")]


@pytest.mark.parametrize(
    ("namespace", "warned", "outcome"),
    [
        pytest.param(USUAL, 2, "reported", id="by default the user is warned"),
        pytest.param("silent", 0, "audited", id="audit: nobody is told"),
        pytest.param("nothing", 0, "passed", id="off"),
        pytest.param("left-alone", 0, "passed", id="the namespace opted out"),
    ],
)
def test_a_pod_that_is_let_in(namespace: str, warned: int, outcome: str) -> None:
    court = Court()
    answer = court.validate(asking(9), namespace)
    assert answer["allowed"] is True
    assert len([text for text in answer.get("warnings", []) if text.startswith("GPU")]) == warned
    assert court.metrics.reviews == [("/validate", outcome)]


def test_an_exception_is_silent_and_on_record() -> None:
    court = Court(settings=SETTINGS.replace("nvidia.com/gpu: 4", "nvidia.com/gpu: 40"))
    reason = {"gpu-webhook.dev/allow.GPU301": "a new node comes tonight"}
    answer = court.validate(asking(9, annotations=reason), STRICT)
    assert answer["allowed"] is True
    assert "warnings" not in answer
    assert answer["auditAnnotations"] == {"gpu301": "enforce: excepted (a new node comes tonight)"}
    assert court.metrics.reviews == [("/validate", "excepted")]


def test_a_stale_inventory_denies_nothing_but_what_the_settings_know() -> None:
    answer = Court(fresh=False).validate(asking(9), STRICT)
    assert [line[:6] for line in answer["status"]["message"].splitlines()][:-1] == ["GPU304"]


ARRIVED = 100.0
OF_CAPACITY = SETTINGS.replace("GPU304: enforce, ", "").replace("gpu: 4", "gpu: 40")


@pytest.mark.parametrize(
    ("settings", "known_until", "gpus", "namespace", "waits", "outcome"),
    [
        pytest.param(OF_CAPACITY, 99.0, 9, STRICT, True, "reported", id="older: it waits"),
        pytest.param(OF_CAPACITY, 100.0, 9, STRICT, False, "denied", id="as new: denied at once"),
        pytest.param(OF_CAPACITY, inf, 9, STRICT, False, "denied", id="of a file: denied at once"),
        pytest.param(OF_CAPACITY, 0.0, 8, STRICT, False, "", id="it fits: admitted at once"),
        pytest.param(OF_CAPACITY, 0.0, 9, USUAL, False, "reported", id="a warning: at once"),
        pytest.param(OF_CAPACITY, 0.0, 9, "silent", False, "audited", id="audit: at once"),
        pytest.param(SETTINGS, 0.0, 9, STRICT, False, "denied", id="above a limit too: at once"),
        pytest.param(SETTINGS, 0.0, 8, STRICT, False, "denied", id="above a limit: at once"),
    ],
)
def test_only_a_denial_for_capacity_waits_for_a_newer_inventory(
    *, settings: str, known_until: float, gpus: int, namespace: str, waits: bool, outcome: str
) -> None:
    court = Court(settings=settings, known_until=known_until)
    if waits:
        with pytest.raises(Early):
            court.judge(asking(gpus), namespace)
        assert not court.metrics.reviews, "it is counted once: with its answer"
    else:
        court.judge(asking(gpus), namespace)
    answer = court.judge(asking(gpus), namespace, may_wait=False)
    assert answer["allowed"] is (outcome != "denied")
    times = 0 if not outcome else 1 if waits else 2
    assert [came for _, came in court.metrics.reviews if came != "passed"] == [outcome] * times
    if waits:
        assert "[not denied: the nodes may have changed just now]" in answer["warnings"][0]


OF_NOBODY = replace(NODES, watched=True)
OF_A_WATCHER = replace(OF_NOBODY, whitelists={USUAL: "", STRICT: ""})


@pytest.mark.parametrize(
    ("nodes", "known_until", "namespace", "waits"),
    [
        pytest.param(OF_A_WATCHER, 99.0, "new", True, id="not received: it waits"),
        pytest.param(OF_A_WATCHER, 100.0, "new", False, id="not there: answered at once"),
        pytest.param(OF_A_WATCHER, 0.0, USUAL, False, id="received: answered at once"),
        pytest.param(OF_NOBODY, 0.0, "new", False, id="no right to list namespaces: at once"),
        pytest.param(NODES, 0.0, "new", False, id="of a file: at once"),
    ],
)
@pytest.mark.parametrize("path", PATHS)
def test_a_review_of_a_namespace_that_the_watcher_has_not_received_waits_for_it(
    *, nodes: Inventory, known_until: float, namespace: str, waits: bool, path: str
) -> None:
    court = Court(known_until=known_until, nodes=nodes)
    if waits:
        with pytest.raises(Early):
            court.judge(asking(1), namespace, path=path)
        assert not court.metrics.reviews, "it is counted once: with its answer"
    else:
        court.judge(asking(1), namespace, path=path)
    assert court.judge(asking(1), namespace, may_wait=False, path=path)["allowed"]


BY_LABEL = """
policy:
  overrides:
  - labels: {tier: free}
    rules: {GPU304: enforce, GPU303: enforce, GPU101: off}
capacity: {limits: [{gpus: {nvidia.com/gpu: 4}}]}
"""


@pytest.mark.parametrize(
    ("known_until", "namespace", "strict"),
    [
        pytest.param(99.0, "new", True, id="not received in time: the label may be there"),
        pytest.param(100.0, "new", False, id="not there: it has no labels"),
        pytest.param(90.0, "new", False, id="the watcher has stopped: nothing is put in force"),
        pytest.param(99.0, USUAL, False, id="received: its labels are known"),
    ],
)
def test_where_the_labels_are_not_known_in_time_what_they_may_put_in_force_is(
    *, known_until: float, namespace: str, strict: bool
) -> None:
    court = Court(settings=BY_LABEL, known_until=known_until, nodes=OF_A_WATCHER)

    def ask(path: str, pod: Any) -> Any:
        return court.judge(pod, namespace, may_wait=False, path=path)

    many = ask("/validate", asking(9))
    assert many["allowed"] is not strict
    assert ("not known yet" in str(many.get("status"))) is strict
    assert ask("/validate", asking(4))["allowed"], "within the limit"
    assert ("patch" in ask("/guard", asking(0))) is strict
    assert ask("/guard/refuse", asking(0))["allowed"] is not strict
    huge = asking(0)
    huge["metadata"]["annotations"] = {"a": "x" * 300_000}
    assert ask("/guard/refuse", huge)["allowed"] is (not strict)
    legacy = asking(1, "alpha.kubernetes.io/nvidia-gpu")
    assert "patch" in ask("/mutate", legacy), "a repair takes nothing away"


def test_what_the_webhook_does_not_handle_does_not_wait_for_its_namespace() -> None:
    court = Court(known_until=0.0, nodes=OF_A_WATCHER)
    assert court.judge({"apiVersion": "v1", "kind": "ConfigMap"}, "new")["allowed"]


def test_a_workload_of_a_known_namespace_waits_for_nothing() -> None:
    what, request = deployment(asking(9))
    answer = Court(settings=OF_CAPACITY, known_until=0.0).judge(what, STRICT, **request)
    assert answer["warnings"][0].endswith(f"[its pods WILL BE REFUSED in namespace {STRICT}]")


def test_the_ignore_label_of_a_pod_is_for_repairs_only() -> None:
    ignoring = {"gpu-webhook.dev/ignore": "true"}
    legacy = asking(1, "alpha.kubernetes.io/nvidia-gpu", labels=ignoring)
    assert Court().mutate(legacy, USUAL).keys() == {"uid", "allowed"}
    assert Court().validate(asking(9, labels=ignoring), STRICT)["allowed"] is False


def test_nothing_is_repaired_in_a_namespace_that_opted_out() -> None:
    legacy = asking(1, "alpha.kubernetes.io/nvidia-gpu")
    assert Court().mutate(legacy, "left-alone").keys() == {"uid", "allowed"}
    assert Court().guard(asking(0), "left-alone").keys() == {"uid", "allowed"}


def test_a_repair_in_audit_mode_is_counted_and_nothing_else() -> None:
    court = Court()
    answer = court.mutate(asking(1, "alpha.kubernetes.io/nvidia-gpu"), "silent")
    assert answer == {
        "uid": answer["uid"],
        "allowed": True,
        "auditAnnotations": {"gpu101": "audit: would repair"},
    }
    assert court.metrics.reviews == [("/mutate", "audited")]


def test_a_workload_is_warned_of_and_never_refused() -> None:
    obj, request = deployment(asking(9), replicas=3)
    court = Court()
    answer = court.validate(obj, STRICT, **request)
    assert answer["allowed"] is True
    assert sorted(text[:6] for text in answer["warnings"][:-1]) == [
        "GPU301",
        "GPU304",
        "GPU305",
    ]
    assert court.metrics.reviews == [("/validate", "reported")]


@pytest.mark.parametrize(
    ("settings", "patched"),
    [
        pytest.param(SETTINGS, False, id="left as it was written, by default"),
        pytest.param(f"{SETTINGS}\nworkloads: {{repair: true}}", True, id="where the settings ask"),
    ],
)
def test_a_template_is_repaired(settings: str, patched: bool) -> None:  # noqa: FBT001
    obj, request = deployment(asking(1, "alpha.kubernetes.io/nvidia-gpu"))
    assert ("patch" in Court(settings=settings).mutate(obj, USUAL, **request)) is patched


def test_the_guard_acts_where_it_is_in_force() -> None:
    court = Court()
    plain = asking(0)
    assert "patch" in court.guard(plain, STRICT)
    assert court.guard(plain, USUAL)["auditAnnotations"] == {"gpu303": "audit: would repair"}
    assert "patch" not in court.guard(plain, USUAL)
    assert court.metrics.reviews[0] == ("/guard", "patched")


ALL = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}


def showing(times: int = 1, containers: int = 0) -> dict[str, Any]:
    """A pod without GPUs that says `all` so many times, with so many init containers."""
    made = asking(0)
    made["spec"]["containers"][0]["env"] = [ALL] * times
    made["spec"]["initContainers"] = [
        {"name": f"i{number}", "image": "i", "env": [ALL] * 9} for number in range(containers)
    ]
    return made


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(showing(1800), id="1,800 times the variable"),
        pytest.param(showing(1, 990), id="990 containers"),
        pytest.param(showing(8_000), id="as many as the budget has room for"),
    ],
)
def test_no_pod_is_too_large_for_the_guard(made: dict[str, Any]) -> None:
    answer = Court().guard(made, STRICT)
    (first, *_) = json.loads(base64.b64decode(answer["patch"]))
    assert first["path"].startswith("/spec/")
    assert all("admitted without" not in text for text in answer["warnings"])


@pytest.mark.parametrize("times", [1, 8, 9, 8_000])
def test_a_patch_of_the_guard_has_no_operation_for_each_entry(times: int) -> None:
    answer = Court().guard(showing(times), STRICT)
    assert len(json.loads(base64.b64decode(answer["patch"]))) <= 9


def test_what_the_guard_left_is_refused_where_it_is_in_force() -> None:
    court = Court()
    answer = court.refuse(showing(), STRICT)
    assert answer["allowed"] is False
    assert answer["status"]["code"] == 403
    assert answer["status"]["message"] == (
        "GPU303: container c requests no GPU: set its env NVIDIA_VISIBLE_DEVICES to void, once; "
        "with anything else, or nothing, it may see all GPUs of its node [enforce: denied]\n"
        "More: `gpu-webhook explain GPU303`"
    )
    assert answer["auditAnnotations"] == {"gpu303": "enforce: denied"}
    assert court.metrics.reviews == [("/guard/refuse", "denied")]
    assert court.metrics.decisions == [("GPU303", "enforce", "denied")]


@pytest.mark.parametrize("namespace", [USUAL, "silent", "nothing", "left-alone"])
def test_nothing_is_refused_or_said_elsewhere(namespace: str) -> None:
    assert Court().refuse(showing(), namespace).keys() == {"uid", "allowed"}


def test_a_safe_pod_passes_the_refusing_half_as_it_is() -> None:
    made = asking(0)
    made["spec"]["containers"][0]["env"] = [ALL | {"value": "void"}]
    assert Court().refuse(made, STRICT).keys() == {"uid", "allowed"}
    assert Court().refuse(asking(1), STRICT).keys() == {"uid", "allowed"}


def test_a_denial_of_many_containers_names_the_first_few() -> None:
    lines = Court().refuse(showing(1, 900), STRICT)["status"]["message"].splitlines()
    assert len(lines) == 12
    assert lines[-2] == "and 891 more"


HALF = {"gpu-fraction": "0.5"}


def waiting(
    annotations: Any, *more: Any, scheduler: str = "kai-scheduler", **spec: Any
) -> dict[str, Any]:
    """A pod whose part of a GPU stands in annotations, and the variable in a ConfigMap."""
    made = asking(0, annotations=annotations)
    from_config = {"name": ALL["name"], "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
    made["spec"]["containers"][0]["env"] = [from_config]
    made["spec"]["containers"] += more
    made["spec"] |= {"schedulerName": scheduler, **spec}
    return made


@pytest.mark.parametrize(
    ("sent", "stored", "namespace", "denied"),
    [
        pytest.param(waiting({}), waiting(HALF), STRICT, True, id="the annotation goes"),
        pytest.param(waiting(None), waiting(HALF), STRICT, True, id="all annotations go"),
        pytest.param(
            waiting({"gpu-fraction": "0"}), waiting(HALF), STRICT, True, id="a part of nothing"
        ),
        pytest.param(
            waiting({"gpu-fraction": "no"}), waiting(HALF), STRICT, True, id="no amount any more"
        ),
        pytest.param(
            waiting({}), waiting({"gpu-memory": "10"}), STRICT, True, id="the other annotation goes"
        ),
        pytest.param(
            waiting({}),
            waiting(HALF, schedulingGates=[{"name": "a/b"}]),
            STRICT,
            True,
            id="a gate goes with it",
        ),
        *(
            pytest.param(
                waiting({**HALF, key: text}), waiting(HALF), STRICT, True, id=f"{key}: {text} comes"
            )
            for key, text in (
                ("gpu-memory", "x"),
                ("gpu-memory", "0"),
                ("gpu-memory", ""),
                ("gpu-fraction-num-devices", "0"),
                ("nvidia.com/mig-1g.5gb", "0"),
            )
        ),
        pytest.param(
            waiting({**HALF, "gpu-fraction-num-devices": "2"}),
            waiting(HALF),
            STRICT,
            False,
            id="a second device comes",
        ),
        pytest.param(
            waiting({"gpu-fraction": "0.7"}), waiting(HALF), STRICT, False, id="another part"
        ),
        pytest.param(
            waiting({"gpu-memory": "10"}), waiting(HALF), STRICT, False, id="the other annotation"
        ),
        pytest.param(
            waiting({}, nodeName="n"),
            waiting(HALF, nodeName="n"),
            STRICT,
            False,
            id="it has its node: the part was given",
        ),
        pytest.param(
            waiting({}, scheduler="other"),
            waiting(HALF, scheduler="other"),
            STRICT,
            False,
            id="it was open before",
        ),
        pytest.param(
            waiting({"gpu-fraction": "0.7"}, {"name": "old", "image": "i"}),
            waiting(HALF, {"name": "old", "image": "i"}),
            STRICT,
            False,
            id="another container was open before",
        ),
        pytest.param(waiting({}), waiting(HALF), USUAL, False, id="the guard audits"),
        pytest.param(waiting({}), waiting(HALF), "left-alone", False, id="left alone"),
    ],
)
def test_an_update_that_opens_a_waiting_pod_is_refused(
    sent: Any, stored: Any, namespace: str, *, denied: bool
) -> None:
    """Until a scheduler gives the part of a GPU, whoever made the pod may take its sign away."""
    for subresource in ("", "status"):
        more: Any = {"operation": "UPDATE", "oldObject": stored, "subResource": subresource}
        answer = Court().refuse(sent, namespace, **more)
        assert answer["allowed"] is not denied
        if denied:
            assert "GPU303: container c requests no GPU" in answer["status"]["message"]
        assert "patch" not in Court().guard(sent, namespace, **(more | {"subResource": "status"}))
    assert Court().refuse(stored, namespace, operation="UPDATE", oldObject=sent)["allowed"] is True


def test_an_update_that_opens_a_pod_is_refused_whatever_its_size() -> None:
    many = [{"name": f"c{number}", "image": "i"} for number in range(9000)]
    large, stored = waiting({}, *many), waiting(HALF, *many)
    answer = Court().refuse(large, STRICT, operation="UPDATE", oldObject=stored)
    assert "could not check this pod" in answer["status"]["message"]
    assert Court().guard(large, STRICT, operation="UPDATE", oldObject=stored)["allowed"] is True


def test_the_refusing_half_judges_what_a_debugger_adds() -> None:
    def debugged(*names: str) -> dict[str, Any]:
        pod = asking(0)
        pod["spec"]["ephemeralContainers"] = [{"name": name, "image": "i"} for name in names]
        return pod

    request = {"operation": "UPDATE", "subResource": "ephemeralcontainers"}
    old = debugged("old")
    answer = Court().refuse(debugged("old", "new"), STRICT, oldObject=old, **request)
    assert answer["status"]["message"].count("container new requests no GPU") == 1
    assert Court().refuse(old, STRICT, oldObject=old, **request)["allowed"] is True


def test_the_guard_touches_only_what_a_debugger_adds() -> None:
    def debugged(*names: str) -> dict[str, Any]:
        pod = asking(0)
        pod["spec"]["ephemeralContainers"] = [{"name": name, "image": "i"} for name in names]
        return pod

    answer = Court().guard(
        debugged("old", "new"),
        STRICT,
        operation="UPDATE",
        subResource="ephemeralcontainers",
        oldObject=debugged("old"),
    )
    (operation,) = json.loads(base64.b64decode(answer["patch"]))
    assert operation["path"].startswith("/spec/ephemeralContainers/1/env")
    assert Court().validate(asking(9), STRICT, operation="UPDATE")["allowed"] is True
