from __future__ import annotations

from typing import Any

import pytest

from tests.rules.objects import found, said, template, workload
from tests.rules.pods import container
from webhook.core.findings import Finding, Severity
from webhook.kube.pointer import Path
from webhook.rules import removed_kubelet_flag as rule


def config_map(text: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"args": text}}


def kubelet(**members: Any) -> Any:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        **members,
    }


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(config_map("--feature-gates=DRAResourceHealth=true"), id="a gate of today"),
        pytest.param(config_map("Accelerators of all kinds"), id="a word in a sentence"),
        pytest.param(
            kubelet(featureGates={"DynamicResourceAllocation": True}), id="gates of today"
        ),
        pytest.param(
            {"kind": "ConfigMap", "metadata": {"annotations": {"a": "Accelerators=true"}}},
            id="what was applied last",
        ),
        pytest.param(kubelet(featureGates={"Accelerators": {"a": 1}}), id="a map is no gate"),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("obj", "places"),
    [
        pytest.param(
            config_map("kubelet --experimental-nvidia-gpus=1"), ["data.args"], id="the flag"
        ),
        pytest.param(
            config_map("--feature-gates=Accelerators=true,DevicePlugins=true\nAccelerators=true"),
            ["data.args", "data.args"],
            id="each gate once",
        ),
        pytest.param(
            workload(
                "apps/v1",
                "DaemonSet",
                made=template(container(args=["--feature-gates", "DevicePlugins=true"])),
            ),
            ["spec.template.spec.containers[0].args[1]"],
            id="an argument",
        ),
        pytest.param(
            kubelet(featureGates={"Accelerators": True, "DevicePlugins": "true"}),
            ["featureGates.Accelerators", "featureGates.DevicePlugins"],
            id="a kubelet's configuration",
        ),
        pytest.param(
            {"kubeletExtraArgs": {"experimental-nvidia-gpus": "1"}},
            ["kubeletExtraArgs.experimental-nvidia-gpus"],
            id="kubeadm's extra arguments",
        ),
    ],
)
def test_it_is_reported(obj: Any, places: list[str]) -> None:
    assert said(rule, obj) == [(place, "reported") for place in places]


def test_the_whole_finding() -> None:
    message = (
        "DevicePlugins=true: a kubelet of 1.28 or later does not start with this gate; delete it: "
        "it is always on"
    )
    assert found(rule, config_map("--feature-gates=DevicePlugins=true")) == [
        Finding(rule.CODE, Path(("data", "args")), message, severity=Severity.MANUAL)
    ]
