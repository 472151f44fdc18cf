"""What the unit tests take for kubectl's reading of YAML is what the real kubectl prints."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_kubectl_words import GOLDEN, TEXT

if TYPE_CHECKING:
    from tests.cluster.controlplane import ControlPlane

pytestmark = pytest.mark.cluster


def test_each_word_is_what_kubectl_prints(cluster: ControlPlane) -> None:
    asked = ["label", "--local", f"--filename={TEXT}", "a=b", "--output=json"]
    done = subprocess.run(
        [cluster.programs / "kubectl", *asked], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["spec"]["words"] == json.loads(GOLDEN.read_text())
