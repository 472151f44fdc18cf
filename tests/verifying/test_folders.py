"""`gpu-webhook verify` of folders: what belongs together, and what nobody builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.verifying.test_command import DIFFERENT, EQUAL, NOT_PROVABLE, new, old, verify, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.verifying.test_command import Verify

__all__ = ["verify"]

COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
WITH_PATCH = {"c/kustomization.yaml": f"{COMPONENT}patches: [{{path: p.yaml}}]\n"}
WITH_POD = {"c/kustomization.yaml": f"{COMPONENT}resources: [p.yaml]\n"}
USED = {"o/kustomization.yaml": "components: [../c]\n"}


def patch(amount: str) -> str:
    limits = f"resources: {{limits: {{{amount}}}}}"
    head = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
    return f"{head}spec: {{containers: [{{name: c, {limits}}}]}}\n"


LEGACY_4, CURRENT_1 = "alpha.kubernetes.io/nvidia-gpu: 4", "nvidia.com/gpu: 1"
TABLE: dict[str, tuple[dict[str, str], dict[str, str], int, str]] = {
    "a patch of a component that nothing uses": (
        {**WITH_PATCH, "c/p.yaml": patch(LEGACY_4)},
        {**WITH_PATCH, "c/p.yaml": patch(CURRENT_1)},
        NOT_PROVABLE,
        "new/c/p.yaml: not provable: it is a patch",
    ),
    "a pod of a component that nothing uses stays legacy": (
        {**WITH_POD, "c/p.yaml": old()},
        {**WITH_POD, "c/p.yaml": old()},
        DIFFERENT,
        "new/c/p.yaml: Pod/p: different",
    ),
    "a component that nothing uses is migrated": (
        {**WITH_POD, "c/p.yaml": old()},
        {**WITH_POD, "c/p.yaml": new()},
        EQUAL,
        "new/c/p.yaml: Pod/p: equal",
    ),
    "a component that is used is built there": (
        {**WITH_POD, **USED, "c/p.yaml": old()},
        {**WITH_POD, **USED, "c/p.yaml": new()},
        EQUAL,
        "new/o: Pod/p: equal\n1 compared: 1 equal\n",
    ),
}


@pytest.mark.parametrize(("was", "now", "code", "words"), TABLE.values(), ids=TABLE)
def test_folders(
    was: dict[str, str],
    now: dict[str, str],
    code: int,
    words: str,
    verify: Verify,
    tmp_path: Path,
) -> None:
    written(tmp_path / "old", was)
    written(tmp_path / "new", now)
    found, said = verify("old", "new")
    assert (found, words in said) == (code, True), said
