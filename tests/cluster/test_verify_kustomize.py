"""`gpu-webhook verify` of kustomizations that generate objects, with the real kustomize."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster import build
from tests.verifying.test_command import DIFFERENT, EQUAL, NOT_PROVABLE, new, old

CLAIM = """\
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers: [{name: c, image: i, envFrom: [{secretRef: {name: s}}]}]
  volumes: [{name: t, configMap: {name: tmpl}}]
"""
BASE = {
    "base/app.yaml": CLAIM,
    "base/kustomization.yaml": """\
resources: [app.yaml]
configMapGenerator: [{name: tmpl, files: [pod.yaml]}]
secretGenerator: [{name: s, literals: [a=b]}]
""",
    "over/kustomization.yaml": "resources: [../base]\nnamePrefix: dev-\nnamespace: team\n",
}


def files(pod: str, **others: str) -> dict[str, str]:
    return {**BASE, "base/pod.yaml": pod, **others}


OTHER_SECRET = BASE["base/kustomization.yaml"].replace("a=b", "a=c")
# The files before and after, the exit code, and lines of the output.
TABLE: dict[str, tuple[dict[str, str], dict[str, str], int, tuple[str, ...]]] = {
    "nothing changes": (files(new()), files(new()), EQUAL, ("7 compared: 7 equal",)),
    "a pod template in a ConfigMap is migrated": (
        files(old()),
        files(new()),
        NOT_PROVABLE,
        (
            "not provable: data.pod.yaml has a legacy name",
            "new/base: Pod/app: equal",
            "new/over: Pod/team/dev-app: equal",
            "7 compared: 5 equal, 2 not provable",
        ),
    ),
    "a Secret changes": (
        files(new()),
        {**files(new()), "base/kustomization.yaml": OTHER_SECRET},
        DIFFERENT,
        ("different: data.a (changed by no rule)", "new/base: Pod/app: equal"),
    ),
    "the pod uses another ConfigMap": (
        files(old()),
        {**files(new()), "base/app.yaml": CLAIM.replace("tmpl", "other")},
        DIFFERENT,
        ("new/base: Pod/app: different: spec.volumes.configMap.name (changed by no rule)",),
    ),
}


@pytest.mark.parametrize(("was", "now", "code", "words"), TABLE.values(), ids=TABLE)
def test_generators(
    was: dict[str, str],
    now: dict[str, str],
    code: int,
    words: tuple[str, ...],
    verify_with: Any,
) -> None:
    found, said = verify_with(build.assets(), was, now)
    assert (found, [each for each in words if each not in said]) == (code, []), said
