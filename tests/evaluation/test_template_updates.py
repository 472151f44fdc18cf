"""What authors send again: merged as kubectl and the API server merge it, and told apart again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest

from tests.engine import run
from webhook.capacity.node_selection import matching, selector
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.draft import Draft
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context
from webhook.core.settings import (
    DriverMount,
    Drivers,
    Models,
    Placement,
    Settings,
    Taint,
    Workloads,
)
from webhook.evaluation import pod_updates, repair_record, template_updates
from webhook.evaluation.authors import Authors
from webhook.evaluation.evaluate import Asking
from webhook.evaluation.update_fields import Update
from webhook.kube.pod import Pod
from webhook.kube.pointer import Path
from webhook.rules import RULES

Raw = dict[str, Any]

LEGACY, GPU = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
MODEL, PRODUCT = "alpha.kubernetes.io/nvidia-gpu-name", "nvidia.com/gpu.product"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
HOSTNAME = "pod.beta.kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
DRIVER = "/usr/lib/nvidia-375"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
AT = Path(("spec", "template"))
KEYS = {"containers": "name", "volumes": "name", "env": "name", "volumeMounts": "mountPath"}


def nodes(*products: str, taints: tuple[Taint, ...] = (), old: tuple[str, ...] = ()) -> Context:
    """Give a cluster with one GPU node of each product, and of each that has the old label."""
    named = [*((PRODUCT, each) for each in products), *((MODEL, each) for each in old)]
    classes = tuple(NodeClass({key: each}, taints, {GPU: 8}) for key, each in named)
    return Context(inventory=Inventory(classes))


def container(limits: Raw | None = None, **more: Any) -> Raw:
    return {"name": "c", "image": "i", "resources": {"limits": limits or {LEGACY: "1"}}, **more}


def pod(*containers: Raw, annotations: Raw | None = None, **spec: Any) -> Raw:
    metadata: Raw = {"annotations": annotations} if annotations else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": list(containers or [container()]), **spec},
    }


def terms(*requirements: tuple[str, str, list[str]]) -> Raw:
    listed = [{"key": k, "operator": o, "values": v} for k, o, v in requirements]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": listed}]}}}


def wishes(*requirements: tuple[str, str, list[str]]) -> Raw:
    (term,) = terms(*requirements)["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term}]}}


def model(*values: str) -> Raw:
    return terms((MODEL, "In", list(values)))


def in_annotation(affinity: Raw) -> Raw:
    return {AFFINITY: json.dumps(affinity)}


def copied(value: Any) -> Any:
    """Give a copy of something that was JSON: orjson makes it ten times faster than deepcopy."""
    return orjson.loads(orjson.dumps(value))


def merged(live: Any, sent: Any, *, whole: tuple[str, ...] = ()) -> Any:
    """Merge a manifest into what is stored, as apply does: lists of named items by their names."""
    return copied(_merged(live, sent, "", whole))


def _merged(live: Any, sent: Any, name: str, whole: tuple[str, ...]) -> Any:
    if isinstance(live, dict) and isinstance(sent, dict) and name not in whole:
        both = {k: _merged(live[k], v, k, whole) if k in live else v for k, v in sent.items()}
        return {**live, **both}
    if isinstance(live, list) and name in KEYS:
        key = KEYS[name]
        there = {each[key]: each for each in live}
        items = [_merged(there[e[key]], e, "", whole) if e[key] in there else e for e in sent]
        named = {each[key] for each in sent}
        return [*items, *(each for each in live if each[key] not in named)]
    return sent


def without(live: Any, before: Any, now: Any, name: str = "") -> Any:
    """Give what is stored without what the manifest had, and has no more: so apply does."""
    if isinstance(live, dict) and isinstance(before, dict):
        now = now if isinstance(now, dict) else {}
        kept = {
            key: without(value, before[key], now.get(key), key) if key in before else value
            for key, value in live.items()
        }
        return {key: value for key, value in kept.items() if value is not None} or None
    if isinstance(live, list) and isinstance(before, list) and name in KEYS:
        then, there = ({each[KEYS[name]]: each for each in side or []} for side in (before, now))
        called = [(each, each[KEYS[name]]) for each in live]
        return [
            without(each, then.get(item, {}), there.get(item))
            for each, item in called
            if item in there or item not in then
        ] or None
    return live if now is not None else None


def client_side(live: Raw, manifest: Raw) -> Raw:
    """Give what kubectl apply sends; both have what was applied in an annotation."""
    sent: Raw = merged(live, manifest)
    sent["metadata"].setdefault("annotations", {})[APPLIED] = json.dumps(manifest)
    return sent


def server_side(live: Raw, manifest: Raw) -> Raw:
    sent: Raw = merged(live, manifest, whole=("nodeSelector",))
    fields = {"f:spec": _fields(manifest["spec"])}
    entry = {"manager": "kubectl", "operation": "Apply", "fieldsV1": fields}
    sent["metadata"]["managedFields"] = [entry]
    return sent


def three_way(live: Raw, manifest: Raw) -> Raw:
    """Give what Helm sends without server-side apply; it keeps what it applied to itself."""
    sent: Raw = merged(live, manifest)
    fields = {"f:spec": _fields(manifest["spec"])}
    sent["metadata"]["managedFields"] = [
        {"manager": "helm", "operation": "Update", "fieldsV1": fields}
    ]
    return sent


def _fields(value: Any, name: str = "") -> Raw:
    if isinstance(value, list) and name in KEYS:
        key = KEYS[name]
        named = {f'k:{{"{key}":"{each[key]}"}}': _fields(each) for each in value}
        return {".": {}, **named}
    if isinstance(value, dict) and name not in ("nodeSelector", REQUIRED):
        return {f"f:{key}": _fields(each, key) for key, each in value.items()}
    return {}


tools = pytest.mark.parametrize("tool", [client_side, server_side])


def stored(manifest: Raw, cx: Context, tool: Any = client_side) -> Raw:
    """Give the pod that the first apply made."""
    made: Raw = tool(copied(manifest), manifest)
    run(RULES, made, cx)
    made["spec"]["nodeName"] = "gpu-1"
    made["spec"].setdefault("schedulerName", "default-scheduler")
    return made


def sent_again(manifest: Raw, live: Raw, cx: Context, tool: Any = client_side) -> Raw:
    """Give the pod as it leaves us when the manifest is applied to the stored one."""
    update: Raw = tool(live, manifest)
    before = copied(update)
    verdict = pod_updates.pod(update, copied(live), Asking(RULES), cx)
    assert verdict.failed == ()
    assert bool(verdict.patch) is (before != update)
    return update


K80 = nodes("Tesla-K80")
EVERYTHING = pod(
    container(
        env=[
            {"name": "LD_LIBRARY_PATH", "value": f"{DRIVER}:/opt"},
            {"name": "PATH", "value": f"{DRIVER}/bin"},
        ],
        volumeMounts=[{"name": "d", "mountPath": DRIVER}, {"name": "e", "mountPath": "/e"}],
    ),
    annotations={
        **in_annotation(model("Tesla K80")),
        TOLERATIONS: '[{"key":"team","operator":"Exists"}]',
        HOSTNAME: "train-0",
        "scheduler.alpha.kubernetes.io/name": "default-scheduler",
        "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
    },
    nodeSelector={"disk": "ssd", MODEL: "Tesla K80"},
    tolerations=[{"key": "x", "operator": "Exists"}],
    volumes=[{"name": "d", "hostPath": {"path": DRIVER}}, {"name": "e", "emptyDir": {}}],
)
PODS = {
    "one GPU": pod(),
    "half a GPU": pod(container({LEGACY: "500m"})),
    "no GPU": pod(container({LEGACY: "0", "memory": "1Gi"})),
    "both names": pod(container({LEGACY: "2", GPU: "1"})),
    "a model in nodeSelector": pod(nodeSelector={MODEL: "Tesla K80"}),
    "beside affinity": pod(
        nodeSelector={MODEL: "Tesla K80"}, affinity=terms(("zone", "In", ["a"]))
    ),
    "a model in the affinity": pod(affinity=model("Tesla K80")),
    "not that model": pod(affinity=terms((MODEL, "NotIn", ["Tesla K80"]), ("zone", "In", ["a"]))),
    "no known model": pod(nodeSelector={MODEL: "Riva 128"}),
    "a preferred model": pod(
        annotations=in_annotation(
            {
                "nodeAffinity": {
                    PREFERRED: [
                        {
                            "weight": 1,
                            "preference": {
                                "matchExpressions": [
                                    {"key": MODEL, "operator": "In", "values": ["Tesla K80"]}
                                ]
                            },
                        }
                    ]
                }
            }
        )
    ),
    "affinity to pods": pod(
        annotations=in_annotation(
            {"podAffinity": {REQUIRED: [{"labelSelector": {}, "topologyKey": "zone"}]}}
        )
    ),
    "everything": EVERYTHING,
}
pods = pytest.mark.parametrize("manifest", PODS.values(), ids=PODS)


@pytest.mark.large
@pods
@tools
def test_the_same_pod_comes_to_what_is_stored(manifest: Raw, tool: Any) -> None:
    live = stored(manifest, K80, tool)
    assert sent_again(manifest, live, K80, tool)["spec"] == live["spec"]


@pytest.mark.large
@pods
@tools
@pytest.mark.parametrize(
    "now",
    [
        pytest.param(Context(), id="no inventory any more"),
        pytest.param(nodes("Tesla-K80", "Tesla-K80-12GB"), id="more nodes of the model"),
        pytest.param(nodes("Tesla-K80-12GB"), id="other nodes of the model"),
        pytest.param(nodes("Tesla-T4"), id="no node of the model"),
        pytest.param(nodes(), id="no node at all"),
        pytest.param(
            Context(inventory=Inventory((NodeClass({MODEL: "Tesla K80"}, (), {GPU: 1}),))),
            id="nodes carry the legacy label",
        ),
        pytest.param(
            replace(K80, settings=Settings(gpu_resource="nvidia.com/gpu.shared")),
            id="another resource",
        ),
        pytest.param(
            replace(K80, settings=Settings(models=Models(profile="gke"))), id="another label"
        ),
    ],
)
@pytest.mark.parametrize("then", [K80, Context()], ids=["inventory", "no inventory"])
def test_so_it_does_where_cluster_or_settings_are_others(
    manifest: Raw, tool: Any, now: Context, then: Context
) -> None:
    live = stored(manifest, then, tool)
    assert sent_again(manifest, live, now, tool)["spec"] == live["spec"]


HALF = {
    name: each
    for name, each in PODS.items()
    if name not in ("half a GPU", "no GPU", "both names", "no known model")
}


@pytest.mark.pairs
@pytest.mark.parametrize("manifest", HALF.values(), ids=HALF)
@pytest.mark.parametrize("now", [K80, nodes(old=("Tesla-K80",))], ids=["same nodes", "other label"])
@pytest.mark.parametrize("then", [K80, nodes(old=("Tesla-K80",))], ids=["today's", "old label"])
@tools
def test_so_it_does_where_only_its_amount_is_in_words_of_today(
    manifest: Raw, now: Context, then: Context, tool: Any
) -> None:
    live = stored(manifest, then, tool)
    live["metadata"].setdefault("annotations", {})["gpu-webhook.dev/repaired"] = "GPU101"
    half = copied(manifest)
    half["spec"]["containers"][0]["resources"] = {"limits": {GPU: "1"}}
    assert sent_again(half, live, now, tool)["spec"] == live["spec"]


@pytest.mark.parametrize(
    "now",
    [
        replace(K80, settings=Settings(models=Models(profile="aks"))),
        replace(K80, settings=Settings(models=Models(legacy_label="example.com/x"))),
        replace(K80, modes=Modes(Mode.AUDIT)),
    ],
    ids=["a profile that has no such model", "another legacy label", "a lower mode"],
)
def test_the_words_of_the_last_manifest_come_to_what_is_stored_and_no_others(now: Context) -> None:
    manifest = pod(nodeSelector={MODEL: "Tesla K80"})
    live = stored(manifest, K80)
    live["metadata"]["annotations"]["gpu-webhook.dev/repaired"] = "GPU101,GPU105"
    assert sent_again(manifest, live, now)["spec"] == live["spec"]
    for other in (
        pod(nodeSelector={MODEL: "Tesla T4"}),
        pod(container({LEGACY: "2"}), nodeSelector={MODEL: "Tesla K80"}),
        pod(nodeSelector={MODEL: "Tesla K80"}, tolerations=[{"key": "new"}]),
    ):
        assert sent_again(other, live, now)["spec"] != live["spec"]


MIXED = nodes("Tesla-K80", "Tesla-T4", old=("Tesla-K80", "Tesla-M40"))


@pytest.mark.large
@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(pod(nodeSelector={MODEL: "Tesla-K80"}), id="nodeSelector"),
        pytest.param(pod(affinity=model("Tesla-T4", "Tesla-M40")), id="In"),
        pytest.param(pod(annotations=in_annotation(model("Tesla-K80", "Tesla-M40"))), id="both"),
        pytest.param(pod(affinity=terms((MODEL, "NotIn", ["Tesla-K80", "Tesla-M40"]))), id="NotIn"),
        pytest.param(pod(affinity=terms((MODEL, "Exists", []))), id="Exists"),
    ],
)
@pytest.mark.parametrize(
    "now",
    [
        pytest.param(MIXED, id="the same cluster"),
        pytest.param(
            nodes("Tesla-K80", "Tesla-M40", "Tesla-T4", old=("Tesla-K80", "Tesla-M40")),
            id="a node of another model",
        ),
        pytest.param(
            nodes("Tesla-T4", old=("Tesla-K80", "Tesla-M40", "Tesla-T4")),
            id="more nodes with the old label",
        ),
    ],
)
@tools
def test_so_it_does_where_some_nodes_carry_the_old_label(
    manifest: Raw, now: Context, tool: Any
) -> None:
    live = stored(manifest, MIXED, tool)
    assert MODEL in str(live["spec"])
    assert sent_again(manifest, live, now, tool)["spec"] == live["spec"]


@tools
def test_what_the_repair_took_out_of_the_annotations_goes_again(tool: Any) -> None:
    live = stored(EVERYTHING, K80, tool)
    live["metadata"].setdefault("annotations", {})["gpu-webhook.dev/repaired"] = "GPU101"
    kept = sent_again(EVERYTHING, live, K80, tool)["metadata"]["annotations"]
    assert kept.keys() <= {APPLIED, "gpu-webhook.dev/repaired"}
    assert kept == live["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("first", "second", "at", "expected"),
    [
        pytest.param(
            pod(), pod(container({LEGACY: "2"})), ("resources", "limits"), {GPU: "2"},
            id="more GPUs",
        ),
        pytest.param(
            pod(), pod(container({LEGACY: "0"})), ("resources", "limits"), {LEGACY: "0"},
            id="no GPU",
        ),
    ],
)  # fmt: skip
@tools
def test_another_amount_is_sent_in_words_of_today(
    first: Raw, second: Raw, at: tuple[str, ...], expected: Any, tool: Any
) -> None:
    here = sent_again(second, stored(first, K80, tool), K80, tool)["spec"]["containers"][0]
    for step in at:
        here = here.get(step) if here else None
    assert here == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            pod(nodeSelector={MODEL: "K80"}), pod(nodeSelector={MODEL: "T4"}), id="nodeSelector"
        ),
        pytest.param(pod(affinity=model("K80")), pod(affinity=model("T4")), id="affinity"),
        pytest.param(
            pod(annotations=in_annotation(model("K80"))),
            pod(annotations=in_annotation(model("T4"))),
            id="annotation",
        ),
        pytest.param(
            pod(annotations=in_annotation(model("K80"))),
            pod(annotations=in_annotation(terms((MODEL, "NotIn", ["K80"])))),
            id="another operator",
        ),
        pytest.param(
            pod(annotations=in_annotation(terms(("zone", "In", ["a"])))),
            pod(annotations=in_annotation(terms(("zone", "In", ["a", "b"])))),
            id="a label that names no model",
        ),
        pytest.param(
            pod(annotations={HOSTNAME: "a"}), pod(annotations={HOSTNAME: "b"}), id="hostname"
        ),
        pytest.param(
            pod(annotations=in_annotation({"podAffinity": {REQUIRED: [{"topologyKey": "a"}]}})),
            pod(annotations=in_annotation({"podAffinity": {REQUIRED: [{"topologyKey": "b"}]}})),
            id="affinity to pods",
        ),
        pytest.param(
            pod(annotations={TOLERATIONS: '[{"key":"a","operator":"Exists"}]'}),
            pod(annotations={TOLERATIONS: '[{"key":"b","operator":"Exists"}]'}),
            id="a toleration",
        ),
    ],
)
@tools
def test_other_words_do_not_come_to_what_is_stored(first: Raw, second: Raw, tool: Any) -> None:
    both = nodes("Tesla-K80", "Tesla-T4")
    live = stored(first, both, tool)
    now = sent_again(second, live, both, tool)
    assert now["spec"] != live["spec"]
    assert LEGACY not in now["spec"]["containers"][0]["resources"]["limits"]
    assert (MODEL in json.dumps(now["spec"])) is ("NotIn" in json.dumps(second))


def test_a_toleration_that_the_author_took_away_is_not_put_back() -> None:
    first = pod(
        tolerations=[{"key": "x", "operator": "Exists"}, {"key": "y", "operator": "Exists"}]
    )
    second = pod(tolerations=[{"key": "x", "operator": "Exists"}])
    live = stored(first, K80)
    assert {"key": "y", "operator": "Exists"} not in sent_again(second, live, K80)["spec"][
        "tolerations"
    ]


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(nodes("Tesla-K80"), id="no node carries the taint any more"),
        pytest.param(nodes("Tesla-K80", taints=(Taint(GPU, "", "NoSchedule"),)), id="as it was"),
    ],
)
def test_tolerations_of_taints_of_gpu_nodes_are_put_back(now: Context) -> None:
    team = Taint("team", "gpus", "NoSchedule")
    tainted = nodes("Tesla-K80", taints=(team, Taint(GPU, "", "NoSchedule")))
    settings = Settings(taints=(team,))
    manifest = pod(container({GPU: "1"}), tolerations=[{"key": "x", "operator": "Exists"}])
    live = stored(manifest, replace(tainted, settings=settings))
    assert len(live["spec"]["tolerations"]) == 3
    now = replace(now, settings=settings)
    assert sent_again(manifest, live, now)["spec"] == live["spec"]


def test_the_drivers_profile_is_put_back() -> None:
    mounts = (DriverMount("/opt/driver", "/nvidia"),)
    drivers = Settings(drivers=Drivers(mounts, library_path="/nvidia/lib"))
    manifest = pod(container(env=[{"name": "LD_LIBRARY_PATH", "value": "/opt"}]))
    cx = replace(K80, settings=drivers)
    live = stored(manifest, cx)
    assert sent_again(manifest, live, cx)["spec"] == live["spec"]


def test_a_pod_stored_under_a_legacy_name_stays() -> None:
    live = pod(container({LEGACY: "1"}))
    assert pod_updates.pod(copied(live), live, Asking(RULES), K80).patch == []
    other = pod(container({LEGACY: "2"}), annotations=in_annotation(model("K80")))
    assert pod_updates.pod(other, live, Asking(RULES), K80).patch == []


def with_defaults(manifest: Raw, default: Raw, tool: Any, *, is_said: bool) -> Raw:
    """Give the stored pod where LimitRanger adds these amounts, before and after we repair it."""
    made: Raw = tool(copied(manifest), manifest)
    said: list[str] = []
    for _ in range(2):
        for each in made["spec"]["containers"]:
            limits = each.setdefault("resources", {}).setdefault("limits", {})
            requests = each["resources"].setdefault("requests", {})
            for name in default.keys() - limits.keys() - requests.keys():
                limits[name] = requests[name] = default[name]
                said += [f"{name} {part} for container {each['name']}" for part in PARTS]
            for name in limits.keys() - requests.keys():  # as the API server does
                requests[name] = limits[name]
        if said and is_said:
            text = "LimitRanger plugin set: " + "; ".join(said)
            made["metadata"].setdefault("annotations", {})["kubernetes.io/limit-ranger"] = text
        run(RULES, made, K80)
    return made


PARTS = ("limit", "request")
BESIDE = pod(container(), container({}, name="other"))


@pytest.mark.large
@pytest.mark.parametrize("is_said", [True, False], ids=["said", "not said"])
@pytest.mark.parametrize(
    "default",
    [
        {LEGACY: "1"},
        {LEGACY: "0"},
        {GPU: "1"},
        {GPU: "0"},
        {"nvidia.com/mig-1g.10gb": "1"},
        {LEGACY: "1", GPU: "1"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "manifest", [PODS["one GPU"], PODS["half a GPU"], BESIDE, EVERYTHING],
    ids=["one GPU", "half a GPU", "a container beside", "everything"],
)  # fmt: skip
@tools
def test_the_same_pod_comes_to_what_is_stored_beside_defaults_of_a_limit_range(
    manifest: Raw, default: Raw, tool: Any, *, is_said: bool
) -> None:
    live = with_defaults(manifest, default, tool, is_said=is_said)
    assert sent_again(manifest, live, K80, tool)["spec"] == live["spec"]


@tools
def test_another_amount_is_sent_as_it_is_beside_the_default_of_a_limit_range(tool: Any) -> None:
    live = with_defaults(pod(), {LEGACY: "1"}, tool, is_said=True)
    now = sent_again(pod(container({LEGACY: "2"})), live, K80, tool)
    assert now["spec"]["containers"][0]["resources"]["limits"] == {GPU: "2"}


def test_words_that_were_let_pass_are_let_pass_again() -> None:
    """The annotation was left alone when the pod was made; the resource is new in the manifest."""
    warned = replace(K80, modes=Modes(rules={"GPU106": Mode.WARN}))
    manifest = pod(annotations=in_annotation(model("K80")))
    live = stored(manifest, warned)
    assert AFFINITY in live["metadata"]["annotations"]
    now = sent_again(manifest, live, K80)
    assert now["spec"] == live["spec"]
    assert AFFINITY in now["metadata"]["annotations"]


def test_an_update_without_words_is_let_through() -> None:
    live = stored(EVERYTHING, K80)
    update = copied(live)
    update["spec"]["containers"][0]["image"] = "other"
    assert pod_updates.pod(update, live, Asking(RULES), K80).patch == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": [{"kind": "ReplicaSet", "name": "a", "controller": True}]},
        {"annotations": {"gpu-webhook.dev/repaired": "GPU101"}},
    ],
)
@pytest.mark.parametrize(
    "selector", [{"beta.kubernetes.io/arch": "amd64", PRODUCT: "K80"}, {MODEL: "K80"}]
)
def test_what_others_added_to_a_stored_pod_stays(selector: Raw, metadata: Raw) -> None:
    """It is translated when the pod is made: later the API server would refuse that."""
    nodes = (NodeClass({PRODUCT: "K80", "kubernetes.io/arch": "amd64"}, (), {GPU: 8}),)
    cx = Context(Settings(workloads=Workloads(repair=True)), Inventory(nodes))
    live = pod(container({GPU: "1"}), nodeSelector=selector)
    live["metadata"] = metadata
    update = copied(live)
    update["metadata"]["labels"] = {"a": "b"}
    assert pod_updates.pod(update, live, Asking(RULES), cx).patch == []
    assert run(RULES, copied(live), cx).patch


GATED = {"schedulingGates": [{"name": "a.dev/quota"}]}
CARD = "Tesla-P100-PCIE-16GB"
CARDS = ["Tesla-P100-PCIE-12GB", CARD, "Tesla-P100-SXM2-16GB"]  # of the shipped table
OF_ZONE = terms(("zone", "In", ["a"]))


def waiting(**spec: Any) -> Raw:
    """A stored pod that was repaired and has scheduling gates."""
    made = pod(container({GPU: "1"}), **copied({**GATED, **spec}))
    made["metadata"]["annotations"] = {"gpu-webhook.dev/repaired": "GPU101"}
    return made


@pytest.mark.parametrize(
    ("then", "came", "expected"),
    [
        pytest.param(
            {}, {"nodeSelector": {MODEL: CARD}}, {"nodeSelector": {PRODUCT: CARD}}, id="one name"
        ),
        pytest.param(
            {},
            {"affinity": model("Tesla-P100")},
            {"affinity": terms((PRODUCT, "In", CARDS))},
            id="in affinity",
        ),
        pytest.param(
            {"affinity": OF_ZONE},
            {"nodeSelector": {MODEL: "Tesla-P100"}, "affinity": OF_ZONE},
            {"affinity": terms(("zone", "In", ["a"]), (PRODUCT, "In", CARDS))},
            id="beside the affinity that is stored",
        ),
    ],
)
def test_a_model_that_comes_to_a_pod_with_scheduling_gates_is_translated(
    then: Raw, came: Raw, expected: Raw
) -> None:
    cx = nodes(CARD, "Tesla-P100-SXM2-16GB", "Tesla-K80")
    update, live = waiting(**came), waiting(**then)
    verdict = pod_updates.pod(update, live, Asking(RULES), cx)
    assert [each.action for each in verdict.findings] == ["repaired"]
    found = {key: update["spec"].get(key) for key in ("nodeSelector", "affinity")}
    assert {key: value for key, value in found.items() if value} == expected


@pytest.mark.parametrize(
    ("then", "came"),
    [
        pytest.param({"schedulingGates": []}, {}, id="a pod without gates"),
        pytest.param({"nodeSelector": {MODEL: "K80"}}, {}, id="the label was stored"),
        pytest.param({}, {"nodeSelector": {}}, id="it does not come"),
    ],
)
def test_any_other_model_in_a_stored_pod_is_left(then: Raw, came: Raw) -> None:
    update = waiting(**{"nodeSelector": {MODEL: CARD}, **came})
    assert pod_updates.pod(update, waiting(**then), Asking(RULES), nodes(CARD)).patch == []


def test_so_it_is_where_the_terms_would_be_others() -> None:
    """The API server refuses an update that adds a term."""
    cx = nodes(CARD, old=(CARD,))
    live = waiting(affinity=OF_ZONE)
    update = waiting(affinity=OF_ZONE, nodeSelector={MODEL: CARD})
    verdict = pod_updates.pod(update, live, Asking(RULES), cx)
    assert verdict.patch == []
    assert {each.action for each in verdict.findings} == {"reported"}


def test_a_pod_that_names_very_many_models_is_translated_as_of_today() -> None:
    many = [f"Tesla-K80-{n}GB" for n in range(300)]
    manifest = pod(annotations=in_annotation(model("K80")))
    cx = nodes(*many)
    live = stored(manifest, cx)
    assert sent_again(manifest, live, cx)["spec"] != {}


# Templates


def deployment(template: Raw, **metadata: Any) -> Raw:
    metadata = {**metadata, "name": "train"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"template": {key: template[key] for key in ("metadata", "spec")}},
    }


@pytest.mark.parametrize(("written", "expected"), [("2", "3"), ("6", "6")])
def test_while_a_workload_is_made_another_webhook_takes_nothing_away(
    written: str, expected: str
) -> None:
    """It writes the legacy name again after us, and then we are called once more."""
    obj, noted = deployment(pod(container({LEGACY: "3"}))), None
    limits = obj["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    for _ in range(2):
        verdict, noted = template_updates.template(
            Draft(obj),
            Update(AT, None, noted or {}, Authors(obj), Authors({}), may_change=True),
            Asking(RULES),
            Context(),
        )
        assert not verdict.failed
        was, limits[LEGACY] = limits[GPU], written
    assert was == expected


def with_api_defaults(spec: Raw) -> None:
    """Write what the API server writes into a template, as far as a repair touches it."""
    for member, value in (("schedulerName", "default-scheduler"), ("securityContext", {})):
        if spec.get(member) is None:
            spec[member] = value
    for each in spec["containers"]:
        each.setdefault("resources", {})
    for each in spec.get("volumes") or ():
        if "hostPath" in each:
            each["hostPath"].setdefault("type", "")


class Author:
    """Applies manifests, one after the other; what is noted is kept as the webhook keeps it."""

    def __init__(self, tool: Any, cx: Context = K80, *, may_change: bool = True) -> None:
        self.tool, self.cx, self.may_change = tool, cx, may_change
        self.live: Raw | None = None
        self.manifest: Raw = {}
        self.noted: Any = {}

    def applies(self, template: Raw) -> Raw:
        before, self.manifest = self.manifest, deployment(template)
        live = copied(self.manifest if self.live is None else self.live)
        if self.live is not None:
            live["spec"] = without(live["spec"], before["spec"], self.manifest["spec"])
        manager = "helm" if self.tool is three_way else ""
        return self.sends(self.tool(live, self.manifest), manager)

    def sends(self, update: Raw, manager: str = "") -> Raw:
        with_api_defaults(update["spec"]["template"]["spec"])
        before = copied(update)
        self.before, self.manager = copied(self.live), manager
        sent = Update(
            AT,
            copied(self.live),
            self.noted,
            Authors(update, manager),
            Authors(self.live or {}),
            self.may_change,
        )
        verdict, made = template_updates.template(Draft(update), sent, Asking(RULES), self.cx)
        assert verdict.failed == ()
        assert bool(verdict.patch) is (before != update)
        with_api_defaults(update["spec"]["template"]["spec"])
        if made is not None:
            text = repair_record.written({str(AT): made}, update)
            self.noted = repair_record.read({"annotations": {repair_record.ANNOTATION: text}}).get(
                str(AT), {}
            )
            update["metadata"].setdefault("annotations", {})[repair_record.ANNOTATION] = text
        self.live = update
        template: Raw = copied(update["spec"]["template"])
        return template

    def forgets(self) -> None:
        self.noted = {}

    def is_asked_again(self) -> Raw:
        """Send what the last update became, as after another webhook: what is stored is older."""
        made, self.live = self.live, self.before
        assert made is not None
        return self.sends(made, self.manager)

    def applies_while_we_are_away(self, template: Raw) -> None:
        manifest = deployment(template)
        assert self.live is not None
        live = copied(self.live)
        live["spec"] = without(live["spec"], self.manifest["spec"], manifest["spec"])
        self.live, self.manifest = self.tool(live, manifest), manifest

    def patches(self, patch: Raw) -> Raw:
        """Send a merge patch of the template's spec, as of a user who has no manifest."""
        assert self.live is not None
        update = copied(self.live)
        update["spec"]["template"]["spec"] = merged(update["spec"]["template"]["spec"], patch)
        entries = update["metadata"].setdefault("managedFields", [])
        for entry in entries:  # it is no longer who applied it
            entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"].pop("f:nodeSelector", None)
        fields = {"f:spec": _fields({"template": {"spec": patch}})}
        entries.append({"manager": "kubectl-patch", "operation": "Update", "fieldsV1": fields})
        return self.sends(update, "kubectl-patch")


@pytest.mark.large
@pods
@tools
def test_the_same_template_comes_to_what_is_stored(manifest: Raw, tool: Any) -> None:
    author = Author(tool)
    first = author.applies(manifest)
    noted = author.noted
    assert author.applies(manifest) == first
    assert author.noted == noted
    assert author.applies(manifest) == first


STABLE_ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
T4, V100 = "Tesla-T4", "Tesla-V100-SXM2-16GB"
PLACED = [
    pytest.param(pod(nodeSelector={MODEL: T4}), id="in nodeSelector"),
    pytest.param(pod(nodeSelector={MODEL: T4, "disk": "ssd"}), id="beside another label"),
    pytest.param(pod(affinity=model(T4)), id="in required affinity"),
    pytest.param(pod(affinity=model(T4, V100)), id="one of two models"),
    pytest.param(pod(affinity=wishes((MODEL, "In", [T4]))), id="in preferred affinity"),
    pytest.param(pod(annotations=in_annotation(model(T4))), id="in the annotation"),
    pytest.param(
        pod(annotations=in_annotation(wishes((MODEL, "In", [T4])))), id="preferred, annotated"
    ),
    pytest.param(
        pod(nodeSelector={MODEL: T4}, annotations=in_annotation(terms(("zone", "In", ["a"])))),
        id="in nodeSelector beside an annotation",
    ),
    pytest.param(
        pod(nodeSelector={MODEL: T4}, affinity=terms((MODEL, "NotIn", [V100]))),
        id="in nodeSelector beside an exclusion",
    ),
    pytest.param(
        pod(nodeSelector={MODEL: "Tesla T4"}, affinity=wishes((MODEL, "In", [T4]))),
        id="under two spellings",
    ),
]


@pytest.mark.large
@tools
@pytest.mark.parametrize("manifest", PLACED)
@pytest.mark.parametrize("is_applied", [True, False], ids=["applied again", "labelled"])
@pytest.mark.parametrize(
    "then",
    [
        nodes(old=(T4,)),
        nodes(V100, old=(T4,)),
        nodes(T4, old=(T4,)),
        nodes(T4),
    ],
    ids=["legacy label", "legacy label beside another model", "two pools", "label of today"],
)
@pytest.mark.parametrize("now", [nodes(), nodes("Tesla-M40")], ids=["none", "another model"])
def test_a_template_stays_while_the_last_nodes_of_its_model_are_away(
    then: Context, now: Context, manifest: Raw, tool: Any, *, is_applied: bool
) -> None:
    author = Author(tool, then)
    first = author.applies(manifest)
    author.cx = now
    if is_applied:
        assert author.applies(manifest) == first
    else:
        update = copied(author.live or {})
        update["metadata"]["labels"] = {"a": "b"}
        assert author.sends(update) == first
    author.cx = then
    assert author.applies(manifest) == first


# Not those of which a node with another model fits, or with another spelling.
ONLY_T4 = [
    each for each in PLACED if not {"preferred", "two"} & {*str(each.id).replace(",", "").split()}
]


_PLACES = {"disk": "ssd", "zone": "a"}


def came_back(label: str, other: str, *, joining: bool = False) -> Context:
    """Give a cluster whose T4 node was removed, and came back under the other label."""
    away = NodeClass({label: T4, **_PLACES}, gpus={GPU: 8}, removed=1)
    here = NodeClass({other: T4, **_PLACES}, gpus={GPU: 8}, nodes=("t4",), open_labels=joining)
    v100 = NodeClass({label: V100, **_PLACES}, gpus={GPU: 8})
    return Context(inventory=Inventory((v100, here, away)))


def in_place(label: str, **shown: str) -> Context:
    """Give a cluster whose T4 node has lost this label a while ago, and shows these."""
    had = ({label: (T4,)},)
    here = NodeClass({**shown, **_PLACES}, gpus={GPU: 8}, nodes=("t4",), former=had)
    v100 = NodeClass({label: V100, **_PLACES}, gpus={GPU: 8})
    return Context(inventory=Inventory((v100, here)))


BOTH_WAYS = pytest.mark.parametrize(
    ("label", "other"), [(MODEL, PRODUCT), (PRODUCT, MODEL)], ids=["of today", "legacy"]
)


def t4_and_v100(label: str) -> Context:
    classes = (NodeClass({label: each, **_PLACES}, gpus={GPU: 8}) for each in (T4, V100))
    return Context(inventory=Inventory(tuple(classes)))


@pytest.mark.large
@tools
@BOTH_WAYS
@pytest.mark.parametrize("manifest", ONLY_T4)
def test_a_template_follows_the_last_node_of_its_model_that_came_back_under_the_other_label(
    manifest: Raw, label: str, other: str, tool: Any
) -> None:
    """Though the node is remembered as it was."""
    author = Author(tool, t4_and_v100(label))
    author.applies(manifest)
    author.cx = came_back(label, other)
    made = author.applies(manifest)
    assert runs_on_t4(made, author.cx)
    assert author.applies(manifest) == made
    author.cx = t4_and_v100(label)  # and comes back as it was
    assert author.applies(manifest) == made
    assert runs_on_t4(made, author.cx)


@pytest.mark.large
@tools
@BOTH_WAYS
@pytest.mark.parametrize("manifest", ONLY_T4)
def test_a_template_follows_the_last_node_of_its_model_that_shows_the_other_label_in_place(
    manifest: Raw, label: str, other: str, tool: Any
) -> None:
    """Though its former label is remembered; and back again."""
    author = Author(tool, t4_and_v100(label))
    author.applies(manifest)
    for had, has in ((label, other), (other, label)):
        author.cx = in_place(had, **{has: T4})
        made = author.applies(manifest)
        assert runs_on_t4(made, author.cx)
        assert author.applies(manifest) == made
        author.cx = in_place(had, **{label: T4, other: T4})
        assert author.applies(manifest) == made


@pytest.mark.large
@tools
@BOTH_WAYS
@pytest.mark.parametrize("manifest", ONLY_T4)
@pytest.mark.parametrize(
    "now",
    [
        pytest.param(lambda label, _: in_place(label), id="its label vanishes for a while"),
        pytest.param(
            lambda label, other: in_place(label, **{other: V100}),
            id="the other label shows another model",
        ),
        pytest.param(
            lambda label, other: in_place(label, **{label: T4, other: T4}), id="both are shown"
        ),
        pytest.param(
            lambda label, other: with_node(in_place(label, **{other: T4}), {label: T4}),
            id="another node still shows its label",
        ),
        pytest.param(
            lambda label, other: with_node(in_place(label, **{other: T4}), {label: T4}, gpus={}),
            id="one without GPUs now, as it is not ready",
        ),
        pytest.param(
            lambda label, other: with_node(in_place(label, **{other: T4}), {}, open_labels=True),
            id="a node that joins may get its label",
        ),
    ],
)
def test_a_template_stays_while_a_node_may_have_its_label(
    now: Any, manifest: Raw, label: str, other: str, tool: Any
) -> None:
    author = Author(tool, t4_and_v100(label))
    first = author.applies(manifest)
    author.cx = now(label, other)
    assert author.applies(manifest) == first


def with_node(cx: Context, labels: Raw, **more: Any) -> Context:
    assert cx.inventory is not None
    node = NodeClass({**labels, **_PLACES}, **{"gpus": {GPU: 8}, "nodes": ("more",), **more})
    return Context(inventory=Inventory((*cx.inventory.classes, node)))


@pytest.mark.pairs
@tools
@BOTH_WAYS
@pytest.mark.parametrize("manifest", ONLY_T4)
@pytest.mark.parametrize("change", ["amount", "image"])
def test_a_changed_template_does_so_before_all_labels_of_the_node_are_known(
    change: str, manifest: Raw, label: str, other: str, tool: Any
) -> None:
    """It is rolled out in any case; without a change it waits for the labels."""
    author = Author(tool, t4_and_v100(label))
    first = author.applies(manifest)
    author.cx = came_back(label, other, joining=True)
    assert author.applies(manifest) == first
    changed = copied(manifest)
    only = changed["spec"]["containers"][0]
    if change == "amount":
        only["resources"] = {"limits": {LEGACY: "2"}}
    else:
        only["image"] = "j"
    made = author.applies(changed)
    assert runs_on_t4(made, came_back(label, other))
    assert runs_on_t4(made, t4_and_v100(label))
    assert author.applies(changed) == made


def runs_on_t4(template: Raw, cx: Context) -> bool:
    """Whether an existing T4 node fits, by the labels that it shows."""
    assert cx.inventory is not None
    index = cx.inventory.index.as_shown
    t4 = index.label(MODEL).having(T4) | index.label(PRODUCT).having(T4)
    fitting = t4 & ~index.may_come
    for each in selector(Pod(template), index):
        fitting &= each.nodes
    affinity = template["spec"].get("affinity", {}).get("nodeAffinity", {})
    listed = affinity.get(REQUIRED, {}).get("nodeSelectorTerms")
    found = [matching(each, index) for each in listed or ()]
    return any(fitting & each for each in found) if listed else bool(fitting)


@tools
@pytest.mark.parametrize("manifest", PLACED)
def test_a_label_on_the_object_leaves_its_template_as_it_is(manifest: Raw, tool: Any) -> None:
    """Its nodes got the label of today, and then it was labelled, and applied again."""
    author = Author(tool, nodes(V100, old=(T4,)))
    first = author.applies(manifest)
    author.cx = nodes(V100, T4)
    for _ in range(2):
        update = copied(author.live or {})
        update["metadata"]["labels"] = {"a": "b"}
        assert author.sends(update) == first
    made = author.applies(manifest)
    assert author.applies(manifest) == made
    asked = Author(tool, author.cx).applies(manifest)["spec"]
    for name in ("nodeSelector", "affinity"):
        assert bool(made["spec"].get(name)) is bool(asked.get(name))
    assert author.sends(copied(author.live or {})) == made


@tools
def test_a_zone_stays_while_its_nodes_are_away(tool: Any) -> None:
    there = Context(inventory=Inventory((NodeClass({STABLE_ZONE: "a"}, (), {GPU: 8}),)))
    author = Author(tool, there)
    manifest = pod(nodeSelector={BETA_ZONE: "a"})
    first = author.applies(manifest)
    assert first["spec"]["nodeSelector"] == {STABLE_ZONE: "a"}
    author.cx = nodes()
    assert author.applies(manifest)["spec"]["nodeSelector"][STABLE_ZONE] == "a"
    author.cx = there
    assert author.applies(manifest) == first


@pytest.mark.large
@pods
@tools
@pytest.mark.parametrize("may_change", [True, False], ids=["may change", "is fixed"])
@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "not noted"])
def test_so_it_does_where_more_nodes_have_the_model(
    manifest: Raw, tool: Any, *, may_change: bool, is_noted: bool
) -> None:
    author = Author(tool, may_change=may_change)
    first = author.applies(manifest)
    if not is_noted:
        author.forgets()
    author.cx = nodes("Tesla-K80", "Tesla-K80-12GB")
    assert author.applies(manifest) == first


@pytest.mark.large
@tools
@pytest.mark.parametrize("asks", [terms, wishes], ids=["required", "preferred"])
@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "not noted"])
@pytest.mark.parametrize(
    "excluded",
    [["Tesla-K80"], ["Tesla-T4", "Tesla-K80"], ["Tesla-M40", "Tesla-K80", "Tesla-T4"]],
    ids=["alone", "beside one of today", "beside those of then and of today"],
)
def test_an_excluded_model_that_comes_under_another_value_is_excluded_when_applied_again(
    excluded: list[str], asks: Any, tool: Any, *, is_noted: bool
) -> None:
    manifest = pod(affinity=asks((MODEL, "NotIn", excluded)))
    old = ("Tesla-K80", "Tesla-M40")
    author = Author(tool, nodes("Tesla-T4", old=old))
    first = author.applies(manifest)
    if not is_noted:
        author.forgets()
    author.cx = nodes("Tesla-T4", "Tesla-K80", "Tesla-P100-PCIE-16GB", old=old)
    assert author.applies(manifest) == first
    author.cx = nodes("Tesla-T4", "Tesla-K80-12GB", old=old)
    made = author.applies(manifest)
    assert "Tesla-K80-12GB" in str(made)
    assert author.applies(manifest) == made


K80_UNDER = {
    "today's label": {PRODUCT: "Tesla-K80"},
    "the old label": {MODEL: "Tesla-K80"},
    "both labels": {PRODUCT: "Tesla-K80", MODEL: "Tesla-K80"},
    "no label": {},
}


def beside_p100(labels: Raw) -> Context:
    both = ({PRODUCT: "Tesla-P100-PCIE-16GB"}, labels)
    return Context(inventory=Inventory(tuple(NodeClass(each, (), {GPU: 8}) for each in both)))


@pytest.mark.large
@tools
@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "not noted"])
@pytest.mark.parametrize("now", K80_UNDER.values(), ids=[f"then {each}" for each in K80_UNDER])
@pytest.mark.parametrize("then", K80_UNDER.values(), ids=K80_UNDER)
@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(pod(affinity=terms((MODEL, "NotIn", ["Tesla-K80"]))), id="NotIn"),
        pytest.param(pod(affinity=terms((MODEL, "DoesNotExist", []))), id="DoesNotExist"),
        pytest.param(pod(affinity=wishes((MODEL, "NotIn", ["Tesla-K80"]))), id="a preference"),
        pytest.param(
            pod(affinity=terms((MODEL, "In", ["Tesla-P100"]), (MODEL, "NotIn", ["Tesla-K80"]))),
            id="beside In",
        ),
        pytest.param(
            pod(annotations=in_annotation(terms((MODEL, "NotIn", ["Tesla-K80"])))), id="annotation"
        ),
    ],
)
def test_an_exclusion_holds_and_stays_whichever_label_the_nodes_get(
    manifest: Raw, then: Raw, now: Raw, tool: Any, *, is_noted: bool
) -> None:
    author = Author(tool, beside_p100(then))
    first = author.applies(manifest)
    if not is_noted:
        author.forgets()
    author.cx = beside_p100(now)
    assert author.applies(manifest) == first
    required = first["spec"]["affinity"]["nodeAffinity"].get(REQUIRED, {})
    for labels in list(K80_UNDER.values())[:3]:
        index = Inventory((NodeClass(labels, (), {GPU: 8}),)).index
        assert not any(matching(each, index) for each in required.get("nodeSelectorTerms", ()))


@tools
@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(
            pod(affinity=terms((MODEL, "In", ["Tesla-P100"]), (MODEL, "NotIn", ["Tesla-K80"]))),
            id="which is not selected anyway",
        ),
        pytest.param(
            pod(nodeSelector={"disk": "ssd"}, affinity=terms((MODEL, "NotIn", ["K80"]))),
            id="on a node that another label keeps it from",
        ),
    ],
)
def test_an_excluded_model_that_comes_under_another_value_rolls_out_only_what_could_run_there(
    manifest: Raw, tool: Any
) -> None:
    author = Author(tool, nodes("Tesla-K80", "Tesla-P100-PCIE-16GB"))
    first = author.applies(manifest)
    author.cx = nodes("Tesla-K80", "Tesla-P100-PCIE-16GB", "Tesla-K80-12GB")
    assert author.applies(manifest) == first


@tools
@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(pod(affinity=model("Tesla-K80")), id="In"),
        pytest.param(pod(affinity=terms((MODEL, "Exists", []))), id="Exists"),
        pytest.param(pod(nodeSelector={MODEL: "Tesla-K80"}), id="nodeSelector"),
        pytest.param(pod(affinity=wishes((MODEL, "In", ["Tesla-K80"]))), id="a preference"),
        pytest.param(pod(annotations=in_annotation(model("Tesla-K80"))), id="annotation"),
    ],
)
def test_a_model_under_both_labels_stays_while_one_of_them_is_on_its_nodes(
    manifest: Raw, tool: Any
) -> None:
    """Where the old label was all that selects nodes, and goes, today's takes its place."""
    author = Author(tool, nodes("Tesla-K80", old=("Tesla-K80",)))
    first = author.applies(manifest)
    assert MODEL in str(first)
    author.cx = nodes("Tesla-K80")
    assert author.applies(manifest) == first

    author = Author(tool, nodes("Tesla-P100-PCIE-16GB", old=("Tesla-K80",)))
    author.applies(pod(affinity=model("Tesla-K80")))
    author.cx = nodes("Tesla-P100-PCIE-16GB", "Tesla-K80")
    assert PRODUCT in str(author.applies(pod(affinity=model("Tesla-K80"))))


@pytest.mark.large
@pods
@tools
@pytest.mark.parametrize(
    "now",
    [
        nodes("Tesla-K80-12GB"),
        Context(),
        replace(K80, settings=Settings(models=Models(profile="gke"), gpu_resource="x/gpu")),
        replace(K80, modes=Modes(rules={"GPU106": Mode.WARN, "GPU105": Mode.OFF})),
    ],
    ids=["another spelling", "no inventory", "other settings", "other modes"],
)
def test_a_job_has_its_template_for_ever(manifest: Raw, tool: Any, now: Context) -> None:
    author = Author(tool, may_change=False)
    first = author.applies(manifest)
    author.cx = now
    assert author.applies(manifest) == first


@tools
def test_a_result_that_is_wrong_now_is_made_anew(tool: Any) -> None:
    author = Author(tool)
    author.applies(pod(nodeSelector={MODEL: "K80"}))
    author.cx = nodes("Tesla-K80-12GB")
    text = json.dumps(author.applies(pod(nodeSelector={MODEL: "K80"})))
    assert "Tesla-K80-12GB" in text

    author.cx = replace(K80, settings=Settings(gpu_resource="nvidia.com/gpu.shared"))
    now = author.applies(pod(nodeSelector={MODEL: "K80"}))
    assert now["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu.shared": "1"}


@tools
def test_a_label_of_other_settings_is_made_anew(tool: Any) -> None:
    author = Author(tool)
    author.applies(pod(nodeSelector={MODEL: "K80"}))
    author.cx = Context(Settings(models=Models(profile="gke")))
    text = json.dumps(author.applies(pod(nodeSelector={MODEL: "K80"})))
    assert PRODUCT not in text
    assert "nvidia-tesla-k80" in text


@tools
@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "not noted"])
def test_amounts_and_models_follow_the_author(tool: Any, *, is_noted: bool) -> None:
    author = Author(tool, nodes("Tesla-K80", "Tesla-T4"))
    for amount, name in (("1", "K80"), ("2", "K80"), ("2", "T4"), ("1", "K80"), ("1", "T4")):
        if not is_noted:
            author.forgets()
        annotated = in_annotation(model(name))
        made = author.applies(pod(container({LEGACY: amount}), annotations=annotated))
        assert made["spec"]["containers"][0]["resources"]["limits"] == {GPU: amount}
        assert made["spec"]["affinity"] == terms((PRODUCT, "In", [f"Tesla-{name}"]))
        assert not made["metadata"].get("annotations")


@tools
def test_without_a_record_tolerations_stay_until_the_author_writes_others(tool: Any) -> None:
    """One too many is the lesser harm; docs/gitops.md says so."""
    team, night = ({"key": each, "operator": "Exists"} for each in ("team", "night"))
    author = Author(tool)
    author.applies(pod(annotations={TOLERATIONS: json.dumps([team])}))
    kept = []
    for words in ({TOLERATIONS: json.dumps([night])}, None):
        author.forgets()
        kept.append(author.applies(pod(annotations=words))["spec"]["tolerations"])
    author.forgets()
    written = author.applies(pod(tolerations=[night]))["spec"]["tolerations"]

    assert all(team in each and night in each for each in kept)
    assert night in written
    assert team not in written


@tools
def test_terms_of_the_author_that_are_ours_too_stay(tool: Any) -> None:
    ours = terms((PRODUCT, "In", ["Tesla-K80"]))
    author = Author(tool)
    author.applies(pod(annotations=in_annotation(model("K80"))))
    both = author.applies(pod(annotations=in_annotation(model("K80")), affinity=ours))
    alone = author.applies(pod(affinity=ours))
    assert both["spec"]["affinity"] == alone["spec"]["affinity"] == ours


def with_others(author: Author, manifest: Raw, **spec: Any) -> Raw:
    """Apply this; another webhook adds to the spec what the manifest does not have."""
    author.manifest = sent = deployment(manifest)
    live = copied(sent if author.live is None else author.live)
    update = author.tool(live, sent)
    for member, value in spec.items():
        update["spec"]["template"]["spec"].setdefault(member, copied(value))
    return author.sends(update)


OTHERS = [{"key": "of-another-webhook", "operator": "Exists"}]


@tools
def test_tolerations_of_another_writer_stay_where_those_of_the_annotation_go(tool: Any) -> None:
    author = Author(tool)
    annotated = pod(annotations={TOLERATIONS: '[{"key":"team","operator":"Exists"}]'})
    first = with_others(author, annotated, tolerations=OTHERS)
    other = pod(annotations={TOLERATIONS: '[{"key":"night","operator":"Exists"}]'})
    second, third = author.applies(other), author.applies(pod())
    again = author.applies(annotated)

    assert first["spec"]["tolerations"][:2] == [*OTHERS, {"key": "team", "operator": "Exists"}]
    assert second["spec"]["tolerations"][:2] == [*OTHERS, {"key": "night", "operator": "Exists"}]
    assert third["spec"]["tolerations"] == [*OTHERS, *first["spec"]["tolerations"][2:]]
    assert {each["key"] for each in again["spec"]["tolerations"]} == {
        each["key"] for each in first["spec"]["tolerations"]
    }


@tools
def test_affinity_of_another_writer_stays_where_the_model_changes(tool: Any) -> None:
    zone = terms(("zone", "In", ["a"]))
    author = Author(tool, nodes("Tesla-K80", "Tesla-T4"))
    with_others(author, pod(annotations=in_annotation(model("Tesla K80"))), affinity=zone)
    second = author.applies(pod(annotations=in_annotation(model("Tesla T4"))))
    third = author.applies(pod())

    assert second["spec"]["affinity"] == terms(("zone", "In", ["a"]), (PRODUCT, "In", ["Tesla-T4"]))
    assert third["spec"]["affinity"] == zone


@tools
def test_words_that_are_brought_one_by_one_leave_other_repairs_alone(tool: Any) -> None:
    """As `kubectl set resources` does, and other webhooks that add a container."""
    author = Author(tool)
    first = author.applies(EVERYTHING)
    assert author.live is not None
    update = copied(author.live)
    spec = update["spec"]["template"]["spec"]
    spec["containers"][0]["resources"]["limits"][LEGACY] = "3"
    spec["containers"].append(container(name="late"))
    made = author.sends(update)
    assert made["spec"]["affinity"] == first["spec"]["affinity"]
    limits = [each["resources"]["limits"] for each in made["spec"]["containers"]]
    assert limits == [{GPU: "3"}, {GPU: "1"}]
    assert author.applies(EVERYTHING)["spec"]["affinity"] == first["spec"]["affinity"]


@tools
def test_an_edit_by_hand_gives_way_to_the_manifest(tool: Any) -> None:
    author = Author(tool)
    first = author.applies(pod())
    assert author.live is not None
    update = copied(author.live)
    update["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"][GPU] = "4"
    assert author.sends(update)["spec"]["containers"][0]["resources"]["limits"] == {GPU: "4"}
    assert author.applies(pod()) == first


@tools
def test_words_that_the_author_takes_away_are_gone(tool: Any) -> None:
    """Though the tool finds nothing to take away in what is stored."""
    author = Author(tool)
    first = author.applies(
        pod(container({LEGACY: "1", "memory": "1Gi"}), annotations=in_annotation(model("K80")))
    )
    assert "affinity" in first["spec"]
    no_model = author.applies(pod(container({LEGACY: "1", "memory": "1Gi"})))
    assert "affinity" not in no_model["spec"]
    no_gpu = author.applies(pod(container({"memory": "1Gi"})))
    assert no_gpu["spec"]["containers"][0]["resources"]["limits"] == {"memory": "1Gi"}


def as_one_field(live: Raw, manifest: Raw) -> Raw:
    """Give what server-side apply sends of a custom kind, whose templates are one field."""
    sent: Raw = copied(manifest)
    entry = {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}}
    annotations = live["metadata"].get("annotations", {})
    sent["metadata"] |= {"managedFields": [entry], "annotations": {**annotations}}
    return sent


def test_a_record_of_what_nobody_wants_any_more_goes() -> None:
    author = Author(as_one_field)
    author.applies(pod(nodeSelector={MODEL: "Tesla K80"}))
    assert author.noted
    plain = pod({"name": "c", "image": "i"})
    assert author.applies(plain)["spec"]["containers"][0]["resources"] == {}
    assert not author.noted
    modern = pod(container({GPU: "1"}), nodeSelector={PRODUCT: "Tesla-K80"})
    made = author.applies(modern)
    assert made["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1"}
    assert made["spec"]["nodeSelector"] == {PRODUCT: "Tesla-K80"}
    assert not author.noted


def of_custom_kind(written: Raw, *, operation: str = "Apply") -> Any:
    """Give a tool that sends a custom kind whose template has these managedFields."""

    def tool(live: Raw, manifest: Raw) -> Raw:
        sent = as_one_field(live, manifest)
        fields = {"f:spec": {"f:template": written}}
        sent["metadata"]["managedFields"][0] |= {"operation": operation, "fieldsV1": fields}
        return {**sent, "apiVersion": "example.com/v1"}

    return tool


ATOMIC = {
    "the containers": {"f:spec": {"f:containers": {}, "f:nodeSelector": {}, "f:affinity": {}}},
    "the containers are a set": {"f:spec": {"f:containers": {"v:1": {}}, "f:affinity": {}}},
    "the spec": {"f:metadata": {}, "f:spec": {}},
    "the template": {},
}
_ZONE = terms(("zone", "In", ["a"]))


@pytest.mark.large
@pytest.mark.parametrize("written", ATOMIC.values(), ids=ATOMIC)
@pytest.mark.parametrize("operation", ["Apply", "Update"])
@pytest.mark.parametrize(
    "change",
    [
        {"containers": [container(env=[{"name": "A", "value": "b"}])]},
        {"containers": [container(), {"name": "sidecar", "image": "s"}]},
        {"containers": [container({LEGACY: "2"})]},
        {"containers": [container({LEGACY: "1", GPU: "2"})]},
        {"nodeSelector": {MODEL: "Tesla K80"}},
        {"nodeSelector": {MODEL: "Tesla K80"}, "affinity": _ZONE},
        {"tolerations": [{"key": "night", "operator": "Exists"}]},
    ],
    ids=["env", "sidecar", "amount", "both names", "model", "beside affinity", "toleration"],
)
@pytest.mark.parametrize("first", [{}, {"affinity": _ZONE}], ids=["plain", "affinity"])
def test_no_update_takes_gpus_out_of_an_atomic_field_that_was_stored_as_written(
    written: Raw, operation: str, change: Raw, first: Raw
) -> None:
    """Stored while the webhook was away, or left to its pods."""
    tool = of_custom_kind(written, operation=operation)
    author, alone = Author(tool), Author(tool)
    before, after = pod(**first), pod(**first)
    after["spec"] |= copied(change)
    author.live, author.manifest = tool(deployment(before), deployment(before)), deployment(before)
    made = author.applies(after)
    assert made == alone.applies(after)
    assert author.applies(after) == made


@pytest.mark.parametrize("written", ATOMIC.values(), ids=ATOMIC)
def test_a_larger_amount_beside_a_legacy_one_stays_in_an_atomic_field(written: Raw) -> None:
    author = Author(of_custom_kind(written))
    both = pod(container({LEGACY: "1", GPU: "2"}))
    author.live = author.tool(deployment(both), deployment(both))
    author.manifest = deployment(both)
    assert limits_of(author.applies(pod(container({LEGACY: "1", GPU: "2"}, image="j")))) == {
        GPU: "2"
    }


@tools
def test_a_legacy_amount_that_another_writer_set_while_we_were_away_stays(tool: Any) -> None:
    author = Author(tool)
    author.applies(pod({"name": "c", "image": "i"}))
    assert author.live is not None
    author.live["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {LEGACY: 1}}
    update = copied(author.live)
    update["spec"]["template"]["spec"]["nodeSelector"] = {MODEL: "Tesla K80"}
    assert limits_of(author.sends(update)) == {GPU: 1}


@tools
def test_words_of_today_in_their_place_stay(tool: Any) -> None:
    author = Author(tool)
    author.applies(pod(annotations=in_annotation(model("K80"))))
    today = terms((PRODUCT, "In", ["Tesla-K80"]))
    made = author.applies(pod(container({GPU: "1"}), affinity=today))
    assert made["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1"}
    assert made["spec"]["affinity"] == today


@tools
@pytest.mark.parametrize("operator", ["In", "NotIn"])
@pytest.mark.parametrize("way", [terms, wishes], ids=["required", "preferred"])
def test_legacy_words_for_more_models_than_stood_there_are_all_translated(
    way: Any, operator: str, tool: Any
) -> None:
    tainted = nodes("Tesla-K80", "Tesla-M40", taints=(Taint(GPU, "", "NoSchedule"),))
    author, alone = Author(tool, tainted), Author(tool, tainted)
    author.applies(pod(container({GPU: "1"}), affinity=way((PRODUCT, operator, ["Tesla-K80"]))))
    more = pod(affinity=way((MODEL, operator, ["Tesla-M40", "Tesla-K80"])))
    assert author.applies(more)["spec"]["affinity"] == alone.applies(more)["spec"]["affinity"]


P100 = nodes("Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB", "Tesla-K80")
by_any_tool = pytest.mark.parametrize("tool", [client_side, server_side, three_way])


@pytest.mark.large
@by_any_tool
@pytest.mark.parametrize(
    "limits", [{GPU: "1"}, {LEGACY: "1"}], ids=["an amount of today", "a legacy amount"]
)
@pytest.mark.parametrize("beside", [{}, {"disk": "ssd"}], ids=["alone", "beside another label"])
@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({PRODUCT: "Tesla-K80"}, id="another model in words of today"),
        pytest.param({PRODUCT: "Tesla-P100-PCIE-16GB"}, id="one spelling of the same model"),
        pytest.param({"zone": "a"}, id="another label"),
    ],
)
def test_another_node_selector_takes_the_place_of_a_legacy_model_in_it(
    limits: Raw, beside: Raw, selector: Raw, tool: Any
) -> None:
    author, alone = Author(tool, P100), Author(tool, P100)
    author.applies(pod(nodeSelector={MODEL: "Tesla P100", **beside}))
    second = pod(container(limits), nodeSelector={**selector, **beside})
    made = author.applies(second)
    said, wanted = ({**each["spec"], "tolerations": []} for each in (made, alone.applies(second)))
    assert said == wanted
    assert author.is_asked_again() == made
    assert author.applies(second) == made


@by_any_tool
def test_a_selector_that_is_taken_out_whole_takes_its_legacy_model_with_it(tool: Any) -> None:
    author = Author(tool, P100)
    author.applies(pod(nodeSelector={MODEL: "Tesla P100", "disk": "ssd"}))
    made = author.applies(pod())
    assert not made["spec"].get("affinity")
    assert author.is_asked_again() == made


@by_any_tool
@pytest.mark.parametrize("beside", [{}, {"disk": "ssd"}], ids=["alone", "beside another label"])
def test_a_legacy_model_stays_where_the_selector_gets_another_label(beside: Raw, tool: Any) -> None:
    """From the manifest, which still has the model, or from somebody who has no manifest."""
    author, alone = Author(tool, P100), Author(tool, P100)
    selector = {MODEL: "Tesla P100", **beside}
    first = author.applies(pod(nodeSelector=selector))
    more = pod(nodeSelector={**selector, "zone": "a"})
    made = author.applies(more)
    assert made["spec"]["affinity"] == first["spec"]["affinity"]
    assert author.is_asked_again() == made == alone.applies(more)

    patched = author.patches({"nodeSelector": {"night": "yes"}})
    assert patched["spec"]["affinity"] == first["spec"]["affinity"]


@tools
@pytest.mark.parametrize(
    "today",
    [
        pytest.param({"nodeSelector": {PRODUCT: "Tesla-K80"}}, id="a node selector"),
        pytest.param({"affinity": terms((PRODUCT, "In", ["Tesla-K80"]))}, id="an affinity"),
    ],
)
def test_legacy_words_in_the_place_of_those_of_today_are_written_as_in_a_new_object(
    today: Raw, tool: Any
) -> None:
    """Both say the same, but what the author took out is not put back."""
    cx = nodes("Tesla-K80", taints=(Taint(GPU, "", "NoSchedule"),))
    author, alone = Author(tool, cx), Author(tool, cx)
    words = pod(annotations=in_annotation(model("Tesla K80")))
    author.applies(pod(container({GPU: "1"}), **today))
    assert author.applies(words)["spec"] == alone.applies(words)["spec"]
    assert author.applies(words)["spec"] == alone.applies(words)["spec"]


def test_a_manifest_that_says_nothing_of_before_takes_nothing_away() -> None:
    """As `kubectl replace` sends it: the object is no longer one that is applied."""
    author = Author(client_side)
    first = author.applies(pod())
    today = deployment(pod(container({GPU: "1"})))
    assert author.sends(today)["spec"]["containers"] == first["spec"]["containers"]


def test_a_second_round_repairs_what_came_in_between() -> None:
    """A webhook after us adds a container to a workload that is being made."""
    author = Author(client_side)
    manifest = deployment(EVERYTHING)
    first = author.sends(client_side(manifest, manifest))
    noted, update = author.noted, author.live
    author.live = None  # nothing is stored yet
    assert update is not None
    update["spec"]["template"]["spec"]["containers"].append(container(name="late"))
    second = author.sends(update)
    assert second["spec"]["containers"][0] == first["spec"]["containers"][0]
    assert second["spec"]["containers"][1]["resources"]["limits"] == {GPU: "1"}
    assert noted.items() <= author.noted.items()


@pytest.mark.parametrize(
    "noted",
    [
        {("spec", "affinity"): (None, 1), ("x", "y"): ("x", "y"), ("x", "z"): (None, None)},
        {("spec", "containers", "c", "image"): ("i", "evil")},
        {("spec", "hostNetwork"): (None, True), ("spec", "hostname"): ("a", None)},
    ],
)
@tools
def test_a_forged_record_brings_nothing_in(noted: Any, tool: Any) -> None:
    author = Author(tool)
    first = author.applies(EVERYTHING)
    author.noted = noted
    assert author.applies(EVERYTHING) == first


@tools
def test_what_a_forged_record_says_was_there_before_is_not_brought_in(tool: Any) -> None:
    author = Author(tool)
    manifest = pod(annotations={TOLERATIONS: '[{"key":"team","operator":"Exists"}]'})
    first = author.applies(manifest)
    forged = [{"key": "evil", "operator": "Exists"}]
    at = ("spec", "tolerations")
    author.noted = {**author.noted, at: (forged, first["spec"]["tolerations"])}
    assert author.applies(manifest) == first


@tools
def test_another_legacy_model_beside_a_resource_of_today_is_left_as_in_a_new_object(
    tool: Any,
) -> None:
    author = Author(tool, nodes("Tesla-K80", "Tesla-T4"))
    author.applies(pod(annotations=in_annotation(model("Tesla K80"))))
    made = author.applies(pod(container({GPU: "1"}), annotations=in_annotation(model("Tesla T4"))))
    assert "affinity" not in made["spec"]


@tools
@pytest.mark.parametrize(
    ("then", "now"),
    [
        pytest.param(["none", "mps"], ["none"], id="they went away"),
        pytest.param(["none"], ["none", "mps"], id="they came"),
    ],
)
@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(pod(nodeSelector={MODEL: "Tesla-T4"}), id="nodeSelector"),
        pytest.param(pod(affinity=model("Tesla-T4")), id="affinity"),
        pytest.param(pod(annotations=in_annotation(model("Tesla-T4"))), id="the annotation"),
    ],
)
def test_nodes_with_parts_of_gpus_may_come_and_go(
    manifest: Raw, then: list[str], now: list[str], tool: Any
) -> None:
    def cluster(*strategies: str) -> Context:
        mark = "nvidia.com/gpu.sharing-strategy"
        labels = ({PRODUCT: "Tesla-T4", mark: each} for each in strategies)
        return Context(inventory=Inventory(tuple(NodeClass(each, (), {GPU: 8}) for each in labels)))

    live = stored(manifest, cluster(*then), tool)
    assert ("sharing" in json.dumps(live["spec"])) is ("mps" in then)
    assert sent_again(manifest, live, cluster(*now), tool)["spec"] == live["spec"]


def legacy(amount: str, name: str) -> list[Any]:
    """Give a manifest of each way to choose a model."""
    limits = container({LEGACY: amount})
    return [
        pytest.param(
            pod(limits, nodeSelector={MODEL: name}), id=f"{amount} {name} in nodeSelector"
        ),
        pytest.param(pod(limits, affinity=model(name)), id=f"{amount} {name} in the affinity"),
        pytest.param(
            pod(limits, annotations=in_annotation(model(name))), id=f"{amount} {name} annotated"
        ),
    ]


@pytest.mark.large
@tools
@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "not noted"])
@pytest.mark.parametrize("first", legacy("2", "Tesla K80"))
@pytest.mark.parametrize("second", [*legacy("1", "Tesla T4"), *legacy("4", "Tesla T4")])
def test_words_that_came_while_we_were_away_are_translated_by_the_next_update(
    first: Raw, second: Raw, tool: Any, *, is_noted: bool
) -> None:
    """A `rollout restart`, say: what the author wrote meanwhile stands for itself."""
    cx = nodes("Tesla-K80", "Tesla-T4")
    author, alone = Author(tool, cx), Author(tool, cx)
    author.applies(first)
    author.applies_while_we_are_away(second)
    if not is_noted:
        author.forgets()
    update = copied(author.live)
    assert update is not None
    update["spec"]["template"]["metadata"]["labels"] = {"restarted": "now"}
    made = author.sends(update)

    wanted = alone.applies(second)
    said = ("nodeSelector", "affinity", "containers")
    assert [made["spec"].get(each) for each in said] == [wanted["spec"].get(each) for each in said]
    assert author.applies(second)["spec"] == made["spec"]
    assert LEGACY not in json.dumps(made)
    assert MODEL not in json.dumps(made)


@tools
def test_so_are_tolerations_and_a_smaller_amount_alone(tool: Any) -> None:
    team, night = ({"key": each, "operator": "Exists"} for each in ("team", "night"))
    author = Author(tool)
    author.applies(pod(container({LEGACY: "4"}), annotations={TOLERATIONS: json.dumps([team])}))
    second = pod(container({LEGACY: "1"}), annotations={TOLERATIONS: json.dumps([night])})
    author.applies_while_we_are_away(second)
    assert author.applies(second)["spec"] == Author(tool).applies(second)["spec"]


def limits_of(template: Raw) -> Raw:
    limits: Raw = template["spec"]["containers"][0]["resources"]["limits"]
    return limits


def beside_another(update: Raw, limits: Raw) -> Raw:
    """Give an update of what another manager applies these limits to."""
    other = {"f:template": {"f:spec": _fields(pod(container(limits))["spec"])}}
    entry = {"manager": "other", "operation": "Apply", "fieldsV1": {"f:spec": other}}
    mine = [each for each in update["metadata"]["managedFields"] if each["manager"] != "other"]
    update["metadata"]["managedFields"] = [*mine, entry]
    return update


def test_a_legacy_amount_is_back_as_soon_as_another_manager_releases_the_one_of_today() -> None:
    author = Author(server_side)
    manifest = deployment(pod(container({LEGACY: "1", "memory": "1Gi"})))
    author.sends(server_side(manifest, manifest))
    assert author.live is not None
    scaled = beside_another(copied(author.live), {GPU: "2"})
    scaled["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"][GPU] = "2"
    author.sends(scaled)
    author.sends(beside_another(server_side(author.live, manifest), {GPU: "2"}))
    released = beside_another(copied(author.live), {"memory": "2Gi"})
    del released["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"][GPU]
    assert limits_of(author.sends(released)) == {GPU: "1", "memory": "1Gi"}
    kept = beside_another(server_side(author.live, manifest), {"memory": "2Gi"})
    assert limits_of(author.sends(kept)) == {GPU: "1", "memory": "1Gi"}


def test_an_amount_that_we_raised_is_lowered_to_what_another_manager_applied() -> None:
    def sent(amount: str) -> Raw:
        manifest = deployment(pod(container({LEGACY: amount})))
        return beside_another(server_side(author.live or manifest, manifest), {GPU: "2"})

    author = Author(server_side)
    author.applies(pod(container({LEGACY: "2"})))
    amounts = [limits_of(author.sends(sent(each))) for each in ("4", "1", "1", "3", "1")]
    assert amounts == [{GPU: each} for each in ("4", "2", "2", "3", "2")]


@tools
@pytest.mark.parametrize("away", ["2", "1", "4"])
def test_an_amount_that_a_rollout_undo_brings_back_beside_its_word_is_ours(
    away: str, tool: Any
) -> None:
    author = Author(tool)
    author.applies(pod(container({LEGACY: "2"})))
    author.applies_while_we_are_away(pod(container({LEGACY: away})))
    assert author.live is not None
    revision = copied(author.live["spec"])
    assert limits_of(author.applies(pod(container({LEGACY: "3"})))) == {GPU: "3"}
    author.sends({**copied(author.live), "spec": revision})
    assert limits_of(author.applies(pod(container({LEGACY: "1"})))) == {GPU: "1"}


@pytest.mark.parametrize(
    "first",
    [*legacy("2", "Tesla T4")[::2], pytest.param(pod(container({LEGACY: "2"})), id="no model")],
)
@pytest.mark.parametrize("tool", [client_side, server_side])
def test_a_legacy_model_alone_is_translated_in_a_template_that_was_repaired(
    first: Raw, tool: Any
) -> None:
    author = Author(tool, nodes("Tesla-K80", "Tesla-T4", "Tesla-K80-12GB"))
    author.applies(first)
    for _ in range(2):
        made = author.patches({"nodeSelector": {MODEL: "Tesla K80"}})
        assert made["spec"]["affinity"] == terms((PRODUCT, "In", ["Tesla-K80", "Tesla-K80-12GB"]))
        assert not made["spec"].get("nodeSelector")
        assert limits_of(made) == {GPU: "2"}


def test_so_is_one_that_was_patched_in_while_we_were_away() -> None:
    author = Author(client_side, nodes("Tesla-K80", "Tesla-T4"))
    author.applies(pod(affinity=model("Tesla K80")))
    assert author.live is not None
    author.live["spec"]["template"]["spec"]["affinity"] = model("Tesla T4")
    made = author.sends(copied(author.live))
    assert made["spec"]["affinity"] == terms((PRODUCT, "In", ["Tesla-T4"]))


@tools
def test_a_toleration_that_was_taken_out_while_we_were_away_is_added_again(tool: Any) -> None:
    cx = nodes("Tesla-K80", taints=(Taint(GPU, "", "NoSchedule"),))
    own: Raw = {"tolerations": [{"key": "own", "operator": "Exists"}]}
    author = Author(tool, cx)
    author.applies(pod(container({GPU: "1"}), **own))
    author.applies_while_we_are_away(pod(container({GPU: "1"}), annotations={HOSTNAME: "a"}, **own))
    made = author.applies(pod(container({GPU: "1"}), **own))
    assert [each["key"] for each in made["spec"]["tolerations"]] == ["own", GPU]


@tools
def test_an_author_who_writes_both_names_gets_the_larger_amount(tool: Any) -> None:
    author = Author(tool)
    turns = [({LEGACY: "2", GPU: "1"}, "2"), ({LEGACY: "1", GPU: "2"}, "2")]
    for limits, amount in (*turns, *turns):
        assert limits_of(author.applies(pod(container(limits)))) == {GPU: amount}


def test_so_is_an_annotation_alone() -> None:
    author = Author(client_side)
    author.applies(pod(annotations={**in_annotation(terms(("zone", "In", ["a"]))), HOSTNAME: "a"}))
    update = copied(author.live)
    assert update is not None
    words = {**in_annotation(terms(("zone", "In", ["b"]))), HOSTNAME: "b"}
    update["spec"]["template"]["metadata"]["annotations"] = words
    made = author.sends(update)
    assert made["spec"]["affinity"] == terms(("zone", "In", ["b"]))
    assert made["spec"]["hostname"] == "b"
    assert not made["metadata"].get("annotations")


# What the settings ask for, and no word


def with_mounts(path: str = "/opt/driver") -> Drivers:
    return Drivers((DriverMount(path, "/nvidia"),), library_path="/nvidia/lib")


def set_to(cx: Context = K80, **settings: Any) -> Context:
    """Give the cluster these settings, and the nodes the label that they ask for."""
    made = Settings(annotation_schedulers=("volcano", "kai"), **settings)
    known = cx.inventory or Inventory()
    if made.placement.enabled:
        label = {made.placement.label: made.placement.value}
        classes = tuple(replace(e, labels={**e.labels, **label}) for e in known.classes)
        known = replace(known, classes=classes)
    return replace(cx, settings=made, inventory=known)


CLASSES = replace(
    K80, inventory=replace(K80.inventory or Inventory(), runtime_classes={"nvidia": {}})
)
WITH_LABEL = set_to(placement=Placement(enabled=True))
WITH_CLASS = set_to(CLASSES, drivers=Drivers(runtime_class="nvidia"))
WITH_BOTH = set_to(drivers=with_mounts(), placement=Placement(enabled=True))
SCHEDULER = "scheduler.alpha.kubernetes.io/name"
NO_GPU: Raw = {"memory": "1Gi"}
TODAY = {GPU: "1"}
ZONE = terms(("zone", "In", ["a"]))
HAS_LD = container(env=[{"name": "LD_LIBRARY_PATH", "value": "/opt"}])


def scheduled(name: str) -> Raw:
    return pod(annotations={SCHEDULER: name})


def two(first: Raw, second: Raw) -> Raw:
    return pod(container(first), container(second, name="side"))


@pytest.mark.large
@by_any_tool
@pytest.mark.parametrize(
    ("cx", "first", "second"),
    [
        pytest.param(
            WITH_BOTH, pod(container({GPU: "1"})), pod(container(NO_GPU)), id="no GPU any more"
        ),
        pytest.param(WITH_BOTH, two(TODAY, TODAY), two(TODAY, NO_GPU), id="a container less"),
        pytest.param(WITH_BOTH, two({LEGACY: "1"}, NO_GPU), two({LEGACY: "1"}, TODAY), id="more"),
        pytest.param(WITH_BOTH, two(TODAY, NO_GPU), two(NO_GPU, TODAY), id="it moves"),
        pytest.param(WITH_BOTH, pod(), pod(HAS_LD), id="a search path of the author's"),
        pytest.param(WITH_BOTH, pod(HAS_LD), pod(), id="and without it"),
        pytest.param(WITH_LABEL, pod(), pod(affinity=ZONE), id="affinity of the author's own"),
        pytest.param(WITH_LABEL, pod(affinity=ZONE), pod(), id="and without it again"),
        pytest.param(WITH_LABEL, pod(), pod(nodeSelector={"zone": "a"}), id="a selector"),
        pytest.param(WITH_LABEL, pod(), pod(nodeSelector={MODEL: "Tesla K80"}), id="legacy model"),
        pytest.param(WITH_LABEL, pod(nodeSelector={"zone": "a"}), pod(), id="and none again"),
        pytest.param(
            WITH_CLASS, pod(container({GPU: "1"})), pod(container(NO_GPU)), id="no class any more"
        ),
        pytest.param(WITH_CLASS, pod(), pod(runtimeClassName="own"), id="a class of the author's"),
        pytest.param(set_to(), scheduled("volcano"), scheduled("kai"), id="another scheduler"),
    ],
)  # fmt: skip
def test_what_the_settings_ask_for_follows_the_author(
    cx: Context, first: Raw, second: Raw, tool: Any
) -> None:
    follows(cx, first, second, tool)


@tools
@pytest.mark.parametrize(
    ("cx", "first", "second"),
    [
        pytest.param(set_to(), scheduled("volcano"), pod(), id="no scheduler any more"),
        pytest.param(
            set_to(),
            scheduled("volcano"),
            pod(schedulerName="default-scheduler"),
            id="the default scheduler",
        ),
        pytest.param(
            set_to(), scheduled("volcano"), pod(schedulerName="volcano"), id="in words of today"
        ),
    ],
)  # fmt: skip
def test_a_scheduler_that_the_annotation_names_goes_with_it(
    cx: Context, first: Raw, second: Raw, tool: Any
) -> None:
    """Helm keeps to itself what it applied last, without server-side apply."""
    follows(cx, first, second, tool)


def follows(cx: Context, first: Raw, second: Raw, tool: Any) -> None:
    """Check that the second manifest comes to what it comes to alone, however often it is sent."""
    author, alone = Author(tool, cx), Author(tool, cx)
    made = author.applies(first)
    assert author.applies(first) == made
    changed, wanted = author.applies(second), alone.applies(second)
    assert settled(changed) == settled(wanted)
    noted = author.noted
    assert author.is_asked_again() == changed
    assert author.noted == noted
    assert author.applies(second) == changed


def settled(template: Raw) -> Raw:
    """Give the spec; tolerations stay where a GPU goes, as docs/gitops.md says."""
    return {key: value for key, value in template["spec"].items() if key != "tolerations"}


@by_any_tool
@pytest.mark.parametrize("limits", [{LEGACY: "1"}, {GPU: "1"}], ids=["legacy", "of today"])
@pytest.mark.parametrize("is_dropped", [False, True], ids=["the record stays", "it is dropped"])
def test_a_driver_volume_that_another_mount_keeps_there_is_never_writable(
    limits: Raw, tool: Any, *, is_dropped: bool
) -> None:
    """Its author sent no hostPath at any time, and is to get none to write to."""
    author = Author(tool, WITH_BOTH)

    def is_written_to(spec: Raw) -> bool:
        """Whether a mount is writable. One without its volume is refused by the API server."""
        there = {each["name"] for each in spec.get("volumes") or ()}
        mounted = [each for one in spec["containers"] for each in one.get("volumeMounts", ())]
        return any(each["name"] in there and not each["readOnly"] for each in mounted)

    def mounts(*, read_only: bool) -> Raw:
        mount = {"name": "gpu-webhook-driver-0", "mountPath": "/w", "readOnly": read_only}
        made = author.patches({"containers": [{"name": "side", "volumeMounts": [mount]}]})
        spec: Raw = made["spec"]
        return spec

    author.applies(two(limits, NO_GPU))
    mounts(read_only=True)
    spec = author.applies(two(NO_GPU, NO_GPU))["spec"]
    assert [each["name"] for each in spec["volumes"]] == ["gpu-webhook-driver-0"]
    if is_dropped:
        assert author.live is not None
        sent = copied(author.live)
        sent["metadata"]["annotations"].pop(repair_record.ANNOTATION, "")
        author.sends(sent)
    assert not is_written_to(mounts(read_only=False))


@pytest.mark.large
@by_any_tool
@pytest.mark.parametrize("limits", [{LEGACY: "1"}, {GPU: "1"}], ids=["legacy", "of today"])
@pytest.mark.parametrize(
    ("then", "now"),
    [
        pytest.param(WITH_BOTH, set_to(), id="the toolkit"),
        pytest.param(WITH_BOTH, set_to(drivers=with_mounts("/opt/other")), id="another path"),
        pytest.param(WITH_LABEL, set_to(placement=Placement(True, "a", "b")), id="another label"),
        pytest.param(WITH_CLASS, set_to(CLASSES), id="no runtime class"),
        pytest.param(WITH_CLASS, WITH_BOTH, id="host paths in the place of a runtime class"),
    ],
)
@pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "applied"])
def test_what_other_settings_asked_for_comes_out_again(
    then: Context, now: Context, limits: Raw, tool: Any, *, restarted: bool
) -> None:
    manifest = pod(container(limits))
    author, alone = Author(tool, then), Author(tool, now)
    author.applies(manifest)
    author.cx = now
    made = author.patches({}) if restarted else author.applies(manifest)
    assert settled(made) == settled(alone.applies(manifest))
    assert author.applies(manifest)["spec"] == made["spec"]


@pytest.mark.large
@by_any_tool
@pytest.mark.parametrize("limits", [{LEGACY: "1"}, {GPU: "1"}], ids=["legacy", "of today"])
@pytest.mark.parametrize("known", [None, K80.inventory], ids=["unknown", "known, without"])
@pytest.mark.parametrize("cx", [WITH_BOTH, WITH_CLASS], ids=["mounts and label", "runtime class"])
def test_what_the_settings_ask_for_stays_where_only_the_inventory_changes(
    cx: Context, known: Inventory | None, limits: Raw, tool: Any
) -> None:
    author = Author(tool, cx)
    made = author.applies(pod(container(limits)))
    author.cx = replace(cx, inventory=known)
    assert author.applies(pod(container(limits))) == made
    assert author.patches({})["spec"] == made["spec"]


OF_POOL = replace(CLASSES.inventory or Inventory(), runtime_classes={"nvidia": {"pool": "a"}})
OF_POOL = replace(
    OF_POOL, classes=tuple(replace(e, labels={**e.labels, "pool": "a"}) for e in OF_POOL.classes)
)
BY_POOL = set_to(replace(K80, inventory=OF_POOL), drivers=Drivers(runtime_class="nvidia"))


def in_namespace(cx: Context, *, known: bool) -> Context:
    """Give the template to a namespace that the watcher knows, or does not know yet."""
    seen = {"lab": ""} if known else {}
    there = replace(cx.inventory or Inventory(), watched=True, whitelists=seen)
    return replace(cx, namespace="lab", template=True, inventory=there)


BY_DRIVER = container(
    env=[{"name": "LD_LIBRARY_PATH", "value": f"{DRIVER}:/opt"}],
    volumeMounts=[{"name": "d", "mountPath": DRIVER}],
)


@pytest.mark.pairs
@by_any_tool
@pytest.mark.parametrize(
    "cx",
    [
        pytest.param(WITH_BOTH, id="host paths and a label"),
        pytest.param(WITH_LABEL, id="a label"),
        pytest.param(set_to(placement=Placement(True, "a", "b")), id="a label of their own"),
        pytest.param(BY_POOL, id="a runtime class"),
    ],
)
@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(pod(), id="legacy"),
        pytest.param(pod(container({GPU: "1"})), id="of today"),
        pytest.param(pod(nodeSelector={MODEL: "Tesla K80"}), id="a model"),
        pytest.param(two({LEGACY: "1"}, TODAY), id="two containers"),
        pytest.param(pod(HAS_LD), id="a search path of the author's"),
        pytest.param(
            pod(BY_DRIVER, volumes=[{"name": "d", "hostPath": {"path": DRIVER}}]), id="old paths"
        ),
    ],
)
def test_an_unchanged_template_stays_where_its_namespace_became_known(
    manifest: Raw, cx: Context, tool: Any
) -> None:
    """It would be rolled out for nothing: its pods have what was left out of it."""
    author = Author(tool, in_namespace(cx, known=False))
    made = author.applies(manifest)
    noted = author.noted
    author.cx = in_namespace(cx, known=True)
    assert author.applies(manifest) == made
    assert author.live is not None
    labelled = copied(author.live)
    labelled["metadata"]["labels"] = {"team": "b"}
    assert author.sends(labelled) == made
    assert author.noted == noted


@by_any_tool
@pytest.mark.parametrize("limits", [{LEGACY: "1"}, {GPU: "1"}], ids=["legacy", "of today"])
def test_a_changed_template_gets_what_was_left_out(limits: Raw, tool: Any) -> None:
    author = Author(tool, in_namespace(WITH_BOTH, known=False))
    alone = Author(tool, in_namespace(WITH_BOTH, known=True))
    first, second = (pod(container(limits, image=image)) for image in ("i", "j"))
    assert "volumes" not in author.applies(first)["spec"]
    author.cx = alone.cx
    made = author.applies(second)
    assert settled(made) == settled(alone.applies(second))
    assert author.applies(second) == made


@by_any_tool
@pytest.mark.parametrize("limits", [{LEGACY: "1"}, {GPU: "1"}], ids=["legacy", "of today"])
@pytest.mark.parametrize("cx", [WITH_LABEL, BY_POOL], ids=["label", "runtime class"])
def test_what_a_node_selector_of_the_namespace_contradicts_comes_out(
    cx: Context, limits: Raw, tool: Any
) -> None:
    """The annotation came later; with both, the API server would refuse the pods."""
    cx = replace(cx, namespace="lab", template=True)
    author = Author(tool, cx)
    spec = author.applies(pod(container(limits)))["spec"]
    assert "nodeSelector" in spec or "runtimeClassName" in spec
    there = {"lab": {"pool": "b", "nvidia.com/gpu.present": "false"}}
    author.cx = replace(cx, inventory=replace(cx.inventory or Inventory(), node_selectors=there))
    spec = author.applies(pod(container(limits)))["spec"]
    assert "nodeSelector" not in spec
    assert "runtimeClassName" not in spec


@by_any_tool
def test_a_class_comes_out_where_its_author_selects_other_nodes(tool: Any) -> None:
    author = Author(tool, replace(BY_POOL, template=True))
    assert author.applies(pod())["spec"]["runtimeClassName"] == "nvidia"
    spec = author.applies(pod(nodeSelector={"pool": "b"}))["spec"]
    assert "runtimeClassName" not in spec


@tools
@pytest.mark.parametrize("limits", [{GPU: "1"}, {LEGACY: "1"}], ids=["of today", "legacy"])
def test_of_a_job_only_what_is_new_is_repaired(limits: Raw, tool: Any) -> None:
    """While it is suspended its choice of nodes may change, and never an amount."""
    author = Author(tool, replace(K80, modes=Modes(Mode.OFF)), may_change=False)
    first = author.applies(pod(container(limits)))
    author.cx = K80
    made = author.patches({"nodeSelector": {"disk": "ssd"}})
    assert made["spec"] == {**first["spec"], "nodeSelector": {"disk": "ssd"}}
    made = author.patches({"nodeSelector": {MODEL: "Tesla K80"}})
    word = {PRODUCT: "Tesla-K80"} if LEGACY in limits else {MODEL: "Tesla K80"}
    assert made["spec"] == {**first["spec"], "nodeSelector": {"disk": "ssd", **word}}


@tools
def test_a_job_keeps_what_other_settings_asked_for(tool: Any) -> None:
    author = Author(tool, WITH_BOTH, may_change=False)
    made = author.applies(pod())
    author.cx = set_to()
    assert author.applies(pod()) == made
    assert author.patches({})["spec"] == made["spec"]


@by_any_tool
@pytest.mark.parametrize("limits", [{GPU: "1"}, {LEGACY: "1"}], ids=["of today", "legacy"])
def test_what_somebody_else_wrote_beside_the_settings_stays(limits: Raw, tool: Any) -> None:
    """Another mount of our volume, say: then the volume must stay, too. It is read-only to all."""
    author = Author(tool, WITH_BOTH)
    author.applies(pod(container(limits)))
    mount = {"name": "gpu-webhook-driver-0", "mountPath": "/mine", "readOnly": True}
    spec = author.patches({"containers": [{"name": "c", "volumeMounts": [mount]}]})["spec"]
    assert mount in spec["containers"][0]["volumeMounts"]
    author.cx = set_to()
    spec = author.patches({})["spec"]
    assert spec["containers"][0]["volumeMounts"] == [mount]
    assert [each["name"] for each in spec["volumes"]] == [mount["name"]]


@by_any_tool
@pytest.mark.parametrize("limits", [{GPU: "1"}, {LEGACY: "1"}], ids=["of today", "legacy"])
def test_who_mounts_our_volume_writable_later_gets_it_read_only(limits: Raw, tool: Any) -> None:
    author = Author(tool, WITH_BOTH)
    author.applies(pod(container(limits)))
    mount = {"name": "gpu-webhook-driver-0", "mountPath": "/mine"}
    for _ in range(2):
        spec = author.patches({"containers": [{"name": "c", "volumeMounts": [mount]}]})["spec"]
        mounts = [
            each for each in spec["containers"][0]["volumeMounts"] if each["name"] == mount["name"]
        ]
        assert [each["mountPath"] for each in mounts if each.get("readOnly") is not True] == []
        assert "/mine" in [each["mountPath"] for each in mounts]
        assert [each["name"] for each in spec["volumes"]] == [mount["name"]]


@by_any_tool
def test_a_volume_of_ours_does_not_stay_for_a_writable_mount_without_gpus(tool: Any) -> None:
    """Nobody would make the mount read-only then. Without its volume the API server refuses it."""
    author = Author(tool, WITH_BOTH)
    author.applies(pod(container({GPU: "1"})))
    mount = {"name": "gpu-webhook-driver-0", "mountPath": "/mine"}
    made = pod(container({"cpu": "1"}))
    made["spec"]["containers"][0]["volumeMounts"] = [mount]
    spec = author.applies(made)["spec"]
    assert mount in spec["containers"][0]["volumeMounts"]
    assert "volumes" not in spec
