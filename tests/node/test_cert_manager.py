"""The mode `cert-manager` of manifests and chart, with the real cert-manager and a real node."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.cluster.client import until
from tests.cluster.remains import everything
from tests.cluster.test_install import NEW_KEYS
from tests.cluster.test_install import run as shell
from tests.cluster.webhook import KINDS
from tests.node import operators
from tests.node.build import ROOT
from tests.node.cert_manager import CertManager
from tests.node.cluster import RealCluster
from tests.node.load import REPAIRED, Load, admit
from tests.node.network import own_network
from tests.node.test_chart import doctor, run
from webhook.certs.authority import blocks_in
from webhook.issuing.objects import CONFIGURATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    Way = Callable[[RealCluster, Path], AbstractContextManager[None]]

pytestmark = pytest.mark.operators

NAMESPACE, SECRET = "gpu-webhook", "gpu-webhook-tls"
COMPONENTS = ("guard", "guard-refuse", "workload-repair", "cert-manager/ca-bundle")
RATE = float(os.environ.get("OPERATORS_RATE", "25"))  # admissions a second
_PROJECTED = 60.0  # seconds until a kubelet of tests/node has shown a Secret to its pods


@pytest.fixture(scope="module")
def cluster(_possible: None) -> Iterator[RealCluster]:
    operators.demand("cert-manager")
    with own_network(RealCluster.host), RealCluster() as running:
        yield running


@pytest.fixture(scope="module")
def manager(
    cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CertManager]:
    with CertManager(cluster, tmp_path_factory.mktemp("cert-manager")) as running:
        yield running


@contextmanager
def by_kustomize(cluster: RealCluster, home: Path) -> Iterator[None]:
    """As docs/install.md says it for components; removed as docs/uninstall.md says it."""
    manifests = os.path.relpath(ROOT / "manifests", home)
    components = ", ".join(f"{manifests}/{each}" for each in COMPONENTS)
    (home / "settings.yaml").write_text("workloads: {repair: true}\n")
    settings = "{name: gpu-webhook-settings, behavior: replace, files: [settings.yaml], "
    (home / "kustomization.yaml").write_text(
        "namespace: gpu-webhook\n"
        f"resources: [{manifests}/cert-manager]\ncomponents: [{components}]\n"
        f"configMapGenerator:\n- {settings}options: {{disableNameSuffixHash: true}}}}\n"
    )
    cluster.install(home)
    try:
        yield
    finally:
        for each in CONFIGURATIONS:
            kind, _, name = each.partition("/")
            cluster.kubectl("delete", "--ignore-not-found", f"{kind}webhookconfiguration", name)
        cluster.kubectl("delete", "--ignore-not-found", "-k", str(home))


@contextmanager
def by_helm(cluster: RealCluster, home: Path) -> Iterator[None]:
    wanted = "certificates.mode=cert-manager,guard.enabled=true,guard.refuse=true"
    wanted += ",workloadRepair.enabled=true"
    words = ("gpu-webhook", str(ROOT / "manifests"), "--create-namespace", "--wait")
    run(cluster, home, "install", *words, "--set", wanted)
    try:
        yield
    finally:
        run(cluster, home, "uninstall", "gpu-webhook", "--wait")
        cluster.kubectl("delete", "namespace", NAMESPACE)


def bundles(cluster: RealCluster) -> list[bytes]:
    """The caBundles of our webhook configurations."""
    return [
        base64.b64decode(entry["clientConfig"].get("caBundle", ""))
        for kind in KINDS
        for configuration in cluster.client.list(kind)
        if configuration["metadata"]["name"].startswith("gpu-webhook")
        for entry in configuration["webhooks"]
    ]


def writers(cluster: RealCluster) -> set[str]:
    """Who wrote a caBundle of ours."""
    return {
        writer["manager"]
        for kind in KINDS
        for configuration in cluster.client.list(kind)
        if configuration["metadata"]["name"].startswith("gpu-webhook")
        for writer in configuration["metadata"]["managedFields"]
        if "f:caBundle" in str(writer["fieldsV1"])
    }


def _addresses(cluster: RealCluster) -> list[str]:
    pods = cluster.client.list("Pod", NAMESPACE, "app.kubernetes.io/name=gpu-webhook")
    return [each["status"].get("podIP", "") for each in pods]


def served(cluster: RealCluster) -> set[str]:
    """The certificates that the replicas show, as PEM; an empty text for one that is silent."""
    return {_shown_at(each) for each in _addresses(cluster)}


def _shown_at(address: str) -> str:
    try:
        return ssl.get_server_certificate((address, 8443), timeout=5)
    except OSError:
        return ""


def connect_as_the_api_server_does(cluster: RealCluster) -> None:
    """Raise if a caBundle does not trust what a replica shows. Open connections would hide it."""
    until(lambda: "" not in served(cluster), "replicas that all answer", _PROJECTED)
    for bundle in {*bundles(cluster)}:
        context = ssl.create_default_context(cadata=bundle.decode())
        for address in _addresses(cluster):
            with socket.create_connection((address, 8443), timeout=5) as plain:
                context.wrap_socket(plain, server_hostname=f"gpu-webhook.{NAMESPACE}.svc").close()


@pytest.mark.parametrize("way", [by_kustomize, by_helm])
def test_from_nothing_to_a_repaired_pod_and_back(
    way: Way, cluster: RealCluster, manager: CertManager, tmp_path: Path
) -> None:
    before = everything(cluster)
    with way(cluster, tmp_path):
        assert manager.is_ready("gpu-webhook", NAMESPACE)
        secret = manager.secret(SECRET, NAMESPACE)
        until(lambda: {*bundles(cluster)} == {secret["ca.crt"]}, "the caBundles", 20)
        assert writers(cluster) == {"cert-manager-cainjector"}
        until(lambda: admit(cluster) == REPAIRED, "a repaired pod", 30)
        status, said = doctor(cluster)
        assert status == 0, said
    until(lambda: everything(cluster) == before, "nothing of it to be left", 60)


@contextmanager
def no_call_fails(cluster: RealCluster, what: str) -> Iterator[None]:
    """Legacy pods all the time; each must be repaired."""
    with Load(cluster, RATE) as load:
        time.sleep(2)
        yield
        time.sleep(5)
    print(f"\n{what}: {load}")  # noqa: T201 - pytest -s
    assert (load.missed(), load.failed_calls()) == ([], {})
    assert load.kept_its_rate()


@pytest.mark.parametrize("way", ["kustomize", "helm"])
def test_no_call_fails_on_the_way_from_base_and_back(
    way: str, cluster: RealCluster, manager: CertManager, tmp_path: Path
) -> None:
    def install(mode: str, kustomization: str) -> None:
        if way == "kustomize":
            cluster.install(ROOT / "manifests" / kustomization)
            return
        words = ("upgrade", "--install", "gpu-webhook", str(ROOT / "manifests"), "--wait")
        run(cluster, tmp_path, *words, "--create-namespace", "--set", f"certificates.mode={mode}")

    install("self", "base")
    try:
        until(lambda: all(bundles(cluster)), "the caBundles", 30)
        until(lambda: admit(cluster) == REPAIRED, "a repaired pod", 30)
        with no_call_fails(cluster, f"{way}: from its own certificates to cert-manager"):
            install("cert-manager", "cert-manager")
            shown = {manager.secret(SECRET, NAMESPACE)["tls.crt"].decode()}
            until(lambda: served(cluster) == shown, "only new replicas", _PROJECTED)
            connect_as_the_api_server_does(cluster)
        with no_call_fails(cluster, f"{way}: and back"):
            install("self", "base")
            until(lambda: not served(cluster) & shown, "only new replicas", _PROJECTED)
            connect_as_the_api_server_does(cluster)
    finally:
        if way == "helm":
            run(cluster, tmp_path, "uninstall", "gpu-webhook", "--wait")
        else:
            for each in CONFIGURATIONS:
                kind, _, name = each.partition("/")
                cluster.kubectl("delete", "--ignore-not-found", f"{kind}webhookconfiguration", name)
        cluster.kubectl("delete", "namespace", NAMESPACE)
        cluster.kubectl("delete", "--ignore-not-found", "-k", str(ROOT / "manifests" / "base"))


def test_doctor_says_where_to_look_for_a_certificate_that_is_missing(
    cluster: RealCluster, manager: CertManager, tmp_path: Path
) -> None:
    """The issuer is not there."""
    wanted = "certificates.mode=cert-manager,certificates.issuerRef.name=nobody"
    words = ("gpu-webhook", str(ROOT / "manifests"), "--create-namespace")
    run(cluster, tmp_path, "install", *words, "--set", wanted)
    try:
        until(lambda: "status" in manager.certificate("gpu-webhook", NAMESPACE), "a status", 30)
        status, said = doctor(cluster)
    finally:
        run(cluster, tmp_path, "uninstall", "gpu-webhook", "--wait")
        cluster.kubectl("delete", "namespace", NAMESPACE)
    look = "kubectl -n gpu-webhook describe certificate gpu-webhook: cert-manager makes it"
    assert status == 3, said
    assert "there is no Secret gpu-webhook-tls: a new pod cannot start" in said
    assert look in said


@pytest.fixture(scope="module")
def installed(
    cluster: RealCluster, manager: CertManager, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The kustomization that is applied; the tests above install their own."""
    home = tmp_path_factory.mktemp("installed")
    with by_kustomize(cluster, home):
        until(lambda: manager.is_ready("gpu-webhook", NAMESPACE), "the certificate", 30)
        until(lambda: all(bundles(cluster)), "the caBundles", 20)
        until(lambda: admit(cluster) == REPAIRED, "a repaired pod", 30)
        yield home


def renew(cluster: RealCluster, manager: CertManager) -> None:
    """Have the certificate renewed, and wait until all replicas show the new one."""
    before = manager.secret(SECRET, NAMESPACE)["tls.crt"]
    manager.renew("gpu-webhook", NAMESPACE)
    new = manager.secret(SECRET, NAMESPACE)["tls.crt"]
    assert new != before
    started = time.monotonic()
    until(lambda: served(cluster) == {new.decode()}, "the new certificate", _PROJECTED)
    print(f"\nshown {time.monotonic() - started:.0f} s after it was in the Secret")  # noqa: T201


@pytest.mark.usefixtures("installed")
def test_no_call_fails_while_the_certificate_is_renewed(
    cluster: RealCluster, manager: CertManager
) -> None:
    with no_call_fails(cluster, "a renewal"):
        renew(cluster, manager)


@pytest.mark.usefixtures("installed")
def test_no_call_fails_if_it_is_renewed_while_nobody_fills_in_ca_bundles(
    cluster: RealCluster, manager: CertManager
) -> None:
    """Such as while the pod of cainjector waits for a node."""
    with no_call_fails(cluster, "a renewal without cainjector"), manager.without("cainjector"):
        renew(cluster, manager)
        connect_as_the_api_server_does(cluster)


def public_key(pem: bytes) -> bytes:
    key = x509.load_pem_x509_certificate(pem).public_key()
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def authorities(cluster: RealCluster) -> set[tuple[bytes, ...]]:
    """The CAs of each caBundle of ours."""
    return {tuple(blocks_in(each)) for each in bundles(cluster)}


@pytest.mark.usefixtures("installed")
def test_no_call_fails_while_the_ca_is_renewed(cluster: RealCluster, manager: CertManager) -> None:
    with no_call_fails(cluster, "a renewal of the CA"):
        manager.renew("gpu-webhook-ca", NAMESPACE)
        renew(cluster, manager)
        connect_as_the_api_server_does(cluster)
    old, new = authorities(cluster).pop()
    assert public_key(old) == public_key(new)


@pytest.mark.usefixtures("installed")
def test_no_call_fails_while_a_ca_that_leaked_is_replaced(
    cluster: RealCluster, manager: CertManager, installed: Path, tmp_path: Path
) -> None:
    """docs/install.md has the commands."""
    make, distrust = NEW_KEYS
    before = {each for found in authorities(cluster) for each in found}
    with no_call_fails(cluster, "new keys"):
        shell(make, cluster, tmp_path)
        new = manager.secret(SECRET, NAMESPACE)
        until(lambda: served(cluster) == {new["tls.crt"].decode()}, "the new one", _PROJECTED)
        shell(distrust, cluster, tmp_path)
        cluster.install(installed)
    assert authorities(cluster) == {tuple(blocks_in(new["ca.crt"]))}
    assert public_key(new["ca.crt"]) not in {public_key(each) for each in before}
