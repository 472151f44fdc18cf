"""The real helm: what `helm template` makes of a chart, and releases in a cluster."""

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


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it with nothing of the user's own settings."""
    return subprocess.run(
        [str(build.helm()), *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
    )


def template(folder: Path, release: str, *given: str) -> subprocess.CompletedProcess[str]:
    """Render a chart; the folder is also the home of helm."""
    return run(folder, "template", release, str(folder), "--kube-version", KUBERNETES, *given)


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
