"""A client of kube-apiserver that hides nothing: raw objects, and the warnings of each answer."""

from __future__ import annotations

import http.client
import re
import ssl
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.cluster.certificates import KeyPair

Json = dict[str, Any]
T = TypeVar("T")

_NAMESPACED = {
    "Pod": ("api/v1", "pods"),
    "Event": ("api/v1", "events"),
    "LimitRange": ("api/v1", "limitranges"),
    "ServiceAccount": ("api/v1", "serviceaccounts"),
    "PodTemplate": ("api/v1", "podtemplates"),
    "ReplicationController": ("api/v1", "replicationcontrollers"),
    "Deployment": ("apis/apps/v1", "deployments"),
    "ReplicaSet": ("apis/apps/v1", "replicasets"),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
    "DaemonSet": ("apis/apps/v1", "daemonsets"),
    "Job": ("apis/batch/v1", "jobs"),
    "CronJob": ("apis/batch/v1", "cronjobs"),
}
_REGISTRATION = "apis/admissionregistration.k8s.io/v1"
_CLUSTER_WIDE = {
    "Node": ("api/v1", "nodes"),
    "Namespace": ("api/v1", "namespaces"),
    "RuntimeClass": ("apis/node.k8s.io/v1", "runtimeclasses"),
    "PriorityClass": ("apis/scheduling.k8s.io/v1", "priorityclasses"),
    "MutatingWebhookConfiguration": (_REGISTRATION, "mutatingwebhookconfigurations"),
    "ValidatingWebhookConfiguration": (_REGISTRATION, "validatingwebhookconfigurations"),
    "MutatingAdmissionPolicy": (_REGISTRATION, "mutatingadmissionpolicies"),
    "MutatingAdmissionPolicyBinding": (_REGISTRATION, "mutatingadmissionpolicybindings"),
}
_IDLE = 60.0  # seconds; the API server closes connections that nobody uses for 90
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server answered; `warnings` as kubectl would print them."""

    status: int
    body: Any
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status < http.client.BAD_REQUEST

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


class Refused(Exception):  # noqa: N818 - what happened, not that it is an error
    """The API server said no."""

    def __init__(self, what: str, answer: Answer) -> None:
        super().__init__(f"{what}: {answer.status} {answer.message}")
        self.answer = answer


class Client:
    """Speaks to one API server; each thread keeps its own connection."""

    def __init__(self, port: int, authority: str, identity: KeyPair) -> None:
        self._address = ("127.0.0.1", port)
        self._tls = ssl.create_default_context(cafile=authority)
        self._tls.load_cert_chain(identity.certificate, identity.key)
        self._local = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> Answer:
        """Send one request; give whatever the answer is."""
        target = "/" + path.lstrip("/") + (f"?{urlencode(query)}" if query else "")
        raw = None if body is None else orjson.dumps(body)
        headers = {"Accept": "application/json", "Content-Type": media_type}
        try:
            response, text = self._exchange(method, target, raw, headers)
        except (
            OSError,
            http.client.HTTPException,
        ):  # a closed TLS connection is no ConnectionError
            self._forget()
            if method != "GET":
                raise
            response, text = self._exchange(method, target, raw, headers)
        said = ", ".join(response.headers.get_all("Warning", []))
        warnings = tuple(re.sub(r"\\(.)", r"\1", each) for each in _WARNING.findall(said))
        return Answer(response.status, _parsed(text), warnings)

    def _exchange(
        self, method: str, target: str, raw: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is not None and time.monotonic() - self._local.used > _IDLE:
            self._forget()
            connection = None
        if connection is None:
            connection = http.client.HTTPSConnection(*self._address, context=self._tls, timeout=60)
            self._local.connection = connection
            self._connections.append(connection)
        self._local.used = time.monotonic()
        connection.request(method, target, raw, dict(headers))
        response = connection.getresponse()
        text = response.read()
        self._local.used = time.monotonic()
        return response, text

    def _forget(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._connections.remove(connection)
            self._local.connection = None

    def close(self) -> None:
        """Close the connections of all threads; the next request opens a new one."""
        while self._connections:
            self._connections.pop().close()
        self._local = threading.local()

    def demand(self, method: str, path: str, body: object = None, **options: Any) -> Answer:
        """Send one request that must succeed."""
        answer = self.request(method, path, body, **options)
        if not answer.ok:
            raise Refused(f"{method} {path}", answer)
        return answer

    def get(self, kind: str, name: str, namespace: str = "") -> Json:
        body: Json = self.demand("GET", path_of(kind, namespace, name)).body
        return body

    def delete_all(self, kind: str, namespace: str = "") -> bool:
        """Delete all objects of a kind; tell if there were any."""
        body = self.demand("DELETE", path_of(kind, namespace), _AT_ONCE).body
        # What is nested too deeply for our parser stays text.
        return not isinstance(body, dict) or bool(body["items"])

    def list(self, kind: str, namespace: str = "", selector: str = "") -> list[Json]:
        query = {"labelSelector": selector} if selector else None
        answer = self.demand("GET", path_of(kind, namespace), query=query)
        items: list[Json] = answer.body["items"]
        return items

    def create(self, what: Json, namespace: str = "", *, dry_run: bool = False) -> Answer:
        """Create an object, or only ask what would become of it."""
        answer = self.try_create(what, namespace, dry_run=dry_run)
        if not answer.ok:
            raise Refused(f"create {what['kind']}", answer)
        return answer

    def try_create(self, what: Json, namespace: str = "", *, dry_run: bool = False) -> Answer:
        query = {"dryRun": "All"} if dry_run else None
        return self.request("POST", path_of(what["kind"], namespace), what, query=query)

    def patch(
        self, kind: str, name: str, changes: object, namespace: str = "", *, subresource: str = ""
    ) -> Answer:
        """Apply a merge patch."""
        path = path_of(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        return self.demand("PATCH", path, changes, media_type="application/merge-patch+json")

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete now: there is no kubelet that would end a grace period."""
        answer = self.request("DELETE", path_of(kind, namespace, name), _AT_ONCE)
        if not answer.ok and answer.status != http.client.NOT_FOUND:
            raise Refused(f"delete {kind} {name}", answer)


_AT_ONCE = {
    "kind": "DeleteOptions",
    "apiVersion": "v1",
    "gracePeriodSeconds": 0,
    "propagationPolicy": "Background",
}


def path_of(kind: str, namespace: str = "", name: str = "") -> str:
    """Give the address of a kind, or of one object."""
    if kind in _CLUSTER_WIDE:
        group, plural = _CLUSTER_WIDE[kind]
        parts = [group, plural]
    else:
        group, plural = _NAMESPACED[kind]
        parts = [group, "namespaces", namespace, plural] if namespace else [group, plural]
    return "/".join([*parts, name] if name else parts)


def _parsed(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.decode(errors="replace")


def until(question: Callable[[], T | None], what: str, seconds: float = 20.0) -> T:
    """Ask until the answer is true, at most so long; give it. Nothing (0, "", []) is no answer."""
    deadline = time.monotonic() + seconds
    pause = 0.02
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)
