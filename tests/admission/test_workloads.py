"""Whose templates are judged, what is said of several at once, and that nothing is refused."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest

from tests.admission.admitted import admitted
from webhook.admission import response
from webhook.admission.workloads import Workload, judge, repair, workload_of
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context, Facts, Stage
from webhook.core.settings import CustomKind, Settings, Workloads
from webhook.evaluation import repair_record
from webhook.kube.pointer import Path
from webhook.kube.walk import walk
from webhook.rules import (
    POLICY,
    RULES,
    legacy_resource,
    never_fits,
    queued_template,
    request_without_limit,
    workload_too_large,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.rule import Rule
    from webhook.kube.pod import Pod

DEFAULTS = Settings()
LEGACY = "alpha.kubernetes.io/nvidia-gpu"
GPU = "nvidia.com/gpu"
TEMPLATE = Path(("spec", "template"))


def template(gpus: object = 1, name: str = LEGACY, **spec: Any) -> dict[str, Any]:
    container = {"name": "cuda", "image": "cuda", "resources": {"limits": {name: gpus}}}
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container], **spec}}


def deployment(replicas: int = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train", **metadata},
        "spec": {"replicas": replicas, "template": template()},
    }


def recorded(name: str) -> dict[str, Any]:
    """Give a workload with the record of a repair, and GPUs under this name."""
    made = deployment(annotations={repair_record.ANNOTATION: "{}"})
    made["spec"]["template"] = template(name=name)
    return made


def tf_job(*templates: dict[str, Any]) -> dict[str, Any]:
    specs = {f"Role{n}": {"template": each} for n, each in enumerate(templates)}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "spec": {"tfReplicaSpecs": specs}}


def request(obj: Any, **more: Any) -> dict[str, Any]:
    group, _, version = obj["apiVersion"].rpartition("/")
    return {
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "operation": "CREATE",
        "namespace": "team-a",
        "object": obj,
        "userInfo": {"username": "ada", "groups": ["system:authenticated"]},
        **more,
    }


def as_user(name: str, *groups: str) -> dict[str, Any]:
    return {"userInfo": {"username": name, "groups": list(groups)}}


CONTROLLED = deployment(ownerReferences=[{"kind": "App", "name": "a", "controller": True}])
OTHER_TEMPLATE = {**deployment(), "spec": {"replicas": 1, "template": template(2)}}
BUILT_IN: dict[str, dict[str, Any]] = {
    "Deployment": deployment(),
    "ReplicaSet": {**deployment(), "kind": "ReplicaSet"},
    "StatefulSet": {**deployment(), "kind": "StatefulSet"},
    "DaemonSet": {**deployment(), "kind": "DaemonSet"},
    "Job": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template()}},
    "CronJob": {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "spec": {"jobTemplate": {"spec": {"template": template()}}},
    },
    "ReplicationController": {**deployment(), "apiVersion": "v1", "kind": "ReplicationController"},
    "PodTemplate": {"apiVersion": "v1", "kind": "PodTemplate", "template": template()},
}


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_built_in_kind_is_judged_where_it_is_made(kind: str) -> None:
    workload = workload_of(request(copy.deepcopy(BUILT_IN[kind])), DEFAULTS)
    assert workload is not None
    assert len(workload.templates) == 1
    assert judge(workload, (legacy_resource,), (), Context()).findings[0].code == "GPU101"


@pytest.mark.parametrize(
    ("settings", "read"),
    [(DEFAULTS, False), (Settings(workloads=Workloads(repair=True)), True)],
    ids=["no template is repaired: nobody but a tenant wrote it", "templates are repaired"],
)
def test_who_only_tells_of_templates_reads_the_record_of_a_repair_if_there_are_any(
    settings: Settings, *, read: bool
) -> None:
    model, product = "alpha.kubernetes.io/nvidia-gpu-name", "nvidia.com/gpu.product"
    at = "/spec/nodeSelector/"
    noted = {at + product.replace("/", "~1"): [None, "Tesla-T4"], at + model: ["Tesla T4", None]}
    obj = deployment(annotations={repair_record.ANNOTATION: json.dumps({"/spec/template": noted})})
    obj["spec"]["template"] = template(nodeSelector={model: "Tesla K80", product: "Tesla-T4"})
    workload = workload_of(request(obj), settings)
    assert workload is not None
    judge(workload, RULES, (), Context(settings))
    assert ("T4" in json.dumps(obj["spec"])) is not read


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(request(deployment()), id="made by a person"),
        pytest.param(request(deployment(), dryRun=True), id="tried by a person"),
        pytest.param(
            request(OTHER_TEMPLATE, operation="UPDATE", oldObject=deployment()),
            id="its template changes",
        ),
        pytest.param(
            request(deployment(), operation="UPDATE", oldObject=None),
            id="what it was before is not said",
        ),
        pytest.param(
            request(deployment(ownerReferences=[{"kind": "App", "name": "a"}])),
            id="it has an owner that does not control it",
        ),
        pytest.param(
            request(deployment(), **as_user("system:serviceaccount:argocd:controller")),
            id="made by a pipeline",
        ),
        pytest.param(
            request(deployment(), **as_user("system:admin", "system:masters")),
            id="made by an administrator",
        ),
        pytest.param(request(deployment(), userInfo=None), id="nobody says by whom"),
        pytest.param(
            request(deployment(), userInfo={"username": 7, "groups": 7}), id="an odd name"
        ),
        pytest.param(request(tf_job(template())), id="a ready-made custom kind"),
        pytest.param(
            request(recorded(LEGACY), operation="UPDATE", oldObject=recorded(LEGACY)),
            id="a repaired one got a legacy word while nobody repaired it",
        ),
        pytest.param(
            request(recorded(GPU), operation="UPDATE", oldObject=recorded(GPU)),
            id="a repaired one is sent as it is stored: its manifest may be migrated",
        ),
    ],
)
def test_what_is_our_business(asked: dict[str, Any]) -> None:
    workload = workload_of(asked, DEFAULTS)
    assert workload is not None
    assert (workload.obj, workload.namespace) == (asked["object"], "team-a")


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(request({**deployment(), "spec": {}}), id="no template"),
        pytest.param(request({"apiVersion": "v1", "kind": "Service"}), id="no workload"),
        pytest.param(request({"apiVersion": "v1", "kind": "Pod", "spec": {}}), id="a pod"),
        pytest.param(request(deployment(), namespace=""), id="no namespace"),
        pytest.param(request(deployment(), namespace=None), id="no namespace at all"),
        pytest.param(request(deployment()) | {"object": None}, id="no object"),
        pytest.param(request(deployment(), kind=None), id="no kind"),
        pytest.param(
            request(deployment()) | {"kind": {"group": "autoscaling", "kind": "Scale"}},
            id="the object is of another kind than the request",
        ),
        pytest.param(
            request(deployment()) | {"kind": {"group": "other", "kind": "Deployment"}},
            id="the object is of another group than the request",
        ),
        pytest.param(request(deployment(), subResource="status"), id="a subresource"),
        pytest.param(request(deployment(), operation="DELETE"), id="it goes"),
        pytest.param(request(deployment(), operation=None), id="nobody says what happens"),
        pytest.param(
            request(deployment(9), operation="UPDATE", oldObject=deployment()), id="it is scaled"
        ),
        pytest.param(
            request(deployment(labels={"a": "b"}), operation="UPDATE", oldObject=deployment()),
            id="it gets a label",
        ),
        pytest.param(request(CONTROLLED), id="a controller made it"),
        pytest.param(
            request(CONTROLLED, operation="UPDATE", oldObject=deployment()),
            id="a controller adopts it",
        ),
        pytest.param(
            request(
                deployment(), **as_user("system:serviceaccount:kube-system:cronjob-controller")
            ),
            id="a controller asks",
        ),
        pytest.param(
            request(deployment(), **as_user("system:kube-controller-manager")),
            id="all controllers ask under one name",
        ),
        pytest.param(request(deployment(), **as_user("node-1", "system:nodes")), id="a node asks"),
        pytest.param(
            request(tf_job(template(os={"name": "windows"}))), id="its pods are for Windows"
        ),
    ],
)
def test_what_is_none_of_our_business(asked: dict[str, Any]) -> None:
    assert workload_of(asked, DEFAULTS) is None


def test_a_configured_kind_is_judged_and_a_template_for_windows_left_out() -> None:
    shards = CustomKind("Shards", "example.dev", ("/spec/*/pod",))
    windows = template(nodeSelector={"kubernetes.io/os": "windows"})
    obj = {
        "apiVersion": "example.dev/v1",
        "kind": "Shards",
        "spec": {"a": {"pod": windows}, "b": {"pod": template()}},
    }
    assert workload_of(request(obj), DEFAULTS) is None
    workload = workload_of(request(obj), Settings(workloads=Workloads(kinds=(shards,))))
    assert workload is not None
    assert workload.templates == (Path(("spec", "b", "pod")),)


def found(obj: dict[str, Any], *rules: Rule, policy: tuple[Rule, ...] = (), **cx: Any) -> Any:
    workload = workload_of(request(copy.deepcopy(obj)), DEFAULTS)  # judge() writes to it
    assert workload is not None
    return judge(workload, rules, policy, Context(**cx))


def test_templates_that_share_a_fault_are_one_finding() -> None:
    verdict = found(tf_job(template(), template(), template(2)), legacy_resource)
    assert [each.message for each in verdict.findings] == [
        f"container cuda requests {LEGACY}, which no node offers; write {GPU}: 1",
        f"container cuda requests {LEGACY}, which no node offers; write {GPU}: 2",
    ]
    assert verdict.findings[0].at[:4] == ("spec", "tfReplicaSpecs", "Role0", "template")


def cluster(*gpus: int) -> Inventory:
    return Inventory(tuple(NodeClass({}, (), {GPU: each}, nodes=("n",)) for each in gpus))


def test_the_policy_sees_what_the_pods_will_be() -> None:
    verdict = found(
        tf_job(template(9)), legacy_resource, policy=(never_fits,), inventory=cluster(8, 4)
    )
    assert [each.code for each in verdict.findings] == ["GPU101", "GPU301"]
    assert "requests 9" in verdict.findings[1].message


def test_all_pods_count_together_and_are_named_once() -> None:
    job = tf_job(template(8), template(4))
    verdict = found(job, legacy_resource, policy=(workload_too_large,), inventory=cluster(8))
    [too_large] = [each for each in verdict.findings if each.code == "GPU305"]
    assert "ask for 12" in too_large.message


def test_where_pods_are_not_repaired_the_policy_sees_no_gpu() -> None:
    modes = Modes(Mode.WARN)
    verdict = found(
        deployment(), legacy_resource, policy=(never_fits,), inventory=cluster(), modes=modes
    )
    assert [(each.code, each.mode) for each in verdict.findings] == [("GPU101", Mode.WARN)]


class Denying:
    """A rule that refuses every template."""

    NAME = "denying"
    CODE = "GPU399"
    FACTS = Facts(Stage.POLICY)

    def check(self, pod: Pod, cx: Context) -> Iterator[Finding]:
        assert cx.template
        yield Finding(self.CODE, pod.at, "must not run", severity=Severity.DENY)


class Raising:
    NAME = "raising"
    CODE = "GPU398"
    FACTS = Facts(Stage.POLICY)

    def check(self, pod: Pod, cx: Context) -> Iterator[Finding]:
        raise KeyError(pod.at, cx)
        yield


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(Mode.ENFORCE, Mode.WARN), (Mode.WARN, Mode.WARN), (Mode.AUDIT, Mode.AUDIT)],
)
def test_nothing_is_refused_and_nothing_said_to_be_repaired(mode: Mode, expected: Mode) -> None:
    verdict = found(deployment(), legacy_resource, policy=(Denying(),), modes=Modes(mode))
    assert verdict.patch == []
    assert {each.mode for each in verdict.findings} == {expected}
    assert [each.action for each in verdict.findings] == ["would repair", "reported"]


def test_a_rule_that_fails_is_named_and_the_others_go_on() -> None:
    verdict = found(tf_job(template()), Raising(), legacy_resource, policy=(Raising(), Denying()))
    assert [code for code, _ in verdict.failed] == ["GPU398", "GPU398"]
    assert [each.code for each in verdict.findings] == ["GPU101", "GPU399"]


def test_a_legacy_template_in_a_queue_has_its_own_finding() -> None:
    job = {**BUILT_IN["Job"], "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}}
    verdict = found(job, queued_template, *RULES)
    assert "GPU111" in {each.code for each in verdict.findings}
    assert "Kueue (queue gpus)" in verdict.findings[0].message


def test_pods_that_opt_out_are_told_of_by_the_policy_alone() -> None:
    obj = deployment()
    obj["spec"]["template"]["metadata"]["labels"]["gpu-webhook.dev/ignore"] = "true"
    verdict = found(obj, legacy_resource, policy=(Denying(),))
    assert [each.code for each in verdict.findings] == ["GPU399"]


def test_a_repair_is_one_patch_for_all_templates() -> None:
    before = tf_job(template(), template(0), template(2, GPU), {"spec": None})
    obj = copy.deepcopy(before)
    workload = workload_of(request(obj), DEFAULTS)
    assert isinstance(workload, Workload)
    verdict = repair(workload, (legacy_resource, request_without_limit), Context())
    assert jsonpatch.apply_patch(before, verdict.patch) == obj
    specs = obj["spec"]["tfReplicaSpecs"].values()
    containers = [each["template"]["spec"]["containers"] for each in list(specs)[:3]]
    limits = [each[0]["resources"].get("limits", {}) for each in containers]
    assert limits == [{GPU: 1}, {LEGACY: 0}, {GPU: 2}]
    assert [each.action for each in verdict.findings] == ["repaired"]


TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"


def test_a_template_that_grows_loses_first_its_record_and_then_its_repair() -> None:
    """A record with which the patch would be too large is left out, as one that is too large."""

    def made_of(number: int) -> tuple[bool, bool]:
        more = [{"key": f"a{n}", "operator": "Exists"} for n in range(number)]
        obj = deployment()
        obj["spec"]["template"] = template(
            tolerations=[{"key": f"b{n}", "operator": "Exists"} for n in range(number)]
        )
        obj["spec"]["template"]["metadata"]["annotations"] = {TOLERATIONS: json.dumps(more)}
        made = admitted(obj, Settings(workloads=Workloads(repair=True))).object
        [container] = made["spec"]["template"]["spec"]["containers"]
        return GPU in container["resources"]["limits"], repair_record.is_on(made)

    found = [made_of(number) for number in range(100, 1700, 50)]
    assert found == sorted(found, reverse=True)
    assert {*found} == {(True, True), (True, False), (False, False)}


AFFINITY = "scheduler.alpha.kubernetes.io/affinity"


def test_what_is_only_reported_is_said_in_the_words_of_validate() -> None:
    """The API server prints the same text of both once."""
    obj = deployment()
    obj["spec"]["template"] = template(0)
    asked = [workload_of(request(copy.deepcopy(obj)), DEFAULTS) for _ in range(2)]
    assert asked[0] is not None
    assert asked[1] is not None
    made, judged = repair(asked[0], RULES, Context()), judge(asked[1], RULES, (), Context())
    assert response.warnings_of(made.findings, "") == response.warnings_of(judged.findings, "")


MODEL, PRODUCT = "alpha.kubernetes.io/nvidia-gpu-name", "nvidia.com/gpu.product"
P100 = "Tesla-P100-PCIE-16GB"
IN_AFFINITY: dict[str, Any] = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": MODEL, "operator": "In", "values": [P100]}]}
            ]
        }
    }
}


def _named(what: dict[str, Any], label: str) -> dict[str, Any]:
    named: dict[str, Any] = json.loads(json.dumps(what).replace(MODEL, label))
    return named


TOLERATING: dict[str, Any] = {
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
}
FLEETS = Settings(
    workloads=Workloads(
        repair=True,
        kinds=(
            CustomKind("Fleet", "a.dev", ("/spec/template",)),
            CustomKind("Trial", "a.dev", ("/spec/t/*/template",)),
        ),
    )
)


def fleet(pod: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    spec = {"replicas": 2, "template": pod}
    return {"apiVersion": "a.dev/v1", "kind": "Fleet", "metadata": metadata, "spec": spec}


def sent(obj: dict[str, Any], old: dict[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
    """Repair the object as /mutate does; give what would be stored without a schema, and how."""
    asked = request(
        copy.deepcopy(obj), **({"operation": "UPDATE", "oldObject": old} if old else {})
    )
    workload = workload_of(asked, FLEETS)
    assert workload is not None
    models = (NodeClass({PRODUCT: P100}, (), {GPU: 8}, nodes=("n",)),)
    made = repair(workload, RULES, Context(FLEETS, inventory=Inventory(models)))
    result = jsonpatch.apply_patch(obj, made.patch)
    assert result == asked["object"]
    return result, made.findings


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(template(nodeSelector={MODEL: P100}), id="a toleration would be added"),
        pytest.param(
            template(nodeSelector={MODEL: "Tesla-P100"}, **TOLERATING), id="and affinity, too"
        ),
        pytest.param(template(), id="although nothing would leave its place"),
        pytest.param(
            {**template(), "metadata": {"annotations": {AFFINITY: json.dumps(IN_AFFINITY)}}},
            id="an annotation would become affinity",
        ),
    ],
)
def test_a_template_whose_kind_may_lack_a_field_of_the_repair_is_left_to_its_pods(
    pod: dict[str, Any],
) -> None:
    result, findings = sent(fleet(pod))
    assert result == fleet(pod)
    assert {each.outlook for each in findings} == {"its pods will be repaired"}
    assert {each.action for each in findings} == {"reported"}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(template(**TOLERATING), template(name=GPU, **TOLERATING), id="an amount"),
        pytest.param(
            template(nodeSelector={MODEL: P100}, **TOLERATING),
            template(name=GPU, nodeSelector={PRODUCT: P100}, **TOLERATING),
            id="a label in nodeSelector",
        ),
        pytest.param(
            template(affinity=IN_AFFINITY, **TOLERATING),
            template(name=GPU, affinity=_named(IN_AFFINITY, PRODUCT), **TOLERATING),
            id="a label in affinity",
        ),
    ],
)
def test_it_is_repaired_where_it_has_every_field_of_the_repair(
    pod: dict[str, Any], expected: dict[str, Any]
) -> None:
    result, _ = sent(fleet(pod))
    assert result["spec"]["template"] == expected
    assert repair_record.is_on(result)


WRITTEN_BEFORE: dict[str, Any] = {
    "/spec/containers/cuda/resources/limits/alpha.kubernetes.io~1nvidia-gpu": [1, None],
    "/spec/containers/cuda/resources/limits/nvidia.com~1gpu": [None, 1],
    "/spec/nodeSelector/alpha.kubernetes.io~1nvidia-gpu-name": ["Tesla-P100", None],
    "/spec/tolerations": [None, TOLERATING["tolerations"]],
}


def test_what_a_schema_lost_of_an_earlier_repair_comes_back_with_the_manifest() -> None:
    noted = {repair_record.ANNOTATION: json.dumps({"/spec/template": WRITTEN_BEFORE})}
    stored = fleet(template(name=GPU), annotations=noted)
    update = fleet(template(nodeSelector={MODEL: "Tesla-P100"}), annotations=noted)
    update["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"][GPU] = 1
    result, _ = sent(update, stored)
    assert result == fleet(template(nodeSelector={MODEL: "Tesla-P100"}))


def test_what_a_schema_kept_of_an_earlier_repair_stays() -> None:
    words = template(nodeSelector={MODEL: "Tesla-P100"})
    whole = {**deployment(), "spec": {"template": words}}
    made, _ = sent(whole)
    written, metadata = made["spec"]["template"], made["metadata"]
    assert "affinity" in written["spec"]
    merged = {**words, "spec": {**written["spec"], **words["spec"]}}
    result, _ = sent(fleet(merged, **metadata), fleet(written, **metadata))
    assert result["spec"] == fleet(written)["spec"]


def job_set(*jobs: tuple[str, dict[str, Any]], **metadata: Any) -> dict[str, Any]:
    listed = [{"name": name, "template": {"spec": {"template": each}}} for name, each in jobs]
    spec, api = {"replicatedJobs": listed}, "jobset.x-k8s.io/v1alpha2"
    return {"apiVersion": api, "kind": "JobSet", "metadata": metadata, "spec": spec}


def trial(*pods: tuple[str, dict[str, Any]], **metadata: Any) -> dict[str, Any]:
    listed = [{**({"name": name} if name else {}), "template": pod} for name, pod in pods]
    metadata = {**metadata, "name": "t"}
    return {"apiVersion": "a.dev/v1", "kind": "Trial", "metadata": metadata, "spec": {"t": listed}}


WITH_MODEL = template(2, nodeSelector={MODEL: P100}, **TOLERATING)
WITHOUT = template(1, **TOLERATING)
BY_NAME = {
    "another order": [("b", WITHOUT), ("a", WITH_MODEL)],
    "one more in front": [("c", template(name="cpu")), ("b", WITHOUT), ("a", WITH_MODEL)],
    "one less": [("b", WITHOUT)],
    "other names": [("c", WITHOUT), ("d", WITHOUT)],
    "no names": [("", WITHOUT), ("", WITH_MODEL)],
    "the same name twice": [("b", WITHOUT), ("b", WITH_MODEL)],
}


@pytest.mark.parametrize("make", [trial, job_set])
@pytest.mark.parametrize("items", BY_NAME.values(), ids=BY_NAME)
def test_templates_in_a_list_are_found_again_by_their_names(
    items: list[tuple[str, dict[str, Any]]], make: Any
) -> None:
    stored, _ = sent(make(("a", WITH_MODEL), ("b", WITHOUT)))
    fresh, _ = sent(make(*items))
    update = {**make(*items), "metadata": stored["metadata"]}
    again, _ = sent(update, stored)
    assert again["spec"] == fresh["spec"]
    assert _record(again) == _record(fresh)
    twice, _ = sent({**make(*items), "metadata": again["metadata"]}, again)
    assert twice["spec"] == fresh["spec"]


@pytest.mark.parametrize("name", [7, {"a": "b"}, ["a"], None, True], ids=repr)
@pytest.mark.parametrize("there", [[], None, 7, {}, [7], [{"name": "a"}], "x"], ids=repr)
def test_whatever_names_a_template_in_a_list_nothing_breaks(name: Any, there: Any) -> None:
    stored, _ = sent(trial(("a", WITH_MODEL)))
    update = trial((name, WITH_MODEL), ("a", WITHOUT), **stored["metadata"])
    fresh, _ = sent(trial((name, WITH_MODEL), ("a", WITHOUT)))
    stored["spec"]["t"] = there
    assert sent(update, stored)[0]["spec"] == fresh["spec"]


def test_a_list_with_very_many_items_is_repaired_anew() -> None:
    many = [(f"x{n}", template(name="cpu")) for n in range(10)]
    stored, _ = sent(trial(("a", WITH_MODEL), *many))
    update = trial(*many, ("a", WITH_MODEL), **stored["metadata"])
    for each in (update, stored):
        each["spec"]["t"] += [{}] * 1000
    result, _ = sent(update, stored)
    expected, _ = sent(trial(*many, ("a", WITH_MODEL)))
    assert result["spec"]["t"][:11] == expected["spec"]["t"]


def _record(obj: dict[str, Any]) -> Any:
    return json.loads(obj["metadata"].get("annotations", {}).get(repair_record.ANNOTATION, "null"))


def test_a_repaired_template_that_only_moves_keeps_its_record() -> None:
    stored, _ = sent(trial(("a", WITH_MODEL), ("b", WITHOUT)))
    turned = copy.deepcopy(stored)
    turned["spec"]["t"].reverse()
    result, _ = sent(turned, stored)
    assert result["spec"] == turned["spec"]
    assert _record(result) == _record(sent(trial(("b", WITHOUT), ("a", WITH_MODEL)))[0])


HOSTILE: list[Any] = [None, 7, "x", [], {}, [7], {"x": 7}, True, 10**30]


@pytest.mark.parametrize("odd", HOSTILE, ids=repr)
@pytest.mark.parametrize("kind", BUILT_IN)
def test_whatever_stands_somewhere_in_a_workload_nothing_breaks(kind: str, odd: Any) -> None:
    for at in [at for at, _ in walk(BUILT_IN[kind])][1:]:
        obj = copy.deepcopy(BUILT_IN[kind])
        holder: Any = obj
        for step in at[:-1]:
            holder = holder[step]
        holder[at[-1]] = odd
        asked = {**request(BUILT_IN[kind]), "object": obj, "oldObject": BUILT_IN[kind]}
        for operation in ("CREATE", "UPDATE"):
            workload = workload_of({**asked, "operation": operation}, DEFAULTS)
            if workload is not None:
                assert judge(workload, RULES, POLICY, Context(inventory=cluster(8))).failed == []
