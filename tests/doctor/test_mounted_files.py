"""Where a file of the server comes from: containers and volumes in, object and key out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from tests.doctor.installation import shipped
from webhook.doctor.facts import Facts, _config_map, _Reader, _settings
from webhook.doctor.legacy_trial import Trial
from webhook.doctor.mounted_files import File, file_of, has_flag

Raw = dict[str, Any]
PATH = "/etc/gpu/s.yaml"
AT = {"name": "v", "mountPath": "/etc/gpu"}
ONE = {"configMap": {"name": "ours"}}
OTHER: Raw = {"name": "a", "configMap": {"name": "theirs"}}
RENAMED = {"items": [{"key": "x", "path": "x"}, {"key": "k", "path": "s.yaml"}]}
TOKEN = {"serviceAccountToken": {"path": "token"}}
OURS = File(PATH, "configMap", "ours", "s.yaml")
NOWHERE = File(PATH)


def pod(volume: Raw, *mounts: Raw, **server: Any) -> Raw:
    given = {"args": ["serve", f"--config={PATH}"], "volumeMounts": [*(mounts or (AT,))], **server}
    return {
        "containers": [
            {"name": "proxy", "args": ["--config=/x"]},
            {"name": "gpu-webhook", **given},
        ],
        "volumes": [OTHER, {"name": "v", **volume}],
    }


CASES: dict[str, tuple[Raw, File | None]] = {
    "a ConfigMap": (pod(ONE), OURS),
    "a Secret": (pod({"secret": {"secretName": "ours"}}), OURS._replace(kind="secret")),
    "a key with another name": (
        pod({"configMap": {"name": "ours", **RENAMED}}),
        OURS._replace(key="k"),
    ),
    "a key that is not among the items": (
        pod({"configMap": {"name": "ours", "items": [{"key": "k", "path": "k"}]}}),
        NOWHERE,
    ),
    "one file of a ConfigMap": (
        pod(ONE, {"name": "v", "mountPath": PATH, "subPath": "k"}),
        OURS._replace(key="k"),
    ),
    "a folder of a volume": (
        pod({"configMap": {"name": "ours", "items": [{"key": "k", "path": "d/s.yaml"}]}},
            {**AT, "subPath": "d"}),
        OURS._replace(key="k"),
    ),
    "a mount below another one": (
        pod(ONE, {"name": "a", "mountPath": "/etc"}, AT, {"name": "a", "mountPath": "/etc/g"}),
        OURS,
    ),
    "a mount with a slash at its end": (pod(ONE, {**AT, "mountPath": "/etc/gpu/"}), OURS),
    "a projected ConfigMap": (pod({"projected": {"sources": [TOKEN, ONE]}}), OURS),
    "two projected ConfigMaps, one with the item": (
        pod({"projected": {"sources": [
            {"configMap": {"name": "x", "items": [{"key": "k", "path": "k"}]}},
            {"configMap": {"name": "ours", **RENAMED}}]}}),
        OURS._replace(key="k"),
    ),
    "a projected Secret": (
        pod({"projected": {"sources": [{"secret": {"name": "ours"}}]}}),
        OURS._replace(kind="secret"),
    ),
    "two projected ConfigMaps that may both have it": (
        pod({"projected": {"sources": [ONE, {"configMap": {"name": "x"}}]}}), NOWHERE
    ),
    "a folder of the node": (pod({"hostPath": {"path": "/etc/gpu"}}), NOWHERE),
    "the image": (pod(ONE, {"name": "v", "mountPath": "/etc/gpu-2"}), NOWHERE),
    "a volume that is not there": (pod(ONE, {"name": "w", "mountPath": "/etc/gpu"}), NOWHERE),
    "a subPath of a variable": (pod(ONE, {**AT, "subPathExpr": "$(POD)"}), NOWHERE),
    "flag and path as two words": (pod(ONE, args=["serve", "--config", PATH]), OURS),
    "the last of two flags counts": (pod(ONE, args=["--config=/x", f"--config={PATH}"]), OURS),
    "a command": (pod(ONE, args=[], command=["gpu-webhook", "serve", f"--config={PATH}"]), OURS),
    "a variable": (
        pod(ONE, args=["serve"], env=[{"name": "GPU_WEBHOOK_SERVE_CONFIG", "value": PATH}]),
        OURS,
    ),
    "no flag": (pod(ONE, args=["serve"]), None),
    "no such container": ({"containers": [{"name": "x"}]}, None),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "found"), CASES.values(), ids=CASES)
def test_a_file(spec: Raw, found: File | None) -> None:
    assert file_of(spec, "--config") == found


WATCHED = {"name": "GPU_WEBHOOK_WATCH_CERTIFICATES", "value": "/tls"}


@pytest.mark.parametrize(
    ("watcher", "found"),
    [
        ({"args": ["watch", "--certificates=/tls"]}, True),
        ({"args": ["watch", "--certificates", "/tls"]}, True),
        ({"command": ["gpu-webhook", "watch", "--certificates=/tls"]}, True),
        ({"args": ["watch"], "env": [WATCHED]}, True),
        ({"args": ["watch"], "env": [{**WATCHED, "value": ""}]}, False),
        ({"args": ["watch", "--certificates-of=/tls"]}, False),
    ],
    ids=["an argument", "two", "a command", "a variable", "an empty one", "another flag"],
)
def test_a_flag_of_the_watcher(watcher: Raw, found: bool) -> None:  # noqa: FBT001
    """Each of them has the same effect, and so has each on what is checked."""
    (made,) = shipped("base/deployment.yaml")
    spec = made["spec"]["template"]["spec"]
    assert has_flag(spec, "--certificates")
    spec["containers"][1] = {"name": "watch", **watcher}
    assert Facts("x", 0.0, Trial({}, {}), deployment=made).keeps_certificates is found


def test_only_the_file_of_the_flag_is_read() -> None:
    """A key that sorts before it was taken for the settings."""
    held = {"data": {"a.txt": "}", "s.yaml": "scope: nvidia"}}
    assert _settings(held, OURS)[1] != _settings(held, OURS._replace(key="a.txt"))[1]


BINARY: dict[str, tuple[Raw, Raw]] = {
    "data": ({"data": {"s.yaml": "a"}}, {"s.yaml": "a"}),
    "binary data": ({"binaryData": {"s.yaml": "Yg=="}}, {"s.yaml": "b"}),
    "both, of other files": (
        {"data": {"x": "a"}, "binaryData": {"s.yaml": "Yg=="}},
        {"s.yaml": "b", "x": "a"},
    ),
    "binary data that is no text": ({"binaryData": {"s.yaml": "/w=="}}, {"s.yaml": "\ufffd"}),
}


@pytest.mark.parametrize(("held", "data"), BINARY.values(), ids=BINARY)
def test_a_file_may_be_in_the_binary_data_of_a_config_map(held: Raw, data: Raw) -> None:
    """The kubelet mounts both."""
    api: Any = SimpleNamespace(get=lambda _path, _query: orjson.dumps(held))
    assert _config_map(_Reader(api), "settings_map", "gpu-webhook", OURS)["data"] == data


def test_a_certificate_with_other_keys() -> None:
    items = [{"key": "a", "path": "tls.crt"}, {"key": "b", "path": "tls.key"}]
    (found,) = shipped("base/deployment.yaml")
    for volume in found["spec"]["template"]["spec"]["volumes"]:
        if volume["name"] == "tls":
            volume.update(emptyDir=None, secret={"secretName": "s", "items": items})
    secret = {"data": {"a": "YQ==", "b": "Yg=="}}
    facts = Facts("x", 0.0, Trial({}, {}), deployment=found, secret=secret)
    assert facts.pair() == [b"a", b"b"]
