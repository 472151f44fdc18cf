from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.pods import FIRST, LEGACY, SPEC, container, found, legacy_pod, modern_pod, pod
from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.rule import Context
from webhook.core.settings import DriverMount, Drivers, Settings
from webhook.rules import driver_paths as rule

if TYPE_CHECKING:
    from webhook.core.edits import Edit

VOLUMES = SPEC / "volumes"

repaired = partial(Finding, rule.CODE)
reported = partial(Finding, rule.CODE, severity=Severity.MANUAL)


def volume(path: str, name: str = "drv") -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": path}}


def mount(path: str, name: str = "drv") -> dict[str, Any]:
    return {"name": name, "mountPath": path}


def gpu(name: str = "cuda", **more: Any) -> dict[str, Any]:
    return container({LEGACY: "1"}, {LEGACY: "1"}, name=name, **more)


def gone(path: str, *edits: Edit, position: int = 0) -> Finding:
    message = (
        f"the driver path {path} of an old node is removed: the container toolkit brings the "
        "driver; delete the volume and its mounts"
    )
    return repaired(VOLUMES / position, message, (Remove(VOLUMES / position), *edits))


OLD = "the host path {} looks like an old driver's and is left as it is"


def suspect(path: str, position: int = 0) -> Finding:
    delete = "delete the volume, or list it in drivers.remove of the settings (--config)"
    message = f"{OLD.format(path)}; {delete}"
    return reported(VOLUMES / position, message)


def alone(path: str, position: int = 0) -> Finding:
    """What is said where the path is stale, but may not be taken away."""
    return reported(VOLUMES / position, f"{OLD.format(path)}: delete the volume and its mounts")


def cut(entries: str, name: str, edit: Set | Remove, who: str = "cuda") -> Finding:
    message = f"delete {entries} from {name} of container {who}: it is unmounted"
    return repaired(edit.at.parent if isinstance(edit, Set) else edit.at, message, (edit,))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/data", id="data: untouched"),
        pytest.param("/usr/share/nvidia-375", id="no lib directory: untouched"),
        pytest.param("/usr/lib/x86_64-linux-gnu", id="a lib directory itself: untouched"),
        pytest.param("/usr/lib/x86_64-linux-gnu/libcudart.so.9.0", id="CUDA, not the driver"),
        pytest.param("/home/me/libcuda.so", id="a file that is in no lib directory"),
        pytest.param("/var/lib/kubelet/device-plugins", id="device plugins"),
        pytest.param("/dev/snd", id="another device"),
        pytest.param("/", id="the whole host"),
        pytest.param("", id="no path"),
    ],
)
def test_paths_that_are_no_drivers(path: str) -> None:
    assert found(rule, legacy_pod(volumes=[volume(path)])) == []


@pytest.mark.parametrize(
    "volumes",
    [
        pytest.param(None, id="no volumes"),
        pytest.param([{"name": "cache", "emptyDir": {}}], id="another kind of volume"),
        pytest.param([{"name": "drv", "hostPath": None}], id="a null hostPath"),
        pytest.param([{"name": "drv", "hostPath": {"path": 375}}], id="a path that is no text"),
        pytest.param([{"name": "drv", "hostPath": "/usr/lib/nvidia-384"}], id="a text (pattern 6)"),
        pytest.param(
            [{"name": "drv", "persistentVolumeClaim": {"claimName": "nvidia"}}], id="a claim"
        ),
    ],
)
def test_volumes_that_are_no_host_paths(volumes: Any) -> None:
    assert found(rule, legacy_pod(volumes=volumes)) == []


@pytest.mark.parametrize(
    "path",
    [
        "/usr/lib/nvidia-375",
        "/usr/lib/nvidia-375/",
        "/usr/lib//nvidia-384/bin",
        "/usr/lib64/nvidia-367",
        "/usr/lib32/nvidia-396/vdpau",
        "/var/lib/nvidia-docker/volumes/nvidia_driver/387.26",
        "/var/lib/nvidia-docker/volumes/nvidia_driver/latest",
        "/usr/lib/x86_64-linux-gnu/libcuda.so",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.375.82",
        "/usr/lib64/nvidia/libcuda.so.387.26",
        "/usr/lib64/libnvidia-ml.so.1",
        "/lib/libnvidia-fatbinaryloader.so.375.66",
        "/opt/driver/lib32/libcuda.so",
    ],
)
def test_stale_paths_are_removed(path: str) -> None:
    obj = legacy_pod(volumes=[volume("/data", "data"), volume(path)])
    assert found(rule, obj) == [gone(path, position=1)]
    assert obj["spec"]["volumes"] == [volume("/data", "data")]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/usr/local/nvidia", id="acs-engine of 2018"),
        pytest.param("/usr/local/nvidia/lib64", id="below it"),
        pytest.param("/usr/lib/nvidia", id="no number"),
        pytest.param("/usr/lib64/nvidia", id="no number, lib64"),
        pytest.param("/usr/lib/nvidia-current", id="no number, but a name"),
        pytest.param("/usr/lib/nvidia-375.66", id="a full version"),
        pytest.param("/opt/nvidia", id="CoreOS"),
        pytest.param("/usr/lib", id="the whole /usr/lib, which a command copies from (pattern 23)"),
        pytest.param("/usr/lib/cuda", id="CUDA of the host"),
        pytest.param("/usr/local/bin/nvidia-smi", id="the program"),
        pytest.param("/var/lib/nvidia-docker/volumes", id="all of nvidia-docker 1"),
        pytest.param("/usr/local/nvidia-docker/nvidia_driver/384.81", id="where Arena had it"),
        pytest.param("/dev/nvidia0", id="a device node (pattern 22)"),
        pytest.param("/dev/nvidiactl", id="the control device"),
        pytest.param("/dev/nvidia-uvm", id="unified memory"),
    ],
)
def test_other_layouts_are_reported_and_removed_only_by_setting(path: str) -> None:
    volumes = [volume(path)]
    assert found(rule, legacy_pod(volumes=list(volumes))) == [suspect(path)]
    assert found(rule, modern_pod(volumes=list(volumes))) == [suspect(path)]
    cx = Context(Settings(drivers=Drivers(remove=("/elsewhere", f"{path}/"))))
    assert found(rule, legacy_pod(volumes=list(volumes)), cx) == [gone(path)]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/home/kubernetes/bin/nvidia", id="GKE, today"),
        pytest.param("/home/kubernetes/bin/nvidia/lib64/libcuda.so.1", id="GKE, a single file"),
        pytest.param("/opt/cloud/cce/nvidia", id="Huawei CCE, today"),
        pytest.param("/opt/cloud/cce/nvidia/lib64", id="Huawei CCE, below"),
    ],
)
def test_where_a_cloud_keeps_its_driver_today_is_worth_knowing(path: str) -> None:
    for make in (legacy_pod, modern_pod):
        (said,) = found(rule, make(volumes=[volume(path)]))
        assert (said.severity, said.edits) == (Severity.NOTICE, ())
    cx = Context(Settings(drivers=Drivers(remove=(path,))))
    assert found(rule, legacy_pod(volumes=[volume(path)]), cx) == [gone(path)]


MANAGING = [
    "nvcr.io/nvidia/k8s/container-toolkit:v1.17.4-ubuntu20.04",
    "nvcr.io/nvidia/k8s-device-plugin:v0.17.0",
    "registry.k8s.io/nvidia-gpu-device-plugin@sha256:0842",
    "cos-nvidia-installer:fixed",
    "nvcr.io/nvidia/gpu-operator:v25.3.0",
]


@pytest.mark.parametrize("image", [*MANAGING, "registry.example/train:1"])
def test_what_brings_the_driver_mounts_where_it_is(image: str) -> None:
    made = modern_pod(volumes=[volume("/usr/local/nvidia")])
    made["spec"]["containers"][0]["image"] = image

    assert found(rule, made) == ([] if image in MANAGING else [suspect("/usr/local/nvidia")])


@pytest.mark.parametrize(
    "settings", [Settings(), Settings(drivers=Drivers(remove=("/usr/lib/n*",)))]
)
@pytest.mark.parametrize("image", MANAGING)
def test_what_brings_the_driver_keeps_its_mounts(image: str, settings: Settings) -> None:
    volumes = [volume("/usr/lib/nvidia-375")]
    pod = {"spec": {"containers": [{"name": "a", "image": image}], "volumes": volumes}}
    assert found(rule, pod, Context(replace(settings, scope="all-legacy"))) == []


@pytest.mark.parametrize("image", MANAGING)
def test_what_requests_gpus_does_not_bring_the_driver(image: str) -> None:
    made = legacy_pod(volumes=[volume("/usr/lib/nvidia-375")])
    made["spec"]["containers"][0]["image"] = image
    assert found(rule, made) == [gone("/usr/lib/nvidia-375")]


@pytest.mark.parametrize(
    ("glob", "path", "goes"),
    [
        pytest.param("/opt/driver-*/lib", "/opt/driver-384/lib", True, id="within a segment"),
        pytest.param("/opt/driver-*", "/opt/driver-384/lib", False, id="never beyond it"),
        pytest.param("/opt/d.iver", "/opt/driver", False, id="a dot is a dot"),
    ],
)
def test_a_star_in_the_settings(glob: str, path: str, *, goes: bool) -> None:
    cx = Context(Settings(drivers=Drivers(remove=(glob,))))
    assert found(rule, legacy_pod(volumes=[volume(path)]), cx) == ([gone(path)] if goes else [])


def test_the_library_folder_of_an_agent_is_not_ours() -> None:
    for path in ("/usr/lib", "/usr/lib/"):
        pod = {"spec": {"containers": [{"name": "a"}], "volumes": [volume(path)]}}
        assert found(rule, pod, Context(Settings(scope="all-legacy"))) == []


ALL = Context(Settings(scope="all-legacy"))


def test_a_pod_that_runs_is_only_warned() -> None:
    volumes = [volume("/usr/lib/nvidia-375")]
    assert found(rule, modern_pod(volumes=list(volumes))) == [alone("/usr/lib/nvidia-375")]
    assert found(rule, modern_pod(volumes=list(volumes)), ALL) == [gone("/usr/lib/nvidia-375")]


LISTED = Settings(scope="all-legacy", drivers=Drivers(remove=("/usr/lib/nvidia-375",)))


@pytest.mark.parametrize(
    ("amounts", "cx", "stays"),
    [
        pytest.param({"cpu": 1}, ALL, True, id="not from a pod without GPUs"),
        pytest.param({LEGACY: 0}, ALL, False, id="from one whose manifest writes 0 of them"),
        pytest.param({"cpu": 1}, Context(LISTED), False, id="if the settings list it"),
        pytest.param({"cpu": 1}, Context(ALL.settings, unsafe=True), False, id="on request"),
        pytest.param({"cpu": 1}, Context(ALL.settings, is_merged=True), False, id="from a part"),
    ],
)
def test_the_driver_goes_where_the_toolkit_brings_another(
    amounts: dict[str, Any], cx: Context, *, stays: bool
) -> None:
    obj = pod(container(amounts), volumes=[volume("/usr/lib/nvidia-375")])
    message = (
        f"{OLD.format('/usr/lib/nvidia-375')}: the pod requests no GPU, so nothing else brings a "
        "driver; delete the volume, or list it in drivers.remove of the settings (--config)"
    )
    left = reported(VOLUMES / 0 / "hostPath" / "path", message)
    assert found(rule, obj, cx) == [left if stays else gone("/usr/lib/nvidia-375")]


def devices(obj: dict[str, Any]) -> dict[str, Any]:
    obj["spec"] |= {"volumes": [volume("/dev/nvidia0", "dev"), volume("/opt/nvidia", "other")]}
    obj["spec"]["containers"][0]["volumeMounts"] = [mount("/dev/nvidia0", "dev")]
    return obj


ON_REQUEST = Context(Settings(scope="all-legacy"), unsafe=True)


def test_devices_of_a_pod_that_asks_for_gpus_go_on_request() -> None:
    """Pattern 22."""
    message = (
        "the device /dev/nvidia0 of the node is mounted, and the device plugin brings those asked "
        "for: delete the volume and its mounts"
    )
    edits = (Remove(VOLUMES / 0), Remove(FIRST / "volumeMounts" / 0))
    unasked = Finding(
        *(rule.CODE, VOLUMES / 0, message, edits),
        severity=Severity.MANUAL,
        safety=Safety.UNSAFE,
    )
    obj = devices(modern_pod())
    cx = Context(Settings(scope="all-legacy"))
    assert found(rule, obj, cx) == [unasked, suspect("/opt/nvidia", 1)]
    assert obj == devices(modern_pod())
    assert found(rule, obj, ON_REQUEST) == [
        repaired(VOLUMES / 0, message, edits),
        suspect("/opt/nvidia", 1),
    ]
    assert obj["spec"]["volumes"] == [volume("/opt/nvidia", "other")]
    assert "volumeMounts" not in obj["spec"]["containers"][0]


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(pod(container({"cpu": 1})), id="a pod that requests none needs them"),
        pytest.param(
            {**modern_pod(), "spec": {**modern_pod()["spec"], "nameless": True}},
            id="a volume without a name",
        ),
    ],
)
def test_devices_that_stay(obj: dict[str, Any]) -> None:
    obj["spec"]["volumes"] = [volume("/dev/nvidia0")]
    if "nameless" in obj["spec"]:
        del obj["spec"]["volumes"][0]["name"]
    assert found(rule, obj, ON_REQUEST) == [suspect("/dev/nvidia0")]


def test_no_gpu_at_all_with_the_driver_still_mounted() -> None:
    """Pattern 3: zero GPUs run today, so nothing is taken away."""
    obj = pod(
        container({LEGACY: 0}, {LEGACY: 0}, volumeMounts=[mount("/usr/local/nvidia")]),
        volumes=[volume("/usr/lib/nvidia-375")],
    )
    assert found(rule, obj) == [alone("/usr/lib/nvidia-375")]


def test_a_volume_without_a_name_is_for_a_person() -> None:
    """Pattern 20: the name is below hostPath, and the API server refuses the pod anyway."""
    nameless = {"hostPath": {"path": "/usr/lib/nvidia-375/bin", "name": "bin"}}
    assert found(rule, legacy_pod(volumes=[nameless])) == [alone("/usr/lib/nvidia-375/bin")]


def test_mounts_go_in_every_kind_of_container() -> None:
    kinds = ("initContainers", "containers", "ephemeralContainers")
    spec = {
        kind: [gpu(volumeMounts=[mount("/cache", "cache"), mount("/usr/lib/nvidia")])]
        for kind in kinds
    }
    spec["initContainers"].append(
        gpu("sidecar", restartPolicy="Always", volumeMounts=[mount("/usr/lib/nvidia")])
    )
    obj = pod(volumes=[volume("/usr/lib/nvidia-375"), volume("/cache", "cache")])
    obj["spec"] |= spec
    edits = (
        Remove(SPEC / "initContainers" / 0 / "volumeMounts" / 1),
        Remove(SPEC / "initContainers" / 1 / "volumeMounts" / 0),
        Remove(SPEC / "containers" / 0 / "volumeMounts" / 1),
        Remove(SPEC / "ephemeralContainers" / 0 / "volumeMounts" / 1),
    )
    assert found(rule, obj) == [gone("/usr/lib/nvidia-375", *edits)]
    assert all(obj["spec"][kind][0]["volumeMounts"] == [mount("/cache", "cache")] for kind in kinds)
    assert obj["spec"]["volumes"] == [volume("/cache", "cache")]


def test_one_volume_with_several_mounts_and_files_one_by_one() -> None:
    """Pattern 21: a directory and three files, the version in names and paths."""
    lib = "/usr/lib/x86_64-linux-gnu/libcuda.so"
    paths = ["/usr/lib/nvidia-375", lib, f"{lib}.1", f"{lib}.375.82"]
    mounts = [
        mount("/usr/lib/nvidia", "v0"),
        mount("/usr/local/nvidia/bin", "v0") | {"subPath": "bin"},
        *(mount(path, f"v{position}") for position, path in enumerate(paths) if position),
    ]
    obj = pod(
        gpu(volumeMounts=mounts, env=[{"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia"}]),
        volumes=[volume(path, f"v{position}") for position, path in enumerate(paths)],
    )
    at = FIRST / "volumeMounts"
    assert found(rule, obj) == [
        gone(paths[0], Remove(at / 0), Remove(at / 1)),
        gone(paths[1], Remove(at / 2), position=1),
        gone(paths[2], Remove(at / 3), position=2),
        gone(paths[3], Remove(at / 4), position=3),
        cut("/usr/lib/nvidia", "LD_LIBRARY_PATH", Remove(FIRST / "env" / 0)),
    ]
    assert "volumes" not in obj["spec"]
    assert obj["spec"]["containers"][0].keys() == {"name", "image", "resources"}


def search(value: Any, name: str = "LD_LIBRARY_PATH", at: str = "/usr/lib/nvidia") -> Any:
    """A pod whose driver is mounted, and that searches it."""
    variable = {"name": name, "value": value} if isinstance(value, str) else {"name": name} | value
    return pod(
        gpu(volumeMounts=[mount("/cache", "cache"), mount(at)], env=[variable]),
        volumes=[volume("/usr/lib/nvidia-375")],
    )


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("/usr/lib/cuda:/opt/lib", None, id="other entries: untouched"),
        pytest.param(
            "/usr/lib/nvidia-extra", None, id="the same beginning is not below: untouched"
        ),
        pytest.param("/usr/lib", None, id="above what is unmounted: untouched"),
        pytest.param("", None, id="an empty value: untouched"),
        pytest.param("$(BASE):/usr/lib/nvidia", None, id="a value with $( stays"),
        pytest.param({"valueFrom": {"fieldRef": {}}}, None, id="a value from elsewhere stays"),
        pytest.param(
            "/usr/local/cuda/lib64:/usr/lib/nvidia",
            "/usr/local/cuda/lib64",
            id="equal to the mount",
        ),
        pytest.param("/usr/lib/nvidia/lib64/:/opt/lib", "/opt/lib", id="below the mount"),
        pytest.param("/a:/usr/lib/nvidia/:/b", "/a:/b", id="a slash at the end"),
        pytest.param("/a::/usr/lib/nvidia", "/a:", id="an empty entry means here, and stays"),
        pytest.param("/usr/lib/nvidia", "", id="nothing is left: the variable goes"),
        pytest.param("/usr/lib/nvidia:/usr/lib/nvidia/bin", "", id="nothing of two is left"),
    ],
)
@pytest.mark.parametrize("name", ["LD_LIBRARY_PATH", "PATH"])
def test_search_paths(value: Any, kept: str | None, name: str) -> None:
    at = FIRST / "env" / 0
    expected = [gone("/usr/lib/nvidia-375", Remove(FIRST / "volumeMounts" / 1))]
    if kept is not None:
        edit = Set(at / "value", kept) if kept else Remove(at)
        lost = [entry for entry in value.split(":") if entry and entry not in kept.split(":")]
        expected.append(cut(", ".join(lost), name, edit))
    assert found(rule, search(value, name)) == expected


def test_other_variables_stay() -> None:
    obj = search("/usr/lib/nvidia", "CUDA_PATH")
    assert len(found(rule, obj)) == 1
    assert obj["spec"]["containers"][0]["env"] == [
        {"name": "CUDA_PATH", "value": "/usr/lib/nvidia"}
    ]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("/usr/local/nvidia/lib:/usr/local/nvidia/lib64", None, id="libraries"),
        pytest.param("/usr/local/nvidia/bin:/usr/local/nvidia:/bin", None, id="programs"),
        pytest.param("/usr/local/nvidia/lib64/vdpau:/bin", "/bin", id="deeper: nobody fills it"),
    ],
)
def test_what_the_toolkit_and_gke_fill_stays(value: str, kept: str | None) -> None:
    obj = search(value, at="/usr/local/nvidia")
    found(rule, obj)
    assert obj["spec"]["containers"][0]["env"][0]["value"] == (kept or value)


def test_only_the_container_that_loses_the_mount_loses_the_entry() -> None:
    env = [{"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia"}]
    obj = pod(
        gpu(env=list(env)),
        gpu("trainer", volumeMounts=[mount("/usr/lib/nvidia")], env=list(env)),
        volumes=[volume("/usr/lib/nvidia-375")],
    )
    trainer = SPEC / "containers" / 1
    assert found(rule, obj) == [
        gone("/usr/lib/nvidia-375", Remove(trainer / "volumeMounts" / 0)),
        cut("/usr/lib/nvidia", "LD_LIBRARY_PATH", Remove(trainer / "env" / 0), "trainer"),
    ]


def test_a_mount_path_that_is_no_text_is_the_api_servers_to_refuse() -> None:
    obj = search("/usr/lib/nvidia", at=375)  # type: ignore[arg-type]
    assert found(rule, obj) == [gone("/usr/lib/nvidia-375", Remove(FIRST / "volumeMounts" / 1))]


def test_what_the_active_profile_provides_is_never_stale() -> None:
    cx = Context(
        Settings(drivers=Drivers((DriverMount("/usr/lib/nvidia-375", "/usr/lib/nvidia"),)))
    )
    assert found(rule, legacy_pod(volumes=[volume("/usr/lib/nvidia-375/")]), cx) == []
    assert found(rule, legacy_pod(volumes=[volume("/usr/lib/nvidia-367")]), cx) == [
        gone("/usr/lib/nvidia-367")
    ]
    own = DriverMount("/opt/nvidia", "/usr/lib/nvidia")
    cx = Context(Settings(drivers=Drivers(mounts=(own,))))
    assert found(rule, legacy_pod(volumes=[volume("/opt/nvidia")]), cx) == []


def test_where_the_active_profile_mounts_is_still_searched() -> None:
    own = DriverMount("/opt/driver/lib", "/usr/lib/nvidia")
    cx = Context(Settings(drivers=Drivers(mounts=(own,))))
    obj = search("/usr/lib/nvidia:/usr/lib/nvidia/old")
    found(rule, obj, cx)
    assert obj["spec"]["containers"][0]["env"][0]["value"] == "/usr/lib/nvidia"


@pytest.mark.timeout(60)  # what is tried in too many ways never ends
def test_a_path_of_megabytes_takes_no_time() -> None:
    path = "/lib/libnvidia-.so" * 100_000
    assert found(rule, legacy_pod(volumes=[volume(f"{path}/x"), volume(path)])) == [
        gone(path[:100], position=1)
    ]


def test_mounts_within_one_another_and_beside_them() -> None:
    obj = pod(
        gpu(
            volumeMounts=[mount("/old/a/b"), mount("/old/a"), mount("/older"), mount("/")],
            env=[{"name": "PATH", "value": "/old/a/b/c:/old/a/x:/old/b:/older/x:/older-still:/"}],
        ),
        volumes=[volume("/usr/lib/nvidia-375")],
    )
    env = FIRST / "env" / 0 / "value"
    lost = "/old/a/b/c, /old/a/x, /older/x, /"
    assert found(rule, obj)[1] == cut(lost, "PATH", Set(env, "/old/b:/older-still"))


def test_of_two_volumes_with_one_name_one_takes_the_mounts() -> None:
    obj = pod(
        gpu(volumeMounts=[mount("/a"), mount("/b", "None"), {"mountPath": "/c"}]),
        volumes=[volume("/usr/lib/nvidia-375"), volume("/usr/lib/nvidia-384")],
    )
    assert found(rule, obj) == [
        gone("/usr/lib/nvidia-375", Remove(FIRST / "volumeMounts" / 0)),
        gone("/usr/lib/nvidia-384", position=1),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("host_path('/usr/local/nvidia')", ["/usr/local/nvidia"]),
        ("HostPath: '/usr/local/nvidia-docker/x'", ["/usr/local/nvidia-docker/x"]),
        ("CDLL('/usr/local/nvidia')", []),
        ("host_path('/usr/lib/nvidia-375/bin')", []),
    ],
    ids=["a host path", "of nvidia-docker", "no host path", "old by its name: known without it"],
)
def test_mounts_of_a_program(text: str, found: list[str]) -> None:
    assert [each.found for each in rule.mounts_of_program(text, Settings())] == found


def test_the_driver_stays_where_resources_are_inserted_later() -> None:
    obj = pod(container({"cpu": 1}), volumes=[volume("/usr/lib/nvidia-375")])
    message = (
        f"{OLD.format('/usr/lib/nvidia-375')}: whether the pod requests GPUs is not known, and "
        "without them nothing else brings a driver; delete the volume, or list it in "
        "drivers.remove of the settings (--config)"
    )
    left = reported(VOLUMES / 0 / "hostPath" / "path", message)
    assert found(rule, obj, Context(ALL.settings, is_open=True)) == [left]
    assert found(rule, obj, Context(ALL.settings, is_open=True, is_merged=True)) == [left]
