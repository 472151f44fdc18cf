"""The templates of ../shared/corpus, rendered by helm or Jinja before and after `migrate`.

With four sets of values, what the webhook makes of the old objects is what it makes of the new
ones; of a template in which nothing is left to do, it is the new ones. The API server takes the new
ones if it takes what the webhook makes of the old.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from tests.cluster.accepting import Cluster
from tests.cluster.given_values import VALUES
from tests.cluster.judging import nested
from tests.cluster.rendering import OTHERS, NotRenderedError, rendered
from tests.cluster.test_drawn_charts import without_tolerations
from tests.shared_folder import files
from webhook.files.results import Plan, Status
from webhook.files.source import TEMPLATES, Source
from webhook.formats.migrate import migrate_text
from webhook.verifying import trial
from webhook.verifying.admitted import admitted

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.cluster.controlplane import ControlPlane


def test_no_template_is_broken(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, counts = Cluster(cluster), Counter[str]()
    broken: list[str] = []
    for file in files("corpus/files/*"):
        source = Source.of(file.name, file.read_bytes())
        if source.kind not in TEMPLATES:
            continue
        result = migrate_text(source, Plan())
        counts["templates"] += 1
        if result.new_text is None:
            continue
        result = trial.tried(result, Plan(), partial(migrate_text, source))
        assert result.new_text is not None, file.name
        is_done = all(each.status is not Status.MANUAL for each in result.located)
        counts["edited"] += 1
        counts["nothing left to do"] += is_done
        for like in ("", *OTHERS):
            given = VALUES.get(file.name, {})
            try:
                before = rendered(source.text, tmp_path / file.name, given, like)
            except NotRenderedError:
                counts["not rendered before"] += 1
                continue
            try:
                after = rendered(result.new_text, tmp_path / file.name, given, like)
            except NotRenderedError as error:
                broken.append(f"{file.name} {like}: {error}")
                continue
            name = f"{file.name} {like}"
            broken += _broken(name, before, after, server, counts, is_done=is_done)
    with capsys.disabled():
        print(f"\n../shared/corpus: {dict(counts)}")  # noqa: T201
    assert broken == []


def _broken(
    name: str, before: str, after: str, server: Cluster, counts: Counter[str], *, is_done: bool
) -> list[str]:
    """What differs in the objects of two renderings, and what the API server refuses."""
    old, new = list(nested(before)), list(nested(after))
    if len(old) != len(new):
        return [f"{name}: {len(old)} objects before, {len(new)} after"]
    found = []
    for one, other in zip(old, new, strict=True):
        meant = admitted(one, Plan())
        if meant.why_not:
            counts["not valid before"] += 1
            continue
        counts["objects"] += 1
        kept = other if is_done else admitted(other, Plan()).object
        if without_tolerations(meant.object) != without_tolerations(kept):
            found.append(f"{name}: {one['kind']} differs")
        elif not server.refusal(meant.object):
            counts["accepted"] += 1
            if other["apiVersion"] == meant.object["apiVersion"] and (why := server.refusal(other)):
                found.append(f"{name}: {one['kind']}: {why}")
    return found
