from __future__ import annotations

import re
from pathlib import Path

import pytest

from webhook.cli import settings_file
from webhook.core.errors import SettingsError
from webhook.core.settings import (
    Affinity,
    DriverMount,
    Drivers,
    Models,
    Placement,
    Settings,
    Taint,
)

DOC = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", DOC, re.DOTALL)


def test_the_documented_defaults_are_the_defaults() -> None:
    assert settings_file.parse(BLOCKS[0]) == Settings()


@pytest.mark.parametrize("block", BLOCKS[1:])
def test_every_documented_example_is_legal(block: str) -> None:
    assert settings_file.parse(block) != Settings()


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        pytest.param("", Settings(), id="an empty file: the defaults"),
        pytest.param("# nothing\n", Settings(), id="a comment: the defaults"),
        pytest.param("models:\n", Settings(), id="an empty section: the defaults"),
        pytest.param("scope: all-legacy", Settings(scope="all-legacy"), id="scope"),
        pytest.param(
            "resources: {legacy: [a.io/x, b.io/y], target: c.io/z, gpus: ['c.io/*']}",
            Settings(
                legacy_resources=("a.io/x", "b.io/y"),
                gpu_resource="c.io/z",
                gpu_resources=("c.io/*",),
            ),
            id="resource names",
        ),
        pytest.param(
            "models: {profile: gke, label: a.io/b, shared: true, values: {GTX: [one, two]}}",
            Settings(
                models=Models(
                    profile="gke", label="a.io/b", shared=True, values=(("GTX", ("one", "two")),)
                )
            ),
            id="models",
        ),
        pytest.param(
            "affinity: {emptyNamespaces: all, renameDeprecatedLabels: true}",
            Settings(affinity=Affinity("all", rename_deprecated_labels=True)),
            id="affinity",
        ),
        pytest.param(
            "drivers: {profile: host-path, remove: [/opt/nv*], hostPath: {libraryPath: /l, "
            "mounts: [{path: /a, mountPath: /b}, {path: /c, mountPath: /d, type: File}]}}",
            Settings(
                drivers=Drivers(
                    "host-path",
                    (DriverMount("/a", "/b"), DriverMount("/c", "/d", "File")),
                    "/l",
                    remove=("/opt/nv*",),
                )
            ),
            id="drivers by host path",
        ),
        pytest.param(
            "drivers: {profile: runtime-class, runtimeClass: nvidia, assumeRuntimeClass: true}",
            Settings(
                drivers=Drivers("runtime-class", runtime_class="nvidia", assume_runtime_class=True)
            ),
            id="a runtime class",
        ),
        pytest.param(
            "tolerations: {taints: ['sku=gpu:NoSchedule', {key: a, effect: NoExecute}, "
            "'b:NoSchedule']}",
            Settings(
                taints=(
                    Taint("sku", "gpu"),
                    Taint("a", "", "NoExecute"),
                    Taint("b"),
                )
            ),
            id="taints, in both spellings",
        ),
        pytest.param(
            "tolerations: {taints: [aks-sku]}",
            Settings(taints=(Taint("sku", "gpu"),)),
            id="a taint that is ready made",
        ),
        pytest.param("schedulers: [mine]", Settings(schedulers=("mine",)), id="schedulers"),
        pytest.param(
            "placement: {enabled: true, label: a.io/b, value: c}",
            Settings(placement=Placement(enabled=True, label="a.io/b", value="c")),
            id="placement",
        ),
    ],
)
def test_settings_are_read(text: str, settings: Settings) -> None:
    assert settings_file.parse(text) == settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "scoop: gpu", "1:1: there is no setting scoop; did you mean scope?", id="typo"
        ),
        pytest.param("x: 1", "1:1: there is no setting x", id="a name like no other"),
        pytest.param("scope: gpus", "1:8: must be one of gpu, all-legacy, not 'gpus'", id="choice"),
        pytest.param("models:\n  mig: yes please", "2:8: must be true or false", id="no truth"),
        pytest.param("scope: gpu\nscope: gpu", "2:1: scope stands twice: delete one", id="twice"),
        pytest.param("[]", "1:1: must be a map of scope", id="a list instead of a map"),
        pytest.param("schedulers: mine", "1:13: must be a list", id="a text instead of a list"),
        pytest.param("schedulers: [[]]", "1:14: must be a text", id="a list instead of a text"),
        pytest.param(
            "models: {values: []}",
            "1:18: must be a map, as {name: value}, not a list",
            id="no values map",
        ),
        pytest.param("models: {label: 'a b'}", "1:17: must be a label key", id="no label key"),
        pytest.param(
            "resources: {target: alpha.kubernetes.io/x}",
            "1:21: must be the name of an extended resource",
            id="a target that no plugin can offer",
        ),
        pytest.param(
            "resources: {gpus: ['a*b']}", "1:20: must be a resource name", id="a * within"
        ),
        pytest.param(
            "drivers: {remove: [x]}", "1:20: must be an absolute path", id="relative path"
        ),
        pytest.param(
            "drivers: {remove: [/a/../b]}",
            "1:20: must be an absolute path",
            id="a path that climbs",
        ),
        pytest.param(
            "drivers: {profile: host-path}", "1:20: the profile host-path needs", id="no mounts"
        ),
        pytest.param(
            "drivers: {profile: runtime-class}",
            "1:20: the profile runtime-class needs runtimeClass",
            id="no class",
        ),
        pytest.param(
            "drivers: {hostPath: {mounts: [{path: /a}]}}",
            "1:31: a mount needs mountPath",
            id="half a mount",
        ),
        pytest.param(
            "tolerations: {taints: [sku=gpu]}",
            "1:24: must be a taint, key=value:effect",
            id="no effect",
        ),
        pytest.param(
            "tolerations: {taints: ['node.kubernetes.io/not-ready:NoExecute']}",
            "1:24: node.kubernetes.io/not-ready:NoExecute says `not now`",
            id="a taint that nobody may tolerate",
        ),
        pytest.param(
            "tolerations: {taints: ['ToBeDeletedByClusterAutoscaler:NoSchedule']}",
            "says `not now`",
            id="the autoscaler's taint",
        ),
        pytest.param("a: [", "1:5: is not YAML", id="no YAML"),
        pytest.param("placement: {value: 'a b'}", "1:20: must be a label value", id="no value"),
        pytest.param("drivers: {runtimeClass: A_B}", "1:25: must be the name of", id="no name"),
    ],
)
def test_a_mistake_is_named_with_line_column_and_cure(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_file.parse(text, "f.yaml")

    assert str(raised.value).startswith(f"f.yaml:{said}" if said[0].isdigit() else "f.yaml:")
    assert said in str(raised.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(SettingsError) as raised:
        settings_file.parse("scoop: gpu\nmodels: {mig: 1}\n", "f.yaml")

    assert len(str(raised.value).splitlines()) == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        settings_file.load(str(tmp_path / "nowhere.yaml"))
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="is not UTF-8"):
        settings_file.load(str(file))
