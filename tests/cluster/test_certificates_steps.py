"""A leader that ends between two calls, at the real API server: the next one goes on from there."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.replicas import NAMESPACE, keeper_of
from tests.cluster.webhook import BASE, KINDS, kustomized
from tests.issuing.replicas import Time
from webhook.certs.renewal import distrusting
from webhook.issuing import folder
from webhook.issuing.lease import SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane
    from webhook.issuing.keeper import Keeper

CALLS = ("get", "create", "replace", "patch")
PASSES = 5


class Died(BaseException):
    """The process that called ended here."""


@pytest.fixture(scope="module")
def installed(cluster: ControlPlane) -> Iterator[None]:
    """The shipped configurations, in a namespace without pods."""
    kinds = {"Namespace", *KINDS}
    objects = [each for each in kustomized(cluster, BASE) if each["kind"] in kinds]
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    yield
    for kind in KINDS:
        cluster.client.delete(kind, "gpu-webhook")
    name = ("gpu-webhook-certificates", "-n", NAMESPACE, "--ignore-not-found")
    cluster.kubectl("delete", "secret,lease", *name)


@contextmanager
def dying(keeper: Keeper, calls: int) -> Iterator[list[str]]:
    """Its process ends after so many calls; the last one takes effect, and nobody hears of it."""
    client, made = keeper._objects._client, []

    def counted(name: str) -> Any:
        call = getattr(client, name)

        def run(path: str, *more: Any) -> Any:
            made.append(f"{name} {path}")
            answer = call(path, *more)
            if len(made) >= calls:
                raise Died
            return answer

        return run

    with pytest.MonkeyPatch.context() as patched:
        for name in CALLS:
            patched.setattr(client, name, counted(name))
        yield made


def is_trusted(keeper: Keeper, served: Path) -> bool:
    pair = folder.read(served)
    found, _ = keeper._objects.configurations()
    bundles = {name: each.bundles for name, each in found.items()}
    return pair is not None and bool(bundles) and not distrusting(pair, bundles)


@pytest.mark.usefixtures("installed")
def test_the_next_leader_ends_what_one_began(cluster: ControlPlane, tmp_path: Path) -> None:
    """The CA is renewed each time, since its time has come each time."""
    time = Time()
    host, second = f"gpu-webhook.{NAMESPACE}.svc", tmp_path / "second"
    writes: set[str] = set()
    calls, finished = 0, False
    while not finished:
        calls += 1
        time.set_by += 3000 * 86_400.0
        first = keeper_of(cluster, tmp_path / "first", host, time.clocks())
        try:
            with dying(first, calls) as made:
                first.pass_once()
            finished = True
        except Died:
            writes.add(made[-1])
        time.steady += SECONDS + 1
        other = keeper_of(cluster, second, host, time.clocks())
        other.pass_once()
        time.steady += SECONDS + 1
        for _ in range(PASSES):
            time.steady += other.pass_once()
        assert other.status["fault"] == ""
        for served in (tmp_path / "first", second):
            assert not served.exists() or is_trusted(other, served)
        other._lease.release()
    assert sum("patch" in each for each in writes) == 2
    assert any(each.startswith("replace") and "secrets" in each for each in writes)
