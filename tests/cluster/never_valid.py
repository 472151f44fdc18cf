"""Manifests that are refused for no business of ours, and why: they were refused before, too.

By the name of the file and the object. An entry that is not refused any more fails the test.
"""

from __future__ import annotations

_OPERATOR = "the operator of that time added the volume that is mounted"
_ALPHA = (
    "spec.resourceClaims[].source was an alpha field of 1.26-1.30 for DRA, never of this webhook"
)
_DRA = "kubernetes-handbook-practice-gpu-2.md"

NEVER_VALID: dict[tuple[str, str], str] = {
    ("acs-engine-kubernetes-gpu.md", "Deployment/tensorflow"): "command is a text, not a list",
    (
        "cpu-manager-for-kubernetes-docs-operator.md",
        "Pod/cmk-isolate-pod",
    ): "NODENAME is for the reader to fill in, and a webhook of CMK adds the limit",
    (
        "dlworkspace-jobs-templete-regularjob-yaml-2.template",
        "Pod/given",
    ): "cpu and memory are the words of the template's author, without braces around them",
    (
        "kubernetes-handbook-posts-kubernetes-dashboard-installation.md",
        "Status/",
    ): "an answer of the API server",
    ("pytorch-operator-readme-2.md", "TFJob/example-job"): _OPERATOR,
    ("pytorch-operator-readme.md", "TfJob/example-job"): _OPERATOR,
    (_DRA, "Pod/ml-training-pod"): _ALPHA,
    (_DRA, "Pod/inference-pod"): _ALPHA,
    (_DRA, "Pod/mig-workload"): _ALPHA,
    (_DRA, "Pod/maintenance-tolerant-gpu-pod"): _ALPHA,
    (_DRA, "Pod/gpu-monitor"): _ALPHA,
}
