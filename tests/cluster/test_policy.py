"""What a person sees of the policy: at `kubectl apply`, in the metrics, in the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.build import RELEASE, minor
from tests.cluster.client import until
from tests.cluster.conftest import INVENTORY
from tests.cluster.controlplane import free_ports
from tests.cluster.pods import ALPHA, container, modern, named, pod
from tests.cluster.webhook import Recorder, WebhookServer, registered
from tests.telemetry.scraping import scrape, value

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

MIG = "nvidia.com/mig-1g.10gb"
DECISIONS = "gpu_webhook_decisions_total"
SETTINGS = {
    "policy": {
        "overrides": [
            {"namespaces": [f"policy-{mode}-*"], "rules": {"GPU301": mode, "GPU101": mode}}
            for mode in ("off", "audit", "warn", "enforce")
        ]
        + [{"namespaces": ["policy-capped-*"], "rules": {"GPU304": "enforce", "GPU301": "off"}}],
        "exceptions": [{"rules": ["GPU301"], "namespaces": ["policy-enforce-excepted-*"]}],
    },
    "capacity": {
        "limits": [
            {"namespaces": ["policy-limit-*"], "gpus": {"nvidia.com/gpu": 1}},
            {"namespaces": ["policy-capped-*"], "gpus": {"nvidia.com/gpu": 2, MIG: 1}},
        ]
    },
}


class Policed:
    """A server with these settings, behind the shipped configuration."""

    def __init__(self, server: WebhookServer, recorder: Recorder, metrics: int) -> None:
        self.server = server
        self.recorder = recorder
        self.metrics = metrics

    def counted(self, rule: str, mode: str, action: str) -> float:
        return value(scrape(self.metrics), DECISIONS, rule=rule, mode=mode, action=action) or 0.0

    def judged(self, namespace: str, code: str = "GPU301") -> Json:
        """Give the line about this rule; lines are written a moment after the answer."""

        def found() -> Json | None:
            lines = self.server.lines(namespace)
            return next((line for line in lines if code in line["codes"]), None)

        return until(found, f"a line about {code} in {namespace}")


@pytest.fixture(scope="module")
def policed(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Policed]:
    folder = tmp_path_factory.mktemp("policy")
    settings = folder / "settings.yaml"
    settings.write_text(yaml.safe_dump(SETTINGS))
    port = free_ports(1)[0]
    arguments = [
        f"--config={settings}",
        f"--inventory={INVENTORY}",
        f"--metrics-bind=127.0.0.1:{port}",
    ]
    server = WebhookServer(folder, cluster.authority, arguments)
    with (
        server,
        Recorder(server) as recorder,
        registered(cluster, recorder.endpoint.port, recorder.endpoint.bundle),
    ):
        yield Policed(server, recorder, port)


@pytest.fixture
def apply(cluster: ControlPlane) -> Callable[[str, Json], subprocess.CompletedProcess[str]]:
    def run(namespace: str, what: Json) -> subprocess.CompletedProcess[str]:
        return cluster.try_kubectl(
            "apply", f"--namespace={namespace}", "-f", "-", stdin=yaml.safe_dump(what)
        )

    return run


def impossible(**annotations: str) -> Json:
    """A pod that requests more GPUs than there are, under today's name."""
    made = named(pod(modern(99)), "impossible")
    if annotations:
        made["metadata"]["annotations"] = annotations
    return made


SAID = "GPU301: requests 99 nvidia.com/gpu"


@pytest.mark.parametrize(
    ("mode", "refused", "warned", "outcome", "action"),
    [
        pytest.param("enforce", True, False, "denied", "denied", id="enforce: denied"),
        pytest.param("warn", False, True, "reported", "would deny", id="warn: a warning"),
        pytest.param("audit", False, False, "audited", "would deny", id="audit: nothing"),
        pytest.param("off", False, False, None, "", id="off: nothing, not even a count"),
    ],
)
def test_an_impossible_pod(
    mode: str,
    refused: bool,  # noqa: FBT001
    warned: bool,  # noqa: FBT001
    outcome: str | None,
    action: str,
    policed: Policed,
    team: Callable[[str], str],
    apply: Callable[[str, Json], subprocess.CompletedProcess[str]],
) -> None:
    namespace = team(mode)
    before = policed.counted("GPU301", mode, action)

    done = apply(namespace, impossible())

    assert (done.returncode != 0) is refused
    assert (SAID in done.stderr) is (refused or warned)
    assert (f"Warning: {SAID}" in done.stderr) is warned
    assert (f"[{mode}: {action}]" in done.stderr) is (refused or warned)
    if outcome is None:
        assert policed.counted("GPU301", mode, "would deny") == 0
        assert all("GPU301" not in line["codes"] for line in policed.server.lines(namespace))
        return
    line = policed.judged(namespace)
    assert line["outcome"] == outcome
    assert f"GPU301 {mode}: {action}" in line["actions"]
    until(lambda: policed.counted("GPU301", mode, action) == before + 1, "the metric to be counted")


def test_a_repair_in_warn_mode_changes_nothing_and_says_so(
    policed: Policed,
    cluster: ControlPlane,
    team: Callable[[str], str],
    apply: Callable[[str, Json], subprocess.CompletedProcess[str]],
) -> None:
    namespace = team("warn")
    legacy = named(pod(modern(1)), "legacy")
    legacy["spec"]["containers"][0]["resources"] = {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}

    done = apply(namespace, legacy)

    assert "[warn: would repair]" in done.stderr
    made = cluster.client.get("Pod", "legacy", namespace)
    limits = made["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"alpha.kubernetes.io/nvidia-gpu": "1"}
    line = policed.judged(namespace, "GPU101")
    assert "GPU101 warn: would repair" in line["actions"]


TODAY = datetime.now(UTC).date()


@pytest.mark.parametrize(
    ("where", "reason", "passes", "said"),
    [
        pytest.param(
            "enforce-excepted",
            f"migrating (until {TODAY + timedelta(days=2)})",
            True,
            "",
            id="unexpired: passes",
        ),
        pytest.param("enforce-excepted", "migrating", True, "", id="without an end: passes"),
        pytest.param(
            "enforce-excepted",
            f"migrating (until {TODAY - timedelta(days=2)})",
            False,
            "its exception ended on",
            id="expired: denied",
        ),
        pytest.param(
            "enforce-excepted", "", False, "needs a reason", id="without a reason: denied"
        ),
        pytest.param(
            "enforce", "migrating", False, "the settings allow no", id="not allowed here: denied"
        ),
    ],
)
def test_an_exception(
    where: str,
    reason: str,
    passes: bool,  # noqa: FBT001
    said: str,
    policed: Policed,
    team: Callable[[str], str],
    apply: Callable[[str, Json], subprocess.CompletedProcess[str]],
) -> None:
    namespace = team(where)

    done = apply(namespace, impossible(**{"gpu-webhook.dev/allow.GPU301": reason}))

    assert (done.returncode == 0) is passes, done.stderr
    assert said in done.stderr
    line = policed.judged(namespace)
    assert line["outcome"] == ("excepted" if passes else "denied")
    assert ("GPU301" in done.stderr) is not passes


@pytest.mark.usefixtures("policed")
def test_above_the_limit_of_the_namespace_is_a_warning_by_default(
    team: Callable[[str], str],
    apply: Callable[[str, Json], subprocess.CompletedProcess[str]],
) -> None:
    done = apply(team("limit"), named(pod(modern(2)), "homework"))

    assert done.returncode == 0
    assert "GPU304: requests 2 nvidia.com/gpu; the limit" in done.stderr
    assert "[warn: would deny]" in done.stderr


FORGED = [
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "b", "controller": True}
]
SIDECAR = modern(1, name="sidecar", restartPolicy="Always")
BEYOND = [
    pytest.param(pod(modern(3)), id="three of two"),
    pytest.param(pod(modern(8), nodeName="gpu-node"), id="on a node that it names"),
    pytest.param(pod(modern(8), schedulingGates=[{"name": "x.y/z"}]), id="gated"),
    pytest.param(pod(modern(8), schedulerName="mine"), id="of another scheduler"),
    pytest.param(
        {**pod(modern(8)), "metadata": {"name": "pod", "ownerReferences": FORGED}},
        id="that claims to be of a DaemonSet",
    ),
    pytest.param(
        {
            **pod(modern(8)),
            "metadata": {"name": "pod", "labels": {"gpu-webhook.dev/ignore": "true"}},
        },
        id="with the opt-out label, which is for repairs",
    ),
    pytest.param(
        pod(
            modern(8),
            annotations={"kubernetes.io/config.mirror": "a", "kubernetes.io/config.hash": "a"},
            nodeName="gpu-node",
        ),
        id="that claims to be a mirror pod",
    ),
    pytest.param(pod(modern(8), os={"name": "windows"}), id="for Windows"),
    pytest.param(
        pod(modern(8), nodeSelector={"kubernetes.io/os": "windows"}), id="that selects Windows"
    ),
    pytest.param(pod(modern(2), modern(1, name="b")), id="in two containers"),
    pytest.param(pod(modern(1), initContainers=[modern(3, name="init")]), id="before it starts"),
    pytest.param(
        pod(modern(1), initContainers=[SIDECAR, modern(2, name="init")]), id="beside a sidecar"
    ),
    pytest.param(pod(container(limits={MIG: 2})), id="two slices of one"),
    pytest.param(pod(container(limits={ALPHA: 3})), id="three under the legacy name"),
    *(
        pytest.param(pod(modern(amount)), id=f"an amount of {amount[:24]}")
        for amount in (
            "3e0",
            str(2**63),
            str(2**64 + 1),
            "1e19",
            "1e299",
            "1e301",
            "1e400",
            str(10**400 + 8),
        )
    ),
]


@pytest.mark.usefixtures("policed")
@pytest.mark.parametrize("what", BEYOND)
def test_a_limit_holds_whoever_places_the_pod(
    what: Json,
    team: Callable[[str], str],
    apply: Callable[[str, Json], subprocess.CompletedProcess[str]],
) -> None:
    done = apply(team("capped"), what)

    assert done.returncode != 0, done.stderr
    assert "GPU304: requests" in done.stderr
    assert "[enforce: denied]" in done.stderr


EIGHT = {"resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}}


@pytest.mark.usefixtures("policed")
@pytest.mark.parametrize(
    ("subresource", "change"),
    [
        pytest.param("", {"containers": [{"name": "main", **EIGHT}]}, id="update"),
        pytest.param("resize", {"containers": [{"name": "main", **EIGHT}]}, id="resize"),
        pytest.param("", EIGHT, id="pod level"),
        pytest.param(
            "ephemeralcontainers",
            {"ephemeralContainers": [{"name": "e", "image": "i", **EIGHT}]},
            id="ephemeral container",
        ),
    ],
)
def test_kubernetes_lets_no_pod_get_more_later(
    subresource: str,
    change: Json,
    cluster: ControlPlane,
    team: Callable[[str], str],
    apply: Callable[[str, Json], subprocess.CompletedProcess[str]],
) -> None:
    """What docs/policy.md says of updates: GPU304 is asked when a pod is made, and never again."""
    namespace = team("capped")
    assert apply(namespace, pod(modern(2))).returncode == 0

    answer = cluster.client.request(
        "PATCH",
        f"api/v1/namespaces/{namespace}/pods/pod/{subresource}".rstrip("/"),
        {"spec": change},
        media_type="application/strategic-merge-patch+json",
    )

    if minor(RELEASE) >= 34:  # KEP-1287 since 1.33, KEP-2837 since 1.34; what is unknown is dropped
        assert answer.status == 422, answer
    spec = cluster.client.get("Pod", "pod", namespace)["spec"]
    assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert not {"resources", "ephemeralContainers"} & spec.keys()


@pytest.mark.usefixtures("policed")
def test_kubernetes_takes_no_gpus_at_pod_level(
    cluster: ControlPlane,
    team: Callable[[str], str],
    apply: Callable[[str, Json], subprocess.CompletedProcess[str]],
) -> None:
    namespace = team("capped")

    done = apply(namespace, pod(container(), resources=EIGHT["resources"]))

    if minor(RELEASE) >= 34:  # KEP-2837: pod-level resources are on by default
        assert done.returncode != 0
        assert "spec.resources" in done.stderr
    else:
        assert "resources" not in cluster.client.get("Pod", "pod", namespace)["spec"]


def deployment(gpus: int, replicas: int = 1) -> Json:
    template = pod(modern(gpus))
    labels = {"app": "cuda"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cuda"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def test_a_deployment_warns_the_person_when_applied_and_when_changed(
    policed: Policed,
    team: Callable[[str], str],
    apply: Callable[[str, Json], subprocess.CompletedProcess[str]],
) -> None:
    namespace = team("enforce")

    applied = apply(namespace, deployment(99))
    again = apply(namespace, deployment(99))
    scaled = apply(namespace, deployment(99, replicas=0))
    changed = apply(namespace, deployment(98))

    assert [each.returncode for each in (applied, again, scaled, changed)] == [0, 0, 0, 0]
    assert "Warning: GPU301: requests 99 nvidia.com/gpu" in applied.stderr
    assert "GPU301" not in again.stderr
    assert "GPU301" not in scaled.stderr
    assert "Warning: GPU301: requests 98 nvidia.com/gpu" in changed.stderr
    calls = policed.recorder.calls(namespace, path="/validate")
    assert {call.request["kind"]["kind"] for call in calls} <= {"Deployment", "Pod"}


def test_pods_without_gpus_make_no_call(
    policed: Policed,
    team: Callable[[str], str],
    apply: Callable[[str, Json], subprocess.CompletedProcess[str]],
) -> None:
    namespace = team("enforce")
    plain = named(pod(modern(1)), "plain")
    del plain["spec"]["containers"][0]["resources"]
    without = deployment(1)
    del without["spec"]["template"]["spec"]["containers"][0]["resources"]

    assert apply(namespace, plain).returncode == 0
    assert apply(namespace, without).returncode == 0
    assert policed.recorder.all_calls(namespace) == []
