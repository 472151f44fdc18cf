"""Writes manifests/install.yaml: the objects of manifests/base, in one file.

`make manifests` renews it; tests/cluster/test_own_chart.py fails when it is stale. The webhook
configurations come first, so that `kubectl delete -f` removes them before the pods that they call.
"""

from __future__ import annotations

import subprocess

from tests.cluster import build
from tests.cluster.webhook import BASE, KINDS

FILE = BASE.parent / "install.yaml"
_HEAD = "# The objects of manifests/base: written by `make manifests`.\n"
_BETWEEN = "---\n"


def text() -> str:
    """The file as it must be."""
    command = [str(build.assets() / "kubectl"), "kustomize", str(BASE)]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    objects = made.split(_BETWEEN)
    first = [each for each in objects if any(f"\nkind: {kind}\n" in each for kind in KINDS)]
    others = [each for each in objects if each not in first]
    return _HEAD + _BETWEEN.join([*first, *others])


if __name__ == "__main__":
    FILE.write_text(text())
