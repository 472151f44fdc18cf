"""A legacy word in a value holds amounts only if something may read the value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.chart_flows import OLD, WHOLE, given, helper, pod
from webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

DRIVER = "driver: /usr/lib/nvidia-375\n"
VALUES = f"# values\nresources: {given(1)}\n{DRIVER}"
HEAD = "apiVersion: v2\nname: c\nversion: 0.1.0\n"
DEPENDS = "dependencies:\n- {{name: l, version: 0.1.0, repository: '{}'}}\n"
VOLUME = "  volumes: [{{name: x, hostPath: {{path: {{{{ {} }}}}}}}}]\n"

UNUSED = {
    "no template reads it": {},
    "a map that no template reads": {
        "values.yaml": f"resources: {given(1)}\nhost:\n- {DRIVER}",
    },
    "another member of the name with more letters": {
        "templates/q.yaml": pod("{}", VOLUME.format(".Values.driverPath | default 1"), name="q")
    },
    "a chart beside it does not read it either": {
        "Chart.yaml": f"{HEAD}{DEPENDS.format('file://./charts/l')}",
        "charts/l/Chart.yaml": HEAD.replace("name: c", "name: l"),
        "charts/l/templates/_h.tpl": helper("x", "l"),
    },
}
USED = {
    "a template reads it": {
        "templates/q.yaml": pod("{}", VOLUME.format(".Values.driver"), name="q")
    },
    "a template reads all values": {"templates/q.yaml": "{{/* x */}}{{ toJson .Values | len }}\n"},
    "a value reads it": {"values.yaml": f"{VALUES}x: '{{{{ .Values.driver }}}}'\n"},
    "a named template reads it": {"templates/_h.tpl": helper("{{ .driver }}", "h")},
    "a chart that is packed may read it": {"charts/l.tgz": ""},
    "a chart of another repository may read it": {
        "Chart.yaml": f"{HEAD}{DEPENDS.format('https://example.org')}"
    },
    "a chart inside gets it by its name": {
        "values.yaml": f"resources: {given(1)}\nl:\n  {DRIVER}",
        "charts/l/Chart.yaml": HEAD.replace("name: c", "name: l"),
    },
    "values in another style": {
        "values.yaml": f"{{resources: {given(1)}, driver: /usr/lib/nvidia-375}}\n"
    },
}


def amounts(folder: Path, more: dict[str, str]) -> int:
    """How many legacy amounts the values have after a run."""
    files = {"Chart.yaml": HEAD, "values.yaml": VALUES, "templates/p.yaml": pod(WHOLE), **more}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    main(["migrate", "--write", str(folder)])
    return (folder / "values.yaml").read_text().count(OLD)


@pytest.mark.parametrize("more", UNUSED.values(), ids=UNUSED)
def test_a_value_that_nothing_reads_holds_nothing(more: dict[str, str], tmp_path: Path) -> None:
    assert amounts(tmp_path, more) == 0


@pytest.mark.parametrize("more", USED.values(), ids=USED)
def test_a_value_that_may_be_read_holds_amounts(more: dict[str, str], tmp_path: Path) -> None:
    assert amounts(tmp_path, more) == 1
