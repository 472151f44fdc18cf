"""How containers get the CUDA driver."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from webhook.core import settings as core
from webhook.core.host_paths import clean
from webhook.settings import values as v
from webhook.settings.maps import DEFAULT, Map, Section


class Mount(Map, title="a mount"):
    """A path of the node in containers."""

    CORE = core.DriverMount
    path: v.HostPath
    """The path on the node, mounted read-only. If it is missing, the container does not start."""
    mount_path: v.MountPath
    """The path in containers with a GPU; each mount needs its own."""
    type: Literal["Directory", "File"] = "Directory"
    """What is there. Without it an empty directory would be made of a path that is missing."""


class ByHostPath(Section):
    """The driver of the profile host-path."""

    mounts: Annotated[tuple[Mount, ...], v.NOT_TOO_MANY] = ()
    """Paths of the node that containers with a GPU get."""
    library_path: v.LibraryPath | None = None
    """Goes into LD_LIBRARY_PATH of containers with a GPU."""

    @model_validator(mode="after")
    def _each_has_its_own_mount_path(self) -> Self:
        seen: set[str] = set()
        for number, mount in enumerate(self.mounts):
            if (place := clean(mount.mount_path)) in seen:
                what = (
                    f"{mount.mount_path} is already the mountPath of another mount, and a "
                    "container has one mount at a path: give each its own"
                )
                raise v.refused(what, "mounts", number, "mountPath")
            seen.add(place)
        return self


def _if_profile(name: str, then: v.Schema) -> v.Schema:
    profile = {"properties": {"profile": {"const": name}}, "required": ["profile"]}
    return {"if": profile, "then": then}


_MOUNTS = {"type": "object", "required": ["mounts"], "properties": {"mounts": {"minItems": 1}}}
_DEMANDS = [
    _if_profile("host-path", {"required": ["hostPath"], "properties": {"hostPath": _MOUNTS}}),
    _if_profile("runtime-class", {"required": ["runtimeClass"]}),
]


class Drivers(Section, json_schema_extra={"allOf": _DEMANDS}):
    """How containers get the CUDA driver."""

    profile: Literal["toolkit", "runtime-class", "host-path"] = "toolkit"
    """toolkit: the nodes do it, nothing is added. runtime-class: by a runtime class. host-path: by
    the mounts below."""
    host_path: ByHostPath = Field(default_factory=ByHostPath)
    runtime_class: v.ObjectName | None = None
    """Of the profile runtime-class: the RuntimeClass that GPU pods get."""
    assume_runtime_class: bool = DEFAULT.drivers.assume_runtime_class
    """The runtime class exists, though no inventory says so. A pod with a class that does not
    exist would be refused."""
    pod_security: Literal["privileged", "baseline", "restricted"] = DEFAULT.drivers.pod_security
    """What Pod Security Admission enforces in namespaces without a label, by the API server's
    AdmissionConfiguration (`defaults.enforce`). baseline and restricted forbid host paths, so none
    is added there."""
    remove: tuple[v.HostPath, ...] = DEFAULT.drivers.remove
    """Further driver paths that no node has any more; * stands for any text between two slashes."""

    @model_validator(mode="after")
    def _profile_has_what_it_needs(self) -> Self:
        if self.profile == "host-path" and not self.host_path.mounts:
            what = "the profile host-path needs hostPath.mounts: list at least one"
            raise v.refused(what, "profile")
        if self.profile == "runtime-class" and not self.runtime_class:
            raise v.refused("the profile runtime-class needs runtimeClass: name it", "profile")
        return self

    def to_core(self) -> core.Drivers:
        paths = self.host_path if self.profile == "host-path" else ByHostPath()
        name = self.runtime_class if self.profile == "runtime-class" else None
        return core.Drivers(
            mounts=tuple(each.to_core() for each in paths.mounts),
            library_path=paths.library_path or "",
            runtime_class=name or "",
            assume_runtime_class=self.assume_runtime_class,
            pod_security=self.pod_security,
            remove=self.remove,
        )
