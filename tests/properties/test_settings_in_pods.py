"""Settings that `config check` calls fine make no pod that the API server refuses.

A pod may be refused for what its author wrote; the repair must add no reason to that.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from tests.engine import run
from tests.properties.pods import pods
from tests.properties.refusals import refusals
from tests.schema.pods import likely_pods
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.errors import SettingsError
from webhook.core.rule import Context
from webhook.core.settings import DriverMount, Drivers, Settings
from webhook.kube.pod import KINDS
from webhook.rules import RULES
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    Raw = dict[str, Any]

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
LABEL = "alpha.kubernetes.io/nvidia-gpu-name"


def mostly(good: list[Any], odd: list[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([*good * (6 * len(odd) // len(good) + 1), *odd])


PATHS = mostly(
    ["/a", "/b", "/b/lib", "/usr/lib/nvidia", "/opt/driver"],
    ["b", "/", "/b/", "//b", "/./b", "/b/..", "/b:c", "", f"/{'b' * 5000}", "/b\n"],
)
KEYS = mostly(
    ["zone", "example.com/gpu", f"{'a' * 240}.io/{'b' * 63}"],
    ["a/b/c", "-a", f"{'a' * 254}/b", "b" * 64, "", "A.io/b"],
)
VALUES = mostly(["", "gpu", "b" * 63, "Tesla-K80"], ["a b", "-a", "b" * 64, "a\n"])
TARGETS = mostly(
    ["nvidia.com/gpu", "example.com/gpu", f"{'a' * 244}/gpu"],
    ["gpu", "cpu", "requests.nvidia.com/gpu", f"{'a' * 245}/gpu", "a.kubernetes.io/b", "A/b"],
)
MOUNTS = st.fixed_dictionaries(
    {"path": PATHS, "mountPath": PATHS},
    optional={"type": mostly(["File", "Directory"], ["", "Socket"])},
)
TAINTS = st.builds(
    "{}={}:{}".format, KEYS, VALUES, mostly(["NoSchedule", "NoExecute"], ["Never", ""])
)
DRIVERS = st.one_of(
    st.fixed_dictionaries(
        {
            "profile": st.just("host-path"),
            "hostPath": st.fixed_dictionaries(
                {"mounts": st.lists(MOUNTS, min_size=1, max_size=3)},
                optional={"libraryPath": mostly(["/b/lib", "/b:/a"], ["", "/b\n", "a" * 5000])},
            ),
        },
        optional={"remove": st.lists(PATHS, max_size=2)},
    ),
    st.fixed_dictionaries(
        {
            "profile": st.just("runtime-class"),
            "runtimeClass": mostly(["nvidia", "a.b"], ["", "A", "a" * 254, "a_b", "a b"]),
            "assumeRuntimeClass": st.booleans(),
        }
    ),
)
SETTINGS = st.fixed_dictionaries(
    {"drivers": DRIVERS},
    optional={
        "scope": st.just("all-legacy"),
        "resources": st.fixed_dictionaries(
            {}, optional={"target": TARGETS, "legacy": st.just([LEGACY, "a.io/old"])}
        ),
        "models": st.fixed_dictionaries(
            {}, optional={"label": KEYS, "values": st.dictionaries(VALUES, st.lists(VALUES))}
        ),
        "tolerations": st.fixed_dictionaries({"taints": st.lists(TAINTS, max_size=3)}),
        "placement": st.fixed_dictionaries(
            {"enabled": st.just(value=True)}, optional={"label": KEYS, "value": VALUES}
        ),
        "annotationSchedulers": st.just(["other"]),
    },
)


@st.composite
def pods_in_the_way(draw: st.DrawFn) -> Raw:
    """Draw pods with volumes, mounts and block devices where the driver is to go."""
    pod: Raw = draw(likely_pods() | pods())
    spec = pod.get("spec") or {}
    names = st.sampled_from(["gpu-webhook-driver-0", "gpu-webhook-driver-1", "own"])
    paths = st.sampled_from(["/b", "b", "/b/", "/a", "/usr/lib/nvidia", "/usr/local/nvidia"])
    for name in draw(st.lists(names, max_size=2, unique=True)):
        source: Raw = draw(st.sampled_from([{"emptyDir": {}}, {"hostPath": {"path": "/a"}}]))
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, **source}]
    for kind in KINDS:
        for container in spec.get(kind) or ():
            for path in draw(st.lists(paths, max_size=2, unique=True)):
                what, at = draw(
                    st.sampled_from(
                        [("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")]
                    )
                )
                entry = {"name": draw(names), at: path}
                container[what] = [*(container.get(what) or ()), entry]
    return pod


def context(settings: Settings) -> Context:
    """A cluster where all that the settings may add is of use."""
    gpus = {settings.gpu_resource: 8}
    key, there = settings.models.key, {settings.placement.label: settings.placement.value}
    nodes = (
        NodeClass({**there, key: "Tesla-K80"}, settings.taints, gpus),
        NodeClass({**there, key: "Tesla-P100-PCIE-16GB"}, (), gpus),
    )
    inventory = Inventory(
        nodes,
        namespaces={"default": {}},
        runtime_classes={settings.drivers.runtime_class: {}},
    )
    return Context(settings, inventory, "default")


def added(pod: Raw, settings: Settings) -> set[str]:
    """Why the API server refuses the repaired pod, but not the pod as it came."""
    after = deepcopy(pod)
    run(RULES, after, context(settings))
    return refusals(after) - refusals(pod)


TWO_AT_B = {"mounts": [{"path": "/a", "mountPath": "/b"}, {"path": "/c", "mountPath": "/b"}]}
POD: Raw = {
    "metadata": {"name": "a"},
    "spec": {
        "containers": [
            {"name": "a", "image": "i", "resources": {"limits": {LEGACY: 1}}},
        ],
        "nodeSelector": {LABEL: "Tesla K80"},
    },
}


@given(pods_in_the_way(), SETTINGS)
@example(POD, {"drivers": {"profile": "host-path", "hostPath": TWO_AT_B}})
@example(POD, {"resources": {"target": "requests.nvidia.com/gpu"}})
def test_fine_settings_add_no_reason_to_refuse_a_pod(pod: Raw, data: Raw) -> None:
    try:
        settings = settings_file.parse(json.dumps(data))
    except SettingsError:
        event("mistakes")
        return
    event(f"fine, {data['drivers']['profile']}")
    assert added(pod, settings) == set()


def bad_settings() -> Iterator[Any]:
    """Settings that no file can say, and the reason that the repaired pod would be refused for."""

    def mounts(*paths: str) -> Settings:
        made = tuple(DriverMount(f"/{number}", path) for number, path in enumerate(paths))
        return Settings(drivers=Drivers(made))

    yield pytest.param(mounts("/b", "/b"), "a: mountPath /b twice", id="mountPath twice")
    yield pytest.param(mounts(""), "a: a mount without mountPath", id="no mountPath")
    yield pytest.param(
        Settings(drivers=Drivers((DriverMount("/a/..", "/b"),))),
        "volume gpu-webhook-driver-0 has the path '/a/..'",
        id="a path that climbs",
    )
    yield pytest.param(
        Settings(gpu_resource="requests.nvidia.com/gpu"),
        "a: resource requests.nvidia.com/gpu",
        id="the name of a quota",
    )


@pytest.mark.parametrize(("settings", "reason"), list(bad_settings()))
def test_the_judge_sees_what_bad_settings_would_do(settings: Settings, reason: str) -> None:
    assert reason in added(POD, settings)
