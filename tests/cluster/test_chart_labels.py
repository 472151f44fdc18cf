"""Charts whose labels the migrator copies: helm renders the same text, and the API server agrees.

And those of today, on which it must be silent: the API server takes them as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cluster.test_made_annotations import refusals
from tests.formats.chart_labels import COPIED, MODERN, legacy, rendered
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane

_OTHER_VALUES = ("--set-string", "number=1e3,major=0,minor=10,name=on,yes=no,key=c")


def test_the_charts_of_today_are_right(cluster: ControlPlane, tmp_path: Path) -> None:
    """Else there would be reason to say something of them."""
    right = {way: text for way, text in MODERN.items() if "StatefulSet" not in text}

    assert refusals(cluster, rendered(right, tmp_path), "default") == {}


def test_copied_labels_render_to_the_same_text(cluster: ControlPlane, tmp_path: Path) -> None:
    texts = {way: legacy(labels) for way, labels in COPIED.items()}
    results = {
        way: str(migrate_text(Source.of_text("templates/x.yaml", text), Plan()).new_text)
        for way, text in texts.items()
    }
    for given in ((), _OTHER_VALUES):
        before = rendered(texts, tmp_path / "before", *given)
        after = rendered(results, tmp_path / "after", *given)

        assert {way: _selector(obj) for way, obj in after.items()} == {
            way: _labels(obj) for way, obj in before.items()
        }
        right = {way: obj for way, obj in after.items() if all(map(_is_text, _labels(obj).items()))}
        assert len(right) >= len(after) - 1  # a plain action makes a truth of `on`
        assert refusals(cluster, right, "default") == {}


def _is_text(label: tuple[Any, Any]) -> bool:
    return isinstance(label[1], str)


def _labels(obj: Any) -> Any:
    return obj["spec"]["template"]["metadata"]["labels"]


def _selector(obj: Any) -> Any:
    return obj["spec"]["selector"]["matchLabels"]
