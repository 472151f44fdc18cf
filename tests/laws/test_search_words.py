"""Whatever a rule finds, the prefilter lets through.

Each list that rules look names up in, and the text of each case of the corpus, hold a word. Where
nothing of an old name is in a file, it is only looked into if it holds another word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given as drawn_from
from hypothesis import settings
from hypothesis import strategies as st

from tests.cases import cases
from webhook.core import host_paths, legacy_images, text_patterns
from webhook.core.settings import Drivers, Models, Settings
from webhook.files import prefilter
from webhook.files.search_words import fewest, words
from webhook.kube.api_versions import OTHERS, WORKLOADS
from webhook.rules import (
    ALL,
    controller_annotation,
    device_plugin_manifest,
    driver_paths,
    ignored_annotations,
    node_objects,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.cases import Case

DEFAULT = words(Settings())
CASES = [each for each in cases() if not each.is_for_guard]  # the second road asks no guard
# A kind in lower case, or apps/v1 without a selector, was refused ever since.
NEVER_SERVED = {"GPU121", "GPU125"}


def is_let_through(text: str, given: Iterable[bytes] = DEFAULT) -> bool:
    return any(word in text.encode() for word in given)


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_a_case_with_findings(case: Case) -> None:
    obj = case.object()
    given = case.context(obj).settings
    found = {each.code for each in case.judge(obj).findings} - NEVER_SERVED
    for rule in ALL:
        if rule.CODE in found:
            assert is_let_through(case.file.read_text(), words(given, [rule])), rule.NAME


OF_TEXTS = [
    pytest.param(
        re.compile(text_patterns._filled(each.text, names)),
        words(Settings(), [rule]),
        id=f"{each.name}-{kind}",
    )
    for rule in ALL
    for each in rule.FACTS.patterns
    for kind, names in {
        "as-it-is": {"resource": re.escape(Settings().legacy_resources[0]), "label": "nvidia-gpu"},
        "in-any-quoting": {
            "resource": text_patterns._in_any_quoting(Settings().legacy_resources[0]),
            "label": text_patterns._in_any_quoting(Settings().models.legacy_label),
        },
    }.items()
]
IMAGES = [
    pytest.param(each[0], words(Settings(), [device_plugin_manifest]), id=each[1])
    for each in legacy_images._INSTALLERS
]
PATHS = [
    pytest.param(getattr(host_paths, name), words(Settings(), [driver_paths]), id=name)
    for name in ("_STALE", "_LIBRARY", "_ALIVE", "_SUSPECT")
]


@pytest.mark.parametrize(("pattern", "given"), [*OF_TEXTS, *IMAGES, *PATHS])
@drawn_from(data=st.data())
@settings(max_examples=settings().max_examples // 2)
def test_whatever_a_pattern_of_the_rules_fits(
    pattern: re.Pattern[str], given: tuple[bytes, ...], data: st.DataObject
) -> None:
    drawn = data.draw(st.from_regex(pattern, fullmatch=True))
    assert is_let_through(drawn, given), drawn


OF_PATTERNS = [
    pytest.param(given.values[0], [word.encode() for word in each.words], id=given.id)
    for each, given in zip(
        (each for rule in ALL for each in rule.FACTS.patterns for _ in range(2)),
        OF_TEXTS,
        strict=True,
    )
    if each.words
]


@pytest.mark.parametrize(("pattern", "given"), OF_PATTERNS)
@drawn_from(data=st.data())
def test_whatever_a_pattern_fits_has_one_of_its_own_words(
    pattern: re.Pattern[str], given: list[bytes], data: st.DataObject
) -> None:
    drawn = data.draw(st.from_regex(pattern, fullmatch=True))
    assert is_let_through(drawn, given), drawn


NAMED = {
    *(version for version, _ in (*WORKLOADS, *OTHERS)),
    *ignored_annotations._READERS,
    *controller_annotation._FOR_PODS,
    *node_objects._ANNOTATIONS,
    *legacy_images._OLD_REGISTRIES,
    "nvidia/cuda:9.0-base",
    "featureGates: {Accelerators: true}",
    "featureGates: {DevicePlugins: true}",
    "container.seccomp.security.alpha.kubernetes.io/web",
    "pod.alpha.kubernetes.io/opaque-int-resource-gpu",
}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_whatever_rules_know_by_name(name: str) -> None:
    assert is_let_through(name)


@pytest.mark.parametrize(
    "text",
    [
        *("nvidia.com/gpu: 1", "nvidia.com~1gpu", "nvidia.com/mig-1g.5gb: 1"),
        *("limits/alpha.kubernetes.io~1nvidia-gpu", r"{.limits.alpha\.kubernetes\.io/nvidia-gpu}"),
        *(r'"alpha.kubernetes.io\/nvidia-gpu"', "requests.alpha.kubernetes.io/nvidia-gpu: 4"),
    ],
)
def test_names_in_every_spelling(text: str) -> None:
    assert is_let_through(text)


def test_what_settings_add() -> None:
    given = words(
        Settings(
            legacy_resources=("example.com/old-gpu",),
            gpu_resource="example.com/gpu",
            gpu_resources=("vendor.example/slice-*",),
            models=Models(legacy_label="example.com/card"),
            drivers=Drivers(remove=("/opt/drivers/*/lib", "/x/*")),
        )
    )
    for name in (
        *("example.com/old-gpu: 1", "example.com~1old-gpu", r"example\.com/old-gpu"),
        *("example.com/gpu: 1", "vendor.example/slice-2", "key: example.com/card"),
        *("path: /opt/drivers/387/lib", "path: /x/y"),
    ):
        assert is_let_through(name, given)
        assert not is_let_through(name), "the defaults do not know it"


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: apps/v1\nkind: Deployment\nspec: {containers: [{image: web}]}\n",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\n",
        "apiVersion: cert-manager.io/v1beta1\nkind: Certificate\n",
        "nodeSelector: {beta.kubernetes.io/os: linux}\n",
        "#!/bin/sh\nls /usr/local/bin\n",
    ],
)
def test_what_is_of_today_is_not_even_parsed(text: str) -> None:
    assert not is_let_through(text)


def test_no_word_is_part_of_another() -> None:
    assert not any(a in b for a in DEFAULT for b in DEFAULT if a != b)
    assert fewest(["ab", "b", "abc", "", "cd"]) == (b"b", b"cd")


def test_a_few_words_are_looked_for_first() -> None:
    """Each costs one more pass over all that is read."""
    assert len(prefilter._parts(DEFAULT)) <= 16
