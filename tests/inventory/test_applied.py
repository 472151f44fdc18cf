"""What was applied of a live object, and by what it is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.admission.test_updates import applied
from tests.formats.test_own_record import LEGACY, legacy
from webhook.cluster.applied import as_applied, as_written, keepers, writers
from webhook.core.settings import Settings
from webhook.evaluation.repair_record import ANNOTATION
from webhook.kube.managed_fields import LAST_APPLIED

SENT = {
    "apiVersion": "extensions/v1beta1",
    "kind": "Deployment",
    "metadata": {"name": "d", "labels": {"a": "b"}},
    "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}},
}


def live(
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    managed: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "d",
            "namespace": "n",
            "uid": "u",
            "resourceVersion": "7",
            "annotations": annotations or {},
            "labels": labels or {},
            "managedFields": managed or [],
        },
        "spec": {
            "replicas": 1,
            "template": {
                "spec": {
                    "restartPolicy": "Always",
                    "containers": [
                        {"name": "main", "image": "i", "imagePullPolicy": "Always"},
                        {"name": "injected", "image": "j"},
                    ],
                    "tolerations": [{"key": "x"}],
                }
            },
        },
        "status": {"replicas": 1},
    }


def applied_on_the_server() -> dict[str, Any]:
    container: dict[str, Any] = {"f:name": {}, "f:image": {}, ".": {}}
    pod = {"f:containers": {'k:{"name":"main"}': container}, "f:tolerations": {}}
    fields = {"f:spec": {"f:template": {"f:spec": pod}}, "f:metadata": {"f:labels": {".": {}}}}
    return {"manager": "team", "operation": "Apply", "fieldsV1": fields, "time": "2026-01-01"}


def test_what_kubectl_apply_sent_is_in_an_annotation() -> None:
    found, is_known = as_applied(live({LAST_APPLIED: json.dumps(SENT), "other": "x"}), Settings())
    assert is_known
    assert found == {**SENT, "metadata": {"name": "d", "namespace": "n", "labels": {"a": "b"}}}


def test_what_was_applied_on_the_server_is_in_its_managed_fields() -> None:
    scale = {
        "manager": "x",
        "operation": "Apply",
        "subresource": "scale",
        "fieldsV1": {"f:spec": {}},
    }
    found, is_known = as_applied(live(managed=[applied_on_the_server(), scale]), Settings())
    assert is_known
    assert found == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n", "labels": {}},
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"name": "main", "image": "i"}],
                    "tolerations": [{"key": "x"}],
                }
            }
        },
    }


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        ("{", "not JSON"),
        ("[]", "no map"),
        ('{"kind": "Service", "metadata": {}}', "of another object, copied with its annotations"),
    ],
)
def test_an_annotation_that_says_nothing_is_passed_over(annotation: str, why: str) -> None:
    obj = live({LAST_APPLIED: annotation})
    assert as_applied(obj, Settings()) == (as_written(obj), False), why


def test_without_a_word_it_is_the_object_but_for_what_the_server_wrote() -> None:
    obj = live({"note": "x", LAST_APPLIED: "{"})
    written = as_written(obj)
    assert written["metadata"] == {
        "name": "d",
        "namespace": "n",
        "annotations": {"note": "x"},
        "labels": {},
    }
    assert "status" not in written
    assert written["spec"] == obj["spec"]
    assert LAST_APPLIED in obj["metadata"]["annotations"], "the object itself stays"


def test_the_words_that_a_repair_translated_are_put_back() -> None:
    made = applied(legacy())
    found, is_known = as_applied(made, Settings())
    assert not is_known
    assert found["spec"] == legacy()["spec"]
    assert LEGACY not in json.dumps(made["spec"]), "the object itself stays"


def test_no_word_is_put_back_where_the_repair_of_it_has_changed() -> None:
    made = applied(legacy())
    main = made["spec"]["template"]["spec"]["containers"][0]
    main["resources"]["limits"] = {"nvidia.com/gpu": "4"}
    found, _ = as_applied(made, Settings())
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert "4" in container["resources"]["limits"].values()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"/spec/template": 7}', '{"/spec/template": {"/spec/containers": [1, 2]}}'],
)
def test_a_record_that_cannot_be_read_puts_nothing_back(text: str) -> None:
    obj = live({ANNOTATION: text})
    assert as_applied(obj, Settings()) == (as_written(obj), False)


def test_a_record_puts_back_nothing_that_no_repair_changes() -> None:
    changes = {"/spec/containers/main/image": ["other", "i"], "/spec/tolerations": [None, []]}
    obj = live({ANNOTATION: json.dumps({"/spec/template": changes})})
    assert as_applied(obj, Settings()) == (as_written(obj), False)


def test_who_applied_a_label_alone_did_not_send_the_rest() -> None:
    fields = {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}}}
    sent = {"manager": "x", "operation": "Apply", "fieldsV1": fields}
    obj = live(labels={"a": "b"}, managed=[sent])
    assert as_applied(obj, Settings()) == (as_written(obj), False)


FLUX, HELM_FLUX = "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"


@pytest.mark.parametrize(
    ("annotations", "labels", "managers", "expected"),
    [
        pytest.param({}, {"app": "x"}, ["kubectl"], [], id="by nobody"),
        pytest.param(
            {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "ns"},
            {"helm.sh/chart": "train-1.2.0", "app.kubernetes.io/managed-by": "Helm"},
            ["helm"],
            ["Helm release r in ns (chart train-1.2.0)"],
            id="Helm 3",
        ),
        pytest.param(
            {},
            {"heritage": "Tiller", "release": "r", "chart": "train-0.1"},
            [],
            ["Helm release r (chart train-0.1)"],
            id="Helm 2",
        ),
        pytest.param(
            {},
            {"helm.sh/chart": "c-1", "app.kubernetes.io/managed-by": "Helm"},
            [],
            ["Helm chart c-1"],
            id="a rendered chart that was applied",
        ),
        pytest.param(
            {"argocd.argoproj.io/tracking-id": "gpu:apps/Deployment:n/d"},
            {},
            [],
            ["Argo CD application gpu"],
            id="Argo CD by annotation",
        ),
        pytest.param(
            {},
            {"argocd.argoproj.io/instance": "gpu"},
            [],
            ["Argo CD application gpu"],
            id="by label",
        ),
        pytest.param(
            {},
            {"app.kubernetes.io/instance": "gpu"},
            ["argocd-controller"],
            ["Argo CD application gpu"],
            id="Argo CD by the label that Helm has too: its controller wrote the object",
        ),
        pytest.param(
            {},
            {"app.kubernetes.io/instance": "gpu"},
            ["helm"],
            [],
            id="that label alone says nothing",
        ),
        pytest.param(
            {},
            {f"{FLUX}/name": "apps", f"{FLUX}/namespace": "flux-system"},
            [],
            ["Flux Kustomization flux-system/apps"],
            id="Flux",
        ),
        pytest.param(
            {"meta.helm.sh/release-name": "r"},
            {f"{HELM_FLUX}/name": "r"},
            [],
            ["Flux HelmRelease r", "Helm release r"],
            id="Flux by way of Helm: both, the one to be changed first",
        ),
    ],
)
def test_by_what_it_is_kept(
    annotations: dict[str, str], labels: dict[str, str], managers: list[str], expected: list[str]
) -> None:
    managed = [{"manager": name, "operation": "Update"} for name in managers]
    assert keepers(live(annotations, labels, managed)) == expected


def test_who_wrote_it_last_stands_first_and_no_part_of_the_system_is_named() -> None:
    managed = [
        {"manager": "kubectl-client-side-apply", "time": "2026-01-01"},
        {"manager": "kubectl-edit", "time": "2026-02-01"},
        {"manager": "kube-controller-manager", "time": "2026-03-01"},
        {"manager": "scaler", "time": "2026-03-01", "subresource": "scale"},
    ]
    assert writers(live(managed=managed)) == ["kubectl-edit", "kubectl-client-side-apply"]
