"""Another source of certificates for a release of the chart, as docs/install.md says it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from tests.cluster import helm
from tests.cluster.client import path_of
from tests.cluster.own_chart import CHART, NAMESPACE
from tests.cluster.releases import HOW, Release, released
from tests.cluster.webhook import KINDS
from webhook.certs.authority import blocks_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane


@pytest.fixture
def release(cluster: ControlPlane, tmp_path: Path) -> Iterator[Release]:
    with released(cluster, tmp_path) as made:
        yield made


def test_another_mode_of_certificates_takes_the_rights_away(release: Release) -> None:
    release.install()
    release.keeper.pass_once()
    rights = ("get", "role,rolebinding,secret,lease", "-n", NAMESPACE, "-o", "name")
    assert "gpu-webhook-certificates" in release.cluster.kubectl(*rights)

    release.upgrade("--set", "certificates.mode=openshift")

    assert "gpu-webhook-certificates" not in release.cluster.kubectl(*rights)
    roles = release.cluster.kubectl("get", "clusterrole,clusterrolebinding", "-o", "name")
    assert "gpu-webhook-certificates" not in roles


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_a_ca_of_ones_own_stays_until_the_watchers_have_taken_over(
    how: str, release: Release
) -> None:
    """docs/install.md has these steps."""
    own = release.cluster.authority.bundle
    given = ("--set", "certificates.mode=secret", "--set-file", f"certificates.caBundle={own}")
    release.install(*given, how)
    before = release.bundles()

    release.upgrade("--reset-then-reuse-values", "--set", "certificates.mode=self", how)
    assert release.bundles() == before, "the replicas of before still have their certificate"
    release.keeper.pass_once()
    filled = release.bundles()
    for texts in filled.values():
        (text,) = texts
        assert len(blocks_in(base64.b64decode(text))) == 2

    last = ("--server-side=true", "--force-conflicts")
    release.upgrade("--reset-then-reuse-values", "--set", "certificates.caBundle=", *last)
    assert release.bundles() == filled


def mounted(release: Release) -> dict[str, object]:
    """The volume of the certificate."""
    found = release.cluster.client.get("Deployment", "gpu-webhook", NAMESPACE)
    volumes = found["spec"]["template"]["spec"]["volumes"]
    return next(each for each in volumes if each["name"] == "tls")


def authorities(release: Release) -> set[tuple[bytes, ...]]:
    """The CAs in the caBundles."""
    texts = set().union(*release.bundles().values())
    return {tuple(blocks_in(base64.b64decode(text))) for text in texts}


GIVEN = {"with a CA": ["--set-file", "certificates.caBundle={}"], "without a CA": []}


@pytest.mark.parametrize("words", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_a_change_that_would_stop_half_way_changes_nothing(
    how: str, words: list[str], release: Release
) -> None:
    """Helm 4 changed the Deployment, and then met the conflict about caBundle."""
    release.install(how)
    release.keeper.pass_once()
    before = mounted(release), release.bundles()
    own = [each.format(release.cluster.authority.bundle) for each in words]
    done = helm.run(
        release.home,
        *("upgrade", "gpu-webhook", str(CHART), "-n", NAMESPACE, release.kubeconfig, how),
        *("--reset-then-reuse-values", "--set", "certificates.mode=secret", *own),
    )
    assert done.returncode != 0
    assert "docs/install.md#change-the-certificates" in done.stderr
    assert (mounted(release), release.bundles()) == before


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_from_its_own_certificates_to_one_of_yours(how: str, release: Release) -> None:
    """docs/install.md has these steps: the replicas of before and after are always trusted."""
    release.install(how, "--set", "guard.enabled=true,guard.refuse=true")
    release.keeper.pass_once()
    ((own,),) = authorities(release)
    mine = release.cluster.authority.bundle
    both = release.home / "both.crt"
    both.write_bytes(own + mine.read_bytes())

    again = "--reset-then-reuse-values"
    force = ("--force-conflicts",) if how == "--server-side=true" else ()
    release.upgrade(again, "--set-file", f"certificates.caBundle={both}", *force)
    release.keeper.pass_once()
    assert authorities(release) == {(own, *blocks_in(mine.read_bytes()))}
    assert "emptyDir" in mounted(release)

    release.upgrade(again, "--set", "certificates.mode=secret")
    assert authorities(release) == {(own, *blocks_in(mine.read_bytes()))}
    assert "secret" in mounted(release)

    release.upgrade(again, "--set-file", f"certificates.caBundle={mine}")
    assert authorities(release) == {tuple(blocks_in(mine.read_bytes()))}


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_what_an_injector_wrote_stays_at_the_change_to_its_mode(how: str, release: Release) -> None:
    """The last step of docs/install.md, after `secret` with both CAs."""
    mine = release.cluster.authority.bundle
    own = ("--set", "certificates.mode=secret", "--set-file", f"certificates.caBundle={mine}")
    release.install(how, *own)
    note = "service.beta.openshift.io/inject-cabundle=true"
    injected = base64.b64encode(b"the CA of the injector").decode()
    for kind in KINDS:
        release.cluster.kubectl("annotate", kind, "gpu-webhook", note)
        found = release.cluster.client.get(kind, "gpu-webhook")
        for entry in found["webhooks"]:
            entry["clientConfig"]["caBundle"] = injected
        release.cluster.client.demand("PUT", path_of(kind, name="gpu-webhook"), found)
    last = ("--set", "certificates.mode=openshift,certificates.caBundle=")
    force = ("--server-side=true", "--force-conflicts")
    release.upgrade("--reset-then-reuse-values", *last, *force)
    assert set().union(*release.bundles().values()) == {injected}
    release.upgrade("--reset-then-reuse-values")
    assert set().union(*release.bundles().values()) == {injected}
