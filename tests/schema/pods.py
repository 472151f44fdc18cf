"""Pods drawn from the API server's own schema, with a good share of what a legacy GPU pod has.

`any_pods()` takes every field of the schema, in any combination: what can be written down.
`likely_pods()` keeps to fields and values that the API server mostly accepts: what can be stored.
A cluster test keeps both honest. All draws are of JSON: dicts, lists, texts, numbers, booleans.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.schema.openapi import stored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.schema.openapi import Schema

Json = dict[str, Any]
Strategy = st.SearchStrategy[Any]

ALPHA = "alpha.kubernetes.io/nvidia-gpu"
MODEL = "alpha.kubernetes.io/nvidia-gpu-name"
NVIDIA = "nvidia.com/gpu"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"

_CORE = "io.k8s.api.core.v1."
_MOST_OPTIONAL_FIELDS = 4  # of one object; more makes every pod a large one

_RESOURCES = [ALPHA, NVIDIA, "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "cpu", "memory"]
_WHOLE = ["1", "2", "4", 1, 3, "1k", "1000m", "0"]
_ODD = ["500m", "1.5", "1e0", "1Ki", "2.", ".5", "-1", "1n", "12Ei", "", "x", "1e3k"]
_LABELS = [MODEL, "nvidia.com/gpu.product", "kubernetes.io/hostname", "zone", "disk"]
_MODELS = [
    "Tesla K80", "Tesla P100", "Tesla-K80", "tesla_p100", "Tesla-P100-PCIE-16GB", "GTX 1080",
    "GeForce GTX 1080 Ti", "Tesla M99", "ssd", "",
]  # fmt: skip
_HOST_PATHS = [
    "/usr/lib/nvidia-375", "/usr/lib/nvidia-375/bin", "/usr/lib64/nvidia/libcuda.so.1",
    "/var/lib/nvidia-docker/volumes/nvidia_driver/387.26", "/usr/local/nvidia", "/data",
]  # fmt: skip
_MOUNT_PATHS = ["/usr/lib/nvidia", "/usr/local/nvidia", "/usr/local/nvidia/bin", "/data", "/opt/x"]
_NAMES = ["a", "b", "main", "side-car", "x1"]
_DEAD_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": [""],
    "scheduler.alpha.kubernetes.io/name": ["default-scheduler", "other"],
    "seccomp.security.alpha.kubernetes.io/pod": ["runtime/default"],
    "security.alpha.kubernetes.io/sysctls": ["kernel.shm_rmid_forced=1"],
    "example.com/owner": ["a/b~c", "", "\u00e9"],
}
_TOLERATION = [
    {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    {"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists"},
]


def any_pods() -> st.SearchStrategy[Json]:
    """Draw pods with any field of the schema; hardly one is wholly valid."""
    return _pods(_any_value)


def likely_pods() -> st.SearchStrategy[Json]:
    """Draw pods that the API server mostly accepts, once the legacy parts are repaired."""
    return _pods(_likely_value).map(_made_consistent)


@st.composite
def _pods(draw: st.DrawFn, value: Callable[[str, str, Schema], Strategy]) -> Json:
    spec = draw(_an_object(_CORE + "PodSpec", value))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
    if draw(st.booleans()):
        pod["metadata"]["annotations"] = draw(_annotations(value))
    if draw(st.sampled_from([True] * 7 + [False])):  # the others are none of our business
        containers = spec.get("containers")
        chosen = draw(st.sampled_from(containers)) if containers else None
        if isinstance(chosen, dict):
            amount = draw(st.sampled_from(_WHOLE))
            resources = chosen.setdefault("resources", {})
            section = draw(st.sampled_from(["limits", "limits", "requests"]))
            resources.setdefault(section, {})[draw(st.sampled_from([ALPHA, ALPHA, NVIDIA]))] = (
                amount
            )
    return pod


@cache
def _definitions() -> dict[str, Schema]:
    return stored()


@cache
def _an_object(name: str, value: Callable[[str, str, Schema], Strategy]) -> Strategy:
    """Draw an object of this definition: its required fields and a few others."""
    schema = _definitions()[name]
    fields: Mapping[str, Schema] = schema.get("properties", {})
    short = name.rpartition(".")[2]
    must = [*schema.get("required", []), *_ALWAYS.get(short, [])]
    if value is _likely_value and short == "NodeSelectorRequirement":
        must.append("values")
    may = sorted(set(fields) - set(must))
    if value is _likely_value:
        may = [field for field in may if field in _LIKELY_FIELDS.get(short, may)]

    @st.composite
    def draw_one(draw: st.DrawFn) -> Json:
        chosen = []
        if may:
            fewest = st.lists(st.sampled_from(may), unique=True, max_size=_MOST_OPTIONAL_FIELDS)
            chosen = draw(fewest)
        return {field: draw(value(short, field, fields[field])) for field in [*must, *chosen]}

    return draw_one()


def _any_value(owner: str, field: str, schema: Schema) -> Strategy:
    """Draw a value of a field: mostly one that matters to GPU pods, else anything of its type."""
    typed = _typed(schema, _any_value)
    known = _known(owner, field, odd=True)
    return st.one_of(known, known, typed) if known is not None else typed


def _likely_value(owner: str, field: str, schema: Schema) -> Strategy:
    known = _known(owner, field, odd=False)
    return known if known is not None else _typed(schema, _likely_value)


def _typed(schema: Schema, value: Callable[[str, str, Schema], Strategy]) -> Strategy:
    """Draw what the schema allows."""
    if "allOf" in schema:
        return _typed(schema["allOf"][0], value)
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        definition = _definitions()[name]
        if "properties" in definition:
            return st.deferred(lambda: _an_object(name, value))
        return _typed(definition, value)
    if "oneOf" in schema:
        return st.one_of(*(_typed(each, value) for each in schema["oneOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    return _of_type(schema, value)


def _of_type(schema: Schema, value: Callable[[str, str, Schema], Strategy]) -> Strategy:
    match schema.get("type"):
        case "array":
            return st.lists(_typed(schema["items"], value), max_size=3)
        case "object" if "additionalProperties" in schema:
            inner = _typed(schema["additionalProperties"], value)
            return st.dictionaries(st.sampled_from(_NAMES), inner, max_size=2)
        case "object":
            return st.builds(dict)
        case "boolean":
            return st.booleans()
        case "integer":
            bits = 63 if schema.get("format") == "int64" else 31
            return st.integers(0, 3) | st.integers(-(2**bits), 2**bits - 1)
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
    if schema.get("format") == "date-time":
        return st.just("2017-06-01T00:00:00Z")
    return st.sampled_from(_NAMES) | st.text(max_size=5)


def _known(owner: str, field: str, *, odd: bool) -> Strategy | None:
    """Draw a value that matters to GPU pods; `odd` ones are often refused."""
    amounts = st.sampled_from(_WHOLE + (_ODD if odd else []))
    if (owner, field) in _KNOWN:
        return _KNOWN[owner, field]
    if owner == "ResourceRequirements" and field in ("limits", "requests"):
        names = st.sampled_from(_RESOURCES if odd else _RESOURCES[:4])
        return st.dictionaries(names, amounts, max_size=2)
    if owner == "NodeSelectorRequirement" and field == "values":
        return st.lists(st.sampled_from(_MODELS), min_size=0 if odd else 1, max_size=3)
    if owner == "NodeSelectorRequirement" and field == "operator" and not odd:
        return st.sampled_from(["In", "NotIn"])
    return None if odd else _KNOWN_LIKELY.get((owner, field))


_names = st.sampled_from(_NAMES)
_KNOWN: dict[tuple[str, str], Strategy] = {
    ("PodSpec", "nodeSelector"): st.dictionaries(
        st.sampled_from(_LABELS), st.sampled_from(_MODELS), max_size=2
    ),
    ("NodeSelectorRequirement", "key"): st.sampled_from(_LABELS),
    ("HostPathVolumeSource", "path"): st.sampled_from(_HOST_PATHS),
    ("Volume", "name"): _names,
    ("VolumeMount", "name"): _names,
    ("VolumeMount", "mountPath"): st.sampled_from(_MOUNT_PATHS),
    ("EnvVar", "name"): st.sampled_from(["LD_LIBRARY_PATH", "PATH", "NVIDIA_VISIBLE_DEVICES", "X"]),
    ("EnvVar", "value"): st.sampled_from(
        [
            "",
            "/usr/lib/nvidia",
            "/usr/lib/nvidia:/opt/x",
            "/usr/local/nvidia/bin:/bin",
            "$(X):/data",
        ]
    ),
    ("Toleration", "key"): st.sampled_from([NVIDIA, "dedicated", "zone"]),
}


@st.composite
def _volume(draw: st.DrawFn) -> Json:
    plain: list[Json] = [{"emptyDir": {}}, {"configMap": {"name": "settings"}}]
    stale: list[Json] = [{"hostPath": {"path": path}} for path in _HOST_PATHS]
    return {"name": draw(_names), **draw(st.sampled_from(plain + stale))}


_probe = st.fixed_dictionaries({"httpGet": st.just({"path": "/", "port": 8080})})
# What the schema cannot say, but validation requests.
_KNOWN_LIKELY: dict[tuple[str, str], Strategy] = {
    ("PodSpec", "containers"): st.deferred(
        lambda: st.lists(_an_object(_CORE + "Container", _likely_value), min_size=1, max_size=3)
    ),
    ("PodSpec", "initContainers"): st.deferred(
        lambda: st.lists(_an_object(_CORE + "Container", _likely_value), max_size=2)
    ),
    ("PodSpec", "volumes"): st.deferred(lambda: st.lists(_volume(), max_size=3)),
    ("PodSpec", "hostname"): _names,
    ("PodSpec", "subdomain"): _names,
    ("PodSpec", "schedulerName"): st.sampled_from(["default-scheduler", "other"]),
    ("PodSpec", "restartPolicy"): st.sampled_from(["Always", "OnFailure", "Never"]),
    ("PodSpec", "terminationGracePeriodSeconds"): st.integers(0, 60),
    ("PodSpec", "activeDeadlineSeconds"): st.integers(1, 600),
    ("PodSpec", "tolerations"): st.lists(st.sampled_from(_TOLERATION), max_size=2),
    ("PodSpec", "dnsPolicy"): st.sampled_from(["ClusterFirst", "Default"]),
    ("PodSpec", "schedulingGates"): st.just([{"name": "example.com/gate"}]),
    ("PodSpec", "imagePullSecrets"): st.just([{"name": "secret"}]),
    ("PodSpec", "hostAliases"): st.just([{"ip": "10.0.0.1", "hostnames": ["a.example.com"]}]),
    ("PodSpec", "topologySpreadConstraints"): st.just(
        [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]
    ),
    ("Affinity", "podAffinity"): st.just({}),
    ("Affinity", "podAntiAffinity"): st.just({}),
    ("NodeSelector", "nodeSelectorTerms"): st.deferred(
        lambda: st.lists(
            _an_object(_CORE + "NodeSelectorTerm", _likely_value), min_size=1, max_size=2
        )
    ),
    ("PreferredSchedulingTerm", "weight"): st.integers(1, 100),
    ("Container", "image"): st.sampled_from(["example.com/a:1", "nvidia/cuda:9.0-devel"]),
    ("Container", "name"): _names,
    ("Container", "command"): st.lists(_names, max_size=2),
    ("Container", "ports"): st.just([{"containerPort": 8888, "name": "tf"}]),
    ("Container", "livenessProbe"): _probe,
    ("Container", "readinessProbe"): _probe,
    ("Container", "lifecycle"): st.just({"preStop": {"exec": {"command": ["true"]}}}),
    ("Container", "securityContext"): st.fixed_dictionaries({"privileged": st.booleans()}),
    ("Container", "workingDir"): st.sampled_from(["/", "/opt"]),
    ("Container", "terminationMessagePath"): st.just("/dev/termination-log"),
    ("Container", "env"): st.deferred(
        lambda: st.lists(
            st.fixed_dictionaries(
                {"name": _KNOWN["EnvVar", "name"], "value": _KNOWN["EnvVar", "value"]}
            ),
            max_size=2,
        )
    ),
    ("PodSecurityContext", "runAsUser"): st.integers(0, 65535),
    ("PodSecurityContext", "fsGroup"): st.integers(0, 65535),
}
_ALWAYS = {"Container": ["image", "name"], "PodSpec": ["containers"]}
_LIKELY_FIELDS: dict[str, list[str]] = {
    "PodSpec": [
        *(field for owner, field in _KNOWN_LIKELY if owner == "PodSpec"),
        "affinity", "automountServiceAccountToken", "enableServiceLinks", "hostIPC", "hostNetwork",
        "nodeSelector", "securityContext",
    ],
    "Container": [
        *(field for owner, field in _KNOWN_LIKELY if owner == "Container"),
        "args", "imagePullPolicy", "resources", "stdin", "terminationMessagePolicy", "tty",
        "volumeMounts",
    ],
    "ResourceRequirements": ["limits", "requests"],
    "NodeSelectorTerm": ["matchExpressions"],
    "PodSecurityContext": ["runAsUser", "fsGroup"],
    "VolumeMount": ["readOnly"],
}  # fmt: skip


@st.composite
def _annotations(draw: st.DrawFn, value: Callable[[str, str, Schema], Strategy]) -> dict[str, str]:
    """Draw annotations: the affinity of 1.2-1.7, and others that have died since."""
    chosen = draw(st.lists(st.sampled_from(sorted(_DEAD_ANNOTATIONS)), unique=True, max_size=2))
    found = {key: draw(st.sampled_from(_DEAD_ANNOTATIONS[key])) for key in chosen}
    if draw(st.booleans()):
        affinity = draw(_an_object(_CORE + "Affinity", value))
        found[AFFINITY] = json.dumps(affinity) + draw(st.sampled_from(["", "", "", "}"]))
    return found


def _made_consistent(pod: Json) -> Json:
    """Mend what one part of a pod demands of another: unique names, volumes that are there."""
    spec = pod["spec"]
    volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
    init_containers = spec.get("initContainers", [])
    for number, container in enumerate([*init_containers, *spec["containers"]]):
        container["name"] += f"-{number}"
        if "env" in container:
            container["env"] = _unique(container["env"], "name")
        if "volumeMounts" in container:
            container["volumeMounts"] = _unique(container["volumeMounts"], "mountPath")
        for mount in container.get("volumeMounts", []):
            path = _HOST_PATHS[_NAMES.index(mount["name"])]
            volumes.setdefault(mount["name"], {"name": mount["name"], "hostPath": {"path": path}})
        if spec.get("hostNetwork"):
            container.pop("ports", None)
    for container in init_containers:
        for field in ("livenessProbe", "readinessProbe", "lifecycle"):
            container.pop(field, None)
    if volumes:
        spec["volumes"] = list(volumes.values())
    return pod


def _unique(items: list[Json], key: str) -> list[Json]:
    return list({item[key]: item for item in items}.values())
