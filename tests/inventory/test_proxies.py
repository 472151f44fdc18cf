"""An API server is asked through a proxy where kubectl does so, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.proxies import CASES, NAMES, Case, tried
from webhook.cluster import client

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_proxy_is_asked(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_SECONDS", 1.0)
    with tried(case, tmp_path) as (proxy, kubeconfig, variables):
        for name in (*NAMES, *map(str.lower, NAMES)):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        api = client.Client(lambda: client.configuration(str(kubeconfig)))
        with pytest.raises(client.Fault):
            api.get("/version", {})
        assert bool(proxy.asked) is case.is_proxied
