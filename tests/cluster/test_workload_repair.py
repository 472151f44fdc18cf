"""Templates are repaired where the settings say so; the tools that apply them must not fight it."""

from __future__ import annotations

import copy
import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster import nodes
from tests.cluster.conftest import INVENTORY
from tests.cluster.pods import (
    AFFINITY,
    ALPHA,
    MODEL,
    NVIDIA,
    PRODUCT,
    alpha,
    container,
    expression,
    pod,
    required,
)
from tests.cluster.webhook import WebhookServer
from tests.cluster.workloads import made_by

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder


REPAIRED = "gpu-webhook.dev/repaired"


def _limits(workload: Json) -> Json:
    limits: Json = workload["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    return limits


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job"])
@pytest.mark.parametrize("side", [(), ("--server-side",)], ids=["client side", "server side"])
def test_applying_the_legacy_manifest_again_changes_nothing(
    kind: str, side: tuple[str, ...], cluster: ControlPlane, namespace: str, repairing: Recorder
) -> None:
    what = made_by(kind, pod(alpha()), 0)
    name = what["metadata"]["name"]
    apply = (f"--namespace={namespace}", "apply", *side, "-f", "-")

    first = cluster.try_kubectl(*apply, stdin=yaml.safe_dump(what))
    made = cluster.client.get(kind, name, namespace)
    second = cluster.try_kubectl(*apply, stdin=yaml.safe_dump(what))
    after = cluster.client.get(kind, name, namespace)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert f"GPU101: container main requests {ALPHA}" in first.stderr
    assert "[enforce: repaired]" in first.stderr
    assert _limits(made) == _limits(after) == {NVIDIA: "1"}
    assert made["metadata"]["generation"] == after["metadata"]["generation"]
    for each in (made, after):
        assert each["metadata"]["annotations"][REPAIRED] == "GPU101,GPU201"
        assert REPAIRED not in each["spec"]["template"]["metadata"].get("annotations", {})
    assert repairing.calls(namespace, path="/mutate")


RECORD = "gpu-webhook.dev/template-repair"
EVERYTHING = pod(
    container(
        limits={ALPHA: 1, "memory": "1Gi"},
        volumeMounts=[{"name": "driver", "mountPath": "/usr/lib/nvidia-375"}],
        env=[{"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia-375:/opt/lib"}],
    ),
    annotations={AFFINITY: json.dumps(required(expression(MODEL, "In", "Tesla K80")))},
    nodeSelector={"kubernetes.io/os": "linux", MODEL: "Tesla K80"},
    affinity=required(expression("kubernetes.io/arch", "In", "amd64")),
    tolerations=[{"key": "dedicated", "operator": "Exists"}],
    volumes=[{"name": "driver", "hostPath": {"path": "/usr/lib/nvidia-375"}}],
)
ARCH = expression("kubernetes.io/arch", "In", "amd64")
OTHER_K80, A100 = "Tesla-K80-12GB", "NVIDIA-A100-SXM4-80GB"


@dataclass
class Tenant:
    """Somebody who applies manifests in a namespace, and looks at what became of them."""

    cluster: ControlPlane
    namespace: str
    recorder: Recorder
    server: Callable[[list[Json], Json], WebhookServer]
    side: tuple[str, ...] = ()

    def apply(self, what: Json) -> Json:
        done = self.run("apply", *self.side, "-f", "-", stdin=yaml.safe_dump(what))
        assert done.returncode == 0, done.stderr
        return self.live(what)

    def run(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return self.cluster.try_kubectl(f"--namespace={self.namespace}", *words, stdin=stdin)

    def live(self, what: Json) -> Json:
        return self.cluster.client.get(what["kind"], what["metadata"]["name"], self.namespace)

    def has_nothing_to_apply(self, what: Json) -> bool:
        done = self.run("diff", *self.side, "-f", "-", stdin=yaml.safe_dump(what))
        assert done.returncode == 0, done.stdout + done.stderr
        return True


@pytest.fixture(scope="module")
def server(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[list[Json], Json], WebhookServer]]:
    """Servers that know these nodes and have these settings; each of them is started once."""
    running: dict[str, WebhookServer] = {}
    with ExitStack() as stack:

        def start(items: list[Json], given: Json) -> WebhookServer:
            asked = json.dumps([items, given])
            if asked not in running:
                folder = tmp_path_factory.mktemp("another-server")
                settings, inventory = folder / "settings.yaml", folder / "inventory.yaml"
                settings.write_text(json.dumps(given))
                inventory.write_text(json.dumps({"kind": "List", "items": items}))
                arguments = [f"--config={settings}", f"--inventory={inventory}"]
                made = WebhookServer(folder, cluster.authority, arguments)
                running[asked] = stack.enter_context(made)
            return running[asked]

        yield start


@pytest.fixture
def tenant(
    cluster: ControlPlane,
    namespace: str,
    repairing: Recorder,
    server: Callable[[list[Json], Json], WebhookServer],
    request: pytest.FixtureRequest,
) -> Tenant:
    return Tenant(cluster, namespace, repairing, server, getattr(request, "param", ()))


sides = pytest.mark.parametrize(
    "tenant", [(), ("--server-side",)], ids=["client side", "server side"], indirect=True
)


def changed(what: Json, *places: object, to: object) -> Json:
    """Give a copy of a workload with something else in the spec of its pods."""
    copied = copy.deepcopy(what)
    here: Any = copied["spec"]["template"]
    for place in places[:-1]:
        here = here[place]
    if to is None:
        del here[places[-1]]
    else:
        here[places[-1]] = to
    return copied


def of(workload: Json, *places: object) -> Any:
    here: Any = workload["spec"]["template"]
    for place in places:
        here = here.get(place) if isinstance(here, dict) else here[place]
    return here


LIMITS = ("spec", "containers", 0, "resources", "limits")
TERMS = (
    "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)  # fmt: skip


def models(workload: Json) -> list[list[str]]:
    """Give the values of each requirement on the model."""
    found = [
        each["values"]
        for term in of(workload, *TERMS)
        for each in term["matchExpressions"]
        if each["key"] == PRODUCT
    ]
    selector = of(workload, "spec", "nodeSelector") or {}
    return found + ([[selector[PRODUCT]]] if PRODUCT in selector else [])


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"])
@sides
def test_everything_that_is_legacy_is_applied_again(kind: str, tenant: Tenant) -> None:
    what = made_by(kind, EVERYTHING, 0)
    first = tenant.apply(what)

    assert tenant.has_nothing_to_apply(what)
    second = tenant.apply(what)

    assert first["metadata"]["generation"] == second["metadata"]["generation"]
    assert first["metadata"]["annotations"][RECORD] == second["metadata"]["annotations"][RECORD]
    assert RECORD not in (of(second, "metadata", "annotations") or {})
    assert of(second, *LIMITS) == {NVIDIA: "1", "memory": "1Gi"}


@sides
def test_another_amount_is_honoured(tenant: Tenant) -> None:
    what = made_by("Deployment", EVERYTHING, 0)
    tenant.apply(what)
    live = tenant.apply(changed(what, *LIMITS, ALPHA, to=2))
    again = tenant.apply(changed(what, *LIMITS, ALPHA, to=2))
    back = tenant.apply(what)

    assert of(live, *LIMITS)[NVIDIA] == of(again, *LIMITS)[NVIDIA] == "2"
    assert live["metadata"]["generation"] == again["metadata"]["generation"]
    assert of(back, *LIMITS)[NVIDIA] == "1"


@sides
def test_another_model_takes_the_place_of_the_one_before(tenant: Tenant) -> None:
    annotation = ("metadata", "annotations", AFFINITY)
    k80, t4 = (
        json.dumps(required(expression(MODEL, "In", each))) for each in ("Tesla K80", "Tesla T4")
    )
    what = made_by("Deployment", pod(alpha(), annotations={AFFINITY: k80}), 1)
    assert models(tenant.apply(what)) == [["Tesla-K80"]]

    live = tenant.apply(changed(what, *annotation, to=t4))

    assert models(live) == [["Tesla-T4"]]
    assert AFFINITY not in (of(live, "metadata", "annotations") or {})
    assert models(tenant.apply(what)) == [["Tesla-K80"]]


@sides
def test_so_it_does_beside_affinity_of_the_authors_own(tenant: Tenant) -> None:
    annotation = ("metadata", "annotations", AFFINITY)
    t4 = json.dumps(required(expression(MODEL, "In", "Tesla T4")))
    what = changed(made_by("Deployment", EVERYTHING, 1), "spec", "nodeSelector", to=None)
    assert models(tenant.apply(what)) == [["Tesla-K80"]]

    live = tenant.apply(changed(what, *annotation, to=t4))

    assert models(live) == [["Tesla-T4"]]
    assert ARCH in of(live, *TERMS)[0]["matchExpressions"]
    assert AFFINITY not in (of(live, "metadata", "annotations") or {})


@sides
def test_another_model_in_node_selector_does_too(tenant: Tenant) -> None:
    what = made_by("Deployment", pod(alpha(), nodeSelector={MODEL: "Tesla K80"}), 0)
    tenant.apply(what)
    live = tenant.apply(changed(what, "spec", "nodeSelector", MODEL, to="Tesla T4"))
    gone = tenant.apply(changed(what, "spec", "nodeSelector", to=None))

    assert of(live, "spec", "nodeSelector") == {PRODUCT: "Tesla-T4"}
    assert of(gone, "spec", "nodeSelector") is None


@pytest.mark.parametrize(
    "selector", [{PRODUCT: "Tesla-K80"}, {"zone": "a"}], ids=["a model of today", "another label"]
)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@sides
def test_another_selector_takes_the_place_of_a_model_that_became_affinity(
    kind: str, selector: Json, tenant: Tenant
) -> None:
    """The model has several spellings; nodeSelector is one field to server-side apply."""
    what = made_by(kind, pod(alpha(), nodeSelector={MODEL: "Tesla P100"}), 0)
    first = tenant.apply(what)
    assert len(models(first)[0]) > 1

    second = tenant.apply(changed(what, "spec", "nodeSelector", to=selector))
    assert of(second, "spec", "nodeSelector") == selector
    assert of(second, "spec", "affinity") is None
    assert tenant.has_nothing_to_apply(changed(what, "spec", "nodeSelector", to=selector))
    assert of(tenant.apply(what), "spec", "affinity") == of(first, "spec", "affinity")


SCHEDULER = "scheduler.alpha.kubernetes.io/name"
OF_SETTINGS = {
    "workloads": {"repair": True},
    "annotationSchedulers": ["volcano"],
    "placement": {"enabled": True},
    "drivers": {
        "profile": "host-path",
        "hostPath": {
            "mounts": [{"path": "/opt/driver", "mountPath": "/nvidia", "type": "Directory"}],
            "libraryPath": "/nvidia",
        },
    },
}


@sides
def test_what_the_settings_ask_for_follows_the_manifest(tenant: Tenant) -> None:
    """The API server writes defaults: a schedulerName, say, where the author wrote none."""
    what = made_by("Deployment", pod(alpha(), annotations={SCHEDULER: "volcano"}), 0)
    no_gpu = changed(what, *LIMITS, to={"memory": "1Gi"})
    no_gpu = changed(no_gpu, "metadata", "annotations", SCHEDULER, to=None)
    with another_server(tenant, nodes.from_inventory(INVENTORY), OF_SETTINGS):
        first = tenant.apply(what)
        second = tenant.apply(what)
        assert of(first, "spec", "schedulerName") == "volcano"
        assert of(first, "spec", "nodeSelector") == {"nvidia.com/gpu.present": "true"}
        assert len(of(first, "spec", "volumes")) == 1
        assert first["metadata"]["generation"] == second["metadata"]["generation"]
        assert first["metadata"]["annotations"][RECORD] == second["metadata"]["annotations"][RECORD]

        without = tenant.apply(no_gpu)
        assert of(without, "spec", "schedulerName") == "default-scheduler"
        assert of(without, "spec", "nodeSelector") is None
        assert of(without, "spec", "volumes") is None
        assert not {"env", "volumeMounts"} & of(without, "spec", "containers", 0).keys()
        assert tenant.has_nothing_to_apply(no_gpu)
        tenant.apply(changed(what, *LIMITS, to={NVIDIA: 1}))
        assert of(tenant.apply(no_gpu), "spec", "volumes") is None

        tenant.apply(what)
    restarted = tenant.run("rollout", "restart", f"deployment/{what['metadata']['name']}")
    assert restarted.returncode == 0, restarted.stderr
    assert of(tenant.live(what), "spec", "volumes") is None  # the settings name no path any more


@sides
def test_words_that_the_author_takes_away_are_gone(tenant: Tenant) -> None:
    """The tool finds nothing to take away in what is stored, and still it is another manifest."""
    what = made_by("Deployment", EVERYTHING, 0)
    tenant.apply(what)
    what = changed(what, "metadata", "annotations", AFFINITY, to=None)
    what = changed(what, "spec", "nodeSelector", MODEL, to=None)
    no_model = tenant.apply(what)
    no_gpu = tenant.apply(changed(what, *LIMITS, ALPHA, to=None))

    assert models(no_model) == []
    assert of(no_model, "spec", "nodeSelector") == {"kubernetes.io/os": "linux"}
    assert of(no_gpu, *LIMITS) == {"memory": "1Gi"}


@sides
def test_words_of_today_in_their_place_stay(tenant: Tenant) -> None:
    what = made_by("Deployment", pod(alpha(), nodeSelector={MODEL: "Tesla K80"}), 0)
    first = tenant.apply(what)
    what = changed(what, *LIMITS, to={NVIDIA: 1})
    second = tenant.apply(changed(what, "spec", "nodeSelector", to={PRODUCT: "Tesla-K80"}))

    assert first["spec"]["template"] == second["spec"]["template"]


@sides
def test_what_the_author_says_in_words_of_today_stays(tenant: Tenant) -> None:
    """He wrote our term himself, before and after the annotation went."""
    same = required(ARCH, expression(PRODUCT, "In", "Tesla-K80"))
    annotation = ("metadata", "annotations", AFFINITY)
    what = changed(made_by("Deployment", EVERYTHING, 0), "spec", "affinity", to=same)
    what = changed(what, "spec", "nodeSelector", to=None)
    both = tenant.apply(what)
    again = tenant.apply(what)
    alone = tenant.apply(changed(what, *annotation, to=None))

    assert models(both) == models(again) == models(alone) == [["Tesla-K80"]]
    assert both["metadata"]["generation"] == again["metadata"]["generation"]


@sides
def test_another_manifest_line_changes_only_itself(tenant: Tenant) -> None:
    what = made_by("Deployment", EVERYTHING, 0)
    first = tenant.apply(what)
    image = changed(what, "spec", "containers", 0, "image", to="example.com/image:2")
    second = tenant.apply(image)

    assert of(second, "spec", "containers", 0, "image") == "example.com/image:2"
    rest = changed(second, "spec", "containers", 0, "image", to="example.com/image:1")
    assert rest["spec"]["template"] == first["spec"]["template"]


def test_commands_that_know_nothing_of_the_manifest_keep_the_repair(tenant: Tenant) -> None:
    what = made_by("Deployment", EVERYTHING, 0)
    first = tenant.apply(what)
    name = f"deployment/{what['metadata']['name']}"

    for words in (
        ("scale", name, "--replicas=0"),
        ("set", "image", name, "main=example.com/image:3"),
        ("rollout", "restart", name),
        ("set", "env", name, "X=1"),
        ("rollout", "undo", name),
        ("label", name, "a=b"),
    ):
        done = tenant.run(*words)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        live = tenant.live(what)
        assert of(live, *LIMITS) == of(first, *LIMITS), words
        assert of(live, "spec", "affinity") == of(first, "spec", "affinity"), words
        assert of(live, "spec", "tolerations") == of(first, "spec", "tolerations"), words

    assert of(tenant.apply(changed(what, *LIMITS, ALPHA, to=3)), *LIMITS)[NVIDIA] == "3"


def test_a_manifest_that_replaces_the_object_is_repaired_as_before(tenant: Tenant) -> None:
    what = made_by("Deployment", EVERYTHING, 0)
    first = tenant.apply(what)
    done = tenant.run("replace", "-f", "-", stdin=yaml.safe_dump(what))

    live = tenant.live(what)
    assert done.returncode == 0, done.stderr
    assert live["spec"]["template"] == first["spec"]["template"]
    assert live["metadata"]["annotations"][RECORD] == first["metadata"]["annotations"][RECORD]


@sides
def test_a_job_is_refused_only_where_its_words_change(tenant: Tenant) -> None:
    what = made_by("Job", EVERYTHING, 1)
    tenant.apply(what)
    tenant.apply(what)
    other = yaml.safe_dump(changed(what, *LIMITS, ALPHA, to=2))
    refused = tenant.run("apply", *tenant.side, "-f", "-", stdin=other)

    assert refused.returncode == 1
    assert "field is immutable" in refused.stderr


@sides
def test_of_a_job_labels_and_finalizers_change_after_other_nodes_came(tenant: Tenant) -> None:
    """And the API server, which never lets its template change, allows it."""
    what = made_by("Job", pod(alpha(), nodeSelector={MODEL: "Tesla K80"}), 1)
    first = tenant.apply(what)
    with other_inventory(tenant, joining=False):
        again = tenant.apply({**what, "metadata": {**what["metadata"], "labels": {"a": "b"}}})

    assert again["metadata"]["labels"]["a"] == "b"
    assert again["spec"]["template"] == first["spec"]["template"]


def test_a_cron_job_has_its_template_deeper(tenant: Tenant) -> None:
    what = made_by("CronJob", EVERYTHING, 1)
    first = tenant.apply(what)
    second = tenant.apply(what)
    at = what["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["resources"]
    at["limits"][ALPHA] = 4
    third = tenant.apply(what)

    assert first["metadata"]["generation"] == second["metadata"]["generation"]
    spec = third["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert spec["containers"][0]["resources"]["limits"][NVIDIA] == "4"


@sides
def test_a_record_that_somebody_forged_does_no_harm(tenant: Tenant) -> None:
    what = made_by("Deployment", EVERYTHING, 0)
    name = f"deployment/{what['metadata']['name']}"
    first = tenant.apply(what)
    for text in ("{", "[]", '{"/spec/template":{"/spec/affinity":[null,1],"x":7}}', "x" * 70000):
        tenant.run("annotate", "--overwrite", name, f"{RECORD}={text}")
        assert tenant.apply(what)["spec"]["template"] == first["spec"]["template"]


def test_kubectl_diff_is_not_told_of_all_that_apply_is(tenant: Tenant) -> None:
    """As docs/gitops.md says. What both are told of is the other label alone."""
    selector = {MODEL: "Tesla K80", "kubernetes.io/os": "linux"}
    what = made_by("Deployment", pod(alpha(), nodeSelector=selector), 0)
    first = tenant.apply(what)
    less = changed(what, "spec", "nodeSelector", MODEL, to=None)
    assert tenant.has_nothing_to_apply(less)
    second = tenant.apply(less)
    assert first["metadata"]["generation"] < second["metadata"]["generation"]
    assert PRODUCT in json.dumps(first["spec"])
    assert PRODUCT not in json.dumps(second["spec"])


@sides
def test_a_model_that_more_nodes_have_rolls_nothing_out(tenant: Tenant) -> None:
    kinds = ("Deployment", "Job")
    made = [made_by(kind, EVERYTHING, 0 if kind == "Deployment" else 1) for kind in kinds]
    first = [tenant.apply(each) for each in made]

    with other_inventory(tenant, joining=True):
        second = [tenant.apply(each) for each in made]
        assert all(tenant.has_nothing_to_apply(each) for each in made)
        new = tenant.apply(changed(made[0], *LIMITS, ALPHA, to=2))

    for before, after in zip(first, second, strict=True):
        assert before["spec"]["template"] == after["spec"]["template"]
        assert before["metadata"]["generation"] == after["metadata"]["generation"]
    assert OTHER_K80 in models(new)[0]


@sides
def test_a_model_that_no_node_has_any_more_is_named_anew(tenant: Tenant) -> None:
    what = made_by("Deployment", pod(alpha(), nodeSelector={MODEL: "Tesla K80"}), 0)
    tenant.apply(what)
    with other_inventory(tenant, joining=False):
        live = tenant.apply(what)

    assert OTHER_K80 in json.dumps(live["spec"]["template"])


NO_K80 = required(expression(MODEL, "NotIn", "Tesla-K80"))


@sides
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"affinity": NO_K80}, id="NotIn"),
        pytest.param({"annotations": {AFFINITY: json.dumps(NO_K80)}}, id="NotIn, annotated"),
        pytest.param({"affinity": required(expression(MODEL, "DoesNotExist"))}, id="DoesNotExist"),
    ],
)
@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_an_exclusion_rolls_nothing_out_whichever_label_its_nodes_get(
    kind: str, asked: Json, tenant: Tenant
) -> None:
    what = made_by(kind, pod(alpha(), **asked), 0)
    old, new = {MODEL: "Tesla-K80"}, {PRODUCT: "Tesla-K80"}
    seen = []
    for labels in (new, old, old | new, new, {}):
        with inventory_of_k80(labels, tenant):
            seen.append(tenant.apply(what))
            assert tenant.has_nothing_to_apply(what)

    assert {each["metadata"]["generation"] for each in seen} == {1}
    assert {MODEL, PRODUCT} == {each["key"] for each in of(seen[0], *TERMS)[0]["matchExpressions"]}


@contextmanager
def inventory_of_k80(labels: Json, tenant: Tenant) -> Iterator[None]:
    """Another server answers, for which the K80 nodes carry only these labels of models."""
    items = nodes.from_inventory(INVENTORY)
    for each in items:
        there = each["metadata"]["labels"]
        if there.get(PRODUCT) == "Tesla-K80":
            del there[PRODUCT]
            there |= labels
    with another_server(tenant, items, {"workloads": {"repair": True}}):
        yield


@contextmanager
def other_inventory(tenant: Tenant, *, joining: bool) -> Iterator[None]:
    """Another server answers, which knows K80 nodes of another spelling: more, or instead."""
    items = nodes.from_inventory(INVENTORY)
    k80 = next(each for each in items if each["metadata"]["name"] == "gpu-k80-1")
    other = copy.deepcopy(k80)
    other["metadata"] |= {"name": "gpu-k80-2"}
    other["metadata"]["labels"] |= {PRODUCT: OTHER_K80, "kubernetes.io/hostname": "gpu-k80-2"}
    items = [each for each in items if joining or each is not k80] + [other]
    with another_server(tenant, items, {"workloads": {"repair": True}}):
        yield


@contextmanager
def another_server(tenant: Tenant, items: list[Json], given: Json) -> Iterator[None]:
    with tenant.recorder.passing_to(tenant.server(items, given)):
        yield
