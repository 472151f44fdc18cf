"""The settings file: YAML in, `Settings` out, and every mistake with its line, column and cure."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import yaml

from webhook.core import labels
from webhook.core.errors import SettingsError
from webhook.core.settings import (
    DRIVER_PROFILES,
    MODEL_PROFILES,
    READY_MADE_TAINTS,
    Affinity,
    DriverMount,
    Drivers,
    Models,
    Placement,
    Settings,
    Taint,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def load(file: str) -> Settings:
    """Read a settings file; raises SettingsError with one line for each mistake."""
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}; name a file") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: is not UTF-8 (byte {error.start})") from error
    return parse(text, file)


def parse(text: str, file: str = "settings") -> Settings:
    """The settings that the text gives; what it leaves out keeps its default."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        problem = getattr(error, "problem", None) or "too deeply nested"
        raise SettingsError(f"{file}:{where}: is not YAML: {problem}") from error
    mistakes: list[tuple[yaml.Node, str]] = []
    read = _Reader(mistakes)
    settings = read.settings(node) if node is not None else Settings()
    if mistakes:
        lines = [
            f"{file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}: {what}"
            for node, what in mistakes
        ]
        raise SettingsError("\n".join(lines))
    return settings


class _Given(Generic[T]):
    """Members that the file gave, each read by its reader, under the field names of a dataclass."""

    def __init__(self, default: T) -> None:
        self.default = default
        self.fields: dict[str, Any] = {}

    def value(self) -> T:
        return replace(self.default, **self.fields)  # type: ignore[type-var]


class _Reader:
    """Reads YAML nodes; a mistake is noted, and the default stands in for it."""

    def __init__(self, mistakes: list[tuple[yaml.Node, str]]) -> None:
        self._mistakes = mistakes

    def _mistake(self, node: yaml.Node, what: str) -> None:
        self._mistakes.append((node, what))

    def settings(self, node: yaml.Node) -> Settings:
        given = _Given(Settings())
        resources = {
            "legacy": ("legacy_resources", self.resource_names),
            "target": ("gpu_resource", self.resource_name),
            "gpus": ("gpu_resources", self.resource_names),
        }
        tolerations = {"taints": ("taints", self.list_of(self.taint))}
        self.members(
            node,
            given,
            {
                "scope": ("scope", self.one_of("gpu", "all-legacy")),
                "resources": (None, lambda each: self.members(each, given, resources)),
                "models": ("models", self.models),
                "affinity": ("affinity", self.affinity),
                "drivers": ("drivers", self.drivers),
                "tolerations": (None, lambda each: self.members(each, given, tolerations)),
                "schedulers": ("schedulers", self.list_of(self.text)),
                "placement": ("placement", self.placement),
            },
        )
        return given.value()

    def models(self, node: yaml.Node) -> Models:
        given = _Given(Models())
        self.members(
            node,
            given,
            {
                "legacyLabel": ("legacy_label", self.label_key),
                "profile": ("profile", self.one_of(*MODEL_PROFILES)),
                "label": ("label", self.label_key),
                "values": ("values", self.model_values),
                "shared": ("shared", self.boolean),
                "mig": ("mig", self.boolean),
            },
        )
        return given.value()

    def affinity(self, node: yaml.Node) -> Affinity:
        given = _Given(Affinity())
        self.members(
            node,
            given,
            {
                "emptyNamespaces": ("empty_namespaces", self.one_of("own", "all")),
                "renameDeprecatedLabels": ("rename_deprecated_labels", self.boolean),
            },
        )
        return given.value()

    def drivers(self, node: yaml.Node) -> Drivers:
        given = _Given(Drivers())
        host_path = {
            "mounts": ("mounts", self.list_of(self.mount)),
            "libraryPath": ("library_path", self.text),
        }
        self.members(
            node,
            given,
            {
                "profile": ("profile", self.one_of("host-path", *DRIVER_PROFILES)),
                "hostPath": (None, lambda each: self.members(each, given, host_path)),
                "runtimeClass": ("runtime_class", self.object_name),
                "assumeRuntimeClass": ("assume_runtime_class", self.boolean),
                "remove": ("remove", self.list_of(self.absolute_path)),
            },
        )
        drivers = given.value()
        if drivers.profile == "host-path" and not drivers.mounts:
            self._mistake(node, "the profile host-path needs hostPath.mounts: list at least one")
        if drivers.profile == "runtime-class" and not drivers.runtime_class:
            self._mistake(node, "the profile runtime-class needs runtimeClass: name it")
        return drivers

    def placement(self, node: yaml.Node) -> Placement:
        given = _Given(Placement())
        self.members(
            node,
            given,
            {
                "enabled": ("enabled", self.boolean),
                "label": ("label", self.label_key),
                "value": ("value", self.label_value),
            },
        )
        return given.value()

    def mount(self, node: yaml.Node) -> DriverMount:
        given = _Given(DriverMount("/", "/"))
        self.members(
            node,
            given,
            {
                "path": ("host_path", self.absolute_path),
                "mountPath": ("mount_path", self.absolute_path),
                "type": ("type", self.one_of("Directory", "File")),
            },
        )
        for name, field in (("path", "host_path"), ("mountPath", "mount_path")):
            if field not in given.fields:
                self._mistake(node, f"a mount needs {name}")
        return given.value()

    def taint(self, node: yaml.Node) -> Taint:
        if isinstance(node, yaml.ScalarNode):
            taint = READY_MADE_TAINTS.get(node.value) or _taint(node.value)
        else:
            given = _Given(Taint(""))
            members = {
                "key": ("key", self.label_key),
                "value": ("value", self.label_value),
                "effect": ("effect", self.one_of(*_EFFECTS)),
            }
            self.members(node, given, members)
            taint = given.value()
        if not labels.is_key(taint.key) or taint.effect not in _EFFECTS:
            self._mistake(node, "a taint is written key=value:effect, as sku=gpu:NoSchedule")
        elif taint.is_off_limits:
            self._mistake(
                node, f"{taint} says `not now`: GPU pods must never tolerate it; delete it"
            )
        return taint

    def model_values(self, node: yaml.Node) -> tuple[tuple[str, tuple[str, ...]], ...]:
        if not isinstance(node, yaml.MappingNode):
            self._mistake(node, "must be a map of old model names to lists of label values")
            return ()
        return tuple(
            (self.text(key), self.list_of(self.label_value)(value)) for key, value in node.value
        )

    # What a single value may be.

    def members(
        self,
        node: yaml.Node,
        given: _Given[Any],
        known: Mapping[str, tuple[str | None, Callable[[yaml.Node], Any]]],
    ) -> None:
        """Read a map into `given`; a field name of None is read by its reader itself."""
        if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null"):
            return
        if not isinstance(node, yaml.MappingNode):
            self._mistake(node, f"must be a map of {', '.join(known)}")
            return
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                self._mistake(key, f"{name} stands twice: delete one")
            elif name not in known:
                self._mistake(key, f"there is no setting {name}{_meant(name, known)}")
            else:
                field, reader = known[name]
                read = reader(value)
                if field is not None:
                    given.fields[field] = read
            seen.add(name)

    def list_of(self, reader: Callable[[yaml.Node], T]) -> Callable[[yaml.Node], tuple[T, ...]]:
        def read(node: yaml.Node) -> tuple[T, ...]:
            if isinstance(node, yaml.SequenceNode):
                return tuple(reader(item) for item in node.value)
            self._mistake(node, "must be a list")
            return ()

        return read

    def one_of(self, *choices: str) -> Callable[[yaml.Node], str]:
        def read(node: yaml.Node) -> str:
            text = self.text(node)
            if text not in choices:
                hint = _meant(text, choices)
                self._mistake(node, f"must be one of {', '.join(choices)}, not {text!r}{hint}")
                return choices[0]
            return text

        return read

    def text(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag.endswith(":null"):
            self._mistake(node, "must be a text")
            return ""
        return str(node.value)

    def boolean(self, node: yaml.Node) -> bool:
        if isinstance(node, yaml.ScalarNode) and node.value in ("true", "false"):
            return bool(node.value == "true")
        self._mistake(node, "must be true or false")
        return False

    def absolute_path(self, node: yaml.Node) -> str:
        path = self.text(node)
        if not path.startswith("/") or ".." in path.split("/"):
            self._mistake(node, "must be an absolute path without ..")
        return path

    def object_name(self, node: yaml.Node) -> str:
        return self._checked(node, labels.is_subdomain, "must be the name of an object")

    def label_key(self, node: yaml.Node) -> str:
        return self._checked(node, labels.is_key, "must be a label key, as example.com/name")

    def label_value(self, node: yaml.Node) -> str:
        return self._checked(
            node, labels.is_value, "must be a label value of at most 63 characters"
        )

    def resource_name(self, node: yaml.Node) -> str:
        text = self._checked(node, labels.is_key, "must be a resource name, as nvidia.com/gpu")
        if "kubernetes.io/" in text or "/" not in text:
            self._mistake(node, f"{text} is no extended resource: no device plugin can offer it")
        return text

    def resource_names(self, node: yaml.Node) -> tuple[str, ...]:
        def name(each: yaml.Node) -> str:
            text = self.text(each)
            if not labels.is_key(f"{text[:-1]}x" if text.endswith("*") else text):
                self._mistake(each, "must be a resource name; a * may stand at its end")
            return text

        return self.list_of(name)(node)

    def _checked(self, node: yaml.Node, is_legal: Callable[[object], bool], what: str) -> str:
        text = self.text(node)
        if not is_legal(text):
            self._mistake(node, f"{what}, not {text[:80]!r}")
        return text


def _taint(text: str) -> Taint:
    left, _, effect = text.rpartition(":")
    key, _, value = left.partition("=")
    return Taint(key, value, effect)


def _meant(name: str, known: object) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)  # type: ignore[call-overload]
    return f"; did you mean {close[0]}?" if close else ""
