from __future__ import annotations

import pytest

from webhook.kube.accounts import is_system


@pytest.mark.parametrize(
    ("username", "groups", "expected"),
    [
        pytest.param("system:kube-controller-manager", [], True, id="the controller manager"),
        pytest.param("system:kube-scheduler", [], True, id="the scheduler"),
        pytest.param("system:node:gpu-1", ["system:nodes"], True, id="a node"),
        pytest.param("gpu-1", ["system:nodes"], True, id="a node of another name"),
        pytest.param("system:apiserver", ["system:masters"], True, id="the API server itself"),
        pytest.param(
            "system:serviceaccount:kube-system:job-controller", [], True, id="a controller"
        ),
        pytest.param(
            "system:serviceaccount:kube-system:deployment-controller",
            ["system:serviceaccounts", "system:serviceaccounts:kube-system"],
            True,
            id="another controller",
        ),
        pytest.param(
            "system:serviceaccount:kube-system:helm-traefik",
            ["system:serviceaccounts", "system:serviceaccounts:kube-system"],
            False,
            id="an account of kube-system that applies charts for users",
        ),
        pytest.param(
            "system:serviceaccount:argocd:application-controller",
            ["system:serviceaccounts", "system:serviceaccounts:argocd"],
            False,
            id="a pipeline, whose log somebody reads",
        ),
        pytest.param(
            "system:serviceaccount:kube-system-2:x", [], False, id="a namespace of a similar name"
        ),
        pytest.param("system:admin", ["system:masters"], False, id="an administrator"),
        pytest.param("ada", ["system:authenticated"], False, id="a person"),
        pytest.param("", [], False, id="nobody knows who"),
    ],
)
def test_is_system(username: str, groups: list[str], *, expected: bool) -> None:
    assert is_system(username, groups) is expected
