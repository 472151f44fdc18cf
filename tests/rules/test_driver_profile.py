from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import run
from tests.rules.pods import (
    FIRST,
    GPU,
    LABEL,
    LEGACY,
    PRODUCT,
    SPEC,
    container,
    found,
    gpu_nodes,
    legacy_pod,
    modern_pod,
    pod,
)
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.edits import Append, Set, place_of
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context
from webhook.core.settings import (
    DriverMount,
    Drivers,
    Settings,
    Taint,
    Workloads,
)
from webhook.kube.pod import Pod
from webhook.kube.pointer import ROOT, Path
from webhook.rules import RULES
from webhook.rules import driver_profile as rule

if TYPE_CHECKING:
    from webhook.core.edits import Edit

VOLUMES = SPEC / "volumes"
BIN = DriverMount("/opt/driver/bin", "/usr/local/nvidia/bin")
CUDA = DriverMount("/opt/driver/libcuda.so.1", "/usr/lib/libcuda.so.1", "File")

repaired = partial(Finding, rule.CODE)
reported = partial(Finding, rule.CODE, severity=Severity.MANUAL)


def host_path(*mounts: DriverMount, library_path: str = "", **more: Any) -> Context:
    drivers = Drivers(mounts=mounts, library_path=library_path)
    return Context(Settings(drivers=drivers), **more)


def gpu(name: str = "cuda", **more: Any) -> dict[str, Any]:
    return container({GPU: "1"}, {GPU: "1"}, name=name, **more)


def given(*edits: Edit, who: str = "cuda", at: Any = FIRST) -> Finding:
    message = (
        f"container {who} gets the driver's host paths of this cluster's profile; "
        "nothing to do in the manifest"
    )
    return repaired(at, message, edits)


def volume(number: int, mount: DriverMount) -> dict[str, Any]:
    source = {"path": mount.path, "type": mount.type}
    return {"name": f"gpu-webhook-driver-{number}", "hostPath": source}


def mounted(number: int, mount: DriverMount) -> dict[str, Any]:
    name = f"gpu-webhook-driver-{number}"
    return {"name": name, "mountPath": mount.mount_path, "readOnly": True}


def both(number: int, mount: DriverMount, at: Any = FIRST) -> tuple[Edit, Edit]:
    return (
        Append(VOLUMES, volume(number, mount)),
        Append(at / "volumeMounts", mounted(number, mount)),
    )


@pytest.mark.parametrize(
    ("obj", "cx"),
    [
        pytest.param(modern_pod(), Context(), id="toolkit, the default: nothing is added"),
        pytest.param(
            pod(container({"cpu": 1}), container({LEGACY: "1"})),
            host_path(BIN),
            id="no container with a GPU of today: untouched",
        ),
        pytest.param(
            pod(container({GPU: "0"}), container({LEGACY: 1})),
            host_path(BIN),
            id="zero GPUs: untouched",
        ),
    ],
)
def test_pods_that_are_left_alone(obj: Any, cx: Context) -> None:
    assert found(rule, obj, cx) == []


def test_host_paths_are_mounted_read_only_and_must_be_there() -> None:
    assert found(rule, modern_pod(), host_path(BIN, CUDA)) == [given(*both(0, BIN), *both(1, CUDA))]


def test_two_gpu_containers_share_the_volume_and_the_others_get_nothing() -> None:
    """A volume name that stands twice is refused."""
    obj = pod(
        gpu(),
        container({"cpu": "1"}, name="log"),
        initContainers=[gpu("warm-up"), gpu("sidecar", restartPolicy="Always")],
        ephemeralContainers=[container(name="debug")],
    )
    init = SPEC / "initContainers"
    assert found(rule, obj, host_path(BIN)) == [
        given(*both(0, BIN, init / 0), who="warm-up", at=init / 0),
        given(Append(init / 1 / "volumeMounts", mounted(0, BIN)), who="sidecar", at=init / 1),
        given(Append(FIRST / "volumeMounts", mounted(0, BIN))),
    ]


def writing(*numbers: int) -> dict[str, Any]:
    """Mounts of volumes that the pod does not have, and that nobody may write to."""
    names = (f"gpu-webhook-driver-{number}" for number in numbers)
    return {"volumeMounts": [{"name": each, "mountPath": f"/{each}"} for each in names]}


@pytest.mark.parametrize(
    ("what", "number"),
    [
        pytest.param({}, 0, id="no such mount"),
        pytest.param({"containers": [gpu(**writing(0))]}, 1, id="in the container with the GPU"),
        pytest.param({"containers": [gpu(), container(**writing(0))]}, 1, id="in another one"),
        pytest.param(
            {"initContainers": [container(name="i", **writing(0))]}, 1, id="in an init container"
        ),
        pytest.param(
            {"initContainers": [container(name="s", restartPolicy="Always", **writing(0))]},
            1,
            id="in a sidecar",
        ),
        pytest.param(
            {"ephemeralContainers": [container(name="e", **writing(0))]},
            1,
            id="in an ephemeral container",
        ),
        pytest.param(
            {
                "containers": [gpu(**writing(0, 2)), container(**writing(1))],
                "initContainers": [container(name="i", **writing(3, 5))],
            },
            4,
            id="in all of them",
        ),
        pytest.param(
            {"volumes": [volume(1, CUDA)], "initContainers": [container(name="i", **writing(0))]},
            2,
            id="and a volume of the next name",
        ),
    ],
)
@pytest.mark.parametrize("at", [ROOT, Path(("spec", "template"))], ids=["a pod", "a template"])
def test_a_volume_gets_no_name_that_a_mount_has_already(
    what: dict[str, Any], number: int, at: Path
) -> None:
    """Such a mount may be writable; without its volume the API server refuses the pod."""
    spec = copy.deepcopy({"containers": [gpu()], **what})
    made = {"metadata": {}, "spec": spec}
    obj = made if at == ROOT else {"kind": "Deployment", "spec": {"template": made}}
    before = {each["name"] for each in spec.get("volumes", [])}

    verdict = run((rule,), obj, host_path(BIN), at)

    assert verdict.failed == ()
    added = [each["name"] for each in spec["volumes"] if each["name"] not in before]
    assert added == [f"gpu-webhook-driver-{number}"]
    found = [
        each
        for kind in ("initContainers", "containers", "ephemeralContainers")
        for container in spec.get(kind, [])
        for each in container.get("volumeMounts", [])
        if each["name"] == added[0]
    ]
    assert found == [mounted(number, BIN)], "it is mounted read-only, and nowhere else"


@pytest.mark.parametrize(
    "kind", ["containers", "initContainers"], ids=["a container", "an init container"]
)
@pytest.mark.parametrize(
    ("mounts", "written"),
    [
        pytest.param([{"readOnly": False}], [0], id="writable"),
        pytest.param([{}], [0], id="nothing said"),
        pytest.param([{"readOnly": True}], [], id="read-only"),
        pytest.param([{"readOnly": True}, {}, {"subPath": "a"}], [1, 2], id="several"),
        pytest.param([{"name": "own"}], [], id="another volume"),
        pytest.param([{"name": "gpu-webhook-driver-x"}], [], id="no host path"),
        pytest.param([{"name": "gpu-webhook-driver-7"}], [0], id="of an older profile"),
        pytest.param([{"name": ["odd"]}], [], id="no name"),
    ],
)
def test_the_volume_of_the_driver_is_read_only_to_all(
    kind: str, mounts: list[dict[str, Any]], written: list[int]
) -> None:
    """A template has it since its first repair, and its author may mount it elsewhere."""
    listed = [
        {"name": "gpu-webhook-driver-0", "mountPath": f"/{number}", **each}
        for number, each in enumerate(mounts)
    ]
    spec: dict[str, Any] = {"containers": [gpu(volumeMounts=[mounted(0, BIN)])]}
    spec.setdefault(kind, []).append(container(name="side", volumeMounts=listed))
    spec["volumes"] = [
        volume(0, BIN),
        volume(7, CUDA),
        {"name": "gpu-webhook-driver-x", "emptyDir": {}},
        {"name": "own", "hostPath": {"path": "/opt"}},
    ]
    at = SPEC / kind / (len(spec[kind]) - 1) / "volumeMounts"
    name = [each["name"] for each in listed]
    assert found(rule, {"metadata": {}, "spec": spec}, host_path(BIN)) == [
        repaired(
            at / number,
            f"container side mounts {name[number]}, the driver's host path, which is read-only: "
            "write readOnly: true",
            (Set(at / number / "readOnly", value=True),),
        )
        for number in written
    ]


@pytest.mark.parametrize(
    ("volumes", "mounts", "edits"),
    [
        pytest.param(
            [{"name": "own", "emptyDir": {}}],
            [{"name": "own", "mountPath": "/usr/local/nvidia/bin/"}],
            (),
            id="that mountPath is taken: untouched",
        ),
        *(
            pytest.param(
                [{"name": "own", "emptyDir": {}}],
                [{"name": "own", "mountPath": path}],
                (),
                id=f"so if it is written as {path}: untouched",
            )
            for path in (
                "usr/local/nvidia/bin",
                "//usr/local/./nvidia/bin",
                "/usr/local/nvidia/bin/.",
            )
        ),
        pytest.param(
            [{"name": "own", "hostPath": {"path": "/opt/driver/bin/"}}],
            [{"name": "own", "mountPath": "/elsewhere"}],
            (),
            id="that source is there, at another place: untouched",
        ),
        *(
            pytest.param(
                [{"name": "own", "hostPath": {"path": "/opt/driver/bin"}}],
                [{"name": "own", "mountPath": "/elsewhere", part: "tools"}],
                both(0, BIN),
                id=f"only a {part} of that source is there",
            )
            for part in ("subPath", "subPathExpr")
        ),
        pytest.param(
            [{"name": "own", "hostPath": {"path": "/opt/driver/bin"}}],
            [{"name": "own", "mountPath": "/usr/local/nvidia/bin", "subPath": "tools"}],
            (),
            id="a part of that source at that mountPath: untouched",
        ),
        pytest.param(
            [{"name": "own", "hostPath": {"path": "/opt/driver/bin"}}],
            [],
            both(0, BIN),
            id="that source in a volume that this container does not mount",
        ),
        pytest.param(
            [{"name": "own", "hostPath": {"path": "/opt/driver"}}, {"name": "x", "hostPath": "/"}],
            [{"name": "own", "mountPath": "/opt"}, {"name": "x"}, {"name": "nobody's"}],
            both(0, BIN),
            id="other sources at other places",
        ),
        pytest.param(
            [volume(0, BIN)],
            [],
            (Append(FIRST / "volumeMounts", mounted(0, BIN)),),
            id="a volume of ours with this source: mounted, not made again",
        ),
        pytest.param(
            [volume(0, CUDA)],
            [],
            both(1, BIN),
            id="a volume of ours with another source (a pod copied from an older profile)",
        ),
    ],
)
def test_nothing_where_it_is_there_already(volumes: Any, mounts: Any, edits: Any) -> None:
    obj = pod(gpu(volumeMounts=mounts), volumes=volumes)
    assert found(rule, obj, host_path(BIN)) == ([given(*edits)] if edits else [])


def test_nothing_is_mounted_where_a_container_has_a_block_device() -> None:
    """The API server refuses a mountPath that is the devicePath of a volumeDevice."""
    device = {"name": "disk", "devicePath": BIN.mount_path}
    obj = pod(gpu(volumeDevices=[device, {"name": "odd"}, None]))
    assert found(rule, obj, host_path(BIN, CUDA)) == [given(*both(0, CUDA))]


ENV = FIRST / "env"


@pytest.mark.parametrize(
    ("env", "edits"),
    [
        pytest.param(
            None,
            [Append(ENV, {"name": "LD_LIBRARY_PATH", "value": "/a:/b"})],
            id="no variables at all",
        ),
        pytest.param(
            [{"name": "PATH", "value": "/bin"}],
            [Append(ENV, {"name": "LD_LIBRARY_PATH", "value": "/a:/b"})],
            id="other variables",
        ),
        pytest.param(
            [{"name": "LD_LIBRARY_PATH", "value": "/opt/lib:/b"}],
            [Set(ENV / 0 / "value", "/opt/lib:/b:/a")],
            id="what is missing comes last",
        ),
        pytest.param(
            [{"name": "LD_LIBRARY_PATH", "value": ""}],
            [Set(ENV / 0 / "value", "/a:/b")],
            id="empty",
        ),
        pytest.param(
            [{"name": "LD_LIBRARY_PATH"}], [Set(ENV / 0 / "value", "/a:/b")], id="no value is empty"
        ),
        pytest.param(
            [{"name": "LD_LIBRARY_PATH", "value": "/b:/a"}], [], id="all there: untouched"
        ),
        pytest.param(
            [{"name": "LD_LIBRARY_PATH", "valueFrom": {"configMapKeyRef": {}}}],
            [],
            id="a value from elsewhere: untouched",
        ),
        pytest.param([{"name": "LD_LIBRARY_PATH", "value": 1}], [], id="no text: untouched"),
    ],
)
def test_the_library_path_if_it_is_asked_for(env: Any, edits: list[Edit]) -> None:
    cx = host_path(BIN, library_path="/a:/b")
    there = {"volumeMounts": [{"name": "own", "mountPath": BIN.mount_path}], "env": env}
    message = (
        "container cuda gets the LD_LIBRARY_PATH of this cluster's profile, and no host path of "
        "the driver, since it has mounts of its own there; nothing to do in the manifest"
    )
    expected = [repaired(FIRST, message, tuple(edits))] if edits else []
    assert found(rule, pod(gpu(**there)), cx) == expected


def enforcing(**labels: str) -> dict[str, Any]:
    named = {f"pod-security.kubernetes.io/{mode}": level for mode, level in labels.items()}
    return {"inventory": Inventory(namespaces={"lab": named}), "namespace": "lab"}


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_namespace_that_forbids_host_paths_gets_a_finding_instead(level: str) -> None:
    message = (
        f"the namespace enforces the Pod Security level {level}, which forbids the driver's host "
        "paths: install the container toolkit, and set drivers.profile to toolkit"
    )
    cx = host_path(BIN, **enforcing(enforce=level))
    assert found(rule, modern_pod(), cx) == [reported(SPEC, message)]
    there = pod(gpu(volumeMounts=[{"name": "own", "mountPath": BIN.mount_path}]))
    assert found(rule, there, cx) == []


@pytest.mark.parametrize("more", [{}, enforcing(warn="privileged")], ids=["no inventory", "one"])
@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_namespace_without_a_label_has_the_level_of_the_cluster(level: Any, more: Any) -> None:
    drivers = Drivers(mounts=(BIN,), pod_security=level)
    cx = Context(Settings(drivers=drivers), **more)
    (told,) = found(rule, modern_pod(), cx)
    assert f"the Pod Security level {level}" in told.message
    assert not told.edits
    labelled = Context(Settings(drivers=drivers), **enforcing(enforce="privileged"))
    assert found(rule, modern_pod(), labelled) == [given(*both(0, BIN))]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(enforcing(enforce="privileged"), id="privileged"),
        pytest.param(enforcing(warn="restricted", audit="baseline"), id="it only warns"),
        pytest.param(
            enforcing(enforce="baseline") | {"namespace": "other"}, id="another namespace"
        ),
        pytest.param({"inventory": gpu_nodes(), "namespace": "lab"}, id="nothing known of it"),
        pytest.param({"namespace": "lab"}, id="no inventory"),
    ],
)
def test_other_namespaces_get_the_mount(more: Any) -> None:
    assert found(rule, modern_pod(), host_path(BIN, **more)) == [given(*both(0, BIN))]


NEW = Inventory(watched=True)
OURS = ("spec", "volumes", "gpu-webhook-driver-0")
MADE = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}


@pytest.mark.parametrize(
    ("more", "owners", "is_mounted"),
    [
        pytest.param({}, [], False, id="a bare pod of today"),
        pytest.param({}, [MADE | {"controller": False}], False, id="an owner that makes none"),
        pytest.param({}, [MADE], True, id="its controller tries again"),
        pytest.param({"template": True}, [], False, id="a template"),
        pytest.param({"template": True, "stuck": True}, [], False, id="a legacy template"),
        pytest.param(
            {"template": True, "was_added": {OURS: {}}}, [], True, id="a template that has it"
        ),
        pytest.param({"stuck": True}, [], True, id="a legacy pod, which cannot run as it is"),
        pytest.param(
            {"inventory": replace(NEW, whitelists={"lab": ""})}, [], True, id="it is known"
        ),
    ],
)
def test_in_a_namespace_that_is_not_known_yet(
    more: dict[str, Any], owners: list[Any], *, is_mounted: bool
) -> None:
    cx = host_path(BIN, **{"inventory": NEW, "namespace": "lab", **more})
    obj = modern_pod()
    obj["metadata"]["ownerReferences"] = owners
    made = [each for each in rule.check(Pod(obj), cx) if each.edits]
    assert [each.edits for each in made] == ([both(0, BIN)] if is_mounted else [])
    assert all(
        ("the API server refuses the pod" in e.message) is (cx.inventory is NEW) for e in made
    )


@pytest.mark.parametrize(
    ("more", "is_said"),
    [
        pytest.param({}, True, id="a pod"),
        pytest.param({"template": True}, False, id="a template, of which the pods get the path"),
    ],
)
def test_a_pod_without_the_path_is_told_why(more: dict[str, Any], *, is_said: bool) -> None:
    cx = host_path(BIN, **{"inventory": NEW, "namespace": "lab", **more})
    made = list(rule.check(Pod(modern_pod()), cx))
    assert [(each.severity, each.edits) for each in made] == [(Severity.MANUAL, ())] * is_said
    assert all("create the pod again" in each.message for each in made)
    assert list(rule.check(Pod({"spec": {"containers": [{"name": "c"}]}}), cx)) == []


def test_what_adds_no_host_path_waits_for_no_namespace() -> None:
    """The author mounts it already: the search path and readOnly refuse no pod."""
    drivers = Drivers((BIN,), library_path="/nvidia/lib")
    cx = Context(Settings(drivers=drivers), NEW, namespace="lab")
    obj = modern_pod()
    source = {"path": BIN.path, "type": BIN.type}
    obj["spec"]["volumes"] = [{"name": "gpu-webhook-driver-0", "hostPath": source}]
    mount = {"name": "gpu-webhook-driver-0", "mountPath": BIN.mount_path}
    obj["spec"]["containers"][0]["volumeMounts"] = [mount]
    made = list(rule.check(Pod(obj), cx))
    assert [str(place_of(edit)) for each in made for edit in each.edits] == [
        "/spec/containers/0/env",
        "/spec/containers/0/volumeMounts/0/readOnly",
    ]


def class_of(name: str, *, assume: bool = False, known: tuple[str, ...] = ()) -> Context:
    drivers = Drivers(runtime_class=name, assume_runtime_class=assume)
    inventory = Inventory(runtime_classes={name: {} for name in known}) if known else None
    return Context(Settings(drivers=drivers), inventory)


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        pytest.param({"disk": "ssd"}, True, id="another value"),
        pytest.param({"disk": "hdd"}, False, id="the same value"),
        pytest.param({"zone": "a"}, False, id="another label"),
        pytest.param(None, False, id="no selector"),
        pytest.param("odd", False, id="no map"),
    ],
)
def test_a_runtime_class_whose_node_selector_the_pods_contradicts_is_not_set(
    selector: Any, *, told: bool
) -> None:
    """The API server refuses the pod: nodeSelector of both must not conflict."""
    drivers = Drivers(runtime_class="nvidia")
    labels = {"gpu": "yes", "disk": "hdd", "zone": "a"}
    classes = {"nvidia": {"gpu": "yes", "disk": "hdd"}}
    inventory = Inventory((NodeClass(labels, (), {GPU: 4}),), runtime_classes=classes)
    obj = modern_pod(nodeSelector=selector)
    message = (
        "the runtime class nvidia is not set: it is for nodes with disk=hdd, nodeSelector says "
        "disk=ssd, and the API server refuses a pod with both; change one of them"
    )
    expected = [reported(SPEC / "runtimeClassName", message)] if told else [CLASS]
    assert found(rule, obj, Context(Settings(drivers=drivers), inventory)) == expected


def test_a_runtime_class_beside_a_label_whose_value_is_inserted_later() -> None:
    cx = replace(by_class(*TWO_POOLS), is_open=True)
    for written in ("$(POOL)", "<pool>"):
        message = (
            "the runtime class nvidia is not set: it is for nodes with pool=b, nodeSelector says "
            f"pool={written}, which is filled in later: write runtimeClassName: nvidia if it will "
            "be the same"
        )
        said = [reported(SPEC / "runtimeClassName", message)]
        assert found(rule, modern_pod(nodeSelector={"pool": written}), cx) == said


CLASS = repaired(
    SPEC / "runtimeClassName",
    "GPU pods run with the runtime class nvidia here; write runtimeClassName: nvidia",
    (Set(SPEC / "runtimeClassName", "nvidia"),),
)


OF_POOL_B = {"nvidia": {"pool": "b"}}
TWO_POOLS = (
    NodeClass({"pool": "a", PRODUCT: "Tesla-T4"}, (), {GPU: 8}, ("in-a",)),
    NodeClass({"pool": "b", PRODUCT: "Tesla-P100-PCIE-16GB"}, (), {GPU: 4}, ("in-b",)),
)
DEDICATED = Taint("dedicated", "b", "NoSchedule")
TAINTED_B = (TWO_POOLS[0], replace(TWO_POOLS[1], taints=(DEDICATED,)))
LASTING_TAINT_OF_GPUS = (TWO_POOLS[0], replace(TWO_POOLS[1], taints=(Taint(GPU),)))


def by_class(*nodes: NodeClass, tolerations: Any = None, **more: Any) -> Context:
    tolerated = {"nvidia": tolerations} if tolerations else {}
    inventory = Inventory(nodes, runtime_classes=OF_POOL_B, class_tolerations=tolerated)
    drivers = Drivers(runtime_class="nvidia")
    return Context(Settings(drivers=drivers), inventory, **more)


def node_affinity(kind: str, key: str, *values: str) -> dict[str, Any]:
    asked = {"key": key, "operator": "In", "values": list(values)}
    required = {"nodeSelectorTerms": [{kind: [asked]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"affinity": {"nodeAffinity": affinity}}


def asking(amount: str, **spec: Any) -> dict[str, Any]:
    return pod(container({GPU: amount}, {GPU: amount}), **spec)


IN_A = node_affinity("matchExpressions", "pool", "a")
ALL_KEYS = [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("obj", "cx", "given"),
    [
        pytest.param(modern_pod(**IN_A), by_class(*TWO_POOLS), False, id="affinity: others"),
        pytest.param(
            modern_pod(**node_affinity("matchExpressions", "pool", "a", "b")),
            by_class(*TWO_POOLS),
            True,
            id="affinity: these and others",
        ),
        pytest.param(
            modern_pod(**node_affinity("matchFields", "metadata.name", "in-a")),
            by_class(*TWO_POOLS),
            False,
            id="the pin of a DaemonSet: another node",
        ),
        pytest.param(
            modern_pod(**node_affinity("matchFields", "metadata.name", "in-b")),
            by_class(*TWO_POOLS),
            True,
            id="the pin of a DaemonSet: a node of the class",
        ),
        pytest.param(modern_pod(), by_class(*TWO_POOLS), True, id="nothing said of nodes"),
        pytest.param(asking("8"), by_class(*TWO_POOLS), False, id="more GPUs than they have"),
        pytest.param(
            asking("8"), by_class(*TWO_POOLS, fresh=False), False, id="the same, as last known"
        ),
        pytest.param(asking("4"), by_class(*TWO_POOLS), True, id="as many as they have"),
        pytest.param(modern_pod(), by_class(*TAINTED_B), False, id="they are tainted"),
        pytest.param(
            modern_pod(tolerations=ALL_KEYS), by_class(*TAINTED_B), True, id="the pod tolerates it"
        ),
        pytest.param(
            modern_pod(), by_class(*TAINTED_B, tolerations=ALL_KEYS), True, id="the class does"
        ),
        pytest.param(
            modern_pod(nodeName="in-a"), by_class(*TWO_POOLS), False, id="nodeName: another node"
        ),
        pytest.param(
            modern_pod(nodeName="in-b"),
            by_class(*TAINTED_B),
            True,
            id="nodeName: a node of the class; no scheduler looks at its taint",
        ),
        pytest.param(modern_pod(), by_class(), False, id="no node is known, a pod of today"),
        pytest.param(
            modern_pod(), by_class(TWO_POOLS[0]), False, id="no node of the class, a pod of today"
        ),
        pytest.param(
            modern_pod(),
            by_class(TWO_POOLS[0], replace(TWO_POOLS[1], hint="an autoscaler", nodes=())),
            False,
            id="nodes of the class may be added, but nobody knows",
        ),
        pytest.param(
            modern_pod(),
            by_class(TWO_POOLS[0], replace(TWO_POOLS[1], grows=True, nodes=())),
            True,
            id="nodes of the class will be added",
        ),
        pytest.param(
            modern_pod(),
            by_class(*TWO_POOLS, workload={"kind": "DaemonSet"}),
            False,
            id="a DaemonSet, of which a pod on other nodes would wait",
        ),
        pytest.param(
            modern_pod(nodeSelector={"pool": "b"}),
            by_class(*TWO_POOLS, workload={"kind": "DaemonSet"}),
            True,
            id="a DaemonSet for the nodes of the class",
        ),
    ],
)
def test_a_runtime_class_without_a_node_that_fits_is_not_set(
    obj: Any, cx: Context, *, given: bool
) -> None:
    message = (
        "the runtime class nvidia is not set: no node known to have pool=b, as the class asks, "
        "fits this pod; change the node selection of the pod, or write runtimeClassName: nvidia"
    )
    expected = CLASS if given else reported(SPEC / "runtimeClassName", message)
    assert found(rule, obj, cx) == [expected]


@pytest.mark.parametrize(
    ("model", "classes", "given"),
    [
        pytest.param("Tesla T4", TWO_POOLS, False, id="the model is on other nodes"),
        pytest.param("Tesla P100", TWO_POOLS, True, id="the model is on these"),
        pytest.param(
            "Tesla P100", LASTING_TAINT_OF_GPUS, True, id="the repair tolerates their taint"
        ),
        pytest.param(
            "Tesla T4",
            tuple(replace(each, taints=(Taint(GPU),)) for each in TWO_POOLS),
            False,
            id="all are tainted so",
        ),
        pytest.param("Tesla T4", (), True, id="nothing is known, and it cannot run as it is"),
        pytest.param("Tesla T4", TWO_POOLS[1:], True, id="it waits for its model either way"),
    ],
)
def test_a_legacy_pod_is_held_against_the_class_as_it_will_be(
    model: str, classes: tuple[NodeClass, ...], *, given: bool
) -> None:
    obj = legacy_pod(nodeSelector={LABEL: model})
    run(RULES, obj, by_class(*classes))
    assert ("runtimeClassName" in obj["spec"]) == given


def unknown(name: str) -> Finding:
    message = (
        f"the runtime class {name} is not known to exist: it is added to nothing, and pods of "
        "a template that has it are refused until it does; create it, name another in "
        "drivers.runtimeClass, or set drivers.assumeRuntimeClass"
    )
    return reported(SPEC / "runtimeClassName", message)


@pytest.mark.parametrize(
    ("spec", "cx", "expected"),
    [
        pytest.param(
            {"runtimeClassName": "kata"},
            class_of("nvidia", known=("nvidia",)),
            [],
            id="another class is set: never overwritten",
        ),
        pytest.param(
            {"runtimeClassName": "nvidia"}, class_of("gone"), [], id="a class is set: no finding"
        ),
        pytest.param(
            {}, class_of("nvidia", known=("kata", "nvidia")), [CLASS], id="known to exist"
        ),
        pytest.param({}, class_of("nvidia", assume=True), [CLASS], id="assumed to exist"),
        pytest.param(
            {}, class_of("nvidia", known=("kata",)), [unknown("nvidia")], id="not among the classes"
        ),
        pytest.param(
            {}, class_of("nvidia"), [unknown("nvidia")], id="nothing known of the cluster"
        ),
        pytest.param({}, class_of("", assume=True), [], id="no name to assume"),
    ],
)
def test_the_runtime_class(spec: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, modern_pod(**spec), cx) == expected
    assert found(rule, pod(container({"cpu": 1}), container({LEGACY: "1"})), cx) == []


WITHIN = " with the node selector of its namespace"
NO_NODE = (
    "the runtime class nvidia is not set: no node known to have pool=b, as the class asks, fits "
    "this pod{}; change the node selection of the pod, or write runtimeClassName: nvidia"
)
STAYS = (
    "the runtime class nvidia was set before and stays, though no node known to have pool=b, as "
    "the class asks, fits this pod; change the node selection of the pod, or the nodes"
)
AGAINST = (
    "the runtime class nvidia is not set: it is for nodes with pool=b, the namespace's node "
    "selector says pool=a, and the API server refuses a pod with both; change one of them"
)
T4 = {PRODUCT: "Tesla-T4"}
SET_BEFORE: dict[tuple[str, ...], Any] = {("spec", "runtimeClassName"): "nvidia"}
AT_CLASS = SPEC / "runtimeClassName"


def in_lab(selector: Any, nodes: Any = TWO_POOLS, *, watched: bool = False, **more: Any) -> Context:
    cx = by_class(*nodes, namespace="lab", **{"template": True, **more})
    assert cx.inventory
    given = {"lab": selector} if selector else {}
    return replace(cx, inventory=replace(cx.inventory, node_selectors=given, watched=watched))


@pytest.mark.parametrize(
    ("cx", "expected"),
    [
        pytest.param(in_lab({}), [CLASS], id="none"),
        pytest.param(in_lab({"pool": "b"}), [CLASS], id="the same label as the class"),
        pytest.param(in_lab({"pool": "a"}), [reported(AT_CLASS, AGAINST)], id="another value"),
        pytest.param(
            in_lab({"pool": "a"}, was_added=SET_BEFORE),
            [reported(AT_CLASS, AGAINST)],
            id="another value, which came after the class: it goes",
        ),
        pytest.param(in_lab(T4), [reported(AT_CLASS, NO_NODE.format(WITHIN))], id="other nodes"),
        pytest.param(in_lab(T4, template=False), [CLASS], id="a pod, which would have it"),
        pytest.param(in_lab({}, watched=True), [], id="not known yet: left to the pods"),
        pytest.param(
            in_lab({}, watched=True, was_added=SET_BEFORE), [CLASS], id="not known, but set before"
        ),
        pytest.param(
            in_lab({}, TWO_POOLS[:1], was_added=SET_BEFORE),
            [replace(reported(AT_CLASS, STAYS), edits=CLASS.edits)],
            id="no node of the class any more: it stays",
        ),
    ],
)
def test_a_class_for_a_template_suits_the_node_selector_of_its_namespace(
    cx: Context, expected: list[Finding]
) -> None:
    """A template lacks what PodNodeSelector gives its pods, which may then fit no node."""
    cx = replace(cx, settings=replace(cx.settings, workloads=Workloads(repair=True)))
    assert found(rule, modern_pod(), cx) == expected


def test_a_class_that_is_not_known_any_more_stays_and_is_not_said_to_be_left_out() -> None:
    cx = replace(class_of("nvidia"), template=True, was_added=SET_BEFORE)
    message = (
        "the runtime class nvidia was set before and stays, though it is not known to exist: while "
        "it does not, pods are refused; create it, or name another in drivers.runtimeClass"
    )
    told = replace(reported(AT_CLASS, message), edits=CLASS.edits)
    assert found(rule, modern_pod(), cx) == [told]
