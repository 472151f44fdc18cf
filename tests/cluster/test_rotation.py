"""A new pair with another type of key, under a new CA: the API server goes on being answered."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.certs.chained import KINDS, chained
from tests.certs.test_rotation import FLAGS, is_shown, put
from tests.cluster.client import until
from tests.cluster.pods import NVIDIA, alpha, limits_of, named, pod
from tests.cluster.webhook import failed_open, registered
from tests.hostile.wire import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane


@pytest.mark.slow
def test_the_api_server_accepts_each_new_pair(cluster: ControlPlane, tmp_path: Path) -> None:
    pairs = {kind: chained(tmp_path / kind, make) for kind, make in KINDS.items()}
    first = pairs["P-256"]
    put(first, tmp_path / "live")
    with serving(tmp_path, *FLAGS, "--workers=1", trust=first.ca) as server:
        for kind in ("P-256", "RSA", "Ed25519", "P-384", "P-521"):
            pair = pairs[kind]
            put(pair, tmp_path / "live")
            until(partial(is_shown, server, pair), f"{kind} to be shown")
            with registered(cluster, server.port, pair.ca):
                before = failed_open(cluster)
                made = cluster.client.create(named(pod(alpha(1)), kind.lower()), "default")
                assert limits_of(made.body) == [{NVIDIA: "1"}]
                assert failed_open(cluster) == before
                cluster.client.delete("Pod", kind.lower(), "default")
