"""Charts of which one file stays as it is, by the real helm, before a run and after it.

What the webhook makes of the pods after the run is what it made of them before. Where amounts wait,
it would be something else without that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster import helm
from tests.projects.half_charts import GOING_ON, WAITING, Half
from tests.projects.test_half_charts import migrated, written
from webhook.core.settings import Settings
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.formats.normal_form import normal_form
from webhook.verifying.admitted import admitted

if TYPE_CHECKING:
    from pathlib import Path

HALF = WAITING | GOING_ON


@pytest.mark.parametrize("half", HALF.values(), ids=HALF)
def test_the_webhook_makes_the_same_pods_as_before(half: Half, tmp_path: Path) -> None:
    written(tmp_path / "before", half)
    migrated(tmp_path, half)
    assert made(tmp_path / "c", half) == made(tmp_path / "before", half)


@pytest.mark.parametrize("half", WAITING.values(), ids=WAITING)
def test_amounts_that_wait_would_make_other_pods(half: Half, tmp_path: Path) -> None:
    written(tmp_path / "before", half)
    written(tmp_path / "alone", half)
    for name, text in half.files.items():
        if name != half.stays:
            source, is_values = Source.of_text(name, text), "templates" not in name
            new = migrate_text(source, Plan(is_values=is_values)).new_text
            (tmp_path / "alone" / name).write_text(new or text)
    assert made(tmp_path / "alone", half) != made(tmp_path / "before", half)


def made(folder: Path, half: Half) -> list[Any]:
    """What the webhook makes of the pods, with each file of values."""
    more = [name for name in half.files if name.startswith("values-")]
    texts = [helm.template(folder, "r")]
    texts += [helm.template(folder, "r", f"--values={folder / name}") for name in more]
    assert not any(each.returncode for each in texts), texts
    found = [obj for each in texts for obj in yaml.safe_load_all(each.stdout)]
    plan = Plan(Settings())
    return [normal_form(admitted(obj, plan).object, plan.settings) for obj in found]
