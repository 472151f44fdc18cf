"""Workloads: where the pod templates are in each kind of object, and how many pods they create."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from webhook.capacity.requests import gpu_requests
from webhook.core.settings import CustomKind, Settings
from webhook.kube import pointer
from webhook.kube.canonical import canonical
from webhook.kube.pod import Pod, Raw, as_items, as_map, controller_of
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.core.rule import Context


_TEMPLATE = Path(("spec", "template"))

_JOB_TEMPLATE = Path(("spec", "jobTemplate", "spec", "template"))

# The current kinds with pod templates: group, kind, plural, and the place of the template. Owners
# come before the kinds that they create.
BUILT_IN: tuple[tuple[str, str, str, Path], ...] = (
    ("apps", "Deployment", "deployments", _TEMPLATE),
    ("apps", "ReplicaSet", "replicasets", _TEMPLATE),
    ("apps", "StatefulSet", "statefulsets", _TEMPLATE),
    ("apps", "DaemonSet", "daemonsets", _TEMPLATE),
    ("batch", "CronJob", "cronjobs", _JOB_TEMPLATE),
    ("batch", "Job", "jobs", _TEMPLATE),
    ("", "ReplicationController", "replicationcontrollers", _TEMPLATE),
    ("", "PodTemplate", "podtemplates", Path(("template",))),
)
# Versions do not matter: removed versions have the template in the same place.
TEMPLATES: dict[str, Path] = {
    **{kind: at for _, kind, _, at in BUILT_IN},
    "Pod": ROOT,
    "PetSet": _TEMPLATE,
    "ScheduledJob": _JOB_TEMPLATE,
}

_CONTROLLERS = {
    ("", "ReplicationController"),
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
}
_GROUPS = ("", "apps", "batch", "extensions")  # groups of the kinds above, at any time

_REPLICA_SPECS = "/spec/replicaSpecs/*/template"  # of v1alpha1, the first version of these kinds
_FIRST_SPECS = (_REPLICA_SPECS, "/spec/replica_specs/*/template")  # and before it
_NO_LIMIT = 2**31 - 1
_RAY = ("headGroupSpec/template", "workerGroupSpecs/*/template")

# Custom kinds that are known without settings; the settings may override them.
READY_MADE: tuple[CustomKind, ...] = (
    CustomKind("TFJob", "kubeflow.org", ("/spec/tfReplicaSpecs/*/template", _REPLICA_SPECS)),
    CustomKind(
        "PyTorchJob", "kubeflow.org", ("/spec/pytorchReplicaSpecs/*/template", _REPLICA_SPECS)
    ),
    CustomKind("MPIJob", "kubeflow.org", ("/spec/mpiReplicaSpecs/*/template", "/spec/template")),
    # The same operators in their first year, before Kubeflow.
    CustomKind("TfJob", "tensorflow.org", _FIRST_SPECS),
    CustomKind("TfJob", "mlkube.io", _FIRST_SPECS),
    CustomKind("MXJob", "kubeflow.org", ("/spec/mxReplicaSpecs/*/template", _REPLICA_SPECS)),
    CustomKind("RayCluster", "ray.io", tuple(f"/spec/{part}" for part in _RAY)),
    CustomKind("RayJob", "ray.io", tuple(f"/spec/rayClusterSpec/{part}" for part in _RAY)),
    CustomKind("Job", "batch.volcano.sh", ("/spec/tasks/*/template",)),
    CustomKind("JobSet", "jobset.x-k8s.io", ("/spec/replicatedJobs/*/template/spec/template",)),
    CustomKind(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io",
        ("/spec/leaderWorkerTemplate/leaderTemplate", "/spec/leaderWorkerTemplate/workerTemplate"),
    ),
)


def objects(document: object, at: Path = ROOT) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The objects in a document with their paths: itself, or the items of a List.

    A list of nothing but whole objects, as other programs read it, is like a List.
    """
    if isinstance(document, list) and all(map(_is_whole, document)):
        for position, item in enumerate(document):
            yield from objects(item, at / position)
    obj = as_map(document)
    if str(obj.get("kind", "")).endswith("List") and isinstance(obj.get("items"), list):
        for position, item in as_items(obj["items"]):
            yield from objects(item, at / "items" / position)
    elif obj:
        yield at, obj


def _is_whole(item: object) -> bool:
    return all(isinstance(as_map(item).get(name), str) for name in ("apiVersion", "kind"))


def template_at(obj: dict[str, Any]) -> Path | None:
    """The place of the pod template in this object; None if its kind has none or it is missing."""
    at = TEMPLATES.get(str(obj.get("kind", "")))
    if at is None:
        return None
    here: Any = obj
    for token in at:
        here = here.get(token) if isinstance(here, dict) else None
    return at if isinstance(here, dict) else None


def group_of(obj: Mapping[str, Any]) -> str:
    """The API group of the object; empty for the core group."""
    return str(obj.get("apiVersion", "")).rpartition("/")[0]


def is_built_in(obj: Mapping[str, Any]) -> bool:
    """Whether the kind of the object is built into Kubernetes."""
    return str(obj.get("kind", "")) in TEMPLATES and group_of(obj) in _GROUPS


def has_whole_templates(obj: Mapping[str, Any]) -> bool:
    """Whether the templates of this kind are known to have all fields that pods have."""
    return is_built_in(obj) or _ready_made(str(obj.get("kind")), group_of(obj) or "-") is not None


def templates_of(obj: Raw, settings: Settings) -> list[Path]:
    """The places of the pod templates in this object; a Pod is its own template."""
    custom = _custom(obj, settings)
    if custom is not None:
        found = (at for each in custom.templates for at in _places(obj, tokens(each), ROOT))
        return list(dict.fromkeys(found))
    at = template_at(obj) if group_of(obj) in _GROUPS else None
    return [] if at is None else [at]


def replicas_of(obj: Raw, at: Path, settings: Settings) -> int | None:
    """How many pods of this template run at once; None if the object does not show it.

    A DaemonSet has as many as there are nodes, and a PodTemplate creates none itself. A suspended
    workload has none.
    """
    if is_suspended(as_map(obj.get("spec"))):
        return 0
    custom = _custom(obj, settings)
    if custom is None:
        return _built_in_replicas(str(obj.get("kind", "")), _at(obj, at.parent))
    match custom.kind, custom.group:
        case "JobSet", "jobset.x-k8s.io":
            return _number(_at(obj, Path(at[:-3])), "replicas") * _pods_of_job(_at(obj, at.parent))
        case "LeaderWorkerSet", "leaderworkerset.x-k8s.io":
            return _number(_at(obj, ROOT / "spec"), "replicas") * _in_group(_at(obj, at.parent), at)
        case _, "ray.io":
            return 1 if at[-2] == "headGroupSpec" else _workers(_at(obj, at.parent))
        case _:
            return _number(_at(obj, at.parent), "replicas")


def gpus_of_workload(obj: Raw, settings: Settings) -> dict[str, int]:
    """The GPUs that all pods of this workload request, by resource name."""
    total: dict[str, int] = {}
    for at in templates_of(obj, settings):
        asked = gpu_requests(Pod(obj, at), settings)
        pods = replicas_of(obj, at, settings) if asked else None
        if pods:
            for name, amount in asked.items():
                total[name] = total.get(name, 0) + pods * amount
    return total


def template_changed(old: Raw, new: Raw, settings: Settings) -> bool:
    """Whether an update brings a new pod template.

    Not if pods are only scaled, or if a group is removed and others move to its position.
    """
    before = {canonical(_at(old, at)) for at in templates_of(old, settings)}
    return any(canonical(_at(new, at)) not in before for at in templates_of(new, settings))


def has_controller(obj: Mapping[str, Any]) -> bool:
    """Whether a controller created the object, and would revert changes of it."""
    return bool(controller_of(as_map(obj.get("metadata"))))


def around(cx: Context, obj: Raw) -> Context:
    """The context of the templates in this workload."""
    total = gpus_of_workload(obj, cx.settings)
    return replace(cx, template=True, workload=obj, workload_gpus=total)


def is_known_kind(kind: str, settings: Settings) -> bool:
    """Whether this is the name of a known kind that creates pods, or Pod itself."""
    custom = (*settings.workloads.kinds, *READY_MADE)
    return kind in TEMPLATES or any(each.kind == kind for each in custom)


def makes_pods(obj: Mapping[str, Any], settings: Settings) -> bool:
    """Whether objects of this kind and group create pods directly, not through other objects."""
    made_by = (group_of(obj), str(obj.get("kind", "")))
    return made_by in _CONTROLLERS or _custom(obj, settings) is not None


def custom_kinds(settings: Settings) -> tuple[CustomKind, ...]:
    """The configured kinds.

    A kind without templates gets those of the built-in definition with its name.
    """
    return tuple([_with_templates(each) for each in settings.workloads.kinds])


def _with_templates(kind: CustomKind) -> CustomKind:
    return kind if kind.templates else _ready_made(kind.kind, kind.group) or kind


tokens = lru_cache(maxsize=256)(pointer.tokens)  # those of custom kinds, in which a * is any token


def _custom(obj: Mapping[str, Any], settings: Settings) -> CustomKind | None:
    kind, group = obj.get("kind"), group_of(obj)
    for each in settings.workloads.kinds:
        if each.kind == kind and each.group in ("", group):
            return _with_templates(each)
    return _ready_made(str(kind), group) if group else None


def _ready_made(kind: str, group: str) -> CustomKind | None:
    for each in READY_MADE:
        if each.kind == kind and group in ("", each.group):
            return each
    return None


def _places(here: Any, rest: tuple[str, ...], at: Path) -> Iterator[Path]:
    """The places of the maps to which the tokens lead."""
    if not rest:
        if isinstance(here, dict):
            yield at
        return
    name, deeper = rest[0], rest[1:]
    steps: list[tuple[str | int, Any]] = []
    if isinstance(here, dict):
        steps = list(here.items()) if name == "*" else [(name, here.get(name))]
    elif isinstance(here, list):
        steps = [(n, each) for n, each in enumerate(here) if name in {"*", str(n)}]
    for step, there in steps:
        yield from _places(there, deeper, at / step)


def _at(obj: Raw, at: Path) -> Raw:
    """The map at this place, an empty one if there is none."""
    here: Any = obj
    for token in at:
        if isinstance(here, list) and isinstance(token, int) and token < len(here):
            here = here[token]
        else:
            here = as_map(here).get(str(token))
    return as_map(here)


def _built_in_replicas(kind: str, spec: Raw) -> int | None:
    match kind:
        case "Pod":
            return 1
        case "DaemonSet" | "PodTemplate":
            return None
        case "Job" | "CronJob" | "ScheduledJob":
            return _pods_of_job(spec)
        case _:
            return _number(spec, "replicas")


def is_suspended(spec: Raw) -> bool:
    """Whether no pods are created now: for Jobs, JobSets, and the kinds of Ray and Kubeflow."""
    return True in (spec.get("suspend"), as_map(spec.get("runPolicy")).get("suspend"))


def _workers(group: Raw) -> int:
    """The workers of a Ray group: KubeRay keeps their number between minimum and maximum."""
    if group.get("suspend") is True:
        return 0
    least, most = _number(group, "minReplicas", 0), _number(group, "maxReplicas", _NO_LIMIT)
    return min(max(_number(group, "replicas", 0), least), most) * _number(group, "numOfHosts")


def _pods_of_job(spec: Raw) -> int:
    """The pods that a Job runs at once: never more than its remaining completions."""
    if is_suspended(spec):  # in a CronJob
        return 0
    at_once = _number(spec, "parallelism")
    return min(at_once, _number(spec, "completions", at_once))


def _in_group(template: Raw, at: Path) -> int:
    """How many pods of this template are in one group: a leader, and size - 1 workers.

    Without a template of its own, the leader uses that of the workers.
    """
    if at[-1] == "leaderTemplate":
        return 1
    size = _number(template, "size")
    return max(size - 1, 0) if isinstance(template.get("leaderTemplate"), dict) else size


def _number(holder: Raw, member: str, default: int = 1) -> int:
    value = holder.get(member)
    return value if isinstance(value, int) and not isinstance(value, bool) else default
