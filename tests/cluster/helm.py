"""Charts by the real helm: from a folder, or texts of templates, to what `helm template` makes."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster import build

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KUBERNETES = "1.36.3"


def template(folder: Path, release: str, *given: str) -> subprocess.CompletedProcess[str]:
    """Run it with nothing of the user's own settings."""
    return subprocess.run(
        [str(build.helm()), "template", release, str(folder), "--kube-version", KUBERNETES, *given],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
    )


def objects(
    folder: Path, texts: Mapping[str, str], helpers: str, values: Mapping[str, Any], *given: str
) -> dict[str, Any]:
    """The objects of a chart of these templates, by their names."""
    templates = folder / "templates"
    templates.mkdir(parents=True, exist_ok=True)
    chart = {"apiVersion": "v2", "name": "x", "version": "1.0.0", "appVersion": "1.0"}
    (folder / "Chart.yaml").write_text(json.dumps(chart))
    (folder / "values.yaml").write_text(json.dumps(values))
    (templates / "_helpers.tpl").write_text(helpers)
    for name, text in texts.items():
        (templates / f"{name}.yaml").write_text(text)
    done = template(folder, "x", *given)
    assert done.returncode == 0, done.stderr
    made = [each for each in yaml.safe_load_all(done.stdout) if each]
    return {each["metadata"]["name"]: each for each in made}
