"""Charts by what their templates do with amounts, before and after a run, by the real helm.

What helm makes of the migrated chart must be what the rules make of what it made before, with each
file of values, and the API server must take it.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster import helm
from tests.projects.chart_flows import COMBINED, KEPT, LOOKING, UNSURE
from tests.projects.test_chart_flows import CHART, looked_at
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.kube import quantity
from webhook.kube.pod import as_items, as_map
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane
    from tests.projects.chart_flows import Files

HELD = {**COMBINED, **{way: files for way, (files, _) in (LOOKING | UNSURE).items()}}


@pytest.mark.parametrize("files", KEPT.values(), ids=KEPT)
def test_a_migrated_chart_makes_what_the_rules_made(
    files: Files, tmp_path: Path, cluster: ControlPlane
) -> None:
    results = looked_at(tmp_path / "judged", files)
    migrated = {name: each.new_text or each.text for name, each in results.items()}
    for before, after in _made(tmp_path, files, migrated):
        assert _pods(after) == _pods(_by_rules(before))
        for pod in yaml.safe_load_all(after):
            answer = cluster.client.request(
                "POST",
                f"api/v1/namespaces/default/{pod['kind'].lower()}s",
                pod,
                query={"dryRun": "All"},
            )
            assert answer.ok, answer.message


@pytest.mark.parametrize("files", HELD.values(), ids=HELD)
def test_a_chart_that_waits_would_make_something_else(files: Files, tmp_path: Path) -> None:
    """Else it would wait without need: with each of its files migrated alone, objects differ."""
    alone = {name: _alone(name, text) for name, text in files.items()}

    assert any(_pods(a) != _pods(_by_rules(b)) for b, a in _made(tmp_path, files, alone))


def _alone(name: str, text: str) -> str:
    plan = Plan(is_values="templates" not in name)
    return migrate_text(Source.of_text(name, text), plan).new_text or text


def _made(folder: Path, before: Files, after: Files) -> Iterator[tuple[str, str]]:
    """What helm makes of both, with no file of values or one or two over the chart's own."""
    more = [name for name in before if name.startswith("values-")]
    for count in range(min(len(more), 2) + 1):
        for some in permutations(more, count):
            yield (
                _rendered(folder / "before", before, some),
                _rendered(folder / "after", after, some),
            )


def _rendered(folder: Path, files: Files, over: tuple[str, ...]) -> str:
    for name, text in {"Chart.yaml": CHART, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = helm.template(folder, "r", *(f"--values={folder / name}" for name in over))
    assert done.returncode == 0, done.stderr
    return done.stdout


def _by_rules(text: str) -> str:
    return migrate_text(Source.of_text("all.yaml", text), Plan()).new_text or text


def _pods(text: str) -> list[Any]:
    """The objects, with amounts as numbers; 0 is none. A member that stands twice is not valid."""
    read = documents.read(text).documents
    pods = [each.data for each in read if each.data and not each.duplicates]
    for pod in pods:
        for _, container in as_items(as_map(pod.get("spec")).get("containers")):
            resources = {**as_map(container.get("resources"))}
            for section in ("limits", "requests"):
                found = {k: quantity.parse(v) for k, v in as_map(resources.get(section)).items()}
                resources[section] = {name: amount for name, amount in found.items() if amount}
            container["resources"] = resources
    return pods
