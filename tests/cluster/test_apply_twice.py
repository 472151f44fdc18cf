"""The same bare legacy Pod is sent again and again: by kubectl, by CI jobs, by Argo CD and Flux."""

from __future__ import annotations

import copy
import json
import re
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.pods import (
    AFFINITY,
    ALPHA,
    MODEL,
    NVIDIA,
    PRODUCT,
    TOLERATIONS,
    alpha,
    container,
    expression,
    limits_of,
    modern,
    named,
    pod,
    required,
)
from tests.cluster.scheduling import node_of
from tests.cluster.test_limit_range import ranged
from tests.cluster.webhook import ROOT, WebhookServer

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

DRIVER = "/usr/lib/nvidia-375"
OWN = {"key": "dedicated", "operator": "Exists"}
K80 = required(expression(MODEL, "In", "Tesla K80"))
TOLERATES = json.dumps([{"key": "team", "operator": "Equal", "value": "a"}])
EVERYTHING = pod(
    container(
        limits={ALPHA: 1},
        volumeMounts=[
            {"name": "driver", "mountPath": DRIVER},
            {"name": "data", "mountPath": "/data"},
        ],
        env=[
            {"name": "A", "value": "1"},
            {"name": "LD_LIBRARY_PATH", "value": f"{DRIVER}:/opt/lib"},
            {"name": "PATH", "value": f"{DRIVER}/bin"},
            {"name": "B", "value": "1"},
        ],
    ),
    annotations={
        AFFINITY: json.dumps(K80),
        TOLERATIONS: TOLERATES,
        "scheduler.alpha.kubernetes.io/name": "default-scheduler",
        "pod.beta.kubernetes.io/hostname": "train-0",
    },
    nodeSelector={"kubernetes.io/os": "linux", MODEL: "Tesla K80"},
    tolerations=[OWN],
    volumes=[
        {"name": "driver", "hostPath": {"path": DRIVER}},
        {"name": "data", "emptyDir": {}},
    ],
)
SHAPES = {
    "one GPU": pod(alpha(1)),
    "half a GPU": pod(alpha("500m")),
    "a request alone": pod(container(requests={ALPHA: 2})),
    "unequal amounts": pod(container(limits={ALPHA: 2}, requests={ALPHA: 1})),
    "no GPU": pod(alpha(0), alpha(1, name="other")),
    "both names": pod(container(limits={ALPHA: 2, NVIDIA: 1})),
    "an init container": pod(alpha(1), initContainers=[alpha(2, name="init")]),
    "tolerations of its own": pod(alpha(1), tolerations=[OWN]),
    "a modern pod with tolerations of its own": pod(modern(1), tolerations=[OWN]),
    "tolerations in the annotation": pod(modern(1), annotations={TOLERATIONS: TOLERATES}),
    "a model of several spellings": pod(alpha(1), nodeSelector={MODEL: "Tesla P100"}),
    "a model in the affinity": pod(alpha(1), affinity=K80),
    "a model in the annotation, beside affinity": pod(
        alpha(1),
        annotations={AFFINITY: json.dumps(K80)},
        affinity=required(expression("kubernetes.io/os", "In", "linux")),
    ),
    "everything": EVERYTHING,
}
shapes = pytest.mark.parametrize("what", SHAPES.values(), ids=SHAPES)
sides = pytest.mark.parametrize(
    "side", [(), ("--server-side",)], ids=["client side", "server side"]
)


def run(
    cluster: ControlPlane, namespace: str, what: Json, *words: str
) -> subprocess.CompletedProcess[str]:
    arguments = (f"--namespace={namespace}", *words, "-f", "-")
    return cluster.try_kubectl(*arguments, stdin=yaml.safe_dump(what))


@shapes
@sides
def test_the_same_pod_is_applied_again_and_again(
    what: Json, side: tuple[str, ...], cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    first = run(cluster, namespace, what, "apply", *side)
    assert first.returncode == 0, first.stderr
    made = cluster.client.get("Pod", "pod", namespace)

    diff = run(cluster, namespace, what, "diff", *side)
    again = [run(cluster, namespace, what, "apply", *side) for _ in range(2)]
    after = cluster.client.get("Pod", "pod", namespace)

    assert (diff.returncode, diff.stdout) == (0, ""), diff.stdout + diff.stderr
    assert [each.returncode for each in again] == [0, 0], again[0].stderr + again[1].stderr
    assert _settled(made) == _settled(after)
    assert made["metadata"].get("annotations") == after["metadata"].get("annotations")
    assert webhook.calls(namespace)


@sides
def test_a_pod_that_runs_is_applied_again(
    side: tuple[str, ...], cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    run(cluster, namespace, pod(alpha(1)), "apply", *side)
    node_of(cluster.client, namespace, "pod")

    again = run(cluster, namespace, pod(alpha(1)), "apply", *side)

    assert again.returncode == 0, again.stderr
    assert f"GPU101: container main requests {ALPHA}" in again.stderr
    assert webhook.calls(namespace)[-1].request["operation"] == "UPDATE"


@shapes
@sides
def test_so_it_is_where_nodes_joined_or_left_in_between(  # a table, and a second server
    what: Json,
    side: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
    webhook: Recorder,
    elsewhere: WebhookServer,
) -> None:
    first = run(cluster, namespace, what, "apply", *side)
    made = cluster.client.get("Pod", "pod", namespace)
    with webhook.passing_to(elsewhere):
        again = run(cluster, namespace, what, "apply", *side)
        diff = run(cluster, namespace, what, "diff", *side)
    after = cluster.client.get("Pod", "pod", namespace)

    assert (first.returncode, again.returncode, diff.returncode) == (0, 0, 0), again.stderr
    assert _settled(made) == _settled(after)


@pytest.fixture(scope="module")
def elsewhere(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebhookServer]:
    """A server that knows other nodes: K80s and P100s of another spelling, and no taint."""

    def change(node: Json) -> None:
        labels = node["metadata"]["labels"]
        node["spec"].pop("taints", None)
        if PRODUCT in labels:
            labels[PRODUCT] += "-12GB" if "GB" not in labels[PRODUCT] else "-NVLINK"

    with _knowing(tmp_path_factory.mktemp("elsewhere"), cluster, change) as server:
        yield server


@contextmanager
def _knowing(
    folder: Path, cluster: ControlPlane, change: Callable[[Json], None]
) -> Iterator[WebhookServer]:
    """A server that knows the nodes of the example with a change of each."""
    items = yaml.safe_load((ROOT / "examples" / "inventory.yaml").read_text())
    for node in items["items"]:
        change(node)
    inventory = folder / "inventory.yaml"
    inventory.write_text(yaml.safe_dump(items))
    with WebhookServer(folder, cluster.authority, [f"--inventory={inventory}"]) as server:
        yield server


TWO_MODELS = required(expression(MODEL, "In", "Tesla-K80", "Tesla-P100-PCIE-16GB"))


@pytest.fixture(scope="module")
def with_old_label(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebhookServer]:
    """A server whose K80 nodes carry the old label alone."""

    def change(node: Json) -> None:
        labels = node["metadata"]["labels"]
        if labels.get(PRODUCT) == "Tesla-K80":
            labels[MODEL] = labels.pop(PRODUCT)

    with _knowing(tmp_path_factory.mktemp("old-label"), cluster, change) as server:
        yield server


@sides
@pytest.mark.parametrize(
    "what",
    [
        pod(alpha(1), affinity=TWO_MODELS),
        pod(alpha(1), annotations={AFFINITY: json.dumps(TWO_MODELS)}),
        pod(alpha(1), affinity=required(expression(MODEL, "Exists"))),
        pod(alpha(1), nodeSelector={MODEL: "Tesla-K80"}, affinity=TWO_MODELS),
    ],
    ids=["two models", "two models, annotated", "any model", "in nodeSelector and affinity"],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["from the old label", "to the old label"])
def test_so_it_is_where_nodes_of_one_model_got_the_other_label(  # a table
    what: Json,
    side: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
    webhook: Recorder,
    with_old_label: WebhookServer,
    *,
    is_first: bool,
) -> None:
    seen = []
    for is_old in (is_first, not is_first, is_first):
        other = webhook.passing_to(with_old_label) if is_old else nullcontext()
        with other:
            made = run(cluster, namespace, what, "apply", *side)
        assert made.returncode == 0, made.stderr
        seen.append(_settled(cluster.client.get("Pod", "pod", namespace)))

    assert seen[0] == seen[1] == seen[2]


def _settled(what: Json) -> Json:
    """Give the spec without the node, which the scheduler adds when it likes."""
    return {key: value for key, value in what["spec"].items() if key != "nodeName"}


def _with(what: Json, *places: object, value: object) -> Json:
    copied: Json = copy.deepcopy(what)
    here: Any = copied
    for place in places[:-1]:
        here = here[place]
    here[places[-1]] = value
    return copied


LIMIT = ("spec", "containers", 0, "resources", "limits", ALPHA)


def _amount(gpus: int) -> str:
    """Give a pattern of this amount as API servers print it: today, and as Go's struct in 1.32."""
    return rf'"{NVIDIA}": ("{gpus}"|{{.*value: {gpus}}})'


@pytest.mark.parametrize(
    ("what", "other", "said"),
    [
        pytest.param(pod(alpha(1)), pod(alpha(2)), _amount(2), id="another amount"),
        pytest.param(pod(alpha(1)), pod(alpha(0)), "Forbidden", id="no GPU any more"),
        pytest.param(
            EVERYTHING, _with(EVERYTHING, *LIMIT, value=3), _amount(3), id="of everything"
        ),
        pytest.param(
            pod(alpha(1), nodeSelector={MODEL: "Tesla K80"}),
            pod(alpha(1), nodeSelector={MODEL: "Tesla V100"}),
            "V100",
            id="another model",
        ),
        pytest.param(
            pod(alpha(1), annotations={AFFINITY: json.dumps(K80)}),
            pod(
                alpha(1),
                annotations={AFFINITY: json.dumps(required(expression(MODEL, "In", "Tesla V100")))},
            ),
            "V100",
            id="another model in the annotation",
        ),
    ],
)
@sides
def test_a_change_is_refused_by_the_api_server_in_its_own_words(  # a table
    what: Json,
    other: Json,
    said: str,
    side: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
    webhook: Recorder,
) -> None:
    assert run(cluster, namespace, what, "apply", *side).returncode == 0
    made = cluster.client.get("Pod", "pod", namespace)

    changed = run(cluster, namespace, other, "apply", *side)

    assert changed.returncode == 1
    assert "pod updates may not change fields" in changed.stderr
    assert re.search(said, changed.stderr)
    words = [line for line in changed.stderr.splitlines() if not line.startswith("Warning:")]
    # The words of today are compared; an author's 0 stays under the legacy name.
    assert not re.search(f'{ALPHA}": "[^0]', "\n".join(words))
    assert _settled(cluster.client.get("Pod", "pod", namespace)) == _settled(made)
    assert webhook.calls(namespace)


@sides
def test_what_may_change_in_a_pod_changes_beside_the_legacy_words(
    side: tuple[str, ...], cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    run(cluster, namespace, EVERYTHING, "apply", *side)
    other = _with(EVERYTHING, "metadata", "labels", value={"new": "label"})
    other = _with(other, "spec", "containers", 0, "image", value="example.com/image:2")

    changed = run(cluster, namespace, other, "apply", *side)
    after = cluster.client.get("Pod", "pod", namespace)

    assert changed.returncode == 0, changed.stderr
    assert after["metadata"]["labels"]["new"] == "label"
    assert after["spec"]["containers"][0]["image"] == "example.com/image:2"
    assert limits_of(after) == [{NVIDIA: "1"}]
    assert AFFINITY not in after["metadata"].get("annotations", {})
    assert webhook.calls(namespace)


def test_replace_is_answered_as_for_a_modern_pod_without_us(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    """A manifest lacks what the API server added; the object as it is stored may be sent again."""
    run(cluster, namespace, pod(alpha(1)), "create")
    node_of(cluster.client, namespace, "pod")
    live = cluster.client.get("Pod", "pod", namespace)

    manifest = run(cluster, namespace, pod(alpha(1)), "replace")
    stored = run(cluster, namespace, live, "replace")
    legacy = _with(live, "spec", "containers", 0, "resources", value={"limits": {ALPHA: "1"}})
    with_words = run(cluster, namespace, legacy, "replace")

    assert "pod updates may not change fields" in manifest.stderr
    assert stored.returncode == 0, stored.stderr
    assert with_words.returncode == 0, with_words.stderr
    assert webhook.calls(namespace)


def test_a_pod_stored_under_a_legacy_name_is_never_changed(
    cluster: ControlPlane, namespace: str, request: pytest.FixtureRequest
) -> None:
    """It was made while the webhook was away."""
    run(cluster, namespace, pod(alpha(1)), "apply")
    webhook: Recorder = request.getfixturevalue("webhook")
    # A pod of our own in the same namespace shows that we are there.
    other = {**pod(alpha(1)), "metadata": {"name": "other"}}
    run(cluster, namespace, other, "apply")

    again = run(cluster, namespace, pod(alpha(1)), "apply")
    labelled = _with(pod(alpha(1)), "metadata", "labels", value={"a": "b"})
    changed = run(cluster, namespace, labelled, "apply")

    assert (again.returncode, changed.returncode) == (0, 0), again.stderr + changed.stderr
    assert limits_of(cluster.client.get("Pod", "pod", namespace)) == [{ALPHA: "1"}]
    assert {call.is_about[1] for call in webhook.calls(namespace)} == {"other"}


RANGES: dict[str, list[Json]] = {
    "a default of 1": [{"default": {ALPHA: "1"}}],
    "a default of 2": [{"default": {ALPHA: "2"}}],
    "a default of 0": [{"default": {ALPHA: "0"}}],
    "a max": [{"max": {ALPHA: "4"}}],
    "a default of 0 beside a max": [{"default": {ALPHA: "0"}, "max": {ALPHA: "4"}}],
    "two, of which the annotation names one": [
        {"default": {"cpu": "1"}}, {"default": {ALPHA: "1"}}, {"default": {"memory": "1Gi"}}
    ],
    "a default under the name of today": [{"default": {NVIDIA: "1"}}],
    "a default of 0 under the name of today": [{"default": {NVIDIA: "0"}}],
    "a default of a slice": [{"default": {"nvidia.com/mig-1g.10gb": "1"}}],
    "a default under both names": [{"default": {ALPHA: "1", NVIDIA: "1"}}],
}  # fmt: skip
RANGED = {
    "one GPU": pod(alpha(1)),
    "two GPUs": pod(alpha(2)),
    "half a GPU": pod(alpha("500m")),
    "a request alone": pod(container(requests={ALPHA: 1})),
    "a container that says nothing": pod(alpha(1), container("other")),
    "a container of no GPU": pod(alpha(1), alpha(0, name="other")),
    "an init container": pod(alpha(2), initContainers=[alpha(1, name="init")]),
    "no GPU": pod(alpha(0)),
    "both names": pod(container(limits={ALPHA: 2, NVIDIA: 1})),
    "a pod of today": pod(modern(1)),
    "tolerations in the annotation": pod(modern(1), annotations={TOLERATIONS: TOLERATES}),
    "everything": EVERYTHING,
}


@pytest.mark.parametrize("ranges", RANGES.values(), ids=RANGES)
@sides
def test_a_limit_range_of_the_legacy_name_does_not_stand_in_the_way(  # a table
    ranges: list[Json],
    side: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
    webhook: Recorder,
) -> None:
    """What LimitRanger adds is stored with an amount of 0: it is no word of an author."""
    ranged(cluster, namespace, *ranges)
    pods = [named(shape, f"pod-{number}") for number, shape in enumerate(RANGED.values())]
    first = run(cluster, namespace, _together(pods), "apply", *side)
    made = _specs(cluster, namespace)
    over = [each for each in pods if each["metadata"]["name"] not in made]
    for each in over:  # a max, without us as with us
        name = re.escape(each["metadata"]["name"])
        assert re.search(rf'"{name}" is forbidden: .* usage per Container is', first.stderr), name
    assert first.returncode == (1 if over else 0), first.stderr

    allowed = _together([each for each in pods if each not in over])
    diff = run(cluster, namespace, allowed, "diff", *side)
    again = [run(cluster, namespace, allowed, "apply", *side) for _ in range(2)]

    assert made
    assert (diff.returncode, diff.stdout) == (0, ""), diff.stdout + diff.stderr
    assert [each.returncode for each in again] == [0, 0], again[0].stderr + again[1].stderr
    assert _specs(cluster, namespace) == made
    assert len({call.is_about for call in webhook.calls(namespace)}) > 1


def _together(pods: list[Json]) -> Json:
    """Give one object that holds the pods, for one run of kubectl."""
    return {"apiVersion": "v1", "kind": "List", "items": pods}


def _specs(cluster: ControlPlane, namespace: str) -> dict[str, Json]:
    pods = cluster.client.list("Pod", namespace)
    return {each["metadata"]["name"]: _settled(each) for each in pods}


def test_updates_without_a_legacy_word_never_reach_us(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    client = cluster.client
    run(cluster, namespace, EVERYTHING, "apply")
    client.create({**pod(modern(1)), "metadata": {"name": "modern"}}, namespace)
    calls = len(webhook.calls(namespace))

    for name in ("pod", "modern"):
        client.patch("Pod", name, {"metadata": {"labels": {"new": "label"}}}, namespace)
        client.patch("Pod", name, {"metadata": {"finalizers": ["example.com/x"]}}, namespace)
        client.patch("Pod", name, {"metadata": {"finalizers": None}}, namespace)
        status = {"status": {"message": "seen"}}
        client.patch("Pod", name, status, namespace, subresource="status")
        debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
        client.patch("Pod", name, debug, namespace, subresource="ephemeralcontainers")
        resize = client.request(
            "PATCH",
            f"api/v1/namespaces/{namespace}/pods/{name}/resize",
            {"spec": {"containers": [{"name": "main", "resources": {"limits": {ALPHA: "1"}}}]}},
            media_type="application/strategic-merge-patch+json",
        )
        assert not resize.ok

    assert len(webhook.calls(namespace)) == calls


def test_the_largest_updates_are_within_the_cost_that_cel_may_have(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    """The last of so many containers brings the word, so all of them are looked at, twice."""
    others = {f"example.com/device-{n}": 1 for n in range(20)}
    crowd = [container(f"c-{n}", limits=others) for n in range(45)]
    tolerations = [{"key": f"t-{n}", "operator": "Exists"} for n in range(100)]
    last = container("last", limits={**others, ALPHA: 1})
    what = pod(*crowd, last, tolerations=tolerations)

    first = run(cluster, namespace, what, "apply", "--server-side")
    again = run(cluster, namespace, what, "apply", "--server-side")

    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    operations = [call.request["operation"] for call in webhook.calls(namespace)]
    assert operations == ["CREATE", "UPDATE"]
