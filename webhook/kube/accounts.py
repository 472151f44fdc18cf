"""Whether a user is a control-plane component or a node, which do not read warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# The built-in controllers that write workloads, each with its own account (controller_policy.go of
# Kubernetes). Other accounts of kube-system deploy workloads for users: helm-controller of K3s.
_CONTROLLERS = (
    "cronjob-controller",
    "daemon-set-controller",
    "deployment-controller",
    "generic-garbage-collector",
    "horizontal-pod-autoscaler",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "replication-controller",
    "statefulset-controller",
    "storage-version-migrator-controller",
    "ttl-after-finished-controller",
)
SYSTEM_USERS = (
    "system:apiserver",
    *(f"system:serviceaccount:kube-system:{name}" for name in _CONTROLLERS),
)
# The controller manager, the scheduler and kube-proxy; nodes.
SYSTEM_PREFIXES = ("system:kube-", "system:node:")
SYSTEM_GROUPS = ("system:nodes",)


def is_system(username: str, groups: Iterable[str] = ()) -> bool:
    """Whether the request comes from the control plane or a node.

    Other service accounts do not count: they are pipelines, whose logs users read. Nor do
    `system:admin` and the group `system:masters`: these are human users.
    """
    return (
        username in SYSTEM_USERS
        or username.startswith(SYSTEM_PREFIXES)
        or any(group in SYSTEM_GROUPS for group in groups)
    )
