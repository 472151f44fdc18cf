"""docs/access.md: an API server that shows a certificate is answered, another is not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.certificates import Authority
from tests.cluster.client import until
from tests.cluster.controlplane import ControlPlane
from tests.cluster.pods import ALPHA, NVIDIA, alpha, limits_of, named, pod
from tests.cluster.scheduling import remove
from tests.cluster.webhook import (
    ROOT,
    WebhookServer,
    failed_open,
    registered,
    registered_but_down,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.client import Json

PAGE = (ROOT / "docs" / "access.md").read_text()
ADMISSION, KUBECONFIG, EGRESS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
FILE = "/etc/kubernetes/webhooks.kubeconfig"
NAME = "kube-apiserver"


def configured(folder: Path, authority: Authority, user: str, port: int) -> list[str]:
    """The files of the page, for a webhook at a port of loopback, and the flag that names them."""
    pair = authority.client(user)
    config: Json = yaml.safe_load(KUBECONFIG)
    config["users"][0]["name"] = f"127.0.0.1:{port}"
    config["users"][0]["user"] = {
        "client-certificate": str(pair.certificate),
        "client-key": str(pair.key),
    }
    (folder / "webhooks.kubeconfig").write_text(yaml.safe_dump(config))
    assert ADMISSION.count(FILE) == 2
    admission = ADMISSION.replace(FILE, str(folder / "webhooks.kubeconfig"))
    (folder / "admission.yaml").write_text(admission)
    return [f"--admission-control-config-file={folder / 'admission.yaml'}"]


@pytest.mark.slow
def test_the_api_server_shows_its_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    flags = [f"--client-ca={authority.bundle}", f"--client-name={NAME}"]
    server = WebhookServer(tmp_path, authority, flags)
    known = configured(tmp_path, authority, NAME, server.port)
    with (
        server,
        ControlPlane(apiserver_flags=known) as cluster,
        registered(cluster, server.port, authority.bundle),
    ):
        before = failed_open(cluster)
        made = cluster.client.create(named(pod(alpha(1)), "a"), "default", dry_run=True)
        assert limits_of(made.body) == [{NVIDIA: "1"}]
        assert failed_open(cluster) == before


@pytest.mark.slow
def test_an_api_server_of_another_name_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    flags = [f"--client-ca={authority.bundle}", "--client-name=another"]
    server = WebhookServer(tmp_path, authority, flags)
    known = configured(tmp_path, authority, NAME, server.port)
    with (
        server,
        ControlPlane(apiserver_flags=known) as cluster,
        registered_but_down(cluster, server.port, authority.bundle),  # as far as it can see
    ):
        before = failed_open(cluster)
        made = cluster.client.create(named(pod(alpha(1)), "a"), "default", dry_run=True)
        assert failed_open(cluster) == before + 1
        assert limits_of(made.body) == [{ALPHA: "1"}]
        said = "calls with a client certificate for another name were refused"
        until(lambda: said in server.log(), "the webhook to say so", 30)


@pytest.mark.slow
def test_who_trusts_another_ca_than_the_other_has_is_told(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    server = WebhookServer(tmp_path, ours, [f"--client-ca={ours.bundle}"])
    known = configured(tmp_path, theirs, NAME, server.port)
    with server, ControlPlane(apiserver_flags=known) as cluster:
        with registered_but_down(cluster, server.port, ours.bundle):
            until(lambda: "no CA in --client-ca signed" in server.log(), "the webhook to say so")
            failed = cluster.failed_calls()
            assert all("remote error: tls: " in each for each in failed), failed
        with registered_but_down(cluster, server.port, theirs.bundle):
            said = "the client does not accept the certificate of this server"
            until(lambda: said in server.log(), "the webhook to say so")


def test_the_network_policies_are_accepted(cluster: ControlPlane, tmp_path: Path) -> None:
    """The component, and the one of the page for what goes out, which selects our pods."""
    (tmp_path / "egress.yaml").write_text(EGRESS)
    cluster.make_namespace("gpu-webhook")
    try:
        component = ROOT / "manifests" / "network-policy"
        said = cluster.kubectl("apply", "--dry-run=server", "-k", str(component))
        assert "networkpolicy.networking.k8s.io/gpu-webhook created" in said
        said = cluster.kubectl("apply", "--dry-run=server", "-f", str(tmp_path / "egress.yaml"))
        assert "networkpolicy.networking.k8s.io/gpu-webhook-to-api-server created" in said
        base = cluster.kubectl("kustomize", str(ROOT / "manifests" / "base"))
        made = (each for each in yaml.safe_load_all(base) if each["kind"] == "Deployment")
        chosen = yaml.safe_load(EGRESS)["spec"]["podSelector"]["matchLabels"].items()
        for deployment in made:
            assert chosen <= deployment["spec"]["template"]["metadata"]["labels"].items()
    finally:
        remove(cluster.client, "gpu-webhook")
