"""Groups p01-p17: pods that are incomplete, odd, huge, special or malicious.

Whatever the pod, the answer is "allowed", and a patch applies (tests/hostile/wire.py applies it
with jsonpatch, which is not what made or tried it).
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile.wire import (
    LEGACY,
    MODERN,
    UID,
    gpu_pod,
    limits,
    repaired,
    review,
    unannotated,
)
from tests.log_lines import whole_lines

if TYPE_CHECKING:
    from tests.hostile.wire import Server

pytestmark = pytest.mark.programs

UNTOUCHED = {"uid": UID, "allowed": True}
BIG_SECONDS = 1.0  # of processor time; 0.5 on a machine of one's own
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"


def container(amount: Any = "2", name: str = "c") -> dict[str, Any]:
    return {
        "name": name,
        "image": "i",
        "resources": {"limits": {LEGACY: amount}, "requests": {LEGACY: amount}},
    }


def with_metadata(**metadata: Any) -> dict[str, Any]:
    pod = gpu_pod()
    pod["metadata"] |= metadata
    return pod


def with_first(value: Any) -> dict[str, Any]:
    """A pod whose first container is this, and whose second requests GPUs."""
    return gpu_pod(containers=[value, container()])


def with_container(**fields: Any) -> dict[str, Any]:
    return gpu_pod(containers=[{**container(), **fields}])


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"metadata": {"name": "x"}}, id="p01 no spec"),
        pytest.param({**gpu_pod(), "spec": None}, id="p01 spec is null"),
        pytest.param({**gpu_pod(), "spec": []}, id="p01 spec is a list"),
        pytest.param({**gpu_pod(), "spec": "x"}, id="p01 spec is a text"),
        pytest.param({**gpu_pod(), "spec": {}}, id="p01 an empty spec"),
        pytest.param({}, id="p01 an empty object"),
        pytest.param(gpu_pod(containers=None), id="p02 containers is null"),
        pytest.param(gpu_pod(containers=[]), id="p02 no containers"),
        pytest.param(gpu_pod(containers={}), id="p02 containers is an object"),
        pytest.param(gpu_pod(containers="x"), id="p02 containers is a text"),
        pytest.param(gpu_pod(containers=[None]), id="p03 the only container is null"),
        pytest.param(with_container(resources=None), id="p05 resources is null"),
        pytest.param(with_container(resources=[]), id="p05 resources is a list"),
        pytest.param(
            with_container(resources={"limits": None, "requests": None}), id="p05 limits is null"
        ),
        pytest.param(with_container(resources={"limits": [LEGACY]}), id="p05 limits is a list"),
        pytest.param(
            with_metadata(annotations={"kubernetes.io/config.mirror": "abc"}), id="p12 mirror pod"
        ),
        pytest.param(gpu_pod(os={"name": "windows"}), id="p12 Windows by os.name"),
        pytest.param(
            gpu_pod(nodeSelector={"kubernetes.io/os": "windows"}), id="p12 Windows by label"
        ),
        pytest.param(
            gpu_pod(nodeSelector={"beta.kubernetes.io/os": "windows"}), id="p12 by the old label"
        ),
        pytest.param(
            gpu_pod(containers=[{"name": "c", "image": "i"}]), id="a pod that requests no GPU"
        ),
    ],
)
def test_pods_that_pass_untouched(server: Server, pod: dict[str, Any]) -> None:
    assert server.mutate(pod).response == UNTOUCHED


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(with_first(None), id="p03 a container that is null"),
        pytest.param(with_first("x"), id="p03 a container that is a text"),
        pytest.param(with_first([]), id="p03 a container that is a list"),
        pytest.param(with_first({}), id="p03 an empty container"),
        pytest.param(with_first({"name": 7, "resources": 7}), id="p03 numbers in a container"),
        pytest.param(with_first({"name": ["x"], "env": "x"}), id="p03 a list as name"),
    ],
)
def test_p03_the_other_container_is_repaired(server: Server, pod: dict[str, Any]) -> None:
    good = repaired(pod, server.mutate(pod))
    assert limits(good, 1) == {MODERN: "2"}
    assert good["spec"]["containers"][0] == pod["spec"]["containers"][0]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({**gpu_pod(), "metadata": {}}, id="p04 empty metadata"),
        pytest.param({**gpu_pod(), "metadata": None}, id="p04 metadata is null"),
        pytest.param({"spec": gpu_pod()["spec"]}, id="p04 no metadata, kind or apiVersion"),
        pytest.param({**gpu_pod(), "metadata": []}, id="p04 metadata is a list"),
        pytest.param(
            with_metadata(labels=None, annotations=None), id="p05 labels and annotations are null"
        ),
        pytest.param(with_metadata(annotations=[1]), id="p05 annotations is a list"),
        pytest.param(with_metadata(ownerReferences=[None, "x", {}]), id="p05 odd owners"),
        pytest.param(with_container(env=None, volumeMounts=None), id="p05 env is null"),
        pytest.param(with_container(env=[None, {}, "x", {"name": 7}]), id="p05 odd variables"),
        pytest.param(gpu_pod(tolerations=None), id="p05 tolerations is null"),
        pytest.param(gpu_pod(tolerations=[None, "x", {"key": 7}]), id="p05 odd tolerations"),
        pytest.param(gpu_pod(nodeSelector=None, affinity=None), id="p05 affinity is null"),
        pytest.param(gpu_pod(affinity={"nodeAffinity": None}), id="p05 nodeAffinity is null"),
        pytest.param(gpu_pod(volumes=None), id="p05 volumes is null"),
        pytest.param(gpu_pod(volumes=[None, "x", {}, {"hostPath": None}]), id="p05 odd volumes"),
        pytest.param(gpu_pod(initContainers=None, ephemeralContainers=None), id="p05 other kinds"),
        pytest.param(
            with_metadata(
                labels={
                    "a/b": "1",
                    "~": "2",
                    "~1": "3",
                    "~0": "4",
                    "": "5",
                    "ключ": "6",
                    "k" * 317: "7",
                }
            ),
            id="p06 odd label keys",
        ),
        pytest.param(gpu_pod(hostNetwork=True), id="p12 hostNetwork"),
        pytest.param(gpu_pod(nodeName="node-1"), id="p12 nodeName"),
        pytest.param(gpu_pod(os={"name": "linux"}), id="p12 Linux by name"),
        pytest.param(
            with_metadata(annotations={"kubernetes.io/config.source": "file"}), id="p12 static pod"
        ),
        pytest.param(
            with_metadata(annotations={"gpu-webhook/mutated": "true", "mutated": "true"}),
            id="p11 forged marks: not trusted",
        ),
        pytest.param({**gpu_pod(), "metadata": {"generateName": "x-"}}, id="p14 generateName only"),
        pytest.param(with_metadata(name="x" * 4000), id="p14 a name of 4,000 characters"),
        pytest.param(with_metadata(name=None), id="p14 name is null"),
        pytest.param(with_metadata(name={"a": 1}), id="p14 name is an object"),
        pytest.param(
            gpu_pod(
                nodeSelector={MODERN + ".product": "none-such"},
                affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": 7}},
            ),
            id="p15 what contradicts us",
        ),
        pytest.param(gpu_pod(futureThing={"x": [1, 2]}), id="p17 an unknown field"),
    ],
)
def test_pods_that_are_repaired(server: Server, pod: dict[str, Any]) -> None:
    good = repaired(pod, server.mutate(pod))
    assert limits(good) == {MODERN: "2"}
    assert LEGACY not in json.dumps(good["spec"])
    assert {**unannotated(good), "spec": ""} == {**unannotated(pod), "spec": ""}


@pytest.mark.parametrize(
    ("amount", "whole"),
    [
        pytest.param("8", "8", id="p07 8 as text"),
        pytest.param(8, 8, id="p07 8"),
        pytest.param("8.0", "8", id="p07 8.0"),
        pytest.param("8e0", "8", id="p07 8e0"),
        pytest.param("1k", "1000", id="p07 1k"),
        pytest.param("500m", "1", id="p07 500m is rounded up"),
        pytest.param("1Ei", str(2**60), id="p07 1Ei"),
        pytest.param(10**30, str(10**30), id="p07 10^30, exactly"),
        pytest.param(10**30 + 1, str(10**30 + 1), id="p07 10^30 + 1, exactly"),
    ],
)
def test_p07_amounts_stay_exact(server: Server, amount: Any, whole: Any) -> None:
    pod = gpu_pod(containers=[container(amount)])
    good = repaired(pod, server.mutate(pod))
    assert LEGACY not in limits(good)
    got = limits(good)[MODERN]
    assert str(got) == str(whole) or got == amount


@pytest.mark.parametrize(
    "amount",
    [
        pytest.param("0", id="p07 zero"),
        pytest.param("-1", id="p07 negative"),
        pytest.param(" 8", id="p07 a space before"),
        pytest.param("", id="p07 an empty text"),
        pytest.param(True, id="p07 true"),
        pytest.param([8], id="p07 a list"),
        pytest.param({}, id="p07 an object"),
        pytest.param(None, id="p07 null"),
        pytest.param("NaN", id="p07 NaN as text"),
        pytest.param("9" * 5000, id="p07 5,000 digits as text"),
        pytest.param("1e999999999", id="p07 an exponent that would fill the memory"),
        pytest.param("0x10", id="p07 hexadecimal"),
        pytest.param("٨", id="p07 an Arabic digit"),
    ],
)
def test_p07_what_is_no_amount_is_answered(server: Server, amount: Any) -> None:
    pod = gpu_pod(containers=[container(amount)])
    before = server.cpu_seconds()
    reply = server.mutate(pod)
    assert server.cpu_seconds() - before <= BIG_SECONDS
    good = repaired(pod, reply)
    amounts = good["spec"]["containers"][0]["resources"].get("limits", {})
    assert amounts.get(MODERN) in [None, amount]


@pytest.mark.parametrize("kind", ["initContainers", "containers"])
def test_p08_every_kind_of_container_is_repaired(server: Server, kind: str) -> None:
    pod = gpu_pod()
    pod["spec"][kind] = [{**container(), "restartPolicy": "Always"}]
    good = repaired(pod, server.mutate(pod))
    assert limits(good, 0, kind) == {MODERN: "2"}


def test_p08_requests_alone_get_a_limit(server: Server) -> None:
    pod = gpu_pod(containers=[{"name": "c", "resources": {"requests": {LEGACY: "1"}}}])
    assert limits(repaired(pod, server.mutate(pod))) == {MODERN: "1"}


def test_p08_the_limit_wins_over_another_request(server: Server) -> None:
    pod = gpu_pod(
        containers=[
            {"name": "c", "resources": {"requests": {LEGACY: "1"}, "limits": {LEGACY: "2"}}}
        ]
    )
    resources = repaired(pod, server.mutate(pod))["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {MODERN: "2"}, "requests": {MODERN: "2"}}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"resources": {"limits": {LEGACY: "2"}}}, id="p08 resources of the pod"),
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, id="p08 DRA claims"),
        pytest.param(
            {"ephemeralContainers": [{"name": "e", "image": "i"}]}, id="p08 ephemeral containers"
        ),
    ],
)
def test_p08_other_routes_to_gpus_stay(server: Server, spec: dict[str, Any]) -> None:
    pod = gpu_pod(**spec)
    good = repaired(pod, server.mutate(pod))
    assert limits(good) == {MODERN: "2"}
    for field, value in spec.items():
        assert good["spec"][field] == value


@pytest.mark.parametrize(
    ("pod", "is_patched"),
    [
        pytest.param(gpu_pod(containers=[container(), container()]), True, id="p09 one name twice"),
        pytest.param(
            gpu_pod(containers=[container(name=f"c{n}") for n in range(100)]),
            True,
            id="p09 100 GPU containers",
        ),
        pytest.param(
            gpu_pod(containers=[container(name=f"c{n}") for n in range(1000)]),
            False,
            id="p09 1,000 GPU containers: a patch beyond 64 KB is not sent",
        ),
        pytest.param(
            with_container(env=[{"name": f"V{n}", "value": "x"} for n in range(9_000)]),
            True,
            id="p09 9,000 variables",
        ),
        pytest.param(
            gpu_pod(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(10_000)]),
            True,
            id="p09 10,000 tolerations",
        ),
        pytest.param(
            gpu_pod(volumes=[{"name": f"v{n}", "emptyDir": {}} for n in range(10_000)]),
            True,
            id="p09 10,000 volumes",
        ),
        pytest.param(
            with_metadata(annotations={"big": "x" * 262_000}), True, id="p16 256 KB of annotations"
        ),
        pytest.param(
            with_metadata(annotations={"big": "x" * 263_000}), False, id="p16 more than 256 KiB"
        ),
        pytest.param(with_container(args=["x" * 1_490_000]), True, id="p16 just below 1.5 MB"),
        pytest.param(with_container(args=["x" * 1_600_000]), False, id="p16 more than 1.5 MB"),
        pytest.param(
            gpu_pod(tolerations=[{}] * 101_000), False, id="p09 more entries than are looked at"
        ),
    ],
)
def test_big_pods(server: Server, pod: dict[str, Any], is_patched: bool) -> None:  # noqa: FBT001
    body = review(pod)
    before = server.cpu_seconds()
    reply = server.post(body)
    assert server.cpu_seconds() - before <= BIG_SECONDS
    assert len(reply.response["warnings"]) <= 12
    assert all(len(warning) <= 256 for warning in reply.response["warnings"])
    if is_patched:
        assert limits(repaired(pod, reply)) == {MODERN: "2"}
    else:
        assert "patch" not in reply.response
        assert "without repair" in reply.response["warnings"][0]


def test_p16_annotations_do_not_grow(server: Server) -> None:
    pod = with_metadata(annotations={"big": "x" * 262_140})  # all that the API server takes
    good = repaired(pod, server.mutate(pod))
    assert good["metadata"] == pod["metadata"]


def test_p10_what_we_made_is_left_alone(server: Server) -> None:
    pod = gpu_pod()
    good = repaired(pod, server.mutate(pod))
    assert "patch" not in server.mutate(good).response


NASTY = [
    pytest.param("$(touch /tmp/x) `id` ${HOME}", id="p13 shell"),
    pytest.param('a\nlevel=error\r\n{"level":"error"}', id="p13 newlines"),
    pytest.param("\x1b[31mred\x1b[0m\x07", id="p13 ANSI"),
    pytest.param("%s%n%(levelname)s {} {0} {self.__class__}", id="p13 formats"),
    pytest.param("\x00\x01\x7f\x9b", id="p13 control characters"),
    pytest.param("\u202eetirw\u2028line\ufeff", id="p13 text directions"),
    pytest.param("{{ 7*7 }} {% raw %} <script>alert(1)</script>", id="p13 templates"),
    pytest.param("😀" * 2000, id="p13 2,000 faces"),
]


@pytest.mark.parametrize("text", NASTY)
def test_p13_texts_of_the_pod_do_no_harm(server: Server, text: str) -> None:
    pod = with_container(name=text, image=text, command=[text], env=[{"name": text, "value": text}])
    pod["metadata"] |= {"name": text, "namespace": text, "annotations": {AFFINITY: text}}
    pod["spec"]["nodeSelector"] = {"alpha.kubernetes.io/nvidia-gpu-name": text}
    log = len(whole_lines(server.stdout))
    reply = server.mutate(pod, namespace=text, name=text)
    assert limits(repaired(pod, reply)) == {MODERN: "2"}
    for warning in reply.response["warnings"]:
        assert "\n" not in warning
        assert warning.isprintable()
        assert len(warning) <= 256
    server.mutate(gpu_pod(), uid="after")
    lines = _lines_after(server, log, "after")
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert [json.loads(line)["level"] for line in lines] == ["info"] * len(lines)


def test_p13_a_secret_does_not_reach_the_log(server: Server) -> None:
    """Names are logged, nothing else of the pod is: no variables, arguments or annotations."""
    secret = "hunter2-hunter2"  # noqa: S105
    pod = with_container(
        env=[{"name": "PASSWORD", "value": secret}], args=[secret], image=secret, command=[secret]
    )
    pod["metadata"]["annotations"] = {AFFINITY: f"{{{secret}", "a": secret}
    pod["metadata"]["labels"] = {"a": secret}
    broken = copy.deepcopy(pod)
    broken["spec"]["containers"][0]["resources"]["limits"] = {LEGACY: secret}
    log = len(whole_lines(server.stdout))
    for each in (pod, broken):
        assert server.mutate(each).response["allowed"] is True
    server.mutate(gpu_pod(), uid="after")
    assert secret not in "".join(_lines_after(server, log, "after"))
    assert secret not in server.stderr.read_text()


def _lines_after(server: Server, position: int, last_uid: str) -> list[str]:
    """The log from this position on, up to the line about the last call; it is written late."""
    for _ in range(100):
        lines = (
            whole_lines(server.stdout)[position:].decode().splitlines()
        )  # also at U+2028, as some viewers do
        if any(f'"uid":"{last_uid}"' in line for line in lines):
            return lines
        server.mutate({})
    raise AssertionError(f"no line about {last_uid}")
