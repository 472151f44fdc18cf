"""The CEL that keeps pods away from the webhook which are none of its business (KEP-3716).

The API server evaluates it in process, so a plain pod neither waits for us nor notices us when we
are down. It is made from the settings: a name that the settings add must be added here too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from webhook.core.legacy_names import AFFINITY_ANNOTATION
from webhook.core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

_CONTAINERS = (
    "(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))"
)
_TERMS = (
    "has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) && (\n"
    "  (has({required})\n  && {required}.nodeSelectorTerms.exists(t, {expressions}))\n"
    "  || (has({preferred})\n  && {preferred}.exists(p, {preference})))"
)


def match_conditions(settings: Settings) -> list[dict[str, str]]:
    """The matchConditions of the entry for /mutate, for these settings."""
    concerns_gpus = "\n|| ".join(
        (
            _names_resource(settings),
            _in_map("object.spec", "nodeSelector", settings.models.legacy_label),
            _in_annotation(settings.models.legacy_label),
            _in_affinity(settings.models.legacy_label),
        )
    )
    return [
        {
            "name": "is-no-mirror-pod",
            "expression": "!has(object.metadata.annotations)\n"
            '|| !("kubernetes.io/config.mirror" in object.metadata.annotations)',
        },
        {
            "name": "is-no-windows-pod",
            "expression": '!has(object.spec.os) || object.spec.os.name != "windows"',
        },
        {"name": "concerns-gpus", "expression": concerns_gpus},
    ]


def missed_names(settings: Settings) -> list[str]:
    """Names in the settings that the shipped matchConditions (the default ones) would miss."""
    shipped = Settings()
    names = [name for name in settings.legacy_resources if name not in shipped.legacy_resources]
    names += [
        name
        for name in (settings.gpu_resource, *settings.gpu_resources)
        if name not in shipped.gpu_resources and (name.endswith("*") or not shipped.is_gpu(name))
    ]
    if settings.models.legacy_label != shipped.models.legacy_label:
        names.append(settings.models.legacy_label)
    return sorted(set(names))


def _text(value: str) -> str:
    return json.dumps(value)


def _names_resource(settings: Settings) -> str:
    names = (*settings.legacy_resources, settings.gpu_resource, *settings.gpu_resources)
    exact = sorted({name for name in names if not name.endswith("*")})
    tests = [f"k in [{', '.join(_text(name) for name in exact)}]"]
    tests += [
        f"k.startsWith({_text(name[:-1])})" for name in sorted(set(names)) if name.endswith("*")
    ]
    return (
        f"{_CONTAINERS}.exists(c, has(c.resources) && (\n"
        f"  {_has_key('limits', tests)}\n  || {_has_key('requests', tests)}))"
    )


def _has_key(section: str, tests: Iterable[str]) -> str:
    return f"(has(c.resources.{section}) && c.resources.{section}.exists(k, {' || '.join(tests)}))"


def _in_map(holder: str, member: str, key: str) -> str:
    return f"(has({holder}.{member}) && {_text(key)} in {holder}.{member})"


def _in_annotation(label: str) -> str:
    annotations, key = "object.metadata.annotations", _text(AFFINITY_ANNOTATION)
    return (
        f"(has({annotations}) && {key} in {annotations}\n"
        f"  && {annotations}[{key}].contains({_text(label)}))"
    )


def _in_affinity(label: str) -> str:
    node_affinity = "object.spec.affinity.nodeAffinity"
    required = f"{node_affinity}.requiredDuringSchedulingIgnoredDuringExecution"
    preferred = f"{node_affinity}.preferredDuringSchedulingIgnoredDuringExecution"
    key = _text(label)

    def names(term: str) -> str:
        has, listed = f"has({term}.matchExpressions)", f"{term}.matchExpressions"
        return f"{has} && {listed}.exists(e, e.key == {key})"

    terms = _TERMS.format(
        required=required,
        preferred=preferred,
        expressions=names("t"),
        preference=names("p.preference"),
    )
    return f"({terms})"
