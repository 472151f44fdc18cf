"""An object on its way through `/mutate` and `/validate`, as an API server sends it."""

from __future__ import annotations

import base64
import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jsonpatch

from tests.hostile.wire import UID
from webhook.admission.decide import Decider
from webhook.admission.endpoint import Endpoint
from webhook.kube.pod import as_map
from webhook.rules import POLICY, RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.capacity.nodes import Inventory
    from webhook.core.rule import Rule
    from webhook.core.settings import Settings

    Raw = dict[str, Any]

JSON = "application/json"


@dataclass
class Lines:
    """The log: what is written to it is kept."""

    kept: list[Raw] = field(default_factory=list)

    def write(self, level: str, message: str, **fields: Any) -> None:
        self.kept.append({"level": level, "message": message, **fields})


@dataclass
class Admitted:
    """What came of the object, and what was said of it."""

    object: Raw
    denial: str
    warnings: list[str]
    lines: list[Raw]

    @property
    def codes(self) -> set[str]:
        return {code for line in self.lines for code in line["codes"]}

    @property
    def failed(self) -> set[str]:
        of_rules = (line for line in self.lines if line["outcome"] == "failed")
        return {code for line in of_rules for code in line["codes"]}


def admitted(
    obj: Raw,
    settings: Settings,
    inventory: Inventory | None = None,
    rules: Sequence[Rule] = RULES,
    policy: Sequence[Rule] = POLICY,
) -> Admitted:
    """Send the object to /mutate, and what it makes of it to /validate."""
    log: Any = Lines()
    endpoint = Endpoint(Decider(rules, settings, inventory, log, policy=policy), str)
    first = _answer(endpoint, "/mutate", obj)
    patch = json.loads(base64.b64decode(first["patch"])) if "patch" in first else []
    made = jsonpatch.apply_patch(copy.deepcopy(obj), patch)
    last = _answer(endpoint, "/validate", made)
    said = [*first.get("warnings", ()), *last.get("warnings", ())]
    denial = "" if last["allowed"] else last["status"]["message"]
    return Admitted(made, denial, said, log.kept)


def _answer(endpoint: Endpoint, path: str, obj: Raw) -> Raw:
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    kind = {"group": group, "version": version, "kind": obj["kind"]}
    request = {
        "uid": UID,
        "kind": kind,
        "resource": {"group": group, "version": version, "resource": f"{obj['kind'].lower()}s"},
        "operation": "CREATE",
        "namespace": as_map(obj.get("metadata")).get("namespace") or "default",
        "userInfo": {"username": "ada", "groups": ["system:authenticated"]},
        "object": obj,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer = endpoint.post(path, JSON, "", json.dumps(review).encode())
    assert answer.status == 200, answer.body
    response: Raw = json.loads(answer.body)["response"]
    return response
