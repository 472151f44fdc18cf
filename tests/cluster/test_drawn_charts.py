"""Drawn charts, rendered by the real helm before and after `migrate`: none of them is broken.

With each set of values, what the webhook makes of the old objects is what it makes of the new ones;
of a template in which nothing is left to do, it is the new ones. The API server takes them.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster import helm
from tests.templates.drawn_charts import HELPERS, OPENSTACK, VALUES, drawn
from webhook.core.settings import Settings
from webhook.evaluation.workloads import templates_of
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.formats.normal_form import normal_form
from webhook.kube.pod import as_items
from webhook.kube.pointer import value_at
from webhook.verifying import trial
from webhook.verifying.admitted import admitted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane

NUMBER = int(os.environ.get("DRAWN_CHARTS", "200"))
SETTINGS = Settings(scope="all-legacy")


class Charts:
    """The templates by their names, before and after, and which of them are done."""

    def __init__(self, old: dict[str, str]) -> None:
        self.old = old
        self.new: dict[str, str] = {}
        self.done: set[str] = set()
        self.less: set[str] = set()
        for name, text in self.old.items():
            source = Source.of_text(f"templates/{name}.yaml", text)
            result = migrate_text(source, Plan())
            tried = trial.tried(result, Plan(), partial(migrate_text, source))
            self.less |= {name} if tried is not result else set()
            result = tried
            self.new[name] = result.new_text or text
            left = any(each.status is Status.MANUAL for each in result.located)
            if not left and '"gpus"' not in text:  # the legacy name is in a helper, which stays
                self.done.add(name)

    @property
    def edited(self) -> set[str]:
        return {name for name, text in self.old.items() if self.new[name] != text}


@pytest.fixture(scope="module")
def charts() -> Charts:
    made = {f"drawn-{each}": drawn(each, f"drawn-{each}") for each in range(NUMBER)}
    return Charts(made | OPENSTACK)


def meant(obj: Any) -> Any:
    """What the webhook makes of it."""
    made = admitted(obj, Plan())
    assert not made.why_not or "selector" in made.why_not, made.why_not
    return without_tolerations(made.object)


def without_tolerations(obj: Any) -> Any:
    """The normal form without tolerations of GPU nodes: where there is no room they are advice."""
    made = normal_form(obj, SETTINGS)
    for at in templates_of(made, SETTINGS):
        spec = value_at(made, at / "spec")
        given = (each for _, each in as_items(spec.get("tolerations")))
        spec["tolerations"] = [e for e in given if not SETTINGS.is_gpu(str(e.get("key")))]
    return made


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_no_chart_is_broken(
    charts: Charts, values: dict[str, Any], cluster: ControlPlane, tmp_path: Path
) -> None:
    before = helm.objects(tmp_path / "before", charts.old, HELPERS, values)
    after = helm.objects(tmp_path / "after", charts.new, HELPERS, values)
    assert before.keys() == after.keys() == charts.old.keys()
    broken = {}
    for name, old in before.items():
        wanted, new = meant(old), after[name]
        got = without_tolerations(new) if name in charts.done else meant(new)
        if wanted != got:
            broken[name] = "differs"
        elif name in charts.done and (why := refused(cluster, new)):
            broken[name] = why
    assert broken == {}


def refused(cluster: ControlPlane, obj: Any) -> str:
    """Why the API server refuses the object."""
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    at = f"apis/{group}/{version}" if group else f"api/{version}"
    path = f"{at}/namespaces/default/{obj['kind'].lower()}s"
    answer = cluster.client.request("POST", path, obj, query={"dryRun": "All"})
    return "" if answer.ok else answer.message


def test_an_annotation_that_a_template_makes_stays(charts: Charts) -> None:
    """All nine, and the drawn ones: no line of such an annotation is removed."""
    for name in OPENSTACK:
        made = [
            line for line in charts.old[name].splitlines() if "annotations" in line or "aff" in line
        ]
        assert [line for line in made if line not in charts.new[name].splitlines()] == [], name


def test_most_are_edited(charts: Charts, capsys: pytest.CaptureFixture[str]) -> None:
    edited = charts.edited - OPENSTACK.keys()
    done = edited & charts.done
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{NUMBER} charts: {len(edited)} edited, {len(done)} of them with nothing left to do;"
            f" of {sorted(charts.less)} edits are held back by stand-ins"
        )
    assert len(edited) > NUMBER // 2
