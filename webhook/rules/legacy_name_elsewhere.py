"""Finds legacy names outside of known pod templates.

Why: the GPU resource also occurs in the data of other programs: in the `limits` of custom resources
without a pod template, in variables and arguments that name the resource which an operator should
request, in the text of ConfigMaps. Pods created from such data stay Pending, and no webhook sees
the reason. So do pods that request other resources of alpha releases, which no node offers, such as
`pod.alpha.kubernetes.io/opaque-int-resource-*`.

Does: with `--unsafe`, renames the resource in `limits` and `requests` outside of pod templates.
Other places are only reported, because a program may compare or split the text, or make it a label.
If a custom kind does have pod templates, list them in `workloads.kinds`.

Safety: unsafe: the effect depends on the program that reads the name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webhook.core.edits import Rename
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.core.text_patterns import (
    AFFINITY_TEXT,
    DRIVER_TEXT,
    INIT_CONTAINERS_TEXT,
    LABEL_TEXT,
    QUOTA_TEXT,
    RESOURCE_TEXT,
    TOLERATIONS_TEXT,
    Pattern,
    find,
)
from webhook.evaluation.workloads import is_built_in, templates_of
from webhook.kube.pod import SECTIONS, Container, Pod, Raw, as_map
from webhook.kube.pointer import ROOT, Path, value_at
from webhook.kube.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "legacy-name-elsewhere"
CODE = "GPU132"
FACTS = Facts(
    Stage.MANIFEST,
    Trait.TEXT,
    unsafe=True,
    words=("alpha.kubernetes.io", "pod.beta.kubernetes.io", "AnnotationKey"),
    patterns=(
        Pattern(
            "opaque-resource",
            r"pod\.alpha\.kubernetes\.io[/~]1?opaque-int-resource-\w*",
            "opaque integer resources were removed in 1.9",
            "write an extended resource",
        ),
        Pattern(
            "alpha-resource",
            r"(?<![\w.-])alpha\.kubernetes\.io[/~]1?(?:group-resource/[\w/.-]+|nvidia_gpu\b)",
            "no node offers this resource",
            "write {gpu}",
            words=("group-resource/", "nvidia_gpu"),
        ),
    ),
)

_HAVE_THEIR_OWN_RULE = ("Node", "ResourceQuota", "ClusterResourceQuota", "LimitRange")
_IN_CONTAINERS = ("command", "args", "env")
# A slash in JSON in a text. It begins at its first backslash, so no text takes long.
_SLASH = re.compile(r"(?<!\\)\\+(?:/|u002[fF])")
_IS_ALPHA = re.compile(r"(?:[\w.-]+\.)?alpha\.kubernetes\.io/").match
_PATTERNS = (
    *(*FACTS.patterns, QUOTA_TEXT, LABEL_TEXT, RESOURCE_TEXT),
    *(AFFINITY_TEXT, TOLERATIONS_TEXT, INIT_CONTAINERS_TEXT),
)


def check(obj: Raw, cx: Context) -> Iterator[Finding]:
    if obj.get("kind") in _HAVE_THEIR_OWN_RULE:
        return
    templates = templates_of(obj, cx.settings)
    for at, value in walk(obj, without=(*templates, ROOT / "metadata")):
        yield from _name(at, value, obj, cx)
    for template in templates:
        for container in Pod(obj, template).containers:
            yield from _resources(container, cx)
            for part in _IN_CONTAINERS:
                for at, value in walk(container.raw.get(part), container.at / part):
                    yield from _text(at, value, cx)


def _resources(container: Container, cx: Context) -> Iterator[Finding]:
    """Resources of alpha releases besides the GPU: groups of KubeGPU, opaque integer resources."""
    for section in SECTIONS:
        for name in as_map(as_map(container.raw.get("resources")).get(section)):
            if _IS_ALPHA(str(name)) and name not in cx.settings.legacy_resources:
                message = f"no node offers {name}: write the resource that the nodes have now"
                at = container.at / "resources" / section / name
                yield Finding(CODE, at, message, severity=Severity.MANUAL)


def _name(at: Path, value: object, obj: Raw, cx: Context) -> Iterator[Finding]:
    name, new = at[-1] if at else "", cx.settings.gpu_resource
    if name in cx.settings.legacy_resources:
        if len(at) > 1 and at[-2] in SECTIONS and new not in value_at(obj, at.parent):
            message = f"{name} is asked for outside of a known pod template: write {new}"
            if obj.get("kind") and not is_built_in(obj):
                message += f", or list {obj['kind']} in workloads.kinds if it has pod templates"
            yield Finding(CODE, at, message, (Rename(at, new),), safety=Safety.UNSAFE)
        else:
            message = (
                f"{name} is a name in the data of a program: write {new} if it is the resource"
            )
            yield Finding(CODE, at, message, severity=Severity.MANUAL)
    elif name == cx.settings.models.legacy_label:
        message = f"{name} is a name in the data of a program: write {cx.settings.models.key}"
        yield Finding(CODE, at, message, severity=Severity.MANUAL)
    yield from _text(at, value, cx)


def _text(at: Path, value: object, cx: Context) -> Iterator[Finding]:
    if isinstance(value, str):
        patterns = (*_PATTERNS, DRIVER_TEXT) if "\n" in value else _PATTERNS
        text = _SLASH.sub("/", value) if "\\" in value else value
        said = {match.found: match.message for match in find(text, patterns, cx.settings)}
        for word, message in said.items():
            yield Finding(CODE, at, message, severity=Severity.MANUAL, word=word)
