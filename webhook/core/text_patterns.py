"""Patterns of legacy names in texts that are not manifests: programs, scripts, notes, templates.

Each rule has its patterns; patterns of several rules are here. `find` returns the matches in order
and without overlaps; it never changes the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from webhook.core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """One kind of legacy text: what to look for, what it means, and what to write instead.

    In `text`, {resource} and {label} stand for the legacy names of the settings, as alternatives;
    in `fix`, {gpu} and {product} stand for the current names. An `idle` text has never had an
    effect on what a pod gets. If the whole text contains `unless`, the match means something else
    and is ignored. `code` is the rule whose manual has the details. `words`, of which each match
    has one, save the search in most texts: a pattern that begins with no letter is slow.
    """

    name: str
    text: str
    message: str
    advice: str
    idle: bool = False
    unless: str = ""
    code: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A match of a pattern in a text: offsets, the end exclusive."""

    pattern: Pattern
    start: int
    end: int
    found: str
    advice: str

    @property
    def code(self) -> str:
        return self.pattern.code

    @property
    def message(self) -> str:
        """One line: what was found, what it means, and what to write instead."""
        found = " ".join(self.found.split())
        return f"{found[:_SHOWN]}: {self.pattern.message}; {self.advice}"


_SHOWN = 60  # characters of the match that are shown

_OF_LINES = re.compile(
    r"\\[snWDS]|\[\^|\^|\$|\n"
)  # what may match the end of a line, or ask for it
# The end of a name: a longer name may begin with it (nvidia-gpu, nvidia-gpu-name).
END = r"(?![-\w]|\.\w)"
NO_EFFECT = "the annotation has had no effect since"
GET_PLUGIN = "install the current chart of the device plugin, or the GPU operator"

QUOTA_TEXT = Pattern(
    "quota-name",
    rf"(?<![\w.])(?:requests|limits)\.(?:{{resource}}){END}",
    "no quota counts it",
    "write requests.{gpu}",
    words=("requests.", "limits."),
)
LABEL_TEXT = Pattern(
    "model-label",
    rf"(?:{{label}}){END}",
    "current kubelets do not set this label",
    "write {product}",
)
RESOURCE_TEXT = Pattern(
    "resource-name",
    rf"(?:{{resource}}){END}",
    "current nodes do not offer this resource",
    "write {gpu} if this names the resource",
)
DRIVER_TEXT = Pattern(
    "driver-path",
    r"/usr/lib\w*/nvidia-(?:[0-9]{3}\b|\{\{)[\w./-]*"
    r"|/var/lib/nvidia-docker/volumes/nvidia_driver[\w./-]*",
    "the driver of an old node",
    "leave it out: the container toolkit brings the driver",
)
AFFINITY_TEXT = Pattern(
    "affinity-annotation",
    rf"scheduler\.alpha\.kubernetes\.io/affinity{END}|\bAffinityAnnotationKey\b",
    f"{NO_EFFECT} 1.8",
    "write spec.affinity",
    words=("/affinity", "AffinityAnnotationKey"),
)
TOLERATIONS_TEXT = Pattern(
    "tolerations-annotation",
    rf"scheduler\.alpha\.kubernetes\.io/tolerations{END}|\bTolerationsAnnotationKey\b",
    f"{NO_EFFECT} 1.6",
    "write spec.tolerations",
    words=("/tolerations", "TolerationsAnnotationKey"),
)
INIT_CONTAINERS_TEXT = Pattern(
    "init-containers-annotation",
    r"pod\.(?:alpha|beta)\.kubernetes\.io/init-container(?:s|-statuses)"
    + END
    + r"|\bPodInitContainers(?:Beta)?AnnotationKey\b",
    "dropped by the API server since 1.8",
    "write spec.initContainers",
    words=("/init-container", "PodInitContainers"),
)


def find(
    text: str, patterns: tuple[Pattern, ...], settings: Settings | None = None
) -> Iterator[Match]:
    """All legacy matches in the text; of two at the same place, the first pattern counts."""
    given = settings or Settings()
    # Searched one by one: a literal prefix is found ten times faster than many alternatives.
    everything = [
        (found.start(), rank, found, pattern)
        for rank, (pattern, compiled, unless) in enumerate(
            _compiled(patterns, given.legacy_resources, given.models.legacy_label)
        )
        for first, last in _parts(text, pattern)
        for found in compiled.finditer(text, first, last)
        if unless is None or not unless.search(text)
        if not _is_current(found.group(), given)
    ]
    end = 0
    everything.sort()  # no two have the same place and rank
    for start, _, found, pattern in everything:
        if start >= end:
            end = found.end()
            advice = pattern.advice.format(gpu=given.gpu_resource, product=given.models.key)
            yield Match(pattern, start, end, found.group(), advice)


def _parts(text: str, pattern: Pattern) -> Iterable[tuple[int, int]]:
    """The parts of the text in which the pattern may match: the lines with one of its words.

    All of the text if it has no words, or may match in several lines.
    """
    if not pattern.words:
        return ((0, len(text)),)
    if _OF_LINES.search(pattern.text):
        return ((0, len(text)),) if any(map(text.__contains__, pattern.words)) else ()
    lines: dict[int, int] = {}  # ends, by starts
    for word in pattern.words:
        at = text.find(word)
        while at >= 0:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            lines[text.rfind("\n", 0, at) + 1] = end
            at = text.find(word, end)
    return lines.items()


def _is_current(found: str, settings: Settings) -> bool:
    """Whether the settings name it: as the label of models, or as a path of the driver profile."""
    name = found.replace("\\", "").replace("~1", "/")
    mounts = settings.drivers.mounts
    paths = [path for each in mounts for path in (each.path, each.mount_path)]
    return name == settings.models.key or any(
        name == path or name.startswith(f"{path}/") for path in paths
    )


@lru_cache(maxsize=32)
def _compiled(
    patterns: tuple[Pattern, ...], resources: tuple[str, ...], label: str
) -> tuple[tuple[Pattern, re.Pattern[str], re.Pattern[str] | None], ...]:
    """Each pattern, compiled, and the pattern that excludes it."""
    names = {
        "resource": "|".join(_in_any_quoting(each) for each in resources),
        "label": _in_any_quoting(label),
    }
    return tuple(
        [
            (
                each,
                re.compile(_filled(each.text, names)),
                re.compile(_filled(each.unless, names)) if each.unless else None,
            )
            for each in patterns
        ]
    )


def _filled(text: str, names: dict[str, str]) -> str:
    for name, alternatives in names.items():
        text = text.replace(f"{{{name}}}", alternatives)
    return text


def _in_any_quoting(name: str) -> str:
    r"""The name itself, with `\.` as in jsonpath, and with `~1` as in JSON Pointer."""
    return re.escape(name).replace(r"\.", r"\\{0,2}\.").replace("/", "(?:/|~1)")
