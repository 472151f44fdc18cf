"""An API server in memory: objects with resource versions, rights, and a call at which one dies."""

from __future__ import annotations

import base64
import copy
from collections import Counter
from typing import Any

import orjson

from webhook.cluster.client import Fault, Refused
from webhook.issuing.objects import CONFIGURATIONS, SECRET

Raw = dict[str, Any]
NAMESPACE = "gpu-webhook"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
GROUP = "/apis/admissionregistration.k8s.io/v1"


class Died(BaseException):
    """The process that called ended here."""


def path_of(configuration: str) -> str:
    kind, _, name = configuration.partition("/")
    return f"{GROUP}/{kind}webhookconfigurations/{name}"


class FakeApi:
    """What `Client` can do, for any number of processes."""

    def __init__(self, *configurations: str) -> None:
        self.objects: dict[str, Raw] = {}
        self.calls = 0
        self.writes: list[str] = []  # method and path
        self.dies_at = -1  # the number of calls after which the caller ends
        self.after = True  # whether the call at which it ends still takes effect
        self.refused: set[tuple[str, str]] = set()  # verb and path that RBAC forbids
        self.disallowed: set[tuple[str, str]] = set()  # what a policy refuses
        self.away = False
        self.entries: Counter[str] = Counter()
        self._version = 0
        for each in configurations or CONFIGURATIONS[:1]:
            self.configure(each)

    def configure(self, configuration: str, entries: int = 2, bundle: bytes = b"") -> None:
        """Apply a configuration anew, as a GitOps tool does: without a caBundle, or with one."""
        client: Raw = {"service": {"name": "gpu-webhook"}}
        if bundle:
            client["caBundle"] = base64.b64encode(bundle).decode()
        webhooks = [{"name": str(n), "clientConfig": {**client}} for n in range(entries)]
        self.put(path_of(configuration), {"webhooks": webhooks})

    def put(self, path: str, obj: Raw) -> Raw:
        self._version += 1
        metadata = {**obj.get("metadata", {}), "resourceVersion": str(self._version)}
        self.objects[path] = {**copy.deepcopy(obj), "metadata": metadata}
        return self.objects[path]

    def bundles(self, configuration: str = CONFIGURATIONS[0]) -> list[bytes]:
        webhooks = self.objects[path_of(configuration)]["webhooks"]
        return [base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in webhooks]

    def secret(self) -> dict[str, bytes]:
        data = self.objects.get(f"{SECRETS}/{SECRET}", {}).get("data", {})
        return {name: base64.b64decode(text) for name, text in data.items()}

    def set_secret(self, data: dict[str, bytes]) -> None:
        held = {name: base64.b64encode(text).decode() for name, text in data.items()}
        self.put(f"{SECRETS}/{SECRET}", {"metadata": {"name": SECRET}, "data": held})

    def delete_secret(self) -> None:
        self.objects.pop(f"{SECRETS}/{SECRET}", None)

    # What `Client` offers.

    def get(self, path: str, _query: object) -> bytes:
        self._begin("get", path)
        if path not in self.objects:
            raise Refused(404, "not found")
        return self._end(self.objects[path])

    def create(self, path: str, obj: Raw) -> bytes:
        whole = f"{path}/{obj['metadata']['name']}"
        self._begin("create", path)
        if whole in self.objects:
            raise Refused(409, "already exists")
        return self._end(self.put(whole, obj))

    def replace(self, path: str, obj: Raw) -> bytes:
        self._begin("update", path)
        if path not in self.objects:
            raise Refused(404, "not found")
        if obj["metadata"]["resourceVersion"] != self._version_of(path):
            raise Refused(409, "the object has been modified")
        return self._end(self.put(path, obj))

    def patch(self, path: str, operations: list[Raw]) -> bytes:
        self._begin("patch", path)
        if path not in self.objects:
            raise Refused(404, "not found")
        test, *adding = operations
        if test["value"] != self._version_of(path):
            raise Refused(422, "the test failed")
        changed = copy.deepcopy(self.objects[path])
        for each in adding:
            _, _, position, *_ = each["path"].split("/")
            changed["webhooks"][int(position)]["clientConfig"]["caBundle"] = each["value"]
        return self._end(self.put(path, changed))

    def _version_of(self, path: str) -> str:
        return str(self.objects[path]["metadata"]["resourceVersion"])

    def _begin(self, verb: str, path: str) -> None:
        self.calls += 1
        if 0 < self.dies_at <= self.calls and not self.after:
            raise Died
        if self.away:
            raise Fault("no answer", away=True)
        if (verb, path) in self.refused:
            raise Refused(403, f"cannot {verb} {path}")
        if (verb, path) in self.disallowed:
            raise Refused(422, f"a policy denied {verb} {path}")
        if verb != "get":
            self.writes.append(f"{verb} {path}")

    def _end(self, obj: Raw) -> bytes:
        if 0 < self.dies_at <= self.calls:
            raise Died
        return orjson.dumps(obj)
