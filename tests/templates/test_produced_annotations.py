"""An annotation whose text a template makes is not empty, and is never removed in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.templates.made_annotations import (
    AFFINITY,
    AROUND,
    BESIDE,
    CRITICAL,
    HELM,
    HOSTNAME,
    INIT_CONTAINERS,
    INITIALIZED,
    JINJA,
    JSON,
    NEW,
    OLD,
    PARTLY,
    SECCOMP,
    SYSCTLS,
    TOLERATIONS,
    WHOLE_IN_QUOTES,
    chart,
    deployment,
    filled,
)
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from webhook.files.results import FileResult

CODES = {
    AFFINITY: "GPU106",
    TOLERATIONS: "GPU107",
    INIT_CONTAINERS: "GPU124",
    CRITICAL: "GPU127",
    HOSTNAME: "GPU108",
    INITIALIZED: "GPU108",
    SECCOMP: "GPU108",
    SYSCTLS: "GPU108",
}


def migrated(text: str, path: str = "templates/x.yaml", *, unsafe: bool = False) -> FileResult:
    return migrate_text(Source.of_text(path, text), Plan(unsafe=unsafe))


# What the webhook takes over, but of no pod of today: so the amounts of the pod are held, too.
TAKEN_OVER = {AFFINITY, TOLERATIONS, HOSTNAME, SECCOMP, SYSCTLS}


def assert_is_held(text: str, key: str, result: FileResult) -> None:
    """The annotation is for a person, with the reason; the amounts wait for it, if it counts.

    All else stays byte for byte.
    """
    if key in TAKEN_OVER:
        assert result.new_text is None
        waiting = [each for each in result.located if each.code == "GPU101"]
        assert waiting
        assert all(each.status is Status.MANUAL and not each.fix for each in waiting)
        assert all("until both are changed" in each.message for each in waiting)
    else:
        assert (result.new_text or text) == text.replace(OLD, NEW)
    told = [each for each in result.located if each.code == CODES[key]]
    assert told or result.skipped, "nothing is said of the annotation"
    for each in told:
        assert each.status is Status.MANUAL
        assert each.fix == ()
        assert "a template produces" in each.message or result.skipped, "the reason"


@pytest.mark.parametrize("key", CODES)
@pytest.mark.parametrize("made", HELM.values(), ids=HELM)
def test_in_a_chart(made: str, key: str) -> None:
    text = chart(made, key)
    assert_is_held(text, key, migrated(text))


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("made", HELM.values(), ids=HELM)
def test_beside_other_annotations(made: str, around: str) -> None:
    text = chart(made, AFFINITY, around)
    assert_is_held(text, AFFINITY, migrated(text, unsafe=True))


@pytest.mark.parametrize("made", PARTLY.values(), ids=PARTLY)
def test_a_part_in_a_chart(made: str) -> None:
    text = chart(made, AFFINITY, "in the middle")
    assert_is_held(text, AFFINITY, migrated(text))


@pytest.mark.parametrize("key", [AFFINITY, TOLERATIONS])
@pytest.mark.parametrize("made", JINJA.values(), ids=JINJA)
def test_in_a_jinja_template(made: str, key: str) -> None:
    text = deployment(filled(made, key))
    assert_is_held(text, key, migrated(text, "x.yaml.j2"))


@pytest.mark.parametrize("made", [*HELM.values(), *PARTLY.values()], ids=[*HELM, *PARTLY])
def test_in_a_document(made: str) -> None:
    text = f"Install it:\n\n```yaml\n{chart(made, AFFINITY)}```\n"
    assert_is_held(text, AFFINITY, migrated(text, "README.md"))


@pytest.mark.parametrize("made", [*HELM.values(), *PARTLY.values()], ids=[*HELM, *PARTLY])
def test_with_the_line_ends_of_windows(made: str) -> None:
    text = chart(made, AFFINITY, "in the middle").replace("\n", "\r\n")
    assert_is_held(text, AFFINITY, migrated(text))


@pytest.mark.parametrize("made", WHOLE_IN_QUOTES.values(), ids=WHOLE_IN_QUOTES)
@pytest.mark.parametrize("path", ["x.yaml", "templates/x.yaml", "x.yaml.j2"])
def test_in_a_file_that_is_yaml_as_it_is(path: str, made: str) -> None:
    text = deployment(filled(made, AFFINITY)).replace("{{ .Values.image }}", "busybox")
    assert_is_held(text, AFFINITY, migrated(text, path))


MOVED = "      - key: a\n        operator: Exists\n"


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_a_text_in_sight_goes_and_what_the_template_adds_beside_it_stays(beside: str) -> None:
    text = deployment(filled(beside, TOLERATIONS))
    line = f"        {TOLERATIONS}: '{JSON[TOLERATIONS]}'\n"
    wanted = (
        text.replace(OLD, NEW)
        .replace(line, "")
        .replace("      containers:", MOVED + "      containers:")
    )
    assert migrated(text).new_text == wanted


FLOW = {
    "JSON": """{
  "apiVersion": "v1",
  "kind": "Pod",
  "metadata": {
    "name": "x",
    "annotations": {
      "%s":
        {{ include "made" . | quote }},
      "example.com/other": "kept"
    }
  },
  "spec": {
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "containers": [{"name": "c", "image": "i", "resources": {"limits": {"%s": 1}}}]
  }
}
""",
    "flow": """\
apiVersion: v1
kind: Pod
metadata:
  name: x
  annotations: {
    %s:
      {{ include "made" . | quote }}
  }
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
  containers: [{name: c, image: i, resources: {limits: {%s: 1}}}]
""",
}


@pytest.mark.parametrize("text", FLOW.values(), ids=FLOW)
def test_in_flow_style(text: str) -> None:
    text %= (AFFINITY, OLD)
    assert_is_held(text, AFFINITY, migrated(text))
