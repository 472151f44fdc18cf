"""Typed access to a raw pod or pod template: makes no copies, and accepts any input.

The raw object may be malformed: a field of the wrong type counts as missing, and the API server
rejects it with its own message.
"""

from __future__ import annotations

from functools import wraps
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from webhook.kube import quantity
from webhook.kube.labels import LONGEST_VALUE, is_api_version, is_kind, is_subdomain, is_value
from webhook.kube.pointer import ROOT, Path, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.core.settings import Settings

Raw = dict[str, Any]
About = TypeVarTuple("About")
Answer = TypeVar("Answer")

# Ephemeral containers cannot request resources, but they mount volumes and have variables.
KINDS = ("initContainers", "containers", "ephemeralContainers")
SECTIONS = ("limits", "requests")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TERMS = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
_PREFERENCES = ("spec", "affinity", "nodeAffinity", PREFERRED)

_MIRROR = "kubernetes.io/config.mirror"
_OS_LABELS = ("kubernetes.io/os", "beta.kubernetes.io/os")
_NOTHING: Any = {}


def as_map(value: object) -> Raw:
    """The value if it is a map, else an empty one (not to be written to)."""
    return value if isinstance(value, dict) else _NOTHING


def as_items(value: object) -> list[tuple[int, Raw]]:
    """The maps in a list, with their positions; empty if it is not a list."""
    if not isinstance(value, list):
        return []
    return [(position, item) for position, item in enumerate(value) if isinstance(item, dict)]


def annotations_of(obj: Mapping[str, Any]) -> Raw:
    """The annotations of an object, or of a pod template."""
    return as_map(as_map(obj.get("metadata")).get("annotations"))


def labels_of(obj: Mapping[str, Any]) -> Raw:
    """The labels of an object, or of a pod template."""
    return as_map(as_map(obj.get("metadata")).get("labels"))


def controller_of(metadata: Mapping[str, Any]) -> Raw:
    """The reference to the controller that created an object; empty if none did.

    A user may name any owner, and the API server only checks that the fields are not empty
    (ValidateOwnerReferences). An illegal name belongs to no object.
    """
    owners = as_items(metadata.get("ownerReferences"))
    found = (owner for _, owner in owners if owner.get("controller") is True)
    return next(filter(_is_legal, found), _NOTHING)


_LEGAL = {"name": is_subdomain, "kind": is_kind, "apiVersion": is_api_version, "uid": is_value}


def _is_legal(reference: Raw) -> bool:
    return all(is_legal(reference[name]) for name, is_legal in _LEGAL.items() if name in reference)


def is_finished(raw: Mapping[str, Any]) -> bool:
    """Whether the pod has finished, and holds no resources any more."""
    return as_map(raw.get("status")).get("phase") in ("Succeeded", "Failed")


def is_for_windows(spec: Mapping[str, Any]) -> bool:
    """Whether this pod spec is for a Windows node, where GPUs have other names."""
    selector = as_map(spec.get("nodeSelector"))
    return as_map(spec.get("os")).get("name") == "windows" or "windows" in map(
        selector.get, _OS_LABELS
    )


def is_mirror(pod: Mapping[str, Any]) -> bool:
    """True for a mirror pod: the kubelet runs it as it is in its file."""
    return _MIRROR in annotations_of(pod)


def is_for_linux(pod: Mapping[str, Any]) -> bool:
    """Whether a kubelet on Linux will run the pod as the API server stores it."""
    return not is_mirror(pod) and not is_for_windows(as_map(pod.get("spec")))


class Container:
    """One container of any kind; `limits` and `requests` are the raw maps, empty if missing."""

    __slots__ = ("at", "kind", "limits", "name", "raw", "requests", "sections")

    def __init__(self, kind: str, at: Path, raw: Raw) -> None:
        self.kind = kind
        self.at = at
        self.raw = raw
        # The API server rejects a longer name, and each message quotes it.
        self.name = str(raw.get("name", at[-1]))[:LONGEST_VALUE]
        resources = as_map(raw.get("resources"))
        self.limits = as_map(resources.get("limits"))
        self.requests = as_map(resources.get("requests"))
        self.sections = {"limits": self.limits, "requests": self.requests}

    def amounts(self) -> chain[tuple[str, Any]]:
        """All amounts by resource name, of the limits and of the requests."""
        return chain(self.limits.items(), self.requests.items())

    def section_at(self, name: str) -> Path:
        return Path((*self.at, "resources", name))

    def volume_mounts(self) -> list[tuple[int, Raw]]:
        return as_items(self.raw.get("volumeMounts"))

    def volume_devices(self) -> list[tuple[int, Raw]]:
        return as_items(self.raw.get("volumeDevices"))

    def env(self) -> list[tuple[int, Raw]]:
        return as_items(self.raw.get("env"))

    def requested(self) -> Raw:
        """The amounts that count, by resource name.

        The request counts, as in the scheduler; if it is missing, the API server copies the limit
        (SetDefaults_Pod).
        """
        return {**self.limits, **self.requests}

    def gpus(self, settings: Settings) -> dict[str, int]:
        """The GPU resource names that this container requests, with whole amounts above zero."""
        asked: dict[str, int] = {}
        for name, amount in self.requested().items():
            if settings.is_gpu(name):
                value = quantity.parse(amount)
                if value is not None and value.numerator > 0:
                    asked[name] = quantity.whole(value)
        return asked

    def names_gpus(self, settings: Settings) -> bool:
        """Whether any amount of GPUs is written under a current name."""
        return any(map(settings.is_gpu, (*self.limits, *self.requests)))


class Pod:
    """The pod, or pod template, at `at` in a raw object. Made again after each edit."""

    __slots__ = ("_answers", "_named", "annotations", "at", "containers", "metadata", "raw", "spec")

    def __init__(self, obj: Raw, at: Path = ROOT) -> None:
        self.raw: Raw = as_map(value_at(obj, at))
        self.at = at
        self.metadata = as_map(self.raw.get("metadata"))
        self.annotations: Mapping[str, Any] = as_map(self.metadata.get("annotations"))
        self.spec = as_map(self.raw.get("spec"))
        self.containers = tuple(
            [
                Container(kind, Path((*at, "spec", kind, position)), raw)
                for kind in KINDS
                if kind in self.spec
                for position, raw in as_items(self.spec[kind])
            ]
        )
        self._answers: dict[object, tuple[tuple[object, ...], Any]] = {}
        self._named: dict[str, Container] | None = None

    def container(self, name: str) -> Container | None:
        """The first container of this name."""
        if self._named is None:  # looked up for each of many annotations
            self._named = {each.name: each for each in reversed(self.containers)}
        return self._named.get(name)

    def once(self, question: Callable[[Pod, *About], Answer], *about: *About) -> Answer:
        """The cached answer to a question of several rules about this pod and these objects."""
        known = self._answers.get(question)
        if known is None or not all(map(is_, known[0], about)):
            known = self._answers[question] = about, question(self, *about)
        answer: Answer = known[1]
        return answer

    def having(self, **fields: Any) -> Pod:
        """A copy of this pod with these members in its spec."""
        return Pod({**self.raw, "spec": {**self.spec, **fields}})

    @property
    def spec_at(self) -> Path:
        return self.at / "spec"

    def annotation_at(self, key: str) -> Path:
        return self.at / "metadata" / "annotations" / key

    @property
    def node_selector(self) -> Mapping[str, Any]:
        return as_map(self.spec.get("nodeSelector"))

    @property
    def affinity(self) -> Mapping[str, Any]:
        return as_map(self.spec.get("affinity"))

    @property
    def node_affinity(self) -> Mapping[str, Any]:
        return as_map(self.affinity.get("nodeAffinity"))

    def required_terms(self) -> list[tuple[Path, Raw]]:
        """The terms of the required node affinity, with their places."""
        found = as_items(as_map(self.node_affinity.get(REQUIRED)).get("nodeSelectorTerms"))
        return [(Path((*self.at, *_TERMS, number)), term) for number, term in found]

    @property
    def required_terms_at(self) -> Path:
        return Path((*self.at, *_TERMS))

    def preferences(self) -> list[tuple[Path, Raw]]:
        """The preferred terms of the node affinity with their weights, and their places."""
        found = as_items(self.node_affinity.get(PREFERRED))
        return [(Path((*self.at, *_PREFERENCES, number)), each) for number, each in found]

    def preferred_terms(self) -> list[tuple[Path, Raw]]:
        """The same terms without their weights."""
        return [(at / "preference", as_map(e.get("preference"))) for at, e in self.preferences()]

    def volumes(self) -> list[tuple[int, Raw]]:
        return as_items(self.spec.get("volumes"))

    def tolerations(self) -> list[Raw]:
        return [item for _, item in as_items(self.spec.get("tolerations"))]

    def controller(self) -> tuple[str, str]:
        """Kind and name of the owner of this pod; two empty texts if it has none."""
        owner = controller_of(self.metadata)
        return str(owner.get("kind", "")), str(owner.get("name", ""))

    def gpus(self, settings: Settings) -> dict[str, int]:
        """GPU resource names that any container asks for, with the largest amount of one."""
        return self.once(_gpus, settings)

    def is_in_scope(self, settings: Settings) -> bool:
        """Whether the webhook handles this pod.

        It does if the pod names a legacy GPU resource or the legacy label, or requests a GPU. With
        the scope `all-legacy` it handles every pod.
        """
        return (
            settings.scope == "all-legacy"
            or self._names_gpu_resource(settings)
            or self.names_legacy_label(settings.models.legacy_label)
        )

    def _names_gpu_resource(self, settings: Settings) -> bool:
        return any(
            name in settings.legacy_resources
            or (settings.is_gpu(name) and quantity.parse(amount) != 0)
            for container in self.containers
            for name, amount in container.amounts()
        )

    def names_legacy_label(self, label: str) -> bool:
        """Whether the pod, or its affinity annotation, names this label for models."""
        if self.node_selector.get(label) is not None:
            return True
        text = self.annotations.get("scheduler.alpha.kubernetes.io/affinity")
        if isinstance(text, str) and label in text:
            return True
        if not self.node_affinity:
            return False
        return any(
            requirement.get("key") == label
            for _, term in (*self.required_terms(), *self.preferred_terms())
            for _, requirement in as_items(term.get("matchExpressions"))
        )

    def asks_under_legacy_name(self, settings: Settings) -> bool:
        """True if a container requests GPUs under a name that no node offers: it can never run."""
        return bool(self.legacy_name(settings))

    def legacy_name(self, settings: Settings) -> str:
        """The legacy name under which a container requests GPUs; empty if none does."""
        for container in self.containers:
            for name, amount in container.amounts():
                if name in settings.legacy_resources and quantity.parse(amount) != 0:
                    return name
        return ""


def once(question: Callable[[Pod, *About], Answer]) -> Callable[[Pod, *About], Answer]:
    """Decorates a function of a pod that several rules call with the same objects: see Pod.once."""

    @wraps(question)
    def answer(pod: Pod, *about: *About) -> Answer:
        return pod.once(question, *about)

    return answer


def _gpus(pod: Pod, settings: Settings) -> dict[str, int]:
    found: dict[str, int] = {}
    for container in pod.containers:
        for name, amount in container.gpus(settings).items():
            found[name] = max(amount, found.get(name, 0))
    return found
