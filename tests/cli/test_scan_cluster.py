"""`scan --cluster` of objects whose owners, names and fields were made up to stop or mislead it."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.admission.test_updates import applied
from tests.formats.test_own_record import LEGACY, legacy
from tests.inventory.api_server import ApiServer
from webhook.cli import scan_cluster
from webhook.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = {
    "/api/v1": {
        "Pod": "pods",
        "ConfigMap": "configmaps",
        "Secret": "secrets",
        "ReplicationController": "replicationcontrollers",
    },
    "/apis/apps/v1": {
        "Deployment": "deployments",
        "ReplicaSet": "replicasets",
        "StatefulSet": "statefulsets",
    },
    "/apis/batch/v1": {"Job": "jobs", "CronJob": "cronjobs"},
}
ALPHA = {"limits": {"alpha.kubernetes.io/nvidia-gpu": "1"}}
SPEC = {"containers": [{"name": "main", "image": "i", "resources": ALPHA}]}


class Cluster(ApiServer):
    """Serves a few kinds, and the lists that a test fills."""

    def __init__(self) -> None:
        super().__init__()
        self._uids = itertools.count()
        groups = [
            {"name": path.split("/")[2], "preferredVersion": {"version": "v1"}}
            for path in KINDS
            if path.startswith("/apis/")
        ]
        self.say_json("/apis", {"groups": groups})
        for path, kinds in KINDS.items():
            listed = [
                {"name": plural, "kind": kind, "namespaced": True, "verbs": ["get", "list"]}
                for kind, plural in kinds.items()
            ]
            self.say_json(path, {"resources": listed})
            for plural in kinds.values():
                self.say_json(f"{path}/{plural}", {"items": []})

    def say_json(self, path: str, body: dict[str, Any]) -> None:
        self.say(path, 200, orjson.dumps(body))

    def have(self, kind: str, name: str, owner: object = None, **metadata: Any) -> dict[str, Any]:
        """Put an object with a legacy pod into the list of its kind."""
        obj: dict[str, Any] = {
            "metadata": {
                "name": name,
                "namespace": "team",
                "uid": f"uid-{next(self._uids)}",
                **({"ownerReferences": [owner]} if owner else {}),
                **metadata,
            },
            "spec": SPEC if kind == "Pod" else {"template": {"spec": SPEC}},
        }
        self.list_has(kind, obj)
        return obj

    def list_has(self, kind: str, obj: dict[str, Any]) -> None:
        """Put this object into the list of its kind."""
        path, plural = next((p, k[kind]) for p, k in KINDS.items() if kind in k)
        items = orjson.loads(self.answers[f"{path}/{plural}"][1])["items"]
        self.say_json(f"{path}/{plural}", {"items": [*items, obj]})
        self.say_json(f"{path}/namespaces/team/{plural}/{obj['metadata']['name']}", obj)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture
def config(cluster: Cluster, tmp_path: Path) -> str:
    return f"--kubeconfig={cluster.kubeconfig(tmp_path)}"


def owner(name: str = "x", kind: str = "ConfigMap", version: str = "v1", uid: str = "u") -> Any:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


FORGED = {
    "a path to another endpoint": owner("../../../../../healthz"),
    "a path to another namespace": owner("../../kube-system/secrets/victim"),
    "a query that never ends": owner("?watch=true&x="),
    "a query": owner("x?y"),
    "a fragment": owner("#x"),
    "an escape": owner("%2e%2e%2fsecrets"),
    "two dots": owner(".."),
    "a dot": owner("."),
    "a line end": owner("x\r\nHost: other"),
    "a NUL": owner("x\0y"),
    "a letter of another alphabet": owner("\u0128ealthz"),
    "a megabyte": owner("x" * 1_000_000),
    "a path in the version": owner(version="v1/../../healthz"),
    "a path in the group": owner(version="../../api/v1"),
    "a line end in the version": owner(version="apps/v1\nx"),
    "a query in the kind": owner(kind="ConfigMap?watch=true"),
    "a kind of a megabyte": owner(kind="K" * 1_000_000),
    "a kind that is no text": owner() | {"kind": ["ConfigMap"]},
    "a name that is no text": owner() | {"name": {"a": 1}},
    "an owner of another uid": owner("other"),
    "an owner that does not exist": owner("missing"),
    "a kind that does not exist": owner(kind="Unheard"),
    "a group that does not exist": owner(version="example.org/v1"),
}


def test_quiet_prints_each_finding_in_one_line(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for each in ("a", "b"):
        cluster.have("Deployment", each)
    assert main(["scan", "--cluster", "-A", "-q", config]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 2
    assert all("Deployment/" in each and ": GPU" in each for each in lines)


@pytest.mark.parametrize("forged", [pytest.param(each, id=name) for name, each in FORGED.items()])
def test_a_forged_owner_neither_ends_the_scan_nor_leads_it_elsewhere(
    forged: dict[str, Any], cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.have("ConfigMap", "other")
    cluster.have("Deployment", "a-forged", forged)
    for each in ("b", "c"):
        cluster.have("Deployment", each)
    assert main(["scan", "--cluster", "-A", config]) == 2
    out = capsys.readouterr().out
    for name in ("a-forged", "b", "c"):
        assert f"team/Deployment/{name}\n" in out
    assert "error" not in out
    assert len(out) < 20_000
    legal = {f"{path}/{plural}" for path, kinds in KINDS.items() for plural in kinds.values()}
    legal |= {"/apis", *KINDS}
    legal |= {f"/api/v1/namespaces/team/configmaps/{name}" for name in ("x", "other", "missing")}
    assert {path for _, path, _ in cluster.asked} <= legal
    assert all(set(query) <= {"limit"} for _, _, query in cluster.asked)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"ok", id="no JSON"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"metadata": "x"}', id="no metadata"),
        pytest.param(b'{"a":' * 3000 + b"1" + b"}" * 3000, id="nested deeper than is read"),
        pytest.param(b'{"metadata": {"managedFields": [{"manager": {}}]}}', id="odd fields"),
    ],
)
def test_an_owner_that_cannot_be_read_is_unknown(
    body: bytes, cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.say("/api/v1/namespaces/team/configmaps/x", 200, body)
    cluster.have("Deployment", "a", owner())
    cluster.have("Deployment", "b")
    assert main(["scan", "--cluster", "-A", config]) == 2
    out = capsys.readouterr().out
    assert "team/Deployment/a\n" in out
    assert "team/Deployment/b\n" in out


def test_an_owner_that_answers_in_another_format_is_unknown(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "/api/v1/namespaces/team/configmaps/x"
    cluster.answers[path] = (200, b"ok", {"Content-Type": "text/plain"})
    cluster.have("Deployment", "a", owner())
    cluster.have("Deployment", "b")
    assert main(["scan", "--cluster", "-A", config]) == 2
    assert "team/Deployment/b\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "uid"),
    [
        pytest.param("missing", "uid-of-nobody", id="a maker that does not exist"),
        pytest.param("there", "uid-of-another", id="a maker of another uid"),
    ],
)
def test_a_pod_is_left_out_only_if_its_maker_was_looked_at(
    name: str, uid: str, cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made_by = cluster.have("Deployment", "there")["metadata"]["uid"]
    cluster.say("/apis/apps/v1/namespaces/team/deployments/missing", 404)
    cluster.have("ReplicaSet", "made", owner("there", "Deployment", "apps/v1", made_by))
    cluster.have("ReplicaSet", "hidden", owner(name, "Deployment", "apps/v1", uid))
    assert main(["scan", "--cluster", "-A", config]) == 2
    out = capsys.readouterr().out
    assert "team/ReplicaSet/hidden\n" in out
    assert "team/ReplicaSet/made\n" not in out
    assert "1 owned objects skipped" in out


def test_an_object_is_not_hidden_by_a_maker_that_makes_no_such_objects(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tenant may name any object of their own, with its uid, as the owner of another one."""
    front = cluster.have("Deployment", "front")["metadata"]["uid"]
    own = owner("itself", "Deployment", "apps/v1", f"uid-{int(front.rpartition('-')[2]) + 1}")
    cluster.have("Deployment", "itself", own)
    for kind in ("Deployment", "Job", "Pod"):
        cluster.have(kind, "hidden", owner("front", "Deployment", "apps/v1", front))
    assert main(["scan", "--cluster", "-A", config]) == 2
    out = capsys.readouterr().out
    for name in ("Deployment/itself", "Deployment/hidden", "Job/hidden", "Pod/hidden"):
        assert f"team/{name}\n" in out


def test_words_of_an_object_are_told_at_a_length_that_can_be_read(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.have("Pod", "a", annotations={"meta.helm.sh/release-name": "x" * 200_000})
    cluster.have("Pod", "b", managedFields=[{"manager": "x" * 200_000}, {"manager": {"a": []}}])
    assert main(["scan", "--cluster", "-A", config]) == 2
    out = capsys.readouterr().out
    assert "team/Pod/b\n" in out
    assert len(out) < 5000


def test_what_is_made_is_looked_at_where_its_maker_may_not_be(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made_by = cluster.have("Deployment", "there")["metadata"]["uid"]
    cluster.say("/apis/apps/v1/deployments", 403, b'{"message": "no"}')
    cluster.have("ReplicaSet", "made", owner("there", "Deployment", "apps/v1", made_by))
    assert main(["scan", "--cluster", "-A", config]) == 1
    out = capsys.readouterr().out
    assert "Deployments are not checked: the API server answered 403" in out
    assert "team/ReplicaSet/made\n  to be changed: Deployment/there\n" in out


def test_a_group_that_does_not_answer_leaves_the_others(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.say("/apis/batch/v1", 503, b'{"message": "away"}')
    cluster.have("Deployment", "a")
    cluster.have("Pod", "b")
    assert main(["scan", "--cluster", "-A", config]) == 1
    out = capsys.readouterr().out
    assert "Jobs are not checked: the API server answered 503: away" in out
    assert "team/Deployment/a\n" in out
    assert "team/Pod/b\n" in out


def test_an_object_that_makes_us_fail_is_one_line_and_the_rest_is_judged(
    cluster: Cluster,
    config: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No such object is known; there was one in each round of attack before."""
    real = scan_cluster.Scan.judged

    def judged(self: Any, obj: Any, **more: Any) -> Any:
        if obj["metadata"]["name"] == "a":
            raise ZeroDivisionError
        return real(self, obj, **more)

    monkeypatch.setattr(scan_cluster.Scan, "judged", judged)
    cluster.have("Deployment", "a")
    cluster.have("Deployment", "b")
    assert main(["scan", "--cluster", "-A", config, "-o", "json"]) == 1
    files = {each["path"]: each for each in json.loads(capsys.readouterr().out)["files"]}
    assert files["team/Deployment/b"]["findings"]
    assert "ZeroDivisionError" in files["team/Deployment/a"]["error"]


def test_a_namespace_that_is_none_is_never_asked_for(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", "--cluster", config, "-n", "../../secrets"]) == 1
    assert "not the name of a namespace" in capsys.readouterr().err
    assert not [path for _, path, _ in cluster.asked if "secrets" in path]


def job(**spec: Any) -> dict[str, Any]:
    """A modern Job as the API server stores it."""
    uid = {f"{prefix}controller-uid": "uid" for prefix in ("", "batch.kubernetes.io/")}
    name = {f"{prefix}job-name": "train" for prefix in ("", "batch.kubernetes.io/")}
    main = {"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = {"metadata": {"labels": uid | name}, "spec": {"containers": [main]}}
    metadata = {"name": "train", "namespace": "team", "uid": "uid"}
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid"}}
    return {"metadata": metadata, "spec": {"selector": selector, "template": template, **spec}}


OLD_JOB = {"selector": {"matchLabels": {"controller-uid": "uid"}}}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="since 1.27"),
        pytest.param(OLD_JOB, id="before 1.27"),
        pytest.param({"manualSelector": False}, id="manualSelector is false"),
    ],
)
@pytest.mark.parametrize("is_applied", [False, True], ids=["created", "read and applied again"])
def test_the_selector_that_the_api_server_makes_for_a_job_is_nobodys(
    spec: Any,
    is_applied: bool,  # noqa: FBT001
    cluster: Cluster,
    config: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = job(**spec)
    if is_applied:
        text = json.dumps({"apiVersion": "batch/v1", "kind": "Job", **made})
        note = {"kubectl.kubernetes.io/last-applied-configuration": text}
        made["metadata"]["annotations"] = note
    cluster.list_has("Job", made)
    assert main(["scan", "--cluster", "-A", config]) == 0
    assert capsys.readouterr().out == "0 of 1 objects are legacy\n"


def test_a_legacy_job_is_shown_as_it_was_written(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = job()
    made["spec"]["template"]["spec"] = SPEC
    cluster.list_has("Job", made)
    assert main(["scan", "--cluster", "-A", config, "--diff"]) == 2
    out = capsys.readouterr().out
    assert "GPU101" in out
    assert "GPU121" not in out
    assert "uid" not in out
    assert "job-name" not in out


def test_what_limit_ranger_notes_on_a_pod_is_nobodys_word(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the amounts that it added, under a name that a repair has changed since."""
    says = "LimitRanger plugin set: alpha.kubernetes.io/nvidia-gpu limit for container main"
    made = job()
    metadata = {**made["metadata"], "annotations": {"kubernetes.io/limit-ranger": says}}
    cluster.list_has("Pod", {"metadata": metadata, "spec": made["spec"]["template"]["spec"]})
    assert main(["scan", "--cluster", "-A", config]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("noted", ["", "alpha.kubernetes.io/nvidia-gpu limit for container main"])
def test_a_legacy_zero_that_stays_is_not_counted_as_legacy(
    noted: str, cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It asks for nothing, also where LimitRanger would have added an amount."""
    made = job()
    spec = made["spec"]["template"]["spec"]
    amounts = {LEGACY: "0"}
    spec["containers"][0] |= {"name": "main", "resources": {"limits": amounts, "requests": amounts}}
    annotations = {"kubernetes.io/limit-ranger": f"LimitRanger plugin set: {noted}"}
    metadata = {**made["metadata"], "annotations": annotations if noted else {}}
    cluster.list_has("Pod", {"metadata": metadata, "spec": spec})
    assert main(["scan", "--cluster", "-A", config]) == 0
    out = capsys.readouterr().out
    assert "0 of 1 objects are legacy" in out
    assert "to be changed" not in out


def test_what_a_repair_left_of_a_limit_range_is_nobodys_word(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The author wrote no amount: the default became an amount of today, and 0 stays beside it."""
    made = job()
    spec = made["spec"]["template"]["spec"]
    amounts = {LEGACY: "0", "nvidia.com/gpu": "1"}
    spec["containers"][0] |= {"name": "main", "resources": {"limits": amounts, "requests": amounts}}
    noted = " for container main; ".join(f"{LEGACY} {each}" for each in ("request", "limit"))
    annotations = {
        "kubernetes.io/limit-ranger": f"LimitRanger plugin set: {noted} for container main"
    }
    cluster.list_has(
        "Pod", {"metadata": {**made["metadata"], "annotations": annotations}, "spec": spec}
    )
    assert main(["scan", "--cluster", "-A", config]) == 0
    out = capsys.readouterr().out
    assert "0 of 1 objects are legacy" in out
    assert "to be changed" not in out


@pytest.mark.parametrize("way", ["created", "server-side"])
def test_a_workload_that_was_repaired_is_named(
    way: str, cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `kubectl create` leaves it, and as `kubectl apply --server-side` does."""
    made = applied(legacy())
    limits: dict[str, Any] = {"f:limits": {f"f:{LEGACY}": {}}}
    container = {".": {}, "f:name": {}, "f:image": {}, "f:resources": limits}
    spec = {"f:spec": {"f:containers": {'k:{"name":"main"}': container}}}
    sent = {
        "manager": "argocd-controller",
        "operation": "Apply",
        "fieldsV1": {"f:spec": {"f:template": spec}},
    }
    made["metadata"] |= {"uid": "u", "managedFields": [sent] if way == "server-side" else []}
    made["metadata"]["labels"] = {"argocd.argoproj.io/instance": "ml"}
    cluster.list_has("Deployment", made)
    assert main(["scan", "--cluster", "-A", config]) == 2
    out = capsys.readouterr().out
    assert "team/Deployment/train\n  to be changed: Argo CD application ml\n" in out
    [amount] = [line for line in out.splitlines() if " GPU101 " in line]
    [last] = [line for line in out.splitlines() if " objects are legacy" in line]
    note = "if its manifest has been migrated since, remove the annotation"
    assert (note in amount) == (way == "created")
    assert last.startswith("1 of 1 objects are legacy: "), "not counted a second time"


def test_what_is_applied_now_counts_and_no_old_record(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A manifest that was migrated while nobody looked at it leaves the record."""
    made = applied(legacy())
    limits: dict[str, Any] = {"f:limits": {"f:nvidia.com/gpu": {}}}
    container = {".": {}, "f:name": {}, "f:image": {}, "f:resources": limits}
    spec = {"f:spec": {"f:containers": {'k:{"name":"main"}': container}}}
    fields = {"f:spec": {"f:template": spec}}
    sent = {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": fields}
    made["metadata"] |= {"uid": "u", "managedFields": [sent]}
    cluster.list_has("Deployment", made)
    assert main(["scan", "--cluster", "-A", config]) == 0, capsys.readouterr().out


def test_a_forged_record_hides_nothing(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = "/spec/containers/main/resources/limits/alpha.kubernetes.io~1nvidia-gpu"
    record = json.dumps({"/spec/template": {at: [None, "1"]}})
    cluster.have("Deployment", "a", annotations={"gpu-webhook.dev/template-repair": record})
    assert main(["scan", "--cluster", "-A", config]) == 2
    assert "GPU101" in capsys.readouterr().out


def test_an_object_that_is_nested_too_deeply_is_one_line(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a tenant's object of a custom kind may be, whose schema says nothing of the field."""
    cluster.have("Deployment", "small")
    path = "/apis/apps/v1/deployments"
    deep = b'{"metadata": {"name": "deep", "namespace": "team"}, "spec": %b%b}, ' % (
        b'{"a": ' * 450,
        b"1" + b"}" * 450,
    )
    items = b'"items":['
    listed = cluster.answers[path][1].replace(items, items + deep)
    cluster.say(path, 200, listed)
    assert main(["scan", "--cluster", "-A", config]) == 1
    out = capsys.readouterr().out
    assert "team/Deployment/deep\n" in out
    assert "error: it is nested too deeply, so it is not checked" in out
    assert "1 of 2 objects are legacy; 1 could not be checked (see the errors)" in out
    assert "report it" not in out
    assert "team/Deployment/small\n" in out


def test_an_object_over_the_budget_of_the_webhook_is_one_line(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    large = [{"name": f"c{i}", "image": "i", "resources": ALPHA} for i in range(1001)]
    template = {"template": {"spec": {"containers": large}}}
    metadata = {"name": "large", "namespace": "team", "uid": "u"}
    cluster.list_has("Deployment", {"metadata": metadata, "spec": template})
    text = json.dumps({"kind": "Deployment", "spec": template})
    note = {"kubectl.kubernetes.io/last-applied-configuration": text}
    cluster.have("Deployment", "applied", annotations=note)
    cluster.have("Deployment", "small")
    assert main(["scan", "--cluster", "-A", config]) == 1
    out = capsys.readouterr().out
    why = "error: it has more than 1000 containers: it is not checked"
    assert f"team/Deployment/large\n  to be changed: Deployment/large\n  {why}" in out
    assert f"team/Deployment/applied\n  to be changed: Deployment/applied\n  {why}" in out
    assert "team/Deployment/small\n" in out


# Whoever writes a command may write what a template has.
SIGNS = {
    "blocks that are never closed": "{% if x %}\n" * 2500,
    "a block in each line": "{{a}}{%if x%}{%endif%}\n" * 200,
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SIGNS.items()])
def test_signs_of_templates_hide_nothing_of_a_live_object(
    cluster: Cluster, config: str, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """A live object is no template: nothing of it is decided when it is rendered."""
    container = {"name": "main", "image": "i", "args": [text], "resources": ALPHA}
    spec = {"template": {"spec": {"containers": [container]}}}
    metadata = {"name": "signs", "namespace": "team", "uid": "u"}
    noted = {"annotations": {"scheduler.alpha.kubernetes.io/tolerations": text}}
    cluster.list_has("Deployment", {"metadata": metadata | noted, "spec": spec})
    assert main(["scan", "--cluster", "-A", config, "-o", "json"]) in {2, 3}
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert "error" not in file
    assert not file["skipped"]
    assert {each["code"]: each["status"] for each in file["findings"]}["GPU101"] == "fixable"
