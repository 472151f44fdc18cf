"""Random GPU pods, each with one to four nodes of its own, of every kind that a scheduler judges.

A pod is kept to its own nodes, so that all pods of a batch can be judged at once and on empty
nodes, in one of several ways: by a label in nodeSelector or in each affinity term, by the name or
a label of one node, or by a resource name that only its own nodes offer. The last leaves its
selectors free to match what they like.

The scheduler sees the nodes as they are at last. What GPU301 sees is drawn, too: the very same,
or nodes that lost devices or have a taint that goes, that join step by step (also beside one of
their kind whose driver has crashed), that went away for a while, a pool at zero that the settings
declare, or a group of an autoscaler that can grow and whose nodes were sliced otherwise, or broken.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.cluster.nodes import gpu_node
from webhook.core.settings import Pool, Taint
from webhook.kube.quantity import parse, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.cluster.client import Json

OWN = "example.com/own"  # the label that keeps a pod to its nodes
GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
NAMES = (GPU, GPU, GPU, GPU, SHARED, "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb.shared")
_SEEN = "nvidia.com/mig-7g.40gb"  # that no pod requests
_TYPE = "node.kubernetes.io/instance-type"
NEW, NOW = "2026-01-01T00:00:00Z", 1767225660.0  # a minute later
OVERHEAD = "overhead"  # the runtime class that adds a GPU, a selector and a toleration

_VALUES: dict[str, tuple[str, ...]] = {
    "zone": ("a", "b", "c"),
    "nvidia.com/gpu.product": ("Tesla-K80", "Tesla-A100", "Tesla-T4"),
    "gpu-memory": ("0", "007", "16", "40", "80", "9223372036854775807", "9223372036854775808"),
    "slots": ("1", "2", "3", "4", "1.5", "0x4", "many", "1_000", ""),
    "disk": ("", "ssd"),
    "Team": ("ML", "ml", "x"),
}
_BOUNDS = ("0", "1", "2", "3", "16", "0040", "9223372036854775806", "9223372036854775807")
_EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")
_TAINTS: dict[str, tuple[str, ...]] = {
    GPU: ("present", "true", ""),
    "dedicated": ("ml", "web"),
    "sku": ("gpu",),
}
# These come and go by themselves: a pod that they keep away is not told that it can never run.
_PASSING = ("node.kubernetes.io/unreachable", "ToBeDeletedByClusterAutoscaler")


# Agents take these away themselves, or they go with the node.
_STARTUP = (
    "node.cilium.io/agent-not-ready",
    "ebs.csi.aws.com/agent-not-ready",
    "efs.csi.aws.com/agent-not-ready",
    "cni.istio.io/not-ready",
    "node.cluster.x-k8s.io/uninitialized",
    "cloud.google.com/impending-node-termination",
    "karpenter.sh/disrupted",
)
_OVERFLOWS = ("9223372036854775808", "10E", "100E", "1e19", "9000P")


@dataclass(frozen=True)
class Drawn:
    """One pod with its nodes. `passing` is True where what keeps it away may go by itself.

    `seen` are the nodes as GPU301 sees them, at one moment after another. It is `unsure` where it
    cannot know for certain, as of a node that joins: then it may miss a pod that can never run.
    """

    pod: Json
    nodes: tuple[Json, ...]
    passing: bool
    kind: str
    seen: tuple[tuple[Json, ...], ...]
    pools: tuple[Pool, ...] = ()
    grows: str = ""  # a group of cluster-autoscaler

    @property
    def unsure(self) -> bool:
        return self.kind in _UNSURE


_KINDS = ("as it is", "lost", "tainted", "joining", "gone", "pool", "group")
_WEIGHTS = (40, 20, 10, 10, 10, 10, 10)
_UNSURE = ("joining", "gone", "pool", "group")


def draw(random: Random, number: int, batch: str) -> Drawn:
    """Draw the pod of this number; the numbers of a batch must differ."""
    own_name = f"nvidia.com/mig-{number}g.1gb" if random.random() < 0.25 else ""
    passing = random.random() < 0.03
    nodes = tuple(
        _node(random, f"n{number}-{position}", number, batch, own_name, passing=passing)
        for position in range(random.randint(1, 4))
    )
    pod = _pod(random, number, nodes, own_name)
    (kind,) = random.choices(_KINDS, _WEIGHTS)
    if kind == "pool":
        pools = tuple(_as_pool(random, node) for node in nodes)
        return Drawn(pod, nodes, passing, kind, ((),), tuple(each for each in pools if each.gpus))
    grows = f"n{number}" if kind == "group" else ""
    return Drawn(pod, nodes, passing, kind, tuple(_moments(random, kind, nodes)), grows=grows)


def _moments(random: Random, kind: str, nodes: tuple[Json, ...]) -> Iterator[tuple[Json, ...]]:
    """What a list of the nodes gives at one moment after another."""
    match kind:
        case "lost":
            yield nodes
            for _ in range(random.randint(1, 3)):  # some devices come back and others are lost
                yield tuple(_with_losses(random, node) for node in nodes)
        case "tainted":
            yield tuple(_with_a_taint(random, node) for node in nodes)
        case "joining":
            yield _with_a_twin(random, tuple(_in_part(random, node) for node in nodes))
        case "group":
            yield tuple(_in_another_shape(random, node) for node in nodes)
        case "gone":
            yield nodes
            yield tuple(node for node in nodes if random.random() < 0.5)
        case _:
            yield nodes


def _with_losses(random: Random, node: Json) -> Json:
    """Devices that are not healthy, a plugin that is away, GPU labels that GFD has dropped."""
    node = deepcopy(node)
    amounts = dict(node["status"]["allocatable"])
    for name in [each for each in amounts if each.startswith("nvidia.com/")]:
        if amounts[name] == "0":
            continue
        match random.randint(0, 3):
            case 0:
                amounts[name] = random.choice(("0", "1", "3"))
            case 1:
                del amounts[name]
    capacity = node["status"]["capacity"] if random.random() < 0.5 else amounts
    node["status"] |= {"allocatable": amounts, "capacity": capacity}
    for key in ("nvidia.com/gpu.product", "gpu-memory"):
        if random.random() < 0.2:
            node["metadata"]["labels"].pop(key, None)
    return node


def _with_a_taint(random: Random, node: Json) -> Json:
    taint = {"key": random.choice(_STARTUP), "effect": random.choice(_EFFECTS)}
    return {**node, "spec": {**node["spec"], "taints": [*node["spec"]["taints"], taint]}}


def _in_part(random: Random, node: Json) -> Json:
    """A node that was made a minute ago: some labels and resources are still to come."""
    node = _with_a_taint(random, node) if random.random() < 0.3 else deepcopy(node)
    if random.random() < 0.3:
        return node
    labels = node["metadata"]["labels"]
    amounts = node["status"]["allocatable"]
    node["metadata"] |= {
        "labels": {key: value for key, value in labels.items() if random.random() < 0.6},
        "creationTimestamp": NEW,
    }
    shown = {key: value for key, value in amounts.items() if random.random() < 0.5}
    node["status"] = {**node["status"], "capacity": shown, "allocatable": shown}
    return node


def _with_a_twin(random: Random, nodes: tuple[Json, ...]) -> tuple[Json, ...]:
    """The same, or beside a node of their kind that has settled and whose driver has crashed."""
    kind = random.choice(("", "big.large", "p4d.24xlarge"))
    if not kind:
        return nodes
    for node in nodes:
        node["metadata"]["labels"] |= {_TYPE: kind}
    twin = deepcopy(nodes[0])
    twin["metadata"] = {"name": f"{nodes[0]['metadata']['name']}-twin", "labels": {_TYPE: kind}}
    amounts = {"cpu": "16"} if kind.startswith("p4d") else {"cpu": "16", GPU: "0"}
    twin["status"] = {**twin["status"], "capacity": amounts, "allocatable": amounts}
    return (*nodes, twin)


def _in_another_shape(random: Random, node: Json) -> Json:
    """Another node of the group, from before it was sliced anew, or without its driver."""
    node = deepcopy(node)
    shape = random.choice(({GPU: "0"}, {}, {_SEEN: "7"}, {_SEEN: "0"}))
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", **shape}
    node["status"] |= {"capacity": amounts, "allocatable": amounts}
    metadata = node["metadata"]
    metadata["name"] += "-before"
    own = {"kubernetes.io/hostname": metadata["name"], "rack": f"r-{metadata['name']}"}
    kept = {k: v for k, v in metadata["labels"].items() if k != "nvidia.com/gpu.product"}
    metadata["labels"] = {**kept, **own}
    return node


def _as_pool(random: Random, node: Json) -> Pool:
    """The settings of a pool that has such nodes, with some of their labels."""
    labels = {k: v for k, v in node["metadata"]["labels"].items() if random.random() < 0.6}
    amounts = {
        name: whole(parse(text) or Fraction(0))
        for name, text in node["status"]["allocatable"].items()
        if name.startswith("nvidia.com/")
    }
    taints = (
        Taint(each["key"], each.get("value", ""), each["effect"]) for each in node["spec"]["taints"]
    )
    gpus = {name: amount for name, amount in amounts.items() if amount}
    return Pool(node["metadata"]["name"], gpus, 1, labels, tuple(taints))


def _node(
    random: Random, name: str, number: int, batch: str, own_name: str, *, passing: bool
) -> Json:
    labels = {
        key: random.choice(values) for key, values in _VALUES.items() if random.random() < 0.6
    }
    labels |= {OWN: f"p{number}", "batch": batch, "rack": f"r-{name}"}
    labels |= {"sandbox": "yes"} if random.random() < 0.8 else {}
    node = gpu_node(name, 0, labels=labels, taints=_taints(random))
    offered = {random.choice(NAMES): _amount(random) for _ in range(random.randint(1, 4))}
    offered |= {own_name: _amount(random)} if own_name else {}
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", **offered}
    node["status"] |= {"capacity": amounts, "allocatable": amounts}
    if passing:
        if random.random() < 0.5:
            node["spec"]["unschedulable"] = True
        else:
            taint = {"key": random.choice(_PASSING), "effect": random.choice(_EFFECTS)}
            node["spec"]["taints"].append(taint)
    return node


def _amount(random: Random) -> str:
    return random.choice(("0", "4", "8", "8", "8", "16", "16", "16", "4k", "8000m"))


def _taints(random: Random) -> list[Json]:
    found: dict[tuple[str, str], Json] = {}  # a node has no two taints of one key and effect
    for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
        key = random.choice(list(_TAINTS))
        effect, value = random.choice(_EFFECTS), random.choice(_TAINTS[key])
        found[key, effect] = {"key": key, "effect": effect} | ({"value": value} if value else {})
    return list(found.values())


def _pod(random: Random, number: int, nodes: tuple[Json, ...], own_name: str) -> Json:
    """Draw a pod whose author has one of the nodes in mind, more or less: else few could run."""
    node = random.choice(nodes)
    offered = [name for name in node["status"]["allocatable"] if "nvidia.com/" in name]
    names = (*offered * 4, random.choice(NAMES))
    inits = range(random.choice((0, 0, 0, 1, 2, 3)))
    spec: Json = {
        "containers": [_container(random, f"c{i}", names) for i in range(random.randint(1, 3))],
        "initContainers": [_init(random, f"i{i}", names) for i in inits],
        "tolerations": _tolerations(random, node["spec"]["taints"]),
        "automountServiceAccountToken": False,
    }
    _ask(spec["containers"][0], own_name or random.choice(names), random.choice((1, 1, 2, 4)))
    ways: tuple[Any, ...] = (_by_label, _by_label, _by_terms, _by_name, _by_node_label)
    keep = _free if own_name else random.choice(ways)
    keep(random, spec, f"p{number}", node["metadata"])
    if random.random() < 0.05:
        spec["runtimeClassName"] = OVERHEAD
    metadata = {"name": f"p{number}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(random: Random, name: str, names: tuple[str, ...]) -> Json:
    container: Json = {"name": name, "image": "example.com/image:1", "resources": {}}
    for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
        _ask(container, random.choice(names), random.choice((0, 1, 1, 1, 1, 2, 2, 4)))
    if random.random() < 0.01:
        container["resources"] = {"limits": {random.choice(names): random.choice(_OVERFLOWS)}}
    return container


def _ask(container: Json, name: str, amount: int) -> None:
    """Ask as people do: a limit, which is copied, or limit and request."""
    resources = container["resources"]
    resources.setdefault("limits", {})[name] = str(amount)
    if amount % 2:
        resources.setdefault("requests", {})[name] = f"{amount}000m"
    else:
        resources.get("requests", {}).pop(name, None)


def _init(random: Random, name: str, names: tuple[str, ...]) -> Json:
    container = _container(random, name, names)
    return container | ({"restartPolicy": "Always"} if random.random() < 0.4 else {})


def _tolerations(random: Random, taints: list[Json]) -> list[Json]:
    met = [_toleration(random, each) for each in taints if random.random() < 0.85]
    others = [_toleration(random) for _ in range(random.choice((0, 0, 1, 2)))]
    return random.sample(met + others, len(met + others))


def _toleration(random: Random, taint: Json | None = None) -> Json:
    if random.random() < 0.05:
        return {"operator": "Exists"} | _some(random, effect=_EFFECTS)
    key = taint["key"] if taint else random.choice([*_TAINTS, "other"])
    effects = (taint["effect"],) if taint else _EFFECTS
    toleration: Json = {"key": key} | _some(random, effect=effects)
    if random.random() < 0.6:
        return toleration | {"operator": "Exists"}
    values = (taint.get("value", ""),) if taint else _TAINTS.get(key, ("x",))
    return toleration | {"value": random.choice(values)} | _some(random, operator=("Equal",))


def _some(random: Random, **members: tuple[str, ...]) -> Json:
    return {key: random.choice(v) for key, v in members.items() if random.random() < 0.6}


def _by_label(random: Random, spec: Json, own: str, node: Json) -> None:
    spec["nodeSelector"] = {OWN: own} | _selector(random, node)
    if random.random() < 0.5:
        spec["affinity"] = _affinity(_terms(random, node))


def _by_terms(random: Random, spec: Json, own: str, node: Json) -> None:
    terms = _terms(random, node)
    for term in terms:
        if term:  # an empty one matches nothing, whatever stands beside it
            here = {"key": OWN, "operator": "In", "values": [own, "other"]}
            term.setdefault("matchExpressions", []).append(here)
    spec["affinity"] = _affinity(terms)


def _by_name(random: Random, spec: Json, _: str, node: Json) -> None:
    terms = _terms(random, node)
    for term in terms:
        if term:
            here = {"key": "metadata.name", "operator": "In", "values": [node["name"]]}
            term.setdefault("matchFields", []).append(here)
    spec["affinity"] = _affinity(terms)


def _by_node_label(random: Random, spec: Json, _: str, node: Json) -> None:
    key = random.choice(("kubernetes.io/hostname", "rack"))
    spec["nodeSelector"] = {key: node["labels"][key]}
    if random.random() < 0.5:
        spec["affinity"] = _affinity(_terms(random, node))


def _free(random: Random, spec: Json, _: str, node: Json) -> None:
    spec["nodeSelector"] = _selector(random, node)
    if random.random() < 0.7:
        spec["affinity"] = _affinity(_terms(random, node))


def _selector(random: Random, node: Json) -> dict[str, str]:
    keys = random.sample([*_VALUES, "nowhere"], random.choice((0, 0, 0, 1, 2)))
    return {key: _value(random, key, node) for key in keys}


def _value(random: Random, key: str, node: Json) -> str:
    """The value that the node has, or any other."""
    if key in node["labels"] and random.random() < 0.8:
        return str(node["labels"][key])
    return random.choice(_VALUES.get(key, ("x",)))


def _affinity(terms: list[Json]) -> Json:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    wish = {"weight": 1, "preference": {"matchExpressions": [_expression("nowhere", "Exists")]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}
    return {"nodeAffinity": required | preferred}


def _terms(random: Random, node: Json) -> list[Json]:
    return [_term(random, node) for _ in range(random.choice((1, 1, 2, 3)))]


def _term(random: Random, node: Json) -> Json:
    if random.random() < 0.03:
        return {}
    count = random.choice((1, 1, 1, 2, 3))
    term: Json = {"matchExpressions": [_drawn_expression(random, node) for _ in range(count)]}
    if random.random() < 0.15:
        operator = random.choice(("In", "NotIn"))
        name = random.choice((node["name"], "n0-0", f"{node['name']}0"))
        term["matchFields"] = [_expression("metadata.name", operator, name)]
    return term


def _drawn_expression(random: Random, node: Json) -> Json:
    operator = random.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in {"Gt", "Lt"}:
        key = random.choice(("gpu-memory", "slots"))
        return _expression(key, operator, random.choice(_BOUNDS))
    there = [key for key in _VALUES if key in node["labels"]]
    absent = [key for key in (*_VALUES, "nowhere") if key not in there]
    wanted = absent if operator in {"NotIn", "DoesNotExist"} else there
    key = random.choice((*wanted * 3, *_VALUES, "nowhere"))
    if operator in {"Exists", "DoesNotExist"}:
        return _expression(key, operator)
    values = {_value(random, key, node) for _ in range(random.randint(1, 3))}
    return _expression(key, operator, *sorted(values))


def _expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
