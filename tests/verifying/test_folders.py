"""`gpu-webhook verify` of folders: what belongs together, and what nobody builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.verifying.test_command import (
    DIFFERENT,
    EQUAL,
    NOT_PROVABLE,
    builds,
    new,
    old,
    verify,
    written,
)  # fmt: skip

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
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
OUT = NAMESPACE.replace("team}", 'team, labels: {gpu-webhook.dev/ignore: "true"}}')
IN_TEAM = old().replace("{name: p}", "{name: p, namespace: team}")
FLUX = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app}
spec:
  path: ./app
  patches:
  - patch: |
      kind: Pod
      metadata: {name: p}
      spec: {containers: [{name: c, resources: {limits: {}}}]}
      #  """
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
    "a namespace that opted out in another folder": (
        {"dev/ns.yaml": OUT, "prod/p.yaml": IN_TEAM},
        {"dev/ns.yaml": OUT, "prod/p.yaml": IN_TEAM},
        NOT_PROVABLE,
        "new/prod/p.yaml: Pod/team/p: not provable: its namespace team opted out in another folder",
    ),
    "one that is in both folders, and opted out in the other": (
        {"dev/ns.yaml": OUT, "prod/ns.yaml": NAMESPACE, "prod/p.yaml": IN_TEAM},
        {"dev/ns.yaml": OUT, "prod/ns.yaml": NAMESPACE, "prod/p.yaml": IN_TEAM},
        DIFFERENT,
        "new/prod/p.yaml: Pod/team/p: different",
    ),
    "one that opted out in the same folder": (
        {"dev/ns.yaml": OUT, "dev/p.yaml": IN_TEAM},
        {"dev/ns.yaml": OUT, "dev/p.yaml": IN_TEAM},
        EQUAL,
        "new/dev/p.yaml: Pod/team/p: equal",
    ),
    "one elsewhere, and nothing to repair": (
        {"dev/ns.yaml": OUT, "prod/p.yaml": new()},
        {"dev/ns.yaml": OUT, "prod/p.yaml": new()},
        EQUAL,
        "new/prod/p.yaml: Pod/p: equal",
    ),
    "a patch of Flux that stays legacy": (
        {"app.yaml": FLUX + LEGACY_4},
        {"app.yaml": FLUX + LEGACY_4},
        NOT_PROVABLE,
        "new/app.yaml: Kustomization/app: not provable: spec.patches.patch has a legacy name",
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
    builds(tmp_path)
    written(tmp_path / "old", was)
    written(tmp_path / "new", now)
    found, said = verify("old", "new")
    assert (found, words in said) == (code, True), said


def test_a_manifest_that_cannot_be_decoded(verify: Verify, tmp_path: Path) -> None:
    """A file in UTF-16 is one that kubectl reads."""
    for side in ("old", "new"):
        written(tmp_path / side, {})
        (tmp_path / side / "a.yaml").write_bytes(old().encode("utf-16"))
        (tmp_path / side / "a.png").write_bytes(b"\0")
    code, said = verify("old", "new")
    assert (code, said.count("not provable: is UTF-16")) == (NOT_PROVABLE, 1), said


def test_stdin_is_in_no_revision(verify: Verify) -> None:
    assert verify("--git", "HEAD", "-")[1].count("stdin is in no revision") == 1
