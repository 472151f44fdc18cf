"""Which chains of certificates an API server accepts: the table that doctor and watcher rely on."""

from __future__ import annotations

import base64
import json
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.certs.chains import CHAINS, SERVER
from tests.cluster.client import path_of, until
from tests.cluster.pods import named, pod
from tests.cluster.webhook import KINDS, Endpoint

if TYPE_CHECKING:
    from pathlib import Path

    from tests.certs.chained import Signer
    from tests.cluster.controlplane import ControlPlane


@pytest.mark.parametrize(("shown", "bundle", "is_trusted"), CHAINS.values(), ids=CHAINS)
def test_an_api_server_calls_if_it_trusts_the_chain(
    shown: list[Signer],
    bundle: list[Signer],
    is_trusted: bool,  # noqa: FBT001
    cluster: ControlPlane,
    namespace: str,
    tmp_path: Path,
) -> None:
    calls: list[str] = []

    def outcome() -> bool | None:
        """Whether it was called; None while the API server has not read the entry."""
        answer = cluster.client.try_create(named(pod(), "one"), namespace, dry_run=True)
        return True if calls else False if "x509: " in str(answer.body) else None

    def respond(path: str, body: bytes) -> tuple[int, bytes]:
        calls.append(path)
        response = {"uid": json.loads(body)["request"]["uid"], "allowed": True}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return 200, json.dumps({**review, "response": response}).encode()

    with Endpoint(cluster.authority, respond, "chained") as endpoint:
        files = tmp_path / "tls.crt", tmp_path / "tls.key"
        files[0].write_bytes(b"".join(each.text for each in shown))
        files[1].write_bytes(SERVER.secret)
        endpoint.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        endpoint.tls.load_cert_chain(*files)
        text = b"".join(each.text for each in bundle)
        client = {
            "url": f"https://127.0.0.1:{endpoint.port}/",
            "caBundle": base64.b64encode(text).decode(),
        }
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        entry = {
            "name": "chained.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "rules": [{**rule, "operations": ["CREATE"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "clientConfig": client,
        }
        path = path_of(KINDS[0])
        cluster.client.demand("POST", path, {"metadata": {"name": "chained"}, "webhooks": [entry]})
        try:
            until(lambda: outcome() is is_trusted, "the call, or the refusal", 15)
        finally:
            cluster.client.demand("DELETE", f"{path}/chained")
