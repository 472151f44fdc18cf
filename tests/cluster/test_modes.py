"""Whatever the modes of the repairs are, the API server takes what it would take without us."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.conftest import until_templates_are_repaired
from tests.cluster.pods import ALPHA, NVIDIA, container, named, pod
from tests.cluster.workloads import made_by, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

NEEDED = {
    "fraction": ("GPU102", container(limits={ALPHA: "500m"})),
    "request": ("GPU103", container(requests={ALPHA: "1"})),
    "unequal": ("GPU104", container(limits={ALPHA: "2"}, requests={ALPHA: "1"})),
}
MODES = ("off", "audit", "warn")


@pytest.fixture(scope="module")
def modes(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    overrides = [
        {"namespaces": [f"modes-{code.lower()}-{mode}-*"], "rules": {code: mode}}
        for code, _ in NEEDED.values()
        for mode in MODES
    ]
    settings = {"workloads": {"repair": True}, "policy": {"overrides": overrides}}
    with serving(cluster, tmp_path_factory.mktemp("modes"), settings) as recorder:
        until_templates_are_repaired(cluster)
        yield recorder


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("code", "asking"), NEEDED.values(), ids=NEEDED)
@pytest.mark.usefixtures("modes")
def test_an_amount_that_a_rule_would_repair_is_left_where_it_only_warns(
    cluster: ControlPlane, team: Callable[..., str], code: str, asking: Json, mode: str
) -> None:
    namespace = team(f"{code.lower()}-{mode}")
    apply = (f"--namespace={namespace}", "apply", "-f", "-")
    workload = made_by("Deployment", pod(asking), 1)

    bare = cluster.try_kubectl(*apply, stdin=yaml.safe_dump(named(pod(asking), "bare")))
    made = cluster.try_kubectl(*apply, stdin=yaml.safe_dump(workload))

    assert (bare.returncode, made.returncode) == (0, 0), (bare.stderr, made.stderr)
    for answer, not_done in ((bare, "would repair"), (made, "its pods will not be repaired")):
        assert f"and {code} repairs nothing here; write limits: {NVIDIA}: " in answer.stderr
        assert "its pods will be repaired" not in answer.stderr
        assert (not_done in answer.stderr) is (mode == "warn")
    stored = cluster.client.get("Pod", "bare", namespace)["spec"]
    template = cluster.client.get("Deployment", workload["metadata"]["name"], namespace)
    for spec in (stored, template["spec"]["template"]["spec"]):
        (main,) = spec["containers"]
        for section, amounts in asking["resources"].items():
            assert main["resources"][section] == amounts

    def its_pod() -> bool:
        pods = cluster.client.list("Pod", namespace)
        return any(each["metadata"]["name"] != "bare" for each in pods)

    until(its_pod, "the pod of the Deployment")
