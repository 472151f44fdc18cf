"""Paths: RFC 6901 texts, steps up and down, and Kubernetes' own way to print them."""

from __future__ import annotations

import pytest

from webhook.kube.pointer import ROOT, Path, escape

GPU = "alpha.kubernetes.io/nvidia-gpu"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(ROOT, "", id="the root is the empty text"),
        pytest.param(Path(("spec", "containers", 0)), "/spec/containers/0", id="plain steps"),
        pytest.param(Path(("a/b",)), "/a~1b", id="a slash is written ~1"),
        pytest.param(Path(("a~b",)), "/a~0b", id="a tilde is written ~0"),
        pytest.param(Path(("~1",)), "/~01", id="what looks escaped is escaped again"),
        pytest.param(Path(("",)), "/", id="an empty member name is a step of its own"),
        pytest.param(Path((GPU,)), "/alpha.kubernetes.io~1nvidia-gpu", id="the legacy name"),
    ],
)
def test_the_text_is_that_of_rfc_6901(path: Path, text: str) -> None:
    assert str(path) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(ROOT, "", id="the root is the empty text"),
        pytest.param(
            Path(("spec", "containers", 0, "resources", "limits", GPU)),
            f"spec.containers[0].resources.limits[{GPU}]",
            id="a position and a name with a slash stand in brackets",
        ),
        pytest.param(
            Path(("nodeSelector", "a.b")), "nodeSelector[a.b]", id="so does one with a dot"
        ),
        pytest.param(Path((0, "kind")), "[0].kind", id="a list at the top"),
        pytest.param(Path(("spec",)), "spec", id="the first name has no dot before it"),
    ],
)
def test_a_person_reads_the_path_as_kubernetes_prints_it(path: Path, text: str) -> None:
    assert path.dotted == text


def test_a_path_goes_down_by_a_slash_and_up_by_its_parent() -> None:
    path = ROOT / "spec" / "containers" / 2
    assert tuple(path) == ("spec", "containers", 2)
    assert path.parent == Path(("spec", "containers"))
    assert isinstance(path.parent, Path)
    assert ROOT.parent == ROOT


def test_one_token_is_escaped_alone() -> None:
    assert escape("a~/b") == "a~0~1b"
