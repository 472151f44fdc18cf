from __future__ import annotations

import pytest

from webhook.core import host_paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/", "/", id="the root stays"),
        pytest.param("/dev", "/dev", id="a clean path stays"),
        pytest.param("lib/x", "lib/x", id="a relative path stays relative"),
        pytest.param("", ".", id="no path is here, as in Go"),
        pytest.param("/dev/", "/dev", id="a slash at the end"),
        pytest.param("//dev///nvidia0", "/dev/nvidia0", id="needless slashes, also the first two"),
        pytest.param("/./dev/./nvidia0", "/dev/nvidia0", id="dots"),
        pytest.param("/usr/../dev/x/..", "/dev", id="two dots go up"),
        pytest.param("/../..", "/", id="never above the root"),
    ],
)
def test_clean(path: str, expected: str) -> None:
    assert host_paths.clean(path) == expected


def facts(path: str) -> set[str]:
    asked = {
        "stale": host_paths.is_stale_driver,
        "live": host_paths.is_live_driver,
        "maybe": host_paths.may_be_driver,
        "driver": host_paths.shows_driver,
        "devices": host_paths.shows_devices,
        "list": host_paths.lists_devices,
    }
    return {name for name, question in asked.items() if question(path)}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/data", set(), id="data"),
        pytest.param("/dev/snd", set(), id="another device"),
        pytest.param("/dev/null", set(), id="no device"),
        pytest.param("/dev/char/1:3", set(), id="the number of another device"),
        pytest.param("/usr", set(), id="/usr"),
        pytest.param("/var/run", set(), id="/var/run"),
        pytest.param("/var/run/nvidia-container-devices-2", set(), id="a longer name"),
        pytest.param("/usr/lib/nvidia-384/bin", {"stale", "maybe", "driver"}, id="driver 384"),
        pytest.param("/lib64/libnvidia-ml.so.1", {"stale", "driver"}, id="a file of the driver"),
        pytest.param("/home/kubernetes/bin/nvidia", {"live", "driver"}, id="GKE"),
        pytest.param("/opt/cloud/cce/nvidia/lib64", {"live", "driver"}, id="Huawei CCE"),
        pytest.param("/usr/local/nvidia", {"maybe", "driver"}, id="acs-engine"),
        pytest.param("/run/nvidia/driver", {"driver"}, id="the GPU operator"),
        pytest.param("/var/run/nvidia", {"driver"}, id="the GPU operator, by the old path"),
        pytest.param("/", {"devices"}, id="the host"),
        pytest.param("/dev", {"devices"}, id="all devices"),
        pytest.param("/dev/nvidia0", {"maybe", "driver", "devices"}, id="a GPU"),
        pytest.param("/dev/nvidia-caps/nvidia-cap2", {"devices"}, id="a slice of a GPU"),
        pytest.param("/dev/char/195:255", {"devices"}, id="the control device by its number"),
        pytest.param("/var/run/nvidia-container-devices", {"list"}, id="the list"),
        pytest.param("/var/run/nvidia-container-devices/all", {"list"}, id="in the list"),
    ],
)
def test_what_a_path_holds(path: str, expected: set[str]) -> None:
    assert facts(path) == expected
