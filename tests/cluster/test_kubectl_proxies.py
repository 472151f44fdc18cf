"""What the unit tests take for kubectl's choice of a proxy is what the real kubectl does."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.inventory.proxies import CASES, Case, tried

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_kubectl_asks_a_proxy(case: Case, cluster: ControlPlane, tmp_path: Path) -> None:
    with tried(case, tmp_path) as (proxy, kubeconfig, variables):
        asked = [f"--kubeconfig={kubeconfig}", "get", "--raw=/version", "--request-timeout=1s"]
        done = subprocess.run(
            [cluster.programs / "kubectl", *asked], capture_output=True, check=False, env=variables
        )
        assert done.returncode
        assert bool(proxy.asked) is case.is_proxied
