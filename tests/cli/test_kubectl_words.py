"""Each word of a YAML text is read as kubectl reads it, in whatever file it stands.

kubectl/words.json is what the real one printed: tests/cluster/test_kubectl_words.py asks it again.
"""

from __future__ import annotations

import json
import textwrap
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.formats.test_every_way import WAYS, Way, result_of
from webhook.cli import review
from webhook.files.results import Plan
from webhook.formats import file_objects, kustomize
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from tests.cli.conftest import Command

TEXT = Path(__file__).with_name("kubectl") / "words.yaml"
GOLDEN = TEXT.with_suffix(".json")
EXPECTED: dict[str, Any] = json.loads(GOLDEN.read_text())


def exact(words: dict[str, Any]) -> dict[str, str]:
    """Each value as Kubernetes prints it: 1.0 and 1 are one number there, and true is none."""
    return {name: json.dumps(_printed(value), sort_keys=True) for name, value in words.items()}


def _printed(value: Any) -> Any:
    """A number as kubectl has it once it was JSON: of 64 bits with a sign, or a float."""
    if type(value) not in (int, float):
        return value
    return int(value) if abs(value) < 2**63 and value == int(value) else float(value)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The objects that rules were asked of, as they came."""
    seen: list[Any] = []

    for room in (file_objects, kustomize, review):

        def watched(obj: Any, *more: Any, _asks: Any = room.evaluate, **further: Any) -> Any:
            seen.append(deepcopy(obj))
            return _asks(obj, *more, **further)

        monkeypatch.setattr(room, "evaluate", watched)
    return seen


PATCH = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [pod.yaml]
patches:
- target: {kind: Pod}
  patch: |-
"""
FURTHER = {
    "manifest": Way("x.yaml", str, str),
    "kustomize": Way("kustomization.yaml", lambda text: PATCH + textwrap.indent(text, "    "), str),
}


@pytest.mark.parametrize("way", [*FURTHER.values(), *WAYS.values()], ids=[*FURTHER, *WAYS])
def test_a_file_is_read_as_kubectl_reads_it(way: Way, asked: list[Any]) -> None:
    result_of(way.path, way.write(TEXT.read_text()), Plan())
    pods = [each for each in asked if each["kind"] != "ConfigMap"]  # that one has a text
    assert pods
    for each in pods:
        assert exact(each["spec"]["words"]) == exact(EXPECTED)


def test_review_reads_as_kubectl_does(asked: list[Any], gpu_webhook: Command) -> None:
    gpu_webhook("review", "-f", str(TEXT))
    (obj,) = asked
    assert exact(obj["spec"]["words"]) == exact(EXPECTED)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_review_prints_is_what_it_read(form: str, gpu_webhook: Command) -> None:
    printed = gpu_webhook("review", "-f", str(TEXT), "-o", form).out
    (document,) = documents.read(printed).documents
    assert exact(document.data["object"]["spec"]["words"]) == exact(EXPECTED)
