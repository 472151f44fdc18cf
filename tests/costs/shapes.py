"""Objects that grow in one place: all that a tenant can write long into a pod or a template.

Each shape is a function of a number; twice the number is about twice the bytes. Test and bench
send them as pods, and the pods as templates of workloads, with settings and nodes that let every
rule do its work.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Raw = dict[str, Any]

LEGACY, MODERN, MIG = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu", "nvidia.com/mig-{}g.5gb"
MODEL = "alpha.kubernetes.io/nvidia-gpu-name"
PRODUCT = "nvidia.com/gpu.product"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
STALE = "/usr/lib/nvidia-{}"

SETTINGS = """
policy:
  rules: {GPU301: enforce, GPU303: enforce, GPU304: enforce}
  exceptions:
  - rules: [GPU301, GPU303, GPU304]
capacity:
  startupTaints: ["starting.example.com/*"]
  limits:
  - gpus: {nvidia.com/gpu: 4}
tolerations:
  taints: ["sku=gpu:NoSchedule"]
annotationSchedulers: [mine]
drivers:
  profile: host-path
  hostPath: {mounts: [{path: /usr/lib/nvidia-375, mountPath: /usr/lib/nvidia}]}
  remove: ["/opt/*old*driver*/lib"]
"""
REPAIRING = f"{SETTINGS}workloads: {{repair: true}}\n"


def container(name: str = "c", *, gpus: bool = True, **fields: Any) -> Raw:
    """A container that requests one GPU under the old name, or for none."""
    made: Raw = {"name": name, "image": "registry.example.com/training:1"}
    if gpus:
        made["resources"] = {"limits": {LEGACY: "1"}, "requests": {LEGACY: "1"}}
    return made | fields


def pod(
    *containers: Raw,
    annotations: Raw | None = None,
    metadata: Raw | None = None,
    **spec: Any,
) -> Raw:
    """A pod as the API server sends it; of one container if none is given."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": annotations or {}, **(metadata or {})},
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def _env(*values: tuple[str, str]) -> list[Raw]:
    return [{"name": name, "value": value} for name, value in values]


def _volumes(n: int, path: str) -> list[Raw]:
    return [{"name": f"v{i}", "hostPath": {"path": path.format(i)}} for i in range(n)]


def _mounts(n: int, path: str = "/m/{}") -> list[Raw]:
    return [{"name": f"v{i}", "mountPath": path.format(i)} for i in range(n)]


def _of_label(key: str, operator: str, *values: str) -> Raw:
    return {"key": key, "operator": operator, "values": list(values)}


def _term(*expressions: Raw) -> Raw:
    return {"matchExpressions": list(expressions)}


def _terms(n: int, key: str = "k{}", value: str = "v{}") -> list[Raw]:
    return [_term(_of_label(key.format(i), "In", value.format(i))) for i in range(n)]


def _required(terms: list[Raw]) -> Raw:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def _preferred(terms: list[Raw]) -> Raw:
    items = [{"weight": i % 100 + 1, "preference": each} for i, each in enumerate(terms)]
    return {"nodeAffinity": {PREFERRED: items}}


def _pod_terms(n: int, **fields: Any) -> list[Raw]:
    selector = {"matchLabels": {"app": "a"}}
    return [{"labelSelector": selector, "topologyKey": f"k{i}", **fields} for i in range(n)]


def _noted(noted: Raw, **spec: Any) -> Raw:
    """A pod with this affinity in the annotation."""
    return pod(annotations={AFFINITY: json.dumps(noted)}, **spec)


def _tolerations(n: int) -> list[Raw]:
    return [
        {"key": f"k{i}", "operator": "Equal", "value": "v", "effect": "NoSchedule"}
        for i in range(n)
    ]


def _tolerating(noted: list[Raw], **spec: Any) -> Raw:
    return pod(annotations={TOLERATIONS: json.dumps(noted)}, **spec)


def _stale(n: int, env: str, mounts: int = 1, target: str = "/old/{}", **fields: Any) -> Raw:
    """Mounts of a driver that is gone, and a search path that names them."""
    made = container(
        volumeMounts=[{"name": "v0", "mountPath": target.format(i)} for i in range(mounts)],
        env=_env(("LD_LIBRARY_PATH", env)),
    )
    del n
    return pod(made, volumes=_volumes(1, STALE), **fields)


def _migs(n: int, amount: str = "1", start: int = 0) -> Raw:
    return {MIG.format(i): amount for i in range(start, start + n)}


def _asking(limits: Raw, requests: Raw | None = None, **fields: Any) -> Raw:
    resources = {"limits": limits, "requests": limits if requests is None else requests}
    return container(resources=resources, **fields)


def _nested(depth: int, breadth: int) -> Raw:
    inner: Any = {}
    for _ in range(depth):
        inner = {"x": inner}
    return {f"d{i}": inner for i in range(breadth)}


def _numbers(n: int) -> list[Raw]:
    """Tolerations that are told apart by numbers of one remainder: they hash alike in Python."""
    prime = 2**61 - 1
    return [
        {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": i * prime}
        for i in range(1, n + 1)
    ]


BOMBS: dict[str, Callable[[int], Raw]] = {
    "ldpath": lambda n: _stale(n, ":".join([*(f"/e/{i}" for i in range(n)), "/old/0"])),
    "tolann2": lambda n: _tolerating(
        _tolerations(n), tolerations=[{**each, "effect": "NoExecute"} for each in _tolerations(n)]
    ),
    "affjoin": lambda n: _noted(
        _required(_terms(n)[::-1]), affinity=_required([*_terms(n), *_terms(1, "other{}")])
    ),
    "stalevols": lambda n: pod(container(volumeMounts=_mounts(n)), volumes=_volumes(n, STALE)),
    "tolann": lambda n: _tolerating(_tolerations(n)),
    "affpref": lambda n: _noted(_preferred(_terms(n, "a{}")), affinity=_preferred(_terms(n))),
    "tolspec": lambda n: pod(_asking({LEGACY: "1", **_migs(n)}), tolerations=_tolerations(n)),
    "seccompcont": lambda n: pod(
        container(),
        *(container(f"c{i}", gpus=False) for i in range(n)),
        annotations={f"{SECCOMP}c{i}": "runtime/default" for i in range(n)},
    ),
    "guardcontainers": lambda n: pod(
        *(container(f"c{i}", gpus=False, env=_env((VISIBLE, "all"))) for i in range(n))
    ),
}

SHAPES: dict[str, Callable[[int], Raw]] = {
    **BOMBS,
    # containers and what is in them
    "containers that ask": lambda n: pod(*(container(f"c{i}") for i in range(n))),
    "init containers": lambda n: pod(initContainers=[container(f"i{i}") for i in range(n)]),
    "sidecars before init containers": lambda n: pod(
        initContainers=[
            *(
                _asking(_migs(1, start=i), name=f"s{i}", restartPolicy="Always")
                for i in range(n // 2)
            ),
            *(_asking({MODERN: "1"}, name=f"i{i}") for i in range(n // 2)),
        ]
    ),
    "ephemeral containers": lambda n: pod(
        ephemeralContainers=[
            container(f"e{i}", gpus=False, env=_env((VISIBLE, "all"))) for i in range(n)
        ]
    ),
    "containers of one name": lambda n: pod(
        *(container(env=_env((VISIBLE, "all"))) for _ in range(n)),
        annotations={f"{SECCOMP}c": "runtime/default"},
    ),
    "containers with a mount of the driver": lambda n: pod(
        *(container(f"c{i}", volumeMounts=_mounts(1, "/old")) for i in range(n)),
        volumes=_volumes(1, STALE),
    ),
    "a variable many times": lambda n: pod(
        container(), container("d", gpus=False, env=_env(*[(VISIBLE, "all")] * n))
    ),
    "a variable many times between others": lambda n: pod(
        container(),
        container(
            "d", gpus=False, env=_env(*[(VISIBLE, "all"), ("A", "b"), ("C", "d")] * (n // 3))
        ),
    ),
    "a variable many times beside GPUs": lambda n: pod(
        container(env=_env(*[(VISIBLE, "all"), ("A", "b")] * (n // 2)))
    ),
    "variables": lambda n: pod(container(env=_env(*((f"E{i}", "x") for i in range(n))))),
    "sources of variables": lambda n: pod(
        container(envFrom=[{"prefix": f"P{i}_", "configMapRef": {"name": "m"}} for i in range(n)])
    ),
    "search paths": lambda n: pod(
        container(
            volumeMounts=_mounts(1, "/old"),
            env=_env(*[("LD_LIBRARY_PATH", "/old/lib:/x")] * n),
        ),
        volumes=_volumes(1, STALE),
    ),
    "entries of a search path that go": lambda n: _stale(n, ":".join(["/old/0/lib"] * n)),
    "entries of a search path x mounts": lambda n: _stale(
        n, ":".join(f"/old/x/{i}" for i in range(n)), mounts=n
    ),
    "a long entry of a search path": lambda n: _stale(n, "/a" * 4 * n + ":/old/0/x", mounts=2),
    "a long entry below a mount": lambda n: _stale(n, "/old/0" + "/a" * 4 * n, mounts=2),
    "long entries and long mounts": lambda n: _stale(
        n, ":".join(["/a" * n + "/x"] * 8), mounts=8, target="/a" * n + "/{}"
    ),
    "mounts of the driver": lambda n: _stale(n, "/x", mounts=n),
    "mounts of a long host path": lambda n: pod(
        container(gpus=False, volumeMounts=[{**each, "name": "v"} for each in _mounts(n)]),
        container("d"),
        volumes=[{"name": "v", "hostPath": {"path": "/dev/" + "./" * 20 * n + "nvidia0"}}],
    ),
    "mounts of a path that is long": lambda n: pod(
        container(gpus=False, volumeMounts=[{**each, "name": "v"} for each in _mounts(n)]),
        container("d"),
        volumes=[{"name": "v", "hostPath": {"path": "/dev/nvidia" + "x" * 120 * n}}],
    ),
    "a long subPath": lambda n: pod(
        container(gpus=False, volumeMounts=[{**_mounts(1)[0], "subPath": "a/" * 20 * n}]),
        container("d"),
        volumes=_volumes(1, "/dev"),
    ),
    "volumes of one name": lambda n: pod(
        container(volumeMounts=[{**each, "name": "v"} for each in _mounts(n)]),
        volumes=[{**each, "name": "v"} for each in _volumes(n, STALE)],
    ),
    "volumes that go between others": lambda n: pod(
        container(volumeMounts=_mounts(n)),
        volumes=_volumes(n // 2, STALE)
        + [{"name": f"o{i}", "emptyDir": {}} for i in range(n // 2)],
    ),
    "volumes that are only told of": lambda n: pod(volumes=_volumes(n, "/opt/nvidia/{}")),
    "volumes of the settings' globs": lambda n: pod(
        volumes=_volumes(n, "/opt/my-old-driver{}/lib")
    ),
    "a long volume of the settings' globs": lambda n: pod(
        volumes=_volumes(1, "/opt/" + "old" * 16 * n)
    ),
    "devices": lambda n: pod(
        container(volumeMounts=_mounts(n)), volumes=_volumes(n, "/dev/nvidia{}")
    ),
    "volumes that we would add": lambda n: pod(
        *(container(f"c{i}") for i in range(n // 4)),
        volumes=[{"name": f"gpu-webhook-driver-{i}", "hostPath": {"path": "/x"}} for i in range(n)],
    ),
    "other volumes": lambda n: pod(
        container(volumeMounts=_mounts(n)),
        volumes=[{"name": f"v{i}", "emptyDir": {}} for i in range(n)],
    ),
    "resource names": lambda n: pod(_asking({LEGACY: "1", **_migs(n)})),
    "requests that are no limits": lambda n: pod(_asking(_migs(n, "2"), _migs(n))),
    "requests without limits": lambda n: pod(_asking({LEGACY: "1"}, {LEGACY: "1", **_migs(n)})),
    "fractions": lambda n: pod(_asking(_migs(n, "500m"))),
    "resource names of no GPU": lambda n: pod(
        _asking({LEGACY: "1", **{f"example.com/r{i}": "1" for i in range(n)}})
    ),
    "names of the vendor": lambda n: pod(
        container(), _asking({f"nvidia.com/other{i}": "1" for i in range(n)}, name="d")
    ),
    "long numbers": lambda n: pod(_asking({**_migs(n // 8 + 1, int("9" * 250))})),  # type: ignore[arg-type]
    "long quantities": lambda n: pod(_asking({LEGACY: "1", **_migs(n // 8 + 1, "9" * 250)})),
    "a long amount": lambda n: pod(_asking({LEGACY: "1" * 16 * n})),
    "claims": lambda n: pod(
        container(resources={"claims": [{"name": f"r{i}"} for i in range(n)]}),
        container("d"),
        resourceClaims=[{"name": f"r{i}", "resourceClaimName": "x"} for i in range(n)],
    ),
    "commands": lambda n: pod(container(command=["/usr/lib/nvidia-375/bin/nvidia-smi"] * n)),
    "one long command": lambda n: pod(container(args=["LD_LIBRARY_PATH=/usr/lib/nvidia:" * n])),
    "security contexts": lambda n: pod(
        container(securityContext={"capabilities": {"add": [f"CAP{i}" for i in range(n)]}}),
        securityContext={"supplementalGroups": list(range(n))},
    ),
    "ports": lambda n: pod(container(ports=[{"containerPort": i + 1} for i in range(n)])),
    # where the pod may run
    "tolerations": lambda n: pod(tolerations=_tolerations(n)),
    "tolerations of all keys": lambda n: pod(
        container(),
        tolerations=[{"operator": "Equal", "value": f"v{i}"} for i in range(n)],
    ),
    "tolerations of one key": lambda n: pod(
        tolerations=[{"key": MODERN, "operator": "Equal", "value": f"v{i}"} for i in range(n)]
    ),
    "nodeSelector": lambda n: pod(nodeSelector={f"k{i}": "v" for i in range(n)}),
    "nodeSelector beside a model": lambda n: pod(
        nodeSelector={MODEL: "Tesla-P100", **{f"k{i}": "v" for i in range(n)}}
    ),
    "nodeSelector x required terms": lambda n: pod(
        nodeSelector={f"k{i}": "v" for i in range(n)}, affinity=_required(_terms(n))
    ),
    "a long model": lambda n: pod(nodeSelector={MODEL: "Tesla P100 " * 4 * n}),
    "required terms": lambda n: pod(affinity=_required(_terms(n))),
    "required terms of models": lambda n: pod(affinity=_required(_terms(n, MODEL, "m{}"))),
    "required terms beside a model": lambda n: pod(
        nodeSelector={MODEL: "Tesla-P100"}, affinity=_required(_terms(n))
    ),
    "required terms that all hold": lambda n: pod(
        affinity=_required([_term(_of_label(MODEL, "NotIn", f"m{i}")) for i in range(n)])
    ),
    "expressions of models": lambda n: pod(
        affinity=_required([_term(*(_of_label(MODEL, "In", f"m{i}") for i in range(n)))])
    ),
    "expressions that go": lambda n: pod(
        affinity=_required(
            [
                _term(
                    _of_label("a", "Exists"),
                    *(_of_label(MODEL, "NotIn", f"m{i}") for i in range(n)),
                )
            ]
        )
    ),
    "models of one expression": lambda n: pod(
        affinity=_required([_term(_of_label(MODEL, "In", *(f"GTX {i}" for i in range(n))))])
    ),
    "one model many times": lambda n: pod(
        affinity=_required([_term(_of_label(MODEL, "In", *["Tesla-P100"] * n))])
    ),
    "values of one expression": lambda n: pod(
        affinity=_required([_term(_of_label("kubernetes.io/hostname", "In", *map(str, range(n))))])
    ),
    "bounds": lambda n: pod(
        affinity=_required(
            [
                _term(_of_label("memory", "Gt", str(i)), _of_label("memory", "Lt", str(2 * i)))
                for i in range(n // 2)
            ]
        )
    ),
    "fields": lambda n: pod(
        affinity=_required(
            [{"matchFields": [_of_label("metadata.name", "In", f"node-{i}")]} for i in range(n)]
        )
    ),
    "preferred terms": lambda n: pod(affinity=_preferred(_terms(n))),
    "preferred terms of models": lambda n: pod(affinity=_preferred(_terms(n, MODEL, "m{}"))),
    "pod affinity": lambda n: pod(affinity={"podAffinity": {REQUIRED: _pod_terms(n)}}),
    "topology spread": lambda n: pod(
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": "DoNotSchedule"}
            for i in range(n)
        ]
    ),
    "scheduling gates": lambda n: pod(schedulingGates=[{"name": f"g{i}"} for i in range(n)]),
    # metadata
    "annotations": lambda n: pod(annotations={f"a{i}": "x" for i in range(n)}),
    "a long annotation": lambda n: pod(annotations={"a": "x" * 32 * n}),
    "labels": lambda n: pod(metadata={"labels": {f"l{i}": "x" for i in range(n)}}),
    "owners": lambda n: pod(
        metadata={"ownerReferences": [{"kind": "Job", "name": f"o{i}"} for i in range(n)]}
    ),
    "finalizers": lambda n: pod(metadata={"finalizers": [f"f/{i}" for i in range(n)]}),
    "managed fields": lambda n: pod(
        metadata={"managedFields": [{"manager": f"m{i}"} for i in range(n)]}
    ),
    "managed fields of containers": lambda n: pod(
        *(container(f"c{i}") for i in range(n)),
        metadata={
            "managedFields": [
                {
                    "manager": "m",
                    "operation": "Update",
                    "fieldsV1": {
                        "f:spec": {
                            "f:containers": {
                                f'k:{{"name":"c{i}"}}': {
                                    "f:resources": {"f:limits": {f"f:{LEGACY}": {}}}
                                }
                                for i in range(n)
                            }
                        }
                    },
                }
            ]
        },
    ),
    "managers of one container": lambda n: pod(
        metadata={
            "managedFields": [
                {
                    "manager": f"m{i}",
                    "operation": "Apply",
                    "fieldsV1": {"f:spec": {"f:containers": {'k:{"name":"c"}': {"f:image": {}}}}},
                }
                for i in range(n)
            ]
        }
    ),
    "last applied": lambda n: pod(
        annotations={
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps(
                pod(*(container(f"c{i}") for i in range(n)))
            )
        }
    ),
    "what the LimitRange set": lambda n: pod(
        annotations={
            "kubernetes.io/limit-ranger": "LimitRanger plugin set: "
            + "; ".join(f"{LEGACY} limit for container c{i}" for i in range(n))
        }
    ),
    "exceptions": lambda n: pod(
        _asking({MODERN: "64"}),
        annotations={f"gpu-webhook.dev/allow.GPU{i}": "because" for i in range(n)},
    ),
    "a long exception x findings": lambda n: pod(
        container(gpus=False, volumeMounts=[{**each, "name": "v"} for each in _mounts(n)]),
        container("d"),
        annotations={"gpu-webhook.dev/allow.GPU303": "x" * 32 * n},
        volumes=[{"name": "v", "hostPath": {"path": "/dev"}}],
    ),
    "until until": lambda n: pod(
        _asking({MODERN: "64"}),
        annotations={"gpu-webhook.dev/allow.GPU304": "until " * 8 * n},
    ),
    "sysctls annotation": lambda n: pod(
        annotations={"security.alpha.kubernetes.io/sysctls": ",".join(f"k{i}=v" for i in range(n))}
    ),
    "a long container name x findings": lambda n: pod(
        container(
            "c" * 40 * n,
            gpus=False,
            volumeMounts=[{**each, "name": "v"} for each in _mounts(n)],
        ),
        _asking(_migs(n, "500m"), name="d" * 40 * n),
        volumes=[{"name": "v", "hostPath": {"path": "/dev"}}],
    ),
    "unknown fields, nested": lambda n: pod(**_nested(200, n // 200 + 1)),
    "image pull secrets": lambda n: pod(imagePullSecrets=[{"name": f"s{i}"} for i in range(n)]),
    "host aliases": lambda n: pod(
        hostAliases=[{"ip": "10.0.0.1", "hostnames": [f"h{i}"]} for i in range(n)]
    ),
    # the affinity annotation
    "annotation: terms": lambda n: _noted(_required(_terms(n, MODEL, "m{}"))),
    "annotation: the same terms": lambda n: _noted(
        _required(_terms(n)), affinity=_required(_terms(n))
    ),
    "annotation: terms, joined to one": lambda n: _noted(
        _required(_terms(n + 100)), affinity=_required(_terms(1, "s{}"))
    ),
    "annotation: equal terms": lambda n: _noted(
        _required(_terms(1) * n), affinity=_required(_terms(1, "s{}") * n)
    ),
    "annotation: expressions": lambda n: _noted(
        _required(
            [
                _term(
                    *_terms(n, "a{}")[0]["matchExpressions"],
                    *(_of_label(f"a{i}", "Exists") for i in range(n)),
                )
            ]
        ),
        affinity=_required([_term(*(_of_label(f"s{i}", "Exists") for i in range(n)))]),
    ),
    "annotation: few terms of many expressions": lambda n: _noted(
        _required(
            [_term(*(_of_label(f"a{i}-{j}", "Exists") for j in range(n // 10))) for i in range(10)]
        ),
        affinity=_required(
            [_term(*(_of_label(f"s{i}-{j}", "Exists") for j in range(n // 10))) for i in range(10)]
        ),
    ),
    "annotation: terms within one": lambda n: _noted(
        _required([_term(_of_label(f"s{i}", "Exists")) for i in range(n)]),
        affinity=_required(
            [
                _term(*(_of_label(f"s{i}", "Exists") for i in range(n))),
                _term(_of_label("other", "Exists")),
            ]
        ),
    ),
    "annotation: models": lambda n: _noted(
        _required([_term(_of_label(MODEL, "In", *(f"GTX {i}" for i in range(n))))])
    ),
    "annotation: preferred terms": lambda n: _noted(_preferred(_terms(n))),
    "annotation: the same preferred terms": lambda n: _noted(
        _preferred(_terms(n)), affinity=_preferred(_terms(n))
    ),
    "annotation: pod affinity": lambda n: _noted(
        {"podAntiAffinity": {REQUIRED: _pod_terms(n, namespaces=[])}}
    ),
    "annotation: no topologyKey": lambda n: _noted(
        {
            "podAntiAffinity": {
                PREFERRED: [
                    {"weight": 1, "podAffinityTerm": {"labelSelector": {}, "topologyKey": ""}}
                ]
                * n
            }
        }
    ),
    "annotation: no podAffinityTerm": lambda n: _noted(
        {"podAntiAffinity": {PREFERRED: [{"weight": 1}] * n}}
    ),
    "annotation: unknown members": lambda n: _noted({f"u{i}": 1 for i in range(n)}),
    "annotation: unknown members below": lambda n: _noted(
        {"nodeAffinity": {f"u{i}": 1 for i in range(n)}}
    ),
    "annotation: nested": lambda n: pod(annotations={AFFINITY: '{"a":' * n + "1" + "}" * n}),
    "annotation: no JSON": lambda n: pod(annotations={AFFINITY: "[" * 8 * n}),
    # the tolerations annotation
    "tolerations annotation: one many times": lambda n: _tolerating(_tolerations(1) * n),
    "tolerations annotation: no keys": lambda n: _tolerating([{"operator": "Exists"}] * n),
    "tolerations annotation: numbers": lambda n: _tolerating(_numbers(n), tolerations=_numbers(n)),
    "tolerations annotation: unknown members": lambda n: _tolerating(
        [{"key": "k", **{f"u{i}": "x" for i in range(n)}}]
    ),
    "tolerations annotation: nested": lambda n: pod(annotations={TOLERATIONS: "[" * n + "]" * n}),
    # several of these at once
    "containers x mounts": lambda n: pod(
        *(container(f"c{i}", volumeMounts=_mounts(10)) for i in range(n // 10)),
        volumes=_volumes(10, STALE),
    ),
    "init containers x mounts": lambda n: pod(
        container(volumeMounts=_mounts(n // 4)),
        initContainers=[container(f"i{i}", volumeMounts=_mounts(n // 4)) for i in range(2)],
        volumes=_volumes(n // 4, STALE),
    ),
    "containers x search paths": lambda n: pod(
        *(
            container(
                f"c{i}",
                volumeMounts=_mounts(4, "/old/{}"),
                env=_env(("LD_LIBRARY_PATH", ":".join(f"/old/{j % 8}/lib" for j in range(10)))),
            )
            for i in range(n // 10)
        ),
        volumes=_volumes(4, STALE),
    ),
    "tolerations x terms": lambda n: pod(
        tolerations=_tolerations(n), affinity=_required(_terms(n // 2, MODEL, "m{}"))
    ),
    "what the LimitRange set x containers": lambda n: pod(
        *(container(f"c{i}") for i in range(n)),
        annotations={
            "kubernetes.io/limit-ranger": "LimitRanger plugin set: "
            + "; ".join(f"{LEGACY} limit for container c{i}" for i in range(n))
        },
    ),
    "last applied x containers": lambda n: pod(
        *(container(f"c{i}") for i in range(n)),
        annotations={
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps(
                pod(*(container(f"c{i}") for i in range(n)))
            )
        },
    ),
    "claims x containers": lambda n: pod(
        *(
            container(f"c{i}", resources={"claims": [{"name": f"r{i}"}]}, env=_env((VISIBLE, "0")))
            for i in range(n)
        ),
        resourceClaims=[{"name": f"r{i}", "resourceClaimTemplateName": "x"} for i in range(n)],
    ),
    # names and texts that are alike, long or odd
    "container names that are cut alike": lambda n: pod(
        *(container("c" * 70 + str(i), env=_env((VISIBLE, "all"))) for i in range(n)),
        annotations={f"{SECCOMP}{'c' * 70}{i}": "runtime/default" for i in range(n)},
    ),
    "containers without a name": lambda n: pod(
        *({"resources": {"limits": {LEGACY: "1"}}} for _ in range(n))
    ),
    "amounts that differ": lambda n: pod(
        *(_asking({LEGACY: f"{i}.{i}"}, name=f"c{i}") for i in range(n))
    ),
    "all legacy names and today's": lambda n: pod(
        *(_asking({LEGACY: "1", MODERN: "2", MIG.format(1): "1"}, name=f"c{i}") for i in range(n))
    ),
    "a long name": lambda n: pod(metadata={"name": "p" * 32 * n}),
    "a long image": lambda n: pod(container(image="x/" * 16 * n)),
    "a long key of an annotation": lambda n: pod(annotations={f"{SECCOMP}{'c' * 32 * n}": "x"}),
    "a long value of a variable": lambda n: pod(
        container("d", gpus=False, env=_env((VISIBLE, "0," * 16 * n))), container()
    ),
    "a host path of many parts": lambda n: pod(
        container(volumeMounts=_mounts(1)),
        volumes=_volumes(1, "/usr/lib/" + "../lib/x/../" * 4 * n + "nvidia-375"),
    ),
    "variables of fields": lambda n: pod(
        container(
            env=[
                {"name": f"E{i}", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
                for i in range(n)
            ]
        )
    ),
    "projected sources": lambda n: pod(
        volumes=[
            {
                "name": "v",
                "projected": {"sources": [{"configMap": {"name": f"m{i}"}} for i in range(n)]},
            }
        ]
    ),
    "unknown fields, deeply nested": lambda n: pod(**_nested(400, n // 400 + 1)),
    "unknown fields of containers": lambda n: pod(container() | {f"u{i}": {} for i in range(n)}),
    # where the pod may run
    "spread constraints with selectors": lambda n: pod(
        topologySpreadConstraints=[
            {"topologyKey": f"k{i}", "labelSelector": {"matchLabels": {"app": "a"}}}
            for i in range(n)
        ]
    ),
    "pod affinity with a large selector": lambda n: pod(
        affinity={
            "podAffinity": {
                REQUIRED: [
                    {
                        "topologyKey": "k",
                        "labelSelector": {
                            "matchExpressions": [_of_label(f"k{i}", "In", "v") for i in range(n)]
                        },
                    }
                ]
            }
        }
    ),
    "preferred pod terms": lambda n: pod(
        affinity={
            "podAntiAffinity": {
                PREFERRED: [{"weight": 1, "podAffinityTerm": each} for each in _pod_terms(n)]
            }
        }
    ),
    "fields of one term": lambda n: pod(
        affinity=_required(
            [{"matchFields": [_of_label("metadata.name", "NotIn", f"n{i}") for i in range(n)]}]
        )
    ),
    "terms of all hosts": lambda n: pod(
        affinity=_required(
            [
                _term(
                    _of_label("kubernetes.io/hostname", "In", *(f"node-{j}" for j in range(16))),
                    _of_label("memory", "NotIn", str(i)),
                )
                for i in range(n // 16)
            ]
        )
    ),
    "model of the past in all places": lambda n: pod(
        nodeSelector={MODEL: "Tesla-P100"},
        annotations={AFFINITY: json.dumps(_required(_terms(n, MODEL, "m{}")))},
        affinity=_required(_terms(n // 2, PRODUCT, "m{}")),
    ),
    # metadata
    "owners that control": lambda n: pod(
        metadata={
            "ownerReferences": [
                {"kind": "Job", "name": f"o{i}", "controller": i == n - 1} for i in range(n)
            ]
        }
    ),
    "managed fields of labels": lambda n: pod(
        metadata={
            "managedFields": [
                {"fieldsV1": {"f:metadata": {"f:labels": {f"f:l{i}": {} for i in range(n)}}}}
            ]
        }
    ),
}


def deployment(made: Raw) -> Raw:
    """A Deployment of this pod."""
    template = {"metadata": made["metadata"], "spec": made["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": 2, "template": template},
    }


def _template(i: int, **metadata: Any) -> Raw:
    return {
        "metadata": metadata,
        "spec": {"containers": [_asking({LEGACY: "1", **_migs(1, start=i)})]},
    }


def _ray(n: int, **metadata: Any) -> Raw:
    groups = [{"groupName": f"g{i}", "replicas": 1, "template": _template(i)} for i in range(n)]
    return _of_ray(groups, **metadata)


def _of_ray(groups: list[Raw], **metadata: Any) -> Raw:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "r", **metadata},
        "spec": {"workerGroupSpecs": groups},
    }


def _moved(n: int) -> tuple[Raw, Raw]:
    """A RayCluster and what it was: all its groups in another order, and one that is new."""
    old, new = _ray(n), _ray(n + 1)
    old["spec"]["workerGroupSpecs"].reverse()
    return new, old


# Objects with many templates, and what was there before the update.
WORKLOADS: dict[str, Callable[[int], tuple[Raw, Raw | None]]] = {
    "many templates": lambda n: (_ray(n), None),
    "many templates and annotations": lambda n: (
        _ray(n // 2, annotations={f"a{i}": "x" for i in range(n)}),
        None,
    ),
    "many templates that move": _moved,
    "many templates of one fault": lambda n: (
        _tasks(n, _template(0)),
        None,
    ),
}

RECORD = "gpu-webhook.dev/template-repair"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_FEW = 3


def _limits(name: str, amount: str = "2") -> Raw:
    return {"name": name, "resources": {"limits": {MODERN: amount, LEGACY: amount}}}


def _fields_of(names: Iterable[str], *resources: str) -> Raw:
    """The fieldsV1 of a Deployment with these containers."""
    limits: Raw = {f"f:{each}": {} for each in resources}
    items = {f'k:{{"name":"{name}"}}': {"f:resources": {"f:limits": limits}} for name in names}
    return {"f:spec": {"f:template": {"f:spec": {"f:containers": items}}}}


def _forged(
    n: int, *, entries: bool, noted: bool, applied: bool, containers: bool, own: bool, again: bool
) -> tuple[Raw, Raw | None]:
    """A Deployment whose author forged all that says who wrote what: `n` of these, few of others.

    Each entry of managedFields has its `own` container, or none; but the first one has all.
    """
    many, keys, items, managers = (
        n if each else _FEW for each in (containers, noted, applied, entries)
    )
    made = deployment(pod(*(_limits(f"c{i}") for i in range(many))))
    at = "/spec/containers/c{}/resources/limits/nvidia.com~1gpu"
    record = {"/spec/template": {at.format(i): ["1", "2"] for i in range(keys)}}
    listed = [{"name": f"c{i}", "resources": {"limits": {MODERN: "2"}}} for i in range(items)]
    manifest = {"spec": {"template": {"spec": {"containers": listed}}}}
    fields = [
        _fields_of((f"c{i}" for i in range(many)), MODERN),
        *(_fields_of([f"c{i}"] if own else [], LEGACY) for i in range(managers)),
    ]
    made["metadata"] |= {
        "annotations": {RECORD: json.dumps(record), APPLIED: json.dumps(manifest)},
        "managedFields": [
            {"manager": f"m{i}", "operation": "Apply", "fieldsV1": each}
            for i, each in enumerate(fields)
        ],
    }
    return made, _stored(made) if again else None


def _forged_names(n: int) -> tuple[Raw, Raw]:
    """One container with GPUs of many names, of which each entry of managedFields has all."""
    limits = {LEGACY: "2", **_migs(n, "2")}
    made = deployment(pod(container(resources={"limits": limits})))
    at = "/spec/containers/c/resources/limits/"
    record = {"/spec/template": {f"{at}{name.replace('/', '~1')}": ["1", "2"] for name in limits}}
    own = [_fields_of(["c"], *limits), *(_fields_of(["c"], LEGACY) for _ in range(n))]
    made["metadata"] |= {
        "annotations": {RECORD: json.dumps(record)},
        "managedFields": [{"operation": "Apply", "fieldsV1": each} for each in own],
    }
    return made, _stored(made)


def _forged_labels(n: int) -> tuple[Raw, Raw]:
    """A record of legacy words in nodeSelector that went, and entries that each have all of it."""
    made = deployment(pod(nodeSelector={f"k{i}": "v" for i in range(n)}))
    words = {f"/spec/nodeSelector/w{i}": ["v", None] for i in range(n)}
    fields: Raw = {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}}
    entry = {"operation": "Apply", "fieldsV1": fields}
    made["metadata"] |= {
        "annotations": {RECORD: json.dumps({"/spec/template": words})},
        "managedFields": [{"manager": f"m{i}", **entry} for i in range(n)],
    }
    return made, {**_stored(made), "spec": deployment(pod())["spec"]}


def _forged_items(n: int, keys: Iterable[str], name: str = "t") -> tuple[Raw, Raw]:
    """A Volcano Job with a record of `n` words, whose managedFields have these items."""
    asking = {"spec": {"containers": [container(resources={"limits": {LEGACY: "1"}})]}}
    made = _tasks(1, asking, name)
    words = {f"/metadata/annotations/{i}": ["", None] for i in range(n)}
    made["metadata"] |= {
        "labels": {"a": "b"},
        "annotations": {RECORD: json.dumps({"/spec/tasks/0/template": words})},
        "managedFields": [
            {
                "manager": "m",
                "operation": "Apply",
                "fieldsV1": {"f:spec": {"f:tasks": {key: {} for key in keys}}},
            }
        ],
    }
    return made, {**made, "metadata": {**made["metadata"], "labels": {}}}


def _tasks(n: int, template: Raw, name: str = "t") -> Raw:
    """A Volcano Job with this many tasks."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "v"},
        "spec": {"tasks": [{"name": name, "replicas": 1, "template": template}] * n},
    }


def _long_key(n: int) -> str:
    return f"k:{json.dumps({f'a{i}': 0 for i in range(n)})}"


def _forgeries() -> Iterator[tuple[str, Callable[[int], tuple[Raw, Raw | None]]]]:
    """Each of them alone, with each other one and with all, as a square is of two."""
    names = ("entries", "noted", "applied", "containers", "own", "again")
    for chosen in product((False, True), repeat=len(names)):
        how = dict(zip(names, chosen, strict=True))
        if sum(chosen[:4]) in {1, 2, 4} and not (how["own"] and not how["entries"]):
            words = " ".join(name for name in names if how[name])
            yield f"forged: {words}", partial(_forged, **how)
    yield "forged: names of one container", _forged_names
    yield "forged: labels", _forged_labels
    yield "forged: items without keys", lambda n: _forged_items(n, (f"v:{i}" for i in range(n)))
    yield "forged: a key of many names", lambda n: _forged_items(n, [_long_key(n)])
    yield (
        "forged: an item with a long name",
        lambda n: _forged_items(n, ['k:{"name":""}'], "n" * 99 * n),
    )


FORGERIES = dict(_forgeries())

MUTATE, VALIDATE, GUARD, REFUSE = PATHS = ("/mutate", "/validate", "/guard", "/guard/refuse")


def _noting(n: int) -> tuple[Raw, Raw]:
    """A Deployment with a record of a repair that names each of its containers."""
    made = deployment(pod(*(container(f"c{i}") for i in range(n))))
    places = {f"/spec/containers/c{i}/resources/limits/{MODERN}": [None, "1"] for i in range(n)}
    noted = json.dumps({"/spec/template": places})
    made["metadata"]["annotations"] = {"gpu-webhook.dev/template-repair": noted}
    return made, _stored(made)


def _debugged(n: int) -> tuple[Raw, Raw]:
    """A pod, and the same with debug containers more."""
    old, new = pod(container()), pod(container())
    new["spec"]["ephemeralContainers"] = SHAPES["ephemeral containers"](n)["spec"][
        "ephemeralContainers"
    ]
    return new, old


def _grown(n: int) -> tuple[Raw, Raw]:
    """A large pod in the place of a small one."""
    return pod(*(container(f"c{i}") for i in range(n))), pod()


def _listed(n: int) -> tuple[Raw, None]:
    """A List, which no API server sends."""
    return {"apiVersion": "v1", "kind": "List", "items": [pod()] * n}, None


def _scaled(n: int) -> tuple[Raw, Raw]:
    made = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "d"},
        "spec": {"replicas": 2},
        "status": {"selector": ",".join(f"l{i}=x" for i in range(n))},
    }
    return made, {**made, "spec": {"replicas": 1}}


# Requests of other kinds: object, old object, and what else the review says.
REQUESTS: dict[str, tuple[Callable[[int], tuple[Raw, Raw | None]], Raw]] = {
    "many templates without anything": (lambda n: (_of_ray([{"template": {}}] * n), None), {}),
    "many replica types": (
        lambda n: (
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "TFJob",
                "metadata": {"name": "t"},
                "spec": {"tfReplicaSpecs": {f"t{i}": {"template": _template(i)} for i in range(n)}},
            },
            None,
        ),
        {},
    ),
    "a record of each container": (_noting, {}),
    "debug containers": (_debugged, {"subResource": "ephemeralcontainers"}),
    "a pod that grows": (_grown, {}),
    "a pod that shrinks": (lambda n: _grown(n)[::-1], {}),
    "a dry run": (lambda n: (pod(*(container(f"c{i}") for i in range(n))), None), {"dryRun": True}),
    "a List": (_listed, {}),
    "a Scale": (_scaled, {"subResource": "scale"}),
}


def reviews(*, whole: bool) -> Iterator[tuple[str, str, Callable[[int], bytes]]]:
    """Name, path and body of all that is sent.

    Each shape comes as a new pod to /mutate, and in all other ways or in one of them, by turns.
    """
    for turn, (name, make) in enumerate(SHAPES.items()):
        others = [
            *((name, path, partial(_of_pod, make)) for path in (VALIDATE, GUARD, REFUSE)),
            (f"{name} (again)", MUTATE, partial(_of_pod_again, make)),
            (f"{name} (template)", VALIDATE, partial(_of_template, make)),
            (f"{name} (template, again)", MUTATE, partial(_of_template_again, make)),
        ]
        yield name, MUTATE, partial(_of_pod, make)
        yield from others if whole else others[turn % len(others) :][:1]
    for name, both in WORKLOADS.items():
        for path in (MUTATE, VALIDATE):
            yield name, path, partial(_of_workload, both)
    for name, both in FORGERIES.items():
        yield name, MUTATE, partial(_of_workload, both)
    for name, both in list(FORGERIES.items())[-6:]:
        yield name, VALIDATE, partial(_of_workload, both)
    for name, (both, more) in REQUESTS.items():
        for path in PATHS:
            yield name, path, partial(_of_request, both, more)


def _of_pod(make: Callable[[int], Raw], n: int) -> bytes:
    """A pod of a Job, so that a light one is judged by its view (admission/view.py)."""
    made = make(n)
    made["metadata"].setdefault("ownerReferences", [_JOB])
    return review(made)


_JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}


def _of_pod_again(make: Callable[[int], Raw], n: int) -> bytes:
    made = make(n)
    return review(made, _stored(made))


def _of_template_again(make: Callable[[int], Raw], n: int) -> bytes:
    made = make(n)
    return review(deployment(made), deployment(_stored(made)))


def _stored(made: Raw) -> Raw:
    """The same under the name of today, as a repair may have left it."""
    text = json.dumps(made).replace(f'"{LEGACY}"', f'"{MODERN}"')
    stored: Raw = json.loads(text)
    return stored


def _of_template(make: Callable[[int], Raw], n: int) -> bytes:
    return review(deployment(make(n)))


def _of_workload(make: Callable[[int], tuple[Raw, Raw | None]], n: int) -> bytes:
    return review(*make(n))


def _of_request(make: Callable[[int], tuple[Raw, Raw | None]], more: Raw, n: int) -> bytes:
    return review(*make(n), **more)


def review(obj: Raw, old: Raw | None = None, **more: Any) -> bytes:
    """The review of this object, as an API server sends it; `more` is of the request."""
    group, _, version = obj["apiVersion"].rpartition("/")
    resource = f"{obj['kind'].lower()}s"
    request = {
        "uid": "1",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": resource},
        "namespace": "team",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "alice"},
        "options": {"fieldManager": "m"},
        **more,
        "object": obj,
        "oldObject": old,
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(whole, separators=(",", ":")).encode()
