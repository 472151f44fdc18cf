"""The leak guard: one table of containers, then what does not fit into a row."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine import run
from tests.rules.pods import FIRST, GPU, LEGACY, LONGEST_WARNING, SPEC, container, pod
from webhook.capacity.nodes import Inventory, Node, group
from webhook.core.edits import Append, Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context
from webhook.core.settings import Exempt, Guard, Settings
from webhook.kube.pod import Pod
from webhook.rules import leak_guard as rule

if TYPE_CHECKING:
    from webhook.core.edits import Edit
    from webhook.core.findings import Verdict
    from webhook.kube.pointer import Path

    Raw = dict[str, Any]

VARIABLE = "NVIDIA_VISIBLE_DEVICES"
MIG = "nvidia.com/mig-1g.5gb"
CLASS = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
ENFORCED = Context(modes=Modes(Mode.ENFORCE), namespace="team-a")
VOID = {"name": VARIABLE, "value": "void"}
HOME = {"name": "HOME", "value": "/root"}
FROM_SECRET = {"name": VARIABLE, "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
ENV = FIRST / "env"

HIDE = (
    "container {} requests no GPU: set its env NVIDIA_VISIBLE_DEVICES to void, once; "
    "with anything else, or nothing, it may see all GPUs of its node"
)
PRIVILEGED = (
    "container {} requests no GPU but is privileged, so it sees all of its node: drop privileged, "
    "or let an admin exempt the pod in guard.exempt"
)
DEVICE = "container {} requests no GPU but mounts {}, where GPU devices are: delete the mount"
DRIVER = "container {} requests no GPU but mounts {}, where a GPU driver is: delete the mount"
LIST = (
    "container {} requests no GPU but mounts {}, by which the runtime may give it GPUs: "
    "delete the mount"
)
PLUGIN = (
    "the device plugin chooses the GPUs of container {}: delete its env NVIDIA_VISIBLE_DEVICES, "
    "which would override that choice"
)
CLAIM = (
    "container {} has its devices by a claim: set its env NVIDIA_VISIBLE_DEVICES to void, once; "
    "void hides nothing that a claim brings"
)
ELSEWHERE = (
    "container {} requests {}, but the node in nodeName is not known to offer it, so the container "
    "may run without: set its env NVIDIA_VISIBLE_DEVICES to void, once; with anything else, or "
    "nothing, it may see all GPUs of its node"
)
NOWHERE = (
    "container {} requests {}, which no node offers: set its env NVIDIA_VISIBLE_DEVICES to void, "
    "once; with anything else, or nothing, it may see all GPUs of its node"
)
TOO_MANY = (
    "container {} requests 2^63 {} or more, which counts as none: set its env "
    "NVIDIA_VISIBLE_DEVICES to void, once; with anything else, or nothing, it may see all GPUs of "
    "its node"
)
BROUGHT = (
    "envFrom of container {} may bring NVIDIA_VISIBLE_DEVICES, which would override the devices "
    "given to it: name the keys in env, or give envFrom a prefix"
)
SHARE = (
    "container {} requests {}, which may bring a GPU or a part of one, so it is left alone; if it "
    "counts whole GPUs, list it in resources.gpus"
)
FRACTION = (
    "container {} has a part of a GPU by the annotation {}, so its env NVIDIA_VISIBLE_DEVICES is "
    "left alone"
)


def shown(value: str) -> Raw:
    return {"name": VARIABLE, "value": value}


def plain(*env: Raw, name: str = "web", **more: Any) -> Raw:
    """A container without any GPU; `image` says what it is, which must not matter."""
    made = {"name": name, "image": "registry.example/web", **more}
    return made | {"env": list(env)} if env else made


def gpu(*env: Raw, **more: Any) -> Raw:
    return container({GPU: "1"}, {GPU: "1"}, **more) | ({"env": list(env)} if env else {})


def claiming(*env: Raw, **more: Any) -> Raw:
    return plain(*env, name="cuda", resources={"claims": [{"name": "gpu"}]}, **more)


def mounting(at: str, volume: str = "host", **more: Any) -> Raw:
    return plain(VOID, volumeMounts=[{"name": volume, "mountPath": at, **more}])


def host(path: Any, name: str = "host") -> Raw:
    return {"name": name, "hostPath": {"path": path}}


def config(**more: Any) -> Raw:
    return {"configMapRef": {"name": "settings"}, **more}


def hides(
    *edits: Edit, at: Path = ENV, name: str = "web", message: str = HIDE, shown: str = ""
) -> Finding:
    return Finding(rule.CODE, at, message.format(name, shown), edits)


def appends(at: Path = ENV, name: str = "web", message: str = HIDE, shown: str = "") -> Finding:
    return hides(Append(at, VOID), at=at, name=name, message=message, shown=shown)


def notes(shown: str, message: str = SHARE, at: Path = FIRST / "resources") -> Finding:
    text = message.format("web", shown)
    return Finding(rule.CODE, at, text, severity=Severity.NOTICE)


def frees(*edits: Edit, name: str = "cuda") -> Finding:
    at = edits[0].at  # type: ignore[union-attr]  # no Append
    return Finding(rule.CODE, at / 0 if at == ENV else at, PLUGIN.format(name), edits)


def asks(message: str, at: Path, path: str = "", name: str = "web") -> Finding:
    return Finding(rule.CODE, at, message.format(name, path), severity=Severity.MANUAL)


def brought() -> Finding:
    return asks(BROUGHT, FIRST / "envFrom", name="cuda")


PRIVILEGE = asks(PRIVILEGED, FIRST / "securityContext" / "privileged")
MOUNT = FIRST / "volumeMounts" / 0


def judged(obj: Raw, cx: Context = ENFORCED) -> Verdict:
    """What the guard says and does; holds each row to what must be true of them all."""
    before = copy.deepcopy(obj)
    verdict = run((rule,), obj, cx, every_pod=True)
    assert verdict.failed == ()
    assert jsonpatch.apply_patch(before, verdict.patch) == obj
    again = run((rule,), copy.deepcopy(obj), cx, every_pod=True)
    assert again.patch == []
    assert all(not each.edits for each in again.findings), "a second run finds nothing to edit"
    for each in verdict.findings:
        assert each.message.isprintable()
        assert len(f"{each.code}: {each.message}") <= LONGEST_WARNING
    return verdict


ROWS = [
    # Without GPUs: the variable, in each form that it may have.
    pytest.param(plain(VOID), [VOID], [], id="void already: untouched"),
    pytest.param(plain(HOME, VOID), [HOME, VOID], [], id="void among others: untouched"),
    pytest.param(
        plain(VOID | {"valueFrom": None}),
        [VOID | {"valueFrom": None}],
        [],
        id="void with a null valueFrom: untouched",
    ),
    pytest.param(plain(), [VOID], [appends()], id="no env at all"),
    pytest.param(plain() | {"env": None}, [VOID], [appends()], id="a null env"),
    pytest.param(plain() | {"env": []}, [VOID], [appends()], id="an empty env"),
    pytest.param(plain(HOME), [HOME, VOID], [appends()], id="other variables stay"),
    pytest.param(
        plain(image="nvidia/cuda:8.0-devel"), [VOID], [appends()], id="a CUDA image of 2017"
    ),
    pytest.param(
        plain(image="nvcr.io/nvidia/pytorch:26.01-py3"), [VOID], [appends()], id="a CUDA image"
    ),
    pytest.param(
        plain(image="gcr.io/distroless/static@sha256:0"),
        [VOID],
        [appends()],
        id="an image that knows no GPU: nobody can tell, so the same",
    ),
    *(
        pytest.param(
            plain(HOME, shown(value)),
            [HOME, VOID],
            [hides(Set(ENV / 1 / "value", "void"), at=ENV / 1)],
            id=f"the value {value!r} is written over where it stands",
        )
        for value in ("all", "0", "0,1", "GPU-fef8089b", "none", "", "VOID", " void", "void,all")
    ),
    pytest.param(
        plain({"name": VARIABLE}),
        [VOID],
        [hides(Set(ENV / 0 / "value", "void"), at=ENV / 0)],
        id="a name without a value, which is empty",
    ),
    pytest.param(
        plain(shown("$(GPUS)")),
        [VOID],
        [hides(Set(ENV / 0 / "value", "void"), at=ENV / 0)],
        id="a reference to another variable",
    ),
    pytest.param(
        plain(FROM_SECRET, HOME),
        [VOID, HOME],
        [hides(Set(ENV / 0, VOID), at=ENV / 0)],
        id="valueFrom a Secret",
    ),
    pytest.param(
        plain({"name": VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}),
        [VOID],
        [hides(Set(ENV / 0, VOID), at=ENV / 0)],
        id="valueFrom a label of the pod",
    ),
    pytest.param(
        plain(VOID | {"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}),
        [VOID],
        [hides(Set(ENV / 0, VOID), at=ENV / 0)],
        id="void and valueFrom, which the API server refuses",
    ),
    pytest.param(
        plain(shown("all"), HOME, shown("0")),
        [VOID, HOME],
        [hides(Set(ENV / 0 / "value", "void"), Remove(ENV / 2), at=ENV / 0)],
        id="twice: one entry is left, where the first stood",
    ),
    pytest.param(
        plain(VOID, VOID),
        [VOID],
        [hides(Set(ENV / 0 / "value", "void"), Remove(ENV / 1), at=ENV / 0)],
        id="void twice, as an appending webhook leaves it",
    ),
    pytest.param(
        plain(VOID, shown("all")),
        [VOID],
        [hides(Set(ENV / 0 / "value", "void"), Remove(ENV / 1), at=ENV / 0)],
        id="void first and all last, which would win",
    ),
    pytest.param(
        plain(FROM_SECRET, HOME, shown("all"), FROM_SECRET),
        [VOID, HOME],
        [hides(Set(ENV / 0, VOID), Remove(ENV / 2), Remove(ENV / 3), at=ENV / 0)],
        id="value and valueFrom, three times",
    ),
    pytest.param(
        plain({"name": "nvidia_visible_devices", "value": "all"}),
        [{"name": "nvidia_visible_devices", "value": "all"}, VOID],
        [appends()],
        id="another spelling is another variable",
    ),
    pytest.param(plain() | {"env": ["junk"]}, ["junk", VOID], [appends()], id="an env with junk"),
    pytest.param(plain() | {"env": "junk"}, "junk", [], id="an env that is no list: untouched"),
    # Without GPUs: envFrom does not matter, since env wins.
    pytest.param(plain(VOID, envFrom=[config()]), [VOID], [], id="void and envFrom: untouched"),
    pytest.param(plain(envFrom=[config()]), [VOID], [appends()], id="envFrom loses against env"),
    # What is a GPU, and what is none.
    pytest.param(
        plain(resources={"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}),
        [VOID],
        [appends()],
        id="CPU and memory are no GPU",
    ),
    *(
        pytest.param(
            plain(*env, resources={section: {name: "1"}}),
            list(env) or None,
            [notes(name)],
            id=f"{name} in {section} may bring a GPU: left alone",
        )
        for env, section, name in (
            ((), "limits", "amd.com/gpu"),
            ((FROM_SECRET,), "limits", "volcano.sh/vgpu-number"),
            ((), "requests", "aliyun.com/gpu-mem"),
            ((shown("0"),), "limits", "tencent.com/vcuda-core"),
            ((), "limits", "k8s.amazonaws.com/vgpu"),
            ((), "limits", "nvidia.com/gpumem"),
            ((), "limits", "nvidia.com/hostdev"),
            ((), "limits", "gpu.intel.com/i915"),
            ((), "limits", "example.com/CUDA-Cores"),
            ((), "limits", "nvidia.com/a100"),
        )
    ),
    *(
        pytest.param(
            plain(shown("all"), resources={"limits": {name: "1"}}),
            [VOID],
            [hides(Set(ENV / 0 / "value", "void"), at=ENV / 0)],
            id=f"{name} brings no GPU: void",
        )
        for name in ("rdma/hca", "example.com/fpga", "ephemeral-storage", "nvidia.example/x")
    ),
    *(
        pytest.param(
            plain(shown("all"), resources={"limits": {name: zero}}),
            [VOID],
            [hides(Set(ENV / 0 / "value", "void"), at=ENV / 0)],
            id=f"{zero!r} {name} is no request",
        )
        for name in ("volcano.sh/vgpu-number", "nvidia.com/a100", CLASS)
        for zero in ("0", 0, "-1", "many")
    ),
    *(
        pytest.param(
            plain(shown("all"), resources={"limits": {name: amount}, "requests": {name: amount}}),
            [VOID],
            [hides(Set(ENV / 0 / "value", "void"), at=ENV / 0, message=TOO_MANY, shown=name)],
            id=f"{amount[:20]} {name} is none to the scheduler and the kubelet",
        )
        for name in (GPU, "example.com/gpu", "nvidia.com/a100")
        for amount in (str(2**63), str(2**64), str(2**64 + 1), "1e19", "1e400", "1" + "0" * 400)
    ),
    pytest.param(
        plain(name="cuda", resources={"limits": {GPU: str(2**63 - 1)}}),
        None,
        [],
        id="the largest amount that counts: untouched",
    ),
    *(
        pytest.param(
            plain(resources={"limits": {name: zero}, "requests": {name: zero}}),
            [VOID],
            [appends()],
            id=f"{name}: {zero!r} is no request",
        )
        for name in (GPU, LEGACY, MIG)
        for zero in ("0", 0, "0.0")
    ),
    pytest.param(
        plain(resources={"limits": {GPU: "-1"}}), [VOID], [appends()], id="less than no GPU"
    ),
    pytest.param(
        plain(resources={"limits": {GPU: "many"}}), [VOID], [appends()], id="no amount at all"
    ),
    pytest.param(
        plain(resources={"claims": []}), [VOID], [appends()], id="an empty list of claims"
    ),
    pytest.param(
        plain(resources={"limits": {CLASS: "0"}}), [VOID], [appends()], id="no device of a class"
    ),
    *(
        pytest.param(
            plain(name="cuda", resources={section: {name: amount}}),
            None,
            [],
            id=f"{name}: {amount!r} in {section} only: untouched",
        )
        for name, amount in ((GPU, "1"), (f"{GPU}.shared", 2), (MIG, "1"))
        for section in ("limits", "requests")
    ),
    # A claim is no right to what the variable shows, and void takes nothing from it.
    pytest.param(
        plain(resources={"limits": {CLASS: 1}}),
        [VOID],
        [appends(message=CLAIM)],
        id="a device class: void",
    ),
    pytest.param(claiming(), [VOID], [appends(name="cuda", message=CLAIM)], id="a claim: void"),
    # With GPUs: the variable goes.
    pytest.param(gpu(HOME), [HOME], [], id="GPUs and other variables: untouched"),
    pytest.param(gpu(shown("all")), None, [frees(Remove(ENV / 0))], id="GPUs and all"),
    pytest.param(gpu(HOME, FROM_SECRET), [HOME], [frees(Remove(ENV / 1))], id="GPUs and valueFrom"),
    pytest.param(
        gpu(shown("0"), HOME, FROM_SECRET, VOID),
        [HOME],
        [frees(Remove(ENV / 0), Remove(ENV / 2), Remove(ENV / 3))],
        id="GPUs and every form of it at once",
    ),
    pytest.param(
        gpu(VOID),
        None,
        [frees(Remove(ENV / 0))],
        id="GPUs and void, which a round before GPUs came in may have set",
    ),
    *(
        pytest.param(
            plain(*env, resources=resources),
            [VOID],
            [] if env == [VOID] else [hides(*edits, at=at, message=NOWHERE, shown=LEGACY)],
            id=f"GPUs under the legacy name, which nobody renamed: {what}",
        )
        for what, env, at, edits in (
            ("nothing", [], ENV, [Append(ENV, VOID)]),
            ("all", [shown("all")], ENV / 0, [Set(ENV / 0 / "value", "void")]),
            ("the author's own void stays", [VOID], ENV, []),
        )
        for resources in (
            {"limits": {LEGACY: 1}},
            {"requests": {LEGACY: 1}},
            {"limits": {LEGACY: "0.5"}, "requests": {LEGACY: "0.5"}},
        )
    ),
    *(
        pytest.param(
            plain(shown("all"), resources={"limits": {name: limit}, "requests": {name: zero}}),
            [VOID],
            [hides(Set(ENV / 0 / "value", "void"), at=ENV / 0)],
            id=f"limit {limit!r}, request {zero!r} of {name}: the scheduler counts the request",
        )
        for name in (LEGACY, "kubernetes.io/gpu", "x.kubernetes.io/cuda", GPU)
        for limit, zero in (("1", "0"), (8, 0), ("0.0001", "0.0"), ("1", None))
    ),
    *(
        pytest.param(
            plain(shown("all"), resources={"limits": {name: "1"}, **requests}),
            [VOID],
            [hides(Set(ENV / 0 / "value", "void"), at=ENV / 0, message=NOWHERE, shown=name[:50])],
            id=f"{name}: no device plugin may offer it, {what}",
        )
        for name in (
            "kubernetes.io/gpu",
            "alpha.kubernetes.io/gpu-x",
            "nvidia.com.kubernetes.io/gpu",
            "mykubernetes.io/cuda",
        )
        for what, requests in (
            ("whatever is requested", {"requests": {name: "1"}}),
            ("the limit becomes the request", {}),
            ("the smallest amount", {"requests": {name: "0.000000001"}}),
        )
    ),
    pytest.param(gpu(envFrom=[config()]), None, [brought()], id="GPUs and envFrom"),
    pytest.param(
        gpu(envFrom=[config(prefix="NVIDIA_")]), None, [brought()], id="a prefix that begins so"
    ),
    pytest.param(
        gpu(envFrom=[config(prefix=None), config(prefix="APP_")]),
        None,
        [brought()],
        id="two sources, one without a prefix",
    ),
    pytest.param(
        gpu(envFrom=[config(prefix="APP_"), config(prefix=VARIABLE)]),
        None,
        [],
        id="prefixes that make the name impossible: untouched",
    ),
    pytest.param(
        gpu(shown("all"), envFrom=[config()]),
        None,
        [frees(Remove(ENV / 0)), brought()],
        id="GPUs, all, and envFrom behind it",
    ),
    pytest.param(
        claiming(HOME, shown("all")),
        [HOME, VOID],
        [hides(Set(ENV / 1 / "value", "void"), at=ENV / 1, name="cuda", message=CLAIM)],
        id="a claim and all",
    ),
    pytest.param(claiming(VOID), [VOID], [], id="a claim and void: untouched"),
    pytest.param(
        claiming(VOID, envFrom=[config()]), [VOID], [], id="a claim, void, envFrom: untouched"
    ),
    pytest.param(
        claiming(VOID, VOID),
        [VOID],
        [
            hides(
                Set(ENV / 0 / "value", "void"),
                Remove(ENV / 1),
                at=ENV / 0,
                name="cuda",
                message=CLAIM,
            )
        ],
        id="a claim and void twice",
    ),
    pytest.param(
        claiming(envFrom=[config()]),
        [VOID],
        [appends(name="cuda", message=CLAIM)],
        id="a claim and envFrom",
    ),
    pytest.param(
        claiming(VOID, securityContext={"privileged": True}),
        [VOID],
        [asks(PRIVILEGED, FIRST / "securityContext" / "privileged", name="cuda")],
        id="a claim and privileged",
    ),
    pytest.param(
        plain(shown("1"), name="cuda", resources={"limits": {GPU: 1}, "claims": [{"name": "nic"}]}),
        None,
        [frees(Remove(ENV / 0))],
        id="GPUs and the claim of something else",
    ),
    # However often the variable stands there, a patch has one operation for it.
    pytest.param(
        plain(*[shown("all")] * 8),
        [VOID],
        [
            hides(
                Set(ENV / 0 / "value", "void"),
                *(Remove(ENV / at) for at in range(1, 8)),
                at=ENV / 0,
            )
        ],
        id="eight times: taken out one by one",
    ),
    pytest.param(
        plain(HOME, *[shown("all")] * 1800, HOME),
        [HOME, VOID, HOME],
        [hides(Set(ENV, [HOME, VOID, HOME]), at=ENV / 1)],
        id="1,800 times: the list is written anew",
    ),
    pytest.param(
        gpu(HOME, *[shown("all")] * 1800),
        [HOME],
        [replace(frees(Set(ENV, [HOME])), at=ENV / 1)],
        id="GPUs, and 1,800 times",
    ),
    pytest.param(
        gpu(*[shown("all")] * 1800), None, [frees(Remove(ENV))], id="GPUs, and nothing else"
    ),
    pytest.param(
        gpu(resources={"limits": {GPU: 1, "nvidia.com/hostdev": 1}}),
        None,
        [],
        id="GPUs and a network card of nvidia.com: untouched",
    ),
    # Ways around the variable.
    pytest.param(
        plain(VOID, securityContext={"privileged": True}), [VOID], [PRIVILEGE], id="privileged"
    ),
    pytest.param(
        plain(securityContext={"privileged": True}),
        [VOID],
        [appends(), PRIVILEGE],
        id="privileged, and no void",
    ),
    pytest.param(
        plain(VOID, securityContext={"privileged": False, "procMount": "Unmasked"}),
        [VOID],
        [],
        id="not privileged: untouched",
    ),
    pytest.param(
        plain(VOID, securityContext=None), [VOID], [], id="no security context: untouched"
    ),
    pytest.param(
        gpu(securityContext={"privileged": True}),
        None,
        [],
        id="privileged with GPUs is Pod Security's: untouched",
    ),
]


@pytest.mark.parametrize(("made", "env", "expected"), ROWS)
def test_a_container(made: Raw, env: Any, expected: list[Finding]) -> None:
    rest = {key: value for key, value in made.items() if key != "env"}
    obj = pod(copy.deepcopy(made))
    assert list(judged(obj).findings) == expected
    after = obj["spec"]["containers"][0]
    assert after.get("env") == env
    assert {key: value for key, value in after.items() if key != "env"} == rest


def test_the_table_has_at_least_forty_containers() -> None:
    assert len(ROWS) >= 40


@pytest.mark.parametrize(
    ("path", "mount", "message", "named"),
    [
        pytest.param("/data", {}, "", "", id="data: untouched"),
        pytest.param("/dev/snd", {}, "", "", id="another device: untouched"),
        pytest.param("/devices", {}, "", "", id="the same beginning: untouched"),
        pytest.param("/", {"subPath": "var/log"}, "", "", id="a harmless part of /: untouched"),
        pytest.param("/dev", {"subPath": "shm"}, "", "", id="a harmless part of /dev: untouched"),
        pytest.param(7, {}, "", "", id="a path that is no text: untouched"),
        pytest.param("/dev/null", {"mountPath": "/dev/x"}, "", "", id="/dev/null: untouched"),
        pytest.param("/dev/nvidia0", {}, DEVICE, "/dev/nvidia0", id="a GPU"),
        pytest.param(f"/dev/{'./' * 5000}nvidia0", {}, DEVICE, "/dev/nvidia0", id="a crooked one"),
        pytest.param(f"/dev/nvidia{'0' * 5000}", {}, "", "", id="longer than Linux takes"),
        pytest.param("/dev/nvidiactl", {}, DEVICE, "/dev/nvidiactl", id="the control device"),
        pytest.param("/dev/nvidia-uvm", {}, DEVICE, "/dev/nvidia-uvm", id="unified memory"),
        pytest.param(
            "/dev/nvidia-caps/nvidia-cap1", {}, DEVICE, "/dev/nvidia-caps/nvidia-cap1", id="MIG"
        ),
        pytest.param("/dev/char/195:0", {}, DEVICE, "/dev/char/195:0", id="a GPU by its number"),
        pytest.param("/dev/", {}, DEVICE, "/dev", id="all devices"),
        pytest.param("//dev/./nvidia1", {}, DEVICE, "/dev/nvidia1", id="needless slashes, a dot"),
        pytest.param("/", {"readOnly": True}, DEVICE, "/", id="the whole host, read-only or not"),
        pytest.param("/", {"subPath": "dev"}, DEVICE, "/dev", id="a part of the host"),
        pytest.param("/", {"subPathExpr": "$(X)"}, DEVICE, "/", id="a part that nobody can tell"),
        pytest.param("/usr/lib/nvidia-384", {}, DRIVER, "/usr/lib/nvidia-384", id="driver 384"),
        pytest.param(
            "/usr/lib64/libcuda.so.1", {}, DRIVER, "/usr/lib64/libcuda.so.1", id="one file"
        ),
        pytest.param("/usr/local/nvidia", {}, DRIVER, "/usr/local/nvidia", id="acs-engine, GKE"),
        pytest.param(
            "/home/kubernetes/bin/nvidia", {}, DRIVER, "/home/kubernetes/bin/nvidia", id="GKE today"
        ),
        pytest.param("/run/nvidia/driver", {}, DRIVER, "/run/nvidia/driver", id="the GPU operator"),
        pytest.param(
            "/usr", {"subPath": "local/nvidia"}, DRIVER, "/usr/local/nvidia", id="a part of /usr"
        ),
        pytest.param(
            "/dev/null",
            {"mountPath": "/var/run/nvidia-container-devices/all"},
            LIST,
            "/var/run/nvidia-container-devices/all",
            id="a list of devices",
        ),
        pytest.param(
            "/dev/null",
            {"mountPath": "var/run//nvidia-container-devices/../nvidia-container-devices/0"},
            LIST,
            "/var/run/nvidia-container-devices/0",
            id="a list of devices, by a crooked path",
        ),
        pytest.param(
            "/srv",
            {"mountPath": "/var/run/nvidia-container-devices"},
            LIST,
            "/var/run/nvidia-container-devices",
            id="the folder of the list itself",
        ),
        pytest.param(
            "/var/run/nvidia-container-devices",
            {"mountPath": "/list"},
            LIST,
            "/list",
            id="that folder of the host",
        ),
    ],
)
def test_what_a_container_mounts(path: Any, mount: Raw, message: str, named: str) -> None:
    made = mounting(**({"at": mount.get("mountPath", "/mnt")} | {"volume": "host"}))
    made["volumeMounts"][0] |= mount
    expected = [asks(message, MOUNT, named)] if message else []
    assert list(judged(pod(made, volumes=[host(path)])).findings) == expected


@pytest.mark.parametrize(
    ("made", "volumes"),
    [
        pytest.param(
            plain(VOID), [host("/dev/nvidia0")], id="a volume that this container does not mount"
        ),
        pytest.param(
            mounting("/mnt", "cache"),
            [host("/dev/nvidia0"), {"name": "cache", "emptyDir": {}}],
            id="a container that mounts another volume",
        ),
        pytest.param(
            mounting("/var/run/nvidia-container-devices/0"),
            [{"name": "host", "emptyDir": {}}],
            id="no host path, so no /dev/null: the toolkit takes nothing else",
        ),
        pytest.param(mounting("/mnt"), None, id="a volume that does not exist"),
        pytest.param(
            mounting("/mnt"), [{"hostPath": {"path": "/dev"}}], id="a volume without a name"
        ),
        pytest.param(
            gpu(volumeMounts=[{"name": "host", "mountPath": "/mnt"}]),
            [host("/dev")],
            id="a container with GPUs",
        ),
        pytest.param(
            mounting("/mnt") | {"volumeMounts": [{"name": "host", "mountPath": 1, "subPath": 2}]},
            [host("/srv")],
            id="paths that are no texts",
        ),
    ],
)
def test_mounts_that_show_nothing(made: Raw, volumes: Any) -> None:
    assert judged(pod(made, volumes=volumes)).findings == ()


def test_a_long_path_is_cut_and_a_container_may_have_several_ways() -> None:
    long = "/dev/nvidia" + "0" * 3000
    made = plain(
        securityContext={"privileged": True},
        volumeMounts=[{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b"}],
    )
    obj = pod(made, volumes=[host(long, "a"), host("/usr/lib/nvidia-384", "b")])
    assert list(judged(obj).findings) == [
        appends(),
        PRIVILEGE,
        asks(DEVICE, FIRST / "volumeMounts" / 0, long[:50]),
        asks(DRIVER, FIRST / "volumeMounts" / 1, "/usr/lib/nvidia-384"),
    ]


def test_each_kind_of_container_is_judged_by_itself() -> None:
    obj = pod(gpu(), plain(name="sidecar"))
    obj["spec"]["initContainers"] = [plain(name="fetch"), gpu(shown("all"), name="warm-up")]
    obj["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    obj["spec"]["ephemeralContainers"] = [plain(shown("all"), name="debugger")]
    init, ephemeral = SPEC / "initContainers", SPEC / "ephemeralContainers" / 0 / "env" / 0
    assert list(judged(obj).findings) == [
        appends(init / 0 / "env", "fetch"),
        frees(Remove(init / 1 / "env" / 0), name="warm-up"),
        appends(SPEC / "containers" / 1 / "env", "sidecar"),
        hides(Set(ephemeral / "value", "void"), at=ephemeral, name="debugger"),
    ]


CARD = "nvidia.com/hostdev"
NODES = Inventory(
    group(
        [
            Node("gpu-1", {}, gpus={GPU: 8, MIG: 0}, others=("aliyun.com/gpu-mem",)),
            Node("net-1", {}, others=(CARD, "example.com/accelerator")),
            Node("cpu-1", {}),
        ]
    ),
    served_by_dra=frozenset({"dra.example/gpu", GPU}),
)
OLD_NODES = Inventory(
    group(
        [
            Node("old-1", {}, others=("example.com/old", "kubernetes.io/gpu-core")),
            Node("old-2", {}, gpus={GPU: 1}),
        ]
    )
)
EVERYWHERE = Guard(resources=("example.com/accelerator", "gears.example/*"))
KNOWN = replace(ENFORCED, inventory=NODES)


def on_node(name: str, node: str, amount: str = "1") -> Raw:
    spec: Raw = {"nodeName": node} if node else {}
    return pod(plain(resources={"limits": {name: amount}}), **spec)


@pytest.mark.parametrize(
    ("name", "node", "cx", "message"),
    [
        pytest.param(GPU, "", KNOWN, "", id="GPUs"),
        pytest.param(GPU, "gpu-1", KNOWN, "", id="GPUs of a node that has them"),
        pytest.param(GPU, "cpu-1", KNOWN, ELSEWHERE, id="GPUs of a node without"),
        pytest.param(GPU, "no-such", KNOWN, ELSEWHERE, id="GPUs of a node that nobody knows"),
        pytest.param(GPU, "gpu-1", ENFORCED, ELSEWHERE, id="GPUs of a node, and no inventory"),
        pytest.param(GPU, "gpu-1", replace(KNOWN, fresh=False), "", id="an old inventory will do"),
        pytest.param(MIG, "gpu-1", KNOWN, "", id="a name that its node has none of now"),
        pytest.param("nvidia.com/mig-nope", "gpu-1", KNOWN, ELSEWHERE, id="a slice of no node"),
        pytest.param("nvidia.com/mig-nope", "", KNOWN, "", id="a slice that no node offers now"),
        pytest.param("nvidia.com/nope", "gpu-1", KNOWN, ELSEWHERE, id="of nvidia.com, and a node"),
        pytest.param("nvidia.com/nope", "", KNOWN, NOWHERE, id="of nvidia.com, and no node"),
        pytest.param(
            "nvidia.com/nope", "", replace(KNOWN, fresh=False), SHARE, id="by an old inventory"
        ),
        pytest.param("nvidia.com/nope", "", ENFORCED, SHARE, id="of nvidia.com, no inventory"),
        pytest.param(CARD, "", KNOWN, SHARE, id="of nvidia.com, and some node offers it"),
        pytest.param(CARD, "net-1", KNOWN, SHARE, id="and this node offers it"),
        pytest.param(CARD, "gpu-1", KNOWN, ELSEWHERE, id="and another node offers it"),
        pytest.param("aliyun.com/gpu-mem", "", KNOWN, SHARE, id="a share"),
        pytest.param("aliyun.com/gpu-mem", "gpu-1", KNOWN, SHARE, id="a share of this node"),
        pytest.param("aliyun.com/gpu-mem", "net-1", KNOWN, ELSEWHERE, id="a share of another"),
        pytest.param("tencent.com/vcuda-core", "", KNOWN, SHARE, id="a share of no node"),
        pytest.param("example.com/accelerator", "", KNOWN, HIDE, id="another name"),
        pytest.param(
            "example.com/accelerator",
            "",
            replace(KNOWN, settings=Settings(guard=EVERYWHERE)),
            SHARE,
            id="a name in the settings",
        ),
        pytest.param(
            "gears.example/a",
            "",
            replace(KNOWN, settings=Settings(guard=EVERYWHERE)),
            SHARE,
            id="a pattern in the settings",
        ),
        pytest.param(
            "example.com/accelerator",
            "cpu-1",
            replace(KNOWN, settings=Settings(guard=EVERYWHERE)),
            ELSEWHERE,
            id="a name in the settings, and a node without",
        ),
        pytest.param(
            CLASS,
            "",
            replace(KNOWN, settings=Settings(gpu_resources=(CLASS,))),
            CLAIM,
            id="a device class that the settings call a GPU is a claim all the same",
        ),
        *(
            pytest.param(
                "kubernetes.io/gpu-core",
                node,
                replace(KNOWN, settings=settings, inventory=inventory),
                message,
                id=f"of Kubernetes itself: {what}",
            )
            for what, node, settings, inventory, message in (
                ("no node offers it", "", Settings(), NODES, NOWHERE),
                ("no node offers it, and a node", "gpu-1", Settings(), NODES, NOWHERE),
                ("no inventory", "", Settings(), None, NOWHERE),
                ("a node offers it", "", Settings(), OLD_NODES, SHARE),
                ("this node offers it", "old-1", Settings(), OLD_NODES, SHARE),
                ("resources.gpus", "", Settings(gpu_resources=("kubernetes.io/*",)), NODES, ""),
                (
                    "guard.resources",
                    "",
                    Settings(guard=Guard(resources=("kubernetes.io/gpu*",))),
                    NODES,
                    SHARE,
                ),
            )
        ),
        pytest.param("dra.example/gpu", "", KNOWN, CLAIM, id="a name that only DRA serves"),
        pytest.param(LEGACY, "cpu-1", KNOWN, NOWHERE, id="the legacy name, and a node"),
        pytest.param(LEGACY, "", ENFORCED, NOWHERE, id="the legacy name, no inventory"),
        *(
            pytest.param(
                "example.com/old",
                node,
                replace(cx, settings=Settings(legacy_resources=("example.com/old",))),
                message,
                id=f"a legacy name of the settings: {what}",
            )
            for what, node, cx, message in (
                ("no node offers it", "", KNOWN, NOWHERE),
                ("nobody knows", "", ENFORCED, SHARE),
                ("some node offers it still", "", replace(KNOWN, inventory=OLD_NODES), ""),
                ("this node offers it", "old-1", replace(KNOWN, inventory=OLD_NODES), ""),
                ("another node does", "old-2", replace(KNOWN, inventory=OLD_NODES), ELSEWHERE),
            )
        ),
        pytest.param(
            "example.com/old",
            "gpu-1",
            replace(KNOWN, settings=Settings(legacy_resources=("example.com/old",))),
            ELSEWHERE,
            id="a legacy name that a kubelet drops",
        ),
    ],
)
def test_a_name_counts_only_if_it_can_be_had(
    name: str, node: str, cx: Context, message: str
) -> None:
    expected = []
    if message == SHARE:
        expected = [notes(name)]
    elif message == CLAIM:
        expected = [appends(message=CLAIM)]
    elif message:
        expected = [appends(message=message, shown=name)]
    assert list(judged(on_node(name, node), cx).findings) == expected


def test_a_node_name_that_is_no_text_is_none() -> None:
    made = on_node(GPU, "")
    made["spec"]["nodeName"] = 7
    assert judged(made, KNOWN).findings == ()


def test_amounts_that_add_up_to_none_in_64_bits_count_as_none() -> None:
    """The scheduler sums them up, and a kubelet drops a name that its node does not have."""
    name = "example.com/gpu"
    quarter = {"resources": {"limits": {name: str(2**62)}}}
    obj = pod(*(plain(name=each, **copy.deepcopy(quarter)) for each in "abcd"))
    assert [each.message for each in judged(obj).findings] == [
        TOO_MANY.format(each, name) for each in "abcd"
    ]
    assert [each["env"] for each in obj["spec"]["containers"]] == [[VOID]] * 4


FROM_CONFIG = {"name": VARIABLE, "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}


def kai(*env: Raw, annotations: Any = None, **spec: Any) -> Raw:
    made = pod(plain(*env), **{"schedulerName": "kai-scheduler", **spec})
    made["metadata"]["annotations"] = (
        {"gpu-fraction": "0.5"} if annotations is None else annotations
    )
    return made


@pytest.mark.parametrize(
    ("made", "annotation"),
    [
        pytest.param(kai(FROM_CONFIG), "gpu-fraction", id="a fraction"),
        pytest.param(
            kai(FROM_CONFIG, annotations={"gpu-memory": "2000"}), "gpu-memory", id="memory"
        ),
        pytest.param(kai(VOID, FROM_CONFIG), "gpu-fraction", id="the last entry counts"),
        pytest.param(kai(FROM_CONFIG, shown("all")), "", id="and here it is another"),
        pytest.param(kai(FROM_SECRET), "", id="from a Secret"),
        pytest.param(kai(shown("all")), "", id="a value"),
        pytest.param(kai(), "", id="no variable"),
        pytest.param(kai(envFrom=[config()]), "", id="envFrom"),
        pytest.param(kai(FROM_CONFIG, schedulerName="volcano"), "", id="another scheduler"),
        pytest.param(kai(FROM_CONFIG, schedulerName=None), "", id="the default scheduler"),
        pytest.param(kai(FROM_CONFIG, nodeName="gpu-1"), "", id="with a node"),
        pytest.param(kai(FROM_CONFIG, annotations={}), "", id="no annotation"),
        pytest.param(
            kai(FROM_CONFIG, annotations={"gpu-fraction": "0"}), "", id="a fraction of nothing"
        ),
        pytest.param(
            kai(FROM_CONFIG, annotations={"gpu-fraction": "some"}), "", id="no number at all"
        ),
        *(
            pytest.param(kai(FROM_CONFIG, annotations={"gpu-fraction": text}), "", id=f"{text}")
            for text in ("500m", "5n", "1", "1.5", "-0.5", "nan", "inf", " 0.5", "0_5", "1e-400")
        ),
        *(
            pytest.param(
                kai(FROM_CONFIG, annotations={"gpu-fraction": text}),
                "",
                id=f"{text} is rounded to nothing, or to no more than KAI counts as nothing",
            )
            for text in ("1e-3", "0.004", "0.0099")
        ),
        *(
            pytest.param(
                kai(FROM_CONFIG, annotations={"gpu-fraction": text}), "gpu-fraction", id=f"{text}"
            )
            for text in ("1e-2", "0.01", ".5", "+0.5", "5E-1", "0.999")
        ),
        *(
            pytest.param(
                kai(FROM_CONFIG, annotations={"gpu-memory": text}), "", id=f"memory {text}"
            )
            for text in ("0", "5n", "1Gi", "1e3", "1e-30", "+5", "1.5", str(2**64), "9" * 5000)
        ),
        pytest.param(
            kai(FROM_CONFIG, annotations={"gpu-memory": str(2**63)}), "", id="memory: no int64"
        ),
        pytest.param(
            kai(FROM_CONFIG, annotations={"gpu-memory": str(2**63 - 1)}),
            "gpu-memory",
            id="the most memory that an int64 can be",
        ),
        pytest.param(
            kai(FROM_CONFIG, annotations={"gpu-fraction": "0.5", "gpu-memory": ""}),
            "",
            id="one of both is empty",
        ),
        *(
            pytest.param(
                kai(FROM_CONFIG, annotations={sort: amount, "gpu-fraction-num-devices": text}),
                sort if text in {"1", "16", str(2**31 - 1)} else "",
                id=f"{sort} of {text or 'no'} devices",
            )
            for sort, amount in (("gpu-fraction", "0.5"), ("gpu-memory", "2000"))
            for text in (
                "1",
                "16",
                str(2**31 - 1),
                str(2**31),
                str(2**58),
                "0",
                "-1",
                "",
                "x",
                "1.0",
                "+1",
            )
        ),
        *(
            pytest.param(
                kai(
                    FROM_CONFIG, annotations={"gpu-fraction": "0.5", f"nvidia.com/mig-{rest}": "0"}
                ),
                "",
                id=f"an annotation nvidia.com/mig-{rest}, which takes the place of the request",
            )
            for rest in ("1g.5gb", "3g.20gb", "", "x")
        ),
        pytest.param(
            kai(FROM_CONFIG, annotations={"gpu-fraction": "0.5", "nvidia.com/migrated": "0"}),
            "gpu-fraction",
            id="another annotation of nvidia.com",
        ),
        pytest.param(
            kai(FROM_CONFIG, annotations={"gpu-fraction": "0.5", "gpu-memory": "x"}),
            "",
            id="one of both is no amount",
        ),
        pytest.param(
            kai(FROM_CONFIG, annotations={"gpu-fraction-num-devices": "2"}), "", id="how many only"
        ),
    ],
)
def test_a_fraction_by_annotation_needs_all_its_signs(made: Raw, annotation: str) -> None:
    env = copy.deepcopy(made["spec"]["containers"][0].get("env"))
    if annotation:
        found = notes(annotation, FRACTION, ENV)
        assert list(judged(made, KNOWN).findings) == [found]
        assert made["spec"]["containers"][0]["env"] == env
    else:
        judged(made, KNOWN)
        assert made["spec"]["containers"][0]["env"] == [VOID]


def test_the_audit_of_a_fraction_knows_that_the_scheduler_chose_its_node() -> None:
    seen = Pod(kai(FROM_CONFIG, nodeName="gpu-1"))
    assert rule.exposures(seen, Settings(), "team-a") == ()


FINAL = replace(KNOWN, final=True)


def zero_of(name: str, *env: Raw) -> Raw:
    """A limit that the scheduler does not count, since the request is 0."""
    return plain(*env, resources={"limits": {name: "1"}, "requests": {name: "0"}})


@pytest.mark.parametrize(
    ("made", "messages"),
    [
        pytest.param(pod(plain(VOID)), [], id="void"),
        pytest.param(pod(plain()), [HIDE], id="nothing"),
        pytest.param(pod(plain(shown("all"), VOID)), [], id="the last entry counts: void"),
        pytest.param(pod(plain(VOID, shown("all"))), [HIDE], id="the last entry counts: all"),
        pytest.param(pod(plain(shown("void,all"))), [HIDE], id="void in a list shows the others"),
        pytest.param(pod(plain(shown("none"))), [HIDE], id="none, which old toolkits take for all"),
        pytest.param(pod(plain(FROM_CONFIG)), [HIDE], id="valueFrom"),
        pytest.param(pod(plain(envFrom=[config()])), [HIDE], id="envFrom"),
        pytest.param(pod(plain(VOID, envFrom=[config()])), [], id="void wins over envFrom"),
        pytest.param(pod(gpu()), [], id="GPUs"),
        pytest.param(pod(gpu(VOID)), [], id="GPUs and void, to its own loss"),
        pytest.param(pod(gpu(shown("all"))), [PLUGIN], id="GPUs and all"),
        pytest.param(on_node(GPU, "cpu-1"), [ELSEWHERE], id="GPUs that its node has not"),
        pytest.param(on_node("nvidia.com/nope", ""), [NOWHERE], id="a name of no node"),
        pytest.param(on_node(GPU, "gpu-1", str(2**64)), [TOO_MANY], id="too many"),
        pytest.param(on_node(CARD, ""), [], id="a name that may bring GPUs"),
        pytest.param(on_node(LEGACY, ""), [NOWHERE], id="the legacy name, which nobody renamed"),
        pytest.param(pod(zero_of(LEGACY)), [HIDE], id="request 0 of the legacy name"),
        pytest.param(pod(zero_of(LEGACY, VOID)), [], id="the same, and void"),
        pytest.param(
            pod(zero_of("kubernetes.io/gpu", shown("all"))), [HIDE], id="request 0 of a native name"
        ),
        pytest.param(
            pod(plain(VOID), initContainers=[zero_of("kubernetes.io/gpu")]),
            [HIDE],
            id="request 0 in an init container",
        ),
        pytest.param(kai(FROM_CONFIG), [], id="a fraction"),
        pytest.param(pod(claiming()), [CLAIM], id="a claim"),
        pytest.param(
            pod(plain(VOID, securityContext={"privileged": True})), [], id="privileged is told once"
        ),
        pytest.param(
            pod(plain(name="a"), plain(VOID, name="b"), plain(name="c")), [HIDE, HIDE], id="two"
        ),
    ],
)
def test_what_reaches_the_end_of_admission(made: Raw, messages: list[str]) -> None:
    before = copy.deepcopy(made)
    verdict = run((rule,), made, FINAL, every_pod=True)
    assert verdict.failed == ()
    assert verdict.patch == []
    assert made == before
    assert [each.action for each in verdict.findings] == ["denied"] * len(messages)
    for each, message in zip(verdict.findings, messages, strict=True):
        assert message.split("{}")[1] in each.message
    judged(made, KNOWN)
    assert run((rule,), made, FINAL, every_pod=True).findings == (), "what the guard made is safe"


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.AUDIT, Mode.OFF])
def test_the_end_of_admission_says_nothing_where_the_guard_changes_nothing(mode: Mode) -> None:
    cx = replace(FINAL, modes=Modes(mode))
    assert run((rule,), pod(plain(shown("all"))), cx, every_pod=True).findings == ()


def test_the_end_of_admission_judges_only_the_ephemeral_containers_of_an_update() -> None:
    obj = pod(plain(shown("all")))
    obj["spec"]["ephemeralContainers"] = [plain(name="old"), plain(name="new")]
    cx = replace(FINAL, only_ephemeral=frozenset({"new"}))
    (found,) = run((rule,), obj, cx, every_pod=True).findings
    assert found.at == SPEC / "ephemeralContainers" / 1 / "env"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(
            {"debugger-2"},
            [appends(SPEC / "ephemeralContainers" / 1 / "env", "debugger-2")],
            id="only what the update adds may be touched",
        ),
        pytest.param(set(), [], id="an update that adds nothing: untouched"),
        pytest.param({"web"}, [], id="a regular container of that name: untouched"),
    ],
)
def test_an_update_of_ephemeral_containers(new: set[str], expected: list[Finding]) -> None:
    obj = pod(plain())
    obj["spec"]["ephemeralContainers"] = [plain(name="debugger-1"), plain(name="debugger-2")]
    cx = Context(modes=Modes(Mode.ENFORCE), only_ephemeral=frozenset(new))
    assert list(judged(obj, cx).findings) == expected


OPERATOR = Exempt(("gpu-operator",))
EXPORTER = Exempt(("monitor*",), (("app", "dcgm-exporter"), ("tier", "gpu")))
ANYWHERE = Exempt(labels=(("gpu-management", "yes"),))


@pytest.mark.parametrize(
    ("namespace", "labels", "exempt"),
    [
        pytest.param("gpu-operator", None, True, id="a namespace by its name"),
        pytest.param("gpu-operator-2", None, False, id="a longer name is another namespace"),
        pytest.param(
            "monitoring", {"app": "dcgm-exporter", "tier": "gpu"}, True, id="namespace and labels"
        ),
        pytest.param("monitoring", {"app": "dcgm-exporter"}, False, id="one label is missing"),
        pytest.param("monitoring", None, False, id="no labels at all"),
        pytest.param("monitoring", "junk", False, id="labels that are no map"),
        pytest.param(
            "team-a",
            {"app": "dcgm-exporter", "tier": "gpu"},
            False,
            id="the labels elsewhere: a tenant could write them",
        ),
        pytest.param("team-a", {"gpu-management": "yes"}, True, id="a label in any namespace"),
        pytest.param("team-a", {"gpu-management": "no"}, False, id="another value of the label"),
    ],
)
def test_management_software_is_exempt(namespace: str, labels: Any, *, exempt: bool) -> None:
    settings = Settings(guard=Guard((OPERATOR, EXPORTER, ANYWHERE)))
    obj = pod(plain(shown("all"), securityContext={"privileged": True}))
    obj["metadata"]["labels"] = labels
    view = Pod(copy.deepcopy(obj))
    cx = Context(settings, modes=Modes(Mode.ENFORCE), namespace=namespace)
    assert (judged(obj, cx).findings == ()) is exempt
    assert (rule.exposures(view, settings, namespace) == ()) is exempt


def test_the_default_exempts_where_charts_install_the_device_plugin() -> None:
    obj = pod(plain(shown("all")))
    at_home = Context(modes=Modes(Mode.ENFORCE), namespace="nvidia-device-plugin")
    assert judged(copy.deepcopy(obj), at_home).findings == ()
    assert judged(obj).findings != ()


def test_the_names_of_gpus_are_those_of_the_settings() -> None:
    settings = Settings(gpu_resource="vendor.example/gpu", gpu_resources=("nvidia.com/a100",))
    cx = Context(settings, modes=Modes(Mode.ENFORCE))
    for name in ("vendor.example/gpu", "nvidia.com/a100"):
        assert judged(pod(plain(resources={"limits": {name: 1}})), cx).findings == ()


EXPOSED = [
    pytest.param(plain(), (), id="a plain container"),
    pytest.param(plain(VOID), (), id="void"),
    *(
        pytest.param(zero_of(name, *env), exposed, id=f"request 0 of {name}: {what}")
        for name in (LEGACY, "kubernetes.io/gpu")
        for what, env, exposed in (("nothing", [], ()), ("all", [shown("all")], ("variable",)))
    ),
    pytest.param(plain(shown("none")), (), id="none shows nothing since toolkit 1.18.2"),
    pytest.param(plain(shown("")), (), id="an empty value"),
    pytest.param(plain({"name": VARIABLE}), (), id="no value"),
    pytest.param(plain(shown("all,void")), (), id="void anywhere in the list"),
    pytest.param(plain(shown("all"), VOID), (), id="the last entry counts: void"),
    pytest.param(plain(VOID, shown("all")), ("variable",), id="the last entry counts: all"),
    pytest.param(plain(shown("0")), ("variable",), id="a GPU by its number"),
    pytest.param(plain(FROM_SECRET), ("variable",), id="valueFrom"),
    pytest.param(plain(envFrom=[config()]), (), id="envFrom of a plain container"),
    pytest.param(gpu(), (), id="a container with GPUs"),
    pytest.param(gpu(shown("all")), ("variable",), id="GPUs and all"),
    pytest.param(gpu(VOID, envFrom=[config()]), (), id="GPUs and void, which wins"),
    pytest.param(gpu(envFrom=[config()]), ("env-from",), id="GPUs and envFrom"),
    pytest.param(gpu(securityContext={"privileged": True}), (), id="GPUs and privileged"),
    pytest.param(claiming(FROM_SECRET), ("variable",), id="a claim and valueFrom"),
    pytest.param(
        plain(shown("all"), resources={"limits": {"nvidia.com/a100": 1}}),
        (),
        id="a resource of nvidia.com that nobody listed",
    ),
    pytest.param(
        plain(
            FROM_SECRET,
            securityContext={"privileged": True},
            volumeMounts=[
                {"name": "list", "mountPath": "/var/run/nvidia-container-devices/0"},
                {"name": "driver", "mountPath": "/usr/local/nvidia"},
                {"name": "device", "mountPath": "/dev/nvidia0"},
                {"name": "driver", "mountPath": "/once/more"},
            ],
        ),
        ("variable", "privileged", "device", "driver-path", "device-list"),
        id="all at once, each once",
    ),
]


@pytest.mark.parametrize(("made", "expected"), EXPOSED)
def test_what_the_audit_sees(made: Raw, expected: tuple[str, ...]) -> None:
    volumes = [
        host("/dev/null", "list"),
        host("/usr/local/nvidia", "driver"),
        host("/dev/nvidia0", "device"),
    ]
    seen = Pod(pod(made, volumes=volumes))
    assert rule.exposures(seen, Settings(), "team-a") == expected


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
        {"os": {"name": "windows"}},
        {"nodeSelector": {"kubernetes.io/os": "windows"}},
    ],
    ids=["a mirror pod", "a pod for Windows", "a pod for nodes of Windows"],
)
def test_what_the_guard_does_not_judge_is_not_audited(more: dict[str, Any]) -> None:
    obj = pod(plain(shown("all"), securityContext={"privileged": True}))
    assert rule.exposures(Pod(obj), Settings(), "team-a")
    obj["metadata"] |= more.pop("metadata", {})
    obj["spec"] |= more
    assert rule.exposures(Pod(obj), Settings(), "team-a") == ()


def test_the_audit_adds_up_the_containers_of_a_pod() -> None:
    seen = Pod(pod(plain(shown("all")), gpu(envFrom=[config()]), plain(), plain(VOID)))
    assert rule.exposures(seen, Settings(), "team-a") == ("variable", "env-from")
    assert set(rule.exposures(seen, Settings(), "team-a")) <= set(rule.EXPOSURES)


entries = st.sampled_from([VOID, HOME, FROM_SECRET, *map(shown, ("all", "none", "", "0"))]).map(
    copy.deepcopy  # no map is in two places of an object
)
resources = st.fixed_dictionaries(
    {},
    optional={
        "claims": st.lists(st.just({"name": "gpu"}), max_size=1),
        **{
            section: st.dictionaries(
                st.sampled_from([GPU, LEGACY, MIG, CLASS, "cpu", "nvidia.com/a100"]),
                st.sampled_from([0, "0", "1", "500m", "junk"]),
                max_size=2,
            )
            for section in ("limits", "requests")
        },
    },
)
containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b"]), "resources": resources},
    optional={
        "env": st.lists(entries, max_size=4) | st.none(),
        "envFrom": st.lists(st.just(config()), max_size=1),
        "securityContext": st.fixed_dictionaries({"privileged": st.booleans()}),
        "volumeMounts": st.lists(
            st.sampled_from([{"name": "host", "mountPath": "/dev"}]), max_size=2
        ),
    },
)
KINDS = ("initContainers", "containers", "ephemeralContainers")
specs = st.fixed_dictionaries(
    {kind: st.lists(containers, max_size=3) for kind in KINDS}
    | {"volumes": st.just([host("/dev/nvidia0")])}
)


def others(made: Raw) -> list[Raw]:
    return [each for each in made.get("env") or [] if each["name"] != VARIABLE]


def without_env(made: Raw) -> Raw:
    return {key: value for key, value in made.items() if key != "env"}


def asked(made: Raw) -> set[str]:
    """Names asked for with more than zero, worked out apart from the rule."""
    limits, requests = (made["resources"].get(each, {}) for each in ("limits", "requests"))
    return {
        name
        for name in {*limits, *requests}
        if (requests[name] if name in requests else limits[name]) in {"1", "500m"}
    }


@given(specs)
def test_whatever_the_pod_only_the_variable_changes_and_void_stands_once(spec: Raw) -> None:
    before = copy.deepcopy(spec)
    obj: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    verdict = judged(obj)  # which also says that a second run finds nothing to edit
    assert all(operation["path"].startswith("/spec/") for operation in verdict.patch)
    for kind in KINDS:
        for was, now in zip(before[kind], spec[kind], strict=True):
            assert without_env(now) == without_env(was)
            assert others(now) == others(was)
            values = [each for each in now.get("env") or [] if each["name"] == VARIABLE]
            if asked(was) & {GPU, MIG}:
                assert values == []
            elif "nvidia.com/a100" in asked(was):
                assert now == was
            else:
                assert values == [VOID]


@given(specs, st.sets(st.sampled_from(["a", "b"])))
def test_an_update_changes_nothing_but_the_containers_that_it_adds(
    spec: Raw, new: set[str]
) -> None:
    before = copy.deepcopy(spec)
    obj: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    cx = Context(modes=Modes(Mode.ENFORCE), only_ephemeral=frozenset(new))
    judged(obj, cx)
    assert {**spec, "ephemeralContainers": 0} == {**before, "ephemeralContainers": 0}
    for was, now in zip(before["ephemeralContainers"], spec["ephemeralContainers"], strict=True):
        assert was["name"] in new or now == was
