"""A policy sets a runtime class in templates; their author forges a record to take it out again.

The policy is asked before the webhook and never twice, so what the webhook takes out is gone.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.pods import NVIDIA, alpha, container, pod
from tests.cluster.policies import inside, mutating
from tests.cluster.workloads import made_by
from webhook.evaluation.repair_record import ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

FORGED = json.dumps({"/spec/template": {"/spec/runtimeClassName": [None, "gvisor"]}})
GPU, NO_GPU = pod(alpha()), pod(container(limits={"memory": "1Gi"}))
GROUP = "admissionregistration.k8s.io/v1"


class Forger:
    """Somebody who may write Deployments, and puts whole objects in the place of others."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def creates(self, template: Json = GPU, *, owned: bool = False, **metadata: Any) -> None:
        made = copy.deepcopy(made_by("Deployment", template, 0))
        made["metadata"] |= {"name": "train", **metadata}
        if owned:  # by what is there: the garbage collector looks for it
            account = self.cluster.client.get("ServiceAccount", "default", self.namespace)
            owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "default"}
            uid = account["metadata"]["uid"]
            made["metadata"]["ownerReferences"] = [{**owner, "uid": uid, "controller": True}]
        self.cluster.client.create(made, self.namespace)

    def live(self) -> Json:
        return self.cluster.client.get("Deployment", "train", self.namespace)

    def puts(self, obj: Json) -> None:
        del obj["metadata"]["resourceVersion"]  # its controller writes, too
        words = (f"--namespace={self.namespace}", "replace", "-f", "-")
        done = self.cluster.try_kubectl(*words, stdin=json.dumps(obj))
        assert done.returncode == 0, done.stderr

    def annotates(self) -> None:
        obj = self.live()
        obj["metadata"].setdefault("annotations", {})[ANNOTATION] = FORGED
        self.puts(obj)

    def annotates_and_resets_managers(self) -> None:
        obj = self.live()
        obj["metadata"].setdefault("annotations", {})[ANNOTATION] = FORGED
        obj["metadata"]["managedFields"] = [{}]
        self.puts(obj)

    def annotates_unseen(self) -> None:
        """The review is over the budget, so the webhook lets it through as it is."""
        obj = self.live()
        obj["metadata"].setdefault("annotations", {})[ANNOTATION] = FORGED
        obj["status"]["conditions"] = [{}] * 33_000  # dropped by the API server
        self.puts(obj)

    def hides_unseen(self) -> None:
        self.hides(unseen=True)

    def hides(self, *, unseen: bool = False) -> None:
        """Send managedFields that name somebody, but nobody for the record."""
        obj = self.live()
        if unseen:
            obj["status"]["conditions"] = [{}] * 33_000
        fields: Json = {"f:spec": {"f:replicas": {}}}
        entry = {"manager": "x", "operation": "Update", "apiVersion": "apps/v1"}
        obj["metadata"]["managedFields"] = [{**entry, "fieldsType": "FieldsV1", "fieldsV1": fields}]
        self.puts(obj)

    def loses_its_controller(self) -> None:
        obj = self.live()
        obj["metadata"]["ownerReferences"] = []
        self.puts(obj)

    def asks_for_a_gpu(self) -> None:
        obj = self.live()
        obj["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {NVIDIA: "1"}}
        self.puts(obj)

    def restarts(self) -> None:
        obj = self.live()
        labels = obj["spec"]["template"]["metadata"]["labels"]
        labels["round"] = str(int(labels.get("round", "0")) + 1)
        self.puts(obj)


WITH_IT: Json = {"annotations": {ANNOTATION: FORGED}}


@pytest.mark.parametrize(
    ("made", "steps"),
    [
        pytest.param({}, [Forger.annotates], id="it is annotated"),
        pytest.param({}, [Forger.annotates, Forger.hides], id="and who did so is hidden"),
        pytest.param(
            {},
            [Forger.annotates_and_resets_managers, Forger.hides],
            id="nobody is named, and then somebody else is",
        ),
        pytest.param(
            {},
            [Forger.annotates_unseen, Forger.hides_unseen],
            id="both in requests that are too large for the webhook",
        ),
        pytest.param(WITH_IT, [Forger.hides], id="it is made with it"),
        pytest.param(
            {**WITH_IT, "owned": True},
            [Forger.hides, Forger.loses_its_controller],
            id="it has a controller at first, so it does not come to us",
        ),
        pytest.param(
            {**WITH_IT, "template": NO_GPU},
            [Forger.hides, Forger.asks_for_a_gpu],
            id="it requests no GPU at first",
        ),
    ],
)
def test_what_a_policy_sets_stays(
    made: Json,
    steps: list[Callable[[Forger], None]],
    cluster: ControlPlane,
    namespace: str,
    repairing: Recorder,
) -> None:
    forger = Forger(cluster, namespace)
    with sandboxed(cluster, namespace):
        forger.creates(**made)
        for step in (*steps, Forger.restarts, Forger.restarts):
            step(forger)
            assert class_of(forger.live()) == "gvisor"
    assert repairing.calls(namespace, path="/mutate")


def class_of(workload: Json) -> str | None:
    name: str | None = workload["spec"]["template"]["spec"].get("runtimeClassName")
    return name


def sandboxed(cluster: ControlPlane, namespace: str) -> AbstractContextManager[None]:
    """A MutatingAdmissionPolicy that sets a runtime class where a template names none."""
    at = "object.spec.template.spec"
    change = (
        f"has({at}.runtimeClassName) ? [] : [JSONPatch{{"
        'op: "add", path: "/spec/template/spec/runtimeClassName", value: "gvisor"}]'
    )
    workloads = {
        "apiGroups": ["apps"],
        "resources": ["deployments"],
        "operations": ["CREATE", "UPDATE"],
    }
    probe = made_by("Deployment", NO_GPU, 0)

    def is_set() -> bool:
        return class_of(cluster.client.create(probe, namespace, dry_run=True).body) == "gvisor"

    return mutating(cluster, "sandbox", inside(namespace, workloads), change, is_set)
