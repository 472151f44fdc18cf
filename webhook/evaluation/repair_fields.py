"""The fields of a pod that repairs write, with the forms of their values; SECURITY.md has the list.

A user who writes the workload may forge the record of a repair (evaluation/repair_record.py). So
only fields that a repair could have written are removed: fields that a policy has set stay.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from webhook.capacity.whole_gpus import is_exclusion
from webhook.core.host_paths import VOLUME_PREFIX
from webhook.core.legacy_names import (
    AFFINITY_ANNOTATION,
    BETA_NODE_LABELS,
    TOLERATIONS_ANNOTATION,
)
from webhook.core.settings import Placement, Settings
from webhook.evaluation.stored_pod import is_of_gpus, model_labels
from webhook.kube.canonical import canonical, parsed
from webhook.kube.pod import KINDS, PREFERRED, REQUIRED, SECTIONS, Raw, as_items, as_map
from webhook.kube.typed import may_have

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.evaluation.pod_fields import Change, Key


_NODES, _PODS = "nodeAffinity", ("podAffinity", "podAntiAffinity")
_TERMS = (_NODES, REQUIRED, "nodeSelectorTerms")
# AKS labels models by the machine type of the node. If the settings do not, a policy may.
_OF_ANY_NODE = "node.kubernetes.io/"
_SEARCH_PATHS = ("LD_LIBRARY_PATH", "PATH")
_UNSET = (None, "", "default-scheduler")  # SetDefaults_PodSpec sets the last one
_FIELDS: dict[Key, str] = {  # with the annotations that become these fields
    ("hostname",): "pod.beta.kubernetes.io/hostname",
    ("subdomain",): "pod.beta.kubernetes.io/subdomain",
    ("schedulerName",): "scheduler.alpha.kubernetes.io/name",
    ("securityContext", "sysctls"): "security.alpha.kubernetes.io/sysctls",
}
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF = "container.seccomp.security.alpha.kubernetes.io/"


def believed(noted: Mapping[Key, Change], settings: Settings) -> dict[Key, Change]:
    """The changes of a record that a repair may have made: a writer may forge the record."""
    forms = RepairFields({key: before for key, (before, _) in noted.items()}, settings)
    return {key: change for key, change in noted.items() if forms.may_be(key, *change)}


class RepairFields:
    """What repairs may have made from an author's words."""

    def __init__(self, words: Mapping[Key, Any], settings: Settings) -> None:
        """`words` are fields as the author wrote them; more fields than words do no harm."""
        self._words = words
        self._settings = settings
        shipped = (each for each in model_labels(settings) if not each.startswith(_OF_ANY_NODE))
        self._models = {*shipped, settings.models.key, settings.models.legacy_label}
        self._labels = {*self._models, settings.placement.label, Placement().label}

    def may_be(self, key: Key, before: Any, after: Any) -> bool:
        """Whether a repair may have changed `before` to `after` here; None means missing."""
        if not may_have(key, before):  # it may be put back
            return False
        match key:
            case ("metadata", "annotations", _):
                return after is None
            case ("spec", "nodeSelector", label):
                return before == after or self._is_label(label, after)
            case ("spec", "affinity", *_):
                return not self._foreign(key[2:], before) ^ self._foreign(key[2:], after)
            case ("spec", "tolerations"):
                return self._other_tolerations(before) == self._other_tolerations(after)
            case ("spec", "volumes", _) | ("spec", _, _, "volumeMounts", _):
                return after is None or _is_of_driver(after)
            case ("spec", kind, _, "resources" | "env", *_):
                return kind in KINDS and self._is_in_container(key[3:], before)
            case ("spec", *where):
                return before in _UNSET and after is not None and self._is_field(where, after)
            case _:
                return False

    def _is_in_container(self, where: Key, before: Any) -> bool:
        match where:
            case ("resources", section, name):
                of_gpus = self._settings.names_gpus(name)
                return section in SECTIONS and of_gpus
            case ("env", name) if name in _SEARCH_PATHS:
                return before is not None or name == _SEARCH_PATHS[0]
            case _:
                return False

    def _is_label(self, label: str, value: Any) -> bool:
        """Whether this is a label of models or of placement, or an old label that was removed.

        Current labels of zone, arch or os do not count: a policy may pin pods by them.
        """
        return label in self._labels or (label in BETA_NODE_LABELS and value is None)

    def _is_field(self, where: list[str], value: Any) -> bool:
        """Whether this is the runtime class of the settings, or the result of an annotation."""
        match where:
            case ["runtimeClassName"]:
                is_of_nvidia = str(value).startswith("nvidia")  # as the classes of the GPU operator
                return is_of_nvidia or bool(value == self._settings.drivers.runtime_class)
            case ["schedulerName"] if value not in self._settings.annotation_schedulers:
                return False
            case ["securityContext", "seccompProfile", "type"]:
                return value == "RuntimeDefault" and self._annotation(_SECCOMP) is not None
            case [_, name, "securityContext", "seccompProfile", "type"]:
                noted = self._annotation(f"{_SECCOMP_OF}{name}")
                return value == "RuntimeDefault" and noted is not None
        if tuple(where) not in _FIELDS:
            return False
        text = self._annotation(_FIELDS[tuple(where)])
        if isinstance(value, list):
            value = ",".join(
                f"{each.get('name')}={each.get('value')}" for _, each in as_items(value)
            )
        return bool(text is not None and text == value)

    def _annotation(self, name: str) -> Any:
        return self._words.get(("metadata", "annotations", name))

    @cached_property
    def _in_affinity(self) -> set[str]:
        """The parts of the affinity annotation, with current labels."""
        return set(_maps(self._annotation(AFFINITY_ANNOTATION)))

    @cached_property
    def _in_tolerations(self) -> set[str]:
        return set(_maps(self._annotation(TOLERATIONS_ANNOTATION)))

    def _other_tolerations(self, value: Any) -> set[str]:
        texts = {canonical(each): each for _, each in as_items(value)}
        return {
            text
            for text, each in texts.items()
            if text not in self._in_tolerations and not is_of_gpus(each, self._settings)
        }

    def _foreign(self, where: Key, value: Any) -> set[Any]:
        """The parts of this field that are neither models nor from the annotation."""
        items = [item for _, item in as_items(value)]
        if where == _TERMS:
            return {self._foreign_part(term) for term in items or [{}]}
        if where == (_NODES, PREFERRED):
            parts = (
                (e.get("weight"), self._foreign_part(as_map(e.get("preference")))) for e in items
            )
            return {canonical([weight, sorted(part)]) for weight, part in parts if part}
        if len(where) == 2 and where[0] in _PODS:  # noqa: PLR2004  # with required, or preferred
            return {canonical(each) for each in items if not self._is_in_annotation(each)}
        return {canonical(value)} if value else set()

    def _foreign_part(self, term: Raw) -> frozenset[str]:
        return frozenset(
            f"{listed} {text}"
            for listed in ("matchExpressions", "matchFields")
            for _, each in as_items(term.get(listed))
            if not self._is_of_model(each) and (text := _text(each)) not in self._in_affinity
        )

    def _is_of_model(self, each: Raw) -> bool:
        key, operator, values = (each.get(name) for name in ("key", "operator", "values"))
        listed = [str(value) for value in values] if isinstance(values, list) else []
        return str(key) in self._models or is_exclusion(str(key), str(operator), listed)

    def _is_in_annotation(self, item: Raw) -> bool:
        selector = as_map(item.get("podAffinityTerm", item)).get("labelSelector")
        return canonical(selector) in self._in_affinity


def _is_of_driver(item: Any) -> bool:
    return str(as_map(item).get("name")).startswith(VOLUME_PREFIX)


def _text(each: Raw) -> str:
    key = each.get("key")
    return canonical(
        {**each, "key": BETA_NODE_LABELS.get(key, key)} if isinstance(key, str) else each
    )


def _maps(text: Any) -> Iterator[str]:
    """The selectors in this JSON, and all maps without maps in them, each once."""
    waiting = [parsed(text)]
    while waiting:
        here = waiting.pop()
        if isinstance(here, list):
            waiting += here
            continue
        members = as_map(here).items()
        below = [each for name, each in members if name != "labelSelector" and _holds_maps(each)]
        waiting += below
        if "labelSelector" in as_map(here):
            yield canonical(here["labelSelector"])
        elif not below and isinstance(here, dict):
            yield _text(here)


def _holds_maps(value: Any) -> bool:
    return isinstance(value, dict) or bool(isinstance(value, list) and as_items(value))
