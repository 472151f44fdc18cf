"""Pods as people wrote them in 1.3-1.10 and today, and as nobody should: hypothesis strategies.

`pods()` gives pods that an API server could send: every member has the right type, so what is wrong
with them is what they mean. `broken_pods()` puts junk in the place of some of their members.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from webhook.kube.pod import KINDS, PREFERRED, REQUIRED

if TYPE_CHECKING:
    from collections.abc import Mapping

    Raw = dict[str, Any]
    Strategy = st.SearchStrategy[Any]

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
LABEL = "alpha.kubernetes.io/nvidia-gpu-name"
GPU = "nvidia.com/gpu"
OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-gpu"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"

one_of = st.sampled_from


def some(members: Mapping[str, Strategy], always: Mapping[str, Strategy] | None = None) -> Strategy:
    """A map with some of these members, and always those."""
    return st.fixed_dictionaries(dict(always or {}), optional=dict(members))


def few(items: Strategy, most: int = 3, least: int = 0) -> Strategy:
    return st.lists(items, min_size=least, max_size=most)


def or_null(strategy: Strategy) -> Strategy:
    return st.none() | strategy


def seldom(strategy: Strategy) -> Strategy:
    """Nothing in most cases: an empty member is as good as none, but not the same."""
    return st.one_of(st.just({}), st.just({}), strategy)


# --------------------------------------------------------------------------- amounts

_numbers = one_of(["0", "1", "2", "8", "1.0", "0.5", "1.5", ".5", "3.", "007", "+1", "-1", "-0"])
_suffixes = one_of(["", "", "", "m", "n", "u", "k", "M", "Ki", "Ei", "e0", "E+2", "e-3"])
good_amounts = st.one_of(
    one_of(["1", "2", "1", "4", "500m", "1500m", "1k", "0", "1e1", "1000m"]),
    st.integers(0, 16),
    st.builds("{}{}".format, _numbers, _suffixes),
    st.floats(0, 10, allow_nan=False).map(lambda value: round(value, 3)),
)
bad_amounts = one_of(["", "one", "1 k", "1e", "--1", "1.5.5", "0x1", "٣", "NaN", "1Ki5", " "])
amounts = st.one_of(good_amounts, good_amounts, good_amounts, st.none(), bad_amounts)

_odd_names = ("nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "nvidia.com/gpu.memory", OPAQUE)
_gpu_names = one_of([LEGACY, LEGACY, LEGACY, LEGACY, GPU, GPU, *_odd_names])
_other_names = one_of(["cpu", "memory", "ephemeral-storage", "a/b~c", "~1", "hugepages-2Mi"])


@st.composite
def resources(draw: st.DrawFn) -> Raw:
    """Limits and requests as an API server sends them: it has copied limits without a request."""
    names = st.one_of(_gpu_names, _gpu_names, _other_names)
    limits: Raw = draw(st.dictionaries(names, amounts, min_size=1, max_size=2))
    requests: Raw = draw(st.dictionaries(names, amounts, max_size=2))
    match draw(st.integers(0, 7)):
        case 0:
            return {"limits": limits, "requests": requests}
        case 1:
            return {"requests": {**limits, **requests}}
        case 2:
            return {"limits": limits, "requests": None, "claims": [{"name": "gpu"}]}
        case 3:
            return {"limits": {}, "requests": requests}
        case _:
            return {"limits": limits, "requests": {**limits, **requests}}


# --------------------------------------------------------------------------- volumes and variables

STALE_PATHS = (
    "/usr/lib/nvidia-375",
    "/usr/lib/nvidia-384/bin/",
    "//usr//lib64/nvidia-375",
    "/var/lib/nvidia-docker/volumes/nvidia_driver/387.26",
    "/var/lib/nvidia-docker/volumes/nvidia_driver/latest/lib64",
    "/usr/lib64/nvidia/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.375.26",
    "/lib/libcuda.so",
)
OTHER_PATHS = (
    "/usr/local/nvidia",
    "/usr/local/nvidia/lib64",
    "/home/kubernetes/bin/nvidia",
    "/opt/cloud/cce/nvidia/lib64/libcuda.so",
    "/dev/nvidia0",
    "/usr/lib",
    "/usr/lib/nvidia",
    "/usr/lib/nvidia-docker",
    "/var/lib/nvidia-docker/volumes",
    "/srv/data/libcuda.so.1",
    "/data",
    "/",
    "",
    "relative/nvidia-375",
)
_volume_names = one_of(["driver", "libs", "data", "a/b", "gpu-webhook-driver-0"])
_sources = st.one_of(
    one_of(STALE_PATHS).map(lambda path: {"hostPath": {"path": path}}),
    one_of(STALE_PATHS).map(lambda path: {"hostPath": {"path": path, "type": "Directory"}}),
    one_of(OTHER_PATHS).map(lambda path: {"hostPath": {"path": path, "type": ""}}),
    one_of([{"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": "c"}}, {"hostPath": None}]),
)
_volumes = st.lists(
    st.builds(lambda name, source: {"name": name, **source}, _volume_names, _sources),
    max_size=3,
    unique_by=lambda volume: volume["name"],
)
_mount_paths = one_of(
    ["/usr/lib/nvidia", "/usr/local/nvidia", "/usr/local/nvidia/lib64", "/cuda", "/cuda/", "/data"]
)
_mounts = st.lists(
    st.builds(
        lambda name, path, more: {"name": name, "mountPath": path, **more},
        _volume_names,
        _mount_paths,
        one_of([{}, {"readOnly": True}, {"subPath": "x"}]),
    ),
    max_size=3,
    unique_by=lambda mount: mount["mountPath"],
)
_entries = one_of(
    [
        "/usr/lib/nvidia",
        "/cuda",
        "/cuda/lib64",
        "/cudart",
        "/usr/local/nvidia/lib64",
        "",
        "/bin",
        "$(X)",
    ]
)
_env = few(
    st.one_of(
        st.builds(
            lambda name, entries: {"name": name, "value": ":".join(entries)},
            one_of(["LD_LIBRARY_PATH", "PATH", "OTHER"]),
            few(_entries, 4),
        ),
        one_of(
            [
                {"name": "LD_LIBRARY_PATH"},
                {"name": "PATH", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            ]
        ),
    )
)

# --------------------------------------------------------------------------- labels and affinity

MODELS = (
    "Tesla K80",
    "Tesla-K80",
    "tesla_p100",
    "Tesla P100",
    "K80",
    "NVIDIA Tesla T4",
    "GTX 1080",
    "GTX-1080-Ti",
    "Quadro-M2000M",
    "Voodoo 2",
    "x" * 70,
    "-",
    "",
    "é",
    "GTX\n970",
    'a"b\\c',
)
_models = one_of(MODELS)
_keys = one_of([LABEL, LABEL, "zone", "kubernetes.io/hostname", "nvidia.com/gpu.product"])
_deprecated = one_of(["failure-domain.beta.kubernetes.io/zone", "beta.kubernetes.io/arch"])
_operators = one_of(["In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])


@st.composite
def _requirements(draw: st.DrawFn, *, good: bool) -> Raw:
    operator = draw(_operators if good else _operators | one_of(["in", "", "Equals"]))
    requirement: Raw = {"key": draw(_keys | _deprecated), "operator": operator}
    if not good:
        requirement["values"] = draw(few(_models | one_of(["a", "b c"])))
    elif operator in ("In", "NotIn"):
        # 1.30-1.32 let any value pass in spec.affinity.
        requirement["values"] = draw(few(_models | one_of(["a", "b"]), 3, least=1))
    elif operator in ("Gt", "Lt"):
        requirement["values"] = [draw(one_of(["1", "16000"]))]
    return requirement


_PIN = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}


def _node_terms(*, good: bool) -> Strategy:
    expressions = few(_requirements(good=good), 2, least=1 if good else 0)
    term = expressions.map(lambda found: {"matchExpressions": found})
    if not good:
        return term | one_of([{}, {"matchExpressions": None}, {"matchexpressions": []}])
    return st.one_of(term, term, term.map(lambda found: {**found, **_PIN}), st.just(_PIN))


def _node_affinity(*, good: bool) -> Strategy:
    weights = st.integers(1, 100) if good else one_of([0, 1, 100, 101, -5])
    terms = _node_terms(good=good)
    return some(
        {
            REQUIRED: few(terms, 3, least=1 if good else 0).map(
                lambda found: {"nodeSelectorTerms": found}
            ),
            PREFERRED: few(st.fixed_dictionaries({"weight": weights, "preference": terms})),
        }
    )


def _pod_affinity(*, good: bool) -> Strategy:
    topology = one_of(["kubernetes.io/hostname", "failure-domain.beta.kubernetes.io/zone"])
    terms = some(
        {
            "labelSelector": one_of(
                [{}, {"matchLabels": {"app": "a"}}, {"matchExpressions": []}]
                + ([] if good else [None, {"matchLabels": {"a b": 1}}])
            ),
            "namespaces": one_of([[], ["default"]] + ([] if good else [["A B"], "x"])),
        },
        {"topologyKey": topology if good else topology | one_of(["", None])},
    )
    weighted = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": terms})
    return some({REQUIRED: few(terms, 2), PREFERRED: few(weighted, 2)})


def affinities(*, good: bool = True) -> Strategy:
    """The affinity of a pod's spec; with good=False mistakes are among it, as in an annotation."""
    return some(
        {
            "nodeAffinity": _node_affinity(good=good),
            "podAffinity": _pod_affinity(good=good),
            "podAntiAffinity": _pod_affinity(good=good),
        }
    )


# --------------------------------------------------------------------------- annotations


def _respelt(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {change(key): _respelt(item, change) for key, item in value.items()}
    return [_respelt(item, change) for item in value] if isinstance(value, list) else value


_unread = one_of(
    [
        {"nodeAffinity": {"requiredDuringSchedulingRequiredDuringExecution": {}}},
        {"nodeAffinty": {}},
        {"nodeAffinity": {"extra": 1}, "podAffinity": {REQUIRED: [{"topologyKey": 7}]}},
    ]
)
_texts = st.one_of(
    affinities().map(json.dumps),
    affinities().map(lambda value: json.dumps(value, indent=2)),
    affinities(good=False).map(json.dumps),
    affinities().map(lambda value: json.dumps(_respelt(value, str.lower))),
    affinities().map(lambda value: json.dumps(_respelt(value, str.upper))),
    _unread.map(json.dumps),
    affinities().map(lambda value: json.dumps(value)[:-1]),
    one_of(["", "null", "{}", "[]", "x", "{", '{"nodeAffinity": NaN}', LABEL, f'"{LABEL}"']),
    one_of(['{"nodeAffinity": {"\\ud800": 1}}', '{"nodeAffinity": {}, "nodeAffinity": null}']),
)
_toleration = some(
    {
        "operator": one_of(["Exists", "Equal", "", "Other"]),
        "value": one_of(["", "gpu", "a b"]),
        "effect": one_of(["", "NoSchedule", "NoExecute", "PreferNoSchedule", "Never"]),
        "tolerationSeconds": one_of([0, 60]),
    },
    {"key": one_of([GPU, "dedicated", "", "a b", "sku"])},
)
_toleration_texts = st.one_of(
    few(_toleration).map(json.dumps),
    few(_toleration).map(lambda value: json.dumps(_respelt(value, str.upper))),
    one_of(["", "null", "[]", "{}", "x", "[null]", '[{"key": 1}]', '[{"key": "\\ud800"}]']),
)
_annotations = some(
    {
        AFFINITY: _texts,
        TOLERATIONS: _toleration_texts,
        "scheduler.alpha.kubernetes.io/name": one_of(["default-scheduler", "gpu-scheduler", "A"]),
        "scheduler.alpha.kubernetes.io/critical-pod": one_of(["", "true"]),
        "scheduler.alpha.kubernetes.io/nvidiaGPU": one_of(['{"AllocationPriority":"Dense"}', "x"]),
        "security.alpha.kubernetes.io/sysctls": one_of(
            ["kernel.shm_rmid_forced=1", "net.ipv4.tcp_syncookies=1,kernel.msgmax=1", "a", "a=b=c"]
        ),
        "security.alpha.kubernetes.io/unsafe-sysctls": one_of(["kernel.msgmax=1"]),
        "seccomp.security.alpha.kubernetes.io/pod": one_of(
            ["runtime/default", "docker/default", "unconfined", "localhost/p"]
        ),
        "container.seccomp.security.alpha.kubernetes.io/c0": one_of(["docker/default", "x"]),
        "container.apparmor.security.beta.kubernetes.io/c0": one_of(["runtime/default"]),
        "pod.beta.kubernetes.io/hostname": one_of(["host-1", "Not A Name"]),
        "pod.beta.kubernetes.io/subdomain": one_of(["sub", ""]),
        "pod.beta.kubernetes.io/init-containers": one_of(["[]", "x"]),
        "a/b~c": one_of(["", "x", LABEL, "\u2028", "😀"]),
        "kubernetes.io/config.source": st.just("api"),
    }
)

# --------------------------------------------------------------------------- containers and pods


def _containers(kind: str, most: int, least: int = 0) -> Strategy:
    members: dict[str, Strategy] = {
        "env": or_null(_env),
        "volumeMounts": or_null(_mounts),
        "securityContext": one_of(
            [None, {}, {"privileged": True}, {"capabilities": {"add": ["SYS_ADMIN"]}}]
        ),
        "futureField": one_of([1, 1.0, 1e22, 0.1, True, None, "x", [], {"a/b": {"~": []}}]),
        "ports": one_of([[], [{"containerPort": 80}]]),
        "command": one_of([[], ["nvidia-smi", "-L"]]),
    }
    if kind != "ephemeralContainers":  # they may ask for nothing
        members["resources"] = resources()
    if kind == "initContainers":
        members["restartPolicy"] = st.just("Always")  # a sidecar
    always: dict[str, Strategy] = {"image": one_of(["nvidia/cuda:8.0", "busybox"])}
    if kind == "containers":
        always["resources"] = st.one_of(
            members.pop("resources"), resources(), resources(), one_of([None, {}])
        )
    one = some(members, always)
    prefix = {"initContainers": "i", "containers": "c", "ephemeralContainers": "e"}[kind]
    return few(one, most, least).map(
        lambda found: [{"name": f"{prefix}{at}", **each} for at, each in enumerate(found)]
    )


_owners = one_of(
    [
        [],
        [{"kind": "DaemonSet", "name": "d", "controller": True, "apiVersion": "apps/v1"}],
        [{"kind": "ReplicaSet", "name": "r", "controller": True, "apiVersion": "apps/v1"}],
        [{"kind": "Job", "name": "j", "apiVersion": "batch/v1"}],
    ]
)
_metadata = some(
    {
        "name": st.just("pod"),
        "generateName": st.just("pod-"),
        "labels": one_of([{}, {"app": "a", LABEL: "Tesla K80"}]),
        "annotations": or_null(_annotations),
        "ownerReferences": _owners,
        "managedFields": one_of([[], [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]]),
        "creationTimestamp": st.none(),
    }
)
_spec = some(
    {
        "initContainers": or_null(_containers("initContainers", 2)),
        "ephemeralContainers": _containers("ephemeralContainers", 1),
        "nodeSelector": or_null(
            st.dictionaries(
                one_of([LABEL, LABEL, "disk", "nvidia.com/gpu.product"]),
                _models.filter(lambda name: "\n" not in name) | one_of(["ssd", "Tesla-K80"]),
                max_size=2,
            )
        ),
        "affinity": or_null(affinities()),
        "tolerations": or_null(
            few(
                one_of(
                    [
                        {"operator": "Exists"},
                        {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
                        {"key": GPU, "operator": "Equal", "value": "present"},
                        {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
                    ]
                )
            )
        ),
        "volumes": or_null(_volumes),
        "resources": seldom(resources()),
        "hostname": one_of(["", "other"]),
        "hostNetwork": st.booleans(),
        "nodeName": one_of(["", "node-1"]),
        "schedulerName": one_of(["default-scheduler", "other", ""]),
        "runtimeClassName": one_of([None, "nvidia", ""]),
        "securityContext": one_of([None, {}, {"sysctls": []}, {"seccompProfile": {"type": "X"}}]),
        "serviceAccountName": st.just("default"),
        "terminationGracePeriodSeconds": one_of([30, 0]),
        "futureThing": one_of([{"deep": [1, 1.0, None]}, []]),
    },
    {"containers": _containers("containers", 3, least=1)},
)


def unshared(value: Any) -> Any:
    """A copy as a parser makes it: nothing is in two places, as sampled values would be."""
    return json.loads(json.dumps(value))


def pods() -> st.SearchStrategy[Raw]:
    """Pods that an API server could send."""
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just("v1"),
            "kind": st.just("Pod"),
            "metadata": _metadata,
            "spec": _spec,
        },
        optional={"status": one_of([{}, {"phase": "Pending"}])},
    ).map(unshared)


@st.composite
def plain_pods(draw: st.DrawFn) -> Raw:
    """Pods that are none of our business: every trace of a GPU is taken out."""
    pod: Raw = draw(pods())
    for kind in KINDS:
        for container in pod["spec"].get(kind) or ():
            for section in (container.get("resources") or {}).values():
                if isinstance(section, dict):
                    for name in [name for name in section if "/" in name]:
                        del section[name]
    (pod["metadata"].get("annotations") or {}).pop(AFFINITY, None)
    (pod["spec"].get("nodeSelector") or {}).pop(LABEL, None)
    pod["spec"].pop("affinity", None)
    return pod


# --------------------------------------------------------------------------- junk

JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**25,
    "",
    "x",
    "\x00",
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"a": 1},
)


def places(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a value, the top not among them."""
    members = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    found = []
    for key, item in members:
        found.append((*at, key))
        found += places(item, (*at, key))
    return found


@st.composite
def broken_pods(draw: st.DrawFn) -> Raw:
    """Pods with junk in the place of one to three members."""
    pod: Raw = draw(pods())
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(one_of(places(pod)))
        holder: Any = pod
        for token in above:
            holder = holder[token]
        holder[last] = deepcopy(draw(one_of(JUNK)))
    return pod
