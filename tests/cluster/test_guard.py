"""The leak guard (GPU303) behind its own entry, in namespaces that ask for it."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import yaml

from tests.cluster.client import Refused, until
from tests.cluster.pods import ALPHA, NVIDIA, container, limits_of, modern, named, pod
from tests.cluster.scheduling import leave
from tests.cluster.webhook import (
    ROOT,
    Endpoint,
    Recorder,
    WebhookServer,
    failed_open,
    kustomized,
    pointed_at,
    shipped,
)
from webhook.core.modes import Mode, modes_for
from webhook.rules import leak_guard
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.client import Answer, Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Call

GUARD = ROOT / "manifests" / "guard"
REFUSING = ROOT / "manifests" / "guard-refuse"
PAGE = (ROOT / "docs" / "guard.md").read_text()
VARIABLE = "NVIDIA_VISIBLE_DEVICES"
VOID = {"name": VARIABLE, "value": "void"}
ALL = {"name": VARIABLE, "value": "all"}
HOME = {"name": "HOME", "value": "/root"}
FROM_SECRET = {"name": VARIABLE, "valueFrom": {"secretKeyRef": {"name": "gpus", "key": "list"}}}
MODES = ("off", "audit", "warn", "enforce")
SETTINGS = {
    "policy": {
        "overrides": [
            {"namespaces": [f"guard-{mode}-*"], "rules": {"GPU303": mode}} for mode in MODES
        ]
    },
    "guard": {"exempt": [{"labels": {"app": "dcgm-exporter"}}]},
}


NODES = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": allocatable},
    }
    for name, allocatable in {
        "gpu-1": {NVIDIA: "8", "aliyun.com/gpu-mem": "80"},
        "net-1": {"nvidia.com/hostdev": "8"},
    }.items()
]


@pytest.fixture(scope="module")
def recorder(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    """A server whose namespaces have the mode that stands in their names."""
    folder = tmp_path_factory.mktemp("guard")
    settings = folder / "settings.yaml"
    settings.write_text(yaml.safe_dump(SETTINGS))
    inventory = folder / "nodes.yaml"
    inventory.write_text(yaml.safe_dump_all(NODES))
    arguments = [f"--config={settings}", f"--inventory={inventory}"]
    server = WebhookServer(folder, cluster.authority, arguments)
    with server, Recorder(server) as running:
        yield running


@pytest.fixture(scope="module")
def asking(cluster: ControlPlane) -> str:
    """A namespace that requests the guard, to see by when the API server calls it."""
    return cluster.make_namespace("guard-enforce-probe", {"gpu-webhook.dev/guard": "enabled"})


@pytest.fixture
def guard(cluster: ControlPlane, recorder: Recorder, asking: str) -> Iterator[Recorder]:
    """Register what manifests/guard holds; it is in force during the test."""
    with registered(cluster, recorder, asking):
        before = failed_open(cluster)
        yield recorder
        assert failed_open(cluster) == before, cluster.failed_calls()[-3:]


@contextmanager
def registered(cluster: ControlPlane, recorder: Recorder, asking: str) -> Iterator[None]:
    def is_called() -> bool:
        probe = cluster.client.try_create(named(pod(), "probe"), asking, dry_run=True)
        return probe.ok and env_of(probe.body["spec"]["containers"][0]) == [VOID]

    [shape] = kustomized(cluster, GUARD)
    configuration = pointed_at(shape, recorder.endpoint.port, recorder.endpoint.bundle)
    cluster.client.create(configuration)
    try:
        until(is_called, "the guard to be called")
        yield
    finally:
        cluster.client.delete(configuration["kind"], configuration["metadata"]["name"])
    until(lambda: not is_called(), "the guard to be forgotten")


@pytest.fixture
def team(cluster: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """Make namespaces of the test's own; the mode of the guard stands in the name."""
    made: list[str] = []

    def make(mode: str, **labels: str) -> str:
        name = f"guard-{mode}-{len(made)}-{zlib.crc32(request.node.nodeid.encode())}"
        wanted = {"gpu-webhook.dev/guard": "enabled"} | {
            f"gpu-webhook.dev/{key}": value for key, value in labels.items()
        }
        made.append(
            cluster.make_namespace(name, {key: text for key, text in wanted.items() if text})
        )
        return name

    yield make
    for name in made:
        leave(cluster.client, name)


def env_of(made: Json) -> list[Json]:
    env: list[Json] = made.get("env", [])
    return env


def envs(what: Json) -> list[list[Json]]:
    """The variables of each container, init containers first."""
    spec = what["spec"]
    return [env_of(each) for each in [*spec.get("initContainers", []), *spec["containers"]]]


EXPLAIN = "gpu-webhook: `gpu-webhook explain CODE` explains each code"


def warnings_of(answer: Answer) -> list[str]:
    """What was said but for the last line, which is always the same."""
    if not answer.warnings:
        return []
    *texts, last = answer.warnings
    assert last == EXPLAIN
    return texts


def patch_of(call: Call) -> list[Json]:
    patch: list[Json] = orjson.loads(base64.b64decode(call.response["patch"]))
    return patch


def claiming() -> Json:
    """A pod whose container has a claim; of what, nobody looks at."""
    made = pod({**container(env=[ALL]), "resources": {"claims": [{"name": "nic"}]}})
    made["spec"] |= {"resourceClaims": [{"name": "nic", "resourceClaimName": "empty"}]}
    return made


FROM_CONFIG = {
    "name": VARIABLE,
    "valueFrom": {"configMapKeyRef": {"name": "gpus", "key": "visible"}},
}


def wanting(name: str, amount: object = 1, env: Json = ALL, **spec: Any) -> Json:
    return pod(container(limits={name: amount}, env=[env]), **spec)


def unasked(name: str, limit: object = 1, **spec: Any) -> Json:
    """A limit below which the request is 0: the scheduler counts nothing."""
    return pod(container(limits={name: limit}, requests={name: 0}, env=[ALL]), **spec)


def fraction(env: Json = FROM_CONFIG, said: Json | None = None, **spec: Any) -> Json:
    annotations = {"gpu-fraction": "0.5"} if said is None else said
    return pod(
        container(env=[env]), annotations=annotations, **{"schedulerName": "kai-scheduler", **spec}
    )


ESCAPES = {
    "gdup: 1,800 times the variable": pod(container(env=[ALL] * 1800)),
    "gdup beside other variables": pod(container(env=[HOME, *[ALL] * 1800])),
    "gbig: 900 init containers": pod(
        initContainers=[container(f"i{number}") for number in range(900)]
    ),
    "500 init containers that say it nine times": pod(
        initContainers=[container(f"i{number}", env=[ALL] * 9) for number in range(500)]
    ),
    "gclaim: a claim of nothing": claiming(),
    "gvendor: a name of nvidia.com that its node has not": wanting(
        "nvidia.com/nope", nodeName="gpu-1"
    ),
    "gmig: a slice that its node has not": wanting("nvidia.com/mig-nope", nodeName="gpu-1"),
    "GPUs that its node has not": wanting(NVIDIA, nodeName="net-1"),
    "GPUs of a node that nobody knows": wanting(NVIDIA, nodeName="no-such"),
    "a share that its node has not": wanting("volcano.sh/vgpu-number", nodeName="gpu-1"),
    "a network card that its node has not": wanting("nvidia.com/hostdev", nodeName="gpu-1"),
    "a network card that no node has": wanting("nvidia.com/roce"),
    "2^64 GPUs, none to the scheduler": wanting(NVIDIA, str(2**64)),
    "2^64 shares": wanting("aliyun.com/gpu-mem", str(2**64)),
    "10^400 + 8 slices": wanting("nvidia.com/mig-1g.5gb", str(10**400 + 8)),
    "four quarters of 2^64": pod(
        *(container(n, limits={"x.io/gpu": str(2**62)}, env=[ALL]) for n in "abcd")
    ),
    "request 0 of a native name, which a device plugin cannot offer": unasked("kubernetes.io/gpu"),
    "the same with a node": unasked("kubernetes.io/gpu", nodeName="gpu-1"),
    "the same of a fraction": unasked("x.kubernetes.io/cuda", "0.0001"),
    "the same in init containers": pod(
        container(env=[ALL]),
        initContainers=[
            container("i", {"kubernetes.io/gpu": 1}, {"kubernetes.io/gpu": 0}, env=[ALL]),
            container(
                "s",
                {"kubernetes.io/gpu": 1},
                {"kubernetes.io/gpu": "0.0"},
                env=[ALL],
                restartPolicy="Always",
            ),
        ],
    ),
    "a native name that is requested": wanting("kubernetes.io/gpu"),
    "request 0 of the legacy name, which nobody renamed": unasked(ALPHA),
    "the legacy name with a node": unasked(ALPHA, nodeName="gpu-1"),
    "the legacy name, which nobody renamed": wanting(ALPHA),
    "the same and its author's void": wanting(ALPHA, env=VOID),
    "no share": wanting("volcano.sh/vgpu-number", 0),
    "a fraction on a node of its choice": fraction(nodeName="gpu-1"),
    "a fraction without a scheduler for it": fraction(schedulerName="default-scheduler"),
    "a fraction and its own value": fraction(ALL),
    "a fraction and a Secret": fraction(FROM_SECRET),
    "a fraction and an annotation of a slice": fraction(
        said={"gpu-fraction": "0.5", "nvidia.com/mig-1g.5gb": "0"}
    ),
    "a fraction of no device": fraction(
        said={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}
    ),
    "a fraction that is rounded to nothing": fraction(said={"gpu-fraction": "0.004"}),
    "more memory than an int64": fraction(said={"gpu-memory": str(2**63)}),
    "a ConfigMap and no fraction": pod(container(env=[FROM_CONFIG])),
}


@pytest.mark.parametrize("what", ESCAPES.values(), ids=ESCAPES)
def test_no_way_around_the_guard(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder, what: Json
) -> None:
    namespace = team("enforce")

    answer = cluster.client.create(named(what, "sly"), namespace)

    stored = cluster.client.get("Pod", "sly", namespace)
    shown = [[each for each in env if each["name"] == VARIABLE] for env in envs(stored)]
    assert shown == [[VOID]] * len(shown)
    assert all("GPU303" in warning for warning in warnings_of(answer))
    assert len(guard.calls(namespace, "sly")) == 1


def test_a_pod_that_is_too_large_to_be_judged_is_refused(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    inits = [container(f"i{number}", env=[ALL] * 9) for number in range(900)]
    large = named(pod(initContainers=inits), "sly")
    enforced, counted = team("enforce"), team("audit")

    refused = cluster.client.try_create(large, enforced)

    assert refused.status == 403
    assert "GPU303 is in force here and could not check this pod" in refused.message
    assert len(guard.calls(enforced, "sly")) == 1
    cluster.client.create(large, counted)


LEFT_ALONE = {
    name: wanting(name)
    for name in (
        "volcano.sh/vgpu-number",
        "aliyun.com/gpu-mem",
        "tencent.com/vcuda-core",
        "k8s.amazonaws.com/vgpu",
        "amd.com/gpu",
        "nvidia.com/gpumem",
        "nvidia.com/hostdev",
    )
} | {
    "a share of this node": wanting("aliyun.com/gpu-mem", nodeName="gpu-1"),
    "a fraction by KAI": fraction(),
}


@pytest.mark.parametrize("what", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_a_part_of_a_gpu_is_left_alone_with_a_notice(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder, what: Json
) -> None:
    namespace = team("enforce")
    before = env_of(what["spec"]["containers"][0])

    answer = cluster.client.create(named(what, "shares"), namespace)

    assert envs(cluster.client.get("Pod", "shares", namespace)) == [before]
    (notice,) = warnings_of(answer)
    assert "is left alone" in notice
    assert "[enforce: reported]" in notice
    (call,) = guard.calls(namespace, "shares")
    assert "patch" not in call.response


@pytest.fixture
def refusing(cluster: ControlPlane, recorder: Recorder, asking: str) -> Iterator[None]:
    """The refusing half alone: as if the guard's first call had failed."""

    def is_called() -> bool:
        return not cluster.client.try_create(named(pod(), "probe"), asking, dry_run=True).ok

    [shape] = kustomized(cluster, REFUSING)
    configuration = pointed_at(shape, recorder.endpoint.port, recorder.endpoint.bundle)
    cluster.client.create(configuration)
    try:
        until(is_called, "the refusing half to be called")
        yield
    finally:
        cluster.client.delete(configuration["kind"], configuration["metadata"]["name"])
    until(lambda: not is_called(), "the refusing half to be forgotten")


@pytest.mark.usefixtures("refusing")
def test_what_the_guard_did_not_make_safe_is_refused(
    cluster: ControlPlane, team: Callable[..., str], recorder: Recorder
) -> None:
    namespace, warned, elsewhere = team("enforce"), team("warn"), team("enforce", guard="")
    shows = named(pod(container(env=[VOID, ALL])), "shows")

    refused = cluster.client.try_create(shows, namespace)

    assert refused.status == 403
    assert "GPU303: container main requests no GPU" in refused.message
    assert "[enforce: denied]" in refused.message
    for made in (
        pod(container(env=[VOID])),
        pod(modern(1)),
        fraction(),
        wanting("aliyun.com/gpu-mem"),
    ):
        cluster.client.create(named(made, "safe"), namespace)
        cluster.client.delete("Pod", "safe", namespace)
    assert "GPU303" not in str(cluster.client.create(shows, warned).warnings)
    cluster.client.create(shows, elsewhere)
    calls = recorder.all_calls()
    assert {call.is_about[0] for call in calls} & {elsewhere} == set()
    refusals = [call for call in calls if call.target.startswith("/guard/refuse")]
    assert refusals
    assert all("patch" not in call.response for call in refusals)


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("name", ["kubernetes.io/gpu", ALPHA])
def test_a_limit_that_the_scheduler_does_not_count_is_refused(
    cluster: ControlPlane, team: Callable[..., str], name: str
) -> None:
    with pytest.raises(Refused) as refused:
        cluster.client.create(named(unasked(name), "sly"), team("enforce"))
    assert "GPU303: container main requests no GPU" in refused.value.answer.message


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize(
    ("change", "refused"),
    [
        pytest.param({"metadata": {"annotations": {"gpu-fraction": None}}}, True, id="it goes"),
        pytest.param({"metadata": {"annotations": {"gpu-fraction": "0"}}}, True, id="it is 0"),
        pytest.param({"metadata": {"annotations": None}}, True, id="all annotations go"),
        *(
            pytest.param(
                {"metadata": {"annotations": {key: text}}}, True, id=f"{key}: {text} comes"
            )
            for key, text in (
                ("gpu-memory", "x"),
                ("gpu-memory", "0"),
                ("gpu-memory", ""),
                ("gpu-memory", str(2**63)),
                ("gpu-fraction-num-devices", "0"),
                ("nvidia.com/mig-1g.5gb", "0"),
            )
        ),
        pytest.param({"metadata": {"annotations": {"gpu-memory": "5"}}}, False, id="memory comes"),
        pytest.param(
            {
                "metadata": {"annotations": {"gpu-fraction": None}},
                "spec": {"schedulingGates": None},
            },
            True,
            id="it goes, and the gate",
        ),
        pytest.param({"metadata": {"annotations": {"gpu-fraction": "0.7"}}}, False, id="another"),
        pytest.param({"metadata": {"annotations": {"note": "x"}}}, False, id="another annotation"),
        pytest.param({"spec": {"schedulingGates": None}}, False, id="the gate goes"),
    ],
)
def test_a_part_of_a_gpu_cannot_be_taken_back_while_the_pod_waits(
    cluster: ControlPlane, team: Callable[..., str], change: Json, *, refused: bool
) -> None:
    namespace, elsewhere = team("enforce"), team("audit")
    waits = named(fraction(schedulingGates=[{"name": "example.com/wait"}]), "waits")
    for each in (namespace, elsewhere):
        cluster.client.create(waits, each)

    cluster.client.patch("Pod", "waits", change, elsewhere)
    for subresource in ("status", "") if "spec" not in change else ("",):
        if refused:
            with pytest.raises(Refused) as raised:
                cluster.client.patch("Pod", "waits", change, namespace, subresource=subresource)
            assert "GPU303: container main requests no GPU" in raised.value.answer.message
        else:
            cluster.client.patch("Pod", "waits", change, namespace, subresource=subresource)


READY: Json = {"type": "Ready", "status": "True", "lastTransitionTime": None}
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@pytest.mark.usefixtures("refusing")
def test_a_status_comes_to_the_webhook_only_with_annotations_of_a_waiting_pod(
    cluster: ControlPlane, team: Callable[..., str], recorder: Recorder
) -> None:
    """Kubelets and schedulers send the status of pods all the time."""
    namespace = team("enforce")
    gate = [{"name": "example.com/wait"}]
    pods = {
        "waits": fraction(schedulingGates=gate),
        "runs": fraction(VOID, nodeName="gpu-1"),
        "plain": pod(container(env=[VOID]), schedulingGates=gate),
    }
    for name, made in pods.items():
        cluster.client.create(named(made, name), namespace)

    def calls() -> int:
        made = recorder.all_calls(namespace)
        return sum(call.target.startswith("/guard/refuse") for call in made)

    before = calls()
    for name in pods:
        for condition in (READY, UNSCHEDULED):
            change: Json = {"status": {"conditions": [condition], "phase": "Pending"}}
            cluster.client.patch("Pod", name, change, namespace, subresource="status")
    for name in ("runs", "plain"):  # the kubelet's patch may have annotations; these pods hide all
        change = {"metadata": {"annotations": {"note": "x"}}, "status": {"message": "x"}}
        cluster.client.patch("Pod", name, change, namespace, subresource="status")
    assert calls() == before
    cluster.client.patch("Pod", "waits", change, namespace, subresource="status")
    assert calls() == before + 1


@pytest.mark.usefixtures("refusing")
def test_a_debugger_that_the_guard_did_not_make_safe_is_refused(
    cluster: ControlPlane, team: Callable[..., str]
) -> None:
    namespace = team("enforce")
    cluster.client.create(named(pod(container(env=[VOID])), "safe"), namespace)

    with pytest.raises(Refused) as refused:
        debug(cluster, namespace, "safe", {"name": "debugger", "image": "i", "env": [ALL]})

    assert "GPU303: container debugger requests no GPU" in refused.value.answer.message
    debug(cluster, namespace, "safe", {"name": "quiet", "image": "i", "env": [VOID]})


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("what", ESCAPES.values(), ids=ESCAPES)
def test_both_halves_let_in_what_was_made_safe(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder, what: Json
) -> None:
    namespace = team("enforce")
    cluster.client.create(named(what, "sly"), namespace)
    assert len(guard.calls(namespace, "sly")) == 1


MIXED = pod(
    container(),
    container("shows", env=[HOME, ALL, ALL]),
    modern(1, name="cuda", env=[ALL, HOME]),
    container("zero", limits={NVIDIA: 0}),
    container("secret", env=[FROM_SECRET]),
    initContainers=[container("fetch"), container("sidecar", restartPolicy="Always")],
)


def test_each_container_sees_what_it_asked_for(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    namespace = team("enforce")

    answer = cluster.client.create(named(MIXED, "mixed"), namespace)

    assert envs(answer.body) == [[VOID], [VOID], [VOID], [HOME, VOID], [HOME], [VOID], [VOID]]
    stored = cluster.client.get("Pod", "mixed", namespace)
    assert envs(stored) == envs(answer.body)
    assert len(guard.calls(namespace, "mixed")) == 1
    assert all("GPU303" in warning for warning in warnings_of(answer))
    assert any("container shows requests no GPU" in warning for warning in warnings_of(answer))


def test_what_no_variable_mends_is_told(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    namespace = team("enforce")
    around = pod(
        container(
            env=[VOID],
            securityContext={"privileged": True},
            volumeMounts=[{"name": "dev", "mountPath": "/dev/nvidia0"}],
        ),
        volumes=[{"name": "dev", "hostPath": {"path": "/dev/nvidia0"}}],
    )

    answer = cluster.client.create(named(around, "around"), namespace)

    privileged, device = warnings_of(answer)
    assert "GPU303: container main requests no GPU but is privileged" in privileged
    assert "GPU303: container main requests no GPU but mounts /dev/nvidia0" in device
    (call,) = guard.calls(namespace, "around")
    assert "patch" not in call.response


@pytest.mark.parametrize(
    ("mode", "after", "told", "audit"),
    [
        pytest.param("off", [ALL], False, None, id="off: as if it were not there"),
        pytest.param("audit", [ALL], False, "audit: would repair", id="audit: only counted"),
        pytest.param("warn", [ALL], True, "warn: would repair", id="warn: told, and unchanged"),
        pytest.param("enforce", [VOID], True, "enforce: repaired", id="enforce: hidden"),
    ],
)
def test_modes(
    cluster: ControlPlane,
    team: Callable[..., str],
    guard: Recorder,
    mode: str,
    after: list[Json],
    audit: str | None,
    *,
    told: bool,
) -> None:
    namespace = team(mode)

    answer = cluster.client.create(named(pod(container(env=[ALL])), "shows"), namespace)

    assert envs(answer.body) == [after]
    assert bool(warnings_of(answer)) is told
    assert all("GPU303" in warning for warning in warnings_of(answer))
    (call,) = guard.calls(namespace, "shows")
    assert call.response.get("auditAnnotations", {}).get("gpu303") == audit


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({"guard": ""}, id="without the label"),
        pytest.param({"guard": "disabled"}, id="with another value"),
        pytest.param({"ignore": "true"}, id="enabled, but to be ignored"),
    ],
)
def test_pods_of_other_namespaces_never_reach_us(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder, labels: dict[str, str]
) -> None:
    elsewhere, here = team("enforce", **labels), team("enforce")

    for number in range(10):
        for namespace in (elsewhere, here):
            shows = named(pod(container(env=[ALL])), f"shows-{number}")
            cluster.client.create(shows, namespace)
    debug(cluster, elsewhere, "shows-0", {"name": "debugger", "image": "nvidia/cuda:12"})

    assert guard.calls(elsewhere) == []
    assert len(guard.calls(here)) == 10
    assert envs(cluster.client.get("Pod", "shows-0", elsewhere)) == [[ALL]]
    assert debuggers(cluster, elsewhere, "shows-0") == [("debugger", [])]


def test_kube_system_is_left_alone_whatever_its_labels_say(
    cluster: ControlPlane, guard: Recorder
) -> None:
    label = {"metadata": {"labels": {"gpu-webhook.dev/guard": "enabled"}}}
    unlabel = {"metadata": {"labels": {"gpu-webhook.dev/guard": None}}}
    cluster.client.patch("Namespace", "kube-system", label)
    try:
        made = cluster.client.create(named(pod(), "cni"), "kube-system").body
    finally:
        cluster.client.patch("Namespace", "kube-system", unlabel)
        cluster.client.delete("Pod", "cni", "kube-system")

    assert envs(made) == [[]]
    assert guard.calls("kube-system") == []


def test_management_software_is_exempt(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    namespace = team("enforce")
    exporter = named(pod(container(env=[ALL], securityContext={"privileged": True})), "exporter")
    exporter["metadata"]["labels"] = {"app": "dcgm-exporter"}

    answer = cluster.client.create(exporter, namespace)

    assert envs(answer.body) == [[ALL]]
    assert answer.warnings == ()
    assert len(guard.calls(namespace, "exporter")) == 1


def debug(cluster: ControlPlane, namespace: str, name: str, container: Json) -> Any:
    """Add an ephemeral container as `kubectl debug` does: a strategic merge by its name."""
    return cluster.client.demand(
        "PATCH",
        f"api/v1/namespaces/{namespace}/pods/{name}/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [container]}},
        media_type="application/strategic-merge-patch+json",
    )


def debuggers(cluster: ControlPlane, namespace: str, name: str) -> list[tuple[str, list[Json]]]:
    spec = cluster.client.get("Pod", name, namespace)["spec"]
    found = [(each["name"], env_of(each)) for each in spec.get("ephemeralContainers", [])]
    return sorted(found, key=str)  # a strategic merge puts the new one first


def test_kubectl_debug_gets_void_and_nothing_else_of_the_pod_changes(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    namespace = team("enforce")
    before = cluster.client.create(named(MIXED, "mixed"), namespace).body

    cluster.kubectl(
        *("debug", "-n", namespace, "mixed", "--image=nvidia/cuda:12", "--container=debugger"),
        *("--profile=general", f"--env={VARIABLE}=all"),
    )

    assert debuggers(cluster, namespace, "mixed") == [("debugger", [VOID])]
    after = cluster.client.get("Pod", "mixed", namespace)
    assert envs(after) == envs(before)
    made, *updates = guard.calls(namespace, "mixed")  # it asks anew if the scheduler comes between
    assert made.request["operation"] == "CREATE"
    assert {each.request["subResource"] for each in updates} == {"ephemeralcontainers"}
    touched = {operation["path"] for each in updates for operation in patch_of(each)}
    assert touched
    assert all(path.startswith("/spec/ephemeralContainers/0/env") for path in touched), touched


FROM_MAP = {"name": VARIABLE, "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}


@pytest.mark.parametrize(
    ("metadata", "spec", "seeing"),
    [
        pytest.param({}, {"os": {"name": "windows"}}, ALL, id="for Windows"),
        pytest.param({"kubernetes.io/config.mirror": "x"}, {}, ALL, id="a mirror pod"),
        pytest.param(
            {"gpu-fraction": "0.5"},
            {"schedulerName": "kai-scheduler", "nodeName": None},
            FROM_MAP,
            id="a part of a GPU",
        ),
    ],
)
def test_what_is_sent_with_an_ephemeral_container_is_not_believed(
    metadata: Json,
    spec: Json,
    seeing: Json,
    cluster: ControlPlane,
    team: Callable[..., str],
    guard: Recorder,
) -> None:
    """The API server drops it, after it has asked."""
    namespace = team("enforce")
    cluster.client.create(named(pod(container()), "debugged"), namespace)
    sent = cluster.client.get("Pod", "debugged", namespace)
    sent["metadata"].setdefault("annotations", {}).update(metadata)
    del sent["metadata"]["resourceVersion"]
    debugger = {"name": "d", "image": "nvidia/cuda:12", "env": [seeing]}
    debugger |= {"terminationMessagePolicy": "File"}
    sent["spec"] |= spec | {"ephemeralContainers": [debugger]}

    path = f"api/v1/namespaces/{namespace}/pods/debugged/ephemeralcontainers"
    cluster.client.demand("PUT", path, sent)

    assert debuggers(cluster, namespace, "debugged") == [("d", [VOID])]
    _, *updates = guard.calls(namespace, "debugged")
    assert {each.request["subResource"] for each in updates} == {"ephemeralcontainers"}


@pytest.mark.parametrize("way", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_the_same_pod_can_be_applied_again(
    way: tuple[str, ...], cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    namespace = team("enforce")
    what = named(pod(container(env=[HOME, ALL])), "web")

    def kubectl(verb: str, what: Json, *more: str) -> subprocess.CompletedProcess[str]:
        text = yaml.safe_dump(what)
        return cluster.try_kubectl(verb, f"--namespace={namespace}", "-f", "-", *more, stdin=text)

    for _ in range(3):
        applied = kubectl("apply", what, *way)
        assert applied.returncode == 0, applied.stderr
    differs = kubectl("diff", what, *way)
    assert (differs.returncode, differs.stdout) == (0, ""), differs.stdout + differs.stderr
    assert envs(cluster.client.get("Pod", "web", namespace)) == [[HOME, VOID]]

    # A new image comes in, as in any Pod.
    newer = named(pod(container(env=[HOME, ALL], image="example.com/image:2")), "web")
    applied = kubectl("apply", newer, *way)
    assert applied.returncode == 0, applied.stderr
    stored = cluster.client.get("Pod", "web", namespace)
    assert envs(stored) == [[HOME, VOID]]
    assert stored["spec"]["containers"][0]["image"] == "example.com/image:2"

    # What changes besides is the API server's to refuse, and other updates never come to us.
    other = named(pod(container(env=[{"name": "HOME", "value": "/"}, ALL])), "web")
    refused = kubectl("apply", other, *way)
    assert "pod updates may not change fields" in refused.stderr
    before = len(guard.calls(namespace, "web"))
    cluster.kubectl("label", "-n", namespace, "pod", "web", "team=a")
    assert len(guard.calls(namespace, "web")) == before


def test_what_was_there_before_the_guard_does_not_hinder_a_second_debugger(
    cluster: ControlPlane, team: Callable[..., str], recorder: Recorder, asking: str
) -> None:
    """The API server refuses a patch of an ephemeral container that is there."""
    namespace = team("enforce")
    cluster.client.create(named(pod(container(env=[ALL])), "old"), namespace)
    debug(cluster, namespace, "old", {"name": "first", "image": "nvidia/cuda:12", "env": [ALL]})

    with registered(cluster, recorder, asking):
        answer = debug(cluster, namespace, "old", {"name": "second", "image": "nvidia/cuda:12"})

    assert debuggers(cluster, namespace, "old") == [("first", [ALL]), ("second", [VOID])]
    assert envs(cluster.client.get("Pod", "old", namespace)) == [[ALL]]
    (warning,) = warnings_of(answer)
    assert "GPU303: container second" in warning


def test_a_privileged_debugger_is_told_of(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    namespace = team("warn")
    cluster.client.create(named(pod(), "plain"), namespace)
    privileged = {"privileged": True}
    debugger = {"name": "root", "image": "nvidia/cuda:12", "securityContext": privileged}

    answer = debug(cluster, namespace, "plain", debugger)

    assert len(warnings_of(answer)) == 2
    assert any(
        "container root requests no GPU but is privileged" in each for each in warnings_of(answer)
    )
    assert debuggers(cluster, namespace, "plain") == [("root", [])]
    assert {call.request["operation"] for call in guard.calls(namespace)} == {"CREATE", "UPDATE"}


def test_the_value_stands_once_after_a_real_second_round(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    """A later webhook appends its own value and a sidecar; the API server asks us again."""
    namespace = team("enforce")

    late = container("late", env=[HOME, ALL])

    with later_webhook(
        cluster,
        namespace,
        {"op": "add", "path": "/spec/containers/0/env/-", "value": ALL},
        {"op": "add", "path": "/spec/containers/-", "value": late},
    ):
        created = cluster.client.create(named(pod(), "plain"), namespace).body

    assert envs(created) == [[VOID], [HOME, VOID]]
    first, second = guard.calls(namespace, "plain")
    assert envs(first.pod) == [[]]
    assert envs(second.pod) == [[VOID, ALL], [HOME, ALL]]


def test_a_second_round_with_nothing_to_do_adds_nothing(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    namespace = team("enforce")

    with later_webhook(cluster, namespace):
        created = cluster.client.create(named(pod(), "plain"), namespace).body

    assert envs(created) == [[VOID]]
    first, second = guard.calls(namespace, "plain")
    env, note = patch_of(first)
    assert env["path"] == "/spec/containers/0/env"
    assert note["value"] == {"gpu-webhook.dev/repaired": "GPU303"}
    assert "patch" not in second.response


def test_a_container_that_gets_gpus_after_us_loses_the_void_that_we_gave_it(
    cluster: ControlPlane, team: Callable[..., str], guard: Recorder
) -> None:
    namespace = team("enforce")

    gpus = {"limits": {NVIDIA: "1"}}

    with later_webhook(
        cluster,
        namespace,
        {"op": "add", "path": "/spec/containers/0/resources", "value": gpus},
    ):
        created = cluster.client.create(named(pod(), "gets-gpus"), namespace).body

    assert limits_of(created) == [{NVIDIA: "1"}]
    assert envs(created) == [[]]
    first, second = guard.calls(namespace, "gets-gpus")
    assert patch_of(first)
    assert patch_of(second)


_MARK = {"op": "add", "path": "/metadata/annotations", "value": {"late": "yes"}}


@contextmanager
def later_webhook(cluster: ControlPlane, namespace: str, *changes: Json) -> Iterator[None]:
    """Run and register a second mutating webhook; by its name it comes after ours."""
    patch = base64.b64encode(orjson.dumps([_MARK, *changes])).decode()

    def respond(_target: str, body: bytes) -> tuple[int, bytes]:
        review = orjson.loads(body)
        response = {"uid": review["request"]["uid"], "allowed": True}
        response |= {"patchType": "JSONPatch", "patch": patch}
        return 200, orjson.dumps({**review, "request": None, "response": response})

    with Endpoint(cluster.authority, respond, "later") as endpoint:
        configuration = _later(namespace, endpoint)
        cluster.client.create(configuration)
        try:

            def is_called() -> bool:
                probe = cluster.client.create(named(pod(), "probe"), namespace, dry_run=True)
                return "late" in probe.body["metadata"].get("annotations", {})

            until(is_called, "the later webhook to be called")
            yield
        finally:
            cluster.client.delete(configuration["kind"], configuration["metadata"]["name"])


def _later(namespace: str, endpoint: Endpoint) -> Json:
    bundle = base64.b64encode(endpoint.bundle.read_bytes()).decode()
    url = f"https://127.0.0.1:{endpoint.port}/"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "zz-later"},
        "webhooks": [
            {
                "name": "later.example.com",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": url, "caBundle": bundle},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["pods"],
                        "operations": ["CREATE"],
                    }
                ],
            }
        ],
    }


@pytest.fixture
def installed(cluster: ControlPlane, tmp_path: Path) -> Iterator[Path]:
    """The entries of the base with their CA, and a namespace team-a: what the page begins with."""
    shutil.copytree(ROOT / "manifests", tmp_path / "manifests")
    cluster.make_namespace("team-a")
    authority = base64.b64encode(cluster.authority.bundle.read_bytes()).decode()
    entries = shipped(cluster)
    for configuration in entries:
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"]["caBundle"] = authority
        cluster.client.create(configuration)
    yield tmp_path
    for kind in {each["kind"] for each in entries}:
        cluster.client.delete_all(kind)
    cluster.kubectl("delete", "namespace", "team-a", "--wait=false")


def test_the_commands_of_the_page(cluster: ControlPlane, installed: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    apply, copy_ca, choose, try_it, refuse, remove = blocks

    _run(apply, cluster, installed)
    _run(copy_ca, cluster, installed)
    _run(choose, cluster, installed)
    tried = _run(try_it, cluster, installed)  # nobody answers here, so it fails open

    kind = "MutatingWebhookConfiguration"
    ours, base = (cluster.client.get(kind, f"gpu-webhook{each}") for each in ("-guard", ""))
    assert bundles(ours) == bundles(base)[:1]
    assert cluster.client.get("Namespace", "team-a")["metadata"]["labels"].items() >= {
        ("gpu-webhook.dev/guard", "enabled")
    }
    assert "nvidia/cuda:12.4.1-base-ubuntu22.04" in tried
    _run(refuse, cluster, installed)
    validating = "ValidatingWebhookConfiguration"
    names = [each["metadata"]["name"] for each in cluster.client.list(validating)]
    assert names == ["gpu-webhook", "gpu-webhook-guard-refuse"]
    _run(remove, cluster, installed)
    assert [each["metadata"]["name"] for each in cluster.client.list(kind)] == ["gpu-webhook"]
    assert [each["metadata"]["name"] for each in cluster.client.list(validating)] == ["gpu-webhook"]
    assert (
        "gpu-webhook.dev/guard"
        not in cluster.client.get("Namespace", "team-a")["metadata"]["labels"]
    )


@pytest.mark.parametrize("base", ["base", "cert-manager"])
def test_the_component_stands_next_to_the_base(
    cluster: ControlPlane, tmp_path: Path, base: str
) -> None:
    shutil.copytree(ROOT / "manifests", tmp_path / "manifests")
    snippet = next(
        text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "components" in text
    )
    overlay = tmp_path / "mine"
    overlay.mkdir()
    kustomization = yaml.safe_load(snippet.replace("../manifests/base", f"../manifests/{base}", 1))
    if base == "cert-manager":  # as docs/install.md says: it annotates what is there by then
        kustomization["components"].append("../manifests/cert-manager/ca-bundle")
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))

    made = list(yaml.safe_load_all(cluster.kubectl("kustomize", str(overlay))))

    entries = {
        each["metadata"]["name"]: each for each in made if each["kind"].endswith("Configuration")
    }
    alone = yaml.safe_load(cluster.kubectl("kustomize", str(GUARD)))
    assert entries["gpu-webhook-guard"]["webhooks"] == alone["webhooks"]
    assert "gpu-webhook" in entries
    injected = {
        each["metadata"].get("annotations", {}).get("cert-manager.io/inject-ca-from")
        for each in entries.values()
    }
    assert injected == {"gpu-webhook/gpu-webhook" if base == "cert-manager" else None}


def test_the_settings_of_the_page_are_settings() -> None:
    blocks = re.findall(r"```yaml\n((?:policy|guard):.*?)```", PAGE, re.DOTALL)
    policy, shares, guard = (settings_file.parse(block) for block in blocks)
    assert shares.guard.resources == ("example.com/accelerator",)
    assert shares.is_gpu("nvidia.com/a100")
    assert modes_for(policy.policy, "team-a", {}).of(leak_guard) is Mode.WARN
    assert modes_for(policy.policy, "team-b", {}).of(leak_guard) is Mode.AUDIT
    first, second = guard.guard.exempt
    assert first.covers("nvidia-device-plugin", {})
    assert second.covers("monitoring", {"app": "dcgm-exporter"})
    assert not second.covers("monitoring", {})


def bundles(configuration: Json) -> list[str]:
    return [webhook["clientConfig"]["caBundle"] for webhook in configuration["webhooks"]]


def _run(block: str, cluster: ControlPlane, folder: Path) -> str:
    path = f"{cluster.programs}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", block],
        cwd=folder,
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
