"""Whether a user is a control-plane component or a node, which do not read warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# The controller manager, the scheduler and kube-proxy; nodes; each controller's own account.
SYSTEM_USERS = ("system:apiserver",)
SYSTEM_PREFIXES = ("system:kube-", "system:node:", "system:serviceaccount:kube-system:")
SYSTEM_GROUPS = ("system:nodes", "system:serviceaccounts:kube-system")


def is_system(username: str, groups: Iterable[str] = ()) -> bool:
    """Whether the request comes from the control plane or a node.

    Service accounts of other namespaces do not count: they are pipelines, whose logs users read.
    Nor do `system:admin` and the group `system:masters`: these are human users.
    """
    return (
        username in SYSTEM_USERS
        or username.startswith(SYSTEM_PREFIXES)
        or any(group in SYSTEM_GROUPS for group in groups)
    )
