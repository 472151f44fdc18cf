from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest
import yaml

from webhook.core.modes import IGNORE
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from tests.cli.conftest import Command

EXAMPLES = Path(__file__).parents[2] / "examples"
LEGACY, TODAY = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"


def pod(limits: dict[str, Any] | None = None, **annotations: str) -> dict[str, Any]:
    container = {"name": "main", "image": "cuda", "resources": {"limits": limits or {}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {"containers": [container]},
    }


def deployment(kind: str = "Deployment") -> dict[str, Any]:
    template = {k: v for k, v in pod({LEGACY: 1}).items() if k in ("metadata", "spec")}
    spec: dict[str, Any] = {"template": template}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "d"}, "spec": spec}


def review(obj: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "default",
            "operation": "CREATE",
            "object": obj,
        },
    }


TOLERATION = {"key": TODAY, "operator": "Exists", "effect": "NoSchedule"}
WORDS = """\
apiVersion: v1
kind: Pod
metadata:
  name: p
  annotations: {time: 12:30:45, date: 2017-03-01}
spec:
  containers:
  - {name: c, image: i, args: [22:22, 0o17, "y", =, 1e3, "1e3", 0644, yes]}
"""


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_words_are_what_kubectl_takes_them_for(form: str, gpu_webhook: Command) -> None:
    """As `kubectl label --local -f FILE a=b -o json` of 1.36 has them."""
    done = gpu_webhook("review", "-f", "-", "-o", form, stdin=WORDS)
    (document,) = documents.read(done.out).documents
    obj = document.data["object"]
    assert obj["metadata"]["annotations"] == {"time": "12:30:45", "date": "2017-03-01"}
    args = obj["spec"]["containers"][0]["args"]
    assert args == ["22:22", 15, "y", "=", 1000.0, "1e3", 420, True]
    assert [type(each) for each in args] == [str, int, str, str, float, str, int, bool]


def test_nothing_is_repaired_in_a_namespace_that_opted_out(
    tmp_path: Path, gpu_webhook: Command
) -> None:
    """As admission has it; the pod's own label keeps repairs off, and the policy stays."""
    inventory = tmp_path / "inventory.yaml"
    named = {"name": "default", "labels": {IGNORE: "true"}}
    known = [{"kind": "Namespace", "metadata": named}, {"kind": "Node", "metadata": {"name": "n"}}]
    listed = [{"apiVersion": "v1", **each} for each in known]
    inventory.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}))
    manifest = json.dumps(pod({LEGACY: 1}))
    done = gpu_webhook("review", "-f", "-", f"--inventory={inventory}", stdin=manifest)
    assert (done.code, done.out) == (0, f"Pod/p: left alone ({IGNORE})\n")


FINE = {**pod({TODAY: 1}), "spec": {**pod({TODAY: 1})["spec"], "tolerations": [TOLERATION]}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
BAD_AFFINITY = {"scheduler.alpha.kubernetes.io/affinity": "{"}


@pytest.mark.parametrize(
    ("document", "code"),
    [
        pytest.param(pod(), 0, id="a plain pod: nothing found"),
        pytest.param(SERVICE, 0, id="an object without pods: nothing found"),
        pytest.param(FINE, 0, id="a GPU pod of today that tolerates the taint: nothing found"),
        pytest.param(pod({LEGACY: 1}), 2, id="a legacy pod: repaired"),
        pytest.param(deployment(), 2, id="a legacy template: repaired"),
        pytest.param(deployment("CronJob"), 2, id="a template below a job template: repaired"),
        pytest.param(
            pod({LEGACY: 1}, **BAD_AFFINITY), 3, id="an annotation that is no JSON: a person"
        ),
        pytest.param(pod({LEGACY: "x"}), 3, id="an amount that is none: a person"),
        pytest.param(
            {"apiVersion": "v1", "kind": "List", "items": [pod(), pod({LEGACY: 1})]},
            2,
            id="a List: the worst of its items counts",
        ),
        pytest.param(review(pod()), 0, id="a review of a plain pod: nothing found"),
        pytest.param(review(pod({LEGACY: "1"})), 2, id="a review of a legacy pod: repaired"),
        pytest.param(
            review(pod({LEGACY: "1"}, **BAD_AFFINITY)), 3, id="a review that needs manual changes"
        ),
        pytest.param(review(SERVICE), 0, id="a review of something else: nothing found"),
    ],
)
@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_the_exit_code_says_what_was_found(
    document: dict[str, Any], code: int, output: str, gpu_webhook: Command
) -> None:
    done = gpu_webhook("review", "-f", "-", "-o", output, stdin=json.dumps(document))

    assert (done.code, done.err) == (code, "")


def test_a_repaired_pod_comes_out_as_data(gpu_webhook: Command) -> None:
    done = gpu_webhook("review", "-f", "-", "-o", "json", stdin=json.dumps(pod({LEGACY: 2})))

    data = json.loads(done.out)
    assert data["verdict"] == "repaired"
    assert [each["code"] for each in data["findings"]] == ["GPU101", "GPU201"]
    assert data["findings"][0]["path"] == f"spec.containers[0].resources.limits[{LEGACY}]"
    container = data["object"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {TODAY: 2}
    assert (
        yaml.safe_load(
            gpu_webhook("review", "-f", "-", "-o", "yaml", stdin=json.dumps(pod({LEGACY: 2}))).out
        )
        == data
    )


def test_a_review_comes_out_as_the_answer_of_the_server(gpu_webhook: Command) -> None:
    sent = review(pod({LEGACY: "2"}))

    answer = json.loads(gpu_webhook("review", "-f", "-", "-o", "json", stdin=json.dumps(sent)).out)

    patch = json.loads(base64.b64decode(answer["response"]["patch"]))
    mended = jsonpatch.apply_patch(sent["request"]["object"], patch)
    assert answer["response"]["uid"] == "u-1"
    assert mended["spec"]["containers"][0]["resources"]["limits"] == {TODAY: "2"}


def test_names_move_no_cursor(gpu_webhook: Command) -> None:
    made = pod({LEGACY: 1})
    made["metadata"]["name"] = "p\x1b[2J"
    made["spec"]["containers"][0]["name"] = "main\u202e"
    done = gpu_webhook("review", "-f", "-", stdin=json.dumps(made))
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert done.out.startswith("Pod/p\\x1b[2J: repaired\n  GPU101 container main\\u202e requests")


def test_several_documents_come_out_as_several(gpu_webhook: Command) -> None:
    text = "---\n".join(yaml.safe_dump(each) for each in (SERVICE, pod({LEGACY: 1})))

    done = gpu_webhook("review", "-f", "-", stdin=text)

    assert done.out.startswith(
        "Service/s: clean\nPod/p: repaired\n  GPU101 container main requests"
    )
    printed = done.out[done.out.index("---\n") :]
    assert [each["kind"] for each in yaml.safe_load_all(printed)] == ["Service", "Pod"]


def test_values_of_the_inventory_are_used(gpu_webhook: Command, tmp_path: Path) -> None:
    file = str(EXAMPLES / "affinity-annotation.yaml")
    product = "NVIDIA-Tesla-P100-NVL-24GB"
    metadata = {"name": "n", "labels": {"nvidia.com/gpu.product": product}}
    node = {"kind": "Node", "metadata": metadata, "status": {"allocatable": {TODAY: "4"}}}
    tmp_path.joinpath("nodes.json").write_text(json.dumps(node))
    known = gpu_webhook("review", "-f", file, "--inventory=nodes.json")
    unknown = gpu_webhook("review", "-f", file)

    assert product in known.out
    assert product not in unknown.out
    assert "Tesla-P100-SXM2-16GB" in known.out
    assert "Tesla-P100-SXM2-16GB" in unknown.out


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"])
@pytest.mark.parametrize(
    ("mode", "outlook"),
    [
        ("enforce", "its pods WILL BE REFUSED in namespace default"),
        ("warn", "its pods will not be refused in namespace default"),
    ],
)
def test_a_workload_is_never_said_to_be_denied_itself(
    kind: str, mode: str, outlook: str, gpu_webhook: Command, tmp_path: Path
) -> None:
    """In the cluster it is let in with a warning, and its pods are refused."""
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        f"policy: {{rules: {{GPU304: {mode}}}}}\n"
        "capacity: {limits: [{namespaces: [default], gpus: {nvidia.com/gpu: 0}}]}\n"
    )
    args = ("review", "-f", "-", "--config", str(settings))
    text = gpu_webhook(*args, stdin=json.dumps(deployment(kind)))
    data = json.loads(gpu_webhook(*args, "-o", "json", stdin=json.dumps(deployment(kind))).out)

    assert (text.code, f"[{outlook}]" in text.out) == (3, True)
    assert "denied" not in text.out
    told = [each for each in data["findings"] if each["outlook"]]
    assert [(each["action"], each["outlook"]) for each in told] == [("reported", outlook)]


IN_CLASS = {
    "kind": "List",
    "items": [
        {
            "kind": "Node",
            "metadata": {"name": "n", "labels": {"pool": "b"}},
            "spec": {"taints": [{"key": "team", "effect": "NoSchedule"}]},
            "status": {"allocatable": {TODAY: "4"}},
        },
        {
            "kind": "RuntimeClass",
            "metadata": {"name": "team"},
            "scheduling": {"nodeSelector": {"pool": "b"}, "tolerations": [{"operator": "Exists"}]},
        },
    ],
}


@pytest.mark.parametrize(
    ("profile", "limits", "end"),
    [
        pytest.param("runtime-class", {LEGACY: 4}, "", id="the class that it gets tolerates all"),
        pytest.param("toolkit", {LEGACY: 4}, "may be refused", id="a toleration is missing"),
        pytest.param("runtime-class", {LEGACY: 5}, "enforce: denied", id="too much"),
    ],
)
def test_a_pod_is_judged_as_its_class_will_leave_it(
    profile: str, limits: dict[str, Any], end: str, gpu_webhook: Command, tmp_path: Path
) -> None:
    (tmp_path / "nodes.json").write_text(json.dumps(IN_CLASS))
    drivers = f"drivers: {{profile: {profile}, runtimeClass: team}}"
    (tmp_path / "settings.yaml").write_text(f"{drivers}\npolicy: {{rules: {{GPU301: enforce}}}}\n")
    args = ("review", "-f", "-", "--inventory=nodes.json", "--config=settings.yaml")

    of_pod = gpu_webhook(*args, stdin=json.dumps(pod(limits)))
    asked = gpu_webhook(*args, "-o", "json", stdin=json.dumps(review(pod(limits))))
    answer = json.loads(asked.out)["response"]

    assert ("GPU301" in of_pod.out) == bool(end)
    assert f"{end}]" in of_pod.out or not end
    assert answer["allowed"] is not bool(end)
    assert "refused]" not in str(answer.get("warnings"))


def test_settings_are_used(gpu_webhook: Command, tmp_path: Path) -> None:
    tmp_path.joinpath("settings.yaml").write_text("resources: {target: nvidia.com/gpu.shared}")

    done = gpu_webhook(
        "review", "-f", "-", "--config", "settings.yaml", stdin=json.dumps(pod({LEGACY: 1}))
    )

    assert "nvidia.com/gpu.shared: 1" in done.out


def test_kubernetes_words_keep_their_types(gpu_webhook: Command) -> None:
    text = "kind: Pod\nmetadata: {name: p, annotations: {d: 2020-01-01, 1: x}}\nspec: {}\n"

    done = gpu_webhook("review", "-f", "-", "-o", "json", stdin=text)

    assert json.loads(done.out)["object"]["metadata"]["annotations"] == {
        "d": "2020-01-01",
        "1": "x",
    }


BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(8)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "stdin: contains no object", id="nothing"),
        pytest.param("a: [", "stdin:1:5: ", id="broken YAML: line and column"),
        pytest.param("- 1\n", "stdin: document 1 has no kind", id="a list"),
        pytest.param("a: 1\n", "stdin: document 1 has no kind", id="a map without a kind"),
        pytest.param("kind: Pod\n---\n7\n", "document 2 has no kind", id="a number, second"),
        pytest.param('{"kind": "Pod"', "stdin:", id="JSON that ends too early"),
        pytest.param("kind: Pod\nx: &x [*x]\n", "stdin:2:8: holds itself by *x", id="a loop"),
        pytest.param("[" * 5000, "too deeply nested", id="deep nesting"),
        pytest.param(f"kind: Pod\n{BOMB}", "values, by its aliases", id="an alias bomb"),
        pytest.param(
            json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v2"}),
            "apiVersion:",
            id="a review of a version that is not spoken",
        ),
    ],
)
def test_bad_input_is_one_line_that_says_where_and_what(
    text: str, words: str, gpu_webhook: Command
) -> None:
    done = gpu_webhook("review", "-f", "-", stdin=text)

    assert done.code == 1
    assert done.out == ""
    assert words in done.err
    assert done.err.startswith("gpu-webhook: ")
    assert done.err.count("\n") == 1


def test_a_file_that_is_not_there_is_named(gpu_webhook: Command) -> None:
    done = gpu_webhook("review", "-f", "nowhere.yaml")

    assert (done.code, done.out) == (1, "")
    assert "nowhere.yaml: cannot be read: No such file" in done.err


def test_a_file_that_is_no_text_is_named(gpu_webhook: Command, tmp_path: Path) -> None:
    tmp_path.joinpath("x.yaml").write_bytes(b"kind: \xff\xfe")

    assert "x.yaml: is not UTF-8 (byte 6)" in gpu_webhook("review", "-f", "x.yaml").err


def test_every_file_is_reviewed(gpu_webhook: Command, tmp_path: Path) -> None:
    (tmp_path / "legacy.yaml").write_text(yaml.safe_dump(pod({LEGACY: 1})))
    (tmp_path / "clean.yaml").write_text(yaml.safe_dump(pod()))
    done = gpu_webhook("review", "-f", "legacy.yaml", "-f", "clean.yaml", "-o", "json")
    assert done.code == 2
    assert len(json.loads(done.out)["object"]["items"]) == 2

    (tmp_path / "review.yaml").write_text(yaml.safe_dump(review(pod())))
    done = gpu_webhook("review", "-f", "legacy.yaml", "-f", "review.yaml")
    assert (done.code, done.out) == (1, "")
    assert "an AdmissionReview stands alone" in done.err
