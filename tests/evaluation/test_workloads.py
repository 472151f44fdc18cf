"""Where the pod templates are in each kind, how many pods they make, and what these ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.rule import Context
from webhook.core.settings import CustomKind, Settings, Workloads
from webhook.evaluation.workloads import (
    READY_MADE,
    TEMPLATES,
    around,
    custom_kinds,
    gpus_of_workload,
    group_of,
    has_controller,
    is_built_in,
    is_known_kind,
    makes_pods,
    objects,
    replicas_of,
    template_at,
    template_changed,
    templates_of,
    tokens,
)
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Iterable

TEMPLATE: dict[str, Any] = {"spec": {"containers": []}}


def holder(kind: str, at: Path) -> dict[str, Any]:
    inner: Any = TEMPLATE
    for token in reversed(at):
        inner = {token: inner}
    return {"kind": kind, **inner}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_every_kind_of_workload_has_its_template_where_the_table_says(kind: str) -> None:
    assert template_at(holder(kind, TEMPLATES[kind])) == TEMPLATES[kind]


@pytest.mark.parametrize(
    ("obj", "at"),
    [
        pytest.param({"kind": "Pod", "spec": {}}, ROOT, id="a pod is its own template"),
        pytest.param(
            {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {}}}}},
            ("spec", "jobTemplate", "spec", "template"),
            id="a CronJob has it four deep",
        ),
        pytest.param({"kind": "Service", "spec": {}}, None, id="a Service has none"),
        pytest.param({}, None, id="no kind"),
        pytest.param({"kind": 7}, None, id="a kind that is no text"),
        pytest.param({"kind": "Job", "spec": {}}, None, id="the template is missing"),
        pytest.param({"kind": "Job", "spec": {"template": None}}, None, id="the template is null"),
        pytest.param({"kind": "Job", "spec": [1]}, None, id="the spec is a list"),
        pytest.param({"kind": "Job", "spec": {"template": []}}, None, id="the template is a list"),
    ],
)
def test_the_template_is_found_or_none_is_given(obj: dict[str, Any], at: Path | None) -> None:
    assert template_at(obj) == at


POD = {"kind": "Pod"}
V1 = {"apiVersion": "v1", **POD}
JOB = {"kind": "Job"}


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param(POD, [(ROOT, POD)], id="an object is itself"),
        pytest.param(
            {"kind": "List", "items": [POD, JOB]},
            [(("items", 0), POD), (("items", 1), JOB)],
            id="a List is its items",
        ),
        pytest.param(
            {"kind": "PodList", "items": [POD]}, [(("items", 0), POD)], id="so is a PodList"
        ),
        pytest.param(
            {"kind": "List", "items": [{"kind": "List", "items": [POD]}]},
            [(("items", 0, "items", 0), POD)],
            id="a List within a List",
        ),
        pytest.param(
            {"kind": "List", "items": [None, "x", POD]},
            [(("items", 2), POD)],
            id="items that are no objects are passed over",
        ),
        pytest.param({"kind": "List", "items": []}, [], id="an empty List"),
        pytest.param({"kind": "List"}, [(ROOT, {"kind": "List"})], id="a List without items"),
        pytest.param([V1, V1], [((0,), V1), ((1,), V1)], id="a list of objects is a List"),
        pytest.param(
            [{**V1, "kind": "List", "items": [POD]}],
            [((0, "items", 0), POD)],
            id="a List in a list",
        ),
        pytest.param([V1, POD], [], id="a list with an item without a version"),
        pytest.param([V1, "x"], [], id="a list with an item that is no map"),
        pytest.param([], [], id="an empty list"),
        pytest.param(None, [], id="an empty document"),
        pytest.param({}, [], id="an empty object"),
        pytest.param("text", [], id="a text"),
    ],
)
def test_the_objects_of_a_document(document: object, found: list[tuple[Path, Any]]) -> None:
    assert list(objects(document)) == found


DEFAULTS = Settings()


def knows(*kinds: CustomKind) -> Settings:
    return Settings(workloads=Workloads(kinds=kinds))


def asking(gpus: int, name: str = "nvidia.com/gpu") -> dict[str, Any]:
    """A template with one container that requests so many GPUs."""
    resources = {"limits": {name: gpus}}
    return {"spec": {"containers": [{"name": "cuda", "resources": resources}]}}


def of(api: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "spec": spec}


TF_JOB = of(
    "kubeflow.org/v1",
    "TFJob",
    tfReplicaSpecs={
        "PS": {"template": asking(0)},
        "Worker": {"replicas": 4, "template": asking(2)},
    },
)
OLD_TF_JOB = of(
    "kubeflow.org/v1alpha1",
    "TFJob",
    replicaSpecs=[{"replicas": 2, "template": asking(1)}, {"tfReplicaType": "PS"}],
)
PYTORCH_JOB = of(
    "kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Master": {"template": asking(8)}}
)
MPI_JOB = of(
    "kubeflow.org/v2beta1",
    "MPIJob",
    mpiReplicaSpecs={
        "Launcher": {"template": asking(0)},
        "Worker": {"replicas": 3, "template": asking(1)},
    },
)
RAY = {
    "headGroupSpec": {"template": asking(1)},
    "workerGroupSpecs": [
        {"replicas": 2, "template": asking(4)},
        {"replicas": 2, "numOfHosts": 3, "template": asking(1)},
    ],
}
WORKERS = [
    {"template": {}},  # none by default
    {"replicas": 4, "suspend": True, "template": {}},
    {"minReplicas": 3, "template": {}},
    {"replicas": 1, "minReplicas": 3, "template": {}},
    {"replicas": 9, "maxReplicas": 8, "template": {}},
    {"replicas": 2, "minReplicas": 1, "maxReplicas": 8, "template": {}},
    {"minReplicas": 3, "numOfHosts": 2, "template": {}},
]
VOLCANO_JOB = of("batch.volcano.sh/v1alpha1", "Job", tasks=[{"replicas": 5, "template": asking(1)}])
JOB_SET = of(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    replicatedJobs=[
        {
            "replicas": 3,
            "template": {"spec": {"parallelism": 4, "completions": 2, "template": asking(1)}},
        }
    ],
)
LEADERS = of(
    "leaderworkerset.x-k8s.io/v1",
    "LeaderWorkerSet",
    replicas=2,
    leaderWorkerTemplate={
        "size": 4,
        "leaderTemplate": asking(1),
        "workerTemplate": asking(8),
    },
)
LEADERLESS = of(
    "leaderworkerset.x-k8s.io/v1",
    "LeaderWorkerSet",
    replicas=2,
    leaderWorkerTemplate={"size": 4, "workerTemplate": asking(8)},
)
SHARDS = CustomKind("Shards", "example.dev", ("/spec/a~1b/*/pod~0",))


@pytest.mark.parametrize(
    ("obj", "settings", "found"),
    [
        pytest.param(
            TF_JOB,
            DEFAULTS,
            ["/spec/tfReplicaSpecs/PS/template", "/spec/tfReplicaSpecs/Worker/template"],
            id="a TFJob has a template for each kind of replica",
        ),
        pytest.param(
            OLD_TF_JOB,
            DEFAULTS,
            ["/spec/replicaSpecs/0/template"],
            id="a TFJob of 2018 has a list; a member without a template is passed over",
        ),
        pytest.param(
            PYTORCH_JOB,
            DEFAULTS,
            ["/spec/pytorchReplicaSpecs/Master/template"],
            id="a PyTorchJob",
        ),
        pytest.param(
            MPI_JOB,
            DEFAULTS,
            ["/spec/mpiReplicaSpecs/Launcher/template", "/spec/mpiReplicaSpecs/Worker/template"],
            id="an MPIJob",
        ),
        pytest.param(
            of("kubeflow.org/v1alpha1", "MPIJob", replicas=2, template=asking(1)),
            DEFAULTS,
            ["/spec/template"],
            id="an MPIJob of 2018",
        ),
        pytest.param(
            of("mlkube.io/v1beta1", "TfJob", replica_specs=[{"template": asking(1)}]),
            DEFAULTS,
            ["/spec/replica_specs/0/template"],
            id="a TfJob of 2017, by the names of its first months",
        ),
        pytest.param(
            of("tensorflow.org/v1alpha1", "TfJob", replicaSpecs=[{"template": asking(1)}]),
            DEFAULTS,
            ["/spec/replicaSpecs/0/template"],
            id="a TfJob of 2017",
        ),
        pytest.param(
            of("ray.io/v1", "RayCluster", **RAY),
            DEFAULTS,
            [
                "/spec/headGroupSpec/template",
                "/spec/workerGroupSpecs/0/template",
                "/spec/workerGroupSpecs/1/template",
            ],
            id="a RayCluster has a head and groups of workers",
        ),
        pytest.param(
            of("ray.io/v1", "RayJob", rayClusterSpec={"headGroupSpec": {"template": {}}}),
            DEFAULTS,
            ["/spec/rayClusterSpec/headGroupSpec/template"],
            id="a RayJob has a cluster in it",
        ),
        pytest.param(
            VOLCANO_JOB, DEFAULTS, ["/spec/tasks/0/template"], id="a Job of Volcano is no batch Job"
        ),
        pytest.param(
            JOB_SET, DEFAULTS, ["/spec/replicatedJobs/0/template/spec/template"], id="a JobSet"
        ),
        pytest.param(
            LEADERS,
            DEFAULTS,
            [
                "/spec/leaderWorkerTemplate/leaderTemplate",
                "/spec/leaderWorkerTemplate/workerTemplate",
            ],
            id="a LeaderWorkerSet",
        ),
        pytest.param(
            of("kubeflow.org/v1", "TFJob", tfReplicaSpecs=[None, 7, {"template": []}]),
            DEFAULTS,
            [],
            id="what is no template is passed over",
        ),
        pytest.param(
            of("kubeflow.org/v1", "TFJob", tfReplicaSpecs=7), DEFAULTS, [], id="a number for a map"
        ),
        pytest.param(of("batch/v1", "Job", template={}), DEFAULTS, ["/spec/template"], id="a Job"),
        pytest.param({"kind": "Pod"}, DEFAULTS, [""], id="a Pod is its own template"),
        pytest.param(
            of("extensions/v1beta1", "Deployment", template={}),
            DEFAULTS,
            ["/spec/template"],
            id="a dead version of a Deployment",
        ),
        pytest.param(
            of("example.dev/v1", "Deployment", template={}), DEFAULTS, [], id="a stranger's kind"
        ),
        pytest.param(of("example.dev/v1", "Shards"), DEFAULTS, [], id="not configured"),
        pytest.param(
            of("example.dev/v1", "Shards", **{"a/b": {"x": {"pod~": {}}}}),
            knows(SHARDS),
            ["/spec/a~1b/x/pod~0"],
            id="a configured kind, with members that a pointer must escape",
        ),
        pytest.param(
            of("other.dev/v1", "Shards", **{"a/b": {"x": {"pod~": {}}}}),
            knows(SHARDS),
            [],
            id="a configured kind of another group",
        ),
        pytest.param(
            of("other.dev/v1", "Shards", list=[{}, {}]),
            knows(CustomKind("Shards", templates=("/spec/list/1", "/spec/list/*"))),
            ["/spec/list/1", "/spec/list/0"],
            id="of any group, by position, each place once",
        ),
        pytest.param(
            of("kubeflow.org/v1", "TFJob", mine={}),
            knows(CustomKind("TFJob", "kubeflow.org", ("/spec/mine",))),
            ["/spec/mine"],
            id="what is configured counts more than what is ready made",
        ),
        pytest.param(
            PYTORCH_JOB,
            knows(CustomKind("PyTorchJob")),
            ["/spec/pytorchReplicaSpecs/Master/template"],
            id="a ready-made kind, called by its name",
        ),
        pytest.param(
            of("example.dev/v1", "Shards"),
            knows(CustomKind("Shards")),
            [],
            id="configured without templates, and none is ready made",
        ),
    ],
)
def test_the_templates_of_an_object(
    obj: dict[str, Any], settings: Settings, found: Iterable[str]
) -> None:
    places = templates_of(obj, settings)
    assert [str(at) for at in places] == list(found)
    for at in places:
        here: Any = obj
        for step in at:
            here = here[step]
        assert isinstance(here, dict)


@pytest.mark.parametrize("kind", READY_MADE, ids=lambda each: f"{each.kind}.{each.group}")
def test_a_ready_made_kind_without_anything_has_no_template(kind: CustomKind) -> None:
    assert templates_of(of(f"{kind.group}/v1", kind.kind), DEFAULTS) == []


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [("", ()), ("/", ("",)), ("/spec/*/a~1b/~01", ("spec", "*", "a/b", "~1"))],
)
def test_a_pointer_is_read_as_rfc_6901_says(pointer: str, expected: tuple[str, ...]) -> None:
    assert tokens(pointer) == expected


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "PetSet"])
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, 1, id="one by default"),
        pytest.param({"replicas": 3}, 3, id="as many as it says"),
        pytest.param({"replicas": 0}, 0, id="scaled to nothing"),
        pytest.param({"replicas": None}, 1, id="null does not exist"),
        pytest.param({"replicas": "3"}, 1, id="a text does not exist"),
        pytest.param({"replicas": True}, 1, id="a boolean does not exist"),
    ],
)
def test_replicas(kind: str, spec: dict[str, Any], expected: int) -> None:
    obj = of("apps/v1", kind, template={}, **spec)
    assert replicas_of(obj, Path(("spec", "template")), DEFAULTS) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, 1, id="one by default"),
        pytest.param({"parallelism": 4}, 4, id="as many as may run at once"),
        pytest.param({"parallelism": 4, "completions": 2}, 2, id="no more than are to complete"),
        pytest.param({"parallelism": 2, "completions": 100}, 2, id="the others come later"),
        pytest.param({"completions": 100}, 1, id="one at a time"),
        pytest.param({"parallelism": 0}, 0, id="paused"),
        pytest.param({"parallelism": 4, "suspend": True}, 0, id="suspended"),
        pytest.param({"parallelism": 4, "suspend": False}, 4, id="not suspended"),
    ],
)
def test_pods_of_a_job_and_of_a_cron_job(spec: dict[str, Any], expected: int) -> None:
    spec = {"template": {}, **spec}
    job = of("batch/v1", "Job", **spec)
    cron = of("batch/v1", "CronJob", jobTemplate={"spec": spec})
    assert replicas_of(job, TEMPLATES["Job"], DEFAULTS) == expected
    assert replicas_of(cron, TEMPLATES["CronJob"], DEFAULTS) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param({"kind": "Pod"}, 1, id="a Pod is one"),
        pytest.param(of("apps/v1", "DaemonSet"), None, id="a DaemonSet cannot say"),
        pytest.param({"kind": "PodTemplate", "template": {}}, None, id="nor can a PodTemplate"),
        pytest.param(
            of("v1", "ReplicationController", replicas=2), 2, id="a ReplicationController can"
        ),
    ],
)
def test_other_kinds(obj: dict[str, Any], expected: int | None) -> None:
    assert replicas_of(obj, TEMPLATES[obj["kind"]], DEFAULTS) == expected


@pytest.mark.parametrize(
    ("obj", "settings", "expected"),
    [
        pytest.param(TF_JOB, DEFAULTS, [1, 4], id="a TFJob"),
        pytest.param(of("ray.io/v1", "RayCluster", **RAY), DEFAULTS, [1, 2, 6], id="a RayCluster"),
        pytest.param(
            of("ray.io/v1", "RayCluster", suspend=True, **RAY),
            DEFAULTS,
            [0, 0, 0],
            id="a RayCluster that is suspended",
        ),
        pytest.param(
            of("ray.io/v1", "RayJob", suspend=True, rayClusterSpec=RAY),
            DEFAULTS,
            [0, 0, 0],
            id="a RayJob that is suspended",
        ),
        pytest.param(
            of("ray.io/v1", "RayCluster", headGroupSpec={"template": {}}, workerGroupSpecs=WORKERS),
            DEFAULTS,
            [1, 0, 0, 3, 3, 8, 2, 6],
            id="groups of workers in a RayCluster",
        ),
        pytest.param(
            of("kubeflow.org/v1", "TFJob", runPolicy={"suspend": True}, **TF_JOB["spec"]),
            DEFAULTS,
            [0, 0],
            id="a TFJob that is suspended",
        ),
        pytest.param(
            of("jobset.x-k8s.io/v1alpha2", "JobSet", suspend=True, **JOB_SET["spec"]),
            DEFAULTS,
            [0],
            id="a JobSet that is suspended",
        ),
        pytest.param(VOLCANO_JOB, DEFAULTS, [5], id="a Job of Volcano"),
        pytest.param(JOB_SET, DEFAULTS, [6], id="a JobSet: jobs times what each runs at once"),
        pytest.param(LEADERS, DEFAULTS, [2, 6], id="leaders, and the rest of each group"),
        pytest.param(LEADERLESS, DEFAULTS, [8], id="leaders made of the workers' template"),
        pytest.param(
            of(
                "leaderworkerset.x-k8s.io/v1",
                "LeaderWorkerSet",
                leaderWorkerTemplate={"leaderTemplate": {}, "workerTemplate": {}},
            ),
            DEFAULTS,
            [1, 0],
            id="a group of one has no workers",
        ),
        pytest.param(
            of("example.dev/v1", "Shards", **{"a/b": [{"pod~": {}, "replicas": 2}]}),
            knows(SHARDS),
            [2],
            id="a configured kind: its replicas",
        ),
    ],
)
def test_replicas_of_custom_kinds(
    obj: dict[str, Any], settings: Settings, expected: list[int]
) -> None:
    places = templates_of(obj, settings)
    assert [replicas_of(obj, at, settings) for at in places] == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            of("apps/v1", "Deployment", replicas=3, template=asking(2)),
            {"nvidia.com/gpu": 6},
            id="replicas times what each requests",
        ),
        pytest.param(
            of("apps/v1", "Deployment", replicas=0, template=asking(2)), {}, id="scaled to nothing"
        ),
        pytest.param(TF_JOB, {"nvidia.com/gpu": 8}, id="only the workers of a TFJob ask"),
        pytest.param(
            of("ray.io/v1", "RayCluster", **RAY), {"nvidia.com/gpu": 15}, id="a sum over templates"
        ),
        pytest.param(of("apps/v1", "DaemonSet", template=asking(2)), {}, id="it cannot be said"),
        pytest.param(
            of("batch/v1", "Job", parallelism=2, template=asking(1, "nvidia.com/mig-1g.5gb")),
            {"nvidia.com/mig-1g.5gb": 2},
            id="each resource name by itself",
        ),
        pytest.param(
            of("batch/v1", "Job", template=asking(1, "alpha.kubernetes.io/nvidia-gpu")),
            {},
            id="legacy names are no GPUs before they are repaired",
        ),
        pytest.param(of("v1", "Service"), {}, id="no workload at all"),
    ],
)
def test_the_gpus_of_a_workload(obj: dict[str, Any], expected: dict[str, int]) -> None:
    assert gpus_of_workload(obj, DEFAULTS) == expected
    before = Context(DEFAULTS, namespace="team-a")
    cx = around(before, obj)
    assert (cx.template, cx.workload, cx.workload_gpus) == (True, obj, expected)
    assert (cx.namespace, cx.modes) == (before.namespace, before.modes)


GROUPS = [{"template": asking(1)}, {"template": asking(2)}]


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        pytest.param(
            of("apps/v1", "Deployment", replicas=1, template=asking(1)),
            of("apps/v1", "Deployment", replicas=9, template=asking(1)),
            False,
            id="scaled",
        ),
        pytest.param(
            of("apps/v1", "Deployment", template=asking(1)),
            of("apps/v1", "Deployment", template=asking(2)),
            True,
            id="another amount",
        ),
        pytest.param(
            of("apps/v1", "Deployment", template=asking(1)),
            of("apps/v1", "Deployment", template={**asking(1), "metadata": {"annotations": {}}}),
            True,
            id="started anew",
        ),
        pytest.param(
            of("ray.io/v1", "RayCluster", workerGroupSpecs=GROUPS),
            of("ray.io/v1", "RayCluster", workerGroupSpecs=GROUPS[1:]),
            False,
            id="the first group is taken away",
        ),
        pytest.param(
            of("ray.io/v1", "RayCluster", workerGroupSpecs=GROUPS[:1]),
            of("ray.io/v1", "RayCluster", workerGroupSpecs=GROUPS),
            True,
            id="a group is added",
        ),
        pytest.param({}, of("batch/v1", "Job", template={}), True, id="there was nothing before"),
        pytest.param(of("batch/v1", "Job", template={}), {}, False, id="there is nothing now"),
    ],
)
def test_whether_a_template_changed(
    old: dict[str, Any], new: dict[str, Any], *, changed: bool
) -> None:
    assert template_changed(old, new, DEFAULTS) is changed


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        pytest.param(None, False, id="no owner"),
        pytest.param([{"kind": "Deployment", "controller": True}], True, id="a controller"),
        pytest.param([{"kind": "App"}, {"controller": False}], False, id="owners that only own"),
        pytest.param([7, {"controller": "true"}], False, id="what is no owner at all"),
    ],
)
def test_whether_a_controller_made_it(owners: Any, *, expected: bool) -> None:
    assert has_controller({"metadata": {"ownerReferences": owners}}) is expected


@pytest.mark.parametrize(
    ("obj", "group", "built_in"),
    [
        ({"apiVersion": "v1", "kind": "PodTemplate"}, "", True),
        ({"apiVersion": "batch/v1", "kind": "Job"}, "batch", True),
        ({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}, "batch.volcano.sh", False),
        ({"apiVersion": "v1", "kind": "Service"}, "", False),
        ({"kind": ["Job"]}, "", False),
    ],
)
def test_group_and_origin(obj: dict[str, Any], group: str, *, built_in: bool) -> None:
    assert group_of(obj) == group
    assert is_built_in(obj) is built_in


def test_a_configured_kind_keeps_its_own_templates() -> None:
    mine = CustomKind("TFJob", "kubeflow.org", ("/spec/mine",))
    assert custom_kinds(knows(mine, SHARDS)) == (mine, SHARDS)
    assert custom_kinds(knows(CustomKind("TFJob", "kubeflow.org"))) == READY_MADE[:1]


def test_kinds_that_are_known_to_make_pods() -> None:
    settings = Settings(workloads=Workloads(kinds=(CustomKind("Shards", templates=("/spec",)),)))
    kinds = ("Pod", "ReplicaSet", "PyTorchJob", "Shards", "Odd", "")
    assert [is_known_kind(each, settings) for each in kinds] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("apps/v1", "ReplicaSet", True),
        ("extensions/v1beta1", "ReplicaSet", False),
        ("v1", "ReplicationController", True),
        ("kubeflow.org/v1", "PyTorchJob", True),
        ("any.example/v1", "Shards", True),
        ("apps/v1", "Deployment", False),
        ("batch/v1", "CronJob", False),
        ("v1", "Node", False),
        ("", "", False),
    ],
)
def test_what_makes_pods_itself(api_version: str, kind: str, *, expected: bool) -> None:
    settings = Settings(workloads=Workloads(kinds=(CustomKind("Shards", templates=("/spec",)),)))
    assert makes_pods({"apiVersion": api_version, "kind": kind}, settings) is expected
